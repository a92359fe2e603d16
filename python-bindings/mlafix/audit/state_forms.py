"""Calls merges of partial states, in one process and over ranks.

This module has only plain functions, because the scripts that an audit writes for its findings (bundle.py) contain the
source text of these functions.
"""

from __future__ import annotations

import math
import os
import signal
import tempfile
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import torch

from .cases import Adapter, Fault, Got, StateCase, draw, make_values
from .forms import FORMS, Memory, filled, finish, poisoned_memory
from .judge import natural, unwritten, written_to, wrong_rows
from .oracle import UNIT, Want, merged


def make_states(case: StateCase, adapter: Adapter) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns payloads [K, n, H, D] in the adapter's dtype and lses [K, n, H] f32 in its base."""
    begin, end = case.first, case.first + case.rows
    outs = torch.stack([draw((end, case.heads, case.dim), 100 + part)[begin:] for part in range(case.parts)])
    lses = torch.stack([draw((end, case.heads), 200 + part)[begin:] for part in range(case.parts)]) * case.magnitude + case.shift
    outs, lses = outs.to(getattr(torch, adapter.dtype)), lses.float()
    for part, row in case.empty:
        outs[part, row], lses[part, row] = filled(case.payload), case.empty_lse
    for part, row in case.nan_lse:
        lses[part, row] = math.nan
    return outs, lses


def call_merge(case: StateCase, adapter: Adapter, outs: torch.Tensor, lses: torch.Tensor) -> Got:
    """Calls merge(a, a_lse, b, b_lse): a and b are [n, H, D], their lses [n, H] or [H, n]."""
    memory, dtype = Memory(case, adapter), getattr(torch, adapter.dtype)
    in_place = {"in place": 0, "in place 2": 1}.get(case.layout)
    arguments = []
    for part in range(2):
        rows = memory.rows(tuple(outs[part].shape), dtype, 0.0).copy_(outs[part])
        shape = tuple(lses[part].shape) if adapter.lse_layout == "nh" else tuple(reversed(lses[part].shape))
        lse = memory.rows(shape, torch.float32, 0.0)
        lse.copy_(lses[part] if adapter.lse_layout == "nh" else lses[part].T)
        arguments += [rows, lse]
        if part != in_place:
            memory.watch(f"input {part}", rows)
            memory.watch(f"lse of input {part}", lse)
    given = memory.outputs(tuple(outs[0].shape), tuple(arguments[1].shape))
    if in_place is not None:
        given = {name: tensor for name, tensor in zip(("out", "lse"), arguments[2 * in_place :]) if name in adapter.takes}
    return finish(adapter, memory, arguments, given)


def call_reduce(case: StateCase, adapter: Adapter, outs: torch.Tensor, lses: torch.Tensor) -> Got:
    """Calls reduce(out, lse, group=…) on each rank. The ranks are forks that communicate over gloo.

    The result of a rank has all heads, or only the rank's part of them.
    """
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(case.parts):
            child = os.fork()
            if not child:
                try:
                    reduce_on_rank(rank, folder, case, adapter, outs[rank], lses[rank])
                except Exception as error:
                    if not os.path.exists(f"{folder}/error"):  # the file exists if another rank failed before, which makes this one fail
                        with open(f"{folder}/error", "w", encoding="utf-8") as file:
                            file.write(f"rank {rank}: {type(error).__name__}: {error}")
                finally:
                    os._exit(0)
            children.append(child)
        wait_for_ranks(children, folder)
        results = [torch.load(f"{folder}/{rank}.pt") for rank in range(case.parts)]
    touched = [f"{what} of rank {rank}" for rank, (*_, changed) in enumerate(results) for what in changed]
    every = [result[0] for result in results]
    if every[0].shape[1] == case.heads:  # each rank has all heads, so the ranks' bits must be equal
        for what, tensors in (("results", every), ("lses", [result[1] for result in results if result[1] is not None])):
            touched += [f"the ranks' {what} differ"] if any(not torch.equal(one.nan_to_num(0.5), tensors[0].nan_to_num(0.5)) for one in tensors) else []
        return Got(every[0], results[0][1], results[0][1], touched)
    has_lse = results[0][1] is not None
    lse = torch.cat([result[1] for result in results], 1) if has_lse else None
    return Got(torch.cat(every, 1), lse, lse, touched)


def wait_for_ranks(children: list[int], folder: str) -> None:
    """Waits for the ranks. If a rank raises or dies, kills the others, which would wait for it forever, and raises
    RuntimeError."""
    problem = ""
    while children:
        time.sleep(0.002)
        for child in list(children):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                children.remove(child)
                problem = problem or (f"one that ended with status {os.waitstatus_to_exitcode(status)}" if status else "")
        has_error = os.path.exists(f"{folder}/error")
        if (has_error or problem) and children:
            time.sleep(0.1)
            for child in children:
                os.kill(child, signal.SIGKILL)
    if has_error:
        with open(f"{folder}/error", encoding="utf-8") as file:
            raise RuntimeError(file.read())
    if problem:
        raise RuntimeError(f"expected every rank of the reduce to finish, got {problem}")


