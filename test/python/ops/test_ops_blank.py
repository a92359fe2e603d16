"""Tests the functions that set rows to the identity: rows of sequences without KV, rows of requests without context,
and padding."""

from __future__ import annotations

from itertools import cycle
from typing import Any, Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import contract
import mlafix
from devices import Device
from mlafix import ops
from numerics import BF16, E4M3, F16, F32, garbage, same_bits
from states import LAYOUTS, buffer_of, lay_out, untouched_outside

DTYPES = [BF16, F16, F32, E4M3]
HEADS, DIM = 4, 64


def rows(rng: np.random.Generator, n: int, dtype: np.dtype, lse_layout: str = "nh",
         layout: str = "contiguous") -> tuple[np.ndarray, np.ndarray]:
    """Returns random bits as the contents of out [n, H, D], and of an lse in the given layout."""
    lse = garbage(rng, (n, HEADS) if lse_layout == "nh" else (HEADS, n), F32)
    return lay_out(garbage(rng, (n, HEADS, DIM), dtype), layout), lay_out(lse, layout)


def turned(lse: np.ndarray, lse_layout: str) -> np.ndarray:
    """Returns an lse as [n, H]."""
    return lse if lse_layout == "nh" else lse.T


def check_blanked(dead: np.ndarray, out: np.ndarray, lse: np.ndarray, before: np.ndarray, lse_before: np.ndarray) -> None:
    """Checks that dead rows are exactly +0.0 and -inf, and that all others keep their bits."""
    assert same_bits(out[~dead], before[~dead]) and same_bits(lse[~dead], lse_before[~dead])
    assert same_bits(out[dead], np.zeros_like(out[dead])), "expected +0.0 in dead rows"
    assert np.isneginf(lse[dead]).all(), "expected -inf in the lse of dead rows"


SEGMENTS = [
    # Each entry has kv_lens, cu_seqlens and n.
    ([3, 0, 5, -1, 0], [0, 2, 5, 5, 9, 12], 12),
    ([0], [0, 7], 7),
    ([4, 4], [0, 3, 6], 6),
    ([0, 0, 0], [0, 0, 0, 0], 0),
    ([], [0], 5),
    ([0, 0, 0, 0], [2, 1, 100, -3, 4], 8),  # Offsets are out of order and out of bounds, so no row is blanked.
    ([0] * 300, list(range(301)), 300),
    ([1] * 299 + [0], list(range(301)), 310),
]


