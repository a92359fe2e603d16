"""Kernels of `mlafix.distributed` in which ranks store rows into each other's memory, compiled when they are first used.

Each rank has two halves there, with a block (ranks.py) of every rank.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from mlafix.kernels.ranks import B, Merged, O, Q, Requests, S, T, has_keys, scale_of, store_merged
from mlafix.dsl import (
    In,
    InOut,
    Out,
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
    """The rows that ranks send each other, in each one's memory; scales of fp8, or None."""

    rows: Any
    lses: Any
    scales: Any = None


@dataclasses.dataclass(frozen=True)
class Partial:
    """A rank's state, and whose rows they are."""

    rows: Any
    lses: Any
    requests: Requests


@inline
def send_row(i, part, token, t, h, half, rank, live, staged, partial):
    """Stores a row of this rank's state into rank i's memory; of one that is not live no payload, and an lse of -inf."""
    row = load(partial.rows[part, token, h], where=live)
    lse = load(partial.lses[part, token, h], where=live, otherwise=-math.inf)
    if staged.scales is not None:
        scale = scale_of(row)
        store(staged.rows[i][half, rank, t, h], row * (1.0 / scale), where=live)
        store(staged.scales[i][half, rank, t, h], scale)
    else:
        store(staged.rows[i][half, rank, t, h], row, where=live)
    store(staged.lses[i][half, rank, t, h], lse)


@inline
def next_rank(rank, step, count):
    """The rank that many steps behind: ranks begin with different ones, so that their stores share out the links."""
    return (rank + step) % count


@inline
def received_row(i, t, h, half, rank, exists, staged):
    """The row that rank i has sent, and its lse: 0 and -inf where it has not, which `exists` says."""
    row = load(staged.rows[rank][half, i, t, h], where=exists)
    if staged.scales is not None:
        row = row * load(staged.scales[rank][half, i, t, h], where=exists)
    return row, load(staged.lses[rank][half, i, t, h], where=exists, otherwise=-math.inf)


@inline
def store_merged_row(t, h, half, rank, place, mine, live, of_two, staged, partial, to, is_stored):
    """Stores the merge, in the order of ranks, of what the others have sent and of this rank's own row, [place, mine, h] of its state.

    Of two ranks each merges the same two rows, in an order that all threads know. Rows that are converted anyhow are merged and stored
    in a branch, which costs nothing for an element (merged in one alone, they would meet the sink as a state, with other bits); others
    are selected, in two iterations that load one row (docs/Experiments.md).
    """
    row = load(partial.rows[place, mine, h], where=live)
    lse = load(partial.lses[place, mine, h], where=live, otherwise=-math.inf)
    if of_two:
        own = make_state(row, lse, base=B)
        other, other_lse = received_row(next_rank(rank, 1, 2), t, h, half, rank, True, staged)
        sent = make_state(other, other_lse, base=B)
        if rank == 0:
            store_merged(merge(own, sent), t, h, to, is_stored)
        else:
            store_merged(merge(sent, own), t, h, to, is_stored)
    else:
        are_two = ranks(staged.rows) == 2
        merged = identity("D", base=B)
        for i in range(ranks(staged.rows)):
            is_sent = i != rank
            sender = next_rank(rank, 1, 2) if are_two else i
            other, other_lse = received_row(sender, t, h, half, rank, is_sent or are_two, staged)
            merged = merge(merged, make_state(where(is_sent, other, row), other_lse if is_sent else lse, base=B))
        store_merged(merged, t, h, to, is_stored)


@inline
def push_row(t, h, rank, of_two, staged, partial, to):
    """Stores the merge of row t, h of a part of each rank's state; part i is for rank i."""
    half = turn()
    live = has_keys(t, partial.requests)
    for step in range(1, ranks(staged.rows)):
        i = next_rank(rank, step, ranks(staged.rows))
        send_row(i, i, t, t, h, half, rank, live, staged, partial)
    exchange()
    store_merged_row(t, h, half, rank, rank, t, live, of_two, staged, partial, to, True)


