"""Tests that `ops.store_rows` stores rows into the slots of a paged cache bit for bit, and writes nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from devices import Device
from mlafix import ops
from numerics import BF16, E4M3, E8M0, F16, F32, garbage, same_bits

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

PAGES, SIZE, H, D = 5, 3, 2, 64

LAYOUTS: dict[str, Callable[[tuple[int, ...]], np.ndarray]] = {
    "tokens before heads": lambda shape: np.empty(shape, np.uint8),
    "heads before tokens": lambda shape: np.empty((shape[0], shape[2], shape[1], shape[3]), np.uint8).transpose(0, 2, 1, 3),
    "keys beside values": lambda shape: np.empty((shape[0], 2, *shape[1:]), np.uint8)[:, 1],
    "pages with gaps": lambda shape: np.empty((shape[0], shape[1] + 2, *shape[2:]), np.uint8)[:, : shape[1]],
}


def laid_out(layout: str, values: np.ndarray) -> np.ndarray:
    """Returns a cache in this layout that contains the values. All bytes between them are 0x5A."""
    memory = LAYOUTS[layout]((*values.shape[:-1], values.shape[-1] * values.itemsize))
    base = memory.base if memory.base is not None else memory
    base[...] = 0x5A
    cache = memory.view(values.dtype)
    cache[...] = values
    return cache


def slots_of(rng: np.random.Generator, count: int) -> np.ndarray:
    """Returns distinct slots. Some are invalid: negative, or past the end."""
    slots = rng.permutation(PAGES * SIZE)[:count].astype(np.int64)
    slots[rng.random(count) < 0.2] = -1
    if count > 3:
        slots[1], slots[2] = PAGES * SIZE, -(2**31)
    return slots


def placed(cache: np.ndarray, rows: np.ndarray, slots: np.ndarray) -> np.ndarray:
    want = cache.copy()
    for slot, row in zip(slots, rows):
        if 0 <= slot < PAGES * SIZE:
            want[slot // SIZE, slot % SIZE] = row
    return want


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("stored, dtype, kind", [(BF16, BF16, "i8"), (F16, F32, "i4"), (F32, BF16, "i8"), (BF16, F32, "i8"), (F32, F32, "i4")], ids=str)
def test_rows_lie_in_their_slots_and_nothing_else_changes(
    layout: str, stored: np.dtype, dtype: np.dtype, kind: str, device: Device, rng: np.random.Generator
) -> None:
    for count in (0, 1, 12):
        before = garbage(rng, (PAGES, SIZE, H, D), stored)
        rows, slots = rng.normal(0, 1, (count, H, D)).astype(F32).astype(dtype), slots_of(rng, count)
        mine = laid_out(layout, before)
        around = (mine.base if mine.base is not None else mine).copy()
        cache = device.put(mine)
        ops.store_rows(cache, device.put(rows), device.put(slots.astype(kind)))
        assert same_bits(device.get(cache), placed(before, rows.astype(F32).astype(stored), slots))
        if isinstance(cache, np.ndarray):
            mine[...] = before
            assert same_bits(mine.base if mine.base is not None else mine, around)


def forms() -> dict[str, tuple[Callable[[Any], Any], np.dtype, int, tuple[int, np.dtype] | None]]:
    """Returns formats by name. Each has the function that makes the format from its scales, the cache's dtype, the
    elements per row, and the number and dtype of scales per row. The last entry is None if the format has one scale."""
    return {
        "one scale": (lambda _: ops.Fp8(0.25), E4M3, D, None),
        "groups": (ops.Fp8Groups, E4M3, D, (2, F32)),
        "groups, powers of two": (lambda scales: ops.Fp8Groups(scales, power_of_two=True), E4M3, D, (4, F32)),
        "groups, bytes": (ops.Fp8Groups, E4M3, D, (2, E8M0)),
        "MXFP8": (ops.MxFp8, E4M3, D, (2, np.dtype(np.uint8))),
        "MXFP4": (ops.MxFp4, np.dtype(np.uint8), D // 2, (2, np.dtype(np.uint8))),
        "NVFP4": (lambda scales: ops.NvFp4(scales, 3.0), np.dtype(np.uint8), D // 2, (4, np.dtype(np.uint8))),
    }


@pytest.mark.parametrize("name", forms())
@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
def test_formats_have_the_bits_of_quantised_rows(name: str, dtype: np.dtype, device: Device, rng: np.random.Generator) -> None:
    form, stored, length, groups = forms()[name]
    rows, slots = (rng.standard_normal((11, H, D)) * 10.0 ** rng.integers(-4, 3, (11, H, 1))).astype(dtype), slots_of(rng, 11)
    rows[0, 0], rows[3, 1, 5] = 0, np.nan
    before = rng.integers(0, 256, (PAGES, SIZE, H, length), dtype=np.uint8).view(stored)
    cache, scales, alone = device.put(before.copy()), None, None
    if groups is None:
        quantised = ops.quantize_fp8_static(device.put(rows), 0.25)
    else:
        scales_before = rng.integers(0, 256, (PAGES, SIZE, H, groups[0] * groups[1].itemsize), dtype=np.uint8).view(groups[1])
        scales, alone = device.put(scales_before.copy()), device.put(np.zeros((11, H, groups[0]), groups[1]))
        quantised = ops.quantize_groups(device.put(rows), form(alone))
    ops.store_rows(cache, device.put(rows), device.put(slots), out_format=form(scales))
    assert same_bits(device.get(cache), placed(before, device.get(quantised), slots))
    if groups is not None:
        assert same_bits(device.get(scales), placed(scales_before, device.get(alone), slots))


def test_latent_rows_have_no_heads(device: Device, rng: np.random.Generator) -> None:
    rows, slots = rng.normal(0, 1, (7, 576)).astype(F32).astype(BF16), slots_of(rng, 7)
    before = garbage(rng, (PAGES, SIZE, 576), BF16)
    cache = device.put(before.copy())
    ops.store_rows(cache, device.put(rows), device.put(slots))
    assert same_bits(device.get(cache), placed(before, rows, slots))
