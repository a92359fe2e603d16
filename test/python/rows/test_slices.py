"""Slices of rows, x[t, a:b]: loads, stores, rows along other dims, alignment, and order of accesses. Results are
compared with numpy."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from devices import Device
from numerics import BF16, E4M3, F32, same_bits
from sources import load, refused

import mlafix

# Splits a key into its latent part and its rope part, and joins them again.
PARTS = """
@mlafix.kernel
def split(latent: Out[T, "n L=512"], rope: Out[f32, "n R"], x: In[T, "n D=576"]):
    for t in grid("n"):
        latent[t] = x[t, :512]
        rope[t] = load(x[t, 512:], into="R") * 2.0


@mlafix.kernel
def join(y: Out[T, "n D=576"], latent: In[T, "n L=512"], rope: In[T, "n R"]):
    for t in grid("n"):
        y[t, :-64] = latent[t]
        y[t, 512:576] = rope[t]


@mlafix.kernel
def quantize(q: Out[f8e4m3fn, "n (G 128)"], scales: Out[f32, "n G"], rope: Out[T, "n R=64"], x: In[T, "n D=576"]):
    for t in grid("n"):
        row = f32(load(x[t, :512], into="(G 128)"))
        s = max(max(abs(row), along=128), 1e-10) / 448.0
        scales[t] = s
        q[t] = row / s
        rope[t] = x[t, 512:]


@mlafix.kernel
def dequantize(y: Out[f32, "n D=576"], q: In[f8e4m3fn, "n (G 128)"], scales: In[f32, "n G"], rope: In[T, "n R=64"]):
    for t in grid("n"):
        y[t, :512] = f32(q[t]) * scales[t]
        y[t, 512:] = rope[t]
"""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return load(tmp_path_factory.mktemp("slices"), PARTS)


@pytest.mark.parametrize("dtype", [BF16, F32], ids=str)
def test_a_row_is_split_and_joined(parts: ModuleType, device: Device, rng: np.random.Generator, dtype: np.dtype) -> None:
    x = rng.normal(0, 1, (7, 576)).astype(dtype)
    latent, rope, y = device.poisoned((7, 512), dtype), device.poisoned((7, 64), F32), device.poisoned((7, 576), dtype)
    parts.split(latent, rope, device.put(x))
    parts.join(y, device.put(x[:, :512].copy()), device.put(x[:, 512:].copy()))
    assert same_bits(device.get(latent), x[:, :512])
    assert same_bits(device.get(rope), x[:, 512:].astype(F32) * 2)
    assert same_bits(device.get(y), x)


def test_a_slice_in_groups(parts: ModuleType, device: Device, rng: np.random.Generator) -> None:
    x = rng.normal(0, 1, (5, 576)).astype(BF16)
    q, scales, rope = device.poisoned((5, 512), E4M3), device.poisoned((5, 4), F32), device.poisoned((5, 64), BF16)
    y = device.poisoned((5, 576), F32)
    parts.quantize(q, scales, rope, device.put(x))
    parts.dequantize(y, q, scales, rope)
    want = abs(x[:, :512].astype(np.float64).reshape(5, 4, 128)).max(2) / 448
    np.testing.assert_allclose(device.get(scales), want, rtol=1e-6)
    got = np.asarray(device.get(y))
    np.testing.assert_allclose(got[:, :512], x[:, :512].astype(F32), rtol=2**-4, atol=float(want.max()) * 2**-9)
    assert same_bits(got[:, 512:], x[:, 512:].astype(F32))


def kernel_of(begin: int, end: int, size: int) -> str:
    return f"""
@mlafix.kernel
def k(y: Out[T, "n D={size}"], z: Out[T, "n E={end - begin}"], s: Out[f32, "n"], x: In[T, "n D={size}"]):
    for t in grid("n"):
        y[t] = 0.0
        row = x[t, {begin}:{end}]
        z[t] = row
        y[t, {begin}:{end}] = row + 1.0
        s[t] = sum(f32(row))
