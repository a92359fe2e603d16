"""Calls the kernels of the installed engines: vLLM, SGLang (sgl-kernel), FlashInfer, FlashAttention.

Each call uses the engine's own layout and base; FlashInfer's lse, for example, is in base 2. Conversions are not timed.
Most functions of FlashInfer allocate their results.

The baselines `flashinfer, C++` call `VariableLengthMergeStates` of FlashInfer's C++ headers. No Python function of
FlashInfer calls this function, so a module `flashinfer_cuda`, which is not part of FlashInfer, has to bind it. Without
this module, these baselines are left out.
"""

from __future__ import annotations

import importlib
import math
from typing import Any, Callable

import torch
from work import Prepare, Tensors, Unavailable

from mlafix.compat import flash_attn as our_flash_attn
from mlafix.compat import flashinfer as our_flashinfer
from mlafix.compat import sglang as our_sglang
from mlafix.compat import vllm as our_vllm

TO_BASE_2 = math.log2(math.e)


def imported(module: str, name: str) -> Any:
    """Returns a function of a module. Raises Unavailable if the module or the function does not exist."""
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, OSError, RuntimeError) as error:
        raise Unavailable(f"no {module}.{name}: {error}") from error


VLLM = "vllm._custom_ops"
VLLM_TRITON = "vllm.v1.attention.ops.triton_merge_attn_states"


def vllm_merge(module: str) -> Prepare:
    """Prepares vLLM's merge. It merges into fp8 if the case has a scale."""

    def prepare(t: Tensors) -> Callable[[], object]:
        function = imported(module, "merge_attn_states")
        args = t["out"], t["prefix"], t["prefix_lse"], t["suffix"], t["suffix_lse"], t.get("out_lse"), None, t.get("scale")
        return lambda: function(*args)

    return prepare


def vllm_threshold(module: str) -> Prepare:
    """Prepares vLLM's merge of states in which the second half of the rows has no context."""

    def prepare(t: Tensors) -> Callable[[], object]:
        function = imported(module, "merge_attn_states")
        args = t["out"], t["prefix"], t["prefix_lse"], t["suffix"], t["suffix_lse"], t["out_lse"], t["out"].shape[0] // 2
        return lambda: function(*args)

    return prepare


def vllm_mask(t: Tensors) -> Callable[[], object]:
    """Prepares vLLM's mask_empty_context if the buffers include rows (`out`), else its mask_empty_context_lse. Both are
    Triton kernels."""
    starts = t["query_start_loc"], t["context_start_loc"]
    if "out" in t:
        function = imported(VLLM_TRITON, "mask_empty_context")
        return lambda: function(t["lse"], t["out"], *starts)
    function = imported(VLLM_TRITON, "mask_empty_context_lse")
    return lambda: function(t["lse"], *starts)


def sglang_merge(module: str, name: str) -> Prepare:
    """Prepares SGLang's merge into existing outputs. The lse is [n, H]."""

    def prepare(t: Tensors) -> Callable[[], object]:
        function = imported(module, name)
        args = t["prefix"], t["prefix_lse"], t["suffix"], t["suffix_lse"], t["out"], t["out_lse"]
        return lambda: function(*args)

    return prepare


SGLANG_OPS = "sglang.kernels.ops.attention"


def sglang_fixup(t: Tensors) -> Callable[[], object]:
    """Prepares SGLang's fixup of rows without keys. The lse is [n, H]."""
    function = imported(f"{SGLANG_OPS}.fixup_zero_kv", "fixup_zero_kv_rows")
    longest = int(t["cu_seqlens"].diff().max())
    args = t["out"], t["lse"], t["kv_lens"], t["cu_seqlens"], longest
    return lambda: function(*args)


def sglang_combine(t: Tensors) -> Callable[[], object]:
    """Prepares the second stage of SGLang's Triton decode, on partials in SGLang's layout [B, H, S, D]. This stage
    returns no lse."""
    function = imported(f"{SGLANG_OPS}.decode_attention", "_decode_softmax_reducev_fwd")
    splits, batch, queries = t["partial"].shape[:3]
    if queries != 1:
        raise Unavailable("SGLang's decode has one query a sequence")
    partial = t["partial"][:, :, 0].permute(1, 2, 0, 3).contiguous()
    lse = t["partial_lse"][:, :, 0].permute(1, 2, 0).contiguous()
    out = t["out"][:, 0]
    block = imported(f"{SGLANG_OPS}.decode_attention", "_MIN_BLOCK_KV")
    indptr = torch.arange(batch + 1, device=out.device, dtype=torch.int32) * (splits * block)
    num_splits = torch.full((batch,), splits, device=out.device, dtype=torch.int32)
    del t["out_lse"]
    # The function uses only the sizes of the query and the values, so `out` stands for both.
    return lambda: function(partial, lse, out, out, 1.0, out, indptr, num_splits, splits)


