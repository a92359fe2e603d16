"""Launches that are watched: Kernel.debug, MLAFIX_DEBUG."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import mlafix
from mlafix.dsl import In, InOut, Out, bool_, f32, grid, i32, index, segments

LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


@mlafix.kernel
def gather(out: Out[f32, "n"], x: In[f32, "m"], at: In[i32, "n"]):
    for t in grid("n"):
        out[t] = x[at[t]]


@mlafix.kernel
def scatter(out: InOut[f32, "m"], x: In[f32, "n"], at: In[i32, "n"]):
    for t in grid("n"):
        out[at[t]] = x[t]


@mlafix.kernel
def flagged(out: Out[f32, "n D"], x: In[f32, "n D"], flags: In[bool_, "n"]):
    for t in grid("n"):
        if flags[t]:
            out[t] = x[t]


@mlafix.kernel
def live_rows(out: Out[f32, "n D"], x: In[f32, "n D"], size: In[f32, "n"], most: f32):
    for t in grid("n"):
        if size[t] < most:
            out[t] = x[t]


@mlafix.kernel
def ragged(out: InOut[f32, "n"], starts: In[i32, "b"], lengths: In[i32, "s"], x: In[f32, "m"]):
    for s, t in segments(starts, "n", where=lambda s: lengths[s] > 0):
        out[t] = x[t]


@mlafix.kernel
def by_sum(out: InOut[f32, "n D"], x: In[f32, "n D"], y: In[f32, "m"], at: index):
    for t in grid("n"):
        if sum(x[t]) > 0.0:
            out[t] = x[t] * y[at]


def only(report):
    assert len(report.faults) == 1, report
    return report.faults[0]


def test_a_guarded_access_that_is_out_of_bounds():
    x, at, out = np.float32([1, 2, 3]), np.int32([2, 0, 3, -1]), np.zeros(4, np.float32)
    fault = only(gather.debug(out, x, at))
    assert (fault.question, fault.argument, fault.element, fault.row) == ("bounds", "x", (3,), (2,))
    assert Path(fault.file).name == "test_debug.py" and LINES[fault.line - 1][fault.column - 1 :] == "x[at[t]]"
    assert str(fault).endswith(": x[3]: row [2] accesses it, which is out of bounds")
    assert (out == 0).all()  # nothing that is passed is written
    assert gather.debug(out, x, np.int32([2, 0, 1, 0])).faults == ()


def test_two_rows_that_write_one_element():
    out = np.zeros(4, np.float32)
    fault = only(scatter.debug(out, np.float32([1, 2, 3]), np.int32([3, 1, 3])))
    assert (fault.question, fault.argument, fault.element, fault.row) == ("one writer", "out", (3,), (2,))
    assert scatter.debug(out, np.float32([1, 2, 3]), np.int32([3, 1, 0])).faults == ()


def test_a_kernel_that_the_compiler_refuses():
    """The flags that its message names show the fault."""
    out, x = np.zeros((3, 8), np.float32), np.ones((3, 8), np.float32)
    with pytest.raises(mlafix.CompileError, match="expected every element of 'out' to be written"):
        flagged(out, x, np.array([True, False, True]))
    fault = only(flagged.debug(out, x, np.array([True, False, True])))
    assert (fault.question, fault.argument, fault.element, fault.row) == ("coverage", "out", (1, 0), ())
    assert str(fault) == "out[1, 0]: no row writes it"


def test_conditions_on_floats_are_followed():
    out, x = np.zeros((3, 8), np.float32), np.ones((3, 8), np.float32)
    sizes = np.float32([0.5, np.inf, -np.inf])
    assert only(live_rows.debug(out, x, sizes, 1.0)).element == (1, 0)
    with pytest.raises(mlafix.CompileError):  # no fault of this launch, but of others
        live_rows.debug(out, x, np.float32([0, -np.inf, 0.5]), 1.0)


def test_a_ragged_grid():
    out, x = np.zeros(6, np.float32), np.ones(4, np.float32)
    fault = only(ragged.debug(out, np.int32([0, 2, 5, 6]), np.int32([1, 1, 0]), x))
    assert (fault.question, fault.element, fault.row) == ("bounds", (4,), (1, 4))


def test_segments_that_overlap():
    """What the compiler is promised, broken."""
    out, x = np.zeros(6, np.float32), np.ones(6, np.float32)
    fault = only(ragged.debug(out, np.int32([0, 3, 1, 4]), np.int32([1, 1, 1]), x))
    assert (fault.question, fault.argument, fault.element, fault.row) == ("one writer", "out", (1,), (2, 1))
    assert ragged.debug(out, np.int32([0, 1, 3, 4]), np.int32([1, 1, 1]), x).faults == ()


def test_rows_that_cannot_be_followed():
    out, x = np.zeros((3, 8), np.float32), np.ones((3, 8), np.float32)
    report = by_sum.debug(out, x, np.ones(2, np.float32), 5)
    assert report.faults == () and report.unknown_rows == 3 and report.is_whole
    assert not gather.debug(np.zeros(400000, np.float32), np.ones(1, np.float32), np.zeros(400000, np.int32)).is_whole


class FakeDispatch:
    """Stands in for a kernel's launches: writes all but some elements."""

    def __init__(self, *left):
        self.left = left

    def __call__(self, args, stream):
        out = args[0]
        keep = [out[element] for element in self.left]
        out[...] = args[1]
        for element, value in zip(self.left, keep):
            out[element] = value


@mlafix.kernel
def copy(out: Out[f32, "n D"], x: In[f32, "n D"]):
    for t in grid("n"):
        out[t] = x[t]


@pytest.mark.parametrize("poison", [np.nan, -np.nan])
def test_unwritten_elements_are_told_from_any_value(monkeypatch, poison):
    """Written elements may hold what an output was filled with."""
    x = np.full((2, 8), poison, np.float32)
    x[1, 3:5] = np.int32([-1, 2**31 - 1]).view(np.float32)
    assert copy.debug(np.zeros_like(x), x).faults == ()
    monkeypatch.setitem(copy.__dict__, "_dispatch", FakeDispatch((1, 2), (1, 3), (1, 7)))
    fault = only(copy.debug(np.zeros_like(x), x))
    assert (fault.question, fault.element, fault.count) == ("coverage", (1, 2), 3)
    assert str(fault) == "out[1, 2]: no row writes it (3 elements in all)"


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    x, at, out = torch.ones(3), torch.tensor([2, 0, 3], dtype=torch.int32), torch.zeros(3)
    assert only(gather.debug(out, x, at)).element == (3,)
    wide = torch.zeros(2, 16)
    assert copy.debug(wide[:, :8], torch.ones(2, 8)).faults == () and (wide == 0).all()


def test_what_cannot_be_watched():
    with pytest.raises(mlafix.ArgumentError, match='argument "out": expected a numpy array or a torch tensor'):
        gather.debug([0.0], np.float32([1]), np.int32([0]))


def test_watched_by_the_environment():
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import numpy as np, test_debug as t\n"
        "out = np.zeros(2, np.float32)\n"
        "t.gather(out, np.float32([1, 2]), np.int32([1, 2]))\n"
        "assert out.tolist() == [2, 0]\n"
    )
    for value, count in (("1", 1), ("0", 0)):
        environment = {**os.environ, "MLAFIX_DEBUG": value}
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
        assert done.stderr.count('DebugWarning: kernel "gather":') == count, done.stderr
        assert ("x[2]: row [1] accesses it, which is out of bounds" in done.stderr) == bool(count)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gather(np.zeros(2, np.float32), np.float32([1, 2]), np.int32([1, 2]))  # not watched
