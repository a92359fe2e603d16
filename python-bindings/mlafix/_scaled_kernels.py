"""Merges whose result is fp8 with a scale for each group of a row (`out_scales` in `mlafix.ops`), compiled when first used.

Scales are `[n, P, Q, G]`: that of group g of head h is at `[t, h // Q, h % Q, g]`. With Q = 1 these are tensors `[n, H, G]` of
any strides; with Q * G = 4 bytes, words that hold the scales of four groups.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .dsl import (
    Base,
    DType,
    In,
    List,
    Out,
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
    shape,
)

T = DType("T")
S = DType("S")
B = Base("B", default="e")

# The least magnitude that a group is scaled for, and the least scale that is a power of two: those of engines' quantisers.
SMALLEST = 1e-10


@dataclasses.dataclass(frozen=True)
class Scaling:
    """How a result is quantised.

    Args:
        is_power: scales are rounded up to powers of two.
        rounding: the dtype that rows are rounded to first; f32 for none.
        pads: heads do not fill the last words of scales.
    """

    is_power: bool
    rounding: Any
    pads: bool


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
def store_groups(row, t, h, out, out_scales, is_power, rounding, pads):
    """A row in fp8 with its scales; the last head clears what is left of its word of scales."""
    scale, quotients = scaled(row, is_power, rounding)
    shared = shape("Q")
    out_scales[t, h // shared, h % shared] = scale
    out[t, h] = quotients
    if pads:
        if h == shape("H") - 1:
            for other in range(h % shared + 1, shared):
                out_scales[t, h // shared, other] = 0.0


def two_states(scaling: Scaling, copies: bool) -> Any:
    """Prefix and suffix; `copies`: tokens past the context are copies of the suffix, its lse as it is."""
    is_power, rounding, pads = scaling.is_power, scaling.rounding, scaling.pads

    @kernel
    def merge_two_states(
        out: Out[f8e4m3fn, "n H (G K)"],
        out_scales: Out[S, "n P Q G"],
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
            store_groups(row, t, h, out, out_scales, is_power, rounding, pads)
            out_lse[h, t] = lse

    return merge_two_states


def dense_states(scaling: Scaling) -> Any:
    """k states of one array, in its order."""
    is_power, rounding, pads = scaling.is_power, scaling.rounding, scaling.pads

    @kernel
    def merge_dense_states(
        out: Out[f8e4m3fn, "n H (G K)"],
        out_scales: Out[S, "n P Q G"],
        out_lse: Out[f32, "n H"] | None,
        v: In[T, "n k H (G K)"],
        s: In[f32, "n k H"],
    ):
        for t, h in grid("n", "H"):
            merged = identity("(G K)", base=B)
            for i in range(shape("k")):
                merged = merge(merged, load_state(v[t, i, h], s[t, i, h], base=B))
            store_groups(payload(merged), t, h, out, out_scales, is_power, rounding, pads)
            out_lse[t, h] = lse_of(merged)

    return merge_dense_states


def listed_states(scaling: Scaling) -> Any:
    """Up to eight states, of arrays with the same strides that are apart from the result."""
    is_power, rounding, pads = scaling.is_power, scaling.rounding, scaling.pads

    @kernel
    def merge_listed_states(
        out: Out[f8e4m3fn, "n H (G K)"],
        out_scales: Out[S, "n P Q G"],
        out_lse: Out[f32, "n H"] | None,
        vs: List[In[T, "n H (G K)"], 8, "k"],
        ss: List[In[f32, "n H"], 8, "k"],
    ):
        for t, h in grid("n", "H"):
            # One merge of them all, as without scales: a running one rounds otherwise.
            p = [load_state(vs[i][t, h], ss[i][t, h], where=i < len(vs), base=B) for i in range(8)]
            merged = merge(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7])
            store_groups(payload(merged), t, h, out, out_scales, is_power, rounding, pads)
            out_lse[t, h] = lse_of(merged)

    return merge_listed_states


def ragged_states(scaling: Scaling) -> Any:
    """Runs of states; a run that is not 0 <= start <= end <= nnz is empty."""
    is_power, rounding, pads = scaling.is_power, scaling.rounding, scaling.pads

    @kernel
    def merge_ragged_states(
        out: Out[f8e4m3fn, "n H (G K)"],
        out_scales: Out[S, "n P Q G"],
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
            store_groups(payload(merged), t, h, out, out_scales, is_power, rounding, pads)
            out_lse[t, h] = lse_of(merged)

    return merge_ragged_states


def split_states(scaling: Scaling) -> Any:
    """The splits of split-KV attention; scales have no words."""
    is_power, rounding = scaling.is_power, scaling.rounding

    @kernel
    def merge_split_states(
        out: Out[f8e4m3fn, "b l H (G K)"],
        out_scales: Out[S, "b l H G"],
        out_lse: Out[f32, "b l H"] | None,
        partial: In[T, "s b l H (G K)"],
        partial_lse: In[f32, "s b l H"],
    ):
        for i, j, h in grid("b", "l", "H"):
            merged = identity("(G K)", base=B)
            for part in range(shape("s")):
                merged = merge(merged, load_state(partial[part, i, j, h], partial_lse[part, i, j, h], base=B))
            scale, quotients = scaled(payload(merged), is_power, rounding)
            out_scales[i, j, h] = scale
            out[i, j, h] = quotients
            out_lse[i, j, h] = lse_of(merged)

    return merge_split_states
