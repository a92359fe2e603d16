"""Merges of groups of states through maps."""

from __future__ import annotations

import math
from typing import Any

from mlafix.dsl import (
    Base,
    DType,
    In,
    InOut,
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
    store_state,
)
from mlafix.kernels.scaling import Scaling, result, scaled, store_rows

T = DType("T")
B = Base("B", default="e")
C = Base("C", default="e")
O = DType("O")  # noqa: E741 (the library's name)
P = DType("T", default=f32)


@kernel
def merge_states_mapped(
    out: InOut[O, "n H D"],
    out_lse: InOut[f32, "n H"] | None,
    parts: In[P, "p H D"],
    lses: In[f32, "p H"],
    indptr: In[i32, "g1"],
    part_map: In[i32, "k"] | None,
    row_map: In[i32, "g"] | None,
    sinks: In[f32, "H"] | None,
    min_parts: i32,
    empty_lse: f32,
):
    """Merges groups of partial attention states through maps. For each group g with its parts j in [indptr[g], indptr[g + 1]):

      out[t], out_lse[t] = (+) over j of (parts[i], lses[i]),  t = row_map[g] or g,  i = part_map[j] or j

      out      [n, H, D]  O    written in the rows that groups name
      out_lse  [n, H]     f32  likewise; optional
      parts    [p, H, D]  T    f32 as a rule
      lses     [p, H]     f32
      indptr   [g1]       i32  one entry more than groups
      part_map [k]        i32  the row of each part; optional
      row_map  [g]        i32  the row of each group, no two alike; optional
      sinks    [H]        f32  a logit without a value, in base e, beside the parts: out has it, out_lse has not; optional
      min_parts           i32  groups of fewer parts are left out: 0 writes where there are none, 2 leaves what the writer of an only part
                               has written
      empty_lse           f32  stored for -inf, which is where nothing was merged

    The lses are in base e, or in base 2 where B = 2, and out_lse in base e, or in base 2 where C = 2. A group of a row that is none is
    left out, and a part that is none is empty. A group that is not 0 <= indptr[g] <= indptr[g + 1] has no parts.
    """
    n, p, g1 = shape("n"), shape("p"), shape("g1")
    distinct(row_map)
    for g, h in grid("g1", "H"):
        known = g + 1 < g1
        first = load(indptr[g], where=known)
        last = load(indptr[g + 1], where=known)
        t = g
        if present(row_map):
            t = index(load(row_map[g], where=g < row_map.shape[0], otherwise=-1))
        sound = 0 <= first <= last
        count = last - first if sound else 0
        if known and 0 <= t < n and count >= min_parts:
            # Parts past the end of the map, or of the parts, are empty.
            has_map = present(part_map)
            named = part_map.shape[0] if has_map else p
            start, end = index(first), index(last)
            merged = identity("D")
            for j in range(start, min(end, named) if sound else start):
                i = j
                if has_map:
                    i = index(load(part_map[j], where=j < part_map.shape[0], otherwise=-1))
                merged = merge(merged, load_state(parts[i, h], lses[i, h], where=0 <= i < p))
            whole = merge(merged, sink(load(sinks[h], where=present(sinks), otherwise=-math.inf), base="e"))
            store_state(whole, out[t, h], None)
            lse = lse_of(rebase(merged, C))
            out_lse[t, h] = lse if lse != -math.inf else empty_lse


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


@scaled
def merge_mapped_states(scaling: Scaling) -> Any:
    """Groups of parts, through maps; rows that no group names are left, and their scales."""
    of = scaling.dim

    @kernel(allow={"races"})  # with `first_row` the map's entries, which are distinct, are more cases than the proofs look at
    def merge_mapped_states(
        to: result(scaling, some=True),
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
                store_rows(rows, t, p, to)
                for j in range(scaling.joined):
                    lse = lse_of(rebase(merged[j], C))
                    out_lse[t, heads[j]] = lse if lse != -math.inf else empty_lse

    return merge_mapped_states
