"""top_k, any and all, and reductions of i64, over rows and over the groups of products. Results are compared with
numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from devices import Device
from numerics import BF16, E4M3, F16, F32
from sources import load, refused

import mlafix


DTYPES = {"f32": F32, "i32": np.int32, "bf16": BF16, "f16": F16, "f8e4m3fn": E4M3}


def best(k: int, dtype: str) -> str:
    value = "i32" if dtype == "i32" else "f32"
    return f"""
@mlafix.kernel
def k(values: Out[{value}, "n K={k}"], found: Out[i32, "n K={k}"], x: In[{dtype}, "n D"]):
    for t in grid("n"):
        most, indices = top_k(x[t], {k})
        for i in range({k}):
            values[t, i] = most[i]
            found[t, i] = indices[i]


@mlafix.kernel
def groups(values: Out[{value}, "n K={k} G"], found: Out[i32, "n K={k} G"], x: In[{dtype}, "n (G P)"]):
    for t in grid("n"):
        most, indices = top_k(x[t], {k}, along="P")
        for i in range({k}):
            values[t, i] = most[i]
            found[t, i] = indices[i]
"""


def order(rows: np.ndarray) -> np.ndarray:
    """Returns the indices that sort each row, largest element first. NaN precedes all numbers, and equal elements keep
    their order."""
    wide = rows.astype(np.float64)
    beyond = np.where(np.isnan(wide), np.inf, wide)
    return np.lexsort((np.broadcast_to(np.arange(rows.shape[-1]), rows.shape), -beyond, ~np.isnan(wide)), axis=-1)


def numbers(rng: np.random.Generator, rows: int, size: int, dtype: type) -> np.ndarray:
    """Returns random numbers with many ties, zeros of both signs, infinities, NaN and the limits of integers. Row 3 has
    the smallest number everywhere except for one element."""
    x = rng.integers(-4, 5, (rows, size)).astype(np.int32 if dtype == np.int32 else F32)
    if dtype == np.int32:
        x[0], x[1], x[2, ::2], x[3] = -(2**31), 2**31 - 1, -(2**31), -(2**31)
        x[3, size // 2] = 5
        return x
    x *= rng.choice([1.0, -0.5, -0.0], x.shape).astype(F32)
    special = rng.random(x.shape) < 2 / size
    x = np.where(special, rng.choice([np.nan, -np.nan, np.inf, -np.inf, 1e-45, -1e-45], x.shape), x).astype(F32)
    x[0], x[1], x[2], x[3] = -np.inf, np.nan, -0.0, -np.inf
    x[3, size // 2] = np.nan
    with np.errstate(over="ignore"):
        return x.astype(dtype)


@pytest.mark.parametrize(
    ("dtype", "k", "size"),
    [(dtype, k, size) for dtype in ("f32", "i32") for k, size in [(1, 1), (2, 2), (3, 5), (4, 64), (8, 256), (2, 100), (8, 4112), (2, 70000)]]
    # Rows of narrow dtypes. Lengths are up to and beyond the limit at which an element and its index fit into one word.
    + [("bf16", 2, 64), ("bf16", 8, 256), ("bf16", 3, 5), ("bf16", 2, 65536), ("bf16", 2, 65544), ("f16", 4, 100), ("f16", 2, 8192),
       ("f16", 2, 8200), ("f8e4m3fn", 8, 128), ("f8e4m3fn", 2, 4112)],
)  # fmt: skip
def test_the_greatest_elements(tmp_path: Path, device: Device, rng: np.random.Generator, dtype: str, k: int, size: int) -> None:
    x = numbers(rng, 6, size, DTYPES[dtype])
    value = np.int32 if dtype == "i32" else F32
    values, found = device.poisoned((6, k), value), device.poisoned((6, k), np.int32)
    load(tmp_path, best(k, dtype)).k(values, found, device.put(x))
    want = order(x)[:, :k]
    np.testing.assert_array_equal(device.get(found), want)
    np.testing.assert_array_equal(device.get(values), np.take_along_axis(x, want, 1).astype(value))


@pytest.mark.parametrize("dtype", ["f32", "i32", "bf16"])
@pytest.mark.parametrize(("k", "most"), [(2, 300), (8, 4112), (2, 70000)])
def test_the_greatest_along_a_bound(tmp_path: Path, device: Device, rng: np.random.Generator, dtype: str, k: int, most: int) -> None:
    """FlashInfer#1347, vllm#39391: bounded rows may have fewer elements than top_k returns. Missing results have the
    smallest value and index 0."""
    value = np.int32 if dtype == "i32" else F32
    kernel = load(tmp_path, best(k, dtype).replace('"n D"', f'"n v<={most}"')).k
    for size in (0, 1, k - 1, k, most // 3, most - 1, most):
        x = numbers(rng, 6, max(size, 8), DTYPES[dtype])[:, :size]
        values, found = device.poisoned((6, k), value), device.poisoned((6, k), np.int32)
        kernel(values, found, device.put(x))
        want = order(x)[:, :k]
        there = min(k, size)
        np.testing.assert_array_equal(device.get(found)[:, :there], want)
        np.testing.assert_array_equal(device.get(values)[:, :there], np.take_along_axis(x, want, 1).astype(value))
        assert (device.get(found)[:, there:] == 0).all()
        assert (device.get(values)[:, there:] == (-(2**31) if dtype == "i32" else -np.inf)).all()


@pytest.mark.parametrize("dtype", ["f32", "i32", "bf16", "f16"])
@pytest.mark.parametrize(("k", "groups", "size"), [(2, 8, 32), (2, 3, 5), (1, 4, 1), (4, 2, 96), (2, 16, 8)])
def test_the_greatest_of_each_group(tmp_path: Path, device: Device, rng: np.random.Generator, dtype: str, k: int, groups: int, size: int) -> None:
    x = numbers(rng, 5, groups * size, DTYPES[dtype])
    value = np.int32 if dtype == "i32" else F32
    values, found = device.poisoned((5, k, groups), value), device.poisoned((5, k, groups), np.int32)
    load(tmp_path, best(k, dtype)).groups(values, found, device.put(x))
    wide = x.reshape(5, groups, size)
    want = order(wide)[..., :k]
    np.testing.assert_array_equal(device.get(found), want.transpose(0, 2, 1))
    np.testing.assert_array_equal(device.get(values), np.take_along_axis(wide, want, 2).transpose(0, 2, 1).astype(value))


def test_narrow_elements_beside_others(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    """top_k packs an element and its index into one word if all elements of the row come from a narrow dtype. This must
    not happen if a mask or a selection adds f32 numbers with more bits, such as the constant 0.1."""
    text = """
