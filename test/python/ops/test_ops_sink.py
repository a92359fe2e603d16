"""Tests `apply_sink`, which adds the logit of an attention sink to a row and its lse, against f64. Also tests empty
rows, infinite logits and rows in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import contract
from calls import D, H, N, Right
from devices import Device
from mlafix import ArgumentError, ops
from numerics import BF16, F16, F32, garbage, poison, same_bits
from states import LAYOUTS, buffer_of, lay_out, make_states, untouched_outside

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

HEADS, DIM, ROWS = 8, 64, 23
# The sink of each head: -inf and +inf (no sink), NaN, one that outweighs every row, one without weight, and ordinary
# ones.
SINKS = np.array([-np.inf, np.inf, np.nan, 600, -600, 0, 1.25, -3], F32)


def inputs(rng: np.random.Generator, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Returns rows and lses of all kinds, including empty rows and rows with NaN. Payloads that must not be read are
    garbage."""
    states = make_states(rng, 1, ROWS, HEADS, DIM, dtype)
    return states.v[0], states.s[0]


def expected(v: np.ndarray, s: np.ndarray, sinks: np.ndarray, base: str) -> tuple[contract.Expected, contract.Expected]:
    """Returns the merge of each row with a state of zeros whose lse is the sink's logit."""
    number = 2.0 if base == "2" else np.e
    payload = np.stack([v, np.zeros_like(v)])
    return contract.merge(payload, np.stack([s, np.broadcast_to(sinks.astype(F32) / np.log(number), s.shape)]), base=number, out_dtype=v.dtype)


@pytest.mark.parametrize("base", ["e", "2"])
@pytest.mark.parametrize("lse_layout", ["nh", "hn"])
@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
def test_rows_and_their_lse_in_every_layout(device: Device, rng: np.random.Generator, dtype: np.dtype, lse_layout: Any, base: Any) -> None:
    v, s = inputs(rng, dtype)
    row, lse = expected(v, s, SINKS, base)
    for layout in LAYOUTS:
        out, out_lse = (lay_out(x, layout) for x in (poison(v.shape, dtype), poison(s.shape if lse_layout == "nh" else s.T.shape, F32)))
        before, given = [buffer_of(x).copy() for x in (out, out_lse)], [device.put(x) for x in (out, out_lse)]
        turned = s if lse_layout == "nh" else np.ascontiguousarray(s.T)
        got = ops.apply_sink(device.put(lay_out(v, layout)), device.put(lay_out(turned, layout)), device.put(SINKS), out=given[0],
                             out_lse=given[1], lse_layout=lse_layout, base=base)
        assert got[0] is given[0] and got[1] is given[1]
        row.check(device.get(given[0]), "out")
        stored = device.get(given[1])
        lse.check(stored if lse_layout == "nh" else np.ascontiguousarray(stored.T), "out_lse")
        if isinstance(given[0], np.ndarray):
            assert untouched_outside(out, before[0]) and untouched_outside(out_lse, before[1])


@pytest.mark.parametrize("dtype", [BF16, F32], ids=str)
def test_dead_rows_are_zeros_with_the_sinks_lse_whatever_they_hold(device: Device, rng: np.random.Generator, dtype: np.dtype) -> None:
    v, s = garbage(rng, (ROWS, HEADS, DIM), dtype), np.where(np.arange(ROWS) % 2, np.inf, -np.inf).astype(F32)[:, None].repeat(HEADS, 1)
    sinks = np.array([-np.inf, np.inf, 0, 600, -600, 80, 1.25, -3], F32)
    out, lse = ops.apply_sink(device.put(v), device.put(s), device.put(sinks))
    assert not device.get(out).view(np.uint8).any()
    np.testing.assert_array_equal(device.get(lse), np.broadcast_to(np.where(np.isinf(sinks), -np.inf, sinks), s.shape))


def test_a_logit_that_is_none_copies_the_row(device: Device, rng: np.random.Generator) -> None:
    """If the logit is infinite, there is no sink: the row and its lse are copied bit for bit (N4)."""
    v, s = rng.standard_normal((ROWS, HEADS, DIM)).astype(F32), rng.standard_normal((ROWS, HEADS)).astype(F32)
    v[0], v[1, 0, :2] = -0.0, [1e-45, np.inf]
    for base in ("e", "2"):
        out, lse = ops.apply_sink(device.put(v), device.put(s), device.put(np.array([-np.inf, np.inf] * 4, F32)), base=base)  # type: ignore[arg-type]
        assert same_bits(device.get(out), v) and same_bits(device.get(lse), s)


@pytest.mark.parametrize("lse_layout", ["nh", "hn"])
def test_in_place_and_without_the_lse(device: Device, rng: np.random.Generator, lse_layout: Any) -> None:
    v, s = inputs(rng, BF16)
    s = s if lse_layout == "nh" else np.ascontiguousarray(s.T)
    want, want_lse = (device.get(x).copy() for x in ops.apply_sink(device.put(v), device.put(s), device.put(SINKS), lse_layout=lse_layout))
    rows, lse = device.put(v.copy()), device.put(s.copy())
    assert ops.apply_sink(rows, lse, device.put(SINKS), out=rows, return_lse=False, lse_layout=lse_layout) == (rows, None)
    assert same_bits(device.get(rows), want) and same_bits(device.get(lse), s)
    rows = device.put(v.copy())
    ops.apply_sink(rows, lse, device.put(SINKS), out=rows, out_lse=lse, lse_layout=lse_layout)
    assert same_bits(device.get(rows), want) and same_bits(device.get(lse), want_lse)


