"""Merges whose result is fp8 or fp4 with a scale for each group of a row (`out_scales` in `mlafix.ops`), and the quantisation by
itself, compiled when first used.

Scales are `[n, P, Q, G]`: that of group g of head h is at `[t, h // Q, h % Q, g]`. With Q = 1 these are tensors `[n, H, G]` of
any strides; with Q * G = 4 bytes, words that hold the scales of four groups. In tiles they are `[m, H, G]`, and token t has the row
`first_row + t`.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from .dsl import (
    Base,
    DType,
    In,
    InOut,
    List,
    Out,
    distinct,
    f4e2m1,
    f8e4m3fn,
    f8e8m0,
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
    where,
)

T = DType("T")
S = DType("S")
B = Base("B", default="e")
C = Base("C", default="e")

# The least magnitude that a group is scaled for, and the least scale that is a power of two: those of engines' quantisers.
SMALLEST = 1e-10
# 1 / 6, in f32.
SIXTH = float.fromhex("0x1.555556p-3")
# The next f32 above 1 / 2.
ABOVE_HALF = float.fromhex("0x1.000002p-1")


@dataclasses.dataclass(frozen=True)
class Scaling:
    """How a result is quantised.

    Args:
        is_power: scales are powers of two, rounded up.
        rounding: the dtype that rows are rounded to first; f32 for none.
        pads: heads do not fill the last words of scales.
        is_fp4: elements are f4e2m1: with scales that are powers of two MXFP4, else NVFP4, whose scales are f8e4m3fn and have a
            global scale.
        in_tiles: scales lie in tiles of 128 x 4.
        floors: scales of MXFP4 are rounded down.
        is_static: elements are f8e4m3fn with one scale, which is given in the place of scales; G is 1.
    """

    is_power: bool
    rounding: Any
    pads: bool
    is_fp4: bool = False
    in_tiles: bool = False
    floors: bool = False
    is_static: bool = False

    @property
    def parts(self) -> tuple[bool, Any, bool, bool, bool, bool, bool]:
        return self.is_power, self.rounding, self.pads, self.is_fp4, self.in_tiles, self.floors, self.is_static


def stored(is_fp4: bool) -> Any:
    """The dtype of a result."""
    return f4e2m1 if is_fp4 else f8e4m3fn


def scales_of(dims: str, in_tiles: bool, is_static: bool = False, some: bool = False) -> Any:
    """The type of scales, which have these dims where they are not in tiles; or of the one that is given. `some`: rows may be left."""
    if is_static:
        return In[f32, "one=1"]
    if in_tiles:
        return InOut[S, "m H G"].swizzle("128x4")
    return InOut[S, dims] if some else Out[S, dims]


@inline
def scaled(row, is_power, rounding):
    """A row's scales, the groups' largest magnitudes / 448, and its quotients by them: vLLM's per_token_group_quant_8bit.

    In f32 and correctly rounded: scale = max(largest, 1e-10) / 448, quotient = element / scale. A power of two is the least one
    that is not below max(scale, 1e-10).
    """
    row = rounding(row)
    scale = max(max(abs(row), along="K"), SMALLEST) / 448.0
    if is_power:
        scale = f8e8m0(max(scale, SMALLEST))
    return scale, row / scale


@inline
def halved(row, global_scale, rounding):
    """A row's scales in e4m3, and what its elements are in e2m1: vLLM's scaled_fp4_quant and FlashInfer's nvfp4_quantize.

    In f32 and correctly rounded, where engines on a GPU have approximate reciprocals: scale = e4m3(global * (largest * (1 / 6))), and
    element * (1 / (scale * (1 / global))), or element * 0 where the scale is 0.
    """
    row = rounding(row)
    scale = f8e4m3fn(global_scale * (max(abs(row), along="K") * SIXTH))
    return scale, row * where(scale != 0.0, 1.0 / (scale * (1.0 / global_scale)), 0.0)


@inline
def microscaled(row, floors, rounding):
    """A row's scales, powers of two, and what its elements are in e2m1: MXFP4.

    Rounded down, the scale is the largest power of two that is not above the largest magnitude, divided by 4: OCP MX v1.0, 6.3.
    Rounded up, it is the least one that is not below largest * (1 / 6): FlashInfer's mxfp4_quantize, but for its approximate
    reciprocal of 6. Quotients by powers of two are products.
    """
    row = rounding(row)
    largest = max(abs(row), along="K")
    if floors:
        # A little more than half of it rounds up to the power of two that is not above it.
        scale = f8e8m0(f8e8m0(largest * ABOVE_HALF) * 0.25)
    else:
        scale = f8e8m0(largest * SIXTH)
    return scale, row * (1.0 / scale)


@inline
def grouped(row, global_scale, is_power, rounding, is_fp4, floors):
    """A row's scales, and its elements as they are stored."""
    if is_fp4:
        if is_power:
            scale, elements = microscaled(row, floors, rounding)
        else:
            scale, elements = halved(row, global_scale[0], rounding)
    else:
        scale, elements = scaled(row, is_power, rounding)
    return scale, elements


