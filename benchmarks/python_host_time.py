#!/usr/bin/env python3
"""Measures the host time of a call from Python: the time until the next line runs.

    python benchmarks/python_host_time.py [--device cpu|cuda] [--calls N] [--json FILE]

Times a merge of 16 x 16 x 128 bf16 torch tensors, called as an engine calls it. Prints the median in microseconds over rounds in which all
implementations take turns, and the 10th and the 90th percentile. Then times first calls in milliseconds: of a specialisation
that is not compiled yet, of one that is found on disk, and of a Python kernel that a new process finds on disk. On the CPU a call
includes the merge itself.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROUNDS = 21
WARM_UP = 2
N, HEADS, DIM = 16, 16, 128
COMBINE = (8, 4, 16, 128)
"""The numbers of splits, tokens, heads and elements of a head in the combine."""
GC = "import gc; gc.enable()"  # timeit disables garbage collection unless its setup enables it
NEW_DIMS = (72, 88, 104, 136, 152, 168, 184)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], help="default: cuda where there is a GPU")
    parser.add_argument("--calls", type=int, default=20000, help="calls of each kind (default %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the numbers there as well")
    options = parser.parse_args()
    if options.calls < ROUNDS:
        parser.error(f"argument --calls: expected at least {ROUNDS}, got {options.calls}")
    with tempfile.TemporaryDirectory() as cache:
        os.environ["MLAFIX_CACHE_DIR"] = cache  # so that nothing is compiled beforehand, and no files remain
        return run(options)


def run(options: argparse.Namespace) -> int:
    import torch

    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cuda" and not torch.cuda.is_available():
        print("argument --device: expected a GPU that torch can use for cuda, got none", file=sys.stderr)
        return 1
    wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    report: dict[str, Any] = {"device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
                              "shape": [N, HEADS, DIM], "calls": {}, "first_calls": {}}
    print(f"{report['device']}: merge of {N} x {HEADS} x {DIM} bf16")
    print(f"{'one call':44}{'median us':>10}{'p10':>8}{'p90':>8}")
    each = min(options.calls // ROUNDS, 500)  # A device's queue holds about a thousand launches, so no launch waits.
    with torch.inference_mode():  # Engines run in inference mode. With autograd enabled, a call reads requires_grad of each tensor.
        found = run_rounds(calls(torch, device), options.calls // each, each, wait)
    for name, times in found.items():
        tenths = statistics.quantiles(times, n=10)
        report["calls"][name] = numbers = {"median_us": statistics.median(times), "p10_us": tenths[0], "p90_us": tenths[-1]}
        print(f"{name:44}{numbers['median_us']:10.2f}{numbers['p10_us']:8.2f}{numbers['p90_us']:8.2f}")
    print(f"{'first call of a variant':44}{'median ms':>10}{'least':>8}{'most':>8}")
    for name, numbers in first_calls(torch, device, wait).items():
        report["first_calls"][name] = numbers
        print(f"{name:44}{numbers['median_ms']:10.2f}{numbers['least_ms']:8.2f}{numbers['most_ms']:8.2f}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)
            file.write("\n")
    return 0


def tensors(torch: Any, device: str, dim: int = DIM) -> dict[str, Any]:
    """Returns two states, and buffers for their merge."""
    rows = [torch.randn(N, HEADS, dim, device=device).bfloat16() for _ in range(3)]
    lses = [torch.randn(HEADS, N, device=device) for _ in range(3)]
    return dict(prefix=rows[0], prefix_lse=lses[0], suffix=rows[1], suffix_lse=lses[1], out=rows[2], out_lse=lses[2])


def calls(torch: Any, device: str) -> dict[str, timeit.Timer]:
    """Returns the ways to call a merge by name. Each is written as its caller would write it, without a wrapper that
    adds to the time."""
    from mlafix import ops
    from mlafix.compat import flash_attn, vllm

    t = tensors(torch, device)
    splits, batch, heads, dim = COMBINE
    names = dict(t, N=N, HEADS=HEADS, torch=torch, ops=ops, vllm=vllm, flash_attn=flash_attn, device=t["out"].device,
                 partial=torch.randn(splits, batch, 1, heads, dim, device=device),
                 partial_lse=torch.randn(splits, batch, heads, 1, device=device).transpose(2, 3), bound=ops.merge_attn_states.bind(**t),
                 operator=torch.ops.mlafix.merge_attn_states.out_out_lse,
                 stream=torch.cuda.current_stream().cuda_stream if device == "cuda" else None)
    inputs = "prefix, prefix_lse, suffix, suffix_lse"
    statements = {
        "bound(stream)": "bound(stream)",
        "bound()": "bound()",
        "ops.merge_attn_states, outputs given": f"ops.merge_attn_states({inputs}, out=out, out_lse=out_lse)",
        "ops.merge_attn_states, outputs allocated": f"ops.merge_attn_states({inputs})",
        "compat.vllm.merge_attn_states": f"vllm.merge_attn_states(out, {inputs}, out_lse, N)",
        "compat.flash_attn.flash_attn_combine": "flash_attn.flash_attn_combine(partial, partial_lse)",
        # This is the time of allocating the outputs with torch alone.
        "torch.empty, two outputs": "torch.empty(prefix.shape, dtype=prefix.dtype, device=device); "
                                    "torch.empty((HEADS, N), dtype=torch.float32, device=device)",
        "torch.ops.mlafix.merge_attn_states": f"operator({inputs}, out, out_lse, True, None, 'hn', 'e', False, "
                                             "None, None, None, False, '', None, 0, False, '', None, None, False, False, None, None)",
    }
    return {name: timeit.Timer(statement, GC, globals=names) for name, statement in statements.items()}


def run_rounds(implementations: Mapping[str, timeit.Timer | Callable[[], Any]], rounds: int, batch: int,
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


def first_calls(torch: Any, device: str, wait: Callable[[], None]) -> dict[str, dict[str, float]]:
    """Returns the milliseconds of three kinds of first calls: of a specialisation that is compiled, of one that is
    found on disk, and of a Python kernel that a new process finds on disk."""
    from mlafix import cache, library

    found: dict[str, dict[str, float]] = {}
    for name in ("compiled (the first is left out)", "found on disk"):
        times = []
        for dim in NEW_DIMS:
            t = tensors(torch, device, dim)
            arguments = t["out"], t["out_lse"], t["prefix"], t["prefix_lse"], t["suffix"], t["suffix_lse"], N
            cache.clear_memory()
            dispatch = library.viewed("merge_attn_states")._dispatch
            wait()
            start = time.perf_counter()
            dispatch(arguments)
            wait()
            times.append((time.perf_counter() - start) * 1e3)
        found[name] = spread(times[1:])  # leaves out the very first call, which also starts the compiler
    # The first run stores the kernel on disk; the others find it there.
    script = str(Path(__file__).parent / "python" / "first_call.py")
    runs = [subprocess.run([sys.executable, script], check=True, capture_output=True, text=True).stdout for _ in NEW_DIMS]
    found["kernel in Python, new process, on disk"] = spread([float(text) for text in runs[1:]])
    return found


def spread(times: list[float]) -> dict[str, float]:
    return {"median_ms": statistics.median(times), "least_ms": min(times), "most_ms": max(times)}


if __name__ == "__main__":
    sys.exit(main())
