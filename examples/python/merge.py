"""The merge of two states, as a self-contained kernel. This command explains how it is compiled:

    python -m mlafix explain examples/python/merge.py:merge_attn_states --target sm_90 --bind H=128,D=128,T=bf16 -o page.html

Run as a program, this file prints the kernel's IR and PTX. The library's kernel is in
python-bindings/mlafix/kernels/merge.py.
"""

from mlafix.dsl import DType, In, Out, f32, grid, index, kernel, load_state, merge, store_state

T = DType("T")


@kernel
def merge_attn_states(
    out: Out[T, "n H D"],
    out_lse: Out[f32, "H n"] | None,
    prefix: In[T, "n H D"],
    prefix_lse: In[f32, "H n"],
    suffix: In[T, "n H D"],
    suffix_lse: In[f32, "H n"],
    context_rows: index.at_most("n"),  # type: ignore[valid-type]
) -> None:
    for t, h in grid("n", "H"):
        p = load_state(prefix[t, h], prefix_lse[h, t], where=t < context_rows)
        s = load_state(suffix[t, h], suffix_lse[h, t])
        store_state(merge(p, s), out[t, h], out_lse[h, t])  # type: ignore[index]


if __name__ == "__main__":
    print(merge_attn_states.ir("canonical"))
    print(merge_attn_states.ptx("sm_90", H=128, D=128, T="bf16"))
