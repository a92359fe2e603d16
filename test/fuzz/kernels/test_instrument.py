"""Tests the kernel fuzzer itself: the interpreter on hand-computed cases, the generator, and that planted faults of
every kind are seen."""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Iterator
from pathlib import Path

import floats
import formats
import functions
import integers
import numpy as np
import plant
import pytest
import states
import workers
from arena import Arena
from floats import Floats
from generate import generate
from generate_expressions import FUNCTIONS
from generate_loads import may_be_constant
from integers import Bools, Ints
from interpret import Interpreter, Text
from meaning import print_otherwise
from memory import Cells, cells_of
from power import FIRST, PAGE, interpret, is_seen
from render import source
from syntax import BOOL, F32, FP8, I32, INDEX, Assign, Call, For, Grid, If, Kernel, Layout, Node, Store, Tensor, Type, lit, name

STATE = Type("state", "", "D", "e")
OUT = Tensor("y", "f32", ["n", "D"], "Out")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Silences numpy's warnings, since the tests use overflow and NaN on purpose."""
    old = np.seterr(all="ignore")
    yield
    np.seterr(**old)


def points(*values: float) -> Floats:
    return Floats(np.array(values))


def bounds(x: Floats) -> tuple[list[float], list[float], list[bool]]:
    lo, hi, nan = x.bounds()
    return list(lo), list(hi), list(nan)


# -- Floats ----------------------------------------------------------------------------------------------------------------


def test_arithmetic_on_points_rounds_once_to_f32() -> None:
    third = np.float32(1) / np.float32(3)
    assert floats.add(points(1.0), points(2.0**-25)).v[0] == 1.0
    assert floats.mul(points(float(third)), points(3.0)).v[0] == np.float32(third) * np.float32(3)
    assert math.isinf(floats.mul(points(3e38), points(2.0)).v[0])
    assert math.isnan(floats.sub(points(math.inf), points(math.inf)).v[0])
    assert np.signbit(floats.mul(points(-0.0), points(3.0)).v[0])


def test_an_fma_rounds_its_sum_and_not_its_product() -> None:
    x = 1 + 2.0**-23
    assert floats.fma(points(x), points(x), points(-(1 + 2.0**-22))).v[0] == 2.0**-46


def test_approximate_functions_keep_special_values_and_bound_the_others() -> None:
    lo, hi, _ = bounds(functions.exp(points(0.0, -math.inf, math.inf)))
    assert lo[0] < 1 < hi[0] and hi[0] - lo[0] < 1e-5
    assert (lo[1], hi[1], lo[2]) == (0.0, 0.0, math.inf)
    lo, hi, nan = bounds(functions.log(points(0.0, -1.0)))
    assert lo[0] == -math.inf and nan[1] and lo[1] > hi[1]
    assert bounds(floats.divide(points(1.0), points(-0.0)))[0] == [-math.inf]
    assert bounds(floats.divide(points(2.0), functions.exp(points(-200.0))))[0][0] > 2.0**126


def test_intervals_hold_what_their_points_become() -> None:
    """The result of an operation on intervals contains its results on points inside these intervals."""
    rng = np.random.default_rng(5)
    unary = [floats.neg, floats.absolute, *(getattr(functions, name) for name in FUNCTIONS)]
    binary = [floats.add, floats.sub, floats.mul, floats.divide, floats.copysign, lambda a, b: floats.extreme(a, b, True)]
    menu = np.array([0.0, -0.0, 1.0, -2.5, math.inf, -math.inf, 1e-40, 3e38, -3e38, 0.7, 12.0])
    shape = (2, 2, 300)  # (lower and upper bounds, two operands, samples)
    special = rng.random(shape) < 0.5
    drawn = formats.f32(np.where(special, menu[rng.integers(0, len(menu), shape)], rng.standard_normal(shape) * 4))
    ends = np.array([floats.lower(*drawn), floats.upper(*drawn)])
    a, b = (Floats.between(*ends[:, i], np.zeros(shape[2], bool)) for i in (0, 1))
    between = formats.f32(np.clip(rng.choice([0.0, 1.0, -0.5, 7.0], shape[1:]), *ends))
    inside = tuple([Floats(ends[0, i]), Floats(between[i]), Floats(ends[1, i])] for i in (0, 1))
    for function in unary:
        for x in inside[0]:
            _check_inside(function(x), function(a))
    for function, x, y in itertools.product(binary, *inside):
        _check_inside(function(x, y), function(a, b))
    for x, y, z in itertools.product(*inside, inside[0]):
        _check_inside(floats.fma(x, y, z), floats.fma(a, b, a))


