"""Kernels on rows that are not attention states: norms, softmax, quantisation."""

from __future__ import annotations

from typing import Any

from mlafix.dsl import (
    DType,
    In,
    InOut,
    Out,
    distinct,
    exp,
    f8e4m3fn,
    f32,
    grid,
    i32,
    index,
    inline,
    kernel,
    load,
    make_state,
    merge,
    payload,
    present,
    rsqrt,
    shape,
    splat,
    u8,
)
from mlafix.kernels.scaling import Scaling, as_stored, result, scaled, store_rows

T = DType("T")
# Dtypes of weights, and of integers that name rows (`places`, `slots`).
W, V = DType("W", default=f32), DType("V", default=f32)
P = DType("P", default=i32)


@kernel
def rmsnorm(y: Out[T, "n D"], x: In[T, "n D"], weight: In[T, "D"], epsilon: f32):
    """RMSNorm of each row: y = x / sqrt(mean(x^2) + epsilon) * weight (Zhang and Sennrich, 2019).

      y      [n, D] T    written; may be x itself
      x      [n, D] T
      weight [D]    T
      epsilon       f32
    """
    n, D = x.shape
    for t in grid(n):
        v, w = x[t], weight[:]
        mean = sum(v * v) / f32(D)
        y[t] = v * rsqrt(mean + epsilon) * w


@kernel
def softmax(y: Out[T, "n D"], x: In[T, "n D"], scale: f32):
    """Softmax along each row, with a scale: y = exp(scale * (x - max x)) / sum exp(scale * (x - max x)). The scale is not negative.

      y     [n, D] T    written; may be x itself
      x     [n, D] T
      scale        f32
    """
    for t in grid(x.shape[0]):
        v = x[t]
        weights = exp((v - max(v)) * scale)
        y[t] = weights / sum(weights)


@inline
def score_of(row, weight, epsilon):
    """Returns the dot product of a weight and a row's RMSNorm."""
    return sum(row * weight) * rsqrt(sum(row * row) / f32(shape("D")) + epsilon)


@kernel
def mix_depth(out: Out[T, "n D"], snapshot: InOut[T, "n D"] | None, prefix: In[T, "n D"], bank: In[T, "n k D"], score_weight: In[W, "D"],
              out_weight: In[V, "D"] | None, epsilon: f32, out_epsilon: f32):  # fmt: skip
    """Attention residuals: mixes a row of the prefix with those of k former layers by the softmax of their scores, then RMSNorm.

      out          [n, D]    T  written
      snapshot     [n, D]    T  written with the prefix, bit for bit; optional
      prefix       [n, D]    T
      bank         [n, k, D] T  each row is read once
      score_weight [D]          f32, bf16 or f16
      out_weight   [D]          likewise; without it there is no norm; optional
      epsilon, out_epsilon f32
    """
    for t in grid("n"):
        weight, own = score_weight[:], prefix[t]
        snapshot[t] = own
        merged = make_state(own, score_of(own, weight, epsilon), base="e")
        for i in range(shape("k")):
            row = bank[t, i]
            merged = merge(merged, make_state(row, score_of(row, weight, epsilon), base="e"))
        mixed = payload(merged)
        if present(out_weight):
            out[t] = mixed * rsqrt(sum(mixed * mixed) / f32(shape("D")) + out_epsilon) * out_weight[:]
        else:
            out[t] = mixed


@kernel
def quantize_fp8_static(out: Out[f8e4m3fn, "n D"], x: In[T, "n D"], scale: In[f32, "one=1"]):
    """Quantises rows to fp8 with one scale: out = saturate(x * (1 / scale)).

      out   [n, D] f8e4m3fn  written; rounds to nearest even, saturates at +-448, NaN stays NaN
      x     [n, D] T
      scale [1]    f32       on the device
    """
    for t in grid(x.shape[0]):
        v = x[t]
        out[t] = v * (1.0 / scale[0])


@inline
def clear_row(scales, t, first, last, end, columns):
    if first <= t < end:
        for c in range(columns if t < last else 0, shape("c")):
            scales[t, c] = 0


