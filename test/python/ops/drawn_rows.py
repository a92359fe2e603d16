"""Drawers (see drawing.py) of functions that blank, count, move, quantise and reduce, and of their drop-ins. Results
are compared with contract.py or numpy."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, Callable

import numpy as np

import contract
from drawing import BF16, E4M3, F16, F32, INTEGERS, PAYLOADS, Draw, Slot
from mlafix import ops
from mlafix.compat import ring_attention, sglang, tensorrt_llm, vllm
from numerics import E5M2, same_bits, widen
from states import make_states
from test_ops_depth import EPSILON
from test_ops_depth import want as mixed
from test_ops_rope import tables

STORED = (*PAYLOADS, E4M3)
MOVED = (BF16, F16, F32, E4M3, E5M2, *INTEGERS, *(np.dtype(x) for x in (np.int8, np.uint8, np.bool_, np.float64, np.int16)))


def garbage(d: Draw, *shape: int, dtype: Any) -> np.ndarray:
    """Returns random bits of a dtype; bools are 0 or 1."""
    if dtype == np.bool_:
        return d.integers(0, 2, shape).astype(bool)
    return d.integers(0, 256, (*shape, np.dtype(dtype).itemsize)).astype(np.uint8).view(dtype).reshape(shape)


def check_kept(got: np.ndarray, before: np.ndarray, changed: np.ndarray, value: Any, what: str) -> None:
    """Checks that the elements selected by `changed` are exactly `value`, and that all others keep their bits."""
    want = before.copy()
    want[changed] = np.asarray(value).astype(before.dtype)
    assert same_bits(got, want), what


def count_of(d: Draw, count: int, most: int) -> Any:
    """Draws how to pass a count: as an int, or as a tensor whose value may also be out of range."""
    if d.yes():
        return d.array("live_rows", np.array([d.one([count, count, -3, most + 5])], np.int32))
    return count


def value_of(count: Any, most: int) -> int:
    return min(max(int(count.values[0]) if isinstance(count, Slot) else count, 0), most)


def draw_blank(d: Draw, name: str) -> None:
    """Draws calls of fill_pad_rows, fixup_zero_kv_rows, mask_empty_context and mask_empty_context_lse, and of their
    drop-ins."""
    n, heads, dim, dtype = d.size(), d.one([1, 2, 5]), d.one([8, 20, 64]), d.one(STORED)
    engine, _, function = name.rpartition(".")
    layout = {"sglang": "nh", "vllm": "hn"}.get(engine) or d.one(["hn", "nh"])
    out = d.updated("out", garbage(d, n, heads, dim, dtype=dtype), row=True)
    lse = d.updated("lse", garbage(d, *((heads, n) if layout == "hn" else (n, heads)), dtype=F32))
    more = {} if engine else {"lse_layout": layout}
    if function == "fill_pad_rows":
        live = count_of(d, int(d.integers(0, n + 1)), n)
        with_lse = d.yes(0.7)
        d.call(name, ops.fill_pad_rows, out, live, lse=lse if with_lse else None, **more)
        dead = np.arange(n) >= value_of(live, n)
    else:
        count = int(d.integers(1, 5))
        starts = np.array([0, *np.sort(d.integers(0, n + 1, count - 1)), n])
        lens = d.integers(-1, 3, count)
        contexts = np.concatenate([[0], np.cumsum(np.maximum(lens, 0))])
        with_lse, wide = True, d.one(INTEGERS)
        if function == "fixup_zero_kv_rows":
            given = d.array("kv_lens", lens.astype(np.int32)), d.array("starts", starts.astype(np.int32))
            call = {"": lambda: d.call(name, ops.fixup_zero_kv_rows, out, lse, *given, **more), "sglang": lambda: d.call(name, sglang.fixup_zero_kv_rows, out, lse, *given, 9)}
        else:
            given = d.array("starts", starts.astype(wide)), d.array("contexts", contexts.astype(d.one(INTEGERS)))
            if function.endswith("_lse"):
                call = {"": lambda: d.call(name, ops.mask_empty_context_lse, lse, *given, **more), "vllm": lambda: d.call(name, vllm.mask_empty_context_lse, lse, *given)}
            else:
                with_lse = bool(engine) or d.yes(0.7)
                call = {"": lambda: d.call(name, ops.mask_empty_context, out, lse if with_lse else None, *given, **more),
                        "vllm": lambda: d.call(name, vllm.mask_empty_context, lse, out, *given)}  # fmt: skip
        call[engine]()
        dead = contract.dead_rows(n, lens, starts)
    sums = lse.fetch().T if layout == "hn" else lse.fetch()
    before = lse.values.T if layout == "hn" else lse.values
    check_kept(out.fetch(), out.values, dead & (not function.endswith("_lse")), 0.0, "out")
    check_kept(np.ascontiguousarray(sums), np.ascontiguousarray(before), dead & with_lse, -np.inf, "lse")


def draw_indices(d: Draw, name: str) -> None:
    n, heads, dim, dtype = d.size(), d.one([1, 5]), d.one([8, 64]), d.one(PAYLOADS)
    layout = d.one([None, "hn", "nh"])
    out = d.updated("out", garbage(d, n, heads, dim, dtype=dtype), row=True)
    lse = d.updated("lse", garbage(d, *((n, heads) if layout == "nh" else (heads, n)), dtype=F32)) if d.yes(0.7) else None
    indices = np.where(d.rng.random((n, int(d.integers(1, 9)))) < 0.6, d.integers(-9, 0, 1), d.integers(0, 99, 1)).astype(d.one(INTEGERS))
    d.call(name, ops.blank_rows_without_indices, out, d.array("indices", indices, row=True), lse=lse, lse_layout=layout)
    dead = (indices < 0).all(axis=1)
    check_kept(out.fetch(), out.values, dead, 0.0, "out")
    if lse is not None:
        turned = (lambda x: x) if layout == "nh" else (lambda x: np.ascontiguousarray(x.T))
        check_kept(turned(lse.fetch()), turned(lse.values), dead, -np.inf, "lse")


def draw_flags(d: Draw, name: str) -> None:
    n, m = d.size(12), d.size(12)
    if name == "clear_pad_flags":
        flags = d.updated("flags", garbage(d, n, dtype=np.bool_))
        live = count_of(d, int(d.integers(0, n + 1)), n)
        d.call(name, ops.clear_pad_flags, flags, live)
        check_kept(flags.fetch(), flags.values, np.arange(n) >= value_of(live, n), False, "flags")
        return
    dtype = d.one(INTEGERS)
    computed, prompt = (d.array(key, d.integers(0, 5, m).astype(dtype)) for key in ("computed", "prompt"))
    if name == "mark_prefilling":
        flags = d.output("flags", (n,), np.bool_, row=False)
        live = count_of(d, int(d.integers(0, n + 1)), n)
        d.call(name, ops.mark_prefilling, flags, computed, prompt, live)
        got = flags.fetch()
    else:
        padded = int(d.integers(0, m + 4)) if d.yes() or name.startswith("vllm") else None
        n = m if padded is None else padded
        live = int(d.integers(0, n + 1)) if d.yes() or name.startswith("vllm") else None
        made = d.call(name, vllm.is_prefilling, computed, prompt, live, padded) if name.startswith("vllm") else d.call(
            name, ops.is_prefilling, computed, prompt, live_rows=live, padded=padded)  # fmt: skip
        got, live = d.numpy_of(made), m if live is None else live
    assert np.array_equal(got, contract.prefilling(computed.values, prompt.values, n, value_of(live, n)))


def draw_lens(d: Draw, name: str) -> None:
    """Draws calls of expand_context_lens, cumulate_lens, lens_of_rank and pages_of_rank."""
    r, dtype = d.size(12), d.one(INTEGERS)
    lens = d.array("lens", d.integers(-2, 30, r).astype(np.int32 if "expand" in name else dtype))
    live = count_of(d, int(d.integers(0, r + 1)), r) if d.yes() and not name.startswith("vllm") else None
    alive = np.where(np.arange(r) < (r if live is None else value_of(live, r)), lens.values, 0)
    if "expand_context_lens" in name:
        decodes, longest = r, int(d.integers(1, 5))
        buffer = d.updated("buffer", d.integers(50, 99, decodes * longest + 3).astype(np.int32), plain=True)
        function = vllm.expand_context_lens if name.startswith("vllm") else ops.expand_context_lens
        made = d.call(name, function, buffer, lens, decodes, longest, live_rows=live)
        want = contract.context_lens(lens.values, decodes, longest, r if live is None else value_of(live, r))
        assert np.array_equal(d.numpy_of(made), want) and np.array_equal(buffer.fetch()[decodes * longest :], buffer.values[decodes * longest :])
    elif name == "cumulate_lens":
        size = int(d.integers(0, r + 4))
        out = d.output("out", (size,), d.one(INTEGERS), row=False) if d.yes() else None
        made = d.call(name, ops.cumulate_lens, lens, live_rows=live, out=out)
        sums = np.concatenate([[0], np.cumsum(np.maximum(alive.astype(np.int64), 0))])
        got = d.result(made, out)
        assert np.array_equal(got, sums[np.minimum(np.arange(len(got)), r)])
    else:
        ranks, interleave = int(d.integers(1, 5)), int(d.integers(1, 4))
        rank = int(d.integers(0, ranks))
        way = d.one(["new", "out", "itself"])
        out = None if way == "new" else lens if way == "itself" else d.output("out", (int(d.integers(0, r + 4)),), dtype, row=False)
        lens.is_written |= way == "itself"
        if isinstance(live, int) and out is not None:
            live = min(live, len(out.values))
        made = d.call(name, ops.lens_of_rank, lens, rank, ranks, interleave=interleave, live_rows=live, out=out)
        each = [int((np.arange(max(int(x), 0)) // interleave % ranks == rank).sum()) for x in alive]
        got = d.result(made, out)
        assert np.array_equal(got, [each[i] if i < r else 0 for i in range(len(got))])


def draw_pages(d: Draw, name: str) -> None:
    n, w, q, m = d.size(), d.size(5), int(d.integers(1, 4)), int(d.integers(1, 20))
    ranks, page = int(d.integers(1, 4)), int(d.integers(1, 4))
    rank, pad = int(d.integers(0, ranks)), int(d.integers(-2, 5))
    out = d.output("out", (n, w), d.one(INTEGERS), row=False)
    table = d.array("table", d.integers(-1, 100, (q, m)).astype(d.one(INTEGERS)))
    requests, lens = (d.array(key, d.integers(-1, most, n).astype(d.one(INTEGERS))) for key, most in (("requests", q + 1), ("lens", w * page + 2)))
    live = count_of(d, int(d.integers(0, n + 1)), n) if d.yes() else None
    d.call(name, ops.pages_of_rank, out, table, requests, lens, rank, ranks, page, pad_page=pad, live_rows=live)
    for i in range(n):
        for j in range(w):
            row, at = requests.values[i], rank + j * page * ranks
            known = i < (n if live is None else value_of(live, n)) and j * page < lens.values[i] and 0 <= row < q and at < m
            place = table.values[row, at] if known else -1
            assert out.fetch()[i, j] == (place // ranks // page if place >= 0 else pad), (i, j)


def draw_metadata(d: Draw, name: str) -> None:
    r, c, t, b, w = (d.size() for _ in range(5))
    live = count_of(d, int(d.integers(0, r + 1)), r)
    lens = d.updated("lens", d.integers(-2, 9, r).astype(d.one(INTEGERS)))
    starts = d.updated("starts", np.sort(d.integers(0, t + 1, c)).astype(d.one(INTEGERS))) if d.yes() else None
    slots = d.updated("slots", d.integers(0, 99, t).astype(d.one(INTEGERS))) if d.yes() else None
    table = d.updated("table", d.integers(0, 99, (b, w)).astype(d.one(INTEGERS))) if d.yes() else None
    tokens = d.one([None, int(d.integers(0, t + 1))])
    pad_slot, pad_block = d.one([None, -7]), d.one([None, 3])
    d.call(name, ops.pad_metadata, lens, live, cu_seqlens=starts, slots=slots, block_table=table, live_tokens=tokens, pad_slot=pad_slot, pad_block=pad_block)
    count = max(int(live.values[0]), 0) if isinstance(live, Slot) else live
    check_kept(lens.fetch(), lens.values, (np.arange(r) >= count) | (lens.values < 0), 0, "lens")
    if starts is not None and c:
        check_kept(starts.fetch(), starts.values, np.arange(c) > count, starts.values[min(count, c - 1)], "starts")
    if slots is not None:
        of_starts = t if starts is None else int(starts.values[min(count, c - 1)]) if c else 0
        until = of_starts if tokens is None else tokens
        check_kept(slots.fetch(), slots.values, np.arange(t) >= until, -1 if pad_slot is None else pad_slot, "slots")
    if table is not None:
        check_kept(table.fetch(), table.values, np.arange(b) >= count, 0 if pad_block is None else pad_block, "table")


def draw_row(d: Draw, name: str) -> None:
    """Draws calls of softmax, rmsnorm and quantize_fp8_static."""
    n, dim, dtype = d.size(), d.one([1, 7, 8, 64, 200]), d.one(PAYLOADS)
    x = d.array("x", d.normal(n, dim, scale=d.one([0.1, 1, 30]), dtype=dtype), row=True)
    way = d.one(["new", "out", "itself"])
    if name == "quantize_fp8_static":
        scale = float(np.float32(d.rng.uniform(0.01, 3)))
        out = None if way == "new" else d.output("out", (n, dim), E4M3)
        made = d.call(name, ops.quantize_fp8_static, x, d.array("scale", np.full((1,) * int(d.integers(0, 4)), scale, F32)) if d.yes() else scale, out=out)
        contract.quantize_fp8(x.values, scale).check(d.result(made, out), "out")
        return
    out = None if way == "new" else x if way == "itself" else d.output("out", (n, dim), dtype)
    x.is_written |= way == "itself"
    if name == "softmax":
        scale = d.one([None, 0.0, 0.5, 3.0])
        made, want = d.call(name, ops.softmax, x, scale=scale, out=out), contract.softmax(x.values, 1.0 if scale is None else scale)
    else:
        weight, epsilon = d.array("weight", d.normal(dim, dtype=dtype), row=True), d.one([None, 1e-3])
        residual = d.updated("residual", d.normal(n, dim, dtype=dtype), row=True) if d.yes() else None
        made = d.call(name, ops.rmsnorm, x, weight, epsilon=epsilon, residual=residual, out=out)
        total = x.values if residual is None else x.values.astype(F32) + residual.values.astype(F32)
        assert residual is None or same_bits(residual.fetch(), total.astype(dtype))
        want = contract.rmsnorm(total, weight.values, 1e-6 if epsilon is None else float(np.float32(epsilon)))
    loose = contract.Expected(want.value, 2 + 8 * np.abs(want.value), want.exact)
    loose.check(d.result(made, out), "out")


def draw_experts(d: Draw, name: str) -> None:
    n, dim, count, many, dtype = d.size(), d.one([8, 64, 200]), int(d.integers(1, 5)), int(d.integers(1, 9)), d.one(PAYLOADS)
    rows = d.array("rows", d.normal(many, dim, dtype=dtype), row=True)
    places = d.array("places", d.integers(-2, many + 2, (n, count)).astype(d.one(INTEGERS)))
    weights = d.array("weights", d.normal(n, count, dtype=d.one(PAYLOADS)))
    shared = d.array("shared", d.normal(n, dim, dtype=dtype), row=True) if d.yes() else None
    out = d.one([None, shared, d.output("out", (n, dim), dtype)])
    if out is not None:
        out.is_written = True
    made = d.call(name, ops.combine_experts, rows, places, weights, shared=shared, out=out)
    known = (places.values >= 0) & (places.values < many)
    terms = np.where(known, widen(weights.values), 0.0)[..., None] * widen(rows.values)[np.where(known, places.values, 0)]
    added = np.zeros((n, dim)) if shared is None else widen(shared.values)
    want = contract.Expected(terms.sum(1) + added, np.abs(terms).sum(1) + np.abs(added), np.zeros((n, dim), bool))
    want.check(d.result(made, out), "out")


def draw_groups(d: Draw, name: str) -> None:
    from drawn_merges import draw_form

    n, heads, dim, dtype = int(d.integers(1, 7)), d.one([1, 3]), d.one([64, 128]), d.one(PAYLOADS)
    form = draw_form(d, (), n, heads, dim)
    if type(form.format) is ops.Fp8:
        return
    x = d.array("x", d.normal(n, heads, dim, scale=d.one([1e-4, 1, 200]), dtype=dtype), row=True)
    is_fp4 = form.format.is_fp4
    out = d.output("out", (n, heads, dim // 2 if is_fp4 else dim), np.uint8 if is_fp4 else E4M3) if d.yes() else None
    made = d.call(name, ops.quantize_groups, x, form.format, out=out)
    form.check(d.result(made, out), x.values.astype(F32))


def draw_depth(d: Draw, name: str) -> None:
    n, dim, count, dtype = d.size(), d.one([8, 72]), int(d.integers(0, 5)), d.one(PAYLOADS)
    prefix = d.array("prefix", d.normal(n, dim, dtype=dtype), row=True)
    bank = d.array("bank", d.normal(n, count, dim, dtype=dtype), row=True)
    weights = [d.array(f"weight{i}", d.normal(dim, scale=0.3, dtype=d.one(PAYLOADS)), row=True) for i in range(2)]
    has_norm = d.yes()
    snapshot = d.output("snapshot", (n, dim), dtype) if d.yes() else None
    out = d.output("out", (n, dim), dtype) if d.yes() else None
    made = d.call(name, ops.mix_depth, prefix, bank, weights[0], out_weight=weights[1] if has_norm else None, epsilon=EPSILON,
                  out_epsilon=d.one([None, EPSILON]), snapshot=snapshot, out=out)  # fmt: skip
    value = mixed(prefix.values, bank.values, weights[0].values, weights[1].values if has_norm else None, EPSILON)
    got = widen(d.result(made, out))
    assert (np.abs(got - value) <= 3e-5 * (1 + np.abs(value)) + np.abs(value) * {F32: 0.0, BF16: 2.0**-8, F16: 2.0**-11}[dtype] + 2.0**-24).all()
    assert snapshot is None or same_bits(snapshot.fetch(), prefix.values)


def draw_blocks(d: Draw, name: str) -> None:
    def cache(i: int, dtype: Any, shape: tuple[int, ...]) -> Slot:
        return d.updated(f"cache{i}", garbage(d, *shape, dtype=dtype), row=True, plain=len(shape) > 3)

    m = int(d.integers(1, 7))
    many = d.yes()
    has_kept = d.yes()
    shapes = [(2, 8), (3, 2, 8)] if has_kept else [(8,), (2, 8), (3, 2, 8)]
    caches = [cache(i, d.one(MOVED), (m, *d.one(shapes))) for i in range(int(d.integers(1, 4)) if many else 1)]
    ids = d.array("ids", d.integers(-2, m + 2, d.size()).astype(d.one(INTEGERS)))
    kept = d.array("kept", d.integers(-1, 4, len(ids.values)).astype(d.one(INTEGERS))) if has_kept else None
    d.call(name, ops.zero_blocks, caches if many else caches[0], ids, kept=kept)
    if kept is not None:
        for slot in caches:
            dead = np.zeros(slot.values.shape[:2], bool)
            for block, count in zip(ids.values, kept.values):
                if 0 <= block < m:
                    dead[block, max(count, 0) :] = True
            check_kept(slot.fetch(), slot.values, dead, 0, slot.name)
        return
    cleared = np.isin(np.arange(m), ids.values)
    for slot in caches:
        check_kept(slot.fetch(), slot.values, cleared, 0, slot.name)


def draw_stored(d: Draw, name: str) -> None:
    pages, size, heads, dim, n = int(d.integers(1, 5)), int(d.integers(1, 4)), d.one([1, 3]), d.one([7, 64]), d.size()
    cache = d.updated("cache", garbage(d, pages, size, heads, dim, dtype=d.one(PAYLOADS)), row=True, plain=True)
    rows = d.array("rows", d.normal(n, heads, dim, dtype=d.one(PAYLOADS)), row=True)
    slots = np.full(n, -1)
    known = d.rng.permutation(pages * size)[:n]
    slots[: len(known)] = known
    slots[d.rng.random(n) < 0.2] = pages * size
    d.call(name, ops.store_rows, cache, rows, d.array("slots", slots.astype(d.one(INTEGERS))))
    want = cache.values.copy()
    for slot, row in zip(slots, rows.values):
        if 0 <= slot < pages * size:
            want[slot // size, slot % size] = row.astype(F32).astype(want.dtype)
    assert same_bits(cache.fetch(), want)


def draw_packed(d: Draw, name: str) -> None:
    count, dtype, shape = int(d.integers(1, 5)), d.one(MOVED), d.one([(1,), (8,), (3, 8)])
    lengths = d.integers(0, 5, count)
    starts, total, most = np.array([0, *np.cumsum(lengths)], np.int32), int(lengths.sum()), int(d.integers(0, 6))
    if name == "pack_rows" or name == "vllm.pack_seq_triton":
        most = most if name == "pack_rows" else int(lengths.max())
        x = d.array("x", garbage(d, total, *shape, dtype=dtype), row=True, plain=len(shape) > 1)
        is_float, is_int = dtype in (BF16, F16, F32, E4M3, E5M2), dtype in (*INTEGERS, np.int8, np.uint8)
        pad = d.one([None, 0.0, -math.inf, 2.5] if is_float else [None, 0, 7] if is_int else [None, 0])
        if name == "pack_rows":
            out = d.output("out", (count, most, *shape), dtype, plain=len(shape) > 1) if d.yes() else None
            got = d.result(d.call(name, ops.pack_rows, x, d.array("starts", starts), most, pad=pad, out=out), out)
        else:
            pad = 0.0 if pad is None else pad
            got = d.numpy_of(d.call(name, vllm.pack_seq_triton, x, d.array("lengths", lengths.astype(d.one(INTEGERS))), pad_value=pad))
        with np.errstate(over="ignore"):
            value = np.asarray(0 if pad is None else pad, np.float32).astype(dtype)
            value = np.asarray(-448, dtype) if dtype == E4M3 and pad == -math.inf else value
        want = np.empty((count, most, *shape), dtype)
        for i, length in enumerate(lengths):
            want[i], kept = value, min(int(length), most)
            want[i, :kept] = x.values[starts[i] : starts[i] + kept]
        if dtype == E5M2 and pad == -math.inf or dtype == E4M3 and pad == -math.inf:
            return
        assert same_bits(got, want)
        return
    padded = d.array("padded", garbage(d, count, most, *shape, dtype=dtype), row=True, plain=len(shape) > 1)
    extra = int(d.integers(0, 3)) if name == "unpack_rows" else 0
    want = garbage(d, total + extra, *shape, dtype=dtype)
    if name == "unpack_rows":
        out = d.updated("out", want, row=True, plain=len(shape) > 1)
        d.call(name, ops.unpack_rows, padded, d.array("starts", starts), out=out)
        got = out.fetch()
    else:
        got = d.numpy_of(d.call(name, vllm.unpack_seq_triton, padded, d.array("lengths", lengths.astype(d.one(INTEGERS)))))
    for i, length in enumerate(lengths):
        want[starts[i] : starts[i + 1]] = np.zeros((), dtype)
        kept = min(int(length), most)
        want[starts[i] : starts[i] + kept] = padded.values[i, :kept]
    assert same_bits(got, want)


def draw_turned(d: Draw, name: str) -> None:
    n, heads, dim, dtype = d.size(), d.one([1, 3]), d.one([2, 8, 64]), d.one(PAYLOADS)
    x = d.updated("x", d.normal(n, heads, dim, dtype=dtype), row=True)
    flat = tables(d.rng, dim, d.one([dtype, F32]))
    positions = d.integers(-1, 9, n)
    interleaved = d.one([None, True])
    shaped = flat if d.yes() else flat.reshape(len(flat), 2, -1)
    d.call(name, ops.apply_rope, x, d.array("positions", positions.astype(d.one(INTEGERS))), d.array("table", shaped, row=True, plain=shaped is flat), interleaved=interleaved)
    known = (positions >= 0) & (positions < len(flat))
    rows = np.where(known[:, None], widen(flat)[np.where(known, positions, 0)], 0.0)[:, None]
    c, s, before = rows[..., : dim // 2], rows[..., dim // 2 :], widen(x.values)
    a, b = (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(0, dim // 2), slice(dim // 2, None))
    want, size = np.zeros_like(before), np.zeros_like(before)
    want[..., a], want[..., b] = before[..., a] * c - before[..., b] * s, before[..., b] * c + before[..., a] * s
    size[..., a] = size[..., b] = np.abs(before[..., a]) + np.abs(before[..., b])
    contract.Expected(want, size, np.zeros(want.shape, bool)).check(x.fetch(), "x")


def draw_stats(d: Draw, name: str) -> None:
    """Draws calls of merge_attn_stats, and of the drop-ins for TensorRT-LLM's functions after helix's exchange."""
    n, heads, dim, dtype = d.size(), d.one([1, 3]), d.one([8, 64]), d.one(PAYLOADS)
    count = 2 if name == "merge_attn_stats" else int(d.integers(1, 5))
    scale = float(np.float32(d.rng.uniform(0.05, 2)))
    v = d.normal(count, n, heads, dim, dtype=dtype)
    stats = np.stack([d.normal(count, n, heads, scale=4), d.rng.uniform(0.5, 9, (count, n, heads)).astype(F32)], -1)
    stats[d.rng.random(stats.shape[:-1]) < 0.15] = d.one([(-np.inf, 1), (1, 0)])
    factor = scale if name == "merge_attn_stats" else 1.0
    out, _ = contract.merge(v, contract.stats_to_lse(stats, factor), out_dtype=None)
    if name == "merge_attn_stats":
        rows, sums = [d.array(f"v{i}", v[i], row=True) for i in range(2)], [d.array(f"s{i}", stats[i]) for i in range(2)]
        ours = d.one([None, rows[0], rows[1], d.output("out", (n, heads, dim), dtype)])
        ours_stats = d.one([None, sums[0], sums[1], d.output("stats", (n, heads, 2), F32, row=False)])
        for slot in (ours, ours_stats):
            if slot is not None:
                slot.is_written = True
        made, _ = d.call(name, ops.merge_attn_stats, rows[0], sums[0], rows[1], sums[1], scale, out=ours, out_stats=ours_stats)
        got = d.result(made, ours)
    elif name.endswith("native"):
        got = d.numpy_of(d.call(name, tensorrt_llm.helix_post_process_native, d.array("o", v.swapaxes(0, 1), row=True), d.array("s", stats.swapaxes(0, 1)), scale, 1))
    else:
        flat = d.array("o", v.reshape(count, n, heads * dim), row=True)
        got = d.numpy_of(d.call(name, tensorrt_llm.helix_post_process, flat, d.array("s", stats), scale))
    factor = 1.0 if name == "merge_attn_stats" else scale
    want = contract.Expected(out.value * factor, out.magnitude * factor, out.value == 0)
    want.check(got.reshape(n, heads, dim), "out")


def draw_ranks(d: Draw, name: str) -> None:
    """Draws calls of drop-ins for one rank's part of a merge over ranks: correct_attn_out of vLLM and SGLang, and
    SGLang's dcp_lse_combine_triton and dcp_pack_a2a_send."""
    ranks, n, heads, dim, dtype = int(d.integers(1, 5)), d.size(), d.one([1, 3]), d.one([8, 64]), d.one(PAYLOADS)
    made = make_states(d.rng, ranks, n, heads, dim, dtype)
    if name == "sglang.dcp_pack_a2a_send":
        room, kind = n + int(d.integers(0, 3)), d.one([BF16, F32, np.dtype(np.uint8)])
        rows, lse = d.array("rows", garbage(d, n, ranks * heads, dim, dtype=kind), row=True), d.array("lse", d.normal(n, ranks * heads))
        out, sums = d.updated("out", garbage(d, ranks, room, heads, dim, dtype=kind), row=True), d.updated("sums", d.normal(ranks, room, heads))
        d.call(name, sglang.dcp_pack_a2a_send, rows, lse, out, sums)
        for slot, source in ((out, rows.values), (sums, lse.values)):
            want = slot.values.copy()
            want[:, :n] = source.reshape(n, ranks, heads, *source.shape[2:]).swapaxes(0, 1)
            assert same_bits(slot.fetch(), want)
        return
    base = d.yes()
    number = np.e if base else 2.0
    if name == "sglang.dcp_lse_combine_triton":
        got, lse = d.call(name, sglang.dcp_lse_combine_triton, d.array("v", made.v, row=True), d.array("s", made.s), base, True)
        want, want_lse = contract.merge(made.v, made.s, base=number, out_dtype=dtype)
        want.check(d.numpy_of(got), "out")
    else:
        rank = int(d.integers(0, ranks))
        shares = d.array("lses", made.s)
        if name.startswith("vllm"):
            out = d.updated("out", made.v[rank], row=True)
            _, lse = d.call(name, vllm.correct_attn_out, out, shares, rank, None, base)
        else:
            out = d.output("new", (heads, n, dim), d.one(PAYLOADS)) if d.yes() else None
            rows, lse = d.call(name, sglang.correct_attn_out, d.array("out", made.v[rank], row=True), shares, rank, None, new_output=out, is_lse_base_on_e=base)
            assert d.result(rows, out).shape == (heads, n, dim)
        _, want_lse = contract.merge(made.v, made.s, base=number, out_dtype=None)
    want_lse.check(d.numpy_of(lse), "lse")


