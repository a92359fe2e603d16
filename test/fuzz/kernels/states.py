"""Partial attention states: the contract N1 to N8 and N10 on values with bounds.

A state is a normalised payload and a log-sum-exp, as the contract has it; how an implementation holds it meanwhile shows in the
bounds alone. N10 allows 4e-6 of the weighted sum of the payloads' magnitudes for each merge.
"""

from __future__ import annotations

import floats
import numpy as np
from floats import INF, Floats
from formats import LARGEST, TINY, f32_down, f32_up
from integers import Bools

ERROR = 4e-6  # N10
FAR_ERROR = 1.6e-7 * np.log(2)  # what a term of a merge of three and more in base e may be off, a bit of its weight
SMALLEST = 2.0**-126  # errors below it are at most it
LSE_ERROR = 1e-6  # of log(sum), whose argument is near 1
# Exponents of two between which a weight may be a number or zero: subnormal numbers, and some slack.
SURELY_ZERO, SURELY_THERE = -151.0, -124.0


class States:
    """States of some rows.

    Args:
        payload: [rows, D]; lse: [rows], of rows that are not empty.
        empty: [rows]; unknown: [rows], where anything goes.
        count: [rows], how many states that are not empty were merged.
        base: "e" or "2".
    """

    __slots__ = ("payload", "lse", "empty", "unknown", "count", "base")

    def __init__(self, payload: Floats, lse: Floats, empty: np.ndarray, unknown: np.ndarray, count: np.ndarray, base: str) -> None:
        self.payload, self.lse, self.empty, self.unknown, self.count, self.base = payload, lse, empty, unknown, count, base


def identity(rows: int, size: int, base: str) -> States:
    nothing = np.zeros(rows)
    return States(Floats(np.zeros((rows, size))), Floats(nothing), np.ones(rows, bool), np.zeros(rows, bool), nothing.astype(int), base)


def make(payload: Floats, lse: Floats, base: str) -> States:
    """Both infinities mean empty (N2); NaN stays (N6)."""
    lo, hi, nan = lse.bounds()
    only_nan = lo > hi
    empty = np.isinf(lo) & (lo == hi) & ~nan
    unknown = ~only_nan & ~empty & (nan | np.isinf(lo) | np.isinf(hi))
    if only_nan.any():
        bad = np.broadcast_to(only_nan[:, None], payload.shape)
        payload = floats.select(Bools(bad), Floats(np.full(payload.shape, np.nan)), payload)
    return States(payload, lse, empty, unknown, np.ones(empty.shape, int), base)


def mask(state: States, keep: Bools) -> States:
    unknown = state.unknown if keep.unknown is None else state.unknown | keep.unknown
    return States(state.payload, state.lse, state.empty | ~keep.v, unknown & (keep.perhaps), state.count, state.base)


def select(condition: Bools, a: States, b: States) -> States:
    c = condition.v
    across = np.broadcast_to(c[:, None], a.payload.shape)
    unknown = np.where(c, a.unknown, b.unknown)
    if condition.unknown is not None:
        unknown = unknown | condition.unknown
    return States(floats.select(Bools(across), a.payload, b.payload), floats.select(Bools(c), a.lse, b.lse),
                  np.where(c, a.empty, b.empty), unknown, np.maximum(a.count, b.count), a.base)  # fmt: skip


def rebase(state: States, base: str) -> States:
    """The lse times log2(e), or divided by it; the payload stays (N8)."""
    if base == state.base:
        return state
    factor = np.log2(np.e) if base == "2" else np.log(2)
    lo, hi, nan = state.lse.bounds()
    scaled = floats.widened(Floats.between(lo * factor, hi * factor, nan), (2.0**-22, TINY))
    first, last, _ = scaled.bounds()
    overflow = ~state.empty & ((np.abs(first) > LARGEST) | (np.abs(last) > LARGEST)) & (first <= last)
    return States(state.payload, scaled, state.empty, state.unknown | overflow, state.count, base)


def merge(first: States, *others: States) -> States:
    for other in others:
        first = _merge(first, other)
    return first


