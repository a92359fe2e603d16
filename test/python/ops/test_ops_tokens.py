"""Tests functions of `mlafix.ops` for blocks of a cache, for ragged and padded rows, and for rotary embedding."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import Device
from numerics import BF16, E4M3, E5M2, F16, F32, poison, same_bits

import mlafix
from mlafix import ArgumentError, ops
from mlafix.compat import vllm
from mlafix.ops import tokens

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

KERNEL_DTYPES = [BF16, F16, F32, E4M3, E5M2, *map(np.dtype, (np.uint8, np.int8, np.int32, np.int64, np.bool_))]
OTHER_DTYPES = [*map(np.dtype, (np.int16, np.uint16, np.uint32, np.uint64, np.float64, np.complex64))]


def bits(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Returns arbitrary bits of a dtype. No byte is 0."""
    if dtype == np.bool_:
        return np.ones(shape, np.bool_)
    return rng.integers(1, 256, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]


@pytest.fixture(params=["of a length", "in chunks"])
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a test twice: with kernels that are compiled for the length of the rows, and with kernels that move rows of
    any length in chunks. Installations without a compiler have only the latter."""
    if request.param == "of a length":
        return
    launch = tokens.launch

    def launch_chunks(kernel: mlafix.Kernel, *call: Any) -> None:
        if "chunks" not in kernel.name:
            raise mlafix.UnitError(f"expected chunks, got {kernel.name}")
        launch(kernel, *call)

    monkeypatch.setattr(tokens, "launch", launch_chunks)
    monkeypatch.setattr(tokens, "_nothing_compiles", lambda: True)


# -- Blocks -----------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("ids_dtype", [np.int64, np.int32])
@pytest.mark.parametrize("dtype", KERNEL_DTYPES, ids=str)
def test_blocks_of_any_dtype_are_cleared(device: Device, rng: np.random.Generator, dtype: np.dtype, ids_dtype: type) -> None:
    for shape in ((9, 48), (9, 4, 48), (9, 2, 4, 48), (9, 2, 3, 4, 8)):
        before = bits(rng, shape, dtype)
        ids = np.array([3, -1, 8, 9, 0, 3, np.iinfo(ids_dtype).max, np.iinfo(ids_dtype).min], ids_dtype)
        cache = device.put(before.copy())
        ops.zero_blocks(cache, device.put(ids))
        before[[3, 8, 0]] = np.zeros((), dtype)
        assert same_bits(device.get(cache), before)


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("dtype", OTHER_DTYPES, ids=str)
def test_dtypes_that_kernels_do_not_have_are_moved_as_bits(device: Device, rng: np.random.Generator, dtype: np.dtype) -> None:
    if device.name == "ptx":
        pytest.skip("its tensors have no view of another dtype")
    before = bits(rng, (5, 2, 3), dtype)
    cache, starts = device.put(before.copy()), device.put(np.array([0, 1, 3], np.int32))
    ops.zero_blocks(cache, device.put(np.array([1])))
    padded = ops.pack_rows(cache, starts, 2)
    back = ops.unpack_rows(padded, starts, out=device.put(before.copy()))
    want = before.copy()
    want[1] = 0
    assert padded.dtype == cache.dtype and same_bits(device.get(cache), want)
    assert same_bits(device.get(padded)[0, 0], want[0]) and same_bits(device.get(padded)[1], want[1:3])
    assert not device.get(padded)[0, 1].view(np.uint8).any()
    want[3:] = before[3:]
    assert same_bits(device.get(back), want)
    with pytest.raises(ArgumentError, match=f'argument "pad": expected 0 for dtype {dtype}, got 1.0'):
        ops.pack_rows(cache, starts, 2, pad=1.0)


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("count", [1, 3, 8])
def test_several_caches_are_cleared_in_one_launch(device: Device, rng: np.random.Generator, count: int) -> None:
    before = [bits(rng, (6, 2, 4, 32), BF16) for _ in range(count)]
    caches = [device.put(x.copy()) for x in before]
    ops.zero_blocks(caches, device.put(np.array([5, 1, 6])))
    for cache, want in zip(caches, before):
        want[[5, 1]] = 0
        assert same_bits(device.get(cache), want)


@pytest.mark.parametrize("kind", ["i4", "i8"])
def test_tails_of_blocks_are_cleared_in_caches_of_any_layout(kind: str, device: Device, rng: np.random.Generator) -> None:
    """One launch clears the tails of blocks, and no other byte. Tokens are before or after heads, pages have several
    sizes, and there may be gaps between pages."""
    views = [lambda a: a, lambda a: a.swapaxes(1, 2), lambda a: a[:, 1], lambda a: a[:, :3], lambda a: a[..., :16], lambda a: a]
    shapes = [(6, 4, 2, 64), (6, 2, 4, 32), (6, 2, 4, 3, 8), (7, 5, 2, 24), (6, 4, 2, 24), (5, 8, 7)]
    ids, kept = np.array([4, -1, 6, 0, 2, 2, 5, 2**40 if kind == "i8" else 99]), np.array([1, 0, 2, 4, 3, 2, -1, 0])
    for chosen in ([0], [1], [2], [0, 1, 2, 3, 4, 5], [5, 0]):
        wholes = [rng.integers(1, 255, shapes[i]).astype((np.uint8, np.float16, np.float32)[i % 3]) for i in chosen]
        mine = [device.put(whole.copy()) for whole in wholes]
        caches = [views[i](one) for i, one in zip(chosen, mine)]
        ops.zero_blocks(caches if len(caches) > 1 else caches[0], device.put(ids.astype(kind)), kept=device.put(kept.astype(kind)))
        for i, whole, one in zip(chosen, wholes, mine):
            cache = views[i](whole)
            for block, count in zip(ids, kept):
                if 0 <= block < len(cache):
                    cache[block, max(count, 0) :] = 0
            assert same_bits(device.get(one), whole)


@pytest.mark.usefixtures("ways")
def test_blocks_may_lie_in_any_order_and_with_gaps(device: Device, rng: np.random.Generator) -> None:
    """Blocks may be a view [m, block, H, D] of [m, H, block, D], or one layer of a slab with several layers."""
    if device.name == "ptx":
        pytest.skip("its tensors do not tell their strides")
    for shape, view in (((5, 3, 4, 16), lambda x: x.swapaxes(1, 2)), ((5, 4, 3, 16), lambda x: x[:, 1:3]), ((5, 64), lambda x: x[:, 16:40])):
        before = bits(rng, shape, F16)
        whole = device.put(before.copy())
        ops.zero_blocks(view(whole), device.put(np.array([4, 0])))
        view(before)[[4, 0]] = 0
        assert same_bits(device.get(whole), before)


def test_vllm_35219_stale_nan_of_another_dtype_is_cleared(device: Device, rng: np.random.Generator) -> None:
    """vLLM #35219: a block that held the state of another layer contains NaN in this layer's dtype. 0 * NaN then
    reaches every token that reads the block. The list of ids is padded with invalid ids, like the scheduler's list."""
    raw = np.full((6, 4, 64), np.nan, F32)
    cache = device.put(raw.view(BF16))
    ops.zero_blocks(cache, device.put(np.array([4, 0, -1, -1, 6, 2**62])))
    got = device.get(cache).astype(F32)
    assert (got[[0, 4]] * 0 == 0).all() and np.isnan(got[[1, 2, 3, 5]]).any((1, 2)).all()


