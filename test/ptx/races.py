"""Detects races over shared memory: accesses of a byte by two threads, at least one of them a store, that no barrier orders.

An access precedes an action of another thread if both threads have passed a barrier of their block or cluster in between, or
`bar.warp.sync` if they are in one warp. Nothing else orders them: neither shuffles nor the order in which threads happen to run.
"""

from __future__ import annotations

import numpy as np

from .arithmetic import Array
from .text import PtxError

WARP = 32
_NOBODY = -1
_SEVERAL = -2


class Clocks:
    """The barriers that threads have passed.

    Args:
        block, cluster, warp, lane: those of each thread.
    """

    def __init__(self, block: Array, cluster: Array, warp: Array, lane: Array) -> None:
        self.block, self.cluster, self.warp, self.lane = block, cluster, warp, lane.astype(np.int64)
        count = block.size
        self.met = np.zeros(count, np.int64)  # barriers of the block
        self.arrived, self.left = np.zeros(count, np.int64), np.zeros(count, np.int64)  # barriers of the cluster
        # For each thread, the barriers that its warp's lanes are known to have passed. At a barrier, the threads of a
        # group share this knowledge.
        self.known = np.zeros((count, WARP), np.int64)

    def meet_in_warp(self, threads: Array) -> None:
        self.known[threads, self.lane[threads]] += 1
        self.known[threads] = self.known[threads].max(0)


class _Accesses:
    """The last accesses of each byte: their thread, or several threads of a warp or block, and the barriers that these had
    passed."""

    def __init__(self, size: int) -> None:
        self.thread = np.full(size, _NOBODY, np.int64)
        self.warp = np.full(size, _NOBODY, np.int64)
        self.lanes = np.zeros(size, np.uint64)
        self.met, self.arrived, self.clock = (np.zeros(size, np.int64) for _ in range(3))
        self.is_atomic = np.zeros(size, bool)

    def precede(self, places: Array, threads: Array, clocks: Clocks) -> Array:
        """True for each byte whose last accesses all precede the current action of `threads`. Accesses to another block's memory are
        ordered only by cluster barriers, which also count as block barriers."""
        first = self.thread[places]
        ordered = (first == _NOBODY) | (first == threads)
        if ordered.all():
            return ordered
        ordered |= clocks.met[threads] > self.met[places]
        ordered |= clocks.left[threads] > self.arrived[places]
        (unknown,) = (~ordered & (self.warp[places] == clocks.warp[threads])).nonzero()
        if unknown.size:
            here = threads[unknown]
            knows = (clocks.known[here] > self.clock[places[unknown], None]) | (np.arange(WARP) == clocks.lane[here][:, None])
            lanes = self.lanes[places[unknown]][:, None] >> np.arange(WARP, dtype=np.uint64) & np.uint64(1) != 0
            ordered[unknown] = (knows | ~lanes).all(1)
        return ordered

    def put(self, places: Array, threads: Array, clocks: Clocks, is_atomic: bool) -> None:
        self.thread[places], self.warp[places] = threads, clocks.warp[threads]
        self.lanes[places] = np.uint64(1) << clocks.lane[threads].astype(np.uint64)
        self.met[places], self.arrived[places] = clocks.met[threads], clocks.arrived[threads]
        self.clock[places] = clocks.known[threads, clocks.lane[threads]]
        self.is_atomic[places] = is_atomic

    def join(self, places: Array, threads: Array, clocks: Clocks) -> None:
        """Like `put`, but keeps the existing accesses unless they precede the new ones."""
        beside = ~self.precede(places, threads, clocks)
        self.put(places[~beside], threads[~beside], clocks, False)
        self.add(places[beside], threads[beside], clocks)

    def add(self, places: Array, threads: Array, clocks: Clocks) -> None:
        """Like `put`, but keeps the existing accesses. Several threads may access one byte."""
        others = self.thread[places] != threads
        places, threads = places[others], threads[others]
        if not places.size:
            return
        lanes = clocks.lane[threads]
        self.thread[places] = _SEVERAL
        self.warp[places[self.warp[places] != clocks.warp[threads]]] = _SEVERAL
        np.bitwise_or.at(self.lanes, places, np.uint64(1) << lanes.astype(np.uint64))
        np.maximum.at(self.met, places, clocks.met[threads])
        np.maximum.at(self.arrived, places, clocks.arrived[threads])
        np.maximum.at(self.clock, places, clocks.known[threads, lanes])


class Watch:
    """Watches the shared memory of some blocks, `size` bytes in total."""

    def __init__(self, size: int, clocks: Clocks) -> None:
        self.clocks = clocks
        self.stores, self.loads = _Accesses(size), _Accesses(size)
        self.reader = np.zeros(size, np.int64)  # used by `load`: the index of a byte's last read

    def load(self, threads: Array, places: Array, size: int) -> None:
        """Records loads of `size` bytes each. Raises PtxError for a race."""
        threads, places = _bytes(threads, places, size)
        self._check(self.stores, places, threads, "a load of what another one stores", np.zeros(places.size, bool))
        # The last of the threads that now read a byte comes first; the others are added.
        reads = np.arange(places.size)
        self.reader[places] = reads
        last = self.reader[places] == reads
        self.loads.join(places[last], threads[last], self.clocks)
        self.loads.add(places[~last], threads[~last], self.clocks)

    def store(self, threads: Array, places: Array, values: Array, held: Array, is_atomic: bool = False) -> None:
        """Records stores of `values` where memory contains `held`. Raises PtxError for a race. Threads that store equal
        values do not race."""
        size = values.dtype.itemsize
        order = np.argsort(places, kind="stable")
        same = places[order][1:] == places[order][:-1]
        if not is_atomic and (same & (values[order][1:] != values[order][:-1])).any():
            raise PtxError("a race over shared memory: two threads store different values to one place at once")
        same = np.repeat(values == held, size)
        threads, places = _bytes(threads, places, size)
        self._check(self.stores, places, threads, "a store to where another one stores", same | (self.stores.is_atomic[places] & is_atomic))
        self._check(self.loads, places, threads, "a store to where another one loads", np.zeros(places.size, bool))
        self.stores.put(places, threads, self.clocks, is_atomic)

    def _check(self, accesses: _Accesses, places: Array, threads: Array, what: str, allowed: Array) -> None:
        (bad,) = (~(accesses.precede(places, threads, self.clocks) | allowed)).nonzero()
        if bad.size:
            one, other = int(threads[bad[0]]), int(accesses.thread[places[bad[0]]])
            by = f"thread {other}" if other >= 0 else "several threads"
            raise PtxError(f"a race over shared memory: {what}, with no barrier between: thread {one}, and {by} before, byte {int(places[bad[0]])}")


def _bytes(threads: Array, places: Array, size: int) -> tuple[Array, Array]:
    return np.repeat(threads, size), (places.astype(np.int64)[:, None] + np.arange(size)).ravel()
