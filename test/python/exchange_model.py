"""A model of ranks that store to each other (docs/UnitFormat.md, "Exchanges"), for `group_model.search`.

It is written from the protocol, as that of `group_model` is, and under the same conditions: one step is one access of a flag or of a
row of a rank's memory, flags are sequentially consistent, a time-out may come at any moment while some are left. A row of staged
memory holds the number of the launch that stored it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from group_model import Broken

LOOK, SEND, TELL, COUNT, WAIT, RECORD, ECHO, HOST, READ, ENDED = range(10)


class Block(NamedTuple):
    at: int = ENDED
    rank: int = 0
    """The next one to store to, to tell, to wait for or to read."""
    epoch: int = 0
    """The launch's number, as the block has read it."""
    lacks: bool = False
    """Whether a rank did not come, or had failed."""
    valid: bool = False


class Rank(NamedTuple):
    launch: int
    """The current one, from 1 on; 0 before the first."""
    blocks: tuple[Block, ...]
    epoch: int
    count: int
    failed: int
    host: int
    slots: tuple[int, ...]
    """For each block and rank."""
    staged: tuple[int, ...]
    """For each half, block and rank: the launch that stored there."""


class State(NamedTuple):
    ranks: tuple[Rank, ...]
    timeouts: int


class ExchangeModel(NamedTuple):
    """A group whose launches have as many blocks as `grids` says, one after the other.

    `halves`: of staged memory. `looks`: a block looks for a failure before it stores. `tells`: a block tells the others behind its
    stores, not ahead of them. With one half, or without the others, the protocol is wrong.
    """

    ranks: int = 2
    grids: tuple[int, ...] = (1, 1)
    timeouts: int = 0
    halves: int = 2
    looks: bool = True
    tells: bool = True

    def start(self) -> State:
        most = max(self.grids)
        rank = Rank(0, (Block(),) * most, 0, 0, 0, 0, (0,) * (most * self.ranks), (0,) * (self.halves * most * self.ranks))
        return State((rank,) * self.ranks, self.timeouts)

    def is_over(self, state: State) -> bool:
        return all(rank.launch > len(self.grids) for rank in state.ranks)

    def steps(self, state: State) -> Iterator[State]:
        """All states one step on; one of them where the order of that step and of any other makes no difference."""
        for number, rank in enumerate(state.ranks):
            for b, block in enumerate(rank.blocks):
                if block.at != ENDED and self._is_settled(rank, b, block):
                    yield from self._block(state, number, b)
                    return
        for number, rank in enumerate(state.ranks):
            if all(block.at == ENDED for block in rank.blocks):
                if rank.launch <= len(self.grids):
                    yield _with(state, number, self._launch(rank))
                continue
            for b, block in enumerate(rank.blocks):
                if block.at != ENDED:
                    yield from self._block(state, number, b)

    def _launch(self, rank: Rank) -> Rank:
        """The next launch, in the order of the stream."""
        rank = rank._replace(launch=rank.launch + 1)
        if rank.launch > len(self.grids):
            return rank
        grid = self.grids[rank.launch - 1]
        return rank._replace(blocks=tuple(Block(LOOK if b < grid else ENDED, valid=b >= grid) for b in range(len(rank.blocks))))

    def _is_settled(self, rank: Rank, b: int, block: Block) -> bool:
        """Whether no step of another block changes what the next one of this block does, nor sees it."""
        if block.at == LOOK:
            return rank.failed != 0
        if block.at == WAIT:
            return block.rank == self.ranks or rank.slots[b * self.ranks + block.rank] >= block.epoch
        return block.at in (COUNT, HOST)

    def _block(self, state: State, number: int, b: int) -> Iterator[State]:
        rank = state.ranks[number]
        block = rank.blocks[b]
        if block.at == LOOK:
            sends = not (self.looks and rank.failed)
            first = (SEND if self.tells else TELL) if sends else COUNT
            yield _with(state, number, _block_with(rank, b, at=first, epoch=rank.epoch + 1, lacks=not sends))
        elif block.at == SEND:
            after = _with(state, number, _block_with(rank, b, **self._next(block, TELL if self.tells else COUNT)))
            yield self._store(after, block.rank, "staged", self._place(block, b, number), rank.launch)
        elif block.at == TELL:
            after = _with(state, number, _block_with(rank, b, **self._next(block, COUNT if self.tells else SEND)))
            yield self._store(after, block.rank, "slots", b * self.ranks + number, block.epoch)
        elif block.at == COUNT:
            yield _with(state, number, self._count(rank, b))
        elif block.at == WAIT:
            yield from self._wait(state, number, b)
        elif block.at == RECORD:
            recorded = rank._replace(failed=rank.failed or 1 + block.rank)
            yield _with(state, number, _block_with(recorded, b, at=WAIT, rank=block.rank + 1, lacks=True))
        elif block.at == ECHO:
            after = _with(state, number, _block_with(rank, b, **self._next(block, HOST)))
            yield _with(after, block.rank, after.ranks[block.rank]._replace(failed=rank.failed))
        elif block.at == HOST:
            yield _with(state, number, self._end(rank._replace(host=rank.failed), b, valid=False))
        elif block.at == READ:
            if rank.staged[self._place(block, b, block.rank)] != rank.launch:
                raise Broken("a block kept what another launch had stored")
            after = _block_with(rank, b, **self._next(block, ENDED))
            yield _with(state, number, self._end(after, b, valid=True) if after.blocks[b].at == ENDED else after)

    def _place(self, block: Block, b: int, source: int) -> int:
        """Where a rank stores for the launch of a block."""
        most = max(self.grids)
        return (block.epoch % self.halves * most + b) * self.ranks + source

    def _store(self, state: State, to: int, name: str, at: int, value: int) -> State:
        values = list(getattr(state.ranks[to], name))
        values[at] = value
        return _with(state, to, state.ranks[to]._replace(**{name: tuple(values)}))

    def _next(self, block: Block, then: int) -> dict[str, int]:
        """One rank further, or, behind the last one, to `then`."""
        last = block.rank + 1 == self.ranks
        return {"at": then if last else block.at, "rank": 0 if last else block.rank + 1}

    def _count(self, rank: Rank, b: int) -> Rank:
        block = rank.blocks[b]
        rank = rank._replace(count=rank.count + 1)
        if rank.count == self.grids[rank.launch - 1]:
            rank = rank._replace(count=0, epoch=block.epoch)
        return _block_with(rank, b, at=ECHO if block.lacks else WAIT)

    def _wait(self, state: State, number: int, b: int) -> Iterator[State]:
        rank = state.ranks[number]
        block = rank.blocks[b]
        if block.rank == self.ranks:
            yield _with(state, number, _block_with(rank, b, at=ECHO if block.lacks else READ, rank=0))
            return
        if rank.slots[b * self.ranks + block.rank] >= block.epoch:
            yield _with(state, number, _block_with(rank, b, rank=block.rank + 1))
            return
        gives_up = _with(state, number, _block_with(rank, b, at=RECORD))
        if rank.failed:
            yield gives_up
        elif state.timeouts:
            yield gives_up._replace(timeouts=state.timeouts - 1)

    def _end(self, rank: Rank, b: int, valid: bool) -> Rank:
        """A block ends: the host knows of a launch that is not right."""
        rank = _block_with(rank, b, at=ENDED, rank=0, epoch=0, lacks=False, valid=valid)
        if all(other.at == ENDED for other in rank.blocks):
            if not all(other.valid for other in rank.blocks) and not rank.host:
                raise Broken("a launch ended with marks, and the host was not told")
            rank = rank._replace(blocks=(Block(),) * len(rank.blocks))
        return rank


def _with(state: State, number: int, rank: Rank) -> State:
    ranks = list(state.ranks)
    ranks[number] = rank
    return state._replace(ranks=tuple(ranks))


def _block_with(of: Rank, b: int, **changes: object) -> Rank:
    blocks = list(of.blocks)
    blocks[b] = blocks[b]._replace(**changes)  # type: ignore[arg-type]
    return of._replace(blocks=tuple(blocks))
