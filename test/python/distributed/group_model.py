"""A model of how ranks wait for each other (docs/UnitFormat.md, "Groups"), for `interleavings.search`.

The model is written from the description of the protocol, not from the code that emits the accesses. One step is one
access to a flag or to a row of a rank's memory. Flags are sequentially consistent. A block's threads are modelled as
one thread, which polls the ranks in order. A launch reads its number from the workspace, as a launch of
a replayed graph must. Between two launches a rank overwrites its rows. In the model, a row contains the number of the
launch that wrote it.

A wait may time out at any moment, up to `Model.timeouts` times. The model thus assumes nothing about the speed of a rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from interleavings import Broken, replaced

PULL, PUSH = "pull", "push"
LOOK, SEND, TELL, WAIT, RECORD, ECHO, HOST, READ, CHECK, COUNT, FINISH, ENDED = range(12)
ARRIVED, DONE, SLOTS = "arrived", "done", "slots"


class Block(NamedTuple):
    at: int = ENDED
    flags: str = ARRIVED
    """The kind of flags that the block sets and waits for."""
    rank: int = 0
    """The rank that the block handles next: the block stores to this rank's memory, sets a flag there, waits for this
    rank, or reads its rows."""
    epoch: int = 0
    """The number of the launch, as the block has read it."""
    lacks: bool = False
    """True if the block knows that a rank did not arrive or has failed."""
    found: bool = False
    """True if the block was the first of its rank to find that a rank did not arrive."""
    arrived: bool = False
    stale: bool = False
    """True if the block read rows of another launch."""
    valid: bool = False


class Rank(NamedTuple):
    launch: int
    """The number of the current launch, which the rank's rows contain. Launches count from 1; 0 means before the
    first."""
    blocks: tuple[Block, ...]
    epoch: int
    count: int
    failed: int
    host: int
    """The report of a failure to the host; 0 if there is none."""
    arrived: tuple[int, ...]
    done: tuple[int, ...]
    slots: tuple[int, ...]
    """The flags of launches that push, one for each block and rank."""
    staged: tuple[int, ...]
    """The number of the launch that stored last to each place, for each half, block and rank."""


class State(NamedTuple):
    ranks: tuple[Rank, ...]
    timeouts: int


class Model(NamedTuple):
    """A group of ranks that make `launches` one after the other. Each launch is given as its kind and number of blocks.

    The fields below switch off parts of the protocol. Without any one of these parts, the protocol fails.

    Args:
        checks: if a launch pulls, a block looks for a failure after its reads, before its results count as right.
        releases: if a launch pulls, it waits until its rank's rows have been read.
        echoes: every block that knows of a failure tells all ranks before its launch ends, not only the block that
            found the failure.
        halves: the number of halves of the memory to which launches that push store. The protocol needs 2.
        looks: if a launch pushes, a block looks for a failure before it stores.
        tells: if a launch pushes, a block sets its flags after its stores, not before them.
    """

    launches: tuple[tuple[str, int], ...] = ((PULL, 1), (PULL, 1))
    ranks: int = 2
    timeouts: int = 0
    checks: bool = True
    releases: bool = True
    echoes: bool = True
    halves: int = 2
    looks: bool = True
    tells: bool = True

    @property
    def most(self) -> int:
        """The largest number of blocks of a launch."""
        return max(grid for _, grid in self.launches)

    def start(self) -> State:
        none = (0,) * self.ranks
        pushes = any(kind == PUSH for kind, _ in self.launches)
        slots = self.most * self.ranks if pushes else 0
        rank = Rank(0, (Block(),) * self.most, 0, 0, 0, 0, none, none, (0,) * slots, (0,) * (self.halves * slots))
        return State((rank,) * self.ranks, self.timeouts)

    def is_over(self, state: State) -> bool:
        return all(rank.launch > len(self.launches) for rank in state.ranks)

    def check(self, state: State) -> None:
        if self.timeouts == 0 and any(rank.host for rank in state.ranks):
            raise Broken("a rank failed without a time-out")

    def steps(self, state: State) -> Iterator[State]:
        """Yields all states after one step. If some step commutes with all others, yields only the state after that
        step."""
        for number, rank in enumerate(state.ranks):
            for b, block in enumerate(rank.blocks):
                if block.at != ENDED and self._is_settled(rank, b, block):
                    yield from self._block(state, number, b)
                    return
        for number, rank in enumerate(state.ranks):
            if all(block.at == ENDED for block in rank.blocks):
                if rank.launch <= len(self.launches):
                    yield _with(state, number, self._launch(rank))
                continue
            for b, block in enumerate(rank.blocks):
                if block.at != ENDED:
                    yield from self._block(state, number, b)

    def _launch(self, rank: Rank) -> Rank:
        """Writes the rank's new rows and begins the launch that merges them. After the last launch, only writes
        rows."""
        rank = rank._replace(launch=rank.launch + 1)
        if rank.launch > len(self.launches):
            return rank
        kind, grid = self.launches[rank.launch - 1]
        begun = Block(LOOK, SLOTS if kind == PUSH else ARRIVED)
        return rank._replace(blocks=tuple(begun if b < grid else Block(valid=True) for b in range(self.most)))

    def _is_settled(self, rank: Rank, b: int, block: Block) -> bool:
        """Returns true if the block's next step neither affects nor depends on the next steps of other blocks. The
        conditions below suffice, since flags only increase and a failure stays recorded."""
        if block.at in (LOOK, CHECK, RECORD):
            return rank.failed != 0
        if block.at == WAIT:
            return block.rank == self.ranks or self._flag(rank, b, block) >= block.epoch
        return block.at in (HOST, FINISH) or (block.at == COUNT and block.flags == SLOTS)

    def _flag(self, rank: Rank, b: int, block: Block) -> int:
        """Returns the flag that the block waits for."""
        first = b * self.ranks if block.flags == SLOTS else 0
        flags: tuple[int, ...] = getattr(rank, block.flags)
        return flags[first + block.rank]

    def _block(self, state: State, number: int, b: int) -> Iterator[State]:
        rank = state.ranks[number]
        block = rank.blocks[b]

        def to(**changes: object) -> State:
            return _with(state, number, _with_block(rank, b, **changes))

        if block.at == LOOK:
            yield to(**self._look(rank, b))
        elif block.at == SEND:
            after = to(**self._next(block, TELL if self.tells else COUNT))
            yield self._store(after, block.rank, "staged", self._place(block, b, number), rank.launch)
        elif block.at == TELL:
            behind = {ARRIVED: WAIT, DONE: LOOK, SLOTS: COUNT if self.tells else SEND}[block.flags]
            place = (b * self.ranks if block.flags == SLOTS else 0) + number
            yield self._store(to(**self._next(block, behind)), block.rank, block.flags, place, block.epoch)
        elif block.at == WAIT:
            yield from self._wait(state, number, b)
        elif block.at == RECORD:
            recorded = rank._replace(failed=rank.failed or 1 + block.rank)
            found = block.found or not rank.failed
            yield _with(state, number, _with_block(recorded, b, at=WAIT, rank=block.rank + 1, lacks=True, found=found))
        elif block.at == ECHO:
            after = to(**self._next(block, HOST))
            if self.echoes or block.found:
                after = _with(after, block.rank, after.ranks[block.rank]._replace(failed=rank.failed))
            yield after
        elif block.at == HOST:
            yield _with(state, number, self._waited(rank._replace(host=rank.failed), b, False))
        elif block.at == READ:
            yield _with(state, number, self._read(state, rank, b))
        elif block.at == CHECK:
            yield to(at=COUNT, valid=block.arrived and not (self.checks and rank.failed))
        elif block.at == COUNT:
            yield _with(state, number, self._count(rank, b))
        elif block.at == FINISH:
            yield _with(state, number, self._end(rank._replace(epoch=block.epoch, count=0), b))

    def _look(self, rank: Rank, b: int) -> dict[str, object]:
        """Returns the changes of a block that looks: it reads the launch's number, and whether a rank has failed."""
        block, failed = rank.blocks[b], rank.failed != 0
        if block.flags == SLOTS:
            sends = not (self.looks and failed)
            return {"at": (SEND if self.tells else TELL) if sends else COUNT, "epoch": rank.epoch + 1, "lacks": not sends}
        tells = b == 0 and block.flags == ARRIVED
        return {"at": TELL if tells else WAIT, "rank": 0, "epoch": rank.epoch + 1, "lacks": failed}

    def _next(self, block: Block, then: int) -> dict[str, object]:
        """Returns the changes that lead to the next rank or, after the last rank, to the phase `then`."""
        last = block.rank + 1 == self.ranks
        return {"at": then if last else block.at, "rank": 0 if last else block.rank + 1}

    def _place(self, block: Block, b: int, source: int) -> int:
        """Returns the index in staged memory at which rank `source` stores for a block's launch."""
        return (block.epoch % self.halves * self.most + b) * self.ranks + source

    def _store(self, state: State, to: int, name: str, at: int, value: int) -> State:
        rank = state.ranks[to]
        return _with(state, to, rank._replace(**{name: replaced(getattr(rank, name), at, value)}))

    def _wait(self, state: State, number: int, b: int) -> Iterator[State]:
        rank = state.ranks[number]
        block = rank.blocks[b]
        if block.rank == self.ranks:
            after = _with_block(rank, b, at=ECHO, rank=0) if block.lacks else self._waited(rank, b, True)
            yield _with(state, number, after)
            return
        if self._flag(rank, b, block) >= block.epoch:
            yield _with(state, number, _with_block(rank, b, rank=block.rank + 1))
            return
        gives_up = _with(state, number, _with_block(rank, b, at=RECORD))
        if rank.failed:
            yield gives_up
        elif state.timeouts:
            yield gives_up._replace(timeouts=state.timeouts - 1)

    def _waited(self, rank: Rank, b: int, all_came: bool) -> Rank:
        flags = rank.blocks[b].flags
        if flags == DONE:
            return _with_block(rank, b, at=FINISH)
        if flags == SLOTS and not all_came:
            return self._end(rank, b)
        return _with_block(rank, b, at=READ if all_came else CHECK, rank=0, arrived=all_came)

    def _read(self, state: State, rank: Rank, b: int) -> Rank:
        block = rank.blocks[b]
        if block.flags == ARRIVED:
            stale = block.stale or state.ranks[block.rank].launch != rank.launch
            return _with_block(rank, b, **self._next(block, CHECK), stale=stale)
        stale = block.stale or rank.staged[self._place(block, b, block.rank)] != rank.launch
        after = _with_block(rank, b, **self._next(block, ENDED), stale=stale)
        return self._end(_with_block(after, b, valid=True), b) if after.blocks[b].at == ENDED else after

    def _count(self, rank: Rank, b: int) -> Rank:
        block = rank.blocks[b]
        rank = rank._replace(count=rank.count + 1)
        is_last = rank.count == self.launches[rank.launch - 1][1]
        if block.flags == SLOTS:
            if is_last:
                rank = rank._replace(count=0, epoch=block.epoch)
            return _with_block(rank, b, at=ECHO if block.lacks else WAIT)
        if not is_last:
            return self._end(rank, b)
        if not block.arrived or not self.releases:
            return _with_block(rank, b, at=FINISH)
        return _with_block(rank, b, at=TELL, flags=DONE, rank=0, lacks=False)

    def _end(self, rank: Rank, b: int) -> Rank:
        """Ends a block. A block that is not `valid` marks its rows: it stores NaN. Raises Broken if a block without
        marks has wrong rows, or if a launch ends with marks and the host was not told."""
        block = rank.blocks[b]
        if block.valid and block.stale:
            raise Broken("a block kept what it read of other launches")
        rank = _with_block(rank, b, **Block(valid=block.valid)._asdict())
        if all(other.at == ENDED for other in rank.blocks):
            if not all(other.valid for other in rank.blocks) and not rank.host:
                raise Broken("a launch ended with marks, and the host was not told")
            rank = rank._replace(blocks=(Block(),) * self.most)
        return rank


def _with(state: State, number: int, rank: Rank) -> State:
    return state._replace(ranks=replaced(state.ranks, number, rank))


def _with_block(of: Rank, b: int, **changes: object) -> Rank:
    return of._replace(blocks=replaced(of.blocks, b, of.blocks[b]._replace(**changes)))  # type: ignore[arg-type]
