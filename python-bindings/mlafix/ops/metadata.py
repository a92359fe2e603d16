"""Flags, lengths, offsets, slots and tables of a padded batch: no stale values in the padding of a captured graph.

A count `live_rows` may be a tensor on the device, which a replayed graph follows.

The examples begin with:

    >>> import numpy as np
    >>> from mlafix import ops
"""

from __future__ import annotations

import math
from typing import Any

from .. import library
from .._launcher.arguments import check_integer, wrong
from .._launcher.arrays import check_integers, count_or_tensor, empty, is_contiguous, is_symbol, rows_of, spelling_of
from ._families import PLAIN, KeyedKernel
from ._launch import calls_operation, launch, operation
from ._types import Array, Stream

__all__ = ["clear_pad_flags", "mark_prefilling", "is_prefilling", "expand_context_lens", "pad_metadata", "cumulate_lens", "lens_of_rank",
           "pages_of_rank"]  # fmt: skip

_CLEAR = KeyedKernel("clear_pad_flags")
_MARK = KeyedKernel("mark_prefilling")
_LENS = KeyedKernel("expand_context_lens")
_COUNT = {"live_rows_at": "live_rows"}
_MOST = 2**63 - 1


@operation(_COUNT, writes=("flags",))
def clear_pad_flags(flags: Array, live_rows: int | Array, *, stream: Stream = None) -> None:
    """Clears the flags of requests that only pad the batch: `flags[live_rows:] = False`.

    Args:
        flags: `[n] bool`; entries at or past `live_rows` are written, no others.
        live_rows: the number of live requests: an int, 0 to n, or `[1] i32` on the flags' device.
        stream: the CUDA stream; None is torch's current one.

    Cost:
        Writes one byte a request of padding.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> flags = np.ones(5, bool)
        >>> ops.clear_pad_flags(flags, 4)
        >>> flags.tolist()
        [True, True, True, True, False]
    """
    launch(_CLEAR[PLAIN], (flags, *count_or_tensor(live_rows)), stream)


@operation(_COUNT, writes=("flags",))
def mark_prefilling(flags: Array, computed: Array, prompt: Array, live_rows: int | Array, *, stream: Stream = None) -> None:
    """Flags the requests that are still prefilling. Padding gets False.

        flags[i] = computed[i] < prompt[i] for i < live_rows, else False

    Every flag is written, so that no stale flag survives in the padding (vLLM #41873).

    Args:
        flags: `[n] bool`; every entry is written.
        computed: `[m]` i32 or i64: tokens whose KV is in the cache.
        prompt: `[m]`, of the same dtype: tokens of the prompt. Flags at or past m are False.
        live_rows: the number of live requests: an int, 0 to n, or `[1] i32` on the flags' device.
        stream: the CUDA stream; None is torch's current one.

    Cost:
        Writes n bytes, and reads two integers a live request.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> flags, computed, prompt = np.ones(5, bool), np.array([3, 8, 0]), np.array([8, 8, 4])
        >>> ops.mark_prefilling(flags, computed, prompt, 2)
        >>> flags.tolist()
        [True, False, False, False, False]
    """
    launch(_MARK[PLAIN], (flags, computed, prompt, *count_or_tensor(live_rows)), stream)


def is_prefilling(computed: Array, prompt: Array, live_rows: int | Array | None = None, *, padded: int | None = None,
                  stream: Stream = None) -> Any:
    """Does what `mark_prefilling` does, and returns a new array.

    Args:
        computed: `[m]` i32 or i64: tokens whose KV is in the cache.
        prompt: `[m]`, of the same dtype: tokens of the prompt.
        live_rows: the number of live requests: an int, 0 to padded, or `[1] i32` on the arrays' device. None is all.
        padded: the size of the result; None is m.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `[padded] bool`: computed < prompt for the live requests, False for the others.

    Cost:
        Writes one byte an entry, and reads two integers a live request.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> ops.is_prefilling(np.array([3, 8, 0]), np.array([8, 8, 4]), padded=4).tolist()
        [True, False, True, False]
    """
    (size,) = rows_of(computed, "computed", ("m",))
    if padded is not None:
        check_integer("padded", padded, 0)
        size = padded
    flags = empty(computed, (size,), "bool")
    mark_prefilling(flags, computed, prompt, size if live_rows is None else live_rows, stream=stream)
    return flags


