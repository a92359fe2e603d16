"""A10: the ends of what a call may be: no tokens, one key, lengths of -1, many heads, offsets past 2^31."""

from __future__ import annotations

from typing import Any

from ..cases import Adapter
from ..judge import check_call
from ..state_forms import check_states
from .check import STATES, Check, base, fitted, stated, states


def ends(adapter: Adapter) -> list[Any]:
    if adapter.form in STATES:
        made = [states(adapter, rows=0), states(adapter, rows=1)]
        made += [states(adapter, heads=heads, dim=64) for heads in adapter.head_counts]
        return stated([*made, states(adapter, layout="far", rows=3)], adapter)
    cases = [base(adapter, q_lens=(1,), kv_lens=(1,)), base(adapter, kv_lens=(1, 1, 1)), base(adapter, q_lens=(0, 2, 0), kv_lens=(3, 4, 0)),
             base(adapter, q_lens=(0, 0), kv_lens=(2, 3)), base(adapter, q_lens=(), kv_lens=()),
             base(adapter, kv_lens=(5, -1, 4)), base(adapter, pad_requests=2, pad_length=-1),
             base(adapter, q_lens=(1, 2), kv_lens=(16 * adapter.page_size, 3))]  # fmt: skip
    group = adapter.heads // adapter.kv_heads
    cases += [base(adapter, q_lens=(2, 1), kv_lens=(3, 7), heads=heads, kv_heads=heads // ratio)
              for heads in adapter.head_counts for ratio in {1, group} if heads % ratio == 0]  # fmt: skip
    cases += [base(adapter, q_lens=(2, 1), kv_lens=(3, 7), layout="far")]
    return fitted(cases, adapter)


CHECKS = [Check("A10", "no tokens, one key, length -1, many heads, far offsets", ends, check_call, check_states, refusable=True)]
