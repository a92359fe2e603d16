"""Correct backends in the styles in which engines and reviewers write attention. They differ from audit_backends.py,
and from each other, in the order of sums, in layouts and in interfaces."""

from __future__ import annotations

import math
import time
from functools import partial
from typing import Any

import audit_backends
import numpy as np
import torch
from audit_backends import attend, gathered, merge_all, outputs, ragged_paged, visible

Call = tuple[torch.Tensor, torch.Tensor]


def bounds(cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor) -> list[tuple[int, int, int, int]]:
    ends, key_ends = cu_seqlens_q.tolist(), cu_seqlens_k.tolist()
    return list(zip(ends, ends[1:], key_ends, key_ends[1:]))


def online(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, seen: torch.Tensor, tile: int = 64, weights: Any = torch.float32) -> Call:
    """Computes an online softmax over tiles of keys. The weights of values are rounded to the dtype `weights`, as for
    tensor cores. q is [Lq, H, D]. Returns out [Lq, H, Dv] in f32 and lse [Lq, H]."""
    group = q.shape[1] // k.shape[1]
    top = torch.full(q.shape[:2], -math.inf)
    total, out = torch.zeros(q.shape[:2]), torch.zeros(*q.shape[:2], v.shape[2])
    for first in range(0, k.shape[0], tile):
        keys, values = (rows[first : first + tile].float().repeat_interleave(group, 1) for rows in (k, v))
        scores = (torch.einsum("qhd,khd->qhk", q.float(), keys) * scale).masked_fill(~seen[:, None, first : first + tile], -math.inf)
        new = torch.maximum(top, scores.amax(2))
        safe = new.masked_fill(new == -math.inf, 0.0)
        parts, factor = torch.exp2((scores - safe[..., None]) * math.log2(math.e)), torch.exp(top - safe)
        total = total * factor + parts.sum(2)
        out = out * factor[..., None] + torch.einsum("qhk,khd->qhd", parts.to(weights).float(), values)
        top = new
    return torch.where(total[..., None] > 0, out / total.clamp(min=1e-38)[..., None], 0.0), top + torch.log(total)


def flash(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, causal: bool, scale: float | None = None,
          window_size: tuple[int, int] = (-1, -1), max_seqlen_q: int = 0, max_seqlen_k: int = 0, out: Any = None) -> Call:
    """Works like FlashAttention: tiles of 64 keys, weights in v's dtype, a new array for the lse [H, n], and an
    optional scale."""
    out = torch.empty(*q.shape[:2], v.shape[2], dtype=q.dtype) if out is None else out
    out.zero_()
    lse = torch.full((q.shape[1], q.shape[0]), -math.inf)
    for begin, end, first, last in bounds(cu_seqlens_q, cu_seqlens_k):
        seen = visible(end - begin, last - first, causal, window_size=window_size)
        rows, stats = online(q[begin:end], k[first:last], v[first:last], q.shape[2] ** -0.5 if scale is None else scale, seen, 64, v.dtype)
        out[begin:end], lse[:, begin:end] = rows.to(out.dtype), stats.T
    return out, lse


