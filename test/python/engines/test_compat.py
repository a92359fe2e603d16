"""The drop-in modules have exactly the engines' signatures, and the behaviour on which the engines' callers rely."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import contract
import mlafix
from devices import Device
from mlafix import compat, ops
from mlafix.compat import (aiter, attn_gym, cache_dit, flash_attn, flash_mla, flashinfer, ring_attention, sglang, tensorrt_llm, tokenspeed,
                           torch_context_parallel, vllm)  # fmt: skip
from numerics import BF16, E4M3, F16, F32, garbage, poison, same_bits
from states import make_states

SIGNATURES = [
    (vllm, "merge_attn_states", "(output, prefix_output, prefix_lse, suffix_output, suffix_lse, output_lse=None, "
                                "prefill_tokens_with_context=None, output_scale=None, output_block_scale=None)"),
    (vllm, "mask_empty_context_lse", "(lse, query_start_loc, context_start_loc)"),
    (vllm, "mask_empty_context", "(lse, output, query_start_loc, context_start_loc)"),
    (vllm, "mask_dcp_empty_shards_", "(lse, seq_lens, query_start_loc)"),
    (vllm, "correct_attn_out", "(out, lses, cp_rank, ctx, is_lse_base_on_e=True)"),
    *((vllm, name, "(cp_attn_out, cp_attn_lse, cp_group, ctx=None, return_lse=False, is_lse_base_on_e=True, seq_lens=None, "
                   "query_start_loc=None)") for name in ("cp_lse_ag_out_rs", "cp_lse_ag_out_ar", "dcp_a2a_lse_reduce")),
    (sglang, "cp_lse_ag_out_rs_mha", "(cp_attn_out, cp_attn_lse, cp_group, return_lse=False)"),
    (sglang, "cp_lse_ag_out_rs_mla", "(cp_attn_out, cp_attn_lse, cp_group, ctx=None, is_lse_base_on_e=False)"),
    (sglang, "dcp_a2a_lse_reduce", "(cp_attn_out, cp_attn_lse, cp_group, is_lse_base_on_e=True, cuda_graph_buffers=None, "
                                   "comm_backend='a2a')"),
    (flashinfer, "decode_cp_a2a_lse_reduce_create_workspace", "(max_tokens, local_heads, cp_size, head_dim, dtype, group)"),
    (flashinfer, "decode_cp_a2a_lse_reduce_workspace_size", "(max_tokens, local_heads, cp_size, head_dim, dtype)"),
    # The signature of the example in FlashInfer's pull request 4929, with the argument that its issue 4575 adds.
    (flashinfer, "decode_cp_a2a_lse_reduce", "(partial_o, partial_lse, workspace, cp_rank, cp_size, lse_mode='base2', enable_pdl=None, *, "
                                             "is_lse_base_on_e=None)"),
    (tensorrt_llm, "helix_post_process", "(gathered_o, gathered_stats, scale)"),
    (tensorrt_llm, "helix_post_process_native", "(gathered_o, gathered_stats, scale, cp_dim)"),
    (ring_attention, "update_out_and_lse", "(out, lse, block_out, block_lse, slice_=None)"),
    (vllm, "pack_seq_triton", "(x, lengths, pad_value=-inf, block_t=64, block_d=64)"),
    (vllm, "unpack_seq_triton", "(packed_tensor, lengths, block_t=64, block_d=64)"),
    (sglang, "merge_state_v2", "(v_a, s_a, v_b, s_b, v_merged=None, s_merged=None)"),
    (sglang, "merge_state_v1", "(v_a, s_a, v_b, s_b, v_merged=None, s_merged=None)"),
    (sglang, "merge_state", "(prefix_output, prefix_lse, suffix_output, suffix_lse, output=None, output_lse=None)"),
    (sglang, "fixup_zero_kv_rows", "(out, lse, kv_lens, cum_seq_lens, max_seq_len)"),
    (flashinfer, "merge_state", "(v_a, s_a, v_b, s_b)"),
    (flashinfer, "merge_state_in_place", "(v, s, v_other, s_other, mask=None)"),
    (flashinfer, "merge_states", "(v, s)"),
    (flashinfer, "variable_length_merge_states", "(v, s, indptr)"),
    (flash_attn, "flash_attn_combine", "(out_partial, lse_partial, out=None, out_dtype=None, cu_seqlens=None, seqused=None, "
                                       "virtual_batch_idx=None, return_lse=True, *, varlen_batch_idx=None, output_scale=None)"),
    (cache_dit, "fused_merge_attn_states", "(prev_out, prev_lse, suff_out, suff_lse)"),
    (sglang, "correct_attn_out", "(out, lses, cp_rank, ctx, new_output=None, is_lse_base_on_e=False)"),
    (sglang, "dcp_lse_combine_triton", "(recv_output, recv_lse, is_lse_base_on_e=True, return_lse=False)"),
    *((module, name, "(segm_output, segm_max, segm_expsum, seq_lens, tile_size, out_dtype)")
      for module, name in ((sglang, "dcp_mla_reduce"), (vllm, "merge_mla_segments_triton"))),
    (sglang, "attn_res_fused_tma", "(prefix_sum, bank, cw, ow, out, nvb, eps, *, write_prefix=False)"),
    (sglang, "dcp_pack_a2a_send", "(cp_attn_out, cp_attn_lse, dst_o, dst_lse)"),
    (sglang, "get_dcp_lens", "(lens, dcp_size, dcp_rank, start=None, interleave_size=1)"),
    (sglang, "localize_dcp_indices", "(indices, dcp_size, dcp_rank, interleave_size=1)"),
    (vllm, "neutralize_empty_context_partials", "(chunked_context, output, output_lse)"),
    (vllm, "init_mla_context_partial", "(chunked_context, attn_output, attn_softmax_lse, num_tokens)"),
    (vllm, "accumulate_mla_context_chunk", "(chunk, attn_output, attn_softmax_lse, output, output_lse, output_written=False)"),
    (vllm, "compute_token_to_req_indices", "(query_start_loc, out, num_mapped_tokens, num_tokens)"),
    (vllm, "prepare_dcp_local_seq_lens", "(dcp_local_seq_lens, seq_lens, num_reqs, dcp_size, dcp_rank, cp_interleave, *, num_reqs_padded=None)"),
    (vllm, "get_direct_dcp_a2a_workspace", "(group, device, max_num_tokens, heads_per_rank, head_dim, dtype, num_ubatches)"),
    (vllm, "get_direct_dcp_q_gather_workspace", "(group, device, max_num_tokens, heads_per_rank, head_dim, dtype, num_ubatches, "
                                                "padded_num_heads=None)"),
    (vllm, "get_direct_dcp_kv_gather_workspace", "(group, device, max_gathered_tokens, token_dim, dtype, num_ubatches)"),
    (attn_gym, "merge_attention", "(out, lse, other_out, other_lse)"),
    (torch_context_parallel, "SDPAMerger", "(convert_to_f32, seq_dim)"),
    (vllm, "DirectDCPQGatherWorkspace", "(group, device, max_num_tokens, heads_per_rank, head_dim, dtype='bf16', num_ubatches=1, "
                                        "padded_num_heads=None)"),
    (vllm, "DirectDCPKVGatherWorkspace", "(group, device, max_gathered_tokens, token_dim, dtype='bf16', num_ubatches=1)"),
    (aiter, "mla_reduce_v1", "(partial_output, partial_lse, reduce_indptr, reduce_final_map, reduce_partial_map, max_seqlen_q, "
                             "num_kv_splits, final_output, final_lse=None)"),
    (flash_mla, "flash_mla_combine", "(o_accum, lse_accum, num_splits, out, lse, attn_sink=None)"),
    (tokenspeed, "merge_state", f"(v_a, s_a, v_b, s_b, *, inplace=False, lse_scale_log2={tokenspeed.LSE_LN}, enable_pdl=False)"),
    (tokenspeed, "attn_merge_state", f"(out_a, lse_a, out_b, lse_b, *, lse_scale_log2={tokenspeed.LSE_LN}, inplace=False, "
                                     "enable_pdl=False, override=None, solution=None)"),
]


@pytest.mark.parametrize("module, name, expected", SIGNATURES, ids=[f"{m.__name__}.{n}" for m, n, _ in SIGNATURES])
def test_signature_is_the_engines(module: ModuleType, name: str, expected: str) -> None:
    signature = inspect.signature(getattr(module, name))
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    assert str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)) == expected


def test_each_drop_in_says_which_version_it_follows() -> None:
    modules = {info.name: importlib.import_module(f"mlafix.compat.{info.name}") for info in pkgutil.iter_modules(compat.__path__)
               if not info.name.startswith("_")}  # fmt: skip
    found = {f"{name}.{item}" for name, module in modules.items() for item, value in vars(module).items()
             if not item.startswith("_") and getattr(value, "__module__", "").rpartition(".")[2] in (name, "_gather")}  # fmt: skip
    assert found == set(compat.ENGINE_VERSIONS) and all("/" in version for version in compat.ENGINE_VERSIONS.values())


def test_vllm_merges_in_place_on_slices_of_a_larger_lse(device: Device, rng: np.random.Generator) -> None:
    """The merge may be in place on slices of a larger lse, as in vLLM's MLA prefill: output is prefix_output,
    output_lse is prefix_lse, and D = 192."""
    n, heads, dim = 9, 2, 192
    states = make_states(rng, 2, n, heads, dim, BF16)
    whole = device.put(garbage(rng, (heads, n + 6), F32))
    prefix_lse = whole[:, 2 : 2 + n]
    device.write(prefix_lse, states.s[0].T)
    before = device.get(whole).copy()
    prefix, suffix, suffix_lse = device.put(states.v[0].copy()), device.put(states.v[1]), device.put(states.s[1].T.copy())
    assert vllm.merge_attn_states(prefix, prefix, prefix_lse, suffix, suffix_lse, prefix_lse, 7) is None  # type: ignore[func-returns-value]
    want, want_lse = contract.merge(states.v[:, :7], states.s[:, :7], out_dtype=BF16)
    want.check(device.get(prefix)[:7], "output")
    after = device.get(whole)
    want_lse.check(after[:, 2:9].T, "output_lse")
    assert same_bits(device.get(prefix)[7:], states.v[1, 7:]) and same_bits(after[:, 9 : 2 + n].T, states.s[1, 7:])
    assert same_bits(after[:, :2], before[:, :2]) and same_bits(after[:, 2 + n :], before[:, 2 + n :])


def test_vllm_without_output_lse_computes_none(device: Device, rng: np.random.Generator) -> None:
    states = make_states(rng, 2, 5, 2, 64, F32)
    out = device.poisoned((5, 2, 64), F32)
    vllm.merge_attn_states(out, *(device.put(x) for x in (states.v[0], states.s[0].T.copy(), states.v[1], states.s[1].T.copy())))
    contract.merge(states.v, states.s)[0].check(device.get(out), "output")


def odd_rows(rng: np.random.Generator, n: int, heads: int, dim: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Returns a suffix [n, H, D] of arbitrary bits, including signalling NaN, and an lse [H, n] with every kind of
    number."""
    size = dtype.itemsize
    bits = rng.integers(0, 1 << 8 * size, (n, heads, dim), f"u{size}")
    lse = rng.normal(0, 3, (heads, n)).astype(np.float32)
    lse[:, ::4], lse[:, 1::4], lse[:, 2::4] = np.inf, -np.inf, np.array(0x7FA12345, np.uint32).view(np.float32)
    return bits.view(dtype), lse


