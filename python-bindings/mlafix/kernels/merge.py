"""Kernels that merge two states per row: prefix and suffix, also for batches in which only some rows have a prefix; a
state and another one that is merged into it in place; states with softmax statistics; and a state and a sink."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

from mlafix.dsl import (
    Base,
    DType,
    In,
    InOut,
    Out,
    exp,
    f8e4m3fn,
    f32,
    grid,
    i32,
    i64,
    index,
    inline,
    kernel,
    load_state,
    log,
    lse_of,
    make_state,
    mask,
    merge,
    payload,
    rebase,
    shape,
    sink,
    store_state,
    u8,
)
from mlafix.kernels.scaling import BARE, FORMATS, Result, Scaling, gated, heads_of, result, scaled, store_rows, store_states
from mlafix.kernels.segments import segment_of

T = DType("T")
B = Base("B", default="e")
# The bases of the prefix's lse, of the suffix's lse and of the result's lse, and the base in which both sides are
# merged. All default to B.
PREFIX, SUFFIX = Base("PrefixBase", default=B), Base("SuffixBase", default=B)
RESULT, MEETING = Base("ResultBase", default=B), Base("MeetingBase", default=B)
# The dtype of a sink's logits.
C = DType("C", default=f32)

FEW = 128  # Up to this number of tokens, loading the rows takes less time than finding out which of them have keys.


@dataclasses.dataclass(frozen=True)
class Pair:
    """Arguments for two states of each row. `pair` declares them. Rows of the prefix at or past `context_rows` take no
    part."""

    prefix: Any
    prefix_lse: Any
    suffix: Any
    suffix_lse: Any
    context_rows: Any


def pair(row: str) -> Pair:
    """Declares the arguments for two states, whose rows have the dims `row`."""
    rows, lses = In[T, f"n H {row}"], In[f32, "H n"]
    return Pair(rows, lses, rows, lses, index.at_most("n"))


def is_fp8(how: Scaling) -> bool:
    """True if a merged row is stored in fp8 with one scale for all rows, and is neither rotated nor gated."""
    return how.is_static and how.turned == 0 and how.gate == ""


@dataclasses.dataclass(frozen=True)
class Beside:
    """Arguments that a kernel has in addition to the merged rows: their lses, and one fp8 scale for all rows or None.
    `beside` declares them."""

    out_lse: Any
    out_scale: Any


def stored(how: Scaling) -> Result:
    """Declares the arguments for the merged rows."""
    return Result(Out[f8e4m3fn, "n H D"], None, None, None, how) if is_fp8(how) else result(how)


def beside(how: Scaling) -> Beside:
    """Declares the arguments that a kernel has in addition to the merged rows."""
    return Beside(Out[f32, "H n"] | None, In[f32, "one=1"] if is_fp8(how) else None)


@inline
def merged_pair(t, h, of, in_context):
    p = rebase(load_state(of.prefix[t, h], of.prefix_lse[h, t], where=in_context, base=PREFIX), MEETING)
    s = rebase(load_state(of.suffix[t, h], of.suffix_lse[h, t], base=SUFFIX), MEETING)
    return rebase(merge(p, s), RESULT)


@inline
def copied_lse(t, h, of):
    """Returns the suffix's lse in the base of the result. Infinities and NaN are kept."""
    lse = of.suffix_lse[h, t]
    return lse if lse == math.inf else lse_of(rebase(make_state(of.suffix[t, h], lse, base=SUFFIX), RESULT))


@inline
def store_merged(t, h, of, in_context, to, more, scale):
    if more.out_scale is not None:
        store_state(merged_pair(t, h, of, in_context), to.out[t, h], more.out_lse[h, t], scale=scale)
    else:
        store_state(merged_pair(t, h, of, in_context), to.out[t, h], more.out_lse[h, t])


@inline
def store_copy(t, h, of, to, more, scale):
    row = of.suffix[t, h]
    lse = copied_lse(t, h, of)
    if more.out_scale is not None:
        row = row * (1.0 / scale)
    to.out[t, h] = row
    more.out_lse[h, t] = lse


@inline
def store_pair(t, h, of, to, more, copies):
    """Merges the two states of row (t, h) and stores the result. If there is a scale, the payload is first multiplied
    by 1 / scale. With `copies`, a row past the context is a copy of the suffix, even if the suffix's lse is
    infinite."""
    scale = None
    if more.out_scale is not None:
        scale = more.out_scale[0]
    if copies:
        if t < of.context_rows:
            store_merged(t, h, of, True, to, more, scale)
        else:
            store_copy(t, h, of, to, more, scale)
    else:
        store_merged(t, h, of, t < of.context_rows, to, more, scale)


@inline
def row_of_pair(t, h, of, in_context, to, copies):
    """Returns the merged row and its lse. The row is gated if there is a gate. With `copies`, a row past the context is
    the suffix's row with the suffix's lse."""
    merged = merged_pair(t, h, of, in_context)
    row, lse = payload(merged), lse_of(merged)
    if copies:
        if not in_context:
            row, lse = f32(of.suffix[t, h]), copied_lse(t, h, of)
    if to.gate is not None:
        row = gated(row, lse, to.gate[t, h])
    return row, lse


