"""Detects crashes and hangs by running a function in its own process.

This module has only plain functions, because the scripts that an audit writes for its findings (bundle.py) contain the
source text of these functions.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from .cases import Fault


def how_it_ended(status: int) -> str:
    """Describes how a process ended, from its status of waitpid. Returns "" if the process succeeded."""
    if os.WIFSIGNALED(status):
        return f"the process died of {signal.Signals(os.WTERMSIG(status)).name}"
    return f"the process ended with status {os.WEXITSTATUS(status)}" if os.WEXITSTATUS(status) else ""


def deaths(function: Callable[[], object], seconds: float) -> list[Fault]:
    """Runs a function in a fork. Returns a fault if the fork dies or does not end within the time."""
    child = os.fork()
    if not child:
        try:
            function()
        except Exception:
            pass
        os._exit(0)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            ended = how_it_ended(status)
            return [Fault("crash", "a call that returns or raises", ended)] if ended else []
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return [Fault("hang", "a call that returns", f"none within {seconds:g} s")]
