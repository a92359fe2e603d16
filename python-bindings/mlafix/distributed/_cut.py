"""Determines which rows of the merged state each rank receives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .._launcher.arguments import wrong

CutName = Literal["heads", "tokens", "none"]


@dataclass(frozen=True)
class Cut:
    """A cut of a partial state of `[tokens, heads]` rows into blocks of rows, one for each rank that merges them.

    Args:
        name: "heads": a rank merges heads / ranks heads of every token. "tokens": it merges all heads of
            ceil(tokens / ranks) tokens; the last ranks merge fewer or none. "none": every rank merges all rows.
        ranks: the size of the group.
        heads: heads of the partial state.

    Raises:
        ArgumentError: there is no such cut, or the number of ranks does not divide the number of heads.
    """

    name: str
    ranks: int
    heads: int

    def __post_init__(self) -> None:
        if self.name not in ("heads", "tokens", "none"):
            raise wrong("cut", '"heads", "tokens" or "none"', repr(self.name))
        if self.name == "heads" and self.heads % self.ranks:
            raise wrong("heads", f"a multiple of the {self.ranks} ranks", self.heads)

    @property
    def blocks(self) -> int:
        """The number of different blocks that a rank sends. It is 1 if nothing is cut, since all ranks get the same
        block."""
        return 1 if self.name == "none" else self.ranks

    @property
    def block_heads(self) -> int:
        """The number of heads in a block."""
        return self.heads // self.ranks if self.name == "heads" else self.heads

    def block_tokens(self, tokens: int) -> int:
        """Returns the number of tokens in a block. A block's rows behind the call's last token are the identity."""
        return -(-tokens // self.ranks) if self.name == "tokens" else tokens

    def owned(self, rank: int, tokens: int) -> tuple[slice, slice]:
        """Returns the tokens and the heads of the whole state that a rank merges, as slices."""
        size, heads = self.block_tokens(tokens), self.block_heads
        first_token = min(rank * size, tokens) if self.name == "tokens" else 0
        first_head = rank * heads if self.name == "heads" else 0
        return slice(first_token, min(first_token + size, tokens)), slice(first_head, first_head + heads)
