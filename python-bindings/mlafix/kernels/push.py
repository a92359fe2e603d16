"""Kernels of `mlafix.distributed` in which ranks store rows into each other's memory. They compile when they are first
used.

The memory of each rank has two halves. Each half has a block (ranks.py) for every rank. Launches alternate between the
halves (`turn()`).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from mlafix.kernels.ranks import B, Merged, Requests, T, has_keys, scale_of, store_merged
from mlafix.dsl import (
    In,
    InOut,
    Peers,
    assume,
    exchange,
    f8e4m3fn,
    f32,
    grid,
    identity,
    index,
    inline,
    kernel,
    load,
    make_state,
    merge,
    ranks,
    shape,
    store,
    turn,
    where,
)


@dataclasses.dataclass(frozen=True)
class Staged:
    """Arguments for rows that ranks send to each other: the rows in each rank's memory, and their fp8 scales or None.
    `staged` declares them."""

    staged: Any
    staged_lses: Any
    staged_scales: Any


@dataclasses.dataclass(frozen=True)
class Travel:
    """Options of the exchange for which a kernel is made.

    Args:
        is_fp8: payloads are sent as fp8, with a scale for each row, as `pack_blocks_fp8` makes them.
        of_two: there are exactly two ranks.
    """

    is_fp8: bool = False
    of_two: bool = False


FP8 = Travel(is_fp8=True)


def staged(how: Travel, tokens: str = "n") -> Staged:
    """Declares two halves with a block of `tokens` tokens for each rank."""
    numbers = Peers[InOut[f32, f"turns=2 r {tokens} H"]]
    return Staged(Peers[InOut[f8e4m3fn if how.is_fp8 else T, f"turns=2 r {tokens} H D"]], numbers, numbers if how.is_fp8 else None)


def unbounded(how: Travel) -> set[str]:
    """Returns the warnings that a kernel suppresses: "bounds" with `of_two`. Such a kernel reads the memory of the other
    rank. The proofs do not show that this rank exists, but two ranks launch the kernel."""
    return {"bounds"} if how.of_two else set()


@dataclasses.dataclass(frozen=True)
class Partial:
    """Arguments for a rank's partial state and its requests. `partial` declares them."""

    partial: Any
    partial_lse: Any
    requests: Requests


def partial(tokens: str = "n") -> Partial:
    """Declares a partial state of p parts with `tokens` tokens each."""
    return Partial(In[T, f"p {tokens} H D"], In[f32, f"p {tokens} H"], Requests())


@inline
def send_row(i, part, token, t, h, half, rank, live, sent, own):
    """Stores a row of this rank's state to rank i's memory. If the row is not live, stores an lse of -inf and no
    payload."""
    row = load(own.partial[part, token, h], where=live)
    lse = load(own.partial_lse[part, token, h], where=live, otherwise=-math.inf)
    if sent.staged_scales is not None:
        scale = scale_of(row)
        store(sent.staged[i][half, rank, t, h], row * (1.0 / scale), where=live)
        store(sent.staged_scales[i][half, rank, t, h], scale)
    else:
        store(sent.staged[i][half, rank, t, h], row, where=live)
    store(sent.staged_lses[i][half, rank, t, h], lse)


@inline
def next_rank(rank, step, count):
    """Returns the rank that is `step` ranks after this one. Callers store to the ranks in the order of the steps, so
    each rank begins with a different rank, and the stores spread over the links."""
    return (rank + step) % count


@inline
def received_row(i, t, h, half, rank, exists, sent):
    """Returns the row that rank i has sent, and its lse. Returns 0 and -inf if `exists` is false."""
    row = load(sent.staged[rank][half, i, t, h], where=exists)
    if sent.staged_scales is not None:
        row = row * load(sent.staged_scales[rank][half, i, t, h], where=exists)
    return row, load(sent.staged_lses[rank][half, i, t, h], where=exists, otherwise=-math.inf)


@inline
def store_merged_row(t, h, half, rank, place, mine, live, of_two, sent, own, to, is_stored):
    """Merges the received rows and this rank's own row, [place, mine, h] of its state, in the order of the ranks, and
    stores the result.

    With `of_two`, rows are fp8 and must be converted. A branch on the rank has one merge for each order of the two
    rows, so the order costs nothing per element. Each side of the branch also stores the result. If the branch
    contained the merge alone, the sink would be merged as a separate state, and the result would have other bits.

    Without `of_two`, each iteration selects between a received row and the own row. If there are two ranks, both
    iterations load the row of the other rank. For bf16, this selection takes less time than a branch
    (docs/Experiments.md).
    """
    row = load(own.partial[place, mine, h], where=live)
    lse = load(own.partial_lse[place, mine, h], where=live, otherwise=-math.inf)
    if of_two:
        mine_state = make_state(row, lse, base=B)
        other, other_lse = received_row(next_rank(rank, 1, 2), t, h, half, rank, True, sent)
        other_state = make_state(other, other_lse, base=B)
        if rank == 0:
            store_merged(merge(mine_state, other_state), t, h, to, is_stored)
        else:
            store_merged(merge(other_state, mine_state), t, h, to, is_stored)
    else:
        are_two = ranks(sent.staged) == 2
        merged = identity("D", base=B)
        for i in range(ranks(sent.staged)):
            is_sent = i != rank
            sender = next_rank(rank, 1, 2) if are_two else i
            other, other_lse = received_row(sender, t, h, half, rank, is_sent or are_two, sent)
            merged = merge(merged, make_state(where(is_sent, other, row), other_lse if is_sent else lse, base=B))
        store_merged(merged, t, h, to, is_stored)


