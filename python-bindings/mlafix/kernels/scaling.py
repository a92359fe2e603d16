"""Functions with which kernels store results. A result may be gated, be rotated by the angles of its positions, and be
stored in fp8 or fp4 with a scale per group. A group lies in one row, or in the rows of several heads.

The tensor of scales is `[n, P, Q, G]`: the scale of group g of head h is at `[t, h // Q, h % Q, g]`. There are four
forms of scales:

  - Q = 1: a tensor `[n, H, G]` of any strides.
  - Q * G = 4 bytes: words, each with the scales of four groups.
  - in tiles: the tensor is `[m, H, G]`, and token t has the row `first_row + t`.
  - groups that several heads share: the tensor is `[n, P, 1, 1]`, with P groups.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

from mlafix.dsl import (
    DType,
    In,
    InOut,
    Out,
    exp,
    f4e2m1,
    f8e4m3fn,
    f8e8m0,
    f32,
    index,
    inline,
    iota,
    load,
    lse_of,
    payload,
    shape,
    store_state,
    swap,
    where,
)

T = DType("T")
S = DType("S")
# Dtypes of results that are not scaled, of cosines and sines, of positions, and of gates.
O = DType("O")  # noqa: E741 (the library's name)
A = DType("A", default=f32)
N = DType("N", default="i64")
Y = DType("Y")

# For fp8: a group whose largest magnitude is below SMALLEST is scaled as if it were SMALLEST. Scales that are powers of
# two are also at least SMALLEST. Engines' quantisers use the same number.
SMALLEST = 1e-10
# 1 / 6 rounded to f32.
SIXTH = float.fromhex("0x1.555556p-3")
# The smallest f32 above 1 / 2.
ABOVE_HALF = float.fromhex("0x1.000002p-1")


@dataclasses.dataclass(frozen=True)
class Scaling:
    """The way in which a kernel stores its result.

    Args:
        is_power: scales are powers of two, rounded up.
        rounding: the dtype to which rows are first rounded; f32 rounds nothing.
        pads: the scales of the heads do not fill the last word of scales.
        is_fp4: elements are f4e2m1. The format is MXFP4 with `is_power`, else NVFP4, whose scales are f8e4m3fn and have
            a global scale.
        tile_rows: the rows of a tile of scales, 128 or 8; tiles have 4 columns. 0: scales lie in rows.
        floors: scales of MXFP4 are rounded down instead of up.
        is_static: elements are f8e4m3fn with one scale, which a call passes in place of scales; G is 1.
        joined: the number of heads that share a group of f8e4m3fn elements.
        is_plain: elements are not scaled, and have their own dtype; G is 1.
        is_bare: rows of D elements are stored unchanged, without further arguments.
        turned: the number of elements per row that are first turned by the angles of its position; 0: none.
        first: the index of the first turned element.
        halves: the pairs that are turned are (x[i], x[turned / 2 + i]) instead of neighbours.
        by_head: scales are declared as [n, H, 1, G] instead of [n, P, Q, G], that is with Q = 1, which fits any H.
        gate: rows are multiplied by the sigmoid of a gate before they are turned. "head": one number per head; "row": one per
            element; "": no gate.
    """

    is_power: bool = False
    rounding: Any = f32
    pads: bool = False
    is_fp4: bool = False
    tile_rows: int = 0
    floors: bool = False
    is_static: bool = False
    joined: int = 1
    is_plain: bool = False
    is_bare: bool = False
    turned: int = 0
    first: int = 0
    halves: bool = False
    by_head: bool = False
    gate: str = ""

    @property
    def dim(self) -> str:
        """The grid's dim that counts heads: "H", or "P" if heads share groups."""
        return "H" if self.joined == 1 else "P"

    @property
    def row(self) -> str:
        """The dim of a row: "D", or the product "(G K)" if scales have groups."""
        return "D" if self.is_bare else "(G K)"

    @property
    def stored(self) -> Any:
        """The dtype in which the result is stored."""
        return O if self.is_plain else f4e2m1 if self.is_fp4 else f8e4m3fn

    def scales(self, dims: str, some: bool) -> Any:
        """Returns the type of the argument for scales, or for the single scale that a call passes. `dims` are the dims
        of scales in rows. `some` is True if rows may stay unwritten."""
        if self.is_plain:
            return In[f32, "one=1"] | None
        if self.is_static:
            return In[f32, "one=1"]
        if self.tile_rows:
            return InOut[S, "m H G"].swizzle(f"{self.tile_rows}x4")
        if self.by_head:
            dims = dims.replace("P Q", "H one=1")
        return InOut[S, dims] if some else Out[S, dims]


BARE = Scaling(is_bare=True)