"""


@pytest.mark.parametrize("dtype", [BF16, F32, E4M3], ids=str)
@pytest.mark.parametrize(("begin", "end", "size"), [
    (0, 1, 1), (0, 64, 192), (1, 65, 192), (3, 6, 8), (4, 12, 16), (8, 136, 256), (64, 192, 192), (100, 101, 200), (6, 4102, 8192), (1024, 66560, 66560)])  # fmt: skip
def test_slices_of_any_place(tmp_path: Path, device: Device, rng: np.random.Generator, dtype: np.dtype, begin: int, end: int, size: int) -> None:
    """Slices begin and end at pack boundaries or elsewhere, also in rows that are processed in loops. Each kernel
    writes the whole row before the slice."""
    x = rng.normal(0, 1, (3, size)).astype(F32).astype(dtype)
    y, z, s = device.poisoned((3, size), dtype), device.poisoned((3, end - begin), dtype), device.poisoned((3,), F32)
    load(tmp_path, kernel_of(begin, end, size)).k(y, z, s, device.put(x))
    part = x[:, begin:end]
    want = np.zeros((3, size), dtype)
    want[:, begin:end] = (part.astype(F32) + 1).astype(dtype)
    assert same_bits(device.get(z), part)
    assert same_bits(device.get(y), want)
    np.testing.assert_allclose(device.get(s), part.astype(np.float64).sum(1), rtol=1e-4, atol=1e-2)


ORDER = """
@mlafix.kernel
def k(x: InOut[f32, "n C=96"]):
    for t in grid("n"):
        x[t, :64] = x[t, 32:]
        x[t, 32:] = x[t, :64] * 2.0
        x[t] = x[t] + 1.0
        x[t, 8:9] = x[t, 95:]
        x[t, 0] = x[t, 8] * 3.0
"""


def test_slices_that_overlap_are_in_order(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    """A lane reads elements of an overlapping slice that another lane has stored before."""
    x = rng.integers(-99, 99, (9, 96)).astype(F32)
    held = device.put(x.copy())
    load(tmp_path, ORDER).k(held)
    x[:, :64] = x[:, 32:].copy()
    x[:, 32:] = x[:, :64].copy() * 2
    x += 1
    x[:, 8:9] = x[:, 95:]
    x[:, 0] = x[:, 8] * 3
    np.testing.assert_array_equal(device.get(held), x)


def test_predicates_and_bounds(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    text = """
@mlafix.kernel(allow={"bounds"})
def k(y: InOut[f32, "n C=8"], x: In[f32, "m C=8"], at: In[i32, "n"]):
    for t in grid("n"):
        store(y[t, 2:5], load(x[at[t], 5:], where=at[t] != 1, otherwise=7.0), where=t != 3)
"""
    x, at = rng.normal(0, 1, (3, 8)).astype(F32), np.array([0, 1, 2, 2, 3, -1], np.int32)
    y = device.put(np.full((6, 8), -1, F32))
    load(tmp_path, text).k(y, device.put(x), device.put(at))
    want = np.full((6, 8), -1, F32)
    want[[0, 2], 2:5], want[1, 2:5], want[4:, 2:5] = x[[0, 2], 5:], 7, 0
    np.testing.assert_array_equal(device.get(y), want)


LAUNCHED = """
@mlafix.kernel(allow={"bounds"})
def k(y: InOut[f32, "n C=8"], z: InOut[f32, "n D"], x: In[f32, "n BOUND"], w: InOut[f32, "n BOUND"]):
    for t in grid("n"):
        y[t, 4:] = x[t, 2:6]
        store(w[t, 1:5], y[t, :4], where=t != 1)
        w[t, :2] = 7.0
        z[t] = Z


@mlafix.kernel
def checked(w: InOut[f32, "n BOUND"]):
    assume(shape("r") >= 5)
    for t in grid("n"):
        w[t, 1:5] = 7.0


@mlafix.kernel
def unchecked(w: InOut[f32, "n BOUND"]):
    for t in grid("n"):
        w[t, 1:5] = 7.0


@mlafix.kernel(allow={"bounds"})
def allowed(w: InOut[f32, "n BOUND"]):
    for t in grid("n"):
        w[t, 1:5] = 7.0