@functools.partial(scaled, named={"": (BARE,), "copy": (BARE, True), "copy_fp8": (FORMATS["fp8"], True)})
def merge_attn_states(scaling: Scaling, copies: bool = False) -> Any:
    """Merges prefix and suffix. With `copies`, tokens past the context are copies of the suffix and of its lse."""
    over, is_state = scaling.dim, scaling.is_bare or is_fp8(scaling)

    @kernel
    def merge_attn_states(to: stored(scaling), more: beside(scaling), of: pair("D" if is_state else "(G K)")):
        """Merges two partial attention states per (token, head) row: out, lse = prefix (+) suffix in the monoid of attention states.

          out        [n, H, D] T    written; may be prefix or suffix itself
          out_lse    [H, n]    f32  written; optional; may be prefix_lse or suffix_lse itself
          out_scale  [1]       f32  on the device; only for the fp8 kernels
          prefix     [n, H, D] T    its rows at or past context_rows are not read
          prefix_lse [H, n]    f32
          suffix     [n, H, D] T
          suffix_lse [H, n]    f32
          context_rows         index, 0 … n: rows at or past it take the suffix alone

        B is the base of the lses, e by default. PrefixBase, SuffixBase and ResultBase give the bases of single lses, and MeetingBase the
        base of the merge. An lse of another base is converted by one product, which is rounded. Strides give the layout of an lse: an
        [n, H] tensor is passed as its transposed view. A row whose lse is -inf or +inf is empty, whatever its payload holds. If both
        sides are empty, the row becomes 0, -inf.

        merge_attn_states_copy: rows at or past context_rows are bitwise copies of the suffix's payload and lse. An lse of +inf is copied
        with its payload, too, whereas a merge would take it as an empty state (N2) and store 0, -inf. So the copy of the payload does
        not depend on the lse.

        merge_attn_states_fp8, merge_attn_states_copy_fp8: out is f8e4m3fn, saturate((prefix (+) suffix) * (1 / out_scale)). The product is
        rounded to nearest even and saturates at +-448; NaN stays NaN. 1 / out_scale is rounded to f32 once. The lse is not scaled.
        """
        for t, h in grid("n", over):
            if is_state:
                store_pair(t, h, of, to, more, copies)
            else:
                in_context = t < of.context_rows
                heads = heads_of(h, scaling)
                results = [row_of_pair(t, head, of, in_context, to, copies) for head in heads]
                store_rows([result[0] for result in results], t, h, to)
                for j in range(scaling.joined):
                    more.out_lse[heads[j], t] = results[j][1]

    return merge_attn_states


@kernel
def merge_state_in_place(
    v: InOut[T, "n H D"],
    s: InOut[f32, "n H"],
    v_other: In[T, "n H D"],
    s_other: In[f32, "n H"],
    mask: In[u8, "n"] | None,
):
    """Merges a second partial attention state into the first, row by row: v, s = (v, s) (+) (v_other, s_other).

      v       [n, H, D] T    read and written
      s       [n, H]    f32  read and written
      v_other [n, H, D] T
      s_other [n, H]    f32
      mask    [n]       u8   optional: the rows of a token whose mask is 0 are neither read nor written

    B is the base of s, e by default. SuffixBase is the base of s_other, B by default. A boolean mask is passed
    as its bytes.
    """
    for t, h in grid("n", "H"):
        byte = mask[t] if mask is not None else 1
        if byte != 0:
            a = load_state(v[t, h], s[t, h])
            b = rebase(load_state(v_other[t, h], s_other[t, h], base=SUFFIX), B)
            store_state(merge(a, b), v[t, h], s[t, h])


@inline
def is_empty(largest, total):
    """True if a side is empty, according to its softmax statistics."""
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
    """Merges two partial attention states with softmax statistics, (max, sum) in base e, in place of log-sum-exps:
    lse = softmax_scale * max + log(sum). max is the maximum of the scores before scaling.

      out          [n, H, D] T    written; may be prefix or suffix itself
      out_stats    [n, H, 2] f32  written; optional; may be prefix_stats or suffix_stats itself
      prefix       [n, H, D] T
      prefix_stats [n, H, 2] f32
      suffix       [n, H, D] T
      suffix_stats [n, H, 2] f32
      softmax_scale          f32, positive

    A row whose maximum is infinite or whose sum is 0 is empty, whatever its payload holds. If both sides are empty, the row
    becomes 0, (-inf, 0).
    """
    for t, h in grid("n", "H"):
        p, s = prefix[t, h], suffix[t, h]
        p_max, s_max = prefix_stats[t, h, 0], suffix_stats[t, h, 0]
        p_sum, s_sum = prefix_stats[t, h, 1], suffix_stats[t, h, 1]
        p_empty, s_empty = is_empty(p_max, p_sum), is_empty(s_max, s_sum)
        largest = max(-math.inf if p_empty else p_max, -math.inf if s_empty else s_max)
        # Both lses are relative to the common maximum, so they are small numbers and keep their precision.
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


