"""Merges whose result is fp8 or fp4 with a scale for each group of a row (`out_scales` in `mlafix.ops`), and the quantisation by
itself, compiled when first used. `_scalings` says how results are scaled, and stores them.
"""

from __future__ import annotations

import math
from typing import Any

from ._scalings import Result, Scaling, grouped, joined_rows, store_rows, store_states
from .dsl import (
    Base,
    DType,
    In,
    InOut,
    List,
    Out,
    distinct,
    f32,
    grid,
    i32,
    identity,
    index,
    inline,
    kernel,
    load,
    load_state,
    lse_of,
    merge,
    payload,
    present,
    rebase,
    shape,
    sink,
    u8,
    where,
)

T = DType("T")
B = Base("B", default="e")
C = Base("C", default="e")


@kernel(allow={"bounds"})
def clear_padding(scales: InOut[u8, "m c"].swizzle("128x4"), first: index, last: index, end: index, columns: index):
    """Zeros in the padding of tiles: behind `columns` of the rows from `first` to `last`, and in rows from there to `end`."""
    for t in grid("m"):
        if first <= t < end:
            for c in range(columns if t < last else 0, shape("c")):
                scales[t, c] = 0


def quantised_rows(scaling: Scaling) -> Any:
    """Rows that are there."""
    of = scaling.dim

    @kernel
    def quantize_rows(
        out: Out[scaling.stored, "n H (G K)"],
        out_scales: scaling.scales(),
        global_scale: In[f32, "one=1"] | None,
        first_row: index,
        x: In[T, "n H (G K)"],
    ):
        for t, p in grid("n", of):
            rows = [f32(x[t, p * scaling.joined + j]) for j in range(scaling.joined)]
            store_rows(rows, t, p, Result(out, out_scales, global_scale, first_row, scaling))

    return quantize_rows


@inline
def two(prefix, prefix_lse, suffix, suffix_lse, t, h, in_context, copies):
    """The row and the lse of prefix and suffix."""
    p = load_state(prefix[t, h], prefix_lse[h, t], where=in_context, base=B)
    s = load_state(suffix[t, h], suffix_lse[h, t], base=B)
    merged = merge(p, s)
    row, lse = payload(merged), lse_of(merged)
    if copies:
        if not in_context:
            row, lse = f32(suffix[t, h]), suffix_lse[h, t]
    return row, lse


def two_states(scaling: Scaling, copies: bool) -> Any:
    """Prefix and suffix; `copies`: tokens past the context are copies of the suffix, its lse as it is."""
    of = scaling.dim

    @kernel
    def merge_two_states(
        out: Out[scaling.stored, "n H (G K)"],
        out_scales: scaling.scales(),
        global_scale: In[f32, "one=1"] | None,
        first_row: index,
        out_lse: Out[f32, "H n"] | None,
        prefix: In[T, "n H (G K)"],
        prefix_lse: In[f32, "H n"],
        suffix: In[T, "n H (G K)"],
        suffix_lse: In[f32, "H n"],
        context_rows: index.at_most("n"),
    ):
        for t, p in grid("n", of):
            in_context = t < context_rows
            heads = [p * scaling.joined + j for j in range(scaling.joined)]
            results = [two(prefix, prefix_lse, suffix, suffix_lse, t, h, in_context, copies) for h in heads]
            store_rows([result[0] for result in results], t, p, Result(out, out_scales, global_scale, first_row, scaling))
            for j in range(scaling.joined):
                out_lse[heads[j], t] = results[j][1]

    return merge_two_states


@inline
def dense(v, s, t, h):
    merged = identity("(G K)", base=B)
    for i in range(shape("k")):
        merged = merge(merged, load_state(v[t, i, h], s[t, i, h], base=B))
    return merged


def dense_states(scaling: Scaling) -> Any:
    """k states of one array, in its order."""
    of = scaling.dim

    @kernel
    def merge_dense_states(
        out: Out[scaling.stored, "n H (G K)"],
        out_scales: scaling.scales(),
        global_scale: In[f32, "one=1"] | None,
        first_row: index,
        out_lse: Out[f32, "n H"] | None,
        v: In[T, "n k H (G K)"],
        s: In[f32, "n k H"],
    ):
        for t, p in grid("n", of):
            merged = [dense(v, s, t, p * scaling.joined + j) for j in range(scaling.joined)]
            store_states(merged, t, p, Result(out, out_scales, global_scale, first_row, scaling), out_lse)

    return merge_dense_states


@inline
def listed(vs, ss, t, h):
    # One merge of them all, as without scales: a running one rounds otherwise.
    p = [load_state(vs[i][t, h], ss[i][t, h], where=i < len(vs), base=B) for i in range(8)]
    return merge(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7])


def listed_states(scaling: Scaling) -> Any:
    """Up to eight states, of arrays with the same strides that are apart from the result."""
    of = scaling.dim

    @kernel
    def merge_listed_states(
        out: Out[scaling.stored, "n H (G K)"],
        out_scales: scaling.scales(),
        global_scale: In[f32, "one=1"] | None,
        first_row: index,
        out_lse: Out[f32, "n H"] | None,
        vs: List[In[T, "n H (G K)"], 8, "k"],
        ss: List[In[f32, "n H"], 8, "k"],
    ):
        for t, p in grid("n", of):
            merged = [listed(vs, ss, t, p * scaling.joined + j) for j in range(scaling.joined)]
            store_states(merged, t, p, Result(out, out_scales, global_scale, first_row, scaling), out_lse)

    return merge_listed_states


