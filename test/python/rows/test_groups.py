"""Dims that are products, "(G K)": reductions of each group, and rows with one element per group. Results are compared
with numpy."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import contract
import numpy as np
import pytest
from devices import Device
from numerics import BF16, E4M3, F32, round_to
from sources import HEADER, load, underlined
from test_scans import reduced, spaced

import mlafix

TEXT = """
@mlafix.kernel
def reduce_groups(y: Out[f32, "n (G K)"], sums: Out[f32, "n G"], most: Out[f32, "n G"], best: Out[i32, "n G"], least: Out[i32, "n G"],
                  total: Out[f32, "n"], top: Out[f32, "n"], ids: Out[i32, "n G"], x: In[T, "n (G K)"]):
    for t in grid("n"):
        row = x[t]
        s = sum(row, along="K")
        m = max(abs(row), along="K")
        y[t] = row * m + s
        sums[t] = s
        most[t] = m
        best[t] = argmax(row, along="K")
        least[t] = argmin(row, along="K")
        total[t] = sum(row)
        top[t] = max(m) - min(min(row, along="K"))
        ids[t] = iota("G") + 1


@mlafix.kernel
def through_control(y: Out[f32, "n (G K)"], s_out: InOut[f32, "n G"], x: In[T, "n (G K)"], s: In[f32, "n G"], c: In[i32, "n"]):
    for t in grid("n"):
        scale = s[t]
        if c[t] > 1:
            scale = scale + max(x[t], along="K")
        for i in range(c[t]):
            scale = where(scale > 2.0, scale * 0.5, scale)
        row = x[t] * scale
        for i in range(c[t]):
            row = where(scale > 1.0, row, row + splat(1.0, "G"))
        y[t] = row
        store(s_out[t], scale, where=c[t] != 2)


@mlafix.kernel
def integers(y: Out[i32, "n (G 8)"], most: Out[i32, "n G"], x: In[i32, "n (G 8)"]):
    for t in grid("n"):
        m = max(x[t], along=8)
        y[t] = m - x[t]
        most[t] = m


@mlafix.kernel(allow={"bounds"})
def blank_ragged(y: InOut[f32, "n (G K)"], s: InOut[f32, "n G"], cu: In[i32, "b1"], lens: In[i32, "b"]):
    for b, t in segments(cu, "n", where=lambda b: lens[b] > 0):
        m = max(y[t], along="K")
        s[t] = m + s[t]
        y[t] = y[t] - m


@mlafix.kernel
def merged(q: Out[f8e4m3fn, "n H (G K)"], scales: Out[f32, "n H G"], lses: Out[f32, "n H"], a: In[T, "n H (G K)"],
           a_lse: In[f32, "n H"], b: In[T, "n H (G K)"], b_lse: In[f32, "n H"]):
    for t, h in grid("n", "H"):
        state = merge(load_state(a[t, h], a_lse[t, h], base="e"), load_state(b[t, h], b_lse[t, h], base="e"))
        row = payload(state)
        s = max(max(abs(row), along="K"), 1e-10) / 448.0
        scales[t, h] = s
        q[t, h] = row / s
        lses[t, h] = lse_of(state)


@mlafix.kernel
def many(q: Out[f32, "n (G K)"], scales: Out[f32, "n G"], parts: In[f8e4m3fn, "k n (G K)"], part_scales: In[f32, "k n G"], lse: In[f32, "k n"]):
    for t in grid("n"):
        state = identity("(G K)", base=2)
        for i in range(parts.shape[0]):
            state = merge(state, make_state(parts[i, t] * part_scales[i, t], lse[i, t], base=2))
        row = payload(state)
        scales[t] = max(abs(row), along="K")
        q[t] = row
