"""Compares the results of a call with the reference.

This module has only plain functions, because the scripts that an audit writes for its findings (bundle.py) contain the
source text of these functions.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import torch

from .cases import Adapter, Case, Fault, Got, Values, make_values
from .forms import STALE, run
from .oracle import Want, reference


def natural(lse: torch.Tensor, adapter: Adapter) -> torch.Tensor:
    """Converts an lse to f64 and base e."""
    return lse.double() * (math.log(2) if adapter.lse_base == "2" else 1.0)


def wrong_rows(kind: str, what: str, where: torch.Tensor, got: torch.Tensor, want: torch.Tensor, bad: torch.Tensor, severity: str = "error") -> list[Fault]:
    """Returns a fault if `bad` has an element in the rows `where`; the fault names the first such row."""
    bad = bad & where.view(-1, *[1] * (bad.dim() - 1))
    if not bad.any():
        return []
    at = tuple(int(i) for i in bad.nonzero()[0])
    place = f"[{', '.join(map(str, at))}]"
    rows = int(bad.flatten(1).any(1).sum())
    count = f"in {rows} of {int(where.sum())} such rows"
    return [Fault(kind, f"{what}{place} of {float(want[at]):.9g}", f"{float(got[at]):.9g}, {count}", severity)]


def compare(got: Got, want: Want, adapter: Adapter) -> list[Fault]:
    """Compares the results of a call with the reference and returns the faults.

    Live rows must be within their bounds. Rows without keys must be exactly 0 and -inf. No memory but the outputs may
    change.
    """
    n = want.out.shape[0]
    if got.out.shape[0] < n or got.out.shape[1:] != want.out.shape[1:]:
        return [Fault("shape of out", str(list(want.out.shape)), str(list(got.out.shape)))]
    out = got.out[:n].double()
    close = ((out - want.out).abs() <= want.out_error) | (out == want.out)
    sees = want.keys > 0
    classes = [("live rows", sees), ("rows without keys", ~sees & (want.of <= 0)), ("rows whose keys are all masked", ~sees & (want.of > 0))]
    of_out = {name: wrong_rows(name, "out", rows, out, want.out, ~close) for name, rows in classes}
    if got.lse is None:
        return [fault for found in of_out.values() for fault in found] + unwritten(got, want, adapter) + written_to(got)
    if got.lse.shape[0] < n or got.lse.shape[1:] != want.lse.shape[1:]:
        return [Fault("shape of lse", str(list(want.lse.shape)), str(list(got.lse.shape)))]
    if got.lse.dtype not in (torch.float32, torch.float64):
        wrong = Fault("dtype of the lse", "torch.float32", str(got.lse.dtype))
        return [fault for found in of_out.values() for fault in found] + [wrong] + written_to(got)
    lse = natural(got.lse[:n], adapter)
    close = ((lse - want.lse).abs() <= want.lse_error) | (lse == want.lse)
    endless = (lse == math.inf) & ~sees[:, None]
    faults = []
    for name, rows in classes:
        faults += of_out[name] or wrong_rows(f"lse of {name}", "lse", rows, lse, want.lse, ~close & ~endless)
        faults += wrong_rows(f"lse of {name} is +inf", "lse", rows, lse, want.lse, endless, "warning")
    return faults + unwritten(got, want, adapter) + written_to(got)


def unwritten(got: Got, want: Want, adapter: Adapter) -> list[Fault]:
    """Returns faults for given outputs that do not hold the result, because the backend returned other tensors (C16)."""
    faults = []
    for what, rows in got.given.items():
        exact, error = (want.out, want.out_error) if what == "out" else (want.lse, want.lse_error)
        held = rows[: exact.shape[0]].double() if what == "out" else natural(rows[: exact.shape[0]], adapter)
        if held.shape == exact.shape:
            empty = (exact == -math.inf) & (held == math.inf) | held.isnan() & exact.isnan()
            bad = ~(((held - exact).abs() <= error) | (held == exact) | empty)
            faults += wrong_rows(f"a given {what} is not written", what, torch.ones(held.shape[0], dtype=torch.bool), held, exact, bad)
    return faults


def written_to(got: Got) -> list[Fault]:
    """Returns a fault for each tensor that the call changed but must not change."""
    return [Fault(what if what.endswith("differ") else f"{what} was written", "no change", "other bits") for what in got.touched]


def pads(got: Got, case: Case, adapter: Adapter, live: int) -> list[Fault]:
    """Returns a fault if a padding row has a wrong value. It must be 0 in out, and -inf or +inf in the lse. In an
    output that the call was given, it may also be unchanged."""
    held = {"nan": math.nan, "stale": STALE}.get(case.before)
    faults = []
    for name, tensor, identity in (("out", got.out, 0.0), ("lse", got.lse, -math.inf)):
        if tensor is None or tensor.shape[0] <= live:
            continue
        rows = tensor[live:].double()
        good = rows == identity
        if identity:
            good |= rows == math.inf
        if held is not None and name in adapter.takes:
            good |= rows.isnan() if math.isnan(held) else rows == held
            kind = "padded rows are written with something else"
        else:
            kind = "padded rows are uninitialised memory"
        severity = "error" if held is not None and name in adapter.takes else "warning"
        everywhere = torch.ones(rows.shape[0], dtype=torch.bool)
        faults += wrong_rows(kind, f"padding of {name}", everywhere, rows, torch.full_like(rows, identity), ~good, severity)
    return faults[:1]


# Fields of a case that affect neither its inputs nor their reference, with the values that `expected` gives them.
AROUND = {"before": "nan", "beyond": "zero", "layout": "dense", "lengths": "dense", "num_splits": 0, "longer": 0, "pad_rows": 0, "pad_requests": 0,
          "pad_length": 0, "after": ""}  # fmt: skip


@lru_cache(maxsize=2)
def numbers(case: Case, adapter: Adapter) -> tuple[Values, Want]:
    """Returns the inputs of a case and their reference."""
    values = make_values(case, adapter)
    return values, reference(case, adapter, values)


def expected(case: Case, adapter: Adapter) -> tuple[Values, Want]:
    """Returns the inputs of a case and their reference. Cases that differ only in the fields of AROUND have one entry
    in the cache of `numbers`, so their reference is computed once."""
    pages = case.pages if case.pages in ("shared", "equal") else "straight"
    return numbers(replace(case, pages=pages, **AROUND), replace(adapter, call=len, name="", takes=()))


def check_call(case: Case, adapter: Adapter) -> list[Fault]:
    """Makes one call and compares it with the reference, including the padding rows."""
    values, want = expected(case, adapter)
    got = run(case, adapter, values)
    faults = compare(got, want, adapter)
    return faults + pads(got, case, adapter, want.out.shape[0])
