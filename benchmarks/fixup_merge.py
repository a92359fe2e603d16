#!/usr/bin/env python3
"""Times ops.fixup_merge, the two launches that it replaces, and a copy of the same number of bytes.

    python benchmarks/fixup_merge.py [--device cpu|cuda] [--rounds N] [--quick] [--json FILE]

    one      fixup_merge
    two      fixup_zero_kv_rows on the prefix, then merge_attn_states
    merge    merge_attn_states alone
    copy     torch's copy of as many bytes as `one` reads and writes

Rows are bf16, with 16 heads of 128 elements, in 8 sequences; 0 or 2 of these have no keys. Times are microseconds,
medians of rounds. In every round all calls are timed in turn, in CUDA graphs on a GPU, on sets of random buffers that
exceed every cache.
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

HEADS, DIM, SEQUENCES = 16, 128, 8


def moved_bytes(tokens: int, empty: int) -> int:
    """Returns the number of bytes that `one` reads and writes. `one` does not read prefixes of sequences without
    keys."""
    row = HEADS * (2 * DIM + 4)
    return 3 * tokens * row - tokens * empty // SEQUENCES * row


class Buffers:
    """A set of buffers that the launches read and write."""

    def __init__(self, device: torch.device, tokens: int, empty: int, random: torch.Generator) -> None:
        def rows() -> torch.Tensor:
            return torch.randn(tokens, HEADS, DIM, generator=random, device=device).bfloat16()

        def numbers() -> torch.Tensor:
            return torch.randn(tokens, HEADS, generator=random, device=device)

        self.prefix, self.prefix_lse, self.suffix, self.suffix_lse = rows(), numbers(), rows(), numbers()
        self.out, self.out_lse = torch.empty_like(self.prefix), torch.empty_like(self.prefix_lse)
        self.starts = torch.arange(SEQUENCES + 1, device=device, dtype=torch.int32) * (tokens // SEQUENCES)
        self.lens = torch.full((SEQUENCES,), 1000, device=device, dtype=torch.int32)
        self.lens[1 : 1 + empty] = 0
        self.copied = torch.empty(2, moved_bytes(tokens, empty) // 2, dtype=torch.uint8, device=device)

    def make(self) -> dict[str, Call]:
        states = self.prefix, self.prefix_lse, self.suffix, self.suffix_lse
        one = functools.partial(ops.fixup_merge, *states, self.lens, self.starts, out=self.out, out_lse=self.out_lse)
        fixup = functools.partial(ops.fixup_zero_kv_rows, self.prefix, self.prefix_lse, self.lens, self.starts, lse_layout="nh")
        merge = functools.partial(ops.merge_attn_states, *states, out=self.out, out_lse=self.out_lse, lse_layout="nh")
        return {"one": one, "two": lambda: (fixup(), merge()), "merge": merge, "copy": lambda: self.copied[0].copy_(self.copied[1])}


def check(device: torch.device) -> None:
    """Checks that one launch has the results of two launches."""
    buffers = Buffers(device, 64, 2, torch.Generator(device).manual_seed(1))
    seen = []
    for name in ("one", "two"):
        buffers.make()[name]()
        seen.append((buffers.out.clone(), buffers.out_lse.clone()))
    if not all(torch.equal(a, b) for a, b in zip(*seen)):
        raise SystemExit("expected one launch to give what two give, got something else")


def main() -> None:
    options, settings = read_options(__doc__ or "")
    device = settings.device
    check(device)
    cases: list[dict[str, Any]] = []
    for empty in (0, 2):
        for tokens in (16,) if options.quick else (16, 64, 256, 4096):
            random = torch.Generator(device).manual_seed(tokens)
            sets = settings.count_sets(moved_bytes(tokens, empty))
            made = [Buffers(device, tokens, empty, random).make() for _ in range(sets)]
            us = medians(settings, made, "one")
            cases.append({"tokens": tokens, "empty": empty, "us": us})
            print(f"{empty} of {SEQUENCES} sequences without keys, {tokens:>4} tokens: " + "  ".join(f"{name} {us[name]:.2f} us" for name in us)
                  + f"  two/one {us['two'] / us['one']:.2f}, copy/one {us['copy'] / us['one']:.2f}", flush=True)
    write_results(options, settings, cases=cases)


if __name__ == "__main__":
    main()
