"""Runs kernels in separate processes, so that a kernel that crashes or hangs is only one failure."""

from __future__ import annotations

import dataclasses
import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

_LIMIT = 120.0  # seconds per case
_HERE = Path(__file__).resolve().parent
# A worker restarts after this many jobs, so that memory of the compiler's contexts does not accumulate.
_SERVES = 1500


def work(where: str, text_rate: int, folder: Path, target: str, calls: int) -> None:
    """Runs a worker's loop: reads one job per line from stdin, and writes one answer per line to stdout."""
    from run import Runner
    from syntax import Case  # noqa: F401 (cases.read evaluates text with this name)

    runner = Runner(where, text_rate, folder, target, calls)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # redirects the compiler's output to stderr, since stdout is for answers
    for line in sys.stdin:
        job = json.loads(line)
        answers.write(json.dumps(_serve(runner, job)) + "\n")
        answers.flush()


def _serve(runner: Any, job: dict[str, Any]) -> dict[str, Any]:
    import cases
    from generate import generate
    from run import Outcome
    from words import words

    begin = time.perf_counter()
    case = generate(job["seed"]) if "case" not in job else cases.read(job["case"])
    text = ""
    if "plant" in job:
        from plant import plant

        planted = plant(case, job["plant"], job["seed"])
        if planted is None:
            return {"kind": "absent", "seed": job["seed"], "plant": job["plant"]}
        text = planted
    try:
        answer = dataclasses.asdict(runner.run(case, text, job.get("seed", 0)))
    except Exception:  # a bug in the test itself, or an unexpected exception of a kernel
        answer = {**dataclasses.asdict(Outcome("invalid")), "message": traceback.format_exc(limit=-3)}
    if "case" not in job:
        answer["words"] = sorted(words(case))
    return {**answer, "seed": job.get("seed", -1), "plant": job.get("plant", ""), "total": time.perf_counter() - begin}


class Worker:
    """A worker process and its current job."""

    def __init__(self, where: str, text_rate: int, target: str = "", calls: int = 4) -> None:
        self.where, self.text_rate, self.target, self.calls = where, text_rate, target, calls
        self.start()

    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mlafix-kernels-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
        self.log = open(self.folder / "stderr", "w+")  # noqa: SIM115
        command = [sys.executable, str(_HERE), "--worker", str(self.folder), "--device", self.where, "--text", str(self.text_rate),
                   "--target", self.target, "--calls", str(self.calls)]  # fmt: skip
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, bufsize=1,
            env={**os.environ, "MLAFIX_CACHE": "0", "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
                 "PYTHONHASHSEED": "0"})  # fmt: skip
        self.job: dict[str, Any] | None = None
        self.served, self.since = 0, 0.0

    def give(self, job: dict[str, Any]) -> None:
        self.job, self.since = job, time.monotonic()
        self.served += 1
        assert self.process.stdin
        try:
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # a dead process is detected when its answer is read

    def stop(self) -> int:
        """Stops the process and returns its exit status."""
        assert self.process.stdin
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            code = self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        for stream in (self.process.stdout, self.log):
            if stream:
                stream.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        return code

    def last_words(self) -> str:
        self.log.flush()
        lines = Path(self.log.name).read_text(errors="replace").strip().splitlines()
        return " | ".join(lines[-3:])[:600]


def ask(worker: Worker, job: dict[str, Any], limit: float = _LIMIT) -> dict[str, Any]:
    """Sends one job to a worker and returns its answer."""
    worker.give(job)
    with selectors.DefaultSelector() as selector:
        selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
        line = worker.process.stdout.readline() if selector.select(timeout=limit) else None
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        if line is None:
            worker.process.kill()
        return _ended(worker, selector, "crash" if line is not None else "hang")


def run(jobs: Iterable[dict[str, Any]], count: int, where: str, text_rate: int, until: Callable[[], bool] = lambda: False,
        limit: float = _LIMIT, target: str = "", calls: int = 4) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Yields the answer to each job as soon as it is there, so not in the order of the jobs.

    Args:
        target, calls: see Runner; count: the number of processes; until: returns True once no further jobs should
        start; limit: the most seconds per job.
    """
    waiting = iter(jobs)
    workers = [Worker(where, text_rate, target, calls) for _ in range(count)]
    selector = selectors.DefaultSelector()
    idle = []
    try:
        for worker in workers:
            selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
            _next(worker, waiting, until, idle)
        while len(idle) < count:
            for key, _ in selector.select(timeout=1.0):
                worker = key.data
                line = worker.process.stdout.readline()
                if line:
                    answer = json.loads(line)
                    lost = answer["kind"] in ("error", "invalid") and ("CUDA" in answer["message"] or "DriverError" in answer["message"])
                    yield {**answer, "kind": "crash"} if lost else answer
                    # After a fault on the GPU, a process can run nothing else there, so a new one replaces it.
                    if lost or worker.served >= _SERVES:
                        _again(worker, selector)
                else:
                    yield _ended(worker, selector, "crash")
                _next(worker, waiting, until, idle)
            for worker in workers:
                if worker.job is not None and time.monotonic() - worker.since > limit:
                    worker.process.kill()
                    yield _ended(worker, selector, "hang")
                    _next(worker, waiting, until, idle)
    finally:
        for worker in workers:
            worker.stop()


def _next(worker: Worker, waiting: Iterator[dict[str, Any]], until: Callable[[], bool], idle: list[Worker]) -> None:
    job = None if until() else next(waiting, None)
    if job is None:
        worker.job = None
        idle.append(worker)
    else:
        worker.give(job)


def _again(worker: Worker, selector: selectors.BaseSelector) -> int:
    """Starts a worker again, and returns the exit status of its process."""
    selector.unregister(worker.process.stdout)
    code = worker.stop()
    worker.start()
    selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
    return code


def _ended(worker: Worker, selector: selectors.BaseSelector, kind: str) -> dict[str, Any]:
    """Returns the answer that is recorded for a worker that crashed or hung."""
    job, words = worker.job or {}, worker.last_words()
    code = _again(worker, selector)
    message = f"exit status {code}: {words}" if kind == "crash" else f"no answer in time: {words}"
    return {"kind": kind, "message": message, "seed": job.get("seed", -1), "plant": job.get("plant", ""), "seconds": 0.0, "total": 0.0, "refused": 0, "vague": 0, "written": 0}
