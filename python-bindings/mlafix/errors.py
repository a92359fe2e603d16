"""The exceptions of the package, one tree under :class:`Error`, and its warnings.

Messages are sentences in the form "expected X, got Y" that name the argument.
"""

from __future__ import annotations


class Error(Exception):
    """Base of every exception that mlafix raises. Raised itself for an error of the library."""


class CompileError(Error):
    """A kernel that does not compile.

    Args:
        message: the error, with the offending line and a caret under the range if these are known.
        file: the source file, or "" if unknown.
        line: 1-based line in it, or 0 if unknown.
        column: 1-based column, or 0 if unknown.
    """

    # The kind and subject of a message to which the package adds an explanation (_diagnostics.Message).
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
    """A fault of a watched call of a kernel (MLAFIX_DEBUG=1)."""


class ArgumentError(Error, ValueError):
    """A call with a wrong argument: its dtype, shape, strides, device, memory, or number. Nothing was launched."""


class UnitError(Error):
    """A unit that is missing, malformed, refused, or has no code for the device."""


class DriverError(Error):
    """No usable CUDA driver or device, or an error that the driver returned."""


class RankError(Error):
    """A rank of a group that did not come to an exchange; the message names it. The group cannot be used again."""
