"""Applies functions of one f32 to values with bounds, with the errors that docs/Python.md and docs/Dialect.md allow."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from floats import INF, Floats, approximate, monotone, upper, widened
from formats import TINY, f32, f32_down, f32_up, round_to

# The (relative, absolute) error of functions of f32, and that of sine and cosine. See N10 in docs/Dialect.md, and "N7
# and N10 at the ends of f32" below it.
FUNCTION = (4e-6, TINY)
ANGLE = (0.0, 2e-7)
_LARGEST_ANGLE = 2.0**23
_MOST = 1 + 2.0**-22  # the smallest f32 that is at least 1 + 2e-7, where 2e-7 is the error in ANGLE
_ERF = np.vectorize(math.erf, otypes=[np.float64])


def floor(x: Floats) -> Floats:
    return monotone(np.floor, x)


def ceil(x: Floats) -> Floats:
    return monotone(np.ceil, x)


def round(x: Floats) -> Floats:
    """Rounds to the nearest integer, ties to even."""
    return monotone(np.rint, x)


def trunc(x: Floats) -> Floats:
    return monotone(np.trunc, x)


def bf16(x: Floats) -> Floats:
    return monotone(lambda v: round_to("bf16", v), x)


def f16(x: Floats) -> Floats:
    return monotone(lambda v: round_to("f16", v), x)


def f8e4m3fn(x: Floats) -> Floats:
    return monotone(lambda v: round_to("f8e4m3fn", v), x)


def f8e5m2(x: Floats) -> Floats:
    return monotone(lambda v: round_to("f8e5m2", v), x)


def f8e8m0(x: Floats) -> Floats:
    """Rounds up to f8e8m0."""
    return monotone(lambda v: round_to("f8e8m0", v), x)


def _function(function: Callable[[np.ndarray], np.ndarray], x: Floats, low: float = -INF, is_rounded: bool = False, least: float = -INF) -> Floats:
    """Applies an increasing function that is NaN for x < `low`. With `is_rounded`, the result is correctly rounded;
    otherwise it has the error FUNCTION, but is never below `least`."""
    if x.v is not None:
        return Floats(f32(function(x.v))) if is_rounded else _at_least(approximate(function(x.v), FUNCTION), least)
    lo, hi, nan = x.bounds()
    below = (lo < low) & (lo <= hi)
    first, last = np.where(below, np.where(hi < low, INF, low), lo), np.where(hi < low, -INF, hi)
    only_nan = first > last
    low_end, high_end = function(np.where(only_nan, 1, first)), function(np.where(only_nan, 1, last))
    true = Floats.between(np.where(only_nan, INF, low_end), np.where(only_nan, -INF, high_end), nan | below)
    if not is_rounded:
        return _at_least(widened(true, FUNCTION), least)
    lo, hi, nan = true.bounds()
    return Floats.between(f32(lo), f32(hi), nan)


def _at_least(x: Floats, least: float) -> Floats:
    lo, hi, nan = x.bounds()
    return Floats.between(upper(lo, np.full(lo.shape, least)), hi, nan)


def exp(x: Floats) -> Floats:
    return _function(np.exp, x, least=0.0)


def exp2(x: Floats) -> Floats:
    return _function(np.exp2, x, least=0.0)


def log(x: Floats) -> Floats:
    return _function(np.log, x, low=-0.0)


def log2(x: Floats) -> Floats:
    return _function(np.log2, x, low=-0.0)


def sqrt(x: Floats) -> Floats:
    return _function(np.sqrt, x, low=-0.0, is_rounded=True)


def tanh(x: Floats) -> Floats:
    return _function(np.tanh, x)


def rsqrt(x: Floats) -> Floats:
    if x.v is not None:
        return approximate(1 / np.sqrt(x.v), FUNCTION)
    lo, hi, nan = x.bounds()
    if ((lo <= 0) & (lo <= hi)).any():  # rsqrt is -inf at -0.0 and inf at +0.0
        minus_zero = (lo <= 0) & (hi >= 0) & np.signbit(lo)
        low = np.where(minus_zero, -INF, np.where(hi > 0, 1 / np.sqrt(np.where(hi > 0, hi, 1)), INF))
        # The maximum is at +0.0, or at the lower bound if that is positive. Negative numbers do not affect the bounds,
        # since rsqrt is NaN for them.
        high = np.where(lo > 0, 1 / np.sqrt(np.where(lo > 0, lo, 1)), np.where((hi > 0) | ((hi == 0) & ~np.signbit(hi)), INF, -INF))
        return widened(Floats.between(low, high, nan | (lo < 0)), FUNCTION)
    only_nan = lo > hi
    low, high = 1 / np.sqrt(np.where(only_nan, 1, hi)), 1 / np.sqrt(np.where(only_nan, 1, lo))
    return widened(Floats.between(np.where(only_nan, INF, low), np.where(only_nan, -INF, high), nan), FUNCTION)


def erf(x: Floats) -> Floats:
    return _function(_ERF, x)


def sin(x: Floats) -> Floats:
    return _angle(np.sin, x)


def cos(x: Floats) -> Floats:
    return _angle(np.cos, x)


def _angle(function: Callable[[np.ndarray], np.ndarray], x: Floats) -> Floats:
    """Applies sine or cosine to angles up to 2^23; larger angles give NaN. The bounds of an interval follow from the
    function values at its ends, since the function changes by at most as much as the angle."""
    lo, hi, nan = x.bounds()
    only_nan = lo > hi
    first, last = (np.clip(np.where(only_nan, 0, end), -_LARGEST_ANGLE, _LARGEST_ANGLE) for end in (lo, hi))
    inside = ~only_nan & (hi >= -_LARGEST_ANGLE) & (lo <= _LARGEST_ANGLE)
    nan = nan | ~only_nan & ((lo < -_LARGEST_ANGLE) | (hi > _LARGEST_ANGLE))
    (low, most, _), (_, high, _) = (approximate(function(end), ANGLE).bounds() for end in (first, last))
    reach = last - first  # 0 also for the interval from -0.0 to +0.0
    away = reach + ANGLE[1]  # with the error, since approximate() takes a function value of zero as exact
    low = np.where(reach > 0, np.maximum(f32_down(low - away), -_MOST), low)
    high = np.where(reach > 0, np.minimum(f32_up(most + away), _MOST), high)
    # An interval that contains 0 allows zeros of both signs.
    low = np.where((reach > 0) & (low == 0), -0.0, low)
    return Floats.between(np.where(inside, low, INF), np.where(inside, high, -INF), nan | only_nan)
