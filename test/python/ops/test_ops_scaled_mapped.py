"""Tests merge_states_mapped with results in fp8 and fp4. Rows that belong to groups have the bits of a merge followed
by a quantiser; other rows are not written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calls import Right
from devices import Device
from mlafix import ArgumentError, ops
from numerics import BF16, E4M3, F16, F32, garbage, poison, same_bits
from states import make_states
from test_ops_fp4 import nvfp4
from test_ops_mapped import Groups, some
from test_ops_scaled import quantised

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

HEADS, DIM, GLOBAL = 3, 128, 20.0


def arguments(groups: Groups, device: Device, rng: np.random.Generator, dtype: np.dtype) -> tuple[list[Any], dict[str, Any]]:
    """Returns parts, lses and maps on the device, and keyword arguments. All heads but the first have a sink."""
    states = make_states(rng, 1, groups.parts, HEADS, DIM, dtype)
    maps = [None if x is None else device.put(np.array(x, np.int32)) for x in (groups.indptr, groups.part_map, groups.row_map)]
    sinks = rng.normal(0, 3, HEADS).astype(np.float32)
    sinks[0] = -np.inf
    return [device.put(states.v[0]), device.put(states.s[0]), *maps], {"min_parts": groups.min_parts, "sinks": device.put(sinks)}


def unfused(groups: Groups, device: Device, given: list[Any], more: dict[str, Any], dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Returns the rows, in f32, and the lse of the same merge without a format."""
    out, lse = device.poisoned((groups.rows, HEADS, DIM), dtype), device.poisoned((groups.rows, HEADS), F32)
    ops.merge_states_mapped(out, *given, out_lse=lse, **more)
    return device.get(out).astype(F32), device.get(lse)


@pytest.mark.parametrize("min_parts", [0, 2])
@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
def test_rows_that_groups_name_have_the_bits_of_the_unfused_sequence(device: Device, rng: np.random.Generator, dtype: np.dtype,
                                                                     min_parts: int) -> None:
    """The calls have sinks, two bases and a replacement for an empty lse. Rows without a group and their scales are not
    written."""
    groups = some(rng, 9, 4, min_parts=min_parts)
    given, more = arguments(groups, device, rng, dtype)
    more |= {"base": ("2", "e"), "empty_lse": np.inf}
    named = np.isin(np.arange(groups.rows), list(groups.members))
    assert 0 < named.sum() < groups.rows
    for source in ("f32", "output"):
        rows, lse = unfused(groups, device, given, more, F32 if source == "f32" else BF16)
        told = {} if source == "f32" else {"out_dtype": "bf16"}
        want, want_scales = quantised(rows, 2, False)
        q, scales, q_lse = (device.poisoned(shape, kind) for shape, kind in (
            ((groups.rows, HEADS, DIM), E4M3), ((groups.rows, HEADS, 2), F32), ((groups.rows, HEADS), F32)))
        ops.merge_states_mapped(q, *given, out_lse=q_lse, out_format=ops.Fp8Groups(scales, quantize_from=source), **more, **told)
        same_rows(device.get(q), want, named)
        same_rows(device.get(scales), want_scales, named)
        same_rows(device.get(q_lse), lse, named)


def same_rows(got: np.ndarray, want: np.ndarray, named: np.ndarray) -> None:
    """Asserts that rows with a group have the expected contents, and that all others are poison."""
    assert same_bits(got[~named], poison(got[~named].shape, got.dtype))
    np.testing.assert_array_equal(got[named].astype(F32), want[named].astype(F32))


def test_one_scale_is_given(device: Device, rng: np.random.Generator) -> None:
    groups = some(rng, 9, 4)
    given, more = arguments(groups, device, rng, BF16)
    rows, lse = unfused(groups, device, given, more, F32)
    named = np.isin(np.arange(groups.rows), list(groups.members))
    q, q_lse = device.poisoned(rows.shape, E4M3), device.poisoned(lse.shape, F32)
    ops.merge_states_mapped(q, *given, out_lse=q_lse, out_format=ops.Fp8(0.03), **more)
    same_rows(device.get(q), np.clip(rows * (F32.type(1) / F32.type(0.03)), -448, 448).astype(E4M3), named)
    same_rows(device.get(q_lse), lse, named)


