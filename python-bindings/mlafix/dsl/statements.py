"""Statements of a kernel: assignments, stores, loops, branches, and the grid around them."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from typing import Any

from .. import _diagnostics
from ..errors import CompileError
from . import scope, words
from .calls import Calls
from .operators import BINARY
from .source import Source
from .types import Base
from .values import Dyn, Gone, Tensor, as_number, describe

_ALLOWED = "an assignment, a store, 'for … in range(…)', 'if' or a call of store or store_state"
# Calls of inline functions that an error inside them shows.
_MAX_NOTES = 4
_NAMES = {
    ast.While: "while",
    ast.Return: "return",
    ast.Break: "break",
    ast.Continue: "continue",
    ast.Raise: "raise",
    ast.Try: "try",
    ast.Assert: "assert",
    ast.With: "with",
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.Delete: "del",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.FunctionDef: "def",
    ast.ClassDef: "class",
}


class Statements(Calls):
    """Runs statements: what they do appears in the builder.

    Args:
        note_base: remembers the default of a base's name; gives the name.
    """

    def __init__(
        self,
        builder: Any,
        source: Source,
        env: dict[str, Any],
        tensors: Sequence[Tensor],
        note_base: Callable[[Base], str],
    ) -> None:
        super().__init__(builder, source, env, tensors)
        self.note_base = note_base  # type: ignore[method-assign]

    def run(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            method = getattr(self, f"run_{type(statement).__name__}", None)
            if method is None:
                name = _NAMES.get(type(statement), type(statement).__name__)
                self.fail(statement, f"expected {_ALLOWED}, got '{name}'")
            method(statement)

    def run_Pass(self, node: ast.Pass) -> None:
        pass

    def run_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return  # a docstring
        result = self.eval(node.value)
        if result is not None:
            self.fail(node, f"expected {_ALLOWED}, got a value that nothing uses")

    # -- Assignments -------------------------------------------------------------------------------------------------

    def run_Assign(self, node: ast.Assign) -> None:
        value = self.eval(node.value)
        if value is None and isinstance(node.value, ast.Call):
            self.fail(node.value, "expected a value, got a call that gives none")
        for target in node.targets:
            self.assign(target, value, node.value)

    def run_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.fail(node, f"expected an assignment without a type, as '{ast.unparse(node.target)} = …', got one with a type")

    def run_AugAssign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            text = ast.unparse(node.target)
            self.fail(node.target, f"expected a name before {ast.unparse(node).split(' ')[1]}, got '{text}'; write {text} = …")
        old = self.eval(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
        if type(node.op) not in BINARY:
            self.fail(node, f"expected + - * / // % << >> & | or ^ before =, got '{ast.unparse(node)}'")
        value = self.binary(node, node.op, node.target, old, node.value, self.eval(node.value))
        self.assign(node.target, value, node.value)

    def assign(self, target: ast.expr, value: Any, value_node: ast.expr) -> None:
        if isinstance(target, ast.Name):
            old = self.env.get(target.id)
            if isinstance(old, Tensor) and old.name == target.id and self.depth == 0:
                self.fail(target, f"expected a name of its own, got '{target.id}', which is an argument")
            self.env[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            if not isinstance(value, tuple) or len(value) != len(target.elts):
                self.fail(target, f"expected {len(target.elts)} values, got {describe(value)}")
            for element, part in zip(target.elts, value):
                self.assign(element, part, value_node)
        elif isinstance(target, ast.Subscript):
            self.write(self.element(target), value, value_node, target)
        else:
            self.fail(target, f"expected a name or an element of a tensor before =, got '{ast.unparse(target)}'")

    # -- Branches ----------------------------------------------------------------------------------------------------

    def run_If(self, node: ast.If) -> None:
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            self.run(node.body if condition else node.orelse)
            return
        before = dict(self.env)
        either = dict.fromkeys([*scope.assigned(node.body), *scope.assigned(node.orelse)])
        surely = scope.surely_assigned(node.body) & scope.surely_assigned(node.orelse)
        merged = [name for name in either if name in surely or self.has_value(before, name)]
        # Whichever branch ran, a name must have one type: constants become values of the other branch's type.
        at = self.at(node)
        self.builder.begin_if(condition.value, at)
        self.run(node.body)
        then = {name: self.branch_value(name, node) for name in merged}
        if merged or node.orelse:
            self.builder.begin_else([value.value for value in then.values()], at)
        self.env = dict(before)
        if node.orelse:
            self.run(node.orelse)
        other = {}
        for name in merged:
            other[name] = self.branch_value(name, node, then[name].type.dtype)
            if str(other[name].type) != str(then[name].type):
                self.fail(
                    node,
                    f"expected one type for '{name}' after the branch, got {describe(then[name])} if the condition holds "
                    f"and {describe(other[name])} if not",
                )
        results = self.builder.end_if([value.value for value in other.values()], at)
        self.env = before
        for name in either:
            self.env[name] = Gone("which only some branches of an 'if' assign")
        for name, result in zip(merged, results):
            self.env[name] = self.wrap(result)

    @staticmethod
    def has_value(env: dict[str, Any], name: str) -> bool:
        return name in env and not isinstance(env[name], Gone)

    def branch_value(self, name: str, node: ast.AST, dtype: str = "") -> Dyn:
        """What a name is at the end of a branch, as a value."""
        return self.carried(self.env[name], name, node, dtype)

    def carried(self, value: Any, name: str, node: ast.AST, dtype: str = "") -> Dyn:
        if not isinstance(value, Dyn) and as_number(value) is None:
            self.fail(node, f"expected a scalar, a row or a state for '{name}', which changes here, got {describe(value)}")
        return self.lift(value, node, dtype)

    # -- Loops -------------------------------------------------------------------------------------------------------

    def run_For(self, node: ast.For) -> None:
        if node.orelse:
            self.fail(node.orelse[0], "expected a loop without else, got one")
        if isinstance(node.iter, ast.Call):
            function = self.eval(node.iter.func)
            if function is builtins.range:
                self.loop(node, node.iter)
                return
            if function in (words.grid, words.segments):
                self.fail(node.iter, "expected one grid, around everything else, got one inside another statement")
        values = self.eval(node.iter)
        if not isinstance(values, tuple):
            self.fail(node.iter, f"expected range(…) or a tuple to loop over, got {describe(values)}")
        for value in values:  # a tuple is known here: the body appears once for each of its elements
            self.assign(node.target, value, node.iter)
            self.run(node.body)

    def bounds(self, call: ast.Call) -> tuple[Dyn, Dyn, Dyn]:
        if call.keywords or not 1 <= len(call.args) <= 3:
            self.fail(call, "expected range(end), range(start, end) or range(start, end, step), got other arguments")
        parts = [self.eval(argument) for argument in call.args]
        nodes: list[ast.AST] = list(call.args)
        if len(parts) == 1:
            parts, nodes = [0, *parts], [call, *nodes]
        if len(parts) == 2:
            parts, nodes = [*parts, 1], [*nodes, call]
        dtypes = dict.fromkeys(part.type.dtype for part in parts if isinstance(part, Dyn))
        if len(dtypes) > 1 or not set(dtypes) <= {"index", "i32", "i64"}:
            self.fail(call, f"expected bounds of one type (index, i32 or i64), got {' and '.join(dtypes)}")
        if not isinstance(parts[2], int) or isinstance(parts[2], bool) or parts[2] < 1:
            self.fail(nodes[2], f"expected a constant step of at least 1, got {describe(parts[2])}")
        dtype = next(iter(dtypes), "index")
        lower, upper, step = (self.lift(part, part_node, dtype) for part, part_node in zip(parts, nodes))
        return lower, upper, step

    def loop(self, node: ast.For, call: ast.Call) -> None:
        if not isinstance(node.target, ast.Name):
            self.fail(node.target, f"expected one name for the loop's index, got '{ast.unparse(node.target)}'")
        lower, upper, step = self.bounds(call)
        names = [name for name in scope.assigned(node.body) if self.has_value(self.env, name)]
        names = [name for name in names if name != node.target.id]
        initial = {name: self.carried(self.env[name], name, node) for name in names}
        at = self.at(node)
        inside = self.builder.begin_for(
            lower.value, upper.value, step.value, [value.value for value in initial.values()], at
        )
        before = dict(self.env)
        self.env[node.target.id] = self.wrap(inside[0])
        for name, value in zip(names, inside[1:]):
            self.env[name] = self.wrap(value)
        self.run(node.body)
        following = []
        for name in names:
            value = self.carried(self.env[name], name, node, initial[name].type.dtype)
            if str(value.type) != str(initial[name].type):
                self.fail(
                    node,
                    f"expected '{name}' to keep its type in the loop, got {describe(initial[name])} before it and "
                    f"{describe(value)} after a turn",
                )
            following.append(value.value)
        results = self.builder.end_for(following, at)
        self.env = before
        for name in [node.target.id, *scope.assigned(node.body)]:
            self.env[name] = Gone("which only the body of a loop assigns")
        for name, result in zip(names, results):
            self.env[name] = self.wrap(result)

    # -- Inline functions --------------------------------------------------------------------------------------------

    def inline(self, function: Any, arguments: list[Any], keywords: dict[str, Any], node: ast.Call) -> Any:
        """What an inline function returns: its statements appear here."""
        source = function.source()
        env = function.bind(self.source, node, arguments, keywords)
        body = list(source.node.body)
        last = body.pop() if isinstance(body[-1], ast.Return) else None
        inner = Statements(self.builder, source, env, self.tensors, self.note_base)
        inner.depth, inner.guards = self.depth + 1, self.guards
        try:
            inner.run(body)
            return inner.eval(last.value) if last is not None and last.value is not None else None
        except CompileError as error:
            if self.depth >= _MAX_NOTES:
                raise
            place = self.source.place(node)
            note = _diagnostics.render(_diagnostics.Message("note", f"'{function.name}' is called here", *place))
            raise CompileError(f"{error.message}\n{note}", error.file, error.line, error.column) from None
