"""Storage dtypes: their values as f64, their bits, and rounding. The code follows the definitions of the formats, not
mlafix."""

from __future__ import annotations

import ml_dtypes
import numpy as np

NUMPY = {
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "f8e8m0": np.dtype(ml_dtypes.float8_e8m0fnu),
    "f4e2m1": np.dtype(ml_dtypes.float4_e2m1fn),  # here an element is one byte; in a kernel's memory, two elements share a byte
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "i8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
    "bool": np.dtype(np.bool_),
}
# (fraction bits, smallest exponent of a normal number, largest number, True if larger numbers saturate to the largest
# (N7)).
_FLOATS = {
    "bf16": (7, -126, float.fromhex("0x1.fep127"), False),
    "f16": (10, -14, 65504.0, False),
    "f32": (23, -126, float.fromhex("0x1.fffffep127"), False),
    "f8e4m3fn": (3, -6, 448.0, True),
    "f8e5m2": (2, -14, 57344.0, True),
    "f4e2m1": (1, 0, 6.0, True),
}
LARGEST = _FLOATS["f32"][2]
TINY = 2.0**-149
WIDTHS = {"i8": 8, "u8": 8, "i32": 32, "i64": 64, "index": 64}


def is_float(dtype: str) -> bool:
    return dtype in _FLOATS or dtype == "f8e8m0"


def f32(values: np.ndarray) -> np.ndarray:
    """Rounds f64 values to the nearest f32; the result is stored as f64."""
    return np.asarray(values, np.float64).astype(np.float32).astype(np.float64)


def f32_down(values: np.ndarray) -> np.ndarray:
    """Returns the largest f32 that is not above each value."""
    near = np.asarray(values, np.float64).astype(np.float32)
    return np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near).astype(np.float64)


def f32_up(values: np.ndarray) -> np.ndarray:
    return -f32_down(-np.asarray(values, np.float64))


def pack(array: np.ndarray) -> np.ndarray:
    """Packs f4e2m1 elements two to a byte, the first in the low half."""
    codes = np.ascontiguousarray(array).view(np.uint8)
    return codes[..., ::2] | codes[..., 1::2] << 4


def unpack(raw: np.ndarray) -> np.ndarray:
    codes = np.stack([raw & 15, raw >> 4], -1).reshape((*raw.shape[:-1], 2 * raw.shape[-1]))
    return codes.view(NUMPY["f4e2m1"])


def round_to(dtype: str, values: np.ndarray) -> np.ndarray:
    """Rounds f64 values to the nearest number of a float dtype, ties to even; the result is stored as f64."""
    if dtype == "f32":
        return f32(values)
    values = np.asarray(values, np.float64)
    if dtype == "f8e8m0":
        return _power(values)
    bits, smallest, largest, saturates = _FLOATS[dtype]
    _, exponent = np.frexp(values)
    unit = np.maximum(exponent - 1, smallest) - bits
    finite = np.isfinite(values)
    rounded = np.where(finite, np.ldexp(np.rint(np.ldexp(np.where(finite, values, 0), -unit)), unit), values)
    top = largest if saturates else np.inf
    rounded = np.where(np.abs(rounded) > largest, np.copysign(top, rounded), rounded)
    if dtype == "f4e2m1":  # the format has no NaN
        return np.where(np.isnan(values), largest, np.copysign(rounded, values))
    return np.copysign(rounded, values)


def _power(values: np.ndarray) -> np.ndarray:
    """Returns the smallest power of two that is not below each value, from 2^-127 to 2^127."""
    fraction, exponent = np.frexp(np.clip(values, 2.0**-127, 2.0**127))
    return np.where(np.isnan(values), np.nan, np.ldexp(1.0, exponent - (fraction == 0.5)))


def widen(array: np.ndarray, dtype: str) -> np.ndarray:
    """Converts floats to f64 and integers to int64. Keeps bool."""
    if is_float(dtype):
        return np.asarray(array).astype(np.float32).astype(np.float64)
    return array.astype(np.bool_) if dtype == "bool" else array.astype(np.int64)


def bits(array: np.ndarray) -> np.ndarray:
    """Returns the bits of each element as an unsigned integer of its width."""
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def limits(dtype: str) -> tuple[int, int]:
    width = WIDTHS[dtype]
    return (0, 255) if dtype == "u8" else (-(1 << (width - 1)), (1 << (width - 1)) - 1)
