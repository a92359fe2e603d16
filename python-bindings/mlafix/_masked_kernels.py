"""What decodes do in three launches, in one, compiled when first used: rows of sequences without keys count for nothing, the rest is
merged, and the result is quantised (`fixup_merge_quantize` in `mlafix.ops`).

The mask is a predicate of the load: rows of a sequence without keys are not even read, and nothing blanks them before. Of up to 128
tokens, all rows are read before it is known which of them count.
"""

from __future__ import annotations

from typing import Any

from ._scaled_kernels import B, T
from ._scalings import Result, Scaling, store_states
from ._segments import segment_of
from .dsl import In, InOut, f32, grid, i32, i64, index, inline, kernel, load_state, mask, merge, shape, store_state

FEW = 128  # tokens, whose rows take less time than finding out which of them count


@inline
def is_of_a_sequence(row, cu_seqlens):
    last = cu_seqlens.shape[0] - 1
    return (last > 0) & (cu_seqlens[0] <= row) & (row < cu_seqlens[last])


@inline
def has_keys(row, inside, kv_lens, cu_seqlens, halvings):
    """Whether a row's sequence has keys. In a decode of one token each, the sequence has the row's number: its length is on
    the way before that is known."""
    live = kv_lens[row] > 0
    is_own = (cu_seqlens[row] <= row) & (row < cu_seqlens[row + 1])
    if inside and not is_own:
        live = kv_lens[segment_of(row, cu_seqlens, i64(cu_seqlens[0]), halvings)] > 0
    return live & inside


@inline
def merge_where(early, live, prefix, prefix_lse, suffix, suffix_lse, t, h):
    """The prefix where it is live, merged with the suffix. `early` is the prefix of few tokens, read before it was known."""
    first = early
    if shape("n") > FEW:
        first = load_state(prefix[t, h], prefix_lse[t, h], where=live, base=B)
    return merge(mask(first, live), load_state(suffix[t, h], suffix_lse[t, h], base=B))


def masked_states(scaling: Scaling) -> Any:
    """Sequence s has the rows [cu_seqlens[s], cu_seqlens[s + 1]), and keys beside the suffix's if kv_lens[s] > 0. Rows of no sequence
    are left as they are, and their scales. `halvings`: see `segment_of`."""
    of = scaling.dim

    @kernel(allow={"bounds"})  # a row's number may be no sequence's
    def merge_masked_states(
        out: InOut[scaling.stored, "n H (G K)"],
        out_scales: scaling.scales(some=True),
        global_scale: In[f32, "one=1"] | None,
        first_row: index,
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
            heads = [p * scaling.joined + j for j in range(scaling.joined)]
            early = [load_state(prefix[t, h], prefix_lse[t, h], where=shape("n") <= FEW, base=B) for h in heads]
            inside = is_of_a_sequence(t, cu_seqlens)
            live = has_keys(t, inside, kv_lens, cu_seqlens, halvings)
            merged = [merge_where(early[j], live, prefix, prefix_lse, suffix, suffix_lse, t, heads[j]) for j in range(scaling.joined)]
            if scaling.is_static:
                store_state(merged[0], out[t, p], out_lse[t, p], scale=out_scales[0], where=inside)
            else:
                if inside:
                    store_states(merged, t, p, Result(out, out_scales, global_scale, first_row, scaling), out_lse)

    return merge_masked_states
