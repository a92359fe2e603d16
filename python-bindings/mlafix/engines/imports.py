"""Calls functions as soon as an engine imports a module, without importing the module itself.

An engine loads its plugins in processes that need few of its modules. Importing all modules there would take seconds.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class Finder:
    """A finder in sys.meta_path for the modules for which functions wait (`when_imported`). It asks the other finders
    for a loader of the module, and changes this loader: it then also calls the waiting functions, after it has run the
    module."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[Callable[[], object]]] = {}

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in self.waiting:
            return None
        others = (finder.find_spec(name, path, target) for finder in list(sys.meta_path) if finder is not self)
        spec = next((found for found in others if found is not None), None)
        if spec is None or spec.loader is None:
            return spec
        own = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            own(module)
            for call in self.waiting.pop(name, []):
                try:
                    call()
                except Exception:
                    logging.getLogger("mlafix").exception("mlafix: %s is left as it is", name)

        loader: Any = spec.loader
        # The waiting functions are not called if the loader has no writable attributes.
        with contextlib.suppress(AttributeError):
            loader.exec_module = exec_module
        return spec


_finder = Finder()


def when_imported(name: str, call: Callable[[], object]) -> None:
    """Calls a function when a module has been imported, or at once if it already is. Logs an exception of the function."""
    if name in sys.modules:
        call()
        return
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)  # type: ignore[arg-type]
    _finder.waiting.setdefault(name, []).append(call)
