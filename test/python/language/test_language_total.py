"""Tests kernels on operands at the limits of their range. Loops, shifts, divisions and conversions have a result for
all operands, the same on each device. Omitted arguments read as zeros where Python.md says so."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from devices import Device
from sources import load

import mlafix
from mlafix import _runtime

TEXT = """
@mlafix.inline
def summed(x, low, high, step):
    # The sum of a row for each iteration: rows are read, so that a GPU unrolls the loop.
    total = splat(0.0, "D")
    for i in range(low, high, step):
        total = total + x[index(i) % x.shape[0]]
    return total


@mlafix.kernel
def sums(y: Out[f32, "s=4 n D"], x: In[f32, "m D"], low: In[INT, "n"], high: In[INT, "n"]):
    for t in grid("n"):
        y[0, t] = summed(x, low[t], high[t], 1)
        y[1, t] = summed(x, low[t], high[t], 2)
        y[2, t] = summed(x, low[t], high[t], 3)
        y[3, t] = summed(x, low[t], high[t], 1 << 30)


@mlafix.kernel
def index_sums(y: Out[f32, "s=4 n D"], x: In[f32, "m D"], low: In[i64, "n"], high: In[i64, "n"]):
    for t in grid("n"):
        y[0, t] = summed(x, index(low[t]), index(high[t]), 1)
        y[1, t] = summed(x, index(low[t]), index(high[t]), 2)
        y[2, t] = summed(x, index(low[t]), index(high[t]), 3)
        y[3, t] = summed(x, index(low[t]), index(high[t]), 1 << 30)


@mlafix.kernel
def counts(y: Out[i32, "s=2 n"], low: In[INT, "n"], high: In[INT, "n"]):
    # Without rows: a loop that no pass unrolls.
    for t in grid("n"):
        n = 0
        for i in range(low[t], high[t], 2):
            n += 1
        y[0, t] = n
        m = 0
        for j in range(low[t], high[t], 5):
            m += 1
        y[1, t] = m


@mlafix.kernel
def reported(y: Out[f32, "n D"], x: In[f32, "m D"], c: In[i32, "n"], seven: i32):
    for t in grid("n"):
        a = summed(x, c[t], 0, 2)
        b = summed(x, max(index(t), -2), min(-5, 2), 2)
        d = summed(x, max(shape("n"), -2), 1, 3)
        y[t] = a + b + d + summed(x, seven, 2, 2)


@mlafix.kernel
def shifts(left: Out[INT, "n"], right: Out[INT, "n"], wide: Out[i32, "n D"], x: In[INT, "n"], k: In[INT, "n"], row: In[i32, "n D"], by: In[i32, "n D"]):
    for t in grid("n"):
        left[t] = x[t] << k[t]
        right[t] = x[t] >> k[t]
        wide[t] = (row[t] << by[t]) ^ (row[t] >> by[t])


@mlafix.kernel
def constant_shifts(y: Out[i32, "s=5 n"], x: In[i32, "n"]):
    for t in grid("n"):
        y[0, t] = x[t] << 40
        y[1, t] = x[t] >> 40
        y[2, t] = x[t] << 32
        y[3, t] = x[t] >> -1
        y[4, t] = x[t] << 31


