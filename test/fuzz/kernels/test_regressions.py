"""Kernels that once failed, small: each runs as it is meant to, from its Python and from its text in MLIR's syntax."""

from __future__ import annotations

import ast
from pathlib import Path

import cases
import functions
import numpy as np
import pytest
from floats import Floats
from render import source

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

FILES = sorted((Path(__file__).parent / "regressions").glob("*.py"))


@pytest.mark.filterwarnings("ignore:expected every access of")  # Random kernels leave the bounds to the compiler.
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_kernel_that_failed_is_right(path: Path, tmp_path: Path) -> None:
    from run import Runner

    case = cases.load(path)
    outcome = Runner("cpu", 1, tmp_path).run(case)
    assert outcome.kind == "ok", f"{outcome.message}\n{source(case.kernel)}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_saved_case_is_written_as_it_stands(path: Path) -> None:
    text = path.read_text()
    assert cases.document(cases.load(path), ast.get_docstring(ast.parse(text), clean=False) or "") == text


def test_the_sine_of_a_zero_of_unknown_sign_is_one() -> None:
    low, high, _ = functions.sin(Floats.between(np.array([-0.0]), np.array([0.0]), np.array([False]))).bounds()
    assert np.signbit(low[0]) and not np.signbit(high[0]) and low[0] == high[0] == 0
