"""Tests that a kernel runs the text that Python imported, or raises an error, even if its file changes between the
import and the kernel's first call."""

from __future__ import annotations

import importlib.util
import os
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlafix
from mlafix.dsl import source

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

TEXT = """
from mlafix.dsl import DType, In, Out, f32, grid, inline, kernel
T = DType("T")

def plain(x): return x * 2.0

@inline
def twice(x):
    return x * 2.0

@kernel
def scaled(out: Out[T, "n D"], x: In[T, "n D"]):
    for t in grid("n"):
        out[t] = twice(f32(x[t]))

@kernel
def negated(out: Out[T, "n D"], x: In[T, "n D"]):
    for t in grid("n"):
        out[t] = -f32(x[t])

@kernel
def wrong(out: Out[T, "n D"], x: In[T, "n D"]):
    for t in grid("n"):
        out[t] = "text"

def made(factor):
    @kernel
    def local(out: Out[T, "n D"], x: In[T, "n D"]):
        for t in grid("n"):
            out[t] = f32(x[t]) * factor + 1.0
    return local
"""
CHANGES: dict[str, Callable[[str], str]] = {
    "a constant": lambda text: text.replace("2.0", "3.0").replace("+ 1.0", "+ 9.0"),
    "a line above": lambda text: "import math\n" + text,
    "several lines above": lambda text: "# a\n" * 6 + text,
    "kernels exchanged": lambda text: text.replace("scaled", "other").replace("negated", "scaled").replace("other", "negated"),
    "removed": lambda text: "import os\n",
    "empty": lambda text: "",
    "no Python": lambda text: "def ((\n" * 60,
    "gone": lambda text: "",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / f"kernels_{os.getpid()}_{tmp_path.name}.py"
    path.write_text(TEXT)
    return path


def imported(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def change(path: Path, how: str) -> None:
    path.write_text(CHANGES[how](TEXT))
    if how == "gone":
        path.unlink()


def call(kernel: Any) -> float:
    x = np.ones((2, 4), np.float32)
    out = np.zeros_like(x)
    kernel(out, x)
    return float(out[0, 0])


@pytest.mark.parametrize("how", CHANGES)
def test_what_was_imported_runs(file: Path, how: str) -> None:
    module = imported(file)
    change(file, how)
    assert call(module.scaled) == module.plain(1.0) == 2
    assert call(module.negated) == -1


@pytest.mark.parametrize("how", CHANGES)
def test_a_kernel_that_is_made_later_runs_or_is_an_error(file: Path, how: str) -> None:
    """The text of a kernel is read when the kernel is made. If the file has changed by then, the kernel either runs the
    imported text or raises a CompileError."""
    module = imported(file)
    assert call(module.made(3.0)) == 4
    change(file, how)
    try:
        assert call(module.made(3.0)) == 4
    except mlafix.CompileError as error:
        assert error.file == str(file) and "expected" in str(error)


def test_a_kernel_that_is_made_later_of_another_text_says_so(file: Path) -> None:
    module = imported(file)
    change(file, "a constant")
    with pytest.raises(mlafix.CompileError, match=f"expected the text of 'local' as it was when Python read it, got another: {file} has changed"):
        call(module.made(3.0))


@pytest.mark.parametrize("how", ["a constant", "several lines above", "empty"])
def test_errors_show_the_line_that_was_imported(file: Path, how: str) -> None:
    module = imported(file)
    expected = "".join(TEXT.splitlines(keepends=True)[23]).rstrip()
    assert "text" in expected
    change(file, how)
    with pytest.raises(mlafix.CompileError, match="expected a scalar|expected a row") as error:
        call(module.wrong)
    assert error.value.line == 24 and expected in str(error.value).splitlines()


def test_an_import_after_a_change_is_of_the_new_text(file: Path) -> None:
    first = imported(file)
    change(file, "a constant")
    os.utime(file, (1, 1))  # prevents the use of the old text's bytecode
    second = imported(file)
    assert (call(first.scaled), call(second.scaled), call(second.negated)) == (2, 3, -1)


def test_an_instrumented_function_of_an_older_file_is_read_as_it_is_written(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools for coverage and type checks change a function's code. If the file is older than the process, its text is
    still read."""
    monkeypatch.setattr(source, "_began", file.stat().st_ctime + 10)
    module = imported(file)
    function = types.FunctionType((lambda out, x: None).__code__, module.__dict__, "scaled")
    function.__code__ = function.__code__.replace(
        co_filename=str(file), co_firstlineno=module.scaled.function.__code__.co_firstlineno, co_name="scaled"
    )
    assert source.Source(function).name == "scaled"
    monkeypatch.setattr(source, "_began", file.stat().st_ctime - 10)
    with pytest.raises(mlafix.CompileError, match="as it was when Python read it"):
        source.Source(function)


DECORATORS = {
    "plain": "@mlafix.kernel\n",
    "in parentheses over lines (PEP 614)": "@(\n    mlafix.kernel\n)\n",
    "a call over lines": "@mlafix.kernel(\n    allow={\n'bounds'}\n)\n",
    "behind a form feed": "\f@mlafix.kernel\n",
    "behind a form feed and blanks": "    \f@mlafix.kernel\n",
    "on a continued line": "@\\\nmlafix.kernel\n",
    "beside another, with comments between": "@same\n# one\n\n@(\n# two\n  mlafix.kernel  # three\n)\n# four\n",
}


@pytest.mark.parametrize("decorator", DECORATORS)
def test_decorators_stand_as_python_lets_them(decorator: str, tmp_path: Path) -> None:
    """A function begins at its first decorator, not at a parenthesis or "@" before that (dill#221, cpython#91029)."""
    definition = 'def twice(y: Out[f32, "n D"], x: In[f32, "n D"]):\n    for t in grid("n"):\n        y[t] = x[t] * 2.0\n'
    path = tmp_path / f"decorated_{os.getpid()}_{tmp_path.name}.py"
    head = "import mlafix\nfrom mlafix.dsl import In, Out, f32, grid\nsame = lambda function: function\n"
    path.write_text(f"{head}{DECORATORS[decorator]}{definition}wrong = 1\n{DECORATORS[decorator]}{definition.replace('2.0', 'nothing')}")
    module = imported(path)
    x = np.ones((2, 4), np.float32)
    with pytest.raises(mlafix.CompileError, match="expected a name that is defined, got 'nothing'") as error:
        module.twice(np.empty_like(x), x)
    lines = path.read_text().splitlines(keepends=False) if "form feed" not in decorator else path.read_text().split("\n")
    assert "nothing" in lines[error.value.line - 1]
    path.write_text(f"{head}{DECORATORS[decorator]}{definition}")
    y = np.empty_like(x)
    imported(path).twice(y, x)
    assert (y == 2).all()