@pytest.mark.parametrize("onto", ["new", "prefix", "suffix"])
@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
def test_vllm_rows_past_the_threshold_are_copies_of_the_suffix(dtype: np.dtype, onto: str, device: Device,
                                                               rng: np.random.Generator) -> None:
    """Rows past the threshold are copies of the suffix, even if its lse is +inf, as in vLLM's own test. With D = 192, a
    row needs more lanes than a warp has."""
    n, heads, dim, threshold = 13, 3, 192, 5
    states = make_states(rng, 2, n, heads, dim, dtype)
    suffix, suffix_lse = states.v[1].copy(), np.ascontiguousarray(states.s[1].T)
    suffix[threshold:], suffix_lse[:, threshold:] = (part for part in odd_rows(rng, n - threshold, heads, dim, dtype))
    prefix, prefix_lse = device.put(states.v[0].copy()), device.put(np.ascontiguousarray(states.s[0].T))
    on_device, lse_on_device = device.put(suffix.copy()), device.put(suffix_lse.copy())
    out, lse = {"new": lambda: (device.poisoned((n, heads, dim), dtype), device.poisoned((heads, n), F32)),
                "prefix": lambda: (prefix, prefix_lse), "suffix": lambda: (on_device, lse_on_device)}[onto]()
    vllm.merge_attn_states(out, prefix, prefix_lse, on_device, lse_on_device, lse, threshold)
    got, got_lse = device.get(out), device.get(lse)
    assert same_bits(got[threshold:], suffix[threshold:]) and same_bits(got_lse[:, threshold:], suffix_lse[:, threshold:])
    want, want_lse = contract.merge(states.v[:, :threshold], states.s[:, :threshold], out_dtype=dtype)
    want.check(got[:threshold], "output")
    want_lse.check(got_lse[:, :threshold].T, "output_lse")
    vllm.merge_attn_states(out, prefix, prefix_lse, on_device, lse_on_device, None, threshold)
    assert same_bits(device.get(out)[threshold:], suffix[threshold:])


