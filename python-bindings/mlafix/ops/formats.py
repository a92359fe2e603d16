"""Formats of a merged result: fp8 and fp4, with one static scale or with a scale for each group.

Every merge, and `quantize_groups`, takes one of these as its `out_format`. Without one the result has the inputs'
dtype. A format allocates only the result. Its scales are arrays of the caller's: `Fp8` reads them, the other formats
write them.

The lse is never scaled. Rows of empty states are zeros, with the smallest scale of the format. A kernel quantises
values as it computes them, in f32. With `quantize_from="output"` it rounds them first to the dtype that the result has
without a format: the bits are those of a merge into that dtype and an engine's quantiser after it.

The first call with a format compiles its kernel; that of `merge_attn_states` with `Fp8` is in the package.
`mlafix.warmup` of such a call with arrays of one token compiles it ahead.

The examples begin with:

    >>> import numpy as np
    >>> from mlafix import ops
    >>> rows, lse = np.full((3, 2, 64), 3, np.float32), np.zeros((2, 3), np.float32)
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal, NamedTuple, Tuple

from .._launcher.arguments import wrong
from .._launcher.arrays import dtype_name, empty, one_element
from ..errors import ArgumentError
from . import _layouts
from ._layouts import Padding, Rows
from ._types import Array, QuantizeFrom

__all__ = ["Fp8", "Fp8Groups", "MxFp8", "MxFp4", "NvFp4"]

_ONE = "one f32 on the inputs' device, or a float"
_SOURCES = ("f32", "output")
_ROUNDINGS = ("bf16", "f16", "f32")


class How(NamedTuple):
    """A `mlafix.kernels.scaling.Scaling` whose `rounding` is the name of a dtype. Each call looks up its kernel by a
    key that contains this tuple."""

    is_power: bool = False
    rounding: str = "f32"
    pads: bool = False
    is_fp4: bool = False
    tile_rows: int = 0
    floors: bool = False
    is_static: bool = False
    joined: int = 1
    is_plain: bool = False
    turned: int = 0
    first: int = 0
    halves: bool = False
    by_head: bool = False
    gate: str = ""


class Placed(NamedTuple):
    """A format applied to the rows of one call: the kernel's arguments, the kernel's scaling, and the padding to clear."""

    arguments: Tuple[Any, Any, int]
    """The scales, a global scale or None, and the first row in the tiles."""
    how: How
    padding: Padding = None


class OutFormat:
    """The base class of the formats, which are the values of `out_format`."""

    quantize_from: ClassVar[QuantizeFrom] = "f32"
    is_fp4: ClassVar[bool] = False

    def stored_shape(self, shape: Rows) -> Rows:
        """Returns the shape of the array that stores rows `[…, D]`."""
        return (*shape[:-1], shape[-1] // 2) if self.is_fp4 else tuple(shape)

    def empty(self, like: Any, shape: Rows) -> Any:
        """Allocates a result for rows of this shape, on the device of `like` and in its library."""
        return empty(like, self.stored_shape(shape), "u8" if self.is_fp4 else "f8e4m3fn")

    def place(self, rows: Rows, like: Any, dtype: Any) -> Placed:
        """Returns the format applied to rows `[…, H, D]`. `dtype` is the dtype that the result would have without a
        format; None stands for the dtype of the input `like`. Raises ArgumentError if the format does not fit the
        rows."""
        raise NotImplementedError

    def heads_of(self, dim: int) -> int:
        """Returns the number of heads into which the kernel divides rows `[n, D]` without heads."""
        return 1

    def _rounding(self, like: Any, dtype: Any) -> str:
        """Returns the name of the dtype to which values are rounded before they are quantised."""
        if self.quantize_from == "f32":
            return "f32"
        name = dtype_name(like.dtype if dtype is None else dtype)
        if name not in _ROUNDINGS:
            raise self.wrong("quantize_from", "'f32' for a result that is no bf16, f16 or f32")
        return name

    def wrong(self, field: str, expected: str) -> ArgumentError:
        """Returns the error for a field with a wrong value."""
        return wrong(f"{type(self).__name__}.{field}", expected, repr(getattr(self, field)))


@dataclasses.dataclass(frozen=True, eq=False)
class Fp8(OutFormat):
    """fp8 (e4m3fn) with one static scale.

        element = fp8(value * (1 / scale))

    The reciprocal is rounded to f32 once. The product rounds to the nearest, ties to even, and saturates at +-448; NaN stays NaN (N7).
    This is the static scale of vLLM (`output_scale` of its merge) and SGLang. The result is `[n, H, D]` f8e4m3fn.

    Args:
        scale: one f32 on the inputs' device, of any rank; a float is copied there.

    Example:
        >>> out, _ = ops.merge_attn_states(rows, lse, rows, lse, out_format=ops.Fp8(0.01))
        >>> out.dtype, out[0, 0, 0].item()
        (dtype(float8_e4m3fn), 288.0)
    """

    scale: Array | float

    def __post_init__(self) -> None:
        if self.scale is None:
            raise self.wrong("scale", _ONE)

    def place(self, rows: Rows, like: Any, dtype: Any) -> Placed:
        return Placed((one_element(self.scale, like), None, 0), How(is_static=True))


@dataclasses.dataclass(frozen=True, eq=False)
class Fp8Groups(OutFormat):
    """fp8 (e4m3fn) with a scale for each group of K elements, which the call writes.

        scale = max(largest magnitude, 1e-10) / 448
        element = fp8(value / scale)

    Both quotients are correctly rounded in f32. The CUDA kernels of vLLM and SGLang define this per-token-group
    quantisation (`per_token_group_quant_8bit`), for block-scaled products such as DeepGEMM's. The smallest scale is
    1e-10 / 448; the smallest power-of-two scale is 2^-33. NaN in a group makes its scale and all its elements NaN. The
    result is `[n, H, D]` f8e4m3fn. The dtype and the shape of `scales` give the size of a group:

    - f32 `[n, H, G]` or `[n, H * G]` of any strides, K = D / G: row-major, column-major, or with tokens padded for TMA, whose padding is
      not touched.
    - f8e8m0 of these shapes: UE8M0 scales, which are powers of two, a byte each.
    - i32 `[n, ceil(H * G / 4)]` of any strides, K = 128: four UE8M0 bytes a word, the first group in the low one (DeepGEMM). Bytes of
      the last word that belong to no group are 0.
    - f32 or f8e8m0 `[n, P]` of any strides, P a divisor of H: groups of H / P whole heads, up to 8, such as of 128 elements in heads of
      64. For such groups with scales in words, and for groups of more heads, merge without a format and call
      `quantize_groups` with the merged rows as `[n, H * D]`.

    `combine_split_kv` has `[B, L, …]` for `[n, …]`.

    Args:
        scales: f32, f8e8m0 or i32, as above; written.
        power_of_two: if True, f32 scales are rounded up to the least power of two that is not below `max(scale,
            1e-10)`. f8e8m0 and i32 always are.
        quantize_from: "f32", or "output" for values that are rounded to the result's usual dtype first.

    Example:
        >>> scales = np.empty((3, 2, 2), np.float32)  # groups of 32
        >>> out, _ = ops.merge_attn_states(rows, lse, rows, lse, out_format=ops.Fp8Groups(scales))
        >>> out[0, 0, 0].item(), (scales[0] * 448).tolist()
        (448.0, [[3.0, 3.0], [3.0, 3.0]])
    """

    scales: Array
    _: dataclasses.KW_ONLY
    power_of_two: bool = False
    quantize_from: QuantizeFrom = "f32"  # type: ignore[misc]

    def __post_init__(self) -> None:
        if self.power_of_two not in (False, True):
            raise self.wrong("power_of_two", "False or True")
        if self.quantize_from not in _SOURCES:
            raise self.wrong("quantize_from", "'f32' or 'output'")

    def place(self, rows: Rows, like: Any, dtype: Any) -> Placed:
        of = _layouts.of_groups(self.scales, type(self).__name__, rows)
        by_head = of.joined == 1 and of.view.shape[-2] == 1
        how = How(of.is_power or self.power_of_two, self._rounding(like, dtype), of.pads, joined=of.joined, by_head=by_head)
        return Placed((of.view, None, 0), how)

    def heads_of(self, dim: int) -> int:
        # Scales in words need heads of 128, 256 or 512 elements. With one head for each group of 128 elements, rows of
        # any multiple of 128 elements fit.
        in_words = _layouts.kind_of(self.scales, "Fp8Groups") == "int32"
        return max(dim // _WORDS_GROUP, 1) if in_words and dim % _WORDS_GROUP == 0 else 1


_WORDS_GROUP = 128


class _Blocks(OutFormat):
    """A format with one-byte scales for blocks of `size` elements. Scales lie in rows, or in tiles of 128 x 4 or 8 x 4
    scales."""

    size: ClassVar[int] = 32
    scale_dtype: ClassVar[str] = "float8_e8m0fnu"
    scales: Any
    tiles: Any
    first_row: Any
    clear_padding: Any

    def __post_init__(self) -> None:
        if self.tiles is None:
            if self.first_row != 0:
                raise self.wrong("first_row", '0 without tiles')
        elif self.tiles not in ("128x4", "8x4"):
            raise self.wrong("tiles", "None, '128x4' or '8x4'")
        if self.quantize_from not in _SOURCES:
            raise self.wrong("quantize_from", "'f32' or 'output'")

    def place(self, rows: Rows, like: Any, dtype: Any) -> Placed:
        given, number = (self.scales, type(self).__name__, rows, self.size, self.scale_dtype), self._number(like)
        how = How(self.scale_dtype == "float8_e8m0fnu", self._rounding(like, dtype), is_fp4=self.is_fp4, tile_rows=_layouts.tile_rows(self.tiles),
                  floors=getattr(self, "rounding", "ceil") == "floor", by_head=self.tiles is None)
        if self.tiles is None:
            return Placed((_layouts.of_blocks(*given), number, 0), how)
        view, padding = _layouts.in_tiles(*given, how.tile_rows, self.first_row, self.clear_padding)
        return Placed((view, number, self.first_row), how, padding)

    def _number(self, like: Any) -> Any:
        """Returns the format's global scale as a tensor; None if the format has none."""
        return None


