"""The work that tests of mistakes give to ranks: calls that are wrong, or that differ from the other ranks' calls. The
functions have the form of those of rank_work.py."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from mlafix.distributed import Reducer
from numerics import poison

HEADS, DIM, MOST = 4, 16, 4


def own_traffic(group: Any, size: int) -> dict[str, Any]:
    """Calls a reducer of two ranks while rank 1 sends a message of its own to rank 0 in the same group. Returns the
    result, and the message that rank 0 received."""
    reducer = Reducer(group, max_tokens=MOST, heads=2, head_dim=DIM, dtype="f32")
    rank = reducer.rank
    theirs = torch.full((size,), 42 if rank else 0, dtype=torch.uint8)
    receives = dist.irecv(theirs, dist.get_global_rank(group, 1), group) if rank == 0 else None
    out, _ = reducer.reduce(torch.full((MOST, 2, DIM), 1.0 + rank), torch.zeros(MOST, 2))
    if receives is None:
        dist.send(theirs, dist.get_global_rank(group, 0), group)
    else:
        receives.wait()
    return {"out": out.numpy(), "theirs": theirs.numpy()}


def mistaken(group: Any, mistake: str, options: dict[str, Any]) -> list[Any]:
    """Makes a call with one mistake, or one that differs from the other ranks' call, and then a correct call. Returns
    the error of the first call, whether it wrote outputs, and whether the second result is right."""
    ranks = dist.get_world_size(group)
    reducer = Reducer(group, max_tokens=MOST, heads=HEADS * ranks, head_dim=DIM, dtype="f32", **options)
    memory = torch.from_numpy(poison((4096,), np.dtype(np.float32))).to(reducer.device)
    before = memory.clone()
    arguments = _arguments(mistake, ranks, memory)
    try:
        reducer.reduce(**arguments)
        error = "none"
    except Exception as found:
        error = f"{type(found).__name__}: {found}"
    written = not torch.equal(memory.view(torch.int32), before.view(torch.int32))
    out, _ = reducer.reduce(**_arguments("", ranks, memory))
    return [error, written, bool((out == 1).all())]


def _arguments(mistake: str, ranks: int, memory: torch.Tensor) -> dict[str, Any]:
    """Returns the arguments of a call with the given mistake. Its outputs lie in `memory`."""
    tokens = int(mistake) if mistake.isdigit() else 2
    rows, lses = memory[: tokens * HEADS * DIM], memory[3000 : 3000 + tokens * HEADS]
    made: dict[str, Any] = {"partial": memory.new_ones(tokens, HEADS * ranks, DIM), "lse": memory.new_zeros(tokens, HEADS * ranks),
                            "out": rows.view(tokens, HEADS, DIM), "out_lse": lses.view(tokens, HEADS)}
    if mistake == "expanded":
        made["out"] = rows[: tokens * DIM].view(tokens, 1, DIM).expand(tokens, HEADS, DIM)
    elif mistake == "followed":
        made["out"] = memory.new_zeros(tokens, HEADS, DIM).requires_grad_()
    elif mistake == "overlapping":
        made["out_lse"] = rows[: tokens * HEADS].view(tokens, HEADS)
    elif mistake == "partial followed":
        made["partial"].requires_grad_()
    elif mistake == "lengths":
        made["seq_lens"] = 5
    elif mistake == "one length":
        made["seq_lens"] = torch.tensor(3)
    elif mistake == "no base":
        made["base"] = ""
    elif mistake == "base":
        made["base"] = "2"
    return made


def drop_in(group: Any, name: str, tokens: int, dtype: str, heads: int) -> str:
    """Calls one of vLLM's drop-ins with zeros. Returns "merged" or the error's text."""
    function = getattr(importlib.import_module("mlafix.compat.vllm"), name)
    try:
        function(torch.zeros(tokens, heads, DIM, dtype=getattr(torch, dtype)), torch.zeros(tokens, heads), group)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "merged"


def not_in_group(group: Any) -> list[str]:
    """Returns the errors of reducers whose group is not a group of this rank."""
    errors = []
    for wrong in (dist.GroupMember.NON_GROUP_MEMBER, "ranks"):
        try:
            Reducer(wrong, max_tokens=1, heads=2, head_dim=DIM)
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")
    return errors


def overflowing(group: Any, tokens: list[int], options: dict[str, Any]) -> list[Any]:
    """Makes calls, some with more tokens than the reducer was created for. Returns, for each call, whether the result
    is right."""
    reducer = Reducer(group, max_tokens=2, heads=HEADS * dist.get_world_size(group), head_dim=DIM, dtype="f32", overflow="exchange",
                      **options)
    results = []
    for count in tokens:
        partial, lse = reducer.inputs(count)
        partial.copy_(torch.arange(count, dtype=torch.float32)[:, None, None].expand(partial.shape) + reducer.rank)
        lse.zero_()
        out, _ = reducer.reduce(partial, lse)
        mine, _ = reducer.owned(count)
        want = torch.arange(count)[mine] + (reducer.size - 1) / 2
        results.append(bool((out.cpu() == want[:, None, None]).all()) and out.shape[0] == len(want))
    return results


def call_of(group: Any, options: dict[str, Any], tokens: int) -> list[int]:
    """Makes a call with zeros, and returns the shape of its result."""
    reducer = Reducer(group, max_tokens=MOST, heads=HEADS, head_dim=DIM, dtype="f32", **options)
    return list(reducer.reduce(torch.zeros(tokens, HEADS, DIM), torch.zeros(tokens, HEADS))[0].shape)


def refused_alone(group: Any, mistake: str) -> str:
    """Rank 0 makes a wrong call without comparing it with the other ranks' calls. Then all ranks make a correct call.
    If the result of the correct call is right, returns "refused" on rank 0 and "merged" on the others."""
    ranks, memory = dist.get_world_size(group), torch.zeros(4096)
    reducer = Reducer(group, max_tokens=MOST, heads=HEADS * ranks, head_dim=DIM, dtype="f32", check_calls=False)
    answer = "merged"
    if reducer.rank == 0:
        wrong = _arguments(mistake, ranks, memory)
        wrong["partial"].fill_(7)
        try:
            reducer.reduce(**wrong)
        except Exception:
            answer = "refused"
    out, _ = reducer.reduce(**_arguments("", ranks, memory))
    return answer if bool((out == 1).all()) else f"expected ones, got {out.unique().tolist()}"


def inputs_of(group: Any, tokens: Any) -> None:
    """Calls `Reducer.inputs` with the given number of tokens, which may be wrong."""
    Reducer(group, max_tokens=MOST, heads=HEADS, head_dim=DIM, dtype="f32").inputs(tokens)
