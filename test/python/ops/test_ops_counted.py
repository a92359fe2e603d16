"""Tests merges of the splits of split-KV attention if only the first few splits of a row are valid: `combine_split_kv`,
mostly with splits that are not normalised, and the engines' reductions of segments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlafix
from devices import Device
from mlafix import ops
from mlafix.compat import sglang, vllm
from numerics import BF16, E4M3, F16, F32, garbage, poison, round_to, same_bits, widen

S, H, D = 4, 3, 64
BASE = {"e": np.e, "2": 2.0}


def valid(length: int, splits: int = S, split_len: int | None = None, tile_len: int | None = None) -> int:
    """Returns how many splits are valid in a row with `length` keys."""
    if length <= 0:
        return 0
    each = split_len if tile_len is None else max(-(-length // (splits * tile_len)), 1) * tile_len
    assert each is not None
    return min(-(-length // each), splits)


class Parts:
    """Random splits: rows [S, n, H, D], maxima and sums [S, n, H]. The first `counts[t]` splits of row t are valid; the
    others are garbage."""

    def __init__(self, rng: np.random.Generator, counts: list[int], dtype: np.dtype = F32) -> None:
        n = len(counts)
        self.counts = np.array(counts)
        self.rows = rng.normal(0, 3, (S, n, H, D)).astype(np.float32).astype(dtype)
        self.maxima = rng.normal(0, 4, (S, n, H)).astype(np.float32)
        self.sums = rng.uniform(1, 40, (S, n, H)).astype(np.float32)
        self.maxima[:, :, 1] -= 6e4  # below -5e4, which FlashInfer uses in place of -inf
        for row, count in enumerate(counts):
            for array in (self.rows, self.maxima, self.sums):
                array[count:, row] = garbage(rng, array[count:, row].shape, array.dtype)
        if S > 1 and n > 1:  # some valid splits are empty and have rows of NaN
            for at, (largest, total) in enumerate(((-np.inf, 1.0), (np.inf, 3.0), (0.5, 0.0))):
                self.maxima[0, 1, at], self.sums[0, 1, at] = largest, total
                self.rows[0, 1, at] = np.nan

    def want(self, base: str, out_base: str | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns, in f64, out [n, H, D], the sum of the magnitudes of the terms, and lse [n, H]."""
        counts = np.arange(S)[:, None, None] < self.counts[:, None]
        live = counts & np.isfinite(self.maxima) & (self.sums != 0)
        tops = np.where(live, self.maxima, -np.inf).astype(np.float64)
        top = np.where(live.any(axis=0), tops.max(axis=0), 0.0)
        weights = np.where(live, BASE[base] ** (tops - top), 0.0)
        weights = np.where(weights < 2.0**-149, 0.0, weights)
        total = np.where(weights > 0, weights * np.where(live, widen(self.sums), 0.0), 0.0).sum(axis=0)
        terms = np.where(weights[..., None] > 0, weights[..., None] * np.where(live[..., None], widen(self.rows), 0.0), 0.0)
        divisor = np.where(total > 0, total, 1.0)
        with np.errstate(divide="ignore"):
            lse = (top + np.log(total) / np.log(BASE[base])) * np.log(BASE[base]) / np.log(BASE[out_base or base])
        return terms.sum(axis=0) / divisor[..., None], np.abs(terms).sum(axis=0) / divisor[..., None], lse


def check(parts: Parts, out: np.ndarray, lse: np.ndarray, base: str, out_base: str | None = None) -> None:
    value, magnitude, total = parts.want(base, out_base)
    rounded = value if out.dtype == F32 else round_to(out.dtype, value)
    bound = 8e-6 * magnitude + np.abs(value) * {F32: 0.0, BF16: 2.0**-7, F16: 2.0**-10}[out.dtype]
    assert (np.abs(widen(out) - rounded) <= bound).all() and ((magnitude > 0) | (widen(out) == 0)).all()
    np.testing.assert_allclose(lse, total, rtol=4e-7, atol=4e-6)