@inline
def is_of_a_sequence(row, cu_seqlens):
    last = cu_seqlens.shape[0] - 1
    return (last > 0) & (cu_seqlens[0] <= row) & (row < cu_seqlens[last])


@inline
def has_keys(row, inside, kv_lens, cu_seqlens, halvings):
    """True if a row's sequence has keys. `inside` says whether the row is in a sequence; if it is not, returns False.

    In a decode with one token per sequence, row s is in sequence s. So kv_lens[row] is loaded first, and the row's
    sequence is searched for only if it is not sequence number `row`.
    """
    live = kv_lens[row] > 0
    is_own = (cu_seqlens[row] <= row) & (row < cu_seqlens[row + 1])
    if inside and not is_own:
        live = kv_lens[segment_of(row, cu_seqlens, i64(cu_seqlens[0]), halvings)] > 0
    return live & inside


@inline
def prefix_where(condition, prefix, prefix_lse, t, h):
    return rebase(load_state(prefix[t, h], prefix_lse[t, h], where=condition, base=PREFIX), MEETING)


@inline
def merge_where(early, live, prefix, prefix_lse, suffix, suffix_lse, t, h):
    """Returns the merge of prefix and suffix if `live`, else the suffix. With at most FEW tokens, `early` is the
    prefix's state, which was loaded before `live` was known. Otherwise the prefix is loaded here, if `live`."""
    first = early
    if shape("n") > FEW:
        first = prefix_where(live, prefix, prefix_lse, t, h)
    masked = mask(first, live)
    second = rebase(load_state(suffix[t, h], suffix_lse[t, h], base=SUFFIX), MEETING)
    return rebase(merge(masked, second), RESULT)


@scaled
def merge_masked_states(scaling: Scaling) -> Any:
    """Merges prefix and suffix of rows in sequences. Sequence s has the rows [cu_seqlens[s], cu_seqlens[s + 1]). It has a prefix if
    kv_lens[s] > 0. Rows outside all sequences, and their scales, stay unchanged. `halvings`: see `segment_of`."""
    of = scaling.dim

    @kernel(allow={"bounds"})  # A load of kv_lens[t] may be out of bounds. It then gives 0.
    def merge_masked_states(
        to: result(scaling, some=True),
        out_lse: InOut[f32, "n H"] | None,
        prefix: In[T, "n H (G K)"],
        prefix_lse: In[f32, "n H"],
        suffix: In[T, "n H (G K)"],
        suffix_lse: In[f32, "n H"],
        kv_lens: In[i32, "s"],
        cu_seqlens: In[i32, "s1"],
        halvings: index,
    ):
        for t, p in grid("n", of):
            heads = heads_of(p, scaling)
            early = [prefix_where(shape("n") <= FEW, prefix, prefix_lse, t, h) for h in heads]
            inside = is_of_a_sequence(t, cu_seqlens)
            live = has_keys(t, inside, kv_lens, cu_seqlens, halvings)
            merged = [merge_where(early[j], live, prefix, prefix_lse, suffix, suffix_lse, t, heads[j])
                      for j in range(scaling.joined)]  # fmt: skip
            if scaling.is_static and scaling.turned == 0:
                store_state(merged[0], to.out[t, p], out_lse[t, p], scale=to.out_scales[0], where=inside)
            else:
                if inside:
                    store_states(merged, t, p, to, out_lse)

    return merge_masked_states


def dims_of_lse(is_nh: bool) -> str:
    return "n H" if is_nh else "H n"


def sinks_applied(lse_layout: str) -> Any:
    """Makes the kernel that merges the state of each row with the sink of its head, a logit in base e. Lses are [n, H] ("nh") or
    [H, n], in base B; those of the result are in ResultBase."""
    is_nh = lse_layout == "nh"

    @kernel
    def apply_sink(out: Out[T, "n H D"], out_lse: Out[f32, dims_of_lse(is_nh)] | None, v: In[T, "n H D"], s: In[f32, dims_of_lse(is_nh)],
                   sinks: In[C, "H"]):  # fmt: skip
        for t, h in grid("n", "H"):
            if is_nh:
                state = load_state(v[t, h], s[t, h], base=B)
            else:
                state = load_state(v[t, h], s[h, t], base=B)
            whole = rebase(merge(rebase(state, MEETING), sink(f32(sinks[h]), base="e")), RESULT)
            if is_nh:
                store_state(whole, out[t, h], out_lse[t, h])
            else:
                store_state(whole, out[t, h], out_lse[h, t])

    apply_sink.made_with = (lse_layout,)
    return apply_sink


apply_sink, apply_sink_hn = sinks_applied("nh"), sinks_applied("hn")
