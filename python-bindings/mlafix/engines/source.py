"""Reads the signatures of an engine's functions from its files, without importing or running the engine."""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Read = Callable[[str], "str | None"]
"""Returns the text of a file by its path in the distribution, such as "vllm/_custom_ops.py". Returns None if there is
no such file."""


class Text(str):
    """The source text of a default that is not a literal."""

    def __repr__(self) -> str:
        return str(self)


def wheel(path: Path) -> Read:
    """Returns a reader for the files of a wheel, or of a folder that holds an unpacked wheel."""
    if path.is_dir():
        return lambda name: (path / name).read_text(encoding="utf-8") if (path / name).is_file() else None
    archive = zipfile.ZipFile(path)
    names = set(archive.namelist())
    return lambda name: archive.read(name).decode("utf-8") if name in names else None


def environment(name: str) -> str | None:
    """Returns the text of a file of an installed package, or None if there is no such file."""
    package, _, rest = name.partition("/")
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (path := Path(folder) / rest).is_file():
            return path.read_text(encoding="utf-8")
    return None


def version_of(path: Path) -> tuple[str, str]:
    """Returns the name and the version of a wheel, such as ("vllm", "0.33.0"). A folder must contain a dist-info.
    Raises LookupError for anything else."""
    names = [folder.name for folder in path.glob("*.dist-info")] if path.is_dir() else [path.name]
    for name in names:
        if found := re.match(r"([\w.]+?)-(\d[\w.+!]*?)(?:\.dist-info|-)", name):
            return found[1].replace("_", "-"), found[2]
    raise LookupError(f"expected a wheel or a folder with a dist-info, got {path}")


def signature(read: Read, module: str, name: str) -> inspect.Signature:
    """Returns the signature of a function, a class's __init__, a method or a kernel that a module defines or imports.

    Raises LookupError with the reason if it finds no signature.
    """
    tree, package = _module(read, module)
    head, _, rest = name.partition(".")
    for node in _definitions(tree):
        if isinstance(node, ast.ImportFrom):
            if any((alias.asname or alias.name) == name for alias in node.names):
                return signature(read, _absolute(node, package), next(a.name for a in node.names if (a.asname or a.name) == name))
        elif node.name == head:
            return _signature_of(_member(node, rest or "__init__") if isinstance(node, ast.ClassDef) else node)
    raise LookupError(f"{module} has no {name}")


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _module(read: Read, module: str) -> tuple[ast.Module, str]:
    """Returns the syntax tree of a module, and the package that contains it. Raises LookupError if there is no such
    module."""
    path = module.replace(".", "/")
    for file, package in ((f"{path}.py", module.rpartition(".")[0]), (f"{path}/__init__.py", module)):
        if (text := read(file)) is not None:
            return _parsed(text), package
    raise LookupError(f"no module {module}")


def _absolute(node: ast.ImportFrom, package: str) -> str:
    base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    return ".".join([*base, *([node.module] if node.module else [])])


def _definitions(tree: ast.AST) -> Iterator[Any]:
    """Yields the functions, classes and imports of a module, including those inside if and try. The order is reversed,
    since the last definition of a name counts."""
    for node in reversed(list(ast.iter_child_nodes(tree))):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.ImportFrom)):
            yield node
        elif isinstance(node, (ast.If, ast.Try, ast.ExceptHandler)):
            yield from _definitions(node)


def _member(node: ast.ClassDef, name: str) -> ast.FunctionDef:
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and member.name == name:
            return member
    raise LookupError(f"class {node.name} has no {name}")


def _signature_of(node: ast.FunctionDef) -> inspect.Signature:
    made, kind = [], inspect.Parameter
    positional = [*node.args.posonlyargs, *node.args.args]
    defaults = [None] * (len(positional) - len(node.args.defaults)) + list(node.args.defaults)
    for argument, default in zip(positional, defaults):
        made.append(kind(argument.arg, kind.POSITIONAL_OR_KEYWORD, default=_value(default)))
    if node.args.vararg:
        made.append(kind(node.args.vararg.arg, kind.VAR_POSITIONAL))
    for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults):
        made.append(kind(argument.arg, kind.KEYWORD_ONLY, default=_value(default)))
    if node.args.kwarg:
        made.append(kind(node.args.kwarg.arg, kind.VAR_KEYWORD))
    if made and made[0].name == "self":
        made = made[1:]
    return inspect.Signature(made)


_DTYPES = {"torch.bfloat16": "bf16", "torch.float16": "f16", "torch.float32": "f32"}


def _value(default: ast.expr | None) -> Any:
    """Evaluates the default of a parameter. Returns a literal, an infinity or NaN as it is, and the mlafix name of a
    torch dtype (bf16). Returns Text for anything else."""
    if default is None:
        return inspect.Parameter.empty
    text = ast.unparse(default)
    if found := re.fullmatch(r"(-?)(?:float\('(\w+)'\)|math\.(inf|nan))", text):
        return float(found[1] + (found[2] or found[3]))
    if text in _DTYPES:
        return _DTYPES[text]
    try:
        return ast.literal_eval(default)
    except ValueError:
        return Text(text)
