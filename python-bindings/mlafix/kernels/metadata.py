"""Kernels that write the flags, lengths, offsets, slots and block tables of padded batches."""

from __future__ import annotations

import dataclasses
from typing import Any

from mlafix.dsl import DType, In, InOut, Out, bool_, grid, i32, i64, index, inline, kernel, load, present, shape, store

I = DType("I", default=i32)  # noqa: E741


@kernel
def clear_pad_flags(flags: InOut[bool_, "n"], live_rows: index.at_most("n").or_tensor):
    """Clears the flags of rows that only pad a batch: flags = false at or past live_rows.

      flags        [n] bool  pad rows are written, no others
      live_rows        index, 0 … n
      live_rows_at [1] i32   the same count on the device, for captured graphs; a negative one counts as 0; optional
    """
    for t in grid("n"):
        store(flags[t], False, where=not t < live_rows)


@inline
def prefilling(t, computed, prompt, live_rows):
    """True if request t has prompt tokens left to compute. False for a row that only pads the batch."""
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
      live_rows_at [1] i32   the same count on the device, for captured graphs; a negative one counts as 0; optional

    Entries past m count as not live.
    """
    for t in grid("n"):
        flags[t] = prefilling(t, computed, prompt, live_rows)


@inline
def context_len(t, j, seq_lens, live_rows):
    """Returns the context length of token j among the last l tokens of request t, or 0 if the request is not live. The
    length is computed in 64 bits, so that nothing wraps around."""
    reads = (t < live_rows) & (t < seq_lens.shape[0])
    length = i64(load(seq_lens[t], where=reads))
    distance = i64(shape("l") - j - 1)
    return i32(max(length - distance, 0) if reads else 0)


@kernel
def expand_context_lens(out: Out[i32, "d l"], seq_lens: In[i32, "r"], live_rows: index.at_most("d").or_tensor):
    """Expands a context length per request to one per decoded token: out[i, j] = max(seq_lens[i] - l + 1 + j, 0) for the first
    live_rows requests, 0 for the rest, which only pad a batch.

      out          [d, l] i32  written
      seq_lens     [r]    i32
      live_rows           index, 0 … d
      live_rows_at [1]    i32  the same count on the device, for captured graphs; a negative one counts as 0; optional

    Requests past r count as not live.
    """
    for t, j in grid("d", "l"):
        out[t, j] = context_len(t, j, seq_lens, live_rows)

# -- A whole batch's metadata -------------------------------------------------------------------------------------------

# Dtypes of lengths, of offsets, of slots and of block tables. Each is i32 or i64, independently of the others.
L, C, S, K = DType("L", default=i32), DType("C", default=i32), DType("S", default="i64"), DType("K", default=i32)


@dataclasses.dataclass(frozen=True)
class Metadata:
    """The integer arrays that describe a padded batch, as arguments of a kernel."""

    seq_lens: Any = InOut[L, "r"]
    cu_seqlens: Any = InOut[C, "c"] | None
    slots: Any = InOut[S, "t"] | None
    block_table: Any = InOut[K, "b w"] | None


@inline
def tokens_of(live, live_tokens, slots, cu_seqlens):
    """Returns the number of live tokens, which is never negative. It is `live_tokens` if that is not negative. If
    `live_tokens` is negative, it is the last live offset, or the number of all slots if there are no offsets."""
    tokens = i64(live_tokens)
    if present(cu_seqlens):
        last = min(live, cu_seqlens.shape[0] - 1)
        counted = max(i64(load(cu_seqlens[last], where=last >= 0)), 0)
        tokens = tokens if tokens >= 0 else counted
    else:
        tokens = tokens if tokens >= 0 else i64(slots.shape[0])
    return tokens


@kernel(allow={"races"})  # Rows write only offsets past the last live one, and read only that one.
def pad_metadata(
    batch: Metadata(),
    entries: index,
    pad_slot: i64,
    pad_block: i64,
    live_rows: index.at_most("r").or_tensor,
    live_tokens: index.or_tensor,
):
    """Overwrites the metadata of a batch's padding: lengths with 0, offsets with the last live offset, slots with
    `pad_slot`, and table entries with `pad_block`. Negative lengths become 0, too. `entries` is the number of elements
    of the largest array."""
    for i in grid(entries):
        live = max(live_rows, 0)
        reads = i < shape("r")
        store(batch.seq_lens[i], 0, where=reads and (i >= live or batch.seq_lens[i] < 0))
        if present(batch.cu_seqlens):
            end = load(batch.cu_seqlens[live], where=live < batch.cu_seqlens.shape[0])
            store(batch.cu_seqlens[i], end, where=i > live and i < batch.cu_seqlens.shape[0])
        if present(batch.slots):
            tokens = tokens_of(live, live_tokens, batch.slots, batch.cu_seqlens)
            store(batch.slots[i], pad_slot, where=i < batch.slots.shape[0] and i64(i) >= tokens)
        if present(batch.block_table):
            width = batch.block_table.shape[1]
            row = i // width
            store(batch.block_table[row, i % width], pad_block, where=live <= row < batch.block_table.shape[0])


@kernel
def cumulate_lens(cu_seqlens: Out[C, "c"], lens: In[L, "r"], live_rows: index.at_most("r").or_tensor):
    """cu_seqlens[i] = the sum of max(length, 0) over the live lengths before i. Past the live lengths, the sum is
    constant."""
    for i in grid("c"):
        total = i64(0)
        for j in range(min(i, min(shape("r"), live_rows))):
            total = total + max(i64(lens[j]), 0)
        cu_seqlens[i] = total


@inline
def length_of_rank(length, rank, ranks, interleave):
    """Returns how many of the first `length` tokens lie on a rank. Ranks take turns with runs of `interleave` tokens.
    No product exceeds the length, so nothing wraps around."""
    runs = length // i64(interleave)
    rounds = runs // i64(ranks)
    last = runs - rounds * i64(ranks)
    rest = length - runs * i64(interleave)
    return rounds * i64(interleave) + (i64(interleave) if rank < last else rest if rank == last else 0)


@kernel
def lens_of_rank(
    out: InOut[L, "n"], seq_lens: In[L, "r"] | None, rank: index, ranks: index, interleave: index, live_rows: index.at_most("n").or_tensor
):
    """Computes the length of each request on one rank of a group that shares the request's context; 0 for requests that
    are not live. The lengths of whole requests are read from `seq_lens` or, if it is omitted, from `out`, which is then
    overwritten."""
    for t in grid("n"):
        if present(seq_lens):
            length = load(seq_lens[t], where=(t < live_rows) & (t < seq_lens.shape[0]))
        else:
            length = load(out[t], where=t < live_rows)
        out[t] = length_of_rank(max(i64(length), 0), rank, ranks, interleave)


@kernel
def lens_of_rank_between(out: Out[L, "n"], lens: In[L, "n"], starts: In[C, "n"] | None, rank: index, ranks: index, interleave: index):
    """out[t] = how many of the lens[t] tokens from number starts[t] on lie on one rank of a group that shares their
    context. Without `starts`, the tokens from number 0 on are counted."""
    for t in grid("n"):
        first = i64(0)
        if present(starts):
            first = max(i64(starts[t]), 0)
        end = first + max(i64(lens[t]), 0)
        out[t] = length_of_rank(end, rank, ranks, interleave) - length_of_rank(first, rank, ranks, interleave)


@kernel
def localize_indices(out: Out[S, "n"], indices: In[S, "n"], rank: index, ranks: index, interleave: index):
    """Converts places in the context that a group shares to places on one rank; -1 for places that lie on another rank."""
    for t in grid("n"):
        place = i64(indices[t])
        run = place // i64(interleave)
        is_local = place >= 0 and run % i64(ranks) == i64(rank)
        out[t] = run // i64(ranks) * i64(interleave) + place % i64(interleave) if is_local else -1


@kernel
def requests_of_tokens(out: Out[i32, "n"], starts: In[C, "s"], mapped: index, halvings: index):
    """Finds each token's request: the last request that has tokens and begins at or before the token. Tokens at or past
    `mapped` get 0."""
    for t in grid("n"):
        low, high = index(0), shape("s") - 1
        for _ in range(0, halvings if t < mapped else 0):
            middle = (low + high) // 2
            ends_before = low < high and i64(load(starts[middle + 1], where=low < high)) <= i64(t)
            low = middle + 1 if ends_before else low
            high = high if ends_before else middle
        out[t] = i32(min(low, max(shape("s") - 1, 1) - 1))


@kernel
def pages_of_rank(
    out: Out[K, "n w"],
    token_table: In[S, "q m"],
    requests: In[C, "r"],
    local_lens: In[L, "r"],
    rank: index,
    ranks: index,
    page_size: index,
    pad_page: i64,
    live_rows: index.at_most("n").or_tensor,
):
    """out[t, j] = the page on this rank that holds request t's j-th run of page_size tokens, counting only tokens that
    lie on this rank; `pad_page` if there is no such run. `token_table` gives the place of the run's first token in the
    memory of all ranks. The page is computed from this place."""
    for t, j in grid("n", "w"):
        live = t < live_rows and t < shape("r")
        length = i64(load(local_lens[t], where=live))
        # Compares quotients, since the product of a page's number and size may wrap around.
        used = live and i64(j) <= (length - 1) // i64(page_size)
        row = index(load(requests[t], where=used))
        token = rank + j * page_size * ranks
        reaches = j * page_size <= (shape("m") - 1 - rank) // ranks
        known = used and reaches and 0 <= row < shape("q") and token < shape("m")
        place = i64(load(token_table[row, token], where=known, otherwise=-1))
        out[t, j] = place // i64(ranks) // i64(page_size) if place >= 0 else pad_page
