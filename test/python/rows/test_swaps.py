"""`swap` exchanges neighbouring blocks of a row, and `load` with `into` reads a row into a part of a longer one.
Results are compared with numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from devices import Device
from numerics import BF16, E4M3, E5M2, E8M0, F16, F32, same_bits, widen
from sources import load

import mlafix


def swaps(dim: str, block: int) -> str:
    return f"""
@mlafix.kernel
def swaps(y: Out[T, "n {dim}"], z: Out[i32, "n {dim}"], w: Out[f32, "n"], x: In[T, "n {dim}"], k: In[i32, "n {dim}"]):
    for t in grid("n"):
        row = swap(x[t], {block})
        y[t] = row
        z[t] = swap(k[t], {block}) + iota("{dim}")
        w[t] = sum(swap(row - sum(row), {block}))
"""


@pytest.mark.parametrize(("dim", "size", "block"), [
    ("D", 2, 1), ("D", 6, 1), ("D", 96, 16), ("D", 512, 1), ("D", 512, 4), ("D", 512, 32), ("D", 512, 256), ("D", 576, 32), ("D", 16384, 4096),
    ("D", 16384, 8), ("(G 128)", 512, 32), ("(G 16)", 512, 64), ("(G 96)", 384, 16), ("(G 6)", 24, 1), ("D", 100, 2)], ids=str)  # fmt: skip
def test_swaps_on_a_device(tmp_path: Path, device: Device, rng: np.random.Generator, dim: str, size: int, block: int) -> None:
    """Swaps blocks within a pack, across lanes, across warps, and as whole packs. Some rows are processed in loops, and
    some groups have padded packs."""
    kernel = load(tmp_path, swaps(dim, block)).swaps
    dtype = BF16 if size % 4 == 0 else F32
    x, k = rng.normal(0, 1, (5, size)).astype(np.float32).astype(dtype), rng.integers(-(2**31), 2**31, (5, size)).astype(np.int32)
    y, z, w = device.poisoned(x.shape, dtype), device.poisoned(k.shape, np.int32), device.poisoned((5,), F32)
    kernel(y, z, w, device.put(x), device.put(k))
    places = np.arange(size) ^ block
    assert same_bits(device.get(y), x[:, places])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(device.get(z), k[:, places] + np.arange(size, dtype=np.int32))
    total = widen(x).sum(1)
    np.testing.assert_allclose(device.get(w), total - size * total, rtol=1e-4, atol=1e-2 * size**0.5)


HADAMARD = """
@mlafix.kernel
def hadamard(y: Out[f32, "n D"], x: In[f32, "n D"]):
    for t in grid("n"):
        row, i = x[t], iota("D")
STAGES        y[t] = row
"""


def transformed(rows: np.ndarray, stages: list[int]) -> np.ndarray:
    """Takes one step for each block size in `stages`. A step pairs the elements a and b at the same place of two
    neighbouring blocks, and replaces a by a + b and b by a - b."""
    places = np.arange(rows.shape[1])
    for block in stages:
        rows = rows[:, places ^ block] + np.where(places & block, -rows, rows)
    return rows


@pytest.mark.parametrize(("size", "stages"), [
    (1024, 10 * 2), (2048, 11), (4096, 12), (12288, 12), (16384, 14), (32768, 15)], ids=str)  # fmt: skip
def test_hadamard_transforms(tmp_path: Path, device: Device, rng: np.random.Generator, size: int, stages: int) -> None:
    """All swaps of a kernel share one buffer in shared memory, whatever the number of packs. The sums are exact."""
    bits = int(np.log2(size & -size))
    blocks = [1 << i % bits for i in range(stages)]
    text = "".join(f"        row = swap(row, {block}) + where((i & {block}) == 0, row, -row)\n" for block in blocks)
    kernel = load(tmp_path, HADAMARD.replace("STAGES", text)).hadamard
    x = rng.integers(-8, 9, (2, size)).astype(F32)
    y = device.poisoned(x.shape, F32)
    kernel(y, device.put(x))
    np.testing.assert_array_equal(device.get(y), transformed(x.astype(np.float64), blocks))


def test_exchanges_of_several_kinds_share_memory(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    """Swaps, reductions and scans use the same shared memory, since a buffer for each of them would exceed what a block
    has. So an exchange begins only when all threads have finished the previous one."""
    size, rounds = 8192, 6
    text = "".join(f"""        row = swap(row, {1024 << i % 3}) + i32(i == {i})
        total = total + sum(row) + max(row)
        row = cumsum(row) - total
