"""Kernels of `mlafix.distributed` and of the drop-ins for context parallelism. They compile when they are first used.

Ranks send *blocks* to each other: a block has the rows of the sender's partial state that the receiver merges. The
first dim of a tensor of blocks is the rank to which, or from which, each block is sent.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from mlafix.kernels.segments import segment_of
from mlafix.dsl import (
    Base,
    DType,
    In,
    InOut,
    Out,
    Peers,
    assume,
    f8e4m3fn,
    f32,
    grid,
    i32,
    i64,
    identity,
    index,
    inline,
    kernel,
    load,
    load_state,
    log,
    make_state,
    merge,
    ranks,
    shape,
    sink,
    splat,
    store_state,
    where,
)

T = DType("T")
O = DType("O")  # noqa: E741 (the library's name)
E = DType("E", default=i32)  # dtype of elements that are only copied
S = DType("S", default=i32)
Q = DType("Q", default=i32)
B = Base("B", default="e")

# A row whose largest magnitude is below SMALLEST is scaled as if it were SMALLEST.
SMALLEST = 2.0**-100


@dataclasses.dataclass(frozen=True)
class Requests:
    """Arguments for the number of keys of each request on this rank, and for the first token of each request.

    Args:
        halvings: see `segment_of`.
    """

    seq_lens: Any = In[S, "s"] | None
    query_start_loc: Any = In[Q, "q"] | None
    halvings: Any = index


@dataclasses.dataclass(frozen=True)
class Merged:
    """Arguments for the merged rows and their lses, the logits of a sink, and an fp8 scale."""

    out: Any = Out[O, "n H D"]
    out_lse: Any = Out[f32, "n H"] | None
    sink: Any = In[f32, "H"] | None
    out_scale: Any = In[f32, "one=1"] | None


@inline
def has_keys(token, of):
    """True if a token's request has keys on this rank. False for padding behind the last request."""
    keys = True
    if of.query_start_loc is not None:
        requests = of.query_start_loc.shape[0] - 1
        keys = requests > 0 and i64(token) < of.query_start_loc[requests]
        if of.seq_lens is not None:
            if keys:
                keys = of.seq_lens[segment_of(token, of.query_start_loc, 0, of.halvings)] > 0
    elif of.seq_lens is not None:
        keys = token < of.seq_lens.shape[0] and of.seq_lens[token] > 0
    return keys


@inline
def source_of(block, token, parts, tokens, requests):
    """Returns the part from which a block takes the state of `token`, and whether the token has a state."""
    return min(block, parts - 1), token < tokens and has_keys(token, requests)


@kernel
def pack_blocks(
    rows: Out[T, "r n H D"],
    lses: Out[f32, "r n H"],
    partial: In[T, "p m H D"],
    partial_lse: In[f32, "p m H"],
    of: Requests(),
    token_step: index,
):
    """rows[i, t], lses[i, t] = the state of token t + i * token_step in part min(i, p - 1).

    Tokens at or past m, and tokens without keys (`has_keys`), are not read: their state is the identity.
    """
    for i, t, h in grid("r", "n", "H"):
        token = t + i * token_step
        part, live = source_of(i, token, shape("p"), shape("m"), of)
        store_state(load_state(partial[part, token, h], partial_lse[part, token, h], where=live), rows[i, t, h], lses[i, t, h])


@inline
def scale_of(row):
    """Returns the divisor of a row that is rounded to fp8: the row's largest magnitude / 448. It is at least
    SMALLEST / 448, so its reciprocal is finite."""
    return max(max(abs(row)), SMALLEST) / 448.0


@kernel(allow={"bounds"})
def pack_blocks_fp8(
    rows: InOut[f8e4m3fn, "r n H D"],
    lses: InOut[f32, "r n H"],
    scales: InOut[f32, "r n H"],
    partial: In[T, "p m H D"],
    partial_lse: In[f32, "p m H"],
    of: Requests(),
    token_step: index,
    own: index,
    travelling: index,
):
    """Like `pack_blocks`, with payloads in fp8 and one scale for each row: the row's largest magnitude / 448.

    A row with NaN or infinity becomes NaN. Block `own` (-1: no such block) stays on this rank, so only its lses are written.
    `travelling` is the number of the blocks that are sent.
    """
    for at, t, h in grid(travelling, "n", "H"):
        i = at + 1 if own >= 0 and at >= own else at
        token = t + i * token_step
        part, live = source_of(i, token, shape("p"), shape("m"), of)
        row = load(partial[part, token, h], where=live)
        scale = scale_of(row)
        rows[i, t, h] = row * (1.0 / scale)
        scales[i, t, h] = scale
        lses[i, t, h] = load(partial_lse[part, token, h], where=live, otherwise=-math.inf)
        if own >= 0 and at == 0:
            mine = t + own * token_step
            place, exists = source_of(own, mine, shape("p"), shape("m"), of)
            lses[own, t, h] = load(partial_lse[place, mine, h], where=exists, otherwise=-math.inf)


@inline
def store_merged(merged, t, h, to, live=True):
    """Merges a row's state with its sink, a logit in base e, and stores the result if the row is live. The store is
    predicated. With a branch, the sink would be merged as a separate state, and the result would have other bits."""
    if to.sink is not None:
        merged = merge(merged, sink(to.sink[h], base="e"))
    if to.out_scale is not None:
        store_state(merged, to.out[t, h], to.out_lse[t, h], scale=to.out_scale[0], where=live)
    else:
        store_state(merged, to.out[t, h], to.out_lse[t, h], where=live)


