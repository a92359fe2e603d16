"""Makes a failing case smaller for as long as the fault stays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from .cases import Adapter, Case, StateCase
from .checks import fit

SMALL_DIM = 16


def without(values: tuple[Any, ...], position: int) -> tuple[Any, ...]:
    return values[:position] + values[position + 1 :]


def smaller_cases(case: Case) -> Iterator[Case]:
    """Yields cases that are simpler in one respect. The largest simplifications come first."""
    ids = case.ids or tuple(range(len(case.q_lens)))
    half = len(case.q_lens) // 2
    for part in (slice(half), slice(half, None)) if half > 3 else ():
        yield replace(case, q_lens=case.q_lens[part], kv_lens=case.kv_lens[part], ids=ids[part])
    for i in range(min(len(case.q_lens), 8) if len(case.q_lens) > 1 else 0):
        yield replace(case, q_lens=without(case.q_lens, i), kv_lens=without(case.kv_lens, i), ids=without(ids, i))
    if case.heads > 1:
        yield replace(case, heads=1, kv_heads=1)
        if case.kv_heads != case.heads:
            yield replace(case, kv_heads=case.heads)
        yield replace(case, heads=case.heads // 2, kv_heads=max(case.kv_heads // 2, 1))
    if case.dim > SMALL_DIM:
        value_dim = SMALL_DIM // 2 if 0 < case.value_dim < case.dim else 0
        yield replace(case, dim=SMALL_DIM, value_dim=value_dim)
    plain = Case()
    for name in ("causal", "window", "sinks", "softcap", "alibi", "k_scale", "v_scale", "magnitude", "shift", "scale", "peaks", "longer", "layout", "lengths",
                 "pages", "num_splits", "beyond", "pad_length"):  # fmt: skip
        if getattr(case, name) != getattr(plain, name):
            yield replace(case, **{name: getattr(plain, name)})
    for name in ("pad_rows", "pad_requests"):
        for value in {0, 1, getattr(case, name) // 2}:
            if value < getattr(case, name):
                yield replace(case, **{name: value})
    for name in ("q_lens", "kv_lens"):
        lengths = getattr(case, name)
        for i, length in enumerate(lengths):
            for value in sorted({1, 2, length // 2, length - 1}):
                if 0 < value < length:
                    yield replace(case, **{name: (*lengths[:i], value, *lengths[i + 1 :])})


def smaller_states(case: StateCase) -> Iterator[StateCase]:
    """Yields simpler cases of merges and reduces, as `smaller_cases` does for attention."""
    if case.parts > 2:
        empty, nan_lse = (tuple(one for one in pairs if one[0] < 2) for pairs in (case.empty, case.nan_lse))
        yield replace(case, parts=2, empty=empty, nan_lse=nan_lse)
    last = max([row for _, row in (*case.empty, *case.nan_lse)], default=0)
    for rows in (1, 2, 3):
        if last < rows < case.rows:
            yield replace(case, rows=rows)
    for name in ("empty", "nan_lse"):
        for i in range(len(getattr(case, name))):
            yield replace(case, **{name: without(getattr(case, name), i)})
    if last:
        yield replace(case, empty=tuple((part, 0) for part, _ in case.empty), nan_lse=tuple((part, 0) for part, _ in case.nan_lse))
    for heads in (1, 2, case.heads // 2):
        if 0 < heads < case.heads:
            yield replace(case, heads=heads)
    if case.dim > SMALL_DIM:
        yield replace(case, dim=SMALL_DIM)
    for name in ("layout", "payload", "magnitude", "shift", "empty_lse"):
        simple = getattr(StateCase(), name)
        if getattr(case, name) != simple:
            yield replace(case, **{name: simple})


def shrink(case: Any, adapter: Adapter, still: Callable[[Any], bool], seconds: float, tries: int = 200) -> Any:
    """Makes the case smaller step by step, as long as `still` is true for the smaller case. Stops after `seconds`, or
    after `tries` calls of `still`."""
    end = time.monotonic() + seconds
    found = True
    while found and time.monotonic() < end:
        found = False
        for other in smaller_cases(case) if isinstance(case, Case) else smaller_states(case):
            fitting = fit(other, adapter) if isinstance(other, Case) else other
            if fitting is None or fitting == case or not tries or time.monotonic() > end:
                continue
            tries -= 1
            if still(fitting):
                case, found = fitting, True
                break
    return case
