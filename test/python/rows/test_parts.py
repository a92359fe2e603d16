"""Parts of rows along a product: a group x[t, g], a member of each group x[t, :, k], and an element x[t, g, k]. Results
are compared with numpy."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from devices import Device
from numerics import BF16, E4M3, F32
from sources import load, refused
from test_scans import spaced

import mlafix

TEXT = """
@mlafix.kernel
def swap_groups(y: Out[T, "n (4 K)"], x: In[T, "n (4 K)"], last: index):
    for t in grid("n"):
        for g in range(4):
            y[t, g] = x[t, last - g]


@mlafix.kernel
def turn_halves(x: InOut[T, "n H (2 K)"], angles: In[f32, "n (2 K)"]):
    for t, h in grid("n", "H"):
        c, s = angles[t, 0], angles[t, 1]
        a, b = x[t, h, 0], x[t, h, 1, :]
        x[t, h, 0] = a * c - b * s
        x[t, h, 1] = b * c + a * s


@mlafix.kernel
def turn_pairs(x: InOut[T, "n H (K 2)"], angles: In[f32, "n (2 K)"]):
    for t, h in grid("n", "H"):
        c, s = angles[t, 0], angles[t, 1]
        a, b = x[t, h, :, 0], x[t, h, :, 1]
        x[t, h, :, 0] = a * c - b * s
        x[t, h, :, 1] = b * c + a * s


@mlafix.kernel
def swiglu(y: Out[T, "n K"], x: In[T, "n (2 K)"]):
    for t in grid("n"):
        a = x[t, 0]
        y[t] = a / (exp(-a) + 1.0) * x[t, 1]


@mlafix.kernel
def members(y: Out[T, "n (K 4)"], sums: Out[f32, "n K"], x: In[T, "n (K 4)"]):
    for t in grid("n"):
        acc = splat(0.0, "K")
        for m in range(4):
            y[t, :, 3 - m] = x[t, :, m]
            acc = acc + x[t, :, m]
        sums[t] = acc


@mlafix.kernel
def one_member(x: InOut[T, "n (K 2)"], c: In[i32, "n"]):
    for t in grid("n"):
        store(x[t, :, 1], load(x[t, :, 0], where=c[t] > 0, otherwise=7.0) + 1.0, where=c[t] != 2)


@mlafix.kernel
def mixed(x: InOut[f32, "n (G K)"], total: Out[f32, "n"], g: In[i32, "n"], k: In[i32, "n"]):
    for t in grid("n"):
        row = x[t] + 1.0
        x[t] = row
        part = x[t, g[t]]
        x[t, 0] = part * 2.0
        member = x[t, :, k[t]]
        x[t, :, 0] = member
        x[t] = x[t] + 1.0
        x[t, g[t], k[t]] = x[t, 0, 0] * 10.0
        total[t] = sum(x[t])


@mlafix.kernel
def in_turn(x: InOut[f32, "n (2 K)"], y: InOut[f32, "n (K 2)"]):
    for t in grid("n"):
        x[t] = x[t] + 1.0
        x[t, 0] = x[t, 1] * 2.0
        x[t] = x[t] + 1.0
        y[t] = y[t] + 1.0
        y[t, :, 0] = y[t, :, 1] * 2.0
        y[t] = y[t] + 1.0


@mlafix.kernel
def scaled(y: Out[f32, "n (G K)"], x: In[f32, "n (G K)"]):
    for t in grid("n"):
        first, most = x[t, :, 0], max(x[t], along="K")
        y[t] = x[t] - first
        y[t, :, 0] = first + most


@mlafix.kernel(allow={"bounds"})
def ragged(x: InOut[f32, "n (2 K)"], e: InOut[f32, "n (2 2)"], cu: In[i32, "b1"], lens: In[i32, "b"]):
    for b, t in segments(cu, "n", where=lambda b: lens[b] > 0):
        x[t, 1] = x[t, 0] + x[t, 1]
        e[t, 1, 0] = 5.0


@mlafix.kernel
def gathered(y: Out[T, "n (2 K)"], x: In[T, "m (2 K)"], ids: In[i32, "n"], halves: In[i32, "n"]):
    for t in grid("n"):
        y[t, 0] = x[ids[t], halves[t]]
        y[t, 1] = x[ids[t], 1 - halves[t]]