"""

# Pairs of the number of groups and the size of a group. Some groups are aligned, some are shorter than a pack, and some
# have more elements than one lane holds. Some rows are processed in loops.
SHAPES = [(4, 128), (3, 64), (5, 96), (1, 64), (9, 7), (7, 1), (1, 1), (32, 2), (56, 128), (2, 4096), (512, 16), (100, 33), (3, 1000)]


@pytest.mark.parametrize("gap, offset", [(0, 0), (16, 0), (3, 1)])
@pytest.mark.parametrize("groups, size", SHAPES)
def test_each_group_is_reduced(kernels: ModuleType, device: Device, rng: np.random.Generator, groups: int, size: int, gap: int, offset: int) -> None:
    x = rng.standard_normal((5, groups * size)).astype(np.float32)
    if size > 2:
        x[1, 2::size] = np.nan
    shape = (5, groups)
    y, total, top = (device.poisoned(s, F32) for s in (x.shape, (5,), (5,)))
    sums, most, best, least, ids = (device.poisoned(shape, dtype) for dtype in (F32, F32, np.int32, np.int32, np.int32))
    kernels.reduce_groups(y, sums, most, best, least, total, top, ids, device.put(spaced(x, gap, offset)))
    each = x.reshape(5, groups, size)
    sum_of, most_of = reduced(each), np.abs(each).max(2)
    want = {
        "sums": (sums, sum_of), "most": (most, most_of), "total": (total, reduced(sum_of)),
        "best": (best, each.argmax(2)), "least": (least, each.argmin(2)),
        "top": (top, most_of.max(1) - each.min((1, 2))),
        "ids": (ids, np.broadcast_to(np.arange(groups) + 1, shape)),
    }  # fmt: skip
    for name, (got, wanted) in want.items():
        np.testing.assert_array_equal(device.get(got), wanted, err_msg=name)
    product = (each.astype(np.float64) * most_of[..., None]).astype(np.float32)
    np.testing.assert_array_equal(device.get(y), (product + sum_of[..., None]).reshape(5, -1))


@pytest.mark.parametrize("groups, size", SHAPES)
def test_rows_of_groups_pass_through_control_flow(
    kernels: ModuleType, device: Device, rng: np.random.Generator, groups: int, size: int
) -> None:
    x = rng.integers(-8, 8, (6, groups * size)).astype(np.float32)
    s = rng.integers(1, 16, (6, groups)).astype(np.float32)
    c = np.array([0, 1, 2, 3, 5, 1], np.int32)
    y, s_out = device.poisoned(x.shape, F32), device.put(s.copy())
    kernels.through_control(y, s_out, device.put(x), device.put(s), device.put(c))
    scale = s + np.where(c[:, None] > 1, x.reshape(6, groups, size).max(2), 0)
    for i in range(5):
        scale = np.where((i < c)[:, None] & (scale > 2), scale * 0.5, scale)
    row = x.reshape(6, groups, size) * scale[..., None]
    row = row + np.where(scale > 1, 0, c[:, None])[..., None]
    np.testing.assert_array_equal(device.get(y), row.reshape(6, -1))
    np.testing.assert_array_equal(device.get(s_out), np.where(c[:, None] != 2, scale, s))


def test_an_element_is_updated_in_place(kernels: ModuleType, device: Device, rng: np.random.Generator) -> None:
    x = rng.integers(-8, 8, (6, 512)).astype(np.float32)
    s = rng.integers(1, 16, (6, 4)).astype(np.float32)
    c = np.array([0, 1, 2, 3, 5, 1], np.int32)
    y, same = device.poisoned(x.shape, F32), device.put(s.copy())
    apart_y, apart = device.poisoned(x.shape, F32), device.put(s.copy())
    kernels.through_control(apart_y, apart, device.put(x), device.put(s), device.put(c))
    kernels.through_control(y, same, device.put(x), same, device.put(c))
    np.testing.assert_array_equal(device.get(y), device.get(apart_y))
    np.testing.assert_array_equal(device.get(same), device.get(apart))


def test_integers_and_a_group_of_a_fixed_size(kernels: ModuleType, device: Device, rng: np.random.Generator) -> None:
    x = rng.integers(-(2**31), 2**31, (7, 24)).astype(np.int32)
    y, most = device.poisoned(x.shape, np.int32), device.poisoned((7, 3), np.int32)
    kernels.integers(y, most, device.put(x))
    each = x.reshape(7, 3, 8)
    np.testing.assert_array_equal(device.get(most), each.max(2))
    np.testing.assert_array_equal(device.get(y), (each.max(2)[..., None] - each).reshape(7, -1))


@pytest.mark.parametrize("groups, size", [(4, 128), (5, 96), (64, 64)])
def test_a_ragged_grid(kernels: ModuleType, device: Device, rng: np.random.Generator, groups: int, size: int) -> None:
    x = rng.integers(-8, 8, (11, groups * size)).astype(np.float32)
    s = rng.integers(1, 16, (11, groups)).astype(np.float32)
    cu, lens = np.array([0, 3, 3, 8, 11], np.int32), np.array([2, 1, 0, 4], np.int32)
    y, sums = device.put(x.copy()), device.put(s.copy())
    kernels.blank_ragged(y, sums, device.put(cu), device.put(lens))
    live = np.isin(np.arange(11), [0, 1, 2, 8, 9, 10])[:, None]
    most = x.reshape(11, groups, size).max(2)
    np.testing.assert_array_equal(device.get(sums), np.where(live, s + most, s))
    np.testing.assert_array_equal(device.get(y), np.where(live, x - np.repeat(most, size, 1), x))


@pytest.mark.parametrize("groups, size", [(4, 128), (3, 64), (9, 7)])
def test_a_merge_with_a_scale_for_each_group(kernels: ModuleType, device: Device, rng: np.random.Generator, groups: int, size: int) -> None:
    shape = (6, 2, groups * size)
    a, b = (rng.standard_normal(shape).astype(BF16) for _ in range(2))
    a_lse, b_lse = (rng.standard_normal(shape[:2]).astype(np.float32) for _ in range(2))
    a_lse[1], b_lse[2], a_lse[3], b_lse[3] = -np.inf, np.inf, -np.inf, -np.inf
    a[1] = np.nan
    q, scales, lses = device.poisoned(shape, E4M3), device.poisoned((*shape[:2], groups), F32), device.poisoned(shape[:2], F32)
    kernels.merged(q, scales, lses, *(device.put(array) for array in (a, a_lse, b, b_lse)))
    merged, merged_lse = contract.merge(np.stack([a, b]), np.stack([a_lse, b_lse]))
    row = merged.value
    want = np.maximum(np.abs(row.reshape(6, 2, groups, size)).max(3), 1e-10) / 448
    got = device.get(scales)
    np.testing.assert_allclose(got, want, rtol=2e-6)
    stored = device.get(q).astype(np.float64) * np.repeat(got, size, 2)
    assert (np.abs(stored - row) <= 2.0**-4 * np.abs(row) + 2.0**-9 * np.repeat(got, size, 2)).all()
    merged_lse.check(device.get(lses), "lses")
    np.testing.assert_array_equal(device.get(q)[3].astype(np.float32), 0)


@pytest.mark.parametrize("groups, size", [(4, 128), (5, 96), (9, 7)])
@pytest.mark.parametrize("parts", [1, 9])
def test_a_running_merge_of_scaled_parts(
    kernels: ModuleType, device: Device, rng: np.random.Generator, parts: int, groups: int, size: int
) -> None:
    x = rng.integers(-8, 8, (parts, 3, groups * size)).astype(E4M3)
    s = rng.integers(1, 9, (parts, 3, groups)).astype(np.float32)
    lse = rng.integers(-3, 3, (parts, 3)).astype(np.float32)
    q, scales = device.poisoned(x.shape[1:], F32), device.poisoned((3, groups), F32)
    kernels.many(q, scales, device.put(x), device.put(s), device.put(lse))
    contract.merge(x.astype(np.float32) * np.repeat(s, size, 2), lse, base=2.0)[0].check(device.get(q), "q")
    np.testing.assert_array_equal(device.get(scales), np.abs(device.get(q)).reshape(3, groups, size).max(2))


# -- Checks of calls --------------------------------------------------------------------------------------------------

BOUND = """
@mlafix.kernel
def scaled(y: Out[f32, "n (G K)"], s: In[f32, "n G"]):
    for t in grid("n"):
        y[t] = s[t]


