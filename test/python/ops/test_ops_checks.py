"""Tests the functions that check states, merges, attention, blocks and metadata. Their findings must equal those of
numpy in f64."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mlafix
from devices import Device
from mlafix import ops
from numerics import BF16, E4M3, E5M2, F16, F32, widen
from states import LAYOUTS, lay_out, make_states

DTYPES = [BF16, F16, F32, E4M3, E5M2]
CLASS = {name: number for number, name in enumerate(ops.checks.FAULTS)}
SHUFFLED = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Record:
    """The two arrays to which a check writes: the class of each row, and a flag for each class that occurs."""

    def __init__(self, device: Device, *shape: int) -> None:
        self._device = device
        self.record, self.flags = device.put(np.zeros(shape, np.int64)), device.put(np.zeros(16, np.int32))

    @property
    def arrays(self) -> dict[str, Any]:
        return {"record": self.record, "flags": self.flags}

    def words(self) -> np.ndarray:
        return self._device.get(self.record)

    def check(self, want: np.ndarray, seam: int, step: int) -> None:
        """Raises AssertionError unless the record holds the classes `want`, and exactly the flags of these classes are
        set."""
        words, flags = self.words(), self._device.get(self.flags)
        expected = np.where(want != 0, (np.int64(step) << 32) | (seam << 8) | want, 0)
        np.testing.assert_array_equal(words, expected)
        np.testing.assert_array_equal(flags, np.isin(np.arange(16), want[want != 0]).astype(np.int32))


def classes(out: np.ndarray, lse: np.ndarray | None, keys: np.ndarray | None, limit: float = math.inf) -> np.ndarray:
    """Returns the class of each row `[n, H]`, computed in f64. `keys` tells whether each token has keys: 1, 0, or -1 if
    that is unknown."""
    found = np.zeros(out.shape[:2], int)
    for t, h in np.ndindex(*found.shape):
        row, known = np.abs(widen(out[t, h])), -1 if keys is None else int(keys[t])
        x = None if lse is None else float(lse[t, h])
        has_nan, biggest = bool(np.isnan(row).any()), float(np.max(row))
        if known == 0:
            name = "" if biggest == 0 and (x is None or x == -math.inf) else "not empty"
        elif x == -math.inf:
            name = "weight of -inf" if biggest != 0 else "no keys seen" if known == 1 else ""
        elif has_nan or (x is not None and math.isnan(x)):
            name = "NaN"
        elif biggest == math.inf or (x == math.inf and known == 1):
            name = "infinite"
        else:
            name = "too large" if x != math.inf and biggest > limit else ""
        found[t, h] = CLASS[name]
    return found


def broken_rows(rng: np.random.Generator, n: int, heads: int, dim: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Returns random rows and lses `[n, H]` of all kinds. In some rows, one element is NaN, infinite, zero or large."""
    out = rng.normal(0, 1, (n, heads, dim)).astype(F32)
    out[rng.random((n, heads)) < 0.4] = 0
    for t, h in np.ndindex(n, heads):
        value = rng.choice([np.nan, np.inf, -np.inf, 100.0, 0.0], p=[0.15, 0.05, 0.05, 0.15, 0.6])
        if value:
            out[t, h, rng.choice([0, dim - 1, int(rng.integers(dim))])] = value
    lse = rng.choice([0.5, -300.0, -np.inf, np.inf, np.nan], (n, heads), p=[0.4, 0.1, 0.3, 0.1, 0.1]).astype(F32)
    with np.errstate(invalid="ignore"):
        return out.astype(dtype), lse


@pytest.mark.parametrize("lse_layout", ["hn", "nh", None])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_each_class_of_row(dtype: np.dtype, lse_layout: str | None, device: Device, rng: np.random.Generator) -> None:
    shapes = [(40, 4, 64, "padded"), (0, 4, 64, "contiguous")]
    if dtype == BF16:
        shapes += [(1, 1, 8, "strided"), (17, 2, 576, "transposed"), (9, 7, 64, "contiguous")]
    for n, heads, dim, layout in shapes:
        out, lse = broken_rows(rng, n, heads, dim, dtype)
        out, lens = lay_out(out, layout), rng.integers(-2, 3, n).astype(np.int32)
        given_lse = None if lse_layout is None else lay_out(lse if lse_layout == "nh" else np.ascontiguousarray(lse.T), layout)
        for more in ({}, {"lens": device.put(lens)}):
            found = Record(device, n, heads)
            ops.check_states(device.put(out), None if given_lse is None else device.put(given_lse), **found.arrays, **more,
                             lse_layout=lse_layout or "hn", seam=9, step=3)  # type: ignore[arg-type]
            want = classes(out, None if given_lse is None else lse, (lens > 0).astype(int) if more else None)
            found.check(np.where(lens[:, None] == -1, 0, want) if more else want, 9, 3)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["i4", "i8"])
