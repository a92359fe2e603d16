"""Launches calls with the kernel's C++ dispatcher, or as an operator of torch if torch must see the call.

A public function turns its arguments into the kernel's arguments and calls `launch`. The function's decorator,
`operation`, first asks whether the arrays are plain. A tensor that represents another one (fake, meta, functional, a
subclass) is not plain. Calls with such tensors, and calls that torch traces, go through torch (`_operators`).
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any, Callable, cast

import numpy

from .._forks import whole
from .._launcher.arguments import Names, in_callers_words, wrong
from .._launcher.kernel import Kernel
from .._launcher.recording import recorders
from ..errors import ArgumentError, Error
from ._families import KeyedKernel, Key, TryLaunch
from ._operators import FAKE, OPERATORS, Operator
from ._types import Bound, Operation, P, R

# torch.Tensor, and functions that say whether torch traces or intercepts calls. This module does not import torch, so
# they are set by register_torch_operators, at the latest in the first call with a tensor.
_tensor: type | None = None
_compiling: Callable[[], bool] = bool
_dynamo_traces: Callable[[], bool] = bool
_dispatch_modes: Callable[[], int] = int
_function_modes: Callable[[], int] = int
_tracing: Callable[[], Any] = bool
_transforming: Callable[[], bool] = bool


def fast_path(family: KeyedKernel, key: Key) -> TryLaunch | None:
    """Returns a function that launches `family` for `key` on plain tensors and returns the outputs. Returns None if
    there is no such function yet.

    Among the arguments of the returned function, a `NewTensor` represents an output to allocate, and a `SizeOf` a size.
    The function launches nothing and returns None for calls that are not common and for wrong ones. The caller then
    uses `launch`, which launches the call or raises the error.
    """
    # torch.compile cannot trace the kernel's dispatcher. For torch.compile, _dynamo_traces() is True, so a traced call
    # returns before it reads `recorders`. If it read that list, torch.compile would guard on the list, and a recorder
    # in another thread would cause a recompilation.
    if _tensor is None or _dynamo_traces() or recorders:
        return None
    try:
        return family.fast.get(key)
    except TypeError:  # the layout or the base is not hashable
        return None


def is_for_torch(probe: Any) -> bool:
    """True if torch must see a call. `probe` is one of the call's arrays and stands for all of them."""
    kind = type(probe)
    # These are the queries of torch_state.must_see(), without its list of harmless modes. They are repeated here, since
    # a call of must_see() would take twice as long.
    if kind is _tensor and not (_compiling() or _dispatch_modes() or _function_modes() or _tracing() is not None or _transforming()):
        return bool(probe.is_meta)
    return False if kind is numpy.ndarray else _is_other_for_torch(probe)


def _is_other_for_torch(probe: Any) -> bool:
    """Answers `is_for_torch` in rare cases: the first tensor ever, a traced call, a subclass, or an array of another
    library."""
    if isinstance(probe, (list, tuple)):
        return len(probe) > 0 and not isinstance(probe[0], (list, tuple)) and is_for_torch(probe[0])
    if not hasattr(type(probe), "__torch_function__"):
        return False
    whole("mlafix._launcher.torch_state")
    from .._launcher import torch_state

    if _tensor is None:
        register_torch_operators()
    return torch_state.must_see(probe)


def register_torch_operators() -> None:
    """Registers the operators `torch.ops.mlafix.*`, which an exported program that calls `mlafix.ops` or `mlafix.compat` needs.

    Importing mlafix does so where torch is imported already, and so does the first call with a tensor. A process that imports torch
    later calls this function before it loads the program. It imports torch, and may be called again.
    """
    global _tensor, _compiling, _dynamo_traces, _dispatch_modes, _function_modes, _tracing, _transforming
    whole("mlafix._launcher.torch_state")
    whole("mlafix.ops._torch_ops")
    from .._launcher import torch_state
    from . import _torch_ops  # noqa: F401 (registers)

    _compiling, _tracing, _transforming = torch_state.compiling, torch_state.tracing, torch_state.transforming
    _dispatch_modes, _function_modes = torch_state.dispatch_modes, torch_state.function_modes
    _dynamo_traces = torch_state.dynamo_traces
    _tensor = sys.modules["torch"].Tensor


class Binding:
    """A value for `launch` in place of a stream. With it a call is bound instead of launched."""

    bound: Bound


