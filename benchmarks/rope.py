#!/usr/bin/env python3
"""Times rotary embedding in place, of halves and of interleaved pairs, and a copy of as many bytes.

    python benchmarks/rope.py [--device cpu|cuda] [--rounds N] [--quick] [--json FILE]

    halves    apply_rope of the cookbook, in bf16 with a table of bf16
    pairs     apply_rope_pairs of the cookbook, with the same dtypes
    copy      torch's copy of x to another tensor
    rows      the same copy by a kernel

The faster copy is the roof. Rates assume that x is read and written once. Times are microseconds, medians of rounds. In
every round all calls are timed in turn, in CUDA graphs on a GPU, on sets of random buffers that exceed every cache.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

import mlafix
from mlafix.dsl import DType, In, Out, grid

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "python"), str(HERE.parent / "examples" / "python" / "cookbook")]
from measure import Call, Settings, measure, read_options, write_results  # noqa: E402
from rope import apply_rope, apply_rope_pairs, rope_table  # noqa: E402

T = DType("T")
HEADS, POSITIONS = 128, 4096


@mlafix.kernel
def copy_rows(y: Out[T, "n H D"], x: In[T, "n H D"]):
    for t, h in grid("n", "H"):
        y[t, h] = x[t, h]


def make_table(device: torch.device, dim: int) -> torch.Tensor:
    table = torch.empty(POSITIONS, 2, dim // 2, device=device)
    rope_table(table, 10000.0)
    return table.bfloat16()


def make_calls(settings: Settings, tokens: int, dim: int) -> dict[str, list[Call]]:
    """Returns the launches of each implementation, one for each set of buffers."""
    device = settings.device
    random = torch.Generator(device).manual_seed(tokens)
    table = make_table(device, dim)
    calls: dict[str, list[Call]] = {"halves": [], "pairs": [], "copy": [], "rows": []}
    for _ in range(settings.count_sets(tokens * HEADS * dim * 2)):
        x = torch.randn(tokens, HEADS, dim, generator=random, device=device).bfloat16()
        positions = torch.randint(POSITIONS, (tokens,), generator=random, device=device)
        y = torch.empty_like(x)
        calls["halves"].append(apply_rope.bind(x, positions, table))
        calls["pairs"].append(apply_rope_pairs.bind(x, positions, table))
        calls["copy"].append(lambda y=y, x=x: y.copy_(x))
        calls["rows"].append(copy_rows.bind(y, x))
    return calls


def check(device: torch.device, dim: int) -> None:
    """Checks that both kernels rotate their rows, and that pairs have the results of halves with reordered elements."""
    table, positions = make_table(device, dim), torch.arange(8, device=device) * 7
    halves = torch.randn(8, HEADS, dim, device=device).bfloat16()
    pairs = halves.view(8, HEADS, 2, -1).transpose(2, 3).reshape(halves.shape).contiguous()
    a, b = halves.double().chunk(2, dim=2)
    c, s = table[positions].double().unsqueeze(2).unbind(1)
    want = torch.cat((a * c - b * s, b * c + a * s), dim=2)
    apply_rope(halves, positions, table)
    apply_rope_pairs(pairs, positions, table)
    same = torch.equal(halves, pairs.view(8, HEADS, -1, 2).transpose(2, 3).reshape(halves.shape))
    if not same or not torch.allclose(halves.double(), want, rtol=2.0**-8, atol=1e-5):
        raise SystemExit("expected each pair of elements to be turned by its angle, got something else")


def main() -> None:
    options, settings = read_options(__doc__ or "")
    device = settings.device
    cases: list[dict[str, Any]] = []
    for dim in (64, 128):
        check(device, dim)
        for tokens in (4,) if options.quick else (16, 256, 1024, 4096):
            calls = make_calls(settings, tokens, dim)
            times = measure(settings, calls, "halves")
            us = {name: times[name]["median"] for name in calls}
            roof = min(us["copy"], us["rows"])
            moved = 2 * tokens * HEADS * dim * 2
            cases.append({"tokens": tokens, "dim": dim, "us": us, "gbps": {name: moved / us[name] / 1e3 for name in us}})
            print(f"{tokens:>5} tokens of {HEADS} x {dim}: " + "  ".join(f"{name} {us[name]:8.2f} us" for name in us)
                  + f"  of the roof: halves {roof / us['halves']:.3f}  pairs {roof / us['pairs']:.3f}", flush=True)
    write_results(options, settings, cases=cases)


if __name__ == "__main__":
    main()
