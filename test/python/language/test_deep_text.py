"""Tests that deeply nested text, as in generated code (triton#646), either compiles or is an error that shows its
line."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sources import load

import mlafix

HEAD = '@kernel\ndef deep(y: Out[f32, "n D"], x: In[f32, "n D"], c: index):\n    for t in grid("n"):\n'
BODY = " " * 8


def chain(lines: list[str]) -> str:
    return "".join(f"{BODY}{line}\n" for line in lines)


# For each construct, two functions of the number of levels: the text of the kernel's body, and the expected result for
# c = 2 and x = 1.
TEXTS = {
    "a sum": (lambda n: chain(["y[t] = " + " + ".join(["x[t]"] * n)]), lambda n: n),
    "a sum of constants": (lambda n: chain(["y[t] = x[t] * (" + " + ".join(["1"] * n) + ")"]), lambda n: n),
    "mixed operators": (lambda n: chain(["y[t] = x[t]" + " + 1.0 - 0.5 * 2.0" * n]), lambda n: 1),
    "a sum from the right": (lambda n: chain(["y[t] = " + "x[t] + (" * n + "x[t]" + ")" * n]), lambda n: n + 1),
    "signs": (lambda n: chain(["y[t] = " + "- " * (2 * (n // 2)) + "x[t]"]), lambda n: 1),
    "negations": (lambda n: chain(["y[t] = x[t] if " + "not " * (2 * (n // 2)) + "c == 2 else 0.0"]), lambda n: 1),
    "and": (lambda n: chain(["y[t] = x[t] if " + " and ".join(f"c != {i + 3}" for i in range(n)) + " else 0.0"]), lambda n: 1),
    "a comparison": (lambda n: chain(["y[t] = x[t] if " + " < ".join(["0", *(f"c + {i}" for i in range(n))]) + " else 0.0"]), lambda n: 1),
    "if-else": (lambda n: chain(["v = " + " ".join(f"{i}.0 if c == {i} else" for i in range(n)) + " -1.0", "y[t] = x[t] * v"]), lambda n: 2),
    "calls": (lambda n: chain(["y[t] = " + "max(" * n + "x[t]" + ", 0.5)" * n]), lambda n: 1),
    "elif": (lambda n: chain(["v = 0.0", "if c == 0:", "    v = 0.0", *(line for i in range(1, n) for line in (f"elif c == {i}:", f"    v = {i}.0")),
                              "y[t] = x[t] * v"]), lambda n: 2),  # fmt: skip
    "loops": (lambda n: chain(["s = x[t]", *("    " * i + f"for i{i} in range(c - 1):" for i in range(n)), "    " * n + "s = s + 1.0", "y[t] = s"]), lambda n: 2),
    "statements": (lambda n: chain(["s = x[t]", *["s = s + 1.0"] * n, "y[t] = s"]), lambda n: n + 1),
}  # fmt: skip
# The number of levels up to which a construct must compile. It is 80 for constructs that are not listed. Python itself
# accepts at most 20 nested loops and 90 parentheses.
COMPILES = {"a sum": 800, "a sum of constants": 800, "mixed operators": 300, "and": 200, "a comparison": 200, "statements": 500, "elif": 150, "loops": 18}


@pytest.mark.parametrize("levels", [10, 60, 200, 800])
@pytest.mark.parametrize("what", TEXTS)
def test_deep_text_compiles_or_is_an_error_at_its_line(what: str, levels: int, tmp_path: Path) -> None:
    text, result = TEXTS[what]
    try:
        deep = load(tmp_path, HEAD + text(levels)).deep
    except (SyntaxError, RecursionError, MemoryError):
        pytest.skip("Python itself refuses it")
    y, x = np.empty((2, 8), np.float32), np.ones((2, 8), np.float32)
    try:
        deep(y, x, 2)
    except mlafix.CompileError as error:
        assert levels > COMPILES.get(what, 80), error
        assert re.search("expected .* (less deeply|at most 200 deep)", str(error)) and error.file.endswith(".py")
        assert error.line >= len((HEAD + "\n").splitlines()), error
    else:
        assert (y == result(levels)).all()


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python's parser no longer obeys the recursion limit")
def test_a_text_that_is_too_deep_to_be_read_is_an_error_at_the_function(tmp_path: Path) -> None:
    """mlafix may have less stack left than Python had when it read a text, so the text may now be too deep. The error
    then shows the line of the function."""
    deep = load(tmp_path, HEAD + TEXTS["if-else"][0](300)).deep
    x = np.ones((2, 8), np.float32)
    before, frame, used = sys.getrecursionlimit(), sys._getframe(), 0
    while frame:
        frame, used = frame.f_back, used + 1  # type: ignore[assignment]
    sys.setrecursionlimit(used + 60)
    try:
        with pytest.raises(mlafix.CompileError, match="less deeply") as error:
            deep.digest  # noqa: B018
    finally:
        sys.setrecursionlimit(before)
    assert error.value.line > 0
    y = np.empty_like(x)
    deep(y, x, 2)
    assert (y == 2).all()
