"""Tests the compiler's proofs about a kernel, as `report()` and error messages show them in Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sources import underlined

import mlafix
from mlafix import library
from mlafix.dsl import In, InOut, Out, f32, grid, i32, store


@mlafix.kernel
def gather(out: Out[f32, "n"], x: In[f32, "m"], at: In[i32, "n"]):
    for t in grid("n"):
        out[t] = x[at[t]]


def answers(report):
    return {(arg["name"], answer["question"]): answer for arg in report["args"] for answer in arg["answers"]}


def test_report_of_a_source():
    report = gather.report()
    assert report["kernel"] == "gather" and report["microseconds"] > 0
    found = answers(report)
    assert found["out", "coverage"]["verdict"] == "proved"
    assert found["out", "one writer"]["verdict"] == "proved"
    assert found["at", "bounds"]["verdict"] == "proved"
    bounds = found["x", "bounds"]
    assert bounds["verdict"] == "unknown"
    assert bounds["reason"] == "it depends on what is read from at"
    guarded = [arg.get("guarded") for arg in report["args"]]
    assert [(guard["dim"], guard["line"]) for guard in guarded[1]] == [(0, bounds["line"])]
    assert guarded[0] is guarded[2] is None
    # The answer shows the location of the load in this file.
    assert Path(bounds["file"]).name == "test_proofs.py"
    line = Path(__file__).read_text().splitlines()[bounds["line"] - 1]
    assert line[bounds["column"] - 1 :] == "x[at[t]]"


def test_report_of_a_unit_is_that_of_its_source(tmp_path):
    path = tmp_path / "gather.mlafix"
    gather.save(path, "cpu")
    of_unit = mlafix.Unit.load(path).kernel("gather").report()
    of_source = gather.report()
    for answer in answers(of_source).values():
        for name in ("microseconds", "file", "line", "column", "end_line", "end_column"):
            answer.pop(name, None)
    assert of_unit["kernel"] == of_source["kernel"]
    assert of_unit["args"] == [{"name": arg["name"], "answers": arg["answers"]} for arg in of_source["args"]]


def test_report_of_a_library_kernel_binds_names():
    kernel = library.kernel("merge_attn_states")
    bound = kernel.specialize(H=16, D=128, T="bf16")
    for report in (kernel.report(), bound.report(), bound.report(out_lse="absent")):
        found = answers(report)
        assert {answer["verdict"] for answer in found.values()} == {"proved"}
        assert ("out", "coverage") in found
    assert ("out_lse", "coverage") not in found
    unit = kernel.compile(H=16, D=128, T="bf16").kernel("merge_attn_states")
    assert answers(unit.report()).keys() == answers(kernel.report()).keys()


@mlafix.kernel
def scattered(out: Out[f32, "n"], x: In[f32, "n"]):
    for t in grid("n"):
        store(out[t], x[t], where=(t * t) != 9)


@mlafix.kernel
def rounded(out: InOut[f32, "n"], x: In[f32, "n"]):
    for t in grid("n"):
        store(out[i32(x[t])], x[t])


def test_reasons_are_in_the_words_of_python():
    reasons = {answers(kernel.report())["out", question]["reason"] for kernel, question in ((scattered, "coverage"), (rounded, "bounds"))}
    assert reasons == {"it depends on the result of '*'", "it depends on a comparison of floats, an integer made of a float"}


def test_an_output_that_is_read_before_it_is_written_is_refused():
    @mlafix.kernel
    def accumulate(y: Out[f32, "n"], x: In[f32, "n"]):
        for t in grid("n"):
            y[t] = y[t] + x[t]

    y, x = np.zeros(3, np.float32), np.ones(3, np.float32)
    message = (
        "expected a row to write an element of output 'y' before it reads it, got a read of y[0] first: for example n = 1, i = 0; "
        "InOut[…] declares that 'y' has contents to read"
    )
    with pytest.raises(mlafix.CompileError) as caught:
        accumulate(y, x)
    assert message in caught.value.message and underlined(caught.value.message) == "y[t]"
    (fault,) = accumulate.debug(y, x).faults
    assert fault.question == "written before read"


def test_an_output_that_is_read_once_it_is_written():
    @mlafix.kernel
    def doubled(y: Out[f32, "n"], x: In[f32, "n"]):
        for t in grid("n"):
            y[t] = x[t]
            y[t] = y[t] + x[t]

    y = np.zeros(3, np.float32)
    doubled(y, np.ones(3, np.float32))
    assert y.tolist() == [2, 2, 2]
