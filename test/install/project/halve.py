"""Defines a kernel whose factor is imported from another module."""

from factor import HALF

from mlafix.dsl import In, Out, f32, grid, kernel


@kernel
def halve_rows(y: Out[f32, "n D"], x: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = x[t] * HALF
