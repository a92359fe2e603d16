"""Tests a model of collectives in several streams of GPUs that hold few blocks at once (stream_model.py). All orders of
steps are searched."""

from __future__ import annotations

import pytest

from interleavings import Broken, search
from stream_model import PLAIN, PULL, PUSH, Launch, StreamModel


def two(kind: str, other: str, grid: int, more: int = 0) -> tuple[Launch, ...]:
    """Returns two collectives in two streams. If `more` is not 0, each is followed by a dependent launch of `more`
    blocks."""
    behind = [Launch(stream, PLAIN, more, dependent=True) for stream in range(2)] if more else []
    return (Launch(0, kind, grid), Launch(1, other, grid), *behind)


PAIRS = [(PULL, PULL), (PUSH, PUSH), (PULL, PUSH)]
each_pair = pytest.mark.parametrize("kinds", PAIRS, ids="-".join)


@each_pair
@pytest.mark.parametrize("grid", [1, 2, 3])
def test_launches_that_follow_each_other_end(kinds: tuple[str, str], grid: int) -> None:
    """Launches end if they leave room on the GPU, fill it exactly, or are larger than it."""
    assert search(StreamModel(two(*kinds, grid))) > 10
    if grid < 3:
        assert search(StreamModel(two(*kinds, grid), ranks=3)) > 30


@each_pair
def test_dependent_launches_take_no_places_from_them(kinds: tuple[str, str]) -> None:
    assert search(StreamModel(two(*kinds, 1, more=2))) > 10
    dependent = (Launch(0, kinds[0], 2), Launch(0, kinds[1], 2, dependent=True), Launch(1, kinds[0], 2), Launch(0, PLAIN, 2, dependent=True))
    assert search(StreamModel(dependent)) > 10


def test_a_stream_is_an_order() -> None:
    launches = (Launch(0, PULL, 3), Launch(0, PUSH, 3, dependent=True), Launch(0, PULL, 2, dependent=True))
    assert search(StreamModel(launches, ordered=False)) > 10


@each_pair
def test_without_an_order_they_may_wait_for_ever(kinds: tuple[str, str]) -> None:
    """Without an order, two launches that leave room on the GPU end, unless dependent launches take this room. Two
    launches that fill the GPU can deadlock."""
    assert search(StreamModel(two(*kinds, 1), ordered=False)) > 10
    for launches in (two(*kinds, 2), two(*kinds, 1, more=2)):
        with pytest.raises(Broken, match="wait for each other for ever"):
            search(StreamModel(launches, ordered=False))


@each_pair
def test_the_order_is_that_of_all_ranks(kinds: tuple[str, str]) -> None:
    with pytest.raises(Broken, match="wait for each other for ever"):
        search(StreamModel(two(*kinds, 1), orders=((0, 1), (1, 0))))