""" for i in range(rounds))  # fmt: skip
    kernel = load(tmp_path, f"""
@mlafix.kernel
def exchanges(y: Out[i32, "n D"], x: In[i32, "n D"]):
    for t in grid("n"):
        row, i, total = x[t], iota("D"), i32(0)
{text}        y[t] = row
""").exchanges
    x = rng.integers(-99, 100, (2, size)).astype(np.int32)
    y = device.poisoned(x.shape, np.int32)
    kernel(y, device.put(x))
    row, total, places = x.copy(), np.zeros(2, np.int32), np.arange(size)
    with np.errstate(over="ignore"):
        for i in range(rounds):
            row = row[:, places ^ (1024 << i % 3)] + (places == i).astype(np.int32)
            total = total + row.sum(1, dtype=np.int32) + row.max(1)
            row = np.cumsum(row, axis=1, dtype=np.int32) - total[:, None]
    np.testing.assert_array_equal(device.get(y), row)


INTO = """
@mlafix.kernel
def into(y: Out[f32, "n D"], x: In[T, "m Z"], at: In[i32, "n"]):
    for t in grid("n"):
        y[t] = load(x[at[t]], into="D", first=FIRST, each=EACH, where=at[t] != 3)
"""


@pytest.mark.parametrize(("size", "short", "first", "each"), [
    (512, 32, 448, 2), (512, 32, 448, 1), (512, 64, 448, 1), (96, 8, 0, 2), (40, 6, 17, 3), (33, 5, 0, 1), (64, 3, 64, 1), (8192, 16, 1024, 2),
    (64, 64, -1, 1), (64, 128, -64, 1), (40, 6, -17, 3), (33, 5, -1, 2)])  # fmt: skip
def test_rows_read_into_longer_ones(tmp_path: Path, device: Device, rng: np.random.Generator, size: int, short: int, first: int, each: int) -> None:
    """The result repeats each element of the short row `each` times, and begins the short row again after its end. If
    the row is not read, because of its predicate or an index out of bounds, the result is all zeros."""
    kernel = load(tmp_path, INTO.replace("FIRST", str(first)).replace("EACH", str(each))).into
    for dtype in (F32, BF16, F16):
        x, at = rng.normal(0, 1, (6, short)).astype(np.float32).astype(dtype), np.array([0, 5, 3, 6, -1, 2], np.int32)
        y = device.poisoned((len(at), size), F32)
        kernel(y, device.put(x), device.put(at))
        want = np.zeros((len(at), size), F32)
        for t, row in enumerate(at):
            if 0 <= row < 6 and row != 3:
                begin = max(first, 0)
                want[t, begin:] = widen(x)[row, np.arange(begin - first, size - first) // each % short]
        np.testing.assert_array_equal(device.get(y), want)


def test_a_row_is_turned_in_place(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    """Runs the kernel from docs/language/products.md on rows of f32."""
    kernel = load(tmp_path, """
@mlafix.kernel
def turn_end(x: InOut[T, "n H D"], c: In[f32, "n Z"], s: In[f32, "n Z"]):
    for t, h in grid("n", "H"):
        row, i = f32(x[t, h]), iota("D")
        cos, sin = load(c[t], into="D", first=16, each=2), load(s[t], into="D", first=16, each=2)
        turned = row * cos + swap(row, 1) * where((i & 1) == 0, -sin, sin)
        x[t, h] = where(i >= 16, turned, row)
""").turn_end
    x, angles = rng.normal(0, 1, (3, 2, 48)).astype(F32), rng.uniform(-3, 3, (3, 16))
    held = device.put(x.copy())
    kernel(held, device.put(np.cos(angles).astype(F32)), device.put(np.sin(angles).astype(F32)))
    want, c, s = x.astype(np.float64), np.cos(angles)[:, None], np.sin(angles)[:, None]
    a, b = want[..., 16::2].copy(), want[..., 17::2].copy()
    want[..., 16::2], want[..., 17::2] = a * c - b * s, b * c + a * s
    np.testing.assert_allclose(device.get(held), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16", "f8e4m3fn", "f8e5m2", "f8e8m0", "i64", "i32", "i8", "u8", "bool_"])
def test_rows_of_every_dtype_are_read_into_longer_ones(device: Device, tmp_path: Path, dtype: str) -> None:
    kernel = load(tmp_path, f"""