@dataclasses.dataclass(frozen=True, eq=False)
class MxFp8(_Blocks):
    """MXFP8: fp8 (e4m3fn) elements with one f8e8m0 scale for each block of 32 elements. The call writes the scales.

        scale = the least power of two that is not below max(largest magnitude / 448, 1e-10)
        element = fp8(value / scale)

    The element and scale formats are those of OCP MX v1.0 (5.2); the scale is rounded up, as DeepGEMM's UE8M0 scales
    are, so that no element saturates. The smallest scale is 2^-33. NaN in a block makes its scale and all its elements
    NaN. The result is `[n, H, D]` f8e4m3fn.

    Args:
        scales: written; a head has G = D / 32. Without `tiles`, f8e8m0 or uint8 `[n, H, G]` or `[n, H * G]` of any strides. With `tiles`,
            f8e8m0 or uint8 `[m, P]`, or i32 `[m, P / 4]` with four scales a word: P is H * G rounded up to a multiple of 4, m is a
            multiple of a tile's rows, and rows are contiguous. Row `first_row + t` has the scales of token t.
        tiles: "128x4": scales lie in tiles of 128 rows and 4 columns, as cuBLAS and CUTLASS read them. "8x4": in tiles of 8 rows, as
            TensorRT-LLM's kernels for few tokens read them (FlashInfer's `SfLayout.layout_8x4`). None: in rows.
        first_row: in tiles, the first token's row. Rows before it are left as they are.
        clear_padding: in tiles, if True, a second, small launch writes zeros to the padding that a product reads with
            the scales, if there is any: the columns that fill up a row to a multiple of 4, and the rows past the last
            token in its tile. False: both keep their values, so that two launches, for prefill and for decode tokens,
            may share a tile in any order. With True, the launch with the later rows must come last.
        quantize_from: "f32", or "output" for values that are rounded to the result's usual dtype first.

    Example:
        >>> tiles = np.zeros((128, 4), np.uint8)  # 2 heads, of 2 blocks each
        >>> out, _ = ops.merge_attn_states(rows, lse, rows, lse, out_format=ops.MxFp8(tiles, tiles="128x4"))
        >>> out[0, 0, 0].item(), np.unique(tiles[tiles > 0]).tolist()  # 3 / 2^-7, and the code 120 of 2^-7
        (384.0, [120])
    """

    scales: Array
    _: dataclasses.KW_ONLY
    tiles: Literal["128x4", "8x4"] | None = None
    first_row: int = 0
    clear_padding: bool = True
    quantize_from: QuantizeFrom = "f32"  # type: ignore[misc]


