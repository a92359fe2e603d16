"""A group of ranks in which this process is rank 0. The other ranks do not run. The workspaces look as if the
other ranks had already arrived at each launch and had read or stored their rows."""

from __future__ import annotations

import numpy as np
from mlafix._runtime import GROUP_BYTES, PeerGroup

# The offset, in u64s, of the first flag that other ranks write to a workspace (docs/UnitFormat.md, "Groups").
FIRST_FLAG = 32
# The most blocks of a launch. A row of the grid needs at most one.
_SLOTS = 1024


def words_of(ranks: int) -> int:
    """Returns the size of a workspace in 64-bit words."""
    return -(-(GROUP_BYTES // 8 + _SLOTS * ranks) // 16) * 16


def fill(workspaces: np.ndarray, turn: int) -> None:
    """Fills zeroed workspaces [ranks, words] i64 as if rank 0 had completed `turn` launches, and the other ranks had
    completed every launch."""
    workspaces[0, 0] = turn
    workspaces[0, FIRST_FLAG:] = 1 << 62


def group_of(addresses: list[int], rank: int = 0) -> PeerGroup:
    return PeerGroup(rank, addresses, 10.0, slots=_SLOTS)
