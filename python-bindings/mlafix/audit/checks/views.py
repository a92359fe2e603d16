"""A8 checks strides: outputs that alias inputs, gaps between heads, slices of a packed tensor, lengths in a column of a
matrix."""

from __future__ import annotations

from ..cases import Adapter
from ..judge import check_call
from ..state_forms import check_states
from .check import STATES, Check, Groups, base, states


def views(adapter: Adapter) -> Groups:
    if adapter.form in STATES:
        in_place = ("in place", "in place 2") if {"out", "lse"} <= set(adapter.takes) else ()
        dims = (adapter.dim, 192)
        return {"gaps between heads": [states(adapter, layout="heads", dim=dim) for dim in dims],
                "pointers of the least alignment": [states(adapter, layout="odd", dim=dim) for dim in dims],
                "outputs that are inputs": [states(adapter, layout=layout, dim=dim, empty=empty) for layout in in_place for dim in dims
                                            for empty in ((), ((0, 1), (1, 2)))]}  # fmt: skip
    return {
        "gaps between heads": [base(adapter, layout="heads"), base(adapter, layout="heads", q_lens=(1, 1, 1), kv_lens=(70, 9, 33))],
        "strides of v alone": [base(adapter, layout="values")],
        "slices of one tensor": [base(adapter, q_lens=(4, 3), kv_lens=(4, 3), layout="packed", causal=causal) for causal in (True, False)],
        "pointers and heads of the least alignment": [base(adapter, layout="odd"), base(adapter, layout="odd", q_lens=(1, 1, 1), kv_lens=(70, 9, 33))],
        "strides of lengths and tables": [base(adapter, lengths="strided"), base(adapter, lengths="strided", kv_lens=(9, 20, 33))],
    }


CHECKS = [Check("A8", "strided and packed tensors, outputs that are inputs", ("C9", "M8"), views, check_call, check_states, refusable=True)]
