"""Executes the PTX instructions of mbarriers that count bytes. With them, blocks of a cluster store to each other's
shared memory, and each block waits until all that it expects has been stored.

Only threads that have waited for an mbarrier may load what it has counted.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from .arithmetic import TYPES, Array
from .operations import Threads, operation
from .text import Instruction, PtxError

# Selects the low bits of an address of a cluster's shared memory: the offset in the shared memory of one block.
OFFSETS = np.uint64((1 << 32) - 1)


@dataclasses.dataclass
class Mbarrier:
    """An mbarrier in its first phase.

    Attributes:
        number: its place in the list of all mbarriers of the blocks that run together.
        thread: the thread that has initialised it.
        expected: the bytes that it waits for; None before mbarrier.arrive.expect_tx.
        counted: the bytes that it has counted.
        fenced: how many cluster barriers its thread had entered when it executed fence.mbarrier_init. Threads that have
            left more may use the mbarrier.
    """

    number: int
    thread: int
    expected: int | None = None
    counted: int = 0
    fenced: int | None = None

    def is_complete(self) -> bool:
        return self.counted == self.expected


def _find(threads: Threads, block: int, offset: int) -> Mbarrier:
    found = threads.blocks.mbarriers.get((block, offset))
    if found is None:
        raise PtxError(f"an mbarrier at {offset} of block {block} that is not initialised")
    return found


@operation("mbarrier")
def _mbarrier(threads: Threads, one: Instruction) -> None:
    {"init": _init, "arrive": _expect, "try_wait": _try_wait}[one.parts[1]](threads, one)


def _init(threads: Threads, one: Instruction) -> None:
    blocks = threads.blocks
    if (threads.get(one.operands[1], "u32") != 1).any():
        raise PtxError("an mbarrier for several arrivals is not known")
    for thread, offset in zip(threads.chosen, threads.address(one.operands[0])):
        place = int(blocks.block[thread]), int(offset)
        if place in blocks.mbarriers:
            raise PtxError("an mbarrier that is initialised twice")
        blocks.mbarriers[place] = Mbarrier(len(blocks.mbarriers), int(thread))


def _expect(threads: Threads, one: Instruction) -> None:
    if one.parts[2] != "expect_tx":
        raise PtxError("an arrival that is not known")
    to, address, size = one.operands
    for thread, offset, bytes in zip(threads.chosen, threads.address(address), threads.get(size, "u32")):
        barrier = _find(threads, int(threads.blocks.block[thread]), int(offset))
        if barrier.expected is not None:
            raise PtxError("a second phase of an mbarrier is not known")
        barrier.expected = int(bytes)
    threads.put(to, "b64", np.zeros(threads.chosen.shape, np.uint64))


@operation("fence")
def _fence(threads: Threads, one: Instruction) -> None:
    """Makes the mbarriers of the threads known to the blocks that they meet at a cluster barrier. Other fences do
    nothing here."""
    if one.parts[1] == "mbarrier_init":
        for barrier in threads.blocks.mbarriers.values():
            if barrier.fenced is None and barrier.thread in threads.chosen:
                barrier.fenced = int(threads.blocks.arrived[barrier.thread])


def _try_wait(threads: Threads, one: Instruction) -> None:
    blocks = threads.blocks
    if one.parts[2] != "parity" or threads.get(one.operands[2], "u32").any():
        raise PtxError("a second phase of an mbarrier is not known")
    if one.parts[3:5] != ["acquire", "cluster"]:
        raise PtxError("a wait for stores of other blocks without .acquire.cluster")
    is_complete = np.zeros(threads.chosen.shape, bool)
    for i, (thread, offset) in enumerate(zip(threads.chosen, threads.address(one.operands[1]))):
        barrier = _find(threads, int(blocks.block[thread]), int(offset))
        is_complete[i] = barrier.is_complete()
        if is_complete[i]:
            blocks.clocks.awaited.add((barrier.number, int(thread)))
    threads.put(one.operands[0], "pred", is_complete)


def store(threads: Threads, one: Instruction) -> None:
    """Executes st.async: stores to a block of the cluster, whose mbarrier counts the bytes."""
    blocks, kind = threads.blocks, one.parts[-1]
    if one.parts[2:-1] != ["shared::cluster", "mbarrier::complete_tx::bytes"]:
        raise PtxError("a store that is not known")
    values = np.ascontiguousarray(threads.get(one.operands[1], kind)).view(f"uint{TYPES[kind].itemsize * 8}")
    places, counters = threads.address(one.operands[0]), threads.address(one.operands[2])
    owners = blocks.owners_of(threads.chosen, places)
    if (blocks.owners_of(threads.chosen, counters) != owners).any():
        raise PtxError("a store to a block that the mbarrier of another block counts")
    numbers: Array = np.zeros(owners.shape, np.int64)
    for i, (owner, offset, thread) in enumerate(zip(owners, counters & OFFSETS, threads.chosen)):
        barrier = _find(threads, int(owner), int(offset))
        if barrier.fenced is None or blocks.left[thread] <= barrier.fenced:
            raise PtxError("an mbarrier that another block may not know: no fence.mbarrier_init and cluster barrier after it")
        barrier.counted += values.itemsize
        if barrier.expected is not None and barrier.counted > barrier.expected:
            raise PtxError(f"an mbarrier that counts {barrier.counted} bytes and expects {barrier.expected}")
        numbers[i] = barrier.number
    blocks.shared.store_counted(threads.chosen, owners, places & OFFSETS, values, numbers)
