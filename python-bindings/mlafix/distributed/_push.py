"""Exchanges rows by stores to the memory of other ranks. One kernel sends the rows of this rank, waits for the rows of
all ranks, and merges them into the outputs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch

from .._launcher.kernel import Kernel
from .._runtime import PeerGroup, PeerTensors
from ..kernels.push import OF_MANY, OF_TWO
from ._backends import Call, halvings, kernel_for, parts_of
from ._cut import Cut
from .blocks import Blocks, block_size, blocks_in

ExchangeName = Literal["auto", "pull", "push"]

# The sizes in bytes of the smallest and the largest block for which pushing is faster than pulling, by compute
# capability. On (9, 0) pushing was faster for all sizes, measured with two and four H100s and H200s
# (docs/Distributed.md). For more ranks the sizes are a guess.
EVERYTHING, NOTHING = (0, 1 << 62), (1, 0)
PUSHED: dict[tuple[int, int], tuple[int, int]] = {(9, 0): EVERYTHING}


# The size in bytes of the largest block that "auto" pushes if nothing is cut. Such a block is a whole state, and each
# of N ranks holds 2 N of them, so pushing larger blocks would take much memory.
MAX_UNCUT_BYTES = 20 << 20


def pushed_on(device: torch.device, exchange: ExchangeName, cut: str) -> tuple[int, int]:
    """Returns the smallest and largest size, in bytes, of blocks that the ranks push to each other. Blocks of other
    sizes are pulled."""
    if exchange == "auto" and device.type == "cuda":
        least, most = PUSHED.get(torch.cuda.get_device_capability(device), NOTHING)
        return least, min(most, MAX_UNCUT_BYTES) if cut == "none" else most
    return EVERYTHING if exchange == "push" else NOTHING


class PeerBlocks(NamedTuple):
    """Tensors in each rank's memory that a kernel accesses in calls with a given number of tokens."""

    rows: PeerTensors
    lses: PeerTensors
    scales: PeerTensors | None

    @staticmethod
    def of(blocks: list[Blocks], part: Callable[[torch.Tensor], torch.Tensor], group: PeerGroup) -> PeerBlocks:
        """Returns a part of each rank's blocks. `part` takes it from a tensor of `Blocks`."""

        def of_all(tensors: list[torch.Tensor]) -> PeerTensors:
            return PeerTensors([part(tensor) for tensor in tensors], group)

        scales = [one.scales for one in blocks if one.scales is not None]
        return PeerBlocks(of_all([one.rows for one in blocks]), of_all([one.lses for one in blocks]), of_all(scales) if scales else None)


class Push:
    """The launch of a call whose ranks store their blocks into each other's memory.

    Every rank's memory has two halves, each with a block for every rank. Launches alternate between the halves, because
    another rank may still be reading the half of the previous launch.

    Args:
        rank: this rank.
        buffers: the memory of each rank, `bytes_of` bytes, as this rank addresses it.
        group: a group with `slots_of` slots.
        cut, sink, head_dim, wire_dtype, max_tokens: the arguments of `ExchangeBackend` with these names.
    """

    def __init__(self, rank: int, buffers: list[torch.Tensor], group: PeerGroup, cut: Cut, sink: torch.Tensor | None, *,
                 head_dim: int, wire_dtype: torch.dtype, max_tokens: int) -> None:
        self.rank, self.cut, self.sink = rank, cut, sink
        form = (cut.block_tokens(max_tokens), cut.block_heads, head_dim, wire_dtype)
        blocks = [blocks_in(buffer, 2 * cut.ranks, *form) for buffer in buffers]

        def staged(tokens: int) -> PeerBlocks:
            """Returns the blocks to which the ranks store, `[2, ranks, tokens, heads, ...]`."""
            return PeerBlocks.of(blocks, lambda one: one.unflatten(0, (2, cut.ranks))[:, :, : cut.block_tokens(tokens)], group)

        # The cached function is not a method, because a cached method would form a reference cycle. A comment in
        # SymmetricBackend says why symmetric memory must not be part of one.
        self._staged = functools.lru_cache(maxsize=64)(staged)

    @staticmethod
    def bytes_of(cut: Cut, max_tokens: int, head_dim: int, wire_dtype: torch.dtype) -> int:
        """Returns the size in bytes of each rank's memory."""
        return 2 * cut.ranks * block_size(cut.block_tokens(max_tokens), cut.block_heads, head_dim, wire_dtype).total

    @staticmethod
    def slots_of(cut: Cut, max_tokens: int) -> int:
        """Returns the number of slots that launches need. Each thread block has one, and a launch has at most one
        thread block per row."""
        return cut.block_tokens(max_tokens) * cut.block_heads

    def launch(self, call: Call) -> tuple[Kernel, tuple[Any, ...]]:
        """Returns the collective kernel of a call and its arguments."""
        tokens = call.partial.shape[0]
        staged = self._staged(tokens)
        partial, lse = parts_of(self.cut, call)
        if self.cut.name == "none":  # every rank gets the whole state
            partial, lse = (one.expand(self.cut.ranks, *one.shape[1:]) for one in (partial, lse))
        starts = call.query_start_loc
        rows = (partial, lse, call.seq_lens, starts, halvings(starts), self.rank)
        scales = () if staged.scales is None else (staged.scales,)
        steps = (self.cut.block_tokens(tokens),) if self.cut.name == "tokens" else ()
        kernels = OF_TWO if self.cut.ranks == 2 else OF_MANY
        kernel = kernel_for(kernels[self.cut.name, bool(scales)], call.base, self.cut.ranks)
        return kernel, (call.out, call.out_lse, self.sink, call.out_scale, staged.rows, staged.lses, *scales, *rows, *steps)
