"""Rows without KV, without context or in padding become the identity, 0 and -inf.

The values are exactly +0.0 and -inf (N1), so these rows contribute nothing to a later merge. No other row is written.

The examples begin with:

    >>> import numpy as np
    >>> from mlafix import ops
"""

from __future__ import annotations

from typing import Any

import numpy

from .. import library
from .._launcher.arguments import check_integer, wrong
from .._launcher.arrays import as_signed, check_dtype, check_integers, count_or_tensor, lse_as, offsets_as_i32, rows_of
from ._bases import layout_of
from ._families import KeyedKernel
from ._launch import launch, operation
from ._types import Array, LseLayout, Stream

__all__ = ["fixup_zero_kv_rows", "chunks_with_zero_kv", "mask_empty_context_lse", "mask_empty_context", "fill_pad_rows",
           "blank_rows_without_indices"]  # fmt: skip

_FIXUP = KeyedKernel("fixup_zero_kv_rows", stored=("T",))
_MASK_LSE = KeyedKernel("mask_empty_context_lse")
_MASK = KeyedKernel("mask_empty_context", stored=("T",))
_PAD = KeyedKernel("fill_pad_rows", stored=("T",))


@operation(writes=("out", "lse"))
def fixup_zero_kv_rows(out: Array, lse: Array, kv_lens: Array, cu_seqlens: Array, *, lse_layout: LseLayout = "hn",
                       stream: Stream = None) -> None:
    """Blanks the rows of sequences that had no keys: attention kernels leave such rows undefined.

        for every b with kv_lens[b] <= 0: out[cu_seqlens[b] : cu_seqlens[b + 1]] = 0, lse of these tokens = -inf (N1)

    One launch (SGLang #22688). The cost follows the rows blanked, plus one scan of `kv_lens`; nothing is synchronised.
    `chunks_with_zero_kv` finds on the host the chunks that need this. A sequence counts only if 0 <= start <= end <= n.

    Args:
        out: `[n, H, D] T`, T of bf16, f16, f32, f8e4m3fn; rows of sequences without keys are written, no others.
        lse: `[H, n] f32` (or `[n, H]`, by `lse_layout`), any strides; likewise.
        kv_lens: `[B] i32`, on the arrays' device.
        cu_seqlens: `[B + 1] i32`, likewise.
        lse_layout: "hn" or "nh".
        stream: the CUDA stream; None is torch's current one.

    Cost:
        Reads `kv_lens`, and writes H (D E + 4) bytes for each token of a sequence without keys, with E bytes per element of T.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> out, lse = np.full((5, 1, 8), np.nan, np.float32), np.full((1, 5), np.nan, np.float32)
        >>> ops.fixup_zero_kv_rows(out, lse, np.array([7, 0], np.int32), np.array([0, 3, 5], np.int32))
        >>> out[:, 0, 0].tolist(), lse[0].tolist()
        ([nan, nan, nan, 0.0, 0.0], [nan, nan, nan, -inf, -inf])
    """
    # The kernel's signature cannot say that cu_seqlens has one entry more than kv_lens, so the sizes are compared here.
    # The launch reports a wrong number of dims.
    lens, starts = getattr(kv_lens, "shape", ()), getattr(cu_seqlens, "shape", ())
    if len(lens) == len(starts) == 1 and starts[0] != lens[0] + 1:
        raise wrong("cu_seqlens", f"{lens[0] + 1} entries for the {lens[0]} sequences of kv_lens", starts[0])
    launch(_FIXUP[lse_layout, "e"], (out, lse, kv_lens, cu_seqlens), stream)


