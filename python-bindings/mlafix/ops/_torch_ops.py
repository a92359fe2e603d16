"""Registers the operators of `_operators` with torch, with their overloads: `torch.ops.mlafix.<function>`.

Users do not call these operators directly. Importing this module imports torch. The package imports the module at once
if torch is already imported, otherwise at the first tensor or on request (`mlafix.register_torch_operators`). Kernels
of users have operators as well (../torch_kernels.py).
"""

from __future__ import annotations

from typing import Any

import torch

from .._launcher.torch_state import refuse_grad
from ._operators import FAKE, OPERATORS, Operator

_library = torch.library.Library("mlafix", "DEF")  # The operators exist as long as this object does.


def _register(operator: Operator, overload: str, chosen: tuple[int, ...]) -> None:
    def run(*taken: Any) -> Any:
        return operator.run(chosen, taken)

    def fake(*taken: Any) -> Any:
        return operator.run(chosen, taken, FAKE)

    name = f"{operator.name}.{overload}" if overload else operator.name
    _library.define(operator.schema(chosen), tags=(torch.Tag.pt2_compliant_tag,))
    made = operator.overloads[overload] = getattr(getattr(torch.ops.mlafix, operator.name), overload or "default")
    for key in ("CPU", "CUDA"):
        _library.impl(name, run, key)
    torch.library.register_fake(f"mlafix::{name}", fake, lib=_library)
    _library.impl(name, refuse_grad(made), "Autograd")


for _operator in OPERATORS.values():
    for _overload, _chosen in _operator.chosen().items():
        _register(_operator, _overload, _chosen)