def test_keys_that_tokens_see(kind: str, causal: bool, device: Device) -> None:
    """Covers sequences without keys, without tokens, with fewer keys than tokens, and with many keys. Tokens at both
    ends belong to no sequence."""
    most = 2**31 - 1
    for lens, starts, n in [([3, 0, 9, -2, 2], [2, 4, 4, 9, 10, 13], 15), ([0], [0, 7], 7), ([5] * 70, list(range(71)), 71), ([], [0], 3), ([2, 2], [0, 4, 4], 4),
                            ([most], [0, 3], 3), ([2**40 if kind == "i8" else most], [0, 1], 1), ([4], [0, 2], 0)]:  # fmt: skip
        want = np.full(n, -1)
        for b, length in enumerate(lens):
            for t in range(starts[b], min(starts[b + 1], n)):
                want[t] = min(max(length - (starts[b + 1] - 1 - t if causal else 0), 0), most)
        out = device.put(np.full(n, 7, np.int32))
        ops.visible_keys(out, device.put(np.array(lens, kind)), device.put(np.array(starts, kind)), causal=causal)
        assert device.get(out).tolist() == want.tolist()


def test_few_rows_are_read_before_the_count_of_live_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """If results have at most 2^20 elements and the count of live rows is on the device, the kernel reads all rows
    before it reads the count, and then checks only the live rows. From larger results it reads only as many rows as the
    count says."""
    given: list[tuple] = []
    monkeypatch.setattr(ops.checks, "launch", lambda _, arguments, __: given.append(arguments))
    count = np.array([5], np.int32)
    for n, live in ((1 << 10, count), (1 << 10, 5), ((1 << 10) + 1, count)):
        ops.check_states(np.zeros((n, 128, 8), F32), record=np.zeros((n, 128), np.int64), flags=np.zeros(16, np.int32), live_rows=live)
    few, told, many = ({"live": each[7], "read": each[8], "live_at": each[11], "read_at": each[12]} for each in given)
    assert few["read"] == 1 << 10 and few["read_at"] is None and few["live_at"] is count
    assert told["read"] == told["live"] == 5 and told["read_at"] is told["live_at"] is None
    assert many["live"] == (1 << 10) + 1 and many["live_at"] is None and many["read_at"] is count
    given.clear()
    out = np.zeros((1 << 10, 128, 8), F32)
    ops.check_merge(out, None, [out], [out[:, :, 0]], record=np.zeros((1 << 10, 128), np.int64), flags=np.zeros(16, np.int32), live_rows=count, lse_layout="nh")
    assert given[0][10] == 1 << 10 and given[0][13] is count and given[0][14] is None


FACTS = {
    "check_states_dense": "params 22  threads <=256  loads 2x16+1x8+4x4  ahead 7  stores 1x8+5x4",
    "check_merge_dense": "params 25  threads <=256  loads 6x16+1x8+5x4  ahead 11  stores 1x8+5x4",
}
"""Facts about the code of kernels that are not compiled ahead, in the form of test/lit/Performance/facts.txt. Each lane
has two packs of 16 bytes of a row. `check_states` reads one row and `check_merge` three. All packs are loaded once,
before the first reduction."""