@mlafix.kernel
def divisions(quotient: Out[INT, "n"], remainder: Out[INT, "n"], size: Out[INT, "n"], wide: Out[i32, "n D"], a: In[INT, "n"], b: In[INT, "n"],
              row: In[i32, "n D"], by: In[i32, "n D"]):
    for t in grid("n"):
        quotient[t] = a[t] // b[t]
        remainder[t] = a[t] % b[t]
        size[t] = abs(a[t])
        wide[t] = (row[t] // by[t]) ^ (row[t] % by[t])


@mlafix.kernel
def magnitudes(byte: Out[i8, "n"], least: Out[INT, "n"], order: Out[i32, "s=4 n"], x: In[INT, "n"]):
    for t in grid("n"):
        negated = -abs(x[t])
        byte[t] = negated
        least[t] = min(negated, -7)
        order[0, t] = 1 if negated < -5 else 0
        order[1, t] = 1 if negated == -5 else 0
        order[2, t] = 1 if negated > -5 else 0
        order[3, t] = 1 if negated > 0 else 0


@mlafix.kernel
def conversions(narrow: Out[i32, "n"], long: Out[i64, "n"], wide: Out[i32, "n D"], x: In[f32, "n"], row: In[f32, "n D"]):
    for t in grid("n"):
        narrow[t] = i32(x[t])
        long[t] = i64(x[t])
        wide[t] = i32(row[t])


@mlafix.kernel
def omitted(y: Out[f32, "s=5 n"], rows: Out[f32, "r=4 n D"], c: In[i32, "n"], o: In[f32, "n"] | None, w: In[f32, "n D"] | None):
    for t in grid("n"):
        y[0, t] = o[t] if c[t] > 0 else 5.0
        y[1, t] = load(o[t], where=c[t] > 0, otherwise=5.0)
        y[2, t] = o[t]
        y[3, t] = load(o[t], where=present(o), otherwise=5.0)
        y[4, t] = o[t] if o is not None else 5.0
        rows[0, t] = w[t] if c[t] > 0 else 5.0
        rows[1, t] = load(w[t], where=c[t] > 0, otherwise=5.0)
        rows[2, t] = load(w[t], where=present(w), otherwise=5.0)
        rows[3, t] = w[t]
"""
ENDS = {np.int32: (-(2**31), 2**31 - 1), np.int64: (-(2**63), 2**63 - 1)}
# A row of 8 elements is read by one lane; a row of 1024 is processed in loops on a CPU.
SIZES = [8, 100, 1024]


NAMES = {np.int32: "i32", np.int64: "i64"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[type, ModuleType]:
    """Returns the kernels for integers of 32 and of 64 bits."""
    folder = tmp_path_factory.mktemp("total")
    return {dtype: load(folder, TEXT.replace("INT", name)) for dtype, name in NAMES.items()}


def run(device: Device, kernel: mlafix.Kernel, outputs: list[np.ndarray], *inputs: Any) -> list[np.ndarray]:
    """Runs the kernel with new outputs, which have the shapes and dtypes of `outputs`, and returns their contents."""
    results = [device.poisoned(out.shape, out.dtype) for out in outputs]
    kernel(*results, *[device.put(i) if isinstance(i, np.ndarray) else i for i in inputs])
    return [device.get(result) for result in results]


def ranges(dtype: type) -> list[tuple[int, int]]:
    """Returns bounds of ranges with few iterations: short ranges, also at both limits, and empty ranges whose ends are
    near to each other or far apart."""
    least, most = ENDS[dtype]
    short = [(a, b) for a in (-7, -1, 0, 1, 5) for b in (-9, -1, 0, 2, 7, 13)]
    empty = [(most, least), (0, least), (most, 0), (5, least), (most, most), (least, least), (1, 0), (most - 1, least + 1)]
    ends = [(most - k, most) for k in range(1, 12)] + [(least, least + k) for k in range(1, 12)]
    return short + empty + ends


def check_sums(device: Device, kernel: mlafix.Kernel, dtype: type, size: int) -> None:
    bounds = ranges(dtype)
    x = np.random.default_rng(1).integers(-8, 9, (5, size)).astype(np.float32)
    low, high = (np.array(side, dtype) for side in zip(*bounds))
    (got,) = run(device, kernel, [np.empty((4, len(bounds), size), np.float32)], x, low, high)
    for place, step in enumerate((1, 2, 3, 2**30)):
        for t, (a, b) in enumerate(bounds):
            want = sum((x[i % 5] for i in range(a, b, step)), np.zeros(size, np.float32))
            assert np.array_equal(got[place, t], want), f"range({a}, {b}, {step})"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [np.int32, np.int64], ids=["i32", "i64"])
def test_loops_over_rows_run_as_often_as_pythons(device: Device, made: dict[type, ModuleType], dtype: type, size: int) -> None:
    check_sums(device, made[dtype].sums, dtype, size)


@pytest.mark.parametrize("size", SIZES)
def test_loops_over_indices_run_as_often_as_pythons(device: Device, made: dict[type, ModuleType], size: int) -> None:
    check_sums(device, made[np.int32].index_sums, np.int64, size)


@pytest.mark.parametrize("dtype", [np.int32, np.int64], ids=["i32", "i64"])
def test_a_loop_whose_index_would_wrap_ends(device: Device, made: dict[type, ModuleType], dtype: type) -> None:
    bounds = ranges(dtype)
    low, high = (np.array(side, dtype) for side in zip(*bounds))
    (got,) = run(device, made[dtype].counts, [np.empty((2, len(bounds)), np.int32)], low, high)
    for place, step in enumerate((2, 5)):
        assert got[place].tolist() == [len(range(a, b, step)) for a, b in bounds]


def test_empty_ranges_that_were_reported(device: Device, made: dict[type, ModuleType]) -> None:
    """Empty ranges have no iterations. Regression: ranges such as `range(c[t], 0, 2)` with c > 0 ran on a GPU, since
    the number of iterations was unsigned."""
    x = np.ones((3, 16), np.float32)
    (got,) = run(device, made[np.int32].reported, [np.empty((4, 16), np.float32)], x, np.array([1, 7, 2, 0], np.int32), 7)
    assert not got.any()


def shifted(x: int, k: int, width: int) -> tuple[int, int]:
    """Returns x << k and x >> k. If k is negative or at least the width, all bits are shifted out."""
    if not 0 <= k < width:
        return 0, -1 if x < 0 else 0
    left = (x << k) % 2**width
    return left - 2**width if left >= 2 ** (width - 1) else left, x >> k


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [np.int32, np.int64], ids=["i32", "i64"])
def test_shifts_by_any_amount(device: Device, made: dict[type, ModuleType], dtype: type, size: int) -> None:
    width = np.dtype(dtype).itemsize * 8
    values = [0, 1, -1, 5, -5, *ENDS[dtype]]
    amounts = [0, 1, width - 1, width, width + 1, 100, -1, -width, *ENDS[dtype]]
    pairs = [(x, k) for x in values for k in amounts]
    x, k = (np.array(side, dtype) for side in zip(*pairs))
    rng = np.random.default_rng(2)
    row = rng.integers(-(2**31), 2**31, (len(pairs), size)).astype(np.int32)
    by = rng.choice(np.array([0, 1, 31, 32, 33, -1, -(2**31)]), (len(pairs), size)).astype(np.int32)
    outputs = [np.empty(len(pairs), dtype), np.empty(len(pairs), dtype), np.empty(row.shape, np.int32)]
    left, right, wide = run(device, made[dtype].shifts, outputs, x, k, row, by)
    assert list(zip(left.tolist(), right.tolist())) == [shifted(a, b, width) for a, b in pairs]
    each = [shifted(int(a), int(b), 32) for a, b in zip(row.flat, by.flat)]
    assert wide.ravel().tolist() == [a ^ b for a, b in each]


def test_constant_shifts_beyond_the_width_store_their_result(device: Device, made: dict[type, ModuleType]) -> None:
    """A shift by a constant of at least the width stores 0, or -1 if a negative number is shifted to the right.
    Regression: with a constant `<< 40` of an i32, nothing was stored."""
    x = np.array([5, -5, 0, 2**31 - 1, -(2**31)], np.int32)
    (got,) = run(device, made[np.int32].constant_shifts, [np.empty((5, 5), np.int32)], x)
    sign = [-1 if v < 0 else 0 for v in x]
    assert got.tolist() == [[0] * 5, sign, [0] * 5, sign, [shifted(int(v), 31, 32)[0] for v in x]]


def divided(a: int, b: int, width: int) -> tuple[int, int]:
    """Returns a // b and a % b, where a // 0 is a and a % 0 is 0."""
    if b == 0:
        return a, 0
    quotient = a // b
    return quotient - 2**width if quotient >= 2 ** (width - 1) else quotient, a % b


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [np.int32, np.int64], ids=["i32", "i64"])
def test_divisions_of_any_operands(device: Device, made: dict[type, ModuleType], dtype: type, size: int) -> None:
    width = np.dtype(dtype).itemsize * 8
    values = [0, 1, -1, 2, -2, 7, -7, *ENDS[dtype]]
    pairs = [(a, b) for a in values for b in values]
    a, b = (np.array(side, dtype) for side in zip(*pairs))
    rng = np.random.default_rng(3)
    odd = np.array([0, 1, -1, 7, -7, 2**31 - 1, -(2**31)])
    row, by = (rng.choice(odd, (len(pairs), size)).astype(np.int32) for _ in range(2))
    outputs = [np.empty(len(pairs), dtype) for _ in range(3)] + [np.empty(row.shape, np.int32)]
    quotient, remainder, absolute, wide = run(device, made[dtype].divisions, outputs, a, b, row, by)
    assert list(zip(quotient.tolist(), remainder.tolist())) == [divided(x, y, width) for x, y in pairs]
    # the magnitude of the smallest integer wraps around
    assert absolute.tolist() == [abs(x) if x != ENDS[dtype][0] else x for x, _ in pairs]
    each = [divided(int(x), int(y), 32) for x, y in zip(row.flat, by.flat)]
    assert wide.ravel().tolist() == [x ^ y for x, y in each]


