"""Makes forks safe while other threads work. A forked child has only the thread that forked. Locks that other threads
held stay locked in the child, so the child would wait for them forever.

Values shared by threads are therefore created without locks (`cached_property`), or a fork waits for their creation
(`forks_wait`), or the child replaces the lock (cache.py, _files/disk.py).
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801 (as functools has it)
    """functools.cached_property without the lock that all objects of a class share in Python 3.10 and 3.11.

    Threads that ask for a value at the same time may each compute it. All of them get the value that was stored first.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> cached_property[T] | T:
        if instance is None:
            return self
        kept: T = instance.__dict__.setdefault(self.name, self.compute(instance))
        return kept


class _Gate:
    """A context manager: while a thread is inside, os.fork() in other threads waits. A thread may enter it repeatedly.

    lib/Runtime/Fork.h does the same in C++, where a waiting fork keeps the GIL. Here, a waiting fork releases the GIL,
    so that other Python threads run while it waits for a compilation.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._forking = 0
        self._own = threading.local()

    def __enter__(self) -> None:
        depth = self._depth
        if depth == 0:
            with self._changed:
                while self._forking:
                    self._changed.wait()
                self._inside += 1
        self._own.depth = depth + 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._own.depth -= 1
        if self._own.depth == 0:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @property
    def _depth(self) -> int:
        depth: int = getattr(self._own, "depth", 0)
        return depth

    def before_fork(self) -> None:
        self._changed.acquire()
        self._forking += 1
        # A thread that forks while it is inside the gate must not wait for other threads inside, since these may be
        # waiting for this thread.
        while self._depth == 0 and self._inside:
            self._changed.wait()
        # Keep the lock until the fork is done, so that no other thread enters or leaves the gate.

    def after_fork_in_parent(self) -> None:
        self._forking -= 1
        self._changed.notify_all()
        self._changed.release()

    def after_fork_in_child(self) -> None:
        self._changed = threading.Condition()
        self._inside = int(self._depth > 0)
        self._forking = 0


forks_wait = _Gate()
"""``with forks_wait:`` encloses work that a forked child could not finish: compilations and imports. Code inside must
not call users' functions."""

def whole(module: str) -> bool:
    """Imports a module at the first call, and makes forks wait for the import. Otherwise, a forked child would wait
    forever for an import that another thread of its parent had begun. Returns True."""
    if module not in _whole:
        with forks_wait:
            importlib.import_module(module)
        _whole.add(module)
    return True


_whole: set[str] = set()
whole._dynamo_marked_constant = True  # type: ignore[attr-defined]  (torch.compile calls `whole` during tracing)

os.register_at_fork(
    before=forks_wait.before_fork,
    after_in_parent=forks_wait.after_fork_in_parent,
    after_in_child=forks_wait.after_fork_in_child,
)
