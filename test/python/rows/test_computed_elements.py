"""Rows made of single numbers (row_of), and elements of computed rows. Results are compared with numpy bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from devices import Device
from numerics import BF16, F16, F32
from sources import load, refused

import mlafix

DTYPES = {"f32": F32, "bf16": BF16, "f16": F16, "i32": np.int32, "i64": np.int64, "bool_": np.bool_}
# For each dtype, an expression for a row that is computed but equals the loaded x[t] bit for bit.
COMPUTED = {"f32": "-(-x[t])", "bf16": "-(-x[t])", "f16": "-(-x[t])", "i32": "-(-x[t])", "i64": "-(-x[t])", "bool_": "not (not x[t])"}


def stored(dtype: str) -> str:
    return "f32" if dtype in ("bf16", "f16") else dtype


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Returns ordinary numbers mixed with zeros of both signs, infinities, NaN, subnormal numbers and the limits of
    integers."""
    if dtype == "bool_":
        return rng.random(shape) < 0.5
    if dtype in ("i32", "i64"):
        ends = np.iinfo(DTYPES[dtype])
        return rng.choice([ends.min, ends.max, 0, -1, 7, 123456789], shape).astype(DTYPES[dtype])
    special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40], shape)
    with np.errstate(over="ignore"):
        return np.where(rng.random(shape) < 0.5, special, rng.normal(0, 3, shape)).astype(DTYPES[dtype])


def assert_same(got: np.ndarray, want: np.ndarray) -> None:
    """Asserts that the arrays are equal and that zeros have the same sign."""
    np.testing.assert_array_equal(got, want.astype(got.dtype))
    if got.dtype.kind == "f":
        there = ~np.isnan(got)
        np.testing.assert_array_equal(np.signbit(got[there]), np.signbit(want.astype(got.dtype)[there]))


# -- Rows of numbers ---------------------------------------------------------------------------------------------------------


def of_numbers(k: int, dtype: str) -> str:
    listed = ", ".join(f"x[t, {i}]" for i in range(k))
    return f"""
@mlafix.kernel
def fixed(y: Out[{stored(dtype)}, "n K={k}"], x: In[{dtype}, "n K={k}"]):
    for t in grid("n"):
        y[t] = row_of([{listed}])


@mlafix.kernel
def sliced(y: InOut[{stored(dtype)}, "n D"], x: In[{dtype}, "n K={k}"]):
    for t in grid("n"):
        values = [x[t, i] for i in range({k})]
        y[t, 2:{k + 2}] = row_of(values)
"""


@pytest.mark.parametrize("dtype", [*DTYPES])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 8, 31, 64])
def test_a_row_of_numbers_has_them_in_order(tmp_path: Path, device: Device, rng: np.random.Generator, dtype: str, k: int) -> None:
    module, x = load(tmp_path, of_numbers(k, dtype)), numbers(rng, (7, k), dtype)
    as_type = DTYPES[stored(dtype)]
    y = device.poisoned((7, k), as_type)
    module.fixed(y, device.put(x))
    around = np.zeros((7, k + 5), as_type)
    z = device.put(around)
    module.sliced(z, device.put(x))
    assert_same(device.get(y), x)
    around[:, 2 : k + 2] = x
    assert_same(device.get(z), around)


MEMBERS = """
@mlafix.kernel
def best(values: Out[f32, "n K=8"], places: Out[i32, "n K=8"], x: In[bf16, "n E"]):
    for t in grid("n"):
        most, found = top_k(x[t], 8)
        weights = exp(row_of(most) - most[0])
        values[t] = weights / sum(weights)
        places[t] = row_of(found)


@mlafix.kernel
def constants(y: Out[f32, "n K=3"], z: Out[i32, "n K=3"], w: Out[i32, "n one=1"], flags: Out[bool_, "n K=3"], x: In[f32, "n K=3"]):
    for t in grid("n"):
        y[t] = x[t] * row_of([1, 2.0, -0.5])
        z[t] = row_of([1, -2, 3]) + i32(t)
        w[t] = row_of([i32(t)])
        flags[t] = row_of([t > 0, True, False])
"""


