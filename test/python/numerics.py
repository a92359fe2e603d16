"""Storage types for the tests: rounding from f64, distances in units in the last place, and garbage.

This module deliberately does not use the code under test. `ml_dtypes` provides bf16 and fp8, which numpy lacks, but the
rounding is implemented here.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

BF16 = np.dtype(ml_dtypes.bfloat16)
F16 = np.dtype(np.float16)
F32 = np.dtype(np.float32)
E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)
E5M2 = np.dtype(ml_dtypes.float8_e5m2)
E8M0 = np.dtype(ml_dtypes.float8_e8m0fnu)


@dataclass(frozen=True)
class Format:
    """A binary float format: the widths of its fields, its largest number, and what larger numbers become."""

    exponent_bits: int
    fraction_bits: int
    largest: float  # the largest finite number
    saturates: bool  # true if larger numbers become the largest one, false if they become infinity (N7)

    @property
    def smallest_exponent(self) -> int:
        return 2 - (1 << (self.exponent_bits - 1))


FORMATS = {
    BF16: Format(8, 7, float.fromhex("0x1.fep127"), False),
    F16: Format(5, 10, 65504.0, False),
    F32: Format(8, 23, float.fromhex("0x1.fffffep127"), False),
    E4M3: Format(4, 3, 448.0, True),
    E5M2: Format(5, 2, 57344.0, True),
}


def round_to(dtype: np.dtype, values: np.ndarray) -> np.ndarray:
    """Returns, as f64, the elements of `dtype` nearest to f64 `values`, ties to even. fp8 saturates, and NaN stays
    NaN."""
    fmt = FORMATS[dtype]
    values = np.asarray(values, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        _, exponent = np.frexp(values)
        unit = np.maximum(exponent - 1, fmt.smallest_exponent) - fmt.fraction_bits
        finite = np.isfinite(values)
        rounded = np.where(finite, np.ldexp(np.rint(np.ldexp(np.where(finite, values, 0), -unit)), unit), values)
        top = fmt.largest if fmt.saturates else np.inf
        return np.where(np.abs(rounded) > fmt.largest, np.copysign(top, rounded), rounded)


def ordinals(array: np.ndarray) -> np.ndarray:
    """Returns each element's position in the order of its type's numbers. Neighbours differ by 1; -0 and +0 are both
    0."""
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").astype(np.int64)
    sign = 1 << (8 * array.dtype.itemsize - 1)
    return np.where(bits & sign, -(bits & (sign - 1)), bits)


def ulps(got: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Returns how far each element of `got` is from its f64 value after rounding to the dtype of `got`, in units in the
    last place. NaN counts like any number."""
    wanted = round_to(got.dtype, values).astype(np.float32).astype(got.dtype)
    return np.abs(ordinals(got) - ordinals(wanted))


def widen(array: np.ndarray) -> np.ndarray:
    """Returns the array in f64. No element is rounded."""
    return np.asarray(array).astype(np.float32).astype(np.float64)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Returns true if two arrays have the same dtype and the same bits, including NaN payloads and signs of zero."""
    view = f"u{a.dtype.itemsize}"
    return a.dtype == b.dtype and np.array_equal(np.ascontiguousarray(a).view(view), np.ascontiguousarray(b).view(view))


def garbage(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Returns contents that a buffer from `empty` may have: NaN, infinities, denormals, huge and ordinary numbers."""
    fmt = FORMATS[dtype]
    denormal = 2.0 ** (fmt.smallest_exponent - fmt.fraction_bits)
    if fmt.saturates:
        menu = [np.nan, fmt.largest, -fmt.largest, denormal, -0.0, 1.5]
    else:
        menu = [np.nan, -np.nan, np.inf, -np.inf, denormal, -3 * denormal, fmt.largest, -fmt.largest, -0.0, 1.5]
    picked = np.array(menu, np.float32)[rng.integers(0, len(menu), shape)]
    return picked.astype(dtype)


def poison(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Returns the contents of an output before a call: every byte is 0xff. This is NaN in each float type, so that
    unwritten elements are noticed."""
    raw = np.full((*shape, np.dtype(dtype).itemsize), 0xFF, np.uint8)
    return raw.view(dtype).reshape(shape)
