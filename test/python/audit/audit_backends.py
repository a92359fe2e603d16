"""Correct but slow backends of attention, merges and reduces, as torch functions. They only need torch."""

from __future__ import annotations

import math
from typing import Any

import torch


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, seen: torch.Tensor, sinks: torch.Tensor | None = None,
           softcap: float = 0.0, alibi_slopes: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Computes the attention of one sequence: q [Lq, H, D], k and v [Lk, Hk, D], seen bool [Lq, Lk]. Returns out [Lq,
    H, D], and lse [Lq, H] without the sinks."""
    out, lse = weighted(scores_of(q, k, scale, softcap, alibi_slopes), v, seen, sinks)
    return out.to(q.dtype), lse


def scores_of(q: torch.Tensor, k: torch.Tensor, scale: float, softcap: float, alibi_slopes: Any) -> torch.Tensor:
    """Returns the scores [H, Lq, Lk] of all keys."""
    scores = torch.einsum("qhd,khd->hqk", q.float(), k.float().repeat_interleave(q.shape[1] // k.shape[1], 1)) * scale
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    if alibi_slopes is not None:
        own = torch.arange(q.shape[0])[:, None] + k.shape[0] - q.shape[0]
        scores = scores - alibi_slopes[:, None, None] * (own - torch.arange(k.shape[0])).abs()
    return scores


def weighted(scores: torch.Tensor, v: torch.Tensor, seen: torch.Tensor, sinks: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Computes out [Lq, H, D] in f32 and lse [Lq, H] from scores [H, Lq, Lk]."""
    scores = scores.masked_fill(~seen, -math.inf)
    lse = torch.logsumexp(scores, 2) if v.shape[0] else scores.new_full(scores.shape[:2], -math.inf)
    total = lse if sinks is None else torch.where(lse > -math.inf, torch.logaddexp(lse, sinks[:, None].expand_as(lse)), -math.inf)
    weights = torch.where(seen, torch.exp(scores - total[..., None]), 0.0)
    return torch.einsum("hqk,khd->qhd", weights, v.float().repeat_interleave(scores.shape[0] // v.shape[1], 1)), lse.T


def visible(q_len: int, kv_len: int, causal: bool, window: int = -1, window_size: tuple[int, int] = (-1, -1)) -> torch.Tensor:
    """Returns a bool mask [q_len, kv_len] of the keys that each query sees. `window` is the window's size on both
    sides; `window_size` gives the left and the right side."""
    own = torch.arange(q_len)[:, None] + kv_len - q_len
    key = torch.arange(kv_len)[None, :]
    seen = torch.ones(q_len, kv_len, dtype=torch.bool)
    left, right = (window, window) if window >= 0 else window_size
    if causal:
        seen &= key <= own
    if left >= 0:
        seen &= key >= own - left
    if right >= 0:
        seen &= key <= own + right
    return seen


def outputs(rows: tuple[int, ...], like: torch.Tensor, out: Any, lse: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns arrays for out and lse, filled with empty states. They are the caller's buffers if it passed any."""
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


def ragged_with_options(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, causal: bool, scale: float,
                        window_size: tuple[int, int] = (-1, -1), sinks: Any = None, softcap: float = 0.0, alibi_slopes: Any = None, num_splits: int = 1,
                        max_seqlen_q: int = 0, max_seqlen_k: int = 0, out: Any = None, lse: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
    out, lse = outputs((*q.shape[:2], v.shape[2]), q, out, lse)
    ends, key_ends = cu_seqlens_q.tolist(), cu_seqlens_k.tolist()
    for begin, end, first, last in zip(ends, ends[1:], key_ends, key_ends[1:]):
        seen = visible(end - begin, last - first, causal, window_size=window_size)
        out[begin:end], lse[begin:end] = attend(q[begin:end], k[first:last], v[first:last], scale, seen, sinks, softcap, alibi_slopes)
    return out, lse


def dense(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float, seq_lens_k: torch.Tensor, out: Any = None,
          lse: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
    out, lse = outputs((*q.shape[:3], v.shape[3]), q, out, lse)
    for b, length in enumerate(seq_lens_k.clamp(min=0).tolist()):
        out[b], lse[b] = attend(q[b], k[b, :length], v[b, :length], scale, visible(q.shape[1], length, causal))
    return out, lse


def gathered(cache: torch.Tensor, pages: torch.Tensor, length: int) -> torch.Tensor:
    """Returns the keys of a request from its pages: [length, Hk, D]."""
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


def ragged_paged(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, cu_seqlens_q: torch.Tensor, block_table: torch.Tensor,
                 seq_lens: torch.Tensor, causal: bool, scale: float, window_size: tuple[int, int] = (-1, -1), sinks: Any = None, softcap: float = 0.0,
                 k_scale: float = 1.0, v_scale: float = 1.0, out: Any = None, lse: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of new tokens to a paged cache: prefill, decode, or both. The cache may be fp8."""
    out, lse = outputs((*q.shape[:2], v_cache.shape[3]), q, out, lse)
    ends = cu_seqlens_q.tolist()
    for request, (begin, end, length) in enumerate(zip(ends, ends[1:], seq_lens.clamp(min=0).tolist())):
        keys, values = (gathered(cache, block_table[request], length).float() * one for cache, one in ((k_cache, k_scale), (v_cache, v_scale)))
        seen = visible(end - begin, length, causal, window_size=window_size)
        out[begin:end], lse[begin:end] = attend(q[begin:end], keys, values, scale, seen, sinks, softcap)
    return out, lse


def latent(q: torch.Tensor, kv_cache: torch.Tensor, *, block_table: torch.Tensor, seq_lens: torch.Tensor, scale: float,
           k_scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """MLA decode over one cache [pages, page_size, 576]. The first 512 elements of a row are its value."""
    out, lse = outputs((*q.shape[:2], 512), q, None, None)
    for b, length in enumerate(seq_lens.clamp(min=0).tolist()):
        keys = gathered(kv_cache, block_table[b], length)[:, None].float() * k_scale
        row, stat = attend(q[b : b + 1], keys, keys[..., :512], scale, visible(1, length, False))
        out[b], lse[b] = row[0], stat[0]
    return out, lse


class Planned:
    """A wrapper that is planned once for a batch and run for each layer. `store` writes rows to the cache."""

    def plan(self, *, cu_seqlens_q: torch.Tensor, block_table: torch.Tensor, seq_lens: torch.Tensor, causal: bool, scale: float, heads: int, page_size: int,
             k_scale: float = 1.0, v_scale: float = 1.0) -> None:
        self.lengths = {"cu_seqlens_q": cu_seqlens_q.clone(), "block_table": block_table.clone(), "seq_lens": seq_lens.clone()}
        self.options = {"causal": causal, "scale": scale, "k_scale": k_scale, "v_scale": v_scale}
        self.heads, self.page_size = heads, page_size

    def run(self, q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, out: Any = None, lse: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        assert (q.shape[1], k_cache.shape[1]) == (self.heads, self.page_size)
        return ragged_paged(q, k_cache, v_cache, **self.lengths, **self.options, out=out, lse=lse)

    def store(self, k: torch.Tensor, v: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, slot_mapping: torch.Tensor, k_scale: float = 1.0,
              v_scale: float = 1.0) -> None:
        live = slot_mapping >= 0
        size = k_cache.shape[1]
        for rows, cache, scale in ((k, k_cache, k_scale), (v, v_cache, v_scale)):
            most = torch.finfo(cache.dtype).max
            slots = slot_mapping[live]
            cache[slots // size, slots % size] = (rows[live].float() / scale).clamp(-most, most).to(cache.dtype)


def merge(a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor, *, out: Any = None, lse: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
    merged, total = merge_all(torch.stack([a, b]), torch.stack([a_lse, b_lse]))
    if out is None or lse is None:
        return merged, total
    return out.copy_(merged), lse.copy_(total)


def merge_all(outs: torch.Tensor, lses: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Merges states [K, n, H, D] and [K, n, H]. States with an infinite lse are empty, NaN propagates, and states
    without weight are not multiplied."""
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
