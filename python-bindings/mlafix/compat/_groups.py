"""Merges the partial states of a group's ranks with the semantics of the engines' functions."""

from __future__ import annotations

import sys
from typing import Any

from .._launcher.arguments import renames, wrong
from ._views import as_f32, in_rows

of_ranks = renames(partial="cp_attn_out", lse="cp_attn_lse", group="cp_group")
"""Renames arguments in errors to the names that the engines use."""


def merged_over_ranks(out: Any, lse: Any, group: Any, *, return_lse: bool, **how: Any) -> Any:
    """Merges `out` or `(out, lse)` over the ranks with `mlafix.distributed`. A group of one rank returns the inputs themselves.

    As in the engines, a dim of 1 between tokens and heads, or after the heads of the lse, is dropped. Payloads with a strided last
    dim and lses of bf16, f16 or f64 are copied first.

    torch is imported in this function: callers that pass tensors have it, and the other drop-ins work without it.
    """
    from ..distributed.once import reduce_once

    if has_one_rank(group):
        return (out, lse) if return_lse else out
    merged, merged_lse = reduce_once(group, in_rows(_squeezed(out, 4)), as_f32(_squeezed(lse, 3)), return_lse=return_lse, **how)
    return (merged, merged_lse) if return_lse else merged


def has_one_rank(group: Any) -> bool:
    if hasattr(group, "world_size"):
        return bool(group.world_size == 1)
    from ..distributed.ranks import group_of

    found = group_of(group)
    return found is not None and found.size() == 1


def current_ubatch(num_ubatches: int) -> int:
    """Returns the number of the micro-batch that vLLM's worker is processing; 0 if vLLM is not loaded. Raises
    ArgumentError unless this number is from 0 to `num_ubatches` - 1. `num_ubatches` is the workspace's number of
    micro-batches."""
    ubatching = sys.modules.get("vllm.v1.worker.ubatching")
    found: int = ubatching.dbo_current_ubatch_id() if ubatching else 0
    if not 0 <= found < num_ubatches:
        raise wrong("num_ubatches", f"vLLM's micro-batch from 0 to {num_ubatches - 1} (num_ubatches - 1)", found)
    return found


def _squeezed(array: Any, dims: int) -> Any:
    """Drops the dim of size 1 from an array `[B, 1, H, ...]` with `dims` dims, or from an lse `[B, H, 1]`. Returns
    other arrays as they are."""
    shape = getattr(array, "shape", ())
    if len(shape) != dims:
        return array
    if shape[1] == 1:
        return array[:, 0]
    return array[..., 0] if dims == 3 and shape[2] == 1 else array
