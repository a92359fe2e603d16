"""Registers the operators of `_operators` with torch: `torch.ops.mlafix.<function>`.

Nobody calls these by hand. Importing this module imports torch; the package does so at once where torch is there already, else when it
meets the first tensor, or is asked to (`mlafix.register_torch_operators`). Kernels of one's own have operators, too: ../torch_kernels.py.
"""

from __future__ import annotations

from typing import Any

import torch

from .._torch import refuse_grad
from ._operators import FAKE, OPERATORS, Operator

_library = torch.library.Library("mlafix", "DEF")  # the operators live as long as this object does


def _register(operator: Operator) -> None:
    def run(*flat: Any) -> Any:
        return operator.run(flat)

    def fake(*flat: Any) -> Any:
        return operator.run(flat, FAKE)

    _library.define(operator.schema, tags=(torch.Tag.pt2_compliant_tag,))
    operator.overload = getattr(torch.ops.mlafix, operator.name).default
    for key in ("CPU", "CUDA"):
        _library.impl(operator.name, run, key)
    torch.library.register_fake(f"mlafix::{operator.name}", fake, lib=_library)
    _library.impl(operator.name, refuse_grad(operator.overload), "Autograd")


for _operator in OPERATORS.values():
    _register(_operator)
