"""A folder of compiled kernels on disk. Its files are executed, so it must belong to the user.

Files appear whole, by renaming, and one process at a time makes a file that several want. All is done by the descriptor of
the folder that was checked: another one in its place would not be looked at.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from .errors import UnitError

_log = logging.getLogger("mlafix")

MOST_BYTES = 1 << 30
"""No unit is larger (include/mlafix/UnitLimits.h), so a larger file is not read."""


class Folder:
    """A folder that need not exist yet.

    Its methods raise UnitError if it belongs to another user, or if others may enter it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, name: str) -> bytes | None:
        """The bytes of a file, or None if there is none that can be read and is the user's."""
        try:
            with self._open(create=False) as folder:
                # Not blocking: a pipe may have been put there.
                descriptor = _open_file(name, os.O_RDONLY | os.O_NONBLOCK, folder)
                with open(descriptor, "rb") as file:
                    status = os.fstat(descriptor)
                    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                        _log.warning("%s: not used: expected a file of user %d", self.path / name, os.geteuid())
                        return None
                    return unit_bytes(self.path / name, file)
        except OSError:
            pass
        return None

    def write(self, name: str, data: bytes) -> None:
        """Write a whole file, or none. If the disk refuses it, the kernel is compiled again later."""
        temporary = f".new-{os.getpid()}-{secrets.token_hex(8)}"
        try:
            with self._open(create=True) as folder:
                try:
                    with open(_open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder), "wb") as file:
                        file.write(data)
                    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
                except OSError:
                    with contextlib.suppress(OSError):
                        os.unlink(temporary, dir_fd=folder)
                    raise
        except OSError as error:
            _log.warning("%s: cannot keep a compiled kernel: %s", self.path / name, error)

    @contextlib.contextmanager
    def only_process(self, name: str) -> Iterator[bool]:
        """Hold the lock that belongs to a file. Yields whether the folder can be used at all.

        The lock is a file that its holder removes in the end, so that none are left behind.
        """
        lock_name = f"{Path(name).stem}.lock"
        with contextlib.ExitStack() as stack:
            try:
                folder = stack.enter_context(self._open(create=True))
                lock = _locked(lock_name, folder)
            except OSError as error:
                _log.warning("%s: cannot keep compiled kernels: %s", self.path, error)
                yield False
                return
            try:
                yield True
            finally:
                # Before the lock is given up: who waits for it sees that the file is gone, and makes another.
                with contextlib.suppress(OSError):
                    os.unlink(lock_name, dir_fd=folder)
                # Closing would leave it locked where a child that was forked meanwhile has the file open, too.
                with contextlib.suppress(OSError):
                    fcntl.flock(lock, fcntl.LOCK_UN)
                os.close(lock)

    @contextlib.contextmanager
    def _open(self, create: bool) -> Iterator[int]:
        """A descriptor of the folder, once it is checked."""
        if create:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.mkdir(mode=0o700, exist_ok=True)
        try:
            folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR) and self.path.is_symlink():
                raise self._refusal("a symbolic link") from None
            raise
        try:
            status = os.fstat(folder)
            mode = stat.S_IMODE(status.st_mode)
            if status.st_uid != os.geteuid() or mode & 0o077:
                raise self._refusal(f"one of user {status.st_uid} with mode {mode:04o}")
            yield folder
        finally:
            os.close(folder)

    def _refusal(self, got: str) -> UnitError:
        return UnitError(
            f'cache "{self.path}": expected a folder of user {os.geteuid()} with mode 0700, since what lies there is run, '
            f"got {got} (remove it, or name another folder in MLAFIX_CACHE_DIR)"
        )


def unit_bytes(path: Path, file: BinaryIO) -> bytes | None:
    """The bytes of an open file, or None if it is too large for a unit. The size is looked at before anything is read."""
    size = os.fstat(file.fileno()).st_size
    if size <= MOST_BYTES:
        return file.read(size)  # not MOST_BYTES: Python allocates as much as is asked for
    _log.warning("%s: not used: expected at most %d bytes, got %d", path, MOST_BYTES, size)
    return None


def _locked(name: str, folder: int) -> int:
    """A descriptor of the file `name`, made if need be, with its lock held: the file that is called so then."""
    while True:
        lock = _open_file(name, os.O_RDWR | os.O_CREAT, folder)
        try:
            # A file system without locks (OSError): then two processes may compile the same, and both rename it into place.
            with contextlib.suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), os.stat(name, dir_fd=folder, follow_symlinks=False)):
                    return lock
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


def _open_file(name: str, flags: int, folder: int) -> int:
    return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
