"""What the same work is in torch, eager and compiled."""

from __future__ import annotations

from typing import Callable

import torch
from work import Prepare, Tensors


def merge(out: torch.Tensor, out_lse: torch.Tensor, prefix: torch.Tensor, prefix_lse: torch.Tensor, suffix: torch.Tensor,
          suffix_lse: torch.Tensor) -> None:
    """Rows [n, H, D], lse [H, n]."""
    total = torch.logaddexp(prefix_lse, suffix_lse)
    p = torch.exp(prefix_lse - total).T[..., None]
    s = torch.exp(suffix_lse - total).T[..., None]
    out.copy_(prefix * p + suffix * s)
    out_lse.copy_(total)


def merge_dense(out: torch.Tensor, out_lse: torch.Tensor, v: torch.Tensor, s: torch.Tensor) -> None:
    """Rows [n, K, H, D], lse [n, K, H]."""
    total = torch.logsumexp(s, 1)
    out.copy_((v * torch.exp(s - total[:, None])[..., None]).sum(1))
    out_lse.copy_(total)


def fixup(out: torch.Tensor, lse: torch.Tensor, kv_lens: torch.Tensor, cu_seqlens: torch.Tensor) -> None:
    """Without a look at the device from the host: the sequence of each token by a search."""
    tokens = torch.arange(out.shape[0], device=out.device, dtype=torch.int32)
    sequence = torch.searchsorted(cu_seqlens, tokens, right=True) - 1
    is_dead = kv_lens[sequence] <= 0
    out.masked_fill_(is_dead[:, None, None], 0)
    lse.masked_fill_(is_dead[None, :], -float("inf"))


FUNCTIONS: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    "merge": (merge, ("out", "out_lse", "prefix", "prefix_lse", "suffix", "suffix_lse")),
    "n_way": (merge_dense, ("out", "out_lse", "v", "s")),
    "fixup": (fixup, ("out", "lse", "kv_lens", "cu_seqlens")),
}
"""By group: the function, and its arguments' names in a set of buffers."""


def prepare_with(function: Callable[..., object], names: tuple[str, ...]) -> Prepare:
    """Calls the function on the tensors of these names."""

    def prepare(tensors: Tensors) -> Callable[[], object]:
        args = [tensors[name] for name in names]
        return lambda: function(*args)

    return prepare


def rivals_of(group: str) -> dict[str, Prepare]:
    """Eager and compiled, each shape for itself."""
    function, names = FUNCTIONS[group]
    return {"torch": prepare_with(function, names),
            "torch.compile": prepare_with(torch.compile(function, dynamic=False), names)}
