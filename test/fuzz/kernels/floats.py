"""Floats with bounds: every value is the set of f32 numbers that a correct implementation may compute.

A value is a *point* (one number with exact bits, except for a NaN's payload) or an interval between two f32 numbers, with
or without NaN. IEEE 754 arithmetic on points gives points: f32 results are f64 results rounded once, which is exact.
Approximate functions widen their results by their error (`approximate`, `widened`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from formats import LARGEST, TINY, f32, f32_down, f32_up
from integers import Bools, Ints

INF = np.inf

class Floats:
    """An array of values. If all values are points (NaN is one), only `v` is set. Otherwise `lo` and `hi` are bounds,
    and `nan` marks the values that may be NaN.

    An interval whose lower bound exceeds its upper bound contains only NaN. Bounds distinguish the signs of zero.
    """

    __slots__ = ("v", "lo", "hi", "nan")

    def __init__(self, v: np.ndarray | None, lo: np.ndarray | None = None, hi: np.ndarray | None = None, nan: np.ndarray | None = None) -> None:
        self.v, self.lo, self.hi, self.nan = v, lo, hi, nan

    @staticmethod
    def between(lo: np.ndarray, hi: np.ndarray, nan: np.ndarray) -> Floats:
        """Returns values with these bounds. Returns points if lower and upper bounds are equal everywhere."""
        only_nan = lo > hi
        if np.all(only_nan | ((lo == hi) & ~nan & (np.signbit(lo) == np.signbit(hi)))):
            return Floats(np.where(only_nan, np.nan, lo))
        return Floats(None, lo, hi, nan)

    @staticmethod
    def anything(shape: tuple[int, ...]) -> Floats:
        return Floats(None, np.full(shape, -INF), np.full(shape, INF), np.ones(shape, bool))

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.v if self.v is not None else self.lo).shape

    def bounds(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self.v is None:
            return self.lo, self.hi, self.nan
        nan = np.isnan(self.v)
        return np.where(nan, INF, self.v), np.where(nan, -INF, self.v), nan

    def map(self, f: Callable[[np.ndarray], np.ndarray]) -> Floats:
        """Applies `f`, which changes the shape of an array, to `v`, `lo`, `hi` and `nan`."""
        if self.v is not None:
            return Floats(f(self.v))
        return Floats(None, f(self.lo), f(self.hi), f(self.nan))


def stacked(values: list[Floats]) -> Floats:
    """Stacks values along a new last axis."""
    if all(value.v is not None for value in values):
        return Floats(np.stack([value.v for value in values], axis=-1))
    return Floats(None, *(np.stack(parts, axis=-1) for parts in zip(*(value.bounds() for value in values))))


def lower(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where((a < b) | ((a == b) & np.signbit(a)), a, b)


def upper(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where((a > b) | ((a == b) & ~np.signbit(a)), a, b)


def spread(parts: list[Floats]) -> tuple[list[tuple[np.ndarray, ...]], np.ndarray]:
    """Returns the bounds of each operand. Also returns a mask, in the shape to which the operands broadcast, of the
    elements where some operand can only be NaN."""
    all_bounds = [part.bounds() for part in parts]
    shape = np.broadcast_shapes(*(lo.shape for lo, _, _ in all_bounds))
    never = np.zeros(shape, bool)
    for lo, hi, _ in all_bounds:
        never = never | (lo > hi)
    return all_bounds, never


def monotone(function: Callable[..., np.ndarray], *parts: Floats, nan: np.ndarray | bool = False) -> Floats:
    """Applies a monotone function that rounds to f32. The result's bounds are function values at bounds of the
    operands. `nan` marks elements that may also be NaN."""
    if all(part.v is not None for part in parts):
        return Floats(function(*(part.v for part in parts)))
    all_bounds, never = spread(list(parts))
    lo = hi = None
    may = np.zeros(never.shape, bool) | nan
    for corner in itertools.product(*((b[0], b[1]) for b in all_bounds)):
        value = function(*corner)
        is_nan = np.isnan(value)
        may = may | is_nan
        low, high = np.where(is_nan, INF, value), np.where(is_nan, -INF, value)
        lo, hi = (low, high) if lo is None else (lower(lo, low), upper(hi, high))
    for b in all_bounds:
        may = may | b[2]
    assert lo is not None and hi is not None
    return Floats.between(np.where(never, INF, lo), np.where(never, -INF, hi), may | never)


def approximate(true: np.ndarray, error: tuple[np.ndarray | float, np.ndarray | float]) -> Floats:
    """Returns bounds around the true values (f64), at a distance of (relative, absolute) `error`. Zeros, infinities and
    NaN are exact."""
    relative, absolute = error
    radius = np.abs(true) * relative + absolute
    is_nan = np.isnan(true)
    exact = (true == 0) | np.isinf(true)
    lo = np.where(exact, true, f32_down(true - radius))
    hi = np.where(exact, true, f32_up(true + radius))
    return Floats.between(np.where(is_nan, INF, lo), np.where(is_nan, -INF, hi), is_nan)


def hull(*parts: Floats) -> Floats:
    """Returns the smallest interval that contains all `parts`, element by element."""
    lo, hi, nan = parts[0].bounds()
    for part in parts[1:]:
        low, high, other = part.bounds()
        lo, hi, nan = lower(lo, low), upper(hi, high), nan | other
    return Floats.between(lo, hi, nan)


def select(condition: Bools, a: Floats, b: Floats) -> Floats:
    c, unknown = condition.v, condition.unknown
    if a.v is not None and b.v is not None:
        chosen = Floats(np.where(c, a.v, b.v))
    else:
        chosen = Floats.between(*(np.where(c, x, y) for x, y in zip(a.bounds(), b.bounds())))
    if unknown is None or not unknown.any():
        return chosen
    either = hull(a, b)
    return Floats.between(*(np.where(unknown, x, y) for x, y in zip(either.bounds(), chosen.bounds())))


# -- Arithmetic ----------------------------------------------------------------------------------------------------------


def add(a: Floats, b: Floats) -> Floats:
    return monotone(lambda x, y: f32(x + y), a, b)


def sub(a: Floats, b: Floats) -> Floats:
    return monotone(lambda x, y: f32(x - y), a, b)


def mul(a: Floats, b: Floats) -> Floats:
    if a.v is not None and b.v is not None:
        return Floats(f32(a.v * b.v))
    (alo, ahi, _), (blo, bhi, _) = a.bounds(), b.bounds()
    inf_a, inf_b = np.isinf(alo) | np.isinf(ahi), np.isinf(blo) | np.isinf(bhi)
    nan = (inf_a & (blo <= 0) & (bhi >= 0)) | (inf_b & (alo <= 0) & (ahi >= 0))
    one = (alo == ahi) & (blo == bhi)

    def product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Multiplies two bounds. Zero times an infinite bound gives zero here; the caller allows NaN in addition."""
        exact = x * y
        return f32(np.where(np.isnan(exact) & ~one, np.copysign(0.0, np.copysign(1.0, x) * np.copysign(1.0, y)), exact))

    return monotone(product, a, b, nan=nan)


