"""Computes the digest of a Python kernel from its text and from the values of the outside names that it uses.

Two functions with the same digest make the same kernel. The digest ignores comments, formatting, the file, the line and
the version of Python. It includes the names that the front end looks up outside the function, and thus neither
arguments nor names that the body assigns. It includes the parts of values that a kernel can use: numbers, text, tuples
and records of these, dtypes and functions. For any other value, which no kernel can use, it includes only the type.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import hashlib
import os
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import CompileError
from . import annotations, scope
from .built_ins import BuiltIn
from .inline import Inline
from .options import Options
from .source import Source
from .types import Base, DType, ScalarType, TensorType
from .values import as_number, field_names, is_record, is_record_type

_HALF = 16


def digest(function: types.FunctionType, options: Options = Options()) -> str:
    """Returns the digest as 32 hexadecimal digits: 16 for the function's text and options, 16 for the values of its
    names. Raises CompileError if the text cannot be read."""
    source = Source(function)
    text = _text(source.node) + options.text()
    return _half(text) + _half("\n".join([_listed(source, False, frozenset({id(function)})), *_declared(source)]))


def digest_of_library(function: types.FunctionType, options: Options, made_with: tuple[object, ...]) -> str:
    """Computes the digest of a kernel of the package without parsing its text. The digest depends on all Python files
    in the kernel's folder, and on `made_with`, the arguments of the function that made the kernel."""
    named = f"{function.__module__} {function.__qualname__} {options.text()} {describe(list(made_with))}"
    return _files_digest(Path(function.__code__.co_filename).parent) + _half(named)


@functools.lru_cache(maxsize=None)
def _files_digest(folder: Path) -> str:
    """Returns 16 hexadecimal digits for the Python files in a folder."""
    return hashlib.sha256(b"\0".join(os.fsencode(path.name) + b"\0" + path.read_bytes() for path in sorted(folder.glob("*.py")))).hexdigest()[:_HALF]


def is_same_text(one: str, other: str) -> bool:
    """True if two digests belong to functions with the same text and options. If such digests differ, the value of an
    outside name differs."""
    return one[:_HALF] == other[:_HALF]


def chosen_names(function: types.FunctionType) -> list[str]:
    """Returns the outside names that a function and its inline functions use. Omits names of Python and of
    mlafix.dsl."""
    found: dict[str, None] = {}
    open_ = [(Source(function), False)]
    for source, is_inline in open_:
        for name, value in _names(source, is_inline).items():
            if name not in found and not is_word(value):
                found[name] = None
                open_ += [(value.source(), True)] if isinstance(value, Inline) else []
    return list(found)


def _half(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HALF]


# -- The text ------------------------------------------------------------------------------------------------------------


def _text(node: ast.FunctionDef) -> str:
    return "\n".join([_tree(node.args), *(_tree(statement) for statement in node.body)])


def _tree(tree: ast.AST) -> str:
    """Formats a syntax tree as text. Omits locations, and also empty fields, since these differ between Python
    versions. Works without recursion, since a tree may be deeper than Python's stack."""
    pieces: list[str] = []
    open_: list[Any] = [tree]
    while open_:
        node = open_.pop()
        if isinstance(node, _Piece):
            pieces.append(node)
        elif isinstance(node, list):
            open_ += reversed([_Piece("["), *_with_commas([[element] for element in node]), _Piece("]")])
        elif isinstance(node, ast.AST):
            fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []) and name not in ("ctx", "kind"))
            named = _with_commas([[_Piece(f"{name}="), value] for name, value in fields])
            open_ += reversed([_Piece(f"{type(node).__name__}("), *named, _Piece(")")])
        else:
            pieces.append(repr(node))
    return "".join(pieces)


class _Piece(str):
    """Text that `_tree` adds between nodes; a plain str is a value of the tree."""


def _with_commas(groups: list[list[Any]]) -> list[Any]:
    return [part for number, group in enumerate(groups) for part in ([_Piece(","), *group] if number else group)]


# -- The names -----------------------------------------------------------------------------------------------------------

# The descriptions of words of Python and of mlafix.dsl begin with this prefix.
_WORD = "word "


