"""Moves the rows of a call to the ranks that merge them. Each backend owns its workspace.

The backend in this module packs, exchanges and merges. It works for every group that has collectives. The backend in
_symmetric.py needs ranks that can address each other's memory.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Protocol

import torch

from .. import library
from .._launcher.kernel import Kernel
from ._cut import Cut
from .blocks import FP8, Blocks, block_size, blocks_in
from .ranks import Ranks

# Up to this number of ranks, the merge kernel is compiled for the exact number, and unrolls its loop over the ranks.
MOST_BOUND_RANKS = 8


class Call(NamedTuple):
    """The arguments and outputs of one call of `Reducer.reduce`. All of them have been checked, and there is at least
    one token."""

    partial: torch.Tensor
    lse: torch.Tensor
    seq_lens: torch.Tensor | None
    query_start_loc: torch.Tensor | None
    out: torch.Tensor
    out_lse: torch.Tensor | None
    out_scale: torch.Tensor | None
    base: str


class Backend(Protocol):
    """Computes out and out_lse of a call: the merged state of the rows that this rank owns. States are merged in the
    order of the ranks."""

    name: str
    workspace_bytes: int

    def prepare(self, call: Call) -> None:
        """Compiles the kernels for calls like `call`, and makes the call. A collective that connects the ranks at its
        first use therefore connects them here. All ranks must call this method."""

    def verify(self, call: Call) -> None:
        """Raises the errors that the launches of a call would raise. Sends nothing."""

    def reduce(self, call: Call) -> None: ...

    def inputs(self, tokens: int) -> tuple[torch.Tensor, torch.Tensor] | None: ...

    def check(self) -> None: ...


class ExchangeBackend:
    """Packs rows into blocks, exchanges these in one collective, and merges the received ones. All steps but the
    exchange are kernels of mlafix.

    Args:
        ranks: the transport that moves the blocks.
        cut: decides which rows each rank merges.
        sink: `[heads] f32`, or None.
        head_dim: D of the payloads.
        wire_dtype: the payloads' dtype on the wire: their own, or f8e4m3fn.
        max_tokens: the most tokens of a call.
        device: where the workspace is.
    """

    def __init__(self, ranks: Ranks, cut: Cut, sink: torch.Tensor | None, *, head_dim: int, wire_dtype: torch.dtype,
                 max_tokens: int, device: torch.device) -> None:
        self.name = ranks.name
        self.ranks, self.cut = ranks, cut
        self.head_dim, self.wire_dtype = head_dim, wire_dtype
        _, heads = cut.owned(ranks.rank, max_tokens)
        self.sink = None if sink is None else sink[heads]
        size = block_size(cut.block_tokens(max_tokens), cut.block_heads, head_dim, wire_dtype).total
        self._sent = torch.empty(cut.blocks * size, dtype=torch.uint8, device=device)
        self._received = torch.empty(ranks.size * size, dtype=torch.uint8, device=device) if ranks.size > 1 else self._sent
        self.workspace_bytes = cut.blocks * size + (ranks.size * size if ranks.size > 1 else 0)
        sent, received = self._sent, self._received

        def blocks(tokens: int) -> tuple[Blocks, Blocks]:
            rows = (cut.block_tokens(tokens), cut.block_heads, head_dim, wire_dtype)
            return blocks_in(sent, cut.blocks, *rows), blocks_in(received, ranks.size, *rows)

        # Caches the views for each number of tokens, because creating them takes the host as long as launching both
        # kernels. The cached function is not a method, because a cached method would form a reference cycle: the
        # garbage collector might free the buffers while a graph is captured.
        self._blocks = functools.lru_cache(maxsize=64)(blocks)

    def prepare(self, call: Call) -> None:
        self.reduce(call)

    def verify(self, call: Call) -> None:
        sent, received = self._blocks(call.partial.shape[0])
        for kernel, arguments in (_packing(self.ranks.rank, self.cut, sent, call), _merging(self.ranks.rank, self.cut, received, call, self.sink)):
            kernel.bind(*arguments)

    def reduce(self, call: Call) -> None:
        if _may_be_refused(call, self.sink, is_fp8=self.wire_dtype == FP8):
            self.verify(call)
        self.exchange(call)

    def exchange(self, call: Call) -> None:
        """Packs, exchanges and merges the rows of a call. A group of one rank exchanges nothing."""
        sent, received = self._blocks(call.partial.shape[0])
        pack(self.ranks.rank, self.cut, sent, call)
        if self.ranks.size > 1:
            move = self.ranks.all_gather if self.cut.name == "none" else self.ranks.all_to_all
            move(received.data, sent.data)
        merge(self.ranks.rank, self.cut, received, call, self.sink)

    def inputs(self, tokens: int) -> None:
        """Returns None: the partial state of a call may be anywhere in memory, since it is packed."""

    def check(self) -> None:
        """Does nothing: the collectives raise their own errors."""


def _may_be_refused(call: Call, sink: torch.Tensor | None, *, is_fp8: bool) -> bool:
    """True if the merge kernel may refuse a call's outputs. The kernel accepts contiguous tensors that require no
    gradient and share no memory with each other or with an input."""
    outputs = [tensor for tensor in (call.out, call.out_lse) if tensor is not None]
    if not all(tensor.is_contiguous() and not tensor.requires_grad for tensor in outputs):
        return True
    read = [tensor for tensor in (call.out_scale, sink, call.partial if is_fp8 else None) if tensor is not None]
    spans = [_span(tensor) for tensor in (*outputs, *read)]
    return any(first[0] < second[1] and second[0] < first[1] for at, first in enumerate(spans[: len(outputs)]) for second in spans[at + 1 :])


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """Returns the first address of a tensor and the address behind its last element."""
    begin = tensor.data_ptr()
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())) + 1 if tensor.numel() else 0
    return begin, begin + reach * tensor.itemsize


def merge(rank: int, cut: Cut, received: Blocks, call: Call, sink: torch.Tensor | None) -> None:
    """Merges the blocks of all ranks into the outputs of a call. The last tokens of the blocks may be padding, which is
    skipped."""
    kernel, arguments = _merging(rank, cut, received, call, sink)
    kernel(*arguments)


def _merging(rank: int, cut: Cut, received: Blocks, call: Call, sink: torch.Tensor | None) -> tuple[Kernel, tuple[Any, ...]]:
    owned, ranks = call.out.shape[0], received.rows.shape[0]
    rows, lses = received.rows[:, :owned], received.lses[:, :owned]
    to = (call.out, call.out_lse, sink, call.out_scale)
    if received.scales is None:
        return kernel_for("merge_blocks", call.base, ranks, "r"), (*to, rows, lses)
    more = (received.scales[:, :owned], own_rows(rank, cut, call), rank)
    return kernel_for("merge_blocks_fp8", call.base, ranks, "r"), (*to, rows, lses, *more)


def own_rows(rank: int, cut: Cut, call: Call) -> torch.Tensor | None:
    """Returns this rank's own payloads of the rows that it merges, `[tokens, heads, D]`. They need not be sent.

    Returns None if every rank merges all rows. A rank's own rows are then rounded as on the wire, so that all ranks get
    the same bits.
    """
    tokens, heads = cut.owned(rank, call.partial.shape[0])
    if cut.name == "none":
        return None
    if call.partial.dim() == 4:
        return call.partial[:, rank]
    return call.partial[tokens, heads]


def pack(rank: int, cut: Cut, blocks: Blocks, call: Call) -> None:
    """Copies the partial state of a call into blocks. Rows without keys become the identity. With fp8, the block for
    this rank itself gets lses but no payloads, since the merge takes this rank's payloads from `call` (`own_rows`).
    With cut="none", the only block is for all ranks and gets both."""
    kernel, arguments = _packing(rank, cut, blocks, call)
    kernel(*arguments)


def _packing(rank: int, cut: Cut, blocks: Blocks, call: Call) -> tuple[Kernel, tuple[Any, ...]]:
    partial, lse = parts_of(cut, call)
    token_step = blocks.rows.shape[1] if cut.name == "tokens" else 0
    masks = (call.seq_lens, call.query_start_loc, halvings(call.query_start_loc), token_step)
    if blocks.scales is None:
        return library.kernel("pack_blocks"), (blocks.rows, blocks.lses, partial, lse, *masks)
    own = rank if cut.blocks > 1 else -1
    return library.kernel("pack_blocks_fp8"), (blocks.rows, blocks.lses, blocks.scales, partial, lse, *masks, own, cut.blocks - (own >= 0))


def parts_of(cut: Cut, call: Call) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the partial state of a call as `[parts, tokens, heads, D]` and `[parts, tokens, heads]`. There is a part
    for each rank if heads are cut, else one part."""
    partial, lse = call.partial, call.lse
    if cut.name != "heads":
        return partial[None], lse[None]
    tokens, head_dim = partial.shape[0], partial.shape[-1]
    if partial.dim() == 3:
        partial = partial.view(tokens, cut.ranks, cut.block_heads, head_dim)
        lse = lse.view(tokens, cut.ranks, cut.block_heads)
    return partial.transpose(0, 1), lse.transpose(0, 1)


def halvings(query_start_loc: Any) -> int:
    """Returns how often an interval of requests must be halved until it has one element. Returns 0 if `query_start_loc`
    is None."""
    return 0 if query_start_loc is None else len(query_start_loc).bit_length()


@functools.lru_cache(maxsize=None)
def kernel_for(name: str, base: str, ranks: int, count: str = "ranks") -> Kernel:
    """Returns a kernel of the library for lses with this base. The kernel is bound to the number of ranks, which it
    calls `count`, unless that number is above MOST_BOUND_RANKS."""
    return library.kernel(name).specialize(B=base, **({count: ranks} if ranks <= MOST_BOUND_RANKS else {}))
