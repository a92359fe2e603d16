#!/usr/bin/env python3
"""Times merges of partial states over ranks, and collectives from which they could be built.

    torchrun --nproc-per-node 2 benchmarks/distributed.py [--json FILE] [--quick] [--help]

Runs on GPUs over NCCL, with a process for each GPU, in CUDA graphs. Without GPUs it runs over gloo, which only shows
that the program works. In every round all implementations of a case are timed in turn. Each has 2 to 8 sets of buffers,
all equally many; together they exceed the last-level cache unless 8 sets are too small for that. Payloads and lses are
random. Times are medians of rounds, on the slowest rank. Ratios are relative to the reducer.

    reducer            mlafix.distributed.Reducer: pack, exchange, merge
    pack + exchange    the reducer without the merge
    exchange           only the collective, on blocks that are packed already
    ag + rs            an all-gather of the lses and a reduce-scatter of the rows, in their dtype; the rows are not
                       multiplied by weights, so the results are wrong
    pack, merge        each kernel alone
    symmetric          the reducer over symmetric memory with exchange="pull", for states in this memory; this and all below are
                       timed only on several GPUs, without --wire
    copy + symmetric   the same for states in other memory
    push               the reducer with exchange="push", for states in any memory
    push fp8           the same with fp8 on the wire
    pull by hand       pull.cu on the symmetric memory: one launch in which ranks wait for each other's flags at the beginning and at
                       the end; this and the next two need equal numbers of rows on all ranks
    push by hand       push.cu: one launch that stores rows on the ranks that merge them, with a flag for each block
    push alone         push.cu: only stores the rows over the link, without flags and merge
    copy + fp8         copy + symmetric with fp8 on the wire
    list               mlafix.ops.merge_states_list with the other ranks' memory as plain arguments, without flags; its results are
                       wrong if ranks do not run at the same time
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from mlafix.distributed import Reducer
from mlafix.distributed._backends import Call, merge, pack
from mlafix.distributed.blocks import Blocks, block_size, blocks_in
from mlafix.distributed.ranks import ranks_of
from peer_memory import PeerMemory

SHAPES = ((128, 512), (64, 128))
TOKENS = (1, 8, 64, 256, 1024, 4096)
# The total size of a case's buffers in bytes: three times the last-level cache of an H200. The total is smaller if
# MOST_SETS sets are smaller. There are few sets, since all ranks must create the symmetric memory of each set together.
ROTATED = 3 * 50 << 20
MOST_SETS = 8
Step = Callable[[int], None]


class Case:
    """Buffers of one shape on one rank, and the implementations that are timed on them.

    Args:
        tokens, heads, dim: the shape of the partial state.
        cut, wire: parameters of the reducer.
        device: the device of the buffers.
        quick: whether to use few sets of buffers.
    """

    def __init__(self, tokens: int, heads: int, dim: int, cut: str, wire: str | None, device: torch.device, quick: bool) -> None:
        self.name = f"H={heads} D={dim} T={tokens} cut={cut} wire={wire or 'bf16'}"
        backend = "nccl" if device.type == "cuda" else "gloo"
        self.reducer = Reducer(None, max_tokens=tokens, heads=heads, head_dim=dim, cut=cut, wire_dtype=wire, device=device, backend=backend)
        self.ranks = ranks_of(None, device)
        form = self.reducer.cut
        self.size = (form.block_tokens(tokens), form.block_heads, dim, self.reducer.wire_dtype)
        state_bytes = tokens * heads * (2 * dim + 4)
        self.sets = 2 if quick else min(MOST_SETS, max(2, -(-ROTATED // (2 * state_bytes))))
        random = torch.Generator(device).manual_seed(dist.get_rank())

        def noise(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=random, device=device)

        self.partial = [noise(tokens, heads, dim).bfloat16() for _ in range(self.sets)]
        self.lse = [noise(tokens, heads) for _ in range(self.sets)]
        made = [self.reducer.reduce(*one) for one in zip(self.partial, self.lse)]
        self.outs = [out for out, _ in made]
        self.lses = [lse for _, lse in made]
        self.sent, self.received = self._blocks(form.blocks, device), self._blocks(self.ranks.size, device)
        for i in range(self.sets):
            self.pack(i)
            self.exchange(i)
        # The outputs of `ag + rs`. The reduce-scatter gives each rank a contiguous part of the rows. vLLM has to copy
        # the rows beforehand, so that the rows for each rank are contiguous. That copy is not timed here.
        self.gathered = torch.empty(self.ranks.size * tokens, heads, device=device)
        self.scattered = torch.empty(tokens * heads * dim // self.ranks.size, dtype=torch.bfloat16, device=device)
        symmetric = device.type == "cuda" and wire is None and self.ranks.size > 1 and 2048 % dim == 0
        self.peers = PeerMemory(tokens, heads, dim, cut, self.sets, device) if symmetric else None

    def _blocks(self, count: int, device: torch.device) -> list[Blocks]:
        size = count * block_size(*self.size).total
        return [blocks_in(torch.empty(size, dtype=torch.uint8, device=device), count, *self.size) for _ in range(self.sets)]

    def call(self, i: int) -> Call:
        return Call(self.partial[i], self.lse[i], None, None, self.outs[i], self.lses[i], None, "e")

    def reduce(self, i: int) -> None:
        self.reducer.reduce(self.partial[i], self.lse[i], out=self.outs[i], out_lse=self.lses[i])

    def pack(self, i: int) -> None:
        pack(self.ranks.rank, self.reducer.cut, self.sent[i], self.call(i))

    def exchange(self, i: int) -> None:
        move = self.ranks.all_gather if self.reducer.cut.name == "none" else self.ranks.all_to_all
        move(self.received[i].data, self.sent[i].data)

    def merge(self, i: int) -> None:
        merge(self.ranks.rank, self.reducer.cut, self.received[i], self.call(i), None)

    def gather_and_scatter(self, i: int) -> None:
        dist.all_gather_into_tensor(self.gathered, self.lse[i])
        dist.reduce_scatter_tensor(self.scattered, self.partial[i].view(-1))

    def steps(self) -> dict[str, Step]:
        """Returns the implementations by name. Each is a function of the number of a buffer set."""

        def packed_exchange(i: int) -> None:
            self.pack(i)
            self.exchange(i)

        steps: dict[str, Step] = {"reducer": self.reduce, "pack + exchange": packed_exchange, "exchange": self.exchange,
                                  "pack": self.pack, "merge": self.merge}
        if self.reducer.cut.name == "heads" and self.reducer.wire_dtype == torch.bfloat16 and self.partial[0].numel() % self.ranks.size == 0:
            steps["ag + rs"] = self.gather_and_scatter
        return steps | (self.peers.steps() if self.peers is not None else {})

    def check(self) -> None:
        """Compares some rows of the reducer's result with a merge in f64, and checks the results in `peers`. Raises
        RuntimeError if they differ."""
        tokens, heads = self.reducer.owned(self.partial[0].shape[0])
        rows = slice(tokens.start, min(tokens.start + 4, tokens.stop))
        # Every rank takes part in both gathers, even if it owns none of the compared rows.
        states = [torch.empty_like(self.partial[0]) for _ in range(self.ranks.size)]
        lses = [torch.empty_like(self.lse[0]) for _ in range(self.ranks.size)]
        dist.all_gather(states, self.partial[0])
        dist.all_gather(lses, self.lse[0])
        if self.peers is not None:
            self.peers.check()
        if rows.start == rows.stop:
            return
        weights = torch.softmax(torch.stack([lse[rows, heads].double() for lse in lses]), 0)
        want = (weights[..., None] * torch.stack([state[rows, heads].double() for state in states])).sum(0)
        apart = float((self.outs[0][: rows.stop - rows.start].double() - want).abs().max())
        if not apart <= 2.0 ** (-3 if self.reducer.wire_dtype == torch.float8_e4m3fn else -7) * max(1.0, float(want.abs().max())):
            raise RuntimeError(f"{self.name}: expected the merge in f64, got {apart:.3g} beside it")


def graph_of(step: Step, sets: int, repeats: int) -> torch.cuda.CUDAGraph:
    """Captures a graph that runs a step on all buffer sets, `repeats` times."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step(0)
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    dist.barrier()
    graph = torch.cuda.CUDAGraph()
    # NCCL's watchdog thread queries the driver. With thread_local, these queries do not invalidate the capture.
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(repeats):
            for i in range(sets):
                step(i)
    return graph


