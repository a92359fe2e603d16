"""Tests operations on constants, which the front end folds. The results must equal those of the same operations on
loaded values, also at the limits of the operands' range."""

from __future__ import annotations

import math  # noqa: F401 (operands that eval() reads use it)
from pathlib import Path

import numpy as np
import pytest
from sources import load, refused

FLOATS = ["-math.inf", "-2.5", "-1.0", "-0.5", "-0.0", "0.0", "0.25", "0.5", "1.5", "2.5", str(2.0**63), "math.inf", "math.nan"]
INTEGERS = ["0", "1", "-1", "7", "-7", "31", "32", "33", str(2**31 - 1), str(-(2**31))]
COMPARED = ["a < b", "a <= b", "a > b", "a >= b", "a == b", "a != b", "not a < b", "a < b and a != 0", "a < b or a == b", "a < b < 1"]
CHOSEN = ["min(a, b)", "max(a, b)", "min(a, b, 1)", "max(1, a, b)", "max(b, 1, a)", "a if a < b else b", "where(a < b, a, b)"]

# Expressions on f32 operands, by the type of their result.
OF_FLOATS = {
    "f32": [
        "a + b", "a - b", "a * b", "a / b", "-a", "abs(a)", "round(a)", "copysign(a, b)", "floor(a)", "ceil(a)", "trunc(a)",
        "exp(a)", "exp2(a)", "log(a)", "log2(a)", "sqrt(a)", "rsqrt(a)", "tanh(a)", "fma(a, b, a)", "bf16(a)", "f8e4m3fn(a)",
        *(text.replace("1", "1.0") for text in CHOSEN), *(f"f32({text.replace('0', '0.0').replace('1', '1.0')})" for text in COMPARED), "f32(bool_(a))",
    ],
    "i64": ["i64(i32(a))", "i64(a)", "i64(index(a))", "i64(i32(round(a)))"],
}  # fmt: skip
OF_INTEGERS = {
    "f32": ["f32(a)"],
    "i32": [
        "a + b", "a - b", "a * b", "a // b", "a % b", "a << b", "a >> b", "a & b", "a | b", "a ^ b", "-a", "abs(a)", "i32(bool_(a))",
        *CHOSEN, *(f"i32({text})" for text in COMPARED),
    ],
}  # fmt: skip

CASES = [
    (of, dtype, text) for of, texts in (("f32", OF_FLOATS), ("i32", OF_INTEGERS)) for dtype, some in texts.items() for text in some
]


def is_held(text: str, a: str, b: str) -> bool:
    """Returns whether `text` surely compiles for the constants a and b. A folded result of arithmetic must fit i32.
    Other expressions, divisions by zero and shifts by a negative number compile for all constants."""
    if text not in ("a + b", "a - b", "a * b", "a // b", "a << b", "-a", "abs(a)") or ("//" in text and b == "0"):
        return True
    if "<<" in text and int(b) < 0:
        return True
    return (int(b) < 64 or "<<" not in text) and -(2**31) <= eval(text, {"a": int(a), "b": int(b)}) < 2**31  # noqa: S307


@pytest.mark.parametrize(("of", "dtype", "text"), CASES, ids=[f"{of}-{text.replace(' ', '')}" for of, _, text in CASES])
def test_constants_are_computed_as_values_are(tmp_path: Path, of: str, dtype: str, text: str) -> None:
    operands = FLOATS if of == "f32" else INTEGERS
    pairs = [(a, b) for a in operands for b in (operands if "b" in text.replace("bool", "").replace("abs", "") else operands[:1])]
    pairs = [pair for pair in pairs if of == "f32" or is_held(text, *pair)]
    lines = [f"        y[{i}, t] = of({a}, {b})" for i, (a, b) in enumerate(pairs)]
    module = load(tmp_path, f"""
@mlafix.inline
def of(a, b):
    return {text}


@mlafix.kernel
def of_values(y: Out[{dtype}, "n"], a: In[{of}, "n"], b: In[{of}, "n"]):
    for t in grid("n"):
        y[t] = of(a[t], b[t])


@mlafix.kernel
def of_constants(y: Out[{dtype}, "c={len(pairs)} n"]):
    for t in grid("n"):
""" + "\n".join(lines) + "\n")
    made = {"f32": np.float32, "i32": np.int32, "i64": np.int64}
    a, b = (np.array([eval(value) for value in side], made[of]) for side in zip(*pairs))  # noqa: S307
    expected, got = np.empty(len(pairs), made[dtype]), np.empty((len(pairs), 1), made[dtype])
    module.of_values(expected, a, b)
    module.of_constants(got)
    got = got[:, 0]
    if text[:3] in ("exp", "log", "rsq", "tan"):
        np.testing.assert_allclose(got, expected, rtol=4e-6)
    else:
        different = [(*pair, x, y) for pair, x, y in zip(pairs, got, expected) if x != y and not (x != x and y != y)]
        assert not different, "operands, of constants, of values"
    if dtype == "f32":
        signs = [(*pair, x, y) for pair, x, y in zip(pairs, got, expected) if x == x and np.signbit(x) != np.signbit(y)]
        assert not signs, "operands, of constants, of values"


