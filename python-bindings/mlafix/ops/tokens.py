"""Tokens of a batch, and their blocks: blocks of a cache cleared, ragged rows to padded ones and back, rotary embedding.

The examples begin with:

    >>> import numpy as np
    >>> from mlafix import ops

A first call compiles the kernel for the length of its rows. `mlafix.warmup` of a call compiles it ahead. Calls with another number of
tokens or blocks have the same code. Without the compiler, rows of any length are moved in chunks, by kernels that are compiled ahead.

Where elements are only moved, arrays of numpy and torch may have dtypes that kernels do not support. Arrays of other libraries may not.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable
from typing import Any, Sequence

import numpy

from .. import _env, library
from .._files import toolchain
from .._launcher.arguments import check_integer, wrong
from .._launcher.arrays import as_bits, as_moved, check_dtype, check_integers, empty, evenly_viewed, is_symbol, is_torch, rows_of, spelling_of, viewed
from .._launcher.fake import holds
from .._launcher.recording import Needed, Recorder, recorder_of_thread, recorders, recording
from ..errors import UnitError
from ._bases import LseBases
from ._launch import launch, operation
from ._outputs import launch_in
from ._types import Array, Stream
from .formats import OutFormat, check_format

__all__ = ["zero_blocks", "store_rows", "pack_rows", "unpack_rows", "apply_rope"]

MAX_CACHES = 8
"""The most caches that `zero_blocks` clears in one launch."""

_CACHE_NAMES = {f"c{i}": f"cache[{i}]" for i in range(MAX_CACHES)}
_FLOATS = "bfloat16", "float16", "float32", "float8_e4m3fn", "float8_e5m2"
_INTEGERS = {"int32": numpy.int32, "int64": numpy.int64, "int8": numpy.int8, "uint8": numpy.uint8}


@operation(_CACHE_NAMES, writes=("cache",))
def zero_blocks(cache: Array | Sequence[Array], ids: Array, *, kept: Array | None = None, stream: Stream = None) -> None:
    """Clears blocks of a paged cache, or of up to eight caches, in one launch.

        cache[ids[i]] = 0    for each i with 0 <= ids[i] < m

    An id that is negative or past the end is skipped. Ids may repeat. Zeros are stored, not multiplied in, so stale NaN
    does not survive (vLLM #35219). The ids are read on the device, in the stream's order: calls share no host buffer
    (vLLM #48085).

    Args:
        cache: `[m, …]` of any dtype of 1, 2, 4 or 8 bytes, at least 2 dims, the last one contiguous. Between blocks
            there may be gaps. The rows of a block are evenly spaced, also with gaps; the dims between the first and the
            last may be in any memory order. Gaps are not touched. Or a sequence of up to eight such arrays, whose
            shapes, page sizes, strides and dtypes may differ: an id names the same block number in each.
        ids: `[n] i64` or `i32`, on the caches' device.
        kept: `[n] i32` or `i64`: the number of tokens at the front of each block that keep their values; a cache is
            `[m, page_size, …]` then. This clears the rest of a request's last block. None: whole blocks are cleared.
        stream: the CUDA stream; None is torch's current one.

    Cost:
        Writes the bytes of the blocks that are cleared, and reads the ids.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> cache = np.full((4, 2, 8), np.nan, np.float32)
        >>> ops.zero_blocks(cache, np.array([2, -1, 7]))
        >>> np.isnan(cache[:, 0, 0]).tolist()
        [True, True, False, True]
    """
    check_integers(ids, "ids")
    if kept is not None:
        check_integers(kept, "kept")
        _zero_tails([cache] if hasattr(cache, "shape") else cache, ids, kept, stream)
        return
    if hasattr(cache, "shape"):
        blocks = _blocks(cache, "cache")
        _launch_rows("zero_blocks", (blocks, ids), lambda size: _zero_chunks([blocks], ids, size), stream)
        return
    _check_caches(cache)
    caches = [_blocks(each, f"cache[{i}]") for i, each in enumerate(cache)]
    absent = [None] * (MAX_CACHES - len(caches))
    kinds = {spelling_of(each.dtype) for each in caches}
    if len(kinds) == 1 and all(tuple(each.shape) == tuple(caches[0].shape) for each in caches[1:]):
        _launch_rows("zero_blocks_of_8", (*caches, *absent, ids), lambda size: _zero_chunks(caches, ids, size), stream)
        return
    if len(kinds) > 1:
        caches = [_bytes_of(each, f"cache[{i}]") for i, each in enumerate(caches)]
    rows = max(each.shape[1] for each in caches)
    _launch_rows("zero_blocks_of_shapes", (*caches, *absent, ids, rows), lambda size: _zero_chunks(caches, ids, size), stream)


@operation({"x": "rows", "out": "cache"}, writes=("cache",))
def store_rows(cache: Array, rows: Array, slots: Array, *, out_format: OutFormat | None = None, stream: Stream = None) -> None:
    """Stores tokens' rows into the slots of a paged cache, in its dtype or in a format with scales.

        cache[slots[t] // page_size, slots[t] % page_size] = rows[t]    where 0 <= slots[t] < pages * page_size

    A slot that is negative or past the end is skipped; padding has slot -1. No two tokens may share a slot. Slots
    without a token keep their values and scales.

    Args:
        cache: `[pages, page_size, H, D]`, bf16, f16, f32 or as `out_format` stores, any strides but the last dim's; the
            rows that slots name are written. With one latent row per token, `[pages, page_size, D]`. If heads come
            before tokens, pass `cache.transpose(1, 2)`.
        rows: `[n, H, D] T`, T of bf16, f16, f32; or `[n, D]`.
        slots: `[n] i64` or `i32`, on the arrays' device, in the stream's order.
        out_format: stores the rows as fp8 or fp4, as [the page of formats](formats.md) says; scales have the cache's shape with G for D,
            `[pages, page_size, H, G]`, and lie neither in words nor in tiles. None: as the cache's dtype.
        stream: the CUDA stream; None is torch's current one.

    Cost:
        Reads the rows that have a slot, and writes as many.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> cache = np.zeros((2, 2, 1, 4), np.float32)
        >>> ops.store_rows(cache, np.array([[[1.0] * 4], [[2.0] * 4], [[3.0] * 4]], np.float32), np.array([2, -1, 0]))
        >>> cache[:, :, 0, 0].tolist()
        [[3.0, 0.0], [1.0, 0.0]]
    """
    check_integers(slots, "slots")
    check_dtype(rows, "rows")
    if len(getattr(rows, "shape", ())) not in (2, 3):
        raise wrong("rows", "2 dims [n, D] or 3 dims [n, H, D]", len(rows.shape))  # type: ignore[attr-defined]
    has_heads = len(rows.shape) == 3  # type: ignore[attr-defined]
    names = ("pages", "page_size", *(("H",) if has_heads else ()), "D")
    pages, size, *_ = rows_of(cache, "cache", names)
    heads, dim = rows.shape[1:] if has_heads else (1, rows.shape[1])  # type: ignore[attr-defined]
    places = cache if has_heads else cache[:, :, None]  # type: ignore[index]
    if out_format is None:
        check_dtype(cache, "cache")
    else:
        check_format(out_format)
        how = out_format.place((pages, size, heads, dim), rows, None).how
        if not how.is_static and not how.by_head:
            raise wrong("out_format", "a format whose scales have shape [pages, page_size, H, G], and are neither int32 nor in tiles", f"{type(out_format).__name__} with other scales")
    launch_in(out_format, "rows.store_in_pages", (pages, size, heads, dim), places, (rows if has_heads else rows[:, None], slots), rows, "rows",  # type: ignore[index]
              LseBases("e", "e", "e"), stream)  # fmt: skip


@operation({"padded": "out"}, out="")
def pack_rows(x: Array, starts: Array, length: int, *, pad: float = 0.0, out: Array | None = None, stream: Stream = None) -> Any:
    """Packs ragged rows into padded ones.

        out[s, j] = x[starts[s] + j]    where starts[s] + j < starts[s + 1], else pad

    The part of a sequence beyond `length` is dropped. The call does not wait for the device, because the caller chooses
    the length. If the offsets name a row beyond `x`, it becomes zeros.

    Args:
        x: `[n, …]` of any dtype of 1, 2, 4 or 8 bytes and at least 2 dims: `[n, 1]` for rows of one element. The elements of a row are
            contiguous; between rows there may be gaps.
        starts: `[b + 1] i32`.
        length: the number of rows of each sequence in `out`.
        pad: the value behind a sequence's end, rounded to the dtype if that is a float. It must be 0 for dtypes that
            kernels do not support, such as f64.
        out: `[b, length, …]` as `x`. Allocated if None.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `out`.

    Cost:
        Reads the rows that are packed, and writes all of `out`.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> x = np.arange(1.0, 4.0, dtype=np.float32)[:, None]
        >>> ops.pack_rows(x, np.array([0, 2, 3], np.int32), 2, pad=-np.inf)[..., 0].tolist()
        [[1.0, 2.0], [3.0, -inf]]
    """
    shape = _rows_shape(x, "x", 1)
    sequences = rows_of(starts, "starts", ("b + 1",))[0] - 1
    check_integer("length", length)
    if not holds(length >= 0):
        raise wrong("length", "0 or more", length)
    if not holds(sequences >= 0):
        raise wrong("starts", "at least 1 entry", 0)
    if not isinstance(pad, (int, float)) and not is_symbol(pad):
        raise wrong("pad", "a number", repr(pad))
    if out is None:
        out = empty(x, (sequences, length, *shape[1:]))
    elif tuple(_rows_shape(out, "out", 2)) != (sequences, length, *shape[1:]):
        raise wrong("out", f"shape {[sequences, length, *shape[1:]]}", tuple(out.shape))  # type: ignore[attr-defined]
    rows, padded = _flat(as_moved(x), "x", 1), _flat(as_moved(out), "out", 2)
    kind = spelling_of(x.dtype)  # type: ignore[attr-defined]
    if not is_symbol(pad) and pad == 0 and math.copysign(1.0, pad) > 0:
        _launch_rows("pack_bits", (padded, rows, starts), lambda size: ("pack_chunks_of_bits", (*_bits_in(size, out=padded, x=rows), starts)), stream)
    elif kind in _FLOATS:
        number = pad if is_symbol(pad) else float(pad)
        _launch_rows("pack_rows", (padded, rows, starts, number), lambda size: ("pack_chunks", (*_in_chunks(size, out=padded, x=rows), starts, number)), stream)
    elif is_symbol(pad):
        return out  # the operator reports the error when it runs
    elif kind in _INTEGERS:
        info = numpy.iinfo(_INTEGERS[kind])
        if pad != pad or not info.min <= pad <= info.max or pad != int(pad):
            raise wrong("pad", f"an integer from {info.min} to {info.max} for dtype {kind}", pad)
        number = int(pad)
        _launch_rows("pack_integers", (padded, rows, starts, number), lambda size: ("pack_chunks_of_integers", (*_in_chunks(size, out=padded, x=rows), starts, number)), stream)
    else:
        raise wrong("pad", f"0 for dtype {kind}", pad)
    return out


@operation({"x": "out"}, out="")
def unpack_rows(padded: Array, starts: Array, *, out: Array, stream: Stream = None) -> Any:
    """Unpacks padded rows into ragged ones: the inverse of `pack_rows`.

        out[t] = padded[s, t - starts[s]]    for the sequence s with starts[s] <= t < starts[s + 1]

    Rows that belong to no sequence keep their values. Rows past the end of `padded`, which `pack_rows` dropped, become
    zeros.

    Args:
        padded: `[b, m, …]` of any dtype of 1, 2, 4 or 8 bytes and at least 3 dims; the elements of a row are contiguous.
        starts: `[b + 1] i32`, not decreasing.
        out: `[n, …]` as `padded`; filled and returned.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `out`.

    Cost:
        Reads and writes the rows that belong to a sequence.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> padded = np.arange(1.0, 5.0, dtype=np.float32).reshape(2, 2, 1)
        >>> ops.unpack_rows(padded, np.array([0, 2, 3], np.int32), out=np.full((4, 1), 9, np.float32))[:, 0].tolist()
        [1.0, 2.0, 3.0, 9.0]
    """
    shape = _rows_shape(padded, "padded", 2)
    if tuple(_rows_shape(out, "out", 1)[1:]) != tuple(shape[2:]):
        raise wrong("out", f"rows of shape {list(shape[2:])}, as argument \"padded\" has", list(out.shape[1:]))  # type: ignore[attr-defined]
    x, rows = _flat(as_moved(out), "out", 1), _flat(as_moved(padded), "padded", 2)
    _launch_rows("unpack_rows", (x, rows, starts), lambda size: ("unpack_chunks", (*_bits_in(size, out=x, padded=rows), starts)), stream)
    return out


@operation(writes=("x",))
def apply_rope(x: Array, positions: Array, table: Array, *, interleaved: bool = False, stream: Stream = None) -> None:
    """Rotary position embedding in place: each pair of elements of a head is turned by its angle, in f32 (N7).

        a, b = a * cos - b * sin, b * cos + a * sin

    Pairs are (x[i], x[D / 2 + i]), or with `interleaved` (x[2 i], x[2 i + 1]); row `positions[t]` of the table has the cosines
    and the sines of pair i. A position that is negative or past the end of the table gives zeros. For a part of a head, pass that
    part: `x[..., :64]`.

    Args:
        x: `[n, H, D] T`, T of bf16, f16, f32, D even; updated.
        positions: `[n] i64` or `i32`.
        table: `[m, 2, D / 2]`, or `[m, D]` with the cosines before the sines as engines keep it; T or f32.
        interleaved: True if pairs are neighbours.
        stream: the CUDA stream; None is torch's current one.

    Cost:
        Reads and writes x, and reads D elements of the table a token.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> x, table = np.array([[[1.0, 2.0]]], np.float32), np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
        >>> ops.apply_rope(x, np.array([1]), table)  # a quarter of a turn
        >>> x.tolist()
        [[[-2.0, 1.0]]]
    """
    dim = rows_of(x, "x", ("n", "H", "D"))[2]
    check_dtype(x, "x")
    check_dtype(table, "table")
    check_integers(positions, "positions")
    shape = tuple(getattr(table, "shape", ()))
    if dim % 2:
        raise wrong("x", "an even size in dim 2", dim)
    if shape[1:] not in ((dim,), (2, dim // 2)):
        raise wrong("table", f"shape [m, 2, {dim // 2}] or [m, {dim}]", shape)
    halves = table if len(shape) == 3 else evenly_viewed(table, "table", (shape[0], 2, dim // 2), "contiguous rows")
    launch(library.kernel("apply_rope_pairs" if interleaved else "apply_rope"), (x, positions, halves), stream)


CHUNKS = (256, 64, 16, 8, 4, 1)
"""The numbers of elements that a chunk of a row may have."""

_RowsKey = tuple[str, tuple[int, ...], str, str]
_Chunked = Callable[[int], tuple[str, tuple[Any, ...]]]
# The keys (`_rows_key`) of calls that directly launch the kernel that moves chunks, because an earlier call found no
# kernel for the length of the rows, and nothing can compile one.
_in_chunks_alone: set[_RowsKey] = set()


def _launch_rows(name: str, arguments: tuple[Any, ...], chunked: _Chunked, stream: Any) -> None:
    """Launches the kernel that is compiled for the length of its rows. If it does not exist and nothing can compile it,
    launches a kernel that moves chunks.

    `chunked` takes a chunk size that divides the rows, and returns the name and the arguments of the kernel that moves
    chunks.
    """
    if recorders and (recorder := recorder_of_thread()) and _nothing_compiles():
        return _record_rows(name, arguments, chunked, stream, recorder)
    fault = None
    if not _in_chunks_alone or _rows_key(name, arguments, stream) not in _in_chunks_alone or not _nothing_compiles():
        try:
            return launch(library.kernel(name), arguments, stream)
        except UnitError as error:
            if not _nothing_compiles():
                raise
            fault = error
    key = _rows_key(name, arguments, stream)
    try:
        _launch_chunks(key, chunked, stream)
    except UnitError:
        if fault is not None:
            raise fault from None
        raise
    _in_chunks_alone.add(key)


def _launch_chunks(key: _RowsKey, chunked: _Chunked, stream: Any) -> None:
    kernel, parts = chunked(next(size for size in CHUNKS if all(length % size == 0 for length in key[1])))
    launch(library.kernel(kernel), parts, stream)


def _record_rows(name: str, arguments: tuple[Any, ...], chunked: _Chunked, stream: Any, recorder: Recorder) -> None:
    """Records the kernel that `_launch_rows` needs, with the kernel that moves chunks as its substitute."""
    found: list[Needed] = []
    with recording(found.append):
        with contextlib.suppress(UnitError):  # without the kernel its signature is unknown, too, and the launch raises
            launch(library.kernel(name), arguments, stream)
        _launch_chunks(_rows_key(name, arguments, stream), chunked, stream)
    if found:  # nothing is found if a size of the call is a symbol
        recorder(found[0]._replace(instead=found[1]) if found[1:] else found[0])


def _rows_key(name: str, arguments: tuple[Any, ...], stream: Any) -> _RowsKey:
    """Returns the key of the code for a call's rows: the kernel's name, the lengths of the rows, their dtype and the
    device. A symbolic length counts as 1: only calls on tensors without memory have one, and these launch nothing."""
    arrays = [argument for argument in arguments if hasattr(argument, "dtype")]
    lengths = tuple(1 if is_symbol(array.shape[-1]) else array.shape[-1] for array in arrays if len(array.shape) > 1)
    return name, lengths, str(arrays[0].dtype), str(getattr(arrays[0], "device", ""))


def _nothing_compiles() -> bool:
    return _env.strict() or toolchain.compiler_file() is None


def _in_chunks(size: int, **arrays: Any) -> list[Any]:
    """Returns views of the arrays whose rows are divided into chunks of `size` elements. The arrays are passed by name."""
    for name, array in arrays.items():
        _check_rows(array, name)
    return [viewed(array, (*array.shape[:-1], array.shape[-1] // size, size)) for array in arrays.values()]


def _bits_in(size: int, **arrays: Any) -> list[Any]:
    """Does what `_in_chunks` does, for arrays whose elements are only moved."""
    return [as_bits(array) for array in _in_chunks(size, **arrays)]


def _check_caches(caches: Any) -> None:
    """Raises ArgumentError unless the value is a sequence of 1 to MAX_CACHES arrays."""
    if not isinstance(caches, (list, tuple)):
        raise wrong("cache", "an array or a sequence of arrays", type(caches).__qualname__)
    if not 1 <= len(caches) <= MAX_CACHES:
        raise wrong("cache", f"1 to {MAX_CACHES} arrays", len(caches))


def _zero_tails(caches: Any, ids: Any, kept: Any, stream: Any) -> None:
    """Clears the part of each block behind the tokens that keep their values."""
    _check_caches(caches)
    names = ["cache"] if len(caches) == 1 else [f"cache[{i}]" for i in range(len(caches))]
    pages = [_pages(each, name) for each, name in zip(caches, names)]
    if len({spelling_of(each.dtype) for each in pages}) > 1:
        pages = [_bytes_of(each, name) for each, name in zip(pages, names)]
    size = next(size for size in CHUNKS if all(each.shape[-1] % size == 0 for each in pages))
    chunks = _bits_in(size, **dict(zip(names, pages)))
    rows, most = max(math.prod(each.shape[1:4]) for each in chunks), max(each.shape[4] for each in chunks)
    launch(library.kernel("zero_tails"), (*chunks, *[None] * (MAX_CACHES - len(chunks)), ids, kept, rows, most), stream)


def _strides_of(array: Any) -> tuple[int, ...] | None:
    """Returns the strides of an array, in elements for torch and in bytes for numpy. Returns None if the array has no
    strides."""
    strides: tuple[int, ...] | None = array.stride() if is_torch(array) else getattr(array, "strides", None)
    return strides


def _outer_first(strides: tuple[int, ...] | None, dims: range) -> list[int]:
    """Returns dims in the order of memory, the outermost first. Returns them unchanged if the strides are unknown."""
    return list(dims) if strides is None else sorted(dims, key=lambda dim: -abs(strides[dim]))


def _turned(array: Any, dims: tuple[int, ...]) -> Any:
    """Returns a view of an array with its dims in the order `dims`."""
    if dims == tuple(range(len(dims))):
        return array
    return array.permute(dims) if is_torch(array) else array.transpose(dims)


def _pages(cache: Any, name: str) -> Any:
    """Returns a view of a cache `[m, page_size, …]` as `[m, A, page_size, B, R]`. In memory, the dims that A joins lie
    outside of the token's dim, and those that B joins inside of it. R is the last dim."""
    shape = _rows_shape(cache, name, 2)
    cache = as_moved(cache)
    strides = _strides_of(cache)
    order = _outer_first(strides, range(2, len(shape) - 1))
    outside = [dim for dim in order if strides is not None and abs(strides[dim]) > abs(strides[1])]
    inside = [dim for dim in order if dim not in outside]
    joined = (shape[0], math.prod(shape[dim] for dim in outside), shape[1], math.prod(shape[dim] for dim in inside), shape[-1])
    return evenly_viewed(cache, name, joined, turned=_turned(cache, (0, *outside, 1, *inside, len(shape) - 1)))


def _zero_chunks(caches: Sequence[Any], ids: Any, size: int) -> tuple[str, tuple[Any, ...]]:
    chunks = _bits_in(size, **{"cache" if len(caches) == 1 else f"cache[{i}]": each for i, each in enumerate(caches)})
    rows, most = (max(each.shape[dim] for each in chunks) for dim in (1, 2))
    return "zero_chunks", (*chunks, *[None] * (MAX_CACHES - len(chunks)), ids, rows, most)


def _rows_shape(array: Any, name: str, lead: int) -> Any:
    """Returns the shape of an array of rows with `lead` leading dims. Raises ArgumentError if it is not an array or has
    too few dims."""
    shape = getattr(array, "shape", None)
    if shape is None:
        raise wrong(name, "an array", type(array).__qualname__)
    if len(shape) <= lead:
        raise wrong(name, f"at least {lead + 1} dims [{'n' if lead == 1 else 'b, m'}, …]", len(shape))
    return shape


def _flat(array: Any, name: str, lead: int) -> Any:
    """Returns a view of an array with all dims after the first `lead` joined into one."""
    shape = array.shape
    return array if len(shape) == lead + 1 else evenly_viewed(array, name, (*shape[:lead], math.prod(shape[lead:])))


def _blocks(cache: Any, name: str) -> Any:
    """Returns a view of a cache `[m, …]` with any number of dims as `[m, P, R]`, whatever the memory order of its inner
    dims."""
    shape = _rows_shape(cache, name, 1)
    cache = as_moved(cache)
    if len(shape) == 2:
        return cache[:, None]
    if len(shape) == 3:
        return cache
    between = _outer_first(_strides_of(cache), range(1, len(shape) - 1))
    return evenly_viewed(cache, name, (shape[0], math.prod(shape[1:-1]), shape[-1]), turned=_turned(cache, (0, *between, len(shape) - 1)))


def _bytes_of(blocks: Any, name: str) -> Any:
    """Returns a view of blocks `[m, P, R]` as bytes."""
    if not isinstance(blocks, numpy.ndarray) and not is_torch(blocks):
        raise wrong(name, "numpy arrays or torch tensors, since the caches have different dtypes", type(blocks).__qualname__)
    _check_rows(blocks, name)
    return blocks.view(numpy.uint8 if isinstance(blocks, numpy.ndarray) else sys.modules["torch"].uint8)


def _check_rows(array: Any, name: str) -> None:
    """Raises ArgumentError if the rows of a numpy or torch array are not contiguous."""
    if 0 in array.shape or not (isinstance(array, numpy.ndarray) or is_torch(array)):
        return
    last = array.stride(-1) if is_torch(array) else array.strides[-1] // array.itemsize
    if last != 1 and array.shape[-1] != 1:
        raise wrong(name, "a last dim that is contiguous", f"stride {last}")
