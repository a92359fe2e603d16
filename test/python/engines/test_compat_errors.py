"""Errors of the drop-ins name arguments of the called function, for any mistake in any argument."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from devices import Device, TorchDevice
from mlafix import ArgumentError, compat
from mlafix.compat import aiter, attn_gym, cache_dit, flash_attn, flash_mla, flashinfer, ring_attention, sglang, tensorrt_llm, tokenspeed, vllm
from numerics import BF16, E4M3, F32

N, H, D, S, B = 6, 4, 64, 3, 2  # N: tokens, H: heads, D: head dim, S: splits or segments, B: requests
LONG = np.dtype(np.int64)
INT = np.dtype(np.int32)

ROWS, LSE, LSE_HN = ((N, H, D), BF16), ((N, H), F32), ((H, N), F32)
STARTS = np.array([0, 2, N], INT)
LENGTHS = np.array([2, N - 2], INT)
SEGMENTS = {"segm_output": ((N, H, S, D), F32), "segm_max": ((N, H, S), F32), "segm_expsum": ((N, H, S), F32)}
CHUNKS = SimpleNamespace(empty_token_slices=[slice(0, 2), slice(4, N)])
CHUNK = SimpleNamespace(token_slice=slice(0, N), is_continuation=True, continuation_token_end=2)
MERGED = {"v_a": ROWS, "s_a": LSE, "v_b": ROWS, "s_b": LSE}

# Valid arguments of each function. A pair (shape, dtype) stands for an array of ones; other values are passed as they
# are.
CALLS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (vllm.merge_attn_states, {"output": ROWS, "prefix_output": ROWS, "prefix_lse": LSE_HN, "suffix_output": ROWS, "suffix_lse": LSE_HN,
                              "output_lse": LSE_HN}),
    (vllm.merge_attn_states, {"output": ((N, H, D), E4M3), "prefix_output": ROWS, "prefix_lse": LSE_HN, "suffix_output": ROWS,
                              "suffix_lse": LSE_HN, "output_scale": ((1,), F32)}),
    (vllm.merge_attn_states, {"output": ((N, H, D), E4M3), "prefix_output": ROWS, "prefix_lse": LSE_HN, "suffix_output": ROWS,
                              "suffix_lse": LSE_HN, "output_block_scale": ((N, H), F32)}),
    (vllm.mask_empty_context_lse, {"lse": LSE_HN, "query_start_loc": STARTS, "context_start_loc": STARTS}),
    (vllm.mask_empty_context, {"lse": LSE_HN, "output": ROWS, "query_start_loc": STARTS, "context_start_loc": STARTS}),
    (vllm.mask_empty_context, {"lse": LSE_HN, "output": ((N, H * D), BF16), "query_start_loc": STARTS, "context_start_loc": STARTS}),
    (vllm.expand_context_lens, {"buffer": ((B * 2,), INT), "seq_lens": LENGTHS, "num_decodes": B, "max_decode_len": 2}),
    (vllm.is_prefilling, {"num_computed_tokens": LENGTHS, "num_prompt_tokens": LENGTHS, "num_reqs": B, "num_reqs_padded": B + 1}),
    (vllm.merge_mla_segments_triton, {**SEGMENTS, "seq_lens": np.full(N, 9, INT), "tile_size": 4, "out_dtype": "bf16"}),
    (vllm.reduce_segments, {"output": ROWS, **SEGMENTS, "seq_lens": LENGTHS, "query_start_loc": STARTS, "tile_size": 4, "return_lse": True}),
    (vllm.reduce_segments, {"output": ((N, H, D), E4M3), **SEGMENTS, "seq_lens": LENGTHS, "query_start_loc": STARTS, "tile_size": 4,
                            "output_scale": ((1,), F32)}),
    (vllm.pack_seq_triton, {"x": ((N, D), BF16), "lengths": LENGTHS, "pad_value": 0.0}),
    (vllm.unpack_seq_triton, {"packed_tensor": ((B, N - 2, D), BF16), "lengths": LENGTHS}),
    (vllm.mask_dcp_empty_shards_, {"lse": LSE, "seq_lens": LENGTHS, "query_start_loc": STARTS}),
    (vllm.correct_attn_out, {"out": ROWS, "lses": ((S, N, H), F32), "cp_rank": 1, "ctx": None}),
    (sglang.merge_state_v1, {**MERGED, "v_merged": ROWS, "s_merged": LSE}),
    (sglang.merge_state_v2, {**MERGED, "v_merged": ROWS, "s_merged": LSE}),
    (sglang.merge_state, {"prefix_output": ROWS, "prefix_lse": LSE, "suffix_output": ROWS, "suffix_lse": LSE, "output": ROWS, "output_lse": LSE}),
    (sglang.fixup_zero_kv_rows, {"out": ROWS, "lse": LSE, "kv_lens": LENGTHS, "cum_seq_lens": STARTS, "max_seq_len": 4}),
    (sglang.attn_res_fused_tma, {"prefix_sum": ((N, D), BF16), "bank": ((N, S, D), BF16), "cw": ((D,), BF16), "ow": ((D,), BF16),
                                 "out": ((N, D), BF16), "nvb": 2, "eps": 1e-6, "write_prefix": True}),
    (sglang.correct_attn_out, {"out": ROWS, "lses": ((S, N, H), F32), "cp_rank": 1, "ctx": None, "new_output": ((H, N, D), F32)}),
    (sglang.dcp_lse_combine_triton, {"recv_output": ((S, N, H, D), BF16), "recv_lse": ((S, N, H), F32), "return_lse": True}),
    (sglang.dcp_pack_a2a_send, {"cp_attn_out": ((N, 2 * H, D), BF16), "cp_attn_lse": ((N, 2 * H), F32),
                                "dst_o": ((2, N + 1, H, D), BF16), "dst_lse": ((2, N + 1, H), F32)}),
    (sglang.get_dcp_lens, {"lens": np.full(N, 9, INT), "dcp_size": 2, "dcp_rank": 1, "start": np.full(N, 3, INT)}),
    (sglang.localize_dcp_indices, {"indices": np.full((N, S), 9, INT), "dcp_size": 2, "dcp_rank": 1}),
    (vllm.neutralize_empty_context_partials, {"chunked_context": CHUNKS, "output": ROWS, "output_lse": LSE_HN}),
    (vllm.init_mla_context_partial, {"chunked_context": CHUNKS, "attn_output": ROWS, "attn_softmax_lse": LSE_HN, "num_tokens": N}),
    (vllm.accumulate_mla_context_chunk, {"chunk": CHUNK, "attn_output": ROWS, "attn_softmax_lse": LSE_HN, "output": ROWS, "output_lse": LSE_HN}),
    (vllm.accumulate_mla_context_chunk, {"chunk": SimpleNamespace(token_slice=slice(0, N), is_continuation=False), "attn_output": ROWS,
                                         "attn_softmax_lse": LSE_HN, "output": ROWS, "output_lse": LSE_HN, "output_written": True}),
    (vllm.compute_token_to_req_indices, {"query_start_loc": STARTS, "out": np.zeros(N, INT), "num_mapped_tokens": N, "num_tokens": N}),
    (vllm.prepare_dcp_local_seq_lens, {"dcp_local_seq_lens": np.zeros(N, INT), "seq_lens": np.full(N, 9, INT), "num_reqs": N, "dcp_size": 2,
                                       "dcp_rank": 1, "cp_interleave": 1}),
    (attn_gym.merge_attention, {"out": ((B, H, N, D), BF16), "lse": ((B, H, N), F32), "other_out": ((B, H, N, D), BF16), "other_lse": ((B, H, N), F32)}),
    (sglang.dcp_mla_reduce, {**SEGMENTS, "seq_lens": np.full(N, 9, INT), "tile_size": 4, "out_dtype": "bf16"}),
    (flashinfer.merge_state, MERGED),
    (flashinfer.merge_state_in_place, {"v": ROWS, "s": LSE, "v_other": ROWS, "s_other": LSE, "mask": np.ones(N, bool)}),
    (flashinfer.merge_states, {"v": ((N, S, H, D), BF16), "s": ((N, S, H), F32)}),
    (flashinfer.variable_length_merge_states, {"v": ROWS, "s": LSE, "indptr": STARTS}),
    (flash_attn.flash_attn_combine, {"out_partial": ((S, B, 3, H, D), F32), "lse_partial": ((S, B, 3, H), F32), "out": ((B, 3, H, D), BF16)}),
    (flash_attn.flash_attn_combine, {"out_partial": ((S, N, H, D), F32), "lse_partial": ((S, N, H), F32), "out": ROWS, "cu_seqlens": STARTS}),
    (flash_attn.flash_attn_combine, {"out_partial": ((S, B, 3, H, D), F32), "lse_partial": ((S, B, 3, H), F32),
                                     "out": ((B, 3, H, D), E4M3), "output_scale": ((1,), F32)}),
    (flash_mla.flash_mla_combine, {"o_accum": ((S, 2, H, D), F32), "lse_accum": ((S, 2, H), F32), "num_splits": np.array([0, 2, S], INT),
                                   "out": ((B, 2, H, D), BF16), "lse": ((B, 2, H), F32), "attn_sink": ((H,), F32)}),
    (aiter.mla_reduce_v1, {"partial_output": ((S, H, D), F32), "partial_lse": ((S, H), F32), "reduce_indptr": np.array([0, 2, S], INT),
                           "reduce_final_map": np.array([[0, 1], [1, 2]], INT), "reduce_partial_map": np.arange(S, dtype=INT),
                           "max_seqlen_q": 1, "num_kv_splits": 2, "final_output": ((B, H, D), BF16), "final_lse": ((B, H), F32)}),
    (cache_dit.fused_merge_attn_states, {"prev_out": ((B, N, H, D), BF16), "prev_lse": ((B, N, H, 1), F32), "suff_out": ((B, N, H, D), BF16),
                                         "suff_lse": ((B, N, H, 1), F32)}),
    (tensorrt_llm.helix_post_process, {"gathered_o": ((S, N, H * D), BF16), "gathered_stats": ((S, N, H, 2), F32), "scale": 1.0}),
    (tensorrt_llm.helix_post_process_native, {"gathered_o": ((N, H, S, D), BF16), "gathered_stats": ((N, H, S, 2), F32), "scale": 1.0,
                                              "cp_dim": 2}),
    (tokenspeed.merge_state, MERGED),
    (tokenspeed.merge_state, {**MERGED, "inplace": True}),
    (tokenspeed.attn_merge_state, {"out_a": ROWS, "lse_a": LSE, "out_b": ROWS, "lse_b": LSE}),
    (tokenspeed.attn_merge_state, {"out_a": ROWS, "lse_a": LSE, "out_b": ROWS, "lse_b": LSE, "inplace": True}),
    (ring_attention.update_out_and_lse, {"out": ((B, N, H, D), F32), "lse": ((B, N, H, 1), F32), "block_out": ((B, N, H, D), BF16),
                                         "block_lse": ((B, H, N), F32)}),
    (ring_attention.update_out_and_lse, {"out": None, "lse": None, "block_out": ROWS, "block_lse": LSE_HN}),
]  # fmt: skip

# Drop-ins that are not in CALLS. test_compat_ranks.py, test_distributed_drop_ins.py and test_distributed_errors.py test
# the drop-ins for several ranks, and test_compat_chunks.py tests SDPAMerger.
OVER_RANKS = {"torch_context_parallel.SDPAMerger", "vllm.get_direct_dcp_a2a_workspace", "vllm.get_direct_dcp_q_gather_workspace",
              "vllm.get_direct_dcp_kv_gather_workspace",
              "vllm.cp_lse_ag_out_rs", "vllm.cp_lse_ag_out_ar", "vllm.dcp_a2a_lse_reduce", "vllm.DirectDCPA2AWorkspace",
              "vllm.DirectDCPKVGatherWorkspace", "vllm.DirectDCPQGatherWorkspace", "sglang.cp_lse_ag_out_rs_mha", "sglang.cp_lse_ag_out_rs_mla",
              "sglang.dcp_a2a_lse_reduce", "flashinfer.decode_cp_a2a_lse_reduce", "flashinfer.decode_cp_a2a_lse_reduce_create_workspace",
              "flashinfer.decode_cp_a2a_lse_reduce_workspace_size"}  # fmt: skip


def name_of(function: Callable[..., Any]) -> str:
    return f"{function.__module__.rpartition('.')[2]}.{function.__name__}"


def as_array(spec: Any) -> np.ndarray | None:
    """Returns the array for an entry of CALLS, or None if the entry is passed unchanged."""
    if isinstance(spec, tuple):
        shape, dtype = spec
        return np.ones(shape, dtype)
    return spec.copy() if isinstance(spec, np.ndarray) else None


def mistakes(array: np.ndarray) -> Iterator[tuple[str, Any]]:
    """Yields wrong values for an array argument, each with a description of the mistake."""
    is_integer = array.dtype.kind in "biu"
    for dtype in ("float32", "int32", "int64", "float64", "complex64", "int16"):
        if np.dtype(dtype) != array.dtype:
            yield f"dtype {dtype}", np.ones(array.shape, dtype)
    if not is_integer:
        yield "dtype f16 or bf16", np.ones(array.shape, BF16 if array.dtype.itemsize != 2 else np.float16)
    yield "a dim less", array[0]
    yield "a dim more", array[None]
    for dim in range(array.ndim):
        longer = np.concatenate([array.view(f"u{array.itemsize}")] * 2, dim).view(array.dtype)
        yield f"dim {dim} longer", longer
        yield f"dim {dim} empty", longer[tuple(slice(0, 0) if i == dim else slice(None) for i in range(array.ndim))]
    if array.ndim > 1:
        yield "last dim strided", np.concatenate([array.view(f"u{array.itemsize}")] * 2, -1).view(array.dtype)[..., ::2]
    read_only = array.copy()
    read_only.flags.writeable = False
    yield "read-only", read_only
    yield "a list", array.view(f"u{array.itemsize}").tolist()
    yield "text", "text"
    yield "a number", 3


def elsewhere(tensor: Any) -> Iterator[tuple[str, Any]]:
    """Yields values to pass instead of a CPU tensor of torch, each with a description."""
    yield "on another device", tensor.to("meta")
    yield "a numpy array", tensor.view(torch.uint8).numpy() if tensor.dtype.itemsize == 1 else np.ones(tensor.shape, np.float32)
    if tensor.dtype.is_floating_point and tensor.dtype.itemsize > 1:
        yield "that requires grad", tensor.clone().requires_grad_()


def check_names(function: Callable[..., Any], arguments: dict[str, Any], device: Device, mistaken: Callable[[Any], Iterator[tuple[str, Any]]]) -> set[str]:
    """Makes calls with one mistake each, and returns the names of arguments in the errors. Fails if a name is no
    argument of the function, or if another kind of error is raised."""

    def call(**wrong: Any) -> None:
        made = {name: spec if (array := as_array(spec)) is None else device.put(array) for name, spec in arguments.items()}
        function(**made | wrong)

    call()
    own, bad, named = set(inspect.signature(function).parameters), [], set()
    for name, spec in arguments.items():
        if (array := as_array(spec)) is None:
            continue
        for mistake, value in mistaken(device.put(array)):
            try:
                call(**{name: value})
            except ArgumentError as error:
                names = set(re.findall(r'argument "([\w.]+)"', str(error)))
                named |= names
                if not names or names - own:
                    bad.append(f"{name}, {mistake}: {error}")
            except Exception as error:
                bad.append(f"{name}, {mistake}: {type(error).__name__}: {error}")
    assert not bad, "\n".join(bad)
    return named


IDS = [f"{name_of(function)}-{i}" for i, (function, _) in enumerate(CALLS)]


@pytest.mark.parametrize("function, arguments", CALLS, ids=IDS)
def test_errors_name_an_argument_of_the_function(function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    named = check_names(function, arguments, Device(), mistakes)
    arrays = {name for name, spec in arguments.items() if as_array(spec) is not None}
    assert len(named & arrays) >= min(2, len(arrays))


@pytest.mark.parametrize("function, arguments", CALLS, ids=IDS)
def test_errors_about_places_name_an_argument_of_the_function(function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    assert check_names(function, arguments, TorchDevice("cpu"), elsewhere)


def test_every_drop_in_is_called() -> None:
    assert {name_of(function) for function, _ in CALLS} | OVER_RANKS == set(compat.ENGINE_VERSIONS)
