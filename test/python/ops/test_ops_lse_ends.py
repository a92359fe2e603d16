"""Tests lses and logits at the limits of f32, in each base and between bases. No finite lse may become an empty state
or NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from devices import Device
from mlafix import ops
from numerics import F32, poison

LARGEST = float(np.finfo(np.float32).max)
NUMBER = {"e": np.e, "2": 2.0}
ENDS = np.array([LARGEST, -LARGEST, 3e38, -3e38, 2.4e38, -2.4e38, 1e38, 0, -np.inf], F32)


def pairs() -> tuple[np.ndarray, np.ndarray]:
    return tuple(x.ravel() for x in np.meshgrid(ENDS, ENDS))  # type: ignore[return-value]


def merged(a: np.ndarray, a_base: str, b: np.ndarray, b_base: str, base: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Computes the merge of two states in f64. Returns the weight of the first state, whether the merged state has any
    weight, and its lse in `base`, clamped to f32's range."""
    x, y = a.astype(np.float64) * np.log(NUMBER[a_base]), b.astype(np.float64) * np.log(NUMBER[b_base])
    with np.errstate(invalid="ignore", over="ignore"):
        top = np.maximum(x, y)
        weight = np.where(np.isinf(top), 0.0, np.exp(x - top) / (np.exp(x - top) + np.exp(y - top)))
        lse = top + np.where(np.isinf(top), 0.0, np.log(np.exp(x - top) + np.exp(y - top)))
    lse = lse / np.log(NUMBER[base])
    return weight, ~np.isinf(top), np.where(np.isinf(lse), lse, np.clip(lse, -LARGEST, LARGEST))


def check(out: np.ndarray, lse: np.ndarray | None, want: tuple[np.ndarray, np.ndarray, np.ndarray], second: float, tied: np.ndarray) -> None:
    """Compares `out` with weighted means of 1 and `second`, and `lse` with the expected one. `out` is not compared at
    `tied`, where the two lses may differ, but become the same number in base 2."""
    weight, any_, total = want
    expected = np.where(any_, weight + (1 - weight) * second, 0)
    np.testing.assert_allclose(out[~tied], expected[~tied], rtol=1e-5, atol=1e-6)
    assert np.isfinite(out).all()
    if lse is not None:
        np.testing.assert_allclose(lse, total, rtol=1e-6)


def ties(a: np.ndarray, a_base: str, b: np.ndarray, b_base: str, base: str) -> np.ndarray:
    """Returns where both lses have the same extreme value in base 2: the largest f32 or its negative. An lse has this
    value already, or gets it because its conversion saturates."""
    if base == "e" or a_base == b_base == "e":
        return np.zeros(len(a), bool)

    def held(x: np.ndarray, of: str) -> np.ndarray:
        with np.errstate(over="ignore"):
            whole = x.astype(np.float64) * (np.log2(np.e) if of == "e" and base == "2" else 1.0)
        return np.where(np.isinf(whole), whole, np.clip(whole, -LARGEST, LARGEST))

    x, y = held(a, a_base), held(b, b_base)
    return (x == y) & (np.abs(x) == LARGEST)


@pytest.mark.parametrize("out_base", ["e", "2"])
@pytest.mark.parametrize("base", ["e", "2"])
def test_lses_at_the_ends_beside_a_sink(base: Any, out_base: Any, device: Device) -> None:
    """Results are right if lses, sinks or both are at the limits of f32. Sinks are natural logarithms, whatever the
    base of the lses."""
    s, sinks = pairs()
    v = np.ones((1, len(s), 8), F32)
    out, lse = ops.apply_sink(device.put(v), device.put(s[None]), device.put(sinks), base=(base, out_base))
    want = merged(s, base, sinks, "e", out_base)
    check(device.get(out)[0, :, 0], device.get(lse)[0], want, 0.0, ties(s, base, sinks, "e", out_base))


@pytest.mark.parametrize("out_base", ["e", "2"])
@pytest.mark.parametrize("bases", [("e", "e"), ("2", "e"), ("e", "2"), ("2", "2")], ids="".join)
def test_lses_at_the_ends_of_two_states(bases: tuple[Any, Any], out_base: Any, device: Device) -> None:
    a, b = pairs()
    rows = [np.full((1, len(a), 8), x, F32) for x in (1, 3)]
    out, lse = ops.merge_attn_states(*(device.put(x) for x in (rows[0], a[None], rows[1], b[None])), lse_layout="nh",
                                     base=(*bases, out_base))  # fmt: skip
    want = merged(a, bases[0], b, bases[1], out_base)
    check(device.get(out)[0, :, 0], device.get(lse)[0], want, 3.0, ties(a, bases[0], b, bases[1], out_base))


