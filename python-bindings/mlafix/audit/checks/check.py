"""Defines the class of checks, and functions that make their cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ..cases import Adapter, Case, Fault, StateCase
from ..forms import is_planned

PAGED = ("paged", "ragged_paged")
ATTENTION = ("ragged", "dense", *PAGED)
STATES = ("merge", "reduce")

Groups = dict[str, list[Any]]
"""Cases in groups. The key of a group says what varies among its cases."""


def no_faults(_case: Any, _adapter: Adapter) -> list[Fault]:
    return []


def never(_adapter: Adapter) -> str:
    return ""


def only_in(forms: tuple[str, ...], why: str) -> Callable[[Adapter], str]:
    """Returns the function `Check.lacks` of a check that is applicable only to backends of these forms."""
    return lambda adapter: "" if adapter.form in forms else why


@dataclass(frozen=True)
class Check:
    """A check: a function that makes its cases, and functions that run a case and return its faults."""

    number: str
    title: str
    clauses: tuple[str, ...]  # numbers of clauses of docs/Contract.md
    varied: Callable[[Adapter], Groups]  # makes the cases; some may not fit the adapter's form
    of_attention: Callable[[Any, Adapter], list[Fault]]
    of_states: Callable[[Any, Adapter], list[Fault]] = no_faults
    lacks: Callable[[Adapter], str] = never  # returns why the check is not applicable, or ""
    # True if a backend may raise an exception for any case of the check. If false, it may raise only for views and for
    # other numbers of heads than the adapter's.
    refusable: bool = False
    must_return: bool = False  # True if an exception counts as an error, since a caller cannot know which calls raise it
    needs_gpu: bool = False

    def may_refuse(self, case: Any, adapter: Adapter) -> bool:
        """True if the backend may refuse the case with an exception."""
        is_view = case.layout != "dense" or getattr(case, "lengths", "dense") != "dense"
        heads = [(one.heads, getattr(one, "kv_heads", 0)) for one in (case, adapter)]
        return self.refusable or is_view or isinstance(case, Case) and heads[0] != heads[1]

    def faults(self, adapter: Adapter) -> Callable[[Any, Adapter], list[Fault]]:
        """Returns the function that runs a case of the adapter's form and returns its faults."""
        return self.of_states if adapter.form in STATES else self.of_attention

    def groups(self, adapter: Adapter) -> Groups:
        """Returns the groups of the check, with only those cases that fit the adapter, and without duplicates."""
        seen: set[Any] = set()
        found: Groups = {}
        for what, cases in self.varied(adapter).items():
            fitting = stated(cases, adapter) if adapter.form in STATES else fitted(cases, adapter)
            if new := [case for case in fitting if case not in seen]:
                found[what] = new
                seen.update(new)
        return found

    def cases(self, adapter: Adapter) -> list[Any]:
        """Returns all cases in the order of the groups."""
        return [case for cases in self.groups(adapter).values() for case in cases]


def base(adapter: Adapter, **fields: Any) -> Case:
    """Makes a case with the adapter's heads and dims."""
    return Case(**{"heads": adapter.heads, "kv_heads": adapter.kv_heads, "dim": adapter.dim, "value_dim": adapter.value_dim, **fields})


def fit(case: Case, adapter: Adapter) -> Case | None:
    """Changes the case to suit the adapter and returns it, or returns None if the adapter cannot run such a case."""
    if adapter.values_in_keys:  # such a cache has a fixed number of heads, and one scale for keys and values
        case = replace(case, kv_heads=adapter.kv_heads, v_scale=case.k_scale)
    if adapter.latent:  # a single tensor does not show how many of its elements are values, so the dims are fixed
        case = replace(case, dim=adapter.dim, value_dim=adapter.value_dim)
    if adapter.causal == "always" and adapter.form != "paged":
        case = replace(case, causal=True)
    if case.before != "none" and not {"out", "lse"} & set(adapter.takes):
        case = replace(case, before="none")
    if case.beyond == "inf" and adapter.kv_dtype == "float8_e4m3fn":  # this dtype has no infinity
        case = replace(case, beyond="nan")
    if case.heads % case.kv_heads or not has_options(case, adapter) or not has_layout(case, adapter):
        return None
    if adapter.form == "paged":
        return None if case.causal or case.pad_rows or 0 in case.q_lens else replace(case, q_lens=(1,) * len(case.q_lens))
    if adapter.form == "ragged":
        return None if min(case.kv_lens, default=0) < 0 else case
    if adapter.form == "ragged_paged":
        return case
    if case.pad_rows or case.pad_requests:
        return None
    case = replace(case, q_lens=(max(case.q_lens, default=0),) * len(case.q_lens))
    if "seq_lens_k" in adapter.takes:
        return case
    if case.beyond != "zero" or case.lengths != "dense" or min(case.kv_lens, default=0) < 0:
        return None
    return replace(case, kv_lens=case.kv_lens[:1] * len(case.kv_lens))


