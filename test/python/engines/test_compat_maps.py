"""Drop-ins that merge through maps: AITER's mla_reduce_v1 and FlashMLA's combine. Also tokenspeed's merge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import contract
import mlafix
from devices import Device
from mlafix.compat import aiter, flash_mla, tokenspeed
from numerics import BF16, F16, F32, garbage, same_bits
from states import make_states

HEADS, DIM = 4, 64


def check_row(device: Device, got: Any, got_lse: Any, v: np.ndarray, s: np.ndarray, dtype: np.dtype, *, base: float = np.e) -> None:
    """Compares a row of a result with f64: `v` is [K, H, D], `s` is [K, H]. The lse is in base e, and +inf if the row
    is empty."""
    payload, _ = contract.merge(v, s, base=base, out_dtype=dtype)
    payload.check(got, "out")
    lse = contract.merge(v, s * np.float32(np.log(base)) if base != np.e else s)[1]
    value = np.where(np.isneginf(lse.value), np.inf, lse.value)
    contract.Expected(value, lse.magnitude * 2, lse.exact & ((base == np.e) | ~np.isfinite(value))).check(got_lse, "lse")


# -- AITER ----------------------------------------------------------------------------------------------------------------


def tiles(rng: np.random.Generator, lengths: list[int], splits: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Returns AITER's three maps for tiles of `lengths` queries with `splits` partials each, and the number of partial
    rows:

      - the bounds of each tile's entries in the third map,
      - the bounds of each tile's final rows; the final rows of the tiles are in random order,
      - the first row of each partial; the partials are in random order.
    """
    starts, row = {}, 0
    for tile in rng.permutation(len(lengths)).tolist():
        starts[tile], row = row, row + lengths[tile]
    final = np.array([[starts[i], starts[i] + n] for i, n in enumerate(lengths)], np.int32).reshape(-1, 2)
    sizes = np.repeat(lengths, splits)  # the rows of each partial
    places, at = np.zeros(sizes.size, np.int32), 1  # row 0 of the partials belongs to no tile
    for i in rng.permutation(sizes.size).tolist():
        places[i], at = at, at + int(sizes[i])
    indptr = np.concatenate([[0], np.cumsum(splits)]).astype(np.int32)
    return indptr, final, places, at


@pytest.mark.parametrize("lengths, splits", [
    ([1, 1, 1, 1, 1, 1], [2, 0, 1, 9, 2, 3]),
    ([1, 3, 2, 4, 3], [2, 1, 5, 3, 0]),
    ([2, 2, 2], [2, 3, 4]),
    ([4], [1]),
    ([3], [2]),
], ids=str)
@pytest.mark.parametrize("dtype", [BF16, F16], ids=str)
def test_aiter_reduces_each_query_of_a_tile(dtype: np.dtype, lengths: list[int], splits: list[int], device: Device,
                                            rng: np.random.Generator) -> None:
    indptr, final, places, count = tiles(rng, lengths, splits)
    states = make_states(rng, 1, count, HEADS, DIM, F32)
    v, s = states.v[0], states.s[0]
    s[places[:1], 0] = -np.inf  # the first partial row of the first tile has a head without keys
    s[places[splits[0] - 1 : splits[0]], 0] = np.inf
    rows = sum(lengths) + 2
    out, lse = garbage(rng, (rows, HEADS, DIM), dtype), garbage(rng, (rows, HEADS), F32)
    on_device, lse_on_device = device.put(out.copy()), device.put(lse.copy())
    arguments = [device.put(x) for x in (v, s, indptr, final, places)]
    assert aiter.mla_reduce_v1(*arguments, max(lengths), 0, on_device, lse_on_device) is None  # type: ignore[func-returns-value]
    got, got_lse = device.get(on_device), device.get(lse_on_device)
    written = set()
    for tile, (first, last) in enumerate(final.tolist()):
        parts = places[indptr[tile] : indptr[tile + 1]]
        if len(parts) < 2:
            continue
        for q, row in enumerate(range(first, last)):
            written.add(row)
            check_row(device, got[row], got_lse[row], v[parts + q], s[parts + q], dtype)
    for row in set(range(rows)) - written:
        assert same_bits(got[row], out[row]) and same_bits(got_lse[row], lse[row])
    again = device.put(out.copy())
    aiter.mla_reduce_v1(*arguments, max(lengths), 304, again)
    assert same_bits(device.get(again), got)


