"""Tensors whose elements lie in tiles of 128 x 4 or 8 x 4 (`swizzle`), like the scales of block-scaled matrix
products."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import Device
from numerics import BF16, E4M3, E5M2, E8M0, F32
from sources import load
from packing import codes_of, in_tiles, packed, rows_of

import mlafix
from mlafix.errors import ArgumentError

TEXT = """
@mlafix.kernel
def scale(scales: InOut[S, "m H G"].swizzle("128x4"), x: In[T, "n H (G 16)"], first: index):
    for t, h in grid("n", "H"):
        scales[first + t, h] = max(abs(x[t, h]), along=16)


@mlafix.kernel
def whole(scales: Out[S, "m G"].swizzle("128x4"), x: In[T, "m (G 32)"]):
    for t in grid("m"):
        scales[t] = max(abs(x[t]), along=32)


@mlafix.kernel
def numbers(y: Out[I, "m c"].swizzle("128x4"), x: In[I, "m c"]):
    for t, c in grid("m", "c"):
        y[t, c] = x[t, c]


@mlafix.kernel(allow={"bounds"})
def back(y: Out[f32, "n (G 16)"], x: In[f32, "n (G 16)"], scales: In[S, "m G"].swizzle("128x4")):
    for t in grid("n"):
        y[t] = x[t] * f32(scales[t])
