"""Operators of a kernel on values and constants: arithmetic, comparisons, selection."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

from .context import Context
from .values import Dyn, as_number, describe


# What Python refuses of constants, and a kernel computes of values.


def _divide(a: Any, b: Any) -> Any:
    if b != 0:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


def _floor_divide(a: Any, b: Any) -> Any:
    return a if b == 0 and isinstance(a, int) and isinstance(b, int) else a // b


def _modulo(a: Any, b: Any) -> Any:
    return 0 if b == 0 and isinstance(a, int) and isinstance(b, int) else a % b


def _shift_left(a: Any, b: Any) -> Any:
    return 0 if b < 0 and isinstance(a, int) and isinstance(b, int) else a << b


def _shift_right(a: Any, b: Any) -> Any:
    return -int(a < 0) if b < 0 and isinstance(a, int) and isinstance(b, int) else a >> b


BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", _divide),
    ast.FloorDiv: ("floordiv", _floor_divide),
    ast.Mod: ("mod", _modulo),
    ast.LShift: ("shl", _shift_left),
    ast.RShift: ("shr", _shift_right),
    ast.BitAnd: ("and", operator.and_),
    ast.BitOr: ("or", operator.or_),
    ast.BitXor: ("xor", operator.xor),
}
COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
}


class Operators:
    """What operators do: constants are computed here, values by the builder."""

    def __init__(self, context: Context) -> None:
        self.ctx = context

    def binary(self, node: ast.AST, op: ast.operator, a_node: ast.AST, a: Any, b_node: ast.AST, b: Any) -> Any:
        name, python = BINARY[type(op)]
        if as_number(a) is not None and as_number(b) is not None:
            try:
                result = python(a, b)
            except (ArithmeticError, TypeError, ValueError, MemoryError) as error:
                self.ctx.fail(node, f"expected a number, got {type(error).__name__}: {error}")
            return result
        left, right = self.ctx.lift_pair(a, a_node, b, b_node)
        self.ctx.check_computes(name, node, left, right)
        if name == "div" and left.type.dtype in ("i32", "i64", "index"):
            self.ctx.fail(node, f"expected floats for /, got {left.type.dtype}; // divides integers, f32(…) makes floats")
        if name in ("floordiv", "mod") and left.type.dtype == "f32":
            self.ctx.fail(node, "expected integers for // and %, got f32; floor(a / b) rounds down")
        return self.ctx.wrap(self.ctx.builder.binary(name, left.value, right.value, self.ctx.at(node)))

    def unary(self, node: ast.AST, op: ast.unaryop, value: Any, operand: ast.AST) -> Any:
        if as_number(value) is not None:
            result = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_, ast.Invert: operator.invert}
            if isinstance(op, ast.Invert) and isinstance(value, float):
                self.ctx.fail(node, "expected an integer for ~, got a float")
            return result[type(op)](value)
        value = self.ctx.lift(value, operand)
        if isinstance(op, ast.USub):
            self.ctx.check_computes("neg", node, value)
            return self.ctx.wrap(self.ctx.builder.unary("neg", value.value, self.ctx.at(node)))
        if isinstance(op, ast.Not):
            if value.type.dtype != "bool":
                self.ctx.fail(node, f"expected a bool after not, got {describe(value)}; compare it with something")
            return self.ctx.wrap(self.ctx.builder.unary("not", value.value, self.ctx.at(node)))
        self.ctx.fail(node, f"expected - or not before a value, got '{ast.unparse(node)}'")

    def compare(self, node: ast.AST, op: ast.cmpop, a_node: ast.AST, a: Any, b_node: ast.AST, b: Any) -> Any:
        name, python = COMPARE[type(op)]
        if isinstance(a, (str, int, float)) and isinstance(b, (str, int, float)):
            try:
                return bool(python(a, b))
            except TypeError as error:
                self.ctx.fail(node, f"expected values that can be compared, got {error}")
        left, right = self.ctx.lift_pair(a, a_node, b, b_node)
        return self.ctx.wrap(self.ctx.builder.compare(name, left.value, right.value, self.ctx.at(node)))

    def both(self, a: Any, b: Any, node: ast.AST) -> Any:
        if a is False or b is True:
            return a
        if b is False or a is True:
            return b
        return self.ctx.wrap(self.ctx.builder.binary("and", a.value, b.value, self.ctx.at(node)))

    def select(self, condition: Dyn, yes: Any, yes_node: ast.AST, no: Any, no_node: ast.AST, node: ast.AST) -> Dyn:
        if not isinstance(yes, Dyn) and not isinstance(no, Dyn):
            if isinstance(as_number(yes), float) or isinstance(as_number(no), float):
                yes, no = self.ctx.lift(yes, yes_node, "f32"), self.ctx.lift(no, no_node, "f32")
        left, right = self.ctx.lift_pair(yes, yes_node, no, no_node)
        return self.ctx.wrap(self.ctx.builder.select(condition.value, left.value, right.value, self.ctx.at(node)))
