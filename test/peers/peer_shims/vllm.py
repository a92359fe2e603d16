"""vLLM: `vllm._custom_ops.merge_attn_states`, the masks of empty contexts, and the merges behind its exchanges over ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from mlafix.compat import vllm as ours

from . import Elsewhere, checkout_module, merge_ranks, module, package


class _Platform:
    """vllm.platforms.current_platform, as far as tests of kernels ask it."""

    def is_cuda(self) -> bool:
        return torch.cuda.is_available()

    is_cuda_alike = is_cuda

    def is_rocm(self) -> bool:
        return False

    def fp8_dtype(self) -> torch.dtype:
        return torch.float8_e4m3fn

    def get_device_name(self, device_id: int = 0) -> str:
        return torch.cuda.get_device_name(device_id)


def scaled_fp8_quant(tensor: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """fp8 with one static scale, for the reference that a test computes in torch."""
    most = torch.finfo(torch.float8_e4m3fn).max
    return (tensor.float() * scale.reciprocal()).clamp(-most, most).to(torch.float8_e4m3fn), scale


def combine(outputs: torch.Tensor, lses: torch.Tensor, return_lse: bool = False, is_lse_base_on_e: bool = True) -> Any:
    """vLLM's signature over `mlafix.ops.merge_states`."""
    out, lse = merge_ranks(outputs, lses, base="e" if is_lse_base_on_e else "2", return_lse=return_lse)
    return (out, lse) if return_lse else out


def install(checkout: Path) -> None:
    root = checkout / "vllm"
    package("vllm", root)
    module("vllm.platforms", current_platform=_Platform())
    module("vllm._custom_ops", merge_attn_states=ours.merge_attn_states, scaled_fp8_quant=scaled_fp8_quant)
    module("vllm.logger", init_logger=lambda name: Elsewhere("vllm.logger"))
    module("vllm.config.parallel")
    triton = __import__("triton")
    module("vllm.triton_utils", triton=triton, tl=__import__("triton.language").language)
    package("vllm.v1", root / "v1")
    package("vllm.v1.attention", root / "v1" / "attention")
    package("vllm.v1.attention.ops", root / "v1" / "attention" / "ops")
    # The merge in this file is the test's reference and stays; the masks are under test.
    masks = {name: getattr(ours, name) for name in ("mask_empty_context", "mask_empty_context_lse")}
    if (root / "v1" / "attention" / "ops" / "triton_merge_attn_states.py").is_file():
        checkout_module("vllm.v1.attention.ops.triton_merge_attn_states", **masks)
    else:
        module("vllm.v1.attention.ops.triton_merge_attn_states", **masks)
    module("vllm.v1.attention.ops.dcp_alltoall", _lse_weighted_combine=combine, dcp_lse_combine_triton=combine)
