"""Kernels that merge any number of states per row: k states of one array, a run of adjacent states of one array, states
of separate arrays, and the partial results of split-KV attention."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from mlafix.dsl import (
    Base,
    DType,
    In,
    Out,
    exp2,
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
    log2,
    lse_of,
    make_state,
    merge,
    payload,
    present,
    rebase,
    shape,
    sink,
    splat,
    store_state,
)
from mlafix.kernels.scaling import Scaling, as_stored, gated, heads_of, result, scaled_or_bare, store_states, turned
from mlafix.kernels.segments import segment_of

T = DType("T")
B = Base("B", default="e")
# The base of the result's lse: B, unless a call binds another base.
RESULT = Base("ResultBase", default=B)
O = DType("O")  # noqa: E741 (the library's name)
P = DType("T", default=f32)


@inline
def merged_dense(v, s, t, h, row):
    merged = identity(row)
    for j in range(v.shape[1]):
        merged = merge(merged, load_state(v[t, j, h], s[t, j, h]))
    return rebase(merged, RESULT)


@scaled_or_bare
def merge_states(scaling: Scaling) -> Any:
    over, row = scaling.dim, scaling.row

    @kernel
    def merge_states(to: result(scaling), out_lse: Out[f32, "n H"] | None, v: In[T, f"n k H {row}"], s: In[f32, "n k H"]):
        """Merges the k partial attention states of each (token, head) row: out, out_lse = (+) over j of (v[:, j], s[:, j]).

          out     [n, H, D]    T    written
          out_lse [n, H]       f32  written; optional
          v       [n, k, H, D] T    each row is read once
          s       [n, k, H]    f32

        B is the base of the lses, e by default. ResultBase is the base of out_lse, B by default. k may be 0, which gives
        0, -inf. Binding it (k = 4) generates code for that k only.
        """
        for t, h in grid("n", over):
            merged = [merged_dense(v, s, t, head, row) for head in heads_of(h, scaling)]
            store_states(merged, t, h, to, out_lse)

    return merge_states


@inline
def merged_run(v, s, start, end, sound, h, row):
    merged = identity(row)
    for i in range(start, end if sound else start):
        merged = merge(merged, load_state(v[i, h], s[i, h]))
    return rebase(merged, RESULT)


@scaled_or_bare
def merge_states_ragged(scaling: Scaling) -> Any:
    over, row = scaling.dim, scaling.row

    @kernel
    def merge_states_ragged(
        to: result(scaling),
        out_lse: Out[f32, "n H"] | None,
        v: In[T, f"nnz H {row}"],
        s: In[f32, "nnz H"],
        indptr: In[i32, "n1"],
    ):
        """Merges a run of partial attention states per token: out[t], out_lse[t] = (+) over i in [indptr[t], indptr[t + 1]) of (v[i], s[i]).

          out     [n, H, D]   T    written
          out_lse [n, H]      f32  written; optional
          v       [nnz, H, D] T    each row is read once
          s       [nnz, H]    f32
          indptr  [n1]        i32  n + 1 entries

        B is the base of the lses, e by default. ResultBase is the base of out_lse, B by default. An empty run gives 0, -inf,
        and so does a run that is not part of [0, nnz].
        """
        nnz, n1 = shape("nnz"), shape("n1")
        for t, h in grid("n", over):
            following = t + 1
            known = following < n1
            first, last = load(indptr[t], where=known), load(indptr[following], where=known)
            start, end = index(first), index(last)
            sound = 0 <= start <= end <= nnz
            merged = [merged_run(v, s, start, end, sound, head, row) for head in heads_of(h, scaling)]
            store_states(merged, t, h, to, out_lse)

    return merge_states_ragged


@dataclasses.dataclass(frozen=True)
class Listed:
    """Arguments for up to eight states in separate buffers. `listed` declares them."""

    v0: Any
    s0: Any
    v1: Any
    s1: Any
    v2: Any
    s2: Any
    v3: Any
    s3: Any
    v4: Any
    s4: Any
    v5: Any
    s5: Any
    v6: Any
    s6: Any
    v7: Any
    s7: Any


def listed(row: str) -> Listed:
    """Declares the arguments for up to eight states, whose rows have the dims `row`. All states but the first
    are optional."""
    v, s = In[T, f"n H {row}"], In[f32, "n H"]
    return Listed(v, s, *(one | None for _ in range(7) for one in (v, s)))


@inline
def merged_list(of, t, h):
    merged = load_state(of.v0[t, h], of.s0[t, h])
    others = ((of.v1, of.s1), (of.v2, of.s2), (of.v3, of.s3), (of.v4, of.s4), (of.v5, of.s5), (of.v6, of.s6), (of.v7, of.s7))
    for v, s in others:
        merged = merge(merged, load_state(v[t, h], s[t, h]))
    return merged


@scaled_or_bare
def merge_states_list(scaling: Scaling) -> Any:
    over = scaling.dim

    @kernel
    def merge_states_list(to: result(scaling), out_lse: Out[f32, "n H"] | None, of: listed(scaling.row)):
        """Merges up to eight partial attention states in separate buffers: out, out_lse = (v0, s0) (+) … (+) (v7, s7).

          out     [n, H, D] T    written; may be one of v0 … v7 itself
          out_lse [n, H]    f32  written; optional; may be one of s0 … s7 itself
          v0 … v7 [n, H, D] T    all but v0 optional; omitted states are ignored
          s0 … s7 [n, H]    f32  likewise

        B is the base of the lses, e by default. ResultBase is the base of out_lse, B by default.
        """
        for t, h in grid("n", over):
            merged = [rebase(merged_list(of, t, head), RESULT) for head in heads_of(h, scaling)]
            store_states(merged, t, h, to, out_lse)

    return merge_states_list


@inline
def merged_splits(partial, partial_lse, i, j, h, row):
    merged = identity(row)
    for k in range(shape("s")):
        merged = merge(merged, load_state(partial[k, i, j, h], partial_lse[k, i, j, h]))
    return rebase(merged, RESULT)


def split_races(how: Scaling) -> set[str]:
    """Returns the warnings that kernels of splits suppress. Scales in tiles are stored to row i * l + j. The proofs
    cannot bound this product, so they do not show that the rows are distinct."""
    return set() if how.is_bare else {"races"}


@dataclasses.dataclass(frozen=True)
class Beside:
    """Arguments that a kernel has in addition to the rows of combined splits. `beside` declares them.

    Args:
        sinks: the sink of each head, a logit in base e: `out` includes it, and `out_lse` does not. None if rows are bare.
    """

    out_lse: Any
    sinks: Any


def beside(how: Scaling) -> Beside:
    """Declares the arguments that a kernel has in addition to the rows of combined splits."""
    return Beside(Out[f32, "b l H"] | None, None if how.is_bare else In[f32, "H"] | None)


@inline
def row_beside_sink(state, h, sinks):
    if present(sinks):
        row = payload(merge(state, sink(sinks[h], base="e")))
    else:
        row = payload(state)
    return row


@inline
def store_split(merged, i, j, h, to, more):
    """Stores merged states as `scaling.store_states` does, but with two indices per token. Merges sinks into the rows,
    if there are sinks."""
    if to.how.is_bare:
        store_state(merged[0], to.out[i, j, h], more.out_lse[i, j, h])
    else:
        store_split_rows(merged, i, j, h, heads_of(h, to.how), to, more.out_lse, more.sinks)


@inline
def store_split_rows(merged, i, j, p, heads, to, out_lse, sinks):
    rows = [row_beside_sink(merged[k], heads[k], sinks) for k in range(to.how.joined)]
    if to.gate is not None:
        rows = [gated(rows[k], lse_of(merged[k]), to.gate[i, j, heads[k]]) for k in range(to.how.joined)]
    if to.how.turned > 0:
        position = to.positions[i, j]
        rows = [turned(row, position, to) for row in rows]
    scale, elements = as_stored(rows, to)
    if to.how.joined > 1:
        to.out_scales[i, j, p, 0, 0] = scale
    elif to.how.tile_rows > 0:
        to.out_scales[to.first_row + i * shape("l") + j, p] = scale
    elif to.how.by_head:
        to.out_scales[i, j, p, 0] = scale
    elif not (to.how.is_plain or to.how.is_static):
        to.out_scales[i, j, p // shape("Q"), p % shape("Q")] = scale
    for k in range(to.how.joined):
        to.out[i, j, heads[k]] = elements[k]
    if to.how.pads:
        if p == shape("H") - 1:
            for other in range(p % shape("Q") + 1, shape("Q")):
                to.out_scales[i, j, p // shape("Q"), other] = 0.0
    for k in range(to.how.joined):
        out_lse[i, j, heads[k]] = lse_of(merged[k])


@scaled_or_bare
def combine_split_kv(scaling: Scaling) -> Any:
    over, row = scaling.dim, scaling.row

    @kernel(allow=split_races(scaling))
    def combine_split_kv(
        to: result(scaling, "b l", bare=O),
        more: beside(scaling),
        partial: In[P if scaling.is_bare else T, f"s b l H {row}"],
        partial_lse: In[f32, "s b l H"],
    ):
        """Combines the partial results of attention over s splits of the keys: out, out_lse = (+) over i of (partial[i], partial_lse[i]).

          out         [b, l, H, D]    O    written
          out_lse     [b, l, H]       f32  written; optional
          partial     [s, b, l, H, D] T    each row is read once; f32 as a rule
          partial_lse [s, b, l, H]    f32

        B is the base of the lses, e by default. ResultBase is the base of out_lse, B by default. s may be 0, which gives
        0, -inf. Binding it (s = 4) generates code for that s only.
        """
        for i, j, h in grid("b", "l", over):
            merged = [merged_splits(partial, partial_lse, i, j, head, row) for head in heads_of(h, scaling)]
            store_split(merged, i, j, h, to, more)

    return combine_split_kv


# -- Splits whose number depends on lengths, or that are not normalised ------------------------------------------------

I = DType("I", default=i32)  # noqa: E741
M = DType("M", default=f32)


@dataclasses.dataclass(frozen=True)
class Splits:
    """Arguments for the splits of split-KV attention. `splits_of` declares them. A row may have fewer splits than the
    size of dim s; the splits past these take no part.

    Args:
        lses: the lse of each split. If `sums` is given, the maximum of the split's scores; the split's row is then the
            sum of weights times values.
        sums: the sum of the weights of each split. None if splits are normalised.
        lens: the number of keys of each row of dim b or, if `starts` is given, of each sequence. None: all splits of a
            row take part.
        starts: sequence s has the tokens [starts[s], starts[s + 1]), numbered over b and l.
        split_len: the number of keys per split. If 0, the keys are cut into tiles of `tile_len` keys, and a row's tiles
            are divided evenly among its splits.
        halvings: see `segment_of`.
        to_log2: the factor that converts maxima to base 2.
        beside, beside_lse: a normalised state that is merged with the splits.
    """

    partial: Any
    lses: Any
    beside: Any
    beside_lse: Any = In[f32, "b l H"] | None
    sums: Any = In[f32, "s b l H"] | None
    lens: Any = In[I, "q"] | None
    starts: Any = In[i32, "q1"] | None
    split_len: Any = index
    tile_len: Any = index
    halvings: Any = index
    to_log2: Any = f32


def splits_of(dtype: Any, row: str) -> Splits:
    """Declares the arguments for splits, whose rows have the dims `row`."""
    return Splits(In[dtype, f"s b l H {row}"], In[f32, "s b l H"], In[M, f"b l H {row}"] | None)


@inline
def length_of(i, j, of):
    """Returns the number of keys of a row, or 0 if the token is in no sequence."""
    at, known = i, i < of.lens.shape[0]
    if present(of.starts):
        token, last = i * shape("l") + j, of.starts.shape[0] - 1
        known = last > 0 and of.starts[0] <= token and token < of.starts[last]
        if known:
            at = segment_of(token, of.starts, i64(of.starts[0]), of.halvings)
        known = known and at < of.lens.shape[0]
    return i64(load(of.lens[at], where=known))


@inline
def ceiling(length, each):
    """Returns length / each, rounded up; 0 for a length of 0 or less. Subtracts 1 from the length, since a sum of
    `length` and `each` may wrap around."""
    return (length - 1) // max(each, 1) + 1 if length > 0 else 0


@inline
def count_of(i, j, of):
    """Returns the number of splits of a row that take part."""
    count = i64(shape("s"))
    if present(of.lens):
        tiles = ceiling(length_of(i, j, of), i64(of.split_len) if of.split_len > 0 else i64(of.tile_len))
        each = 1 if of.split_len > 0 else ceiling(tiles, count)
        count = min(ceiling(tiles, each), count)
    return count


@inline
def maximum_of(k, i, j, h, count, of):
    """Returns the maximum of a split's scores. Returns -inf if the split is empty or takes no part."""
    largest = load(of.lses[k, i, j, h], where=k < count, otherwise=-math.inf)
    total = load(of.sums[k, i, j, h], where=k < count)
    return -math.inf if abs(largest) == math.inf or total == 0.0 else largest


