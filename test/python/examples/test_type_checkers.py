"""Tests that type checkers and linters accept what users write: README.md, the cookbook, and a program that names every
public function.

mypy checks all of them, with --strict. ruff checks README.md and the cookbook, with the setting of
docs/language/tools.md. basedpyright, a pyright that needs no download, checks only the program, because pyright parses
the text of dims in annotations as types (docs/language/tools.md).
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mlafix
from mlafix import compat

pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[3]
COOKBOOK = sorted((ROOT / "examples/python").rglob("*.py"))
PACKAGE = Path(mlafix.__file__).parent.parent


def run(tool: str, *arguments: str, folder: Path) -> str:
    """Runs a tool on files. Returns its output, or "" if it accepts them."""
    if importlib.util.find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed")
    done = subprocess.run([sys.executable, "-m", tool, *arguments], cwd=folder, capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else ""


def blocks(page: str) -> list[str]:
    """Returns the Python code of a page."""
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)


def public() -> str:
    """Returns a program that imports every public name, calls every function, and uses every class as a type."""
    own = [f"mlafix.compat.{found.name}" for found in pkgutil.iter_modules(compat.__path__) if not found.name.startswith("_")]
    lines = ["from typing import Any", "anything: Any = None"]
    for name in ("mlafix", "mlafix.ops", "mlafix.dsl", "mlafix.distributed", "mlafix.audit", *own):
        module = importlib.import_module(name)
        here = [one for one, value in vars(module).items() if getattr(value, "__module__", "") == name and not one.startswith("_")]
        for one in getattr(module, "__all__", here):
            value, alias = getattr(module, one), f"{name}.{one}".replace(".", "_")
            lines.append(f"from {name} import {one} as {alias}")
            if inspect.isfunction(value):
                lines.append(f"{alias}(*anything, **anything)")
            elif inspect.isclass(value):
                lines.append(f"type_{alias}: type[Any] = {alias}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("user")
    (made / "readme.py").write_text("\n".join(blocks("README.md")))
    (made / "public.py").write_text(public())
    return made


def test_mypy_accepts_what_users_write(folder: Path) -> None:
    """mypy reports no error in what users write. Errors in mlafix's own files are not reported, as for an installed
    package."""
    (folder / "mypy.ini").write_text(f"[mypy]\nstrict = True\nfollow_imports = silent\nmypy_path = {PACKAGE}\n"
                                     "[mypy-torch.*]\nfollow_imports = skip\n")  # fmt: skip
    files = ["readme.py", "public.py", *map(str, COOKBOOK)]
    assert run("mypy", "--config-file", "mypy.ini", "--cache-dir", "cache", *files, folder=folder) == ""


def test_pyright_accepts_every_public_name(folder: Path) -> None:
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(PACKAGE)], "include": ["public.py"]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    assert run("basedpyright", "--pythonpath", sys.executable, folder=folder) == ""


def test_ruff_accepts_kernels_with_the_setting_of_the_page(folder: Path) -> None:
    (setting,) = re.findall(r"^```toml\n(.*?)^```$", (ROOT / "docs/language/tools.md").read_text(encoding="utf-8"), re.M | re.S)
    # ruff's default rules, without rules of style
    (folder / "pyproject.toml").write_text(f'{setting}select = ["E4", "E7", "E9", "F"]\n')
    (kernels,) = (block for block in blocks("README.md") if "@mlafix.kernel" in block)
    (folder / "kernels.py").write_text(kernels)
    files = ["kernels.py", *map(str, COOKBOOK)]
    assert run("ruff", "check", "--no-cache", "--config", "pyproject.toml", *files, folder=folder) == ""
