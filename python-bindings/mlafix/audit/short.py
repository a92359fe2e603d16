"""Writes short scripts for findings that a single call with few numbers shows. A script contains these numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from textwrap import fill
from typing import Any

import torch

from .adapter import place_of
from .attempt import attempt
from .bundle import Bundle, backend_lines
from .cases import Adapter, Case, make_values
from .checks.check import PAGED
from .checks.lse import check_lse
from .forms import is_planned
from .judge import check_call
from .oracle import reference

# The largest number of tensor elements in a short script, arguments and expected values together.
MOST = 1200
ROWS = {"ragged": ("out", "lse", "lse.T"), "paged": ("out", "lse", "lse.T"), "ragged_paged": ("out", "lse", "lse.T"),
        "dense": ("out.flatten(0, 1)", "lse.flatten(0, 1)", "lse.transpose(1, 2).flatten(0, 1)")}  # fmt: skip


def short_script(faults: Any, case: Any, adapter: Adapter, kind: str, title: str) -> str:
    """Returns a short script that shows a finding.

    Returns "" if the finding is not about rows of a single call, or if its tensors have too many elements.
    """
    place = place_of(adapter.call)
    is_plain = isinstance(case, Case) and (case.layout, case.lengths) == ("dense", "dense") and not case.pad_rows and not case.pad_requests
    of_rows = kind.removeprefix("lse of ").startswith(("live rows", "rows ", "a given ")) or kind.endswith(("ignored", "off by one", "swapped"))
    if place is None or is_planned(adapter.call) or faults not in (check_call, check_lse) or not is_plain or not of_rows:
        return ""
    calls = recorded(faults, case, adapter)
    want = reference(case, adapter, make_values(case, adapter))
    expected = [("want_out", want.out), ("out_error", want.out_error)]
    expected += [("want_lse", want.lse), ("lse_error", want.lse_error)] if adapter.returns_lse else []
    if len(calls) != 1:
        return ""
    arguments, given = calls[0]
    tensors = [*arguments, *(value for value in given.values() if isinstance(value, torch.Tensor)), *(tensor for _, tensor in expected)]
    if sum(tensor.numel() for tensor in tensors) > MOST:
        return ""
    bundle = Bundle({})
    backend = backend_lines(place, bundle)
    names = ["q", "kv_cache"] if adapter.latent else ["q", "k_cache", "v_cache"] if adapter.form in PAGED else ["q", "k", "v"]
    lines = [*bundle.head(title), *backend]
    lines += ["\n", bundle.text(), "\n"] if bundle.parts else []
    lines += ["", *assignments(zip(names, arguments)), *assignments((name, value) for name, value in given.items() if isinstance(value, torch.Tensor))]
    lines += memory_lines(case)
    call = ", ".join([*names, *(f"{name}={name if isinstance(value, torch.Tensor) else repr(value)}" for name, value in given.items())])
    lines += [wrapped(f"result = backend({call})"), *results(adapter, given, kind), "", "# In f64, with how far a correct kernel may be from it.",
              *assignments(expected), "", *verdict(adapter, want.out.shape[0])]  # fmt: skip
    return "\n".join(lines)


def recorded(faults: Any, case: Case, adapter: Adapter) -> list[tuple[list[torch.Tensor], dict[str, Any]]]:
    """Runs a check and returns the arguments of its calls. The tensors have their contents from before the call."""
    calls: list[tuple[list[torch.Tensor], dict[str, Any]]] = []

    def record(*arguments: torch.Tensor, **given: Any) -> Any:
        kept = {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in given.items()}
        calls.append(([one.clone() for one in arguments], kept))
        return adapter.call(*arguments, **given)

    attempt(faults, case, replace(adapter, call=record))
    return calls


def assignments(tensors: Any) -> list[str]:
    return [wrapped(f"{name} = {tensor_text(tensor)}") for name, tensor in tensors]


def tensor_text(tensor: torch.Tensor) -> str:
    """Returns a tensor as a Python expression."""
    shape, dtype = list(tensor.shape), str(tensor.dtype)
    where = f", device={str(tensor.device.type)!r}" if tensor.device.type != "cpu" else ""
    values = tensor.flatten().tolist()
    if not values:
        return f"torch.zeros({shape}, dtype={dtype}{where})"
    texts = [number_text(value, tensor.dtype) for value in values]
    if len(set(texts)) == 1:
        return f"torch.full({shape}, {texts[0]}, dtype={dtype}{where})"
    made = f"torch.tensor([{', '.join(texts)}], dtype={dtype}{where})"
    return made if len(shape) == 1 else f"{made}.view({shape})"


def number_text(value: Any, dtype: torch.dtype) -> str:
    if isinstance(value, int) or math.isfinite(value):
        return str(value) if isinstance(value, int) else f"{value:.17g}" if dtype == torch.float64 else f"{value:.9g}"
    return f'float("{value}")'


def wrapped(line: str) -> str:
    return fill(line, 118, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def memory_lines(case: Case) -> list[str]:
    if case.before != "none":
        return []
    return ["", "# What the backend allocates begins as NaN.", 'torch.set_deterministic_debug_mode("warn")',
            "torch.utils.deterministic.fill_uninitialized_memory = True"]  # fmt: skip


def results(adapter: Adapter, given: dict[str, Any], kind: str) -> list[str]:
    """Returns the lines that assign the results to out and lse. If the finding is about a given output, no line assigns
    to it, so that the script compares the tensor that the call was given."""
    wanted = [name for name in (("out", "lse") if adapter.returns_lse else ("out",)) if not (kind.startswith("a given ") and name in given)]
    if not adapter.returns_lse:
        return ["out = result[0] if isinstance(result, (tuple, list)) else result"] if wanted else []
    return ["out, lse = result"] if len(wanted) == 2 else [f"{name} = result[{('out', 'lse').index(name)}]" for name in wanted]


def verdict(adapter: Adapter, rows: int) -> list[str]:
    """Returns the lines that compare the results and exit with status 1 if they are wrong."""
    out, nh, hn = ROWS[adapter.form]
    scale = f" * {math.log(2)!r}" if adapter.lse_base == "2" else ""
    lse = nh if adapter.lse_layout == "nh" else hn
    checked = [f'    ("out", {out}[:{rows}].cpu().double(), want_out, out_error),']
    checked += [f'    ("lse", {lse}[:{rows}].cpu().double(){scale}, want_lse, lse_error),'] if adapter.returns_lse else []
    return ["wrong = 0", "for name, got, want, error in [", *checked, "]:",
            "    bad = ~(((got - want).abs() <= error) | (got == want))",
            "    for at in bad.nonzero().tolist()[:4]:",
            '        print(f"{name}{at}: expected {want[tuple(at)]:.9g}, got {got[tuple(at)]:.9g}")',
            "    wrong += int(bad.sum())", "sys.exit(1 if wrong else 0)", ""]  # fmt: skip
