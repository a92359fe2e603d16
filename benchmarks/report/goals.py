"""Lists the goals of the project, as ratios that should hold on any card, with their measured values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Iterable

from engines import comparisons
from results import NOT_MEASURED, Results, Run, percent_of_roof, time_of, total_bytes

Value = float | None


@dataclass
class Goal:
    """A goal: `value` should be at least `limit`, or at most `limit` if `most`."""

    text: str
    limit: float
    unit: str
    value: Callable[[Results], Value]
    most: bool = False

    def row(self, results: Results) -> list[str]:
        """Returns a row of the table: the goal's text, the wanted value, the measured value, and "yes" if it is
        reached."""
        value = self.value(results)
        wanted = f"{'at most' if self.most else 'at least'} {self.limit:g} {self.unit}".rstrip()
        if value is None:
            return [self.text, wanted, NOT_MEASURED, ""]
        reached = value <= self.limit if self.most else value >= self.limit
        return [self.text, wanted, f"{value:.3g} {self.unit}".rstrip(), "yes" if reached else "**no**"]


def worst(values: Iterable[Value], most: bool = False) -> Value:
    """Returns the value that is furthest from a goal: the largest if `most`, else the smallest. Returns None if there
    is none."""
    known = [value for value in values if value is not None]
    return (max(known) if most else min(known)) if known else None


def on_gpu(ask: Callable[[Run], Value]) -> Callable[[Results], Value]:
    """Returns a function that calls `ask` on the run on the GPU. The function returns None if there is no such run."""
    return lambda results: ask(results.gpu) if results.gpu else None


CHAINS = ("pairs", "pairs, in place")
"""The names of chains of mlafix's two-way merges."""

BASELINE_CHAINS = ("cuda, pairs", "cuda, pairs, in place")
"""The names of chains of hand-written two-way merges."""


def chain_time(case: dict[str, Any], chain: str) -> Value:
    """Returns the time of a chain, with dependent launch if that was measured."""
    return time_of(case, f"{chain}, dependent") or time_of(case, chain)


def merge(n: int) -> str:
    """Returns the name of the case of DeepSeek-V3's merge of n tokens."""
    return f"merge/bf16_h128_d128/n{n}"


def of_roof(cases: Iterable[dict[str, Any] | None], field: str = "roof") -> Value:
    """Returns the smallest percentage of a roof that some cases reach."""
    return worst(percent_of_roof(case, "ours", field) for case in cases if case)


def large(cases: Iterable[dict[str, Any]], least: float) -> Iterable[dict[str, Any]]:
    """Returns the cases that move at least this number of bytes."""
    return (case for case in cases if total_bytes(case) >= least)


def large_shapes_over_baseline(run: Run) -> Value:
    """Returns the smallest factor by which mlafix is faster than the best hand-written form of the same shape, over
    shapes of at least 100 MB."""
    ratios: list[Value] = []
    for case in large([*run.cases("merge/"), *run.cases("merge_fp8/")], 100e6):
        baselines = [time for name in ("cuda", "cuda, dependent") if (time := time_of(case, name))]
        ours = time_of(case, "ours")
        if baselines and ours:
            ratios.append(min(baselines) / ours)
    return worst(ratios)


def against_whole_merge(place: str, whole_case: str = "merge") -> Callable[[Run], Value]:
    """Returns a function that returns the time of a merge in which half of the rows have no context, relative to a
    merge of all rows. This is the largest ratio over several numbers of tokens."""

    def ask(run: Run) -> Value:
        parts = []
        for n in (1024, 4096, 8192):
            half = run.time(f"threshold/{place}_h128_d128/n{n}", "ours")
            whole = run.time(f"{whole_case}/bf16_h128_d128/n{n}", "ours")
            parts.append(half / whole if half and whole else None)
        return worst(parts, most=True)

    return ask


def over_pairs(ways: int, chains: tuple[str, ...]) -> Callable[[Run], Value]:
    """Returns a function that returns the speedup of one merge of `ways` states over the fastest of some chains of
    two-way merges. This is the smallest speedup over several numbers of tokens."""

    def ask(run: Run) -> Value:
        ratios: list[Value] = []
        for n in (16, 64, 256, 1024, 8192):
            case = run.case(f"n_way/list_k{ways}_h128_d128/n{n}")
            ours = time_of(case, "ours") if case else None
            ratios += [pairs / ours for chain in chains if case and ours and (pairs := chain_time(case, chain))]
        return worst(ratios)

    return ask


