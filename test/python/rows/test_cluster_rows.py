"""Rows shared by the blocks of a thread-block cluster, such as rows of a vocabulary. Results are compared with numpy in
f64. Sums must have the bits of sums in the order that the language defines (N9), which is a tree of pairs."""

from __future__ import annotations

import re
from types import ModuleType

import numpy as np
import pytest
from devices import Device
from numerics import BF16, F16, F32
from test_long_rows import check_probabilities, soft, spaced, whole
from test_scans import reduced

TEXT = """
@mlafix.kernel
def softmax(y: Out[T, "n V"], x: In[T, "n V"]):
    for t in grid("n"):
        e = exp(x[t] - max(x[t]))
        y[t] = e / sum(e)


@mlafix.kernel
def entropy(loss: Out[f32, "n"], best: Out[i32, "n"], x: In[T, "n V"], labels: In[i32, "n"]):
    for t in grid("n"):
        m = max(x[t])
        target = sum(where(iota("V") == labels[t], x[t], 0.0))
        loss[t] = m + log(sum(exp(x[t] - m))) - target
        best[t] = argmax(x[t])


@mlafix.kernel
def greedy(best: Out[i32, "n"], x: In[T, "n V"]):
    for t in grid("n"):
        best[t] = argmax(x[t])


@mlafix.kernel
def sums(total: Out[f32, "n"], squares: Out[f32, "n"], least: Out[f32, "n"], ids: Out[i32, "n"], x: In[f32, "n V"]):
    for t in grid("n"):
        s = sum(x[t])
        total[t] = s
        squares[t] = sum((x[t] - s) * (x[t] - s))
        least[t] = min(x[t])
        ids[t] = sum(where(x[t] > 0.0, iota("V"), 0))


@mlafix.kernel
def norm(x: InOut[T, "n V"], w: In[T, "V"], eps: f32):
    for t in grid("n"):
        x[t] = x[t] * rsqrt(sum(x[t] * x[t]) / f32(shape("V")) + eps) * w[:]


@mlafix.kernel
def best(values: Out[f32, "n k=3"], ids: Out[i32, "n k=3"], x: In[T, "n V"]):
    for t in grid("n"):
        v, i = top_k(x[t], 3)
        for j in range(3):
            values[t, j] = v[j]
            ids[t, j] = i[j]


@mlafix.kernel
def repeated(total: Out[f32, "n"], x: InOut[f32, "n V"], c: In[i32, "n"]):
    for t in grid("n"):
        acc = 0.0
        for i in range(c[t]):
            if i != 1:
                acc = acc * 0.5 + sum(x[t] + f32(i))
        total[t] = acc
        x[t] = x[t] - acc


@mlafix.kernel
def in_turn(total: Out[i64, "n"], x: In[i64, "n V"]):
    for t in grid("n"):
        s = sum(x[t])
        {more}
        total[t] = s


@mlafix.kernel
def one_between(x: InOut[f32, "n V"], total: Out[f32, "n"]):
    for t in grid("n"):
        s = sum(x[t])
        x[t, 40000] = s
        total[t] = max(x[t])
""".replace("{more}", "; ".join(12 * ["s = sum(x[t] ^ s)"]))

# Adds copies of the kernels sums, entropy and softmax, ends_sums etc. Their rows are along a dim whose size is only
# known at the launch.
TEXT += "".join(
    f"\n@mlafix.kernel{one}"
    for one in TEXT.replace('"n V"', '"n v<=151936"').replace('"V"', '"v"').replace("def ", "def ends_").split("@mlafix.kernel")
    if "ends_sums" in one or "ends_entropy" in one or "ends_softmax" in one
)

# Blocks have 256 or 512 threads, depending on the size. For some sizes, the last packs of some threads hold no element.
SIZES = [50304, 65544, 128256, 151936]


