"""Elements of fp8 and of 8-bit integers in memory: reads of every code, and stores of every number and of the ties
between neighbours."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from devices import Device
from numerics import E4M3, E5M2, FORMATS, round_to
from sources import load

import mlafix

FP8 = {"f8e4m3fn": E4M3, "f8e5m2": E5M2}
BYTES = {"i8": np.dtype(np.int8), "u8": np.dtype(np.uint8)}

TEXT = """
@mlafix.kernel
def move(y: Out[U, "n D"], z: Out[U, "n"], x: In[T, "n D"], one: In[T, "n"]):
    for t in grid("n"):
        y[t] = x[t]
        z[t] = one[t]


@mlafix.kernel
def narrow(y: Out[DTYPE, "n D"], z: Out[DTYPE, "n"], x: In[SOURCE, "n D"], one: In[SOURCE, "n"]):
    for t in grid("n"):
        y[t] = x[t]
        z[t] = one[t]


@mlafix.kernel
def constants(y: Out[DTYPE, "n D"], z: Out[DTYPE, "n D"], large: Out[DTYPE, "n D"], inf: Out[DTYPE, "n D"], nan: Out[DTYPE, "n D"]):
    for t in grid("n"):
        y[t] = f32(splat(66756, "D"))
        z[t] = f32(splat(-66756, "D"))
        large[t] = 3e38
        inf[t] = -math.inf
        nan[t] = math.nan


@mlafix.kernel
def chosen(y: Out[f8e5m2, "n D"], x: In[f8e5m2, "n D"], p: In[bool_, "n"]):
    for t in grid("n"):
        v = x[t]
        if p[t]:
            v = -v
        y[t] = v
"""
HEADER = """import math
import mlafix
from mlafix.dsl import *

T, U = DType("T"), DType("U")
"""


def made(folder: Path, dtype: str = "f8e4m3fn", source: str = "f32"):
    return load(folder, TEXT.replace("DTYPE", dtype).replace("SOURCE", source), HEADER)


def run(device: Device, kernel: mlafix.Kernel, out: np.dtype, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Runs the kernel on rows and on single elements. Returns both results in the shape of the rows."""
    rows, ones = device.poisoned(x.shape, out), device.poisoned((x.size,), out)
    flat = x.ravel()
    kernel(rows, device.poisoned(x.shape[:1], out), device.put(x), device.put(np.ascontiguousarray(x[:, 0])))
    kernel(device.poisoned((x.size, 1), out), ones, device.put(flat.reshape(-1, 1)), device.put(flat))
    return np.array(device.get(rows)), np.array(device.get(ones)).reshape(x.shape)


