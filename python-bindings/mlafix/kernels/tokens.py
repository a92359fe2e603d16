"""Kernels for blocks of a paged cache, for ragged and padded rows, and for rotary embedding.

No access leaves its tensor. Elements out of bounds are not written, and are read as zeros.

Kernels that only move elements can treat rows of any length as k chunks of K elements. Such kernels (`…_chunks`) are
compiled for few values of K, and k is known at launch.
"""

from __future__ import annotations

from mlafix.dsl import (
    DType,
    In,
    InOut,
    Out,
    assume,
    f32,
    grid,
    i32,
    i64,
    index,
    inline,
    kernel,
    load,
    segments,
    shape,
    store,
)

T = DType("T")
# The dtype of elements that are only copied or cleared. It is declared as an integer, but may be any dtype except
# f4e2m1.
E = DType("E", default="i32")
# The dtype of ids and positions.
I = DType("I", default="i64")
# The dtype of counts.
L = DType("L", default="i32")
# The dtype of a table of cosines and sines.
C = DType("C", default=f32)


@kernel
def zero_blocks(cache: InOut[E, "m P R"], ids: In[I, "n"]):
    """Clears the blocks that a list names. A block has P rows of R contiguous elements."""
    for b, p in grid("n", "P"):
        store(cache[ids[b], p], 0, where=0 <= ids[b] < shape("m"))


@kernel
def zero_blocks_of_8(c0: InOut[E, "m P R"], c1: InOut[E, "m P R"] | None, c2: InOut[E, "m P R"] | None, c3: InOut[E, "m P R"] | None,
                     c4: InOut[E, "m P R"] | None, c5: InOut[E, "m P R"] | None, c6: InOut[E, "m P R"] | None,
                     c7: InOut[E, "m P R"] | None, ids: In[I, "n"]):  # fmt: skip
    """Like `zero_blocks`, for one to eight caches in one launch. All caches use the same ids, as the caches of a
    model's layers do."""
    for b, p in grid("n", "P"):
        for cache in (c0, c1, c2, c3, c4, c5, c6, c7):
            store(cache[ids[b], p], 0, where=0 <= ids[b] < shape("m"))


@kernel(allow={"bounds"})  # The grid has the rows of the largest cache; smaller caches lack the last rows.
def zero_blocks_of_shapes(c0: InOut[E, "m0 p0 R0"], c1: InOut[E, "m1 p1 R1"] | None, c2: InOut[E, "m2 p2 R2"] | None,
                          c3: InOut[E, "m3 p3 R3"] | None, c4: InOut[E, "m4 p4 R4"] | None, c5: InOut[E, "m5 p5 R5"] | None,
                          c6: InOut[E, "m6 p6 R6"] | None, c7: InOut[E, "m7 p7 R7"] | None, ids: In[I, "n"], rows: index):  # fmt: skip
    """Like `zero_blocks_of_8`, for caches whose shapes differ. `rows`: the largest number of rows in a block."""
    for b, p in grid("n", rows):
        for cache in (c0, c1, c2, c3, c4, c5, c6, c7):
            store(cache[ids[b], p], 0, where=0 <= ids[b] < cache.shape[0] and p < cache.shape[1])


@kernel(allow={"bounds"})
def zero_chunks(c0: InOut[E, "m0 p0 k0 K"], c1: InOut[E, "m1 p1 k1 K"] | None, c2: InOut[E, "m2 p2 k2 K"] | None,
                c3: InOut[E, "m3 p3 k3 K"] | None, c4: InOut[E, "m4 p4 k4 K"] | None, c5: InOut[E, "m5 p5 k5 K"] | None,
                c6: InOut[E, "m6 p6 k6 K"] | None, c7: InOut[E, "m7 p7 k7 K"] | None, ids: In[I, "n"], rows: index, chunks: index):  # fmt: skip
    """Like `zero_blocks_of_shapes`, with rows in chunks. A row has at most `chunks` chunks."""
    for b, p, c in grid("n", rows, chunks):
        for cache in (c0, c1, c2, c3, c4, c5, c6, c7):
            store(cache[ids[b], p, c], 0, where=0 <= ids[b] < cache.shape[0] and p < cache.shape[1] and c < cache.shape[2])


@kernel(allow={"bounds"})
def zero_tails(c0: InOut[E, "m0 a0 s0 b0 k0 K"], c1: InOut[E, "m1 a1 s1 b1 k1 K"] | None, c2: InOut[E, "m2 a2 s2 b2 k2 K"] | None,
               c3: InOut[E, "m3 a3 s3 b3 k3 K"] | None, c4: InOut[E, "m4 a4 s4 b4 k4 K"] | None, c5: InOut[E, "m5 a5 s5 b5 k5 K"] | None,
               c6: InOut[E, "m6 a6 s6 b6 k6 K"] | None, c7: InOut[E, "m7 a7 s7 b7 k7 K"] | None, ids: In[I, "n"], kept: In[L, "n"],
               rows: index, chunks: index):  # fmt: skip
    """Like `zero_chunks`, but keeps the first kept[i] of the s tokens of block ids[i]. A token has a * b rows."""
    for b, p, c in grid("n", rows, chunks):
        for cache in (c0, c1, c2, c3, c4, c5, c6, c7):
            inner, size = cache.shape[3], cache.shape[2]
            token, outer = p // max(inner, 1) % max(size, 1), p // max(inner * size, 1)
            there = 0 <= ids[b] < cache.shape[0] and outer < cache.shape[1] and c < cache.shape[4] and inner > 0
            store(cache[ids[b], outer, token, p % max(inner, 1), c], 0, where=there and token < size and token >= kept[b])


