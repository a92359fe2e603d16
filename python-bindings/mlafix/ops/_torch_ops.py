"""Registers the operators of `_operators` with torch, with their overloads: `torch.ops.mlafix.<function>`.

Users do not call these operators directly. Importing this module imports torch. The package imports the module at once
if torch is already imported, otherwise at the first tensor or on request (`mlafix.register_torch_operators`). Kernels
of users have operators as well (../torch_kernels.py).
"""

from __future__ import annotations

import torch

from .._launcher.torch_state import register
from ._operators import FAKE, OPERATORS, Operator

_library = torch.library.Library("mlafix", "DEF")  # The operators exist as long as this object does.


def _register(operator: Operator, overload: str, chosen: tuple[int, ...]) -> None:
    name = f"{operator.name}.{overload}" if overload else operator.name
    operator.overloads[overload] = register(_library, name, operator.schema(chosen), lambda *taken: operator.run(chosen, taken),
                                            lambda *taken: operator.run(chosen, taken, FAKE))  # fmt: skip


for _operator in OPERATORS.values():
    for _overload, _chosen in _operator.chosen().items():
        _register(_operator, _overload, _chosen)
