"""Tests that errors of the language underline an expression and state what is allowed."""

from __future__ import annotations

import builtins
import sys
import textwrap
from pathlib import Path

import numpy
import pytest
from sources import HEADER, load, underlined

import mlafix
import mlafix.dsl

ARGUMENTS = """y: Out[f32, "n D"], x: In[f32, "n D"], r: In[f32, "n E"], c: In[i32, "n"], u: In[u8, "n"],
      lse: Out[f32, "n"], k: i32, f: f32, b: bool_, o: In[f32, "n D"] | None"""

# The body of a grid over t, the text that the error underlines, and a part of the message.
BODIES = [
    # errors about names
    ("y[t] = missing", "missing", "expected a name that is defined, got 'missing'"),
    ("y[t] = math.taw", "math.taw", "expected a name in module math, got 'taw'"),
    ("y[t] = x[t] * numpy", "numpy", "expected a scalar, a row or a state, got"),
    ("y[t] = [1.0]", "[1.0]", "got a list"),
    ("y[t] = f'{t}'", "f'{t}'", "got an f-string; print(f\"…\") alone takes one"),
    ("y[t] = (lambda: 1.0)()", "lambda: 1.0", "got a lambda; a function of its own, marked @mlafix.inline, may be called"),
    ("y[t] = [v for v in x]", "x", "expected range(…) or a tuple in a comprehension, got the tensor 'x'"),
    ("y[t] = [v for v in range(4) if v]", "[v for v in range(4) if v]", "or over a tuple, got [v for v in range(4) if v]"),
    ("s = [f for i in range(k)]", "range(k)", "expected a range of constants, 1 to 64 of them, in a comprehension, got range(k)"),
    ("s = [f for i in range(65)]", "range(65)", "expected a range of constants"),
    ("y[t] = (z := x[t])", "z := x[t]", "got an assignment inside an expression"),
    ("y[t] = 'text'", "'text'", "expected a scalar, a row or a state, got 'text'"),
    ("y[t] = numpy.exp(x[t])", "numpy.exp", "got the function 'exp'; mlafix.dsl has exp"),
    ("y[t] = numpy.maximum(x[t], 0.0)", "numpy.maximum", "got the function 'maximum'; write max(a, b)"),
    ("print(x)", "x", "expected a scalar, a row, a state, a number or a text to print, got the tensor 'x'"),
    ("print(k, sep='')", "''", "expected print(value, …), got an argument 'sep'"),
    ("print(f'{f:.3}')", "f", "expected {…} without a format, got"),
    ("y[t] = x[t].sum()", "x[t].sum", "got .sum of a row of f32 along D; write sum(…)"),
    ("y[t] = x[t].astype(f32)", "x[t].astype", "; f32(…), i32(…), i64(…) and index(…) convert"),
    ("y[t] = helper(x[t])", "helper", "expected a function marked @mlafix.inline, got 'helper'"),
    ("y[t] = x[t] + f32(D)", "D", """names with values here: b, c, f, k, lse, o, r, t, u, x, y; "D" is a dim: write shape("D")"""),
    ("for i in range(E):\n    pass", "E", """; "E" is a dim: write shape("E")"""),
    ("y[t] = maximum(x[t], 0.0)", "maximum", "; write max(a, b)"),
    ("math = math.pi", "math", "expected a name that has a value here, got 'math', which is assigned elsewhere in 'k'"),
    ("y[t] = halved(x[t])", "numpy", "expected a name that has a value here, got 'numpy', which is assigned elsewhere in 'halved'"),
    # errors about types
    ("y[t] = x[t] + r[t]", "x[t] + r[t]", "got a row of f32 along D and a row of f32 along E"),
    ("y[t] = x[t] + k", "x[t] + k", "expected scalars or rows of one type for '+', got a row of f32 along D and i32; f32(…) converts"),
    ("y[t] = x[t] * t", "x[t] * t", "got a row of f32 along D and index"),
    ("y[t] = x[t] * (k > 0)", "x[t] * (k > 0)", "got a row of f32 along D and bool; f32(…) makes 1 of true and 0 of false"),
    ("lse[t] = f32((t < 3) + t)", "(t < 3) + t", "got bool and index; index(…) makes 1 of true and 0 of false"),
    ("y[t] = r[t]", "r[t]", "expected a row along D to store to 'y', got a row of f32 along E"),
    ("y[t, 0] = x[t]", "x[t]", "expected f32, an element, to store to 'y', got a row of f32 along D"),
    ("y[t] = k", "k", "expected f32 to store to 'y' (f32), got i32; f32(…) converts"),
    ("lse[t] = k / 2", "k / 2", "expected floats for /, got i32; // divides integers"),
    ("lse[t] = f // 2.0", "f // 2.0", "expected integers for // and %, got f32; floor(a / b) rounds down"),
    ("lse[t] = 1.0 // 0.0", "1.0 // 0.0", "ZeroDivisionError"),
    ("lse[t] = f ** 2", "f ** 2", "expected + - * / // % << >> & | or ^, got 'f ** 2'; write f * f"),
    ("lse[t] = f ** 0.5", "f ** 0.5", "; write sqrt(f)"),
    ("lse[t] = exp(k)", "k", "expected f32 or a row of f32 for exp(…), got i32"),
    ("lse[t] = f32(k + 0.5)", "0.5", "expected an integer of type i32, got 0.5"),
    ("lse[t] = f32(k + 99999999999999999999)", "99999999999999999999", "at most 64 bits"),
    ("lse[t] = f32(k + 3000000000)", "3000000000", "in the range of i32, -2147483648 to 2147483647, got 3000000000; i64(…) is one of 64 bits, and i32(i64(…)) its low bits"),
    ("lse[t] = f32(u[t] + 1)", "u[t] + 1", "expected i32, i64, index or f32 for '+', got u8; i32(…) and f32(…) convert bytes"),
    ("lse[t] = -b", "-b", "expected a number after -, got bool; not … negates a bool"),
    ("lse[t] = f if f else 0.0", "f", "expected a bool for the condition, got f32"),
    ("lse[t] = f if f > 0 and k else 0.0", "k", "expected bools for and/or, got i32"),
    ("lse[t] = f if not k else 0.0", "not k", "expected a bool after not, got i32"),
    ("lse[t] = f if t in c else 0.0", "t in c", "expected == != < <= > or >="),
    ("lse[t] = f if f is None else 0.0", "f is None", "expected 'x is None' or 'x is not None' of a tensor x that is an argument, got 'f is None'; == and"),
    ("lse[t] = f if 'a' < f else 0.0", "'a'", "expected a scalar, a row or a state, got 'a'"),
    ("lse[t] = f if k else r[t]", "k", "expected a bool for the condition, got i32"),
    ("lse[t] = f if b else k", "f if b else k", "got f32 and i32"),
    # errors about tensors
    ("y[t] = x", "x", "expected a scalar, a row or a state, got the tensor 'x'; a row of it is x[t]"),
    ("y[t] = x[t:t + 1]", "t:t + 1", "expected an index, got the slice t:t + 1; a kernel describes one row, x[t]"),
    ("y[t] = x[t, 0, 0]", "x[t, 0, 0]", "expected 1 index for a row of 'x' or 2 for an element, got 3"),
    ("y[t] = x[f]", "f", "expected an integer (index, i32 or i64) as an index, got f32"),
    ("y[t] = x[-1]", "-1", "expected an index of at least 0, got -1"),
    ("y[t] = x[t, 0:4]", "x[t, 0:4]", "expected a row along D to store to 'y', got a row of f32 along 4"),
    ("y[t] = x[t, 0:4:2]", "2",
     'which has a step of 1, got 0:4:2; halves are x[t, 0] and x[t, 1] of a dim "(2 K)", even elements x[t, :, 0] of one "(K 2)"'),
    ("x[t] = y[t]", "x[t]", "expected a tensor declared with Out or InOut to store to, got 'x', which is In"),
    ("y[t] = x.dtype", "x.dtype", "expected .shape of a tensor, got .dtype"),
    ("lse[t] = f32(x.shape[2])", "2", "expected a constant index from -2 to 1, got 2"),
    ("t[0] = 1.0", "t[0]", "expected an element or a row of a tensor, as x[t, h], got index"),
    ("lse[t] = f32(present(x[t]))", "present(x[t])", "expected a tensor, got a row of f32 along D"),
    ("y[t] = ROWS", "ROWS", "expected a value, got the type In[f32, \"n D\"]; declare the tensor as an argument of the kernel"),
    ("x = 1.0", "x", "expected a name of its own, got 'x', which is an argument"),
    # errors about built-ins
    ("y[t] = load(x[t], 1.0)", "load(x[t], 1.0)", "expected load(tensor[…], where=…, otherwise=…) or load(tensor[…], into=…, first=…, each=…, where=…), got 2 arguments"),
    ("y[t] = load(x[t], when=b)", "b", "got an argument 'when'"),
    ("y[t] = load(x[t], otherwise=1.0)", "1.0", "expected a predicate (where=…) beside otherwise, got none"),
    ("y[t] = load(x[t], where=k)", "k", "expected a bool for the predicate, got i32"),
    ("store(y[t])", "store(y[t])", "got no 'value'"),
    ("y[t] = store(y[t], 1.0)", "store(y[t], 1.0)", "expected a value, got store(…), which returns nothing"),
    ("y[t] = load(*c)", "*c", "expected arguments one by one, got *c"),
    ("y[t] = merge(x[t])", "x[t]", "expected a state, got a row of f32 along D"),
    ("s = merge()", "merge()", "expected merge(state, …), got no state"),
    ("s = identity('Q')", "'Q'", "expected the name of a dim that rows lie along"),
    ("s = identity('D', base=10)", "10", 'expected "e", 2 or a Base for the base, got 10'),
    ("s = merge(identity('D'), identity('D', base=2))", "merge(identity('D'), identity('D', base=2))", "(N8)"),
    ("s = make_state(f, f)", "f", "expected a row of f32 for the payload, got f32"),
    ("s = load_state(x[t], c[t])", "c[t]", "expected an lse of f32, got 'c' of i32; declare it with f32"),
    ("store_state(identity('D'))", "store_state(identity('D'))", "expected a payload, an lse or both"),
    ("s = sink(x[t])", "x[t]", "expected f32 for the logit, got a row of f32 along D"),
    ("s = sink(f, 'Q')", "'Q'", "expected the name of a dim that rows lie along"),
    ("store_state(sink(f), y[t])", "sink(f)", "expected a state, got a sink without a dim, which merge(state, sink(logit)) takes"),
    ("s = merge(sink(f), sink(f))", "sink(f)", "expected a state, got a sink without a dim"),
    ("s = merge(sink(f, 'D'), sink(f))", "merge(sink(f, 'D'), sink(f))", "expected at most one state with a sink, which counts once, got 2"),
    ("s = merge(sink(f, 'D', base=2), identity('D'))", "merge(sink(f, 'D', base=2), identity('D'))", "(N8)"),
    ("s = load_state(x[t], lse[t], sink=k)", "k", "expected True or False for sink, got i32"),
    ("y[t] = sum(f)", "f", "expected a row to reduce, got f32"),
    ("y[t] = max()", "max()", 'expected max(row), max(row, along="K") or max(a, b, …), got no argument'),
    ("y[t] = float(f)", "float", "expected f32(…) to convert a value, got float(…)"),
    ("y[t] = i8(f)", "i8(f)", "expected f32, i32, i64, index, bool_ or a narrow float dtype to convert to, got i8"),
    ("y[t] = math.exp(f)", "math.exp", "got 'math.exp'; mlafix.dsl has exp"),
    ("y[t] = print(f)", "print(f)", "expected a value, got print(…), which returns nothing"),
    ("y[t] = grid(f)", "grid(f)", "only in the header of a for loop, got it in an expression"),
    ("lse[t] = f32(shape('Q'))", "'Q'", "expected the name of a dim of a tensor that is always given"),
    ("y[t] = endless(x[t])", "endless(x)", "expected inline functions at most 32 deep"),
    ("y[t] = twice(x[t], 1)", "twice(x[t], 1)", "expected a call twice(x): too many positional arguments"),
    # errors about statements
    ("while b:\n    pass", "while", "got 'while'; a loop is 'for … in range(…)', whose bounds may be values"),
    ("return", "return", "got 'return'; put what it would skip under an 'if'"),
    ("if b:\n    continue", "continue", "got 'continue'; put what it would skip under an 'if'"),
    ("for i in range(4):\n    break", "break", "got 'break'; put what it would skip under an 'if'"),
    ("import math", "import math", "got 'import'"),
    ("assert b", "assert b", "got 'assert'; assume(b) is a promise"),
    ("x[t]", "x[t]", "got a value that nothing uses"),
    ("z: f32 = 1.0", "z: f32 = 1.0", "expected an assignment without a type"),
    ("y[t] += x[t]", "y[t]", "expected a name before +=, got 'y[t]'; write y[t] = y[t] + x[t] and declare the tensor InOut"),
    ("a, z = x[t]", "a, z", "expected 2 values, got a row of f32 along D"),
    ("t.shape = 1", "t.shape", "expected a name or an element of a tensor before ="),
    ("for i in grid('n'):\n    pass", "grid('n')", "expected one grid, around everything else"),
    ("for i in 5:\n    pass", "5", "expected range(…) or a tuple to loop over, got 5"),
    ("for i in range(f):\n    pass", "f", "expected integers in range(…), got f32; i32(…) rounds towards zero"),
    ("for i in range(2.5):\n    pass", "2.5", "expected integers in range(…), got 2.5"),
    ("for i in range(i64(t), k):\n    pass", "range(i64(t), k)", "got i64 and i32"),
    ("for i in range(0, 4, k):\n    pass", "k", "expected a constant step of at least 1, got i32"),
    ("for i in range(4):\n    pass\nelse:\n    pass", "pass", "expected a loop without an else clause, got one with it"),
    ("for i, j in range(4):\n    pass", "i, j", "expected one name for the loop's index"),
    ("a = x[t]\nfor i in range(4):\n    a = f", "for", "expected 'a' to keep its type in the loop, got a row of f32 along D"),
    ("s = identity('D')\nfor i in range(k):\n    s = merge(s, sink(f))", "for", "expected a sink to be merged once, outside of the loop, got 's' without"),
    ("s = sink(f, 'D')\nfor i in range(k):\n    s = merge(s, sink(f))", "merge(s, sink(f))", "expected at most one state with a sink"),
    ("s = identity('D')\nfor i in range(2):\n    if b:\n        s = merge(s, sink(f))", "for", "expected a sink to be merged once"),
    ("s = [f, f]\ns[2] = f", "2", "expected a constant index from -2 to 1, got 2"),
    ("s = []\nlse[t] = s[0]", "0", "expected no index into an empty list, got 0"),
    ("s = [f, f]\ns[k] = f", "k", "expected a constant index from -2 to 1, got i32"),
    ("s = [f, f]\ny[t] = s", "s", "expected a scalar, a row or a state, got a tuple of 2"),
    ("s = [f, f]\nfor i in range(k):\n    s[i] = f", "range(k)", "since the body indexes a list by 'i', got range(k)"),
    ("s = [f, f]\nif b:\n    s = [f]", "if", "expected 's' to keep its length and types, a list of 2, got a list of 1"),
    ("s = [f, f]\nfor i in range(k):\n    s = f", "for", "expected 's' to keep its length and types, a list of 2, got f32"),
    ("s = [f, f]\nfor i in range(k):\n    s[1] = t", "for", "expected 's[1]' to keep its type in the loop, got f32 before it and index"),
    ("if b:\n    s = [f]\nelse:\n    s = [f]", "if", "for 's', which changes here, got a list of 1"),
    ("if b:\n    s = [f]\nlse[t] = s[0]", "s", "got 's', which only some branches of an 'if' assign"),
    ("for i in range(4):\n    a = f\ny[t] = a", "a", "got 'a', which only the body of a loop assigns"),
    ("for i in range(4):\n    pass\ny[t] = i", "i", "got 'i', which only the body of a loop assigns"),
    ("if f:\n    pass", "f", "expected a bool for the condition, got f32"),
    ("if b:\n    a = f\ny[t] = a", "a", "got 'a', which only some branches of an 'if' assign"),
    ("if b:\n    a = f\nelse:\n    a = k\ny[t] = a", "if", "expected one type for 'a' after the branch, got f32 if the"),
    ("if b:\n    a = i32(0)\nelse:\n    a = f\ny[t] = a", "if", "expected one type for 'a' after the branch, got i32 if the"),
    ("if b:\n    a = 0\nelse:\n    a = b\ny[t] = a", "if", "expected one type for 'a' after the branch, got i32 if the condition holds and bool"),
    ("a = x\nif b:\n    a = y", "if", "expected a scalar, a row or a state for 'a', which changes here"),
]  # fmt: skip


