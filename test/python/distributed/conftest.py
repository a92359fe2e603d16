"""Starts the processes of a file's ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ranks import RankPool


@pytest.fixture(scope="module")
def pool(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RankPool]:
    """Yields a pool of processes that tests of one file share. POOL of the file has the pool's options."""
    from ranks import RankPool

    made = RankPool(tmp_path_factory.mktemp("ranks"), **getattr(request.module, "POOL", {}))
    yield made
    made.close()
