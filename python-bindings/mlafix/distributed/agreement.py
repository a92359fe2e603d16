"""Compares the properties that must be equal on all ranks of a group, before rows are sent."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import torch

from .._launcher.arguments import wrong
from ..errors import ArgumentError
from .ranks import Ranks

_BYTES = 1024
# Facts that are strings are truncated to the first of these numbers of characters for which all facts fit into _BYTES.
_CUTS = 400, 200, 40


def gather_facts(ranks: Ranks, device: torch.device, facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the facts of every rank, in the order of the ranks. Long texts are truncated. Waits for all ranks, so it
    must not be called while a stream is captured."""
    if ranks.size == 1:
        return [facts]
    mine = torch.frombuffer(bytearray(_encoded(facts)), dtype=torch.uint8).to(device)[None]
    # Uses a bytearray, because torch.empty would allocate a tensor on the host, which `Reducer.reduce` must not do if the
    # caller gives all outputs. If the group has no gloo backend, `.to` allocates tensors on the device.
    everyone = torch.frombuffer(bytearray(ranks.size * _BYTES), dtype=torch.uint8).view(ranks.size, _BYTES).to(device)
    ranks.all_gather(everyone, mine)
    texts = everyone.cpu().numpy().tobytes()
    return [json.loads(texts[at : at + _BYTES]) for at in range(0, len(texts), _BYTES)]


def _encoded(facts: dict[str, Any]) -> bytes:
    """Returns facts as JSON that is padded to `_BYTES` bytes."""
    for most in _CUTS:
        cut = {name: fact[:most] if isinstance(fact, str) else fact for name, fact in facts.items()}
        text = json.dumps(cut, ensure_ascii=False).encode(errors="replace")
        if len(text) <= _BYTES:
            return text.ljust(_BYTES)
    raise AssertionError(f"expected at most {_BYTES} bytes of arguments, as JSON, to compare between ranks, got {len(text)}")


def agree(ranks: Ranks, device: torch.device, facts: dict[str, Any], problem: Exception | None) -> None:
    """Raises an error on every rank if one rank has a problem, or if a fact differs from rank 0's.

    A rank with a problem raises that problem. All other ranks raise an ArgumentError with the message of the first rank
    that has a problem.

    Args:
        ranks: the group.
        device: the device of the group's tensors.
        facts: numbers, strings and booleans, by argument name.
        problem: the error that this rank raises after informing the others.
    """
    everyone = gather_facts(ranks, device, facts if problem is None else {"problem": str(problem) or type(problem).__qualname__})
    if problem is not None:
        raise problem
    for rank, theirs in enumerate(everyone):
        if "problem" in theirs:
            raise ArgumentError(f"rank {rank} of {ranks.size}: {theirs['problem']}")
    for rank, theirs in enumerate(everyone):
        for name, value in everyone[0].items():
            if theirs[name] != value:
                raise wrong(name, f"{value}, as rank 0 has", f"{theirs[name]} on rank {rank}")


@contextlib.contextmanager
def agreeing(ranks: Ranks, device: torch.device, facts: dict[str, Any]) -> Iterator[None]:
    """Calls `agree` at the end of a `with` block. An ArgumentError that the block raises is this rank's problem. The
    block may add facts."""
    problem: ArgumentError | None = None
    try:
        yield
    except ArgumentError as error:
        problem = error  # raised after the other ranks have been told
    agree(ranks, device, facts, problem)
