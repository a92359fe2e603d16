"""Runs functions in forks, since the functions may crash, and watches each fork.

The parent of a fork is this process (`watched`), or a server process that has imported torch (`Server`).

A backend that crashes, hangs or breaks its device's context affects only its fork. A fork of the server need not import
torch again, since the server has done so. The fork inherits no CUDA context, since the server never creates one.
"""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

from .attempt import how_it_ended

INSIDE: list[bool] = []
"""Has one element in processes that an audit has started, and is empty in all others."""

PR_SET_PDEATHSIG = 1

Event = dict[str, Any]
Emit = Callable[[Event], None]


def watched(job: Callable[[Emit], None], on_event: Emit) -> str:
    """Runs `job(emit)` in a fork and passes its events to `on_event`. Returns how the fork failed, or "" if it
    succeeded.

    An event {"limit": seconds} sets how long the job may take until its next event. The first event must come within
    two minutes.
    """
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as log:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns of forks in a process with threads, but torch's threads are idle here
            child = os.fork()
        if not child:
            os.close(reading)
            run_and_exit(job, writing, log.fileno())
        os.close(writing)
        try:
            return follow(child, reading, on_event, log)
        finally:
            os.close(reading)


def run_and_exit(job: Callable[[Emit], None], writing: int, log: int) -> None:
    """Runs the job in the fork and exits. Output of the backend goes to the file descriptor `log`."""
    status = 1
    try:
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # the fork ends when its parent ends; otherwise a hanging fork would stay
        INSIDE.append(True)
        faulthandler.disable()  # pytest's faulthandler would write to pytest's standard error
        os.dup2(log, 1)
        os.dup2(log, 2)

        def emit(event: Event) -> None:
            data = (json.dumps(event) + "\n").encode()
            while data:
                data = data[os.write(writing, data) :]

        job(emit)
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(bool(error.code))
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(status)


def follow(child: int, reading: int, on_event: Emit, log: Any) -> str:
    """Passes events to `on_event` until the fork ends or exceeds its time limit. Returns how the fork failed, or ""."""
    limit, pending, ended = 120.0, b"", ""
    deadline, used = time.monotonic() + limit, cpu_of(child)[1]
    while True:
        ready, _, _ = select.select([reading], [], [], max(deadline - time.monotonic(), 0))
        if not ready and is_starved(child, used, limit):
            deadline = time.monotonic() + limit
            continue
        if not ready:
            ended = f"no answer within {limit:g} s"
            break
        data = os.read(reading, 1 << 16)
        if not data:
            break
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            event = json.loads(line)
            limit = event.pop("limit", limit)
            deadline, used = time.monotonic() + limit, cpu_of(child)[1]
            on_event(event)
    if ended:
        kill_group(child)
    status = os.waitpid(child, 0)[1]
    kill_group(child)  # ends the processes that the backend started
    return ended or with_log(how_it_ended(status), log)


def cpu_of(child: int) -> tuple[str, float]:
    """Returns the state of a process ("R" is runnable) and its CPU time in seconds. Returns ("", 0.0) if the process
    does not exist."""
    try:
        with open(f"/proc/{child}/stat", encoding="utf-8") as file:
            values = file.read().rpartition(")")[2].split()
        return values[0], (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return "", 0.0


def is_starved(child: int, used: float, limit: float) -> bool:
    """True if a runnable process got less than half of the time limit as CPU time, because the machine is busy. False
    for a process that sleeps."""
    state, now = cpu_of(child)
    return state == "R" and now - used < limit / 2


def kill_group(child: int) -> None:
    try:
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def with_log(ended: str, log: Any) -> str:
    """Returns `ended`. If the process failed, appends the last line that it printed."""
    log.seek(0)
    lines = [line for line in log.read()[-4000:].decode(errors="replace").splitlines() if line.strip()]
    return f"{ended}: {lines[-1].strip()[:300]}" if ended and lines else ended


class Server:
    """A process that has imported torch and forks for each job. It has a single thread, so that forks are safe.
    For this reason OPENBLAS_NUM_THREADS keeps numpy's OpenBLAS from starting threads."""

    def __init__(self) -> None:
        code = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from mlafix.audit.server import serve; serve()"
        self.process = subprocess.Popen([sys.executable, "-c", code, json.dumps(sys.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        bufsize=0, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})  # fmt: skip
        atexit.register(self.close)

    def run(self, job: Event, on_event: Emit) -> str:
        """Runs a job as `watched` does, but in a fork of the server.

        An exception, such as an interrupt, ends the server. Otherwise the next job would read the events of this job.
        """
        try:
            return self.answers(job, on_event)
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    def answers(self, job: Event, on_event: Emit) -> str:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write((json.dumps(job) + "\n").encode())
        pending = b""
        while True:
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                raise RuntimeError(f"the audit's worker process ended without an answer (exit status {self.process.wait()}); its stderr is above")
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                event = json.loads(line)
                if "ended" in event:
                    return str(event["ended"])
                on_event(event)

    def close(self) -> None:
        if self.process.stdin and not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except BrokenPipeError:  # The server has ended already.
                pass
            self.process.wait()
            if self.process.stdout:
                self.process.stdout.close()


_SERVERS: list[Server] = []


def server() -> Server:
    """Returns the server of this process. Starts it if it does not run."""
    if not _SERVERS or _SERVERS[0].process.poll() is not None:
        _SERVERS[:] = [Server()]
    return _SERVERS[0]
