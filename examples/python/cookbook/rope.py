"""Rotary position embedding of halves, in place, and its table.

A half of a head is a row of its own: `[n, H, 2, K]` views `[n, H, 2 * K]`. What it costs is the bytes of x, read and
written once; a row of the table is read for every head, from the caches.
"""

from mlafix.dsl import DType, In, InOut, Out, cos, exp2, f32, grid, i64, iota, kernel, log2, shape, sin

T = DType("T")


@kernel
def rope_table(table: Out[f32, "m two=2 K"], base: f32):
    """The cosine and the sine of p * base^(-i / K), for positions p below m and i below K."""
    for p in grid("m"):
        frequency = exp2(f32(iota("K")) * (-log2(base) / f32(shape("K"))))
        angle = frequency * f32(p)
        table[p, 0] = cos(angle)
        table[p, 1] = sin(angle)


@kernel
def apply_rope(x: InOut[T, "n H two=2 K"], positions: In[i64, "n"], table: In[f32, "m two=2 K"]):
    """Each pair (x[i], x[K + i]) of a head turned by its angle; a position beyond the table gives zeros."""
    for t, h in grid("n", "H"):
        c, s = table[positions[t], 0], table[positions[t], 1]
        a, b = x[t, h, 0], x[t, h, 1]
        x[t, h, 0] = a * c - b * s
        x[t, h, 1] = b * c + a * s