def test_vllm_48085_calls_in_a_row_clear_their_own_blocks(device: Device, rng: np.random.Generator) -> None:
    """vLLM #48085: a host buffer of ids was overwritten before the device had read it, so wrong blocks were cleared.
    Here the kernel reads the ids from the caller's tensor on the device, in plain and in bound calls, so no buffer is
    overwritten."""
    before = bits(rng, (40, 2, 64), BF16)
    cache, lists = device.put(before.copy()), [device.put(ids) for ids in np.arange(30).reshape(10, 3)]
    for ids in lists[:5]:
        ops.zero_blocks(cache, ids)
    for launch in [ops.zero_blocks.bind(cache, ids) for ids in lists[5:]]:
        launch(None)
    before[:30] = 0
    assert same_bits(device.get(cache), before)


def test_vllm_50276_a_block_may_be_longer_than_what_is_cleared_of_it(device: Device, rng: np.random.Generator) -> None:
    """vLLM #50276: in packed views, the stride between blocks exceeds a page. The bytes before and after a page must
    not change, also in the last block."""
    slab = bits(rng, (5, 96), np.dtype(np.uint8))
    whole = device.put(slab.copy())
    ops.zero_blocks(whole[:, 32:64], device.put(np.array([4, 1])))
    slab[[4, 1], 32:64] = 0
    assert same_bits(device.get(whole), slab)


