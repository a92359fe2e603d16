"""Compiling ahead: a list of specialisations, on all cores, with a progress bar."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Protocol, TextIO

from . import _runtime, cache, library
from ._kernel import Kernel
from .errors import ArgumentError


Request = tuple["str | Kernel", Mapping[str, object]]


def warmup(
    requests: Iterable[Request],
    device: str | None = None,
    *,
    progress: bool | None = None,
    jobs: int | None = None,
) -> list[_runtime.Unit]:
    """Make specialisations ready before they are called: from memory, disk or the compiler, and loaded on the device.

        mlafix.warmup([("merge_attn_states", {"H": 128, "D": 128, "T": "bf16"}), (my_kernel, {"D": 64, "T": "f16"})])

    Args:
        requests: pairs of a kernel (a Kernel, or the name of a library kernel) and the bindings to compile it for.
        device: "cpu" or "cuda:N"; default: the first CUDA device if there is one, else the CPU.
        progress: whether to show a bar on stderr; default: if stderr is a terminal and there is more than one request.
        jobs: how many to compile at a time; default: as many as there are cores.

    Returns:
        One unit a request, in order.

    Raises:
        ArgumentError, CompileError, UnitError, DriverError: of the first request that failed; the others are still
            compiled, and kept.
    """
    place = device or default_device()
    target = _runtime.device_target(place)
    wanted = [_variant(request) for request in requests]
    show = progress if progress is not None else len(wanted) > 1 and sys.stderr.isatty()

    def make(variant: tuple[cache.Variants, dict[str, str]]) -> _runtime.Unit:
        variants, bindings = variant
        unit = variants.load(bindings, target)
        unit.prepare(place)
        return unit

    with ThreadPoolExecutor(max_workers=jobs or os.cpu_count() or 1) as pool:
        futures: list[Future[_runtime.Unit]] = [pool.submit(make, variant) for variant in wanted]
        with _bar(len(futures), show) as advance:
            for _ in as_completed(futures):
                advance()
    return [future.result() for future in futures]


def default_device() -> str:
    """The first CUDA device if there is one, else the CPU."""
    return "cuda:0" if _runtime.cuda_device_count() else "cpu"


def _variant(request: Request) -> tuple[cache.Variants, dict[str, str]]:
    if not (isinstance(request, tuple) and len(request) == 2 and isinstance(request[1], Mapping)):
        raise ArgumentError(f'argument "requests": expected pairs (kernel, {{"D": 128, …}}), got {request!r}')
    named, bindings = request
    kernel = library.kernel(named) if isinstance(named, str) else named
    if not isinstance(kernel, Kernel):
        raise ArgumentError(f'argument "requests": expected kernels or names of library kernels, got {named!r}')
    return kernel.variants, kernel.bindings(bindings)


class _Advance(Protocol):
    def __call__(self) -> object: ...


@contextmanager
def _bar(total: int, show: bool) -> Iterator[_Advance]:
    """The callback after each request: tqdm's bar where it is installed, else a line of our own."""
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
    """One line that is written over: `mlafix: compiling [####------] 4/10, 1.2 s`."""

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
