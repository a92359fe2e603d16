"""Tests what `kernel.debug` reports about values: prints of rows, the origin of a NaN, and differences between a kernel
and a reference."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

import mlafix
from mlafix.dsl import (DType, In, InOut, Out, abs, assume, bf16, exp, f16, f32, grid, i32, identity, load_state, log,
                        lse_of, make_state, max, merge, payload, range, rsqrt, shape, store_state, sum, where)  # fmt: skip

T = DType("T")
F32 = np.float32
LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


@mlafix.kernel
def layernorm(y: Out[T, "n D"], x: In[T, "n D"], eps: f32):
    for t in grid("n"):
        row = f32(x[t])
        mean = sum(row) / f32(shape("D"))
        var = sum(row * row) / f32(shape("D")) - mean
        print("mean", mean, "var", var)
        y[t] = (row - mean) * rsqrt(var + eps)


@mlafix.kernel
def by_hand(out: Out[f32, "n D"], a: In[f32, "n D"], la: In[f32, "n"], b: In[f32, "n D"], lb: In[f32, "n"]):
    for t in grid("n"):
        m = max(la[t], lb[t])
        p, q = exp(la[t] - m), exp(lb[t] - m)
        out[t] = (a[t] * p + b[t] * q) / (p + q)


@mlafix.kernel
def guarded(out: Out[f32, "n D"], a: In[f32, "n D"], la: In[f32, "n"]):
    for t in grid("n"):
        weight = exp(la[t] - la[t])
        out[t] = where(weight == weight, a[t] * weight, 0.0)


@mlafix.kernel
def merged(out: Out[f32, "n D"], lse: Out[f32, "n"], parts: In[f32, "k n D"], lses: In[f32, "k n"]):
    for t in grid("n"):
        state = identity("D")
        for i in range(parts.shape[0]):
            state = merge(state, load_state(parts[i, t], lses[i, t]))
        print(max(payload(state)))
        store_state(state, out[t], lse[t])


def texts(report: Any) -> list[str]:
    return [one.text for one in report.printed]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_numbers_that_come_of_rows_are_printed(dtype: str) -> None:
    x = np.arange(8).reshape(2, 4).astype(dtype)
    report = layernorm.debug(np.empty((2, 4), dtype), x, 1e-5)
    assert texts(report) == ["mean 1.5 var 2", "mean 5.5 var 26"]
    assert not report.faults and not report.unknown_rows


def test_rows_are_printed_whole_or_by_their_ends() -> None:
    @mlafix.kernel
    def show(y: Out[T, "n D"], x: In[T, "n D"], at: In[i32, "n D"]):
        for t in grid("n"):
            row = f32(x[t])
            print("row", row, f"at {at[t]}", row > 2.0, payload(identity("D")))
            y[t] = row

    x = np.arange(4, dtype=np.float16).reshape(1, 4)
    assert texts(show.debug(np.empty_like(x), x, x.astype(np.int32))) == ["row [0, 1, 2, 3] at [0, 1, 2, 3] [false, false, false, true] [0, 0, 0, 0]"]
    x = np.arange(130, dtype=F32).reshape(1, 130)
    x[0, [5, 128, 2, 77]] = np.nan, np.nan, np.inf, -np.inf
    (text,) = texts(show.debug(np.empty_like(x), x, np.arange(130, dtype=np.int32).reshape(1, 130)))
    assert text.startswith("row [0, 1, inf, 3, ..., nan, 129] of 130, 2 NaN from element 5, 2 infinite from element 2 at [0, 1, 2, 3, ..., 128, 129] of 130 [false, ")


def test_a_nan_is_a_fault_at_the_operation_that_made_it() -> None:
    x, none = np.ones((2, 4), F32), np.float32([0, -np.inf])
    report = by_hand.debug(np.empty_like(x), x, none, x, none)
    (fault,) = report.faults
    assert (fault.question, fault.argument, fault.element, fault.row) == ("NaN", "out", (1, 0), (1,))
    assert fault.message.startswith("out[1, 0]: row [1] stores NaN, made of -inf and -inf by - in line ")
    line = LINES[fault.line - 1]
    assert "p, q = exp(la[t] - m)" in line
    assert not by_hand.debug(np.empty_like(x), x, np.zeros(2, F32), x, none).faults


def test_a_nan_of_an_input_and_one_that_is_replaced_are_none() -> None:
    x, lse = np.ones((2, 4), F32), np.float32([0, -np.inf])
    assert not guarded.debug(np.empty_like(x), x, lse).faults
    x[1, 2] = np.nan
    assert not by_hand.debug(np.empty_like(x), x, np.zeros(2, F32), x, np.zeros(2, F32)).faults


@mlafix.kernel
def softmax_of_large(out: Out[T, "n D"], total: Out[f32, "n"], x: In[f32, "n D"], mask: In[i32, "n D"], s: f32):
    for t in grid("n"):
        weights = exp(where(mask[t] != 0, x[t], -math.inf))
        whole = sum(weights)
        total[t] = log(whole)
        out[t] = weights * s / whole


def of_large(x: Any, *, dtype: Any = F32, s: float = 1.0, keys: int = 3) -> list[Any]:
    mask = np.int32([[1] * keys + [0] * (3 - keys)])
    return list(softmax_of_large.debug(np.empty((1, 3), dtype), np.empty(1, F32), np.float32([x]), mask, s).faults)


def test_an_infinity_is_a_fault_at_the_operation_that_made_it() -> None:
    first, second = of_large([1, 100, 2])
    assert (first.question, first.argument, first.element) == ("infinity", "total", (0,))
    assert first.message.startswith("total[0]: row [0] stores an infinity, made of 100 by exp in line ")
    assert "weights = exp(" in LINES[first.line - 1]
    assert (second.question, second.argument, second.element) == ("NaN", "out", (0, 1))
    assert "stores NaN, made of inf (made of 100 by exp) and inf (made of 100 by exp) by / in line " in second.message
    (large,) = of_large([1, 2, 3], dtype=np.float16, s=1e6)
    assert (large.question, large.element) == ("infinity", (0, 0))
    assert "stores an infinity, made of 90030.57 by store in line " in large.message


@mlafix.kernel
def below_peaks(y: Out[f32, "n (G 2)"], x: In[f32, "n (G 2)"]):
    for t in grid("n"):
        row = exp(x[t])
        y[t] = row / max(row, along="2")


def test_what_each_group_has_is_followed_to_its_groups() -> None:
    """The search for the origin of a NaN passes a row with one element per group: from an element of y, it continues at
    the maximum of this element's group."""
    report = below_peaks.debug(np.empty((1, 4), F32), np.float32([[1, 2, 100, 3]]))
    assert [(fault.question, fault.element) for fault in report.faults] == [("NaN", (0, 2))]
    assert "exp in line " in report.faults[0].message or "by exp" in report.faults[0].message


