"""Kernels that blank rows: rows without keys, and rows that only pad a batch."""

from __future__ import annotations

import math

from mlafix.dsl import DType, In, InOut, any, f32, grid, i32, i64, identity, index, inline, kernel, load, segments, shape, store_state

T = DType("T")
I = DType("I", default=i32)  # noqa: E741


@kernel
def fixup_zero_kv_rows(out: InOut[T, "n H D"], lse: InOut[f32, "H n"], kv_lens: In[i32, "b"], cu_seqlens: In[i32, "b1"]):
    """Blanks the rows of sequences that had no keys: for every sequence b with kv_lens[b] <= 0, the rows
    [cu_seqlens[b], cu_seqlens[b + 1]) become the identity, out = +0.0 and lse = -inf. Attention kernels leave such rows undefined.

      out        [n, H, D] T    rows of sequences without keys are written, no others
      lse        [H, n]    f32  likewise
      kv_lens    [b]       i32
      cu_seqlens [b1]      i32  b + 1 entries: the first row of each sequence, and the end of the last sequence

    The cost is that of the blanked rows and of one scan of kv_lens. A sequence counts only if 0 <= start <= end <= n.
    """
    num_seqs = kv_lens.shape[0]
    for b, t, h in segments(cu_seqlens, "n", "H", where=lambda b: (kv_lens[b] if b < num_seqs else 1) <= 0):
        store_state(identity("D"), out[t, h], lse[h, t])


@inline
def has_no_context(segment, context_start_loc):
    known = segment + 1 < context_start_loc.shape[0]
    first = i64(load(context_start_loc[segment], where=known))
    last = i64(load(context_start_loc[segment + 1], where=known))
    return known & (last <= first)


@kernel
def mask_empty_context_lse(lse: InOut[f32, "H n"], query_start_loc: In[i32, "b1"], context_start_loc: In[I, "b1"]):
    """Marks the rows of requests whose context is empty: for every request b with context_start_loc[b + 1] <= context_start_loc[b],
    lse = -inf on the rows [query_start_loc[b], query_start_loc[b + 1]).

      lse               [H, n] f32  rows of requests without context are written, no others
      query_start_loc   [b1]   i32  b + 1 entries: the first row of each request, and the end of the last request
      context_start_loc [b1]   I    b + 1 entries: the start of each request's context, and the end of the last one; i32 or i64

    The cost is that of the written rows and of one scan of context_start_loc. A request counts only if its rows are part of [0, n].
    """
    for b, t, h in segments(query_start_loc, "n", "H", where=lambda b: has_no_context(b, context_start_loc)):
        lse[h, t] = -math.inf


@kernel
def mask_empty_context(
    out: InOut[T, "n H D"], lse: InOut[f32, "H n"] | None, query_start_loc: In[i32, "b1"], context_start_loc: In[I, "b1"]
):
    """Blanks the rows of requests whose context is empty: for every request b with context_start_loc[b + 1] <= context_start_loc[b],
    out = +0.0 and lse = -inf on the rows [query_start_loc[b], query_start_loc[b + 1]).

      out               [n, H, D] T    rows of requests without context are written, no others
      lse               [H, n]    f32  likewise; optional
      query_start_loc   [b1]      i32  b + 1 entries: the first row of each request, and the end of the last request
      context_start_loc [b1]      I    b + 1 entries: the start of each request's context, and the end of the last one; i32 or i64

    The cost is that of the blanked rows and of one scan of context_start_loc. A request counts only if its rows are part of [0, n].
    """
    for b, t, h in segments(query_start_loc, "n", "H", where=lambda b: has_no_context(b, context_start_loc)):
        store_state(identity("D"), out[t, h], lse[h, t])


@kernel
def fill_pad_rows(out: InOut[T, "n H D"], lse: InOut[f32, "H n"] | None, live_rows: index.at_most("n").or_tensor):
    """Blanks the rows that only pad a batch: on the rows at or past live_rows, out = +0.0 and lse = -inf.

      out          [n, H, D] T    pad rows are written, no others
      lse          [H, n]    f32  likewise; optional
      live_rows              index, 0 … n
      live_rows_at [1]       i32  the same count on the device, for captured graphs; a negative one counts as 0; optional
    """
    for t, h in grid("n", "H"):
        store_state(identity("D"), out[t, h], lse[h, t], where=not t < live_rows)


@kernel
def blank_rows_without_indices(out: InOut[T, "n H D"], lse: InOut[f32, "H n"] | None, indices: In[I, "n k<=8192"]):
    """Blanks the rows of tokens without keys: if all of indices[t] are negative, out = +0.0 and lse = -inf.

      out     [n, H, D] T    rows of tokens without keys are written, no others
      lse     [H, n]    f32  likewise; optional
      indices [n, k]    I    the keys that sparse attention used for each token, then negative entries; i32 or i64
    """
    for t in grid("n"):
        has_keys = any(indices[t] >= 0)
        for h in range(shape("H")):
            store_state(identity("D"), out[t, h], lse[h, t], where=not has_keys)
