"""A model of how ranks wait for each other (docs/UnitFormat.md, "Groups"), and a search of all its interleavings.

It is written from the protocol, not from the code that emits it: one step is one access of a flag or of a rank's rows. Flags are
sequentially consistent here. A block's threads are one thread, which looks at the ranks in order. A launch is any launch, by a
replayed graph as well: it knows its number from the workspace alone. Between two launches a rank overwrites its rows.

A wait may run into its time-out at any moment, as long as `Model.timeouts` are left: no speed of any rank is assumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

BEFORE, TELL, LOOK, WAIT, RECORD, ECHO, HOST, READ, CHECK, COUNT, FINISH, ENDED = range(12)
ARRIVED, DONE = range(2)


class Block(NamedTuple):
    at: int = TELL
    flags: int = ARRIVED
    """Which it tells, and waits for."""
    rank: int = 0
    """The next one to tell, to wait for or to read."""
    lacks: bool = False
    """Whether a rank did not come, or had failed."""
    found: bool = False
    """Whether it was the first of its rank to find that one did not come."""
    arrived: bool = False
    stale: bool = False
    """Whether it read rows of another launch."""
    valid: bool = False


class Rank(NamedTuple):
    launch: int
    """The current one, from 1 on: also what its rows hold. 0 before the first."""
    blocks: tuple[Block, ...]
    epoch: int
    count: int
    failed: int
    host: int
    """What the launch told the host."""
    arrived: tuple[int, ...]
    done: tuple[int, ...]


class State(NamedTuple):
    ranks: tuple[Rank, ...]
    timeouts: int


class Broken(Exception):
    """The protocol let something happen that it must not."""


class Model(NamedTuple):
    """A group of ranks that make `launches` launches of `blocks` blocks each.

    `checks`: a block looks for a failure behind its reads, before it answers for what it stores. `echoes`: whoever knows of a
    failure tells all ranks before its launch ends, not only who found it. `releases`: a launch waits until its rank's rows were
    read. Without any of them the protocol is wrong.
    """

    ranks: int = 2
    launches: int = 2
    blocks: int = 1
    timeouts: int = 0
    checks: bool = True
    echoes: bool = True
    releases: bool = True

    def start(self) -> State:
        none = (0,) * self.ranks
        return State((Rank(0, (Block(ENDED),) * self.blocks, 0, 0, 0, 0, none, none),) * self.ranks, self.timeouts)

    def steps(self, state: State) -> Iterator[State]:
        """All states one step on; one of them where the order of that step and of any other makes no difference."""
        for number, rank in enumerate(state.ranks):
            for b, block in enumerate(rank.blocks):
                if block.at != ENDED and self._is_settled(rank, block):
                    yield from self._block(state, number, b)
                    return
        for number, rank in enumerate(state.ranks):
            if all(block.at == ENDED for block in rank.blocks):
                if rank.launch <= self.launches:
                    yield _with(state, number, self._overwrite(rank))
                continue
            for b, block in enumerate(rank.blocks):
                if block.at != ENDED:
                    yield from self._block(state, number, b)

    def is_over(self, state: State) -> bool:
        return all(rank.launch > self.launches for rank in state.ranks)

    def _overwrite(self, rank: Rank) -> Rank:
        """New rows, and the launch that merges them; behind the last launch, rows alone."""
        rank = rank._replace(launch=rank.launch + 1)
        if rank.launch > self.launches:
            return rank
        return rank._replace(blocks=tuple(Block(TELL if b == 0 else LOOK) for b in range(self.blocks)))

    def _is_settled(self, rank: Rank, block: Block) -> bool:
        """Whether no step of another block changes what the next one of this block does, nor sees it: flags only grow."""
        if block.at in (LOOK, CHECK, RECORD):
            return rank.failed != 0
        if block.at == WAIT:
            return block.rank == self.ranks or (rank.arrived if block.flags == ARRIVED else rank.done)[block.rank] > rank.epoch
        return block.at in (HOST, FINISH)

    def _block(self, state: State, number: int, b: int) -> Iterator[State]:
        rank = state.ranks[number]
        block, epoch = rank.blocks[b], rank.epoch + 1

        def to(**changes: object) -> State:
            return _with(state, number, _with_block(rank, b, **changes))

        if block.at == TELL:
            yield self._tell(to(**self._next(block, LOOK)), number, block, epoch)
        elif block.at == LOOK:
            yield to(at=WAIT, rank=0, lacks=rank.failed != 0)
        elif block.at == WAIT:
            yield from self._wait(state, number, b)
        elif block.at == RECORD:
            found = block.found or not rank.failed
            recorded = rank._replace(failed=rank.failed or 1 + block.rank)
            yield _with(state, number, _with_block(recorded, b, **self._next(block, ECHO), lacks=True, found=found))
        elif block.at == ECHO:
            after = to(**self._next(block, HOST))
            if self.echoes or block.found:
                after = _with(after, block.rank, after.ranks[block.rank]._replace(failed=rank.failed))
            yield after
        elif block.at == HOST:
            yield _with(state, number, self._waited(rank._replace(host=rank.failed), b, False))
        elif block.at == READ:
            stale = block.stale or state.ranks[block.rank].launch != rank.launch
            yield to(**self._next(block, CHECK), stale=stale)
        elif block.at == CHECK:
            yield to(at=COUNT, valid=block.arrived and not (self.checks and rank.failed))
        elif block.at == COUNT:
            yield _with(state, number, self._count(rank, b))
        elif block.at == FINISH:
            yield _with(state, number, self._end(rank._replace(epoch=epoch, count=0), b))

    def _next(self, block: Block, then: int) -> dict[str, int]:
        """One rank further, or, behind the last one, to `then`; ECHO is behind the last wait."""
        if then == ECHO:
            return {"at": WAIT, "rank": block.rank + 1}
        last = block.rank + 1 == self.ranks
        return {"at": then if last else block.at, "rank": 0 if last else block.rank + 1}

    def _tell(self, state: State, number: int, block: Block, epoch: int) -> State:
        other = state.ranks[block.rank]
        name = "arrived" if block.flags == ARRIVED else "done"
        flags = list(getattr(other, name))
        flags[number] = epoch
        return _with(state, block.rank, other._replace(**{name: tuple(flags)}))

    def _wait(self, state: State, number: int, b: int) -> Iterator[State]:
        rank = state.ranks[number]
        block = rank.blocks[b]
        if block.rank == self.ranks:
            after = _with_block(rank, b, at=ECHO, rank=0) if block.lacks else self._waited(rank, b, True)
            yield _with(state, number, after)
            return
        flag = (rank.arrived if block.flags == ARRIVED else rank.done)[block.rank]
        if flag >= rank.epoch + 1:
            yield _with(state, number, _with_block(rank, b, rank=block.rank + 1))
            return
        gives_up = _with(state, number, _with_block(rank, b, at=RECORD))
        if rank.failed:
            yield gives_up
        elif state.timeouts:
            yield gives_up._replace(timeouts=state.timeouts - 1)

    def _waited(self, rank: Rank, b: int, all_came: bool) -> Rank:
        if rank.blocks[b].flags == DONE:
            return _with_block(rank, b, at=FINISH)
        return _with_block(rank, b, at=READ if all_came else CHECK, rank=0, arrived=all_came)

    def _count(self, rank: Rank, b: int) -> Rank:
        block = rank.blocks[b]
        rank = rank._replace(count=rank.count + 1)
        if rank.count < self.blocks:
            return self._end(rank, b)
        if not block.arrived or not self.releases:
            return _with_block(rank, b, at=FINISH)
        return _with_block(rank, b, at=TELL, flags=DONE, rank=0, lacks=False)

    def _end(self, rank: Rank, b: int) -> Rank:
        """A block ends: what it answers for is right, and the host knows of a launch that is not."""
        block = rank.blocks[b]
        if block.valid and block.stale:
            raise Broken("a block kept what it read of other launches")
        rank = _with_block(rank, b, at=ENDED, flags=ARRIVED, rank=0, lacks=False, found=False, arrived=False, stale=False)
        if all(other.at == ENDED for other in rank.blocks):
            if not all(other.valid for other in rank.blocks) and not rank.host:
                raise Broken("a launch ended with marks, and the host was not told")
            rank = rank._replace(blocks=tuple(other._replace(valid=False) for other in rank.blocks))
        return rank


def _with(state: State, number: int, rank: Rank) -> State:
    ranks = list(state.ranks)
    ranks[number] = rank
    return state._replace(ranks=tuple(ranks))


def _with_block(of: Rank, b: int, **changes: object) -> Rank:
    blocks = list(of.blocks)
    blocks[b] = blocks[b]._replace(**changes)  # type: ignore[arg-type]
    return of._replace(blocks=tuple(blocks))


def search(model: Model) -> int:
    """Looks at every state that can be reached; how many there are.

    Raises:
        Broken: a step that the protocol must not allow, or a state that no step leads out of before all launches have ended.
    """
    start = model.start()
    seen = {start}
    stack = [start]
    while stack:
        state = stack.pop()
        moved = False
        for after in model.steps(state):
            moved = True
            if model.timeouts == 0 and any(rank.host for rank in after.ranks):
                raise Broken("a rank failed without a time-out")
            if after not in seen:
                seen.add(after)
                stack.append(after)
        if not moved and not model.is_over(state):
            raise Broken("ranks wait for each other for ever")
    return len(seen)
