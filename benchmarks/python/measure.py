"""Times work on a GPU by replays of CUDA graphs, and on a CPU by a loop. Each round times all implementations that are
compared.

As in mlafix-bench (docs/Benchmark.md), calls use several sets of buffers in turn, which on a GPU together exceed the
last-level cache. The results are medians of rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Protocol

import torch

Call = Callable[[], object]


class Replay(Protocol):
    """Calls that have been prepared for repeated runs."""

    def time(self) -> float:
        """Runs the calls once. Returns the microseconds for all of them."""


class GraphReplay:
    """Calls in a CUDA graph. Only the time on the device is measured."""

    def __init__(self, calls: list[Call]) -> None:
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for call in calls:
                call()
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def time(self) -> float:
        self.begin.record()
        self.graph.replay()
        self.end.record()
        self.end.synchronize()
        return 1e3 * self.begin.elapsed_time(self.end)


class LoopReplay:
    """Calls in a loop on a CPU."""

    def __init__(self, calls: list[Call]) -> None:
        self.calls = calls

    def time(self) -> float:
        begin = time.perf_counter()
        for call in self.calls:
            call()
        return 1e6 * (time.perf_counter() - begin)


@dataclass(frozen=True)
class Settings:
    """Settings of a run."""

    device: torch.device
    rounds: int
    replay_micros: float
    rotate: int
    """The total size in bytes that a case's buffer sets should at least have on a GPU."""

    def count_sets(self, size: int) -> int:
        """Returns the number of buffer sets for sets of `size` bytes: 2 to 64 on a GPU, 2 on a CPU."""
        return max(2, min(64, -(-self.rotate // size))) if self.is_cuda else 2

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    def synchronize(self) -> None:
        """Waits for the device."""
        if self.is_cuda:
            torch.cuda.synchronize(self.device)

    def record(self, calls: list[Call]) -> Replay:
        """Prepares calls for replay on this device."""
        return GraphReplay(calls) if self.is_cuda else LoopReplay(calls)


def read_options(description: str) -> tuple[argparse.Namespace, Settings]:
    """Parses the command line of a benchmark that makes its own buffers: the device, the number of rounds, and `json`,
    which is a file for the results or None."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--quick", action="store_true", help="one round of little data, to see that it works")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rounds, micros = (1, 1.0) if options.quick else (options.rounds, 2000.0)
    return options, Settings(torch.device(options.device), rounds, micros, 200 << 20)


def as_json(value: object, indent: int = 0) -> str:
    """Formats JSON as mlafix-bench does, with each element of a list on its own line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {as_json(member, indent)}" for name, member in value.items()) + "}"
    if isinstance(value, list) and value:
        lines = ",".join(f"\n{' ' * (indent + 1)}{as_json(element, indent + 1)}" for element in value)
        return f"[{lines}\n{' ' * indent}]"
    return json.dumps(value)


def write_results(options: argparse.Namespace, settings: Settings, **results: object) -> None:
    """Writes results to the file of `read_options`, if there is one, together with the machine on which they were
    measured."""
    if options.json:
        name = torch.cuda.get_device_name(settings.device) if settings.is_cuda else "CPU"
        options.json.write_text(as_json({"device": name, "rounds": settings.rounds, **results}) + "\n")


def first_line(error: Exception) -> str:
    """Returns the first line of an error's text."""
    return (str(error).splitlines() or [""])[0]


def forget_failed_launch(device: torch.device) -> None:
    """Clears the error that a refused launch of another library left. Otherwise the next capture of a graph would fail
    with that error. torch cannot delete a graph whose capture failed in this way, so the process would end."""
    with contextlib.suppress(RuntimeError):
        torch.ones(1, device=device)


def summarize(times: list[float]) -> dict[str, float]:
    """Returns the 10th percentile, the median and the 90th percentile."""
    ordered = sorted(times)
    return {name: round(ordered[int(part * (len(ordered) - 1) + 0.5)], 4)
            for name, part in (("p10", 0.1), ("median", 0.5), ("p90", 0.9))}


def measure(settings: Settings, implementations: dict[str, list[Call]], must: str) -> dict[str, dict[str, float]]:
    """Returns the microseconds per call of each implementation. An implementation has a call for every set of buffers.

    Baselines that cannot be captured in a graph are left out. Errors of the implementation `must` are raised.
    """
    replays: dict[str, tuple[Replay, int]] = {}
    for name, calls in implementations.items():
        try:
            trial = settings.record(calls)
            trial.time()
        except Exception as error:
            if name == must:
                raise
            print(f"  {name:<16} skipped: {type(error).__name__}: {first_line(error)}")
            forget_failed_launch(settings.device)
            continue
        micros = min(trial.time() for _ in range(3)) / len(calls)
        wanted = min(int(settings.replay_micros / micros) + 1, 512)
        turns = -(-wanted // len(calls))
        replays[name] = (settings.record(calls * turns) if turns > 1 else trial, turns * len(calls))
    times: dict[str, list[float]] = {name: [] for name in replays}
    warm_up = 2
    for turn in range(-warm_up, settings.rounds):
        for name, (replay, count) in replays.items():
            micros = replay.time() / count
            if turn >= 0:
                times[name].append(micros)
    return {name: summarize(values) for name, values in times.items()}


def medians(settings: Settings, implementations: dict[str, list[Call]], must: str) -> dict[str, float]:
    """Returns the medians of `measure` in microseconds per call."""
    return {name: micros["median"] for name, micros in measure(settings, implementations, must).items()}
