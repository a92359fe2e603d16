"""Tests promises that an author makes (`assume`, `distinct`). Launches check promises about sizes and scalars. Promises
about what tensors hold are not checked. Also tests fills, and bounds="prove"."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import Device
from sources import load, refused

import mlafix
from mlafix.dsl import (DType, In, InOut, Out, assume, bool_, distinct, f32, grid, i32, i64, identity, index,
                        load_state, shape, store_state)  # fmt: skip

T = DType("T")
I = DType("I", default=i32)  # noqa: E741


@mlafix.kernel
def shifted(out: Out[f32, "n"], x: In[f32, "m"], k: i32, step: i64, wide: bool_):
    assume(shape("n") + index(k) <= shape("m") and k >= 0)
    assume(shape("n") % 4 == 0 or wide)
    assume(step // 3 == -2)
    assume(min(k * 2, 7) != 6)
    for t in grid("n"):
        out[t] = x[t + index(k)] * f32(step)


@mlafix.kernel
def between(out: Out[f32, "n"], low: i32, high: i32):
    assume(low <= high)
    for t in grid("n"):
        out[t] = f32(high - low)


@mlafix.kernel(bounds="prove")
def scatter(out: InOut[f32, "m"], x: In[f32, "n"], slots: In[I, "n"]):
    distinct(slots)
    for t in grid("n"):
        i = index(slots[t])
        assume(0 <= i and i < shape("m"))
        out[i] = x[t]


@mlafix.kernel
def some_states(out: Out[T, "n H D"].fill(identity), lse: Out[f32, "H n"].fill(identity) | None, count: Out[i32, "n H"].fill(-7),
                low: Out[f32, "n H"].fill(-math.inf), x: In[T, "n H D"], l: In[f32, "H n"], flags: In[i32, "n"]):  # fmt: skip
    for t, h in grid("n", "H"):
        if flags[t] > 0:
            store_state(load_state(x[t, h], l[h, t]), out[t, h], lse[h, t])
            if flags[t] > 1:
                count[t, h] = flags[t]
        elif flags[t] < 0:
            low[t, h] = 1.0


GOOD: dict[str, Any] = {"n": 8, "m": 20, "k": 12, "step": -5, "wide": False}


def launch(device: Device, n: int, m: int, k: int, step: int, wide: bool) -> np.ndarray:
    x = np.arange(m, dtype=np.float32)
    out = device.poisoned((n,), np.float32)
    shifted(out, device.put(x), k, step, wide)
    return device.get(out)


def test_a_launch_that_keeps_its_promises_runs(device: Device) -> None:
    assert np.array_equal(launch(device, **GOOD), np.arange(12, 20) * -5.0)
    assert np.array_equal(launch(device, 7, 20, 0, -4, True), np.arange(7) * -4.0)
    assert launch(device, 0, 0, 0, -6, False).size == 0


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"k": 13}, "expected shape('n') + index(k) <= shape('m') and k >= 0, got n = 8, k = 13, m = 20"),
        ({"k": -1}, "expected shape('n') + index(k) <= shape('m') and k >= 0, got n = 8, k = -1, m = 20"),
        ({"n": 7}, "expected shape('n') % 4 == 0 or wide, got n = 7, wide = 0"),
        ({"step": -3}, "expected step // 3 == -2, got step = -3"),
        ({"step": -7}, "expected step // 3 == -2, got step = -7"),
        ({"k": 3}, "expected min(k * 2, 7) != 6, got k = 3"),
    ],
)
def test_a_launch_that_breaks_one_is_refused(device: Device, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(mlafix.ArgumentError) as error:
        launch(device, **{**GOOD, **changed})
    assert message in str(error.value)
    # A launch is also checked if an earlier one with other sizes or scalars has passed the checks.
    assert np.array_equal(launch(device, **GOOD), np.arange(12, 20) * -5.0)
    with pytest.raises(mlafix.ArgumentError):
        launch(device, **{**GOOD, **changed})


def test_a_broken_promise_names_the_sizes_that_the_code_is_compiled_for(tmp_path: Path) -> None:
    kernel = load(tmp_path, """
@kernel
def parts(y: Out[f32, "n Q D"], x: In[f32, "n A D"]):
    assume(shape("A") == 2 * shape("Q"))
    for t, h in grid("n", "Q"):
        y[t, h] = x[t, h]

