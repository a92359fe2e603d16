"""The exceptions of the package, one tree under :class:`Error`, and its warnings.

A message is a sentence that names the argument: "expected X, got Y".
"""

from __future__ import annotations


class Error(Exception):
    """The base of every exception that mlafix raises. An internal error of mlafix has this class, and no subclass
    of it."""


class CompileError(Error):
    """A kernel does not compile.

    Args:
        message: the error, with the offending line and a caret under the range if these are known.
        file: the source file, or "" if unknown.
        line: the line in the file, from 1, or 0 if unknown.
        column: the column in the line, from 1, or 0 if unknown.
    """

    # The kind and subject of the compiler's message (_reports.diagnostics.Message); "" for most messages. The package
    # adds a hint to errors of some kinds.
    _kind = _subject = ""

    def __init__(self, message: str, file: str = "", line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.column = column

    def __reduce__(self) -> tuple[type[CompileError], tuple[str, str, int, int]]:
        return type(self), (self.message, self.file, self.line, self.column)


class CompileWarning(UserWarning):
    """A warning about a kernel that compiles. Use ``warnings.filterwarnings`` to hide it or to raise it."""


class CacheWarning(UserWarning):
    """The cache of compiled kernels cannot be used, or nothing can be kept in it. Kernels are compiled without it."""


class DebugWarning(UserWarning):
    """A call of a kernel has a fault, which was found because calls are debugged (MLAFIX_DEBUG=1)."""


class ArgumentError(Error, ValueError):
    """A call has an argument of a wrong dtype, shape, stride, device, memory or value, or too many or too few
    arguments. Nothing was launched."""


class UnitError(Error):
    """A unit is missing, malformed, refused, or has no code for the device."""


class DriverError(Error):
    """There is no usable CUDA driver or device, or the driver returned an error."""


class RankError(Error):
    """A rank of a group did not take part in an exchange. The message names the rank. The group cannot be used
    again."""
