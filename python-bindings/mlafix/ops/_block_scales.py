"""What a merge, or a quantisation, stores scales in, where that is more than an array: NVFP4, MXFP4, and scales in tiles."""

from __future__ import annotations

import dataclasses
from typing import Any

from .._arguments import wrong
from .._arrays import check_dtype, empty
from ..errors import ArgumentError
from ._types import Array


@dataclasses.dataclass(frozen=True)
class BlockScales:
    """`out_scales` with more than an array says: a global scale, which makes the result NVFP4, MXFP4, or scales in tiles.

    Args:
        scales: the array that scales are written to. With `global_scale` f8e4m3fn, `[n, H, G]` or `[n, H * G]` of any strides for G =
            D / 16 groups of a head. With `swizzle` f8e4m3fn, or f8e8m0 without `global_scale`, `[m, ceil(H * G / 4) * 4]`, m a multiple
            of 128, rows contiguous: row `first_row + t` holds token t's scales; uint8 and int32 (words of four) of as many bytes are
            taken, too. With `mxfp4` f8e8m0, in tiles as these, else `[n, H, G]` or `[n, H * G]` of any strides for G = D / 32.
            Without `swizzle`, uint8 is taken beside a `global_scale` or `mxfp4`; with none of them, an array as `out_scales` describes.
        global_scale: one f32 on the inputs' device, of any rank, or a float, which is copied there: the number that scales are
            multiplied by, 448 * 6 / the largest magnitude of a tensor in engines. None: fp8 or MXFP4.
        swizzle: "128x4" for scales in tiles of 128 rows and 4 columns, as cuBLAS and CUTLASS read them; "" for others.
        first_row: in tiles, the first token's row. Rows before it are left as they are.
        mxfp4: makes the result MXFP4, and is the rule by which the scale of a group of 32, a power of two, is made of its largest
            magnitude. "floor": that of OCP MX v1.0 (6.3), 2^(floor(log2(largest)) - 2), which lets what is beyond 6 times the scale
            saturate. "ceil": the least power of two that is not below largest / 6, FlashInfer's `mxfp4_quantize`. "": no MXFP4.
        clear_padding: in tiles, whether a second, small launch writes zero bytes to the padding that a product reads with the scales,
            where there is any: the columns that make a row's a multiple of 4, and the rows from the last token's to the end of its
            tile. False: both keep what they hold, so that two launches, of prefill and of decode tokens, may share a tile in any
            order. With True the one that has the later rows comes last.

    Example:
        >>> rows, lse = np.full((3, 2, 32), 3, np.float32), np.zeros((2, 3), np.float32)
        >>> memory = np.zeros((128, 4), np.uint8)
        >>> out, _ = ops.merge_attn_states(rows, lse, rows, lse, out_scales=ops.BlockScales(memory, 8.0, "128x4", first_row=5))
        >>> out.shape, hex(out[0, 0, 0]), np.flatnonzero(memory).tolist()
        ((3, 2, 16), '0x77', [80, 81, 82, 83, 96, 97, 98, 99, 112, 113, 114, 115])
    """

    scales: Array
    global_scale: Any = None
    swizzle: str = ""
    first_row: int = 0
    mxfp4: str = ""
    clear_padding: bool = True


@dataclasses.dataclass(frozen=True)
class OneScale:
    """`out_scale` in the place of `out_scales`: makes the result fp8 with one scale that is given."""

    scale: Any


def one_or_groups(out_scale: Any, out_scales: Any) -> Any:
    """What a result is scaled by: None, one scale, or what `out_scales` says. Raises ArgumentError for both."""
    if out_scale is None:
        return out_scales
    if out_scales is not None:
        raise wrong("out_scale", "None beside out_scales", "both")
    return OneScale(out_scale)


def without_scales(round_scales: bool, quantize_from: str) -> ArgumentError:
    """The error for a call that has no `out_scales` and says how they are made."""
    if round_scales:
        return wrong("round_scales", "False without out_scales", round_scales)
    return wrong("quantize_from", "'f32' without out_scales", repr(quantize_from))


def empty_quantised(like: Any, name: str, shape: tuple[int, ...], scales: Any, dtype: str | None = None) -> Any:
    """An array for rows that are stored with `scales`: fp8, or bytes of two elements; without scales (None) as `empty`, of `dtype`.

    Raises ArgumentError where `dtype` is None and the dtype of `like`, an argument called `name`, is none of a payload.
    """
    if dtype is None and hasattr(like, "dtype"):
        check_dtype(like, name)
    if scales is None:
        return empty(like, shape, dtype)
    return empty(like, quantised_shape(shape, scales), "u8" if _is_fp4(scales) else "f8e4m3fn")


def quantised_shape(shape: tuple[int, ...], scales: Any) -> tuple[int, ...]:
    """The shape of an array for such rows: of fp4, two elements are one."""
    return (*shape[:-1], shape[-1] // 2) if _is_fp4(scales) else shape


def _is_fp4(scales: Any) -> bool:
    return getattr(scales, "global_scale", None) is not None or getattr(scales, "mxfp4", "") != ""
