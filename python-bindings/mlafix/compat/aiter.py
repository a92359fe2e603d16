"""AITER's reduction of split-KV MLA partials. Base e."""

from __future__ import annotations

import math
from typing import Any

from .. import ops
from .._launcher.arguments import check_integer, renames, wrong
from .._launcher.arrays import empty, is_torch, rows_of, spelling_of
from ..ops import Array
from ._views import counted, with_rows_joined


@renames(out="final_output", out_lse="final_lse", parts="partial_output", lses="partial_lse", indptr="reduce_indptr",
         part_map="reduce_partial_map", row_map="reduce_final_map")
def mla_reduce_v1(partial_output: Array, partial_lse: Array, reduce_indptr: Array, reduce_final_map: Array | None,
                  reduce_partial_map: Array, max_seqlen_q: int, num_kv_splits: int, final_output: Array,
                  final_lse: Array | None = None) -> None:
    """Merges the partials of each tile of queries into its rows (`aiter.mla_reduce_v1`; `mlafix.ops.merge_states_mapped`).

    The partials of tile i begin at the rows
    reduce_partial_map[reduce_indptr[i]] … reduce_partial_map[reduce_indptr[i + 1] - 1]. Query q of the tile is q rows
    behind the first row of each partial, and its final row is q rows behind reduce_final_map[i, 0]. As in AITER, a tile
    of fewer than two partials is skipped: the attention kernel has written its final rows. A row whose partials are all
    empty gets an lse of +inf, and a payload of 0. Differences from AITER: a partial of -inf or +inf is empty and is
    never multiplied (N1, N2, N5); in AITER it gives NaN. Heads, splits and head dim are arbitrary. No entry of a map
    leads out of bounds. Queries of a tile past `max_seqlen_q` are skipped; AITER only sizes its launch by
    `max_seqlen_q`, and reduces these queries, too.

    With a `max_seqlen_q` of 1 this is one launch. Otherwise the maps are first expanded to single queries, on the
    device.

    Args:
        partial_output: `[p, H, D] f32` (bf16 and f16, too), or `[…, H, D]` of more dims, as AITER's decode allocates it:
            `[p, 1, H, D]`.
        partial_lse: `[p, H] f32`, or of more dims, with or without a last one of size 1: `[p, 1, H, 1]`.
        reduce_indptr: `[tiles + 1] i32`.
        reduce_final_map: `[tiles, 2] i32`: the first final row of each tile, and one past its last. None: tiles are
            contiguous, and the distance between the first two partials of a tile is its number of rows.
        reduce_partial_map: `[k] i32`: the first row of each partial.
        max_seqlen_q: the maximum number of queries per tile.
        num_kv_splits: not used; AITER sizes a buffer by it.
        final_output: `[n, H, D]` bf16, f16 or f32; rows of tiles of two and more partials are written.
        final_lse: `[n, H] f32`; written for the same rows. None: no lse is computed.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    indptr: Any = reduce_indptr
    parts: Any = reduce_partial_map
    final: Any = reduce_final_map
    check_integer("max_seqlen_q", max_seqlen_q)
    if max_seqlen_q < 1:
        raise wrong("max_seqlen_q", "at least 1", max_seqlen_q)
    rows_of(indptr, "reduce_indptr", ("tiles + 1",))
    rows_of(parts, "reduce_partial_map", ("k",))
    if final is not None and (width := rows_of(final, "reduce_final_map", ("tiles", "2"))[1]) != 2:
        raise wrong("reduce_final_map", "size 2 in dim 1", width)
    partial_output = with_rows_joined(partial_output, "partial_output", ("H", "D"))
    partial_lse = _lse_of_rows(partial_lse, partial_output)
    rows = None if final is None else final[:, 0]
    if max_seqlen_q > 1:
        for array, name in ((indptr, "reduce_indptr"), (parts, "reduce_partial_map"), (final, "reduce_final_map")):
            if array is not None:
                _check_index(array, name, indptr)
        if parts.shape[0] < 2:
            return
        if final is None:
            rows, ends = _tiles_in_order(indptr, parts)
        else:
            if (got := final.shape[0]) != indptr.shape[0] - 1:
                raise wrong("reduce_final_map", f"size {indptr.shape[0] - 1} in dim 0, a row for each tile of reduce_indptr", got)
            ends = final[:, 1]
        indptr, parts, rows = _by_query(indptr, parts, rows, ends, max_seqlen_q)
    ops.merge_states_mapped(final_output, partial_output, partial_lse, indptr, parts, rows, out_lse=final_lse, min_parts=2,
                            empty_lse=math.inf)


def _check_index(array: Any, name: str, indptr: Any) -> None:
    """Raises ArgumentError unless an array of indices can be combined with `reduce_indptr` before the kernel sees it."""
    if (kind := spelling_of(array.dtype)) != "int32":
        raise wrong(name, "dtype i32", kind)
    if (place := _place_of(array)) != (expected := _place_of(indptr)):
        raise wrong(name, f"{expected}, as reduce_indptr", place)


def _place_of(array: Any) -> str:
    return f"a tensor on {array.device}" if is_torch(array) else f"an array of {type(array).__module__.partition('.')[0]}"


def _lse_of_rows(lse: Any, payload: Any) -> Any:
    """Returns a view of an lse `[…, H]` or `[…, H, 1]` as `[p, H]`, for a payload whose rows are `[p, H, D]`."""
    shape = getattr(lse, "shape", ())
    if len(shape) > 2 and shape[-1] == 1 and shape[-2] == getattr(payload, "shape", shape)[-2]:
        lse = lse[..., 0]
    return with_rows_joined(lse, "partial_lse", ("H",))


def _tiles_in_order(indptr: Any, parts: Any) -> tuple[Any, Any]:
    """Returns the first final row of each tile, and the row behind its last one, for tiles that lie one after the other
    without a map."""
    first = indptr[:-1].clip(0, parts.shape[0] - 2)
    length = parts[first + 1] - parts[first]
    begins = counted(length.shape[0], indptr) * length
    return begins, begins + length


def _by_query(indptr: Any, parts: Any, begins: Any, ends: Any, queries: int) -> tuple[Any, Any, Any]:
    """Returns bounds, parts and rows of groups that have one query each. The first queries of all tiles come first,
    then all second queries, and so on.

    Between the groups of the i-th queries and those of the next queries, the bounds make one extra group. Its row is
    -1, so the extra group is skipped.
    """
    query = counted(queries, indptr)[:, None]
    each = begins[None] + query
    rows = empty(indptr, (queries, indptr.shape[0]))
    rows[:, -1] = -1
    rows[:, :-1] = (each + 1) * (each < ends[None]) - 1
    return (indptr[None] + query * parts.shape[0]).reshape(-1), (parts[None] + query).reshape(-1), rows.reshape(-1)
