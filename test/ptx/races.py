"""Detects races over shared memory. A race is two accesses of a byte by different threads, at least one of them a
store, that no barrier orders.

An access precedes a later access of another thread if a barrier of their common block, or of their cluster, lies
between the accesses. In one warp, `bar.warp.sync` is enough. A store that an mbarrier counts precedes the loads of
threads that have waited for the mbarrier. Nothing else orders accesses: neither shuffles nor the order in which the
interpreter runs threads.
"""

from __future__ import annotations

import numpy as np

from .arithmetic import Array
from .text import PtxError

WARP = 32
_NOBODY = -1
_SEVERAL = -2


class Clocks:
    """Counts the barriers that each thread has passed.

    Args:
        block, cluster, warp, lane: the number of each thread's block, cluster, warp and lane.
    """

    def __init__(self, block: Array, cluster: Array, warp: Array, lane: Array) -> None:
        self.block, self.cluster, self.warp, self.lane = block, cluster, warp, lane.astype(np.int64)
        count = block.size
        self.met = np.zeros(count, np.int64)  # the number of block barriers that each thread has passed
        self.arrived, self.left = np.zeros(count, np.int64), np.zeros(count, np.int64)  # cluster barriers that each thread has entered, and left
        # known[thread, lane]: how many warp barriers this lane of the thread's warp has passed, as far as the thread
        # knows. Threads that meet at a warp barrier share what they know.
        self.known = np.zeros((count, WARP), np.int64)
        self.awaited: set[tuple[int, int]] = set()  # mbarriers, by their numbers, and threads that have waited for them

    def meet_in_warp(self, threads: Array) -> None:
        self.known[threads, self.lane[threads]] += 1
        self.known[threads] = self.known[threads].max(0)


class _Accesses:
    """The last accesses of each byte: their thread, or _SEVERAL for several threads, and how many barriers these
    threads had passed."""

    def __init__(self, size: int) -> None:
        self.thread = np.full(size, _NOBODY, np.int64)
        self.block, self.warp = np.full(size, _NOBODY, np.int64), np.full(size, _NOBODY, np.int64)
        self.lanes = np.zeros(size, np.uint64)
        self.met, self.arrived, self.clock = (np.zeros(size, np.int64) for _ in range(3))
        self.is_atomic = np.zeros(size, bool)

    def precede(self, places: Array, threads: Array, clocks: Clocks) -> Array:
        """Returns a mask of the bytes whose last accesses all precede the current accesses of `threads`. Only cluster
        barriers order accesses of different blocks. They also order accesses within a block."""
        first = self.thread[places]
        ordered = (first == _NOBODY) | (first == threads)
        if ordered.all():
            return ordered
        ordered |= (self.block[places] == clocks.block[threads]) & (clocks.met[threads] > self.met[places])
        ordered |= clocks.left[threads] > self.arrived[places]
        (unknown,) = (~ordered & (self.warp[places] == clocks.warp[threads])).nonzero()
        if unknown.size:
            here = threads[unknown]
            knows = (clocks.known[here] > self.clock[places[unknown], None]) | (np.arange(WARP) == clocks.lane[here][:, None])
            lanes = self.lanes[places[unknown]][:, None] >> np.arange(WARP, dtype=np.uint64) & np.uint64(1) != 0
            ordered[unknown] = (knows | ~lanes).all(1)
        return ordered

    def put(self, places: Array, threads: Array, clocks: Clocks, is_atomic: bool) -> None:
        self.thread[places], self.block[places], self.warp[places] = threads, clocks.block[threads], clocks.warp[threads]
        self.lanes[places] = np.uint64(1) << clocks.lane[threads].astype(np.uint64)
        self.met[places], self.arrived[places] = clocks.met[threads], clocks.arrived[threads]
        self.clock[places] = clocks.known[threads, clocks.lane[threads]]
        self.is_atomic[places] = is_atomic

    def join(self, places: Array, threads: Array, clocks: Clocks) -> None:
        """Records accesses. Where the recorded accesses of a byte precede the new one, the new one replaces them.
        Elsewhere, it is added to them."""
        beside = ~self.precede(places, threads, clocks)
        self.put(places[~beside], threads[~beside], clocks, False)
        self.add(places[beside], threads[beside], clocks)

    def add(self, places: Array, threads: Array, clocks: Clocks) -> None:
        """Adds accesses to the recorded ones. Several of `threads` may access the same byte."""
        others = self.thread[places] != threads
        places, threads = places[others], threads[others]
        if not places.size:
            return
        lanes = clocks.lane[threads]
        self.thread[places] = _SEVERAL
        self.block[places[self.block[places] != clocks.block[threads]]] = _SEVERAL
        self.warp[places[self.warp[places] != clocks.warp[threads]]] = _SEVERAL
        np.bitwise_or.at(self.lanes, places, np.uint64(1) << lanes.astype(np.uint64))
        np.maximum.at(self.met, places, clocks.met[threads])
        np.maximum.at(self.arrived, places, clocks.arrived[threads])
        np.maximum.at(self.clock, places, clocks.known[threads, lanes])


