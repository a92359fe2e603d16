"""Tests `fixup_merge`. Rows that belong to sequences get the bits of separate launches: a fixup, a merge and, for
formats, a quantiser. No other row is written, whatever the offsets are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import contract
from calls import D, H, N, Right
from devices import Device
from mlafix import ArgumentError, ops
from numerics import BF16, E4M3, E8M0, F16, F32, garbage, poison, same_bits
from states import LAYOUTS, buffer_of, lay_out, make_states, untouched_outside
from test_ops_fp4 import nvfp4
from test_ops_mxfp4 import mxfp4
from test_ops_scaled import quantised
from packing import rows_of

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

HEADS, DIM, GLOBAL = 3, 128, 20.0
# The lengths of sequences, the number of rows before the first sequence, and the number after the last. In the batches
# of more than 128 rows, the kernel finds out which rows have keys before it loads the prefix (FEW in kernels/merge.py).
BATCHES = [([2, 3, 0, 1, 4], 0, 2), ([1] * 9, 0, 0), ([4], 3, 1), ([], 0, 5), ([0, 0], 2, 2), ([17, 0, 1, 90, 30, 5], 4, 7), ([1] * 150, 0, 0)]


class Batch:
    """A batch of states. The prefixes of sequences without keys contain garbage."""

    def __init__(self, rng: np.random.Generator, lengths: list[int], before: int, after: int, dtype: np.dtype) -> None:
        self.starts = (before + np.concatenate([[0], np.cumsum(lengths)])).astype(np.int32)
        self.lens = rng.integers(-1, 3, len(lengths)).astype(np.int32)
        self.rows = int(self.starts[-1]) + after
        states = make_states(rng, 2, self.rows, HEADS, DIM, dtype)
        self.dead = contract.dead_rows(self.rows, self.lens, self.starts)
        states.v[0, self.dead] = garbage(rng, states.v[0, self.dead].shape, dtype)
        states.s[0, self.dead] = rng.choice(np.array([np.nan, 5, np.inf, 700], F32), states.s[0, self.dead].shape)
        self.states = [states.v[0], states.s[0], states.v[1], states.s[1]]
        self.inside = np.zeros(self.rows, bool)
        self.inside[before : int(self.starts[-1])] = True

    def on(self, device: Device) -> list[Any]:
        return [device.put(x) for x in (*self.states, self.lens, self.starts)]

    def unfused(self, device: Device, dtype: np.dtype, base: Any = "e") -> tuple[np.ndarray, np.ndarray]:
        """Returns the rows, in f32, and the lse of a fixup followed by a merge into `dtype`."""
        prefix, prefix_lse, suffix, suffix_lse = (device.put(x.astype(dtype) if x.ndim == 3 else x.copy()) for x in self.states)
        ops.fixup_zero_kv_rows(prefix, prefix_lse, device.put(self.lens), device.put(self.starts), lse_layout="nh")
        out, lse = ops.merge_attn_states(prefix, prefix_lse, suffix, suffix_lse, lse_layout="nh", base=base)
        return device.get(out).astype(F32), device.get(lse)

    def check(self, got: np.ndarray, want: np.ndarray) -> None:
        """Asserts that rows of sequences have the expected contents, and that all others are poison."""
        assert same_bits(got[~self.inside], poison(got[~self.inside].shape, got.dtype))
        np.testing.assert_array_equal(got[self.inside].astype(F32), want[self.inside].astype(F32))


@pytest.mark.parametrize("lengths, before, after", BATCHES, ids=str)
@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
def test_rows_without_a_format_have_the_bits_of_the_fixup_and_the_merge(device: Device, rng: np.random.Generator, dtype: np.dtype,
                                                                        lengths: list[int], before: int, after: int) -> None:
    """fixup_merge without a format equals a fixup followed by a merge. The result is stored in new memory, or in place
    of the prefix."""
    batch = Batch(rng, lengths, before, after, dtype)
    for base in ("e", "2"):
        want, want_lse = batch.unfused(device, dtype, base)
        given = batch.on(device)
        for out, out_lse in ((device.poisoned((batch.rows, HEADS, DIM), dtype), device.poisoned((batch.rows, HEADS), F32)), given[:2]):
            old, old_lse = device.get(out).copy(), device.get(out_lse).copy()
            assert ops.fixup_merge(*given, out=out, out_lse=out_lse, base=base) == (out, out_lse)  # type: ignore[arg-type]
            for got, before_it, wanted in ((device.get(out), old, want.astype(dtype)), (device.get(out_lse), old_lse, want_lse)):
                assert same_bits(got[~batch.inside], before_it[~batch.inside])
                np.testing.assert_array_equal(got[batch.inside].astype(F32), wanted[batch.inside].astype(F32))


@pytest.mark.parametrize("lengths, before, after", BATCHES, ids=str)
@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
def test_one_scale_has_the_bits_of_the_fixup_and_the_merge(device: Device, rng: np.random.Generator, dtype: np.dtype, lengths: list[int],
                                                           before: int, after: int) -> None:
    batch = Batch(rng, lengths, before, after, dtype)
    for base in ("e", "2"):
        given, scale = batch.on(device), device.put(np.full(1, 0.07, F32))
        q, lse = device.poisoned((batch.rows, HEADS, DIM), E4M3), device.poisoned((batch.rows, HEADS), F32)
        assert ops.fixup_merge(*given, out=q, out_lse=lse, out_format=ops.Fp8(scale), base=base) == (q, lse)  # type: ignore[arg-type]
        assert all(same_bits(device.get(x), y) for x, y in zip(given, batch.states))  # the inputs are not changed
        prefix, prefix_lse, suffix, suffix_lse = batch.on(device)[:4]
        fixed, fixed_lse = device.put(batch.states[0].copy()), device.put(batch.states[1].copy())
        ops.fixup_zero_kv_rows(fixed, fixed_lse, *given[4:], lse_layout="nh")
        want, want_lse = ops.merge_attn_states(fixed, fixed_lse, suffix, suffix_lse, out_format=ops.Fp8(scale), lse_layout="nh", base=base)  # type: ignore[arg-type]
        batch.check(device.get(q), device.get(want))
        batch.check(device.get(lse), device.get(want_lse))
        there = np.stack([np.broadcast_to(~batch.dead[:, None], (batch.rows, HEADS)), np.ones((batch.rows, HEADS), bool)])[:, batch.inside]
        a, s, b, t = (x[batch.inside] for x in batch.states)
        row, total = contract.merge(np.stack([a, b]), np.stack([s, t]), base=np.e if base == "e" else 2.0, out_dtype=E4M3, scale=0.07, present=there)
        row.check(device.get(q)[batch.inside], "out")
        total.check(device.get(lse)[batch.inside], "out_lse")


@pytest.mark.parametrize("lengths, before, after", BATCHES, ids=str)
def test_a_group_of_all_heads(device: Device, rng: np.random.Generator, lengths: list[int], before: int, after: int) -> None:
    batch = Batch(rng, lengths, before, after, BF16)
    rows, lse = batch.unfused(device, F32)
    q, q_lse, scales = device.poisoned(rows.shape, E4M3), device.poisoned(lse.shape, F32), device.poisoned((batch.rows, 1), F32)
    ops.fixup_merge(*batch.on(device), out=q, out_lse=q_lse, out_format=ops.Fp8Groups(scales))
    want, numbers = quantised(rows.reshape(batch.rows, HEADS * DIM), 1, False)
    batch.check(device.get(q), want.reshape(rows.shape))
    batch.check(device.get(q_lse), lse)
    batch.check(device.get(scales), numbers)


@pytest.mark.parametrize("source", ["f32", "output"])
@pytest.mark.parametrize("lengths, before, after", BATCHES, ids=str)
def test_groups_have_the_bits_of_three_launches(device: Device, rng: np.random.Generator, lengths: list[int], before: int, after: int, source: Any) -> None:
    """Results with groups have the bits of a fixup, a merge and a quantiser. Formats are f32 scales in rows and in
    columns, words, NVFP4 and MXFP4."""
    batch = Batch(rng, lengths, before, after, BF16)
    n, given = batch.rows, batch.on(device)
    rows, lse = batch.unfused(device, F32 if source == "f32" else BF16)
    for groups, columns in ((1, False), (4, True)):
        memory = device.poisoned((HEADS * groups, n) if columns else (n, HEADS, groups), F32)
        q, q_lse = device.poisoned(rows.shape, E4M3), device.poisoned(lse.shape, F32)
        ops.fixup_merge(*given, out=q, out_lse=q_lse, out_format=ops.Fp8Groups(memory.T if columns else memory, quantize_from=source))
        want, numbers = quantised(rows, groups, False)
        batch.check(device.get(q), want)
        batch.check(device.get(q_lse), lse)
        stored = device.get(memory)
        batch.check((np.ascontiguousarray(stored.T) if columns else stored).reshape(n, HEADS, groups), numbers)
    q, words = device.poisoned(rows.shape, E4M3), device.poisoned((n, 1), np.int32)
    ops.fixup_merge(*given, out=q, return_lse=False, out_format=ops.Fp8Groups(words, quantize_from=source))
    want, numbers = quantised(rows, 1, True)
    batch.check(device.get(q), want)
    each = device.get(words).view(np.uint8)
    assert (each[batch.inside, 3] == 0).all() and (each[~batch.inside] == 255).all()
    np.testing.assert_array_equal(each[batch.inside, :3].view(E8M0).astype(F32), numbers[batch.inside, :, 0])
    for make, size, form in (
        (lambda x: nvfp4(x, GLOBAL), 16, lambda scales: ops.NvFp4(scales, GLOBAL, quantize_from=source)),
        (lambda x: mxfp4(x, "ceil"), 32, lambda scales: ops.MxFp4(scales, rounding="ceil", quantize_from=source)),
    ):
        q, stored = (device.put(np.full(shape, 255, np.uint8)) for shape in ((n, HEADS, DIM // 2), (n, HEADS, DIM // size)))
        ops.fixup_merge(*given, out=q, return_lse=False, out_format=form(stored))
        for got, one in zip((q, stored), make(rows) if n else (device.get(q), device.get(stored))):
            batch.check(device.get(got), one)


def test_scales_in_tiles(device: Device, rng: np.random.Generator) -> None:
    """Rows of the tile that belong to no sequence, or to other tokens, keep their bytes."""
    batch = Batch(rng, *BATCHES[0], BF16)
    rows, _ = batch.unfused(device, F32)
    tiles = device.put(np.full((128, HEADS * DIM // 16), 0xA5, np.uint8))
    ops.fixup_merge(*batch.on(device), out_format=ops.NvFp4(tiles, GLOBAL, tiles="128x4", first_row=50, clear_padding=False))
    stored, (_, numbers) = rows_of(device.get(tiles), HEADS * DIM // 16), nvfp4(rows, GLOBAL)
    at = 50 + np.flatnonzero(batch.inside)
    np.testing.assert_array_equal(stored[at], numbers[batch.inside].reshape(len(at), -1))
    assert (np.delete(stored, at, 0) == 0xA5).all()


@pytest.mark.parametrize("lse_layout", ["nh", "hn"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_lie_anywhere(device: Device, rng: np.random.Generator, layout: str, lse_layout: Any) -> None:
    batch = Batch(rng, *BATCHES[5], F16)
    rows, lse = batch.unfused(device, F32)
    want, numbers = quantised(rows, 2, False)
    turn = (lambda x: x) if lse_layout == "nh" else (lambda x: np.ascontiguousarray(x.T))
    a, s, b, t = (lay_out(x if x.ndim == 3 else turn(x), layout) for x in batch.states)
    outs = [lay_out(poison(shape, kind), layout) for shape, kind in ((rows.shape, E4M3), (turn(lse).shape, F32), (numbers.shape, F32))]
    before, (q, q_lse, scales) = [buffer_of(x).copy() for x in outs], [device.put(x) for x in outs]
    ops.fixup_merge(*(device.put(x) for x in (a, s, b, t, batch.lens, batch.starts)), out=q, out_lse=q_lse, out_format=ops.Fp8Groups(scales), lse_layout=lse_layout)
    for got, one in ((q, want), (scales, numbers)):
        batch.check(device.get(got), one)
    batch.check(turn(device.get(q_lse)), lse)
    if isinstance(q, np.ndarray):
        assert all(untouched_outside(x, y) for x, y in zip(outs, before))


def test_the_lse_may_be_an_input(device: Device, rng: np.random.Generator) -> None:
    batch = Batch(rng, *BATCHES[0], BF16)
    want, want_lse = ops.fixup_merge(*batch.on(device), out_format=ops.Fp8(0.1))
    for which in (1, 3):
        given = [device.put(x.copy()) for x in (*batch.states, batch.lens, batch.starts)]
        q, lse = ops.fixup_merge(*given, out_format=ops.Fp8(0.1), out_lse=given[which])
        assert lse is given[which] and same_bits(device.get(q)[batch.inside], device.get(want)[batch.inside])
        assert same_bits(device.get(lse)[batch.inside], device.get(want_lse)[batch.inside])
        assert same_bits(device.get(lse)[~batch.inside], batch.states[which][~batch.inside])


@pytest.mark.parametrize("starts", [[5, 2, 9], [-7, 3, 2**31 - 1], [0, 2**31 - 1, 1], [-(2**31), -5, -1], [9, 9, 9], [3], [], [2**31 - 1, -(2**31), 4]], ids=str)
@pytest.mark.parametrize("n", [7, 140])
def test_no_offsets_lead_out_of_bounds(device: Device, rng: np.random.Generator, n: int, starts: list[int]) -> None:
    """No offsets lead to accesses out of bounds. Each row is the merge, the suffix, or unchanged."""
    states = make_states(rng, 2, n, 1, 32, F32, faults=False)
    given = [device.put(x) for x in (states.v[0], states.s[0], states.v[1], states.s[1], np.array([0, 1], np.int32), np.array(starts, np.int32))]
    scale = device.put(np.ones(1, F32))
    q, lse = device.poisoned((n, 1, 32), E4M3), device.poisoned((n, 1), F32)
    ops.fixup_merge(*given, out=q, out_lse=lse, out_format=ops.Fp8(scale))
    merged = ops.merge_attn_states(*given[:4], out_format=ops.Fp8(scale), lse_layout="nh")
    none = device.put(np.full((n, 1), -np.inf, F32))
    alone = ops.merge_attn_states(given[0], none, *given[2:4], out_format=ops.Fp8(scale), lse_layout="nh")
    made = [(device.get(q).view(np.uint8), device.get(lse)) for q, lse in ((q, lse), merged, alone)]
    made.append((poison((n, 1, 32), np.dtype(np.uint8)), poison((n, 1), F32)))
    for t in range(n):
        assert any((made[0][0][t] == rows[t]).all() and same_bits(made[0][1][t], sums[t]) for rows, sums in made[1:]), t


def test_more_lengths_than_sequences_and_no_rows(device: Device, rng: np.random.Generator) -> None:
    """Lengths past the last sequence, as in a padded batch, have no effect. A batch may have no rows."""
    batch = Batch(rng, *BATCHES[0], BF16)
    want, _ = ops.fixup_merge(*batch.on(device), out_format=ops.Fp8(0.1))
    batch.lens = np.concatenate([batch.lens, [0, -1, 7]]).astype(np.int32)
    q, _ = ops.fixup_merge(*batch.on(device), out_format=ops.Fp8(0.1))
    assert same_bits(device.get(q)[batch.inside], device.get(want)[batch.inside])
    q, lse = ops.fixup_merge(*Batch(rng, [0, 0], 0, 0, BF16).on(device), out_format=ops.Fp8(0.1))
    assert tuple(q.shape) == (0, HEADS, DIM) and tuple(lse.shape) == (0, HEADS)


WRONG = [
    (dict(out_format=np.ones((N, H, 1), F32)), 'argument "out_format": expected an instance of Fp8, .*got ndarray'),
    (dict(out_format=ops.Fp8Groups(np.ones((N, H, 3), F32))), 'argument "Fp8Groups.scales": expected .*G a divisor of 64'),
    (dict(out_format=ops.Fp8(np.ones(2, F32))), 'argument "Fp8.scale": expected size 1 .*got 2'),
    (dict(prefix=np.ones((N, D), F32)), r'argument "prefix": expected 3 dims \[n, H, D\], got 2'),
    (dict(prefix=np.ones((N, H, D)), out=None), 'argument "prefix": expected dtype bf16 or f16 or f32, got float64'),
    (dict(suffix=np.ones((N, H, D), F16)), 'argument "suffix": expected dtype f32.*got f16'),
    (dict(suffix=np.ones((N + 1, H, D), F32)), 'argument "suffix": expected size 5 .*got 6'),
    (dict(suffix=np.ones((N, H, 2 * D), F32)[..., ::2]), 'argument "suffix": expected stride 1 in dim 2.*got 2'),
    (dict(prefix_lse=np.ones((H, N), F32)), 'argument "prefix_lse": expected size .*got'),
    (dict(suffix_lse=np.ones((N, H))), 'argument "suffix_lse": expected a tensor of dtype f32, got dtype float64'),
    (dict(kv_lens=np.ones(1, np.int32)), 'argument "kv_lens": expected at least 2 entries, one for each sequence of cu_seqlens, got 1'),
    (dict(kv_lens=np.ones(2, np.int64)), 'argument "kv_lens": expected dtype i32.*got i64'),
    (dict(kv_lens=[1, 2]), 'argument "kv_lens": expected an array, got list'),
    (dict(cu_seqlens=np.ones(3, np.int64)), 'argument "cu_seqlens": expected dtype i32.*got i64'),
    (dict(cu_seqlens=np.ones((3, 1), np.int32)), r'argument "cu_seqlens": expected 1 dim \[b \+ 1\], got 2'),
    (dict(out=np.ones((N, H, D), F32)), 'argument "out": expected dtype f8e4m3fn.*got f32'),
    (dict(lse_layout="hN"), "argument \"lse_layout\": expected 'hn' .* got 'hN'"),
    (dict(base="10"), "argument \"base\": expected 'e' or '2', got '10'"),
]


@pytest.mark.parametrize("changed, message", WRONG, ids=[message for _, message in WRONG])
def test_wrong_arguments(changed: dict[str, Any], message: str) -> None:
    Right(Device()).refuses("fixup_merge_fp8", message, **changed)


def test_outputs_lie_apart_from_all_else() -> None:
    """N11: out_lse may be an input lse itself. All other written memory must not overlap with another argument."""
    right = Right(Device())
    rows, lses = right.rows(), right.rows(N + 1, H)
    with pytest.raises(ArgumentError, match='argument "out": expected memory apart from .*"prefix"'):
        right.call("fixup_merge_fp8", prefix=rows, out=rows.view(E4M3)[..., :D])
    with pytest.raises(ArgumentError, match='argument "out_lse": expected memory apart from .*"prefix_lse"'):
        right.call("fixup_merge_fp8", prefix_lse=lses[1:], out_lse=lses[:-1])
    with pytest.raises(ArgumentError, match='argument "Fp8Groups.scales": expected memory apart from .*"suffix_lse"'):
        right.call("fixup_merge_fp8", suffix_lse=lses[1:], out_format=ops.Fp8Groups(lses[:-1]))
