"""The kernel library: every kernel that the package launches, in the modules that `mlafix.ops` has for their functions.

`scripts/gen-kernels` writes those that are compiled ahead as text (kernels/*.mlir); others compile when first used. A kernel whose
result is fp8 or fp4 is a family (`scaling.Family`), one for each way to scale it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from .._launcher.kernel import Kernel
from .scaling import FORMATS, Family

MODULES = ("blank", "checks", "merge", "merge_many", "merge_mapped", "metadata", "push", "ranks", "rows", "tokens")


def _modules(*names: str) -> Iterator[ModuleType]:
    """All modules; those first that define such a name, then those that mention one: importing all takes 10 ms."""

    def distance(module: str) -> int:
        text = Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8")
        return 2 - any(name in text for name in names) - any(f"def {name}(" in text for name in names)

    return (importlib.import_module(f".{module}", __name__) for module in (sorted(MODULES, key=distance) if names else MODULES))


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
    families = {name.removesuffix(f"_{format}"): format for format in FORMATS if name.endswith(f"_{format}")}
    for module in _modules(name, *families):
        value = vars(module).get(name)
        if isinstance(value, Kernel):
            return value
        for family, format in families.items():
            value = vars(module).get(family)
            if isinstance(value, Family):
                return value.member(format)
    raise KeyError(name)
