"""Merges partial states once over the ranks of a group, with a temporary workspace, as the engines' functions do."""

from __future__ import annotations

from typing import Any

import torch

from .._launcher.arguments import wrong
from ..errors import ArgumentError
from ._backends import Call, ExchangeBackend
from ._cut import Cut, CutName
from .agreement import agree
from .checks import Expected, first_problem, lengths
from .ranks import Ranks, default_device, meeting_of, ranks_of


def reduce_once(group: Any, partial: torch.Tensor, lse: torch.Tensor, *, cut: CutName, base: str,
                seq_lens: torch.Tensor | None = None, query_start_loc: torch.Tensor | None = None,
                return_lse: bool = False, heads_first: bool = False) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Makes one call of `Reducer.reduce` without a reducer: each call allocates its buffers.

    Ranks of a gloo group first compare shapes, dtypes and errors; other groups compare nothing. The call may be
    captured in a graph; the buffers then belong to the graph's memory. With `heads_first` the result is `[heads,
    tokens, D]`, contiguous.
    """
    problem: Exception | None = _problem(partial, lse, seq_lens, query_start_loc)
    backend = call = None
    try:
        ranks = ranks_of(group, partial.device if isinstance(partial, torch.Tensor) else default_device(group))
    except ArgumentError as error:  # without a group there are no other ranks to inform
        raise problem or error from None
    compares = ranks.name == "gloo"
    if problem is None:
        try:
            made = Cut(cut, ranks.size, partial.shape[1])
            call = _call(ranks, made, partial, lse, seq_lens, query_start_loc, return_lse, heads_first, base)
            tokens, _, head_dim = partial.shape
            backend = ExchangeBackend(ranks, made, None, head_dim=head_dim, wire_dtype=partial.dtype, max_tokens=tokens, device=partial.device)
            if compares:
                backend.verify(call)
        except Exception as error:
            problem = error
    if compares:
        facts = {} if problem else {"partial": f"{list(partial.shape)} of {str(partial.dtype).removeprefix('torch.')}", "base": base}
        agree(*meeting_of(group), facts, problem)
    if problem is not None:
        raise problem
    assert backend is not None and call is not None
    if partial.shape[0]:
        backend.exchange(call)
    return call.out.transpose(0, 1) if heads_first else call.out, call.out_lse


def _problem(partial: Any, lse: Any, seq_lens: Any, query_start_loc: Any) -> ArgumentError | None:
    """Returns the error for the first argument that does not fit, or None if all fit."""
    for name, tensor in (("partial", partial), ("lse", lse)):
        if not isinstance(tensor, torch.Tensor):
            return wrong(name, "a torch.Tensor", type(tensor).__qualname__)
    return first_problem([
        Expected("partial", partial, (None, None, None), (torch.bfloat16, torch.float16, torch.float32), row=True),
        Expected("lse", lse, tuple(partial.shape[:2]), (torch.float32,)),
        *lengths(seq_lens, query_start_loc),
    ], partial.device)


def _call(ranks: Ranks, cut: Cut, partial: torch.Tensor, lse: torch.Tensor, seq_lens: torch.Tensor | None,
          query_start_loc: torch.Tensor | None, return_lse: bool, heads_first: bool, base: str) -> Call:
    """Returns the arguments of the call with newly allocated outputs."""
    rows, columns = cut.owned(ranks.rank, partial.shape[0])
    tokens, heads, head_dim = rows.stop - rows.start, columns.stop - columns.start, partial.shape[2]
    out = partial.new_empty((heads, tokens, head_dim)).transpose(0, 1) if heads_first else partial.new_empty((tokens, heads, head_dim))
    out_lse = lse.new_empty((tokens, heads)) if return_lse else None
    return Call(partial, lse, seq_lens, query_start_loc, out, out_lse, None, base)
