"""Prepares mlafix's functions for the benchmarks, and measures the host time of their calls."""

from __future__ import annotations

import timeit
from typing import Callable, Mapping

import engine_baselines
import torch
from measure import Call, Settings, first_line, summarize
from cases import in_place_case, mask_case
from work import PAIR, Case, Prepare, Tensors, calling, combine_case, dense_case, fixup_case, merge_case, ragged_case

from mlafix import _compiler, library, ops
from mlafix.compat import flash_attn, vllm

COMBINE = (8, 4, 16, 128)
"""The numbers of splits, tokens, heads and elements of a head in the combine whose host time is measured."""
WARM_UP = 2
GC = "import gc; gc.enable()"  # timeit disables garbage collection unless its setup enables it


def prepare_threshold(t: Tensors) -> Callable[[], object]:
    """Prepares ops.merge_attn_states on states in which the second half of the rows has no context."""
    return calling(ops.merge_attn_states, PAIR, outs=OUTS, context_rows=t["out"].shape[0] // 2)(t)


def prepare_fp8(t: Tensors) -> Callable[[], object]:
    """Prepares ops.merge_attn_states into fp8, without an lse."""
    return calling(ops.merge_attn_states, PAIR, outs="out", return_lse=False, out_format=ops.Fp8(t["scale"]))(t)


def prepare_in_place(t: Tensors) -> Callable[[], object]:
    """Prepares ops.merge_state_in_place in base 2. The call passes a mask only if the mask excludes rows."""
    mask = t["mask"] if not bool(t["mask"].all()) else None
    return calling(ops.merge_state_in_place, "v s v_other s_other", mask, base="2")(t)


def prepare_mask(t: Tensors) -> Callable[[], object]:
    """Prepares ops.mask_empty_context if the buffers include rows (`out`), else ops.mask_empty_context_lse."""
    if "out" in t:
        return calling(ops.mask_empty_context, "out lse query_start_loc context_start_loc")(t)
    return calling(ops.mask_empty_context_lse, "lse query_start_loc context_start_loc")(t)


OUTS = "out out_lse"
MERGE = calling(ops.merge_attn_states, PAIR, outs=OUTS)
MERGE_STATES = calling(ops.merge_states, "v s", outs=OUTS)
FIXED = "out lse kv_lens cu_seqlens"
OURS: dict[str, Prepare] = {
    "merge": MERGE, "shapes": MERGE, "rows_first": calling(ops.merge_attn_states, PAIR, outs=OUTS, lse_layout="nh"),
    "threshold": prepare_threshold, "merge_fp8": prepare_fp8, "in_place": prepare_in_place, "n_way": MERGE_STATES, "states": MERGE_STATES,
    "combine": calling(ops.combine_split_kv, "partial partial_lse", outs=OUTS),
    "ragged": calling(ops.merge_states_ragged, "v s indptr", outs=OUTS), "fixup": calling(ops.fixup_zero_kv_rows, FIXED),
    "fixup_rows_first": calling(ops.fixup_zero_kv_rows, FIXED, lse_layout="nh"), "mask": prepare_mask,
}
"""How mlafix's function is prepared on a set of buffers, by group."""


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
