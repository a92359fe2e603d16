"""Runs the checks in the backend's process, and announces each step, so that the audit knows at which step the process
died."""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

from .attempt import attempt, is_broken
from .bundle import literal, script
from .cases import Adapter, Case, Fault, StateCase
from .checks import CHECKS, Check
from .checks.check import STATES
from .clauses import clauses_in, clauses_of, clauses_of_case
from .findings import DOES_NOT, HOLDS, NOT_APPLICABLE, NOT_RUN, Finding, Outcome
from .processes import Emit
from .repair import try_repair
from .reports import reports_of
from .short import short_script
from .shrink import shrink


@dataclass(frozen=True)
class Limits:
    """Time limits of an audit, in seconds."""

    check: float = 6.0  # time after which a check starts no case; it may be cut to the check's share of the rest of `total`
    total: float = 24.0
    case: float = 3.0  # a longer call is tried again with more time, and is a hang if it does not return then
    first: float = 120.0  # time for the first call, which may compile
    shrink: float = 0.5
    repair: float = 1.0  # time for the cases that the repaired backend runs; 0: no repair is tried


# After the first case with a kind of fault, a check shrinks at most this many further cases with that kind, since they
# may have another cause.
MOST_OTHERS = 2
LEAST = 0.5  # seconds that each check gets at least, however long earlier checks took


class BrokenContext(Exception):
    """Raised when a call has broken the device's context, so that this process can make no more calls."""


class Clock:
    """Measures CPU time in seconds, since wall time varies more on a busy machine. If a third of the wall time is more
    than the CPU time, returns that third."""

    def __init__(self) -> None:
        self.begin = self.now()

    def now(self) -> tuple[float, float]:
        used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return time.monotonic(), sum(one.ru_utime + one.ru_stime for one in used)

    def spent(self) -> float:
        wall, cpu = (now - then for now, then in zip(self.now(), self.begin))
        return max(cpu, wall / 3)


class Pace:
    """Predicts the duration of a case from the most expensive case so far."""

    def __init__(self) -> None:
        self.work, self.seconds = 1, 0.0

    def expects(self, case: Any) -> float:
        return self.seconds * work_of(case) / self.work

    def took(self, case: Any, seconds: float) -> None:
        if work_of(case) >= self.work:
            self.work, self.seconds = work_of(case), seconds


def work_of(case: Any) -> int:
    """Returns the estimated work of a case, in multiplications of attention or in elements of states.

    Each sequence adds 1e5 and each query 2e3, for backends that loop over them in Python.
    """
    calls = 200 if case.after == "calls" else 1
    if isinstance(case, StateCase):
        return calls * max(case.rows, 1) * case.heads * case.dim * case.parts
    longest = max([*case.kv_lens, 1])
    products = sum(q_len * max(kv_len, 0) for q_len, kv_len in zip(case.q_lens, case.kv_lens)) + sum(case.q_lens) + longest
    return calls * (case.heads * case.dim * products + 100_000 * len(case.q_lens) + 2_000 * sum(case.q_lens))


class Cause(NamedTuple):
    """The cause of a finding, described by the cases that have the fault.

    Attributes:
        check: the number of the check that found the fault.
        smallest: the smallest case that has the fault.
        period: the period of the numbers of keys with the fault (`period_of`), or 0.
    """

    check: str
    smallest: Any
    period: int = 0


Known = dict[str, list[Cause]]
"""The known causes by kind of fault."""


