"""Finds the mlafix calls that repair findings, and runs a check again on the repaired backend."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from .cases import Adapter, Case, StateCase
from .checks import Check
from .checks.check import PAGED
from .forms import invoke
from .state_forms import arguments_of

Call = Callable[..., Any]
TIMED = 0.5  # the total time in seconds after which no further call is timed


@dataclass(frozen=True)
class Repair:
    """A call that repairs a finding, as text, and a function that wraps the backend with this call."""

    text: str
    wrap: Callable[[Adapter], Call]
    fields: tuple[tuple[str, Any], ...] = ()  # (name, value) of adapter fields that the repair changes


@dataclass
class Repaired:
    """The outcome of a repair: the repairing call, its effect, the median time of a call of the backend, and the time
    that the repair adds, both in microseconds."""

    call: str
    status: str  # "gone", "still there: …", or "not run: …"
    backend_us: float = 0.0
    repair_us: float = 0.0


def results(adapter: Adapter, *arguments: Any, **given: Any) -> tuple[Any, Any]:
    """Calls the backend and returns out and lse: those that the call was given, else those that the backend returned.
    If there is no lse, returns one filled with -inf."""
    result = invoke(adapter, arguments, given)
    out, lse = result if isinstance(result, (tuple, list)) else (result, None)
    out, lse = given.get("out", out), given.get("lse", lse)
    if lse is None:
        tokens, heads = math.prod(out.shape[:-2]), out.shape[-2]
        lse = out.new_full((tokens, heads), -math.inf, dtype=torch.float32)
    return out, lse


def segments(lengths: torch.Tensor, begins: torch.Tensor, bad: torch.Tensor, total: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns kv_lens and cu_seqlens that divide each sequence into two segments. The first segment covers the first
    `bad` tokens and has no keys; the second covers the other tokens."""
    bounds = torch.stack([begins, begins + bad.clamp(min=0).minimum(lengths)], 1).flatten()
    ends = torch.cat([bounds, torch.as_tensor([total], dtype=bounds.dtype, device=bounds.device)])
    kinds = torch.tensor([0, 1], dtype=torch.int32, device=bounds.device).repeat(lengths.shape[0])
    return kinds, ends.to(torch.int32)


def blank_requests(adapter: Adapter) -> Call:
    """Returns the backend with a call of ops.fixup_zero_kv_rows after it. The call blanks the rows of sequences without
    keys."""

    def call(*tensors: torch.Tensor, **given: Any) -> tuple[Any, Any]:
        from ..ops import fixup_zero_kv_rows

        out, lse = results(adapter, *tensors, **given)
        q, k = tensors[:2]
        each = torch.arange(q.shape[0] + 1, dtype=torch.int32, device=q.device)
        if adapter.form != "dense":
            kv_lens = given["cu_seqlens_k"].diff() if adapter.form == "ragged" else given["seq_lens"].contiguous()
            starts = each if adapter.form == "paged" else given["cu_seqlens_q"].contiguous()
            fixup_zero_kv_rows(out, lse, kv_lens, starts, lse_layout=layout_of(adapter))
            return out, lse
        kv_lens = given.get("seq_lens_k", torch.full((q.shape[0],), k.shape[1], dtype=torch.int32, device=q.device))
        # Each batch item counts as one token with Lq * H heads, since either all or none of its rows are blanked.
        # reshape copies the lse if its strides do not allow a view [B, Lq * H].
        rows, lses = out.flatten(1, 2), lse.reshape(q.shape[0], -1)
        fixup_zero_kv_rows(rows, lses, kv_lens, each, lse_layout="nh")
        return rows.view(out.shape), lses.view(lse.shape)

    return call


def layout_of(adapter: Adapter) -> Any:
    return adapter.lse_layout if adapter.returns_lse else "nh"