@inline
def push_row(t, h, rank, of_two, sent, own, to):
    """Sends row (t, h) of part i of this rank's state to rank i, for each i. Then stores the merge of the rows that
    this rank received."""
    half = turn()
    live = has_keys(t, own.requests)
    for step in range(1, ranks(sent.staged)):
        i = next_rank(rank, step, ranks(sent.staged))
        send_row(i, i, t, t, h, half, rank, live, sent, own)
    exchange()
    store_merged_row(t, h, half, rank, rank, t, live, of_two, sent, own, to, True)


@inline
def push_token(t, h, rank, of_two, sent, own, to, token_step):
    """Sends row (t + i * token_step, h) of this rank's state to rank i, for each i. Then stores the merge of the rows
    that this rank received."""
    half = turn()
    tokens = own.partial.shape[1]
    for step in range(1, ranks(sent.staged)):
        i = next_rank(rank, step, ranks(sent.staged))
        token = t + i * token_step
        live = token < tokens and has_keys(token, own.requests)
        send_row(i, 0, token, t, h, half, rank, live, sent, own)
    exchange()
    mine = t + rank * token_step
    live = mine < tokens and has_keys(mine, own.requests)
    store_merged_row(t, h, half, rank, 0, mine, live, of_two, sent, own, to, t < shape("n"))


def _heads(how: Travel) -> Any:
    @kernel(allow=unbounded(how))
    def push_and_merge(
        to: Merged(),
        sent: staged(how),
        own: partial(),
        rank: index,
    ):
        """Like `merge_peers`, but each rank stores its rows to the memory of the ranks that merge them. The blocks are
        those that `pack_blocks` makes if heads are cut or if nothing is cut. All ranks launch this kernel."""
        assume(shape("p") >= ranks(sent.staged))
        assume(rank >= 0)
        assume(rank < ranks(sent.staged))
        assume(shape("r") >= ranks(sent.staged))
        for t, h in grid("n", "H"):
            push_row(t, h, rank, how.of_two, sent, own, to)

    push_and_merge.made_with = (how,)
    return push_and_merge


@kernel
def push_and_merge_rounded(
    to: Merged(),
    sent: staged(FP8),
    own: partial(),
    rank: index,
):
    """Like `push_and_merge` with FP8, but each rank also stores its own rows as fp8 and merges the rounded rows. So if
    all ranks merge the same rows, their results have the same bits."""
    assume(shape("p") >= ranks(sent.staged))
    assume(rank >= 0)
    assume(rank < ranks(sent.staged))
    assume(shape("r") >= ranks(sent.staged))
    for t, h in grid("n", "H"):
        half = turn()
        live = has_keys(t, own.requests)
        for step in range(ranks(sent.staged)):
            i = next_rank(rank, step, ranks(sent.staged))
            send_row(i, i, t, t, h, half, rank, live, sent, own)
        exchange()
        merged = identity("D", base=B)
        for i in range(ranks(sent.staged)):
            row, lse = received_row(i, t, h, half, rank, True, sent)
            merged = merge(merged, make_state(row, lse, base=B))
        store_merged(merged, t, h, to)


def _tokens(how: Travel) -> Any:
    @kernel(allow=unbounded(how))
    def push_and_merge_tokens(
        to: Merged(),
        sent: staged(how, "b"),
        own: partial("m"),
        rank: index,
        token_step: index,
    ):
        """Like `push_and_merge`, but tokens are cut: row t of rank i's block is token t + i * token_step."""
        assume(shape("p") > 0)
        assume(rank >= 0)
        assume(rank < ranks(sent.staged))
        assume(shape("r") >= ranks(sent.staged))
        assume(shape("n") <= shape("b"))
        for t, h in grid("b", "H"):
            push_token(t, h, rank, how.of_two, sent, own, to, token_step)

    push_and_merge_tokens.made_with = (how,)
    return push_and_merge_tokens


push_and_merge, push_and_merge_fp8, push_and_merge_fp8_of_two = map(_heads, (Travel(), FP8, Travel(is_fp8=True, of_two=True)))
push_and_merge_tokens, push_and_merge_tokens_fp8, push_and_merge_tokens_fp8_of_two = map(
    _tokens, (Travel(), FP8, Travel(is_fp8=True, of_two=True))
)

# Names of kernels by the cut, and by whether rows are sent as fp8: OF_MANY for any number of ranks, OF_TWO for two
# ranks. If nothing is cut, all ranks merge the same rows. With fp8 they then use push_and_merge_rounded, so that each
# rank also rounds its own rows, and all ranks get the same bits.
OF_MANY = {
    ("heads", False): "push_and_merge",
    ("heads", True): "push_and_merge_fp8",
    ("none", False): "push_and_merge",
    ("none", True): "push_and_merge_rounded",
    ("tokens", False): "push_and_merge_tokens",
    ("tokens", True): "push_and_merge_tokens_fp8",
}
OF_TWO = {**OF_MANY, ("heads", True): "push_and_merge_fp8_of_two", ("tokens", True): "push_and_merge_tokens_fp8_of_two"}