def test_words_of_scales_and_their_padding(device: Device, rng: np.random.Generator) -> None:
    """Three heads have one group each, so their scales are three bytes of a word. The fourth byte is cleared in rows
    with a group."""
    groups = some(rng, 9, 4)
    given, more = arguments(groups, device, rng, BF16)
    rows, _ = unfused(groups, device, given, more, F32)
    named = np.isin(np.arange(groups.rows), list(groups.members))
    q, words = device.poisoned(rows.shape, E4M3), device.poisoned((groups.rows, 1), np.int32)
    ops.merge_states_mapped(q, *given, out_format=ops.Fp8Groups(words), **more)
    want, scales = quantised(rows, 1, True)
    powers = np.where(np.isnan(scales[..., 0]), 255, np.frexp(scales[..., 0])[1] - 1 + 127)
    stored = device.get(words).view(np.uint8)
    assert (stored[~named] == 255).all() and (stored[named, 3] == 0).all()
    np.testing.assert_array_equal(stored[named, :3], powers[named])
    same_rows(device.get(q), want, named)


def test_fp4_in_tiles(device: Device, rng: np.random.Generator) -> None:
    groups = some(rng, 9, 4)
    given, more = arguments(groups, device, rng, BF16)
    rows, _ = unfused(groups, device, given, more, F32)
    named = np.isin(np.arange(groups.rows), list(groups.members))
    q = device.put(np.full((groups.rows, HEADS, DIM // 2), 0xA5, np.uint8))
    flat, tiles = device.put(np.full((groups.rows, HEADS * DIM // 16), 0xA5, np.uint8)), device.put(np.full((128, HEADS * DIM // 16), 0xA5, np.uint8))
    ops.merge_states_mapped(q, *given, out_format=ops.NvFp4(flat, GLOBAL), **more)
    first = device.get(q).copy()
    ops.merge_states_mapped(q, *given, out_format=ops.NvFp4(tiles, GLOBAL, tiles="128x4", first_row=7, clear_padding=False), **more)
    want, scales = nvfp4(rows, GLOBAL)
    for got, one in ((first, want), (device.get(q), want), (device.get(flat).reshape(scales.shape), scales)):
        np.testing.assert_array_equal(got[named], one[named])
        assert (got[~named] == 0xA5).all()
    assert (device.get(tiles) != 0xA5).sum() == (scales[named] != 0xA5).sum()


@pytest.mark.parametrize("made", [
    Groups([0, 2, 5], [4, 9, -1, 2, 2**31 - 1], [1, 0], 3, 5),
    Groups([0, 2, 3, 4], [0, 1, 2, 3], [3, -1, 2**31 - 1], 3, 4),
    Groups([4, 1, 3, -5, 2], None, None, 4, 5),
    Groups([0, 1], [0], [0], 1, 0),  # no parts
    Groups([0], [], [], 2, 3),  # no groups
    Groups([0, 2], [1, 0], [0], 0, 2),  # no rows
], ids=str)  # fmt: skip
def test_no_map_leads_out_of_bounds(made: Groups, device: Device, rng: np.random.Generator) -> None:
    given, more = arguments(made, device, rng, BF16)
    rows, _ = unfused(made, device, given, more, F32)
    named = np.isin(np.arange(made.rows), list(made.members))
    q, scales = device.poisoned(rows.shape, E4M3), device.poisoned((made.rows, HEADS, 1), F32)
    ops.merge_states_mapped(q, *given, out_format=ops.Fp8Groups(scales), **more)
    want, want_scales = quantised(rows, 1, False)
    same_rows(device.get(q), want, named)
    same_rows(device.get(scales), want_scales, named)


def test_parts_of_no_weight_hold_anything(device: Device, rng: np.random.Generator) -> None:
    """Rows whose states are all empty become zeros with the smallest scale, whatever their payloads contain."""
    parts, lses = garbage(rng, (4, 1, 64), BF16), np.array([-np.inf, np.inf, -np.inf, np.inf], F32)[:, None]
    q, scales = device.poisoned((2, 1, 64), E4M3), device.poisoned((2, 1, 1), F32)
    ops.merge_states_mapped(q, device.put(parts), device.put(lses), device.put(np.array([0, 4, 4], np.int32)), out_format=ops.Fp8Groups(scales))
    assert not device.get(q).view(np.uint8).any() and (device.get(scales) == F32.type(1e-10) / F32.type(448)).all()


def groups_in(shape: tuple[int, ...], **more: Any) -> ops.Fp8Groups:
    return ops.Fp8Groups(np.ones(shape, F32), **more)


@pytest.mark.parametrize("changed, message", [
    (dict(out_format=np.ones((5, 4, 1), F32)), 'argument "out_format": expected an instance of Fp8, .*got ndarray'),
    (dict(out_format=None, out_dtype="bf16"), "argument \"out_dtype\": expected None, since only an out_format with quantize_from='output' uses it, got 'bf16'"),
    (dict(out_dtype="bf16"), "argument \"out_dtype\": expected None, since only an out_format with quantize_from='output' uses it, got 'bf16'"),
    (dict(out_format=groups_in((5, 4, 1)), out_dtype="bf16"), "argument \"out_dtype\": expected None, since only an out_format .*, got 'bf16'"),
    (dict(out_format=groups_in((5, 4, 1), quantize_from="output"), out_dtype="i32"), 'argument "Fp8Groups.quantize_from": expected .*no bf16, f16 or f32'),
    (dict(out_format=groups_in((6, 4, 1))), r'argument "Fp8Groups.scales": expected shape \[5, 4, G\].*got \(6, 4, 1\)'),
    (dict(out_format=groups_in((5, 4, 3))), 'argument "Fp8Groups.scales": expected .*G a divisor of 64'),
    (dict(out_format=ops.Fp8Groups(np.ones((5, 4, 1), np.float64))), 'argument "Fp8Groups.scales": expected dtype float32.*got float64'),
    (dict(out_format=ops.Fp8Groups([1.0])), 'argument "Fp8Groups.scales": expected an array of numpy.s or torch.s, got list'),
    (dict(out_format=ops.Fp8(np.ones(2, F32))), 'argument "Fp8.scale": expected size 1 .*got 2'),
    (dict(out=np.ones((5, 4, 64), F32)), 'argument "out": expected dtype f8e4m3fn.*got f32'),
    (dict(out=np.ones((5, 4, 65), E4M3)), 'argument "(out|parts)": expected size .*got'),
    (dict(out=None), 'argument "out": expected an array, got NoneType'),
    (dict(parts=np.ones((7, 64), F32)), r'argument "parts": expected 3 dims \[p, H, D\], got 2'),
    (dict(part_map=np.ones(3, np.int64)), 'argument "part_map": expected dtype i32.*got i64'),
    (dict(base="x"), "argument \"base\": expected 'e' or '2', got 'x'"),
    (dict(out_format=ops.NvFp4(np.ones((5, 4, 4), np.uint8), 1.0)), r'argument "out": expected shape \[5, 4, 32\], two elements'),
])  # fmt: skip
def test_wrong_arguments(changed: dict[str, Any], message: str) -> None:
    right = Right(Device())
    right.refuses("merge_states_mapped", message, **{"out": right.out(dtype=E4M3), "out_format": ops.Fp8(1.0), **changed})


def test_scales_lie_apart_from_all_else() -> None:
    """N11: memory that a launch writes must not overlap with another argument."""
    right = Right(Device())
    given = {**right.arguments("merge_states_mapped"), "out": right.out(dtype=E4M3)}
    whole = np.ones((7, 4), F32)
    given["lses"] = whole
    with pytest.raises(ArgumentError, match='argument "Fp8Groups.scales": expected memory apart from .*"lses"'):
        ops.merge_states_mapped(**given, out_format=ops.Fp8Groups(whole[:5]))
