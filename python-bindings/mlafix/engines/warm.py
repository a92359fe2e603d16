"""Prepares the code that mlafix's calls need while an engine loads its model, so that no later call compiles or loads
code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .. import _env
from .._files import warmup
from ..compat import sglang, vllm
from ..errors import Error
from .switch import Log

Request = tuple[Any, dict[str, Any]]


def requests(functions: Iterable[str], heads: int, dims: Iterable[int], dtype: Any) -> Iterator[Request]:
    """Yields requests for one-token calls of the functions that an engine calls with a model's rows."""
    import torch

    names = set(functions)
    for dim in dims:
        rows = {"prefix_output": torch.zeros(1, heads, dim, dtype=dtype), "suffix_output": torch.zeros(1, heads, dim, dtype=dtype)}
        out = torch.zeros(1, heads, dim, dtype=dtype)
        lse, by_token = torch.zeros(heads, 1), torch.zeros(1, heads)
        if names & {"merge_attn_states", "accumulate_mla_context_chunk"}:
            merge = {"output": out, **rows, "prefix_lse": lse, "suffix_lse": lse}
            for more in ({}, {"output_lse": lse}, {"prefill_tokens_with_context": 1}, {"output_lse": lse, "prefill_tokens_with_context": 1}):
                yield vllm.merge_attn_states, {**merge, **more}
        if names & {"merge_state", "merge_state_v2"}:
            yield sglang.merge_state, {**rows, "prefix_lse": by_token, "suffix_lse": by_token}
        ends = torch.zeros(2, dtype=torch.int32)
        if "fixup_zero_kv_rows" in names:
            yield sglang.fixup_zero_kv_rows, {"out": out, "lse": by_token, "kv_lens": ends[:1], "cum_seq_lens": ends, "max_seq_len": 1}
        if "mask_empty_context" in names:
            yield vllm.mask_empty_context, {"lse": lse, "output": out, "query_start_loc": ends, "context_start_loc": ends}


def warm(wanted: Iterable[Request], device: str, log: Log) -> None:
    """Prepares calls on a device. Afterwards, a call that would have to compile is refused, and the engine's own
    function makes it.

    Logs each call that cannot be prepared. An engine may load a second model, such as a draft model, so this function
    first permits compiling again.
    """
    ready = 0
    _env.forbid_compiling(False)
    for request in wanted:
        try:
            keys = warmup.compile_keys([request])
            warmup.warmup(keys, device, progress=False)
            ready += len(keys)
        except Error as error:
            log.logger.warning("mlafix: not ready: %s", error)
    _env.forbid_compiling()
    log.say(f"{ready} kernels are ready on {device}; none compiles from here on, unless MLAFIX_STRICT=0")
