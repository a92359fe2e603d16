"""Each planted fault is found by its check, in every form. Correct backends in other styles have no findings.

Cases run in this process, and all backends share the references of the cases. For a planted fault, the smallest cases
run first. For a correct backend, only some cases run. With MLAFIX_TEST_AUDIT=whole, each backend is audited as users do
it: in a process of its own, with all cases and the default limits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import audit_backends  # noqa: E402
from audit_planted import PLANTED, Planted  # noqa: E402
from audit_styles import RIGHT  # noqa: E402

from mlafix.audit import CHECKS, Adapter, Case, Fault, audit, judge  # noqa: E402
from mlafix.audit.adapter import as_adapter  # noqa: E402
from mlafix.audit.attempt import attempt  # noqa: E402
from mlafix.audit.checks import Check  # noqa: E402
from mlafix.audit.findings import DOES_NOT  # noqa: E402
from mlafix.audit.worker import work_of  # noqa: E402

WHOLE = os.environ.get("MLAFIX_TEST_AUDIT") == "whole"
# The only checks that run for reduces: each case forks a process for each rank, so more checks would take too long.
OF_REDUCES = ("A0", "A1", "A6", "A15")
PART = 16  # a correct backend runs the first case of each group, and then every PART-th case


@pytest.fixture(scope="module", autouse=True)
def shared_references() -> Iterator[None]:
    """Computes the reference of each case only once for all backends."""
    before, threads = judge.numbers, torch.get_num_threads()
    torch.set_num_threads(1)
    judge.numbers = lru_cache(maxsize=None)(before.__wrapped__)
    yield
    judge.numbers = before
    torch.set_num_threads(threads)


def is_small(case: Any) -> bool:
    """Returns true if a loop in Python runs the case in a few milliseconds."""
    return work_of(case) < 1 << 22 and (not isinstance(case, Case) or len(case.q_lens) <= 40 and sum(case.q_lens) <= 300)


def faults_of(check: Check, adapter: Adapter, case: Any) -> list[Fault]:
    """Returns the faults that are not notes. If the backend raises an error, and the check allows backends to refuse
    the case, returns none."""
    found = [fault for fault in attempt(check.faults(adapter), case, adapter) if fault.severity != "note"]
    return [] if found and found[0].kind.startswith("raises") and check.may_refuse(case, adapter) else found


def is_planted(found: Fault, fault: Planted) -> bool:
    """Returns true if a found fault is the planted one. An exception is not, unless the planted kind names it: the code
    of the fault may have an error of its own."""
    return fault.kind in found.kind and (fault.kind.startswith("raises") or not found.kind.startswith("raises"))


def test_faults_are_of_all_forms() -> None:
    forms = {one.fields["form"] for one in PLANTED.values()}
    assert forms == {"ragged", "dense", "paged", "ragged_paged", "merge", "reduce"}
    assert {f"A{number}" for number in range(18)} - {one.check for one in PLANTED.values()} == {"A7", "A9", "A12"}, "of GPUs, and of claims"


@pytest.mark.parametrize("name", PLANTED)
def test_planted_fault_is_found_by_its_check(name: str) -> None:
    fault = PLANTED[name]
    adapter, check = as_adapter(fault.call, device="cpu", **fault.fields), CHECKS[fault.check]
    if WHOLE:
        is_found_by_an_audit(adapter, fault)
        return
    seen: list[Any] = []
    for case in sorted(check.cases(adapter), key=work_of):
        seen += faults_of(check, adapter, case)
        if any(is_planted(one, fault) for one in seen):
            return
    pytest.fail(f"expected {fault.kind or 'a fault'} in {fault.check}, got {seen[:3] or 'none'}")


def is_found_by_an_audit(adapter: Adapter, fault: Planted) -> None:
    """Asserts that the fault's check does not hold, and that the check has a finding, or a remark that names an earlier
    check with the same cause."""
    report = audit(adapter, progress=False)
    print(f"\n{report.seconds:.1f} s, {report.summary()}")
    (outcome,) = [outcome for outcome in report.outcomes if outcome.check == fault.check]
    assert (report.status, outcome.status) == (1, DOES_NOT), str(report)
    assert outcome.findings or any(", as A" in remark for remark in outcome.remarks), str(report)


BACKENDS: dict[str, tuple[Any, dict[str, Any]]] = {
    **RIGHT,
    "all options": (audit_backends.ragged_with_options, {}),
    "dense": (audit_backends.dense, {}),
    "paged": (audit_backends.paged, {}),
    "queries over pages": (audit_backends.ragged_paged, {}),
    "queries over pages of fp8": (audit_backends.ragged_paged, {"kv_dtype": "float8_e4m3fn"}),
    "latent cache of fp8": (audit_backends.latent, {"kv_dtype": "float8_e4m3fn"}),
    "keys of 192, values of 128": (audit_backends.ragged, {"dim": 192, "value_dim": 128}),
    "merge": (audit_backends.merge, {}),
}


@pytest.mark.parametrize("name", BACKENDS)
def test_right_backend_has_no_fault(name: str) -> None:
    backend, fields = BACKENDS[name]
    adapter = as_adapter(backend, device="cpu", **fields)
    if WHOLE:
        report = audit(adapter, progress=False)
        print(f"\n{report.seconds:.1f} s, {report.summary()}")
        assert not report.findings, str(report)
        return
    ran = 0
    for check in CHECKS.values():
        if check.lacks(adapter) or check.needs_gpu or adapter.form == "reduce" and check.number not in OF_REDUCES:
            continue
        for cases in check.groups(adapter).values():
            small = [case for case in cases if is_small(case)]
            for case in small[:1] if adapter.form == "reduce" else small[::PART]:
                assert not faults_of(check, adapter, case), (check.number, case, faults_of(check, adapter, case))
                ran += 1
    assert ran >= (9 if adapter.form == "reduce" else 15)
