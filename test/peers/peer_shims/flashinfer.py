"""Replaces FlashInfer's cascade functions. The tests compare them with FlashInfer's Triton kernels, which are loaded
from the checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from mlafix.compat import flashinfer as ours

from . import checkout_module, module, package


class GPUArchitectureError(RuntimeError):
    """The engine's error for a kernel that does not support the GPU. Our functions never raise it."""


def install(checkout: Path) -> None:
    root = checkout / "flashinfer"
    names = {name: getattr(ours, name) for name in ("merge_state", "merge_state_in_place", "merge_states")}
    module("flashinfer", __path__=[str(root)], **names)
    module("flashinfer.utils", GPUArchitectureError=GPUArchitectureError, get_compute_capability=_capability,
           has_flashinfer_jit_cache=lambda: True)
    module("flashinfer.jit")
    module("flashinfer.cascade", **names)
    if (root / "trace").is_dir():
        checkout_module("flashinfer.trace")
    package("flashinfer.trace.templates", root / "trace" / "templates")
    package("flashinfer.triton", root / "triton")
    # The engine's tests use this module's merge_state, merge_state_in_place and merge_states as references, so they are
    # not replaced.
    checkout_module("flashinfer.triton.cascade", variable_length_merge_states=ours.variable_length_merge_states)


def _capability(device: Any) -> tuple[int, int]:
    return torch.cuda.get_device_capability(device)
