"""Running sums: where each expert's rows begin, and which of a row's probabilities top-p sampling keeps.

A scan is part of the row's program: it reads and writes nothing. So each kernel costs the bytes of what it reads and of
what it writes, once.
"""

from mlafix.dsl import DType, In, Out, argmax, bool_, cumsum, f32, grid, i32, kernel, where

T = DType("T")


@kernel
def expert_offsets(starts: Out[i32, "n E"], ends: Out[i32, "n E"], counts: In[i32, "n E"], align: i32) -> None:
    """The rows [starts, ends) of each expert, one behind another; starts are multiples of `align`, at least 1, as block-scaled products want."""
    for t in grid("n"):
        padded = (counts[t] + (align - 1)) // align * align
        begin = cumsum(padded) - padded
        starts[t] = begin
        ends[t] = begin + counts[t]


@kernel
def top_p_mask(kept: Out[bool_, "n V"], total: Out[f32, "n"], p: In[T, "n V"], top_p: f32) -> None:  # type: ignore[name-defined]
    """Of probabilities in falling order: those before which the sum is below top_p, if top_p is above 0, and up to rounding. `total`: their sum."""
    for t in grid("n"):
        before = cumsum(p[t]) - p[t]
        keep = before < top_p
        kept[t] = keep
        total[t] = sum(where(keep, p[t], 0.0))


@kernel
def sample(found: Out[i32, "n"], p: In[T, "n V"], u: In[f32, "n"]) -> None:  # type: ignore[name-defined]
    """Of probabilities in any order, not all 0: the first index at which their running sum is above u times their sum, for u in [0, 1).

    The running sum ends with that sum, bit for bit: an index is found for every u. It never falls: the index found has a
    probability above 0.
    """
    for t in grid("n"):
        sums = cumsum(p[t])
        found[t] = argmax(where(sums > u[t] * sum(p[t]), 1, 0))
