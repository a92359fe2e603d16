"""Merges on GPUs that can address each other's memory. One kernel moves the rows and merges them into the outputs: it
reads the rows of all ranks (pull), or stores this rank's rows to the ranks that merge them (push)."""

from __future__ import annotations

import bisect
import functools
import socket
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch

from .. import library
from .._launcher.kernel import Kernel
from .._runtime import GROUP_BYTES, MAX_RANKS, PeerGroup
from ..errors import ArgumentError
from ._backends import Call, halvings, kernel_for, own_rows, pack
from ._cut import Cut
from ._push import PeerBlocks, Push
from .agreement import agree, gather_facts
from .blocks import FP8, Blocks, block_size, blocks_in
from .ranks import CollectiveRanks, Ranks

# The default time, in seconds, that a launch waits for a rank.
DEFAULT_TIMEOUT = 10.0

# The size of a cache line in bytes. Flags and rows use separate lines.
_LINE = 128


class SymmetricMemory:
    """torch's symmetric memory: a buffer on each rank that all ranks of a group can address. Creating it is collective.

    Args:
        ranks: the group; its GPUs are those of one node.
        size: the bytes of each rank's buffer.
        device: the device of this rank.

    Raises:
        RuntimeError: torch cannot connect the GPUs.
    """

    def __init__(self, ranks: CollectiveRanks, size: int, device: torch.device) -> None:
        # Imported only here, because some builds of torch lack this module.
        from torch.distributed import _symmetric_memory as symmetric

        self.own = symmetric.empty(size, dtype=torch.uint8, device=device)
        # Zeroes the buffer before other ranks can write to it.
        self.own.zero_()
        torch.cuda.synchronize(device)
        self.handle = symmetric.rendezvous(self.own, ranks.group)
        self.buffers = [self.handle.get_buffer(rank, (size,), torch.uint8) for rank in range(ranks.size)]
        # Pinned host memory to which a launch writes the rank that did not arrive.
        self.failure = torch.zeros(1, dtype=torch.int64, pin_memory=True)


