"""Operators in a kernel: arithmetic, comparisons, and/or/not, 'a if c else b'."""

from __future__ import annotations

import ast
import contextlib
import math
import operator
from collections.abc import Callable
from typing import Any

from .expressions import Expressions
from .values import Dyn, Tensor, as_number, describe


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
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
}


class Operators(Expressions):
    """Expressions with operators."""

    def eval_BinOp(self, node: ast.BinOp) -> Any:
        if type(node.op) not in BINARY:
            self.fail(node, f"expected + - * / // % << >> & | or ^, got '{ast.unparse(node)}'")
        return self.binary(node, node.op, node.left, self.eval(node.left), node.right, self.eval(node.right))

    def binary(self, node: ast.AST, op: ast.operator, a_node: ast.AST, a: Any, b_node: ast.AST, b: Any) -> Any:
        name, python = BINARY[type(op)]
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
