"""Rotates pairs of elements by the angles of their position, in place, and makes the table of angles.

`apply_rope` pairs element i of the first half of a head with element i of the second half: a head is a row along the
product (2 K). `apply_rope_pairs` pairs neighbours: a head is a row along (K 2). x is moved in accesses of 16 bytes if
the table has the same dtype as x. If x has 16 bits and the table is f32, `apply_rope` moves x in accesses of 8 bytes. A
launch reads and writes x once; each head reads a row of the table from the caches. `mlafix.ops.apply_rope` uses these
two kernels.
"""

from mlafix.kernels.tokens import apply_rope, apply_rope_pairs
from mlafix.dsl import DType, Out, cos, exp2, f32, grid, iota, kernel, log2, shape, sin

__all__ = ["apply_rope", "apply_rope_pairs", "rope_table"]

C = DType("C", default=f32)


@kernel
def rope_table(table: Out[C, "m two=2 K"], base: f32) -> None:
    """Writes the cosine and the sine of p * base^(-i / K), for positions p below m and i below K."""
    for p in grid("m"):
        frequency = exp2(f32(iota("K")) * (-log2(base) / f32(shape("K"))))
        angle = frequency * f32(p)
        table[p, 0] = cos(angle)
        table[p, 1] = sin(angle)
