"""Loads the modules of examples/python/cookbook."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

COOKBOOK = Path(__file__).resolve().parents[3] / "examples" / "python" / "cookbook"


@pytest.fixture(scope="session")
def cookbook() -> dict[str, ModuleType]:
    """Returns the modules of the cookbook by name."""
    with pytest.MonkeyPatch.context() as changed:
        changed.syspath_prepend(COOKBOOK)
        return {path.stem: __import__(path.stem) for path in sorted(COOKBOOK.glob("*.py"))}
