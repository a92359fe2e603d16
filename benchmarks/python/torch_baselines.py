"""Does the work of the cases with torch, in eager mode and compiled."""

from __future__ import annotations

from typing import Callable

import torch
from work import PAIR, Prepare, calling


def merge(out: torch.Tensor, out_lse: torch.Tensor, prefix: torch.Tensor, prefix_lse: torch.Tensor, suffix: torch.Tensor,
          suffix_lse: torch.Tensor) -> None:
    """Merges two states: rows [n, H, D], lses [H, n]."""
    total = torch.logaddexp(prefix_lse, suffix_lse)
    p = torch.exp(prefix_lse - total).T[..., None]
    s = torch.exp(suffix_lse - total).T[..., None]
    out.copy_(prefix * p + suffix * s)
    out_lse.copy_(total)


def merge_dense(out: torch.Tensor, out_lse: torch.Tensor, v: torch.Tensor, s: torch.Tensor) -> None:
    """Merges K states: rows [n, K, H, D], lses [n, K, H]."""
    total = torch.logsumexp(s, 1)
    out.copy_((v * torch.exp(s - total[:, None])[..., None]).sum(1))
    out_lse.copy_(total)


def fixup(out: torch.Tensor, lse: torch.Tensor, kv_lens: torch.Tensor, cu_seqlens: torch.Tensor) -> None:
    """Blanks rows without keys. Searches for the sequence of each token on the device, so that the host need not read
    `cu_seqlens`. The lse is [H, n]."""
    tokens = torch.arange(out.shape[0], device=out.device, dtype=torch.int32)
    sequence = torch.searchsorted(cu_seqlens, tokens, right=True) - 1
    is_dead = kv_lens[sequence] <= 0
    out.masked_fill_(is_dead[:, None, None], 0)
    lse.masked_fill_(is_dead[None, :], -float("inf"))


def fixup_rows_first(out: torch.Tensor, lse: torch.Tensor, kv_lens: torch.Tensor, cu_seqlens: torch.Tensor) -> None:
    """Does what `fixup` does, with lses [n, H]."""
    fixup(out, lse.T, kv_lens, cu_seqlens)


def combine(out: torch.Tensor, out_lse: torch.Tensor, partial: torch.Tensor, partial_lse: torch.Tensor) -> None:
    """Combines partials [S, B, L, H, D] with lses [S, B, L, H]."""
    total = torch.logsumexp(partial_lse, 0)
    out.copy_((partial * torch.exp(partial_lse - total)[..., None]).sum(0))
    out_lse.copy_(total)


def ragged(out: torch.Tensor, out_lse: torch.Tensor, v: torch.Tensor, s: torch.Tensor, indptr: torch.Tensor) -> None:
    """Merges the states of each segment: rows [nnz, H, D], lses [nnz, H]. Sums the weighted rows of a segment."""
    states = torch.arange(v.shape[0], device=v.device, dtype=torch.int32)
    segment = torch.searchsorted(indptr, states, right=True) - 1
    heads = segment[:, None].expand_as(s)
    top = torch.full_like(out_lse, -float("inf")).scatter_reduce(0, heads, s, "amax")
    weights = torch.exp(s - top[segment])
    total = torch.zeros_like(out_lse).index_add(0, segment, weights)
    merged = torch.zeros(out.shape, device=v.device).index_add(0, segment, v * weights[..., None])
    out.copy_(merged / total[..., None])
    out_lse.copy_(top + torch.log(total))


FUNCTIONS: dict[str, tuple[Callable[..., None], str]] = {
    "merge": (merge, f"out out_lse {PAIR}"), "n_way": (merge_dense, "out out_lse v s"), "combine": (combine, "out out_lse partial partial_lse"),
    "ragged": (ragged, "out out_lse v s indptr"), "fixup": (fixup, "out lse kv_lens cu_seqlens"),
    "fixup_rows_first": (fixup_rows_first, "out lse kv_lens cu_seqlens"),
}
"""The function of each group, and the names of its arguments in a set of buffers."""


def baselines_of(group: str) -> dict[str, Prepare]:
    """Returns the baselines of a group, in eager mode and compiled for each shape. Groups with many shapes are not
    compiled, since each shape takes seconds. The result is empty for groups that only compare engines."""
    if group not in FUNCTIONS:
        return {}
    function, names = FUNCTIONS[group]
    baselines = {"torch": calling(function, names)}
    if group not in ("combine", "ragged", "fixup_rows_first"):
        baselines["torch.compile"] = calling(torch.compile(function, dynamic=False), names)
    return baselines
