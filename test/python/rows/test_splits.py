"""Running merges whose states are divided among lane groups on a GPU. The launch chooses the number of groups. Results
are compared with f64, and their bits do not depend on the number of groups."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import contract
import numpy as np
import pytest
from devices import Device
from numerics import BF16, F32
from sources import load

TEXT = """
@mlafix.kernel
def one(out: Out[f32, "n D"], out_lse: Out[f32, "n"], v: In[T, "n s D"], lse: In[f32, "n s"]):
    for t in grid("n"):
        merged = identity("D")
        for k in range(shape("s")):
            merged = merge(merged, load_state(v[t, k], lse[t, k]))
        store_state(merged, out[t], out_lse[t])


@mlafix.kernel
def behind_the_first(out: Out[f32, "n D"], out_lse: Out[f32, "n"], v: In[T, "n s D"], lse: In[f32, "n s"]):
    assume(shape("s") >= 1)
    for t in grid("n"):
        merged = load_state(v[t, 0], lse[t, 0])
        for k in range(1, shape("s")):
            merged = merge(merged, load_state(v[t, k], lse[t, k]))
        store_state(merged, out[t], out_lse[t])


@mlafix.kernel
def in_turn(out: Out[f32, "n D"], out_lse: Out[f32, "n"], v: In[T, "n s D"], lse: In[f32, "n s"]):
    for t in grid("n"):
        merged = identity("D")
        for k in range(shape("s")):
            merged = merge(merged, load_state(v[t, k], lse[t, k], where=not lse[t, k] <= 1.0))
        for k in range(shape("s")):
            merged = merge(merged, load_state(v[t, k], lse[t, k], where=lse[t, k] <= 1.0))
        store_state(merged, out[t], out_lse[t])


@mlafix.kernel
def twice(out: Out[f32, "n D"], out_lse: Out[f32, "n"], v: In[T, "n s D"], lse: In[f32, "n s"]):
    for t in grid("n"):
        merged = identity("D")
        for k in range(shape("s")):
            merged = merge(merged, load_state(v[t, k], lse[t, k]))
        for k in range(shape("s")):
            merged = merge(merged, load_state(v[t, k], lse[t, k]))
        store_state(merged, out[t], out_lse[t])


@mlafix.kernel
def needed(out: Out[f32, "n D"], out_lse: Out[f32, "n"], v: In[T, "n s D"], lse: In[f32, "n s"]):
    for t in grid("n"):
        large = identity("D")
        for k in range(shape("s")):
            large = merge(large, load_state(v[t, k], lse[t, k], where=not lse[t, k] <= 1.0))
        most = lse_of(large)
        merged = large
        for k in range(shape("s")):
            merged = merge(merged, load_state(v[t, k], lse[t, k], where=(lse[t, k] <= 1.0) & (most > -1e30)))
        store_state(merged, out[t], out_lse[t])