def flashinfer_pair(t: Tensors) -> Callable[[], object]:
    """Prepares FlashInfer's merge_state. The lse is [n, H]."""
    function = imported("flashinfer", "merge_state")
    a, b = t["prefix_lse"] * TO_BASE_2, t["suffix_lse"] * TO_BASE_2

    def call() -> object:
        t["out"], t["lse_base_2"] = function(t["prefix"], a, t["suffix"], b)
        return t["out"]

    return call


def flashinfer_in_place(t: Tensors) -> Callable[[], object]:
    """Prepares FlashInfer's merge_state_in_place. The call passes a mask only if the mask excludes rows."""
    function = imported("flashinfer", "merge_state_in_place")
    mask = t["mask"] if not bool(t["mask"].all()) else None
    return lambda: function(t["v"], t["s"], t["v_other"], t["s_other"], mask)


def flashinfer_dense(t: Tensors) -> Callable[[], object]:
    """Prepares FlashInfer's merge_states."""
    function = imported("flashinfer", "merge_states")
    s = t["s"] * TO_BASE_2

    def call() -> object:
        t["out"], t["lse_base_2"] = function(t["v"], s)
        return t["out"]

    return call


def flashinfer_ragged_triton(t: Tensors) -> Callable[[], object]:
    """Prepares FlashInfer's variable_length_merge_states, a Triton kernel."""
    function = imported("flashinfer.triton.cascade", "variable_length_merge_states")
    s = t["s"] * TO_BASE_2

    def call() -> object:
        t["out"], t["lse_base_2"] = function(t["v"], s, t["indptr"])
        return t["out"]

    return call


def flashinfer_ragged(name: str) -> Prepare:
    """Prepares FlashInfer's VariableLengthMergeStates, a C++ function."""

    def prepare(t: Tensors) -> Callable[[], object]:
        function = imported("flashinfer_cuda", name)
        s, t["lse_base_2"] = t["s"] * TO_BASE_2, t["out_lse"]
        args = t["v"], s, t["indptr"], t["out"], t["lse_base_2"]
        return lambda: function(*args)

    return prepare


FLASH_ATTN = {"flash_attn 3": "flash_attn_interface", "flash_attn 4": "flash_attn.cute.interface"}
"""The modules of FlashAttention that have a flash_attn_combine, by the name of the release in the tables."""


def flash_attn_combine(module: str) -> Prepare:
    """Prepares FlashAttention's combine into the existing `out`. The function allocates the lse."""

    def prepare(t: Tensors) -> Callable[[], object]:
        function = imported(module, "flash_attn_combine")

        def call() -> object:
            _, t["out_lse"] = function(t["partial"], t["partial_lse"], t["out"], torch.bfloat16)
            return t["out_lse"]

        return call

    return prepare


def baselines_of(group: str) -> dict[str, Prepare]:
    """Returns the baselines of a group by their names in the table. A baseline that is not installed raises Unavailable
    when it is prepared."""
    merges = {"vllm": vllm_merge(VLLM), "vllm, triton": vllm_merge(VLLM_TRITON)}
    return {"merge": merges, "shapes": merges, "merge_fp8": merges,
            "threshold": {"vllm": vllm_threshold(VLLM), "vllm, triton": vllm_threshold(VLLM_TRITON)},
            "rows_first": {"sglang": sglang_merge("sgl_kernel", "merge_state_v2"),
                           "sglang, triton": sglang_merge(f"{SGLANG_OPS}.merge_state", "merge_state_triton"),
                           "flashinfer": flashinfer_pair},
            "in_place": {"flashinfer": flashinfer_in_place},
            "n_way": {"flashinfer": flashinfer_dense}, "states": {"flashinfer": flashinfer_dense},
            "ragged": {"flashinfer, C++": flashinfer_ragged("variable_length_merge_states"),
                       "flashinfer, C++, dependent": flashinfer_ragged("variable_length_merge_states_pdl"),
                       "flashinfer, triton": flashinfer_ragged_triton},
            "combine": {**{name: flash_attn_combine(module) for name, module in FLASH_ATTN.items()}, "sglang, triton": sglang_combine},
            "fixup_rows_first": {"sglang": sglang_fixup},
            "mask": {"vllm, triton": vllm_mask}}.get(group, {})