"""
HEADER_OF_S = 'S = DType("S")\n'


def made(folder: Path):
    return load(folder, HEADER_OF_S + TEXT)


@pytest.mark.parametrize("heads, groups", [(1, 4), (3, 8), (5, 3), (128, 8)])
@pytest.mark.parametrize("dtype", [E4M3, E8M0], ids=str)
def test_scales_of_rows_between_others(tmp_path: Path, device: Device, rng: np.random.Generator, heads: int, groups: int, dtype: np.dtype) -> None:
    """Writes rows 100 to 160 of 256, which lie in two tiles. The other rows and the padding columns keep their
    contents."""
    columns = heads * groups
    pitch = -(-columns // 4) * 4 + 4
    x = rng.integers(1, 400, (61, heads, groups * 16)).astype(BF16)
    memory = np.full((256, pitch), 0x5A, np.uint8).view(dtype)
    there = device.put(memory)
    view = there[:, :columns].reshape(256, heads, groups) if not device.is_torch else there[:, :columns].unflatten(1, (heads, groups))
    if not device.is_torch:
        view = np.lib.stride_tricks.as_strided(there, (256, heads, groups), (pitch, groups, 1))
    made(tmp_path).scale(view, device.put(x), 100)
    got = device.get(there)
    largest = x.astype(F32).reshape(61, columns, 16).max(-1)
    want = memory.view(np.uint8).copy()
    row, column = np.mgrid[100:161, :columns]
    codes = largest.astype(dtype) if dtype == E4M3 else np.ldexp(1.0, np.ceil(np.log2(largest)).astype(np.int64)).astype(dtype)
    want.reshape(-1)[in_tiles(row, column, pitch)] = codes.view(np.uint8)
    np.testing.assert_array_equal(got.view(np.uint8), want)


@pytest.mark.parametrize("heads, groups", [(1, 4), (3, 8), (5, 3)])
def test_scales_in_tiles_of_8_rows(tmp_path: Path, device: Device, rng: np.random.Generator, heads: int, groups: int) -> None:
    """Writes rows 5 to 25 of 32 in FlashInfer's layout_8x4. The other rows and the padding columns keep their
    contents."""
    columns = heads * groups
    pitch = -(-columns // 4) * 4 + 4
    x = rng.integers(1, 400, (21, heads, groups * 16)).astype(BF16)
    memory = np.full((32, pitch), 0x5A, np.uint8).view(E4M3)
    there = device.put(memory)
    if device.is_torch:
        view = there[:, :columns].unflatten(1, (heads, groups))
    else:
        view = np.lib.stride_tricks.as_strided(there, (32, heads, groups), (pitch, groups, 1))
    load(tmp_path, HEADER_OF_S + TEXT.replace("128x4", "8x4")).scale(view, device.put(x), 5)
    want = memory.view(np.uint8).copy()
    row, column = np.mgrid[5:26, :columns]
    codes = x.astype(F32).reshape(21, columns, 16).max(-1).astype(E4M3)
    places = (row // 8 * (pitch // 4) + column // 4) * 32 + row % 8 * 4 + column % 4
    want.reshape(-1)[places] = codes.view(np.uint8)
    np.testing.assert_array_equal(device.get(there).view(np.uint8), want)


def test_two_launches_share_a_tile(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    """One launch writes 70 rows of a tile of 128, and another writes 39. In either order, each launch writes only its
    own rows, and the other 19 keep poison."""
    kernel, x = made(tmp_path).scale, rng.integers(1, 400, (109, 2, 64)).astype(BF16)
    first, second = device.put(x[:70]), device.put(x[70:])
    results = []
    for order in ((0, 1), (1, 0)):
        scales = device.put(np.full((128, 2, 4), 0x5A, np.uint8).view(E4M3))
        for launch in order:
            kernel(scales, *((first, 0) if launch == 0 else (second, 70)))
            if launch == order[0]:  # the second launch's rows have not changed yet
                rows = rows_of(device.get(scales).view(np.uint8).reshape(128, 8), 8)
                assert ((rows == 0x5A).all(1) == ((np.arange(128) >= 70) if launch == 0 else (np.arange(128) < 70) | (np.arange(128) >= 109))).all()
        results.append(device.get(scales).view(np.uint8).reshape(128, 8))
    np.testing.assert_array_equal(*results)
    rows = rows_of(results[0].view(E4M3), 8)
    np.testing.assert_array_equal(rows[:109].astype(F32), x.astype(F32).reshape(109, 8, 16).max(-1).astype(E4M3).astype(F32))
    assert (rows[109:].view(np.uint8) == 0x5A).all()


def test_every_element_has_a_place_of_its_own(tmp_path: Path, device: Device) -> None:
    """Elements of 4 bytes are written one by one. Each place in memory is written exactly once, and nothing else is
    written."""
    x = np.arange(256 * 12, dtype=np.int32).reshape(256, 12)
    y = device.put(np.full((256, 12), -1, np.int32))
    made(tmp_path).numbers(y, device.put(x))
    np.testing.assert_array_equal(np.sort(device.get(y).reshape(-1)), x.reshape(-1))
    np.testing.assert_array_equal(rows_of(device.get(y), 12), x)


def test_scales_are_read_again(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    x, codes = rng.standard_normal((130, 128)).astype(F32), rng.integers(0x30, 0x50, (256, 8), np.uint8)
    y, scales = device.poisoned(x.shape, F32), codes.view(E4M3)
    made(tmp_path).back(y, device.put(x), device.put(scales))
    np.testing.assert_array_equal(device.get(y), x * np.repeat(rows_of(scales, 8)[:130].astype(F32), 16, -1))


def test_mxfp8_scales_of_whole_tiles(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    x = rng.integers(1, 400, (128, 160)).astype(BF16)
    scales = device.poisoned((128, 8), E8M0)
    made(tmp_path).whole(scales[:, :5], device.put(x))
    want = np.exp2(np.ceil(np.log2(x.astype(F32).reshape(128, 5, 32).max(-1)))).astype(F32)
    np.testing.assert_array_equal(rows_of(device.get(scales), 5).astype(F32), want)


def memory(rows: int, pitch: int) -> np.ndarray:
    return np.zeros((rows, pitch), np.uint8).view(E4M3)


@pytest.mark.parametrize("scales, message", [
    (memory(100, 8), "expected a multiple of 128 rows, padding included, of a tensor in tiles, got 100"),
    (memory(128, 7)[:, :7], "expected a row stride that is a multiple of 4 and at least 7 for a tensor in tiles, got 7"),
    (np.lib.stride_tricks.as_strided(memory(256, 8), (128, 8), (4, 1)), "expected a row stride that is a multiple of 4 and at least 8"),
    (memory(128, 16)[:, ::2], "expected stride 1 in dim 1"),
])  # fmt: skip
def test_tensors_without_room_for_tiles_are_errors(tmp_path: Path, scales: np.ndarray, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        made(tmp_path).whole(scales, np.zeros((scales.shape[0], scales.shape[1] * 32), F32))


def test_columns_of_several_dims_follow_each_other(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="expected stride 4 in dim 1, since the columns of a tensor in tiles follow each other, got 8"):
        made(tmp_path).scale(memory(128, 16).reshape(128, 2, 8)[:, :, :4], np.zeros((3, 2, 64), F32), 0)


def test_tiles_are_one_block_of_memory(tmp_path: Path) -> None:
    """A call is refused if two arguments are views of one tile: the bytes between a view's rows belong to other columns
    of the tile."""
    block = np.zeros((128, 16), np.int32)
    with pytest.raises(ArgumentError, match="expected memory apart from that of argument"):
        made(tmp_path).numbers(block[:, :4], block[:, 8:12])


def test_rows_past_the_tensor_are_not_written(tmp_path: Path, device: Device) -> None:
    scales = device.put(np.full((128, 2, 4), 0x5A, np.uint8).view(E4M3))
    made(tmp_path).scale(scales, device.put(np.ones((100, 2, 64), F32)), 100)
    rows = rows_of(device.get(scales).view(np.uint8).reshape(128, 8), 8)
    assert (rows[:100] == 0x5A).all() and (rows[100:] == 0x38).all()


@pytest.mark.parametrize("annotation, message", [
    ('Out[f32, "n"].swizzle("128x4")', 'swizzle: expected "128x4" or "8x4", for one tensor of two dims or more'),
    ('Out[f32, "n G"].swizzle("64x8")', 'swizzle: expected "128x4"'),
    ('List[In[f32, "n G"], 8].swizzle("128x4")', 'swizzle: expected "128x4" or "8x4", for one tensor'),
])  # fmt: skip
def test_other_annotations_are_errors(tmp_path: Path, annotation: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        load(tmp_path, f'y = {annotation}\n')


def test_calls_in_place_have_tiles_on_both_sides(tmp_path: Path, device: Device) -> None:
    """A call in place runs if both arguments are in tiles, and is refused if only one of them is."""
    text = """
