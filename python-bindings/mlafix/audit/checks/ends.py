"""A10 checks the extremes of a call's inputs: no tokens, one key, lengths of -1, numbers of heads, offsets past 2^31."""

from __future__ import annotations

from ..cases import Adapter
from ..judge import check_call
from ..state_forms import check_states
from .check import STATES, Check, Groups, base, states


def ends(adapter: Adapter) -> Groups:
    if adapter.form in STATES:
        return {"no rows and one": [states(adapter, rows=0), states(adapter, rows=1)],
                "numbers of heads": [states(adapter, heads=heads, dim=64) for heads in adapter.head_counts],
                "offsets past 2^31": [states(adapter, layout="far", rows=3)]}  # fmt: skip
    size, group = adapter.page_size, adapter.heads // adapter.kv_heads
    groups_heads = group > 1 and not adapter.values_in_keys
    ratios = dict.fromkeys((group, *adapter.ratios) if groups_heads else (group,))
    small = {"q_lens": (2, 1), "kv_lens": (3, 7)}
    return {
        "no tokens and one key": [base(adapter, q_lens=(1,), kv_lens=(1,)), base(adapter, kv_lens=(1, 1, 1)),
                                  base(adapter, q_lens=(0, 2, 0), kv_lens=(3, 4, 0)), base(adapter, q_lens=(0, 0), kv_lens=(2, 3)),
                                  base(adapter, q_lens=(), kv_lens=())],
        "lengths of -1": [base(adapter, kv_lens=(5, -1, 4)), base(adapter, pad_requests=2, pad_length=-1)],
        "lengths that fill their pages": [base(adapter, q_lens=(1, 2), kv_lens=(16 * size, 3)), base(adapter, q_lens=(1, 2), kv_lens=(size, 2 * size))],
        "ratios of heads": [base(adapter, heads=ratio * adapter.kv_heads, **lengths) for ratio in ratios for lengths in (small, {})]
        + [base(adapter, heads=5, kv_heads=1, **small)] * (groups_heads and 5 in ratios),
        "numbers of heads": [base(adapter, **small, heads=heads, kv_heads=heads // ratio)
                             for heads in adapter.head_counts for ratio in {1, group} if heads % ratio == 0],
        "offsets past 2^31": [base(adapter, **small, layout="far"), base(adapter, q_lens=(1, 1), kv_lens=(size + 3, 2), layout="far")],
    }  # fmt: skip


CHECKS = [Check("A10", "no tokens, one key, length -1, numbers of heads, far offsets", ("C11",), ends, check_call, check_states, refusable=True)]
