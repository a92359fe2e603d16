"""Evaluates the operators of a kernel on values and constants: arithmetic, comparisons, selection."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

from . import hints
from .context import Context
from .values import Dyn, as_number, describe


# The following functions compute operations on constants. Where Python would raise an exception or return another
# result than a kernel computes, these functions return the kernel's result.


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


# The most bits of an integer constant: more than any dtype has, but few enough to fit in memory.
_MOST_BITS = 1 << 20


def _bits(op: ast.operator, a: Any, b: Any) -> int:
    """Returns the approximate number of bits of a product or left shift of two integer constants. Returns 0 for other
    operations, whose results do not grow."""
    if not isinstance(a, int) or not isinstance(b, int) or not a or not b:
        return 0
    if isinstance(op, ast.Mult):
        return a.bit_length() + b.bit_length()
    return a.bit_length() + b if isinstance(op, ast.LShift) and b > 0 else 0


def _shift_right(a: Any, b: Any) -> Any:
    return -int(a < 0) if b < 0 and isinstance(a, int) and isinstance(b, int) else a >> b


def extreme(name: str, a: Any, b: Any) -> Any:
    """Returns the "min" or "max" of two constants. The result is NaN if one is NaN, and -0.0 is below 0.0."""
    if a != a or b != b:
        return math.nan
    if a == b == 0 and (isinstance(a, float) or isinstance(b, float)):
        return min(a, b, key=_sign) if name == "min" else max(a, b, key=_sign)
    return min(a, b) if name == "min" else max(a, b)


def _sign(number: float) -> float:
    return math.copysign(1.0, number)


def rounded(number: Any) -> float:
    """Rounds a number to the nearest integer (ties to even), as a float with the number's sign. Raises
    OverflowError for an integer that is too large for a float."""
    return math.copysign(float(round(number)), number) if isinstance(number, int) or math.isfinite(number) else number


def integer(number: Any, bits: int) -> int:
    """Converts a constant to an integer. Rounds a float toward zero, saturates it at the ends of the range of a signed
    integer with `bits` bits, and turns NaN into 0."""
    if not isinstance(number, float):
        return int(number)
    if number != number:
        return 0
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return least if number <= least else most if number >= most else int(number)


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
    """Evaluates operators: on constants with Python, on values with the builder."""

    def __init__(self, context: Context) -> None:
        self.ctx = context

    def binary(self, node: ast.AST, op: ast.operator, a_node: ast.AST, a: Any, b_node: ast.AST, b: Any) -> Any:
        name, python = BINARY[type(op)]
        one, other = as_number(a), as_number(b)
        if isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
            self.check_bits(op, a_node, a, b_node, b)
        if one is not None and other is not None:
            if (bits := _bits(op, one, other)) > _MOST_BITS:
                self.ctx.fail(node, f"expected an integer of at most {_MOST_BITS} bits, got one of {describe(bits)}")
            try:
                result = python(one, other)
            except (ArithmeticError, TypeError, ValueError) as error:
                self.ctx.fail(node, f"expected a number, got {type(error).__name__}: {error}")
            return result
        left, right = self.ctx.lift_pair(a, a_node, b, b_node)
        self.ctx.check_computes(name, node, left, right)
        if name in ("shl", "shr") and left.type.dtype == "f32":
            self.ctx.fail(node, f"expected integers for << and >>, got {describe(left)}; i32(…) converts, and x * 2.0 doubles a float")
        if name == "div" and left.type.dtype in ("i32", "i64", "index"):
            self.ctx.fail(node, f"expected floats for /, got {left.type.dtype}; // divides integers, f32(…) makes floats")
        if name in ("floordiv", "mod") and left.type.dtype == "f32":
            self.ctx.fail(node, "expected integers for // and %, got f32; floor(a / b) rounds down")
        return self.ctx.wrap(self.ctx.builder.binary(name, left.value, right.value, self.ctx.at(node)))

    def check_bits(self, op: ast.operator, a_node: ast.AST, a: Any, b_node: ast.AST, b: Any) -> None:
        """Fails for operands of & | and ^ that are floats."""
        for place, value in ((a_node, a), (b_node, b)):
            if isinstance(value, float) or (isinstance(value, Dyn) and value.type.kind != "state" and value.type.dtype == "f32"):
                sign = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}[type(op)]
                self.ctx.fail(place, f"expected integers or bools for {sign}, got {describe(value)}{hints.of_bits(sign)}")

    def unary(self, node: ast.AST, op: ast.unaryop, value: Any, operand: ast.AST) -> Any:
        number = as_number(value)
        if number is not None:
            result = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_, ast.Invert: operator.invert}
            if isinstance(op, ast.Invert) and isinstance(number, float):
                self.ctx.fail(node, "expected an integer for ~, got a float")
            if isinstance(op, ast.Not) and not isinstance(number, bool):
                self.ctx.fail(node, f"expected a bool after not, got {describe(number)}; compare it with something")
            return result[type(op)](number)
        value = self.ctx.lift(value, operand)
        if isinstance(op, ast.USub):
            self.ctx.check_computes("neg", node, value)
            if value.type.dtype == "bool":
                self.ctx.fail(node, f"expected a number after -, got {describe(value)}; not … negates a bool, f32(…) makes 1 of true and 0 of false")
            return self.ctx.wrap(self.ctx.builder.unary("neg", value.value, self.ctx.at(node)))
        if isinstance(op, ast.Not):
            if value.type.dtype != "bool":
                self.ctx.fail(node, f"expected a bool after not, got {describe(value)}{hints.of_negation(None)}")
            return self.ctx.wrap(self.ctx.builder.unary("not", value.value, self.ctx.at(node)))
        hint = "; leave out the +" if isinstance(op, ast.UAdd) else hints.of_negation(value)
        self.ctx.fail(node, f"expected - or not before a value, got '{ast.unparse(node)}'{hint}")

    def compare(self, node: ast.AST, op: ast.cmpop, a_node: ast.AST, a: Any, b_node: ast.AST, b: Any) -> Any:
        name, python = COMPARE[type(op)]
        one, other = (value if isinstance(value, str) else as_number(value) for value in (a, b))
        if one is not None and other is not None:
            try:
                return bool(python(one, other))
            except TypeError as error:
                self.ctx.fail(node, f"expected values that can be compared, got {error}")
        left, right = self.ctx.lift_pair(a, a_node, b, b_node)
        for value in (left, right):
            if value.type.kind == "state":
                self.ctx.fail(node, f"expected scalars or rows to compare, got {describe(value)}{hints.of_state()}")
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
