"""Lists the version of its engine that each drop-in follows."""

from __future__ import annotations

_VLLM_OPS = "vllm 0.33.0: vllm/v1/attention/ops"
_VLLM_MLA = "vllm 0.33.0: vllm/model_executor/layers/attention/mla_attention.py"
_SGLANG_KERNELS = "sglang 0.5.23: sglang/kernels/ops/attention"
_SGLANG_DCP = "sglang 0.5.23: sglang/srt/layers/dcp"
_FLASHINFER = "flashinfer-python 0.7.4: flashinfer"

ENGINE_VERSIONS: dict[str, str] = {
    "vllm.merge_attn_states": f"{_VLLM_OPS}/merge_attn_states.py; output_block_scale: vllm-project/vllm, its pull request 40930",
    "vllm.mask_empty_context_lse": "vllm-project/vllm of 2026-08-22, in no release: vllm/v1/attention/ops/triton_merge_attn_states.py",
    "vllm.mask_empty_context": "vllm 0.27.1, the last that has it: vllm/v1/attention/ops/triton_merge_attn_states.py",
    **dict.fromkeys(
        ("vllm.neutralize_empty_context_partials", "vllm.init_mla_context_partial", "vllm.accumulate_mla_context_chunk"), _VLLM_MLA),
    "vllm.expand_context_lens": "vllm-project/vllm, its pull request 42135, in no release",
    "vllm.is_prefilling": "vllm-project/vllm, its issue 41873; since vLLM 0.26.0 a field of CommonAttentionMetadata",
    "vllm.compute_token_to_req_indices": f"{_VLLM_OPS}/metadata.py",
    "vllm.prepare_dcp_local_seq_lens": "vllm 0.33.0: vllm/v1/worker/gpu/cp_utils.py",
    "vllm.pack_seq_triton": f"{_VLLM_OPS}/common.py",
    "vllm.unpack_seq_triton": f"{_VLLM_OPS}/common.py",
    **dict.fromkeys(
        ("vllm.mask_dcp_empty_shards_", "vllm.correct_attn_out", "vllm.cp_lse_ag_out_rs", "vllm.cp_lse_ag_out_ar", "vllm.dcp_a2a_lse_reduce",
         "vllm.DirectDCPA2AWorkspace", "vllm.DirectDCPQGatherWorkspace", "vllm.DirectDCPKVGatherWorkspace",
         "vllm.get_direct_dcp_a2a_workspace", "vllm.get_direct_dcp_q_gather_workspace", "vllm.get_direct_dcp_kv_gather_workspace"),
        f"{_VLLM_OPS}/dcp.py"),
    "vllm.merge_mla_segments_triton": f"{_VLLM_OPS}/rocm_aiter_mla_merge.py",
    "vllm.reduce_segments": "vllm 0.33.0, a kernel there: vllm/v1/attention/ops/triton_unified_attention.py",
    "sglang.merge_state_v2": "sglang-kernel 0.4.10: sgl_kernel/attention.py",
    "sglang.merge_state_v1": "sgl-project/sglang before 2026-08: sgl_kernel.merge_state, FlashInfer's",
    "sglang.merge_state": "sglang 0.5.23: sglang/srt/layers/attention/merge_state.py",
    "sglang.fixup_zero_kv_rows": f"{_SGLANG_KERNELS}/fixup_zero_kv.py",
    "sglang.attn_res_fused_tma": f"{_SGLANG_KERNELS}/attn_res.py",
    **dict.fromkeys(("sglang.cp_lse_ag_out_rs_mha", "sglang.cp_lse_ag_out_rs_mla", "sglang.dcp_a2a_lse_reduce"), f"{_SGLANG_DCP}/comm.py"),
    **dict.fromkeys(("sglang.dcp_pack_a2a_send", "sglang.correct_attn_out", "sglang.dcp_lse_combine_triton"), f"{_SGLANG_KERNELS}/dcp_kernels.py"),
    **dict.fromkeys(("sglang.get_dcp_lens", "sglang.localize_dcp_indices"), f"{_SGLANG_DCP}/layout.py"),
    "sglang.dcp_mla_reduce": "sgl-project/sglang e72fea36bc59, in no release: python/sglang/kernels/ops/attention/dcp_mla_reduce.py",
    **dict.fromkeys(("flashinfer.merge_state", "flashinfer.merge_state_in_place", "flashinfer.merge_states"), f"{_FLASHINFER}/cascade.py"),
    "flashinfer.variable_length_merge_states": f"{_FLASHINFER}/triton/cascade.py",
    **dict.fromkeys(
        ("flashinfer.decode_cp_a2a_lse_reduce", "flashinfer.decode_cp_a2a_lse_reduce_create_workspace",
         "flashinfer.decode_cp_a2a_lse_reduce_workspace_size"), f"{_FLASHINFER}/comm/dcp_lse_reduce.py"),
    "flash_attn.flash_attn_combine": "flash-attn-4 4.0.0b36: flash_attn/cute/interface.py; varlen_batch_idx and output_scale: "
                                     "vllm-project/flash-attention 617264c1",
    "flash_mla.flash_mla_combine": "deepseek-ai/FlashMLA of 2026-04-29: csrc",
    "aiter.mla_reduce_v1": "ROCm/aiter of 2026-08-22: aiter/ops/attention.py",
    "attn_gym.merge_attention": "attn-gym 0.0.17: attn_gym/utils.py",
    "cache_dit.fused_merge_attn_states": "cache-dit 1.5.3: cache_dit/kernels/ops.py",
    "tokenspeed.merge_state": "tokenspeed-kernel 0.1.4: tokenspeed_kernel/thirdparty/cuda/merge_state.py",
    "tokenspeed.attn_merge_state": "tokenspeed-kernel 0.1.4: tokenspeed_kernel/ops/attention/__init__.py",
    "ring_attention.update_out_and_lse": "ring-flash-attn 0.1.8: ring_flash_attn/utils.py",
    "torch_context_parallel.SDPAMerger": "torch 2.15.0, _SDPAMerger there: torch/distributed/tensor/experimental/_context_parallel/_attention.py",
    **dict.fromkeys(
        ("tensorrt_llm.helix_post_process", "tensorrt_llm.helix_post_process_native"),
        "NVIDIA/TensorRT-LLM 3105370ba2f2: tests/unittest/_torch/thop/parallel_hw_agnostic/test_helix_postprocess.py"),
}  # fmt: skip
"""The version of the engine whose signature a function or class of `mlafix.compat` has, by name:
"vllm.merge_attn_states".

"DISTRIBUTION VERSION: FILE" is a release of the package index, which `pip download` gets; `scripts/engine-drift` compares its
signature with ours. Others name a repository, its commit or the day of the version, and the file there, or the pull request.
"""
