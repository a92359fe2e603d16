"""A5 checks the lse on every path through a backend: its base and layout, its value for an empty row, and whether it
includes sinks."""

from __future__ import annotations

import math
from dataclasses import replace
import torch

from ..cases import Adapter, Case, Fault, Got, Values
from ..forms import run
from ..judge import compare, expected, natural
from ..oracle import reference
from ..state_forms import check_states
from .check import STATES, Check, Groups, base, states


def closest(lse: torch.Tensor, want: torch.Tensor, error: torch.Tensor) -> str:
    """Returns the base in which an lse is right, "e" or "2". Returns "" if it is right in neither."""
    live = want > -math.inf
    for name, factor in (("e", 1.0), ("2", math.log(2))):
        if bool(((lse.double() * factor - want).abs() <= error)[live].all()):
            return name
    return ""


def check_lse(case: Case, adapter: Adapter) -> list[Fault]:
    """Checks the results of one call. Tries both bases and both layouts for the lse, and tests whether the backend
    ignored an option."""
    values, want = expected(case, adapter)
    got = run(case, adapter, values)
    n, heads = want.lse.shape
    if n and got.lse is None and adapter.returns_lse:
        return [Fault("no lse", "an lse, as the adapter says", "None")]
    readings = {adapter.lse_layout: got.lse}
    if adapter.form != "dense" and got.raw_lse is not None and got.raw_lse.dim() == 2:
        raw = got.raw_lse.cpu()
        readings |= {"nh": raw, "hn": raw.T}
    for layout, lse in readings.items():
        if lse is None or not n or lse.shape[0] < n or lse.shape[1] != heads:
            continue
        base_ = closest(lse[:n], want.lse, want.lse_error)
        if base_ and base_ != adapter.lse_base:
            return [Fault("base of the lse", f"base {adapter.lse_base}", f"base {base_}, in this call")]
        if base_ and layout != adapter.lse_layout:
            return [Fault("layout of the lse", adapter.lse_layout, layout)]
        if base_:
            break
    found = compare(got, want, adapter)
    if not any("rows" in fault.kind for fault in found):
        return found
    if case.sinks and got.lse is not None:
        other = reference(case, replace(adapter, lse_has_sinks=not adapter.lse_has_sinks), values)
        if closest(natural(got.lse[:n], adapter), other.lse, other.lse_error) == "e":
            words = ("without sinks", "with sinks") if adapter.lse_has_sinks else ("with sinks", "without sinks")
            return [Fault("sinks in the lse", f"an lse {words[1]}", f"one {words[0]}")]
    return ignored(case, adapter, values, got) or found


def ignored(case: Case, adapter: Adapter, values: Values, got: Got) -> list[Fault]:
    """Returns a fault if the results are those of a call without one of the case's options, with a window that is off
    by one, with a default scale of 1, or with k_scale and v_scale swapped."""
    scale = ("scale is ignored", {"scale": 1.0}) if case.scale else ("the default scale is 1", {"scale": case.dim**0.5})
    others = [("sinks are ignored", {"sinks": False}), scale, ("softcap is ignored", {"softcap": 0.0}),
              ("alibi_slopes are ignored", {"alibi": False}), ("the window is ignored", {"window": (-1, -1)}), ("the causal mask is ignored", {"causal": False}),
              ("k_scale is ignored", {"k_scale": 1.0}), ("v_scale is ignored", {"v_scale": 1.0}),
              ("k_scale and v_scale are swapped", {"k_scale": case.v_scale, "v_scale": case.k_scale})]  # fmt: skip
    for left, right in ((-1, -1), (-1, 0), (0, -1), (1, 1), (1, 0), (0, 1)):
        window = tuple(size + step if size >= 0 else size for size, step in zip(case.window, (left, right)))
        others += [("the window is off by one", {"window": window})] if all(new >= 0 or old < 0 for new, old in zip(window, case.window)) else []
    for kind, changes in others:
        other = replace(case, **changes)  # type: ignore[arg-type]
        if other == case:
            continue
        want = reference(other, adapter, replace(values, sinks=values.sinks if other.sinks else None))
        if all(fault.kind.endswith("was written") for fault in compare(got, want, adapter)):
            return [Fault(kind, "a result that follows it", "that of a call without it" if kind.endswith("ignored") else "that of such a call")]
    return []


def paths(adapter: Adapter) -> Groups:
    if adapter.form in STATES:
        return {"magnitudes and empty parts": [states(adapter, magnitude=4.0), states(adapter, empty=((0, 1), (1, 1), (2, 1))[: states(adapter).parts])]}
    return {
        "decode and prefill": [base(adapter), base(adapter, q_lens=(1, 1), kv_lens=(40, 7)), base(adapter, q_lens=(33, 2), kv_lens=(70, 2), causal=True),
                               base(adapter, q_lens=(1, 1), kv_lens=(5, 9), causal=True), base(adapter, q_lens=(1, 1, 1), kv_lens=(600, 3, 70))],
        "heads": [base(adapter, kv_heads=adapter.heads), base(adapter, heads=adapter.kv_heads)],
        "layouts": [base(adapter, q_lens=(4, 3), kv_lens=(4, 3), layout="packed"), base(adapter, layout="heads")],
        "empty rows": [base(adapter, kv_lens=(5, 0, 4)), base(adapter, kv_lens=(5, 0, 4), sinks=True)],
        "sinks, windows and splits": [base(adapter, sinks=True), base(adapter, window=(2, 2)), base(adapter, num_splits=1),
                                      base(adapter, num_splits=2, kv_lens=(40, 70, 5))],
        "outputs": [base(adapter, before="none"), base(adapter, before="stale")],
    }  # fmt: skip


CHECKS = [Check("A5", "the lse on every path: base, layout, empty rows, sinks", ("C5", "C16", "M7"), paths, check_lse, check_states)]
