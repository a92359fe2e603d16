"""Drawers (see drawing.py) of the functions that merge states. They draw states of every kind, every optional argument
and every format, and compare results with f64."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

import contract
from drawing import E4M3, F32, PAYLOADS, Draw, Slot
from mlafix import ops
from mlafix.compat import attn_gym, cache_dit, flash_attn, flashinfer, sglang, tokenspeed, vllm
from numerics import E8M0, round_to, same_bits, widen
from states import EMPTY, EMPTY_FA2, NAN, ORDINARY, ZERO, make_states
from test_ops_counted import Parts, valid
from test_ops_counted import S as SPLITS
from test_ops_counted import check as check_counted
from test_ops_fp4 import nvfp4
from test_ops_mapped import some as some_groups
from test_ops_mxfp4 import mxfp4
from test_ops_rope import check as check_turned
from test_ops_rope import tables, turn
from test_ops_scaled import quantised

BASE = {"e": np.e, "2": 2.0}
Build = Callable[[Callable[..., Any], Callable[[np.ndarray], np.ndarray]], dict[str, Any]]
"""A function that returns the arrays of a call by argument name. Its first parameter places an array in memory; its
second converts a payload before it is placed."""


@dataclass
class Merge:
    """A randomly drawn merge.

    Args:
        build: makes the arrays that the call passes.
        v, s: the states [K, n, H, D] and [K, n, H]; the lses of state k have the base `bases[k]`.
        present: [K, n, H], true for states that are merged.
        out_base: the base of the resulting lse.
        extra: further arguments of the call.
        sinks: [H] in base e, or None. They have weight in the rows, and with `sinks_in_lse` also in the lse.
        lead: the dims of the results before n.
        layout: the layout of the lse.
        onto: the inputs that "out" and "out_lse" may alias, by output; None if there are none.
        out_dtype: the dtype of the result, or None if it is that of the payloads.
    """

    build: Build
    v: np.ndarray
    s: np.ndarray
    present: np.ndarray
    bases: list[str]
    out_base: str
    extra: dict[str, Any]
    sinks: np.ndarray | None = None
    sinks_in_lse: bool = False
    lead: tuple[int, ...] = ()
    layout: str = "nh"
    onto: dict[str, list[str]] | None = None
    out_dtype: Any = None


def states(d: Draw, count: int, n: int, heads: int, dim: int, dtype: Any, *, faint: bool) -> tuple[np.ndarray, np.ndarray]:
    kinds = None if faint else d.rng.choice([ORDINARY, EMPTY, EMPTY_FA2, NAN, ZERO], (count, n, heads), p=[0.5, 0.15, 0.15, 0.05, 0.15])
    made = make_states(d.rng, count, n, heads, dim, dtype, kinds=kinds)
    return made.v, made.s


def wanted(m: Merge, dtype: Any) -> tuple[contract.Expected, contract.Expected]:
    """Returns the expected rows and lses [n, H] of a merge."""
    one_base = len({BASE[base] for base in (*m.bases, m.out_base)}) == 1
    with np.errstate(invalid="ignore"):
        lses = m.s if one_base else np.stack([lse.astype(np.float64) * np.log(BASE[base]) for lse, base in zip(m.s, m.bases)] or [m.s.reshape(0)])
        lses = lses.reshape(m.s.shape)
    base = BASE[m.out_base] if one_base else np.e
    out, lse = contract.merge(m.v, lses, base=base, out_dtype=dtype, present=m.present)
    if m.sinks is not None:
        v = np.concatenate([m.v, np.zeros((1, *m.v.shape[1:]), m.v.dtype)])
        s = np.concatenate([lses, np.broadcast_to((m.sinks / np.log(base)).astype(lses.dtype), (1, *m.s.shape[1:]))])
        with_sinks = contract.merge(v, s, base=base, out_dtype=dtype, present=np.concatenate([m.present, np.ones((1, *m.s.shape[1:]), bool)]))
        out, lse = with_sinks[0], with_sinks[1] if m.sinks_in_lse else lse
        out = contract.Expected(out.value, out.magnitude, out.exact & ~np.isfinite(out.value))
    value = lse.value if one_base else lse.value / np.log(BASE[m.out_base])
    exact = lse.exact & (one_base & (m.sinks is None or not m.sinks_in_lse) | ~np.isfinite(value))
    return out, contract.Expected(value, np.maximum(2, 2 * np.nan_to_num(np.abs(value), posinf=1, neginf=1)), exact)


@dataclass
class Form:
    """A format of results. `check` compares stored rows and scales with the f32 rows [n, H, D] of the same merge
    without a format."""

    format: Any
    check: Callable[[np.ndarray, np.ndarray], None]
    source: str = "f32"


def draw_form(d: Draw, lead: tuple[int, ...], n: int, heads: int, dim: int) -> Form:
    """Draws a format for rows whose size is a multiple of 64 elements."""
    shape, kind = (*lead, n, heads), d.one(["Fp8", "Fp8Groups", "Fp8Groups", "MxFp8", "MxFp4", "NvFp4"])
    source = d.one(["f32", "output"])
    if kind == "Fp8":
        scale = float(np.float32(d.rng.uniform(0.01, 2)))

        def check_static(rows: np.ndarray, plain: np.ndarray) -> None:
            with np.errstate(over="ignore", invalid="ignore"):
                inverse = np.float32(1) / np.float32(scale)
                same_codes(rows, round_to(E4M3, (plain * inverse).astype(np.float64)).astype(np.float32).astype(E4M3))

        return Form(ops.Fp8(d.array("scale", np.full((1,), scale, F32)).given if d.yes() else scale), check_static)
    size = 16 if kind == "NvFp4" else 32 if kind != "Fp8Groups" else d.one([16, 32, 64, dim])
    groups = dim // size
    flat = d.yes()
    powers = kind == "MxFp8" or (kind == "Fp8Groups" and d.yes(0.3))
    dtype = {"Fp8Groups": d.one([F32, E8M0]) if powers else F32, "NvFp4": np.dtype(np.uint8)}.get(kind, d.one([E8M0, np.dtype(np.uint8)]))
    slot = d.output("scales", (*shape[:-1], heads * groups) if flat else (*shape, groups), dtype, row=False)
    number = float(np.float32(d.rng.uniform(1, 900)))
    rule = d.one(["floor", "ceil"])
    made = {"Fp8Groups": lambda: ops.Fp8Groups(slot.given, power_of_two=powers, quantize_from=source), "MxFp8": lambda: ops.MxFp8(slot.given, quantize_from=source),
            "MxFp4": lambda: ops.MxFp4(slot.given, rounding=rule, quantize_from=source), "NvFp4": lambda: ops.NvFp4(slot.given, number, quantize_from=source)}[kind]()  # fmt: skip

    def check(rows: np.ndarray, plain: np.ndarray) -> None:
        if kind == "NvFp4":
            codes, scales = nvfp4(plain, number)
        elif kind == "MxFp4":
            codes, scales = mxfp4(plain, rule)
        else:
            codes, numbers = quantised(plain, groups, powers)
            scales = numbers if dtype == F32 else numbers.astype(E8M0).view(np.uint8)
        got = slot.fetch().reshape(scales.shape)
        got = got if dtype == F32 else got.view(np.uint8)
        assert np.array_equal(got, scales, equal_nan=dtype == F32), f"scales of {kind}"
        same_codes(rows, codes)

    return Form(made, check, source)


def same_codes(rows: np.ndarray, codes: np.ndarray) -> None:
    """Asserts equal codes: fp8 up to the sign of NaN, or bytes of fp4."""
    got, want = rows.reshape(codes.shape), codes
    if codes.dtype == E4M3:
        nan = np.isnan(widen(want))
        assert np.array_equal(np.isnan(widen(got)), nan), "NaN in a format"
        got, want = np.where(nan, 0, got.view(np.uint8)), np.where(nan, 0, want.view(np.uint8))
    assert np.array_equal(got.view(np.uint8), want.view(np.uint8)), f"{int((got != want).sum())} codes of {got.size}"


@dataclass
class Turn:
    rope: Any
    plain: Any
    positions: np.ndarray
    table: np.ndarray
    interleaved: bool
    inverse: bool


def draw_rope(d: Draw, shape: tuple[int, ...], dim: int) -> Turn:
    """Draws a rotation for rows of `dim` elements, and positions of the given shape, one for each token."""
    turned = d.one([size for size in (2, 8, 16, 64) if size <= dim and dim % size == 0])
    interleaved, inverse = d.yes() or turned == 2, d.yes()
    table = tables(d.rng, turned)
    at = d.array("positions", d.integers(-1, 9, shape).astype(d.one([np.int32, np.int64])))
    shaped = table if d.yes() else table.reshape(len(table), 2, -1)
    how = dict(interleaved=interleaved, inverse=inverse)
    return Turn(ops.Rope(at.given, d.array("table", shaped, row=True, plain=shaped is table).given, **how),
                ops.Rope(d.plain_of(at.values), d.plain_of(table), **how), at.values.reshape(-1), table, interleaved, inverse)


def check_rows(rows: np.ndarray, want: contract.Expected, t: Turn | None, what: str) -> None:
    if t is None:
        want.check(rows, what)
        return
    value, bound = turn(want.value.copy(), want.magnitude.copy(), t.positions, t.table, t.interleaved, t.inverse, None)
    value[(t.positions < 0) | (t.positions >= len(t.table)), :, -t.table.shape[1] :] = 0.0
    check_turned(rows, value, bound + np.abs(value))


def draw_output(d: Draw, key: str, inputs: dict[str, Any], m: Merge, shape: tuple[int, ...], dtype: Any, *, row: bool) -> Slot:
    choices = [inputs[name] for name in (m.onto or {}).get(key, ()) if isinstance(inputs.get(name), Slot)]
    choices = [slot for slot in choices if 0 not in [stride for stride, size in zip(slot.view.strides, slot.view.shape) if size > 1]]
    if choices and d.yes(0.3):
        slot: Slot = d.one(choices)
        slot.is_written = True
        return slot
    return d.output(key, shape, dtype, row=row)


def call_merge(d: Draw, name: str, function: Callable[..., Any], m: Merge, dtype: Any, *, out: str = "out", out_lse: str = "out_lse") -> None:
    """Makes the call with randomly drawn outputs, and checks its results."""
    taken = set(inspect.signature(function).parameters)
    n, heads, dim = m.v.shape[1:]
    form = draw_form(d, m.lead, n, heads, dim) if "out_format" in taken and dim % 64 == 0 and n and d.yes(0.35) else None
    t = draw_rope(d, (*m.lead, n), dim) if "rope" in taken and dim % 2 == 0 and d.yes(0.3) else None
    inputs = m.build(lambda key, values, row=False: d.array(key, values, row=row), lambda values: values)
    rows = lses = None
    if out in taken and form is None and d.yes():
        rows = draw_output(d, "out", inputs, m, (*m.lead, n, heads, dim), dtype, row=True)
    lse_shape = (*m.lead, heads, n) if m.layout == "hn" else (*m.lead, n, heads)
    if out_lse in taken and d.yes():
        lses = draw_output(d, "out_lse", inputs, m, lse_shape, F32, row=False)
    wants = lses is not None or "return_lse" not in taken or d.yes(0.8)
    how: dict[str, Any] = {out: rows, out_lse: lses, "out_format": form and form.format, "rope": t and t.rope, "return_lse": None if wants else False}
    made = d.call(name, function, **inputs, **m.extra, **{key: value for key, value in how.items() if key in taken})
    got, lse = made if isinstance(made, tuple) else (made, None)
    got = d.result(got, rows).reshape(-1, heads, got.shape[-1])
    want, want_lse = wanted(m, dtype if form is None else None)
    if form is None:
        check_rows(got, want, t, "out")
    else:
        check_form(d, function, m, form, t, got, dtype)
    if lse is not None:
        values = d.result(lse, lses).reshape(*lse_shape[-2:])
        want_lse.check(np.ascontiguousarray(values.T) if m.layout == "hn" else values, "out_lse")


def check_form(d: Draw, function: Callable[..., Any], m: Merge, form: Form, t: Turn | None, got: np.ndarray, stored: Any) -> None:
    """Checks a result in a format. The same merge into f32 is checked against f64, quantised, and compared with the
    result."""
    inputs = m.build(lambda key, values, row=False: d.plain_of(values), lambda values: values.astype(F32))
    made, _ = function(**inputs, **{key: value.given if isinstance(value, Slot) else value for key, value in m.extra.items()},
                       **({"rope": t.plain} if t else {}))  # fmt: skip
    plain = d.numpy_of(made).reshape(got.shape[0], -1, m.v.shape[-1])
    want, _ = wanted(m, F32)
    check_rows(plain, want, t, "out in f32")
    if form.source == "output":
        with np.errstate(over="ignore"):
            plain = plain.astype(stored).astype(F32)
    form.check(got, plain)


def draw_bases(d: Draw, taken: set[str], count: int) -> tuple[list[str], str, dict[str, Any]]:
    """Draws bases. Returns the bases of the inputs, the base of the result, and the arguments that state them."""
    if "base" not in taken or d.yes(0.5):
        return ["e"] * count, "e", {}
    if d.yes(0.4):
        whole = d.one(list(BASE))
        return [whole] * count, whole, {"base": whole}
    bases, result = [d.one(list(BASE)) for _ in range(2)], d.one(list(BASE))
    if "suffix_lse" in taken:
        return bases, result, {"base": (*bases, result)}
    return [bases[0]] * count, result, {"base": (bases[0], result)}


def draw_sizes(d: Draw) -> tuple[int, int, int, Any]:
    return d.size(), d.one([1, 2, 3, 4]), d.one([8, 24, 64, 64, 128]), d.one(PAYLOADS)


TWO = {
    "merge_attn_states": (ops.merge_attn_states, "prefix prefix_lse suffix suffix_lse out out_lse", "hn", "e"),
    "fixup_merge": (ops.fixup_merge, "prefix prefix_lse suffix suffix_lse out out_lse", "nh", "e"),
    "sglang.merge_state": (sglang.merge_state, "prefix_output prefix_lse suffix_output suffix_lse output output_lse", "nh", "e"),
    "sglang.merge_state_v1": (sglang.merge_state_v1, "v_a s_a v_b s_b v_merged s_merged", "nh", "2"),
    "sglang.merge_state_v2": (sglang.merge_state_v2, "v_a s_a v_b s_b v_merged s_merged", "nh", "e"),
    "flashinfer.merge_state": (flashinfer.merge_state, "v_a s_a v_b s_b - -", "nh", "2"),
    "tokenspeed.merge_state": (tokenspeed.merge_state, "v_a s_a v_b s_b - -", "nh", "e"),
    "tokenspeed.attn_merge_state": (tokenspeed.attn_merge_state, "out_a lse_a out_b lse_b - -", "nh", "e"),
}
"""The functions that merge two states. For each: the function, the names of its arguments, and the layout and the base
of its lses."""


def draw_two(d: Draw, name: str) -> None:
    function, names, layout, base = TWO[name]
    a, a_lse, b, b_lse, out, out_lse = names.split()
    taken = set(inspect.signature(function).parameters)
    n, heads, dim, dtype = draw_sizes(d)
    bases, result, extra = draw_bases(d, taken, 2)
    if "base" not in taken:
        bases, result = [base] * 2, base
    if "lse_layout" in taken and d.yes():
        layout = extra["lse_layout"] = d.one(["hn", "nh"])
    masks = name == "fixup_merge" or ("context_rows" in taken and d.yes(0.4))
    v, s = states(d, 2, n, heads, dim, dtype, faint=not masks and len({BASE[one] for one in (*bases, result)}) == 1)
    present = np.ones(s.shape, bool)
    if masks and "context_rows" in taken:
        if d.yes(0.3):
            extra["copy_past_context"] = False
        extra["context_rows"] = int(d.integers(0, n + 1))
        present[0, extra["context_rows"] :] = False
    if name == "fixup_merge":
        lens, starts = draw_sequences(d, n)
        extra.update(kv_lens=d.array("kv_lens", lens), cu_seqlens=d.array("cu_seqlens", starts))
        present[0] &= ~contract.dead_rows(n, lens, starts)[:, None]
    turned = (lambda lse: np.ascontiguousarray(lse.T)) if layout == "hn" else (lambda lse: lse)

    def build(place: Callable[..., Any], payload: Callable[..., Any]) -> dict[str, Any]:
        return {a: place(a, payload(v[0]), True), a_lse: place(a_lse, turned(s[0])), b: place(b, payload(v[1]), True), b_lse: place(b_lse, turned(s[1]))}

    call_merge(d, name, function, Merge(build, v, s, present, bases, result, extra, layout=layout, onto={"out": [a, b], "out_lse": [a_lse, b_lse]}),
               dtype, out=out, out_lse=out_lse)  # fmt: skip


def draw_sequences(d: Draw, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws lengths, some of them 0 or negative, and offsets of sequences that cover all n rows."""
    count = int(d.integers(1, 5))
    inner = np.sort(d.integers(0, n + 1, count - 1)) if count > 1 else np.zeros(0, int)
    return d.integers(-1, 3, count).astype(np.int32), np.array([0, *inner, n], np.int32)