@inline
def push_token(t, h, rank, of_two, staged, partial, to, token_step):
    """Stores the merge of row t, h of each rank's tokens from i * token_step on, for rank i."""
    half = turn()
    tokens = partial.rows.shape[1]
    for step in range(1, ranks(staged.rows)):
        i = next_rank(rank, step, ranks(staged.rows))
        token = t + i * token_step
        live = token < tokens and has_keys(token, partial.requests)
        send_row(i, 0, token, t, h, half, rank, live, staged, partial)
    exchange()
    mine = t + rank * token_step
    live = mine < tokens and has_keys(mine, partial.requests)
    store_merged_row(t, h, half, rank, 0, mine, live, of_two, staged, partial, to, t < shape("n"))


@kernel
def push_and_merge(
    out: Out[O, "n H D"],
    out_lse: Out[f32, "n H"] | None,
    staged: Peers[InOut[T, "turns=2 r n H D"]],
    staged_lses: Peers[InOut[f32, "turns=2 r n H"]],
    partial: In[T, "p n H D"],
    partial_lse: In[f32, "p n H"],
    seq_lens: In[S, "s"] | None,
    query_start_loc: In[Q, "q"] | None,
    halvings: index,
    rank: index,
    sink: In[f32, "H"] | None,
    out_scale: In[f32, "one=1"] | None,
):
    """As `merge_peers`, of the blocks of `pack_blocks` for heads that are cut, or nothing: each rank stores its rows into the memory
    of those that merge them. All ranks launch it."""
    assume(shape("p") >= ranks(staged))
    assume(rank >= 0)
    assume(rank < ranks(staged))
    assume(shape("r") >= ranks(staged))
    for t, h in grid("n", "H"):
        state = Partial(partial, partial_lse, Requests(seq_lens, query_start_loc, halvings))
        push_row(t, h, rank, False, Staged(staged, staged_lses), state, Merged(out, out_lse, sink, out_scale))


def _heads_fp8(of_two):
    @kernel(allow={"bounds"})  # `of_two` reads of the other rank: it is launched by two alone
    def push_and_merge_fp8(
        out: Out[O, "n H D"],
        out_lse: Out[f32, "n H"] | None,
        staged: Peers[InOut[f8e4m3fn, "turns=2 r n H D"]],
        staged_lses: Peers[InOut[f32, "turns=2 r n H"]],
        staged_scales: Peers[InOut[f32, "turns=2 r n H"]],
        partial: In[T, "p n H D"],
        partial_lse: In[f32, "p n H"],
        seq_lens: In[S, "s"] | None,
        query_start_loc: In[Q, "q"] | None,
        halvings: index,
        rank: index,
        sink: In[f32, "H"] | None,
        out_scale: In[f32, "one=1"] | None,
    ):
        """As `push_and_merge`, with payloads that travel as in `pack_blocks_fp8`."""
        assume(shape("p") >= ranks(staged))
        assume(rank >= 0)
        assume(rank < ranks(staged))
        assume(shape("r") >= ranks(staged))
        for t, h in grid("n", "H"):
            state = Partial(partial, partial_lse, Requests(seq_lens, query_start_loc, halvings))
            push_row(t, h, rank, of_two, Staged(staged, staged_lses, staged_scales), state, Merged(out, out_lse, sink, out_scale))

    return push_and_merge_fp8


@kernel
def push_and_merge_rounded(
    out: Out[O, "n H D"],
    out_lse: Out[f32, "n H"] | None,
    staged: Peers[InOut[f8e4m3fn, "turns=2 r n H D"]],
    staged_lses: Peers[InOut[f32, "turns=2 r n H"]],
    staged_scales: Peers[InOut[f32, "turns=2 r n H"]],
    partial: In[T, "p n H D"],
    partial_lse: In[f32, "p n H"],
    seq_lens: In[S, "s"] | None,
    query_start_loc: In[Q, "q"] | None,
    halvings: index,
    rank: index,
    sink: In[f32, "H"] | None,
    out_scale: In[f32, "one=1"] | None,
):
    """As `push_and_merge_fp8`, with own rows that are stored, and so rounded, like the others': all ranks have the same bits."""
    assume(shape("p") >= ranks(staged))
    assume(rank >= 0)
    assume(rank < ranks(staged))
    assume(shape("r") >= ranks(staged))
    for t, h in grid("n", "H"):
        half = turn()
        sent, state = Staged(staged, staged_lses, staged_scales), Partial(partial, partial_lse, Requests(seq_lens, query_start_loc, halvings))
        live = has_keys(t, state.requests)
        for step in range(ranks(staged)):
            i = next_rank(rank, step, ranks(staged))
            send_row(i, i, t, t, h, half, rank, live, sent, state)
        exchange()
        merged = identity("D", base=B)
        for i in range(ranks(staged)):
            row, lse = received_row(i, t, h, half, rank, True, sent)
            merged = merge(merged, make_state(row, lse, base=B))
        store_merged(merged, t, h, Merged(out, out_lse, sink, out_scale))