def test_an_infinity_of_an_input_and_the_lse_of_no_keys_are_none() -> None:
    # the NaN is 0 / 0; the lse of -inf is not reported
    assert [fault.question for fault in of_large([1, 2, 3], keys=0)] == ["NaN"]
    assert not of_large([1, -np.inf, 3])
    assert not of_large([1, 1000, 3], keys=1)


@mlafix.kernel
def lse_of_a_merge(out: Out[f32, "n"], a: In[f32, "n D"], la: In[f32, "n"], b: In[f32, "n D"], lb: In[f32, "n"]):
    for t in grid("n"):
        out[t] = lse_of(merge(load_state(a[t], la[t]), load_state(b[t], lb[t])))


def test_the_nan_of_a_state() -> None:
    """A merge whose lse is NaN may be reported. Regression: this ended the process, since a state has no single number
    that the message could state."""
    x, lse = np.ones((2, 4), F32), np.float32([0, np.nan])
    report = lse_of_a_merge.debug(np.empty(2, F32), x, np.zeros(2, F32), x, lse)
    assert [fault.element for fault in report.faults] == [(1,)] or not report.faults
    assert not lse_of_a_merge.debug(np.empty(2, F32), x, np.zeros(2, F32), x, np.zeros(2, F32)).faults


def test_payloads_of_merges() -> None:
    parts, lses = np.float32([[[1, 2]], [[3, 6]], [[np.nan, 9]]]), np.float32([[0], [0], [-np.inf]])
    report = merged.debug(np.empty((1, 2), F32), np.empty(1, F32), parts, lses)
    assert texts(report) == ["4"] and not report.faults


