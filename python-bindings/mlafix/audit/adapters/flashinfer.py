"""Adapts FlashInfer: ragged prefill, paged decode, MLA decode and merge. FlashInfer's plans read lengths on the host,
so a CUDA graph cannot capture the calls."""

from __future__ import annotations

from functools import cache
from typing import Any

import flashinfer
import torch

from ..cases import Adapter


@cache
def workspace() -> torch.Tensor:
    return torch.zeros(128 << 20, dtype=torch.uint8, device="cuda")


def prefill(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, causal: bool, scale: float) -> Any:
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(workspace(), "NHD")
    wrapper.plan(cu_seqlens_q, cu_seqlens_k, q.shape[1], k.shape[1], q.shape[2], head_dim_vo=v.shape[2], causal=causal, sm_scale=scale,
                 q_data_type=q.dtype)  # fmt: skip
    return wrapper.run(q, k, v, return_lse=True)


def page_lists(block_table: torch.Tensor, seq_lens: torch.Tensor, size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Converts a block table to FlashInfer's indptr, indices and last_page_len. A length below 0 counts as 0."""
    seq_lens = seq_lens.clamp(min=0)
    counts = (seq_lens + size - 1).div(size, rounding_mode="floor")
    indptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).to(torch.int32)
    indices = torch.cat([block_table.new_zeros(0), *(row[:count] for row, count in zip(block_table, counts.tolist()))])
    return indptr, indices, (seq_lens - (counts - 1).clamp(min=0) * size).to(torch.int32)


def decode(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, block_table: torch.Tensor, seq_lens: torch.Tensor, scale: float) -> Any:
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace(), "NHD")
    size = k_cache.shape[1]
    wrapper.plan(*page_lists(block_table, seq_lens, size), q.shape[1], k_cache.shape[2], q.shape[2], size, q_data_type=q.dtype, sm_scale=scale)
    return wrapper.run(q, (k_cache, v_cache), return_lse=True)


def mla(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, block_table: torch.Tensor, seq_lens: torch.Tensor, scale: float) -> Any:
    latent, size = v_cache.shape[-1], k_cache.shape[1]
    wrapper = flashinfer.mla.BatchMLAPagedAttentionWrapper(workspace())
    indptr, indices, _ = page_lists(block_table, seq_lens, size)
    queries = torch.arange(q.shape[0] + 1, dtype=torch.int32, device=q.device)
    wrapper.plan(queries, indptr, indices, seq_lens.clamp(min=0), q.shape[1], latent, q.shape[2] - latent, size, False, scale, q.dtype, k_cache.dtype)
    cache_ = k_cache[:, :, 0]
    return wrapper.run(q[..., :latent].contiguous(), q[..., latent:].contiguous(), cache_[..., :latent].contiguous(), cache_[..., latent:].contiguous(),
                       return_lse=True)  # fmt: skip


def merge_state(a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor) -> Any:
    return flashinfer.merge_state(a, a_lse, b, b_lse)


COMMON = {"lse_base": "2", "graph_safe": False, "dtype": "bfloat16", "device": "cuda"}

ADAPTERS = [
    Adapter(prefill, name="FlashInfer ragged prefill", dim=128, **COMMON),  # type: ignore[arg-type]
    Adapter(decode, "paged", name="FlashInfer paged decode", dim=128, **COMMON),  # type: ignore[arg-type]
    Adapter(mla, "paged", name="FlashInfer MLA decode", heads=16, kv_heads=1, dim=576, value_dim=512, values_in_keys=True, head_counts=(128,),
            **COMMON),  # type: ignore[arg-type]  # fmt: skip
    Adapter(merge_state, "merge", name="FlashInfer merge_state", dim=128, **COMMON),  # type: ignore[arg-type]
]
