"""What decodes do in three launches, in one: rows of sequences without keys count for nothing, the rest is merged, and the
result is quantised to fp8.

The mask is a predicate of the load: rows of a sequence without keys are not even read, and nothing blanks them before.
What it costs is the bytes of the two states, read once, and of the result.
"""

from mlafix.dsl import DType, In, InOut, f8e4m3fn, f32, i32, inline, kernel, load_state, lse_of, merge, payload, segments, store_state

T = DType("T")


@inline
def merge_where(live, a, a_lse, b, b_lse, t, h):
    """The first state where it is live, merged with the second."""
    return merge(load_state(a[t, h], a_lse[t, h], where=live, base="e"), load_state(b[t, h], b_lse[t, h], base="e"))


@kernel
def chain_static(q: InOut[f8e4m3fn, "n H D"], lse: InOut[f32, "n H"], scale: In[f32, "one=1"], a: In[T, "n H D"], a_lse: In[f32, "n H"],
                 b: In[T, "n H D"], b_lse: In[f32, "n H"], kv_lens: In[i32, "s"], starts: In[i32, "s1"]):  # fmt: skip
    """Sequence s has the rows [starts[s], starts[s + 1]), and keys beside the second state's if kv_lens[s] > 0. One scale for all."""
    for s, t, h in segments(starts, "n", "H"):
        merged = merge_where(kv_lens[s] > 0, a, a_lse, b, b_lse, t, h)
        store_state(merged, q[t, h], lse[t, h], scale=scale[0])


@kernel
def chain_groups(q: InOut[f8e4m3fn, "n H (G K)"], lse: InOut[f32, "n H"], scales: InOut[f32, "n H G"], a: In[T, "n H (G K)"],
                 a_lse: In[f32, "n H"], b: In[T, "n H (G K)"], b_lse: In[f32, "n H"], kv_lens: In[i32, "s"], starts: In[i32, "s1"]):  # fmt: skip
    """The same with one scale for each group of K elements, which is stored."""
    for s, t, h in segments(starts, "n", "H"):
        merged = merge_where(kv_lens[s] > 0, a, a_lse, b, b_lse, t, h)
        row = payload(merged)
        scale = max(max(abs(row), along="K"), 1e-10) / 448.0
        scales[t, h] = scale
        q[t, h] = row / scale
        lse[t, h] = lse_of(merged)
