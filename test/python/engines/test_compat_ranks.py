"""Tests drop-ins for context parallelism that need no process group: the work of a rank before and after the
exchange."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import contract
import mlafix
from devices import Device
from mlafix.compat import ring_attention, sglang, tensorrt_llm, vllm
from numerics import BF16, E4M3, F16, F32, garbage, poison, same_bits, widen
from states import LAYOUTS, lay_out, make_states


def owners(starts: np.ndarray, tokens: int) -> np.ndarray:
    """Returns the request of each token. Padding gets the number of requests, len(starts) - 1."""
    return np.searchsorted(starts[1:], np.arange(tokens), side="right")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("starts", [[0, 1, 2, 3], [0, 0, 4, 4, 9], [0, 3, 3, 3, 5, 6, 11], [0], [0, 0, 0], [0, 2, 4, 6, 8, 10]], ids=str)
def test_vllm_masks_rows_without_keys(layout: str, starts: list[int], device: Device, rng: np.random.Generator) -> None:
    """Rows of requests without keys, and padding, get an lse of -inf. Requests have equal or different lengths, or no
    tokens; a batch may have no requests."""
    tokens, offsets = 11, np.array(starts, np.int64)
    lens = rng.integers(-1, 2, len(starts) - 1).astype(np.int32)
    lse = rng.normal(0, 3, (tokens, 5)).astype(np.float32)
    lse[rng.random(lse.shape) < 0.3] = np.nan
    owner = owners(offsets, tokens)
    keys = np.array([o < len(lens) and lens[o] > 0 for o in owner])
    passed = device.put(lay_out(lse, layout))
    assert vllm.mask_dcp_empty_shards_(passed, device.put(lens), device.put(offsets)) is None  # type: ignore[func-returns-value]
    assert same_bits(device.get(passed), np.where(keys[:, None], lse, np.float32(-np.inf)))


def test_vllm_finds_every_request(device: Device, rng: np.random.Generator) -> None:
    """Each call has exactly one request with keys, so exactly the tokens of this request keep their lse. A kernel that
    assigns a token to a neighbouring request fails the test. The batches have several sizes."""
    for requests in (1, 2, 3, 7, 8, 33):
        starts = np.concatenate([[0], np.cumsum(rng.integers(0, 4, requests))]).astype(np.int32)
        tokens = int(starts[-1]) + 2
        for request in range(requests):
            lse = device.put(np.zeros((tokens, 1), np.float32))
            vllm.mask_dcp_empty_shards_(lse, device.put((np.arange(requests) == request).astype(np.int32)), device.put(starts))
            assert np.array_equal(device.get(lse)[:, 0] == 0, owners(starts, tokens) == request)


@pytest.mark.parametrize("offsets", [[5, 3, 9, -4], [-5, -5, -5, 6], [0, 1 << 30, -(1 << 30), 7], [9, 9, 9, 9], [5]], ids=str)
def test_vllm_reads_nothing_out_of_bounds_whatever_the_offsets(offsets: list[int], device: Device) -> None:
    """Whatever the offsets are, the kernel reads lengths only within their array. The lengths are a slice of zeros in a
    larger array whose other elements are 1. A row for which the kernel reads one of these would not be masked."""
    whole = device.put(np.array([1] * 8 + [0, 0, 0] + [1] * 8, np.int32))
    guarded = device.put(np.array([0] * 8 + offsets + [0] * 8, np.int32))
    lse = device.put(np.zeros((6, 2), np.float32))
    vllm.mask_dcp_empty_shards_(lse, whole[8 : 7 + len(offsets)], guarded[8 : 8 + len(offsets)])
    assert (device.get(lse) == -np.inf).all()


def test_vllm_masks_nothing_without_lengths(device: Device) -> None:
    lse = device.put(np.zeros((2, 1), np.float32))
    vllm.mask_dcp_empty_shards_(lse, None, None)
    assert (device.get(lse) == 0).all()
    with pytest.raises(mlafix.ArgumentError, match='"seq_lens": expected an array next to query_start_loc, got None'):
        vllm.mask_dcp_empty_shards_(lse, None, device.put(np.zeros(2, np.int32)))
    with pytest.raises(mlafix.ArgumentError, match='"query_start_loc": expected 3 entries for 2 requests'):
        vllm.mask_dcp_empty_shards_(lse, device.put(np.zeros(2, np.int32)), device.put(np.zeros(2, np.int32)))


@pytest.mark.parametrize("base", ["e", "2"])
@pytest.mark.parametrize("ranks, dim", [(2, 16), (3, 5), (6, 64)])
def test_vllm_corrected_outputs_sum_to_the_merge(ranks: int, dim: int, base: str, device: Device, rng: np.random.Generator) -> None:
    """The sum of all ranks' corrected outputs is the merge. Some numbers of ranks and one row size are no powers of
    two."""
    states = make_states(rng, ranks, 7, 2, dim, F32)
    out, lse = contract.merge(states.v, states.s, base=2.0 if base == "2" else np.e)
    total = np.zeros(out.value.shape)
    for rank in range(ranks):
        own = device.put(states.v[rank].copy())
        shaped = own[:, None] if rank == 0 else own
        made, merged = vllm.correct_attn_out(shaped, device.put(states.s[..., None]), rank, None, base == "e")
        lse.check(device.get(merged), "lse")
        total += widen(device.get(own))
        assert made.shape == states.v[rank].shape
    contract.Expected(out.value, out.magnitude, np.zeros(out.exact.shape, bool)).check(total.astype(np.float32), "sum of the outputs")


@pytest.mark.parametrize("dtype", [BF16, F16, np.dtype(np.float64)], ids=str)
def test_vllm_corrects_strided_outputs_by_lses_of_other_dtypes(dtype: np.dtype, device: Device, rng: np.random.Generator) -> None:
    states = make_states(rng, 3, 5, 2, 8, F32, faults=False)
    lses = states.s.astype(dtype)
    want, _ = vllm.correct_attn_out(device.put(states.v[1].copy()), device.put(lses.astype(F32)), 1, None)
    whole = np.full((5, 1, 2, 16), np.nan, F32)
    whole[..., ::2] = states.v[1][:, None]
    passed = device.put(whole)
    made, _ = vllm.correct_attn_out(passed[..., ::2], device.put(lses), 1, None)
    after = device.get(passed)
    assert same_bits(np.ascontiguousarray(after[:, 0, :, ::2]), device.get(want)) and np.isnan(after[..., 1::2]).all()
    assert tuple(made.shape) == (5, 2, 8)


@pytest.mark.parametrize(("base", "dtype", "new"), [("2", BF16, F32), ("e", F32, BF16), ("2", F16, None)], ids=str)
def test_sglang_corrected_outputs_sum_to_the_merge(base: str, dtype: np.dtype, new: np.dtype | None, device: Device, rng: np.random.Generator) -> None:
    """The corrected output is stored to another array [H, B, D], in f32 by default. The rank's own output is only
    read."""
    states = make_states(rng, 3, 7, 2, 40, dtype)
    out, lse = contract.merge(states.v, states.s, base=2.0 if base == "2" else np.e)
    total = np.zeros(out.value.shape)
    for rank in range(3):
        own = device.put(states.v[rank])
        target = None if new is None else device.put(poison((2, 7, 40), new))
        made, merged = sglang.correct_attn_out(own, device.put(states.s[..., None]), rank, None, target, is_lse_base_on_e=base == "e")
        lse.check(device.get(merged), "lse")
        total += widen(device.get(made)).swapaxes(0, 1)
        assert same_bits(device.get(own), states.v[rank]) and (target is None or made is target) and device.get(made).dtype == (new or F32)
    # Each corrected output is rounded to the dtype of its array before the sum, so a larger error is allowed for bf16.
    magnitude = out.magnitude * (1 if new != BF16 else 2**10)
    contract.Expected(out.value, magnitude, np.zeros(out.exact.shape, bool)).check(total.astype(np.float32), "sum of the outputs")


@pytest.mark.parametrize("dtype", [BF16, F32], ids=str)
def test_sglang_packs_and_combines_what_ranks_send(dtype: np.dtype, device: Device, rng: np.random.Generator) -> None:
    """dcp_pack_a2a_send packs each row next to its lse into one buffer. dcp_lse_combine_triton merges the packed rows.
    In sglang#34614, SGLang's combine stored its result with the strides of the packed lse. So it wrote outside of the
    result, and empty rows became NaN."""
    states = make_states(rng, 3, 5, 6, 16, dtype)  # used as rows of 3 ranks, and as 3 heads for each of 2 ranks
    tail = 4 // dtype.itemsize
    room = poison((2, 7, 3, 16 + tail), dtype)  # the buffer of a CUDA graph, for more tokens than are used
    packed = device.put(room)
    words = packed.view(__import__("torch").float32 if device.is_torch else np.float32)
    sglang.dcp_pack_a2a_send(device.put(states.v[0]), device.put(states.s[0]), packed[..., :16], words[..., 16 // tail])
    got = device.get(packed)
    assert same_bits(np.ascontiguousarray(got[:, :5, :, :16]), np.ascontiguousarray(states.v[0].reshape(5, 2, 3, 16).transpose(1, 0, 2, 3)))
    assert same_bits(np.ascontiguousarray(device.get(words)[:, :5, :, 16 // tail]),
                     np.ascontiguousarray(states.s[0].reshape(5, 2, 3).transpose(1, 0, 2)))
    assert same_bits(np.ascontiguousarray(got[:, 5:]), np.ascontiguousarray(room[:, 5:]))
    received, received_lse = packed[:, :5, :, :16], words[:, :5, :, 16 // tail]
    out, lse = sglang.dcp_lse_combine_triton(received, received_lse, False, True)
    want, total = contract.merge(states.v[0].reshape(5, 2, 3, 16).transpose(1, 0, 2, 3), states.s[0].reshape(5, 2, 3).transpose(1, 0, 2),
                                 base=2.0, out_dtype=dtype)  # fmt: skip
    want.check(device.get(out), "out")
    total.check(device.get(lse), "lse")
    assert same_bits(device.get(packed), got)
    assert sglang.dcp_lse_combine_triton(received, received_lse)[1] is None


def test_vllm_refuses_a_rank_that_is_not_there(device: Device) -> None:
    with pytest.raises(mlafix.ArgumentError, match='"cp_rank": expected a rank from 0 to 1, got 2'):
        vllm.correct_attn_out(device.put(np.zeros((1, 1, 4), np.float32)), device.put(np.zeros((2, 1, 1), np.float32)), 2, None)


@pytest.mark.parametrize("correct", [sglang.correct_attn_out, vllm.correct_attn_out])
def test_no_rank_and_no_lses_are_errors_that_say_so(correct: Any, device: Device) -> None:
    out, lses = device.put(np.zeros((1, 1, 4), np.float32)), device.put(np.zeros((2, 1, 1), np.float32))
    with pytest.raises(mlafix.ArgumentError, match='"cp_rank": expected an integer, got None'):
        correct(out, lses, None, None)
    for wrong, held in ((None, "an array, got NoneType"), (lses[0], r"3 dims \[N, B, H\], got 2")):
        with pytest.raises(mlafix.ArgumentError, match=f'"lses": expected {held}'):
            correct(out, wrong, 0, None)


def test_groups_of_one_rank_return_what_they_get() -> None:
    one: Any = SimpleNamespace(world_size=1, rank_in_group=0)
    out, lse = np.zeros((2, 1, 4), np.float32), np.zeros((2, 1), np.float32)
    assert vllm.cp_lse_ag_out_rs(out, lse, one) is out and vllm.cp_lse_ag_out_ar(out, lse, one, return_lse=True) == (out, lse)
    assert sglang.cp_lse_ag_out_rs_mla(out, lse, one) is out
    assert sglang.dcp_a2a_lse_reduce(out, lse, one, comm_backend="fi_a2a") is out
    for name in ("fi_a2a_fused", "symm_a2a"):
        assert sglang.dcp_a2a_lse_reduce(out, lse, one, comm_backend=name) is out
    with pytest.warns(UserWarning, match="\"comm_backend\": expected one of 'a2a', .*, got 'ag_rs': rows travel over the group"):
        assert sglang.dcp_a2a_lse_reduce(out, lse, one, comm_backend="ag_rs") is out


def test_calls_over_ranks_name_the_engines_arguments() -> None:
    torch = pytest.importorskip("torch")
    out, lse = np.zeros((2, 2, 4), np.float32), np.zeros((2, 2), np.float32)
    two: Any = SimpleNamespace(world_size=2)
    for function in (vllm.cp_lse_ag_out_rs, vllm.cp_lse_ag_out_ar, vllm.dcp_a2a_lse_reduce, sglang.cp_lse_ag_out_rs_mha):
        with pytest.raises(mlafix.ArgumentError, match='argument "cp_attn_out": expected a torch.Tensor, got ndarray'):
            function(out, lse, two)
        with pytest.raises(mlafix.ArgumentError, match='argument "cp_attn_lse": expected a torch.Tensor, got NoneType'):
            function(torch.from_numpy(out), None, two)
        with pytest.raises(mlafix.ArgumentError, match='argument "cp_group": expected a process group, or an object with'):
            function(torch.from_numpy(out), torch.from_numpy(lse), two)


@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
@pytest.mark.parametrize("scale", [1.0, 0.5, 3.0])
def test_tensorrt_llm_merges_by_statistics(dtype: np.dtype, scale: float, device: Device, rng: np.random.Generator) -> None:
    """The merge is right in all three layouts of the arguments. A rank without keys for a row has garbage in that row.
    A row for which no rank has keys becomes 0."""
    ranks, tokens, heads, dim = 3, 6, 2, 16
    rows = rng.normal(0, 1, (ranks, tokens, heads, dim)).astype(dtype)
    stats = np.stack([rng.normal(0, 2, (ranks, tokens, heads)), rng.uniform(0.5, 4, (ranks, tokens, heads))], -1).astype(np.float32)
    stats[1, ::2] = [-np.inf, 0]
    rows[1, ::2] = garbage(rng, rows[1, ::2].shape, dtype)
    stats[:, 3], stats[2, 1, 0], stats[0, 2, 1] = [-np.inf, 0], [3.0, 0], [np.inf, 0]
    lse = contract.stats_to_lse(stats, 1.0)
    out, _ = contract.merge(rows, lse, out_dtype=None)
    # Merged rows are scaled before they are rounded, so even a row that one rank determines is no exact copy.
    want = contract.Expected(out.value * scale, out.magnitude * scale, np.isnan(out.value))
    flat, counts = rows.reshape(ranks, tokens, heads * dim), device.put(stats)
    want.check(device.get(tensorrt_llm.helix_post_process(device.put(flat), counts, scale)).reshape(tokens, heads, dim), "helix_post_process")
    for cp_dim, order in ((1, (1, 0, 2, 3)), (2, (1, 2, 0, 3))):
        shuffled = [device.put(np.ascontiguousarray(array.transpose(order))) for array in (rows, stats)]
        made = device.get(tensorrt_llm.helix_post_process_native(*shuffled, scale, cp_dim))
        assert made.shape == (tokens, heads * dim)
        want.check(made.reshape(tokens, heads, dim), f"cp_dim={cp_dim}")


def test_tensorrt_llm_refuses_other_dims(device: Device) -> None:
    rows, stats = device.put(np.zeros((2, 3, 7), np.float32)), device.put(np.zeros((2, 3, 2, 2), np.float32))
    with pytest.raises(mlafix.ArgumentError, match='"gathered_o": expected a last dim divisible by the 2 heads of gathered_stats, got 7'):
        tensorrt_llm.helix_post_process(rows, stats, 1.0)
    with pytest.raises(mlafix.ArgumentError, match='"cp_dim": expected 1 or 2, got 0'):
        tensorrt_llm.helix_post_process_native(rows, stats, 1.0, 0)


@pytest.mark.parametrize("dtype", [E4M3, np.dtype(np.uint8), np.dtype(np.int64)], ids=str)
def test_payloads_of_other_dtypes_are_refused(dtype: np.dtype, device: Device) -> None:
    """Only the promised dtypes of payloads are accepted, although the kernels have dtype variables and accept more."""
    rows, counts = device.put(np.zeros((2, 3, 8), dtype)), device.put(np.zeros((2, 3, 2, 2), np.float32))
    lses = device.put(np.zeros((2, 2, 3), np.float32))
    for argument, call in (
        ("gathered_o", lambda: tensorrt_llm.helix_post_process(rows, counts, 1.0)),
        ("gathered_o", lambda: tensorrt_llm.helix_post_process_native(rows[:, :, None], device.put(np.zeros((2, 3, 1, 2), np.float32)), 1.0, 1)),
        ("block_out", lambda: ring_attention.update_out_and_lse(None, None, rows, device.put(np.zeros((3, 2), np.float32)))),
        ("out", lambda: vllm.correct_attn_out(rows, lses, 0, None)),
    ):
        with pytest.raises(mlafix.ArgumentError, match=f'argument "{argument}": expected dtype bf16 or f16 or f32, got '):
            call()


@pytest.mark.parametrize("varlen", [False, True])
def test_ring_attention_folds_blocks_in_f32(varlen: bool, device: Device, rng: np.random.Generator) -> None:
    """Many bf16 blocks are merged with the error of an f32 accumulator. The first block may have no keys."""
    blocks = make_states(rng, 12, 5, 3, 8, BF16, faults=False)
    blocks.s[0, :2] = -np.inf
    out: Any = None
    lse: Any = None
    for v, s in zip(blocks.v, blocks.s):
        shape = (v, s.T.copy()) if varlen else (v[None], s.T[None].copy())
        out, lse = ring_attention.update_out_and_lse(out, lse, *(device.put(array) for array in shape))
    want, want_lse = contract.merge(blocks.v, blocks.s)
    got, got_lse = device.get(out), device.get(lse)
    assert got.dtype == F32 and got_lse.shape == ((5, 3, 1) if varlen else (1, 5, 3, 1))
    # Each of the twelve merges rounds its result, so twelve times the error of one merge is allowed.
    far = [contract.Expected(one.value, 12 * one.magnitude, np.isinf(one.value)) for one in (want, want_lse)]
    far[0].check(got.reshape(5, 3, 8), "out")
    far[1].check(got_lse.reshape(5, 3), "lse")


def test_ring_attention_updates_a_slice_alone(device: Device, rng: np.random.Generator) -> None:
    states = make_states(rng, 2, 6, 2, 8, F32, faults=False)
    out, lse = device.put(states.v[0][None].copy()), device.put(states.s[0][None, ..., None].copy())
    half = (slice(None), slice(3, None))
    made = ring_attention.update_out_and_lse(out, lse, device.put(states.v[1][None, 3:]), device.put(states.s[1][3:].T[None].copy()), half)
    assert made[0] is out and made[1] is lse
    want, want_lse = contract.merge(states.v[:, 3:], states.s[:, 3:])
    want.check(device.get(out)[0, 3:], "out")
    want_lse.check(device.get(lse)[0, 3:, :, 0], "lse")
    assert same_bits(device.get(out)[0, :3], states.v[0, :3]) and same_bits(device.get(lse)[0, :3, :, 0], states.s[0, :3])
    copied = [0, 1]
    with pytest.raises(mlafix.ArgumentError, match=r'"slice_": expected slices and integers, so that out\[slice_\] is a view, got \(slice\(None, None, None\), \[0, 1\]\)$'):
        ring_attention.update_out_and_lse(out, lse, device.put(states.v[1][None, :2]), device.put(states.s[1][:2].T[None].copy()), (slice(None), copied))
    with pytest.raises(mlafix.ArgumentError, match='"slice_": expected None for the first block'):
        ring_attention.update_out_and_lse(None, None, out, lse[..., 0].swapaxes(1, 2), half)
