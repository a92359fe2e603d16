"""Helpers of tests that write the text of a Python kernel to a file and load it. A file that imports this module is
skipped if the package was built without the compiler."""

from __future__ import annotations

import importlib.util
import itertools
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from mlafix.errors import CompileError

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
"""The folder of the library's MLIR texts."""

HEADER = '''import math
import numpy
import mlafix
from mlafix.dsl import *

T = DType("T")
I = DType("I", default=i32)
'''
_numbers = itertools.count()


def load(folder: Path, text: str, header: str = HEADER) -> ModuleType:
    """Writes `text`, after imports of the built-ins, to a new file in the folder. Returns the file as a module."""
    name = f"made_kernels_{next(_numbers)}"
    path = folder / f"{name}.py"
    path.write_text(header + text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def underlined(message: str) -> str:
    """Returns the text that the caret of the first message underlines."""
    _, line, carets, *_ = message.splitlines()
    found = re.fullmatch(r"\s*(\^~*)", carets)
    assert found, f"no caret below the line:\n{message}"
    return line[found.start(1) : found.end(1)]


@contextmanager
def refused(message: str, place: str) -> Iterator[None]:
    """Expects a CompileError whose text contains `message` and underlines `place`."""
    with pytest.raises(CompileError) as caught:
        yield
    assert message in str(caught.value)
    assert underlined(str(caught.value)) == place
