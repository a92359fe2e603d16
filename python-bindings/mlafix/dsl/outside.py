"""Collects the values that a kernel takes from outside its function, and checks that they have not changed since the
first use.

Each call compares the identities of these values (_runtime.Dispatcher.watch). If a value was replaced by another
object, `Outside` compares the meanings of the old and the new value.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from typing import Any

from .._reports.diagnostics import compile_error
from .digest import describe, describe_text, digest, is_word, names_of
from .inline import Inline
from .options import Options
from .source import Source
from .values import describe as shown
from .values import field_names, is_record

Watch = tuple[Any, ...]
_PACKAGE = f"{__package__.partition('.')[0]}."


class Outside:
    """The outside names of a kernel and its inline functions, with the values that they had when this object was
    created.

    Args:
        function: the kernel's function.
        options: the options of its decorator.

    Raises:
        CompileError: the function's text cannot be read.
    """

    def __init__(self, function: types.FunctionType, options: Options) -> None:
        self._source = Source(function)
        self.digest = digest(function, options)
        # Maps (function's name, outside name) to two descriptions of the value: (for the digest, for messages).
        self._meanings = dict(_meanings(self._source))
        self.watched = list(_watches(self._source))

    def check(self) -> None:
        """Raises CompileError if the value of a name has changed."""
        if not all(_holds(*watch) for watch in self.watched):
            self.watched = self.renewed()

    def renewed(self) -> list[Watch]:
        """Looks up the outside names again and returns what to watch from now on (`watched`). Raises CompileError if a
        value now means something else."""
        now = dict(_meanings(self._source))
        for (inside, name), (meaning, was) in self._meanings.items():
            other, got = now.get((inside, name), ("", "nothing"))
            if other != meaning:
                self._fail(inside, name, was, got)
        return list(_watches(self._source))

    def _fail(self, inside: str, name: str, was: str, got: str) -> None:
        kernel = self._source.name
        where = "" if inside == kernel else f" of inline function '{inside}'"
        message = (
            f"kernel '{kernel}': expected '{name}'{where} as it was when the kernel was first used, {was}, got "
            f"{got if got != was else 'another'} (pass it as an argument, or make the kernel again)"
        )
        raise compile_error([("error", message, *self._source.place(self._source.node))])


def _functions(source: Source) -> Iterator[tuple[Source, bool]]:
    """Yields a kernel and the inline functions that it calls, each once, as (source, True if it is an inline
    function)."""
    open_, seen = [(source, False)], {id(source.function)}
    for one, is_inline in open_:
        yield one, is_inline
        for _, value in names_of(one, is_inline):
            for called in _inline_in(value):
                if id(called.function) not in seen:
                    seen.add(id(called.function))
                    open_.append((called.source(), True))


def _inline_in(value: Any) -> Iterator[Any]:
    """Yields the inline functions within a value, including the value itself."""
    if isinstance(value, Inline):
        yield value
    for part in _parts(value):
        yield from _inline_in(part)


def _parts(value: Any) -> list[Any]:
    """Returns the items of a list or tuple, or the fields of a record. Returns [] for other values."""
    if isinstance(value, (list, tuple)):
        return list(value)
    return [getattr(value, name) for name in field_names(value)] if is_record(value) else []


def _meanings(source: Source) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    for one, is_inline in _functions(source):
        for node, value in names_of(one, is_inline):
            # The names that an inline function uses have entries of their own, so the entry of the function describes
            # only the function's text.
            meaning = describe_text(value) if isinstance(value, Inline) else describe(value)
            yield (one.name, ast.unparse(node)), (meaning, shown(value))


def _watches(source: Source) -> Iterator[Watch]:
    seen: set[tuple[int, object]] = set()
    for one, is_inline in _functions(source):
        if str(one.function.__globals__.get("__name__")).startswith(_PACKAGE):
            continue  # the package's own kernels do not change
        for node, value in names_of(one, is_inline):
            if is_word(value):
                continue  # watching a name costs each call about 10 ns, and words never change
            for watch in (*_of_name(one, node), *_of_value(value)):
                if (id(watch[0]), watch[1]) not in seen:
                    seen.add((id(watch[0]), watch[1]))
                    yield watch


def _of_name(source: Source, node: ast.expr) -> Iterator[Watch]:
    """Yields a Watch for a name. For a name in a module, such as ``math.pi``, yields one for ``math``, too."""
    if isinstance(node, ast.Attribute):
        yield from _of_name(source, node.value)
        of = source.value_of(node.value)
        if isinstance(of, types.ModuleType):
            yield _item(vars(of), node.attr) if node.attr in vars(of) else (of, node.attr, getattr(of, node.attr))
    elif isinstance(node, ast.Name):
        cell = source.cell(node.id)
        yield _item(source.function.__globals__, node.id) if cell is None else (cell, "cell_contents", cell.cell_contents)


def _item(names: dict[str, Any], name: str) -> Watch:
    return (names, name, names[name]) if name in names else (names, name)


def _of_value(value: Any) -> Iterator[Watch]:
    """Yields a Watch for each list inside a value. No other value that a kernel can use changes in place."""
    if isinstance(value, list):
        yield value, None, tuple(value)
    for part in _parts(value):
        yield from _of_value(part)


def _holds(holder: Any, key: Any, *value: Any) -> bool:
    """True if a name still stands for the same object, or a list still has the same items. The arguments are the items
    of a Watch: (names or object, name, value), (names, name) for a name without a value, or (list, None, items).
    _runtime.Dispatcher compares in the same way."""
    if isinstance(holder, list):
        return len(holder) == len(value[0]) and all(one is other for one, other in zip(holder, value[0]))
    missing = object()
    found = holder.get(key, missing) if isinstance(holder, dict) else getattr(holder, key, missing)
    return found is (value[0] if value else missing) or (not value and found is missing)
