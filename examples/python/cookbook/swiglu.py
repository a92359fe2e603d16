"""Computes SwiGLU, silu(a) * b, where a and b are the two halves of a row, which are groups of (2 K).

A launch reads x and writes y once.
"""

from mlafix.dsl import DType, In, Out, exp, grid, kernel

T = DType("T")


@kernel
def swiglu(y: Out[T, "n K"], x: In[T, "n (2 K)"]) -> None:
    """Computes y = a / (1 + exp(-a)) * b, where a is the first half of x and b the second half."""
    for t in grid("n"):
        a, b = x[t, 0], x[t, 1]
        y[t] = a / (exp(-a) + 1.0) * b
