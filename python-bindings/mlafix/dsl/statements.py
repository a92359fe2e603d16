"""Translates the statements of a kernel: assignments, stores, loops, branches, and calls of inline functions."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Sequence
from typing import Any

from .._reports import diagnostics
from ..errors import CompileError
from . import built_ins, hints, scope
from .calls import Calls
from .context import Context
from .expressions import MOST_UNROLLED, Expressions
from .inline import Inline
from .memory import Memory
from .operators import BINARY, Operators
from .source import TOO_DEEP, python
from .values import Dyn, Gone, Listed, Tensor, alike, as_number, describe, is_record

_ALLOWED = "an assignment, a store, 'for … in range(…)', 'if' or a call of store or store_state"
# The most inline calls that an error shows.
_MAX_NOTES = 4
# The words of statements whose syntax nodes have other names.
_WORDS = {ast.ImportFrom: "import", ast.Delete: "del", ast.FunctionDef: "def", ast.ClassDef: "class"}


class Statements:
    """Translates statements by adding operations to the builder.

    Args:
        context: the state shared by the translator's classes.
    """

    def __init__(self, context: Context) -> None:
        self.ctx = context
        self.operators = Operators(context)
        self.memory = Memory(context)
        self.expressions = Expressions(context, self.operators, self.memory, lambda node: self.calls.call(node))
        self.calls = Calls(self.expressions, self.inline)

    def run(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            method = getattr(self, f"run_{type(statement).__name__}", None)
            if method is None:
                name = _WORDS.get(type(statement), type(statement).__name__.lower())
                self.ctx.fail(statement, f"expected {_ALLOWED}, got '{name}'{hints.of_statement(statement, self.ctx.depth > 0)}")
            is_level = isinstance(statement, (ast.If, ast.For))
            try:
                with self.ctx.nested(statement) if is_level else contextlib.nullcontext():
                    method(statement)
            except RecursionError:
                self.ctx.fail(statement, TOO_DEEP)

    def run_Pass(self, node: ast.Pass) -> None:
        pass

    def run_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return  # a docstring
        result = self.expressions.eval(node.value)
        if result is not None:
            self.ctx.fail(node, f"expected {_ALLOWED}, got a value that nothing uses")

    # -- Assignments -------------------------------------------------------------------------------------------------

    def run_Assign(self, node: ast.Assign) -> None:
        value = self.expressions.eval(node.value)
        if value is None and isinstance(node.value, ast.Call):
            hint = "; an inline function ends with return …" if isinstance(self.expressions.eval(node.value.func), Inline) else ""
            self.ctx.fail(node.value, f"expected a value, got {ast.unparse(node.value.func)}(…), which returns nothing{hint}")
        for target in node.targets:
            self.assign(target, value, node.value)

    def run_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.ctx.fail(node, f"expected an assignment without a type, as '{ast.unparse(node.target)} = …', got one with a type")

    def run_AugAssign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            text, written = ast.unparse(node.target), ast.unparse(ast.BinOp(node.target, node.op, node.value))
            sign = ast.unparse(ast.AugAssign(ast.Name("a"), node.op, ast.Name("b"))).split(" ")[1]
            self.ctx.fail(node.target, f"expected a name before {sign}, got '{text}'; write {text} = {written} and declare the tensor InOut")
        old = self.expressions.eval(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
        if type(node.op) not in BINARY:
            self.ctx.fail(node, f"expected + - * / // % << >> & | or ^ before =, got '{ast.unparse(node)}'")
        value = self.operators.binary(node, node.op, node.target, old, node.value, self.expressions.eval(node.value))
        self.assign(node.target, value, node.value)

    def assign(self, target: ast.expr, value: Any, value_node: ast.expr) -> None:
        if isinstance(target, ast.Name):
            old = self.ctx.env.get(target.id)
            if isinstance(old, Tensor) and old.name == target.id and self.ctx.depth == 0:
                self.ctx.fail(target, f"expected a name of its own, got '{target.id}', which is an argument")
            self.bind(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            if not isinstance(value, (tuple, list)) or len(value) != len(target.elts):
                self.ctx.fail(target, f"expected {len(target.elts)} values, got {describe(value)}")
            for element, part in zip(target.elts, value):
                self.assign(element, part, value_node)
        elif isinstance(target, ast.Subscript) and self.list_of(target) is not None:
            name, listed = self.list_of(target)
            self.ctx.env[listed.part(name, self.expressions.constant_index(target.slice, listed.count))] = value
        elif isinstance(target, ast.Subscript):
            self.memory.write(self.expressions.element(target), value, value_node, target)
        else:
            self.ctx.fail(target, f"expected a name or an element of a tensor before =, got '{ast.unparse(target)}'")

    def bind(self, name: str, value: Any) -> None:
        if isinstance(value, list):
            listed = Listed(len(value))
            self.ctx.env.update(zip(listed.parts(name), value))
            value = listed
        self.ctx.env[name] = value

    def list_of(self, node: ast.expr) -> tuple[str, Listed] | None:
        """Returns the list to which a subscript refers, as (name, list). Returns None if `node` is no subscript of a
        list."""
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            return None
        value = self.ctx.env.get(node.value.id)
        return (node.value.id, value) if isinstance(value, Listed) else None

    def assigned(self, statements: Sequence[ast.stmt]) -> list[str]:
        """Returns the names that statements may assign; for a list, the names of its elements."""
        plain = scope.assigned(statements)
        names: dict[str, None] = {}
        for name in [*plain, *scope.stored(statements)]:
            value = self.ctx.env.get(name)
            if isinstance(value, Listed):
                names.update(dict.fromkeys(value.parts(name)))
            elif name in plain:
                names[name] = None
        return list(names)

    def keep_lists(self, before: dict[str, Any], node: ast.stmt) -> None:
        """Fails if a name that is a list in `before` is not a list of the same length now."""
        for name, value in before.items():
            now = self.ctx.env.get(name)
            if isinstance(value, Listed) and now != value:
                self.ctx.fail(node, f"expected '{name}' to keep its length and types, {describe(value)}, got {describe(now)}")

    # -- Branches ----------------------------------------------------------------------------------------------------

    def run_If(self, node: ast.If) -> None:
        condition = self.expressions.condition(node.test)
        if isinstance(condition, bool):
            self.run(node.body if condition else node.orelse)
            return
        before = dict(self.ctx.env)
        either = dict.fromkeys([*self.assigned(node.body), *self.assigned(node.orelse)])
        surely = scope.surely_assigned(node.body) & scope.surely_assigned(node.orelse)
        merged = [name for name in either if name in surely or self.has_value(before, name)]
        # A name must have the same type after both branches. So a constant that one branch assigns becomes a value of
        # the type that the name has after the other branch. Of the first branch, the builder converts integers.
        at = self.ctx.at(node)
        self.ctx.builder.begin_if(condition.value, at)
        self.run(node.body)
        self.keep_lists(before, node)
        then = {name: self.carried(name, node) for name in merged}
        integers = {name for name in merged if type(as_number(self.ctx.env[name])) is int}
        if merged or node.orelse:
            self.ctx.builder.begin_else([value.value for value in then.values()], at)
        self.ctx.env = dict(before)
        if node.orelse:
            self.run(node.orelse)
        self.keep_lists(before, node)
        other = {}
        for name in merged:
            other[name] = self.carried(name, node, "" if name in integers else then[name].type.dtype)
            is_number = other[name].type.kind == "scalar" and other[name].type.dtype in ("f32", "i64", "index")
            if not (name in integers and is_number) and not alike(other[name].type, then[name].type):
                self.ctx.fail(
                    node,
                    f"expected one type for '{name}' after the branch, got {describe(then[name])} if the condition holds "
                    f"and {describe(other[name])} if not",
                )
        results = self.ctx.builder.end_if([value.value for value in other.values()], at)
        self.ctx.env = before
        for name in either:
            self.ctx.env[name] = Gone("which only some branches of an 'if' assign")
        for name, result in zip(merged, results):
            self.ctx.env[name] = self.ctx.wrap(result)

    @staticmethod
    def has_value(env: dict[str, Any], name: str) -> bool:
        return name in env and not isinstance(env[name], Gone)

    def carried(self, name: str, node: ast.AST, dtype: str = "") -> Dyn:
        """Returns the value of a name that a branch or a loop changes. A constant becomes a value of `dtype`."""
        value = self.ctx.env[name]
        if not isinstance(value, Dyn) and as_number(value) is None:
            self.ctx.fail(node, f"expected a scalar, a row or a state for '{name}', which changes here, got {describe(value)}")
        return self.ctx.lift(value, node, dtype)

    # -- Loops -------------------------------------------------------------------------------------------------------

    def run_For(self, node: ast.For) -> None:
        if node.orelse:
            self.ctx.fail(node.orelse[0], "expected a loop without an else clause, got one with it")
        if isinstance(node.iter, ast.Call):
            function = self.expressions.eval(node.iter.func)
            if function is python.range:
                self.loop(node, node.iter)
                return
            if function in (built_ins.grid, built_ins.segments):
                self.ctx.fail(node.iter, "expected one grid, around everything else, got one inside another statement; grid(\"n\", \"H\") has an index for each dim")
        values = self.expressions.eval(node.iter)
        if not isinstance(values, (tuple, list)):
            self.ctx.fail(node.iter, f"expected range(…) or a tuple to loop over, got {describe(values)}{hints.of_range(values)}")
        for value in values:  # the length of a tuple is constant, so the loop is unrolled
            self.assign(node.target, value, node.iter)
            self.run(node.body)

    def bounds(self, call: ast.Call) -> tuple[Dyn, Dyn, Dyn]:
        if call.keywords or not 1 <= len(call.args) <= 3:
            self.ctx.fail(call, f"expected range(end), range(start, end) or range(start, end, step), got {ast.unparse(call)}")
        parts = [self.expressions.eval(argument) for argument in call.args]
        nodes: list[ast.AST] = list(call.args)
        if len(parts) == 1:
            parts, nodes = [0, *parts], [call, *nodes]
        if len(parts) == 2:
            parts, nodes = [*parts, 1], [*nodes, call]
        for part, place in zip(parts, nodes):
            if isinstance(part, float) or (isinstance(part, Dyn) and part.type.dtype == "f32"):
                self.ctx.fail(place, f"expected integers in range(…), got {describe(part)}; i32(…) rounds towards zero")
        dtypes = dict.fromkeys(part.type.dtype for part in parts if isinstance(part, Dyn))
        if set(dtypes) <= {"index", "i32", "i64"} and "index" in dtypes:  # an integer combined with an index becomes an index
            parts = [self.ctx.convert(part, "index", node) if isinstance(part, Dyn) else part for part, node in zip(parts, nodes)]
            dtypes = {"index": None}
        if len(dtypes) > 1 or not set(dtypes) <= {"index", "i32", "i64"}:
            self.ctx.fail(call, f"expected bounds of one type (index, i32 or i64), got {' and '.join(dtypes)}")
        if not isinstance(parts[2], int) or isinstance(parts[2], bool) or parts[2] < 1:
            hint = "; count up, and compute what counts down, as n - 1 - i" if isinstance(parts[2], int) else "; count by 1, and multiply, as i * step"
            self.ctx.fail(nodes[2], f"expected a constant step of at least 1, got {describe(parts[2])}{hint}")
        dtype = next(iter(dtypes), "index")
        lower, upper, step = (self.ctx.lift(part, part_node, dtype) for part, part_node in zip(parts, nodes))
        return lower, upper, step

    def loop(self, node: ast.For, call: ast.Call) -> None:
        if not isinstance(node.target, ast.Name):
            self.ctx.fail(node.target, f"expected one name for the loop's index, got '{ast.unparse(node.target)}'")
        if self.indexes_list(node):
            self.unroll(node, node.target.id, call)
            return
        lower, upper, step = self.bounds(call)
        body = self.assigned(node.body)
        names = [name for name in body if self.has_value(self.ctx.env, name)]
        names = [name for name in names if name != node.target.id]
        initial = {name: self.carried(name, node) for name in names}
        at = self.ctx.at(node)
        inside = self.ctx.builder.begin_for(
            lower.value, upper.value, step.value, [value.value for value in initial.values()], at
        )
        before = dict(self.ctx.env)
        self.ctx.env[node.target.id] = self.ctx.wrap(inside[0])
        for name, value in zip(names, inside[1:]):
            self.ctx.env[name] = self.ctx.wrap(value)
        self.run(node.body)
        self.keep_lists(before, node)
        following = []
        for name in names:
            value = self.carried(name, node, initial[name].type.dtype)
            if not alike(value.type, initial[name].type):
                self.ctx.fail(
                    node,
                    f"expected '{name}' to keep its type in the loop, got {describe(initial[name])} before it and "
                    f"{describe(value)} after an iteration",
                )
            if value.type.sink > initial[name].type.sink:
                self.ctx.fail(
                    node,
                    f"expected a sink to be merged once, outside of the loop, got '{name}' without a sink before it and with "
                    "one after an iteration",
                )
            following.append(value.value)
        results = self.ctx.builder.end_for(following, at)
        self.ctx.env = before
        for name in [node.target.id, *body]:
            self.ctx.env[name] = Gone("which only the body of a loop assigns")
        for name, result in zip(names, results):
            self.ctx.env[name] = self.ctx.wrap(result)

    def indexes_list(self, node: ast.For) -> bool:
        """True if the body subscripts a list or a tuple by the loop's index."""
        index = node.target.id  # type: ignore[attr-defined]
        subscripts = [part for statement in node.body for part in ast.walk(statement) if self.has_elements(part)]
        return any(isinstance(name, ast.Name) and name.id == index for part in subscripts for name in ast.walk(part.slice))

    def has_elements(self, node: ast.AST) -> bool:
        """True if `node` subscripts a list or a tuple, which is given by name or as a field of a record."""
        if not isinstance(node, ast.Subscript):
            return False
        root = node.value
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name):
            return False
        value = self.expressions.known(root.id)
        if root is not node.value:
            return is_record(value) and isinstance(self.expressions.eval(node.value), tuple)
        return isinstance(value, (Listed, tuple, list))

    def unroll(self, node: ast.For, index: str, call: ast.Call) -> None:
        """Translates the body once for each number of a range with constant bounds."""
        bounds = self.expressions.constant_bounds(call)
        if bounds is None or len(bounds) > MOST_UNROLLED:
            self.ctx.fail(
                call,
                f"expected a range of constants, at most {MOST_UNROLLED} of them, since the body indexes a list by "
                f"'{index}', got {ast.unparse(call)}",
            )
        for number in bounds:
            self.ctx.env[index] = number
            self.run(node.body)
        self.ctx.env[index] = Gone("which only the body of a loop assigns")

    # -- Inline functions --------------------------------------------------------------------------------------------

    def inline(self, function: Any, arguments: list[Any], keywords: dict[str, Any], node: ast.Call) -> Any:
        """Inlines a call: translates the function's statements, and returns the call's result or None."""
        source = function.source()
        env = function.bind(self.ctx.source, node, arguments, keywords)
        body = list(source.node.body)
        last = body.pop() if isinstance(body[-1], ast.Return) else None
        inner = Statements(self.ctx.inside(source, env))
        try:
            inner.run(body)
            return inner.expressions.eval(last.value) if last is not None and last.value is not None else None
        except CompileError as error:
            if self.ctx.depth >= _MAX_NOTES:
                raise
            place = self.ctx.source.place(node)
            note = diagnostics.render(diagnostics.Message("note", f"'{function.name}' is called here", *place))
            raise CompileError(f"{error.message}\n{note}", error.file, error.line, error.column) from None