# The scalings that have names. The name of a family's kernel ends with the name of its scaling:
# "merge_attn_states_nvfp4".
FORMATS = {
    "fp8": Scaling(is_static=True),
    "fp8_groups": Scaling(),
    "fp8_groups_power": Scaling(is_power=True),
    "mxfp8_tiles": Scaling(is_power=True, tile_rows=128),
    "nvfp4": Scaling(is_fp4=True),
    "nvfp4_tiles": Scaling(is_fp4=True, tile_rows=128),
    "mxfp4": Scaling(is_fp4=True, is_power=True),
    "mxfp4_tiles": Scaling(is_fp4=True, is_power=True, tile_rows=128),
}


class Family:
    """Makes a kernel for each way to scale its result. A call with a `Scaling` returns the kernel, which is made only
    once.

    Args:
        named: further kernels besides those of FORMATS: their names, with the arguments that make them, as in {"copy": (BARE,
            True)}. The kernel "" has the family's own name.
    """

    def __init__(self, make: Callable[..., Any], named: Mapping[str, tuple[Any, ...]] | None = None) -> None:
        functools.update_wrapper(self, make)
        self._make = functools.lru_cache(maxsize=None)(make)
        self._named = {**{name: (scaling,) for name, scaling in FORMATS.items()}, **(named or {})}

    def __call__(self, scaling: Scaling, *more: Any) -> Any:
        made = self._make(scaling, *more)
        made.made_with = (scaling, *more)
        return made

    def member(self, name: str) -> Any:
        """Returns the kernel with a name of FORMATS or of `named`. Raises KeyError for any other name."""
        return self(*self._named[name])


# Decorators for a function that makes a family's kernels. The second one also makes a kernel with a bare result.
scaled = Family
scaled_or_bare = functools.partial(Family, named={"": (BARE,)})


@dataclasses.dataclass(frozen=True)
class Result:
    """Arguments that tell where a kernel stores rows. `result` declares them for a `Scaling`, which tells how the rows
    are stored.

    Args:
        first_row: the row of token 0 in tiles of scales.
        positions: each token's position in `cos_sin`; None if rows are not turned.
        cos_sin: the cosines and the sines of positions.
        sign: 1, or -1 to turn in the opposite direction.
        gate: numbers whose sigmoids multiply the rows; None if there is no gate.
    """

    out: Any
    out_scales: Any
    global_scale: Any
    first_row: Any
    how: Scaling
    positions: Any = None
    cos_sin: Any = None
    sign: Any = None
    gate: Any = None


def result(how: Scaling, tokens: str = "n", some: bool = False, bare: DType = T) -> Result:
    """Declares the arguments of a result whose tokens have the dims `tokens`. `some` is True if rows may stay
    unwritten; `bare` is the dtype of bare rows."""
    rows, scales = f"{tokens} H {how.row}", f"{tokens} P Q G"
    out = (InOut if some else Out)[bare if how.is_bare else how.stored, rows]
    if how.is_bare:
        return Result(out, None, None, None, how)
    whole = Result(out, how.scales(scales, some), In[f32, "one=1"] | None, index, how)
    if how.turned:
        whole = dataclasses.replace(whole, positions=In[N, tokens], cos_sin=In[A, "angles two=2 Z"], sign=f32)
    if how.gate:
        whole = dataclasses.replace(whole, gate=In[Y, rows if how.gate == "row" else f"{tokens} H"])
    return whole


@inline
def heads_of(p, how):
    """Returns the heads of group p. If heads share no groups, this is head p."""
    return [p * how.joined + j for j in range(how.joined)] if how.joined > 1 else [p]


@inline
def gated(row, lse, gate):
    """Returns a row times the sigmoid of its gate. An empty row stays zeros, even if the gate is NaN."""
    return where(lse == -math.inf, row, row / (1.0 + exp(-f32(gate))))


@inline
def turned(row, position, to):
    """Rotates the pairs of a row by the angles of the row's position. If the table has no such position, the pairs
    become zeros. Rotating a pair of zeros may give -0.0. Adding 0.0 makes it +0.0, so that rows of empty states keep
    their bits."""
    block = to.how.turned // 2 if to.how.halves else 1
    each = 1 if to.how.halves else 2
    known = 0 <= position < shape("angles")
    cosines = load(to.cos_sin[position, 0], into="(G K)", first=to.how.first, each=each, where=known)
    sines = load(to.cos_sin[position, 1], into="(G K)", first=to.how.first, each=each, where=known) * to.sign
    i = iota("(G K)")
    pairs = row * cosines + swap(row, block) * where((i & block) == 0, -sines, sines) + 0.0
    inside = (i >= to.how.first) & (i < to.how.first + to.how.turned)
    return where(inside, pairs if known else 0.0, row)


@inline
def scale_of(largest, how):
    """Returns the scale of a group whose largest magnitude is `largest`."""
    scale = max(largest, SMALLEST) / 448.0
    if how.is_power:
        scale = f8e8m0(max(scale, SMALLEST))
    return scale


