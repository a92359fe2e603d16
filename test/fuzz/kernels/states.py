"""Partial attention states with bounds, according to the rules N1 to N8 and N10 (docs/Dialect.md).

A state is a multiset of *terms*: the loaded and the made states from which it was merged. Merging is associative and
commutative. Nested merges, in an expression, over branches or in a loop, are therefore one merge of all their terms.
The allowed results are computed once, when the state is stored. N10 bounds the error against an f64 reference, however
an implementation groups the merges.
"""

from __future__ import annotations

import floats
import numpy as np
from floats import INF, Floats
from formats import LARGEST, TINY, f32_down, f32_up
from integers import Bools

ERROR = 4e-6  # the relative error of a merge (N10)
# The error of a term's weight per bit of its exponent, in a merge of three or more states in base e.
FAR_ERROR = 1.6e-7 * np.log(2)
SMALLEST = 2.0**-126  # the smallest error that is allowed
# A weight 2^x is surely zero for x below the first number, and surely nonzero above the second one. Between them it may
# be a subnormal number or zero.
SURELY_ZERO, SURELY_THERE = -151.0, -124.0
WIDEST = 0.25  # the most bits by which a weight may be uncertain; beyond that, anything is allowed
REBASED = 2.0**-22  # the relative error of a product with a rounded constant
MOST_TERMS = 256  # the most different terms; a state with more may be anything
# The most terms, repetitions included. With more, the sum of weights may overflow (docs/Dialect.md, the ends of N10).
MOST_TIMES = 2.0**126


class Term:
    """A state that was loaded or made, in each row.

    Args:
        payload: [rows, D].
        lo, hi: [rows], bounds of the lse in f64. If lo exceeds hi, the lse is NaN.
        unknown: [rows], a mask of rows where the term makes any result possible.
        shift: [rows], an error of the lse that this term shares with all terms of its group.
        group: identifies the rebase that converted the lses of this term and of others; None if there was none.
    """

    __slots__ = ("payload", "lo", "hi", "unknown", "shift", "group")

    def __init__(self, payload: Floats, lo: np.ndarray, hi: np.ndarray, unknown: np.ndarray, shift: np.ndarray, group: object) -> None:
        self.payload, self.lo, self.hi, self.unknown, self.shift, self.group = payload, lo, hi, unknown, shift, group


class States:
    """One state for each row. A state without terms is empty.

    Args:
        terms: for each term, [rows]: how often it takes part in the merge.
        shape: (rows, D).
        unknown: [rows], a mask of rows where any result is possible.
        merges: the nesting depth of merges.
        base: "e" or "2".
    """

    __slots__ = ("terms", "shape", "unknown", "merges", "base")

    def __init__(self, terms: dict[Term, np.ndarray], shape: tuple[int, int], unknown: np.ndarray, merges: int, base: str) -> None:
        self.terms, self.shape, self.unknown, self.merges, self.base = terms, shape, unknown, merges, base


def identity(rows: int, size: int, base: str) -> States:
    return States({}, (rows, size), np.zeros(rows, bool), 0, base)


def make(payload: Floats, lse: Floats, base: str) -> States:
    """Makes a state. An lse of -inf or +inf makes it empty (N2)."""
    lo, hi, nan = lse.bounds()
    empty = np.isinf(lo) & (lo == hi) & ~nan
    unknown = (lo <= hi) & ~empty & (nan | np.isinf(lo) | np.isinf(hi))
    term = Term(payload, lo, hi, unknown, np.zeros(lo.shape), None)
    return States({term: np.where(empty, 0.0, 1.0)}, payload.shape, np.zeros(lo.shape, bool), 0, base)


def _occupied(state: States) -> np.ndarray:
    """Returns a mask of rows in which some term may take part."""
    some = state.unknown
    for times in state.terms.values():
        some = some | (times > 0)
    return some


def mask(state: States, keep: Bools) -> States:
    terms = {term: np.where(keep.v, times, 0.0) for term, times in state.terms.items()}
    unknown = state.unknown & keep.perhaps
    if keep.unknown is not None:
        unknown = unknown | keep.unknown & _occupied(state)
    return States(terms, state.shape, unknown, state.merges, state.base)


