"""Kernels of unit files, called from Python without a compiler."""

from __future__ import annotations

import json
import pickle
from typing import Any

from .. import _runtime, cache
from .._files import toolchain
from .._forks import cached_property
from ..errors import UnitError
from . import manifest
from .launcher import Launcher, text_of


class UnitKernel(Launcher):
    """A kernel of a unit file: ``mlafix.Unit.load("kernels.mlafix")["merge_pieces"](out, lse, parts, part_lses)``.

    Calls, bindings and checks work as for a kernel made in Python. A call for which the unit has no code raises
    UnitError.

    Args:
        unit: a loaded unit.
        name: the kernel's name.
        fixed: names that are bound already; see :meth:`specialize`.

    Raises:
        UnitError: the unit has no such kernel, or lacks the kernel's declaration.
    """

    def __init__(self, unit: _runtime.Unit, name: str, fixed: dict[str, str] | None = None) -> None:
        super().__init__(name, fixed)
        self.unit = unit
        self._entries = [entry for entry in manifest.entries(unit.manifest) if entry.name == name]
        if name not in list(unit):
            # The caller may have passed an object that is no str, or a str that is not valid UTF-8.
            got = f'"{toolchain.utf8(name)}"' if isinstance(name, str) else repr(name)
            raise UnitError(f"expected a kernel of the unit ({', '.join(unit) or 'none'}), got {got}")
        if not self._entries:
            raise UnitError(
                f'kernel "{name}": expected a unit that says how its kernels were declared, got one of {unit.producer}, which '
                f"does not: compile it again"
            )

    def __reduce__(self) -> str:
        raise pickle.PicklingError(
            f'kernel "{self.name}": expected a kernel that is in a module or has its text, got one of a unit: load the unit where it is needed'
        )

    def __repr__(self) -> str:
        return f"<mlafix kernel {self.name} of a unit>"

    @cached_property
    def _signature_text(self) -> str:  # type: ignore[override]
        return json.dumps({"name": self.name, **self._entries[0].declaration})

    @property
    def _identity(self) -> str:
        return f"{self.unit.manifest} {sorted(self._fixed.items())}"

    @property
    def specializations(self) -> list[tuple[dict[str, str], tuple[str, ...]]]:
        """The specialisations of the kernel in the unit, each as (bindings, targets), in the order of the file."""
        return [(dict(entry.bindings), entry.targets) for entry in self._entries]

    def specialize(self, **bindings: object) -> UnitKernel:
        """Returns this kernel with further names bound: ``kernel.specialize(B=2)``."""
        return UnitKernel(self.unit, self.name, {**self._fixed, **{name: text_of(value) for name, value in bindings.items()}})

    def _resolve(self, bound: dict[str, str], device_type: int, ordinal: int) -> Any:
        names = self.signature["names"]
        fitting = [entry for entry in self._entries if manifest.fits(entry.bindings, bound, names)]
        if not fitting:
            have = " and ".join(cache.listed(entry.bindings) for entry in self._entries)
            raise UnitError(f'kernel "{self.name}": expected a unit for {cache.listed(bound)}, got one for {have}')
        return self.unit.kernel(self.name, max(fitting, key=lambda entry: len(entry.bindings)).bindings)