def test_vllm_fp8_rows_past_the_threshold_take_the_suffix_whatever_its_lse(device: Device, rng: np.random.Generator) -> None:
    n, heads, dim, threshold = 9, 2, 64, 4
    states = make_states(rng, 2, n, heads, dim, BF16)
    suffix_lse = np.ascontiguousarray(states.s[1].T)
    suffix_lse[:, threshold:] = odd_rows(rng, n - threshold, heads, dim, BF16)[1]
    out, lse = device.poisoned((n, heads, dim), E4M3), device.poisoned((heads, n), F32)
    arrays = [device.put(x) for x in (states.v[0], np.ascontiguousarray(states.s[0].T), states.v[1], suffix_lse)]
    vllm.merge_attn_states(out, *arrays, lse, threshold, device.put(np.full(1, 0.3, np.float32)))
    live = np.zeros((1, n - threshold, heads), np.float32)
    contract.merge(states.v[1:, threshold:], live, out_dtype=E4M3, scale=0.3)[0].check(device.get(out)[threshold:], "output")
    assert same_bits(device.get(lse)[:, threshold:], suffix_lse[:, threshold:])
    contract.merge(states.v[:, :threshold], states.s[:, :threshold], out_dtype=E4M3, scale=0.3)[0].check(
        device.get(out)[:threshold], "output")


