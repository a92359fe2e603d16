"""@mlafix.kernel."""

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

Function = Callable[..., Any]  # what type checkers take a function for
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
    """Make a kernel of a function whose body is written in the language (docs/Python.md).

    The function's text is kept when it is defined, and read when the kernel is first used; what is wrong with it is then
    a CompileError that underlines the expression. What names outside of it stand for must not change from then on.

    Args:
        function: the function; ``@kernel(bounds=…)`` has none yet.
        bounds: what becomes of an access that is not proved to be in bounds: "guard" makes it safe, "prove" makes it an
            error (docs/Proofs.md).
        allow: what the author allows, so that the compiler does not warn of it: "races" (rows that may write one
            element, or read what another writes; also those that are refused otherwise), "bounds" (accesses that are out
            of bounds for some sizes), "nan" (NaN that empty rows make).
        plan: fields that take the place of what the compiler decides about code for GPUs: ``{"rows_ahead": 0}`` for all
            code versions but "any", ``{"dense.lanes": 8}`` for one. docs/Troubleshooting.md lists them.

    Raises:
        ArgumentError: what is decorated is no function, `bounds`, `allow` or `plan` is something else, or another option is
            given.
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
    """The fields as the compiler reads them, which knows their names and ranges."""
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
