"""Tests `ops.rmsnorm`: the norm of the sum of x and a residual, the norm of each head, and results in formats. Results
are compared with f64, and bit for bit where the norm is exact."""

from __future__ import annotations

import numpy as np
import pytest

import contract
from devices import Device
from mlafix import ops
from numerics import BF16, E4M3, E8M0, F16, F32, poison, same_bits
from states import LAYOUTS, buffer_of, lay_out, untouched_outside
from test_ops_fp4 import D as D_FP4
from test_ops_fp4 import GLOBAL, memories, nvfp4
from test_ops_fp4 import scales_in as fp4_in
from test_ops_metadata import loose
from test_ops_mxfp4 import mxfp4
from test_ops_scaled import D, H, N, check, layouts, scales_in

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")


def random(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return rng.normal(0, 1, shape).astype(F32).astype(dtype)


def summed(x: np.ndarray, residual: np.ndarray) -> np.ndarray:
    return x.astype(F32) + residual.astype(F32)


def exact(rng: np.random.Generator, dtype: np.dtype, dim: int = D) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns x and residual [N, H, dim], a weight in f32, and the norm with epsilon 0. All sums x + residual of a row
    have the same magnitude, a power of two, so no step is rounded."""
    total = np.where(rng.random((N, H, dim)) < 0.5, -1, 1) * np.exp2(rng.integers(-6, 7, (N, H, 1)))
    residual = total * rng.integers(0, 8, total.shape) / 8
    weight = (rng.standard_normal(dim) * np.repeat(10.0 ** rng.integers(-6, 3, dim // 16), 16)).astype(F32)
    weight[:16] = 0
    return (total - residual).astype(dtype), residual.astype(dtype), weight, (np.sign(total) * weight).astype(F32)


@pytest.mark.parametrize("dtype, weights", [(BF16, BF16), (BF16, F32), (F16, F16), (F32, F32), (F32, BF16)], ids=str)
@pytest.mark.parametrize("dim", [1, 7, 64, 96, 4096, 7168])
def test_the_residual_takes_the_sum_and_the_norm_is_the_sums(dtype: np.dtype, weights: np.dtype, dim: int, device: Device, rng: np.random.Generator) -> None:
    for shape in [(5, dim), (0, dim), *([(3, 2, dim)] if dim < 100 else [])]:
        x, before, weight = random(rng, shape, dtype), random(rng, shape, dtype), random(rng, (dim,), weights)
        residual, out = device.put(before.copy()), device.put(poison(shape, dtype))
        got = ops.rmsnorm(device.put(x), device.put(weight), 1e-5, residual=residual, out=out)
        assert got is out
        assert same_bits(device.get(residual), summed(x, before).astype(dtype))
        loose(contract.rmsnorm(summed(x, before), weight, 1e-5)).check(device.get(out), "out")


def test_heads_without_a_residual(device: Device, rng: np.random.Generator) -> None:
    x, weight = random(rng, (9, 3, 128), BF16), random(rng, (128,), F32)
    loose(contract.rmsnorm(x, weight, 1e-6)).check(device.get(ops.rmsnorm(device.put(x), device.put(weight))), "out")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_lie_anywhere(device: Device, rng: np.random.Generator, layout: str) -> None:
    x, before, weight, want = exact(rng, BF16)
    residual, out = lay_out(before, layout), lay_out(poison((N, H, D), BF16), layout)
    around, outside = buffer_of(residual).copy(), buffer_of(out).copy()
    mine, result = device.put(residual), device.put(out)
    ops.rmsnorm(device.put(lay_out(x, layout)), device.put(weight), 0.0, residual=mine, out=result)
    assert same_bits(device.get(mine), summed(x, before).astype(BF16)) and same_bits(device.get(result), want.astype(BF16))
    if isinstance(mine, np.ndarray):
        assert untouched_outside(residual, around) and untouched_outside(out, outside)


def test_in_place(device: Device, rng: np.random.Generator) -> None:
    x, before, weight, want = exact(rng, F16)
    both, residual = device.put(x.copy()), device.put(before.copy())
    assert ops.rmsnorm(both, device.put(weight), 0.0, residual=residual, out=both) is both
    assert same_bits(device.get(both), want.astype(F16)) and same_bits(device.get(residual), summed(x, before).astype(F16))


def test_one_scale(device: Device, rng: np.random.Generator) -> None:
    x, before, weight, want = exact(rng, BF16)
    got = ops.rmsnorm(device.put(x), device.put(weight), 0.0, residual=device.put(before.copy()), out_format=ops.Fp8(0.25))
    assert same_bits(device.get(got), np.clip(want * F32.type(4), -448, 448).astype(E4M3))


@pytest.mark.parametrize("dtype, groups", [(BF16, D // 128), (F16, 4), (F32, 8)], ids=str)
def test_groups_of_fp8_in_every_layout_of_scales(device: Device, rng: np.random.Generator, dtype: np.dtype, groups: int) -> None:
    x, before, weight, want = exact(rng, dtype)
    for poisoned, powers in layouts(groups).values():
        scales, residual, q = device.put(poisoned.copy("K")), device.put(before.copy()), device.poisoned(x.shape, E4M3)
        ops.rmsnorm(device.put(x), device.put(weight), 0.0, residual=residual, out_format=ops.Fp8Groups(scales), out=q)
        check(device.get(q), scales_in(device.get(scales), groups), want, groups, powers)
        assert same_bits(device.get(residual), summed(x, before).astype(dtype))


def test_fp4_in_rows_and_in_tiles(device: Device, rng: np.random.Generator) -> None:
    x, before, weight, want = exact(rng, BF16, D_FP4)
    given = device.put(x), device.put(weight), 0.0
    for layout, poisoned in memories(D_FP4 // 16, E4M3).items():
        scales, first = device.put(poisoned), 3 if layout in ("tiles", "words") else 0
        form = ops.NvFp4(scales, GLOBAL, tiles="128x4" if first else None, first_row=first)
        q = ops.rmsnorm(*given, residual=device.put(before.copy()), out_format=form)
        np.testing.assert_array_equal(device.get(q), nvfp4(want, GLOBAL)[0])
        np.testing.assert_array_equal(fp4_in(device.get(scales), layout, first), nvfp4(want, GLOBAL)[1])
    for layout, poisoned in memories(D_FP4 // 32, E8M0).items():
        scales, first = device.put(poisoned), 3 if layout in ("tiles", "words") else 0
        q = ops.rmsnorm(*given, residual=device.put(before.copy()), out_format=ops.MxFp4(scales, tiles="128x4" if first else None, first_row=first))
        np.testing.assert_array_equal(device.get(q), mxfp4(want, "floor")[0])
        np.testing.assert_array_equal(fp4_in(device.get(scales), layout, first), mxfp4(want, "floor")[1])


def test_a_row_does_not_depend_on_its_batch_and_nan_stays_in_its_row(device: Device, rng: np.random.Generator) -> None:
    x, before, weight = random(rng, (17, 512), F32), random(rng, (17, 512), F32), device.put(random(rng, (512,), F32))
    x[4, 100] = np.nan
    whole = device.get(ops.rmsnorm(device.put(x), weight, residual=device.put(before.copy())))
    assert np.isnan(whole[4]).all() and not np.isnan(np.delete(whole, 4, 0)).any()
    for t in (0, 9, 16):
        alone = ops.rmsnorm(device.put(x[t : t + 1].copy()), weight, residual=device.put(before[t : t + 1].copy()))
        assert same_bits(device.get(alone)[0], whole[t])
