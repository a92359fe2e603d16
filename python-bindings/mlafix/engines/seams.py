"""Lists the seams: places where an engine calls a function for which mlafix has a drop-in."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, Literal, NamedTuple

Kind = Literal["operator", "kernel", "function", "hook"]


class Seam(NamedTuple):
    """A place of an engine at which a function can be replaced.

    Consecutive seams of the same function with the same `path` are alternatives, in one module: only the function at
    the first seam where this is possible is replaced. Seams in several modules are of different releases. If the
    engine's version is unknown, the functions of all these modules are replaced, and one that modules share only once.
    """

    function: str
    """The name of the drop-in in `mlafix.compat`, and of the function in MLAFIX_VLLM or MLAFIX_SGLANG."""
    place: str
    """"module:attribute", or "namespace::name" for an operator."""
    kind: Kind
    """Where the replacement is registered. "operator": torch's dispatcher; "kernel": vLLM's registry of Triton kernels;
    "function": every module that holds the function; "hook": SGLang's registry."""
    since: str
    """The first release whose wheel contains the function, among the releases since 0.26.0 (vLLM) and 0.5.10.post1 (SGLang)."""
    last: str = ""
    """The last release that contains the function; "" if the newest release does."""
    path: str = ""
    """The name of the code path that several alternative seams serve; "" if the seam has no alternatives."""
    writes: tuple[str, ...] = ()
    """The parameters of the engine's function whose tensors a call writes. `switch.compared` passes copies of these
    tensors to the engine's function."""
    only_by_name: str = ""
    """The reason why MLAFIX_VLLM=1 or MLAFIX_SGLANG=1 does not replace the function; "" if it does."""
    parameters: tuple[str, ...] = ()
    """The parameters of an operator or a kernel that the drop-in accepts."""

    @property
    def module(self) -> str:
        """The module whose import defines the function. For an operator this is the module that loads vLLM's operators."""
        return "vllm._custom_ops" if self.kind == "operator" else self.place.partition(":")[0]

    @property
    def attribute(self) -> str:
        return self.place.rpartition(":")[2]


_MERGE = ("output", "output_lse", "prefix_output", "prefix_lse", "suffix_output", "suffix_lse")
_OPS = "vllm.v1.attention.ops"
_MLA = "vllm.model_executor.layers.attention.mla_attention"
_RANKS = "not measured over ranks inside an engine"

MERGE_KERNEL = (
    "output", "output_lse", "prefix_output", "prefix_lse", "suffix_output", "suffix_lse", "prefix_head_stride", "output_head_stride",
    "prefix_lse_head_stride", "prefix_lse_token_stride", "suffix_lse_head_stride", "suffix_lse_token_stride", "output_lse_head_stride",
    "output_lse_token_stride", "output_scale", "prefill_tokens_with_context", "HEAD_SIZE", "PADDED_HEAD_SIZE", "OUTPUT_LSE", "USE_FP8",
    "FP8_MIN", "FP8_MAX",
)  # fmt: skip
"""The parameters of vLLM's Triton kernel merge_attn_states_kernel."""