@pytest.mark.parametrize("lse_layout", ["hn", "nh"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_fixup_blanks_dead_sequences_and_nothing_else(dtype: np.dtype, lse_layout: str, device: Device,
                                                      rng: np.random.Generator) -> None:
    for (kv_lens, cu_seqlens, n), layout in zip(SEGMENTS, cycle(LAYOUTS)):
        out, lse = rows(rng, n, dtype, lse_layout)
        lens, cu = np.array(kv_lens, np.int32), np.array(cu_seqlens, np.int32)
        on_device = device.put(lay_out(out, layout)), device.put(lay_out(lse, layout))
        ops.fixup_zero_kv_rows(*on_device, device.put(lens), device.put(cu), lse_layout=lse_layout)  # type: ignore[arg-type]
        dead = contract.dead_rows(n, lens, cu)
        check_blanked(dead, device.get(on_device[0]), turned(device.get(on_device[1]), lse_layout), out, turned(lse, lse_layout))


@pytest.mark.parametrize("heads, dim", [(1, 64), (3, 192), (40, 128), (128, 128), (128, 512)])
@pytest.mark.parametrize("lens", [[0], [0, 0], [3, 0], [0, 0, 0, 0, 5, 0], [0] * 9 + [1] + [0] * 30], ids=len)
def test_fixup_of_segments_that_blocks_share(lens: list[int], heads: int, dim: int, device: Device, rng: np.random.Generator) -> None:
    """Blocks share a launch's rows: each takes rows of some heads, or a part of a sequence with many rows. The numbers
    of heads, parts and blocks need not divide each other."""
    fewest, most = (4200, 4300) if lens == [0, 0] and heads * dim < 1000 else (0, 96 // len(lens))
    starts = np.cumsum([0, *rng.integers(fewest, 1 + most, len(lens))]).astype(np.int32)
    n = int(starts[-1]) + 3
    out, lse = garbage(rng, (n, heads, dim), BF16), garbage(rng, (heads, n), F32)
    on_device = device.put(out.copy()), device.put(lse.copy())
    ops.fixup_zero_kv_rows(*on_device, device.put(np.array(lens, np.int32)), device.put(starts))
    dead = contract.dead_rows(n, np.array(lens, np.int32), starts)
    check_blanked(dead, device.get(on_device[0]), device.get(on_device[1]).T, out, lse.T)


def test_fixup_of_malformed_segments_stays_in_bounds(device: Device, rng: np.random.Generator) -> None:
    """Bounds may be any integers, and their number need not fit that of the segments, which `ops` refuses. A segment
    counts only if it has both bounds."""
    cases: list[tuple[Any, Any]] = [([0, 0, 0, 0], [0, 2, 4]), ([0], [0, 2, 4, 6, 8]), ([0, 0], [0]), ([0, 0], []), ([], [])]
    ends = np.iinfo(np.int32)
    for _ in range(20):
        far = rng.integers(ends.min, ends.max, 38, endpoint=True)
        cases.append((rng.integers(-1, 2, 37), np.where(rng.random(38) < 0.25, far, rng.integers(-3, 67, 38))))
    for kv_lens, cu_seqlens in cases:
        out, lse = rows(rng, 64, BF16, "hn")
        lens, cu = np.array(kv_lens, np.int32), np.array(cu_seqlens, np.int32)
        on_device = device.put(out.copy()), device.put(lse.copy())
        mlafix.library.fixup_zero_kv_rows(*on_device, device.put(lens), device.put(cu))
        check_blanked(contract.dead_rows(64, lens, cu), device.get(on_device[0]), device.get(on_device[1]).T, out, lse.T)


@given(data=st.data(), seed=st.integers(0, 2**32 - 1), layout=st.sampled_from(LAYOUTS), lse_layout=st.sampled_from(["hn", "nh"]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_fixup_of_any_segments(data: st.DataObject, seed: int, layout: str, lse_layout: str) -> None:
    """Even if segments are invalid, which an engine should not pass, nothing is written out of bounds."""
    n = data.draw(st.integers(0, 40))
    lens = np.array(data.draw(st.lists(st.integers(-2, 2), max_size=12)), np.int32)
    bound = st.integers(-3, n + 3) if data.draw(st.booleans()) else st.integers(0, n)
    points = data.draw(st.lists(bound, min_size=len(lens) + 1, max_size=len(lens) + 1))
    cu = np.array(points if data.draw(st.booleans()) else sorted(points), np.int32)
    out, lse = rows(np.random.default_rng(seed), n, BF16, lse_layout, layout)
    before, lse_before, raw = out.copy(), turned(lse, lse_layout).copy(), [buffer_of(x).copy() for x in (out, lse)]
    ops.fixup_zero_kv_rows(out, lse, lens, cu, lse_layout=lse_layout)  # type: ignore[arg-type]
    check_blanked(contract.dead_rows(n, lens, cu), out, turned(lse, lse_layout), before, lse_before)
    assert untouched_outside(out, raw[0]) and untouched_outside(lse, raw[1])


CONTEXTS = [
    # Each entry has query_start_loc, context_start_loc and n.
    ([0, 2, 5, 5, 9], [0, 4, 4, 4, 9], 9),
    ([0, 3], [0, 0], 3),
    ([0, 3, 6], [0, 10, 20], 6),
    ([0], [0], 4),
    ([0, 5, 2, 9], [3, 3, 3, 3], 7),
]


@pytest.mark.parametrize("lse_layout", ["hn", "nh"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_mask_empty_context_blanks_requests_without_context(dtype: np.dtype, lse_layout: str, device: Device,
                                                            rng: np.random.Generator) -> None:
    for case, (query, context, n) in enumerate(CONTEXTS):
        out, lse = rows(rng, n, dtype, lse_layout)
        integer = (np.int32, np.int64)[case % 2]
        starts = np.array(query, integer), np.array(context, integer)
        dead = contract.empty_context_rows(n, *starts)
        where = [device.put(x) for x in starts]
        on_device = device.put(out.copy()), device.put(lse.copy())
        ops.mask_empty_context(*on_device, *where, lse_layout=lse_layout)  # type: ignore[arg-type]
        check_blanked(dead, device.get(on_device[0]), turned(device.get(on_device[1]), lse_layout), out, turned(lse, lse_layout))
        alone = device.put(lse.copy())
        ops.mask_empty_context_lse(alone, *where, lse_layout=lse_layout)  # type: ignore[arg-type]
        got, held = turned(device.get(alone), lse_layout), turned(lse, lse_layout)
        assert np.isneginf(got[dead]).all() and same_bits(got[~dead], held[~dead])


@pytest.mark.parametrize("where", ["host", "device"])
@pytest.mark.parametrize("lse_layout", ["hn", "nh", None])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_fill_pad_rows_from_the_live_count_on(dtype: np.dtype, lse_layout: str | None, where: str, device: Device,
                                              rng: np.random.Generator) -> None:
    for n, live in [(8, 5), (8, 0), (8, 8), (1, 0), (0, 0), (130, 1)]:
        out, lse = rows(rng, n, dtype, lse_layout or "hn")
        count: Any = live if where == "host" else device.scalar(live)
        on_device, lse_on = device.put(out.copy()), device.put(lse.copy())
        ops.fill_pad_rows(on_device, count, None if lse_layout is None else lse_on, lse_layout=lse_layout or "hn")  # type: ignore[arg-type]
        dead = np.arange(n) >= live
        got_lse, held = turned(device.get(lse_on), lse_layout or "hn"), turned(lse, lse_layout or "hn")
        if lse_layout is None:
            assert same_bits(got_lse, held)
            held = got_lse = np.where(dead[:, None], np.float32(-np.inf), held)
        check_blanked(dead, device.get(on_device), got_lse, out, held)


@pytest.mark.parametrize("lse_layout", ["hn", "nh", None])
@pytest.mark.parametrize("dtype", [BF16, np.dtype(np.float16), F32], ids=str)
def test_rows_without_indices(dtype: np.dtype, lse_layout: str | None, device: Device, rng: np.random.Generator) -> None:
    """A token without a valid index has no keys, so its row is blanked. A single index that is not negative, at any
    place, keeps the row."""
    for n, k, kind in [(9, 1, "i4"), (9, 64, "i8"), (130, 2048, "i4"), (5, 33, "i4"), (3, 0, "i4"), (0, 7, "i8"), (2, 8192, "i4")]:
        out, lse = rows(rng, n, dtype, lse_layout or "hn")
        indices = rng.integers(-5, 0, (n, k)).astype(kind)
        live = (rng.random(n) < 0.5) & (k > 0)
        if k:
            place = np.where(np.arange(n) % 3 == 0, 0, np.where(np.arange(n) % 3 == 1, k - 1, rng.integers(0, k, n)))
            indices[np.arange(n)[live], place[live]] = rng.integers(0, 3, int(live.sum()))
        on_device, lse_on = device.put(out.copy()), device.put(lse.copy())
        ops.blank_rows_without_indices(on_device, device.put(indices), None if lse_layout is None else lse_on, lse_layout=lse_layout or "hn")  # type: ignore[arg-type]
        got_lse, held = turned(device.get(lse_on), lse_layout or "hn"), turned(lse, lse_layout or "hn")
        if lse_layout is None:
            assert same_bits(got_lse, held)
            held = got_lse = np.where(~live[:, None], np.float32(-np.inf), held)
        check_blanked(~live, device.get(on_device), got_lse, out, held)


def test_a_device_count_out_of_range_stays_in_bounds(device: Device, rng: np.random.Generator) -> None:
    for count in (-5, 9, 2**31 - 1):
        out, lse = rows(rng, 8, BF16, "hn")
        on_device, lse_on = device.put(out.copy()), device.put(lse.copy())
        ops.fill_pad_rows(on_device, device.scalar(count), lse_on)
        dead = np.full(8, count < 0)
        check_blanked(dead, device.get(on_device), device.get(lse_on).T, out, lse.T)


@pytest.mark.parametrize("blank", [
    lambda out, lse, device: ops.fixup_zero_kv_rows(out, lse, device.put(np.zeros(1, np.int32)),
                                                    device.put(np.array([2, 4], np.int32)), lse_layout="nh"),
    lambda out, lse, device: ops.mask_empty_context(out, lse, device.put(np.array([2, 4], np.int32)),
                                                    device.put(np.zeros(2, np.int32)), lse_layout="nh"),
    lambda out, lse, device: ops.fill_pad_rows(out, 2, lse, lse_layout="nh"),
], ids=["fixup", "mask", "pad"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 33), (2, 192)], ids=str)
def test_any_heads_and_head_dims(blank: Callable[..., None], shape: tuple[int, int], device: Device,
                                 rng: np.random.Generator) -> None:
    out, lse = garbage(rng, (4, *shape), BF16), garbage(rng, (4, shape[0]), F32)
    on_device, lse_on = device.put(out.copy()), device.put(lse.copy())
    blank(on_device, lse_on, device)
    check_blanked(np.array([False, False, True, True]), device.get(on_device), device.get(lse_on), out, lse)


def test_chunks_with_zero_kv_per_chunk_and_from_context_lengths() -> None:
    chunks = np.array([[4, 4, 4], [4, 0, 4], [1, 0, -1]])
    assert ops.chunks_with_zero_kv(chunks) == [False, True, True]
    assert ops.chunks_with_zero_kv(chunks.tolist()) == [False, True, True]
    # Contexts of 10 and 5 keys in chunks of 4: the third chunk has keys of the first sequence, but none of the second.
    assert ops.chunks_with_zero_kv([10, 5], chunk_size=4) == [False, False, True]
    assert ops.chunks_with_zero_kv([10, 5], 4, num_chunks=5) == [False, False, True, True, True]
    assert ops.chunks_with_zero_kv([8, 4], 4) == [False, True]
    assert ops.chunks_with_zero_kv([0], 4, 1) == [True]
    assert ops.chunks_with_zero_kv([], 4, 2) == [False, False]
    assert ops.chunks_with_zero_kv(np.zeros((2, 0), np.int32)) == [False, False]


def test_chunks_with_zero_kv_reads_cpu_tensors() -> None:
    torch = pytest.importorskip("torch")
    assert ops.chunks_with_zero_kv(torch.tensor([10, 5], dtype=torch.int32), 4) == [False, False, True]


@given(lens=st.lists(st.integers(0, 50), max_size=6), size=st.integers(1, 9), chunks=st.integers(0, 8))
@settings(max_examples=80, deadline=None)
def test_chunks_with_zero_kv_agrees_with_counting(lens: list[int], size: int, chunks: int) -> None:
    counted = [[min(max(length - c * size, 0), size) for length in lens] for c in range(chunks)]
    expected = [any(k <= 0 for k in row) for row in counted]
    assert ops.chunks_with_zero_kv(lens, size, chunks) == expected
    assert ops.chunks_with_zero_kv(np.array(counted, np.int64).reshape(chunks, len(lens))) == expected


@pytest.mark.parametrize("lens, options, message", [
    ([1.5], {"chunk_size": 2}, 'argument "kv_lens": expected integers, got float64'),
    ([1], {}, 'argument "kv_lens": expected 2 dims .* got 1'),
    ([[1], [1, 2]], {}, 'argument "kv_lens": expected integers, inner lists of equal length, got'),
    ([1], {"chunk_size": 2.5}, 'argument "chunk_size": expected an integer, got 2.5'),
    ([1], {"chunk_size": 2, "num_chunks": "3"}, "argument \"num_chunks\": expected an integer, got '3'"),
    ([[1]], {"chunk_size": 2}, 'argument "kv_lens": expected 1 dim .* got 2'),
    ([1], {"chunk_size": 0}, 'argument "chunk_size": expected more than 0, got 0'),
])
def test_chunks_with_zero_kv_says_what_is_wrong(lens: list[Any], options: dict[str, int], message: str) -> None:
    with pytest.raises(mlafix.ArgumentError, match=message):
        ops.chunks_with_zero_kv(lens, **options)


def test_chunks_with_zero_kv_does_not_wait_for_a_device() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(mlafix.ArgumentError, match='argument "kv_lens": expected lengths on the host.*meta'):
        ops.chunks_with_zero_kv(torch.zeros(3, dtype=torch.int32, device="meta"), 4)
