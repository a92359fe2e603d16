"""Tests of merges in addition to test_ops_contract.py: the threshold, an omitted lse, and the mask of the in-place merge.
test_ops_scaled.py tests merges into fp8."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import contract
from devices import Device
from mlafix import ops
from numerics import BF16, F16, F32, garbage, poison, same_bits
from states import LAYOUTS, buffer_of, lay_out, make_states, untouched_outside

DTYPES = [BF16, F16, F32]
# Pairs of head count and head dim: whole packs, a row shorter than a pack, and a row that several warps of a GPU share
# and that a CPU reads in a loop.
SHAPES = [(4, 64), (6, 3), (1, 576)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("threshold", [0, 1, 4, 9, None])
def test_threshold_rows_at_or_past_it_copy_the_suffix(threshold: int | None, dtype: np.dtype, device: Device,
                                                      rng: np.random.Generator) -> None:
    for heads, dim in SHAPES:
        states = make_states(rng, 2, 9, heads, dim, dtype)
        with np.errstate(over="ignore"):
            for row, scale in ((1, 8000 if dtype == F16 else 1e30), (2, 1e-4 if dtype == F16 else 1e-30)):
                states.v[:, row] = (states.v[:, row].astype(F32) * F32.type(scale)).astype(dtype)
        states.v[1, 3], states.s[1, 3] = -states.v[0, 3], states.s[0, 3]  # terms that cancel
        if threshold is not None:  # The prefix is not read past the threshold, so even a NaN lse has no effect there.
            states.v[0, threshold:] = garbage(rng, states.v[0, threshold:].shape, dtype)
            states.s[0, threshold:] = np.nan
        inputs = [device.put(x) for x in (states.v[0], states.s[0], states.v[1], states.s[1])]
        out, lse = ops.merge_attn_states(*inputs, context_rows=threshold, lse_layout="nh")
        want, want_lse = contract.merge_attn_states(states.v[0], states.s[0], states.v[1], states.s[1], threshold, out_dtype=dtype)
        want.check(device.get(out), "out")
        want_lse.check(device.get(lse), "lse")


@given(rows=st.integers(0, 20), threshold=st.integers(0, 20), shape=st.sampled_from(SHAPES), layout=st.sampled_from(LAYOUTS),
       seed=st.integers(0, 2**32 - 1), onto=st.sampled_from(["new", "prefix", "suffix"]), wants_lse=st.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_threshold_in_any_layout_in_place_or_not(rows: int, threshold: int, shape: tuple[int, int], layout: str, seed: int,
                                                     onto: str, wants_lse: bool) -> None:
    threshold = min(threshold, rows)
    rng = np.random.default_rng(seed)
    states = make_states(rng, 2, rows, *shape, BF16)
    prefix, suffix = (lay_out(x, layout) for x in states.v)
    prefix_lse, suffix_lse = (lay_out(np.ascontiguousarray(x.T), layout) for x in states.s)
    out, lse = {"prefix": (prefix, prefix_lse), "suffix": (suffix, suffix_lse),
                "new": (lay_out(poison(prefix.shape, BF16), layout), lay_out(poison(prefix_lse.shape, F32), layout))}[onto]
    before = [buffer_of(x).copy() for x in (out, lse)]
    lse_before = lse.copy()
    got = ops.merge_attn_states(prefix, prefix_lse, suffix, suffix_lse, out=out, out_lse=lse if wants_lse else None,
                                return_lse=False, context_rows=threshold)
    assert got[0] is out and got[1] is (lse if wants_lse else None)
    want, want_lse = contract.merge_attn_states(states.v[0], states.s[0], states.v[1], states.s[1], threshold, out_dtype=BF16)
    want.check(out, "out")
    assert untouched_outside(out, before[0]) and untouched_outside(lse, before[1])
    if wants_lse:
        want_lse.check(lse.T, "lse")
    else:
        assert same_bits(lse, lse_before)


@pytest.mark.parametrize("mask_dtype", [np.bool_, np.uint8, None])
@pytest.mark.parametrize("base", ["e", "2"])
def test_in_place_merge_touches_only_what_the_mask_selects(mask_dtype: type | None, base: str, device: Device,
                                                           rng: np.random.Generator) -> None:
    states = make_states(rng, 2, 10, 4, 64, BF16)
    mask = np.ones(10, bool) if mask_dtype is None else rng.random(10) < 0.5
    given = None
    if mask_dtype is not None:
        given = device.put(mask if mask_dtype is np.bool_ else (mask * rng.integers(1, 256, 10)).astype(np.uint8))
    v, s = device.put(states.v[0].copy()), device.put(states.s[0].copy())
    ops.merge_state_in_place(v, s, device.put(states.v[1]), device.put(states.s[1]), given, base=base)  # type: ignore[arg-type]
    want, want_lse = contract.merge(states.v, states.s, base=2.0 if base == "2" else np.e, out_dtype=BF16)
    got, got_lse = device.get(v), device.get(s)
    assert same_bits(got[~mask], states.v[0][~mask]) and same_bits(got_lse[~mask], states.s[0][~mask])
    pick = lambda e: contract.Expected(e.value[mask], e.magnitude[mask], e.exact[mask])  # noqa: E731
    pick(want).check(got[mask], "v")
    pick(want_lse).check(got_lse[mask], "s")


@pytest.mark.parametrize("masked", [False, True])
def test_large_rows_in_place_are_read_late(masked: bool, device: Device, rng: np.random.Generator) -> None:
    """The tensors have 17 MB. In a merge in place of this size, a GPU loads the lse first, and then the row that the
    result replaces (the pass mlafix-delay-reads)."""
    if device.name != "cuda":
        pytest.skip("for a GPU")
    states = make_states(rng, 2, 4200, 16, 128, BF16)
    mask = rng.random(4200) < 0.5 if masked else np.ones(4200, bool)
    v, s = device.put(states.v[0].copy()), device.put(states.s[0].copy())
    ops.merge_state_in_place(v, s, device.put(states.v[1]), device.put(states.s[1]), device.put(mask) if masked else None)
    want, want_lse = contract.merge(states.v, states.s, out_dtype=BF16)
    got, got_lse = device.get(v), device.get(s)
    assert same_bits(got[~mask], states.v[0][~mask]) and same_bits(got_lse[~mask], states.s[0][~mask])
    contract.Expected(want.value[mask], want.magnitude[mask], want.exact[mask]).check(got[mask], "v")
    contract.Expected(want_lse.value[mask], want_lse.magnitude[mask], want_lse.exact[mask]).check(got_lse[mask], "s")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_softmax_statistics_merge_as_their_lse_does(dtype: np.dtype, device: Device, rng: np.random.Generator) -> None:
    n, heads, dim, scale = 12, 4, 64, 0.088
    states = make_states(rng, 2, n, heads, dim, dtype, faults=False)
    stats = np.empty((2, n, heads, 2), np.float32)
    stats[..., 1] = rng.uniform(0.5, 40, stats.shape[:-1])
    with np.errstate(invalid="ignore"):
        stats[..., 0] = (states.s - np.log(stats[..., 1])) / scale
    empty = np.isinf(states.s)
    stats[empty] = np.where(rng.random((int(empty.sum()), 1)) < 0.5, [-np.inf, 0.0], [-np.inf, 3.0])
    inputs = [device.put(x) for x in (states.v[0], stats[0], states.v[1], stats[1])]
    out, merged = ops.merge_attn_stats(*inputs, scale)
    want, want_lse = contract.merge(states.v, contract.stats_to_lse(stats, scale), out_dtype=dtype)
    # The lse of statistics is a sum of two f32 numbers, so its rounding error grows with its magnitude. The error of
    # the lse also affects the weights, so the slack grows in the same way.
    slack = 1 + np.abs(np.nan_to_num(want_lse.value, neginf=0))[..., None] / 10
    contract.Expected(want.value, want.magnitude * slack, want.exact).check(device.get(out), "out")
    got = device.get(merged)
    assert got.shape == (n, heads, 2)
    lse = contract.stats_to_lse(got, scale)
    assert np.array_equal(np.isneginf(lse), np.isneginf(want_lse.value))
    live = ~np.isneginf(lse)
    assert np.allclose(lse[live], want_lse.value[live], rtol=4e-6, atol=4e-6)
    assert (got[~live][..., 1] == 0).all() and np.isneginf(got[~live][..., 0]).all()
