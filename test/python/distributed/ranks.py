"""Processes that act as the ranks of groups in tests of `mlafix.distributed`, with gloo on CPUs, or with NCCL and a GPU
for each process.

A `RankPool` has one process for each rank of the largest group. For each size n in `SIZES` there is a group of the
first n ranks. A test runs a function of rank_work.py, rank_drop_ins.py or rank_mistakes.py on a group. The test gets
the result or the exception of each rank.
"""

from __future__ import annotations

import multiprocessing
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

SIZES = (2, 3, 4, 8)
PATIENCE = 120.0


class RankPool:
    """The processes of the ranks, which run until `close` is called.

    Args:
        folder: an empty folder for the file through which the ranks meet.
        ranks: the size of the largest group.
        timeout: the timeout of the groups, in seconds.
        backend: "gloo" or "nccl".
    """

    def __init__(self, folder: Path, ranks: int = max(SIZES), timeout: float = PATIENCE, backend: str = "gloo") -> None:
        context = multiprocessing.get_context("forkserver")
        # Importing torch takes seconds, so only the process from which all ranks are forked imports it.
        context.set_forkserver_preload(["mlafix.distributed"])
        self.pipes: list[Connection] = []
        self.processes = []
        for rank in range(ranks):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, rank, ranks, str(folder / "meet"), timeout, backend), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def run(self, function: str, each: list[tuple[Any, ...]]) -> list[Any]:
        """Runs function(group, *each[rank]) on the first len(each) ranks. Returns the results or exceptions, by
        rank."""
        for rank, arguments in enumerate(each):
            self.pipes[rank].send((function, len(each), arguments))
        return [self.result(rank) for rank in range(len(each))]

    def result(self, rank: int) -> Any:
        """Returns the result or the exception of a rank. Raises AssertionError if the rank did not answer."""
        assert self.pipes[rank].poll(PATIENCE), f"expected an answer of rank {rank}, got none"
        return self.pipes[rank].recv()

    def same(self, function: str, size: int, *arguments: Any) -> list[Any]:
        """Runs a function like `run`, with the same arguments on each of `size` ranks. Raises the exception of any
        rank."""
        return raised(self.run(function, [arguments] * size))

    def close(self) -> None:
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.join(5)
            if process.is_alive():
                process.kill()


def raised(results: list[Any]) -> list[Any]:
    """Returns the results. If there are exceptions among them, raises the first one."""
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def _serve(pipe: Connection, rank: int, ranks: int, meet: str, timeout: float, backend: str) -> None:
    """Serves a rank's process: makes calls until the pipe is closed."""
    import os
    from datetime import timedelta

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    import torch
    import torch.distributed as dist

    import rank_drop_ins
    import rank_mistakes
    import rank_work

    functions = {**vars(rank_mistakes), **vars(rank_drop_ins), **vars(rank_work)}

    torch.set_num_threads(1)
    if backend == "nccl":
        torch.cuda.set_device(rank)
        rank_work.live_on(f"cuda:{rank}")
    dist.init_process_group(backend, init_method=f"file://{meet}", rank=rank, world_size=ranks, timeout=timedelta(seconds=timeout))
    groups = {ranks: dist.group.WORLD}
    for size in SIZES:
        if size < ranks:
            groups[size] = dist.new_group(range(size), timeout=timedelta(seconds=timeout))
    while True:
        try:
            name, size, arguments = pipe.recv()
        except (EOFError, ConnectionResetError):
            # The process ends without finalisation, since a gloo thread may still release its last tensors, which would
            # abort the interpreter.
            os._exit(0)
        try:
            pipe.send(functions[name](groups[size], *arguments))
        except Exception as error:
            error.add_note(traceback.format_exc()) if hasattr(error, "add_note") else None
            pipe.send(error)