@mlafix.kernel
def k(found: Out[i32, "n four=4 K=3"], x: In[bf16, "n D"], z: In[f32, "n D"], kept: In[bool_, "n D"]):
    for t in grid("n"):
        first, a = top_k(where(kept[t], f32(x[t]), -1.0 / 0.0), 3)
        second, b = top_k(where(kept[t], f32(x[t]), 0.1), 3)
        third, c = top_k(where(kept[t], f32(x[t]), z[t]), 3)
        fourth, d = top_k(load(x[t], where=t > 1, otherwise=0.1), 3)
        for i in range(3):
            found[t, 0, i] = a[i]
            found[t, 1, i] = b[i]
            found[t, 2, i] = c[i]
            found[t, 3, i] = d[i]
"""
    x, kept = rng.normal(0, 1, (8, 136)).astype(BF16), rng.random((8, 136)) < 0.4
    # z differs from x only in bits that bf16 does not have.
    z = (x.astype(F32) * (1 + 2.0**-20 * rng.integers(-9, 10, x.shape))).astype(F32)
    found = device.poisoned((8, 4, 3), np.int32)
    load(tmp_path, text).k(found, device.put(x), device.put(z), device.put(kept))
    wide = x.astype(F32)
    rows = [np.where(kept, wide, other) for other in (np.float32(-np.inf), np.float32(0.1), z)]
    rows.append(np.where(np.arange(8)[:, None] > 1, wide, np.float32(0.1)))
    np.testing.assert_array_equal(device.get(found), np.stack([order(row)[:, :3] for row in rows], 1))


def test_eight_in_one_kernel(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    """The kernel is too long to be unrolled, but its reductions are unrolled all the same. A reduction that loops over
    its two packs would keep the row in local memory."""
    text = """
