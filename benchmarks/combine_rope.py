#!/usr/bin/env python3
"""Times a combine of split KV with sinks, inverse rotary embedding and fp8, in one launch and in four launches.

    python benchmarks/combine_rope.py [--device cpu|cuda] [--rounds N] [--quick] [--json FILE]

    one     combine_split_kv with sinks and rope
    four    combine_split_kv into bf16, apply_sink, apply_rope and quantize_groups
    copy    torch's copy of as many bytes as `one` reads and writes

Splits are bf16, with 64 heads of 512 elements. The rotary embedding turns the last 64 elements of a head, in pairs.
Groups of 128 have scales that are powers of two. Times are microseconds, medians of rounds. In every round all calls
are timed in turn, in CUDA graphs on a GPU, on sets of random buffers that exceed every cache.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

import torch

from mlafix import ops

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "python"))
from measure import Call, medians, read_options, write_results  # noqa: E402

HEADS, DIM, PAIRED, GROUP, POSITIONS = 64, 512, 64, 128, 4096


def moved_bytes(splits: int, tokens: int) -> int:
    """Returns the number of bytes that one launch reads and writes."""
    return tokens * HEADS * (splits * (2 * DIM + 4) + DIM + 4 + DIM // GROUP)


class Buffers:
    """A set of buffers that the launches read and write."""

    def __init__(self, device: torch.device, splits: int, tokens: int, random: torch.Generator) -> None:
        self.partial = torch.randn(splits, tokens, HEADS, DIM, generator=random, device=device).bfloat16()
        self.partial_lse = torch.randn(splits, tokens, HEADS, generator=random, device=device)
        self.sinks = torch.randn(HEADS, generator=random, device=device)
        self.positions = torch.randint(POSITIONS, (tokens,), generator=random, device=device)
        angles = torch.arange(POSITIONS, device=device)[:, None] * 10000.0 ** (-torch.arange(0, PAIRED, 2, device=device) / PAIRED)
        self.table = torch.cat((angles.cos(), angles.sin()), 1)
        self.back = torch.cat((angles.cos(), -angles.sin()), 1)  # rotates back, since apply_rope has no option `inverse`
        self.rows, self.lse = self.partial.new_empty(tokens, HEADS, DIM), self.partial_lse.new_empty(tokens, HEADS)
        self.q = torch.empty_like(self.rows, dtype=torch.float8_e4m3fn)
        self.scales = torch.empty(tokens, HEADS, DIM // GROUP, dtype=torch.float8_e8m0fnu, device=device)
        self.rope = ops.Rope(self.positions[:, None], self.table, interleaved=True, inverse=True)
        self.copied = torch.empty(2, moved_bytes(splits, tokens) // 2, dtype=torch.uint8, device=device)

    def make(self) -> dict[str, Call]:
        to = ops.Fp8Groups(self.scales, power_of_two=True)
        one = functools.partial(ops.combine_split_kv, self.partial[:, :, None], self.partial_lse[:, :, None], sinks=self.sinks, rope=self.rope,
                                out=self.q[:, None], out_lse=self.lse[:, None], out_format=ops.Fp8Groups(self.scales[:, None], power_of_two=True))
        parts = (functools.partial(ops.combine_split_kv, self.partial[:, :, None], self.partial_lse[:, :, None], out=self.rows[:, None],
                                   out_lse=self.lse[:, None]),
                 functools.partial(ops.apply_sink, self.rows, self.lse, self.sinks, out=self.rows, return_lse=False),
                 functools.partial(ops.apply_rope, self.rows[..., -PAIRED:], self.positions, self.back, interleaved=True),
                 functools.partial(ops.quantize_groups, self.rows, to, out=self.q))
        return {"one": one, "four": lambda: [part() for part in parts], "copy": lambda: self.copied[0].copy_(self.copied[1])}

    def values(self) -> torch.Tensor:
        return (self.q.float().unflatten(2, (-1, GROUP)) * self.scales.float()[..., None]).flatten(2)


def check(device: torch.device) -> None:
    """Checks that one launch has the results of four launches, except for the roundings to bf16 between the four."""
    buffers = Buffers(device, 3, 8, torch.Generator(device).manual_seed(1))
    seen = []
    for name in ("one", "four"):
        buffers.make()[name]()
        seen.append((buffers.values(), buffers.lse.clone()))
    if not torch.allclose(seen[0][0], seen[1][0], rtol=0.13, atol=0.03) or not torch.allclose(seen[0][1], seen[1][1], rtol=1e-5, atol=1e-5):
        raise SystemExit("expected one launch to give what four give, got something else")


def main() -> None:
    options, settings = read_options(__doc__ or "")
    device = settings.device
    check(device)
    cases: list[dict[str, Any]] = []
    for splits in (1, 4):
        for tokens in (4,) if options.quick else (16, 64, 256, 1024, 4096):
            random = torch.Generator(device).manual_seed(tokens)
            sets = settings.count_sets(moved_bytes(splits, tokens))
            made = [Buffers(device, splits, tokens, random).make() for _ in range(sets)]
            us = medians(settings, made, "one")
            cases.append({"splits": splits, "tokens": tokens, "us": us})
            print(f"{splits} splits of {tokens:>4} tokens: " + "  ".join(f"{name} {us[name]:.2f} us" for name in us)
                  + f"  four/one {us['four'] / us['one']:.2f}, copy/one {us['copy'] / us['one']:.2f}", flush=True)
    write_results(options, settings, cases=cases)


if __name__ == "__main__":
    main()