def test_vllm_says_that_fp8_is_not_read(device: Device) -> None:
    rows, lse = (device.put(np.ones((3, 2, 64), np.float32).astype(E4M3)) for _ in range(2)), device.put(np.zeros((2, 3), np.float32))
    prefix, suffix = rows
    with pytest.raises(mlafix.ArgumentError, match=r'argument "prefix_output": expected dtype bf16 or f16 or f32, got f8e4m3fn '
                                                   r'\(fp8 is for outputs\)'):
        vllm.merge_attn_states(device.poisoned((3, 2, 64), E4M3), prefix, lse, suffix, lse,
                               output_scale=device.put(np.ones(1, np.float32)))
    with pytest.raises(mlafix.ArgumentError, match='argument "prefix": expected dtype bf16 or f16 or f32, got float8_e4m3fn$'):
        ops.merge_attn_states(prefix, lse, suffix, lse)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)], ids=str)
def test_vllm_fp8_output_takes_a_device_scale(shape: tuple[int, ...], device: Device, rng: np.random.Generator) -> None:
    states = make_states(rng, 2, 5, 2, 64, BF16)
    arrays = [device.put(x) for x in (states.v[0], states.s[0].T.copy(), states.v[1], states.s[1].T.copy())]
    out = device.poisoned((5, 2, 64), E4M3)
    vllm.merge_attn_states(out, *arrays, None, None, device.put(np.full(1, 0.25, np.float32)).reshape(shape))
    contract.merge(states.v, states.s, out_dtype=E4M3, scale=0.25)[0].check(device.get(out), "output")
    with pytest.raises(mlafix.ArgumentError, match='argument "output_scale": expected one f32 .*, got None'):
        vllm.merge_attn_states(out, *arrays)


def test_vllm_threshold_past_the_end_is_an_error(device: Device, rng: np.random.Generator) -> None:
    states = make_states(rng, 2, 5, 2, 64, F32)
    arrays = [device.put(x) for x in (states.v[0], states.s[0].T.copy(), states.v[1], states.s[1].T.copy())]
    out = device.poisoned((5, 2, 64), F32)
    for wrong in (6, -1):
        with pytest.raises(mlafix.ArgumentError, match=f'argument "prefill_tokens_with_context": expected a value from 0 to 5.*got {wrong}'):
            vllm.merge_attn_states(out, *arrays, prefill_tokens_with_context=wrong)
    assert same_bits(device.get(out), poison((5, 2, 64), F32))


