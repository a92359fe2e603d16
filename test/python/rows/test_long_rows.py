"""Rows with more elements than a lane can hold, such as rows of a vocabulary. Values that are used again are loaded or
computed again. Results are compared with numpy in f64."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from devices import Device
from numerics import BF16, E4M3, F16, F32, round_to
from sources import load, underlined
from test_scans import reduced, scanned, spaced

import mlafix

TEXT = """
@mlafix.kernel
def probabilities(y: Out[T, "n V"], lse: Out[f32, "n"], best: Out[i32, "n"], least: Out[i32, "n"], x: In[T, "n V"]):
    for t in grid("n"):
        m = max(x[t])
        e = exp(x[t] - m)
        s = sum(e)
        y[t] = e / s
        lse[t] = m + log(s)
        best[t] = argmax(x[t])
        least[t] = argmin(x[t])


@mlafix.kernel
def extremes(most: Out[f32, "n"], least: Out[f32, "n"], first: Out[i32, "n"], last: Out[i32, "n"], x: In[f32, "n V"]):
    for t in grid("n"):
        most[t], least[t] = max(x[t]), min(x[t])
        first[t], last[t] = argmax(x[t]), argmin(x[t])


@mlafix.kernel
def exact(total: Out[f32, "n"], sums: Out[f32, "n V"], most: Out[i32, "n V"], centred: Out[f32, "n V"], ids: Out[i32, "n V"],
          x: In[f32, "n V"], y: In[i32, "n V"]):
    for t in grid("n"):
        s = sum(x[t])
        total[t] = s
        v = x[t] - s
        sums[t] = cumsum(v) + max(v)
        most[t] = cummax(y[t]) - min(y[t])
        centred[t] = where(iota("V") % 3 == 0, v, x[t])
        ids[t] = iota("V")


@mlafix.kernel
def in_place(x: InOut[T, "n V"], scale: f32):
    for t in grid("n"):
        m = max(x[t] * scale)
        e = exp(x[t] * scale - m)
        x[t] = e / sum(e)


@mlafix.kernel
def written_before(y: Out[f32, "n V"], z: Out[f32, "n V"], x: In[f32, "n V"]):
    for t in grid("n"):
        v = x[t]
        m = max(v)
        y[t] = v - m
        z[t] = v + max(abs(v - m))


@mlafix.kernel
def swapped(x: InOut[f32, "n V"], y: InOut[f32, "n V"]):
    for t in grid("n"):
        a, b = x[t], y[t]
        m = max(a)
        x[t] = b - m
        y[t] = a - min(b)


@mlafix.kernel
def one_before(x: InOut[f32, "n V"], total: Out[f32, "n"]):
    for t in grid("n"):
        v = x[t]
        s = sum(v)
        x[t, 1] = s
        total[t] = sum(v * s)


@mlafix.kernel
def carried(y: Out[f32, "n V"], x: In[f32, "n V"], c: In[i32, "n"]):
    for t in grid("n"):
        acc = x[t] - max(x[t])
        for i in range(c[t]):
            acc = max(acc + 1.0, x[t] - sum(acc))
        y[t] = acc


@mlafix.kernel
def quantised(q: Out[f8e4m3fn, "n (G K)"], scales: Out[f32, "n G"], top: Out[f32, "n"], x: In[T, "n (G K)"]):
    for t in grid("n"):
        s = max(max(abs(x[t]), along="K"), 1e-10) / 448.0
        scales[t] = s
        q[t] = x[t] / s
        top[t] = max(s)


@mlafix.kernel
def parts(y: Out[f32, "n K"], x: InOut[f32, "n (2 K)"], pairs: In[f32, "n (K 2)"]):
    for t in grid("n"):
        gate, up = x[t, 0], x[t, 1]
        m = max(gate)
        y[t] = gate * up - m + pairs[t, :, 0] * pairs[t, :, 1]
        x[t, 1] = gate - m


@mlafix.kernel
def too_many(y: Out[f32, "n V"], x: In[f32, "n V"], c: i32):
    for t in grid("n"):
        a, b = x[t], x[t] * 2.0
        for i in range(c):
            a, b = b + sum(a), a - sum(b)
        y[t] = a + b


