"""What this installation compiles with: the extension module with the compiler, and the assemblers beside it."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import shutil
from pathlib import Path
from typing import Any

from . import _env, _runtime
from .errors import CompileError


def compiler() -> Any:
    """The extension module ``mlafix._compiler``.

    Raises:
        CompileError: this installation has none, or its libraries are missing.
    """
    try:
        return importlib.import_module("mlafix._compiler")
    except ImportError as error:
        hint = "" if compiler_file() else " (pip install mlafix[compiler] installs it)"
        raise CompileError(f"expected the compiler (the extension module mlafix._compiler), got: {error}{hint}") from None


@functools.lru_cache(maxsize=None)
def compiler_file() -> str | None:
    """Path of the compiler's module, found without loading it, which takes longer than loading a unit."""
    spec = importlib.util.find_spec("mlafix._compiler")
    return spec.origin if spec else None


@functools.lru_cache(maxsize=None)
def compiler_facts() -> tuple[str, ...]:
    """What may change the code that the compiler itself makes of the same source: its version and its files."""
    path = compiler_file()
    facts = [_runtime.__version__, str(_runtime.ABI_VERSION)]
    if path is not None:
        # The module is thin: what compiles is the library beside it.
        # A kernel in Python is known by its function, so what reads functions counts as well.
        folder = Path(path).parent
        for file in (Path(path), *sorted(folder.glob("libmlafix_compiler.so*")), *sorted(folder.glob("dsl/*.py"))):
            stat = file.stat()
            facts += [str(stat.st_size), str(stat.st_mtime_ns)]
    return tuple(facts)


def assembler_facts() -> tuple[str, ...]:
    """Which assemblers of PTX the compiler may use here."""
    return (*_env.assemblers(), _ptxas_on(os.environ.get("PATH", "")))


@functools.lru_cache(maxsize=None)
def _ptxas_on(path: str) -> str:
    return shutil.which("ptxas", path=path) or ""
