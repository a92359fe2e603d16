"""Plans that a user passes to a kernel: `@mlafix.kernel(plan=…)`."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

import mlafix
from mlafix.dsl import In, Out, f32, grid


def double(y: Out[f32, "n D"], x: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = x[t] * 2.0


PLAIN = mlafix.kernel(double)
PLANNED = mlafix.kernel(plan={"dense.lanes": 8})(double)
WRONG = mlafix.kernel(plan={"dense.lanez": 8})(double)


def test_a_plan_changes_the_code_of_gpus_and_no_result() -> None:
    planned, plain = PLANNED.ptx("sm_90", D=128), PLAIN.ptx("sm_90", D=128)
    assert planned != plain and re.sub(r"\s", "", PLANNED.ptx("sm_90", D=128)) == re.sub(r"\s", "", planned)
    x = np.random.default_rng(0).normal(size=(7, 128)).astype(np.float32)
    y = np.empty_like(x)
    PLANNED(y, x)
    np.testing.assert_array_equal(y, 2 * x)


def test_a_field_that_is_none_is_refused() -> None:
    with pytest.raises(mlafix.CompileError, match="expected a field of a plan as NAME=VALUE or VERSION.NAME=VALUE, with a name out of lanes, rows"):
        WRONG.ptx("sm_90", D=128)


def test_a_cpu_refuses_it_too() -> None:
    x = np.ones((7, 128), np.float32)
    y = np.zeros_like(x)
    with pytest.raises(mlafix.CompileError, match="expected a field of a plan as NAME=VALUE .* got 'dense.lanez=8'"):
        WRONG(y, x)
    assert not y.any()