@pytest.mark.parametrize("dtype", [np.int32, np.int64], ids=["i32", "i64"])
def test_negated_magnitudes_are_no_constants(device: Device, made: dict[type, ModuleType], dtype: type) -> None:
    """Comparisons with -abs(x) are computed. ptxas 12.9 and 13.0 would turn each one into a constant."""
    values = [0, 1, -1, 4, 5, -5, 6, -6, 7, 8, -8, 127, -128, 129, 1 << 20, np.iinfo(dtype).max, -np.iinfo(dtype).max]
    x = np.array(values, dtype)
    negated = -np.abs(x)
    outputs = [np.empty(len(x), np.int8), np.empty_like(x), np.empty((4, len(x)), np.int32)]
    byte, least, order = run(device, made[dtype].magnitudes, outputs, x)
    np.testing.assert_array_equal(byte, np.maximum(negated, -128))
    np.testing.assert_array_equal(least, np.minimum(negated, -7))
    np.testing.assert_array_equal(order, [negated < -5, negated == -5, negated > -5, negated > 0])


def converted(x: float, dtype: type) -> int:
    least, most = ENDS[dtype]
    return 0 if np.isnan(x) else least if x <= least else most if x >= most else int(x)


@pytest.mark.parametrize("size", SIZES)
def test_floats_become_integers_saturating(device: Device, made: dict[type, ModuleType], size: int) -> None:
    ends = [2.0**31, 2.0**63]
    values = [0.0, -0.0, 0.9, -0.9, 1e-45, 1.5, -1.5, np.inf, -np.inf, np.nan, 3e38, -3e38, 2.0**24 + 2]
    values += [sign * np.nextafter(np.float32(end), np.float32(to)) for end in ends for to in (0, np.inf) for sign in (1, -1)]
    values += [sign * end for end in ends for sign in (1, -1)]
    x = np.array(values, np.float32)
    row = np.random.default_rng(4).choice(x, (len(x), size))
    outputs = [np.empty(len(x), np.int32), np.empty(len(x), np.int64), np.empty(row.shape, np.int32)]
    narrow, long, wide = run(device, made[np.int32].conversions, outputs, x, row)
    assert narrow.tolist() == [converted(float(v), np.int32) for v in x]
    assert long.tolist() == [converted(float(v), np.int64) for v in x]
    assert wide.ravel().tolist() == [converted(float(v), np.int32) for v in row.flat]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("bound", [False, True], ids=["open", "bound"])
