"""Evaluates expressions of a kernel as values with bounds, with one method for each kind of node."""

from __future__ import annotations

import math
from typing import Any

import floats
import functions
import integers
import numpy as np
import states
from floats import Floats
from formats import WIDTHS
from integers import Bools, Ints
from memory import Cells
from states import States
from syntax import Call, Kernel, Node, Type, factors, is_bounded, parse_dim
from values import Value, anything_where, map_parts, shape_of, spread_to, stacked, take, widest_of, zero_like


class Invalid(Exception):
    """The kernel has a loop of too many iterations. This is a fault of the generator."""


class Expressions:
    """Evaluates expressions for all rows at once, under masks of the rows that surely or possibly evaluate them.

    Args:
        kernel, call: the kernel and its arguments.
        tensors: the cells of each passed tensor; tensors that alias share cells.
    """

    def __init__(self, kernel: Kernel, call: Call, tensors: dict[str, Cells]) -> None:
        self.kernel, self.call, self.tensors = kernel, call, dict(tensors)
        self.bases = {**kernel.bases, **call.bases}  # by name: "e", "2" or another name
        self.env: dict[str, Value] = {}
        self.rows = 0
        self.must = self.may = np.zeros(0, bool)
        self.dead = np.zeros(0, bool)
        self.inlines = {inline.name: inline for inline in kernel.inlines}

    def block(self, statements: list[Any]) -> None:
        """Runs statements. Implemented in interpret.py."""
        raise NotImplementedError

    def masked(self, must: np.ndarray, may: np.ndarray) -> Masks:
        return Masks(self, self.must & must, self.may & may)

    def give_up(self, rows: np.ndarray) -> None:
        self.dead |= rows & self.may

    def size(self, name: str) -> int:
        """Returns the size of a dim, read from the first mandatory tensor that has the dim. A fixed size may also come
        from an optional tensor."""
        if name.isdigit():
            return int(name)
        if factors(name):
            return math.prod(int(factor) if factor.isdigit() else self.size(factor) for factor in factors(name))
        for tensor in self.kernel.tensors:
            for position, dim in enumerate(tensor.dims):
                text, fixed = parse_dim(dim)
                if text != name:
                    continue
                if not tensor.optional:
                    return self.tensors[tensor.name].shape[position]
                if fixed is not None:
                    return fixed
        return self.call.sizes[name]

    # -- Memory ------------------------------------------------------------------------------------------------------

    def tensor_name(self, name: str) -> str:
        """Returns the tensor for which `name` stands. In a loop over a tuple, the loop variable stands for another
        tensor in each iteration."""
        return self.env[name] if isinstance(self.env.get(name), str) else name

    def parted(self, tensor: str, part: str | tuple[int, int]) -> str:
        """Returns the name under which parts of a tensor's rows (groups, members or a slice) are stored as a tensor of
        their own."""
        if not part:
            return tensor
        if isinstance(part, tuple):  # a slice
            key = f"{tensor}:{part}"
            if tensor in self.tensors and key not in self.tensors:
                self.tensors[key] = self.tensors[tensor].sliced(*part)
            return key
        key = f"{tensor}.{part}"
        if tensor in self.tensors and key not in self.tensors:
            group = self.size(factors(self.kernel.tensor(tensor).dims[-1])[1])
            self.tensors[key] = self.tensors[tensor].parted(group, part == "member")
        return key

    def index(self, tensor: str, nodes: list[Node]) -> tuple[tuple[Ints, ...], bool]:
        name, _, part = tensor.partition(":")[0].partition(".")
        return tuple(self.eval(node) for node in nodes), len(nodes) < len(self.kernel.tensor(name).dims) + bool(part)

    def inside(self, tensor: str, index: tuple[Ints, ...]) -> np.ndarray:
        """Returns a mask of the rows whose indices are in bounds. The other rows neither read nor write. Callers handle
        rows with an unknown index, of which this mask says nothing."""
        inside = np.ones(self.rows, bool)
        for part, size in zip(index, self.tensors[tensor].shape):
            inside &= (part.v >= 0) & (part.v < size)
        return inside

    def clipped(self, tensor: str, index: tuple[Ints, ...]) -> tuple[np.ndarray, ...]:
        return tuple(np.clip(part.v, 0, max(size - 1, 0)) for part, size in zip(index, self.tensors[tensor].shape))

    def predicate(self, node: Node | None) -> Bools:
        return Bools(np.ones(self.rows, bool)) if node is None else self.eval(node)

    def read(self, node: Node, tensor: str, nodes: list[Node]) -> Value:
        """Returns the loaded value. Rows whose index is out of bounds get zeros, as do all rows if the tensor is
        omitted. Rows with an unknown index get unknown values."""
        index, is_row = self.index(tensor, nodes)
        zero = self.constant(0, node)
        if tensor not in self.tensors:
            return zero
        parts = self.clipped(tensor, index)
        if 0 in self.tensors[tensor].shape:
            return zero
        # A load without indices reads one row for all rows of the grid.
        shape = self.size_of(node)
        value = map_parts(self.tensors[tensor].read(parts), lambda part: np.broadcast_to(part, shape))
        inside = self.inside(tensor, index)
        if not inside.all():
            value = self.choose(Bools(inside), value, zero)
        unknown = integers.either(*(part.unknown for part in index))
        return value if unknown is None else anything_where(unknown, value)

    def write(self, tensor: str, index: tuple[Ints, ...], is_row: bool, value: Value) -> None:
        if tensor not in self.tensors:
            return
        cells = self.tensors[tensor]
        parts = self.clipped(tensor, index)
        unknown = integers.either(*(part.unknown for part in index))
        if unknown is not None:
            self.give_up(unknown)
        rows = np.flatnonzero(self.may & self.inside(tensor, index))
        if not len(rows) or 0 in cells.shape:
            return
        if is_row:
            value = spread_to(value, (self.rows, cells.shape[-1]))
        chosen = tuple(part[rows] for part in parts)
        cells.write(chosen, take(value, rows), self.must[rows])

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
        """Brings operands to one shape. Spreads a number over a row, and a row with one element per group over the
        elements of the groups."""
        widest = widest_of(*values)
        return [spread_to(value, widest) for value in values]

    def choose(self, condition: Bools, a: Value, b: Value) -> Value:
        if isinstance(a, States):
            return states.select(condition, a, b)
        if isinstance(a, str):
            return a
        shape = widest_of(a, b, condition)
        condition, a, b = spread_to(condition, shape), spread_to(a, shape), spread_to(b, shape)
        if isinstance(a, Floats):
            return floats.select(condition, a, b)
        return integers.select_bools(condition, a, b) if isinstance(a, Bools) else integers.select(condition, a, b)

    def eval_lit(self, node: Node) -> Value:
        return self.constant(node.attrs["value"], node)

    def eval_list(self, node: Node) -> list[Value]:
        return [self.eval(argument) for argument in node.args] * node.attrs.get("over", 1)

    def eval_name(self, node: Node) -> Value:
        name = node.attrs["name"]
        if name in self.env:
            return self.env[name]
        return self.constant(self.call.scalars[name], node)

    def eval_shape(self, node: Node) -> Value:
        if "tensor" in node.attrs:
            return self.constant(self.tensors[node.attrs["tensor"]].shape[node.attrs["position"]], node)
        return self.constant(self.size(node.attrs["dim"]), node)

    def eval_turn(self, node: Node) -> Value:
        return self.constant(self.call.turn, node)

    def eval_present(self, node: Node) -> Value:
        given = self.tensor_name(node.attrs["tensor"]) in self.tensors
        return self.constant(given != (node.attrs["style"] == "is None"), node)

    def eval_load(self, node: Node) -> Value:
        nodes, where_node, other_node = node.access()
        tensor = self.parted(self.tensor_name(node.attrs["tensor"]), node.attrs.get("part") or node.attrs.get("slice", ""))
        where = self.predicate(where_node)
        if "into" in node.attrs:
            return self.load_into(node, tensor, nodes, where)
        value = self.read(node, tensor, nodes)
        if where_node is None:
            return value
        other = self.eval(other_node) if other_node else self.constant(0, node)
        return self.choose(where, value, other)

    def load_into(self, node: Node, tensor: str, nodes: list[Node], where: Bools) -> Value:
        shorter = self.kernel.tensor(node.attrs["tensor"]).dims[-1]
        begin, end = node.attrs.get("slice") or (0, self.size(parse_dim(shorter)[0]))
        size = end - begin
        of = Node("", Type("row", node.type.dtype, str(size)))
        row = self.choose(where, self.read(of, tensor, nodes), self.constant(0, of))
        shape, first = self.size_of(node), node.attrs["first"]
        places = (np.arange(shape[1]) - first) // node.attrs["each"]
        there = np.arange(shape[1]) >= first
        if is_bounded(shorter) and "slice" not in node.attrs:  # elements past the end of the loaded row are 0
            there &= places < size
        if size == 0:
            return self.constant(0, node)
        spread = map_parts(row, lambda part: np.broadcast_to(part, (self.rows, size))[:, places % size])
        return self.choose(Bools(np.broadcast_to(there, shape)), spread, self.constant(0, node))

    def eval_load_state(self, node: Node) -> States:
        nodes, where_node, _ = node.access()
        out, lse = (self.tensor_name(node.attrs[key]) for key in ("tensor", "lse"))
        where = self.predicate(where_node)
        size, base = self.size(node.type.dim), self.base(node.type.base)
        if out not in self.tensors or lse not in self.tensors:
            return states.identity(self.rows, size, base)
        split = len(self.kernel.tensor(out).dims) - 1
        payload = self.read(Node("", Type("row", "f32", node.type.dim)), out, nodes[:split])
        value = self.read(Node("", Type("scalar", "f32")), lse, nodes[split:])
        result = states.mask(states.make(payload, value, base), where)
        for tensor, part in ((out, nodes[:split]), (lse, nodes[split:])):
            index, _ = self.index(tensor, part)
            # No index is inside a dim of size 0, so the state is surely empty.
            unknown = None if 0 in self.tensors[tensor].shape[: len(index)] else integers.either(*(one.unknown for one in index))
            result = states.mask(result, Bools(self.inside(tensor, index), unknown))
        return result

    def base(self, name: str) -> str:
        return self.base(self.bases[name]) if name in self.bases else name

    def eval_make_state(self, node: Node) -> States:
        payload, lse = (self.eval(argument) for argument in node.args)
        return states.make(payload, lse, self.base(node.type.base))

    def eval_sink(self, node: Node) -> States:
        (logit,) = (self.eval(argument) for argument in node.args)
        zeros = Floats(np.zeros((self.rows, self.size(node.type.dim))))
        return states.make(zeros, logit, self.base(node.type.base))

    def eval_identity(self, node: Node) -> States:
        return states.identity(self.rows, self.size(node.type.dim), self.base(node.type.base))

    def eval_merge(self, node: Node) -> States:
        base = self.base(node.type.base)
        return states.merge(*(states.rebase(self.eval(argument), base) for argument in node.args))

    def eval_mask(self, node: Node) -> States:
        return states.mask(self.eval(node.args[0]), self.eval(node.args[1]))

    def eval_rebase(self, node: Node) -> States:
        return states.rebase(self.eval(node.args[0]), self.base(node.type.base))

    def eval_payload(self, node: Node) -> Value:
        return states.stored(self.eval(node.args[0]), None)[0]

    def eval_lse_of(self, node: Node) -> Value:
        return states.stored(self.eval(node.args[0]), None)[1]

    def eval_splat(self, node: Node) -> Value:
        return spread_to(self.eval(node.args[0]), self.size_of(node))

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
        return {"neg": floats.neg, "abs": floats.absolute}[op](value) if op in ("neg", "abs") else getattr(functions, op)(value)

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
        """Evaluates and/or. The second operand reads memory only if the first does not decide the result."""
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

    def eval_iota(self, node: Node) -> Ints:
        shape = self.size_of(node)
        return Ints(np.broadcast_to(np.arange(shape[1]), shape))

    def eval_reduce(self, node: Node) -> Value:
        value, dim = self.eval(node.args[0]), node.args[0].type.dim
        if "along" in node.attrs:
            rows, groups = shape_of(value)[0], self.size(node.type.dim)
            each = self.reduce(node, map_parts(value, lambda part: part.reshape(rows * groups, -1)))
            return map_parts(each, lambda part: part.reshape(rows, groups))
        if factors(dim) and node.attrs["kind"] in ("add", "max", "min"):
            groups = self.size(factors(dim)[0])
            value = self.reduce(node, map_parts(value, lambda part: part.reshape(len(part), groups, -1)))
        return self.reduce(node, value)

    def reduce(self, node: Node, value: Value) -> Value:
        """Reduces the last axis."""
        kind = node.attrs["kind"]
        if kind in ("argmax", "argmin"):
            return floats.index_of_extreme(value, kind == "argmax") if isinstance(value, Floats) else integers.index_of_extreme(value, kind == "argmax")
        if isinstance(value, Bools):
            return integers.any_or_all(kind, value)
        if isinstance(value, Floats):
            return floats.reduce(node.attrs["kind"], value)
        return integers.reduce(node.attrs["kind"], value, WIDTHS[node.type.dtype])

    def eval_top(self, node: Node) -> Value:
        """Returns the value or the index of one of the largest elements of the row, or of each group."""
        value = self.eval(node.args[0])
        _, which, at = node.attrs["top"]
        rows, size = shape_of(value)
        groups = self.size(node.type.dim) if "along" in node.attrs else 1
        each = map_parts(value, lambda part: part.reshape(rows * groups, size // groups))
        found = (floats if isinstance(value, Floats) else integers).greatest(each, at)[which]
        return map_parts(found, lambda part: part.reshape((rows, groups) if "along" in node.attrs else (rows,)))

    def eval_scan(self, node: Node) -> Value:
        value, dim = self.eval(node.args[0]), node.type.dim
        rows, size = shape_of(value)
        groups = self.size(factors(dim)[0]) if factors(dim) else 1
        if isinstance(value, Floats):
            shape = (rows * groups, 1, size // groups) if "along" in node.attrs else (rows, groups, size // groups)
            scanned = floats.scan(node.attrs["kind"], map_parts(value, lambda part: part.reshape(shape)))
        else:
            shape = (rows * groups, -1) if "along" in node.attrs else (rows, size)
            scanned = integers.scan(node.attrs["kind"], map_parts(value, lambda part: part.reshape(shape)), WIDTHS[node.type.dtype])
        return map_parts(scanned, lambda part: part.reshape(rows, size))

    def eval_row_of(self, node: Node) -> Value:
        """Returns a row that is listed element by element."""
        return stacked([self.eval(argument) for argument in node.args])

    def eval_element(self, node: Node) -> Value:
        """Returns an element of a row, or of each of its groups. An index that is out of bounds gives 0, and an unknown
        index gives an unknown value."""
        row, *indices = (self.eval(argument) for argument in node.args)
        rows, size = shape_of(row)
        dims = factors(node.args[0].type.dim)
        groups = self.size(dims[0]) if dims else 1
        value = map_parts(row, lambda part: part.reshape(rows, groups, size // groups))
        inside, unknown = np.ones(rows, bool), integers.either(*(index.unknown for index in indices))
        group, member = ([None] * (2 - len(indices)) + indices) if dims else [Ints(np.zeros(rows, np.int64)), *indices]
        for index, most in ((group, groups), (member, size // groups)):
            inside &= True if index is None else (index.v >= 0) & (index.v < most)
        zero = self.constant(0, node)
        if size == 0:
            return zero
        value = map_parts(value, lambda part: part[np.arange(rows), :, np.clip(member.v, 0, part.shape[2] - 1)])
        if group is not None:
            value = map_parts(value, lambda part: part[np.arange(rows), np.clip(group.v, 0, groups - 1)])
        value = self.choose(Bools(inside), value, zero)
        return value if unknown is None else anything_where(unknown, value)

    def eval_swap(self, node: Node) -> Value:
        value = self.eval(node.args[0])
        places = np.arange(shape_of(value)[1]) ^ node.attrs["block"]
        return map_parts(value, lambda part: part[..., places])

    def eval_convert(self, node: Node) -> Value:
        value, to = self.eval(node.args[0]), node.type.dtype
        if to == "f32":
            return value if isinstance(value, Floats) else floats.from_bool(value) if isinstance(value, Bools) else floats.from_int(value)
        if to == "bool":
            return value if isinstance(value, Bools) else self.compare("ne", value, zero_like(value))
        if isinstance(value, Floats):
            return floats.to_int(value, WIDTHS[to])
        v = value.v.astype(np.int64)
        return Ints(integers.wrap(v, WIDTHS[to]), value.unknown)


class Masks:
    """A context manager that replaces the interpreter's masks, and restores them at the end of the `with` block."""

    def __init__(self, interpreter: Expressions, must: np.ndarray, may: np.ndarray) -> None:
        self.interpreter, self.masks = interpreter, (must, may)

    def __enter__(self) -> None:
        interpreter = self.interpreter
        (interpreter.must, interpreter.may), self.masks = self.masks, (interpreter.must, interpreter.may)

    def __exit__(self, *_: object) -> None:
        self.interpreter.must, self.interpreter.may = self.masks
