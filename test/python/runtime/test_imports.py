"""Imports between the package's modules have no cycles, not even through imports inside functions."""

from __future__ import annotations

import ast
from pathlib import Path

import mlafix

PACKAGE = Path(mlafix.__file__).resolve().parent


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}
"""The package's files by the names of their modules within the package. The package itself has the name ""."""

EXTENSIONS = {"_runtime", "_compiler"}
"""Modules in C++. Importing them imports no module of the package."""


def imports(name: str, path: Path) -> set[str]:
    """Returns the package's modules that a module imports anywhere in its text. Importing a name that a package defines
    itself counts as importing the package."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    package = [part for part in package if part]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = [*package[: len(package) - node.level + 1], *(node.module.split(".") if node.module else [])]
        for alias in node.names:
            inner = ".".join([*base, alias.name])
            if inner in EXTENSIONS or ".".join(base) in EXTENSIONS:
                continue
            found.add(inner if inner in MODULES else ".".join(base))
    return found


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Returns a cycle of a graph as its nodes, with the first one repeated at the end. Returns an empty list if there
    is no cycle."""
    done: set[str] = set()

    def visit(node: str, way: list[str]) -> list[str]:
        if node in way:
            return [*way[way.index(node) :], node]
        if node not in done:
            for following in sorted(graph[node]):
                if found := visit(following, [*way, node]):
                    return found
            done.add(node)
        return []

    for start in sorted(graph):
        if found := visit(start, []):
            return found
    return []


def test_no_module_imports_one_that_imports_it() -> None:
    found = cycle({name: imports(name, path) for name, path in MODULES.items()})
    assert not found, f"expected imports in one direction, got {' -> '.join(found)}"


def test_a_cycle_is_found() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_everything_public_is_there() -> None:
    for name in mlafix.__all__:
        assert hasattr(mlafix, name), name
    assert mlafix.errors.Error is mlafix.Error
