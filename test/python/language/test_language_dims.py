"""Tests extents of any integer type, rows along dims of a fixed size, and indices that are narrowed."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from sources import load

import mlafix

TEXT = """
@mlafix.kernel
def count_i32(z: InOut[f32, "n"], count: i32.at_most("n")):
    for t in grid(count):
        z[t] = 1.0


@mlafix.kernel(allow={"bounds"})
def count_i64(z: InOut[f32, "n H"], count: i64):
    for t, h in grid(count, "H"):
        z[t, h] = 1.0


@mlafix.kernel
def rows_i32(z: InOut[f32, "n"], cu: In[i32, "b1"], rows: i32.at_most("n")):
    for b, t in segments(cu, rows):
        z[t] = f32(b)


@mlafix.kernel
def fixed_rows(y: Out[f32, "n e=8"], x: In[f32, "n e=8"], w: In[f32, "_=8"]):
    for t in grid("n"):
        y[t] = x[t] + w[:] + splat(1.0, "e")


@mlafix.kernel
def fixed_upper(y: Out[f32, "n D=8"], x: In[f32, "n D=8"]):
    for t in grid("n"):
        y[t] = x[t] + splat(1.0, "D")


@mlafix.kernel
def fixed_states(y: Out[f32, "n e=8"], x: In[f32, "n e=8"], lse: In[f32, "n"]):
    for t in grid("n"):
        store_state(merge(identity("e", base=2), load_state(x[t], lse[t], base=2)), y[t])


@mlafix.kernel
def truncated(y: Out[i64, "n"], a: index):
    for t in grid("n"):
        y[t] = i64(index(i32(a + t)))


@mlafix.kernel
def window(y: Out[f32, "n D"], x: In[f32, "n D"], first: In[i32, "n"], live: i64):
    for t in grid("n"):
        last = min(first[t] + t, live - 1)
        y[t] = x[last] if t < live and t >= first[t] else 0.0 * x[t]
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return load(tmp_path_factory.mktemp("dims"), TEXT)


def test_an_extent_is_an_argument_of_any_integer_type(made: ModuleType) -> None:
    z = np.zeros(4, np.float32)
    made.count_i32(z, 3)
    assert list(z) == [1, 1, 1, 0]
    rows = np.zeros((4, 2), np.float32)
    made.count_i64(rows, 1)
    assert rows.tolist() == [[1, 1], [0, 0], [0, 0], [0, 0]]


def test_the_rows_of_segments_are_bounded_by_any_integer(made: ModuleType) -> None:
    z = np.full(6, -1, np.float32)
    made.rows_i32(z, np.array([0, 1, 4, 6], np.int32), 5)
    assert list(z) == [0, 1, 1, 1, -1, -1]  # the last segment ends past the bound


def test_rows_along_a_dim_of_fixed_size_are_rows_of_that_size(made: ModuleType) -> None:
    x, w = np.arange(24, dtype=np.float32).reshape(3, 8), np.arange(8, dtype=np.float32)
    y = np.zeros_like(x)
    made.fixed_rows(y, x, w)
    np.testing.assert_array_equal(y, x + w + 1)
    made.fixed_states(y, x, np.array([0.0, np.inf, -np.inf], np.float32))
    np.testing.assert_array_equal(y, np.where(np.arange(3)[:, None] == 0, x, 0))


def test_a_fixed_size_binds_no_name_that_begins_with_an_upper_case_letter(made: ModuleType) -> None:
    x, y = np.ones((3, 8), np.float32), np.zeros((3, 8), np.float32)
    made.fixed_upper(y, x)
    assert (y == 2).all()
    with pytest.raises(mlafix.ArgumentError, match='"y": expected size 8 in dim 1 .*got 9'):
        made.fixed_upper(np.zeros((3, 9), np.float32), x)


@pytest.mark.parametrize("a", [0x2AAAAAAAAAAAAAAA, 5, -7, 2**31, -(2**63)])
def test_an_index_loses_the_bits_that_i32_has_not(made: ModuleType, a: int) -> None:
    y = np.zeros(3, np.int64)
    made.truncated(y, a)
    assert list(y) == [int(np.int64(a + t).astype(np.int32)) for t in range(3)]


def test_integers_beside_an_index_become_one(made: ModuleType) -> None:
    """An i32 or i64 may be combined with an index in comparisons, arithmetic and min. No conversion is needed, and no
    value changes."""
    x = np.arange(40, dtype=np.float32).reshape(5, 8)
    y = np.empty_like(x)
    first = np.array([0, 2, 1, -1, 0], np.int32)
    made.window(y, x, first, 4)
    want = [x[min(int(first[t]) + t, 3)] if t < 4 and t >= first[t] else 0 * x[t] for t in range(5)]
    assert np.array_equal(y, np.stack(want))
