"""Kernels written in Python: inspecting, compiling and calling them, and the results of built-ins."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sources import load

import mlafix
from mlafix.dsl import (DType, In, InOut, Out, bf16, bool_, f32, grid, i32, i64, identity, index, inline, kernel, load_state, merge, present,
                        rebase, shape, splat, store, store_state, u8, where)  # fmt: skip

T = DType("T")
SCALE = 3
EPSILON = np.float32(0.5)


@kernel
def scaled(y: Out[T, "n D"], x: In[T, "n D"], z: In[T, "n D"] | None, by: f32):
    """y = by * x (+ z)."""
    for t in grid("n"):
        row = x[t] * by
        y[t] = row + z[t] if z is not None else row


def rows(n: int = 3, size: int = 8) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((n, size)).astype(np.float32)


# -- Inspecting and compiling kernels ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ("source", "mlafix.forall"),
        ("specialized", "memref<?x64xf16"),
        ("canonical", "mlafix.store"),
        ("lowered", "mlafix.load"),
        ("layout", "#mlafix.plan<layout = <"),
        ("distributed", "vector.store"),
        ("nvvm", "nvvm.reqntid"),
        ("llvm", "define"),
        ("ptx", ".visible .entry"),
    ],
)
def test_ir_shows_every_stage(stage: str, expected: str) -> None:
    assert expected in scaled.ir(stage, "sm_90", D=64, T="f16")


def test_ir_refuses_other_stages() -> None:
    with pytest.raises(mlafix.ArgumentError, match='argument "stage": expected one of source, .*, got "?.sass'):
        scaled.ir("sass")


def test_ptx_moves_16_bytes_at_once_and_uses_the_target() -> None:
    ptx = scaled.ptx("sm_90", D=64, T="bf16")
    assert ".target sm_90" in ptx
    assert "ld.global.v4" in ptx and "st.global.v4" in ptx
    assert ".local" not in ptx


def test_signature_says_what_a_host_needs() -> None:
    assert scaled.name == "scaled"
    assert scaled.__doc__ == "y = by * x (+ z)."
    assert [arg["name"] for arg in scaled.signature["args"]] == ["y", "x", "z", "by"]
    assert scaled.signature["names"] == {"D": None, "T": None}


def test_compile_gives_the_unit_of_one_variant() -> None:
    unit = scaled.compile(D=8, T="f32")
    assert [(k.name, k.bindings) for k in unit.kernels] == [("scaled", {"D": "8", "T": "f32"})]
    assert scaled.compile(D=8, T=f32) is unit


def test_save_holds_every_variant_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "scaled.mlafix"
    scaled.save(path, ["x86-64", "sm_90"], {"D": 8}, {"D": 16}, T="f16")
    unit = mlafix.Unit.load(path)
    assert [k.bindings for k in unit.kernels] == [{"D": "8", "T": "f16"}, {"D": "16", "T": "f16"}]
    assert set(unit.kernels[0].targets) == {"x86-64", "sm_90"}


def test_load_reads_the_kernel_of_a_file() -> None:
    path = Path(__file__).resolve().parents[3] / "kernels" / "examples" / "softmax.mlir"
    x = rows()
    y = np.full_like(x, np.nan)
    mlafix.Kernel.load(path)(y, x, 1.0)
    want = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, want / want.sum(1, keepdims=True), rtol=1e-5)


def test_load_refuses_what_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "k.mlir").write_bytes(b"// \xff")
    with pytest.raises(mlafix.CompileError, match="k.mlir: expected text in UTF-8, got byte 0xff at offset 3"):
        mlafix.Kernel.load(tmp_path / "k.mlir")


def test_variants_do_not_depend_on_where_the_kernel_stands(tmp_path: Path) -> None:
    text = '@kernel\ndef k(y: Out[f32, "n"]):\n    for t in grid("n"):\n        y[t] = 1.0\n'
    one, two = load(tmp_path, text).k, load(tmp_path, "\n\n" + text).k
    assert one.source != two.source
    assert one.variants.source == two.variants.source


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux")
def test_a_kernel_in_a_folder_whose_name_is_not_utf8_compiles(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path / "caf") + b"\xe9"))
    folder.mkdir()
    k = load(folder, '@kernel\ndef k(y: Out[f32, "n"]):\n    for t in grid("n"):\n        print("caf\\ud800", t)\n        y[t] = 1.0\n').k
    k(y := np.zeros(3, np.float32))
    assert y.tolist() == [1, 1, 1]
    assert r"caf\\udce9" in k.source and r"caf\\ud800" in k.source
    k.save(folder / "k.mlafix", ["cpu"])
    assert list(mlafix.Unit.load(folder / "k.mlafix")) == ["k"]


def test_names_with_lone_surrogates_are_refused_like_other_wrong_ones() -> None:
    with pytest.raises(mlafix.CompileError, match=r"expected a target out of .*, got '\\ud800'"):
        scaled.ptx("\ud800", D=8, T="f32")
    with pytest.raises(mlafix.CompileError, match=r"expected a positive integer for dim 'D', got '\\ud800'"):
        scaled.ptx("sm_90", D="\ud800", T="f32")


# -- Calling kernels ---------------------------------------------------------------------------------------------------


def test_call_by_position_and_by_name() -> None:
    x, z = rows(), rows() + 1
    y = np.full_like(x, np.nan)
    scaled(y, x, z, 2.0)
    np.testing.assert_array_equal(y, x * 2 + z)
    scaled(y, x, by=3.0)
    np.testing.assert_array_equal(y, x * 3)
    scaled(x=x, y=y, by=4.0, z=None)
    np.testing.assert_array_equal(y, x * 4)


U = DType("U")


@mlafix.kernel
def shifted(y: Out[T, "n D"], x: In[T, "n D"], by: In[U, "n E"] | None):
    for t in grid("n"):
        y[t] = x[t] + by[t, 0] if by is not None else x[t]


def test_what_only_an_omitted_tensor_has_needs_no_value() -> None:
    x = rows()
    y = np.full_like(x, np.nan)
    shifted(y, x)
    np.testing.assert_array_equal(y, x)
    shifted(y, x, np.full((3, 2), 0.5, np.float16))
    np.testing.assert_array_equal(y, x + 0.5)


def test_an_omitted_tensor_leaves_no_trace_in_the_code() -> None:
    def parameters(**bindings: object) -> int:
        return len(re.findall(r"\.param .*scaled_any_param_", scaled.ptx("sm_90", D=64, T="f16", **bindings)))

    assert parameters(z="absent") < parameters(z="present") == parameters()
    assert "mlafix.present" in scaled.ir("canonical", D=64, T="f16")
    for z in ("absent", "present"):
        assert "mlafix.present" not in scaled.ir("canonical", D=64, T="f16", z=z)


def test_bound_call_runs_again_and_again() -> None:
    x = rows()
    y = np.full_like(x, np.nan)
    bound = scaled.bind(y, x, by=2.0)
    bound()
    np.testing.assert_array_equal(y, x * 2)
    x *= 2
    bound()
    np.testing.assert_array_equal(y, x * 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y, x: scaled(y, x), 'kernel "scaled": expected an argument "by", got none'),
        (lambda y, x: scaled(y, x, None, 1.0, 2.0), 'kernel "scaled": expected 4 arguments, got 5'),
        (lambda y, x: scaled(y, x, None, 10**400), 'expected a number that an f32 holds, got an integer of 1329 bits'),
        (lambda y, x: scaled(y, x, None, 10**39), 'expected a number that an f32 holds, got 1e[+]39'),
        (lambda y, x: scaled(y, x, None, -1e39), 'expected a number that an f32 holds, got -1e[+]39'),
        (lambda y, x: scaled(y, x, None, 1.0, by=2.0), 'expected each argument once, got "by" twice'),
        (lambda y, x: scaled(y, x, factor=2.0), 'expected one of y, x, z, by, got an argument "factor"'),
        (lambda y, x: scaled(y, x[:1], None, 1.0), '"n"'),
        (lambda y, x: scaled(y, x.astype(np.float64), None, 1.0), "x"),
    ],
)
def test_wrong_calls_are_argument_errors(call: object, message: str) -> None:
    x = rows()
    with pytest.raises(mlafix.ArgumentError, match=message.replace("(", r"\(")):
        call(np.empty_like(x), x)  # type: ignore[operator]


def test_base_of_the_lse_is_bound_by_specialize() -> None:
    @kernel
    def both(out: Out[f32, "n D"], lse: Out[f32, "n"], a: In[f32, "n D"], sa: In[f32, "n"], b: In[f32, "n D"], sb: In[f32, "n"]):
        for t in grid("n"):
            store_state(merge(load_state(a[t], sa[t]), load_state(b[t], sb[t])), out[t], lse[t])

    assert both.signature["names"]["B"] == "e"
    a, b = rows(), rows() + 1
    sa, sb = np.zeros(3, np.float32), np.ones(3, np.float32)
    for base, chosen in ((np.e, both), (2.0, both.specialize(B=2))):
        out, lse = np.full_like(a, np.nan), np.full(3, np.nan, np.float32)
        chosen(out, lse, a, sa, b, sb)
        np.testing.assert_allclose(lse, np.log(1 + base) / np.log(base), rtol=1e-6)
        np.testing.assert_allclose(out, (a + base * b) / (1 + base), rtol=2e-5, atol=1e-6)


# -- Results of built-ins ----------------------------------------------------------------------------------------------


@kernel
def guarded(y: InOut[i64, "n"], c: In[i32, "m"], flags: In[u8, "n"] | None):
    n, m = y.shape[0], c.shape[0]
    for t in grid(n):
        following = c[t + 1] if t + 1 < m else -1
        positive = t < m and c[t] > 0
        on = present(flags) and flags[t] != 0
        negative = t >= m or c[t] < 0
        y[t] = i64(following) * 1000 + i64(positive) * 100 + i64(negative) * 10 + i64(on)


def test_memory_that_python_would_not_read_is_not_read() -> None:
    # c is the middle of a larger array. The elements around c must have no effect.
    memory = np.full(12, 5, np.int32)
    memory[4:7] = [1, -2, 3]
    y = np.full(6, -1, np.int64)
    guarded(y, memory[4:7])
    assert y.tolist() == [-2000 + 100, 3000 + 10, -1000 + 100, -1000 + 10, -1000 + 10, -1000 + 10]
    guarded(y, memory[4:7], np.array([0, 255, 0, 1, 0, 0], np.uint8))
    assert (y % 10).tolist() == [0, 1, 0, 1, 0, 0]


@inline
def clamp(v, low=-1.0, high=1.0):
    """v between two bounds."""
    return min(max(v, low), high)


@kernel
def outside(y: Out[f32, "n D"], x: In[f32, "n D"]):
    for t in grid(x.shape[0]):
        v = clamp(x[t]) * SCALE + EPSILON
        if SCALE > 2:
            v = clamp(v, high=2.0)
        else:
            v = missing  # noqa: F821 (a branch that is not taken is not read)
        for factor in (2.0, 0.25):
            v = v * factor
        y[t] = v


def test_names_outside_are_constants_and_inline_functions() -> None:
    x = rows() * 2
    y = np.full_like(x, np.nan)
    outside(y, x)
    np.testing.assert_allclose(y, np.clip(np.clip(x, -1, 1) * 3 + 0.5, -1, 2) * 0.5, rtol=1e-6)


def test_closures_are_constants() -> None:
    def make(factor: float) -> mlafix.Kernel:
        @kernel
        def times(y: Out[f32, "n"], x: In[f32, "n"]):
            for t in grid("n"):
                y[t] = x[t] * factor

        return times

    x, y = np.ones(4, np.float32), np.empty(4, np.float32)
    for factor in (2.0, 5.0):
        make(factor)(y, x)
        assert y.tolist() == [factor] * 4


@kernel
def loops(y: Out[f32, "n D"], z: Out[i32, "n"], x: In[f32, "n D"], turns: i32):
    for t in grid("n"):
        total, count, found = splat(0.0, "D"), 0, False
        for i in range(1, turns, 2):
            total = total + x[t] * f32(i)
            count += i
            if i == 3:
                found = True
        for j in range(shape("D")):
            count = count + i32(j)
        y[t] = where(x[t] > 0, total, -1.0)
        store(z[t], count if found else -count)


def test_loops_carry_rows_and_scalars() -> None:
    x = rows()
    y, z = np.full_like(x, np.nan), np.full(3, 77, np.int32)
    for turns in (0, 2, 6):
        loops(y, z, x, turns)
        odd = sum(range(1, turns, 2))
        np.testing.assert_allclose(y, np.where(x > 0, x * odd, -1), rtol=1e-6)
        assert z.tolist() == [(odd + 28) * (1 if turns > 3 else -1)] * 3


@kernel
def joined(y: Out[f32, "n"], z: Out[i64, "n"], x: In[f32, "n"], w: In[i64, "n"]):
    for t in grid("n"):
        if x[t] < 0:
            a, b = 3, 1
        elif x[t] < 1:
            a, b = 2, w[t]
        elif x[t] < 2:
            a, b = x[t], 5
        else:
            a, b = 0, w[t] - 1
        c = 1.5
        if b == 5:
            c = 2
        y[t], z[t] = a + c, b


def test_a_constant_of_a_branch_takes_the_type_of_the_other() -> None:
    x, w = np.array([-1, 0.5, 1.25, 2], np.float32), np.full(4, 2**40, np.int64)
    y, z = np.empty(4, np.float32), np.empty(4, np.int64)
    joined(y, z, x, w)
    assert y.tolist() == [4.5, 3.5, 3.25, 1.5]
    assert z.tolist() == [1, 2**40, 5, 2**40 - 1]


@kernel
def delayed(y: Out[bf16, "n k D"], x: In[bf16, "n k D"], w: f32):
    for t in grid("n"):
        before = splat(0.0, "D")
        for i in range(shape("k")):
            y[t, i] = before * w
            before = x[t, i]


def test_a_loop_carries_a_row_of_another_turn() -> None:
    torch = pytest.importorskip("torch")
    for size in (16, 32, 33):
        x = torch.arange(2 * 3 * size).reshape(2, 3, size).to(torch.bfloat16)
        y = torch.full_like(x, float("nan"))
        delayed(y, x, 1.0)
        assert torch.equal(y[:, 1:], x[:, :-1])
        assert not y[:, 0].any()


@kernel
def rebased(lse2: Out[f32, "n"], x: In[f32, "n D"], lse: In[f32, "n"], empty: Out[bool_, "n"], at: index):
    for t in grid("n"):
        state = load_state(x[t], lse[t], base="e")
        if t == at:
            state = identity("D", base="e")
        store_state(rebase(state, 2), None, lse2[t])
        empty[t] = t == at


def test_states_pass_through_branches_and_bases() -> None:
    lse, lse2 = np.array([1, 2, 3], np.float32), np.full(3, np.nan, np.float32)
    empty = np.zeros(3, bool)
    rebased(lse2, rows(), lse, empty, 1)
    np.testing.assert_allclose(lse2, [1 / np.log(2), -np.inf, 3 / np.log(2)], rtol=1e-6)
    assert empty.tolist() == [False, True, False]


def test_an_index_that_two_branches_compute_alike(tmp_path: Path) -> None:
    """Two branches compute an index in the same 40 steps, each of which uses the previous value several times. The
    compiler must compare each pair of steps only once; otherwise it would need more than 2^40 comparisons."""
    steps = "            x = x * x + x\n" * 40
    index = f"            x = t\n{steps}            x = max(min(x, shape(\"n\") - 1), 0)\n"
    made = load(tmp_path, f"""
@mlafix.kernel
def squares(out: Out[f32, "n D"], v: In[f32, "n D"], flag: In[i32, "n"]):
    for t in grid("n"):
        row = v[t]
        if flag[t] > 0:
{index}            row = v[x]
        if flag[t] < 0:
{index}            row = row + v[x]
        out[t] = row
""")
    assert "griddepcontrol.wait" in made.squares.ptx("sm_90", D=128)
