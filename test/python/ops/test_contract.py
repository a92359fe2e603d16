"""Tests the reference implementation of merging: results known by hand, and algebraic laws."""

from __future__ import annotations

import numpy as np
import pytest

import contract
from numerics import BF16, E4M3, F16, F32, FORMATS, poison, round_to, same_bits, ulps, widen
from states import LAYOUTS, buffer_of, lay_out, make_states, untouched_outside


def state(payload: list[float], lse: float) -> tuple[np.ndarray, np.ndarray]:
    return np.array([[payload]], np.float32), np.array([[lse]], np.float32)


def merged(*states: tuple[np.ndarray, np.ndarray], **how: object) -> tuple[list[float], float]:
    out, lse = contract.merge(np.stack([s[0] for s in states]), np.stack([s[1] for s in states]), **how)  # type: ignore[arg-type]
    return out.value[0, 0].tolist(), float(lse.value[0, 0])


def test_equal_weights_average_and_add_ln2() -> None:
    out, lse = merged(state([2.0, 4.0], 0.0), state([4.0, 8.0], 0.0))
    assert out == [3.0, 6.0] and lse == pytest.approx(np.log(2))
    out, lse = merged(state([2.0, 4.0], 0.0), state([4.0, 8.0], 0.0), base=2.0)
    assert out == [3.0, 6.0] and lse == pytest.approx(1.0)


def test_identity_empty_garbage_and_faults() -> None:
    nan = float("nan")
    one = state([1.5, -0.0], 0.25)
    for nothing in (-np.inf, np.inf):
        out, lse = merged(one, state([nan, np.inf], nothing))
        assert out == [1.5, 0.0] and np.signbit(out[1]) and lse == 0.25
        out, lse = merged(state([nan, nan], nothing), state([np.inf, nan], -np.inf))
        assert out == [0.0, 0.0] and not np.signbit(out[0]) and lse == -np.inf
    out, lse = merged(one, state([nan, nan], -600.0))
    assert out == [1.5, 0.0] and lse == 0.25
    out, lse = merged(one, state([1.0, 1.0], nan))
    assert np.isnan(out).all() and np.isnan(lse)


def test_merging_is_associative_and_commutative(rng: np.random.Generator) -> None:
    states = make_states(rng, 3, 6, 2, 4, F32, faults=False)
    whole, whole_lse = contract.merge(states.v, states.s)
    turned, turned_lse = contract.merge(states.v[::-1], states.s[::-1])
    assert np.allclose(whole.value, turned.value, equal_nan=True) and np.allclose(whole_lse.value, turned_lse.value)
    first, first_lse = contract.merge(states.v[:2], states.s[:2])
    both = np.stack([first.value, widen(states.v[2])]), np.stack([first_lse.value, widen(states.s[2])])
    chained, chained_lse = contract.merge(*both)
    assert np.allclose(whole.value, chained.value, rtol=1e-5, atol=1e-6, equal_nan=True)
    assert np.allclose(whole_lse.value, chained_lse.value, rtol=1e-5, atol=1e-5)


def test_expectations_can_fail() -> None:
    out, _ = contract.merge(np.ones((1, 1, 1, 2), np.float32), np.zeros((1, 1, 1), np.float32))
    out.check(np.ones((1, 1, 2), np.float32), "out")
    for wrong in ([[[1.0, np.nan]]], [[[1.0, 1.0000001]]]):
        with pytest.raises(AssertionError, match=r"out\[0, 0, 1\]: expected exactly"):
            out.check(np.array(wrong, np.float32), "out")
    near, lse = contract.merge(np.full((2, 1, 1, 1), 1.0, BF16), np.zeros((2, 1, 1), np.float32), out_dtype=BF16)
    near.check(np.array([[[1.0078125]]], BF16), "out")
    with pytest.raises(AssertionError, match="expected about 1.0"):
        near.check(np.array([[[1.0156250]]], BF16), "out")
    with pytest.raises(AssertionError, match="lse"):
        lse.check(np.array([[0.69316]], np.float32), "lse")


@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
def test_rounding_agrees_with_the_type(dtype: np.dtype, rng: np.random.Generator) -> None:
    values = np.concatenate([rng.normal(0, 1, 500), rng.normal(0, 1e-6, 500), [0.0, -0.0, 65504, 65520, 1e39, np.inf, np.nan]])
    values = np.concatenate([values, 2.0 ** rng.integers(-30, 10, 200) * (1 + 2.0**-8)])  # adds ties of bf16
    with np.errstate(over="ignore"):
        values = values.astype(np.float32)  # so that each of the two conversions below rounds only once
    with np.errstate(over="ignore"):
        native = values.astype(dtype)
    assert same_bits(round_to(dtype, values.astype(np.float64)).astype(np.float32).astype(dtype), native)


def test_fp8_rounds_to_even_saturates_and_keeps_nan() -> None:
    table = [(0.0, 0.0), (1.0625, 1.0), (1.1875, 1.25), (448.0, 448.0), (464.0, 448.0), (1e9, 448.0), (-1e9, -448.0),
             (np.inf, 448.0), (-np.inf, -448.0), (2.0**-9, 2.0**-9), (2.0**-10, 0.0), (1.5 * 2.0**-9, 2.0**-8)]
    got = round_to(E4M3, np.array([x for x, _ in table]))
    assert got.tolist() == [y for _, y in table]
    assert np.isnan(round_to(E4M3, np.array([np.nan]))).all()
    every = np.arange(256, dtype=np.uint8).view(E4M3)
    assert np.array_equal(round_to(E4M3, widen(every)), widen(every), equal_nan=True)


def test_ulps_count_neighbours() -> None:
    for dtype in (BF16, F16, F32, E4M3):
        one = np.array([1.0], np.float32).astype(dtype)
        step = 2.0 ** -FORMATS[dtype].fraction_bits
        assert ulps(one, np.array([1.0 + step])) == 1
        assert ulps(one, np.array([1.0 - step])) == 2
        assert ulps(np.array([0.0], np.float32).astype(dtype), np.array([-0.0])) == 0
        assert ulps(one, np.array([1.0 + step / 4])) == 0


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 6), (2, 4, 3, 7)], ids=str)
def test_layouts_hold_the_same_elements_among_poison(layout: str, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    array = rng.normal(0, 1, shape).astype(np.float32)
    view = lay_out(array, layout)
    assert np.array_equal(view, array)
    if len(shape) > 2:
        assert view.strides[-1] == view.itemsize
    before = buffer_of(view).copy()
    view[...] = 7
    assert untouched_outside(view, before)
    if layout not in ("contiguous", "transposed"):
        buffer_of(view)[0] ^= 1
        assert not untouched_outside(view, before)
    assert poison((2,), F32).view(np.uint32).tolist() == [0xFFFFFFFF] * 2


def test_dead_rows_ignore_segments_out_of_bounds() -> None:
    dead = contract.dead_rows(6, np.array([0, 3, -1, 0, 0]), np.array([0, 2, 3, 4, 9, 1]))
    assert dead.tolist() == [True, True, False, True, False, False]


def test_context_lens_and_flags_by_hand() -> None:
    lens = contract.context_lens(np.array([5, 1, 9], np.int32), 4, 3, 2)
    assert lens.tolist() == [[3, 4, 5], [0, 0, 1], [0, 0, 0], [0, 0, 0]]
    flags = contract.prefilling(np.array([1, 5, 0]), np.array([2, 5, 9]), 5, 2)
    assert flags.tolist() == [True, False, False, False, False]
