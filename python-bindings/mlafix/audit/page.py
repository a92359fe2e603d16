"""A report as a page of HTML that needs nothing but itself, in the style of the page that explains a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..explain.style import STYLE
from .findings import DOES_NOT, HOLDS, Finding
from .report import Report, words

CLASSES = {HOLDS: "yes", DOES_NOT: "no"}


def write_page(reports: Sequence[Report]) -> str:
    """The page of one report, or of several: a table with a column for each of them, then each with its findings."""
    title = reports[0].backend if len(reports) == 1 else "Audits"
    body = [f"<h1>{escape(title)}</h1>", overview(reports) if len(reports) > 1 else "", *map(section, reports)]
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE} pre {{ background: var(--panel); border: 1px solid var(--rule); padding: 8px; overflow: auto; font-size: 12px; }}</style>"
        f"</head><body>{''.join(body)}</body></html>\n"
    )


def overview(reports: Sequence[Report]) -> str:
    """Checks down, backends across."""
    checks = list(dict.fromkeys((outcome.check, outcome.title) for report in reports for outcome in report.outcomes))
    statuses = [{outcome.check: outcome.status for outcome in report.outcomes} for report in reports]
    heads = "".join(f"<th>{escape(report.backend)}</th>" for report in reports)
    rows = "".join(f"<tr><td>{check} {escape(title)}</td>{''.join(cell(one.get(check, '')) for one in statuses)}</tr>" for check, title in checks)
    return f"<table><tr><th></th>{heads}</tr>{rows}</table>"


def cell(status: str) -> str:
    return f'<td class="{CLASSES.get(status, "soft")}">{escape(status)}</td>'


def section(report: Report) -> str:
    """One report."""
    rows = "".join(
        f"<tr><td>{outcome.check}</td><td>{escape(outcome.title)}</td>{cell(outcome.status)}<td>{escape(outcome.why or words(outcome))}</td></tr>"
        for outcome in report.outcomes
    )
    facts = ", ".join(f"{name} {value}" for name, value in report.machine.items())
    remarks = "".join(f"<li>{outcome.check}: {escape(remark)}</li>" for outcome in report.outcomes for remark in outcome.remarks)
    return (
        f"<h2>{escape(report.summary())}</h2><p>{escape(facts)}; {report.seconds:.1f} s</p><table>{rows}</table>"
        f"{''.join(map(finding_html, report.findings))}{f'<ul>{remarks}</ul>' if remarks else ''}"
    )


def finding_html(finding: Finding) -> str:
    """A finding, its script folded away."""
    rows = [("expected", finding.expected), ("got", finding.got), ("in", finding.call)]
    if finding.repair and finding.repair["call"]:
        cost = f", {finding.repair['repair_us']:g} us on a call of {finding.repair['backend_us']:g} us" if finding.repair["backend_us"] else ""
        rows.append(("repair", f"{finding.repair['call']}: {finding.repair['status']}{cost}"))
    rows.append(("as in", ", ".join(finding.reports)))
    cells = "".join(f"<tr><td>{name}</td><td><code>{escape(text)}</code></td></tr>" for name, text in rows if text)
    script = f"<details><summary>script: {escape(finding.script_status)}</summary><pre>{escape(finding.script)}</pre></details>" if finding.script else ""
    return f"<h3>{finding.check} {finding.severity}: {escape(finding.kind)}</h3><table>{cells}</table>{script}"
