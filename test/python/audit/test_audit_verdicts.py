"""Tests the verdicts of audits: which findings count, which are confirmed, and how causes are told apart. Also tests
the texts of claims and comparisons."""

from __future__ import annotations

import itertools
import json
import runpy
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import audit_backends  # noqa: E402
import audit_faults  # noqa: E402
import audit_odd_backends as odd  # noqa: E402
import audit_planted  # noqa: E402
from audit_forks import forked  # noqa: E402

import mlafix  # noqa: E402
from mlafix.__main__ import main  # noqa: E402
from mlafix.audit import Claim, Limits, Report, audit, audit_matrix, write_page  # noqa: E402
from mlafix.audit.adapter import as_adapter, place_of  # noqa: E402
from mlafix.audit.cases import Case, StateCase  # noqa: E402
from mlafix.audit.checks import CHECKS, earlier, fit  # noqa: E402
from mlafix.audit.clauses import clauses_of_case  # noqa: E402
from mlafix.audit.findings import DOES_NOT, HOLDS, Outcome  # noqa: E402
from mlafix.audit.processes import cpu_of, is_starved  # noqa: E402
from mlafix.audit.report import is_worse  # noqa: E402
from mlafix.audit.shrink import smaller_cases, smaller_states  # noqa: E402
from mlafix.audit.table import cell  # noqa: E402
from mlafix.audit.worker import Pace, contains  # noqa: E402

PATIENT = Limits(check=600.0, total=6000.0, case=120.0, first=600.0, shrink=0.2, repair=0.1)
RAGGED: dict[str, Any] = {"device": "cpu", "form": "ragged", "takes": ("out", "lse")}
HERE = Path(__file__).resolve().parent


def audited(backend: Any, *checks: str, limits: Limits = PATIENT, **fields: Any) -> Report:
    return audit(backend, checks=checks or None, limits=limits, progress=False, **{**RAGGED, **fields})


def statuses(report: Report) -> dict[str, str]:
    return {outcome.check: outcome.status for outcome in report.outcomes}


def test_finding_of_a_slow_backend_is_no_hang() -> None:
    """A slow backend that has a finding is not reported as hanging. The audit times calls of the repaired backend for
    half a second at most, even if this is too short for 20 calls."""
    limits = Limits(check=1.0, total=1.0, case=10.0, first=600.0, shrink=0.0)
    report = audited(odd.slow_and_stale, "A1", limits=limits)
    (finding,) = report.findings
    assert (finding.kind, finding.script_status, finding.repair and finding.repair["status"]) == ("rows without keys", "fails", "gone"), str(report)


def test_repair_that_dies_leaves_the_finding() -> None:
    report = audited(odd.slow_and_stale, "A1", limits=replace(PATIENT, repair=0.0, check=1.0, total=1.0, shrink=0.0))
    assert [(finding.kind, finding.repair) for finding in report.findings] == [("rows without keys", None)], str(report)


def test_call_that_compiles_is_no_hang() -> None:
    limits = Limits(check=600.0, total=6000.0, case=0.5, first=600.0, shrink=0.0)
    report = audited(odd.compiles, "A0", "A10", limits=limits, takes=(), head_counts=(24, 48), ratios=(3,))
    assert statuses(report) == {"A0": "holds", "A10": "holds"}, str(report)


def test_cases_of_latent_caches_keep_their_head_of_keys() -> None:
    adapter = as_adapter(audit_backends.latent, device="cpu")
    values_in_keys = replace(as_adapter(audit_backends.paged, device="cpu"), kv_heads=1, values_in_keys=True)
    for one in (adapter, values_in_keys):
        heads = {case.kv_heads for check in CHECKS.values() if not check.lacks(one) for case in check.cases(one)}
        assert heads == {1}, one.name