def public_calls_of(group: str) -> dict[str, Prepare]:
    """For the cases of a group, returns calls as engines' backends write them, and the same calls of mlafix's drop-ins.
    The keys are the names in the table of host times."""

    def call_of(function: Callable[..., Any] | tuple[str, str], names: tuple[str, ...], *last: object) -> Prepare:
        def prepare(t: Tensors) -> Callable[[], object]:
            called = imported(*function) if isinstance(function, tuple) else function
            args = (*(t[name] for name in names), *last)
            return lambda: called(*args)

        return prepare

    pair = ("prefix", "prefix_lse", "suffix", "suffix_lse")
    outs = ("out", "out_lse")
    rows = ("out", "lse", "kv_lens", "cu_seqlens")
    mask = ("lse", "query_start_loc", "context_start_loc")
    found: dict[str, dict[str, tuple[Any, ...]]] = {
        "merge": {"mlafix: vllm.merge_attn_states": (our_vllm.merge_attn_states, ("out", *pair, "out_lse")),
                  "vllm: merge_attn_states, as backends call it": (("vllm.v1.attention.ops.merge_attn_states", "merge_attn_states"),
                                                                   ("out", *pair, "out_lse")),
                  "vllm: _custom_ops.merge_attn_states": ((VLLM, "merge_attn_states"), ("out", *pair, "out_lse")),
                  "vllm, triton: merge_attn_states": ((VLLM_TRITON, "merge_attn_states"), ("out", *pair, "out_lse"))},
        "rows_first": {"mlafix: sglang.merge_state_v2, outputs given": (our_sglang.merge_state_v2, (*pair, *outs)),
                       "sglang: merge_state_v2, outputs given": (("sgl_kernel", "merge_state_v2"), (*pair, *outs)),
                       "mlafix: sglang.merge_state_v2": (our_sglang.merge_state_v2, pair),
                       "sglang: merge_state_v2": (("sgl_kernel", "merge_state_v2"), pair),
                       "mlafix: flashinfer.merge_state": (our_flashinfer.merge_state, pair),
                       "flashinfer: merge_state": (("flashinfer", "merge_state"), pair)},
        "in_place": {"mlafix: flashinfer.merge_state_in_place": (our_flashinfer.merge_state_in_place, ("v", "s", "v_other", "s_other")),
                     "flashinfer: merge_state_in_place": (("flashinfer", "merge_state_in_place"), ("v", "s", "v_other", "s_other"))},
        "n_way": {"mlafix: flashinfer.merge_states": (our_flashinfer.merge_states, ("v", "s")),
                  "flashinfer: merge_states": (("flashinfer", "merge_states"), ("v", "s"))},
        "ragged": {"mlafix: flashinfer.variable_length_merge_states": (our_flashinfer.variable_length_merge_states, ("v", "s", "indptr")),
                   "flashinfer, triton: variable_length_merge_states": (("flashinfer.triton.cascade", "variable_length_merge_states"),
                                                                        ("v", "s", "indptr"))},
        "fixup_rows_first": {"mlafix: sglang.fixup_zero_kv_rows": (our_sglang.fixup_zero_kv_rows, rows, 1),
                             "sglang: fixup_zero_kv_rows": ((f"{SGLANG_OPS}.fixup_zero_kv", "fixup_zero_kv_rows"), rows, 1)},
        "mask": {"mlafix: vllm.mask_empty_context_lse": (our_vllm.mask_empty_context_lse, mask),
                 "vllm, triton: mask_empty_context_lse": ((VLLM_TRITON, "mask_empty_context_lse"), mask)},
        "combine": {"mlafix: flash_attn.flash_attn_combine": (our_flash_attn.flash_attn_combine, ("partial", "partial_lse")),
                    **{f"{name}: flash_attn_combine": ((module, "flash_attn_combine"), ("partial", "partial_lse"))
                       for name, module in FLASH_ATTN.items()}},
    }
    return {name: call_of(*arguments) for name, arguments in found.get(group, {}).items()}