class Watch:
    """Checks the accesses to the shared memory of some blocks, `size` bytes in total."""

    def __init__(self, size: int, clocks: Clocks) -> None:
        self.clocks = clocks
        self.stores, self.loads = _Accesses(size), _Accesses(size)
        self.mbarrier = np.full(size, _NOBODY, np.int64)  # the mbarrier that has counted the last store to each byte
        self.reader = np.zeros(size, np.int64)  # scratch memory of `load`: the index of the last read of each byte

    def load(self, threads: Array, places: Array, size: int) -> None:
        """Records loads of `size` bytes each. Raises PtxError for a race."""
        threads, places = _bytes(threads, places, size)
        is_counted = self.mbarrier[places] != _NOBODY
        for mbarrier, thread in np.unique(np.stack([self.mbarrier[places], threads])[:, is_counted], axis=1).T:
            if (int(mbarrier), int(thread)) not in self.clocks.awaited:
                raise PtxError(f"a race over shared memory: thread {thread} loads what an mbarrier counts, and has not waited for it")
        self._check(self.stores, places, threads, "a load of what another one stores", is_counted)
        # If several threads read a byte, the last of them replaces or joins the recorded accesses, and the others are
        # added.
        reads = np.arange(places.size)
        self.reader[places] = reads
        last = self.reader[places] == reads
        self.loads.join(places[last], threads[last], self.clocks)
        self.loads.add(places[~last], threads[~last], self.clocks)

    def count(self, places: Array, size: int, mbarriers: Array) -> None:
        """Records which mbarriers have counted the last stores."""
        mbarriers, places = _bytes(mbarriers, places, size)
        self.mbarrier[places] = mbarriers

    def store(self, threads: Array, places: Array, values: Array, held: Array, is_atomic: bool = False) -> None:
        """Records stores of `values` over the old contents `held`. Raises PtxError for a race. Threads that store equal
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
        self.mbarrier[places] = _NOBODY

    def _check(self, accesses: _Accesses, places: Array, threads: Array, what: str, allowed: Array) -> None:
        (bad,) = (~(accesses.precede(places, threads, self.clocks) | allowed)).nonzero()
        if bad.size:
            one, other = int(threads[bad[0]]), int(accesses.thread[places[bad[0]]])
            by = f"thread {other}" if other >= 0 else "several threads"
            raise PtxError(f"a race over shared memory: {what}, with no barrier between: thread {one}, and {by} before, byte {int(places[bad[0]])}")


def _bytes(threads: Array, places: Array, size: int) -> tuple[Array, Array]:
    return np.repeat(threads, size), (places.astype(np.int64)[:, None] + np.arange(size)).ravel()