@kernel
def mixed(y: Out[f32, "n D"], x: In[f32, "n D"]):
    assume(shape("n") % shape("D") == 0)
    for t in grid("n"):
        y[t] = x[t]

@kernel
def of_a_tensor(y: Out[f32, "n D"], x: In[f32, "n D"]):
    assume(x.shape[1] >= 8)
    for t in grid("n"):
        y[t] = x[t]
""")  # fmt: skip
    for name, sizes, message in (
        ("parts", ((2, 3, 4), (2, 5, 4)), r"expected shape\('A'\) == 2 \* shape\('Q'\), got A = 5, Q = 3$"),
        ("mixed", ((3, 4), (3, 4)), r"expected shape\('n'\) % shape\('D'\) == 0, got n = 3, D = 4$"),
        ("of_a_tensor", ((3, 4), (3, 4)), r"expected x.shape\[1\] >= 8, got D = 4$"),
    ):
        with pytest.raises(mlafix.Error, match=message):
            getattr(kernel, name)(*(np.ones(size, np.float32) for size in sizes))


def test_a_bound_call_checks_new_scalars(device: Device) -> None:
    out, x = device.poisoned((8,), np.float32), device.put(np.arange(20, dtype=np.float32))
    with pytest.raises(mlafix.ArgumentError, match="expected shape"):
        shifted.bind(out, x, 13, -5, False)


def test_new_scalars_of_a_bound_call_are_checked_together(device: Device) -> None:
    """Two new scalars are checked only after both are set. If (0, 1) became (5, 7) one by one, 5 <= 1 would be false in
    between."""
    out, other = device.poisoned((8,), np.float32), device.poisoned((8,), np.float32)
    bound = between.bind(out, 0, 1)
    with pytest.raises(mlafix.ArgumentError, match="expected low <= high, got low = 7, high = 6"):
        bound.set_pointers((other, 7, 6))
    bound()
    assert (device.get(out) == 1).all()
    bound.set_pointers((other, 5, 7))
    bound()
    assert (device.get(other) == 2).all()


def test_promises_about_tables_are_believed(device: Device, rng: np.random.Generator) -> None:
    slots = rng.permutation(50)[:20].astype(np.int32)
    x, out = rng.normal(0, 1, 20).astype(np.float32), device.put(np.zeros(50, np.float32))
    scatter(out, device.put(x), device.put(slots))
    expected = np.zeros(50, np.float32)
    expected[slots] = x
    assert np.array_equal(device.get(out), expected)
    assert "cmpi ult" not in scatter.ir("lowered", I="i32")  # the access has no bounds guard


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_what_no_store_writes_gets_the_fill(device: Device, rng: np.random.Generator, dtype: type) -> None:
    n, heads, size = 13, 3, 16
    flags = rng.integers(-1, 3, n).astype(np.int32)
    x, l = rng.normal(0, 1, (n, heads, size)).astype(dtype), rng.normal(0, 1, (heads, n)).astype(np.float32)
    for given in (True, False):
        out, lse = device.poisoned((n, heads, size), dtype), device.poisoned((heads, n), np.float32)
        count, low = device.poisoned((n, heads), np.int32), device.poisoned((n, heads), np.float32)
        some_states(out, lse if given else None, count, low, device.put(x), device.put(l), device.put(flags))
        live = flags > 0
        assert np.array_equal(device.get(out), np.where(live[:, None, None], x, 0))
        if given:
            assert np.array_equal(device.get(lse), np.where(live, l, -np.inf))
        assert np.array_equal(device.get(count)[:, 0], np.where(flags > 1, flags, -7))
        assert np.array_equal(device.get(low)[:, 1], np.where(flags < 0, 1.0, -np.inf))


# The kernel, the text that the error underlines, and a part of the message.
REFUSED = [
    ('def k(y: Out[f32, "n"], x: In[f32, "m"], c: In[i32, "n"]):\n    for t in grid("n"):\n        y[t] = x[c[t]]', 'x[c[t]]',
     "expected every access of 'x' to be in bounds (bounds = \"prove\"), got one that may be outside: it depends on what is read from c"),
    ('def k(y: Out[f32, "n"], x: In[f32, "n"]):\n    for t in grid("n"):\n        y[t] = x[t + 1]', "x[t + 1]", "got x[1]: for example n = 1, i = 0"),
    ('def k(y: Out[f32, "n"], x: f32):\n    assume(x > 0.0)\n    for t in grid("n"):\n        y[t] = x', "assume(x > 0.0)",
     "expected a condition of integer arguments and sizes"),
    ('def k(y: Out[f32, "n"]):\n    assume(1 > 2)\n    for t in grid("n"):\n        y[t] = 0.0', "1 > 2", "expected a condition that may hold"),
    ('def k(y: Out[f32, "n"], x: In[f32, "n"]):\n    distinct(x)\n    for t in grid("n"):\n        y[t] = x[t]', "distinct(x)",
     "expected a table of integers, got 'f32'"),
    ('def k(y: Out[f32, "n"], c: In[i32, "n"]):\n    for t in grid("n"):\n        distinct(c)\n        y[t] = 0.0', "distinct(c)",
     "expected distinct(…) before the grid, got it inside: move it above 'for … in grid(…)'"),
    ('def k(y: Out[f32, "n"].fill(0.0), x: In[f32, "m"]):\n    for t in grid("m"):\n        y[t] = 0.0', "y[t]",
     "fill of 'y': expected a grid with one row for each row that is stored, got a store at other indices than the grid's"),
    ('def k(y: Out[f32, "n"], c: In[i32, "n"]):\n    for t in grid("n"):\n        if c[t] > 0:\n            y[t] = 0.0', "y[t]",
     "or say what 'y' holds elsewhere: .fill(0) gives it a value, InOut"),
]  # fmt: skip


@pytest.mark.parametrize("text, place, message", REFUSED)
def test_what_is_wrong_is_underlined(tmp_path: Path, text: str, place: str, message: str) -> None:
    kernel = load(tmp_path, f'@mlafix.kernel(bounds="prove")\n{text}\n').k
    with refused(message, place):
        kernel.ir("lowered")


def test_a_fill_is_a_number_that_the_output_holds() -> None:
    for tensor in (InOut[f32, "n"], In[f32, "n"]):
        with pytest.raises(mlafix.ArgumentError, match=re.escape(f"fill: expected a tensor declared with Out, got {tensor!r}")):
            tensor.fill(identity)
    with pytest.raises(mlafix.ArgumentError, match="fill: expected a number or identity, got 'zero'"):
        Out[f32, "n"].fill("zero")
    for wrong in (lambda: Out[i32, "n"].fill(0.5), lambda: Out[I, "n"].fill("zero")):
        with pytest.raises(mlafix.ArgumentError, match="fill: expected an integer or identity, got"):
            wrong()


@mlafix.kernel
def some_numbers(a: Out[i32, "n"].fill(identity), b: Out[I, "n"].fill(identity), c: Out[bool_, "n"].fill(identity), flags: In[bool_, "n"]):
    for t in grid("n"):
        if flags[t]:
            a[t] = 5
            b[t] = 6
            c[t] = True


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_the_identity_of_integers_is_zero(device: Device, dtype: type) -> None:
    flags = np.arange(7) % 3 == 0
    outputs = [device.poisoned((7,), kind) for kind in (np.int32, dtype, np.bool_)]
    some_numbers(*outputs, device.put(flags))
    for got, value in zip(outputs, (5, 6, True)):
        assert np.array_equal(device.get(got), np.where(flags, value, 0))


def test_a_ragged_grid_says_who_fills_the_rest(tmp_path: Path) -> None:
    text = """
@mlafix.kernel
def k(y: DECLARED, cu: In[i32, "b"]):
    for s, t in segments(cu, "n"):
        y[t] = 1.0
"""
    for declared, place, message in [
        ('Out[f32, "n"].fill(0)', "for", "got a ragged grid, whose segments may leave rows out; declare 'y' with access \"update\" (InOut), and fill it before"),
        ('Out[f32, "n"]', "y[t]", "or say what 'y' holds elsewhere: InOut[…] keeps what it held"),
    ]:
        with pytest.raises(mlafix.CompileError) as error:
            load(tmp_path, text.replace("DECLARED", declared)).k.ir("lowered")
        assert message in str(error.value)
    y = np.zeros(5, np.float32)
    load(tmp_path, text.replace("DECLARED", 'InOut[f32, "n"]')).k(y, np.int32([1, 3]))
    assert y.tolist() == [0, 1, 1, 0, 0]


def test_bounds_is_one_of_two_words() -> None:
    with pytest.raises(mlafix.ArgumentError, match="expected bounds to be \"guard\" or \"prove\", got 'maybe'"):
        mlafix.kernel(bounds="maybe")
