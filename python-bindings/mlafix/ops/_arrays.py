"""Outputs allocated by the library that the inputs came from; uninitialised, since every kernel writes what is read."""

from __future__ import annotations

import sys
from typing import Any

import numpy

from ._wrong import wrong



def empty(like: Any, shape: tuple[int, ...], dtype: str | None = None) -> Any:
    """A contiguous array of `shape` beside `like`, of its dtype or one that `DTypes` names ("f32", "f8e4m3fn", "bool").

    Raises ArgumentError for an array whose library has no public way to allocate: give the output then.
    """
    if isinstance(like, numpy.ndarray):
        return numpy.empty(shape, like.dtype if dtype is None else numpy_dtype(dtype))
    if hasattr(type(like), "__torch_function__"):
        # Made from the tensor, so that one that stands for another makes its like.
        if dtype is None:
            return like.new_empty(shape)
        return like.new_empty(shape, dtype=torch_dtype(dtype))
    if not hasattr(like, "__array_namespace__"):
        raise wrong("out", f"an array, since {type(like).__qualname__} has no way to allocate one", "None")
    namespace = like.__array_namespace__()
    kind = like.dtype if dtype is None else getattr(namespace, _STANDARD[dtype], None)
    if kind is None:
        raise wrong("out", f"an array, since {namespace.__name__} has no dtype {_STANDARD[dtype or 'f32']}", "None")
    return namespace.empty(shape, dtype=kind, device=like.device)


def empty_rows(like: Any, name: str, dims: tuple[str, ...], dtype: str | None = None) -> Any:
    """As `empty`, with the shape of `like`, an argument called `name`, which must have as many dims as are named."""
    shape = rows_of(like, name, dims)
    if dtype is None and hasattr(type(like), "__torch_function__"):
        return sys.modules["torch"].empty_like(like)  # Half the time of new_empty.
    return empty(like, shape, dtype)


_STANDARD = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "f8e4m3fn": "float8_e4m3fn", "i32": "int32", "bool": "bool"}


def numpy_dtype(name: str) -> numpy.dtype[Any]:
    """numpy's dtype for one of ours; bf16 and fp8 come from ml_dtypes."""
    spelling = _STANDARD[name]
    if name in ("bf16", "f8e4m3fn"):
        import ml_dtypes

        low: numpy.dtype[Any] = numpy.dtype(getattr(ml_dtypes, spelling))
        return low
    return numpy.dtype(spelling)


def torch_dtype(name: str) -> Any:
    """torch's dtype for one of ours."""
    return getattr(sys.modules["torch"], _STANDARD[name])


def dtype_name(dtype: Any) -> str:
    """Our name of what a caller may pass as a dtype: one of ours, a numpy or a torch dtype, or its name."""
    spelling = dtype if isinstance(dtype, str) else _spelling(dtype)
    if spelling in _STANDARD:
        return spelling
    for name, standard in _STANDARD.items():
        if spelling == standard:
            return name
    raise wrong("out_dtype", f"one of {', '.join(_STANDARD)} or their numpy or torch dtypes", repr(dtype))


def _spelling(dtype: Any) -> str:
    text = str(dtype)
    if text.startswith("torch."):
        return text[len("torch."):]
    try:
        return str(numpy.dtype(dtype).name)
    except TypeError:
        return text


def one_element(array: Any, like: Any) -> Any:
    """An array of one f32 as it is, and a float as an array of one f32 beside `like`."""
    if isinstance(array, (int, float, numpy.floating, numpy.integer)) and not isinstance(array, bool):
        if hasattr(type(like), "__torch_function__"):
            return like.new_full((1,), float(array), dtype=torch_dtype("f32"))
        return numpy.full(1, array, numpy.float32)
    return array


def rows_of(array: Any, name: str, dims: tuple[str, ...]) -> Any:
    """The shape of an array that an output is made after. Raises ArgumentError unless it has as many dims."""
    shape = getattr(array, "shape", None)
    if shape is None:
        raise wrong(name, "an array", type(array).__qualname__)
    if len(shape) != len(dims):
        raise wrong(name, f"{len(dims)} dim{'s' if len(dims) > 1 else ''} [{', '.join(dims)}]", len(shape))
    return shape


def is_contiguous(array: Any) -> bool:
    """Whether elements follow each other. Where an array's library does not say, reshaping it copies nothing if so."""
    if isinstance(array, numpy.ndarray):
        return bool(array.flags.c_contiguous)
    asked = getattr(array, "is_contiguous", None)
    return asked is None or bool(asked())


def on_device(count: Any) -> bool:
    """Whether a count is an array. Whatever else it is (an int, numpy's, a symbolic one), it is a host's number."""
    return not isinstance(count, int) and hasattr(count, "__dlpack__")
