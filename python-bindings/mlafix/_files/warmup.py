"""Compiles the code that calls need ahead of the calls, on all cores, with a progress bar."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any, NamedTuple, TextIO, Union

from .. import _env, _runtime, cache, library
from .._launcher import recording
from .._launcher.kernel import Kernel
from ..errors import ArgumentError, Error, UnitError
from . import toolchain


class CompileKey:
    """The code that a call needs: a kernel and its bindings.

    Calls that run the same code have equal keys. A key that was made from bindings equals the key of a call with the
    same bindings, unless these bind optional arguments.

    `warmup` takes keys as requests; `str(key)` is for logs: "merge_attn_states D=128, H=16, T=bf16, out_lse=present".
    """

    def __init__(self, variants: cache.Variants, bindings: Mapping[str, str], *, of_call: bool, instead: CompileKey | None = None) -> None:
        self.kernel = variants.kernel
        self.bindings = dict(bindings)
        self._variants = variants
        # True if this is the key of a call and binds optional arguments as present or absent. The call can then also
        # run code that leaves optional arguments open.
        self._of_call = of_call and not {"present", "absent"}.isdisjoint(self.bindings.values())
        # The key of other code that the call runs if the code of this key is missing and cannot be compiled, or None.
        self._instead = instead

    def _identity(self) -> tuple[object, ...]:
        return (self._variants, self._of_call, *sorted(self.bindings.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompileKey) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __str__(self) -> str:
        return f"{self.kernel} {cache.listed(self.bindings)}"

    def __repr__(self) -> str:
        return f"<mlafix compile key {self}>"

    def make_ready(self, device: str) -> _runtime.Unit:
        """Loads the unit of this key on a device, "cpu" or "cuda:N", and returns it.

        Raises CompileError, UnitError or DriverError.
        """
        make = self._variants.unit_of_call if self._of_call else self._variants.load
        try:
            unit = make(self.bindings, _runtime.device_target(device))
        except UnitError:
            if self._instead is None:
                raise
            with contextlib.suppress(UnitError):
                return self._instead.make_ready(device)
            raise
        unit.prepare(device)
        return unit


Arguments = Union[Mapping[str, Any], Sequence[Any]]
Request = Union[CompileKey, "tuple[str | Kernel | Callable[..., Any], Arguments]"]


def compile_keys(requests: Iterable[Request]) -> list[CompileKey]:
    """Returns the distinct keys of the code that calls need. Compiles and launches nothing, and writes no output.

        own = ops.merge_attn_states, (rows, lse, rows, lse)
        drop_in = vllm.merge_attn_states, (out, rows, lse, rows, lse)
        keys = mlafix.compile_keys([own, drop_in])

    The arrays of a call belong to numpy or torch, and lie on any device, meta included. Their number of tokens does not
    matter: one token is enough. A call on torch's fake tensors has no key if a size is a symbol.

    Some calls of a requested function are launched all the same: calls that were bound before, and calls in other
    threads.

    Args:
        requests: each request has one of these forms:

            - A pair of a function and its arguments, as a sequence or as a mapping by name. The function belongs to
              `mlafix.ops` or `mlafix.compat`, is a kernel's `bind`, or calls such functions and kernels. It has no key if
              it would launch nothing, and may have several.
            - A pair of `Reducer.reduce`, or of a drop-in over ranks, and its arguments. All ranks must make the request,
              and the ranks exchange data as in the call.
            - A pair of a Kernel and the arguments of a call, as a sequence.
            - A pair of a Kernel, or of the name of a library kernel, and its bindings: {"D": 64, "T": "f16"}.
            - A CompileKey.

    Raises:
        ArgumentError: a request is none of these, or a call's arguments do not fit. A requested function may raise any
            other exception.
    """
    return list(dict.fromkeys(key for request in requests for key in _keys_of(request)))


def _keys_of(request: Request) -> list[CompileKey]:
    if isinstance(request, CompileKey):
        return [request]
    if not (isinstance(request, tuple) and len(request) == 2 and isinstance(request[1], (Mapping, list, tuple))):
        raise ArgumentError(f'argument "requests": expected pairs (kernel, {{"D": 128, …}}) or (function, arguments), got {request!r}')
    named, given = request
    kernel = library.kernel(named) if isinstance(named, str) else named
    if isinstance(kernel, Kernel) and isinstance(given, Mapping):
        return [CompileKey(kernel.variants, kernel.bindings(given), of_call=False)]
    if isinstance(named, str) or not callable(kernel):
        raise ArgumentError(f'argument "requests": expected (kernel or its name in the library, bindings) or (function, arguments), got {request!r}')
    found: list[CompileKey] = []
    with recording.recording(lambda needed: found.append(_key_of(needed))):
        if isinstance(given, Mapping):
            kernel(**given)
        else:
            kernel(*given)
    return found


def _key_of(needed: recording.Needed) -> CompileKey:
    return CompileKey(needed.variants, needed.bindings, of_call=True, instead=_key_of(needed.instead) if needed.instead else None)


def warmup(
    requests: Iterable[Request],
    device: str | None = None,
    *,
    progress: bool | None = None,
    jobs: int | None = None,
) -> list[_runtime.Unit]:
    """Makes the code of calls ready before the calls. Takes the code from memory, from disk or from the compiler, and
    loads it on the device.

        merge = "merge_attn_states", {"H": 128, "D": 128, "T": "bf16"}
        mlafix.warmup([merge, (ops.softmax, (x,)), (my_kernel, {"D": 64, "T": "f16"})])

    Args:
        requests: as for `compile_keys`.
        device: "cpu" or "cuda:N"; default: the first CUDA device if there is one, else the CPU.
        progress: True shows a progress bar on stderr. By default the bar is shown if stderr is a terminal and there is
            more than one key.
        jobs: the number of parallel compilations; default: the number of cores.

    Returns:
        One unit per key, in order. A request with bindings has one key.

    Raises:
        ArgumentError: a request is wrong, or the arguments of a call do not fit. Nothing was compiled.
        CompileError, UnitError, DriverError: the error of the first key that failed; all other keys are compiled and
        kept.
    """
    place = device or default_device()
    _runtime.device_target(place)  # Raises DriverError before anything is compiled.
    wanted = [key for request in requests for key in _keys_of(request)]
    show = progress if progress is not None else len(wanted) > 1 and sys.stderr.isatty()
    with ThreadPoolExecutor(max_workers=jobs or os.cpu_count() or 1) as pool:
        futures: list[Future[_runtime.Unit]] = [pool.submit(key.make_ready, place) for key in wanted]
        with _bar(len(futures), show) as advance:
            for _ in as_completed(futures):
                advance()
    return [future.result() for future in futures]


class Availability(NamedTuple):
    """The result of `available`: true if calls can be made, otherwise false with a reason."""

    is_available: bool
    reason: str

    def __bool__(self) -> bool:
        return self.is_available


def available(device: str | None = None, requests: Iterable[Request] = ()) -> Availability:
    """Tells whether this installation can run kernels on a device, and whether it can make all calls of `requests`.

    Never raises, and compiles nothing.

        if not (found := mlafix.available("cuda:0", keys)):
            logger.warning("mlafix is not used: %s", found.reason)

    Args:
        device: as for `warmup`.
        requests: as for `compile_keys`. If nothing can compile (MLAFIX_STRICT=1, or no compiler), the code of each
            request must already exist; it is then loaded.

    Returns:
        Availability: true, or false with a reason.
    """
    try:
        place = device or default_device()
        _runtime.device_target(place)
        wanted = compile_keys(requests)
        if _env.strict() or toolchain.compiler_file() is None:
            for key in wanted:
                key.make_ready(place)
        else:
            toolchain.compiler()
    except Error as error:
        return Availability(False, str(error))
    except Exception as error:
        return Availability(False, f"{type(error).__name__}: {error}")
    return Availability(True, "")


def default_device() -> str:
    """Returns "cuda:0" if there is a CUDA device, else "cpu"."""
    return "cuda:0" if _runtime.cuda_device_count() else "cpu"


@contextlib.contextmanager
def _bar(total: int, show: bool) -> Iterator[Callable[[], object]]:
    """Shows a progress bar: tqdm's if it is installed, else a plain line. Yields the function to call after each
    request."""
    if not show:
        yield lambda: None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        plain = _PlainBar(total, sys.stderr)
        yield plain.advance
        plain.close()
        return
    with tqdm(total=total, desc="mlafix: compiling", unit="kernel", file=sys.stderr) as bar:
        yield bar.update


class _PlainBar:
    """A progress bar in one line, which it overwrites: `mlafix: compiling [####------] 4/10, 1.2 s`."""

    WIDTH = 30

    def __init__(self, total: int, file: TextIO) -> None:
        self.total = total
        self.file = file
        self.done = 0
        self.begin = time.monotonic()
        self._draw()

    def advance(self) -> None:
        self.done += 1
        self._draw()

    def close(self) -> None:
        self.file.write("\n")
        self.file.flush()

    def _draw(self) -> None:
        filled = self.WIDTH * self.done // max(self.total, 1)
        bar = "#" * filled + "-" * (self.WIDTH - filled)
        seconds = time.monotonic() - self.begin
        self.file.write(f"\rmlafix: compiling [{bar}] {self.done}/{self.total}, {seconds:.1f} s")
        self.file.flush()
