"""What is proved of a kernel, as Python shows it."""

from __future__ import annotations

from pathlib import Path

import mlafix
from mlafix import library
from mlafix.dsl import In, Out, f32, grid, i32


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
    # The place is that of the load in this file.
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
