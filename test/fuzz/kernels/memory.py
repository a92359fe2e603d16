"""Tensors of the interpreter: cells with bounds, read and written under masks."""

from __future__ import annotations

import copy

import floats
import formats
import integers
import numpy as np
from contents import dtype_of
from floats import Floats
from integers import Bools, Ints
from syntax import Call, Kernel


class Cells:
    """The elements of one tensor.

    Args:
        dtype: a storage dtype.
        initial: the contents before the call, in that dtype.
        moved: True if the kernel only moves elements. Their bits are then stored as integers.
        of_variable: True if the dtype was bound to a dtype variable. If a kernel only moves such elements, a stored
            infinity of f8e5m2 may stay one. Other stores saturate it.
    """

    def __init__(self, dtype: str, initial: np.ndarray, moved: bool = False, of_variable: bool = False) -> None:
        self.keeps_infinities = of_variable and dtype == "f8e5m2"
        self.moved = f"i{initial.dtype.itemsize}" if moved else ""
        self.dtype = dtype = "i64" if moved else dtype
        initial = self._seen(initial)
        self.shape = initial.shape
        self.initial = initial
        values = formats.widen(initial, dtype)
        if formats.is_float(dtype):
            nan = np.isnan(values)
            self.lo, self.hi, self.nan = np.where(nan, np.inf, values), np.where(nan, -np.inf, values), nan
        else:
            self.v, self.unknown = values.astype(np.int64), np.zeros(self.shape, bool)
        # Masks of elements that were surely written, and of those that possibly were.
        self.written = np.zeros(self.shape, bool)
        self.touched = np.zeros(self.shape, bool)

    def _seen(self, array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array).view(self.moved) if self.moved else array

    def parted(self, group: int, by_member: bool) -> Cells:
        """Views each row as groups of `group` cells, in the shape [..., groups, members], or with `by_member` [...,
        members, groups]."""
        made = copy.copy(self)
        for name in ("lo", "hi", "nan", "v", "unknown", "written", "touched"):
            if hasattr(self, name):
                view = getattr(self, name).reshape((*self.shape[:-1], -1, group))  # contiguous, so this does not copy
                setattr(made, name, view.swapaxes(-1, -2) if by_member else view)
        made.shape = made.written.shape
        return made

    def sliced(self, begin: int, end: int) -> Cells:
        """Returns the cells in [begin, end) of each row. The result has no cells if rows are shorter than `end`."""
        made = copy.copy(self)
        if end > self.shape[-1]:
            begin = end = 0
        for name in ("lo", "hi", "nan", "v", "unknown", "written", "touched"):
            if hasattr(self, name):
                setattr(made, name, getattr(self, name)[..., begin:end])  # a view
        made.shape = made.written.shape
        return made

    # -- Access ------------------------------------------------------------------------------------------------------

    def read(self, index: tuple[np.ndarray, ...]) -> Floats | Ints | Bools:
        if formats.is_float(self.dtype):
            return Floats.between(self.lo[index], self.hi[index], self.nan[index])
        if self.dtype == "bool":
            return Bools(self.v[index].astype(bool), self.unknown[index])
        return Ints(self.v[index], self.unknown[index])

    def write(self, index: tuple[np.ndarray, ...], value: Floats | Ints | Bools, surely: np.ndarray) -> None:
        """Writes one row of cells for each row of the grid. Rows outside `surely` possibly write, so their cells may
        also keep the old value."""
        if self.dtype in ("i8", "u8"):  # a float is rounded to the nearest integer
            low, high = formats.limits(self.dtype)
            value = floats.to_byte(value, low, high) if isinstance(value, Floats) else Ints(np.clip(value.v, low, high), value.unknown)
        if isinstance(value, Floats):
            value = value.map(lambda part: part) if value.v is None else value
            lo, hi, nan = value.bounds()
            only_nan = lo > hi
            is_low, is_high = (self.keeps_infinities & (bound == limit) & ~only_nan for bound, limit in ((lo, -np.inf), (hi, np.inf)))
            lo = np.where(only_nan, np.inf, formats.round_to(self.dtype, np.where(only_nan, 0, lo)))
            hi = np.where(only_nan, -np.inf, formats.round_to(self.dtype, np.where(only_nan, 0, hi)))
            lo, hi = np.where(is_low, -np.inf, lo), np.where(is_high, np.inf, hi)
            if self.dtype == "f4e2m1":  # the format has no NaN; a store writes 6
                hi = np.where(nan, 6.0, hi)
                lo, nan = np.where(only_nan, 6.0, lo), np.zeros(nan.shape, bool)
            new = Floats(None, lo, hi, nan)
            if not surely.all():
                old = Floats(None, self.lo[index], self.hi[index], self.nan[index])
                certain = surely.reshape(surely.shape + (1,) * (lo.ndim - surely.ndim))
                new = floats.select(Bools(np.ones(lo.shape, bool), np.broadcast_to(~certain, lo.shape)), new, old)
            self.lo[index], self.hi[index], self.nan[index] = new.bounds()
        else:
            old_v, old_unknown = self.v[index], self.unknown[index]
            certain = np.broadcast_to(surely.reshape(surely.shape + (1,) * (old_v.ndim - surely.ndim)), old_v.shape)
            v = value.v.astype(np.int64)
            if self.dtype in formats.WIDTHS and self.dtype != "u8":
                v = integers.wrap(v, formats.WIDTHS[self.dtype])
            unknown = np.zeros(v.shape, bool) if value.unknown is None else value.unknown
            self.v[index] = v
            self.unknown[index] = unknown | (~certain & (old_unknown | (old_v != v)))
        touched = np.broadcast_to(surely.reshape(surely.shape + (1,) * (self.touched[index].ndim - surely.ndim)), self.touched[index].shape)
        self.written[index] |= touched
        self.touched[index] = True

    def spoil(self, index: tuple) -> None:
        """Marks that these cells may hold anything."""
        if formats.is_float(self.dtype):
            self.lo[index], self.hi[index], self.nan[index] = -np.inf, np.inf, True
        else:
            self.unknown[index] = True
        self.touched[index] = True

    # -- Afterwards --------------------------------------------------------------------------------------------------

    def wrong(self, got: np.ndarray) -> np.ndarray:
        """Returns a mask of the elements of `got` that are not allowed."""
        got = self._seen(got)
        bits, before = formats.bits(got).reshape(self.shape), formats.bits(self.initial).reshape(self.shape)
        same = bits == before
        value = formats.widen(got, self.dtype)
        if formats.is_float(self.dtype):
            fits = self._fits(value)
        elif self.dtype == "bool":
            fits = (bits <= 1) & (self.unknown | (value == self.v.astype(bool)))
        else:
            fits = self.unknown | (value == self.v)
        return np.where(self.touched, ~(fits | (same & ~self.written)), ~same)

    def _fits(self, value: np.ndarray) -> np.ndarray:
        is_nan = np.isnan(value)
        inside = (value >= self.lo) & (value <= self.hi)
        # -0.0 is below 0.0
        sign = np.signbit(value)
        below = sign & (self.lo == 0) & ~np.signbit(self.lo)
        above = ~sign & (self.hi == 0) & np.signbit(self.hi)
        return np.where(is_nan, self.nan, inside & ~((value == 0) & (below | above)))

    def expected(self, position: tuple[int, ...]) -> str:
        """Describes the values that the element at `position` may have."""
        if not self.touched[position]:
            return f"untouched: bits {formats.bits(self.initial).reshape(self.shape)[position]:#x}"
        if not formats.is_float(self.dtype):
            return "anything" if self.unknown[position] else str(self.v[position])
        lo, hi, nan = self.lo[position], self.hi[position], self.nan[position]
        if lo > hi:
            return "nan"
        text = f"{lo!r}" if lo == hi and np.signbit(lo) == np.signbit(hi) else f"{lo!r} .. {hi!r}"
        return text.replace("np.float64", "") + (" or nan" if nan else "")


def cells_of(kernel: Kernel, call: Call, made: dict[str, np.ndarray]) -> dict[str, Cells]:
    """Returns the cells of each argument in memory. `made` has their contents before the call."""
    cells = {t.name: Cells(dtype_of(t, call), made[t.name], t.dtype == "M", t.dtype in kernel.variables) for t in kernel.tensors if t.name in made}
    cells |= {name: Cells("i32", made[name]) for name in call.held}
    return cells | {written: cells[read] for written, read in call.aliases.items()}
