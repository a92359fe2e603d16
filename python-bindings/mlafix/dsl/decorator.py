"""@mlafix.kernel."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import overload

from .._kernel import Kernel
from ..errors import ArgumentError
from .python_kernel import PythonKernel


@overload
def kernel(function: types.FunctionType) -> Kernel: ...
@overload
def kernel(*, bounds: str = "guard") -> Callable[[types.FunctionType], Kernel]: ...
def kernel(
    function: types.FunctionType | None = None, *, bounds: str = "guard"
) -> Kernel | Callable[[types.FunctionType], Kernel]:
    """Make a kernel of a function whose body is written in the language (docs/Python.md).

    The function's text is kept when it is defined, and read when the kernel is first used; what is wrong with it is then
    a CompileError that underlines the expression. What names outside of it stand for must not change from then on.

    Args:
        function: the function; ``@kernel(bounds=…)`` has none yet.
        bounds: what becomes of an access that is not proved to be in bounds: "guard" makes it safe, "prove" makes it an
            error (docs/Proofs.md).

    Raises:
        ArgumentError: what is decorated is no function, or `bounds` is something else.
    """
    if bounds not in ("guard", "prove"):
        raise ArgumentError(f'@kernel: expected bounds to be "guard" or "prove", got {bounds!r}')
    if function is None:
        return functools.partial(_make, bounds=bounds)
    return _make(function, bounds)


def _make(function: types.FunctionType, bounds: str) -> Kernel:
    if not isinstance(function, types.FunctionType):
        raise ArgumentError(f"@kernel: expected a function, got {function!r}")
    return PythonKernel(function, bounds=bounds)
