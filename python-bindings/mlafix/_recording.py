"""Calls that are followed as far as the key of the code they need, and launch nothing: `mlafix.compile_keys`."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Take = Callable[[Any, Mapping[str, str]], None]

recorders: list[Take] = []
"""Of all threads: empty nearly always, so that a launch asks no more than that."""
_own = threading.local()


class Noted(Exception):
    """Ends a call whose key is noted, before anything is compiled."""


class Nothing:
    """In place of a bound call whose key is noted."""

    def __call__(self, stream: Any = None) -> None: ...

    def set_pointers(self, args: Any) -> None: ...


def taker() -> Take | None:
    """What takes the keys of this thread's calls, or None if they are launched."""
    found: Take | None = getattr(_own, "take", None)
    return found


@contextlib.contextmanager
def recorded(take: Take) -> Iterator[None]:
    """Calls of this thread hand `take` the compiled specialisations they need (`cache.Variants`, bindings), and launch nothing."""
    before = taker()
    recorders.append(take)
    _own.take = take
    try:
        yield
    finally:
        recorders.remove(take)
        _own.take = before


def note(dispatcher: Any, arguments: tuple[Any, ...]) -> None:
    """Checks a call as a launch would, with a dispatcher that has resolved nothing yet. Raises ArgumentError."""
    with contextlib.suppress(Noted):
        dispatcher.prepare(arguments)
