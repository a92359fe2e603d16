"""Names the clauses of docs/Contract.md, and reads the JSON in which a backend claims some of them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..errors import ArgumentError
from .cases import Case

CONTRACT = "1.0"
"""The version of docs/Contract.md that the checks measure."""

CLAUSES: dict[str, str] = {
    "C1": "Rows without keys", "C2": "Rows that see no key", "C3": "Padding", "C4": "What is not read", "C5": "The lse", "C6": "The split identity",
    "C7": "Replays", "C8": "Error", "C9": "Memory", "C10": "One row, one result", "C11": "Ends", "C12": "The host", "C13": "Masks and windows",
    "C14": "Scores", "C15": "Independent calls", "C16": "Given outputs", "C17": "Quantised caches", "C18": "Hints",
    "M1": "The identity", "M2": "All sides empty", "M3": "One side live", "M4": "States without weight", "M5": "NaN in a live lse",
    "M6": "Weights and sums", "M7": "One base", "M8": "Outputs that are inputs", "M9": "A sink counts once",
}  # fmt: skip
"""The name of each clause by its number. In docs/Contract.md the anchor of a clause is its number in lower case."""

# (text, clauses of attention, clauses of merges): the clauses that a fault breaks if its kind contains the text.
OF_KIND: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("a given ", ("C16",), ("M8",)),
    (" was written", ("C9",), ("M8",)),
    ("padded rows", ("C3",), ()),
    ("of the lse", ("C5",), ("M7",)),
    ("sinks in the lse", ("C5",), ("M9",)),
    ("no lse", ("C5",), ("M7",)),
    ("memory grows", ("C12",), ("C12",)),
    ("window", ("C13",), ()),
    ("causal mask is ignored", ("C13",), ()),
    ("k_scale", ("C17",), ()),
    ("v_scale", ("C17",), ()),
    ("ignored", ("C14",), ()),
    ("default scale", ("C14",), ()),
    ("bits of a row", ("C10",), ("C10",)),
    ("equal calls differ", ("C10",), ("C10",)),
    ("rows without keys", ("C1",), ()),
    ("all masked", ("C2",), ()),
    ("empty on all sides", (), ("M1", "M2")),
    ("one live side", (), ("M3",)),
    ("NaN lse", (), ("M5",)),
    ("the merge of", ("C6",), ()),
)


def clauses_in(check: tuple[str, ...], merges: bool) -> list[str]:
    """Returns those clauses of a check that are about merges (M1 to M9) or, if not `merges`, about attention (C1 to
    C18). Returns all clauses of the check if there are none."""
    return [clause for clause in check if (clause[0] == "M") == merges] or list(check)


# OF_ROWS has the texts of OF_KIND that only say which rows are wrong. In checks whose first clause is in OF_ROWS_IN,
# these texts decide the clauses of a fault, as others do. Other checks vary more than rows, and the rows may be wrong
# because of that, so there a fault breaks the clauses of the check.
OF_ROWS = ("rows without keys", "all masked")
OF_ROWS_IN = ("C1", "C2", "C5", "C8")


# (field of Case, clause): wrong live rows break the clause if the field differs from its default in the smallest
# failing case.
OF_CASE: tuple[tuple[str, str], ...] = (
    ("beyond", "C4"), ("layout", "C9"), ("lengths", "C9"), ("k_scale", "C17"), ("num_splits", "C18"), ("longer", "C18"), ("window", "C13"), ("sinks", "C14"),
    ("softcap", "C14"), ("alibi", "C14"), ("scale", "C14"),
)  # fmt: skip


def clauses_of_case(kind: str, case: Any) -> list[str]:
    """Returns a list with the clause of the first field in OF_CASE that differs from its default in `case`, the
    smallest failing case. Returns an empty list if there is no such field, or if `kind` is not about live rows."""
    if not isinstance(case, Case) or kind not in ("live rows", "lse of live rows"):
        return []
    plain = Case()
    return [clause for name, clause in OF_CASE if getattr(case, name) != getattr(plain, name)][:1]


def clauses_of(check: tuple[str, ...], kind: str, merges: bool) -> list[str]:
    """Returns the clauses that a fault breaks. This is C15 if the fault appears after or beside another call. Otherwise
    these are at most two clauses that OF_KIND has for `kind`, or the clauses of the check if OF_KIND has none."""
    named = [(words, states if merges else attention) for words, attention, states in OF_KIND if words in kind.partition(", after a call")[0].partition(", beside a call")[0]]
    own = [clause for words, clauses in named if words not in OF_ROWS or check[0] in OF_ROWS_IN for clause in clauses]
    if "after a call" in kind or "beside a call" in kind:
        return ["C15"]
    return list(dict.fromkeys(own[:2])) or clauses_in(check, merges)


@dataclass(frozen=True)
class Waiver:
    """A known finding. Reports show it with its reason and do not count it."""

    reason: str
    check: str = ""  # number of a check; "": any check
    clause: str = ""
    kind: str = ""  # a text that the finding's kind contains; "": any kind
    case: dict[str, Any] = field(default_factory=dict)  # fields that the finding's case must have, with their values

    def covers(self, finding: Any) -> bool:
        """True if the waiver applies to the finding."""
        return (self.check in ("", finding.check) and (not self.clause or self.clause in finding.clauses) and self.kind in finding.kind
                and all(finding.case.get(name) == value for name, value in self.case.items()))  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """The clauses that a backend claims, and its exceptions with their reasons."""

    clauses: tuple[str, ...] = tuple(CLAUSES)
    exceptions: tuple[Waiver, ...] = ()
    contract: str = CONTRACT
    backend: str = ""

    def names(self, clause: str) -> bool:
        """True if the claim lists the clause but not all clauses."""
        return clause in self.clauses and set(self.clauses) != set(CLAUSES)

    def waives(self, finding: Any) -> str:
        """Returns the reason why a finding does not count. Returns "" if it counts."""
        reasons = [one.reason for one in self.exceptions if one.covers(finding)]
        if not reasons and finding.clauses and not set(finding.clauses) & set(self.clauses):
            reasons = ["not claimed"]
        return reasons[0] if reasons else ""

    def to_dict(self) -> dict[str, Any]:
        """Returns the claim as data for JSON."""
        return dict(json.loads(json.dumps(asdict(self))))

    @staticmethod
    def from_json(text: str) -> Claim:
        """Parses a claim from JSON: {"contract": "1.0", "clauses": ["C1", …], "exceptions": [{"check", "clause", "kind", "case", "reason"}]}.

        If "clauses" is missing, the backend claims all clauses, and the text only lists known findings. Raises
        ArgumentError.
        """
        try:
            data = json.loads(text)
            if not isinstance(data, dict):
                raise ArgumentError(f"claim: expected a JSON object, got {type(data).__name__}")
            if unknown := sorted(set(data) - {one.name for one in fields(Claim)}):
                raise ArgumentError(f"claim: expected one of the keys clauses, exceptions, contract, backend, got the key {unknown[0]!r}")
            if data.get("contract", CONTRACT) != CONTRACT:
                raise ArgumentError(f"claim: expected version {CONTRACT} of the contract, got {data['contract']!r}")
            if unknown := [clause for clause in data.get("clauses", ()) if clause not in CLAUSES]:
                raise ArgumentError(f"claim: expected clauses of docs/Contract.md, got {unknown[0]!r}")
            exceptions = tuple(Waiver(**{"reason": "", **one}) for one in data.get("exceptions", ()))
        except ArgumentError:  # ArgumentError is a ValueError, which the next clause would catch
            raise
        except (ValueError, TypeError, AttributeError) as error:
            members = 'an object with "clauses" and "exceptions", each exception with "reason" and some of "check", "clause", "kind" and "case"'
            raise ArgumentError(f"claim: expected the JSON of {members}, got {type(error).__name__}: {error}") from error
        for one in exceptions:
            if not one.reason or not (one.check or one.clause or one.kind):
                given = json.dumps({name: value for name, value in asdict(one).items() if value})
                raise ArgumentError(f'claim: expected a "reason" and a "check", "clause" or "kind" in each exception, got {given}')
        return Claim(tuple(data.get("clauses", CLAUSES)), exceptions, CONTRACT, str(data.get("backend", "")))
