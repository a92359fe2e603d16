"""Makes failing cases small: removes everything that the failure does not need."""

from __future__ import annotations

import argparse
import pickle
import time
from collections.abc import Callable
from typing import Any

import cases
import workers
from edits import Edit, call_edits, expression_edits, kernel_edits, statement_edits, tidy
from generate import generate
from render import listing
from report import Report, group, save
from syntax import Case
from wellformed import is_well_formed

_SECONDS = 90.0


class Shrinker:
    """Makes one case small.

    Args:
        fails: Returns True if a case fails like the original one.
    """

    def __init__(self, fails: Callable[[Case], bool], seconds: float = _SECONDS) -> None:
        self.fails, self.end = fails, time.monotonic() + seconds
        self.seen: set[str] = set()

    def shrink(self, case: Case) -> Case:
        while time.monotonic() < self.end:
            smaller = self._round(case)
            if smaller is None:
                break
            case = smaller
        return case

    def _round(self, case: Case) -> Case | None:
        """Returns the case after one pass over all edits. Returns None if no edit helped."""
        changed = False
        for kind in (call_edits, statement_edits, expression_edits, kernel_edits):
            tried = 0
            while time.monotonic() < self.end:
                edits = list(kind(case))
                found, image = None, pickle.dumps(case)  # unpickling takes a fifth of the time of a deep copy
                for i in range(tried, len(edits)):
                    found = self._try(pickle.loads(image), edits[i])
                    tried = i
                    if found is not None or time.monotonic() > self.end:
                        break
                if found is None:
                    break
                case, changed = found, True
        return case if changed else None

    def _try(self, candidate: Case, edit: Edit) -> Case | None:
        """Returns the candidate after the edit if it still fails, else None."""
        try:
            if not edit(candidate):
                return None
            tidy(candidate)
            text = cases.write(candidate)
        except (KeyError, IndexError, StopIteration, AttributeError, TypeError):
            return None
        if text in self.seen or not is_well_formed(candidate):
            return None
        self.seen.add(text)
        return candidate if self.fails(candidate) else None


def shrink_one(case: Case, answer: dict[str, Any], where: str, target: str = "", seconds: float = _SECONDS) -> tuple[Case, dict[str, Any]]:
    """Makes the case small. Returns the small case and the answer that describes its failure."""
    wanted = group(answer["kind"], answer["message"])
    worker = workers.Worker(where, 0, target)
    last = answer

    def fails(candidate: Case) -> bool:
        nonlocal last
        found = workers.ask(worker, {"case": cases.write(candidate), "seed": 0}, 30.0)
        if group(found["kind"], found["message"]) != wanted:
            return False
        last = found
        return True

    try:
        return Shrinker(fails, seconds).shrink(case), last
    finally:
        worker.stop()


def shrink_all(report: Report, options: argparse.Namespace) -> None:
    """Makes one case of each kind of failure small and prints it. Also saves it if the options name a folder."""
    for name, answers in report.groups.items():
        answer = answers[0]
        case, last = shrink_one(generate(answer["seed"]), answer, options.device, options.target)
        text = listing(case)
        print(f"--- {name}: seed {answer['seed']} made small\n{last['message']}\n\n{text}", flush=True)
        if options.save:
            save(options.save / f"small_{answer['seed']}.py", f"{name} (seed {answer['seed']} on {options.device}).", text)
