"""Implements `python -m mlafix watch REPORT`: prints a report about a broken row, with the row's repair and public
reports of the same class of fault. On request, also writes a script that reproduces the fault."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from .report import FAULTS, page, read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("report", type=Path, metavar="REPORT", help="a file that MLAFIX_WATCH_REPORT named: one report in JSON a line")
    parser.add_argument("--number", type=int, default=-1, metavar="N", help="which report of the file, from 0; the last one by default")
    parser.add_argument("--backend", default="", metavar="MODULE:FUNCTION", help="the function that the script calls, with the arguments of docs/Audit.md")
    parser.add_argument("--script", type=Path, metavar="FILE", help="writes a script that makes the call of the row with the backend again, on numbers of its own")


def run(options: argparse.Namespace) -> int:
    """Prints a report, and with `--script` writes its script. Returns the exit status, which is 2 if there is no such
    report or no script can be made."""
    try:
        report = read(options.report, options.number)
        print(page(report, public_reports(report.record)))
        if options.script is not None:
            text = script_of(report.record, options.backend)
            options.script.write_text(text, encoding="utf-8")
            print(f"\nwrote {options.script}: exit status 1 while the backend does this")
    except (OSError, ValueError) as error:
        print(f"mlafix watch: {error}", file=sys.stderr)
        return 2
    return 0


def public_reports(record: dict[str, Any]) -> list[str]:
    """Returns the URLs of public reports about the class of a broken row."""
    from ..audit.reports import link, reports_of

    words = {"another lse": "base of the lse"}.get(record["class"], "")
    check = "A6" if record["seam"] in ("merge", "reduce") else FAULTS[record["class"]].check
    return [link(one) for one in reports_of(check, words)]


def script_of(record: dict[str, Any], backend: str) -> str:
    """Returns the audit's script for the call that produced a broken row. The script has the sizes and lengths of that
    call, and a paged cache if the call had one, but other values.

    Raises:
        ValueError: there is no backend, or the report lacks the sizes of the call.
    """
    from ..audit.bundle import script
    from ..audit.cases import Adapter
    from ..audit.judge import check_call
    from ..audit.state_forms import check_states

    if record["seam"] not in ("attention", "merge"):
        raise ValueError(f"expected a report about attention or a merge for a script, got one about {record['seam']}")
    call = _backend(backend)
    case = state_case(record) if record["seam"] == "merge" else attention_case(record)
    faults = check_states if record["seam"] == "merge" else check_call
    form = "merge" if record["seam"] == "merge" else "ragged_paged" if record["block_table_row"] else "ragged"
    given = record["arguments"]
    adapter = Adapter(call, form, backend, lse_layout=given.get("lse_layout", "hn"), lse_base=given.get("base", "e"), heads=case.heads, dim=case.dim,
                      kv_heads=getattr(case, "kv_heads", case.heads), returns_lse=form == "merge" or _returns_lse(record))  # fmt: skip
    made: str = script(faults, case, adapter, f"{record['place']}: {record['class']}, as a watch found it in step {record['step']}.")
    if not made:
        raise ValueError(f"expected a backend that can be imported, got {backend}")
    return made


def _returns_lse(record: dict[str, Any]) -> bool:
    return bool(record["values"]) and record["values"][0] not in ("nan", "0") or "lse" in record["class"]


def _backend(text: str) -> Any:
    from ..audit.adapter import Place

    module, colon, name = text.partition(":")
    if not module or not colon or not name:
        raise ValueError(f'expected --backend MODULE:FUNCTION for a script, got "{text}"')
    try:
        return Place(module, name, str(Path.cwd())).find()
    except (ImportError, AttributeError) as error:
        raise ValueError(f"expected a backend that can be imported, got {text}: {error}") from None


def attention_case(record: dict[str, Any]) -> Any:
    """Returns the attention call of a broken row as a case of the audit. The case has the lengths of all requests of
    the step or, if there are more than 8 requests, of the row's request only."""
    from ..audit.cases import Case

    sizes, lens, starts = record["arguments"], record["lens"], record["cu_seqlens"]
    if lens is None or starts is None or "q" not in sizes:
        raise ValueError("expected a report of a recomputed seam, with the lengths of its step and the sizes of its call, got one without them")
    tokens = [max(b - a, 0) for a, b in zip(starts, starts[1:])]
    pairs = list(zip(tokens, [max(length, 0) for length in lens]))
    if len(pairs) > 8:
        row = next((i for i, (a, b) in enumerate(zip(starts, starts[1:])) if a <= record["row"][0] < b), 0)
        pairs = pairs[row : row + 1]
    _, heads, dim = sizes["q"]["shape"]
    return Case(q_lens=tuple(pair[0] for pair in pairs), kv_lens=tuple(pair[1] for pair in pairs), heads=heads, kv_heads=sizes["k"]["shape"][-2], dim=dim,
                causal=bool(sizes.get("causal", True)), beyond="nan", before="nan", value_dim=sizes["v"]["shape"][-1])  # fmt: skip


def state_case(record: dict[str, Any]) -> Any:
    """Returns the merge call of a broken row as a case of the audit."""
    from ..audit.cases import StateCase

    sizes = record["arguments"]
    rows, heads, dim = sizes.get("out", {"shape": [5, 4, 32]})["shape"]
    parts = int(sizes.get("sides", 2))
    empty = tuple((part, 1) for part in range(parts)) if record["class"] == "not empty" else ((0, 1),)
    return StateCase(rows=max(2, min(rows, 8)), heads=heads, dim=dim, parts=parts, empty=empty)
