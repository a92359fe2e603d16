"""Finds faults in a kernel's text that deserve a warning: arguments that nothing uses, and stores that a later store
overwrites."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from . import annotations, scope
from .source import Source
from .types import TensorType


def warnings(source: Source) -> list[dict[str, Any]]:
    """Returns the warnings about a kernel's text as dicts with the keys "message", "file", "line", "column", "end_line"
    and "end_column"."""
    found = [*_unused(source), *(one for body in _bodies(source.node) for one in _overwritten(source, body))]
    fields = ("file", "line", "column", "end_line", "end_column")
    return [{"message": message, **dict(zip(fields, source.place(node)))} for node, message in found]


def _unused(source: Source) -> Iterator[tuple[ast.AST, str]]:
    """Yields (argument, message) for each argument that the body does not name and whose dims the body does not need.
    Ignores arguments with a leading _."""
    arguments = scope.arguments(source.node.args)
    named = {node.id for statement in source.node.body for node in ast.walk(statement) if isinstance(node, ast.Name)}
    texts = {node.value for statement in source.node.body for node in ast.walk(statement) if isinstance(node, ast.Constant)}
    for argument in arguments:
        if argument.arg in named or argument.arg.startswith("_"):
            continue
        others = {dim for other in arguments if other.arg in named for dim in _dims(source, other)}
        if not texts & (_dims(source, argument) - others):
            yield argument, f"expected every argument to be used, got '{argument.arg}', which the kernel never reads or writes: leave it out"


def _dims(source: Source, argument: ast.arg) -> set[str]:
    """Returns the names of the dims that an argument declares."""
    value = annotations.value_of(source, argument.annotation) if argument.annotation is not None else None
    return {dim.name for dim in value.dims} if isinstance(value, TensorType) else set()


def _bodies(node: ast.AST) -> Iterator[Sequence[ast.stmt]]:
    for part in ast.walk(node):
        for field in ("body", "orelse"):
            body = getattr(part, field, None)
            if isinstance(body, list):
                yield body


def _overwritten(source: Source, body: Sequence[ast.stmt]) -> Iterator[tuple[ast.AST, str]]:
    """Yields (target, message) for each store of `body` to an element that a later statement of `body` overwrites,
    unless a statement between them reads the tensor or changes an index."""
    uses = [_Uses(statement) for statement in body]
    for at, statement in enumerate(body):
        target = _stored(statement)
        if target is None:
            continue
        place = ast.unparse(target)
        indices = _names(target.slice)
        for later, used in zip(body[at + 1 :], uses[at + 1 :]):
            again = _stored(later)
            if again is not None and ast.unparse(again) == place:
                if target.value.id not in _names(later.value):  # type: ignore[attr-defined]
                    yield target, f"expected a store that something reads, got one to {place} that line {source.place(later)[1]} overwrites: leave it out"
                break
            if target.value.id in used.names or indices & used.assigned:  # type: ignore[attr-defined]
                break


def _stored(statement: ast.stmt) -> ast.Subscript | None:
    """Returns the element or row of a named tensor to which a statement stores. Returns None for any other
    statement."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    return target if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) else None


class _Uses:
    """The names in a statement, and the names that the statement may assign. Both are computed once, since they are
    compared with every earlier store of the body."""

    def __init__(self, statement: ast.stmt) -> None:
        self._statement = statement

    @cached_property
    def names(self) -> set[str]:
        return _names(self._statement)

    @cached_property
    def assigned(self) -> set[str]:
        return set(scope.assigned([self._statement]))


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