def error_of(folder: Path, text: str, before: str = "") -> mlafix.CompileError:
    module = load(folder, text, before + HEADER)
    with pytest.raises(mlafix.CompileError) as caught:
        _ = module.k.source
    assert caught.value.file == module.__file__
    lines = Path(caught.value.file).read_text().splitlines()
    assert str(caught.value).splitlines()[1] == lines[caught.value.line - 1].rstrip()
    return caught.value


@pytest.mark.parametrize(("body", "place", "message"), BODIES, ids=[body.replace("\n", " ") for body, _, _ in BODIES])
def test_body(tmp_path: Path, body: str, place: str, message: str) -> None:
    text = f"""
ROWS = In[f32, "n D"]

def helper(x):
    return x

@inline
def twice(x):
    return x + x

@inline
def halved(x):
    y = x * numpy.pi
    numpy = 0.5
    return y * numpy

@inline
def endless(x):
    return endless(x)

@kernel
def k({ARGUMENTS}):
    for t in grid("n"):
{textwrap.indent(body, " " * 8)}
"""
    error = error_of(tmp_path, text)
    assert message in error.message
    assert underlined(error.message) == place


# A whole kernel, the text that the error underlines, and a part of the message.
KERNELS = [
    ('def k(y):\n    for t in grid("n"): pass', "y", "expected a type for 'y'"),
    ("def k(y: 3):\n    for t in grid(4): pass", "3", "as the type of 'y', got 3"),
    ("def k(y: list[int]):\n    for t in grid(4): pass", "list[int]", "as the type of 'y'"),
    ("def k(y: f16):\n    for t in grid(4): pass", "f16", "as the type of 'y', got f16"),
    ("def k(y: In[f32]):\n    for t in grid(4): pass", "In[f32]", "expected a dtype and the dims"),
    ("def k(y: In[float, 'n']):\n    for t in grid(4): pass", "In[float, 'n']", "or a DType for the dtype"),
    ("def k(y: In[f32, 'n 4']):\n    for t in grid(4): pass", "In[f32, 'n 4']", 'got "4"'),
    ("def k(y: In[f32, 'n=0']):\n    for t in grid(4): pass", "In[f32, 'n=0']", "expected a size of at least 1"),
    ("def k(y: 'In[f32,'):\n    for t in grid(4): pass", "'In[f32,'", "expected a type, got text that does not parse"),
    ("def k(y: 'Nothing'):\n    for t in grid(4): pass", "'Nothing'", "expected names that are defined, got 'Nothing'"),
    ("def k(y: f32.at_most('n')):\n    for t in grid(4): pass", "f32.at_most('n')", "at_most: expected index, i64 or i32"),
    ("def k(y: index.at_most('n')):\n    for t in grid(4): pass", "def k", "'mlafix.at_most' to name a dim"),
    ("def k(*y):\n    for t in grid(4): pass", "y", "expected arguments with names, got 'y'"),
    ("def k(y: f32 = 1.0):\n    for t in grid(4): pass", "1.0", "expected arguments without defaults"),
    ("def k() -> f32:\n    for t in grid(4): pass", "f32", "expected no return type or None, got -> f32"),
    ("def k(x: In[f32, 'n']):\n    pass", "def k", "in a kernel, got no grid"),
    ("def k(x: In[f32, 'n']):\n    if 1: pass", "if", "expected a docstring, assignments of sizes and constants"),
    ("def k(x: In[f32, 'n']):\n    for t in x: pass", "x", "expected grid(extent, …) or segments("),
    ("def k(x: In[f32, 'n']):\n    for t in grid(): pass", "grid()", "expected grid(extent, …), got no extent"),
    ("def k(x: In[f32, 'n']):\n    for t in grid('m'): pass", "'m'", "expected the name of a dim"),
    ("def k(x: In[f32, 'n']):\n    for t in grid(n): pass", "n", """; "n" is a dim: write "n", as in grid("n")"""),
    ("def k(c: In[i32, 'b']):\n    for s, t in segments(c, b): pass", "b", """; "b" is a dim: write "b", as in grid("b")"""),
    ("def k(x: In[f32, 'n', 'D']):\n    pass", "In[f32, 'n', 'D']", """got (f32, 'n', 'D'); write In[f32, "n D"]"""),
    ("def k(x: InOut[T, 'n', 'D']):\n    pass", "InOut[T, 'n', 'D']", """got (T, 'n', 'D'); write InOut[T, "n D"]"""),
    ("def k(x: In[f32, n]):\n    pass", "In[f32, n]", """got 'n'; dims are quoted: In[f32, "n"]"""),
    ("def k(x: Out[T, n, D] | None):\n    pass", "Out[T, n, D] | None", """got 'n'; dims are quoted: Out[T, "n D"]"""),
    ("def k(x: Peers[In[f32, n]]):\n    pass", "Peers[In[f32, n]]", """got 'n'; dims are quoted: In[f32, "n"]"""),
    ("def k(x: 'In[f32, n D]'):\n    pass", "'In[f32, n D]'", """dims are quoted, as In[f32, "n D"]"""),
    ("def k(x: In[f23, 'n']):\n    pass", "In[f23, 'n']", "got 'f23'; did you mean f32?"),
    ("def k(x: In[bfloat16, 'n']):\n    pass", "In[bfloat16, 'n']", "got 'bfloat16'; write bf16"),
    ("def k(x: In[half, 'n']):\n    pass", "In[half, 'n']", "got 'half'\n"),
    ("def k(x: In[f32, 'n']):\n    for t in grid(0.5): pass", "0.5", "expected an integer"),
    ("def k(x: In[f32, 'n']):\n    for t in grid(-1): pass", "grid(-1)", "not negative"),
    ("def k(x: In[f32, 'n']):\n    for t, h in grid('n'): pass", "t, h", "expected 1 name for the indices"),
    ("def k(x: In[f32, 'n'] | None):\n    for t in grid(x.shape[0]): pass", "grid(x.shape[0])", "which is optional"),
    ("def k(x: In[f32, 'n']):\n    for t in grid('n'): pass\n    for t in grid('n'): pass", "for", "nothing after the grid"),
    ("def k(x: In[f32, 'n']):\n    for t in grid(x[0]): pass", "x[0]", "expected a grid around this"),
    ("def k(c: In[i32, 'b']):\n    for s, t in segments(c): pass", "segments(c)", "got 1 argument"),
    ("def k(c: In[i32, 'b']):\n    for s, t in segments(4, 'b'): pass", "4", "expected a tensor for cu_seqlens"),
    ("def k(c: In[f32, 'b']):\n    for s, t in segments(c, 'b'): pass", "c", "expected cu_seqlens to be declared In[i32, \"s\"], with one dim, got In[f32"),
    ("def k(c: In[i32, 'b']):\n    for s, t in segments(c, 'b', where=c): pass", "c", "expected a lambda or an inline"),
    ("def k(c: In[i32, 'b']):\n    for s, t in segments(c, 'b', where=lambda: 1): pass", "lambda: 1", "of one argument"),
    ("def k(c: In[i32, 'b']):\n    for s, t in segments(c, 'b', where=lambda s: c[s]): pass", "c[s]", "expected a bool"),
    ("async def k(c: In[i32, 'b']):\n    pass", "async def k", "expected a plain function, got async def k"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "place", "message"), KERNELS, ids=[text.replace("\n", " ") for text, _, _ in KERNELS])
