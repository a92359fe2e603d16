"""Valid calls of every drop-in that needs no ranks. Tests of errors change their arguments, and programs of torch make
them with tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from mlafix.compat import aiter, attn_gym, cache_dit, flash_attn, flash_mla, flashinfer, ring_attention, sglang, tensorrt_llm, tokenspeed, vllm
from numerics import BF16, E4M3, F32

S, B = 3, 2  # S: splits or segments, B: requests
INT = np.dtype(np.int32)


class Sizes:
    """Arguments of calls with n tokens, H heads and head dim D. A pair (shape, dtype) stands for an array of floats."""

    def __init__(self, n: int, H: int, D: int) -> None:
        self.n, self.H, self.D = n, H, D
        self.rows, self.fp8, self.lse, self.lse_hn = ((n, H, D), BF16), ((n, H, D), E4M3), ((n, H), F32), ((H, n), F32)
        self.starts, self.lens = np.array([0, 2, n], INT), np.array([2, n - 2], INT)
        self.offsets = {"query_start_loc": self.starts, "context_start_loc": np.array([0, 0, 3], INT)}
        self.states = {"v_a": self.rows, "s_a": self.lse, "v_b": self.rows, "s_b": self.lse}
        self.sides = {"prefix_output": self.rows, "prefix_lse": self.lse, "suffix_output": self.rows, "suffix_lse": self.lse}
        self.sides_hn = {**self.sides, "prefix_lse": self.lse_hn, "suffix_lse": self.lse_hn}
        self.segments = {"segm_output": ((n, H, S, D), F32), "segm_max": ((n, H, S), F32), "segm_expsum": ((n, H, S), F32)}
        self.splits = {"out_partial": ((S, B, n, H, D), F32), "lse_partial": ((S, B, n, H), F32)}
        self.attn = {"attn_output": self.rows, "attn_softmax_lse": self.lse_hn}

    def ints(self, value: int) -> np.ndarray:
        return np.full(self.n, value, INT)


@dataclass(frozen=True)
class Call:
    """A call of a drop-in.

    Args:
        arguments: returns the arguments by name.
        written: the names of the arguments that the call writes and whose contents are its result, with spaces between.
        waits: true if the function reads a length from the device, as in its engine.
    """

    function: Callable[..., Any]
    arguments: Callable[[Sizes], dict[str, Any]]
    written: str = ""
    waits: bool = False

    @property
    def name(self) -> str:
        return f"{self.function.__module__.rpartition('.')[2]}.{self.function.__name__}"


CHUNKS = SimpleNamespace(empty_token_slices=[slice(0, 1), slice(2, 3), slice(3, 4)])
CHUNK = SimpleNamespace(token_slice=slice(1, 4), is_continuation=True, continuation_token_end=3)
FIRST_CHUNK = SimpleNamespace(token_slice=slice(1, 4), is_continuation=False)

# In the first call of each function, arguments that are no arrays do not depend on the sizes.
CALLS = [
    Call(vllm.merge_attn_states, lambda s: {"output": s.rows, **s.sides_hn, "output_lse": s.lse_hn, "prefill_tokens_with_context": 2}, "output output_lse"),
    Call(vllm.merge_attn_states, lambda s: {"output": s.fp8, **s.sides_hn, "output_scale": ((1,), F32)}),
    Call(vllm.merge_attn_states, lambda s: {"output": s.fp8, **s.sides_hn, "output_block_scale": s.lse}),
    Call(vllm.mask_empty_context_lse, lambda s: {"lse": s.lse_hn, **s.offsets}, "lse"),
    Call(vllm.mask_empty_context, lambda s: {"lse": s.lse_hn, "output": s.rows, **s.offsets}, "lse output"),
    Call(vllm.mask_empty_context, lambda s: {"lse": s.lse_hn, "output": ((s.n, s.H * s.D), BF16), **s.offsets}),
    Call(vllm.expand_context_lens, lambda s: {"buffer": s.ints(1), "seq_lens": s.lens, "num_decodes": B, "max_decode_len": 2}, "buffer"),
    Call(vllm.is_prefilling, lambda s: {"num_computed_tokens": np.arange(s.n, dtype=INT), "num_prompt_tokens": s.ints(2), "num_reqs": 2, "num_reqs_padded": 5}),
    *(Call(function, lambda s: {**s.segments, "seq_lens": np.arange(1, s.n + 1, dtype=INT), "tile_size": 4, "out_dtype": "bf16"})
      for function in (vllm.merge_mla_segments_triton, sglang.dcp_mla_reduce)),
    Call(vllm.reduce_segments, lambda s: {"output": s.rows, **s.segments, "seq_lens": s.lens, "query_start_loc": s.starts, "tile_size": 4, "return_lse": True},
         "output"),
    Call(vllm.reduce_segments, lambda s: {"output": s.fp8, **s.segments, "seq_lens": s.lens, "query_start_loc": s.starts, "tile_size": 4,
                                          "output_scale": ((1,), F32)}),
    Call(vllm.pack_seq_triton, lambda s: {"x": s.rows, "lengths": s.lens}, waits=True),
    Call(vllm.pack_seq_triton, lambda s: {"x": ((s.n, s.D), BF16), "lengths": s.lens, "pad_value": 0.0}),
    Call(vllm.unpack_seq_triton, lambda s: {"packed_tensor": ((B, s.n, s.H, s.D), BF16), "lengths": s.lens}, waits=True),
    Call(vllm.mask_dcp_empty_shards_, lambda s: {"lse": s.lse, "seq_lens": np.array([0, 4], INT), "query_start_loc": s.starts}, "lse"),
    Call(vllm.neutralize_empty_context_partials, lambda s: {"chunked_context": CHUNKS, "output": s.rows, "output_lse": s.lse_hn}, "output output_lse"),
    Call(vllm.init_mla_context_partial, lambda s: {"chunked_context": CHUNKS, **s.attn, "num_tokens": 5}),
    Call(vllm.accumulate_mla_context_chunk, lambda s: {"chunk": CHUNK, **Sizes(3, s.H, s.D).attn, "output": s.rows, "output_lse": s.lse_hn}, "output output_lse"),
    Call(vllm.accumulate_mla_context_chunk, lambda s: {"chunk": FIRST_CHUNK, **Sizes(3, s.H, s.D).attn, "output": s.rows, "output_lse": s.lse_hn,
                                                       "output_written": True}),
    Call(vllm.compute_token_to_req_indices, lambda s: {"query_start_loc": s.starts, "out": s.ints(0), "num_mapped_tokens": 3, "num_tokens": 4}, "out"),
    Call(vllm.prepare_dcp_local_seq_lens, lambda s: {"dcp_local_seq_lens": s.ints(0), "seq_lens": s.ints(9), "num_reqs": 3, "dcp_size": 2, "dcp_rank": 1,
                                                     "cp_interleave": 1}, "dcp_local_seq_lens"),
    *(Call(function, lambda s: s.states) for function in (sglang.merge_state_v1, sglang.merge_state_v2, flashinfer.merge_state, tokenspeed.merge_state)),
    *(Call(function, lambda s: {**s.states, "v_merged": s.rows, "s_merged": s.lse}) for function in (sglang.merge_state_v1, sglang.merge_state_v2)),
    Call(sglang.merge_state, lambda s: s.sides),
    Call(sglang.merge_state, lambda s: {**s.sides, "output": s.rows, "output_lse": s.lse}),
    Call(sglang.fixup_zero_kv_rows, lambda s: {"out": s.rows, "lse": s.lse, "kv_lens": np.array([0, 1], INT), "cum_seq_lens": s.starts, "max_seq_len": 9}, "out lse"),
    Call(sglang.attn_res_fused_tma, lambda s: {"prefix_sum": ((s.n, s.D), BF16), "bank": ((s.n, S, s.D), BF16), "cw": ((s.D,), BF16), "ow": ((s.D,), BF16),
                                               "out": ((s.n, s.D), BF16), "nvb": 2, "eps": 1e-6, "write_prefix": True}, "out bank"),
    *(Call(function, lambda s: {"out": s.rows, "lses": ((S, s.n, s.H), F32), "cp_rank": 1, "ctx": None})
      for function in (vllm.correct_attn_out, sglang.correct_attn_out)),
    Call(sglang.correct_attn_out, lambda s: {"out": s.rows, "lses": ((S, s.n, s.H), F32), "cp_rank": 1, "ctx": None, "new_output": ((s.H, s.n, s.D), F32)}),
    Call(sglang.dcp_lse_combine_triton, lambda s: {"recv_output": ((S, s.n, s.H, s.D), BF16), "recv_lse": ((S, s.n, s.H), F32), "is_lse_base_on_e": False,
                                                   "return_lse": True}),
    Call(sglang.dcp_pack_a2a_send, lambda s: {"cp_attn_out": ((s.n, 2 * s.H, s.D), BF16), "cp_attn_lse": ((s.n, 2 * s.H), F32),
                                              "dst_o": ((2, s.n + 1, s.H, s.D), BF16), "dst_lse": ((2, s.n + 1, s.H), F32)}, "dst_o dst_lse"),
    Call(sglang.get_dcp_lens, lambda s: {"lens": s.ints(9), "dcp_size": 2, "dcp_rank": 1, "start": np.arange(s.n, dtype=INT)}),
    Call(sglang.localize_dcp_indices, lambda s: {"indices": np.arange(S * s.n, dtype=INT).reshape(s.n, S), "dcp_size": 2, "dcp_rank": 1}),
    Call(attn_gym.merge_attention, lambda s: {"out": ((B, s.H, s.n, s.D), BF16), "lse": ((B, s.H, s.n), F32), "other_out": ((B, s.H, s.n, s.D), BF16),
                                              "other_lse": ((B, s.H, s.n), F32)}),
    Call(flashinfer.merge_state_in_place, lambda s: {"v": s.rows, "s": s.lse, "v_other": s.rows, "s_other": s.lse, "mask": s.ints(1).astype(bool)}, "v s"),
    Call(flashinfer.merge_states, lambda s: {"v": ((s.n, S, s.H, s.D), BF16), "s": ((s.n, S, s.H), F32)}),
    Call(flashinfer.variable_length_merge_states, lambda s: {"v": s.rows, "s": s.lse, "indptr": s.starts}),
    Call(flash_attn.flash_attn_combine, lambda s: s.splits),
    Call(flash_attn.flash_attn_combine, lambda s: {**s.splits, "out": ((B, s.n, s.H, s.D), BF16)}),
    Call(flash_attn.flash_attn_combine, lambda s: {**s.splits, "out": ((B, s.n, s.H, s.D), E4M3), "output_scale": ((1,), F32)}),
    Call(flash_attn.flash_attn_combine, lambda s: {"out_partial": ((S, s.n, s.H, s.D), F32), "lse_partial": ((S, s.n, s.H), F32), "out": s.rows,
                                                   "cu_seqlens": s.starts}),
    Call(flash_mla.flash_mla_combine, lambda s: {"o_accum": ((S, s.n, s.H, s.D), F32), "lse_accum": ((S, s.n, s.H), F32), "num_splits": np.array([0, 2, S], INT),
                                                 "out": ((B, s.n, s.H, s.D), BF16), "lse": ((B, s.n, s.H), F32), "attn_sink": ((s.H,), F32)}, "out lse"),
    Call(aiter.mla_reduce_v1, lambda s: {"partial_output": ((8, s.H, s.D), F32), "partial_lse": ((8, s.H), F32), "reduce_indptr": np.array([0, 2, 4], INT),
                                         "reduce_final_map": np.array([[0, 2], [2, 4]], INT), "reduce_partial_map": np.array([0, 2, 4, 6], INT),
                                         "max_seqlen_q": 2, "num_kv_splits": 2, "final_output": ((4, s.H, s.D), BF16), "final_lse": ((4, s.H), F32)}),
    Call(cache_dit.fused_merge_attn_states, lambda s: {"prev_out": ((B, s.n, s.H, s.D), BF16), "prev_lse": ((B, s.n, s.H, 1), F32),
                                                       "suff_out": ((B, s.n, s.H, s.D), BF16), "suff_lse": ((B, s.n, s.H, 1), F32)}),
    Call(tensorrt_llm.helix_post_process, lambda s: {"gathered_o": ((S, s.n, s.H * s.D), BF16), "gathered_stats": ((S, s.n, s.H, 2), F32), "scale": 0.5}),
    Call(tensorrt_llm.helix_post_process_native, lambda s: {"gathered_o": ((s.n, s.H, S, s.D), BF16), "gathered_stats": ((s.n, s.H, S, 2), F32), "scale": 0.5,
                                                            "cp_dim": 2}),
    Call(tokenspeed.merge_state, lambda s: {**s.states, "inplace": True}),
    Call(tokenspeed.attn_merge_state, lambda s: {"out_a": s.rows, "lse_a": s.lse, "out_b": s.rows, "lse_b": s.lse, "inplace": True}, "out_a lse_a"),
    Call(tokenspeed.attn_merge_state, lambda s: {"out_a": s.rows, "lse_a": s.lse, "out_b": s.rows, "lse_b": s.lse}),
    Call(ring_attention.update_out_and_lse, lambda s: {"out": None, "lse": None, "block_out": s.rows, "block_lse": s.lse_hn}),
    Call(ring_attention.update_out_and_lse, lambda s: {"out": ((B, s.n, s.H, s.D), F32), "lse": ((B, s.n, s.H, 1), F32),
                                                       "block_out": ((B, s.n, s.H, s.D), BF16), "block_lse": ((B, s.H, s.n), F32)}),
]  # fmt: skip

# Drop-ins that are not in CALLS. test_compat_ranks.py, test_distributed_drop_ins.py and test_distributed_errors.py test
# them.
OVER_RANKS = {"vllm.get_direct_dcp_a2a_workspace", "vllm.get_direct_dcp_q_gather_workspace", "vllm.get_direct_dcp_kv_gather_workspace",
              "vllm.cp_lse_ag_out_rs", "vllm.cp_lse_ag_out_ar", "vllm.dcp_a2a_lse_reduce", "vllm.DirectDCPA2AWorkspace",
              "vllm.DirectDCPKVGatherWorkspace", "vllm.DirectDCPQGatherWorkspace", "sglang.cp_lse_ag_out_rs_mha", "sglang.cp_lse_ag_out_rs_mla",
              "sglang.dcp_a2a_lse_reduce", "flashinfer.decode_cp_a2a_lse_reduce", "flashinfer.decode_cp_a2a_lse_reduce_create_workspace",
              "flashinfer.decode_cp_a2a_lse_reduce_workspace_size"}  # fmt: skip


def as_array(spec: Any) -> np.ndarray | None:
    """Returns the array for an argument of a call, which contains ones or given numbers, or None if the argument is
    passed unchanged."""
    if isinstance(spec, tuple):
        shape, dtype = spec
        return np.ones(shape, dtype)
    return spec.copy() if isinstance(spec, np.ndarray) else None
