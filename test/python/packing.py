"""The memory layouts of f4e2m1, with two codes per byte, and of scales in tiles of 128 x 4, as block-scaled matrix
products read them."""

from __future__ import annotations

import numpy as np

MAGNITUDES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)


def codes_of(x: np.ndarray) -> np.ndarray:
    """Returns the f4e2m1 code of the number nearest to each element. Ties give the even code; NaN and numbers beyond
    the range give the code of 6."""
    wide = x.astype(np.float64)
    distance = np.abs(np.minimum(np.abs(np.nan_to_num(wide, nan=6.0, posinf=6.0, neginf=6.0)), 6.0)[..., None] - MAGNITUDES)
    nearest = distance == distance.min(-1, keepdims=True)
    order = np.array([0, 2, 4, 6, 1, 3, 5, 7])
    codes = order[np.argmax(nearest[..., order], -1)]
    return (codes | np.where(np.signbit(wide) & ~np.isnan(wide), 8, 0)).astype(np.uint8)


def packed(codes: np.ndarray) -> np.ndarray:
    """Packs two codes into each byte, the first one in the low half."""
    return codes[..., ::2] | codes[..., 1::2] << 4


def in_tiles(row: np.ndarray, column: np.ndarray, pitch: int) -> np.ndarray:
    """Returns the offset of an element in cuBLAS's "block scaling factors layout". The formula is not taken from the
    code under test."""
    tile = (row // 128) * (pitch // 4) + column // 4
    return tile * 512 + row % 32 * 16 + row % 128 // 32 * 4 + column % 4


def rows_of(memory: np.ndarray, columns: int) -> np.ndarray:
    """Returns the matrix `[m, columns]` that `memory`, `[m, pitch]`, contains in tiles."""
    m, pitch = memory.shape
    row, column = np.mgrid[:m, :columns]
    bits = memory.reshape(-1).view(f"u{memory.itemsize}")[in_tiles(row, column, pitch)]
    return bits.view(memory.dtype)
