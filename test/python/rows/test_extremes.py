"""Maxima and minima of rows of 16-bit floats, which a GPU computes for two elements at once. Also tests later
computations with these rows. Results are compared with numpy."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from devices import Device
from numerics import BF16, F16, F32
from test_long_rows import check_probabilities, soft, spaced

TEXT = """
@mlafix.kernel
def extremes(most: Out[f32, "n"], least: Out[f32, "n"], size: Out[T, "n"], first: Out[i32, "n"], last: Out[i32, "n"], x: In[T, "n V"]):
    for t in grid("n"):
        row = x[t]
        most[t], least[t], size[t] = max(row), min(row), max(abs(row))
        first[t], last[t] = argmax(row), argmin(row)


@mlafix.kernel
def cross_entropy(y: Out[T, "n V"], loss: Out[f32, "n"], best: Out[i32, "n"], x: In[T, "n V"], labels: In[i32, "n"]):
    for t in grid("n"):
        row = x[t]
        m = max(row)
        powers = exp(row - m)
        s = sum(powers)
        y[t] = powers / s
        loss[t] = m + log(s) - sum(where(iota("V") == labels[t], row, 0.0))
        best[t] = argmax(row)


@mlafix.kernel
def clamped(y: Out[f32, "n V"], most: Out[f32, "n"], x: In[T, "n V"], keep: In[i32, "n"]):
    for t in grid("n"):
        y[t] = min(max(x[t], -0.1), 0.5)
        most[t] = max(load(x[t], where=keep[t] > 0, otherwise=0.1))


@mlafix.kernel
def within(most: Out[f32, "n"], x: In[T, "n V"], last: In[i32, "n"]):
    for t in grid("n"):
        most[t] = max(where(iota("V") <= last[t], x[t], -1.0))
"""

SIZES = [2, 5, 8, 24, 64, 96, 512, 1000, 4096, 8192, 16384, 32000, 50304, 128256]
DTYPES = [BF16, F16]


def hard_rows(rng: np.random.Generator, size: int, dtype: np.dtype) -> np.ndarray:
    """Returns random rows and rows with ties, zeros of both signs, infinities, the smallest subnormal numbers, NaN, and
    equal elements."""
    x = rng.standard_normal((12, size)).astype(dtype)
    x[1, [0, size // 2, size - 1]] = 9
    x[2] = np.where(rng.random(size) < 0.5, 0.0, -0.0)
    x[3] = -0.0
    x[3, size - 1] = 0.0
    x[4, size // 3] = np.inf
    x[5, size - 1] = -np.inf
    x[6] = -np.inf
    x[7, size // 2] = np.nan
    x[8, [0, size - 1]] = np.nan, np.inf
    x[9] = np.array([1, 0x8001], np.uint16).view(dtype)[rng.integers(0, 2, size)]
    x[10] = -3.5
    x[11] = np.nan
    return x


@pytest.mark.parametrize("gap, offset", [(0, 0), (3, 1)])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_extremes_and_where_they_are(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int, dtype: np.dtype, gap: int, offset: int) -> None:
    x = hard_rows(rng, size, dtype)
    most, least = device.poisoned((12,), F32), device.poisoned((12,), F32)
    largest = device.poisoned((12,), dtype)
    first, last = device.poisoned((12,), np.int32), device.poisoned((12,), np.int32)
    kernels.extremes(most, least, largest, first, last, device.put(spaced(x, gap, offset)))
    wide = x.astype(np.float32)
    np.testing.assert_array_equal(device.get(most), wide.max(-1))
    np.testing.assert_array_equal(device.get(least), wide.min(-1))
    np.testing.assert_array_equal(device.get(largest).astype(np.float32), np.abs(wide).max(-1))
    np.testing.assert_array_equal(np.signbit(device.get(most)[2:4]), [not (~np.signbit(wide[2])).any(), False])
    np.testing.assert_array_equal(np.signbit(device.get(least)[2:4]), [np.signbit(wide[2]).any(), size > 1])
    np.testing.assert_array_equal(device.get(first), wide.argmax(-1))
    np.testing.assert_array_equal(device.get(last), wide.argmin(-1))


@pytest.mark.parametrize("gap, offset", [(0, 0), (3, 1)])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_a_row_is_used_after_its_extreme(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int, dtype: np.dtype, gap: int, offset: int) -> None:
    x = (rng.standard_normal((5, size)) * 3).astype(dtype)
    x[1, size - 1] = x[2, 0] = x[2, size // 2] = 40
    labels = rng.integers(0, size, 5).astype(np.int32)
    y, loss, best = device.poisoned(x.shape, dtype), device.poisoned((5,), F32), device.poisoned((5,), np.int32)
    kernels.cross_entropy(y, loss, best, device.put(spaced(x, gap, offset)), device.put(labels))
    want, lse = soft(x)
    check_probabilities(device.get(y), want)
    np.testing.assert_allclose(device.get(loss), lse - x[np.arange(5), labels].astype(np.float64), rtol=4e-6, atol=2e-5)
    np.testing.assert_array_equal(device.get(best), x.astype(np.float32).argmax(-1))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [64, 1000, 32000])
def test_some_elements_do_not_count(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int, dtype: np.dtype) -> None:
    x = rng.standard_normal((6, size)).astype(dtype)
    last = np.array([-1, 0, 1, size // 2, size - 2, size - 1], np.int32)
    most = device.poisoned((6,), F32)
    kernels.within(most, device.put(x), device.put(last))
    want = np.where(np.arange(size) <= last[:, None], x.astype(np.float32), -1.0).max(-1)
    np.testing.assert_array_equal(device.get(most), want)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [8, 24, 1000, 4096])
def test_numbers_that_the_row_cannot_hold(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int, dtype: np.dtype) -> None:
    x = hard_rows(rng, size, dtype)
    keep = np.arange(12, dtype=np.int32) % 2
    y, most = device.poisoned(x.shape, F32), device.poisoned((12,), F32)
    kernels.clamped(y, most, device.put(x), device.put(keep))
    wide = x.astype(np.float32)
    np.testing.assert_array_equal(device.get(y), np.minimum(np.maximum(wide, np.float32(-0.1)), np.float32(0.5)))
    np.testing.assert_array_equal(device.get(most), np.where(keep > 0, wide.max(-1), np.float32(0.1)))
