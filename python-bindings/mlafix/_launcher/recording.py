"""Records the code that calls need, instead of launching the calls. Implements `mlafix.compile_keys`."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Union


class Needed(NamedTuple):
    """The code that a call needs: the specialisation of a kernel with certain bindings. `variants` is the kernel's
    `cache.Variants`. `instead` is the code to use if this specialisation is missing and cannot be compiled, or None."""

    variants: Any
    bindings: Mapping[str, str]
    instead: Union[Needed, None] = None


Recorder = Callable[[Needed], None]

recorders: list[Recorder] = []
"""The recorders of all threads. A launch looks for a recorder of its thread only if this list is not empty."""


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
    """Raised to end a call before anything is compiled, once the code or the bindings that the call needs are
    recorded."""


class UnlaunchedCall:
    """A stand-in that `bind` returns for a bound call while calls are recorded. Calling it does nothing."""

    def __call__(self, stream: Any = None) -> None: ...

    def set_pointers(self, args: Any) -> None: ...


def recorder_of_thread() -> Recorder | None:
    """Returns the recorder of this thread's calls, or None if this thread's calls are launched."""
    return _own.recorders[-1] if _own.recorders else None


@contextlib.contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Inside the block, calls `recorder` with the code that each call of this thread needs.

    Calls of this thread launch nothing. Calls of other threads, and calls that were bound before, are launched.
    """
    recorders.append(recorder)
    _own.recorders.append(recorder)
    try:
        yield
    finally:
        recorders.remove(recorder)
        _own.recorders.pop()


def record(dispatcher: Any, arguments: tuple[Any, ...]) -> None:
    """Records the code of a call with these arguments. The dispatcher checks the call as a launch would, and asks for
    the code. `cache.Variants` then calls the recorder instead of compiling. `dispatcher` must be new, since it asks
    only once for the code of equal calls. Raises ArgumentError."""
    with contextlib.suppress(Recorded):
        dispatcher.prepare(arguments)