@pytest.mark.usefixtures("ways")
def test_wrong_caches(device: Device) -> None:
    ids, cache = device.put(np.array([0])), device.put(np.ones((4, 3, 2, 9), np.float32))
    for wrong, message in ((3, 'argument "cache": expected an array or a sequence of arrays, got int'),
                           ([], 'argument "cache": expected 1 to 8 arrays, got 0'), ([cache] * 9, 'argument "cache": expected 1 to 8 arrays, got 9'),
                           (ids, 'argument "cache": expected at least 2 dims .n, ….*, got 1'),
                           (cache[:, ::2, :, ::2], r'argument "cache": expected evenly spaced rows \(as contiguous\(\) makes them\), got shape \[.*\], strides \['),
                           (cache[:, 0, :, ::2], 'argument "cache": expected .*stride')):  # fmt: skip
        if device.name == "ptx" and "stride" in message:
            continue  # tensors of the PTX device have no strides
        with pytest.raises(ArgumentError, match=message):
            ops.zero_blocks(wrong, ids)
    with pytest.raises(ArgumentError, match='argument "ids": expected dtype i64 or i32, got float32'):
        ops.zero_blocks(cache, device.put(np.ones(2, np.float32)))
    assert (device.get(cache) == 1).all()


# -- Ragged rows and padded ones ----------------------------------------------------------------------------------------------


def padded_of(x: np.ndarray, lengths: list[int], most: int, pad: Any) -> np.ndarray:
    want, first = np.full((len(lengths), most, *x.shape[1:]), pad).astype(x.dtype), 0
    for s, length in enumerate(lengths):
        rows = x[first : first + min(length, most)]
        want[s, : len(rows)] = rows
        first += length
    return want


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("lengths", [[3, 0, 5, 1], [0], [7], []], ids=str)
@pytest.mark.parametrize("most", [0, 1, 5, 8])
@pytest.mark.parametrize("dtype", [BF16, F16, F32, E4M3, *map(np.dtype, (np.int32, np.int64, np.int8, np.uint8))], ids=str)
def test_rows_are_packed_and_unpacked(device: Device, rng: np.random.Generator, dtype: np.dtype, most: int, lengths: list[int]) -> None:
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    is_integer = dtype.kind in "iu"
    for pad, shape in ((0, (33,)), (101 if is_integer else 0.5, (2, 24)), (np.iinfo(dtype).min if is_integer else -448.0, (3, 4, 8))):
        x = rng.integers(-9 if dtype.kind != "u" else 0, 9, (sum(lengths) + 2, *shape)).astype(dtype)
        out = device.poisoned((len(lengths), most, *shape), dtype)
        ragged = device.put(x)
        assert ops.pack_rows(ragged, device.put(starts), most, pad=pad, out=out) is out
        new = ops.pack_rows(ragged, device.put(starts), most, pad=pad)
        back = device.poisoned(x.shape, dtype)
        assert ops.unpack_rows(out, device.put(starts), out=back) is back
        assert same_bits(device.get(out), padded_of(x, lengths, most, pad)) and same_bits(device.get(new), device.get(out))
        want, first = poison(x.shape, dtype), 0
        for length in lengths:
            want[first : first + length] = np.zeros((), dtype)
            want[first : first + min(length, most)] = x[first : first + min(length, most)]
            first += length
        assert same_bits(device.get(back), want)


def test_pads_that_are_no_number_of_the_dtype(device: Device) -> None:
    starts = device.put(np.array([0, 1], np.int32))
    for dtype, pad, got in ((np.uint8, -1, "-1"), (np.uint8, 256, "256"), (np.int8, 0.5, "0.5"), (np.int32, -np.inf, "-inf"), (np.int64, np.nan, "nan")):
        with pytest.raises(ArgumentError, match=f'argument "pad": expected an integer from .* for dtype {np.dtype(dtype)}, got {got}'):
            ops.pack_rows(device.put(np.ones((1, 4), dtype)), starts, 2, pad=pad)
    with pytest.raises(ArgumentError, match="argument \"pad\": expected a number, got '0'"):
        ops.pack_rows(device.put(np.ones((1, 4), F32)), starts, 2, pad="0")  # type: ignore[arg-type]
    out = device.get(ops.pack_rows(device.put(np.ones((1, 4), F32)), starts, 2, pad=-0.0))
    assert np.signbit(out[0, 1]).all()


