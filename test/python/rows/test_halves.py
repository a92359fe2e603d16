"""Tests f4e2m1, which packs two elements into a byte: reads of every code, conversions of numbers, and calls that are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from devices import Device
from numerics import BF16, F32
from packing import MAGNITUDES, codes_of, packed
from sources import load

from mlafix.errors import ArgumentError, CompileError

TEXT = """
@mlafix.kernel
def write(y: Out[f4e2m1, "n D"], x: In[T, "n D"]):
    for t in grid("n"):
        y[t] = x[t]


@mlafix.kernel
def read(y: Out[f32, "n D"], x: In[f4e2m1, "n D"], p: In[bool_, "n"] | None):
    for t in grid("n"):
        y[t] = load(x[t], where=p is None or p[t])


@mlafix.kernel
def element(y: Out[f32, "n"], x: In[f4e2m1, "n D"], places: In[i32, "n"]):
    for t in grid("n"):
        y[t] = (x[t] * 2.0)[places[t]]


@mlafix.kernel
def copy(y: Out[f4e2m1, "n H D"], x: In[f4e2m1, "n H D"], p: In[bool_, "n"]):
    for t, h in grid("n", "H"):
        y[t, h] = load(x[t, h], where=p[t])


@mlafix.kernel
def constants(a: Out[f4e2m1, "n D"], b: Out[f4e2m1, "n D"], c: Out[f4e2m1, "n D"], d: Out[f4e2m1, "n D"]):
    for t in grid("n"):
        a[t] = 0.0
        b[t] = -1e30
        c[t] = math.nan
        d[t] = 2.5


@mlafix.kernel
def scaled(y: Out[f4e2m1, "n H (G 16)"], scales: Out[f8e4m3fn, "n H G"], x: In[T, "n H (G 16)"]):
    for t, h in grid("n", "H"):
        row = f32(x[t, h])
        scales[t, h] = max(abs(row), along=16)
        y[t, h] = row

