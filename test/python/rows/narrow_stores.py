"""Kernels that store elements of 8 bits as user code does: after max, min, clamping, where and branches."""

from __future__ import annotations

import mlafix
from mlafix.dsl import DType, In, Out, abs, f32, grid, i8, i32, max, min, sum, u8, where

T = DType("T")


@mlafix.kernel
def rectified(y: Out[u8, "n D"], z: Out[i8, "n D"], x: In[T, "n D"]):
    for t in grid("n"):
        y[t] = max(f32(x[t]), 0.0)
        z[t] = max(f32(x[t]), -0.0)


@mlafix.kernel
def bounded(y: Out[u8, "n D"], z: Out[i8, "n D"], x: In[T, "n D"], scales: In[f32, "n"]):
    for t in grid("n"):
        row = f32(x[t]) * scales[t]
        y[t] = max(min(row, 255.0), 0.0)
        z[t] = min(max(row, 0.0), 100.0)


@mlafix.kernel
def chosen(y: Out[u8, "n D"], z: Out[i8, "n D"], x: In[T, "n D"]):
    for t in grid("n"):
        row = f32(x[t])
        y[t] = where(row > 0.0, row, 0.0)
        z[t] = where(row >= 0.0, row * 0.5, 0.0)


@mlafix.kernel
def whole_numbers(y: Out[u8, "n D"], z: Out[i8, "n D"], x: In[T, "n D"]):
    for t in grid("n"):
        row = max(f32(x[t]), 0.0)
        y[t] = i32(row)
        z[t] = max(i32(f32(x[t])), 0)


@mlafix.kernel
def of_a_branch(y: Out[u8, "n D"], z: Out[i8, "n D"], x: In[T, "n D"], active: In[i32, "n"]):
    for t in grid("n"):
        row = f32(x[t])
        if active[t] > 0:
            row = max(row, 0.0)
        y[t] = row
        z[t] = max(row + 1.0, 0.0)


@mlafix.kernel
def of_scalars(y: Out[u8, "n"], z: Out[i8, "n"], x: In[T, "n D"]):
    for t in grid("n"):
        total = sum(f32(x[t]))
        y[t] = max(total, 0.0)
        z[t] = max(abs(total) - 1.0, 0.0)


KERNELS = (rectified, bounded, chosen, whole_numbers, of_a_branch, of_scalars)
