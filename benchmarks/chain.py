#!/usr/bin/env python3
"""Times the work after a decode's attention (blanking of rows without keys, merge and quantisation), in one launch and
in separate launches.

    python benchmarks/chain.py [--device cpu|cuda] [--rounds N] [--quick] [--json FILE]

    static           fixup_merge into fp8 with one scale
    static, two      fixup_zero_kv_rows, then the merge that stores fp8
    static, three    fixup_zero_kv_rows, a merge into bf16, then quantize_fp8_static
    groups           fixup_merge into fp8 with a scale for each group
    groups, three    fixup_zero_kv_rows, a merge into bf16, then quantize_groups

Every sequence has one token, and every fourth sequence has no keys. All sets of buffers share the lengths and starts
of the sequences, as the layers of a model do. Times are microseconds, medians of rounds. In every round all calls are
timed in turn, in CUDA graphs on a GPU, on sets of random buffers that exceed every cache.
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

HEADS, DIM, GROUP = 128, 128, 128


class Buffers:
    """A set of buffers that the launches read and write."""

    def __init__(self, device: torch.device, tokens: int, random: torch.Generator, lens: torch.Tensor, starts: torch.Tensor) -> None:
        self.a, self.b = (torch.randn(tokens, HEADS, DIM, generator=random, device=device).bfloat16() for _ in range(2))
        self.a_lse, self.b_lse = (torch.randn(tokens, HEADS, generator=random, device=device) for _ in range(2))
        self.out, self.lse = torch.empty_like(self.a), torch.empty_like(self.a_lse)
        self.q = torch.empty_like(self.a, dtype=torch.float8_e4m3fn)
        self.scales, self.scale = torch.empty(tokens, HEADS, DIM // GROUP, device=device), torch.full((1,), 0.01, device=device)
        self.kv_lens, self.starts = lens, starts

    def make(self) -> dict[str, Call]:
        rows, groups = self.out.shape[0] * HEADS, DIM // GROUP
        inputs = (self.a, self.a_lse, self.b, self.b_lse)
        fixup = functools.partial(ops.fixup_zero_kv_rows, self.a, self.a_lse, self.kv_lens, self.starts, lse_layout="nh")
        merge = functools.partial(ops.merge_attn_states, *inputs, out=self.out, out_lse=self.lse, lse_layout="nh")
        merge_fp8 = functools.partial(ops.merge_attn_states, *inputs, out=self.q, out_lse=self.lse, out_format=ops.Fp8(self.scale), lse_layout="nh")
        whole = self.out.view(rows, DIM), self.q.view(rows, DIM)
        static = functools.partial(ops.quantize_fp8_static, whole[0], self.scale, out=whole[1])
        by_group = ops.quantize_groups.bind(whole[0], ops.Fp8Groups(self.scales.view(rows, groups)), out=whole[1])
        chain = functools.partial(ops.fixup_merge.bind, *inputs, self.kv_lens, self.starts, out=self.q, out_lse=self.lse)
        return {"static": chain(out_format=ops.Fp8(self.scale)),
                "static, two": lambda: (fixup(), merge_fp8()), "static, three": lambda: (fixup(), merge(), static()),
                "groups": chain(out_format=ops.Fp8Groups(self.scales)),
                "groups, three": lambda: (fixup(), merge(), by_group())}


def make_lengths(device: torch.device, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the lengths of the sequences, [tokens], and their starts, [tokens + 1], as int32."""
    starts = torch.arange(tokens + 1, device=device, dtype=torch.int32)
    return starts[:-1] % 4, starts


def check(device: torch.device) -> None:
    """Checks that one launch has the results of three launches, except for the rounding to bf16 between the three."""
    buffers = Buffers(device, 8, torch.Generator(device).manual_seed(1), *make_lengths(device, 8))
    for name in ("static", "groups"):
        seen = []
        for variant in (name, f"{name}, three"):
            buffers.make()[variant]()
            scale = buffers.scale if name == "static" else buffers.scales
            seen.append((buffers.q.float() * scale, buffers.lse.clone()))
        if not torch.allclose(seen[0][0], seen[1][0], rtol=0.13, atol=0.02) or not torch.equal(seen[0][1], seen[1][1]):
            raise SystemExit(f"expected one launch of {name} to give what three give, got something else")


def main() -> None:
    options, settings = read_options(__doc__ or "")
    device = settings.device
    check(device)
    cases: list[dict[str, Any]] = []
    for tokens in (4,) if options.quick else (16, 64, 256, 1024):
        random = torch.Generator(device).manual_seed(tokens)
        lengths = make_lengths(device, tokens)
        made = [Buffers(device, tokens, random, *lengths).make() for _ in range(settings.count_sets(4 * tokens * HEADS * DIM))]
        us = medians(settings, made, "static")
        cases.append({"tokens": tokens, "us": us})
        print(f"{tokens:>5} tokens of {HEADS} x {DIM}: " + "  ".join(f"{name} {us[name]:.2f} us" for name in us)
              + f"  three/one {us['static, three'] / us['static']:.2f}, {us['groups, three'] / us['groups']:.2f}", flush=True)
    write_results(options, settings, cases=cases)


if __name__ == "__main__":
    main()