@pytest.mark.parametrize("size", [16, 5, 1])
@pytest.mark.parametrize("dtype", FP8)
def test_every_code_is_read_as_its_number(tmp_path: Path, device: Device, dtype: str, size: int) -> None:
    codes = np.resize(np.arange(256, dtype=np.uint8), (-(-256 // size), size)).view(FP8[dtype])
    want = codes.astype(np.float32)
    for got in run(device, made(tmp_path).move, np.dtype(np.float32), codes):
        nan = np.isnan(want)
        assert np.isnan(got[nan]).all()
        np.testing.assert_array_equal(got.view(np.uint32)[~nan], want.view(np.uint32)[~nan])


def neighbours(numbers: np.ndarray) -> np.ndarray:
    """Returns f32 numbers of both signs: the given numbers, the ties between them, the f32 neighbours of each, numbers
    beyond the range, and NaN."""
    numbers = np.unique(np.abs(numbers[np.isfinite(numbers)]).astype(np.float64))
    points = np.concatenate([numbers, (numbers[1:] + numbers[:-1]) / 2, [1e-44, 1e30, 3.4e38, np.inf]]).astype(np.float32)
    near = np.concatenate([points, np.nextafter(points, np.float32(np.inf)), np.nextafter(points, np.float32(0))])
    return np.concatenate([near, -near, [np.nan]]).astype(np.float32)


@pytest.mark.parametrize("size", [16, 5])
@pytest.mark.parametrize("dtype", FP8)
def test_every_number_and_every_tie_is_rounded_to_even(tmp_path: Path, device: Device, dtype: str, size: int) -> None:
    """Stores round to nearest even. They saturate, also for infinities, and NaN stays NaN."""
    codes = np.arange(256, dtype=np.uint8).view(FP8[dtype]).astype(np.float32)
    x = neighbours(np.concatenate([codes, [FORMATS[FP8[dtype]].largest * 17 / 16]]))
    x = np.resize(x, (-(-x.size // size), size))
    want = round_to(FP8[dtype], x.astype(np.float64)).astype(np.float32).astype(FP8[dtype])
    for got in run(device, made(tmp_path, dtype).narrow, FP8[dtype], x):
        nan = np.isnan(x)
        assert np.isnan(got[nan].astype(np.float32)).all()
        np.testing.assert_array_equal(got.view(np.uint8)[~nan], want.view(np.uint8)[~nan])


@pytest.mark.parametrize("dtype", FP8)
def test_constants_saturate(tmp_path: Path, device: Device, dtype: str) -> None:
    """Constants saturate like values. MLIR's own fold of a constant's conversion would give NaN or infinity."""
    got = [device.poisoned((3, 8), FP8[dtype]) for _ in range(5)]
    made(tmp_path, dtype).constants(*got)
    y, z, large, inf, nan = (np.array(device.get(a)).astype(np.float32) for a in got)
    most = FORMATS[FP8[dtype]].largest
    assert (y == most).all() and (z == -most).all() and (large == most).all() and (inf == -most).all() and np.isnan(nan).all()


def test_an_infinity_that_was_read_saturates_as_others_do(tmp_path: Path, device: Device) -> None:
    """A stored infinity saturates even if it was read from the same dtype. A conversion and its reverse may fold away,
    which must not change the result."""
    module = made(tmp_path)
    x = np.array([np.inf, -np.inf, 57344.0, np.nan, 1.0, -0.0, 2.0**-16, 3.0], np.float32).astype(E5M2).reshape(1, 8)
    want = np.array([57344, -57344, 57344, np.nan, 1, -0.0, 2.0**-16, 3], np.float32)
    for got in run(device, module.move, E5M2, x):
        np.testing.assert_array_equal(got.astype(np.float32).ravel(), want)
    y = device.poisoned((2, 8), E5M2)
    module.chosen(y, device.put(np.repeat(x, 2, axis=0)), device.put(np.array([True, False])))
    np.testing.assert_array_equal(np.array(device.get(y)).astype(np.float32), np.stack([-want, want]))


@pytest.mark.parametrize("size", [16, 5])
@pytest.mark.parametrize("dtype", BYTES)
def test_floats_become_the_nearest_byte(tmp_path: Path, device: Device, rng: np.random.Generator, dtype: str, size: int) -> None:
    """Stores to integers round to nearest even and saturate. NaN becomes 0."""
    x = np.concatenate([neighbours(np.arange(300)), rng.normal(0, 100, 1000), [2.0**23 + 1, -(2.0**31), 2.0**31, 2.0**32]]).astype(np.float32)
    x = np.resize(x, (-(-x.size // size), size))
    info = np.iinfo(BYTES[dtype])
    want = np.clip(np.rint(np.nan_to_num(x.astype(np.float64), nan=0)), info.min, info.max).astype(BYTES[dtype])
    for got in run(device, made(tmp_path, dtype).narrow, BYTES[dtype], x):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("source", ["i32", "i64"])
@pytest.mark.parametrize("dtype", BYTES)
def test_integers_become_the_nearest_byte(tmp_path: Path, device: Device, rng: np.random.Generator, dtype: str, source: str) -> None:
    width = np.dtype(source.replace("i", "int"))
    ends = np.iinfo(width)
    x = np.concatenate([np.arange(-300, 300), [ends.min, ends.max, 2**16, 2**31 - 1, -(2**31)], rng.integers(ends.min, ends.max, 395)]).astype(width)
    info = np.iinfo(BYTES[dtype])
    for got in run(device, made(tmp_path, dtype, source).narrow, BYTES[dtype], x.reshape(-1, 8)):
        np.testing.assert_array_equal(got, np.clip(x, info.min, info.max).astype(BYTES[dtype]).reshape(-1, 8))


@pytest.mark.parametrize("target", [ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("dtype", FP8)
def test_codes_pass_through_f32_to_other_floats(tmp_path: Path, device: Device, dtype: str, target: type) -> None:
    codes = np.arange(256, dtype=np.uint8).view(FP8[dtype]).reshape(16, 16)
    want = codes.astype(np.float32).astype(target)
    for got in run(device, made(tmp_path).move, np.dtype(target), codes):
        np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))


def test_a_watched_launch_does_not_take_a_float_for_the_byte_that_is_stored(tmp_path: Path) -> None:
    kernel = load(tmp_path, """
@mlafix.kernel
def k(y: InOut[i8, "n"], out: InOut[f32, "m"], x: In[T, "n"]):
    for t in grid("n"):
        y[t] = x[t]
        out[index(i32(y[t]))] = 1.0
""", HEADER).k  # fmt: skip
    out = np.zeros(4, np.float32)
    report = kernel.debug(np.zeros(3, np.int8), out, np.array([0, 1, 2], np.float32).astype(E4M3))
    assert not report.faults and report.unknown_rows == 3


@pytest.mark.parametrize("expression, op", [
    ("x[t] + 1", "+"), ("2 * x[t]", "*"), ("k + one[t]", "+"), ("-x[t]", "-"), ("abs(x[t])", "abs"), ("max(x[t], one[t])", "max"),
    ("x[t] & 3", "and"), ("one[t] / one[t]", "/"),
])  # fmt: skip
@pytest.mark.parametrize("dtype", BYTES)
def test_arithmetic_on_bytes_is_an_error_that_names_the_conversion(tmp_path: Path, dtype: str, expression: str, op: str) -> None:
    text = f'''
@mlafix.kernel
def k(y: Out[{dtype}, "n D"], x: In[{dtype}, "n D"], one: In[{dtype}, "n"], k: i32):
    for t in grid("n"):
        y[t] = {expression}
'''
    message = f"expected i32, i64, index or f32 for '{re.escape(op)}', got (a row of )?{dtype}.*; i32\\(…\\) and f32\\(…\\) convert bytes"
    with pytest.raises(mlafix.CompileError, match=message):
        load(tmp_path, text).k.source  # noqa: B018
