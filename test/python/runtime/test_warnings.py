"""The compiler's warnings become Python warnings."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import mlafix
from mlafix import cache
from mlafix.dsl import In, InOut, Out, exp, f32, grid, load_state, log, merge, shape, store_state, where

LINES = Path(__file__).read_text(encoding="utf-8").splitlines()
INF = float("inf")


@mlafix.kernel
def merge_by_hand(out: Out[f32, "n D"], a: In[f32, "n D"], a_lse: In[f32, "n"], b: In[f32, "n D"], b_lse: In[f32, "n"]):
    for t in grid("n"):
        x, y = a_lse[t], b_lse[t]
        m = max(x, y)
        p, q = exp(x - m), exp(y - m)
        out[t] = (a[t] * p + b[t] * q) / (p + q)


@mlafix.kernel
def merge_with_care(out: Out[f32, "n D"], a: In[f32, "n D"], a_lse: In[f32, "n"], b: In[f32, "n D"], b_lse: In[f32, "n"]):
    for t in grid("n"):
        x, y = a_lse[t], b_lse[t]
        has_x, has_y = abs(x) < INF, abs(y) < INF
        m = max(where(has_x, x, -1e30), where(has_y, y, -1e30))
        p, q = where(has_x, exp(x - m), 0.0), where(has_y, exp(y - m), 0.0)
        rows = where(has_x, a[t] * p, 0.0) + where(has_y, b[t] * q, 0.0)
        out[t] = where(has_x | has_y, rows / (p + q), 0.0)


@mlafix.kernel
def merge_states(out: Out[f32, "n D"], a: In[f32, "n D"], a_lse: In[f32, "n"], b: In[f32, "n D"], b_lse: In[f32, "n"]):
    for t in grid("n"):
        store_state(merge(load_state(a[t], a_lse[t]), load_state(b[t], b_lse[t])), out[t])


@mlafix.kernel
def add_lses(lse: InOut[f32, "n"], other_lse: In[f32, "n"]):
    for t in grid("n"):
        m = max(lse[t], other_lse[t])
        lse[t] = m + log(exp(lse[t] - m) + exp(other_lse[t] - m))


def compiled(kernel, **bindings):
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        kernel.compile(**bindings)
    return given


@pytest.fixture(autouse=True)
def compile_anew(monkeypatch):
    monkeypatch.setenv("MLAFIX_CACHE", "0")
    cache.clear_memory()


def test_a_warning_underlines_the_expression():
    given = compiled(merge_by_hand, D=64)
    assert {warning.category for warning in given} == {mlafix.CompileWarning}
    assert {Path(warning.filename).name for warning in given} == {"test_warnings.py"}
    marked = []
    for warning in given:
        text, line, carets = str(warning.message).split("\n")
        assert line == LINES[warning.lineno - 1]
        assert text.startswith("expected no NaN where no input is NaN, got ") and "merge the states" in text
        marked.append((line[carets.index("^") : len(carets)], text.partition(", got ")[2].partition(" for ")[0]))
    assert ("x - m", "-inf - -inf") in marked
    assert ("y - m", "-inf - -inf") in marked
    assert ("a[t] * p", "0 * a row of a, which may hold anything,") in marked
    assert ("b[t] * q", "0 * a row of b, which may hold anything,") in marked


@pytest.mark.parametrize("kernel", [merge_with_care, merge_states])
def test_no_warning_where_empty_rows_are_right(kernel):
    assert not compiled(kernel, D=64)
    # The result is right whatever the payloads of empty states contain.
    rng = np.random.default_rng(0)
    lses = np.float32([-np.inf, np.inf, 0.5])
    a_lse, b_lse = (np.ascontiguousarray(x.reshape(-1)) for x in np.meshgrid(lses, lses))
    a, b = rng.standard_normal((2, 9, 64)).astype(np.float32)
    a[np.isinf(a_lse)] = b[np.isinf(b_lse)] = np.nan
    out = np.empty_like(a)
    kernel(out, a, a_lse, b, b_lse)
    assert np.isfinite(out).all()
    assert (out[np.isinf(a_lse) & np.isinf(b_lse)] == 0).all()


def test_what_is_warned_of_happens():
    """The fault that the compiler warns of occurs when the kernel runs."""
    assert compiled(add_lses)
    lse = np.float32([-np.inf, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        add_lses(lse, np.float32([-np.inf, -np.inf]))
    assert np.isnan(lse[0]) and lse[1] == 1.0


def test_the_report_has_the_warnings():
    found = add_lses.report()["warnings"]
    assert [LINES[w["line"] - 1][w["column"] - 1 : w["end_column"] - 1] for w in found] == ["lse[t] - m", "other_lse[t] - m"]
    assert merge_states.report()["warnings"] == []


def test_filters_decide(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", mlafix.CompileWarning)
        with pytest.raises(mlafix.CompileWarning, match="no NaN"):
            add_lses.compile()
        warnings.simplefilter("ignore", mlafix.CompileWarning)
        add_lses.compile()
    with pytest.warns(mlafix.CompileWarning):
        add_lses.save(tmp_path / "unit.mlafix", "cpu")


@mlafix.kernel
def unused_and_overwritten(y: Out[f32, "n D"], z: Out[f32, "n"], x: In[f32, "n D"], more: In[f32, "n D"], sizes: In[f32, "r"], s: f32, _kept: f32):
    for t in grid("n"):
        y[t] = x[t]
        i = 0
        z[i + t] = f32(shape("r"))
        i = i + 0
        z[i + t] = 2.0
        y[t] = y[t] + 1.0
        y[t] = 2.0 * x[t]


def test_the_text_is_warned_of():
    found = unused_and_overwritten.report()["warnings"]
    assert [w["message"] for w in found] == [
        "expected every argument to be used, got 'more', which the kernel never reads or writes: leave it out",
        "expected every argument to be used, got 's', which the kernel never reads or writes: leave it out",
        f"expected a store that something reads, got one to y[t] that line {found[-1]['line'] + 1} overwrites: leave it out",
    ]
    assert [LINES[w["line"] - 1][w["column"] - 1 : w["end_column"] - 1] for w in found] == ['more: In[f32, "n D"]', "s: f32", "y[t]"]
    assert LINES[found[-1]["line"]] == "        y[t] = 2.0 * x[t]"


def test_a_warning_is_given_once_in_each_process(tmp_path):
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_warnings as t\n"
        "for D in (64, 128): t.merge_by_hand.compile(D=D); t.merge_states.compile(D=D)\n"
    )
    env = {**os.environ, "MLAFIX_CACHE": "1", "MLAFIX_CACHE_DIR": str(tmp_path)}
    for _ in range(2):  # the second process finds the units in the cache
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env)
        assert done.stderr.count("CompileWarning: expected no NaN") == 4, done.stderr
    kept = [path.name for path in tmp_path.rglob("*.json") if "warnings" in path.name]
    assert len(kept) == 2 and all("merge_by_hand" in name for name in kept)
