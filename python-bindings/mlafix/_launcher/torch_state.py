"""Tells whether torch must see a call, and declares kernels as torch operators. Used by the library's operators
(ops/_torch_ops.py) and by users' kernels (torch_kernels.py)."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

import numpy
import torch
from torch.utils._device import DeviceContext

from ..errors import ArgumentError

_PLAIN = (torch.Tensor, torch.nn.Parameter)
# Functions of torch that tell whether torch watches calls on plain tensors. They are kept in variables, because looking
# a function up in torch costs as much as calling it. A caller must test `compiling` or `dynamo_traces` before the other
# functions. When torch.compile traces the caller, the result of these two is the constant True, so torch.compile does
# not trace the calls of the others.
compiling: Callable[[], bool] = torch.compiler.is_compiling
dynamo_traces: Callable[[], bool] = torch.compiler.is_dynamo_compiling
dispatch_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack
function_modes: Callable[[], int] = torch._C._len_torch_function_stack
tracing: Callable[[], Any] = torch._C._get_tracing_state
# True inside torch.func.functionalize, vmap and other transforms. The type of their wrapper tensors is torch.Tensor, so
# a test of the type does not recognise them.
transforming: Callable[[], bool] = torch._C._are_functorch_transforms_active


def intercepted() -> bool:
    """True if something watches calls on plain tensors: a compiler, a tracer, a mode or a transform."""
    if compiling() or dispatch_modes() or tracing() is not None or transforming():
        return True
    return function_modes() > 0 and not _only_default_devices()


def _only_default_devices() -> bool:
    """True if all active function modes come from torch.set_default_device. Such a mode does not affect existing
    tensors."""
    return all(isinstance(mode, DeviceContext) for mode in torch.overrides._get_current_function_mode_stack())


def must_see(tensor: torch.Tensor) -> bool:
    """True if torch must see a call on this tensor, because the tensor stands for another one or has no memory, or
    because something watches calls."""
    return intercepted() or type(tensor) not in _PLAIN or tensor.is_meta


# The types of arguments that torch need not see, except for tensors without memory (meta tensors).
_OWN = frozenset({*_PLAIN, numpy.ndarray, int, float, bool, type(None)})


def must_see_any(values: tuple[object, ...]) -> bool:
    """True if torch must see a call with these arguments: tensors, lists of tensors, numbers and other objects."""
    if intercepted():
        return True
    return any(map(_stands_for_another, values))


def _stands_for_another(value: object) -> bool:
    """True if torch must see `value`: a tensor of a subclass, a tensor without memory, or a list with such a tensor."""
    if type(value) in _PLAIN:
        return bool(value.is_meta)  # type: ignore[attr-defined]
    if type(value) in _OWN:
        return False
    if isinstance(value, (list, tuple)):
        return any(map(_stands_for_another, value))
    return hasattr(type(value), "__torch_function__")


# The type of a scalar argument in an operator's schema, by the argument's dtype. All other dtypes have SymInt. An f32
# is a Scalar, since torch would turn a symbolic number that is passed as a float into a constant.
_SCALARS = {"f32": "Scalar", "bool": "bool"}


def schema(name: str, arguments: Sequence[Mapping[str, Any]], *more: str) -> str:
    """Returns the declaration of a kernel's operator for torch. The operator takes the kernel's arguments in order,
    then `more`."""
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
            kind = "Tensor[]"  # list arguments are read-only and never omitted
        else:
            kind = "Tensor" if argument["access"] == "read" else f"Tensor({next(letters)}!)"
            kind += "?" if argument["optional"] else ""
        declared.append(f"{kind} {argument['name']}")
    return f"{name}({', '.join([*declared, *more])}) -> ()"


def register(library: torch.library.Library, name: str, schema: str, run: Callable[..., Any], fake: Callable[..., Any]) -> Any:
    """Registers an operator and returns it. `name` includes the overload, if there is one: "merge.out". `run` launches a
    call on plain tensors, `fake` checks a call on tensors without memory."""
    library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    for key in ("CPU", "CUDA"):
        library.impl(name, run, key)
    torch.library.register_fake(f"{library.ns}::{name}", fake, lib=library)
    function, _, overload = name.partition(".")
    made = getattr(getattr(getattr(torch.ops, library.ns), function), overload or "default")
    library.impl(name, _refuse_grad(made), "Autograd")
    return made


def _refuse_grad(operator: Any) -> Callable[..., Any]:
    """Returns a function that calls an operator, but raises ArgumentError if autograd tracks an argument, as a launch
    on plain tensors does."""
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
