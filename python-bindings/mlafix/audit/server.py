"""Runs the jobs of an audit, and defines the server process that forks for each job."""

from __future__ import annotations

import json
import os
import sys
import types
from dataclasses import asdict
from typing import Any

import torch

from .adapter import Place
from .attempt import attempt
from .cases import Adapter
from .checks import CHECKS
from .processes import Emit, Event, watched
from .repair import try_repair
from .worker import Limits, unpacked, work


def serve() -> None:
    """Reads jobs from the standard input and writes their events to the standard output, one line of JSON each."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # sends output of the backend to the standard error

    def answer(event: Event) -> None:
        answers.write((json.dumps(event) + "\n").encode())

    for line in sys.stdin:
        job = json.loads(line)
        answer({"ended": watched(lambda emit, job=job: do(job, emit), answer)})  # type: ignore[misc]


def do(job: Event, emit: Emit) -> None:
    """Runs a job in the fork that the server made for it."""
    sys.path[:] = job["path"]
    torch.set_num_threads(1)  # a fork cannot use threads that its parent started, and many threads are slow on a busy machine
    if job["job"] == "script":
        emit({"limit": job["limit"]})
        run_script(job["text"], emit)
        return
    run_job(job, adapter_of(job["adapter"]), emit)


def run_script(text: str, emit: Emit) -> None:
    """Runs a finding's script and emits its exit status."""
    module = types.ModuleType("__main__")  # a dataclass in the script looks up its module in sys.modules
    sys.modules["__main__"] = module
    try:
        exec(compile(text, "<finding>", "exec"), vars(module))
    except SystemExit as end:
        emit({"exit": end.code})


def run_job(job: Event, adapter: Adapter, emit: Emit) -> None:
    """Runs a job with the backend of `adapter`."""
    torch.set_num_threads(1)  # as in `do`, which does not run if the job has no server
    if job["job"] == "checks":
        work(adapter, job["checks"], Limits(**job["limits"]), job["known"], emit)
    elif job["job"] == "case":
        emit({"limit": job["limit"]})
        attempt(CHECKS[job["check"]].faults(adapter), unpacked(job["case"]), adapter)
    else:
        emit({"limit": 10.0})
        repaired = try_repair(CHECKS[job["check"]], adapter, job["kind"], unpacked(job["case"]), died=True)
        emit({"repaired": asdict(repaired) if repaired else None})


def adapter_of(data: dict[str, Any]) -> Adapter:
    """Imports the backend of a job and returns its adapter."""
    call = Place(*data["place"]).find()
    call = call.call if isinstance(call, Adapter) else call
    lists = {name: tuple(value) if isinstance(value, list) else value for name, value in data["fields"].items()}
    return Adapter(call, **lists)
