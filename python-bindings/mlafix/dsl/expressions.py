"""Evaluates the expressions of a kernel: converts nodes of the syntax tree to builder values or compile-time
constants."""

from __future__ import annotations

import ast
import contextlib
import types
from collections.abc import Callable
from typing import Any, NoReturn

from . import hints
from .built_ins import BuiltIn
from .context import Context
from .inline import Inline
from .memory import Memory
from .operators import BINARY, COMPARE, Operators
from .rows import Rows
from .source import member
from .types import Base, Dim, DType, ScalarType, TensorType
from .values import Dyn, Element, Gone, Listed, OfRows, Peer, Sink, Tensor, as_number, counted, describe, field_names, is_record

_ALLOWED = (
    "a number, a name, an element of a tensor, arithmetic, a comparison, and/or/not, 'a if c else b' or a call of the "
    "language"
)
_KINDS = {
    ast.JoinedStr: "an f-string",
    ast.Dict: "a dict",
    ast.Set: "a set",
    ast.GeneratorExp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.Lambda: "a lambda",
    ast.NamedExpr: "an assignment inside an expression",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.Starred: "a starred expression",
    ast.Slice: "a slice",
}


# The most iterations of an unrolled range. A loop over a tuple has no such limit, since the tuple already has its
# elements.
MOST_UNROLLED = 64


