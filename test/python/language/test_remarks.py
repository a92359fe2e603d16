"""Tests kernel.remarks, which shows the compiler's decisions for a kernel at the lines of the Python file."""

from __future__ import annotations

from pathlib import Path

import pytest

import mlafix
from mlafix.dsl import DType, In, Out, argmax, bf16, cumsum, f32, grid, i32, identity, index, load_state, make_state, merge, shape, store_state

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
    assert "        store_state(merge(first" in text  # the line itself is shown
    assert "merges_dense on sm_90: a row of 128 elements is 16 packs of 8 elements" in text


def test_remarks_say_what_the_row_length_costs() -> None:
    text = merges.remarks("sm_90", D=100, T="bf16")
    assert "rows of out, a, b are moved 8 bytes at a time, where the target has accesses of 16 bytes" in text
    assert "100 elements are not a multiple of 8 [missed: narrow-access, 600 bytes a row]" in text


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


@mlafix.kernel
def sample(token: Out[i32, "n"], logits: In[bf16, "n v<=151936"], noise: In[f32, "n v"]):
    for t in grid("n"):
        token[t] = argmax(f32(logits[t]) + noise[t])


@mlafix.kernel
def cumulated(y: Out[f32, "n V"], x: In[bf16, "n V"]):
    for t in grid("n"):
        y[t] = cumsum(f32(x[t]))


@mlafix.kernel
def attend(
    out: Out[f32, "b H D"], q: In[bf16, "b H D"], keys: In[bf16, "b k K D"], values: In[bf16, "b k K D"], lens: In[i32, "b"]
):
    for b, h in grid("b", "H"):
        state = identity("D")
        for i in range(index(lens[b])):
            state = merge(state, make_state(f32(values[b, i, h // 4]), sum(f32(keys[b, i, h // 4]) * f32(q[b, h]))))
        store_state(state, out[b, h])


@mlafix.kernel
def attend_in_groups(
    out: Out[f32, "b K G=4 D"], q: In[bf16, "b K G=4 D"], keys: In[bf16, "b k K D"], values: In[bf16, "b k K D"], lens: In[i32, "b"]
):
    for b, h in grid("b", "K"):
        states = [identity("D") for g in range(4)]
        for i in range(index(lens[b])):
            key, value = f32(keys[b, i, h]), f32(values[b, i, h])
            states = [merge(states[g], make_state(value, sum(key * f32(q[b, h, g])))) for g in range(4)]
        for g in range(4):
            store_state(states[g], out[b, h, g])


@mlafix.kernel
def looked_up(y: Out[bf16, "n D"], x: In[bf16, "n D"], starts: In[i32, "m"]):
    for t in grid("n"):
        before = 0
        for i in range(shape("m")):
            before = before + starts[i]
        y[t] = f32(x[t]) * f32(before)


@mlafix.kernel
def looked_up_twice(y: Out[bf16, "n D"], x: In[bf16, "n D"], starts: In[i32, "k m"]):
    for t in grid("n"):
        before = 0
        for j in range(shape("k")):
            for i in range(shape("m")):
                before = before + starts[j, i]
        y[t] = f32(x[t]) * f32(before)


@mlafix.kernel
def attend_in_pages(
    out: Out[f32, "b K G=8 D"], q: In[bf16, "b K G=8 D"], keys: In[bf16, "b p k K D"], values: In[bf16, "b p k K D"], lens: In[i32, "b"]
):
    for b, h in grid("b", "K"):
        states = [identity("D") for g in range(8)]
        for page in range(shape("p")):
            for i in range(index(lens[b])):
                key, value = f32(keys[b, page, i, h]), f32(values[b, page, i, h])
                states = [merge(states[g], make_state(value, sum(key * f32(q[b, h, g])))) for g in range(8)]
        for g in range(8):
            store_state(states[g], out[b, h, g])


def test_a_narrow_access_is_not_blamed_on_a_bound_that_allows_wider_ones() -> None:
    """The remark gives the true reason for a narrow access to `logits`. The reason is the f32 row of `noise`, which
    determines the number of elements of a pack."""
    line = next(line for line in sample.remarks("sm_90").splitlines() if "sample_whole_dense" in line and "narrow-access" in line)
    assert "rows of logits are moved 8 bytes at a time" in line and "since most bytes are of elements of 4 bytes" in line


def costs(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("costs most, ")]


def test_remarks_begin_with_what_costs_most() -> None:
    text = cumulated.remarks("sm_90", V=128256)
    first = costs(text)
    assert first == text.splitlines()[: len(first)] and 0 < len(first) <= 3
    assert any("cumulated_dense: a row is in one block" in line and "joined in the memory of one block" in line for line in first)
    assert any("in local memory [local-memory]" in line for line in first)
    sizes = [int(line.split()[2].replace(",", "")) for line in first]
    assert sizes == sorted(sizes, reverse=True) and 6 * 128256 in sizes
    assert not costs(merges.remarks("sm_90", D=128, T="bf16")), "nothing is missed there"


def test_the_costs_are_those_of_the_version_for_the_longest_rows() -> None:
    assert all("sample_whole_dense" in line or "sample:" in line for line in costs(sample.remarks("sm_90")))


def test_remarks_name_rows_that_are_read_again_and_loops_over_scalars() -> None:
    text = attend.remarks("sm_90", H=32, K=8, D=128)
    assert "a loop reads the same rows of keys, values for 4 rows of the grid" in text or "a loop reads the same rows of values, keys for 4 rows" in text
    assert "a loop loads scalars in turn" in looked_up.remarks("sm_90", D=128)
    assert "read-again" not in merges.remarks("sm_90", D=128, T="bf16")


def test_remarks_name_loops_that_arithmetic_bounds() -> None:
    """With four queries per key, the arithmetic for each loaded byte takes longer than loading it. With one query, it
    does not, so there is no remark."""
    said = [line for line in attend_in_groups.remarks("sm_90", K=8, D=128).splitlines() if "[arithmetic]" in line]
    assert said and all("f32 operations for each byte of the rows that it loads" in line and "tensor cores" in line for line in said)
    assert [line.split(": ")[1] for line in costs(attend_in_groups.remarks("sm_90", K=8, D=128))] == ["attend_in_groups_dense"]
    assert "[arithmetic]" not in attend.remarks("sm_90", H=32, K=8, D=128)


def test_a_loop_in_a_loop_costs_the_iterations_of_both() -> None:
    """A loop of unknown length counts as 8 iterations. The loop over keys is unrolled: it counts as 2 iterations, which
    load 4 keys, 4 values and the 8 queries."""
    flat, nested = (costs(kernel.remarks("sm_90", D=128)) for kernel in (looked_up, looked_up_twice))
    assert [line.split(":")[0] for line in flat] == ["costs most, 32 bytes a row"]
    assert [line.split(":")[0] for line in nested] == ["costs most, 256 bytes a row"] * 2
    (pages,) = costs(attend_in_pages.remarks("sm_90", K=8, D=128))
    assert pages.startswith(f"costs most, {8 * 2 * (4 + 4 + 8) * 256:,} bytes a row: attend_in_pages_dense:")
