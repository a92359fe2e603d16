"""The work that tests give to the ranks of `ranks.RankPool`. The first argument of each function is the rank's group;
arrays are numpy arrays."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode

from devices import TorchDevice
from mlafix import ops
from mlafix.distributed import Reducer
from numerics import poison

HOME = TorchDevice("cpu")
"""The device of this rank's tensors, which `live_on` changes."""

_KEPT: dict[str, Reducer] = {}


def live_on(where: str) -> None:
    """Sets the device of this rank's tensors."""
    global HOME
    HOME = TorchDevice(where)


@dataclass
class Part:
    """A rank's part of a case: its partial state, and the lengths that tell which rows have keys."""

    partial: np.ndarray
    lse: np.ndarray
    seq_lens: np.ndarray | None = None
    query_start_loc: np.ndarray | None = None

    def tensors(self) -> list[Any]:
        """Returns the arguments of `Reducer.reduce`. Tensors have the strides of the arrays."""
        return [None if array is None else HOME.put(array) for array in (self.partial, self.lse, self.seq_lens, self.query_start_loc)]


class EngineGroup:
    """A group like those of engines, with its own methods over a hidden process group. If `gathers`, it has no
    all-to-all."""

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
    """A group of an engine that contains torch's process group, like GroupCoordinator of vLLM and SGLang."""

    def __init__(self, group: Any) -> None:
        self.rank_in_group, self.world_size, self.device_group = dist.get_rank(group), dist.get_world_size(group), group


def as_kind(group: Any, kind: str) -> Any:
    """Returns the group itself ("torch"), or wraps it in an engine's object ("coordinator", "engine", "gathers")."""
    return {"torch": lambda: group, "coordinator": lambda: Coordinator(group), "engine": lambda: EngineGroup(group, False),
            "gathers": lambda: EngineGroup(group, True)}[kind]()


def reduce(group: Any, part: Part, options: dict[str, Any], kind: str = "torch", out_dtype: np.dtype | None = None,
           scale: float | None = None, base: str | None = None) -> dict[str, Any]:
    """Makes a reducer and one call with poisoned outputs. Returns the outputs, and facts about the reducer."""
    sink = options.get("sink")
    with_sink = {**options, "sink": None if sink is None else HOME.put(sink)}
    reducer = Reducer(as_kind(group, kind), device=HOME.where, **with_sink)
    tokens = part.partial.shape[0]
    mine, heads = reducer.owned(tokens)
    shape = (mine.stop - mine.start, heads.stop - heads.start)
    partial, lse, seq_lens, starts = part.tensors()
    before = part.partial.copy(), part.lse.copy()
    out = HOME.put(poison((*shape, part.partial.shape[2]), part.partial.dtype if out_dtype is None else out_dtype))
    out_lse = HOME.put(poison(shape, np.dtype(np.float32)))
    out_format = None if scale is None else ops.Fp8(torch.tensor([scale], device=HOME.where))
    given = reducer.reduce(partial, lse, seq_lens, starts, out, out_lse, out_format, base=base)
    assert given[0] is out and given[1] is out_lse
    untouched = all(HOME.get(now).tobytes() == then.tobytes() for now, then in zip((partial, lse), before))
    return {"out": HOME.get(out), "lse": HOME.get(out_lse), "owned": (mine, heads), "untouched": untouched,
            "backend": reducer.backend, "bytes": (reducer.workspace_bytes, reducer.bytes_in(tokens))}


def reduce_many(group: Any, parts: list[Part], options: dict[str, Any]) -> list[dict[str, Any]]:
    """Makes a call of one reducer for each part, with new outputs each time."""
    reducer = Reducer(group, **options)
    results = []
    for part in parts:
        out, lse = reducer.reduce(*part.tensors())
        results.append({"out": HOME.get(out).copy(), "lse": HOME.get(lse).copy(), "owned": reducer.owned(part.partial.shape[0])})
    return results


