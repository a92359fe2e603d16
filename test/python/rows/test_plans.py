"""Plans that a user passes to a kernel: `@mlafix.kernel(plan=…)`."""

from __future__ import annotations

import re

import numpy as np
import pytest
from devices import Device

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

import mlafix
from mlafix.dsl import In, Out, exp, f32, grid, max, sum


def double(y: Out[f32, "n D"], x: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = x[t] * 2.0


def softmax(y: Out[f32, "n D"], x: In[f32, "n D"]):
    for t in grid("n"):
        powers = exp(x[t] - max(x[t]))
        y[t] = powers / sum(powers)


LANES = {"dense.lanes": 32, "dense.rows": 4}
PACKS = [
    mlafix.kernel(plan=LANES)(softmax),
    mlafix.kernel(plan={**LANES, "dense.row_loops": True})(softmax),
    mlafix.kernel(plan={**LANES, "dense.row_loops": True, "dense.kept_elements": 1})(softmax),
]
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


@pytest.mark.parametrize("size", [512, 1000])
def test_loops_over_packs_keep_the_bits(device: Device, size: int) -> None:
    assert len({kernel.ptx("sm_90", D=size) for kernel in PACKS}) == len(PACKS)
    x = np.random.default_rng(size).normal(size=(3, size)).astype(np.float32)
    results = []
    for kernel in PACKS:
        y = device.put(np.zeros_like(x))
        kernel(y, device.put(x))
        results.append(device.get(y))
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(results[0], powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_a_field_that_is_none_is_refused() -> None:
    with pytest.raises(mlafix.CompileError, match="expected a field of a plan as NAME=VALUE or VERSION.NAME=VALUE, with a name out of lanes, rows"):
        WRONG.ptx("sm_90", D=128)


def test_a_cpu_refuses_it_too() -> None:
    x = np.ones((7, 128), np.float32)
    y = np.zeros_like(x)
    with pytest.raises(mlafix.CompileError, match="expected a field of a plan as NAME=VALUE .* got 'dense.lanez=8'"):
        WRONG(y, x)
    assert not y.any()
