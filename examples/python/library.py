"""The kernel library once more, in Python: what kernels/*.mlir says, spelled with @mlafix.kernel.

A test holds each against its text: both give the same IR. Run this file to see one of them on its way to a GPU.
"""

import math

from mlafix.dsl import (
    Base, DType, In, InOut, Out, bool_, distinct, exp, f8e4m3fn, f32, grid, i32, i64, identity, index, inline, kernel,
    load, load_state, log, lse_of, make_state, merge, present, rebase, rsqrt, segments, shape, sink, store, store_state,
    u8,
)

T = DType("T")
O = DType("O")  # noqa: E741 (the library's name)
P = DType("T", default=f32)
C = Base("C", default="e")
I = DType("I", default=i32)  # noqa: E741


# -- Merging ----------------------------------------------------------------------------------------------------------


@kernel
def merge_attn_states(
    out: Out[T, "n H D"],
    out_lse: Out[f32, "H n"] | None,
    prefix: In[T, "n H D"],
    prefix_lse: In[f32, "H n"],
    suffix: In[T, "n H D"],
    suffix_lse: In[f32, "H n"],
    context_rows: index.at_most("n"),
):
    for t, h in grid("n", "H"):
        p = load_state(prefix[t, h], prefix_lse[h, t], where=t < context_rows)
        s = load_state(suffix[t, h], suffix_lse[h, t])
        store_state(merge(p, s), out[t, h], out_lse[h, t])


@kernel
def merge_attn_states_fp8(
    out: Out[f8e4m3fn, "n H D"],
    out_lse: Out[f32, "H n"] | None,
    out_scale: In[f32, "one=1"],
    prefix: In[T, "n H D"],
    prefix_lse: In[f32, "H n"],
    suffix: In[T, "n H D"],
    suffix_lse: In[f32, "H n"],
    context_rows: index.at_most("n"),
):
    for t, h in grid("n", "H"):
        scale = out_scale[0]
        p = load_state(prefix[t, h], prefix_lse[h, t], where=t < context_rows)
        s = load_state(suffix[t, h], suffix_lse[h, t])
        store_state(merge(p, s), out[t, h], out_lse[h, t], scale=scale)


@kernel
def merge_attn_states_copy(
    out: Out[T, "n H D"],
    out_lse: Out[f32, "H n"] | None,
    prefix: In[T, "n H D"],
    prefix_lse: In[f32, "H n"],
    suffix: In[T, "n H D"],
    suffix_lse: In[f32, "H n"],
    context_rows: index.at_most("n"),
):
    for t, h in grid("n", "H"):
        if t < context_rows:
            p = load_state(prefix[t, h], prefix_lse[h, t])
            s = load_state(suffix[t, h], suffix_lse[h, t])
            store_state(merge(p, s), out[t, h], out_lse[h, t])
        else:
            row = suffix[t, h]
            lse = suffix_lse[h, t]
            out[t, h] = row
            out_lse[h, t] = lse


@kernel
def merge_attn_states_copy_fp8(
    out: Out[f8e4m3fn, "n H D"],
    out_lse: Out[f32, "H n"] | None,
    out_scale: In[f32, "one=1"],
    prefix: In[T, "n H D"],
    prefix_lse: In[f32, "H n"],
    suffix: In[T, "n H D"],
    suffix_lse: In[f32, "H n"],
    context_rows: index.at_most("n"),
):
    for t, h in grid("n", "H"):
        scale = out_scale[0]
        if t < context_rows:
            p = load_state(prefix[t, h], prefix_lse[h, t])
            s = load_state(suffix[t, h], suffix_lse[h, t])
            store_state(merge(p, s), out[t, h], out_lse[h, t], scale=scale)
        else:
            row = suffix[t, h]
            lse = suffix_lse[h, t]
            out[t, h] = row * (1.0 / scale)
            out_lse[h, t] = lse


@kernel
def merge_state_in_place(
    v: InOut[T, "n H D"],
    s: InOut[f32, "n H"],
    v_other: In[T, "n H D"],
    s_other: In[f32, "n H"],
    mask: In[u8, "n"] | None,
):
    for t, h in grid("n", "H"):
        byte = mask[t] if mask is not None else 1
        if byte != 0:
            a = load_state(v[t, h], s[t, h])
            b = load_state(v_other[t, h], s_other[t, h])
            store_state(merge(a, b), v[t, h], s[t, h])


@kernel
def merge_states(out: Out[T, "n H D"], out_lse: Out[f32, "n H"] | None, v: In[T, "n k H D"], s: In[f32, "n k H"]):
    for t, h in grid("n", "H"):
        merged = identity("D")
        for j in range(v.shape[1]):
            merged = merge(merged, load_state(v[t, j, h], s[t, j, h]))
        store_state(merged, out[t, h], out_lse[t, h])