def work(adapter: Adapter, numbers: Sequence[str], limits: Limits, found: Sequence[tuple[str, str, dict[str, Any]]], emit: Emit) -> None:
    """Runs checks and emits the outcome of each. If the plain call A0 shows that the adapter does not fit the backend,
    skips all checks that follow.

    `found` lists the findings of earlier processes: kind, check and smallest case.
    """
    emit({"limit": limits.first, "at": ["", {}]})
    measured = measure(adapter)
    begin, clock, pace = time.monotonic(), Clock(), Pace()
    measure(adapter)
    # Raises the limit for a call, so that a slow backend or a busy machine does not look like a hang.
    limits = replace(limits, case=max(limits.case, min(20 * (time.monotonic() - begin), 30.0)))
    emit({"measured": {"lse_base": measured.lse_base, "lse_layout": measured.lse_layout}})
    known: Known = {}
    for kind, number, case in found:
        known.setdefault(plain_kind(kind), []).append(Cause(number, unpacked(case)))
    for position, number in enumerate(numbers):
        emit({"limit": limits.case, "at": [number, {}]})
        share = max((limits.total - clock.spent()) / (len(numbers) - position), LEAST)
        # A5 alone uses the declared base and layout of the lse, so that an error in them is one finding.
        run = CheckRun(CHECKS[number], adapter if number == "A5" else measured, replace(limits, check=min(limits.check, share)), emit, known, pace)
        outcome = run.outcome()
        emit({"outcome": asdict(outcome)})
        if any(is_broken(finding.got) for finding in outcome.findings):
            raise BrokenContext
        if number == "A0" and outcome.why.startswith(DOES_NOT_FIT):
            for left in numbers[position + 1 :]:
                emit({"outcome": asdict(Outcome(left, CHECKS[left].title, NOT_RUN, "A0 does not hold: the adapter does not fit", clauses=list(CHECKS[left].clauses)))})
            return


DOES_NOT_FIT = "the adapter does not fit: "


def measure(adapter: Adapter) -> Adapter:
    """Makes the first call. Returns the adapter with the base and layout that the lse really has."""
    check = CHECKS["A5"]
    case = replace(check.cases(adapter)[0], before="none")  # without a given lse, whose declared layout might differ from the real one
    for fault in attempt(check.faults(adapter), case, adapter):
        if fault.kind == "base of the lse":
            return replace(adapter, lse_base="2" if adapter.lse_base == "e" else "e")
        if fault.kind == "layout of the lse":
            return replace(adapter, lse_layout="hn" if adapter.lse_layout == "nh" else "nh")
    return adapter


