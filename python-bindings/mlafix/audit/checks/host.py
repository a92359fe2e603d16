"""A12 checks for calls that wait for the GPU, or that allocate memory."""

from __future__ import annotations

import time
from typing import Any

import torch

from ..cases import Adapter, Fault
from ..forms import invoke
from ..state_forms import arguments_of
from .check import ATTENTION, Check, Groups, base, only_in

SLEEP = 100_000_000  # number of cycles (about 50 ms) for which the GPU is kept busy before the call


def host_faults(case: Any, adapter: Adapter) -> list[Fault]:
    """Makes one call while the GPU is busy. A call that takes more than half of the busy time has waited for the GPU."""
    arguments, given = arguments_of(case, adapter)
    for _ in range(2):
        invoke(adapter, arguments, given)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    torch.cuda._sleep(SLEEP)
    torch.cuda.synchronize()
    busy = time.perf_counter() - begin
    before = torch.cuda.memory_stats().get("allocation.all.allocated", 0)
    torch.cuda._sleep(SLEEP)
    begin = time.perf_counter()
    invoke(adapter, arguments, given)
    took = time.perf_counter() - begin
    torch.cuda.synchronize()
    count = torch.cuda.memory_stats().get("allocation.all.allocated", 0) - before
    faults = []
    if took > busy / 2:
        faults.append(Fault("a call waits for the GPU", "a call that returns while the GPU is busy", f"{took * 1e3:.0f} ms of {busy * 1e3:.0f} ms", "warning"))
    if count and case.before != "none":
        faults.append(Fault("a call allocates", "no allocation with all outputs given", f"{count} allocations", "note"))
    return faults


def calls(adapter: Adapter) -> Groups:
    return {"a call": [base(adapter, q_lens=(4, 4, 4), kv_lens=(20, 40, 9))]}


CHECKS = [Check("A12", "host synchronisations and allocations in a call", ("C12",), calls, host_faults,
                lacks=only_in(ATTENTION, "merges are not counted"), needs_gpu=True)]  # fmt: skip
