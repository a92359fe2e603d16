"""Blocks of a paged cache, of any dtype: their bits are moved, and no arithmetic knows what they mean.

An id that is negative or beyond the cache is left alone: no access leaves its tensor. A block is P rows of R elements,
of which R may be all that is contiguous. What it costs is the bytes that are written, and read. `mlafix.ops.zero_blocks`
clears blocks with the two kernels that are imported here.
"""

from mlafix.kernels.tokens import zero_blocks, zero_blocks_of_8
from mlafix.dsl import DType, In, InOut, grid, i64, kernel

__all__ = ["copy_blocks", "zero_blocks", "zero_blocks_of_8"]

# Of integers: a variable whose elements are only moved stands for every dtype.
E = DType("E", default="i32")


@kernel(allow={"races"})  # of two copies to one block either may win
def copy_blocks(target: InOut[E, "m P R"], source: In[E, "s P R"], pairs: In[i64, "n two=2"]) -> None:
    """target[pairs[b, 1]] = source[pairs[b, 0]]; a block that is not there is one of zeros."""
    for b, p in grid("n", "P"):
        target[pairs[b, 1], p] = source[pairs[b, 0], p]