class CheckRun:
    """Runs one check on one adapter."""

    def __init__(self, check: Check, adapter: Adapter, limits: Limits, emit: Emit, known: Known, pace: Pace) -> None:
        self.check, self.adapter, self.limits, self.emit, self.known, self.pace = check, adapter, limits, emit, known, pace
        self.found: dict[str, list[tuple[Fault, Any]]] = {}
        self.refused: list[tuple[Fault, Any]] = []

    def outcome(self) -> Outcome:
        """Runs as many cases as time permits. Then shrinks, describes and repairs each kind of fault."""
        check, clock = self.check, Clock()
        outcome = Outcome(check.number, check.title, HOLDS, clauses=clauses_in(check.clauses, self.adapter.form in STATES))
        if why := check.lacks(self.adapter):
            return replace(outcome, status=NOT_APPLICABLE, why=why)
        if check.needs_gpu and self.adapter.device == "cpu":
            return replace(outcome, status=NOT_RUN, why="no GPU")
        groups = check.groups(self.adapter)
        outcome.total = sum(map(len, groups.values()))
        if not outcome.total:
            return replace(outcome, status=NOT_APPLICABLE, why="no such call in this form")
        raised = self.run(groups, outcome, clock)
        if outcome.cases < outcome.total:
            outcome.why = f"{outcome.cases} of {outcome.total} cases in {self.limits.check:.3g} s"
        outcome.remarks += [f"refuses {literal(case)}: {fault.got}" for fault, case in self.refused]
        for faults in self.found.values():
            self.conclude_all(faults, outcome)
        if self.found:
            outcome.status = DOES_NOT
            if check.number == "A0" and raised == outcome.cases:
                outcome.why = DOES_NOT_FIT + next(iter(self.found.values()))[0][0].got
        elif self.refused and len(self.refused) == outcome.cases:
            outcome.status, outcome.why = NOT_APPLICABLE, "the backend refuses such calls"
        outcome.seconds = round(clock.spent(), 3)
        return outcome

    def run(self, groups: dict[str, list[Any]], outcome: Outcome, clock: Clock) -> int:
        """Runs as many cases as time permits. Returns the number of cases that raised."""
        raised = 0
        for what, cases in groups.items():
            for case in cases:
                left = self.limits.check - clock.spent()
                if outcome.cases and (left <= 0 or self.pace.expects(case) > left):
                    continue
                self.emit({"at": [self.check.number, packed(case)], "limit": max(self.limits.case, 10 * self.pace.expects(case))})
                outcome.cases += 1
                outcome.varied[what] = outcome.varied.get(what, 0) + 1
                begin = clock.spent()
                faults = self.faults(case)
                self.pace.took(case, clock.spent() - begin)
                raised += any(is_refusal(fault) for fault in faults)
                if self.check.may_refuse(case, self.adapter) and any(is_refusal(fault) for fault in faults):
                    self.refused.append((faults[0], case))
                    continue
                for fault in faults:
                    self.found.setdefault(fault.kind, []).append((fault, case))
                if any(is_broken(fault.got) for fault in faults):
                    return raised
        return raised

    def faults(self, case: Any) -> list[Fault]:
        found = attempt(self.check.faults(self.adapter), case, self.adapter)
        return [replace(fault, severity="error") if self.check.must_return and is_refusal(fault) else fault for fault in found]

    def conclude_all(self, faults: list[tuple[Fault, Any]], outcome: Outcome) -> None:
        """Makes a finding or a remark from the first case in `faults`, which all have the same kind of fault. Does the
        same for a few further cases that no known cause explains."""
        self.conclude(*faults[0], outcome)
        others = 0
        for fault, case in faults[1:]:
            known = self.known.get(plain_kind(fault.kind), [])
            lacks = bool(known) and all(lacks_needed(case, cause.smallest) for cause in known)
            is_other = lacks or self.unexplained(fault, case, known) is not None
            if is_other and others < MOST_OTHERS and fault.severity != "note" and not is_broken(fault.got):
                others += 1
                self.conclude(fault, case, outcome)

    def conclude(self, fault: Fault, case: Any, outcome: Outcome) -> None:
        """Adds a finding to the outcome, or a remark if an earlier finding has the same cause."""
        if fault.severity == "note":
            outcome.remarks.append(f"{fault.kind}: {fault.expected}, else {fault.got}")
            return
        known = self.known.setdefault(plain_kind(fault.kind), [])
        is_of_all = fault.kind == "dtype of the lse"  # the dtype does not depend on the case
        # If a finding has the same kind of fault, a wrong dtype of the lse and a warning about a replay become remarks
        # at once.
        if known and (is_of_all or fault.kind.startswith("replay ") and fault.severity == "warning"):
            outcome.remarks.append(f"{fault.kind}, as {known[0].check}")
            return
        origin, words = case, [fault.expected, fault.got]
        rest = self.unexplained(fault, case, known)
        case = case if rest is None else rest
        if not is_broken(fault.got) and not covered(case, known):
            held = known if rest is not None else []  # shrinking must not lead to a case that a known finding covers
            case = shrink(case, self.adapter, lambda smaller: not covered(smaller, held) and self.still(smaller, fault.kind), self.limits.shrink)
            self.emit({"at": [self.check.number, packed(case), "shrink"]})
            fault = next((one for one in self.faults(case) if one.kind == fault.kind), fault)
        if earlier := covered(case, known) or next((cause.check for cause in known if contains(cause.smallest, case)), ""):
            remark = f"{fault.kind}, as {earlier}"
            if remark not in outcome.remarks and all(finding.kind != fault.kind for finding in outcome.findings):
                outcome.remarks.append(remark)
            return
        known.append(Cause(self.check.number, case, self.period_of(case, fault)))
        outcome.findings.append(replace(self.describe(fault, case, origin), origin_words=words))

    def unexplained(self, fault: Fault, case: Any, known: list[Cause]) -> Any:
        """Removes the sequences for which the period of a known cause predicts the fault (`has_period`). Returns the
        remaining case if it still has the fault, else None."""
        periodic = [cause for cause in known if cause.period]
        if not self.limits.shrink or is_broken(fault.got) or not any(contains(case, cause.smallest) for cause in periodic):
            return None
        left = [i for i, length in enumerate(case.kv_lens) if not any(has_period(length, cause) for cause in periodic)]
        if not left:
            return None
        lengths = {"q_lens": case.q_lens, "kv_lens": case.kv_lens, "ids": case.ids or range(len(case.kv_lens))}
        rest = replace(case, **{name: tuple(values[i] for i in left) for name, values in lengths.items()})
        return rest if not covered(rest, known) and self.still(rest, fault.kind) else None

    def period_of(self, case: Any, fault: Fault) -> int:
        """Returns the period of a fault in the number of keys, or 0 if it has none.

        Tries only the largest power of two that is not above the largest number of keys. This is the period if the
        fault stays when the longest sequence gets that many more keys, and vanishes when it gets one more key.
        """
        most = max(getattr(case, "kv_lens", ()), default=0)
        if not self.limits.shrink or most < 2 or is_broken(fault.got):
            return 0
        period, at = 1 << (most.bit_length() - 1), case.kv_lens.index(most)
        before, behind = case.kv_lens[:at], case.kv_lens[at + 1 :]
        longer, later = (replace(case, kv_lens=(*before, most + more, *behind)) for more in (1, period))
        return period if not self.still(longer, fault.kind) and self.still(later, fault.kind) else 0

    def still(self, smaller: Any, kind: str) -> bool:
        """True if a smaller case has a fault of this kind, too."""
        self.emit({"at": [self.check.number, packed(smaller), "shrink"], "limit": max(self.limits.case, 10 * self.pace.expects(smaller))})
        return any(one.kind == kind for one in self.faults(smaller))

    def describe(self, fault: Fault, case: Any, origin: Any) -> Finding:
        """Returns the finding for a fault, with its script, public reports and repair."""
        # Raises the time limit, since making the script takes a few calls of the backend.
        self.emit({"limit": max(20.0, 30 * self.pace.expects(case)), "at": [self.check.number, packed(case), "shrink"]})
        finding = finding_of(self.check, self.adapter, fault, case, died=False, seconds=self.limits.case, origin=origin)
        if not is_broken(fault.got) and self.limits.repair:
            self.emit({"limit": 20.0, "at": [self.check.number, packed(case), "repair"]})  # the repair may have to compile a kernel
            repaired = try_repair(self.check, self.adapter, fault.kind, case, seconds=self.limits.repair)
            self.emit({"limit": self.limits.case, "at": [self.check.number, packed(case)]})
            finding.repair = asdict(repaired) if repaired else None
        return finding


