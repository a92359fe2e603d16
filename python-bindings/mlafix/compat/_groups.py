"""Partial states of a group's ranks, merged as the engines' functions do it."""

from __future__ import annotations

from typing import Any

from ..ops._wrong import renames


of_ranks = renames(partial="cp_attn_out", lse="cp_attn_lse", group="cp_group")
"""The engines' names of the arguments."""


def merged_over_ranks(out: Any, lse: Any, group: Any, *, return_lse: bool, **how: Any) -> Any:
    """`mlafix.distributed`'s merge of `out`, or of `(out, lse)`; the inputs themselves where the group has one rank.

    torch is imported here: who passes tensors has it, and numpy users of the other drop-ins do not need it.
    """
    from ..distributed._once import reduce_once

    if getattr(group, "world_size", 0) == 1:
        return (out, lse) if return_lse else out
    merged, merged_lse = reduce_once(group, out, lse, return_lse=return_lse, **how)
    return (merged, merged_lse) if return_lse else merged
