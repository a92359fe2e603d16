"""Tests the bounds of float operations: they contain the results for all numbers between the operands' bounds."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import floats
import functions
import numpy as np
import pytest
from floats import Floats
from formats import LARGEST, f32

ENDS = np.array([-np.inf, -LARGEST, -2.0, -(2.0**-149), -0.0, 0.0, 2.0**-149, 2.0, LARGEST, np.inf])


def _operands() -> tuple[Floats, list[np.ndarray]]:
    """Returns the intervals between all pairs of ENDS, and arrays of numbers in each of them."""
    pairs = [(i, j) for i in range(len(ENDS)) for j in range(i, len(ENDS))]
    lo, hi = (ENDS[[pair[k] for pair in pairs]] for k in (0, 1))
    members = [np.where([i <= k <= j for i, j in pairs], ENDS[k], lo) for k in range(len(ENDS))]
    return Floats(None, lo, hi, np.zeros(len(pairs), bool)), members


@pytest.mark.parametrize(
    "operation, numbers",
    [(floats.add, np.add), (floats.sub, np.subtract), (floats.mul, np.multiply), (floats.divide, np.divide)],
)
def test_bounds_hold_what_members_give(operation: Callable[..., Floats], numbers: np.ufunc) -> None:
    intervals, members = _operands()
    count = len(intervals.lo)
    a = intervals.map(lambda part: np.repeat(part, count))
    b = intervals.map(lambda part: np.tile(part, count))
    with np.errstate(all="ignore"):
        lo, hi, nan = operation(a, b).bounds()
        for x, y in itertools.product(members, members):
            value = f32(numbers(np.repeat(x, count), np.tile(y, count)))
            below = (value < lo) | ((value == lo) & np.signbit(value) & ~np.signbit(lo))
            above = (value > hi) | ((value == hi) & ~np.signbit(value) & np.signbit(hi))
            wrong = np.where(np.isnan(value), ~nan, below | above | (lo > hi))
            i = int(wrong.argmax())
            assert not wrong.any(), (a.lo[i], a.hi[i], b.lo[i], b.hi[i], np.repeat(x, count)[i], np.tile(y, count)[i], value[i], lo[i], hi[i])


def test_the_sine_of_a_zero_of_unknown_sign_is_one() -> None:
    low, high, _ = functions.sin(Floats.between(np.array([-0.0]), np.array([0.0]), np.array([False]))).bounds()
    assert np.signbit(low[0]) and not np.signbit(high[0]) and low[0] == high[0] == 0
