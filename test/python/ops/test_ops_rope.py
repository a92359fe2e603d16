"""Tests merges that also rotate the result by the angles of positions, and quantise it, in one launch."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import contract
import mlafix
from devices import Device
from mlafix import ops
from numerics import BF16, F16, F32, poison, same_bits, widen
from states import EMPTY, EMPTY_FA2, ORDINARY, ZERO, lay_out, make_states

N, H = 6, 3
BASE = {"e": np.e, "2": 2.0}


def combine(device: Device, v: np.ndarray, s: np.ndarray, positions: np.ndarray, table: np.ndarray, *, interleaved: bool = False, inverse: bool = False,
            start: int | None = None, sinks: np.ndarray | None = None, out: Any = None, out_lse: Any = None, **how: Any) -> tuple[Any, Any]:
    """Calls `combine_split_kv` with v `[S, n, H, D]` and s `[S, n, H]`, one token per row. Returns rows `[n, 1, H, D]`
    and lses `[n, 1, H]`."""
    rope = ops.Rope(device.put(positions[:, None]), device.put(table), interleaved=interleaved, inverse=inverse, start=start)
    return ops.combine_split_kv(device.put(v[:, :, None]), device.put(s[:, :, None]), sinks=None if sinks is None else device.put(sinks),
                                rope=rope, out=out, out_lse=out_lse, **how)


def tables(rng: np.random.Generator, turned: int, dtype: np.dtype = F32) -> np.ndarray:
    """Returns a table for 8 positions. Each row has the cosines, then the sines."""
    angles = rng.uniform(-4, 4, (8, turned // 2))
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32).astype(dtype)


def want(v: np.ndarray, s: np.ndarray, positions: np.ndarray, table: np.ndarray, interleaved: bool, inverse: bool, base: str,
         sinks: np.ndarray | None, start: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns, in f64, out [n, H, D], the sum of the magnitudes of the terms, and lse [n, H]."""
    lse = contract.merge(v, s, base=BASE[base])[1].value
    if sinks is not None:
        v = np.concatenate([v, np.zeros((1, *v.shape[1:]), v.dtype)])
        s = np.concatenate([s, np.broadcast_to(sinks / np.log(BASE[base]), (1, *s.shape[1:]))])
    merged = contract.merge(v, s, base=BASE[base], out_dtype=None)[0]
    return *turn(merged.value.copy(), merged.magnitude.copy(), positions, table, interleaved, inverse, start), lse