def covered(case: Any, known: list[Cause]) -> str:
    """Returns the number of the check whose finding covers the case: the case contains everything that the finding's
    smallest case needs, and the cause's period, if it has one, predicts the fault for one of the sequences. Returns ""
    if no finding covers the case."""
    for cause in known:
        if contains(case, cause.smallest) and (not cause.period or any(has_period(length, cause) for length in case.kv_lens)):
            return cause.check
    return ""


def has_period(length: int, cause: Cause) -> bool:
    """True if the period of a cause predicts the fault for this number of keys."""
    most = max(cause.smallest.kv_lens)
    return length >= most and (length - most) % cause.period == 0


# Fields that a fault needs if their values in the fault's smallest case are not the defaults. Shrinking has tried the
# default of most of these fields, and has kept the default if the fault stayed.
NEEDED = ("causal", "window", "sinks", "softcap", "alibi", "k_scale", "v_scale", "scale", "longer", "beyond", "layout", "lengths", "pages", "num_splits",
          "magnitude", "shift", "peaks", "pad_rows", "pad_requests", "pad_length", "empty", "nan_lse", "payload", "after")  # fmt: skip


def lacks_needed(case: Any, smallest: Any) -> bool:
    """True if a field of NEEDED is set in the smallest case of a fault but not in this case."""
    plain = type(smallest)()
    return any(getattr(smallest, name) != getattr(plain, name) and getattr(case, name) == getattr(plain, name) for name in NEEDED if hasattr(plain, name))