@kernel
def merge_states_ragged(
    out: Out[T, "n H D"],
    out_lse: Out[f32, "n H"] | None,
    v: In[T, "nnz H D"],
    s: In[f32, "nnz H"],
    indptr: In[i32, "n1"],
):
    nnz, n1 = shape("nnz"), shape("n1")
    for t, h in grid("n", "H"):
        known = t + 1 < n1
        start = index(load(indptr[t], where=known))
        end = index(load(indptr[t + 1], where=known))
        sound = 0 <= start <= end <= nnz
        merged = identity("D")
        for i in range(start, end if sound else start):
            merged = merge(merged, load_state(v[i, h], s[i, h]))
        store_state(merged, out[t, h], out_lse[t, h])


@kernel
def merge_states_mapped(
    out: InOut[O, "n H D"],
    out_lse: InOut[f32, "n H"] | None,
    parts: In[P, "p H D"],
    lses: In[f32, "p H"],
    indptr: In[i32, "g1"],
    part_map: In[i32, "k"] | None,
    row_map: In[i32, "g"] | None,
    sinks: In[f32, "H"] | None,
    min_parts: i32,
    empty_lse: f32,
):
    n, p, g1 = shape("n"), shape("p"), shape("g1")
    distinct(row_map)
    for g, h in grid("g1", "H"):
        known = g + 1 < g1
        first = load(indptr[g], where=known)
        last = load(indptr[g + 1], where=known)
        t = g
        if present(row_map):
            t = index(load(row_map[g], where=g < row_map.shape[0], otherwise=-1))
        sound = 0 <= first <= last
        count = last - first if sound else 0
        if known and 0 <= t < n and count >= min_parts:
            # Parts past the end of the map, or of the parts, are empty.
            has_map = present(part_map)
            named = part_map.shape[0] if has_map else p
            start, end = index(first), index(last)
            merged = identity("D")
            for j in range(start, min(end, named) if sound else start):
                i = j
                if has_map:
                    i = index(load(part_map[j], where=j < part_map.shape[0], otherwise=-1))
                merged = merge(merged, load_state(parts[i, h], lses[i, h], where=0 <= i < p))
            whole = merge(merged, sink(load(sinks[h], where=present(sinks), otherwise=-math.inf), base="e"))
            store_state(whole, out[t, h], None)
            lse = lse_of(rebase(merged, C))
            out_lse[t, h] = lse if lse != -math.inf else empty_lse


@kernel
def merge_states_list(
    out: Out[T, "n H D"],
    out_lse: Out[f32, "n H"] | None,
    v0: In[T, "n H D"],
    s0: In[f32, "n H"],
    v1: In[T, "n H D"] | None,
    s1: In[f32, "n H"] | None,
    v2: In[T, "n H D"] | None,
    s2: In[f32, "n H"] | None,
    v3: In[T, "n H D"] | None,
    s3: In[f32, "n H"] | None,
    v4: In[T, "n H D"] | None,
    s4: In[f32, "n H"] | None,
    v5: In[T, "n H D"] | None,
    s5: In[f32, "n H"] | None,
    v6: In[T, "n H D"] | None,
    s6: In[f32, "n H"] | None,
    v7: In[T, "n H D"] | None,
    s7: In[f32, "n H"] | None,
):
    for t, h in grid("n", "H"):
        merged = load_state(v0[t, h], s0[t, h])
        for v, s in ((v1, s1), (v2, s2), (v3, s3), (v4, s4), (v5, s5), (v6, s6), (v7, s7)):
            merged = merge(merged, load_state(v[t, h], s[t, h]))
        store_state(merged, out[t, h], out_lse[t, h])


@kernel
def combine_split_kv(
    out: Out[O, "b l H D"],
    out_lse: Out[f32, "b l H"] | None,
    partial: In[P, "s b l H D"],
    partial_lse: In[f32, "s b l H"],
):
    for i, j, h in grid("b", "l", "H"):
        merged = identity("D")
        for k in range(shape("s")):
            merged = merge(merged, load_state(partial[k, i, j, h], partial_lse[k, i, j, h]))
        store_state(merged, out[i, j, h], out_lse[i, j, h])


@inline
def is_empty(largest, total):
    """True if a side holds nothing, by its statistics."""
    infinite = abs(largest) == math.inf
    return infinite | (total == 0.0)


