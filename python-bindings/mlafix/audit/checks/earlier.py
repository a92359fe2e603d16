"""A15 checks that a call does not depend on earlier calls through plans, workspaces or flags, and that memory does not
grow."""

from __future__ import annotations

import gc
import math
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import torch

from ..cases import Adapter, Case, Fault, StateCase, make_values
from ..forms import invoke, is_planned, made, planned, poisoned_memory, run
from ..judge import check_call, compare
from ..oracle import UNIT, reference
from ..state_forms import arguments_of, check_states, run_states
from .check import STATES, Check, Groups, base, fitted, states
from .graphs import got_of


OPTIONS: dict[str, dict[str, Any]] = {
    "scale": {"scale": 2.3}, "causal": {"causal": True}, "window": {"window": (1, 1)}, "sinks": {"sinks": True}, "softcap": {"softcap": 3.0},
    "alibi": {"alibi": True}, "splits": {"num_splits": 3}, "k_scale": {"k_scale": 0.37, "v_scale": 1.9},
}  # fmt: skip
WORDS = {"scale": "another scale", "causal": "another mask", "window": "another window", "splits": "other splits", "k_scale": "other scales of the cache",
         **{name: f"other {name}" for name in ("lengths", "sizes", "values", "sinks")}, "softcap": "another softcap", "alibi": "other slopes"}  # fmt: skip


def earlier_calls(case: Case) -> list[Case]:
    """Returns the calls to make before the case's own call. `case.after` names how they differ from it."""
    n = len(case.q_lens)
    other = replace(case, ids=tuple(range(60, 60 + n)), after="")
    if case.after == "lengths":  # reorders the lengths, so that all shapes are equal
        return [replace(other, q_lens=case.q_lens[1:] + case.q_lens[:1], kv_lens=case.kv_lens[1:] + case.kv_lens[:1])]
    if case.after == "sizes":
        return [replace(other, q_lens=case.q_lens * 4, kv_lens=tuple(9 * length for length in case.kv_lens) * 4, ids=()),
                replace(other, q_lens=case.q_lens[:1], kv_lens=(1,), ids=(61,)), replace(other, heads=2 * case.heads, kv_heads=2 * case.kv_heads)]  # fmt: skip
    return [replace(other, **OPTIONS.get(case.after, {}))]


def after_others(case: Case, adapter: Adapter) -> list[Fault]:
    """Checks a call after other calls, or beside a concurrent one, as `case.after` says. Ignores the results of earlier
    calls."""
    if case.after == "calls":
        return growth(case, adapter)
    if case.after == "streams":
        return overlapping(case, adapter)
    for one in fitted(earlier_calls(case), adapter):
        with suppress(Exception):  # the backend may refuse an earlier call
            run(one, adapter, make_values(one, adapter))
    checked = replace(adapter, call=SecondRun(adapter)) if is_planned(adapter.call) else adapter
    return [replace(fault, kind=f"{fault.kind}, after a call of {WORDS[case.after]}") for fault in check_call(case, checked)]


SLEEP = 5_000_000  # number of cycles (about 3 ms) for which both streams wait, so that their calls begin together


def overlapping(case: Case, adapter: Adapter) -> list[Fault]:
    """Checks calls that run on two streams at the same time, each with its own tensors."""
    cases = [replace(case, ids=tuple(range(first, first + len(case.q_lens)))) for first in (0, 60)]
    calls, streams = [arguments_of(one, adapter) for one in cases], [torch.cuda.Stream() for _ in cases]
    torch.cuda.synchronize()
    for _ in range(10):
        results = []
        for call, stream in zip(calls, streams):
            with torch.cuda.stream(stream):
                torch.cuda._sleep(SLEEP)
                results.append(invoke(adapter, *call))
        torch.cuda.synchronize()
        for one, result in zip(cases, results):
            if faults := compare(got_of(result, adapter), reference(one, adapter, make_values(one, adapter)), adapter):
                return [replace(fault, kind=f"{fault.kind}, beside a call of another stream") for fault in faults]
    return []


def takes(adapter: Adapter, option: str) -> bool:
    """True if the backend takes `option`, a key of OPTIONS."""
    return bool(fitted([base(adapter, **OPTIONS[option])], adapter)) and (option != "causal" or adapter.causal is True)


