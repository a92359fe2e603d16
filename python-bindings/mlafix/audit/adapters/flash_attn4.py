"""Adapts FlashAttention 4 (CuTe) in the ragged form."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from flash_attn.cute import flash_attn_varlen_func

from ..cases import Adapter


def flash4(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, causal: bool, scale: float) -> Any:
    asked = {"return_lse": True} if "return_lse" in inspect.signature(flash_attn_varlen_func).parameters else {}
    result = flash_attn_varlen_func(q, k, v, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, softmax_scale=scale, causal=causal, **asked)
    return result[0], result[1]


ADAPTERS = [Adapter(flash4, name="FlashAttention 4", lse_layout="hn", dtype="bfloat16", device="cuda", dim=128)]