@pytest.mark.parametrize("out_base", ["e", "2"])
@pytest.mark.parametrize("base", ["e", "2"])
@pytest.mark.parametrize("name", ["merge_states", "merge_states_ragged", "merge_states_list", "merge_states_mapped", "combine_split_kv", "counted"])
def test_lses_at_the_ends_of_many_states(name: str, base: Any, out_base: Any, device: Device) -> None:
    a, b = pairs()
    v = np.stack([np.full((len(a), 1, 8), x, F32) for x in (1, 3)], 1)  # the shape is [n, 2, 1, 8]
    s = np.stack([a, b], 1)[..., None].copy()
    how: Any = dict(base=(base, out_base))
    if name == "merge_states":
        out, lse = ops.merge_states(device.put(v), device.put(s), **how)
    elif name == "merge_states_list":
        out, lse = ops.merge_states_list([device.put(v[:, i].copy()) for i in (0, 1)], [device.put(s[:, i].copy()) for i in (0, 1)], **how)
    elif name in ("merge_states_ragged", "merge_states_mapped"):
        flat, lses, indptr = device.put(v.reshape(-1, 1, 8)), device.put(s.reshape(-1, 1)), device.put(np.arange(0, 2 * len(a) + 1, 2, dtype=np.int32))
        if name == "merge_states_ragged":
            out, lse = ops.merge_states_ragged(flat, lses, indptr, **how)
        else:
            out, lse = device.put(poison((len(a), 1, 8), F32)), device.put(poison((len(a), 1), F32))
            ops.merge_states_mapped(out, flat, lses, indptr, out_lse=lse, **how)
    else:
        lens: Any = dict(seq_lens=device.put(np.full(len(a), 2, np.int32)), split_len=1) if name == "counted" else {}
        split, lses = (np.ascontiguousarray(x.swapaxes(0, 1))[:, :, None] for x in (v, s))
        out, lse = (device.get(x).reshape(len(a), 1, *x.shape[3:]) for x in ops.combine_split_kv(device.put(split), device.put(lses), **how, **lens))
    rows, lses = (x if isinstance(x, np.ndarray) else device.get(x) for x in (out, lse))
    check(rows[:, 0, 0], lses[:, 0], merged(a, base, b, base, out_base), 3.0, np.zeros(len(a), bool))


@pytest.mark.parametrize("base", ["e", "2"])
def test_lses_at_the_ends_beside_sinks_of_a_merge(base: Any, device: Device) -> None:
    s, sinks = pairs()
    parts, indptr = np.ones((1, len(s), 8), F32), np.array([0, 1], np.int32)
    out, lse = device.put(poison((1, len(s), 8), F32)), device.put(poison((1, len(s)), F32))
    ops.merge_states_mapped(out, device.put(parts), device.put(s[None]), device.put(indptr), sinks=device.put(sinks), out_lse=lse, base=base)
    tied = ties(s, base, sinks, "e", base)
    check(device.get(out)[0, :, 0], None, merged(s, base, sinks, "e", base), 0.0, tied)
    assert (device.get(lse)[0] == s).all()
    split, _ = ops.combine_split_kv(device.put(parts[:, None, None]), device.put(s[None, None, None]), sinks=device.put(sinks), base=base)
    check(device.get(split)[0, 0, :, 0], None, merged(s, base, sinks, "e", base), 0.0, tied)


@pytest.mark.parametrize("other", ["e", "2"])
@pytest.mark.parametrize("base", ["e", "2"])
def test_lses_at_the_ends_in_place(base: Any, other: Any, device: Device) -> None:
    a, b = pairs()
    v, s = device.put(np.full((1, len(a), 8), 1, F32)), device.put(a[None].copy())
    ops.merge_state_in_place(v, s, device.put(np.full((1, len(a), 8), 3, F32)), device.put(b[None]), base=(base, other))
    check(device.get(v)[0, :, 0], device.get(s)[0], merged(a, base, b, other, base), 3.0, ties(a, base, b, other, base))