class SecondRun:
    """Runs a plan twice, as the layers of a model do. The first run has the rows of q in reverse order."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter

    def __call__(self, *arguments: torch.Tensor, **given: Any) -> Any:
        rest = planned(self.adapter, arguments, given)
        first = {name: value.clone() if name in ("out", "lse") else value for name, value in rest.items()}
        backend = made(self.adapter.call)
        backend.run(arguments[0].flip(0), *arguments[1:], **first)
        return backend.run(*arguments, **rest)


def states_after_others(case: StateCase, adapter: Adapter) -> list[Fault]:
    """Checks a merge after other merges."""
    if case.after == "calls":
        return growth(case, adapter)
    sizes = {"sizes": [{"rows": 4 * case.rows}, {"rows": 1}, {"heads": 2 * case.heads}], "values": [{"first": 40}]}[case.after]
    for changes in sizes if adapter.form != "reduce" else ():  # the ranks of a reduce make the earlier call themselves
        run_states(replace(case, **changes), adapter)  # type: ignore[arg-type]
    return [replace(fault, kind=f"{fault.kind}, after a call of {WORDS[case.after]}") for fault in check_states(case, adapter)]


@contextmanager
def quick_collection() -> Iterator[None]:
    """Exempts existing objects from garbage collection inside the block. A collection is then quick, although torch
    alone has about 1e5 objects."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def in_use(device: str) -> tuple[int, int]:
    """Returns the bytes in use by the process or by the device's allocator, and the number of Python's memory blocks."""
    gc.collect()
    if device != "cpu":
        return torch.cuda.memory_allocated(), sys.getallocatedblocks()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize(), sys.getallocatedblocks()


def out_of(result: Any) -> torch.Tensor:
    return result[0] if isinstance(result, (tuple, list)) else result


def distance(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Returns the largest difference between two results, divided by the largest element of the second. The difference
    is infinite where only one of them is NaN."""
    away = torch.where(one.isnan() & other.isnan(), 0.0, (one.double() - other.double()).abs()).nan_to_num(nan=math.inf)
    return away.max() / other.double().nan_to_num().abs().max().clamp(min=1e-30)


def growth(case: Any, adapter: Adapter) -> list[Fault]:
    """Returns a fault if one of 200 equal calls gives another result, or if memory grows in both the third and the
    fourth quarter of the calls."""
    arguments, given = arguments_of(case, adapter)
    seen: list[tuple[int, int]] = []
    with poisoned_memory(), quick_collection():
        first = out_of(invoke(adapter, arguments, given)).clone()
        size, differing = first.numel() * first.element_size(), torch.zeros((), dtype=torch.float64, device=first.device)
        for _ in range(4):
            for _ in range(50):
                differing = torch.maximum(differing, distance(out_of(invoke(adapter, arguments, given)), first))
            seen.append(in_use(adapter.device))
    most = 2 * torch.finfo(first.dtype).eps + 2 * (case.dim + 8) * UNIT  # allows another order of summation
    if float(differing) > most:
        return [Fault("equal calls differ", f"results that differ by rounding, {most:.3g} of the largest", f"{float(differing):.3g}, in 200 calls")]
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
        # Each case has shapes that no other case has. The earlier call, with the other option, is thus the first call
        # with these shapes, and a backend that keeps one kernel for each shape keeps the kernel of that call.
        "other options": [base(adapter, q_lens=(2, 5, 3 + i), kv_lens=(17 + 16 * i, 9, 4), after=option) for i, option in enumerate(OPTIONS) if takes(adapter, option)],
        "other values": [base(adapter, q_lens=(5, 4, 3), kv_lens=(9, 4, 50), after="values"), base(adapter, q_lens=(1, 4, 3), kv_lens=(9, 0, 70), after="values")],
        "200 calls": [base(adapter, q_lens=(64, 64), kv_lens=(5, 9), after="calls")],
        "a call of another stream": [base(adapter, q_lens=(1, 1), kv_lens=(3000, 700), after="streams"), base(adapter, **lengths, after="streams")],
    }


CHECKS = [Check("A15", "calls do not depend on earlier ones", ("C15", "C12"), sequences, after_others, states_after_others, must_return=True)]