def over_empty_launch(case: dict[str, Any] | None) -> Value:
    """Returns the time of a case as a multiple of an empty launch."""
    ours, empty = (time_of(case, "ours"), case.get("empty_launch_us")) if case else (None, None)
    return ours / empty if ours and empty else None


def small_kernels(run: Run) -> Value:
    """Returns the time of the slowest padding or metadata kernel at serving sizes, as a multiple of an empty launch."""
    cases = [*run.cases("pad/"), *run.cases("metadata/")]
    return worst((over_empty_launch(case) for case in cases if "roof" not in case), most=True)


def none_dead(run: Run) -> Value:
    """Returns the time of the slowest fixup of a batch without empty rows, as a multiple of an empty launch."""
    return worst((over_empty_launch(case) for case in run.cases("fixup/none_dead")), most=True)


def over_roof(name: str) -> Callable[[Run], Value]:
    """Returns a function that returns the time of a case relative to its faster roof."""

    def ask(run: Run) -> Value:
        case = run.case(name)
        percent = percent_of_roof(case, "ours") if case else None
        return 100 / percent if percent else None

    return ask


def python_host(name: str) -> Callable[[Results], Value]:
    """Returns a function that returns the microseconds per call on the host."""
    return lambda results: results.python.host(name) if results.python else None


def host_ratio(name: str, other: str) -> Callable[[Results], Value]:
    """Returns a function that returns the host time of a call relative to another call in the same run: from Python, or
    from C for launches of mlafix-bench."""

    def ask(results: Results) -> Value:
        for run in filter(None, (results.python, results.gpu)):
            ours, theirs = run.host(name), run.host(other)
            if ours and theirs:
                return ours / theirs
        return None

    return ask


def against_engine(engine: str, *prefixes: str) -> Callable[[Results], Value]:
    """Returns a function that returns the smallest factor by which mlafix is faster than an engine's kernel."""

    def ask(results: Results) -> Value:
        found = comparisons(results.python, prefixes) if results.python else []
        return worst(one.ratio for one in found if one.engine == engine)

    return ask


ENGINE_GOALS = (
    ("vLLM's CUDA merge", "vllm", ("",)), ("vLLM's Triton kernels", "vllm, triton", ("",)), ("SGLang's CUDA merge", "sglang", ("rows_first/",)),
    ("SGLang's Triton kernels", "sglang, triton", ("",)), ("SGLang's fixup of zero-KV rows", "sglang", ("fixup_rows_first/",)),
    ("FlashInfer's merges", "flashinfer", ("",)), ("FlashInfer's merge of ragged segments, in C++", "flashinfer, C++", ("ragged/",)),
    ("FlashAttention 3's combine", "flash_attn 3", ("combine/",)),
)
"""For each goal: the compared kernel, the engine's name in the results, and the cases."""

COMBINES = tuple(f"combine/f32_s{splits}_h16_d{dim}/b64" for splits, dim in ((32, 512), (8, 512), (32, 128)))