def launch(kernel: Kernel, arguments: tuple[Any, ...], stream: Any) -> None:
    """Launches a kernel on its arguments, in the kernel's order. If `stream` is a `Binding` or FAKE, binds or checks
    the call instead."""
    if stream is FAKE:
        kernel._check_fake(arguments)
    elif type(stream) is Binding:
        stream.bound = kernel.bind(*arguments)
    else:
        kernel._launch_plain(arguments, stream)


def operation(names: dict[str, str] | None = None, *, writes: tuple[str, ...] = (), **outputs: str) -> Callable[[Callable[P, R]], Operation[P, R]]:
    """Decorates a function that launches a kernel. The function gets a `bind`, and an operator of torch that is called
    instead if torch must see the call.

    Args:
        names: maps arguments of the kernel to the function's own names for them, which errors then use. An error about
            an output that was not passed names the function's first argument, since the output was made like that
            array.
        writes: see `Operator`.
        outputs: see `Operator`. A bound call returns nothing, so `bind` requires every output, except one whose flag is
            False (`return_lse` in `out_lse="return_lse"`).
    """

    def decorate(function: Callable[P, R]) -> Operation[P, R]:
        order = list(inspect.signature(function).parameters)
        inner = {**{name: name for name in outputs}, **(names or {})}
        known: Names = {name: (own, order[0]) if own in outputs else own for name, own in inner.items()}

        @functools.wraps(function)
        def straight(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                message = _message_of(error, function, known, args, kwargs)
                if message is None:
                    raise
            raise ArgumentError(message)

        operator = Operator(straight, writes, outputs)
        OPERATORS[operator.name] = operator

        @functools.wraps(function)
        def public(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                if is_for_torch(args[0] if args else kwargs.get(order[0])):
                    return cast(R, operator(args, kwargs))
                return function(*args, **kwargs)
            except Exception as error:
                message = _message_of(error, function, known, args, kwargs)
                if message is None:
                    raise
            raise ArgumentError(message)

        return _with_bind(cast("Operation[P, R]", public), outputs)

    return decorate


def _message_of(error: Exception, function: Callable[..., Any], names: Names, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Returns the message of an ArgumentError for a failed call, with the caller's names of arguments. Returns None if
    no argument is to blame."""
    # torch.compile traces this function. Some releases support neither str(error) nor `raise … from None`. So this
    # function reads error.args[0], and its callers raise after their except clause.
    if isinstance(error, ArgumentError):
        message: str = error.args[0]
    elif isinstance(error, Error):
        return None
    else:
        whole("mlafix.ops._misfits")
        from ._misfits import misfit_of

        misfit = misfit_of(function, args, kwargs)
        if misfit is None:
            return None
        message = misfit.args[0]
    return in_callers_words(message, names, {**dict(zip(inspect.signature(function).parameters, args)), **kwargs})


def calls_operation(**outputs: str) -> Callable[[Callable[P, R]], Operation[P, R]]:
    """Decorates a function that passes `stream` to a function decorated with `operation`. Gives the function a `bind`.
    `operation` describes `outputs`."""
    return lambda function: _with_bind(cast("Operation[P, R]", function), outputs)


def _with_bind(public: Operation[P, R], outputs: dict[str, str]) -> Operation[P, R]:
    """Gives a public function its `bind`, which takes the same arguments except the stream."""

    def bind(*args: P.args, **kwargs: P.kwargs) -> Bound:
        if "stream" in kwargs:
            raise TypeError(f"{public.__name__}.bind() got an unexpected keyword argument 'stream'")
        for name, wanted in outputs.items():
            if kwargs.get(name) is None and kwargs.get(wanted, True):
                raise wrong(name, "an array in bind(), since bound calls allocate nothing", None)
        binding = Binding()
        public(*args, **{**kwargs, "stream": binding})  # type: ignore[arg-type]
        return binding.bound

    bind.__module__, bind.__qualname__ = public.__module__, f"{public.__name__}.bind"
    bind.__doc__ = f"Checks and packs a call of `{public.__name__}`, every output given, to launch it many times."
    whole = inspect.signature(public)
    taken = [parameter for name, parameter in whole.parameters.items() if name != "stream"]
    bind.__signature__ = whole.replace(parameters=taken, return_annotation="Bound")  # type: ignore[attr-defined]
    public.bind = bind
    return public
