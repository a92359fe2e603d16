"""Kernels in which independent blocks each process a part of a long row, along a fixed dim or along a bounded one. Results
are compared with numpy."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from devices import Device
from numerics import BF16, F32

# Each kernel exists for two dims: the size of V is bound at compile time, that of w is only known at the launch.
TEXT = "".join(
    """
@mlafix.kernel
def copy_NAME(y: Out[T, "n DIM"], x: In[T, "n NAME"]):
    for t in grid("n"):
        y[t] = x[t]


@mlafix.kernel
def scaled_NAME(x: InOut[T, "n DIM"], ends: Out[f32, "n"], scales: In[f32, "n"]):
    for t in grid("n"):
        x[t] = f32(x[t]) * scales[t]
        ends[t] = scales[t] + 1.0


@mlafix.kernel
def masked_NAME(y: Out[T, "n DIM"], x: In[T, "n NAME"], allowed: In[u8, "n NAME"], counts: In[i32, "n NAME"], penalty: In[f32, "n"]):
    for t in grid("n"):
        row = f32(x[t])
        less = where(row > 0.0, row / penalty[t], row * penalty[t])
        y[t] = where(allowed[t] != 0, where(counts[t] > 0, less, row), -math.inf)


@mlafix.kernel
def placed_NAME(y: InOut[f32, "m H DIM"], x: In[f32, "n H NAME"], slots: In[i32, "n"]):
    distinct(slots)
    for t, h in grid("n", "H"):
        y[slots[t], h] = x[t, h] + f32(iota("NAME"))
""".replace("NAME", name).replace("DIM", dim)
    for name, dim in (("V", "V"), ("w", "w<=40000"))
) + """
@mlafix.kernel
def two(y: Out[f32, "n V"], z: Out[bf16, "n D"], x: In[f32, "n V"]):
    for t in grid("n"):
        y[t] = x[t] + 1.0
        z[t] = splat(2.0, "D")
"""


def drawn(rng: np.random.Generator, rows: int, size: int, dtype: np.dtype) -> np.ndarray:
    return (rng.standard_normal((rows, size)) * 3).astype(dtype)


# Sizes that fill whole blocks, sizes with a partial last block, odd sizes, a short row, and an empty row.
SIZES = {"V": [32768, 33000, 20001], "w": [32768, 40000, 33000, 20001, 4104, 5, 0]}
CASES = [(name, size) for name, sizes in SIZES.items() for size in sizes]


@pytest.mark.parametrize("name, size", CASES)
@pytest.mark.parametrize("dtype", [BF16, F32], ids=str)
def test_rows_are_copied(kernels: ModuleType, device: Device, rng: np.random.Generator, name: str, size: int, dtype: np.dtype) -> None:
    x = drawn(rng, 3, size, dtype)
    y = device.poisoned(x.shape, dtype)
    getattr(kernels, f"copy_{name}")(y, device.put(x))
    assert device.get(y).tobytes() == x.tobytes()


@pytest.mark.parametrize("name, size", CASES)
def test_scalars_beside_a_row_in_place(kernels: ModuleType, device: Device, rng: np.random.Generator, name: str, size: int) -> None:
    """Scalars beside a row are stored exactly once, also if the row has no elements."""
    x, scales = drawn(rng, 2, size, F32), np.array([0.5, -2.0], np.float32)
    given, ends = device.put(x.copy()), device.poisoned((2,), F32)
    getattr(kernels, f"scaled_{name}")(given, ends, device.put(scales))
    np.testing.assert_array_equal(device.get(given), x * scales[:, None])
    np.testing.assert_array_equal(device.get(ends), scales + 1)


@pytest.mark.parametrize("name, size", CASES)
def test_a_mask_and_a_penalty(kernels: ModuleType, device: Device, rng: np.random.Generator, name: str, size: int) -> None:
    x = drawn(rng, 2, size, BF16)
    allowed, counts = (rng.integers(0, 2, x.shape).astype(dtype) for dtype in (np.uint8, np.int32))
    penalty = np.array([2.0, 0.25], np.float32)
    y = device.poisoned(x.shape, BF16)
    getattr(kernels, f"masked_{name}")(y, *map(device.put, (x, allowed, counts, penalty)))
    row = x.astype(np.float32)
    less = np.where(row > 0, row / penalty[:, None], row * penalty[:, None])
    np.testing.assert_array_equal(device.get(y), np.where(allowed != 0, np.where(counts > 0, less, row), -np.inf).astype(BF16))


@pytest.mark.parametrize("name, size", [("V", 33000), ("w", 33000), ("w", 20001)])
def test_rows_go_where_a_tensor_says(kernels: ModuleType, device: Device, rng: np.random.Generator, name: str, size: int) -> None:
    x, slots = rng.standard_normal((3, 2, size)).astype(np.float32), np.array([2, 0, 3], np.int32)
    y = np.full((4, 2, size), 7, np.float32)
    given = device.put(y)
    getattr(kernels, f"placed_{name}")(given, device.put(x), device.put(slots))
    y[slots] = x + np.arange(size, dtype=np.float32)
    np.testing.assert_array_equal(device.get(given), y)


def test_rows_of_several_lengths(kernels: ModuleType, device: Device, rng: np.random.Generator) -> None:
    x = drawn(rng, 2, 20480, F32)
    y, z = device.poisoned(x.shape, F32), device.poisoned((2, 96), BF16)
    kernels.two(y, z, device.put(x))
    np.testing.assert_array_equal(device.get(y), x + 1)
    np.testing.assert_array_equal(device.get(z), np.full((2, 96), 2, BF16))
