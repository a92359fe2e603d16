"""What all ranks of a group must have in common, compared before rows are sent."""

from __future__ import annotations

import json
from typing import Any

import torch

from ..errors import ArgumentError
from ..ops._wrong import wrong
from ._ranks import Ranks

_BYTES = 1024


def gather_facts(ranks: Ranks, device: torch.device, facts: dict[str, Any]) -> list[dict[str, Any]]:
    """The facts of every rank, in order. Waits for all of them: not legal while a stream is captured."""
    if ranks.size == 1:
        return [facts]
    text = json.dumps(facts).encode()[:_BYTES]
    mine = torch.frombuffer(bytearray(text.ljust(_BYTES)), dtype=torch.uint8).to(device)[None]
    everyone = torch.empty(ranks.size, _BYTES, dtype=torch.uint8, device=device)
    ranks.all_gather(everyone, mine)
    return [json.loads(bytes(row.tolist())) for row in everyone.cpu()]


def agree(ranks: Ranks, device: torch.device, facts: dict[str, Any], problem: ArgumentError | None) -> None:
    """Raises the same ArgumentError on every rank where one has a problem, or where a fact differs from rank 0's.

    Args:
        ranks: the group.
        device: of the group's tensors.
        facts: numbers, strings and booleans by the argument's name.
        problem: what this rank would raise by itself.
    """
    note = None if problem is None else str(problem)[:400]
    everyone = gather_facts(ranks, device, {"problem": note} if note else facts)
    for rank, theirs in enumerate(everyone):
        if "problem" in theirs:
            if problem is not None and rank == ranks.rank:
                raise problem
            raise ArgumentError(f"rank {rank} of {ranks.size}: {theirs['problem']}")
    for rank, theirs in enumerate(everyone):
        for name, value in everyone[0].items():
            if theirs[name] != value:
                raise wrong(name, f"{value}, as rank 0 has", f"{theirs[name]} on rank {rank}")
