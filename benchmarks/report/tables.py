"""Writes tables as Markdown."""

from __future__ import annotations

import math
from typing import Any

from engines import behind, engine_name, ranges_rows, ratio_of, time_text
from goals import BASELINE_CHAINS, CHAINS, all_goals, chain_time
from picture import bytes_text
from results import NOT_MEASURED, OURS, Results, Run, best_roof, ours_of, percent_of_roof, roof_time, time_of, timed, total_bytes

NOTHING = "_No results of this kind are in `benchmarks/results/` yet._"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Returns a table whose first column is aligned to the left, and all others to the right."""
    rule = [":--"] + ["--:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *rows])


def micros(value: float) -> str:
    """Formats a number of microseconds with at least three digits."""
    return f"{value:.2f}" if value < 100 else f"{value:.1f}"


def goals_table(results: Results) -> str:
    """Returns the table of all goals. A sentence above it says how many goals are reached."""
    if not results.gpu:
        return NOTHING
    rows = [goal.row(results) for goal in all_goals()]
    reached = sum(row[3] == "yes" for row in rows)
    measured = sum(row[2] != NOT_MEASURED for row in rows)
    return (f"{results.gpu.title}. {reached} of the {measured} goals that were measured are reached.\n\n"
            + table(["measure", "goal", "measured", "reached"], rows))


def spread_of(case: dict[str, Any]) -> str:
    """Returns the range from the 10th to the 90th percentile of mlafix's time, as a percentage of the median."""
    us = timed(case)[ours_of(case) or OURS[1]]["us"]
    return f"{100 * (us['p90'] - us['p10']) / us['median']:.1f} %"


def cell(case: dict[str, Any], name: str) -> str:
    """Returns an implementation's microseconds and its percentage of the faster roof. Without a roof, returns the
    factor by which mlafix is faster instead of the percentage."""
    for field, text in (("wrong", "wrong result"), ("failed", "fails"), ("left_out", "left out")):
        if any(implementation["name"] == name and field in implementation for implementation in case["contenders"]):
            return text
    value, percent = time_of(case, name), percent_of_roof(case, name)
    if value is None:
        return ""
    if percent is not None:
        return f"{micros(value)} ({percent:.1f} %)"
    ours = time_of(case, "ours")
    return micros(value) + (f" ({value / ours:.2f} x)" if ours and name not in OURS else "")


def columns_of(cases: list[dict[str, Any]]) -> list[str]:
    """Returns the names of all implementations, mlafix first."""
    names = list(dict.fromkeys(implementation["name"] for case in cases for implementation in case["contenders"]))
    return [name for name in OURS if name in names] + [name for name in names if name not in OURS]


def group_table(run: Run | None, prefixes: str) -> str:
    """Returns the table of the cases with one of the prefixes, which are joined by +."""
    cases = [case for prefix in prefixes.split("+") for case in run.cases(prefix) if ours_of(case)] if run else []
    if not run or not cases:
        return NOTHING
    group = prefixes.split("/")[0]
    names = columns_of(cases)
    rows = [[case["name"].removeprefix(group + "/"), bytes_text(total_bytes(case)), *(cell(case, name) for name in names),
             spread_of(case)] for case in cases]
    head = [group, "bytes", *names, "spread"]
    for name, texts in reversed(base_columns(cases, run.is_gpu)):
        for line, text in zip([head, *rows], [name, *texts]):
            line.insert(2, text)
    return table(head, rows)


def base_columns(cases: list[dict[str, Any]], has_dependent_launch: bool) -> list[tuple[str, list[str]]]:
    """Returns the columns with the times of roofs or empty launches, with which the times of implementations are
    compared. Each column is its name and the texts of its cells."""
    bases = [roof_time(case, "roof") or case.get("empty_launch_us") for case in cases]
    if not any(bases):
        return []
    kinds = {"roof" if "roof" in case else "empty launch": None for case in cases}
    columns = [(" or ".join(kinds), [micros(base) if base else "" for base in bases])]
    if has_dependent_launch and "roof" in kinds:
        times = [roof_time(case, "roof_dependent") for case in cases]
        columns.append(("roof, dependent", [micros(time) if time else NOT_MEASURED if "roof" in case else ""
                                            for case, time in zip(cases, times)]))
    return columns


def host_table(results: Results) -> str:
    """Returns the table of host times of a launch, from C and from Python."""
    rows = [[entry["name"], micros(entry["us"]["median"]), f"{micros(entry['us']['p10'])} - {micros(entry['us']['p90'])}"]
            for run in (results.gpu, results.python) if run for entry in run.data["host"]]
    return table(["host time", "us", "p10 - p90"], rows) if rows else NOTHING