@pytest.mark.parametrize(("how", "base", "out_base", "dtype", "out_dtype"), [
    (dict(), "e", None, F32, BF16), (dict(split_len=32), "2", "e", F32, F32), (dict(tile_len=16), "2", None, BF16, F16),
    (dict(split_len=1), "e", "2", F16, F32)], ids=["all", "split_len", "tile_len", "counts"])  # fmt: skip
def test_sums_of_the_splits_that_count_are_divided_once(how: dict[str, int], base: str, out_base: str | None, dtype: np.dtype, out_dtype: np.dtype,
                                                        device: Device, rng: np.random.Generator) -> None:
    lengths = [100, 64, 0, -5, 33, 1, 2**31 - 1] if how else [1] * 4
    parts = Parts(rng, [valid(length, **how) for length in lengths] if how else [S] * 4, dtype)
    n = len(lengths)
    out, lse = device.put(poison((n, 1, H, D), out_dtype)), device.put(poison((n, 1, H), F32))
    ops.combine_split_kv(
        device.put(parts.rows[:, :, None]), device.put(parts.maxima[:, :, None]), partial_sum=device.put(parts.sums[:, :, None]),
        seq_lens=device.put(np.array(lengths, np.int32)) if how else None, **how, out=out, out_lse=lse, base=(base, out_base or base))  # type: ignore[arg-type]
    check(parts, device.get(out)[:, 0], device.get(lse)[:, 0], base, out_base)


@pytest.mark.parametrize("wide", [np.int32, np.int64])
def test_normalised_splits_are_counted_too(wide: type, device: Device, rng: np.random.Generator) -> None:
    """A count also limits normalised splits: the result has the bits of a merge of the valid splits alone. The other
    splits are not read."""
    lengths = [70, 32, 0, 128]
    counts = [valid(length, split_len=32) for length in lengths]
    parts = Parts(rng, counts, BF16)
    rows, lses = parts.rows[:, :, None], parts.maxima[:, :, None]
    out, lse = ops.combine_split_kv(device.put(rows), device.put(lses), seq_lens=device.put(np.array(lengths, wide)), split_len=32)
    for row, count in enumerate(counts):
        alone = lses[:, row : row + 1].copy()
        alone[count:] = -np.inf
        want, total = ops.combine_split_kv(device.put(rows[:, row : row + 1].copy()), device.put(alone))
        assert same_bits(device.get(out)[row], device.get(want)[0]) and same_bits(device.get(lse)[row], device.get(total)[0])


def test_sequences_of_several_tokens_share_their_length(device: Device, rng: np.random.Generator) -> None:
    lengths, starts = [40, 0, 17], [1, 3, 3, 7]  # token 0 and the tokens from 7 on belong to no sequence
    counts = [0] + [valid(40, tile_len=8)] * 2 + [valid(17, tile_len=8)] * 4 + [0]
    parts = Parts(rng, counts)
    out, lse = ops.combine_split_kv(
        device.put(parts.rows[:, None]), device.put(parts.maxima[:, None]), partial_sum=device.put(parts.sums[:, None]),
        seq_lens=device.put(np.array(lengths, np.int32)), tile_len=8, cu_seqlens=device.put(np.array(starts, np.int32)))
    check(parts, device.get(out)[0], device.get(lse)[0], "e")
    assert (device.get(out)[0][[0, 7]] == 0).all() and np.isneginf(device.get(lse)[0][[0, 7]]).all()