@kernel(allow={"bounds"})
def clear_padding(scales: InOut[u8, "m c"].swizzle("128x4"), first: index, last: index, end: index, columns: index):
    """Clears the padding of tiles: the columns from `columns` on of rows first <= t < last, and all columns of rows
    last <= t < end."""
    for t in grid("m"):
        clear_row(scales, t, first, last, end, columns)


@kernel(allow={"bounds"})
def clear_padding_8x4(scales: InOut[u8, "m c"].swizzle("8x4"), first: index, last: index, end: index, columns: index):
    """Like `clear_padding`, for tiles of 8 rows."""
    for t in grid("m"):
        clear_row(scales, t, first, last, end, columns)


@scaled
def quantize_rows(scaling: Scaling) -> Any:
    """Quantises an existing tensor."""
    of = scaling.dim

    @kernel
    def quantize_rows(
        to: result(scaling),
        x: In[T, "n H (G K)"],
    ):
        for t, p in grid("n", of):
            rows = [f32(x[t, p * scaling.joined + j]) for j in range(scaling.joined)]
            store_rows(rows, t, p, to)

    return quantize_rows


@inline
def normed(row, weight, epsilon):
    """Returns a row's RMSNorm."""
    return row * rsqrt(sum(row * row) / f32(shape("(G K)")) + epsilon) * weight


@scaled
def norm_rows(scaling: Scaling) -> Any:
    """RMSNorm of each head's row. With a residual, the row of the residual is added first, and the residual becomes the sum."""
    of = scaling.dim

    @kernel
    def norm_rows(
        to: result(scaling),
        residual: InOut[T, "n H (G K)"] | None,
        x: In[T, "n H (G K)"],
        weight: In[W, "(G K)"],
        epsilon: f32,
    ):
        for t, p in grid("n", of):
            rows = [f32(x[t, p * scaling.joined + j]) for j in range(scaling.joined)]
            if present(residual):
                rows = [rows[j] + residual[t, p * scaling.joined + j] for j in range(scaling.joined)]
            for j in range(scaling.joined):
                residual[t, p * scaling.joined + j] = rows[j]
            store_rows([normed(row, weight[:], epsilon) for row in rows], t, p, to)

    return norm_rows


@scaled
def store_in_pages(scaling: Scaling) -> Any:
    """Stores rows of tokens to the slots of a paged cache. Rows that no slot names stay as they are, and so do their scales."""

    @kernel(allow={"races"})  # Slots are distinct, so no two have the same page and offset. The proofs do not see this.
    def store_in_pages(
        to: result(scaling, "pages size", some=True), x: In[T, "n H (G K)"], slots: In[P, "n"]
    ):
        distinct(slots)
        for t, h in grid("n", "H"):
            slot = index(slots[t])
            if 0 <= slot < shape("pages") * shape("size"):
                page, offset = slot // shape("size"), slot % shape("size")
                scale, elements = as_stored([f32(x[t, h])], to)
                if scaling.by_head:
                    to.out_scales[page, offset, h, 0] = scale
                to.out[page, offset, h] = elements[0]

    return store_in_pages


@kernel
def combine_experts(
    out: Out[T, "n D"], rows: In[T, "m D"], places: In[P, "n k"], weights: In[W, "n k"], shared: In[T, "n D"] | None
):
    """out[t] = the sum of weights[t, i] * rows[places[t, i]] in the order of i, plus shared[t]. The sum is computed in
    f32 and rounded once.

      out     [n, D] T    written; may be shared itself
      rows    [m, D] T    the experts' rows; rows that no place names are not read
      places  [n, k] P    i32 or i64; below 0 or past m: no row, and its weight is not read
      weights [n, k] W    f32, bf16 or f16
      shared  [n, D] T    added after the experts' rows; optional
    """
    for t in grid("n"):
        total = splat(0.0, "D")
        for i in range(places.shape[1]):
            place = places[t, i]
            is_there = place >= 0 and place < shape("m")
            total = total + load(rows[index(place)], where=is_there) * load(weights[t, i], where=is_there)
        if present(shared):
            total = total + shared[t]
        out[t] = total