@pytest.mark.parametrize("queries", [1, 2, 3])
def test_aiter_without_a_map_of_rows_takes_tiles_in_order(queries: int, device: Device, rng: np.random.Generator) -> None:
    splits = [2, 4, 3, 2]
    indptr, _, places, count = tiles(rng, [queries] * 4, splits)
    places.sort()  # without a map, the partials of a tile lie one after the other
    states = make_states(rng, 1, count, HEADS, DIM, F32)
    v, s = states.v[0], states.s[0]
    out, lse = device.poisoned((4 * queries, HEADS, DIM), BF16), device.poisoned((4 * queries, HEADS), F32)
    v_, s_, indptr_, places_ = (device.put(x) for x in (v, s, indptr, places))
    aiter.mla_reduce_v1(v_, s_, indptr_, None, places_, queries, 0, out, lse)
    for row in range(4 * queries):
        parts = places[indptr[row // queries] : indptr[row // queries + 1]] + row % queries
        check_row(device, device.get(out)[row], device.get(lse)[row], v[parts], s[parts], BF16)


def test_aiter_tiles_that_pad_are_left_out(device: Device, rng: np.random.Generator) -> None:
    """Tiles that pad a graph are not written: their bounds repeat, and their final rows are (-1, -2). The
    last entries of the map of partials belong to no tile."""
    indptr, final, places, count = tiles(rng, [1, 2], [2, 2])
    states = make_states(rng, 1, count, HEADS, DIM, F32, faults=False)
    padded = np.concatenate([indptr, np.repeat(indptr[-1:], 5)]), np.concatenate([final, np.full((5, 2), (-1, -2), np.int32)])
    want, got = (device.poisoned((3, HEADS, DIM), BF16) for _ in range(2))
    v, s, parts = (device.put(x) for x in (states.v[0], states.s[0], np.pad(places, (0, 3))))
    aiter.mla_reduce_v1(v, s, device.put(indptr), device.put(final), device.put(places), 2, 0, want)
    aiter.mla_reduce_v1(v, s, device.put(padded[0]), device.put(padded[1]), parts, 2, 0, got)
    assert same_bits(device.get(want), device.get(got))


@pytest.mark.parametrize("heads", [1, HEADS])
@pytest.mark.parametrize("queries", [1, 2])
def test_aiter_takes_partials_of_the_shapes_that_its_decode_allocates(queries: int, heads: int, device: Device,
                                                                      rng: np.random.Generator) -> None:
    """Partials may have the shapes that `mla_decode_fwd` allocates: logits [p, 1, H, D] and an lse [p, 1, H, 1].
    AITER's kernel takes any dims before H."""
    indptr, final, places, count = tiles(rng, [queries] * 3, [2, 3, 2])
    count += count % 2
    states = make_states(rng, 1, count, heads, DIM, F32, faults=False)
    v, s, indptr_, final_, places_ = (device.put(x) for x in (states.v[0], states.s[0], indptr, final, places))
    want, want_lse = device.poisoned((3 * queries, heads, DIM), BF16), device.poisoned((3 * queries, heads), F32)
    aiter.mla_reduce_v1(v, s, indptr_, final_, places_, queries, 0, want, want_lse)
    for lead in ((count, 1), (count // 2, 2), (1, count, 1), (count,)):
        for last in ((), (1,)):
            out, lse = device.poisoned((3 * queries, heads, DIM), BF16), device.poisoned((3 * queries, heads), F32)
            partials = v.reshape((*lead, heads, DIM)), s.reshape((*lead, heads, *last))
            aiter.mla_reduce_v1(*partials, indptr_, final_, places_, queries, 0, out, lse)
            assert same_bits(device.get(out), device.get(want)) and same_bits(device.get(lse), device.get(want_lse))


def test_aiter_refuses_partials_that_no_view_joins(device: Device) -> None:
    ints = [device.put(np.array(x, np.int32)) for x in ([0, 2], [[0, 1]], [0, 1])]
    payload, lse = device.put(np.ones((4, 3, 2, 8), np.float32))[:, :2], device.put(np.ones((8, 2), np.float32))
    out = device.poisoned((1, 2, 8), BF16)
    with pytest.raises(mlafix.ArgumentError, match=r'argument "partial_output": expected evenly spaced rows .H, D. \(as contiguous\(\) makes them\), got shape \[.*\], strides \['):
        aiter.mla_reduce_v1(payload, lse, *ints, 1, 0, out)
    with pytest.raises(mlafix.ArgumentError, match='argument "partial_output": expected at least 3 dims .p, H, D., got 2'):
        aiter.mla_reduce_v1(lse, lse, *ints, 1, 0, out)


def test_aiter_names_its_own_arguments(device: Device) -> None:
    ones = [device.put(np.ones(shape, np.float32)) for shape in ((3, 2, 8), (3, 2))]
    ints = [device.put(np.array(x, np.int32)) for x in ([0, 2], [[0, 1]], [0, 1])]
    out = device.poisoned((1, 2, 8), BF16)
    with pytest.raises(mlafix.ArgumentError, match='argument "max_seqlen_q": expected at least 1, got 0'):
        aiter.mla_reduce_v1(*ones, *ints, 0, 0, out)
    with pytest.raises(mlafix.ArgumentError, match='argument "reduce_partial_map": expected dtype i32.*got i64'):
        aiter.mla_reduce_v1(*ones, *ints[:2], device.put(np.zeros(2, np.int64)), 1, 0, out)
    with pytest.raises(mlafix.ArgumentError, match='argument "reduce_final_map": expected size 2 in dim 1, got 1'):
        aiter.mla_reduce_v1(*ones, ints[0], device.put(np.zeros((1, 1), np.int32)), ints[2], 1, 0, out)


# -- FlashMLA -------------------------------------------------------------------------------------------------------------


def expected_sink(v: np.ndarray, s: np.ndarray, sink: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Appends a state for the sink to states in base 2. The new state's payload is zeros, and its lse is the sink,
    converted from base e to base 2."""
    lse = (sink.astype(np.float64) / np.log(2)).astype(np.float32)
    return np.concatenate([v, np.zeros((1, *v.shape[1:]), v.dtype)]), np.concatenate([s, lse[None]])


@pytest.mark.parametrize("with_sink", [False, True])
@pytest.mark.parametrize("contiguous", [False, True])
@pytest.mark.parametrize("queries", [1, 2])
def test_flash_mla_combines_the_splits_of_requests(queries: int, contiguous: bool, with_sink: bool, device: Device,
                                                   rng: np.random.Generator) -> None:
    splits = [1, 3, 2, 1, 12]
    bounds = np.concatenate([[0], np.cumsum(splits)]).astype(np.int32)
    total, batch = int(bounds[-1]) + 2, len(splits)
    states = make_states(rng, 1, total * queries, HEADS, DIM, F32)
    v, s = states.v[0].reshape(total, queries, HEADS, DIM), states.s[0].reshape(total, queries, HEADS)
    s[1:4, :, 0] = [[-np.inf], [np.inf], [-np.inf]]  # head 0 of the second request is empty in every split
    sink = rng.normal(0, 3, HEADS).astype(np.float32) if with_sink else None
    if sink is not None:
        sink[1] = -np.inf
    wide = HEADS if contiguous else HEADS + 1
    out, lse = garbage(rng, (batch, queries, wide, DIM), BF16), garbage(rng, (batch, queries, wide), F32)
    on_device, lse_on_device = device.put(out.copy()), device.put(lse.copy())
    flash_mla.flash_mla_combine(device.put(v), device.put(s), device.put(bounds), on_device[:, :, :HEADS],
                                lse_on_device[:, :, :HEADS], None if sink is None else device.put(sink))
    got, got_lse = device.get(on_device), device.get(lse_on_device)
    assert same_bits(got[:, :, HEADS:], out[:, :, HEADS:]) and same_bits(got_lse[:, :, HEADS:], lse[:, :, HEADS:])
    for i, count in enumerate(splits):
        for q in range(queries):
            row, row_lse = got[i, q, :HEADS], got_lse[i, q, :HEADS]
            if count == 1:
                assert same_bits(row, out[i, q, :HEADS]) and same_bits(row_lse, lse[i, q, :HEADS])
                continue
            mine, lses = v[bounds[i] : bounds[i + 1], q], s[bounds[i] : bounds[i + 1], q]
            if sink is None:
                check_row(device, row, row_lse, mine, lses, BF16, base=2.0)
                continue
            contract.merge(*expected_sink(mine, lses, sink), base=2.0, out_dtype=BF16)[0].check(row, "out")
            plain = contract.merge(mine, lses, base=2.0)[1].value * np.log(2)
            assert np.allclose(row_lse, np.where(np.isneginf(plain), np.inf, plain), rtol=1e-5, atol=1e-5, equal_nan=True)


def test_flash_mla_names_its_own_arguments(device: Device) -> None:
    v, s = (device.put(np.ones(shape, np.float32)) for shape in ((3, 1, 2, 8), (3, 1, 2)))
    out, lse = device.poisoned((1, 1, 2, 8), BF16), device.poisoned((1, 1, 2), F32)
    bounds = device.put(np.array([0, 3], np.int32))
    for changed, message in (({"num_splits": device.put(np.array([0, 2, 3], np.int32))}, '"num_splits": expected 2 entries .* got 3'),
                             ({"lse": device.poisoned((1, 2, 2), F32)}, '"lse": expected size 1 in dim 1, .* got 2'),
                             ({"o_accum": device.put(np.ones((3, 1, 2, 9), np.float32))}, '"(out|o_accum)": expected size'),
                             ({"attn_sink": device.put(np.ones(3, np.float32))}, '"attn_sink": expected size 2 .*got 3')):
        arguments = {"o_accum": v, "lse_accum": s, "num_splits": bounds, "out": out, "lse": lse, **changed}
        with pytest.raises(mlafix.ArgumentError, match="argument " + message):
            flash_mla.flash_mla_combine(**arguments)


# -- tokenspeed -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [tokenspeed.merge_state, tokenspeed.attn_merge_state], ids=lambda f: f.__name__)
@pytest.mark.parametrize("scale, base", [(tokenspeed.LSE_LN, np.e), (float(np.float32(tokenspeed.LSE_LN)), np.e), (tokenspeed.LSE_LOG2, 2.0)])
@pytest.mark.parametrize("inplace", [False, True])
def test_tokenspeed_merges_in_either_base_and_in_place(inplace: bool, scale: float, base: float, function: Any, device: Device,
                                                       rng: np.random.Generator) -> None:
    states = make_states(rng, 2, 7, HEADS, DIM, BF16)
    v_a, s_a, v_b, s_b = (device.put(x.copy()) for x in (states.v[0], states.s[0], states.v[1], states.s[1]))
    out, lse = function(v_a, s_a, v_b, s_b, inplace=inplace, lse_scale_log2=scale, enable_pdl=True)
    assert (out is v_a and lse is s_a) if inplace else (out is not v_a and lse is not s_a)
    want, want_lse = contract.merge(states.v, states.s, base=base, out_dtype=BF16)
    want.check(device.get(out), "out")
    want_lse.check(device.get(lse), "lse")
    with pytest.raises(mlafix.ArgumentError, match=r'argument "lse_scale_log2": expected 1.0 \(base 2\) or .* got 2.0'):
        function(v_a, s_a, v_b, s_b, lse_scale_log2=2.0)
    name = "v_a" if function is tokenspeed.merge_state else "out_a"
    with pytest.raises(mlafix.ArgumentError, match=f'argument "({name}|{name[:-1]}b)": expected size'):
        function(v_a[:, :, :-1], s_a, v_b, s_b, inplace=inplace)
