"""Lays out blocks of rows in the buffer of an exchange."""

from __future__ import annotations

from typing import NamedTuple

import torch

# The width of a kernel's widest access in bytes.
_ALIGNMENT = 16


FP8 = torch.float8_e4m3fn


class BlockSize(NamedTuple):
    """The size in bytes of the parts of a block: payloads `[tokens, heads, D]`, lses `[tokens, heads] f32` and, with
    fp8, scales `[tokens, heads] f32`. Each part is padded to a multiple of 16 bytes."""

    payload: int
    lse: int
    scale: int

    @property
    def total(self) -> int:
        """The size of the whole block in bytes."""
        return self.payload + self.lse + self.scale


def block_size(tokens: int, heads: int, head_dim: int, wire_dtype: torch.dtype) -> BlockSize:
    """Returns the size of a block of `tokens` x `heads` rows whose payloads travel as `wire_dtype`."""
    numbers = _padded(tokens * heads * 4)
    return BlockSize(_padded(tokens * heads * head_dim * wire_dtype.itemsize), numbers, numbers if wire_dtype == FP8 else 0)


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


class Blocks(NamedTuple):
    """Consecutive blocks in a buffer: all of their bytes, and tensors over the same memory."""

    data: torch.Tensor
    """`[blocks, bytes] u8`."""

    rows: torch.Tensor
    """`[blocks, tokens, heads, D]` in the dtype on the wire."""

    lses: torch.Tensor
    """`[blocks, tokens, heads] f32`."""

    scales: torch.Tensor | None
    """`[blocks, tokens, heads] f32`: a payload of fp8 times its row's scale is the true payload. None for other dtypes."""


def blocks_in(buffer: torch.Tensor, count: int, tokens: int, heads: int, head_dim: int, wire_dtype: torch.dtype) -> Blocks:
    """Returns `count` blocks of `tokens` x `heads` rows at the front of a buffer. The buffer must be 16-byte aligned
    and large enough."""
    size = block_size(tokens, heads, head_dim, wire_dtype)
    typed = buffer.view(wire_dtype)
    shape, pitch = (count, tokens, heads, head_dim), size.total // wire_dtype.itemsize
    # Offsets of as_strided count from the start of the storage. The buffer may begin later, so its offset is added.
    rows = typed.as_strided(shape, (pitch, heads * head_dim, head_dim, 1), typed.storage_offset())

    def numbers(offset: int) -> torch.Tensor:
        floats = buffer.view(torch.float32)
        return floats.as_strided(shape[:3], (size.total // 4, heads, 1), floats.storage_offset() + offset // 4)

    scales = numbers(size.payload + size.lse) if wire_dtype == FP8 else None
    return Blocks(buffer[: count * size.total].view(count, size.total), rows, numbers(size.payload), scales)
