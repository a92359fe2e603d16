"""Tests kernels of examples/python/cookbook: ragged and padded rows, blocks of several caches, running sums, and the
chain of mask, merge and quantisation."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import contract
from devices import Device
from mlafix import ops
from numerics import BF16, E4M3, E5M2, F16, F32, garbage, poison, same_bits
from states import EMPTY, EMPTY_FA2, ORDINARY, ZERO, make_states

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")


# -- Ragged rows and padded ones ------------------------------------------------------------------------------------------

LENGTHS = [[3, 0, 5, 1], [0], [7], [2, 2, 2], []]


def starts_of(lengths: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def padded_of(x: np.ndarray, starts: np.ndarray, most: int, pad: Any) -> np.ndarray:
    want = np.full((len(starts) - 1, most, x.shape[1]), pad, x.dtype)
    for s, (first, last) in enumerate(zip(starts, starts[1:])):
        rows = x[first : min(last, first + most)]
        want[s, : len(rows)] = rows
    return want


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("most", [1, 5, 8])
@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
def test_rows_are_packed_with_a_pad(cookbook: dict[str, ModuleType], device: Device, rng: np.random.Generator, dtype: np.dtype, most: int,
                                    lengths: list[int]) -> None:
    starts = starts_of(lengths)
    for pad, size in ((-np.inf, 128), (0.5, 33), (np.nan, 8)):
        x = garbage(rng, (sum(lengths) + 1, size), dtype)
        padded = device.poisoned((len(lengths), most, size), dtype)
        cookbook["pack"].pack_rows(padded, device.put(x), device.put(starts), pad)
        got, want = device.get(padded), padded_of(x, starts, most, pad)
        np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("dtype", [BF16, E5M2, np.dtype(np.uint8), np.dtype(np.int64)], ids=str)
def test_rows_of_any_dtype_go_there_and_back(cookbook: dict[str, ModuleType], device: Device, rng: np.random.Generator, dtype: np.dtype,
                                             lengths: list[int]) -> None:
    starts, size, most = starts_of(lengths), 48, 5
    bits = rng.integers(0, 256, (sum(lengths) + 2, size, dtype.itemsize), np.uint8).view(dtype)[..., 0]
    padded = device.poisoned((len(lengths), most, size), dtype)
    cookbook["pack"].pack_bits(padded, device.put(bits), device.put(starts))
    back = device.put(poison(bits.shape, dtype))
    cookbook["pack"].unpack_rows(back, padded, device.put(starts))
    assert same_bits(device.get(padded), padded_of(bits, starts, most, np.zeros((), dtype)))
    want = poison(bits.shape, dtype)
    for first, last in zip(starts, starts[1:]):
        want[first:last] = np.zeros((), dtype)  # dropped rows become zeros
        want[first : min(last, first + most)] = bits[first : min(last, first + most)]
    assert same_bits(device.get(back), want)


def test_bounds_that_are_none_lead_nowhere(cookbook: dict[str, ModuleType], device: Device, rng: np.random.Generator) -> None:
    x = garbage(rng, (4, 16), F32)
    starts = np.array([-2, 2, 1, 9, 2**31 - 1], np.int32)
    padded, back = device.poisoned((4, 3, 16), F32), device.put(x.copy())
    cookbook["pack"].pack_rows(padded, device.put(x), device.put(starts), 7.0)
    cookbook["pack"].unpack_rows(back, padded, device.put(starts))
    want = np.full((4, 3, 16), 7, F32)
    want[0, :2], want[0, 2], want[2], want[3] = 0, x[0], x[1:4], 0  # rows that do not exist read as zeros
    np.testing.assert_array_equal(device.get(padded), want)
    assert same_bits(device.get(back), x)


# -- Blocks of several caches ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 3, 8])
@pytest.mark.parametrize("dtype", [BF16, np.dtype(np.uint8)], ids=str)
def test_blocks_of_several_caches_are_cleared(cookbook: dict[str, ModuleType], device: Device, rng: np.random.Generator, dtype: np.dtype,
                                              count: int) -> None:
    """Blocks of several caches are cleared. Every other cache has gaps between its rows. Some ids repeat, are negative,
    or are past the end."""
    shape = (9, 4, 32)
    wide = [rng.integers(1, 256, (*shape[:-1], 32 * dtype.itemsize * (1 + i % 2)), np.uint8).view(dtype) for i in range(count)]
    before = [x.copy() for x in wide]
    whole = [device.put(x) for x in wide]
    ids = np.array([3, -1, 8, 9, 0, 3, -(2**40)], np.int64)
    cookbook["blocks"].zero_blocks_of_8(*(x[:, :, :32] for x in whole), *[None] * (8 - count), device.put(ids))
    for got, want in zip(whole, before):
        want[[3, 8, 0], :, :32] = np.zeros((), dtype)
        assert same_bits(device.get(got), want)


# -- The chain ------------------------------------------------------------------------------------------------------------


def chain_inputs(rng: np.random.Generator, dtype: np.dtype, dim: int) -> dict[str, np.ndarray]:
    """Returns states of sequences with and without keys. The first state of a sequence without keys may contain
    anything. Two rows belong to no sequence."""
    starts, heads = starts_of([2, 3, 0, 1, 4]), 3
    states = make_states(rng, 2, 12, heads, dim, dtype, kinds=rng.choice([ORDINARY, EMPTY, EMPTY_FA2, ZERO], (2, 12, heads)))
    dead = np.zeros(12, bool)
    dead[2:5] = dead[5:6] = True
    states.v[0, dead], states.s[0, dead] = garbage(rng, states.v[0, dead].shape, dtype), np.nan
    return {"a": states.v[0], "a_lse": states.s[0], "b": states.v[1], "b_lse": states.s[1],
            "kv_lens": np.array([5, 0, 3, -1, 1], np.int32), "starts": starts, "dead": dead}


@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
@pytest.mark.parametrize("dim", [128, 24])
def test_the_chain_with_one_scale(cookbook: dict[str, ModuleType], device: Device, rng: np.random.Generator, dtype: np.dtype, dim: int) -> None:
    x = chain_inputs(rng, dtype, dim)
    scale = np.full(1, 0.07, F32)
    q, lse = device.poisoned((12, 3, dim), E4M3), device.poisoned((12, 3), F32)
    arrays = [device.put(x[name]) for name in ("a", "a_lse", "b", "b_lse", "kv_lens", "starts")]
    cookbook["chain"].chain_static(q, device.put(scale), None, 0, lse, *arrays, 4)
    there = np.stack([np.broadcast_to(~x["dead"][:, None], (12, 3)), np.ones((12, 3), bool)])
    payload, total = contract.merge(np.stack([x["a"], x["b"]])[:, :10], np.stack([x["a_lse"], x["b_lse"]])[:, :10], out_dtype=E4M3,
                                    scale=0.07, present=there[:, :10])
    payload.check(device.get(q)[:10], "q")
    total.check(device.get(lse)[:10], "lse")
    assert same_bits(device.get(q)[10:], poison((2, 3, dim), E4M3)) and same_bits(device.get(lse)[10:], poison((2, 3), F32))


@pytest.mark.parametrize("groups", [1, 3])
def test_the_chain_has_the_bits_of_its_three_launches(cookbook: dict[str, ModuleType], device: Device, rng: np.random.Generator,
                                                      groups: int) -> None:
    """For both kinds of quantisation, the chain gives the same bits as a launch each for fixup, merge and quantisation.
    The inputs are f32, so nothing is rounded between the three launches."""
    dim = groups * 64
    x = chain_inputs(rng, F32, dim)
    a, a_lse, b, b_lse, kv_lens, starts = (device.put(x[name].copy()) for name in ("a", "a_lse", "b", "b_lse", "kv_lens", "starts"))
    scale = device.put(np.full(1, 0.07, F32))
    q, lse, q_static, lse_static = (device.poisoned((12, 3, dim), E4M3), device.poisoned((12, 3), F32),
                                    device.poisoned((12, 3, dim), E4M3), device.poisoned((12, 3), F32))
    scales = device.poisoned((12, 3, groups), F32)
    cookbook["chain"].chain_groups(q, scales.reshape((12, 3, 1, groups)), None, 0, lse, a, a_lse, b, b_lse, kv_lens, starts, 4)
    cookbook["chain"].chain_static(q_static, scale, None, 0, lse_static, a, a_lse, b, b_lse, kv_lens, starts, 4)
    fixed, fixed_lse = device.put(x["a"].copy()), device.put(x["a_lse"].copy())
    ops.fixup_zero_kv_rows(fixed, fixed_lse, kv_lens, starts, lse_layout="nh")
    merged, merged_lse = ops.merge_attn_states(fixed, fixed_lse, b, b_lse, lse_layout="nh")
    rows = merged.reshape(36, dim)
    want, want_scales = device.poisoned((36, dim), E4M3), device.poisoned((36, groups), F32)
    ops.quantize_groups(rows, ops.Fp8Groups(want_scales), out=want)
    want_static = ops.quantize_fp8_static(rows, scale)
    for got, one in ((q, want), (scales, want_scales), (lse, merged_lse), (q_static, want_static), (lse_static, merged_lse)):
        shape = device.get(got).shape
        assert same_bits(device.get(got)[:10], device.get(one).reshape(shape)[:10])


@pytest.mark.parametrize("dtype", [BF16, F32], ids=str)
def test_the_chain_with_a_scale_for_each_group(cookbook: dict[str, ModuleType], device: Device, rng: np.random.Generator, dtype: np.dtype) -> None:
    groups, size = 4, 32
    x = chain_inputs(rng, dtype, groups * size)
    q, lse, scales = device.poisoned((12, 3, groups * size), E4M3), device.poisoned((12, 3), F32), device.poisoned((12, 3, groups), F32)
    arrays = [device.put(x[name]) for name in ("a", "a_lse", "b", "b_lse", "kv_lens", "starts")]
    cookbook["chain"].chain_groups(q, scales.reshape((12, 3, 1, groups)), None, 0, lse, *arrays, 4)
    there = np.stack([np.broadcast_to(~x["dead"][:, None], (12, 3)), np.ones((12, 3), bool)])
    row, total = contract.merge(np.stack([x["a"], x["b"]])[:, :10], np.stack([x["a_lse"], x["b_lse"]])[:, :10], present=there[:, :10])
    total.check(device.get(lse)[:10], "lse")
    got, want = device.get(scales)[:10].astype(np.float64), row.value
    np.testing.assert_allclose(got, np.maximum(np.abs(want.reshape(10, 3, groups, size)).max(3), 1e-10) / 448, rtol=1e-5)
    back = device.get(q)[:10].astype(np.float64) * np.repeat(got, size, 2)
    assert (np.abs(back - want) <= 2.0**-4 * np.abs(want) + np.repeat(got, size, 2) * 2.0**-9).all()


# -- NVFP4 ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heads, dim, first", [(2, 64, 0), (3, 48, 5), (128, 128, 120)])
def test_a_merge_into_fp4_has_the_librarys_bits(cookbook: dict[str, ModuleType], device: Device, rng: np.random.Generator, heads: int, dim: int,
                                                first: int) -> None:
    """A merge into fp4 has the bits of the library's merge, and of an f32 merge that is quantised separately. Scales
    that belong to no token keep their poison."""
    a, b = ((rng.standard_normal((9, heads, dim)) * 4).astype(F32) for _ in range(2))
    a_lse, b_lse = (rng.standard_normal((9, heads)).astype(F32) for _ in range(2))
    a_lse[3], b_lse[3], a[3] = -np.inf, np.inf, np.nan
    given = [device.put(array) for array in (a, a_lse, b, b_lse)]
    number, columns = device.put(np.full(1, 100.0, F32)), heads * dim // 16
    made = []
    for _ in range(3):
        memory = np.full((256, -(-columns // 4) * 4), 0x5A, np.uint8).view(E4M3)
        made.append((device.put(np.full((9, heads, dim // 2), 0x5A, np.uint8)), device.put(memory)))
    (q, tiles), (want, want_tiles), (alone, alone_tiles) = made
    scales, alone_scales = (memory[:, :columns].reshape((256, heads, dim // 16)) for memory in (tiles, alone_tiles))
    lse = device.poisoned((9, heads), F32)
    cookbook["merge_fp4"].merge_fp4(q, scales, lse, number, *given, first)
    merged, want_lse = ops.merge_attn_states(*given, lse_layout="nh")
    ops.merge_attn_states(*given, out=want, out_format=ops.NvFp4(want_tiles, number, tiles="128x4", first_row=first, clear_padding=False), lse_layout="nh")
    cookbook["merge_fp4"].quantize_fp4(alone, alone_scales, number, merged, first)
    np.testing.assert_array_equal(device.get(q), device.get(want))
    np.testing.assert_array_equal(device.get(lse), device.get(want_lse))
    np.testing.assert_array_equal(device.get(alone), device.get(want))
    bits = [device.get(memory).view(np.uint8) for memory in (tiles, want_tiles, alone_tiles)]
    np.testing.assert_array_equal(bits[0], bits[1])
    np.testing.assert_array_equal(bits[2], bits[1])
    assert (device.get(q)[3] == 0).all() and 0 < (bits[0] != 0x5A).sum() <= 9 * columns


# -- Running sums -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("experts", [1, 8, 60, 256])
@pytest.mark.parametrize("align", [1, 4, 128])
def test_experts_begin_behind_each_other(cookbook: dict[str, ModuleType], device: Device, rng: np.random.Generator, align: int, experts: int) -> None:
    counts = rng.integers(0, 300, (5, experts)).astype(np.int32) * rng.integers(0, 2, (5, experts), np.int32)
    starts, ends = (device.poisoned(counts.shape, np.int32) for _ in range(2))
    cookbook["scan"].expert_offsets(starts, ends, device.put(counts), align)
    padded = (counts + align - 1) // align * align
    want = np.cumsum(padded, -1) - padded
    np.testing.assert_array_equal(device.get(starts), want)
    np.testing.assert_array_equal(device.get(ends), want + counts)


@pytest.mark.parametrize("dtype", [BF16, F32], ids=str)
@pytest.mark.parametrize("size", [1, 100, 4096, 32000])
def test_the_likeliest_are_kept(cookbook: dict[str, ModuleType], device: Device, rng: np.random.Generator, dtype: np.dtype, size: int) -> None:
    x = np.sort(rng.dirichlet(np.full(size, 0.2), 4), -1)[:, ::-1].astype(np.float32).astype(dtype)
    kept, total = device.poisoned(x.shape, np.bool_), device.poisoned((4,), F32)
    cookbook["scan"].top_p_mask(kept, total, device.put(np.ascontiguousarray(x)), 0.9)
    got, wide = device.get(kept), x.astype(np.float64)
    before = np.cumsum(wide, -1) - wide
    np.testing.assert_array_equal(got[np.abs(before - 0.9) > 1e-5], (before < 0.9)[np.abs(before - 0.9) > 1e-5])
    assert got[:, 0].all()
    np.testing.assert_allclose(device.get(total), np.where(got, wide, 0).sum(-1), rtol=1e-5)


@pytest.mark.parametrize("size", [1, 100, 4096, 32000])
def test_a_sample_has_a_probability(cookbook: dict[str, ModuleType], device: Device, rng: np.random.Generator, size: int) -> None:
    p = rng.uniform(0.1, 1, (64, size)).astype(np.float32) ** 20
    p[:, size // 2 + 1 :] = 0
    u = np.concatenate([[0, np.nextafter(np.float32(1), np.float32(0))], rng.random(62)]).astype(np.float32)
    found = device.poisoned((64,), np.int32)
    cookbook["scan"].sample(found, device.put(p), device.put(u))
    index = np.array(device.get(found))
    assert (p[np.arange(64), index] > 0).all()
    sums = np.cumsum(p.astype(np.float64), -1)
    at = np.take_along_axis(sums, index[:, None], -1)[:, 0]
    near = 1e-5 * sums[:, -1]
    assert (at > u * sums[:, -1] - near).all() and (at - p[np.arange(64), index] <= u * sums[:, -1] + near).all()
