"""Tests errors and warnings about rows that conflict and about accesses out of bounds, and the ways to avoid them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sources import underlined

import mlafix
from mlafix import cache
from mlafix.dsl import In, InOut, Out, assume, distinct, exp, f32, grid, i32, index, load, shape, store


@pytest.fixture(autouse=True)
def compile_anew(monkeypatch):
    monkeypatch.setenv("MLAFIX_CACHE", "0")
    cache.clear_memory()


def warned(kernel, **bindings):
    """Returns each warning from compiling the kernel as its text and the source text that it underlines."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        kernel.compile(**bindings)
    return [(str(warning.message).partition("\n")[0], underlined(str(warning.message))) for warning in given]


def test_a_row_that_reads_what_another_writes_is_refused():
    @mlafix.kernel
    def running(y: InOut[f32, "n D"], x: In[f32, "n D"]):
        for t in grid("n"):
            y[t] = load(y[t - 1], where=t > 0) + x[t]

    @mlafix.kernel
    def reverse(y: InOut[f32, "n D"]):
        for t in grid("n"):
            y[t] = y[shape("n") - 1 - t]

    y, x = np.zeros((3, 4), np.float32), np.ones((3, 4), np.float32)
    for kernel, args, read in ((running, (y, x), "load(y[t - 1], where=t > 0)"), (reverse, (y,), 'y[shape("n") - 1 - t]')):
        with pytest.raises(mlafix.CompileError) as caught:
            kernel(*args)
        message = caught.value.message
        assert "expected the rows of 'y' to be independent, got a read of y[" in message
        assert ", which another row writes: for example n = 2, i = " in message
        assert underlined(message) == read
        assert "note: the other row's access" in message
    assert [fault.question for fault in running.debug(y, x).faults] == ["independence"]


def test_a_kernel_that_works_in_place_says_nothing():
    @mlafix.kernel
    def doubled(y: InOut[f32, "n D"], x: In[f32, "n D"]):
        for t in grid("n"):
            y[t] = y[t] + x[t]
            y[t] = y[t] * 2.0

    assert warned(doubled, D=4) == []


def test_rows_that_meet_between_tensors_of_other_sizes_are_refused():
    @mlafix.kernel
    def flat(y: InOut[f32, "q"], x: In[f32, "n H"]):
        for t, h in grid("n", "H"):
            y[t * 3 + h] = x[t, h]

    with pytest.raises(mlafix.CompileError, match=r"got two that write y\[\d\]: for example n = 2, q = 4, "):
        flat.compile(H=4)
    assert all("in bounds" in text for text, _ in warned(flat, H=3))


@mlafix.kernel
def scatter(k: InOut[f32, "m D"], v: InOut[f32, "m D"], x: In[f32, "n D"], slots: In[i32, "n"]):
    for t in grid("n"):
        k[slots[t]] = x[t]
        v[slots[t]] = x[t] + 1.0


@mlafix.kernel
def distinct_scatter(k: InOut[f32, "m D"], x: In[f32, "n D"], slots: In[i32, "n"]):
    distinct(slots)
    for t in grid("n"):
        k[slots[t]] = x[t]


@mlafix.kernel(allow={"races"})
def known_scatter(k: InOut[f32, "m D"], x: In[f32, "n D"], slots: In[i32, "n"]):
    for t in grid("n"):
        k[slots[t]] = x[t]


def test_a_scatter_warns_once_and_names_its_table():
    given = warned(scatter, D=4)
    assert given == [
        (
            "expected one row to write each element of 'k', got rows that may write the same one: it depends on what is read "
            'from slots; distinct(slots) before the grid promises that its entries differ, if they do, allow={"races"} of the kernel declares '
            "that rows do not meet, or may",
            "k[slots[t]]",
        )
    ]
    assert [warning["message"] for warning in scatter.report()["warnings"]] == [given[0][0]]
    assert warned(distinct_scatter, D=4) == warned(known_scatter, D=4) == []
    assert distinct_scatter.report()["warnings"] == known_scatter.report()["warnings"] == []


