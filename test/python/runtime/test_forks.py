"""Forks while other threads of the process are at work. Nothing in the child waits for a thread that only the parent
has."""

from __future__ import annotations

import ast
import fcntl
import os
import signal
import sys
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlafix
import pytest
from mlafix._files import disk, toolchain
from mlafix._forks import cached_property, forks_wait, whole


def in_child(work: Callable[[], bool]) -> bool:
    """Runs `work` in a forked child, which is killed after 30 seconds. Returns whether `work` returned true."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if work() else 1)
    return os.waitpid(child, 0)[1] == 0


class Busy:
    """A thread that runs `work` up to its call of `pause()`. The thread waits there until the `with` block ends."""

    def __init__(self, work: Callable[[Busy], object]) -> None:
        self.begun, self.goes_on = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=work, args=(self,))

    def pause(self) -> None:
        if threading.current_thread() is self.thread:
            self.begun.set()
            assert self.goes_on.wait(30)

    def __enter__(self) -> None:
        self.thread.start()
        assert self.begun.wait(30)

    def __exit__(self, *_: object) -> None:
        self.goes_on.set()
        self.thread.join()


# -- Properties -------------------------------------------------------------------------------------------------------


class Holder:
    busy: Busy

    @cached_property
    def value(self) -> object:
        """The result of the computation."""
        self.busy.pause()
        return object()


def test_a_child_computes_a_property_that_a_thread_computes() -> None:
    """A child can compute a property that a thread of its parent was computing. With functools.cached_property of
    Python 3.10 and 3.11, the child would wait forever for the class's lock, which that thread holds (CPython's issue
    87634)."""
    holder = Holder()
    holder.busy = Busy(lambda _: holder.value)
    with holder.busy:
        assert in_child(lambda: holder.value is holder.value)


def test_threads_get_one_value() -> None:
    holder, seen = Holder(), []
    holder.busy = Busy(lambda _: seen.append(holder.value))
    with holder.busy:
        seen.append(holder.value)
    assert len(seen) == 2 and seen[0] is seen[1] is holder.value
    assert Holder.value.__doc__ == "The result of the computation."


# -- The compiler -----------------------------------------------------------------------------------------------------


def test_a_fork_waits_for_threads_that_are_inside() -> None:
    order = []

    def inside(busy: Busy) -> None:
        with forks_wait:
            busy.pause()
            for _ in range(5000):
                if forks_wait._forking:
                    break
                time.sleep(0.001)
            with forks_wait:  # a thread inside forks_wait may enter it again, even while a fork waits
                order.append("left")

    busy = Busy(inside)
    with busy:
        busy.goes_on.set()
        assert in_child(lambda: order == ["left"])


def test_who_is_inside_may_fork_and_the_child_is_inside() -> None:
    def child() -> bool:
        return forks_wait._depth == 1 and forks_wait._inside == 1

    with forks_wait:
        assert in_child(child)
    assert in_child(lambda: forks_wait._inside == 0) and forks_wait._inside == 0


def test_a_child_may_enter_and_fork() -> None:
    def child() -> bool:
        with forks_wait:
            pass
        return in_child(lambda: True)

    assert in_child(child)


@pytest.mark.parametrize("name", ["compile", "remarks", "signature"])
def test_a_fork_waits_for_the_compiler(name: str) -> None:
    def inside(*args: Any, **options: Any) -> tuple[Any, Any, int]:
        return args, options, forks_wait._depth

    compiler = toolchain._Compiler(types.SimpleNamespace(**{name: inside}))
    assert getattr(compiler, name)("source", kernel="k") == (("source",), {"kernel": "k"}, 1)


# -- Locks of files ---------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> int:
    return os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)


def is_free(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def test_a_lock_that_is_given_up_is_free_though_a_child_has_the_file_open(folder: int) -> None:
    first = os.open("x.lock", os.O_RDWR | os.O_CREAT, 0o600, dir_fd=folder)
    fcntl.flock(first, fcntl.LOCK_EX)
    third = os.open("x.lock", os.O_RDWR, dir_fd=folder)
    waiter = threading.Thread(target=lambda: disk._unlock(disk._locked("x.lock", folder)))
    waiter.start()
    while not disk._open_locks:
        time.sleep(0.001)
    (waiting,) = disk._open_locks
    copy = os.dup(waiting)  # stands for the descriptor that a child has if another thread forks
    os.unlink("x.lock", dir_fd=folder)
    os.close(first)
    waiter.join()
    assert is_free(third) and not disk._open_locks
    for file in (copy, third, folder):
        os.close(file)


def test_a_child_does_not_keep_what_its_parent_locked(tmp_path: Path) -> None:
    """A lock is free once the process that locked it has ended, even if a child of that process is still alive."""
    cache = disk.Folder(tmp_path / "cache" / "compiler")
    said, says = os.pipe()
    stays, ends = os.pipe()

    def locks(busy: Busy) -> None:
        with cache.only_process("x.mlafix"):
            busy.pause()

    parent = os.fork()
    if parent == 0:
        with Busy(locks):
            if os.fork() == 0:
                os.close(ends)
                os.write(says, b"child")
                os.read(stays, 1)  # waits until the test ends
            else:
                while not os.read(said, 5):
                    pass
            os._exit(0)
    os.waitpid(parent, 0)
    lock = os.open(cache.path / "x.lock", os.O_RDWR)
    assert is_free(lock)
    for file in (lock, said, says, stays, ends):
        os.close(file)


# -- Imports ----------------------------------------------------------------------------------------------------------


def test_a_fork_waits_for_an_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_once.py").write_text("from mlafix._forks import forks_wait\ndepth = forks_wait._depth\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert whole("imported_once") and sys.modules["imported_once"].depth == 1
    del sys.modules["imported_once"]
    assert whole("imported_once") and "imported_once" not in sys.modules


def test_calls_import_modules_of_the_package_while_forks_wait() -> None:
    package = Path(mlafix.__file__).parent
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] in ("compat", "distributed", "explain", "__main__.py"):
            continue  # these modules are used by ranks that wait for each other, or in programs with one thread
        for node in ast.walk(ast.parse(path.read_text())):
            blocks = [getattr(node, name) for name in ("body", "orelse") if isinstance(getattr(node, name, None), list)]
            for block in () if isinstance(node, ast.Module) else blocks:
                imports = [one for one in block if isinstance(one, ast.ImportFrom) and one.level]
                calls = [one for one in block if isinstance(one, ast.Expr) and ast.unparse(one).startswith("whole(")]
                assert calls or not imports, f"{path}:{block[0].lineno}: expected whole(…) before an import"
