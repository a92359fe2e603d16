"""Tests floats at the limits of their range, on each device: divisions, elementary functions, weights of states with
distant lses, and numbers narrowed to f16."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from devices import Device
from numerics import BF16, F16, poison
from sources import load

TEXT = """
@inline
def values_of(v):
    return exp(v), exp2(v), log(v), log2(v), sqrt(v), rsqrt(v), tanh(v), 1.0 / v


@mlafix.kernel
def functions(y: Out[f32, "k=8 n D"], x: In[f32, "n D"]):
    for t in grid("n"):
        y[0, t], y[1, t], y[2, t], y[3, t], y[4, t], y[5, t], y[6, t], y[7, t] = values_of(x[t])


@mlafix.kernel
def scalar_functions(y: Out[f32, "k=8 n"], x: In[f32, "n"]):
    for t in grid("n"):
        y[0, t], y[1, t], y[2, t], y[3, t], y[4, t], y[5, t], y[6, t], y[7, t] = values_of(x[t])


@mlafix.kernel
def whole_and_curved(y: Out[f32, "k=6 n D"], z: Out[f32, "k=6 n"], x: In[f32, "n D"], one: In[f32, "n"]):
    for t in grid("n"):
        y[0, t], y[1, t], y[2, t], y[3, t], y[4, t] = round(x[t]), trunc(x[t]), sin(x[t]), cos(x[t]), erf(x[t])
        v = one[t]
        z[0, t], z[1, t], z[2, t], z[3, t], z[4, t] = round(v), trunc(v), sin(v), cos(v), erf(v)
        y[5, t], z[5, t] = 0.0, 0.0


