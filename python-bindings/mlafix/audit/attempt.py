"""Runs a check on one case: catches exceptions and, in a process of its own, crashes and hangs.

This module has only plain functions, because the scripts that an audit writes for its findings (bundle.py) contain the
source text of these functions.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

from .cases import Adapter, Fault


def is_broken(text: str) -> bool:
    """True if a message says that the device's context is lost."""
    return any(words in text for words in ("CUDA error", "device-side assert", "illegal memory access", "AcceleratorError"))


def attempt(faults: Callable[[Any, Adapter], list[Fault]], case: Any, adapter: Adapter) -> list[Fault]:
    """Runs a check on a case and returns its faults. If the backend raises, the exception becomes the only fault: an
    error if the device's context is lost, else a warning."""
    try:
        return faults(case, adapter)
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0][:200]
        severity = "error" if is_broken(first) else "warning"
        return [Fault(f"raises {type(error).__name__}", "a result", f"{type(error).__name__}: {first}", severity)]


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
