"""The kernel library: every kernel that the package launches, in the modules that `mlafix.ops` has for their functions.

`scripts/gen-kernels` writes those that are compiled ahead as text (kernels/*.mlir); others compile when first used. A kernel whose
result is fp8 or fp4 is a family (`scaling.Family`), one for each way to scale it.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from .._kernel import Kernel
from .scaling import FORMATS, Family

MODULES = ("blank", "merge", "merge_many", "merge_mapped", "metadata", "push", "ranks", "rows", "tokens")


def _modules() -> list[ModuleType]:
    return [importlib.import_module(f".{name}", __name__) for name in MODULES]


def names() -> list[str]:
    """Names of the kernels, in the order of the modules."""
    return _names_of(Kernel)


def families() -> list[str]:
    """Names of the families, likewise."""
    return _names_of(Family)


def _names_of(kind: type) -> list[str]:
    found = ((module, name, value) for module in _modules() for name, value in vars(module).items())
    return [name for module, name, value in found if isinstance(value, kind) and value.__module__ == module.__name__]


def find(name: str) -> Kernel:
    """A kernel, or the member of a family: "merge_two_states_nvfp4". Raises KeyError for a name that is neither."""
    for module in _modules():
        value = vars(module).get(name)
        if isinstance(value, Kernel):
            return value
    for format in FORMATS:
        family = name.removesuffix(f"_{format}")
        for module in _modules() if family != name else ():
            value = vars(module).get(family)
            if isinstance(value, Family):
                return value.member(format)
    raise KeyError(name)