def _check_inside(point: Floats, interval: Floats) -> None:
    (plo, phi, pnan), (lo, hi, nan) = point.bounds(), interval.bounds()
    wrong = (pnan & ~nan) | ((plo <= phi) & ~((lo <= plo) & (phi <= hi)))
    assert not wrong.any(), [[bound[wrong][0] for bound in floats.bounds()] for floats in (point, interval)]


def test_a_comparison_within_the_bounds_is_unknown() -> None:
    near = Floats.between(np.array([0.9, 0.9, 2.0]), np.array([1.1, 1.1, 3.0]), np.array([False, True, False]))
    got = floats.compare("lt", near, points(1.0, 5.0, 1.0))
    assert list(got.unknown) == [True, True, False] and not got.v[2]
    assert floats.compare("ne", points(math.nan), points(1.0)).v[0]


def test_a_sum_is_a_tree_in_f32() -> None:
    x = np.array([[1e8, 1.0, -1e8, 1.0, 3.0]])
    expected = np.float32(np.float32(np.float32(1e8) + np.float32(1)) + np.float32(np.float32(-1e8) + np.float32(1))) + np.float32(3)
    assert floats.reduce("add", Floats(x)).v[0] == expected
    assert np.signbit(floats.reduce("add", Floats(np.full((1, 3), -0.0))).v[0])


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f8e4m3fn", "f8e5m2"])
def test_rounding_is_that_of_the_format(dtype: str) -> None:
    values = np.random.default_rng(3).standard_normal(4000) * 10.0 ** np.random.default_rng(4).integers(-9, 6, 4000)
    values = formats.f32(values)
    got = formats.round_to(dtype, values)
    kind = formats.NUMPY[dtype]
    expected = values.astype(np.float32).astype(kind).astype(np.float64)
    if dtype in FP8:
        largest = {"f8e4m3fn": 448.0, "f8e5m2": 57344.0}[dtype]
        expected = np.where(np.abs(values) > largest, np.copysign(largest, values), expected)
    np.testing.assert_array_equal(got, expected)


# -- Integers --------------------------------------------------------------------------------------------------------------


def test_integers_wrap_and_division_and_shifts_are_total() -> None:
    def ints(*v: int) -> Ints:
        return Ints(np.array(v, np.int64))

    top = 2**31 - 1
    assert list(integers.binary("add", ints(top), ints(1), 32).v) == [-top - 1]
    assert list(integers.binary("floordiv", ints(7, -7, 7, -top - 1), ints(-2, 2, 0, -1), 32).v) == [-4, -4, 7, -top - 1]
    assert list(integers.binary("mod", ints(7, -7, 7), ints(-2, 2, 0), 32).v) == [-1, 1, 0]
    assert list(integers.binary("shl", ints(1, 1, 1), ints(31, 32, -1), 32).v) == [-top - 1, 0, 0]
    assert list(integers.binary("shr", ints(-8, -8, 8), ints(1, 40, 64), 32).v) == [-4, -1, 0]
    assert list(floats.to_int(points(-2.7, 3e9, math.nan, -math.inf), 32).v) == [-2, top, 0, -top - 1]


def test_bytes_are_the_nearest_to_even_and_saturate() -> None:
    got = floats.to_byte(points(2.5, -2.5, 127.5, 1e9, -math.inf, math.nan), -128, 127)
    assert list(got.v) == [2, -2, 127, 127, -128, 0] and got.unknown is None
    assert list(floats.to_byte(Floats.between(np.full(2, 0.4), np.array([0.45, 0.6]), np.zeros(2, bool)), 0, 255).unknown) == [False, True]


