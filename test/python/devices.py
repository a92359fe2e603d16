"""The devices on which tests run operations: numpy, torch on the CPU, torch on a GPU, or PTX without a GPU.

A test makes numpy arrays, copies them to a device by `put`, which keeps the strides, and gets results back by `get`.

With MLAFIX_TEST_DEVICE=ptx in the environment, PTX is the only device. Kernels are then compiled for sm_90, and their
PTX is interpreted in this process (test/ptx), as on a GPU with MLAFIX_TEST_MULTIPROCESSORS multiprocessors (default 3).
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from numerics import BF16, E4M3, E5M2, E8M0, poison

# torch is optional, and importing it takes seconds. Only tests that need torch import it.
HAS_TORCH = importlib.util.find_spec("torch") is not None


def has_cuda() -> bool:
    if not HAS_TORCH or not os.path.exists("/dev/nvidiactl"):
        return False
    import torch

    return bool(torch.cuda.is_available())


def _fp8() -> dict[np.dtype, Any]:
    import torch

    return {E4M3: torch.float8_e4m3fn, E5M2: torch.float8_e5m2, E8M0: torch.float8_e8m0fnu}


class Device:
    """The CPU with numpy arrays. Other devices derive from this class."""

    name = "numpy"
    is_torch = False

    def put(self, array: np.ndarray) -> Any:
        return array

    def get(self, array: Any) -> np.ndarray:
        """Returns the contents of an array after all launches so far, whose faults are raised here."""
        return np.asarray(array)

    def write(self, target: Any, array: np.ndarray) -> None:
        """Stores new contents in an array without moving it, as between two replays of a graph."""
        target[...] = array

    def poisoned(self, shape: tuple[int, ...], dtype: np.dtype | str) -> Any:
        """Returns an output filled with poison."""
        return self.put(poison(shape, np.dtype(dtype)))

    def scalar(self, value: int) -> Any:
        """Returns a count as an array [1] of i32 on the device."""
        return self.put(np.array([value], np.int32))


class TorchDevice(Device):
    """Torch tensors on torch's device `where`."""

    is_torch = True

    def __init__(self, where: str) -> None:
        self.where = where
        self.name = "torch" if where == "cpu" else where

    def put(self, array: np.ndarray) -> Any:
        array = np.asarray(array)
        strides = [s // array.itemsize for s in array.strides]
        span = 1 + sum((n - 1) * s for n, s in zip(array.shape, strides)) if array.size else 0
        raw = poison((max(span, 0),), array.dtype)
        if span:
            bits = f"u{array.itemsize}"  # numpy cannot view all dtypes of ml_dtypes
            np.lib.stride_tricks.as_strided(raw.view(bits), array.shape, array.strides)[...] = array.view(bits)
        flat = self._tensor(raw).to(self.where, copy=True)
        return flat.as_strided(array.shape, strides)

    @staticmethod
    def _tensor(flat: np.ndarray) -> Any:
        import torch

        if flat.dtype == BF16:
            return torch.from_numpy(flat.view(np.int16)).view(torch.bfloat16)
        if flat.dtype in _fp8():
            return torch.from_numpy(flat.view(np.uint8)).view(_fp8()[flat.dtype])
        if flat.dtype == np.bool_:
            return torch.from_numpy(flat.view(np.uint8)).view(torch.bool)
        return torch.from_numpy(flat)

    def get(self, array: Any) -> np.ndarray:
        import torch

        array = array.detach().cpu()
        if array.dtype == torch.bfloat16:
            return array.view(torch.int16).numpy().view(BF16)
        for dtype, theirs in _fp8().items():
            if array.dtype == theirs:
                return array.view(torch.uint8).numpy().view(dtype)
        return array.numpy()

    def write(self, target: Any, array: np.ndarray) -> None:
        target.copy_(self.put(np.ascontiguousarray(array)))


class PtxDevice(Device):
    """A CUDA device that is emulated: its memory is host memory, and PTX is interpreted."""

    name = "ptx"

    def __init__(self) -> None:
        sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
        from ptx import emulated

        self.make = emulated.Tensor
        with tempfile.TemporaryDirectory() as folder:
            self.device = emulated.start(Path(folder))

    def put(self, array: np.ndarray) -> Any:
        array = np.asarray(array)
        span = 1 + sum((n - 1) * s // array.itemsize for n, s in zip(array.shape, array.strides)) if array.size else 0
        raw = self.device.array(span * array.itemsize)
        raw[:] = poison((raw.size,), np.dtype(np.uint8))
        strides = array.strides if array.size else None
        made = np.ndarray(array.shape, array.dtype, raw, strides=strides)
        made[...] = array
        return self.make(made, self.device)

    def get(self, array: Any) -> np.ndarray:
        self.device.check()
        return np.asarray(array.array)

    def write(self, target: Any, array: np.ndarray) -> None:
        target.array[...] = array


def all_devices(*, with_both_hosts: bool = False) -> list[Device]:
    """Returns the devices of this machine: numpy and, if there is a GPU, torch on the GPU. `with_both_hosts` adds torch
    on the CPU, which runs the same code as numpy."""
    if os.environ.get("MLAFIX_TEST_DEVICE") == "ptx":
        return [PtxDevice()]
    devices = [Device()]
    if with_both_hosts and HAS_TORCH:
        devices.append(TorchDevice("cpu"))
    if has_cuda():
        devices.append(TorchDevice("cuda"))
    return devices
