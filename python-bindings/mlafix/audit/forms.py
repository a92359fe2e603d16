"""How a case becomes a call of each form of attention. Plain functions and torch: scripts that show a finding contain them."""

from __future__ import annotations

import math
import mmap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils.deterministic

from .cases import Adapter, Case, Got, Values

GUARD = 64  # elements before and behind an output that no call may touch
STALE = 7.0  # what an earlier call may have left


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """New tensors begin as NaN: what a backend allocates and does not write is seen."""
    mode, fills = torch.get_deterministic_debug_mode(), torch.utils.deterministic.fill_uninitialized_memory
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of operators that are not deterministic
        torch.set_deterministic_debug_mode("warn")
        torch.utils.deterministic.fill_uninitialized_memory = True
        try:
            yield
        finally:
            torch.set_deterministic_debug_mode(mode)
            torch.utils.deterministic.fill_uninitialized_memory = fills


class Memory:
    """The tensors of one call, and what around them must stay as it was."""

    def __init__(self, case: Any, adapter: Adapter) -> None:
        self.case, self.adapter = case, adapter
        self.kept: list[tuple[str, torch.Tensor, torch.Tensor]] = []  # what, the tensor, what it held

    def watch(self, what: str, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor that the call may only read."""
        self.kept.append((what, tensor, tensor.clone()))
        return tensor

    def touched(self) -> list[str]:
        """The elements that changed and must not have changed. NaN is compared by its bits."""
        return [what for what, tensor, held in self.kept if not same_bits(tensor, held)]

    def far(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Zeros whose first dim has a stride such that offsets pass 2^31: of the memory only touched pages exist."""
        pitch = (1 << 31) // max(shape[0] - 1, 1) + 4096
        pitch += -pitch % 4096
        size = pitch * max(shape[0] - 1, 0) + math.prod(shape[1:])
        if self.adapter.device == "cpu":
            pages = mmap.mmap(-1, size * dtype.itemsize, flags=mmap.MAP_PRIVATE | 0x4000)  # MAP_NORESERVE
            flat = torch.frombuffer(pages, dtype=dtype)
        else:
            flat = torch.empty(size, dtype=dtype, device=self.adapter.device)
        strides = [pitch, *(math.prod(shape[i + 1 :]) for i in range(1, len(shape)))]
        return flat.as_strided(shape, strides).zero_()

    def rows(self, shape: tuple[int, ...], dtype: torch.dtype, fill: float, what: str = "") -> torch.Tensor:
        """A tensor that lies as the case says; with a name it is an output with guards around."""
        if self.case.layout == "far" and len(shape) > 2 and shape[0] > 1:
            return self.far(shape, dtype).fill_(fill)
        gap = 8 if self.case.layout == "heads" else 0  # between the rows of heads
        wide = (*shape[:-1], shape[-1] + gap)
        count = math.prod(wide)
        flat = torch.full((count + 2 * GUARD,), 123.0, dtype=dtype, device=self.adapter.device)
        rows = flat[GUARD : GUARD + count].view(wide)[..., : shape[-1]].fill_(fill)
        if what:
            guards = [("before", flat[:GUARD]), ("behind", flat[GUARD + count :])]
            if gap:
                guards.append(("between the rows of", flat[GUARD : GUARD + count].view(wide)[..., shape[-1] :]))
            self.kept += [(f"memory {where} {what}", guard, guard.clone()) for where, guard in guards]
        return rows

    def integers(self, numbers: Any, dtype: torch.dtype = torch.int32) -> torch.Tensor:
        """Lengths, offsets or tables: dense, or every second element of a buffer whose other elements are wrong."""
        made = torch.as_tensor(numbers, dtype=dtype)
        if self.case.lengths == "strided":
            spread = torch.ones((*made.shape, 2), dtype=dtype)
            spread[..., 0] = made
            return spread.to(self.adapter.device)[..., 0]
        return made.to(self.adapter.device)

    def outputs(self, rows: tuple[int, ...], lse_shape: tuple[int, ...]) -> dict[str, torch.Tensor]:
        """out and lse, as far as the backend takes them, with what an earlier call left."""
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
    return [sum(lengths[:i]) for i in range(len(lengths) + 1)]


def options(case: Case, adapter: Adapter, values: Values) -> dict[str, Any]:
    """The keywords that all forms of attention share."""
    given: dict[str, Any] = {"scale": case.dim**-0.5}
    if case.window >= 0:
        given["window"] = case.window
    if values.sinks is not None:
        given["sinks"] = values.sinks.to(adapter.device)
    if case.num_splits:
        given["num_splits"] = case.num_splits
    return given


def returned(adapter: Adapter, result: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
    out, lse = result if isinstance(result, (tuple, list)) else (result, None)
    return out, lse if adapter.returns_lse else None


def call_ragged(case: Case, adapter: Adapter, values: Values) -> Got:
    """q [n, H, D], k and v [m, Hk, D], cu_seqlens_q and cu_seqlens_k [B + 1] i32."""
    memory, dtype = Memory(case, adapter), getattr(torch, adapter.dtype)
    n, m = sum(case.q_lens) + case.pad_rows, sum(case.kv_lens)
    tail = 3 if case.beyond != "zero" else 0  # keys of nobody
    value_dim = adapter.value_dim or case.dim
    if case.layout == "packed":
        packed = memory.rows((n, case.heads + 2 * case.kv_heads, case.dim), dtype, 0.0)
        q, k, v = packed.split([case.heads, case.kv_heads, case.kv_heads], 1)
    else:
        q = memory.rows((n, case.heads, case.dim), dtype, 0.0)
        k = memory.rows((m + tail, case.kv_heads, case.dim), dtype, filled(case.beyond))
        v = k[..., :value_dim] if adapter.values_in_keys else memory.rows((m + tail, case.kv_heads, value_dim), dtype, filled(case.beyond))
    for tensor, parts in ((q, values.q), (k, values.k), (v, values.v)):
        for begin, part in zip(offsets(tuple(part.shape[0] for part in parts)), parts):
            tensor[begin : begin + part.shape[0]] = part
    if case.beyond != "zero":
        q[sum(case.q_lens) :] = filled(case.beyond)
    more = [0] * case.pad_requests
    given = options(case, adapter, values)
    given |= {"causal": case.causal} if adapter.causal else {}
    given |= {"max_seqlen_q": max([*case.q_lens, 1])} if "max_seqlen_q" in adapter.takes else {}
    given |= {"max_seqlen_k": max([*case.kv_lens, 1])} if "max_seqlen_k" in adapter.takes else {}
    given |= {"cu_seqlens_q": memory.integers(offsets((*case.q_lens, *more))),
              "cu_seqlens_k": memory.integers(offsets((*case.kv_lens, *more)))}  # fmt: skip
    shape = (n, case.heads) if adapter.lse_layout == "nh" else (case.heads, n)
    given |= memory.outputs((n, case.heads, value_dim), shape)
    for what, tensor in (("q", q), ("k", k), ("v", v), ("cu_seqlens_q", given["cu_seqlens_q"])):
        memory.watch(what, tensor)
    out, raw = returned(adapter, adapter.call(q, k, v, **given))
    lse = raw if raw is None or adapter.lse_layout == "nh" else raw.T
    return Got(out.cpu(), None if lse is None else lse.cpu(), raw, memory.touched())


def call_dense(case: Case, adapter: Adapter, values: Values) -> Got:
    """q [B, Lq, H, D], k and v [B, Lk, Hk, D]; seq_lens_k [B] i32 where the backend takes it. lse [B, Lq, H] or [B, H, Lq]."""
    memory, dtype = Memory(case, adapter), getattr(torch, adapter.dtype)
    batch, q_len = len(case.q_lens), max(case.q_lens, default=0)
    has_lengths = "seq_lens_k" in adapter.takes
    kv_len = max(case.kv_lens, default=0) + (3 if has_lengths else 0)
    value_dim = adapter.value_dim or case.dim
    if case.layout == "packed":
        packed = memory.rows((batch, q_len, case.heads + 2 * case.kv_heads, case.dim), dtype, 0.0)
        q, k, v = packed.split([case.heads, case.kv_heads, case.kv_heads], 2)
    else:
        q = memory.rows((batch, q_len, case.heads, case.dim), dtype, 0.0)
        k = memory.rows((batch, kv_len, case.kv_heads, case.dim), dtype, filled(case.beyond))
        v = memory.rows((batch, kv_len, case.kv_heads, value_dim), dtype, filled(case.beyond))
    for tensor, parts in ((q, values.q), (k, values.k), (v, values.v)):
        for row, part in zip(tensor, parts):
            row[: part.shape[0]] = part
    given = options(case, adapter, values)
    given |= {"causal": case.causal} if adapter.causal else {}
    given |= {"seq_lens_k": memory.integers(case.kv_lens)} if has_lengths else {}
    shape = (batch, q_len, case.heads) if adapter.lse_layout == "nh" else (batch, case.heads, q_len)
    given |= memory.outputs((batch, q_len, case.heads, value_dim), shape)
    for what, tensor in (("q", q), ("k", k), ("v", v)):
        memory.watch(what, tensor)
    out, raw = returned(adapter, adapter.call(q, k, v, **given))
    lse = raw if raw is None or adapter.lse_layout == "nh" else raw.transpose(1, 2)
    rows = out.reshape(batch * q_len, case.heads, value_dim).cpu()
    return Got(rows, None if lse is None else lse.reshape(batch * q_len, case.heads).cpu(), raw, memory.touched())


def tables(case: Case, adapter: Adapter) -> tuple[torch.Tensor, int]:
    """The block table [B, P] of a case, and how many pages the caches have. Page 0 belongs to nobody."""
    size, batch = adapter.page_size, len(case.kv_lens) + case.pad_requests
    counts = [-(-max(length, 0) // size) for length in case.kv_lens]
    shared = min(counts, default=0) - 1 if case.pages == "shared" else 0  # whole pages that all requests begin with
    shared = max(shared, 0)
    total = sum(counts) - shared * max(len(counts) - 1, 0)
    numbers = torch.arange(1, total + 1)
    if case.pages != "straight":
        numbers = numbers[torch.randperm(total, generator=torch.Generator().manual_seed(3))]
    table = torch.zeros(batch, max([*counts, 1]) + 1, dtype=torch.int32)  # entries that nobody needs name page 0
    begin = shared
    for request, count in enumerate(counts):
        table[request, : min(shared, count)] = numbers[: min(shared, count)]
        own = max(count - shared, 0)
        table[request, shared : shared + own] = numbers[begin : begin + own]
        begin += own
    return table, total + 2


def call_paged(case: Case, adapter: Adapter, values: Values) -> Got:
    """One query a request: q [B, H, D], caches [pages, page_size, Hk, D], block_table [B, P] i32, seq_lens [B] i32."""
    memory, dtype, size = Memory(case, adapter), getattr(torch, adapter.dtype), adapter.page_size
    table, pages = tables(case, adapter)
    value_dim, batch = adapter.value_dim or case.dim, len(case.kv_lens) + case.pad_requests
    q = memory.rows((batch, case.heads, case.dim), dtype, 0.0)
    k = memory.rows((pages, size, case.kv_heads, case.dim), dtype, filled(case.beyond))
    v = k[..., :value_dim] if adapter.values_in_keys else memory.rows((pages, size, case.kv_heads, value_dim), dtype, filled(case.beyond))
    for request, (one, keys, numbers) in enumerate(zip(values.q, values.k, values.v)):
        q[request] = one[0]
        for position in range(0, keys.shape[0], size):
            page, part = int(table[request, position // size]), slice(position, position + size)
            k[page, : keys[part].shape[0]], v[page, : keys[part].shape[0]] = keys[part], numbers[part]
    given = options(case, adapter, values)
    lengths = [*case.kv_lens, *([case.pad_length] * case.pad_requests)]
    given |= {"block_table": memory.integers(table), "seq_lens": memory.integers(lengths)}
    shape = (batch, case.heads) if adapter.lse_layout == "nh" else (case.heads, batch)
    given |= memory.outputs((batch, case.heads, value_dim), shape)
    for what, tensor in (("q", q), ("block_table", given["block_table"]), ("seq_lens", given["seq_lens"])):
        memory.watch(what, tensor)
    if case.layout != "far":
        memory.watch("k_cache", k)
        memory.watch("v_cache", v)
    out, raw = returned(adapter, adapter.call(q, k, v, **given))
    lse = raw if raw is None or adapter.lse_layout == "nh" else raw.T
    return Got(out.cpu(), None if lse is None else lse.cpu(), raw, memory.touched())


FORMS = {"ragged": call_ragged, "dense": call_dense, "paged": call_paged}


def run(case: Case, adapter: Adapter, values: Values) -> Got:
    """One call."""
    with poisoned_memory():
        return FORMS[adapter.form](case, adapter, values)
