"""Tests the kernels of examples/python/cookbook against numpy."""

from __future__ import annotations

from types import ModuleType

import contract
import numpy as np
import pytest
from devices import Device
from numerics import BF16, E4M3, E5M2, F16, F32, poison, round_to

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")


def inputs(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    x = (rng.standard_normal(shape) * 10.0 ** rng.integers(-4, 3, (*shape[:-1], 1))).astype(np.float32)
    x[0] = 0
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
@pytest.mark.parametrize("size", [8, 128, 500])
def test_rows_of_int8(cookbook: dict[str, ModuleType], device: Device, rng: np.random.Generator, dtype: np.dtype, size: int) -> None:
    x = inputs(rng, (37, size), dtype)
    q, scale = device.poisoned(x.shape, np.int8), device.poisoned((37,), F32)
    cookbook["quantize"].quantize_int8(q, scale, device.put(x))
    wide = x.astype(np.float32)
    want = np.maximum(np.abs(wide).max(axis=1), np.float32(1e-10)) / np.float32(127)
    np.testing.assert_array_equal(device.get(scale), want)
    np.testing.assert_array_equal(device.get(q), np.clip(np.rint(wide / want[:, None]), -128, 127).astype(np.int8))


@pytest.mark.parametrize("dtype", [BF16, F16], ids=str)
@pytest.mark.parametrize("groups, size", [(4, 128), (3, 64), (2, 10)])
def test_groups_of_fp8(cookbook: dict[str, ModuleType], device: Device, rng: np.random.Generator, dtype: np.dtype, groups: int, size: int) -> None:
    each = inputs(rng, (19, groups, size), dtype)
    x = each.reshape(19, -1)
    q, scale, y = device.poisoned(x.shape, E4M3), device.poisoned((19, groups), F32), device.poisoned(x.shape, dtype)
    cookbook["quantize"].quantize_groups(q[:, None], scale[:, None, None], None, 0, device.put(x)[:, None])
    cookbook["quantize"].dequantize_groups(y, q, scale)
    wide = each.astype(np.float32)
    want = np.maximum(np.abs(wide).max(axis=2), np.float32(1e-10)) / np.float32(448)
    np.testing.assert_array_equal(device.get(scale), want)
    stored = round_to(E4M3, (wide / want[..., None]).astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(device.get(q).astype(np.float32), stored.reshape(x.shape))
    back = round_to(dtype, (stored * want[..., None]).astype(np.float64))
    np.testing.assert_array_equal(device.get(y).astype(np.float64), back.reshape(x.shape))


@pytest.mark.parametrize("dtype", [BF16, F32], ids=str)
@pytest.mark.parametrize("groups, size", [(1, 128), (4, 128), (3, 64), (5, 20)])
def test_a_merge_with_scaled_groups(cookbook: dict[str, ModuleType], device: Device, rng: np.random.Generator, dtype: np.dtype, groups: int, size: int) -> None:
    shape = (7, 3, groups * size)
    a, b = (rng.standard_normal(shape).astype(dtype) for _ in range(2))
    a_lse, b_lse = (rng.standard_normal(shape[:2]).astype(F32) for _ in range(2))
    a_lse[1], b_lse[2], a_lse[3], b_lse[3] = -np.inf, np.inf, -np.inf, -np.inf
    a[1], b[2], b[3] = np.nan, np.nan, np.nan
    q, scales, lse = device.poisoned(shape, E4M3), device.poisoned((7, 3, groups), F32), device.poisoned(shape[:2], F32)
    cookbook["merge_scaled"].merge_groups(q, scales, lse, *(device.put(array) for array in (a, a_lse, b, b_lse)))
    out, out_lse = device.poisoned(shape, dtype), device.poisoned(shape[:2], F32)
    none = np.full(shape[:2], -np.inf, F32)
    cookbook["merge_scaled"].merge_scaled(out, out_lse, q, scales, lse, device.put(b), device.put(none))
    merged, merged_lse = contract.merge(np.stack([a, b]), np.stack([a_lse, b_lse]))
    row = merged.value
    got = device.get(scales)
    np.testing.assert_allclose(got, np.maximum(np.abs(row.reshape(7, 3, groups, size)).max(3), 1e-10) / 448, rtol=4e-6)
    back = device.get(q).astype(np.float64) * np.repeat(got, size, 2)
    # The allowed error is half a unit of fp8 (2^-4 of the value), plus half the smallest fp8 number (2^-9) times the scale.
    assert (np.abs(back - row) <= 2.0**-4 * np.abs(row) + np.repeat(got, size, 2) * 2.0**-10).all()
    merged_lse.check(device.get(lse), "lse")
    # merge_scaled has merged the stored state with an empty state, so its result is the stored state itself.
    copied = round_to(dtype, (device.get(q).astype(np.float32) * np.repeat(got, size, 2)).astype(np.float64))
    np.testing.assert_array_equal(device.get(out).astype(np.float64), np.where(np.isinf(device.get(lse))[..., None], 0, copied))
    np.testing.assert_array_equal(device.get(out_lse), device.get(lse))


@pytest.mark.parametrize("dtype", [BF16, E5M2, np.dtype(np.uint8), np.dtype(np.bool_), np.dtype(np.int64)], ids=str)
def test_blocks_are_cleared_and_copied(cookbook: dict[str, ModuleType], device: Device, rng: np.random.Generator, dtype: np.dtype) -> None:
    shape = (9, 4, 48)
    bits = f"u{dtype.itemsize}"
    before = rng.integers(0, 2 if dtype == np.bool_ else 256, (*shape, dtype.itemsize), np.uint8).view(bits).reshape(shape)
    cache, ids = device.put(before.view(dtype).copy()), np.array([3, -1, 8, 9, 0, 3, 2**40], np.int64)
    cookbook["blocks"].zero_blocks(cache, device.put(ids))
    want = before.copy()
    want[[3, 8, 0]] = 0
    pairs = np.array([[1, 2], [7, 5], [-4, 6], [2, 9]], np.int64)
    target = device.put(poison(shape, dtype) if dtype != np.bool_ else np.ones(shape, np.bool_))
    cookbook["blocks"].copy_blocks(target, cache, device.put(pairs))
    np.testing.assert_array_equal(device.get(cache).view(bits), want)
    copied = np.full((*shape, dtype.itemsize), 1 if dtype == np.bool_ else 255, np.uint8).view(bits).reshape(shape)
    copied[2], copied[5], copied[6] = want[1], want[7], 0
    np.testing.assert_array_equal(device.get(target).view(bits), copied)


@pytest.mark.parametrize("size", [32, 64, 5])
def test_the_table_of_rope(cookbook: dict[str, ModuleType], device: Device, size: int) -> None:
    positions = 3000
    table = device.poisoned((positions, 2, size), F32)
    cookbook["rope"].rope_table(table, 10000.0)
    got = device.get(table).astype(np.float64)
    angle = np.arange(positions)[:, None] * 10000.0 ** (-np.arange(size) / size)
    error = np.maximum(np.abs(got[:, 0] - np.cos(angle)), np.abs(got[:, 1] - np.sin(angle)))
    # the error of sin and cos, plus that of their argument (N10 of docs/Dialect.md)
    assert (error <= 2.1e-7 + 4e-6 * angle).all()


@pytest.mark.parametrize("spelled", ["halves", "pairs"])
@pytest.mark.parametrize("dtype, of_table", [(BF16, F32), (BF16, BF16), (F16, F16), (F32, F32)], ids=str)
@pytest.mark.parametrize("size", [64, 32, 5])
def test_heads_are_turned_in_place(
    cookbook: dict[str, ModuleType], device: Device, rng: np.random.Generator, dtype: np.dtype, of_table: np.dtype, size: int, spelled: str
) -> None:
    x = rng.standard_normal((7, 3, 2, size)).astype(dtype)
    table = rng.standard_normal((20, 2, size)).astype(of_table)
    positions = rng.integers(0, 20, 7)
    positions[3] = 20  # a position past the end of the table
    laid_out = np.ascontiguousarray(x if spelled == "halves" else x.swapaxes(2, 3)).reshape(7, 3, -1)
    turned = device.put(laid_out.copy())
    kernel = cookbook["rope"].apply_rope if spelled == "halves" else cookbook["rope"].apply_rope_pairs
    kernel(turned, device.put(positions), device.put(table))
    got = np.asarray(device.get(turned)).reshape(7, 3, *((2, size) if spelled == "halves" else (size, 2)))
    got = (got if spelled == "halves" else got.swapaxes(2, 3)).astype(np.float64)
    angles = np.where(positions[:, None, None] < 20, table[positions % 20].astype(np.float64), 0)[:, None]
    (a, b), (c, s) = (each.astype(np.float64).swapaxes(0, 2).swapaxes(1, 2) for each in (x, np.broadcast_to(angles, x.shape)))
    unit = {BF16: 2.0**-8, F16: 2.0**-11}.get(dtype, 2.0**-24)
    for half, exact, size_of in ((0, a * c - b * s, np.abs(a * c) + np.abs(b * s)), (1, b * c + a * s, np.abs(b * c) + np.abs(a * s))):
        assert (np.abs(got[:, :, half] - exact) <= unit * np.abs(exact) + 2.0**-22 * size_of).all()


@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
@pytest.mark.parametrize("size", [1, 96, 128, 2048, 14336])
def test_swiglu_of_two_halves(cookbook: dict[str, ModuleType], device: Device, rng: np.random.Generator, dtype: np.dtype, size: int) -> None:
    x = (8 * rng.standard_normal((6, 2 * size))).astype(dtype)
    x[0, 0] = -np.inf
    y = device.poisoned((6, size), dtype)
    cookbook["swiglu"].swiglu(y, device.put(x))
    a, b = np.split(x.astype(np.float64), 2, axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        want = a / (1 + np.exp(-a)) * b
    got = device.get(y).astype(np.float64)
    assert np.isnan(got[0, 0]) and np.isnan(want[0, 0])  # inf / inf
    unit = {BF16: 2.0**-8, F16: 2.0**-11}.get(dtype, 2.0**-24)
    np.testing.assert_allclose(got.ravel()[1:], want.ravel()[1:], rtol=unit + 2e-5, atol=6e-8 if dtype == F16 else 1e-30)


def test_rows_beside_pairs_are_moved_in_wide_accesses(cookbook: dict[str, ModuleType]) -> None:
    """The elements of pairs, x[t, h, :, 0] and x[t, h, :, 1], are moved together in wide accesses. The kernel has no
    row along the whole product (K 2). Rows along K, such as those of the table, are therefore ordinary rows, and not
    rows of one element a group. They are moved in wide accesses, too."""
    ptx = cookbook["rope"].apply_rope_pairs.ptx(target="sm_90", H=128, K=64, T="bf16", C="bf16")
    dense = ptx.split(".entry apply_rope_pairs_dense(")[1].split(".entry")[0]
    assert dense.count("ld.global.v4.b32") == 2 and dense.count("st.global.v4.b32") == 2 and "ld.global.v2.b32" in dense


@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
def test_a_hadamard_transform(cookbook: dict[str, ModuleType], device: Device, rng: np.random.Generator, dtype: np.dtype) -> None:
    x = rng.standard_normal((3, 5, 128)).astype(dtype)
    turned = device.put(x.copy())
    cookbook["hadamard"].hadamard_128(turned)
    matrix = np.ones((1, 1))
    while len(matrix) < 128:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    step = {BF16: 2**-8, F16: 2**-11, F32: 2**-21}[dtype]
    want = x.astype(np.float64) @ matrix / 128**0.5
    np.testing.assert_allclose(np.asarray(device.get(turned)).astype(np.float64), want, rtol=step, atol=4 * step)
