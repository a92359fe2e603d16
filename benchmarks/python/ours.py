"""Prepares mlafix's functions for the benchmarks, and measures the host time of their calls."""

from __future__ import annotations

import timeit
from typing import Callable, Mapping

import engine_baselines
import torch
from measure import Call, Settings, first_line, summarize
from cases import in_place_case, mask_case
from work import Case, Prepare, Tensors, combine_case, dense_case, fixup_case, merge_case, ragged_case

from mlafix import _compiler, library, ops
from mlafix.compat import flash_attn, vllm

COMBINE = (8, 4, 16, 128)
"""The numbers of splits, tokens, heads and elements of a head in the combine whose host time is measured."""
WARM_UP = 2
GC = "import gc; gc.enable()"  # timeit disables garbage collection unless its setup enables it


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
    return [merge_case(16, heads=16), merge_case(16, 16, group="rows_first"), in_place_case(16, heads=16), dense_case(4, 16, heads=16),
            combine_case(*COMBINE), ragged_case(16, heads=16),
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


def merge_calls(device: torch.device) -> dict[str, timeit.Timer]:
    """Returns the ways to call a merge of 16 x 16 x 128, and a combine, by name. Each is written as its caller would
    write it, without a wrapper that adds to the time."""
    generator = torch.Generator(device).manual_seed(0)
    t = merge_case(16, heads=16).make(generator, device)
    combine = combine_case(*COMBINE).make(generator, device)
    names = dict(t, torch=torch, ops=ops, vllm=vllm, flash_attn=flash_attn, device=device, partial=combine["partial"],
                 partial_lse=combine["partial_lse"], bound=ops.merge_attn_states.bind(**t),
                 operator=torch.ops.mlafix.merge_attn_states.out_out_lse,
                 stream=torch.cuda.current_stream().cuda_stream if device.type == "cuda" else None)
    inputs = "prefix, prefix_lse, suffix, suffix_lse"
    statements = {
        "bound(stream)": "bound(stream)",
        "bound()": "bound()",
        "ops.merge_attn_states, outputs given": f"ops.merge_attn_states({inputs}, out=out, out_lse=out_lse)",
        "ops.merge_attn_states, outputs allocated": f"ops.merge_attn_states({inputs})",
        "compat.vllm.merge_attn_states": f"vllm.merge_attn_states(out, {inputs}, out_lse, 16)",
        "compat.flash_attn.flash_attn_combine": "flash_attn.flash_attn_combine(partial, partial_lse)",
        # This is the time of allocating the outputs with torch alone.
        "torch.empty, two outputs": "torch.empty(prefix.shape, dtype=prefix.dtype, device=device); "
                                    "torch.empty((16, 16), dtype=torch.float32, device=device)",
        "torch.ops.mlafix.merge_attn_states": f"operator({inputs}, out, out_lse, True, None, 'hn', 'e', False, "
                                             "None, None, None, False, '', None, 0, False, '', None, None, False, False, None, None)",
    }
    return {name: timeit.Timer(statement, GC, globals=names) for name, statement in statements.items()}


def run_rounds(implementations: Mapping[str, timeit.Timer | Call], rounds: int, batch: int,
               wait: Callable[[], None]) -> dict[str, list[float]]:
    """Returns the microseconds per call of each implementation: a list with one number for each round of `batch` calls.

    Each round times all implementations, starting with a different one, since the clock rate of the host varies by more
    than the implementations differ. Waiting for the device is not timed.
    """
    times: dict[str, list[float]] = {name: [] for name in implementations}
    order = [(name, call if isinstance(call, timeit.Timer) else timeit.Timer(call, GC)) for name, call in implementations.items()]
    for turn in range(-WARM_UP, rounds):
        first = turn % max(len(order), 1)
        for name, timer in order[first:] + order[:first]:
            timer.timeit(1)
            wait()
            spent = timer.timeit(batch)
            wait()
            if turn >= 0:
                times[name].append(spent / batch * 1e6)
    return times


def host_times(settings: Settings, baselines: dict[str, Prepare]) -> list[dict[str, object]]:
    """Measures host times: of a merge of 16 x 16 x 128 by mlafix's functions and by baselines, of engines' calls beside
    mlafix's drop-ins, and of compiling a kernel to a cubin. On a CPU, where a call includes the work, only compiling is
    measured."""
    calls: dict[str, Call | timeit.Timer] = {}
    if settings.is_cuda:
        t = merge_case(16, heads=16).make(torch.Generator(settings.device), settings.device)
        calls = {**merge_calls(settings.device), **{name: prepare(t) for name, prepare in baselines.items()}, **engine_calls(settings)}
    with torch.inference_mode():  # engines run in inference mode
        times = run_rounds(calls, 10 * settings.rounds, 100, settings.synchronize)
    compilations: dict[str, Call] = {"compile to cubin, one variant": lambda: compile_to_cubin("dense"),
                                     "compile to cubin": lambda: compile_to_cubin("")}
    try:
        times.update(run_rounds(compilations, settings.rounds, 1, settings.synchronize))
    except RuntimeError as error:
        print(f"compile to cubin: skipped: {error}")
    return [{"name": name, "us": summarize(each)} for name, each in times.items()]
