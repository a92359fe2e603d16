"""Queries torch's state for a call, and declares kernels to torch: for the library's operators (ops/_torch_ops.py) and
users' kernels (torch_kernels.py)."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

import numpy
import torch
from torch.utils._device import DeviceContext

from ..errors import ArgumentError

_PLAIN = (torch.Tensor, torch.nn.Parameter)
# The states in which torch watches calls on plain tensors. torch.compile answers the first query itself, so it must
# come first. Looking up a name costs as much as some queries, so they are kept here.
compiling: Callable[[], bool] = torch.compiler.is_compiling
dynamo_traces: Callable[[], bool] = torch.compiler.is_dynamo_compiling
dispatch_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack
function_modes: Callable[[], int] = torch._C._len_torch_function_stack
tracing: Callable[[], Any] = torch._C._get_tracing_state
# torch.func.functionalize, vmap and others, whose wrapper tensors have no type of their own.
transforming: Callable[[], bool] = torch._C._are_functorch_transforms_active


def intercepted() -> bool:
    """True if something watches calls on plain tensors: a compiler, a tracer, a mode or a transform."""
    if compiling() or dispatch_modes() or tracing() is not None or transforming():
        return True
    return function_modes() > 0 and not _only_default_devices()


def _only_default_devices() -> bool:
    """torch.set_default_device is a mode too, but does not affect existing tensors."""
    return all(isinstance(mode, DeviceContext) for mode in torch.overrides._get_current_function_mode_stack())


def must_see(tensor: torch.Tensor) -> bool:
    """True if torch must see a call on this tensor: it stands for another, has no memory, or something watches."""
    return intercepted() or type(tensor) not in _PLAIN or tensor.is_meta


# Types of plain arguments.
_OWN = frozenset({*_PLAIN, numpy.ndarray, int, float, bool, type(None)})


def must_see_any(values: tuple[object, ...]) -> bool:
    """True if torch must see a call with these arguments, of which some are tensors or lists of them."""
    if intercepted():
        return True
    return any(map(_stands_for_another, values))


def _stands_for_another(value: object) -> bool:
    """True if an argument, or a tensor of a list, is one that torch must see."""
    if type(value) in _PLAIN:
        return bool(value.is_meta)  # type: ignore[attr-defined]
    if type(value) in _OWN:
        return False
    if isinstance(value, (list, tuple)):
        return any(map(_stands_for_another, value))
    return hasattr(type(value), "__torch_function__")


# A symbol passed as a float becomes a constant; passed as a Scalar it stays symbolic.
_SCALARS = {"f32": "Scalar", "bool": "bool"}


def schema(name: str, arguments: Sequence[Mapping[str, Any]], *more: str) -> str:
    """The operator of a kernel, as torch declares it: its arguments in the kernel's order, then others."""
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    declared = []
    for argument in arguments:
        if argument["kind"] == "peers":
            raise ArgumentError(
                f"kernel \"{name}\": torch cannot trace argument \"{argument['name']}\", declared with Peers; call the kernel outside of "
                "torch.compile and export"
            )
        if argument["kind"] == "scalar":
            kind = _SCALARS.get(argument["dtype"], "SymInt")
        elif argument["kind"] == "list":
            kind = "Tensor[]"  # only read, and never omitted
        else:
            kind = "Tensor" if argument["access"] == "read" else f"Tensor({next(letters)}!)"
            kind += "?" if argument["optional"] else ""
        declared.append(f"{kind} {argument['name']}")
    return f"{name}({', '.join([*declared, *more])}) -> ()"


def refuse_grad(operator: Any) -> Callable[..., Any]:
    """Refuses arguments that autograd may follow, as a launch of plain tensors does."""
    names = [argument.name for argument in operator._schema.arguments]

    def refuse(*args: Any) -> Any:
        if torch.is_grad_enabled():
            for name, value in zip(names, args):
                for one in value if isinstance(value, (list, tuple)) else (value,):
                    if isinstance(one, torch.Tensor) and one.requires_grad:
                        raise ArgumentError(
                            f'argument "{name}": expected a tensor that autograd does not follow, got one that requires grad '
                            "(detach it, or call under torch.no_grad())"
                        )
        with torch._C._AutoDispatchBelowAutograd():
            return operator(*args)

    return refuse