def test_vllm_masks_and_metadata(device: Device, rng: np.random.Generator) -> None:
    lse, out = garbage(rng, (2, 6), F32), garbage(rng, (6, 2, 64), BF16)
    query, context = np.array([0, 2, 6], np.int32), np.array([0, 0, 3], np.int32)
    on_device = device.put(lse.copy()), device.put(out.copy())
    vllm.mask_empty_context_lse(on_device[0], device.put(query), device.put(context))
    got = device.get(on_device[0])
    assert np.isneginf(got[:, :2]).all() and same_bits(got[:, 2:], lse[:, 2:])
    vllm.mask_empty_context(*on_device, device.put(query), device.put(context))
    got = device.get(on_device[1])
    assert same_bits(got[:2], np.zeros_like(got[:2])) and same_bits(got[2:], out[2:])
    lens = vllm.expand_context_lens(device.put(np.full(8, -1, np.int32)), device.put(np.array([4, 1, 9], np.int32)), 3, 2)
    assert device.get(lens).tolist() == [[3, 4], [0, 1], [8, 9]]
    flags = vllm.is_prefilling(device.put(np.array([1, 7, 0], np.int32)), device.put(np.array([2, 7, 9], np.int32)), 2, 4)
    assert device.get(flags).tolist() == [True, False, False, False]


@pytest.mark.parametrize("dtype", [np.int64, np.int16, np.uint8, np.int32], ids=str)
def test_vllm_masks_take_offsets_of_any_integer_dtype(dtype: type, device: Device, rng: np.random.Generator) -> None:
    """The offsets may have any integer dtype, such as i64 for a cumsum of lengths. With i64 offsets, a context may have
    more than 2^31 tokens."""
    lse, out = garbage(rng, (2, 7), F32), garbage(rng, (7, 2, 64), F16)
    query, context = np.array([0, 2, 6, 7], dtype), np.array([0, 3, 3, 9], dtype)
    if dtype is np.int64:
        context += np.array([0, 2**31 - 2, 2**31 - 2, 2**33])
    spaced = np.zeros((4, 3), dtype)
    spaced[:, 1] = query
    for starts in (query, spaced[:, 1]):
        only_lse, both, both_out = device.put(lse.copy()), device.put(lse.copy()), device.put(out.copy())
        vllm.mask_empty_context_lse(only_lse, device.put(starts), device.put(context))
        vllm.mask_empty_context(both, both_out, device.put(starts), device.put(context))
        for masked in (device.get(only_lse), device.get(both)):
            assert np.isneginf(masked[:, 2:6]).all()
            assert same_bits(masked[:, :2], lse[:, :2]) and same_bits(masked[:, 6:], lse[:, 6:])
        got = device.get(both_out)
        assert same_bits(got[2:6], np.zeros_like(got[2:6])) and same_bits(got[:2], out[:2]) and same_bits(got[6:], out[6:])


@pytest.mark.parametrize("dtype", [E4M3, np.dtype(np.int8), BF16], ids=str)
@pytest.mark.parametrize("shape", [(6,), (6, 64), (6, 2, 64), (6, 4, 64), (6, 2, 3, 32), (6, 2, 1, 3, 32), (6, 2, 0, 32)], ids=str)
def test_vllm_masks_payloads_of_any_rank(shape: tuple[int, ...], dtype: np.dtype, device: Device, rng: np.random.Generator) -> None:
    lse = garbage(rng, (2, 6), F32)
    out = np.ascontiguousarray(rng.integers(1, 100, shape, f"u{dtype.itemsize}")).view(dtype)
    # Three payloads are masked: a contiguous one, one with gaps between its rows, and one whose inner dims are not
    # evenly spaced.
    gaps = np.zeros((*shape[:-1], shape[-1] + 8), dtype)[..., : shape[-1]] if len(shape) > 1 else out.copy()
    gaps[...] = out
    permuted = np.ascontiguousarray(gaps.swapaxes(1, -2)).swapaxes(1, -2) if len(shape) > 3 else gaps
    query, context = device.put(np.array([0, 2, 6])), device.put(np.array([0, 0, 3]))
    for held in (out, gaps, permuted):
        masked, payload = device.put(lse.copy()), device.put(held.copy() if held is out else held)
        vllm.mask_empty_context(masked, payload, query, context)
        assert np.isneginf(device.get(masked)[:, :2]).all() and same_bits(device.get(masked)[:, 2:], lse[:, 2:])
        got = device.get(payload)
        assert same_bits(got[:2], np.zeros_like(got[:2])) and same_bits(got[2:], out[2:])
        held[...] = out