def draw_dense(d: Draw, name: str) -> None:
    n, heads, dim, dtype = draw_sizes(d)
    function = {"merge_states": ops.merge_states, "flashinfer.merge_states": flashinfer.merge_states}[name]
    count = int(d.integers(0, 12))
    bases, result, extra = draw_bases(d, set(inspect.signature(function).parameters), count)
    if name != "merge_states":
        bases, result = ["2"] * count, "2"
    v, s = states(d, count, n, heads, dim, dtype, faint=len({BASE[one] for one in (*bases, result)}) == 1)

    def build(place: Callable[..., Any], payload: Callable[..., Any]) -> dict[str, Any]:
        return {"v": place("v", payload(v.transpose(1, 0, 2, 3)), True), "s": place("s", s.transpose(1, 0, 2))}

    call_merge(d, name, function, Merge(build, v, s, np.ones(s.shape, bool), bases, result, extra), dtype)


def draw_list(d: Draw, name: str) -> None:
    n, heads, dim, dtype = draw_sizes(d)
    count = int(d.integers(1, 9))
    bases, result, extra = draw_bases(d, set(inspect.signature(ops.merge_states_list).parameters), count)
    layout = "nh"
    if d.yes():
        layout = extra["lse_layout"] = d.one(["hn", "nh"])
    v, s = states(d, count, n, heads, dim, dtype, faint=len({BASE[one] for one in (*bases, result)}) == 1)

    def build(place: Callable[..., Any], payload: Callable[..., Any]) -> dict[str, Any]:
        return {"vs": [place(f"vs[{i}]", payload(v[i]), True) for i in range(count)],
                "ss": [place(f"ss[{i}]", np.ascontiguousarray(s[i].T) if layout == "hn" else s[i]) for i in range(count)]}  # fmt: skip

    call_merge(d, name, ops.merge_states_list, Merge(build, v, s, np.ones(s.shape, bool), bases, result, extra, layout=layout), dtype)


