"""What decodes do in three launches, in one: rows of sequences without keys count for nothing, the rest is merged, and the
result is quantised to fp8.

The mask is a predicate of the load: rows of a sequence without keys are not even read, and nothing blanks them before.
What it costs is the bytes of the two states, read once, and of the result, and a few loads from the caches for each row.
Of up to 128 tokens, all rows are read before it is known which of them count.
"""

from mlafix.dsl import DType, In, InOut, f8e4m3fn, f32, grid, i32, i64, index, inline, kernel, load_state, lse_of, mask, merge, payload, shape, store_state

T = DType("T")
FEW = 128  # tokens, whose rows take less time than finding out which of them count


@inline
def sequence_of(row, starts, halvings):
    """The sequence s with starts[s] <= row < starts[s + 1], for a row from starts[0] to starts[-1] - 1.

    Sequences of equal lengths are found by one division; others by halving, as many times as `halvings` says:
    1 + log2(sequences).
    """
    high = starts.shape[0] - 1
    low = index((i64(row) - i64(starts[0])) * i64(high) // (i64(starts[high]) - i64(starts[0])))
    found = starts[low] <= row and row < starts[low + 1]
    low = low if found else index(0)
    for _ in range(0, 0 if found else halvings):
        middle = (low + high) // 2
        before = starts[middle] <= row
        low = middle if before else low
        high = high if before else middle
    return low


@inline
def is_of_a_sequence(row, starts):
    last = starts.shape[0] - 1
    return (last > 0) & (starts[0] <= row) & (row < starts[last])


@inline
def has_keys(row, inside, kv_lens, starts, halvings):
    """Whether a row's sequence has keys. In a decode of one token each, the sequence has the row's number: its length is on
    the way before that is known."""
    live = kv_lens[row] > 0
    is_own = (starts[row] <= row) & (row < starts[row + 1])
    if inside and not is_own:
        live = kv_lens[sequence_of(row, starts, halvings)] > 0
    return live & inside


@inline
def merge_where(early, live, a, a_lse, b, b_lse, t, h):
    """The first state where it is live, merged with the second. `early` is the first one of few tokens, read before it was known."""
    first = early
    if shape("n") > FEW:
        first = load_state(a[t, h], a_lse[t, h], where=live, base="e")
    return merge(mask(first, live), load_state(b[t, h], b_lse[t, h], base="e"))


@kernel
def chain_static(q: InOut[f8e4m3fn, "n H D"], lse: InOut[f32, "n H"], scale: In[f32, "one=1"], a: In[T, "n H D"], a_lse: In[f32, "n H"],
                 b: In[T, "n H D"], b_lse: In[f32, "n H"], kv_lens: In[i32, "s"], starts: In[i32, "s1"], halvings: index):  # fmt: skip
    """Sequence s has the rows [starts[s], starts[s + 1]), and keys beside the second state's if kv_lens[s] > 0. One scale for all.

    Rows of no sequence are left as they are. `halvings`: see `sequence_of`.
    """
    for t, h in grid("n", "H"):
        early = load_state(a[t, h], a_lse[t, h], where=shape("n") <= FEW, base="e")
        inside = is_of_a_sequence(t, starts)
        live = has_keys(t, inside, kv_lens, starts, halvings)
        merged = merge_where(early, live, a, a_lse, b, b_lse, t, h)
        store_state(merged, q[t, h], lse[t, h], scale=scale[0], where=inside)


@kernel
def chain_groups(q: InOut[f8e4m3fn, "n H (G K)"], lse: InOut[f32, "n H"], scales: InOut[f32, "n H G"], a: In[T, "n H (G K)"],
                 a_lse: In[f32, "n H"], b: In[T, "n H (G K)"], b_lse: In[f32, "n H"], kv_lens: In[i32, "s"], starts: In[i32, "s1"],
                 halvings: index):  # fmt: skip
    """The same with one scale for each group of K elements, which is stored."""
    for t, h in grid("n", "H"):
        early = load_state(a[t, h], a_lse[t, h], where=shape("n") <= FEW, base="e")
        inside = is_of_a_sequence(t, starts)
        live = has_keys(t, inside, kv_lens, starts, halvings)
        merged = merge_where(early, live, a, a_lse, b, b_lse, t, h)
        row = payload(merged)
        scale = max(max(abs(row), along="K"), 1e-10) / 448.0
        if inside:
            scales[t, h] = scale
            q[t, h] = row / scale
            lse[t, h] = lse_of(merged)
