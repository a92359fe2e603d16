"""iota gives each element's index; argmax and argmin give the index of an extreme element; a sum can select one
element."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from devices import Device
from numerics import BF16, F16
from sources import load, underlined

import mlafix

TEXT = """
@mlafix.kernel
def k(ids: Out[i32, "n D"], masked: Out[f32, "n D"], best: Out[i32, "n"], least: Out[i32, "n"], top: Out[f32, "n"],
      most: Out[i32, "n"], x: In[f32, "n D"], y: In[i32, "n D"], lens: In[i32, "n"]):
    for t in grid("n"):
        i = iota("D")
        ids[t] = i
        masked[t] = where(i < lens[t], x[t], -math.inf)
        best[t] = argmax(x[t])
        least[t] = argmin(x[t])
        top[t] = x[t, argmax(x[t])]
        most[t] = argmax(y[t])


@mlafix.kernel
def narrow(best: Out[i32, "n"], least: Out[i32, "n"], x: In[T, "n D"]):
    for t in grid("n"):
        best[t] = argmax(x[t])
        least[t] = argmin(x[t])


@mlafix.kernel
def spans(y: Out[i32, "n"], ends: In[i32, "n"]):
    for t in grid("n"):
        count = 0
        for i in range(t, ends[t]):
            count += 1
        y[t] = count
"""


def first(rows: np.ndarray, largest: bool) -> np.ndarray:
    """Returns the index of the first extreme element of each row. NaN counts as the extreme, and zeros of both signs
    are equal."""
    extreme = np.nanmax if largest else np.nanmin
    found = []
    for row in rows:
        nan = np.flatnonzero(np.isnan(row))
        found.append(nan[0] if nan.size else np.flatnonzero(row == extreme(row))[0])
    return np.array(found)


@pytest.mark.parametrize("size", [1, 5, 16, 100, 128, 4112])
def test_indices_of_elements(tmp_path: Path, device: Device, rng: np.random.Generator, size: int) -> None:
    rows = 40
    x = rng.integers(-3, 4, (rows, size)).astype(np.float32) * rng.choice([1.0, -0.0], (rows, size))
    special = rng.random((rows, size)) < 1 / size
    x = np.where(special, rng.choice([np.nan, np.inf, -np.inf], (rows, size)), x).astype(np.float32)
    x[0], x[1], x[2], x[3], x[4] = -np.inf, np.nan, 0, np.inf, -np.inf
    x[3, -1] = x[4, -1] = np.nan  # a NaN after infinities
    x[5], x[6] = (rng.choice(np.array(of, np.float32), size) for of in ([1e-45, -1e-45, 0.0, -0.0], [3.4028235e38, 3.4028233e38, -3.4028235e38]))
    y, lens = rng.integers(-2, 3, (rows, size)).astype(np.int32), rng.integers(-1, size + 2, rows).astype(np.int32)
    y[0], y[1] = -(2**31), 2**31 - 1
    shapes = [((rows, size), np.int32), ((rows, size), np.float32), *(((rows,), np.dtype(d)) for d in ("i4", "i4", "f4", "i4"))]
    outputs = [device.poisoned(shape, dtype) for shape, dtype in shapes]
    load(tmp_path, TEXT).k(*outputs, device.put(x), device.put(y), device.put(lens))
    ids, masked, best, least, top, most = (np.array(device.get(o)) for o in outputs)
    np.testing.assert_array_equal(ids, np.broadcast_to(np.arange(size), ids.shape))
    np.testing.assert_array_equal(masked, np.where(np.arange(size) < lens[:, None], x, -np.inf))
    np.testing.assert_array_equal(best, first(x, True))
    np.testing.assert_array_equal(least, first(x, False))
    np.testing.assert_array_equal(top, x[np.arange(rows), best])
    np.testing.assert_array_equal(most, first(y.astype(np.float64), True))


@pytest.mark.parametrize(("dtype", "size"), [(BF16, 64), (BF16, 2048), (F16, 16384), (BF16, 16392), (BF16, 32000)])
def test_indices_of_narrow_extremes(tmp_path: Path, device: Device, rng: np.random.Generator, dtype: type, size: int) -> None:
    """In most rows, only some lanes hold an element that equals the extreme. In rows 3 and 5, all elements are equal,
    so all lanes hold one."""
    x = rng.choice([-2.0, -1.0, -0.0, 0.0, 1.0, 2.0], (6, size), p=[1 / size, 0.2, 0.3, 0.3, 0.2 - 2 / size, 1 / size]).astype(dtype)
    x[1, size - 1], x[2, 0], x[3], x[5] = np.nan, -np.inf, -np.inf, 1.0
    best, least = (device.poisoned((6,), np.int32) for _ in range(2))
    load(tmp_path, TEXT).narrow(best, least, device.put(x))
    np.testing.assert_array_equal(device.get(best), first(x.astype(np.float64), True))
    np.testing.assert_array_equal(device.get(least), first(x.astype(np.float64), False))


TAKEN = """
@mlafix.kernel
def taken(y: Out[f32, "n"], z: Out[i32, "n"], one: Out[f32, "n"], x: In[T, "n D"], k: In[i32, "n D"], labels: In[i32, "n"]):
    for t in grid("n"):
        label = labels[t]
        y[t] = sum(where(iota("D") == label, f32(x[t]) * 0.5, 0.0))
        z[t] = sum(where(label == iota("D"), k[t] + iota("D"), 0))
        one[t] = sum(where(iota("D") == label, load(x[t], where=t < 5, otherwise=3.0), 0.0))