def test_the_index_of_an_extreme_is_the_lowest_and_that_of_nan() -> None:
    rows = Floats(np.array([[0.0, -0.0, -1.0], [math.inf, math.nan, math.nan], [-math.inf] * 3]))
    assert list(floats.index_of_extreme(rows, True).v) == [0, 1, 0]
    assert list(floats.index_of_extreme(rows, False).v) == [2, 1, 0]
    unsure = Floats.between(np.array([[0.0, 1.0]]), np.array([[2.0, 1.0]]), np.zeros((1, 2), bool))
    assert floats.index_of_extreme(unsure, True).unknown.all() and integers.index_of_extreme(Ints(np.array([[1, 3, 3]])), True).v == 1


def test_an_element_that_is_moved_is_its_bits() -> None:
    nan = np.array([0x7FC1, 0xFFFF], np.uint16).view(formats.NUMPY["bf16"])
    cells = Cells("bf16", np.zeros(2, nan.dtype), moved=True)
    cells.write((np.arange(2),), Ints(nan.view(np.int16).astype(np.int64)), np.ones(2, bool))
    assert not cells.wrong(nan).any()
    assert cells.wrong(np.array([0x7FC0, 0xFFFF], np.uint16).view(nan.dtype)).tolist() == [True, False]


def test_a_variable_of_floats_may_keep_infinities() -> None:
    numbers = np.array([57344.0, math.inf, -math.inf, -57344.0]).astype(formats.NUMPY["f8e5m2"])
    for of_variable in (False, True):
        cells = Cells("f8e5m2", np.zeros(4, numbers.dtype), of_variable=of_variable)
        cells.write((np.arange(4),), Floats(np.array([math.inf, math.inf, -math.inf, -math.inf])), np.ones(4, bool))
        assert cells.wrong(numbers).tolist() == [False, not of_variable, not of_variable, False]


def test_an_angle_is_within_its_error_and_nan_beyond() -> None:
    lo, hi, nan = bounds(functions.sin(points(1.0, 2.0**23 + 1, math.inf)))
    assert lo[0] < math.sin(1) < hi[0] < lo[0] + 5e-7 and nan[1] and lo[1] > hi[1] and nan[2]


# -- States ----------------------------------------------------------------------------------------------------------------


def state(payload: list[float], lse: float, base: str = "e") -> states.States:
    return states.make(Floats(np.array([payload])), points(lse), base)


def test_merging_with_an_empty_state_copies() -> None:
    """A merge with an empty state returns the other state bit for bit, whatever the empty state contains (clauses N2 to
    N5 of docs/Dialect.md)."""
    for empty in (math.inf, -math.inf):
        merged = states.merge(state([math.nan, math.inf], empty), state([-0.0, 2.0**-149], 3.0))
        payload, lse = states.stored(merged, None)
        assert np.signbit(payload.v[0, 0]) and payload.v[0, 1] == 2.0**-149 and lse.v[0] == 3.0
    payload, lse = states.stored(states.merge(state([math.nan], math.inf), state([1.0], -math.inf)), None)
    assert payload.v[0, 0] == 0 and not np.signbit(payload.v[0, 0]) and lse.v[0] == -math.inf


def test_merging_live_states_is_their_weighted_mean() -> None:
    merged = states.merge(state([1.0, 5.0], 0.0), state([3.0, 5.0], math.log(3)))
    payload, lse = states.stored(merged, None)
    lo, hi, _ = payload.bounds()
    assert lo[0, 0] < 2.5 < hi[0, 0] and hi[0, 0] - lo[0, 0] < 1e-4
    assert lse.bounds()[0][0] < math.log(4) < lse.bounds()[1][0]


def test_nan_in_a_live_lse_stays_and_a_weight_of_zero_hides_a_payload() -> None:
    payload, lse = states.stored(states.merge(state([1.0], math.nan), state([1.0], 0.0)), None)
    assert np.isnan(payload.v[0, 0]) and np.isnan(lse.v[0])
    payload, _ = states.stored(states.merge(state([math.nan], -1000.0), state([2.0], 0.0)), None)
    assert payload.bounds()[0][0, 0] <= 2 <= payload.bounds()[1][0, 0] and not payload.bounds()[2][0, 0]


