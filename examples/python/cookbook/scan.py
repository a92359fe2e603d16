"""Uses running sums to find where each expert's rows begin, and which of a row's probabilities top-p sampling keeps.

A scan runs in the registers of the row's program, without access to memory. Each kernel thus only reads its inputs and
writes its outputs once.
"""

from mlafix.dsl import DType, In, Out, argmax, bool_, cumsum, f32, grid, i32, kernel, where

T = DType("T")


@kernel
def expert_offsets(starts: Out[i32, "n E"], ends: Out[i32, "n E"], counts: In[i32, "n E"], align: i32) -> None:
    """Computes the rows [starts, ends) of each expert, one expert behind the other. Starts are multiples of `align`, as
    block-scaled products need. `align` is at least 1."""
    for t in grid("n"):
        padded = (counts[t] + (align - 1)) // align * align
        begin = cumsum(padded) - padded
        starts[t] = begin
        ends[t] = begin + counts[t]


@kernel
def top_p_mask(kept: Out[bool_, "n V"], total: Out[f32, "n"], p: In[T, "n V"], top_p: f32) -> None:  # type: ignore[name-defined]
    """Keeps probabilities as long as the sum of those before them is below top_p, up to rounding. The probabilities are
    in falling order, and top_p is above 0. `total` becomes the sum of the kept ones."""
    for t in grid("n"):
        before = cumsum(p[t]) - p[t]
        keep = before < top_p
        kept[t] = keep
        total[t] = sum(where(keep, p[t], 0.0))


@kernel
def sample(found: Out[i32, "n"], p: In[T, "n V"], u: In[f32, "n"]) -> None:  # type: ignore[name-defined]
    """Finds the first index at which the running sum of the probabilities is above u times their sum, for u in [0, 1).
    The probabilities may be in any order, but not all 0.

    The last running sum equals sum(p[t]) bit for bit, so an index is found for every u. The running sum never falls, so
    the found index has a probability above 0.
    """
    for t in grid("n"):
        sums = cumsum(p[t])
        found[t] = argmax(where(sums > u[t] * sum(p[t]), 1, 0))
