"""PTX arithmetic on arrays with one element per thread."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
TYPES: dict[str, Any] = {
    **{f"{kind}{bits}": np.dtype(f"{name}{bits}") for kind, name in (("b", "uint"), ("u", "uint"), ("s", "int")) for bits in (8, 16, 32, 64)},
    "f32": np.dtype("float32"), "f64": np.dtype("float64"), "f16": np.dtype("float16"), "bf16": np.dtype(ml_dtypes.bfloat16),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2": np.dtype(ml_dtypes.float8_e5m2), "pred": np.dtype(bool),
}  # fmt: skip
_NAN = {"f32": np.uint32(0x7FFFFFFF), "f16": np.uint16(0x7FFF), "bf16": np.uint16(0x7FFF)}


def canonical(kind: str, value: Array) -> Array:
    """Replaces NaN by the single pattern that arithmetic produces (PTX ISA, "Floating Point Instructions")."""
    if kind in _NAN:
        bad = np.isnan(value)
        if bad.any():
            value = np.array(value)
            value.view(_NAN[kind].dtype)[bad] = _NAN[kind]
    return value


def flush(value: Array) -> Array:
    """Replaces subnormal f32 by zeros of the same sign."""
    return np.where(np.abs(value) < np.float32(2.0**-126), np.copysign(np.float32(0), value), value).astype(np.float32)


def _to_odd(nearest: Array, error: Array) -> Array:
    """Rounds exact numbers to odd, so that rounding them again to a much narrower format gives the nearest number.
    `nearest` has the exact numbers rounded to nearest, and `error` has the sign of what this rounding took away."""
    odd = np.nextafter(nearest, np.where(error > 0, np.inf, -np.inf).astype(nearest.dtype))
    bits = np.ascontiguousarray(nearest).view(f"uint{nearest.dtype.itemsize * 8}")
    isEven = bits & bits.dtype.type(1) == 0
    return np.where((error != 0) & isEven & np.isfinite(nearest), odd, nearest)


def cast(value: Array, target: Any) -> Array:
    """Rounds floats once to the dtype `target`. The casts of ml_dtypes round f64 by way of f32."""
    if value.dtype == np.float64 and target.itemsize < 4:
        nearest = value.astype(np.float32)
        value = _to_odd(nearest, value - nearest)
    return value.astype(target)


def fma(a: Array, b: Array, c: Array) -> Array:
    """Returns the fma a * b + c of f32 or 16-bit floats, rounded once. The exact product is added in f64 with rounding
    to odd."""
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)
    return cast(_to_odd(total, error), a.dtype)


def _magnitude(value: Array) -> Array:
    unsigned = value.view(f"uint{value.dtype.itemsize * 8}")
    return np.where(value < 0, np.zeros_like(unsigned) - unsigned, unsigned)


def divide(a: Array, b: Array) -> Array:
    """Divides integers and rounds towards zero. A divisor of 0, which PTX leaves undefined, gives all ones."""
    quotient = _magnitude(a) // np.maximum(_magnitude(b), 1)
    quotient = np.where((a < 0) != (b < 0), np.zeros_like(quotient) - quotient, quotient)
    return np.where(b == 0, ~np.zeros_like(quotient), quotient).view(a.dtype)


def high_product(a: Array, b: Array) -> Array:
    """Returns the upper half of the product of two integers, signed or unsigned."""
    bits = a.dtype.itemsize * 8
    if bits < 64:
        wide = np.int64 if a.dtype.kind == "i" else np.uint64
        return np.asarray(a.astype(wide) * b.astype(wide) >> wide(bits)).astype(a.dtype)
    x, y, half, low = a.view(np.uint64), b.view(np.uint64), np.uint64(32), np.uint64(0xFFFFFFFF)
    inner = (x >> half) * (y & low) + ((x & low) * (y & low) >> half)
    outer = (x & low) * (y >> half) + (inner & low)
    high = (x >> half) * (y >> half) + (inner >> half) + (outer >> half)
    if a.dtype.kind == "i":
        zero = np.uint64(0)
        high = high - np.where(a < 0, y, zero) - np.where(b < 0, x, zero)
    return high.view(a.dtype)


def approximate(name: str, value: Array) -> Array:
    """Applies ex2, lg2, rcp, rsqrt, sqrt, sin, cos or tanh. The result is correctly rounded, which is within the
    hardware's error."""
    wide = value.astype(np.float64)
    functions: dict[str, Any] = {
        "ex2": np.exp2, "lg2": np.log2, "rcp": lambda x: 1 / x, "rsqrt": lambda x: 1 / np.sqrt(x), "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos,
        "tanh": np.tanh,
    }  # fmt: skip
    return np.asarray(functions[name](wide)).astype(value.dtype)


