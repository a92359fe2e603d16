"""Pools the tokens of each block into one row, element by element. This is the KV compressor of DeepSeek-V4, which
continues over chunks and decode steps.

Each element of a block's row is a softmax-weighted sum over the R tokens of the block. Each element has scores of its
own. An unfinished block has a state for each element: the largest score, the sum of weights, and the sum of weights
times values. SGLang's online compressor keeps such a state for each request, with the quotient of the two sums instead
of the second sum. vLLM keeps the tokens themselves. Tokens are added in their order, so the bits of a row do not depend
on whether its tokens came in one chunk, in several, or one by one.
"""

import math

from mlafix.dsl import DType, In, InOut, distinct, exp2, f32, grid, i32, index, kernel, load, shape, splat, where

T = DType("T")
O = DType("O")  # noqa: E741 (the library's name)

# log2(e) rounded to f32.
LOG2_E = float.fromhex("0x1.715476p+0")


# Silences warnings. The kernel makes no NaN, since no divisor is 0. There are no races, since each block belongs to one
# row and no old slot is another sequence's new slot. Accesses out of bounds are meant to be skipped.
@kernel(allow={"nan", "races", "bounds"})
def compress(
    out: InOut[O, "m D"],
    state: InOut[f32, "z three=3 D"],
    kv: In[T, "n D"],
    score: In[T, "n D"],
    bias: In[f32, "R D"],
    cu_seqlens: In[i32, "b1"],  # type: ignore[name-defined]
    starts: In[i32, "b"],  # type: ignore[name-defined]
    old: In[i32, "b"],  # type: ignore[name-defined]
    new: In[i32, "b"],  # type: ignore[name-defined]
    rows: In[i32, "b"],  # type: ignore[name-defined]
    blocks: index,
) -> None:
    """Pools the new tokens of each sequence s, [cu_seqlens[s], cu_seqlens[s + 1]), the first of which is token starts[s] of its sequence.

      out        [m, D]    O    the blocks of s that have new tokens are numbered from 0; block i becomes row
                                rows[s] + i if it is complete now
      state      [z, 3, D] f32  slot old[s] has the state of the block that the new tokens continue; it is read if
                                starts[s] is no multiple of R. Slot new[s] gets the state of the last block if that
                                block is not complete, and else keeps what it holds. old[s] and new[s] may be equal
                                unless s completes a block and begins another one, which no decode step does
      kv         [n, D]    T    values
      score      [n, D]    T    scores in base e, of each element
      bias       [R, D]    f32  bias[i] is added to the score of the token at place i of its block
      blocks               index: at least ceil((tokens + R - 1) / R) for the tokens of any sequence; 1 for decode steps

    A score of -inf has no weight, whatever the value is; a block of no weight is 0. NaN in a score propagates. Whatever
    the integers are, nothing is read or written out of bounds.
    """
    distinct(new)
    for s, c in grid("b", blocks):
        begin, end, start = cu_seqlens[s], cu_seqlens[s + 1], starts[s]
        size = i32(shape("R"))
        block = start // size + i32(c)
        low, high = max(start, block * size), min(start + (end - begin), (block + 1) * size)
        if 0 <= start and low < high:
            known = low % size != 0
            largest = load(state[old[s], 0], where=known, otherwise=-math.inf)
            total, pooled = load(state[old[s], 1], where=known), load(state[old[s], 2], where=known)
            for token in range(low, high):
                at = begin + (token - start)
                own = f32(score[at]) + bias[token % size]
                top = max(largest, own)
                kept = where(largest == top, 1.0, exp2((largest - top) * LOG2_E))
                weight = where(own == -math.inf, 0.0, exp2((own - top) * LOG2_E))
                total = total * kept + weight
                pooled = pooled * kept + where(weight == 0.0, 0.0, f32(kv[at]) * weight)
                largest = top
            if high % size == 0:
                out[rows[s] + i32(c)] = where(total == 0.0, splat(0.0, "D"), pooled / total)
            else:
                state[new[s], 0] = largest
                state[new[s], 1] = total
                state[new[s], 2] = pooled
