"""Errors about arguments, in the runtime's form, with the names of the function that was called."""

from __future__ import annotations

import functools
import inspect
import re
from typing import Callable, ParamSpec, TypeVar

from .errors import ArgumentError

P = ParamSpec("P")
R = TypeVar("R")
_ARGUMENT = re.compile(r'argument "([\w.]+)"')


def wrong(argument: str, expected: str, got: object) -> ArgumentError:
    """The error to raise: which argument, what was expected, what it got."""
    return ArgumentError(f'argument "{argument}": expected {expected}, got {got}')


def check_integer(name: str, value: object) -> None:
    """Raises ArgumentError unless the value is an integer of Python's, numpy's or a symbolic one."""
    if not isinstance(value, int) and not hasattr(type(value), "__index__"):
        raise wrong(name, "an integer", repr(value))


def renames(**names: str | tuple[str, ...]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """For a function whose arguments have other names than what it calls has: its errors then speak of its own.

    Of several names an error has the first one whose argument is there and is not None: an output that the caller gave, say, and
    else what a new one was made like.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        order = list(inspect.signature(function).parameters)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except ArgumentError as error:
                # torch.compile traces this too, and not every release of it knows str(error) or "from None".
                message: str = error.args[0]
            given = {**dict(zip(order, args)), **kwargs}

            def own(match: re.Match[str]) -> str:
                known = names.get(match[1], match[1])
                if isinstance(known, tuple):
                    known = next((name for name in known if given.get(name) is not None), known[-1])
                return f'argument "{known}"'

            raise ArgumentError(_ARGUMENT.sub(own, message))

        return call

    return decorate