def engines_table(results: Results) -> str:
    """Returns the README's table of two-way merges with 128 heads of 128 elements: mlafix's time, its time with an
    ordinary launch as in engines, and the factors by which mlafix is faster than each engine."""
    run = results.python
    if not run:
        return NOTHING
    engines = (("vllm", "merge"), ("vllm, triton", "merge"), ("sglang", "rows_first"), ("sglang, triton", "rows_first"))
    sizes = (16, 64, 256, 8192)
    ratios = {engine: [ratio_of(run, f"{group}/bf16_h128_d128/n{n}", engine) for n in sizes] for engine, group in engines}
    ratios = {engine: found for engine, found in ratios.items() if any(found)}
    if not ratios:
        return NOTHING
    rows = []
    for at, n in enumerate(sizes):
        name = f"merge/bf16_h128_d128/n{n}"
        if not any(found[at] for found in ratios.values()):
            continue
        plain = results.gpu.time(name, "mlafix") if results.gpu else None
        rows.append([str(n), time_text(run.case(name)), NOT_MEASURED if plain is None else f"{micros(plain)} us", *(found[at] for found in ratios.values())])
    return table(["tokens", "mlafix", "ordinary launch", *map(engine_name, ratios)], rows)


def engine_ranges(results: Results) -> str:
    """Returns the table of each engine's slowest and fastest case relative to mlafix."""
    from engines import OPERATIONS

    run = results.python
    rows = [[f"`{operation}`", *row] for operation, prefixes in OPERATIONS.items() for row in (ranges_rows(run, prefixes) if run else [])]
    head = ["function", "against", "least", "most", "fails in"]
    return f"{run.title}; {run.versions}.\n\n{table(head, rows)}" if run and rows else NOTHING


def behind_table(results: Results) -> str:
    """Returns the table of the cases in which an engine's kernel is faster."""
    run = results.python
    rows = [[one.case, engine_name(one.engine), micros(one.ours), micros(one.theirs), f"{one.ratio:.2f} x"] for one in (behind(run) if run else [])]
    return table(["case", "kernel", "mlafix", "the kernel", "times as fast"], rows) if rows else "None of the cases."


def chain_row(case: dict[str, Any]) -> list[str]:
    """Returns a row that compares one launch with chains of two-way merges. Each two-way merge reads two tensors and
    writes one."""
    launches = timed(case)["pairs"]["launches"]
    whole = total_bytes(case)
    chain = 3 * launches * case["bytes"]["written"]
    ours, pairs = time_of(case, "ours"), [chain_time(case, name) for name in CHAINS]
    baselines = [chain_time(case, name) for name in BASELINE_CHAINS]
    fastest = min(time for time in pairs if time)
    roof = best_roof(case) or math.nan
    return [case["name"].split("/", 1)[1], bytes_text(whole), bytes_text(chain), f"{chain / whole:.2f}",
            *(f"{time / ours:.2f}" if time and ours else "" for time in (*pairs, *baselines)),
            f"{fastest / roof:.2f}", f"{100 * (chain / fastest) / (whole / roof):.0f} %"]


def chains_table(results: Results) -> str:
    """Returns the table of the bytes and times of chains of two-way merges, relative to one launch."""
    cases = [case for case in results.gpu.cases("n_way/") if "pairs" in timed(case)] if results.gpu else []
    if not cases:
        return NOTHING
    head = ["case", "bytes, one launch", "bytes, chain", "times the bytes", *(f"times the time, {name}" for name in (*CHAINS, *BASELINE_CHAINS)),
            "one launch at the roof", "the faster chain's rate, of the roof's"]
    return table(head, [chain_row(case) for case in cases])


def gains_table(results: Results) -> str:
    """Returns the table of the gains of design decisions. A gain is the time without the decision, divided by the time
    of the same work with it."""
    if not results.gpu:
        return NOTHING
    run, rows = results.gpu, []
    merges = [case["name"] for case in run.cases("merge/bf16_h128_d128/")]
    chains = [case["name"] for case in run.cases("chain/")]
    lists = [case["name"] for case in run.cases("n_way/list_k")]
    for text, names, slow, fast in (
            ("dependent launch, merge after merge", merges, "mlafix", "mlafix, dependent"),
            ("dependent launch, fixup, then merge", chains, "mlafix", "mlafix, dependent"),
            ("data loads ahead of the lse (in the hand-written CUDA)", merges, "cuda, lse first", "cuda"),
            ("one launch in place of a chain of pairs", lists, "pairs, dependent", "ours")):
        gains = [(name.split("/", 1)[1], ratio) for name in names if (ratio := run.ratio(name, slow, fast))]
        if gains:
            rows.append([text, ", ".join(f"{ratio:.2f} ({name.replace('_h128_d128', '')})" for name, ratio in gains)])
    for case in run.cases("n_way/list_open_k"):
        slow, fast = time_of(case, "ours"), run.time(case["name"].replace("_open", ""), "ours")
        if slow and fast:
            name = case["name"].split("/", 1)[1].replace("_open", "").replace("_h128_d128", "")
            rows.append(["code for exactly the buffers there are, in place of open slots", f"{slow / fast:.2f} ({name})"])
    return table(["decision", "times as fast (case)"], rows) if rows else NOTHING
