"""Adapts SGLang's kernels: its FlashAttention 3 in the ragged form, and its merge."""

from __future__ import annotations

from typing import Any

import torch
from sgl_kernel import merge_state_v2
from sgl_kernel.flash_attn import flash_attn_varlen_func

from ..cases import Adapter


def flash(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, max_seqlen_q: int,
          max_seqlen_k: int, causal: bool, scale: float) -> Any:  # fmt: skip
    result = flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, softmax_scale=scale, causal=causal,
                                    return_softmax_lse=True)  # fmt: skip
    return result[0], result[1]


def merge(a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor, *, out: Any = None, lse: Any = None) -> Any:
    return merge_state_v2(a, a_lse, b, b_lse, out, lse)


ADAPTERS = [
    Adapter(flash, name="SGLang flash_attn_varlen_func", takes=("max_seqlen_q", "max_seqlen_k"), lse_layout="hn", dtype="bfloat16", device="cuda", dim=128,
            alignment_bytes=16),
    Adapter(merge, "merge", name="SGLang merge_state_v2", takes=("out", "lse"), dtype="bfloat16", device="cuda", dim=128),
]