def test_a_read_through_a_table_of_what_rows_write_warns():
    @mlafix.kernel
    def gather(y: InOut[f32, "n D"], at: In[i32, "n"]):
        for t in grid("n"):
            y[t] = y[at[t]]

    ((text, read),) = warned(gather, D=4)
    assert text.startswith("expected the rows of 'y' to be independent, got a read of what another row may write: it depends on what is read from at; ")
    assert read == "y[at[t]]"


def test_what_is_allowed_compiles_though_an_example_refutes_it():
    def moved(y: InOut[f32, "n"], flags: In[i32, "n"], by: index.at_most("n")):
        for t in grid("n"):
            if flags[t] != 0 and t + by < shape("n"):
                y[t] = y[t + by]

    with pytest.raises(mlafix.CompileError, match="what is read from flags is"):
        mlafix.kernel(moved).compile()
    y = np.arange(6, dtype=np.float32)
    mlafix.kernel(allow={"races"})(moved)(y, np.array([1, 1, 0, 0, 0, 0], np.int32), 3)
    assert y.tolist() == [3, 4, 2, 3, 4, 5]


def test_an_access_that_is_out_of_bounds_for_some_sizes_warns():
    def longer(y: Out[f32, "n"], x: In[f32, "m"]):
        for t in grid("n"):
            y[t] = x[t]

    ((text, read),) = warned(mlafix.kernel(longer))
    assert text.startswith("expected every access of 'x' to be in bounds, got x[0]: for example n = 1, m = 0, i = 0; ") and read == "x[t]"
    assert 'allow={"bounds"}' in text
    assert warned(mlafix.kernel(allow={"bounds"})(longer)) == []

    @mlafix.kernel
    def assumed(y: Out[f32, "n"], x: In[f32, "m"]):
        assume(shape("n") <= shape("m"))
        for t in grid("n"):
            y[t] = x[t]

    assert warned(assumed) == []


def test_nan_that_is_meant_is_allowed():
    def weights(y: Out[f32, "n"], a_lse: In[f32, "n"], b_lse: In[f32, "n"]):
        for t in grid("n"):
            y[t] = exp(a_lse[t] - max(a_lse[t], b_lse[t]))

    assert [text.partition(", got")[0] for text, _ in warned(mlafix.kernel(weights))] == ["expected no NaN where no input is NaN"]
    assert warned(mlafix.kernel(allow={"nan"})(weights)) == []


def test_what_is_allowed_is_part_of_the_kernel():
    def copy(y: Out[f32, "n"], x: In[f32, "n"]):
        for t in grid("n"):
            y[t] = x[t]

    kernels = [mlafix.kernel(allow=allow)(copy) for allow in ((), {"nan"}, ["nan", "races"], {"races", "nan"})]
    digests = [kernel.digest for kernel in kernels]
    assert len(set(digests)) == 3 and digests[2] == digests[3]
    assert 'allow = ["races", "nan"]' in kernels[2].source and "allow" not in kernels[0].source
    for allow in ("races", {"race"}, {"races", 1}):
        with pytest.raises(mlafix.ArgumentError, match='expected allow to be a set of "races", "bounds", "nan", got'):
            mlafix.kernel(allow=allow)


@pytest.mark.parametrize("n", [0, 6, 9])
def test_rows_permuted_within_groups(n):
    @mlafix.kernel
    def turn(y: Out[f32, "n"], x: In[f32, "n"]):
        assume(shape("n") % 3 == 0)
        for t in grid("n"):
            y[t // 3 * 3 + (t + 1) % 3] = x[t]

    y, x = np.full(n, np.nan, np.float32), np.arange(n, dtype=np.float32)
    turn(y, x)
    assert y.tolist() == np.roll(x.reshape(-1, 3), 1, axis=1).reshape(-1).tolist()


@pytest.mark.parametrize("m", [0, 1, 3])
def test_rows_on_either_side_of_a_bounded_scalar(m):
    @mlafix.kernel
    def parts(y: Out[f32, "n"], x: In[f32, "n"], m: index.at_most("n")):
        for t in grid("n"):
            store(y[t], x[t], where=t <= m)
            store(y[t], -x[t], where=t >= m + 1)

    y = np.zeros(3, np.float32)
    parts(y, np.float32([1, 2, 3]), m)
    assert y.tolist() == [1 if 0 <= m else -1, 2 if 1 <= m else -2, 3 if 2 <= m else -3]
