"""Backends with one fault each, most of them known from public reports. In all else they equal the backends of
audit_backends.py."""

from __future__ import annotations

import math
import os
import signal
import time
from typing import Any

import torch
from audit_backends import dense, merge, merge_all, paged, ragged, reduce, visible

Call = tuple[torch.Tensor, torch.Tensor]


def sequences(cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor) -> Any:
    ends, key_ends = cu_seqlens_q.tolist(), cu_seqlens_k.tolist()
    return zip(ends, ends[1:], key_ends, key_ends[1:])


def stale_rows(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, out: Any = None, lse: Any = None, **given: Any) -> Call:
    """Does not write rows of sequences without keys, which then contain 7 (flashinfer #2409)."""
    right, right_lse = ragged(q, k, v, **given)
    if out is None or lse is None:
        out, lse = torch.empty_like(right), torch.empty_like(right_lse)
    out.copy_(right)
    lse.copy_(right_lse)
    for begin, end, first, last in sequences(given["cu_seqlens_q"], given["cu_seqlens_k"]):
        if first == last:
            out[begin:end], lse[begin:end] = 7.0, 7.0
    return out, lse


def lse_of_a_neighbour(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **given: Any) -> Call:
    """Stores the lse of a row without keys one row too far (flash-attention #2573)."""
    out, lse = ragged(q, k, v, **given)
    for begin, end, first, last in sequences(given["cu_seqlens_q"], given["cu_seqlens_k"]):
        if first == last and end < lse.shape[0]:
            lse[begin + 1 : end + 1] = -math.inf
    return out, lse


def masked_rows_are_nan(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **given: Any) -> Call:
    """Takes a softmax over scores that are all -inf, which gives NaN (pytorch #134650)."""
    out, lse = ragged(q, k, v, **given)
    for begin, end, first, last in sequences(given["cu_seqlens_q"], given["cu_seqlens_k"]):
        if last > first:
            out[begin:end][~visible(end - begin, last - first, given["causal"]).any(1)] = math.nan
    return out, lse


def zero_init_removed(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **given: Any) -> Call:
    """Takes outputs from torch.empty and does not write padding (vllm #57136)."""
    right, right_lse = ragged(q, k, v, **given)
    out, lse, live = torch.empty_like(right), torch.empty_like(right_lse), int(given["cu_seqlens_q"][-1])
    out[:live], lse[:live] = right[:live], right_lse[:live]
    return out, lse


PREFILLING = torch.zeros(16, dtype=torch.bool)


def stale_is_prefilling(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **given: Any) -> Call:
    """Keeps the flags of a larger batch past the live requests, so that padding counts as new tokens (vllm #41873)."""
    out, lse = ragged(q, k, v, **given)
    lengths = given["cu_seqlens_q"].diff()
    live = int((lengths > 0).sum())
    stale = PREFILLING[live:].any()
    PREFILLING[:live] = lengths[:live] > 1
    if stale and out.shape[0] > int(given["cu_seqlens_q"][-1]):
        out[int(given["cu_seqlens_q"][-1]) :] = 1.5
    if live == lengths.shape[0]:
        PREFILLING[live:] = False
    return out, lse


