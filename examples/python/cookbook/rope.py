"""Rotary position embedding in place, of halves and of interleaved pairs, and its table.

What turns is a pair of elements: of halves, element i of the first half of a head and element i of the second one; of
interleaved pairs, two neighbours. Either is a part of a row along a product, (2 K) or (K 2). x is moved in accesses of 16
bytes if the table has its dtype; with a table of f32, halves of a 16-bit x are moved in accesses of 8 bytes. What it costs
is the bytes of x, read and written once; a row of the table is read for every head, from the caches. `mlafix.ops.apply_rope` turns with the two kernels that are imported here.
"""

from mlafix.kernels.tokens import apply_rope, apply_rope_pairs
from mlafix.dsl import DType, Out, cos, exp2, f32, grid, iota, kernel, log2, shape, sin

__all__ = ["apply_rope", "apply_rope_pairs", "rope_table"]

C = DType("C", default=f32)


@kernel
def rope_table(table: Out[C, "m two=2 K"], base: f32) -> None:
    """The cosine and the sine of p * base^(-i / K), for positions p below m and i below K."""
    for p in grid("m"):
        frequency = exp2(f32(iota("K")) * (-log2(base) / f32(shape("K"))))
        angle = frequency * f32(p)
        table[p, 0] = cos(angle)
        table[p, 1] = sin(angle)
