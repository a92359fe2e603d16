"""A0, A1, A2: the plain call, rows without keys, rows whose keys are all masked."""

from __future__ import annotations

from typing import Any

from ..cases import Adapter
from ..judge import check_call
from ..state_forms import check_states
from .check import ATTENTION, STATES, Check, base, befores, fitted, stated, states


def plain(adapter: Adapter) -> list[Any]:
    if adapter.form in STATES:
        return stated([states(adapter)], adapter)
    return fitted([base(adapter), base(adapter, causal=True, q_lens=(3, 1, 4), kv_lens=(5, 9, 4))], adapter)


def without_keys(adapter: Adapter) -> list[Any]:
    if adapter.form in STATES:
        last = states(adapter).parts - 1
        every = tuple((part, 1) for part in range(last + 1))
        patterns = [((0, 1),), ((last, 2),), every, (*every, (0, 3), (last, 0))]
        made = [states(adapter, empty=pattern, empty_lse=lse, payload="zero", before=before)
                for pattern in patterns for lse in (float("-inf"), float("inf")) for before in ("nan", "stale")]  # fmt: skip
        return stated(made, adapter)
    lengths = [(5, 0, 4), (0, 9, 4), (5, 9, 0), (0, 0, 0)]
    cases = [base(adapter, kv_lens=kv_lens) for kv_lens in lengths]
    cases += [base(adapter, q_lens=(1, 2), kv_lens=(0, 3), causal=True), base(adapter, q_lens=(2, 40), kv_lens=(0, 70))]
    return fitted([one for case in cases for one in befores(case)], adapter)


def all_masked(adapter: Adapter) -> list[Any]:
    cases = [base(adapter, q_lens=(7, 2, 5), kv_lens=(3, 2, 1), causal=True)] if adapter.alignment == "bottom-right" else []
    cases += [base(adapter, q_lens=(9, 2), kv_lens=(2, 3), window=1), base(adapter, q_lens=(9, 3), kv_lens=(2, 3), window=0, causal=True)]
    return fitted([one for case in cases for one in befores(case)], adapter)


def no_masks(adapter: Adapter) -> str:
    if adapter.form not in ATTENTION:
        return "no masks in this form"
    if adapter.form == "paged":
        return "one query for each request: none is masked"
    return "" if all_masked(adapter) else "no causal mask that ends at the last key, and no window"


CHECKS = [
    Check("A0", "a plain call", plain, check_call, check_states),
    Check("A1", "rows without keys", without_keys, check_call, check_states),
    Check("A2", "rows whose keys are all masked", all_masked, check_call, lacks=no_masks),
]