def divide(a: Floats, b: Floats) -> Floats:
    """Returns the correctly rounded quotient."""
    nan: np.ndarray | bool = False
    if a.v is None or b.v is None:
        (alo, ahi, _), (blo, bhi, _) = a.bounds(), b.bounds()
        with_zero = (blo <= 0) & (bhi >= 0)
        nan = with_zero & (alo <= 0) & (ahi >= 0) | ((np.isinf(alo) | np.isinf(ahi)) & (np.isinf(blo) | np.isinf(bhi)))
        # An interval with an infinite bound also contains finite numbers. The quotient of two infinite bounds (NaN)
        # does not bound the quotients of these finite numbers, so each operand is also taken with finite bounds.
        ends = itertools.product((a, _finite(a)), (b, _finite(b)))
        lo, hi, may = hull(*(monotone(lambda x, y: f32(x / y), x, y, nan=nan) for x, y in ends)).bounds()
        # If a divisor may be a zero of either sign, the quotient may be either infinity.
        wide = with_zero & (lo <= hi) & np.signbit(blo) & ~np.signbit(bhi)
        return Floats.between(np.where(wide, -INF, lo), np.where(wide, INF, hi), may)
    return Floats(f32(a.v / b.v))


def _finite(x: Floats) -> Floats:
    """Returns the interval with its infinite bounds replaced by the largest finite numbers. Points are unchanged."""
    if x.v is not None:
        return x
    lo, hi, nan = x.bounds()
    more = lo < hi
    return Floats(None, np.where(more, np.maximum(lo, -LARGEST), lo), np.where(more, np.minimum(hi, LARGEST), hi), nan)


