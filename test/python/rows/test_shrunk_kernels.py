"""Small kernels found by random testing (test/fuzz/kernels). Each one failed once, and its name describes the failure.
Every element of every output is exact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import Device
from numerics import BF16, E4M3, E8M0, F16, F32
from packing import packed
from sources import load

import mlafix

N, D = 3, 5
FLAGS = np.array([True, False, True])
WHOLE = np.arange(-8.0, N * D - 8, dtype=F32).reshape(N, D)
SPECIAL = np.array([[np.inf, -0.0, 1.5, 448.0, 1000.0], [-np.inf, 2.0**-9, -3.0, 0.0, -448.0], [1.0, -2.0, -1000.0, 0.5, 416.0]])
INTEGERS = np.array([[1, -1, 2**31 - 1, -(2**31), 0], [-7, 5, 448, 1000, -5000], [3, 33, -2, 7, 6]], np.int32)
COUNTS = np.array([[0, 31, 32, 33, -1], [1, 2, 64, -31, 2**31 - 1], [4, -(2**31), 5, 100, 8]], np.int32)
ZEROS, ONES = np.zeros((N, D), F32), np.ones((N, D), F32)


def saturated(x: np.ndarray) -> np.ndarray:
    return np.clip(x.astype(np.float64), -448.0, 448.0).astype(E4M3)


def shifted(x: np.ndarray, by: np.ndarray) -> np.ndarray:
    return np.where((by >= 0) & (by < 32), x.astype(np.int64) << np.clip(by, 0, 31), 0).astype(np.int32)


# For each failure: the text of the kernel `k`, and its arguments in order. An output is listed as its expected values.
CASES: dict[str, tuple[str, list[Any]]] = {
    "an omitted tensor reads as zeros where the predicate holds, whatever otherwise= says": (
        """def k(y: Out[f32, "n"], z: Out[f32, "n D"], c: In[bool_, "n"], x: In[f32, "n"] | None, w: In[f32, "n D"] | None):
    for t in grid("n"):
        y[t] = load(x[t], where=0 <= t < 99, otherwise=0.5)
        z[t] = w[t] if c[t] else 5.0
""", [np.zeros(N, F32), np.where(FLAGS[:, None], ZEROS, 5 * ONES), FLAGS, None, None]),
    "an omitted tensor is the only one with a base": (
        """def k(y: InOut[i32, "n"], z: InOut[f32, "n D"] | None, x: In[u8, "D"]):
    for t in grid("n"):
        y[t] = y[t] + 1
        store_state(identity("D"), z[t])
""", [np.full(N, 1, np.int32), None, np.zeros(D, np.uint8)]),
    "an omitted tensor is the only one with a dtype variable": (
        """def k(y: Out[T, "n D"] | None, z: Out[f32, "n"], x: In[f32, "D"]):
    for t in grid("n"):
        store_state(identity("D", base=2), y[t], z[t])
""", [None, np.full(N, -np.inf, F32), ONES[0]]),
    "a state with an omitted payload, which is empty, and whose lse alone is stored": (
        """def k(y: Out[f32, "n H D"] | None, z: Out[f32, "H n"], x: In[f32, "n D"] | None, lse: In[f32, "n"]):
    for t, h in grid("n", "H"):
        store_state(load_state(x[0], lse[0], base=2), y[t, h], z[h, t])
""", [None, np.full((2, N), -np.inf, F32), None, np.array([0.75, 1.0, 2.0], F32)]),
    "bf16 rows moved, or combined without arithmetic, under a condition: '__truncsfbf2' was undefined": (
        """def k(y: Out[bf16, "n D"], z: Out[f32, "n D"], w: Out[bf16, "n D"], x: In[bf16, "n D"], c: In[bool_, "n"]):
    for t in grid("n"):
        y[t] = load(x[t], where=c[t])
        z[t] = copysign(load(x[t], where=c[t]), x[t])
        w[t] = x[t] if c[t] else 0.0
