"""benchmarks/python_host_time.py runs, reports what it measured, and refuses wrong options. The measured times are not
checked."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "python_host_time.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="needs benchmarks/, which is not beside these tests")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-W", "error", str(SCRIPT), *arguments], capture_output=True, text=True)


def test_report_names_every_way_to_call(tmp_path: Path) -> None:
    written = tmp_path / "times.json"
    done = run("--device", "cpu", "--calls", "42", "--json", str(written))
    assert done.returncode == 0, done.stderr
    report = json.loads(written.read_text())
    assert list(report["calls"]) == [
        "bound(stream)",
        "bound()",
        "ops.merge_attn_states, outputs given",
        "ops.merge_attn_states, outputs allocated",
        "compat.vllm.merge_attn_states",
        "compat.flash_attn.flash_attn_combine",
        "torch.empty, two outputs",
        "torch.ops.mlafix.merge_attn_states",
    ]
    for name, numbers in report["calls"].items():
        assert name in done.stdout and 0 < numbers["p10_us"] <= numbers["median_us"] <= numbers["p90_us"]
    for numbers in report["first_calls"].values():
        assert 0 < numbers["least_ms"] <= numbers["median_ms"] <= numbers["most_ms"]


def test_too_few_calls_are_refused() -> None:
    done = run("--calls", "3")
    assert done.returncode == 2 and "argument --calls: expected at least 21, got 3" in done.stderr


def test_all_take_turns_and_each_goes_first() -> None:
    calls: list[str] = []
    implementations = {name: lambda name=name: calls.append(name) for name in "abc"}
    waits: list[int] = []
    times = runpy.run_path(str(SCRIPT))["run_rounds"](implementations, 6, 2, lambda: waits.append(len(calls)))
    assert {name: len(each) for name, each in times.items()} == {"a": 6, "b": 6, "c": 6}
    # In its turn, an implementation is called once without timing and twice with it. Before and after the timed calls,
    # run_rounds() waits for the GPU.
    turns = [calls[i:i + 3] for i in range(0, len(calls), 3)]
    assert all(len(set(turn)) == 1 for turn in turns)
    assert all({turn[0] for turn in turns[i:i + 3]} == {"a", "b", "c"} for i in range(0, len(turns), 3))
    assert {turns[i][0] for i in range(0, len(turns), 3)} == {"a", "b", "c"}
    assert waits == [n for i in range(0, len(calls), 3) for n in (i + 1, i + 3)]


def test_no_implementations_take_no_turns() -> None:
    assert runpy.run_path(str(SCRIPT))["run_rounds"]({}, 2, 1, lambda: None) == {}