def widened(x: Floats, error: tuple[np.ndarray | float, np.ndarray | float]) -> Floats:
    """Widens bounds (f64) by the (relative, absolute) `error` on each side."""
    if x.v is not None:
        return approximate(x.v, error)
    relative, absolute = error
    lo, hi, nan = x.bounds()
    down = np.where(np.isfinite(lo) & (lo != 0), f32_down(lo - np.abs(lo) * relative - absolute), lo)
    up = np.where(np.isfinite(hi) & (hi != 0), f32_up(hi + np.abs(hi) * relative + absolute), hi)
    only_nan = lo > hi
    return Floats.between(np.where(only_nan, INF, down), np.where(only_nan, -INF, up), nan)


def fma(a: Floats, b: Floats, c: Floats) -> Floats:
    """Returns the fused multiply-add a * b + c, rounded once. A product of two f32 is exact in f64, so the f64
    neighbours of the sum bound the result."""

    def bound(towards: float) -> Callable[..., np.ndarray]:
        def function(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
            total = x * y + z
            inexact = ((total - x * y) != z) | ((total - z) != x * y)
            return f32(np.where(np.isfinite(total) & inexact, np.nextafter(total, towards), total))

        return function

    exact = hull(monotone(bound(-INF), a, b, c), monotone(bound(INF), a, b, c))
    if a.v is not None and b.v is not None and c.v is not None:
        return exact
    # If an operand is an interval, the product is bounded first. A product too small for f32 must not be rounded to
    # zero before the sum.
    product = _unless_zero(mul(a, b), a, b)
    loose = add(widened(product, (2.0**-23, TINY)), c)
    # Nor is a product beyond the range of f32 rounded to infinity before the sum. Infinite bounds of `product` do not
    # tell how large the exact product is, so the result may then be anything.
    low, high, _ = product.bounds()
    beyond = np.broadcast_to((np.isinf(low) | np.isinf(high)) & (low <= high), loose.shape)
    loose = select(Bools(beyond), Floats.anything(loose.shape), loose)
    points = np.ones(loose.shape, bool)
    for part in (a, b, c):
        lo, hi, nan = part.bounds()
        points = points & ((lo > hi) | ((lo == hi) & ~nan))
    return select(Bools(points), exact, loose)


def _unless_zero(product: Floats, a: Floats, b: Floats) -> Floats:
    """If a bound of the product is zero, moves the bound away from zero by TINY, since the exact product may be closer
    to zero than any f32. Keeps the bound if an operand is zero, since the product is then exact."""
    lo, hi, nan = product.bounds()
    zero = np.zeros(lo.shape, bool)
    for part in (a, b):
        low, high, _ = part.bounds()
        zero = zero | ((low == 0) & (high == 0))
    return Floats.between(np.where(~zero & (lo == 0), -TINY, lo), np.where(~zero & (hi == 0), TINY, hi), nan)


def neg(a: Floats) -> Floats:
    return Floats(-a.v) if a.v is not None else Floats(None, -a.hi, -a.lo, a.nan)


def absolute(a: Floats) -> Floats:
    if a.v is not None:
        return Floats(np.abs(a.v))
    lo, hi, nan = a.bounds()
    across = (lo < 0) & (hi > 0) | ((lo == 0) & (hi == 0))
    low = np.where(across, 0.0, np.minimum(np.abs(lo), np.abs(hi)))
    high = np.maximum(np.abs(lo), np.abs(hi))
    only_nan = lo > hi
    return Floats.between(np.where(only_nan, INF, low), np.where(only_nan, -INF, high), nan)


def extreme(a: Floats, b: Floats, largest: bool) -> Floats:
    """Returns the minimum, or with `largest` the maximum. NaN in an operand gives NaN. For zeros of different signs,
    either zero is allowed."""
    pick = np.maximum if largest else np.minimum
    result = monotone(pick, a, b)
    (alo, ahi, _), (blo, bhi, _) = a.bounds(), b.bounds()
    zeros = (alo <= 0) & (ahi >= 0) & (blo <= 0) & (bhi >= 0)
    lo, hi, nan = result.bounds()
    either = zeros & ((lo == 0) | (hi == 0))
    if not either.any():
        return result
    return Floats.between(np.where(either & (lo == 0), -0.0, lo), np.where(either & (hi == 0), 0.0, hi), nan)


def copysign(x: Floats, sign: Floats) -> Floats:
    lo, hi, nan = sign.bounds()
    known = ~nan & (lo <= hi) & (np.signbit(lo) == np.signbit(hi))
    size = absolute(x)
    chosen = select(Bools(np.signbit(lo)), neg(size), size)
    return chosen if known.all() else select(Bools(np.broadcast_to(np.signbit(lo), chosen.shape), np.broadcast_to(~known, chosen.shape)), neg(size), size)


def reduce(kind: str, x: Floats) -> Floats:
    """Reduces the last axis by a fixed binary tree (N9): element 2i is combined with 2i + 1, and missing elements are
    neutral."""
    combine = add if kind == "add" else lambda a, b: extreme(a, b, kind == "max")
    if x.shape[-1] == 0:
        return Floats(np.full(x.shape[:-1], {"add": 0.0, "max": -np.inf, "min": np.inf}[kind]))
    while x.shape[-1] > 1:
        size = x.shape[-1]
        pairs = combine(x.map(lambda part: part[..., 0 : size - 1 : 2]), x.map(lambda part: part[..., 1:size:2]))
        if size % 2:
            last = x.map(lambda part: part[..., -1:])
            x = join([pairs, last])
        else:
            x = pairs
    return x.map(lambda part: part[..., 0])


def scan(kind: str, x: Floats) -> Floats:
    """Scans an array [rows, groups, elements]. Element i of a group becomes the reduction of all earlier groups of the
    row and of the group's elements 0 to i."""
    combine = add if kind == "add" else lambda a, b: extreme(a, b, kind == "max")
    for axis in (2, 1):
        index, bit = np.arange(x.shape[axis]), 1
        while bit < len(index):
            last = np.where(index & bit, (index & -bit) - 1, 0)  # the last element of the preceding half
            before = x.map(lambda part: part[:, :, last] if axis == 2 else part[:, last, -1:])
            is_behind = np.reshape((index & bit) != 0, (1, -1) if axis == 2 else (-1, 1))
            x = select(Bools(np.broadcast_to(is_behind, x.shape)), combine(before, x), x)
            bit *= 2
    return x


def join(parts: list[Floats]) -> Floats:
    if all(part.v is not None for part in parts):
        return Floats(np.concatenate([part.v for part in parts], axis=-1))
    return Floats.between(*(np.concatenate(group, axis=-1) for group in zip(*(part.bounds() for part in parts))))


# -- Comparisons and conversions -----------------------------------------------------------------------------------------


def compare(op: str, a: Floats, b: Floats) -> Bools:
    """Compares floats. NaN makes every comparison false except !=. The result is unknown if the bounds overlap."""
    numpy_op = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal}[op]
    if a.v is not None and b.v is not None:
        return Bools(numpy_op(a.v, b.v))
    (alo, ahi, anan), (blo, bhi, bnan) = a.bounds(), b.bounds()
    never = (alo > ahi) | (blo > bhi)
    if op in ("gt", "ge"):
        (alo, ahi), (blo, bhi) = (blo, bhi), (alo, ahi)
    if op in ("lt", "gt"):
        surely, surely_not = ahi < blo, alo >= bhi
    elif op in ("le", "ge"):
        surely, surely_not = ahi <= blo, alo > bhi
    else:
        surely, surely_not = (alo == ahi) & (blo == bhi) & (alo == blo), (ahi < blo) | (bhi < alo)
        if op == "ne":
            surely, surely_not = surely_not, surely
    nan = anan | bnan
    if op == "ne":
        surely, surely_not = surely | never, surely_not & ~nan
    else:
        surely, surely_not = surely & ~nan, surely_not | never
    return Bools(surely & ~surely_not, ~(surely | surely_not))


