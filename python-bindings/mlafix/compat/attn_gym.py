"""attn_gym's merge of two outputs of torch's flex_attention. Base e."""

from __future__ import annotations

from typing import Any

from .. import ops
from .._launcher.arguments import renames
from .._launcher.arrays import check_dtype, empty, rows_of
from ..ops import Array
from ._views import arrays_of_calls, check_shape


@renames(prefix="out", prefix_lse="lse", suffix="other_out", suffix_lse="other_lse")
def merge_attention(out: Array, lse: Array, other_out: Array, other_lse: Array) -> tuple[Any, Any]:
    """Merges two attention outputs over disjoint keys (`attn_gym.utils.merge_attention`; `mlafix.ops.merge_attn_states`).

    Makes one launch if batches and heads are evenly spaced, otherwise one for each batch. Differences from attn_gym: a
    row that is empty on both sides is 0, -inf (N3; NaN in attn_gym); a side without weight is not multiplied (N5);
    outputs keep their dtype (f32 in attn_gym).

    Args:
        out: `[B, H, N, D]` bf16, f16, f32; the last dim is contiguous.
        lse: `[B, H, N] f32`, any strides: of `flex_attention(…, return_aux=AuxRequest(lse=True))`.
        other_out: as `out`.
        other_lse: as `lse`.

    Returns:
        `(out, lse)`: new arrays.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    shape = tuple(rows_of(out, "out", ("B", "H", "N", "D")))
    check_dtype(out, "out")
    arrays: list[Any] = [out, lse, other_out, other_lse]
    for array, name, wanted in zip(arrays, ("out", "lse", "other_out", "other_lse"), (shape, shape[:3], shape, shape[:3])):
        check_shape(array, name, wanted)
    made: list[Any] = [empty(out, shape), empty(out, shape[:3], "f32")]
    for rows, sums, others, other_sums, into, into_sums in arrays_of_calls([*arrays, *made], 0):
        ops.merge_attn_states(rows.swapaxes(0, 1), sums, others.swapaxes(0, 1), other_sums, out=into.swapaxes(0, 1), out_lse=into_sums)
    return made[0], made[1]