@mlafix.kernel
def quotients(y: Out[f32, "n D"], a: In[f32, "n D"], b: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = a[t] / b[t]


@mlafix.kernel
def quotients_by_one(q: Out[i8, "n D"], u: Out[u8, "n D"], y: Out[f32, "n D"], a: In[f32, "n D"], b: In[f32, "n"]):
    for t in grid("n"):
        row = a[t] / b[t]
        q[t] = row
        u[t] = row
        y[t] = row - 128.0


@mlafix.kernel
def narrowed(y: Out[U, "k=8 n D"], lse: Out[f32, "n"], a: In[T, "n D"], b: In[T, "n D"]):
    for t in grid("n"):
        y[0, t] = 2.0 / a[t]
        y[1, t] = a[t] * b[t]
        y[2, t] = a[t] + b[t]
        y[3, t] = a[t] - b[t]
        y[4, t] = a[t] / b[t]
        y[5, t] = a[t] * 0.5
        y[6, t] = a[t]
        store_state(make_state(-0.0 * a[t], 1.0, base=2), y[7, t], lse[t])


@mlafix.kernel(allow={"bounds"})
def two(out: Out[f32, "n D"], lse: Out[f32, "n"], parts: In[f32, "k n D"], lses: In[f32, "k n"]):
    for t in grid("n"):
        first, second = load_state(parts[0, t], lses[0, t], base=BASE), load_state(parts[1, t], lses[1, t], base=BASE)
        store_state(merge(first, second), out[t], lse[t])


@mlafix.kernel
def many(out: Out[f32, "n D"], lse: Out[f32, "n"], parts: In[f32, "k n D"], lses: In[f32, "k n"]):
    for t in grid("n"):
        state = identity("D", base=BASE)
        for i in range(parts.shape[0]):
            state = merge(state, load_state(parts[i, t], lses[i, t], base=BASE))
        store_state(state, out[t], lse[t])
"""
HEADER = """import mlafix
from mlafix.dsl import *

T, U = DType("T"), DType("U")
"""
RELATIVE = 4e-6  # the relative error that N10 of docs/Dialect.md allows
LEAST = 2.0**-149  # the smallest f32 above 0
BASES = {"e": np.e, "2": 2.0}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModuleType]:
    """Returns the kernels, compiled for states in each base."""
    folder = tmp_path_factory.mktemp("ends")
    return {base: load(folder, TEXT.replace("BASE", f'"{base}"'), HEADER) for base in BASES}


def run(device: Device, kernel: Any, shapes: list[tuple[int, ...]], *inputs: np.ndarray, dtypes: Any = None) -> list[np.ndarray]:
    results = [device.put(poison(shape, np.dtype(dtype))) for shape, dtype in zip(shapes, dtypes or [np.float32] * len(shapes))]
    kernel(*results, *[device.put(i) for i in inputs])
    return [np.array(device.get(result)) for result in results]


def floats(rng: np.random.Generator, count: int) -> np.ndarray:
    """Returns f32 numbers of all sizes: arbitrary bits, numbers near 1, ordinary numbers, and numbers that operations
    treat specially."""
    with np.errstate(all="ignore"):
        bits = rng.integers(0, 2**32, count // 4, np.uint32).view(np.float32)
        near = (1 + rng.normal(0, 1, count // 4) * 2.0 ** rng.integers(-24, 0, count // 4)).astype(np.float32)
        usual = (rng.normal(0, 1, count // 4) * 2.0 ** rng.integers(-30, 8, count // 4)).astype(np.float32)
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0**126, 2.0**127, -(2.0**127), 2.0**-126, 2.0**-127, LEAST]
        special += [3.4028235e38, -3.4028235e38, 88.72283, 88.7, 89.0, -87.33, -87.4, -103.0, -103.9, -105.0, 127.9999, 128.0]
        special += [-126.0, -126.5, -149.0, -150.5, 0.3, 0.29999998, 9.0, 20.0, 65536.0]
        whole = np.concatenate([bits, near, usual, np.array(special, np.float32)])
    return np.resize(whole, count)


def check_near(got: np.ndarray, want: np.ndarray, what: str) -> None:
    """Checks that results differ from those in f64 by at most the error of N10, or by the smallest f32 if they are
    subnormal."""
    with np.errstate(all="ignore"):
        rounded = want.astype(np.float32).astype(np.float64)
        wide = got.astype(np.float64)
        fits = np.abs(wide - want) <= np.maximum(RELATIVE * np.abs(want), LEAST)
        # A result near the largest finite number may be infinite.
        fits |= np.isinf(wide) & (np.abs(want) > 3.40282e38) & (np.sign(wide) == np.sign(want))
        fits |= np.isnan(wide) & np.isnan(want) | (wide == rounded)
        fits &= (wide != 0) | (want != 0) | (np.signbit(wide) == np.signbit(want))
    at = np.argwhere(~fits)
    assert not len(at), f"{what}: expected {want[tuple(at[0])]!r}, got {wide[tuple(at[0])]!r}; {len(at)} are wrong"


FUNCTIONS: list[tuple[str, Callable[[np.ndarray], np.ndarray]]] = [
    ("exp", np.exp), ("exp2", np.exp2), ("log", np.log), ("log2", np.log2), ("sqrt", np.sqrt),
    ("rsqrt", lambda x: 1 / np.sqrt(x)), ("tanh", np.tanh), ("1 / x", lambda x: 1 / x),
]  # fmt: skip


@pytest.mark.parametrize("size", [8, 100, 2048])
def test_functions_hold_their_error_at_both_ends(device: Device, made: dict[str, ModuleType], size: int, rng: np.random.Generator) -> None:
    x = floats(rng, 64 * size).reshape(64, size)
    (rows,) = run(device, made["e"].functions, [(8, *x.shape)], x)
    (scalars,) = run(device, made["e"].scalar_functions, [(8, x.size)], x.ravel())
    for k, (name, function) in enumerate(FUNCTIONS):
        with np.errstate(all="ignore"):
            want = function(x.astype(np.float64))
        check_near(rows[k], want, f"{name} of a row")
        check_near(scalars[k], want.ravel(), f"{name} of a number")


def angle(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.where(np.abs(x) <= 2.0**23, function(np.where(np.abs(x) <= 2.0**23, x, 0)), np.nan)


ERF = np.vectorize(math.erf, otypes=[np.float64])


@pytest.mark.parametrize("size", [8, 100, 2048])
def test_rounding_angles_and_erf_hold_their_error(device: Device, made: dict[str, ModuleType], size: int, rng: np.random.Generator) -> None:
    """round and trunc are exact. sin and cos are within 2e-7 up to 2^23, and NaN beyond. erf is within N10."""
    x = floats(rng, 64 * size)
    angles = np.concatenate([rng.uniform(-1, 1, 8 * size) * 2.0 ** rng.integers(-3, 24, 8 * size),
                             rng.integers(-2**20, 2**20, 8 * size) * (np.pi / 2)])  # fmt: skip
    edges = np.array([2.0**23, -(2.0**23), 2.0**23 + 1, -(2.0**24), 0.5, 1.5, -2.5, 2.0**22 + 0.5, 2.0**23 - 0.5, 3.9999, 4.0, 1.0], np.float32)
    x[: 16 * size], x[16 * size : 16 * size + edges.size] = angles, edges
    x = x.reshape(64, size)
    rows, ones = run(device, made["e"].whole_and_curved, [(6, *x.shape), (6, 64)], x, np.ascontiguousarray(x[:, 1]))
    with np.errstate(all="ignore"):
        for k, function in enumerate([np.rint, np.trunc]):
            for got, given in ((rows[k], x), (ones[k], x[:, 1])):
                same = (got.view(np.uint32) == function(given).view(np.uint32)) | np.isnan(got) & np.isnan(given)
                assert same.all(), (function, given[~same], got[~same])
        for k, function in ((2, angle(np.sin)), (3, angle(np.cos))):
            for got, given in ((rows[k], x), (ones[k], x[:, 1])):
                want = function(given.astype(np.float64))
                assert (np.isnan(got) == np.isnan(want)).all()
                assert np.nanmax(np.abs(got - want)) <= 2e-7
                assert (np.signbit(got) == np.signbit(want))[given == 0].all()
        for got, given in ((rows[4], x), (ones[4], x[:, 1])):
            check_near(got, ERF(given.astype(np.float64)), "erf")


@pytest.mark.parametrize("size", [8, 100, 2048])
def test_quotients_are_correctly_rounded(device: Device, made: dict[str, ModuleType], size: int, rng: np.random.Generator) -> None:
    a, b = (rng.permutation(floats(rng, 64 * size)).reshape(64, size) for _ in range(2))
    (got,) = run(device, made["e"].quotients, [a.shape], a, b)
    with np.errstate(all="ignore"):
        want = a / b
    same = (got.view(np.uint32) == want.view(np.uint32)) | np.isnan(got) & np.isnan(want)
    at = np.argwhere(~same)
    assert not len(at), f"{a[tuple(at[0])]!r} / {b[tuple(at[0])]!r}: expected {want[tuple(at[0])]!r}, got {got[tuple(at[0])]!r}"


@pytest.mark.parametrize("size", [1, 6, 8, 100, 2048])
def test_bytes_and_sums_of_quotients_are_those_of_rounded_quotients(device: Device, made: dict[str, ModuleType], size: int,
                                                                    rng: np.random.Generator) -> None:
    a, b = floats(rng, 256 * size).reshape(256, size), rng.permutation(floats(rng, 256))
    with np.errstate(all="ignore"):
        ties = (rng.integers(-300, 600, (128, size)) / 2).astype(np.float32)
        a[:128], b[:128] = ties * 2.0 ** rng.integers(-70, 70), 2.0 ** rng.integers(-70, 70, 128).astype(np.float32)
        a[:64] = ties[:64] * b[:64, None]
        row = a / b[:, None]
        want = row - np.float32(128)
        number = np.where(np.isnan(row), 0, np.rint(row))
    q, u, y = run(device, made["e"].quotients_by_one, [a.shape] * 3, a, b, dtypes=[np.int8, np.uint8, np.float32])
    np.testing.assert_array_equal(q, np.clip(number, -128, 127))
    np.testing.assert_array_equal(u, np.clip(number, 0, 255))
    assert ((y.view(np.uint32) == want.view(np.uint32)) | np.isnan(y) & np.isnan(want)).all()


@pytest.mark.parametrize("out", [BF16, F16], ids=str)
@pytest.mark.parametrize("dtype", [BF16, F16], ids=str)
def test_arithmetic_is_f32_whatever_is_read_and_stored(device: Device, made: dict[str, ModuleType], dtype: np.dtype, out: np.dtype) -> None:
    """Arithmetic is done in f32 even if operands and results are f16 or bf16. Regression: LLVM narrowed the operands to
    f16. Then `2.0 / x` of bf16 65536 gave 0, and -0.0 * -3e38 gave NaN."""
    a = np.arange(2**16, dtype=np.uint16).view(dtype).reshape(512, 128)  # all numbers of the dtype
    b = np.random.default_rng(5).permutation(a.ravel()).reshape(a.shape)
    got, lse = run(device, made["e"].narrowed, [(8, *a.shape), (512,)], a, b, dtypes=[out, np.float32])
    with np.errstate(all="ignore"):
        x, y = a.astype(np.float32), b.astype(np.float32)
        half = np.float32(0.5)
        results = [np.float32(2) / x, x * y, x + y, x - y, x / y, x * half, x, np.float32(-0.0) * x]
        for k, result in enumerate(results):
            want, have = result.astype(out), got[k]
            same = (have.view(np.uint16) == want.view(np.uint16)) | np.isnan(have.astype(np.float32)) & np.isnan(result)
            at = np.argwhere(~same)
            assert not len(at), f"{k} of {x[tuple(at[0])]!r} and {y[tuple(at[0])]!r}: expected {want[tuple(at[0])]!r}, got {have[tuple(at[0])]!r}"
    assert (lse == 1).all()


def apart(rng: np.random.Generator, base: float, low: float, high: float, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns two states for each of many gaps between their lses, in either order. The heavier state has a payload of
    zeros. Also returns the weight of the lighter state in f64, relative to the heavier one."""
    count = 512
    gap = rng.uniform(low, high, count) * np.log(2) / np.log(base)
    top = rng.normal(0, 1, count) * 2.0 ** rng.integers(-4, 8, count)
    lses = np.stack([top, top - gap]).astype(np.float32)
    parts = np.zeros((2, count, size), np.float32)
    parts[1] = rng.normal(0, 1, (count, size)) * 1e30
    weight = np.exp((lses[1].astype(np.float64) - lses[0]) * np.log(base))
    order = rng.integers(0, 2, count)
    index = np.stack([order, 1 - order])
    return np.take_along_axis(parts, index[..., None], 0), np.take_along_axis(lses, index, 0), weight


@pytest.mark.parametrize("size", [8, 512])
@pytest.mark.parametrize("base", BASES)
def test_a_light_state_beside_an_empty_payload_keeps_its_digits(device: Device, made: dict[str, ModuleType], base: str, size: int,
                                                                rng: np.random.Generator) -> None:
    """The merge of a light state with a heavy state of zeros has at most the error of N10. Regression: for gaps above
    40 in base e, the error was 7.6e-6."""
    parts, lses, weight = apart(rng, BASES[base], 0, 125.9, size)
    want = weight[:, None] / (1 + weight[:, None]) * parts.astype(np.float64).sum(axis=0)
    out, _ = run(device, made[base].two, [want.shape, want.shape[:1]], parts, lses)
    assert np.abs(out / want - 1).max() <= RELATIVE
    # Merges the two states and lighter ones in a loop, which a GPU runs in chunks. There, the exponent of a weight is
    # rounded, so the allowed error grows with the gap between the lses.
    more = np.concatenate([parts, np.zeros_like(parts), np.zeros_like(parts)])
    rest = np.stack([lses.min(axis=0) - k for k in (90, 100, 110, 120)]).astype(np.float32)
    out, _ = run(device, made[base].many, [want.shape, want.shape[:1]], more, np.concatenate([lses, rest]))
    bound = np.maximum(RELATIVE, 1.6e-7 * -np.log(weight))
    assert (np.abs(out / want - 1).max(axis=1) <= bound).all()


@pytest.mark.parametrize("base", BASES)
def test_weights_below_the_normal_numbers_are_multiples_of_the_least(device: Device, made: dict[str, ModuleType], base: str,
                                                                     rng: np.random.Generator) -> None:
    parts, lses, weight = apart(rng, BASES[base], 126.1, 149, 16)
    payload = parts.astype(np.float64).sum(axis=0)
    for kernel in (made[base].two, made[base].many):
        out, _ = run(device, kernel, [payload.shape, payload.shape[:1]], parts, lses)
        assert (np.abs(out - weight[:, None] * payload) <= (1.5 * LEAST + 1e-5 * weight[:, None]) * np.abs(payload)).all()


CHAIN = """
@mlafix.kernel
def chain(out: Out[f32, "n D"], x: In[f32, "n k D"], lses: In[f32, "n k"]):
    for t in grid("n"):
        m = identity("D", base="e")
        for i in range(shape("k")):
            m = merge(load_state(x[t, i], lses[t, i], base="e"), m)
        store_state(m, out[t])
"""


def test_an_infinity_of_weight_zero_rounds_its_own_elements_alone(device: Device, tmp_path: Path, rng: np.random.Generator) -> None:
    """N5 in chains of merges: no step gives the first state a weight of zero, but its weight among all states is zero.
    If elements of its payload are infinite or NaN, only these elements of the result may change, within N10."""
    kernel = load(tmp_path, CHAIN).chain
    lses = np.array([-88.7, 0, 103, 104, 103, -np.inf], np.float32)
    x = rng.normal(0, 2, (64, 6, 64)).astype(np.float32)
    (clean,) = run(device, kernel, [(64, 64)], x, np.tile(lses, (64, 1)))
    x[:, 0, ::2] = rng.choice(np.array([np.inf, -np.inf, np.nan], np.float32), (64, 32))
    (out,) = run(device, kernel, [(64, 64)], x, np.tile(lses, (64, 1)))
    np.testing.assert_array_equal(out[:, 1::2], clean[:, 1::2])
    x[:, 0] = 0
    weights = np.exp(lses.astype(np.float64) - 104)[None, :, None]
    terms = weights * x / weights.sum()
    assert (np.abs(out - terms.sum(axis=1)) <= 4e-6 * np.abs(terms).sum(axis=1)).all()
