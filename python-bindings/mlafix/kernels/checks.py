"""Kernels that look for broken rows of attention states, blocks of caches and metadata, and record their places.

A check writes nothing if all rows are right. For a broken row it stores 1 into the flag of the fault's class. It also
stores a record into the row's own element of `record`, unless an earlier launch has stored one there. Several rows may
store 1 into the same flag, so checks suppress the warning about races: the result does not depend on the order in which
rows run.
"""

from __future__ import annotations

import math

from mlafix.dsl import (
    Base,
    DType,
    In,
    InOut,
    List,
    Out,
    abs,
    f32,
    grid,
    i32,
    i64,
    identity,
    index,
    inline,
    kernel,
    load,
    load_state,
    lse_of,
    make_state,
    max,
    merge,
    min,
    payload,
    present,
    shape,
    store,
    sum,
)
from mlafix.kernels.segments import segment_of

T = DType("T")
B = Base("B", default="e")
# Dtypes of the result of a merge, of queries, of keys and of values.
O, Q, K, V = DType("O"), DType("Q"), DType("K"), DType("V")  # noqa: E741
# Dtypes of lengths, of offsets, of slots and of block tables.
L, C, S, I = DType("L", default=i32), DType("C", default=i32), DType("S", default="i64"), DType("I", default=i32)  # noqa: E741

NAN, INFINITE, NOT_EMPTY, WEIGHTLESS, NO_KEYS_SEEN, TOO_LARGE, OTHER_LSE, OTHER_VALUE, NAN_IN_BLOCK = range(1, 10)
NEGATIVE_LENGTH, FALLING_OFFSETS, SLOT_OUT_OF_RANGE, PAGE_OUT_OF_RANGE, OTHER_LENGTH = range(10, 15)
"""Classes of faults. A class is the index of the flag that it sets."""

MERGED_FROM = 8
"""The largest number of sides that `check_merge` reads. A side is one of the states that a merge combined."""


@inline
def note(t, h, what, record, flags, seam, step, values=None, numbers=()):
    """Sets the flag of the fault class `what`. Records the class and, if `values` is given, four numbers for row
    (t, h), unless the row already has a record. Does nothing if `what` is 0."""
    is_new = what != 0 and load(record[t, h], where=what != 0) == i64(0)
    store(record[t, h], (i64(step) << 32) | (i64(seam) << 8) | i64(what), where=is_new)
    if values is not None:
        for i in range(4):
            store(values[t, h, i], numbers[i], where=is_new)
    store(flags[index(what)], 1, where=what != 0)


@inline
def class_of(largest, lse, has_lse, known, keys, limit):
    """Returns the fault class of a row, or 0 if nothing is wrong. `largest` is the row's largest magnitude, NaN if the
    row has a NaN, and `limit` the largest magnitude that is right. If `known` is True, `keys` says whether the row has
    keys."""
    says_empty = has_lse and lse == -math.inf
    what = i32(0)
    if known and not keys:
        is_empty = largest == 0.0 and (lse == -math.inf or not has_lse)
        what = i32(0) if is_empty else i32(NOT_EMPTY)
    elif says_empty:
        what = i32(WEIGHTLESS) if not largest == 0.0 else i32(NO_KEYS_SEEN) if known else i32(0)
    elif largest != largest or (has_lse and lse != lse):
        what = i32(NAN)
    elif largest == math.inf or (has_lse and lse == math.inf):
        what = i32(INFINITE) if known or largest == math.inf else i32(0)
    elif largest > limit:
        what = i32(TOO_LARGE)
    return what


@inline
def sequence_of(t, lens, starts, causal, halvings, wanted):
    """Returns three values: whether token t is `wanted` and in a sequence, the sequence, and the number of keys that
    the token sees."""
    last = starts.shape[0] - 1
    first = i64(starts[0])
    known = wanted and first <= i64(t) and i64(t) < i64(starts[last])
    s = segment_of(t, starts, first, halvings) if known else index(0)
    hidden = i64(load(starts[s + 1], where=known)) - i64(t) - 1
    keys = i64(load(lens[s], where=known)) - (hidden if causal != 0 else i64(0))
    return known, s, max(keys, i64(0))


