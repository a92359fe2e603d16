"""Scales of dtype f8e8m0, which are powers of two: reads of every code, stores of every kind of number, and rounding in
a body."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from devices import Device
from numerics import BF16, E4M3, E5M2, E8M0, F16
from sources import load


TEXT = """
@mlafix.kernel
def read(y: Out[f32, "n D"], z: Out[f32, "n"], x: In[f8e8m0, "n D"], one: In[f8e8m0, "n"]):
    for t in grid("n"):
        y[t] = x[t]
        z[t] = one[t]


@mlafix.kernel
def write(y: Out[f8e8m0, "n D"], z: Out[f8e8m0, "n"], x: In[f32, "n D"], one: In[f32, "n"]):
    for t in grid("n"):
        y[t] = x[t]
        z[t] = one[t]


@mlafix.kernel
def constants(y: Out[f8e8m0, "n D"], z: Out[f8e8m0, "n"].fill(0.0), negative: Out[f8e8m0, "n"], large: Out[f8e8m0, "n"], nan: Out[f8e8m0, "n"]):
    for t in grid("n"):
        y[t] = 0.0
        store(z[t], 3.0, where=t == 1)
        negative[t] = -1.5
        large[t] = math.inf
        nan[t] = math.nan


@mlafix.kernel
def unread(y: Out[f32, "n D"], z: Out[f32, "n"], other: Out[f32, "n"], none: Out[f32, "n"], x: In[f8e8m0, "n D"], one: In[f8e8m0, "n"],
           absent: In[f8e8m0, "n"] | None, p: In[bool_, "n"]):
    for t in grid("n"):
        y[t] = load(x[t], where=p[t])
        z[t] = load(one[t], where=p[t])
        other[t] = load(one[t], where=p[t], otherwise=7.0)
        none[t] = absent[t]


@mlafix.kernel
def rounded(y: Out[f32, "n D"], z: Out[f32, "n"], stored: Out[DTYPE, "n D"], one: Out[f32, "n"], x: In[f32, "n D"]):
    for t in grid("n"):
        v = x[t]
        y[t] = DTYPE(v)
        z[t] = DTYPE(x[t, 0])
        stored[t] = v
        one[t] = DTYPE(1.3)


@mlafix.kernel
def column_major(scales: Out[f8e8m0, "n G"], back: Out[f32, "n (G 16)"], x: In[f32, "n (G 16)"], given: In[f32, "n G"]):
    for t in grid("n"):
        scales[t] = max(abs(x[t]), along=16)
        back[t] = x[t] * given[t]


@mlafix.kernel
def moved(y: Out[I, "n D"], x: In[I, "n D"], p: In[bool_, "n"]):
    for t in grid("n"):
        y[t] = load(x[t], where=p[t])