@mlafix.kernel
def copy(y: Out[f32, "n V"], x: In[f32, "n V"]):
    for t in grid("n"):
        y[t] = x[t]
"""

SIZES = [128256, 151936, 262144, 262145]


def whole(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Returns small whole numbers. Their sums are exact in f32."""
    return rng.integers(-8, 9, shape).astype(np.float32)


def soft(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    wide = x.astype(np.float64)
    m = wide.max(-1, keepdims=True)
    e = np.exp(wide - m)
    s = e.sum(-1, keepdims=True)
    return e / s, (m + np.log(s))[:, 0]


def check_probabilities(got: np.ndarray, want: np.ndarray) -> None:
    """Asserts that probabilities are right, up to rounding to the dtype and the errors of the exponential and of the
    sum's logarithm (N10)."""
    unit = {F32: 2.0**-24, F16: 2.0**-11, BF16: 2.0**-8}[got.dtype]
    smallest = 2.0**-25 if got.dtype == F16 else 0
    assert (np.abs(got.astype(np.float64) - want) <= want * (unit + 2e-5) + smallest).all()


@pytest.mark.parametrize("gap, offset", [(0, 0), (3, 1)])
@pytest.mark.parametrize("dtype", [F32, BF16, F16], ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_probabilities_of_a_vocabulary(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int, dtype: np.dtype, gap: int, offset: int) -> None:
    x = (rng.standard_normal((3, size)) * 3).astype(dtype)
    x[0, size // 2] = x[0, size - 1] = x[1, 0] = 40
    x[2, size - 1] = -40
    y, lse = device.poisoned(x.shape, dtype), device.poisoned((3,), F32)
    best, least = device.poisoned((3,), np.int32), device.poisoned((3,), np.int32)
    kernels.probabilities(y, lse, best, least, device.put(spaced(x, gap, offset)))
    want, want_lse = soft(x)
    check_probabilities(device.get(y), want)
    np.testing.assert_allclose(device.get(lse), want_lse, rtol=4e-6)
    np.testing.assert_array_equal(device.get(best), x.astype(np.float32).argmax(-1))
    np.testing.assert_array_equal(device.get(least), x.astype(np.float32).argmin(-1))


@pytest.mark.parametrize("gap, offset", [(0, 0), (3, 1)])
@pytest.mark.parametrize("size", [65537, *SIZES])
def test_bits_of_sums_and_scans(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int, gap: int, offset: int) -> None:
    x = rng.standard_normal((2, size)).astype(np.float32)
    y = rng.integers(-(2**20), 2**20, x.shape).astype(np.int32)
    total = device.poisoned((2,), F32)
    outputs = [device.poisoned(x.shape, dtype) for dtype in (F32, np.int32, F32, np.int32)]
    kernels.exact(total, *outputs, device.put(spaced(x, gap, offset)), device.put(spaced(y, gap, offset)))
    sums, most, centred, ids = (np.array(device.get(output)) for output in outputs)
    s = reduced(x)[:, None]
    v = x - s
    np.testing.assert_array_equal(device.get(total), s[:, 0])
    np.testing.assert_array_equal(sums, scanned(v) + v.max(-1, keepdims=True))
    np.testing.assert_array_equal(most, np.maximum.accumulate(y, -1) - y.min(-1, keepdims=True))
    np.testing.assert_array_equal(centred, np.where(np.arange(size) % 3 == 0, v, x))
    np.testing.assert_array_equal(ids, np.broadcast_to(np.arange(size), x.shape))


@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
@pytest.mark.parametrize("size", [128256, 262145])
def test_a_row_may_be_replaced(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int, dtype: np.dtype) -> None:
    x = (rng.standard_normal((2, size)) * 3).astype(dtype)
    y = device.put(x.copy())
    kernels.in_place(y, 0.5)
    check_probabilities(device.get(y), soft(x.astype(np.float32) * 0.5)[0])


@pytest.mark.parametrize("alias", ["none", "y", "z"])
@pytest.mark.parametrize("size", [128256, 262145])
def test_what_was_written_is_not_read_again(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int, alias: str) -> None:
    """An output may be the input. Then the original row is kept for its later uses."""
    x = whole(rng, (2, size))
    given = device.put(x.copy())
    y = given if alias == "y" else device.poisoned(x.shape, F32)
    z = given if alias == "z" else device.poisoned(x.shape, F32)
    kernels.written_before(y, z, given)
    v = x - x.max(-1, keepdims=True)
    np.testing.assert_array_equal(device.get(y), v)
    np.testing.assert_array_equal(device.get(z), x + np.abs(v).max(-1, keepdims=True))


def test_two_rows_change_places(kernels: ModuleType, device: Device, rng: np.random.Generator) -> None:
    a, b = whole(rng, (2, 128256)), whole(rng, (2, 128256))
    x, y = device.put(a.copy()), device.put(b.copy())
    kernels.swapped(x, y)
    np.testing.assert_array_equal(device.get(x), b - a.max(-1, keepdims=True))
    np.testing.assert_array_equal(device.get(y), a - b.min(-1, keepdims=True))


@pytest.mark.parametrize("size", [128256, 262145])
def test_an_element_is_written_in_between(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int) -> None:
    a = whole(rng, (2, size)) % 3 - 1
    x, total = device.put(a.copy()), device.poisoned((2,), F32)
    kernels.one_before(x, total)
    s = a.sum(-1)
    want = a.copy()
    want[:, 1] = s
    np.testing.assert_array_equal(device.get(x), want)
    np.testing.assert_allclose(device.get(total), s.astype(np.float64) ** 2, rtol=1e-6)


@pytest.mark.parametrize("size", [128256, 262145])
def test_rows_that_loops_carry_are_kept(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int) -> None:
    x, c = whole(rng, (3, size)) % 3 - 1, np.arange(3, dtype=np.int32)
    x[:, :7] = 0
    y = device.poisoned(x.shape, F32)
    kernels.carried(y, device.put(x), device.put(c))
    for t in range(3):
        acc = x[t] - x[t].max()
        for _ in range(c[t]):
            acc = np.maximum(acc + np.float32(1), x[t] - reduced(acc[None])[0])
        np.testing.assert_array_equal(np.array(device.get(y))[t], acc)


def test_what_loops_carry_needs_no_room_on_the_callers_stack(kernels: ModuleType, tmp_path: Path) -> None:
    """Rows that loops carry are not kept on the caller's stack, since they would overflow the small stack that a
    server's thread may have."""
    script = f"""
import runpy, sys, threading
import numpy as np
kernels = runpy.run_path({kernels.__file__!r})
def call():
    x, y = np.ones((2, 200000), np.float32), np.empty((2, 200000), np.float32)
    kernels["carried"](y, x, np.array([1, 2], np.int32))
    print(y[0, 0], y[1, -1])
call()
threading.stack_size(512 << 10)
thread = threading.Thread(target=call)
thread.start()
thread.join()
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == second


@pytest.mark.parametrize("groups, size", [(1002, 128), (2004, 64), (4096, 33), (3, 50000)])
def test_groups_of_long_rows(kernels: ModuleType, device: Device, rng: np.random.Generator, groups: int, size: int) -> None:
    x = (rng.standard_normal((2, groups * size)) * 3).astype(BF16)
    q, scales, top = device.poisoned(x.shape, E4M3), device.poisoned((2, groups), F32), device.poisoned((2,), F32)
    kernels.quantised(q, scales, top, device.put(x))
    each = x.astype(np.float32).reshape(2, groups, size)
    want = np.maximum(np.abs(each).max(-1), np.float32(1e-10)) / np.float32(448)
    np.testing.assert_array_equal(device.get(scales), want)
    np.testing.assert_array_equal(device.get(top), want.max(-1))
    rounded = round_to(E4M3, (each / want[..., None]).astype(np.float64)).reshape(x.shape)
    np.testing.assert_array_equal(np.array(device.get(q)).astype(np.float64), rounded)


def test_parts_of_long_rows(kernels: ModuleType, device: Device, rng: np.random.Generator) -> None:
    size = 100000
    x, pairs = whole(rng, (2, 2 * size)), whole(rng, (2, 2 * size))
    y, given = device.poisoned((2, size), F32), device.put(x.copy())
    kernels.parts(y, given, device.put(pairs))
    gate, up = x[:, :size], x[:, size:]
    m = gate.max(-1, keepdims=True)
    np.testing.assert_array_equal(device.get(y), gate * up - m + pairs[:, 0::2] * pairs[:, 1::2])
    np.testing.assert_array_equal(device.get(given), np.concatenate([gate, gate - m], -1))


@pytest.mark.parametrize("chip, size", [("sm_75", 128256), ("sm_90", 262145)])
def test_long_rows_assemble_for_gpus(kernels: ModuleType, chip: str, size: int) -> None:
    for kernel, bound in ((kernels.probabilities, {"T": "bf16"}), (kernels.exact, {}), (kernels.in_place, {"T": "bf16"}), (kernels.carried, {})):
        assert kernel.compile(chip, V=size, **bound).kernels[0].targets == [chip]


def test_what_a_thread_cannot_keep_is_an_error(kernels: ModuleType) -> None:
    for target, most in (("sm_90", 16384), ("cpu", 4194304)):
        with pytest.raises(mlafix.CompileError, match=f"expected at most {most} bytes of rows per thread, got") as caught:
            kernels.too_many.compile(target, V=4000000)
        assert underlined(str(caught.value))


def test_an_index_is_an_i32(kernels: ModuleType, tmp_path: Path) -> None:
    for target in ("sm_90", "cpu"):
        kernels.copy.compile(target, V=2**31 - 1)
    with pytest.raises(mlafix.CompileError, match=r"expected a size of at most 2147483647 for 'V', got 2147483648"):
        kernels.copy.compile("cpu", V=2**31)
    wide: Any = load(tmp_path, TEXT.replace('"n V"', '"n (V 4)"')).copy
    with pytest.raises(mlafix.CompileError, match="expected rows of at most 2147483647 elements, whose indices are i32, got 2147483648") as caught:
        wide.compile("cpu", V=2**29)
    assert underlined(str(caught.value)) == "x[t]"


def test_long_chains_of_rows_compile(tmp_path: Path) -> None:
    """Each of 40 rows uses the preceding one twice, so 2^40 paths lead from the last row to the first. The analysis
    that finds rows to recompute visits each row only once."""
    squares = "".join("        v = v * v\n" for _ in range(40))
    text = f'\n@mlafix.kernel\ndef k(y: Out[f32, "n V"], x: In[f32, "n V"]):\n    for t in grid("n"):\n        v = x[t]\n{squares}        y[t] = v / sum(v)\n'
    x, y = np.ones((1, 128256), F32), np.zeros((1, 128256), F32)
    kernel = load(tmp_path, text).k
    kernel(y, x)
    np.testing.assert_allclose(y, 1 / 128256, rtol=1e-6)
    assert "ld.global" in kernel.ptx("sm_90", V=128256)


@pytest.mark.parametrize("size", [96, 1000, 4096])
def test_extremes_are_the_first_of_equals_and_nan(device: Device, kernels: ModuleType, size: int) -> None:
    """Of equal extreme elements, the first counts. They lie in one pack, in several packs, and at the ends of packs. In
    some rows, the first one is further from the beginning of its pack than the other."""
    places = [(5, 40), (31, 32), (15, 16), (63, 64), (33, 65), (0, size - 1), (size - 2, size - 1)]
    x = np.zeros((2 * len(places) + 3, size), np.float32)
    for row, (a, b) in enumerate(places):
        x[row, [a, b]] = 7.0 if row % 2 else -7.0
        x[len(places) + row, a], x[len(places) + row, [a - 1, b]] = np.inf, np.nan
    x[-3], x[-2] = -np.inf, np.nan
    x[-1], x[-1, 50] = -0.0, 0.0
    results = [device.poisoned((len(x),), np.float32) for _ in range(2)] + [device.poisoned((len(x),), np.int32) for _ in range(2)]
    kernels.extremes(*results, device.put(x))
    most, least, first, last = (device.get(one) for one in results)
    np.testing.assert_array_equal(most, x.max(axis=1))
    np.testing.assert_array_equal(least, x.min(axis=1))
    np.testing.assert_array_equal(first[:-1], x.argmax(axis=1)[:-1])
    np.testing.assert_array_equal(last[:-1], x.argmin(axis=1)[:-1])
    assert not np.signbit(most[-1]) and np.signbit(least[-1])
