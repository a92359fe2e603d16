"""What the ranks of `ranks.RankPool` do in tests: each function gets the rank's group first, numpy arrays in and out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode

from devices import TorchDevice
from mlafix.distributed import Reducer
from numerics import poison

CPU = TorchDevice("cpu")
_KEPT: dict[str, Reducer] = {}


@dataclass
class Part:
    """A rank's part of a case: its partial state, and which of its rows have keys."""

    partial: np.ndarray
    lse: np.ndarray
    seq_lens: np.ndarray | None = None
    query_start_loc: np.ndarray | None = None

    def tensors(self) -> list[Any]:
        """The arguments of `Reducer.reduce`, laid out in memory as the arrays are."""
        return [None if array is None else CPU.put(array) for array in (self.partial, self.lse, self.seq_lens, self.query_start_loc)]


class EngineGroup:
    """A group as engines have it: its own methods over a process group that nobody sees. `gathers` alone: no all-to-all."""

    def __init__(self, group: Any, gathers: bool) -> None:
        self.rank_in_group, self.world_size = dist.get_rank(group), dist.get_world_size(group)
        self._hidden = group
        if not gathers:
            self.all_to_all_single = self._all_to_all_single

    def all_gather(self, tensor: torch.Tensor, dim: int = 0) -> torch.Tensor:
        assert dim == 0
        parts = [torch.empty_like(tensor) for _ in range(self.world_size)]
        dist.all_gather(parts, tensor, group=self._hidden)
        return torch.cat(parts)

    def _all_to_all_single(self, output: torch.Tensor, tensor: torch.Tensor) -> None:
        dist.all_to_all_single(output, tensor, group=self._hidden)


class Coordinator:
    """An engine's group with torch's process group inside, as vLLM's and SGLang's GroupCoordinator."""

    def __init__(self, group: Any) -> None:
        self.rank_in_group, self.world_size, self.device_group = dist.get_rank(group), dist.get_world_size(group), group


def as_kind(group: Any, kind: str) -> Any:
    """The group as torch's ("torch"), or as one of the engines' objects ("coordinator", "engine", "gathers")."""
    return {"torch": lambda: group, "coordinator": lambda: Coordinator(group), "engine": lambda: EngineGroup(group, False),
            "gathers": lambda: EngineGroup(group, True)}[kind]()


def reduce(group: Any, part: Part, options: dict[str, Any], kind: str = "torch", out_dtype: np.dtype | None = None,
           scale: float | None = None) -> dict[str, Any]:
    """One call of a reducer into poisoned outputs."""
    sink = options.get("sink")
    with_sink = {**options, "sink": None if sink is None else CPU.put(sink)}
    reducer = Reducer(as_kind(group, kind), device="cpu", **with_sink)
    tokens = part.partial.shape[0]
    mine, heads = reducer.owned(tokens)
    shape = (mine.stop - mine.start, heads.stop - heads.start)
    partial, lse, seq_lens, starts = part.tensors()
    before = part.partial.copy(), part.lse.copy()
    out = CPU.put(poison((*shape, part.partial.shape[2]), part.partial.dtype if out_dtype is None else out_dtype))
    out_lse = CPU.put(poison(shape, np.dtype(np.float32)))
    out_scale = None if scale is None else torch.tensor([scale])
    given = reducer.reduce(partial, lse, seq_lens, starts, out, out_lse, out_scale)
    assert given[0] is out and given[1] is out_lse
    untouched = all(CPU.get(now).tobytes() == then.tobytes() for now, then in zip((partial, lse), before))
    return {"out": CPU.get(out), "lse": CPU.get(out_lse), "owned": (mine, heads), "untouched": untouched,
            "backend": reducer.backend, "bytes": (reducer.workspace_bytes, reducer.bytes_in(tokens))}


def reduce_many(group: Any, parts: list[Part], options: dict[str, Any]) -> list[dict[str, Any]]:
    """One reducer, many calls with new outputs each."""
    reducer = Reducer(group, **options)
    results = []
    for part in parts:
        out, lse = reducer.reduce(*part.tensors())
        results.append({"out": CPU.get(out).copy(), "lse": CPU.get(lse).copy(), "owned": reducer.owned(part.partial.shape[0])})
    return results


