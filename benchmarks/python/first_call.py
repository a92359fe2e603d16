"""Prints the milliseconds of the first call of a Python kernel in a new process, after all imports.

benchmarks/python_host_time.py runs this script several times. The first run compiles the kernel; the others find it on
disk.
"""

import time

import numpy as np

import mlafix
from mlafix.dsl import DType, In, Out, f32, grid, identity, load_state, merge, store_state

T = DType("T")


@mlafix.kernel
def merge_pieces(out: Out[T, "n H D"], lse: Out[f32, "n H"], parts: In[T, "k n H D"], part_lses: In[f32, "k n H"]):
    for t, h in grid("n", "H"):
        state = identity("D")
        for i in range(parts.shape[0]):
            state = merge(state, load_state(parts[i, t, h], part_lses[i, t, h]))
        store_state(state, out[t, h], lse[t, h])


if __name__ == "__main__":
    arguments = (np.empty((4, 2, 64), np.float32), np.empty((4, 2), np.float32), np.ones((2, 4, 2, 64), np.float32), np.zeros((2, 4, 2), np.float32))
    start = time.perf_counter()
    merge_pieces(*arguments)
    print((time.perf_counter() - start) * 1e3)
