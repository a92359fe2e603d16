"""One merge over the ranks of a group with a workspace of its own, as the engines' functions allocate theirs."""

from __future__ import annotations

from typing import Any

import torch

from ._backends import Call, exchange
from ._blocks import block_size, blocks_in
from ._checks import Expected, first_problem
from ._cut import Cut, CutName
from ._ranks import Ranks, ranks_of
from ..ops._wrong import wrong


def reduce_once(group: Any, partial: torch.Tensor, lse: torch.Tensor, *, cut: CutName, base: str,
                seq_lens: torch.Tensor | None = None, query_start_loc: torch.Tensor | None = None,
                return_lse: bool = False) -> tuple[torch.Tensor, torch.Tensor | None]:
    """As `Reducer.reduce`, without a reducer: buffers are allocated by each call, and nothing is compared across ranks.

    Legal in capture: the buffers are then part of the graph's memory.
    """
    for name, tensor in (("partial", partial), ("lse", lse)):
        if not isinstance(tensor, torch.Tensor):
            raise wrong(name, "a torch.Tensor", type(tensor).__qualname__)
    ranks = ranks_of(group, partial.device)
    requests = None if seq_lens is None else len(seq_lens)
    integers = (torch.int32, torch.int64)
    problem = first_problem([
        Expected("partial", partial, (None, None, None), (torch.bfloat16, torch.float16, torch.float32), row=True),
        Expected("lse", lse, tuple(partial.shape[:2]), (torch.float32,)),
        Expected("seq_lens", seq_lens, (requests,), integers),
        Expected("query_start_loc", query_start_loc, (None if requests is None else requests + 1,), integers),
    ], partial.device)
    if problem is not None:
        raise problem
    tokens, heads, head_dim = partial.shape
    made = Cut(cut, ranks.size, heads)
    rows, columns = made.owned(ranks.rank, tokens)
    shape = (rows.stop - rows.start, columns.stop - columns.start)
    out = partial.new_empty((*shape, head_dim))
    out_lse = lse.new_empty(shape) if return_lse else None
    if tokens:
        form = (made.block_tokens(tokens), made.block_heads, head_dim, partial.dtype)
        size = block_size(*form).total
        buffers = [torch.empty(count * size, dtype=torch.uint8, device=partial.device) for count in _counts(made, ranks)]
        sent, received = blocks_in(buffers[0], made.blocks, *form), blocks_in(buffers[-1], ranks.size, *form)
        exchange(ranks, made, sent, received, Call(partial, lse, seq_lens, query_start_loc, out, out_lse, None, base), None)
    return out, out_lse


def _counts(cut: Cut, ranks: Ranks) -> list[int]:
    """How many blocks each buffer holds: the one that is sent, and the one that is received where there are other ranks."""
    return [cut.blocks, ranks.size] if ranks.size > 1 else [1]