@kernel
def merge_blocks(
    to: Merged(),
    rows: In[T, "r n H D"],
    lses: In[f32, "r n H"],
):
    """Merges the states of r ranks in the order of the ranks, then the sink."""
    for t, h in grid("n", "H"):
        merged = identity("D", base=B)
        for i in range(shape("r")):
            merged = merge(merged, load_state(rows[i, t, h], lses[i, t, h], base=B))
        store_merged(merged, t, h, to)


@kernel
def merge_blocks_fp8(
    to: Merged(),
    rows: In[f8e4m3fn, "r n H D"],
    lses: In[f32, "r n H"],
    scales: In[f32, "r n H"],
    own: In[T, "n H D"] | None,
    rank: index,
):
    """Like `merge_blocks`, for payloads that `pack_blocks_fp8` made. The payloads of `rank` are `own`, unless `own` is omitted."""
    for t, h in grid("n", "H"):
        merged = identity("D", base=B)
        for i in range(shape("r")):
            if own is not None:
                row = where(i == rank, own[t, h], load(rows[i, t, h], where=i != rank) * scales[i, t, h])
            else:
                row = rows[i, t, h] * scales[i, t, h]
            merged = merge(merged, make_state(row, lses[i, t, h], base=B))
        store_merged(merged, t, h, to)


@kernel
def merge_peers(
    to: Merged(),
    rows: Peers[In[T, "n H D"]],
    lses: Peers[In[f32, "n H"]],
):
    """Like `merge_blocks`, for rows in the memory of the ranks that own them. All ranks launch this kernel."""
    for t, h in grid("n", "H"):
        merged = identity("D", base=B)
        for i in range(ranks(rows)):
            merged = merge(merged, load_state(rows[i][t, h], lses[i][t, h], base=B))
        store_merged(merged, t, h, to)


@kernel
def merge_peers_fp8(
    to: Merged(),
    rows: Peers[In[f8e4m3fn, "n H D"]],
    lses: Peers[In[f32, "n H"]],
    scales: Peers[In[f32, "n H"]],
    own: In[T, "n H D"] | None,
    rank: index,
):
    """Like `merge_blocks_fp8`, for rows in the memory of the ranks that own them. All ranks launch this kernel."""
    for t, h in grid("n", "H"):
        merged = identity("D", base=B)
        for i in range(ranks(rows)):
            if own is not None:
                row = where(i == rank, own[t, h], load(rows[i][t, h], where=i != rank) * scales[i][t, h])
            else:
                row = rows[i][t, h] * scales[i][t, h]
            merged = merge(merged, make_state(row, lses[i][t, h], base=B))
        store_merged(merged, t, h, to)


@kernel
def mask_rows_without_keys(lse: InOut[f32, "n H"], of: Requests(In[S, "s"], In[Q, "q"])):
    """Sets the lse of tokens without keys (`has_keys`) to -inf."""
    for t, h in grid("n", "H"):
        if not has_keys(t, of):
            lse[t, h] = -math.inf


@inline
def weighted(rows, lses, rank, t, h):
    """Returns a state whose payload is this rank's row times the rank's weight among all ranks, and whose lse is the
    merged lse of all ranks."""
    own = load_state(rows[t, h], lses[rank, t, h], base=B)
    merged = identity("D", base=B)
    for i in range(shape("r")):
        other = make_state(splat(0.0, "D"), load(lses[i, t, h], where=i != rank, otherwise=-math.inf), base=B)
        merged = merge(merged, other)
    return merge(merged, own)


@kernel
def weigh_rank(out: Out[O, "n H D"], out_lse: Out[f32, "n H"], rows: In[T, "n H D"], lses: In[f32, "r n H"], rank: index):
    """out = rows * B^(lses[rank] - out_lse), where out_lse is the log-sum-exp of all ranks' lses. `out` and `rows` may
    be the same tensor."""
    assume(rank >= 0)
    assume(rank < shape("r"))
    for t, h in grid("n", "H"):
        store_state(weighted(rows, lses, rank, t, h), out[t, h], out_lse[t, h])


@kernel
def pack_heads(rows: Out[E, "r n h D"], lses: Out[f32, "r n h"], out: In[E, "n k D"], lse: In[f32, "n k"]):
    """For each of r ranks, copies the rows and lses of the heads that the rank takes, bit for bit."""
    assume(shape("k") == shape("r") * shape("h"))
    for i, t, h in grid("r", "n", "h"):
        rows[i, t, h] = out[t, i * shape("h") + h]
        lses[i, t, h] = lse[t, i * shape("h") + h]


@kernel
def merge_stats_blocks(out: Out[T, "n H D"], rows: In[T, "r n H D"], stats: In[f32, "r n H two=2"], scale: f32):
    """Merges r states that have statistics (max, sum) in place of an lse: lse = max + log(sum). Multiplies the rows by
    `scale`."""
    for t, h in grid("n", "H"):
        merged = identity("D", base="e")
        for i in range(shape("r")):
            largest, total = stats[i, t, h, 0], stats[i, t, h, 1]
            empty = abs(largest) == math.inf or total == 0.0
            lse = -math.inf if empty else largest + log(total)
            merged = merge(merged, make_state(rows[i, t, h] * scale, lse, base="e"))
        store_state(merged, out[t, h])


@kernel
def fold_state(out: InOut[f32, "b n H D"], lse: InOut[f32, "b n H"], block: In[T, "b n H D"], block_lse: In[f32, "b n H"]):
    """out, lse = (out, lse) (+) (block, block_lse), summed and kept in f32."""
    for i, t, h in grid("b", "n", "H"):
        merged = merge(load_state(out[i, t, h], lse[i, t, h], base="e"), load_state(block[i, t, h], block_lse[i, t, h], base="e"))
        store_state(merged, out[i, t, h], lse[i, t, h])
