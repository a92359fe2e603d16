"""vLLM's kernels: its FlashAttention, ragged, and its merge."""

from __future__ import annotations

from typing import Any

import torch
from vllm.v1.attention.ops.merge_attn_states import merge_attn_states
from vllm.vllm_flash_attn import flash_attn_varlen_func

from ..cases import Adapter


def flash(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, max_seqlen_q: int,
          max_seqlen_k: int, causal: bool, scale: float, out: Any = None) -> Any:  # fmt: skip
    return flash_attn_varlen_func(q, k, v, max_seqlen_q, cu_seqlens_q, max_seqlen_k, cu_seqlens_k, softmax_scale=scale, causal=causal, out=out,
                                  return_softmax_lse=True)  # fmt: skip


def merge(a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor, *, out: Any = None, lse: Any = None) -> Any:
    out = torch.empty_like(a) if out is None else out
    lse = torch.empty_like(a_lse) if lse is None else lse
    merge_attn_states(out, a, a_lse, b, b_lse, lse)
    return out, lse


ADAPTERS = [
    Adapter(flash, name="vLLM flash_attn_varlen_func", takes=("out", "max_seqlen_q", "max_seqlen_k"), lse_layout="hn", dtype="bfloat16",
            device="cuda", dim=128),  # fmt: skip
    Adapter(merge, "merge", name="vLLM merge_attn_states", takes=("out", "lse"), lse_layout="hn", dtype="bfloat16", device="cuda", dim=128),
]
