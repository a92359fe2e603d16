"""Reads the declarations of a kernel's arguments from its annotations."""

from __future__ import annotations

import ast
import warnings
from typing import Any

from ..errors import ArgumentError
from . import hints
from .source import Source
from .types import TensorType, is_argument
from .values import field_names, is_record


def value_of(source: Source, node: ast.expr) -> Any:
    """Returns the value of an annotation, which Python may have kept as text. Raises CompileError with the faulty
    expression underlined."""
    tree = expression(source, node)
    names = {}
    for name in (part.id for part in ast.walk(tree) if isinstance(part, ast.Name)):
        try:
            names[name] = source.lookup(name)
        except KeyError:
            source.fail(tree, f"expected names that are defined, got '{name}'{hints.of_undefined_in_type(tree, name)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # suppresses Python's own warnings; errors are reported below
            code = compile(ast.fix_missing_locations(ast.Expression(tree)), source.file, "eval")
        return eval(code, {"__builtins__": {}}, names)  # noqa: S307 (the function's own annotation)
    except ArgumentError as error:
        source.fail(tree, str(error))
    except Exception as error:  # a user's expression may raise anything
        source.fail(tree, f"expected a type, got an annotation that raises {type(error).__name__}: {error}")


def expression(source: Source, node: ast.expr) -> ast.expr:
    """Returns the expression of an annotation, which Python may have kept as text. Raises CompileError."""
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return node
    try:
        return ast.copy_location(ast.parse(node.value.strip(), mode="eval").body, node)
    except (SyntaxError, ValueError) as error:
        source.fail(node, f"expected a type, got text that does not parse: {getattr(error, 'msg', error)}; dims are quoted, as In[f32, \"n D\"]")


def holds_arguments(record: object) -> bool:
    """True if a field of a record declares an argument, or is a record that declares a tensor."""
    return any(is_argument(value) for value in _fields(record)) or holds_tensors(record)


def holds_tensors(record: object) -> bool:
    """True if a field of a record declares a tensor, or is a record that does."""
    return any(isinstance(value, TensorType) or (is_record(value) and holds_tensors(value)) for value in _fields(record))


def _fields(record: object) -> list[Any]:
    return [getattr(record, name) for name in field_names(record)]
