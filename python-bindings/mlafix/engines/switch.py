"""Stands in for an engine's function: counts calls, falls back to the engine's function, and compares results with it."""

from __future__ import annotations

import functools
import inspect
import logging
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from multiprocessing.util import Finalize
from typing import Any, NamedTuple

from ..errors import ArgumentError, CompileError, UnitError

Function = Callable[..., Any]

REFUSALS = (ArgumentError, UnitError, CompileError)
"""The exceptions that mlafix raises before it launches or writes anything. After one of them the engine's own function
can still make the call."""


class Choice(NamedTuple):
    """The functions and modes that MLAFIX_VLLM or MLAFIX_SGLANG selects."""

    names: frozenset[str]
    """The names of the selected functions. Empty: all functions, except those that are replaced only by name
    (`Seam.only_by_name`)."""
    compares: bool
    counts: bool

    def wants(self, function: str, only_by_name: str) -> bool:
        return function in self.names if self.names else not only_by_name


def choice_of(text: str) -> Choice | None:
    """Parses comma-separated words: "1", "compare", "count", or names of functions. Returns None if nothing is to be
    replaced."""
    words = {word.strip().lower() for word in text.split(",")} - {""}
    if not words or words & {"0", "off", "false", "no"}:
        return None
    return Choice(frozenset(words - {"1", "on", "true", "yes", "compare", "count"}), "compare" in words, bool(words & {"count", "compare"}))


class Tally:
    """Counts the calls of one function in this process."""

    def __init__(self, name: str, logger: logging.Logger) -> None:
        self.name, self.calls, self.fallbacks = name, 0, 0
        self.largest = 0.0
        self.times: list[tuple[float, float]] = []
        self._logger = logger
        self._said: set[str] = set()

    def fall_back(self, error: Exception) -> None:
        """Counts a call that the engine's own function makes because mlafix refused it. Logs each reason once."""
        self.fallbacks += 1
        reason = f"{type(error).__name__}: {error}"
        if reason not in self._said:
            self._said.add(reason)
            self._logger.warning("mlafix: %s: the engine's own is called: %s", self.name, reason)

    def line(self) -> str:
        text = f"{self.name}: {self.calls} calls, {self.fallbacks} by the engine's own"
        if self.times:
            theirs, ours = (statistics.median(column) for column in zip(*self.times))
            text += f"; compared {len(self.times)}: largest difference {self.largest:.3g}, medians {theirs:.1f} us there, {ours:.1f} us here"
        return text


def marked(call: Function) -> Function:
    """Marks a function as a stand-in and returns it."""
    call.is_mlafix_stand_in = True  # type: ignore[attr-defined]
    return call


def is_stand_in(function: Function) -> bool:
    """True if `stand_in` or `compared` made the function, or if it wraps such a function (functools.wraps)."""
    return getattr(function, "is_mlafix_stand_in", False) is True


def stand_in(own: Function, mine: Function, tally: Tally, refusals: tuple[type[Exception], ...] = REFUSALS) -> Function:
    """Returns a function that calls `mine`. It calls `own` instead if `mine` raises one of `refusals`, which happens
    before anything is written."""

    @functools.wraps(own)
    def call(*args: Any, **kwargs: Any) -> Any:
        tally.calls += 1
        try:
            return mine(*args, **kwargs)
        except refusals as error:
            tally.fall_back(error)
        return own(*args, **kwargs)

    return marked(call)


def compared(own: Function, mine: Function, tally: Tally, writes: Iterable[str]) -> Function:
    """Returns a function that does what `stand_in` does, and also runs `own` on copies of the outputs to compare the
    results. The results of `mine` are kept.

    Waits for the device. Compares nothing while a graph is captured, or if `mine` refuses.
    """
    order = list(inspect.signature(own).parameters)
    both = stand_in(own, mine, tally)

    @functools.wraps(own)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(order, args)), **kwargs}
        if _captures():
            return both(*args, **kwargs)
        copies = {name: _copy(value) if name in writes else value for name, value in given.items()}
        refused = tally.fallbacks
        theirs, their_time = _timed(own, copies)
        ours, our_time = _timed(both, given)
        if tally.fallbacks == refused:
            pairs = [(copies[name], given[name]) for name in writes if given.get(name) is not None]
            tally.largest = max([tally.largest, *(difference(*pair) for pair in [*pairs, *_results(theirs, ours)])])
            tally.times.append((their_time, our_time))
        return ours

    return marked(call)


def _copy(value: Any) -> Any:
    return value.clone() if hasattr(value, "clone") else value


