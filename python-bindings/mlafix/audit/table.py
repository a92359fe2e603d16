"""Writes the cards of several backends as tables for a Markdown page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from .adapter import OPTIONAL
from .cases import Adapter
from .checks import CHECKS
from .checks.check import STATES
from .findings import DOES_NOT, HOLDS, NOT_APPLICABLE, Outcome
from .report import Report

MARKS = re.compile(r"(<!-- audit: begin -->\n).*?(<!-- audit: end -->)", re.DOTALL)
ALL_BUT_LENGTHS = tuple(name for name in OPTIONAL if name != "seq_lens_k")
CELLS = {HOLDS: "holds", DOES_NOT: "**no**", NOT_APPLICABLE: ""}


def write_table(reports: Sequence[Report]) -> str:
    """Returns a table for each machine, with a row for each backend and a column for each check. A second table for
    each machine lists the findings."""
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
    statuses = {outcome.check: cell(outcome) for outcome in report.outcomes}
    return f"| {report.backend} | {report.adapter['dtype']} | {' | '.join(statuses.get(check, '') for check in checks)} |"


def cell(outcome: Outcome) -> str:
    """Returns the text of a cell: "waived" if all findings of the check are waived, else its status. If a check holds
    and only some of its cases were run, the status includes their number."""
    if outcome.status == HOLDS and outcome.cases < outcome.total:
        return f"holds, {outcome.cases} of {outcome.total}"
    if outcome.findings and all(finding.waived for finding in outcome.findings):
        return "waived"
    return CELLS.get(outcome.status, outcome.status)


def finding_rows(report: Report) -> list[str]:
    """Returns the lines for the findings of a report, and for the remarks of failed checks that have no finding."""
    rows = []
    for outcome in report.outcomes:
        for finding in outcome.findings:
            repair = f"`{finding.repair['call']}`: {finding.repair['status']}" if finding.repair and finding.repair["call"] else "none"
            cells = [report.backend, finding.check, f"{'waived' if finding.waived else finding.severity}: {finding.kind}", f"`{finding.call}`", finding.expected, finding.got, repair]
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        if outcome.status == DOES_NOT and not outcome.findings:
            rows.append(f"| {report.backend} | {outcome.check} | {'; '.join(outcome.remarks).replace('|', chr(92) + '|')} | | | | |")
    return rows


CASES = re.compile(r"(<!-- audit cases: begin -->\n).*?(<!-- audit cases: end -->)", re.DOTALL)


def write_cases() -> str:
    """Returns a table of the numbers of cases of each check, by form and by what varies. The numbers are those of
    backends that take all options."""
    adapters = {"ragged": {}, "dense": {}, "paged": {}, "ragged_paged": {}, "merge": {}, "reduce": {"heads": 6}}
    takes = {"merge": ("out", "lse"), "reduce": ()}
    made = {form: Adapter(every_store, form, takes=takes.get(form, OPTIONAL if form == "dense" else ALL_BUT_LENGTHS), **fields) for form, fields in adapters.items()}
    lines = [f"| check | what varies | {' | '.join(made)} |", f"|---|---|{'--:|' * len(made)}"]
    sums = dict.fromkeys(made, 0)
    for check in CHECKS.values():
        of_fp8 = check.number in ("A16", "A17")
        groups = {form: {} if check.lacks(one := replace(adapter, kv_dtype="float8_e4m3fn" if of_fp8 and form not in STATES else "")) else check.groups(one)
                  for form, adapter in made.items()}  # fmt: skip
        for what in dict.fromkeys(what for each in groups.values() for what in each):
            counts = {form: len(each.get(what, ())) for form, each in groups.items()}
            sums = {form: count + counts[form] for form, count in sums.items()}
            lines.append(f"| {check.number} | {what} | {' | '.join(str(count or '') for count in counts.values())} |")
    return "\n".join([*lines, f"| | all | {' | '.join(map(str, sums.values()))} |"])


def every_store() -> None:
    """Stands for a backend that takes all options, in the table of cases."""


every_store.store = None  # type: ignore[attr-defined]


def fill_cases(page: str) -> str:
    """Returns the page with a new table of cases between its marks."""
    return CASES.sub(lambda match: f"{match[1]}\n{write_cases()}\n\n{match[2]}", page)


def fill(page: str, reports: Sequence[Report]) -> str:
    """Returns the page with a new table of reports between its marks."""
    return MARKS.sub(lambda match: f"{match[1]}\n{write_table(reports)}\n{match[2]}", page)
