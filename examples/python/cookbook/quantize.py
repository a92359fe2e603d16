"""Quantises rows to bytes, with one scale for each row or for each group of a row.

A row of G groups of K elements is one row along `(G K)`, so nothing is copied. A call takes G from the scales, and K
from the length of the row. With bf16 inputs a launch moves 3 bytes per element, and 4 per scale.
`mlafix.ops.quantize_groups` quantises with the kernel that is made here, and with similar kernels for other scales.
"""

from mlafix.kernels.rows import quantize_rows
from mlafix.kernels.scaling import Scaling
from mlafix.dsl import DType, In, Out, f8e4m3fn, f32, grid, i8, kernel

T = DType("T")

# Quantises to fp8 with a scale for each group of K elements, as engines quantise activations for a block-scaled
# product. The arguments are out, out_scales, None (there is no global scale), 0 (the first row of scales in tiles,
# unused here), and x.
quantize_groups = quantize_rows(Scaling())


@kernel
def quantize_int8(q: Out[i8, "n D"], scale: Out[f32, "n"], x: In[T, "n D"]) -> None:  # type: ignore[name-defined]
    """Quantises symmetrically, by the row's largest magnitude: x is about q * scale. A row of zeros has the scale 1e-10
    / 127."""
    for t in grid("n"):
        v = x[t]
        s = max(max(abs(v)), 1e-10) / 127.0
        scale[t] = s
        q[t] = v / s


@kernel
def dequantize_groups(y: Out[T, "n (G K)"], q: In[f8e4m3fn, "n (G K)"], scale: In[f32, "n G"]) -> None:
    for t in grid("n"):
        y[t] = q[t] * scale[t]
