"""Merges two partial states, and quantises the result to fp8 with one scale for each group of a head, in one launch.

A dim (G K) is one dim of memory. The merged row is reduced along K, and its groups are divided by their scales before
anything is stored. With bf16 inputs the launch moves 5 bytes per element, instead of 6 for a merge and 3 for a
quantisation after it.
"""

from mlafix.dsl import DType, In, Out, f8e4m3fn, f32, grid, kernel, load_state, lse_of, make_state, max, merge, payload, store_state

T = DType("T")


@kernel
def merge_groups(q: Out[f8e4m3fn, "n H (G K)"], scales: Out[f32, "n H G"], lse: Out[f32, "n H"], a: In[T, "n H (G K)"],
                 a_lse: In[f32, "n H"], b: In[T, "n H (G K)"], b_lse: In[f32, "n H"]) -> None:  # fmt: skip
    """Merges two states into fp8. Element i of group g is about q[i] * scales[g]. Groups of an empty row are zeros with
    the smallest scale."""
    for t, h in grid("n", "H"):
        merged = merge(load_state(a[t, h], a_lse[t, h], base="e"), load_state(b[t, h], b_lse[t, h], base="e"))
        row = payload(merged)
        scale = max(max(abs(row), along="K"), 1e-10) / 448.0
        scales[t, h] = scale
        q[t, h] = row / scale
        lse[t, h] = lse_of(merged)


@kernel
def merge_scaled(out: Out[T, "n H (G K)"], lse: Out[f32, "n H"], a: In[f8e4m3fn, "n H (G K)"], a_scales: In[f32, "n H G"],
                 a_lse: In[f32, "n H"], b: In[T, "n H (G K)"], b_lse: In[f32, "n H"]) -> None:  # fmt: skip
    """Merges a state that `merge_groups` has stored with a state that is not quantised."""
    for t, h in grid("n", "H"):
        first = make_state(a[t, h] * a_scales[t, h], a_lse[t, h], base="e")
        store_state(merge(first, load_state(b[t, h], b_lse[t, h], base="e")), out[t, h], lse[t, h])