def test_adapter_that_does_not_fit_ends_the_audit_with_status_1() -> None:
    report = audited(odd.another_keyword, takes=())
    assert report.status == 1
    assert report.outcomes[0].why.startswith("the adapter does not fit: TypeError: another_keyword() got an unexpected keyword argument 'scale'")
    assert {outcome.why for outcome in report.outcomes[1:]} == {"A0 does not hold: the adapter does not fit"}


def test_check_that_holds_no_more_is_worse() -> None:
    """A report in which a check no longer holds is worse than the report before. This also applies to a check that has
    only a remark because an earlier check has the finding."""
    old = audited(audit_backends.ragged, "A0", "A8")
    lost = replace(old, outcomes=[old.outcomes[0], replace(old.outcomes[1], status=DOES_NOT, remarks=["live rows, as A4"])])
    assert is_worse(old, lost) and not is_worse(lost, old) and not is_worse(old, old)


def test_second_cause_of_a_kind_is_a_finding_of_its_own() -> None:
    report = audited(odd.two_faults, "A0", "A4", "A8", takes=())
    found = {finding.check: (finding.case["beyond"], finding.case["lengths"]) for finding in report.findings if finding.kind == "live rows"}
    assert found == {"A4": ("nan", "dense"), "A8": ("zero", "strided")}, str(report)
    assert {finding.check: finding.clauses for finding in report.findings} == {"A4": ["C4"], "A8": ["C9"]}


def test_second_cause_of_a_kind_in_one_check_is_a_finding_of_its_own() -> None:
    """Two options cause wrong live rows: windows, whose cases run first, and softcaps. Each cause is a finding."""
    report = audited(odd.two_options, "A0", "A14", takes=("window_size", "softcap"))
    needed = [(finding.case["window"] != [-1, -1], finding.case["softcap"] != 0) for finding in report.findings if finding.kind == "live rows"]
    assert (True, False) in needed and (False, True) in needed, str(report)


def test_dtype_of_the_lse_is_one_finding_and_hides_no_rows() -> None:
    report = audited(odd.lse_of_16_bits, "A0", "A1", takes=())
    assert [(finding.check, finding.kind) for finding in report.findings] == [
        ("A0", "dtype of the lse"), ("A1", "rows without keys")], str(report)  # fmt: skip
    assert report.outcomes[1].remarks == ["dtype of the lse, as A0"], str(report)


def test_cause_of_some_lengths_hides_none_of_other_lengths() -> None:
    report = audited(odd.two_lengths, "A0", "A4", "A13", form="paged")
    assert [(finding.check, finding.kind, max(finding.case["kv_lens"])) for finding in report.findings] == [
        ("A4", "live rows", 16), ("A13", "live rows", 65)], str(report)  # fmt: skip


@pytest.mark.parametrize("changes, clauses", [
    ({"beyond": "nan", "pad_rows": 3}, ["C4"]), ({"layout": "odd"}, ["C9"]), ({"window": (1, 0), "causal": True}, ["C13"]), ({"scale": 0.0}, ["C14"]),
    ({"num_splits": 3}, ["C18"]), ({}, []),
])  # fmt: skip
def test_wrong_live_rows_break_the_clause_of_what_they_need(changes: dict[str, Any], clauses: list[str]) -> None:
    """Wrong live rows break the clause about the option that the finding's case has, such as a window. If the case has
    NaN past the keys, they break C4, whichever check finds them."""
    assert clauses_of_case("live rows", Case(**changes)) == clauses
    assert clauses_of_case("rows without keys", Case(**changes)) == []


def test_one_cause_is_told_once() -> None:
    """A cause is reported once. The process that continues after a crash does not report it again either."""
    report = audited(odd.stale_and_crashes, "A0", "A1", "A10", "A4", "A5")
    assert [(finding.check, finding.kind) for finding in report.findings] == [("A1", "rows without keys"), ("A10", "crash")], str(report)
    assert [outcome.remarks for outcome in report.outcomes[3:]] == [["rows without keys, as A1"]] * 2