def test_facts_of_the_code_for_a_gpu() -> None:
    lit = Path(__file__).parents[2] / "lit"
    if not lit.exists():
        pytest.skip("the sources have no lit tests")
    path = lit / "Performance/facts.py"
    spec = importlib.util.spec_from_file_location("facts", path)
    assert spec is not None and spec.loader is not None
    facts = sys.modules["facts"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(facts)
    given = dict.fromkeys(("lse", "values", "live_rows_at", "step_at"), "present")
    own: dict[str, dict[str, Any]] = {"check_states_dense": {"L": "i32", "lens": "present", "limit": "absent", "read_rows_at": "absent"}, "check_merge_dense": {"K": 2, "O": "bf16", "read_rows_at": "absent"}}
    for entry, line in FACTS.items():
        text = mlafix.library.kernel(entry.removesuffix("_dense")).ptx("sm_90", H=128, D=128, T="bf16", **given, **own[entry])
        found = facts.facts_of_ptx(text)[entry]
        assert (found.line(), found.faults) == (line, []), entry
        body = text[text.index(f"{entry}(") :]
        reduces, last = body.index("shfl"), body.index("st.global")
        assert body[:reduces].count("ld.global.v4.b32") == body[:last].count("ld.global.v4.b32") > 0, "rows are loaded before one is reduced"


@SHUFFLED
@given(data=st.data())
def test_any_rows(data: st.DataObject, device: Device) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n, heads, dim = data.draw(st.integers(0, 9)), data.draw(st.sampled_from([1, 3])), data.draw(st.sampled_from([8, 20, 64]))
    out, lse = broken_rows(rng, n, heads, dim, F32)
    limit = data.draw(st.sampled_from([None, 3.0]))
    live = data.draw(st.integers(0, n))
    on_device = data.draw(st.booleans())
    found = Record(device, n, heads)
    ops.check_states(device.put(lay_out(out, data.draw(st.sampled_from(LAYOUTS)))), device.put(lse), lse_layout="nh",
                     limit=None if limit is None else device.put(np.array([limit], F32)), live_rows=device.scalar(live) if on_device else live,
                     step=device.scalar(77) if on_device else 77, seam=2**24 - 1, **found.arrays)
    want = classes(out, lse, None, limit or math.inf)
    want[live:] = 0
    found.check(want, 2**24 - 1, 77)


def test_values_of_the_rows_that_are_recorded(device: Device) -> None:
    out, lse = np.ones((3, 2, 8), F32), np.zeros((2, 3), F32)
    out[1, 1, 3], lse[0, 2] = -9, np.nan
    values, found = device.put(np.full((3, 2, 4), 7, F32)), Record(device, 3, 2)
    ops.check_states(device.put(out), device.put(lse), limit=device.put(np.array([2.0], F32)), values=values, **found.arrays)
    want = np.full((3, 2, 4), 7, F32)
    want[1, 1], want[2, 0] = (0, 9, 0, 2), (np.nan, 1, 0, 2)
    np.testing.assert_array_equal(device.get(values), want)
    values = device.put(np.zeros((3, 2, 4), F32))
    ops.check_merge(device.put(out), device.put(lse), [device.put(np.ones_like(out))], [device.put(np.ones_like(lse))], values=values, **found.arrays)
    assert device.get(values)[0, 0].tolist() == [0, 1, 1, 1]


def test_a_record_keeps_the_first_offence_of_each_row(device: Device) -> None:
    """A later launch adds offences of other rows, but does not change recorded ones. `offences` lists all of them by
    step, seam and row."""
    out, lse, found = np.ones((3, 2, 8), F32), np.zeros((2, 3), F32), Record(device, 3, 2)
    for step, seam, place in [(1, 5, (2, 0)), (1, 6, (0, 1)), (2, 5, (0, 0))]:
        out[place] = np.nan
        ops.check_states(device.put(out), device.put(lse), seam=seam, step=step, **found.arrays)
    assert ops.offences(found.record) == [(1, 5, "NaN", (2, 0)), (1, 6, "NaN", (0, 1)), (2, 5, "NaN", (0, 0))]


@pytest.mark.parametrize("method", ["cpu", "get"])
def test_records_of_gpus_are_copied_by_their_library(method: str) -> None:
    """Like torch's and CuPy's arrays of GPUs, the record refuses to be read by numpy, and has a method that copies it."""

    def refuse(*_: Any, **__: Any) -> None:
        raise TypeError("an array of a GPU")

    record = np.array([[0, 1 << 32 | 3 << 8 | 1]])
    members = {method: lambda _: record, "__dlpack__": refuse, "__array__": refuse}
    assert ops.offences(type("Record", (), members)()) == [(1, 3, "NaN", (0, 1))]


@pytest.mark.parametrize("base", ["e", "2"])
@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
def test_merges_are_right_until_a_row_is_changed(dtype: np.dtype, base: Any, device: Device, rng: np.random.Generator) -> None:
    """Merges of any states pass the check. If rows are changed afterwards, the check reports exactly these rows."""
    for sides in (2, 3, 8):
        made = make_states(rng, sides, 21, 2, 64, dtype, faults=False)
        given = [device.put(np.array(v)) for v in made.v], [device.put(np.array(s)) for s in made.s]
        out, lse = ops.merge_states_list(*given, base=base, return_lse=True)
        found = Record(device, 21, 2)
        ops.check_merge(out, lse, *given, base=base, lse_layout="nh", **found.arrays)
        found.check(np.zeros((21, 2), int), 0, 0)
        rows, sums = device.get(out).copy(), device.get(lse).copy()
        want, is_empty = np.zeros((21, 2), int), np.isinf(made.s).all(axis=0)
        for t in range(0, 21, 2):
            if is_empty[t, 1]:
                rows[t, 1, 3], want[t, 1] = 1.0, CLASS["not empty"]
            elif t % 4:
                rows[t, 1, 63], want[t, 1] = rows[t, 1, 63] + 8, CLASS["another value"]
            else:
                sums[t, 1], want[t, 1] = sums[t, 1] - 20, CLASS["another lse"]
        ops.check_merge(device.put(rows), device.put(sums), *given, base=base, lse_layout="nh", seam=4, **found.arrays)
        found.check(want, 4, 0)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float) -> tuple[np.ndarray, float]:
    """Returns a row of attention and its lse in f64, for keys `[n, E]`."""
    if not len(k):
        return np.zeros(v.shape[-1]), -math.inf
    scores = widen(k) @ widen(q) * scale
    top = scores.max()
    weights = np.exp(scores - top)
    return weights @ widen(v) / weights.sum(), top + math.log(weights.sum())


