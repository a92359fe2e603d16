"""Holds the library kernels that the functions of this package launch. Facts about their calls are derived from their
signatures."""

from __future__ import annotations

import functools
import json
from typing import Any, Callable, Dict, Tuple, Union

from .. import library
from .._launcher.kernel import Kernel
from ._bases import base_of, layout_of

TryLaunch = Callable[[Tuple[Any, ...], Any], Union[Tuple[Any, ...], None]]

Key = Tuple[str, ...]
"""A launch key: the layout and the base of the lse, then the names of lower-case dims that are bound, and entries
"name=value" such as "ResultBase=2"."""

PLAIN: Key = ("hn", "e")
"""The launch key of a kernel that has no lse whose layout or base a caller can choose."""

_LSE_DIMS = {("H", "n"): "hn", ("n", "H"): "nh"}


class KeyedKernel(Dict[Key, Kernel]):
    """Maps launch keys to kernels of the library. Makes each kernel when it is first looked up.

    `stored` names the dtype variables of payloads that are written but never read; these may also be fp8. Everything else comes
    from the kernel's signature.
    """

    __slots__ = ("fast", "kernel", "stored")  # slots are faster to read, and each call reads `fast`

    def __init__(self, kernel: str, *, stored: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.kernel = kernel
        self.stored = stored
        # `try_launch` of the kernel's C++ dispatcher, for each launch key. It launches nothing and returns None unless
        # an ordinary call has resolved the code for such arguments.
        self.fast: dict[Key, TryLaunch] = {}
        FAMILIES[kernel] = self

    @property
    def arguments(self) -> list[dict[str, Any]]:
        """The kernel's arguments in order, in the form of docs/UnitFormat.md."""
        found: list[dict[str, Any]] = json.loads(library.signature(self.kernel))["args"]
        return found

    @property
    def native(self) -> str:
        """The layout of the lse arguments in the kernel's own signature, "hn" or "nh"; "hn" if it has no lse."""
        return next(iter(self._lses().values()), "hn")

    def views(self, layout: str) -> dict[str, tuple[int, int]]:
        """Maps the lse arguments to the order of their dims if the caller's lses have another layout than the kernel's.
        Such lses are passed as transposed views, without a copy. Returns an empty dict if the layouts are the same."""
        return {} if layout == self.native else dict.fromkeys(self._lses(), (1, 0))

    def _lses(self) -> dict[str, str]:
        """Returns the arguments with one f32 per token and head, and the layout of each."""
        layouts = {arg["name"]: _LSE_DIMS.get(tuple(arg.get("dims", ()))) for arg in self.arguments if arg["dtype"] == "f32"}
        return {name: layout for name, layout in layouts.items() if layout}

    def __missing__(self, key: Key) -> Kernel:
        layout, base, *more = key
        bindings = {"B": base_of("base", base)} if base != "e" else {}
        bindings.update(item.split("=") for item in more if "=" in item)
        specialize = tuple(item for item in more if "=" not in item)
        made = library.viewed(self.kernel, bindings=bindings, views=self.views(layout_of(layout)), specialize=specialize, stored=self.stored)
        self.fast[key] = made._dispatch.try_launch
        return self.setdefault(key, made)


FAMILIES: dict[str, KeyedKernel] = {}
"""Every kernel that a function of this package launches, by name."""


@functools.lru_cache(maxsize=None)
def in_base(kernel: str, base: str) -> Kernel:
    """Returns a kernel of the library for lses with this base."""
    found = library.kernel(kernel)
    return found if base == "e" else found.specialize(B=base)