class Expressions:
    """Evaluates expressions. The result is a Python object for a compile-time constant, and a Dyn for a value of the
    builder.

    Args:
        context: the state shared by the translator's classes.
        operators: evaluates operators.
        memory: creates accesses to tensors.
        call: evaluates a call.
    """

    def __init__(self, context: Context, operators: Operators, memory: Memory, call: Callable[[ast.Call], Any]) -> None:
        self.ctx = context
        self.operators = operators
        self.memory = memory
        self.rows = Rows(context, memory)
        self.eval_Call = call

    def eval(self, node: ast.expr) -> Any:
        """Evaluates an expression."""
        method = getattr(self, f"eval_{type(node).__name__}", None)
        if method is None:
            kind = _KINDS.get(type(node), f"'{ast.unparse(node)}'")
            self.ctx.fail(node, f"expected {_ALLOWED}, got {kind}{hints.of_text(node)}")
        return method(node)

    def value(self, node: ast.expr, dtype: str = "") -> Dyn:
        """Evaluates an expression and converts a constant result to a value of `dtype`."""
        return self.ctx.lift(self.eval(node), node, dtype)

    def condition(self, node: ast.expr, what: str = "condition") -> Dyn | bool:
        """Evaluates an expression that must be a bool, constant or not. `what` names the expression in errors."""
        value = self.eval(node)
        if isinstance(value, bool):
            return value
        if not isinstance(value, Dyn) or not value.is_bool:
            self.ctx.fail(node, f"expected a bool for the {what}, got {describe(value)}{hints.of_condition(value)}")
        return value

    # -- Names and places --------------------------------------------------------------------------------------------

    def eval_Constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, (bool, int, float, str, type(None))):
            return node.value
        self.ctx.fail(node, f"expected {_ALLOWED}, got {node.value!r}")

    def eval_Name(self, node: ast.Name) -> Any:
        if node.id in self.ctx.env:
            value = self.ctx.env[node.id]
            if isinstance(value, Gone):
                self.ctx.fail(node, f"expected a name that has a value here, got '{node.id}', {value.reason}")
            return self.listed(node, value) if isinstance(value, Listed) else value
        if node.id in self.ctx.source.own:
            self.ctx.fail(node, f"expected a name that has a value here, got '{node.id}', which is assigned elsewhere in '{self.ctx.source.name}'")
        try:
            value = self.ctx.source.lookup(node.id)
        except KeyError:
            self.undefined(node, hints.of_undefined(node.id, self.ctx.dims, known=self.names()))
        return self.outside(value, node)

    def dim_or_size(self, node: ast.expr, usage: str) -> Any:
        """Evaluates an argument that is a size or the name of a dim. If a dim's name lacks its quotes, the error shows
        `usage`."""
        if isinstance(node, ast.Name) and node.id in self.ctx.dims and not self.is_defined(node.id):
            self.undefined(node, hints.of_undefined(node.id, self.ctx.dims, f'"{{0}}", as in {usage}'))
        return self.eval(node)

    def known(self, name: str) -> Any:
        """Returns what is stored for a name. Returns None if the name has no value."""
        if name in self.ctx.env or name in self.ctx.source.own:
            return self.ctx.env.get(name)
        try:
            return self.ctx.source.lookup(name)
        except KeyError:
            return None

    def is_defined(self, name: str) -> bool:
        try:
            self.ctx.source.lookup(name)
        except KeyError:
            return name in self.ctx.env or name in self.ctx.source.own
        return True

    def undefined(self, node: ast.expr, hint: str) -> NoReturn:
        self.ctx.fail(node, f"expected a name that is defined, got '{ast.unparse(node)}'; names with values here: {', '.join(self.names()) or 'none'}{hint}")

    def names(self) -> list[str]:
        """Returns the names that have values at this point of the kernel."""
        return sorted(name for name, value in self.ctx.env.items() if name.isidentifier() and not isinstance(value, Gone))

    def listed(self, node: ast.Name, value: Listed) -> tuple[Any, ...]:
        """Returns the current elements of a list. Fails if one has no value here."""
        parts = [self.ctx.env[part] for part in value.parts(node.id)]
        gone = next((part for part in parts if isinstance(part, Gone)), None)
        if gone is not None:
            self.ctx.fail(node, f"expected a list whose elements have values here, got '{node.id}', {gone.reason}")
        return tuple(parts)

    def outside(self, value: Any, node: ast.AST) -> Any:
        """Converts the value of an outside name to its value in the kernel. Fails for values that a kernel cannot
        use."""
        number = as_number(value)
        if number is not None:
            return number
        known = (str, type(None), list, tuple, BuiltIn, Inline, ScalarType, DType, Base, types.ModuleType)
        if isinstance(value, known) or is_record(value):
            return tuple(value) if isinstance(value, list) else value
        if isinstance(value, (types.BuiltinFunctionType, type)):
            return value
        if isinstance(value, types.FunctionType):
            hint = hints.of_function(value.__name__, value)
            self.ctx.fail(node, f"expected a function marked @mlafix.inline, got '{value.__name__}', which is not{hint}")
        if isinstance(value, TensorType):
            self.ctx.fail(node, f"expected a value, got the type {value!r}; declare the tensor as an argument of the kernel")
        hint = hints.of_operand(value) or hints.of_outside(value) or hints.of_function(getattr(value, "__name__", ""), value)
        self.ctx.fail(node, f"expected a number, a built-in or an inline function, got {describe(value)}{hint}")

    def eval_Attribute(self, node: ast.Attribute) -> Any:
        if isinstance(node.value, ast.Name) and not self.is_defined(node.value.id):
            self.undefined(node, hints.of_member(node.value.id, node.attr))
        value = self.eval(node.value)
        if isinstance(value, Tensor):
            if node.attr != "shape":
                self.ctx.fail(node, f"expected .shape of a tensor, got .{node.attr}{hints.of_attribute(value, node.attr)}")
            if value.annotation.many:
                count = "ranks" if value.annotation.peers else "len"
                self.ctx.fail(node, f'expected shape("name") or {count}({value.name}), got .shape of {describe(value)}')
            return tuple(self.memory.dim(value, i, node) for i in range(value.rank))
        if isinstance(value, types.ModuleType):
            try:
                return self.outside(member(value, node.attr), node)
            except AttributeError:
                self.ctx.fail(node, f"expected a name in module {value.__name__}, got '{node.attr}'")
        if is_record(value):
            return self.field(value, node)
        hint = hints.of_attribute(value, node.attr)
        self.ctx.fail(node, f"expected .shape of a tensor, a name in a module, or a field of a record, got .{node.attr} of {describe(value)}{hint}")

    def field(self, record: Any, node: ast.Attribute) -> Any:
        names = field_names(record)
        if node.attr not in names:
            self.ctx.fail(node, f"expected a field of {describe(record)} ({', '.join(names) or 'none'}), got .{node.attr}")
        value = getattr(record, node.attr)
        return value if isinstance(value, (Dyn, Tensor, Peer, Sink, OfRows)) else self.outside(value, node)

    def eval_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.eval(element) for element in node.elts)

    def eval_List(self, node: ast.List) -> Any:
        return [self.eval(element) for element in node.elts]

    def eval_ListComp(self, node: ast.ListComp) -> Any:
        """``[identity("D") for h in range(4)]``: evaluates the expression once for each constant or item of a tuple."""
        (comprehension, *more) = node.generators
        if more or comprehension.ifs or not isinstance(comprehension.target, ast.Name):
            self.ctx.fail(node, f"expected [… for name in range(…)] with constants, or over a tuple, got {ast.unparse(node)}")
        values = self.items(comprehension.iter)
        outer = self.ctx.env
        made = []
        for value in values:
            self.ctx.env = {**outer, comprehension.target.id: value}
            made.append(self.eval(node.elt))
        self.ctx.env = outer
        return made

    def items(self, node: ast.expr) -> tuple[Any, ...]:
        """Returns the items over which a comprehension iterates."""
        if isinstance(node, ast.Call) and self.eval(node.func) is range:
            bounds = self.constant_bounds(node)
            if bounds is not None and 0 < len(bounds) <= MOST_UNROLLED:
                return tuple(bounds)
            self.ctx.fail(node, f"expected a range of constants, 1 to {MOST_UNROLLED} of them, in a comprehension, got {ast.unparse(node)}")
        values = self.eval(node)
        if not isinstance(values, (tuple, list)):
            self.ctx.fail(node, f"expected range(…) or a tuple in a comprehension, got {describe(values)}")
        return tuple(values)

    def constant_bounds(self, call: ast.Call) -> range | None:
        """Returns the range for a call of range. Returns None if an argument is not a constant integer, or if range
        does not accept the arguments."""
        bounds = [self.eval(argument) for argument in call.args]
        is_constant = 1 <= len(bounds) <= 3 and all(isinstance(bound, int) and not isinstance(bound, bool) for bound in bounds)
        return range(*bounds) if is_constant and not call.keywords and (len(bounds) < 3 or bounds[2]) else None

    def eval_Subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            tensor = self.eval(node.value.value)
            if isinstance(tensor, Tensor) and not tensor.annotation.many:
                return self.memory.dim(tensor, self.constant_index(node.slice, tensor.rank, of_shape=True), node)
        value = self.eval(node.value)
        if isinstance(value, (tuple, list)):  # a comprehension evaluates to a list
            return value[self.constant_index(node.slice, len(value))]
        if isinstance(value, Tensor) and value.annotation.many:
            return self.peer(value, node)
        if isinstance(value, Dyn) and value.type.kind == "row":
            return self.element_of_row(value, node)
        if not isinstance(value, (Tensor, Peer)):
            self.ctx.fail(node, f"expected a tensor, a row or a list before [ ], got {describe(value)}")
        return self.memory.read(self.element_of(value, node), node)

    def element_of_row(self, row: Dyn, node: ast.Subscript) -> Dyn:
        """Evaluates ``row[i]``, an element of a computed row. For a row along a product, ``row[g, k]`` is an element,
        and ``row[:, k]`` is element k of each group."""
        dim = Dim.of(row.type.dim)
        nodes = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        is_whole = [isinstance(part, ast.Slice) and ast.unparse(part) == ":" for part in nodes]
        parts = dim.factors or (dim.spelled,)
        if all(is_whole) and len(nodes) <= len(parts):
            return row
        if len(nodes) != len(parts) or is_whole[-1] or any(isinstance(part, ast.Slice) and not whole for part, whole in zip(nodes, is_whole)):
            usage = "an element, [g, k], or one of each group, [:, k]," if dim.factors else "an element, [i],"
            self.ctx.fail(node, f"expected {usage} of {describe(row)}, got {ast.unparse(node)}{hints.of_part_of_row(node)}")
        if not dim.factors:
            return self.rows.element(row, self.index(dim, nodes[0]), node)
        groups, group = map(Dim.of, dim.factors)
        member = self.rows.member(row, self.index(group, nodes[1]), node)
        return member if is_whole[0] else self.rows.element(member, self.index(groups, nodes[0]), node)

    def peer(self, tensor: Tensor, node: ast.Subscript) -> Peer:
        """Evaluates ``parts[r]``: the tensor of rank r, or tensor r of a list."""
        if isinstance(node.slice, (ast.Tuple, ast.Slice)):
            usage = f"a rank, as in {tensor.name}[r][…]" if tensor.annotation.peers else f"as in {tensor.name}[i][…]"
            self.ctx.fail(node, f"expected one index, {usage}, got {ast.unparse(node)}")
        return Peer(tensor, self.index(tensor.annotation.dims[0], node.slice))

    def constant_index(self, node: ast.expr, size: int, of_shape: bool = False) -> int:
        number = self.eval(node)
        if not isinstance(number, int) or isinstance(number, bool) or not -size <= number < size:
            known = f"a constant index from {-size} to {size - 1}" if size else f"no index into an empty {'shape' if of_shape else 'list'}"
            self.ctx.fail(node, f"expected {known}, got {describe(number)}{hints.of_index(number, of_shape)}")
        return number % size

    def element(self, node: ast.expr) -> Element:
        """Returns the element or row that ``tensor[i, j]`` names, without loading it. ``x[:]`` and ``x[t, :]`` also
        name rows."""
        of = self.eval(node.value) if isinstance(node, ast.Subscript) else self.eval(node)
        is_tensor = isinstance(of, Peer) or (isinstance(of, Tensor) and not of.annotation.many)
        if not isinstance(node, ast.Subscript) or not is_tensor:
            example = "parts[r][t, h]" if isinstance(of, Tensor) and of.annotation.many else "x[t, h]"
            self.ctx.fail(node, f"expected an element or a row of a tensor, as {example}, got {describe(of)}{hints.of_changed_element(of, node)}")
        return self.element_of(of, node)

    def element_of(self, of: Tensor | Peer, node: ast.Subscript) -> Element:
        tensor, first = (of.tensor, [of.rank]) if isinstance(of, Peer) else (of, [])
        dims = tensor.annotation.dims[len(first) :]
        rank = len(dims)
        nodes = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if rank and dims[-1].factors and rank <= len(nodes) <= rank + 1:
            group, member = self.part(tensor, dims[-1], nodes[rank - 1 :])
            return Element(tensor, [*first, *self.indices(tensor, dims, nodes[: rank - 1])], group, member)
        begin = end = 0
        if len(nodes) == rank and isinstance(nodes[-1], ast.Slice):
            row = nodes.pop()
            if ast.unparse(row) != ":":
                begin, end = self.slice_of(tensor, dims[-1], row)
        indices = self.indices(tensor, dims, nodes)
        if len(nodes) not in (rank, rank - 1):
            of_part = f", {rank} for a group of it" if rank and dims[-1].factors else ""
            count = rank + 1 if of_part else rank
            self.ctx.fail(
                node, f"expected {counted(rank - 1, 'index', 'indices')} for a row of '{tensor.name}'{of_part} or {count} for an element, got {len(nodes)}"
            )
        return Element(tensor, [*first, *indices], begin=begin, end=end)

    def slice_of(self, tensor: Tensor, dim: Dim, node: ast.Slice) -> tuple[int, int]:
        """Returns the range of elements that ``x[t, a:b]`` names, as (first element, one past the last)."""
        if node.step is not None and self.eval(node.step) != 1:
            self.ctx.fail(node.step, f"expected a slice of adjacent elements, which has a step of 1, got {ast.unparse(node)}{hints.of_row_slice(tensor)}")
        begin, end = (self.slice_end(bound, dim, node) for bound in (node.lower, node.upper))
        begin, end = begin or 0, dim.size if end is None else end
        if end is None:
            self.slice_end(ast.Constant(-1), dim, node, hints.of_open_slice(tensor, node))
        elif not 0 <= begin < end <= (dim.size or end):
            room = f", with ends from 0 to the row's {dim.size}" if dim.size else ""
            self.ctx.fail(node, f"expected a slice of one element or more{room}, got {ast.unparse(node)}")
        return begin, end

    def slice_end(self, bound: ast.expr | None, dim: Dim, node: ast.Slice, hint: str = "") -> int | None:
        """Evaluates a constant end of a slice. A negative end counts from the row's end, so the row's size must be
        known. Returns None if there is no `bound`. `hint` ends the error about an unknown size of the row."""
        number = None if bound is None else self.eval(bound)
        if number is None:
            return None
        if not isinstance(number, int) or isinstance(number, bool):
            self.ctx.fail(bound, f"expected constant integers as the ends of a slice, got {describe(number)}")
        if number >= 0:
            return number
        if dim.size is None:
            of = f"a row along {dim.spelled}, whose size is not in the tensor's type"
            self.ctx.fail(node, f"expected a slice with both ends, as 0:4, and no negative one, for {of}, got {ast.unparse(node)}{hint}")
        return number + dim.size

    def indices(self, tensor: Tensor, dims: tuple[Dim, ...], nodes: list[ast.expr]) -> list[Any]:
        for part in nodes:
            if isinstance(part, ast.Slice):
                self.ctx.fail(part, f"expected an index, got the slice {ast.unparse(part)}{hints.of_slice(tensor)}")
        return [self.index(dim, index) for dim, index in zip(dims, nodes)]

    def part(self, tensor: Tensor, dim: Dim, nodes: list[ast.expr]) -> tuple[Any, Any]:
        """Evaluates the indices (group, member) into the two factors of a row's dim. An index is None for ``:`` or if
        it is missing."""
        indices = []
        for factor, node in zip(dim.factors, nodes):
            if isinstance(node, ast.Slice):
                if ast.unparse(node) != ":":
                    self.ctx.fail(node, f"expected : for all of {factor}, got {ast.unparse(node)}{hints.of_part_slice(tensor)}")
                indices.append(None)
            else:
                indices.append(self.index(Dim.of(factor), node))
        group, member = (*indices, None)[:2]
        return group, member

    def index(self, dim: Dim, node: ast.expr) -> Any:
        value = self.eval(node)
        if isinstance(value, float):
            self.ctx.fail(node, f"expected an integer as an index, got {value!r}")
        if isinstance(value, int) and not 0 <= value < (dim.size or 2**63):
            size = f" and below {dim.size or '2^63'}" if dim.size or value > 0 else ""
            last = f"; the last is {dim.size - 1 if dim.size else f'shape({chr(34)}{dim.name}{chr(34)}) - 1'}" if value == -1 and (dim.size or dim.name) else ""
            self.ctx.fail(node, f"expected an index of at least 0{size}, got {describe(value)}{last}")
        return self.ctx.index(value, node)

    # -- Operators ---------------------------------------------------------------------------------------------------

    def eval_BinOp(self, node: ast.BinOp) -> Any:
        """Evaluates operands from left to right. Works without recursion, because generated code has sums of hundreds
        of terms."""
        chain = [node]
        while isinstance(chain[-1].left, ast.BinOp):
            chain.append(chain[-1].left)
        result = self.eval(chain[-1].left)
        for one in reversed(chain):
            if type(one.op) not in BINARY:
                self.ctx.fail(one, f"expected + - * / // % << >> & | or ^, got '{ast.unparse(one)}'{hints.of_operator(one)}")
            result = self.operators.binary(one, one.op, one.left, result, one.right, self.eval(one.right))
        return result

    def eval_UnaryOp(self, node: ast.UnaryOp) -> Any:
        return self.operators.unary(node, node.op, self.eval(node.operand), node.operand)

    def eval_Compare(self, node: ast.Compare) -> Any:
        operands = [node.left, *node.comparators]
        if any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            return self.compare_none(node)
        result: Any = True
        left = self.eval(node.left)
        for op, a_node, b_node in zip(node.ops, operands, operands[1:]):
            if type(op) not in COMPARE:
                self.ctx.fail(node, f"expected == != < <= > or >=, got '{ast.unparse(node)}'; any(row == x) is true if a row has an element x")
            right = self.eval(b_node)
            one = self.operators.compare(node, op, a_node, left, b_node, right)
            result = one if result is True else self.operators.both(result, one, node)
            left = right
        return result

    def compare_none(self, node: ast.Compare) -> Any:
        """Evaluates ``lse is None`` for an optional tensor."""
        value = self.eval(node.left)
        if len(node.ops) != 1 or self.eval(node.comparators[0]) is not None or not isinstance(value, (Tensor, type(None))):
            usage = "'x is None' or 'x is not None' of a tensor x that is an argument"
            self.ctx.fail(node, f"expected {usage}, got '{ast.unparse(node)}'; == and != compare numbers")
        absent = isinstance(node.ops[0], ast.Is)
        if value is None or not value.annotation.optional:
            return (value is None) == absent
        given = self.memory.present(value, node)
        return self.ctx.wrap(self.ctx.builder.unary("not", given.value, self.ctx.at(node))) if absent else given

    def eval_BoolOp(self, node: ast.BoolOp) -> Any:
        """Evaluates ``and`` and ``or``. An operand that Python would not evaluate reads no memory."""
        is_and = isinstance(node.op, ast.And)
        result = self.eval(node.values[0])
        for previous, operand in zip(node.values, node.values[1:]):
            if isinstance(result, bool):
                if result != is_and:
                    return result
                result = self.eval(operand)
                continue
            left = self.ctx.lift(result, previous)
            if left.type.dtype != "bool":
                self.ctx.fail(previous, f"expected bools for and/or, got {describe(left)}; compare it with something")
            scope = self.ctx.guarded(left, negated=not is_and) if left.is_bool else contextlib.nullcontext()
            with scope:
                right = self.eval(operand)
            if isinstance(right, bool) and right == is_and:
                continue
            right = self.ctx.lift(right, operand, "bool")
            if right.type.dtype != "bool":
                self.ctx.fail(operand, f"expected bools for and/or, got {describe(right)}; compare it with something")
            result = self.ctx.wrap(
                self.ctx.builder.binary("and" if is_and else "or", left.value, right.value, self.ctx.at(node))
            )
        return result

    def eval_IfExp(self, node: ast.IfExp) -> Any:
        """Evaluates ``a if c else b``. The operand that Python would not evaluate reads no memory."""
        condition = self.eval(node.test)
        if isinstance(condition, bool):
            return self.eval(node.body if condition else node.orelse)
        if not isinstance(condition, Dyn) or not condition.is_bool:
            self.ctx.fail(node.test, f"expected a bool for the condition, got {describe(condition)}{hints.of_condition(condition)}")
        if isinstance(node.body, ast.Subscript) and isinstance(node.orelse, ast.Constant) and not self.ctx.guards:
            # Evaluates ``x[t] if c else 0.0`` as one load with a predicate and an alternative value.
            tensor = self.eval(node.body.value) if isinstance(node.body.value, ast.Name) else None
            if isinstance(tensor, Tensor) and not tensor.annotation.many:
                with self.ctx.guarded(condition, negated=False):
                    element = self.element(node.body)
                otherwise = self.value(node.orelse, tensor.element)
                return self.memory.read(element, node, condition, otherwise)
        with self.ctx.guarded(condition, negated=False):
            yes = self.eval(node.body)
        with self.ctx.guarded(condition, negated=True):
            no = self.eval(node.orelse)
        return self.operators.select(condition, yes, node.body, no, node.orelse, node)
