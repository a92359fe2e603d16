"""Prepares mlafix's functions for the benchmarks, and measures the host time of their calls."""

from __future__ import annotations

import sys
import timeit
from pathlib import Path
from typing import Callable

import engine_baselines
import torch
from measure import Call, Settings, first_line, summarize
from cases import in_place_case, mask_case, rows_first_case
from work import Case, Prepare, Tensors, combine_case, dense_case, fixup_case, merge_case, ragged_case

from mlafix import _compiler, library, ops

sys.path.insert(0, str(Path(__file__).parents[1]))
import python_host_time  # noqa: E402


def prepare_merge(t: Tensors) -> Callable[[], object]:
    """Prepares ops.merge_attn_states on a set of buffers."""
    return lambda: ops.merge_attn_states(t["prefix"], t["prefix_lse"], t["suffix"], t["suffix_lse"], out=t["out"],
                                         out_lse=t["out_lse"])


def prepare_dense(t: Tensors) -> Callable[[], object]:
    """Prepares ops.merge_states on a set of buffers."""
    return lambda: ops.merge_states(t["v"], t["s"], out=t["out"], out_lse=t["out_lse"])


def prepare_fixup(t: Tensors) -> Callable[[], object]:
    """Prepares ops.fixup_zero_kv_rows on a set of buffers."""
    return lambda: ops.fixup_zero_kv_rows(t["out"], t["lse"], t["kv_lens"], t["cu_seqlens"])


def prepare_combine(t: Tensors) -> Callable[[], object]:
    """Prepares ops.combine_split_kv on a set of buffers."""
    return lambda: ops.combine_split_kv(t["partial"], t["partial_lse"], out=t["out"], out_lse=t["out_lse"])


def prepare_ragged(t: Tensors) -> Callable[[], object]:
    """Prepares ops.merge_states_ragged on a set of buffers."""
    return lambda: ops.merge_states_ragged(t["v"], t["s"], t["indptr"], out=t["out"], out_lse=t["out_lse"])


def prepare_rows_first(t: Tensors) -> Callable[[], object]:
    """Prepares ops.merge_attn_states with lses [n, H]."""
    return lambda: ops.merge_attn_states(t["prefix"], t["prefix_lse"], t["suffix"], t["suffix_lse"], out=t["out"], out_lse=t["out_lse"],
                                         lse_layout="nh")


def prepare_threshold(t: Tensors) -> Callable[[], object]:
    """Prepares ops.merge_attn_states on states in which the second half of the rows has no context."""
    context = t["out"].shape[0] // 2
    return lambda: ops.merge_attn_states(t["prefix"], t["prefix_lse"], t["suffix"], t["suffix_lse"], out=t["out"], out_lse=t["out_lse"],
                                         context_rows=context)


def prepare_fp8(t: Tensors) -> Callable[[], object]:
    """Prepares ops.merge_attn_states into fp8, without an lse."""
    out_format = ops.Fp8(t["scale"])
    return lambda: ops.merge_attn_states(t["prefix"], t["prefix_lse"], t["suffix"], t["suffix_lse"], out=t["out"], return_lse=False,
                                         out_format=out_format)


def prepare_in_place(t: Tensors) -> Callable[[], object]:
    """Prepares ops.merge_state_in_place in base 2. The call passes a mask only if the mask excludes rows."""
    mask = t["mask"] if not bool(t["mask"].all()) else None
    return lambda: ops.merge_state_in_place(t["v"], t["s"], t["v_other"], t["s_other"], mask, base="2")


def prepare_fixup_rows_first(t: Tensors) -> Callable[[], object]:
    """Prepares ops.fixup_zero_kv_rows with lses [n, H]."""
    return lambda: ops.fixup_zero_kv_rows(t["out"], t["lse"], t["kv_lens"], t["cu_seqlens"], lse_layout="nh")


