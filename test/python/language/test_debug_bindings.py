"""Tests watched launches of kernels that a caller specialises, and of kernels that the compiler refuses."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numerics import BF16, E8M0

import mlafix
from mlafix.dsl import DType, In, Out, f32, grid, i32, load_state, lse_of, store_state

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

E = DType("E", default="i32")


@mlafix.kernel
def stored(out: Out[f32, "n D"], out_lse: Out[f32, "n"], x: In[f32, "n D"], lse: In[f32, "n"]):
    for t in grid("n"):
        state = load_state(x[t], lse[t])
        print(lse_of(state))
        store_state(state, out[t], out_lse[t])


@mlafix.kernel
def most_of_sums(y: Out[f32, "n"], x: In[f32, "n (G K)"]):
    for t in grid("n"):
        y[t] = max(sum(x[t], along="K"))


@mlafix.kernel
def moved(out: Out[E, "n D"], first: Out[E, "n"], x: In[E, "m D"], at: In[i32, "n"]):
    for t in grid("n"):
        out[t] = x[at[t]]
        first[t] = x[at[t], 0]


@mlafix.kernel
def added(y: Out[f32, "n D"], x: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = y[t] + x[t]


@mlafix.kernel(bounds="prove")
def shifted(y: Out[f32, "n"], x: In[f32, "n"], k: i32):
    for t in grid("n"):
        y[t] = x[t + k]


@pytest.mark.parametrize("bound", [{"B": 2}, {"n": 2}, {"B": 2, "D": 8}], ids=str)
def test_names_that_are_bound(bound):
    x, lse = np.ones((2, 8), np.float32), np.float32([1, 2])
    report = stored.specialize(**bound).debug(np.zeros_like(x), np.zeros_like(lse), x, lse)
    assert report.faults == () and [text.text for text in report.printed] == ["1", "2"]


def test_a_factor_of_a_product_that_is_bound():
    x = np.ones((2, 8), np.float32)
    assert most_of_sums.specialize(G=2).debug(np.zeros(2, np.float32), x).faults == ()
    with pytest.raises(mlafix.CompileError, match="expected a size for dim"):  # the call itself raises the same error
        most_of_sums.debug(np.zeros(2, np.float32), x)


def test_watched_calls_of_names_that_are_bound(monkeypatch):
    watched = stored.specialize(B=2)
    monkeypatch.setenv("MLAFIX_DEBUG", "1")
    x, lse, out = np.ones((2, 8), np.float32), np.float32([1, 2]), np.zeros((2, 8), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watched(out, np.zeros_like(lse), x, lse)
    assert (out == x).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16, E8M0, np.int32, np.int64, np.uint8, np.bool_], ids=str)
def test_kernels_that_move_bits(dtype):
    """Values that a kernel only moves have the dtype of the passed arrays, not the default dtype of the variable."""
    x = np.ones((3, 8), np.float32) * 1.5
    x[0] = np.nan
    with np.errstate(invalid="ignore"):
        x = x.astype(dtype)
    report = moved.debug(np.zeros((2, 8), dtype), np.zeros(2, dtype), x, np.int32([0, 2]))
    assert report.faults == () and report.unknown_rows == 0
    (fault, *_) = moved.debug(np.zeros((2, 8), dtype), np.zeros(2, dtype), x, np.int32([0, 3])).faults
    assert (fault.question, fault.element) == ("bounds", (3,))


def test_a_kernel_that_is_refused_for_other_launches():
    y, x = np.zeros(3, np.float32), np.ones(3, np.float32)
    report = shifted.debug(y, x, 0)
    assert report.faults == () and "in bounds" in report.refused
    report = shifted.debug(y, x, 1)
    assert [(fault.question, fault.element) for fault in report.faults] == [("bounds", (3,))] and report.refused


def test_rows_that_read_what_nobody_wrote():
    """Each row adds to elements that nobody has written. Their initial NaN stays NaN, so the values do not show that
    the row writes."""
    (fault,) = added.debug(np.zeros((2, 8), np.float32), np.ones((2, 8), np.float32)).faults
    assert fault.question == "written before read"
    assert str(fault).endswith(": y[0, 0]: row [0] reads it before writing it")
