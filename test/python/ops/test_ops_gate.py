"""Tests merges with an output gate, which multiplies merged rows by the sigmoid of a gate, against f64."""

from __future__ import annotations

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


def want(v: np.ndarray, s: np.ndarray, gate: np.ndarray, base: str, out_dtype: np.dtype) -> contract.Expected:
    """Returns the expected rows `[n, H, D]` for states v `[K, n, H, D]` and s `[K, n, H]`. NaN and infinities in a gate
    do not affect rows without keys."""
    merged, lse = contract.merge(v, s, base=BASE[base], out_dtype=None)
    logits = widen(gate if gate.ndim == 3 else gate[..., None])
    with np.errstate(over="ignore", invalid="ignore"):
        factor = np.where(np.isneginf(lse.value)[..., None], 1.0, 1 / (1 + np.exp(-logits)))
        value, bound = merged.value * factor, merged.magnitude * np.where(np.isnan(factor), 0, factor)
    empty = np.broadcast_to(np.isneginf(lse.value)[..., None], value.shape)
    return contract.Expected(value, bound, empty | np.isnan(value))


def gates(rng: np.random.Generator, dim: int, kind: str, dtype: np.dtype) -> np.ndarray:
    """Returns gates for rows or for heads: ordinary numbers, infinities and NaN."""
    gate = rng.normal(0, 4, (N, H, dim) if kind == "row" else (N, H)).astype(np.float32)
    gate[0, 0], gate[1, 1], gate[1, 2] = np.inf, -np.inf, -200
    gate[3, 2], gate[4, 0] = np.nan, np.nan
    if kind == "row":
        gate[5, 1, 1::2] = np.nan
    return gate.astype(dtype)


@pytest.mark.parametrize(("dim", "dtype", "gate_dtype", "kind", "base", "layout", "strides"), [
    (128, BF16, BF16, "row", "e", "hn", "contiguous"), (128, BF16, F32, "head", "2", "nh", "padded"), (512, F16, F16, "row", "2", "nh", "padded"),
    (64, F32, F32, "row", "e", "nh", "padded"), (96, F32, BF16, "head", "e", "hn", "contiguous"), (5, F16, F32, "row", "e", "nh", "contiguous")])  # fmt: skip
@pytest.mark.parametrize("in_place", [False, True])
def test_merged_rows_are_gated(dim: int, dtype: np.dtype, gate_dtype: np.dtype, kind: str, base: Any, layout: Any, strides: str, in_place: bool,
                               device: Device, rng: np.random.Generator) -> None:
    """Gated rows are right even if one or both of their states are empty, or if a gate is NaN or infinite."""
    kinds = rng.choice([ORDINARY, EMPTY, EMPTY_FA2, ZERO], (2, N, H), p=[0.6, 0.15, 0.15, 0.1])
    kinds[:, 2, 1], kinds[:, 4, 0], kinds[0, 3, 2] = EMPTY, EMPTY_FA2, ORDINARY
    states = make_states(rng, 2, N, H, dim, dtype, kinds=kinds)
    gate = gates(rng, dim, kind, gate_dtype)
    s = states.s if layout == "nh" else np.ascontiguousarray(states.s.swapaxes(1, 2))
    a, b = (device.put(one.copy()) for one in states.v)
    out = a if in_place else device.put(poison((N, H, dim), dtype))
    strides = strides if kind == "row" and device.name != "ptx" else "contiguous"
    got, lse = ops.merge_attn_states(a, device.put(s[0]), b, device.put(s[1]), gate=device.put(lay_out(gate, strides)), out=out, base=base, lse_layout=layout)
    assert got is out
    want(states.v, states.s, gate, base, dtype).check(device.get(out), "out")
    total = contract.merge(states.v, states.s, base=BASE[base])[1]
    found = device.get(lse)
    total.check(found if layout == "nh" else np.ascontiguousarray(found.T), "out_lse")
    for t, h in ((2, 1), (4, 0)):
        assert not np.ascontiguousarray(device.get(out)[t, h]).view(np.uint8).any()  # the row is +0.0, bit for bit