@inline
def run(v, s, start, end, h):
    merged = identity("(G K)", base=B)
    for i in range(start, end):
        merged = merge(merged, load_state(v[i, h], s[i, h], base=B))
    return merged


def ragged_states(scaling: Scaling) -> Any:
    """Runs of states; a run that is not 0 <= start <= end <= nnz is empty."""
    of = scaling.dim

    @kernel
    def merge_ragged_states(
        out: Out[scaling.stored, "n H (G K)"],
        out_scales: scaling.scales(),
        global_scale: In[f32, "one=1"] | None,
        first_row: index,
        out_lse: Out[f32, "n H"] | None,
        v: In[T, "nnz H (G K)"],
        s: In[f32, "nnz H"],
        indptr: In[i32, "n1"],
    ):
        for t, p in grid("n", of):
            known = t + 1 < shape("n1")
            start, end = index(load(indptr[t], where=known)), index(load(indptr[t + 1], where=known))
            sound = 0 <= start and start <= end and end <= shape("nnz")
            merged = [run(v, s, start, end if sound else start, p * scaling.joined + j) for j in range(scaling.joined)]
            store_states(merged, t, p, Result(out, out_scales, global_scale, first_row, scaling), out_lse)

    return merge_ragged_states


@inline
def listed_parts(parts, lses, part_map, start, end, h):
    merged = identity("(G K)", base=B)
    for j in range(start, end):
        i = j
        if present(part_map):
            i = index(load(part_map[j], where=j < part_map.shape[0], otherwise=-1))
        merged = merge(merged, load_state(parts[i, h], lses[i, h], where=0 <= i < shape("p"), base=B))
    return merged


@inline
def with_sink(merged, sinks, h):
    whole = merged
    if present(sinks):
        whole = merge(merged, sink(sinks[h], base="e"))
    return whole


def mapped_states(scaling: Scaling) -> Any:
    """Groups of parts, through maps; rows that no group names are left, and their scales."""
    of = scaling.dim

    @kernel(allow={"races"})  # with `first_row` the map's entries, which are distinct, are more cases than the proofs look at
    def merge_mapped_states(
        out: InOut[scaling.stored, "n H (G K)"],
        out_scales: scaling.scales(some=True),
        global_scale: In[f32, "one=1"] | None,
        first_row: index,
        out_lse: InOut[f32, "n H"] | None,
        parts: In[T, "p H (G K)"],
        lses: In[f32, "p H"],
        indptr: In[i32, "g1"],
        part_map: In[i32, "k"] | None,
        row_map: In[i32, "g"] | None,
        sinks: In[f32, "H"] | None,
        min_parts: i32,
        empty_lse: f32,
    ):
        distinct(row_map)
        for g, p in grid("g1", of):
            known = g + 1 < shape("g1")
            first, last = load(indptr[g], where=known), load(indptr[g + 1], where=known)
            t = g
            if present(row_map):
                t = index(load(row_map[g], where=g < row_map.shape[0], otherwise=-1))
            sound = 0 <= first <= last
            count = last - first if sound else 0
            if known and 0 <= t < shape("n") and count >= min_parts:
                # Parts past the end of the map, or of the parts, are empty.
                named = part_map.shape[0] if present(part_map) else shape("p")
                start, end = index(first), index(last)
                heads = [p * scaling.joined + j for j in range(scaling.joined)]
                merged = [listed_parts(parts, lses, part_map, start, min(end, named) if sound else start, h) for h in heads]
                rows = [payload(with_sink(merged[j], sinks, heads[j])) for j in range(scaling.joined)]
                store_rows(rows, t, p, Result(out, out_scales, global_scale, first_row, scaling))
                for j in range(scaling.joined):
                    lse = lse_of(rebase(merged[j], C))
                    out_lse[t, heads[j]] = lse if lse != -math.inf else empty_lse

    return merge_mapped_states


@inline
def splits(partial, partial_lse, i, j, h):
    merged = identity("(G K)", base=B)
    for part in range(shape("s")):
        merged = merge(merged, load_state(partial[part, i, j, h], partial_lse[part, i, j, h], base=B))
    return merged


def split_states(scaling: Scaling) -> Any:
    """The splits of split-KV attention; scales have no words."""
    of = scaling.dim

    @kernel(allow={"races"})  # row (i, j) of n by l is number i * l + j, a product that the proofs do not know
    def merge_split_states(
        out: Out[scaling.stored, "b l H (G K)"],
        out_scales: scaling.scales(f"b l {of} G"),
        global_scale: In[f32, "one=1"] | None,
        first_row: index,
        out_lse: Out[f32, "b l H"] | None,
        partial: In[T, "s b l H (G K)"],
        partial_lse: In[f32, "s b l H"],
    ):
        for i, j, p in grid("b", "l", of):
            heads = [p * scaling.joined + k for k in range(scaling.joined)]
            merged = [splits(partial, partial_lse, i, j, h) for h in heads]
            if scaling.is_static:
                out[i, j, p] = payload(merged[0]) * (1.0 / out_scales[0])
            elif scaling.joined > 1:
                scale, elements = joined_rows([payload(state) for state in merged], scaling)
                out_scales[i, j, p, 0] = scale
                for k in range(scaling.joined):
                    out[i, j, heads[k]] = elements[k]
            else:
                scale, elements = grouped(payload(merged[0]), Result(out, out_scales, global_scale, first_row, scaling))
                if scaling.in_tiles:
                    out_scales[first_row + i * shape("l") + j, p] = scale
                else:
                    out_scales[i, j, p] = scale
                out[i, j, p] = elements
            for k in range(scaling.joined):
                out_lse[i, j, heads[k]] = lse_of(merged[k])

    return merge_split_states