def select(condition: Bools, a: States, b: States) -> States:
    none = np.zeros(a.shape[0])
    terms, differ = {}, a.unknown | b.unknown
    for term in {**a.terms, **b.terms}:
        x, y = a.terms.get(term, none), b.terms.get(term, none)
        terms[term] = np.where(condition.v, x, y)
        differ = differ | (x != y)
    unknown = np.where(condition.v, a.unknown, b.unknown)
    if condition.unknown is not None:
        unknown = unknown | condition.unknown & differ
    return States(terms, a.shape, unknown, max(a.merges, b.merges), a.base)


def rebase(state: States, base: str) -> States:
    """Converts the lse to another base, by multiplication with log2(e) or its reciprocal. The payload stays (N8). An
    implementation multiplies only the largest lse of a merge, so all terms share the error of that product."""
    if base == state.base:
        return state
    factor = np.log2(np.e) if base == "2" else np.log(2)
    largest = np.zeros(state.shape[0])
    for term, times in state.terms.items():
        size = np.maximum(np.abs(term.lo), np.abs(term.hi)) + term.shift
        largest = np.where(times > 0, np.fmax(largest, np.where(np.isfinite(size), size, 0)), largest)
    shift = np.where(largest > 0, largest * factor * REBASED + TINY, 0)
    terms, unknown = {}, state.unknown
    group = object()
    for term, times in state.terms.items():
        known = term.lo <= term.hi
        lo, hi = ((np.where(known, end, 0.0)) * factor for end in (term.lo - term.shift, term.hi + term.shift))
        unknown = unknown | (times > 0) & known & (np.maximum(np.abs(lo), np.abs(hi)) + shift > LARGEST)
        terms[Term(term.payload, np.where(known, lo, INF), np.where(known, hi, -INF), term.unknown, shift, group)] = times
    return States(terms, state.shape, unknown, state.merges, base)


def merge(*states: States) -> States:
    terms: dict[Term, np.ndarray] = {}
    unknown = np.zeros(states[0].shape[0], bool)
    for state in states:
        unknown = unknown | state.unknown
        for term, times in state.terms.items():
            terms[term] = terms[term] + times if term in terms else times
    overflows = sum(terms.values(), np.zeros(unknown.shape)) > MOST_TIMES
    if overflows.any():
        terms = {term: np.where(overflows, 0.0, times) for term, times in terms.items()}
        unknown = unknown | overflows
    if len(terms) > MOST_TERMS:
        terms, unknown = {}, np.ones(unknown.shape, bool)
    return States(terms, states[0].shape, unknown, max(state.merges for state in states) + (len(states) > 1), states[0].base)


# -- What is stored --------------------------------------------------------------------------------------------------------


def stored(state: States, scale: Floats | None) -> tuple[Floats, Floats]:
    """Returns the values (payload, lse) that a store writes, both in f32. An empty state gives +0.0 and -inf (N1)."""
    times = np.array([*state.terms.values(), np.zeros(state.shape[0])])
    count = times.sum(axis=0)
    unknown = state.unknown.copy()
    payload, lse = Floats(np.zeros(state.shape)), Floats(np.full(state.shape[0], -INF))
    for term, there in zip(state.terms, times):  # a single term is copied bit for bit (N3, N4)
        unknown |= (there > 0) & term.unknown
        alone = (there == 1) & (count == 1)
        payload = floats.select(_across(alone, state.shape), term.payload, payload)
        lse = floats.select(Bools(alone), _shifted(term), lse)
    nan = np.any([there * (term.lo > term.hi) for term, there in zip(state.terms, times)], axis=0) if state.terms else np.zeros(count.shape, bool)
    several = (count > 1) & ~nan & ~unknown
    if several.any():
        merged, merged_lse, odd = _merged(state, times, several)
        unknown |= odd
        payload, lse = floats.select(_across(several, state.shape), merged, payload), floats.select(Bools(several), merged_lse, lse)
    if scale is not None:
        payload = _scaled(payload, scale, count)
    # NaN in an lse makes the result NaN (N6). A scale that is NaN or zero does not change the identity (N1).
    for rows, value, its_lse in ((count == 0, Floats(np.zeros(state.shape)), Floats(np.full(count.shape, -INF))),
                                 (nan, Floats(np.full(state.shape, np.nan)), Floats(np.full(count.shape, np.nan))),
                                 (unknown, Floats.anything(state.shape), Floats.anything(count.shape))):  # fmt: skip
        if rows.any():
            payload, lse = floats.select(_across(rows, state.shape), value, payload), floats.select(Bools(rows), its_lse, lse)
    return payload, lse


