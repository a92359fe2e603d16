"""The version of its engine that each drop-in follows."""

from __future__ import annotations

_VLLM_DCP = "vllm-project/vllm 45dc42bcf816: vllm/v1/attention/ops/dcp.py"
_SGLANG_DCP = "sgl-project/sglang 00ac7105db02: python/sglang/srt/layers/dcp/comm.py"
_FLASHINFER = "flashinfer-ai/flashinfer of 2026-08-22: flashinfer/cascade.py"
_FLASHINFER_CP = "flashinfer-ai/flashinfer, its issue 4575 and pull request 4929 of 2026-09"

ENGINE_VERSIONS: dict[str, str] = {
    "vllm.merge_attn_states": "vllm-project/vllm 15a3fd47ef45: vllm/v1/attention/ops/merge_attn_states.py; output_block_scale: pull request 40930",
    "vllm.mask_empty_context_lse": "vllm-project/vllm of 2026-08-22: vllm/v1/attention/ops/triton_merge_attn_states.py",
    "vllm.mask_empty_context": "vllm-project/vllm of 2026-08-22: vllm/v1/attention/ops/triton_merge_attn_states.py",
    "vllm.expand_context_lens": "vllm-project/vllm, its pull request 42135",
    "vllm.is_prefilling": "vllm-project/vllm, its issue 41873",
    "vllm.pack_seq_triton": "vllm-project/vllm 47fb4c6ddd79: vllm/v1/attention/ops/common.py",
    "vllm.unpack_seq_triton": "vllm-project/vllm 47fb4c6ddd79: vllm/v1/attention/ops/common.py",
    **dict.fromkeys(
        ("vllm.mask_dcp_empty_shards_", "vllm.correct_attn_out", "vllm.cp_lse_ag_out_rs", "vllm.cp_lse_ag_out_ar", "vllm.dcp_a2a_lse_reduce",
         "vllm.DirectDCPA2AWorkspace", "vllm.DirectDCPQGatherWorkspace", "vllm.DirectDCPKVGatherWorkspace"), _VLLM_DCP),
    "vllm.merge_mla_segments_triton": "vllm-project/vllm 808e919d922c: vllm/v1/attention/ops/rocm_aiter_mla_merge.py",
    "vllm.reduce_segments": "vllm-project/vllm of 2026-08-22: vllm/v1/attention/ops/triton_unified_attention.py",
    "sglang.merge_state_v2": "sgl-project/sglang of 2026-08-22: sgl-kernel/python/sgl_kernel/attention.py",
    "sglang.merge_state_v1": "sgl-project/sglang before 2026-08: sgl_kernel.merge_state, FlashInfer's",
    "sglang.merge_state": "sgl-project/sglang of 2026-08-22: python/sglang/kernels/ops/attention/merge_state.py",
    "sglang.fixup_zero_kv_rows": "sgl-project/sglang 18cc4ad4b060: python/sglang/kernels/ops/attention/fixup_zero_kv.py",
    "sglang.attn_res_fused_tma": "sgl-project/sglang cb18e9384eb3: python/sglang/kernels/ops/attention/attn_res.py",
    **dict.fromkeys(("sglang.cp_lse_ag_out_rs_mha", "sglang.cp_lse_ag_out_rs_mla", "sglang.dcp_a2a_lse_reduce"), _SGLANG_DCP),
    "sglang.dcp_pack_a2a_send": "sgl-project/sglang 049ec55a714e: test/registered/kernels/test_dcp_lse_combine.py",
    "sglang.correct_attn_out": _SGLANG_DCP,
    "sglang.dcp_lse_combine_triton": "sgl-project/sglang a8f6ef558efd: python/sglang/kernels/ops/attention/dcp_kernels.py",
    "sglang.dcp_mla_reduce": "sgl-project/sglang e72fea36bc59: python/sglang/kernels/ops/attention/dcp_mla_reduce.py",
    **dict.fromkeys(("flashinfer.merge_state", "flashinfer.merge_state_in_place", "flashinfer.merge_states"), _FLASHINFER),
    "flashinfer.variable_length_merge_states": "flashinfer-ai/flashinfer 946be88a367a: flashinfer/triton/cascade.py",
    **dict.fromkeys(
        ("flashinfer.decode_cp_a2a_lse_reduce", "flashinfer.decode_cp_a2a_lse_reduce_create_workspace",
         "flashinfer.decode_cp_a2a_lse_reduce_workspace_size"), _FLASHINFER_CP),
    "flash_attn.flash_attn_combine": "Dao-AILab/flash-attention of 2026-08-15: hopper/flash_attn_interface.py, flash_attn/cute/interface.py; "
                                     "varlen_batch_idx and output_scale: vllm-project/flash-attention 617264c1",
    "flash_mla.flash_mla_combine": "deepseek-ai/FlashMLA of 2026-04-29: csrc",
    "aiter.mla_reduce_v1": "ROCm/aiter of 2026-08-22: aiter/ops/attention.py",
    "cache_dit.fused_merge_attn_states": "vipshop/cache-dit f86744af7daa: src/cache_dit/kernels/cutedsl",
    "tokenspeed.merge_state": "lightseekorg/tokenspeed of 2026-08-22",
    "tokenspeed.attn_merge_state": "lightseekorg/tokenspeed of 2026-08-22",
    "ring_attention.update_out_and_lse": "zhuzilin/ring-flash-attention 55ed8fe0be0d: ring_flash_attn/utils.py",
    **dict.fromkeys(
        ("tensorrt_llm.helix_post_process", "tensorrt_llm.helix_post_process_native"),
        "NVIDIA/TensorRT-LLM 3105370ba2f2: tests/unittest/_torch/thop/parallel_hw_agnostic/test_helix_postprocess.py"),
}  # fmt: skip
"""For each function and class of `mlafix.compat`, "vllm.merge_attn_states", the version of its engine whose signature it has: the
repository, its commit or the day of the version, and the file there, or the pull request that has it."""
