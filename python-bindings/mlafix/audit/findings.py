"""Defines the findings of an audit, which are passed between processes and stored in files."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

HOLDS, DOES_NOT, NOT_APPLICABLE, NOT_RUN = STATUSES = ("holds", "does not hold", "not applicable", "not run")
SEVERITIES = ("error", "warning")


@dataclass
class Finding:
    """A fault of a backend, with the smallest case that shows it."""

    check: str
    kind: str
    severity: str  # "error": wrong numbers, a crash or a hang; "warning": behaviour that a caller can work around
    expected: str
    got: str
    case: dict[str, Any]
    call: str = ""  # the case, written as a constructor call
    script: str = ""  # a script that shows the finding with torch and the backend; "" if the backend cannot be imported
    script_status: str = ""  # "fails" if the script showed the finding, else what it did instead
    reports: list[str] = field(default_factory=list)
    repair: dict[str, Any] | None = None  # the fields of Repaired; None if no repair was tried
    clauses: list[str] = field(default_factory=list)  # numbers of the broken clauses of docs/Contract.md
    origin: dict[str, Any] = field(default_factory=dict)  # the case in which the check found the fault, before shrinking
    origin_words: list[str] = field(default_factory=list)  # the expected and the actual value in the case `origin`
    waived: str = ""  # the reason why the finding does not count; "" if it counts

    @property
    def repair_words(self) -> str:
        """The repaired call, its status, and its cost if it was timed. "" if no repair was tried."""
        repair = self.repair
        if not repair or not repair["call"]:
            return ""
        cost = f", {repair['repair_us']:g} us on a call of {repair['backend_us']:g} us" if repair["backend_us"] else ""
        return f"{repair['call']}: {repair['status']}{cost}"


@dataclass
class Outcome:
    """The outcome of one check."""

    check: str
    title: str
    status: str
    why: str = ""
    cases: int = 0
    seconds: float = 0.0
    remarks: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    total: int = 0  # number of cases that the check has for this backend
    varied: dict[str, int] = field(default_factory=dict)  # number of cases run, by what varies among them
    clauses: list[str] = field(default_factory=list)

    @property
    def words(self) -> str:
        """The status. It includes the number of cases if only some of them were run."""
        return f"{self.status}, {self.cases} of {self.total} cases" if self.status == HOLDS and self.cases < self.total else self.status


def outcome_of(data: dict[str, Any]) -> Outcome:
    """Rebuilds an Outcome from the data that `asdict` returned. Ignores unknown fields of findings."""
    known = {one.name for one in fields(Finding)}
    findings = [Finding(**{name: value for name, value in one.items() if name in known}) for one in data["findings"]]
    return Outcome(**{**{one.name: data[one.name] for one in fields(Outcome) if one.name in data}, "findings": findings})
