"""Elements whose dtype is a variable. Integers are converted to the width of the bound dtype. If a kernel only moves
elements, the variable may be bound to any dtype."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from devices import Device
from numerics import poison
from sources import load
from test_dtype_pairs import ROWS, STORED, machines, values

import mlafix
from mlafix import _runtime


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("variables")


INTEGERS = """
@mlafix.kernel
def k(r: Out[I, "n D"], s: Out[I, "n"], q: InOut[I, "n D"], c: Out[I, "n D"], one: Out[I, "n"], x: In[i32, "n D"],
      z: In[i64, "n"], same: In[I, "n D"]):
    for t in grid("n"):
        r[t] = x[t]
        s[t] = z[t]
        store(q[t], i64(x[t]), where=z[t] > 0)
        c[t] = same[t]
        one[t] = 1
"""


@pytest.mark.parametrize("machine", machines())
@pytest.mark.parametrize("dtype", ["i8", "u8", "i32", "i64"])
def test_integers_take_the_width_of_a_dtype_variable(
    folder: Path, rng: np.random.Generator, dtype: str, machine: str
) -> None:
    """Integers are sign-extended to a wider dtype, and truncated to the low bits of a narrower one."""
    kernel, width = load(folder, INTEGERS).k, STORED[dtype]
    x, z = values("i32", (ROWS, 16), rng), values("i64", (ROWS,), rng)
    same = values(dtype, (ROWS, 16), rng)
    outputs = [np.full((ROWS, 16)[: 2 - i % 2], 7, width) for i in (0, 1, 0, 0, 1)]
    dispatcher = _runtime.Dispatcher("k", kernel._signature_text, lambda bound, *_: kernel.compile(machine, **bound))
    dispatcher((*outputs, x, z, same))
    chosen = np.where((z > 0)[:, None], x.astype(width), np.full(1, 7, width))
    for got, want in zip(outputs, (x.astype(width), z.astype(width), chosen, same, np.ones(ROWS, width))):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("chip", ["sm_75", "sm_100"])
@pytest.mark.parametrize("dtype", ["i8", "u8", "i32", "i64"])
def test_integers_of_a_dtype_variable_assemble_for_gpus(folder: Path, dtype: str, chip: str) -> None:
    assert load(folder, INTEGERS).k.compile(chip, D=16, I=dtype).kernels[0].targets == [chip]


def test_a_float_is_no_integer_of_a_dtype_variable(folder: Path) -> None:
    text = INTEGERS.replace("x[t]\n", "f32(x[t])\n", 1)
    with pytest.raises(mlafix.CompileError, match=r"expected i64 or i32 to store to 'r' \(I\), got a row of f32"):
        load(folder, text).k.ir("source")


MOVES = """
@mlafix.kernel
def k(r: Out[I, "n D"], s: Out[I, "n"], q: InOut[I, "n D"], c: Out[I, "n D"], z: InOut[I, "n D"], f: Out[I, "n D"].fill(0),
      x: In[I, "n D"], y: In[I, "n"], p: In[bool_, "n"], absent: In[I, "n D"] | None):
    for t in grid("n"):
        r[t] = x[t]
        s[t] = y[t]
        store(q[t], x[t], where=p[t])
        c[t] = x[t] if p[t] else 0
        store(z[t], 0, where=p[t])
        store(f[t], load(x[t], where=present(absent)), where=p[t])