@kernel
def merge_attn_stats(
    out: Out[T, "n H D"],
    out_stats: Out[f32, "n H two=2"] | None,
    prefix: In[T, "n H D"],
    prefix_stats: In[f32, "n H two=2"],
    suffix: In[T, "n H D"],
    suffix_stats: In[f32, "n H two=2"],
    softmax_scale: f32,
):
    for t, h in grid("n", "H"):
        p, s = prefix[t, h], suffix[t, h]
        p_max, s_max = prefix_stats[t, h, 0], suffix_stats[t, h, 0]
        p_sum, s_sum = prefix_stats[t, h, 1], suffix_stats[t, h, 1]
        p_empty, s_empty = is_empty(p_max, p_sum), is_empty(s_max, s_sum)
        largest = max(-math.inf if p_empty else p_max, -math.inf if s_empty else s_max)
        # The lse of both sides relative to the common maximum: small numbers, which keep their precision.
        p_scaled = (p_max - largest) * softmax_scale
        s_scaled = (s_max - largest) * softmax_scale
        p_lse = -math.inf if p_empty else p_scaled + log(p_sum)
        s_lse = -math.inf if s_empty else s_scaled + log(s_sum)
        merged = merge(make_state(p, p_lse, base="e"), make_state(s, s_lse, base="e"))
        p_part = 0.0 if p_empty else p_sum * exp(p_scaled)
        s_part = 0.0 if s_empty else s_sum * exp(s_scaled)
        store_state(merged, out[t, h])
        out_stats[t, h, 0] = largest
        out_stats[t, h, 1] = p_part + s_part


# -- Rows without keys ------------------------------------------------------------------------------------------------


@kernel
def fixup_zero_kv_rows(out: InOut[T, "n H D"], lse: InOut[f32, "H n"], kv_lens: In[i32, "b"], cu_seqlens: In[i32, "b1"]):
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
    for b, t, h in segments(query_start_loc, "n", "H", where=lambda b: has_no_context(b, context_start_loc)):
        lse[h, t] = -math.inf


@kernel
def mask_empty_context(
    out: InOut[T, "n H D"], lse: InOut[f32, "H n"] | None, query_start_loc: In[i32, "b1"], context_start_loc: In[I, "b1"]
):
    for b, t, h in segments(query_start_loc, "n", "H", where=lambda b: has_no_context(b, context_start_loc)):
        store_state(identity("D"), out[t, h], lse[h, t])


# -- Rows that pad ----------------------------------------------------------------------------------------------------


@kernel
def fill_pad_rows(out: InOut[T, "n H D"], lse: InOut[f32, "H n"] | None, live_rows: index.at_most("n").or_tensor):
    for t, h in grid("n", "H"):
        store_state(identity("D"), out[t, h], lse[h, t], where=not t < live_rows)


@kernel
def clear_pad_flags(flags: InOut[bool_, "n"], live_rows: index.at_most("n").or_tensor):
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
    for t in grid("n"):
        flags[t] = prefilling(t, computed, prompt, live_rows)


@inline
def context_len(t, j, seq_lens, live_rows):
    """The context of token j of the last l of request t; in 64 bits, in which lengths do not wrap around."""
    reads = (t < live_rows) & (t < seq_lens.shape[0])
    distance = i64(shape("l") - j - 1)
    return i32(max(i64(seq_lens[t]) - distance, 0) if reads else 0)


@kernel
def expand_context_lens(out: Out[i32, "d l"], seq_lens: In[i32, "r"], live_rows: index.or_tensor):
    for t, j in grid("d", "l"):
        out[t, j] = context_len(t, j, seq_lens, live_rows)


# -- Beyond the family ------------------------------------------------------------------------------------------------


@kernel
def rmsnorm(y: Out[T, "n D"], x: In[T, "n D"], weight: In[T, "D"], epsilon: f32):
    n, D = x.shape
    for t in grid(n):
        v, w = x[t], weight[:]
        mean = sum(v * v) / f32(D)
        y[t] = v * rsqrt(mean + epsilon) * w


@kernel
def softmax(y: Out[T, "n D"], x: In[T, "n D"], scale: f32):
    for t in grid(x.shape[0]):
        v = x[t]
        weights = exp((v - max(v)) * scale)
        y[t] = weights / sum(weights)


@kernel
def quantize_fp8_static(out: Out[f8e4m3fn, "n D"], x: In[T, "n D"], scale: In[f32, "one=1"]):
    for t in grid(x.shape[0]):
        v = x[t]
        out[t] = v * (1.0 / scale[0])


if __name__ == "__main__":
    print(merge_attn_states.ir("canonical"))
    print(merge_attn_states.ptx("sm_90", H=128, D=128, T="bf16"))
