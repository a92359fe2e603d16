"""Adapts transformers' attention functions: the eager ones of Llama and GPT-OSS, and SDPA. Lengths, causality and
windows become one mask, like the one that transformers' masking_utils makes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward as gpt_oss_attention
from transformers.models.llama.modeling_llama import eager_attention_forward as llama_attention

from ..cases import Adapter


def visible_keys(q: torch.Tensor, k: torch.Tensor, causal: bool, window: int, seq_lens_k: torch.Tensor) -> torch.Tensor:
    """Returns the mask of visible keys, bool [B, 1, Lq, Lk]. Each query has a key of its own: the last query of a
    sequence has the sequence's last key, the query before it the second-to-last key, and so on. With `causal`, a query
    sees no key after its own. If `window` is not negative, a query sees its own key and `window` keys on each side."""
    key, lengths = torch.arange(k.shape[1]), seq_lens_k[:, None, None]
    own = torch.arange(q.shape[1])[:, None] + lengths - q.shape[1]
    seen = (key < lengths).expand(-1, q.shape[1], -1)
    seen = seen & (key <= own) if causal else seen
    seen = seen & (key >= own - window) & (key <= own + window) if window >= 0 else seen
    return seen[:, None]


def added(seen: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Returns the additive mask of eager attention: 0 at visible keys, and the lowest finite number at all others."""
    return torch.where(seen, 0.0, torch.finfo(dtype).min).to(dtype)


def llama_eager(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float, seq_lens_k: torch.Tensor, window: int = -1) -> torch.Tensor:
    mask, module = added(visible_keys(q, k, causal, window, seq_lens_k), q.dtype), SimpleNamespace(num_key_value_groups=q.shape[2] // k.shape[2], training=False)
    return llama_attention(module, *(x.transpose(1, 2) for x in (q, k, v)), mask, scaling=scale)[0]


def gpt_oss_eager(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float, seq_lens_k: torch.Tensor, window: int = -1,
                  sinks: Any = None) -> torch.Tensor:  # fmt: skip
    """Calls GPT-OSS's attention. If `sinks` is None, passes sinks of negligible weight."""
    sinks = torch.full((q.shape[2],), torch.finfo(q.dtype).min) if sinks is None else sinks
    module = SimpleNamespace(num_key_value_groups=q.shape[2] // k.shape[2], training=False, sinks=sinks.to(q.dtype))
    mask = added(visible_keys(q, k, causal, window, seq_lens_k), q.dtype)
    return gpt_oss_attention(module, *(x.transpose(1, 2) for x in (q, k, v)), mask, scaling=scale)[0]


def sdpa(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float, seq_lens_k: torch.Tensor, window: int = -1) -> torch.Tensor:
    module = SimpleNamespace(num_key_value_groups=q.shape[2] // k.shape[2], training=False, is_causal=causal)
    mask = visible_keys(q, k, causal, window, seq_lens_k)
    return sdpa_attention_forward(module, *(x.transpose(1, 2) for x in (q, k, v)), mask, scaling=scale)[0]


COMMON: dict[str, Any] = {"form": "dense", "takes": ("seq_lens_k", "window"), "returns_lse": False, "graph_safe": False}

ADAPTERS = [
    Adapter(llama_eager, name="transformers eager (Llama)", **COMMON),
    Adapter(gpt_oss_eager, name="transformers eager (GPT-OSS)", **{**COMMON, "takes": ("seq_lens_k", "window", "sinks")}),
    Adapter(sdpa, name="transformers sdpa", **COMMON),
]
