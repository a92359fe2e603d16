"""A8: strides: outputs that are inputs, gaps between heads, slices of a packed tensor, lengths that are a column."""

from __future__ import annotations

from typing import Any

from ..cases import Adapter
from ..judge import check_call
from ..state_forms import check_states
from .check import STATES, Check, base, fitted, stated, states


def views(adapter: Adapter) -> list[Any]:
    if adapter.form in STATES:
        layouts = ("heads", "in place", "in place 2") if {"out", "lse"} <= set(adapter.takes) else ("heads",)
        made = [states(adapter, layout=layout, dim=dim) for layout in layouts for dim in (adapter.dim, 192)]
        return stated([*made, states(adapter, layout=layouts[-1], empty=((0, 1), (1, 2)))], adapter)
    cases = [base(adapter, layout="heads"), base(adapter, q_lens=(4, 3), kv_lens=(4, 3), layout="packed", causal=True),
             base(adapter, lengths="strided"), base(adapter, lengths="strided", kv_lens=(9, 20, 33))]
    return fitted(cases, adapter)


CHECKS = [Check("A8", "strided and packed tensors, outputs that are inputs", views, check_call, check_states, refusable=True)]