def timer_of(case: Case, step: Step, device: torch.device, quick: bool) -> Callable[[], float]:
    """Returns a function that measures one sample: the microseconds of one step."""
    if device.type == "cpu":

        def loop() -> float:
            begin = time.perf_counter()
            for i in range(case.sets):
                step(i)
            return (time.perf_counter() - begin) / case.sets * 1e6

        return loop
    repeats = max(1, (20 if quick else 60) // case.sets)
    graph = graph_of(step, case.sets, repeats)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def replay() -> float:
        graph.replay()  # not timed: this replay only synchronises the ranks
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1000 / (repeats * case.sets)

    return replay


def measure(case: Case, device: torch.device, rounds: int, quick: bool) -> dict[str, float]:
    """Returns the median time of each implementation over all rounds, in microseconds on the slowest rank."""
    timers = {name: timer_of(case, step, device, quick) for name, step in case.steps().items()}
    samples: dict[str, list[float]] = {name: [] for name in timers}
    for turn in range(rounds + 2):
        for name, timer in timers.items():
            dist.barrier()
            sample = timer()
            if turn >= 2:
                samples[name].append(sample)
    medians = torch.tensor([statistics.median(samples[name]) for name in timers], device=device)
    dist.all_reduce(medians, dist.ReduceOp.MAX)
    return dict(zip(timers, medians.tolist()))


def report(case: Case, tokens: int, times: dict[str, float]) -> dict[str, Any]:
    """Prints the results of a case on rank 0. Returns the case's entry for the JSON file."""
    ours, arriving = times["reducer"], case.reducer.bytes_in(tokens)
    if dist.get_rank() == 0:
        print(f"{case.name}: {arriving / 1e6:.2f} MB in, {case.sets} sets of buffers")
        for name, us in times.items():
            rate = f"{arriving / us / 1e3:7.1f} GB/s in" if name not in ("pack", "merge") else ""
            print(f"  {name:16} {us:9.1f} us  {us / ours:5.2f} of the reducer {rate}")
    return {"case": case.name, "bytes_in": arriving, "sets": case.sets, "us": times}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cut", default="heads", choices=["heads", "tokens", "none"])
    parser.add_argument("--wire", choices=["f8e4m3fn"], help="of the payloads between ranks; default: bf16")
    parser.add_argument("--tokens", type=int, nargs="+", default=TOKENS)
    parser.add_argument("--shape", type=int, nargs=2, action="append", metavar=("HEADS", "DIM"), help="default: 128 512 and 64 128")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--quick", action="store_true", help="few rounds, small graphs, two sets of buffers")
    parser.add_argument("--json", help="a file for the results")
    options = parser.parse_args()
    local, count = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    on_gpu = torch.cuda.device_count() >= count
    device = torch.device("cuda", local) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo", **({"device_id": device} if on_gpu else {}))
    results = []
    for heads, dim in options.shape or SHAPES:
        for tokens in options.tokens:
            case = Case(tokens, heads, dim, options.cut, options.wire, device, options.quick)
            case.check()
            times = measure(case, device, 5 if options.quick else options.rounds, options.quick)
            results.append(report(case, tokens, times))
            del case
    if dist.get_rank() == 0 and options.json:
        machine = {"torch": torch.__version__, "ranks": dist.get_world_size(), "backend": dist.get_backend()}
        if on_gpu:
            machine |= {"device": torch.cuda.get_device_name(), "nccl": ".".join(map(str, torch.cuda.nccl.version()))}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"machine": machine, "cases": results}, file, indent=1)
    dist.destroy_process_group()
    # A gloo thread may still have to release its last tensors. If the thread does so while the interpreter is being
    # finalised, the process aborts. So the process exits without finalising the interpreter.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
