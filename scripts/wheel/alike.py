"""Sorts compiled units into the blocks of an archive: similar units share a block, and each block decompresses quickly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Milliseconds that LZMA takes to decompress 1 MiB, and further milliseconds for 1 MiB that no earlier unit of the block
# contains: docs/Experiments.md, "Blocks of an archive".
_MS_PER_MIB, _MS_PER_NEW_MIB = 1.6, 11.0
# Units are compared by windows of 8 bytes. Only about one in _SAMPLED windows is used. The contents of a window decide
# whether it is used, so equal windows of two units are both used or both left out.
_SAMPLED = 8


def sorted_into_blocks(units: Sequence[bytes], milliseconds: float) -> list[list[int]]:
    """Returns the blocks. Each is a list of indices of units, in order.

    A block begins with the first remaining unit. Then the remaining unit that has most in common with the block is
    added, again and again, until the block would take too long to decompress.

    Args:
        units: the units of one target.
        milliseconds: the approximate limit for decompressing a block of several units.
    """
    samples = [_samples(unit) for unit in units]
    counts = np.array([len(sample) for sample in samples])
    begins = np.cumsum(counts) - counts
    kinds, numbers = np.unique(np.concatenate(samples), return_inverse=True)
    sizes = np.array([len(unit) for unit in units]) / 2**20
    is_left, is_there = np.ones(len(units), bool), np.zeros(len(kinds), np.float32)
    blocks: list[list[int]] = []
    spent = 0.0
    while is_left.any():
        known = np.where(is_left, np.add.reduceat(is_there[numbers], begins) / counts, -1.0)
        unit = int(known.argmax())
        cost = sizes[unit] * (_MS_PER_MIB + _MS_PER_NEW_MIB * (1 - known[unit]))
        if not blocks or spent + cost > milliseconds:
            unit = int(is_left.argmax())
            cost, spent = sizes[unit] * (_MS_PER_MIB + _MS_PER_NEW_MIB), 0.0
            is_there[:] = 0.0
            blocks.append([])
        blocks[-1].append(unit)
        spent += cost
        is_left[unit] = False
        is_there[numbers[begins[unit] : begins[unit] + counts[unit]]] = 1.0
    return blocks


def _samples(unit: bytes) -> np.ndarray:
    """Returns the distinct hashes of a unit's sampled windows. Returns at least one hash, so that every unit, however
    small, can be compared."""
    windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(unit + bytes(8), np.uint8), 8)
    hashes = np.ascontiguousarray(windows).view(np.uint64)[:, 0] * np.uint64(0x9E3779B97F4A7C15)
    hashes ^= hashes >> np.uint64(32)
    found = np.unique(hashes[hashes % np.uint64(_SAMPLED) == 0])
    return found if len(found) else hashes[:1]
