"""Allocates outputs with the array library of the inputs (numpy, torch), and views arrays in the dtypes and layouts of
kernels. New outputs are uninitialised, since kernels write every element that is read."""

from __future__ import annotations

import sys
from typing import Any

import numpy

from .. import _runtime
from .arguments import wrong


def empty(like: Any, shape: tuple[int, ...], dtype: str | None = None) -> Any:
    """Allocates a contiguous array of `shape` with the library and on the device of `like`. The dtype is `dtype`
    ("f32", "f8e4m3fn", "bool"), or by default that of `like`.

    Raises ArgumentError if the library of `like` has no public function to allocate arrays. The caller must then pass
    the output.
    """
    if isinstance(like, numpy.ndarray):
        return numpy.empty(shape, like.dtype if dtype is None else numpy_dtype(dtype))
    if hasattr(type(like), "__torch_function__"):
        # Tensors are created from `like`, so that a subclass creates instances of itself.
        if dtype is None:
            return like.new_empty(shape)
        return like.new_empty(shape, dtype=torch_dtype(dtype))
    if _runtime.is_immutable(like):
        raise wrong("out", f"an array that may be written, such as numpy.empty(…), since arrays of {type(like).__qualname__} are immutable", "None")
    if not hasattr(like, "__array_namespace__") or not hasattr(like, "__dlpack_device__"):
        raise wrong("out", f"an array, since {type(like).__qualname__} cannot allocate one", "None")
    namespace = like.__array_namespace__()
    kind = like.dtype if dtype is None else getattr(namespace, _STANDARD[dtype], None)
    if kind is None:
        raise wrong("out", f"an array, since {namespace.__name__} has no dtype {_STANDARD[dtype or 'f32']}", "None")
    return namespace.empty(shape, dtype=kind, device=like.device)


def empty_rows(like: Any, name: str, dims: tuple[str, ...], dtype: str | None = None) -> Any:
    """Allocates an array with the shape of `like`, as `empty` does. Raises ArgumentError unless `like`, the argument
    `name`, has as many dims as `dims` lists."""
    shape = rows_of(like, name, dims)
    if dtype is None and hasattr(like, "dtype"):
        check_dtype(like, name)
    if dtype is None and hasattr(type(like), "__torch_function__"):
        return sys.modules["torch"].empty_like(like)  # takes half the time of new_empty
    return empty(like, shape, dtype)


def empty_lse(like: Any, name: str, layout: str) -> Any:
    """Allocates an f32 lse for the payload rows `like` [n, H, D], which are the argument `name`. Its shape is [H, n]
    for the layout "hn", else [n, H]."""
    n, heads, _ = rows_of(like, name, ("n", "H", "D"))
    return empty(like, (heads, n) if layout == "hn" else (n, heads), "f32")


def lse_as(lse: Any, layout: str, wanted: str) -> Any:
    """Views an lse of one layout ("hn", "nh") in another: swaps its last two dims if `layout` is not `wanted`. Returns
    None, and an lse with fewer than two dims, unchanged; the launch reports the latter."""
    dims = len(getattr(lse, "shape", ()))
    if layout == wanted or dims < 2:
        return lse
    return lse.T if dims == 2 else lse.swapaxes(-1, -2)


SPELLINGS = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e8m0": "float8_e8m0fnu",
             "f4e2m1": "float4_e2m1fn_x2", "i32": "int32", "i64": "int64", "i8": "int8", "u8": "uint8", "bool": "bool"}
"""The spelling in numpy and torch of each dtype of kernels."""
_STANDARD = {name: SPELLINGS[name] for name in ("bf16", "f16", "f32", "f8e4m3fn", "i32", "u8", "bool")}
"""The dtypes that outputs may have."""


def numpy_dtype(name: str) -> numpy.dtype[Any]:
    """Returns the numpy dtype for a dtype name of mlafix. bf16 and fp8 come from ml_dtypes."""
    spelling = _STANDARD[name]
    if name in ("bf16", "f8e4m3fn"):
        import ml_dtypes

        low: numpy.dtype[Any] = numpy.dtype(getattr(ml_dtypes, spelling))
        return low
    return numpy.dtype(spelling)


def torch_dtype(name: str) -> Any:
    """Returns the torch dtype for a dtype name of mlafix."""
    return getattr(sys.modules["torch"], _STANDARD[name])