@pytest.mark.parametrize("smallest, case, contained", [
    (Case(beyond="nan"), Case(beyond="nan", causal=True), True),
    (Case(beyond="nan"), Case(lengths="strided"), False),
    (Case(kv_lens=(69,)), Case(kv_lens=(5, 9, 4)), False),
    (Case(kv_lens=(1,), q_lens=(1,)), Case(), True),
    (Case(kv_lens=(0,), q_lens=(1,), heads=1, kv_heads=1), Case(), False),
    (Case(heads=3, kv_heads=1), Case(), False),
    (Case(heads=3, kv_heads=1), Case(heads=6, kv_heads=2), True),
])  # fmt: skip
def test_causes_are_compared_by_what_the_smallest_case_needs(smallest: Case, case: Case, contained: bool) -> None:
    assert contains(case, smallest) == contained


def test_backend_that_returns_no_lse_does_not_hold_what_is_about_it() -> None:
    report = audited(odd.without_lse, "A5", "A6", takes=())
    assert {(finding.check, finding.kind) for finding in report.findings} == {("A5", "no lse")}, str(report)
    assert statuses(report) == {"A5": "does not hold", "A6": "does not hold"}


def test_paths_of_a_backend_without_an_lse_are_checked() -> None:
    right = audited(odd.without_lse, "A5", "A6", takes=("sinks",), returns_lse=False)
    assert statuses(right) == {"A5": "holds", "A6": "not applicable"}, str(right)
    report = audited(odd.without_lse_and_sinks, "A5", takes=("sinks",), returns_lse=False)
    assert [finding.kind for finding in report.findings] == ["sinks are ignored"], str(report)


def test_wrong_layout_is_one_finding() -> None:
    report = audited(odd.heads_first_in_out, "A0", "A1", "A5")
    assert [(finding.check, finding.kind) for finding in report.findings if not finding.kind.startswith("raises")] == [("A5", "layout of the lse")], str(report)
    assert statuses(report) == {"A0": "holds", "A1": "holds", "A5": "does not hold"}, str(report)


def test_fault_that_needs_earlier_calls_has_a_script_with_them() -> None:
    report = audited(odd.fails_after_small, "A13", takes=(), limits=replace(PATIENT, shrink=0.0))
    finding = next(finding for finding in report.findings if finding.kind == "live rows")
    assert finding.script_status.startswith("fails, after "), str(report)
    assert "EARLIER = [Case(" in finding.script


@pytest.mark.parametrize("backend, check, kind", [
    (odd.plan_of_the_first, "A15", "live rows, after a call of other lengths"),
    (odd.leaks, "A15", "memory grows with each call"),
    (odd.ignores_out, "A5", "a given out is not written"),
])  # fmt: skip
def test_fault_of_more_than_one_call_is_found(backend: Any, check: str, kind: str) -> None:
    report = audited(backend, check)
    found = {finding.kind: finding.script_status for finding in report.findings}
    assert found.get(kind) == "fails", str(report)


def test_fault_of_earlier_calls_is_told_once_and_by_its_check() -> None:
    """Rows without keys are wrong only after a call in which the same requests had keys. A15 reports this. A1 does not,
    since a script that makes only A1's call passes."""
    fault = audit_planted.PLANTED["lengths_of_the_first_call"]
    report = audited(fault.call, "A1", "A15", **fault.fields)
    assert {finding.check for finding in report.findings} == {"A15"}, str(report)
    assert all(finding.script_status == "fails" and ", after a call of other lengths" in finding.kind for finding in report.findings), str(report)
    assert statuses(report)["A1"] == "does not hold" and all(remark.endswith(", after earlier calls, as A15") for remark in report.outcomes[0].remarks)


def test_every_rank_has_the_lse() -> None:
    report = audit(odd.lse_of_other_ranks, device="cpu", checks=["A0"], limits=PATIENT, progress=False)
    assert [finding.kind for finding in report.findings] == ["the ranks' lses differ"], str(report)