@pytest.mark.parametrize("normalised", [True, False])
def test_flashinfer_verify_of_a_draft_beside_an_empty_prefix(normalised: bool, device: Device, rng: np.random.Generator) -> None:
    """Speculative decoding merges the splits of a prefix with the state of the draft tokens. If all splits are empty,
    the result is the draft's state; upstream it was NaN."""
    lengths = [90, 0, 33]
    parts = Parts(rng, [valid(length, split_len=32) for length in lengths])
    draft, draft_lse = rng.normal(0, 1, (3, 1, H, D)).astype(np.float32).astype(BF16), rng.normal(0, 1, (3, 1, H)).astype(np.float32)
    arrays = [device.put(x[:, :, None]) for x in (parts.rows, parts.maxima, parts.sums)]
    how = dict(partial_sum=None if normalised else arrays[2], seq_lens=device.put(np.array(lengths, np.int32)), split_len=32)
    out, lse = ops.combine_split_kv(*arrays[:2], **how, beside=device.put(draft), beside_lse=device.put(draft_lse))  # type: ignore[arg-type]
    prefix, prefix_lse = ops.combine_split_kv(*arrays[:2], **how)  # type: ignore[arg-type]
    wide = device.put(draft.astype(np.float32)[:, 0])
    want, total = ops.merge_attn_states(prefix[:, 0], prefix_lse[:, 0], wide, device.put(draft_lse[:, 0]), lse_layout="nh")
    np.testing.assert_allclose(device.get(out)[:, 0], device.get(want), rtol=0, atol=4e-6)
    np.testing.assert_allclose(device.get(lse)[:, 0], device.get(total), rtol=4e-7, atol=4e-6)
    assert same_bits(device.get(out)[1], draft[1].astype(np.float32)) and same_bits(device.get(lse)[1], draft_lse[1])
    with pytest.raises(mlafix.ArgumentError, match='argument "beside_lse": expected an array next to beside, got None'):
        ops.combine_split_kv(*arrays[:2], beside=device.put(draft))


def test_nan_in_a_split_that_counts_propagates_and_no_other(device: Device, rng: np.random.Generator) -> None:
    parts = Parts(rng, [S, S, S])
    parts.maxima[2, 0, 0], parts.sums[1, 2, 1] = np.nan, np.nan
    out, lse = ops.combine_split_kv(device.put(parts.rows[:, :, None]), device.put(parts.maxima[:, :, None]), partial_sum=device.put(parts.sums[:, :, None]))
    faulty = np.zeros((3, H), bool)
    faulty[0, 0] = faulty[2, 1] = True
    assert (np.isnan(device.get(lse)[:, 0]) == faulty).all() and (np.isnan(device.get(out)[:, 0]).all(axis=-1) == faulty).all()


@pytest.mark.parametrize("how", [dict(split_len=32), dict(tile_len=16), dict(split_len=2**62), dict(tile_len=2**62)], ids=str)
def test_lengths_near_2_to_the_63(how: dict[str, int], device: Device, rng: np.random.Generator) -> None:
    lengths = [2**63 - 1, 2**63 - 9, 2**62 + 1, -(2**63), 1]
    parts = Parts(rng, [valid(length, **how) for length in lengths])
    out, lse = ops.combine_split_kv(
        device.put(parts.rows[:, :, None]), device.put(parts.maxima[:, :, None]), partial_sum=device.put(parts.sums[:, :, None]),
        seq_lens=device.put(np.array(lengths, np.int64)), **how)  # type: ignore[arg-type]
    check(parts, device.get(out)[:, 0], device.get(lse)[:, 0], "e")


