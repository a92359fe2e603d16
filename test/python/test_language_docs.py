"""docs/PythonTutorial.md, docs/Python.md and docs/language: their code runs and prints what they say, and their built-ins are all there are."""

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


REFERENCE = ["Python.md", *(f"language/{path.name}" for path in sorted((DOCS / "language").glob("*.md")))]


def kernels_of_the_reference() -> dict[str, str]:
    """Each kernel of docs/Python.md and docs/language, by page and name, and the page's code up to the end of its block: later ones
    give names other meanings."""
    found: dict[str, str] = {}
    for page in REFERENCE:
        text = ""
        for block in blocks_of(page, "python"):
            text += block + "\n"
            found |= {f"{page}:{name}": text for name in re.findall(r"^@mlafix\.kernel\ndef (\w+)", block, re.MULTILINE)}
    return found


def test_tutorial_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        load(tmp_path, blocks("PythonTutorial.md", "python"), header="")
    want = blocks("PythonTutorial.md", "text").replace("\n\n", "\n")
    assert doctest.OutputChecker().check_output(want, printed.getvalue(), doctest.ELLIPSIS), printed.getvalue()


@pytest.mark.parametrize("place, text", kernels_of_the_reference().items(), ids=list(kernels_of_the_reference()))
def test_kernels_of_the_reference_compile(place: str, text: str, tmp_path: Path) -> None:
    name = place.partition(":")[2]
    kernel = getattr(load(tmp_path, text, header=""), name)
    assert f"mlafix.kernel @{name}(" in kernel.ir()


@pytest.mark.parametrize("page", REFERENCE)
def test_all_code_of_the_reference_runs(page: str, tmp_path: Path) -> None:
    text = blocks(page, "python")
    load(tmp_path, text, header="")
    assert sum(place.startswith(f"{page}:") for place in kernels_of_the_reference()) == text.count("@mlafix.kernel\n")


def index_of_functions() -> list[list[str]]:
    """The cells of the index in Python.md: function, dtypes, shapes, what it gives, example."""
    table = (DOCS / "Python.md").read_text(encoding="utf-8").partition("| function | dtypes |")[2].partition("\n\n")[0]
    return [re.split(r" \| ?|\| ", line.replace(r"\|", "/").strip())[1:6] for line in table.splitlines()[2:]]


def test_examples_of_the_index_give_what_it_says(tmp_path: Path) -> None:
    """All in one kernel, as the page says that their names are: a row of outputs for each example."""
    examples = [re.fullmatch(r"`(.*)` = `(.*)`", row[4]) for row in index_of_functions()]
    found = [(example[1], example[2]) for example in examples if example]
    assert len(found) > 25
    body = "".join(f"        out[{i}, t] = f32({code})\n" for i, (code, _) in enumerate(found))
    text = f"""
import mlafix
from mlafix.dsl import *


@mlafix.kernel
def examples(out: InOut[f32, "m={len(found)} n D"], x_of: In[f32, "n D"], y_of: In[f32, "n D"], z_of: In[f32, "n D"], lse_at: In[f32, "n"]):
    for t in grid("n"):
        x, y, z = x_of[t], y_of[t], z_of[t]
        s, e = make_state(x, 0.0), make_state(y, 0.0)
{body}"""
    x, y, z = ([[1, 2, 3, 4]], [[4, 3, 2, 1]], [[-1.5, -0.5, 0.5, 2.5]])
    given = [np.array(row, np.float32) for row in (x, y, z)]
    out = np.full((len(found), 1, 4), np.nan, np.float32)
    load(tmp_path, text, header="").examples(out, *given, np.zeros(1, np.float32))
    for (code, said), row in zip(found, out[:, 0]):
        want = np.array(ast.literal_eval(said) if said != "-inf" else -np.inf, np.float32)
        np.testing.assert_allclose(row, np.broadcast_to(want, 4), rtol=1e-6, err_msg=code)


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


def test_the_index_has_every_built_in_with_an_example() -> None:
    rows = index_of_functions()
    names = {name for name in mlafix.dsl.__all__ if isinstance(getattr(mlafix.dsl, name), BuiltIn)}
    listed = {name for row in rows for name in re.findall(r"`(\w+)\(", row[0])}
    assert names - listed == set()
    for row in rows:
        assert re.fullmatch(r"`.*` = `.*`|\[\w+\]\(.*\)", row[4]), f"expected an example of {row[0]}, got {row[4]!r}"


def test_the_reference_has_every_method() -> None:
    text = (DOCS / "language" / "kernels.md").read_text(encoding="utf-8")
    assert {name for name in dir(mlafix.Kernel) if name[0] != "_" and f".{name}" not in text} == {"variants"}


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
    assert f"`{' '.join(words)}`" in " ".join((DOCS / "language" / "arguments.md").read_text(encoding="utf-8").split())