def test_causal_mask_of_one_query_hides_nothing() -> None:
    report = audit(odd.causal_decode, device="cpu", form="dense", takes=("seq_lens_k",), checks=["A5"], limits=PATIENT, progress=False)
    assert [finding.kind for finding in report.findings] == ["live rows"], str(report)
    assert report.findings[0].case["causal"]


def test_check_of_a_part_of_its_cases_says_so() -> None:
    report = audited(audit_backends.ragged, "A1", limits=replace(PATIENT, check=0.0))
    assert report.outcomes[0].words == "holds, 1 of 21 cases"
    assert cell(report.outcomes[0]) == "holds, 1 of 21"
    assert "holds           1 of 21 cases in 0 s" in str(report)
    assert ">part</td>" in write_page([report, report])


def test_large_cases_are_left_out_where_calls_are_slow() -> None:
    pace = Pace()
    pace.took(Case(), 0.1)
    assert pace.expects(Case()) == pytest.approx(0.1)
    assert pace.expects(Case(q_lens=(1000,), kv_lens=(1000,))) > 10
    assert pace.expects(Case(q_lens=(1,) * 300, kv_lens=(3,) * 300)) > 5, "a loop over sequences"


def test_method_is_audited_with_its_object(tmp_path: Path) -> None:
    assert place_of(odd.Layer().attention) is None
    assert place_of(odd.compiles)
    (tmp_path / "own.py").write_text(
        f"import sys\nsys.path.insert(0, {str(HERE)!r})\nimport audit_odd_backends\nfrom mlafix.audit import audit\n"
        "class Layer(audit_odd_backends.Layer):\n    def attention(self, *a, cu_seqlens_q, cu_seqlens_k, causal, scale):\n"
        "        return super().attention(*a, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, causal=causal, scale=scale)\n"
        "if __name__ == '__main__':\n    print(audit(Layer().attention, device='cpu', checks=['A0', 'A1'], progress=False).summary())\n"
    )
    _, text = forked(lambda: runpy.run_path(str(tmp_path / "own.py"), run_name="__main__"), tmp_path / "output")
    assert "2 of 2 checks hold" in text, text


CLAIM = {"contract": "1.0", "clauses": ["C1", "C8", "C9"], "exceptions": [{"clause": "C1", "kind": "rows without keys", "reason": "the caller blanks them"}]}


def test_claim_is_confirmed_refuted_or_excepted(tmp_path: Path) -> None:
    claimed = {"clauses": ["C1", "C8", "C7"]}
    report = audited(audit_faults.stale_rows, "A0", "A1", "A3", claim=Claim.from_json(json.dumps(claimed)))
    assert report.claims() == {"C1": "refuted", "C8": "confirmed", "C7": "not measured"}
    assert report.status == 1 and "C1 Rows without keys: claimed, refuted" in str(report)
    excepted = audited(audit_faults.stale_rows, "A0", "A1", claim=Claim.from_json(json.dumps(CLAIM)))
    assert excepted.claims() == {"C1": "confirmed with exceptions", "C8": "confirmed", "C9": "confirmed"}
    assert excepted.status == 0 and "waived   the caller blanks them" in str(excepted)
    assert Report.from_json(excepted.to_json()) == excepted
    assert ">waived</td>" in write_page([excepted, report])
    assert ">no</td>" not in write_page([audited(audit_faults.stale_rows, "A1", "A4", claim=Claim.from_json(json.dumps(CLAIM)))] * 2), "A4 is as A1"
    narrow = {**CLAIM, "clauses": ["C8"], "exceptions": []}
    assert audited(audit_faults.stale_rows, "A0", "A1", claim=Claim.from_json(json.dumps(narrow))).status == 0, "C1 is not claimed"


def test_exception_that_covers_nothing_is_named() -> None:
    claim = Claim.from_json(json.dumps({"exceptions": [{"check": "A1", "case": {"layout": "heads"}, "reason": "issue 12"}]}))
    report = audited(audit_faults.stale_rows, "A0", "A1", claim=claim)
    assert report.status == 1 and "no finding for an exception: issue 12" in str(report)


