"""FlashInfer: the cascade functions. Its tests compare with its Triton kernels, which come from the checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from mlafix.compat import flashinfer as ours

from . import checkout_module, module, package


class GPUArchitectureError(RuntimeError):
    """The engine's error for a kernel that does not support this GPU. Nothing here raises it."""


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
    # merge_state, merge_state_in_place and merge_states of this module are the references of the engine's tests.
    checkout_module("flashinfer.triton.cascade", variable_length_merge_states=ours.variable_length_merge_states)


def _capability(device: Any) -> tuple[int, int]:
    return torch.cuda.get_device_capability(device)
