"""How results in fp8 or fp4 are scaled: the scales of groups of a row, or of several heads' rows, and what is stored.

Scales are `[n, P, Q, G]`: that of group g of head h is at `[t, h // Q, h % Q, g]`. With Q = 1 these are tensors `[n, H, G]` of
any strides; with Q * G = 4 bytes, words that hold the scales of four groups. In tiles they are `[m, H, G]`, and token t has the row
`first_row + t`. A group of several heads is that of one head of as many rows: scales are `[n, P, 1, 1]` then, P of the groups.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .dsl import DType, In, InOut, Out, f4e2m1, f8e4m3fn, f8e8m0, f32, inline, lse_of, payload, shape, where

S = DType("S")

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
        joined: heads that share a group, of f8e4m3fn.
    """

    is_power: bool
    rounding: Any
    pads: bool
    is_fp4: bool = False
    in_tiles: bool = False
    floors: bool = False
    is_static: bool = False
    joined: int = 1

    @property
    def parts(self) -> tuple[bool, Any, bool, bool, bool, bool, bool, int]:
        return self.is_power, self.rounding, self.pads, self.is_fp4, self.in_tiles, self.floors, self.is_static, self.joined

    @property
    def dim(self) -> str:
        """The grid's: of heads, or of what shares a group."""
        return "H" if self.joined == 1 else "P"


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
def scale_of(largest, is_power):
    """The scale of a group with this largest magnitude."""
    scale = max(largest, SMALLEST) / 448.0
    if is_power:
        scale = f8e8m0(max(scale, SMALLEST))
    return scale


@inline
def scaled(row, is_power, rounding):
    """A row's scales, the groups' largest magnitudes / 448, and its quotients by them: vLLM's per_token_group_quant_8bit.

    In f32 and correctly rounded: scale = max(largest, 1e-10) / 448, quotient = element / scale. A power of two is the least one
    that is not below max(scale, 1e-10).
    """
    row = rounding(row)
    scale = scale_of(max(abs(row), along="K"), is_power)
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


@inline
def joined_rows(rows, is_power, rounding, joined):
    """The scale of rows that share a group, and their elements as they are stored."""
    rounded = [rounding(rows[j]) for j in range(joined)]
    largest = max(abs(rounded[0]))
    for j in range(1, joined):
        largest = max(largest, max(abs(rounded[j])))
    scale = scale_of(largest, is_power)
    return scale, [rounded[j] / scale for j in range(joined)]


@inline
def store_rows(rows, t, p, out, out_scales, global_scale, first_row, is_power, rounding, pads, is_fp4, in_tiles, floors, is_static, joined):
    """The rows of one head, or of those that share a group, with their scales."""
    if joined == 1:
        store_groups(rows[0], t, p, out, out_scales, global_scale, first_row, is_power, rounding, pads, is_fp4, in_tiles, floors, is_static)
    else:
        scale, elements = joined_rows(rows, is_power, rounding, joined)
        out_scales[t, p, 0, 0] = scale
        for j in range(joined):
            out[t, p * joined + j] = elements[j]


@inline
def store_states(merged, t, p, out, out_scales, global_scale, first_row, out_lse, is_power, rounding, pads, is_fp4, in_tiles, floors, is_static, joined):
    """Merged states of one head, or of those that share a group: their rows with their scales, and their lses."""
    states = [state for state in merged]
    store_rows([payload(state) for state in states], t, p, out, out_scales, global_scale, first_row, is_power, rounding, pads, is_fp4, in_tiles, floors, is_static, joined)
    for j in range(joined):
        out_lse[t, p * joined + j] = lse_of(states[j])