def test_claim_of_bits_makes_them_errors() -> None:
    report = audited(audit_faults.bits_of_the_batch, "A9", claim=Claim.from_json('{"clauses": ["C10"]}'))
    assert report.claims() == {"C10": "refuted"} and report.status == 1, str(report)


@pytest.mark.parametrize("text, message", [
    ('["C1"]', "^claim: expected a JSON object, got list"),
    ('{"clauses": ["C99"]}', "^claim: expected clauses of docs/Contract.md, got 'C99'"),
    ('{"contract": "0.9"}', "^claim: expected version 1.0 of the contract, got '0.9'"),
    ('{"waivers": []}', "^claim: expected one of the keys clauses, exceptions, contract, backend, got the key 'waivers'"),
    ('{"exceptions": [{"check": "A1"}]}', 'in each exception, got {"check": "A1"}'),
    ('{"exceptions": ["A1"]}', '^claim: expected the JSON of an object with "clauses" and "exceptions", each exception with "reason" and .*, got TypeError'),
    ('{"exceptions": [{"check": "A1", "reason": ""}]}', 'in each exception, got {"check": "A1"}'),
    ('{"exceptions": [{"reason": "so"}]}', 'expected a "reason" and a "check", "clause" or "kind" in each exception, got {"reason": "so"}'),
])  # fmt: skip
def test_claims_that_make_no_sense_are_refused(text: str, message: str) -> None:
    with pytest.raises(mlafix.ArgumentError, match=message):
        Claim.from_json(text)


def test_matrix_is_an_audit_of_each_combination() -> None:
    reports = audit_matrix(audit_backends.paged, {"page_size": (8, 32), "ratio": (1, 3)}, device="cpu", checks=["A0"], progress=False)
    assert [report.backend for report in reports] == [f"paged, page_size {size}, ratio {ratio}" for size in (8, 32) for ratio in (1, 3)]
    assert [(report.adapter["page_size"], report.adapter["heads"]) for report in reports] == [(8, 2), (8, 6), (32, 2), (32, 6)]
    assert all(report.status == 0 for report in reports)