@mlafix.kernel
def k(y: Out[{dtype}, "n D"], large: Out[i32, "n"], x: In[{dtype}, "n Z"]):
    for t in grid("n"):
        row = load(x[t], into="D", first=3, each=2)
        y[t] = row
        large[t] = sum(i32(row {"" if dtype == "bool_" else "> 1" if "f" not in dtype else "> 1.0"}))
""").k
    of = {"bf16": BF16, "f8e4m3fn": E4M3, "f8e5m2": E5M2, "f8e8m0": E8M0, "i8": np.int8, "u8": np.uint8, "bool_": np.bool_,
          "f32": F32, "f16": F16, "i32": np.int32, "i64": np.int64}[dtype]  # fmt: skip
    x = np.array([[dtype != "bool_", 1, 2, 4], [64, 200 if dtype == "u8" else 32, 8, 1]]).astype(np.float32).astype(of)
    y, large = device.poisoned((2, 16), of), device.poisoned((2,), np.int32)
    kernel(y, large, device.put(x))
    want = np.zeros((2, 16), of)
    want.view(f"u{want.itemsize}")[:, 3:] = np.concatenate([x, x], axis=1).repeat(2, axis=1)[:, :13].view(f"u{want.itemsize}")
    assert device.get(y)[:, 3:].tobytes() == want[:, 3:].tobytes()
    np.testing.assert_array_equal(device.get(large), (want[:, 3:].astype(np.float32) > (0 if dtype == "bool_" else 1)).sum(axis=1))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_rows_of_a_variable_of_integers_are_read_into_longer_ones(device: Device, tmp_path: Path, dtype: str) -> None:
    kernel = load(tmp_path, """
@mlafix.kernel
def k(y: Out[i64, "n D"], x: In[I, "n Z"]):
    for t in grid("n"):
        y[t] = load(x[t], into="D", first=1)
""").k
    x, y = np.array([[7, -9 if dtype != "uint8" else 250, 100]], dtype), device.poisoned((1, 9), np.int64)
    kernel(y, device.put(x))
    np.testing.assert_array_equal(device.get(y), [[0, *[*x[0].astype(np.int64)] * 3][:9]])


def test_rows_whose_elements_share_a_byte_are_read_into_no_other(tmp_path: Path) -> None:
    module = load(tmp_path, """
@mlafix.kernel
def k(y: Out[f32, "n D"], x: In[f4e2m1, "n Z"]):
    for t in grid("n"):
        y[t] = load(x[t], into="D")
""")
    with pytest.raises(mlafix.CompileError, match="expected a row with elements of whole bytes to read into another one, got f4e2m1"):
        module.k.compile("x86-64", D=16, Z=8)


@pytest.mark.parametrize(("body", "message"), [
    ("y[t] = swap(x[t], 3)", "expected a power of two as the number of elements in a block, got 3"),
    ("y[t] = swap(x[t], 0)", "expected a constant integer of 1 or more, got 0"),
    ("y[t] = swap(x[t], 16)", "expected the size of a row to be a multiple of 32, two blocks of 16 elements, got 48"),
    ("y[t] = swap(x[t] > 0.0, 1)", "expected a row of f32 or i32, got a row of bool"),
    ('y[t] = load(x[t], into="D", first=-2147483648)', "expected a constant integer of -2147483647 or more, got -2147483648"),
    ('y[t] = load(x[t], into="Q")', "expected the name of a dim that rows lie along"),
    ('y[t] = load(x[t, 0], into="D")', "expected a whole row beside into, as x.t., got x.t, 0."),
    ("y[t] = load(x[t], first=2)", "expected a dim \\(into=…\\) beside first, got none"),
    ('y[t] = load(x[t], into="D", otherwise=1.0)', "expected no otherwise beside into, since elements outside of the row are 0, got one"),
    ('y[t] = load(x[t], into="D", first=49)', "expected a row of at least 49 elements to read into, got one along 48"),
])  # fmt: skip
def test_mistakes(tmp_path: Path, body: str, message: str) -> None:
    module = load(tmp_path, f'\n@mlafix.kernel\ndef k(y: Out[f32, "n D"], x: In[f32, "n D"]):\n    for t in grid("n"):\n        {body}\n')
    with pytest.raises(mlafix.CompileError, match=message):
        module.k(np.zeros((2, 48), F32), np.zeros((2, 48), F32))
