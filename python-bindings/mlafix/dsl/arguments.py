"""Defines the base of the classes that translate calls of built-ins: it matches arguments to parameters, and checks
their types."""

from __future__ import annotations

import ast

from . import hints
from .built_ins import BuiltIn
from .expressions import Expressions
from .types import Base
from .values import Dyn, as_number, describe


class BuiltIns:
    """The base of classes that translate calls of built-ins. Their method `call_NAME` translates the calls of NAME. The
    methods of this class find and evaluate the arguments of a call."""

    def __init__(self, expressions: Expressions) -> None:
        self.ctx = expressions.ctx
        self.expressions = expressions
        self.memory = expressions.memory
        self.operators = expressions.operators
        self.rows = expressions.rows

    def by_name(self, node: ast.Call, built_in: BuiltIn, required: str, optional: str = "") -> dict[str, ast.expr]:
        """Maps the names of a call's arguments to their nodes. `required` and `optional` list names, separated by
        spaces. A call passes required arguments by position or by name, and optional ones by name. If a name in
        `optional` begins with "/", a call may also pass that argument by position."""
        names, extra = required.split(), optional.split()
        found: dict[str, ast.expr] = {}
        if len(node.args) > len(names) + sum(name.startswith("/") for name in extra):
            self.ctx.fail(node, f"expected {built_in.usage}, got {len(node.args)} arguments")
        positional = [*names, *(name[1:] for name in extra if name.startswith("/"))]
        known = [*names, *(name.lstrip("/") for name in extra)]
        found.update(zip(positional, node.args))
        for keyword in node.keywords:
            if keyword.arg not in known:
                self.ctx.fail(keyword.value, f"expected {built_in.usage}, got an argument '{keyword.arg}'{hints.of_argument(built_in.name, str(keyword.arg))}")
            if keyword.arg in found:
                self.ctx.fail(keyword.value, f"expected each argument once, got '{keyword.arg}' twice")
            found[str(keyword.arg)] = keyword.value
        for name in names:
            if name not in found:
                self.ctx.fail(node, f"expected {built_in.usage}, got no '{name}'")
        return found

    def where(self, found: dict[str, ast.expr]) -> Dyn | bool | None:
        return self.expressions.condition(found["where"], "predicate") if "where" in found else None

    def base(self, found: dict[str, ast.expr]) -> str:
        """Returns the base that a call gives for an lse: "e", "2" or the name of a base variable. If the call
        gives none, returns the base variable "B"."""
        if "base" not in found:
            return self.ctx.note_base(Base())
        node = found["base"]
        value = self.expressions.eval(node)
        if isinstance(value, Base):
            return self.ctx.note_base(value)
        if value in ("e", "2") or (value == 2 and not isinstance(value, bool)):
            return str(value)
        self.ctx.fail(node, f'expected "e", 2 or a Base for the base, got {describe(value)}')

    def count(self, node: ast.expr, least: int) -> int:
        """Evaluates a constant integer. Fails if it is less than `least`."""
        value = self.expressions.eval(node)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            self.ctx.fail(node, f"expected a constant integer of {least} or more, got {describe(value)}")
        return value

    def dim_name(self, node: ast.expr, usage: str) -> str:
        return self.memory.row_dim(self.expressions.dim_or_size(node, usage), node)

    def state(self, node: ast.expr) -> Dyn:
        return self.as_state(self.expressions.eval(node), node)

    def as_state(self, value: object, node: ast.expr) -> Dyn:
        if not isinstance(value, Dyn) or value.type.kind != "state":
            self.ctx.fail(node, f"expected a state, got {describe(value)}")
        return value

    def float_value(self, node: ast.expr, what: str, kinds: tuple[str, ...] = ("scalar", "row")) -> Dyn:
        value = self.expressions.value(node, "f32") if as_number(literal(node)) is not None else self.expressions.value(node)
        if value.type.kind not in kinds or value.type.dtype != "f32":
            names = " or ".join({"scalar": "f32", "row": "a row of f32"}[kind] for kind in kinds)
            hint = hints.of_state() if value.type.kind == "state" else ""
            self.ctx.fail(node, f"expected {names} for {what}, got {describe(value)}{hint}")
        return value


def literal(node: ast.expr) -> object:
    """Returns the value of a literal. Returns None for any other expression."""
    return node.value if isinstance(node, ast.Constant) else None
