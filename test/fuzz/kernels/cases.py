"""Cases as text: the `repr` of their dataclasses, which reads back."""

from __future__ import annotations

import math
import pprint
from pathlib import Path

import syntax
from render import source
from syntax import Case

_NAMES = {name: getattr(syntax, name) for name in ("Assign", "Call", "Case", "Each", "Exchange", "For", "Grid", "If", "Inline", "Kernel",
                                                   "Layout", "Node", "Scalar", "Store", "StoreState", "Tensor", "Type")}  # fmt: skip


def write(case: Case) -> str:
    return repr(case)


def read(text: str) -> Case:
    """The case of a text. Only cases of this folder are read: their text is Python."""
    made: Case = eval(text, {"__builtins__": {}, **_NAMES, "inf": math.inf, "nan": math.nan})  # noqa: S307
    return made


def load(path: Path) -> Case:
    """The case of a file."""
    names: dict[str, str] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return read(names["CASE"].strip())


def document(case: Case, title: str) -> str:
    """A file for regressions/: why it is there, the kernel as Python, and the case itself."""
    kernel = "\n".join(f"# {line}".rstrip() for line in source(case.kernel).splitlines())
    return f'"""{title}"""\n\n{kernel}\n\nCASE = """\n{pprint.pformat(case, width=140)}\n"""\n'