@mlafix.kernel
def summed(y: Out[f32, "n"], x: In[T, "n D"]):
    for t in grid("n"):
        row = f32(x[t])
        y[t] = sum(exp(row - max(row)))
"""


@pytest.mark.parametrize("size", [1, 2, 8, 100, 512, 4112])
def test_a_sum_of_one_element_takes_it(tmp_path: Path, device: Device, rng: np.random.Generator, size: int) -> None:
    labels = np.array([0, size - 1, size // 2, -1, size, -(2**31), 2**31 - 1, 0, size - 1], np.int32)
    n = len(labels)
    x, k = rng.standard_normal((n, size)).astype(np.float32), rng.integers(-(2**31), 2**31 - 1, (n, size)).astype(np.int32)
    x[7], x[8] = -0.0, np.nan
    y, one = (device.poisoned((n,), np.float32) for _ in range(2))
    z = device.poisoned((n,), np.int32)
    load(tmp_path, 'from mlafix.dsl import DType\nT = DType("T")\n' + TAKEN).taken(y, z, one, device.put(x), device.put(k), device.put(labels))
    here = np.arange(size) == labels[:, None]
    with np.errstate(over="ignore"):
        elements = np.where(here, k + np.arange(size, dtype=np.int32), 0).sum(1, dtype=np.int32)
    np.testing.assert_array_equal(device.get(z), elements)
    inside = here.any(1)
    expected = np.where(inside, np.where(here, x * np.float32(0.5), 0).sum(1), 0).astype(np.float32)
    np.testing.assert_array_equal(device.get(y), expected)
    assert np.signbit(device.get(y)[7]) == (size == 1), "the sum of zeros of both signs is +0"
    read = np.where(np.arange(n)[:, None] < 5, x, 3).astype(np.float32)
    np.testing.assert_array_equal(device.get(one), np.where(inside, np.where(here, read, 0).sum(1), 0).astype(np.float32))


@pytest.mark.parametrize("size", [1, 8, 512, 4112])
def test_sums_of_exponentials(tmp_path: Path, device: Device, rng: np.random.Generator, size: int) -> None:
    x = (40 * rng.standard_normal((8, size))).astype(np.float32)
    x[1], x[2, size // 2], x[3, 0], x[4] = -np.inf, -np.inf, np.inf, np.nan
    # in row 5, the exponentials of all elements but the first are tiny or zero
    x[5] = x[5].max() - rng.uniform(80, 120, size).astype(np.float32)
    x[5, 0] = x[5].max() + 100
    x[6] = -3e38
    y = device.poisoned((8,), np.float32)
    load(tmp_path, 'from mlafix.dsl import DType\nT = DType("T")\n' + TAKEN).summed(y, device.put(x))
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
        expected = np.exp(wide - wide.max(1, keepdims=True)).sum(1)
    np.testing.assert_allclose(device.get(y), expected, rtol=2e-6)


@pytest.mark.parametrize("chip", ["sm_75", "sm_90"])
@pytest.mark.parametrize("size", [5, 128, 4112, 20000])
def test_indices_of_elements_assemble_for_gpus(tmp_path: Path, chip: str, size: int) -> None:
    assert load(tmp_path, TEXT).k.compile(chip, D=size).kernels[0].targets == [chip]


@pytest.mark.parametrize("wrong, message, place", [
    ("iota(4)", "expected the name of a dim that rows lie along", "4"),
    ("iota()", r'expected iota\("D"\), got no \'dim\'', "iota()"),
    ("argmax(1.0)", "expected a row to reduce, got 1.0", "1.0"),
    ("argmin(x[t], y[t])", r"expected argmin\(row, along=…\), got 2 arguments", "argmin(x[t], y[t])"),
    ("argmax(x[t] > 0)", "expected a row of f32 or i32|'argmax'", "x[t] > 0"),
])  # fmt: skip
def test_wrong_uses_are_underlined(tmp_path: Path, wrong: str, message: str, place: str) -> None:
    with pytest.raises(mlafix.CompileError, match=message) as caught:
        load(tmp_path, TEXT.replace("argmin(x[t])", wrong)).k.ir("source")
    assert underlined(str(caught.value)) == place


def test_an_integer_beside_an_index_bounds_a_loop(tmp_path: Path) -> None:
    y, ends = np.zeros(6, np.int32), np.array([3, 1, -4, 7, 5, 9], np.int32)
    load(tmp_path, TEXT).spans(y, ends)
    np.testing.assert_array_equal(y, np.maximum(ends - np.arange(6), 0))
