"""Holds the result of an audit, and writes it as a card for people, as JSON with a schema, or as one line. Compares two
results."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from textwrap import shorten
from typing import Any

from ..errors import ArgumentError
from .clauses import CLAUSES, CONTRACT, Waiver
from .findings import DOES_NOT, HOLDS, NOT_RUN, SEVERITIES, STATUSES, Finding, Outcome, outcome_of

VERSION = 1


@dataclass
class Report:
    """The result of an audit of one backend."""

    backend: str
    adapter: dict[str, Any]
    machine: dict[str, str]
    outcomes: list[Outcome]
    measured: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    claim: dict[str, Any] | None = None  # data of `Claim.to_dict`; None if the audit got no claim

    @property
    def findings(self) -> list[Finding]:
        """The findings of all checks, in the order of the checks."""
        return [finding for outcome in self.outcomes for finding in outcome.findings]

    @property
    def status(self) -> int:
        """The exit status: 1 or 0. Only findings that are not waived count. The status is 1 if there is an error, if
        the plain call A0 has a finding, or if there is any finding and no check holds."""
        plain = [outcome for outcome in self.outcomes if outcome.check == "A0" and outcome.status == DOES_NOT]
        counted = [finding for finding in self.findings if not finding.waived]
        is_bad = any(finding.severity == "error" for finding in counted) or any(finding in counted for outcome in plain for finding in outcome.findings)
        held = [outcome for outcome in self.outcomes if outcome.status == HOLDS]
        return int(is_bad or (bool(counted) and not held))

    @property
    def cases(self) -> int:
        """The number of cases that were run."""
        return sum(outcome.cases for outcome in self.outcomes)

    @property
    def is_part(self) -> bool:
        """True if a claim lists some of the clauses but not all."""
        return self.claim is not None and set(self.claim["clauses"]) != set(CLAUSES)

    def claims(self) -> dict[str, str]:
        """Returns the verdict on each claimed clause: "confirmed", "confirmed with exceptions", "refuted" or "not
        measured"."""
        if self.claim is None:
            return {}
        found: dict[str, str] = {}
        for clause in self.claim["clauses"]:
            own = [outcome for outcome in self.outcomes if clause in outcome.clauses and outcome.status in (HOLDS, DOES_NOT)]
            about = [finding for finding in self.findings if clause in finding.clauses and finding.severity == "error"]
            broken = any(not finding.waived for finding in about)
            found[clause] = "refuted" if broken else "not measured" if not own else "confirmed with exceptions" if about else "confirmed"
        return found

    def unused(self) -> list[str]:
        """Returns the reasons of claimed exceptions that match no finding: their fault is repaired or was not
        measured."""
        exceptions = [Waiver(**one) for one in (self.claim or {}).get("exceptions", ())]
        return [one.reason for one in exceptions if not any(one.covers(finding) for finding in self.findings)]

    def summary(self) -> str:
        """Returns the result as one line, for a badge."""
        run = [outcome for outcome in self.outcomes if outcome.status in (HOLDS, DOES_NOT)]
        bad = [outcome.check for outcome in run if outcome.status == DOES_NOT]
        where = self.machine.get("gpu") or "CPU"
        failed = f"; {', '.join(bad)} {'does' if len(bad) == 1 else 'do'} not" if bad else ""
        return f"{self.backend}: {len(run) - len(bad)} of {len(run)} checks hold{failed} ({self.adapter['dtype']}, torch {self.machine['torch']}, {where})"

    def __str__(self) -> str:
        """Returns the capability card: a line for each check, then the findings."""
        lines = [self.summary(), ""]
        for outcome in self.outcomes:
            about = "; ".join(dict.fromkeys(part for part in (outcome.why, words(outcome)) if part))
            lines.append(f"{outcome.check:4} {outcome.title:62} {outcome.status:15} {about}".rstrip())
        for finding in self.findings:
            lines += ["", *finding_lines(finding)]
        for outcome in self.outcomes:
            lines += [f"{outcome.check}: {remark}" for remark in outcome.remarks]
        lines += [f"{clause} {CLAUSES[clause]}: claimed, {status}" for clause, status in self.claims().items()] if self.is_part else []
        lines += [f"no finding for an exception: {reason}" for reason in self.unused()]
        lines += ["", ", ".join(f"{name} {value}" for name, value in self.machine.items()) + f"; {self.cases} cases in {self.seconds:.1f} s"]
        return "\n".join(lines)

    def to_json(self, scripts: bool = True) -> str:
        """Returns JSON with a line for each check. `from_json` reads it, and `SCHEMA` describes its format. If
        `scripts` is false, the scripts of findings are left out."""
        data: dict[str, Any] = {"version": VERSION, "backend": self.backend, "summary": self.summary(), "adapter": self.adapter, "machine": self.machine,
                "measured": self.measured, "seconds": self.seconds, "cases": self.cases, "contract": CONTRACT, "claim": self.claim,
                "claims": self.claims(), "outcomes": [asdict(outcome) for outcome in self.outcomes]}  # fmt: skip
        if not scripts:
            for finding in (finding for outcome in data["outcomes"] for finding in outcome["findings"]):
                finding["script"] = ""
        outcomes = ",\n".join(f"  {json.dumps(outcome, allow_nan=False)}" for outcome in data.pop("outcomes"))
        head = "".join(f" {json.dumps(name)}: {json.dumps(value, allow_nan=False)},\n" for name, value in data.items())
        return f'{{\n{head} "outcomes": [\n{outcomes}\n ]\n}}\n'

    @staticmethod
    def from_json(text: str) -> Report:
        """Reads the JSON that `to_json` wrote. Raises ArgumentError if the text has another format or version."""
        try:
            data = json.loads(text)
            if data["version"] != VERSION:
                raise ArgumentError(f"expected a report of version {VERSION}, got {data['version']!r}")
            given = {one.name: data[one.name] for one in fields(Report) if one.name not in ("outcomes", "claim")}
            given["claim"] = data.get("claim")
            return Report(**given, outcomes=[outcome_of(one) for one in data["outcomes"]])
        except ArgumentError:  # ArgumentError is a ValueError, which the next clause would catch
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise ArgumentError(f"expected the JSON of a report, got {type(error).__name__}: {error}") from error


