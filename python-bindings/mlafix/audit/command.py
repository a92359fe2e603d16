"""Implements `python -m mlafix audit`, which audits a function or every ready adapter whose package is installed."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from ..errors import ArgumentError
from .adapter import load_backend
from .adapters import ready
from .clauses import Claim
from .page import write_page
from .report import SCHEMA, Report, compare, is_worse
from .runner import audit, audit_matrix
from .table import fill, fill_cases
from .worker import Limits

PATIENT = Limits(case=20.0, check=10.0, total=170.0, first=300.0)
"""The limits of an audit with --ready, where backends compile kernels."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("backend", nargs="?", default="", metavar="MODULE:FUNCTION", help="a function of a form of docs/Audit.md, or an Adapter")
    parser.add_argument("--ready", action="store_true", help="every ready adapter whose package is installed")
    parser.add_argument("--only", default="", metavar="TEXT", help="with --ready: adapters whose names contain it")
    parser.add_argument("--seconds", type=float, default=90.0, metavar="S", help="with --ready: begin no audit after that long (default: 90)")
    parser.add_argument("--device", default="", metavar="DEVICE", help="cpu or cuda (default: a GPU if there is one)")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="a field of the adapter, such as lse_base=2")
    parser.add_argument("--check", default="", metavar="A1,…", help="these checks alone")
    parser.add_argument("--from", dest="source", default="", metavar="FOLDER", help="in place of an audit, reports that a folder has")
    parser.add_argument("--markdown", default="", metavar="FILE", help="fill a table of the reports into a page, between its audit marks")
    parser.add_argument("--json", default="", metavar="FILE", help="write the report; with --ready, a folder for one of each")
    parser.add_argument("--html", default="", metavar="FILE", help="write a page")
    parser.add_argument("--scripts", default="", metavar="FOLDER", help="write the script of each finding")
    parser.add_argument("--compare", default="", metavar="FILE", help="say what has changed since that report; exit status 1 if a check holds no more or a finding is new")
    parser.add_argument("--claim", default="", metavar="FILE", help="check what a backend claims: clauses of the contract, known findings with reasons")
    parser.add_argument("--matrix", action="append", default=[], metavar="FIELD=A,B,…",
                        help="an audit for each value of a field, such as page_size=16,64 or ratio=1,4; several times: for each combination")  # fmt: skip
    parser.add_argument("--limit", action="append", default=[], metavar="NAME=S", help="seconds of check, total, case, first, shrink or repair")
    parser.add_argument("--cases", default="", metavar="FILE", help="fill the table of cases into a page, between its marks")
    parser.add_argument("--schema", action="store_true", help="print the JSON schema of reports")


