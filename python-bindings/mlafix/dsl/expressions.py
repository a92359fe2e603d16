"""Expressions of a kernel: a syntax tree's node to a value of the builder, or to a compile-time constant."""

from __future__ import annotations

import ast
import contextlib
import operator
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from .source import Source
from .types import Base, DType, ScalarType, TensorType
from .values import Dyn, Element, Gone, Tensor, as_number, describe
from .words import Word

_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv),
    ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
    ast.LShift: ("shl", operator.lshift),
    ast.RShift: ("shr", operator.rshift),
    ast.BitAnd: ("and", operator.and_),
    ast.BitOr: ("or", operator.or_),
    ast.BitXor: ("xor", operator.xor),
}
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
}
_ALLOWED = (
    "a number, a name, an element of a tensor, arithmetic, a comparison, and/or/not, 'a if c else b' or a call of the "
    "language"
)
_KINDS = {
    ast.JoinedStr: "an f-string",
    ast.List: "a list",
    ast.Dict: "a dict",
    ast.Set: "a set",
    ast.ListComp: "a comprehension",
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


class Expressions:
    """Evaluates expressions in an environment.

    Args:
        builder: makes the operations.
        source: the function whose text it is.
        env: what names stand for.
        tensors: the kernel's tensor arguments, in order.
    """

    def __init__(self, builder: Any, source: Source, env: dict[str, Any], tensors: Sequence[Tensor]) -> None:
        self.builder = builder
        self.source = source
        self.env = env
        self.tensors = tensors
        # Conditions (value, whether it must not hold) under which the expression at hand is evaluated at all.
        self.guards: list[tuple[Dyn, bool]] = []

    def at(self, node: ast.AST) -> Any:
        return self.source.location(node)

    def fail(self, node: ast.AST, message: str) -> NoReturn:
        self.source.fail(node, message)

    def wrap(self, value: Any) -> Dyn:
        return Dyn(value, self.builder.type(value))

    # -- From constants to values ------------------------------------------------------------------------------------

    def lift(self, value: object, node: ast.AST, dtype: str = "") -> Dyn:
        """A value of the builder: itself, or a constant of a dtype (by default i32, f32 or bool, as Python has it)."""
        if isinstance(value, Dyn):
            return value
        number = as_number(value)
        if number is None:
            self.fail(node, f"expected a scalar, a row or a state, got {describe(value)}")
        if not dtype:
            dtype = "bool" if isinstance(number, bool) else "i32" if isinstance(number, int) else "f32"
        if isinstance(number, bool) != (dtype == "bool"):
            self.fail(node, f"expected a number of type {dtype}, got {number!r}")
        if dtype == "f32":
            return self.wrap(self.builder.constant_float(float(number), self.at(node)))
        if isinstance(number, float):
            self.fail(node, f"expected a whole number of type {dtype}, got {number!r}; f32(…) converts to floats")
        if not -(2**63) <= number < 2**63:
            self.fail(node, f"expected an integer of at most 64 bits, got {number}")
        return self.wrap(self.builder.constant_int(int(number), dtype, self.at(node)))

    def value(self, node: ast.expr, dtype: str = "") -> Dyn:
        """The value of an expression; a constant gets the dtype."""
        return self.lift(self.eval(node), node, dtype)

    def lift_pair(self, a: object, a_node: ast.AST, b: object, b_node: ast.AST) -> tuple[Dyn, Dyn]:
        """Two operands; a constant takes the other's dtype."""
        dtype = a.type.dtype if isinstance(a, Dyn) else b.type.dtype if isinstance(b, Dyn) else ""
        return self.lift(a, a_node, dtype), self.lift(b, b_node, dtype)

    def index(self, node: ast.expr) -> Dyn:
        """An integer expression as an index."""
        value = self.lift(self.eval(node), node, "index")
        if value.type.kind != "scalar" or value.type.dtype not in ("index", "i32", "i64"):
            self.fail(node, f"expected an integer (index, i32 or i64) as an index, got {describe(value)}")
        return self.convert(value, "index", node)

    def condition(self, node: ast.expr, what: str = "condition") -> Dyn | bool:
        """A bool, constant or not."""
        value = self.eval(node)
        if isinstance(value, bool):
            return value
        if not isinstance(value, Dyn) or not value.is_bool:
            self.fail(node, f"expected a bool for the {what}, got {describe(value)}")
        return value

    def convert(self, value: Dyn, dtype: str, node: ast.AST) -> Dyn:
        if value.type.dtype == dtype:
            return value
        return self.wrap(self.builder.convert(value.value, dtype, self.at(node)))

    # -- Predicates --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def guarded(self, condition: Dyn, negated: bool) -> Iterator[None]:
        """What is evaluated inside counts only where the condition holds (or does not): memory is not touched
        elsewhere."""
        self.guards.append((condition, negated))
        try:
            yield
        finally:
            self.guards.pop()

    def predicate(self, where: Dyn | bool | None, node: ast.AST) -> Any:
        """The builder's predicate for an access: that it was asked for, and that Python would have come by it."""
        parts = []
        for condition, negated in self.guards:
            value = condition.value
            parts.append(self.builder.unary("not", value, self.at(node)) if negated else value)
        if isinstance(where, Dyn):
            parts.append(where.value)
        elif where is False:
            parts.append(self.lift(False, node).value)
        result = None
        for part in parts:
            result = part if result is None else self.builder.binary("and", result, part, self.at(node))
        return result

    # -- Expressions -------------------------------------------------------------------------------------------------

    def eval(self, node: ast.expr) -> Any:
        """What an expression stands for."""
        method = getattr(self, f"eval_{type(node).__name__}", None)
        if method is None:
            kind = _KINDS.get(type(node), f"'{ast.unparse(node)}'")
            self.fail(node, f"expected {_ALLOWED}, got {kind}")
        return method(node)

    def eval_Constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, (bool, int, float, str, type(None))):
            return node.value
        self.fail(node, f"expected {_ALLOWED}, got {node.value!r}")

    def eval_Name(self, node: ast.Name) -> Any:
        if node.id in self.env:
            value = self.env[node.id]
            if isinstance(value, Gone):
                self.fail(node, f"expected a name that has a value here, got '{node.id}', {value.reason}")
            return value
        try:
            value = self.source.lookup(node.id)
        except KeyError:
            known = ", ".join(sorted(name for name, value in self.env.items() if not isinstance(value, Gone)))
            self.fail(node, f"expected a name that is defined, got '{node.id}'; here are {known or 'none'}")
        return self.outside(value, node)

    def outside(self, value: Any, node: ast.AST) -> Any:
        """What a name outside the kernel stands for inside."""
        number = as_number(value)
        if number is not None:
            return number
        known = (str, type(None), Word, ScalarType, DType, Base, types.ModuleType)
        if isinstance(value, known) or hasattr(value, "__mlafix_inline__") or isinstance(value, (list, tuple)):
            return tuple(value) if isinstance(value, list) else value
        if isinstance(value, (types.BuiltinFunctionType, type)):
            return value
        if isinstance(value, types.FunctionType):
            self.fail(node, f"expected a function marked @mlafix.inline, got '{value.__name__}', which is not")
        if isinstance(value, TensorType):
            self.fail(node, "expected a tensor as an argument, got its type")
        self.fail(node, f"expected a number, a word of the language or an inline function, got {describe(value)}")

    def eval_Attribute(self, node: ast.Attribute) -> Any:
        value = self.eval(node.value)
        if isinstance(value, Tensor):
            if node.attr != "shape":
                self.fail(node, f"expected .shape of a tensor, got .{node.attr}")
            return tuple(self.dim(value, i, node) for i in range(value.rank))
        if isinstance(value, types.ModuleType):
            try:
                return self.outside(getattr(value, node.attr), node)
            except AttributeError:
                self.fail(node, f"expected a name in module {value.__name__}, got '{node.attr}'")
        self.fail(node, f"expected .shape of a tensor, or a name in a module, got .{node.attr} of {describe(value)}")

    def dim(self, tensor: Tensor, position: int, node: ast.AST) -> Dyn:
        return self.wrap(self.builder.dim(tensor.value, position, self.at(node)))

    def eval_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.eval(element) for element in node.elts)

    def eval_Subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            tensor = self.eval(node.value.value)
            if isinstance(tensor, Tensor):
                return self.dim(tensor, self.constant_index(node.slice, tensor.rank), node)
        value = self.eval(node.value)
        if isinstance(value, tuple):
            return value[self.constant_index(node.slice, len(value))]
        if not isinstance(value, Tensor):
            self.fail(node, f"expected a tensor before [ ], got {describe(value)}")
        return self.read(self.element(node), node)

    def constant_index(self, node: ast.expr, size: int) -> int:
        number = self.eval(node)
        if not isinstance(number, int) or isinstance(number, bool) or not -size <= number < size:
            self.fail(node, f"expected a constant index below {size}, got {describe(number)}")
        return number % size

    def element(self, node: ast.expr) -> Element:
        """The place that ``tensor[i, j]`` names; it is not read. ``x[:]`` and ``x[t, :]`` name rows, too."""
        tensor = self.eval(node.value) if isinstance(node, ast.Subscript) else self.eval(node)
        if not isinstance(node, ast.Subscript) or not isinstance(tensor, Tensor):
            self.fail(node, f"expected an element or a row of a tensor, as x[t, h], got {describe(tensor)}")
        nodes = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(nodes) == tensor.rank and isinstance(nodes[-1], ast.Slice):
            row = nodes.pop()
            if ast.unparse(row) != ":":
                self.fail(row, f"expected : for a whole row, got {ast.unparse(row)}")
        if len(nodes) not in (tensor.rank, tensor.rank - 1):
            self.fail(
                node,
                f"expected {tensor.rank - 1} indices for a row of '{tensor.name}' or {tensor.rank} for an element, got "
                f"{len(nodes)}",
            )
        indices = []
        for dim, index in zip(tensor.annotation.dims, nodes):
            value = self.eval(index)
            if isinstance(value, int) and not 0 <= value < (dim.size or 2**63):
                size = f" and below {dim.size}" if dim.size else ""
                self.fail(index, f"expected an index of at least 0{size}, got {value}")
            indices.append(self.index_value(value, index))
        return Element(tensor, indices)

    def index_value(self, value: Any, node: ast.AST) -> Any:
        value = self.lift(value, node, "index")
        if value.type.kind != "scalar" or value.type.dtype not in ("index", "i32", "i64"):
            self.fail(node, f"expected an integer (index, i32 or i64) as an index, got {describe(value)}")
        return self.convert(value, "index", node).value

    def read(
        self,
        element: Element,
        node: ast.AST,
        where: Dyn | bool | None = None,
        otherwise: Dyn | None = None,
        dtype: str = "",
    ) -> Dyn:
        tensor = element.tensor
        other = otherwise.value if otherwise is not None else None
        predicate = self.predicate(where, node)
        if predicate is None:
            other = None
        dtype = dtype or tensor.element
        return self.wrap(
            self.builder.load(tensor.value, element.indices, predicate, other, dtype, self.at(node))
        )

    # -- Operators ---------------------------------------------------------------------------------------------------

    def eval_BinOp(self, node: ast.BinOp) -> Any:
        if type(node.op) not in _BINARY:
            self.fail(node, f"expected + - * / // % << >> & | or ^, got '{ast.unparse(node)}'")
        return self.binary(node, node.op, node.left, self.eval(node.left), node.right, self.eval(node.right))

    def binary(self, node: ast.AST, op: ast.operator, a_node: ast.AST, a: Any, b_node: ast.AST, b: Any) -> Any:
        name, python = _BINARY[type(op)]
        if as_number(a) is not None and as_number(b) is not None:
            try:
                result = python(a, b)
            except (ArithmeticError, TypeError, ValueError, MemoryError) as error:
                self.fail(node, f"expected a number, got {type(error).__name__}: {error}")
            return result
        left, right = self.lift_pair(a, a_node, b, b_node)
        if name == "div" and left.type.dtype in ("i32", "i64", "index"):
            self.fail(node, f"expected floats for /, got {left.type.dtype}; // divides integers, f32(…) makes floats")
        if name in ("floordiv", "mod") and left.type.dtype == "f32":
            self.fail(node, "expected integers for // and %, got f32; floor(a / b) rounds down")
        if name in ("floordiv", "mod") and as_number(b) == 0:
            self.fail(b_node, "expected a divisor other than 0, got 0")
        return self.wrap(self.builder.binary(name, left.value, right.value, self.at(node)))

    def eval_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self.eval(node.operand)
        if as_number(value) is not None:
            result = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_, ast.Invert: operator.invert}
            if isinstance(node.op, ast.Invert) and isinstance(value, float):
                self.fail(node, "expected an integer for ~, got a float")
            return result[type(node.op)](value)
        value = self.lift(value, node.operand)
        if isinstance(node.op, ast.USub):
            return self.wrap(self.builder.unary("neg", value.value, self.at(node)))
        if isinstance(node.op, ast.Not):
            if value.type.dtype != "bool":
                self.fail(node, f"expected a bool after not, got {describe(value)}; compare it with something")
            return self.wrap(self.builder.unary("not", value.value, self.at(node)))
        self.fail(node, f"expected - or not before a value, got '{ast.unparse(node)}'")

    def eval_Compare(self, node: ast.Compare) -> Any:
        operands = [node.left, *node.comparators]
        if any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            return self.compare_none(node)
        result: Any = True
        left = self.eval(node.left)
        for op, a_node, b_node in zip(node.ops, operands, operands[1:]):
            if type(op) not in _COMPARE:
                self.fail(node, f"expected == != < <= > or >=, got '{ast.unparse(node)}'")
            right = self.eval(b_node)
            one = self.compare(node, op, a_node, left, b_node, right)
            result = one if result is True else self.both(result, one, node)
            left = right
        return result

    def compare(self, node: ast.AST, op: ast.cmpop, a_node: ast.AST, a: Any, b_node: ast.AST, b: Any) -> Any:
        name, python = _COMPARE[type(op)]
        if isinstance(a, (str, int, float)) and isinstance(b, (str, int, float)):
            try:
                return bool(python(a, b))
            except TypeError as error:
                self.fail(node, f"expected values that can be compared, got {error}")
        left, right = self.lift_pair(a, a_node, b, b_node)
        return self.wrap(self.builder.compare(name, left.value, right.value, self.at(node)))

    def compare_none(self, node: ast.Compare) -> Any:
        """``lse is None``, for an optional tensor."""
        value = self.eval(node.left)
        if len(node.ops) != 1 or self.eval(node.comparators[0]) is not None or not isinstance(value, (Tensor, type(None))):
            self.fail(node, f"expected 'tensor is None' or 'tensor is not None', got '{ast.unparse(node)}'")
        absent = isinstance(node.ops[0], ast.Is)
        if value is None or not value.annotation.optional:
            return (value is None) == absent
        given = self.wrap(self.builder.present(value.value, self.at(node)))
        return self.wrap(self.builder.unary("not", given.value, self.at(node))) if absent else given

    def both(self, a: Any, b: Any, node: ast.AST) -> Any:
        if a is False or b is True:
            return a
        if b is False or a is True:
            return b
        return self.wrap(self.builder.binary("and", a.value, b.value, self.at(node)))

    def eval_BoolOp(self, node: ast.BoolOp) -> Any:
        """``and`` and ``or``: memory that Python would not read is not read."""
        is_and = isinstance(node.op, ast.And)
        result = self.eval(node.values[0])
        for previous, operand in zip(node.values, node.values[1:]):
            if isinstance(result, bool):
                if result != is_and:
                    return result
                result = self.eval(operand)
                continue
            left = self.lift(result, previous)
            if left.type.dtype != "bool":
                self.fail(previous, f"expected bools for and/or, got {describe(left)}; compare it with something")
            scope = self.guarded(left, negated=not is_and) if left.is_bool else contextlib.nullcontext()
            with scope:
                right = self.eval(operand)
            if isinstance(right, bool) and right == is_and:
                continue
            right = self.lift(right, operand, "bool")
            if right.type.dtype != "bool":
                self.fail(operand, f"expected bools for and/or, got {describe(right)}; compare it with something")
            result = self.wrap(
                self.builder.binary("and" if is_and else "or", left.value, right.value, self.at(node))
            )
        return result

    def eval_IfExp(self, node: ast.IfExp) -> Any:
        """``a if c else b``: memory that Python would not read is not read."""
        condition = self.eval(node.test)
        if isinstance(condition, bool):
            return self.eval(node.body if condition else node.orelse)
        if not isinstance(condition, Dyn) or not condition.is_bool:
            self.fail(node.test, f"expected a bool for the condition, got {describe(condition)}")
        if isinstance(node.body, ast.Subscript) and isinstance(node.orelse, ast.Constant) and not self.guards:
            # A load with a value instead is one operation.
            tensor = self.eval(node.body.value) if isinstance(node.body.value, ast.Name) else None
            if isinstance(tensor, Tensor):
                with self.guarded(condition, negated=False):
                    element = self.element(node.body)
                otherwise = self.value(node.orelse, tensor.element)
                return self.read(element, node, condition, otherwise)
        with self.guarded(condition, negated=False):
            yes = self.eval(node.body)
        with self.guarded(condition, negated=True):
            no = self.eval(node.orelse)
        return self.select(condition, yes, node.body, no, node.orelse, node)

    def select(self, condition: Dyn, yes: Any, yes_node: ast.AST, no: Any, no_node: ast.AST, node: ast.AST) -> Dyn:
        if not isinstance(yes, Dyn) and not isinstance(no, Dyn):
            if isinstance(as_number(yes), float) or isinstance(as_number(no), float):
                yes, no = self.lift(yes, yes_node, "f32"), self.lift(no, no_node, "f32")
        left, right = self.lift_pair(yes, yes_node, no, no_node)
        return self.wrap(self.builder.select(condition.value, left.value, right.value, self.at(node)))

    def eval_Call(self, node: ast.Call) -> Any:
        raise NotImplementedError  # Calls adds it
