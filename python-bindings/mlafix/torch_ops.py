"""Every kernel as an operator of torch: `torch.ops.mlafix.<kernel>`, with a schema made from the kernel's signature.

An operator takes the kernel's arguments in the kernel's order, and a string that is the launch key: the layout of the
lse and its base, "hn,e", as `mlafix.ops` has them. Mutated arguments are declared, and since kernels only fill what
they are given, the fake implementations have nothing to do.

Nobody calls these by hand: the functions of `mlafix.ops` do where torch must see the call (torch.compile, export, fake and
functional tensors, dispatch modes, subclasses), and go straight to the kernel elsewhere. Importing this module imports
torch; `mlafix` does so when it meets the first tensor.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch.utils._device import DeviceContext

from .ops._families import FAMILIES, KernelDispatchers, Key
from .ops._types import Bound, Launch
from .ops._wrong import wrong

_PLAIN = (torch.Tensor, torch.nn.Parameter)
# What may watch calls on plain tensors. torch.compile answers the first one itself, and so must meet it first. Each look-up
# of a name costs as much as some of these questions.
compiling: Callable[[], bool] = torch.compiler.is_compiling
dynamo_traces: Callable[[], bool] = torch.compiler.is_dynamo_compiling
dispatch_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack
function_modes: Callable[[], int] = torch._C._len_torch_function_stack
tracing: Callable[[], Any] = torch._C._get_tracing_state


def intercepted() -> bool:
    """Whether something watches calls on plain tensors: a compiler, a tracer or a mode."""
    if compiling() or dispatch_modes() or tracing() is not None:
        return True
    return function_modes() > 0 and not _only_default_devices()


def _only_default_devices() -> bool:
    """torch.set_default_device is a mode too, but has nothing to say on tensors that are there."""
    return all(isinstance(mode, DeviceContext) for mode in torch.overrides._get_current_function_mode_stack())


def must_see(tensor: torch.Tensor) -> bool:
    """Whether torch must see a call on this tensor: it stands for another, or something watches."""
    return intercepted() or type(tensor) not in _PLAIN


class Through:
    """Launches a kernel through torch's dispatcher."""

    def __init__(self, kernel: str, variant: str) -> None:
        self.operator = getattr(torch.ops.mlafix, kernel).default
        self.variant = variant

    def __call__(self, args: tuple[Any, ...], stream: Any = None) -> None:
        if stream is not None:
            raise wrong("stream", "None, since torch picks the stream of a traced call", stream)
        self.operator(*args, self.variant)

    def bind(self, args: tuple[Any, ...]) -> Bound:
        raise wrong("bind", "plain tensors outside of torch.compile and modes", "a traced call")


def through(kernel: str, key: Key) -> Launch:
    """The launch of `kernel` with launch key `key` through torch."""
    return Through(kernel, ",".join(key))


def schema(family: KernelDispatchers) -> str:
    """The operator of a kernel, as torch declares it: its arguments in the kernel's order, then the variant."""
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    declared = []
    for argument in family.arguments:
        if argument["kind"] == "scalar":
            kind = "float" if argument["dtype"] == "f32" else "SymInt"
        else:
            kind = "Tensor" if argument["access"] == "read" else f"Tensor({next(letters)}!)"
            kind += "?" if argument["optional"] else ""
        declared.append(f"{kind} {argument['name']}")
    return f"{family.kernel}({', '.join(declared)}, str variant) -> ()"


def _implementation(family: KernelDispatchers) -> Callable[..., None]:
    launches: dict[str, Launch] = {}

    def run(*args: Any) -> None:
        variant = args[-1]
        launch = launches.get(variant)
        if launch is None:
            launch = launches[variant] = family[tuple(variant.split(","))]
        launch(args[:-1])

    return run


def _fake(*args: Any) -> None:
    """Nothing: the outputs are arguments."""


def _register() -> torch.library.Library:
    library = torch.library.Library("mlafix", "DEF")
    for kernel, family in FAMILIES.items():
        library.define(schema(family), tags=(torch.Tag.pt2_compliant_tag,))
        implementation = _implementation(family)
        for key in ("CPU", "CUDA"):
            library.impl(kernel, implementation, key)
        torch.library.register_fake(f"mlafix::{kernel}", _fake, lib=library)
    return library


# The operators live as long as this object does.
_library = _register()
