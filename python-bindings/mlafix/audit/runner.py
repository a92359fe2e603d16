"""Runs an audit: gives jobs to the backend's process, and continues when that process dies."""

from __future__ import annotations

import dataclasses
import itertools
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import torch

from ..errors import ArgumentError
from . import machine
from .adapter import as_adapter, place_of
from .bundle import literal, script
from .cases import Adapter, Fault
from .checks import CHECKS
from .clauses import Claim
from .findings import DOES_NOT, NOT_RUN, Finding, Outcome, outcome_of
from .processes import INSIDE, Event, server, watched
from .progress import Progress
from .repair import Repaired, repair_for
from .report import Report
from .server import run_job
from .shrink import shrink
from .worker import Limits, finding_of, packed, unpacked

# After MOST_DEATHS deaths or MOST_HANGS hangs the audit gives up on a backend. Fewer hangs are allowed, because the
# audit waits for each until a time limit has passed.
MOST_DEATHS, MOST_HANGS = 6, 3
DEATHS = ("crash", "hang")  # kinds of findings in which the backend's process was killed or died
SHRINK_SECONDS = 2.0  # seconds to shrink a crash; each smaller case runs in its own process
PATIENCE = 10.0  # a call that seems to hang gets a second try in its own process, with at least this many seconds


def audit(backend: Adapter | Callable[..., Any], *, checks: Sequence[str] | None = None, limits: Limits | None = None, progress: bool | None = None,
          claim: Claim | None = None, **fields: Any) -> Report:
    """Runs the checks of docs/Audit.md on a backend of attention, of merges or of reduces.

    A function that can be imported runs in a separate process, so that a crash, a hang or a broken context becomes a
    finding. Other functions (closures, functions of a notebook) run in a fork of this process, or in this process itself
    once it has a CUDA context.

    Args:
        backend: a function with one of the signatures of docs/Audit.md, a class or an object with `run` (and `plan`, and
            `store`), or an Adapter.
        checks: numbers, such as ["A1", "A5"]; None is all.
        limits: how long checks and calls may take (`Limits`).
        progress: whether to show a bar on the standard error. None shows it if the standard error is a terminal.
        claim: the clauses of docs/Contract.md that the backend claims, and its exceptions with their reasons. Findings
            outside of the claim are shown but do not count. None claims all clauses.
        fields: fields of the adapter, such as dtype="bfloat16" or lse_base="2".

    Raises:
        ArgumentError: `backend` is no backend or cannot be imported, or a field or a check does not exist.
    """
    if INSIDE:
        raise ArgumentError("expected audit() below if __name__ == '__main__':, got a call while the module is imported")
    if claim and claim.names("C10"):
        fields = {"batch_invariant": True, **fields}
    adapter = as_adapter(backend, **fields)
    numbers = list(checks or CHECKS)
    if unknown := [number for number in numbers if number not in CHECKS]:
        raise ArgumentError(f"checks: expected some of {', '.join(CHECKS)}, got {unknown[0]!r}")
    begin = time.monotonic()
    run = Run(adapter, limits or Limits(), Progress(adapter.name, len(numbers), progress))
    outcomes = run.all_checks(numbers)
    run.progress.close()
    for finding in (finding for outcome in outcomes for finding in outcome.findings):
        finding.waived = claim.waives(finding) if claim else ""
    return Report(adapter.name, describe_adapter(adapter), machine.facts(adapter), outcomes, run.measured, round(time.monotonic() - begin, 2),
                  claim.to_dict() if claim else None)  # fmt: skip


