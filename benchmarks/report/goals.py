"""The goals of the project on an H200, and the measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Iterable

from results import NOT_MEASURED, Results, Run, percent_of_roof, time_of, total_bytes

Value = float | None


@dataclass
class Goal:
    """`value` is to be at least (or, `most`, at most) `limit`."""

    text: str
    limit: float
    unit: str
    value: Callable[[Results], Value]
    most: bool = False

    def row(self, results: Results) -> list[str]:
        """The name of the goal, the value wanted, the value measured, and "yes" if that is enough."""
        value = self.value(results)
        wanted = f"{'at most' if self.most else 'at least'} {self.limit:g} {self.unit}".rstrip()
        if value is None:
            return [self.text, wanted, NOT_MEASURED, ""]
        reached = value <= self.limit if self.most else value >= self.limit
        return [self.text, wanted, f"{value:.3g} {self.unit}".rstrip(), "yes" if reached else "**no**"]


def worst(values: Iterable[Value], most: bool = False) -> Value:
    """The one that is furthest from a goal."""
    known = [value for value in values if value is not None]
    return (max(known) if most else min(known)) if known else None


def on_gpu(ask: Callable[[Run], Value]) -> Callable[[Results], Value]:
    """A question to the GPU's run, where there is one."""
    return lambda results: ask(results.gpu) if results.gpu else None


CHAINS = ("pairs", "pairs, in place")
"""The chains of our merges of two."""

BASELINE_CHAINS = ("cuda, pairs", "cuda, pairs, in place")
"""The same of hand-written merges."""


def chain_time(case: dict[str, Any], chain: str) -> Value:
    """With dependent launch, where that was measured."""
    return time_of(case, f"{chain}, dependent") or time_of(case, chain)


def merge(n: int) -> str:
    """The name of DeepSeek-V3's merge."""
    return f"merge/bf16_h128_d128/n{n}"


def roof_of_large_merges(run: Run) -> Value:
    """Percent."""
    cases = [run.case(merge(n)) for n in (4096, 8192)]
    return worst(percent_of_roof(case, "ours", "roof") for case in cases if case)


def of_dependent_roof(name: str) -> Callable[[Run], Value]:
    """Percent."""

    def ask(run: Run) -> Value:
        case = run.case(name)
        return percent_of_roof(case, "ours", "roof_dependent") if case else None

    return ask


def large_shapes_over_baseline(run: Run) -> Value:
    """Ours over the best hand-written form of the same shape, both as percent of the roof; at least 100 MB."""
    ratios: list[Value] = []
    for case in [*run.cases("merge/"), *run.cases("merge_fp8/")]:
        baselines = [time for name in ("cuda", "cuda, dependent") if (time := time_of(case, name))]
        ours = time_of(case, "ours")
        if total_bytes(case) >= 100e6 and baselines and ours:
            ratios.append(min(baselines) / ours)
    return worst(ratios)


def against_whole_merge(place: str, whole_case: str = "merge") -> Callable[[Run], Value]:
    """Time of a merge with half of the rows past the threshold over that of a whole one."""

    def ask(run: Run) -> Value:
        parts = []
        for n in (1024, 4096, 8192):
            half = run.time(f"threshold/{place}_h128_d128/n{n}", "ours")
            whole = run.time(f"{whole_case}/bf16_h128_d128/n{n}", "ours")
            parts.append(half / whole if half and whole else None)
        return worst(parts, most=True)

    return ask


def over_pairs(ways: int, chains: tuple[str, ...]) -> Callable[[Run], Value]:
    """How many times faster one launch is than the fastest of some chains of pairs."""

    def ask(run: Run) -> Value:
        ratios: list[Value] = []
        for n in (16, 64, 256, 1024, 8192):
            case = run.case(f"n_way/list_k{ways}_h128_d128/n{n}")
            ours = time_of(case, "ours") if case else None
            ratios += [pairs / ours for chain in chains if case and ours and (pairs := chain_time(case, chain))]
        return worst(ratios)

    return ask


def small_kernels(run: Run) -> Value:
    """The slowest of the padding and metadata kernels at serving sizes."""
    cases = [*run.cases("pad/"), *run.cases("metadata/")]
    return worst((time_of(case, "ours") for case in cases if "roof" not in case), most=True)


def fill_roof(run: Run) -> Value:
    """Percent, of every size from 400 MB on."""
    cases = [case for case in run.cases("fixup/all_dead") if total_bytes(case) >= 400e6]
    return worst(percent_of_roof(case, "ours", "roof") for case in cases)


