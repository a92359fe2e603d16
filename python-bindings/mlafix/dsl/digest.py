"""A digest of what a Python kernel says: its syntax tree, and the values that its names stand for.

Two functions with the same digest make the same kernel. Comments, formatting, the file and the line do not count, nor does
the version of Python that reads the text.
"""

from __future__ import annotations

import ast
import hashlib
import types
from typing import Any

from .source import Source
from .types import Base, DType, ScalarType, TensorType
from .values import as_number


def digest(function: types.FunctionType, bounds: str = "guard") -> str:
    """32 hexadecimal digits. Raises CompileError where the function's text cannot be read."""
    text = _text_of(Source(function), frozenset())
    if bounds != "guard":
        text += f"\nbounds = {bounds}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _text_of(source: Source, open_functions: frozenset[int]) -> str:
    """The function as text, and the values of the names that it takes from outside."""
    node = source.node
    parts = [_tree(node.args), *(_tree(statement) for statement in node.body)]
    roots = [node.args, *node.body, *(_annotations(node.args))]
    within = open_functions | {id(source.function)}
    for root in roots:
        for expression in ast.walk(root):
            if isinstance(expression, (ast.Name, ast.Attribute)):
                described = _value_text(source, expression, within)
                if described:
                    parts.append(f"{ast.unparse(expression)}={described}")
    return "\n".join(dict.fromkeys(parts))


def _tree(node: Any) -> str:
    """A syntax tree as text: no places, and no fields that are empty, which differ between versions of Python."""
    if isinstance(node, list):
        return "[" + ",".join(_tree(element) for element in node) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []) and name not in ("ctx", "kind"))
    return f"{type(node).__name__}(" + ",".join(f"{name}={_tree(value)}" for name, value in fields) + ")"


def _annotations(arguments: ast.arguments) -> list[ast.AST]:
    """Types of arguments that are written as text, as trees."""
    found: list[ast.AST] = []
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        text = argument.annotation
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            try:
                found.append(ast.parse(text.value.strip(), mode="eval"))
            except (SyntaxError, ValueError):  # said when the kernel is compiled
                pass
    return found


def _value_text(source: Source, node: ast.expr, within: frozenset[int]) -> str:
    """What a name, or a name in a module, stands for outside the function; "" where it stands for nothing there."""
    try:
        value = _value(source, node)
    except (KeyError, AttributeError):
        return ""
    return "" if isinstance(value, types.ModuleType) else _describe(value, within)


def _value(source: Source, node: ast.expr) -> Any:
    """Raises KeyError or AttributeError for what is no name of outside."""
    if isinstance(node, ast.Name):
        return source.lookup(node.id)
    if not isinstance(node, ast.Attribute):
        raise KeyError
    module = _value(source, node.value)
    if not isinstance(module, types.ModuleType):
        raise KeyError
    return getattr(module, node.attr)


def _describe(value: Any, within: frozenset[int]) -> str:
    number = as_number(value)
    if number is not None:
        return f"{type(number).__name__}:{number!r}"
    if isinstance(value, (str, type(None), ScalarType, DType, Base, TensorType)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "(" + ",".join(_describe(element, within) for element in value) + ")"
    if hasattr(value, "__mlafix_inline__"):
        # One that calls itself is an error when the kernel is compiled.
        return "inline" if id(value.function) in within else f"inline {{{_text_of(value.source(), within)}}}"
    name = getattr(value, "__qualname__", None) or getattr(value, "name", None) or getattr(value, "access", "")
    return f"{type(value).__module__}.{type(value).__qualname__} {name}"