def words(outcome: Outcome) -> str:
    """Returns the words that describe an outcome on the card: the kinds of its findings, else its first remark."""
    kinds = [finding.kind for finding in outcome.findings]
    if kinds:
        return shorten("; ".join(kinds), 100, placeholder=" …")
    return shorten(outcome.remarks[0], 100, placeholder=" …") if outcome.remarks else ""


def finding_lines(finding: Finding) -> list[str]:
    """Returns the lines that describe a finding on the card."""
    clauses = f" ({', '.join(finding.clauses)})" if finding.clauses else ""
    lines = [f"{finding.check} {finding.severity}: {finding.kind}{clauses}", f"  expected {finding.expected}", f"  got      {finding.got}"]
    if finding.waived:
        lines.append(f"  waived   {finding.waived}")
    if finding.call:
        lines.append(f"  in       {finding.call}")
    if finding.repair_words:
        lines.append(f"  repair   {finding.repair_words}")
    if finding.script_status:
        lines.append(f"  script   {finding.script_status}")
    if finding.reports:
        lines.append(f"  as in    {', '.join(finding.reports[:4])}")
    return lines


def compare(old: Report, new: Report) -> list[str]:
    """Returns the differences between two reports of a backend, one per line."""
    lines = []
    for name in sorted({*old.machine, *new.machine}):
        before, after = old.machine.get(name, "none"), new.machine.get(name, "none")
        lines += [f"{name}: {before}, now {after}"] if before != after else []
    befores = {outcome.check: outcome for outcome in old.outcomes}
    afters = {outcome.check: outcome for outcome in new.outcomes}
    for check in dict.fromkeys([*befores, *afters]):
        old_one, new_one = befores.get(check), afters.get(check)
        was, now = old_one.status if old_one else NOT_RUN, new_one.status if new_one else NOT_RUN
        if was != now:
            lines.append(f"{check}: {was}, now {now}")
        kinds = [{finding.kind for finding in one.findings} if one else set() for one in (old_one, new_one)]
        lines += [f"{check}: new finding: {kind}" for kind in sorted(kinds[1] - kinds[0])]
        lines += [f"{check}: finding gone: {kind}" for kind in sorted(kinds[0] - kinds[1])] if new_one else []
    return lines


def is_worse(old: Report, new: Report) -> bool:
    """True if a check held before and fails now, or if there is a new finding. Findings that are waived in `new` do
    not count."""
    held = {outcome.check for outcome in old.outcomes if outcome.status == HOLDS}
    lost = [outcome for outcome in new.outcomes if outcome.check in held and outcome.status == DOES_NOT]
    known = {(finding.check, finding.kind) for finding in old.findings}
    counted = [finding for finding in new.findings if not finding.waived]
    return (any(not outcome.findings or any(finding in counted for finding in outcome.findings) for outcome in lost)
            or any((finding.check, finding.kind) not in known for finding in counted))  # fmt: skip


_TYPES: dict[str, dict[str, Any]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "list[str]": {"type": "array", "items": {"type": "string"}},
    "dict[str, str]": {"type": "object", "additionalProperties": {"type": "string"}},
    "dict[str, int]": {"type": "object", "additionalProperties": {"type": "integer"}},
    "dict[str, Any]": {"type": "object"},
}


def _schema_of(kind: Any, **special: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of a dataclass as JSON. `special` has the schemas of fields whose types do not say everything."""
    properties = {one.name: special[one.name] if one.name in special else _TYPES[str(one.type)] for one in fields(kind)}
    return {"type": "object", "required": list(properties), "properties": properties}


_FINDING = _schema_of(
    Finding,
    severity={"enum": list(SEVERITIES)},
    repair={"anyOf": [{"type": "null"}, {"type": "object", "required": ["call", "status", "backend_us", "repair_us"]}]},
)
_OUTCOME = _schema_of(
    Outcome,
    check={"type": "string", "pattern": "^A[0-9]+$"},
    status={"enum": list(STATUSES)},
    findings={"type": "array", "items": _FINDING},
)
_REPORT = {
    "version": {"const": VERSION},
    "backend": _TYPES["str"],
    "summary": _TYPES["str"],
    "adapter": _TYPES["dict[str, Any]"],
    "machine": _TYPES["dict[str, str]"],
    "measured": _TYPES["dict[str, Any]"],
    "seconds": _TYPES["float"],
    "cases": _TYPES["int"],
    "contract": _TYPES["str"],
    "claim": {"anyOf": [{"type": "null"}, {"type": "object", "required": ["clauses", "exceptions"]}]},
    "claims": _TYPES["dict[str, str]"],
    "outcomes": {"type": "array", "items": _OUTCOME},
}
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "mlafix.audit report",
    "type": "object",
    "required": list(_REPORT),
    "properties": _REPORT,
}
"""The JSON schema of the text that `Report.to_json` returns."""
