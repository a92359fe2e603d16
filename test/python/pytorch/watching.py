"""Exports functions, and records the calls that torch sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def export(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Returns what torch.export makes of a function with these arguments. torch exports only modules."""

    class Module(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return function(*args)

    return torch.export.export(Module(), args)


def operator(kernel: Any) -> Any:
    return getattr(torch.ops.mlafix_kernels, kernel.torch_operator()).default


@contextmanager
def seen_by_torch() -> Iterator[list[str]]:
    """Yields a list of the operations that torch's dispatcher gets in the block, by name and in order. The operations
    run."""
    seen: list[str] = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Watch():
        yield seen
