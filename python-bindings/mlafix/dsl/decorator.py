"""@mlafix.kernel."""

from __future__ import annotations

import functools
import types

from ..errors import ArgumentError
from .._kernel import Kernel


def kernel(function: types.FunctionType) -> Kernel:
    """Make a kernel of a function whose body is written in the language (docs/Python.md).

    The function is read when the kernel is first used, not when it is defined; what is wrong with it is then a
    CompileError that underlines the expression.

    Raises:
        ArgumentError: what is decorated is no function.
    """
    if not isinstance(function, types.FunctionType):
        raise ArgumentError(f"@kernel: expected a function, got {function!r}")

    def source() -> str:
        from .frontend import build

        return build(function)

    # Messages name the Python file by the locations in the text; the text itself needs another name.
    made = Kernel(function.__name__, source, f"<{function.__name__} in MLIR>")
    functools.update_wrapper(made, function)
    return made
