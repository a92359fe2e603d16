"""Tests kernels whose tables have entries that are out of bounds. Reads through such entries give zeros or the
identity, and writes do nothing. No byte outside of the arguments is touched.

On the CPU, arrays lie next to pages whose access ends the process. On a GPU, run these tests with

    PYTORCH_NO_CUDA_MEMORY_CACHING=1 compute-sanitizer --error-exitcode 1 python -m pytest test/python/language/test_bounds.py -k cuda
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from typing import Any

import contract
import numpy as np
import pytest
from devices import Device

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

import mlafix  # noqa: E402
from mlafix.dsl import (DType, In, InOut, Out, bool_, f32, grid, i32, identity, index, load, load_state, merge,  # noqa: E402
                        segments, store_state)  # fmt: skip

T = DType("T")
I = DType("I", default=i32)  # noqa: E741
PAGE = mmap.PAGESIZE


@mlafix.kernel(allow={"bounds"})
def gather_merge(out: Out[T, "n D"], out_lse: Out[f32, "n"], parts: In[T, "m D"], lses: In[f32, "m"], idx: In[I, "k"], indptr: In[i32, "n1"]):
    for t in grid("n"):
        state = identity("D")
        for j in range(indptr[t], indptr[t + 1]):
            state = merge(state, load_state(parts[idx[j]], lses[idx[j]]))
        store_state(state, out[t], out_lse[t])


@mlafix.kernel
def listed_merge(out: Out[T, "n D"], parts: In[T, "m D"], lses: In[f32, "m"], idx: In[I, "n k=3"]):
    # Each row has the same number of iterations, so a GPU merges in chunks.
    for t in grid("n"):
        state = identity("D")
        for j in range(idx.shape[1]):
            state = merge(state, load_state(parts[idx[t, j]], lses[idx[t, j]]))
        store_state(state, out[t])


@mlafix.kernel(allow={"bounds"})
def paged_copy(out: Out[T, "n D"], first: Out[f32, "n"], cache: In[T, "pages page=16 D"], table: In[I, "b"]):
    for t in grid("n"):
        out[t] = cache[table[t // 16], t % 16]
        first[t] = load(cache[table[t // 16], t % 16, table[t // 16]], where=t % 2 == 0, otherwise=7.0)


@mlafix.kernel(allow={"races"})
def scatter(cache: InOut[T, "pages page=16 D"], lse: InOut[f32, "s"], kept: InOut[f32, "s"] | None, x: In[T, "n D"], l: In[f32, "n"],
            slots: In[I, "n"]):
    for t in grid("n"):
        cache[slots[t] // 16, slots[t] % 16] = x[t]
        store_state(load_state(x[t], l[t]), None, lse[slots[t]])
        if kept is not None:
            kept[slots[t]] = l[t]


@mlafix.kernel(allow={"races", "bounds"})
def scatter_states(out: InOut[T, "m D"], out_lse: InOut[f32, "m"] | None, other: InOut[f32, "q"], x: In[T, "n D"], l: In[f32, "n"], slots: In[I, "n"]):
    for t in grid("n"):
        state = load_state(x[t], l[t])
        store_state(state, out[slots[t]], out_lse[slots[t]])
        store_state(state, None, other[t])


@mlafix.kernel(allow={"bounds"})
def blank(out: InOut[f32, "n"], flags: In[bool_, "b"], names: In[I, "c"], cu: In[i32, "b1"]):
    for s, t in segments(cu, "n", where=lambda s: not flags[names[s]]):
        out[t] = f32(index(s))


def at_wall(array: np.ndarray, at_end: bool) -> np.ndarray:
    """Copies an array to memory between two pages that must not be touched. The copy ends at the second page or starts
    after the first one."""
    inside = -(-max(array.nbytes, 1) // PAGE) * PAGE
    memory = mmap.mmap(-1, inside + 2 * PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    for wall in (address, address + PAGE + inside):
        assert protect(ctypes.c_void_p(wall), ctypes.c_size_t(PAGE), 0) == 0, ctypes.get_errno()
    offset = PAGE + (inside - array.nbytes if at_end else 0)
    walled = np.frombuffer(memory, array.dtype, array.size, offset).reshape(array.shape)
    walled[...] = array
    return walled


@pytest.fixture(params=["end", "start"])
def put(request: pytest.FixtureRequest, device: Device) -> Callable[[np.ndarray], Any]:
    """Returns a function that puts an array on the device. On the CPU, the array is next to a page that must not be
    touched."""
    if device.is_torch:
        return device.put
    return lambda array: at_wall(array, request.param == "end")


def hostile(rng: np.random.Generator, count: int, size: int, dtype: type) -> np.ndarray:
    """Returns indices into a dim of `size`. Half of them are out of bounds: next to it, far away, or at the limits of
    their type."""
    ends = np.iinfo(dtype)
    wrong = [-1, size, size + 1, -size, -(1 << 20), 1 << 20, ends.min, ends.max, ends.min + 1, ends.max - size]
    table = rng.integers(0, size, count)
    return np.where(rng.random(count) < 0.5, rng.choice(wrong, count), table).astype(dtype)


def read(table: np.ndarray, *at: int) -> Any:
    """Returns what a kernel should read at an index: zeros if it is out of bounds."""
    inside = all(0 <= i < size for i, size in zip(at, table.shape))
    return table[at] if inside else np.zeros(table.shape[len(at) :], table.dtype)


def merged(parts: np.ndarray, lses: np.ndarray, chosen: list[int]) -> tuple[contract.Expected, contract.Expected]:
    """Returns the merge of the chosen parts in f64. Parts out of bounds have no effect."""
    live = [int(i) for i in chosen if 0 <= i < len(lses)]
    return contract.merge(parts[live], lses[live])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("size", [8, 100, 4096])
def test_a_merge_through_a_table_leaves_out_what_is_not_there(
    device: Device, put: Callable[[np.ndarray], Any], rng: np.random.Generator, size: int, dtype: type
) -> None:
    m, k, ends = 11, 50, np.iinfo(np.int32)
    parts, lses = rng.normal(0, 1, (m, size)).astype(np.float32), rng.normal(0, 2, m).astype(np.float32)
    idx = hostile(rng, k, m, dtype)
    far = [ends.max - 2, ends.max, k - 2, k + 5, k + 6, 5, 9, 12, 3, 4, 4, 20, 35, 50, -3, 2, -9, ends.min, ends.min + 3]
    # The second case has no entry for the end of its last row.
    for n, starts in ((len(far) - 1, far), (4, [0, 5, 9, 7])):
        indptr = np.array(starts, np.int32)
        out, out_lse = device.poisoned((n, size), np.float32), device.poisoned((n,), np.float32)
        gather_merge(out, out_lse, put(parts), put(lses), put(idx), put(indptr))
        for t in range(n):
            row, lse = merged(parts, lses, [read(idx, j) for j in range(read(indptr, t), read(indptr, t + 1))])
            row.check(device.get(out)[t], f"row {t}")
            lse.check(device.get(out_lse)[t], f"lse {t}")
    n = 37
    table, listed = hostile(rng, 3 * n, m, dtype).reshape(n, 3), device.poisoned((n, size), np.float32)
    listed_merge(listed, put(parts), put(lses), put(table))
    for t in range(n):
        merged(parts, lses, list(table[t]))[0].check(device.get(listed)[t], f"row {t}")


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("size", [8, 100])
def test_a_paged_copy_reads_zeros_where_there_is_no_page(
    device: Device, put: Callable[[np.ndarray], Any], rng: np.random.Generator, size: int, dtype: type
) -> None:
    n, pages = 300, 6
    cache = rng.normal(0, 1, (pages, 16, size)).astype(np.float32)
    table = hostile(rng, n // 16 - 3, pages, dtype)  # the table also has too few entries
    out, first = device.poisoned((n, size), np.float32), device.poisoned((n,), np.float32)
    paged_copy(out, first, put(cache), put(table))
    for t in range(n):
        page = read(table, t // 16)
        assert np.array_equal(device.get(out)[t], read(cache, page, t % 16)), t
        assert device.get(first)[t] == (read(cache, page, t % 16, page) if t % 2 == 0 else 7.0), t


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("size", [8, 100])
def test_a_scatter_drops_what_has_no_slot(
    device: Device, put: Callable[[np.ndarray], Any], rng: np.random.Generator, size: int, dtype: type
) -> None:
    pages, n = 4, 60
    slots = hostile(rng, n, 16 * pages, dtype)
    right = (slots >= 0) & (slots < 16 * pages)
    slots[right] = rng.choice(16 * pages, right.sum(), replace=False)  # no slot is used twice
    x, l = rng.normal(0, 1, (n, size)).astype(np.float32), rng.normal(0, 1, n).astype(np.float32)
    before, lse_before = np.full((pages, 16, size), 3.0, np.float32), np.full(40, 5.0, np.float32)
    for given in (True, False):
        cache, lse, kept = put(before), put(lse_before), put(lse_before)
        scatter(cache, lse, kept if given else None, put(x), put(l), put(slots))
        expected, lse_expected = before.reshape(-1, size).copy(), lse_before.copy()
        for t in range(n):
            if right[t]:
                expected[slots[t]] = x[t]
            if 0 <= slots[t] < 40:
                lse_expected[slots[t]] = l[t]
        assert np.array_equal(device.get(cache).reshape(-1, size), expected)
        assert np.array_equal(device.get(lse), lse_expected)
        assert np.array_equal(device.get(kept), lse_expected if given else lse_before)


@pytest.mark.parametrize("given", [True, False])
def test_a_state_is_stored_where_there_is_room(device: Device, put: Callable[[np.ndarray], Any], rng: np.random.Generator, given: bool) -> None:
    n, m, q, size = 33, 50, 20, 16
    slots = hostile(rng, n, m, np.int32)
    right = (slots >= 0) & (slots < m)
    slots[right] = rng.choice(m, right.sum(), replace=False)
    x, l = rng.normal(0, 1, (n, size)).astype(np.float32), rng.normal(0, 1, n).astype(np.float32)
    out, lse, other = (put(np.full(shape, 3.0, np.float32)) for shape in ((m, size), (m,), (q,)))
    scatter_states(out, lse if given else None, other, put(x), put(l), put(slots))
    expected, lse_expected = np.full((m, size), 3.0, np.float32), np.full(m, 3.0, np.float32)
    expected[slots[right]], lse_expected[slots[right]] = x[right], l[right]
    assert np.array_equal(device.get(out), expected)
    assert np.array_equal(device.get(lse), lse_expected if given else np.full(m, 3.0))
    assert np.array_equal(device.get(other), l[:q])


def test_segments_without_a_flag_read_zero(device: Device, put: Callable[[np.ndarray], Any], rng: np.random.Generator) -> None:
    n, b = 40, 12
    cu = np.sort(rng.integers(0, n + 1, b + 1)).astype(np.int32)
    flags, names = np.ones(5, np.bool_), hostile(rng, b - 2, 5, np.int32)
    out = put(np.full(n, -1.0, np.float32))
    blank(out, put(flags), put(names), put(cu))
    expected = np.full(n, -1.0, np.float32)
    for s in range(b):
        if not read(flags, read(names, s)):
            expected[cu[s] : cu[s + 1]] = s
    assert np.array_equal(device.get(out), expected)
