"""Tests drop-ins for context parallelism with several processes. Results must be close to a reference in f64. Names,
shapes and errors are those of the engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch.distributed")

import mlafix
import torch
from mlafix.compat import flashinfer
from numerics import BF16, same_bits
from rank_cases import Form, expected, make_case, part_of
from ranks import RankPool, raised
from states import make_states


@pytest.mark.parametrize("kind", ["torch", "coordinator", "engine", "gathers"])
@pytest.mark.parametrize("module, name, cut, base, extra", [
    ("vllm", "cp_lse_ag_out_rs", "heads", "e", {"return_lse": True}),
    ("vllm", "cp_lse_ag_out_ar", "none", "2", {"return_lse": True, "is_lse_base_on_e": False}),
    ("vllm", "dcp_a2a_lse_reduce", "heads", "2", {"return_lse": True, "is_lse_base_on_e": False}),
    ("vllm", "dcp_a2a_lse_reduce", "heads", "e", {}),
    ("sglang", "cp_lse_ag_out_rs_mha", "heads", "e", {"return_lse": True}),
    ("sglang", "cp_lse_ag_out_rs_mla", "heads", "2", {}),
    ("sglang", "dcp_a2a_lse_reduce", "heads", "2", {"is_lse_base_on_e": False}),
    ("sglang", "dcp_a2a_lse_reduce", "heads", "e", {"comm_backend": "fi_a2a"}),
])
def test_drop_ins_merge_over_ranks(pool: RankPool, kind: str, module: str, name: str, cut: str, base: str, extra: dict[str, Any],
                                   rng: np.random.Generator) -> None:
    form = Form(BF16, 16, 3, base, False)
    case = make_case(rng, form, 3, 7, "requests" if module == "vllm" else "none")
    each = []
    for part in case.parts:
        masks = {"seq_lens": part.seq_lens, "query_start_loc": part.query_start_loc} if module == "vllm" else {}
        each.append((kind, module, name, (part.partial, part.lse), {**extra, **masks}))
    for rank, result in enumerate(raised(pool.run("compat", each))):
        if name == "cp_lse_ag_out_rs_mla":  # SGLang's callers transpose this result.
            assert result.shape == (3, 7, 16) and result.flags.c_contiguous
            result = result.swapaxes(0, 1)
        heads = slice(3 * rank, 3 * rank + 3) if cut == "heads" else slice(0, 9)
        pair = isinstance(result, tuple)
        assert pair == extra.get("return_lse", False)
        part_of(case.out, (slice(0, 7), heads)).check(result[0] if pair else result, f"out of rank {rank}")
        if pair:
            part_of(case.lse, (slice(0, 7), heads)).check(result[1], f"lse of rank {rank}")


@pytest.mark.parametrize("base, ubatch", [("e", 0), ("2", 2)])
def test_vllm_workspace_has_a_slot_for_each_micro_batch(pool: RankPool, base: str, ubatch: int, rng: np.random.Generator) -> None:
    form = Form(BF16, 16, 3, base, False)
    case = make_case(rng, form, 3, 7, "requests")
    for rank, result in enumerate(raised(pool.run("vllm_workspace", [(part, 3, base, ubatch) for part in case.parts]))):
        part_of(case.out, (slice(0, 7), slice(3 * rank, 3 * rank + 3))).check(result, f"out of rank {rank}")


@pytest.mark.parametrize("changes, ubatch, text", [
    ({}, 2, 'argument "num_ubatches": expected vLLM\'s micro-batch from 0 to 1 (num_ubatches - 1), got 2'),
    ({}, -1, 'argument "num_ubatches": expected vLLM\'s micro-batch from 0 to 1 (num_ubatches - 1), got -1'),
    ({"num_ubatches": None}, 0, 'argument "num_ubatches": expected an int of at least 1, got None'),
    ({"num_ubatches": 0}, 0, 'argument "num_ubatches": expected an int of at least 1, got 0'),
    ({"heads_per_rank": "3"}, 0, 'argument "heads_per_rank": expected an int of at least 1, got \'3\''),
], ids=str)
def test_a_wrong_vllm_workspace_of_one_rank_is_an_error_of_all(pool: RankPool, changes: dict[str, Any], ubatch: int, text: str) -> None:
    errors = raised(pool.run("vllm_workspace_mistaken", [({}, 1), (changes, ubatch)]))
    assert errors == [f"ArgumentError: rank 1 of 2: {text}", f"ArgumentError: {text}"]


@pytest.mark.parametrize(("tokens", "padded"), [(7, None), (1, 16), (0, None)])
def test_vllm_workspaces_gather_queries_and_kv(pool: RankPool, tokens: int, padded: int | None, rng: np.random.Generator) -> None:
    queries = [rng.normal(0, 1, (tokens, 3, 16)).astype(BF16) for _ in range(3)]
    rows = [rng.normal(0, 1, (tokens, 20)).astype(np.float32) for _ in range(3)]
    for made, everything in raised(pool.run("gathered", [(queries, rows, padded)] * 3)):
        assert same_bits(made, np.concatenate(queries, axis=1)) and same_bits(everything, np.concatenate(rows))


@pytest.mark.parametrize("made, called, text", [
    ({"queries": True}, {"shape": (2, 1, 8)}, 'argument "local_query": expected shape [2, 3, 8], got [2, 1, 8]'),
    ({"queries": True}, {"shape": (2, 24)}, 'argument "local_query": expected 3 dims [T, 3, 8], got 2'),
    ({"queries": True, "max_num_tokens": "4"}, {}, 'argument "max_num_tokens": expected an int of at least 1, got \'4\''),
    ({"queries": True, "padded_num_heads": "16"}, {}, 'argument "padded_num_heads": expected an integer, got \'16\''),
    ({"dtype": "nope"}, {}, 'argument "dtype": expected a torch.dtype or a name like "bf16", got \'nope\''),
    ({"queries": True, "num_ubatches": 2}, {"ubatch": 2},
     'argument "num_ubatches": expected vLLM\'s micro-batch from 0 to 1 (num_ubatches - 1), got 2'),
    ({}, {"requires_grad": "gathered_kv"}, 'argument "gathered_kv": expected a tensor that autograd does not follow, got one that requires grad'),
    ({}, {"requires_grad": "local_kv"}, 'argument "local_kv": expected a tensor that autograd does not follow, got one that requires grad'),
    pytest.param({}, {"device": "cuda:1"}, 'argument "local_kv": expected a tensor on cuda:0, got one on cuda:1',
                 marks=pytest.mark.skipif(torch.cuda.device_count() == 1, reason="torch asks the device of a fake tensor, if there are any")),
], ids=str)
def test_vllm_workspaces_that_gather_say_what_is_wrong(pool: RankPool, made: dict[str, Any], called: dict[str, Any], text: str) -> None:
    assert raised(pool.run("gather_mistaken", [(made, called)] * 2)) == [f"ArgumentError: {text}"] * 2


@pytest.mark.parametrize("sizes", [(5, 3), (3, 5), (1, 15)], ids=str)
@pytest.mark.parametrize("leading", [(5, 3), (15,), (5, 1, 3)], ids=str)
@pytest.mark.parametrize("how", [("base2",), ("basee",), (True,), (False,), {"is_lse_base_on_e": True}, {"enable_pdl": True}], ids=str)
def test_flashinfer_sends_each_rank_its_slice(pool: RankPool, how: Any, leading: tuple[int, ...], sizes: tuple[int, int],
                                              rng: np.random.Generator) -> None:
    """Each rank gets its slice of the merge. Any dims may precede the dim of ranks, since a workspace only limits the
    number of rows."""
    base = "e" if how in (("basee",), (True,), {"is_lse_base_on_e": True}) else "2"
    form = Form(BF16, 16, 3, base, False)
    states = make_states(rng, 3, 5, 9, 16, BF16, faults=False)
    out, _ = expected(form, states.v, states.s, np.ones((3, 5), bool), None)
    # Views [b, ranks * h, D] as [b, h, ranks, D], with the leading dims of the case.
    sliced = [(np.ascontiguousarray(v.reshape(5, 3, 3, 16).swapaxes(1, 2)).reshape(*leading, 3, 16),
               s.reshape(5, 3, 3).swapaxes(1, 2).copy().reshape(*leading, 3)) for v, s in zip(states.v, states.s)]
    positional, named = (how, {}) if isinstance(how, tuple) else ((), how)
    each = [("flashinfer_reduce", sizes, *arrays, "bf16", positional, named) for arrays in sliced]
    for rank, result in enumerate(raised(pool.run("with_names", each))):
        assert result.shape == (*leading, 16)
        part_of(out, (slice(0, 5), slice(3 * rank, 3 * rank + 3))).check(result.reshape(5, 3, 16), f"out of rank {rank}")


@pytest.mark.parametrize("changes, text", [
    ({"partial_o": (2, 3, 3, 8)}, 'argument "partial_o": expected shape [..., 2, 8], got [2, 3, 3, 8]'),
    ({"partial_o": (8,)}, 'argument "partial_o": expected shape [..., 2, 8], got [8]'),
    ({"partial_o": (7, 2, 8), "partial_lse": (7, 2)}, 'argument "partial_o": expected at most the workspace\'s 6 rows, got 7'),
    ({"partial_o": None}, 'argument "partial_o": expected a torch.Tensor, got NoneType'),
    ({"partial_lse": (2, 2, 3)}, 'argument "partial_lse": expected shape [2, 3, 2], got [2, 2, 3]'),
    ({"cp_size": 3}, 'argument "cp_size": expected 2, the ranks of the workspace, got 3'),
    ({"cp_rank": 5}, 'argument "cp_rank": expected 1, this rank of the workspace, got 5'),
    ({"lse_mode": "base10"}, "argument \"lse_mode\": expected 'base2' or 'basee', got 'base10'"),
    ({"workspace": {"cp_size": 3}}, 'argument "cp_size": expected 2, the ranks of the group, got 3'),
    ({"workspace": {"local_heads": 0}}, 'argument "local_heads": expected an int of at least 1, got 0'),
], ids=lambda value: ",".join(value) if isinstance(value, dict) else "")
def test_flashinfers_arguments_have_their_own_names(pool: RankPool, changes: dict[str, Any], text: str) -> None:
    assert raised(pool.run("flashinfer_mistaken", [({},), (changes,)])) == [f"ArgumentError: rank 1 of 2: {text}", f"ArgumentError: {text}"]


def test_flashinfer_refuses_what_is_no_workspace() -> None:
    with pytest.raises(mlafix.ArgumentError, match=r'"workspace": expected one from decode_cp_a2a_lse_reduce_create_workspace\(\), got bytes'):
        flashinfer.decode_cp_a2a_lse_reduce(None, None, b"", 0, 2)


def test_groups_of_one_rank_return_what_they_get(pool: RankPool) -> None:
    assert pool.same("single", 8) == [[True] * 6] * 8


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
@pytest.mark.parametrize("module, name", [("vllm", "cp_lse_ag_out_rs"), ("vllm", "cp_lse_ag_out_ar"), ("vllm", "dcp_a2a_lse_reduce"),
                                          ("sglang", "cp_lse_ag_out_rs_mla"), ("sglang", "cp_lse_ag_out_rs_mha")])
def test_lses_of_other_dtypes_and_dims_of_one(pool: RankPool, module: str, name: str, dtype: str) -> None:
    assert pool.same("converted", 2, module, name, dtype) == [True, True]