"""
NAMES = ["one", "behind_the_first", "in_turn", "needed"]
SPLITS = [0, 1, 3, 4, 5, 32, 33, 100, 130]


def states(rng: np.random.Generator, splits: int, dim: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Returns states of nine kinds. Among them are empty states with NaN payloads, lses of +inf and NaN, large gaps
    between lses, infinite payloads without weight, and payloads of -0.0."""
    v = rng.standard_normal((9, splits, dim)).astype(dtype)
    lse = (rng.standard_normal((9, splits)) * 3).astype(F32)
    v[1], lse[1] = np.nan, -np.inf
    lse[2] = np.inf
    lse[3, ::2], v[3, ::2] = -np.inf, np.inf
    lse[4] *= 50
    lse[5, -1:], lse[5, :-1], v[5, :-1] = 90, -90, np.inf
    lse[6, splits // 2 : splits // 2 + 1] = np.nan
    v[7] = -0.0
    return v, lse


def check(out: np.ndarray, out_lse: np.ndarray, v: np.ndarray, lse: np.ndarray) -> None:
    want, want_lse = contract.merge(v.swapaxes(0, 1), lse.T)
    want.check(out, "out")
    want_lse.check(out_lse, "lse")


def run(device: Device, kernel: Callable[..., None], v: np.ndarray, lse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    out, out_lse = device.poisoned((len(v), v.shape[-1]), F32), device.poisoned((len(v),), F32)
    kernel(out, out_lse, device.put(v), device.put(lse))
    return device.get(out), device.get(out_lse)


@pytest.mark.parametrize("dim, dtype", [(64, F32), (96, F32), (128, BF16), (128, F32), (512, BF16), (512, F32)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_any_number_of_groups(device: Device, rng: np.random.Generator, kernels: ModuleType, name: str, dim: int, dtype: np.dtype) -> None:
    """In a small launch, many lane groups share the states of a row. In a large launch, few groups do, or a single one
    merges them all. A row has the same bits in both launches."""
    kernel = getattr(kernels, name)
    times = {"cuda": 300, "ptx": 6}.get(device.name, 10)
    for splits in [0, 3, 33] if device.name == "ptx" else SPLITS:
        if splits == 0 and name == "behind_the_first":
            continue
        v, lse = states(rng, splits, dim, dtype)
        alone, alone_lse = run(device, kernel, v, lse)
        among, among_lse = run(device, kernel, *(np.tile(x, (times, *[1] * (x.ndim - 1))) for x in (v, lse)))
        empty = np.where(np.isposinf(lse), -np.inf, lse) <= 1
        check(alone, alone_lse, v, np.where(empty.all(1, keepdims=True), -np.inf, lse) if name == "needed" else lse)
        np.testing.assert_array_equal(np.tile(alone, (times, 1)).view(np.int32), among.view(np.int32))
        np.testing.assert_array_equal(np.tile(alone_lse, times).view(np.int32), among_lse.view(np.int32))


@pytest.mark.parametrize("dim, dtype", [(128, BF16), (128, F32), (512, BF16), (512, F32)], ids=str)
@pytest.mark.parametrize("name", ["one", "behind_the_first", "twice"])
def test_as_many_groups_as_a_row_can_have(device: Device, rng: np.random.Generator, kernels: ModuleType, name: str, dim: int, dtype: np.dtype) -> None:
    """If a launch has only one row, 16 or 32 lane groups share its states, and each thread then adds up one element of
    the row over all groups. A launch of many rows has larger lane groups, and must give the same bits."""
    kernel = getattr(kernels, name)
    times = 4 if device.name == "ptx" else 16
    for splits in (33, 100):
        v, lse = states(rng, splits, dim, dtype)
        out, out_lse = run(device, kernel, np.tile(v, (times, 1, 1)), np.tile(lse, (times, 1)))
        merged = 2 if name == "twice" else 1
        check(out[: len(v)], out_lse[: len(v)], np.tile(v, (1, merged, 1)), np.tile(lse, (1, merged)))
        for row in range(len(v)) if splits == 33 else (0, 3):
            alone, alone_lse = run(device, kernel, v[row : row + 1], lse[row : row + 1])
            np.testing.assert_array_equal(alone.view(np.int32), out[row : row + 1].view(np.int32))
            np.testing.assert_array_equal(alone_lse.view(np.int32), out_lse[row : row + 1].view(np.int32))


def test_an_index_of_an_lse_that_is_used_again_and_again(device: Device, rng: np.random.Generator, tmp_path: Path) -> None:
    """The index of an lse is computed in 40 steps, each of which uses the previous value several times. The compiler
    analyses each step once; once per use would be more than 2^40 analyses."""
    steps = "            x = x * x + x\n" * 40
    kernels = load(tmp_path, f"""
@mlafix.kernel
def squares(out: Out[f32, "n D"], out_lse: Out[f32, "n"], v: In[f32, "n s D"], lse: In[f32, "n s"]):
    for t in grid("n"):
        merged = identity("D")
        for k in range(shape("s")):
            x = k
{steps}            x = max(min(x, shape("s") - 1), 0)
            merged = merge(merged, load_state(v[t, k], lse[t, x]))
        store_state(merged, out[t], out_lse[t])
""")
    v, lse = states(rng, 33, 128, F32)
    x = np.arange(33)
    for _ in range(40):
        x = x * x + x  # the product wraps around in i32
    check(*run(device, kernels.squares, v, lse), v, lse[:, np.clip(x, 0, 32)])


def test_a_merged_lse_that_is_used_again_and_again(device: Device, rng: np.random.Generator, kernels: ModuleType, tmp_path: Path) -> None:
    """Between two loops, 40 steps compute a value from the lse of the first loop. Each step uses the previous value
    twice, but the compiler analyses the step once. A step does not change the value, so the result is the lse."""
    steps = "        most = most * 0.5 + most * 0.5\n" * 40
    module = load(tmp_path, f"""
@mlafix.kernel
def halves(out: Out[f32, "n D"], out_lse: Out[f32, "n"], first_lse: Out[f32, "n"], v: In[f32, "n s D"], lse: In[f32, "n s"]):
    for t in grid("n"):
        merged = identity("D")
        for k in range(shape("s")):
            merged = merge(merged, load_state(v[t, k], lse[t, k]))
        most = lse_of(merged)
{steps}        for k in range(shape("s")):
            merged = merge(merged, load_state(v[t, k], lse[t, k]))
        store_state(merged, out[t], out_lse[t])
        first_lse[t] = most
""")
    v, lse = states(rng, 33, 128, F32)
    first_lse = device.poisoned((9,), F32)
    out, _ = run(device, lambda out, out_lse, *given: module.halves(out, out_lse, first_lse, *given), v, lse)
    want_out, want_lse = run(device, kernels.one, v, lse)
    np.testing.assert_array_equal(device.get(first_lse).view(np.int32), want_lse.view(np.int32))
    np.testing.assert_allclose(out, want_out, rtol=4e-6, atol=2e-6)


@pytest.mark.parametrize("states", [1, 7, 8, 9, 33])
def test_narrow_rows_whose_last_chunk_is_a_part(device: Device, tmp_path: Path, rng: np.random.Generator, states: int) -> None:
    """Merges rows of one pack, with a number of states that is only known at the launch. No element is NaN, whichever
    states are empty."""
    kernel = load(tmp_path, """
@mlafix.kernel
def narrow(out: Out[bf16, "n H D"], x: In[f32, "k n H D"], lse: In[f32, "k n H"]):
    for t, h in grid("n", "H"):
        state = identity("D")
        for i in range(x.shape[0]):
            state = merge(state, load_state(x[i, t, h], lse[i, t, h]))
        store_state(state, out[t, h])
""").narrow
    x, lse = rng.normal(0, 1, (states, 33, 5, 8)).astype(np.float32), rng.normal(0, 3, (states, 33, 5)).astype(np.float32)
    lse[rng.random(lse.shape) < 0.3] = -np.inf
    x[np.isinf(lse)] = np.nan
    out = device.poisoned((33, 5, 8), BF16)
    kernel(out, device.put(x), device.put(lse))
    contract.merge(x, lse, out_dtype=BF16)[0].check(device.get(out), "out")
