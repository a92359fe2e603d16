"""The base class of checks, and the cases that they are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ..cases import Adapter, Case, Fault, StateCase

ATTENTION = ("ragged", "dense", "paged")
STATES = ("merge", "reduce")


def no_faults(_case: Any, _adapter: Adapter) -> list[Fault]:
    return []


def never(_adapter: Adapter) -> str:
    return ""


@dataclass(frozen=True)
class Check:
    """A check: cases, and a function that runs one and says what is wrong."""

    number: str
    title: str
    cases: Callable[[Adapter], list[Any]]
    of_attention: Callable[[Any, Adapter], list[Fault]]
    of_states: Callable[[Any, Adapter], list[Fault]] = no_faults
    lacks: Callable[[Adapter], str] = never  # why the check is not applicable, or ""
    refusable: bool = False  # a backend may refuse such calls with an exception
    needs_gpu: bool = False

    def faults(self, adapter: Adapter) -> Callable[[Any, Adapter], list[Fault]]:
        """The function that runs a case of the adapter's form and says what is wrong."""
        return self.of_states if adapter.form in STATES else self.of_attention


def base(adapter: Adapter, **fields: Any) -> Case:
    """A case with the adapter's heads and dims."""
    return Case(**{"heads": adapter.heads, "kv_heads": adapter.kv_heads, "dim": adapter.dim, **fields})


def fit(case: Case, adapter: Adapter) -> Case | None:
    """The case in the adapter's form, or None where that has no such case."""
    takes = adapter.takes
    if case.causal and not adapter.causal or case.window >= 0 and "window" not in takes or case.sinks and "sinks" not in takes:
        return None
    if case.before != "none" and not {"out", "lse"} & set(takes):
        case = replace(case, before="none")
    if case.num_splits and "num_splits" not in takes:
        return None
    if case.layout == "packed" and (case.q_lens != case.kv_lens or adapter.form == "paged" or adapter.values_in_keys):
        return None
    if adapter.form == "paged":
        if case.causal or case.window >= 0 or case.pad_rows or 0 in case.q_lens:
            return None
        return replace(case, q_lens=(1,) * len(case.q_lens))
    if case.pages != "straight" or adapter.form == "dense" and (case.pad_rows or case.pad_requests):
        return None
    if adapter.form == "ragged":
        return None if min(case.kv_lens, default=0) < 0 else case
    q_lens = (max(case.q_lens, default=0),) * len(case.q_lens)
    if "seq_lens_k" in takes:
        return replace(case, q_lens=q_lens)
    if case.beyond != "zero" or case.lengths != "dense" or min(case.kv_lens, default=0) < 0:
        return None
    return replace(case, q_lens=q_lens, kv_lens=case.kv_lens[:1] * len(case.kv_lens))


def fitted(cases: Iterable[Case], adapter: Adapter) -> list[Case]:
    """Those that the adapter's form has, each once."""
    return list(dict.fromkeys(case for one in cases if (case := fit(one, adapter)) is not None))


def befores(case: Case) -> list[Case]:
    """With outputs that hold NaN, that hold an earlier result, and that the backend allocates."""
    return [replace(case, before=before) for before in ("nan", "stale", "none")]


def states(adapter: Adapter, **fields: Any) -> StateCase:
    """A case of states with the adapter's heads and dim."""
    parts = 2 if adapter.form == "merge" else 3
    return StateCase(**{"heads": adapter.heads, "dim": adapter.dim, "parts": parts, **fields})


def stated(cases: Iterable[StateCase], adapter: Adapter) -> list[StateCase]:
    """Those that the adapter's form has, each once."""
    found = []
    for case in cases:
        if adapter.form == "reduce" and (case.layout not in ("dense", "heads") or case.heads % case.parts and case.rows):
            case = replace(case, layout="dense", heads=case.heads + -case.heads % case.parts)
        if case.before != "none" and not {"out", "lse"} & set(adapter.takes):
            case = replace(case, before="none")
        found.append(case)
    return list(dict.fromkeys(found))
