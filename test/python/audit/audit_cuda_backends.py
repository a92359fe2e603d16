"""Paged decode in torch on a GPU without host synchronisation, and variants with one fault each. They only need
torch."""

from __future__ import annotations

import math
from typing import Any

import torch

Call = tuple[torch.Tensor, torch.Tensor]
CAPTURED: list[torch.Tensor] = []


def reached(block_table: torch.Tensor, seq_lens: torch.Tensor, size: int) -> torch.Tensor:
    """Returns the page table as i64. Entries past a request's length may contain anything, and become page 0."""
    begins = torch.arange(block_table.shape[1], device=seq_lens.device) * size
    return torch.where(begins < seq_lens[:, None], block_table, 0).long()


def decode(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, block_table: torch.Tensor, seq_lens: torch.Tensor, scale: float,
           out: Any = None, lse: Any = None) -> Call:  # fmt: skip
    """Gathers all pages of the page table. Keys past the length are replaced by zeros."""
    group = q.shape[1] // k_cache.shape[2]
    live = torch.arange(block_table.shape[1] * k_cache.shape[1], device=q.device) < seq_lens[:, None]
    pages = reached(block_table, seq_lens, k_cache.shape[1])
    keys, values = (cache[pages].flatten(1, 2).float() for cache in (k_cache, v_cache))
    keys, values = (torch.where(live[:, :, None, None], rows, 0.0).repeat_interleave(group, 2) for rows in (keys, values))
    scores = (q.float()[:, None] * keys).sum(3) * scale
    scores = torch.where(live[:, :, None], scores, -math.inf)
    sums = torch.logsumexp(scores, 1)
    weights = torch.where(live[:, :, None], torch.exp(scores - sums[:, None]), 0.0)
    rows = (weights[..., None] * values).sum(1).to(q.dtype)
    if out is None or lse is None:
        return rows, sums
    return out.copy_(rows), lse.copy_(sums)


WORKSPACE: dict[torch.Size, torch.Tensor] = {}


def one_workspace(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, **given: Any) -> Call:
    """Copies queries to a workspace that calls on all streams share."""
    workspace = WORKSPACE.setdefault(q.shape, torch.empty_like(q)).copy_(q)
    torch.cuda._sleep(2_000_000)
    return decode(workspace, k_cache, v_cache, **given)


def mixed(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, cu_seqlens_q: torch.Tensor, block_table: torch.Tensor, seq_lens: torch.Tensor,
          causal: bool, scale: float, out: Any = None, lse: Any = None) -> Call:  # fmt: skip
    """Computes attention of new tokens to a paged cache, for all tokens at once."""
    rows, sums = q.new_zeros((*q.shape[:2], v_cache.shape[3])), torch.full(q.shape[:2], -math.inf, device=q.device)
    if q.shape[0] and seq_lens.shape[0]:
        token = torch.arange(q.shape[0], device=q.device)
        request = (torch.searchsorted(cu_seqlens_q.contiguous(), token, right=True) - 1).clamp(max=seq_lens.shape[0] - 1)
        lengths = torch.where(token < cu_seqlens_q[-1], seq_lens.clamp(min=0)[request], 0)
        own = token - cu_seqlens_q[request + 1] + lengths
        pages = reached(block_table, seq_lens, k_cache.shape[1])[request]
        key = torch.arange(block_table.shape[1] * k_cache.shape[1], device=q.device)
        seen = (key < lengths[:, None]) & ((key <= own[:, None]) | (not causal))
        group = q.shape[1] // k_cache.shape[2]
        keys, values = (torch.where((key < lengths[:, None])[:, :, None, None], cache[pages].flatten(1, 2).float(), 0.0).repeat_interleave(group, 2)
                        for cache in (k_cache, v_cache))  # fmt: skip
        scores = torch.where(seen[:, :, None], (q.float()[:, None] * keys).sum(3) * scale, -math.inf)
        sums = torch.logsumexp(scores, 1)
        weights = torch.where(seen[:, :, None], torch.exp(scores - sums[:, None]), 0.0)
        rows = (weights[..., None] * values).sum(1).to(q.dtype)
    if out is None or lse is None:
        return rows, sums
    return out.copy_(rows), lse.copy_(sums)


class Planned:
    """Computes the same as `mixed`. A plan copies lengths and tables to buffers, which captured runs read."""

    def __init__(self) -> None:
        self.buffers: dict[Any, torch.Tensor] = {}

    def plan(self, *, causal: bool, scale: float, **lengths: torch.Tensor) -> None:
        self.options, self.used = {"causal": causal, "scale": scale}, {}
        for name, tensor in lengths.items():
            buffer = self.buffers.setdefault((name, tensor.shape), torch.empty_like(tensor, memory_format=torch.contiguous_format))
            self.used[name] = buffer.copy_(tensor)

    def run(self, q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, out: Any = None, lse: Any = None) -> Call:
        return mixed(q, k_cache, v_cache, **self.used, **self.options, out=out, lse=lse)


class PlannedOnce(Planned):
    """Ignores a later plan with the same shapes."""

    def plan(self, *, causal: bool, scale: float, **lengths: torch.Tensor) -> None:
        if any((name, tensor.shape) not in self.buffers for name, tensor in lengths.items()):
            super().plan(causal=causal, scale=scale, **lengths)


def lengths_of_the_capture(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, seq_lens: torch.Tensor, **given: Any) -> Call:
    """Keeps the first lengths, so a replayed graph uses the lengths of its capture (sglang #26019)."""
    if not CAPTURED or CAPTURED[0].shape != seq_lens.shape:
        CAPTURED[:] = [seq_lens.clone()]
    return decode(q, k_cache, v_cache, seq_lens=CAPTURED[0], **given)


def reads_lengths_on_the_host(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, seq_lens: torch.Tensor, **given: Any) -> Call:
    """Checks lengths on the host (flashinfer #4928)."""
    if int(seq_lens.min()) < 0:
        raise ValueError("expected lengths of 0 and more")
    return decode(q, k_cache, v_cache, seq_lens=seq_lens, **given)


def stale_rows(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, seq_lens: torch.Tensor, out: Any = None, lse: Any = None, **given: Any) -> Call:
    """Does not write rows of requests without keys (flashinfer #4975)."""
    rows, sums = decode(q, k_cache, v_cache, seq_lens=seq_lens, **given)
    if out is None or lse is None:
        out, lse = torch.empty_like(rows), torch.empty_like(sums)
    live = seq_lens > 0
    out.copy_(torch.where(live[:, None, None], rows, out))
    lse.copy_(torch.where(live[:, None], sums, lse))
    return out, lse


def breaks_the_context(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, seq_lens: torch.Tensor, **given: Any) -> Call:
    """Reads out of bounds on the device for a request without keys."""
    torch._assert_async((seq_lens > 0).all())
    return decode(q, k_cache, v_cache, seq_lens=seq_lens, **given)
