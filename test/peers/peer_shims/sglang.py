"""Replaces functions of SGLang: `sgl_kernel.merge_state*`, `fixup_zero_kv_rows`, attention residuals, and the parts of
its exchange over ranks."""

from __future__ import annotations

import importlib.util
import unittest
from pathlib import Path

from mlafix.compat import sglang as ours

from . import checkout_module, module, package

_DCP = "sglang.kernels.ops.attention.dcp_kernels"


def install(checkout: Path) -> None:
    module("sgl_kernel", merge_state=ours.merge_state_v1, merge_state_v2=ours.merge_state_v2)
    if importlib.util.find_spec("orjson") is None:
        module("orjson")
    root = next((folder for folder in (checkout / "python" / "sglang", checkout / "sglang") if folder.is_dir()), checkout / "sglang")
    package("sglang", root)
    package("sglang.test", root / "test")
    module("sglang.test.test_utils", CustomTestCase=unittest.TestCase)
    module("sglang.test.ci.ci_register", register_cuda_ci=lambda **unused: None)
    for name in ("sglang.kernels", "sglang.kernels.ops", "sglang.kernels.ops.attention", "sglang.srt", "sglang.srt.layers"):
        package(name, root.joinpath(*name.split(".")[1:]))
    for name in ("sglang.kernels.ops.attention.fixup_zero_kv", "sglang.jit_kernel.fixup_zero_kv"):
        module(name, fixup_zero_kv_rows=ours.fixup_zero_kv_rows)
    module("sglang.srt.models.deepseek_common.attention_forward_methods.forward_mla")
    module("sglang.srt.utils", get_device_sm=lambda: 100, is_hip=lambda: False)  # SGLang's tests of residuals are skipped on other GPUs
    module("sglang.kernels.ops.kimi_k3")
    module("sglang.kernels.ops.kimi_k3.attn_res", attn_res_fused_tma=ours.attn_res_fused_tma)
    for name in ("attention.fla.kda_replayssm_spec_decode", "kimi_k3.kda_decode_mtp", "kimi_k3.mla_output_gate", "moe.moe_front",
                 "moe.moe_fused_gate"):  # the test module imports these, but the selected tests do not use them
        module(f"sglang.kernels.ops.{name}")
    if (root / "kernels" / "ops" / "attention" / "dcp_kernels.py").is_file():
        _install_dcp(root)


def _install_dcp(root: Path) -> None:
    """Loads the checkout's exchange over ranks, and replaces its parts by our functions."""
    checkout_module(_DCP, **{name: getattr(ours, name) for name in ("correct_attn_out", "dcp_lse_combine_triton", "dcp_pack_a2a_send")})
    module("sglang.srt.distributed.device_communicators.pynccl_allocator")
    module("sglang.srt.distributed.parallel_state")
    module("sglang.srt.utils.common")
    module("sglang.srt.runtime_context")
    package("sglang.srt.layers.dcp", root / "srt" / "layers" / "dcp")
    comm = checkout_module("sglang.srt.layers.dcp.comm")
    module("sglang.srt.layers.dcp", __path__=[str(root / "srt" / "layers" / "dcp")], dcp_a2a_lse_reduce=comm.dcp_a2a_lse_reduce)