def test_kernel(tmp_path: Path, text: str, place: str, message: str) -> None:
    # With this import, annotations are not evaluated before the kernel is read. Otherwise Python would raise at the
    # definition.
    error = error_of(tmp_path, f"\n@kernel\n{text}\n", "from __future__ import annotations\n")
    assert message in error.message
    assert underlined(error.message) == place


@pytest.mark.parametrize("name", sorted(set(mlafix.dsl.__all__) - {"kernel", "inline"} - set(dir(builtins))))
def test_words_that_are_not_imported(tmp_path: Path, name: str) -> None:
    header = "from __future__ import annotations\nfrom mlafix.dsl import kernel, inline, In as Reads, f32 as real, grid as rows\n"
    module = load(tmp_path, f"@kernel\ndef body(x: Reads[real, 'n']):\n    for t in rows('n'): {name}(x[t])\n", header)
    declared = load(tmp_path, f"@kernel\ndef body(x: {name}[real, 'n']):\n    for t in rows('n'): pass\n", header)
    for made in (module, declared):
        with pytest.raises(mlafix.CompileError, match=f"defined, got '{name}'.*; mlafix.dsl has it: from mlafix.dsl import {name}\n"):
            _ = made.body.source


def test_pythons_own_words_are_among_those_of_the_language(tmp_path: Path) -> None:
    names = sorted(set(mlafix.dsl.__all__) & set(dir(builtins)))
    assert names == ["abs", "all", "any", "len", "max", "min", "print", "range", "round", "sum"]
    assert all(getattr(mlafix.dsl, name) is getattr(builtins, name) for name in names)
    header = f"import mlafix\nfrom mlafix.dsl import In, Out, f32, grid, {', '.join(names)}\n"
    module = load(tmp_path, """
@mlafix.kernel
def k(y: Out[f32, "n"], x: In[f32, "n D"]):
    for t in grid("n"):
        total = 0.0
        for i in range(2):
            total = total + round(abs(min(x[t])) + max(x[t]) + sum(x[t]))
        print(total)
        y[t] = total + f32(len((1, 2, 3)))
outside = sum(range(4))
""", header)
    y = numpy.zeros(2, numpy.float32)
    module.k(y, numpy.float32([[1, -2], [3, 4]]))
    assert y.tolist() == [7, 31] and module.outside == 6


