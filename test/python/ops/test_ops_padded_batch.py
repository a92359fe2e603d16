"""Tests the functions for the metadata of padded batches and for a rank's share of a batch, and `zero_blocks` for
caches with several page sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlafix
from devices import Device
from mlafix import library, ops
from numerics import BF16, same_bits

DTYPES = [(np.int32, np.int64), (np.int64, np.int32)]


def stale(rng: np.random.Generator, dtype: type, *shape: int) -> np.ndarray:
    """Returns arbitrary numbers, as left over from an earlier batch."""
    return rng.integers(-(2**31), 2**31, shape).astype(dtype)


@pytest.mark.parametrize("where", ["host", "device"])
@pytest.mark.parametrize(("narrow", "wide"), DTYPES)
def test_padding_is_harmless_and_the_live_part_as_it_was(narrow: type, wide: type, where: str, device: Device, rng: np.random.Generator) -> None:
    for requests, live, width in ((5, 3, 4), (5, 0, 1), (5, 5, 2), (700, 431, 3)):
        lens, slots = stale(rng, narrow, requests), stale(rng, wide, 3 * requests)
        lens[:live] = rng.integers(1, 4, live)
        starts = stale(rng, narrow, requests + 1)
        starts[: live + 1] = np.concatenate([[0], np.cumsum(lens[:live])])
        table = stale(rng, narrow, requests, width)
        arrays = [device.put(x.copy()) for x in (lens, starts, slots, table)]
        ops.pad_metadata(arrays[0], live if where == "host" else device.scalar(live), cu_seqlens=arrays[1], slots=arrays[2], block_table=arrays[3])
        lens[live:], starts[live + 1 :], table[live:] = 0, starts[live], 0
        slots[starts[live] :] = -1
        for got, want in zip(arrays, (lens, starts, slots, table)):
            assert same_bits(device.get(got), want)


def test_arrays_may_be_left_out_and_values_chosen(device: Device) -> None:
    lens, slots, table = (device.put(np.array(x, np.int32)) for x in ([2, 7], [1, 2, 3, 4], [[5, 6], [7, 8]]))
    ops.pad_metadata(lens, 1, slots=slots, block_table=table, live_tokens=device.scalar(3), pad_slot=-9, pad_block=4)
    assert device.get(lens).tolist() == [2, 0] and device.get(slots).tolist() == [1, 2, 3, -9] and device.get(table).tolist() == [[5, 6], [4, 4]]
    ops.pad_metadata(lens, 2, slots=slots)  # if neither offsets nor a count are passed, all tokens are live
    assert device.get(slots).tolist() == [1, 2, 3, -9]


@pytest.mark.parametrize(("entries", "rows"), [(2, 2), (9, 7), (0, 0)])
def test_offsets_and_tables_of_any_size(entries: int, rows: int, device: Device) -> None:
    """Offsets and tables may have any number of entries. The padding values are the smallest i64 and the largest
    i32."""
    lens, starts, table = (device.put(np.full(shape, 3, np.int32)) for shape in ((4,), (entries,), (rows, 2)))
    slots = device.put(np.full(5, 3, np.int64))
    ops.pad_metadata(lens, 1, cu_seqlens=starts, slots=slots, block_table=table, live_tokens=2, pad_slot=-(2**63), pad_block=2**31 - 1)
    assert device.get(lens).tolist() == [3, 0, 0, 0] and device.get(slots).tolist() == [3] * 2 + [-(2**63)] * 3
    assert device.get(starts).tolist() == [3] * entries
    assert device.get(table).tolist() == ([[3, 3]] + [[2**31 - 1] * 2] * (rows - 1) if rows else [])


def test_vllm_51593_no_length_is_negative(device: Device) -> None:
    """Lengths of padding become 0. In the report, the length was -1, or -2 with two tokens per request
    (flashinfer#5015). A top-k kernel read this length as unsigned, so one of its blocks waited forever."""
    lens = device.put(np.array([17, -1, -2, -(2**31), 5, -1], np.int32))
    ops.pad_metadata(lens, device.scalar(5))
    assert device.get(lens).tolist() == [17, 0, 0, 0, 5, 0]


def test_torchtitan_3709_offsets_of_a_former_batch_do_not_survive(device: Device) -> None:
    """Offsets past the live requests are overwritten. In the report, a graph was captured for the largest batch. In its
    replays, these offsets still pointed at rows of the previous batch, and attention became NaN."""
    starts, count = device.put(np.array([0, 4, 9, 11, 16], np.int32)), device.scalar(4)
    lens = device.put(np.array([4, 5, 2, 5], np.int32))
    ops.pad_metadata(lens, count, cu_seqlens=starts)
    for now in (2, 0):
        device.write(count, np.array([now], np.int32))
        ops.pad_metadata(lens, count, cu_seqlens=starts)
        got = device.get(starts)
        assert (np.diff(got) >= 0).all() and (got[now:] == got[now]).all()


def test_sglang_33253_padded_tokens_write_no_kv(device: Device, rng: np.random.Generator) -> None:
    """Padded tokens get an invalid slot. In the report, they kept their old slots, which are in blocks of other
    requests, so these blocks were overwritten."""
    slots = stale(rng, np.int64, 64)
    given = device.put(slots.copy())
    ops.pad_metadata(device.put(np.ones(4, np.int32)), 4, slots=given, live_tokens=device.scalar(23))
    assert same_bits(device.get(given)[:23], slots[:23]) and (device.get(given)[23:] == -1).all()


@pytest.mark.parametrize("where", ["host", "device"])
@pytest.mark.parametrize(("narrow", "wide"), DTYPES)
def test_offsets_are_the_sums_of_the_live_lengths(narrow: type, wide: type, where: str, device: Device, rng: np.random.Generator) -> None:
    for requests, live, entries in ((6, 6, 7), (6, 4, 7), (6, 0, 3), (3, 3, 9), (0, 0, 1), (300, 222, 301)):
        lens = rng.integers(-2, 9, requests).astype(narrow)
        out = device.put(np.full(entries, -7, wide))
        got = ops.cumulate_lens(device.put(lens), live_rows=live if where == "host" else device.scalar(live), out=out)
        sums = np.concatenate([[0], np.cumsum(np.maximum(lens[:live], 0))])
        assert got is out and device.get(out).tolist() == sums[np.minimum(np.arange(entries), live)].tolist()


@pytest.mark.parametrize(("ranks", "interleave"), [(1, 1), (2, 1), (4, 3), (8, 16)])
def test_lengths_of_ranks_count_the_tokens_that_lie_there(ranks: int, interleave: int, device: Device, rng: np.random.Generator) -> None:
    lens = np.concatenate([rng.integers(0, 300, 20), [0, -3, 1, interleave * ranks]]).astype(np.int32)
    for rank in range(ranks):
        owned = [int((np.arange(max(n, 0)) // interleave % ranks == rank).sum()) for n in lens]
        got = ops.lens_of_rank(device.put(lens), rank, ranks, interleave=interleave, live_rows=device.scalar(22), out=device.put(np.full(26, -7, np.int32)))
        assert device.get(got).tolist() == owned[:22] + [0] * 4


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(("ranks", "interleave"), [(2, 2**63 - 1), (2, 2**62), (8, 2**60), (2**40, 2**30), (2**62, 1), (2**62, 3), (3, 2**61)])
def test_lengths_of_ranks_are_exact_where_ranks_and_runs_have_a_product_past_64_bits(ranks: int, interleave: int, dtype: type, device: Device) -> None:
    """tilelang#1355, vllm#1486: no product in the kernels overflows. SGLang's drop-ins call these kernels without
    checking the numbers."""
    lens = [0, 1, 10, 77, np.iinfo(dtype).max, np.iinfo(dtype).max - 1]
    for rank in (0, 1, ranks - 1):
        got = device.put(np.full(len(lens), -7, dtype))
        library.kernel("lens_of_rank")(got, device.put(np.array(lens, dtype)), rank, ranks, interleave, len(lens), None)
        whole, rest = zip(*(divmod(n, ranks * interleave) for n in lens))
        want = [runs * interleave + min(max(left - rank * interleave, 0), interleave) for runs, left in zip(whole, rest)]
        assert device.get(got).tolist() == want


@pytest.mark.parametrize(("ranks", "page"), [(1, 2**62), (2, 2**61), (2**62, 1), (2**31, 2**31), (4, 2**63 - 1)])
def test_pages_of_a_rank_may_have_any_size(ranks: int, page: int, device: Device) -> None:
    table, lens = np.arange(1, 41, dtype=np.int64).reshape(1, 40) * 2**55, np.array([40], np.int32)
    out = device.put(np.full((1, 9), -7, np.int64))
    ops.pages_of_rank(out, device.put(table), device.put(np.array([0], np.int32)), device.put(lens), 0, ranks, page, pad_page=3)
    pages = [j for j in range(9) if j * page < 40]
    want = [int(table[0, j * page * ranks]) // ranks // page if j in pages and j * page * ranks < 40 else 3 for j in range(9)]
    assert device.get(out).tolist() == [want]


def test_counts_may_be_numpys_integers_whose_products_wrap(device: Device) -> None:
    buffer = device.put(np.zeros(8, np.int32))
    with pytest.raises(mlafix.ArgumentError, match="room for 70000 x 70000 = 4900000000 lengths, got 8"):
        ops.expand_context_lens(buffer, device.put(np.array([1], np.int32)), np.int32(70000), np.int32(70000))
    assert ops.chunks_with_zero_kv(np.array([3, 1], np.int8), chunk_size=2**62, num_chunks=3) == [False, True, True]


@pytest.mark.parametrize(("ranks", "page"), [(1, 4), (2, 4), (4, 16)])
def test_pages_of_a_rank_are_those_of_its_first_tokens(ranks: int, page: int, device: Device, rng: np.random.Generator) -> None:
    """Compares with SGLang's create_mla_kv_page_table_for_dcp, which places a token at (page * page_size * ranks +
    offset). Every entry is written."""
    pages, width = 5, 7
    blocks = rng.permutation(64)[: 3 * pages].reshape(3, pages)
    places = (blocks[:, :, None] * (page * ranks) + np.arange(page * ranks)).reshape(3, -1)
    requests = np.array([2, 0, 1, 2**31 - 1, -1], np.int32)
    lens = np.array([page * ranks * pages, 1, page * ranks + 1, 9, 9], np.int32)
    for rank in {0, ranks - 1}:
        local = ops.lens_of_rank(device.put(lens), rank, ranks)
        out = device.put(np.full((5, width), -7, np.int32))
        ops.pages_of_rank(out, device.put(places), device.put(requests), local, rank, ranks, page, pad_page=3)
        used = -(-device.get(local) // page)
        want = np.full((5, width), 3)
        for i in range(3):
            want[i, : used[i]] = blocks[requests[i], : used[i]]
        assert device.get(out).tolist() == want.tolist()


def test_vllm_43990_caches_of_several_page_sizes_are_cleared_in_one_launch(device: Device, rng: np.random.Generator) -> None:
    """The layers of one slab have different page sizes, and each layer is cleared by its own page size. Upstream, a
    span that was computed from another layer's stride wiped live KV of the next layer."""
    if device.name == "ptx":
        pytest.skip("its tensors do not tell their strides")
    slab = rng.integers(0, 256, (6, 4096)).astype(np.uint8)
    given = device.put(slab.copy())
    # for each layer: its first byte in a block, the end of its bytes, and its rows
    cut = ((0, 1024, 4), (1024, 3072, 8), (3072, 3080, 1))

    def layers(memory: Any) -> list[Any]:
        return [memory[:, start:end].reshape(6, rows, -1) if memory is slab else memory[:, start:end].unflatten(1, (rows, -1)) if device.is_torch
                else np.lib.stride_tricks.as_strided(memory[:, start:end], (6, rows, (end - start) // rows), (4096, (end - start) // rows, 1))
                for start, end, rows in cut]  # fmt: skip

    ids = np.array([4, 1, -1, 6, 2**40])
    ops.zero_blocks(layers(given), device.put(ids))
    slab[[4, 1], :3080] = 0
    assert same_bits(device.get(given), slab)


def test_caches_of_several_dtypes_and_counts_of_blocks(device: Device, rng: np.random.Generator) -> None:
    if device.name == "ptx":
        pytest.skip("it has no arrays of numpy's or torch's")
    before = [np.ones((6, 2, 4, 32), BF16), np.ones((3, 5, 64), np.float32), np.ones((9, 7), np.uint8)]
    caches = [device.put(x.copy()) for x in before]
    ops.zero_blocks(caches, device.put(np.array([5, 1, 8], np.int32)))
    for cache, want in zip(caches, before):
        want[[i for i in (5, 1, 8) if i < len(want)]] = 0
        assert same_bits(device.get(cache), want)


@pytest.mark.parametrize(("call", "message"), [
    (lambda r: ops.pad_metadata(r([1.0], np.float32), 1), 'argument "seq_lens": expected dtype i64 or i32, got float32'),
    (lambda r: ops.pad_metadata(r([1]), 1, slots=r([[1]])), r'argument "slots": expected 1 dim \[t\], got 2'),
    (lambda r: ops.pad_metadata(r([1]), 1, pad_slot=1.5), 'argument "pad_slot": expected an integer, got 1.5'),
    (lambda r: ops.pad_metadata(r([1]), 1, slots=r([1]), pad_slot=2**40 + 5), 'argument "pad_slot": expected an integer that fits int32, the dtype of "slots", got 1099511627781'),
    (lambda r: ops.pad_metadata(r([1]), 1, slots=r([1], np.int64), pad_slot=2**63), 'argument "pad_slot": expected an integer of 64 bits, got 9223372036854775808'),
    (lambda r: ops.pad_metadata(r([1]), 1, block_table=r([[1]]), pad_block=-(2**31) - 1), 'argument "pad_block": expected an integer that fits int32, the dtype of "block_table"'),
    (lambda r: ops.pages_of_rank(r([[1]]), r([[1]]), r([1]), r([1]), 0, 1, 1, pad_page=2**40), 'argument "pad_page": expected an integer that fits int32, the dtype of "out"'),
    (lambda r: ops.pages_of_rank(r([[1]]), r([[1]]), r([1]), r([1]), 0, 1, 1, pad_page="0"), 'argument "pad_page": expected an integer, got \'0\''),
    (lambda r: ops.pad_metadata(r([1]), 1, cu_seqlens=r([[1]])), r'argument "cu_seqlens": expected 1 dim \[c\], got 2'),
    (lambda r: ops.pad_metadata(r([1]), "2"), 'argument "live_rows": expected .*got str'),
    (lambda r: ops.cumulate_lens(r([[1]])), r'argument "lens": expected 1 dim \[r\], got 2'),
    (lambda r: ops.lens_of_rank(r([1]), 2, 2), 'argument "rank": expected a rank from 0 to 1, got 2'),
    (lambda r: ops.lens_of_rank(r([1]), 0, 2, interleave=0), 'argument "interleave": expected 1 or more, got 0'),
    (lambda r: ops.pages_of_rank(r([[1]]), r([[1]]), r([1]), r([1]), 0, 1, 0), 'argument "page_size": expected 1 or more, got 0'),
], ids=lambda x: x if isinstance(x, str) else "")  # fmt: skip
def test_wrong_arguments(call: Any, message: str, device: Device) -> None:
    with pytest.raises(mlafix.ArgumentError, match=message):
        call(lambda values, dtype=np.int32: device.put(np.array(values, dtype)))
