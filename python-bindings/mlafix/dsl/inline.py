"""Functions that kernels may call. A call is replaced by the function's statements."""

from __future__ import annotations

import ast
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError
from .pickled import by_name
from .source import Source, keep_text


class Inline:
    """A function marked with @inline.

    A call binds the function's arguments to values, tensors and constants. The function may end with a return
    statement.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if not isinstance(function, types.FunctionType):
            raise ArgumentError(f"@inline: expected a function, got {function!r}")
        self.function = function
        self.name = function.__name__
        keep_text(function)
        functools.update_wrapper(self, function)

    def __repr__(self) -> str:
        return f"<mlafix inline function {self.name}>"

    def __copy__(self) -> Inline:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Inline:
        return self

    def __reduce__(self) -> str:
        return by_name(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise ArgumentError(f"{self.name}(): expected to be called inside a kernel, got a call outside")

    @functools.lru_cache(maxsize=1)  # noqa: B019 (inline functions live as long as their modules)
    def source(self) -> Source:
        return Source(self.function)

    def bind(self, caller: Source, node: ast.Call, arguments: list[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        """Maps the names of the function's parameters to the arguments of a call. If they do not match, raises a
        CompileError that underlines the call."""
        bound = bind(caller, node, self.function, arguments, keywords)
        bound.apply_defaults()
        return dict(bound.arguments)


def bind(caller: Source, node: ast.Call, called: Callable[..., Any], arguments: list[Any], keywords: dict[str, Any]) -> inspect.BoundArguments:
    """Binds the parameters of `called` to the arguments of a call. If they do not match, raises a CompileError that
    underlines the call."""
    signature = inspect.signature(called)
    try:
        return signature.bind(*arguments, **keywords)
    except TypeError as error:
        plain = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
        spelled = inspect.Signature(plain)
        caller.fail(node, f"expected a call {called.__name__}{spelled}: {error}")


def inline(function: Callable[..., Any]) -> Inline:
    """Marks a function as one that kernels may call."""
    return Inline(function)
