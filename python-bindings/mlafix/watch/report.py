"""Formats reports of a fault: as one line, as a record for logs, and as the page of `python -m mlafix watch`."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from .records import Found

SCHEMA = "mlafix-watch/1"


class Fault(NamedTuple):
    """A class of fault."""

    check: str
    """The audit's check that looks for the same fault."""
    expected: str
    repair: str = ""
    """The mlafix call that repairs rows. Results of merges are repaired by ops.merge_attn_states instead."""


FAULTS = {
    "NaN": Fault("A4", "finite numbers in a row with keys",
                 "ops.zero_blocks(cache, ids) when pages are freed; ops.fixup_zero_kv_rows(out, lse, kv_lens, cu_seqlens) for rows without keys"),
    "infinite": Fault("A10", "finite numbers in a row with keys"),
    "not empty": Fault("A1", "0 and an lse of -inf in a row without keys", "ops.fixup_zero_kv_rows(out, lse, kv_lens, cu_seqlens)"),
    "weight of -inf": Fault("A5", "zeros beside an lse of -inf", "ops.fixup_zero_kv_rows(out, lse, kv_lens, cu_seqlens)"),
    "no keys seen": Fault("A2", "a state of the row's keys"),
    "too large": Fault("A14", "no magnitude above that of the values, {limit}"),
    "another lse": Fault("A5", "an lse of {want_lse}",
                         'base="2" of ops.merge_attn_states (or one base each for prefix, suffix and result), if the lse is 1.4427 times the expected one'),
    "another value": Fault("A14", "the attention of its keys, or the merge of its sides, with a largest magnitude of {want}"),
    "NaN in a block": Fault("A4", "finite numbers in a page that a live entry of the table names", "ops.zero_blocks(cache, ids) when pages are freed"),
    "negative length": Fault("A11", "a length of 0 or more", "ops.pad_metadata(seq_lens, live_rows, …)"),
    "falling offsets": Fault("A11", "offsets that do not fall", "ops.cumulate_lens(lens, live_rows)"),
    "slot out of range": Fault("A10", "a slot of the cache, or -1", "ops.pad_metadata(seq_lens, live_rows, slots=…)"),
    "page out of range": Fault("A10", "a page of the cache in a live entry of the table", "ops.pad_metadata(seq_lens, live_rows, block_table=…)"),
    "another length": Fault("A7", "the length that the host has", "ops.pad_metadata(seq_lens, live_rows, …), with the count of live requests on the device"),
}


@dataclass(frozen=True)
class Report:
    """A report of the first fault of a step."""

    record: dict[str, Any]
    """The report as a JSON object. `report_of` says which fields it has."""

    @property
    def line(self) -> str:
        """The report as one line of text."""
        r = self.record
        where = f"{r['place']}, {r['at']}"
        before = f"; right before: {r['before']}" if r["before"] else "; no seam of this step ran before"
        rows = f" ({r['rows']} rows)" if r["rows"] > 1 else ""
        return f"mlafix watch: step {r['step']}: {where}: {r['class']}{rows}: expected {r['expected']}, got {r['got']}{before}"


def report_of(first: Found, same: Sequence[Found], places: Sequence[Any], before: str, batch: Any, sizes: dict[str, Any], now: int) -> Report:
    """Makes the report of the first fault.

    Args:
        same: all broken rows of the same step and seam.
        places: the seams by number.
        before: the seam that ran just before; "" if there is none.
        batch: the metadata of the step; None if it is no longer known.
        sizes: the arguments of the check: sizes, dtypes and numbers.
        now: the step in which the fault is reported.
    """
    place = places[first.seam]
    in_batch = first._replace(row=(first.row[0] + sizes.get("first_row", 0), *first.row[1:]))
    request, token = _request_of(in_batch, batch)
    lse, largest, want_lse, want = first.values or (math.nan,) * 4
    expected = FAULTS[first.fault].expected.format(limit=_number(want), want_lse=_number(want_lse), want=_number(want))
    record = {
        "schema": SCHEMA, "step": first.step, "reported_in_step": now, "layer": place.layer, "seam": place.seam, "name": place.name, "place": str(place),
        "class": first.fault, "rows": len(same), "row": list(first.row), "kind": first.kind, "request": request, "token": token,
        "at": _at(first, request, token), "expected": expected, "got": _got(first, lse if "lse_layout" in sizes else None, largest),
        "values": [_number(value) for value in first.values], "before": before,
        "counts": dict(Counter(one.fault for one in same)), "arguments": sizes, **_lengths(in_batch, batch),
    }  # fmt: skip
    return Report(record)


def _number(value: float) -> str:
    return f"{value:.6g}"


