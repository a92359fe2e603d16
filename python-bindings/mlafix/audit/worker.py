"""The process of the backend, which runs the checks one after the other. It says what it is about to do, in case it dies."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from .attempt import attempt, is_broken
from .bundle import literal, script
from .cases import Adapter, Case, Fault, StateCase
from .checks import CHECKS, Check
from .findings import DOES_NOT, HOLDS, NOT_APPLICABLE, NOT_RUN, Finding, Outcome, to_dict
from .repair import try_repair
from .reports import reports_of
from .short import short_script
from .shrink import shrink

Emit = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Limits:
    """How long things may take, in seconds."""

    check: float = 1.0  # a check begins no case after that
    case: float = 3.0  # a call that takes longer hangs
    first: float = 120.0  # the first call, which may compile
    shrink: float = 0.5


class BrokenContext(Exception):
    """The device's context is of no more use to this process."""


def work(adapter: Adapter, numbers: Sequence[str], limits: Limits, emit: Emit) -> None:
    """Runs checks and emits an outcome of each. The plain call comes first: without it the others say nothing."""
    emit({"limit": limits.first, "at": ["", {}]})
    measured = measure(adapter)
    begin = time.monotonic()
    measure(adapter)
    # A slow backend, or a busy machine, is no hang.
    limits = replace(limits, case=max(limits.case, min(20 * (time.monotonic() - begin), 30.0)))
    emit({"measured": {"lse_base": measured.lse_base, "lse_layout": measured.lse_layout}})
    known: dict[str, str] = {}
    for number in numbers:
        emit({"limit": limits.case, "at": [number, {}]})
        # A base or a layout that is not the declared one is one finding, of A5, not one of each check.
        outcome = run_check(CHECKS[number], adapter if number == "A5" else measured, limits, emit, known)
        known |= {finding.kind: number for finding in outcome.findings}
        emit({"outcome": to_dict(outcome)})
        if any(is_broken(finding.got) for finding in outcome.findings):
            raise BrokenContext


def measure(adapter: Adapter) -> Adapter:
    """The adapter with the base and layout that the lse of a plain call has. This is the first call."""
    check = CHECKS["A5"]
    if check.lacks(adapter):
        check = CHECKS["A0"]
    for fault in attempt(check.faults(adapter), check.cases(adapter)[0], adapter):
        if fault.kind == "base of the lse":
            return replace(adapter, lse_base="2" if adapter.lse_base == "e" else "e")
        if fault.kind == "layout of the lse":
            return replace(adapter, lse_layout="hn" if adapter.lse_layout == "nh" else "nh")
    return adapter


def run_check(check: Check, adapter: Adapter, limits: Limits, emit: Emit, known: dict[str, str]) -> Outcome:
    """Every case of a check, as far as time allows; then each kind of fault shrunk, written down and repaired.

    Kinds that an earlier check has found (`known`, with its number) are named, not described again.
    """
    outcome = Outcome(check.number, check.title, HOLDS)
    if why := check.lacks(adapter):
        return replace(outcome, status=NOT_APPLICABLE, why=why)
    if check.needs_gpu and adapter.device == "cpu":
        return replace(outcome, status=NOT_RUN, why="no GPU")
    begin = time.monotonic()
    cases = check.cases(adapter)
    if not cases:
        return replace(outcome, status=NOT_APPLICABLE, why="no such call in this form")
    found: dict[str, tuple[Fault, Any]] = {}
    refused: list[tuple[Fault, Any]] = []
    for case in cases:
        if outcome.cases and time.monotonic() - begin > limits.check:
            outcome.why = f"{outcome.cases} of {len(cases)} cases in {limits.check:g} s"
            break
        emit({"at": [check.number, packed(case)]})
        outcome.cases += 1
        faults = attempt(check.faults(adapter), case, adapter)
        if check.refusable and any(is_refusal(fault) for fault in faults):
            refused.append((faults[0], case))
            continue
        for fault in faults:
            found.setdefault(fault.kind, (fault, case))
        if any(is_broken(fault.got) for fault in faults):
            break
    outcome.remarks += [f"refuses {literal(case)}: {fault.got}" for fault, case in refused]
    for fault, case in found.values():
        if fault.severity == "note":
            outcome.remarks.append(f"{fault.kind}: {fault.expected}, else {fault.got}")
        elif earlier := known.get(kind_without_replay(fault)):
            outcome.remarks.append(f"{fault.kind}, as {earlier}")
        else:
            outcome.findings.append(describe(check, adapter, fault, case, limits, emit))
    if found:
        outcome.status = DOES_NOT
    elif len(refused) == outcome.cases:
        outcome.status, outcome.why = NOT_APPLICABLE, "the backend refuses such calls"
    outcome.seconds = round(time.monotonic() - begin, 3)
    return outcome


def kind_without_replay(fault: Fault) -> str:
    """The kind that a plain call would have. Wrong numbers of a replay may have a cause of their own: a stale length."""
    is_replay = fault.severity == "warning" and fault.kind.startswith("replay ")
    return fault.kind.partition(": ")[2] if is_replay else fault.kind


def is_refusal(fault: Fault) -> bool:
    """An exception that has broken nothing."""
    return fault.kind.startswith("raises ") and not is_broken(fault.got)


def describe(check: Check, adapter: Adapter, fault: Fault, case: Any, limits: Limits, emit: Emit) -> Finding:
    """A finding of a fault: its smallest case, script, reports and repair."""

    def still(smaller: Any) -> bool:
        emit({"at": [check.number, packed(smaller), "shrink"]})
        return any(one.kind == fault.kind for one in attempt(check.faults(adapter), smaller, adapter))

    if not is_broken(fault.got):
        case = shrink(case, adapter, still, limits.shrink)
        fault = next((one for one in attempt(check.faults(adapter), case, adapter) if one.kind == fault.kind), fault)
    finding = finding_of(check, adapter, fault, case, died=False, seconds=limits.case)
    if not is_broken(fault.got):
        emit({"limit": 20.0, "at": [check.number, packed(case)]})  # a repair may compile
        repaired = try_repair(check, adapter, fault.kind, case)
        emit({"limit": limits.case, "at": [check.number, packed(case)]})
        finding.repair = to_dict(repaired) if repaired else None
    return finding


def finding_of(check: Check, adapter: Adapter, fault: Fault, case: Any, died: bool, seconds: float) -> Finding:
    """A finding with its script; the script has not run yet."""
    title = f"{check.number}, {check.title}: {fault.kind}: expected {fault.expected}, got {fault.got}"
    text = "" if died else short_script(check.faults(adapter), case, adapter, fault.kind, title)
    text = text or script(check.faults(adapter), case, adapter, title, died, seconds)
    return Finding(check.number, fault.kind, fault.severity, fault.expected, fault.got, packed(case), literal(case), text,
                   reports=reports_of(check.number, fault.kind))  # fmt: skip


def packed(case: Any) -> dict[str, Any]:
    """A case as JSON has it, infinities as text."""
    values = {name: str(value) if isinstance(value, float) and math.isinf(value) else value for name, value in to_dict(case).items()}
    return {"type": type(case).__name__, **values}


def unpacked(data: dict[str, Any]) -> Any:
    """The case again."""
    kind = {"Case": Case, "StateCase": StateCase}[data["type"]]
    types = {one.name: one.type for one in fields(kind)}
    values = {name: frozen(float(value) if types[name] == "float" else value) for name, value in data.items() if name != "type"}
    return kind(**values)


def frozen(value: Any) -> Any:
    return tuple(map(frozen, value)) if isinstance(value, (list, tuple)) else value
