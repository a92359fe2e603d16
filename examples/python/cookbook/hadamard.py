"""A Hadamard transform of heads of 128 elements, in place: it spreads outliers over a row before the row is quantised.

In step k each element meets the one whose index differs in bit k: `swap` brings it. All seven steps stay in registers,
so the launch costs the bytes of the row, once read and once written.
"""

from mlafix.dsl import DType, InOut, f32, grid, iota, kernel, swap, where

T = DType("T")
SCALE = 128**-0.5


@kernel
def hadamard_128(x: InOut[T, "n H D=128"]) -> None:
    """x @ H / sqrt(128), with H of 1 and -1 in Sylvester's order. It is its own inverse, up to rounding."""
    for t, h in grid("n", "H"):
        row, i = f32(x[t, h]), iota("D")
        for block in (1, 2, 4, 8, 16, 32, 64):
            row = swap(row, block) + where((i & block) == 0, row, -row)
        x[t, h] = row * SCALE