def test_declarations_are_shown_as_they_are_written() -> None:
    from mlafix.dsl import Base, DType, In, InOut, List, Out, Peers, f32, i32

    I = DType("I", default=i32)
    assert repr([Base("B"), I, In[I, "n _ two=2"], InOut[f32, "D"] | None, Peers[In[f32, "n D"]], Out[f32, "n"].fill(0),
                 List[In[f32, "n (G 8)"], 4], List[In[f32, "n"], 4, "k"]]) == (
        """[B, I, In[I, "n _ two=2"], InOut[f32, "D"] | None, Peers[In[f32, "n D"]], Out[f32, "n"].fill(0.0), """
        """List[In[f32, "n (G 8)"], 4], List[In[f32, "n"], 4, "k"]]""")


def test_columns_count_characters_and_tabs(tmp_path: Path) -> None:
    error = error_of(tmp_path, '\n@kernel\ndef k(x: In[f32, "n"]):\n\tfor t in grid("n"): größe = "ä" + missing\n')
    assert underlined(error.message) == "missing"
    assert error.message.splitlines()[2].startswith("\t")


def test_indented_definitions_keep_their_columns(tmp_path: Path) -> None:
    error = error_of(
        tmp_path,
        """
def outer():
    scale = "no number"
    @kernel
    def k(y: Out[f32, "n"]):
        for t in grid("n"):
            y[t] = scale
    return k
k = outer()
""",
    )
    assert underlined(error.message) == "scale"
    assert "got 'no number'" in error.message