@pytest.mark.parametrize("shape, dtype, message", [
    ((1, 6, 2, 64), F32, '"output": expected [6, ...], as many tokens as lse has, got [1, 6, 2, 64]'),
    ((5, 3, 64), F32, '"output": expected [6, ...], as many tokens as lse has, got [5, 3, 64]'),
    ((), F32, '"output": expected [6, ...], as many tokens as lse has, got []'),
    ((6, 3, 64), np.dtype(np.float64), '"output": expected dtype bf16 or f16 or f32 or f8e4m3fn, got float64'),
])
def test_vllm_masks_nothing_where_the_payload_does_not_fit(shape: tuple[int, ...], dtype: np.dtype, message: str, device: Device) -> None:
    lse, payload = device.put(np.ones((2, 6), np.float32)), device.put(np.ones(shape, dtype))
    with pytest.raises(mlafix.ArgumentError, match=re.escape(message)):
        vllm.mask_empty_context(lse, payload, device.put(np.array([0, 6])), device.put(np.array([0, 0])))
    assert (device.get(lse) == 1).all() and (device.get(payload) == 1).all()


def test_sglang_fixup_wants_one_more_offset_than_lengths(device: Device, rng: np.random.Generator) -> None:
    out, lse = garbage(rng, (6, 2, 64), BF16), garbage(rng, (6, 2), F32)
    on_device = device.put(out.copy()), device.put(lse.copy())
    with pytest.raises(mlafix.ArgumentError, match='argument "cum_seq_lens": expected 4 entries for the 3 sequences of kv_lens, got 3'):
        sglang.fixup_zero_kv_rows(*on_device, device.put(np.zeros(3, np.int32)), device.put(np.array([0, 2, 6], np.int32)), 4)
    assert same_bits(device.get(on_device[0]), out) and same_bits(device.get(on_device[1]), lse)


def test_sglang_fills_and_returns_what_it_is_given(device: Device, rng: np.random.Generator) -> None:
    states = make_states(rng, 2, 5, 2, 64, BF16)
    inputs = [device.put(x) for x in (states.v[0], states.s[0], states.v[1], states.s[1])]
    want, want_lse = contract.merge(states.v, states.s, out_dtype=BF16)
    v, s = device.poisoned((5, 2, 64), BF16), device.poisoned((5, 2), F32)
    for function in (sglang.merge_state_v2, sglang.merge_state):
        given = function(*inputs, v, s)
        assert given[0] is v and given[1] is s
        made = function(*inputs)
        for out, lse in (given, made):
            want.check(device.get(out), "v")
            want_lse.check(device.get(lse), "s")


def test_sglang_fixup_treats_negative_lengths_as_zero(device: Device, rng: np.random.Generator) -> None:
    out, lse = garbage(rng, (6, 2, 64), BF16), garbage(rng, (6, 2), F32)
    on_device = device.put(out.copy()), device.put(lse.copy())
    sglang.fixup_zero_kv_rows(*on_device, device.put(np.array([-3, 2, 0], np.int32)), device.put(np.array([0, 2, 5, 6], np.int32)), 3)
    dead = np.array([True, True, False, False, False, True])
    expected, expected_lse = contract.blanked(out, lse, dead)
    expected.check(device.get(on_device[0]), "out")
    expected_lse.check(device.get(on_device[1]), "lse")


def test_flashinfer_is_base_2(device: Device) -> None:
    ones = np.ones((1, 2, 64), BF16)
    zeros = np.zeros((1, 2), np.float32)
    v, s = flashinfer.merge_state(*(device.put(x) for x in (ones, zeros, 3 * ones, zeros)))
    assert (device.get(v).astype(np.float32) == 2).all() and (device.get(s) == 1).all()  # log2(1 + 1)


def test_flashinfer_merges_many_and_none(device: Device, rng: np.random.Generator) -> None:
    states = make_states(rng, 3, 5, 2, 64, BF16)
    v, s = np.ascontiguousarray(states.v.swapaxes(0, 1)), np.ascontiguousarray(states.s.swapaxes(0, 1))
    out, lse = flashinfer.merge_states(device.put(v), device.put(s))
    want, want_lse = contract.merge(states.v, states.s, base=2.0, out_dtype=BF16)
    want.check(device.get(out), "V")
    want_lse.check(device.get(lse), "S")
    nothing, none = flashinfer.merge_states(device.put(v[:, :0].copy()), device.put(s[:, :0].copy()))
    assert same_bits(device.get(nothing), np.zeros((5, 2, 64), BF16)) and np.isneginf(device.get(none)).all()