# Each entry has an expression, the text that the error underlines, and a part of the message.
ERRORS = [
    ("1 << 100000", "1 << 100000", "expected an integer of at most 64 bits, got an integer of 100001 bits"),
    ("i32(1 << 40000)", "1 << 40000", "expected an integer of at most 64 bits, got an integer of 40001 bits"),
    ("i32(x[1 << 40000])", "1 << 40000", "expected an index of at least 0 and below 2^63, got an integer of 40001 bits"),
    ("i32(f32(LONG))", "LONG", "expected a number that an f32 holds, got an integer of 20001 bits"),
    ("i32(bf16(LONG))", "LONG", "expected a number that an f32 holds, got an integer of 20001 bits"),
    ("i32(round(LONG))", "LONG", "expected a number that a float holds, got an integer of 20001 bits"),
    ("1 << 8 * 10**9", "10**9", "expected + - * / // % << >> & | or ^, got '10 ** 9'"),
    ("1 << 8000000000", "1 << 8000000000", "expected an integer of at most 1048576 bits, got one of 8000000001"),
    ("1 << (1 << 1000000)", "1 << (1 << 1000000)", "expected an integer of at most 1048576 bits, got one of an integer of 1000001 bits"),
    ("LONG << 10000000", "LONG << 10000000", "expected an integer of at most 1048576 bits, got one of 10020001"),
    ("(1 << 600000) * (1 << 600000)", "(1 << 600000) * (1 << 600000)", "expected an integer of at most 1048576 bits, got one of 1200002"),
    (f"{10**4000} ** 63", f"{10**4000} ** 63", "write exp2(63 * log2("),
    ("i32(x[t] * 1e39)", "1e39", "expected a number that an f32 holds, got 1e+39"),
    ("i32(not 5)", "not 5", "expected a bool after not, got 5; compare it with something"),
]


@pytest.mark.parametrize(("text", "place", "message"), ERRORS, ids=[text[:40] for text, _, _ in ERRORS])
def test_constants_that_nothing_holds_are_errors_at_their_place(tmp_path: Path, text: str, place: str, message: str) -> None:
    module = load(tmp_path, f"""
LONG = 1 << 20000

@mlafix.kernel
def k(y: Out[i32, "n"], x: In[f32, "n"]):
    for t in grid("n"):
        y[t] = {text}
""")
    with refused(message, place):
        _ = module.k.source


def test_an_integer_zero_beside_a_float_has_no_sign(tmp_path: Path) -> None:
    module = load(tmp_path, """
@mlafix.kernel
def k(y: Out[f32, "c=4 n"]):
    for t in grid("n"):
        y[0, t] = max(-0.0, 0)
        y[1, t] = max(0, -0.0)
        y[2, t] = min(-0.0, 0)
        y[3, t] = min(0, -0.0)
""")
    y = np.empty((4, 1), np.float32)
    module.k(y)
    assert np.signbit(y[:, 0]).tolist() == [False, False, True, True]


def test_constants_of_numpy_are_pythons_numbers(tmp_path: Path) -> None:
    """Numpy numbers in a tuple that is defined outside the kernel are treated as Python numbers. Regression: sums of
    them wrapped around, as in numpy's types."""
    module = load(tmp_path, """
MOST = (numpy.int32(2**31 - 1), numpy.float32(0.1))

@mlafix.kernel
def k(y: Out[i64, "n"], z: Out[f32, "n"]):
    for t in grid("n"):
        y[t] = MOST[0] + 1 if MOST[0] < 2 * MOST[0] else 0
        z[t] = -MOST[1]

@mlafix.kernel
def printed(y: Out[i64, "n"]):
    for t in grid("n"):
        print(1 << 20000)
        y[t] = 1
""")
    y, z = np.zeros(1, np.int64), np.zeros(1, np.float32)
    module.k(y, z)
    assert y[0] == 2**31 and z[0] == -np.float32(0.1)
    assert [text.text for text in module.printed.debug(y).printed] == ["an integer of 20001 bits"]
