"""Interprets a kernel: all rows at once, in f64 with bounds, as docs/Python.md and docs/Dialect.md define it.

A statement runs under two masks: rows that surely run it, and rows that possibly do. A row that writes at an
unknown index, or has a loop with an unknown bound, is given up: every element that it may write is then unknown.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import integers
import numpy as np
import states
from formats import WIDTHS
from integers import Bools, Ints
from interpret_expressions import Expressions, Invalid, Value
from syntax import COMPUTED, PART_INDICES, Assign, Each, For, If, Print, Store, StoreState, all_statements

MOST_ITERATIONS = 4096


@dataclasses.dataclass
class Text:
    """One execution of a print: the text, its values, and the rows that surely or possibly print it."""

    text: str
    values: list[Value]
    surely: np.ndarray
    perhaps: np.ndarray


class Interpreter(Expressions):
    """Interprets a call."""

    def run(self) -> None:
        self.printed: list[Text] = []
        with np.errstate(all="ignore"):
            indices, surely = self._grid()
            self._begin(len(surely), surely)
            self.indices = indices
            if self.rows == 0:
                return
            self.env = dict(zip(self.kernel.grid.indices, (Ints(index) for index in indices)))
            self.block(self.kernel.body)
            self._spoil(indices)

    def count(self) -> int:
        """Returns an upper bound of the number of rows in the grid."""
        with np.errstate(all="ignore"):
            return len(self._grid()[1])

    def _begin(self, rows: int, surely: np.ndarray) -> None:
        self.rows, self.must, self.may, self.dead = rows, surely, np.ones(rows, bool), np.zeros(rows, bool)

    # -- The grid ----------------------------------------------------------------------------------------------------

    def extent(self, extent: Any) -> int:
        if isinstance(extent, int):
            return extent
        if isinstance(extent, str):
            return self.size(extent)
        kind, name, *position = extent
        if kind in COMPUTED:
            return self.size(name) + position[0] if kind == "add" else self.size(name) * position[0]
        if kind == "scalar":
            return int(self.call.scalars[name])
        return self.tensors[name].shape[position[0]]

    def _grid(self) -> tuple[list[np.ndarray], np.ndarray]:
        grid = self.kernel.grid
        if not grid.segments:
            extents = [max(self.extent(extent), 0) for extent in grid.extents]
            mesh = np.indices(extents).reshape(len(extents), -1).astype(np.int64)
            return list(mesh), np.ones(mesh.shape[1], bool)
        starts = self.tensors[grid.extents[0]].v
        rows, inner = self.extent(grid.extents[1]), [self.extent(extent) for extent in grid.extents[2:]]
        count = max(len(starts) - 1, 0)
        chosen = Bools(np.ones(count, bool))
        if grid.where is not None and count:
            self._begin(count, np.ones(count, bool))
            self.env = {grid.indices[0]: Ints(np.arange(count))}
            chosen = self.eval(grid.where)
        found: list[tuple[int, ...]] = []
        surely = []
        for segment in range(count):
            start, end = int(starts[segment]), int(starts[segment + 1])
            if chosen.perhaps[segment] and 0 <= start <= end <= rows:
                for row in range(start, end):
                    for rest in np.ndindex(*inner):
                        found.append((segment, row, *rest))
                        surely.append(bool(chosen.surely[segment]))
        mesh = np.array(found, np.int64).reshape(len(found), 2 + len(inner)).T
        return list(mesh), np.array(surely, bool)

    def _spoil(self, indices: list[np.ndarray]) -> None:
        """Marks as unknown all elements that given-up rows may have written."""
        names = dict(zip(self.kernel.grid.indices, indices))
        for row in np.flatnonzero(self.dead):
            for statement in all_statements(self.kernel.body):
                if isinstance(statement, Store):
                    own = len(statement.indices) - PART_INDICES[statement.part]
                    places = [(statement.tensor, statement.indices[:own])]
                elif isinstance(statement, StoreState):
                    places = [(statement.out, statement.out_indices), (statement.lse, statement.lse_indices)]
                else:
                    continue
                for tensor, nodes in places:
                    if tensor in self.tensors:
                        where = [names[n.attrs["name"]][row] if n.op == "name" and n.attrs["name"] in names else slice(None) for n in nodes]
                        self.tensors[tensor].spoil(tuple(where))

    # -- Statements --------------------------------------------------------------------------------------------------

    def block(self, statements: list[Any]) -> None:
        for statement in statements:
            getattr(self, f"do_{type(statement).__name__}")(statement)

    def assign(self, name: str, new: Value) -> None:
        old = self.env.get(name)
        if old is not None and not isinstance(old, str) and not self.must.all():
            new = self.choose(Bools(self.must, self.may & ~self.must), new, old)
        self.env[name] = new

    def do_Assign(self, statement: Assign) -> None:
        values = [self.eval(node) for node in statement.values]
        if statement.aug:
            node = statement.values[0]
            values = [self.binary(statement.aug, node, self.env[statement.names[0]], values[0])]
        for name, value in zip(statement.names, values):
            if isinstance(value, list):
                for position, element in enumerate(value):
                    self.assign(f"{name}[{position}]", element)
            else:
                self.assign(name, value)

    def do_Assume(self, statement: Any) -> None:
        """Does nothing, since generated promises are true."""

    def do_Print(self, statement: Print) -> None:
        values = [self.eval(node) for node in statement.values]
        self.printed.append(Text(statement.text, values, self.must & ~self.dead, self.may.copy()))

    def do_Exchange(self, statement: Any) -> None:
        """Does nothing, since the tensor's contents already include the rows that other ranks store."""

    def do_Store(self, statement: Store) -> None:
        tensor = self.parted(self.tensor_name(statement.tensor), statement.part or statement.slice or "")
        index, is_row = self.index(tensor, statement.indices)
        value, where = self.eval(statement.value), self.predicate(statement.where)
        with self.masked(where.surely, where.perhaps):
            self.write(tensor, index, is_row, value)

    def do_StoreState(self, statement: StoreState) -> None:
        state, where = self.eval(statement.state), self.predicate(statement.where)
        scale = self.eval(statement.scale) if statement.scale else None
        payload, lse = states.stored(state, scale)
        with self.masked(where.surely, where.perhaps):
            for name, nodes, value in ((statement.out, statement.out_indices, payload), (statement.lse, statement.lse_indices, lse)):
                if name:
                    tensor = self.tensor_name(name)
                    index, is_row = self.index(tensor, nodes)
                    self.write(tensor, index, is_row, value)

    def do_If(self, statement: If) -> None:
        if statement.condition.op == "lit":  # the front end skips the other branch
            self.block(statement.then if statement.condition.attrs["value"] else statement.orelse)
            return
        condition = self.eval(statement.condition)
        with self.masked(condition.surely, condition.perhaps):
            self.block(statement.then)
        with self.masked(~condition.perhaps, ~condition.surely):
            self.block(statement.orelse)

    def do_For(self, statement: For) -> None:
        lower, upper = self.eval(statement.lower), self.eval(statement.upper)
        unknown = integers.either(lower.unknown, upper.unknown)
        if unknown is not None:
            self.give_up(unknown)
        distance = (upper.v - lower.v).view(np.uint64)
        count = np.where(upper.v > lower.v, (distance - np.uint64(1)) // np.uint64(statement.step) + np.uint64(1), np.uint64(0))
        count = np.where(self.may & ~self.dead, count, np.uint64(0))
        if count.max() > MOST_ITERATIONS:
            raise Invalid(f"a loop of {count.max()} iterations")
        before = set(self.env)
        width = WIDTHS[statement.lower.type.dtype]
        for i in range(int(count.max())):
            active = count > i
            self.env[statement.name] = Ints(integers.wrap(lower.v + i * statement.step, width))
            with self.masked(active, active):
                self.block(statement.body)
        self.env = {name: value for name, value in self.env.items() if name in before}

    def do_Each(self, statement: Each) -> None:
        # Python makes the tuple before the first iteration, so the body's assignments do not change its elements.
        items = [[node.attrs["name"] if node.op == "tensor" else self.eval(node) for node in item] for item in statement.items]
        for item in items:
            self.env.update(zip(statement.names, item))
            self.block(statement.body)
