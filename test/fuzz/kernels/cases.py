"""Cases as text: the `repr` of their dataclasses, which reads back, and files of Python that make one."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import syntax
from syntax import Case, Node, Type, lit, name

_NAMES = {name_: getattr(syntax, name_) for name_ in ("Assign", "Call", "Case", "Each", "Assume", "Distinct", "Exchange", "For", "Grid", "If", "Inline", "Kernel",
                                                     "Layout", "Node", "Print", "Scalar", "Store", "StoreState", "Tensor", "Type")}  # fmt: skip
_TYPES = {getattr(syntax, name_): name_ for name_ in ("F32", "I32", "I64", "INDEX", "BOOL")}
_WIDTH = 120


def write(case: Case) -> str:
    return repr(case)


def read(text: str) -> Case:
    """The case of a text. Only cases of this folder are read: their text is Python."""
    made: Case = eval(text, {"__builtins__": {}, **_NAMES, "inf": math.inf, "nan": math.nan})  # noqa: S307
    return made


def load(path: Path) -> Case:
    """The case of a file."""
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    made: Case = names["CASE"]
    return made


def document(case: Case, title: str) -> str:
    """A file for regressions/: why it is there, and Python that makes the case."""
    return f'"""{title}"""\n\nfrom syntax import *  # noqa: F403\n\nCASE = {_spell(case, 0)}\n'


def _spell(value: Any, indent: int) -> str:
    """Python for a value, on one line if that is short."""
    opening, items, closing = _parts(value)
    flat = opening + ", ".join(label + _spell(item, -1) for label, item in items) + closing
    if indent < 0 or not items or indent + len(flat) <= _WIDTH:
        return flat
    lines = (f"\n{' ' * (indent + 4)}{label}{_spell(item, indent + 4)}," for label, item in items)
    return f"{opening}{''.join(lines)}\n{' ' * indent}{closing}"


def _parts(value: Any) -> tuple[str, list[tuple[str, Any]], str]:
    """A value's opening, its items with what precedes each, and its closing. What has no items is its opening."""
    if isinstance(value, Node) and value in (name(value.attrs.get("name"), value.type), lit(value.attrs.get("value"), value.type)):
        return f"{value.op}(", [("", item) for item in (*value.attrs.values(), value.type)], ")"
    if isinstance(value, Type) and value in _TYPES:
        return _TYPES[value], [], ""
    if dataclasses.is_dataclass(value):
        return f"{type(value).__name__}(", _arguments(value), ")"
    if isinstance(value, dict):
        return "{", [(f"{key!r}: ", item) for key, item in value.items()], "}"
    if isinstance(value, list):
        return "[", [("", item) for item in value], "]"
    if isinstance(value, float) and not math.isfinite(value):
        return f"math.{value}".replace("math.-", "-math."), [], ""
    return repr(value), [], ""


def _arguments(value: Any) -> list[tuple[str, Any]]:
    """The arguments that make a dataclass again: without those that are defaults, and by name after one of these."""
    items: list[tuple[str, Any]] = []
    are_all = True
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        if item == default and type(item) is type(default):
            are_all = False
        else:
            items.append(("" if are_all else f"{field.name}=", item))
    return items