@kernel
def push_and_merge_tokens(
    out: Out[O, "n H D"],
    out_lse: Out[f32, "n H"] | None,
    staged: Peers[InOut[T, "turns=2 r b H D"]],
    staged_lses: Peers[InOut[f32, "turns=2 r b H"]],
    partial: In[T, "p m H D"],
    partial_lse: In[f32, "p m H"],
    seq_lens: In[S, "s"] | None,
    query_start_loc: In[Q, "q"] | None,
    halvings: index,
    rank: index,
    sink: In[f32, "H"] | None,
    out_scale: In[f32, "one=1"] | None,
    token_step: index,
):
    """As `push_and_merge`, of tokens that are cut: row t of rank i's block is token t + i * token_step."""
    assume(shape("p") > 0)
    assume(rank >= 0)
    assume(rank < ranks(staged))
    assume(shape("r") >= ranks(staged))
    assume(shape("n") <= shape("b"))
    for t, h in grid("b", "H"):
        state = Partial(partial, partial_lse, Requests(seq_lens, query_start_loc, halvings))
        push_token(t, h, rank, False, Staged(staged, staged_lses), state, Merged(out, out_lse, sink, out_scale), token_step)


def _tokens_fp8(of_two):
    @kernel(allow={"bounds"})  # `of_two` reads of the other rank: it is launched by two alone
    def push_and_merge_tokens_fp8(
        out: Out[O, "n H D"],
        out_lse: Out[f32, "n H"] | None,
        staged: Peers[InOut[f8e4m3fn, "turns=2 r b H D"]],
        staged_lses: Peers[InOut[f32, "turns=2 r b H"]],
        staged_scales: Peers[InOut[f32, "turns=2 r b H"]],
        partial: In[T, "p m H D"],
        partial_lse: In[f32, "p m H"],
        seq_lens: In[S, "s"] | None,
        query_start_loc: In[Q, "q"] | None,
        halvings: index,
        rank: index,
        sink: In[f32, "H"] | None,
        out_scale: In[f32, "one=1"] | None,
        token_step: index,
    ):
        """As `push_and_merge_tokens`, with payloads that travel as in `pack_blocks_fp8`."""
        assume(shape("p") > 0)
        assume(rank >= 0)
        assume(rank < ranks(staged))
        assume(shape("r") >= ranks(staged))
        assume(shape("n") <= shape("b"))
        for t, h in grid("b", "H"):
            state = Partial(partial, partial_lse, Requests(seq_lens, query_start_loc, halvings))
            push_token(t, h, rank, of_two, Staged(staged, staged_lses, staged_scales), state, Merged(out, out_lse, sink, out_scale), token_step)

    return push_and_merge_tokens_fp8


push_and_merge_fp8, push_and_merge_fp8_of_two = _heads_fp8(False), _heads_fp8(True)
push_and_merge_tokens_fp8, push_and_merge_tokens_fp8_of_two = _tokens_fp8(False), _tokens_fp8(True)

# Names, by the cut and whether rows travel as fp8, for two ranks or for any number. Where nothing is cut, own rows are rounded like the
# others'.
OF_MANY = {
    ("heads", False): "push_and_merge",
    ("heads", True): "push_and_merge_fp8",
    ("none", False): "push_and_merge",
    ("none", True): "push_and_merge_rounded",
    ("tokens", False): "push_and_merge_tokens",
    ("tokens", True): "push_and_merge_tokens_fp8",
}
OF_TWO = {**OF_MANY, ("heads", True): "push_and_merge_fp8_of_two", ("tokens", True): "push_and_merge_tokens_fp8_of_two"}
