"""Reads the JSON of benchmarks (docs/Benchmark.md describes its fields) and answers questions about it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

OURS = ("mlafix, dependent", "mlafix")


@dataclass
class Run:
    """One results file. Times are medians in microseconds."""

    path: Path
    data: dict[str, Any]

    @property
    def title(self) -> str:
        """The machine and the program."""
        return f"{self.data['machine']}; {self.data['tool'].partition(' (')[0]}, {self.data['rounds']} rounds"

    @property
    def versions(self) -> str:
        """The versions used in the measurement, such as "torch 2.11.0, triton 3.6.0"."""
        return self.data["tool"].partition(" (")[2].removesuffix(")")

    @property
    def is_gpu(self) -> bool:
        """True if mlafix-bench measured a GPU, which has a roof with dependent launch from sm_90 on."""
        return role_of(self.data) == "gpu"

    def cases(self, prefix: str = "") -> Iterator[dict[str, Any]]:
        """The measured cases, in the order of the file."""
        for case in self.data["cases"]:
            if case["name"].startswith(prefix) and "left_out" not in case:
                yield case

    def case(self, name: str) -> dict[str, Any] | None:
        """The case of that name, if it was measured."""
        return next((case for case in self.cases() if case["name"] == name), None)

    def time(self, name: str, implementation: str) -> float | None:
        """The time of an implementation in a case. "ours" is the launch that users get."""
        case = self.case(name)
        return time_of(case, implementation) if case else None

    def ratio(self, name: str, slow: str, fast: str) -> float | None:
        """The factor by which `fast` is faster than `slow`."""
        a, b = self.time(name, slow), self.time(name, fast)
        return a / b if a and b else None

    def host(self, name: str) -> float | None:
        """The host time of a launch."""
        return next((entry["us"]["median"] for entry in self.data["host"] if entry["name"] == name), None)


def timed(case: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The implementations that were timed, by name."""
    return {implementation["name"]: implementation for implementation in case["contenders"] if "us" in implementation}


def ours_of(case: dict[str, Any]) -> str | None:
    """The implementation that users get: with dependent launch if the kernel has it."""
    return next((name for name in OURS if name in timed(case)), None)


def time_of(case: dict[str, Any], implementation: str) -> float | None:
    """The median in microseconds. None if the implementation was not timed."""
    name = ours_of(case) if implementation == "ours" else implementation
    entry = timed(case).get(name or "")
    return entry["us"]["median"] if entry else None


ROOFS = {"roof": "roof", "roof, dependent": "roof_dependent"}
"""The names of the roofs in tables, with their fields: for a chain of plain launches, and for one with dependent
launch."""

NOT_MEASURED = "not measured"


def roof_time(case: dict[str, Any], field: str) -> float | None:
    """The median in microseconds. None if that roof was not measured, as in older files."""
    return case[field]["us"]["median"] if field in case else None


def best_roof(case: dict[str, Any]) -> float | None:
    """The faster of the roofs that were measured."""
    return min((time for field in ROOFS.values() if (time := roof_time(case, field))), default=None)


def percent_of_roof(case: dict[str, Any], implementation: str, field: str | None = None) -> float | None:
    """The time of a roof (the faster one by default) relative to the implementation's."""
    micros = time_of(case, implementation)
    roof = roof_time(case, field) if field else best_roof(case)
    return 100 * roof / micros if micros and roof else None


def total_bytes(case: dict[str, Any]) -> int:
    """Bytes that any implementation must move."""
    return case["bytes"]["read"] + case["bytes"]["written"]


@dataclass
class Results:
    """The results of one card by kind, with at most one file of each."""

    gpu: Run | None = None
    cpu: Run | None = None
    python: Run | None = None


def role_of(data: dict[str, Any]) -> str:
    """The field of Results that a file fills."""
    if not data["tool"].startswith("mlafix-bench "):
        return "python"
    return "cpu" if data["device"] == "cpu" else "gpu"


def card_of(data: dict[str, Any]) -> str:
    """"h100" for "NVIDIA H100 80GB HBM3". "" for a CPU, and if the name contains no card."""
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