@mlafix.kernel
def alone(y: Out[f32, "n (G K)"]):
    for t in grid("n"):
        y[t] = f32(iota("(G K)"))


@mlafix.kernel
def fixed(z: Out[f32, "n (B 4)"]):
    for t in grid("n"):
        z[t] = 1.0


@mlafix.kernel
def chain(y: Out[f32, "n (A B)"], z: Out[f32, "n (B 4)"], w: In[f32, "n A"]):
    for t in grid("n"):
        y[t] = w[t] + splat(0.0, "(A B)")
        z[t] = 1.0
"""


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return load(tmp_path_factory.mktemp("bound"), BOUND)


def test_a_call_finds_the_other_factor(bound: ModuleType) -> None:
    y, s = np.empty((2, 12), np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)
    bound.scaled(y, s)
    np.testing.assert_array_equal(y, np.repeat(s, 4, 1))
    z = np.empty((2, 8), np.float32)
    bound.chain(np.empty((2, 6), np.float32), z, s)
    np.testing.assert_array_equal(z, 1)
    bound.alone.specialize(K=4)(y)
    np.testing.assert_array_equal(y, np.broadcast_to(np.arange(12), (2, 12)))


MISFITS = [
    ("scaled", [(2, 13), (2, 3)], 'argument "y": expected a multiple of 3 in dim 1 ("(G K)"), got 13'),
    ("scaled", [(2, 0), (2, 3)], 'argument "y": expected a multiple of 3 in dim 1 ("(G K)"), got 0'),
    ("scaled", [(2, 12), (2, 0)], 'argument "s": expected a size of at least 1 in dim 1 ("G"), got 0'),
    ("chain", [(2, 6), (2, 12), (2, 3)], 'argument "z": expected size 2 * 4 in dim 1 ("(B 4)"), got 12'),
    ("fixed", [(2, 7)], 'argument "z": expected a multiple of 4 in dim 1 ("(B 4)"), got 7'),
]


@pytest.mark.parametrize("name, shapes, message", MISFITS)
def test_a_factor_that_does_not_fit(bound: ModuleType, name: str, shapes: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(mlafix.ArgumentError) as caught:
        getattr(bound, name)(*(np.empty(shape, np.float32) for shape in shapes))
    assert message in str(caught.value)


@pytest.mark.parametrize("name, shapes, message", MISFITS)
def test_a_factor_that_does_not_fit_without_memory(bound: ModuleType, name: str, shapes: list[tuple[int, ...]], message: str) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(mlafix.ArgumentError) as caught:
        getattr(bound, name)(*(torch.empty(shape, device="meta") for shape in shapes))
    assert message in str(caught.value)


def test_factors_that_nothing_says(bound: ModuleType) -> None:
    with pytest.raises(mlafix.CompileError, match="expected a size for dim 'G' of kernel 'alone', got no binding of it"):
        bound.alone(np.empty((2, 12), np.float32))


def test_a_unit_has_the_factors(bound: ModuleType, tmp_path: Path) -> None:
    bound.scaled.save(tmp_path / "scaled.mlafix", "cpu", G=3, K=4)
    unit = mlafix.Unit.load(tmp_path / "scaled.mlafix")
    y, s = np.empty((2, 12), np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)
    unit["scaled"](y, s)
    np.testing.assert_array_equal(y, np.repeat(s, 4, 1))
    with pytest.raises(mlafix.UnitError, match="expected a unit for G=3, K=5, got one for G=3, K=4"):
        unit["scaled"](np.empty((2, 15), np.float32), s)


# -- Refused kernels -------------------------------------------------------------------------------------------------

ARGUMENTS = 'y: Out[f32, "n (G K)"], s: Out[f32, "n G"], z: Out[f32, "n (G 4)"], x: In[f32, "n (G K)"], r: In[f32, "n K"], d: In[f32, "n D"]'


@pytest.mark.parametrize(
    "body, wrong, message",
    [
        ('s[t] = max(x[t], along="G")', 'max(x[t], along="G")', 'expected "K", the second factor of "(G K)", to reduce along, got "G"'),
        ('s[t] = sum(x[t], along=4)', 'sum(x[t], along=4)', 'expected "K", the second factor of "(G K)", to reduce along, got "4"'),
        ('s[t] = max(d[t], along="D")', 'max(d[t], along="D")', 'expected no factor to reduce along, since the row\'s dim "D" is no product such as "(G K)", got "D"'),
        ("s[t] = max(x[t], along=t)", "t", "expected the second factor of the row's dim to reduce along, a name or a number, as \"K\" for \"(G K)\""),
        ('s[t] = max(x[t], axis="K")', 'max(x[t], axis="K")', """expected max(row), max(row, along="K") or max(a, b, …), got an argument 'axis'"""),
        ("s[t] = x[t]", "x[t]", "expected a row along G to store to 's', got a row of f32 along (G K)"),
        ("y[t] = r[t]", "r[t]", "expected a row along (G K) to store to 'y', got a row of f32 along K"),
        ("y[t] = x[t] + r[t]", "x[t] + r[t]", "expected scalars or rows of one type for '+', got a row of f32 along (G K) and a row of f32 along K"),
        ('y[t] = x[t] + splat(0.0, "(G 4)")', 'x[t] + splat(0.0, "(G 4)")', "along (G K) and a row of f32 along (G 4)"),
        ('y[t] = splat(0.0, "K")', '"K"', None),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, body: str, wrong: str, message: str | None) -> None:
    made = load(tmp_path, f'@mlafix.kernel\ndef k({ARGUMENTS}):\n    for t in grid("n"):\n        {body}\n')
    with pytest.raises(mlafix.CompileError) as caught:
        made.k.source  # noqa: B018
    if message is not None:
        assert underlined(str(caught.value)) == wrong
        assert message in str(caught.value)


@pytest.mark.parametrize("dims", ["n (G k)", "n (G)", "n (G K J)", "n (G 0)", "n (G K", "n G K)", "n (2.5 G)"])
def test_products_that_are_none(tmp_path: Path, dims: str) -> None:
    with pytest.raises(mlafix.ArgumentError, match="expected two factors in parentheses, upper-case names or numbers"):
        load(tmp_path, f'X = In[f32, "{dims}"]\n', HEADER)


def test_a_row_that_meets_groups_of_two_sizes(tmp_path: Path) -> None:
    text = """
