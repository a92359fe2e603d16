"""A13 checks lengths near the sizes of tiles, splits and grids; many requests; many rows."""

from __future__ import annotations

from ..cases import Adapter, Case
from ..judge import check_call
from ..state_forms import check_states
from .check import STATES, Check, Groups, base, states

TILES = ((63, 64, 65), (127, 128, 129), (511, 512, 513), (1023, 1024, 1025))


def sizes(adapter: Adapter) -> Groups:
    """Returns the cases, grouped by what is large. The largest cases come last: if time is short, these are skipped."""
    if adapter.form == "reduce":
        return {"rows": [states(adapter, rows=3000, heads=3, dim=16)]}
    if adapter.form in STATES:
        return {"rows": [states(adapter, rows=300), states(adapter, rows=3000, empty=((0, 2999),)), states(adapter, rows=70000, heads=1, empty=((1, 69999),))]}
    one = {"heads": 1, "kv_heads": 1}
    return {
        "keys around tiles and splits": [base(adapter, q_lens=(1, 2, 1), kv_lens=kv_lens, peaks=peaks) for kv_lens in TILES for peaks in (False, True)],
        "queries around tiles": [base(adapter, q_lens=q_lens, kv_lens=(3, 70, 2)) for q_lens in TILES]
        + [base(adapter, q_lens=q_lens, kv_lens=q_lens, causal=True) for q_lens in TILES[:2]],
        "40 requests": [requests(adapter, 40)],
        "4097 keys": [base(adapter, q_lens=(2, 1), kv_lens=(4097, 3), peaks=True), base(adapter, q_lens=(1,), kv_lens=(4097,), causal=True)],
        "splits, more than there are keys": [base(adapter, q_lens=(1, 1), kv_lens=(4097, 3), num_splits=splits, peaks=True) for splits in (1, 3, 16)],
        "maximum lengths that are too large": [base(adapter, longer=longer, **lengths) for longer in (64, 4096)
                                               for lengths in ({}, {"q_lens": (2,), "kv_lens": (9,), "beyond": "nan"}, {"kv_lens": (5, 0, 70)})],
        "queries and keys": [base(adapter, q_lens=(513, 5), kv_lens=(513, 600), causal=True, **one),
                             base(adapter, q_lens=(1025,), kv_lens=(1025,), causal=True, **one)],
        "70000 keys": [base(adapter, q_lens=(1,), kv_lens=(length,), peaks=True, **one) for length in (9000, 70000) if length * adapter.dim < 1 << 24],
        "4097 queries, and 66000": [base(adapter, q_lens=(4097,), kv_lens=(70,), **one), base(adapter, q_lens=(66000,), kv_lens=(2,), **one)],
        "1030 requests": [requests(adapter, 1030)],
        "2100 queries of 4200 keys": [base(adapter, q_lens=(2100,), kv_lens=(4200,), causal=True, **one)],
    }  # fmt: skip


def requests(adapter: Adapter, count: int) -> Case:
    """Makes a batch of `count` decodes."""
    return base(adapter, q_lens=(1,) * count, kv_lens=tuple(3 + i % 7 for i in range(count)))


CHECKS = [Check("A13", "many keys, queries, requests and rows", ("C8", "C18"), sizes, check_call, check_states)]
