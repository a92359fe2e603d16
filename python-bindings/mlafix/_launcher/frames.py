"""Errors that show the caller's line, and not the lines of this package that found them."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import Error

Function = TypeVar("Function", bound=Callable[..., Any])


def without_frames(function: Function) -> Function:
    """Wraps a function so that its errors show the caller's line instead of lines of this package."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Error as error:
            forget_frames(error)
            raise

    return call  # type: ignore[return-value]


def caller_level() -> int:
    """The `stacklevel` that makes a warning point at the package's caller."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __name__.partition(".")[0]:
        level, frame = level + 1, frame.f_back
    return level


def forget_frames(error: Error) -> None:
    """Called by a handler before a plain ``raise``, so that not even its own frame is shown: Python 3.11 and later raise an
    error again with the traceback that it has by then. Python 3.10 keeps the handler's frame, the first, and no more."""
    if error.__traceback__ is not None:
        error.__traceback__.tb_next = None
    error.__traceback__ = error.__cause__ = None  # setting the cause also hides the context