@inline
def behind(t, end, pad):
    """Returns the value of elements for which no row t is read: `pad` if t is past the sequence's end (`end`), else 0,
    since row t is then out of bounds."""
    return pad if t >= end else 0


@kernel
def pack_rows(padded: Out[T, "b m R"], x: In[T, "n R"], starts: In[i32, "b1"], pad: f32):
    """padded[s, j] = x[starts[s] + j], and `pad` past a sequence's end. If a sequence is longer than m, the rest is
    dropped."""
    assume(shape("b") < shape("b1"))
    for s, j in grid("b", "m"):
        t = index(starts[s]) + j
        padded[s, j] = load(x[t], where=0 <= t < min(starts[s + 1], shape("n")), otherwise=behind(t, starts[s + 1], pad))


@kernel
def pack_integers(padded: Out[E, "b m R"], x: In[E, "n R"], starts: In[i32, "b1"], pad: i64):
    """Like `pack_rows`, for integers."""
    assume(shape("b") < shape("b1"))
    for s, j in grid("b", "m"):
        t = index(starts[s]) + j
        padded[s, j] = load(x[t], where=0 <= t < min(starts[s + 1], shape("n")), otherwise=behind(t, starts[s + 1], pad))


@kernel
def pack_bits(padded: Out[E, "b m R"], x: In[E, "n R"], starts: In[i32, "b1"]):
    """Like `pack_rows`, for any dtype, with zeros past a sequence's end."""
    assume(shape("b") < shape("b1"))
    for s, j in grid("b", "m"):
        t = index(starts[s]) + j
        padded[s, j] = load(x[t], where=0 <= t < min(starts[s + 1], shape("n")))


@kernel
def pack_chunks(padded: Out[T, "b m k K"], x: In[T, "n k K"], starts: In[i32, "b1"], pad: f32):
    """Like `pack_rows`, with rows in chunks."""
    assume(shape("b") < shape("b1"))
    for s, j, c in grid("b", "m", "k"):
        t = index(starts[s]) + j
        padded[s, j, c] = load(x[t, c], where=0 <= t < min(starts[s + 1], shape("n")), otherwise=behind(t, starts[s + 1], pad))


@kernel
def pack_chunks_of_integers(padded: Out[E, "b m k K"], x: In[E, "n k K"], starts: In[i32, "b1"], pad: i64):
    """Like `pack_integers`, with rows in chunks."""
    assume(shape("b") < shape("b1"))
    for s, j, c in grid("b", "m", "k"):
        t = index(starts[s]) + j
        padded[s, j, c] = load(x[t, c], where=0 <= t < min(starts[s + 1], shape("n")), otherwise=behind(t, starts[s + 1], pad))


@kernel
def pack_chunks_of_bits(padded: Out[E, "b m k K"], x: In[E, "n k K"], starts: In[i32, "b1"]):
    """Like `pack_bits`, with rows in chunks."""
    assume(shape("b") < shape("b1"))
    for s, j, c in grid("b", "m", "k"):
        t = index(starts[s]) + j
        padded[s, j, c] = load(x[t, c], where=0 <= t < min(starts[s + 1], shape("n")))


@kernel(allow={"bounds"})
def unpack_rows(x: InOut[E, "n R"], padded: In[E, "b m R"], starts: In[i32, "b1"]):
    """x[t] = padded[s, t - starts[s]], where s is the sequence that has row t. Rows of no sequence keep their value.
    Rows that `pack_rows` dropped become 0."""
    for s, t in segments(starts, "n"):
        x[t] = load(padded[s, t - starts[s]], where=t - starts[s] < shape("m"))


@kernel(allow={"bounds"})
def unpack_chunks(x: InOut[E, "n k K"], padded: In[E, "b m k K"], starts: In[i32, "b1"]):
    """Like `unpack_rows`, with rows in chunks."""
    for s, t, c in segments(starts, "n", "k"):
        x[t, c] = load(padded[s, t - starts[s], c], where=t - starts[s] < shape("m"))


@kernel
def apply_rope(x: InOut[T, "n H (2 K)"], positions: In[I, "n"], table: In[C, "m two=2 K"]):
    """Turns each pair (x[i], x[K + i]) of a head by its angle. A position beyond the table gives zeros."""
    for t, h in grid("n", "H"):
        known = 0 <= positions[t] < shape("m")
        c, s = load(table[positions[t], 0], where=known), load(table[positions[t], 1], where=known)
        a, b = load(x[t, h, 0], where=known), load(x[t, h, 1], where=known)
        x[t, h, 0] = a * c - b * s
        x[t, h, 1] = b * c + a * s


@kernel
def apply_rope_pairs(x: InOut[T, "n H (K 2)"], positions: In[I, "n"], table: In[C, "m two=2 K"]):
    """Like `apply_rope`, for pairs (x[2 * i], x[2 * i + 1])."""
    for t, h in grid("n", "H"):
        known = 0 <= positions[t] < shape("m")
        c, s = load(table[positions[t], 0], where=known), load(table[positions[t], 1], where=known)
        a, b = load(x[t, h, :, 0], where=known), load(x[t, h, :, 1], where=known)
        x[t, h, :, 0] = a * c - b * s
        x[t, h, :, 1] = b * c + a * s