def test_the_greatest_numbers_normalised(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    """Computes the weights of a mixture of experts: the row of the eight largest numbers from top_k is normalised and
    stored."""
    x = rng.permuted(np.tile(np.arange(256) / 32 - 4, (9, 1)), axis=1).astype(BF16)
    values, places = device.poisoned((9, 8), F32), device.poisoned((9, 8), np.int32)
    load(tmp_path, MEMBERS).best(values, places, device.put(x))
    order = np.argsort(-x.astype(np.float64), axis=1)[:, :8]
    weights = np.exp(np.take_along_axis(x.astype(np.float64), order, 1))
    np.testing.assert_array_equal(device.get(places), order)
    np.testing.assert_allclose(device.get(values), weights / weights.sum(1, keepdims=True), rtol=1e-5)


def test_constants_take_the_type_of_the_other_numbers(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    x, t = rng.normal(0, 1, (4, 3)).astype(F32), np.arange(4, dtype=np.int32)
    outs = [device.poisoned((4, 3), F32), device.poisoned((4, 3), np.int32), device.poisoned((4, 1), np.int32), device.put(np.zeros((4, 3), bool))]
    load(tmp_path, MEMBERS).constants(*outs, device.put(x))
    y, z, w, flags = (device.get(out) for out in outs)
    assert_same(y, x * np.array([1, 2, -0.5], F32))
    np.testing.assert_array_equal(z, np.array([1, -2, 3]) + t[:, None])
    np.testing.assert_array_equal(w[:, 0], t)
    np.testing.assert_array_equal(flags, np.stack([t > 0, t >= 0, t < 0], 1))


# -- Elements ----------------------------------------------------------------------------------------------------------------


def element(dtype: str, dim: str) -> str:
    return f"""
@mlafix.kernel
def k(y: Out[{stored(dtype)}, "n c=3"], x: In[{dtype}, "n {dim}"], at: In[i32, "n"], wide: In[i64, "n"]):
    for t in grid("n"):
        row = {COMPUTED[dtype]}
        y[t, 0] = row[at[t]]
        y[t, 1] = row[wide[t]]
        y[t, 2] = row[index(at[t]) + 1]
"""


# Returns indices of type i32 and i64. Some are outside the row: negative, past the end, or beyond 32 bits with low bits
# that are a valid index.
def places(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    inside = rng.integers(0, max(size, 1), 5)
    at = np.array([*inside, 0, max(size - 1, 0), -1, size, -(2**31), 2**31 - 1], np.int32)
    return at, np.array([*inside[::-1], 0, max(size - 1, 0), -1, size, 2**32, 2**40 + max(size - 1, 0)], np.int64)


def wanted(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    size = x.shape[1]
    if not size:
        return np.zeros(len(at), x.dtype)
    there = (at >= 0) & (at < size)
    return np.where(there, x[np.arange(len(at)), np.clip(at, 0, size - 1)], np.zeros(1, x.dtype)[0])


def check(kernel: mlafix.Kernel, device: Device, rng: np.random.Generator, dtype: str, size: int) -> None:
    at, wide = places(rng, size)
    x = numbers(rng, (len(at), max(size, 1)), dtype)[:, :size]
    y = device.put(np.ones((len(at), 3), bool)) if dtype == "bool_" else device.poisoned((len(at), 3), DTYPES[stored(dtype)])
    kernel(y, device.put(x), device.put(at), device.put(wide))
    for column, where in enumerate((at, wide, at.astype(np.int64) + 1)):
        assert_same(device.get(y)[:, column], wanted(x, where))


@pytest.mark.parametrize("dtype", [*DTYPES])
@pytest.mark.parametrize("size", [1, 2, 7, 64, 100, 4112, 70000])
def test_an_element_of_a_computed_row(tmp_path: Path, device: Device, rng: np.random.Generator, dtype: str, size: int) -> None:
    check(load(tmp_path, element(dtype, "D")).k, device, rng, dtype, size)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i32", "bool_"])
@pytest.mark.parametrize("most", [40, 3000, 70000])
def test_an_element_of_a_row_that_ends_at_the_launch(tmp_path: Path, device: Device, rng: np.random.Generator, dtype: str, most: int) -> None:
    """One compiled kernel serves all sizes. An element past the end of the row reads as zero, whatever the memory there
    contains."""
    kernel = load(tmp_path, element(dtype, f"v<={most}")).k
    for size in (0, 1, most // 3, most - 1, most):
        check(kernel, device, rng, dtype, size)


LOGPROBS = """
T = DType("T")


@mlafix.kernel
def logprobs(out: Out[f32, "n"], x: In[T, "n V"], label: In[i64, "n"], given: In[i32, "n"] | None):
    for t in grid("n"):
        row = f32(x[t])
        row = row - max(row)
        row = row - log(sum(exp(row)))
        out[t] = row[label[t]]


@mlafix.kernel
def absent(out: Out[f32, "n c=2"], x: In[f32, "n V"] | None, y: In[f32, "n V"] | None, at: In[i32, "n"]):
    for t in grid("n"):
        row = x[t] + 2.0
        out[t, 0] = row[at[t]]
        out[t, 1] = row[i64(at[t]) << 32]


@mlafix.kernel
def looped(out: Out[f32, "n"], x: In[f32, "n five=5"], start: In[i32, "n"]):
    for t in grid("n"):
        row = x[t] * x[t]
        total = 0.0
        for i in range(start[t], 5):
            total = total + row[i]
        out[t] = total if start[t] < 5 else row[0]
"""


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_log_probabilities_of_chosen_tokens(tmp_path: Path, device: Device, rng: np.random.Generator, dtype: str) -> None:
    x, label = rng.normal(0, 2, (6, 1000)).astype(DTYPES[dtype]), rng.integers(0, 1000, 6)
    out = device.poisoned((6,), F32)
    load(tmp_path, LOGPROBS).logprobs(out, device.put(x), device.put(label), None)
    wide = x.astype(np.float64)
    want = wide[np.arange(6), label] - np.log(np.exp(wide).sum(1))
    np.testing.assert_allclose(device.get(out), want, rtol=1e-5, atol=1e-5)


def test_an_element_of_a_row_whose_size_no_tensor_must_say(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    """Only the optional tensors x and y have the dim V, and y is omitted. An index is in bounds if it is below the size
    of the row in x."""
    x, at = rng.normal(0, 1, (5, 9)).astype(F32), np.array([0, 8, 9, -1, 4], np.int32)
    out = device.poisoned((5, 2), F32)
    load(tmp_path, LOGPROBS).absent(out, device.put(x), None, device.put(at))
    want = x + np.float32(2)
    assert_same(device.get(out)[:, 0], wanted(want, at))
    assert_same(device.get(out)[:, 1], wanted(want, at.astype(np.int64) << 32))


def test_a_loop_over_elements(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    x, start = rng.integers(-4, 5, (4, 5)).astype(F32), np.array([0, 2, 4, 7], np.int32)
    out = device.poisoned((4,), F32)
    load(tmp_path, LOGPROBS).looped(out, device.put(x), device.put(start))
    want = [(row[first:] ** 2).sum() if first < 5 else row[0] ** 2 for row, first in zip(x, start)]
    np.testing.assert_array_equal(device.get(out), np.array(want, F32))


# -- Elements of rows in groups ----------------------------------------------------------------------------------------------


def groups(dtype: str, product: str, more: str = "") -> str:
    return f"""
@mlafix.kernel
def k(members: Out[{stored(dtype)}, "n G"], one: Out[{stored(dtype)}, "n"], x: In[{dtype}, "n {product}"], g: In[i32, "n"], at: In[i64, "n"]{more}):
    for t in grid("n"):
        row = {COMPUTED[dtype]}
        members[t] = row[:, at[t]]
        one[t] = row[g[t], at[t]]
"""


@pytest.mark.parametrize("dtype", [*DTYPES])
@pytest.mark.parametrize(
    ("count", "size", "product", "more"),
    [(8, 32, "(G 32)", ""), (3, 5, "(G 5)", ""), (4, 1, "(G 1)", ""), (16, 2, "(G 2)", ""), (2, 100, "(G K)", ""), (5, 12, "(G K)", ', w: In[f32, "K"]'), (1, 7, "(G K)", "")],
)
def test_an_element_of_each_group(
    tmp_path: Path, device: Device, rng: np.random.Generator, dtype: str, count: int, size: int, product: str, more: str
) -> None:
    """Reads a member x[t, :, k] and an element x[t, g, k] of a computed row. Both read as zeros out of bounds."""
    at = np.array([0, size - 1, size // 2, -1, size, 2**32], np.int64)
    g = np.array([count - 1, 0, count // 2, 0, 0, count], np.int32)
    x = numbers(rng, (6, count * size), dtype)
    as_type = DTYPES[stored(dtype)]
    members, one = device.put(np.ones((6, count), as_type)), device.put(np.ones(6, as_type))
    given = [device.put(np.ones(size, F32))] if more else []
    load(tmp_path, groups(dtype, product, more)).k(members, one, device.put(x), device.put(g), device.put(at), *given)
    wide = x.reshape(6, count, size)
    want = np.stack([wanted(wide[:, i], at) for i in range(count)], axis=1)
    assert_same(device.get(members), want)
    assert_same(device.get(one), wanted(want, g))


PAIRS = """
@mlafix.kernel
def turn(y: InOut[f32, "n (K 2)"], x: In[f32, "n (K 2)"], c: In[f32, "n K"], s: In[f32, "n K"], w: In[f32, "(K 2)"]):
    for t in grid("n"):
        row = x[t] * w[:]
        even, odd = row[:, 0], row[:, 1]
        y[t, :, 0] = even * c[t] - odd * s[t]
        y[t, :, 1] = odd * c[t] + even * s[t]
"""


def test_pairs_of_a_weighted_row_are_turned(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    """Interleaved rotary embedding after a norm: pairs of elements of the computed row are rotated."""
    x, w = rng.normal(0, 1, (5, 64)).astype(F32), rng.normal(0, 1, 64).astype(F32)
    c, s = rng.normal(0, 1, (2, 5, 32)).astype(F32)
    y = device.poisoned((5, 64), F32)
    load(tmp_path, PAIRS).turn(y, *map(device.put, (x, c, s, w)))
    row = x.astype(np.float64) * w
    even, odd = row[:, ::2], row[:, 1::2]
    want = np.stack([even * c - odd * s, odd * c + even * s], axis=2).reshape(5, 64)
    np.testing.assert_allclose(device.get(y), want, rtol=1e-5, atol=1e-5)


# -- Refused kernels ---------------------------------------------------------------------------------------------------------

ARGUMENTS = """y: InOut[f32, "n D"], x: In[f32, "n D"], l: InOut[f32, "n"], g: In[f32, "n (G 4)"], u: In[u8, "n"], b: In[u8, "n D"], k: i32"""


@pytest.mark.parametrize(
    ("body", "wrong", "message"),
    [
        ("v = row_of(1.0)", "1.0", "expected a list of numbers, as in row_of([a, b, …]), got 1.0"),
        ("v = row_of([])", "[]", "expected 1 to 64 numbers in a row, got 0"),
        ("v = row_of([l[t]] )[:]; y[t] = v", "v", "expected a row along D to store to 'y', got a row of f32 along 1; a slice takes it: y[t, :1] = …"),
        ("v = row_of([x[t]])", "x[t]", "expected a number as an element of a row, got a row of f32 along D; sum(row), max(row) and row[i] are numbers of a row"),
        ("v = row_of([k, 1.0])", "1.0", "expected an integer of type i32, got 1.0; f32(…) converts to floats"),
        ("v = row_of([k, l[t]])", "l[t]", "expected numbers of one type in a row, got i32 and f32; f32(…) converts"),
        ("v = row_of([k, k > 0])", "k > 0", "expected numbers of one type in a row, got i32 and bool; i32(…) makes 1 of true and 0 of false"),
        ("v = row_of([t, t])", "t", "expected f32, i32, i64 or bool as an element of a row, got index; i32(…) and i64(…) convert"),
        ("v = row_of([u[t]])", "u[t]", "expected f32, i32, i64 or bool as an element of a row, got u8; i32(…) and i64(…) convert"),
        ("y[t] = [1.0, 2.0]", "[1.0, 2.0]", "expected a scalar, a row or a state, got a list of 2; row_of([a, b]) is a row of numbers"),
        ("v = exp(x[t]); l[t] = v[0:2]", "v[0:2]", "expected an element, [i], of a row of f32 along D, got v[0:2]; load the part that is needed, as x[t, 0:2], and "
         "compute on it, or take a few elements: row_of([v[i] for i in range(0, 2)])"),
        ("v = exp(x[t]); l[t] = v[t, t]", "v[t, t]", "expected an element, [i], of a row of f32 along D, got v[t, t]"),
        ("v = exp(x[t]); l[t] = v[1.5]", "1.5", "expected an integer as an index, got 1.5"),
        ("v = exp(x[t]); l[t] = v[-1]", "-1", 'expected an index of at least 0, got -1; the last is shape("D") - 1'),
        ("v = exp(x[t]); l[t] = v[i32(v)]", "i32(v)", "expected an integer (index, i32 or i64) as an index, got a row of i32 along D"),
        ("v = exp(g[t]); l[t] = v[0]", "v[0]", "expected an element, [g, k], or one of each group, [:, k], of a row of f32 along (G 4), got v[0]; load the part that is "
         "needed, as x[t, 0], and compute on it"),
        ("v = exp(g[t]); l[t] = v[0, 4]", "4", "expected an index of at least 0 and below 4, got 4"),
        ("v = row_of([1.0, 2.0]); l[t] = v[2]", "2", "expected an index of at least 0 and below 2, got 2"),
        ("v = exp(x[t]); v[0] = 1.0", "v[0]", 'got a row of f32 along D; where(iota("D") == 0, …, v) is v with another element'),
        ("v = b[t]; l[t] = f32(v[0])", "v[0]", "expected a row of f32, i32, i64 or bool to take an element of, got a row of u8 along D; i32(…) converts it"),
        ("l[t] = k[0]", "k[0]", "expected a tensor, a row or a list before [ ], got i32"),
        ("v = x[t, 1:]", "1:", 'got 1:; load(x[t], into="E", first=-1) is a row along another dim, "E", that begins with element 1'),
        ('v = cumsum(x[t]); w = load(v, into="D", first=1)', "v", "expected a row of a tensor, as x[t], to load into another dim, got a row of f32 along D; elements of a "
         "computed row cannot be moved: load the rows that it is computed from with into=…"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, body: str, wrong: str, message: str) -> None:
    made = load(tmp_path, f'@mlafix.kernel\ndef k_({ARGUMENTS}):\n    for t in grid("n"):\n        {body}\n')
    with refused(message, wrong):
        made.k_.source  # noqa: B018