def special(rng: np.random.Generator, rows: int, size: int, dtype: np.dtype) -> np.ndarray:
    """Returns random rows, the first with ties. If there are enough rows, one is all -inf, one has NaN, and one is -inf
    except for its last elements."""
    x = (rng.standard_normal((rows, size)) * 3).astype(dtype)
    x[0, size // 2] = x[0, size - 1] = 40
    for row, change in enumerate([((slice(None), -np.inf),), ((size - 3, np.nan), (size - 2, np.nan)), ((slice(0, size - 9), -np.inf),)], 1):
        for place, value in change if row < rows else ():
            x[row, place] = value
    return x


def shape_of(ptx: str, entry: str) -> tuple[int, int]:
    """Returns the number of blocks in a cluster and of threads in a block."""
    head = ptx[ptx.index(f".entry {entry}(") :].split("{", 1)[0]
    cluster, threads = re.search(r"reqnctapercluster (\d+)", head), re.search(r"(?:req|max)ntid (\d+)", head)
    assert threads
    return int(cluster[1]) if cluster else 1, int(threads[1])


@pytest.mark.parametrize("kernel, dtype, size, shape", [
    ("softmax", "bf16", 32000, (1, 1024)), ("softmax", "bf16", 50304, (8, 256)), ("softmax", "f32", 50304, (8, 256)), ("softmax", "bf16", 128256, (8, 512)),
    ("softmax", "f32", 151936, (8, 512)), ("softmax", "f32", 262144, (8, 1024)), ("greedy", "bf16", 65536, (1, 1024)), ("greedy", "bf16", 128256, (8, 256)),
    ("greedy", "bf16", 1 << 19, (8, 1024)), ("softmax", "bf16", 1 << 19, (1, 1024)), ("norm", "bf16", 128256, (8, 512)),
])  # fmt: skip
def test_a_cluster_shares_a_row_that_no_block_holds(kernels: ModuleType, kernel: str, dtype: str, size: int, shape: tuple[int, int]) -> None:
    made = getattr(kernels, kernel)
    assert shape_of(made.ptx("sm_90", T=dtype, V=size), f"{kernel}_dense") == shape
    assert shape_of(made.ptx("sm_80", T=dtype, V=size), f"{kernel}_dense")[0] == 1


def test_a_cluster_shares_a_row_that_ends_at_the_launch(kernels: ModuleType) -> None:
    """Long rows are shared by a cluster of eight blocks. Rows of up to 32768 elements fit in one block and have no
    cluster. Neither code version uses local memory."""
    ptx = kernels.ends_softmax.ptx("sm_90", T="bf16")
    assert shape_of(ptx, "ends_softmax_whole_dense") == (8, 512)
    assert shape_of(ptx, "ends_softmax_most32768_whole_dense") == (1, 1024)
    for entry in ("whole_dense", "most32768_whole_dense"):
        body = ptx[ptx.index(f".entry ends_softmax_{entry}(") :].split("\n}", 1)[0]
        assert ".local" not in body


@pytest.mark.parametrize("size", [20000, 50304, 128256])
def test_rows_that_end_at_the_launch(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int) -> None:
    x = special(rng, 2, size, BF16)
    x[1] = rng.standard_normal(size).astype(BF16)
    y, loss, best = device.poisoned(x.shape, BF16), device.poisoned((2,), F32), device.poisoned((2,), np.int32)
    kernels.ends_softmax(y, device.put(x))
    labels = np.array([size - 1, 5], np.int32)
    kernels.ends_entropy(loss, best, device.put(x), device.put(labels))
    check_probabilities(device.get(y), soft(x)[0])
    np.testing.assert_array_equal(device.get(best), x.astype(np.float32).argmax(1))
    np.testing.assert_allclose(device.get(loss), soft(x)[1] - x[np.arange(2), labels].astype(np.float64), rtol=4e-6, atol=1e-5)


@pytest.mark.parametrize("dtype", [F32, BF16, F16], ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_probabilities(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int, dtype: np.dtype) -> None:
    x = special(rng, 2, size, dtype)
    x[1] = -2
    y = device.poisoned(x.shape, dtype)
    kernels.softmax(y, device.put(spaced(x, 16, 8)))
    check_probabilities(device.get(y), soft(x)[0])


@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_cross_entropy_and_the_greatest(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int, dtype: np.dtype) -> None:
    x = special(rng, 4, size, dtype)
    labels = np.array([size - 1, 5, 0, size // 2], np.int32)
    loss, best, greedy = device.poisoned((4,), F32), device.poisoned((4,), np.int32), device.poisoned((4,), np.int32)
    kernels.entropy(loss, best, device.put(x), device.put(labels))
    kernels.greedy(greedy, device.put(x))
    first = [size // 2, 0, size - 3, int(x[3].astype(np.float32).argmax())]
    np.testing.assert_array_equal(device.get(best), first)
    np.testing.assert_array_equal(device.get(greedy), first)
    with np.errstate(invalid="ignore"):
        want = soft(x)[1] - x[np.arange(4), labels].astype(np.float64)
    want[1:3] = np.nan
    np.testing.assert_allclose(device.get(loss), want, rtol=4e-6, atol=1e-5)


@pytest.mark.parametrize("kernel, rows, size", [
    ("sums", 0, 50304), ("sums", 2, 50304), ("sums", 2, 65544), ("sums", 2, 151936), ("ends_sums", 1, 50304),
])  # fmt: skip
def test_bits_of_sums(kernels: ModuleType, device: Device, rng: np.random.Generator, kernel: str, size: int, rows: int) -> None:
    """Numbers are added in the order of a tree of pairs, which is the same for every layout (N9)."""
    x = rng.standard_normal((rows, size)).astype(np.float32)
    found = [device.poisoned((rows,), dtype) for dtype in (F32, F32, F32, np.int32)]
    getattr(kernels, kernel)(*found, device.put(x))
    total, squares, least, ids = (device.get(one) for one in found)
    s = reduced(x)
    np.testing.assert_array_equal(total, s)
    v = x - s[:, None]
    np.testing.assert_array_equal(squares, reduced(v * v))
    np.testing.assert_array_equal(least, x.min(1))
    np.testing.assert_array_equal(ids, np.where(x > 0, np.arange(size, dtype=np.int32), 0).sum(1, dtype=np.int32))


@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
def test_a_row_is_normed_in_place(kernels: ModuleType, device: Device, rng: np.random.Generator, dtype: np.dtype) -> None:
    x, w = (rng.standard_normal(shape).astype(dtype) for shape in ((2, 128256), (128256,)))
    y = device.put(x.copy())
    kernels.norm(y, device.put(w), 1e-5)
    wide = x.astype(np.float64)
    want = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5) * w.astype(np.float64)
    np.testing.assert_allclose(device.get(y).astype(np.float64), want, rtol=4e-6 if dtype == F32 else 2.0**-8)


@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
def test_the_three_greatest(kernels: ModuleType, device: Device, rng: np.random.Generator, dtype: np.dtype) -> None:
    x = special(rng, 2, 128256, dtype)
    values, ids = device.poisoned((2, 3), F32), device.poisoned((2, 3), np.int32)
    kernels.best(values, ids, device.put(x))
    order = np.argsort(-x.astype(np.float32), axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(device.get(ids), order)
    np.testing.assert_array_equal(device.get(values), np.take_along_axis(x.astype(np.float32), order, 1))


def test_many_reductions_in_turn(kernels: ModuleType, device: Device, rng: np.random.Generator) -> None:
    """So many exchanges of large partial results use the same shared memory. The PTX interpreter fails if a lane may
    still load a result when another lane stores one of the next reduction."""
    x = rng.integers(-(1 << 62), 1 << 62, (2, 33280))
    total = device.poisoned((2,), np.int64)
    kernels.in_turn(total, device.put(x))
    want = x.sum(1)
    for _ in range(12):
        want = (x ^ want[:, None]).sum(1)
    np.testing.assert_array_equal(device.get(total), want)


@pytest.mark.parametrize("turn", range(4))
def test_reductions_in_loops(kernels: ModuleType, device: Device, rng: np.random.Generator, turn: int) -> None:
    """The blocks of a cluster use the same memory for their exchange in each iteration, and the number of iterations
    differs between rows. The PTX interpreter runs the blocks in a random order, so the test fails if a block does not
    wait for another one."""
    x, c = whole(rng, (4, 65544)), np.array([0, 1, 2, 4], np.int32)
    total, given = device.poisoned((4,), F32), device.put(x.copy())
    kernels.repeated(total, given, device.put(c))
    want = np.zeros(4, np.float32)
    for t in range(4):
        for i in range(c[t]):
            if i != 1:
                want[t] = want[t] * np.float32(0.5) + reduced(x[t : t + 1] + np.float32(i))[0]
    np.testing.assert_array_equal(device.get(total), want)
    np.testing.assert_array_equal(device.get(given), x - want[:, None])


@pytest.mark.parametrize("turn", range(4))
def test_a_block_reads_what_another_one_wrote(kernels: ModuleType, device: Device, rng: np.random.Generator, turn: int) -> None:
    x = np.abs(whole(rng, (2, 65544)))
    given, most = device.put(x.copy()), device.poisoned((2,), F32)
    kernels.one_between(given, most)
    np.testing.assert_array_equal(device.get(most), x.sum(1))
    np.testing.assert_array_equal(np.array(device.get(given))[:, 40000], x.sum(1))