def backwards(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, causal: bool, scale: float) -> Call:
    """Processes keys from the last to the first, in tiles of at least 7 keys."""
    out, lse = outputs((*q.shape[:2], v.shape[2]), q, None, None)
    for begin, end, first, last in bounds(cu_seqlens_q, cu_seqlens_k):
        seen = visible(end - begin, last - first, causal).flip(1)
        out[begin:end], lse[begin:end] = online(q[begin:end], k[first:last].flip(0), v[first:last].flip(0), scale, seen, max(7, k.shape[0] // 50))
    return out, lse


def one_mask(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, causal: bool, scale: float,
             out: Any = None, lse: Any = None) -> Call:
    """Processes all sequences at once under one mask [n, m] if the mask is small, else one by one."""
    n, m = q.shape[0], k.shape[0]
    if n * m > 1 << 16:
        return audit_backends.ragged(q, k, v, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, causal=causal, scale=scale, out=out, lse=lse)
    out, lse = outputs((*q.shape[:2], v.shape[2]), q, out, lse)
    seen = torch.zeros(n, m, dtype=torch.bool)
    for begin, end, first, last in bounds(cu_seqlens_q, cu_seqlens_k):
        seen[begin:end, first:last] = visible(end - begin, last - first, causal)
    live = int(cu_seqlens_k[-1])
    rows, stats = attend(q, k[:live], v[:live], scale, seen[:, :live])
    return out.copy_(rows), lse.copy_(stats)


def doubles(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **given: Any) -> Call:
    """Computes in f64, and rounds once."""
    out, lse = audit_backends.ragged(*(x.double() for x in (q, k, v)), **given)
    return out.to(q.dtype), lse.float()


def numpy_base_2(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, causal: bool, scale: float,
                 out: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Uses numpy and powers of two, and returns an lse in base 2. Rows whose sum is 0 become zeros."""
    rows, stats = np.zeros((*q.shape[:2], v.shape[2]), np.float32), np.full(q.shape[:2], -np.inf, np.float32)
    a, b, c = (x.float().numpy() for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    for begin, end, first, last in bounds(cu_seqlens_q, cu_seqlens_k):
        if end == begin or last == first:
            continue
        mask = visible(end - begin, last - first, causal).numpy()
        for head in range(q.shape[1]):
            scores = np.where(mask, a[begin:end, head] @ b[first:last, head // group].T * np.float32(scale * math.log2(math.e)), -np.inf)
            top = scores.max(1, keepdims=True)
            weights = np.exp2(scores - np.where(np.isinf(top), 0, top))
            total = weights.sum(1, keepdims=True)
            rows[begin:end, head] = np.where(total > 0, weights @ c[first:last, head // group] / np.maximum(total, 1e-38), 0)
            with np.errstate(divide="ignore"):
                stats[begin:end, head] = (top + np.log2(total))[:, 0]
    result = torch.from_numpy(rows).to(q.dtype)
    return result if out is None else out.copy_(result), torch.from_numpy(stats)


WORKSPACE: dict[str, torch.Tensor] = {}


def split_keys(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, causal: bool, scale: float,
               num_splits: int = 3, sinks: Any = None, out: Any = None, lse: Any = None) -> Call:
    """Splits the keys, merges the splits, and then adds the sink once. All calls share a workspace."""
    out, lse = outputs((*q.shape[:2], v.shape[2]), q, out, lse)
    rows = max(q.shape[0], 1)
    if WORKSPACE.get("out", torch.zeros(0)).shape[1:] != (rows, q.shape[1], v.shape[2]) or WORKSPACE["out"].shape[0] != num_splits:
        WORKSPACE.update(out=torch.empty(num_splits, rows, q.shape[1], v.shape[2]), lse=torch.empty(num_splits, rows, q.shape[1]))
    parts, stats = WORKSPACE["out"].zero_(), WORKSPACE["lse"].fill_(-math.inf)
    for begin, end, first, last in bounds(cu_seqlens_q, cu_seqlens_k):
        seen = visible(end - begin, last - first, causal)
        size = -(-(last - first) // num_splits)
        for split in range(num_splits):
            some = slice(min(split * size, last - first), min((split + 1) * size, last - first))
            parts[split, begin:end], stats[split, begin:end] = attend(q[begin:end].float(), k[first:last][some], v[first:last][some], scale, seen[:, some])
    merged, total = merge_all(parts, stats)
    n = q.shape[0]
    if sinks is not None:
        merged = torch.where(total[..., None] > -math.inf, merged / (1 + torch.exp(sinks - total))[..., None], 0.0)
    return out.copy_(merged[:n]), lse.copy_(total[:n])


def grouped(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, causal: bool, scale: float) -> Call:
    """Computes all query heads of one key head in a single product, after scaling the queries."""
    group = q.shape[1] // k.shape[1]
    out, lse = outputs((*q.shape[:2], v.shape[2]), q, None, None)
    for begin, end, first, last in bounds(cu_seqlens_q, cu_seqlens_k):
        # rows is [Hk, Lq * group, D]
        rows = (q[begin:end].float() * scale).unflatten(1, (-1, group)).permute(1, 0, 2, 3).flatten(1, 2)
        seen = visible(end - begin, last - first, causal).repeat_interleave(group, 0)
        scores = (rows @ k[first:last].float().permute(1, 2, 0)).masked_fill(~seen, -math.inf)
        stats = torch.logsumexp(scores, 2) if last > first else scores.new_full(scores.shape[:2], -math.inf)
        weights = torch.softmax(scores, 2).nan_to_num(0.0)
        result = (weights @ v[first:last].float().transpose(0, 1)).unflatten(1, (-1, group)).permute(1, 0, 2, 3).flatten(1, 2)
        out[begin:end], lse[begin:end] = result.to(q.dtype), stats.unflatten(1, (-1, group)).permute(1, 0, 2).flatten(1)
    return out, lse


def refuses_views(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, out: Any = None, lse: Any = None, **given: Any) -> Call:
    """Raises ValueError for tensors that are not contiguous."""
    for name, tensor in (("q", q), ("k", k), ("v", v), ("out", out), ("lse", lse), *given.items()):
        if isinstance(tensor, torch.Tensor) and not tensor.is_contiguous():
            raise ValueError(f"{name}: expected a contiguous tensor")
    return audit_backends.ragged(q, k, v, out=out, lse=lse, **given)


def with_sdpa(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float, seq_lens_k: torch.Tensor) -> Call:
    """Uses torch's SDPA with a mask. Keys and values past the lengths are set to zero, and rows that see no key are
    blanked."""
    lengths = seq_lens_k.clamp(min=0)
    keys = torch.arange(k.shape[1])
    seen = (keys < lengths[:, None])[:, None, :].expand(-1, q.shape[1], -1)
    if causal:
        seen = seen & (keys <= (torch.arange(q.shape[1]) + (lengths - q.shape[1])[:, None])[..., None])
    group = q.shape[2] // k.shape[2]
    inside = (keys < lengths[:, None])[..., None, None]
    a, b, c = (x.float().repeat_interleave(n, 2).transpose(1, 2) for x, n in ((q, 1), (k.where(inside, 0), group), (v.where(inside, 0), group)))
    out = torch.nn.functional.scaled_dot_product_attention(a, b, c, attn_mask=seen[:, None], scale=scale).transpose(1, 2)
    scores = (a @ b.transpose(2, 3) * scale).masked_fill(~seen[:, None], -math.inf)
    lse = torch.logsumexp(scores, 3).transpose(1, 2)
    return torch.where(seen.any(2)[..., None, None], out, 0.0).to(q.dtype), lse


def begins_at_the_first_key(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float) -> torch.Tensor:
    """Uses torch's SDPA with is_causal, whose mask begins at the top left. This backend takes no lengths and returns no
    lse."""
    group = q.shape[2] // k.shape[2]
    if not q.shape[1] or not k.shape[1] or not q.shape[0]:
        return torch.zeros(*q.shape[:3], v.shape[3], dtype=q.dtype)
    a, b, c = (x.repeat_interleave(n, 2).transpose(1, 2) for x, n in ((q, 1), (k, group), (v, group)))
    return torch.nn.functional.scaled_dot_product_attention(a, b, c, is_causal=causal, scale=scale).transpose(1, 2)


def page_by_page(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, block_table: torch.Tensor, seq_lens: torch.Tensor, scale: float,
                 num_splits: int = 1, max_seqlen_k: int = 0, out: Any = None, lse: Any = None) -> Call:
    """Computes an online softmax over pages, for all requests at once. Keys past the length are replaced by zeros."""
    out, lse = outputs((*q.shape[:2], v_cache.shape[3]), q, out, lse)
    size, group, lengths = k_cache.shape[1], q.shape[1] // k_cache.shape[2], seq_lens.clamp(min=0)
    top, total, rows = torch.full(q.shape[:2], -math.inf), torch.zeros(q.shape[:2]), torch.zeros(*q.shape[:2], v_cache.shape[3])
    for page in range(-(-int(lengths.max()) // size) if lengths.numel() else 0):
        at = page * size + torch.arange(size)
        inside = at < lengths[:, None]  # the shape is [B, size]
        named = torch.where(inside.any(1), block_table[:, page], 0).long()
        keys, values = (cache[named].float().where(inside[..., None, None], 0.0).repeat_interleave(group, 2) for cache in (k_cache, v_cache))
        scores = (torch.einsum("bhd,bkhd->bhk", q.float(), keys) * scale).masked_fill(~inside[:, None], -math.inf)
        new = torch.maximum(top, scores.amax(2))
        safe = new.masked_fill(new == -math.inf, 0.0)
        weights, factor = torch.exp(scores - safe[..., None]), torch.exp(top - safe)
        total, rows, top = total * factor + weights.sum(2), rows * factor[..., None] + torch.einsum("bhk,bkhd->bhd", weights, values), new
    return out.copy_(torch.where(total[..., None] > 0, rows / total.clamp(min=1e-38)[..., None], 0.0)), lse.copy_(top + torch.log(total))


def token_by_token(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, cu_seqlens_q: torch.Tensor, block_table: torch.Tensor,
                   seq_lens: torch.Tensor, causal: bool, scale: float, k_scale: float = 1.0, v_scale: float = 1.0) -> Call:
    """Processes each new token as a decode. Scores are multiplied by the scale of keys, and results by that of
    values."""
    out, lse = outputs((*q.shape[:2], v_cache.shape[3]), q, None, None)
    ends = cu_seqlens_q.tolist()
    for request, (begin, end, length) in enumerate(zip(ends, ends[1:], seq_lens.clamp(min=0).tolist())):
        keys, values = (gathered(cache, block_table[request], length).float() for cache in (k_cache, v_cache))
        for token in range(begin, end):
            count = max(length - (end - 1 - token), 0) if causal else length
            seen = torch.ones(1, count, dtype=torch.bool)
            row, stat = attend(q[token : token + 1].float(), keys[:count], values[:count], scale * k_scale, seen)
            out[token], lse[token] = row[0] * v_scale, stat[0]
    return out, lse


def scales_of_heads(*tensors: torch.Tensor, k_scale: torch.Tensor, v_scale: torch.Tensor, **given: Any) -> Call:
    """Takes one scale per head [Hk], and passes the scales as a column."""
    return ragged_paged(*tensors, k_scale=k_scale[:, None], v_scale=v_scale[:, None], **given)


class PlanOnce:
    """Plans once for many layers. The plan copies its arguments, and runs allocate their outputs."""

    def plan(self, *, cu_seqlens_q: torch.Tensor, block_table: torch.Tensor, seq_lens: torch.Tensor, causal: bool, scale: float) -> None:
        self.given = {"cu_seqlens_q": cu_seqlens_q.clone(), "block_table": block_table.clone(), "seq_lens": seq_lens.clone(), "causal": causal, "scale": scale}

    def run(self, q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor) -> Call:
        return ragged_paged(q, k_cache, v_cache, **self.given)


class Derived(audit_backends.Planned):
    """Derives from another backend, and counts its calls."""

    calls = 0

    def run(self, *tensors: torch.Tensor, **given: Any) -> Call:
        self.calls += 1
        return super().run(*tensors, **given)


def latent_with_absorbed_scale(q: torch.Tensor, kv_cache: torch.Tensor, *, block_table: torch.Tensor, seq_lens: torch.Tensor, scale: float) -> Call:
    """Computes MLA decode with separate products for the first 512 and the last 64 elements."""
    out, lse = outputs((*q.shape[:2], 512), q, None, None)
    for b, length in enumerate(seq_lens.clamp(min=0).tolist()):
        keys = gathered(kv_cache, block_table[b], length).float()
        scores = (q[b, :, :512].float() @ keys[:, :512].T + q[b, :, 512:].float() @ keys[:, 512:].T) * scale
        lse[b] = torch.logsumexp(scores, 1) if length else lse[b]
        out[b] = (torch.softmax(scores, 1) @ keys[:, :512]).to(q.dtype)
    return out, lse


class Layer(torch.nn.Module):
    """A torch module. Its method is the backend."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = torch.nn.Parameter(torch.zeros(()), requires_grad=False)

    def attention(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, causal: bool,
                  scale: float) -> list[torch.Tensor]:
        return list(audit_backends.ragged(q, k, v, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, causal=causal, scale=scale))


class Callable_:
    """An object with `__call__`, which is the backend."""

    def __call__(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, causal: bool,
                 scale: float) -> Call:
        return audit_backends.ragged(q, k, v, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, causal=causal, scale=scale)


def slow(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, causal: bool, scale: float) -> Call:
    """Takes 10 ms longer than audit_backends.ragged, as an interpreter might."""
    time.sleep(0.01)
    return audit_backends.ragged(q, k, v, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, causal=causal, scale=scale)


def logaddexp(a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor) -> Call:
    """Merges by logaddexp in f64. Lses are in base 2."""
    one, two = (torch.where(x.isinf(), -math.inf, x).double() * math.log(2) for x in (a_lse, b_lse))
    lse = torch.logaddexp(one, two)
    parts = [torch.where(x[..., None] > -math.inf, torch.exp(x - lse)[..., None] * rows.double(), 0.0) for x, rows in ((one, a), (two, b))]
    broken = (a_lse.isnan() | b_lse.isnan())[..., None]
    out = torch.where(broken, math.nan, parts[0] + parts[1])
    out = torch.where(two.isinf()[..., None] & ~one.isinf()[..., None], a.double(), torch.where(one.isinf()[..., None] & ~two.isinf()[..., None], b.double(), out))
    stats = torch.where(two.isinf(), a_lse.double(), torch.where(one.isinf(), b_lse.double(), lse / math.log(2)))
    stats = torch.where(one.isinf() & two.isinf(), -math.inf, torch.where(broken[..., 0], math.nan, stats))
    return torch.where(broken, math.nan, out).to(a.dtype), stats.float()


def sigmoid(a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor, *, out: Any = None, lse: Any = None) -> Call:
    """Merges by the logistic function of the lses' difference. Lses are [H, n], and outputs may be inputs."""
    one, two = (torch.where(x.T.isinf(), -math.inf, x.T) for x in (a_lse, b_lse))
    dead_one, dead_two = (x == -math.inf for x in (one, two))
    weight = torch.sigmoid(two - one)[..., None]
    rows = a.float() * (1 - weight) + b.float() * weight
    rows = torch.where(dead_one[..., None], torch.where(dead_two[..., None], 0.0, b.float()), torch.where(dead_two[..., None], a.float(), rows))
    stats = torch.where(dead_one, two, torch.where(dead_two, one, torch.maximum(one, two) + torch.log1p(torch.exp(-(one - two).abs()))))
    broken = (one + two).isnan() & (one.isnan() | two.isnan())
    rows, stats = torch.where(broken[..., None], math.nan, rows), torch.where(broken, math.nan, stats)
    rows, stats = rows.to(a.dtype), stats.T.contiguous()
    return rows if out is None else out.copy_(rows), stats if lse is None else lse.copy_(stats)


def reduce_by_maximum(out: torch.Tensor, lse: torch.Tensor, *, group: Any) -> Call:
    """Reduces the maximum of the lses first, then the sums of weighted rows and of weights. A rank that has all weight
    has weight 1, so its row is copied."""
    broken, live = lse.isnan(), torch.where(lse.isinf() | lse.isnan(), -math.inf, lse)
    top = live.clone()
    torch.distributed.all_reduce(top, torch.distributed.ReduceOp.MAX, group=group)
    weights = torch.exp(live - torch.where(top == -math.inf, 0.0, top))
    rows = torch.where(weights[..., None] > 0, weights[..., None] * out.double(), 0.0)
    total, broken = weights.double(), broken.double()
    for tensor in (rows, total, broken):
        torch.distributed.all_reduce(tensor, group=group)
    bad = (broken > 0) | torch.zeros_like(broken, dtype=torch.bool)
    result = torch.where(total[..., None] > 0, rows / total.clamp(min=1e-300)[..., None], 0.0)
    stats = top.double() + torch.log(total)
    return torch.where(bad[..., None], math.nan, result).to(out.dtype), torch.where(bad, math.nan, stats).float()


def always_causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, scale: float, out: Any = None,
                  lse: Any = None) -> Call:
    """Always uses a causal mask, and has no keyword argument for it."""
    return audit_backends.ragged(q, k, v, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, causal=True, scale=scale, out=out, lse=lse)


def compiled(tensors: Any) -> Any:
    return torch.compile(tensors, backend="eager", dynamic=True)


def compiles_rows(scores: torch.Tensor, values: torch.Tensor) -> Call:
    lse = torch.logsumexp(scores, 2)
    return torch.exp(scores - torch.where(lse > -math.inf, lse, 0.0)[..., None]) @ values, lse


ROWS: list[Any] = []


def compiled_rows(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, causal: bool, scale: float) -> Call:
    """Computes the rows of each sequence by torch.compile with dynamic shapes."""
    if not ROWS:
        ROWS.append(compiled(compiles_rows))
    group = q.shape[1] // k.shape[1]
    out, lse = outputs((*q.shape[:2], v.shape[2]), q, None, None)
    for begin, end, first, last in bounds(cu_seqlens_q, cu_seqlens_k):
        if end > begin and last > first:
            keys, values = (x[first:last].float().repeat_interleave(group, 1).transpose(0, 1) for x in (k, v))
            scores = (q[begin:end].float().transpose(0, 1) @ keys.transpose(1, 2) * scale).masked_fill(~visible(end - begin, last - first, causal), -math.inf)
            rows, stats = ROWS[0](scores, values)
            out[begin:end], lse[begin:end] = rows.transpose(0, 1).to(q.dtype), stats.T
    return out, lse


BF16 = {"dtype": "bfloat16"}
RIGHT: dict[str, tuple[Any, dict[str, Any]]] = {
    "flash": (flash, {"lse_layout": "hn"}),
    "flash in bf16": (flash, {"lse_layout": "hn", **BF16}),
    "flash in f16": (flash, {"lse_layout": "hn", "dtype": "float16"}),
    "keys from the last": (backwards, {}),
    "one mask for the batch": (one_mask, {}),
    "f64": (doubles, {"form": "ragged", "takes": ()}),
    "numpy of base 2": (numpy_base_2, {"lse_base": "2"}),
    "splits in a workspace": (split_keys, {}),
    "splits in a workspace, bf16": (split_keys, BF16),
    "heads as rows": (grouped, BF16),
    "refuses views": (refuses_views, {"form": "ragged", "takes": ("out", "lse")}),
    "SDPA with a mask": (with_sdpa, {}),
    "is_causal": (begins_at_the_first_key, {"alignment": "top-left", "returns_lse": False}),
    "page by page": (page_by_page, {}),
    "page by page, pages of 64, bf16": (page_by_page, {"page_size": 64, **BF16}),
    "token by token": (token_by_token, {"kv_dtype": "float8_e4m3fn", **BF16}),
    "a scale for each head": (scales_of_heads, {"form": "ragged_paged", "takes": ("out", "lse", "k_scale", "v_scale"), "kv_dtype": "float8_e4m3fn", "kv_scales": "heads"}),
    "a plan that is kept": (PlanOnce, {}),
    "a subclass": (Derived, {"kv_dtype": "float8_e5m2"}),
    "MLA in two products": (latent_with_absorbed_scale, {}),
    "a bound method of a module": (Layer().attention, {}),
    "an object that is called": (Callable_(), {}),
    "a partial": (partial(audit_backends.ragged, window=-1), {"form": "ragged", "takes": ("out", "lse")}),
    "always causal": (always_causal, {"causal": "always"}),
    "slow": (slow, {}),
    "torch.compile": (compiled_rows, {}),
    "merge by logaddexp": (logaddexp, {"lse_base": "2"}),
    "merge by sigmoid": (sigmoid, {"lse_layout": "hn"}),
    "merge by sigmoid, bf16": (sigmoid, {"lse_layout": "hn", "dim": 64, **BF16}),
    "reduce by the maximum": (reduce_by_maximum, {"heads": 6}),
}
