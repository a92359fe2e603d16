"""Adapts jax.nn.dot_product_attention with lengths, on the CPU. Tensors go through DLPack."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import torch

from ..cases import Adapter


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float, seq_lens_k: torch.Tensor,
              window_size: tuple[int, int] = (-1, -1)) -> Any:  # fmt: skip
    """Calls JAX's attention, which aligns causal masks and windows with the first key. If a window is limited on one
    side only, passes a limit past all keys for the other side."""
    arrays = [jax.dlpack.from_dlpack(x.contiguous()) for x in (q, k, v)]
    lengths = jax.dlpack.from_dlpack(seq_lens_k.contiguous())
    limits = tuple(size if size >= 0 else q.shape[1] + k.shape[1] for size in window_size)
    window = None if window_size == (-1, -1) else limits
    out, lse = jax.nn.dot_product_attention(*arrays, scale=scale, is_causal=causal, key_value_seq_lengths=lengths, local_window_size=window, return_residual=True)
    return torch.from_dlpack(out), torch.from_dlpack(lse)


JAX = Adapter(attention, "dense", name="jax.nn.dot_product_attention", takes=("seq_lens_k", "window_size"), alignment="top-left", graph_safe=False)

ADAPTERS = [JAX, replace(JAX, name="jax.nn.dot_product_attention, bf16", dtype="bfloat16")]
