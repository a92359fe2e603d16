"""What a kernel means: all rows at once, in f64 with bounds, from docs/Python.md and docs/Dialect.md.

A statement runs under two masks: the rows that surely run it and those that perhaps do. Rows of which an index or the end of a
loop is not known are given up: what they may write may hold anything.
"""

from __future__ import annotations

from typing import Any

import floats
import integers
import numpy as np
import states
from floats import Floats
from formats import WIDTHS
from integers import Bools, Ints
from memory import Cells
from states import States
from syntax import Assign, Call, Each, For, If, Kernel, Node, Store, StoreState, all_statements, parse_dim

MOST_ITERATIONS = 4096
Value = Any


class Invalid(Exception):
    """The kernel does what no kernel may: it reads out of bounds, or never ends. A fault of the generator."""


class Interpreter:
    """Runs a call.

    Args:
        kernel, call: what is called, and with what.
        tensors: the cells of each tensor that is given; those of aliases are shared.
        base: what the bases' names are bound to.
    """

    def __init__(self, kernel: Kernel, call: Call, tensors: dict[str, Cells], bases: dict[str, str]) -> None:
        self.kernel, self.call, self.tensors, self.bases = kernel, call, tensors, bases
        self.env: dict[str, Value] = {}
        self.rows = 0
        self.must = self.may = np.zeros(0, bool)
        self.dead = np.zeros(0, bool)
        self.inlines = {inline.name: inline for inline in kernel.inlines}

    def run(self) -> None:
        with np.errstate(all="ignore"):
            indices, surely = self._grid()
            self._begin(len(surely), surely)
            if self.rows == 0:
                return
            self.env = dict(zip(self.kernel.grid.indices, (Ints(index) for index in indices)))
            self.block(self.kernel.body)
            self._spoil(indices)

    def _begin(self, rows: int, surely: np.ndarray) -> None:
        self.rows, self.must, self.may, self.dead = rows, surely, np.ones(rows, bool), np.zeros(rows, bool)

    # -- The grid ----------------------------------------------------------------------------------------------------

    def extent(self, extent: Any) -> int:
        if isinstance(extent, int):
            return extent
        if isinstance(extent, str):
            return self.size(extent)
        kind, name, *position = extent
        if kind == "scalar":
            return int(self.call.scalars[name])
        return self.tensors[name].shape[position[0]]

    def size(self, name: str) -> int:
        """The size of a dim, of the first tensor that is always given and has it."""
        for tensor in self.kernel.tensors:
            if not tensor.optional:
                for position, dim in enumerate(tensor.dims):
                    if parse_dim(dim)[0] == name:
                        return self.tensors[tensor.name].shape[position]
        return self.call.sizes[name]

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

    def give_up(self, rows: np.ndarray) -> None:
        self.dead |= rows & self.may

    def _spoil(self, indices: list[np.ndarray]) -> None:
        """What a row that was given up may have written."""
        names = dict(zip(self.kernel.grid.indices, indices))
        for row in np.flatnonzero(self.dead):
            for statement in all_statements(self.kernel.body):
                if isinstance(statement, Store):
                    places = [(statement.tensor, statement.indices)]
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

    def masked(self, must: np.ndarray, may: np.ndarray) -> Any:
        return _Masks(self, self.must & must, self.may & may)

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
            self.assign(name, value)

    def do_Store(self, statement: Store) -> None:
        tensor = self.tensor_name(statement.tensor)
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
        if statement.condition.op == "lit":  # the other branch is not read
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
        for item in statement.items:
            for name, node in zip(statement.names, item):
                self.env[name] = node.attrs["name"] if node.op == "tensor" else self.eval(node)
            self.block(statement.body)

    # -- Memory ------------------------------------------------------------------------------------------------------

    def tensor_name(self, name: str) -> str:
        """A tensor's name: that of the one which a loop over a tuple calls so."""
        return self.env[name] if isinstance(self.env.get(name), str) else name

    def index(self, tensor: str, nodes: list[Node]) -> tuple[tuple[Ints, ...], bool]:
        return tuple(self.eval(node) for node in nodes), len(nodes) < len(self.kernel.tensor(tensor).dims)

    def checked(self, tensor: str, index: tuple[Ints, ...], surely: np.ndarray) -> tuple[np.ndarray, ...]:
        """Indices within bounds. Those of rows that surely make the access are so by themselves."""
        parts = []
        for part, size in zip(index, self.tensors[tensor].shape):
            if part.unknown is not None:
                self.give_up(part.unknown & surely)
            outside = (part.v < 0) | (part.v >= size)
            if part.unknown is not None:
                outside &= ~part.unknown
            if (outside & surely & ~self.dead).any():
                raise Invalid(f"an index of '{tensor}' that is out of bounds")
            parts.append(np.clip(part.v, 0, max(size - 1, 0)))
        return tuple(parts)

    def predicate(self, node: Node | None) -> Bools:
        return Bools(np.ones(self.rows, bool)) if node is None else self.eval(node)

    def read(self, node: Node, tensor: str, nodes: list[Node], where: Bools) -> Value:
        """The value, zeros where nothing is read."""
        index, is_row = self.index(tensor, nodes)
        zero = self.constant(0, node)
        if tensor not in self.tensors:
            return zero
        surely = self.must & where.surely
        parts = self.checked(tensor, index, surely)
        if 0 in self.tensors[tensor].shape:
            return zero
        # A tensor that is one row has it for all rows of the grid.
        shape = self.size_of(node)
        return _map(self.tensors[tensor].read(parts), lambda part: np.broadcast_to(part, shape))

    def write(self, tensor: str, index: tuple[Ints, ...], is_row: bool, value: Value) -> None:
        if tensor not in self.tensors:
            return
        cells = self.tensors[tensor]
        parts = self.checked(tensor, index, self.must)
        rows = np.flatnonzero(self.may)
        if not len(rows) or 0 in cells.shape:
            return
        if is_row:
            value = _spread(value, (self.rows, cells.shape[-1]))
        chosen = tuple(part[rows] for part in parts)
        cells.write(chosen, _take(value, rows), self.must[rows])

    # -- Expressions -------------------------------------------------------------------------------------------------

    def eval(self, node: Node) -> Value:
        return getattr(self, f"eval_{node.op}")(node)

    def size_of(self, node: Node) -> tuple[int, ...]:
        return (self.rows, self.size(node.type.dim)) if node.type.kind != "scalar" else (self.rows,)

    def constant(self, value: Any, node: Node) -> Value:
        shape = self.size_of(node)
        if node.type.dtype == "f32":
            return Floats(np.full(shape, np.float64(np.float32(value))))
        if node.type.dtype == "bool":
            return Bools(np.full(shape, bool(value)))
        return Ints(np.full(shape, value, np.int64))

    def operands(self, *values: Value) -> list[Value]:
        """Numbers beside rows become rows."""
        shapes = [_shape(value) for value in values]
        widest = max(shapes, key=len)
        return [_spread(value, widest) for value in values]

    def choose(self, condition: Bools, a: Value, b: Value) -> Value:
        if isinstance(a, States):
            return states.select(condition, a, b)
        if isinstance(a, str):
            return a
        shape = max(_shape(a), _shape(b), _shape(condition), key=len)
        condition, a, b = _spread(condition, shape), _spread(a, shape), _spread(b, shape)
        if isinstance(a, Floats):
            return floats.select(condition, a, b)
        return integers.select_bools(condition, a, b) if isinstance(a, Bools) else integers.select(condition, a, b)

    def eval_lit(self, node: Node) -> Value:
        return self.constant(node.attrs["value"], node)

    def eval_name(self, node: Node) -> Value:
        name = node.attrs["name"]
        if name in self.env:
            return self.env[name]
        return self.constant(self.call.scalars[name], node)

    def eval_shape(self, node: Node) -> Value:
        if "tensor" in node.attrs:
            return self.constant(self.tensors[node.attrs["tensor"]].shape[node.attrs["position"]], node)
        return self.constant(self.size(node.attrs["dim"]), node)

    def eval_present(self, node: Node) -> Value:
        given = self.tensor_name(node.attrs["tensor"]) in self.tensors
        return self.constant(given != (node.attrs["style"] == "is None"), node)

    def eval_load(self, node: Node) -> Value:
        nodes, where_node, other_node = node.access()
        tensor = self.tensor_name(node.attrs["tensor"])
        where = self.predicate(where_node)
        value = self.read(node, tensor, nodes, where)
        if where_node is None:
            return value
        other = self.eval(other_node) if other_node else self.constant(0, node)
        return self.choose(where, value, other)

    def eval_load_state(self, node: Node) -> States:
        nodes, where_node, _ = node.access()
        out, lse = (self.tensor_name(node.attrs[key]) for key in ("tensor", "lse"))
        where = self.predicate(where_node)
        size, base = self.size(node.type.dim), self.base(node.type.base)
        if out not in self.tensors or lse not in self.tensors:
            return states.identity(self.rows, size, base)
        split = len(self.kernel.tensor(out).dims) - 1
        payload = self.read(Node("", node.type.__class__("row", "f32", node.type.dim)), out, nodes[:split], where)
        value = self.read(Node("", node.type.__class__("scalar", "f32")), lse, nodes[split:], where)
        return states.mask(states.make(payload, value, base), where)

    def base(self, name: str) -> str:
        return self.bases.get(name, name)

    def eval_make_state(self, node: Node) -> States:
        payload, lse = (self.eval(argument) for argument in node.args)
        return states.make(payload, lse, self.base(node.type.base))

    def eval_identity(self, node: Node) -> States:
        return states.identity(self.rows, self.size(node.type.dim), self.base(node.type.base))

    def eval_merge(self, node: Node) -> States:
        return states.merge(*(self.eval(argument) for argument in node.args))

    def eval_mask(self, node: Node) -> States:
        return states.mask(self.eval(node.args[0]), self.eval(node.args[1]))

    def eval_rebase(self, node: Node) -> States:
        return states.rebase(self.eval(node.args[0]), self.base(node.type.base))

    def eval_splat(self, node: Node) -> Value:
        return _spread(self.eval(node.args[0]), self.size_of(node))

    def eval_call(self, node: Node) -> Value:
        inline = self.inlines[node.attrs["function"]]
        values = [self.eval(argument) for argument in node.args]
        values += [self.eval(default) for default in inline.defaults[len(inline.defaults) - (len(inline.parameters) - len(values)) :]]
        outer, self.env = self.env, dict(zip(inline.parameters, values))
        self.block(inline.body)
        result = self.eval(inline.result)
        self.env = outer
        return result

    # -- Operators ---------------------------------------------------------------------------------------------------

    def binary(self, op: str, node: Node, a: Value, b: Value) -> Value:
        a, b = self.operands(a, b)
        if isinstance(a, Floats):
            if op in ("min", "max"):
                return floats.extreme(a, b, op == "max")
            return {"add": floats.add, "sub": floats.sub, "mul": floats.mul, "div": floats.divide, "copysign": floats.copysign}[op](a, b)
        if isinstance(a, Bools):
            return integers.logic(op, a, b)
        return integers.binary(op, a, b, WIDTHS[node.type.dtype])

    def eval_binary(self, node: Node) -> Value:
        values = [self.eval(argument) for argument in node.args]
        result = values[0]
        for value in values[1:]:
            result = self.binary(node.attrs["name"], node, result, value)
        return result

    def eval_unary(self, node: Node) -> Value:
        value, op = self.eval(node.args[0]), node.attrs["name"]
        if isinstance(value, Bools):
            return integers.negate(value)
        if isinstance(value, Ints):
            size = np.where(value.v < 0, -value.v, value.v) if op == "abs" else -value.v
            return Ints(integers.wrap(size, WIDTHS[node.type.dtype]), value.unknown)
        return {"neg": floats.neg, "abs": floats.absolute}[op](value) if op in ("neg", "abs") else getattr(floats, op)(value)

    def eval_fma(self, node: Node) -> Value:
        return floats.fma(*self.operands(*(self.eval(argument) for argument in node.args)))

    def compare(self, op: str, a: Value, b: Value) -> Bools:
        a, b = self.operands(a, b)
        if isinstance(a, Floats):
            return floats.compare(op, a, b)
        return integers.compare_bools(op, a, b) if isinstance(a, Bools) else integers.compare(op, a, b)

    def eval_compare(self, node: Node) -> Bools:
        values = [self.eval(argument) for argument in node.args]
        result = None
        for op, a, b in zip(node.attrs["ops"], values, values[1:]):
            one = self.compare(op, a, b)
            result = one if result is None else integers.logic("and", *self.operands(result, one))
        return result

    def eval_logic(self, node: Node) -> Bools:
        """and, or: memory is read only where the condition before it holds."""
        result = self.eval(node.args[0])
        for argument in node.args[1:]:
            if node.attrs["name"] == "and":
                masks = result.surely, result.perhaps
            else:
                masks = ~result.perhaps, ~result.surely
            with self.masked(*masks):
                other = self.eval(argument)
            result = integers.logic(node.attrs["name"], result, other)
        return result

    def eval_ifexp(self, node: Node) -> Value:
        condition = self.eval(node.args[0])
        with self.masked(condition.surely, condition.perhaps):
            yes = self.eval(node.args[1])
        with self.masked(~condition.perhaps, ~condition.surely):
            no = self.eval(node.args[2])
        return self.choose(condition, yes, no)

    def eval_where(self, node: Node) -> Value:
        return self.choose(*(self.eval(argument) for argument in node.args))

    def eval_reduce(self, node: Node) -> Value:
        value = self.eval(node.args[0])
        if isinstance(value, Floats):
            return floats.reduce(node.attrs["kind"], value)
        return integers.reduce(node.attrs["kind"], value, WIDTHS[node.type.dtype])

    def eval_convert(self, node: Node) -> Value:
        value, to = self.eval(node.args[0]), node.type.dtype
        if to == "f32":
            return value if isinstance(value, Floats) else floats.from_bool(value) if isinstance(value, Bools) else floats.from_int(value)
        if to == "bool":
            return value if isinstance(value, Bools) else self.compare("ne", value, _zero_like(value))
        if isinstance(value, Floats):
            return floats.to_int(value, WIDTHS[to])
        v = value.v.astype(np.int64)
        return Ints(integers.wrap(v, WIDTHS[to]), value.unknown)


