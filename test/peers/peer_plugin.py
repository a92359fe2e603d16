"""The pytest plugin of a run. It installs the modules that replace an engine, selects this process's share of the
cases, and records their outcomes.

Environment variables configure the plugin:

    PEER_SHIM      the name of the module in peer_shims
    PEER_CHECKOUT  the folder of the engine's checkout
    PEER_SHARE     "index/count": of every `count` cases, this process runs case `index`
    PEER_FAULTS    JSON, {test: why the test fails with any implementation}
    PEER_ERRORS    JSON, {test that expects an error of the engine: what mlafix does instead}
    PEER_RECORD    the JSON file to write
    PEER_ON_CPU    if set, the tests run on the CPU
"""

from __future__ import annotations

import importlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

_outcomes: Counter[str] = Counter()
_reasons: dict[str, Counter[str]] = {"failed": Counter(), "skipped": Counter()}
_collection: list[str] = []
_faults = json.loads(os.environ.get("PEER_FAULTS", "{}"))
_errors = json.loads(os.environ.get("PEER_ERRORS", "{}"))


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("PEER_ON_CPU"):
        import peer_cpu

        peer_cpu.install()
    importlib.import_module(f"peer_shims.{os.environ['PEER_SHIM']}").install(Path(os.environ["PEER_CHECKOUT"]))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    index, count = (int(part) for part in os.environ["PEER_SHARE"].split("/"))
    kept = items[index::count]
    config.hook.pytest_deselected(items=[item for at, item in enumerate(items) if at % count != index])
    items[:] = kept
    for item in items:
        if instead := _named(_errors, item.name):
            item.add_marker(pytest.mark.skip(reason=f"asks for an error of the engine's own: here {instead}"))


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _collection.append(str(report.longrepr).strip().splitlines()[-1])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    # A test has one outcome: that of its call, of a setup that prevented the call, or of a teardown that failed.
    # A report with an attribute `context` is of a subtest. Subtests that pass are not counted.
    if report.when == "call" and not (hasattr(report, "context") and report.passed) or report.failed or report.skipped:
        if report.when == "teardown":
            _outcomes["passed"] -= 1
        _outcomes[report.outcome] += 1
        if report.failed and _fault(report):
            _outcomes["faults"] += 1
        if report.outcome != "passed":
            _reasons[report.outcome][_reason(report)] += 1


def _reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    crash: Any = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    said = (text.strip().splitlines() or ["no message"])[0][:300]
    return f"{said} (over the engine's own function too: {_fault(report)})" if report.failed and _fault(report) else said


def _fault(report: pytest.TestReport) -> str:
    """Returns the reason why this test fails with any implementation, from PEER_FAULTS. Returns "" if there is none."""
    return _named(_faults, report.nodeid.rpartition("::")[2])


def _named(reasons: dict[str, str], case: str) -> str:
    """Returns the entry of `reasons` for a case. An entry for a test matches all of its cases: "test[16]" from pytest,
    "test_3_name" from parameterized."""
    test = case.partition("[")[0]
    return reasons.get(test, "") or next((why for name, why in reasons.items() if test.startswith(name) and test[len(name):][1:2].isdigit()), "")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    record = {"outcomes": {key: _outcomes[key] for key in ("passed", "failed", "skipped", "faults")},
              "reasons": {key: dict(counter) for key, counter in _reasons.items()}, "collection_errors": _collection,
              "exit_status": int(exitstatus)}
    Path(os.environ["PEER_RECORD"]).write_text(json.dumps(record), encoding="utf-8")
