"""The stubs say what the extension modules hold: no more, no less."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import mlafix

PACKAGE = Path(mlafix.__file__).parent


def members(body: list[ast.stmt]) -> dict[str, list[ast.stmt]]:
    """Public names that a stub defines, with what is inside those that are classes."""
    found: dict[str, list[ast.stmt]] = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node.body if isinstance(node, ast.ClassDef) else []
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = []
    return {name: inner for name, inner in found.items() if not name.startswith("_")}


@pytest.mark.parametrize("name", ["_runtime", "_compiler"])
def test_stub_matches_module(name: str) -> None:
    module = pytest.importorskip(f"mlafix.{name}", reason="the package was built without the compiler")
    stub = members(ast.parse((PACKAGE / f"{name}.pyi").read_text()).body)
    assert set(stub) == {key for key in dir(module) if not key.startswith("_")}
    for key, body in stub.items():
        value = getattr(module, key)
        if isinstance(value, type):
            own = {member for member in vars(value) if not member.startswith("_")}
            assert own == set(members(body)), key


def test_everything_public_is_there() -> None:
    for name in mlafix.__all__:
        assert hasattr(mlafix, name), name
    assert importlib.import_module("mlafix.errors").Error is mlafix.Error
