"""Runs a check on one case and catches exceptions.

This module has only plain functions, because the scripts that an audit writes for its findings (bundle.py) contain the
source text of these functions.
"""

from __future__ import annotations

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
