"""Every kernel as an operator of torch: `torch.ops.mlafix.<kernel>`, with a schema made from the kernel's signature.

An operator takes the kernel's arguments in the kernel's order, and a string that is the launch key: the layout of the
lse and its base, "hn,e", as `mlafix.ops` has them. Mutated arguments are declared, and since kernels only fill what
they are given, the fake implementations have nothing to do.

Kernels of one's own have operators, too: ../torch_kernels.py.

Nobody calls these by hand: the functions of this package do where torch must see the call (torch.compile, export, fake and
functional tensors, dispatch modes, subclasses), and go straight to the kernel elsewhere. Importing this module imports
torch; `_launch` does so when it meets the first tensor.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from .._torch import fake, schema
from ._families import FAMILIES, KernelDispatchers, Key
from ._types import Bound, Launch
from ._wrong import wrong


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


def _implementation(family: KernelDispatchers) -> Callable[..., None]:
    launches: dict[str, Launch] = {}

    def run(*args: Any) -> None:
        variant = args[-1]
        launch = launches.get(variant)
        if launch is None:
            launch = launches[variant] = family[tuple(variant.split(","))]
        launch(args[:-1])

    return run


def _register() -> torch.library.Library:
    library = torch.library.Library("mlafix", "DEF")
    for kernel, family in FAMILIES.items():
        library.define(schema(kernel, family.arguments, "str variant"), tags=(torch.Tag.pt2_compliant_tag,))
        implementation = _implementation(family)
        for key in ("CPU", "CUDA"):
            library.impl(kernel, implementation, key)
        torch.library.register_fake(f"mlafix::{kernel}", fake, lib=library)
    return library


# The operators live as long as this object does.
_library = _register()
