"""Translates built-ins for promises about a call or the contents of its tensors, and the built-in print."""

from __future__ import annotations

import ast

from .._files.toolchain import utf8
from . import hints
from .arguments import BuiltIns
from .built_ins import BuiltIn
from .values import Dyn, Tensor, as_number, describe


class PromiseBuiltIns(BuiltIns):
    """Translates calls of assume, distinct and print."""

    def call_assume(self, node: ast.Call, built_in: BuiltIn) -> None:
        argument = self.by_name(node, built_in, "condition")["condition"]
        condition = self.expressions.condition(argument)
        if condition is True:
            return
        if condition is False:
            self.ctx.fail(argument, "expected a condition that may hold, got one that is always false")
        self.ctx.builder.assume(condition.value, ast.unparse(argument), self.ctx.at(node))

    def call_distinct(self, node: ast.Call, built_in: BuiltIn) -> None:
        if self.ctx.indices is not None:
            self.ctx.fail(node, "expected distinct(…) before the grid, got it inside: move it above 'for … in grid(…)'")
        argument = self.by_name(node, built_in, "table")["table"]
        table = self.expressions.eval(argument)
        if not isinstance(table, Tensor):
            self.ctx.fail(argument, f"expected a tensor of integers, got {describe(table)}")
        self.ctx.builder.distinct(table.value, self.ctx.at(node))

    def print(self, node: ast.Call) -> None:
        """Evaluates a call such as ``print("lse", x, f"of {t}")``, which prints one text with its arguments separated
        by spaces."""
        if node.keywords:
            self.ctx.fail(node.keywords[0].value, f"expected print(value, …), got an argument '{node.keywords[0].arg}'")
        values: list[Dyn] = []
        text = " ".join(self._piece(argument, values) for argument in node.args)
        self.ctx.builder.print(utf8(text), [value.value for value in values], self.ctx.at(node))

    def _piece(self, node: ast.expr, values: list[Dyn]) -> str:
        """Returns the text of one argument of print, with {} for each value in it. Appends these values to `values`."""
        if isinstance(node, ast.JoinedStr):
            return "".join(self._piece(part, values) for part in node.values)
        if isinstance(node, ast.FormattedValue):
            if node.format_spec is not None or node.conversion != -1:
                self.ctx.fail(node.value, f"expected {{…}} without a format, got {ast.unparse(ast.JoinedStr([node]))}")
            return self._piece(node.value, values)
        value = self.expressions.eval(node)
        if isinstance(value, Dyn) and value.type.kind in ("scalar", "row", "state"):
            values.append(value)
            return "{}"
        if isinstance(value, str) or as_number(value) is not None:
            return (value if isinstance(value, str) else describe(value)).replace("{}", "{ }")
        self.ctx.fail(node, f"expected a scalar, a row, a state, a number or a text to print, got {describe(value)}{hints.of_printed(value)}")
