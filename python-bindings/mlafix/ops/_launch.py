"""Which way a call goes: straight to the kernel's C++ dispatcher, or through torch's, where torch must see it.

A function of this package turns its arguments into the kernel's, asks `launcher` for a way to start it, and starts it.
Plain arrays and plain tensors go straight. A tensor that stands for another (fake, functional, a subclass) or a call
that is being traced goes through `torch.ops.mlafix`, which has a schema, a fake implementation and declared mutations.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Dict, Tuple, Union, cast

import numpy

from ._types import Bound, Dispatch, Launch, Operation, P, Q, R
from ._wrong import renames, wrong

TryLaunch = Callable[[Tuple[Any, ...], Any], Union[Tuple[Any, ...], None]]

Key = Tuple[str, ...]
"""Which variant of a kernel's call: the lse's layout and base, then the lower-case dims to compile for as well."""

LAYOUTS = ("hn", "nh")
BASES = ("e", "2")


class Family(Dict[Key, Dispatch]):
    """The dispatchers of one kernel, made as they are asked for.

    `native` is the layout of the lse arguments in the kernel's own signature; in the other one `lse_args` are passed
    as their transposed views, which costs nothing. `based` says whether the kernel has a base to choose. `stored` names
    the dtype variables of payloads that are written and never read: these may be fp8 too.
    """

    def __init__(self, kernel: str, *, native: str = "hn", lse_args: tuple[str, ...] = (), based: bool = True,
                 stored: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.kernel = kernel
        self.native = native
        self.lse_args = lse_args
        self.based = based
        self.stored = stored
        # `Dispatcher.try_launch` of each variant that a plain tensor was passed to.
        self.short: dict[Key, TryLaunch] = {}
        FAMILIES[kernel] = self

    def __missing__(self, key: Key) -> Dispatch:
        check_key(key)
        layout, base, *specialize = key
        bindings = {"B": base} if self.based and base != "e" else {}
        views = {name: (1, 0) for name in self.lse_args} if layout != self.native else {}
        from .. import library

        made: Dispatch = library.dispatcher(
            self.kernel, bindings=bindings, views=views, specialize=tuple(specialize), stored=self.stored)
        return self.setdefault(key, made)


FAMILIES: dict[str, Family] = {}
"""Every kernel that a function of this package launches, by name."""


def check_key(key: Key) -> None:
    """Raises ArgumentError for a layout or a base that there is not."""
    if key[0] not in LAYOUTS:
        raise wrong("lse_layout", "'hn' for [H, n] or 'nh' for [n, H]", repr(key[0]))
    if key[1] not in BASES:
        raise wrong("base", "'e' or '2'", repr(key[1]))


# torch.Tensor and what tells whether torch traces or intercepts calls, once a tensor was seen. torch itself is never
# imported here: whoever has a tensor has imported it.
_tensor: type | None = None
_compiling: Callable[[], bool] = bool
_dynamo_traces: Callable[[], bool] = bool
_dispatch_modes: Callable[[], int] = int
_function_modes: Callable[[], int] = int
_tracing: Callable[[], Any] = bool


def short_way(family: Family, key: Key) -> TryLaunch | None:
    """Launches `family` in variant `key` on plain tensors, and returns the outputs: None where there is no such way.

    Among its arguments a `NewTensor` stands for an output to allocate, and a `SizeOf` for a size. It returns None, with nothing
    launched, for all that is not common and for what is wrong: `launcher` knows the way then, and what to say.
    """
    # torch.compile answers the second question itself; it knows nothing of what is behind it.
    return None if _tensor is None or _dynamo_traces() else family.short.get(key)


def launcher(family: Family, key: Key, probe: Any) -> Launch:
    """The way to launch `family` in variant `key`; `probe` is one of the call's arrays and stands for all of them."""
    kind = type(probe)
    # torch_ops.intercepted(), but for the call and for modes that turn out to be harmless.
    if kind is _tensor and not (_compiling() or _dispatch_modes() or _function_modes() or _tracing() is not None):
        return shortened(family, key)
    if kind is numpy.ndarray:
        return family[key]
    return _other(family, key, probe)


def shortened(family: Family, key: Key) -> Launch:
    """The dispatcher of a variant, to which plain tensors find a short way from now on."""
    dispatch = family[key]
    if key not in family.short:
        family.short[key] = dispatch.try_launch
    return dispatch


def _other(family: Family, key: Key, probe: Any) -> Launch:
    """As `launcher`, for what is not common: the first tensor of all, a traced call, a subclass, another library."""
    if not hasattr(type(probe), "__torch_function__"):
        return family[key]
    from .. import torch_ops

    if torch_ops.must_see(probe):
        check_key(key)
        return torch_ops.through(family.kernel, key)
    if _tensor is None:
        watch_torch()
    return shortened(family, key)


def watch_torch() -> None:
    """From now on `launcher` knows a plain tensor at a glance."""
    global _tensor, _compiling, _dynamo_traces, _dispatch_modes, _function_modes, _tracing
    from .. import torch_ops

    _compiling, _tracing = torch_ops.compiling, torch_ops.tracing
    _dispatch_modes, _function_modes = torch_ops.dispatch_modes, torch_ops.function_modes
    _dynamo_traces = torch_ops.dynamo_traces
    _tensor = sys.modules["torch"].Tensor


def bindable(
    prepare: Callable[Q, tuple[Launch, tuple[Any, ...], Any]], names: dict[str, str] | None = None, **outputs: str
) -> Callable[[Callable[P, R]], Operation[P, Q, R]]:
    """Gives a public function its `bind`: `prepare` turns the same arguments into (launch, kernel arguments, result).

    `names` are the kernel's arguments that the function calls otherwise, for errors to speak of its own.
    `outputs` are the arrays that a plain call would allocate. A bound call has nobody to return them to, so they must be
    given, unless the argument that the value names is False: `out_lse="return_lse"`.
    """

    def decorate(function: Callable[P, R]) -> Operation[P, Q, R]:
        @functools.wraps(prepare)
        def bind(*args: Q.args, **kwargs: Q.kwargs) -> Bound:
            for name, wanted in outputs.items():
                if kwargs.get(name) is None and kwargs.get(wanted, True):
                    raise wrong(name, "an array, since a bound call returns none", None)
            launch, arguments, _ = prepare(*args, **kwargs)
            return launch.bind(arguments)

        operation = cast("Operation[P, Q, R]", renames(**names)(function) if names else function)
        operation.bind = renames(**names)(bind) if names else bind
        bind.__name__ = "bind"
        bind.__qualname__ = f"{function.__qualname__}.bind"
        bind.__doc__ = f"Checks and packs a call of `{function.__name__}`, every output given, to launch it many times."
        return operation

    return decorate
