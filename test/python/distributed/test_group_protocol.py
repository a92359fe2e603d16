"""Tests the protocol by which ranks wait for each other. A search tries all orders of the steps of small groups
(group_model.py)."""

from __future__ import annotations

import pytest

from group_model import PULL, PUSH, Model
from interleavings import Broken, search


def launches(kinds: str, blocks: int = 1) -> tuple[tuple[str, int], ...]:
    """Returns one launch for each letter: "<" pulls, ">" pushes."""
    return tuple((PULL if kind == "<" else PUSH, blocks) for kind in kinds)


RIGHT = [
    Model(launches("<<<<")), Model(launches("<<", 2)), Model(launches("<<"), ranks=3),
    Model(launches(">>>>")), Model(((PUSH, 2), (PUSH, 1), (PUSH, 2))), Model(launches(">>"), ranks=3),
    Model(launches("><>")), Model(launches("><><>")), Model(launches("<>><")), Model(((PUSH, 2), (PULL, 1), (PUSH, 1))),
    Model(((PULL, 1), (PUSH, 2), (PULL, 1))), Model(launches("><>"), ranks=3), Model(launches("<><"), ranks=3),
]  # fmt: skip


@pytest.mark.parametrize("model", RIGHT, ids=str)
def test_every_launch_is_right_and_ends(model: Model) -> None:
    """Every launch ends with right rows, however late a rank is, and for any kinds and grids of launches."""
    assert search(model) > 100


WITH_TIMEOUTS = [
    Model(launches("<<<"), timeouts=2), Model(launches("<", 2), timeouts=1), Model(launches("<"), ranks=3, timeouts=1),
    Model(launches(">>>"), timeouts=2), Model(((PUSH, 2), (PUSH, 1)), timeouts=1), Model(launches(">"), ranks=3, timeouts=1),
    Model(launches("<>"), timeouts=2), Model(launches("><"), timeouts=2), Model(launches("><>"), timeouts=1),
    Model(launches("<><>"), timeouts=2), Model(launches("><><"), timeouts=2), Model(((PUSH, 2), (PULL, 1), (PUSH, 1)), timeouts=1),
]  # fmt: skip


@pytest.mark.parametrize("model", WITH_TIMEOUTS, ids=str)
def test_a_time_out_leaves_marks_and_tells_the_host(model: Model) -> None:
    """However late a rank is, every wait ends. Rows are right unless their block marked them by storing NaN."""
    assert search(model) > 1000


WRONG = {
    "releases": Model(releases=False),
    "releases before a push": Model(launches("<>"), releases=False),
    "checks": Model(timeouts=1, checks=False),
    "checks before a push": Model(launches("<>"), timeouts=1, checks=False),
    "echoes": Model(launches("<<"), ranks=3, timeouts=1, echoes=False),
    "halves": Model(launches(">>>"), halves=1),
    "looks": Model(launches(">>>"), timeouts=1, looks=False),
    "tells": Model(launches(">>"), tells=False),
}


@pytest.mark.parametrize("model", WRONG.values(), ids=WRONG)
def test_no_part_of_the_protocol_can_be_left_out(model: Model) -> None:
    with pytest.raises(Broken, match="kept what it read of other launches"):
        search(model)