def draw_ring(d: Draw, name: str) -> None:
    batch, n, heads, dim, dtype = int(d.integers(1, 3)), int(d.integers(2, 7)), d.one([1, 3]), d.one([8, 64]), d.one(PAYLOADS)
    first = int(d.integers(0, n)) if d.yes() else None
    size = n - (first or 0)
    begun, block = make_states(d.rng, 1, batch * n, heads, dim, F32), make_states(d.rng, 1, batch * size, heads, dim, dtype)
    v, s = begun.v[0].reshape(batch, n, heads, dim), begun.s[0].reshape(batch, n, heads)
    w, t = block.v[0].reshape(batch, size, heads, dim), block.s[0].reshape(batch, size, heads)
    out, lse = d.updated("out", v, row=True), d.updated("lse", s[..., None])
    d.call(name, ring_attention.update_out_and_lse, out, lse, d.array("block", w, row=True), d.array("block_lse", t.swapaxes(1, 2)),
           slice_=None if first is None else (slice(None), slice(first, None)))  # fmt: skip
    begin = first or 0
    want, want_lse = contract.merge(np.stack([v[:, begin:], w.astype(F32)]), np.stack([s[:, begin:], t]))
    want.check(np.ascontiguousarray(out.fetch()[:, begin:]), "out")
    want_lse.check(np.ascontiguousarray(lse.fetch()[:, begin:, :, 0]), "lse")
    assert same_bits(np.ascontiguousarray(out.fetch()[:, :begin]), np.ascontiguousarray(v[:, :begin]))


