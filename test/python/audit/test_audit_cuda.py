"""Tests `mlafix.audit` on a GPU: captured calls, host synchronisation and broken contexts. Needs torch and a GPU."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device that torch can use", allow_module_level=True)

import audit_cuda_backends as backends  # noqa: E402

from mlafix.audit import Report, audit  # noqa: E402


def audited(call: Any, *checks: str) -> Report:
    return audit(call, device="cuda", dtype="bfloat16", form="paged", takes=("out", "lse"), causal=False, checks=checks, progress=False)


def test_correct_backend_has_no_finding() -> None:
    report = audited(backends.decode, "A0", "A1", "A4", "A7", "A9", "A12")
    assert not report.findings, str(report)
    # The rounding of this backend depends on the batch size (A9), and the backend allocates memory (A12). The report
    # states both facts, but not as findings.
    assert {outcome.status for outcome in report.outcomes if outcome.check not in ("A9", "A12")} == {"holds"}, str(report)


@pytest.mark.parametrize("backend", [backends.mixed, backends.Planned])
def test_queries_over_pages_are_captured(backend: Any) -> None:
    checks = ["A0", "A1", "A3", "A4", "A7", "A11", "A12", "A15"]
    report = audit(backend, device="cuda", dtype="bfloat16", form="ragged_paged", takes=("out", "lse"), causal=True, checks=checks, progress=False)
    assert not report.findings, str(report)
    assert {outcome.status for outcome in report.outcomes if outcome.check != "A12"} == {"holds"}, str(report)


def test_plan_that_is_kept_is_found() -> None:
    report = audit(backends.PlannedOnce, device="cuda", dtype="bfloat16", form="ragged_paged", takes=("out", "lse"), causal=True,
                   checks=["A0", "A7", "A15"], progress=False)  # fmt: skip
    assert {finding.check for finding in report.findings} & {"A7", "A15"}, str(report)


@pytest.mark.parametrize("call, check, kind", [
    (backends.lengths_of_the_capture, "A7", "replay"),
    (backends.reads_lengths_on_the_host, "A12", "a call waits for the GPU"),
    (backends.reads_lengths_on_the_host, "A7", "a call cannot be captured"),
    (backends.stale_rows, "A1", "rows without keys"),
    (backends.one_workspace, "A15", "beside a call of another stream"),
    (backends.breaks_the_context, "A1", "raises"),
])  # fmt: skip
def test_planted_fault_is_found_and_shown(call: Any, check: str, kind: str) -> None:
    report = audited(call, check, "A0")
    found = [finding for finding in report.findings if finding.check == check and kind in finding.kind]
    assert found, str(report)
    assert found[0].script_status == "fails", str(report)


def test_audit_goes_on_after_a_broken_context() -> None:
    report = audited(backends.breaks_the_context, "A1", "A11")
    assert {outcome.check: outcome.status for outcome in report.outcomes} == {"A1": "does not hold", "A11": "holds"}, str(report)


def test_stale_rows_are_repaired() -> None:
    report = audited(backends.stale_rows, "A1")
    assert report.findings[0].repair and report.findings[0].repair["status"] == "gone", str(report)