def contains(case: Any, smallest: Any) -> bool:
    """True if a case has everything that the smallest case of a fault needs."""
    if type(case) is not type(smallest) or lacks_needed(case, smallest):
        return False
    if isinstance(case, StateCase):
        return smallest.rows <= case.rows and smallest.heads <= case.heads
    ratios = [one.heads // one.kv_heads for one in (case, smallest)]
    if ratios[1] > 1 and (ratios[0] == 1 or ratios[0] % ratios[1] and ratios[1] not in (2, 4, 8)):
        return False
    lengths = [(max(one.q_lens, default=0), max(one.kv_lens, default=0), len(one.q_lens), one.heads) for one in (smallest, case)]
    ends = [{length for length in one.kv_lens if length <= 0} for one in (smallest, case)]
    return all(small <= large for small, large in zip(*lengths)) and ends[0] <= ends[1]


def plain_kind(kind: str) -> str:
    """Returns the kind without the words about replays, earlier calls and other streams."""
    kind = kind.partition(", after a call of ")[0].partition(", beside a call of ")[0]
    return kind.partition(": ")[2] if kind.startswith("replay ") else kind


def is_refusal(fault: Fault) -> bool:
    """True if the fault is an exception that left the device's context usable."""
    return fault.kind.startswith("raises ") and not is_broken(fault.got)


def finding_of(check: Check, adapter: Adapter, fault: Fault, case: Any, died: bool, seconds: float, origin: Any = None) -> Finding:
    """Returns the finding for a fault, with its script. The script has not been run yet."""
    title = f"{check.number}, {check.title}: {fault.kind}: expected {fault.expected}, got {fault.got}"
    text = "" if died else short_script(check.faults(adapter), case, adapter, fault.kind, title)
    text = text or script(check.faults(adapter), case, adapter, title, died, seconds)
    needed = clauses_of_case(fault.kind, case)
    about = next((number for number in ("A4", "A8", "A13", "A14", "A16") if set(needed) & set(CHECKS[number].clauses)), check.number)
    return Finding(check.number, fault.kind, fault.severity, fault.expected, fault.got, packed(case), literal(case), text,
                   reports=reports_of(about, fault.kind), clauses=needed or clauses_of(check.clauses, fault.kind, adapter.form in STATES),
                   origin=packed(origin or case))  # fmt: skip


def packed(case: Any) -> dict[str, Any]:
    """Returns a case as data for JSON. Infinities become text."""
    values = {name: str(value) if isinstance(value, float) and math.isinf(value) else value for name, value in asdict(case).items()}
    return {"type": type(case).__name__, **values}


def unpacked(data: dict[str, Any]) -> Any:
    """Rebuilds the case from the data that `packed` returned."""
    kind = {"Case": Case, "StateCase": StateCase}[data["type"]]
    types = {one.name: one.type for one in fields(kind)}
    values = {name: frozen(float(value) if types[name] == "float" else value) for name, value in data.items() if name != "type"}
    return kind(**values)


def frozen(value: Any) -> Any:
    return tuple(map(frozen, value)) if isinstance(value, (list, tuple)) else value