def _across(rows: np.ndarray, shape: tuple[int, int]) -> Bools:
    return Bools(np.broadcast_to(rows[:, None], shape))


def _shifted(term: Term) -> Floats:
    known = term.lo <= term.hi
    lo, hi = f32_down(np.where(known, term.lo - term.shift, 0)), f32_up(np.where(known, term.hi + term.shift, 0))
    return Floats.between(np.where(known, lo, INF), np.where(known, hi, -INF), ~known)


def _scaled(payload: Floats, scale: Floats, count: np.ndarray) -> Floats:
    """Multiplies the payload by the rounded reciprocal of the scale. In a merge, that reciprocal is first multiplied by
    the reciprocal of the sum of weights, which adds two roundings."""
    factor = floats.divide(Floats(np.ones(scale.shape)), scale).map(lambda part: part[:, None])
    scaled = floats.mul(payload, factor)
    again = (count > 1)[:, None]
    if not again.any():
        return scaled
    slack = floats.widened(scaled, (3e-7, 2 * TINY))
    flo, fhi, _ = factor.bounds()
    small = (np.maximum(np.abs(flo), np.abs(fhi)) < 2.0**-120) & again
    if small.any():
        plo, phi, _ = payload.bounds()
        size = np.where(np.isfinite(plo) & np.isfinite(phi), np.maximum(np.abs(plo), np.abs(phi)), 0)
        slack = floats.widened(slack, (0.0, np.where(small, size * 2.0**-147, 0)))
    return floats.select(Bools(np.broadcast_to(again, scaled.shape)), slack, scaled)


def _merged(state: States, times: np.ndarray, rows: np.ndarray) -> tuple[Floats, Floats, np.ndarray]:
    """Returns payload and lse of the merge in `rows`, which have several terms. Also returns a mask of rows whose
    weights are too uncertain."""
    there = (times[:-1] > 0) & rows
    per_bit = np.log2(np.e) if state.base == "e" else 1.0
    lo, hi, shift = (np.array([getattr(term, part) for term in state.terms]) for part in ("lo", "hi", "shift"))
    lo, hi, shift = (np.where(there, part, 0.0) for part in (lo, hi, shift))
    middle = np.where(there, lo / 2 + hi / 2, -INF)
    own = ((hi - lo) / 2).max(axis=0)
    # An error that all terms share does not change the weights.
    slack = (own + np.where(_together(state, there), 0.0, shift.max(axis=0))) * per_bit
    top = np.where(rows, middle.max(axis=0), 0.0)
    gap = (middle - top) * per_bit
    weight = times[:-1] * np.exp2(gap)
    total = np.where(rows, weight.sum(axis=0), 1.0)
    center = top + np.log2(total) / per_bit
    radius = own + shift.max(axis=0) + ERROR * np.maximum(np.abs(center), 1.0)
    lse = Floats.between(f32_down(center - radius), f32_up(center + radius), np.zeros(center.shape, bool))
    gone = ~there | _gone(gap, slack, state.merges > 1)
    slack = np.where((~gone).sum(axis=0) > 1, slack, 0.0)  # a single term has all of the weight, whatever its lse
    payload = _mean(state, times[:-1] * rows, gap, slack, weight / total, gone)
    return payload, lse, rows & (slack > WIDEST)


