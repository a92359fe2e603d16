"""One way to say what is wrong with an argument: the runtime's."""

from __future__ import annotations

from ..errors import ArgumentError


def wrong(argument: str, expected: str, got: object) -> ArgumentError:
    """The error to raise: which argument, what was expected, what it got."""
    return ArgumentError(f'argument "{argument}": expected {expected}, got {got}')
