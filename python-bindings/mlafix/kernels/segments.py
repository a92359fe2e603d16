"""Finds the sequence or request to which a token belongs, from the first tokens of all sequences."""

from __future__ import annotations

from mlafix.dsl import i64, index, inline


@inline
def segment_of(row, starts, first, halvings):
    """Returns the segment s with starts[s] <= row < starts[s + 1]. `row` is at least `first`, which is starts[0], and
    below starts[-1].

    Segments of equal lengths, the common case of a decode, take one division. Others take a binary search of `halvings`
    steps, 1 + log2(segments). No contents of `starts` cause reads out of bounds.
    """
    position, high = i64(row), starts.shape[0] - 1
    low = index((position - first) * i64(high) // (i64(starts[high]) - first))
    found = i64(starts[low]) <= position and position < i64(starts[low + 1])
    low = low if found else index(0)
    for _ in range(0, 0 if found else halvings):
        middle = (low + high) // 2
        before = i64(starts[middle]) <= position
        low = middle if before else low
        high = high if before else middle
    return low