def draw_chunks(d: Draw, name: str) -> None:
    """Draws calls of vLLM's neutralize_empty_context_partials, which blanks the rows of requests without context."""
    n, heads, dim, dtype = int(d.integers(4, 9)), d.one([1, 3]), d.one([8, 64]), d.one(PAYLOADS)
    out, lse = d.updated("out", garbage(d, n, heads, dim, dtype=dtype), row=True), d.updated("lse", d.normal(heads, n))
    empty = [slice(0, 1), slice(2, 3), slice(3, 4)]
    d.call(name, vllm.neutralize_empty_context_partials, SimpleNamespace(empty_token_slices=empty), out, lse)
    dead = np.isin(np.arange(n), [0, 2, 3])
    check_kept(out.fetch(), out.values, dead, 0.0, "out")
    check_kept(np.ascontiguousarray(lse.fetch().T), np.ascontiguousarray(lse.values.T), dead, -np.inf, "lse")


ROWS: dict[str, Callable[[Draw, str], None]] = {
    **dict.fromkeys(("fill_pad_rows", "fixup_zero_kv_rows", "mask_empty_context", "mask_empty_context_lse", "sglang.fixup_zero_kv_rows",
                     "vllm.mask_empty_context", "vllm.mask_empty_context_lse"), draw_blank),
    **dict.fromkeys(("clear_pad_flags", "mark_prefilling", "is_prefilling", "vllm.is_prefilling"), draw_flags),
    **dict.fromkeys(("expand_context_lens", "vllm.expand_context_lens", "cumulate_lens", "lens_of_rank"), draw_lens),
    "blank_rows_without_indices": draw_indices, "pages_of_rank": draw_pages, "pad_metadata": draw_metadata,
    **dict.fromkeys(("softmax", "rmsnorm", "quantize_fp8_static"), draw_row), "quantize_groups": draw_groups, "combine_experts": draw_experts, "mix_depth": draw_depth,
    "zero_blocks": draw_blocks, "store_rows": draw_stored, **dict.fromkeys(("pack_rows", "unpack_rows", "vllm.pack_seq_triton", "vllm.unpack_seq_triton"), draw_packed),
    "apply_rope": draw_turned,
    **dict.fromkeys(("merge_attn_stats", "tensorrt_llm.helix_post_process", "tensorrt_llm.helix_post_process_native"), draw_stats),
    **dict.fromkeys(("vllm.correct_attn_out", "sglang.correct_attn_out", "sglang.dcp_lse_combine_triton", "sglang.dcp_pack_a2a_send"), draw_ranks),
    "ring_attention.update_out_and_lse": draw_ring, "vllm.neutralize_empty_context_partials": draw_chunks,
}  # fmt: skip
"""The drawer of each function, which draws a call, makes it and checks its results."""