class SymmetricPlan(NamedTuple):
    """The layout of a rank's symmetric memory. It has three areas, in this order and with these sizes in bytes: `flags`
    of the group, `state` that other ranks read, and `staged` blocks that other ranks store."""

    slots: int
    """The number of the group's slots: at least the number of thread blocks in any launch that pushes."""
    pushed_tokens: int
    """The largest number of tokens in a call that pushes."""
    flags: int
    state: int
    staged: int

    @property
    def total(self) -> int:
        """The size of the whole memory in bytes."""
        return self.flags + self.state + self.staged

    @staticmethod
    def of(cut: Cut, max_tokens: int, head_dim: int, wire_dtype: torch.dtype, pushed: tuple[int, int]) -> SymmetricPlan:
        """Returns the layout for calls that push blocks with sizes within `pushed` (smallest, largest; in bytes) and
        pull other blocks."""
        def size_of(tokens: int) -> int:
            return block_size(cut.block_tokens(tokens), cut.block_heads, head_dim, wire_dtype).total

        least, most = pushed
        largest = size_of(max_tokens)
        pushes, pulls = least <= min(most, largest), least > 0 or most < largest
        # If blocks are pushed, there is room for at least one token, since `prepare` gets a call with one token.
        tokens = max(1, bisect.bisect_right(range(max_tokens + 1), most, key=size_of) - 1) if pushes else 0
        slots = Push.slots_of(cut, tokens) if pushes else 0
        flags = int(GROUP_BYTES) + -(-8 * slots * cut.ranks // _LINE) * _LINE
        state = block_size(max_tokens, cut.heads, head_dim, wire_dtype).total if pulls else 0
        return SymmetricPlan(slots, tokens, flags, state, Push.bytes_of(cut, tokens, head_dim, wire_dtype) if pushes else 0)


class SymmetricBackend:
    """Merges through symmetric memory, in the order of the ranks.

    A call that pulls launches a collective kernel that reads the partial states of all ranks from symmetric memory. If
    this rank's partial state is not in the memory that `inputs` returns, another launch first copies the state there.
    If the state is there and the call has both `seq_lens` and `query_start_loc`, another launch first masks the state's
    lses in place. A call that pushes takes one launch, wherever its partial state is: a collective kernel stores each
    rank's rows to the ranks that merge them (`Push`).

    Args:
        ranks: the group, of at least 2 ranks on one node.
        memory: symmetric memory of at least `SymmetricPlan.total` bytes.
        cut, sink, head_dim, wire_dtype, max_tokens: the arguments of `ExchangeBackend` with these names.
        timeout: how long a launch waits for a rank, in seconds.
        pushed: the smallest and largest size in bytes of blocks that are pushed.
    """

    name = "symmetric"

    def __init__(self, ranks: CollectiveRanks, memory: SymmetricMemory, cut: Cut, sink: torch.Tensor | None, *, head_dim: int,
                 wire_dtype: torch.dtype, max_tokens: int, timeout: float, pushed: tuple[int, int]) -> None:
        self.ranks, self.cut, self.wire_dtype, self.head_dim = ranks, cut, wire_dtype, head_dim
        _, heads = cut.owned(ranks.rank, max_tokens)
        self.sink = None if sink is None else sink[heads]
        self._memory = memory
        self.workspace_bytes = memory.own.numel()
        self._plan, self._pushed = SymmetricPlan.of(cut, max_tokens, head_dim, wire_dtype, pushed), pushed
        self.group = PeerGroup(ranks.rank, [buffer.data_ptr() for buffer in memory.buffers], timeout, memory.failure.data_ptr(),
                               self._plan.slots)
        form = (max_tokens, cut.heads, head_dim, wire_dtype)
        self._states = [_state_in(buffer[self._plan.flags :], *form) for buffer in memory.buffers] if self._plan.state else []
        staged = [buffer[self._plan.flags + self._plan.state :] for buffer in memory.buffers]
        self._push = Push(ranks.rank, staged, self.group, cut, self.sink, head_dim=head_dim, wire_dtype=wire_dtype,
                          max_tokens=self._plan.pushed_tokens) if self._plan.staged else None
        # Caches the views for each number of tokens, because creating them takes the host longer than the launch. The
        # cached function is not a method, because a cached method would form a reference cycle: the garbage collector
        # might free symmetric memory while a graph is captured, and torch would abort the process.
        self._pulled = functools.lru_cache(maxsize=64)(functools.partial(_pull, self._states, self.group, cut, ranks.rank))

    def inputs(self, tokens: int) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Returns arrays `[tokens, heads, D]` and `[tokens, heads] f32` in symmetric memory. Returns None if rows
        travel as fp8 or are pushed."""
        if self.wire_dtype == FP8 or self._pushes(tokens) is not None:
            return None
        own = self._states[self.ranks.rank]
        return own.rows[:tokens], own.lses[:tokens]

    def check(self) -> None:
        """Raises RankError if a rank did not take part in a completed launch."""
        self.group.check()

    def _pushes(self, tokens: int) -> Push | None:
        """Returns the Push for a call of `tokens` tokens, or None if its rows are pulled. All ranks decide alike."""
        size = block_size(self.cut.block_tokens(tokens), self.cut.block_heads, self.head_dim, self.wire_dtype).total
        return self._push if self._pushed[0] <= size <= self._pushed[1] else None

    def reduce(self, call: Call) -> None:
        push = self._pushes(call.partial.shape[0])
        if push is not None:
            kernel, arguments = push.launch(call)
            kernel(*arguments)
            return
        if not self._is_there(call):
            self._copy(call)
        elif call.seq_lens is not None and call.query_start_loc is not None:
            library.kernel("mask_rows_without_keys")(call.lse, call.seq_lens, call.query_start_loc, halvings(call.query_start_loc))
        kernel, arguments = self._merge(call)
        kernel(*arguments)

    def verify(self, call: Call) -> None:
        """Raises the errors that the launch of a call would raise, before a partial state is copied or sent."""
        push = self._pushes(call.partial.shape[0])
        kernel, arguments = self._merge(call) if push is None else push.launch(call)
        kernel.bind(*arguments)

    def prepare(self, call: Call) -> None:
        """Makes all ranks compile and load the kernels for calls like this one before any rank launches. Otherwise a
        kernel might wait on the device for a rank that still compiles."""
        if self._push is not None:
            kernel, arguments = self._push.launch(call)
            kernel.bind(*arguments)
        if self._states:
            self._copy(call)
            kernel, arguments = self._merge(call)
            kernel.bind(*arguments)
        agree(self.ranks, call.partial.device, {}, None)
        self.reduce(call)

    def _merge(self, call: Call) -> tuple[Kernel, tuple[Any, ...]]:
        """Returns the collective kernel that pulls the rows of a call, and its arguments."""
        pulled, size = self._pulled(call.partial.shape[0]), self.ranks.size
        if pulled.scales is None:
            kernel, more = kernel_for("merge_peers", call.base, size), cast(tuple[Any, ...], ())
        else:
            kernel = kernel_for("merge_peers_fp8", call.base, size)
            more = (pulled.scales, own_rows(self.ranks.rank, self.cut, call), self.ranks.rank)
        return kernel, (call.out, call.out_lse, self.sink, call.out_scale, pulled.rows, pulled.lses, *more)

    def _is_there(self, call: Call) -> bool:
        """True if the call's partial state is in the memory that `inputs` returns, and the call has both `seq_lens` and
        `query_start_loc` or neither."""
        own = self._states[self.ranks.rank]
        same = all(
            given.data_ptr() == mine.data_ptr() and given.dtype == mine.dtype and given.shape[1:] == mine.shape[1:] and given.is_contiguous()
            for given, mine in ((call.partial, own.rows), (call.lse, own.lses))
        )
        return same and (call.seq_lens is None) == (call.query_start_loc is None)

    def _copy(self, call: Call) -> None:
        """Copies the partial state of a call to symmetric memory. Rows without keys become the identity."""
        tokens, own = call.partial.shape[0], self._states[self.ranks.rank]

        def part(of: torch.Tensor) -> torch.Tensor:
            rows = of[:tokens]
            if self.cut.name != "heads":
                return rows[None]
            return rows.view(tokens, self.cut.ranks, self.cut.block_heads, *rows.shape[2:]).transpose(0, 1)

        scales = None if own.scales is None else part(own.scales)
        cut = self.cut if self.cut.name == "heads" else Cut("none", self.cut.ranks, self.cut.heads)
        pack(self.ranks.rank, cut, Blocks(own.data, part(own.rows), part(own.lses), scales), call)


def _pull(states: list[Blocks], group: PeerGroup, cut: Cut, rank: int, tokens: int) -> PeerBlocks:
    """Returns the rows that this rank merges, in the states of all ranks."""
    owned = cut.owned(rank, tokens)
    return PeerBlocks.of(states, lambda state: state[owned], group)


def _state_in(buffer: torch.Tensor, tokens: int, heads: int, head_dim: int, wire_dtype: torch.dtype) -> Blocks:
    """Returns the partial state of `[tokens, heads]` rows at the front of a buffer, as tensors."""
    block = blocks_in(buffer, 1, tokens, heads, head_dim, wire_dtype)
    return Blocks(block.data, block.rows[0], block.lses[0], None if block.scales is None else block.scales[0])


def connect(ranks: Ranks, size: int, device: torch.device, *, required: bool) -> SymmetricMemory | None:
    """Allocates symmetric memory for a group. Returns None on every rank if the group cannot have any.

    Args:
        ranks: the group.
        size: the bytes of each rank's buffer.
        device: the device of this rank.
        required: whether a lack of symmetric memory is an error, raised on every rank.

    Raises:
        ArgumentError: `required`, and the group has no symmetric memory.
    """
    memory, reason = None, _why_not(ranks, device)
    if not reason:
        memory, reason = _connect(cast(CollectiveRanks, ranks), size, device)
    if reason and required:
        raise ArgumentError(f'argument "backend": expected a group with symmetric memory for "symmetric", got {reason}')
    return memory


def _connect(ranks: CollectiveRanks, size: int, device: torch.device) -> tuple[SymmetricMemory | None, str]:
    """Returns symmetric memory and "", or None and the reason why there is none. If one rank fails, all ranks return
    None, so that none waits for a rank that failed."""
    facts = gather_facts(ranks, device, {"node": _node(), "capability": list(torch.cuda.get_device_capability(device))})
    nodes, kinds = {fact["node"] for fact in facts}, {tuple(fact["capability"]) for fact in facts}
    if len(nodes) > 1:
        return None, f"ranks on {len(nodes)} nodes"
    # Ranks wait for each other thread block by thread block, so block i must process the same rows on all ranks. The
    # code for another compute capability may distribute the rows in another way.
    if len(kinds) > 1:
        return None, f"GPUs of {len(kinds)} compute capabilities"
    memory, reason = None, ""
    try:
        memory = SymmetricMemory(ranks, size, device)
    except (RuntimeError, ImportError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
    facts = gather_facts(ranks, device, {"reason": reason})
    reason = next((f"on rank {rank}: {fact['reason']}" for rank, fact in enumerate(facts) if fact["reason"]), "")
    return (None, reason) if reason else (memory, "")


def _why_not(ranks: Ranks, device: torch.device) -> str:
    """Returns the reason why a group cannot have symmetric memory, if a rank can tell without asking others. Otherwise
    returns ""."""
    if device.type != "cuda" or not isinstance(ranks, CollectiveRanks):
        return f"tensors on {device.type} and {ranks.name}"
    if not 2 <= ranks.size <= MAX_RANKS:
        return f"{ranks.size} ranks, where 2 to {MAX_RANKS} can be"
    return ""


def _node() -> str:
    """Returns a text that identifies this rank's node: Linux's boot ID, or the host's name if there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return socket.gethostname()