@inline
def store_groups(row, t, h, out, out_scales, global_scale, first_row, is_power, rounding, pads, is_fp4, in_tiles, floors, is_static):
    """A row with its scales; the last head clears what is left of its word of scales; nothing clears the padding of tiles."""
    if is_static:
        out[t, h] = row * (1.0 / out_scales[0])
    else:
        scale, elements = grouped(row, global_scale, is_power, rounding, is_fp4, floors)
        if in_tiles:
            out_scales[first_row + t, h] = scale
        else:
            out_scales[t, h // shape("Q"), h % shape("Q")] = scale
        out[t, h] = elements
    if pads:
        if h == shape("H") - 1:
            for other in range(h % shape("Q") + 1, shape("Q")):
                out_scales[t, h // shape("Q"), other] = 0.0


def quantised_rows(scaling: Scaling) -> Any:
    """Rows that are there."""
    is_power, rounding, pads, is_fp4, in_tiles, floors, is_static = scaling.parts

    @kernel
    def quantize_rows(
        out: Out[stored(is_fp4), "n H (G K)"],
        out_scales: scales_of("n P Q G", in_tiles, is_static),
        global_scale: In[f32, "one=1"] | None,
        first_row: index,
        x: In[T, "n H (G K)"],
    ):
        for t, h in grid("n", "H"):
            store_groups(f32(x[t, h]), t, h, out, out_scales, global_scale, first_row, is_power, rounding, pads, is_fp4, in_tiles, floors, is_static)

    return quantize_rows


def two_states(scaling: Scaling, copies: bool) -> Any:
    """Prefix and suffix; `copies`: tokens past the context are copies of the suffix, its lse as it is."""
    is_power, rounding, pads, is_fp4, in_tiles, floors, is_static = scaling.parts

    @kernel
    def merge_two_states(
        out: Out[stored(is_fp4), "n H (G K)"],
        out_scales: scales_of("n P Q G", in_tiles, is_static),
        global_scale: In[f32, "one=1"] | None,
        first_row: index,
        out_lse: Out[f32, "H n"] | None,
        prefix: In[T, "n H (G K)"],
        prefix_lse: In[f32, "H n"],
        suffix: In[T, "n H (G K)"],
        suffix_lse: In[f32, "H n"],
        context_rows: index.at_most("n"),
    ):
        for t, h in grid("n", "H"):
            in_context = t < context_rows
            p = load_state(prefix[t, h], prefix_lse[h, t], where=in_context, base=B)
            s = load_state(suffix[t, h], suffix_lse[h, t], base=B)
            merged = merge(p, s)
            row, lse = payload(merged), lse_of(merged)
            if copies:
                if not in_context:
                    row, lse = f32(suffix[t, h]), suffix_lse[h, t]
            store_groups(row, t, h, out, out_scales, global_scale, first_row, is_power, rounding, pads, is_fp4, in_tiles, floors, is_static)
            out_lse[h, t] = lse

    return merge_two_states


def dense_states(scaling: Scaling) -> Any:
    """k states of one array, in its order."""
    is_power, rounding, pads, is_fp4, in_tiles, floors, is_static = scaling.parts

    @kernel
    def merge_dense_states(
        out: Out[stored(is_fp4), "n H (G K)"],
        out_scales: scales_of("n P Q G", in_tiles, is_static),
        global_scale: In[f32, "one=1"] | None,
        first_row: index,
        out_lse: Out[f32, "n H"] | None,
        v: In[T, "n k H (G K)"],
        s: In[f32, "n k H"],
    ):
        for t, h in grid("n", "H"):
            merged = identity("(G K)", base=B)
            for i in range(shape("k")):
                merged = merge(merged, load_state(v[t, i, h], s[t, i, h], base=B))
            store_groups(payload(merged), t, h, out, out_scales, global_scale, first_row, is_power, rounding, pads, is_fp4, in_tiles, floors, is_static)
            out_lse[t, h] = lse_of(merged)

    return merge_dense_states


def listed_states(scaling: Scaling) -> Any:
    """Up to eight states, of arrays with the same strides that are apart from the result."""
    is_power, rounding, pads, is_fp4, in_tiles, floors, is_static = scaling.parts

    @kernel
    def merge_listed_states(
        out: Out[stored(is_fp4), "n H (G K)"],
        out_scales: scales_of("n P Q G", in_tiles, is_static),
        global_scale: In[f32, "one=1"] | None,
        first_row: index,
        out_lse: Out[f32, "n H"] | None,
        vs: List[In[T, "n H (G K)"], 8, "k"],
        ss: List[In[f32, "n H"], 8, "k"],
    ):
        for t, h in grid("n", "H"):
            # One merge of them all, as without scales: a running one rounds otherwise.
            p = [load_state(vs[i][t, h], ss[i][t, h], where=i < len(vs), base=B) for i in range(8)]
            merged = merge(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7])
            store_groups(payload(merged), t, h, out, out_scales, global_scale, first_row, is_power, rounding, pads, is_fp4, in_tiles, floors, is_static)
            out_lse[t, h] = lse_of(merged)

    return merge_listed_states


def ragged_states(scaling: Scaling) -> Any:
    """Runs of states; a run that is not 0 <= start <= end <= nnz is empty."""
    is_power, rounding, pads, is_fp4, in_tiles, floors, is_static = scaling.parts

    @kernel
    def merge_ragged_states(
        out: Out[stored(is_fp4), "n H (G K)"],
        out_scales: scales_of("n P Q G", in_tiles, is_static),
        global_scale: In[f32, "one=1"] | None,
        first_row: index,
        out_lse: Out[f32, "n H"] | None,
        v: In[T, "nnz H (G K)"],
        s: In[f32, "nnz H"],
        indptr: In[i32, "n1"],
    ):
        for t, h in grid("n", "H"):
            known = t + 1 < shape("n1")
            start, end = index(load(indptr[t], where=known)), index(load(indptr[t + 1], where=known))
            sound = 0 <= start and start <= end and end <= shape("nnz")
            merged = identity("(G K)", base=B)
            for i in range(start, end if sound else start):
                merged = merge(merged, load_state(v[i, h], s[i, h], base=B))
            store_groups(payload(merged), t, h, out, out_scales, global_scale, first_row, is_power, rounding, pads, is_fp4, in_tiles, floors, is_static)
            out_lse[t, h] = lse_of(merged)

    return merge_ragged_states


def mapped_states(scaling: Scaling) -> Any:
    """Groups of parts, through maps; rows that no group names are left, and their scales."""
    is_power, rounding, pads, is_fp4, in_tiles, floors, is_static = scaling.parts

    @kernel
    def merge_mapped_states(
        out: InOut[stored(is_fp4), "n H (G K)"],
        out_scales: scales_of("n P Q G", in_tiles, is_static, some=True),
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
        for g, h in grid("g1", "H"):
            known = g + 1 < shape("g1")
            first, last = load(indptr[g], where=known), load(indptr[g + 1], where=known)
            t = g
            if present(row_map):
                t = index(load(row_map[g], where=g < row_map.shape[0], otherwise=-1))
            sound = 0 <= first <= last
            count = last - first if sound else 0
            if known and 0 <= t < shape("n") and count >= min_parts:
                # Parts past the end of the map, or of the parts, are empty.
                has_map = present(part_map)
                named = part_map.shape[0] if has_map else shape("p")
                start, end = index(first), index(last)
                merged = identity("(G K)", base=B)
                for j in range(start, min(end, named) if sound else start):
                    i = j
                    if has_map:
                        i = index(load(part_map[j], where=j < part_map.shape[0], otherwise=-1))
                    merged = merge(merged, load_state(parts[i, h], lses[i, h], where=0 <= i < shape("p"), base=B))
                whole = merged
                if present(sinks):
                    whole = merge(merged, sink(sinks[h], base="e"))
                store_groups(payload(whole), t, h, out, out_scales, global_scale, first_row, is_power, rounding, pads, is_fp4, in_tiles, floors, is_static)
                lse = lse_of(rebase(merged, C))
                out_lse[t, h] = lse if lse != -math.inf else empty_lse

    return merge_mapped_states


def split_states(scaling: Scaling) -> Any:
    """The splits of split-KV attention; scales have no words."""
    is_power, rounding, _, is_fp4, in_tiles, floors, is_static = scaling.parts

    @kernel
    def merge_split_states(
        out: Out[stored(is_fp4), "b l H (G K)"],
        out_scales: scales_of("b l H G", in_tiles, is_static),
        global_scale: In[f32, "one=1"] | None,
        first_row: index,
        out_lse: Out[f32, "b l H"] | None,
        partial: In[T, "s b l H (G K)"],
        partial_lse: In[f32, "s b l H"],
    ):
        for i, j, h in grid("b", "l", "H"):
            merged = identity("(G K)", base=B)
            for part in range(shape("s")):
                merged = merge(merged, load_state(partial[part, i, j, h], partial_lse[part, i, j, h], base=B))
            if is_static:
                out[i, j, h] = payload(merged) * (1.0 / out_scales[0])
            else:
                scale, elements = grouped(payload(merged), global_scale, is_power, rounding, is_fp4, floors)
                if in_tiles:
                    out_scales[first_row + i * shape("l") + j, h] = scale
                else:
                    out_scales[i, j, h] = scale
                out[i, j, h] = elements
            out_lse[i, j, h] = lse_of(merged)

    return merge_split_states
