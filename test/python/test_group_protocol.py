"""How ranks wait for each other, in every interleaving of small groups; see group_model.py and exchange_model.py."""

from __future__ import annotations

import pytest

from exchange_model import ExchangeModel
from group_model import Broken, Model, search


@pytest.mark.parametrize("model", [Model(launches=4), Model(blocks=2, launches=2), Model(ranks=3, launches=2)], ids=str)
def test_every_launch_is_right_and_ends(model: Model) -> None:
    assert search(model) > 100


@pytest.mark.parametrize(
    "model",
    [Model(launches=3, timeouts=2), Model(blocks=2, launches=1, timeouts=1), Model(ranks=3, launches=1, timeouts=1)],
    ids=str,
)
def test_a_time_out_leaves_marks_and_tells_the_host(model: Model) -> None:
    """Whatever a block did not mark is right, however late a rank came, and no wait lasts for ever."""
    assert search(model) > 10_000


@pytest.mark.parametrize(
    "model",
    [Model(releases=False), Model(timeouts=1, checks=False), Model(ranks=3, launches=1, timeouts=1, echoes=False)],
    ids=["releases", "checks", "echoes"],
)
def test_no_part_of_the_protocol_can_be_left_out(model: Model) -> None:
    with pytest.raises(Broken, match="kept what it read of other launches"):
        search(model)


EXCHANGES = [ExchangeModel(grids=(1, 1, 1, 1)), ExchangeModel(grids=(2, 1, 2)), ExchangeModel(ranks=3, grids=(1, 1)),
             ExchangeModel(grids=(1, 1, 1), timeouts=2), ExchangeModel(grids=(2, 1), timeouts=1),
             ExchangeModel(ranks=3, grids=(1,), timeouts=1)]


@pytest.mark.parametrize("model", EXCHANGES, ids=str)
def test_what_a_block_reads_behind_an_exchange_is_right(model: ExchangeModel) -> None:
    """However late a rank comes, whatever the grids of two launches are; and no wait lasts for ever."""
    assert search(model) > 500  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "model",
    [ExchangeModel(grids=(1, 1, 1), halves=1), ExchangeModel(grids=(1, 1, 1), timeouts=1, looks=False), ExchangeModel(tells=False)],
    ids=["halves", "looks", "tells"],
)
def test_no_part_of_an_exchange_can_be_left_out(model: ExchangeModel) -> None:
    with pytest.raises(Broken, match="kept what another launch had stored"):
        search(model)  # type: ignore[arg-type]
