"""A9 checks that a row's bits depend on that row alone."""

from __future__ import annotations

from dataclasses import replace
import torch

from ..cases import Adapter, Case, Fault, StateCase
from ..forms import offsets, run, same_bits
from ..judge import compare, expected
from ..state_forms import run_states
from .check import STATES, Check, Groups, base, states


def differing(what: str, one: torch.Tensor, other: torch.Tensor, adapter: Adapter) -> list[Fault]:
    if same_bits(one, other):
        return []
    bad = (one != other) & ~(one.isnan() & other.isnan())
    if not bad.any():
        return []
    at = tuple(int(i) for i in bad.nonzero()[0])
    severity = "error" if adapter.batch_invariant else "note"
    return [Fault(f"bits of a row depend on {what}", f"{float(one[at]):.9g}", f"{float(other[at]):.9g}", severity)]


def bits_of_rows(case: Case, adapter: Adapter) -> list[Fault]:
    """Compares the bits of a batch's result with those of each sequence alone, of the batch in reverse order, of the
    same call again, and of calls with given numbers of splits."""
    case = replace(case, ids=tuple(range(len(case.q_lens))))
    faults: list[Fault] = []

    def rows(one: Case) -> torch.Tensor:
        values, want = expected(one, adapter)
        got = run(one, adapter, values)
        faults.extend(compare(got, want, adapter))  # wrong values are reported instead of different bits
        return got.out

    whole = rows(case)
    begins = offsets(case.q_lens)
    for i in range(len(case.q_lens)):
        alone = replace(case, q_lens=case.q_lens[i : i + 1], kv_lens=case.kv_lens[i : i + 1], ids=(i,))
        faults += differing("the batch", whole[begins[i] : begins[i + 1]], rows(alone), adapter)
    turned = replace(case, q_lens=case.q_lens[::-1], kv_lens=case.kv_lens[::-1], ids=case.ids[::-1])
    faults += differing("the order of the batch", whole, torch.cat(rows(turned).split(turned.q_lens)[::-1]), adapter)
    faults += differing("the call", whole, rows(case), adapter)
    if "num_splits" in adapter.takes:
        for splits in (1, 2, 3):
            faults += differing("the number of splits", whole, rows(replace(case, num_splits=splits)), adapter)
    wrong = [fault for fault in faults if not fault.kind.startswith("bits")]
    return wrong or faults


def bits_of_states(case: StateCase, adapter: Adapter) -> list[Fault]:
    """Compares the bits of some rows of a merge with those of a merge of only these rows, and with those of the same
    merge again."""
    whole, *_ = run_states(case, adapter)
    part, *_ = run_states(replace(case, rows=case.rows - 2, first=2), adapter)
    again, *_ = run_states(case, adapter)
    return differing("the batch", whole.out[2:], part.out, adapter) + differing("the call", whole.out, again.out, adapter)


def batches(adapter: Adapter) -> Groups:
    if adapter.form in STATES:
        return {"numbers of rows": [states(adapter, rows=rows) for rows in (5, 40)]}
    return {"prefill": [base(adapter), base(adapter, q_lens=(40, 3), kv_lens=(70, 20))], "decode": [base(adapter, q_lens=(1, 1, 1), kv_lens=(70, 33, 70))]}


CHECKS = [Check("A9", "a row has the same bits in every batch", ("C10",), batches, bits_of_rows, bits_of_states)]
