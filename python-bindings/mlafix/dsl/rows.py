"""Builds rows from numbers, and extracts elements from computed rows.

The elements of a row are distributed over lanes, and no operation of the dialect names a lane. Building and extracting
therefore use operations on whole rows: the index of each element (iota), selections, and reductions.
"""

from __future__ import annotations

import ast
import math
from typing import Any

from . import hints
from .context import Context
from .memory import Memory
from .types import Dim
from .values import Dyn, as_number, describe

# The most numbers in a row of numbers. Each element of the row selects among all numbers, which takes time.
MOST_IN_ROW = 64
# The dtypes of rows that are built from numbers or whose elements are extracted.
_NUMBERS = ("f32", "i32", "i64", "bool")
# A bound for the index of any element.
_MOST_INDEX = 2**31 - 1


class Rows:
    """Builds rows of numbers, and extracts elements of computed rows."""

    def __init__(self, context: Context, memory: Memory) -> None:
        self.ctx = context
        self.memory = memory

    # -- Rows of numbers ---------------------------------------------------------------------------------------------

    def of_numbers(self, values: list[Any], nodes: list[ast.expr], node: ast.AST) -> Dyn:
        """Returns a row whose elements are the numbers `values`. The row's dim has their count as its name and size.

        Each bit of an element's index selects half of the remaining numbers. This takes as many selections as a chain
        of comparisons, but fewer comparisons and a shorter chain of dependences.
        """
        builder, at, dim = self.ctx.builder, self.ctx.at(node), str(len(values))
        rows = [value.value for value in self.alike(values, nodes)]
        if len(rows) == 1:
            return self.ctx.wrap(builder.splat(rows[0], dim, at))
        index, zero, bit = builder.iota(dim, at), self.ctx.lift(0, node).value, 1
        while len(rows) > 1:
            masked = builder.binary("and", index, self.ctx.lift(bit, node).value, at)
            is_even = builder.compare("eq", masked, zero, at)
            pairs = zip(rows[::2], rows[1::2])
            rows = [builder.select(is_even, even, odd, at) for even, odd in pairs] + rows[len(rows) & ~1 :]
            bit *= 2
        return self.ctx.wrap(rows[0])

    def alike(self, values: list[Any], nodes: list[ast.expr]) -> list[Dyn]:
        """Converts numbers to values of one type: the type of the first number that is not a constant. If all numbers
        are constants and one of them is a float, the type is f32."""
        dtype = next((value.type.dtype for value in values if isinstance(value, Dyn)), "")
        if not dtype and any(isinstance(as_number(value), float) for value in values):
            dtype = "f32"
        lifted = []
        for value, node in zip(values, nodes):
            if isinstance(value, Dyn) and value.type.kind != "scalar":
                self.ctx.fail(node, f"expected a number as an element of a row, got {describe(value)}{hints.of_element(value)}")
            number = self.ctx.lift(value, node, dtype)
            dtype = dtype or number.type.dtype
            if number.type.dtype not in _NUMBERS:
                converts = "; i32(…) and i64(…) convert" if number.type.dtype in ("index", "i8", "u8") else ""
                self.ctx.fail(node, f"expected f32, i32, i64 or bool as an element of a row, got {describe(number)}{converts}")
            if number.type.dtype != dtype:
                self.ctx.fail(node, f"expected numbers of one type in a row, got {dtype} and {number.type.dtype}; {hints.of_conversion(dtype, number.type.dtype)}")
            lifted.append(number)
        return lifted

    # -- Elements of computed rows -----------------------------------------------------------------------------------

    def element(self, row: Dyn, index: Any, node: ast.AST) -> Dyn:
        """Returns the element ``row[i]``, or 0 if the index is out of bounds. `index` is a handle of type index."""
        each = self.ctx.builder.iota(row.type.dim, self.ctx.at(node))
        return self.taken(row, each, index, self.memory.size(row.type.dim, node), "", node)

    def member(self, row: Dyn, index: Any, node: ast.AST) -> Dyn:
        """Returns ``row[:, k]``: element k of each group of a row along a product, or zeros if k is out of bounds.
        `index` is a handle of type index."""
        builder, at, dim = self.ctx.builder, self.ctx.at(node), row.type.dim
        _, group = Dim(dim).factors
        size = self.memory.size(group, node)
        if size is None:  # without the size of a group, number elements by a scan, which restarts in each group
            ones = builder.splat(self.ctx.lift(1, node).value, dim, at)
            each = builder.binary("sub", builder.scan("add", ones, group, at), ones, at)
        elif group.isdigit() and int(group) & (int(group) - 1) == 0:
            each = builder.binary("and", builder.iota(dim, at), self.ctx.lift(int(group) - 1, node).value, at)
        else:
            each = builder.binary("mod", builder.iota(dim, at), self.ctx.convert(size, "i32", node).value, at)
        return self.taken(row, each, index, size, group, node)

    def taken(self, row: Dyn, each: Any, index: Any, size: Dyn | None, along: str, node: ast.AST) -> Dyn:
        """Returns the element of a row whose number in `each` equals `index`, or with `along`, that element of each
        group. Returns 0 if there is no such element.

        Replaces all other elements by the neutral element of a reduction, then reduces the row. Integers are added. For
        floats, the maximum is taken instead, since adding zeros would turn -0.0 into 0.0.

        Args:
            each: a row of i32 with the number of each element, counted from 0 in the row or in its group.
            size: the number of elements in the row or in a group; None if only optional tensors have the dim.
        """
        ctx, at = self.ctx, self.ctx.at(node)
        builder, dtype = ctx.builder, row.type.dtype
        if dtype not in _NUMBERS:
            ctx.fail(node, f"expected a row of f32, i32, i64 or bool to take an element of, got {describe(row)}; i32(…) converts it")
        least, none = (ctx.lift(number, node, "index").value for number in (0, -1))
        if size is None:
            inside, most = None, ctx.lift(_MOST_INDEX, node, "index").value
            index = builder.binary("min", builder.binary("max", index, none, at), most, at)
        else:
            inside = builder.binary("and", builder.compare("ge", index, least, at), builder.compare("lt", index, size.value, at), at)
            index = builder.select(inside, index, none, at)
        chosen = builder.compare("eq", each, builder.convert(index, "i32", at), at)
        if dtype == "bool":
            return ctx.wrap(builder.reduce("max", builder.binary("and", chosen, row.value, at), along, at))
        neutral = ctx.lift(-math.inf if dtype == "f32" else 0, node, dtype).value
        found = builder.reduce("max" if dtype == "f32" else "add", builder.select(chosen, row.value, neutral, at), along, at)
        if dtype != "f32":
            return ctx.wrap(found)
        inside = inside if inside is not None else builder.reduce("max", chosen, along, at)
        return ctx.wrap(builder.select(inside, found, ctx.lift(0.0, node, dtype).value, at))
