"""Built-ins that promise something of a call or of what its tensors hold."""

from __future__ import annotations

import ast

from .arguments import Arguments
from .built_ins import BuiltIn
from .expressions import Expressions
from .values import Tensor, describe


class PromiseBuiltIns:
    """Calls of assume and distinct."""

    def __init__(self, expressions: Expressions, arguments: Arguments) -> None:
        self.ctx = expressions.ctx
        self.expressions = expressions
        self.arguments = arguments

    def call_assume(self, node: ast.Call, built_in: BuiltIn) -> None:
        argument = self.arguments.by_name(node, built_in, "condition")["condition"]
        condition = self.expressions.condition(argument)
        if condition is True:
            return
        if condition is False:
            self.ctx.fail(argument, "expected a condition that may hold, got one that is always false")
        self.ctx.builder.assume(condition.value, ast.unparse(argument), self.ctx.at(node))

    def call_distinct(self, node: ast.Call, built_in: BuiltIn) -> None:
        argument = self.arguments.by_name(node, built_in, "table")["table"]
        table = self.expressions.eval(argument)
        if not isinstance(table, Tensor):
            self.ctx.fail(argument, f"expected a tensor of integers, got {describe(table)}")
        self.ctx.builder.distinct(table.value, self.ctx.at(node))
