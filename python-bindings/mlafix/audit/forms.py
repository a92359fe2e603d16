"""Makes the call that a case describes, in each form of attention.

This module has only plain functions and a class, because the scripts that an audit writes for its findings (bundle.py)
contain their source text.
"""

from __future__ import annotations

import inspect
import math
import mmap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import accumulate
from typing import Any

import torch
import torch.utils.deterministic

from .cases import Adapter, Case, Got, Values, alibi_slopes, head_scales, shared_pages

GUARD = 64  # number of elements before and after an output, which no call may write
STALE = 7.0  # stands for the result of an earlier call in a given out or lse


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """Makes torch fill new tensors with NaN, so that elements that a backend allocates but does not write are NaN."""
    mode, fills = torch.get_deterministic_debug_mode(), torch.utils.deterministic.fill_uninitialized_memory
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hides torch's warnings about non-deterministic operators
        torch.set_deterministic_debug_mode("warn")
        torch.utils.deterministic.fill_uninitialized_memory = True
        try:
            yield
        finally:
            torch.set_deterministic_debug_mode(mode)
            torch.utils.deterministic.fill_uninitialized_memory = fills


class Memory:
    """Allocates the tensors of one call, and remembers the memory that the call must not change."""

    def __init__(self, case: Any, adapter: Adapter) -> None:
        self.case, self.adapter = case, adapter
        self.kept: list[tuple[str, torch.Tensor, torch.Tensor]] = []  # (name, tensor, copy of its contents)

    def watch(self, what: str, tensor: torch.Tensor) -> torch.Tensor:
        """Remembers a tensor that the call may only read, and returns it."""
        self.kept.append((what, tensor, tensor.clone()))
        return tensor

    def touched(self) -> list[str]:
        """Returns the names of watched tensors whose bits have changed."""
        return [what for what, tensor, held in self.kept if not same_bits(tensor, held)]

    def far(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Returns a tensor of zeros whose first dim has a stride so large that offsets exceed 2^31. On a CPU only the
        touched pages use memory."""
        pitch = (1 << 31) // max(shape[0] - 1, 1) + 4096
        pitch += -pitch % 4096
        size = pitch * max(shape[0] - 1, 0) + math.prod(shape[1:])
        if self.adapter.device == "cpu":
            pages = mmap.mmap(-1, size * dtype.itemsize, flags=mmap.MAP_PRIVATE | 0x4000)  # 0x4000 is MAP_NORESERVE
            flat = torch.frombuffer(pages, dtype=dtype)
        else:
            flat = torch.empty(size, dtype=dtype, device=self.adapter.device)
        strides = [pitch, *(math.prod(shape[i + 1 :]) for i in range(1, len(shape)))]
        return flat.as_strided(shape, strides).zero_()

    def rows(self, shape: tuple[int, ...], dtype: torch.dtype, fill: float, what: str = "") -> torch.Tensor:
        """Returns a tensor with the layout of the case, filled with `fill`. If `what` is "out" or "lse", the tensor
        lies between guards. If `what` is "v" and the layout is "values", there are gaps between the rows of heads."""
        if self.case.layout == "far" and len(shape) > 2 and shape[0] > 1:
            return self.far(shape, dtype).fill_(fill)
        least = max(self.adapter.alignment_bytes // dtype.itemsize, 1)
        gap = {"heads": 8, "odd": least}.get(self.case.layout, 0)  # elements between the rows of heads
        gap = 24 if self.case.layout == "values" and what == "v" else gap
        wide = (*shape[:-1], shape[-1] + gap)
        count, begin = math.prod(wide), GUARD + (least if self.case.layout == "odd" else 0)
        flat = torch.full((count + 2 * begin,), 123.0, dtype=dtype, device=self.adapter.device)
        rows = flat[begin : begin + count].view(wide)[..., : shape[-1]].fill_(fill)
        if what in ("out", "lse"):
            guards = [("before", flat[:begin]), ("behind", flat[begin + count :])]
            if gap:
                guards.append(("between the rows of", flat[begin : begin + count].view(wide)[..., shape[-1] :]))
            self.kept += [(f"memory {where} {what}", guard, guard.clone()) for where, guard in guards]
        return rows

    def integers(self, numbers: Any, dtype: torch.dtype = torch.int32) -> torch.Tensor:
        """Returns lengths, offsets or a block table as a tensor. If the case has strided lengths, the tensor is every
        second element of a buffer whose other elements are wrong.

        If the layout is "odd", the tensor begins one element into its buffer, unless the adapter requires an alignment.
        """
        made = torch.as_tensor(numbers, dtype=dtype)
        if self.case.layout == "odd" and not self.adapter.alignment_bytes:
            flat = torch.full((made.numel() + 1,), -1, dtype=dtype, device=self.adapter.device)
            return flat[1:].view(made.shape).copy_(made)
        if self.case.lengths == "strided":
            spread = torch.ones((*made.shape, 2), dtype=dtype)
            spread[..., 0] = made
            return spread.to(self.adapter.device)[..., 0]
        return made.to(self.adapter.device)

    def outputs(self, rows: tuple[int, ...], lse_shape: tuple[int, ...]) -> dict[str, torch.Tensor]:
        """Returns the out and lse that the call passes, with the contents that `before` of the case names. Omits what
        the backend does not take."""
        fill = {"nan": math.nan, "stale": STALE}.get(self.case.before)
        given: dict[str, torch.Tensor] = {}
        if fill is not None and "out" in self.adapter.takes:
            given["out"] = self.rows(rows, getattr(torch, self.adapter.dtype), fill, "out")
        if fill is not None and "lse" in self.adapter.takes:
            given["lse"] = self.rows(lse_shape, torch.float32, fill, "lse")
        return given


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """True if two tensors of one dtype hold the same bits."""
    return a.shape == b.shape and torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))


def filled(value: str) -> float:
    return {"zero": 0.0, "nan": math.nan, "inf": math.inf}[value]


def offsets(lengths: tuple[int, ...]) -> list[int]:
    return [0, *accumulate(lengths)]


def options(case: Case, adapter: Adapter, values: Values) -> dict[str, Any]:
    """Returns the keyword arguments that all forms of attention have in common."""
    given: dict[str, Any] = {"scale": case.scale * case.dim**-0.5} if case.scale else {}
    given |= {"causal": case.causal} if adapter.causal is True and adapter.form != "paged" else {}
    if case.window != (-1, -1):
        given |= {"window_size": case.window} if "window_size" in adapter.takes else {"window": case.window[0]}
    if values.sinks is not None:
        given["sinks"] = values.sinks.to(adapter.device)
    if case.softcap:
        given["softcap"] = case.softcap
    if case.alibi:
        given["alibi_slopes"] = alibi_slopes(case.heads).to(adapter.device)
    given |= scales(case, adapter)
    if case.num_splits:
        given["num_splits"] = case.num_splits
    for name, lengths in (("max_seqlen_q", case.q_lens), ("max_seqlen_k", case.kv_lens)):
        given |= {name: max([*lengths, 1]) + case.longer} if name in adapter.takes else {}
    return given


def scales(case: Case, adapter: Adapter) -> dict[str, Any]:
    """Returns k_scale and v_scale if the backend takes them: floats, or tensors [Hk] f32."""
    given: dict[str, Any] = {name: getattr(case, name) for name in ("k_scale", "v_scale") if name in adapter.takes}
    if adapter.kv_scales == "number":
        return given
    return {name: head_scales(value, case.kv_heads, adapter)[:, 0].float().to(adapter.device) for name, value in given.items()}


def is_planned(call: Any) -> bool:
    """True for a class or an object with `run`, false for a function."""
    return callable(getattr(call, "run", None))


@cache
def made(call: Any) -> Any:
    """If `call` is a class, returns the only instance of it in this process. Returns any other object as it is."""
    return call() if isinstance(call, type) else call


def invoke(adapter: Adapter, arguments: Any, given: dict[str, Any]) -> Any:
    """Makes one call of the adapter's function. If the adapter has an object instead, makes a plan and runs it."""
    if not is_planned(adapter.call):
        return adapter.call(*arguments, **given)
    return made(adapter.call).run(*arguments, **planned(adapter, arguments, given))


def planned(adapter: Adapter, arguments: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Makes a plan if the object has `plan`. Returns the keywords that are left for `run`."""
    backend = made(adapter.call)
    if not hasattr(backend, "plan"):
        return given
    of_run, of_plan = (inspect.signature(one).parameters for one in (backend.run, backend.plan))
    q, k = arguments[0], arguments[1]
    shapes = {"heads": q.shape[-2], "kv_heads": 1 if adapter.latent else k.shape[-2], "dim": q.shape[-1], "page_size": adapter.page_size,
              "value_dim": adapter.value_dim or q.shape[-1], "dtype": q.dtype, "kv_dtype": k.dtype, "device": q.device}  # fmt: skip
    rest = {name: value for name, value in given.items() if name in of_run}
    backend.plan(**{name: value for name, value in given.items() if name not in rest},
                 **{name: value for name, value in shapes.items() if name in of_plan})  # fmt: skip
    return rest


def finish(adapter: Adapter, memory: Memory, arguments: Any, given: dict[str, Any]) -> Got:
    """Makes the call and returns its results as rows of tokens. If the backend returned other tensors than the given
    out or lse, `Got.given` has the given ones."""
    result = invoke(adapter, arguments, given)
    out, raw = result if isinstance(result, (tuple, list)) else (result, None)
    out, raw = given.get("out") if out is None else out, given.get("lse") if raw is None else raw
    raw = raw if adapter.returns_lse else None
    others = {what: given[what] for what, tensor in (("out", out), ("lse", raw))
              if what in given and tensor is not None and tensor.data_ptr() != given[what].data_ptr()}  # fmt: skip
    as_rows = {"out": lambda rows: rows, "lse": lambda rows: rows if adapter.lse_layout == "nh" else rows.transpose(-1, -2)}
    flat = (lambda rows: rows.flatten(0, 1)) if adapter.form == "dense" else (lambda rows: rows)
    rows = {what: flat(as_rows[what](tensor)).cpu() for what, tensor in (("out", out), ("lse", raw)) if tensor is not None}
    return Got(rows["out"], rows.get("lse"), raw, memory.touched(), {what: flat(as_rows[what](tensor)).cpu() for what, tensor in others.items()})


def packed_rows(case: Case, adapter: Adapter, values: Values, memory: Memory, keys: int) -> list[torch.Tensor]:
    """Returns q [n, H, D] with the rows of all sequences and the padding rows. Adds k and v [keys, Hk, D] unless `keys`
    is negative."""
    dtype, n = getattr(torch, adapter.dtype), sum(case.q_lens) + case.pad_rows
    if case.layout == "packed":
        rows = list(memory.rows((n, case.heads + 2 * case.kv_heads, case.dim), dtype, 0.0).split([case.heads, case.kv_heads, case.kv_heads], 1))
    else:
        rows = [memory.rows((n, case.heads, case.dim), dtype, 0.0)]
        rows += keys_and_values(case, adapter, memory, (keys, case.kv_heads)) if keys >= 0 else []
    for tensor, parts in zip(rows, (values.q, values.k, values.v)):
        for begin, part in zip(offsets(tuple(part.shape[0] for part in parts)), parts):
            tensor[begin : begin + part.shape[0]] = part
    if case.beyond != "zero":
        rows[0][sum(case.q_lens) :] = filled(case.beyond)
    return rows


def keys_and_values(case: Case, adapter: Adapter, memory: Memory, shape: tuple[int, ...]) -> list[torch.Tensor]:
    """Returns k [*shape, D] and v [*shape, Dv], filled with the contents that `beyond` of the case names. Elements that
    the caller does not overwrite must not affect a result."""
    dtype, value_dim = getattr(torch, adapter.kv_dtype or adapter.dtype), case.value_dim or case.dim
    k = memory.rows((*shape, case.dim), dtype, filled(case.beyond))
    return [k, k[..., :value_dim] if adapter.values_in_keys else memory.rows((*shape, value_dim), dtype, filled(case.beyond), "v")]


def lse_shape(adapter: Adapter, *shape: int) -> tuple[int, ...]:
    """Returns the shape of an lse [n, H] in the adapter's layout."""
    return shape if adapter.lse_layout == "nh" else (*shape[:-2], shape[-1], shape[-2])


def call_ragged(case: Case, adapter: Adapter, values: Values) -> Got:
    """Makes a ragged call: q [n, H, D], k and v [m, Hk, D], cu_seqlens_q and cu_seqlens_k [B + 1] i32."""
    memory = Memory(case, adapter)
    tail = 3 if case.beyond != "zero" else 0  # keys that belong to no sequence
    q, k, v = packed_rows(case, adapter, values, memory, sum(case.kv_lens) + tail)
    more = (0,) * case.pad_requests
    given = options(case, adapter, values)
    given |= {"cu_seqlens_q": memory.integers(offsets(case.q_lens + more)), "cu_seqlens_k": memory.integers(offsets(case.kv_lens + more))}
    given |= memory.outputs((*q.shape[:2], case.value_dim or case.dim), lse_shape(adapter, *q.shape[:2]))
    for what, tensor in (("q", q), ("k", k), ("v", v), ("cu_seqlens_q", given["cu_seqlens_q"])):
        memory.watch(what, tensor)
    return finish(adapter, memory, (q, k, v), given)


def call_dense(case: Case, adapter: Adapter, values: Values) -> Got:
    """Makes a dense call: q [B, Lq, H, D], k and v [B, Lk, Hk, D], and seq_lens_k [B] i32 if the backend takes it. The
    lse is [B, Lq, H] or [B, H, Lq]."""
    memory, dtype = Memory(case, adapter), getattr(torch, adapter.dtype)
    batch, q_len = len(case.q_lens), max(case.q_lens, default=0)
    has_lengths = "seq_lens_k" in adapter.takes
    kv_len = max(case.kv_lens, default=0) + (3 if has_lengths else 0)
    if case.layout == "packed":
        packed = memory.rows((batch, q_len, case.heads + 2 * case.kv_heads, case.dim), dtype, 0.0)
        q, k, v = packed.split([case.heads, case.kv_heads, case.kv_heads], 2)
    else:
        q = memory.rows((batch, q_len, case.heads, case.dim), dtype, 0.0)
        k, v = keys_and_values(case, adapter, memory, (batch, kv_len, case.kv_heads))
    for tensor, parts in ((q, values.q), (k, values.k), (v, values.v)):
        for row, part in zip(tensor, parts):
            row[: part.shape[0]] = part
    given = options(case, adapter, values)
    given |= {"seq_lens_k": memory.integers(case.kv_lens)} if has_lengths else {}
    given |= memory.outputs((*q.shape[:3], case.value_dim or case.dim), lse_shape(adapter, *q.shape[:3]))
    for what, tensor in (("q", q), ("k", k), ("v", v)):
        memory.watch(what, tensor)
    return finish(adapter, memory, (q, k, v), given)


def tables(case: Case, adapter: Adapter) -> tuple[torch.Tensor, int]:
    """Returns the block table [B, P] of a case, and the number of pages in the caches. Page 0 belongs to no request."""
    size, batch = adapter.page_size, len(case.kv_lens) + case.pad_requests
    counts = [-(-max(length, 0) // size) for length in case.kv_lens]
    shared = shared_pages(case, adapter)
    total = sum(counts) - shared * max(len(counts) - 1, 0)
    numbers = torch.arange(1, total + 1)
    if case.layout == "far" and total:  # one entry is the last page, whose offset exceeds 2^31
        numbers[-1] = total + 1
    if case.pages in ("shuffled", "shared"):
        numbers = numbers[torch.randperm(total, generator=torch.Generator().manual_seed(3))]
    table = torch.zeros(batch, max([*counts, 1]) + 1, dtype=torch.int32)  # unused entries name page 0
    if case.pages == "dead":
        table[:, ::2], table[:, 1::2] = 2**31 - 1, -1
    begin = shared
    for request, count in enumerate(counts):
        table[request, : min(shared, count)] = numbers[: min(shared, count)]
        own = max(count - shared, 0)
        table[request, shared : shared + own] = numbers[begin : begin + own]
        begin += own
    if case.pages == "equal" and counts:
        table[: len(counts)] = table[counts.index(max(counts))]
    return table, total + 2


def caches(case: Case, adapter: Adapter, values: Values, memory: Memory) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Returns the caches and their block table. The caches are k and v [pages, page_size, Hk, D], or one [pages,
    page_size, D]."""
    table, pages = tables(case, adapter)
    size = adapter.page_size
    tensors = keys_and_values(case, adapter, memory, (pages, size, case.kv_heads))
    for request, parts in enumerate(zip(values.k, values.v)):
        for tensor, rows in zip(tensors, parts):
            for position in range(0, rows.shape[0], size):
                part = rows[position : position + size]
                tensor[int(table[request, position // size]), : part.shape[0]] = part
    if case.layout != "far":
        for what, tensor in zip(("k_cache", "v_cache"), tensors):
            memory.watch(what, tensor)
    return [tensors[0][:, :, 0]] if adapter.latent else tensors, table


def call_paged(case: Case, adapter: Adapter, values: Values) -> Got:
    """Makes a paged call with one query per request: q [B, H, D], caches [pages, page_size, Hk, D], block_table [B, P]
    i32, seq_lens [B] i32."""
    memory, dtype = Memory(case, adapter), getattr(torch, adapter.dtype)
    batch = len(case.kv_lens) + case.pad_requests
    q = memory.rows((batch, case.heads, case.dim), dtype, 0.0)
    for row, one in zip(q, values.q):
        row.copy_(one[0])
    tensors, table = caches(case, adapter, values, memory)
    given = options(case, adapter, values) | requests(case, memory, table)
    given |= memory.outputs((batch, case.heads, case.value_dim or case.dim), lse_shape(adapter, batch, case.heads))
    for what in ("block_table", "seq_lens"):
        memory.watch(what, given[what])
    memory.watch("q", q)
    return finish(adapter, memory, (q, *tensors), given)


def requests(case: Case, memory: Memory, table: torch.Tensor) -> dict[str, torch.Tensor]:
    """Returns the keywords block_table and seq_lens. Padding requests come last."""
    return {"block_table": memory.integers(table), "seq_lens": memory.integers([*case.kv_lens, *([case.pad_length] * case.pad_requests)])}


def call_ragged_paged(case: Case, adapter: Adapter, values: Values) -> Got:
    """Makes a ragged paged call: q [n, H, D], caches as in `call_paged`, cu_seqlens_q [B + 1], block_table [B, P],
    seq_lens [B] i32.

    seq_lens counts all keys of a request in the cache, also those that earlier calls have stored.
    """
    memory = Memory(case, adapter)
    (q,) = packed_rows(case, adapter, values, memory, -1)
    tensors, table = caches(case, adapter, values, memory)
    given = options(case, adapter, values) | requests(case, memory, table)
    given["cu_seqlens_q"] = memory.integers(offsets(case.q_lens + (0,) * case.pad_requests))
    given |= memory.outputs((*q.shape[:2], case.value_dim or case.dim), lse_shape(adapter, *q.shape[:2]))
    for what in ("block_table", "seq_lens", "cu_seqlens_q"):
        memory.watch(what, given[what])
    memory.watch("q", q)
    return finish(adapter, memory, (q, *tensors), given)


FORMS = {"ragged": call_ragged, "dense": call_dense, "paged": call_paged, "ragged_paged": call_ragged_paged}


def run(case: Case, adapter: Adapter, values: Values) -> Got:
    """Runs one call of the adapter's form and returns its results."""
    with poisoned_memory():
        return FORMS[adapter.form](case, adapter, values)