@pytest.mark.usefixtures("ways")
def test_wrong_rows(device: Device) -> None:
    x, starts = device.put(np.ones((3, 2, 4), F32)), device.put(np.array([0, 1, 3], np.int32))
    with pytest.raises(ArgumentError, match='argument "length": expected 0 or more, got -1'):
        ops.pack_rows(x, starts, -1)
    with pytest.raises(ArgumentError, match='argument "length": expected an integer, got 1.5'):
        ops.pack_rows(x, starts, 1.5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r'argument "out": expected shape \[2, 2, 2, 4\], got \(2, 2, 8\)'):
        ops.pack_rows(x, starts, 2, out=device.poisoned((2, 2, 8), F32))
    with pytest.raises(ArgumentError, match='argument "starts": expected dtype i32, got i64'):
        ops.pack_rows(x, device.put(np.array([0, 1, 3])), 2)
    with pytest.raises(ArgumentError, match=r'argument "out": expected rows of shape \[2, 4\], as argument "padded" has, got \[8\]'):
        ops.unpack_rows(ops.pack_rows(x, starts, 2), starts, out=device.poisoned((3, 8), F32))
    with pytest.raises(ArgumentError, match=r'argument "x": expected evenly spaced rows \(as contiguous\(\) makes them\), got shape \[.*\], strides \['):
        ops.pack_rows(x[..., :3], starts, 2)


@pytest.mark.parametrize("dtype, pad", [(F32, -np.inf), (BF16, 0.25), (np.dtype(np.uint8), 77)], ids=str)
def test_vllm_packs_sequences_by_their_lengths(device: Device, rng: np.random.Generator, dtype: np.dtype, pad: Any) -> None:
    if device.name == "ptx":
        pytest.skip("its tensors cannot be assigned to")
    lengths, x = [2, 0, 5, 1], rng.integers(0, 9, (8, 3, 16)).astype(dtype)
    given = device.put(np.array(lengths, np.int32))
    packed = vllm.pack_seq_triton(device.put(x), given, pad) if pad != -np.inf else vllm.pack_seq_triton(device.put(x), given)
    assert same_bits(device.get(packed), padded_of(x, lengths, 5, pad))
    assert same_bits(device.get(vllm.unpack_seq_triton(packed, given)), x)