def to_int(x: Floats, width: int) -> Ints:
    """Rounds towards zero and saturates; NaN becomes 0. The result is unknown if the two bounds give different
    integers."""
    lo, hi, nan = x.bounds()
    only_nan = lo > hi
    first, last = _saturated(np.where(only_nan, 0, lo), width), _saturated(np.where(only_nan, 0, hi), width)
    return Ints(first, (first != last) | (nan & ~only_nan & (first != 0)))


def _saturated(x: np.ndarray, width: int) -> np.ndarray:
    limit = 2.0 ** (width - 1)
    most = (1 << (width - 1)) - 1
    inside = np.where(np.abs(x) < limit, x, 0).astype(np.int64)
    return np.where(x >= limit, most, np.where(x <= -limit, -most - 1, inside))


def to_byte(x: Floats, low: int, high: int) -> Ints:
    """Rounds to the nearest integer, ties to even, and saturates; NaN becomes 0. The result is unknown if the two
    bounds give different integers."""
    lo, hi, nan = x.bounds()
    only_nan = lo > hi
    first, last = (np.clip(np.rint(np.where(only_nan, 0, end)), low, high).astype(np.int64) for end in (lo, hi))
    return Ints(first, (first != last) | (nan & ~only_nan & (first != 0)))


def index_of_extreme(x: Floats, largest: bool) -> Ints:
    """Returns for each row the index of its first NaN or, if it has none, of its first extreme element. Returns 0 for
    rows without elements. The index is unknown if an element of the row is not a point."""
    lo, hi, nan = x.bounds()
    if x.shape[-1] == 0:
        return Ints(np.zeros(x.shape[:-1], np.int64))
    points = (lo > hi) | (lo == hi) & ~nan
    size = np.where(nan, np.inf, lo if largest else -lo)  # rows with NaN use the mask `nan` below
    beyond = np.where(nan.any(axis=-1, keepdims=True), nan, size == size.max(axis=-1, keepdims=True))
    return Ints(beyond.argmax(axis=-1).astype(np.int64), ~points.all(axis=-1))