def test_merges_of_merges_are_one_merge_of_all() -> None:
    """Nested merges allow the same results as one merge of all states, in any order. The allowed error is relative to
    the sum of the magnitudes of all terms. Here, the two terms of little weight cancel, but the error stays allowed."""
    a, b, c = state([1.0, 2.0], 0.0), state([-1.0, 1.0], 0.0), state([0.0, 5.0], 65.0)
    flat = states.stored(states.merge(a, b, c), None)
    for nested in (states.merge(states.merge(a, b), c), states.merge(a, states.merge(c, b)), states.merge(states.merge(c, a), states.identity(1, 2, "e"), b)):
        for got, expected in zip(states.stored(nested, None), flat):
            assert bounds(got.map(np.ravel)) == bounds(expected.map(np.ravel))
    one = 2 * math.exp(-65) * 4e-6
    assert flat[0].lo[0, 0] < -one and flat[0].hi[0, 0] > one


def test_a_merge_of_three_is_one_where_one_of_them_is_empty() -> None:
    """A merge of three states allows a larger error than a merge of two, even if one of the three is empty."""
    heavy, light, empty = state([0.0], 0.0), state([1.0], -60.0), state([1.0], -math.inf)
    two = states.stored(states.merge(heavy, light), None)[0]
    for merged in (states.merge(heavy, light, empty), states.merge(states.merge(heavy, empty), light)):
        three = states.stored(merged, None)[0]
        assert three.hi[0, 0] - three.lo[0, 0] > 2 * (two.hi[0, 0] - two.lo[0, 0])


def test_a_state_that_is_merged_with_itself_counts_twice() -> None:
    a, b = state([8.0], 0.0), state([2.0], 0.0)
    payload, lse = states.stored(states.merge(states.merge(a, b), a), None)
    assert payload.lo[0, 0] < 6 < payload.hi[0, 0] and lse.lo[0] < math.log(3) < lse.hi[0]


def test_a_state_that_doubles_until_its_weight_overflows_may_be_anything() -> None:
    for doublings, known in ((100, True), (128, False), (1100, False)):
        merged = state([1.0], 2.0, "2")
        for _ in range(doublings):
            merged = states.merge(merged, merged)
        payload, lse = (value.bounds() for value in states.stored(merged, None))
        assert (payload[0].item() > 0.99 and payload[1].item() < 1.01) == known
        assert (abs(lse[0].item() - 2 - doublings) < 0.1 and abs(lse[1].item() - 2 - doublings) < 0.1) == known


def test_an_infinite_payload_may_outlive_its_weight_by_steps_alone() -> None:
    """With the lses -200, -100 and 0, each weight is 2^-100 times the next one. An infinite payload survives two merges
    in which its weight is 2^-100, but not one merge in which its weight is 2^-200 or less."""
    for far, is_known in ((-200.0, False), (-500.0, True)):
        a, b, c = state([math.inf], far, "2"), state([1.0], -100.0, "2"), state([1.0], 0.0, "2")
        assert states.stored(states.merge(a, b, c), None)[0].hi[0, 0] < 1.1
        assert (states.stored(states.merge(states.merge(a, b), c), None)[0].hi[0, 0] < 1.1) == is_known


def test_another_base_leaves_the_payload_and_the_weights_of_what_is_merged() -> None:
    a, b = state([1.0, 3.0], 2000.0), state([2.0, -5.0], 2001.0)
    payload, lse = states.stored(states.merge(a, b), None)
    rebased, in_bits = states.stored(states.rebase(states.merge(a, b), "2"), None)
    np.testing.assert_allclose(rebased.lo, payload.lo, rtol=1e-7)
    assert in_bits.lo[0] < (2001 + math.log1p(math.exp(-1))) / math.log(2) < in_bits.hi[0]
    far = states.merge(states.rebase(state([3.0], 1e30), "2"), state([1.0], 5.0, "2"))
    payload, _ = states.stored(far, None)
    assert 2.9 < payload.lo[0, 0] < 3 < payload.hi[0, 0] < 3.1
    near = states.merge(states.rebase(state([3.0], 1e30), "2"), state([1.0], float(np.float32(1e30 / math.log(2))), "2"))
    assert math.isinf(states.stored(near, None)[0].hi[0, 0])
    payload, lse = states.stored(states.rebase(state([3.0], 2.0), "2"), None)
    assert payload.v[0, 0] == 3 and lse.lo[0] < 2 / math.log(2) < lse.hi[0]


