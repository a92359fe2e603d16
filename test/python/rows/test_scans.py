"""cumsum, cummax and cummin: element i is the reduction of elements 0 to i. Results are compared with numpy bit for
bit."""

from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from devices import Device
from numerics import BF16, F32
from sources import load, underlined

import mlafix

TEXT = """
@mlafix.kernel
def rows(sums: Out[f32, "n D"], most: Out[f32, "n D"], least: Out[f32, "n D"], counts: Out[i32, "n D"], highest: Out[i32, "n D"],
         total: Out[f32, "n"], x: In[T, "n D"], y: In[i32, "n D"]):
    for t in grid("n"):
        sums[t] = cumsum(x[t])
        most[t] = cummax(x[t])
        least[t] = cummin(x[t])
        counts[t] = cumsum(y[t])
        highest[t] = cummax(y[t])
        total[t] = sum(x[t])


@mlafix.kernel
def groups(each: Out[f32, "n (G K)"], whole: Out[f32, "n (G K)"], heads: Out[f32, "n G"], spread: Out[f32, "n (G K)"],
           most: Out[i32, "n (G K)"], total: Out[f32, "n"], x: In[T, "n (G K)"], y: In[i32, "n (G K)"]):
    for t in grid("n"):
        row = x[t]
        each[t] = cumsum(row, along="K")
        whole[t] = cumsum(row)
        before = cumsum(sum(row, along="K"))
        heads[t] = before
        spread[t] = row + before
        most[t] = cummax(y[t], along="K")
        total[t] = sum(row)


@mlafix.kernel
def through_control(y: InOut[f32, "n D"], last: Out[f32, "n"], k: In[i32, "n"]):
    for t in grid("n"):
        row = exp(y[t] - max(y[t]))
        row = row / sum(row)
        for i in range(k[t]):
            row = cumsum(row) * 0.5
        if k[t] > 1:
            row = cummax(row - 1.0) + cumsum(row)
        last[t] = max(cumsum(cumsum(row)))
        y[t] = row


@mlafix.kernel
def optional(y: Out[f32, "n D"], x: In[f32, "n D"] | None):
    for t in grid("n"):
        y[t] = cumsum(x[t] + 1.0)


@mlafix.kernel
def wrong(y: Out[f32, "n D"], z: Out[f32, "n (G K)"], x: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = cumsum(x[t])
        z[t] = 0.0
"""

# Rows within a pack, a warp or a block, rows with several packs per lane, and rows that are processed in loops.
SIZES = [1, 2, 5, 16, 33, 64, 100, 128, 256, 1000, 1024, 4112, 7168, 16384, 20000, 65521]
SHAPES = [(4, 128), (3, 64), (5, 96), (1, 64), (9, 7), (7, 1), (1, 1), (32, 2), (56, 128), (2, 4096), (512, 16), (100, 33), (3, 1000), (6, 8192)]
KINDS = {"add": (np.add, -0.0), "max": (np.maximum, -np.inf), "min": (np.minimum, np.inf)}


def reduced(x: np.ndarray, kind: str = "add") -> np.ndarray:
    """Reduces the last dim in the order that the language defines (N9): neighbours are combined first, then pairs."""
    combine, neutral = KINDS[kind]
    while x.shape[-1] > 1:
        if x.shape[-1] % 2:
            x = np.concatenate([x, np.full((*x.shape[:-1], 1), neutral, x.dtype)], -1)
        x = combine(x[..., 0::2], x[..., 1::2])
    return x[..., 0]


def scanned(x: np.ndarray, kind: str = "add") -> np.ndarray:
    """Scans the last dim in the order that the language defines (N9). Blocks have 2, 4, 8, … elements. In each block,
    the elements of the second half are combined with the total of the first half."""
    combine, _ = KINDS[kind]
    x, index, bit = x.copy(), np.arange(x.shape[-1]), 1
    while bit < len(index):
        behind = (index & bit) != 0
        x[..., behind] = combine(x[..., (index[behind] & -bit) - 1], x[..., behind])
        bit *= 2
    return x


def assert_same_bits(got: np.ndarray, want: np.ndarray) -> None:
    """Asserts equal bits. NaN equals any other NaN, but -0.0 differs from 0.0."""
    nan = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), nan)
    np.testing.assert_array_equal(got.view(np.int32)[~nan], want.view(np.int32)[~nan])


