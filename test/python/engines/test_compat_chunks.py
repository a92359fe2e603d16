"""Drop-ins of functions that are new in vLLM 0.28 to 0.33 or in SGLang 0.5.15 to 0.5.23. Also drop-ins of functions of
attn_gym and of torch's context parallelism."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import contract
from devices import Device
from mlafix import ArgumentError
from mlafix.compat import attn_gym, flashinfer, sglang, vllm
from mlafix.compat.torch_context_parallel import SDPAMerger
from numerics import BF16, F16, F32, garbage, poison, same_bits
from states import make_states


def blank(out: np.ndarray, lse: np.ndarray) -> bool:
    return bool((out == 0).all() and np.isneginf(lse).all())


@pytest.mark.parametrize("slices, empty", [([], []), ([slice(0, 3), slice(3, 5), slice(9, 12)], [0, 1, 2, 3, 4, 9, 10, 11]),
                                           ([slice(2, 2), slice(4, 5)], [4]), ([slice(0, 12)], range(12))])  # fmt: skip
@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
def test_vllm_rows_without_context_are_blank_and_no_others_are_written(dtype: np.dtype, slices: list[slice], empty: Any, device: Device,
                                                                       rng: np.random.Generator) -> None:
    out, lse = garbage(rng, (12, 3, 64), dtype), garbage(rng, (3, 15), F32)
    rows, whole = device.put(out.copy()), device.put(lse.copy())
    vllm.neutralize_empty_context_partials(SimpleNamespace(empty_token_slices=slices), rows, whole[:, 2:14])
    got, got_lse = device.get(rows), device.get(whole)
    is_empty = np.isin(np.arange(12), list(empty))
    assert blank(got[is_empty], got_lse[:, 2:14][:, is_empty])
    assert same_bits(got[~is_empty], out[~is_empty]) and same_bits(got_lse[:, 2:14][:, ~is_empty], lse[:, 2:14][:, ~is_empty])
    assert same_bits(got_lse[:, :2], lse[:, :2]) and same_bits(got_lse[:, 14:], lse[:, 14:])


def chunk(begin: int, end: int, continues: int | None = None) -> Any:
    return SimpleNamespace(token_slice=slice(begin, end), is_continuation=continues is not None, continuation_token_end=continues)


@pytest.mark.parametrize("dtype", [BF16, F32], ids=str)
def test_vllm_folds_chunks_of_context(dtype: np.dtype, device: Device, rng: np.random.Generator) -> None:
    """Requests have 2, 3, 4 and 3 tokens. The second request has no context. Only the third is in both chunks, so its
    rows are merged. The rows of the first and of the last are copies."""
    heads, dim = 2, 64
    states = make_states(rng, 2, 12, heads, dim, dtype)
    partial = SimpleNamespace(empty_token_slices=[slice(2, 5)])
    shape = device.put(states.v[0][:1]), device.put(np.ascontiguousarray(states.s[0][:1].T))
    out, lse = vllm.init_mla_context_partial(partial, *shape, num_tokens=12)
    device.write(out[:2], poison((2, heads, dim), dtype))
    device.write(out[5:], poison((7, heads, dim), dtype))
    device.write(lse[:, 5:], np.full((heads, 7), np.nan, np.float32))

    def fold(made: Any, at: int) -> None:
        where = made.token_slice
        vllm.accumulate_mla_context_chunk(made, device.put(states.v[at][where].copy()), device.put(np.ascontiguousarray(states.s[at][where].T)), out, lse)

    fold(chunk(0, 2), 0)
    fold(chunk(5, 9), 0)
    fold(chunk(5, 12, continues=9), 1)
    got, got_lse = device.get(out), device.get(lse).T
    assert blank(got[2:5], got_lse[2:5])
    for rows, at in ((slice(0, 2), 0), (slice(9, 12), 1)):
        assert same_bits(got[rows], states.v[at][rows]) and same_bits(np.ascontiguousarray(got_lse[rows]), states.s[at][rows])
    want, want_lse = contract.merge(states.v[:, 5:9], states.s[:, 5:9], out_dtype=dtype)
    want.check(got[5:9], "output")
    want_lse.check(got_lse[5:9], "output_lse")


def test_vllm_folds_the_lse_alone_where_the_output_is_written(device: Device, rng: np.random.Generator) -> None:
    out, lse = garbage(rng, (6, 2, 64), BF16), rng.normal(0, 1, (2, 4)).astype(F32)
    rows, total = device.put(out.copy()), device.poisoned((2, 6), F32)
    vllm.accumulate_mla_context_chunk(chunk(1, 5), rows[1:5], device.put(lse), rows, total, output_written=True)
    assert same_bits(device.get(rows), out) and same_bits(np.ascontiguousarray(device.get(total)[:, 1:5]), lse)
    with pytest.raises(ArgumentError, match='"output_written": expected False for a chunk that continues a request, got True'):
        vllm.accumulate_mla_context_chunk(chunk(1, 5, continues=2), rows[1:5], device.put(lse), rows, total, output_written=True)
    with pytest.raises(ArgumentError, match='"chunked_context": expected an object with the field empty_token_slices, got NoneType'):
        vllm.neutralize_empty_context_partials(None, rows, total)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("starts, mapped", [([0, 3, 3, 7, 9], 9), ([0, 3, 3, 7, 9], 5), ([0, 0, 0, 2], 4), ([0, 5], 5), (list(range(0, 200, 3)), 199),
                                            ([0, 4], -3)])  # fmt: skip
def test_vllm_finds_the_request_of_each_token(starts: list[int], mapped: int, dtype: str, device: Device) -> None:
    """As in vLLM's kernel, a token belongs to the first request that ends after it. Tokens after the last end belong to
    the last request."""
    room = max(starts[-1], 4) + 6
    out = device.put(np.full(room + 3, 77, np.int32))
    got = device.get(vllm.compute_token_to_req_indices(device.put(np.array(starts, dtype)), out, mapped, room))
    found = np.minimum(np.searchsorted(starts[1:], np.arange(room), side="right"), len(starts) - 2)
    assert got.tolist() == np.where(np.arange(room) < mapped, found, 0).tolist() and device.get(out)[room:].tolist() == [77] * 3


def share(lens: np.ndarray, rank: int, ranks: int, interleave: int) -> np.ndarray:
    """Returns how many of the first `lens` tokens are on a rank, counted one by one."""
    return np.array([sum(token // interleave % ranks == rank for token in range(max(length, 0))) for length in lens], lens.dtype)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("rank, ranks, interleave", [(0, 2, 1), (2, 3, 1), (1, 4, 16), (3, 4, 3)])
def test_lengths_on_a_rank(rank: int, ranks: int, interleave: int, dtype: str, device: Device, rng: np.random.Generator) -> None:
    lens, starts = rng.integers(0, 120, 11).astype(dtype), rng.integers(0, 50, 11).astype(dtype)
    lens[0] = 0
    whole = sglang.get_dcp_lens(device.put(lens), ranks, rank, interleave_size=interleave)
    assert device.get(whole).tolist() == share(lens, rank, ranks, interleave).tolist() and str(device.get(whole).dtype) == dtype
    part = device.get(sglang.get_dcp_lens(device.put(lens.reshape(1, 11)), ranks, rank, device.put(starts.reshape(1, 11)), interleave))
    assert part.tolist() == [(share(starts + lens, rank, ranks, interleave) - share(starts, rank, ranks, interleave)).tolist()]
    out = device.put(np.full(14, -5, dtype))
    made = vllm.prepare_dcp_local_seq_lens(out, device.put(lens), 9, ranks, rank, interleave, num_reqs_padded=12)
    assert device.get(made).tolist() == [*share(lens[:9], rank, ranks, interleave).tolist(), 0, 0, 0]
    assert device.get(out)[12:].tolist() == [0, 0]


def test_one_rank_has_everything(device: Device) -> None:
    lens = device.put(np.array([3, 0], np.int32))
    assert sglang.get_dcp_lens(lens, 1, 0) is lens and sglang.localize_dcp_indices(lens, 1, 0) is lens
    assert vllm.prepare_dcp_local_seq_lens(lens, lens, 2, 1, 0, 1) is None and device.get(lens).tolist() == [3, 0]
    for call, text in ((lambda: sglang.get_dcp_lens(lens, 2, 2), '"dcp_rank": expected a rank from 0 to 1, got 2'),
                       (lambda: sglang.localize_dcp_indices(lens, 2, 0, 0), '"interleave_size": expected 1 or more, got 0'),
                       *((lambda count=count: vllm.prepare_dcp_local_seq_lens(lens, lens, 2, 2, 0, 1, num_reqs_padded=count),
                          f'"num_reqs_padded": expected 0 to 2, the entries of dcp_local_seq_lens, got {count}') for count in (-1, 3)),
                       (lambda: vllm.compute_token_to_req_indices(lens[:1], lens, 1, 1), '"query_start_loc": expected 2 entries or more, got 1')):
        with pytest.raises(ArgumentError, match=text):
            call()


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("rank, ranks, interleave", [(0, 2, 1), (2, 3, 1), (1, 4, 16)])
def test_sglang_finds_places_on_a_rank(rank: int, ranks: int, interleave: int, dtype: str, device: Device, rng: np.random.Generator) -> None:
    """Each token on a rank gets its place among the rank's tokens, as counted one by one. Tokens of other ranks get -1,
    and so does the index -1."""
    indices = rng.integers(-1, 300, (7, 9)).astype(dtype)
    mine = [token for token in range(300) if token // interleave % ranks == rank]
    places = {token: place for place, token in enumerate(mine)}
    got = device.get(sglang.localize_dcp_indices(device.put(indices), ranks, rank, interleave))
    assert got.tolist() == [[places.get(int(token), -1) for token in row] for row in indices] and str(got.dtype) == dtype


# -- attn_gym, torch's context parallelism ---------------------------------------------------------------------------------


def of_batches(states: Any, batch: int, tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns states [k, B * N, H, …] as [k, B, H, N, …]."""
    v, s = states.v, states.s
    return (np.ascontiguousarray(v.reshape(len(v), batch, tokens, *v.shape[2:]).swapaxes(2, 3)),
            np.ascontiguousarray(s.reshape(len(s), batch, tokens, s.shape[2]).swapaxes(2, 3)))  # fmt: skip