def test_a_state_behind_an_unknown_condition_is_known_where_it_is_empty() -> None:
    condition = Bools(np.array([True]), np.array([True]))
    assert states.mask(state([1.0], 0.0), condition).unknown[0] and not states.mask(state([1.0], math.inf), condition).unknown[0]
    a = state([1.0], 0.0)
    assert not states.select(condition, a, a).unknown[0] and states.select(condition, a, state([1.0], 0.0)).unknown[0]


# -- Kernels ---------------------------------------------------------------------------------------------------------------


def run(kernel: Kernel, call: Call, **arrays: np.ndarray) -> dict[str, Cells]:
    cells = cells_of(kernel, call, arrays)
    Interpreter(kernel, call, cells).run()
    return cells


def test_a_loop_carries_what_its_body_changes_and_an_empty_one_nothing() -> None:
    t, i, total = name("t", INDEX), name("i", I32), name("v", I32)
    count = Node("load", I32, [t], {"tensor": "c"})
    body = [Assign(["v"], [lit(0, I32)]), For("i", count, lit(7, I32), 2, [Assign(["v"], [i], "add")]), Store("y", [t], total)]
    kernel = Kernel([Tensor("y", "i32", ["n"], "Out"), Tensor("c", "i32", ["n"], "In")], [], Grid(["t"], ["n"]), body)
    cells = run(kernel, Call({"n": 3}), y=np.zeros(3, np.int32), c=np.array([1, 7, -4], np.int32))
    assert list(cells["y"].v) == [1 + 3 + 5, 0, -4 - 2 + 0 + 2 + 4 + 6]


def test_a_branch_within_the_bounds_leaves_both_values() -> None:
    t = name("t", INDEX)
    near = Node("unary", F32, [Node("load", F32, [t], {"tensor": "x"})], {"name": "exp"})
    condition = Node("compare", BOOL, [near, lit(1.0, F32)], {"ops": ["lt"]})
    body = [Assign(["v"], [lit(2.0, F32)]), If(condition, [Assign(["v"], [lit(3.0, F32)])], []), Store("y", [t], name("v", F32))]
    kernel = Kernel([Tensor("y", "f32", ["n"], "Out"), Tensor("x", "f32", ["n"], "In")], [], Grid(["t"], ["n"]), body)
    cells = run(kernel, Call({"n": 3}), y=np.zeros(3, np.float32), x=np.array([0, -1, 1], np.float32))["y"]
    assert list(cells.wrong(np.array([2, 3, 2], np.float32))) == [False, False, False]
    assert list(cells.wrong(np.array([3, 2, 3], np.float32))) == [False, True, True]


def test_an_element_at_an_unknown_index_may_be_anything() -> None:
    t = name("t", INDEX)
    near = Node("unary", F32, [Node("load", F32, [t], {"tensor": "x"})], {"name": "exp"})
    at = Node("convert", INDEX, [near])
    body = [Store("y", [t], Node("load", F32, [at], {"tensor": "x"})), Store("z", [t], lit(1.0, F32))]
    kernel = Kernel([Tensor("y", "f32", ["n"], "Out"), Tensor("z", "f32", ["n"], "Out"), Tensor("x", "f32", ["n"], "In")], [], Grid(["t"], ["n"]), body)
    cells = run(kernel, Call({"n": 2}), y=np.zeros(2, np.float32), z=np.zeros(2, np.float32), x=np.array([0, -1], np.float32))
    assert list(cells["y"].wrong(np.array([77, 77], np.float32))) == [False, True]
    assert list(cells["z"].wrong(np.array([2, 1], np.float32))) == [True, False]


