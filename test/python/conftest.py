"""What the tests of the Python package share: units compiled for the CPU by mlafix-opt, and the kernels' sources."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "kernels"


def build_dir() -> Path:
    """The build folder whose package is tested; ctest says which."""
    named = os.environ.get("MLAFIX_TEST_BUILD_DIR")
    return Path(named) if named else ROOT / "build" / "dev"


@pytest.fixture(scope="session")
def compile_unit(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """compile_unit("merge_attn_states", "H=4,D=64,T=bf16", ...) gives the path of a unit for the CPU."""
    folder = tmp_path_factory.mktemp("units")
    made: dict[tuple[str, ...], Path] = {}

    def build(kernel: str, *bindings: str) -> Path:
        key = (kernel, *bindings)
        if key not in made:
            opt = build_dir() / "bin" / "mlafix-opt"
            if not opt.exists():
                pytest.skip(f"needs mlafix-opt, and {opt} is not there")
            made[key] = folder / f"{kernel}-{len(made)}.mlafix"
            command = [str(opt), str(KERNELS / f"{kernel}.mlir"), *(f"--specialize={b}" for b in bindings)]
            subprocess.run([*command, "--target=cpu", "--emit=unit", "-o", str(made[key])], check=True)
        return made[key]

    return build