def draw_ragged(d: Draw, name: str) -> None:
    n, heads, dim, dtype = draw_sizes(d)
    function = {"merge_states_ragged": ops.merge_states_ragged, "flashinfer.variable_length_merge_states": flashinfer.variable_length_merge_states}[name]
    lengths = d.integers(0, 4, n)
    indptr = np.array([0, *np.cumsum(lengths)], np.int32)
    if n > 2 and d.yes(0.3):
        indptr[int(d.integers(1, n))] = d.one([-3, 99])  # makes the two rows on both sides of this offset invalid
    nnz = max(int(lengths.sum()), 1)
    bases, result, extra = draw_bases(d, set(inspect.signature(function).parameters), 1)
    layout = "nh"
    if name == "merge_states_ragged" and d.yes():
        layout = extra["lse_layout"] = d.one(["hn", "nh"])
    if name != "merge_states_ragged":
        bases, result = ["2"], "2"
    flat_v, flat_s = (x[0] for x in states(d, 1, nnz, heads, dim, dtype, faint=len({BASE[one] for one in (*bases, result)}) == 1))
    most = max([1, *(int(b) - int(a) for a, b in zip(indptr, indptr[1:]) if 0 <= a <= b <= nnz)])
    v, s = np.zeros((most, n, heads, dim), dtype), np.full((most, n, heads), -np.inf, F32)
    for row, (begin, end) in enumerate(zip(indptr, indptr[1:])):
        if 0 <= begin <= end <= nnz:
            v[: end - begin, row], s[: end - begin, row] = flat_v[begin:end], flat_s[begin:end]

    def build(place: Callable[..., Any], payload: Callable[..., Any]) -> dict[str, Any]:
        lse = np.ascontiguousarray(flat_s.T) if layout == "hn" else flat_s
        return {"v": place("v", payload(flat_v), True), "s": place("s", lse), "indptr": place("indptr", indptr)}

    call_merge(d, name, function, Merge(build, v, s, np.ones(s.shape, bool), bases * most, result, extra, layout=layout), dtype)


