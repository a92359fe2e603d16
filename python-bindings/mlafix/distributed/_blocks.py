"""How blocks of rows lie in the buffer that one exchange moves."""

from __future__ import annotations

from typing import NamedTuple

import torch

# The widest access of a kernel.
_ALIGNMENT = 16


class BlockSize(NamedTuple):
    """The bytes of one block: its payloads `[tokens, heads, D]`, then its lses `[tokens, heads] f32`, each padded to 16 bytes."""

    payload: int
    lse: int

    @property
    def total(self) -> int:
        """Bytes of the block."""
        return self.payload + self.lse


def block_size(tokens: int, heads: int, head_dim: int, dtype: torch.dtype) -> BlockSize:
    """The size of a block of `tokens` x `heads` rows."""
    return BlockSize(_padded(tokens * heads * head_dim * dtype.itemsize), _padded(tokens * heads * 4))


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


class Blocks(NamedTuple):
    """Blocks that follow each other in a buffer, as bytes and as tensors over the same memory."""

    data: torch.Tensor
    """`[blocks, bytes] u8`."""

    rows: torch.Tensor
    """`[blocks, tokens, heads, D]`."""

    lses: torch.Tensor
    """`[blocks, tokens, heads] f32`."""


def blocks_in(buffer: torch.Tensor, count: int, tokens: int, heads: int, head_dim: int, dtype: torch.dtype) -> Blocks:
    """`count` blocks of `tokens` x `heads` rows at the front of a buffer of bytes, 16-byte aligned and large enough."""
    size = block_size(tokens, heads, head_dim, dtype)
    rows = buffer.view(dtype).as_strided(
        (count, tokens, heads, head_dim), (size.total // dtype.itemsize, heads * head_dim, head_dim, 1), 0
    )
    lses = buffer.view(torch.float32).as_strided((count, tokens, heads), (size.total // 4, heads, 1), size.payload // 4)
    return Blocks(buffer[: count * size.total].view(count, size.total), rows, lses)
