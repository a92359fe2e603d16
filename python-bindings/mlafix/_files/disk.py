"""A folder of compiled kernels on disk. Its files contain code that is executed, so only files of the user and of root
are read.

The rule (docs/Installation.md): the folder and each file in it belong to the user or to root, and neither group nor others
may write to them. The outer folder, which holds one folder per compiler, belongs to the user or to root. A group may
write to it. Others may not, unless it is sticky. Files are written only to a folder that the user owns.

If the folder cannot be used, kernels are compiled without it, and a CacheWarning gives the reason. A new file is
renamed to its final name, so that readers never see a part of it. If several processes need the same file, only one of
them creates it. All accesses go through the descriptor of the checked folder, so that replacing the folder has no
effect.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import stat
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from .._launcher.frames import caller_level
from ..errors import CacheWarning
from . import keys

_log = logging.getLogger("mlafix")

MOST_BYTES = 1 << 30
"""The size of the largest unit (include/mlafix/UnitLimits.h). Larger files are not read."""

_ROOT = 0
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH

# The (folder, reason) pairs for which a CacheWarning was issued.
_told: set[tuple[Path, str]] = set()


class _Refused(OSError):
    """Raised if the folder exists but must not be used."""


class Folder:
    """A folder that may not exist yet. If it cannot be used, reads return None and writes do nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fault(self) -> str:
        """Returns the reason why files in the folder are not read. Returns "" if the folder is readable or missing."""
        try:
            with self._open(create=False):
                return ""
        except FileNotFoundError:
            return ""
        except OSError as error:
            return _reason(error)

    def read(self, name: str) -> bytes | None:
        """Returns the bytes of a file. Returns None if the file is missing, unreadable or not trusted."""
        with contextlib.ExitStack() as stack:
            try:
                folder = stack.enter_context(self._open(create=False))
            except FileNotFoundError:
                return None
            except OSError as error:
                self._tell("kernels are compiled without it", error)
                return None
            with contextlib.suppress(OSError):
                # Do not block: the file may be a pipe.
                descriptor = _open_file(name, os.O_RDONLY | os.O_NONBLOCK, folder)
                with open(descriptor, "rb") as file:
                    status = os.fstat(descriptor)
                    if not stat.S_ISREG(status.st_mode) or not _is_trusted(status):
                        _log.warning("%s: not used: expected a file %s, got %s", self.path / name, _expected(), _described(status))
                        return None
                    return unit_bytes(self.path / name, file)
        return None

    def read_record(self, name: str) -> str | None:
        """Returns the text that `write_record` wrote to a file. Returns None if the file is missing or contains
        anything else."""
        data = self.read(name)
        if data is None:
            return None
        text = data[len(_recorded(name, b"")) - len(_RECORD_ENDS) : -len(_RECORD_ENDS)]
        if _recorded(name, text) == data:
            return text.decode()
        _log.warning("%s: not used, and made anew where that is possible: expected a whole record, got another text", self.path / name)
        return None

    def write_record(self, name: str, text: str) -> None:
        """Writes a JSON text to a file. The file is itself JSON, and contains a digest that shows whether the text is
        complete."""
        self.write(name, _recorded(name, text.encode()))

    def write(self, name: str, data: bytes) -> None:
        """Writes a file completely or not at all. If writing fails, issues a CacheWarning; a later process then
        compiles the kernel again."""
        temporary = f".new-{os.getpid()}-{os.urandom(8).hex()}"
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
            self._tell("compiled kernels are not kept", error)

    @contextlib.contextmanager
    def only_process(self, name: str) -> Iterator[bool]:
        """Holds the lock of the file `name` against other processes and yields True. Yields False, without a lock, if
        the folder cannot be written.

        The lock is itself a file. Its holder removes it at the end, so that no lock files accumulate.
        """
        lock_name = f"{Path(name).stem}.lock"
        with contextlib.ExitStack() as stack:
            try:
                folder = stack.enter_context(self._open(create=True))
                lock = _locked(lock_name, folder)
            except OSError as error:
                self._tell("compiled kernels are not kept", error)
                yield False
                return
            try:
                yield True
            finally:
                # Remove the file before releasing the lock. A waiter then sees that the file is gone, and creates a new
                # one.
                with contextlib.suppress(OSError):
                    os.unlink(lock_name, dir_fd=folder)
                _unlock(lock)

    @contextlib.contextmanager
    def _open(self, create: bool) -> Iterator[int]:
        """Opens the folder, checks it, and yields its descriptor. With `create`, creates the folder if necessary, and
        requires that the user owns it. Raises OSError."""
        if create:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            outer = os.open(self.path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, outer)
            _check_outer(self.path.parent, os.fstat(outer))
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(self.path.name, 0o700, dir_fd=outer)
            try:
                folder = os.open(self.path.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=outer)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR) and self.path.is_symlink():
                    raise _Refused(f"expected a folder {_expected()}, got a symbolic link") from None
                raise
            stack.callback(os.close, folder)
            status = os.fstat(folder)
            if not _is_trusted(status):
                raise _Refused(f"expected a folder {_expected()}, since code from it is run, got {_described(status)}")
            if create and status.st_uid != os.geteuid():
                raise _Refused(f"expected a folder of user {os.geteuid()} to write to, got {_described(status)}")
            yield folder

    def _tell(self, what: str, error: OSError) -> None:
        """Warns that the folder is not used, once per reason."""
        why = _reason(error)
        if (self.path, why) not in _told:
            _told.add((self.path, why))
            message = f'cache "{self.path}": {what}: {why} (MLAFIX_CACHE_DIR names another folder)'
            warnings.warn(message, CacheWarning, stacklevel=caller_level())