"""

SIZES = [1, 2, 3, 8, 64, 96, 100, 4096, 33000]


@pytest.mark.parametrize("dtype", [BF16, F32, E4M3])
@pytest.mark.parametrize("gap, offset", [(0, 0), (16, 0), (3, 1)])
@pytest.mark.parametrize("size", SIZES)
def test_groups_are_rows(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int, gap: int, offset: int, dtype: np.dtype) -> None:
    x = rng.integers(-8, 8, (5, 4 * size)).astype(dtype)
    y = device.put(spaced(np.full_like(x, 3), gap, offset))
    kernels.swap_groups(y, device.put(spaced(x, gap, offset)), 3)
    np.testing.assert_array_equal(device.get(y).astype(np.float32), x.reshape(5, 4, size)[:, ::-1].reshape(5, -1).astype(np.float32))


def turned(a: np.ndarray, b: np.ndarray, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    c, s = (half[:, None].astype(np.float64) for half in np.split(angles, 2, axis=1))
    a, b = a.astype(np.float64), b.astype(np.float64)
    return a * c - b * s, b * c + a * s


@pytest.mark.parametrize("dtype", [BF16, F32])
@pytest.mark.parametrize("gap, offset", [(0, 0), (16, 0), (3, 1)])
@pytest.mark.parametrize("size", SIZES)
def test_halves_and_pairs_are_turned_in_place(
    kernels: ModuleType, device: Device, rng: np.random.Generator, size: int, gap: int, offset: int, dtype: np.dtype
) -> None:
    # Sums of small integers are exact in any order.
    x = rng.integers(-8, 8, (3, 2, 2 * size)).astype(dtype)
    angles = rng.integers(-3, 4, (3, 2 * size)).astype(np.float32)
    half, pair = device.put(spaced(x, gap, offset)), device.put(spaced(x, gap, offset))
    kernels.turn_halves(half, device.put(angles))
    kernels.turn_pairs(pair, device.put(angles))
    np.testing.assert_array_equal(device.get(half).astype(np.float64), np.concatenate(turned(*np.split(x, 2, axis=2), angles), axis=2))
    even, odd = turned(x[..., 0::2], x[..., 1::2], angles)
    np.testing.assert_array_equal(device.get(pair).astype(np.float64), np.stack((even, odd), axis=3).reshape(x.shape))


@pytest.mark.parametrize("size", SIZES)
def test_swiglu(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int) -> None:
    x = rng.standard_normal((4, 2 * size)).astype(np.float32)
    y = device.poisoned((4, size), F32)
    kernels.swiglu(y, device.put(x))
    a, b = np.split(x.astype(np.float64), 2, axis=1)
    np.testing.assert_allclose(device.get(y), a / (1 + np.exp(-a)) * b, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [BF16, F32, E4M3])
@pytest.mark.parametrize("gap, offset", [(0, 0), (3, 1)])
@pytest.mark.parametrize("size", SIZES)
def test_members_of_fours(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int, gap: int, offset: int, dtype: np.dtype) -> None:
    x = rng.integers(-8, 8, (5, 4 * size)).astype(dtype)
    y, sums = device.put(spaced(np.full_like(x, 3), gap, offset)), device.poisoned((5, size), F32)
    kernels.members(y, sums, device.put(spaced(x, gap, offset)))
    each = x.reshape(5, size, 4).astype(np.float32)
    np.testing.assert_array_equal(device.get(y).astype(np.float32), each[..., ::-1].reshape(5, -1))
    np.testing.assert_array_equal(device.get(sums), each.sum(2))


@pytest.mark.parametrize("size", SIZES)
def test_one_member_under_a_predicate(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int) -> None:
    x = rng.integers(-8, 8, (6, 2 * size)).astype(np.float32)
    c = np.array([0, 1, 2, 3, 0, 1], np.int32)
    got = device.put(x.copy())
    kernels.one_member(got, device.put(c))
    want = x.reshape(6, size, 2).copy()
    want[..., 1] = np.where(c[:, None] != 2, np.where(c[:, None] > 0, want[..., 0], 7) + 1, want[..., 1])
    np.testing.assert_array_equal(device.get(got), want.reshape(6, -1))


@pytest.mark.parametrize("groups, size", [(2, 2), (1, 1), (4, 64), (64, 4), (3, 7), (7, 3), (2, 4096), (4096, 2), (100, 33)])
def test_parts_wholes_and_elements_in_one_row(kernels: ModuleType, device: Device, rng: np.random.Generator, groups: int, size: int) -> None:
    x = rng.integers(-8, 8, (5, groups * size)).astype(np.float32)
    # Elements out of bounds read as zero, and stores to them do nothing.
    g, k = np.array([0, groups - 1, groups, -1, groups // 2], np.int32), np.array([0, size - 1, 0, size, size // 2], np.int32)
    got, total = device.put(x.copy()), device.poisoned((5,), F32)
    kernels.mixed.specialize(G=groups)(got, total, device.put(g), device.put(k))
    want = x.reshape(5, groups, size) + 1
    for t in range(5):
        in_group, in_size = 0 <= g[t] < groups, 0 <= k[t] < size
        want[t, 0] = want[t, g[t]] * 2 if in_group else 0
        want[t, :, 0] = want[t, :, k[t]] if in_size else 0
        want[t] += 1
        if in_group and in_size:
            want[t, g[t], k[t]] = want[t, 0, 0] * 10
    np.testing.assert_array_equal(device.get(got), want.reshape(5, -1))
    np.testing.assert_array_equal(device.get(total), want.sum((1, 2)))


@pytest.mark.parametrize("size", SIZES)
def test_wholes_and_parts_take_turns(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int) -> None:
    x = rng.integers(-8, 8, (3, 2, size)).astype(np.float32)
    halves, pairs = device.put(x.reshape(3, -1).copy()), device.put(x.swapaxes(1, 2).reshape(3, -1).copy())
    kernels.in_turn(halves, pairs)
    want = np.stack((2 * (x[:, 1] + 1) + 1, x[:, 1] + 2), axis=1)
    np.testing.assert_array_equal(device.get(halves).reshape(x.shape), want)
    np.testing.assert_array_equal(device.get(pairs).reshape(3, size, 2).swapaxes(1, 2), want)


@pytest.mark.parametrize("groups, size", [(2, 2), (1, 1), (4, 128), (64, 4), (3, 7), (5, 96), (2, 4096), (4096, 2), (100, 33)])
def test_a_member_meets_groups(kernels: ModuleType, device: Device, rng: np.random.Generator, groups: int, size: int) -> None:
    x = rng.integers(-8, 8, (5, groups * size)).astype(np.float32)
    y = device.poisoned(x.shape, F32)
    kernels.scaled.specialize(G=groups)(y, device.put(x))
    each = x.reshape(5, groups, size)
    want = each - each[..., :1]
    want[..., 0] = each[..., 0] + each.max(2)
    np.testing.assert_array_equal(device.get(y), want.reshape(5, -1))


@pytest.mark.parametrize("size", [1, 7, 128, 5000])
def test_a_ragged_grid(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int) -> None:
    x, e = rng.integers(-8, 8, (11, 2 * size)).astype(np.float32), rng.integers(-8, 8, (11, 4)).astype(np.float32)
    cu, lens = np.array([0, 3, 3, 8, 11], np.int32), np.array([2, 1, 0, 4], np.int32)
    got, elements = device.put(x.copy()), device.put(e.copy())
    kernels.ragged(got, elements, device.put(cu), device.put(lens))
    live = np.isin(np.arange(11), [0, 1, 2, 8, 9, 10])
    want, want_e = x.reshape(11, 2, size).copy(), e.copy()
    want[live, 1] += want[live, 0]
    want_e[live, 2] = 5
    np.testing.assert_array_equal(device.get(got), want.reshape(11, -1))
    np.testing.assert_array_equal(device.get(elements), want_e)


@pytest.mark.parametrize("size", [1, 6, 64, 4096])
def test_groups_by_a_table(kernels: ModuleType, device: Device, rng: np.random.Generator, size: int) -> None:
    x = rng.standard_normal((4, 2 * size)).astype(np.float32)
    ids, halves = np.array([3, 0, 4, -1, 2], np.int32), np.array([0, 1, 0, 1, 2], np.int32)
    y = device.poisoned((5, 2 * size), F32)
    kernels.gathered(y, device.put(x), device.put(ids), device.put(halves))
    want = np.zeros((5, 2, size), np.float32)
    for t in range(2):
        want[t] = x.reshape(4, 2, size)[ids[t], [halves[t], 1 - halves[t]]]
    np.testing.assert_array_equal(device.get(y), want.reshape(5, -1))


def test_a_row_and_its_parts_are_one_tensor(kernels: ModuleType, device: Device, rng: np.random.Generator) -> None:
    x = rng.integers(-8, 8, (6, 512)).astype(np.float32)
    kernel = kernels.scaled.specialize(G=4)
    apart, same = device.poisoned(x.shape, F32), device.put(x.copy())
    kernel(apart, device.put(x))
    kernel(same, same)
    np.testing.assert_array_equal(device.get(same), device.get(apart))


# -- Refused kernels -------------------------------------------------------------------------------------------------

ARGUMENTS = 'y: InOut[f32, "n (G K)"], s: Out[f32, "n G"], x: In[f32, "n (G 4)"], r: In[f32, "n K"], lse: In[f32, "n"], d: In[f32, "n D"]'


@pytest.mark.parametrize(
    "body, wrong, message",
    [
        ("s[t] = y[t, 0]", "y[t, 0]", "expected a row along G to store to 's', got a row of f32 along K"),
        ("y[t, 0] = s[t]", "s[t]", "expected a row along K to store to 'y', got a row of f32 along G"),
        ("y[t, :, 0] = r[t]", "r[t]", "expected a row along G to store to 'y', got a row of f32 along K"),
        ("y[t, 0, 0] = r[t]", "r[t]", "expected f32, an element, to store to 'y', got a row of f32 along K"),
        ("s[t] = x[t, :, 4]", "4", "expected an index of at least 0 and below 4, got 4"),
        ("s[t] = y[t, :, -1]", "-1", "expected an index of at least 0, got -1"),
        ("s[t] = y[t, 1:2, 0]", "1:2", "expected : for all of G, got 1:2; group 0 is y[t, 0], element 0 of each group y[t, :, 0]"),
        ("r2 = y[t, :2]", ":2", "expected : for all of G, got :2; group 0 is y[t, 0], element 0 of each group y[t, :, 0]"),
        ("s[t] = x[t, 0, :2]", ":2", "expected : for all of 4, got :2; group 0 is x[t, 0], element 0 of each group x[t, :, 0]"),
        ("v = d[t]; lse[t] = sum(v[:2])", "v[:2]", "expected an element, [i], of a row of f32 along D, got v[:2]; load the part that is needed, as x[t, :2], "
         "and compute on it"),
        ("s[t] = y[t, 0, 0, 0]", "y[t, 0, 0, 0]", "expected 1 index for a row of 'y', 2 for a group of it or 3 for an element, got 4"),
        ("s[t] = d[t, :, 0]", ":", "expected an index, got the slice :"),
        ("s[t] = payload(load_state(y[t, 0], lse[t]))", "y[t, 0]", "expected a whole row for the payload of a state, got a part of a row of 'y'"),
        ("x[t, 0] = 0.0", "x[t, 0]", "expected a tensor declared with Out or InOut to store to, got 'x', which is In"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, body: str, wrong: str, message: str) -> None:
    made = load(tmp_path, f'@mlafix.kernel\ndef k({ARGUMENTS}):\n    for t in grid("n"):\n        {body}\n')
    with refused(message, wrong):
        made.k.source  # noqa: B018


@pytest.mark.parametrize(
    "dims, places, missed",
    [("n (2 K)", ("0",), "y[0, 64]"), ("n (K 2)", (":, 1",), "y[0, 0]"), ("n (3 K)", ("0", "2"), "y[0, 64]")],
)
def test_a_part_that_is_left_out(tmp_path: Path, dims: str, places: tuple[str, ...], missed: str) -> None:
    body = "; ".join(f"y[t, {place}] = r[t]" for place in places)
    made = load(tmp_path, f'@mlafix.kernel\ndef k(y: Out[f32, "{dims}"], r: In[f32, "n K"]):\n    for t in grid("n"):\n        {body}\n')
    with pytest.raises(mlafix.CompileError, match="expected every element of 'y' to be written") as caught:
        made.k.ptx("sm_90", K=64)
    assert missed in str(caught.value)


def test_a_fill_is_for_whole_rows(tmp_path: Path) -> None:
    text = '@mlafix.kernel\ndef k(y: Out[f32, "n (2 K)"].fill(0.0), r: In[f32, "n K"]):\n    for t in grid("n"):\n        y[t, 0] = r[t]\n'
    with pytest.raises(mlafix.CompileError, match="expected a grid with one row for each row that is stored, got a store of a part of a row"):
        load(tmp_path, text).k.ptx("sm_90", K=64)


def test_a_launch_is_watched(kernels: ModuleType) -> None:
    y, x = np.zeros((3, 8), np.float32), np.zeros((3, 8), np.float32)
    ids, halves = np.array([0, 2, 1], np.int32), np.array([0, 1, 2], np.int32)
    found = kernels.gathered.debug(y, x, ids, halves)
    assert (found.unknown_rows, [(fault.question, fault.argument, fault.element) for fault in found.faults]) == (0, [("bounds", "x", (1, 2))])
    assert not kernels.gathered.debug(y, x, ids, halves % 2).faults
