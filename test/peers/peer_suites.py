"""Lists the engines' own test files that run on the drop-ins of `mlafix.compat`, and the tests selected from them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    """A test file of an engine. Its path differs between releases; the first path that exists in the checkout is
    used."""

    engine: str
    shim: str
    files: tuple[str, ...]
    tests: tuple[str, ...] = ()  # the selected tests, those of functions that mlafix has; empty selects all
    path: tuple[str, ...] = ()  # folders of the checkout from which the tests import, in addition to its root
    gibibytes: int = 4  # the most GPU memory that one process needs, in GiB
    faults: tuple[tuple[str, str], ...] = ()  # (test that fails with the engine's own function, too; the reason)
    errors: tuple[tuple[str, str], ...] = ()  # (test that expects an error of the engine; our behaviour in its place); these tests are skipped


SUITES = (
    Suite("vllm", "vllm", ("tests/kernels/attention/test_merge_attn_states.py", "tests/kernels/test_merge_attn_states.py")),
    Suite("vllm", "vllm", ("tests/distributed/test_dcp_a2a.py",),
          faults=(("test_dominant_rank", "the test compares the result [B, H, D] with an array [H, D]"),)),
    Suite("vllm", "vllm", ("tests/kernels/attention/test_pack_unpack_triton.py",)),
    Suite("vllm", "vllm", ("tests/v1/attention/test_dcp_a2a_pack_mask.py",)),
    Suite("sglang", "sglang", ("sgl-kernel/tests/test_merge_state.py",)),
    Suite("sglang", "sglang", ("python/sglang/kernels/aot/tests/test_merge_state_v2.py", "sgl-kernel/tests/test_merge_state_v2.py")),
    Suite("sglang", "sglang", ("test/registered/kernels/test_fixup_zero_kv.py", "test/registered/kernels/test_fixup_zero_kv_rows.py",
                               "test/registered/**/test_fixup_zero_kv*.py", "python/sglang/**/test_fixup_zero_kv*.py")),
    Suite("sglang", "sglang", ("test/registered/kernels/test_dcp_lse_combine.py", "test/**/test_dcp_lse_combine.py")),
    Suite("sglang", "sglang", ("test/registered/kernels/ops/kimi_k3/test_compute.py",),
          tests=("TestKimiK3ComputeKernels::test_attn_residual_and_prefix_write",)),
    Suite("flashinfer", "flashinfer", ("tests/utils/test_triton_cascade.py",), gibibytes=16),
    Suite("flashinfer", "flashinfer", ("tests/attention/test_shared_prefix_kernels.py",), tests=("test_merge_state_in_place_with_mask",)),
    Suite("flashinfer", "flashinfer", ("tests/trace/test_merge_state_reference_correctness.py",)),
    Suite("flashinfer", "flashinfer", ("tests/trace/test_merge_states_reference_correctness.py",)),
    Suite("flashinfer", "flashinfer", ("tests/trace/test_merge_state_in_place_reference_correctness.py",)),
    Suite("flash-attention", "flash_attn", ("hopper/test_flash_attn.py",), tests=("test_flash_attn_combine",), path=("hopper",),
          gibibytes=120),
    Suite("flash-attention", "flash_attn", ("tests/cute/test_flash_attn_combine.py",), gibibytes=120),
    Suite("cache-dit", "cache_dit", ("tests/kernels/test_cutedsl_ops.py",), path=("src",),
          errors=(("test_fused_merge_attn_states_rejects_unsupported_head_size", "a head dim of 70 is merged"),
                  ("test_fused_merge_attn_states_rejects_mismatched_value_dtypes", "dtypes that differ are an ArgumentError"))),
    Suite("tensorrt-llm", "tensorrt_llm", ("tests/unittest/_torch/thop/parallel_hw_agnostic/test_helix_postprocess.py",
                                           "tests/unittest/_torch/thop/parallel/test_helix_postprocess.py"),
          errors=(("test_helix_postprocess_invalid_inputs", "payloads of f32 are merged"),
                  ("test_helix_postprocess_native_invalid_inputs", "payloads of f32 are merged"),
                  ("test_helix_postprocess_alignment_requirements", "a head dim of 4 is merged"))),
)
ENGINES = tuple(dict.fromkeys(suite.engine for suite in SUITES))
