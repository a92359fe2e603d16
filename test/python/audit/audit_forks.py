"""Runs work in a fork of the test's process. The fork has torch imported already, and uses the audit's server that the
test's process has started."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

from mlafix.audit.processes import server


def forked(work: Callable[[], object], file: Path) -> tuple[int, str]:
    """Runs `work` in a fork. Returns its status, 1 after an exception, and its output."""
    shared = server().process
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of forks in processes with threads; torch's threads are idle
        child = os.fork()
    if not child:
        status = 1
        # In the fork, poll() would report that the server has ended, since the server is no child of the fork. But the
        # server runs as long as the test's process, which waits for the fork. So poll() is replaced by a function that
        # always reports that the server runs.
        shared.poll = lambda: None  # type: ignore[method-assign]
        try:
            sys.stdout = sys.stderr = file.open("w", buffering=1)
            os.dup2(sys.stdout.fileno(), 1)
            os.dup2(sys.stdout.fileno(), 2)
            status = int(work() or 0)  # type: ignore[call-overload]
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file.read_text()
