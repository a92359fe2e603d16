"""kernel.remarks: what the compiler decided for a kernel in Python, at the lines of the Python file."""

from __future__ import annotations

from pathlib import Path

import pytest

import mlafix
from mlafix.dsl import DType, In, Out, f32, grid, load_state, merge, store_state

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

T = DType("T")


@mlafix.kernel
def merges(
    out: Out[T, "n D"], a: In[T, "n D"], a_lse: In[f32, "n"], b: In[T, "n D"], b_lse: In[f32, "n"], limit: mlafix.dsl.index
):
    for (t,) in grid("n"):
        first = load_state(a[t], a_lse[t], where=t < limit)
        store_state(merge(first, load_state(b[t], b_lse[t])), out[t])


def line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith(text))


def test_remarks_are_at_the_lines_of_the_python_file() -> None:
    text = merges.remarks("sm_90", D=128, T="bf16")
    where = f"{__file__}:{line_of('store_state(merge')}:"
    skipped = next(line for line in text.splitlines() if "[passed: skip-copies]" in line)
    assert skipped.startswith(where) and "only the state of b are neither read nor written" in skipped
    assert "        store_state(merge(first" in text  # the line itself
    assert "merges_dense on sm_90: a row of 128 elements is 16 packs of 8 elements" in text


def test_remarks_say_what_the_row_length_costs() -> None:
    text = merges.remarks("sm_90", D=100, T="bf16")
    assert "rows of out, a, b are moved 8 bytes at a time, where the target has accesses of 16 bytes" in text
    assert "100 elements are not a multiple of 8 [missed: narrow-access]" in text


def test_remarks_depend_on_the_target() -> None:
    text = merges.remarks("x86-64-v3", D=128, T="bf16")
    assert "the scalars of 16 rows along the outermost extent are computed at once" in text
    assert "sm_90" not in text


def test_a_kernel_that_does_not_compile_raises() -> None:
    with pytest.raises(mlafix.CompileError, match="expected a size for dim 'D'"):
        merges.remarks("sm_90", T="bf16")


def test_remarks_are_grouped_by_code_version_and_mark_what_calls_pay_for() -> None:
    text = merges.remarks("sm_90", D=100, T="bf16")
    heads = [line for line in text.splitlines() if line.startswith("-- ")]
    assert heads[0].startswith("-- merges_dense, asked first: ") and heads[-1].startswith("-- merges_any, asked last: ")
    first, last = text.partition(heads[0])[2].partition(heads[1])[0], text.partition(heads[-1])[2]
    assert "remark (matters): merges_dense on sm_90: rows of out, a, b are moved 8 bytes at a time" in first
    assert "narrow-access" in last and "matters" not in last, "no call that another version takes pays for it"


def test_remarks_say_once_what_versions_share() -> None:
    text = merges.remarks("sm_90", D=128, T="bf16")
    assert text.count("16 lanes hold up to 1 pack each") == 1
    assert text.count("def merges(") == 1
