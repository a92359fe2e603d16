"""Writes reports as a self-contained HTML page, with the style sheet of the pages of `mlafix.explain`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from ..explain.style import STYLE
from .checks import CHECKS
from .clauses import CLAUSES
from .findings import DOES_NOT, HOLDS, NOT_APPLICABLE, NOT_RUN, Finding, Outcome
from .report import Report, words
from .reports import link

CLASSES = {HOLDS: "yes", DOES_NOT: "no"}
MARKS = {HOLDS: "holds", DOES_NOT: "no", NOT_RUN: "–", NOT_APPLICABLE: ""}
LOCAL = """
pre { background: var(--panel); border: 1px solid var(--rule); padding: 8px; overflow: auto; font-size: 12px; }
.grid { overflow-x: auto; } .grid table { font-size: 13px; width: 100%; } .grid th, .grid td { padding: 2px 6px 2px 0; }
.grid thead th { vertical-align: bottom; line-height: 1.2; } .grid thead small { display: block; font-weight: 400; color: var(--soft); max-width: 11ch; }
.grid td:first-child { min-width: 20ch; } .warn { color: var(--part); }
"""


def write_page(reports: Sequence[Report]) -> str:
    """Returns the page of one or several reports. The page of several reports begins with a table that has a row for
    each report."""
    title = reports[0].backend if len(reports) == 1 else "Audits"
    body = [f"<h1>{escape(title)}</h1>", overview(reports) if len(reports) > 1 else "", *(section(report, i) for i, report in enumerate(reports))]
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
        f"<style>{STYLE}{LOCAL}</style></head><body>{''.join(body)}</body></html>\n"
    )


def overview(reports: Sequence[Report]) -> str:
    """Returns a table with a row for each backend and a column for each check. Two more columns have the numbers of
    cases and of waived findings."""
    checks = list(dict.fromkeys(outcome.check for report in reports for outcome in report.outcomes))
    titles = {outcome.check: outcome.title for report in reports for outcome in report.outcomes}
    heads = "".join(f'<th title="{escape(titles[check])}">{check}<small>{escape(clause_name(check))}</small></th>' for check in checks)
    rows = "".join(overview_row(report, checks, i) for i, report in enumerate(reports))
    return (f'<div class="grid"><table><thead><tr><th>backend</th>{heads}<th>cases</th><th>waived</th></tr></thead><tbody>{rows}</tbody></table></div>'
            "<p>A cell that is empty is of a check that does not apply; – was not run; a number is of the findings.</p>")  # fmt: skip


def overview_row(report: Report, checks: Sequence[str], number: int) -> str:
    outcomes = {outcome.check: outcome for outcome in report.outcomes}
    known = {outcome.check for outcome in report.outcomes if outcome.findings and all(finding.waived for finding in outcome.findings)}
    cells = "".join(mark(outcomes[check], known) if check in outcomes else "<td></td>" for check in checks)
    waived = sum(bool(finding.waived) for finding in report.findings)
    return f'<tr><td><a href="#r{number}">{escape(report.backend)}</a></td>{cells}<td>{report.cases}</td><td>{waived or ""}</td></tr>'


def mark(outcome: Outcome, known: set[str]) -> str:
    """Returns the table cell of a check: its status as a word, with the number of findings that count. `known` has the
    checks whose findings are all waived."""
    counted = [finding for finding in outcome.findings if not finding.waived]
    text, color = MARKS[outcome.status], severity(outcome)
    if outcome.status == DOES_NOT:
        earlier = causes(outcome)
        is_waived = not counted and bool(outcome.findings or earlier) and earlier <= known
        text = "waived" if is_waived else f"no {len(counted)}" if counted else "no" if earlier else "note"
        color = "part" if is_waived else color
    if outcome.status == HOLDS and outcome.cases < outcome.total:
        text = "part"
    return f'<td class="{color}" title="{escape(outcome.words)}">{text}</td>'


def causes(outcome: Outcome) -> set[str]:
    """Returns the numbers of the earlier checks that found the same cause, according to the outcome's remarks."""
    return {match[1] for remark in outcome.remarks if (match := re.search(r", as (A[0-9]+)$", remark))}


