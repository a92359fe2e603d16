"""The accumulator of ring attention (zhuzilin/ring-flash-attention and its copies). Base e."""

from __future__ import annotations

import math
from typing import Any

from .._launcher.arguments import renames, wrong
from .._launcher.arrays import check_dtype, empty, rows_of
from ..ops import Array
from ..ops.drop_ins import fold_state


@renames(block="block_out", index="slice_")
def update_out_and_lse(out: Array | None, lse: Array | None, block_out: Array, block_lse: Array,
                       slice_: Any = None) -> tuple[Any, Any]:
    """Merges the attention over one more block of keys into an accumulator, which is kept and summed in f32.

    Differences from ring attention: the accumulator is updated in place, also without `slice_`. A block or an accumulator
    without keys (an lse of -inf or +inf) contributes nothing (N1, N2, N5); in ring attention it makes NaN.

    Args:
        out: `[B, S, H, D]` or `[T, H, D]` f32, updated; None begins with this block.
        lse: `[B, S, H, 1]` or `[T, H, 1]` f32, updated; None with `out`.
        block_out: `[B, S, H, D]` or `[T, H, D]`, bf16, f16, f32.
        block_lse: `[B, H, S]` or `[H, T]` f32.
        slice_: an index of `out` and `lse` that gives views: only these rows are updated. Not legal for the first block.

    Returns:
        `(out, lse)`: the accumulator, new where None was given.

    Raises:
        ArgumentError: an argument does not fit, or `slice_` copies; nothing was launched then.
    """
    block: Any = block_out
    lses: Any = block_lse
    dims = len(getattr(block, "shape", ()))
    if dims not in (3, 4):
        raise wrong("block_out", "4 dims [B, S, H, D] or 3 dims [T, H, D]", dims if hasattr(block, "shape") else type(block).__qualname__)
    check_dtype(block, "block_out")
    rows_of(lses, "block_lse", ("B", "H", "S")[4 - dims :])
    if out is None:
        if slice_ is not None:
            raise wrong("slice_", "None for the first block", repr(slice_))
        out = empty(block_out, tuple(block_out.shape), "f32")
        lse = empty(block_out, (*block_out.shape[:-1], 1), "f32")
        lse[...] = -math.inf  # type: ignore[index]
    rows_of(lse, "lse", ("B", "S", "H", "1")[4 - dims :])
    rows_of(out, "out", ("B", "S", "H", "D")[4 - dims :])
    if lse.shape[-1] != 1:  # type: ignore[union-attr]
        raise wrong("lse", f"size 1 in dim {dims - 1}", lse.shape[-1])  # type: ignore[union-attr]
    if slice_ is not None and not _gives_views(slice_):
        raise wrong("slice_", "slices and integers, so that out[slice_] is a view", repr(slice_))
    fold_state(out, lse, block, lses, slice_)
    return out, lse


def _gives_views(index: Any) -> bool:
    """True if the index gives a view of a numpy or torch array. If it gave a copy, writes to it would be lost."""
    return all(map(_is_basic, index if isinstance(index, tuple) else (index,)))


def _is_basic(part: Any) -> bool:
    if part is None or part is Ellipsis or isinstance(part, (int, slice)):
        return not isinstance(part, bool)
    return hasattr(type(part), "__index__") and not hasattr(part, "__dlpack__")