@mlafix.kernel
def k(values: Out[f32, "n S=8 K=16"], found: Out[i32, "n S=8 K=16"], x: In[f32, "n S=8 D=256"]):
    for t in grid("n"):
"""
    for row in range(8):
        text += f"        most, indices = top_k(x[t, {row}], 16)\n        for i in range(16):\n"
        text += f"            values[t, {row}, i] = most[i]\n            found[t, {row}, i] = indices[i]\n"
    kernel = load(tmp_path, text).k
    x = numbers(rng, 32, 256, F32).reshape(4, 8, 256)
    values, found = device.poisoned((4, 8, 16), F32), device.poisoned((4, 8, 16), np.int32)
    kernel(values, found, device.put(x))
    want = order(x.reshape(32, 256)).reshape(4, 8, 256)[..., :16]
    np.testing.assert_array_equal(device.get(found), want)
    np.testing.assert_array_equal(device.get(values), np.take_along_axis(x, want, 2))
    assert ".local" not in kernel.ptx("sm_90")


def test_an_index_is_below_the_length(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    """The proofs know that an index from top_k is below the row's length, so the kernel compiles with bounds="prove",
    without bounds checks."""
    text = """
@mlafix.kernel(bounds="prove")
def k(y: Out[f32, "n"], x: In[f32, "n D"], table: In[f32, "D"]):
    for t in grid("n"):
        values, indices = top_k(x[t], 2)
        y[t] = table[indices[0]] + table[indices[1]] + values[1]
"""
    x, table = rng.normal(0, 1, (4, 60)).astype(F32), rng.normal(0, 1, 60).astype(F32)
    y = device.poisoned((4,), F32)
    load(tmp_path, text).k(y, device.put(x), device.put(table))
    first = order(x)[:, :2]
    np.testing.assert_array_equal(device.get(y), table[first[:, 0]] + table[first[:, 1]] + np.take_along_axis(x, first, 1)[:, 1])


LOGIC = """
@mlafix.kernel
def k(some: Out[bool_, "n"], every: Out[bool_, "n"], of_groups: Out[bool_, "n G"], all_of_groups: Out[bool_, "n G"], count: Out[i32, "n"],
      x: In[T, "n (G P)"], flags: In[bool_, "n (G P)"]):
    for t in grid("n"):
        some[t] = any(flags[t])
        every[t] = all(f32(x[t]) > 0.0)
        of_groups[t] = any(flags[t], along="P")
        all_of_groups[t] = all(f32(x[t]) > 0.0, along="P")
        n = 0
        if any(flags[t]) and not all(flags[t]):
            n = 1
        count[t] = n
"""


@pytest.mark.parametrize(("groups", "size"), [(1, 1), (3, 5), (4, 64), (16, 8), (4, 2056)])
def test_any_and_all(tmp_path: Path, device: Device, rng: np.random.Generator, groups: int, size: int) -> None:
    x = np.where(rng.random((40, groups * size)) < 0.5 / size, -1, 1).astype(BF16)
    flags = rng.random(x.shape) < 0.5 / (groups * size)
    flags[0], flags[1], flags[2, -1], flags[3, 0] = False, True, True, True
    outputs = [device.put(np.zeros(shape, bool)) for shape in ((40,), (40,), (40, groups), (40, groups))]
    count = device.poisoned((40,), np.int32)
    load(tmp_path, LOGIC).k(*outputs, count, device.put(x), device.put(flags))
    some, every, of_groups, all_of_groups = (np.asarray(device.get(o)) for o in outputs)
    wide = flags.reshape(40, groups, size)
    np.testing.assert_array_equal(some, flags.any(1))
    np.testing.assert_array_equal(every, (x.astype(F32) > 0).all(1))
    np.testing.assert_array_equal(of_groups, wide.any(2))
    np.testing.assert_array_equal(all_of_groups, (x.astype(F32) > 0).reshape(wide.shape).all(2))
    np.testing.assert_array_equal(device.get(count), flags.any(1) & ~flags.all(1))


WIDE = """
@mlafix.kernel
def k(total: Out[i64, "n"], most: Out[i64, "n"], least: Out[i64, "n"], of_groups: Out[i64, "n G"], x: In[i64, "n (G P)"]):
    for t in grid("n"):
        total[t] = sum(x[t])
        most[t] = max(x[t])
        least[t] = min(x[t])
        of_groups[t] = sum(x[t], along="P") + max(x[t], along="P")
