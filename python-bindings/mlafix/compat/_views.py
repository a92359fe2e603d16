"""Converts engines' arrays to the form that the operations of `mlafix.ops` take, by views where possible."""

from __future__ import annotations

import math
import sys
from typing import Any, Iterator

import numpy

from .._launcher.arguments import check_integer, renames, wrong
from .._launcher.arrays import check_dtype, evenly_viewed, is_torch, numpy_dtype, rows_of, torch_dtype, viewed


def widened(offsets: Any) -> Any:
    """Copies integers of fewer than 32 bits to a new i32 array. Returns other arrays as they are."""
    if isinstance(offsets, numpy.ndarray):
        return offsets.astype(numpy.int32) if offsets.dtype.kind in "iu" and offsets.dtype.itemsize < 4 else offsets
    if not is_torch(offsets):
        return offsets
    torch = sys.modules["torch"]
    return offsets.to(torch.int32) if offsets.dtype in (torch.int16, torch.int8, torch.uint8, torch.uint16) else offsets


def as_f32(lse: Any) -> Any:
    """Copies an lse of bf16, f16 or f64 to a new f32 array. Returns other arrays as they are."""
    if isinstance(lse, numpy.ndarray):
        is_other = lse.dtype.name in ("bfloat16", "float16", "float64")
        return lse.astype(numpy.float32) if is_other else lse
    if not is_torch(lse):
        return lse
    torch = sys.modules["torch"]
    return lse.to(torch.float32) if lse.dtype in (torch.bfloat16, torch.float16, torch.float64) else lse


def check_shape(array: Any, name: str, shape: tuple[int, ...]) -> None:
    """Raises ArgumentError unless the array has this shape."""
    got = getattr(array, "shape", None)
    if got is None or tuple(got) != shape:
        raise wrong(name, f"shape {list(shape)}", type(array).__qualname__ if got is None else list(got))


def rows_of_rank(out: Any) -> Any:
    """Returns a view of a rank's rows as `[B, H, D]`. The array may have a dim of size 1 after B. Raises ArgumentError
    for a dtype that payloads cannot have."""
    check_dtype(out, "out")
    return out[:, 0] if len(out.shape) == 4 and out.shape[1] == 1 else out


def lses_of_ranks(lses: Any, rank: int, rows: Any) -> Any:
    """Returns the lses of all ranks as `[N, B, H]` in f32. The array may have a dim of size 1 after N or H.

    Raises ArgumentError if `rank` is out of range, or if the lses do not fit rows `[B, H, D]`.
    """
    check_integer("cp_rank", rank)
    shares = as_f32(lses)
    if len(shape := getattr(shares, "shape", ())) == 4 and 1 in (shape[1], shape[3]):
        shares = shares[..., 0] if shape[3] == 1 else shares[:, 0]
    got = tuple(rows_of(shares, "lses", ("N", "B", "H"))[1:])
    if (fits := tuple(rows_of(rows, "out", ("B", "H", "D"))[:2])) != got:
        raise wrong("lses", f"shape [N, {', '.join(map(str, fits))}], as argument \"out\" has", f"[N, {', '.join(map(str, got))}]")
    if not 0 <= rank < shares.shape[0]:
        raise wrong("cp_rank", f"a rank from 0 to {shares.shape[0] - 1}", rank)
    return shares


def segments_reduced(output: Any, maxima: Any, sums: Any, seq_lens: Any, tile_size: int, **how: Any) -> tuple[Any, Any]:
    """Reduces segments with `mlafix.ops.combine_split_kv`. `output` `[T, H, S, D]` holds sums of weights times values,
    `maxima` and `sums` `[T, H, S]` the maxima of scores and the sums of weights."""
    from .. import ops

    check_integer("tile_size", tile_size)
    rows_of(output, "segm_output", ("T", "H", "S", "D"))
    check_dtype(output, "segm_output")
    for array, name in ((maxima, "segm_max"), (sums, "segm_expsum")):
        rows_of(array, name, ("T", "H", "S"))
    parts = [array.swapaxes(1, 2).swapaxes(0, 1)[:, :, None] for array in (output, maxima, sums)]
    out, lse = ops.combine_split_kv(parts[0], parts[1], partial_sum=parts[2], seq_lens=seq_lens, tile_len=tile_size, **how)
    return out[:, 0], None if lse is None else lse[:, 0]


