"""A15: calls that do not depend on earlier ones: plans, workspaces, flags, and memory that grows."""

from __future__ import annotations

import gc
import sys
from dataclasses import replace
from typing import Any

import torch

from ..cases import Adapter, Case, Fault, StateCase, make_values
from ..forms import invoke, is_planned, made, planned, poisoned_memory, run
from ..judge import check_call
from ..state_forms import arguments_of, check_states, run_states
from .check import STATES, Check, Groups, base, fitted, states


def earlier_calls(case: Case) -> list[Case]:
    """The calls that come before that of a case, by what they have other."""
    n = len(case.q_lens)
    other = replace(case, ids=tuple(range(60, 60 + n)), after="")
    if case.after == "lengths":  # as many tokens, and the same longest sequence: all shapes are equal
        return [replace(other, q_lens=case.q_lens[1:] + case.q_lens[:1], kv_lens=case.kv_lens[1:] + case.kv_lens[:1])]
    if case.after == "sizes":
        return [replace(other, q_lens=case.q_lens * 4, kv_lens=tuple(9 * length for length in case.kv_lens) * 4, ids=()),
                replace(other, q_lens=case.q_lens[:1], kv_lens=(1,), ids=(61,)), replace(other, heads=2 * case.heads, kv_heads=2 * case.kv_heads)]  # fmt: skip
    if case.after == "options":
        changes: list[dict[str, Any]] = [{"scale": 2.3}, {"causal": not case.causal}, {"window": (1, 1)}, {"sinks": True}, {"softcap": 3.0}, {"num_splits": 3}]
        return [replace(other, **one) for one in changes]
    return [other]


def after_others(case: Case, adapter: Adapter) -> list[Fault]:
    """A call after others, whose numbers do not matter."""
    if case.after == "calls":
        return growth(case, adapter)
    for one in fitted(earlier_calls(case), adapter):
        run(one, adapter, make_values(one, adapter))
    checked = replace(adapter, call=SecondRun(adapter)) if is_planned(adapter.call) else adapter
    return [replace(fault, kind=f"{fault.kind}, after a call of other {case.after}") for fault in check_call(case, checked)]


class SecondRun:
    """A planned backend whose plan is run twice, as the layers of a model do, with other values first."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter

    def __call__(self, *arguments: torch.Tensor, **given: Any) -> Any:
        rest = planned(self.adapter, arguments, given)
        first = {name: value.clone() if name in ("out", "lse") else value for name, value in rest.items()}
        backend = made(self.adapter.call)
        backend.run(arguments[0].flip(0), *arguments[1:], **first)
        return backend.run(*arguments, **rest)


def states_after_others(case: StateCase, adapter: Adapter) -> list[Fault]:
    """Likewise of merges."""
    if case.after == "calls":
        return growth(case, adapter)
    sizes = {"sizes": [{"rows": 4 * case.rows}, {"rows": 1}, {"heads": 2 * case.heads}], "values": [{"first": 40}]}[case.after]
    for changes in sizes:
        run_states(replace(case, **changes), adapter)  # type: ignore[arg-type]
    return [replace(fault, kind=f"{fault.kind}, after a call of other {case.after}") for fault in check_states(case, adapter)]


def in_use(device: str) -> tuple[int, int]:
    """Bytes of the process (of the device's allocator), and objects of Python."""
    gc.collect()
    if device != "cpu":
        return torch.cuda.memory_allocated(), sys.getallocatedblocks()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096, sys.getallocatedblocks()


def growth(case: Any, adapter: Adapter) -> list[Fault]:
    """A fault if each of 200 equal calls takes memory that it does not give back: in the third and in the fourth quarter."""
    arguments, given = arguments_of(case, adapter)
    seen = []
    with poisoned_memory():
        result = invoke(adapter, arguments, given)
        out = result[0] if isinstance(result, (tuple, list)) else result
        size = out.numel() * out.element_size()
        del result, out
        for _ in range(4):
            for _ in range(50):
                invoke(adapter, arguments, given)
            seen.append(in_use(adapter.device))
    bytes_, objects = ([last - first for first, last in zip(column[1:], column[2:])] for column in zip(*seen))
    if min(objects) >= 50 or min(bytes_) > 25 * size:
        return [Fault("memory grows with each call", "as much memory after 200 equal calls as after 100",
                      f"{sum(bytes_) / 100:.0f} bytes and {sum(objects) / 100:.1f} objects of Python more a call")]  # fmt: skip
    return []


def sequences(adapter: Adapter) -> Groups:
    if adapter.form in STATES:
        return {"other sizes": [states(adapter, after="sizes")], "other values": [states(adapter, after="values")],
                "200 calls": [states(adapter, rows=64, dim=64, after="calls")]}  # fmt: skip
    lengths = {"q_lens": (1, 4, 3), "kv_lens": (9, 4, 30)}
    return {
        "other lengths of the same shapes": [base(adapter, **lengths, after="lengths", before=before) for before in ("nan", "none")]
        + [base(adapter, **lengths, causal=True, after="lengths"), base(adapter, q_lens=(1, 1, 1), kv_lens=(70, 9, 3), after="lengths")],
        "other sizes": [base(adapter, **lengths, after="sizes"), base(adapter, q_lens=(1, 1), kv_lens=(600, 30), after="sizes")],
        "other options": [base(adapter, **lengths, after="options"), base(adapter, **lengths, causal=True, after="options")],
        "other values": [base(adapter, **lengths, after="values"), base(adapter, q_lens=(1, 4, 3), kv_lens=(9, 0, 4), after="values")],
        "200 calls": [base(adapter, q_lens=(64, 64), kv_lens=(5, 9), after="calls")],
    }


CHECKS = [Check("A15", "calls do not depend on earlier ones", ("C15", "C12"), sequences, after_others, states_after_others, must_return=True)]
