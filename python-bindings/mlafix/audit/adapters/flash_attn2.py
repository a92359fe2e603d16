"""Adapts FlashAttention 2 in the ragged form."""

from __future__ import annotations

from typing import Any

import torch
from flash_attn.flash_attn_interface import flash_attn_varlen_func

from ..cases import Adapter


def flash2(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, max_seqlen_q: int,
           max_seqlen_k: int, causal: bool, scale: float, window: int = -1) -> Any:  # fmt: skip
    out, lse, _ = flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, softmax_scale=scale, causal=causal,
                                         window_size=(window, 0 if causal and window >= 0 else window), return_attn_probs=True)  # fmt: skip
    return out, lse


ADAPTERS = [
    Adapter(flash2, name="FlashAttention 2", takes=("window", "max_seqlen_q", "max_seqlen_k"), lse_layout="hn", dtype="bfloat16", device="cuda",
            dim=64),  # fmt: skip
]
