"""Ragged rows to padded ones and back: sequence s has the rows [starts[s], starts[s + 1]), or row s of a tensor of b x m rows.

Nothing waits for the device: the caller chooses m. What it costs is the bytes of the padded tensor, written, and of the
rows, read; back, those of the rows twice.
"""

from mlafix.dsl import DType, In, InOut, Out, f32, grid, i32, index, kernel, load, segments

T = DType("T")
# Of integers: a variable whose elements are only moved stands for every dtype.
E = DType("E", default="i32")


@kernel
def pack_rows(padded: Out[T, "b m R"], x: In[T, "n R"], starts: In[i32, "b1"], pad: f32):
    """padded[s, j] = x[starts[s] + j], and `pad` behind a sequence's end. Of a sequence longer than m the rest is dropped."""
    for s, j in grid("b", "m"):
        t = index(starts[s]) + j
        padded[s, j] = load(x[t], where=t < starts[s + 1], otherwise=pad)


@kernel
def pack_bits(padded: Out[E, "b m R"], x: In[E, "n R"], starts: In[i32, "b1"]):
    """The same of any dtype, with zeros behind a sequence's end."""
    for s, j in grid("b", "m"):
        t = index(starts[s]) + j
        padded[s, j] = load(x[t], where=t < starts[s + 1])


@kernel
def unpack_rows(x: InOut[E, "n R"], padded: In[E, "b m R"], starts: In[i32, "b1"]):
    """x[t] = padded[s, t - starts[s]] of the sequence s that has row t; rows of none are left, and what was dropped is zeros."""
    for s, t in segments(starts, "n"):
        x[t] = padded[s, t - starts[s]]
