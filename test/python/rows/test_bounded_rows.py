"""Tests rows along a dim with a bound ("b<=1024"): the dim's size is only known at the launch. Results have the same
bits as with a fixed size, and no access is past the end of a row."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from devices import Device
from numerics import BF16, F32
from sources import load
from test_scans import reduced

import mlafix
from mlafix import _runtime, explain

TEXT = """
@mlafix.kernel
def cumulate(cu: Out[I, "c<=1025"], lens: In[i32, "b<=1024"]):
    for _ in grid(1):
        cu[:] = cumsum(load(lens[:], into="c", first=1))


@mlafix.kernel
def softmax(y: Out[T, "n v<=300"], x: In[T, "n v"]):
    for t in grid("n"):
        row = exp(x[t] - max(x[t]))
        y[t] = row / sum(row)


@mlafix.kernel
def reduced(total: Out[f32, "n"], mean: Out[f32, "n"], most: Out[f32, "n"], least: Out[f32, "n"], first: Out[i32, "n"], last: Out[i32, "n"],
            count: Out[i32, "n"], highest: Out[i32, "n"], lowest: Out[i32, "n"], where_it_is: Out[i32, "n"], ones: Out[f32, "n"],
            x: In[f32, "n v<=300"], k: In[i32, "n v<=300"]):
    for t in grid("n"):
        row = x[t]
        total[t] = sum(row)
        mean[t] = sum(row) / f32(shape("v"))
        most[t] = max(row)
        least[t] = min(row)
        first[t] = argmax(row)
        last[t] = argmin(row)
        count[t] = sum(k[t])
        highest[t] = max(k[t])
        lowest[t] = min(k[t])
        where_it_is[t] = argmax(k[t])
        ones[t] = sum(splat(1.0, "v"))


@mlafix.kernel
def scanned(sums: Out[f32, "n v<=300"], most: Out[f32, "n v<=300"], least: Out[i32, "n v<=300"], places: Out[i32, "n v<=300"],
            x: In[f32, "n v<=300"], k: In[i32, "n v<=300"]):
    for t in grid("n"):
        sums[t] = cumsum(x[t])
        most[t] = cummax(x[t])
        least[t] = cummin(k[t])
        places[t] = iota("v")


@mlafix.kernel
def through_control(y: InOut[f32, "n v<=300"], last: Out[f32, "n"], k: In[i32, "n"]):
    for t in grid("n"):
        row = exp(y[t] - max(y[t]))
        for i in range(k[t]):
            row = cumsum(row) * 0.5
        if k[t] > 1:
            row = cummax(row - 1.0) + cumsum(row)
        last[t] = sum(row)
        store(y[t], row, where=k[t] != 2)


@mlafix.kernel
def long(total: Out[f32, "n"], y: Out[f32, "n v<=9000"], at: Out[i32, "n"], x: In[f32, "n v<=9000"]):
    for t in grid("n"):
        row = x[t] * 2.0
        total[t] = sum(row)
        at[t] = argmax(row)
        y[t] = cumsum(row) - max(row)


@mlafix.kernel
def stepped(total: Out[f32, "n"], at: Out[i32, "n"], y: Out[f32, "n v<=4096"], sums: Out[f32, "n v"], x: In[f32, "n v"]):
    for t in grid("n"):
        row = x[t] * 2.0
        total[t] = sum(row)
        at[t] = argmax(row)
        y[t] = row - max(row)
        sums[t] = cumsum(row)


@mlafix.kernel(allow={"bounds"})
def sliced(y: Out[f32, "n v<=4096"], first: Out[f32, "n"], x: In[f32, "n v"]):
    for t in grid("n"):
        y[t] = x[t] + 1.0
        first[t] = sum(x[t, 100:200])


