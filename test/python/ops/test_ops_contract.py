"""Tests the contract of merging (N1 to N13 of docs/Dialect.md) for every function that merges states."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import contract
from devices import Device
from numerics import F32, garbage, same_bits, widen
from states import EMPTY, EMPTY_FA2, LAYOUTS, NAN, ORDINARY, make_states
from calls import BASES, VARIANTS, Variant

# Pairs of head count and head dim: one element, an odd tail, whole packs, and packs whose number is no power of two.
SHAPES = [(1, 1), (3, 33), (4, 64), (2, 192)]
DTYPES = ("bfloat16", "float16", "float32")

variants = pytest.mark.parametrize("variant", VARIANTS, ids=repr)
dtypes = pytest.mark.parametrize("dtype_name", DTYPES)


def dtype_of(name: str) -> np.dtype:
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def check(variant: Variant, device: Device, v: np.ndarray, s: np.ndarray, base: str, layout: str = "contiguous") -> None:
    out, lse = variant.run(device, v.copy(), s.copy(), base, layout)
    want, want_lse = contract.merge(v, s, base=BASES[base], out_dtype=v.dtype)
    want.check(out, f"{variant.name} out")
    want_lse.check(lse, f"{variant.name} lse")


@variants
@dtypes
def test_every_kind_of_row_in_every_layout(variant: Variant, dtype_name: str, device: Device, rng: np.random.Generator) -> None:
    """N1 to N7, N10, N12: results are right for rows of every kind in every layout. Payloads of empty states are
    garbage, and the number of states differs by shape."""
    dtype = dtype_of(dtype_name)
    # All layouts are tested with the same numbers of states, since some kernels are compiled for each number.
    counts = np.resize(rng.permutation(variant.counts), len(SHAPES))
    for ((heads, dim), count), layout in itertools.product(zip(SHAPES, map(int, counts)), LAYOUTS):
        states = make_states(rng, count, int(rng.integers(1, 9)), heads, dim, dtype)
        check(variant, device, states.v, states.s, variant.bases[0], layout)
    for base in variant.bases[1:]:
        states = make_states(rng, variant.counts[0], 7, 4, 64, dtype)
        check(variant, device, states.v, states.s, base)


@variants
def test_no_rows_launch_nothing(variant: Variant, device: Device, rng: np.random.Generator) -> None:
    states = make_states(rng, variant.counts[0], 0, 4, 64, F32)
    check(variant, device, states.v, states.s, variant.bases[0])


@variants
@dtypes
def test_merge_both_sides_empty_yields_identity(variant: Variant, dtype_name: str, device: Device,
                                                rng: np.random.Generator) -> None:
    """N1, N2, N3: a row without live states becomes +0.0 with an lse of -inf, whatever its payloads contain."""
    count = variant.counts[-1]
    kinds = rng.choice([EMPTY, EMPTY_FA2], (count, 6, 4))
    states = make_states(rng, count, 6, 4, 64, dtype_of(dtype_name), kinds=kinds)
    out, lse = variant.run(device, states.v, states.s, variant.bases[0], "contiguous")
    assert same_bits(out, np.zeros_like(out)) and np.isneginf(lse).all()


@variants
@dtypes
def test_merge_one_side_live_copies_it_bit_for_bit(variant: Variant, dtype_name: str, device: Device,
                                                   rng: np.random.Generator) -> None:
    """N4, N5: if only one state of a row is live, the result is a copy of it: -0.0 and denormals survive, and garbage
    in the empty states has no effect."""
    count = variant.counts[-1]
    live = rng.integers(0, count, (5, 4))
    kinds = np.where(np.arange(count)[:, None, None] == live, ORDINARY, EMPTY)
    states = make_states(rng, count, 5, 4, 64, dtype_of(dtype_name), kinds=kinds)
    states.v[..., 0] = -0.0
    states.v[..., 1] = np.array([1], np.uint32 if dtype_name == "float32" else np.uint16).view(states.v.dtype)
    only = np.take_along_axis(states.v, live[None, ..., None], 0)[0].copy()
    only_lse = np.take_along_axis(states.s, live[None], 0)[0].copy()
    out, lse = variant.run(device, states.v, states.s, variant.bases[0], "contiguous")
    assert same_bits(out, only) and same_bits(lse, only_lse)


@variants
@dtypes
def test_n5_garbage_in_rows_without_weight_changes_no_bit(variant: Variant, dtype_name: str, device: Device,
                                                          rng: np.random.Generator) -> None:
    """N5: NaN, infinities, denormals and huge numbers in rows of weight zero give the same bits as zeros there."""
    dtype = dtype_of(dtype_name)
    count = variant.counts[-1]
    states = make_states(rng, count, 8, 4, 64, dtype, faults=False)
    bright = np.max(np.where(np.isinf(states.s), -np.inf, states.s), axis=0)
    silent = np.isinf(states.s) | (states.s < bright - 300)
    assert silent.any() or count == 1
    clean = np.where(silent[..., None], np.zeros(1, dtype), states.v)
    dirty = np.where(silent[..., None], garbage(rng, states.v.shape, dtype), states.v)
    results = [variant.run(device, v.copy(), states.s.copy(), variant.bases[0], "contiguous") for v in (clean, dirty)]
    assert same_bits(results[0][0], results[1][0]) and same_bits(results[0][1], results[1][1])
    assert not np.isnan(widen(results[1][0])).any()


@variants
@dtypes
def test_n5_a_weight_may_be_zero_in_the_whole_alone(variant: Variant, dtype_name: str, device: Device,
                                                    rng: np.random.Generator) -> None:
    """N5 in chains (docs/Dialect.md), in any order. The lses are 60 apart, so every state has weight beside its
    neighbour. In the merge of all states, only the two with the largest lses have weight, or three in base 2.
    Infinities and NaN in all other states change no bit."""
    dtype, count = dtype_of(dtype_name), variant.counts[-1]
    states = make_states(rng, count, 8, 4, 64, dtype, kinds=np.full((count, 8, 4), ORDINARY))
    states.s[...] = 60 * rng.permuted(np.broadcast_to(np.arange(count)[:, None, None], states.s.shape), axis=0)
    for base in variant.bases:
        gap = (states.s - states.s.max(axis=0)) * np.log2(BASES[base])
        silent = gap < -155
        dirty = np.where(silent[..., None], rng.choice(np.array([np.inf, -np.inf, np.nan], dtype), states.v.shape), states.v)
        results = [variant.run(device, v.copy(), states.s.copy(), base, "contiguous") for v in (states.v, dirty)]
        assert same_bits(results[0][0], results[1][0]) and same_bits(results[0][1], results[1][1])
        assert np.isfinite(widen(results[1][0])).all()


@variants
def test_n6_nan_in_a_live_lse_shows(variant: Variant, device: Device, rng: np.random.Generator) -> None:
    count = variant.counts[-1]
    kinds = np.full((count, 4, 4), ORDINARY)
    kinds[rng.integers(0, count), 2, 1] = NAN
    kinds[rng.integers(0, count), 0, 3] = NAN
    states = make_states(rng, count, 4, 4, 64, F32, kinds=kinds)
    out, lse = variant.run(device, states.v, states.s, variant.bases[0], "contiguous")
    faulty = (kinds == NAN).any(axis=0)
    assert np.isnan(lse).tolist() == faulty.tolist() and np.isnan(out).all(axis=-1).tolist() == faulty.tolist()
    assert not np.isnan(out[~faulty]).any()


@variants
@dtypes
def test_n9_a_rows_bits_do_not_depend_on_its_batch(variant: Variant, dtype_name: str, device: Device,
                                                   rng: np.random.Generator) -> None:
    """N9: a row has the same bits alone, in another order, in a larger batch, in another layout, and in a second
    call."""
    count = variant.counts[-1]
    states = make_states(rng, count, 37, 4, 64, dtype_of(dtype_name))
    run = lambda rows, layout: variant.run(device, states.v[:, rows].copy(), states.s[:, rows].copy(), variant.bases[0], layout)  # noqa: E731
    everything = np.arange(37)
    out, lse = run(everything, "contiguous")
    out, lse = out.copy(), lse.copy()
    order = rng.permutation(37)
    for rows, layout in [(everything, "contiguous"), (everything, "padded"), (order, "strided"), (order[:5], "contiguous"),
                         (order[5:6], "contiguous")]:
        again, lse_again = run(rows, layout)
        assert same_bits(again, out[rows]) and same_bits(lse_again, lse[rows])
