#!/usr/bin/env python3
"""Measures the cost of bounds guards in kernels that take indices from tables. Times each kernel with guards, and with
a promise that makes them unnecessary.

    python benchmarks/guards.py [--device cpu|cuda] [--rounds N] [--quick] [--json FILE]

In every round both kernels of a pair are timed in turn, on the same buffers, in CUDA graphs on a GPU. A table chooses
rows of 128 bf16 elements at random from 256 MiB. Successive launches use 8 tables in turn. In launches of up to 1024
rows, the rows that the 8 tables choose (at most 8 MiB together) stay in a GPU's second-level cache. In launches of 16384
rows, those of the copy and the scatter (32 MiB) also fit in the cache of an H200. Only those of the merge (128 MiB)
exceed it. Times are microseconds per launch, medians of rounds. The ratio is that of the medians.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import mlafix
from mlafix.dsl import DType, In, InOut, Out, assume, distinct, f32, grid, i32, identity, index, load_state, merge, shape, store_state

sys.path.insert(0, str(Path(__file__).resolve().parent / "python"))
from measure import medians, read_options, write_results  # noqa: E402

T = DType("T")
ROWS = 1 << 20
WIDTH = 128
SETS = 8


@mlafix.kernel
def gather_merge(out: Out[T, "n D"], parts: In[T, "m D"], lses: In[f32, "m"], table: In[i32, "n k"]):
    for t in grid("n"):
        state = identity("D")
        for j in range(shape("k")):
            i = table[t, j]
            state = merge(state, load_state(parts[i], lses[i]))
        store_state(state, out[t])


@mlafix.kernel(bounds="prove")
def gather_merge_trusted(out: Out[T, "n D"], parts: In[T, "m D"], lses: In[f32, "m"], table: In[i32, "n k"]):
    for t in grid("n"):
        state = identity("D")
        for j in range(shape("k")):
            i = table[t, j]
            assume(i >= 0 and index(i) < shape("m"))
            state = merge(state, load_state(parts[i], lses[i]))
        store_state(state, out[t])


@mlafix.kernel
def paged_copy(out: Out[T, "n D"], cache: In[T, "pages page=16 D"], table: In[i32, "n"]):
    for t in grid("n"):
        i = table[t]
        out[t] = cache[i // 16, i % 16]


@mlafix.kernel(bounds="prove")
def paged_copy_trusted(out: Out[T, "n D"], cache: In[T, "pages page=16 D"], table: In[i32, "n"]):
    for t in grid("n"):
        i = table[t]
        assume(i >= 0 and index(i // 16) < shape("pages"))
        out[t] = cache[i // 16, i % 16]


@mlafix.kernel
def scatter(cache: InOut[T, "m D"], x: In[T, "n D"], table: In[i32, "n"]):
    distinct(table)
    for t in grid("n"):
        cache[table[t]] = x[t]


@mlafix.kernel(bounds="prove")
def scatter_trusted(cache: InOut[T, "m D"], x: In[T, "n D"], table: In[i32, "n"]):
    distinct(table)
    for t in grid("n"):
        i = table[t]
        assume(i >= 0 and index(i) < shape("m"))
        cache[i] = x[t]


class Buffers:
    """Random data on a device.

    Args:
        device: the device of the data.
        stored: the number of rows from which a launch chooses.
        launched: the number of rows of a launch.
        width: the number of entries per row in the wide tables.
    """

    def __init__(self, device: torch.device, stored: int, launched: int, width: int) -> None:
        random = torch.Generator(device).manual_seed(0)
        self.parts = torch.randn(stored, WIDTH, generator=random, device=device).bfloat16()
        self.pages = self.parts.view(stored // 16, 16, WIDTH)
        self.lses = torch.randn(stored, generator=random, device=device)
        self.x = torch.randn(launched, WIDTH, generator=random, device=device).bfloat16()
        self.out = torch.zeros(launched, WIDTH, dtype=torch.bfloat16, device=device)
        chosen = [torch.randperm(stored, generator=random, device=device)[: launched * width].int() for _ in range(SETS)]
        self.wide = [table.view(launched, width) for table in chosen]
        self.single = [table[:launched].contiguous() for table in chosen]


def pairs(data: Buffers) -> dict[str, tuple[mlafix.Kernel, mlafix.Kernel, Callable[[int], tuple[Any, ...]]]]:
    """Returns the pairs of kernels by name: the guarded kernel, the kernel with a promise, and a function that returns
    their arguments with table number `i`."""
    count = data.wide[0].shape[1]
    return {
        f"merge of {count} states": (gather_merge, gather_merge_trusted, lambda i: (data.out, data.parts, data.lses, data.wide[i])),
        "paged copy": (paged_copy, paged_copy_trusted, lambda i: (data.out, data.pages, data.single[i])),
        "scatter": (scatter, scatter_trusted, lambda i: (data.parts, data.x, data.single[i])),
    }


def main() -> None:
    options, settings = read_options(__doc__ or "")
    device = settings.device
    rows: list[dict[str, Any]] = []
    for launched in (64,) if options.quick else (64, 1024, 16384):
        data = Buffers(device, 1 << 12 if options.quick else ROWS, launched, 4)
        for name, (guarded, trusting, arguments) in pairs(data).items():
            written = arguments(0)[0]
            before = written.clone()
            guarded(*arguments(0))
            first = written.clone()
            written.copy_(before)
            trusting(*arguments(0))
            if not torch.equal(first, written):
                raise SystemExit(f"{name}: expected the same rows with guards and without, got others")
            bound = {kind: [kernel.bind(*arguments(i)) for i in range(SETS)] for kind, kernel in (("guarded", guarded), ("trusting", trusting))}
            us = medians(settings, bound, "guarded")
            rows.append({"case": name, "rows": launched, **us, "ratio": us["guarded"] / us["trusting"]})
            print(f"{name:<20} {launched:>6} rows  guarded {us['guarded']:8.2f} us  trusting {us['trusting']:8.2f} us"
                  f"  ratio {rows[-1]['ratio']:.3f}", flush=True)
    write_results(options, settings, rows=rows)


if __name__ == "__main__":
    main()
