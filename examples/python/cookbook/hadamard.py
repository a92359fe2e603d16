"""Applies a Hadamard transform to heads of 128 elements in place. The transform spreads outliers over a row before
the row is quantised.

In step k, `swap` brings to each element the one whose index differs in bit k. All seven steps stay in registers, so the
launch only reads and writes the row once.
"""

from mlafix.dsl import DType, InOut, f32, grid, iota, kernel, swap, where

T = DType("T")
SCALE = 128**-0.5


@kernel
def hadamard_128(x: InOut[T, "n H D=128"]) -> None:
    """Computes x @ H / sqrt(128), where H has elements 1 and -1 in Sylvester's order. The transform is its own inverse,
    up to rounding."""
    for t, h in grid("n", "H"):
        row, i = f32(x[t, h]), iota("D")
        for block in (1, 2, 4, 8, 16, 32, 64):
            row = swap(row, block) + where((i & block) == 0, row, -row)
        x[t, h] = row * SCALE
