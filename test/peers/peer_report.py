"""Makes the Markdown table of a run from the JSON file with its results."""

from __future__ import annotations

from typing import Any

BEGIN, END = "<!-- test/peers: begin -->", "<!-- test/peers: end -->"


def table(results: list[dict[str, Any]]) -> str:
    """Returns a table for each machine, with one row per test file. The reasons why tests failed or were skipped follow
    each table."""
    return "\n".join(map(_table_of_machine, results))


def _table_of_machine(run: dict[str, Any]) -> str:
    machine = run["machine"]
    lines = [f"On {machine['device']}, torch {machine['torch']}, Triton {machine['triton']}.", "",
             "| engine | version | test file | cases | passed | failed | skipped |", "|---|---|---|---|---|---|---|"]
    notes: list[str] = []
    for suite in run["suites"]:
        mark = ""
        why = [f"{count} {outcome}: {_quoted(reason)}" for outcome in ("failed", "skipped")
               for reason, count in sorted(suite["reasons"][outcome].items())]
        why += [f"not collected: {_quoted(error)}" for error in suite["collection_errors"]]
        if why:
            notes.append(f"{len(notes) + 1}. " + "; ".join(why) + ".")
            mark = f" ({len(notes)})"
        outcomes = suite["outcomes"]
        lines.append(f"| {suite['engine']} | {suite['version']} | `{suite['file']}`{mark} | {_cases(suite)} "
                     f"| {outcomes['passed']} | {outcomes['failed']} | {outcomes['skipped']} |")
    return "\n".join(lines + ([""] + notes if notes else [])) + "\n"


def _cases(suite: dict[str, Any]) -> str:
    ran = sum(suite["outcomes"][outcome] for outcome in ("passed", "failed", "skipped"))
    return str(ran) if suite["every"] == 1 else f"{ran} (one in {suite['every']})"


def _quoted(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").rstrip(".")


def fill(page: str, results: list[dict[str, Any]]) -> str:
    """Returns the page with the text between its two marks replaced by the tables."""
    before, found, rest = page.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not found or not closed:
        raise SystemExit(f"expected a page with {BEGIN} and {END}, got none")
    return f"{before}{BEGIN}\n\n{table(results)}\n{END}{after}"
