"""A4: NaN and infinities wherever a call has no business to read."""

from __future__ import annotations

from typing import Any

from ..cases import Adapter
from ..judge import check_call
from ..state_forms import check_states
from .check import STATES, Check, base, befores, fitted, stated, states


def poisoned(adapter: Adapter) -> list[Any]:
    if adapter.form in STATES:
        made = [states(adapter, empty=((part, row), (0, 3)), payload=payload, empty_lse=lse, before=before)
                for part, row in ((0, 1), (1, 2)) for payload in ("nan", "inf")
                for lse in (float("-inf"), float("inf")) for before in ("nan", "none")]  # fmt: skip
        return stated([*made, states(adapter, nan_lse=((0, 2),)), states(adapter, nan_lse=((1, 0),), empty=((0, 0),))], adapter)
    cases = [base(adapter, beyond=beyond, kv_lens=kv_lens) for beyond in ("zero", "nan", "inf") for kv_lens in ((5, 9, 4), (1, 16, 17))]
    return fitted([one for case in cases for one in befores(case)], adapter)


CHECKS = [Check("A4", "NaN in memory that is not an input", poisoned, check_call, check_states)]
