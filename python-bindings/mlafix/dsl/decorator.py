"""@mlafix.kernel."""

from __future__ import annotations

import types

from .._kernel import Kernel
from ..errors import ArgumentError
from .python_kernel import PythonKernel


def kernel(function: types.FunctionType) -> Kernel:
    """Make a kernel of a function whose body is written in the language (docs/Python.md).

    The function is read when the kernel is first used, not when it is defined; what is wrong with it is then a
    CompileError that underlines the expression.

    Raises:
        ArgumentError: what is decorated is no function.
    """
    if not isinstance(function, types.FunctionType):
        raise ArgumentError(f"@kernel: expected a function, got {function!r}")
    return PythonKernel(function)
