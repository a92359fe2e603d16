"""A CUDA device that executes PTX in this process. It uses the driver of test/python/fake_cuda.c, and host memory.

The runtime checks arguments, chooses code versions and launches as on a GPU, and machine.py executes the launched
kernels. A process uses either this driver or NVIDIA's, so `start` must be called before anything needs a driver.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import traceback
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from .arithmetic import Array
from .machine import launch
from .memory import Memory
from .text import Entry, PtxError, parse

_SOURCE = Path(__file__).resolve().parent.parent / "python" / "fake_cuda.c"
sys.path.append(str(_SOURCE.parent))
from fake_cuda import DLTensor, Managed, new_capsule  # noqa: E402

# The number of multiprocessors of the device. If it is small, each block processes several rows. If it is as large as
# that of a GPU, lane groups are as small as on a GPU.
MULTIPROCESSORS = int(os.environ.get("MLAFIX_TEST_MULTIPROCESSORS", "3"))
# DLPack's type codes. _CODES has those of types that numpy's kind does not identify, by name. _KINDS has the others, by
# kind.
_CODES = {"bfloat16": 4, "bool": 6, "float8_e4m3fn": 10, "float8_e5m2": 12, "float8_e8m0fnu": 14}
_KINDS = {"i": 0, "u": 1, "f": 2}
_Executor = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint, ctypes.c_uint, ctypes.POINTER(ctypes.c_void_p))


class Device:
    """The emulated device: the driver, the memory that kernels may access, and the results of launches.

    Attributes:
        entries: the names of the launched kernels, in order. In every second launch, threads run in a random order.
        failure: the error of the last launch that failed; `check` raises it.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.ranges: dict[int, tuple[int, weakref.ref[Array]]] = {}
        self.entries: list[str] = []
        self.failure: PtxError | None = None
        self._parsed: dict[bytes, dict[str, Entry]] = {}
        self._execute = _Executor(self._on_launch)
        library.fake_execute_by(self._execute, MULTIPROCESSORS)

    def array(self, size: int) -> Array:
        """Allocates `size` bytes that kernels may access, at an address that is a multiple of 256."""
        whole = np.zeros(size + 256, np.uint8)
        begin = -whole.ctypes.data % 256
        address = whole.ctypes.data + begin
        # The returned view keeps the whole buffer alive. Once no view is left, an access by a kernel is an error.
        self.ranges[address] = (size, weakref.ref(whole, lambda _: self.ranges.pop(address, None)))
        return whole[begin : begin + size]

    def _memory(self) -> Memory:
        found = []
        for address, (size, held) in list(self.ranges.items()):
            whole = held()
            if whole is not None and size:
                begin = address - whole.ctypes.data
                found.append((address, whole[begin : begin + size]))
        return Memory(found, "global")

    def _on_launch(self, ptx: bytes, name: bytes, grid: int, threads: int, params: Any) -> int:
        try:
            entries = self._parsed.get(ptx)
            if entries is None:
                entries = self._parsed[ptx] = parse(ptx.decode())
            entry = entries[name.decode()]
            given = {param: ctypes.string_at(params[i], size) for i, (param, (_, size)) in enumerate(entry.params.items())}
            self.entries.append(entry.name)
            # Alternates between a random and the deterministic order of threads.
            seed = len(self.entries) if len(self.entries) % 2 == 0 else None
            launch(entry, grid, threads, given, self._memory(), seed)
        except Exception as error:  # as on a GPU, the next check reports the error
            self.failure = error if isinstance(error, PtxError) else PtxError(f"a fault of the interpreter: {traceback.format_exc()}")
        return 0

    def check(self) -> None:
        """Raises PtxError if a launch failed since the last check."""
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure


def start(folder: Path) -> Device:
    """Builds the fake driver in `folder`, and returns the device."""
    path = folder / "libcuda.so.1"
    if not path.exists():
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wl,-soname,libcuda.so.1", str(_SOURCE), "-o", str(path)], check=True)
    return Device(ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL))


class Namespace:
    """A namespace of the Python array API standard. mlafix creates outputs with its `empty`."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def __getattr__(self, name: str) -> Any:
        return np.dtype(getattr(ml_dtypes, name, None) or getattr(np, name))

    def empty(self, shape: tuple[int, ...], dtype: Any, device: object) -> Tensor:
        dtype = np.dtype(dtype)
        raw = self._device.array(int(np.prod(shape)) * dtype.itemsize)
        raw[:] = 0xA5
        return Tensor(raw.view(dtype).reshape(shape), self._device)


class Tensor:
    """A tensor on the emulated CUDA device, in the memory of a numpy array. It is exported through DLPack."""

    def __init__(self, array: Array, device: Device) -> None:
        self.array, self.owner = array, device
        self.shape, self.dtype, self.strides, self.device = array.shape, array.dtype, array.strides, "cuda:0"
        item = array.dtype.itemsize
        shape, strides = (ctypes.c_int64 * array.ndim)(*array.shape), (ctypes.c_int64 * array.ndim)(*(step // item for step in array.strides))
        code = _CODES.get(array.dtype.name, _KINDS.get(array.dtype.kind, 0))
        self.managed = Managed(DLTensor(array.ctypes.data, 2, 0, array.ndim, code, 8 * item, 1, shape, strides, 0), None, None)

    def __array_namespace__(self, *, api_version: str | None = None) -> Namespace:
        return Namespace(self.owner)

    def __array_function__(self, function: Any, types: object, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Applies numpy's functions to the arrays in host memory, as CuPy does for its arrays."""
        return function(*(one.array for one in arguments), **options)

    def get(self) -> Array:
        """Copies the elements to host memory, as CuPy's arrays do. `ops.offences` reads records by it."""
        return self.array.copy()

    def reshape(self, shape: tuple[int, ...]) -> Tensor:
        return Tensor(self.array.reshape(shape), self.owner)

    def view(self, dtype: Any) -> Tensor:
        return Tensor(self.array.view(dtype), self.owner)

    @property
    def T(self) -> Tensor:  # noqa: N802 (numpy's name)
        return Tensor(self.array.T, self.owner)

    def swapaxes(self, first: int, second: int) -> Tensor:
        return Tensor(self.array.swapaxes(first, second), self.owner)

    def __getitem__(self, key: Any) -> Tensor:
        """Returns a view, also of a single element, as CuPy's arrays do."""
        keys = key if isinstance(key, tuple) else (key,)
        whole = keys if any(each is ... for each in keys) else (*keys, ...)
        return Tensor(self.array[whole], self.owner)

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def __dlpack__(self, *, stream: object = None, max_version: object = None) -> object:
        return new_capsule(ctypes.addressof(self.managed), b"dltensor", None)
