"""The kernels of engines, where they are installed: vLLM, SGLang (sgl-kernel), FlashInfer, FlashAttention.

Each in the layout that the engine keeps: SGLang and FlashInfer have the lse as [n, H], FlashInfer in base 2. Conversions are
made before anything is timed. FlashInfer allocates its results.
"""

from __future__ import annotations

import importlib
import math
from typing import Any, Callable

import torch
from work import Prepare, Tensors, Unavailable


def imported(module: str, name: str) -> Any:
    """A function of a module; raises Unavailable where either is missing."""
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, OSError, RuntimeError) as error:
        raise Unavailable(f"no {module}.{name}: {error}") from error


def vllm_cuda(t: Tensors) -> Callable[[], object]:
    """vLLM's CUDA merge."""
    function = imported("vllm._custom_ops", "merge_attn_states")
    return lambda: function(t["out"], t["out_lse"], t["prefix"], t["prefix_lse"], t["suffix"], t["suffix_lse"])


def vllm_triton(t: Tensors) -> Callable[[], object]:
    """vLLM's Triton merge."""
    for module in ("vllm.v1.attention.ops.triton_merge_attn_states", "vllm.attention.ops.triton_merge_attn_states"):
        try:
            function = imported(module, "merge_attn_states")
        except Unavailable:
            continue
        return lambda: function(t["out"], t["prefix"], t["prefix_lse"], t["suffix"], t["suffix_lse"], t["out_lse"])
    raise Unavailable("no triton_merge_attn_states in vllm")


def rows_first(t: Tensors, factor: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Both lse as contiguous [n, H], times a factor."""
    return (t["prefix_lse"].T * factor).contiguous(), (t["suffix_lse"].T * factor).contiguous()


def sglang(t: Tensors) -> Callable[[], object]:
    """SGLang's merge_state_v2. Its lse goes to a view of the set's, so that the check finds it."""
    function = imported("sgl_kernel", "merge_state_v2")
    a, b = rows_first(t)
    lse = torch.empty_like(a)

    def call() -> None:
        function(t["prefix"], a, t["suffix"], b, t["out"], lse)

    t["out_lse"] = lse.T
    return call


def flashinfer_pair(t: Tensors) -> Callable[[], object]:
    """FlashInfer's merge_state."""
    function = imported("flashinfer", "merge_state")
    a, b = rows_first(t, math.log2(math.e))

    def call() -> object:
        t["out"], lse = function(t["prefix"], a, t["suffix"], b)
        t["lse_base_2"] = lse.T
        return lse

    return call


def flashinfer_dense(t: Tensors) -> Callable[[], object]:
    """FlashInfer's merge_states."""
    function = imported("flashinfer", "merge_states")
    s = t["s"] * math.log2(math.e)

    def call() -> object:
        t["out"], t["lse_base_2"] = function(t["v"], s)
        return t["out"]

    return call


def flashinfer_ragged(t: Tensors) -> Callable[[], object]:
    """FlashInfer's variable_length_merge_states, which is Triton."""
    function = imported("flashinfer.triton.cascade", "variable_length_merge_states")
    s = t["s"] * math.log2(math.e)

    def call() -> object:
        t["out"], t["lse_base_2"] = function(t["v"], s, t["indptr"])
        return t["out"]

    return call


def flashinfer_combine(t: Tensors) -> Callable[[], object]:
    """FlashInfer's merge_states on the partials as it lays them out, [B, S, H, D]."""
    function = imported("flashinfer", "merge_states")
    v = t["partial"][:, :, 0].transpose(0, 1).contiguous()
    s = (t["partial_lse"][:, :, 0].transpose(0, 1) * math.log2(math.e)).contiguous()

    def call() -> object:
        out, lse = function(v, s)
        t["out"], t["lse_base_2"] = out[:, None], lse[:, None]
        return out

    return call


FLASH_ATTN = {"flash_attn 3": "flash_attn_interface", "flash_attn 4": "flash_attn.cute.interface"}
"""Modules of FlashAttention that have a flash_attn_combine: what it is called in the tables, and where it is."""


def flash_attn_combine(module: str) -> Prepare:
    """FlashAttention's combine, into outputs that are there. Its lse is new."""

    def prepare(t: Tensors) -> Callable[[], object]:
        function = imported(module, "flash_attn_combine")

        def call() -> object:
            _, t["out_lse"] = function(t["partial"], t["partial_lse"], t["out"], torch.bfloat16)
            return t["out_lse"]

        return call

    return prepare


def flash_attn_allocating() -> dict[str, Prepare]:
    """The same, with all outputs allocated, for the host's times."""

    def prepare_of(module: str) -> Prepare:
        def prepare(t: Tensors) -> Callable[[], object]:
            function = imported(module, "flash_attn_combine")
            return lambda: function(t["partial"], t["partial_lse"])

        return prepare

    return {f"{name}: flash_attn_combine": prepare_of(module) for name, module in FLASH_ATTN.items()}


def baselines_of(group: str) -> dict[str, Prepare]:
    """By the name in the table; those that are not installed raise Unavailable when they are prepared."""
    return {"merge": {"vllm": vllm_cuda, "vllm, triton": vllm_triton, "sglang": sglang, "flashinfer": flashinfer_pair},
            "n_way": {"flashinfer": flashinfer_dense}, "ragged": {"flashinfer": flashinfer_ragged},
            "combine": {"flashinfer": flashinfer_combine, **{name: flash_attn_combine(module) for name, module in FLASH_ATTN.items()}},
            }.get(group, {})