def audit_matrix(backend: Adapter | Callable[..., Any], matrix: Mapping[str, Sequence[Any]], **options: Any) -> list[Report]:
    """Audits a backend for each combination of values of adapter fields, such as {"page_size": (16, 64), "dim": (64,
    128)}. The name of each report states its combination.

    The name "ratio" is also legal in `matrix`: the number of query heads for each head of keys. `options` are those of
    `audit`.
    """
    reports = []
    for values in itertools.product(*matrix.values()):
        chosen = dict(zip(matrix, values))
        fields = {name: value for name, value in chosen.items() if name != "ratio"}
        if "ratio" in chosen:
            adapter = as_adapter(backend, **{name: value for name, value in {**options, **fields}.items() if name in ADAPTER_FIELDS})
            fields["heads"] = chosen["ratio"] * adapter.kv_heads
        report = audit(backend, **{**options, **fields})
        report.backend = f"{report.backend}, {', '.join(f'{name} {value}' for name, value in chosen.items())}"
        reports.append(report)
    return reports


def findings_of(outcomes: Mapping[str, Outcome]) -> list[Finding]:
    return [finding for outcome in outcomes.values() for finding in outcome.findings]


def needs_earlier_calls(finding: Finding) -> bool:
    """True if a finding's script passes on its own. The fault then depends on earlier calls."""
    return finding.script_status == "passes" and finding.kind not in DEATHS


def names_earlier_calls(finding: Finding) -> bool:
    """True if a finding of A15 says that a result depends on earlier calls."""
    return ", after a call of " in finding.kind or finding.kind == "equal calls differ"


def describe_adapter(adapter: Adapter) -> dict[str, Any]:
    """Returns the fields of an adapter as data for JSON, without its function and its name."""
    values = {one.name: getattr(adapter, one.name) for one in dataclasses.fields(adapter) if one.name not in ("call", "name")}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


ADAPTER_FIELDS = {one.name for one in dataclasses.fields(Adapter)}


