"""Adapts torch's varlen_attn, which exists since release 2.10. Releases differ in its keyword for a causal mask:
is_causal or window_size."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.nn.attention.varlen import AuxRequest, varlen_attn

from ..cases import Adapter


def varlen(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor,
           max_seqlen_q: int, max_seqlen_k: int, causal: bool, scale: float) -> Any:  # fmt: skip
    known = inspect.signature(varlen_attn).parameters
    options: dict[str, Any] = {"is_causal": causal} if "is_causal" in known else {"window_size": (-1, 0 if causal else -1)}
    if "scale" in known:
        options["scale"] = scale
    return varlen_attn(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, return_aux=AuxRequest(lse=True), **options)


ADAPTERS = [Adapter(varlen, name="varlen_attn", takes=("max_seqlen_q", "max_seqlen_k"), lse_layout="hn", dtype="bfloat16", device="cuda", kv_heads=4, dim=64)]