def test_flashinfer_variable_lengths(device: Device, rng: np.random.Generator) -> None:
    states = make_states(rng, 1, 10, 2, 64, BF16)
    v, s = states.v[0], states.s[0]
    for indptr in ([0, 3, 3, 7, 10], [0, 10], [4, 2, 11, 10, -1, 0], [0]):
        segments = np.array(indptr, np.int32)
        out, lse = flashinfer.variable_length_merge_states(device.put(v), device.put(s), device.put(segments))
        want, want_lse = contract.merge_ragged(v, s, segments, base=2.0, out_dtype=BF16)
        want.check(device.get(out), "V")
        want_lse.check(device.get(lse), "S")


def test_flashinfer_in_place_with_masks(device: Device, rng: np.random.Generator) -> None:
    states = make_states(rng, 2, 6, 2, 64, BF16)
    mask = np.array([1, 0, 1, 1, 0, 0], bool)
    for given in (mask, mask.astype(np.uint8) * 7):
        v, s = device.put(states.v[0].copy()), device.put(states.s[0].copy())
        assert flashinfer.merge_state_in_place(v, s, device.put(states.v[1]), device.put(states.s[1]), device.put(given)) is None  # type: ignore[func-returns-value]
        present = np.stack([np.ones((6, 2), bool), np.broadcast_to(mask[:, None], (6, 2))])
        got = device.get(v)
        assert same_bits(got[~mask], states.v[0][~mask])
        want, _ = contract.merge(states.v[:, mask], states.s[:, mask], base=2.0, out_dtype=BF16, present=present[:, mask])
        want.check(got[mask], "v")


@pytest.mark.parametrize("splits", [1, 4])
@pytest.mark.parametrize("out_dtype", [None, "bfloat16", "float16"])
def test_flash_attn_combine(splits: int, out_dtype: str | None, device: Device, rng: np.random.Generator) -> None:
    """Partials are f32. The lse is a transposed view of [S, B, H, L], as the attention kernel leaves it."""
    batch, length, heads, dim = 2, 3, 2, 64
    states = make_states(rng, splits, batch * length, heads, dim, F32)
    partial = states.v.reshape(splits, batch, length, heads, dim)
    lse_partial = np.ascontiguousarray(states.s.reshape(splits, batch, length, heads).swapaxes(2, 3)).swapaxes(2, 3)
    dtype: Any = None
    if out_dtype is not None:
        dtype = getattr(pytest.importorskip("torch"), out_dtype) if device.is_torch else out_dtype
    on_device = device.put(partial), device.put(lse_partial)
    out, lse = flash_attn.flash_attn_combine(*on_device, out_dtype=dtype)
    kept = {None: F32, "bfloat16": BF16, "float16": np.dtype(np.float16)}[out_dtype]
    want, want_lse = contract.merge(partial, lse_partial, out_dtype=kept)
    assert device.get(out).dtype == kept
    want.check(device.get(out), "out")
    want_lse.check(device.get(lse), "lse")
    assert device.get(lse).strides[1] == 4  # contiguous along L, as upstream
    given = device.poisoned((batch, length, heads, dim), kept)
    again, none = flash_attn.flash_attn_combine(*on_device, given, return_lse=False)
    assert again is given and none is None
    want.check(device.get(given), "out")


def test_flash_attn_combine_of_ragged_batches(device: Device, rng: np.random.Generator) -> None:
    states = make_states(rng, 3, 7, 2, 64, F32)
    cu_seqlens = device.put(np.array([0, 3, 7], np.int32))
    given = device.poisoned((7, 2, 64), F32)
    for out in (None, given):
        got, lse = flash_attn.flash_attn_combine(device.put(states.v), device.put(states.s), out, cu_seqlens=cu_seqlens)
        assert out is None or got is out
        want, want_lse = contract.merge(states.v, states.s)
        want.check(device.get(got), "out")
        want_lse.check(device.get(lse), "lse")


def test_flash_attn_combine_in_any_order_of_batches(device: Device, rng: np.random.Generator) -> None:
    """`virtual_batch_idx` gives the order of batches. It has no effect, since rows do not depend on each other."""
    states = make_states(rng, 3, 8, 2, 64, F32)
    partial, lse_partial = states.v.reshape(3, 4, 2, 2, 64), states.s.reshape(3, 4, 2, 2)
    order = device.put(np.array([2, 0, 3, 1], np.int32))
    out, lse = flash_attn.flash_attn_combine(device.put(partial), device.put(lse_partial), virtual_batch_idx=order)
    want, want_lse = contract.merge(partial, lse_partial)
    want.check(device.get(out), "out")
    want_lse.check(device.get(lse), "lse")


