"""Which way a call goes: straight to the kernel's C++ dispatcher, or through torch's, where torch must see it.

A function of this package turns its arguments into the kernel's and calls `launch`. Plain arrays and plain tensors go
straight. A tensor that stands for another (fake, functional, a subclass) or a call that is being traced goes through
`torch.ops.mlafix`, which has a schema, a fake implementation and declared mutations.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any, Callable, cast

import numpy

from ._families import Family, Key, TryLaunch, check_key
from ._types import Bound, Launch, Operation, P, R
from ._wrong import renames, wrong

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


class Binding:
    """What `launch` is given in place of a stream where a call is to be bound, not launched."""

    bound: Bound


def launch(family: Family, key: Key, probe: Any, arguments: tuple[Any, ...], stream: Any) -> None:
    """Launches `family` in variant `key` on the kernel's arguments, in its order, or binds the call to a `Binding`.

    `probe` is one of the call's arrays and stands for all of them.
    """
    way = launcher(family, key, probe)
    if type(stream) is Binding:
        stream.bound = way.bind(arguments)
    else:
        way(arguments, stream)


def operation(names: dict[str, str] | None = None, **outputs: str) -> Callable[[Callable[P, R]], Operation[P, R]]:
    """Gives a public function its `bind`, which takes the same arguments, less the stream.

    `names` are the kernel's arguments that the function calls otherwise, for errors to speak of its own.
    `outputs` are the arrays that a plain call would allocate. A bound call has nobody to return them to, so they must be
    given, unless the argument that the value names is False: `out_lse="return_lse"`.
    """

    def decorate(function: Callable[P, R]) -> Operation[P, R]:
        public = cast("Operation[P, R]", renames(**names)(function) if names else function)

        def bind(*args: P.args, **kwargs: P.kwargs) -> Bound:
            if "stream" in kwargs:
                raise TypeError(f"{function.__name__}.bind() got an unexpected keyword argument 'stream'")
            for name, wanted in outputs.items():
                if kwargs.get(name) is None and kwargs.get(wanted, True):
                    raise wrong(name, "an array, since a bound call returns none", None)
            binding = Binding()
            public(*args, **{**kwargs, "stream": binding})  # type: ignore[arg-type]
            return binding.bound

        bind.__module__, bind.__qualname__ = function.__module__, f"{function.__qualname__}.bind"
        bind.__doc__ = f"Checks and packs a call of `{function.__name__}`, every output given, to launch it many times."
        whole = inspect.signature(function)
        taken = [parameter for name, parameter in whole.parameters.items() if name != "stream"]
        bind.__signature__ = whole.replace(parameters=taken, return_annotation="Bound")  # type: ignore[attr-defined]
        public.bind = bind
        return public

    return decorate
