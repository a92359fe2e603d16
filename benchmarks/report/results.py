"""Reads the JSON files of benchmarks (docs/Benchmark.md describes their fields), and answers questions about them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

OURS = ("mlafix, dependent", "mlafix")


@dataclass
class Run:
    """One file of results. All times are medians in microseconds."""

    path: Path
    data: dict[str, Any]

    @property
    def title(self) -> str:
        """The machine, the program and the number of rounds."""
        return f"{self.data['machine']}; {self.data['tool'].partition(' (')[0]}, {self.data['rounds']} rounds"

    @property
    def versions(self) -> str:
        """The versions used in the measurement, such as "torch 2.11.0, triton 3.6.0"."""
        return self.data["tool"].partition(" (")[2].removesuffix(")")

    @property
    def is_gpu(self) -> bool:
        """True if mlafix-bench measured a GPU. Only a GPU can have a roof with dependent launch."""
        return role_of(self.data) == "gpu"

    def cases(self, prefix: str = "") -> Iterator[dict[str, Any]]:
        """Yields the measured cases whose names begin with `prefix`, in the order of the file."""
        for case in self.data["cases"]:
            if case["name"].startswith(prefix) and "left_out" not in case:
                yield case

    def case(self, name: str) -> dict[str, Any] | None:
        """Returns the case of this name, or None if it was not measured."""
        return next((case for case in self.cases() if case["name"] == name), None)

    def time(self, name: str, implementation: str) -> float | None:
        """Returns the time of an implementation in a case. The implementation "ours" is the launch that users get."""
        case = self.case(name)
        return time_of(case, implementation) if case else None

    def ratio(self, name: str, slow: str, fast: str) -> float | None:
        """Returns the factor by which `fast` is faster than `slow`, or None if one was not measured."""
        a, b = self.time(name, slow), self.time(name, fast)
        return a / b if a and b else None

    def host(self, name: str) -> float | None:
        """Returns the host time of a launch, or None if it was not measured."""
        return next((entry["us"]["median"] for entry in self.data["host"] if entry["name"] == name), None)


def timed(case: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the implementations that were timed, by name."""
    return {implementation["name"]: implementation for implementation in case["contenders"] if "us" in implementation}


def ours_of(case: dict[str, Any]) -> str | None:
    """Returns the name of the implementation that users get: with dependent launch if the kernel has it. Returns None
    if it was not timed."""
    return next((name for name in OURS if name in timed(case)), None)


def time_of(case: dict[str, Any], implementation: str) -> float | None:
    """Returns the median time in microseconds, or None if the implementation was not timed."""
    name = ours_of(case) if implementation == "ours" else implementation
    entry = timed(case).get(name or "")
    return entry["us"]["median"] if entry else None


ROOFS = {"roof": "roof", "roof, dependent": "roof_dependent"}
"""The names of the roofs in tables, with their fields in a file: for a chain of plain launches, and for a chain with
dependent launch."""

NOT_MEASURED = "not measured"


def roof_time(case: dict[str, Any], field: str) -> float | None:
    """Returns the median time of a roof in microseconds, or None if it was not measured, as in older files."""
    return case[field]["us"]["median"] if field in case else None


def best_roof(case: dict[str, Any]) -> float | None:
    """Returns the time of the faster roof that was measured, or None."""
    return min((time for field in ROOFS.values() if (time := roof_time(case, field))), default=None)


def percent_of_roof(case: dict[str, Any], implementation: str, field: str | None = None) -> float | None:
    """Returns the time of a roof (by default the faster one) as a percentage of the implementation's time."""
    micros = time_of(case, implementation)
    roof = roof_time(case, field) if field else best_roof(case)
    return 100 * roof / micros if micros and roof else None


def total_bytes(case: dict[str, Any]) -> int:
    """Returns the number of bytes that any implementation must move."""
    return case["bytes"]["read"] + case["bytes"]["written"]


@dataclass
class Results:
    """The results of one card: at most one file for the GPU, one for the CPU, and one for Python."""

    gpu: Run | None = None
    cpu: Run | None = None
    python: Run | None = None


def role_of(data: dict[str, Any]) -> str:
    """Returns the name of the field of Results in which a file belongs."""
    if not data["tool"].startswith("mlafix-bench "):
        return "python"
    return "cpu" if data["device"] == "cpu" else "gpu"


def card_of(data: dict[str, Any]) -> str:
    """Returns "h100" for "NVIDIA H100 80GB HBM3". Returns "" for a CPU, or if the name contains no card."""
    found = re.match(r"NVIDIA (\w+)", data["machine"]) if data["device"] != "cpu" else None
    return found[1].lower() if found else ""


def load(folder: Path) -> dict[str, Results]:
    """Reads every *.json of the folder, by card. Each card also has the CPU's results.

    Raises ValueError if two files have the same role or a schema is unknown.
    """
    found: dict[str, Results] = {}
    for path in sorted(folder.glob("*.json")):
        data = json.loads(path.read_text())
        if data.get("schema") != 1:
            raise ValueError(f"{path}: expected schema 1, got {data.get('schema')}")
        role = role_of(data)
        results = found.setdefault(card_of(data), Results())
        if before := getattr(results, role):
            raise ValueError(f"expected one file of results for '{role}', got {before.path.name} and {path.name}")
        setattr(results, role, Run(path, data))
    shared = found.pop("", None) if len(found) > 1 else None
    for results in found.values():
        results.cpu = results.cpu or (shared.cpu if shared else None)
    return found or {"": Results()}
