"""torch's flex_attention, lengths as a mask: as it is on a CPU, compiled on a GPU."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

from ..cases import Adapter


@cache
def compiled() -> Any:
    return torch.compile(flex_attention, dynamic=True)


def flex(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float, seq_lens_k: torch.Tensor) -> Any:
    def sees(batch: Any, _head: Any, query: Any, key: Any) -> Any:
        inside = key < seq_lens_k[batch]
        return inside & (key <= query) if causal else inside

    mask = create_block_mask(sees, q.shape[0], None, q.shape[1], k.shape[1], device=q.device)
    function = flex_attention if q.device.type == "cpu" else compiled()
    out, aux = function(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), block_mask=mask, scale=scale, enable_gqa=True,
                        return_aux=AuxRequest(lse=True))  # fmt: skip
    return out.transpose(1, 2), aux.lse


COMMON = {"form": "dense", "takes": ("seq_lens_k",), "lse_layout": "hn", "alignment": "top-left", "graph_safe": False}

ADAPTERS = [
    Adapter(flex, name="flex_attention, eager", device="cpu", **COMMON),  # type: ignore[arg-type]
    Adapter(flex, name="flex_attention, compiled", device="cuda", dtype="bfloat16", dim=64, **COMMON),  # type: ignore[arg-type]
]
