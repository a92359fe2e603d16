"""Compares the kernels of engines with the library's, from the results of benchmarks/python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from results import OURS, Run, time_of, timed

ENGINES = ("vllm", "sglang", "flashinfer", "flash_attn")
"""The names of engines' implementations begin with one of these words."""

NAMES = {"vllm": "vLLM CUDA", "vllm, triton": "vLLM Triton", "sglang": "SGLang CUDA", "sglang, triton": "SGLang Triton",
         "flashinfer": "FlashInfer CUDA", "flashinfer, C++": "FlashInfer C++", "flashinfer, C++, dependent": "FlashInfer C++, dependent launch",
         "flashinfer, triton": "FlashInfer Triton", "flash_attn 3": "FlashAttention 3", "flash_attn 4": "FlashAttention 4"}

OPERATIONS = {"merge_attn_states": ("merge/", "shapes/", "rows_first/", "threshold/", "merge_fp8/"), "merge_state_in_place": ("in_place/",),
              "merge_states": ("n_way/", "states/"), "merge_states_ragged": ("ragged/",), "combine_split_kv": ("combine/",),
              "fixup_zero_kv_rows": ("fixup_rows_first/",), "mask_empty_context_lse": ("mask/lse",), "mask_empty_context": ("mask/rows",)}
"""The prefixes of the names of cases, by function of mlafix.ops."""


@dataclass(frozen=True)
class Comparison:
    """The times of an engine's kernel and of mlafix's kernel in a case, in microseconds."""

    engine: str
    case: str
    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        """The speedup of mlafix's kernel over the engine's kernel."""
        return self.theirs / self.ours


def is_engine(name: str) -> bool:
    """True if this is the name of an engine's implementation."""
    return name not in OURS and name.split(",")[0].split(" ")[0] in ENGINES


def engine_name(name: str) -> str:
    """Returns the name of an engine in tables."""
    return NAMES.get(name, name)


def comparisons(run: Run, prefixes: tuple[str, ...]) -> list[Comparison]:
    """Returns the comparisons in the cases whose names begin with one of the prefixes, one for each engine's kernel
    that was timed."""
    found = []
    for case in run.cases():
        ours = time_of(case, "ours")
        if ours and case["name"].startswith(prefixes):
            found += [Comparison(name, case["name"], ours, entry["us"]["median"]) for name, entry in timed(case).items() if is_engine(name)]
    return found


def failures(run: Run, prefixes: tuple[str, ...]) -> dict[str, list[str]]:
    """Returns for each engine the cases in which its kernel raised an error or was wrong."""
    found: dict[str, list[str]] = {}
    for case in run.cases():
        for entry in case["contenders"]:
            if case["name"].startswith(prefixes) and is_engine(entry["name"]) and ("failed" in entry or "wrong" in entry):
                found.setdefault(entry["name"], []).append(case["name"])
    return found


def card_text(run: Run) -> str:
    """Returns the machine as a phrase: "an NVIDIA H100 80GB HBM3"."""
    return f"an {run.data['machine']}"


def ranges_rows(run: Run, prefixes: tuple[str, ...]) -> list[list[str]]:
    """Returns a row for each engine: its name, the smallest and the largest speedup of mlafix's kernels over the
    engine's kernels, each with its case, and the number of cases in which the engine's kernel fails."""
    found, failed = comparisons(run, prefixes), failures(run, prefixes)
    rows = []
    for engine in dict.fromkeys([*(one.engine for one in found), *failed]):
        ratios = sorted((one for one in found if one.engine == engine), key=lambda one: one.ratio)
        cells = [f"{one.ratio:.2f} x (`{one.case}`)" for one in (ratios[0], ratios[-1])] if ratios else ["", ""]
        rows.append([engine_name(engine), *cells, f"{len(failed[engine])} of {len(failed[engine]) + len(ratios)}" if engine in failed else ""])
    return rows


def behind(run: Run) -> list[Comparison]:
    """Returns the cases in which an engine's kernel is faster by more than half a percent. The case with mlafix's
    largest slowdown is first."""
    return sorted((one for one in comparisons(run, ("",)) if one.ratio < 0.995), key=lambda one: one.ratio)


def ratio_of(run: Run, case: str, engine: str) -> str:
    """Returns the speedup over an engine's kernel in a case as text: "1.99 x", "fails", or "" if the engine was not
    measured."""
    if case in failures(run, (case,)).get(engine, []):
        return "fails"
    return next((f"{one.ratio:.2f} x" for one in comparisons(run, (case,)) if one.case == case and one.engine == engine), "")


def time_text(case: dict[str, Any] | None) -> str:
    """Returns the time of mlafix's kernel as text."""
    micros = time_of(case, "ours") if case else None
    return "" if micros is None else f"{micros:.2f} us" if micros < 100 else f"{micros:.1f} us"