def test_vllms_flash_attn_combines_into_fp8_with_one_scale(device: Device, rng: np.random.Generator) -> None:
    """vLLM passes `varlen_batch_idx` where FlashAttention has `virtual_batch_idx`. `output_scale` is one f32 with any
    number of dims."""
    states = make_states(rng, 3, 8, 2, 64, F32)
    partial, lse_partial = states.v.reshape(3, 4, 2, 2, 64), states.s.reshape(3, 4, 2, 2)
    order, scale = device.put(np.array([2, 0, 3, 1], np.int32)), device.put(np.full((), 0.25, np.float32))
    out, lse = flash_attn.flash_attn_combine(device.put(partial), device.put(lse_partial), varlen_batch_idx=order, output_scale=scale)
    want, want_lse = contract.merge(partial, lse_partial, out_dtype=E4M3, scale=0.25)
    want.check(device.get(out), "out")
    want_lse.check(device.get(lse), "lse")


@pytest.mark.parametrize("layout", ["contiguous", "heads first"])
def test_cache_dit_merges_batches_of_rows(layout: str, device: Device, rng: np.random.Generator) -> None:
    """Arrays are [B, N, H, D] and [B, N, H, 1]. They are contiguous, or views of [B, H, N, …] whose dims cannot be
    joined."""
    states = make_states(rng, 2, 10, 4, 32, BF16)
    v, s = states.v.reshape(2, 2, 5, 4, 32), states.s.reshape(2, 2, 5, 4, 1)
    turned = lambda x: np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2) if layout == "heads first" else x  # noqa: E731
    out, lse = cache_dit.fused_merge_attn_states(*(device.put(turned(x)) for x in (v[0], s[0], v[1], s[1])))
    want, want_lse = contract.merge(v, s[..., 0], out_dtype=BF16)
    want.check(device.get(out), "out")
    want_lse.check(device.get(lse)[..., 0], "lse")
    with pytest.raises(mlafix.ArgumentError, match=r'argument "prev_lse": expected shape \[2, 5, 4, 1\], got \[2, 5, 4\]'):
        cache_dit.fused_merge_attn_states(device.put(v[0]), device.put(s[0, ..., 0]), device.put(v[1]), device.put(s[1]))


def test_flash_attn_combine_out_dtype_must_be_that_of_out(device: Device) -> None:
    partial, lse = device.put(np.ones((1, 1, 2, 2, 64), np.float32)), device.put(np.ones((1, 1, 2, 2), np.float32))
    out = device.poisoned((1, 2, 2, 64), BF16)
    with pytest.raises(mlafix.ArgumentError, match='argument "out_dtype": expected bf16, the dtype of out, or None, got f32'):
        flash_attn.flash_attn_combine(partial, lse, out, "float32")
    assert same_bits(device.get(out), poison((1, 2, 2, 64), BF16))
    assert flash_attn.flash_attn_combine(partial, lse, out, "bfloat16")[0] is out


def test_flash_attn_combine_says_what_it_does_not_take(device: Device) -> None:
    partial, lse = device.put(np.ones((1, 2, 2, 64), np.float32)), device.put(np.ones((1, 2, 2), np.float32))
    with pytest.raises(mlafix.ArgumentError, match='argument "out_partial": expected 5 dims .* got 3'):
        flash_attn.flash_attn_combine(partial[0], lse)
    with pytest.raises(mlafix.ArgumentError, match='argument "out_partial": expected an array, got NoneType'):
        flash_attn.flash_attn_combine(None, lse)  # type: ignore[arg-type]
    with pytest.raises(mlafix.ArgumentError, match=r'argument "lse_partial": expected 3 dims \[S, T, H\], got 4'):
        flash_attn.flash_attn_combine(partial, lse[..., None])
    with pytest.raises(mlafix.ArgumentError, match='argument "lse_partial": expected an array, got NoneType'):
        flash_attn.flash_attn_combine(partial, None)  # type: ignore[arg-type]
    with pytest.raises(mlafix.ArgumentError, match=r'argument "out": expected 3 dims \[T, H, D\], got 4'):
        flash_attn.flash_attn_combine(partial, lse, partial)
