"""Makes errors show the caller's line instead of the lines of this package that raised them."""

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
    """Returns the `stacklevel` with which a warning points at the caller of the package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __name__.partition(".")[0]:
        level, frame = level + 1, frame.f_back
    return level


def forget_frames(error: Error) -> None:
    """Removes the traceback of an error. Call it in a handler that then uses a plain ``raise``. Python 3.11 and later
    then show no frame of the handler. Python 3.10 keeps only the handler's frame."""
    if error.__traceback__ is not None:
        error.__traceback__.tb_next = None
    error.__traceback__ = error.__cause__ = None  # setting the cause also hides the context