"""


@pytest.mark.parametrize("bound", ["r", "r<=20"])
@pytest.mark.parametrize("size", [1, 2, 4, 5, 6, 20])
def test_a_row_whose_size_the_launch_knows(tmp_path: Path, device: Device, rng: np.random.Generator, bound: str, size: int) -> None:
    """If a slice ends past the size that the row has in the launch, the whole slice reads as zeros, and stores to it do
    nothing."""
    into = 'load(x[t, 1:3], into="D")' if "<" in bound else "0.0"
    kernels = load(tmp_path, LAUNCHED.replace("BOUND", bound).replace("= Z", f"= {into}"))
    y, x, w = (rng.normal(0, 1, shape).astype(F32) for shape in ((3, 8), (3, 20), (3, 20)))
    held, rows, long = device.put(y.copy()), device.put(x), device.put(w.copy())
    z = device.poisoned((3, 4), F32)
    kernels.k(held, z, rows[..., :size], long[..., :size])
    y[:, 4:] = x[:, 2:6] if size >= 6 else 0
    if size >= 5:
        w[[0, 2], 1:5] = y[[0, 2], :4]
    w[:, : 2 if size >= 2 else 0] = 7
    np.testing.assert_array_equal(device.get(held), y)
    np.testing.assert_array_equal(device.get(long), w)
    np.testing.assert_array_equal(device.get(z), np.tile(x[:, 1:3], 2) if "<" in bound and size >= 3 else np.zeros((3, 4)))

    if size < 5:
        with pytest.raises(mlafix.ArgumentError, match=r"expected shape\('r'\) >= 5, got r = "):
            kernels.checked(long[..., :size])


def test_a_slice_beyond_a_row_is_seen_in_a_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLAFIX_CACHE", "0")
    kernels = load(tmp_path, LAUNCHED.replace("BOUND", "r<=20").replace("= Z", "= 0.0"))
    with pytest.warns(mlafix.CompileWarning, match=r"in bounds, got w\[0, 4\]: for example n = 1, r = 0, i = 0"):
        kernels.unchecked.compile("sm_90")
    (fault,) = kernels.allowed.debug(np.zeros((1, 4), F32)).faults
    assert (fault.question, fault.argument, fault.element) == ("bounds", "w", (0, 4))
    assert not kernels.allowed.debug(np.zeros((1, 5), F32)).faults


def test_elements_that_share_a_byte(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    text = """
@mlafix.kernel
def k(y: Out[f4e2m1, "n C=24"], z: Out[f32, "n E=10"], x: In[f4e2m1, "n C=24"]):
    for t in grid("n"):
        y[t, :6] = x[t, 18:]
        y[t, 6:] = x[t, :18]
        z[t] = x[t, 2:12]