def two_reducers(group: Any, parts: list[Part], options: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Two reducers of one group, called in turns; results are read when all calls are over."""
    reducers = [Reducer(group, **one) for one in options]
    made = []
    for part in parts:
        for reducer in reducers:
            made.append((reducer.reduce(*part.tensors()), reducer.owned(part.partial.shape[0])))
    return [{"out": CPU.get(out), "lse": CPU.get(lse), "owned": owned} for (out, lse), owned in made]


class Operations(TorchDispatchMode):
    """Names of torch's operations in its scope."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, arguments: tuple[Any, ...] = (), options: Any = None) -> Any:
        self.names.append(str(function))
        return function(*arguments, **(options or {}))


def operations(group: Any, options: dict[str, Any], given: bool) -> list[str]:
    """The operations of torch in a call like one before it, with all outputs given or none."""
    reducer = Reducer(group, **options)
    partial, lse = torch.randn(3, options["heads"], options["head_dim"]).bfloat16(), torch.randn(3, options["heads"])
    out, out_lse = reducer.reduce(partial, lse)
    with Operations() as seen:
        reducer.reduce(partial, lse, **({"out": out, "out_lse": out_lse} if given else {}))
    return seen.names


def construct(group: Any, options: dict[str, Any]) -> str:
    """Makes a reducer; its backend."""
    return Reducer(group, **options).backend


def call(group: Any, options: dict[str, Any], tokens: int, changes: dict[str, Any]) -> list[int]:
    """A call with bf16 zeros; `changes` replaces arguments by tensors made of (shape, dtype name). The shape of the result."""
    key = repr((options, dist.get_world_size(group)))
    if key not in _KEPT:
        _KEPT[key] = Reducer(group, **options)
    heads, dim = options["heads"], options["head_dim"]
    arguments: dict[str, Any] = {"partial": torch.zeros(tokens, heads, dim, dtype=torch.bfloat16), "lse": torch.zeros(tokens, heads)}
    for name, (shape, dtype) in changes.items():
        arguments[name] = torch.zeros(shape, dtype=getattr(torch, dtype))
    return list(_KEPT[key].reduce(**arguments)[0].shape)


def compat(group: Any, kind: str, module: str, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A drop-in on tensors made of arrays, with the group as one of the engines' objects; arrays."""
    import importlib

    function = getattr(importlib.import_module(f"mlafix.compat.{module}"), name)
    tensors = [CPU.put(array) for array in arguments]
    named = {key: CPU.put(value) if isinstance(value, np.ndarray) else value for key, value in options.items()}
    made = function(*tensors, as_kind(group, kind), **named)
    return tuple(CPU.get(array) for array in made) if isinstance(made, tuple) else CPU.get(made)


def flashinfer_reduce(group: Any, partial: np.ndarray, lse: np.ndarray, mode: str, dtype: str) -> np.ndarray:
    """`mlafix.compat.flashinfer.decode_cp_a2a_lse_reduce` of partial [b, h, cp, D]."""
    from mlafix.compat import flashinfer

    batch, heads, ranks, dim = partial.shape
    workspace = flashinfer.decode_cp_a2a_lse_reduce_create_workspace(batch, heads, ranks, dim, dtype, group)
    made = flashinfer.decode_cp_a2a_lse_reduce(CPU.put(partial), CPU.put(lse), workspace, dist.get_rank(group), ranks, mode)
    return CPU.get(made)


def late(group: Any, options: dict[str, Any], seconds: dict[int, float]) -> str:
    """A call that some ranks come late to; "merged", or the error's text."""
    reducer = Reducer(group, **options)
    time.sleep(seconds.get(reducer.rank, 0.0))
    partial = torch.zeros(2, options["heads"], options["head_dim"], dtype=torch.bfloat16)
    try:
        reducer.reduce(partial, torch.zeros(2, options["heads"]))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "merged"


def leave(group: Any, options: dict[str, Any], who: int) -> str:
    """A call that one rank does not come to because its process has ended."""
    import os

    reducer = Reducer(group, **options)
    if reducer.rank == who:
        os._exit(0)
    return late_call(reducer, options)


def late_call(reducer: Reducer, options: dict[str, Any]) -> str:
    """"merged", or the error's text."""
    partial = torch.zeros(2, options["heads"], options["head_dim"], dtype=torch.bfloat16)
    try:
        reducer.reduce(partial, torch.zeros(2, options["heads"]))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "merged"
