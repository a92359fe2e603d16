"""Evaluates calls in a kernel: of built-ins, conversions, Python's functions such as abs and max, inline functions and
records."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from . import functions, hints
from .arithmetic_built_ins import ArithmeticBuiltIns
from .built_ins import BuiltIn
from .expressions import Expressions
from .inline import Inline, bind
from .memory_built_ins import MemoryBuiltIns
from .promise_built_ins import PromiseBuiltIns
from .source import python
from .state_built_ins import StateBuiltIns
from .types import ScalarType
from .values import Dyn, Tensor, describe, holds_arguments, is_record_type

_MAX_INLINE = 32


class Calls:
    """Evaluates calls.

    Args:
        expressions: evaluates the arguments.
        inline: evaluates a call of an inline function. Takes the function, the positional arguments, the keyword
            arguments and the call's node.
    """

    def __init__(self, expressions: Expressions, inline: Callable[[Any, list[Any], dict[str, Any], ast.Call], Any]) -> None:
        self.ctx = expressions.ctx
        self.expressions = expressions
        self.inline = inline
        self.arithmetic = ArithmeticBuiltIns(expressions)
        self.promises = PromiseBuiltIns(expressions)
        groups = (self.arithmetic, MemoryBuiltIns(expressions), StateBuiltIns(expressions), self.promises)
        self.built_ins = {
            name[len("call_") :]: getattr(group, name) for group in groups for name in dir(group) if name.startswith("call_")
        }
        self.built_ins |= dict.fromkeys(functions.UNARY, self.arithmetic.call_unary)

    def call(self, node: ast.Call) -> Any:
        function = self.expressions.eval(node.func)
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                self.ctx.fail(argument, f"expected arguments one by one, got {ast.unparse(argument)}")
        for keyword in node.keywords:
            if keyword.arg is None:
                self.ctx.fail(keyword.value, f"expected arguments one by one, got **{ast.unparse(keyword.value)}")
        if isinstance(function, BuiltIn):
            if function.name not in self.built_ins:
                self.ctx.fail(node, f"expected {function.usage} only in the header of a for loop, got it in an expression")
            return self.built_ins[function.name](node, function)
        if isinstance(function, Inline):
            return self._inline(node, function)
        if is_record_type(function):
            return self._record(node, function)
        return self._python(node, function)

    def _python(self, node: ast.Call, function: Any) -> Any:
        """Evaluates a call of a conversion or of a Python built-in."""
        if isinstance(function, ScalarType):
            return self.arithmetic.convert(node, function)
        if function in (python.min, python.max):
            return self.arithmetic.extreme(node, function)
        if function is python.sum:
            return self.arithmetic.reduce(node, "add", 'sum(row) or sum(row, along="K")')
        if function in (python.any, python.all):
            name = function.__name__
            return self.arithmetic.reduce(node, "max" if function is python.any else "min", f'{name}(row) or {name}(row, along="K")', ("bool",))
        if function is python.abs:
            return self.arithmetic.absolute(node)
        if function is python.print:
            return self.promises.print(node)
        if function is python.round:
            return self.arithmetic.rounded(node)
        if function is python.len and len(node.args) == 1 and not node.keywords:
            return self._len(node.args[0])
        if function is python.float and len(node.args) == 1 and as_number_text(node.args[0]):
            return float(node.args[0].value)  # type: ignore[attr-defined]
        self.ctx.fail(node.func, self._what_to_call(node, function))

    def _len(self, node: ast.expr) -> Any:
        """Evaluates the length of a list of tensors or of a tuple."""
        value = self.expressions.eval(node)
        if isinstance(value, (tuple, list)):
            return len(value)
        if not isinstance(value, Tensor) or not value.annotation.most:
            self.ctx.fail(node, f"expected a list of tensors, declared with List, or a tuple, got {describe(value)}{hints.of_length(value)}")
        return self.expressions.memory.dim(value, 0, node)

    def _what_to_call(self, node: ast.Call, function: Any) -> str:
        name = ast.unparse(node.func)
        if isinstance(function, (Dyn, Tensor)):
            row = hints.of_operand(function) or "; [ ] reads a tensor"
            return f"expected a function before ( ), got {describe(function)}{row}"
        short = name.rpartition(".")[2]
        if function is python.range:
            return "expected range(…) only in the header of a for loop, got it in an expression"
        conversions = {python.float: "f32", python.int: "i32", python.bool: "bool_"}
        for theirs, ours in conversions.items():
            if function is theirs:
                return f"expected {ours}(…) to convert a value, got {name}(…)"
        if hints.is_built_in(short):
            return f"expected a built-in, got '{name}'{hints.of_function(name, function)}"
        return (
            f"expected a built-in, abs, all, any, len, min, max, sum, round, a conversion (f32, i32, i64, index, bool_), an inline "
            f"function or a frozen dataclass to call, got '{name}'{hints.of_function(name, function)}"
        )

    def _inline(self, node: ast.Call, function: Any) -> Any:
        if self.ctx.depth >= _MAX_INLINE:
            self.ctx.fail(node, f"expected inline functions at most {_MAX_INLINE} deep, got more: does '{function.name}' call itself?")
        return self.inline(function, *self._arguments(node), node)

    def _record(self, node: ast.Call, made: Any) -> Any:
        """Evaluates a call that creates a record, an instance of a frozen dataclass of values."""
        if not holds_arguments(made):
            self.ctx.fail(node, f"expected a dataclass with its generated __init__, no __post_init__ and no default_factory, got '{made.__name__}'")
        arguments, keywords = self._arguments(node)
        bind(self.ctx.source, node, made, arguments, keywords)
        return made(*arguments, **keywords)

    def _arguments(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        return [self._argument(argument) for argument in node.args], {str(keyword.arg): self._argument(keyword.value) for keyword in node.keywords}

    def _argument(self, node: ast.expr) -> Any:
        value = self.expressions.eval(node)
        return tuple(value) if isinstance(value, list) else value


def as_number_text(node: ast.expr) -> bool:
    """True if `node` is a text that float() converts in a kernel: "inf", "-inf" or "nan"."""
    return isinstance(node, ast.Constant) and node.value in ("inf", "-inf", "nan")