@kernel(allow={"bounds"})
def visible_keys(out: Out[i32, "n"], lens: In[L, "r"], starts: In[C, "r1"], causal: i32, halvings: index):
    """Counts the keys that each token sees, from the lengths and the starts of sequences; -1 for tokens of no sequence."""
    for t in grid("n"):
        known, _, keys = sequence_of(t, lens, starts, causal, halvings, True)
        out[t] = i32(min(keys, (1 << 31) - 1)) if known else i32(-1)


@kernel(allow={"races"})
def check_states(
    record: InOut[i64, "n H"],
    flags: InOut[i32, "classes=16"],
    out: In[T, "n H D"],
    lse: In[f32, "H n"] | None,
    lens: In[L, "n"] | None,
    limit: In[f32, "one=1"] | None,
    seam: i32,
    live_rows: index.at_most("n").or_tensor,
    read_rows: index.or_tensor,
    step: i32.or_tensor,
    values: InOut[f32, "n H four=4"] | None,
):
    """Looks for rows that break the contract of attention states (docs/Contract.md, C1 to C5).

    Rows before `read_rows` are read, and those that are also before `live_rows` are checked. If `live_rows` lies on the
    device and `read_rows` does not, the loads of rows do not wait for the load of `live_rows`.
    """
    for t, h in grid("n", "H"):
        row = load(out[t, h], where=t < read_rows)
        number = load(lse[h, t], where=t < read_rows) if present(lse) else 0.0
        keys = i64(load(lens[t], where=t < read_rows)) if present(lens) else i64(0)
        most = limit[0] if present(limit) else math.inf
        largest = max(abs(f32(row)))
        what = class_of(largest, number, present(lse), present(lens), keys > 0 or not present(lens), most)
        is_looked_at = t < live_rows and t < read_rows and keys != -1
        note(t, h, what if is_looked_at else i32(0), record, flags, seam, step, values, (number, largest, 0.0, most))


@inline
def is_other_lse(lse, expected, tolerance):
    """True if the finite `lse` differs from the expected one by more than tolerance * (1 + |lse| / 8)."""
    return not abs(lse - expected) <= tolerance * (1.0 + 0.125 * abs(lse))


@kernel(allow={"races"})
def check_merge(
    record: InOut[i64, "n H"],
    flags: InOut[i32, "classes=16"],
    out: In[O, "n H D"],
    lse: In[f32, "H n"] | None,
    sides: List[In[T, "n H D"], MERGED_FROM, "K"],
    side_lses: List[In[f32, "H n"], MERGED_FROM, "K"],
    tolerance: f32,
    lse_tolerance: f32,
    seam: i32,
    live_rows: index.at_most("n").or_tensor,
    read_rows: index.or_tensor,
    step: i32.or_tensor,
    values: InOut[f32, "n H four=4"] | None,
):
    """Looks for rows that are not the merge of their sides (docs/Contract.md, M1 to M5): the lse must be the merged one, and the row the
    weighted mean of the sides.

    Rows before `read_rows` are read, and those that are also before `live_rows` are checked. If `live_rows` lies on the
    device and `read_rows` does not, the loads of rows do not wait for the load of `live_rows`.
    """
    for t, h in grid("n", "H"):
        read = t < read_rows
        live = read and t < live_rows
        number = load(lse[h, t], where=read) if present(lse) else 0.0
        row = f32(load(out[t, h], where=read))
        whole = identity("D", base=B)
        for i in range(len(sides)):
            whole = merge(whole, load_state(sides[i][t, h], side_lses[i][h, t], where=read, base=B))
        is_live_row = not lse_of(whole) == -math.inf
        largest, distance = max(abs(row)), max(abs(row - payload(whole)))
        what, expected = class_of(largest, number, present(lse), True, is_live_row, math.inf), 0.0
        if what == 0 and is_live_row and present(lse) and is_other_lse(number, lse_of(whole), lse_tolerance):
            what = i32(OTHER_LSE)
        # `largest - distance` is a lower bound for the largest magnitude of the weighted mean. A row whose distance is
        # small relative to this bound is right, so the more expensive bound below is computed only for other rows.
        is_near = not is_live_row or distance <= tolerance * (largest - distance)
        if live and (what != 0 or not is_near):
            expected = max(abs(payload(whole)))
            # If sides cancel, the result is smaller than the sides, but its rounding error is relative to the sides. So
            # the bound uses the weighted mean of the sides' magnitudes. A side without weight adds nothing to this
            # mean, even if the side's payload is NaN.
            spread = identity("D", base=B)
            for i in range(len(sides)):
                side = load_state(sides[i][t, h], side_lses[i][h, t], where=read, base=B)
                spread = merge(spread, make_state(abs(payload(side)), lse_of(side), base=B))
            what = i32(OTHER_VALUE) if what == 0 and not distance <= tolerance * max(payload(spread)) else what
        numbers = (number, largest, lse_of(whole), expected)
        note(t, h, what if live else i32(0), record, flags, seam, step, values, numbers)