@inline
def summed(i, j, h, count, of, row):
    """Merges splits that are not normalised. Reads each split once, and divides once."""
    largest = -math.inf
    for k in range(shape("s")):
        largest = max(largest, maximum_of(k, i, j, h, count, of))
    rows, total = splat(0.0, row), 0.0
    for k in range(shape("s")):
        own = maximum_of(k, i, j, h, count, of)
        weight = 0.0 if own == -math.inf else exp2((own - largest) * of.to_log2)
        counts = k < count and weight != 0.0
        rows = rows + load(of.partial[k, i, j, h], where=counts) * weight
        total = total + load(of.sums[k, i, j, h], where=counts) * weight
    empty = largest == -math.inf
    # If the sum overflows, the row and its lse become NaN. An lse of +inf would mark the row as empty.
    divisor = 1.0 if empty else math.nan if total == math.inf else total
    return make_state(rows / divisor, -math.inf if empty else largest + log2(divisor) / of.to_log2, base=B)


@inline
def counted(i, j, h, of, row):
    """Merges the splits of a row that take part. The result is in the base RESULT."""
    count = count_of(i, j, of)
    merged = identity(row, base=B)
    if present(of.sums):
        merged = summed(i, j, h, count, of, row)
    else:
        for k in range(shape("s")):
            merged = merge(merged, load_state(of.partial[k, i, j, h], of.lses[k, i, j, h], where=k < count, base=B))
    return rebase(merge(merged, load_state(of.beside[i, j, h], of.beside_lse[i, j, h], base=B)), RESULT)


@scaled_or_bare
def combine_split_kv_counted(scaling: Scaling) -> Any:
    over, row = scaling.dim, scaling.row

    @kernel(allow=split_races(scaling))
    def combine_split_kv_counted(
        to: result(scaling, "b l", bare=O),
        more: beside(scaling),
        of: splits_of(P if scaling.is_bare else T, row),
    ):
        """Combines splits like combine_split_kv. The number of splits may depend on lengths on the device, splits may lack normalisation, and
        another state may be merged with them. Splits that take no part are not read."""
        for i, j, h in grid("b", "l", over):
            merged = [counted(i, j, head, of, row) for head in heads_of(h, scaling)]
            store_split(merged, i, j, h, to, more)

    return combine_split_kv_counted
