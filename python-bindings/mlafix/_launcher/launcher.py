"""Calls kernels from Python. Defines Launcher, the base class of Kernel (kernel.py) and of UnitKernel (unit.py)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy

from .. import _runtime
from .._forks import cached_property, whole
from .._reports.explanation import CallExplanation
from ..errors import ArgumentError, Error
from . import fake, recording
from .frames import forget_frames, without_frames
from .recording import recorder_of_thread, recorders

# The first call with a torch tensor sets these variables to torch.Tensor and to two functions of torch_state.py, since
# this module does not import torch.
_tensor: type | None = None
_dynamo_traces: Callable[[], bool] = bool
_must_see: Callable[[tuple[object, ...]], bool] | None = None
# Names of launch options in other kernel languages. If a caller passes one, the error says that the compiler chooses
# blocks, warps and the grid.
LAUNCH_WORDS = frozenset({"grid", "num_warps", "num_stages", "num_ctas", "num_threads", "maxnreg", "block", "launch_pdl"})
_NO_TENSORS = frozenset({numpy.ndarray, int, float, bool, type(None)})


def _for_torch(values: tuple[object, ...]) -> bool:
    """True if a call with the arguments `values` must go through torch's dispatcher: a compiler, tracer, mode or
    transform of torch watches calls, or one of `values` is a tensor of a subclass or without memory."""
    global _tensor, _dynamo_traces, _must_see
    for value in values:
        if type(value) in _NO_TENSORS:
            continue
        if _must_see is None:
            ones = value if isinstance(value, (list, tuple)) else (value,)
            if not any(hasattr(type(one), "__torch_function__") for one in ones):
                continue
            whole("mlafix._launcher.torch_state")
            from . import torch_state

            _tensor, _dynamo_traces, _must_see = torch_state.torch.Tensor, torch_state.dynamo_traces, torch_state.must_see_any
        return _must_see(values)
    return False

class Launcher:
    """A kernel that can be called.

    A call with arguments, in order or by name, launches the kernel: on the CPU for CPU arrays, on the current stream
    for CUDA tensors. On a GPU, the call returns before the kernel has finished. Optional tensors may be None. They may
    also be left out if no argument after them is passed in order.

    Args:
        name: the kernel's name in the source.
        fixed: names that are bound already: {"B": "2"}.
    """

    def __init__(self, name: str, fixed: dict[str, str] | None = None) -> None:
        self.name = name
        self._fixed = dict(fixed or {})

    def __copy__(self) -> Launcher:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Launcher:
        return self  # a launcher is immutable

    @property
    def _signature_text(self) -> str:
        """The signature as JSON text. Raises CompileError or UnitError."""
        raise NotImplementedError

    def _resolve(self, bound: dict[str, str], device_type: int, ordinal: int) -> Any:
        """Returns the unit, or the unit's kernel, for a call that binds the names in `bound`. Raises CompileError or
        UnitError."""
        raise NotImplementedError

    # True if `_warn_of_faults` is called before each launch.
    _is_watched: bool = False

    def _warn_of_faults(self, args: tuple[object, ...], stream: object | None) -> None:
        """Called before each launch if `_is_watched` is true. Does nothing here. Kernel overrides this method. If
        environment variables ask for it, the override runs the call on the host and warns of the call's faults, or
        writes a script that repeats the call."""

    @cached_property
    def signature(self) -> dict[str, Any]:
        """The kernel's declaration. "args" lists the arguments as in docs/UnitFormat.md, with "dtype_name" for a dtype
        that is a variable. "names" maps each name that can be bound to its default, or to None. Raises CompileError or
        UnitError."""
        found: dict[str, Any] = json.loads(self._signature_text)
        return found

    # The order of dims for arguments that are passed in another layout: dim i of the kernel is dim `_views[name][i]` of
    # the array. {"prefix_lse": (1, 0)} passes an [n, H] lse to a kernel that takes [H, n]. `_dims` lists the lower-case
    # dims that a call binds in addition to the compile-time names.
    _views: Mapping[str, Sequence[int]] = {}
    _dims: Sequence[str] = ()

    def _check_dtypes(self, bound: dict[str, str]) -> None:
        """Does nothing here. library.viewed replaces this method: the replacement raises ArgumentError if `bound`, the
        bindings of a call, has a dtype that the library's kernel does not support."""

    @cached_property
    def _dispatch(self) -> _runtime.Dispatcher:
        return self._dispatcher(self._resolve)

    def _dispatcher(self, resolve: Callable[..., Any]) -> _runtime.Dispatcher:
        fixed = self._fixed
        text = _with_factors(self._signature_text, fixed)

        def resolved(bound: dict[str, str], *device: int) -> Any:
            self._check_dtypes(bound)
            return resolve({**bound, **fixed}, *device)

        return _runtime.Dispatcher(self.name, text, resolved, self._views, self._dims)

    def _bound_by(self, args: tuple[object, ...]) -> dict[str, str]:
        """Returns the bindings of a call. `args` are its arguments in the kernel's order. Raises ArgumentError."""
        bound: dict[str, str] = {}

        def keep(names: dict[str, str], device_type: int, ordinal: int) -> Any:
            bound.update(names)
            raise recording.Recorded

        with contextlib.suppress(recording.Recorded):
            self._dispatcher(keep)(args)
        return bound

    def _record_key(self, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        """Records the code that a call needs, without launching (recording.py). Raises ArgumentError."""
        try:
            recording.record(self._dispatcher(self._resolve), self._order(args, kwargs))
        except Error as error:
            self._name_numbers(error)
            raise

    @property
    def _identity(self) -> str:
        """A text that distinguishes this kernel from other kernels of the same name."""
        return f"{self._signature_text} {sorted(self._fixed.items())}"

    @cached_property
    def _arguments(self) -> tuple[tuple[str, bool], ...]:
        """The arguments in order, each as (name, True if it may be omitted)."""
        return tuple((arg["name"], bool(arg.get("optional"))) for arg in self.signature["args"])

    @cached_property
    def _held_numbers(self) -> tuple[tuple[str, str], ...]:
        """The integer arguments that may be passed in a tensor (`or_tensor` in dsl/types.py), each as (name, name of
        the tensor argument)."""
        args = self.signature["args"]
        tensors = {arg["name"] for arg in args if arg.get("optional") and arg["shape"] == [1]}
        return tuple((arg["name"], arg["name"] + "_at") for arg in args if arg["kind"] == "scalar" and arg["name"] + "_at" in tensors)

    def __call__(self, /, *args: object, stream: object | None = None, **kwargs: object) -> None:
        """Launches the kernel.

        Args:
            args, kwargs: the kernel's arguments: numpy arrays, torch tensors or other DLPack producers, and numbers.
            stream: a CUDA stream; by default torch's current one, if torch tensors are given.

        Raises:
            ArgumentError: an argument is wrong; nothing was launched.
            CompileError, UnitError, DriverError: there is no code for these arguments.
            RankError: a rank did not take part in an earlier launch of the group.
        """
        # Fast path for the usual case: the first argument is a torch.Tensor and not a tensor of a subclass. try_launch
        # launches nothing and returns None if torch watches calls, if this is the first call with such arguments, or if
        # an argument is wrong or is a tensor of another kind.
        if args and type(args[0]) is _tensor and not (kwargs or _dynamo_traces() or self._is_watched or recorders) and self._dispatch.try_launch(args, stream) is not None:
            return None
        if _for_torch(args) or (kwargs and _for_torch(tuple(kwargs.values()))):
            return self._call_through_torch(args, kwargs, stream)
        # This check must not precede the call through torch. Otherwise torch.compile would trace the check, and
        # recompile when another thread begins to record.
        if recorders and recorder_of_thread():
            return self._record_key(args, kwargs)
        try:
            if kwargs or len(args) != len(self._arguments):
                args = self._order(args, kwargs)
            if self._is_watched:
                self._warn_of_faults(args, stream)
            self._dispatch(args, stream)
        except Error as error:  # does what the decorator without_frames does, but without its extra function call
            self._name_numbers(error)
            forget_frames(error)
            raise

    def __getitem__(self, grid: object) -> NoReturn:
        """Refuses ``kernel[grid](…)``, the syntax for launches in other languages. Raises ArgumentError."""
        call = f"{self.name}(…)"
        raise ArgumentError(f'kernel "{self.name}": expected {call}, got {self.name}[{grid!r}]; the kernel says its grid itself: for t in grid("n")')

    def _launch_plain(self, args: tuple[object, ...], stream: object | None = None) -> None:
        """Launches the kernel as a call with all arguments in order does, but without torch's dispatcher. Raises the
        same errors as a call."""
        if recorders and recorder_of_thread():
            return self._record_key(args, {})
        if self._is_watched:
            self._warn_of_faults(args, stream)
        try:
            self._dispatch(args, stream)
        except Error as error:
            self._name_numbers(error)
            raise

    def _check_fake(self, args: tuple[object, ...]) -> None:
        """Checks a call with all arguments in order, on tensors without memory. Raises the same errors as a call."""
        try:
            self._check_dtypes(fake.check(self.name, self.signature["args"], args, self._fixed, self._views))
        except ArgumentError as error:
            self._name_numbers(error)
            raise
        if recorders and recorder_of_thread():
            with fake.addressed(args) as addressed:
                if addressed:
                    self._record_key(addressed, {})

    def _name_numbers(self, error: Error) -> None:
        """In an error, replaces the name of a tensor argument by the name of the integer that the caller passed as a
        tensor."""
        if isinstance(error, ArgumentError):
            message = str(error.args[0])
            for name, tensor in self._held_numbers:
                message = message.replace(f'argument "{tensor}"', f'argument "{name}"')
            error.args = (message,)

    def torch_operator(self) -> str:
        """Returns the name of the operator in `torch.ops.mlafix_kernels` that launches this kernel. Registers the
        operator if necessary. Raises CompileError or UnitError."""
        whole("mlafix.torch_kernels")
        from ..torch_kernels import register

        return register(self)

    def _torch_arguments(self) -> tuple[tuple[str, bool], ...]:
        """Returns the arguments of the kernel's torch operator in order, each as (name, True if it may be omitted)."""
        return self._arguments

    def _torch_numbers(self) -> tuple[tuple[str, str], ...]:
        """Returns the integer arguments of the kernel's torch operator that may be passed in a tensor, each as (name,
        name of the tensor argument)."""
        return self._held_numbers

    # Marks these methods so that torch.compile calls them while it traces, and keeps their results as constants. Sets
    # the attribute that torch.compiler.assume_constant_result would set, since using that function would import torch.
    for _question in (torch_operator, _torch_arguments, _torch_numbers):
        setattr(_question, "_dynamo_marked_constant", True)
    del _question

    def _call_through_torch(self, args: tuple[object, ...], kwargs: dict[str, object], stream: object | None) -> None:
        # torch_kernels.py is imported only here, since it imports torch.
        whole("mlafix.torch_kernels")
        from ..torch_kernels import operators

        if stream is not None:
            raise ArgumentError(
                f'kernel "{self.name}": argument "stream": expected None, since torch picks the stream of a traced call, got {stream!r}'
            )
        ordered = self._order(args, kwargs, self._torch_arguments(), self._torch_numbers())
        getattr(operators, self.torch_operator()).default(*ordered)

    @without_frames
    def bind(self, /, *args: object, **kwargs: object) -> _runtime.Bound:
        """Checks a call with these arguments and returns it, ready to be launched repeatedly: ``bound(stream)``."""
        if recorders and recorder_of_thread():
            self._record_key(args, kwargs)
            return recording.UnlaunchedCall()  # type: ignore[return-value]
        try:
            return self._dispatch.bind(self._order(args, kwargs))
        except Error as error:
            self._name_numbers(error)
            raise

    @without_frames
    def explain_call(self, /, *args: object, **kwargs: object) -> CallExplanation:
        """Explains why a call with these arguments runs the code that it runs. Nothing is launched.

        ``print(kernel.explain_call(out, x))`` lists the code versions in the order in which the call tries them, and
        why each of them refuses the call: ``expected stride 2048 in dim 0 of "x", got 4096``. It also prints the grid,
        the bytes, and the time in which the GPU's memory moves them. ``MLAFIX_LOG=debug`` writes the same for each new
        call to stderr.

        Args:
            args, kwargs: as for a call.

        Raises:
            ArgumentError: an argument is wrong.
            CompileError, UnitError, DriverError: there is no code for these arguments.
        """
        try:
            found: CallExplanation = self._dispatch.bind(self._order(args, kwargs)).explain()
        except Error as error:
            self._name_numbers(error)
            raise
        return found

    def _order(self, args: tuple[object, ...], kwargs: dict[str, object], known: tuple[tuple[str, bool], ...] = (),
               held: tuple[tuple[str, str], ...] | None = None) -> tuple[object, ...]:
        """Returns the arguments in the kernel's order, with None for optional arguments that are not given. `known` and
        `held` replace `_arguments` and `_held_numbers`. Raises ArgumentError."""
        known = known or self._arguments
        held = self._held_numbers if held is None else held
        names = [name for name, _ in known]
        if len(args) > len(names):
            raise ArgumentError(f'kernel "{self.name}": expected {len(names)} arguments, got {len(args)}; the call is {self.name}({", ".join(names)})')
        given = dict(zip(names, args))
        for name, value in kwargs.items():
            if name not in names:
                raise ArgumentError(f'kernel "{self.name}": expected one of {", ".join(names)}, got an argument "{name}"{self._hint_for(name)}')
            if name in given:
                raise ArgumentError(f'kernel "{self.name}": expected each argument once, got "{name}" twice')
            given[name] = value
        for name, is_optional in known:
            if name not in given:
                if not is_optional:
                    call = f"; the call is {self.name}({', '.join(names)}), outputs included"
                    raise ArgumentError(f'kernel "{self.name}": expected an argument "{name}", got none{call}')
                given[name] = None
        for name, tensor in held:
            # The test for int comes first, so that hasattr is not called on a symbolic integer: torch.compile cannot
            # trace that.
            if given[tensor] is None and not isinstance(given[name], int) and hasattr(given[name], "__dlpack__"):
                given[name], given[tensor] = 0, given[name]
        return tuple(given[name] for name in names)

    def _hint_for(self, keyword: str) -> str:
        """Returns the hint for a keyword that is no argument of the kernel; "" if there is none."""
        if keyword in self.signature["names"]:
            return f"; {self.name}.specialize({keyword}=…) binds it"
        if keyword in LAUNCH_WORDS or keyword.startswith("BLOCK"):
            return "; the compiler chooses blocks, warps and the grid"
        return ""


def _with_factors(signature: str, fixed: dict[str, str]) -> str:
    """Replaces factors of products such as "(G K)" in a signature by their values in `fixed`. A call can then derive
    the other factor from the size of the dim."""
    if not fixed or '"(' not in signature:
        return signature
    found: dict[str, Any] = json.loads(signature)
    for arg in found["args"]:
        arg["dims"] = [
            f"({' '.join(fixed.get(factor, factor) for factor in dim[1:-1].split())})" if dim.startswith("(") else dim
            for dim in arg.get("dims", ())
        ]
    return json.dumps(found)


def text_of(value: object) -> str:
    """Returns the compiler's spelling of `value`, the value of a binding: a number, a str, or a dtype of the
    language."""
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else str(value)
