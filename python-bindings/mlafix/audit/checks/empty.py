"""A0, A1 and A2 check the plain call, rows without keys, and rows whose keys are all masked."""

from __future__ import annotations

from ..cases import Adapter
from ..judge import check_call
from ..state_forms import check_states
from .check import ATTENTION, STATES, Check, Groups, base, befores, states


def plain(adapter: Adapter) -> Groups:
    if adapter.form in STATES:
        return {"two or three parts": [states(adapter)]}
    return {"three sequences": [base(adapter)], "a causal mask": [base(adapter, causal=True)]}


def without_keys(adapter: Adapter) -> Groups:
    if adapter.form in STATES:
        last = states(adapter).parts - 1
        every = tuple((part, 1) for part in range(last + 1))
        patterns = {"one part empty": [((0, 1),), ((last, 2),)], "all parts empty": [every], "both": [(*every, (0, 3), (last, 0))]}
        return {what: [states(adapter, empty=pattern, empty_lse=lse, payload="zero", before=before)
                       for pattern in some for lse in (float("-inf"), float("inf")) for before in ("nan", "stale")]
                for what, some in patterns.items()}  # fmt: skip
    lengths = [(5, 0, 4), (0, 9, 4), (5, 9, 0), (0, 0, 0)]
    return {
        "which sequences have no keys": befores(*(base(adapter, kv_lens=kv_lens) for kv_lens in lengths)),
        "under a causal mask": befores(base(adapter, q_lens=(1, 2), kv_lens=(0, 3), causal=True)),
        "beside many queries and keys": befores(base(adapter, q_lens=(2, 40), kv_lens=(0, 70)), base(adapter, q_lens=(40, 2), kv_lens=(0, 130))),
    }


def all_masked(adapter: Adapter) -> Groups:
    causal = [base(adapter, q_lens=(7, 2, 5), kv_lens=(3, 2, 1), causal=True), base(adapter, q_lens=(66, 3), kv_lens=(1, 70), causal=True)]
    windows = [base(adapter, q_lens=(9, 2), kv_lens=(2, 3), window=(1, 1)), base(adapter, q_lens=(9, 3), kv_lens=(2, 3), window=(0, 0), causal=True),
               base(adapter, q_lens=(9, 3), kv_lens=(2, 3), window=(-1, 2))]  # fmt: skip
    return {"more queries than keys": befores(*causal) if adapter.alignment == "bottom-right" else [],
            "windows with nothing left": befores(*windows)}  # fmt: skip


def no_masks(adapter: Adapter) -> str:
    if adapter.form not in ATTENTION:
        return "no masks in this form"
    if adapter.form == "paged":
        return "one query for each request: none is masked"
    return "" if MASKED.cases(adapter) else "no causal mask that ends at the last key, and no window"


MASKED = Check("A2", "rows whose keys are all masked", ("C2", "C13"), all_masked, check_call, lacks=no_masks)

CHECKS = [
    Check("A0", "a plain call", ("C8", "C9"), plain, check_call, check_states, must_return=True),
    Check("A1", "rows without keys", ("C1", "M1", "M2", "M3"), without_keys, check_call, check_states),
    MASKED,
]
