"""Tests that the code of docs/PythonTutorial.md, docs/Python.md and docs/language runs and prints what these pages
state, and that the pages list all built-ins."""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib.util
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sources import load

import mlafix
from mlafix.dsl import built_ins, functions, types
from mlafix.dsl.built_ins import BuiltIn

ROOT = Path(__file__).resolve().parents[3]
DOCS, README = ROOT / "docs", ROOT / "README.md"


def blocks_of(page: str, kind: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def blocks(page: str, kind: str) -> str:
    return "\n".join(blocks_of(page, kind))


REFERENCE = ["Python.md", *(f"language/{path.name}" for path in sorted((DOCS / "language").glob("*.md")))]


def kernels_of_the_reference() -> dict[str, str]:
    """Returns each kernel of docs/Python.md and docs/language by page and name. Its value is the page's code up to the
    end of the kernel's block, since later blocks redefine names."""
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
    """Returns the cells of the index in Python.md by row: function, dtypes, shapes, result, example."""
    table = (DOCS / "Python.md").read_text(encoding="utf-8").partition("| function | dtypes |")[2].partition("\n\n")[0]
    return [re.split(r" \| ?|\| ", line.replace(r"\|", "/").strip())[1:6] for line in table.splitlines()[2:]]


def test_examples_of_the_index_give_what_it_says(tmp_path: Path) -> None:
    """The examples of the index give the results that it states. All are in one kernel, with the page's names and a row
    of outputs for each example."""
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
    """The README's first call and first kernel, in one file, print what the README states beside each line."""
    text = "".join(re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.M | re.S))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        load(tmp_path, text, header="")
    said = re.findall(r"^print\(.*?  # (.*)$", text, re.M)
    lines = printed.getvalue().splitlines()
    assert len(said) == 2 and len(lines) == 2
    assert all(comment.split(":")[0] == line for comment, line in zip(said, lines)), lines


def beside_triton() -> tuple[str, str]:
    """Returns the Triton kernel and ours from docs/ComingFromTriton.md, without the calls."""
    triton, ours = re.findall(r"^```python\n(.*?)^```$", (DOCS / "ComingFromTriton.md").read_text(encoding="utf-8"), re.M | re.S)
    return triton.partition("\nmerge[(")[0] + "\n", ours.partition("\nmerge_two(")[0] + "\n"


# The payloads and lses of two states for each of eight rows. Some states are live, some are empty (lse of -inf or inf),
# and some have NaN or infinities.
PARTS = """
import numpy as np

nan, inf = np.nan, np.inf
a = np.array([[0, 1, 2], [nan, inf, 5], [1, 2, 3], [1, 2, 3], [inf, nan, 3], [inf, 2, 3], [4, -0.0, 6], [4, 5, 6]], np.float32)
b = np.array([[2, 3, 4], [2, -0.0, 4], [nan, 3, 4], [2, 3, 4], [2, 3, 4], [2, 3, 4], [nan, 3, 4], [2, 3, 4]], np.float32)
a_lse = np.array([0, -inf, -inf, nan, -200, 0, 1, inf], np.float32)
b_lse = np.array([0, 0, -inf, 0, 0, 3, inf, 0.5], np.float32)
"""

IN_TRITON = """
import sys
import torch
import triton
from triton_kernel import merge

rows = [torch.tensor(x).reshape(-1, 1, 3).contiguous() for x in (a, a, b)]
lses = [torch.tensor(x).reshape(-1, 1).contiguous() for x in (a_lse, a_lse, b_lse)]
out, out_lse = torch.full_like(rows[0], 7.0), torch.full_like(lses[0], 7.0)
merge[(len(a),)](out, out_lse, rows[1], lses[1], rows[2], lses[2], 1, 3, triton.next_power_of_2(3), num_warps=1)
np.save(sys.argv[1], np.concatenate([out[:, 0].numpy(), out_lse.numpy()], axis=1))
"""


def test_kernel_beside_triton_gives_what_triton_gives(tmp_path: Path) -> None:
    """The page's Triton kernel, run by Triton's interpreter on the CPU, gives the same values as ours, even for empty
    states and NaN."""
    for module in ("torch", "triton"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}")
    triton, ours = beside_triton()
    (tmp_path / "triton_kernel.py").write_text(f"import triton\nimport triton.language as tl\n{triton}")
    (tmp_path / "run.py").write_text(PARTS + IN_TRITON)
    environment = {**os.environ, "TRITON_INTERPRET": "1", "TRITON_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, str(tmp_path / "run.py"), str(tmp_path / "triton.npy")], check=True, env=environment)
    theirs = np.load(tmp_path / "triton.npy")

    parts: dict[str, Any] = {}
    exec(PARTS, parts)
    rows = [parts[name].reshape(-1, 1, 3) for name in ("a", "b")]
    lses = [parts[name].reshape(-1, 1) for name in ("a_lse", "b_lse")]
    out, out_lse = np.full_like(rows[0], 7), np.full_like(lses[0], 7)
    load(tmp_path, ours, header="").merge_two(out, out_lse, rows[0], lses[0], rows[1], lses[1])
    np.testing.assert_allclose(np.concatenate([out[:, 0], out_lse], axis=1), theirs, rtol=1e-6, equal_nan=True)
    # The page mentions this difference: our kernel copies -0.0.
    assert np.signbit(out[1, 0, 1]) and not np.signbit(theirs[1, 1])


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
    """The package exports every name that a module of the language defines, since kernels could not use it
    otherwise."""
    defined = {name for name, value in vars(built_ins).items() if isinstance(value, BuiltIn)}
    defined |= {name for name, value in vars(types).items() if isinstance(value, types.ScalarType)}
    assert defined | functions.UNARY <= set(mlafix.dsl.__all__)


def test_dtypes_are_those_of_the_table() -> None:
    """types.py and two pages list the same dtypes as include/mlafix/DTypes.def."""
    table = re.findall(r'^MLAFIX_DTYPE\(\w+, \d+, "(\w+)"', (ROOT / "include/mlafix/DTypes.def").read_text(), re.MULTILINE)
    assert table and sorted(types.DTYPES) == sorted(table)
    words = [repr(getattr(types, {"bool": "bool_"}.get(name, name))) for name in table]
    # Join the lines, since a list may be broken over several lines of the page.
    page = " ".join((DOCS / "UnitFormat.md").read_text(encoding="utf-8").split())
    assert f"`{' '.join(table)}`" in page
    assert f"`{' '.join(words)}`" in " ".join((DOCS / "language" / "arguments.md").read_text(encoding="utf-8").split())
