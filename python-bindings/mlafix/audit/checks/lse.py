"""A5: the lse: base, layout, value of an empty row, sinks, the same on every path through the backend."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from ..cases import Adapter, Case, Fault, make_values
from ..forms import run
from ..judge import compare, natural
from ..oracle import reference
from ..state_forms import check_states
from .check import ATTENTION, STATES, Check, base, fitted, stated, states


def closest(lse: torch.Tensor, want: torch.Tensor, error: torch.Tensor) -> str:
    """The base whose lse this is: "e", "2" or ""."""
    live = want > -math.inf
    for name, factor in (("e", 1.0), ("2", math.log(2))):
        if bool(((lse.double() * factor - want).abs() <= error)[live].all()):
            return name
    return ""


def check_lse(case: Case, adapter: Adapter) -> list[Fault]:
    """The lse of one call, read in both bases and both layouts, with and without sinks."""
    values = make_values(case, adapter)
    got, want = run(case, adapter, values), reference(case, adapter, values)
    n, heads = want.lse.shape
    if got.lse is None or not n:
        return []
    readings = {adapter.lse_layout: got.lse}
    if adapter.form != "dense" and got.raw_lse is not None and got.raw_lse.dim() == 2:
        raw = got.raw_lse.cpu()
        readings = {**readings, **{"nh": raw, "hn": raw.T}}
    for layout, lse in readings.items():
        if lse.shape[0] < n or lse.shape[1] != heads:
            continue
        base_ = closest(lse[:n], want.lse, want.lse_error)
        if base_ and base_ != adapter.lse_base:
            return [Fault("base of the lse", f"base {adapter.lse_base}", f"base {base_}, in this call")]
        if base_ and layout != adapter.lse_layout:
            return [Fault("layout of the lse", adapter.lse_layout, layout)]
        if base_:
            break
    if case.sinks:
        other = reference(case, replace(adapter, lse_has_sinks=not adapter.lse_has_sinks), values)
        if closest(natural(got.lse[:n], adapter), other.lse, other.lse_error) == "e":
            words = ("without sinks", "with sinks") if adapter.lse_has_sinks else ("with sinks", "without sinks")
            return [Fault("sinks in the lse", f"an lse {words[1]}", f"one {words[0]}")]
        plain = reference(replace(case, sinks=False), adapter, replace(values, sinks=None))
        if bool(((got.out[:n].double() - plain.out).abs() <= plain.out_error).all()):
            return [Fault("sinks are ignored", "rows with sinks in their softmax", "rows without")]
    return compare(got, want, case, adapter)


def paths(adapter: Adapter) -> list[Any]:
    if adapter.form in STATES:
        return stated([states(adapter, magnitude=4.0), states(adapter, empty=((0, 1), (1, 1), (2, 1))[: states(adapter).parts])], adapter)
    cases = [base(adapter), base(adapter, q_lens=(1, 1), kv_lens=(40, 7)), base(adapter, q_lens=(33, 2), kv_lens=(70, 2), causal=True),
             base(adapter, kv_heads=adapter.heads), base(adapter, q_lens=(4, 3), kv_lens=(4, 3), layout="packed"),
             base(adapter, layout="heads"), base(adapter, kv_lens=(5, 0, 4)), base(adapter, sinks=True), base(adapter, window=2),
             base(adapter, num_splits=1), base(adapter, num_splits=2, kv_lens=(40, 70, 5)), base(adapter, before="none")]  # fmt: skip
    return fitted(cases, adapter)


def no_lse(adapter: Adapter) -> str:
    return "" if adapter.returns_lse or adapter.form not in ATTENTION else "the backend returns no lse"


CHECKS = [Check("A5", "the lse: base, layout, empty rows, sinks", paths, check_lse, check_states, no_lse)]
