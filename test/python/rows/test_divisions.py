"""Divisions that a GPU computes by reciprocals: reciprocals of values that contain another reciprocal, and divisions of
rows by one number, by constants and by powers of two. Results have the bits of f32 division."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from devices import Device
from sources import load


TEXT = """
@mlafix.kernel
def reciprocals(y: Out[f32, "n"], z: Out[f32, "n"], x: In[f32, "n"], factor: In[f32, "n"]):
    for t in grid("n"):
        first = 1.0 / x[t]
        second = 1.0 / (first * factor[t])
        y[t] = first
        z[t] = second


@mlafix.kernel
def by_constants(y: Out[f32, "n"], z: Out[f32, "n"], x: In[f32, "n"]):
    for t in grid("n"):
        most = max(x[t], 1e-10)
        y[t] = most / 448.0
        z[t] = most / 6.0


@mlafix.kernel
def by_numbers(y: Out[f32, "n D=512"], most: Out[f32, "n"], x: In[f32, "n D=512"], s: In[f32, "n"]):
    for t in grid("n"):
        most[t] = max(x[t])  # so that a lane has 16 elements
        y[t] = x[t] / s[t]


@mlafix.kernel
def by_powers(y: Out[f32, "n (G 16)"], z: Out[f32, "n G"], x: In[f32, "n (G 16)"], s: In[f8e8m0, "n G"]):
    for t in grid("n"):
        y[t] = x[t] / s[t]
        z[t] = 1.0 / s[t]