def test_a_state_at_an_unknown_index_may_be_anything() -> None:
    """It may be anything that the tensors hold. A tensor without rows has no state, so the state is empty."""
    t = name("t", INDEX)
    near = Node("unary", F32, [Node("load", F32, [t], {"tensor": "x"})], {"name": "exp"})
    at = Node("binary", INDEX, [Node("convert", INDEX, [near]), lit(1, INDEX)], {"name": "sub"})  # -1 or 0 for x = 0
    loaded = Node("load_state", STATE, [at, at], {"tensor": "v", "lse": "x", "split": 1})
    body = [Store("y", [t], Node("lse_of", F32, [loaded]))]
    tensors = [Tensor("y", "f32", ["n"], "Out"), Tensor("v", "f32", ["m", "D"], "In"), Tensor("x", "f32", ["n"], "In")]
    for x, rows, is_open in ((0, 1, True), (-1, 1, False), (0, 0, False)):
        arrays = {"y": np.zeros(1, np.float32), "v": np.ones((rows, 4), np.float32)}
        cells = run(Kernel(tensors, [], Grid(["t"], ["n"]), body), Call({"n": 1, "m": rows}), x=np.array([x], np.float32), **arrays)["y"]
        assert list(cells.wrong(np.array([-np.inf], np.float32))) == [False]
        assert list(cells.wrong(np.array([x], np.float32))) == [not is_open]


def test_printed_integers_that_may_be_anything_are_equal() -> None:
    known, other, unknown = (Text("", [Ints(np.array([v]), np.array([is_unknown]))], np.array([True]), np.array([True]))
                             for v, is_unknown in ((1, False), (2, False), (3, True)))  # fmt: skip
    assert print_otherwise([known], [other])
    assert not print_otherwise([known], [unknown]) and not print_otherwise([unknown], [known])


def test_the_sign_of_zero_counts_at_the_ends_of_an_interval() -> None:
    cells = Cells("f32", np.zeros(4, np.float32))
    cells.write((np.arange(4),), Floats(None, np.array([0.0, -0.0, -1.0, -1.0]), np.array([1.0, 1.0, -0.0, 0.0]), np.zeros(4, bool)), np.ones(4, bool))
    assert list(cells.wrong(np.array([-0.0] * 4, np.float32))) == [True, False, False, False]
    assert list(cells.wrong(np.array([0.0] * 4, np.float32))) == [False, False, True, False]


def test_what_no_row_writes_must_stay_and_reads_out_of_bounds_give_zero() -> None:
    t = name("t", INDEX)
    condition = Node("compare", BOOL, [t, lit(1, INDEX)], {"ops": ["lt"]})
    body = [Store("y", [t], lit(4.0, F32), condition)]
    kernel = Kernel([Tensor("y", "f32", ["n"], "InOut")], [], Grid(["t"], ["n"]), body)
    cells = run(kernel, Call({"n": 2}), y=np.array([9, 9], np.float32))["y"]
    assert list(cells.wrong(np.array([4, 9], np.float32))) == [False, False]
    assert list(cells.wrong(np.array([4, 4], np.float32))) == [False, True]
    kernel.tensors.append(Tensor("x", "f32", ["n"], "In"))
    body[0] = Store("y", [t], Node("load", F32, [Node("binary", INDEX, [t, lit(1, INDEX)], {"name": "add"})], {"tensor": "x"}))
    cells = run(kernel, Call({"n": 2}), y=np.array([9, 9], np.float32), x=np.array([5, 6], np.float32))["y"]
    assert list(cells.wrong(np.array([6, 0], np.float32))) == [False, False]
    assert list(cells.wrong(np.array([6, 6], np.float32))) == [False, True]


def test_segments_choose_rows() -> None:
    b, t = name("b", INDEX), name("t", INDEX)
    where = Node("compare", BOOL, [Node("load", I32, [b], {"tensor": "c"}), lit(0, I32)], {"ops": ["le"]})
    kernel = Kernel([Tensor("y", "i32", ["n"], "InOut"), Tensor("cu", "i32", ["b1"], "In"), Tensor("c", "i32", ["b"], "In")], [],
                    Grid(["b", "t"], ["cu", "n"], True, where), [Store("y", [t], Node("convert", I32, [b]))])  # fmt: skip
    cells = run(kernel, Call({"n": 5}), y=np.full(5, 9, np.int32), cu=np.array([0, 2, 1, 4, 9], np.int32), c=np.array([0, 0, -1, 0], np.int32))
    assert list(cells["y"].v) == [0, 2, 2, 2, 9][:1] + [2, 2, 2, 9]