def to_integer(value: Array, kind: str, rounding: str) -> Array:
    """Converts to an integer with saturation; NaN becomes 0."""
    wide = value.astype(np.float64)
    rounded = {"rzi": np.trunc, "rni": np.rint, "rmi": np.floor, "rpi": np.ceil}[rounding](wide)
    info = np.iinfo(TYPES[kind])
    # For 64 bits, float(info.max) is rounded up to a power of two, which is out of range, so the comparison excludes
    # it. The smallest s64 is also excluded, but saturates to itself below.
    inside = (rounded > float(info.min) - 1) & (rounded < float(info.max)) if info.bits == 64 else (rounded >= info.min) & (rounded <= info.max)
    made = np.where(inside, rounded, 0).astype(TYPES[kind])
    made = np.where(~inside & (rounded > 0), info.max, made)
    made = np.where(~inside & (rounded < 0), info.min, made)
    return np.where(np.isnan(wide), 0, made).astype(TYPES[kind])


def from_integer(value: Array, kind: str) -> Array:
    """Rounds integers once to floats."""
    if kind in ("f32", "f64"):
        return value.astype(TYPES[kind])
    return np.array([_to_odd_f32(int(x)) for x in value], np.float32).astype(TYPES[kind])


def _to_odd_f32(value: int) -> float:
    """Rounds an integer to odd: if one of its bits after the first 24 is set, sets the 24th."""
    size = abs(value)
    beyond = max(size.bit_length() - 24, 0)
    kept = size >> beyond << beyond
    return math.copysign(kept | (kept != size) << beyond, value)


def narrow(value: Array, kind: str, finite: bool) -> Array:
    """Rounds floats to the nearest number of a narrower format, ties to even. With `finite`, saturates."""
    target = TYPES[kind]
    if finite:
        largest = np.float32(ml_dtypes.finfo(target).max)
        value = np.where(np.isnan(value), value, np.clip(value, -largest, largest)).astype(value.dtype)
    return canonical(kind, cast(value, target))


def _bits(value: Array) -> Array:
    """Returns the bits of n unsigned integers as an array [n, bits], the highest bit first."""
    by_byte = np.ascontiguousarray(value.astype(value.dtype.newbyteorder(">"))).view(np.uint8)
    return np.unpackbits(by_byte.reshape(value.size, value.dtype.itemsize), axis=1)


def leading_zeros(value: Array) -> Array:
    bits = _bits(value)
    return np.where(bits.any(axis=1), bits.argmax(axis=1), bits.shape[1]).astype(np.uint32)


def ones(value: Array) -> Array:
    return _bits(value).sum(axis=1).astype(np.uint32)


def extract(value: Array, start: Array, length: Array) -> Array:
    """Extracts `length` bits from bit `start` on. Higher bits of the result are zeros. For a signed number, they
    instead repeat the highest extracted bit, or the number's sign if the field ends beyond the number. With `length` 0,
    the result is 0."""
    bits = value.dtype.itemsize * 8
    plain = value.view(f"u{value.dtype.itemsize}")
    copied = np.minimum(length, bits - np.minimum(start, bits))
    above = shift("shl", ~np.zeros_like(plain), copied)
    made = shift("shr", plain, start) & ~above
    if value.dtype.kind == "i":
        last = np.minimum(start + length.astype(np.int64) - 1, bits - 1)
        sign = (length > 0) & (shift("shr", plain, np.maximum(last, 0).astype(np.uint32)) & plain.dtype.type(1) == 1)
        made = np.where(sign, made | above, made)
    return made.view(value.dtype)


def shift(name: str, value: Array, amount: Array) -> Array:
    """Applies shl or shr. An amount of at least the width gives zeros, or copies of the sign for a signed shr."""
    bits = value.dtype.itemsize * 8
    small = np.minimum(amount.astype(np.uint64), bits - 1).astype(value.dtype)
    made = value << small if name == "shl" else value >> small
    isFar = amount.astype(np.uint64) >= bits
    rest = (value >> np.array(bits - 1, value.dtype)) if value.dtype.kind == "i" and name == "shr" else np.zeros_like(value)
    return np.where(isFar, rest, made).astype(value.dtype)


def permute(a: Array, b: Array, selector: Array) -> Array:
    """Applies the instruction prmt without a mode: selects four of the eight bytes of a and b."""
    pool = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
    made = np.zeros(np.broadcast(a, b, selector).shape, np.uint32)
    for i in range(4):
        nibble = (selector >> np.uint32(4 * i)) & np.uint32(0xF)
        byte = ((pool >> (np.uint64(8) * (nibble & np.uint32(7)).astype(np.uint64))) & np.uint64(0xFF)).astype(np.uint32)
        sign = np.where(byte & np.uint32(0x80), np.uint32(0xFF), np.uint32(0))
        made |= np.where(nibble & np.uint32(8), sign, byte) << np.uint32(8 * i)
    return made


def three_inputs(a: Array, b: Array, c: Array, table: int) -> Array:
    """Applies the instruction lop3: looks up each result bit in `table` by the bits of a, b and c."""
    made = np.zeros(np.broadcast(a, b, c).shape, a.dtype)
    for i in range(8):
        if table >> i & 1:
            made |= (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
    return made
