"""The findings of an audit, as data that is passed between processes and stored in files."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

HOLDS, DOES_NOT, NOT_APPLICABLE, NOT_RUN = STATUSES = ("holds", "does not hold", "not applicable", "not run")
SEVERITIES = ("error", "warning")


@dataclass
class Finding:
    """A fault of a backend, for the smallest case found."""

    check: str
    kind: str
    severity: str  # "error": wrong numbers, a crash or a hang; "warning": behaviour that a caller can work around
    expected: str
    got: str
    case: dict[str, Any]
    call: str = ""  # the case as text
    script: str = ""  # shows the finding with torch and the backend; "" if the backend cannot be imported
    script_status: str = ""  # "fails" is the expected status; any other says what the script did
    reports: list[str] = field(default_factory=list)
    repair: dict[str, Any] | None = None  # fields of Repaired
    clauses: list[str] = field(default_factory=list)  # clauses of docs/Contract.md
    origin: dict[str, Any] = field(default_factory=dict)  # the check's case, before shrinking
    origin_words: list[str] = field(default_factory=list)  # the expected and actual values for `origin`
    waived: str = ""  # the reason if a waiver covers the finding, else ""


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
    total: int = 0  # the number of cases that the check has for this backend
    varied: dict[str, int] = field(default_factory=dict)  # the number of cases run, by what varies among them
    clauses: list[str] = field(default_factory=list)

    @property
    def words(self) -> str:
        """The status, with the number of cases if only some of them were run."""
        return f"{self.status}, {self.cases} of {self.total} cases" if self.status == HOLDS and self.cases < self.total else self.status


def to_dict(instance: Any) -> dict[str, Any]:
    return asdict(instance)


def outcome_of(data: dict[str, Any]) -> Outcome:
    """The Outcome whose data `to_dict` returned. Ignores unknown fields."""
    known = {one.name for one in fields(Finding)}
    findings = [Finding(**{name: value for name, value in one.items() if name in known}) for one in data["findings"]]
    return Outcome(**{**{one.name: data[one.name] for one in fields(Outcome) if one.name in data}, "findings": findings})