of_segments = renames(partial="segm_output", partial_lse="segm_max", partial_sum="segm_expsum", tile_len="tile_size",
                      out=("output", "segm_output"), out_lse="segm_output", cu_seqlens="query_start_loc", **{"Fp8.scale": "output_scale"})  # fmt: skip
"""Renames arguments in errors to the names that the engines use."""


def in_rows(payload: Any) -> Any:
    """Copies a payload whose last dim is strided to a new array with contiguous rows. Returns other payloads as they
    are."""
    if not getattr(payload, "ndim", 0) or payload.shape[-1] < 2:
        return payload
    if isinstance(payload, numpy.ndarray):
        return payload if payload.strides[-1] == payload.itemsize else payload.copy()
    return payload.contiguous() if is_torch(payload) and payload.stride(-1) != 1 else payload


def bytes_as_fp8(payload: Any) -> Any:
    """Returns a view of a payload with one-byte elements as f8e4m3fn. The view is only for writing zeros, which have
    the same bits in all one-byte dtypes. Returns other payloads as they are."""
    if getattr(getattr(payload, "dtype", None), "itemsize", 0) != 1:
        return payload
    if isinstance(payload, numpy.ndarray):
        return payload.view(numpy_dtype("f8e4m3fn"))
    return payload.view(torch_dtype("f8e4m3fn")) if is_torch(payload) else payload


def rows_of_heads(payload: Any, name: str) -> Iterator[Any]:
    """Yields views `[N, H, D]` of a payload `[N, ...]` with any number of dims. Together the views cover all of its
    elements."""
    dims = len(payload.shape)
    if 0 in payload.shape:
        return
    if dims == 0:
        raise wrong(name, "at least 1 dim [N, ...]", dims)
    if dims == 1:
        yield payload[:, None, None]
    elif dims == 2:
        yield payload[:, None]
    elif dims == 3:
        yield payload
    elif (flat := _flattened(payload)) is not None:
        yield flat
    else:
        for index in range(payload.shape[1]):
            yield from rows_of_heads(payload[:, index], name)


def _flattened(payload: Any) -> Any:
    """Returns a view that joins the dims between the first and the last into one. Returns None if these dims are not
    evenly spaced."""
    return viewed(payload, (payload.shape[0], math.prod(payload.shape[1:-1]), payload.shape[-1]))


def with_rows_joined(array: Any, name: str, dims: tuple[str, ...]) -> Any:
    """Returns a view of an array `[…, *dims]` as `[p, *dims]`, with all dims before `dims` joined into one. Raises
    ArgumentError if no view can do that."""
    shape = getattr(array, "shape", None)
    if shape is None or len(shape) == len(dims) + 1:
        return array
    if len(shape) <= len(dims):
        raise wrong(name, f"at least {len(dims) + 1} dims [p, {', '.join(dims)}]", len(shape))
    return evenly_viewed(array, name, (math.prod(shape[: -len(dims)]), *shape[-len(dims) :]), f"evenly spaced rows [{', '.join(dims)}]")


def arrays_of_calls(arrays: list[Any], dim: int) -> list[list[Any]]:
    """Returns the arrays for calls that treat each row separately. One call suffices if `dim` and the dim after it can
    be joined in views of all arrays. Otherwise there is a call for each index of `dim`."""
    flat = [viewed(array, (*array.shape[:dim], math.prod(array.shape[dim : dim + 2]), *array.shape[dim + 2 :])) for array in arrays]
    if all(array is not None for array in flat):
        return [flat]
    return [[array[(*[slice(None)] * dim, index)] for array in arrays] for index in range(arrays[0].shape[dim])]


def repeated(row: Any, times: int) -> Any:
    """Repeats a row `times` times in a new array. If `times` is 1, returns the row itself."""
    if times == 1:
        return row
    return numpy.tile(row, times) if isinstance(row, numpy.ndarray) else row.repeat(times)


def counted(count: int, like: Any) -> Any:
    """Returns the numbers from 0 to `count` - 1 as an i32 array on the device of `like`."""
    if isinstance(like, numpy.ndarray):
        return numpy.arange(count, dtype=numpy.int32)
    torch = sys.modules["torch"]
    if type(like) is not torch.Tensor:  # a method of the tensor makes an instance of its subclass; arange does not
        return like.new_ones((count,), dtype=torch.int32).cumsum(0, dtype=torch.int32) - 1
    return torch.arange(count, dtype=torch.int32, device=like.device)
