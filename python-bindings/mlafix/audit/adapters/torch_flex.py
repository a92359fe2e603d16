"""Adapts torch's flex_attention, uncompiled on a CPU and compiled on a GPU. Lengths of keys become a mask."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

from ..cases import Adapter


@cache
def compiled() -> Any:
    """Compiles flex_attention. Raises the recompile limit, past which torch would run new shapes uncompiled."""
    torch._dynamo.config.recompile_limit = 256
    return torch.compile(flex_attention, dynamic=True)


def flex(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float, seq_lens_k: torch.Tensor) -> Any:
    """Calls flex_attention with a mask that hides keys past each length. If `causal`, the mask is bottom-right: the
    last query of a sequence sees all keys of the sequence."""
    behind = seq_lens_k - q.shape[1]

    def sees(batch: Any, _head: Any, query: Any, key: Any) -> Any:
        inside = key < seq_lens_k[batch]
        return inside & (key <= query + behind[batch]) if causal else inside

    mask = create_block_mask(sees, q.shape[0], None, q.shape[1], k.shape[1], device=q.device)
    given = {"block_mask": mask, "scale": scale, "enable_gqa": True, "return_aux": AuxRequest(lse=True)}
    tensors = [tensor.transpose(1, 2) for tensor in (q, k, v)]
    if q.device.type == "cpu":
        with torch.compiler.set_stance("force_eager"):  # without this, Dynamo would trace the same operators again for each shape
            out, aux = flex_attention(*tensors, **given)
    else:
        out, aux = compiled()(*tensors, **given)
    return out.transpose(1, 2), aux.lse


COMMON = {"form": "dense", "takes": ("seq_lens_k",), "lse_layout": "hn", "graph_safe": False}

ADAPTERS = [
    Adapter(flex, name="flex_attention, eager", device="cpu", **COMMON),  # type: ignore[arg-type]
    Adapter(flex, name="flex_attention, compiled", device="cuda", dtype="bfloat16", dim=64, head_counts=(24, 128), **COMMON),  # type: ignore[arg-type]
]