def all_goals() -> list[Goal]:
    """Returns all goals in the order of the table."""
    goals = [Goal("merge bf16, H = D = 128, 4096 tokens and more, of the 2R1W roof", 97.5, "%", on_gpu(lambda run: of_roof(run.case(merge(n)) for n in (4096, 8192))))]
    for n in (16, 64, 256, 1024):
        goals.append(Goal(f"merge, {n} tokens, in a chain with dependent launch, against hand-written CUDA with the same", 1, "x",
                          on_gpu(lambda run, n=n: run.ratio(merge(n), "cuda, dependent", "ours"))))
    for n in (16, 64, 256):
        goals.append(Goal(f"merge, {n} tokens, of the roof with dependent launch", 95, "%", on_gpu(lambda run, n=n: of_roof([run.case(merge(n))], "roof_dependent"))))
    for n, times in ((16, 1.5), (64, 1.28), (256, 1.12), (1024, 1.04)):
        goals.append(Goal(f"merge, {n} tokens, against hand-written CUDA that waits for the lse first", times, "x",
                          on_gpu(lambda run, n=n: run.ratio(merge(n), "cuda, lse first", "ours"))))
    goals += [
        Goal("merge of 100 MB and more, any heads, dims, lse layout, type, against hand-written CUDA: the slowest", 0.98, "x",
             on_gpu(large_shapes_over_baseline)),
        Goal("merge with half of the rows past the threshold, 1024 tokens and more, of the whole merge's time", 0.87, "",
             on_gpu(against_whole_merge("half")), most=True),
        Goal("the same in place, of the whole merge's time in place", 0.55, "",
             on_gpu(against_whole_merge("half_in_place", "in_place")), most=True),
        Goal("the same in place, of the whole merge's time out of place", 0.55, "",
             on_gpu(against_whole_merge("half_in_place")), most=True),
        *(Goal(f"{ways} states in one launch, against the chain of {text}, in place or not: the slowest size", times, "x", on_gpu(over_pairs(ways, chains)))
          for ways, times in ((4, 2.0), (8, 2.5)) for text, chains in (("hand-written pairs", BASELINE_CHAINS), ("our pairs", CHAINS))),
        Goal("fixup, all rows dead, 250 MB and more, of the fill roof", 92, "%", on_gpu(lambda run: of_roof(large(run.cases("fixup/all_dead"), 250e6)))),
        Goal("fixup, 1 x 16384 tokens alive, 255 x 1 dead, in times of its faster roof", 2, "x", on_gpu(over_roof("fixup/short_dead_16384_and_255x1")),
             most=True),
        Goal("fixup, nothing dead, in times of an empty launch: the slowest batch", 2, "x", on_gpu(none_dead), most=True),
        Goal("padding and metadata kernels at serving sizes, but for those that write megabytes, in times of an empty launch: the slowest", 3, "x",
             on_gpu(small_kernels), most=True),
    ]
    for n, times in ((16, 1.3), (64, 1.15)):
        goals.append(Goal(f"fixup, then merge, {n} tokens, against the same without dependent launch", times, "x",
                          on_gpu(lambda run, n=n: run.ratio(f"chain/fixup_merge_h128_d128/n{n}", "mlafix", "mlafix, dependent"))))
    for name in COMBINES:
        goals.append(Goal(f"{name}, in times of its faster roof", 1.03, "x", on_gpu(over_roof(name)), most=True))
    for text, name in (("fixup, 8192 rows of one dead sequence, 128 x 128", "fixup/all_dead_h128_d128/n8192"),
                       ("1000 ragged segments of 1 to 8 states, 64 x 128, f16", "ragged/f16_1to8_h64_d128/n1000")):
        goals.append(Goal(f"{text}, in times of its faster roof", 1.03, "x", on_gpu(over_roof(name)), most=True))
    for text, engine, prefixes in ENGINE_GOALS:
        goals.append(Goal(f"against {text}: the slowest case", 0.98, "x", against_engine(engine, *prefixes)))
    goals += [
        Goal("host time of a launch, C, with checks, in times of the driver's own launch", 1.25, "x",
             host_ratio("mlafix_launch, all checks", "the driver alone"), most=True),
        Goal("host time of a launch, Python, pre-bound, in times of Triton's", 0.25, "x", host_ratio("bound(stream)", "triton"), most=True),
        Goal("host time of a launch, Python, torch tensors, in times of Triton's", 0.4, "x", host_ratio("ops.merge_attn_states, outputs given", "triton"),
             most=True),
        Goal("host time of flash_attn_combine, outputs allocated, in times of torch's two empty", 1.25, "x",
             host_ratio("compat.flash_attn.flash_attn_combine", "torch.empty, two outputs"), most=True),
        Goal("host time of a merge, outputs allocated, in times of torch's two empty", 1.25, "x",
             host_ratio("ops.merge_attn_states, outputs allocated", "torch.empty, two outputs"), most=True),
        Goal("kernel text to cubin, warm, one variant", 25000, "us", python_host("compile to cubin, one variant"), most=True),
        Goal("CPU, merge of 400 MB and more, of the machine's stream roof", 85, "%",
             lambda results: of_roof(large(results.cpu.cases("merge/bf16_h128_d128/"), 400e6)) if results.cpu else None),
    ]
    return goals