def _got(found: Found, lse: float | None, largest: float) -> str:
    """Describes the contents of the broken row. `lse` is None if the check had no lse."""
    if found.kind != "rows":
        return {"blocks": "a page with others", "entries": "another"}[found.kind]
    return f"{'' if lse is None else f'an lse of {_number(lse)} and '}a largest magnitude of {_number(largest)}"


def _list(values: Any) -> list[Any] | None:
    return None if values is None else values.tolist() if hasattr(values, "tolist") else list(values)


def _request_of(found: Found, batch: Any) -> tuple[str, int | None]:
    """Returns the request to which a row belongs, and the number of the row's token in this request. Returns "" and
    None if they are unknown."""
    if found.kind == "blocks" or batch is None:
        index, token = (found.row[0], None) if found.kind == "blocks" else (None, None)
    else:
        starts = _list(batch.cu_seqlens)
        index, token = (found.row[0], 0) if batch.requests or found.kind == "entries" else (None, None)
        if starts is not None and found.kind == "rows":
            index = next((i for i in range(len(starts) - 1) if starts[i] <= found.row[0] < starts[i + 1]), None)
            token = None if index is None else found.row[0] - starts[index]
    if index is None:
        return "", token
    names = batch.requests if batch is not None else ()
    return str(names[index]) if index < len(names) else f"#{index}", token


def _at(found: Found, request: str, token: int | None) -> str:
    who = f"request {request}, " if request else ""
    if found.kind == "blocks":
        return f"{who}entry {found.row[1]} of its table"
    if found.kind == "entries":
        return f"{who}entry {found.row[0]}"
    which = f"token {token} of it, " if token is not None and request else ""
    return f"{who}{which}row {found.row[0]}, head {found.row[1]}"


def _lengths(found: Found, batch: Any) -> dict[str, Any]:
    """Returns the lengths and offsets of the step, and the request's row of the block table. They are None if the batch
    is unknown."""
    if batch is None:
        return {"lens": None, "cu_seqlens": None, "block_table_row": None}
    request, _ = _request_of(found, batch)
    table = batch.block_table
    index = next((i for i, name in enumerate(batch.requests) if str(name) == request), int(request[1:]) if request.startswith("#") else None)
    row = None if table is None or index is None or index >= len(table) else _list(table[index])
    return {"lens": _list(batch.lens), "cu_seqlens": _list(batch.cu_seqlens), "block_table_row": row}


# -- python -m mlafix watch REPORT --------------------------------------------------------------------------------------


def read(path: Path, number: int = -1) -> Report:
    """Reads a report from a file of JSON lines. `number` is the index of the report; -1 is the last.

    Raises:
        ValueError: there is no such line, or it is not a report.
    """
    lines = [(at, line) for at, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if line.strip()]
    if not -len(lines) <= number < len(lines):
        raise ValueError(f"expected report {number} in {path}, got {len(lines)} reports")
    at, line = lines[number]
    record = json.loads(line)
    schema = record.get("schema") if isinstance(record, dict) else None
    if schema != SCHEMA:
        raise ValueError(f"expected a report of schema {SCHEMA} in {path}, got {'no schema' if schema is None else f'schema {schema}'}; line {at} of the file")
    return Report(record)


def page(report: Report, reports: Sequence[str]) -> str:
    """Returns the text that the command prints about a broken row: its place, the expected and actual values, its
    repair, and public reports of the same class of fault."""
    r = report.record
    lines = [report.line, "", f"  step {r['step']} (reported in step {r['reported_in_step']}), {r['place']}", f"  {r['at']}",
             f"  class     {r['class']}: {r['rows']} rows of this seam and step", f"  expected  {r['expected']}", f"  got       {r['got']}",
             f"  before    {r['before'] + ' was right' if r['before'] else 'no seam of this step ran'}", f"  lens      {_short(r['lens'])}", f"  offsets   {_short(r['cu_seqlens'])}",
             f"  its table {_short(r['block_table_row'])}"]  # fmt: skip
    lines += [f"  {name:9} {json.dumps(value)}" for name, value in r["arguments"].items()]
    repair = repair_of(r)
    lines += ["", f"repaired by: {repair}" if repair else "no call of mlafix repairs this: the kernel before the seam is wrong"]
    if reports:
        lines += ["", "the same class in public reports:", *(f"  {one}" for one in reports)]
    return "\n".join(lines)


def repair_of(record: dict[str, Any]) -> str:
    """Returns the mlafix call that repairs a broken row, or "" if there is none."""
    if record["seam"] in ("merge", "reduce") and record["class"] not in ("NaN in a block",):
        return "ops.merge_attn_states(prefix, prefix_lse, suffix, suffix_lse), or merge_states of all sides, in place of the engine's merge"
    return FAULTS[record["class"]].repair


def _short(values: Any) -> str:
    if values is None:
        return "not known"
    text = [str(value) for value in values]
    return f"[{', '.join(text[:16])}{', …' if len(text) > 16 else ''}]"