@mlafix.kernel
def both(y: Out[i32, "m c"].swizzle("128x4"), x: In[i32, "m c"].swizzle("128x4")):
    for t, c in grid("m", "c"):
        y[t, c] = x[t, c] + 1


@mlafix.kernel
def one(y: Out[i32, "m c"].swizzle("128x4"), x: In[i32, "m c"]):
    for t, c in grid("m", "c"):
        y[t, c] = x[t, c] + 1
"""
    kernels, memory = load(tmp_path, text), device.put(np.arange(128 * 8, dtype=np.int32).reshape(128, 8))
    kernels.both(memory, memory)
    np.testing.assert_array_equal(device.get(memory), np.arange(128 * 8, dtype=np.int32).reshape(128, 8) + 1)
    with pytest.raises(ArgumentError, match="expected memory apart from that of argument"):
        kernels.one(memory, memory)


def test_elements_that_no_row_writes_are_shown(tmp_path: Path) -> None:
    """The compiler reports elements of a tiled output that no row writes, by their indices in the matrix."""
    text = '\n@mlafix.kernel\ndef k(y: Out[i32, "m c"].swizzle("128x4"), x: In[i32, "m"]):\n    for t in grid("m"):\n        y[t, 0] = x[t]\n'
    with pytest.raises(mlafix.CompileError, match=r"expected every element of 'y' to be written, got no store to y\[0, 1\]:"):
        load(tmp_path, text).k(np.zeros((128, 4), np.int32), np.zeros(128, np.int32))


DEBUGGED = """
@mlafix.kernel(allow={"bounds"})
def gather(y: Out[f32, "m"], x: In[f32, "k"], at: In[i32, "m c"].swizzle("128x4")):
    for t in grid("m"):
        y[t] = x[at[t, 1]]


