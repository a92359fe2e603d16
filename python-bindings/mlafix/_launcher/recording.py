"""Records the code that calls need, without launching it. Implements `mlafix.compile_keys`."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Union


class Needed(NamedTuple):
    """The code that a call needs: the kernel's specialisations (`cache.Variants`), the bindings of the needed one, and a substitute
    if that one is missing and nothing compiles."""

    variants: Any
    bindings: Mapping[str, str]
    instead: Union[Needed, None] = None


Recorder = Callable[[Needed], None]

recorders: list[Recorder] = []
"""The recorders of all threads. The list is nearly always empty, so a launch only has to test this."""


class _Own(threading.local):
    """This thread's recorders. The innermost one is last."""

    def __init__(self) -> None:
        self.recorders: list[Recorder] = []


_own = _Own()


def _forget_others() -> None:
    """Drops the recorders of other threads in a forked child, where these threads do not exist."""
    recorders[:] = _own.recorders


os.register_at_fork(after_in_child=_forget_others)


class Recorded(Exception):
    """Ends a call whose key is recorded, before anything is compiled."""


class UnlaunchedCall:
    """Stands for a bound call whose key is recorded."""

    def __call__(self, stream: Any = None) -> None: ...

    def set_pointers(self, args: Any) -> None: ...


def recorder_of_thread() -> Recorder | None:
    """The recorder of this thread's calls, or None if they are launched."""
    return _own.recorders[-1] if _own.recorders else None


@contextlib.contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Passes the code that calls of this thread need to `recorder`.

    These calls launch nothing. Calls of other threads and calls that were bound before are launched.
    """
    recorders.append(recorder)
    _own.recorders.append(recorder)
    try:
        yield
    finally:
        recorders.remove(recorder)
        _own.recorders.pop()


def record(dispatcher: Any, arguments: tuple[Any, ...]) -> None:
    """Checks a call as a launch would, with a dispatcher that has resolved nothing yet. Raises ArgumentError."""
    with contextlib.suppress(Recorded):
        dispatcher.prepare(arguments)
