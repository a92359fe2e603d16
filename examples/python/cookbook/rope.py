"""Rotates pairs of elements by the angles of their position, in place, and makes the table of angles.

With halves, a pair is element i of the first half of a head and element i of the second half. With interleaved pairs,
it is two neighbours. Both are parts of a row along a product, (2 K) or (K 2). x is moved in accesses of 16 bytes if the
table has its dtype. With a table of f32, halves of a 16-bit x are moved in accesses of 8 bytes. A launch reads and
writes x once; each head reads a row of the table from the caches. `mlafix.ops.apply_rope` uses the two kernels that are
imported here.
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
