"""Partial states of all ranks of a group as test data, and their expected merge, computed by `contract`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import contract
from numerics import BF16, E4M3, F16, F32, garbage, round_to
from rank_work import Part
from ranks import RankPool, raised
from states import lay_out, make_states

from mlafix.distributed._cut import Cut

# A state with an lse below FAINTEST has no weight beside an ordinary state.
FAINTEST = -300.0


class Form(NamedTuple):
    """Shapes and options for which code is compiled. Tests use few forms, so that they spend their time on calls and
    not on compilation."""

    dtype: np.dtype
    head_dim: int
    heads: int
    """The number of heads of each rank if heads are cut."""
    base: str
    sink: bool
    wire: str | None = None


FORMS = (Form(BF16, 16, 3, "e", False), Form(F16, 5, 1, "2", True), Form(F32, 1, 2, "2", False), Form(BF16, 64, 1, "e", True),
         Form(BF16, 32, 2, "2", True, "f8e4m3fn"), Form(F32, 6, 1, "e", False, "f8e4m3fn"))


def options_of(form: Form, cut: str, ranks: int, sink: np.ndarray | None, max_tokens: int = 16) -> dict[str, Any]:
    return {"max_tokens": max_tokens, "heads": form.heads * ranks, "head_dim": form.head_dim, "dtype": str(form.dtype),
            "wire_dtype": form.wire, "cut": cut, "base": form.base, "sink": sink}


class Case(NamedTuple):
    """The partial state of each rank, and the expected merge of all of them."""

    parts: list[Part]
    sink: np.ndarray | None
    out: contract.Expected
    lse: contract.Expected


def through_fp8(v: np.ndarray) -> np.ndarray:
    """Returns rows in f32 after a conversion to fp8 and back. Each row has its own scale, max |row| / 448."""
    rows = v.astype(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        scale = np.maximum(np.abs(rows).max(-1, keepdims=True), np.float32(2.0**-100)) / np.float32(448)
        stored = round_to(E4M3, (rows * (np.float32(1) / scale)).astype(np.float64)).astype(np.float32)
        return np.where(np.isfinite(rows).all(-1, keepdims=True), stored * scale, np.float32(np.nan))


def expected(form: Form, v: np.ndarray, s: np.ndarray, keys: np.ndarray, sink: np.ndarray | None,
             cut: str = "none", **how: Any) -> tuple[contract.Expected, contract.Expected]:
    """Returns the expected merge of v [ranks, T, H, D] and s [ranks, T, H] with the sink. `keys` [ranks, T] is true for
    states that have keys.

    With fp8 on the wire, rows that travel are rounded to fp8. If `cut` is "heads" or "tokens", the rows that a rank
    merges of its own are not rounded. If it is "none", they are rounded as well, so that all ranks have the same bits.
    """
    present = np.broadcast_to(keys[..., None], s.shape)
    if form.wire is not None:
        exact, v = v.astype(np.float32), through_fp8(v)
        for rank in range(len(v) if cut != "none" else 0):
            own = (rank, *Cut(cut, len(v), v.shape[2]).owned(rank, v.shape[1]))
            v[own] = exact[own]
    if sink is not None:
        zeros = np.zeros((1, *v.shape[1:]), v.dtype)
        logits = np.broadcast_to(sink.astype(np.float64) / (np.log(2) if form.base == "2" else 1), (1, *s.shape[1:]))
        v, s = np.concatenate([v, zeros]), np.concatenate([s, logits])
        present = np.concatenate([present, np.ones((1, *s.shape[1:]), bool)])
    out, lse = contract.merge(v, s, base=2.0 if form.base == "2" else np.e, out_dtype=how.pop("out_dtype", form.dtype),
                              present=present, **how)
    # In base 2, the sink is converted from base e and thus rounded, so a finite lse is not exact.
    rounded = sink is not None and form.base == "2"
    return out, (contract.Expected(lse.value, lse.magnitude, lse.exact & ~np.isfinite(lse.value)) if rounded else lse)


def make_case(rng: np.random.Generator, form: Form, ranks: int, tokens: int, masks: str, layout: str = "contiguous",
              cut: str = "none", heads: int | None = None) -> Case:
    """Makes a random case with every kind of row. Rows without keys contain garbage, and their lse is NaN.

    Args:
        masks: "none"; "tokens" for seq_lens with an entry for each token; "requests" for seq_lens and query_start_loc,
            also with padding and with requests without tokens; "padding" for query_start_loc only.
        cut: how the result is cut. If rows travel in fp8, this decides which rows are rounded.
        heads: the number of heads of the whole state. None means that each rank has the form's number of heads.
    """
    heads = form.heads * ranks if heads is None else heads
    states = make_states(rng, ranks, tokens, heads, form.head_dim, form.dtype)
    keys = np.ones((ranks, tokens), bool)
    lens: list[np.ndarray | None] = [None] * ranks
    starts = None
    if masks == "tokens":
        lens = [rng.integers(-1, 3, int(rng.integers(0, tokens + 2))).astype(np.int64) for _ in range(ranks)]
        lens = [one[: min(len(each) for each in lens)] for one in lens]  # type: ignore[arg-type,union-attr]
        for rank, one in enumerate(lens):
            keys[rank] = [t < len(one) and one[t] > 0 for t in range(tokens)]  # type: ignore[arg-type,index]
    elif masks in ("requests", "padding"):
        requests = int(rng.integers(1, 6))
        cuts = np.sort(rng.integers(0, tokens + 1, requests + 1))
        starts = (cuts - cuts[0]).astype(np.int32)
        owner = np.searchsorted(starts[1:], np.arange(tokens), side="right")
        keys[:] = owner < requests
        if masks == "requests":
            lens = [np.where(rng.random(requests) < 0.5, 0, 7).astype(np.int32) for _ in range(ranks)]
            for rank, one in enumerate(lens):
                keys[rank] &= np.array([o < requests and one[o] > 0 for o in owner], bool)  # type: ignore[index]
    # make_states fills faint states (lse below FAINTEST) with garbage, since they have no weight beside ordinary ones.
    # If all other states of a row have no keys, the faint states have weight. They then get ordinary rows, since N10
    # does not bound a merge of garbage.
    live = keys[..., None] & np.isfinite(states.s)
    alone = live & (np.where(live, states.s, -np.inf).max(0) < FAINTEST)
    states.v[alone] = rng.normal(0, 1, states.v[alone].shape).astype(form.dtype)
    states.v[~keys], states.s[~keys] = garbage(rng, states.v[~keys].shape, form.dtype), np.nan
    sink = rng.normal(0, 2, heads).astype(np.float32) if form.sink else None
    out, lse = expected(form, states.v, states.s, keys, sink, cut)
    parts = [Part(lay_out(states.v[r], layout), lay_out(states.s[r], layout), lens[r], starts) for r in range(ranks)]
    return Case(parts, sink, out, lse)


def part_of(whole: contract.Expected, owned: tuple[slice, slice]) -> contract.Expected:
    return contract.Expected(*(array[owned] for array in (whole.value, whole.magnitude, whole.exact)))


def check(case: Case, results: list[dict[str, Any]]) -> None:
    """Compares the rows of every rank with the expected ones."""
    for rank, result in enumerate(results):
        part_of(case.out, result["owned"]).check(result["out"], f"out of rank {rank}")
        part_of(case.lse, result["owned"]).check(result["lse"], f"lse of rank {rank}")
        assert result.get("untouched", True), f"rank {rank}: an input was written"


def assembled(results: list[dict[str, Any]], shape: tuple[int, ...]) -> np.ndarray:
    """Returns the whole result, assembled from the parts that the ranks own."""
    whole = np.zeros(shape, results[0]["out"].dtype)
    for result in results:
        whole[result["owned"]] = result["out"]
    return whole


def check_replays(pool: RankPool, ranks: int, rng: np.random.Generator, options: dict[str, Any]) -> None:
    """Makes three reducers, and captures a call of each in one graph. The graph is replayed ten thousand times after
    the reducers are gone. Inputs, lengths and offsets change after each thousand. `options` adds options to the
    form's."""
    form = FORMS[0]
    calls = [("heads", 9), ("tokens", 5), ("none", 3)]
    # All rounds have the same number of requests, so that tensors keep their sizes.
    rounds: list[list[Case]] = []
    while len(rounds) < 10:
        cases = [make_case(rng, form, ranks, tokens, "requests") for _, tokens in calls]
        if all(len(case.parts[0].seq_lens) == 4 for case in cases):  # type: ignore[arg-type]
            rounds.append(cases)
    reducers = [options_of(form, cut, ranks, None) | options for cut, _ in calls]
    each = [([[case.parts[rank] for case in cases] for cases in rounds], reducers, 1000) for rank in range(ranks)]
    results = raised(pool.run("replays", each))
    for at, cases in enumerate(rounds):
        for number, case in enumerate(cases):
            check(case, [result[at][number] for result in results])


def check_two_streams(pool: RankPool, ranks: int, rng: np.random.Generator, options: dict[str, Any], *, form: Form | None = None,
                      tokens: tuple[int, ...] = (6, 3, 9, 16, 1), idle: int = 0, captured: bool = False) -> None:
    """Runs two reducers of one group in two streams, call by call. `options` adds options to those of the form.

    `idle` counts cycles. The devices of even ranks idle before the first reducer's calls, and those of odd ranks before
    the second's.
    """
    form = form or FORMS[0]
    cases = [make_case(rng, form, ranks, count, "requests") for count in tokens]
    reducers = [options_of(form, cut, ranks, None, max_tokens=max(tokens)) | options for cut in ("heads", "none")]
    sleeps = [(0, idle) if rank % 2 else (idle, 0) for rank in range(ranks)]
    each = [([case.parts[rank] for case in cases], reducers, sleeps[rank], captured) for rank in range(ranks)]
    results = raised(pool.run("two_streams", each))
    for at, case in enumerate(cases):
        for reducer in range(2):
            check(case, [result[2 * at + reducer] for result in results])
