"""Tests `mlafix.distributed` over symmetric memory, with two or more GPUs of one node. Results must be close to a
reference in f64, and have the same bits as over NCCL. Calls must work in graphs and with late ranks, and errors must
name an absent rank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if torch.cuda.device_count() < 2:
    pytest.skip("needs two GPUs", allow_module_level=True)

from numerics import BF16, same_bits
from rank_cases import FORMS, Form, assembled, check, check_replays, check_two_streams, make_case, options_of
from ranks import RankPool, raised
from states import LAYOUTS

RANKS = min(torch.cuda.device_count(), 8)
SYMMETRIC: dict[str, Any] = {"backend": "symmetric", "exchange": "pull"}
exchanges = pytest.mark.parametrize("exchange", ["pull", "push"])


POOL = dict(ranks=RANKS, backend="nccl")


@exchanges
@pytest.mark.parametrize("masks", ["none", "tokens", "requests", "padding"])
@pytest.mark.parametrize("cut", ["heads", "tokens", "none"])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_merges_like_f64_with_the_bits_of_nccl(pool: RankPool, form: Form, cut: str, masks: str, exchange: str, rng: np.random.Generator) -> None:
    for tokens, layout in zip((0, 1, 7, 16), LAYOUTS):
        case = make_case(rng, form, RANKS, tokens, masks, layout, cut)
        options = options_of(form, cut, RANKS, case.sink)
        results = raised(pool.run("reduce", [(part, options | SYMMETRIC | {"exchange": exchange}) for part in case.parts]))
        assert {result["backend"] for result in results} == {"symmetric"}
        check(case, results)
        others = raised(pool.run("reduce", [(part, options | {"backend": "nccl"}) for part in case.parts]))
        for result, other in zip(results, others):
            assert same_bits(result["out"], other["out"]) and same_bits(result["lse"], other["lse"])


def test_auto_is_symmetric(pool: RankPool) -> None:
    options = options_of(FORMS[0], "heads", RANKS, None)
    assert set(pool.same("construct", RANKS, options | {"device": "cuda"})) == {"symmetric"}


@exchanges
@pytest.mark.parametrize("heads, dim, tokens", [(64, 512, 256), (32, 128, 2048), (8, 576, 33), (1, 512, 1), (64, 128, 4096)])
def test_larger_sizes(pool: RankPool, heads: int, dim: int, tokens: int, exchange: str, rng: np.random.Generator) -> None:
    form = Form(BF16, dim, heads, "e", False)
    case = make_case(rng, form, RANKS, tokens, "requests")
    wholes = []
    for cut in ("heads", "tokens", "none"):
        options = options_of(form, cut, RANKS, None, max_tokens=tokens) | SYMMETRIC | {"exchange": exchange}
        results = raised(pool.run("reduce", [(part, options) for part in case.parts]))
        check(case, results)
        wholes.append(assembled(results, case.parts[0].partial.shape))
    assert all(same_bits(wholes[0], whole) for whole in wholes)


@exchanges
@pytest.mark.parametrize("cut", ["tokens", "none"])
def test_heads_that_the_ranks_do_not_divide(pool: RankPool, cut: str, exchange: str, rng: np.random.Generator) -> None:
    form, heads = Form(BF16, 128, 1, "e", False), RANKS + 1
    for tokens in (1, RANKS - 1, 4 * RANKS + 1):
        case = make_case(rng, form, RANKS, tokens, "requests", cut=cut, heads=heads)
        options = options_of(form, cut, RANKS, None, max_tokens=tokens) | SYMMETRIC | {"exchange": exchange, "heads": heads}
        check(case, raised(pool.run("reduce", [(part, options) for part in case.parts])))


@exchanges
@pytest.mark.parametrize("masks", ["none", "requests"])
def test_states_that_are_there_already(pool: RankPool, masks: str, exchange: str, rng: np.random.Generator) -> None:
    """States that are already in the reducer's memory are merged from there. The rows of a call are overwritten
    directly after it, and the ranks take turns in arriving 50 ms late."""
    form = Form(BF16, 128, 16, "e", False)
    cases = [make_case(rng, form, RANKS, tokens, masks) for tokens in (16, 3, 9, 16, 1, 7, 16, 16)]
    sleeps = [[100_000_000 if at % RANKS == rank else 0 for at in range(len(cases))] for rank in range(RANKS)]
    for cut in ("heads", "tokens", "none"):
        options = options_of(form, cut, RANKS, None) | SYMMETRIC | {"exchange": exchange}
        each = [([case.parts[rank] for case in cases], options, sleeps[rank]) for rank in range(RANKS)]
        results = raised(pool.run("from_inputs", each))
        for at, case in enumerate(cases):
            check(case, [result[at] for result in results])


@exchanges
def test_replays_of_a_graph_with_three_calls(pool: RankPool, exchange: str, rng: np.random.Generator) -> None:
    check_replays(pool, RANKS, rng, SYMMETRIC | {"exchange": exchange})


@exchanges
def test_two_reducers_in_two_streams(pool: RankPool, exchange: str, rng: np.random.Generator) -> None:
    check_two_streams(pool, RANKS, rng, SYMMETRIC | {"exchange": exchange})


@exchanges
@pytest.mark.parametrize("captured", [False, True], ids=["launched", "captured"])
@pytest.mark.parametrize("tokens", [1, 1024])
def test_two_reducers_that_are_ready_in_different_orders(
    pool: RankPool, exchange: str, captured: bool, tokens: int, rng: np.random.Generator
) -> None:
    """With 1024 tokens, each launch fills a GPU. Without an order, two collectives could deadlock: each would fill the
    GPU of one rank, and wait for its launch on the other rank, whose GPU the other collective fills."""
    options = SYMMETRIC | {"exchange": exchange, "timeout": 3.0}
    form = Form(BF16, 128, 32, "e", False)
    check_two_streams(pool, RANKS, rng, options, form=form, tokens=(tokens,) * 3, idle=100_000_000, captured=captured)


def test_calls_that_push_and_pull_in_turns(pool: RankPool, rng: np.random.Generator) -> None:
    """One reducer pushes small calls and pulls large ones, another does the reverse. All launches of a reducer share
    one counter, whether they push or pull."""
    form = Form(BF16, 128, 16, "e", False)
    cases = [make_case(rng, form, RANKS, tokens, "requests") for tokens in (16, 3, 9, 16, 16, 1, 7, 16, 2, 2, 16)]
    for pushes in (True, False):
        for cut in ("heads", "tokens", "none"):
            options = options_of(form, cut, RANKS, None) | SYMMETRIC | {"exchange": "auto"}
            each = [([case.parts[rank] for case in cases], options, 6, pushes) for rank in range(RANKS)]
            results = raised(pool.run("in_turns", each))
            for at, case in enumerate(cases):
                check(case, [result[at] for result in results])


@pytest.mark.skipif(torch.cuda.get_device_capability() < (9, 0), reason="kernels prefetch from sm_90 on")
def test_launches_know_whose_memory_they_read(pool: RankPool) -> None:
    options = options_of(FORMS[0], "heads", RANKS, None) | SYMMETRIC
    assert pool.same("local_memory", RANKS, options) == [[int(at == rank) for at in range(RANKS)] for rank in range(RANKS)]


@exchanges
@pytest.mark.parametrize("who", [0, RANKS - 1])
def test_a_rank_that_does_not_come_is_named(pool: RankPool, who: int, exchange: str) -> None:
    """If a rank is late, the other ranks end with NaN after the time-out. The late rank ends at once, also with NaN. A
    new reducer of the same group works."""
    options = options_of(FORMS[0], "heads", RANKS, None) | SYMMETRIC | {"timeout": 1.0, "exchange": exchange}
    results = raised(pool.run("missed", [(options, who, 4.0)] * RANKS))
    for rank, result in enumerate(results):
        assert result["marked"], rank
        assert all("RankError" in error for error in result["errors"]), result["errors"]
        assert all(f"got none of rank {who} before the time-out" in error for error in result["errors"]), result["errors"]
        assert (result["again"] == 1).all(), rank


@exchanges
def test_a_rank_whose_process_ended_is_named(tmp_path: Path, exchange: str) -> None:
    pool = RankPool(tmp_path, ranks=RANKS, timeout=20, backend="nccl")
    who = RANKS - 1
    try:
        options = options_of(FORMS[0], "heads", RANKS, None) | SYMMETRIC | {"timeout": 1.0, "exchange": exchange}
        for rank in range(RANKS):
            pool.pipes[rank].send(("leave", RANKS, (options, who)))
        for rank in range(RANKS - 1):
            answer = pool.result(rank)
            assert answer.startswith("RankError") and f"got none of rank {who} before the time-out" in answer, answer
    finally:
        pool.close()


def test_too_many_tokens_are_an_error_before_anything_is_launched(pool: RankPool) -> None:
    from mlafix import ArgumentError

    options = options_of(FORMS[0], "heads", RANKS, None) | SYMMETRIC | {"device": "cuda"}
    results = pool.run("call", [(options, 17, {})] * RANKS)
    assert all(isinstance(result, ArgumentError) and "at most the reducer's 16 tokens, got 17" in str(result) for result in results)


@exchanges
@pytest.mark.parametrize("cut", ["heads", "tokens", "none"])
def test_calls_that_are_too_large_go_over_nccl_where_asked(pool: RankPool, cut: str, exchange: str) -> None:
    options = {"cut": cut, "backend": "symmetric", "exchange": exchange}
    assert pool.same("overflowing", RANKS, [2, 3, 1, 9, 0, 2], options) == [[True] * 6] * RANKS


@exchanges
@pytest.mark.parametrize("mistake", ["base", "expanded", "overlapping", "lengths"])
def test_compared_calls_are_errors_on_all_ranks(pool: RankPool, mistake: str, exchange: str) -> None:
    options = {"check_calls": True, "backend": "symmetric", "exchange": exchange}
    results = raised(pool.run("mistaken", [("" if rank else mistake, options) for rank in range(RANKS)]))
    assert all(error.startswith("ArgumentError: ") and not written and again for error, written, again in results), results