def severity(outcome: Outcome) -> str:
    """Returns the CSS class of an outcome. A check that does not hold is "no" (red) if one of its errors is not waived,
    or if an earlier check found the same cause. Otherwise it is "part"."""
    if outcome.status == HOLDS and outcome.cases < outcome.total:
        return "part"
    if outcome.status != DOES_NOT:
        return CLASSES.get(outcome.status, "soft")
    return "no" if causes(outcome) or any(finding.severity == "error" and not finding.waived for finding in outcome.findings) else "part"


def clause_name(check: str) -> str:
    """Returns the name of a check's first clause, or "" if there is none."""
    clauses = CHECKS[check].clauses if check in CHECKS else ()
    return CLAUSES[clauses[0]] if clauses else ""


def section(report: Report, number: int) -> str:
    """Returns the HTML of one report."""
    rows = "".join(outcome_row(outcome) for outcome in report.outcomes)
    facts = ", ".join(f"{name} {value}" for name, value in report.machine.items())
    remarks = "".join(f"<li>{outcome.check}: {escape(remark)}</li>" for outcome in report.outcomes for remark in outcome.remarks)
    claims = "".join(f"<li>{clause} {escape(CLAUSES[clause])}: {status}</li>" for clause, status in report.claims().items()) if report.is_part else ""
    claims += "".join(f"<li>no finding for an exception: {escape(reason)}</li>" for reason in report.unused())
    varied = "".join(f"<tr><td>{outcome.check}</td><td>{escape(what)}</td><td>{count}</td></tr>"
                     for outcome in report.outcomes for what, count in outcome.varied.items())  # fmt: skip
    return (
        f'<h2 id="r{number}">{escape(report.summary())}</h2><p>{escape(facts)}; {report.cases} cases in {report.seconds:.1f} s</p>'
        f"<table><tr><th></th><th>check</th><th>clauses</th><th>status</th><th>cases</th><th></th></tr>{rows}</table>"
        f"{f'<p>Claimed:</p><ul>{claims}</ul>' if claims else ''}{''.join(map(finding_html, report.findings))}{f'<ul>{remarks}</ul>' if remarks else ''}"
        f"<details><summary>what the cases vary</summary><table>{varied}</table></details>"
    )


def outcome_row(outcome: Outcome) -> str:
    clauses = ", ".join(f"{clause} {CLAUSES[clause]}" for clause in outcome.clauses if clause in CLAUSES)
    count = (f"{outcome.cases} of {outcome.total}" if outcome.cases < outcome.total else str(outcome.cases)) if outcome.cases else ""
    return (f"<tr><td>{outcome.check}</td><td>{escape(outcome.title)}</td><td>{escape(clauses)}</td><td class=\"{severity(outcome)}\">{escape(outcome.status)}</td>"
            f"<td>{count}</td><td>{escape(outcome.why or words(outcome))}</td></tr>")  # fmt: skip


def finding_html(finding: Finding) -> str:
    """Returns the HTML of a finding. Its script is folded."""
    rows = [("clause", ", ".join(f"{clause} {CLAUSES.get(clause, '')}" for clause in finding.clauses)), ("expected", finding.expected), ("got", finding.got),
            ("in", finding.call), ("waived", finding.waived), ("repair", finding.repair_words)]  # fmt: skip
    cells = "".join(f"<tr><td>{name}</td><td><code>{escape(text)}</code></td></tr>" for name, text in rows if text)
    links = ", ".join(f'<a href="{escape(link(report))}">{escape(report)}</a>' for report in finding.reports)
    cells += f"<tr><td>as in</td><td>{links}</td></tr>" if links else ""
    script = f"<details><summary>script: {escape(finding.script_status)}</summary><pre>{escape(finding.script)}</pre></details>" if finding.script else ""
    color = "soft" if finding.waived else "no" if finding.severity == "error" else "part"
    return f'<h3>{finding.check} <span class="{color}">{finding.severity}</span>: {escape(finding.kind)}</h3><table>{cells}</table>{script}'