def dtype_name(dtype: Any) -> str:
    """Returns the mlafix name of a dtype. `dtype` is that name, a numpy or torch dtype, or the name of such a dtype."""
    spelling = dtype if isinstance(dtype, str) else spelling_of(dtype)
    if spelling in _STANDARD:
        return spelling
    for name, standard in _STANDARD.items():
        if spelling == standard:
            return name
    raise wrong("out_dtype", f"one of {', '.join(_STANDARD)} or their numpy or torch dtypes", repr(dtype))


def spelling_of(dtype: Any) -> str:
    text = str(dtype)
    if text.startswith("torch."):
        return text[len("torch."):]
    try:
        return str(numpy.dtype(dtype).name)
    except TypeError:
        return text


def is_symbol(value: Any) -> bool:
    """True if a value is a symbolic number of torch, as in a traced call."""
    return type(value).__name__ in ("SymInt", "SymFloat", "SymBool")


def one_element(array: Any, like: Any) -> Any:
    """Converts a number to an f32 array of one element, with the library and on the device of `like`. Reshapes an array
    of one element to one dim, and returns any other array as it is."""
    if is_symbol(array):  # float() would make it a constant. Traced tensors have no memory, so any value will do.
        return like.new_empty((1,), dtype=torch_dtype("f32"))
    if isinstance(array, (int, float, numpy.floating, numpy.integer)) and not isinstance(array, bool):
        if hasattr(type(like), "__torch_function__"):
            return like.new_full((1,), float(array), dtype=torch_dtype("f32"))
        return numpy.full(1, array, numpy.float32)
    shape = getattr(array, "shape", ())
    return array.reshape((1,)) if len(shape) > 1 and all(size == 1 for size in shape) else array


def offsets_as_i32(offsets: Any, name: str, rows: int) -> Any:
    """Views an array of offsets from 0 to `rows` as i32 over the same memory.

    For 64-bit integers, the view selects the low 32 bits, which represent values from -2^31 to 2^31 - 1. Returns arrays
    of any other dtype or library as they are; the launch then reports arrays that do not fit.
    """
    offsets = as_signed(offsets)
    if _integer_bytes(offsets) != 8:
        return offsets
    if rows >= 2**31:
        raise wrong(name, "fewer than 2^31 rows", f"{rows}: offsets of 64 bits are read as i32; split the call")
    # A view with another element size needs a contiguous last dim, so a dim of one element is added at the end.
    return offsets[..., None].view(_signed(offsets, 4))[..., 0]


def as_signed(integers: Any) -> Any:
    """Views unsigned integers of 32 or 64 bits as signed integers over the same memory. Returns other arrays as they
    are."""
    size = _integer_bytes(integers)
    if size not in (4, 8) or integers.dtype == (signed := _signed(integers, size)):
        return integers
    return integers.view(signed)


def _integer_bytes(array: Any) -> int:
    """Returns the element size in bytes of an integer array of numpy or torch in native byte order. Returns 0 for other
    arrays."""
    if isinstance(array, numpy.ndarray):
        return array.dtype.itemsize if array.dtype.kind in "iu" and array.dtype.isnative else 0
    if not hasattr(type(array), "__torch_function__"):
        return 0
    dtype = array.dtype
    return 0 if dtype.is_floating_point or dtype.is_complex else int(dtype.itemsize)


def _signed(like: Any, size: int) -> Any:
    name = f"int{8 * size}"
    return numpy.dtype(name) if isinstance(like, numpy.ndarray) else getattr(sys.modules["torch"], name)


def is_torch(array: Any) -> bool:
    """True if an array belongs to torch. Does not import torch."""
    return hasattr(type(array), "__torch_function__")


def viewed(array: Any, shape: tuple[int, ...]) -> Any:
    """Views an array in another shape. Returns None if that needs a copy."""
    if is_torch(array):
        try:
            return array.view(shape)
        except (RuntimeError, ValueError):  # ValueError for tensors without memory
            return None
    flat = array.reshape(shape)
    return flat if 0 in flat.shape or numpy.may_share_memory(flat, array) else None


