"""Registers users' kernels as operators of torch: `torch.ops.mlafix_kernels.<kernel>_<digest>`.

An operator takes the kernel's arguments in the kernel's order. Its schema is derived from the kernel's signature and
declares which arguments the operator mutates. A kernel only writes tensors that it is given, so the fake implementation
checks the arguments and returns nothing. A kernel is registered when torch first traces a call of it. A process that
loads an exported program must call `register(kernel)` first.
"""

from __future__ import annotations

import hashlib
from typing import Any, Protocol

import torch

from ._launcher import torch_state


class Kernel(Protocol):
    """A kernel that an operator launches: a mlafix.Kernel or a mlafix.UnitKernel."""

    name: str

    @property
    def signature(self) -> dict[str, Any]: ...
    @property
    def _identity(self) -> str: ...
    def _launch_plain(self, args: tuple[object, ...]) -> None: ...
    def _check_fake(self, args: tuple[object, ...]) -> None: ...


_library = torch.library.Library("mlafix_kernels", "DEF")
operators = torch.ops.mlafix_kernels
_registered: set[str] = set()


def register(kernel: Kernel) -> str:
    """Registers the operator of a kernel unless it is registered already, and returns the operator's name. Kernels with
    equal names and texts share an operator.

    Raises:
        CompileError, UnitError: the kernel has no signature.
    """
    name = f"{kernel.name}_{hashlib.sha256(kernel._identity.encode()).hexdigest()[:8]}"
    if name not in _registered:
        schema = torch_state.schema(name, kernel.signature["args"])
        torch_state.register(_library, name, schema, lambda *args: kernel._launch_plain(args), lambda *args: kernel._check_fake(args))
        _registered.add(name)
    return name