"""


STORED = {"bf16": BF16, "f16": F16, "f8e4m3fn": E4M3, "f8e5m2": E5M2, "f8e8m0": E8M0}


def made(folder: Path, dtype: str = "bf16"):
    return load(folder, TEXT.replace("DTYPE", dtype))


def codes_of(x: np.ndarray) -> np.ndarray:
    """Returns the code of the smallest power of two, from 2^-127 to 2^127, that is at least x. The code of NaN is
    0xff."""
    with np.errstate(invalid="ignore"):  # x may be a signalling NaN
        fraction, exponent = np.frexp(np.maximum(np.nan_to_num(x.astype(np.float64), nan=1.0, posinf=2.0**200), 2.0**-127))
    codes = np.clip(exponent - (fraction == 0.5) + 127, 0, 254)
    return np.where(np.isnan(x), 255, codes).astype(np.uint8)


@pytest.mark.parametrize("size", [16, 1])
def test_every_code_is_read_as_its_power(tmp_path: Path, device: Device, size: int) -> None:
    codes = np.arange(256, dtype=np.uint8).reshape(-1, size)
    x = codes.view(E8M0)
    want = np.where(codes == 255, np.nan, np.ldexp(1.0, codes.astype(np.int32) - 127)).astype(np.float32)
    y, z = device.poisoned(x.shape, np.float32), device.poisoned(x.shape[:1], np.float32)
    made(tmp_path).read(y, z, device.put(x), device.put(np.ascontiguousarray(x[:, 0])))
    np.testing.assert_array_equal(device.get(y), want)
    np.testing.assert_array_equal(device.get(z), want[:, 0])


@pytest.mark.parametrize("size", [16, 5])
def test_numbers_are_rounded_up_and_saturate(tmp_path: Path, device: Device, rng: np.random.Generator, size: int) -> None:
    powers = np.ldexp(np.float32(1), np.arange(-149, 128)).astype(np.float32)
    points = np.concatenate([powers, [0.0, -0.0, 3.4e38, np.inf, np.nan]]).astype(np.float32)
    points = np.concatenate([points, np.nextafter(points, np.float32(np.inf)), np.nextafter(points, np.float32(0)), -points])
    points = np.concatenate([points, rng.integers(0, 2**32, 4000, np.uint32).view(np.float32)])
    x = np.resize(points, (-(-points.size // size), size))
    y, z = device.poisoned(x.shape, E8M0), device.poisoned(x.shape[:1], E8M0)
    made(tmp_path).write(y, z, device.put(x), device.put(np.ascontiguousarray(x[:, 0])))
    np.testing.assert_array_equal(device.get(y).view(np.uint8), codes_of(x))
    np.testing.assert_array_equal(device.get(z).view(np.uint8), codes_of(x[:, 0]))


def test_constants_are_rounded_as_numbers_are(tmp_path: Path, device: Device) -> None:
    """Constants are rounded like values: 0 becomes 2^-127. MLIR's own fold of the conversion of 0 would be wrong, since
    f8e8m0 has no code for zero."""
    y, others = device.poisoned((3, 8), E8M0), [device.poisoned((3,), E8M0) for _ in range(4)]
    made(tmp_path).constants(y, *others)
    z, negative, large, nan = (device.get(array).view(np.uint8).tolist() for array in others)
    assert (device.get(y).view(np.uint8) == 0).all()
    assert (z, negative, large, nan) == ([0, 129, 0], [0] * 3, [254] * 3, [255] * 3)


def test_what_is_not_read_is_zero(tmp_path: Path, device: Device) -> None:
    x = np.full((4, 8), 130, np.uint8).view(E8M0)
    outs = [device.poisoned((4, 8), np.float32), *(device.poisoned((4,), np.float32) for _ in range(3))]
    p = np.array([True, False, True, False])
    made(tmp_path).unread(*outs, device.put(x), device.put(np.ascontiguousarray(x[:, 0])), None, device.put(p))
    y, z, other, none = (device.get(out) for out in outs)
    np.testing.assert_array_equal(y, np.where(p[:, None], np.float32(8), np.float32(0)).repeat(8, 1))
    assert z.tolist() == [8, 0, 8, 0] and other.tolist() == [8, 7, 8, 7] and none.tolist() == [0] * 4


def test_bits_are_moved(tmp_path: Path, device: Device) -> None:
    codes = np.arange(256, dtype=np.uint8).reshape(16, 16)
    y, p = device.poisoned((16, 16), E8M0), np.arange(16) % 3 > 0
    made(tmp_path).moved(y, device.put(codes.view(E8M0)), device.put(p))
    np.testing.assert_array_equal(device.get(y).view(np.uint8), np.where(p[:, None], codes, 0))


@pytest.mark.parametrize("size", [16, 5, 200])
@pytest.mark.parametrize("dtype", STORED)
def test_a_number_rounded_in_a_body_is_what_a_store_leaves(tmp_path: Path, device: Device, rng: np.random.Generator, dtype: str, size: int) -> None:
    x = (rng.standard_normal((50, size)) * 10.0 ** rng.integers(-8, 6, (50, 1))).astype(np.float32)
    x[:, 0] = np.resize([0.0, -0.0, np.inf, -np.inf, np.nan, 449.0, -70000.0, 1e-40, 3.0], 50)
    y, z, one = device.poisoned(x.shape, np.float32), device.poisoned((50,), np.float32), device.poisoned((50,), np.float32)
    stored = device.poisoned(x.shape, STORED[dtype])
    made(tmp_path, dtype).rounded(y, z, stored, one, device.put(x))
    want = np.array(device.get(stored)).astype(np.float32)
    np.testing.assert_array_equal(device.get(y), want)
    np.testing.assert_array_equal(device.get(z), want[:, 0])
    constant = 2.0 if dtype == "f8e8m0" else np.float32(1.3).astype(STORED[dtype]).astype(np.float32)
    assert (device.get(one) == constant).all()


@pytest.mark.parametrize("groups", [1, 3, 8])
def test_an_element_a_group_has_any_stride(tmp_path: Path, device: Device, rng: np.random.Generator, groups: int) -> None:
    x = rng.standard_normal((21, groups * 16)).astype(np.float32)
    given = rng.standard_normal((groups, 24)).astype(np.float32)[:, :21].T
    memory = device.put(np.full((groups, 24), 255, np.uint8).view(E8M0))
    back = device.poisoned(x.shape, np.float32)
    made(tmp_path).column_major(memory[:, :21].T, back, device.put(x), device.put(given))
    got = np.array(device.get(memory)).view(np.uint8)
    np.testing.assert_array_equal(got[:, :21].T, codes_of(np.abs(x.reshape(21, groups, 16)).max(2)))
    assert (got[:, 21:] == 255).all()
    np.testing.assert_array_equal(device.get(back), x * np.repeat(given, 16, 1))