@pytest.mark.parametrize("given", [False, True], ids=["absent", "given"])
def test_otherwise_is_for_where_the_predicate_is_false(device: Device, tmp_path: Path, bound: bool, given: bool, size: int) -> None:
    """`otherwise` is used only where the predicate is false. Regression: `o[t] if c else 5.0` with an omitted argument
    gave 5 where c holds."""
    c = np.array([1, 0, 2, -1], np.int32)
    o, w = np.array([2.0, 3.0, 4.0, 6.0], np.float32), np.arange(4 * size, dtype=np.float32).reshape(4, size)
    kernel = load(tmp_path, TEXT.replace("INT", "i32")).omitted
    if not bound:
        # Compiles ahead without saying whether the optional arguments are present.
        unit = kernel.compile(_runtime.device_target("cuda:0" if device.name == "cuda" else "cpu"), D=size)
        assert unit.kernels[0].bindings == {"D": str(size)}
    outputs = [np.empty((5, 4), np.float32), np.empty((4, 4, size), np.float32)]
    y, rows = run(device, kernel, outputs, c, *((o, w) if given else (None, None)))
    o, w = (o, w) if given else (np.zeros_like(o), np.zeros_like(w))
    guarded, known = np.where(c > 0, o, 5), o if given else np.full_like(o, 5)
    assert np.array_equal(y, [guarded, guarded, o, known, known])
    guarded, known = np.where(c[:, None] > 0, w, 5), w if given else np.full_like(w, 5)
    assert np.array_equal(rows, [guarded, guarded, known, w])


