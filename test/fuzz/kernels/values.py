"""Changes the shapes of values, which are floats or integers. A value has one number, or one row of elements, for each
row of the grid."""

from __future__ import annotations

from typing import Any

import floats
import integers
import numpy as np
from floats import Floats
from integers import Bools, Ints

Value = Any


def shape_of(value: Value) -> tuple[int, ...]:
    return value.shape if isinstance(value, Floats) else value.v.shape


def map_parts(value: Value, f: Any) -> Value:
    if isinstance(value, Floats):
        return value.map(f)
    return type(value)(f(value.v), None if value.unknown is None else f(value.unknown))


def widest_of(*values: Value) -> tuple[int, ...]:
    return max((shape_of(value) for value in values), key=lambda shape: (len(shape), shape[-1]))


def spread_to(value: Value, shape: tuple[int, ...]) -> Value:
    """Spreads a number over a row, or a row with one element per group over the elements of the groups."""
    if shape_of(value) == shape:
        return value

    def spread(part: np.ndarray) -> np.ndarray:
        if part.ndim < len(shape):
            part = part[:, None]
        elif part.shape[-1] not in (1, shape[-1]):
            part = np.repeat(part, shape[-1] // part.shape[-1], axis=-1)
        return np.broadcast_to(part, shape)

    return map_parts(value, spread)


def stacked(values: list[Value]) -> Value:
    """Joins values that have one number per row of the grid. The result has one row of elements per row of the grid."""
    if isinstance(values[0], Floats):
        return floats.stacked(values)
    unknown = None
    if any(value.unknown is not None for value in values):
        unknown = np.stack([np.zeros(value.v.shape, bool) if value.unknown is None else value.unknown for value in values], axis=-1)
    return type(values[0])(np.stack([value.v for value in values], axis=-1), unknown)


def take(value: Value, rows: np.ndarray) -> Value:
    return map_parts(value, lambda part: part[rows])


def anything_where(rows: np.ndarray, value: Value) -> Value:
    unknown = spread_to(Bools(rows), shape_of(value)).v
    if isinstance(value, Floats):
        return floats.select(Bools(unknown), Floats.anything(value.shape), value)
    return type(value)(value.v, integers.either(value.unknown, unknown))


def zero_like(value: Value) -> Value:
    return Floats(np.zeros(value.shape)) if isinstance(value, Floats) else Ints(np.zeros(value.v.shape, np.int64))