def _together(state: States, there: np.ndarray) -> np.ndarray:
    """Returns a mask of rows whose terms all belong to one group."""
    numbers: dict[object, int] = {None: 0}
    group = np.array([numbers.setdefault(term.group, len(numbers)) for term in state.terms])[:, None]
    first = np.where(there, group, 0).max(axis=0)
    return (first > 0) & (np.where(there, group, first) == first).all(axis=0)


def _gone(gap: np.ndarray, slack: np.ndarray, is_nested: bool) -> np.ndarray:
    """Returns a mask of terms whose weight is surely zero. In nested merges, a term may first be merged with terms of
    slightly larger lse, and so reach the largest lse in small steps. It vanishes if one of these steps is too large."""
    if not is_nested:
        high = gap + 2 * slack
        return high + np.abs(high) * 1e-6 < SURELY_ZERO
    order = np.argsort(-gap, axis=0)
    ranked = np.take_along_axis(gap, order, axis=0)
    steps = ranked[1:] - ranked[:-1] + 2 * slack
    broken = np.concatenate([np.zeros((1, gap.shape[1]), bool), steps + np.abs(steps) * 1e-6 < SURELY_ZERO])
    gone = np.zeros(gap.shape, bool)
    np.put_along_axis(gone, order, np.logical_or.accumulate(broken, axis=0), axis=0)
    return gone


def _mean(state: States, times: np.ndarray, gap: np.ndarray, slack: np.ndarray, weight: np.ndarray, gone: np.ndarray) -> Floats:
    """Returns the weighted mean of the payloads. A term of weight zero contributes nothing (N5). If a term's weight may
    be zero or subnormal, the mean may include the term or leave it out."""
    center, size, error, largest = (np.zeros(state.shape) for _ in range(4))
    anything = np.zeros(state.shape, bool)
    count = times.sum(axis=0)
    low = gap - 2 * slack
    maybe = ~gone & ~(low - np.abs(low) * 1e-6 > SURELY_THERE)
    # Code that merges three or more states has the error FAR_ERROR even if some of them are empty.
    is_many = state.merges > 1 or sum(max(1, most) for most in times.max(axis=1)) >= 3
    is_far = np.isfinite(low) & (state.base == "e") & is_many
    far = np.maximum(0, np.where(is_far, -low, 0) * FAR_ERROR - ERROR)
    for term, w, is_gone, is_maybe, far_error in zip(state.terms, weight[..., None], gone[..., None], maybe[..., None], far[..., None]):
        lo, hi, nan = term.payload.bounds()
        finite = np.isfinite(lo) & np.isfinite(hi) & ~nan
        # A payload that is surely NaN, or surely one infinity, enters the mean with this value. The result is unknown
        # if a payload is only possibly NaN or infinite, or if the mean may leave out a term whose payload is not
        # finite.
        point = (lo > hi) | ((lo == hi) & ~nan)
        anything |= ~is_gone & ~finite & (~point | is_maybe)
        middle = np.where(finite, lo / 2 + hi / 2, np.where(lo > hi, np.nan, lo))
        width = np.where(finite, hi / 2 - lo / 2, 0)
        here = np.where(finite & ~is_gone, np.abs(middle) + width, 0)
        center += np.where(is_gone, 0, w * middle)
        size += w * here
        error += np.where(is_gone, 0, w * width) + np.where(is_maybe, w * here, 0) + w * here * far_error
        largest = np.maximum(largest, here)
    spread = np.expm1(2 * np.minimum(slack, WIDEST) * np.log(2))[:, None]
    radius = error + size * (ERROR + spread) + SMALLEST
    # Accumulators are not normalised (docs/Dialect.md, the ends of N7), so sums beyond LARGEST may overflow.
    anything |= largest * count[:, None] > LARGEST
    finite = np.isfinite(center)
    known = ~np.isnan(center)
    lo = np.where(finite, f32_down(np.where(finite, center - radius, 0)), np.where(known, center, INF))
    hi = np.where(finite, f32_up(np.where(finite, center + radius, 0)), np.where(known, center, -INF))
    return Floats.between(np.where(anything, -INF, lo), np.where(anything, INF, hi), ~known | anything)
