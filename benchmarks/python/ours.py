"""mlafix's side: its functions, and what calls of them cost the host."""

from __future__ import annotations

import sys
import timeit
from pathlib import Path
from typing import Callable

import engine_baselines
import torch
from measure import Call, Settings, summarize
from work import Prepare, Tensors, Unavailable, combine_case, merge_case

from mlafix import _compiler, library, ops

sys.path.insert(0, str(Path(__file__).parents[1]))
import python_host_time  # noqa: E402


def prepare_merge(t: Tensors) -> Callable[[], object]:
    """ops.merge_attn_states on a set."""
    return lambda: ops.merge_attn_states(t["prefix"], t["prefix_lse"], t["suffix"], t["suffix_lse"], out=t["out"],
                                         out_lse=t["out_lse"])


def prepare_dense(t: Tensors) -> Callable[[], object]:
    """ops.merge_states on a set."""
    return lambda: ops.merge_states(t["v"], t["s"], out=t["out"], out_lse=t["out_lse"])


def prepare_fixup(t: Tensors) -> Callable[[], object]:
    """ops.fixup_zero_kv_rows on a set."""
    return lambda: ops.fixup_zero_kv_rows(t["out"], t["lse"], t["kv_lens"], t["cu_seqlens"])


def prepare_combine(t: Tensors) -> Callable[[], object]:
    """ops.combine_split_kv on a set."""
    return lambda: ops.combine_split_kv(t["partial"], t["partial_lse"], out=t["out"], out_lse=t["out_lse"])


def prepare_ragged(t: Tensors) -> Callable[[], object]:
    """ops.merge_states_ragged on a set."""
    return lambda: ops.merge_states_ragged(t["v"], t["s"], t["indptr"], out=t["out"], out_lse=t["out_lse"])


OURS: dict[str, Prepare] = {"merge": prepare_merge, "n_way": prepare_dense, "combine": prepare_combine, "ragged": prepare_ragged,
                            "fixup": prepare_fixup}


def compile_to_cubin(variant: str) -> None:
    """Kernel text to a cubin for sm_90, with one variant or, if that is "", with all."""
    _compiler.compile(library.source("merge_attn_states"), "merge_attn_states",
                      specializations=[{"H": "128", "D": "128", "T": "bf16"}], targets=["sm_90"], emit="cubin", variant=variant)


def combine_baselines(settings: Settings) -> dict[str, Call]:
    """FlashAttention's combine where it is installed, on what `python_host_time` combines; it allocates its results, too."""
    t = combine_case(*python_host_time.COMBINE).make(torch.Generator(settings.device), settings.device)
    calls: dict[str, Call] = {}
    for name, prepare in engine_baselines.flash_attn_allocating().items():
        try:
            calls[name] = prepare(t)
        except Unavailable as error:
            print(f"host: {name}: skipped: {error}")
    return calls


def host_times(settings: Settings, baselines: dict[str, Prepare]) -> list[dict[str, object]]:
    """Calls of a merge of 16 x 16 x 128, ours and by baselines; on a CPU a call is the work itself, so there are none."""
    calls: dict[str, Call | timeit.Timer] = {}
    if settings.is_cuda:
        t = merge_case(16, heads=16).make(torch.Generator(settings.device), settings.device)
        calls = {**python_host_time.calls(torch, "cuda"), **{name: prepare(t) for name, prepare in baselines.items()},
                 **combine_baselines(settings)}
    with torch.inference_mode():  # As engines call.
        times = python_host_time.run_rounds(calls, 10 * settings.rounds, 100, settings.synchronize)
    compilations: dict[str, Call] = {"compile to cubin, one variant": lambda: compile_to_cubin("dense"),
                                     "compile to cubin": lambda: compile_to_cubin("")}
    try:
        times.update(python_host_time.run_rounds(compilations, settings.rounds, 1, settings.synchronize))
    except RuntimeError as error:
        print(f"compile to cubin: skipped: {error}")
    return [{"name": name, "us": summarize(each)} for name, each in times.items()]
