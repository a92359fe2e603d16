"""The kernel library: every kernel that the package launches. A module here has the kernels that the module of
`mlafix.ops` with the same name launches. `ranks` and `push` have those of `mlafix.distributed`.

`scripts/gen-kernels` writes the kernels that are compiled ahead as text (kernels/*.mlir). All others compile when they
are first used. A kernel whose result may be fp8 or fp4 is a family (`scaling.Family`), with one member for each way to
store the result.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from .._launcher.kernel import Kernel
from .scaling import Family

MODULES = ("blank", "checks", "merge", "merge_many", "merge_mapped", "metadata", "push", "ranks", "rows", "tokens")


def _modules(*names: str) -> Iterator[ModuleType]:
    """Yields all modules: first those that define one of the names, then those that mention one, then the others.
    Imports a module only when it is yielded, since importing all of them takes 10 ms."""

    def distance(module: str) -> int:
        text = Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8")
        return 2 - any(name in text for name in names) - any(f"def {name}(" in text for name in names)

    return (importlib.import_module(f".{module}", __name__) for module in (sorted(MODULES, key=distance) if names else MODULES))


def names() -> list[str]:
    """Returns the names of the kernels, in the order of the modules."""
    return _names_of(Kernel)


def families() -> list[str]:
    """Returns the names of the families, in the order of the modules."""
    return _names_of(Family)


def _names_of(kind: type) -> list[str]:
    found = ((module, name, value) for module in _modules() for name, value in vars(module).items())
    return [name for module, name, value in found if isinstance(value, kind) and value.__module__ == module.__name__]


def find(name: str) -> Kernel:
    """Returns a kernel, or the member of a family, such as "merge_attn_states_nvfp4". Raises KeyError for any other
    name."""
    words = name.split("_")
    starts = ["_".join(words[:count]) for count in range(len(words), 0, -1)]
    for module in _modules(*starts):
        for start in starts:
            value = vars(module).get(start)
            if isinstance(value, Kernel) and start == name:
                return value
            if isinstance(value, Family):
                with contextlib.suppress(KeyError):
                    return value.member(name[len(start) + 1 :])
    raise KeyError(name)