def draw_split(d: Draw, name: str) -> None:
    if d.yes(0.25):
        return draw_sums(d, name)
    batch, heads, dim, dtype = draw_sizes(d)
    splits, length = int(d.integers(0, 11)), d.one([1, 1, 3])
    n = batch * length
    bases, result, extra = draw_bases(d, set(inspect.signature(ops.combine_split_kv).parameters), splits)
    layout = "nh"
    if d.yes():
        layout = extra["lse_layout"] = d.one(["hn", "nh"])
    counted = d.yes(0.4)
    faint = not counted and len({BASE[one] for one in (*bases, result)}) == 1
    v, s = states(d, splits, n, heads, dim, dtype, faint=faint)
    present = np.ones(s.shape, bool)
    if counted:
        counts = d.integers(-1, splits + 2, batch)
        each = int(d.integers(1, 40))
        lens = np.where(counts > 0, (counts - 1) * each + d.integers(1, each + 1, batch), counts).astype(d.one([np.int32, np.int64]))
        extra.update(seq_lens=d.array("seq_lens", lens), split_len=each)
        present &= np.arange(splits)[:, None, None] < np.repeat(counts, length)[:, None]
    if d.yes(0.25):
        extra["sinks"] = d.array("sinks", d.normal(heads, scale=3))
    sinks = extra["sinks"].values if "sinks" in extra else None
    beside = states(d, 1, n, heads, dim, d.one(PAYLOADS), faint=faint) if d.yes(0.2) else None
    rows = lambda x: x.reshape(*x.shape[:-3], batch, length, *x.shape[-2:])  # noqa: E731
    sums = lambda x: x.reshape(*x.shape[:-2], batch, length, heads)  # noqa: E731
    turned = (lambda x: np.ascontiguousarray(x.swapaxes(-1, -2))) if layout == "hn" else (lambda x: x)

    def build(place: Callable[..., Any], payload: Callable[..., Any]) -> dict[str, Any]:
        made = {"partial": place("partial", payload(rows(v)), True), "partial_lse": place("partial_lse", turned(sums(s)))}
        if beside is not None:
            made |= {"beside": place("beside", payload(rows(beside[0][0])), True), "beside_lse": place("beside_lse", turned(sums(beside[1][0])))}
        return made

    all_v, all_s = (v, s) if beside is None else (np.concatenate([v.astype(F32), beside[0].astype(F32)]), np.concatenate([s, beside[1]]))
    here = present if beside is None else np.concatenate([present, np.ones(beside[1].shape, bool)])
    stored = d.one([None, *PAYLOADS])
    m = Merge(build, all_v, all_s, here, (bases or ["e"]) + [bases[0] if bases else extra["base"][0] if "base" in extra else "e"], result, extra, sinks=sinks,
              lead=(batch,), layout=layout, out_dtype=stored or (dtype if beside is not None else None))  # fmt: skip
    call_split(d, name, m, dtype, length)


