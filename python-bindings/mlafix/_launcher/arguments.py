"""Makes errors about arguments, in the runtime's form and with the argument names of the called function."""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any, Callable, Mapping, ParamSpec, Tuple, TypeVar, Union

import numpy

from ..errors import ArgumentError

P = ParamSpec("P")
R = TypeVar("R")
_ARGUMENT = re.compile(r'argument "([\w.]+)"')


def wrong(argument: str, expected: str, got: object) -> ArgumentError:
    """Returns the ArgumentError for an argument. `expected` describes the values that the argument takes, `got` the
    value that was passed."""
    return ArgumentError(f'argument "{argument}": expected {expected}, got {got}')


def check_integer(name: str, value: Any, least: int | None = None) -> Any:
    """Checks that a value is an integer of at most 64 bits, or a symbolic integer, and returns it. Converts numpy
    integers to int, since products of numpy integers overflow. Raises ArgumentError for any other value, including a
    bool, and for a value below `least`."""
    if isinstance(value, int) and not isinstance(value, bool):  # the only test of a symbol that torch.compile can trace
        if not -(1 << 63) <= value < 1 << 63:
            raise wrong(name, "an integer of 64 bits", value)
    elif hasattr(value, "__dlpack__"):
        raise wrong(name, "an integer", type(value).__qualname__)
    elif isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise wrong(name, "an integer", repr(value))
    if least is not None and value < least:
        raise wrong(name, f"{least} or more", value)
    return int(value) if isinstance(value, numpy.integer) else value


def check_flag(name: str, value: Any) -> None:
    """Raises ArgumentError unless the value is a bool of Python, numpy or torch (symbolic), or 1 or 0."""
    if type(value).__name__ not in ("bool", "bool_", "SymBool") and not (isinstance(value, int) and value in (0, 1)):
        raise wrong(name, "True or False", type(value).__qualname__)


def check_number(name: str, value: Any) -> None:
    """Raises ArgumentError unless the value is a number of Python or numpy, or a symbolic one."""
    if not hasattr(type(value), "__float__") or hasattr(value, "__dlpack__"):
        raise wrong(name, "a number", type(value).__qualname__)


Names = Mapping[str, Union[str, Tuple[str, ...]]]
"""Maps the name of an argument in an error to the caller's name for it, or to a tuple of the caller's names. For
example, a tuple names an output, and the input that determines the shape of the output if the output is omitted. In an
error of a kernel, a tuple stands for its first name whose argument was passed and is not None, else for its last name.
In any other error, a tuple stands for its first name."""


def in_callers_words(message: str, names: Names, given: Mapping[str, object]) -> str:
    """Replaces argument names in an error's message by the caller's names. `given` maps the caller's names to the
    values that were passed."""

    def own(match: re.Match[str]) -> str:
        known = names.get(match[1], match[1])
        if isinstance(known, tuple):
            passed = [name for name in known if given.get(name) is not None] or known[-1:]
            known = passed[0] if message.startswith("kernel ") else known[0]
        return f'argument "{known}"'

    return _ARGUMENT.sub(own, message)


def renames(**names: str | tuple[str, ...]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorates a function that passes its arguments on under other names. Errors about these arguments then use the
    function's own names. `names` maps the other names to the function's (`Names`)."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        order = list(inspect.signature(function).parameters)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except ArgumentError as error:
                # torch.compile traces this handler. Some releases of torch support neither str(error) nor "from None".
                # So take the message from `args`, and raise the new error after the handler.
                message: str = error.args[0]
            raise ArgumentError(in_callers_words(message, names, {**dict(zip(order, args)), **kwargs}))

        return call

    return decorate
