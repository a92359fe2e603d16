"""Defines the decorator @mlafix.kernel."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, overload

from .._launcher.kernel import Kernel
from .._launcher.launcher import LAUNCH_WORDS
from ..errors import ArgumentError
from .options import WARNINGS, Options
from .python_kernel import PythonKernel

Function = Callable[..., Any]  # the type of a decorated function for type checkers
Plan = Mapping[str, bool | int | str]


@overload
def kernel(function: Function) -> Kernel: ...
@overload
def kernel(
    *, bounds: str = "guard", allow: Collection[str] = (), plan: Plan = MappingProxyType({})
) -> Callable[[Function], Kernel]: ...
def kernel(
    function: Function | None = None,
    *,
    bounds: str = "guard",
    allow: Collection[str] = (),
    plan: Plan = MappingProxyType({}),
    **others: Any,
) -> Kernel | Callable[[Function], Kernel]:
    """Makes a kernel of a function whose body is written in the language (docs/Python.md).

    The function's text is stored at its definition and parsed at the kernel's first use. An error in the text then raises a
    CompileError that underlines the expression. After the first use, the names that the function uses from outside must
    keep their values.

    Args:
        function: the function; None in ``@kernel(bounds=…)``.
        bounds: the treatment of accesses that are not proved to be in bounds. "guard" makes them safe, "prove" makes them
            errors (docs/Proofs.md).
        allow: warnings to suppress. "races": several rows may write one element, or a row may read an element that another
            writes; "races" also allows races that are otherwise errors. "bounds": accesses are out of bounds for some
            sizes. "nan": empty rows produce NaN.
        plan: fields that override the compiler's decisions about code for GPUs. ``{"rows_ahead": 0}`` applies to all
            code versions except "any", ``{"dense.lanes": 8}`` only to the version "dense". docs/Troubleshooting.md
            lists the fields.

    Raises:
        ArgumentError: the decorated object is not a function, `bounds`, `allow` or `plan` has an invalid value, or an
            option does not exist.
    """
    for name, value in others.items():
        hint = "; the compiler chooses blocks, warps and the grid" if name in LAUNCH_WORDS else ""
        raise ArgumentError(f"@kernel: expected bounds, allow or plan, got {name}={value!r}{hint}")
    if bounds not in ("guard", "prove"):
        raise ArgumentError(f'@kernel: expected bounds to be "guard" or "prove", got {bounds!r}')
    if isinstance(allow, str) or not set(allow) <= set(WARNINGS):
        names = ", ".join(f'"{name}"' for name in WARNINGS)
        raise ArgumentError(f"@kernel: expected allow to be a set of {names}, got {allow!r}")
    options = Options(bounds, tuple(name for name in WARNINGS if name in allow), _fields(plan))
    if function is None:
        return functools.partial(_make, options=options)
    return _make(function, options)


def _fields(plan: Plan) -> tuple[str, ...]:
    """Returns the fields of a plan as texts "NAME=VALUE". The compiler checks the names and the ranges."""
    if not isinstance(plan, Mapping):
        raise ArgumentError(f'@kernel: expected plan to be a dict such as {{"rows_ahead": 0}}, got {plan!r}')
    for name, value in plan.items():
        if not isinstance(name, str) or not isinstance(value, (bool, int, str)):
            raise ArgumentError(f"@kernel: expected plan to have an integer, bool or word for each field's name, got {name!r}: {value!r}")
    words = {True: "yes", False: "no"}
    return tuple(f"{name}={words[value] if isinstance(value, bool) else value}" for name, value in plan.items())


def _make(function: Function, options: Options) -> Kernel:
    if not isinstance(function, types.FunctionType):
        raise ArgumentError(f"@kernel: expected a function, got {function!r}")
    return PythonKernel(function, options=options)