def accumulated(combine: np.ufunc, x: np.ndarray) -> np.ndarray:
    """Returns running maxima or minima that order -0.0 below 0.0 and propagate NaN. Floats are compared as integers: in
    negative ones, all bits but the sign are inverted."""
    bits = x.view(np.int32)
    runs = combine.accumulate(np.where(bits < 0, bits ^ 0x7FFFFFFF, bits), -1)
    wide = np.where(runs < 0, runs ^ 0x7FFFFFFF, runs).astype(np.int32).view(F32)
    return np.where(np.logical_or.accumulate(np.isnan(x), -1), F32.type(np.nan), wide)


def spaced(array: np.ndarray, gap: int, offset: int) -> np.ndarray:
    """Returns a copy of the array in memory that starts `offset` elements into a buffer, with `gap` elements between
    rows."""
    *outer, last = array.shape
    flat = np.zeros(math.prod(outer) * (last + gap) + offset, array.dtype)
    view = flat[offset:].reshape(*outer, last + gap)[..., :last]
    view[...] = array
    return view


def test_the_reference_is_the_reduction_of_what_a_row_begins_with(rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, 77)).astype(np.float32)
    for kind in KINDS:
        got = scanned(x, kind)
        for i in range(77):
            np.testing.assert_array_equal(got[:, i], reduced(x[:, : i + 1], kind))


