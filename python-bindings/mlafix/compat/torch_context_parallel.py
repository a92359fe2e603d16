"""The merger of torch's context parallelism: torch.distributed.tensor.experimental._context_parallel. Base e."""

from __future__ import annotations

import math
from typing import Any

from .._launcher.arguments import renames, wrong
from .._launcher.arrays import check_dtype, empty, is_torch, rows_of
from ..errors import ArgumentError
from ..ops import Array
from ..ops.drop_ins import fold_state
from ._views import as_f32


class SDPAMerger:
    """Merges attention over successive blocks of keys (torch's `_SDPAMerger`).

    Differences from torch: a row without keys, in a block or in the accumulated state, contributes nothing (N1, N2, N5;
    NaN in torch); sums are f32 even if `convert_to_f32` is False.

    Args:
        convert_to_f32: not used.
        seq_dim: the index of dim S: 2 for `[B, H, S, D]`, 1 for `[B, S, H, D]`.

    Raises:
        ArgumentError: an argument does not fit.
    """

    def __init__(self, convert_to_f32: bool, seq_dim: int) -> None:
        if seq_dim not in (1, 2):
            raise wrong("seq_dim", "1 or 2", seq_dim)
        self._seq_dim = seq_dim
        self._out: Any = None
        self._lse: Any = None
        self._dtypes: tuple[Any, Any] = (None, None)
        self._has_last_dim = False

    @renames(block="out", block_lse="lse")
    def step(self, out: Array, lse: Array, partial: bool) -> None:
        """Merges a block.

        Args:
            out: `[B, H, S, D]` or `[B, S, H, D]` bf16, f16, f32; with `partial`, S is half of the first block's.
            lse: as `out` without D, or with 1 in its place; bf16, f16 and f64 are copied to f32 first.
            partial: True if the block only covers the second half of the sequence.

        Raises:
            ArgumentError: an argument does not fit; nothing was launched then.
        """
        block: Any = out
        sums: Any = as_f32(lse)
        shape = tuple(rows_of(block, "out", ("B", "H", "S", "D")))
        check_dtype(block, "out")
        has_last_dim = len(getattr(sums, "shape", ())) == 4
        if has_last_dim and sums.shape[3] == 1:
            sums = sums[..., 0]
        if tuple(rows_of(sums, "lse", ("B", "H", "S"))) != shape[:3]:
            raise wrong("lse", f"shape {list(shape[:3])}", list(sums.shape))
        if self._out is None:
            if partial:
                raise wrong("partial", "False for the first block", True)
            self._out, self._lse = empty(block, shape, "f32"), empty(block, shape[:3], "f32")
            self._lse[...] = -math.inf
        fits = tuple((self._half(self._out) if partial else self._out).shape)
        if fits != shape:
            raise wrong("out", f"shape {list(fits)}", list(shape))
        self._dtypes, self._has_last_dim = (block.dtype, getattr(lse, "dtype", None)), has_last_dim
        second_half = (slice(None), slice(self._first_half(), None)) if partial else None
        heads_first = sums if self._seq_dim == 2 else sums.swapaxes(1, 2)
        fold_state(self._tokens_first(self._out), self._tokens_first(self._lse)[..., None], self._tokens_first(block), heads_first, second_half)

    def results(self) -> tuple[Any, Any]:
        """`(out, lse)` of all blocks, in the dtypes and with the dims of the last one. Raises ArgumentError before the
        first block."""
        if self._out is None:
            raise ArgumentError("results(): expected a block from step() first, got none")
        out, lse = (array.to(dtype) if is_torch(array) else array.astype(dtype) for array, dtype in zip((self._out, self._lse), self._dtypes))
        return out, lse[..., None] if self._has_last_dim else lse

    def _half(self, array: Any) -> Any:
        """Returns the second half of the sequence as a view."""
        return array[:, :, self._first_half() :] if self._seq_dim == 2 else array[:, self._first_half() :]

    def _first_half(self) -> int:
        """Returns the number of tokens in the first half. If the number of tokens is odd the first half has one more,
        as in torch's chunks."""
        tokens: int = self._out.shape[self._seq_dim]
        return (tokens + 1) // 2

    def _tokens_first(self, array: Any) -> Any:
        return array.swapaxes(1, 2) if self._seq_dim == 2 else array
