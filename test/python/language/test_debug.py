"""Tests watched launches, which report faults and prints: `Kernel.debug` and MLAFIX_DEBUG."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import mlafix
from mlafix.dsl import In, InOut, Out, assume, bf16, bool_, distinct, f32, grid, i32, index, load_state, merge, segments, top_k

LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


@mlafix.kernel
def gather(out: Out[f32, "n"], x: In[f32, "m"], at: In[i32, "n"]):
    for t in grid("n"):
        out[t] = x[at[t]]


@mlafix.kernel(allow={"races"})
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


@mlafix.kernel(allow={"bounds"})
def ragged(out: InOut[f32, "n"], starts: In[i32, "b"], lengths: In[i32, "s"], x: In[f32, "m"]):
    for s, t in segments(starts, "n", where=lambda s: lengths[s] > 0):
        out[t] = x[t]


@mlafix.kernel
def rounded(out: InOut[f32, "n"], starts: In[i32, "b"], size: In[f32, "s"]):
    for s, t in segments(starts, "n", where=lambda s: bf16(size[s]) > 0.0):
        out[t] = 1.0


@mlafix.kernel
def by_sum(out: InOut[f32, "n D"], x: In[f32, "n D"], y: In[f32, "m"], at: index):
    for t in grid("n"):
        if sum(x[t]) > 0.0:
            out[t] = x[t] * y[at]


@mlafix.kernel
def by_top(out: InOut[f32, "n D"], x: In[f32, "n D"], y: In[f32, "m"], at: index):
    for t in grid("n"):
        if top_k(x[t], 1)[0][0] > 0.0:
            out[t] = x[t] * y[at]


@mlafix.kernel
def noted(out: InOut[f32, "m D"], x: In[f32, "n D"], lse: In[f32, "n"], slots: In[i32, "n"], k: i32):
    assume(k % 2 == 0)
    distinct(slots)
    for t in grid("n"):
        assume(slots[t] >= 0)
        state = load_state(x[t], lse[t], where=slots[t] > 0, base=2)
        print("slot", slots[t], f"t={t} at", 2.5, merge(state, state), sum(x[t]))
        out[slots[t]] = x[t] * 2.0


@mlafix.kernel
def counted(out: Out[i32, "n"]):
    for t in grid("n"):
        print(t)
        out[t] = i32(t)


def only(report):
    assert len(report.faults) == 1, report
    return report.faults[0]


def test_a_guarded_access_that_is_out_of_bounds():
    x, at, out = np.float32([1, 2, 3]), np.int32([2, 0, 3, -1]), np.zeros(4, np.float32)
    fault = only(gather.debug(out, x, at))
    assert (fault.question, fault.argument, fault.element, fault.row) == ("bounds", "x", (3,), (2,))
    assert Path(fault.file).name == "test_debug.py" and LINES[fault.line - 1][fault.column - 1 :] == "x[at[t]]"
    assert str(fault).endswith(": x[3]: row [2] accesses it, which is out of bounds")
    assert (out == 0).all()  # no argument is written
    assert gather.debug(out, x, np.int32([2, 0, 1, 0])).faults == ()


def test_two_rows_that_write_one_element():
    out = np.zeros(4, np.float32)
    fault = only(scatter.debug(out, np.float32([1, 2, 3]), np.int32([3, 1, 3])))
    assert (fault.question, fault.argument, fault.element, fault.row) == ("one writer", "out", (3,), (2,))
    assert scatter.debug(out, np.float32([1, 2, 3]), np.int32([3, 1, 0])).faults == ()


def test_a_kernel_that_the_compiler_refuses():
    """`debug` also runs a kernel that the compiler refuses, and shows the fault that the error predicts."""
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
    # The compiler refuses the kernel, since some launches leave elements unwritten. This launch writes all elements, so
    # it has no fault.
    report = live_rows.debug(out, x, np.float32([0, -np.inf, 0.5]), 1.0)
    assert report.faults == () and "expected every element of 'out' to be written" in report.refused


def test_a_ragged_grid():
    out, x = np.zeros(6, np.float32), np.ones(4, np.float32)
    fault = only(ragged.debug(out, np.int32([0, 2, 5, 6]), np.int32([1, 1, 0]), x))
    assert (fault.question, fault.element, fault.row) == ("bounds", (4,), (1, 4))


def test_segments_that_overlap():
    """`debug` reports segments that overlap, although the kernel promises that they do not."""
    out, x = np.zeros(6, np.float32), np.ones(6, np.float32)
    fault = only(ragged.debug(out, np.int32([0, 3, 1, 4]), np.int32([1, 1, 1]), x))
    assert (fault.question, fault.argument, fault.element, fault.row) == ("one writer", "out", (1,), (2, 1))
    assert ragged.debug(out, np.int32([0, 1, 3, 4]), np.int32([1, 1, 1]), x).faults == ()


def test_broken_promises(capsys):
    out, x, lse = np.ones((4, 8), np.float32), np.ones((3, 8), np.float32), np.float32([0.5, 1, -np.inf])
    assert noted.debug(out, x, lse, np.int32([3, 0, 1]), 2).faults == ()
    report = noted.debug(out, x, lse, np.int32([3, -2, 3]), 1)
    promises = [fault for fault in report.faults if fault.question == "promise"]
    assert [(fault.argument, fault.element, fault.row) for fault in promises] == [("", (), ()), ("slots", (2,), ()), ("", (), (1,))]
    ends = ("the launch breaks the promise that k % 2 == 0", "not negative are distinct", "row [1] breaks the promise that slots[t] >= 0")
    for fault, end in zip(promises, ends):
        assert str(fault).endswith(end) and Path(fault.file).name == "test_debug.py"
    others = {(fault.question, fault.element) for fault in report.faults} - {(fault.question, fault.element) for fault in promises}
    assert others == {("bounds", (-2,)), ("one writer", (3, 0))}
    with pytest.raises(mlafix.ArgumentError, match="expected k % 2 == 0, got k = 1"):
        noted(out, x, lse, np.int32([3, 0, 1]), 1)
    capsys.readouterr()


def test_prints(capsys):
    out, x, lse = np.ones((4, 8), np.float32), np.ones((3, 8), np.float32), np.float32([0.5, 1, -np.inf])
    report = noted.debug(out, x, lse, np.int32([3, 0, 1]), 2)
    assert [text.text for text in report.printed] == [
        "slot 3 t=0 at 2.5 1.5 8", "slot 0 t=1 at 2.5 -inf 8", "slot 1 t=2 at 2.5 -inf 8",
    ]  # fmt: skip
    shown = capsys.readouterr().out.splitlines()
    assert shown == [str(text) for text in report.printed]
    line = next(number for number, text in enumerate(LINES, 1) if 'print("slot"' in text)
    assert shown[0] == f"{__file__}:{line}: row [0]: slot 3 t=0 at 2.5 1.5 8"
    noted(out, x, lse, np.int32([3, 0, 1]), 2)
    assert capsys.readouterr().out == ""  # this launch is not watched


def test_rows_that_print_a_lot(capsys):
    report = counted.debug(np.zeros(10003, np.int32))
    assert len(report.printed) == 10000 and report.printed_more == 3
    assert capsys.readouterr().out.endswith("row [9999]: 9999\nand 3 more texts\n")


def test_rows_that_cannot_be_followed():
    out, x = np.zeros((3, 8), np.float32), np.ones((3, 8), np.float32)
    fault = only(by_sum.debug(out, x, np.ones(2, np.float32), 5))
    assert (fault.question, fault.argument, fault.element, fault.row) == ("bounds", "y", (5,), (0,))
    report = by_top.debug(out, x, np.ones(2, np.float32), 5)
    assert report.faults == () and report.unknown_rows == 3 and report.is_whole
    assert not gather.debug(np.zeros(400000, np.float32), np.ones(1, np.float32), np.zeros(400000, np.int32)).is_whole


def test_rows_of_segments_whose_predicate_is_not_known():
    """If the predicate of a segment is not known, its rows are counted in `unknown_rows`. Regression: such rows were
    silently left out."""
    report = rounded.debug(np.zeros(6, np.float32), np.int32([0, 2, 3, 5]), np.float32([1, -1, 1]))
    assert report.unknown_rows == 5 and report.faults == ()


class FakeDispatch:
    """Imitates the dispatcher of `copy` in Python: copies x to out, but leaves some elements of out unwritten."""

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
    """An element counts as written even if the written value equals its initial one."""
    x = np.full((2, 8), poison, np.float32)
    x[1, 3:5] = np.int32([-1, 2**31 - 1]).view(np.float32)
    assert copy.debug(np.zeros_like(x), x).faults == ()
    monkeypatch.setitem(copy.__dict__, "_dispatch", FakeDispatch((1, 2), (1, 3), (1, 7)))
    fault = only(copy.debug(np.zeros_like(x), x))
    assert (fault.question, fault.element, fault.count) == ("coverage", (1, 2), 3)
    assert str(fault) == "out[1, 2]: no row writes it (3 elements in all)"


def test_a_kernel_with_some_of_its_names_bound():
    assert copy.specialize(n=2).debug(np.zeros((2, 8), np.float32), np.ones((2, 8), np.float32)).faults == ()


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
        gather(np.zeros(2, np.float32), np.float32([1, 2]), np.int32([1, 2]))  # this launch is not watched


def test_a_source_that_is_run_from_a_shell(tmp_path):
    """mlafix-run --debug runs the rows of a source, and shows their prints."""
    tool = Path(mlafix.__file__).parents[2] / "bin" / "mlafix-run"  # built beside the package
    if not tool.exists():
        pytest.skip(f"needs mlafix-run, and {tool} is not there")
    source = tmp_path / "noted.mlir"
    source.write_text(noted.source, encoding="utf-8")

    def run(slots, k, *more):
        arrays = {"out": np.ones((4, 8), np.float32), "x": np.ones((3, 8), np.float32), "lse": np.float32([0.5, 1, -np.inf]), "slots": np.int32(slots)}
        for name, array in arrays.items():
            np.save(tmp_path / name, array)
        given = [f"--arg={name}={tmp_path / name}.npy" for name in arrays]
        return subprocess.run([tool, source, "--bindings=D=8", *given, f"--arg=k={k}", *more], capture_output=True, text=True, check=False)

    right = run([3, 0, 1], 2, "--debug")
    if "this mlafix-run was built without the compiler" in right.stderr:
        pytest.skip("this mlafix-run was built without the compiler")
    assert right.returncode == 0 and "row [0]: slot 3 t=0 at 2.5 1.5 ?\n" in right.stdout, right
    wrong = run([3, -2, 3], 2, "--debug")
    assert wrong.returncode == 1, wrong
    for end in ("out[-2]: row [1] accesses it, which is out of bounds\n", "row [1] breaks the promise that slots[t] >= 0\n"):
        assert end in wrong.stdout
    assert "row [" not in run([3, 0, 1], 2).stdout