VLLM = (
    Seam("merge_attn_states", "_C::merge_attn_states", "operator", "0.26.0", path="CUDA", writes=("output", "output_lse"),
         parameters=(*_MERGE, "prefill_tokens_with_context", "output_scale")),
    Seam("merge_attn_states", "vllm._custom_ops:merge_attn_states", "function", "0.26.0", path="CUDA", writes=("output", "output_lse")),
    Seam("merge_attn_states", f"{_OPS}.triton_merge_attn_states:merge_attn_states_kernel", "kernel", "0.31.0", path="Triton",
         writes=("output", "output_lse"), parameters=(*_MERGE, "output_scale", "prefill_tokens_with_context")),
    Seam("merge_attn_states", f"{_OPS}.triton_merge_attn_states:merge_attn_states", "function", "0.26.0", path="Triton",
         writes=("output", "output_lse")),
    Seam("mask_empty_context", f"{_OPS}.triton_merge_attn_states:mask_empty_context", "function", "0.26.0", "0.27.1", writes=("lse", "output")),
    Seam("neutralize_empty_context_partials", f"{_MLA}:neutralize_empty_context_partials", "function", "0.28.0", writes=("output", "output_lse")),
    Seam("init_mla_context_partial", f"{_MLA}:init_mla_context_partial", "function", "0.28.0"),
    Seam("accumulate_mla_context_chunk", f"{_MLA}:accumulate_mla_context_chunk", "function", "0.28.0", writes=("output", "output_lse")),
    Seam("mask_dcp_empty_shards_", f"{_OPS}.dcp:mask_dcp_empty_shards_", "function", "0.29.0", writes=("lse",)),
    Seam("mask_dcp_empty_shards_", f"{_OPS}.common:mask_dcp_empty_shards_", "function", "0.28.0", "0.28.0", writes=("lse",)),
    Seam("correct_attn_out", f"{_OPS}.dcp:correct_attn_out", "function", "0.29.0", writes=("out",)),
    Seam("correct_attn_out", f"{_OPS}.common:correct_attn_out", "function", "0.26.0", "0.28.0", writes=("out",)),
    Seam("pack_seq_triton", f"{_OPS}.common:pack_seq_triton", "function", "0.26.0"),
    Seam("unpack_seq_triton", f"{_OPS}.common:unpack_seq_triton", "function", "0.26.0"),
    Seam("compute_token_to_req_indices", f"{_OPS}.metadata:compute_token_to_req_indices", "function", "0.32.0", writes=("out",)),
    Seam("prepare_dcp_local_seq_lens", "vllm.v1.worker.gpu.cp_utils:prepare_dcp_local_seq_lens", "function", "0.31.0", writes=("dcp_local_seq_lens",)),
    *(seam for name in ("cp_lse_ag_out_rs", "cp_lse_ag_out_ar")
      for seam in (Seam(name, f"{_OPS}.dcp:{name}", "function", "0.29.0", only_by_name=_RANKS),
                   Seam(name, f"{_OPS}.common:{name}", "function", "0.26.0", "0.28.0", only_by_name=_RANKS))),
    Seam("dcp_a2a_lse_reduce", f"{_OPS}.dcp:dcp_a2a_lse_reduce", "function", "0.29.0", only_by_name=_RANKS),
    Seam("dcp_a2a_lse_reduce", f"{_OPS}.dcp_alltoall:dcp_a2a_lse_reduce", "function", "0.26.0", "0.28.0", only_by_name=_RANKS),
)  # fmt: skip

_KERNELS = "sglang.kernels.ops.attention"
_DCP = "sglang.srt.layers.dcp"

SGLANG = (
    Seam("merge_state", "sglang.srt.layers.attention.merge_state:merge_state", "hook", "0.5.11", writes=("output", "output_lse")),
    Seam("merge_state", f"{_KERNELS}.merge_state:merge_state_triton", "hook", "0.5.16", writes=("output", "output_lse")),
    Seam("merge_state", "sglang.srt.layers.attention.triton_ops.merge_state:merge_state_triton", "hook", "0.5.11", "0.5.15",
         writes=("output", "output_lse")),
    Seam("merge_state_v2", "sgl_kernel:merge_state_v2", "hook", "0.5.11", writes=("v_merged", "s_merged")),
    Seam("fixup_zero_kv_rows", f"{_KERNELS}.fixup_zero_kv:fixup_zero_kv_rows", "hook", "0.5.17", writes=("out", "lse")),
    Seam("fixup_zero_kv_rows", "sglang.jit_kernel.fixup_zero_kv:fixup_zero_kv_rows", "hook", "0.5.11", "0.5.16", writes=("out", "lse")),
    Seam("correct_attn_out", f"{_KERNELS}.dcp_kernels:correct_attn_out", "hook", "0.5.17", writes=("new_output",)),
    Seam("dcp_lse_combine_triton", f"{_KERNELS}.dcp_kernels:dcp_lse_combine_triton", "hook", "0.5.17"),
    Seam("dcp_pack_a2a_send", f"{_KERNELS}.dcp_kernels:dcp_pack_a2a_send", "hook", "0.5.18", writes=("dst_o", "dst_lse")),
    Seam("get_dcp_lens", f"{_DCP}.layout:get_dcp_lens", "hook", "0.5.15"),
    Seam("localize_dcp_indices", f"{_DCP}.layout:localize_dcp_indices", "hook", "0.5.22"),
    *(Seam(name, f"{_DCP}.comm:{name}", "hook", since, only_by_name=_RANKS)
      for name, since in (("cp_lse_ag_out_rs_mha", "0.5.15"), ("cp_lse_ag_out_rs_mla", "0.5.15"), ("dcp_a2a_lse_reduce", "0.5.17"))),
)  # fmt: skip

SEAMS: dict[str, tuple[Seam, ...]] = {"vllm": VLLM, "sglang": SGLANG}


def alternatives(engine: str) -> Iterator[list[Seam]]:
    """Yields the seams of an engine in groups of alternatives. A seam without alternatives is a group of one."""
    for (_, path), seams in groupby(SEAMS[engine], key=lambda seam: (seam.function, seam.path)):
        found = list(seams)
        yield from ([found] if path else [[seam] for seam in found])


def drop_in(engine: str, function: str) -> Callable[..., Any]:
    """Returns the function of `mlafix.compat` that replaces an engine's function."""
    found: Callable[..., Any] = getattr(importlib.import_module(f"mlafix.compat.{engine}"), function)
    return found