def run(options: argparse.Namespace) -> int:
    """Runs the command and returns its exit status.

    The status is the largest `Report.status` of an audited backend, and 0 with --ready and --from. With --compare it is
    1 if the report got worse.
    """
    if options.schema:
        print(json.dumps(SCHEMA, indent=1))
        return 0
    if options.cases:
        page = Path(options.cases)
        page.write_text(fill_cases(page.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    if sum(map(bool, (options.backend, options.ready, options.source))) != 1:
        raise ArgumentError("expected one of MODULE:FUNCTION, --ready and --from, got " + ("several" if options.backend or options.ready else "none"))
    checks = [name for name in options.check.split(",") if name] or None
    if options.source:
        reports = [read_report(file) for file in sorted(Path(options.source).glob("*.json"))]
    else:
        reports = audit_ready(options, checks) if options.ready else audit_one(options, checks)
    for report in reports:
        write_scripts(report, options.scripts)
    if options.html:
        Path(options.html).write_text(write_page(reports), encoding="utf-8")
    if options.markdown:
        page = Path(options.markdown)
        page.write_text(fill(page.read_text(encoding="utf-8"), reports), encoding="utf-8")
    if options.compare:
        return compared(options.compare, reports[0])
    return max(report.status for report in reports) if options.backend else 0


def audit_one(options: argparse.Namespace, checks: Sequence[str] | None) -> list[Report]:
    """Returns the report of one backend, or a report for each combination of a matrix."""
    fields = dict(field_of(text) for text in options.set)
    if options.device:
        fields["device"] = options.device
    given = {"checks": checks, "progress": sys.stderr.isatty(), "claim": claim_of(options.claim), "limits": limits_of(options.limit, Limits()), **fields}
    backend = load_backend(options.backend)
    if not options.matrix:
        reports = [audit(backend, **given)]
    else:
        matrix = {}
        for text in options.matrix:
            name, _, values = text.partition("=")
            matrix[name] = [field_of(f"{name}={value}", "--matrix")[1] for value in values.split(",")]
        reports = audit_matrix(backend, matrix, **given)
    print(*reports, sep="\n\n")
    if len(reports) > 1:
        print("", *(report.summary() for report in reports), sep="\n")
    if options.json and len(reports) == 1:
        Path(options.json).write_text(reports[0].to_json(), encoding="utf-8")
    elif options.json:
        write_folder(reports, Path(options.json), scripts=True)
    return reports


def claim_of(file: str) -> Claim | None:
    return Claim.from_json(Path(file).read_text(encoding="utf-8")) if file else None


def limits_of(texts: Sequence[str], limits: Limits) -> Limits:
    """Returns `limits` with the changes in `texts`, each of the form "name=seconds"."""
    for text in texts:
        name, _, value = text.partition("=")
        if name not in asdict(limits) or not re.fullmatch(r"[0-9]+(\.[0-9]+)?", value):
            raise ArgumentError(f'--limit: expected NAME=SECONDS with one of {", ".join(asdict(limits))}, got "{text}"')
        limits = replace(limits, **{name: float(value)})
    return limits


def write_folder(reports: Sequence[Report], folder: Path, scripts: bool) -> None:
    """Writes each report to a JSON file. If `scripts` is true, the file includes the scripts of the findings."""
    folder.mkdir(parents=True, exist_ok=True)
    for report in reports:
        (folder / f"{file_name(report)}.json").write_text(report.to_json(scripts), encoding="utf-8")


def field_of(text: str, option: str = "--set") -> tuple[str, Any]:
    """Parses "name=value" into a field of Adapter and its value: a number, true, false, a comma-separated list, or
    text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ArgumentError(f'{option}: expected FIELD=VALUE, got "{text}"')
    if name in ("takes", "head_counts", "ratios"):
        parts = [part for part in value.split(",") if part]
        return name, tuple(parts) if name == "takes" else tuple(int(part) for part in parts)
    if value in ("true", "false"):
        return name, value == "true"
    return name, int(value) if value.isdigit() and name != "lse_base" else value


def audit_ready(options: argparse.Namespace, checks: Sequence[str] | None) -> list[Report]:
    """Audits the ready adapters that `options` select. Prints each report, then the summaries of all. Returns the
    reports."""
    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    adapters, missing = ready(device)
    begin, reports, late = time.monotonic(), [], []
    for adapter in adapters:
        if options.only.lower() not in adapter.name.lower():
            continue
        if time.monotonic() - begin > options.seconds:
            late.append(adapter.name)
            continue
        try:
            report = audit(adapter, checks=checks, limits=limits_of(options.limit, PATIENT), claim=claim_of(options.claim), progress=sys.stderr.isatty())
        except ArgumentError as error:  # The package is installed but cannot be loaded here.
            missing[adapter.name] = str(error)
            continue
        reports.append(report)
        print(f"{report}\n", flush=True)
        if options.json:
            write_folder([report], Path(options.json), scripts=False)
    print(*(f"{report.summary()}" for report in reports), sep="\n")
    print(*(f"not run: {name}: {why}" for name, why in missing.items()), *(f"not run: {name}: no time left" for name in late), sep="\n")
    if not reports:
        why = '; see the lines "not run"' if missing or late else ""
        which = f' with "{options.only}" in its name' if options.only else ""
        raise ArgumentError(f"expected an adapter{which} that can run here, got none{why}")
    return reports


def file_name(report: Report) -> str:
    """Returns a file name made of the backend's name and the device."""
    words = f"{report.backend} {report.machine.get('gpu', 'cpu')}"
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def write_scripts(report: Report, folder: str) -> None:
    if not folder:
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number, finding in enumerate(report.findings, 1):
        if finding.script:
            (Path(folder) / f"{file_name(report)}-{number}-{finding.check}.py").write_text(finding.script, encoding="utf-8")


def read_report(file: Path) -> Report:
    """Reads a report from a file. Raises ArgumentError with the file's name if the file holds no report."""
    try:
        return Report.from_json(file.read_text(encoding="utf-8"))
    except ArgumentError as error:
        raise ArgumentError(f"{file}: {error}") from error


def compared(file: str, report: Report) -> int:
    old = read_report(Path(file))
    print(*compare(old, report) or ["nothing has changed"], sep="\n")
    return int(is_worse(old, report))
