"""Rotary position embedding in place, of halves and of interleaved pairs, and its table.

What turns is a pair of elements: of halves, element i of the first half of a head and element i of the second one; of
interleaved pairs, two neighbours. Either is a part of a row along a product, (2 K) or (K 2). x is moved in accesses of 16
bytes if the table has its dtype; with a table of f32, halves of a 16-bit x are moved in accesses of 8 bytes. What it costs
is the bytes of x, read and written once; a row of the table is read for every head, from the caches.
"""

from mlafix.dsl import DType, In, InOut, Out, cos, exp2, f32, grid, i64, iota, kernel, log2, shape, sin

T = DType("T")
C = DType("C", default=f32)


@kernel
def rope_table(table: Out[C, "m two=2 K"], base: f32):
    """The cosine and the sine of p * base^(-i / K), for positions p below m and i below K."""
    for p in grid("m"):
        frequency = exp2(f32(iota("K")) * (-log2(base) / f32(shape("K"))))
        angle = frequency * f32(p)
        table[p, 0] = cos(angle)
        table[p, 1] = sin(angle)


@kernel
def apply_rope(x: InOut[T, "n H (2 K)"], positions: In[i64, "n"], table: In[C, "m two=2 K"]):
    """Each pair (x[i], x[K + i]) of a head turned by its angle; a position beyond the table gives zeros."""
    for t, h in grid("n", "H"):
        c, s = table[positions[t], 0], table[positions[t], 1]
        a, b = x[t, h, 0], x[t, h, 1]
        x[t, h, 0] = a * c - b * s
        x[t, h, 1] = b * c + a * s


@kernel
def apply_rope_pairs(x: InOut[T, "n H (K 2)"], positions: In[i64, "n"], table: In[C, "m two=2 K"]):
    """The same of each pair (x[2 * i], x[2 * i + 1])."""
    for t, h in grid("n", "H"):
        c, s = table[positions[t], 0], table[positions[t], 1]
        a, b = x[t, h, :, 0], x[t, h, :, 1]
        x[t, h, :, 0] = a * c - b * s
        x[t, h, :, 1] = b * c + a * s