@pytest.mark.parametrize("gap", [False, True], ids=["dense", "between batches"])
@pytest.mark.parametrize("dtype", [BF16, F32], ids=str)
def test_attn_gym_merges_two_outputs(dtype: np.dtype, gap: bool, device: Device, rng: np.random.Generator) -> None:
    v, s = of_batches(make_states(rng, 2, 10, 3, 64, dtype), 2, 5)
    before = np.zeros((2, 4, 5, 64), dtype)
    before[:, 1:] = v[0]
    prefix = device.put(before)[:, 1:] if gap else device.put(v[0])
    out, lse = attn_gym.merge_attention(prefix, device.put(s[0]), device.put(v[1]), device.put(s[1]))
    want, want_lse = contract.merge(v, s, out_dtype=dtype)
    want.check(device.get(out), "out")
    want_lse.check(device.get(lse), "lse")


@pytest.mark.parametrize("seq_dim, last", [(2, False), (1, True)])
@pytest.mark.parametrize("dtype", [BF16, F32], ids=str)
def test_torchs_context_parallelism_folds_blocks(dtype: np.dtype, seq_dim: int, last: bool, device: Device, rng: np.random.Generator) -> None:
    """Three blocks are folded into the result. The second one covers only the second half of the sequence. Rows of
    the first one may be empty."""
    in_second_half = np.arange(12) % 6 >= 3
    there = np.ones((3, 12, 2), bool)
    there[1] = in_second_half[:, None]
    v, s = of_batches(make_states(rng, 3, 12, 2, 64, dtype, present=there), 2, 6)
    present = np.ones(s.shape, bool)
    present[1, :, :, :3] = False
    merger = SDPAMerger(True, seq_dim)
    for at, partial in ((0, False), (1, True), (2, False)):
        rows, sums = (v[at][:, :, 3:], s[at][:, :, 3:]) if partial else (v[at], s[at])
        if seq_dim == 1:
            rows, sums = rows.swapaxes(1, 2), sums.swapaxes(1, 2)
        merger.step(device.put(rows), device.put(sums[..., None] if last else sums), partial)
    out, lse = merger.results()
    got, got_lse = device.get(out), device.get(lse)[..., 0] if last else device.get(lse)
    assert got.dtype == dtype
    if seq_dim == 1:
        got, got_lse = got.swapaxes(1, 2), got_lse.swapaxes(1, 2)
    want, want_lse = contract.merge(v, s, out_dtype=dtype, present=present)
    # The stored lse of a step has a relative error of up to 4e-6 (N10). It adds a relative error of up to
    # 4e-6 * |lse| to the weights of the next step, so the bound of the result grows by the factor 1 + |lse|.
    loss = 1 + np.where(np.isfinite(want_lse.value), np.abs(want_lse.value), 0)[..., None]
    contract.Expected(want.value, want.magnitude * loss, np.isnan(want.value)).check(np.ascontiguousarray(got), "out")
    contract.Expected(want_lse.value, want_lse.magnitude, ~np.isfinite(want_lse.value)).check(np.ascontiguousarray(got_lse), "lse")


