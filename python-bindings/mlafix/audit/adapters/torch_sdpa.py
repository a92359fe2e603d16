"""Adapts torch's scaled_dot_product_attention: the public function with a mask, and each backend's own operator, which
returns the lse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from ..cases import Adapter


def sdpa_with_mask(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float, seq_lens_k: torch.Tensor,
                   backend: SDPBackend) -> torch.Tensor:
    """Calls the public function with a mask for lengths and causality. If `causal`, the mask is bottom-right: the last
    query of a sequence sees all keys of the sequence. The function's own is_causal would make a top-left mask."""
    keys = torch.arange(k.shape[1], device=q.device)
    mask = (keys < seq_lens_k[:, None])[:, None, None, :].expand(-1, 1, q.shape[1], -1)
    if causal:
        last = torch.arange(q.shape[1], device=q.device) + (seq_lens_k - q.shape[1])[:, None]
        mask = mask & (keys <= last[:, None, :, None])
    with sdpa_kernel(backend):
        out = scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), attn_mask=mask, scale=scale)
    return out.transpose(1, 2)


def sdpa_math(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float, seq_lens_k: torch.Tensor) -> torch.Tensor:
    return sdpa_with_mask(q, k, v, causal, scale, seq_lens_k, SDPBackend.MATH)


def sdpa_flash_mask(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float, seq_lens_k: torch.Tensor) -> torch.Tensor:
    return sdpa_with_mask(q, k, v, causal, scale, seq_lens_k, SDPBackend.FLASH_ATTENTION)


def sdpa_efficient_mask(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float, seq_lens_k: torch.Tensor) -> torch.Tensor:
    return sdpa_with_mask(q, k, v, causal, scale, seq_lens_k, SDPBackend.EFFICIENT_ATTENTION)


def sdpa_flash_cpu(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float) -> Any:
    operator = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    out, lse = operator(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=causal, scale=scale)
    return out.transpose(1, 2), lse


def sdpa_flash(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float) -> Any:
    operator = torch.ops.aten._scaled_dot_product_flash_attention
    out, lse, *_ = operator(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=causal, scale=scale)
    return out.transpose(1, 2), lse


def sdpa_efficient(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float) -> Any:
    operator = torch.ops.aten._scaled_dot_product_efficient_attention
    out, lse, *_ = operator(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), None, True, is_causal=causal, scale=scale)
    return out.transpose(1, 2), lse[:, :, : q.shape[1]]  # the operator pads the lse to a multiple of 32 queries


def sdpa_cudnn(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float) -> Any:
    operator = torch.ops.aten._scaled_dot_product_cudnn_attention
    out, lse, *_ = operator(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), None, True, is_causal=causal, scale=scale)
    lse = lse[..., 0] if lse.dim() == 4 else lse
    return out.transpose(1, 2), lse


# Adapters of torch's operators (OPERATOR, TOP_LEFT) and of the public function with a mask (MASKED):
#   - No operator supports grouped heads (GQA), so kv_heads equals heads.
#   - The operators take lengths from shapes, which a CUDA graph keeps, so they are not graph_safe.
#   - With is_causal, the mask of the operators is top-left: query i sees the keys up to key i. Only the flash operator
#     on a GPU has a bottom-right mask, which is why torch.nn.attention.bias uses that operator.
OPERATOR = Adapter(sdpa_flash, "dense", lse_layout="hn", graph_safe=False, dtype="bfloat16", device="cuda", heads=4, kv_heads=4, dim=64)
TOP_LEFT = replace(OPERATOR, alignment="top-left")
MASKED = replace(OPERATOR, takes=("seq_lens_k",), returns_lse=False, graph_safe=True, device="any", dtype="float32", dim=32)

ADAPTERS = [
    replace(MASKED, call=sdpa_math, name="SDPA math, lengths as a mask"),
    replace(MASKED, call=sdpa_flash_mask, name="SDPA flash (CPU), lengths as a mask", device="cpu"),
    replace(TOP_LEFT, call=sdpa_flash_cpu, name="SDPA flash operator (CPU)", device="cpu", dtype="float32", dim=32),
    replace(TOP_LEFT, call=sdpa_flash_cpu, name="SDPA flash operator (CPU), bf16", device="cpu"),
    replace(MASKED, call=sdpa_efficient_mask, name="SDPA efficient, lengths as a mask", device="cuda", dtype="bfloat16", dim=64),
    replace(OPERATOR, call=sdpa_flash, name="SDPA flash operator"),
    replace(TOP_LEFT, call=sdpa_efficient, name="SDPA efficient operator"),
    replace(TOP_LEFT, call=sdpa_cudnn, name="SDPA cuDNN operator"),
]
