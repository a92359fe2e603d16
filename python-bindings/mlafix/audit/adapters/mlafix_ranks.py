"""Adapts mlafix's Reducer over gloo."""

from __future__ import annotations

from typing import Any

import torch

from mlafix.distributed import Reducer

from ..cases import Adapter


def reducer(out: torch.Tensor, lse: torch.Tensor, *, group: Any) -> Any:
    made = Reducer(group, max_tokens=max(out.shape[0], 1), heads=out.shape[1], head_dim=out.shape[2], dtype=out.dtype, cut="none", device="cpu")
    return made.reduce(out, lse)


ADAPTERS = [Adapter(reducer, "reduce", name="mlafix Reducer over gloo", batch_invariant=True, heads=6, dim=64)]
