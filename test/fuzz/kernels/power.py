"""Measures the share of planted faults that random kernels reveal, for each word of the language."""

from __future__ import annotations

import collections
import itertools
import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import plant
import workers
from generate import generate

PAGE = Path(__file__).resolve().parents[3] / "docs" / "Python.md"
FIRST = 100000  # the first seed; no other test uses seeds from here on


def is_seen(answer: dict[str, Any]) -> bool:
    """True if the fault is detected, by the kernel's results or because the kernel is refused."""
    return answer["kind"] == ("error" if answer["plant"] in plant.REFUSED else "wrong")


def is_valid(answer: dict[str, Any]) -> bool:
    """True if the kernel with the fault runs or must be refused. Otherwise it does not compile."""
    return answer["kind"] in ("ok", "wrong") or answer["plant"] in plant.REFUSED


class Power:
    """Plants each kind of fault in a number of kernels. Also runs each of these kernels without a fault.

    Args:
        each: the number of kernels for each kind.
        kinds: the kinds of fault.
    """

    def __init__(self, each: int, kinds: list[str], first: int = FIRST) -> None:
        self.each, self.kinds, self.first = each, kinds, first
        self.given: collections.Counter[str] = collections.Counter()
        self.plain: dict[int, str] = {}  # the outcome of each seed's kernel
        self.planted: list[dict[str, Any]] = []

    def jobs(self) -> Iterator[dict[str, Any]]:
        for seed in itertools.count(self.first):
            wanting = [kind for kind in self.kinds if self.given[kind] < self.each]
            if not wanting:
                return
            case = generate(seed)
            having = [kind for kind in wanting if plant.has(case.kernel, kind)]
            if having:
                yield {"seed": seed}
            for kind in having:
                self.given[kind] += 1
                yield {"seed": seed, "plant": kind}

    def add(self, answer: dict[str, Any]) -> None:
        if answer["plant"]:
            self.planted.append(answer)
        else:
            self.plain[answer["seed"]] = answer["kind"]

    def share(self, kinds: tuple[str, ...]) -> tuple[int, int]:
        """Returns (detected, planted): the numbers of faults of these kinds in kernels that are right without the
        fault."""
        counted = [a for a in self.planted if a["plant"] in kinds and self.plain.get(a["seed"]) == "ok" and is_valid(a)]
        return sum(map(is_seen, counted)), len(counted)

    def table(self) -> str:
        """Returns the results as a Markdown table, by word of the index in docs/Python.md. Kinds of fault without a
        word follow."""
        words = plant.index(PAGE.read_text(encoding="utf-8"))
        listed = {kind for word in words for kind in plant.kinds_of(word)}
        rows = [(word, plant.kinds_of(word)) for word in words] + [(kind, (kind,)) for kind in self.kinds if kind not in listed]
        cells = [(f"`{word}`", *self.share(kinds)) for word, kinds in rows if set(kinds) & set(self.kinds)]
        texts = [f"{word} | {seen} of {planted}" for word, seen, planted in cells]
        texts += [" | "] * (-len(texts) % 4)
        height = len(texts) // 4
        lines = [f"| {' | '.join(texts[i + height * column] for column in range(4))} |" for i in range(height)]
        seen, planted = self.share(tuple(self.kinds))
        return "\n".join(["| word | seen | word | seen | word | seen | word | seen |", "|---|---|---|---|---|---|---|---|", *lines,
                          "", f"In all {seen} of {planted}, {100 * seen / max(planted, 1):.0f} %. Not counted: {len(self.planted) - planted}."])  # fmt: skip


def measure(each: int, kinds: list[str], jobs: int, where: str, late: Any, limit: float, first: int = FIRST) -> Power:
    """Runs kernels with faults. On the device "interpreter", nothing is compiled: only the interpreter's results with
    and without the fault are compared."""
    power = Power(each, kinds, first)
    if where == "interpreter":
        _interpret_all(power, jobs, late)
        return power
    for answer in workers.run(power.jobs(), jobs, where, 0, late, limit):
        power.add(answer)
    return power


def _interpret_all(power: Power, jobs: int, late: Any) -> None:
    """Interprets, for each kind of fault, the first kernels in which it can be planted. Does not check the kernels
    without the fault: they count as right."""
    power.kinds = [kind for kind in power.kinds if kind not in plant.REFUSED]
    size = 4 * jobs
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for first in itertools.count(power.first, size):
            wanting = [kind for kind in power.kinds if power.given[kind] < power.each]
            if not wanting or late():
                return
            for answers in pool.starmap(interpret, [(seed, wanting) for seed in range(first, first + size)], 1):
                for answer in answers:
                    power.given[answer["plant"]] += 1
                    if power.given[answer["plant"]] <= power.each:
                        power.plain[answer["seed"]] = "ok"
                        power.add(answer)


def interpret(seed: int, kinds: list[str]) -> list[dict[str, Any]]:
    """Returns an answer for each of `kinds` that can be planted in the seed's kernel."""
    from meaning import is_told

    case = generate(seed)
    spoiled = {kind: plant.spoil(case.kernel, kind, seed) for kind in kinds}
    return [{"kind": "wrong" if is_told(case, kernel) else "ok", "seed": seed, "plant": kind} for kind, kernel in spoiled.items() if kernel]