""", [np.where(FLAGS[:, None], SPECIAL, 0).astype(BF16), np.copysign(np.where(FLAGS[:, None], SPECIAL.astype(BF16), 0), SPECIAL).astype(F32),
      np.where(FLAGS[:, None], SPECIAL, 0).astype(BF16), SPECIAL.astype(BF16), FLAGS]),
    "constants divided by zero: Python raised": (
        """def k(y: Out[f32, "n D"], x: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = splat_after_division(x[0])

@mlafix.inline
def splat_after_division(row, by=0.0):
    unused = 0.0 / by
    return splat(1.0, "D")
""", [ONES, WHOLE]),
    "elements of a tuple are computed before the first iteration": (
        """def k(y: Out[f32, "n"], a: f32):
    for t in grid("n"):
        v = f32(1.0)
        for w in (4.0 * a, -4.5 + v):
            v = w
        y[t] = v
""", [np.full(N, -3.5, F32), 1.0]),
    "an extent of i32": (
        """def k(y: InOut[f32, "n H"], count: i32.at_most("n")):
    for t, h in grid(count, "H"):
        y[t, h] = y[t, h] + 1.0
""", [WHOLE + (np.arange(N) < 2)[:, None].astype(F32), 2]),
    "integers and booleans to fp8": (
        """def k(y: Out[f8e4m3fn, "n"], z: Out[f8e4m3fn, "n D"], b: Out[f8e4m3fn, "n"], x: In[i32, "n D"], c: In[bool_, "n"], a: index):
    for t in grid("n"):
        y[t] = f32(a)
        z[t] = f32(x[t])
        b[t] = f32(c[t])
""", [np.full(N, -7).astype(E4M3), saturated(INTEGERS), FLAGS.astype(E4M3), INTEGERS, FLAGS, -7]),
    "f16 and bf16 to fp8 without arithmetic: numbers, rows, rows of a dtype variable": (
        """def k(y: Out[f8e4m3fn, "n"], z: Out[f8e4m3fn, "n D"], w: Out[f8e4m3fn, "n D"], x: In[f16, "n D"], u: In[T, "n D"]):
    for t in grid("n"):
        y[t] = x[t, 1]
        z[t] = x[t]
        w[t] = u[t]
""", [saturated(SPECIAL[:, 1]), saturated(SPECIAL), saturated(SPECIAL), SPECIAL.astype(F16), SPECIAL.astype(BF16)]),
    "a row whose elements share bytes, beside a member of groups that fill an access each: packs of half a byte on GPUs": (
        """def k(y: Out[f8e8m0, "H n c w=4"], z: Out[f32, "n H c G"], x: In[f4e2m1, "H n (G 4)"], u: In[f32, "H n c (G 4)"]):
    for t, h, j in grid("n", "H", "c"):
        store_state(make_state(x[0, 0, 0], 2.0), y[h, t, j])
        z[t, h, j] = u[0, 0, 0, :, 3]
""", [np.tile(np.array([1, 2, 4, 0.5]).astype(E8M0), (1, N, 1, 1)), np.full((N, 1, 1, 1), 9, F32),
      np.tile(packed(np.array([2, 4, 6, 1], np.uint8)), (1, N, 1)), np.tile(np.array([0, 1, 2, 9], F32), (1, N, 1, 1))]),
    "a member of all groups in nested loops: the compiler crashed": (
        """def k(y: InOut[f8e4m3fn, "n G"], x: In[f32, "n (G 16)"], u: In[f32, "K n (G 16)"], s: In[f32, "n G"], lse: In[f32, "n"], a: i32):
    for t in grid("n"):
        for r in range(min(max(a, -1), 6)):
            v, w = x[0], u[0, 0]
            for q in range(min(max(r, -6), 6)):
                v -= u[0, 0, :, 0]
                store_state(load_state(s[0], lse[0], base=2), y[t])
""", [np.full((N, 1), 1.5).astype(E4M3), np.ones((N, 16), F32), np.ones((1, N, 16), F32), np.full((N, 1), 1.5, F32), np.ones(N, F32), 2]),
    "an index that loses bits on its way through i32": (
        """def k(y: Out[f32, "n"], x: In[f32, "n D"], a: index):
    for t in grid("n"):
        y[t] = x[t, max(min(index(i32(a)), 4), 0)]
""", [WHOLE[:, 0], WHOLE, 0x2AAAAAAAAAAAAAAA]),
    "a constant stored as a dtype variable": (
        """def k(y: Out[I, "H n D"]):
    for t, h in grid("n", "H"):
        y[h, t] = 5
""", [np.full((2, N, D), 5, np.int64)]),
    "loops whose range is empty by more than a step, or whose index would wrap": (
        """def k(y: Out[f32, "n D"], z: Out[f32, "n D"], w: Out[f32, "n D"], x: In[f32, "q=3 D"], first: In[i32, "n"]):
    for t in grid("n"):
        v = splat(0.0, "D")
        for r in range(first[t], 0, 2):
            v += x[index(r) % 3] + 1.0
        y[t] = v
        v = splat(0.0, "D")
        for r in range(max(t, -2), -5, 2):
            v += x[index(r) % 3] + 1.0
        z[t] = v
        v = splat(0.0, "D")
        for r in range(i32(2147483646), i32(2147483647), 2):
            v += x[index(r) % 3] + 1.0
        w[t] = v
""", [np.stack([ZEROS[0], ZEROS[0], WHOLE[0] + WHOLE[2] + 2]), ZEROS, np.tile(WHOLE[0] + 1, (N, 1)), WHOLE, np.array([7, 2, -3], np.int32)]),
    "shifts of rows by the width, by more, and by negative amounts": (
        """def k(y: Out[i32, "n D"], z: Out[i32, "n D"], w: Out[i32, "n D"], x: In[i32, "n D"], by: In[i32, "n D"]):
    for t in grid("n"):
        y[t] = x[t] << 41
        z[t] = x[t] >> -1
        w[t] = x[t] << by[t]
""", [0 * INTEGERS, INTEGERS >> 31, shifted(INTEGERS, COUNTS), INTEGERS, COUNTS]),
    "rows along a dim of fixed size, by its name and from memory": (
        """def k(y: Out[f32, "n e=5"], x: In[f32, "e=5"]):
    for t in grid("n"):
        y[t] = x[:]
""", [np.tile(WHOLE[0], (N, 1)), WHOLE[0]]),
    "states along a dim of fixed size, by its name and from memory": (
        """def k(y: Out[f32, "n e=5"], x: In[f32, "n e=5"], lse: In[f32, "n"]):
    for t in grid("n"):
        store_state(merge(identity("e", base=2), load_state(x[t], lse[t], base=2)), y[t])
""", [np.where(FLAGS[:, None], WHOLE, ZEROS), WHOLE, np.where(FLAGS, 2.0, -np.inf).astype(F32)]),
    "the sum of a loop's counter, in whose closed form LLVM divides 65 bits: '__udivti3' was undefined": (
        """def k(y: Out[f8e8m0, "qt=3 (G J)"], x: In[f8e8m0, "k qt=3 (G J)"], u: In[f32, "G"]):
    for t in grid(3):
        v = index(0)
        for r in range(t, 6, 7):
            v = v + r
        store_state(merge(make_state(x[v, 0], -2.5, base="e")), y[t])
""", [np.array([[1], [2], [4]]).astype(E8M0), np.repeat(np.array([1, 2, 4]), 3).reshape(3, 3, 1).astype(E8M0), np.ones(1, F32)]),
    "where with a constant condition is a row in a branch": (
        """def k(y: Out[i32, "n D"], x: In[i32, "n D"], u: In[f32, "n"] | None):
    for t in grid("n"):
        v = x[0]
        if u is not None:
            v = where(False, x[0], 5)
        y[t] = v
""", [np.full((N, D), 5, np.int32), INTEGERS, np.ones(N, F32)]),
}  # fmt: skip
# The contents of InOut arguments before the call.
BEFORE = {"an omitted tensor is the only one with a base": np.zeros(N, np.int32), "an extent of i32": WHOLE}


@pytest.mark.filterwarnings("ignore:expected every access of")  # the compiler guards the bounds of these accesses
@pytest.mark.parametrize("name", CASES, ids=str)
def test_a_kernel_that_failed_is_right(tmp_path: Path, device: Device, name: str) -> None:
    text, given = CASES[name]
    kernel = load(tmp_path, "\n@mlafix.kernel\n" + text).k
    (tmp_path / "k.mlir").write_text(kernel.source, encoding="utf-8")
    for made in (kernel, mlafix.Kernel.load(tmp_path / "k.mlir")):
        arguments = [device.put(value) if isinstance(value, np.ndarray) else value for value in given]
        for i in range(text.count("Out[")):
            if given[i] is not None:
                arguments[i] = device.put(BEFORE[name].copy()) if name in BEFORE else device.poisoned(given[i].shape, given[i].dtype)
        made(*arguments)
        for expected, argument in zip(given, arguments):
            if isinstance(expected, np.ndarray):
                bits = f"u{expected.dtype.itemsize}"
                np.testing.assert_array_equal(np.ascontiguousarray(device.get(argument)).view(bits), expected.view(bits))