@mlafix.kernel
def beside_a_slice(y: Out[f32, "n v<=4096"], x: In[f32, "n v"], w: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = x[t] + sum(w[t, 2900:3000])


@mlafix.kernel
def beside(y: Out[f32, "n v<=4096"], z: Out[f32, "n D"], x: In[f32, "n v"], w: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = x[t] * 2.0
        z[t] = w[t] * 2.0


@mlafix.kernel
def read_late(y: Out[f32, "n v<=4096"], x: In[f32, "n D"]):
    for t in grid("n"):
        y[t] = load(x[t], into="v", first=1000)


@mlafix.kernel
def odd_bound(total: Out[i32, "n"], z: Out[f32, "n D"], x: In[i32, "n v<=33"], w: In[f32, "n D"]):
    for t in grid("n"):
        z[t] = w[t] * 2.0
        total[t] = sum(x[t])


@mlafix.kernel
def optional(y: Out[f32, "n v<=40"], x: In[f32, "n v<=40"] | None, into: InOut[f32, "n D"]):
    for t in grid("n"):
        y[t] = cumsum(x[t] + 1.0)
        into[t] = load(y[t], into="D", first=2, each=2)


@mlafix.kernel
def filled(y: Out[f32, "n v<=40"].fill(7.0), x: In[f32, "n v<=40"], live: index.at_most("n")):
    for t in grid("n"):
        store(y[t], x[t], where=t < live)


@mlafix.kernel
def elements(y: Out[f32, "b<=100"], x: In[f32, "b"], rows: Out[f32, "b<=100 D"]):
    for t in grid("b"):
        y[t] = x[t] + max(x[:])
        rows[t] = f32(argmax(x[:]))
"""

SIZES = [0, 1, 2, 31, 32, 33, 63, 127, 200, 272, 299, 300]


class Beyond:
    """Makes arrays of `size` elements inside larger memory, and checks that a call changes nothing around them.

    The memory has room for `bound` elements after the first `offset` ones. All elements outside the array are poison.
    With offset 0, rows are aligned.
    """

    def __init__(self, device: Device, bound: int, size: int, offset: int) -> None:
        self.device, self.bound, self.size, self.offset = device, bound, size, offset
        self.checked: list[tuple[Any, np.ndarray]] = []

    def of(self, array: np.ndarray) -> Any:
        """Copies the array to the device, with NaN or -1 around it. Returns a view of the copied elements."""
        room = self.bound + 3 + (-self.bound - 3) % 32 if self.offset == 0 else self.offset + self.bound + 3
        around = np.full((*array.shape[:-1], room), np.nan if array.dtype in (F32, BF16) else -1, array.dtype)
        around[..., self.offset : self.offset + self.size] = array
        put = self.device.put(around)
        self.checked.append((put, around))
        return put[..., self.offset : self.offset + self.size]

    def check(self) -> None:
        """Asserts that no element outside the arrays has changed."""
        for put, around in self.checked:
            got = self.device.get(put).copy()
            got[..., self.offset : self.offset + self.size] = around[..., self.offset : self.offset + self.size]
            assert got.tobytes() == around.tobytes()


def launched(kernel: Any, *arguments: Any) -> str:
    """Returns the name of the entry point that a call launches."""
    return next(version.entry for version in kernel.explain_call(*arguments).versions if version.chosen)


WHOLE = (0, 32, 200, 272)
"""Sizes of rows that consist of whole packs on a GPU. On a CPU, packs have up to 32 elements, so rows of 200 and 272
elements may end within a pack."""


def by_tree(rows: np.ndarray) -> np.ndarray:
    """Returns the sums of f32 rows in the order that the language defines (N9). Rows may have no elements."""
    return reduced(rows) if rows.shape[-1] else np.zeros(rows.shape[:-1], np.float32)


@pytest.mark.parametrize("dtype", ["i32", "i64"])
@pytest.mark.parametrize("size", [0, 1, 2, 33, 500, 1023, 1024])
def test_one_compilation_cumulates_lengths_of_any_batch(device: Device, kernels: ModuleType, rng: np.random.Generator, size: int, dtype: str) -> None:
    lens = rng.integers(0, 1000, size).astype(np.int32)
    for more in (1, 0):  # the last offset, the total, may be omitted
        wide, rows = Beyond(device, 1025, size + more, size % 3), Beyond(device, 1024, size, 1)
        cu = wide.of(np.full(size + more, -7, dtype.replace("i", "int")))
        kernels.cumulate(cu, rows.of(lens))
        assert device.get(cu).tolist() == np.concatenate([[0], np.cumsum(lens)])[: size + more].tolist()
        wide.check(), rows.check()


def test_offsets_of_a_padded_batch_stay_flat(device: Device, kernels: ModuleType) -> None:
    cu = device.put(np.full(9, -1, np.int32))
    kernels.cumulate(cu, device.put(np.array([3, 1, 7], np.int32)))
    assert device.get(cu).tolist() == [0, 3, 4, 11, 11, 11, 11, 11, 11]


@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("size", SIZES)
def test_softmax(device: Device, kernels: ModuleType, rng: np.random.Generator, size: int, dtype: np.dtype) -> None:
    x = (3 * rng.standard_normal((5, size))).astype(dtype)
    if size > 4:
        x[1, 2:] = -np.inf
    around = Beyond(device, 300, size, 0 if size in WHOLE else size % 4)
    y = around.of(np.zeros_like(x))
    kernels.softmax(y, around.of(x))
    wide = x.astype(np.float64)
    expected = np.exp(wide - wide.max(axis=1, keepdims=True, initial=-np.inf)) if size else wide
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(device.get(y).astype(np.float64), expected, rtol=1e-5 if dtype == F32 else 1e-2, atol=1e-7 if dtype == F32 else 1e-3)
    around.check()


@pytest.mark.parametrize(("size", "offset", "is_whole"), [(32, 0, True), (288, 0, True), (33, 0, False), (300, 0, False), (32, 1, False)])
def test_whole_packs_are_moved_where_sizes_are_multiples(device: Device, kernels: ModuleType, size: int, offset: int, is_whole: bool) -> None:
    if offset and device.name != "ptx":
        pytest.skip("a CPU's packs need no alignment")
    around = Beyond(device, 300, size, offset)
    x, y = (around.of(np.ones((5, size), BF16)) for _ in range(2))
    assert ("_whole_" in launched(kernels.softmax, y, x)) == is_whole


@pytest.mark.parametrize("size", SIZES)
def test_reductions_count_what_is_there(device: Device, kernels: ModuleType, rng: np.random.Generator, size: int) -> None:
    x = rng.standard_normal((4, size)).astype(np.float32)
    if size:
        x[1], x[2] = -np.inf, -np.abs(x[2]) - 1  # all elements are below 0, so a zero read past the end would win
        x[3, size // 2] = np.nan
    k = rng.integers(-50, -5, (4, size)).astype(np.int32)
    around = Beyond(device, 300, size, 0 if size in WHOLE else 1)
    floats = [device.poisoned((4,), np.float32) for _ in range(5)]
    integers, places = ([device.poisoned((4,), np.int32) for _ in range(3)] for _ in range(2))
    total, mean, most, least, ones = floats
    kernels.reduced(total, mean, most, least, *places[:2], *integers, places[2], ones, around.of(x), around.of(k))
    with np.errstate(invalid="ignore", divide="ignore"):
        sums = by_tree(x)
        np.testing.assert_array_equal(device.get(total), sums)
        assert not size or device.get(total)[:1].tobytes() == sums[:1].tobytes()
        np.testing.assert_array_equal(device.get(mean), sums / np.float32(size))
    if not size:
        assert device.get(total).tobytes() == bytes(16)  # +0.0, not -0.0
    np.testing.assert_array_equal(device.get(most), x.max(axis=1, initial=-np.inf))
    np.testing.assert_array_equal(device.get(least), x.min(axis=1, initial=np.inf))
    np.testing.assert_array_equal(device.get(places[0]), x.argmax(axis=1) if size else 0)
    np.testing.assert_array_equal(device.get(places[1]), x.argmin(axis=1) if size else 0)
    range_of = np.iinfo(np.int32)
    np.testing.assert_array_equal(device.get(integers[0]), k.sum(axis=1))
    np.testing.assert_array_equal(device.get(integers[1]), k.max(axis=1, initial=range_of.min) if not size else k.max(axis=1))
    np.testing.assert_array_equal(device.get(integers[2]), k.min(axis=1, initial=range_of.max) if not size else k.min(axis=1))
    np.testing.assert_array_equal(device.get(places[2]), k.argmax(axis=1) if size else 0)
    np.testing.assert_array_equal(device.get(ones), size)
    around.check()


def run_scanned(device: Device, kernel: Any, x: np.ndarray, k: np.ndarray, offset: int = 1) -> list[np.ndarray]:
    around = Beyond(device, 300, x.shape[1], offset)
    outputs = [around.of(np.zeros(x.shape, dtype)) for dtype in (np.float32, np.float32, np.int32, np.int32)]
    kernel(*outputs, around.of(x), around.of(k))
    around.check()
    return [device.get(one).copy() for one in outputs]


@pytest.mark.parametrize("size", SIZES)
def test_scans_have_the_bits_of_rows_of_that_size(device: Device, kernels: ModuleType, rng: np.random.Generator, size: int) -> None:
    x, k = rng.standard_normal((3, size)).astype(np.float32), rng.integers(-9, 9, (3, size)).astype(np.int32)
    sums, most, least, places = run_scanned(device, kernels.scanned, x, k, 0 if size in WHOLE else size % 4)
    for end in range(size):
        assert sums[:, end].tobytes() == by_tree(x[:, : end + 1]).tobytes()
    np.testing.assert_array_equal(most, np.maximum.accumulate(x, axis=1))
    np.testing.assert_array_equal(least, np.minimum.accumulate(k, axis=1))
    np.testing.assert_array_equal(places, np.broadcast_to(np.arange(size), (3, size)))
    if size in (33, 200):  # with a fixed size, the kernel processes the row in packs, which must give the same bits
        again = run_scanned(device, kernels.scanned.specialize(v=size), x, k, 0)
        assert all(a.tobytes() == b.tobytes() for a, b in zip([sums, most, least, places], again))


@pytest.mark.parametrize("size", [1, 5, 64, 288, 299])
def test_rows_through_control_flow_in_place(device: Device, kernels: ModuleType, rng: np.random.Generator, size: int) -> None:
    y, k = rng.standard_normal((4, size)).astype(np.float32), np.array([0, 1, 2, 3], np.int32)
    results = []
    for kernel, offset in ((kernels.through_control, 0 if size in (64, 288) else 2), (kernels.through_control.specialize(v=size), 0)):
        around = Beyond(device, 300, size, offset)
        mine, last = around.of(y), device.poisoned((4,), np.float32)
        kernel(mine, last, device.put(k))
        around.check()
        results.append((device.get(mine).copy(), device.get(last).copy()))
    assert all(a.tobytes() == b.tobytes() for a, b in zip(*results))
    np.testing.assert_array_equal(results[0][0][2], y[2])  # the kernel does not store row 2 (k = 2)


@pytest.mark.parametrize("size", [0, 1, 64, 4097, 4096, 8192, 8999, 9000])
def test_long_rows(device: Device, kernels: ModuleType, rng: np.random.Generator, size: int) -> None:
    if device.name == "ptx" and size > 5000:
        pytest.skip("an interpreter would take minutes")
    x = rng.integers(-9, -1, (2, size)).astype(np.float32)
    if size:
        x[0, size // 3] = 0.0
    around = Beyond(device, 9000, size, 1 if size % 64 else 0)
    total, at, y = device.poisoned((2,), np.float32), device.poisoned((2,), np.int32), around.of(np.zeros_like(x))
    kernels.long(total, y, at, around.of(x))
    np.testing.assert_array_equal(device.get(total), 2 * x.sum(axis=1))
    np.testing.assert_array_equal(device.get(at), x.argmax(axis=1) if size else 0)
    np.testing.assert_array_equal(device.get(y), 2 * np.cumsum(x, axis=1) - 2 * x.max(axis=1, keepdims=True, initial=-np.inf) if size else x)
    around.check()


def bounds_of(kernel: mlafix.Kernel, target: str, **bound: Any) -> list[int]:
    """Returns the bounds below the declared one for which the kernel has code versions of their own. The target "cpu"
    stands for this machine's CPU."""
    target = _runtime.device_target("cpu") if target == "cpu" else target
    entries = [version["entry"] for version in json.loads(kernel.compile(target, **bound).manifest)["kernels"][0]["code"][0]["variants"]]
    return sorted({int(found[1]) for entry in entries if (found := re.search(r"_most(\d+)_", entry))})


STEPS = [128, 512, 2048]
"""The bounds of the code versions for shorter rows, in a GPU kernel for rows of up to 4096 elements of f32."""


@pytest.mark.parametrize("size", [0, 1, 20, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2052, 4096])
def test_short_rows_have_code_versions_with_the_same_bits(device: Device, kernels: ModuleType, rng: np.random.Generator, size: int) -> None:
    if device.name == "ptx" and size > 2052:
        pytest.skip("an interpreter would take minutes")
    x = rng.standard_normal((3, size)).astype(np.float32)
    for offset in (0, 1) if size % 4 == 0 else (1,):
        around = Beyond(device, 4096, size, offset)
        total, at, y, sums = device.poisoned((3,), np.float32), device.poisoned((3,), np.int32), around.of(np.zeros_like(x)), around.of(np.zeros_like(x))
        arguments = (total, at, y, sums, around.of(x))
        kernels.stepped(*arguments)
        around.check()
        assert device.get(total).tobytes() == by_tree(2 * x).tobytes()
        np.testing.assert_array_equal(device.get(at), x.argmax(axis=1) if size else 0)
        np.testing.assert_array_equal(device.get(y), 2 * x - 2 * x.max(axis=1, keepdims=True, initial=-np.inf))
        for end in {1, size // 2, size} - {0} if size else ():
            assert device.get(sums)[:, end - 1].tobytes() == by_tree(2 * x[:, :end]).tobytes()
        entry = launched(kernels.stepped, *arguments)
        on_gpu = device.name not in ("numpy", "torch")
        most = next((step for step in (STEPS if on_gpu else bounds_of(kernels.stepped, "cpu")) if size <= step), None)
        assert re.findall(r"_most(\d+)_", entry) == ([] if most is None else [str(most)]), entry
        if on_gpu and size:
            assert entry.endswith("_whole_dense" if offset == 0 else "_fast")


def test_which_kernels_have_them(kernels: ModuleType) -> None:
    for target, steps in (("sm_90", STEPS), ("x86-64", [1024])):
        assert bounds_of(kernels.stepped, target) == steps
        # the kernel's rows have at most 300 elements, so larger bounds give no versions
        assert bounds_of(kernels.reduced, target) == ([128] if target == "sm_90" else [])
        assert bounds_of(kernels.cumulate, target, I="i32") == []  # a grid of one row gets no such versions
        assert bounds_of(kernels.stepped, target, v=4096) == []
        assert bounds_of(kernels.sliced, target) == steps[-2:]  # the slice ends at element 200, so 128 is no bound
        # the slice is of a row along D, so it rules out no bound of v
        assert bounds_of(kernels.beside_a_slice, target, D=4096) == steps
        # the kernel writes 1000 zeros at the beginning of each row of y, so a bound below 1000 is useless
        assert bounds_of(kernels.read_late, target, D=16) == steps[-1:]
        # the rows along D have 1024 elements, so a bound of v below 1024 gains nothing
        assert bounds_of(kernels.beside, target, D=1024) == steps[-1:]
        assert bounds_of(kernels.beside, target, D=4096) == []


def test_a_page_says_up_to_which_size_a_version_goes(kernels: ModuleType) -> None:
    page = explain.write_page(explain.facts_of_kernel(kernels.stepped, {}, "sm_90"))
    assert all(f"v of y at most {step}" in page for step in STEPS)


@pytest.mark.parametrize("size", [0, 16, 31, 32, 33])
def test_packs_up_to_a_bound_that_is_no_multiple(device: Device, kernels: ModuleType, rng: np.random.Generator, size: int) -> None:
    x, w, total = rng.integers(-9, 9, (3, size)).astype(np.int32), np.ones((3, 17), np.float32), device.poisoned((3,), np.int32)
    around, z = Beyond(device, 33, size, 0), device.poisoned((3, 17), np.float32)
    kernels.odd_bound(total, z, around.of(x), device.put(w))
    np.testing.assert_array_equal(device.get(total), x.sum(axis=1))
    np.testing.assert_array_equal(device.get(z), 2 * w)


def test_optional_tensors_and_rows_read_into_others(device: Device, kernels: ModuleType) -> None:
    for given in (True, False):
        y, into = device.put(np.zeros((2, 3), np.float32)), device.put(np.full((2, 12), -1, np.float32))
        kernels.optional(y, device.put(np.ones((2, 3), np.float32)) if given else None, into)
        row = np.array([1.0, 2.0, 3.0]) * (2 if given else 1)
        np.testing.assert_array_equal(device.get(y), np.broadcast_to(row, (2, 3)))
        # each=2 puts each element of y twice into the row. A bounded row is not repeated, so zeros are around them.
        np.testing.assert_array_equal(device.get(into), np.broadcast_to([0, 0, *np.repeat(row, 2), 0, 0, 0, 0], (2, 12)))


def test_fill(device: Device, kernels: ModuleType) -> None:
    around = Beyond(device, 40, 17, 3)
    x, y = np.arange(51, dtype=np.float32).reshape(3, 17), np.zeros((3, 17), np.float32)
    mine = around.of(y)
    kernels.filled(mine, around.of(x), 2)
    np.testing.assert_array_equal(device.get(mine), np.where(np.arange(3)[:, None] < 2, x, 7))
    around.check()


def test_the_dim_may_be_an_extent_too(device: Device, kernels: ModuleType) -> None:
    x, y, rows = np.array([1, 5, 2], np.float32), device.poisoned((3,), np.float32), device.poisoned((3, 4), np.float32)
    kernels.elements(y, device.put(x), rows)
    np.testing.assert_array_equal(device.get(y), x + 5)
    np.testing.assert_array_equal(device.get(rows), np.ones((3, 4)))


def test_a_larger_dim_is_refused(device: Device, kernels: ModuleType) -> None:
    y = device.put(np.full((2, 301), 3, np.float32))
    with pytest.raises(mlafix.ArgumentError, match="expected v <= 300, got v = 301"):
        kernels.softmax(y, device.put(np.zeros((2, 301), np.float32)))
    assert (device.get(y) == 3).all()


def test_the_text_says_the_bound_once(kernels: ModuleType, tmp_path: Path, rng: np.random.Generator) -> None:
    source = kernels.scanned.source
    assert "most = {v = 300" in source and 'tensor<300xf32, #mlafix.dim<"v" most 300>>' in source
    file = tmp_path / "scanned.mlir"
    file.write_text(source)
    x, k = rng.standard_normal((3, 77)).astype(np.float32), rng.integers(-9, 9, (3, 77)).astype(np.int32)
    got = [run_scanned(Device(), kernel, x, k) for kernel in (kernels.scanned, mlafix.Kernel.load(str(file)))]
    assert all(a.tobytes() == b.tobytes() for a, b in zip(*got))


def test_proofs(kernels: ModuleType) -> None:
    for kernel in (kernels.softmax, kernels.scanned, kernels.cumulate):
        text = str(kernel.report())
        assert "unknown" not in text and "refuted" not in text, text


WRONG = {
    "states": ('y: Out[f32, "n v<=8"], lse: In[f32, "n"]', "store_state(merge(load_state(y[t], lse[t]), identity('v')), y[t])", "a state along a dim that is known"),
    "swaps": ('y: InOut[f32, "n v<=8"], lse: In[f32, "n"]', "y[t] = swap(y[t], 1)", "a row whose size is known when the kernel is compiled"),
    "halves": ('y: InOut[f4e2m1, "n v<=8"], lse: In[f32, "n"]', "y[t] = 1.0", "expected rows of 'y', which is f4e2m1"),
    "optional": ('y: InOut[f32, "n v<=8"] | None, lse: In[f32, "n"]', "y[t] = 1.0", "lower-case dims of tensors that are always given, got 'v'"),
    "two bounds": ('y: InOut[f32, "n v<=8"], lse: In[f32, "n v<=9"]', "y[t] = lse[t]", "expected one bound of dim 'v' in all arguments, got 8 and 9"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_such_rows_cannot_do_is_an_error(tmp_path: Path, what: str) -> None:
    arguments, body, message = WRONG[what]
    text = f'\n@mlafix.kernel\ndef wrong({arguments}):\n    for t in grid("n"):\n        {body}\n'
    with pytest.raises(mlafix.CompileError, match=message):
        load(tmp_path, text).wrong.compile("x86-64")


@pytest.mark.parametrize("dims", ["n B<=8", "n _<=8", "n v<8", "n v<=", "n v<=0", "n v<=x", "n v<=2147483648", "n <=3"])
def test_spellings(dims: str) -> None:
    from mlafix.dsl import In, f32

    with pytest.raises(mlafix.ArgumentError, match="expected a bound"):
        In[f32, dims]
    assert repr(In[f32, "n v<=8"]) == 'In[f32, "n v<=8"]'


def test_a_size_beyond_the_bound_is_not_compiled(kernels: ModuleType) -> None:
    with pytest.raises(mlafix.CompileError, match="expected at most 300 for dim 'v', got '301'"):
        kernels.softmax.compile("x86-64", v=301, T="f32")