def blank_masked(adapter: Adapter) -> Call:
    """Returns the backend with a call of ops.fixup_zero_kv_rows after it. The call blanks the rows that see no key,
    because its arguments describe these rows as segments without keys (`segments`)."""

    def call(*tensors: torch.Tensor, **given: Any) -> tuple[Any, Any]:
        from ..ops import fixup_zero_kv_rows

        out, lse = results(adapter, *tensors, **given)
        q, k = tensors[:2]
        if adapter.form in ("ragged", "ragged_paged"):
            starts, rows = given["cu_seqlens_q"], lse
            keys = given["cu_seqlens_k"].diff() if adapter.form == "ragged" else given["seq_lens"].clamp(min=0)
            lengths, n, layout = starts.diff(), q.shape[0], layout_of(adapter)
            begins = starts[:-1]
        else:
            size, n, layout = q.shape[1], q.shape[0] * q.shape[1], "nh"
            lengths = torch.full((q.shape[0],), size, dtype=torch.int32, device=q.device)
            keys = given.get("seq_lens_k", torch.full_like(lengths, k.shape[1]))
            begins = torch.arange(q.shape[0], dtype=torch.int32, device=q.device) * size
            rows = (lse if adapter.lse_layout == "nh" else lse.transpose(1, 2)).reshape(n, -1) if lse.dim() == 3 else lse
        right = given.get("window_size", (0, given.get("window", 0)))[1]
        bad = lengths - keys - (0 if given.get("causal", adapter.causal == "always") else right)
        kinds, bounds = segments(lengths, begins, bad, n)
        flat = out.flatten(0, 1) if adapter.form == "dense" else out
        fixup_zero_kv_rows(flat, rows, kinds, bounds, lse_layout=layout)
        out = flat.view(out.shape)
        if adapter.form == "dense" and lse.dim() == 3:
            batched = rows.view(q.shape[0], q.shape[1], -1)
            lse = batched if adapter.lse_layout == "nh" else batched.transpose(1, 2)
        return out, lse

    return call


def blank_padding(adapter: Adapter) -> Call:
    """Returns the backend with a call of ops.fill_pad_rows after it. For paged requests the call is
    ops.fixup_zero_kv_rows."""
    if adapter.form == "paged":
        return blank_requests(adapter)

    def call(*tensors: torch.Tensor, **given: Any) -> tuple[Any, Any]:
        from ..ops import fill_pad_rows

        out, lse = results(adapter, *tensors, **given)
        fill_pad_rows(out, given["cu_seqlens_q"][-1:].contiguous(), lse, lse_layout=layout_of(adapter))
        return out, lse

    return call


def clear_unread_keys(adapter: Adapter) -> Call:
    """Returns the backend with unused keys and values set to zero before each call. An engine zeroes them only once,
    when it allocates or frees their memory."""

    def call(q: torch.Tensor, *cached: torch.Tensor, **given: Any) -> Any:
        from ..ops import fill_pad_rows, fixup_zero_kv_rows, zero_blocks

        tensors = [tensor.clone() for tensor in cached]
        k = tensors[0]
        if adapter.form == "ragged":
            for rows in tensors:
                fill_pad_rows(rows, given["cu_seqlens_k"][-1:].contiguous())
        elif adapter.form in PAGED:
            used = given["block_table"].unique()
            free = torch.ones(k.shape[0], dtype=torch.bool, device=k.device)
            free[used[used > 0].long()] = False
            ids = free.nonzero()[:, 0].to(torch.int32)
            for rows in tensors:
                zero_blocks(rows, ids)
        else:
            size, lengths = k.shape[1], given["seq_lens_k"]
            begins = torch.arange(k.shape[0], dtype=torch.int32, device=k.device) * size
            # Each sequence has two segments: its keys, which keep their values, and the memory behind them, which
            # becomes zero.
            bounds = torch.cat([torch.stack([begins, begins + lengths], 1).flatten(), begins[-1:] + size])
            kinds = torch.tensor([1, 0], dtype=torch.int32, device=k.device).repeat(k.shape[0])
            for rows in tensors:
                flat = rows.flatten(0, 1)
                fixup_zero_kv_rows(flat, flat.new_zeros(flat.shape[:2], dtype=torch.float32), kinds, bounds, lse_layout="nh")
        return invoke(adapter, (q, *tensors), given)

    return call