@dataclasses.dataclass(frozen=True, eq=False)
class MxFp4(_Blocks):
    """MXFP4: fp4 (e2m1), two elements a byte, with a scale in f8e8m0 for each block of 32 elements, which the call writes.

        scale = 2^(floor(log2(largest magnitude)) - 2)                              rounding="floor"
        scale = the least power of two that is not below largest magnitude * (1/6)  rounding="ceil"
        element = e2m1(value / scale)

    "floor" is the rule of OCP MX v1.0 (6.3); elements beyond 6 times the scale saturate. "ceil" is the rule of
    FlashInfer's `mxfp4_quantize`. Scales are from 2^-127 to 2^127. If a block contains NaN, its scale is NaN, and its
    elements are 6. The result is `[n, H, D / 2]` uint8, or torch's float4_e2m1fn_x2; the first element is in the low
    bits.

    Args:
        scales: as of `MxFp8`; written.
        rounding: "floor" or "ceil".
        tiles: "128x4", "8x4", or None for scales in rows: see `MxFp8`.
        first_row: in tiles, the first token's row.
        clear_padding: in tiles, if True, padding that a product reads becomes zeros: see `MxFp8`.
        quantize_from: "f32", or "output" for values that are rounded to the result's usual dtype first.

    Example:
        >>> scales = np.zeros((3, 2, 2), np.uint8)
        >>> out, _ = ops.merge_attn_states(rows, lse, rows, lse, out_format=ops.MxFp4(scales, rounding="ceil"))
        >>> out.shape, hex(out[0, 0, 0]), scales[0, 0].tolist()  # 6 and 6, the code 126 of 2^-1
        ((3, 2, 32), '0x77', [126, 126])
    """

    is_fp4 = True

    scales: Array
    _: dataclasses.KW_ONLY
    rounding: Literal["floor", "ceil"] = "floor"
    tiles: Literal["128x4", "8x4"] | None = None
    first_row: int = 0
    clear_padding: bool = True
    quantize_from: QuantizeFrom = "f32"  # type: ignore[misc]

    def __post_init__(self) -> None:
        if self.rounding not in ("floor", "ceil"):
            raise self.wrong("rounding", "'floor' or 'ceil'")
        super().__post_init__()