class Batch:
    """Paged sequences and their attention. Tokens are [n, H, E]; the last token of a sequence sees all its keys."""

    def __init__(self, rng: np.random.Generator, dtype: np.dtype, causal: bool) -> None:
        self.lens, self.starts = np.array([9, 0, 3, 2], np.int32), np.array([0, 3, 4, 5, 9], np.int32)
        self.table = np.array([[1, 2, 3, -1], [-1, 99, 0, 0], [5, 7, 7, 7], [6, -5, 8, 0]], np.int32)
        self.k, self.v = (rng.normal(0, 1, (9, 4, 2, dim)).astype(F32).astype(dtype) for dim in (24, 16))
        self.q = rng.normal(0, 1, (9, 4, 24)).astype(F32).astype(dtype)
        self.out, self.lse = np.zeros((9, 4, 16), F32), np.zeros((4, 9), F32)
        for b, t in ((b, t) for b in range(4) for t in range(self.starts[b], self.starts[b + 1])):
            count = max(self.lens[b] - (self.starts[b + 1] - 1 - t if causal else 0), 0)
            for h in range(4):
                places = [(self.table[b, j // 4], j % 4, h // 2) for j in range(count)]
                keys, values = (np.array([x[place] for place in places]).reshape(count, x.shape[-1]) for x in (self.k, self.v))
                self.out[t, h], self.lse[h, t] = attention(self.q[t, h], keys, values, 0.2)

    def check(self, device: Device, causal: bool, **more: Any) -> Record:
        found = Record(device, 9, 4)
        put = device.put
        ops.check_attention(put(self.out), put(self.lse), put(self.q), put(self.k), put(self.v), lens=put(self.lens), cu_seqlens=put(self.starts),
                            block_table=put(self.table), scale=0.2, causal=causal, **more, **found.arrays)
        return found


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_attention_is_right_until_a_row_is_changed(dtype: np.dtype, causal: bool, device: Device, rng: np.random.Generator) -> None:
    """Attention passes the check until a row is changed. Some sequences have no keys or fewer keys than tokens. Entries
    of the block table after the last page of a sequence may be invalid."""
    batch = Batch(rng, dtype, causal)
    want = np.zeros((9, 4), int)
    batch.check(device, causal).check(want, 0, 0)
    batch.out[1, 2], want[1, 2] = batch.out[1, 0] + 0.3, CLASS["another value"]
    batch.lse[0, 4], want[4, 0] = batch.lse[0, 4] * 1.4427 + 0.1, CLASS["another lse"]
    batch.lse[1, 3], want[3, 1] = np.inf, CLASS["not empty"]
    batch.check(device, causal, seam=3, step=2).check(want, 3, 2)
    batch.check(device, causal, every=2, step=1).check(np.where(np.arange(9)[:, None] % 2 == 1, want, 0), 0, 1)
    # With every=2, the even rows are checked in one step and the odd rows in the next. With step_size=4, step 4 is the
    # second checked step, so the odd rows are checked.
    batch.check(device, causal, every=2, step=4, step_size=4).check(np.where(np.arange(9)[:, None] % 2 == 1, want, 0), 0, 4)
    batch.check(device, causal, most_keys=0).check(np.where(np.arange(9)[:, None] == 3, want, 0), 0, 0)


def test_attention_of_new_tokens_and_of_a_chunk_of_context(device: Device, rng: np.random.Generator) -> None:
    batch = Batch(rng, F32, True)
    batch.v, batch.k = np.ascontiguousarray(batch.v[:9, :1]), np.ascontiguousarray(batch.k[:9, :1])
    put = device.put
    found = Record(device, 9, 4)
    out, lse = np.zeros((9, 4, 16), F32), np.zeros((4, 9), F32)
    for b, t in ((b, t) for b in range(4) for t in range(batch.starts[b], batch.starts[b + 1])):
        for h in range(4):
            rows = slice(batch.starts[b], t + 1)
            out[t, h], lse[h, t] = attention(batch.q[t, h], batch.k[rows, 0, h // 2], batch.v[rows, 0, h // 2], 0.2)
    given = {"lens": put(np.diff(batch.starts)), "cu_seqlens": put(batch.starts), "scale": 0.2, **found.arrays}
    keys = put(batch.k.reshape(1, 9, 2, 24).swapaxes(0, 1)), put(batch.v.reshape(1, 9, 2, 16).swapaxes(0, 1))
    ops.check_attention(put(out), put(lse), put(batch.q), *keys, **given)
    found.check(np.zeros((9, 4), int), 0, 0)

    batch = Batch(rng, F32, False)
    whole = batch.out.copy()
    for h in range(4):  # keys 2 to 6 of the first sequence
        places = [(batch.table[0, j // 4], j % 4, h // 2) for j in range(2, 7)]
        keys, values = (np.array([x[place] for place in places]) for x in (batch.k, batch.v))
        for t in range(3):
            batch.out[t, h], batch.lse[h, t] = attention(batch.q[t, h], keys, values, 0.2)
    batch.lens = np.array([5, 0, 3, 2], np.int32)
    batch.check(device, False, first=put(np.array([2, 0, 0, 0], np.int32))).check(np.zeros((9, 4), int), 0, 0)
    batch.out = whole
    want = np.where(np.arange(9)[:, None] < 3, CLASS["another value"], 0) * np.ones((1, 4), int)
    batch.check(device, False, first=put(np.array([2, 0, 0, 0], np.int32))).check(want, 0, 0)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_blocks_hold_no_nan(dtype: np.dtype, whole: bool, device: Device, rng: np.random.Generator) -> None:
    """NaN is reported where a sequence has a key and, if `whole` is set, also in the rest of its last block. NaN in
    unused blocks and invalid entries of the block table are ignored."""
    cache = rng.normal(0, 1, (9, 4, 40)).astype(F32)
    cache[2, 3, 39] = cache[3, 1, 0] = cache[0, 0, 0] = cache[7, 0, 5] = np.nan
    table, lens = np.array([[1, 2, 3, 0], [-1, 99, 0, 0], [5, 7, 0, 0], [2, 6, 7, 0]], np.int32), np.array([9, 6, 3, 12], np.int64)
    want = np.zeros((4, 4), int)
    want[0, 1] = want[3, 0] = want[3, 2] = CLASS["NaN in a block"]
    want[0, 2] = CLASS["NaN in a block"] if whole else 0
    found = Record(device, 4, 4)
    ops.check_blocks(device.put(cache.astype(dtype)), device.put(table), device.put(lens), whole=whole, seam=1, **found.arrays)
    found.check(want, 1, 0)


def test_metadata(device: Device) -> None:
    put = device.put
    lens, starts = np.array([5, -1, 9, 40], np.int32), np.array([0, 3, 2, 8, 8], np.int32)
    slots, table = np.array([0, -1, 31, 32, -2, 5], np.int64), np.array([[3, 77, 0], [99, 0, 0], [0, -1, 0], [0, 1, 2]], np.int32)
    want = np.zeros((7, 1), int)
    found = Record(device, 7, 1)
    ops.check_metadata(put(lens), slots=put(slots), cu_seqlens=put(starts), block_table=put(table), pages=4, page_size=8, seam=2, **found.arrays)
    want[[0, 1, 2, 3, 4], 0] = [CLASS[name] for name in ("", "negative length", "page out of range", "slot out of range", "slot out of range")]
    found.check(want, 2, 0)
    found = Record(device, 4, 1)
    ops.check_metadata(put(np.array([5, 1, 9, 4], np.int32)), expected_lens=put(np.array([5, 2, 9, 5], np.int32)), pages=4, page_size=8, live_rows=3, **found.arrays)
    found.check(np.array([[0], [CLASS["another length"]], [0], [0]]), 0, 0)
    found = Record(device, 4, 1)
    ops.check_metadata(put(np.abs(lens)), cu_seqlens=put(starts), pages=4, page_size=8, **found.arrays)
    found.check(np.array([[0], [CLASS["falling offsets"]], [0], [0]]), 0, 0)