def reduce_on_rank(rank: int, folder: str, case: StateCase, adapter: Adapter, out: torch.Tensor, lse: torch.Tensor) -> None:
    """Calls the backend on one rank and writes the result to a file."""
    import torch.distributed as dist

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # avoids a look-up of the host's name
    store = dist.FileStore(f"{folder}/store", case.parts)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=case.parts, timeout=timedelta(seconds=60))
    memory = Memory(case, adapter)
    rows = memory.rows(tuple(out.shape), out.dtype, 0.0).copy_(out)
    stat = (lse if adapter.lse_layout == "nh" else lse.T).contiguous()
    with poisoned_memory():
        axis = adapter.lse_layout.index("n")
        before = {"values": [(rows.flip(0), stat)], "sizes": [(rows[:1], stat.narrow(axis, 0, 1)), (torch.cat([rows] * 3), torch.cat([stat] * 3, axis))]}
        for earlier in before.get(case.after, ()):
            adapter.call(*(one.clone() for one in earlier), group=dist.group.WORLD)
        got = finish(adapter, memory, (rows, stat), {"group": dist.group.WORLD})
    torch.save((got.out, got.lse, got.touched), f"{folder}/{rank}.pt")
    dist.destroy_process_group()


STATE_FORMS = {"merge": call_merge, "reduce": call_reduce}


def arguments_of(case: Any, adapter: Adapter) -> tuple[Any, dict[str, Any]]:
    """Returns the arguments and keywords of a case's call, without making the call. Both are empty for a reduce,
    because its ranks make their own arguments."""
    if adapter.form == "reduce":
        return (), {}
    calls: list[tuple[Any, dict[str, Any]]] = []

    def record(*arguments: Any, **given: Any) -> Any:
        calls.append((arguments, given))
        raise StopIteration

    recording = replace(adapter, call=record)
    try:
        if isinstance(case, StateCase):
            STATE_FORMS[adapter.form](case, recording, *make_states(case, adapter))
        else:
            FORMS[adapter.form](case, recording, make_values(case, adapter))
    except StopIteration:
        pass
    return calls[0]


def run_states(case: StateCase, adapter: Adapter) -> tuple[Got, torch.Tensor, torch.Tensor]:
    """Makes one call. Returns its results, and its inputs in f64: payloads, and lses in base e."""
    outs, lses = make_states(case, adapter)
    with poisoned_memory():
        got = STATE_FORMS[adapter.form](case, adapter, outs, lses)
    return got, outs.double(), natural(lses, adapter)


def check_states(case: StateCase, adapter: Adapter) -> list[Fault]:
    """Makes one merge and compares it with a merge in f64, by M1 to M7 of docs/Contract.md. The bounds count an error
    of an lse as an error of the weights, and include the rounding of sums and results."""
    got, outs, lses = run_states(case, adapter)
    want, want_lse = merged(outs, lses)
    if got.lse is None and adapter.returns_lse and case.rows:
        return [Fault("no lse", "an lse, as the adapter says", "None")]
    if got.out.shape != want.shape:
        return [Fault("shape of out", str(list(want.shape)), str(list(got.out.shape)))]
    live = ~torch.isinf(lses)
    size = torch.where(live[..., None], outs.abs(), 0.0).nan_to_num().amax(0)
    spread = torch.where(live, (lses - want_lse).abs(), 0.0).nan_to_num().amax(0)
    last = torch.finfo(getattr(torch, adapter.dtype)).eps / 2
    weight_error = (8 + 2 * case.parts) * UNIT + 4 * UNIT * spread + 2 * UNIT * want_lse.nan_to_num(0, 0, 0).abs()
    bound = size * torch.expm1(weight_error)[..., None] * 2 + last * want.abs()
    lse_bound = weight_error + 4 * UNIT * (1 + want_lse.nan_to_num(0, 0, 0).abs())
    out = got.out.double()
    close = ((out - want).abs() <= bound) | (out == want) | (out.isnan() & want.isnan())
    count, broken = live.sum(0), torch.isnan(lses).any(0)
    single = (count == 1) & ~broken  # the merge must return the single state bit for bit
    close &= (out == want) | ~single[..., None]
    classes = [("rows empty on all sides", count == 0), ("rows with one live side", single),
               ("rows with a NaN lse", broken), ("live rows", (count > 1) & ~broken)]  # fmt: skip
    of_out = {name: wrong_states(name, "out", rows, out, want, ~close) for name, rows in classes}
    faults = [] if got.lse is not None else [fault for found in of_out.values() for fault in found]
    if got.lse is not None:
        lse = natural(got.lse, adapter)
        close = ((lse - want_lse).abs() <= lse_bound) | (lse == want_lse) | (lse.isnan() & want_lse.isnan())
        close &= (lse == want_lse) | ~single
        endless = (lse == math.inf) & (count == 0)
        for name, rows in classes:
            faults += of_out[name] or wrong_states(f"lse of {name}", "lse", rows, lse, want_lse, ~close & ~endless)
            faults += wrong_states(f"lse of {name} is +inf", "lse", rows, lse, want_lse, endless, "warning")
    return faults + unwritten(got, Want(want, want_lse, bound, lse_bound, count, count), adapter) + written_to(got)


def wrong_states(kind: str, what: str, where: torch.Tensor, got: torch.Tensor, want: torch.Tensor, bad: torch.Tensor,
                 severity: str = "error") -> list[Fault]:
    """Calls `wrong_rows` for single heads instead of rows: `where` is [n, H]."""
    chosen = bad & (where[..., None] if bad.dim() == 3 else where)
    return wrong_rows(kind, what, where.any(1), got, want, chosen, severity)
