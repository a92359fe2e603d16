"""Tests bases of an lse that default to the base of another lse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mlafix
from mlafix.dsl import Base, In, Out, f32, grid, load_state, merge, rebase, store_state

B = Base("B", default="e")
LEFT, RIGHT, RESULT = Base("LeftBase", default=B), Base("RightBase", default=B), Base("ResultBase", default=B)


@mlafix.kernel
def of_bases(out: Out[f32, "n D"], lse: Out[f32, "n"], v: In[f32, "n D"], v_lse: In[f32, "n"], w: In[f32, "n D"], w_lse: In[f32, "n"]):
    for t in grid("n"):
        left = rebase(load_state(v[t], v_lse[t], base=LEFT), B)
        right = rebase(load_state(w[t], w_lse[t], base=RIGHT), B)
        store_state(rebase(merge(left, right), RESULT), out[t], lse[t])


@mlafix.kernel
def of_one_base(out: Out[f32, "n D"], lse: Out[f32, "n"], v: In[f32, "n D"], v_lse: In[f32, "n"], w: In[f32, "n D"], w_lse: In[f32, "n"]):
    for t in grid("n"):
        left = load_state(v[t], v_lse[t])
        right = load_state(w[t], w_lse[t])
        store_state(merge(left, right), out[t], lse[t])


def merged(kernel: mlafix.Kernel, v_lse: list[float], w_lse: list[float]) -> tuple[np.ndarray, np.ndarray]:
    out, lse = np.full((2, 4), np.nan, np.float32), np.full(2, np.nan, np.float32)
    kernel(out, lse, np.full((2, 4), 1, np.float32), np.array(v_lse, np.float32), np.full((2, 4), 2, np.float32), np.array(w_lse, np.float32))
    return out, lse


def test_bases_that_no_call_gives_are_that_of_all() -> None:
    assert of_bases.signature["names"] == {"D": None, "LeftBase": "B", "B": "e", "RightBase": "B", "ResultBase": "B"}
    for base in ("e", "2"):
        ours, theirs = merged(of_bases.specialize(B=base), [0, 3], [1, 3]), merged(of_one_base.specialize(B=base), [0, 3], [1, 3])
        np.testing.assert_array_equal(ours[0], theirs[0])
        np.testing.assert_array_equal(ours[1], theirs[1])
        assert ours[1][1] == np.float32(4 if base == "2" else 3 + np.log(2))


def test_a_base_that_a_call_gives_counts_for_its_own_lse() -> None:
    two, three = float(np.log2(3)), float(np.log(3))
    out, lse = merged(of_bases.specialize(LeftBase=2), [two, -np.inf], [three, 0])
    np.testing.assert_allclose(out, [[1.5] * 4, [2] * 4], rtol=1e-6)
    np.testing.assert_allclose(lse, [np.log(6), 0], rtol=1e-6)
    out, lse = merged(of_bases.specialize(B=2, ResultBase="e"), [two, -np.inf], [two, 1])
    np.testing.assert_allclose(out, [[1.5] * 4, [2] * 4], rtol=1e-6)
    np.testing.assert_allclose(lse, [np.log(6), np.log(2)], rtol=1e-6)


@pytest.mark.parametrize("target", ["sm_90", "x86-64-v3"])
def test_a_kernel_whose_bases_are_one_has_the_code_of_one_without_bases(target: str) -> None:
    stage = "ptx" if target == "sm_90" else "llvm"
    for bound in ({}, {"B": 2}):
        codes = [kernel.ir(stage, target, D=64, **bound).replace(kernel.name, "k") for kernel in (of_bases, of_one_base)]
        lines = [[line for line in code.splitlines() if not line.lstrip().startswith(("//", ";", ".loc", ".file", "source_filename"))] for code in codes]
        assert lines[0] == lines[1]


def test_units_are_found_by_the_bases_that_calls_leave_out(tmp_path: Path) -> None:
    path = tmp_path / "bases.mlafix"
    of_bases.save(path, "cpu", {}, {"B": 2}, {"LeftBase": 2}, D=4)
    kernel = mlafix.Unit.load(path)["of_bases"]
    assert merged(kernel, [0, 0], [0, 0])[1][0] == np.float32(np.log(2))
    assert merged(kernel.specialize(B=2), [0, 0], [0, 0])[1][0] == 1
    assert merged(kernel.specialize(LeftBase=2), [1, 1], [np.log(2), 0])[1][0] == pytest.approx(np.log(4), rel=1e-6)
    with pytest.raises(mlafix.UnitError, match="expected a unit for .*RightBase=2"):
        merged(kernel.specialize(RightBase="2"), [0, 0], [0, 0])


def test_a_default_that_leads_back_is_refused() -> None:
    with pytest.raises(mlafix.ArgumentError, match='Base C: expected a default other than the base itself, got B'):
        Base("C", default=Base("B", default=Base("C")))
    with pytest.raises(mlafix.ArgumentError, match='expected a default of "e", 2 or another Base, got 10'):
        Base("C", default=10)
