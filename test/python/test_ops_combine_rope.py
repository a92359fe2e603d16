"""Split KV combined, turned by the angles of positions and quantised, in one launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import contract
import mlafix
from devices import Device
from mlafix import ops
from numerics import BF16, E4M3, F16, F32, poison, same_bits, widen
from states import EMPTY, EMPTY_FA2, ORDINARY, ZERO, lay_out, make_states

N, H = 6, 3
BASE = {"e": np.e, "2": 2.0}


def tables(rng: np.random.Generator, turned: int, dtype: np.dtype = F32) -> np.ndarray:
    """Cosines before sines, of 8 positions."""
    angles = rng.uniform(-4, 4, (8, turned // 2))
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32).astype(dtype)


def want(v: np.ndarray, s: np.ndarray, positions: np.ndarray, table: np.ndarray, interleaved: bool, inverse: bool, base: str,
         sinks: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """out [n, H, D], what f32 sums up of it, and lse [n, H], in f64."""
    lse = contract.merge(v, s, base=BASE[base])[1].value
    if sinks is not None:
        v = np.concatenate([v, np.zeros((1, *v.shape[1:]), v.dtype)])
        s = np.concatenate([s, np.broadcast_to(sinks / np.log(BASE[base]), (1, *s.shape[1:]))])
    merged = contract.merge(v, s, base=BASE[base], out_dtype=None)[0]
    out, bound = merged.value.copy(), merged.magnitude.copy()
    turned = table.shape[1]
    known = (positions >= 0) & (positions < len(table))
    rows = np.where(known[:, None], widen(table)[np.where(known, positions, 0)], 0.0)[:, None]
    c, t = rows[..., : turned // 2], rows[..., turned // 2 :] * (-1 if inverse else 1)
    first = out.shape[-1] - turned
    a, b = (slice(first, None, 2), slice(first + 1, None, 2)) if interleaved else (slice(first, first + turned // 2), slice(first + turned // 2, None))
    x, y = out[..., a].copy(), out[..., b].copy()
    out[..., a], out[..., b] = x * c - y * t, y * c + x * t
    bound[..., a] = bound[..., b] = bound[..., a] + bound[..., b]
    return out, bound, lse


def check(out: np.ndarray, value: np.ndarray, bound: np.ndarray) -> None:
    slack = 8e-6 * bound + np.abs(value) * {F32: 0.0, BF16: 2.0**-8, F16: 2.0**-11}[out.dtype] + {F32: 0.0, BF16: 0.0, F16: 2.0**-24}[out.dtype]
    wrong = ~(np.abs(widen(out) - value) <= slack) & ~(np.isnan(value) & np.isnan(widen(out)))
    assert not wrong.any(), np.argwhere(wrong)[:3]


@pytest.mark.parametrize(("splits", "dim", "turned", "dtype", "out_dtype", "base", "interleaved", "inverse", "with_sink"), [
    (1, 512, 64, BF16, BF16, "e", True, True, True), (3, 40, 16, F32, F32, "2", False, True, False),
    (11, 96, 32, F32, F16, "e", False, False, True), (4, 64, 62, F16, F32, "2", True, False, False)])  # fmt: skip
def test_rows_are_merged_and_their_last_elements_turned(splits: int, dim: int, turned: int, dtype: np.dtype, out_dtype: np.dtype, base: str,
                                                        interleaved: bool, inverse: bool, with_sink: bool, device: Device, rng: np.random.Generator) -> None:
    """Empty splits hold garbage, a row is empty in all of them, and two positions are none."""
    kinds = rng.choice([ORDINARY, EMPTY, EMPTY_FA2, ZERO], (splits, N, H), p=[0.6, 0.15, 0.15, 0.1])
    kinds[:, 2, 1] = EMPTY
    states = make_states(rng, splits, N, H, dim, dtype, kinds=kinds)
    positions, table = np.array([0, 7, 3, -1, 8, 2], np.int64), tables(rng, turned)
    sinks = rng.normal(0, 2, H).astype(np.float32) if with_sink else None
    if sinks is not None:
        sinks[0] = -np.inf
    out, lse = device.put(poison((N, H, dim), out_dtype)), device.put(poison((N, H), F32))
    layout = "contiguous" if device.name == "ptx" else "padded"
    got = ops.combine_rope(
        device.put(lay_out(states.v, layout)), device.put(states.s), device.put(positions), device.put(table), interleaved=interleaved, inverse=inverse,
        sinks=None if sinks is None else device.put(sinks), out=out, out_lse=lse, base=base)  # type: ignore[arg-type]
    assert got[0] is out and got[1] is lse
    device.synchronize()
    value, bound, total = want(states.v, states.s, positions, table, interleaved, inverse, base, sinks)
    check(device.get(out), value, bound)
    np.testing.assert_allclose(device.get(lse), total, rtol=4e-7, atol=4e-6)
    assert (widen(device.get(out))[2, 1] == 0).all() and (widen(device.get(out))[3:5, :, dim - turned :] == 0).all()


@pytest.mark.parametrize("interleaved", [False, True])
def test_positions_that_are_none_give_zeros_whatever_rows_hold(interleaved: bool, device: Device, rng: np.random.Generator) -> None:
    v, s = rng.normal(0, 1, (2, N, H, 32)).astype(np.float32), rng.normal(0, 1, (2, N, H)).astype(np.float32)
    v[0, 2:4], v[:, 4, 1], s[0, 5, 0] = np.nan, np.inf, np.nan
    positions = np.array([0, 7, -1, 8, 2**62, -(2**63)])
    out, _ = ops.combine_rope(*(device.put(x) for x in (v, s, positions, tables(rng, 8))), interleaved=interleaved)
    got = device.get(out)
    assert (got[2:, :, 24:] == 0).all() and np.isnan(got[2:4, :, :24]).all() and np.isfinite(got[:2]).all()


@pytest.mark.parametrize("base", ["e", "2"])
def test_a_sink_beside_lses_of_any_size(base: Any, device: Device, rng: np.random.Generator) -> None:
    """The sink far above the lses, both far below 0, and one or the other near the ends of f32; the lse is without it."""
    sinks = np.array([90, -3e38, 3e38, 3e38, -2e38, 0], np.float32)
    lses = np.array([0, -3e38, 0, 2e38, 2e38, -np.inf], np.float32)
    rows = np.full((1, 1, len(sinks), 8), 1e36, np.float32) * np.float32([1, 1e-36, 1, 1, 1, 1])[:, None]
    quarter = np.array([[1.0, 0.0]], np.float32)
    out, lse = ops.combine_rope(*(device.put(x) for x in (rows, lses[None, None], np.zeros(1, np.int64), quarter)), sinks=device.put(sinks), base=base)
    with np.errstate(over="ignore"):
        weights = 1 / (1 + np.exp(sinks.astype(np.float64) - lses * np.log(BASE[base])))
    np.testing.assert_allclose(device.get(out)[0], rows[0, 0] * weights[:, None], rtol=2e-5)
    assert same_bits(device.get(lse), lses[None])


@pytest.mark.parametrize("source", ["f32", "output"])
@pytest.mark.parametrize(("dim", "turned", "scales"), [
    (512, 64, "words"), (192, 64, "column-major"), (256, 64, "e8m0"), (96, 32, "static")])  # fmt: skip
def test_results_in_a_format_have_the_bits_of_a_quantised_result(dim: int, turned: int, scales: str, source: Any, device: Device,
                                                                 rng: np.random.Generator) -> None:
    """The last group holds what is turned and, in three of them, what is before it."""
    if device.name == "ptx" and scales != "static":
        pytest.skip("formats with scales take arrays of numpy's or torch's")
    states = make_states(rng, 3, N, 4, dim, BF16, faults=False)
    inputs = [device.put(x) for x in (states.v, states.s, rng.integers(0, 8, N), tables(rng, turned))]
    dtype, base = "bf16" if source == "output" else "f32", "2" if scales in ("words", "static") else "e"
    how: Any = dict(inverse=True, base=base)
    plain, lse = ops.combine_rope(*inputs, **how, out_dtype=dtype)

    def made() -> Any:
        if scales == "words":
            return device.put(np.zeros((4, N), np.int32)).T  # DeepGEMM's, a word for each head
        if scales == "e8m0":
            return device.put(np.zeros((N, 4, 2), np.uint8).view(np.dtype("float8_e8m0fnu"))) if not device.is_torch else device.put(
                np.zeros((N, 4, 2), np.uint8)).view(__import__("torch").float8_e8m0fnu)  # fmt: skip
        return device.put(np.asfortranarray(np.zeros((N, 4, dim // 64), np.float32)))

    if scales == "static":
        scale = device.put(np.full(1, 0.02, np.float32))
        if source == "output":
            pytest.skip("one static scale has no such choice")
        out, total = ops.combine_rope(*inputs, **how, out_format=ops.Fp8(scale))
        expected = ops.quantize_fp8_static(plain.reshape((N, 4 * dim)), scale)
        assert same_bits(device.get(out).reshape(N, 4 * dim), device.get(expected))
    else:
        mine, theirs = made(), made()
        out, total = ops.combine_rope(*inputs, **how, out_dtype="bf16", out_format=ops.Fp8Groups(mine, quantize_from=source))
        expected = ops.quantize_groups(plain, ops.Fp8Groups(theirs))
        assert same_bits(device.get(out), device.get(expected))
        ours, other = (np.ascontiguousarray(device.get(x)) for x in (mine, theirs))
        assert same_bits(ours, other) and ours.view(np.uint8).any()
    assert same_bits(device.get(total), device.get(lse))


def test_nan_of_a_live_split_or_a_sink_propagates_and_no_other(device: Device, rng: np.random.Generator) -> None:
    v, s = rng.normal(0, 1, (3, N, H, 32)).astype(np.float32), rng.normal(0, 1, (3, N, H)).astype(np.float32)
    s[1, 2, 0], s[0, 4, 2], v[0, 4, 2] = np.nan, -np.inf, np.nan
    sinks = np.array([0.5, np.nan, 90000.0], np.float32)
    out, lse = ops.combine_rope(*(device.put(x) for x in (v, s, np.arange(N), tables(rng, 8))), sinks=device.put(sinks))
    faulty = np.zeros((N, H), bool)
    faulty[2, 0] = True
    assert (np.isnan(device.get(lse)) == faulty).all()
    faulty[:, 1] = True
    assert (np.isnan(device.get(out)).all(axis=-1) == faulty).all() and (np.isnan(device.get(out)).any(axis=-1) == faulty).all()
    assert (np.abs(device.get(out)[:, 2]) < 1e-30).all()  # a sink that outweighs every split


def test_vllm_45103_what_deepseek_v4_does_behind_its_attention(device: Device, rng: np.random.Generator) -> None:
    """448 elements and 64 that are turned back, neighbours, in groups of 128: in f64, and within a step of fp8."""
    if device.name == "ptx":
        pytest.skip("formats with scales take arrays of numpy's or torch's")
    v, s = rng.normal(0, 2, (2, N, H, 512)).astype(np.float32).astype(BF16), rng.normal(0, 1, (2, N, H)).astype(np.float32)
    positions, table, sinks = rng.integers(0, 8, N), tables(rng, 64), rng.normal(0, 1, H).astype(np.float32)
    scales = device.put(poison((N, H, 4), F32))
    out, _ = ops.combine_rope(
        *(device.put(x) for x in (v, s, positions, table)), interleaved=True, inverse=True, sinks=device.put(sinks),
        out_format=ops.Fp8Groups(scales, power_of_two=True))  # fmt: skip
    value, _, _ = want(v, s, positions, table, True, True, "e", sinks)
    groups = value.reshape(N, H, 4, 128)
    exact = 2.0 ** np.ceil(np.log2(np.abs(groups).max(axis=-1) / 448))
    assert (device.get(scales) == exact).all()
    quotients = groups / exact[..., None]
    step = 2.0 ** (np.maximum(np.floor(np.log2(np.maximum(np.abs(quotients), 2.0**-30))), -6) - 3)
    assert (np.abs(widen(device.get(out)).reshape(groups.shape) - quotients) <= 0.51 * step).all()


@pytest.mark.parametrize(("how", "message"), [
    (dict(table=np.zeros((8, 32), np.float32)), 'argument "table": expected rows of fewer than 32 .*, got 32'),
    (dict(table=np.zeros((8, 7), np.float32)), r'argument "table": expected shape \[m, 2, R / 2\] or \[m, R\], got \[8, 7\]'),
    (dict(positions=np.zeros(N, np.float32)), 'argument "positions": expected dtype i64 or i32, got float32'),
    (dict(partial_lse=np.zeros((3, N, H + 1), np.float32)), 'argument "partial_lse": expected size 3 .*got 4'),
    (dict(out_format=ops.MxFp8(np.zeros((N, H, 1), np.uint8))), 'argument "out_format": expected Fp8, Fp8Groups or None, got MxFp8'),
    (dict(out_format=ops.Fp8Groups(np.zeros((N, H, 8), np.float32))), 'argument "out_format": expected scales for at least 2 groups .*, got 8 groups of 32'),
    (dict(out=poison((N, H, 32), E4M3)), 'argument "out": expected dtype bf16 or f16 or f32, got float8_e4m3fn'),
    (dict(out=np.zeros((N, H, 32), np.int32)), 'argument "out": expected dtype bf16 or f16 or f32, got int32'),
    (dict(out=[1]), 'argument "out": expected an array, got list'),
    (dict(out=poison((N, H, 32), F32), out_dtype="bf16"), 'argument "out_dtype": expected f32, the dtype of out, or None, got bf16'),
    (dict(out_dtype="f8e4m3fn"), 'argument "out_dtype": expected dtype bf16 or f16 or f32, got float8_e4m3fn'),
    (dict(out_dtype="bf16", out_format=ops.Fp8(np.ones(1, np.float32))), 'argument "out_dtype": expected f8e4m3fn or None with Fp8, got bf16'),
    (dict(base="10"), "argument \"base\": expected 'e', 'ln', '2' or 'log2', got '10'"),
], ids=lambda x: x if isinstance(x, str) else "")  # fmt: skip
def test_wrong_arguments(how: dict[str, Any], message: str, device: Device) -> None:
    right = dict(partial=np.zeros((3, N, H, 32), np.float32), partial_lse=np.zeros((3, N, H), np.float32), positions=np.zeros(N, np.int32),
                 table=np.zeros((8, 8), np.float32))  # fmt: skip
    with pytest.raises(mlafix.ArgumentError, match=message):
        ops.combine_rope(**{name: device.put(value) if isinstance(value, np.ndarray) else value for name, value in {**right, **how}.items()})
