"""Kernels of `mlafix.distributed` in which ranks store rows into each other's memory, compiled when they are first used.

Each rank has two halves there, with a block (_rank_kernels.py) of every rank.
"""

from __future__ import annotations

import math

from ._rank_kernels import B, O, Q, S, T, has_keys, scale_of, store_merged
from .dsl import (
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


@inline
def send_row(i, part, token, t, h, half, rank, own, live, staged, staged_lses, staged_scales, partial, partial_lse):
    """Stores a row of this rank's state into rank i's memory; one that is not live as an lse of -inf alone.

    Own rows are loaded with the others: they are in the cache then, when they are merged.
    """
    row = load(partial[part, token, h], where=live)
    lse = load(partial_lse[part, token, h], where=live, otherwise=-math.inf)
    if staged_scales is not None:
        scale = scale_of(row)
        store(staged[i][half, rank, t, h], row * (1.0 / scale), where=live and i != own)
        store(staged_scales[i][half, rank, t, h], scale, where=live and i != own)
    else:
        store(staged[i][half, rank, t, h], row, where=live and i != own)
    store(staged_lses[i][half, rank, t, h], lse, where=i != own)


@inline
def received_state(i, t, h, half, rank, own, place, mine, live, staged, staged_lses, staged_scales, partial, partial_lse):
    """The state of a row that rank i has sent, or, where that is `own`, which is `live`, of the row itself."""
    row = load(staged[rank][half, i, t, h], where=i != own)
    if staged_scales is not None:
        row = row * load(staged_scales[rank][half, i, t, h], where=i != own)
    row = where(i == own, load(partial[place, mine, h], where=live and i == own), row)
    lse = load(staged_lses[rank][half, i, t, h], where=i != own, otherwise=-math.inf)
    lse = load(partial_lse[place, mine, h], where=live, otherwise=-math.inf) if i == own else lse
    return make_state(row, lse, base=B)


@inline
def push_row(t, h, rank, own, staged, staged_lses, staged_scales, partial, partial_lse, seq_lens, query_start_loc, halvings):
    """The merge of row t, h of a part of each rank's state; part i is for rank i."""
    half = turn()
    live = has_keys(t, seq_lens, query_start_loc, halvings)
    for i in range(ranks(staged)):
        send_row(i, i, t, t, h, half, rank, own, live, staged, staged_lses, staged_scales, partial, partial_lse)
    exchange()
    merged = identity("D", base=B)
    for i in range(ranks(staged)):
        state = received_state(i, t, h, half, rank, own, rank, t, live, staged, staged_lses, staged_scales, partial, partial_lse)
        merged = merge(merged, state)
    return merged


@inline
def push_token(t, h, rank, own, staged, staged_lses, staged_scales, partial, partial_lse, seq_lens, query_start_loc, token_step, halvings):
    """The merge of row t, h of each rank's tokens from i * token_step on, for rank i."""
    half = turn()
    tokens = partial.shape[1]
    for i in range(ranks(staged)):
        token = t + i * token_step
        live = token < tokens and has_keys(token, seq_lens, query_start_loc, halvings)
        send_row(i, 0, token, t, h, half, rank, own, live, staged, staged_lses, staged_scales, partial, partial_lse)
    exchange()
    mine = t + rank * token_step
    live = mine < tokens and has_keys(mine, seq_lens, query_start_loc, halvings)
    merged = identity("D", base=B)
    for i in range(ranks(staged)):
        state = received_state(i, t, h, half, rank, own, 0, mine, live, staged, staged_lses, staged_scales, partial, partial_lse)
        merged = merge(merged, state)
    return merged


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
    own: index,
    sink: In[f32, "H"] | None,
    out_scale: In[f32, "one=1"] | None,
):
    """As `merge_peers`, of the blocks of `pack_blocks` for heads that are cut, or nothing: each rank stores its rows into the memory
    of those that merge them. All ranks launch it. Rows of rank `own`, which is `rank`, are not stored."""
    assume(shape("p") >= ranks(staged))
    assume(rank >= 0)
    assume(rank < ranks(staged))
    assume(shape("r") >= ranks(staged))
    for t, h in grid("n", "H"):
        merged = push_row(t, h, rank, own, staged, staged_lses, None, partial, partial_lse, seq_lens, query_start_loc, halvings)
        store_merged(merged, t, h, out, out_lse, sink, out_scale)


@kernel
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
    own: index,
    sink: In[f32, "H"] | None,
    out_scale: In[f32, "one=1"] | None,
):
    """As `push_and_merge`, with payloads that travel as in `pack_blocks_fp8`; `own` -1: own rows are stored, and rounded, as well."""
    assume(shape("p") >= ranks(staged))
    assume(rank >= 0)
    assume(rank < ranks(staged))
    assume(shape("r") >= ranks(staged))
    for t, h in grid("n", "H"):
        merged = push_row(t, h, rank, own, staged, staged_lses, staged_scales, partial, partial_lse, seq_lens, query_start_loc, halvings)
        store_merged(merged, t, h, out, out_lse, sink, out_scale)


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
    own: index,
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
        merged = push_token(
            t, h, rank, own, staged, staged_lses, None, partial, partial_lse, seq_lens, query_start_loc, token_step, halvings
        )
        store_merged(merged, t, h, out, out_lse, sink, out_scale, t < shape("n"))


@kernel
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
    own: index,
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
        merged = push_token(
            t, h, rank, own, staged, staged_lses, staged_scales, partial, partial_lse, seq_lens, query_start_loc, token_step, halvings
        )
        store_merged(merged, t, h, out, out_lse, sink, out_scale, t < shape("n"))