def _declared(source: Source) -> Iterator[str]:
    """Yields a description of each declaration of a kernel's arguments."""
    for annotation in _annotations(source):
        with contextlib.suppress(CompileError):  # reported when the kernel is compiled
            value = annotations.value_of(source, annotation)
            yield describe(value) + (f" {_names_of_fields(value)}" if is_record(value) else "")


def _names_of_fields(record: Any) -> str:
    """Returns the names of a record's fields and of the fields of nested records. They are names of the kernel's
    arguments."""
    fields = ((name, getattr(record, name)) for name in field_names(record))
    return ",".join(name + (f"({_names_of_fields(value)})" if is_record(value) else "") for name, value in fields)


def _annotations(source: Source) -> list[ast.expr]:
    return [argument.annotation for argument in scope.arguments(source.node.args) if argument.annotation is not None]


def _names(source: Source, is_inline: bool) -> dict[str, Any]:
    """Maps the outside names in a function's body to their values. Includes the names in the types of its arguments,
    unless the function is inline."""
    return {ast.unparse(name): value for name, value in names_of(source, is_inline)}


def names_of(source: Source, is_inline: bool) -> Iterator[tuple[ast.expr, Any]]:
    """Yields the outside names of a function as `_names` does, but as (expression, value) for each use."""
    used = list(source.outside)
    for annotation in () if is_inline else _annotations(source):
        with contextlib.suppress(CompileError):  # reported when the kernel is compiled
            used += scope.outside(annotations.expression(source, annotation), frozenset())
    for name in used:
        with contextlib.suppress(KeyError, AttributeError):  # reported when the kernel is compiled
            yield name, source.value_of(name)


def _listed(source: Source, is_inline: bool, within: frozenset[int]) -> str:
    return "\n".join(f"{name}={describe(value, within)}" for name, value in _names(source, is_inline).items())


def describe(value: Any, within: frozenset[int] = frozenset()) -> str:
    """Returns a text for the parts of a value that a kernel can use. `within` has the ids of functions that are being
    described."""
    number = as_number(value)
    if number is not None:
        # In hexadecimal, because Python refuses to print very large integers in decimal.
        text = hex(number) if isinstance(number, int) and number.bit_length() > 64 else repr(number)
        return f"{type(number).__name__}:{text}"
    if isinstance(value, (str, type(None))):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "(" + ",".join(describe(element, within) for element in value) + ")"
    if isinstance(value, Inline):
        return _describe_inline(value, within)
    if isinstance(value, (DType, Base, TensorType)) or (isinstance(value, ScalarType) and (value.bound or value.from_tensor)):
        return f"{type(value).__name__}{dataclasses.astuple(value)}"
    if is_record(value):
        return f"record {type(value).__qualname__}({','.join(describe(getattr(value, name), within) for name in field_names(value))})"
    if is_record_type(value):
        fields = ((field.name, field.default) for field in dataclasses.fields(value))
        return f"records {value.__qualname__}({','.join(f'{name}={describe(default, within)}' for name, default in fields)})"
    if isinstance(value, (BuiltIn, ScalarType, types.BuiltinFunctionType, type)):
        return f"{_WORD}{getattr(value, '__qualname__', '') or value.name}"
    is_ours = type(value).__module__ == Base.__module__  # In, Out, InOut, Peers
    return f"{_WORD if is_ours else ''}{type(value).__qualname__} {getattr(value, 'access', '') if is_ours else ''}"


def is_word(value: Any) -> bool:
    """True if a value is a word of the language or of Python: "grid", "f32", "range"."""
    return describe(value).startswith(_WORD)


def _describe_inline(value: Any, within: frozenset[int]) -> str:
    function = value.function
    if id(function) in within:  # recursion is reported when the kernel is compiled
        return "inline"
    within |= {id(function)}
    return f"inline {{{describe_text(value, within)}\n{_listed(value.source(), True, within)}}}"


def describe_text(value: Any, within: frozenset[int] = frozenset()) -> str:
    """Returns a text for an inline function and its defaults, without the values of its outside names."""
    function = value.function
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()]
    return f"{_text(value.source().node)}\n{describe(defaults, within)}"
