"""Blocks of a paged cache, of any dtype: their bits are moved, and no arithmetic knows what they mean.

An id that is negative or beyond the cache is left alone: no access leaves its tensor. A block is P rows of R elements,
of which R may be all that is contiguous. What it costs is the bytes that are written, and read.
"""

from mlafix.dsl import DType, In, InOut, grid, i64, kernel, store

# Of integers: a variable whose elements are only moved stands for every dtype.
E = DType("E", default="i32")


@kernel
def zero_blocks(cache: InOut[E, "m P R"], ids: In[i64, "n"]):
    """Clears the blocks that a list names."""
    for b, p in grid("n", "P"):
        cache[ids[b], p] = 0


@kernel
def zero_blocks_of_8(c0: InOut[E, "m P R"], c1: InOut[E, "m P R"] | None, c2: InOut[E, "m P R"] | None, c3: InOut[E, "m P R"] | None,
                     c4: InOut[E, "m P R"] | None, c5: InOut[E, "m P R"] | None, c6: InOut[E, "m P R"] | None,
                     c7: InOut[E, "m P R"] | None, ids: In[i64, "n"]):  # fmt: skip
    """The same of one to eight caches that share their ids, as layers do, in one launch."""
    for b, p in grid("n", "P"):
        for cache in (c0, c1, c2, c3, c4, c5, c6, c7):
            store(cache[ids[b], p], 0)


@kernel
def copy_blocks(target: InOut[E, "m P R"], source: In[E, "s P R"], pairs: In[i64, "n two=2"]):
    """target[pairs[b, 1]] = source[pairs[b, 0]]; a block that is not there is one of zeros."""
    for b, p in grid("n", "P"):
        target[pairs[b, 1], p] = source[pairs[b, 0], p]
