"""Replaces functions of vLLM: `vllm._custom_ops.merge_attn_states`, masks of empty contexts, padded rows, and the parts
of its exchanges over ranks."""

from __future__ import annotations

import multiprocessing
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from mlafix.compat import sglang
from mlafix.compat import vllm as ours

from . import Elsewhere, checkout_module, module, package


class _Platform:
    """Replaces vllm.platforms.current_platform, with the attributes that tests of kernels use."""

    def is_cuda(self) -> bool:
        return torch.cuda.is_available()

    is_cuda_alike = is_cuda

    def is_rocm(self) -> bool:
        return False

    is_xpu = is_cpu = is_rocm

    @property
    def device_type(self) -> str:
        return "cuda"

    def fp8_dtype(self) -> torch.dtype:
        return torch.float8_e4m3fn

    def get_device_name(self, device_id: int = 0) -> str:
        return torch.cuda.get_device_name(device_id)


def scaled_fp8_quant(tensor: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantises to fp8 with one static scale. A test uses this for its reference in torch."""
    most = torch.finfo(torch.float8_e4m3fn).max
    return (tensor.float() * scale.reciprocal()).clamp(-most, most).to(torch.float8_e4m3fn), scale


def combine(outputs: torch.Tensor, lses: torch.Tensor, return_lse: bool = False, is_lse_base_on_e: bool = True) -> Any:
    """Adapts vLLM's signature to our function for SGLang's combine over ranks."""
    out, lse = sglang.dcp_lse_combine_triton(outputs, lses, is_lse_base_on_e, return_lse)
    return (out, lse) if return_lse else out


def lse_lanes(dtype: torch.dtype) -> int:
    """Returns how many payload elements are as large as an f32 lse. A packed row has its lse at the end."""
    return 4 // dtype.itemsize


def pack(out: torch.Tensor, lse: torch.Tensor, send: torch.Tensor, ranks: int, heads: int, dim: int, lanes: int,
         seq_lens: torch.Tensor | None = None, query_start_loc: torch.Tensor | None = None) -> None:
    """Adapts vLLM's signature to our mask of empty shards and our function for SGLang's packing."""
    lse = lse.to(torch.float32, copy=True)
    ours.mask_dcp_empty_shards_(lse, seq_lens, query_start_loc)
    sglang.dcp_pack_a2a_send(out, lse, send[..., :dim], send.view(torch.float32)[..., dim // lanes])


def unpack(received: torch.Tensor, dim: int, lanes: int, return_lse: bool, is_lse_base_on_e: bool) -> Any:
    """Unpacks the rows of `pack`, and merges them."""
    return combine(received[..., :dim], received.view(torch.float32)[..., dim // lanes], return_lse, is_lse_base_on_e)


def install(checkout: Path) -> None:
    root = checkout / "vllm"
    package("vllm", root)
    module("vllm.platforms", current_platform=_Platform())
    module("vllm._custom_ops", merge_attn_states=ours.merge_attn_states, scaled_fp8_quant=scaled_fp8_quant)
    module("vllm.logger", init_logger=lambda name: Elsewhere("vllm.logger"))
    module("vllm.config.parallel")
    for name in ("envs", "utils.network_utils", "utils.system_utils"):
        module(f"vllm.{name}")
    if find_spec("multiprocess") is None:  # multiprocessing is enough for what these tests pickle
        sys.modules["multiprocess"] = multiprocessing
    triton = __import__("triton")
    module("vllm.triton_utils", triton=triton, tl=__import__("triton.language").language)
    package("vllm.v1", root / "v1")
    package("vllm.v1.attention", root / "v1" / "attention")
    package("vllm.v1.attention.ops", root / "v1" / "attention" / "ops")
    # In vLLM's triton_merge_attn_states.py, only the masks are replaced. Its merge stays vLLM's own, since a test uses
    # it as the reference.
    masks = {name: getattr(ours, name) for name in ("mask_empty_context", "mask_empty_context_lse")}
    if (root / "v1" / "attention" / "ops" / "triton_merge_attn_states.py").is_file():
        checkout_module("vllm.v1.attention.ops.triton_merge_attn_states", **masks)
    else:
        module("vllm.v1.attention.ops.triton_merge_attn_states", **masks)
    module("vllm.v1.attention.ops.common", pack_seq_triton=ours.pack_seq_triton, unpack_seq_triton=ours.unpack_seq_triton)
    for name in ("dcp", "dcp_alltoall"):  # the module's older name, and its name since 2026-08
        module(f"vllm.v1.attention.ops.{name}", _lse_weighted_combine=combine, dcp_lse_combine_triton=combine,
               _lse_weighted_combine_cpu=combine, _dcp_a2a_lse_pack_dim=lse_lanes, _dcp_a2a_pack_send=pack, _dcp_a2a_unpack_combine=unpack,
               mask_dcp_empty_shards_=ours.mask_dcp_empty_shards_, correct_attn_out=ours.correct_attn_out)
    module("vllm.v1.attention.ops.metadata", compute_token_to_req_indices=ours.compute_token_to_req_indices)