class Run:
    """Runs the jobs of one audit and collects the outcomes of its checks."""

    def __init__(self, adapter: Adapter, limits: Limits, progress: Progress) -> None:
        self.adapter, self.limits, self.progress = adapter, limits, progress
        self.place = place_of(adapter.call)
        self.measured: dict[str, Any] = {}
        self.deaths = self.hangs = 0
        self.is_repairable = True  # becomes False when a repaired backend crashes
        self.is_confirmed = False  # becomes True when a call that seemed to hang gets its second try

    def all_checks(self, numbers: Sequence[str]) -> list[Outcome]:
        """Runs checks and returns their outcomes in the order of `numbers`. If the backend's process dies, the
        remaining checks run in another process."""
        outcomes: dict[str, Outcome] = {}
        left, careful = list(numbers), {}
        while left:
            at: list[Any] = ["", {}]  # [check, case] of the last call, and "shrink" or "repair" if that was its purpose
            limits = replace(self.limits, **careful)
            wanted, careful = (left[:1] if careful else left), {}
            known = [(finding.kind, finding.check, finding.case) for finding in findings_of(outcomes) if finding.case]
            ended = self.job({"job": "checks", "checks": wanted, "limits": asdict(limits), "known": known}, lambda event: self.take(event, outcomes, at))
            left = [number for number in left if number not in outcomes]
            if not ended:
                continue
            # If the process died while it shrank a case, repeats the check without shrinking. If it died in a repair,
            # or if shrinking was off already, repeats the check without shrinking and without repairs.
            if at[2:] and (limits.shrink or limits.repair):
                careful = {"shrink": 0.0} if at[2] == "shrink" and limits.shrink else {"shrink": 0.0, "repair": 0.0}
                continue
            if not at[0]:
                raise ArgumentError(f"{self.adapter.name}: expected a backend that can be imported and called, got: {ended}")
            if ended.startswith("no answer") and at[1] and self.returns_in_time(at[0], at[1]):
                continue
            if at[0] in left:
                outcomes[at[0]] = self.death(at[0], at[1], ended)
                left.remove(at[0])
            self.deaths += 1
            if self.deaths == MOST_DEATHS or self.hangs == MOST_HANGS:
                outcomes |= {number: Outcome(number, CHECKS[number].title, NOT_RUN, "the backend died too often") for number in left}
                break
        self.run_scripts(outcomes)
        if any(needs_earlier_calls(finding) for finding in findings_of(outcomes)):
            self.tell_once(outcomes)
        for finding in findings_of(outcomes):
            if needs_earlier_calls(finding):
                finding.script_status = self.status_after_calls(finding)
        return [outcomes[number] for number in numbers if number in outcomes]

    def run_scripts(self, outcomes: Mapping[str, Outcome]) -> None:
        for finding in findings_of(outcomes):
            finding.script_status = self.script_status(finding)

    def tell_once(self, outcomes: dict[str, Outcome]) -> None:
        """Makes A15 the only check with findings about a dependence on earlier calls. In other checks, turns each
        finding whose script fails only after earlier calls into a remark.

        If A15 has no finding about earlier calls, runs A15 again without the known findings of other checks, since A15
        reports a fault with a known cause only as a remark. If A15 still has none, changes nothing.
        """
        if "A15" not in outcomes:
            return
        if not any(names_earlier_calls(finding) for finding in outcomes["A15"].findings):
            alone: dict[str, Outcome] = {}
            self.job({"job": "checks", "checks": ["A15"], "limits": asdict(self.limits), "known": []}, lambda event: self.take(event, alone, ["", {}]))
            self.run_scripts(alone)
            if not any(names_earlier_calls(finding) for finding in findings_of(alone)):
                return
            outcomes |= alone
        for outcome in outcomes.values():
            if outcome.check != "A15":
                outcome.remarks += [f"{finding.kind}, after earlier calls, as A15" for finding in outcome.findings if needs_earlier_calls(finding)]
                outcome.findings = [finding for finding in outcome.findings if not needs_earlier_calls(finding)]

    def returns_in_time(self, number: str, case: dict[str, Any]) -> bool:
        """Gives a call that seemed to hang a second try with more time. Returns True if the call returns now, for
        example because it only had to compile. All later calls then get this time, too. An audit makes only one such
        second try; for later calls that seem to hang, returns False at once."""
        patience = max(PATIENCE, 2 * self.limits.case)
        if self.is_confirmed:
            return False
        self.is_confirmed = True
        if self.job({"job": "case", "check": number, "case": case, "limit": patience}, lambda event: None):
            return False
        self.limits = replace(self.limits, case=patience)
        return True

    def take(self, event: Event, outcomes: dict[str, Outcome], at: list[Any]) -> None:
        """Processes an event of the backend's process: measured properties, the call that comes next (stored in `at`), or
        the outcome of a check (stored in `outcomes`)."""
        self.measured |= event.get("measured", {})
        if "at" in event:
            at[:] = event["at"]
            self.progress.at(at[0])
        if "outcome" in event:
            outcome = outcome_of(event["outcome"])
            outcomes[outcome.check] = outcome
            self.progress.done()

    def job(self, job: Event, on_event: Callable[[Event], None]) -> str:
        """Runs a job in a fork of the server if the backend can be imported there. Otherwise runs it in a fork of this
        process, or in this process once it has a CUDA context."""
        if self.place is not None:
            adapter = {"place": [*asdict(self.place).values()], "fields": {**describe_adapter(self.adapter), "name": self.adapter.name}}
            return server().run({**job, "path": sys.path, "adapter": adapter}, on_event)
        if self.adapter.device != "cpu" and torch.cuda.is_initialized():
            threads = torch.get_num_threads()
            try:
                run_job(job, self.adapter, on_event)
            finally:
                torch.set_num_threads(threads)
            return ""
        return watched(lambda emit: run_job(job, self.adapter, emit), on_event)

    def death(self, number: str, data: dict[str, Any], ended: str) -> Outcome:
        """Returns the outcome of a check in which the backend's process died or stopped answering."""
        check = CHECKS[number]
        outcome = Outcome(number, check.title, DOES_NOT, ended, clauses=list(check.clauses), total=len(check.cases(self.adapter)))
        fault = Fault("hang" if ended.startswith("no answer") else "crash", "a call that returns or raises", ended or "the end of the process")
        self.hangs += fault.kind == "hang"
        if not data:
            outcome.findings = [Finding(number, fault.kind, "error", fault.expected, fault.got, {}, clauses=list(check.clauses))]
            return outcome
        case = unpacked(data)
        if fault.kind == "crash" and self.limits.shrink:
            case = shrink(case, self.adapter, lambda smaller: self.dies(number, smaller), SHRINK_SECONDS)
        finding = finding_of(check, self.adapter, fault, case, died=True, seconds=self.limits.case)
        repair = repair_for(number, self.adapter, fault.kind, case)
        if repair is not None and self.is_repairable:
            answers: list[Event] = []
            died = self.job({"job": "repair", "check": number, "kind": fault.kind, "case": packed(case)}, answers.append)
            repaired = [event["repaired"] for event in answers if "repaired" in event]
            finding.repair = repaired[0] if repaired else asdict(Repaired(repair.text, f"still there: {died}"))
            self.is_repairable = bool(repaired)
        outcome.findings = [finding]
        self.progress.done()
        return outcome

    def dies(self, number: str, case: Any) -> bool:
        """True if the process that runs this case dies."""
        return self.job({"job": "case", "check": number, "case": packed(case), "limit": self.limits.case}, lambda event: None).startswith("the process died")

    def script_status(self, finding: Finding) -> str:
        """Runs a finding's script in its own process and returns its status.

        If the script of the smallest case passes, also runs a script of the case in which the check found the fault.
        If that one fails, it becomes the finding's script.
        """
        if not finding.script:
            return "not run: the backend cannot be imported" if finding.case else ""
        status = self.run_script(finding.script)
        return self.status_after(finding, ()) or status if status == "passes" and finding.kind not in DEATHS else status

    def status_after_calls(self, finding: Finding) -> str:
        """Runs a script that first makes the call of the preceding case, then a script that makes the calls of all
        preceding cases. Returns the status of the first script that fails."""
        cases, origin = CHECKS[finding.check].cases(self.adapter_of(finding)), unpacked(finding.origin)
        earlier = cases[: cases.index(origin)] if origin in cases else []
        for some in dict.fromkeys((tuple(earlier[-1:]), tuple(earlier))):
            if some and (status := self.status_after(finding, some)):
                return status
        return "passes: the fault needs earlier calls of the process, or does not come each time"

    def status_after(self, finding: Finding, earlier: Sequence[Any]) -> str:
        """Runs a script that makes the calls of the cases `earlier`, then that of the case in which the check found the
        fault. If the script fails, stores it in the finding and returns its status. Otherwise returns ""."""
        check, origin, count = CHECKS[finding.check], unpacked(finding.origin), len(earlier)
        after = f", after {count} earlier call{'s' if count > 1 else ''}" if count else ""
        text = script(check.faults(self.adapter), origin, self.adapter_of(finding), f"{finding.check}, {check.title}: {finding.kind}{after}", earlier=earlier)
        if self.run_script(text) != "fails":
            return ""
        finding.script, finding.case, finding.call = text, finding.origin, literal(origin)
        finding.expected, finding.got = finding.origin_words or (finding.expected, finding.got)
        return f"fails{after}"

    def adapter_of(self, finding: Finding) -> Adapter:
        return self.adapter if finding.check == "A5" else replace(self.adapter, **self.measured)

    def run_script(self, text: str) -> str:
        answers: list[Event] = []
        ended = server().run({"job": "script", "text": text, "path": sys.path, "limit": 3 * self.limits.case + 20}, answers.append)
        if ended or not answers:
            return ended or "not run: the script has no end"
        return "fails" if answers[-1]["exit"] == 1 else "passes"