def _results(theirs: Any, ours: Any) -> list[tuple[Any, Any]]:
    if isinstance(theirs, (tuple, list)):
        return [pair for pair in zip(theirs, ours) if hasattr(pair[0], "clone") and hasattr(pair[1], "clone")]
    return [(theirs, ours)] if hasattr(theirs, "clone") else []


def difference(theirs: Any, ours: Any) -> float:
    """Returns the largest difference between elements of two tensors. NaN equals NaN. The difference of tensors with
    different shapes is infinity."""
    if theirs.shape != ours.shape:
        return float("inf")
    if not ours.numel():
        return 0.0
    a, b = theirs.float(), ours.float()
    same = (a == b) | (a.isnan() & b.isnan())
    return float((a - b).abs().masked_fill(same, 0.0).nan_to_num(nan=float("inf"), posinf=float("inf")).max())


def _captures() -> bool:
    torch = sys.modules.get("torch")
    return bool(torch and torch.cuda.is_available() and torch.cuda.is_current_stream_capturing())


def _timed(function: Function, given: Mapping[str, Any]) -> tuple[Any, float]:
    """Calls a function. Returns its result and its duration in microseconds. If an argument is on a GPU, events on the
    stream measure the duration; otherwise the host's clock does."""
    import torch

    on_gpu = any(getattr(value, "is_cuda", False) for value in given.values())
    if not on_gpu:
        begin = time.perf_counter()
        result = function(**given)
        return result, 1e6 * (time.perf_counter() - begin)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    result = function(**given)
    end.record()
    end.synchronize()
    return result, 1e3 * start.elapsed_time(end)


def rebind(own: object, new: object) -> int:
    """Replaces `own` by `new` in every module that holds it, under any name. Returns the number of replacements."""
    places = 0
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is own:
                setattr(module, name, new)
                places += 1
    return places


class Log:
    """Writes lines about one engine to its logger at level INFO. If the logger does not show INFO, writes them to
    stderr."""

    def __init__(self, name: str) -> None:
        self.logger = logging.getLogger(name)

    def say(self, text: str) -> None:
        if self.logger.isEnabledFor(logging.INFO) and self.logger.hasHandlers():
            self.logger.info("mlafix: %s", text)
        else:
            print(f"mlafix: {text}", file=sys.stderr, flush=True)


class Replaced:
    """The state of a plugin in this process: the calls of each replaced function, and the reasons why others are not
    replaced."""

    def __init__(self, engine: str, log: Log) -> None:
        self.engine, self.log = engine, log
        self.tallies: dict[str, Tally] = {}
        self.wanted: set[str] = set()
        self.done: set[str] = set()  # functions whose modules have been imported
        self.places: dict[str, list[str]] = {}
        self.left: dict[str, str] = {}
        self._is_said = False
        self._reported: dict[str, int] = {}

    def note(self, function: str, place: str, why: str = "") -> None:
        """Notes that a function was replaced at a place. If `why` is given, notes instead that it was not, and the
        reason. Once `say` has been called, each note is logged."""
        if why:
            self.left[f"{function} at {place}"] = why
        else:
            self.places.setdefault(function, []).append(place)
        if self._is_said:
            self.log.say(f"not {self.engine}.{function} at {place}: {why}" if why else f"replaced {self.engine}.{function} at {place}")

    def tally(self, function: str) -> Tally:
        return self.tallies.setdefault(function, Tally(f"{self.engine}.{function}", self.log.logger))

    def say(self) -> None:
        """Logs which functions are replaced, which will be once their modules are imported, and which will not be."""
        self._is_said = True
        done = ", ".join(f"{name} ({'; '.join(places)})" for name, places in self.places.items()) or "nothing yet"
        later = ", ".join(sorted(self.wanted - self.done))
        left = "".join(f"\n  not {name}: {why}" for name, why in self.left.items())
        self.log.say(f"replaced in {self.engine}: {done}{f'; as soon as it is imported: {later}' if later else ''}{left}")

    def report_at_exit(self) -> None:
        Finalize(None, self.report, exitpriority=10)

    def report_each(self, seconds: float) -> None:
        """Calls `report` periodically in a thread, for engines that end their processes by SIGKILL, which skips exit
        handlers."""

        def wait_and_report() -> None:
            while True:
                time.sleep(seconds)
                self.report()

        threading.Thread(target=wait_and_report, name="mlafix-report", daemon=True).start()

    def report(self) -> None:
        """Logs a line for each function that was called since the last report."""
        for name, tally in self.tallies.items():
            if tally.calls > self._reported.get(name, 0):
                self._reported[name] = tally.calls
                self.log.say(tally.line())
