"""Rotary embedding of a result: the argument `rope` of merges.

A merge with `rope` turns pairs of elements of each row by the angles of the row's position, before the row is stored or
quantised. One launch reads each part of a state once, and writes the row once. Packages do not contain these kernels:
the first call needs the compiler, or a cache on disk that has the kernel. `mlafix.warmup` of such a call compiles it
ahead.

The examples begin with:

    >>> import numpy as np
    >>> from mlafix import ops
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, Tuple

from .._launcher.arguments import check_integer, wrong
from .._launcher.arrays import check_dtype, check_integers, evenly_viewed
from ..errors import ArgumentError
from ._types import Array

__all__ = ["Rope"]


class Turned(NamedTuple):
    """The rotation of a call's rows: the kernel's arguments, the number of rotated elements in a row, and the index of
    the first."""

    arguments: Tuple[Any, Any, float]
    turned: int
    first: int


@dataclasses.dataclass(frozen=True, eq=False)
class Rope:
    """Rotary embedding of R elements of each row of a result, forward or back.

        a, b = a * cos - b * sin, b * cos + a * sin    for each pair; with `inverse` -sin for sin

    DeepSeek-V4's attention turns the last 64 elements of its output back before the projection. Arithmetic is f32; the
    row is rounded once, when it is stored, or with `quantize_from="output"` before it is quantised. A position that is
    negative or past the table's end makes the R elements zeros. A turned row is never a bitwise copy of a side, even if
    the other side is empty (N4). An empty row stays zeros (N3).

    Args:
        positions: i64 or i32, each token's row in `table`: `[n]`, or `[B, L]` for `combine_split_kv`.
        table: `[m, 2, R / 2]`, or `[m, R]` with the cosines before the sines as engines keep it; f32, bf16 or f16.
        interleaved: True if pairs are neighbours (x[2 i], x[2 i + 1]). Otherwise they are (x[i], x[R / 2 + i]) of the R
            elements; then R must be a power of two, and D and `start` must be multiples of R.
        inverse: if True, rotates in the opposite direction.
        start: the first of the R elements, even. None: they are the last ones.

    Example:
        >>> rows, lse = np.full((1, 1, 4), 2, np.float32), np.zeros((1, 1), np.float32)
        >>> table = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)  # position 1 is a quarter of a turn
        >>> out, _ = ops.merge_attn_states(rows, lse, rows, lse, rope=ops.Rope(np.array([1]), table, inverse=True))
        >>> out.tolist()
        [[[2.0, 2.0, 2.0, -2.0]]]
    """

    positions: Array
    table: Array
    _: dataclasses.KW_ONLY
    interleaved: bool = False
    inverse: bool = False
    start: int | None = None

    def place(self, rows: Tuple[Any, ...]) -> Turned:
        """Returns the rotation of rows `[…, H, D]`. Raises ArgumentError if it does not fit them."""
        dim = int(rows[-1])  # The kernel is compiled for this size, so it is a number even for tensors without memory.
        check_integers(self.positions, "Rope.positions")
        check_dtype(self.table, "Rope.table")
        halves = self._halves()
        turned = int(halves.shape[2]) * 2
        if self.start is not None:
            check_integer("Rope.start", self.start)
        first = dim - turned if self.start is None else int(self.start)
        if not 0 < turned <= dim:
            raise wrong("Rope.table", f"2 to {dim} values in a row, since a head has {dim} elements", turned)
        if not 0 <= first <= dim - turned:
            raise self._wrong("start", f"an element from 0 to {dim - turned}", first)
        step = 2 if self.interleaved else turned
        if not self.interleaved and turned & (turned - 1):
            raise wrong("Rope.table", "a number of values in a row that is a power of two, unless interleaved=True", turned)
        if first % step or dim % step:
            raise self._wrong("start", f"a multiple of {step}, in rows whose size is also one", f"{first} in rows of {dim}")
        return Turned((self.positions, halves, -1.0 if self.inverse else 1.0), turned, first)

    def check_groups(self, dim: int, groups: int) -> None:
        """Raises ArgumentError unless the kernel can exchange the pairs of a row of `dim` elements that has `groups`
        groups."""
        size, step = int(dim // groups), 2 if self.interleaved else int(self._halves().shape[2]) * 2
        if size & (size - 1) and size % step:
            raise wrong("out_format", f"groups of a power of two or a multiple of {step} elements beside Rope", f"groups of {size}")

    def _halves(self) -> Any:
        """Returns the cosines and sines as `[m, 2, R / 2]`, over the same memory."""
        shape = tuple(getattr(self.table, "shape", ()))
        if len(shape) == 3 and shape[1] == 2:
            return self.table
        if len(shape) != 2 or shape[1] % 2 or not shape[1]:
            raise wrong("Rope.table", "shape [m, 2, R / 2] or [m, R]", list(shape))
        return evenly_viewed(self.table, "Rope.table", (shape[0], 2, shape[1] // 2), "contiguous rows")

    def _wrong(self, field: str, expected: str, got: Any) -> ArgumentError:
        return wrong(f"Rope.{field}", expected, got)


def check_rope(value: Any) -> None:
    """Raises ArgumentError unless the value is a `Rope`."""
    if type(value) is not Rope:
        raise wrong("rope", "an instance of Rope, or None", type(value).__qualname__)