def _middle(x: Floats) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Middle and half of the width of bounds, and whether they are finite numbers."""
    lo, hi, nan = x.bounds()
    finite = np.isfinite(lo) & np.isfinite(hi) & ~nan
    safe_lo, safe_hi = np.where(finite, lo, 0), np.where(finite, hi, 0)
    return safe_lo / 2 + safe_hi / 2, np.where(safe_hi > safe_lo, (safe_hi - safe_lo) / 2, 0), finite


def _merge(a: States, b: States) -> States:
    both = ~a.empty & ~b.empty
    alone = select(Bools(a.empty), b, a)  # N3, N4: the other side, bit for bit
    unknown = a.unknown | b.unknown
    count = np.where(both, a.count + b.count, alone.count)
    empty = a.empty & b.empty
    if not both.any():
        return States(alone.payload, alone.lse, empty, unknown, count, a.base)
    payload, lse, odd = _merge_live(a, b)
    across = np.broadcast_to(both[:, None], payload.shape)
    return States(floats.select(Bools(across), payload, alone.payload), floats.select(Bools(both), lse, alone.lse), empty,
                  unknown | (both & odd), count, a.base)  # fmt: skip


def _merge_live(a: States, b: States) -> tuple[Floats, Floats, np.ndarray]:
    """What two states that are not empty make; rows whose lse is not known well enough."""
    per_bit = np.log2(np.e) if a.base == "e" else 1.0
    (la, da, fa), (lb, db, fb) = _middle(a.lse), _middle(b.lse)
    nan = np.isnan(a.lse.v if a.lse.v is not None else np.where(a.lse.lo > a.lse.hi, np.nan, 0))
    nan |= np.isnan(b.lse.v if b.lse.v is not None else np.where(b.lse.lo > b.lse.hi, np.nan, 0))
    odd = ~nan & ~(fa & fb) | ((da + db) > 0.5)
    top = np.maximum(la, lb)
    gaps = (la - top) * per_bit, (lb - top) * per_bit
    weights = np.exp2(gaps[0]), np.exp2(gaps[1])
    total = weights[0] + weights[1]
    log_total = np.log2(total) / per_bit
    radius = np.maximum(da, db) + ERROR * (np.abs(top) + log_total) + LSE_ERROR
    center = np.where(nan, np.nan, top + log_total)
    lse = Floats.between(np.where(nan, INF, f32_down(center - radius)), np.where(nan, -INF, f32_up(center + radius)), nan)
    slack = (da + db) * per_bit
    payload = _mean(a, b, gaps, slack, weights, total)
    bad = np.broadcast_to(nan[:, None], payload.shape)
    return floats.select(Bools(bad), Floats(np.full(payload.shape, np.nan)), payload), lse, odd


def _mean(a: States, b: States, gaps: tuple, slack: np.ndarray, weights: tuple, total: np.ndarray) -> Floats:
    """The weighted mean of two payloads. A term whose weight is zero contributes nothing (N5); where it may be zero or a tiny
    number, both are allowed."""
    sums: dict[str, np.ndarray] = {key: np.zeros(a.payload.shape) for key in ("center", "size", "error")}
    anything = np.zeros(a.payload.shape, bool)
    largest = np.zeros(a.payload.shape)
    for state, gap, weight in ((a, gaps[0], weights[0]), (b, gaps[1], weights[1])):
        lo, hi, may = state.payload.bounds()
        middle, width, finite = _middle(state.payload)
        # A NaN or an infinity that is certain takes part as what it is.
        point = (lo > hi) | ((lo == hi) & ~may)
        middle = np.where(finite, middle, np.where(lo > hi, np.nan, lo))
        w, low, high = weight[:, None], (gap - slack)[:, None], (gap + slack)[:, None]
        gone = high + np.abs(high) * 1e-6 < SURELY_ZERO
        there = low - np.abs(low) * 1e-6 > SURELY_THERE
        middle = np.where(gone, 0, middle)
        maybe = ~gone & ~there
        anything |= ~gone & ~finite & (~point | maybe)
        # What was merged before may have met this weight in two steps, or in one.
        anything |= ~gone & ~finite & (state.count > 1)[:, None] & (low < -1)
        size = np.where(gone | ~finite, 0, np.abs(middle) + width)
        sums["center"] = sums["center"] + np.where(gone, 0, w * middle)
        sums["size"] = sums["size"] + w * size
        far = w * size * np.maximum(0, -low * FAR_ERROR - ERROR) if a.base == "e" else 0
        sums["error"] = sums["error"] + np.where(gone | ~finite, 0, w * width) + np.where(maybe, w * size, 0) + far
        largest = np.maximum(largest, size)
    s = total[:, None]
    spread = np.expm1(np.minimum(2 * slack * np.log(2), 50.0))[:, None]
    radius = (sums["error"] + sums["size"] * (ERROR + 2 * spread)) / s + SMALLEST
    center = sums["center"] / s
    # Accumulators are not normalised (docs/Rationale.md): beyond this they may overflow.
    anything |= largest * (a.count + b.count)[:, None] > LARGEST
    lo, hi, nan = floats.approximate(center, (0.0, np.where(np.isfinite(center), radius, 0))).bounds()
    around_zero = (center == 0) & (radius > 0)
    lo, hi = np.where(around_zero, f32_down(-radius), lo), np.where(around_zero, f32_up(radius), hi)
    return Floats.between(np.where(anything, -INF, lo), np.where(anything, INF, hi), nan | anything)


def stored(state: States, scale: Floats | None) -> tuple[Floats, Floats]:
    """What is written: (payload, lse), both as f32; +0.0 and -inf of an empty state (N1)."""
    payload, lse = state.payload, state.lse
    if scale is not None:
        factor = floats.divide(Floats(np.ones(scale.shape)), scale).map(lambda part: part[:, None])
        scaled = floats.mul(payload, factor)
        again = (state.count > 1)[:, None]
        if again.any():
            slack = floats.widened(scaled, (3e-7, 2 * TINY))
            flo, fhi, _ = factor.bounds()
            small = (np.maximum(np.abs(flo), np.abs(fhi)) < 2.0**-120) & again
            if small.any():
                plo, phi, _ = payload.bounds()
                size = np.where(np.isfinite(plo) & np.isfinite(phi), np.maximum(np.abs(plo), np.abs(phi)), 0)
                slack = floats.widened(slack, (0.0, np.where(small, size * 2.0**-147, 0)))
            scaled = floats.select(Bools(np.broadcast_to(again, scaled.shape)), slack, scaled)
        payload = scaled
    across = np.broadcast_to(state.empty[:, None], payload.shape)
    payload = floats.select(Bools(across), Floats(np.zeros(payload.shape)), payload)
    lse = floats.select(Bools(state.empty), Floats(np.full(lse.shape, -INF)), lse)
    if state.unknown.any():
        odd = np.broadcast_to(state.unknown[:, None], payload.shape)
        payload = floats.select(Bools(odd), Floats.anything(payload.shape), payload)
        lse = floats.select(Bools(state.unknown), Floats.anything(lse.shape), lse)
    return payload, lse