@dataclasses.dataclass(frozen=True, eq=False)
class NvFp4(_Blocks):
    """NVFP4: fp4 (e2m1), two elements a byte, with a scale in e4m3 for each block of 16 elements, which the call writes, and a global one.

        scale = e4m3(global_scale * (largest magnitude * (1/6)))
        element = e2m1(value * (1 / (scale * (1 / global_scale)))), and e2m1(value * 0) where the scale is 0

    Each step is rounded in f32. This is vLLM's `scaled_fp4_quant` and FlashInfer's `nvfp4_quantize` with correct reciprocals, as in their
    references; on a GPU theirs are approximate, and may differ by a unit in the last place of f32. NaN in a block makes its scale NaN, and
    its elements 6. The result is `[n, H, D / 2]` uint8, or torch's float4_e2m1fn_x2; the first element is in the low bits.

    Args:
        scales: f8e4m3fn or uint8, else as of `MxFp8`, for G = D / 16; written.
        global_scale: one f32 on the inputs' device, of any rank; a float is copied there. Engines have 448 * 6 / the largest magnitude of
            a tensor.
        tiles: "128x4", "8x4", or None for scales in rows: see `MxFp8`.
        first_row: in tiles, the first token's row.
        clear_padding: in tiles, if True, padding that a product reads becomes zeros: see `MxFp8`.
        quantize_from: "f32", or "output" for values that are rounded to the result's usual dtype first.

    Example:
        >>> tiles = np.zeros((128, 8), np.uint8)  # 2 heads, of 4 blocks each
        >>> out, _ = ops.merge_attn_states(rows, lse, rows, lse, out_format=ops.NvFp4(tiles, 8.0, tiles="128x4", first_row=5))
        >>> out.shape, hex(out[0, 0, 0]), np.flatnonzero(tiles)[:8].tolist()
        ((3, 2, 32), '0x77', [80, 81, 82, 83, 96, 97, 98, 99])
    """

    size = 16
    scale_dtype = "float8_e4m3fn"
    is_fp4 = True

    scales: Array
    global_scale: Array | float
    _: dataclasses.KW_ONLY
    tiles: Literal["128x4", "8x4"] | None = None
    first_row: int = 0
    clear_padding: bool = True
    quantize_from: QuantizeFrom = "f32"  # type: ignore[misc]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.global_scale is None:
            raise self.wrong("global_scale", _ONE)

    def _number(self, like: Any) -> Any:
        return one_element(self.global_scale, like)


class Plain(OutFormat):
    """Stands for no format: the result has its usual dtype. Merges that also rotate rows, or that have a gate or sinks,
    use this class, since their kernels take a format."""

    def place(self, rows: Rows, like: Any, dtype: Any) -> Placed:
        return Placed((None, None, 0), How(is_plain=True))


FORMATS: dict[str, type[OutFormat]] = {one.__name__: one for one in (Fp8, Fp8Groups, MxFp8, MxFp4, NvFp4)}
"""The formats by name."""


_KINDS = frozenset(FORMATS.values())


def check_format(value: Any) -> None:
    """Raises ArgumentError unless the value is a format."""
    if type(value) not in _KINDS:
        raise wrong("out_format", f"an instance of {', '.join(list(FORMATS)[:-1])} or {list(FORMATS)[-1]}", type(value).__qualname__)
