"""Adapts vLLM's kernels: its FlashAttention in the ragged form, and its merge."""

from __future__ import annotations

from typing import Any

import torch
from vllm.v1.attention.ops.merge_attn_states import merge_attn_states
from vllm.vllm_flash_attn import flash_attn_varlen_func

from ..cases import Adapter


def flash(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, max_seqlen_q: int,
          max_seqlen_k: int, causal: bool, scale: float, out: Any = None, version: int = 2) -> Any:  # fmt: skip
    return flash_attn_varlen_func(q, k, v, max_seqlen_q, cu_seqlens_q, max_seqlen_k, cu_seqlens_k, softmax_scale=scale, causal=causal, out=out,
                                  return_softmax_lse=True, fa_version=version)  # fmt: skip


def flash3(*args: torch.Tensor, **options: Any) -> Any:
    return flash(*args, **options, version=3)


def paged3(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, block_table: torch.Tensor, seq_lens: torch.Tensor, scale: float) -> Any:
    starts = torch.arange(q.shape[0] + 1, dtype=torch.int32, device=q.device)
    return flash_attn_varlen_func(q, k_cache, v_cache, 1, starts, block_table.shape[1] * k_cache.shape[1], softmax_scale=scale, causal=True,
                                  seqused_k=seq_lens, block_table=block_table, return_softmax_lse=True, fa_version=3)  # fmt: skip


def merge(a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor, *, out: Any = None, lse: Any = None) -> Any:
    out = torch.empty_like(a) if out is None else out
    lse = torch.empty_like(a_lse) if lse is None else lse
    merge_attn_states(out, a, a_lse, b, b_lse, lse)
    return out, lse


COMMON: dict[str, Any] = {"lse_layout": "hn", "dtype": "bfloat16", "device": "cuda", "dim": 128}
FLASH = {**COMMON, "alignment_bytes": 16}  # vLLM's vector loads and TMA require this alignment

ADAPTERS = [
    Adapter(flash, name="vLLM FlashAttention 2 varlen", takes=("out", "max_seqlen_q", "max_seqlen_k"), **FLASH),
    Adapter(flash3, name="vLLM FlashAttention 3 varlen", takes=("out", "max_seqlen_q", "max_seqlen_k"), **FLASH),
    Adapter(paged3, "paged", name="vLLM FlashAttention 3 paged", **FLASH),
    Adapter(merge, "merge", name="vLLM merge_attn_states", takes=("out", "lse"), **COMMON),
]