"""
ENDS = np.array([0.0, 2.0**-149, 2.0**-127, 2.0**-126, 2.0**-100, 2.0**-64, 1e-10, 1.0, 448.0, 2.0**20, 2.0**62, 2.0**126, 2.0**127, 3.4028235e38, np.inf, np.nan], np.float32)


def any_floats(rng: np.random.Generator, count: int) -> np.ndarray:
    """Returns floats with arbitrary bits, ordinary numbers of many exponents, and the limits of f32's range with either
    sign."""
    bits = rng.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
    usual = np.ldexp(rng.uniform(1, 2, count), rng.integers(-20, 20, count)).astype(np.float32)
    with np.errstate(all="ignore"):
        around = np.concatenate([np.nextafter(ENDS, np.float32(0)), ENDS, np.nextafter(ENDS, np.float32(np.inf))])
    return np.concatenate([bits, usual, around, -around])


def run(tmp_path: Path, device: Device, name: str, outputs: list[tuple[int, ...]], *inputs: np.ndarray) -> list[np.ndarray]:
    arrays = [device.poisoned(shape, np.dtype(np.float32)) for shape in outputs]
    getattr(load(tmp_path, TEXT), name)(*arrays, *(device.put(array) for array in inputs))
    return [np.array(device.get(array)) for array in arrays]


def check(got: np.ndarray, want: np.ndarray) -> None:
    nan = np.isnan(want)
    assert np.isnan(got[nan]).all()
    np.testing.assert_array_equal(got.view(np.uint32)[~nan], want.view(np.uint32)[~nan])


def test_reciprocals_of_each_other(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    """In some warps all divisors have normal reciprocals. Other warps also have divisors of other kinds."""
    x = any_floats(rng, 50_000)
    factor = rng.permutation(any_floats(rng, 50_000))
    factor[: len(x) // 2] = 3.0
    # the divisors x of the first warps all have normal reciprocals
    x[:1024] = np.ldexp(rng.uniform(1, 2, 1024), rng.integers(-60, 60, 1024))
    y, z = run(tmp_path, device, "reciprocals", [x.shape, x.shape], x, factor)
    with np.errstate(all="ignore"):
        first = np.float32(1) / x
        check(y, first)
        check(z, np.float32(1) / (first * factor))


def test_by_constants(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    """Divides by 448 and by 6. The dividends have significands of one binade (on a GPU all of them, else a sample),
    every 64th of these in another binade, and any floats. A maximum with 1e-10 keeps each dividend above 0."""
    significands = (np.arange(0, 2**23, 1 if device.name == "cuda" else 331, dtype=np.uint32) | np.uint32(0x3F800000)).view(np.float32)
    x = np.concatenate([significands, significands[::64] * np.float32(2.0**-33), any_floats(rng, 50_000)])
    y, z = run(tmp_path, device, "by_constants", [x.shape, x.shape], x)
    with np.errstate(all="ignore"):
        most = np.maximum(x, np.float32(1e-10))
        check(y, most / np.float32(448))
        check(z, most / np.float32(6))


def test_rows_by_numbers(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    """Divides rows of four kinds by divisors of any kind. The kinds of rows take turns:

    - normal numbers and zeros, which have normal quotients and zeros
    - the same, but one element is any number
    - any numbers
    - small numbers
    """
    s = rng.permutation(any_floats(rng, 400))
    s[::4] = np.ldexp(rng.uniform(1, 2, len(s[::4])), rng.integers(-64, 20, len(s[::4])))
    x = np.ldexp(rng.uniform(1, 2, (len(s), 512)) * rng.choice([-1, 1], (len(s), 512)), rng.integers(-100, 62, (len(s), 512))).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = 0.0
    x[rng.random(x.shape) < 0.05] = -0.0
    others = rng.permutation(any_floats(rng, 256 * len(s)))
    x[1::4, 17] = others[: len(s[1::4])]
    x[2::4] = others[: 512 * len(s[2::4])].reshape(-1, 512)
    x[3::4] = np.ldexp(rng.uniform(1, 2, x[3::4].shape), rng.integers(-140, -100, x[3::4].shape))
    s[1::2] = np.where(rng.random(len(s[1::2])) < 0.5, np.float32(3), s[1::2])
    y, _ = run(tmp_path, device, "by_numbers", [x.shape, s.shape], x, s)
    with np.errstate(all="ignore"):
        check(y, x / s[:, None])


def near_halfway(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns 24-bit integer significands x, and for each x the index of an element of `s` by which the quotient of x
    is nearly halfway between two floats.

    The halfway point is an odd integer m of 25 bits with 2^shift x - m s = c and 0 < |c| <= 3.
    """
    even = ((s & 1) == 0).astype(np.uint32)
    odd = (s >> even).astype(np.uint32)
    inverse = odd.copy()
    for _ in range(4):
        inverse *= np.uint32(2) - odd * inverse  # arithmetic modulo 2^32
    found = []
    for c in (-3, -2, -1, 1, 2, 3):
        for shift in (24, 25):
            step = np.int64(1) << (shift - even).astype(np.int64)
            first = (np.uint32(-(c >> 1) & 0xFFFFFFFF) * even + np.uint32(-c & 0xFFFFFFFF) * (1 - even)) * inverse & (step - 1).astype(np.uint32)
            for k in range(4):
                m = first.astype(np.int64) + k * step
                product = m * s + c
                x = product >> shift
                is_pair = (m >= 1 << 24) & (m < 1 << 25) & (m % 2 == 1) & (x << shift == product) & (x >= 1 << 23) & (x < 1 << 24)
                is_pair &= ((x >= s) == (shift == 24)) & ((even == 0) | ((s % 4 != 0) & (c % 2 == 0)))
                rows = np.flatnonzero(is_pair)
                found.append((x[rows], rows))
    return np.concatenate([x for x, _ in found]), np.concatenate([rows for _, rows in found])


def test_quotients_nearest_to_halfway(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    """Quotients nearly halfway between two floats are rounded correctly. One reciprocal per row without a correction
    could round them to the wrong side."""
    s = rng.integers(1 << 23, 1 << 24, 20_000 if device.name == "cuda" else 512)
    near, rows = near_halfway(s)
    assert len(near) > len(s)
    x = rng.integers(1 << 23, 1 << 24, (len(s), 512))
    x[rows, rng.permutation(512)[np.arange(len(rows)) % 512]] = near
    dividends, divisors = x.astype(np.float32), np.ldexp(s, -12).astype(np.float32)
    y, _ = run(tmp_path, device, "by_numbers", [x.shape, s.shape], dividends, divisors)
    check(y, dividends / divisors[:, None])


def test_by_powers_of_two(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    """Divides by every code of f8e8m0, including NaN. Subnormal quotients are rounded only once."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    s = np.tile(np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e8m0fnu), 16).reshape(-1, 4)
    x = rng.permutation(any_floats(rng, 64 * len(s)))[: 64 * len(s)].reshape(-1, 64)
    y, z = run(tmp_path, device, "by_powers", [x.shape, s.shape], x, s)
    with np.errstate(all="ignore"):
        powers = s.astype(np.float32)
        check(y, (x.reshape(len(s), 4, 16) / powers[..., None]).reshape(x.shape))
        check(z, np.float32(1) / powers)