def two_reducers(group: Any, parts: list[Part], options: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Calls two reducers of one group alternately. Reads the results only after all calls."""
    reducers = [Reducer(group, **one) for one in options]
    made = []
    for part in parts:
        for reducer in reducers:
            made.append((reducer.reduce(*part.tensors()), reducer.owned(part.partial.shape[0])))
    return [{"out": HOME.get(out), "lse": HOME.get(lse), "owned": owned} for (out, lse), owned in made]


class Operations(TorchDispatchMode):
    """A mode that records the names of torch's operations."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, arguments: tuple[Any, ...] = (), options: Any = None) -> Any:
        self.names.append(str(function))
        return function(*arguments, **(options or {}))


def operations(group: Any, options: dict[str, Any], given: bool) -> list[str]:
    """Returns torch's operations in the second call of a reducer. If `given`, all outputs are passed to that call, else
    none are."""
    reducer = Reducer(group, **options)
    partial, lse = torch.randn(3, options["heads"], options["head_dim"]).bfloat16(), torch.randn(3, options["heads"])
    out, out_lse = reducer.reduce(partial, lse)
    with Operations() as seen:
        reducer.reduce(partial, lse, **({"out": out, "out_lse": out_lse} if given else {}))
    return seen.names


def in_modes(group: Any, part: Part, options: dict[str, Any], made: bool, called: bool) -> dict[str, Any]:
    """Makes a reducer, in inference mode if `made`, and calls it, in inference mode if `called`. Then calls it once
    more, outside inference mode, and returns the results of this second call."""
    with torch.inference_mode(made):
        reducer = Reducer(group, **options)
    with torch.inference_mode(called):
        out, lse = reducer.reduce(*part.tensors())
    out, lse = reducer.reduce(*part.tensors())
    return {"out": HOME.get(out), "lse": HOME.get(lse), "owned": reducer.owned(part.partial.shape[0])}


def construct(group: Any, options: dict[str, Any]) -> str:
    """Makes a reducer, and returns its backend."""
    return Reducer(group, **options).backend


def call(group: Any, options: dict[str, Any], tokens: int, changes: dict[str, Any]) -> list[int]:
    """Makes a call with bf16 zeros, and returns the shape of its result. `changes` replaces arguments, or the scale of
    a format, by tensors of a given (shape, dtype name, device)."""
    key = repr((options, dist.get_world_size(group)))
    if key not in _KEPT:
        _KEPT[key] = Reducer(group, **options)
    heads, dim = options["heads"], options["head_dim"]
    arguments: dict[str, Any] = {"partial": torch.zeros(tokens, heads, dim, dtype=torch.bfloat16), "lse": torch.zeros(tokens, heads)}
    for name, (shape, dtype, *device) in changes.items():
        made = torch.zeros(shape, dtype=getattr(torch, dtype), device=device[0] if device else None)
        arguments[name] = ops.Fp8(made) if name == "out_format" else made
    return list(_KEPT[key].reduce(**arguments)[0].shape)


def late(group: Any, options: dict[str, Any], seconds: dict[int, float]) -> str:
    """Makes a call to which some ranks come late. Returns "merged" or the error's text."""
    reducer = Reducer(group, **options)
    time.sleep(seconds.get(reducer.rank, 0.0))
    partial = torch.zeros(2, options["heads"], options["head_dim"], dtype=torch.bfloat16)
    try:
        reducer.reduce(partial, torch.zeros(2, options["heads"]))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "merged"


def leave(group: Any, options: dict[str, Any], who: int) -> str:
    """Makes a call in which one rank is missing, since its process has ended."""
    import os

    reducer = Reducer(group, device=HOME.where, **options)
    if reducer.rank == who:
        time.sleep(0.5)  # Other ranks may still read what this rank sent them in the constructor.
        os._exit(0)
    return late_call(reducer, options)


def late_call(reducer: Reducer, options: dict[str, Any]) -> str:
    """Makes one call. Returns "merged" or the error's text."""
    partial = torch.zeros(2, options["heads"], options["head_dim"], dtype=torch.bfloat16, device=HOME.where)
    try:
        reducer.reduce(partial, torch.zeros(2, options["heads"], device=HOME.where))
        if partial.is_cuda:
            torch.cuda.synchronize()
        reducer.check()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "merged"


def replays(group: Any, rounds: list[list[Part]], options: list[dict[str, Any]], times: int) -> list[list[dict[str, Any]]]:
    """Captures a call of each reducer in one CUDA graph, and replays it `times` times for each round of inputs. Returns
    the last results of each round.

    A round has a part for each reducer. The parts have the same sizes in all rounds.
    """
    reducers = [Reducer(group, device=HOME.where, **one) for one in options]
    inputs = [part.tensors() for part in rounds[0]]
    outputs = [reducer.reduce(*tensors) for reducer, tensors in zip(reducers, inputs)]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    # NCCL's watchdog queries the driver from its own thread during the capture, which this mode allows.
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for reducer, tensors, (out, lse) in zip(reducers, inputs, outputs):
            reducer.reduce(*tensors, out, lse)
    owned = [reducer.owned(part.partial.shape[0]) for reducer, part in zip(reducers, rounds[0])]
    del reducers  # The graph alone keeps the reducers' workspaces alive from here on.
    results = []
    for parts in rounds:
        for tensors, part in zip(inputs, parts):
            for tensor, array in zip(tensors, (part.partial, part.lse, part.seq_lens, part.query_start_loc)):
                if tensor is not None:
                    HOME.write(tensor, array)
        for _ in range(times):
            for out, lse in outputs:
                out.fill_(float("nan"))
                lse.fill_(float("nan"))
            graph.replay()
        torch.cuda.synchronize()
        results.append([{"out": HOME.get(out), "lse": HOME.get(lse), "owned": one} for (out, lse), one in zip(outputs, owned)])
    return results


def two_streams(group: Any, parts: list[Part], options: list[dict[str, Any]], sleeps: tuple[int, int] = (0, 0),
                captured: bool = False) -> list[dict[str, Any]]:
    """Calls two reducers of one group alternately, each in its own stream, without waiting between calls.

    Args:
        sleeps: the cycles that this rank's device idles before each call, for each stream.
        captured: true if the calls are captured in a graph, which is replayed three times.
    """
    reducers = [Reducer(group, device=HOME.where, **one) for one in options]
    streams = [torch.cuda.Stream() for _ in reducers]
    inputs = [part.tensors() for part in parts]
    torch.cuda.synchronize()
    made = []

    def call_all() -> None:
        begin = torch.cuda.current_stream()
        for stream in streams:
            stream.wait_stream(begin)
        for part, tensors in zip(parts, inputs):
            for reducer, stream, cycles in zip(reducers, streams, sleeps):
                with torch.cuda.stream(stream):
                    if cycles:
                        torch.cuda._sleep(cycles)
                    made.append((reducer.reduce(*tensors), reducer.owned(part.partial.shape[0])))
        for stream in streams:
            begin.wait_stream(stream)

    graph = torch.cuda.CUDAGraph() if captured else None
    if graph is None:
        call_all()
    else:
        # NCCL's watchdog queries the driver from its own thread during the capture, which this mode allows.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            call_all()
        for _ in range(3):
            graph.replay()
    torch.cuda.synchronize()
    for reducer in reducers:
        reducer.check()
    return [{"out": HOME.get(out), "lse": HOME.get(lse), "owned": owned} for (out, lse), owned in made]


def from_inputs(group: Any, parts: list[Part], options: dict[str, Any], sleeps: list[int]) -> list[dict[str, Any]]:
    """Makes calls whose partial states are written to `Reducer.inputs` on the device, without waiting between calls.

    Args:
        sleeps: the cycles that this rank's device idles before it writes the state, for each call.
    """
    reducer = Reducer(group, device=HOME.where, **options)
    tensors = [part.tensors() for part in parts]
    torch.cuda.synchronize()
    made = []
    for (partial, lse, *masks), cycles in zip(tensors, sleeps):
        torch.cuda._sleep(cycles)
        ours, our_lse = reducer.inputs(partial.shape[0])
        ours.copy_(partial)
        our_lse.copy_(lse)
        made.append((reducer.reduce(ours, our_lse, *masks), reducer.owned(partial.shape[0])))
        # The call is launched, so its inputs may be overwritten at once.
        ours.fill_(float("nan"))
        our_lse.fill_(float("nan"))
    torch.cuda.synchronize()
    reducer.check()
    return [{"out": HOME.get(out), "lse": HOME.get(lse), "owned": owned} for (out, lse), owned in made]


def in_turns(group: Any, parts: list[Part], options: dict[str, Any], most: int, pushes: bool) -> list[dict[str, Any]]:
    """Makes calls of one reducer without waiting between them. If `pushes`, calls of up to `most` tokens are pushed and
    others pulled, else the reverse."""
    from mlafix.distributed import _push
    from mlafix.distributed.blocks import block_size
    from mlafix.distributed._cut import Cut

    cut = Cut(options["cut"], dist.get_world_size(group), options["heads"])
    size = block_size(cut.block_tokens(most), cut.block_heads, options["head_dim"], torch.bfloat16).total
    device = torch.cuda.get_device_capability(HOME.where)
    was = _push.PUSHED.copy()
    _push.PUSHED[device] = (0, size) if pushes else (size + 1, 1 << 40)
    try:
        reducer = Reducer(group, device=HOME.where, **options)
    finally:
        _push.PUSHED.clear()
        _push.PUSHED.update(was)
    tensors = [part.tensors() for part in parts]
    ways = {reducer._backend._pushes(part.partial.shape[0]) is not None for part in parts}  # type: ignore[attr-defined]
    assert ways == {True, False}, ways
    torch.cuda.synchronize()
    made = [(reducer.reduce(*one), reducer.owned(one[0].shape[0])) for one in tensors]
    torch.cuda.synchronize()
    reducer.check()
    return [{"out": HOME.get(out), "lse": HOME.get(lse), "owned": owned} for (out, lse), owned in made]


def missed(group: Any, options: dict[str, Any], who: int, seconds: float) -> dict[str, Any]:
    """Makes a call to which rank `who` comes `seconds` late, then a call of a new reducer."""
    reducer = Reducer(group, device=HOME.where, **options)
    partial = torch.ones(4, options["heads"], options["head_dim"], dtype=torch.bfloat16, device=HOME.where)
    lse = torch.zeros(4, options["heads"], device=HOME.where)
    if reducer.rank == who:
        time.sleep(seconds)
    out, _ = reducer.reduce(partial, lse)
    torch.cuda.synchronize()
    errors = []
    for call in (reducer.check, lambda: reducer.reduce(partial, lse)):
        try:
            call()
            errors.append("none")
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")
    again, _ = Reducer(group, device=HOME.where, **options).reduce(partial, lse)
    return {"marked": bool(out.isnan().all()), "errors": errors, "again": HOME.get(again)}


def local_memory(group: Any, options: dict[str, Any]) -> list[int]:
    """Binds a kernel that prefetches from the memory of each rank. Returns, for each rank, 1 if that memory is on this
    rank's own device."""
    from mlafix.kernels.ranks import merge_blocks

    reducer = Reducer(group, device=HOME.where, **options)
    answers = []
    for state in reducer._backend._states:  # type: ignore[attr-defined]
        out = torch.empty(state.rows.shape, dtype=state.rows.dtype, device=HOME.where)
        bound = merge_blocks.specialize(B="e", r=1).bind(out, None, None, None, state.rows[None], state.lses[None])
        answers.append(bound.launch_info["slots"][-1])
        bound()
    torch.cuda.synchronize()
    return answers
