"""Gathers queries and latent KV from the ranks of decode context parallelism before attention, as vLLM does.

torch is imported only when a workspace, which holds tensors, is created.
"""

from __future__ import annotations

from typing import Any

from .._launcher.arguments import check_integer, wrong
from .._launcher.arrays import torch_dtype
from ..ops import Array
from ._groups import current_ubatch


class _Workspace:
    """A workspace to gather rows from the ranks of a group. All ranks pass the same parameters."""

    def __init__(self, group: Any, device: Any, dtype: Any, num_ubatches: int, sizes: dict[str, int]) -> None:
        import torch

        from ..distributed.agreement import agreeing
        from ..distributed.checks import check_sizes
        from ..distributed.ranks import meeting_of, ranks_of

        self.group, self.num_ubatches = group, num_ubatches
        self.device = torch.device(device)
        facts: dict[str, Any] = {**sizes, "num_ubatches": num_ubatches}
        with agreeing(*meeting_of(group, self.device), facts):
            self.dtype = _dtype_of(dtype)
            check_sizes(**facts)
            facts["dtype"] = str(self.dtype)
        self._ranks = ranks_of(group, self.device)
        self.rank, self.world_size = self._ranks.rank, self._ranks.size

    def _check(self, array: Any, name: str, shape: tuple[int, ...]) -> None:
        if not hasattr(type(array), "__torch_function__"):
            raise wrong(name, "a torch.Tensor", type(array).__qualname__)
        if array.ndim != len(shape):
            raise wrong(name, f"{len(shape)} dims [{', '.join(map(str, ('T', *shape[1:])))}]", array.ndim)
        if tuple(array.shape) != shape:
            raise wrong(name, f"shape {list(shape)}", list(array.shape))
        if array.dtype != self.dtype:
            raise wrong(name, f"dtype {self.dtype}", array.dtype)
        if array.device.type != self.device.type or self.device.index not in (None, array.device.index or 0):
            raise wrong(name, f"a tensor on {self.device}", f"one on {array.device}")
        if array.requires_grad:
            raise wrong(name, "a tensor that autograd does not follow", "one that requires grad")

    def _gathered(self, received: Any, sent: Any) -> None:
        """Exchanges the bytes of all ranks, so that `received` holds them in the order of the ranks."""
        import torch

        everyone, mine = received.view(self.world_size, -1), sent.contiguous().view(1, -1)
        self._ranks.all_gather(everyone.view(torch.uint8), mine.view(torch.uint8))


def _dtype_of(dtype: Any) -> Any:
    """Returns the torch dtype for a torch dtype or for mlafix's name of a dtype. Raises ArgumentError for any other
    value."""
    import torch

    if isinstance(dtype, torch.dtype):
        return dtype
    try:
        return torch_dtype(dtype)
    except (KeyError, TypeError):
        raise wrong("dtype", "a torch.dtype or a name like \"bf16\"", repr(dtype)) from None


