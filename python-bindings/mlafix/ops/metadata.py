"""Flags and lengths of a padded batch: nothing stale in the entries that only pad a captured graph.

A count `live_rows` may be a tensor on the device, which a replayed graph follows.

The examples begin with:

    >>> import numpy as np
    >>> from mlafix import ops
"""

from __future__ import annotations

from typing import Any

from .._arguments import check_integer, wrong
from .._arrays import count_or_tensor, empty, is_contiguous, rows_of
from ._families import PLAIN, KernelDispatchers
from ._launch import calls_operation, launch, operation
from ._types import Array, Stream

__all__ = ["clear_pad_flags", "mark_prefilling", "is_prefilling", "expand_context_lens"]

_CLEAR = KernelDispatchers("clear_pad_flags")
_MARK = KernelDispatchers("mark_prefilling")
_LENS = KernelDispatchers("expand_context_lens")
_COUNT = {"live_rows_at": "live_rows"}


@operation(_COUNT, writes=("flags",))
def clear_pad_flags(flags: Array, live_rows: int | Array, *, stream: Stream = None) -> None:
    """Clears the flags of requests that only pad the batch: `flags[live_rows:] = False`.

    Args:
        flags: `[n] bool`; entries at or past `live_rows` are written, no others.
        live_rows: how many requests are live: an int, 0 to n, or `[1] i32` on the flags' device.
        stream: the CUDA stream; None is torch's current one.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> flags = np.ones(5, bool)
        >>> ops.clear_pad_flags(flags, 4)
        >>> flags.tolist()
        [True, True, True, True, False]
    """
    launch(_CLEAR, PLAIN, (flags, *count_or_tensor(live_rows)), stream)


@operation(_COUNT, writes=("flags",))
def mark_prefilling(flags: Array, computed: Array, prompt: Array, live_rows: int | Array, *, stream: Stream = None) -> None:
    """Says of each request whether it still prefills, and of padding that it does not.

        flags[i] = computed[i] < prompt[i] for i < live_rows, else False

    Every flag is written, so that nothing stale survives in the padding (vLLM #41873).

    Args:
        flags: `[n] bool`; every entry is written.
        computed: `[m]` i32 or i64: tokens whose KV is there.
        prompt: `[m]`, of the same dtype: tokens of the prompt. Flags at or past m are False.
        live_rows: how many requests are live: an int, 0 to n, or `[1] i32` on the flags' device.
        stream: the CUDA stream; None is torch's current one.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> flags, computed, prompt = np.ones(5, bool), np.array([3, 8, 0]), np.array([8, 8, 4])
        >>> ops.mark_prefilling(flags, computed, prompt, 2)
        >>> flags.tolist()
        [True, False, False, False, False]
    """
    launch(_MARK, PLAIN, (flags, computed, prompt, *count_or_tensor(live_rows)), stream)


def is_prefilling(computed: Array, prompt: Array, live_rows: int | Array | None = None, *, padded: int | None = None,
                  stream: Stream = None) -> Any:
    """As `mark_prefilling`, into a new array.

    Args:
        computed: `[m]` i32 or i64: tokens whose KV is there.
        prompt: `[m]`, of the same dtype: tokens of the prompt.
        live_rows: how many requests are live: an int or `[1] i32` on the arrays' device. None is m.
        padded: the size of the result; None is m.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `[padded] bool`: computed < prompt for the live requests, False for the others.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> ops.is_prefilling(np.array([3, 8, 0]), np.array([8, 8, 4]), padded=4).tolist()
        [True, False, True, False]
    """
    (size,) = rows_of(computed, "computed", ("m",))
    if padded is not None:
        check_integer("padded", padded)
        if padded < 0:
            raise wrong("padded", "0 or more", padded)
    flags = empty(computed, (size if padded is None else padded,), "bool")
    mark_prefilling(flags, computed, prompt, size if live_rows is None else live_rows, stream=stream)
    return flags


@calls_operation()
def expand_context_lens(buffer: Array, seq_lens: Array, num_decodes: int, max_decode_len: int, *,
                        live_rows: int | Array | None = None, stream: Stream = None) -> Any:
    """One context length per (request, token) of a decode batch, contiguous, in a buffer that is there already.

        lens[i, j] = max(seq_lens[i] - max_decode_len + 1 + j, 0) for i < live_rows, else 0

    Nothing is allocated; the result is the front of the buffer, so that a captured graph keeps its address. The capacity is
    checked, and a length is never negative: read as unsigned, one hung a kernel (vLLM #42135).

    Args:
        buffer: flat i32, contiguous, of at least num_decodes * max_decode_len entries; no others are written.
        seq_lens: `[r] i32`: the sequence lengths with the new tokens. Requests at or past r get 0.
        num_decodes: requests in the batch, padding included.
        max_decode_len: tokens a request, 1 or more (speculative tokens + 1).
        live_rows: how many requests are live: an int or `[1] i32` on the buffer's device. None is num_decodes.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `[num_decodes, max_decode_len] i32`, contiguous: a view of `buffer`.

    Raises:
        ArgumentError: the buffer is too small, or an argument does not fit; nothing was launched then.

    Example:
        >>> buffer = np.full(16, -1, np.int32)
        >>> ops.expand_context_lens(buffer, np.array([9, 1, 5], np.int32), 3, 3, live_rows=2).tolist()
        [[7, 8, 9], [0, 0, 1], [0, 0, 0]]
        >>> buffer[9:].tolist()
        [-1, -1, -1, -1, -1, -1, -1]
    """
    (capacity,) = rows_of(buffer, "buffer", ("capacity",))
    check_integer("num_decodes", num_decodes)
    check_integer("max_decode_len", max_decode_len)
    if num_decodes < 0:
        raise wrong("num_decodes", "0 or more", num_decodes)
    if max_decode_len < 1:
        raise wrong("max_decode_len", "1 or more", max_decode_len)
    size = num_decodes * max_decode_len
    if capacity < size:
        raise wrong("buffer", f"room for {num_decodes} x {max_decode_len} = {size} lengths", capacity)
    if not is_contiguous(buffer):
        raise wrong("buffer", "contiguous memory", "an array with gaps")
    # Indexing is not in what __dlpack__ promises, but every library of arrays has it.
    out: Any = buffer[:size].reshape(num_decodes, max_decode_len)  # type: ignore[index]
    _expand_context_lens(out, seq_lens, num_decodes if live_rows is None else live_rows, stream=stream)
    return out


@operation({**_COUNT, "out": "buffer"}, writes=("lens",))
def _expand_context_lens(lens: Array, seq_lens: Array, live_rows: int | Array, *, stream: Stream) -> None:
    """Writes the context lengths: torch knows no operator that returns a view of its argument."""
    launch(_LENS, PLAIN, (lens, seq_lens, *count_or_tensor(live_rows)), stream)
