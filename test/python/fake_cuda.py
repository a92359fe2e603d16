"""Makes tensors on the devices of fake_cuda.c, and reads the launches that it has recorded. fake_cuda.c imitates the
CUDA driver: its device memory is host memory, and no kernel ever runs."""

from __future__ import annotations

import ctypes
from typing import Any


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_View = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
_Stream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class _ExchangeApi(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("to_managed", ctypes.c_void_p),
        ("from_managed", ctypes.c_void_p),
        ("view", _View),
        ("current_stream", _Stream),
    ]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class _Tensor:
    """A contiguous f32 tensor on a CUDA device."""

    def __init__(self, shape: tuple[int, ...], ordinal: int) -> None:
        elements = 1
        strides = []
        for size in reversed(shape):
            strides.append(elements)
            elements *= size
        self.memory = (ctypes.c_float * elements)()
        sizes = (ctypes.c_int64 * len(shape))(*shape)
        steps = (ctypes.c_int64 * len(shape))(*reversed(strides))
        address = ctypes.addressof(self.memory)
        self.managed = Managed(DLTensor(address, 2, ordinal, len(shape), 2, 32, 1, sizes, steps, 0), None, None)


class Framework(_Tensor):
    """A tensor type with DLPack's table of C functions, and a current stream."""

    stream = 0

    @staticmethod
    def _view(tensor: Framework, out: Any) -> int:
        out[0] = tensor.managed.tensor
        return 0

    @staticmethod
    def _current_stream(device_type: int, device_id: int, out: Any) -> int:
        assert device_type == 2
        out[0] = Framework.stream
        return 0


_API_NAME = b"dlpack_exchange_api"  # a capsule only points to its name, so this object must outlive it
_api = _ExchangeApi(1, 3, None, None, None, None, _View(Framework._view), _Stream(Framework._current_stream))
Framework.__dlpack_c_exchange_api__ = new_capsule(  # type: ignore[attr-defined]
    ctypes.addressof(_api), _API_NAME, None
)


class Producer(_Tensor):
    """A tensor that only has __dlpack__, and records the stream that each call of __dlpack__ passes."""

    def __init__(self, shape: tuple[int, ...], ordinal: int) -> None:
        super().__init__(shape, ordinal)
        self.streams: list[object] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self.managed.tensor.device_id)

    def __dlpack__(self, *, stream: object = None, max_version: object = None) -> object:
        self.streams.append(stream)
        return new_capsule(ctypes.addressof(self.managed), b"dltensor", None)


def tensors(kind: type[_Tensor], shape: tuple[int, int, int], ordinal: int = 0) -> tuple[object, ...]:
    """Returns arguments of merge_attn_states. The last one states that all n rows have a context."""
    n, heads, _ = shape
    lse = (heads, n)
    return (*(kind(size, ordinal) for size in (shape, lse, shape, lse, shape, lse)), n)


class Launch(ctypes.Structure):
    """A recorded launch."""

    _fields_ = [("stream", ctypes.c_uint64), ("ordinal", ctypes.c_int32), ("grid", ctypes.c_uint32)]

    def __repr__(self) -> str:
        return f"stream {self.stream:#x}, device {self.ordinal}, grid {self.grid}"


def launches() -> list[Launch]:
    """Returns all launches so far."""
    driver = ctypes.CDLL("libcuda.so.1")
    driver.fake_launch.restype = Launch
    return [driver.fake_launch(index) for index in range(driver.fake_num_launches())]