@kernel(allow={"races"})
def check_attention(
    record: InOut[i64, "n H"],
    flags: InOut[i32, "classes=16"],
    out: In[T, "n H D"],
    lse: In[f32, "H n"] | None,
    q: In[Q, "n H E"],
    k: In[K, "m p g E"],
    v: In[V, "m p g D"],
    lens: In[L, "r"],
    starts: In[C, "r1"],
    table: In[I, "r w"] | None,
    first: In[L, "r"] | None,
    scale: f32,
    v_scale: f32,
    causal: i32,
    most_keys: i64,
    tolerance: f32,
    lse_tolerance: f32,
    every: index,
    step_size: index,
    halvings: index,
    seam: i32,
    live_rows: index.at_most("n").or_tensor,
    step: i32.or_tensor,
    values: InOut[f32, "n H four=4"] | None,
):
    """Computes the attention of some rows again, one key after the other, and looks for rows that differ from the
    computed state.

    Row t is computed if (t + step // step_size) % every is 0 and token t sees at most `most_keys` keys. `scale`
    includes the scale of the keys.
    """
    for t, h in grid("n", "H"):
        is_turn = t < live_rows and (t + index(step) // step_size) % every == 0
        known, s, keys = sequence_of(t, lens, starts, causal, halvings, is_turn)
        sampled = known and keys <= most_keys
        begin = i64(0)
        if present(first):
            begin = i64(load(first[s], where=sampled))
        query = f32(load(q[t, h], where=sampled))
        group = h * shape("g") // shape("H")
        whole, magnitude = identity("D", base=B), 0.0
        for j in range(0, index(keys) if sampled else 0):
            place = index(begin) + j
            page, slot = index(i64(starts[s])) + place, index(0)
            if present(table):
                page, slot = index(table[s, place // shape("p")]), place % shape("p")
            score = scale * sum(query * f32(k[page, slot, group]))
            value = f32(v[page, slot, group]) * v_scale
            magnitude = max(magnitude, max(abs(value)))
            whole = merge(whole, make_state(value, score, base=B))
        number = load(lse[h, t], where=sampled) if present(lse) else 0.0
        row = f32(load(out[t, h], where=sampled))
        largest = max(abs(row))
        what = class_of(largest, number, present(lse), True, keys > 0, math.inf)
        if what == 0 and keys > 0:
            if present(lse) and is_other_lse(number, lse_of(whole), lse_tolerance):
                what = i32(OTHER_LSE)
            elif not max(abs(row - payload(whole))) <= tolerance * magnitude:
                what = i32(OTHER_VALUE)
        numbers = (number, largest, lse_of(whole), max(abs(payload(whole))))
        note(t, h, what if sampled else i32(0), record, flags, seam, step, values, numbers)


@kernel(allow={"races"})
def check_blocks(
    record: InOut[i64, "b w"],
    flags: InOut[i32, "classes=16"],
    cache: In[T, "m p R"],
    table: In[I, "b w"],
    lens: In[L, "b"],
    whole: i32,
    seam: i32,
    live_rows: index.at_most("b").or_tensor,
    step: i32.or_tensor,
):
    """Looks for NaN and infinities in the blocks that the live entries of a table name: in all slots if `whole`, else in those before
    the sequence's end."""
    for b, j in grid("b", "w"):
        size = i64(shape("p"))
        length = i64(load(lens[b], where=b < live_rows))
        used = i64(j) * size < length
        page = i64(load(table[b, j], where=used, otherwise=-1))
        known = used and i64(0) <= page and page < i64(shape("m"))
        left = length - i64(j) * size
        slots = size if whole != 0 else min(left, size)
        largest = 0.0
        for s in range(0, index(slots) if known else 0):
            largest = max(largest, max(abs(f32(cache[index(page), s]))))
        is_broken = known and not largest < math.inf
        note(b, j, i32(NAN_IN_BLOCK) if is_broken else i32(0), record, flags, seam, step)


@inline
def class_of_entry(i, live, lens, expected, starts, slots, table, pages, page_size):
    """Returns the fault class of request i or token i of a batch, or 0 if nothing is wrong."""
    what = i32(0)
    is_request = i < live and i < lens.shape[0]
    length = i64(load(lens[i], where=is_request))
    what = i32(NEGATIVE_LENGTH) if length < 0 else what
    if present(expected):
        other = i64(load(expected[i], where=is_request and i < expected.shape[0], otherwise=0))
        what = i32(OTHER_LENGTH) if what == 0 and is_request and other != length else what
    if present(starts):
        has_end = i + 1 < starts.shape[0]
        falls = has_end and i64(load(starts[i + 1], where=has_end)) < i64(load(starts[i], where=has_end))
        what = i32(FALLING_OFFSETS) if what == 0 and falls else what
    if present(slots):
        slot = i64(load(slots[i], where=i < slots.shape[0], otherwise=-1))
        # Compares quotients, since the product of the number of pages and their size may wrap around.
        is_beyond = slot < -1 or slot // page_size >= pages
        what = i32(SLOT_OUT_OF_RANGE) if what == 0 and is_beyond else what
    if present(table):
        has_row = is_request and i < table.shape[0] and length > 0
        used = min((length - 1) // page_size + 1, i64(table.shape[1])) if has_row else i64(0)
        is_beyond = False
        for j in range(0, index(used)):
            page = i64(table[i, j])
            is_beyond = is_beyond or not (i64(0) <= page and page < pages)
        what = i32(PAGE_OUT_OF_RANGE) if what == 0 and is_beyond else what
    return what


@kernel(allow={"races"})
def check_metadata(
    record: InOut[i64, "e one=1"],
    flags: InOut[i32, "classes=16"],
    lens: In[L, "r"],
    expected: In[I, "x"] | None,
    starts: In[C, "c"] | None,
    slots: In[S, "t"] | None,
    table: In[I, "y w"] | None,
    pages: i64,
    page_size: i64,
    seam: i32,
    live_rows: index.at_most("e").or_tensor,
    step: i32.or_tensor,
):
    """Looks for lengths below 0 or other than expected, offsets that fall, and slots and live entries of a table outside the cache.
    Entry i of the record holds faults of request i's length, offset and row of the table, and of token i's slot."""
    for i in grid("e"):
        what = class_of_entry(i, live_rows, lens, expected, starts, slots, table, pages, page_size)
        note(i, index(0), what, record, flags, seam, step)
