"""Modules that replace an engine, so that its own tests run on the drop-ins of `mlafix.compat`. The engine need not be
built.

Each engine has a module with `install(checkout)`, which puts modules into `sys.modules` before the tests are imported.
These modules contain mlafix's functions. Functions with which a test only compares results (the engine's Triton
kernels, its references) are loaded from the checkout. Every other name is `Elsewhere`, which skips the test that uses
it.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


class Elsewhere:
    """A part of an engine that mlafix does not replace. Importing it is allowed; using it skips the test."""

    def __init__(self, name: str) -> None:
        self.__dict__["name"] = name

    def _skip(self) -> Any:
        return pytest.skip(f"needs {self.name}, which is not a part of mlafix.compat")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._skip()

    def __getattr__(self, attribute: str) -> Any:
        # typing and inspect ask every object for special attributes, so asking for one does not skip the test.
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return self._skip()

    def __enter__(self) -> Any:
        return self._skip()

    def __exit__(self, *unused: Any) -> None:
        """Is never called, since `__enter__` skips the test."""


class _Open(ModuleType):
    """A module in which every name that is not defined is `Elsewhere`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Elsewhere(f"{self.__name__}.{name}")


def module(name: str, **names: Any) -> ModuleType:
    """Installs a module that defines `names`. All other names in it are `Elsewhere`. Also installs the packages above
    it if they are missing."""
    made = _Open(name)
    made.__dict__.update(names)
    made.__dict__.setdefault("__path__", [])
    return _place(name, made)


def package(name: str, *folders: Path) -> ModuleType:
    """Installs a package without running its `__init__`. Its submodules are loaded from `folders`."""
    made = ModuleType(name)
    made.__path__ = [str(folder) for folder in folders]
    return _place(name, made)


def checkout_module(name: str, **names: Any) -> ModuleType:
    """Loads a module of the checkout, and replaces `names` in it by the given values."""
    loaded = importlib.import_module(name)
    for key, value in names.items():
        setattr(loaded, key, value)
    return loaded


def _place(name: str, made: ModuleType) -> ModuleType:
    sys.modules[name] = made
    parent, _, child = name.rpartition(".")
    if parent:
        if parent not in sys.modules:
            module(parent)
        setattr(sys.modules[parent], child, made)
    return made
