"""Backends of attention, merges and reduces as torch functions: correct, and slow. Needs torch alone."""

from __future__ import annotations

import math
from typing import Any

import torch


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, seen: torch.Tensor,
           sinks: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """One sequence: q [Lq, H, D], k and v [Lk, Hk, D], seen bool [Lq, Lk]. out [Lq, H, D], lse [Lq, H] without the sinks."""
    group = q.shape[1] // k.shape[1]
    keys, values = (rows.float().repeat_interleave(group, 1) for rows in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q.float(), keys) * scale
    scores = scores.masked_fill(~seen, -math.inf)
    lse = torch.logsumexp(scores, 2) if k.shape[0] else scores.new_full(scores.shape[:2], -math.inf)
    total = lse if sinks is None else torch.where(lse > -math.inf, torch.logaddexp(lse, sinks[:, None].expand_as(lse)), -math.inf)
    weights = torch.where(seen, torch.exp(scores - total[..., None]), 0.0)
    return torch.einsum("hqk,khd->qhd", weights, values).to(q.dtype), lse.T


def visible(q_len: int, kv_len: int, causal: bool, window: int = -1) -> torch.Tensor:
    own = torch.arange(q_len)[:, None] + kv_len - q_len
    key = torch.arange(kv_len)[None, :]
    seen = torch.ones(q_len, kv_len, dtype=torch.bool)
    if causal:
        seen &= key <= own
    if window >= 0:
        seen &= (key >= own - window) & (key <= own + window)
    return seen


def outputs(rows: tuple[int, ...], like: torch.Tensor, out: Any, lse: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Identities, in the caller's buffers where there are some."""
    out = torch.empty(rows, dtype=like.dtype) if out is None else out
    lse = torch.empty(rows[:-1]) if lse is None else lse
    return out.zero_(), lse.fill_(-math.inf)


def ragged(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, causal: bool, scale: float,
           window: int = -1, sinks: Any = None, out: Any = None, lse: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
    out, lse = outputs((*q.shape[:2], v.shape[2]), q, out, lse)
    ends, key_ends = cu_seqlens_q.tolist(), cu_seqlens_k.tolist()
    for begin, end, first, last in zip(ends, ends[1:], key_ends, key_ends[1:]):
        seen = visible(end - begin, last - first, causal, window)
        out[begin:end], lse[begin:end] = attend(q[begin:end], k[first:last], v[first:last], scale, seen, sinks)
    return out, lse


def dense(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float, seq_lens_k: torch.Tensor, out: Any = None,
          lse: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
    out, lse = outputs((*q.shape[:3], v.shape[3]), q, out, lse)
    for b, length in enumerate(seq_lens_k.clamp(min=0).tolist()):
        out[b], lse[b] = attend(q[b], k[b, :length], v[b, :length], scale, visible(q.shape[1], length, causal))
    return out, lse


def gathered(cache: torch.Tensor, pages: torch.Tensor, length: int) -> torch.Tensor:
    """The keys of a request: [length, Hk, D]."""
    size = cache.shape[1]
    return cache[pages[: -(-length // size)].long()].flatten(0, 1)[:length]


def paged(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, block_table: torch.Tensor, seq_lens: torch.Tensor, scale: float,
          num_splits: int = 1, out: Any = None, lse: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
    out, lse = outputs((*q.shape[:2], v_cache.shape[3]), q, out, lse)
    for b, length in enumerate(seq_lens.clamp(min=0).tolist()):
        keys, values = (gathered(cache, block_table[b], length) for cache in (k_cache, v_cache))
        row, stat = attend(q[b : b + 1], keys, values, scale, visible(1, length, False))
        out[b], lse[b] = row[0], stat[0]
    return out, lse


def merge(a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor, *, out: Any = None, lse: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
    merged, total = merge_all(torch.stack([a, b]), torch.stack([a_lse, b_lse]))
    if out is None or lse is None:
        return merged, total
    return out.copy_(merged), lse.copy_(total)


def merge_all(outs: torch.Tensor, lses: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """States [K, n, H, D] and [K, n, H]: infinities are empty, NaN propagates, states without weight are not multiplied."""
    scores = torch.where(torch.isinf(lses), -math.inf, lses)
    top = scores.amax(0)
    weights = torch.exp(scores - torch.where(torch.isinf(top), 0.0, top))
    total = weights.sum(0)
    terms = torch.where(weights[..., None] != 0, weights[..., None] * outs.float(), 0.0)
    out = torch.where((total != 0)[..., None], terms.sum(0) / torch.where(total != 0, total, 1.0)[..., None], 0.0)
    return out.to(outs.dtype), top + torch.log(total).nan_to_num(nan=math.nan, neginf=-math.inf)


def reduce(out: torch.Tensor, lse: torch.Tensor, *, group: Any) -> tuple[torch.Tensor, torch.Tensor]:
    ranks = torch.distributed.get_world_size(group)
    outs = [torch.empty_like(out) for _ in range(ranks)]
    lses = [torch.empty_like(lse) for _ in range(ranks)]
    torch.distributed.all_gather(outs, out.contiguous(), group=group)
    torch.distributed.all_gather(lses, lse.contiguous(), group=group)
    return merge_all(torch.stack(outs), torch.stack(lses))