class DirectDCPQGatherWorkspace(_Workspace):
    """Gathers the queries of all ranks into a permanent buffer, with the heads in the order of the ranks.

    Differences from vLLM: an all-gather of the group (NCCL, gloo or an engine's own) moves the rows. It needs no NVLS
    and works across nodes. A second launch copies the received rows to their heads. Any dtype and any sizes are legal,
    and so is one rank. The result of a call is valid until the next call of its micro-batch.

    Args:
        group: a process group of torch's, or any other group that `mlafix.distributed.Reducer` takes.
        device: the device of the tensors.
        max_num_tokens: the maximum number of tokens per call.
        heads_per_rank: heads of a rank's query.
        head_dim: D.
        dtype: of the queries.
        num_ubatches: the number of micro-batches, at least 1. A call uses the buffer of the micro-batch that vLLM's
            worker is processing, or the first buffer without vLLM.
        padded_num_heads: the capacity of the buffer in heads per token. None: the heads of all ranks.

    Raises:
        ArgumentError: an argument does not fit, or differs between ranks.
    """

    def __init__(self, group: Any, device: Any, max_num_tokens: int, heads_per_rank: int, head_dim: int, dtype: Any = "bf16",
                 num_ubatches: int = 1, padded_num_heads: int | None = None) -> None:
        import torch

        super().__init__(group, device, dtype, num_ubatches, dict(max_num_tokens=max_num_tokens, heads_per_rank=heads_per_rank, head_dim=head_dim))
        self.max_num_tokens, self.heads_per_rank, self.head_dim = max_num_tokens, heads_per_rank, head_dim
        self.gathered_num_heads = heads_per_rank * self.world_size
        self.padded_num_heads = self.gathered_num_heads if padded_num_heads is None else padded_num_heads
        check_integer("padded_num_heads", self.padded_num_heads)
        if self.padded_num_heads < self.gathered_num_heads:
            raise wrong("padded_num_heads", f"at least {self.gathered_num_heads}, the heads of all ranks", padded_num_heads)
        made = dict(dtype=self.dtype, device=self.device)
        self.final_query = torch.zeros((num_ubatches, max_num_tokens * self.padded_num_heads * head_dim), **made)  # type: ignore[arg-type]
        self._received = torch.empty((num_ubatches, max_num_tokens * self.gathered_num_heads * head_dim), **made)  # type: ignore[arg-type]

    def gather(self, local_query: Array) -> Any:
        """Gathers `[T, heads_per_rank, D]` of each rank as `[T, ranks * heads_per_rank, D]`, a contiguous view of the buffer.

        All ranks must pass the same number of tokens. Raises ArgumentError, before anything is sent, for a query that
        does not fit and for a micro-batch past `num_ubatches`.
        """
        query: Any = local_query
        tokens = query.shape[0] if getattr(query, "ndim", 0) == 3 else 0
        self._check(query, "local_query", (tokens, self.heads_per_rank, self.head_dim))
        if tokens > self.max_num_tokens:
            raise wrong("local_query", f"at most the workspace's {self.max_num_tokens} tokens", tokens)
        at = current_ubatch(self.num_ubatches)
        size = tokens * self.gathered_num_heads * self.head_dim
        received, gathered = self._received[at][:size], self.final_query[at][:size]
        shape = self.world_size, tokens, self.heads_per_rank, self.head_dim
        if tokens:
            self._gathered(received, query)
            gathered.view(tokens, *shape[:1], *shape[2:]).copy_(received.view(shape).transpose(0, 1))
        return gathered.view(tokens, self.gathered_num_heads, self.head_dim)


class DirectDCPKVGatherWorkspace(_Workspace):
    """Gathers the rows of latent KV of all ranks into the caller's tensor, in the order of the ranks.

    Differences from vLLM: an all-gather of the group writes directly to the caller's tensor. It needs no NVLS and no
    buffer. Any dtype is legal.

    Args:
        group, device: see `DirectDCPQGatherWorkspace`.
        max_gathered_tokens: the maximum number of rows of all ranks together.
        token_dim: elements of a row.
        dtype: of the rows.
        num_ubatches: the number of micro-batches, at least 1. Not used: only vLLM has a buffer for each.

    Raises:
        ArgumentError: an argument does not fit, or differs between ranks.
    """

    def __init__(self, group: Any, device: Any, max_gathered_tokens: int, token_dim: int, dtype: Any = "bf16", num_ubatches: int = 1) -> None:
        super().__init__(group, device, dtype, num_ubatches, dict(max_gathered_tokens=max_gathered_tokens, token_dim=token_dim))
        self.max_gathered_tokens, self.token_dim = max_gathered_tokens, token_dim

    def gather(self, gathered_kv: Array, local_kv: Array) -> None:
        """Gathers local_kv `[T, token_dim]` of all ranks, in order, into gathered_kv `[ranks * T, token_dim]`, contiguous.

        All ranks must pass the same number of rows. Raises ArgumentError, before anything is sent, for tensors that do
        not fit.
        """
        local: Any = local_kv
        gathered: Any = gathered_kv
        tokens = local.shape[0] if getattr(local, "ndim", 0) == 2 else 0
        self._check(local, "local_kv", (tokens, self.token_dim))
        self._check(gathered, "gathered_kv", (tokens * self.world_size, self.token_dim))
        if tokens * self.world_size > self.max_gathered_tokens:
            raise wrong("gathered_kv", f"at most the workspace's {self.max_gathered_tokens} rows", tokens * self.world_size)
        if not gathered.is_contiguous():
            raise wrong("gathered_kv", "contiguous memory", "a tensor with gaps")
        if tokens:
            self._gathered(gathered, local)
