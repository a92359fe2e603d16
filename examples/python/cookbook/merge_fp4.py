"""Merges two partial states into NVFP4: elements in e2m1, two to a byte, and a scale in e4m3 for each group of 16
elements. The scales are stored in tiles.

f4e2m1 is used like other dtypes: a row that the annotation gives D elements takes D / 2 bytes of memory. Tiles are a
property of the scales' annotation; the kernel's body indexes a matrix of tokens and groups. Two launches may write to
the same tile (prefill tokens in one launch, decode tokens in another), because each writes only its own rows, from
`first` on. An element of the result takes 9 / 16 of a byte. With bf16 inputs, the launch moves 4.56 bytes per element,
instead of 6 for a merge and 2.56 for a quantisation after it.
"""

from typing import Any

from mlafix.dsl import DType, In, InOut, Out, f4e2m1, f8e4m3fn, f32, grid, index, inline, kernel, load_state, lse_of, max, merge, payload, where

T = DType("T")
SIXTH = float.fromhex("0x1.555556p-3")  # 1 / 6 rounded to f32


@inline
def nvfp4(row: Any, number: Any) -> Any:
    """Returns the scales of a row's groups, and the row scaled for e2m1. An element of `row` is about
    y * scale / number, where y is the scaled element, rounded to e2m1."""
    scale = f8e4m3fn(number * (max(abs(row), along=16) * SIXTH))
    return scale, row * where(scale != 0.0, 1.0 / (scale * (1.0 / number)), 0.0)


@kernel
def merge_fp4(q: Out[f4e2m1, "n H (G 16)"], scales: InOut[f8e4m3fn, "m H G"].swizzle("128x4"), lse: Out[f32, "n H"], number: In[f32, "one=1"],  # type: ignore[valid-type]
              a: In[T, "n H (G 16)"], a_lse: In[f32, "n H"], b: In[T, "n H (G 16)"], b_lse: In[f32, "n H"], first: index) -> None:  # fmt: skip
    """Merges two states into q. The scales of token t are in row first + t of the tiles. Groups of an empty row are
    zeros with the scale 0."""
    for t, h in grid("n", "H"):
        merged = merge(load_state(a[t, h], a_lse[t, h], base="e"), load_state(b[t, h], b_lse[t, h], base="e"))
        scale, elements = nvfp4(payload(merged), number[0])
        scales[first + t, h] = scale
        q[t, h] = elements
        lse[t, h] = lse_of(merged)


@kernel
def quantize_fp4(q: Out[f4e2m1, "n H (G 16)"], scales: InOut[f8e4m3fn, "m H G"].swizzle("128x4"), number: In[f32, "one=1"], x: In[T, "n H (G 16)"],  # type: ignore[valid-type]
                 first: index) -> None:  # fmt: skip
    """Quantises the rows of x as `merge_fp4` quantises merged rows."""
    for t, h in grid("n", "H"):
        scale, elements = nvfp4(f32(x[t, h]), number[0])
        scales[first + t, h] = scale
        q[t, h] = elements