def test_error_in_an_inline_function_is_shown_there(tmp_path: Path) -> None:
    text = """
@inline
def wrong(v):
    return v + "text"

@kernel
def k(y: Out[f32, "n"]):
    for t in grid("n"):
        y[t] = wrong(1.0 * f32(t))
"""
    message = error_of(tmp_path, text).message
    assert underlined(message) == '"text"'
    assert "note: 'wrong' is called here" in message
    assert message.splitlines()[-2:] == ["        y[t] = wrong(1.0 * f32(t))", " " * 15 + "^" + "~" * 18]


def test_error_of_a_later_pass_points_at_the_python_file(tmp_path: Path) -> None:
    module = load(
        tmp_path,
        """
@kernel
def k(y: Out[T, "n D"], x: In[T, "n D"]):
    for t in grid("n"):
        y[t] = x[t] * 2.0
""",
    )
    with pytest.raises(mlafix.CompileError) as caught:
        module.k.ptx("sm_90", D=8, T="i32")
    assert caught.value.file == module.__file__
    assert underlined(caught.value.message) == "def k"


def test_a_row_along_a_dim_that_no_call_binds(tmp_path: Path) -> None:
    source = """
@kernel
def k(y: Out[f32, "n d"], x: In[f32, "n d"]):
    for t in grid("n"):
        y[t] = x[t]
"""
    with pytest.raises(mlafix.CompileError, match="got no binding of it .calls bind names that begin with an upper-case letter"):
        load(tmp_path, source).k.ptx("sm_90")


