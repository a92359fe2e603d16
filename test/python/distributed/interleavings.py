"""Searches all orders in which the possible steps of a model can happen."""

from __future__ import annotations

import gc
from collections.abc import Hashable, Iterator
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Broken(Exception):
    """Raised if a state or a step is not allowed."""


class Searched(Protocol):
    """A model that can be searched. Its states are values, and a step leads from one state to another."""

    def start(self) -> Any: ...
    def steps(self, state: Any) -> Iterator[Any]: ...
    def is_over(self, state: Any) -> bool: ...
    def check(self, state: Any) -> None:
        """Raises Broken if the state is forbidden."""


def search(model: Searched) -> int:
    """Visits every reachable state, and returns their number.

    Raises:
        Broken: a step or a state is forbidden, or a state is a deadlock.
    """
    start: Hashable = model.start()
    seen = {start}
    stack = [start]
    was_collecting = gc.isenabled()
    gc.disable()  # garbage collection would take a third of the time and find nothing
    try:
        _follow(model, seen, stack)
    finally:
        if was_collecting:
            gc.enable()
    return len(seen)


def _follow(model: Searched, seen: set[Hashable], stack: list[Hashable]) -> None:
    while stack:
        state = stack.pop()
        moved = False
        for after in model.steps(state):
            moved = True
            model.check(after)
            if after not in seen:
                seen.add(after)
                stack.append(after)
        if not moved and not model.is_over(state):
            raise Broken("some wait for each other for ever")


def replaced(values: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    """Returns a copy of the tuple with one element replaced."""
    return (*values[:at], value, *values[at + 1 :])