# -- Rotary embedding ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("table_dtype", [F32, None], ids=str)
@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
def test_heads_are_turned(device: Device, rng: np.random.Generator, dtype: np.dtype, table_dtype: np.dtype | None, interleaved: bool) -> None:
    n, heads, dim, rest = 5, 3, 64, 16
    angle = rng.uniform(-7, 7, (20, dim // 2))
    table = np.concatenate([np.cos(angle), np.sin(angle)], 1).astype(table_dtype or dtype)
    whole = rng.standard_normal((n, heads, dim + rest)).astype(dtype)
    positions = np.array([3, 0, 19, 20, -1])
    whole[3, 0, :dim], whole[4, :, :dim] = np.inf, np.nan
    for kind, given in ((np.int64, table), (np.int32, table.reshape(20, 2, dim // 2))):
        x = device.put(whole.copy())
        ops.apply_rope(x[..., :dim], device.put(positions.astype(kind)), device.put(given), interleaved=interleaved)
        got = device.get(x)
        assert same_bits(got[..., dim:], whole[..., dim:])
        wide, c, s = whole[:3, :, :dim].astype(np.float64), *np.split(table.astype(np.float64)[positions[:3]], 2, 1)
        a, b = (wide[..., ::2], wide[..., 1::2]) if interleaved else np.split(wide, 2, 2)
        c, s = c[:, None], s[:, None]
        pairs = np.stack([a * c - b * s, b * c + a * s], -1 if interleaved else 2)
        error = 4e-7 if dtype == F32 else 2.0**-8 if dtype == BF16 else 2.0**-11
        np.testing.assert_allclose(got[:3, :, :dim].astype(np.float64), pairs.reshape(3, heads, dim), rtol=error, atol=1e-6)
        assert not got[3:, :, :dim].astype(F32).any()


def test_wrong_tables(device: Device) -> None:
    x, positions = device.put(np.ones((2, 1, 8), F32)), device.put(np.array([0, 1]))
    with pytest.raises(ArgumentError, match='argument "x": expected an even size in dim 2, got 7'):
        ops.apply_rope(x[..., :7], positions, device.put(np.ones((4, 2, 4), F32)))
    for shape in ((4, 6), (4, 2, 3), (4, 4, 2), (8,)):
        with pytest.raises(ArgumentError, match=r'argument "table": expected shape \[m, 2, 4\] or \[m, 8\], got'):
            ops.apply_rope(x, positions, device.put(np.ones(shape, F32)))
    table = device.put(np.ones((4, 8), F32))
    with pytest.raises(ArgumentError, match='argument "positions": expected dtype i64 or i32, got int8'):
        ops.apply_rope(x, device.put(np.ones(2, np.int8)), table)
    with pytest.raises(ArgumentError, match='argument "x": expected dtype bf16 or f16 or f32, got int32'):
        ops.apply_rope(device.put(np.ones((2, 1, 8), np.int32)), positions, table)
    assert (device.get(x) == 1).all()


# -- Bound calls -----------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("ways")
def test_bound_calls(device: Device, rng: np.random.Generator) -> None:
    before = bits(rng, (6, 2, 8), F32)
    cache, ids = device.put(before.copy()), device.put(np.array([1, 2]))
    starts, out = device.put(np.array([0, 1, 3], np.int32)), device.poisoned((2, 2, 2, 8), F32)
    clear, pack = ops.zero_blocks.bind(cache, ids), ops.pack_rows.bind(cache, starts, 2, out=out)
    assert same_bits(device.get(cache), before)
    for launch in (clear, pack):
        launch(None)
    before[[1, 2]] = 0
    assert same_bits(device.get(cache), before) and same_bits(device.get(out), padded_of(before[:3], [1, 2], 2, 0))


def test_vllm_54296_a_watched_call_with_indices_that_the_pages_allow_has_no_fault(tmp_path: Path) -> None:
    """Negative indices are padding by convention. Calls with them must not flood the log of a watched server
    (MLAFIX_DEBUG=1, sglang#30123)."""
    program = """
import numpy as np
from mlafix import ops
for dtype in (np.int32, np.int64):
    x, table = np.ones((4, 1, 8), np.float32), np.ones((4, 8), np.float32)
    for interleaved in (False, True):
        ops.apply_rope(x, np.array([1, -1, 4, 2**31 - 1], dtype), table, interleaved=interleaved)
        assert (x[1:] == 0).all()
    cache, ids = np.ones((4, 8), np.float32), np.array([2, -1, 4, -2**31], dtype)
    ops.zero_blocks(cache, ids)
    others = [np.ones((4, 2, 8), np.float32), np.ones((3, 5, 4), np.float32), np.ones((9, 1, 8), np.int8)]
    ops.zero_blocks([np.ones((4, 8), np.float32), cache], ids)
    ops.zero_blocks(others, ids)
    assert cache[[0, 1, 3]].all() and not cache[2].any() and not others[1][2].any()
rows, starts = np.ones((3, 8), np.float32), np.array([0, 2, 5, 5], np.int32)
for kind, pad in ((np.float32, 0.0), (np.float32, 2.0), (np.int32, 5)):
    packed = ops.pack_rows(rows.astype(kind), starts, 2, pad=pad)
    assert packed[..., 0].tolist() == [[1, 1], [1, 0], [pad, pad]]  # row 3, which is not there, is zeros
out = ops.unpack_rows(np.ones((3, 1, 8), np.float32), starts, out=np.full((6, 8), 9, np.float32))
assert out[:, 0].tolist() == [1, 0, 1, 0, 0, 9]
ops.lens_of_rank(np.array([9, -3], np.int32), 0, 2, live_rows=1, out=np.empty(4, np.int32))
ops.pages_of_rank(np.empty((2, 9), np.int32), np.ones((2, 9), np.int64), np.array([-1, 7], np.int32), np.array([5, 2**31 - 1], np.int32), 0, 2, 2)
"""
    environment = {**os.environ, "MLAFIX_DEBUG": "1", "MLAFIX_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
