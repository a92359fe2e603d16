#!/usr/bin/env python3
"""Times checks of states and of merges, and a kernel that only reads the same rows.

    python benchmarks/checks.py [--device cpu|cuda] [--rounds N] [--quick] [--json FILE]

    read             a kernel that stores the largest magnitude of each bf16 row
    read of three    the same for three arrays at once
    check_states     takes the step number and the count of live rows from the device, as in the graphs of a watched
                     engine
    with keys        check_states with the number of keys of each token
    from the host    `with keys`, but takes the step number and the count of live rows from the host
    check_merge      takes the step number and the count of live rows from the device
    visible_keys     counts the keys that each token sees, in sequences of 64 tokens; an engine launches it once per
                     step for all layers

No row has a fault. Times are microseconds, medians of rounds. In every round all calls are timed in turn, in CUDA
graphs on a GPU, on sets of random buffers that exceed every cache.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import torch

from mlafix import ops
from mlafix.dsl import DType, In, Out, abs, f32, grid, kernel, max

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "python"))
from measure import Call, medians, read_options, write_results  # noqa: E402

T = DType("T")


@kernel
def read(largest: Out[f32, "n H"], rows: In[T, "n H D"]):
    for t, h in grid("n", "H"):
        largest[t, h] = max(abs(f32(rows[t, h])))


@kernel
def read_three(largest: Out[f32, "n H"], a: In[T, "n H D"], b: In[T, "n H D"], c: In[T, "n H D"]):
    for t, h in grid("n", "H"):
        largest[t, h] = max(max(abs(f32(a[t, h])), max(abs(f32(b[t, h])), abs(f32(c[t, h])))))


def buffers(device: torch.device, n: int, heads: int, dim: int, random: torch.Generator) -> dict[str, Call]:
    """Makes a set of buffers, and returns the calls on it by name."""
    sides = [torch.randn(n, heads, dim, generator=random, device=device).bfloat16() for _ in range(2)]
    lses = [torch.randn(heads, n, generator=random, device=device) for _ in range(2)]
    out, lse = ops.merge_attn_states(sides[0], lses[0], sides[1], lses[1], return_lse=True)
    largest, scalar = torch.empty(n, heads, device=device), functools.partial(torch.tensor, dtype=torch.int32, device=device)
    found = {"record": torch.zeros(n, heads, dtype=torch.int64, device=device), "flags": torch.zeros(16, dtype=torch.int32, device=device),
             "values": torch.zeros(n, heads, 4, device=device)}
    there, here = {**found, "live_rows": scalar([n]), "step": scalar([1])}, {**found, "live_rows": n, "step": 1}
    keys, starts = torch.ones(n, dtype=torch.int32, device=device), torch.arange(0, n + 64, 64, dtype=torch.int32, device=device).clamp(max=n)
    lens = torch.full((starts.shape[0] - 1,), 4096, dtype=torch.int32, device=device)
    return {
        "read": lambda: read(largest, out), "check_states": lambda: ops.check_states(out, lse, **there),
        "with keys": lambda: ops.check_states(out, lse, lens=keys, **there), "from the host": lambda: ops.check_states(out, lse, lens=keys, **here),
        "visible_keys": lambda: ops.visible_keys(keys, lens, starts), "read of three": lambda: read_three(largest, out, *sides),
        "check_merge": lambda: ops.check_merge(out, lse, sides, lses, **there)}  # fmt: skip


def main() -> None:
    options, settings = read_options(__doc__ or "")
    shapes = [(16, 32, 128), (64, 128, 128), (256, 128, 128), (1024, 128, 128), (8192, 32, 128), (8192, 128, 128), (1024, 128, 512)]
    cases = []
    for n, heads, dim in [(4, 2, 64)] if options.quick else shapes:
        random = torch.Generator(settings.device).manual_seed(n)
        count = settings.count_sets(n * heads * dim * 2)
        sets = [buffers(settings.device, n, heads, dim, random) for _ in range(count)]
        us = medians(settings, {name: [one[name] for one in sets] for name in sets[0]}, "check_states")
        cases.append({"tokens": n, "heads": heads, "dim": dim, "us": us})
        print(f"{n:>5} x {heads:>3} x {dim}: " + ", ".join(f"{name} {time:.2f}" for name, time in us.items()), flush=True)
    write_results(options, settings, cases=cases)


if __name__ == "__main__":
    main()
