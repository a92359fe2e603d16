"""Tests `mlafix.distributed` with several processes. Results must be close to a reference in f64, and their bits equal
on all ranks and for all groups. All ranks raise an error together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch.distributed")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mlafix
from numerics import BF16, E4M3, F16, F32, same_bits
from rank_cases import FORMS, Case, Form, assembled, check, expected, make_case, options_of
from rank_work import Part
from ranks import SIZES, RankPool, raised
from states import LAYOUTS, make_states


@given(st.sampled_from(SIZES), st.sampled_from(FORMS), st.sampled_from(["heads", "tokens", "none"]), st.integers(0, 11),
       st.sampled_from(["none", "tokens", "requests", "padding"]), st.sampled_from(LAYOUTS), st.integers(0, 1 << 30))
@settings(max_examples=70, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_merges_like_f64(pool: RankPool, ranks: int, form: Form, cut: str, tokens: int, masks: str, layout: str, seed: int) -> None:
    case = make_case(np.random.default_rng(seed), form, ranks, tokens, masks, layout, cut)
    options = options_of(form, cut, ranks, case.sink)
    results = raised(pool.run("reduce", [(part, options) for part in case.parts]))
    check(case, results)
    if cut == "none":
        assert all(same_bits(results[0][name], result[name]) for result in results for name in ("out", "lse"))


@pytest.mark.parametrize("ranks, form", [*((ranks, FORMS[0]) for ranks in SIZES), (3, FORMS[4]._replace(sink=False))], ids=str)
def test_bits_do_not_depend_on_the_cut_nor_on_the_group(pool: RankPool, ranks: int, form: Form, rng: np.random.Generator) -> None:
    """The bits of a result depend neither on the cut nor on the kind of group. With fp8 on the wire, they depend on the
    cut, which decides which rows travel."""
    seed = int(rng.integers(1 << 30))
    wholes: dict[str, list[np.ndarray]] = {}
    for cut, kind in [("none", "torch"), ("heads", "torch"), ("tokens", "torch"), ("heads", "coordinator"), ("heads", "engine"),
                      ("tokens", "gathers"), ("none", "engine")]:
        case = make_case(np.random.default_rng(seed), form, ranks, 7, "requests", cut=cut)
        options = options_of(form, cut, ranks, None)
        results = raised(pool.run("reduce", [(part, options, kind) for part in case.parts]))
        assert {result["backend"] for result in results} == {"engine" if kind in ("engine", "gathers") else "gloo"}
        check(case, results)
        wholes.setdefault(cut if form.wire else "any", []).append(assembled(results, case.parts[0].partial.shape))
    assert all(same_bits(alike[0], whole) for alike in wholes.values() for whole in alike)


def test_calls_of_one_reducer_have_any_number_of_tokens(pool: RankPool, rng: np.random.Generator) -> None:
    """Calls of one reducer may have any number of tokens up to its maximum, in any order. What a call left in the
    workspace does not affect the next one."""
    form = FORMS[0]
    cases = [make_case(rng, form, 3, tokens, masks) for tokens, masks in [(16, "none"), (0, "none"), (1, "tokens"), (5, "requests"),
                                                                          (2, "padding"), (16, "requests")]]
    for cut in ("heads", "tokens", "none"):
        each = [([case.parts[rank] for case in cases], options_of(form, cut, 3, None)) for rank in range(3)]
        results = raised(pool.run("reduce_many", each))
        for at, case in enumerate(cases):
            check(case, [result[at] for result in results])


def test_two_reducers_of_a_group_do_not_interfere(pool: RankPool, rng: np.random.Generator) -> None:
    form = FORMS[0]
    cases = [make_case(rng, form, 4, tokens, "requests") for tokens in (6, 3, 9)]
    options = [options_of(form, "heads", 4, None), options_of(form, "none", 4, None, max_tokens=9)]
    results = raised(pool.run("two_reducers", [([case.parts[rank] for case in cases], options) for rank in range(4)]))
    for at, case in enumerate(cases):
        for reducer in range(2):
            check(case, [result[2 * at + reducer] for result in results])


@pytest.mark.parametrize("out_dtype, scale", [(F32, None), (F16, None), (E4M3, 0.02)], ids=str)
def test_outputs_of_other_dtypes_are_rounded_once(pool: RankPool, out_dtype: np.dtype, scale: float | None,
                                                  rng: np.random.Generator) -> None:
    """Sums are f32 whatever the dtype on the wire, and are rounded once to the output's dtype. So an f32 result
    of bf16 rows need not be a bf16 number."""
    form = FORMS[0]
    states = make_states(rng, 3, 6, 9, form.head_dim, form.dtype, faults=False)
    out, lse = expected(form, states.v, states.s, np.ones((3, 6), bool), None, out_dtype=out_dtype, scale=scale)
    options = options_of(form, "heads", 3, None)
    results = raised(pool.run("reduce", [(Part(v, s), options, "torch", out_dtype, scale) for v, s in zip(states.v, states.s)]))
    check(Case([], None, out, lse), results)
    if out_dtype == F32:
        assert any((result["out"] != result["out"].astype(BF16).astype(np.float32)).any() for result in results)


def test_fp8_rows_of_any_magnitude(pool: RankPool, rng: np.random.Generator) -> None:
    """Rows of zeros, of subnormal numbers and of the largest numbers travel in fp8. A row with NaN or infinity becomes
    NaN, but no other row does."""
    form = Form(F32, 16, 1, "e", False, "f8e4m3fn")
    v = rng.normal(0, 1, (2, 8, 2, 16)).astype(np.float32)
    v *= np.array([0, 1e-45, 1e-38, 1e-30, 1, 1e30, 1e38, 1], np.float32)[:, None, None]
    v[0, 7, 1, 3], v[1, 7, 0, 5] = np.nan, -np.inf  # both rows are sent to the other rank
    s = rng.normal(0, 1, (2, 8, 2)).astype(np.float32)
    out, lse = expected(form, v, s, np.ones((2, 8), bool), None, "heads")
    results = raised(pool.run("reduce", [(Part(v[r], s[r]), options_of(form, "heads", 2, None)) for r in range(2)]))
    check(Case([], None, out, lse), results)
    assert all(np.isnan(result["out"]).any(-1).sum() == 1 for result in results)


def test_a_rank_without_keys_at_all_contributes_nothing(pool: RankPool, rng: np.random.Generator) -> None:
    form = FORMS[2]
    states = make_states(rng, 3, 5, 6, form.head_dim, form.dtype, faults=False)
    keys = np.array([[True] * 5, [False] * 5, [True] * 5])
    states.v[1], states.s[1] = np.nan, np.nan
    out, lse = expected(form, states.v, states.s, keys, None)
    parts = [Part(states.v[r], states.s[r], np.where(keys[r], 4, 0).astype(np.int32)) for r in range(3)]
    check(Case(parts, None, out, lse), raised(pool.run("reduce", [(part, options_of(form, "heads", 3, None)) for part in parts])))


@pytest.mark.parametrize("form", [FORMS[0], FORMS[0]._replace(wire="f8e4m3fn")], ids=["bf16", "fp8"])
def test_the_workspace_is_what_the_page_says(pool: RankPool, form: Form) -> None:
    """A workspace has the size that docs/Distributed.md states: blocks of pad16(tokens * heads * D * bytes) + pad16(4 *
    tokens * heads) bytes. With fp8 on the wire, the second term counts twice."""
    ranks, most, tokens = 4, 16, 10

    def block(count: int, heads: int) -> int:
        numbers = -(-count * heads * 4 // 16) * 16
        return -(-count * heads * form.head_dim * (2 if form.wire is None else 1) // 16) * 16 + numbers * (1 if form.wire is None else 2)

    blocks = {"heads": (block(most, 3), 4, block(tokens, 3)), "tokens": (block(4, 12), 4, block(3, 12)),
              "none": (block(most, 12), 1, block(tokens, 12))}
    rows = Part(np.zeros((tokens, 12, form.head_dim), BF16), np.zeros((tokens, 12), np.float32))
    for cut, (size, sent, arriving) in blocks.items():
        for result in pool.same("reduce", ranks, rows, options_of(form, cut, ranks, None)):
            assert result["bytes"] == ((ranks + sent) * size, (ranks - 1) * arriving)


def test_calls_with_outputs_allocate_nothing(pool: RankPool) -> None:
    options = options_of(FORMS[0], "heads", 2, None)
    for given, count in ((False, 2), (True, 0)):
        for names in pool.same("operations", 2, options, given):
            assert len([name for name in names if "empty" in name or "clone" in name or "zeros" in name]) == count, names


@pytest.mark.parametrize("made, called", [(True, False), (False, True), (True, True)])
def test_reducers_are_used_in_inference_mode_and_outside(pool: RankPool, made: bool, called: bool, rng: np.random.Generator) -> None:
    form = FORMS[0]
    case = make_case(rng, form, 2, 5, "requests")
    check(case, raised(pool.run("in_modes", [(part, options_of(form, "heads", 2, None), made, called) for part in case.parts])))


@pytest.mark.parametrize("base", ["e", "2"])
def test_a_call_may_choose_the_base(pool: RankPool, base: str, rng: np.random.Generator) -> None:
    form = FORMS[0]._replace(base=base)
    case = make_case(rng, form, 2, 5, "requests")
    other = {**options_of(form, "heads", 2, None), "base": "2" if base == "e" else "e"}
    check(case, raised(pool.run("reduce", [(part, other, "torch", None, None, base) for part in case.parts])))


# -- Errors -----------------------------------------------------------------------------------------------------------

GOOD = {"max_tokens": 4, "heads": 4, "head_dim": 16}


def errors(results: list[Any]) -> list[str]:
    for result in results:
        assert isinstance(result, mlafix.ArgumentError), f"expected an ArgumentError, got {result!r}"
    return [str(result) for result in results]


@pytest.mark.parametrize("name, value", [("max_tokens", 5), ("heads", 8), ("head_dim", 32), ("dtype", "f16"), ("cut", "none"),
                                         ("base", "2"), ("wire_dtype", "f8e4m3fn"), ("check_calls", False), ("overflow", "exchange")])
def test_a_configuration_that_differs_is_an_error_on_all_ranks(pool: RankPool, name: str, value: Any) -> None:
    texts = errors(pool.run("construct", [(GOOD,), (GOOD,), ({**GOOD, name: value},), (GOOD,)]))
    assert len(set(texts)) == 1 and f'argument "{name}": expected' in texts[0] and f"{value} on rank 2" in plain(texts[0])
    assert pool.same("construct", 4, GOOD) == ["gloo"] * 4


@pytest.mark.parametrize("wrong, text", [
    ({"heads": 6}, 'argument "heads": expected a multiple of the 4 ranks, got 6'),
    ({"max_tokens": 0}, 'argument "max_tokens": expected an int of at least 1, got 0'),
    ({"dtype": "f64"}, 'argument "dtype": expected bf16, f16 or f32, got \'f64\''),
    ({"wire_dtype": "f16"}, 'argument "wire_dtype": expected bf16 or f8e4m3fn, got f16'),
    ({"cut": "rows"}, 'argument "cut": expected "heads", "tokens" or "none", got \'rows\''),
    ({"base": "10"}, 'argument "base": expected \'e\' or \'2\', got \'10\''),
])
def test_an_argument_wrong_on_one_rank_is_an_error_on_all(pool: RankPool, wrong: dict[str, Any], text: str) -> None:
    texts = errors(pool.run("construct", [(GOOD,), ({**GOOD, **wrong},), (GOOD,), (GOOD,)]))
    assert texts == [f"rank 1 of 4: {text}", text, f"rank 1 of 4: {text}", f"rank 1 of 4: {text}"]
    assert pool.same("construct", 4, GOOD) == ["gloo"] * 4


def plain(text: str) -> str:
    return text.replace("torch.float16", "f16").replace("torch.float8_e4m3fn", "f8e4m3fn")


BAD_CALLS: list[tuple[int, dict[str, Any], str]] = [
    (5, {}, 'argument "partial": expected at most the reducer\'s 4 tokens, got 5'),
    (2, {"partial": ((2, 4, 16), "float16")}, 'argument "partial": expected dtype bfloat16, got float16'),
    (2, {"partial": ((2, 64), "bfloat16")}, 'argument "partial": expected 3 dims [tokens, heads, D], got 2'),
    (2, {"lse": ((4, 2), "float32")}, 'argument "lse": expected shape [2, 4], got [4, 2]'),
    (2, {"lse": ((2, 4), "float32", "meta")}, 'argument "lse": expected a tensor on cpu, got one on meta'),
    (2, {"seq_lens": ((2,), "float32")}, 'argument "seq_lens": expected dtype int32 or int64, got float32'),
    (2, {"seq_lens": ((2,), "int32"), "query_start_loc": ((2,), "int32")},
     'argument "query_start_loc": expected shape [3], got [2]'),
    (2, {"out": ((2, 4, 16), "bfloat16")}, 'argument "out": expected shape [2, 2, 16], got [2, 4, 16]'),
    (2, {"out": ((2, 2, 16), "float8_e4m3fn")}, 'argument "out": expected dtype bfloat16 or float16 or float32, got float8_e4m3fn'),
    (2, {"out_lse": ((2, 4), "float32")}, 'argument "out_lse": expected shape [2, 2], got [2, 4]'),
    (2, {"out_format": ((2,), "float32")}, 'argument "Fp8.scale": expected shape [1], got [2]'),
]


@pytest.mark.parametrize("tokens, changes, text", BAD_CALLS)
def test_a_wrong_call_is_an_error_before_anything_is_sent(pool: RankPool, tokens: int, changes: dict[str, Any], text: str) -> None:
    assert errors(pool.run("call", [(GOOD, tokens, changes)] * 2)) == [text, text]
    assert pool.same("call", 2, GOOD, 2, {}) == [[2, 2, 16]] * 2


def test_checked_calls_agree_on_tokens_and_errors(pool: RankPool) -> None:
    checked = {**GOOD, "check_calls": True}
    texts = errors(pool.run("call", [(checked, 2, {}), (checked, 3, {}), (checked, 2, {}), (checked, 2, {})]))
    assert set(texts) == {'argument "partial": expected 2 tokens, as rank 0 has, got 3 tokens on rank 1'}
    texts = errors(pool.run("call", [(checked, 2, {}), (checked, 2, {}), (checked, 2, {}), (checked, 5, {})]))
    assert set(texts[:3]) == {'rank 3 of 4: argument "partial": expected at most the reducer\'s 4 tokens, got 5'}
    assert pool.same("call", 4, checked, 2, {}) == [[2, 1, 16]] * 4


@pytest.mark.parametrize("who", [0, 1, 2])
def test_a_rank_whose_process_ended_is_named(tmp_path: Path, who: int) -> None:
    pool = RankPool(tmp_path, ranks=3, timeout=20)
    try:
        for rank in range(3):
            pool.pipes[rank].send(("leave", 3, ({"max_tokens": 4, "heads": 3, "head_dim": 16}, who)))
        for rank in {0, 1, 2} - {who}:
            assert pool.result(rank) == f"RankError: expected rows from rank {who} of 3, got none: the connection closed"
    finally:
        pool.close()


def test_a_rank_that_comes_too_late_is_named(tmp_path: Path) -> None:
    pool = RankPool(tmp_path, ranks=3, timeout=20)
    try:
        options = {"max_tokens": 4, "heads": 3, "head_dim": 16, "timeout": 1.0}
        results = pool.run("late", [(options, {1: 2.5})] * 3)
        for rank in (0, 2):
            assert results[rank] == "RankError: expected rows from rank 1 of 3 within 1 s, got none", results
    finally:
        pool.close()