"""


def anything(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Returns arbitrary bits, including NaN of every kind and both infinities."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    return np.frombuffer(rng.bytes(int(np.prod(shape)) * STORED[dtype].itemsize), STORED[dtype]).reshape(shape).copy()


# The kernel of MOVES with a dtype variable for floats in place of one for integers.
MOVES_FLOATS = MOVES.replace("Out[I,", "Out[T,").replace("In[I,", "In[T,").replace("InOut[I,", "InOut[T,")


@pytest.mark.parametrize("size", [16, 5, 4112])
@pytest.mark.parametrize("dtype", STORED)
@pytest.mark.parametrize("text", [MOVES, MOVES_FLOATS], ids=["integers", "floats"])
def test_what_is_moved_keeps_its_bits(folder: Path, device: Device, rng: np.random.Generator, text: str, dtype: str, size: int) -> None:
    kernel, numpy_dtype = load(folder, text).k, STORED[dtype]
    x, y, p = anything(dtype, (ROWS, size), rng), anything(dtype, (ROWS,), rng), np.arange(ROWS) % 3 != 0
    before = anything(dtype, (ROWS, size), rng)
    outputs = [device.put(a) for a in (poison(x.shape, numpy_dtype), poison(y.shape, numpy_dtype), before.copy(),
                                       poison(x.shape, numpy_dtype), before.copy(), poison(x.shape, numpy_dtype))]  # fmt: skip
    kernel(*outputs, device.put(x), device.put(y), device.put(p), device.put(x))
    zero = np.zeros((), numpy_dtype)
    chosen = p[:, None]
    wanted = [x, y, np.where(chosen, x, before), np.where(chosen, x, zero), np.where(chosen, zero, before), np.where(chosen, x, zero)]
    bits = f"u{numpy_dtype.itemsize}"
    for got, want in zip(outputs, wanted):
        np.testing.assert_array_equal(np.ascontiguousarray(device.get(got)).view(bits), np.ascontiguousarray(want).view(bits))


@pytest.mark.parametrize("chip", ["sm_75", "sm_100"])
@pytest.mark.parametrize("dtype", STORED)
def test_moves_of_any_dtype_assemble_for_gpus(folder: Path, dtype: str, chip: str) -> None:
    for text, name in ((MOVES, "I"), (MOVES_FLOATS, "T")):
        assert load(folder, text).k.compile(chip, D=16, absent="present", **{name: dtype}).kernels[0].targets == [chip]


@pytest.mark.parametrize("text, dtypes", [
    (MOVES, r"\(bf16, f16, f32, f8e4m3fn, i32, i64, i8, u8, bool, f8e5m2, f8e8m0; there are no others\)"),
    (INTEGERS, r"\(i32, i64, i8, u8; there are no other integers\)"),
])  # fmt: skip
def test_a_dtype_that_there_is_not(folder: Path, text: str, dtypes: str) -> None:
    kernel = load(folder, text).k
    arguments = [np.zeros(2, np.uint16)] * sum(not arg["optional"] for arg in kernel.signature["args"])
    with pytest.raises(mlafix.ArgumentError, match=f"expected a tensor of dtype I {dtypes}, got dtype uint16"):
        kernel(*arguments)


@pytest.mark.parametrize("old, new", [
    ("r[t] = x[t]", "r[t] = x[t] + 1"), ("c[t] = x[t] if p[t] else 0", "c[t] = x[t] if p[t] else 1"),
    ("store(z[t], 0,", "store(z[t], i64(t),"), ("s[t] = y[t]", "s[t] = y[y[t]]"), ("s[t] = y[t]", "s[t] = i64(y[t] > 0)"),
])  # fmt: skip
def test_what_is_computed_with_is_an_integer(folder: Path, old: str, new: str) -> None:
    assert old in MOVES
    kernel = load(folder, MOVES.replace(old, new)).k
    with pytest.raises(mlafix.CompileError, match="'I', since the body computes with its elements, got bf16"):
        kernel.ir("specialized", "x86-64-v3", D=16, I="bf16", absent="present")


@pytest.mark.parametrize("old, new", [
    ("r[t] = x[t]", "r[t] = x[t] + 1.0"), ("c[t] = x[t] if p[t] else 0", "c[t] = x[t] if p[t] else -0.0"),
    ("store(z[t], 0,", "store(z[t], f32(t),"), (".fill(0)", ".fill(1)"), ("r[t] = x[t]", "store_state(make_state(f32(x[t]), 0.0), r[t])"),
    ("r[t] = x[t]", "store_state(identity('D'), r[t])"),
])  # fmt: skip
def test_what_is_computed_with_is_a_float(folder: Path, old: str, new: str) -> None:
    assert old in MOVES_FLOATS
    kernel = load(folder, MOVES_FLOATS.replace(old, new)).k
    message = "expected a dtype of floats for 'T', since the body computes with its elements, got i32; in Python, DType(\"T\", default=i32)"
    with pytest.raises(mlafix.CompileError) as error:
        kernel.ir("specialized", "x86-64-v3", D=16, T="i32", absent="present")
    assert message in str(error.value)