def greatest(x: Floats, at: int) -> tuple[Floats, Ints]:
    """Sorts each row in descending order. Returns the element at place `at` of the sorted row (0: the largest), and the
    index that this element has in the row. NaN comes before all numbers; equal elements are ordered by index. Both
    results may be anything if an element of the row is not a point."""
    lo, hi, nan = x.bounds()
    points = ((lo > hi) | (lo == hi) & ~nan).all(axis=-1)
    size = np.where(nan, np.inf, lo)
    index = np.lexsort((np.broadcast_to(np.arange(size.shape[-1]), size.shape), -size, ~nan), axis=-1)[..., at]
    value = np.take_along_axis(np.where(nan, np.nan, lo + 0.0), index[..., None], -1)[..., 0]
    found = select(Bools(points), Floats(value), Floats.anything(value.shape))
    return found, Ints(index.astype(np.int64), ~points)


def from_int(x: Ints) -> Floats:
    value = x.v.astype(np.float32).astype(np.float64)
    if x.unknown is None or not x.unknown.any():
        return Floats(value)
    top = 2.0**63
    return Floats.between(np.where(x.unknown, -top, value), np.where(x.unknown, top, value), np.zeros(value.shape, bool))


def from_bool(x: Bools) -> Floats:
    return select(x, Floats(np.ones(x.v.shape)), Floats(np.zeros(x.v.shape)))
