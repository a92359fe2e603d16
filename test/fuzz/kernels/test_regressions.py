"""Kernels that once failed, small: each runs as it is meant to, from its Python and from its text in MLIR's syntax."""

from __future__ import annotations

from pathlib import Path

import cases
import functions
import numpy as np
import pytest
from floats import Floats

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

FILES = sorted((Path(__file__).parent / "regressions").glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_kernel_that_failed_is_right(path: Path, tmp_path: Path) -> None:
    from run import Runner

    outcome = Runner("cpu", 1, tmp_path).run(cases.load(path))
    assert outcome.kind == "ok", outcome.message


def test_the_sine_of_a_zero_of_unknown_sign_is_one() -> None:
    low, high, _ = functions.sin(Floats.between(np.array([-0.0]), np.array([0.0]), np.array([False]))).bounds()
    assert np.signbit(low[0]) and not np.signbit(high[0]) and low[0] == high[0] == 0