@mlafix.kernel
def some(scales: Out[S, "m G"].swizzle("128x4"), q: Out[f4e2m1, "m (G 32)"], x: In[f32, "m (G 32)"]):
    for t in grid("m"):
        scales[t] = max(abs(x[t]), along=32)
        q[t] = x[t]
"""


class Forgetful:
    """Imitates the dispatcher of `some`: launches the kernel, then restores `rows` of its outputs, as if unwritten."""

    def __init__(self, dispatch: Any, rows: list[int]) -> None:
        self.dispatch, self.rows = dispatch, rows

    def __call__(self, args: Any, stream: Any) -> None:
        scales, q, _ = args
        flat = np.lib.stride_tricks.as_strided(scales.view(np.uint8), (128 * 8,), (1,))
        places = in_tiles(np.array(self.rows)[:, None], np.arange(5), 8)
        kept = flat[places].copy(), q[self.rows].copy()
        self.dispatch(args, stream)
        flat[places], q[self.rows] = kept


def test_an_index_in_a_tile_is_followed(tmp_path: Path, device: Device) -> None:
    at = np.zeros((256, 8), np.int32)
    at.reshape(-1)[in_tiles(np.int64(170), np.int64(1), 8)] = 9
    kernel = load(tmp_path, HEADER_OF_S + DEBUGGED).gather
    (fault,) = kernel.debug(device.poisoned((256,), F32), device.put(np.ones(9, F32)), device.put(at)[:, :6]).faults
    assert (fault.question, fault.argument, fault.element, fault.row) == ("bounds", "x", (9,), (170,))


@pytest.mark.parametrize("dtype", [E4M3, E5M2, E8M0], ids=str)
def test_a_watched_launch_leaves_tiles_and_pairs_as_they_are(tmp_path: Path, device: Device, dtype: np.dtype) -> None:
    scales, q = device.put(np.full((128, 8), 0x5A, np.uint8).view(dtype)), device.put(np.full((128, 80), 0x5A, np.uint8))
    kernel = load(tmp_path, HEADER_OF_S + DEBUGGED).some
    assert kernel.debug(scales[:, :5], q, device.put(np.ones((128, 160), F32))).faults == ()
    assert (device.get(scales).view(np.uint8) == 0x5A).all() and (device.get(q) == 0x5A).all()


def test_unwritten_elements_of_tiles_and_pairs_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = load(tmp_path, HEADER_OF_S + DEBUGGED).some
    monkeypatch.setitem(kernel.__dict__, "_dispatch", Forgetful(kernel._dispatch, [3, 77]))
    scales, q = np.zeros((128, 8), np.uint8).view(E8M0), np.zeros((128, 80), np.uint8)
    faults = kernel.debug(scales[:, :5], q, np.ones((128, 160), F32)).faults
    assert [(fault.question, fault.argument, fault.element, fault.count) for fault in faults] == [
        ("coverage", "scales", (3, 0), 10), ("coverage", "q", (3, 0), 320)]  # fmt: skip


def test_mxfp4(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    """Stores elements in e2m1, and one power-of-two scale for each group of 32 elements, in tiles."""
    text = """
@mlafix.kernel(allow={"bounds"})
def k(q: Out[f4e2m1, "n (G 32)"], scales: InOut[f8e8m0, "m G"].swizzle("128x4"), x: In[T, "n (G 32)"]):
    for t in grid("n"):
        row = f32(x[t])
        s = f8e8m0(max(abs(row), along=32) / 6.0)
        scales[t] = s
        q[t] = row / s
"""
    x = (rng.standard_normal((70, 160)) * 9).astype(BF16)
    q, scales = device.poisoned((70, 80), np.uint8), device.put(np.full((128, 8), 0x5A, np.uint8).view(E8M0))
    load(tmp_path, text).k(q, scales[:, :5], device.put(x))
    each = x.astype(F32).reshape(70, 5, 32)
    powers = np.exp2(np.ceil(np.log2(np.abs(each).max(-1) / F32.type(6)))).astype(F32)
    np.testing.assert_array_equal(rows_of(device.get(scales), 5)[:70].astype(F32), powers)
    np.testing.assert_array_equal(device.get(q), packed(codes_of((each / powers[..., None]).reshape(70, 160))))