def test_errors_show_the_lines_of_the_caller_alone(tmp_path: Path) -> None:
    """The traceback of an error ends at the caller's line. The code that reads and compiles the kernel is not shown."""
    module = load(tmp_path, """
@kernel
def k(y: Out[f32, "n D"]):
    for t in grid("n"):
        y[t] = missing
""")
    wrong = numpy.empty(3, numpy.float32)
    calls = [lambda: module.k(wrong[:2, None]), lambda: module.k(y=wrong), lambda: module.k.ptx("sm_90", D=8), lambda: module.k.bind(3), lambda: module.k.save("x", "sm_1", D=4)]
    for call in calls:
        with pytest.raises(mlafix.Error) as caught:
            call()
        names = [frame.name for frame in caught.traceback[1:]]
        assert names == ["<lambda>"] or (sys.version_info < (3, 11) and len(names) == 2)
        assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_a_function_typed_at_a_prompt_has_no_source() -> None:
    space: dict[str, object] = {}
    exec("from mlafix.dsl import *\n@kernel\ndef k(y: Out[f32, 'n']):\n    for t in grid('n'): y[t] = 1.0\n", space)
    with pytest.raises(mlafix.CompileError, match="expected kernel 'k' in a file, whose text can be read, got <string>"):
        _ = space["k"].source  # type: ignore[attr-defined]


