"""Loads the kernels of a test file."""

from __future__ import annotations

from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def kernels(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """Returns the module whose text is TEXT of the test file."""
    from sources import load

    return load(tmp_path_factory.mktemp("kernels"), request.module.TEXT)