@pytest.mark.parametrize("dtype", [BF16, F32])
def test_a_gate_of_infinity_is_the_merge_itself(dtype: np.dtype, device: Device, rng: np.random.Generator) -> None:
    states = make_states(rng, 2, N, H, 128, dtype, faults=False)
    a, b, x, y = (device.put(one) for one in (*states.v, *states.s))
    plain = ops.merge_attn_states(a, x, b, y, lse_layout="nh")
    gated = ops.merge_attn_states(a, x, b, y, lse_layout="nh", gate=device.put(np.full((N, H), np.inf, F32)))
    for one, other in zip(plain, gated):
        assert same_bits(device.get(one), device.get(other))


@pytest.mark.parametrize("kind", ["row", "head"])
def test_past_the_context_the_suffix_is_gated(kind: str, device: Device, rng: np.random.Generator) -> None:
    states = make_states(rng, 2, N, H, 64, F32, kinds=np.full((2, N, H), ORDINARY))
    gate = rng.normal(0, 2, (N, H, 64) if kind == "row" else (N, H)).astype(np.float32)
    a, b, x, y, g = (device.put(one) for one in (*states.v, *states.s, gate))
    s = states.s.copy()
    s[0, 4:] = -np.inf
    for copies in (False, True):
        out, lse = ops.merge_attn_states(a, x, b, y, lse_layout="nh", gate=g, context_rows=4, copy_past_context=copies)
        want(states.v, s, gate, "e", F32).check(device.get(out), "out")
        assert same_bits(device.get(lse)[4:], states.s[1, 4:])


@pytest.mark.parametrize(("dim", "dtype", "kind", "counted", "with_sink"), [
    (128, F32, "row", False, False), (128, BF16, "head", True, False), (256, F16, "row", True, True), (64, F32, "head", False, True)])  # fmt: skip
def test_combined_splits_are_gated(dim: int, dtype: np.dtype, kind: str, counted: bool, with_sink: bool, device: Device, rng: np.random.Generator) -> None:
    """Combined splits are gated as in `_qsa_merge_splitk_kernel` of vLLM 0.33.0, also rows without any split."""
    kinds = rng.choice([ORDINARY, EMPTY], (5, N, H), p=[0.7, 0.3])
    kinds[:, 2, 1] = EMPTY
    states = make_states(rng, 5, N, H, dim, dtype, kinds=kinds)
    gate, lens = gates(rng, dim, kind, dtype), np.array([5, 3, 2, 4, 0, 1], np.int32)
    s = states.s.copy()
    more: dict[str, Any] = {}
    if counted:
        more.update(seq_lens=device.put(lens), split_len=1)
        s[np.arange(5)[:, None] >= lens] = -np.inf
    v = states.v
    if with_sink:
        sinks = rng.normal(0, 1, H).astype(np.float32)
        more["sinks"] = device.put(sinks)
    out, _ = ops.combine_split_kv(device.put(v[:, :, None]), device.put(states.s[:, :, None]), gate=device.put(gate[:, None]), out_dtype="f32", **more)
    expected = want(v, s, gate, "e", F32)
    if with_sink:
        lse = contract.merge(v, s)[1].value
        with np.errstate(over="ignore"):
            part = np.where(np.isneginf(lse), 1.0, 1 / (1 + np.exp(sinks - lse)))[..., None]
        expected = contract.Expected(expected.value * part, expected.magnitude, expected.exact)
    expected.check(device.get(out)[:, 0], "out")