def test_command_takes_claims_matrices_and_limits(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    (tmp_path / "claim.json").write_text(json.dumps(CLAIM))
    given = ["audit", "audit_faults:stale_rows", "--device", "cpu", "--check", "A1", "--set", "form=ragged", "--set", "takes=out,lse", "--limit", "total=100"]
    assert main([*given, "--claim", str(tmp_path / "claim.json")]) == 0
    assert main([*given, "--matrix", "dim=16,32", "--json", str(tmp_path / "cards")]) == 1
    assert len(list((tmp_path / "cards").iterdir())) == 2
    assert "stale_rows, dim 16: 0 of 1 checks hold" in capsys.readouterr().out
    assert main([*given, "--limit", "patience=1"]) == 1
    assert "--limit: expected NAME=SECONDS with one of check, total, case" in capsys.readouterr().err


def test_all_masks_are_causal_where_a_backend_has_no_others() -> None:
    adapter = replace(as_adapter(audit_backends.ragged, device="cpu"), causal="always")
    cases = [case for check in CHECKS.values() if not check.lacks(adapter) for case in check.cases(adapter)]
    assert all(case.causal for case in cases)
    assert fit(Case(causal=False), adapter) == Case(causal=True)


def test_script_of_an_outcome_without_cases_needs_none() -> None:
    assert Outcome("A1", "", HOLDS).words == "holds"


def run_pytest(folder: Path, body: str) -> str:
    (folder / "conftest.py").write_text(f'import sys\nsys.path.insert(0, {str(HERE)!r})\npytest_plugins = ["mlafix.audit.pytest_plugin"]\n')
    (folder / "test_mine.py").write_text("import pytest, audit_backends, audit_faults\n" + body)
    return forked(lambda: pytest.main(["-q", "-rsw", "-W", "always", "-p", "no:cacheprovider", str(folder)]), folder / "output")[1]


def test_plugin_makes_a_test_of_each_check_and_fails_for_errors_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = run_pytest(tmp_path, (
        "from mlafix.audit import Claim, Limits\nQUICK = Limits(shrink=0.1, repair=0.1)\n"
        "@pytest.mark.mlafix_audit(audit_backends.ragged, checks=['A0', 'A11'], device='cpu')\n"
        "def test_right(mlafix_audit):\n    assert mlafix_audit.status == 'holds'\n"
        "@pytest.mark.mlafix_audit(backend=audit_faults.zero_init_removed, checks=['A3'], device='cpu', limits=QUICK, form='ragged', takes=())\n"
        "def test_warning(mlafix_audit):\n    pass\n"
        "@pytest.mark.mlafix_audit(backend=audit_faults.bits_of_the_batch, checks=['A9'], device='cpu', limits=QUICK, form='ragged', takes=())\n"
        "def test_note(mlafix_audit):\n    pass\n"
        "@pytest.mark.mlafix_audit(backend=audit_faults.stale_rows, checks=['A1'], device='cpu', limits=QUICK, form='ragged', takes=(),\n"
        "                          claim=Claim.from_json('{\"exceptions\": [{\"check\": \"A1\", \"reason\": \"known\"}]}'))\n"
        "def test_waived(mlafix_audit):\n    pass\n"
        "@pytest.mark.mlafix_audit(backend=audit_faults.stale_rows, checks=['A1'], device='cpu', limits=QUICK, form='ragged', takes=())\n"
        "def test_error(mlafix_audit):\n    pass\n"))  # fmt: skip
    assert "1 failed, 4 passed, 1 skipped, 1 warning" in text, text
    for words in ("A1 error: rows without keys", "A3 warning: padded rows are uninitialised memory", "not applicable: no block table in this form"):
        assert words in text, text


def test_process_that_has_no_time_to_run_is_no_hang() -> None:
    """A process that gets little CPU time on a busy machine is not reported as hanging. A process that sleeps is."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        while cpu_of(busy.pid)[1] < 0.05 or cpu_of(child.pid)[0] != "S":
            time.sleep(0.01)
        assert not is_starved(child.pid, 0.0, 1000.0)
        assert is_starved(busy.pid, 0.0, 1000.0)
        assert not is_starved(busy.pid, 0.0, 0.05)
    finally:
        for process in (child, busy):
            process.kill()
            process.wait()


def test_many_sequences_are_halved_first() -> None:
    case = Case(q_lens=(1,) * 1030, kv_lens=(3,) * 1030)
    assert [len(one.q_lens) for one in itertools.islice(smaller_cases(case), 3)] == [515, 515, 1029]


def test_smaller_merges_have_no_states_of_parts_that_are_gone() -> None:
    case = StateCase(parts=3, empty=((0, 1), (2, 0)), nan_lse=((1, 1), (2, 3)))
    smaller = list(smaller_states(case))
    assert all(part < one.parts for one in smaller for part, _ in (*one.empty, *one.nan_lse))
    assert smaller[0] == StateCase(parts=2, empty=((0, 1),), nan_lse=((1, 1),))


def test_fields_that_a_fault_does_not_need_are_reset() -> None:
    """Otherwise a finding would not cover later cases with the same fault, which have the fields' defaults."""
    assert Case(pad_requests=2) in smaller_cases(Case(pad_requests=2, pad_length=-1))
    assert StateCase(nan_lse=((1, 0),)) in smaller_states(StateCase(nan_lse=((0, 2), (1, 0))))


def test_memory_in_use_is_counted_in_pages_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getpagesize", lambda: 1 << 40)
    assert earlier.in_use("cpu")[0] > 1 << 40