def evenly_viewed(array: Any, name: str, shape: tuple[int, ...], expected: str = "evenly spaced rows", turned: Any = None) -> Any:
    """Views an array in another shape, or `turned`, a view of it, if that is given. Raises ArgumentError if that needs a
    copy. The message contains the array's shape and, if the library provides them, the strides in elements."""
    view = viewed(array if turned is None else turned, shape)
    if view is not None:
        return view
    got = f"shape {list(array.shape)}"
    if is_torch(array):
        got += f", strides {list(array.stride())}"
    elif (steps := getattr(array, "strides", None)) is not None and (size := getattr(array.dtype, "itemsize", 0)):
        got += f", strides {[step // size for step in steps]}"
    raise wrong(name, f"{expected} (as contiguous() makes them)", got)


# _MOVED has the dtypes of one element each. If a kernel only moves elements, an array of any other dtype is viewed as
# the dtype that _MOVED_AS has for its element size in bytes.
_MOVED = {*SPELLINGS.values()} - {SPELLINGS["f4e2m1"]}
_MOVED_AS = {1: "uint8", 2: "float16", 4: "int32", 8: "int64"}


def as_moved(array: Any) -> Any:
    """Prepares an array for a kernel that only moves elements. If kernels do not support the array's dtype, views the
    array as a supported dtype of the same element size. Returns other arrays as they are."""
    return array if spelling_of(getattr(array, "dtype", None)) in _MOVED else as_bits(array)


def as_bits(array: Any) -> Any:
    """Views an array as the dtype in _MOVED_AS for its element size. Returns arrays that require grad, and arrays of
    other sizes or libraries, as they are."""
    dtype = getattr(array, "dtype", None)
    kind = _MOVED_AS.get(getattr(dtype, "itemsize", 0))
    if kind is None or spelling_of(dtype) == kind or getattr(array, "requires_grad", False):
        return array
    if isinstance(array, numpy.ndarray):
        return array.view(kind)
    return array.view(getattr(sys.modules["torch"], kind)) if is_torch(array) else array


def rows_of(array: Any, name: str, dims: tuple[str, ...]) -> Any:
    """Returns the shape of an array. Raises ArgumentError unless it is an array with memory and as many dims as `dims`
    lists. `name` is the argument's name for errors."""
    shape = getattr(array, "shape", None)
    if shape is None:
        raise wrong(name, "an array", type(array).__qualname__)
    if not hasattr(array, "__dlpack_device__") and not is_torch(array):
        raise wrong(name, "an array with memory", f"{type(array).__qualname__} (inside jax.jit, jax.ffi calls kernels: docs/Embedding.md)")
    if len(shape) != len(dims):
        raise wrong(name, f"{len(dims)} dim{'s' if len(dims) > 1 else ''} [{', '.join(dims)}]", len(shape))
    return shape


PAYLOADS = "bf16", "f16", "f32"


def check_dtype(array: Any, name: str, dtypes: tuple[str, ...] = PAYLOADS) -> None:
    """Raises ArgumentError unless the array's dtype is one of `dtypes`. Functions use it if their kernel accepts more
    dtypes than they do."""
    dtype = getattr(array, "dtype", None)
    spelling = type(array).__qualname__ if dtype is None else spelling_of(dtype)
    if spelling not in {SPELLINGS[dtype] for dtype in dtypes}:
        raise wrong(name, f"dtype {' or '.join(dtypes)}", spelling)


def check_integers(array: Any, name: str) -> None:
    """Raises ArgumentError unless the array's dtype is i64 or i32."""
    kind = spelling_of(array.dtype) if hasattr(array, "dtype") else type(array).__qualname__
    if kind not in ("int64", "int32"):
        raise wrong(name, "dtype i64 or i32", kind)


def is_contiguous(array: Any) -> bool:
    """True if an array is contiguous, or if its library has no method `is_contiguous` to ask."""
    if isinstance(array, numpy.ndarray):
        return bool(array.flags.c_contiguous)
    asked = getattr(array, "is_contiguous", None)
    return asked is None or bool(asked())


def count_or_tensor(count: Any) -> tuple[Any, Any]:
    """Returns the two kernel arguments for a count: (count, None) for a number, which may be numpy's or symbolic, or
    (0, count) for an array that contains the number."""
    is_array = not isinstance(count, int) and hasattr(count, "__dlpack__")
    return (0, count) if is_array else (count, None)
