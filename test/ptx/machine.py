"""Executes a PTX kernel. Each register is an array with the values of all threads of the blocks that run together, so
that one array operation serves all these threads.

Threads at the same instruction execute it as a group. The next group is chosen at random, or is the one at the earliest
instruction. A kernel without races gives the same result for any choice. At barriers, votes and shuffles, threads wait
for all participants.
"""

from __future__ import annotations

import random

import numpy as np

from .arithmetic import TYPES, Array
from . import movement  # noqa: F401 (defines operations)
from .mbarriers import Mbarrier
from .memory import Memory, PerThread
from .operations import OPERATIONS, Threads
from .races import Clocks
from .text import Entry, Instruction, PtxError

WARP = 32
# The most threads that are executed at once. The other blocks of a launch begin after these threads have ended.
_MOST_THREADS = 16384
_BRANCHES = ("bra", "ret", "exit")
_MEETINGS = ("bar", "barrier", "shfl", "vote", "redux", "match")


def _is_meeting(one: Instruction) -> bool:
    return one.parts[0] in _MEETINGS


def _is_of_block(one: Instruction) -> bool:
    return one.parts[0] in ("bar", "barrier") and one.parts[1] not in ("warp", "cluster")


class Blocks:
    """Blocks of a launch that are executed together.

    Args:
        entry: the kernel.
        blocks: the indices of the blocks, which form whole clusters.
        grid, threads: the number of blocks in the launch, and of threads in a block.
        params: the bytes of all parameters, one after the other.
        memory: global memory.
        seed: the seed of a random order; with None, the group at the earliest instruction runs next.
    """

    def __init__(self, entry: Entry, blocks: range, grid: int, threads: int, params: Array, memory: Memory, seed: int | None) -> None:
        self.entry, self.threads, self.grid = entry, threads, grid
        count = len(blocks) * threads
        self.block = np.repeat(np.arange(len(blocks)), threads)
        number = np.arange(count)
        self.warp, self.lane = self.block * -(-threads // WARP) + number % threads // WARP, number % threads % WARP
        special = {
            "%tid.x": number % threads, "%ntid.x": np.full(count, threads), "%ctaid.x": self.block + blocks.start, "%nctaid.x": np.full(count, grid),
            "%laneid": self.lane, "%warpid": number % threads // WARP,
            **{f"%{name}.{axis}": np.full(count, name[0] == "n") for name in ("tid", "ctaid", "ntid", "nctaid") for axis in "yz"},
        }  # fmt: skip
        self.special = {name: value.astype(np.uint32) for name, value in special.items()}
        kinds = {1: "pred", 8: "b8", 16: "b16", 32: "b32", 64: "b64"}
        self.registers = {name: np.zeros(count, TYPES[kinds[bits]]) for name, bits in entry.registers.items()}
        self.params, self.memory = params, memory
        self.cluster = self.block // entry.cluster
        # For each thread, the clocks count the barriers of the thread's block, cluster and warp that it has passed.
        # `arrived` and `left` are the numbers of cluster barriers that each thread has entered and left.
        self.clocks = Clocks(self.block, self.cluster, self.warp, self.lane)
        self.arrived, self.left = self.clocks.arrived, self.clocks.left
        self.mbarriers: dict[tuple[int, int], Mbarrier] = {}  # by block and offset in its shared memory
        self.shared = PerThread(self.block, entry.shared_bytes, "shared", self.clocks)
        self.local = PerThread(number, entry.local_bytes, "local")
        self.at = np.zeros(count, np.int64)
        self.alive = np.ones(count, bool)
        self.waits = np.zeros(count, bool)
        # For each thread: True once it has waited for the preceding grid, or if the kernel never waits. Before that, an
        # access of global memory is an error, since it may read stale data, or overwrite data that the preceding grid
        # still reads.
        self.is_behind = np.full(count, not any(one.parts[:2] == ["griddepcontrol", "wait"] for one in entry.code))
        self.random = None if seed is None else random.Random(seed)
        self.held = np.zeros(count, bool)
        self.steps = 0
        # The first instruction of each basic block. A group of threads stops at such an instruction, so that threads
        # that arrive there separately can continue as one group.
        self.leaders = {0, *entry.labels.values()}
        for i, one in enumerate(entry.code):
            if one.parts[0] in _BRANCHES or _is_meeting(one):
                self.leaders |= {i, i + 1}

    def run(self, most_steps: int) -> None:
        while self.alive.any():
            self.steps += 1
            if self.steps > most_steps:
                raise PtxError("expected the kernel to end, got no end")
            ready = self.alive & ~self.waits
            if not ready.any():
                waiting = sorted({int(at) for at in self.at[self.alive]})
                raise PtxError("threads wait for others that do not come: " + ", ".join(str(self.entry.code[at]) for at in waiting))
            ready = self._hold(ready)
            at = self._choose(self.at[ready])
            (chosen,) = (ready & (self.at == at)).nonzero()
            if self.random is not None and self.random.random() < 0.5:
                warps = self.warp[chosen]
                is_chosen = np.bincount(warps) > 0
                is_chosen[is_chosen] = [self.random.random() < 0.5 for _ in range(is_chosen.sum())]
                if is_chosen.any():
                    chosen = chosen[is_chosen[warps]]
            self._execute(at, chosen)

    def _hold(self, ready: Array) -> Array:
        """Returns the ready threads without those of some random blocks, as if these blocks began late. Returns all
        ready threads if no other block can run."""
        if self.random is None or self.entry.cluster == 1:
            return ready
        if self.random.random() < 1 / 256:
            self.held = np.array([self.random.random() < 0.5 for _ in range(int(self.block[-1]) + 1)])[self.block]
        others = ready & ~self.held
        return others if others.any() else ready

    def _choose(self, places: Array) -> int:
        if self.random is None:
            return int(places.min())
        return int(self.random.choice(list(np.flatnonzero(np.bincount(places)))))

    def _execute(self, at: int, chosen: Array) -> None:
        code = self.entry.code
        while True:
            if at >= len(code):
                self.alive[chosen] = False
                return
            one = code[at]
            try:
                if one.parts[0] in _BRANCHES:
                    self._branch(one, at, chosen)
                    return
                if _is_meeting(one):
                    self._meet(one, at, chosen)
                    return
                self._step(one, chosen)
            except PtxError as error:
                raise PtxError(f"{self.entry.name}, {one}: {error}") from None
            at += 1
            if at in self.leaders:
                self.at[chosen] = at
                return

    def _guarded(self, one: Instruction, chosen: Array) -> Array:
        """Returns the chosen threads whose guard predicate is true for this instruction."""
        if one.guard is None:
            return chosen
        flags = self.registers[one.guard][chosen]
        return chosen[flags != one.negated]

    def _branch(self, one: Instruction, at: int, chosen: Array) -> None:
        taken = self._guarded(one, chosen)
        self.at[chosen] = at + 1
        if one.parts[0] == "bra":
            self.at[taken] = self.entry.labels[str(one.operands[0])]
        else:
            self.alive[taken] = False
            self._release_blocks()
            self._release_clusters()

    def _step(self, one: Instruction, chosen: Array) -> None:
        threads = self._guarded(one, chosen)
        if threads.size:
            operation = OPERATIONS.get(one.parts[0])
            if operation is None:
                raise PtxError("an instruction that is not known")
            operation(Threads(self, threads), one)

    # -- Instructions that wait for other threads

    def _meet(self, one: Instruction, at: int, chosen: Array) -> None:
        threads = self._guarded(one, chosen)
        if threads.size < chosen.size:
            self.at[np.setdiff1d(chosen, threads)] = at + 1
        if one.parts[:3] == ["barrier", "cluster", "arrive"]:
            if (self.arrived[threads] != self.left[threads]).any():
                raise PtxError("a thread that arrives twice at a barrier of its cluster")
            self.arrived[threads] += 1
            self.at[threads] = at + 1
            self._release_clusters()
            return
        self.waits[threads] = True
        if one.parts[:3] == ["barrier", "cluster", "wait"]:
            if (self.arrived[threads] == self.left[threads]).any():
                raise PtxError("a thread that waits at a barrier of its cluster and has not arrived")
            self._release_clusters()
        elif _is_of_block(one):
            self._release_blocks()
        else:
            self._release_warps(one, at, np.unique(self.warp[threads]))

    def _release_blocks(self) -> None:
        """Releases blocks in which all threads have reached the same barrier."""
        code = self.entry.code
        for at in {int(at) for at in np.unique(self.at[self.waits])}:
            one = code[at]
            if not _is_of_block(one):
                continue
            here = self.waits & (self.at == at)
            for block in np.unique(self.block[here]):
                of_block = self.alive & (self.block == block)
                if not (here == of_block)[self.block == block].all():
                    continue
                threads = np.flatnonzero(of_block)
                if one.parts[1] == "red":
                    self._reduce(one, threads)
                self.clocks.met[threads] += 1
                self.waits[threads] = False
                self.at[threads] = at + 1

    def _release_clusters(self) -> None:
        """Releases the threads of each cluster in which all threads have arrived at the barrier or ended."""
        code = self.entry.code
        for at in {int(at) for at in np.unique(self.at[self.waits])}:
            if code[at].parts[:3] != ["barrier", "cluster", "wait"]:
                continue
            here = self.waits & (self.at == at)
            for cluster in np.unique(self.cluster[here]):
                of_cluster = self.cluster == cluster
                threads = np.flatnonzero(here & of_cluster)
                fewest = self.arrived[of_cluster & self.alive].min()
                threads = threads[self.left[threads] < fewest]
                self.left[threads] += 1
                self.waits[threads] = False
                self.at[threads] = at + 1

    def owners_of(self, threads: Array, addresses: Array) -> Array:
        """Returns, for each thread, the block of its cluster whose shared memory contains the address. Raises PtxError
        if the block may not have begun, or may have ended."""
        numbers = (addresses >> np.uint64(32)).astype(np.int64) - 1
        if (numbers < 0).any() or (numbers >= self.entry.cluster).any():
            raise PtxError(f"a store to the shared memory of block {numbers.max()} of a cluster of {self.entry.cluster}")
        blocks = self.cluster[threads] * self.entry.cluster + numbers
        if (self.left[threads] == 0).any():
            raise PtxError("a store to the shared memory of a block that may not have begun")
        if not np.isin(blocks, self.block[self.alive]).all():
            raise PtxError("a store to the shared memory of a block that may have ended")
        return blocks

    def _reduce(self, one: Instruction, threads: Array) -> None:
        here = Threads(self, threads)
        flags = here.get(one.operands[-1], "pred")
        operation, kind = one.parts[2], one.parts[-1]
        if operation == "popc":
            here.put(one.operands[0], "u32", np.full(threads.size, flags.sum(), np.uint32))
        else:
            assert kind == "pred"
            here.put(one.operands[0], "pred", np.full(threads.size, flags.any() if operation == "or" else flags.all()))

    def _release_warps(self, one: Instruction, at: int, warps: Array) -> None:
        for warp in warps:
            of_warp = np.flatnonzero(self.warp == warp)
            here = of_warp[self.waits[of_warp] & (self.at[of_warp] == at)]
            masks = Threads(self, here).get(one.operands[-1], "b32")
            for mask in np.unique(masks):
                members = of_warp[(np.uint32(mask) >> self.lane[of_warp].astype(np.uint32) & np.uint32(1)).astype(bool)]
                group = here[masks == mask]
                if not np.isin(group, members).all():
                    raise PtxError(f"a thread that is not of its own mask {int(mask):#x}")
                if group.size == members.size:
                    if one.parts[0] in ("bar", "barrier"):
                        self.clocks.meet_in_warp(group)
                    OPERATIONS[one.parts[0]](Threads(self, group), one)
                    self.waits[group] = False
                    self.at[group] = at + 1


def launch(entry: Entry, grid: int, threads: int, params: dict[str, bytes], memory: Memory, seed: int | None = None,
           most_steps: int = 2_000_000) -> int:
    """Executes all blocks of a launch, some at a time. Returns the number of steps. In one step, a group of threads
    executes instructions up to the end of a basic block. Raises PtxError if blocks that run at once need more than
    `most_steps`."""
    size = max((at + bytes for at, bytes in entry.params.values()), default=0)
    values = np.zeros(size, np.uint8)
    for name, value in params.items():
        at, expected = entry.params[name]
        if len(value) != expected:
            raise PtxError(f"{name}: expected {expected} bytes, got {len(value)}")
        values[at : at + expected] = np.frombuffer(value, np.uint8)
    if grid % entry.cluster:
        raise PtxError(f"a grid of {grid} blocks, in clusters of {entry.cluster}")
    steps, together = 0, max(1, _MOST_THREADS // threads // entry.cluster) * entry.cluster
    with np.errstate(all="ignore"):
        for first in range(0, grid, together):
            blocks = Blocks(entry, range(first, min(first + together, grid)), grid, threads, values, memory, seed)
            blocks.run(most_steps)
            steps += blocks.steps
    return steps

