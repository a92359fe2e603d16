"""The layout of blocks of rows in the buffer of one exchange."""

from __future__ import annotations

from typing import NamedTuple

import torch

# The width of a kernel's widest access, in bytes.
_ALIGNMENT = 16


FP8 = torch.float8_e4m3fn


class BlockSize(NamedTuple):
    """The bytes of one block: payloads `[tokens, heads, D]`, lses and, with fp8, scales `[tokens, heads] f32`; each padded to 16."""

    payload: int
    lse: int
    scale: int

    @property
    def total(self) -> int:
        """Bytes of the block."""
        return self.payload + self.lse + self.scale


def block_size(tokens: int, heads: int, head_dim: int, wire_dtype: torch.dtype) -> BlockSize:
    """The size of a block of `tokens` x `heads` rows, whose payloads travel as `wire_dtype`."""
    numbers = _padded(tokens * heads * 4)
    return BlockSize(_padded(tokens * heads * head_dim * wire_dtype.itemsize), numbers, numbers if wire_dtype == FP8 else 0)


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


class Blocks(NamedTuple):
    """Blocks that follow each other in a buffer, as bytes and as tensors over the same memory."""

    data: torch.Tensor
    """`[blocks, bytes] u8`."""

    rows: torch.Tensor
    """`[blocks, tokens, heads, D]`, of the dtype on the wire."""

    lses: torch.Tensor
    """`[blocks, tokens, heads] f32`."""

    scales: torch.Tensor | None
    """Like `lses`: what the payloads of fp8 are multiplied by. None for other dtypes."""


def blocks_in(buffer: torch.Tensor, count: int, tokens: int, heads: int, head_dim: int, wire_dtype: torch.dtype) -> Blocks:
    """`count` blocks of `tokens` x `heads` rows at the front of a buffer of bytes, 16-byte aligned and large enough."""
    size = block_size(tokens, heads, head_dim, wire_dtype)
    typed = buffer.view(wire_dtype)
    shape, pitch = (count, tokens, heads, head_dim), size.total // wire_dtype.itemsize
    # Offsets count from the start of the storage; the buffer may be only a part of it.
    rows = typed.as_strided(shape, (pitch, heads * head_dim, head_dim, 1), typed.storage_offset())

    def numbers(offset: int) -> torch.Tensor:
        floats = buffer.view(torch.float32)
        return floats.as_strided(shape[:3], (size.total // 4, heads, 1), floats.storage_offset() + offset // 4)

    scales = numbers(size.payload + size.lse) if wire_dtype == FP8 else None
    return Blocks(buffer[: count * size.total].view(count, size.total), rows, numbers(size.payload), scales)
