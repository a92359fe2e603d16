"""A14 checks options that change scores, alone and together: the scale, masks, windows, sinks, a softcap, ALiBi."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from ..cases import Adapter
from .check import ATTENTION, Check, Groups, base, only_in
from .lse import check_lse

OPTIONS: dict[str, dict[str, Any]] = {
    "a causal mask": {"causal": True},
    "a window": {"window": (4, 4)},
    "sinks": {"sinks": True},
    "a softcap": {"softcap": 2.0},
    "ALiBi": {"alibi": True},
    "splits": {"num_splits": 2},
    "a scale": {"scale": 1.7},
    "a sequence without keys": {"kv_lens": (40, 0, 5)},
}


def options(adapter: Adapter) -> Groups:
    windows = ((0, 0), (1, 1), (3, 0), (0, 3), (2, 2), (5, 2), (3, -1), (-1, 2))
    lengths = {"q_lens": (3, 1, 4), "kv_lens": (40, 70, 5)}
    pairs = [base(adapter, **{**lengths, **OPTIONS[one], **OPTIONS[two]}) for one, two in combinations(OPTIONS, 2)]
    takes = {"window": {"window", "window_size"}, "sinks": {"sinks"}, "softcap": {"softcap"}, "alibi": {"alibi_slopes"}, "num_splits": {"num_splits"}}
    every = {name: value for fields in OPTIONS.values() for name, value in fields.items()
             if takes.get(name, {name}) & {*adapter.takes, "scale", "kv_lens", *(["causal"] if adapter.causal and adapter.form != "paged" else [])}}  # fmt: skip
    return {
        "scales": [base(adapter, scale=scale, **lengths) for scale in (1.7, 0.3, adapter.dim**0.5)],
        "the default scale": [base(adapter, scale=0.0, **lengths), base(adapter, scale=0.0, q_lens=(1, 1), kv_lens=(130, 3))],
        "windows": [base(adapter, window=window, causal=causal, **lengths) for window in windows for causal in (False, True)]
        + [base(adapter, q_lens=(1, 70), kv_lens=(130, 140), window=window, causal=True) for window in ((64, 0), (63, 63), (128, 128))],
        "sinks": [base(adapter, sinks=True, **lengths), base(adapter, sinks=True, q_lens=(1, 1), kv_lens=(600, 3))],
        "softcaps": [base(adapter, softcap=softcap, magnitude=magnitude, **lengths) for softcap in (1.5, 30.0) for magnitude in (1.0, 8.0)],
        "ALiBi": [base(adapter, alibi=True, **lengths), base(adapter, alibi=True, q_lens=(1, 1), kv_lens=(130, 3)), base(adapter, alibi=True, heads=6 * adapter.kv_heads)],
        "two options": pairs,
        "all options": [base(adapter, **{**lengths, **every, "kv_lens": kv_lens}) for kv_lens in ((40, 70, 5), (40, 0, 5))],
    }


CHECKS = [Check("A14", "scale, masks, windows, sinks, softcap, ALiBi, and two of them", ("C13", "C14"), options, check_lse,
                lacks=only_in(ATTENTION, "no scores in this form"))]  # fmt: skip
