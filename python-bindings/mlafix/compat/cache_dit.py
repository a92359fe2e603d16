"""cache-dit's merge of attention states, for ring attention of diffusion models. Base e."""

from __future__ import annotations

from typing import Any

from .. import ops
from .._launcher.arguments import renames
from .._launcher.arrays import empty, rows_of
from ..ops import Array
from ._views import arrays_of_calls, check_shape


@renames(prefix="prev_out", prefix_lse="prev_lse", suffix="suff_out", suffix_lse="suff_lse", out="suff_out", out_lse="suff_out")
def fused_merge_attn_states(prev_out: Array, prev_lse: Array, suff_out: Array, suff_lse: Array) -> tuple[Any, Any]:
    """Merges two states (`cache_dit.kernels.fused_merge_attn_states`; `mlafix.ops.merge_attn_states`).

    Makes one launch if batches are contiguous, otherwise one for each batch. Nothing is copied; cache-dit copies rows
    that are not contiguous. Differences from cache-dit: an lse of -inf or +inf is empty (N2), and a side without weight
    is never multiplied (N5); any head dim is legal (32, 64 and 128 in cache-dit); both payloads must have the same
    dtype.

    Args:
        prev_out: `[B, N, H, D]` bf16, f16, f32; the last dim is contiguous.
        prev_lse: `[B, N, H, 1] f32`, any strides.
        suff_out: `[B, N, H, D]`.
        suff_lse: `[B, N, H, 1] f32`.

    Returns:
        `(out, lse)`: `[B, N, H, D]` and `[B, N, H, 1] f32`, new arrays.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    arrays: list[Any] = [prev_out, prev_lse, suff_out, suff_lse]
    batch, tokens, heads, dim = rows_of(suff_out, "suff_out", ("B", "N", "H", "D"))
    for array, name, last in zip(arrays, ("prev_out", "prev_lse", "suff_out", "suff_lse"), (dim, 1, dim, 1)):
        check_shape(array, name, (batch, tokens, heads, last))
    out, lse = empty(suff_out, (batch, tokens, heads, dim)), empty(suff_out, (batch, tokens, heads, 1), "f32")
    for prefix, prefix_lse, suffix, suffix_lse, rows, sums in arrays_of_calls([*arrays, out, lse], 0):
        lses = [array[..., 0] for array in (prefix_lse, suffix_lse, sums)]
        ops.merge_attn_states(prefix, lses[0], suffix, lses[1], out=rows, out_lse=lses[2], lse_layout="nh")
    return out, lse