def _reason(error: OSError) -> str:
    return str(error) if isinstance(error, _Refused) else error.strerror or str(error)


def _expected() -> str:
    users = "root" if os.geteuid() == _ROOT else f"user {os.geteuid()} or root"
    return f"of {users} that nobody else may write"


def _described(status: os.stat_result) -> str:
    return f"one of user {status.st_uid} with mode {stat.S_IMODE(status.st_mode):04o}"


def _is_trusted(status: os.stat_result) -> bool:
    """True if a file or folder with this status can be written only by the user and root."""
    return status.st_uid in (os.geteuid(), _ROOT) and not status.st_mode & _WRITABLE_BY_OTHERS


def _check_outer(path: Path, status: os.stat_result) -> None:
    """Raises _Refused if the outer folder `path` belongs to another user, or if everyone may replace the cache folder
    in it. A group may write to `path`: on systems with a private group for each user, folders are often writable by
    that group, and the cache folder is checked separately."""
    anyone_may_rename = status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX
    if anyone_may_rename or status.st_uid not in (os.geteuid(), _ROOT):
        raise _Refused(f'expected the cache to lie in a folder {_expected()}, got "{path}", {_described(status)}')


_RECORD_ENDS = b"}\n"


def _recorded(name: str, text: bytes) -> bytes:
    """Returns the contents of the file `name` for a JSON text: a JSON object with the text, and a digest of the name
    and the text."""
    return b'{"digest": "%s", "record": %s%s' % (keys.digest_of(name, text), text, _RECORD_ENDS)


def unit_bytes(path: Path, file: BinaryIO) -> bytes | None:
    """Returns the bytes of an open file, or None if it is larger than MOST_BYTES. Checks the size before reading."""
    size = os.fstat(file.fileno()).st_size
    if size <= MOST_BYTES:
        return file.read(size)  # read(MOST_BYTES) would allocate MOST_BYTES
    _log.warning("%s: not used: expected at most %d bytes, got %d", path, MOST_BYTES, size)
    return None


def _locked(name: str, folder: int) -> int:
    """Opens the file `name`, creating it if necessary, locks it, and returns its descriptor. Retries if the file was
    removed or replaced before it was locked."""
    while True:
        lock = _open_file(name, os.O_RDWR | os.O_CREAT, folder)
        _open_locks[lock] = threading.get_ident()
        try:
            # A file system may lack locks (OSError). Two processes may then compile the same kernel, and both write its
            # file.
            with contextlib.suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), os.stat(name, dir_fd=folder, follow_symlinks=False)):
                    return lock
        except BaseException:
            _unlock(lock)
            raise
        _unlock(lock)


def _unlock(lock: int) -> None:
    # Unlock explicitly, since a child forked meanwhile may keep the file open and thus locked.
    with contextlib.suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_UN)
    del _open_locks[lock]
    os.close(lock)


_open_locks: dict[int, int] = {}
"""Maps the descriptor of each open lock file to the identifier of the thread that opened it."""


def _close_locks() -> None:
    """In a forked child, closes the lock files that other threads of the parent opened. The parent still holds these
    locks."""
    for lock, thread in list(_open_locks.items()):
        if thread != threading.get_ident():
            del _open_locks[lock]
            os.close(lock)


os.register_at_fork(after_in_child=_close_locks)


def _open_file(name: str, flags: int, folder: int) -> int:
    return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