"""


@pytest.mark.parametrize(("groups", "size"), [(1, 1), (3, 5), (4, 64), (2, 1024), (4, 8224)])
def test_reductions_of_i64(tmp_path: Path, device: Device, rng: np.random.Generator, groups: int, size: int) -> None:
    """Sums of i64 wrap around on overflow."""
    x = rng.integers(-(2**63), 2**63, (4, groups * size), np.int64)
    x[0], x[1] = 2**31 - 1, 2**62
    outputs = [device.poisoned(shape, np.int64) for shape in ((4,), (4,), (4,), (4, groups))]
    load(tmp_path, WIDE).k(*outputs, device.put(x))
    total, most, least, of_groups = (device.get(o) for o in outputs)
    wide = x.reshape(4, groups, size)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(total, x.sum(1))
        np.testing.assert_array_equal(of_groups, wide.sum(2) + wide.max(2))
    np.testing.assert_array_equal(most, x.max(1))
    np.testing.assert_array_equal(least, x.min(1))


@pytest.mark.parametrize("chip", ["sm_75", "sm_90"])
@pytest.mark.parametrize("size", [5, 256, 20000])
def test_kernels_assemble_for_gpus(tmp_path: Path, chip: str, size: int) -> None:
    assert load(tmp_path, best(4, "f32")).k.compile(chip, D=size).kernels[0].targets == [chip]


@pytest.mark.parametrize(("wrong", "message", "place"), [
    ("top_k(x[t], 0)", "expected a constant integer of 1 or more, got 0", "0"),
    ("top_k(x[t], 17)", "expected 1 to 16 elements, got 17", "17"),
    ("top_k(x[t], t)", "expected a constant integer of 1 or more, got index", "t"),
    ("top_k(x[t])", "expected top_k(row, k, along=…), got no 'k'", "top_k(x[t])"),
    ("top_k(1.0, 2)", "expected a row to reduce, got 1.0", "1.0"),
    ("top_k(i64(x[t]), 2)", "expected a row of f32 or i32 to reduce, got a row of i64", "i64(x[t])"),
    ('top_k(x[t], 2, along="P")', 'is no product such as "(G K)", got "P"', 'top_k(x[t], 2, along="P")'),
    ("any(x[t])", "expected a row of bool to reduce, got a row of f32 along D; compare it, as in any(row > 0)", "x[t]"),
    ("all(x[t] > 0, 2)", 'expected all(row) or all(row, along="K"), got 2 arguments', "all(x[t] > 0, 2)"),
    ("any(True)", "expected a row to reduce, got True", "True"),
    ("sum(x[t] > 0)", "expected a row of f32, i32 or i64 to reduce, got a row of bool along D; write sum(where(…, 1, 0))", "x[t] > 0"),
])  # fmt: skip
def test_what_is_refused(tmp_path: Path, wrong: str, message: str, place: str) -> None:
    text = f'@mlafix.kernel\ndef k(y: Out[f32, "n"], x: In[f32, "n D"]):\n    for t in grid("n"):\n        v = {wrong}\n        y[t] = 0.0\n'
    with refused(message, place):
        load(tmp_path, text).k.source  # noqa: B018


def test_more_elements_than_a_row_has(tmp_path: Path) -> None:
    with pytest.raises(mlafix.CompileError, match="expected a row of at least 8 elements, got 7"):
        load(tmp_path, best(8, "f32")).k.ptx("sm_90", D=7)
