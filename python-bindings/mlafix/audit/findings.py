"""The findings of an audit: data that goes between processes and into files."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

HOLDS, DOES_NOT, NOT_APPLICABLE, NOT_RUN = STATUSES = ("holds", "does not hold", "not applicable", "not run")
SEVERITIES = ("error", "warning")


@dataclass
class Finding:
    """A fault of a backend, on the smallest case found."""

    check: str
    kind: str
    severity: str  # "error": wrong numbers, a crash or a hang; "warning": what a caller can live with, once it is known
    expected: str
    got: str
    case: dict[str, Any]
    call: str = ""  # the case as text
    script: str = ""  # shows the finding with torch and the backend; "": the backend cannot be imported
    script_status: str = ""  # "fails", as it must; else what it did
    reports: list[str] = field(default_factory=list)
    repair: dict[str, Any] | None = None  # fields of Repaired
    clauses: list[str] = field(default_factory=list)  # of docs/Contract.md
    origin: dict[str, Any] = field(default_factory=dict)  # the case of the check, before it was made smaller
    origin_words: list[str] = field(default_factory=list)  # what was expected and what was got there
    waived: str = ""  # why it is known and does not count


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
    total: int = 0  # the cases that the check has for this backend
    varied: dict[str, int] = field(default_factory=dict)  # how many cases were run, by what varies among them
    clauses: list[str] = field(default_factory=list)

    @property
    def words(self) -> str:
        """The status, with the number of cases if only a part of them was run."""
        return f"{self.status}, {self.cases} of {self.total} cases" if self.status == HOLDS and self.cases < self.total else self.status


def to_dict(instance: Any) -> dict[str, Any]:
    return asdict(instance)


def outcome_of(data: dict[str, Any]) -> Outcome:
    """The Outcome that `to_dict` made the data of. Unknown fields are ignored."""
    known = {one.name for one in fields(Finding)}
    findings = [Finding(**{name: value for name, value in one.items() if name in known}) for one in data["findings"]]
    return Outcome(**{**{one.name: data[one.name] for one in fields(Outcome) if one.name in data}, "findings": findings})