def has_options(case: Case, adapter: Adapter) -> bool:
    """True if the adapter takes all options that the case uses."""
    takes = set(adapter.takes)
    left, right = case.window
    wanted = {"sinks": case.sinks, "softcap": case.softcap, "alibi_slopes": case.alibi, "num_splits": case.num_splits,
              "k_scale": case.k_scale != 1, "v_scale": case.v_scale != 1 and not adapter.values_in_keys}  # fmt: skip
    if not adapter.kv_dtype and (case.k_scale, case.v_scale) != (1, 1):
        return False
    if any(needed and name not in takes for name, needed in wanted.items()) or case.causal and not adapter.causal:
        return False
    if not case.scale and (not adapter.default_scale or adapter.values_in_keys):  # the scale of MLA comes from the model, so it has no default
        return False
    if case.window != (-1, -1) and "window_size" not in takes and not ("window" in takes and left >= 0 and (left == right or case.causal and right >= 0)):
        return False
    if case.after == "streams" and (adapter.device == "cpu" or adapter.shares_workspace or is_planned(adapter.call)):
        return False
    return not case.longer or bool(takes & {"max_seqlen_q", "max_seqlen_k"})


def has_layout(case: Case, adapter: Adapter) -> bool:
    """True if tensors of the adapter's form can have the layout of the case."""
    if case.layout == "packed":
        return case.q_lens == case.kv_lens and adapter.form not in PAGED and case.value_dim in (0, case.dim) and not adapter.values_in_keys and not adapter.kv_dtype
    if case.layout == "values" and adapter.values_in_keys:
        return False
    return case.pages == "straight" or adapter.form in PAGED


def fitted(cases: Iterable[Case], adapter: Adapter) -> list[Case]:
    """Returns the cases, changed by `fit`. Leaves out those that the adapter cannot run, and duplicates."""
    return list(dict.fromkeys(case for one in cases if (case := fit(one, adapter)) is not None))


def befores(*cases: Case) -> list[Case]:
    """Returns each case three times: with given outputs that hold NaN, with given outputs that hold an earlier result,
    and without given outputs."""
    return [replace(case, before=before) for case in cases for before in ("nan", "stale", "none")]


def states(adapter: Adapter, **fields: Any) -> StateCase:
    """Makes a case of states with the adapter's heads and dim."""
    parts = 2 if adapter.form == "merge" else 3
    return StateCase(**{"heads": adapter.heads, "dim": adapter.dim, "parts": parts, **fields})


def stated(cases: Iterable[StateCase], adapter: Adapter) -> list[StateCase]:
    """Returns the cases of states, changed to suit the adapter. Leaves out those that it cannot run, and duplicates."""
    found = []
    for case in cases:
        if adapter.form == "reduce" and (case.layout not in ("dense", "heads", "odd") or case.heads % case.parts and case.rows):
            case = replace(case, layout="dense", heads=case.heads + -case.heads % case.parts)
        if case.before != "none" and not {"out", "lse"} & set(adapter.takes):
            case = replace(case, before="none")
        if case.after == "calls" and adapter.form == "reduce":  # each call of a reduce has new processes
            continue
        if case.after == "streams" and (adapter.device == "cpu" or adapter.shares_workspace):
            continue
        found.append(case)
    return list(dict.fromkeys(found))