@inline
def divided(row, how):
    """Returns a row's scales and the row divided by them. A scale is the group's largest magnitude / 448, as in vLLM's
    per_token_group_quant_8bit.

    In f32 and correctly rounded: scale = max(largest, 1e-10) / 448, quotient = element / scale. With `is_power` the
    scale is the least power of two that is not below max(scale, 1e-10).
    """
    scale = scale_of(max(abs(row), along="K"), how)
    return scale, row / scale


@inline
def halved(row, global_scale):
    """Returns a row's scales in e4m3, and its elements scaled for e2m1, as in vLLM's scaled_fp4_quant and FlashInfer's
    nvfp4_quantize.

    The scale is e4m3(global * (largest * (1 / 6))). An element becomes element * (1 / (scale * (1 / global))), or
    element * 0 if the scale is 0. All steps are in f32 and correctly rounded, whereas engines on a GPU have approximate
    reciprocals.
    """
    scale = f8e4m3fn(global_scale * (max(abs(row), along="K") * SIXTH))
    return scale, row * where(scale != 0.0, 1.0 / (scale * (1.0 / global_scale)), 0.0)


@inline
def microscaled(row, how):
    """Returns a row's scales, which are powers of two, and its elements scaled for e2m1 (MXFP4).

    With `floors`, the scale is a quarter of the largest power of two that is not above the largest magnitude, as in OCP
    MX v1.0, 6.3. Otherwise it is the least power of two that is not below largest * (1 / 6), as in FlashInfer's
    mxfp4_quantize, whose reciprocal of 6 is only approximate. Elements are multiplied by the scale's reciprocal, which
    is exact for a power of two.
    """
    largest = max(abs(row), along="K")
    if how.floors:
        # f8e8m0 rounds up. A little more than half of `largest` thus becomes the greatest power of two that is not
        # above `largest`.
        scale = f8e8m0(f8e8m0(largest * ABOVE_HALF) * 0.25)
    else:
        scale = f8e8m0(largest * SIXTH)
    return scale, row * (1.0 / scale)


@inline
def grouped(row, to):
    """Returns a row's scales, and its elements in the form in which they are stored."""
    rounded = to.how.rounding(row)
    if to.how.is_fp4:
        if to.how.is_power:
            scale, elements = microscaled(rounded, to.how)
        else:
            scale, elements = halved(rounded, to.global_scale[0])
    else:
        scale, elements = divided(rounded, to.how)
    return scale, elements


@inline
def joined_rows(rows, how):
    """Returns the scale that some rows share, and their elements in the form in which they are stored."""
    rounded = [how.rounding(row) for row in rows]
    largest = max(abs(rounded[0]))
    for j in range(1, how.joined):
        largest = max(largest, max(abs(rounded[j])))
    scale = scale_of(largest, how)
    return scale, [row / scale for row in rounded]


@inline
def as_stored(rows, to):
    """Returns the scales and the elements in the form in which they are stored, for one head's row or for rows that
    share a group. If there are no scales, returns 0.0 for them."""
    if to.how.is_plain:
        scale, elements = 0.0, rows
    elif to.how.is_static:
        scale, elements = 0.0, [rows[0] * (1.0 / to.out_scales[0])]
    elif to.how.joined > 1:
        scale, elements = joined_rows(rows, to.how)
    else:
        scale, one = grouped(rows[0], to)
        elements = [one]
    return scale, elements


@inline
def store_rows(rows, t, p, to):
    """Stores the row of one head, or the rows of heads that share a group, with their scales. The last head also clears
    the rest of its word of scales. The padding of tiles is not written."""
    if to.how.turned > 0:
        position = to.positions[t]
        rows = [turned(row, position, to) for row in rows]
    scale, elements = as_stored(rows, to)
    if to.how.joined > 1:
        to.out_scales[t, p, 0, 0] = scale
    elif to.how.tile_rows > 0:
        to.out_scales[to.first_row + t, p] = scale
    elif to.how.by_head:
        to.out_scales[t, p, 0] = scale
    elif not (to.how.is_plain or to.how.is_static):
        to.out_scales[t, p // shape("Q"), p % shape("Q")] = scale
    for j in range(to.how.joined):
        to.out[t, p * to.how.joined + j] = elements[j]
    if to.how.pads:
        if p == shape("H") - 1:
            for other in range(p % shape("Q") + 1, shape("Q")):
                to.out_scales[t, p // shape("Q"), other] = 0.0


@inline
def store_states(states, t, p, to, out_lse):
    """Stores the merged state of one head, or the states of heads that share a group: rows with their scales, and lses."""
    if to.how.is_bare:
        store_state(states[0], to.out[t, p], out_lse[t, p])
    else:
        store_rows([payload(state) for state in states], t, p, to)
        for j in range(to.how.joined):
            out_lse[t, p * to.how.joined + j] = lse_of(states[j])
