"""A4 puts NaN and infinities into all memory that is not an input of the call."""

from __future__ import annotations

from ..cases import Adapter
from ..judge import check_call
from ..state_forms import check_states
from .check import PAGED, STATES, Check, Groups, base, befores, states


def poisoned(adapter: Adapter) -> Groups:
    if adapter.form in STATES:
        made = [states(adapter, empty=((part, row), (0, 3)), payload=payload, empty_lse=lse, before=before)
                for part, row in ((0, 1), (1, 2)) for payload in ("nan", "inf")
                for lse in (float("-inf"), float("inf")) for before in ("nan", "none")]  # fmt: skip
        broken = [states(adapter, nan_lse=((0, 2),)), states(adapter, nan_lse=((1, 0),), empty=((0, 0),))]
        return {"payloads of empty states": made, "a NaN lse": broken}
    # Three batches: sequences that end inside a page, sequences that end at the end of a page, and a batch with an
    # empty sequence.
    lengths = [(5, 9, 4), (1, adapter.page_size, adapter.page_size + 1) if adapter.form in PAGED else (1, 16, 17), (5, 0, 4)]
    what = "the rest of pages, and pages of nobody" if adapter.form in PAGED else "memory behind the keys"
    return {what: befores(*(base(adapter, beyond=beyond, kv_lens=kv_lens) for beyond in ("zero", "nan", "inf") for kv_lens in lengths)),
            "the same under a mask": befores(*(base(adapter, beyond="nan", kv_lens=(70, 9, 4), **mask) for mask in ({"causal": True}, {"window": (2, 2)})))}  # fmt: skip


CHECKS = [Check("A4", "NaN in memory that is not an input", ("C4", "M4", "M5"), poisoned, check_call, check_states, must_return=True)]
