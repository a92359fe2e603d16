"""Tests `mlafix.distributed` over NCCL with two or more GPUs: results are close to a reference in f64, their bits
depend neither on the cut nor on the kind of group, and calls work in graphs and in two streams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if torch.cuda.device_count() < 2:
    pytest.skip("needs two GPUs", allow_module_level=True)

from numerics import BF16, E4M3, same_bits
from rank_cases import FORMS, Case, Form, assembled, check, check_replays, check_two_streams, expected, make_case, options_of
from rank_work import Part
from ranks import RankPool, raised
from states import LAYOUTS, make_states

RANKS = min(torch.cuda.device_count(), 8)


def nccl_options(form: Form, cut: str, sink: np.ndarray | None, **more: Any) -> dict[str, Any]:
    return {**options_of(form, cut, RANKS, sink, **more), "backend": "nccl"}


POOL = dict(ranks=RANKS, backend="nccl")


@pytest.mark.parametrize("masks", ["none", "tokens", "requests", "padding"])
@pytest.mark.parametrize("cut", ["heads", "tokens", "none"])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_merges_like_f64(pool: RankPool, form: Form, cut: str, masks: str, rng: np.random.Generator) -> None:
    for tokens, layout in zip((0, 1, 7, 16), LAYOUTS):
        case = make_case(rng, form, RANKS, tokens, masks, layout, cut)
        each = [(part, nccl_options(form, cut, case.sink)) for part in case.parts]
        results = raised(pool.run("reduce", each))
        assert {result["backend"] for result in results} == {"nccl"}
        check(case, results)


@pytest.mark.parametrize("heads, dim, tokens", [(64, 512, 256), (32, 128, 2048), (8, 576, 33)])
def test_larger_sizes(pool: RankPool, heads: int, dim: int, tokens: int, rng: np.random.Generator) -> None:
    form = Form(BF16, dim, heads // 2, "e", False)
    case = make_case(rng, form, RANKS, tokens, "requests")
    wholes = []
    for cut, kind in (("heads", "torch"), ("tokens", "torch"), ("none", "torch"), ("heads", "coordinator"), ("heads", "engine")):
        options = nccl_options(form, cut, None, max_tokens=tokens)
        results = raised(pool.run("reduce", [(part, options, kind) for part in case.parts]))
        check(case, results)
        wholes.append(assembled(results, case.parts[0].partial.shape))
    assert all(same_bits(wholes[0], whole) for whole in wholes)


def test_fp8_outputs(pool: RankPool, rng: np.random.Generator) -> None:
    form = FORMS[0]
    states = make_states(rng, RANKS, 6, form.heads * RANKS, form.head_dim, form.dtype, faults=False)
    out, lse = expected(form, states.v, states.s, np.ones((RANKS, 6), bool), None, out_dtype=E4M3, scale=0.02)
    options = nccl_options(form, "heads", None)
    results = raised(pool.run("reduce", [(Part(v, s), options, "torch", E4M3, 0.02) for v, s in zip(states.v, states.s)]))
    check(Case([], None, out, lse), results)


def test_replays_of_a_graph_with_three_calls(pool: RankPool, rng: np.random.Generator) -> None:
    check_replays(pool, RANKS, rng, {"backend": "nccl"})


def test_two_reducers_in_two_streams(pool: RankPool, rng: np.random.Generator) -> None:
    check_two_streams(pool, RANKS, rng, {"backend": "nccl"})