def test_a_sum_that_overflows_is_no_empty_row(device: Device, rng: np.random.Generator) -> None:
    """A row with one infinite sum, or with finite sums whose total overflows, becomes NaN and is not taken for an empty
    row. The same holds in `merge_states_mapped`."""
    parts = Parts(rng, [S, S, S])
    parts.sums[1, 0], parts.sums[:2, 1], parts.maxima[:2, 1], parts.maxima[:, 0] = np.inf, 3e38, 9, 0
    out, lse = ops.combine_split_kv(device.put(parts.rows[:, :, None]), device.put(parts.maxima[:, :, None]), partial_sum=device.put(parts.sums[:, :, None]))
    flat = [device.put(np.ascontiguousarray(x.swapaxes(0, 1)).reshape(-1, *x.shape[2:])) for x in (parts.rows, parts.maxima, parts.sums)]
    mapped, mapped_lse = device.put(poison((3, H, D), F32)), device.put(poison((3, H), F32))
    ops.merge_states_mapped(mapped, flat[0], flat[1], device.put(np.arange(4, dtype=np.int32) * S), part_sums=flat[2], out_lse=mapped_lse)
    for rows, total in ((device.get(out)[:, 0], device.get(lse)[:, 0]), (device.get(mapped), device.get(mapped_lse))):
        assert np.isnan(total[:2]).all() and np.isnan(rows[:2]).all() and np.isfinite(rows[2]).all() and np.isfinite(total[2]).all()


@pytest.mark.parametrize("form", ["static", "groups"])
def test_results_in_a_format_have_the_bits_of_a_quantised_result(form: str, device: Device, rng: np.random.Generator) -> None:
    parts = Parts(rng, [4, 2, 0, 1])
    arrays = [device.put(x[:, :, None]) for x in (parts.rows, parts.maxima, parts.sums)]
    how = dict(partial_sum=arrays[2], seq_lens=device.put(parts.counts.astype(np.int32)), split_len=1, base=("2", "e"))
    plain, lse = ops.combine_split_kv(*arrays[:2], **how)  # type: ignore[arg-type]
    if form == "static":
        scale = device.put(np.full(1, 0.25, np.float32))
        out, total = ops.combine_split_kv(*arrays[:2], **how, out_format=ops.Fp8(scale))  # type: ignore[arg-type]
        want = ops.quantize_fp8_static(plain[:, 0].reshape((4, H * D)), scale)
        assert same_bits(device.get(out).reshape(4, H * D), device.get(want))
    else:
        scales, others = device.put(poison((4, 1, H, 2), F32)), device.put(poison((4, H, 2), F32))
        out, total = ops.combine_split_kv(*arrays[:2], **how, out_format=ops.Fp8Groups(scales))  # type: ignore[arg-type]
        want = ops.quantize_groups(plain[:, 0], ops.Fp8Groups(others))
        assert same_bits(device.get(out)[:, 0], device.get(want)) and same_bits(device.get(scales)[:, 0], device.get(others))
    assert device.get(out).dtype == E4M3 and same_bits(device.get(total), device.get(lse))


@pytest.mark.parametrize(("base", "out_base", "dtype"), [("2", "e", BF16), ("e", None, F32)], ids=str)
def test_groups_of_sums_through_maps(base: str, out_base: str | None, dtype: np.dtype, device: Device, rng: np.random.Generator) -> None:
    """The splits of each row form a group, and the rows are in reverse order. One part number is out of range, and one
    row belongs to no group."""
    parts = Parts(rng, [4, 2, 0, 1])
    flat = [device.put(np.ascontiguousarray(x.swapaxes(0, 1)).reshape(-1, *x.shape[2:])) for x in (parts.rows, parts.maxima, parts.sums)]
    named = [row * S + k for row in (3, 2, 1, 0) for k in range(parts.counts[row])]
    named.insert(1, 99)
    indptr = np.cumsum([0, 2, 0, 2, 4])
    before = garbage(rng, (5, H, D), dtype)
    out, lse, sinks = device.put(before.copy()), device.put(poison((5, H), F32)), np.array([-np.inf] * H, np.float32)
    ops.merge_states_mapped(
        out, flat[0], flat[1], device.put(indptr.astype(np.int32)), device.put(np.array(named, np.int32)), device.put(np.array([3, 2, 1, 0], np.int32)),
        part_sums=flat[2], out_lse=lse, sinks=device.put(sinks), base=(base, out_base or base))  # type: ignore[arg-type]
    check(parts, device.get(out)[:4], device.get(lse)[:4], base, out_base)
    assert same_bits(device.get(out)[4], before[4])
    scale = device.put(np.full(1, 0.5, np.float32))
    quantised = device.put(poison((5, H, D), E4M3))
    plain = device.put(poison((5, H, D), F32))
    totals = [device.put(poison((5, H), F32)) for _ in range(2)]
    for target, total, out_format in ((plain, totals[0], None), (quantised, totals[1], ops.Fp8(scale))):
        ops.merge_states_mapped(
            target, flat[0], flat[1], device.put(indptr.astype(np.int32)), device.put(np.array(named, np.int32)), device.put(np.array([3, 2, 1, 0], np.int32)),
            part_sums=flat[2], out_lse=total, base=(base, out_base or base), out_format=out_format)  # type: ignore[arg-type]
    want = ops.quantize_fp8_static(plain.reshape((5, H * D)), scale)
    assert same_bits(device.get(quantised).reshape(5, H * D)[:4], device.get(want)[:4])
    assert all(same_bits(device.get(total)[:4], device.get(lse)[:4]) for total in totals)