def prepare_mask(t: Tensors) -> Callable[[], object]:
    """Prepares ops.mask_empty_context if the buffers include rows (`out`), else ops.mask_empty_context_lse."""
    starts = t["query_start_loc"], t["context_start_loc"]
    if "out" in t:
        return lambda: ops.mask_empty_context(t["out"], t["lse"], *starts)
    return lambda: ops.mask_empty_context_lse(t["lse"], *starts)


OURS: dict[str, Prepare] = {
    "merge": prepare_merge, "shapes": prepare_merge, "rows_first": prepare_rows_first, "threshold": prepare_threshold, "merge_fp8": prepare_fp8,
    "in_place": prepare_in_place, "n_way": prepare_dense, "states": prepare_dense, "combine": prepare_combine, "ragged": prepare_ragged,
    "fixup": prepare_fixup, "fixup_rows_first": prepare_fixup_rows_first, "mask": prepare_mask,
}


def compile_to_cubin(variant: str) -> None:
    """Compiles the text of a kernel to a cubin for sm_90. `variant` is the name of the variant to compile; "" compiles
    all."""
    _compiler.compile(library.source("merge_attn_states"), "merge_attn_states",
                      specializations=[{"H": "128", "D": "128", "T": "bf16"}], targets=["sm_90"], emit="cubin", variant=variant)


def host_cases() -> list[Case]:
    """Makes a small case for each group for which `public_calls_of` has calls. The host times of the engines' functions
    and of mlafix's drop-ins are measured on these cases."""
    return [merge_case(16, heads=16), rows_first_case(16, 16, 128), in_place_case(16, heads=16), dense_case(4, 16, heads=16),
            combine_case(*python_host_time.COMBINE), ragged_case(16, heads=16),
            fixup_case("16x1", [1] * 16, [sequence % 8 == 0 for sequence in range(16)], heads=16, rows_first=True), mask_case(4, 4, heads=16)]


def engine_calls(settings: Settings) -> dict[str, Call]:
    """Returns calls of the installed engines' public functions, and of mlafix's drop-ins on the same tensors."""
    calls: dict[str, Call] = {}
    for case in host_cases():
        t = case.make(torch.Generator(settings.device).manual_seed(0), settings.device)
        for name, prepare in engine_baselines.public_calls_of(case.name.split("/")[0]).items():
            try:
                calls[name] = prepare(dict(t))
                calls[name]()
            except Exception as error:  # baselines may fail in any way, but mlafix must not
                if name.startswith("mlafix: "):
                    raise
                calls.pop(name, None)
                print(f"host: {name}: skipped: {type(error).__name__}: {first_line(error)}")
    return calls


def host_times(settings: Settings, baselines: dict[str, Prepare]) -> list[dict[str, object]]:
    """Measures host times: of a merge of 16 x 16 x 128 by mlafix's functions and by baselines, of engines' calls beside
    mlafix's drop-ins, and of compiling a kernel to a cubin. On a CPU, where a call includes the work, only compiling is
    measured."""
    calls: dict[str, Call | timeit.Timer] = {}
    if settings.is_cuda:
        t = merge_case(16, heads=16).make(torch.Generator(settings.device), settings.device)
        calls = {**python_host_time.calls(torch, "cuda"), **{name: prepare(t) for name, prepare in baselines.items()},
                 **engine_calls(settings)}
    with torch.inference_mode():  # engines run in inference mode
        times = python_host_time.run_rounds(calls, 10 * settings.rounds, 100, settings.synchronize)
    compilations: dict[str, Call] = {"compile to cubin, one variant": lambda: compile_to_cubin("dense"),
                                     "compile to cubin": lambda: compile_to_cubin("")}
    try:
        times.update(python_host_time.run_rounds(compilations, settings.rounds, 1, settings.synchronize))
    except RuntimeError as error:
        print(f"compile to cubin: skipped: {error}")
    return [{"name": name, "us": summarize(each)} for name, each in times.items()]
