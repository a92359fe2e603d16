"""A3 checks rows and requests that only pad a batch."""

from __future__ import annotations

from dataclasses import replace

from ..cases import Adapter, Case, Fault, make_values
from ..forms import run
from ..judge import check_call
from .check import PAGED, Check, Groups, base, befores, only_in


def after_a_larger_batch(case: Case, adapter: Adapter) -> list[Fault]:
    """Checks a padded batch after a larger batch without padding."""
    live = len(case.q_lens)
    q_lens, kv_lens = case.q_lens + (2,) * (case.pad_requests + 1), case.kv_lens + (3,) * (case.pad_requests + 1)
    larger = replace(case, q_lens=q_lens, kv_lens=kv_lens, ids=tuple(range(50, 51 + live + case.pad_requests)), pad_rows=0, pad_requests=0)
    if adapter.form == "paged":
        larger = replace(larger, q_lens=(1,) * len(q_lens))
    run(larger, adapter, make_values(larger, adapter))
    return check_call(case, adapter)


def padded(adapter: Adapter) -> Groups:
    if adapter.form == "paged":
        return {"requests of padding": befores(*(base(adapter, pad_requests=count) for count in (1, 3, 40)))}
    return {
        "rows of padding": befores(base(adapter, pad_rows=5), base(adapter, pad_rows=3, beyond="nan"), base(adapter, pad_rows=130)),
        "requests of padding": befores(base(adapter, pad_rows=2, pad_requests=3), base(adapter, pad_rows=2, pad_requests=1, causal=True)),
    }


CHECKS = [Check("A3", "padded rows and requests", ("C3",), padded, after_a_larger_batch, lacks=only_in(("ragged", *PAGED), "no padded rows in this form"))]
