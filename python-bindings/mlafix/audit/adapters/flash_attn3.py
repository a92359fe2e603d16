"""Adapts FlashAttention 3 in the ragged form. Some releases return the lse only if return_attn_probs is passed."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from flash_attn_interface import flash_attn_varlen_func

from ..cases import Adapter


def flash3(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, max_seqlen_q: int,
           max_seqlen_k: int, causal: bool, scale: float, window: int = -1) -> Any:  # fmt: skip
    asked = "return_attn_probs" if "return_attn_probs" in inspect.signature(flash_attn_varlen_func).parameters else None
    result = flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, softmax_scale=scale, causal=causal,
                                    window_size=(window, 0 if causal and window >= 0 else window), **({asked: True} if asked else {}))  # fmt: skip
    return result[0], result[1]


ADAPTERS = [
    Adapter(flash3, name="FlashAttention 3", takes=("window", "max_seqlen_q", "max_seqlen_k"), lse_layout="hn", dtype="bfloat16", device="cuda",
            dim=64),  # fmt: skip
]