"""
    x = rng.integers(0, 256, (4, 12)).astype(np.uint8)
    y, z = device.put(np.zeros((4, 12), np.uint8)), device.poisoned((4, 10), F32)
    load(tmp_path, text).k(y, z, device.put(x))
    np.testing.assert_array_equal(device.get(y), np.concatenate([x[:, 9:], x[:, :9]], 1))
    magnitudes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    codes = np.stack([x & 15, x >> 4], 2).reshape(4, 24)[:, 2:12]
    np.testing.assert_array_equal(device.get(z), np.where(codes & 8, -1, 1) * magnitudes[codes & 7])


ARGUMENTS = 'y: InOut[f32, "n C=96"], x: In[f32, "n D"], p: In[f32, "n (3 K)"], r: In[f32, "n R=32"], s: In[f32, "n b<=24"], lse: In[f32, "n"], q: InOut[f4e2m1, "n R=32"]'


@pytest.mark.parametrize(("body", "wrong", "message"), [
    ("v = y[t, 0:8:2]", "2", "expected a slice of adjacent elements, which has a step of 1, got 0:8:2; halves are y[t, 0] and y[t, 1] of a dim"),
    ("v = y[t, 90:97]", "90:97", "expected a slice of one element or more, with ends from 0 to the row's 96, got 90:97"),
    ("v = s[t, 20:25]", "s[t, 20:25]", "expected a slice of one element or more of 's', with ends from 0 to the row's bound, 24, got 20 to 25"),
    ("v = y[t, 8:8]", "8:8", "expected a slice of one element or more, with ends from 0 to the row's 96, got 8:8"),
    ("v = y[t, -97:]", "-97:", "expected a slice of one element or more, with ends from 0 to the row's 96, got -97:"),
    ("v = x[t, 8:]", "8:", "expected a slice with both ends, as 0:4, and no negative one, for a row along D, whose size is not in the tensor's type, got 8:"),
    ("v = x[t, :-1]", ":-1", "expected a slice with both ends, as 0:4, and no negative one, for a row along D"),
    ("v = x[t, t:]", "t", "expected constant integers as the ends of a slice, got index"),
    ("v = p[t, 0:2]", "0:2", "expected : for all of 3, got 0:2"),
    ("v = r[0:2, 1]", "0:2", "expected an index, got the slice 0:2"),
    ("y[t, 0:16] = r[t]", "r[t]", "expected a row along 16 to store to 'y', got a row of f32 along 32"),
    ("y[t] = y[t, :32]", "y[t, :32]", "expected a row along 96 to store to 'y', got a row of f32 along 32"),
    ("r[t, :8] = 0.0", "r[t, :8]", "expected a tensor declared with Out or InOut to store to, got 'r', which is In"),
    ("y[t] = payload(load_state(y[t, :32], lse[t]))", "y[t, :32]", "expected a whole row for the payload of a state, got a part of a row of 'y'"),
    ("q[t, 1:3] = 0.0", "q[t, 1:3]", "expected a slice that begins at an even element of 'q', which is f4e2m1 (two elements a byte), got 1"),
])  # fmt: skip
def test_what_is_refused(tmp_path: Path, body: str, wrong: str, message: str) -> None:
    made = load(tmp_path, f'@mlafix.kernel\ndef k({ARGUMENTS}):\n    for t in grid("n"):\n        {body}\n')
    with refused(message, wrong):
        made.k.source  # noqa: B018


@pytest.mark.parametrize(("body", "size", "message"), [
    ("v = x[t, 8:72]; y[t, :64] = v", 64, "expected a slice of one element or more of 'x', with ends from 0 to the row's 64, got 8 to 72"),
    ("y[t, :32] = x[t]", 48, "expected a row of 32 elements for the slice 0 to 32 of 'y', got one of 48"),
])  # fmt: skip
def test_names_are_looked_at_when_they_are_bound(tmp_path: Path, body: str, size: int, message: str) -> None:
    made = load(tmp_path, f'@mlafix.kernel\ndef k({ARGUMENTS}):\n    for t in grid("n"):\n        {body}\n')
    with pytest.raises(mlafix.CompileError) as caught:
        made.k.ptx("sm_90", D=size, K=8)
    assert message in str(caught.value)


@pytest.mark.parametrize(("places", "missed"), [(("0:32", "33:96"), "y[0, 32]"), (("1:96",), "y[0, 0]"), (("0:64", "32:95"), "y[0, 95]")])
def test_a_slice_that_is_left_out(tmp_path: Path, places: tuple[str, ...], missed: str) -> None:
    body = "; ".join(f"y[t, {place}] = 0.0" for place in places)
    made = load(tmp_path, f'@mlafix.kernel\ndef k(y: Out[f32, "n C=96"], x: In[f32, "n"]):\n    for t in grid("n"):\n        {body}\n')
    with pytest.raises(mlafix.CompileError, match="expected every element of 'y' to be written") as caught:
        made.k.ptx("sm_90")
    assert missed in str(caught.value)


def test_rows_that_share_a_tensor_row(tmp_path: Path) -> None:
    """Two grid rows write slices of the same tensor row. It is an error if these slices overlap."""
    text = """
@mlafix.kernel
def k(y: Out[f32, "n C=96"], x: In[f32, "n C=96"]):
    for t, half in grid("n", 2):
        if half == 0:
            y[t, :48] = x[t, 48:]
        else:
            y[t, END:] = x[t, :REST]
"""
    x = np.arange(192, dtype=F32).reshape(2, 96)
    y = np.full_like(x, np.nan)
    load(tmp_path, text.replace("END", "48").replace("REST", "48")).k(y, x)
    np.testing.assert_array_equal(y, np.concatenate([x[:, 48:], x[:, :48]], 1))
    with pytest.raises(mlafix.CompileError, match="expected one row to write each element of 'y'"):
        load(tmp_path, text.replace("END", "47").replace("REST", "49")).k(y, x)


def test_a_fill_is_for_whole_rows(tmp_path: Path) -> None:
    text = '@mlafix.kernel\ndef k(y: Out[f32, "n C=8"].fill(0.0), r: In[f32, "n"]):\n    for t in grid("n"):\n        y[t, :4] = r[t]\n'
    with pytest.raises(mlafix.CompileError, match="expected a grid with one row for each row that is stored, got a store of a part of a row"):
        load(tmp_path, text).k.ptx("sm_90")


def test_a_launch_is_watched(parts: ModuleType) -> None:
    x = np.ones((3, 576), F32)
    found = parts.split.debug(np.zeros((3, 512), F32), np.zeros((3, 64), F32), x)
    assert not found.faults