def add_sinks(adapter: Adapter) -> Call:
    """Returns the backend without its own sinks, with a call of ops.apply_sink after it."""

    def call(*tensors: torch.Tensor, **given: Any) -> Any:
        from ..ops import apply_sink

        sinks = given.pop("sinks", None)
        out, lse = results(adapter, *tensors, **given)
        if sinks is None:
            return out, lse
        apply_sink(out, lse, sinks, out=out, return_lse=False, lse_layout=layout_of(adapter), base=adapter.lse_base)
        return out, lse

    return call


def dense_lengths(adapter: Adapter) -> Call:
    """Returns the backend with contiguous lengths and block tables. The lengths of requests go through
    ops.expand_context_lens, which also raises negative lengths to 0."""

    def call(*arguments: Any, **given: Any) -> Any:
        from ..ops import expand_context_lens

        for name in ("cu_seqlens_q", "cu_seqlens_k", "seq_lens_k", "block_table", "seq_lens"):
            if name not in given:
                continue
            value = given[name].contiguous()
            if name in ("seq_lens", "seq_lens_k"):
                value = expand_lens(expand_context_lens, value)
            given[name] = value
        return invoke(adapter, arguments, given)

    return call


def expand_lens(expand: Any, lengths: torch.Tensor) -> Any:
    buffer = torch.empty(max(lengths.shape[0], 1), dtype=torch.int32, device=lengths.device)
    return expand(buffer, lengths, lengths.shape[0], 1)[:, 0]


def lengths_and_rows(adapter: Adapter) -> Call:
    """Returns the backend with lengths of at least 0, and with the rows of requests without keys blanked after the
    call."""
    return blank_requests(replace(adapter, call=dense_lengths(adapter)))


def dense_inputs(adapter: Adapter) -> Call:
    return lambda *arguments, **given: invoke(adapter, tuple(one.contiguous() for one in arguments), given)


def base_e(adapter: Adapter) -> Call:
    """Returns the backend with its lse converted from base 2 to base e."""

    def call(*arguments: Any, **given: Any) -> Any:
        out, lse = results(adapter, *arguments, **given)
        return out, lse.mul_(math.log(2))

    return call


def merge_of_ours(adapter: Adapter) -> Call:
    def call(a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor, out: Any = None, lse: Any = None) -> Any:
        from ..ops import merge_attn_states

        return merge_attn_states(a, a_lse, b, b_lse, out=out, out_lse=lse, lse_layout=adapter.lse_layout, base=adapter.lse_base)

    return call


def reduce_of_ours(adapter: Adapter) -> Call:
    def call(out: torch.Tensor, lse: torch.Tensor, *, group: Any) -> Any:
        from ..distributed import Reducer

        reducer = Reducer(group, max_tokens=max(out.shape[0], 1), heads=out.shape[1], head_dim=out.shape[2], dtype=out.dtype, cut="none",
                          base=adapter.lse_base, device="cpu")  # fmt: skip
        merged, merged_lse = reducer.reduce(out, lse if adapter.lse_layout == "nh" else lse.T)
        return merged, merged_lse if adapter.lse_layout == "nh" else merged_lse.T

    return call


FIXUP = "ops.fixup_zero_kv_rows(out, lse, {lengths})"
LENGTHS = {"ragged": "cu_seqlens_k.diff(), cu_seqlens_q", "dense": "seq_lens_k, arange(B + 1)", "paged": "seq_lens, arange(B + 1)",
           "ragged_paged": "seq_lens, cu_seqlens_q"}  # fmt: skip


