"""Kernels with rows along several dims, and long rows that a lane processes in loops. Results are compared with
numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import Device
from sources import load

# Inputs are small whole numbers, so results are exact in f32. `acc` is carried by a loop, and `kept` is the result of a
# branch.
TWO_DIMS = """
@mlafix.kernel
def k(y: Out[f32, "n D"], z: Out[f32, "n E"], peaks: Out[f32, "n"], x: In[T, "n D"], w: In[T, "n E"], c: In[i32, "n"]):
    for t in grid("n"):
        v = x[t]
        u = w[t]
        peak = max(v)
        e = abs(v - peak)
        acc = u
        for i in range(c[t]):
            acc = acc + load(w[t], where=i < 2)
        if c[t] > 1:
            kept = acc + max(e)
            shifted = e
        else:
            kept = u
            shifted = e + max(acc)
        y[t] = shifted + sum(kept)
        z[t] = kept + sum(v)
        peaks[t] = peak
"""


def two_dims(x: np.ndarray, w: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    v, u, many = x.astype(np.float64), w.astype(np.float64), (c > 1)[:, None]
    peak = v.max(1, keepdims=True)
    e = np.abs(v - peak)
    acc = u * (1 + np.minimum(c, 2))[:, None]
    kept = np.where(many, acc + e.max(1, keepdims=True), u)
    shifted = np.where(many, e, e + acc.max(1, keepdims=True))
    return shifted + kept.sum(1, keepdims=True), kept + v.sum(1, keepdims=True), peak[:, 0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dims")


def check(device: Device, kernel: Any, outputs: list[np.ndarray], inputs: list[np.ndarray], want: Any) -> None:
    given = [device.put(array) for array in (*outputs, *inputs)]
    kernel(*given)
    for made, wanted in zip(given, want):
        np.testing.assert_array_equal(device.get(made).astype(np.float64), wanted)


SIZES = [(33, 2048), (2048, 33), (32, 2048), (1, 256), (7, 5), (128, 128), (96, 80), (65536, 33), (4097, 4096), (20, 1000)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["f32", "f16"])
def test_rows_along_two_dims(
    folder: Path, rng: np.random.Generator, device: Device, sizes: tuple[int, int], dtype: Any
) -> None:
    n = 5
    x, w = (rng.integers(-8, 9, (n, size)).astype(dtype) for size in sizes)
    c = rng.integers(0, 4, n).astype(np.int32)
    outputs = [np.full((n, size), np.nan, np.float32) for size in sizes] + [np.full(n, np.nan, np.float32)]
    check(device, load(folder, TWO_DIMS).k, outputs, [x, w, c], two_dims(x, w, c))


# With this number of operations, rows of 65536 elements do not fit in registers, so a lane processes them in loops.
LONG = """
@mlafix.kernel
def k(y: Out[f32, "n D"], peaks: Out[f32, "n"], x: In[f32, "n D"], c: In[i32, "n"]):
    for t in grid("n"):
        v = x[t]
        for step in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0):
            v = abs(v - step) + min(v, step)
        peak = max(v)
        acc = v - peak
        for i in range(c[t]):
            acc = max(acc, x[t])
        y[t] = acc + sum(x[t])
        peaks[t] = peak
"""


def long_rows(x: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    v = x.astype(np.float64)
    for step in range(1, 9):
        v = np.abs(v - step) + np.minimum(v, step)
    peak = v.max(1, keepdims=True)
    acc = np.where((c > 0)[:, None], np.maximum(v - peak, x), v - peak)
    return acc + x.astype(np.float64).sum(1, keepdims=True), peak[:, 0]


@pytest.mark.parametrize("size", [65536, 65521])
def test_rows_too_long_to_hold_at_once(folder: Path, rng: np.random.Generator, device: Device, size: int) -> None:
    n = 3
    x, c = rng.integers(-8, 9, (n, size)).astype(np.float32), np.array([0, 1, 2], np.int32)
    outputs = [np.full((n, size), np.nan, np.float32), np.full(n, np.nan, np.float32)]
    check(device, load(folder, LONG).k, outputs, [x, c], long_rows(x, c))
