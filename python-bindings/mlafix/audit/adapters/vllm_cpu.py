"""Adapts vLLM's kernels for CPUs: paged attention, stores into fp8 caches, MLA decode, and the merge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from vllm.platforms import current_platform
from vllm.v1.attention.ops.merge_attn_states import merge_attn_states

from ..cases import Adapter

FP8 = {torch.float8_e4m3fn: "fp8_e4m3", torch.float8_e5m2: "fp8_e5m2"}


def operators() -> Any:
    """Returns the operators of the extension module that fits this CPU."""
    if not hasattr(torch.ops._C, "mla_decode_kvcache"):
        current_platform.import_kernels()
    return torch.ops._C


def as_pages(cache: torch.Tensor) -> torch.Tensor:
    """Converts a cache to the form that the operators take: [pages, Hk, page_size, D], with fp8 as bytes."""
    rows = cache.transpose(1, 2).contiguous()
    return rows.view(torch.uint8) if cache.dtype in FP8 else rows


def attention(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, cu_seqlens_q: torch.Tensor, block_table: torch.Tensor,
              seq_lens: torch.Tensor, causal: bool, scale: float, window: int = -1, sinks: Any = None, softcap: float = 0.0, k_scale: float = 1.0,
              v_scale: float = 1.0, out: Any = None) -> torch.Tensor:  # fmt: skip
    """Calls cpu_attention_with_kv_cache as CPUAttentionBackendImpl does. Copies the caches, since the operator takes
    pages of keys as [D, page_size] and the audit has them as [page_size, D]."""
    out = torch.empty_like(q) if out is None else out
    sizes = (seq_lens.shape[0], q.shape[1], k_cache.shape[2], q.shape[2])
    # Chooses `isa` as _get_attn_isa in vllm/v1/attention/backends/cpu_attn.py does, but never AMX.
    isa, kind = "vec" if k_cache.shape[1] % 32 == 0 and q.shape[2] % 32 == 0 else "vec16", FP8.get(k_cache.dtype, "auto")
    keys = as_pages(k_cache)
    keys = keys.transpose(2, 3).contiguous().view(keys.shape)
    plan = operators().get_scheduler_metadata(*sizes, seq_lens, q.dtype, cu_seqlens_q, causal, window + 1 if window >= 0 else -1, isa, True, None, kind)
    operators().cpu_attention_with_kv_cache(q, keys, as_pages(v_cache), out, cu_seqlens_q, seq_lens, scale, causal, None, window + 1 if window >= 0 else -1,
                                            block_table, softcap, plan, sinks, None, k_scale, v_scale, kind)  # fmt: skip
    return out


class CachedAttention:
    """Paged attention, and a `store` that writes the cache with vLLM's own operator."""

    def run(self, *tensors: torch.Tensor, **given: Any) -> torch.Tensor:
        return attention(*tensors, **given)

    def store(self, k: torch.Tensor, v: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, slot_mapping: torch.Tensor, k_scale: float = 1.0,
              v_scale: float = 1.0) -> None:  # fmt: skip
        """Calls cpu_attn_reshape_and_cache once for k and once for v. Each call uses only the cache of values, and
        zeros as the cache of keys: the operator's pages of values have the element order of the audit's caches, and
        its pages of keys do not."""
        kind = FP8.get(k_cache.dtype, "auto")
        for rows, cache, scale in ((k, k_cache, k_scale), (v, v_cache, v_scale)):
            pages = as_pages(cache)
            operators().cpu_attn_reshape_and_cache(rows, rows, torch.zeros_like(pages), pages, slot_mapping, "vec", scale, scale, kind)
            cache.copy_(pages.view(cache.dtype).transpose(1, 2))


def mla_decode(q: torch.Tensor, kv_cache: torch.Tensor, *, block_table: torch.Tensor, seq_lens: torch.Tensor, scale: float, out: Any = None) -> torch.Tensor:
    out = q.new_empty(*q.shape[:2], 512) if out is None else out
    operators().mla_decode_kvcache(out, q, kv_cache, scale, block_table, seq_lens)
    return out


def merge(a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor, *, out: Any = None, lse: Any = None) -> Any:
    out = torch.empty_like(a) if out is None else out
    lse = torch.empty_like(a_lse) if lse is None else lse
    merge_attn_states(out, a, a_lse, b, b_lse, lse)
    return out, lse


PAGED = Adapter(attention, "ragged_paged", name="vLLM CPU attention", takes=("window", "sinks", "softcap", "out"), returns_lse=False, page_size=32)
CACHED = replace(PAGED, call=CachedAttention, dtype="bfloat16", takes=(*PAGED.takes, "k_scale", "v_scale"))
LATENT = Adapter(mla_decode, "paged", name="vLLM CPU MLA decode", takes=("out",), returns_lse=False, dtype="bfloat16", heads=16, kv_heads=1, dim=576, value_dim=512,
                 values_in_keys=True, latent=True)  # fmt: skip

ADAPTERS = [
    PAGED,
    replace(PAGED, name="vLLM CPU attention, bf16", dtype="bfloat16"),
    replace(PAGED, name="vLLM CPU attention, pages of 16", page_size=16),
    replace(CACHED, name="vLLM CPU attention, fp8 e4m3", kv_dtype="float8_e4m3fn"),
    replace(CACHED, name="vLLM CPU attention, fp8 e5m2", kv_dtype="float8_e5m2"),
    LATENT,
    Adapter(merge, "merge", name="vLLM CPU merge_attn_states", takes=("out", "lse"), lse_layout="hn"),
]
