"""FlashMLA's combine of split-KV decoding. The partial lse is in base 2, the result in base e."""

from __future__ import annotations

import math

from .. import ops
from .._launcher.arguments import renames, wrong
from .._launcher.arrays import rows_of
from ..ops import Array
from ._views import arrays_of_calls, repeated


@renames(parts="o_accum", lses="lse_accum", indptr="num_splits", out_lse="lse", sinks="attn_sink")
def flash_mla_combine(o_accum: Array, lse_accum: Array, num_splits: Array, out: Array, lse: Array,
                      attn_sink: Array | None = None) -> None:
    """Merges the splits of each request (`run_flash_mla_combine_kernel` of FlashMLA; `mlafix.ops.merge_states_mapped`).

    Request i has the splits num_splits[i] … num_splits[i + 1] - 1. As in FlashMLA, a request of one split is skipped:
    the attention kernel has written its rows. A row that is empty in every split gets 0 and an lse of +inf. A sink
    changes only `out`, not `lse`. Differences from FlashMLA: a split of -inf or +inf is empty and never multiplied (N2,
    N5). Splits, heads and head dim are arbitrary (in FlashMLA at most 160 splits, and a head dim of 512). A sink of
    +inf is ignored (N2); in FlashMLA it makes the row 0. A request without splits is skipped; the scheduler makes none.

    Args:
        o_accum: `[splits, s_q, H, D] f32` (bf16 and f16, too).
        lse_accum: `[splits, s_q, H] f32`, base 2.
        num_splits: `[b + 1] i32`: the number of splits of all earlier requests, as `get_mla_metadata` returns it.
        out: `[b, s_q, H, D]` bf16, f16 or f32; rows of requests of two and more splits are written.
        lse: `[b, s_q, H] f32`, base e; written for the same rows.
        attn_sink: `[H] f32`, base e. None: there are no sinks.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    batch, queries, _, _ = rows_of(out, "out", ("b", "s_q", "H", "D"))
    for array, name, dims in ((o_accum, "o_accum", 4), (lse_accum, "lse_accum", 3), (lse, "lse", 3)):
        if (got := rows_of(array, name, ("…",) * dims)[1]) != queries:
            raise wrong(name, f"size {queries} in dim 1, as argument \"out\" has", got)
    if (bounds := rows_of(num_splits, "num_splits", ("b + 1",))[0]) != batch + 1:
        raise wrong("num_splits", f"{batch + 1} entries for {batch} requests", bounds)
    if attn_sink is not None:
        rows_of(attn_sink, "attn_sink", ("H",))
    calls = arrays_of_calls([out, o_accum, lse_accum, lse], 1)
    sinks = repeated(attn_sink, queries) if attn_sink is not None and len(calls) == 1 else attn_sink
    for rows, parts, lses, out_lse in calls:
        ops.merge_states_mapped(rows, parts, lses, num_splits, out_lse=out_lse, min_parts=2, sinks=sinks, empty_lse=math.inf,
                                base=("2", "e"))