"""



def points(rng: np.random.Generator) -> np.ndarray:
    """Returns f32 numbers: all magnitudes of f4e2m1, the ties between magnitudes, the f32 neighbours of magnitudes and
    ties, special numbers and arbitrary bits."""
    ties = (MAGNITUDES[1:] + MAGNITUDES[:-1]) / 2
    special = [0.0, 1e-45, 1e-38, 0.2, 6.5, 1e30, np.inf, np.nan]
    exact = np.concatenate([MAGNITUDES, ties, special]).astype(np.float32)
    around = np.concatenate([exact, np.nextafter(exact, np.float32(9)), np.nextafter(exact, np.float32(-9))])
    some = np.concatenate([rng.integers(0, 2**32, 3000, np.uint32).view(np.float32), rng.uniform(-7, 7, 3000).astype(np.float32)])
    quiet = np.where(np.isnan(some), np.float32(np.nan), some)
    return np.concatenate([around, -around, quiet]).astype(np.float32)


@pytest.mark.parametrize("size", [2, 6, 16, 64, 128, 512, 4098])
@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
def test_every_number_becomes_the_nearest_code(tmp_path: Path, device: Device, rng: np.random.Generator, size: int, dtype: np.dtype) -> None:
    some = points(rng).astype(dtype)
    x = np.resize(some, (-(-some.size // size), size))
    y = device.poisoned((len(x), size // 2), np.uint8)
    load(tmp_path, TEXT).write(y, device.put(x))
    np.testing.assert_array_equal(device.get(y), packed(codes_of(x.astype(np.float32))))


@pytest.mark.parametrize("size", [2, 16, 32, 64])
def test_every_code_is_read(tmp_path: Path, device: Device, size: int) -> None:
    codes = np.resize(np.arange(16, dtype=np.uint8), (12, size))
    want = np.where(codes & 8, -MAGNITUDES[codes & 7], MAGNITUDES[codes & 7]).astype(np.float32)
    y = device.poisoned(codes.shape, F32)
    load(tmp_path, TEXT).read(y, device.put(packed(codes)))
    np.testing.assert_array_equal(device.get(y).view(np.uint32), want.view(np.uint32))
    p = np.arange(12) % 3 == 0
    load(tmp_path, TEXT).read(y, device.put(packed(codes)), device.put(p))
    np.testing.assert_array_equal(device.get(y).view(np.uint32), np.where(p[:, None], want, 0).astype(F32).view(np.uint32))


def test_an_element_of_a_computed_row(tmp_path: Path, device: Device) -> None:
    """A kernel can read an element of a computed row. An element of f4e2m1 in memory shares its byte with another, so
    it cannot be read alone."""
    codes, places = np.resize(np.arange(16, dtype=np.uint8), (7, 32)), np.array([0, 1, 15, 30, 31, 32, -1], np.int32)
    values = np.where(codes & 8, -MAGNITUDES[codes & 7], MAGNITUDES[codes & 7]).astype(np.float32)
    y = device.poisoned((7,), F32)
    load(tmp_path, TEXT).element(y, device.put(packed(codes)), device.put(places))
    np.testing.assert_array_equal(device.get(y), [2 * values[t, i] if 0 <= i < 32 else 0 for t, i in enumerate(places)])


def test_rows_are_bytes_apart_and_what_is_between_is_not_touched(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    """Rows have 10 bytes, are 13 bytes apart, and start at an odd address. The bytes between rows are unchanged, and
    rows that are not read become 0."""
    source = rng.integers(0, 256, (5, 3, 13), np.uint8)
    memory = device.put(np.full((5, 3, 13), 0xEE, np.uint8))
    p = np.array([True, False, True, True, False])
    load(tmp_path, TEXT).copy(memory[:, :, 1:11], device.put(source)[:, :, 2:12], device.put(p))
    want = np.full((5, 3, 13), 0xEE, np.uint8)
    want[:, :, 1:11] = np.where(p[:, None, None], source[:, :, 2:12], 0)
    np.testing.assert_array_equal(device.get(memory), want)


def test_constants_are_rounded_as_numbers_are(tmp_path: Path, device: Device) -> None:
    outputs = [device.poisoned((3, 8), np.uint8) for _ in range(4)]
    load(tmp_path, TEXT).constants(*outputs)
    assert [np.unique(device.get(y)).tolist() for y in outputs] == [[0x00], [0xFF], [0x77], [0x44]]


@pytest.mark.parametrize("heads, groups", [(1, 1), (3, 5), (4, 8)])
def test_rows_of_groups(tmp_path: Path, device: Device, rng: np.random.Generator, heads: int, groups: int) -> None:
    x = (rng.standard_normal((7, heads, groups * 16)) * 2).astype(BF16)
    y = device.poisoned((7, heads, groups * 8), np.uint8)
    scales = device.poisoned((7, heads, groups), np.dtype("float8_e4m3fn"))
    load(tmp_path, TEXT).scaled(y, scales, device.put(x))
    np.testing.assert_array_equal(device.get(y), packed(codes_of(x.astype(F32))))


def test_torch_pairs_are_taken(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    y, x = torch.zeros(3, 8, dtype=torch.float4_e2m1fn_x2), torch.full((3, 16), 3.0)
    load(tmp_path, TEXT).write(y, x)
    assert (y.view(torch.uint8) == 0x55).all()


def test_calls_that_do_not_fit_are_errors(tmp_path: Path) -> None:
    write, x = load(tmp_path, TEXT).write, np.zeros((4, 16), np.float32)
    with pytest.raises(ArgumentError, match='"x": expected size 32 in dim 1'):
        write(np.zeros((4, 16), np.uint8), x)
    with pytest.raises(ArgumentError, match="expected dtype uint8 or float4_e2m1fn_x2 \\(two elements a byte\\), got i8"):
        write(np.zeros((4, 8), np.int8), x)
    with pytest.raises(ArgumentError, match='"y": expected stride 1 in dim 1'):
        write(np.zeros((4, 16), np.uint8)[:, ::2], x)
    with pytest.raises(ArgumentError, match='"y": expected each element of a tensor that is written at an address of its own'):
        write(np.lib.stride_tricks.as_strided(np.zeros(64, np.uint8), (4, 8), (4, 1)), x)
    with pytest.raises(ArgumentError, match="expected memory apart from that of argument"):
        memory = np.zeros(512, np.uint8)
        write(memory[4:36].reshape(4, 8), memory[:256].view(np.float32).reshape(4, 16))


def test_tensors_next_to_each_other_are_apart(tmp_path: Path) -> None:
    write = load(tmp_path, TEXT).write
    for codes, values in ((slice(0, 32), slice(32, 288)), (slice(256, 288), slice(0, 256))):
        memory = np.full(288, 0xEE, np.uint8)
        memory[values].view(np.float32)[:] = 1.5
        write(memory[codes].reshape(4, 8), memory[values].view(np.float32).reshape(4, 16))
        assert (memory[codes] == 0x33).all() and (memory[values].view(np.float32) == 1.5).all()


@pytest.mark.parametrize("body, message", [
    ("y[t, 0] = x[t, 0]", r"expected a whole row or group of 'y', which is f4e2m1 \(two elements a byte\), got a single element"),
    ("y[t] = f4e2m1(x[t])", "got one of a row of f32 along D to 'f4e2m1'"),
])  # fmt: skip
def test_bodies_that_take_half_a_byte_are_errors(tmp_path: Path, body: str, message: str) -> None:
    text = f'\n@mlafix.kernel\ndef k(y: Out[f4e2m1, "n D"], x: In[f32, "n D"]):\n    for t in grid("n"):\n        {body}\n'
    with pytest.raises((CompileError, ArgumentError), match=message):
        load(tmp_path, text).k(np.zeros((4, 8), np.uint8), np.zeros((4, 16), np.float32))


def test_a_row_as_long_as_another_has_groups(tmp_path: Path) -> None:
    """Rows are told apart by their types, not by their sizes: a row of f4e2m1 and a row with one element per group both
    have eight elements here."""
    text = """
@mlafix.kernel
def k(y: Out[f4e2m1, "n D"], s: Out[f32, "n G"], x: In[f32, "n D"], z: In[f32, "n (G 4)"]):
    for t in grid("n"):
        y[t] = x[t]
        s[t] = max(z[t], along=4)


@mlafix.kernel
def wrong(y: Out[f4e2m1, "n G"], z: In[f32, "n (G 4)"]):
    for t in grid("n"):
        y[t] = max(z[t], along=4)
"""
    y, s, z = np.zeros((2, 4), np.uint8), np.zeros((2, 8), F32), np.arange(64, dtype=F32).reshape(2, 32)
    load(tmp_path, text).k(y, s, np.full((2, 8), 3, F32), z)
    assert (y == 0x55).all() and (s == z[:, 3::4]).all()
    with pytest.raises(CompileError, match=r"expected a whole row or group of 'y', which is f4e2m1 \(two elements a byte\), got a row of one element a group"):
        load(tmp_path, text).wrong(y, z)
