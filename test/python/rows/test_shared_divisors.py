"""Rows divided by one number and stored as fp8. Results equal those of f32 division and a conversion, also at ties
of fp8 and at the limits of f32's range."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from devices import Device
from numerics import E4M3, E5M2
from sources import load

import mlafix

TEXT = """
@mlafix.kernel
def by_group(y: Out[DTYPE, "n (G 16)"], x: In[f32, "n (G 16)"], s: In[f32, "n G"]):
    for t in grid("n"):
        y[t] = x[t] / s[t]


@mlafix.kernel
def by_row(y: Out[DTYPE, "n D"], x: In[f32, "n D"], s: In[f32, "n"]):
    for t in grid("n"):
        y[t] = x[t] / s[t]
"""
FP8 = {"f8e4m3fn": E4M3, "f8e5m2": E5M2}


def quotients(kernel: mlafix.Kernel, device: Device, dtype: np.dtype, x: np.ndarray, s: np.ndarray) -> np.ndarray:
    y = device.poisoned(x.shape, dtype)
    kernel(y, device.put(x), device.put(s))
    return np.array(device.get(y))


def check(got: np.ndarray, x: np.ndarray, s: np.ndarray) -> None:
    """Compares with correctly rounded f32 division followed by a saturating conversion to fp8. The sign of NaN is
    ignored."""
    with np.errstate(all="ignore"):
        exact = x / s.astype(np.float32)
    largest = np.float32(448 if got.dtype == E4M3 else 57344)
    want = np.where(np.isnan(exact), exact, np.clip(exact, -largest, largest)).astype(np.float32).astype(got.dtype)
    nan = np.isnan(exact)
    assert np.isnan(got[nan].astype(np.float32)).all()
    np.testing.assert_array_equal(got.view(np.uint8)[~nan], want.view(np.uint8)[~nan])


@pytest.mark.parametrize("dtype", FP8)
@pytest.mark.parametrize("name", ["by_group", "by_row"])
def test_quotients_beside_ties_are_rounded_once(tmp_path: Path, device: Device, rng: np.random.Generator, name: str, dtype: str) -> None:
    """Quotients next to ties of fp8 are rounded like exact f32 quotients. An error of one f32 unit would move a
    quotient across the tie."""
    codes = np.unique(np.arange(0x7F, dtype=np.uint8).view(FP8[dtype]).astype(np.float64))
    codes = codes[np.isfinite(codes)]
    ties = rng.choice((codes[1:] + codes[:-1]) / 2, (4096, 16))
    s = np.ldexp(rng.uniform(1, 2, (4096, 1)), rng.integers(-60, 45, (4096, 1))).astype(np.float32)
    x = (ties * s).astype(np.float32)
    for _ in range(2):
        x = np.where(rng.random(x.shape) < 0.3, np.nextafter(x, np.float32(np.inf)), x)
        x = np.where(rng.random(x.shape) < 0.3, np.nextafter(x, np.float32(0)), x)
    x = np.copysign(x, rng.normal(size=x.shape)).astype(np.float32)
    kernel = getattr(load(tmp_path, TEXT.replace("DTYPE", dtype)), name)
    got = quotients(kernel, device, FP8[dtype], x, s if name == "by_group" else s[:, 0])
    check(got, x, s)


@pytest.mark.parametrize("dtype", FP8)
def test_the_ends_of_the_range(tmp_path: Path, device: Device, rng: np.random.Generator, dtype: str) -> None:
    """Divides every dividend by every divisor. The numbers are zeros, subnormal numbers, infinities, NaN, and numbers
    at the limits of the range in which a pack is multiplied by one reciprocal."""
    ends = [0.0, 1e-45, 1e-40, 2.0**-126, 2.0**-80, 2.0**-65, 2.0**-64, 1e-10 / 448, 1.0, 3.0, 2.0**61, 2.0**62, 2.0**63, 2.0**64, 2.0**65,
            2.0**126, 3.4e38, np.inf, np.nan]
    points = np.array(ends, np.float32)
    points = np.unique(np.concatenate([points, np.nextafter(points, np.float32(np.inf)), np.nextafter(points, np.float32(0))]))
    points = np.concatenate([points, -points])
    s = points.reshape(-1, 1)
    for _ in range(8):  # A pack uses the reciprocal only if all its elements are in range, so rows are random mixtures.
        x = rng.permuted(np.tile(np.resize(points, 112), (s.shape[0], 1)), axis=1)
        kernel = load(tmp_path, TEXT.replace("DTYPE", dtype)).by_row
        check(quotients(kernel, device, FP8[dtype], x, s[:, 0]), x, s)
        x = np.where(np.abs(x) <= 2.0**62, x, np.float32(1)).astype(np.float32)
        check(quotients(kernel, device, FP8[dtype], x, s[:, 0]), x, s)
