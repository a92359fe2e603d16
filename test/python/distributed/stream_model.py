"""A model of collective launches in several streams of GPUs that hold few blocks at once (docs/Distributed.md), for
`interleavings.search`.

A GPU begins the blocks of a launch in order, whenever it has room for one. A launch begins once the previous one in its
stream is complete. A dependent launch begins earlier, once all blocks of the previous one have begun; its own blocks
then take room and wait. A launch that pulls waits for the first block of each rank's launch, and its last block waits
until all ranks' blocks have read. In a launch that pushes, each block waits for the same block of each rank.
`group_model` models the flags by which blocks wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from interleavings import replaced

PLAIN, PULL, PUSH = "plain", "pull", "push"
# A block in state CAME has told the other ranks that it is there, or has read their rows.
ABSENT, BEGUN, CAME, ENDED = range(4)


class Launch(NamedTuple):
    stream: int
    kind: str
    grid: int
    dependent: bool = False


Grid = tuple[int, ...]
"""The state of each block of a launch."""
State = tuple[tuple[Grid, ...], ...]
"""The blocks of each launch, by rank."""


class StreamModel(NamedTuple):
    """Ranks that make `launches`, in this order or, if `orders` is not empty, each in its own order.

    `places` is the number of blocks that a GPU holds at once. If `ordered`, a collective begins only once the rank's
    previous collective is complete, in any stream.
    """

    launches: tuple[Launch, ...]
    places: int = 2
    ordered: bool = True
    orders: tuple[tuple[int, ...], ...] = ()
    ranks: int = 2

    def start(self) -> State:
        return (tuple((ABSENT,) * launch.grid for launch in self.launches),) * self.ranks

    def is_over(self, state: State) -> bool:
        return all(self._is_complete(grid) for grids in state for grid in grids)

    def check(self, state: State) -> None:
        pass

    def steps(self, state: State) -> Iterator[State]:
        for rank, grids in enumerate(state):
            used = sum(at in (BEGUN, CAME) for grid in grids for at in grid)
            for which, grid in enumerate(grids):
                for b, at in enumerate(grid):
                    after = self._step(state, rank, which, b, used < self.places)
                    if after != at:
                        yield replaced(state, rank, replaced(grids, which, replaced(grid, b, after)))

    def _step(self, state: State, rank: int, which: int, b: int, has_place: bool) -> int:
        """Returns the next state of a block, or its present state if it must wait."""
        launch, grid = self.launches[which], state[rank][which]
        at = grid[b]
        if at == ABSENT:
            is_next = b == 0 or grid[b - 1] != ABSENT
            return BEGUN if has_place and is_next and self._may_begin(state[rank], rank, which) else at
        if at == ENDED or not self._is_behind(state[rank], rank, which):
            return at
        if launch.kind == PLAIN:
            return ENDED
        others = [grids[which] for grids in state]
        if launch.kind == PUSH:
            return CAME if at == BEGUN else ENDED if all(other[b] >= CAME for other in others) else at
        if at == BEGUN:
            # Block 0 tells the other ranks that it is there before it waits for them.
            if b == 0 or all(other[0] >= CAME for other in others):
                return CAME
            return at
        is_last = all(other == ENDED for i, other in enumerate(grid) if i != b)
        has_come = all(other[0] >= CAME for other in others)
        have_read = all(here >= CAME for other in others for here in other)
        return ENDED if has_come and (not is_last or have_read) else at

    def _before(self, rank: int, which: int) -> list[int]:
        """Returns the rank's earlier launches, latest first."""
        order = self.orders[rank] if self.orders else tuple(range(len(self.launches)))
        return list(reversed(order[: order.index(which)]))

    def _is_behind(self, grids: tuple[Grid, ...], rank: int, which: int) -> bool:
        """Returns true if the previous launch in the same stream is complete."""
        stream = self.launches[which].stream
        before = next((other for other in self._before(rank, which) if self.launches[other].stream == stream), None)
        return before is None or self._is_complete(grids[before])

    def _may_begin(self, grids: tuple[Grid, ...], rank: int, which: int) -> bool:
        launch = self.launches[which]
        earlier = self._before(rank, which)
        before = next((other for other in earlier if self.launches[other].stream == launch.stream), None)
        if before is not None:
            has_begun = all(at != ABSENT for at in grids[before])
            if not (self._is_complete(grids[before]) or (launch.dependent and has_begun)):
                return False
        collectives = [other for other in earlier if self.launches[other].kind != PLAIN]
        if launch.kind == PLAIN or not self.ordered or not collectives:
            return True
        last = collectives[0]
        return self.launches[last].stream == launch.stream or self._is_complete(grids[last])

    def _is_complete(self, grid: Grid) -> bool:
        return all(at == ENDED for at in grid)