def turn(out: np.ndarray, bound: np.ndarray, positions: np.ndarray, table: np.ndarray, interleaved: bool, inverse: bool,
         start: int | None) -> tuple[np.ndarray, np.ndarray]:
    turned = table.shape[1]
    known = (positions >= 0) & (positions < len(table))
    rows = np.where(known[:, None], widen(table)[np.where(known, positions, 0)], 0.0)[:, None]
    c, t = rows[..., : turned // 2], rows[..., turned // 2 :] * (-1 if inverse else 1)
    first = out.shape[-1] - turned if start is None else start
    half, end = first + turned // 2, first + turned
    a, b = (slice(first, end, 2), slice(first + 1, end, 2)) if interleaved else (slice(first, half), slice(half, end))
    x, y = out[..., a].copy(), out[..., b].copy()
    out[..., a], out[..., b] = x * c - y * t, y * c + x * t
    bound[..., a] = bound[..., b] = bound[..., a] + bound[..., b]
    return out, bound


def check(out: np.ndarray, value: np.ndarray, bound: np.ndarray) -> None:
    slack = 8e-6 * bound + np.abs(value) * {F32: 0.0, BF16: 2.0**-8, F16: 2.0**-11}[out.dtype] + {F32: 0.0, BF16: 0.0, F16: 2.0**-24}[out.dtype]
    wrong = ~(np.abs(widen(out) - value) <= slack) & ~(np.isnan(value) & np.isnan(widen(out)))
    assert not wrong.any(), np.argwhere(wrong)[:3]


@pytest.mark.parametrize(("splits", "dim", "turned", "dtype", "out_dtype", "base", "interleaved", "inverse", "with_sink", "start"), [
    (1, 512, 64, BF16, BF16, "e", True, True, True, None), (3, 48, 16, F32, F32, "2", False, True, False, None),
    (11, 96, 32, F32, F16, "e", False, False, True, None), (4, 64, 62, F16, F32, "2", True, False, False, None),
    (2, 576, 64, BF16, BF16, "e", False, True, False, None), (2, 192, 64, F16, F16, "2", False, False, True, 64),
    (3, 64, 64, BF16, F32, "e", False, True, False, None), (2, 38, 6, F32, F32, "e", True, False, True, 10), (2, 4096, 1024, F32, F32, "2", False, True, False, None)])  # fmt: skip
def test_rows_are_merged_and_their_last_elements_turned(splits: int, dim: int, turned: int, dtype: np.dtype, out_dtype: np.dtype, base: str,
                                                        interleaved: bool, inverse: bool, with_sink: bool, start: int | None, device: Device, rng: np.random.Generator) -> None:
    """Merged rows are rotated in their last elements, or from `start` on. Empty splits contain garbage, one row is
    empty in all splits, and two positions are invalid."""
    kinds = rng.choice([ORDINARY, EMPTY, EMPTY_FA2, ZERO], (splits, N, H), p=[0.6, 0.15, 0.15, 0.1])
    kinds[:, 2, 1] = EMPTY
    states = make_states(rng, splits, N, H, dim, dtype, kinds=kinds)
    positions, table = np.array([0, 7, 3, -1, 8, 2], np.int64), tables(rng, turned)
    sinks = rng.normal(0, 2, H).astype(np.float32) if with_sink else None
    if sinks is not None:
        sinks[0] = -np.inf
    out, lse = device.put(poison((N, 1, H, dim), out_dtype)), device.put(poison((N, 1, H), F32))
    layout = "contiguous" if device.name == "ptx" else "padded"
    got = combine(device, lay_out(states.v, layout), states.s, positions, table, interleaved=interleaved, inverse=inverse, start=start, sinks=sinks,
                  out=out, out_lse=lse, base=base)
    assert got[0] is out and got[1] is lse
    value, bound, total = want(states.v, states.s, positions, table, interleaved, inverse, base, sinks, start)
    rows, first = device.get(out)[:, 0], dim - turned if start is None else start
    check(rows, value, bound)
    np.testing.assert_allclose(device.get(lse)[:, 0], total, rtol=4e-7, atol=4e-6)
    assert (widen(rows)[2, 1] == 0).all() and (widen(rows)[3:5, :, first : first + turned] == 0).all()


@pytest.mark.parametrize("interleaved", [False, True])
def test_positions_that_are_none_give_zeros_whatever_rows_hold(interleaved: bool, device: Device, rng: np.random.Generator) -> None:
    v, s = rng.normal(0, 1, (2, N, H, 32)).astype(np.float32), rng.normal(0, 1, (2, N, H)).astype(np.float32)
    v[0, 2:4], v[:, 4, 1], s[0, 5, 0] = np.nan, np.inf, np.nan
    positions = np.array([0, 7, -1, 8, 2**62, -(2**63)])
    out, _ = combine(device, v, s, positions, tables(rng, 8), interleaved=interleaved)
    got = device.get(out)[:, 0]
    assert (got[2:, :, 24:] == 0).all() and np.isnan(got[2:4, :, :24]).all() and np.isfinite(got[:2]).all()


@pytest.mark.parametrize("base", ["e", "2"])
def test_a_sink_beside_lses_of_any_size(base: Any, device: Device, rng: np.random.Generator) -> None:
    """A sink may be far above the lse, both may be far below 0, and either may be near a limit of f32. The returned lse
    excludes the sink."""
    sinks = np.array([90, -3e38, 3e38, 3e38, -2e38, 0], np.float32)
    lses = np.array([0, -3e38, 0, 2e38, 2e38, -np.inf], np.float32)
    rows = np.full((1, 1, len(sinks), 8), 1e36, np.float32) * np.float32([1, 1e-36, 1, 1, 1, 1])[:, None]
    quarter = np.array([[1.0, 0.0]], np.float32)
    out, lse = combine(device, rows, lses[None, None], np.zeros(1, np.int64), quarter, sinks=sinks, base=base)
    with np.errstate(over="ignore"):
        weights = 1 / (1 + np.exp(sinks.astype(np.float64) - lses * np.log(BASE[base])))
    np.testing.assert_allclose(device.get(out)[0, 0], rows[0, 0] * weights[:, None], rtol=2e-5)
    assert same_bits(device.get(lse), lses[None, None])


def _formats(device: Device, dim: int, source: Any) -> dict[str, Any]:
    """Returns functions that make a format of each kind for rows `[N, 1, 4, dim]`. Each format has scales of its
    own."""
    def zeros(shape: tuple[int, ...], dtype: Any = np.uint8) -> Any:
        return device.put(np.zeros(shape, dtype))

    def bytes_of(shape: tuple[int, ...]) -> Any:
        if device.is_torch:
            return zeros(shape).view(__import__("torch").float8_e8m0fnu)
        return zeros(shape).view(np.dtype("float8_e8m0fnu"))

    number: Any = device.put(np.full(1, 30, np.float32))
    made: dict[str, Any] = {
        "static": lambda: ops.Fp8(device.put(np.full(1, 0.02, np.float32))),
        "groups": lambda: ops.Fp8Groups(device.put(np.asfortranarray(np.zeros((N, 1, 4, dim // 32), np.float32))), quantize_from=source),
        "e8m0": lambda: ops.Fp8Groups(bytes_of((N, 1, 4, dim // 64)), quantize_from=source),
        "joined": lambda: ops.Fp8Groups(zeros((N, 1, 2), np.float32), quantize_from=source),
        "words": lambda: ops.Fp8Groups(zeros((N, 1, dim // 128 * 4 // 4), np.int32), quantize_from=source),
        "mxfp8": lambda: ops.MxFp8(zeros((N, 1, 4, dim // 32)), quantize_from=source),
        "mxfp8 tiles": lambda: ops.MxFp8(zeros((8, dim // 8)), tiles="8x4", quantize_from=source),
        "mxfp4": lambda: ops.MxFp4(zeros((N, 1, 4, dim // 32)), quantize_from=source),
        "nvfp4": lambda: ops.NvFp4(zeros((N, 1, 4, dim // 16)), number, quantize_from=source),
        "nvfp4 tiles": lambda: ops.NvFp4(zeros((128, dim // 4)), number, tiles="128x4", quantize_from=source)}
    return made


@pytest.mark.parametrize(("name", "dim", "turned", "interleaved", "source"), [
    ("static", 96, 32, False, "f32"), ("groups", 512, 64, True, "f32"), ("groups", 256, 64, False, "output"), ("e8m0", 256, 64, False, "output"),
    ("joined", 64, 32, False, "f32"), ("words", 512, 64, True, "output"), ("words", 128, 32, False, "f32"), ("mxfp8", 512, 64, False, "output"),
    ("mxfp8", 256, 64, True, "f32"), ("mxfp8 tiles", 128, 64, True, "f32"), ("mxfp4", 256, 64, False, "output"), ("nvfp4", 512, 64, True, "f32"),
    ("nvfp4", 128, 64, False, "output"), ("nvfp4 tiles", 192, 64, False, "output")])  # fmt: skip
def test_results_in_a_format_have_the_bits_of_a_quantised_result(name: str, dim: int, turned: int, interleaved: bool, source: Any, device: Device,
                                                                 rng: np.random.Generator) -> None:
    states = make_states(rng, 3, N, 4, dim, BF16, faults=False)
    inputs = device, states.v, states.s, rng.integers(0, 8, N), tables(rng, turned)
    how: Any = dict(inverse=True, base="2" if name in ("words", "static") else "e", interleaved=interleaved)
    plain, lse = combine(*inputs, **how, out_dtype="bf16" if source == "output" else "f32")
    mine, theirs = (_formats(device, dim, source)[name]() for _ in range(2))
    out, total = combine(*inputs, **how, out_format=mine, **({} if name == "static" else {"out_dtype": "bf16"}))
    if name == "static":
        expected = ops.quantize_fp8_static(plain.reshape((N, 4 * dim)), theirs.scale)
        assert same_bits(device.get(out).reshape(N, 4 * dim), device.get(expected))
    else:
        fields = {"scales": theirs.scales if "tiles" in name else theirs.scales[:, 0], "quantize_from": "f32"}
        expected = ops.quantize_groups(plain[:, 0], dataclasses.replace(theirs, **fields))
        assert same_bits(device.get(out)[:, 0], device.get(expected))
        ours, other = (np.ascontiguousarray(device.get(x.scales)) for x in (mine, theirs))
        assert same_bits(ours, other) and ours.view(np.uint8).any()
    assert same_bits(device.get(total), device.get(lse))


def _calls(device: Device, v: np.ndarray, s: np.ndarray) -> dict[str, Any]:
    """Returns a call of every merging function for two states `v` `[2, n, H, D]` and `s` `[2, n, H]`. Each returns rows
    `[n, H, D]` and lses `[n, H]`."""
    n, heads, dim = v.shape[1:]
    a, b, x, y = (device.put(one) for one in (*v, *s))
    dense, lses = device.put(v.swapaxes(0, 1)), device.put(s.swapaxes(0, 1))
    flat, flat_lse = device.put(v.swapaxes(0, 1).reshape(2 * n, heads, dim)), device.put(s.swapaxes(0, 1).reshape(2 * n, heads))
    indptr = device.put(np.arange(0, 2 * n + 1, 2, dtype=np.int32))

    def mapped(**how: Any) -> tuple[Any, Any]:
        out, lse = device.put(poison((n, heads, dim), v.dtype)), device.put(poison((n, heads), F32))
        ops.merge_states_mapped(out, flat, flat_lse, indptr, out_lse=lse, **how)
        return out, lse

    return {"merge_attn_states": lambda **how: ops.merge_attn_states(a, x, b, y, lse_layout="nh", **how),
            "merge_states": lambda **how: ops.merge_states(dense, lses, **how),
            "merge_states_ragged": lambda **how: ops.merge_states_ragged(flat, flat_lse, indptr, **how),
            "merge_states_list": lambda **how: ops.merge_states_list([a, b], [x, y], **how), "merge_states_mapped": mapped}


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("name", ["merge_attn_states", "merge_states", "merge_states_ragged", "merge_states_list", "merge_states_mapped"])
def test_every_merge_turns_its_rows(name: str, interleaved: bool, device: Device, rng: np.random.Generator) -> None:
    dim, turned = 128, 32
    states = make_states(rng, 2, N, H, dim, BF16, faults=False)
    positions, table = np.array([0, 7, 3, -1, 8, 2], np.int32), tables(rng, turned, BF16 if interleaved else F32)
    call = _calls(device, states.v, states.s)[name]
    rope = ops.Rope(device.put(positions), device.put(table.reshape(8, 2, turned // 2)), interleaved=interleaved)
    out, lse = call(rope=rope)
    value, bound, total = want(states.v, states.s, positions, table, interleaved, False, "e", None)
    check(device.get(out), value, bound)
    np.testing.assert_allclose(device.get(lse), total, rtol=4e-7, atol=4e-6)


def test_a_fixup_merge_turns_what_it_quantises(device: Device, rng: np.random.Generator) -> None:
    states = make_states(rng, 2, N, H, 64, F32, kinds=np.full((2, N, H), ORDINARY))
    positions, table = np.arange(N), tables(rng, 32)
    lens, starts = device.put(np.array([3, 0], np.int32)), device.put(np.array([0, 4, N], np.int32))
    a, b, x, y = (device.put(one) for one in (*states.v, *states.s))
    scale = device.put(np.full(1, 0.25, np.float32))
    out, _ = ops.fixup_merge(a, x, b, y, lens, starts, out_format=ops.Fp8(scale), rope=ops.Rope(device.put(positions), device.put(table), inverse=True))
    s = states.s.copy()
    s[0, 4:] = -np.inf
    value, _, _ = want(states.v, s, positions, table, False, True, "e", None)
    got = widen(device.get(out)) * 0.25
    assert (np.abs(got - np.clip(value, -112, 112)) <= 2.0**-4 * np.abs(value) + 2.0**-11).all()


def test_nan_of_a_live_split_or_a_sink_propagates_and_no_other(device: Device, rng: np.random.Generator) -> None:
    v, s = rng.normal(0, 1, (3, N, H, 32)).astype(np.float32), rng.normal(0, 1, (3, N, H)).astype(np.float32)
    s[1, 2, 0], s[0, 4, 2], v[0, 4, 2] = np.nan, -np.inf, np.nan
    sinks = np.array([0.5, np.nan, 90000.0], np.float32)
    out, lse = (device.get(x)[:, 0] for x in combine(device, v, s, np.arange(N), tables(rng, 8), sinks=sinks))
    faulty = np.zeros((N, H), bool)
    faulty[2, 0] = True
    assert (np.isnan(lse) == faulty).all()
    faulty[:, 1] = True
    assert (np.isnan(out).all(axis=-1) == faulty).all() and (np.isnan(out).any(axis=-1) == faulty).all()
    assert (np.abs(out[:, 2]) < 1e-30).all()  # head 2 has a sink that outweighs every split


def test_vllm_45103_what_deepseek_v4_does_behind_its_attention(device: Device, rng: np.random.Generator) -> None:
    """Rows have 512 elements, and the last 64 are rotated back as neighbouring pairs. Rows are then quantised in groups
    of 128. The result differs from f64 by at most 0.51 steps of fp8."""
    v, s = rng.normal(0, 2, (2, N, H, 512)).astype(np.float32).astype(BF16), rng.normal(0, 1, (2, N, H)).astype(np.float32)
    positions, table, sinks = rng.integers(0, 8, N), tables(rng, 64), rng.normal(0, 1, H).astype(np.float32)
    scales = device.put(poison((N, 1, H, 4), F32))
    out, _ = combine(device, v, s, positions, table, interleaved=True, inverse=True, sinks=sinks, out_format=ops.Fp8Groups(scales, power_of_two=True))
    value, _, _ = want(v, s, positions, table, True, True, "e", sinks)
    groups = value.reshape(N, H, 4, 128)
    exact = 2.0 ** np.ceil(np.log2(np.abs(groups).max(axis=-1) / 448))
    assert (device.get(scales)[:, 0] == exact).all()
    quotients = groups / exact[..., None]
    step = 2.0 ** (np.maximum(np.floor(np.log2(np.maximum(np.abs(quotients), 2.0**-30))), -6) - 3)
    assert (np.abs(widen(device.get(out)).reshape(groups.shape) - quotients) <= 0.51 * step).all()


@pytest.mark.parametrize(("how", "message"), [
    (dict(table=np.zeros((8, 64), np.float32)), r'argument "Rope.table": expected 2 to 48 .*, got 64'),
    (dict(table=np.zeros((8, 7), np.float32)), r'argument "Rope.table": expected shape \[m, 2, R / 2\] or \[m, R\], got \[8, 7\]'),
    (dict(table=np.zeros((8, 12), np.float32)), r'argument "Rope.table": expected a number of values in a row that is a power of two, unless interleaved=True, got 12'),
    (dict(table=np.zeros((8, 8), np.int32)), r'argument "Rope.table": expected dtype .*, got int32'),
    (dict(table=np.zeros((8, 32), np.float32)), r'argument "Rope.start": expected a multiple of 32, in rows whose size is also one, got 16 in rows of 48'),
    (dict(start=41), r'argument "Rope.start": expected an element from 0 to 40, got 41'),
    (dict(start="4"), r'argument "Rope.start": expected an integer, got .*'),
    (dict(start=4), r'argument "Rope.start": expected a multiple of 8, in rows whose size is also one, got 4 in rows of 48'),
    (dict(positions=np.zeros((N, 1), np.float32)), 'argument "Rope.positions": expected dtype i64 or i32, got float32'),
    (dict(positions=np.zeros((N + 1, 1), np.int64)), 'argument "Rope.positions": expected size 6 .*got 7'),
    (dict(out_format=ops.Fp8Groups(np.zeros((N, 1, H, 4), np.float32))),
     r'argument "out_format": expected groups of a power of two or a multiple of 8 elements beside Rope, got groups of 12'),
    (dict(rope=3), 'argument "rope": expected an instance of Rope, or None, got int'),
], ids=lambda x: x if isinstance(x, str) else "")  # fmt: skip
def test_wrong_arguments(how: dict[str, Any], message: str, device: Device) -> None:
    given = dict(positions=np.zeros((N, 1), np.int32), table=np.zeros((8, 8), np.float32), start=None) | how
    rope: Any = ops.Rope(device.put(given["positions"]), device.put(given["table"]), start=given["start"])
    partial, lse = device.put(np.zeros((3, N, 1, H, 48), np.float32)), device.put(np.zeros((3, N, 1, H), np.float32))
    with pytest.raises(mlafix.ArgumentError, match=message):
        ops.combine_split_kv(partial, lse, rope=given.get("rope", rope), out_format=given.get("out_format"))


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("interleaved", [False, True])
def test_no_zero_of_an_empty_row_is_negative(interleaved: bool, inverse: bool, device: Device) -> None:
    """N1: rows without keys become +0.0, whatever the signs of cosines and sines. Their codes of fp8 and fp4 are 0."""
    rows, lse = device.put(np.ones((4, 1, 32), F32)), device.put(np.full((4, 1), -np.inf, F32))
    signs = np.array([[c] * 8 + [s] * 8 for c in (-1, 1) for s in (-1, 1)], F32)
    rope = ops.Rope(device.put(np.arange(4)), device.put(signs), interleaved=interleaved, inverse=inverse)
    out, _ = ops.merge_attn_states(rows, lse, rows, lse, lse_layout="nh", rope=rope)
    codes, _ = ops.merge_attn_states(rows, lse, rows, lse, lse_layout="nh", rope=rope, out_format=ops.Fp8(1.0))
    scales = device.put(np.full((4, 1, 2), 255, np.uint8))
    halves, _ = ops.merge_attn_states(rows, lse, rows, lse, lse_layout="nh", rope=rope, out_format=ops.NvFp4(scales, 1.0))
    for array in (out, codes, halves):
        assert not np.ascontiguousarray(device.get(array)).view(np.uint8).any()
