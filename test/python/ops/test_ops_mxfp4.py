"""Tests that MXFP4 results of merges have the bits of a merge followed by a quantiser, with both rules for scales, and
with scales in rows and in tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from devices import Device
from numerics import BF16, E8M0, F32
from packing import codes_of, packed
from test_ops_fp4 import POISON, SOURCES, check_unfused, memories
from test_ops_scaled import CALLS, H, N, two

from mlafix import ArgumentError, ops

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

D = 128
G = D // 32
RULES = ["floor", "ceil"]


def power(x: float) -> int:
    """Returns the largest k with 2^k <= x."""
    return int(np.frexp(x)[1]) - 1


def scale_of(largest: np.float32, rule: str) -> int:
    """Returns the code of a group's scale, its exponent plus 127, or 255 if the scale is NaN."""
    if np.isnan(largest):
        return 255
    if np.isinf(largest):
        return 252 if rule == "floor" else 254
    if largest == 0:
        return 0
    if rule == "floor":
        exponent = power(float(largest)) - 2
    else:
        sixth = float(largest * F32.type(1 / 6))
        exponent = power(sixth) + (sixth != 2.0 ** power(sixth)) if sixth else -127
    return min(max(exponent, -127), 127) + 127


def mxfp4(rows: np.ndarray, rule: str) -> tuple[np.ndarray, np.ndarray]:
    """Quantises rows in f64, except for the product with 1 / 6 in f32. Returns the codes and the scales, both as
    bytes."""
    each = rows.astype(F32).reshape(*rows.shape[:-1], -1, 32)
    codes = np.vectorize(lambda largest: scale_of(largest, rule), otypes=[np.uint8])(np.abs(each).max(-1))
    with np.errstate(invalid="ignore"):
        elements = each / np.where(codes == 255, np.nan, 2.0 ** (codes.astype(np.float64) - 127))[..., None]
    return packed(codes_of(elements.reshape(rows.shape))), codes


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype, source", SOURCES, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_the_bits_of_the_unfused_sequence(device: Device, rng: np.random.Generator, name: str, dtype: np.dtype, source: Any, rule: str) -> None:
    """A merge into MXFP4 has the bits of a merge followed by a quantiser, for each dtype, source and rule. Some layouts
    of scales are tested; test_ops_fp4.py tests all of them."""
    every = 5 if (dtype, source) != (BF16, "output") else 2 + RULES.index(rule)
    turn = list(CALLS).index(name) + RULES.index(rule)
    some = {layout: memory for i, (layout, memory) in enumerate(memories(G, E8M0).items()) if (i + turn) % every == 0}
    check_unfused(device, rng, name, dtype, source, some, lambda scales, **how: ops.MxFp4(scales, rounding=rule, **how), lambda rows: mxfp4(rows, rule))


@pytest.mark.parametrize("rule", RULES)
def test_every_binade_and_what_lies_next_to_where_scales_change(device: Device, rng: np.random.Generator, rule: str) -> None:
    """The largest elements of groups are powers of two, 1.5 times powers of two, and the neighbours of both. They range
    from the smallest to the largest number. Others are 0, infinity and NaN."""
    exponents = np.arange(-149, 128)
    with np.errstate(over="ignore"):
        points = np.concatenate([np.ldexp(1.0, exponents), np.ldexp(1.5, exponents)]).astype(F32)
    largest = np.concatenate([(points.view(np.int32) + step).view(F32) for step in range(-2, 3)])
    largest = np.concatenate([largest[np.isfinite(largest)], [0.0, np.finfo(F32).max, np.inf, np.nan]]).astype(F32)
    with np.errstate(invalid="ignore"):
        rows = (rng.uniform(-1, 1, (largest.size, 1, 32)) * np.abs(largest)[:, None, None]).astype(F32)
    rows[:, 0, 5] = -np.abs(largest)
    lse, none = np.zeros((1, largest.size), F32), np.full((1, largest.size), -np.inf, F32)
    scales = device.put(np.full((largest.size, 1, 1), POISON, np.uint8))
    q, _ = ops.merge_attn_states(*(device.put(array) for array in (rows, lse, rows, none)), out_format=ops.MxFp4(scales, rounding=rule))
    want, numbers = mxfp4(rows, rule)
    np.testing.assert_array_equal(device.get(scales), numbers)
    np.testing.assert_array_equal(device.get(q), want)


def test_rows_of_empty_states_and_nan(device: Device, rng: np.random.Generator) -> None:
    call, inputs = two(rng, BF16, D)
    scales = device.put(np.full((N, H, G), POISON, np.uint8))
    q, _ = call(*(device.put(array) for array in inputs), out_format=ops.MxFp4(scales))
    q, scales = device.get(q), device.get(scales)
    assert (q[3] == 0).all() and (scales[3] == 0).all()
    assert scales[4, 2, 0] == 0xFF and (q[4, 2, :16] == 0x77).all() and not (scales[4, 2, 1:] == 0xFF).any()


def made(shape: tuple[int, ...], dtype: Any = np.uint8) -> np.ndarray:
    return np.zeros(shape, dtype)


@pytest.mark.parametrize("where, message", [
    (ops.MxFp4(made((N, H, 8))), r"MxFp4\.scales.*G = D / 32 of D = 128"),
    (ops.MxFp4(made((N, H, G), F32), rounding="ceil"), r"MxFp4\.scales.*float8_e8m0fnu or uint8, got float32"),
    (ops.MxFp4(made((128, H * D // 16)), tiles="128x4"), r"MxFp4\.scales.*shape \[m, 24\], m a multiple of 128, in tiles \(heads: .*, groups: 32 elements\)"),
])  # fmt: skip
def test_scales_that_do_not_fit_are_errors(rng: np.random.Generator, where: Any, message: str) -> None:
    call, inputs = two(rng, BF16, D)
    with pytest.raises(ArgumentError, match=message):
        call(*inputs, out_format=where)


def test_a_rounding_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ArgumentError, match=r"argument \"MxFp4\.rounding\": expected 'floor' or 'ceil', got 'up'"):
        ops.MxFp4(made((N, H, G)), rounding="up")  # type: ignore[arg-type]


@pytest.mark.parametrize("where", [ops.MxFp4(made((N, H, D // 32))), ops.NvFp4(made((N, H, D // 16)), 1.0)], ids=["MxFp4", "NvFp4"])
def test_an_output_of_a_byte_an_element_is_named(rng: np.random.Generator, where: Any) -> None:
    call, inputs = two(rng, BF16, D)
    with pytest.raises(ArgumentError, match=r'"out": expected shape \[7, 6, 64\], two elements of f4e2m1 in a byte, got \(7, 6, 128\)'):
        call(*inputs, out=made((N, H, D)), out_format=where)