@pytest.mark.parametrize("name", ["static", "groups", "mxfp8", "nvfp4 tiles"])
@pytest.mark.parametrize("kind", ["row", "head"])
def test_rows_are_gated_before_they_are_quantised(name: str, kind: str, device: Device, rng: np.random.Generator) -> None:
    """A gated merge into a format has the bits of a gated merge into f32 followed by a quantiser."""
    dim = 128
    states = make_states(rng, 2, N, 4, dim, BF16, faults=False)
    gate = device.put(rng.normal(0, 2, (N, 4, dim) if kind == "row" else (N, 4)).astype(np.float32).astype(BF16))
    a, b, x, y = (device.put(one) for one in (*states.v, *states.s))

    def form() -> Any:
        scales = {"groups": ((N, 4, 1), F32), "mxfp8": ((N, 4, 4), np.uint8), "nvfp4 tiles": ((128, 32), np.uint8)}
        zeros = device.put(np.zeros(*scales[name])) if name in scales else None
        number = device.put(np.full(1, 0.02, F32))
        return {"static": lambda: ops.Fp8(number), "groups": lambda: ops.Fp8Groups(zeros), "mxfp8": lambda: ops.MxFp8(zeros),
                "nvfp4 tiles": lambda: ops.NvFp4(zeros, number, tiles="128x4")}[name]()  # fmt: skip

    wide = [device.put(one.astype(F32)) for one in states.v]
    plain, _ = ops.merge_attn_states(wide[0], x, wide[1], y, lse_layout="nh", gate=gate)
    mine, theirs = form(), form()
    out, _ = ops.merge_attn_states(a, x, b, y, lse_layout="nh", gate=gate, out_format=mine)
    if name == "static":
        expected = ops.quantize_fp8_static(plain.reshape((N, 4 * dim)), theirs.scale)
        assert same_bits(device.get(out).reshape(N, 4 * dim), device.get(expected))
        return
    expected = ops.quantize_groups(plain, theirs)
    assert same_bits(device.get(out), device.get(expected)) and same_bits(device.get(mine.scales), device.get(theirs.scales))
    assert device.get(mine.scales).view(np.uint8).any()


def test_rows_are_gated_before_they_are_turned(device: Device, rng: np.random.Generator) -> None:
    states = make_states(rng, 2, N, H, 64, F32, faults=False)
    a, b, x, y = (device.put(one) for one in (*states.v, *states.s))
    gate = device.put(rng.normal(0, 2, (N, H, 64)).astype(np.float32))
    angles = rng.uniform(-4, 4, (8, 16))
    table = device.put(np.concatenate([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32))
    rope = ops.Rope(device.put(rng.integers(0, 8, N)), table)
    both, _ = ops.merge_attn_states(a, x, b, y, lse_layout="nh", gate=gate, rope=rope)
    plain, lse = ops.merge_attn_states(a, x, b, y, lse_layout="nh", gate=gate)
    empty = device.put(np.full((N, H), -np.inf, F32))
    turned, _ = ops.merge_attn_states(plain, lse, plain, empty, lse_layout="nh", rope=rope)
    assert same_bits(device.get(both), device.get(turned))


@pytest.mark.parametrize(("gate", "message"), [
    (np.zeros((N, H), np.int32), 'argument "gate": expected dtype .*, got int32'),
    (np.zeros(N, F32), r'argument "gate": expected shape \[6, 3, 64\], or \[6, 3\] for one number a head, got \[6\]'),
    (np.zeros((N, H, 1), F32), 'argument "gate": expected size .*, got 1'),
    (np.zeros((N + 1, H), F32), 'argument "gate": expected size 6 .*got 7'),
], ids=str)  # fmt: skip
def test_wrong_gates(gate: np.ndarray, message: str, device: Device) -> None:
    rows, lse = device.put(np.zeros((N, H, 64), F32)), device.put(np.zeros((N, H), F32))
    with pytest.raises(mlafix.ArgumentError, match=message):
        ops.merge_attn_states(rows, lse, rows, lse, lse_layout="nh", gate=device.put(gate))