@pytest.mark.parametrize("gap, offset", [(0, 0), (16, 0), (3, 1)])
@pytest.mark.parametrize("size", SIZES)
def test_rows_are_scanned(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int, gap: int, offset: int) -> None:
    x = rng.standard_normal((7, size)).astype(np.float32)
    y = rng.integers(-(2**31), 2**31, (7, size)).astype(np.int32)
    x[1, size // 3 :: 5], x[2, size // 2 :], x[3] = np.nan, -np.inf, -0.0
    x[4, size // 2], x[4, size - 1] = np.inf, -np.inf
    x[6] = np.copysign(0.0, rng.standard_normal(size))
    outputs = [device.poisoned(x.shape, dtype) for dtype in (F32, F32, F32, np.int32, np.int32)]
    total = device.poisoned((7,), F32)
    kernels.rows(*outputs, total, device.put(spaced(x, gap, offset)), device.put(spaced(y, gap, offset)))
    sums, most, least, counts, highest = (np.array(device.get(output)) for output in outputs)
    with np.errstate(invalid="ignore"):
        assert_same_bits(sums, scanned(x))
    assert_same_bits(np.array(device.get(total)), sums[:, -1])
    assert_same_bits(most, accumulated(np.maximum, x))
    assert_same_bits(least, accumulated(np.minimum, x))
    np.testing.assert_array_equal(counts, np.add.accumulate(y, -1, dtype=np.int32))
    np.testing.assert_array_equal(highest, np.maximum.accumulate(y, -1))
    exact = np.add.accumulate(x[[0, 5, 6]].astype(np.float64), -1)
    bound = np.add.accumulate(np.abs(x[[0, 5, 6]]).astype(np.float64), -1) * 2.0**-24 * 17
    assert (np.abs(sums[[0, 5, 6]] - exact) <= bound).all()


@pytest.mark.parametrize("gap, offset", [(0, 0), (16, 0), (3, 1)])
@pytest.mark.parametrize("count, size", SHAPES)
def test_groups_are_scanned(kernels: ModuleType, device: Device, rng: np.random.Generator, count: int, size: int, gap: int, offset: int) -> None:
    x = rng.standard_normal((5, count * size)).astype(np.float32)
    x[3], x[4] = -0.0, np.copysign(0.0, rng.standard_normal(count * size))
    y = rng.integers(-9, 9, x.shape).astype(np.int32)
    shapes = [(x.shape, F32), (x.shape, F32), ((5, count), F32), (x.shape, F32), (x.shape, np.int32), ((5,), F32)]
    outputs = [device.poisoned(*shape) for shape in shapes]
    kernels.groups(*outputs, device.put(spaced(x, gap, offset)), device.put(spaced(y, gap, offset)))
    each, whole, heads, spread, most, total = (np.array(device.get(output)) for output in outputs)
    parts = x.reshape(5, count, size)
    in_groups, before = scanned(parts), scanned(reduced(parts))
    assert_same_bits(each.reshape(parts.shape), in_groups)
    assert_same_bits(heads, before)
    assert_same_bits(spread.reshape(parts.shape), parts + before[..., None])
    np.testing.assert_array_equal(most.reshape(parts.shape), np.maximum.accumulate(y.reshape(parts.shape), -1))
    want, index, bit = in_groups, np.arange(count), 1
    while bit < count:  # in each block of 2 * bit groups, the second half adds the total of the first
        behind = (index & bit) != 0
        want[:, behind] = want[:, (index[behind] & -bit) - 1, -1:] + want[:, behind]
        bit *= 2
    assert_same_bits(whole.reshape(parts.shape), want)
    assert_same_bits(total, whole[:, -1])


@pytest.mark.parametrize("size", [1, 24, 128, 1000, 4112, 20000])
def test_scans_in_loops_and_branches(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int) -> None:
    x, k = rng.standard_normal((4, size)).astype(np.float32), np.arange(4, dtype=np.int32)
    y, last = device.put(x.copy()), device.poisoned((4,), F32)
    kernels.through_control(y, last, device.put(k))
    row = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    row /= row.sum(-1, keepdims=True)
    for t in range(4):
        for _ in range(k[t]):
            row[t] = np.cumsum(row[t]) * 0.5
        if k[t] > 1:
            row[t] = np.maximum.accumulate(row[t] - 1.0) + np.cumsum(row[t])
    np.testing.assert_allclose(device.get(y), row, rtol=3e-5, atol=1e-6)
    np.testing.assert_allclose(device.get(last), np.cumsum(np.cumsum(row, -1), -1).max(-1), rtol=3e-5)


@pytest.mark.parametrize("size", [100, 4096, 20000])
def test_a_running_sum_of_bf16_never_falls(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int) -> None:
    x = (rng.random((3, size)) ** 8).astype(np.float32).astype(BF16)
    outputs = [device.poisoned(x.shape, dtype) for dtype in (F32, F32, F32, np.int32, np.int32)]
    kernels.rows(*outputs, device.poisoned((3,), F32), device.put(x), device.put(np.zeros(x.shape, np.int32)))
    sums = np.array(device.get(outputs[0]))
    assert_same_bits(sums, scanned(x.astype(np.float32)))
    assert (np.diff(sums, axis=-1) >= 0).all()


def test_a_row_s_bits_do_not_depend_on_the_others(kernels: ModuleType, device: Device, rng: np.random.Generator) -> None:
    x = rng.standard_normal((300, 1000)).astype(np.float32)
    for rows in (1, 3, 300):
        outputs = [device.poisoned((rows, 1000), dtype) for dtype in (F32, F32, F32, np.int32, np.int32)]
        kernels.rows(*outputs, device.poisoned((rows,), F32), device.put(x[:rows]), device.put(np.zeros((rows, 1000), np.int32)))
        assert_same_bits(np.array(device.get(outputs[0])), scanned(x[:rows]))


def test_an_omitted_tensor_is_scanned_as_zeros(kernels: ModuleType, device: Device) -> None:
    y = device.poisoned((2, 33), F32)
    kernels.optional(y, None)
    np.testing.assert_array_equal(device.get(y), np.broadcast_to(np.arange(1, 34, dtype=F32), (2, 33)))


@pytest.mark.parametrize("chip, size", [*((chip, size) for chip in ("sm_75", "sm_90", "sm_100") for size in (5, 128)),
                                        ("sm_90", 4112), ("sm_75", 20000), ("sm_100", 20000)])  # fmt: skip
def test_scans_assemble_for_gpus(kernels: ModuleType, chip: str, size: int) -> None:
    assert kernels.rows.compile(chip, D=size, T="bf16").kernels[0].targets == [chip]
    assert kernels.groups.compile(chip, G=4, K=size, T="f32").kernels[0].targets == [chip]


@pytest.mark.parametrize("text, message, place", [
    ("cumsum(1.0)", "expected a row to scan, got 1.0", "1.0"),
    ("cummax(x[t], x[t])", r"expected cummax\(row, along=…\), got 2 arguments", "cummax(x[t], x[t])"),
    ("cummin(x[t], dim=1)", r"expected cummin\(row, along=…\), got an argument 'dim'", "cummin(x[t], dim=1)"),
    ("cumsum(x[t], along=x)", "expected the second factor of the row's dim to scan along", "x"),
    ("cumsum(x[t] > 0)", "expected a row of f32 or i32", "x[t] > 0"),
    ('cumsum(x[t], along="D")', r'expected no factor to scan along, since the row.s dim "D" is no product such as "\(G K\)", got "D"', 'cumsum(x[t], along="D")'),
    ('splat(cumsum(z[t], along="G")[0], "D")', r'expected "K", the second factor of "\(G K\)", to scan along, got "G"', 'cumsum(z[t], along="G")'),
])  # fmt: skip
def test_wrong_uses_are_underlined(tmp_path: Path, text: str, message: str, place: str) -> None:
    with pytest.raises(mlafix.CompileError, match=message) as caught:
        load(tmp_path, TEXT.replace("y[t] = cumsum(x[t])\n        z", f"y[t] = {text}\n        z")).wrong.ir("source")
    assert underlined(str(caught.value)) == place
