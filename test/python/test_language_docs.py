"""docs/PythonTutorial.md and docs/Python.md: their code runs and prints what they say, and their built-ins are all there are."""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import re
from pathlib import Path

import numpy as np
import pytest
from sources import load

import mlafix
from mlafix.dsl import built_ins, functions, types
from mlafix.dsl.built_ins import BuiltIn

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

ROOT = Path(__file__).resolve().parents[2]
DOCS, README = ROOT / "docs", ROOT / "README.md"


def blocks_of(page: str, kind: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def blocks(page: str, kind: str) -> str:
    return "\n".join(blocks_of(page, kind))


def kernels_of_the_reference() -> dict[str, str]:
    """Each kernel of docs/Python.md, and the page's code up to the end of its block: later ones give names other meanings."""
    found: dict[str, str] = {}
    text = ""
    for block in blocks_of("Python.md", "python"):
        text += block + "\n"
        found |= dict.fromkeys(re.findall(r"^@mlafix\.kernel\ndef (\w+)", block, re.MULTILINE), text)
    return found


def test_tutorial_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        load(tmp_path, blocks("PythonTutorial.md", "python"), header="")
    want = blocks("PythonTutorial.md", "text").replace("\n\n", "\n")
    assert doctest.OutputChecker().check_output(want, printed.getvalue(), doctest.ELLIPSIS), printed.getvalue()


@pytest.mark.parametrize("name, text", kernels_of_the_reference().items(), ids=list(kernels_of_the_reference()))
def test_kernels_of_the_reference_compile(name: str, text: str, tmp_path: Path) -> None:
    kernel = getattr(load(tmp_path, text, header=""), name)
    assert f"mlafix.kernel @{name}(" in kernel.ir()


def test_all_code_of_the_reference_runs(tmp_path: Path) -> None:
    text = blocks("Python.md", "python")
    assert load(tmp_path, text, header="").clamp.name == "clamp"
    assert len(kernels_of_the_reference()) == text.count("@mlafix.kernel\n")


def test_the_readme_prints_what_it_says(tmp_path: Path) -> None:
    """First call and first kernel, one after the other in one file: each line that prints says what."""
    text = "".join(re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.M | re.S))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        load(tmp_path, text, header="")
    said = re.findall(r"^print\(.*?  # (.*)$", text, re.M)
    lines = printed.getvalue().splitlines()
    assert len(said) == 2 and len(lines) == 2
    assert all(comment.split(":")[0] == line for comment, line in zip(said, lines)), lines


def test_kernel_beside_triton_merges(tmp_path: Path) -> None:
    """The page shows one kernel twice: ours runs, and the other is Python that can be read."""
    triton, ours = re.findall(r"^```python\n(.*?)^```$", (DOCS / "ComingFromTriton.md").read_text(encoding="utf-8"), re.M | re.S)
    assert [node.name for node in ast.parse(triton).body if isinstance(node, ast.FunctionDef)] == ["merge"]
    definition, _, call = ours.partition("\nmerge_two(")
    kernel = load(tmp_path, definition + "\n", header="").merge_two
    rows = [np.full((2, 1, 8), x, np.float32) for x in (0, 1, 3)]
    lses = [np.zeros((2, 1), np.float32) for _ in range(3)]
    kernel(rows[0], lses[0], rows[1], lses[1], rows[2], lses[2])
    assert call and (rows[0] == 2).all()


def test_reference_has_every_built_in() -> None:
    text = (DOCS / "Python.md").read_text(encoding="utf-8")
    names = {name for name in mlafix.dsl.__all__ if isinstance(getattr(mlafix.dsl, name), BuiltIn)}
    missing = {name for name in [*names, *dir(mlafix.Kernel)] if name[0] != "_" and not re.search(rf"\b{name}\b", text)}
    assert missing <= {"variants"}


def test_everything_of_the_language_can_be_imported() -> None:
    """No kernel can use a name that a module defines and the package does not export."""
    defined = {name for name, value in vars(built_ins).items() if isinstance(value, BuiltIn)}
    defined |= {name for name, value in vars(types).items() if isinstance(value, types.ScalarType)}
    assert defined | functions.UNARY <= set(mlafix.dsl.__all__)


def test_dtypes_are_those_of_the_table() -> None:
    """include/mlafix/DTypes.def is the list; types.py repeats it, and two pages do."""
    table = re.findall(r'^MLAFIX_DTYPE\(\w+, \d+, "(\w+)"', (ROOT / "include/mlafix/DTypes.def").read_text(), re.MULTILINE)
    assert table and sorted(types.DTYPES) == sorted(table)
    words = [repr(getattr(types, {"bool": "bool_"}.get(name, name))) for name in table]
    page = " ".join((DOCS / "UnitFormat.md").read_text(encoding="utf-8").split())  # wherever its lines end
    assert f"`{' '.join(table)}`" in page
    assert f"`{' '.join(words)}`" in (DOCS / "Python.md").read_text(encoding="utf-8")