# -- Memory ----------------------------------------------------------------------------------------------------------------


def test_an_arena_keeps_tensors_apart() -> None:
    kernel = Kernel([OUT, Tensor("x", "bf16", ["n", "D"], "In")], [], Grid(["t"], ["n"]), [])
    call = Call({"n": 3, "D": 5}, layouts={"y": Layout([0, 1], gap=3, offset=2), "x": Layout([0, 1], broadcast=[0])})
    arena = Arena(kernel, call, True)
    assert arena.views["y"].strides == (8, 1) and arena.views["x"].strides == (0, 1)
    spans = sorted((view.offset, view.offset + 4 * (2 * view.strides[0] + 5)) for view in arena.views.values())
    assert spans[0][1] <= spans[1][0] and spans[1][1] <= arena.size


# -- The generator, planted faults ----------------------------------------------------------------------------------------


def test_a_presence_may_turn_out_to_be_a_constant() -> None:
    """The generator may make an optional tensor mandatory later, so that `x is None` becomes a constant. A constant
    condition selects a value without conversion, so both values must already have a type (seed 200788)."""
    assert may_be_constant(Node("present", BOOL, [], {"tensor": "x", "style": "present"}))


def test_indices_of_indices_stay_small() -> None:
    """A guard repeats its index, and an index may be loaded at other indices, so expressions grow fast. Without a
    limit, one expression had 1 MB (seed 708573)."""
    assert len(source(generate(708573).kernel)) < 20_000


def test_no_inline_function_returns_its_default() -> None:
    """If a generated function returns its last parameter, this parameter has no default. Otherwise, a call without the
    argument would be a number without a type: -3.0 was stored to i8. This seed has a function of this kind."""
    returned = [function for function in generate(61000300).kernel.inlines if function.result == name(function.parameters[-1], F32)]
    assert returned and not any(function.defaults for function in returned)


@pytest.fixture(scope="module")
def worker() -> Iterator[workers.Worker]:
    pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")
    made = workers.Worker("cpu", 0)
    yield made
    made.stop()


def test_every_word_of_the_index_has_a_planting() -> None:
    index = plant.index(PAGE.read_text(encoding="utf-8"))
    assert len(index) > 60 and {"abs", "cummin", "bool_", "x is None", "print"} <= set(index)
    assert not [word for word in index if not plant.kinds_of(word)]


def test_a_planted_fault_is_seen() -> None:
    """For each kind of fault, at least one of the first six kernels in which the fault can be planted gives different
    results. Most kernels do (--power counts them)."""
    wanting = [kind for kind in plant.KINDS if kind not in plant.REFUSED]
    tried: collections.Counter[str] = collections.Counter()
    for seed in itertools.count(FIRST):
        answers = interpret(seed, wanting)
        tried.update(answer["plant"] for answer in answers)
        seen = {answer["plant"] for answer in answers if is_seen(answer)}
        wanting = [kind for kind in wanting if kind not in seen]
        assert not [kind for kind in wanting if tried[kind] == 6]
        if not wanting:
            return


@pytest.mark.parametrize("kind", plant.REFUSED)
def test_a_planted_fault_is_refused(worker: workers.Worker, kind: str) -> None:
    having = (seed for seed in itertools.count(FIRST) if plant.has(generate(seed).kernel, kind))
    assert any(is_seen(workers.ask(worker, {"seed": seed, "plant": kind})) for seed in itertools.islice(having, 6))


def test_a_process_that_dies_is_one_failure(tmp_path: Path) -> None:
    made = workers.Worker("cpu", 0)
    made.process.kill()
    assert workers.ask(made, {"seed": 1})["kind"] == "crash"
    made.stop()