def test_conditions_on_rows_are_followed() -> None:
    @mlafix.kernel
    def first_large(out: Out[i32, "n"], x: In[f32, "n D"]):
        for t in grid("n"):
            print(max(abs(x[t])))
            if sum(x[t]) > 3.0:
                out[t] = 1
            else:
                out[t] = 0

    report = first_large.debug(np.empty(2, np.int32), np.float32([[1, 1], [2, -3]]))
    assert texts(report) == ["1", "3"] and report.unknown_rows == 0


def right(y: Any, x: Any, eps: float) -> None:
    wide = x.astype(np.float64)
    mean = wide.mean(1, keepdims=True)
    y[...] = ((wide - mean) / np.sqrt(wide.var(1, keepdims=True) + eps)).astype(y.dtype)


def test_a_reference_and_the_line_where_both_part() -> None:
    x = np.arange(8, dtype=F32).reshape(2, 4)
    out = np.full((2, 4), 7, F32)
    (fault,) = layernorm.debug(out, x, 1e-5, against=right).faults
    assert (fault.question, fault.element, fault.row) == ("reference", (0, 0), (0,))
    assert fault.message.startswith("y[0, 0]: row [0] stores -1.060657") and ", where the reference has -1.34163" in fault.message
    assert "y[t] = (row - mean)" in LINES[fault.line - 1]
    assert (out == 7).all()
    # To compute the variance, the kernel wrongly subtracts the mean instead of its square. The result is right only if
    # the mean is 0 or 1.
    squared = np.float32([[1, 2, 3, 6]])
    zero_mean = squared - squared.mean()
    assert not layernorm.debug(np.empty_like(zero_mean), zero_mean, 1e-5, against=right).faults
    returned = layernorm.debug(np.empty((1, 4), F32), zero_mean, 1e-5, against=lambda y, x, eps: x * 9)
    assert [fault.question for fault in returned.faults] == ["reference"]


def test_an_output_may_be_named_tolerance() -> None:
    @mlafix.kernel
    def doubled(tolerance: Out[f32, "n D"], x: In[f32, "n D"]):
        for t in grid("n"):
            tolerance[t] = x[t] * 2.0

    x = np.ones((1, 4), F32)
    (fault,) = doubled.debug(np.empty_like(x), x, against=lambda tolerance, x: x * 9).faults
    assert (fault.question, fault.argument, fault.row) == ("reference", "tolerance", (0,))
    assert not doubled.debug(np.empty_like(x), x, against=lambda tolerance, x: x * 2.00001).faults


def test_each_output_is_compared_with_its_own_tolerance() -> None:
    @mlafix.kernel
    def copies(y: Out[bf16, "n D"], z: Out[f32, "n D"], x: In[f32, "n D"]):
        for t in grid("n"):
            y[t] = x[t]
            z[t] = x[t]

    x = np.ones((2, 4), F32)
    outputs = np.empty((2, 4), ml_dtypes.bfloat16), np.empty((2, 4), F32)
    assert not copies.debug(*outputs, x, against=lambda y, z, x: (x, x * F32(1.00001))).faults
    (fault,) = copies.debug(*outputs, x, against=lambda y, z, x: (x, x * F32(1.001))).faults
    assert (fault.question, fault.argument, fault.element) == ("reference", "z", (0, 0))
    both = copies.debug(*outputs, x, against=lambda y, z, x: (x * 9, x * F32(1.001))).faults
    assert [fault.argument for fault in both] == ["y", "z"]