def segments(parts: Parts, device: Device) -> list[Any]:
    """Returns the arrays on the device in the engines' layout: rows [n, H, S, D], maxima and sums [n, H, S]."""
    return [device.put(np.ascontiguousarray(np.moveaxis(x, 0, 2))) for x in (parts.rows, parts.maxima, parts.sums)]


def test_vllm_merges_segments_of_aiters_decode_to_a_natural_lse(device: Device, rng: np.random.Generator) -> None:
    lengths = [0, 1, 63, 64, 65, 5000]
    parts = Parts(rng, [valid(length, tile_len=16) for length in lengths])
    out, lse = vllm.merge_mla_segments_triton(*segments(parts, device), device.put(np.array(lengths, np.int32)), 16, "bf16")
    check(parts, device.get(out), device.get(lse), "2", "e")


def test_sglang_dcp_mla_reduce_of_a_rank_without_keys(device: Device, rng: np.random.Generator) -> None:
    """A length of 0 gives an empty row. SGLang's own kernel divided by zero there, and the merge over ranks spread the
    NaN to other rows."""
    lengths = [0, 40, 0]
    parts = Parts(rng, [valid(length, tile_len=16) for length in lengths])
    out, lse = sglang.dcp_mla_reduce(*segments(parts, device), device.put(np.array(lengths, np.int64)), 16, "f32")
    check(parts, device.get(out), device.get(lse), "2")
    assert (device.get(out)[[0, 2]] == 0).all() and np.isneginf(device.get(lse)[[0, 2]]).all()


@pytest.mark.parametrize("scaled", [False, True])
def test_vllm_reduces_segments_of_unified_attention(scaled: bool, device: Device, rng: np.random.Generator) -> None:
    """Results are right if rows in memory are longer than D, as in vLLM, which pads them to a power of two, and if
    requests have several queries. Rows without a request are blanked."""
    counts = [valid(90, tile_len=32)] * 3 + [valid(7, tile_len=32)] + [0]
    parts = Parts(rng, counts)
    scale = np.float32(0.25)
    out = device.put(poison((5, H, D), E4M3 if scaled else BF16))
    rows, maxima, sums = segments(parts, device)
    padded = device.put(np.concatenate([np.moveaxis(parts.rows, 0, 2), garbage(rng, (5, H, S, 16), F32)], axis=-1))
    starts, lens = device.put(np.array([0, 3, 4], np.int32)), device.put(np.array([90, 7], np.int32))
    lse = vllm.reduce_segments(out, padded, maxima, sums, lens, starts, 32, device.put(np.full(1, scale)) if scaled else None, return_lse=True)
    value, _, total = parts.want("e")
    np.testing.assert_allclose(device.get(lse), total, rtol=4e-7, atol=4e-6)
    if scaled:
        assert (np.abs(widen(device.get(out)) - np.clip(value / scale, -448, 448)) <= np.maximum(np.abs(value / scale) * 2.0**-4, 2.0**-9)).all()
    else:
        check(parts, device.get(out), device.get(lse), "e")
    assert vllm.reduce_segments(out, rows, maxima, sums, lens, starts, 32, device.put(np.full(1, scale)) if scaled else None) is None


