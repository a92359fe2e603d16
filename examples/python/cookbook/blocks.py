"""Copies blocks of a paged cache of any dtype. Only bits are moved, and no arithmetic is done.

A target block whose id is negative or past the end is skipped. A source block with such an id counts as zeros. So no
access leaves its tensor. A block has P rows of R elements; only the elements of a row need to be contiguous. A launch
reads and writes each copied block once. `mlafix.ops.zero_blocks` clears blocks with the two kernels that are imported
here.
"""

from mlafix.kernels.tokens import zero_blocks, zero_blocks_of_8
from mlafix.dsl import DType, In, InOut, grid, i64, kernel

__all__ = ["copy_blocks", "zero_blocks", "zero_blocks_of_8"]

# The dtype of the copied elements. It is declared as an integer, but may be any dtype except f4e2m1, because the kernel
# only moves elements.
E = DType("E", default="i32")


@kernel(allow={"races"})  # If two copies go to the same block, either may win.
def copy_blocks(target: InOut[E, "m P R"], source: In[E, "s P R"], pairs: In[i64, "n two=2"]) -> None:
    """Sets target[pairs[b, 1]] to source[pairs[b, 0]]. A source block that does not exist counts as zeros."""
    for b, p in grid("n", "P"):
        target[pairs[b, 1], p] = source[pairs[b, 0], p]