@mlafix.kernel
def k(y: Out[f32, "n (G K)"], z: Out[f32, "n (G L)"], x: In[f32, "n G"]):
    for t in grid("n"):
        s = x[t]
        y[t] = s + splat(0.0, "(G K)")
        z[t] = s + splat(1.0, "(G L)")
"""
    made = load(tmp_path, text)
    with pytest.raises(mlafix.CompileError, match="expected groups of one size for this row, got 4 and 8") as caught:
        made.k(*(np.empty((2, size), np.float32) for size in (12, 24, 3)))
    assert underlined(str(caught.value)) == "x[t]"


def test_fp8_is_rounded_as_in_the_cookbook(kernels: ModuleType, rng: np.random.Generator) -> None:
    a = rng.standard_normal((4, 1, 256)).astype(BF16)
    none = np.full((4, 1), -np.inf, np.float32)
    q, scales, lses = np.empty(a.shape, E4M3), np.empty((4, 1, 2), np.float32), np.empty((4, 1), np.float32)
    kernels.merged(q, scales, lses, a, np.zeros((4, 1), np.float32), a, none)
    wide = a.astype(np.float32).reshape(4, 1, 2, 128)
    want = np.abs(wide).max(3) / np.float32(448)
    np.testing.assert_array_equal(scales, want)
    stored = round_to(E4M3, (wide / want[..., None]).astype(np.float64)).reshape(a.shape)
    np.testing.assert_array_equal(q.astype(np.float64), stored)


def test_an_array_with_both_dims_of_a_product_is_told_that_it_is_one(tmp_path: Path) -> None:
    copied = load(tmp_path, '@kernel\ndef k(y: Out[f32, "(G 4)"], x: In[f32, "(G 4)"]):\n    for g in grid("G"):\n        y[g] = x[g]\n').k
    with pytest.raises(mlafix.ArgumentError, match=r'expected 1 dims, got 2; the dims are "\(G 4\)", and \(\.\.\.\) is one dim, a product'):
        copied(np.zeros((3, 4), np.float32), np.zeros((3, 4), np.float32))