CHOSEN = """
@mlafix.kernel
def chosen(y: Out[f32, "n D"], z: Out[i64, "n"], x: In[f32, "n D"], k: In[i64, "n"]):
    for t in grid("n"):
        row = x[t]
        if k[t] > 0:
            row = where(1 > 2, x[t] + 1.0, 5.0)
        y[t] = row
        z[t] = k[t] + where(k[t] != 7, where(1 < 2, 2, k[t]), 3)
"""


def test_constants_divide_and_shift_as_values_do(device: Device, tmp_path: Path) -> None:
    """Operations on constants of a kernel divide and shift as those on values do. Python's own errors for zero divisors
    and negative shifts do not occur."""
    floats = [(a, b) for a in (3.0, -3.0, 0.0, -0.0) for b in (0.0, -0.0, 2.0)]
    ints = [(op, a, b) for op in ("//", "%", "<<", ">>") for a in (7, -7, 0) for b in (0, -1)]
    ints = [(op, a, b) for op, a, b in ints if b == 0 or op in ("<<", ">>")]
    lines = [f"        q[{i}, t], q[{i + len(floats)}, t] = {a} / {b}, v[{i}, 0] / v[{i}, 1]" for i, (a, b) in enumerate(floats)]
    lines += [
        f"        w[{i}, t], w[{i + len(ints)}, t], w[{i + 2 * len(ints)}, t] = {a} {op} {b}, k[{i}] {op} {b}, k[{i}] {op} d[{i}]"
        for i, (op, a, b) in enumerate(ints)
    ]
    head = f"""
@mlafix.kernel(allow={{"bounds"}})
def folded(q: Out[f32, "s={2 * len(floats)} n"], w: Out[i32, "w={3 * len(ints)} n"], v: In[f32, "f two=2"], k: In[i32, "i"], d: In[i32, "i"]):
    for t in grid("n"):
"""
    kernel = load(tmp_path, head + "\n".join(lines) + "\n").folded
    outputs = [np.empty((2 * len(floats), 1), np.float32), np.empty((3 * len(ints), 1), np.int32)]
    k, d = (np.array(side, np.int32) for side in list(zip(*ints))[1:])
    q, w = run(device, kernel, outputs, np.array(floats, np.float32), k, d)
    np.testing.assert_array_equal(q[: len(floats)], q[len(floats) :])
    assert (np.signbit(q[: len(floats)]) == np.signbit(q[len(floats) :]))[~np.isnan(q[: len(floats)])].all()
    assert np.isinf(q).any() and np.isnan(q).any()
    folded, half, values = np.split(w[:, 0], 3)
    assert folded.tolist() == half.tolist() == values.tolist()
    assert folded.tolist()[:6] == [7, -7, 0, 0, 0, 0]


def test_where_with_a_constant_condition_has_the_type_of_both(device: Device, tmp_path: Path) -> None:
    kernel = load(tmp_path, CHOSEN).chosen
    x, k = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([1, 0, 2**40], np.int64)
    y, z = run(device, kernel, [np.empty_like(x), np.empty_like(k)], x, k)
    np.testing.assert_array_equal(y, np.where(k[:, None] > 0, 5.0, x).astype(np.float32))
    assert z.tolist() == [3, 2, 2**40 + 2]


LOOKS_AHEAD = """
@mlafix.inline
def following(c, t):
    return c[t + 1] + 1


@mlafix.kernel
def looks_ahead(y: Out[i32, "n"], c: In[i32, "m"]):
    for t in grid("n"):
        y[t] = following(c, t) if t + 1 < c.shape[0] else -1
"""


def test_memory_that_an_inline_function_would_not_read_is_not_read(tmp_path: Path) -> None:
    """An inline function is called in one branch of a conditional expression. Its load has the condition as its
    predicate. The results alone would not show an unpredicated load, since its value is not selected."""
    kernel = load(tmp_path, LOOKS_AHEAD).looks_ahead
    (line,) = [line for line in kernel.ir("canonical").splitlines() if "mlafix.load" in line]
    assert " if %" in line, line
    y = np.zeros(3, np.int32)
    kernel(y, np.array([1, 2, 3], np.int32))
    assert y.tolist() == [3, 4, -1]
