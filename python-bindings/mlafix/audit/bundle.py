"""Writes scripts that show a finding and need only torch and the backend.

A script contains the source text of the check and of all definitions that the check uses. The audit and the script thus
run the same code, and the script does not import mlafix.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from .adapter import Place, place_of
from .cases import Adapter

PACKAGE = __package__


@dataclass
class Source:
    """The definitions and the imports of a module, by name."""

    lines: list[str]
    defined: dict[str, ast.stmt]
    imported: dict[str, tuple[str, str]]  # name: (module, name in that module). The second is "" if `name` is a module.

    def text(self, node: ast.stmt) -> str:
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
        return "\n".join(self.lines[first - 1 : node.end_lineno])


@cache
def source_of(module: str) -> Source:
    text = inspect.getsource(importlib.import_module(module))
    defined: dict[str, ast.stmt] = {}
    imported: dict[str, tuple[str, str]] = {}
    package = module.split(".")[:-1]
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            defined[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            defined[node.targets[0].id] = node
        elif isinstance(node, ast.Import):
            imported |= {(alias.asname or alias.name.split(".")[0]): (alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) + 1 - node.level]) if node.level else ""
            origin = ".".join(part for part in (base, node.module) if part)
            imported |= {(alias.asname or alias.name): (origin, alias.name) for alias in node.names}
    return Source(text.splitlines(), defined, imported)


class Bundle:
    """Collects definitions in an order in which a script can execute them."""

    def __init__(self, replaced: dict[str, str]) -> None:
        self.replaced = replaced  # name: text of a definition that replaces the module's own
        self.imports: set[str] = set()
        self.parts: dict[tuple[str, str], str] = {}

    def add(self, module: str, name: str) -> None:
        """Adds a definition from a module of this package, after the definitions that it uses."""
        source = source_of(module)
        if name in source.imported and name not in source.defined:
            origin, inner = source.imported[name]
            if origin.startswith(f"{PACKAGE}."):
                self.add(origin, inner)
            elif origin != "__future__":
                alias = f" as {name}" if name != (inner or origin.partition(".")[0]) else ""
                self.imports.add((f"from {origin} import {inner}" if inner else f"import {origin}") + alias)
            return
        if name not in source.defined or (module, name) in self.parts:
            return
        node = source.defined[name]
        text = self.replaced.get(name) or source.text(node)
        self.parts[module, name] = ""
        for used in sorted({one.id for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Name)}):
            self.add(module, used)
        del self.parts[module, name]
        self.parts[module, name] = text

    def text(self) -> str:
        return "\n\n\n".join(self.parts.values())

    def head(self, title: str) -> list[str]:
        """Returns the first lines of a script: its docstring and its imports."""
        imports = sorted({"import sys", "import torch", *self.imports}, key=lambda line: (line.startswith("from"), line))
        future = ["from __future__ import annotations\n"] if self.parts else []
        return [f'"""{title}\n\nExits with status 1 while it is so. Needs torch and the backend.\n"""\n', *future, *imports, ""]


def literal(instance: Any, skipped: tuple[str, ...] = ()) -> str:
    """Writes a dataclass as a constructor call that passes only its non-default fields."""
    given = [f"{field.name}={written(getattr(instance, field.name))}" for field in fields(instance)
             if field.name not in skipped and getattr(instance, field.name) != field.default]  # fmt: skip
    return f"{type(instance).__name__}({', '.join(given)})"


def written(value: Any) -> str:
    """Writes a value as a Python expression. An infinity becomes a call of `float`, because its repr is the undefined
    name inf."""
    return f'float("{value}")' if isinstance(value, float) and value in (float("inf"), float("-inf")) else repr(value)


def script(faults: Any, case: Any, adapter: Adapter, title: str, died: bool = False, seconds: float = 3.0, earlier: Sequence[Any] = ()) -> str:
    """Returns a script that makes the `earlier` calls and then runs `faults(case, adapter)`. The script exits with
    status 1 if there is a fault.

    Returns "" if the backend cannot be imported.
    """
    place = place_of(adapter.call)
    if place is None:
        return ""
    table = "STATE_FORMS" if adapter.form in ("merge", "reduce") else "FORMS"
    other = "FORMS" if table == "STATE_FORMS" else "STATE_FORMS"
    bundle = Bundle({table: f'{table} = {{"{adapter.form}": call_{adapter.form}}}', other: f"{other} = {{}}"})
    for name in ("Adapter", type(case).__name__):
        bundle.add(f"{PACKAGE}.cases", name)
    bundle.add(faults.__module__, faults.__name__)
    if died:
        bundle.add(f"{PACKAGE}.attempt", "deaths")
    backend = backend_lines(place, bundle)
    bundle.add(f"{PACKAGE}.attempt", "attempt")
    run = f"attempt({faults.__name__}, CASE, ADAPTER)"
    run = f"deaths(lambda: {run}, {seconds})" if died else run
    return "\n".join([
        *bundle.head(title), *backend, "", "",
        bundle.text(), "", "",
        f"CASE = {literal(case)}",
        *([f"EARLIER = [{', '.join(map(literal, earlier))}]"] if earlier else []),
        f"ADAPTER = Adapter({', '.join(['backend', literal(adapter, ('call',))[len('Adapter(') : -1]]).rstrip(', ')})", "",
        'if __name__ == "__main__":',
        *([f"    for earlier in EARLIER:\n        attempt({faults.__name__}, earlier, ADAPTER)"] if earlier else []),
        f"    found = {run}",
        "    for fault in found:",
        '        print(f"{fault.kind}: expected {fault.expected}, got {fault.got}")',
        "    sys.exit(1 if found else 0)", "",
    ])  # fmt: skip


def backend_lines(place: Place, bundle: Bundle) -> list[str]:
    """Returns the lines that define `backend` in a script: an import, or the text of a ready adapter."""
    if place.module.startswith(f"{PACKAGE}."):
        bundle.add(place.module, place.name)
        bundle.parts["", "backend"] = f"backend = {place.name}"
        return []
    lines = [f"sys.path.insert(0, {place.folder!r})"] if place.folder else []
    head, _, rest = place.name.partition(".")
    found = f"from {place.module} import {head}" + (" as backend" if not rest and head != "backend" else "")
    return [*lines, found, *([f"backend = {place.name}"] if rest else [])]
