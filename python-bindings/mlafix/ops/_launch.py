"""How a call is launched: by the kernel's C++ dispatcher, or by torch's dispatcher where torch must see the call.

A function of this package turns its arguments into the kernel's and calls `launch`. Calls on plain arrays and plain tensors go
to the C++ dispatcher. A call on a tensor that represents another one (fake, functional, a subclass) and a call that is being
traced go through `torch.ops.mlafix`, whose operators have a schema, a fake implementation and declared mutations.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any, Callable, cast

import numpy

from .._forks import whole
from ._families import KernelDispatchers, Key, TryLaunch, check_key
from ._types import Bound, Launch, Operation, P, R
from ._wrong import renames, wrong

# torch.Tensor and functions that say whether torch traces or intercepts calls, set when the first tensor is met. This module
# does not import torch: a caller that has a tensor has imported it.
_tensor: type | None = None
_compiling: Callable[[], bool] = bool
_dynamo_traces: Callable[[], bool] = bool
_dispatch_modes: Callable[[], int] = int
_function_modes: Callable[[], int] = int
_tracing: Callable[[], Any] = bool


def fast_path(family: KernelDispatchers, key: Key) -> TryLaunch | None:
    """A function that launches `family` for `key` on plain tensors and returns the outputs; None where there is none yet.

    Among its arguments a `NewTensor` represents an output to allocate, and a `SizeOf` a size. It returns None, with nothing
    launched, for calls that are not common and for wrong ones: `launch` then launches the call or raises the error.
    """
    # torch.compile evaluates _dynamo_traces itself; it cannot trace the dispatcher.
    return None if _tensor is None or _dynamo_traces() else family.fast.get(key)


def launcher(family: KernelDispatchers, key: Key, probe: Any) -> Launch:
    """What launches `family` for `key`; `probe` is one of the call's arrays and represents all of them."""
    kind = type(probe)
    # _torch.must_see() written out, less the modes that it finds harmless: the call would cost as much as the questions.
    if kind is _tensor and not (_compiling() or _dispatch_modes() or _function_modes() or _tracing() is not None):
        return with_fast_path(family, key)
    if kind is numpy.ndarray:
        return family[key]
    return _other(family, key, probe)


def with_fast_path(family: KernelDispatchers, key: Key) -> Launch:
    """The dispatcher for a launch key, which `fast_path` returns from now on."""
    dispatch = family[key]
    if key not in family.fast:
        family.fast[key] = dispatch.try_launch
    return dispatch


def _other(family: KernelDispatchers, key: Key, probe: Any) -> Launch:
    """As `launcher`, for calls that are not common: the first tensor of all, a traced call, a subclass, another library."""
    if not hasattr(type(probe), "__torch_function__"):
        return family[key]
    whole("mlafix.ops._torch_ops")
    from .. import _torch
    from . import _torch_ops

    if _torch.must_see(probe):
        check_key(key)
        return _torch_ops.through(family.kernel, key)
    if _tensor is None:
        watch_torch()
    return with_fast_path(family, key)


def watch_torch() -> None:
    """Sets the functions that `launcher` asks about a plain tensor."""
    global _tensor, _compiling, _dynamo_traces, _dispatch_modes, _function_modes, _tracing
    whole("mlafix._torch")
    from .. import _torch

    _compiling, _tracing = _torch.compiling, _torch.tracing
    _dispatch_modes, _function_modes = _torch.dispatch_modes, _torch.function_modes
    _dynamo_traces = _torch.dynamo_traces
    _tensor = sys.modules["torch"].Tensor


class Binding:
    """Passed to `launch` in place of a stream to bind a call instead of launching it."""

    bound: Bound


def launch(family: KernelDispatchers, key: Key, probe: Any, arguments: tuple[Any, ...], stream: Any) -> None:
    """Launches `family` for `key` on the kernel's arguments in the kernel's order, or binds the call where `stream` is a `Binding`.

    `probe` is one of the call's arrays and represents all of them.
    """
    way = launcher(family, key, probe)
    if type(stream) is Binding:
        stream.bound = way.bind(arguments)
    else:
        way(arguments, stream)


def launch_kernel(kernel: Any, arguments: tuple[Any, ...], stream: Any) -> None:
    """As `launch`, of a kernel that is written in Python and compiled when it is first used."""
    if type(stream) is Binding:
        stream.bound = kernel.bind(*arguments)
    else:
        kernel(*arguments, stream=stream)


def operation(names: dict[str, str] | None = None, **outputs: str) -> Callable[[Callable[P, R]], Operation[P, R]]:
    """Gives a public function its `bind`, which takes the same arguments, less the stream.

    `names` maps arguments of the kernel to the function's own names for them, which errors then use.
    `outputs` are the arrays that a plain call allocates. A bound call returns nothing, so they must be given, unless the argument
    that the value names is False: `out_lse="return_lse"`.
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