@pytest.mark.parametrize("dtype", [BF16, F16], ids=str)
def test_logits_of_16_bits(device: Device, rng: np.random.Generator, dtype: np.dtype) -> None:
    v, s = inputs(rng, BF16)
    sinks = SINKS.astype(dtype)
    out, lse = ops.apply_sink(device.put(v), device.put(s), device.put(sinks))
    want, want_lse = ops.apply_sink(device.put(v), device.put(s), device.put(sinks.astype(F32)))
    assert same_bits(device.get(out), device.get(want)) and same_bits(device.get(lse), device.get(want_lse))


def test_the_bits_of_a_merge_with_zeros(device: Device, rng: np.random.Generator) -> None:
    v, s = inputs(rng, F32)
    out, lse = ops.apply_sink(device.put(v), device.put(s), device.put(SINKS))
    zeros, logits = np.zeros_like(v), np.ascontiguousarray(np.broadcast_to(SINKS, s.shape))
    want, want_lse = ops.merge_attn_states(*(device.put(x) for x in (v, s, zeros, logits)), lse_layout="nh")
    np.testing.assert_array_equal(device.get(out), device.get(want))
    np.testing.assert_array_equal(device.get(lse), device.get(want_lse))


def test_there_may_be_no_rows(device: Device) -> None:
    out, lse = ops.apply_sink(*(device.put(np.zeros(shape, F32)) for shape in ((0, 3, 64), (0, 3), (3,))))
    assert tuple(out.shape) == (0, 3, 64) and tuple(lse.shape) == (0, 3)


WRONG = [
    (dict(v=np.ones((N, D), F32), out=None), r'argument "v": expected 3 dims \[n, H, D\], got 2'),
    (dict(v=np.ones((N, H, D)), out=None), 'argument "v": expected dtype bf16 or f16 or f32, got float64'),
    (dict(v=None), 'argument "v": expected dtype bf16 or f16 or f32, got NoneType'),
    (dict(v=np.ones((N, H, 2 * D), F32)[..., ::2]), 'argument "v": expected stride 1 in dim 2.*got 2'),
    (dict(s=np.ones((H, N), F32)), 'argument "s": expected size 4 in dim 1.*got 5'),
    (dict(s=np.ones((N, H), F16)), 'argument "s": expected dtype f32.*got f16'),
    (dict(s=np.ones(N, F32)), 'argument "s": expected 2 dims, got 1'),
    (dict(s=np.ones((N, H), F32), lse_layout="hn"), 'argument "s": expected size 4 in dim 0.*got 5'),
    (dict(sinks=np.ones(H + 1, F32)), 'argument "sinks": expected size 4 .*got 5'),
    (dict(sinks=np.ones((1, H), F32)), 'argument "sinks": expected 1 dims, got 2'),
    (dict(sinks=np.ones(H, np.int32)), 'argument "sinks": expected dtype bf16 or f16 or f32, got int32'),
    (dict(sinks=1.0), 'argument "sinks": expected dtype bf16 or f16 or f32, got float'),
    (dict(out=np.ones((N, H, D), F16)), 'argument "(v|out)": expected dtype f.*, as in argument'),
    (dict(out=np.ones((N + 1, H, D), F32)), 'argument "v": expected size 6 .*got 5'),
    (dict(out_lse=np.ones((H, N), F32)), 'argument "out_lse": expected size 4 in dim 1.*got 5'),
    (dict(lse_layout="hN"), "argument \"lse_layout\": expected 'hn' .* got 'hN'"),
    (dict(base=2), "argument \"base\": expected 'e' or '2', or a tuple of them for .*, got 2"),
]


@pytest.mark.parametrize("changed, message", WRONG, ids=[message for _, message in WRONG])
def test_wrong_arguments(changed: dict[str, Any], message: str) -> None:
    Right(Device()).refuses("apply_sink", message, **changed)


def test_partial_overlap_is_refused() -> None:
    """N11: an output may be the same tensor as its input. Otherwise, it must not overlap with another argument."""
    right = Right(Device())
    whole, lses = right.rows(N + 1, H, D), right.rows(N + 1, H)
    with pytest.raises(ArgumentError, match='argument "out": expected memory apart from .*"v"'):
        right.call("apply_sink", v=whole[1:], out=whole[:-1])
    with pytest.raises(ArgumentError, match='argument "out_lse": expected memory apart from .*"s"'):
        right.call("apply_sink", s=lses[1:], out_lse=lses[:-1])
    with pytest.raises(ArgumentError, match='argument "out_lse": expected memory apart from .*"sinks"'):
        right.call("apply_sink", sinks=lses[0], out_lse=lses[:-1])