def repair_for(check: str, adapter: Adapter, kind: str, case: Any) -> Repair | None:
    """Returns the repair for a kind of fault. Returns None if there is no repair."""
    if adapter.form == "merge":
        return Repair("ops.merge_attn_states(a, a_lse, b, b_lse, out=out, out_lse=lse)", merge_of_ours)
    if adapter.form == "reduce":
        return Repair('Reducer(group, …, cut="none").reduce(out, lse)', reduce_of_ours)
    fixup = FIXUP.format(lengths=LENGTHS[adapter.form])
    if kind == "base of the lse" and adapter.lse_base == "e":
        return Repair('base="2" for mlafix\'s merges, else lse * ln 2', base_e)
    if kind == "layout of the lse":
        other = "hn" if adapter.lse_layout == "nh" else "nh"
        return Repair(f'lse_layout="{other}" for mlafix\'s merges, else lse.T', lambda one: one.call, (("lse_layout", other),))
    if kind == "sinks are ignored":
        return Repair("ops.apply_sink(out, lse, sinks, out=out, return_lse=False)", add_sinks)
    if "padded rows" in kind:
        return Repair(fixup if adapter.form == "paged" else "ops.fill_pad_rows(out, cu_seqlens_q[-1:], lse)", blank_padding)
    if isinstance(case, Case) and (min(case.kv_lens, default=0) < 0 or case.pad_length < 0):
        return Repair(f"ops.expand_context_lens(lens, seq_lens, B, 1), {fixup}", lengths_and_rows)
    if isinstance(case, Case) and case.lengths == "strided":
        paged = adapter.form in PAGED
        return Repair("ops.expand_context_lens(lens, seq_lens, B, 1)" if paged else "cu_seqlens.contiguous()", dense_lengths)
    if "rows without keys" in kind or "empty part" in kind:
        return Repair(fixup, blank_requests)
    if "all masked" in kind:
        return Repair("ops.fixup_zero_kv_rows(out, lse, …) with the rows that see no key as segments", blank_masked)
    if check == "A4" and isinstance(case, Case) and case.beyond != "zero":
        words = {"ragged": "ops.fill_pad_rows(k, cu_seqlens_k[-1:])", "paged": "ops.zero_blocks(cache, free pages)",
                 "ragged_paged": "ops.zero_blocks(cache, free pages)", "dense": "ops.fixup_zero_kv_rows(v, …) with what is behind seq_lens_k as segments"}  # fmt: skip
        return Repair(words[adapter.form], clear_unread_keys)
    if isinstance(case, Case) and case.layout in ("heads", "packed"):
        return Repair("q.contiguous(), k.contiguous(), v.contiguous()", dense_inputs)
    return None


def try_repair(check: Check, adapter: Adapter, kind: str, case: Any, died: bool = False, seconds: float = 1.0) -> Repaired | None:
    """Runs the repaired backend on the finding's case and then on the check's cases that resemble this case, until
    `seconds` have passed. Measures the cost of the repair. Returns None if there is no repair.

    If the backend crashed on the case (`died`), runs only this case, accepts no fault of any kind, and measures
    nothing.
    """
    repair = repair_for(check.number, adapter, kind, case)
    if repair is None:
        return None
    repaired = replace(adapter, call=repair.wrap(adapter), **dict(repair.fields))
    faults = check.faults(adapter)
    try:
        cases = [case] if died else [case, *cases_of(check, adapter, case)]
        left, end = [], time.monotonic() + seconds
        for one in cases:
            left += [fault for fault in faults(one, repaired) if died or fault.kind == kind]
            if time.monotonic() > end:
                break
        if left:
            return Repaired(repair.text, f"still there: expected {left[0].expected}, got {left[0].got}")
        if died:
            return Repaired(repair.text, "gone")
        backend, with_repair = (microseconds(one, case) for one in (adapter, repaired))
        return Repaired(repair.text, "gone", round(backend, 1), round(max(with_repair - backend, 0.0), 1))
    except Exception as error:  # for example, the kernel cannot be compiled here
        return Repaired(repair.text, f"not run: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")


def cases_of(check: Check, adapter: Adapter, case: Any) -> list[Any]:
    """Returns the check's cases with the layout, lengths and sinks of the finding's case. For merges and reduces,
    returns all of the check's cases."""
    found = check.cases(adapter)
    if isinstance(case, StateCase):
        return found
    return [one for one in found if (one.layout, one.lengths, one.sinks) == (case.layout, case.lengths, case.sinks)]


def microseconds(adapter: Adapter, case: Any, count: int = 20) -> float:
    """Returns the median time of a call in microseconds. All calls use the same tensors."""
    arguments, given = arguments_of(case, adapter)
    if not arguments:
        return 0.0
    times: list[float] = []
    while len(times) < count and sum(times) < TIMED:
        begin = time.perf_counter()
        invoke(adapter, arguments, given)
        if adapter.device != "cpu":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return sorted(times)[len(times) // 2] * 1e6
