"""Cards of several backends as a table in a Markdown page."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .findings import DOES_NOT, HOLDS, NOT_APPLICABLE
from .report import Report

MARKS = re.compile(r"(<!-- audit: begin -->\n).*?(<!-- audit: end -->)", re.DOTALL)
CELLS = {HOLDS: "holds", DOES_NOT: "**no**", NOT_APPLICABLE: ""}


def write_table(reports: Sequence[Report]) -> str:
    """Backends down, checks across, for each machine; then every finding, a line each."""
    places = dict.fromkeys(place_of(report) for report in reports)
    parts = []
    for place in places:
        own = [report for report in reports if place_of(report) == place]
        checks = list(dict.fromkeys(outcome.check for report in own for outcome in report.outcomes))
        parts.append(f"On {place}. A cell that is empty is of a check that does not apply.\n")
        parts += [f"| backend | dtype | {' | '.join(checks)} |", f"|---|---|{'---|' * len(checks)}", *(row(report, checks) for report in own), ""]
        found = [line for report in own for line in finding_rows(report)]
        if found:
            parts += ["| backend | | finding | on | expected | got | repair |", "|---|---|---|---|---|---|---|", *found, ""]
    return "\n".join(parts)


def place_of(report: Report) -> str:
    facts = report.machine
    versions = [f"{name} {facts[name]}" for name in ("torch", "cuda", "python", "mlafix") if name in facts]
    backend = [facts["backend"]] if "backend" in facts else []
    return ", ".join([facts.get("gpu") or f"a CPU ({facts['cpu']})", *versions, *backend])


def row(report: Report, checks: Sequence[str]) -> str:
    statuses = {outcome.check: CELLS.get(outcome.status, outcome.status) for outcome in report.outcomes}
    return f"| {report.backend} | {report.adapter['dtype']} | {' | '.join(statuses.get(check, '') for check in checks)} |"


def finding_rows(report: Report) -> list[str]:
    """Findings, and the remarks of checks that do not hold without one."""
    rows = []
    for outcome in report.outcomes:
        for finding in outcome.findings:
            repair = f"`{finding.repair['call']}`: {finding.repair['status']}" if finding.repair and finding.repair["call"] else "none"
            cells = [report.backend, finding.check, f"{finding.severity}: {finding.kind}", f"`{finding.call}`", finding.expected, finding.got, repair]
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        if outcome.status == DOES_NOT and not outcome.findings:
            rows.append(f"| {report.backend} | {outcome.check} | {'; '.join(outcome.remarks).replace('|', chr(92) + '|')} | | | | |")
    return rows


def fill(page: str, reports: Sequence[Report]) -> str:
    """The page with the table between its marks."""
    return MARKS.sub(lambda match: f"{match[1]}\n{write_table(reports)}\n{match[2]}", page)