class _Masks:
    """The rows of a branch, while it runs."""

    def __init__(self, interpreter: Interpreter, must: np.ndarray, may: np.ndarray) -> None:
        self.interpreter, self.masks = interpreter, (must, may)

    def __enter__(self) -> None:
        interpreter = self.interpreter
        (interpreter.must, interpreter.may), self.masks = self.masks, (interpreter.must, interpreter.may)

    def __exit__(self, *_: object) -> None:
        self.interpreter.must, self.interpreter.may = self.masks


# -- Shapes ----------------------------------------------------------------------------------------------------------------


def _shape(value: Value) -> tuple[int, ...]:
    return value.shape if isinstance(value, Floats) else value.v.shape


def _map(value: Value, f: Any) -> Value:
    if isinstance(value, Floats):
        return value.map(f)
    return type(value)(f(value.v), None if value.unknown is None else f(value.unknown))


def _spread(value: Value, shape: tuple[int, ...]) -> Value:
    """A number of each row as a row of it."""
    if _shape(value) == shape:
        return value
    return _map(value, lambda part: np.broadcast_to(part[:, None] if part.ndim < len(shape) else part, shape))


def _take(value: Value, rows: np.ndarray) -> Value:
    return _map(value, lambda part: part[rows])


def _zero_like(value: Value) -> Value:
    return Floats(np.zeros(value.shape)) if isinstance(value, Floats) else Ints(np.zeros(value.v.shape, np.int64))