@calls_operation()
def expand_context_lens(buffer: Array, seq_lens: Array, num_decodes: int, max_decode_len: int, *,
                        live_rows: int | Array | None = None, stream: Stream = None) -> Any:
    """Computes one context length per (request, token) of a decode batch, contiguous, in an existing buffer.

        lens[i, j] = max(seq_lens[i] - max_decode_len + 1 + j, 0) for i < live_rows, else 0

    Nothing is allocated: the result is the front of the buffer, whose address a captured graph keeps. The capacity is
    checked. A length is never negative; a negative one, read as unsigned, made a kernel hang (vLLM #42135).

    Args:
        buffer: flat i32, contiguous, of at least num_decodes * max_decode_len entries; no others are written.
        seq_lens: `[r] i32`: the sequence lengths with the new tokens. Requests at or past r get 0.
        num_decodes: requests in the batch, padding included.
        max_decode_len: tokens a request, 1 or more (speculative tokens + 1).
        live_rows: the number of live requests: an int, 0 to num_decodes, or `[1] i32` on the buffer's device. None is
            num_decodes.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `[num_decodes, max_decode_len] i32`, contiguous: a view of `buffer`.

    Cost:
        Reads one integer a live request, and writes 4 num_decodes max_decode_len bytes.

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
    num_decodes, max_decode_len = check_integer("num_decodes", num_decodes, 0), check_integer("max_decode_len", max_decode_len, 1)
    size = num_decodes * max_decode_len
    if capacity < size:
        raise wrong("buffer", f"room for {num_decodes} x {max_decode_len} = {size} lengths", capacity)
    if not is_contiguous(buffer):
        raise wrong("buffer", "contiguous memory", "an array with gaps")
    # __dlpack__ does not promise indexing, but every array library supports it.
    out: Any = buffer[:size].reshape(num_decodes, max_decode_len)  # type: ignore[index]
    _expand_context_lens(out, seq_lens, num_decodes if live_rows is None else live_rows, stream=stream)
    return out


@operation({**_COUNT, "out": "buffer"}, writes=("lens",))
def _expand_context_lens(lens: Array, seq_lens: Array, live_rows: int | Array, *, stream: Stream) -> None:
    """Writes the context lengths. It is a separate operator, because a torch operator cannot return a view of its
    argument."""
    launch(_LENS[PLAIN], (lens, seq_lens, *count_or_tensor(live_rows)), stream)


_COUNTS = {"live_rows_at": "live_rows", "live_tokens_at": "live_tokens"}


@operation(_COUNTS, writes=("seq_lens", "cu_seqlens", "slots", "block_table"))
def pad_metadata(seq_lens: Array, live_rows: int | Array, *, cu_seqlens: Array | None = None, slots: Array | None = None,
                 block_table: Array | None = None, live_tokens: int | Array | None = None, pad_slot: int = -1, pad_block: int = 0,
                 stream: Stream = None) -> None:
    """Makes the metadata of a batch's padding harmless, in one launch. The counts may be on the device.

        seq_lens[i] = 0                          for i >= live_rows, and where it is negative
        cu_seqlens[i] = cu_seqlens[live_rows]    for i > live_rows
        slots[t] = pad_slot                      for t >= live_tokens
        block_table[i, :] = pad_block            for i >= live_rows

    Attention over a padded batch then reads no keys and writes no slots for the padding. No length is negative: a
    kernel that reads it as unsigned takes -1 for 2^32 - 1 (vLLM #51593). No offset of an earlier batch is left after
    the last request's end (torchtitan #3709). Entries of live requests and tokens keep their values, except negative
    lengths. Omitted arrays are not padded.

    Args:
        seq_lens: `[r]` i32 or i64; updated.
        live_rows: the number of live requests: an int, 0 to r, or `[1] i32` on the arrays' device, where a negative
            count is 0.
        cu_seqlens: `[c]` i32 or i64, of any size, `[r + 1]` as a rule: the first token of each request, and the end of
            the last request; updated.
        slots: `[t]` i64 or i32: the slot for the KV of each token; updated.
        block_table: `[b, w]` i32 or i64, of any size, `[r, w]` as a rule: the blocks of each request; updated.
        live_tokens: the number of live tokens: an int, 0 to t, or `[1] i32` on the arrays' device, where a negative
            count means None. None: `cu_seqlens[live_rows]`, or the last entry if `cu_seqlens` is shorter, 0 if it is
            empty. Without `cu_seqlens` all tokens are live.
        pad_slot: the value of a slot of padding. Engines' cache writers skip -1. It must fit the slots' dtype.
        pad_block: the value of an entry of padding. Block 0 always exists. It must fit the table's dtype.
        stream: the CUDA stream; None is torch's current one.

    Cost:
        Reads `seq_lens`, and writes the entries of padding and negative lengths.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> lens, starts, slots = np.array([4, -1, 9], np.int32), np.array([0, 2, 3, 9], np.int32), np.array([8, 9, 5, 7, 7])
        >>> ops.pad_metadata(lens, 2, cu_seqlens=starts, slots=slots)
        >>> lens.tolist(), starts.tolist(), slots.tolist()
        ([4, 0, 0], [0, 2, 3, 3], [8, 9, 5, -1, -1])
    """
    given = (("seq_lens", seq_lens, ("r",)), ("cu_seqlens", cu_seqlens, ("c",)), ("slots", slots, ("t",)),
             ("block_table", block_table, ("b", "w")))  # fmt: skip
    entries = []
    for name, array, dims in given:
        if array is not None or name == "seq_lens":
            entries.append(math.prod(rows_of(array, name, dims)))
            check_integers(array, name)
    _check_fits("pad_slot", pad_slot, "slots", slots)
    _check_fits("pad_block", pad_block, "block_table", block_table)
    rows, rows_at = count_or_tensor(live_rows)
    tokens, tokens_at = (-1, None) if live_tokens is None else count_or_tensor(live_tokens)
    if live_tokens is not None and tokens_at is None:
        _check_live_tokens(tokens, slots)
    arguments = seq_lens, cu_seqlens, slots, block_table, max(entries), pad_slot, pad_block, rows, tokens, rows_at, tokens_at
    launch(library.kernel("pad_metadata"), arguments, stream)


@operation({**_COUNT, "cu_seqlens": "out"}, out="")
def cumulate_lens(lens: Array, *, live_rows: int | Array | None = None, out: Array | None = None, stream: Stream = None) -> Any:
    """Computes the offsets of sequences from their lengths. Offsets behind the live lengths are constant.

        out[i] = the sum of max(lens[j], 0) over j < min(i, live_rows)

    Each entry sums the lengths before it, in parallel with the others. This suits batches of a few thousand requests,
    not longer scans.

    Args:
        lens: `[r]` i32 or i64.
        live_rows: the number of live lengths: an int, 0 to r, or `[1] i32` on the arrays' device. None is r.
        out: `[c]` i32 or i64, of any size: `[r + 1]` as a rule. Allocated, `[r + 1] i32`, if None.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `out`.

    Cost:
        Writes `out`. Each entry reads the lengths before it, from the caches.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> ops.cumulate_lens(np.array([3, 1, 7], np.int32), live_rows=2).tolist()
        [0, 3, 4, 4]
    """
    (size,) = rows_of(lens, "lens", ("r",))
    check_integers(lens, "lens")
    if out is None:
        out = empty(lens, (size + 1,), "i32")
    launch(library.kernel("cumulate_lens"), (out, lens, *count_or_tensor(size if live_rows is None else live_rows)), stream)
    return out


@operation(_COUNT, out="")
def lens_of_rank(seq_lens: Array, rank: int, ranks: int, *, interleave: int = 1, live_rows: int | Array | None = None, out: Array | None = None,
                 stream: Stream = None) -> Any:
    """Counts the tokens of each request on one rank of a group that shares their context (decode context parallelism).

    Token t lies on rank `t // interleave % ranks`, as vLLM and SGLang lay a cache out. A length is never negative;
    requests that are not live have length 0.

    Args:
        seq_lens: `[r]` i32 or i64: tokens of each request on all ranks.
        rank: the rank, 0 … ranks - 1.
        ranks: the number of ranks in the group, at least 1.
        interleave: the number of consecutive tokens on one rank, at least 1; ranks * interleave is below 2^63.
        live_rows: the number of live requests: an int, 0 to n, or `[1] i32` on the arrays' device. None is all.
        out: `[n]`, as `seq_lens`; may be `seq_lens` itself. Allocated, `[r]`, if None.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `out`.

    Cost:
        Reads one integer a live request, and writes one an entry of `out`.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> [ops.lens_of_rank(np.array([10, 3], np.int32), rank, 4).tolist() for rank in range(4)]
        [[3, 1], [3, 1], [2, 1], [2, 0]]
    """
    check_rank(rank, ranks)
    check_integer("interleave", interleave, 1)
    if interleave > _MOST // ranks:
        raise wrong("interleave", f"at most {_MOST // ranks}, since {ranks} ranks times the interleave must fit 64 bits", interleave)
    (size,) = rows_of(seq_lens, "seq_lens", ("r",))
    check_integers(seq_lens, "seq_lens")
    if out is None:
        out = empty(seq_lens, (size,))
    count = count_or_tensor(rows_of(out, "out", ("n",))[0] if live_rows is None else live_rows)
    given = None if out is seq_lens else seq_lens
    launch(library.kernel("lens_of_rank"), (out, given, rank, ranks, interleave, *count), stream)
    return out


@operation(_COUNT, writes=("out",))
def pages_of_rank(out: Array, token_table: Array, requests: Array, local_lens: Array, rank: int, ranks: int, page_size: int, *, pad_page: int = 0,
                  live_rows: int | Array | None = None, stream: Stream = None) -> None:
    """Computes the page table of one rank of a group that shares contexts token by token, from the places of all tokens.

        out[i, j] = token_table[requests[i], rank + j * page_size * ranks] // ranks // page_size

    for the pages j of the local_lens[i] tokens of a live request. All other entries are pad_page, so every entry is
    written. No entry of `requests` reads out of bounds; a place that is negative or outside the table gives pad_page.

    Args:
        out: `[n, w]` i32 or i64; written.
        token_table: `[q, m]` i32 or i64: the place of each request's tokens in the memory of all ranks, SGLang's
            `req_to_token`.
        requests: `[n]` i32 or i64: the row of each request in `token_table`.
        local_lens: `[n]` i32 or i64: tokens of each request on this rank (`lens_of_rank`).
        rank: the rank, 0 … ranks - 1.
        ranks: the number of ranks in the group, at least 1.
        page_size: tokens of a page on one rank, at least 1.
        pad_page: the value of an entry without tokens. It must fit the dtype of `out`.
        live_rows: the number of live requests: an int, 0 to n, or `[1] i32` on the arrays' device. None is n.
        stream: the CUDA stream; None is torch's current one.

    Cost:
        Reads one entry of `token_table` a page, and writes all of `out`.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> places = np.arange(16)[None] + 64  # one request of 16 tokens, in pages of 4 tokens on each of 2 ranks
        >>> out = np.full((1, 3), -7, np.int32)
        >>> ops.pages_of_rank(out, places, np.array([0]), np.array([8], np.int32), 1, 2, 4)
        >>> out.tolist()
        [[8, 9, 0]]
    """
    check_rank(rank, ranks)
    check_integer("page_size", page_size, 1)
    rows = rows_of(out, "out", ("n", "w"))[0]
    for name, array in (("out", out), ("token_table", token_table), ("requests", requests), ("local_lens", local_lens)):
        check_integers(array, name)
    _check_fits("pad_page", pad_page, "out", out)
    count = count_or_tensor(rows if live_rows is None else live_rows)
    arguments = out, token_table, requests, local_lens, rank, ranks, page_size, pad_page, *count
    launch(library.kernel("pages_of_rank"), arguments, stream)


def _check_fits(name: str, value: Any, holder: str, array: Any) -> None:
    """Raises ArgumentError unless a value is an integer that fits the dtype of the array `holder`, or i64 if the array is None."""
    check_integer(name, value)
    if array is not None and spelling_of(array.dtype) == "int32" and not -(2**31) <= value < 2**31:
        raise wrong(name, f'an integer that fits int32, the dtype of "{holder}"', value)


def _check_live_tokens(tokens: Any, slots: Any) -> None:
    """Raises ArgumentError unless a number of live tokens is an integer from 0 to the number of slots, if there are slots."""
    check_integer("live_tokens", tokens, None if is_symbol(tokens) else 0)
    if slots is not None and not is_symbol(slots.shape[0]) and not is_symbol(tokens) and tokens > slots.shape[0]:
        raise wrong("live_tokens", f"a value from 0 to {slots.shape[0]}, the number of slots", tokens)


def check_rank(rank: Any, ranks: Any) -> None:
    """Raises ArgumentError unless `ranks` is at least 1 and `rank` is one of that many ranks."""
    check_integer("ranks", ranks, 1)
    check_integer("rank", rank)
    if not 0 <= rank < ranks:
        raise wrong("rank", f"a rank from 0 to {ranks - 1}", rank)
