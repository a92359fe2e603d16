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
from work import PAIR, Prepare, Tensors, Unavailable, calling

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


def engine(module: str, name: str, names: str, *last: object) -> Prepare:
    """Returns a preparation of a call of an engine's function. Its arguments are the tensors with these names, and
    `last`."""
    return lambda t: calling(imported(module, name), names, *last)(t)


VLLM = "vllm._custom_ops"
VLLM_TRITON = "vllm.v1.attention.ops.triton_merge_attn_states"


def vllm_merge(module: str, has_threshold: bool = False) -> Prepare:
    """Prepares vLLM's merge. It merges into fp8 if the case has a scale. With a threshold, the second half of the rows
    has no context."""

    def prepare(t: Tensors) -> Callable[[], object]:
        context = t["out"].shape[0] // 2 if has_threshold else None
        return engine(module, "merge_attn_states", f"out {PAIR}", t.get("out_lse"), context, t.get("scale"))(t)

    return prepare


def vllm_mask(t: Tensors) -> Callable[[], object]:
    """Prepares vLLM's mask_empty_context if the buffers include rows (`out`), else its mask_empty_context_lse. Both are
    Triton kernels."""
    name, rows = ("mask_empty_context", "out ") if "out" in t else ("mask_empty_context_lse", "")
    return engine(VLLM_TRITON, name, f"lse {rows}query_start_loc context_start_loc")(t)


SGLANG_OPS = "sglang.kernels.ops.attention"


def sglang_fixup(t: Tensors) -> Callable[[], object]:
    """Prepares SGLang's fixup of rows without keys. The lse is [n, H]."""
    return engine(f"{SGLANG_OPS}.fixup_zero_kv", "fixup_zero_kv_rows", "out lse kv_lens cu_seqlens", int(t["cu_seqlens"].diff().max()))(t)


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


def flashinfer(module: str, name: str, names: str) -> Prepare:
    """Prepares a function of FlashInfer that allocates its results, on the tensors with these names. The lse is [n, H]
    or [n, K, H]."""

    def prepare(t: Tensors) -> Callable[[], object]:
        function = imported(module, name)
        args = [t[one] * TO_BASE_2 if one in ("prefix_lse", "suffix_lse", "s") else t[one] for one in names.split()]

        def call() -> object:
            t["out"], t["lse_base_2"] = function(*args)
            return t["out"]

        return call

    return prepare


def flashinfer_in_place(t: Tensors) -> Callable[[], object]:
    """Prepares FlashInfer's merge_state_in_place. The call passes a mask only if the mask excludes rows."""
    mask = t["mask"] if not bool(t["mask"].all()) else None
    return engine("flashinfer", "merge_state_in_place", "v s v_other s_other", mask)(t)


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
    outs = f"{PAIR} out out_lse"
    dense = {"flashinfer": flashinfer("flashinfer", "merge_states", "v s")}
    return {"merge": merges, "shapes": merges, "merge_fp8": merges,
            "threshold": {"vllm": vllm_merge(VLLM, True), "vllm, triton": vllm_merge(VLLM_TRITON, True)},
            "rows_first": {"sglang": engine("sgl_kernel", "merge_state_v2", outs),
                           "sglang, triton": engine(f"{SGLANG_OPS}.merge_state", "merge_state_triton", outs),
                           "flashinfer": flashinfer("flashinfer", "merge_state", PAIR)},
            "in_place": {"flashinfer": flashinfer_in_place}, "n_way": dense, "states": dense,
            "ragged": {"flashinfer, C++": flashinfer_ragged("variable_length_merge_states"),
                       "flashinfer, C++, dependent": flashinfer_ragged("variable_length_merge_states_pdl"),
                       "flashinfer, triton": flashinfer("flashinfer.triton.cascade", "variable_length_merge_states", "v s indptr")},
            "combine": {**{name: flash_attn_combine(module) for name, module in FLASH_ATTN.items()}, "sglang, triton": sglang_combine},
            "fixup_rows_first": {"sglang": sglang_fixup},
            "mask": {"vllm, triton": vllm_mask}}.get(group, {})


def public_calls_of(group: str) -> dict[str, Prepare]:
    """For the cases of a group, returns calls as engines' backends write them, and the same calls of mlafix's drop-ins.
    The keys are the names in the table of host times."""
    merge, outs, in_place, rows = f"out {PAIR} out_lse", f"{PAIR} out out_lse", "v s v_other s_other", "out lse kv_lens cu_seqlens"
    mask, partials = "lse query_start_loc context_start_loc", "partial partial_lse"
    return {
        "merge": {"mlafix: vllm.merge_attn_states": calling(our_vllm.merge_attn_states, merge),
                  "vllm: merge_attn_states, as backends call it": engine("vllm.v1.attention.ops.merge_attn_states", "merge_attn_states", merge),
                  "vllm: _custom_ops.merge_attn_states": engine(VLLM, "merge_attn_states", merge),
                  "vllm, triton: merge_attn_states": engine(VLLM_TRITON, "merge_attn_states", merge)},
        "rows_first": {"mlafix: sglang.merge_state_v2, outputs given": calling(our_sglang.merge_state_v2, outs),
                       "sglang: merge_state_v2, outputs given": engine("sgl_kernel", "merge_state_v2", outs),
                       "mlafix: sglang.merge_state_v2": calling(our_sglang.merge_state_v2, PAIR),
                       "sglang: merge_state_v2": engine("sgl_kernel", "merge_state_v2", PAIR),
                       "mlafix: flashinfer.merge_state": calling(our_flashinfer.merge_state, PAIR),
                       "flashinfer: merge_state": engine("flashinfer", "merge_state", PAIR)},
        "in_place": {"mlafix: flashinfer.merge_state_in_place": calling(our_flashinfer.merge_state_in_place, in_place),
                     "flashinfer: merge_state_in_place": engine("flashinfer", "merge_state_in_place", in_place)},
        "n_way": {"mlafix: flashinfer.merge_states": calling(our_flashinfer.merge_states, "v s"),
                  "flashinfer: merge_states": engine("flashinfer", "merge_states", "v s")},
        "ragged": {"mlafix: flashinfer.variable_length_merge_states": calling(our_flashinfer.variable_length_merge_states, "v s indptr"),
                   "flashinfer, triton: variable_length_merge_states":
                       engine("flashinfer.triton.cascade", "variable_length_merge_states", "v s indptr")},
        "fixup_rows_first": {"mlafix: sglang.fixup_zero_kv_rows": calling(our_sglang.fixup_zero_kv_rows, rows, 1),
                             "sglang: fixup_zero_kv_rows": engine(f"{SGLANG_OPS}.fixup_zero_kv", "fixup_zero_kv_rows", rows, 1)},
        "mask": {"mlafix: vllm.mask_empty_context_lse": calling(our_vllm.mask_empty_context_lse, mask),
                 "vllm, triton: mask_empty_context_lse": engine(VLLM_TRITON, "mask_empty_context_lse", mask)},
        "combine": {"mlafix: flash_attn.flash_attn_combine": calling(our_flash_attn.flash_attn_combine, partials),
                    **{f"{name}: flash_attn_combine": engine(module, "flash_attn_combine", partials) for name, module in FLASH_ATTN.items()}},
    }.get(group, {})