@pytest.mark.parametrize(("how", "message"), [
    (dict(seq_lens=[1], split_len=None), 'argument "split_len": expected one of split_len and tile_len beside seq_lens, got neither'),
    (dict(seq_lens=[1], split_len=1, tile_len=1), 'argument "split_len": expected one of split_len and tile_len beside seq_lens, got both'),
    (dict(seq_lens=[1], split_len=0), 'argument "split_len": expected 1 or more, got 0'),
    (dict(seq_lens=None, tile_len=4), 'argument "tile_len": expected None without seq_lens, got 4'),
    (dict(seq_lens=[], split_len=4), 'argument "seq_lens": expected at least 1 entries, got 0'),
    (dict(seq_lens=[1.5], tile_len=4), 'argument "seq_lens": expected dtype i64 or i32, got float64'),
])  # fmt: skip
def test_wrong_arguments(how: dict[str, Any], message: str, device: Device, rng: np.random.Generator) -> None:
    rows, lses = device.put(np.zeros((S, 1, 1, H, D), np.float32)), device.put(np.zeros((S, 1, 1, H), np.float32))
    lens, others = how["seq_lens"], {name: value for name, value in how.items() if name != "seq_lens"}
    with pytest.raises(mlafix.ArgumentError, match=message):
        ops.combine_split_kv(rows, lses, seq_lens=None if lens is None else device.put(np.array(lens, None if lens else np.int32)), **others)
    with pytest.raises(mlafix.ArgumentError, match='argument "partial_sum": expected size 3 .*got 4'):
        ops.combine_split_kv(rows, lses, partial_sum=device.put(np.zeros((S, 1, 1, H + 1), np.float32)))


def test_lengths_are_as_many_as_rows_or_sequences(device: Device, rng: np.random.Generator) -> None:
    """More lengths than rows or sequences are allowed, as engines pass them, and have no effect. Fewer lengths are
    refused, also by a drop-in."""
    parts = Parts(rng, [2, 1, 4])
    arrays = [device.put(x[:, :, None]) for x in (parts.rows, parts.maxima)]
    lens = [device.put(np.array(x, np.int32)) for x in ([2, 1, 4], [2, 1, 4, 3], [2, 1])]
    starts = device.put(np.array([0, 1, 2, 3], np.int32))
    for how in (dict(), dict(cu_seqlens=starts)):
        want = ops.combine_split_kv(*arrays, seq_lens=lens[0], split_len=1, **how)
        more = ops.combine_split_kv(*arrays, seq_lens=lens[1], split_len=1, **how)
        assert all(same_bits(device.get(a), device.get(b)) for a, b in zip(want, more))
        with pytest.raises(mlafix.ArgumentError, match='argument "seq_lens": expected at least 3 entries, got 2'):
            ops.combine_split_kv(*arrays, seq_lens=lens[2], split_len=1, **how)
    with pytest.raises(mlafix.ArgumentError, match='argument "seq_lens": expected at least 3 entries, got 2'):
        sglang.dcp_mla_reduce(*segments(parts, device), lens[2], 16, "f32")


def test_an_lse_beside_alone_is_refused_when_calls_are_warm(device: Device, rng: np.random.Generator) -> None:
    rows, lses = device.put(rng.normal(0, 1, (2, 1, 1, H, D)).astype(np.float32)), device.put(np.zeros((2, 1, 1, H), np.float32))
    for _ in range(3):
        ops.combine_split_kv(rows, lses)
    with pytest.raises(mlafix.ArgumentError, match='argument "beside": expected an array next to beside_lse, got None'):
        ops.combine_split_kv(rows, lses, beside_lse=lses[0])