def draw_sums(d: Draw, name: str) -> None:
    """Draws splits that are not normalised: rows with maxima and sums of weights. Key lengths determine how many splits
    are valid."""
    tile, dtype = int(d.integers(1, 20)), d.one(PAYLOADS)
    lengths = [int(x) for x in d.integers(-3, 9 * tile * SPLITS // 4, int(d.integers(1, 7)))]
    parts = Parts(d.rng, [valid(length, tile_len=tile) for length in lengths], dtype)
    lens = d.array("seq_lens", np.array(lengths, d.one([np.int32, np.int64])))
    arrays = parts.rows, parts.maxima, parts.sums
    if name == "combine_split_kv":
        base, out_base, stored = d.one(["e", "2"]), d.one([None, "e", "2"]), d.one(["bf16", "f16", "f32"])
        placed = [d.array(f"part{i}", array[:, :, None], row=i == 0) for i, array in enumerate(arrays)]
        out, lse = d.call(name, ops.combine_split_kv, placed[0], placed[1], partial_sum=placed[2], seq_lens=lens, tile_len=tile,
                          base=(base, out_base or base), out_dtype=stored)  # fmt: skip
        check_counted(parts, d.numpy_of(out)[:, 0], d.numpy_of(lse)[:, 0], base, out_base)
        return
    placed = [d.array(f"part{i}", array.swapaxes(0, 1).swapaxes(1, 2), row=i == 0) for i, array in enumerate(arrays)]
    if name == "vllm.reduce_segments":
        out = d.output("output", parts.rows.shape[1:], d.one(PAYLOADS))
        starts = d.array("query_start_loc", np.arange(len(lengths) + 1, dtype=np.int32))
        lse = d.call(name, vllm.reduce_segments, out, *placed, lens, starts, tile, return_lse=True)
        check_counted(parts, out.fetch(), d.numpy_of(lse), "e", None)
        return
    function, out_base = (sglang.dcp_mla_reduce, None) if name.startswith("sglang") else (vllm.merge_mla_segments_triton, "e")
    out, lse = d.call(name, function, *placed, lens, tile, d.one(["bf16", "f16", "f32"]))
    check_counted(parts, d.numpy_of(out), d.numpy_of(lse), "2", out_base)


def draw_mapped(d: Draw, name: str) -> None:
    """Draws groups of states, each of which is merged into one row. Maps give the states (`parts`) and the row of each
    group, in any order."""
    heads, dim, dtype, stored = d.one([1, 3]), d.one([8, 64]), d.one(PAYLOADS), d.one(PAYLOADS)
    groups = some_groups(d.rng, int(d.integers(1, 9)), 4, min_parts=d.one([0, 0, 1, 2]))
    base, out_base = d.one(["e", "2"]), d.one([None, "e", "2"])
    result = out_base or base
    v, s = (x[0] for x in states(d, 1, groups.parts, heads, dim, dtype, faint=False))
    layout, empty = d.one([None, "nh", "hn"]), d.one([None, math.inf])
    sinks = d.array("sinks", d.normal(heads, scale=3)) if d.yes(0.3) else None
    before = d.normal(groups.rows, heads, dim, dtype=stored), d.normal(groups.rows, heads)
    out, lse = d.updated("out", before[0], row=True), d.updated("out_lse", before[1].T if layout == "hn" else before[1]) if d.yes(0.8) else None
    maps = [d.array(key, np.array(values, np.int32)) for key, values in (("indptr", groups.indptr), ("part_map", groups.part_map), ("row_map", groups.row_map))]
    d.call(name, ops.merge_states_mapped, out, d.array("parts", v, row=True), d.array("lses", s.T if layout == "hn" else s), maps[0], part_map=maps[1],
           row_map=maps[2], out_lse=lse, min_parts=groups.min_parts or None, sinks=sinks, empty_lse=empty, lse_layout=layout, base=(base, result))  # fmt: skip
    rows, sums = out.fetch(), None if lse is None else np.ascontiguousarray(lse.fetch().T) if layout == "hn" else lse.fetch()
    for row in range(groups.rows):
        if row not in groups.members:
            assert same_bits(rows[row], before[0][row]) and (sums is None or same_bits(sums[row], before[1][row]))
            continue
        at = groups.members[row]
        m = Merge(lambda *_: {}, v[at][:, None], s[at][:, None], np.ones((len(at), 1, heads), bool), [base] * len(at), result, {},
                  sinks=None if sinks is None else sinks.values)  # fmt: skip
        want, want_lse = wanted(m, stored)
        want.check(rows[row][None], f"out[{row}]")
        if sums is not None:
            value = np.where(np.isneginf(want_lse.value), -np.inf if empty is None else empty, want_lse.value)
            contract.Expected(value, want_lse.magnitude, want_lse.exact).check(sums[row][None], f"out_lse[{row}]")


def call_split(d: Draw, name: str, m: Merge, dtype: Any, length: int) -> None:
    """Like `call_merge`, for calls whose rows have the dims [B, L] in place of [n]."""
    batch, (n, heads, dim) = m.lead[0], m.v.shape[1:]
    inputs = m.build(lambda key, values, row=False: d.array(key, values, row=row), lambda values: values)
    stored = dtype if m.out_dtype is None else m.out_dtype
    form = draw_form(d, (batch,), length, heads, dim) if dim % 64 == 0 and n and d.yes(0.3) else None
    t = draw_rope(d, (batch, length), dim) if n and d.yes(0.2) else None
    rows = d.output("out", (batch, length, heads, dim), stored) if form is None and d.yes() else None
    lses = d.output("out_lse", (batch, heads, length) if m.layout == "hn" else (batch, length, heads), F32, row=False) if d.yes() else None
    how: dict[str, Any] = {"out": rows, "out_lse": lses, "out_format": form and form.format, "rope": t and t.rope}
    if rows is None and m.out_dtype is not None and form is None:
        how["out_dtype"] = {np.dtype(np.float16): "f16", F32: "f32"}.get(np.dtype(stored), "bf16")
    stored = stored if form is None else dtype
    got, lse = d.call(name, ops.combine_split_kv, **inputs, **m.extra, **how)
    stored_rows = d.result(got, rows)
    values = stored_rows.reshape(n, heads, stored_rows.shape[-1])
    # Rows are rotated before they are rounded, so check_rows gets expected rows that are not rounded.
    want, want_lse = wanted(m, stored if form is None and t is None else None)
    if form is None:
        check_rows(values, want, t, "out")
    else:
        check_form(d, lambda **more: ops.combine_split_kv(**more, out_dtype="f32"), m, form, t, values, stored)
    found = d.result(lse, lses)
    want_lse.check(found.swapaxes(1, 2).reshape(n, heads) if m.layout == "hn" else found.reshape(n, heads), "out_lse")


def draw_in_place(d: Draw, name: str) -> None:
    function = {"merge_state_in_place": ops.merge_state_in_place, "flashinfer.merge_state_in_place": flashinfer.merge_state_in_place}[name]
    n, heads, dim, dtype = draw_sizes(d)
    bases, other, extra = draw_bases(d, set(inspect.signature(function).parameters), 2)
    bases, result = [bases[0], other], bases[0]
    layout = "nh"
    if name == "merge_state_in_place":
        if d.yes():
            layout = extra["lse_layout"] = d.one(["hn", "nh"])
    else:
        bases, result = ["2", "2"], "2"
    v, s = states(d, 2, n, heads, dim, dtype, faint=BASE[bases[0]] == BASE[bases[1]])
    turned = (lambda lse: np.ascontiguousarray(lse.T)) if layout == "hn" else (lambda lse: lse)
    ours, sums = d.updated("v", v[0], row=True), d.updated("s", turned(s[0]))
    mask = d.integers(0, 2, n).astype(d.one([np.bool_, np.uint8])) if d.yes() else None
    d.call(name, function, v=ours, s=sums, v_other=d.array("v_other", v[1], row=True), s_other=d.array("s_other", turned(s[1])),
           mask=None if mask is None else d.array("mask", mask), **extra)  # fmt: skip
    want, want_lse = wanted(Merge(lambda *_: {}, v, s, np.ones(s.shape, bool), bases, result, {}), dtype)
    rows, lses = ours.fetch(), sums.fetch() if layout == "nh" else np.ascontiguousarray(sums.fetch().T)
    if mask is not None:
        off = mask == 0
        assert same_bits(rows[off], v[0][off]) and same_bits(lses[off], s[0][off])
        rows, lses = rows[~off], lses[~off]
        want, want_lse = (contract.Expected(x.value[~off], x.magnitude[~off], x.exact[~off]) for x in (want, want_lse))
    want.check(rows, "v")
    want_lse.check(lses, "s")


def draw_sink(d: Draw, name: str) -> None:
    n, heads, dim, dtype = draw_sizes(d)
    bases, result, extra = draw_bases(d, set(inspect.signature(ops.apply_sink).parameters), 1)
    layout = "nh"
    if d.yes():
        layout = extra["lse_layout"] = d.one(["hn", "nh"])
    v, s = states(d, 1, n, heads, dim, dtype, faint=False)
    sinks = d.normal(heads, scale=3, dtype=d.one(PAYLOADS))
    extra["sinks"] = d.array("sinks", sinks)

    def build(place: Callable[..., Any], payload: Callable[..., Any]) -> dict[str, Any]:
        return {"v": place("v", payload(v[0]), True), "s": place("s", np.ascontiguousarray(s[0].T) if layout == "hn" else s[0])}

    m = Merge(build, v, s, np.ones(s.shape, bool), bases, result, extra, sinks=extra["sinks"].values.astype(F32), sinks_in_lse=True, layout=layout,
              onto={"out": ["v"], "out_lse": ["s"]})  # fmt: skip
    call_merge(d, name, ops.apply_sink, m, dtype)


def draw_flash_attn(d: Draw, name: str) -> None:
    batch, heads, dim, dtype = draw_sizes(d)
    splits, length = int(d.integers(1, 9)), d.one([1, 4])
    v, s = states(d, splits, batch * length, heads, dim, dtype, faint=True)
    varlen = d.yes()
    lead = (batch * length,) if varlen else (batch, length)
    spelling, stored = d.one([(None, dtype), *zip(("bf16", "f16", "f32"), PAYLOADS)])
    out = d.output("out", (*lead, heads, dim), stored) if d.yes() else None
    got, lse = d.call(name, flash_attn.flash_attn_combine, d.array("out_partial", v.reshape(splits, *lead, heads, dim), row=True),
                      d.array("lse_partial", s.reshape(splits, *lead, heads)), out=out, out_dtype=None if out is not None else spelling)  # fmt: skip
    want, want_lse = wanted(Merge(lambda *_: {}, v, s, np.ones(s.shape, bool), ["e"] * splits, "e", {}), stored)
    want.check(d.result(got, out).reshape(-1, heads, dim), "out")
    want_lse.check(d.numpy_of(lse).reshape(-1, heads), "lse")


def draw_batches(d: Draw, name: str) -> None:
    """Draws merges of batches for the drop-ins of cache-dit and attn_gym."""
    n, heads, dim, dtype = draw_sizes(d)
    batch = int(d.integers(1, 4))
    v, s = states(d, 2, batch * n, heads, dim, dtype, faint=True)
    rows, sums = v.reshape(2, batch, n, heads, dim), s.reshape(2, batch, n, heads)
    if name == "cache_dit.fused_merge_attn_states":
        out, lse = d.call(name, cache_dit.fused_merge_attn_states, d.array("a", rows[0], row=True), d.array("s", sums[0][..., None]),
                          d.array("b", rows[1], row=True), d.array("t", sums[1][..., None]))  # fmt: skip
        got, got_lse = d.numpy_of(out), d.numpy_of(lse)[..., 0]
    else:
        out, lse = d.call(name, attn_gym.merge_attention, d.array("a", rows[0].swapaxes(1, 2), row=True), d.array("s", sums[0].swapaxes(1, 2)),
                          d.array("b", rows[1].swapaxes(1, 2), row=True), d.array("t", sums[1].swapaxes(1, 2)))  # fmt: skip
        got, got_lse = d.numpy_of(out).swapaxes(1, 2), d.numpy_of(lse).swapaxes(1, 2)
    want, want_lse = wanted(Merge(lambda *_: {}, v, s, np.ones(s.shape, bool), ["e", "e"], "e", {}), dtype)
    want.check(np.ascontiguousarray(got).reshape(-1, heads, dim), "out")
    want_lse.check(np.ascontiguousarray(got_lse).reshape(-1, heads), "lse")


def draw_vllm(d: Draw, name: str) -> None:
    """Draws calls of vLLM's merge_attn_states. Rows from `prefill_tokens_with_context` on must be copies of the suffix,
    whatever the suffix's lse is."""
    n, heads, dim, dtype = draw_sizes(d)
    v, s = states(d, 2, n, heads, dim, dtype, faint=True)
    threshold = int(d.integers(0, n + 1)) if d.yes() else None
    rows, lses = [d.array(f"v{i}", v[i], row=True) for i in range(2)], [d.array(f"s{i}", np.ascontiguousarray(s[i].T)) for i in range(2)]
    out = d.output("output", (n, heads, dim), dtype)
    lse = d.output("output_lse", (heads, n), F32, row=False) if d.yes(0.7) else None
    d.call(name, vllm.merge_attn_states, out, rows[0], lses[0], rows[1], lses[1], output_lse=lse, prefill_tokens_with_context=threshold)
    v, s = np.stack([slot.values for slot in rows]), np.stack([slot.values.T for slot in lses])
    want, want_lse = wanted(Merge(lambda *_: {}, v, s, np.ones(s.shape, bool), ["e", "e"], "e", {}), dtype)
    until = n if threshold is None else threshold
    cut = lambda x: contract.Expected(x.value[:until], x.magnitude[:until], x.exact[:until])  # noqa: E731
    cut(want).check(out.fetch()[:until], "output")
    assert same_bits(out.fetch()[until:], v[1][until:])
    if lse is not None:
        cut(want_lse).check(np.ascontiguousarray(lse.fetch().T)[:until], "output_lse")
        assert same_bits(np.ascontiguousarray(lse.fetch().T)[until:], s[1][until:])


MERGES: dict[str, Callable[[Draw, str], None]] = {
    **dict.fromkeys(TWO, draw_two), "merge_states": draw_dense, "flashinfer.merge_states": draw_dense, "merge_states_list": draw_list,
    "merge_states_ragged": draw_ragged, "flashinfer.variable_length_merge_states": draw_ragged, "combine_split_kv": draw_split,
    "merge_state_in_place": draw_in_place, "flashinfer.merge_state_in_place": draw_in_place, "apply_sink": draw_sink,
    "flash_attn.flash_attn_combine": draw_flash_attn, "cache_dit.fused_merge_attn_states": draw_batches, "attn_gym.merge_attention": draw_batches,
    "vllm.merge_attn_states": draw_vllm, "merge_states_mapped": draw_mapped,
    **dict.fromkeys(("sglang.dcp_mla_reduce", "vllm.merge_mla_segments_triton", "vllm.reduce_segments"), draw_sums),
}  # fmt: skip
"""The drawer of each function, which draws a call, makes it and checks its results."""