@pytest.mark.parametrize("stored", [-math.inf, 2.0, math.inf, math.nan])
@pytest.mark.parametrize("want", [-math.inf, 2.0, math.inf, math.nan])
@pytest.mark.parametrize("dtype", [F32, np.float16])
def test_only_the_same_infinity_equals_an_infinity(stored: float, want: float, dtype: Any) -> None:
    @mlafix.kernel
    def copied(y: Out[T, "n D"], x: In[T, "n D"]):
        for t in grid("n"):
            y[t] = x[t]

    x = np.full((1, 4), stored, dtype)
    faults = copied.debug(np.empty_like(x), x, against=lambda y, x: np.full_like(x, want)).faults
    assert [fault.question for fault in faults] == ([] if str(stored) == str(want) else ["reference"])


def test_a_number_that_is_too_large_for_f16_equals_an_infinity() -> None:
    @mlafix.kernel
    def scaled(y: Out[f16, "n D"], x: In[f32, "n D"]):
        for t in grid("n"):
            y[t] = x[t] * 7.0

    x = np.full((1, 4), 10000, F32)
    faults = scaled.debug(np.empty((1, 4), np.float16), x, against=lambda y, x: np.full((1, 4), np.inf, np.float16)).faults
    assert [fault.question for fault in faults] == ["infinity"]


def test_a_broken_promise_beside_a_reference() -> None:
    @mlafix.kernel
    def added(y: Out[f32, "n D"], x: In[f32, "n D"], k: i32):
        assume(k % 2 == 0)
        for t in grid("n"):
            y[t] = x[t] + f32(k)

    x = np.ones((2, 4), F32)
    (fault,) = added.debug(np.empty_like(x), x, 1, against=lambda y, x, k: x + F32(k)).faults
    assert fault.question == "promise"


def test_references_that_do_not_fit() -> None:
    x = np.zeros((1, 4), F32)
    with pytest.raises(mlafix.ArgumentError, match="against: expected 1 results, one for each output, or None, got 2"):
        layernorm.debug(np.empty_like(x), x, 1e-5, against=lambda *_: (x, x))
    with pytest.raises(mlafix.ArgumentError, match=r'against: expected shape \[1, 4\] for "y", got \[4, 1\]'):
        layernorm.debug(np.empty_like(x), x, 1e-5, against=lambda *_: x.T)


@mlafix.kernel
def stored_and_read(kept: InOut[T, "n"], x: In[f32, "n"]):
    for t in grid("n"):
        kept[t] = x[t]
        print("kept", kept[t])


@pytest.mark.parametrize(("dtype", "text"), [("float32", "kept 20.230953"), ("float16", "kept ?"), ("float8_e4m3fn", "kept ?")])
def test_a_number_that_a_store_rounds_is_not_known_behind_it(dtype: str, text: str) -> None:
    pytest.importorskip("ml_dtypes")
    report = stored_and_read.debug(np.zeros(1, dtype), np.full(1, 20.230953, F32))
    assert texts(report) == [text]


@mlafix.kernel
def largest_of_states(out: Out[f32, "n D"], x: In[f32, "n D"], lse: In[f32, "n"]):
    for t in grid("n"):
        state = load_state(x[t], lse[t])
        print("largest", max(payload(state)), max(payload(make_state(x[t], lse[t]))))
        store_state(state, out[t])


def test_the_payload_of_an_empty_state_is_zero_and_that_of_a_nan_lse_is_nan() -> None:
    x, lse = np.full((4, 8), 3, F32), np.array([0, -np.inf, np.nan, np.inf], F32)
    report = largest_of_states.debug(np.empty_like(x), x, lse)
    assert [printed.text for printed in report.printed] == ["largest 3 3", "largest 0 0", "largest nan nan", "largest 0 0"]