def chunks_with_zero_kv(kv_lens: Any, chunk_size: int | None = None, num_chunks: int | None = None) -> list[bool]:
    """Finds the chunks of a chunked context that have a sequence without keys, from lengths on the host: no sync.

    The other chunks do not need `fixup_zero_kv_rows`.

    Args:
        kv_lens: either `[C, B]`, the keys of each sequence in each chunk; or, with `chunk_size`, `[B]`, the context
            lengths, of which chunk c holds the keys c * chunk_size … (c + 1) * chunk_size - 1. Integers on the host:
            a (nested) sequence, a numpy array or a CPU tensor.
        chunk_size: keys of one sequence per chunk, above 0.
        num_chunks: with `chunk_size`: the number of chunks. None: as many as the longest context fills.

    Returns:
        One flag per chunk: True if any of its lengths is <= 0. Without sequences, all are False.

    Raises:
        ArgumentError: lengths on a device, of a wrong rank or not integers; a chunk size that is not positive.

    Example:
        >>> ops.chunks_with_zero_kv([10, 5], chunk_size=4)  # 5 keys end in the second chunk.
        [False, False, True]
        >>> ops.chunks_with_zero_kv([[4, 4], [4, 1], [2, 0]])
        [False, False, True]
    """
    lens = _host_integers(kv_lens, "kv_lens")
    if chunk_size is None:
        if lens.ndim != 2:
            raise wrong("kv_lens", "2 dims [C, B] without a chunk_size", lens.ndim)
        return [bool((row <= 0).any()) for row in lens]
    if lens.ndim != 1:
        raise wrong("kv_lens", "1 dim [B] with a chunk_size", lens.ndim)
    check_integer("chunk_size", chunk_size)
    if chunk_size <= 0:
        raise wrong("chunk_size", "more than 0", chunk_size)
    if num_chunks is None:
        num_chunks = int(-(-lens.max(initial=0) // chunk_size))
    check_integer("num_chunks", num_chunks)
    # A chunk has a sequence without keys if the shortest context ends before the chunk begins.
    shortest = min((int(length) for length in lens), default=num_chunks * chunk_size)
    return [bool(shortest <= chunk * chunk_size) for chunk in range(num_chunks)]


def _host_integers(values: Any, name: str) -> numpy.ndarray[Any, Any]:
    device = getattr(values, "device", None)
    if getattr(device, "type", device) not in (None, "cpu"):
        raise wrong(name, "lengths on the host, since reading a device waits for it", f"an array on {device}")
    try:
        array = numpy.asarray(values)
    except ValueError:  # numpy raises ValueError for a ragged list
        raise wrong(name, "integers, inner lists of equal length", repr(values)) from None
    except TypeError:  # torch raises TypeError for a tensor without strides
        raise wrong(name, "integers on the host", type(values).__qualname__) from None
    if array.size == 0:
        array = array.astype(numpy.int64)
    if array.dtype.kind not in "iu":
        raise wrong(name, "integers", array.dtype)
    return array


def _offsets(rows: int, query_start_loc: Array, context_start_loc: Array) -> tuple[Any, Any]:
    """Returns the offsets of requests as kernels take them: the offsets of rows as i32, the offsets of contexts as i32
    or i64."""
    return offsets_as_i32(query_start_loc, "query_start_loc", rows), as_signed(context_start_loc)


def _rows(array: Array, dims: int, dim: int) -> int:
    """Returns the size of dim `dim`. Returns 0 if the array does not have `dims` dims; the launch reports the error."""
    shape = getattr(array, "shape", ())
    return int(shape[dim]) if len(shape) == dims else 0


@operation(writes=("lse",))
def mask_empty_context_lse(lse: Array, query_start_loc: Array, context_start_loc: Array, *, lse_layout: LseLayout = "hn",
                           stream: Stream = None) -> None:
    """Marks the tokens of requests without context as empty: their lse becomes -inf (N1).

        for every b with context_start_loc[b + 1] <= context_start_loc[b]:
            lse of the tokens query_start_loc[b] … query_start_loc[b + 1] - 1 = -inf

    These rows then contribute nothing to a later merge, whatever their payload holds (N5). A request counts only if its
    rows are part of [0, n]. Offsets may have 64 bits, like a cumulative sum of lengths. Only the low 32 bits of
    query_start_loc are read, so no entry, even an unused one, may be 2^31 or more, or below -2^31.

    Args:
        lse: `[H, n] f32` (or `[n, H]`, by `lse_layout`), any strides; updated.
        query_start_loc: `[B + 1]` i32 or i64, on the lse's device.
        context_start_loc: `[B + 1]` i32 or i64, likewise.
        lse_layout: "hn" or "nh".
        stream: the CUDA stream; None is torch's current one.

    Cost:
        Reads the offsets, and writes 4 H bytes for each token of a request without context.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> lse = np.zeros((1, 4), np.float32)
        >>> ops.mask_empty_context_lse(lse, np.array([0, 1, 4], np.int32), np.array([0, 9, 9], np.int32))
        >>> lse.tolist()
        [[0.0, -inf, -inf, -inf]]
    """
    starts, contexts = _offsets(_rows(lse, 2, 1 if lse_layout == "hn" else 0), query_start_loc, context_start_loc)
    launch(_MASK_LSE[lse_layout, "e"], (lse, starts, contexts), stream)


@operation(writes=("out", "lse"))
def mask_empty_context(out: Array, lse: Array | None, query_start_loc: Array, context_start_loc: Array, *,
                       lse_layout: LseLayout = "hn", stream: Stream = None) -> None:
    """Like `mask_empty_context_lse`, and the payload of these rows becomes 0.

    Args:
        out: `[n, H, D] T`, T of bf16, f16, f32, f8e4m3fn; updated.
        lse: `[H, n] f32` (or `[n, H]`, by `lse_layout`), any strides; updated. None: there is no lse.
        query_start_loc: `[B + 1]` i32 or i64, on the arrays' device.
        context_start_loc: `[B + 1]` i32 or i64, likewise.
        lse_layout: "hn" or "nh".
        stream: the CUDA stream; None is torch's current one.

    Cost:
        Reads the offsets, and writes H (D E + 4) bytes for each token of a request without context, with E bytes per element of T.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> out, lse = np.full((4, 1, 8), np.nan, np.float32), np.zeros((1, 4), np.float32)
        >>> ops.mask_empty_context(out, lse, np.array([0, 1, 4], np.int32), np.array([0, 9, 9], np.int32))
        >>> out[:, 0, 0].tolist()
        [nan, 0.0, 0.0, 0.0]
    """
    starts, contexts = _offsets(_rows(out, 3, 0), query_start_loc, context_start_loc)
    launch(_MASK[lse_layout, "e"], (out, lse, starts, contexts), stream)


@operation({"live_rows_at": "live_rows"}, writes=("out", "lse"))
def fill_pad_rows(out: Array, live_rows: int | Array, lse: Array | None = None, *, lse_layout: LseLayout = "hn",
                  stream: Stream = None) -> None:
    """Blanks the rows that only pad a captured graph: out = 0 and lse = -inf from token `live_rows` on (N1).

    With the count on the device, a replayed graph follows it. No other row is written: the buffer may come from `empty`, and need
    not be filled (vLLM #38359).

    Args:
        out: `[n, H, D] T`, T of bf16, f16, f32, f8e4m3fn; rows at or past `live_rows` are written, no others.
        live_rows: the number of live tokens: an int, 0 to n, or `[1] i32` on the arrays' device, clamped to 0 … n.
        lse: `[H, n] f32` (or `[n, H]`, by `lse_layout`), any strides; None: there is no lse.
        lse_layout: "hn" or "nh".
        stream: the CUDA stream; None is torch's current one.

    Cost:
        Writes H (D E + 4) bytes for each token of padding, with E bytes per element of T.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> out = np.full((4, 1, 8), np.nan, np.float32)
        >>> ops.fill_pad_rows(out, 3)
        >>> ops.fill_pad_rows(out, np.array([2], np.int32))  # On a GPU: a tensor that the scheduler updates.
        >>> out[:, 0, 0].tolist()
        [nan, nan, 0.0, 0.0]
    """
    launch(_PAD[lse_layout, "e"], (out, lse, *count_or_tensor(live_rows)), stream)


MOST_INDICES = 8192
"""The largest number of indices per token for which a kernel is compiled."""


@operation(writes=("out", "lse"))
def blank_rows_without_indices(out: Array, indices: Array, lse: Array | None = None, *, lse_layout: LseLayout = "hn", stream: Stream = None) -> None:
    """Blanks the rows of tokens for which sparse attention took no key: out = 0 and lse = -inf where all indices are negative (N1).

    Attention over keys by index leaves such rows undefined. They occur under decode context parallelism, where all keys
    of a token may lie on other ranks (vLLM #46076). One launch, in place of a comparison, a reduction over indices and
    two masked fills.

    Args:
        out: `[n, H, D] T`, T of bf16, f16, f32; rows of tokens without keys are written, no others.
        indices: `[n, k]` i32 or i64, k up to 8192, the last dim contiguous: the keys of each token; entries below 0 are
            not keys.
        lse: `[H, n] f32` (or `[n, H]`, by `lse_layout`), any strides; likewise. None: there is no lse.
        lse_layout: "hn" or "nh".
        stream: the CUDA stream; None is torch's current one.

    Cost:
        Reads the indices, and writes H (D E + 4) bytes for each token without keys, with E bytes per element of T.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> out, indices = np.full((3, 1, 8), np.nan, np.float32), np.array([[4, -1], [-1, -1], [-1, 0]], np.int32)
        >>> ops.blank_rows_without_indices(out, indices)
        >>> out[:, 0, 0].tolist()
        [nan, 0.0, nan]
    """
    check_dtype(out, "out")
    check_integers(indices, "indices")
    if (most := rows_of(indices, "indices", ("n", "k"))[1]) > MOST_INDICES:
        raise wrong("indices", f"at most {MOST_INDICES} for each token (dim 1)", most)
    launch(library.kernel("blank_rows_without_indices"), (out, None if lse is None else lse_as(lse, layout_of(lse_layout), "hn"), indices), stream)
