"""Tests calls that pass one tensor, or overlapping tensors, for two arguments. The same tensor is legal if the kernel
reads no row after it has written that row (N11). All other such calls are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mlafix
from mlafix.dsl import In, InOut, f32, grid, kernel, load_state, merge, store_state

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")


@kernel
def add_read_first(y: InOut[f32, "n D"], x: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = y[t] + x[t]


@kernel
def add_read_last(y: InOut[f32, "n D"], x: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = x[t] + y[t]


@kernel
def centred(y: InOut[f32, "n D"], x: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = y[t] - sum(x[t]) * 0.125


@kernel
def read_again(y: InOut[f32, "n D"], x: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = y[t] * 2.0
        y[t] = y[t] + x[t]


@kernel
def merge_into(v: InOut[f32, "n D"], s: InOut[f32, "n"], other: In[f32, "n D"], other_s: In[f32, "n"]):
    for t in grid("n"):
        store_state(merge(load_state(v[t], s[t]), load_state(other[t], other_s[t])), v[t], s[t])


def rows(n: int) -> np.ndarray:
    return np.random.default_rng(n).standard_normal((n, 8)).astype(np.float32)


@pytest.mark.parametrize("add", [add_read_first, add_read_last])
@pytest.mark.parametrize("n", [1, 33, 5000])
def test_the_order_of_operands_does_not_matter(add: mlafix.Kernel, n: int) -> None:
    x, y = rows(n), rows(n)[::-1].copy()
    apart = y.copy()
    add(apart, x)
    assert (apart == y + x).all()
    add(y, y)
    assert (y == 2 * rows(n)[::-1]).all()


@pytest.mark.parametrize("n", [1, 33])
def test_a_reduction_of_the_row_that_is_replaced(n: int) -> None:
    apart, x = rows(n), rows(n)
    centred(apart, x)
    centred(x, x)
    assert (x == apart).all()


@pytest.mark.parametrize("n", [1, 40, 3000])
def test_a_state_is_merged_with_itself(n: int) -> None:
    v, s = rows(n), np.linspace(-3, 3, n, dtype=np.float32)
    s[0] = -np.inf
    before, before_s = v.copy(), s.copy()
    merge_into(v, s, v, s)
    before[0] = 0
    np.testing.assert_allclose(v, before, rtol=1e-6)
    np.testing.assert_allclose(s, before_s + np.float32(math.log(2)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("add", [add_read_first, add_read_last])
def test_tensors_that_overlap_otherwise_are_refused(add: mlafix.Kernel) -> None:
    both = rows(6)
    with pytest.raises(mlafix.ArgumentError, match='"y": expected memory apart from that of argument "x" .or the same'):
        add(both[1:], both[:-1])


def test_a_read_after_a_write_is_refused() -> None:
    both = rows(6)
    with pytest.raises(mlafix.ArgumentError, match='"y": expected memory apart from that of argument "x", got'):
        read_again(both, both)