def test_torchs_merger_names_its_arguments(device: Device) -> None:
    rows, sums = device.put(np.ones((1, 2, 4, 8), F32)), device.put(np.ones((1, 2, 4), F32))
    merger = SDPAMerger(False, 2)
    for call, text in ((lambda: SDPAMerger(True, 3), '"seq_dim": expected 1 or 2, got 3'), (merger.results, r"results\(\): expected a block from step\(\) first, got none"),
                       (lambda: merger.step(rows, sums, True), '"partial": expected False for the first block, got True'),
                       (lambda: merger.step(rows, sums[:, :1], False), r'"lse": expected shape \[1, 2, 4\], got \[1, 1, 4\]'),
                       (lambda: merger.step(rows[0], sums, False), '"out": expected 4 dims')):  # fmt: skip
        with pytest.raises(ArgumentError, match=text):
            call()
    merger.step(rows, sums, False)
    with pytest.raises(ArgumentError, match=r'"out": expected shape \[1, 2, 2, 8\], got \[1, 2, 4, 8\]'):
        merger.step(rows, sums, True)


def test_merge_state_is_a_merge_in_base_2(device: Device, rng: np.random.Generator) -> None:
    from mlafix import ops

    states = make_states(rng, 2, 4, 2, 64, F32)
    given = [device.put(part) for at in (0, 1) for part in (states.v[at], states.s[at])]
    for name, base in (("2", 2), ("e", np.e)):
        out, lse = ops.merge_attn_states(*given, lse_layout="nh", base=name)
        want, want_lse = contract.merge(states.v, states.s, base=base)
        want.check(device.get(out), "out")
        want_lse.check(device.get(lse), "lse")
    assert same_bits(device.get(flashinfer.merge_state(*given)[0]), device.get(ops.merge_attn_states(*given, lse_layout="nh", base="2")[0]))
