"""A fixture for tests of the cache. A module that imports `compiler` gives each of its tests an empty cache and a
compiler that counts compilations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from compiling import CountingCompiler
from mlafix import cache
from mlafix._files import toolchain


@pytest.fixture(autouse=True)
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingCompiler]:
    counting = CountingCompiler(tmp_path / "compiled")
    monkeypatch.setenv("MLAFIX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("MLAFIX_PREBUILT", raising=False)
    monkeypatch.delenv("MLAFIX_STRICT", raising=False)
    monkeypatch.setattr(toolchain, "compiler", lambda: counting)
    monkeypatch.setattr(toolchain, "compiler_file", lambda: "there is one")
    monkeypatch.setattr(toolchain, "compiler_facts", lambda: ("version 1",))
    cache.clear_memory()
    yield counting
    cache.clear_memory()
