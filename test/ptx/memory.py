"""Memory that threads access by address. An access out of bounds or a misaligned access raises PtxError."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arithmetic import Array
from .races import Clocks, Watch
from .text import PtxError


class Memory:
    """Global memory: ranges of bytes at their addresses.

    Args:
        ranges: (address, array of u8) for each range; addresses are multiples of 16.
        what: the name of the memory in error messages.
    """

    def __init__(self, ranges: list[tuple[int, Array]], what: str) -> None:
        ranges = sorted(ranges, key=lambda one: one[0])
        self.begins = np.array([begin for begin, _ in ranges], np.uint64)
        self.arrays = [data for _, data in ranges]
        self.what = what

    def _place(self, addresses: Array, size: int) -> list[tuple[Array, Any, Array]]:
        """Returns, for each accessed range, its elements of `size` bytes, an index of the threads that access it, and the
        numbers of the accessed elements."""
        if (addresses & np.uint64(size - 1)).any():
            raise PtxError(f"an access of {size} bytes of {self.what} memory is not aligned")
        numbers, found = np.searchsorted(self.begins, addresses, "right") - 1, []
        is_one = (numbers == numbers[:1]).all()  # all threads access the same range, which is the usual case
        for number in numbers[:1] if is_one else np.unique(numbers):
            threads = slice(None) if is_one else np.flatnonzero(numbers == number)
            begin, data = (int(self.begins[number]), self.arrays[number]) if number >= 0 else (0, np.empty(0, np.uint8))
            elements = ((addresses[threads] - np.uint64(begin)) // np.uint64(size)).astype(np.int64)
            whole = data.size // size
            if (elements >= whole).any():
                outside = int(addresses[threads][elements >= whole][0])
                raise PtxError(f"an access of {size} bytes of {self.what} memory at {outside:#x} is outside of it")
            found.append((data[: whole * size].view(f"uint{size * 8}"), threads, elements))
        return found

    def load(self, addresses: Array, size: int) -> Array:
        made = np.zeros(addresses.shape, f"uint{size * 8}")
        for data, threads, elements in self._place(addresses, size):
            made[threads] = data[elements]
        return made

    def store(self, addresses: Array, values: Array) -> None:
        """Stores values. If several threads store to one element, the value of the last one remains."""
        for data, threads, elements in self._place(addresses, values.dtype.itemsize):
            data[elements] = values[threads]


class PerThread:
    """Shared or local memory. Each block has a row of bytes of shared memory, and each thread a row of local memory.

    Args:
        owners: the row of each thread.
        size: the bytes of a row.
        clocks: the barriers that threads have passed. If given, races raise PtxError.
    """

    def __init__(self, owners: Array, size: int, what: str, clocks: Clocks | None = None) -> None:
        self.pitch = -(-size // 16) * 16
        rows = int(owners.max()) + 1 if owners.size else 0
        # Filled with poison, so that reads of unwritten memory give wrong results.
        self.data = np.full(rows * self.pitch, 0xA5, np.uint8)
        self.owners, self.size = owners.astype(np.uint64), size
        self.memory = Memory([(0, self.data)], what)
        self.what = what
        self.watch = Watch(self.data.size, clocks) if clocks is not None and size else None

    def _addresses(self, owners: Array, offsets: Array, size: int) -> Array:
        if (offsets + np.uint64(size) > np.uint64(self.size)).any():
            raise PtxError(f"an access of {size} bytes of {self.what} memory at {int(offsets.max())} is outside of its {self.size}")
        return owners.astype(np.uint64) * np.uint64(self.pitch) + offsets

    def load(self, threads: Array, offsets: Array, size: int) -> Array:
        addresses = self._addresses(self.owners[threads], offsets, size)
        if self.watch is not None:
            self.watch.load(threads, addresses, size)
        return self.memory.load(addresses, size)

    def store(self, threads: Array, offsets: Array, values: Array, is_atomic: bool = False) -> None:
        self.store_of(threads, self.owners[threads], offsets, values, is_atomic)

    def store_of(self, threads: Array, owners: Array, offsets: Array, values: Array, is_atomic: bool = False) -> None:
        """Stores to the rows `owners`, which may belong to other blocks than the threads."""
        addresses = self._addresses(owners, offsets, values.dtype.itemsize)
        if self.watch is not None:
            self.watch.store(threads, addresses, values, self.memory.load(addresses, values.dtype.itemsize), is_atomic)
        self.memory.store(addresses, values)

    def store_counted(self, threads: Array, owners: Array, offsets: Array, values: Array, mbarriers: Array) -> None:
        """Stores to the rows `owners`. For each thread, `mbarriers` has the number of the mbarrier that counts its store."""
        assert self.watch is not None
        self.store_of(threads, owners, offsets, values)
        self.watch.count(self._addresses(owners, offsets, values.dtype.itemsize), values.dtype.itemsize, mbarriers)

    def exchange(self, threads: Array, offsets: Array, size: int) -> Array:
        """Loads the old values for an atomic operation, which stores afterwards."""
        return self.memory.load(self._addresses(self.owners[threads], offsets, size), size)
