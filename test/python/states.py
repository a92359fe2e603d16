"""Partial attention states as test data: ordinary rows, edge cases, and garbage where nothing may be read. Also memory
layouts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numerics import F32, garbage, poison, same_bits

# The kinds of lses. EMPTY_FA2 is an empty row whose lse is +inf. A "faint" row has no weight beside an ordinary one.
ORDINARY, EMPTY, EMPTY_FA2, FAINT, NAN, ZERO = range(6)


@dataclass
class States:
    """K states of n x H rows: v [K, n, H, D], and s [K, n, H] in f32."""

    v: np.ndarray
    s: np.ndarray


def make_states(rng: np.random.Generator, k: int, n: int, heads: int, dim: int, dtype: np.dtype, *,
                kinds: np.ndarray | None = None, faults: bool = True, present: np.ndarray | None = None) -> States:
    """Returns random states. `kinds` [K, n, H] is the kind of each row. If it is None, the kinds are random, and no lse
    is NaN unless `faults` is set.

    Payloads that contribute nothing to a merge are garbage (N5 in docs/Dialect.md). These are the payloads of empty
    rows, of faint rows beside an ordinary one, and of rows for which `present`, bool [K, n, H], is false.
    """
    shape = (k, n, heads)
    there = np.ones(shape, bool) if present is None else present
    if kinds is None:
        weights = [0.5, 0.15, 0.1, 0.12, 0.03 if faults else 0.0, 0.1]
        kinds = rng.choice(6, shape, p=np.array(weights) / sum(weights))
    s = rng.normal(0, 3, shape)
    s = np.select([kinds == EMPTY, kinds == EMPTY_FA2, kinds == FAINT, kinds == NAN, kinds == ZERO],
                  [-np.inf, np.inf, s - 600, np.nan, 0.0], s).astype(np.float32)
    v = rng.normal(0, 1, (*shape, dim)).astype(np.float32).astype(dtype)
    bright = (np.isin(kinds, [ORDINARY, ZERO]) & there).any(axis=0)
    silent = np.isinf(s) | (kinds == FAINT) & bright | ~there
    v = np.where(silent[..., None], garbage(rng, v.shape, dtype), v)
    return States(v, s)


# The memory layouts that `lay_out` can make.
LAYOUTS = ("contiguous", "padded", "transposed", "strided")


def lay_out(array: np.ndarray, layout: str) -> np.ndarray:
    """Copies an array into a larger buffer, whose other elements are poison, or into a contiguous array. If the array
    has three dims or more, the last dim stays contiguous."""
    if layout == "contiguous" or array.ndim < 2:
        return array.copy(order="C")
    lead, rest = array.shape[:-1], array.shape[-1]
    if array.ndim == 2:
        lead, rest = array.shape, 1
    if layout == "padded":  # The array is a slice of the innermost row dim, like lse[:, a:b] and out[:, h0:h1].
        view = poison((*lead[:-1], lead[-1] + 3, rest), array.dtype)[..., 1 : lead[-1] + 1, :]
    elif layout == "transposed":  # The row dims are in reverse order.
        view = poison((*reversed(lead), rest), array.dtype)
        view = view.transpose(*reversed(range(len(lead))), len(lead))
    else:  # The array has every other row of a buffer with longer rows.
        view = poison((lead[0] * 2 + 1, *lead[1:], rest + 5), array.dtype)[1::2, ..., :rest]
    view = view.reshape(array.shape) if array.ndim > 2 else view[..., 0]
    view[...] = array
    return view


def buffer_of(view: np.ndarray) -> np.ndarray:
    """Returns all bytes of the buffer that a laid-out array is a part of."""
    base = view
    while isinstance(base.base, np.ndarray):
        base = base.base
    return base.view(np.uint8).reshape(-1)


def untouched_outside(view: np.ndarray, before: np.ndarray) -> bool:
    """Returns true if the buffer's bytes outside of a laid-out array equal those of `before`, an earlier copy of the
    buffer."""
    after = buffer_of(view)
    mark = np.zeros(after.size, np.uint8)
    offset = view.__array_interface__["data"][0] - after.__array_interface__["data"][0]
    shaped = np.lib.stride_tricks.as_strided(mark[offset:].view(np.uint8), (*view.shape, view.itemsize), (*view.strides, 1))
    shaped[...] = 1
    return bool(np.array_equal(after[mark == 0], before[mark == 0]))


__all__ = ["EMPTY", "EMPTY_FA2", "FAINT", "F32", "LAYOUTS", "NAN", "ORDINARY", "ZERO", "States", "buffer_of", "lay_out",
           "make_states", "same_bits", "untouched_outside"]
