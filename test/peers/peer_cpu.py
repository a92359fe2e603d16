"""Runs tests that were written for CUDA on the CPU: "cuda" means "cpu", and waiting for a device does nothing.

This is enough to check that pytest collects a suite, that its replacement modules work, and that small cases are right.
Triton's kernels run in its interpreter (TRITON_INTERPRET=1).
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class _Event:
    """Replaces torch.Event in tests that print times."""

    def __init__(self, **unused: Any) -> None:
        self.at = 0.0

    def record(self) -> None:
        self.at = time.perf_counter()

    def elapsed_time(self, other: _Event) -> float:
        return max(1e3 * (other.at - self.at), 1e-6)


class _OnCpu(TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if function is torch.Tensor.cuda:
            return args[0]
        if function == torch.Tensor.is_cuda.__get__:
            return True
        if "device" in kwargs:
            kwargs["device"] = _cpu(kwargs["device"])
        return function(*(_cpu(arg) for arg in args), **kwargs)


def _cpu(value: Any) -> Any:
    if isinstance(value, (str, torch.device)) and str(value).startswith("cuda"):
        return torch.device("cpu")
    return value


class _Generator(torch.Generator):
    def __new__(cls, device: Any = "cpu") -> _Generator:
        return super().__new__(cls, device=_cpu(device))


def install() -> None:
    mode = _OnCpu()
    mode.__enter__()
    nothing = lambda *unused: None  # noqa: E731
    for owner, names in ((torch.cuda, ("synchronize", "empty_cache")), (torch.accelerator, ("synchronize",))):
        for name in names:
            setattr(owner, name, nothing)
    torch.accelerator.device_count = lambda: 1
    torch.cuda.device = lambda *unused: nullcontext()  # type: ignore[misc,assignment]
    torch.cuda.is_available = lambda: True
    torch.cuda.is_bf16_supported = lambda *unused: True
    torch.cuda.get_device_name = lambda *unused: "CPU"
    torch.cuda.get_device_capability = lambda *unused: (9, 0)
    torch.Event = torch.cuda.Event = _Event  # type: ignore[misc,assignment]
    torch.Generator = _Generator  # type: ignore[misc]
    register = torch.library.impl
    torch.library.impl = lambda name, types, *rest, **options: register(name, "CPU" if types == "CUDA" else types, *rest, **options)
