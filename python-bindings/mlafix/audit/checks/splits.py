"""A6 checks that attention over two parts of the keys, merged, equals attention over all keys."""

from __future__ import annotations

from dataclasses import replace
import torch

from ..cases import Adapter, Case, Fault, Values
from ..forms import run
from ..judge import expected, natural, wrong_rows
from ..oracle import merged, reference
from ..state_forms import check_states
from .check import ATTENTION, STATES, Check, Groups, base, states

FRACTIONS = (0.0, 0.3, 1.0)


def split_identity(case: Case, adapter: Adapter) -> list[Fault]:
    """Splits the keys at several places and compares merge(prefix, suffix) in f64 with the reference over all keys."""
    values, want = expected(case, adapter)
    faults: list[Fault] = []
    for fraction in FRACTIONS:
        cuts = [int(fraction * length) for length in case.kv_lens]
        sides = [Values(values.q, [k[:cut] for k, cut in zip(values.k, cuts)], [v[:cut] for v, cut in zip(values.v, cuts)], None),
                 Values(values.q, [k[cut:] for k, cut in zip(values.k, cuts)], [v[cut:] for v, cut in zip(values.v, cuts)], None)]  # fmt: skip
        parts, errors = [], []
        for side in sides:
            of_side = replace(case, kv_lens=tuple(k.shape[0] for k in side.k))
            got = run(of_side, adapter, side)
            if got.lse is None:
                return [Fault("no lse", "an lse, as the adapter says", "None")]
            exact = reference(of_side, adapter, side)
            n = exact.out.shape[0]
            parts.append((got.out[:n].double(), natural(got.lse[:n], adapter)))
            errors.append((exact, torch.where(exact.lse > -float("inf"), torch.exp(exact.lse - want.lse), 0.0)))
        out, lse = merged(torch.stack([part[0] for part in parts]), torch.stack([part[1] for part in parts]))
        # The bound adds up the error of each part and the error of its weight. The weight has an error because it is
        # computed from the part's lse.
        out_error, lse_error = torch.zeros_like(out), torch.zeros_like(lse)
        for exact, weight in errors:
            relative = torch.expm1(2 * sum(error[0].lse_error for error in errors))
            out_error += weight[..., None] * (exact.out_error + relative[..., None] * (exact.out.abs() + exact.out_error))
            lse_error += weight * exact.lse_error
        out_error = out_error.nan_to_num(nan=float("inf"))  # a bound that overflows becomes infinite
        rows = torch.ones(out.shape[0], dtype=torch.bool)
        kind = "the merge of an empty part and the rest" if fraction in (0.0, 1.0) else "the merge of two parts"
        wrong = wrong_rows(kind, "out", rows, out, want.out, ~((out - want.out).abs() <= out_error + 1e-12))
        faults += wrong or wrong_rows(kind, "lse", rows, lse, want.lse, ~((lse - want.lse).abs() <= lse_error + 1e-12))
    return faults


def magnitudes(adapter: Adapter) -> Groups:
    scales = {"scores of some 1e-3 to 10": [(1.0, 0.0), (1e-3, 0.0), (8.0, 0.0)], "scores around -300, 300 and -5.2e4": [(1.0, -300.0), (1.0, 300.0), (1.0, -5.2e4)]}
    if adapter.form in STATES:
        scales["lses of some 1e3"] = [(1e3, 0.0)]
        return {what: [states(adapter, magnitude=magnitude, shift=shift) for magnitude, shift in some] for what, some in scales.items()}
    # If every call is causal, the cases have one query per sequence. The mask then hides no key of either part.
    q_lens = (1, 1) if adapter.causal == "always" else (3, 1)
    made = {what: [base(adapter, q_lens=q_lens, kv_lens=(5, 9), magnitude=magnitude, shift=shift) for magnitude, shift in some] for what, some in scales.items()}
    return {**made, "parts of many keys": [base(adapter, q_lens=q_lens, kv_lens=(70, 200))]}


def no_parts(adapter: Adapter) -> str:
    if adapter.form not in ATTENTION:
        return ""
    if adapter.causal == "always" and adapter.alignment == "top-left":
        return "a causal mask that begins at the first key hides keys of a part"
    return "" if adapter.returns_lse else "the backend returns no lse"


CHECKS = [Check("A6", "the parts of a split, merged, are the whole", ("C6", "M6"), magnitudes, split_identity, check_states, no_parts)]