def cpu_roof(results: Results) -> Value:
    """Percent, of the merges of 400 MB and more."""
    if not results.cpu:
        return None
    cases = [case for case in results.cpu.cases("merge/bf16_h128_d128/") if total_bytes(case) >= 400e6]
    return worst(percent_of_roof(case, "ours", "roof") for case in cases)


def python_host(name: str) -> Callable[[Results], Value]:
    """Microseconds a call."""
    return lambda results: results.python.host(name) if results.python else None


def over_allocation(results: Results) -> Value:
    """Microseconds that a merge which allocates its outputs takes beyond torch's own two `empty`, in the same run."""
    whole, alone = (python_host(name)(results) for name in ("ops.merge_attn_states, outputs allocated", "torch.empty, two outputs"))
    return whole - alone if whole and alone else None


PEER_ROWS = (
    ("combine of f32 partials, S = 32, B = 64, H = 16, D = 512", "combine/f32_s32_h16_d512/b64", 16.5),
    ("combine of f32 partials, S = 8, B = 64, H = 16, D = 512", "combine/f32_s8_h16_d512/b64", 5),
    ("combine of f32 partials, S = 32, B = 64, H = 16, D = 128", "combine/f32_s32_h16_d128/b64", 5),
    ("fixup, 8192 rows of one dead sequence, 128 x 128", "fixup/all_dead_h128_d128/n8192", 60.5),
    ("1000 ragged segments of 1 to 8 states, 64 x 128, f16", "ragged/f16_1to8_h64_d128/n1000", 22),
)
"""Where peers' kernels were ahead, or may come to be: what, the case, at most so many microseconds."""


def all_goals() -> list[Goal]:
    """In the order of the table."""
    goals = [Goal("merge bf16, H = D = 128, 4096 tokens and more, of the 2R1W roof", 97.5, "%", on_gpu(roof_of_large_merges))]
    for n in (16, 64, 256, 1024):
        goals.append(Goal(f"merge, {n} tokens, in a chain with dependent launch, against hand-written CUDA with the same", 1, "x",
                          on_gpu(lambda run, n=n: run.ratio(merge(n), "cuda, dependent", "ours"))))
    for n in (16, 64, 256):
        goals.append(Goal(f"merge, {n} tokens, of the roof with dependent launch", 95, "%", on_gpu(of_dependent_roof(merge(n)))))
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
        Goal("fixup, all rows dead, 400 MB and more, of the fill roof", 92, "%", on_gpu(fill_roof)),
        Goal("fixup, 1 x 16384 tokens alive, 255 x 1 dead", 5, "us",
             on_gpu(lambda run: run.time("fixup/short_dead_16384_and_255x1", "ours")), most=True),
        Goal("fixup, nothing dead, 256 sequences of 64 tokens", 1.4, "us",
             on_gpu(lambda run: run.time("fixup/none_dead_256x64", "ours")), most=True),
        Goal("fixup, nothing dead, 4096 sequences of one token", 2.5, "us",
             on_gpu(lambda run: run.time("fixup/none_dead_4096x1", "ours")), most=True),
        Goal("padding and metadata kernels at serving sizes, but for those that write megabytes: the slowest", 1.5, "us", on_gpu(small_kernels), most=True),
    ]
    for n, times in ((16, 1.3), (64, 1.15)):
        goals.append(Goal(f"fixup, then merge, {n} tokens, against the same without dependent launch", times, "x",
                          on_gpu(lambda run, n=n: run.ratio(f"chain/fixup_merge_h128_d128/n{n}", "mlafix", "mlafix, dependent"))))
    for text, name, limit in PEER_ROWS:
        goals.append(Goal(text, limit, "us", on_gpu(lambda run, name=name: run.time(name, "ours")), most=True))
    goals += [
        Goal("host time of a launch, C, with checks, of sizes it has seen", 2.5, "us", on_gpu(lambda run: run.host("mlafix_launch, all checks")), most=True),
        Goal("host time of a launch, Python, pre-bound", 3, "us", python_host("bound(stream)"), most=True),
        Goal("host time of a launch, Python, torch tensors", 6, "us", python_host("ops.merge_attn_states, outputs given"), most=True),
        Goal("host time of flash_attn_combine, outputs allocated", 8, "us", python_host("compat.flash_attn.flash_attn_combine"), most=True),
        Goal("host time of a merge, outputs allocated, beyond torch's two empty", 4, "us", over_allocation, most=True),
        Goal("kernel text to cubin, warm, one variant", 25000, "us", python_host("compile to cubin, one variant"), most=True),
        Goal("CPU, merge of 400 MB and more, of the machine's stream roof", 85, "%", cpu_roof),
    ]
    return goals
