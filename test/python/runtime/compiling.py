"""A compiler for tests of the cache. It counts compilations and passes them on to the package's own compiler."""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path
from typing import Any, ClassVar


class CountingCompiler:
    """Replaces mlafix._compiler. Every call of `compile` adds a line to the file `log`. A call with the arguments
    of an earlier call in this process returns the earlier result."""

    _made: ClassVar[dict[str, bytes]] = {}

    def __init__(self, log: Path, delay: float = 0) -> None:
        self.log = log
        self.delay = delay

    @property
    def count(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0

    def compile(self, source: str, name: str, **options: Any) -> bytes:
        with self.log.open("a") as file:
            file.write(f"{options['kernel']} {options['specializations']} {options['targets']}\n")
        time.sleep(self.delay)  # other processes that want the variant have to wait
        asked = repr((source, name, options))
        if asked not in self._made:
            self._made[asked] = importlib.import_module("mlafix._compiler").compile(source, name, **options)
        return self._made[asked]


def main(log: str, kernel: str) -> None:
    """Loads a variant while other processes load it, too. Compilations are counted in the file `log`."""
    from mlafix import cache
    from mlafix._files import toolchain

    toolchain.compiler = lambda: CountingCompiler(Path(log), delay=0.3)  # type: ignore[assignment]
    toolchain.compiler_file = lambda: "there is one"  # type: ignore[assignment]
    toolchain.compiler_facts = lambda: ("version 1",)  # type: ignore[assignment]
    unit = cache.Variants("merge_attn_states", Path(kernel).read_text()).load({"H": 2, "D": 8, "T": "f32"}, "x86-64-v3")
    assert unit.kernels[0].name == "merge_attn_states"


if __name__ == "__main__":
    main(*sys.argv[1:])
