"""The result of an audit: a card that a person reads, JSON with a schema, one line, and what has changed between two."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from textwrap import shorten
from typing import Any

from ..errors import ArgumentError
from .findings import DOES_NOT, HOLDS, NOT_RUN, SEVERITIES, STATUSES, Finding, Outcome, outcome_of, to_dict

VERSION = 1


@dataclass
class Report:
    """The result of an audit."""

    backend: str
    adapter: dict[str, Any]
    machine: dict[str, str]
    outcomes: list[Outcome]
    measured: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def findings(self) -> list[Finding]:
        """All of them, in the order of the checks."""
        return [finding for outcome in self.outcomes for finding in outcome.findings]

    @property
    def status(self) -> int:
        """The exit status: 1 if there is a finding that is an error."""
        return int(any(finding.severity == "error" for finding in self.findings))

    def summary(self) -> str:
        """One line, as a badge has it."""
        run = [outcome for outcome in self.outcomes if outcome.status in (HOLDS, DOES_NOT)]
        bad = [outcome.check for outcome in run if outcome.status == DOES_NOT]
        where = self.machine.get("gpu") or "CPU"
        failed = f"; {', '.join(bad)} {'does' if len(bad) == 1 else 'do'} not" if bad else ""
        return f"{self.backend}: {len(run) - len(bad)} of {len(run)} checks hold{failed} ({self.adapter['dtype']}, torch {self.machine['torch']}, {where})"

    def __str__(self) -> str:
        """The capability card."""
        lines = [self.summary(), ""]
        for outcome in self.outcomes:
            lines.append(f"{outcome.check:4} {outcome.title:58} {outcome.status:15} {outcome.why or words(outcome)}".rstrip())
        for finding in self.findings:
            lines += ["", *finding_lines(finding)]
        for outcome in self.outcomes:
            lines += [f"{outcome.check}: {remark}" for remark in outcome.remarks]
        lines += ["", ", ".join(f"{name} {value}" for name, value in self.machine.items()) + f"; {self.seconds:.1f} s"]
        return "\n".join(lines)

    def to_json(self, scripts: bool = True) -> str:
        """As text, a line for each check, with the findings' scripts or without; `SCHEMA` describes it, `from_json` reads it."""
        data: dict[str, Any] = {"version": VERSION, "backend": self.backend, "summary": self.summary(), "adapter": self.adapter, "machine": self.machine,
                "measured": self.measured, "seconds": self.seconds, "outcomes": [to_dict(outcome) for outcome in self.outcomes]}  # fmt: skip
        if not scripts:
            for finding in (finding for outcome in data["outcomes"] for finding in outcome["findings"]):
                finding["script"] = ""
        outcomes = ",\n".join(f"  {json.dumps(outcome, allow_nan=False)}" for outcome in data.pop("outcomes"))
        head = "".join(f" {json.dumps(name)}: {json.dumps(value, allow_nan=False)},\n" for name, value in data.items())
        return f'{{\n{head} "outcomes": [\n{outcomes}\n ]\n}}\n'

    @staticmethod
    def from_json(text: str) -> Report:
        """The report again. Raises ArgumentError: the text is none."""
        try:
            data = json.loads(text)
            if data["version"] != VERSION:
                raise ArgumentError(f"expected a report of version {VERSION}, got {data['version']!r}")
            given = {one.name: data[one.name] for one in fields(Report) if one.name != "outcomes"}
            return Report(**given, outcomes=[outcome_of(one) for one in data["outcomes"]])
        except (ValueError, KeyError, TypeError) as error:
            raise ArgumentError(f"expected the JSON of a report, got {type(error).__name__}: {error}") from error


def words(outcome: Outcome) -> str:
    """The words about a check on a line of the card."""
    kinds = [finding.kind for finding in outcome.findings]
    if kinds:
        return shorten("; ".join(kinds), 100, placeholder=" …")
    return shorten(outcome.remarks[0], 100, placeholder=" …") if outcome.remarks else ""


def finding_lines(finding: Finding) -> list[str]:
    """A finding as the card has it."""
    lines = [f"{finding.check} {finding.severity}: {finding.kind}", f"  expected {finding.expected}", f"  got      {finding.got}"]
    if finding.call:
        lines.append(f"  in       {finding.call}")
    if finding.repair and finding.repair["call"]:
        repair = finding.repair
        cost = f", {repair['repair_us']:g} us on a call of {repair['backend_us']:g} us" if repair["backend_us"] else ""
        lines.append(f"  repair   {repair['call']}: {repair['status']}{cost}")
    if finding.script_status:
        lines.append(f"  script   {finding.script_status}")
    if finding.reports:
        lines.append(f"  as in    {', '.join(finding.reports[:4])}")
    return lines


def compare(old: Report, new: Report) -> list[str]:
    """The differences between two reports of a backend, a line each."""
    lines = []
    for name in sorted({*old.machine, *new.machine}):
        before, after = old.machine.get(name, "none"), new.machine.get(name, "none")
        lines += [f"{name}: {before}, now {after}"] if before != after else []
    befores = {outcome.check: outcome for outcome in old.outcomes}
    afters = {outcome.check: outcome for outcome in new.outcomes}
    for check in dict.fromkeys([*befores, *afters]):
        before, after = befores.get(check), afters.get(check)
        was, now = before.status if before else NOT_RUN, after.status if after else NOT_RUN
        if was != now:
            lines.append(f"{check}: {was}, now {now}")
        kinds = [{finding.kind for finding in one.findings} if one else set() for one in (before, after)]
        lines += [f"{check}: new finding: {kind}" for kind in sorted(kinds[1] - kinds[0])]
        lines += [f"{check}: finding gone: {kind}" for kind in sorted(kinds[0] - kinds[1])] if after else []
    return lines


def is_worse(old: Report, new: Report) -> bool:
    """True if a check that held does not any more, or there is a new finding."""
    known = {(finding.check, finding.kind) for finding in old.findings}
    return any((finding.check, finding.kind) not in known for finding in new.findings)


_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "mlafix.audit report",
    "type": "object",
    "required": ["version", "backend", "summary", "adapter", "machine", "measured", "seconds", "outcomes"],
    "properties": {
        "version": {"const": VERSION},
        "backend": _TEXT,
        "summary": _TEXT,
        "adapter": {"type": "object"},
        "machine": {"type": "object", "additionalProperties": _TEXT},
        "measured": {"type": "object"},
        "seconds": {"type": "number"},
        "outcomes": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["check", "title", "status", "why", "cases", "seconds", "remarks", "findings"],
                "properties": {
                    "check": {"type": "string", "pattern": "^A[0-9]+$"},
                    "title": _TEXT,
                    "status": {"enum": list(STATUSES)},
                    "why": _TEXT,
                    "cases": {"type": "integer"},
                    "seconds": {"type": "number"},
                    "remarks": _TEXTS,
                    "findings": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": [one.name for one in fields(Finding)],
                            "properties": {
                                **{name: _TEXT for name in ("check", "kind", "expected", "got", "call", "script", "script_status")},
                                "severity": {"enum": list(SEVERITIES)},
                                "case": {"type": "object"},
                                "reports": _TEXTS,
                                "repair": {
                                    "anyOf": [
                                        {"type": "null"},
                                        {"type": "object", "required": ["call", "status", "backend_us", "repair_us"]},
                                    ]
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}
"""A JSON schema of `Report.to_json`."""

__all__ = ["SCHEMA", "Report", "compare", "is_worse"]
