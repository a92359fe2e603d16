"""Tests that functions that only quantise rows give the bits of the engines' quantisers in f32. Scales may have every
layout that the scales of a merge may have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calls import Right
from devices import Device
from mlafix import ArgumentError, ops
from numerics import BF16, E4M3, E8M0, F16, F32, same_bits
from states import LAYOUTS, buffer_of, lay_out, untouched_outside
from test_ops_fp4 import D as D_FP4
from test_ops_fp4 import GLOBAL, memories, nvfp4
from test_ops_fp4 import scales_in as fp4_in
from test_ops_mxfp4 import mxfp4
from test_ops_scaled import D, H, N, check, layouts, quantised, scales_in
from packing import rows_of

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")


def rows(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...] = (N, H, D)) -> np.ndarray:
    """Returns rows of all magnitudes. Among them are a row of 0.0, a row of -0.0, a row of the smallest number, and a
    row with NaN in a group."""
    x = (rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 4, (*shape[:-1], 1))).astype(dtype)
    x[0], x[1] = 0, -0.0
    x[2] = np.array(1, f"u{dtype.itemsize}").view(dtype)
    x[3, ..., 5] = np.nan
    return x


@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
@pytest.mark.parametrize("groups", [2, 4, 8])
def test_groups_of_fp8_in_every_layout_of_scales(device: Device, rng: np.random.Generator, dtype: np.dtype, groups: int) -> None:
    x = rows(rng, dtype)
    for poisoned, powers in layouts(groups).values():
        for flat in (False, True):
            q, scales = device.poisoned((N, H * D) if flat else x.shape, E4M3), device.put(poisoned.copy("K"))
            given = device.put(x.reshape(N, -1) if flat else x)
            # If rows are [n, D], the scales must be [n, G].
            shaped = scales.reshape((N, H * groups)) if flat and poisoned.ndim == 3 else scales
            assert ops.quantize_groups(given, ops.Fp8Groups(shaped), out=q) is q
            check(device.get(q).reshape(x.shape), scales_in(device.get(scales), groups), x, groups, powers)
            fresh = ops.quantize_groups(given, ops.Fp8Groups(shaped))
            assert same_bits(device.get(fresh), device.get(q))


def test_the_largest_numbers_and_infinities(device: Device) -> None:
    """A group that contains an infinity has an infinite scale. Its finite numbers become 0, and its infinities become
    NaN."""
    x = np.full((3, 1, 64), np.finfo(F32).max, F32)
    x[0, 0, 32:] = -1.5
    x[1, 0, 7], x[2, 0, 40] = np.inf, -np.inf
    q, scales = device.poisoned(x.shape, E4M3), device.poisoned((3, 1, 2), F32)
    ops.quantize_groups(device.put(x), ops.Fp8Groups(scales), out=q)
    check(device.get(q), device.get(scales), x, 2, powers=False)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_lie_anywhere(device: Device, rng: np.random.Generator, layout: str) -> None:
    """Input and output may have any strides. The gaps between output rows keep their bytes."""
    x, out = rows(rng, BF16), lay_out(np.full((N, H, D), np.nan).astype(E4M3), layout)
    q, scales, before = device.put(out), device.poisoned((N, H, 2), F32), buffer_of(out).copy()
    ops.quantize_groups(device.put(lay_out(x, layout)), ops.Fp8Groups(scales), out=q)
    check(device.get(q), device.get(scales), x, 2, powers=False)
    if isinstance(q, np.ndarray):
        assert untouched_outside(out, before)


def test_scales_are_rounded_up_to_powers_where_asked(device: Device, rng: np.random.Generator) -> None:
    x, scales = rows(rng, F16), device.poisoned((N, H, 4), F32)
    q = ops.quantize_groups(device.put(x), ops.Fp8Groups(scales, power_of_two=True))
    check(device.get(q), device.get(scales), x, 4, powers=True)


@pytest.mark.parametrize("dtype", [BF16, F32], ids=str)
def test_nvfp4_in_rows_and_in_tiles(device: Device, rng: np.random.Generator, dtype: np.dtype) -> None:
    x = rows(rng, dtype, (N, H, D_FP4))
    want, numbers = nvfp4(x, GLOBAL)
    for layout, poisoned in memories(D_FP4 // 16, E4M3).items():
        scales, first = device.put(poisoned), 3 if layout in ("tiles", "words") else 0
        where = ops.NvFp4(scales, GLOBAL, tiles="128x4" if first else None, first_row=first)
        q = ops.quantize_groups(device.put(x), where)
        np.testing.assert_array_equal(fp4_in(device.get(scales), layout, first), numbers)
        np.testing.assert_array_equal(device.get(q), want)


@pytest.mark.parametrize("rule", ["floor", "ceil"])
def test_mxfp4_in_rows_and_in_tiles(device: Device, rng: np.random.Generator, rule: str) -> None:
    x = rows(rng, BF16, (N, H, D_FP4))
    want, numbers = mxfp4(x, rule)
    for layout, poisoned in memories(D_FP4 // 32, E8M0).items():
        scales, first = device.put(poisoned), 3 if layout in ("tiles", "words") else 0
        q = device.put(np.full((N, H, D_FP4 // 2), 0x5A, np.uint8))
        where = ops.MxFp4(scales, rounding=rule, tiles="128x4" if first else None, first_row=first)  # type: ignore[arg-type]
        ops.quantize_groups(device.put(x), where, out=q)
        np.testing.assert_array_equal(fp4_in(device.get(scales), layout, first), numbers)
        np.testing.assert_array_equal(device.get(q), want)


def test_mxfp8_in_tiles_of_rows_without_heads(device: Device, rng: np.random.Generator) -> None:
    x = rows(rng, BF16, (130, 96))
    memory = device.put(np.full((256, 4), 0x5A, np.uint8))
    q = ops.quantize_groups(device.put(x), ops.MxFp8(memory, tiles="128x4", first_row=9))
    bits, powers = quantised(x, 3, True)
    stored = rows_of(device.get(memory), 4)
    np.testing.assert_array_equal(stored[9:139, :3].view(E8M0).astype(F32), powers)
    stored[9:139, :3] = 0
    assert (stored[:9] == 0x5A).all() and (stored[9:] == 0).all()
    nan = np.isnan(bits.astype(F32))
    np.testing.assert_array_equal(device.get(q).view(np.uint8)[~nan], bits.view(np.uint8)[~nan])


def test_groups_may_span_heads_of_rows_that_are_passed_whole(device: Device, rng: np.random.Generator) -> None:
    """A group may span heads, whether rows are passed as [n, D] or as [n, H, D]. Heads have 64 elements and groups 128;
    scales are f32 or, for [n, D], also words of four bytes."""
    x = rows(rng, BF16, (N, 10, 64))
    want, numbers = quantised(x.reshape(N, 640), 5, False)
    scales, words = device.poisoned((N, 5), F32), device.put(np.full((2, 8), -1, np.int32)[:, :N].T)
    q = ops.quantize_groups(device.put(x.reshape(N, 640)), ops.Fp8Groups(scales))
    powers = ops.quantize_groups(device.put(x.reshape(N, 640)), ops.Fp8Groups(words))
    np.testing.assert_array_equal(device.get(scales), numbers)
    np.testing.assert_array_equal(device.get(q).astype(F32), want.astype(F32))
    want, numbers = quantised(x.reshape(N, 640), 5, True)
    each = np.ascontiguousarray(device.get(words)).view(np.uint8)
    assert (each[:, 5:] == 0).all()
    np.testing.assert_array_equal(each[:, :5].view(E8M0).astype(F32), numbers)
    np.testing.assert_array_equal(device.get(powers).astype(F32), want.astype(F32))
    # Here rows are passed as [N, 10, 64], and every two heads share a scale.
    scales = device.poisoned((N, 5), F32)
    q = ops.quantize_groups(device.put(x), ops.Fp8Groups(scales))
    want, numbers = quantised(x.reshape(N, 640), 5, False)
    np.testing.assert_array_equal(device.get(scales), numbers)
    np.testing.assert_array_equal(device.get(q).reshape(N, 640).astype(F32), want.astype(F32))
    with pytest.raises(ArgumentError, match=r'argument "Fp8Groups.scales": expected shape .*G a divisor of 64, or .*8 whole heads, got \(\d+, 1\)'):
        ops.quantize_groups(device.put(x), ops.Fp8Groups(device.poisoned((N, 1), F32)))
    with pytest.raises(ArgumentError, match="expected heads of 128, 256 or 512 elements for scales of int32 .other heads take float32 or float8_e8m0fnu., got heads of 64$"):
        ops.quantize_groups(device.put(x), ops.Fp8Groups(device.put(np.zeros((N, 2), np.int32))))


def test_the_bits_of_a_merge_with_one_state(device: Device, rng: np.random.Generator) -> None:
    x = device.put(rows(rng, F32))
    scales, merged = device.poisoned((N, H, 2), F32), device.poisoned((N, H, 2), F32)
    q = ops.quantize_groups(x, ops.Fp8Groups(scales))
    lse, none = (device.put(np.full((H, N), value, F32)) for value in (0, -np.inf))
    want, _ = ops.merge_attn_states(x, lse, x, none, out_format=ops.Fp8Groups(merged))
    assert same_bits(device.get(q), device.get(want)) and same_bits(device.get(scales), device.get(merged))


@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
def test_one_scale_of_rows_with_heads(device: Device, rng: np.random.Generator, dtype: np.dtype) -> None:
    """One scale for rows with heads gives the bits of rows without heads, at any strides."""
    x = rows(rng, dtype)
    want = ops.quantize_fp8_static(device.put(x.reshape(N * H, D)), 0.07)
    for layout in LAYOUTS:
        for scale in (0.07, device.put(np.full((1, 1), 0.07, F32))):
            q = device.put(lay_out(np.full(x.shape, np.nan).astype(E4M3), layout))
            assert ops.quantize_fp8_static(device.put(lay_out(x, layout)), scale, out=q) is q
            assert same_bits(device.get(q).reshape(-1, D), device.get(want))


def test_one_scale_is_a_product_with_its_reciprocal(device: Device) -> None:
    """Rows are multiplied by the reciprocal of the scale. Inputs are next to ties of e4m3, where a division could round
    the other way."""
    codes = np.arange(1, 0x7F, dtype=np.uint8).view(E4M3).astype(np.float64)
    points = ((codes[1:] + codes[:-1]) / 2 * 0.07).astype(F32)
    x = np.concatenate([(points.view(np.int32) + step).view(F32) for step in range(-4, 4)]).reshape(-1, 5, 8)
    q = ops.quantize_fp8_static(device.put(x), 0.07)
    np.testing.assert_array_equal(device.get(q).astype(F32), (x * (F32.type(1) / F32.type(0.07))).astype(E4M3).astype(F32))


@pytest.mark.parametrize("shape", [(0, 3, 128), (0, 128)])
def test_there_may_be_no_rows(device: Device, shape: tuple[int, ...]) -> None:
    x = device.put(np.zeros(shape, F32))
    q = ops.quantize_groups(x, ops.Fp8Groups(device.put(np.zeros((*shape[:-1], 1), F32))))
    assert tuple(q.shape) == shape
    if len(shape) == 3:
        assert tuple(ops.quantize_fp8_static(x, 1.0).shape) == shape


WRONG = [
    (dict(x=np.ones((5, 64, 1, 1), F32)), r'argument "x": expected 2 dims \[n, D\] or 3 dims \[n, H, D\], got 4'),
    (dict(x=3.0), 'argument "x": expected an array, got float'),
    (dict(x=np.ones((5, 4, 64))), 'argument "x": expected dtype bf16 or f16 or f32, got float64'),
    (dict(x=np.ones((5, 4, 64), E4M3)), 'argument "x": expected dtype bf16 or f16 or f32, got float8_e4m3fn'),
    (dict(x=np.ones((5, 4, 128), F32)[..., ::2]), 'argument "x": expected stride 1 in dim 2.*got 2'),
    (dict(x=np.ones((5, 256), F32)[:, ::2], out=np.ones((5, 128), E4M3), out_format=ops.Fp8Groups(np.ones((5, 1), np.int32))), 'argument "x": expected .*got 2'),
    (dict(out=np.ones((5, 4, 64), F32)), 'argument "out": expected dtype f8e4m3fn.*got f32'),
    (dict(out=np.ones((5, 4, 32), E4M3)), r'argument "out": expected shape \[5, 4, 64\], got shape \[5, 4, 32\]'),
    (dict(out=[1.0]), r'argument "out": expected shape \[5, 4, 64\], got list'),
    (dict(out_format=None), 'argument "out_format": expected an instance of Fp8, .* or NvFp4, got NoneType'),
    (dict(out_format=ops.Fp8(1.0)), 'argument "out_format": expected Fp8Groups, MxFp8, MxFp4 or NvFp4 .*quantize_fp8_static.*, got Fp8'),
    (dict(out_format=ops.Fp8Groups([1.0])), 'argument "Fp8Groups.scales": expected an array of numpy.s or torch.s, got list'),  # type: ignore[arg-type]
    (dict(out_format=ops.Fp8Groups(np.ones((5, 4, 3), F32))), 'argument "Fp8Groups.scales": expected .*G a divisor of 64'),
    (dict(out_format=ops.Fp8Groups(np.ones((6, 4, 1), F32))), r'argument "Fp8Groups.scales": expected shape \[5, 4, G\].*got \(6, 4, 1\)'),
    (dict(out_format=ops.Fp8Groups(np.ones((5, 4, 1)))), 'argument "Fp8Groups.scales": expected dtype float32, float8_e8m0fnu or int32, got float64'),
    (dict(x=np.ones((5, 4, 72), F32), out=None, out_format=ops.NvFp4(np.ones((5, 4, 4), np.uint8), 1.0)),
     'argument "NvFp4.scales": expected rows of a positive multiple of 16 elements, a scale for each 16, got rows of 72'),
    (dict(x=np.ones((5, 4, 72), F32), out=None, out_format=ops.NvFp4(np.ones((128, 20), np.uint8), 1.0, tiles="128x4")),
     'argument "NvFp4.scales": expected heads of a multiple of 16 elements, a scale for each 16, got heads of 72'),
    (dict(out_format=ops.NvFp4(np.ones((5, 4, 4), np.uint8), 1.0)), r'argument "out": expected shape \[5, 4, 32\], got shape \[5, 4, 64\]'),
]


@pytest.mark.parametrize("changed, message", WRONG, ids=[message for _, message in WRONG])
def test_wrong_arguments(changed: dict[str, Any], message: str) -> None:
    Right(Device()).refuses("quantize_groups", message, **changed)


def test_outputs_lie_apart_from_all_else() -> None:
    """N11: memory that a launch writes must not overlap with another argument."""
    x = np.ones((5, 4, 64), F32)
    with pytest.raises(ArgumentError, match='argument "out": expected memory apart from'):
        ops.quantize_groups(x, ops.Fp8Groups(np.ones((5, 4, 1), F32)), out=x.view(E4M3)[..., :64])
    with pytest.raises(ArgumentError, match='argument "Fp8Groups.scales": expected memory apart from .*"x"'):
        ops.quantize_groups(x, ops.Fp8Groups(x[..., :1]))
    with pytest.raises(ArgumentError, match='argument "out": expected dtype f8e4m3fn.*got f32'):
        ops.quantize_fp8_static(x, 1.0, out=x)
