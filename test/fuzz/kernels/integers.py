"""Arrays of integers and booleans. Each element is either known exactly, or may be anything."""

from __future__ import annotations

import numpy as np


class Ints:
    """int64 values. `unknown` is a mask of the values that may be anything; None means that all are known."""

    __slots__ = ("v", "unknown")

    def __init__(self, v: np.ndarray, unknown: np.ndarray | None = None) -> None:
        self.v = v
        self.unknown = unknown if unknown is not None and unknown.any() else None


class Bools:
    """Booleans. `unknown` is a mask of the values that may be true or false; None means that all are known."""

    __slots__ = ("v", "unknown")

    def __init__(self, v: np.ndarray, unknown: np.ndarray | None = None) -> None:
        self.v = v
        self.unknown = unknown if unknown is not None and unknown.any() else None

    @property
    def surely(self) -> np.ndarray:
        return self.v if self.unknown is None else self.v & ~self.unknown

    @property
    def perhaps(self) -> np.ndarray:
        return self.v if self.unknown is None else self.v | self.unknown


def either(*parts: np.ndarray | None) -> np.ndarray | None:
    """Returns the union of masks of unknown elements. Returns None if all masks are None."""
    known = [part for part in parts if part is not None]
    result = known[0] if known else None
    for part in known[1:]:
        result = result | part
    return result


def wrap(v: np.ndarray, width: int) -> np.ndarray:
    """Wraps values in two's complement."""
    if width == 64:
        return v
    half = np.int64(1 << (width - 1))
    return ((v + half) & np.int64((1 << width) - 1)) - half


def floor_divide(a: np.ndarray, b: np.ndarray, remainder: bool) -> np.ndarray:
    """Returns the quotient rounded down, or with `remainder` the remainder. a // 0 is a, and a % 0 is 0. The smallest
    integer divided by -1 wraps."""
    safe = np.where((b == 0) | (b == -1), 1, b)
    if remainder:
        return np.where((b == 0) | (b == -1), 0, np.mod(a, safe))
    return np.where(b == 0, a, np.where(b == -1, -a, np.floor_divide(a, safe)))


def shift(a: np.ndarray, b: np.ndarray, width: int, left: bool) -> np.ndarray:
    """Shifts values. Amounts are unsigned. An amount of at least `width` gives 0, or copies of the sign for a right
    shift."""
    amount = np.where((b < 0) | (b >= width), width, b)
    most = np.minimum(amount, width - 1)
    return np.where(amount == width, 0, np.left_shift(a, most)) if left else np.right_shift(a, most)


def binary(op: str, a: Ints, b: Ints, width: int) -> Ints:
    unknown = either(a.unknown, b.unknown)
    if op in ("shl", "shr"):
        return Ints(wrap(shift(a.v, b.v, width, op == "shl"), width), unknown)
    if op in ("floordiv", "mod"):
        return Ints(wrap(floor_divide(a.v, b.v, op == "mod"), width), unknown)
    functions = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or,
                 "xor": np.bitwise_xor, "min": np.minimum, "max": np.maximum}  # fmt: skip
    return Ints(wrap(functions[op](a.v, b.v), width), unknown)


def compare(op: str, a: Ints, b: Ints) -> Bools:
    functions = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal}
    return Bools(functions[op](a.v, b.v), either(a.unknown, b.unknown))


def select(condition: Bools, a: Ints, b: Ints) -> Ints:
    unknown = either(None if a.unknown is None else condition.perhaps & a.unknown,
                     None if b.unknown is None else ~condition.surely & b.unknown,
                     None if condition.unknown is None else condition.unknown & (a.v != b.v))  # fmt: skip
    return Ints(np.where(condition.v, a.v, b.v), unknown)


def reduce(kind: str, x: Ints, width: int) -> Ints:
    functions = {"add": np.sum, "max": np.max, "min": np.min}
    if x.v.shape[-1] == 0:
        return Ints(np.full(x.v.shape[:-1], {"add": 0, "max": -(2 ** (width - 1)), "min": 2 ** (width - 1) - 1}[kind], np.int64))
    unknown = x.unknown.any(axis=-1) if x.unknown is not None else None
    return Ints(wrap(functions[kind](x.v, axis=-1), width), unknown)


def scan(kind: str, x: Ints, width: int) -> Ints:
    """Scans the last axis."""
    functions = {"add": np.add, "max": np.maximum, "min": np.minimum}
    unknown = np.logical_or.accumulate(x.unknown, axis=-1) if x.unknown is not None else None
    return Ints(wrap(functions[kind].accumulate(x.v, axis=-1), width), unknown)


def index_of_extreme(x: Ints, largest: bool) -> Ints:
    """Returns the index of the first largest or smallest element of each row. Returns 0 for rows without elements."""
    if x.v.shape[-1] == 0:
        return Ints(np.zeros(x.v.shape[:-1], np.int64))
    unknown = x.unknown.any(axis=-1) if x.unknown is not None else None
    return Ints((x.v.argmax(axis=-1) if largest else x.v.argmin(axis=-1)).astype(np.int64), unknown)


def greatest(x: Ints, at: int) -> tuple[Ints, Ints]:
    """Sorts each row in descending order, equal elements by index. Returns the element at position `at` (0: the
    largest), and its index in the unsorted row."""
    unknown = x.unknown.any(axis=-1) if x.unknown is not None else None
    index = np.argsort(-x.v.astype(np.int64), axis=-1, kind="stable")[..., at]
    value = np.take_along_axis(x.v, index[..., None], -1)[..., 0]
    return Ints(value, unknown), Ints(index.astype(np.int64), unknown)


# -- Booleans --------------------------------------------------------------------------------------------------------------


def any_or_all(kind: str, x: Bools) -> Bools:
    """Reduces the last axis. `kind` is "any" or "all"."""
    function = np.any if kind == "any" else np.all
    surely, perhaps = function(x.surely, axis=-1), function(x.perhaps, axis=-1)
    return Bools(surely, perhaps & ~surely)


def logic(op: str, a: Bools, b: Bools) -> Bools:
    if op == "xor":
        return Bools(a.v ^ b.v, either(a.unknown, b.unknown))
    if op == "and":
        surely, perhaps = a.surely & b.surely, a.perhaps & b.perhaps
    else:
        surely, perhaps = a.surely | b.surely, a.perhaps | b.perhaps
    return Bools(surely, perhaps & ~surely)


def negate(a: Bools) -> Bools:
    return Bools(~a.v, a.unknown)


def compare_bools(op: str, a: Bools, b: Bools) -> Bools:
    return compare(op, Ints(a.v.astype(np.int64), a.unknown), Ints(b.v.astype(np.int64), b.unknown))


def select_bools(condition: Bools, a: Bools, b: Bools) -> Bools:
    chosen = select(condition, Ints(a.v.astype(np.int64), a.unknown), Ints(b.v.astype(np.int64), b.unknown))
    return Bools(chosen.v.astype(bool), chosen.unknown)