def test_words_outside_a_kernel_are_argument_errors() -> None:
    from mlafix import dsl

    for call in (lambda: dsl.exp(1.0), lambda: dsl.f32(1), lambda: dsl.inline(test_body)(1)):
        with pytest.raises(mlafix.ArgumentError, match="expected to be called inside a kernel, got a call outside"):
            call()
    for wrong in (lambda: dsl.kernel(3), lambda: dsl.inline(3), lambda: dsl.DType("lower"), lambda: dsl.Base("B", 10)):
        with pytest.raises(mlafix.ArgumentError, match="expected"):
            wrong()


# The body of a grid over t in n, the text that the error underlines, and a part of the message. Each body is wrong for
# some launch.
REFUTED = [
    ("if c[t] > 0:\n            y[t] = 1.0", "y[t]",
     "written, got no store to y[0]: for example n = 1, what is read from c is -2147483648; store there, too, or say what 'y' holds elsewhere: "
     ".fill(0) gives it a value, InOut[…] keeps what it held\n"),
    ("y[t // 2] = f32(c[t])\n        y[t] = 0.0", "y[t // 2]", "expected one row to write each element of 'y'"),
]


@pytest.mark.parametrize(("body", "text", "message"), REFUTED)
def test_a_kernel_that_is_shown_to_go_wrong_is_refused_at_the_store(tmp_path: Path, body: str, text: str, message: str) -> None:
    source = f"""
@mlafix.kernel
def k(y: Out[f32, "n"], c: In[i32, "n"]):
    for t in grid("n"):
        {body}
"""
    made = load(tmp_path, source).k
    with pytest.raises(mlafix.CompileError) as caught:
        made.ptx("sm_90")
    assert message in str(caught.value) and ": for example n = " in str(caught.value)
    assert underlined(str(caught.value)) == text
