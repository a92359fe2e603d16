"""A7 checks a call that is captured in a CUDA graph, and replayed with other values, lengths and block tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from ..cases import Adapter, Case, Fault, Got, make_values
from ..forms import invoke, is_planned, made, planned
from ..judge import compare, pads
from ..oracle import reference
from ..state_forms import arguments_of
from .check import ATTENTION, Check, Groups, base


def copy_into(call: tuple[Any, dict[str, Any]], static: tuple[Any, dict[str, Any]]) -> None:
    """Copies the tensors of a call, given as its arguments and keywords, into those of `static`, which may be larger: an
    element [i, j] becomes the element [i, j] there. Numbers are not copied, since a graph keeps the numbers of its
    capture."""
    pairs = [*zip(call[0], static[0]), *((value, static[1][name]) for name, value in call[1].items() if isinstance(value, torch.Tensor))]
    for source, target in pairs:
        target[tuple(slice(0, size) for size in source.shape)].copy_(source)


def contents(case: Case, adapter: Adapter) -> list[Case]:
    """Returns the cases whose inputs are used for replays of a graph captured with `case`: other values, fewer tokens,
    a sequence without keys, then all tokens again.

    A dense backend without a lengths argument takes lengths from shapes, which a graph keeps. The cases for such a
    backend change only the values.
    """
    n, batch = sum(case.q_lens), len(case.q_lens)
    others = [replace(case, ids=tuple(range(first, first + batch))) for first in (10, 30)]
    if adapter.form == "dense" and "seq_lens_k" not in adapter.takes:
        return others
    fewer = replace(case, ids=tuple(range(20, 20 + batch)), kv_lens=tuple(max(length // 3, 1) for length in case.kv_lens))
    if adapter.form in ("ragged", "ragged_paged"):
        fewer = replace(fewer, q_lens=(1,) * batch, pad_rows=n - batch)
    empty = replace(fewer, kv_lens=(0, *fewer.kv_lens[1:]))
    return [others[0], fewer, empty, others[1]]


def got_of(result: Any, adapter: Adapter) -> Got:
    """Converts what a backend returned to rows of tokens on the CPU."""
    out, lse = result if isinstance(result, (tuple, list)) else (result, None)
    lse = lse if adapter.returns_lse else None
    lse = lse.transpose(-1, -2) if lse is not None and adapter.lse_layout == "hn" else lse
    if adapter.form == "dense":
        out, lse = out.flatten(0, 1), lse if lse is None else lse.flatten(0, 1)
    return Got(out.cpu(), lse if lse is None else lse.cpu(), None, [])


def replays(case: Case, adapter: Adapter) -> list[Fault]:
    """Captures a call, then replays it with other contents in the same memory."""
    static = arguments, given = arguments_of(case, adapter)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            invoke(adapter, arguments, given)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    runs, rest = adapter, given
    if is_planned(adapter.call):  # a plan is made before each replay, outside of the graph
        runs, rest = replace(adapter, call=made(adapter.call).run), planned(adapter, arguments, given)
    try:
        with torch.cuda.graph(graph):
            result = runs.call(*arguments, **rest)
    except Exception as error:
        return [Fault("a call cannot be captured", "a call that a CUDA graph holds", f"{type(error).__name__}: {error}".splitlines()[0], "warning")]
    faults: dict[str, Fault] = {}  # by kind of fault; each fault is from the first replay that has it
    for number, content in enumerate(contents(case, adapter)):
        copy_into(arguments_of(content, adapter), static)
        if is_planned(adapter.call):
            planned(adapter, arguments, given)
        graph.replay()
        torch.cuda.synchronize()
        want = reference(content, adapter, make_values(content, adapter))
        got = got_of(result, adapter)
        found = compare(got, want, adapter) + pads(got, content, adapter, want.out.shape[0])
        for fault in found:
            faults.setdefault(fault.kind, replace(fault, kind=f"replay {number + 1}: {fault.kind}"))
    return list(faults.values())


def captured(adapter: Adapter) -> Groups:
    """Returns the cases to capture. No replay is larger than its captured case."""
    if adapter.form == "dense" and "seq_lens_k" not in adapter.takes:
        return {"other values": [base(adapter, q_lens=(4, 4, 4), kv_lens=(20, 20, 20))]}
    lengths = {"q_lens": (4, 4, 4), "kv_lens": (20, 40, 9)}
    return {"other values, fewer tokens and keys": [base(adapter, **lengths), base(adapter, **lengths, causal=True)]}


def not_captured(adapter: Adapter) -> str:
    if adapter.form not in ATTENTION:
        return "merges take no lengths"
    return "" if adapter.graph_safe else "the adapter says that calls are not captured"


CHECKS = [Check("A7", "replays of a captured call", ("C7",), captured, replays, lacks=not_captured, needs_gpu=True)]
