"""Pickles decorated functions by module and name, as Python pickles functions."""

from __future__ import annotations

import functools
import pickle
import sys
from typing import Any


def find(module: str, name: str) -> Any:
    """Returns the object that a module has under a name such as "Class.kernel". Returns None if there is none."""
    return functools.reduce(lambda found, part: getattr(found, part, None), name.split("."), sys.modules.get(module))


def is_reachable(made: Any) -> bool:
    """True if the module of an object's function has the object under the function's name, so that another process
    finds it."""
    return find(made.__module__, made.__qualname__) is made


def by_name(made: Any) -> str:
    """Returns what the object's `__reduce__` has to return: the name of its function. Raises PicklingError if another
    process would not find the object under this name (`is_reachable`)."""
    if is_reachable(made):
        return str(made.__qualname__)
    found = find(made.__module__, made.__qualname__)
    got = "another object" if found is not None else "none"
    raise pickle.PicklingError(
        f"{made!r}: expected it in module {made.__module__} under the name {made.__qualname__}, where another process finds it, "
        f"got {got} there: define the function at the top of a module, and keep its name"
    )
