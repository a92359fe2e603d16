"""Flags and lengths of padded batches."""

from __future__ import annotations

from mlafix.dsl import DType, In, InOut, Out, bool_, grid, i32, i64, index, inline, kernel, load, shape, store

I = DType("I", default=i32)  # noqa: E741


@kernel
def clear_pad_flags(flags: InOut[bool_, "n"], live_rows: index.at_most("n").or_tensor):
    """Clears the flags of rows that only pad a batch: flags = false at or past live_rows.

      flags        [n] bool  pad rows are written, no others
      live_rows        index, 0 … n
      live_rows_at [1] i32   holds it on the device, so that a captured graph follows it; a negative count is none; optional
    """
    for t in grid("n"):
        store(flags[t], False, where=not t < live_rows)


@inline
def prefilling(t, computed, prompt, live_rows):
    """True if request t has prompt left to compute; never in a row that pads."""
    reads = (t < live_rows) & (t < computed.shape[0])
    return load(computed[t], where=reads) < load(prompt[t], where=reads)


@kernel
def mark_prefilling(
    flags: Out[bool_, "n"], computed: In[I, "m"], prompt: In[I, "m"], live_rows: index.at_most("n").or_tensor
):
    """Marks the requests that are still prefilling: flags[i] = computed[i] < prompt[i] on the first live_rows, false on the rest.

      flags        [n] bool  written
      computed     [m] I     i32 or i64; tokens computed so far
      prompt       [m] I     tokens of the prompt
      live_rows        index, 0 … n
      live_rows_at [1] i32   holds it on the device, so that a captured graph follows it; a negative count is none; optional

    Entries past m count as not live.
    """
    for t in grid("n"):
        flags[t] = prefilling(t, computed, prompt, live_rows)


@inline
def context_len(t, j, seq_lens, live_rows):
    """The context of token j of the last l of request t; in 64 bits, in which lengths do not wrap around."""
    reads = (t < live_rows) & (t < seq_lens.shape[0])
    length = i64(load(seq_lens[t], where=reads))
    distance = i64(shape("l") - j - 1)
    return i32(max(length - distance, 0) if reads else 0)


@kernel
def expand_context_lens(out: Out[i32, "d l"], seq_lens: In[i32, "r"], live_rows: index.or_tensor):
    """Expands a context length per request to one per decoded token: out[i, j] = max(seq_lens[i] - l + 1 + j, 0) for the first
    live_rows requests, 0 for the rest, which only pad a batch.

      out          [d, l] i32  written
      seq_lens     [r]    i32
      live_rows           index
      live_rows_at [1]    i32  holds it on the device, so that a captured graph follows it; a negative count is none; optional

    Requests past r count as not live.
    """
    for t, j in grid("d", "l"):
        out[t, j] = context_len(t, j, seq_lens, live_rows)