def reads_behind_seq_len(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, seq_lens_k: torch.Tensor, **given: Any) -> Call:
    """Multiplies values past the keys by a weight of 0 (vllm #53628)."""
    out, lse = dense(q, k, v, seq_lens_k=seq_lens_k, **given)
    for b, length in enumerate(seq_lens_k.clamp(min=0).tolist()):
        if 0 < length < v.shape[1]:
            out[b] += (0.0 * v[b, length:].float().sum(0)).repeat_interleave(q.shape[2] // v.shape[2], 0).to(out.dtype)
    return out, lse


def lse_in_padded_memory(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, seq_lens_k: torch.Tensor, **given: Any) -> Call:
    """Returns the lse as a slice of an array whose last size is a multiple of 32. Rows without keys are NaN, as in
    torch's efficient attention."""
    out, lse = dense(q, k, v, seq_lens_k=seq_lens_k, **given)
    size = lse.shape[1]
    padded = lse.new_full((lse.shape[0], lse.shape[2], -(-size // 32) * 32), float("nan"))
    padded[:, :, :size] = lse.transpose(1, 2)
    padded[seq_lens_k <= 0] = float("nan")
    return out, padded[:, :, :size]


def reads_pages_of_nobody(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, block_table: torch.Tensor, **given: Any) -> Call:
    """Reads every entry of the page table, even dead ones, and masks by a product with 0 (vllm #35219)."""
    out, lse = paged(q, k_cache, v_cache, block_table=block_table, **given)
    unread = block_table == 0
    for b in range(block_table.shape[0]):
        if unread[b].any() and given["seq_lens"][b] > 0:
            out[b] += (0.0 * v_cache[0].float().sum(0)).repeat_interleave(q.shape[1] // v_cache.shape[2], 0).to(out.dtype)
    return out, lse


def base_2(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **given: Any) -> Call:
    """Returns an lse in base 2, although the adapter says otherwise (vllm #52796)."""
    out, lse = ragged(q, k, v, **given)
    return out, lse.div_(math.log(2))


def heads_first(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **given: Any) -> Call:
    """Returns an lse [H, n], although the adapter says otherwise (vllm #57012)."""
    out, lse = ragged(q, k, v, **given)
    return out, lse.T.contiguous()


def stats_of_empty_rows(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **given: Any) -> Call:
    """Returns a finite sentinel as the lse of a row without keys (flashinfer #4401)."""
    out, lse = ragged(q, k, v, **given)
    return out, lse.masked_fill_(lse == -math.inf, -5e4)


def ignores_sinks(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, sinks: Any = None, **given: Any) -> Call:
    """Takes a path that does not support sinks."""
    return ragged(q, k, v, **given)


def sentinel(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **given: Any) -> Call:
    """Starts the running maximum at -5e4, so that lower scores are lost (flashinfer #4267)."""
    out, lse = ragged(q, k, v, **given)
    low = lse < -5e4
    out[low] = 0
    return out, lse.masked_fill_(low, -math.inf)


def strides_of_lengths(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, seq_lens: torch.Tensor, **given: Any) -> Call:
    """Reads lengths as if they were contiguous (vllm #40987)."""
    return paged(q, k_cache, v_cache, seq_lens=seq_lens.as_strided(seq_lens.shape, (1,)), **given)


def strides_of_heads(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **given: Any) -> Call:
    """Reads rows of q as if there were no gaps between heads (flash-attention #2388)."""
    return ragged(q.as_strided(q.shape, (q.shape[1] * q.shape[2], q.shape[2], 1)), k, v, **given)


def bits_of_the_batch(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **given: Any) -> Call:
    """Applies the scale before the product in small batches, but after it in large ones (vllm #53257)."""
    if q.shape[0] < 8:
        return ragged(q * given["scale"], k, v, **{**given, "scale": 1.0})
    return ragged(q, k, v, **given)


def length_of_minus_one_hangs(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, seq_lens: torch.Tensor, **given: Any) -> Call:
    """Takes a length of -1 as 2^32 - 1 keys, and hangs (vllm #51593)."""
    if (seq_lens < 0).any():
        time.sleep(60)
    return paged(q, k_cache, v_cache, seq_lens=seq_lens, **given)


def many_heads_crash(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **given: Any) -> Call:
    """Crashes for many heads, as if it launched more threads than a block may have (sglang #23993)."""
    if q.shape[1] >= 96:
        os.kill(os.getpid(), signal.SIGSEGV)
    return ragged(q, k, v, **given)


def ignores_the_table(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, block_table: torch.Tensor, **given: Any) -> Call:
    """Assumes that a request's pages directly follow its first one."""
    straight = block_table[:, :1] + torch.arange(block_table.shape[1], dtype=torch.int32)
    return paged(q, k_cache, v_cache, block_table=straight.clamp(max=k_cache.shape[0] - 1), **given)


def writes_behind_out(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, out: Any = None, lse: Any = None, **given: Any) -> Call:
    """Stores a whole tile of rows, even past the end of the output."""
    out, lse = ragged(q, k, v, out=out, lse=lse, **given)
    if out.untyped_storage().nbytes() > out.nbytes:
        out.as_strided((4,), (1,), out.storage_offset() + out.numel()).zero_()
    return out, lse


def merge_of_two_empty_sides(a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor, *, out: Any = None, lse: Any = None) -> Call:
    """Computes -inf - (-inf) for two empty sides, which gives NaN (vllm #27491)."""
    top = torch.maximum(a_lse, b_lse)
    weights = torch.exp(a_lse - top), torch.exp(b_lse - top)
    total = weights[0] + weights[1]
    merged = (a * weights[0][..., None] + b * weights[1][..., None]) / total[..., None]
    out, lse = (torch.empty_like(a), torch.empty_like(a_lse)) if out is None or lse is None else (out, lse)
    return out.copy_(merged), lse.copy_(top + torch.log(total))


def merge_multiplies_garbage(a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor, *, out: Any = None, lse: Any = None) -> Call:
    """Multiplies NaN in empty states by their weight of 0 (flashinfer #4975)."""
    merged, total = merge_all(torch.stack([a, b]), torch.stack([a_lse, b_lse]))
    merged = merged + 0.0 * a * (a_lse == -math.inf)[..., None]
    return (merged, total) if out is None or lse is None else (out.copy_(merged), lse.copy_(total))


def merge_in_place_race(a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor, *, out: Any = None, lse: Any = None) -> Call:
    """Stores the lse before all lanes have read it (vllm #40924)."""
    _, total = merge(a, a_lse, b, b_lse)
    lse = torch.empty_like(a_lse) if lse is None else lse
    lse.copy_(total)
    merged, _ = merge(a, a_lse, b, b_lse)
    return merged if out is None else out.copy_(merged), lse


def reduce_of_empty_ranks(out: torch.Tensor, lse: torch.Tensor, *, group: Any) -> Call:
    """Scales and sums every rank's rows, even those of empty ranks (flashinfer #4975)."""
    merged, total = reduce(out, lse, group=group)
    scaled = out * torch.exp(lse - total)[..., None]
    torch.distributed.all_reduce(scaled, group=group)
    return scaled, total
