"""Finds the tools with which this installation compiles: the extension module with the compiler, and the PTX
assemblers."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import shutil
from pathlib import Path
from typing import Any

from .. import _env, _runtime
from .._forks import forks_wait, whole
from ..errors import CompileError

_MODULE = "mlafix._compiler"
# The advice in the error if the compiler is not installed. The command has --no-index because no package index has the
# compiler's wheels: a package of that name in an index would be someone else's.
INSTALL = "python -m pip install --no-index --find-links FOLDER mlafix-compiler, with the folder of its wheel, installs it"


def utf8(value: Any) -> Any:
    """Replaces each lone surrogate in the strings of `value` (a string, list or dict) by the text ``\\udcNN``. Python
    uses surrogates in file names that are not UTF-8, but the compiler accepts only UTF-8."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {utf8(name): utf8(member) for name, member in value.items()}
    return [utf8(member) for member in value] if isinstance(value, (list, tuple)) else value


class _Compiler:
    """Wraps the extension module mlafix._compiler. While a function that releases the GIL runs, forks in other threads
    wait."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def compile(self, *args: Any, **options: Any) -> Any:
        with forks_wait:
            return self._module.compile(*utf8(args), **utf8(options))

    def remarks(self, *args: Any, **options: Any) -> Any:
        with forks_wait:
            return self._module.remarks(*utf8(args), **utf8(options))

    def signature(self, *args: Any, **options: Any) -> Any:
        with forks_wait:
            return self._module.signature(*utf8(args), **utf8(options))


_wrapped = functools.lru_cache(maxsize=1)(_Compiler)


def compiler() -> Any:
    """Returns the extension module ``mlafix._compiler``, wrapped in _Compiler.

    Raises:
        CompileError: this installation has no compiler, or a library that the compiler needs is missing.
    """
    try:
        whole(_MODULE)
        return _wrapped(importlib.import_module(_MODULE))
    except ImportError as error:
        hint = "" if compiler_file() else f" ({INSTALL})"
        raise CompileError(f"expected the compiler (the extension module mlafix._compiler), got: {error}{hint}") from None


@functools.lru_cache(maxsize=None)
def compiler_file() -> str | None:
    """Returns the path of the compiler's module, or None if this installation has no compiler. Does not load the
    module, since that takes longer than loading a unit."""
    spec = importlib.util.find_spec("mlafix._compiler")
    return spec.origin if spec else None


@functools.lru_cache(maxsize=None)
def compiler_facts() -> tuple[str, ...]:
    """Returns facts that distinguish compilers with different output: the version, and the size and time of each
    file."""
    path = compiler_file()
    facts = [_runtime.__version__, str(_runtime.ABI_VERSION)]
    if path is not None:
        # The module only wraps libmlafix_compiler.so beside it. The front end (dsl/*.py) counts as well, since a Python
        # kernel is identified by its function and not by the MLIR text that the front end makes.
        folder = Path(path).parent
        for file in (Path(path), *sorted(folder.glob("libmlafix_compiler.so*")), *sorted(folder.glob("dsl/*.py"))):
            stat = file.stat()
            # Whole seconds, since layers of container images store no fractions.
            facts += [str(stat.st_size), str(int(stat.st_mtime))]
    return tuple(facts)


def assembler_facts() -> tuple[str, ...]:
    """Returns the paths of the PTX assemblers that the compiler may use here; "" for each that is not set or not
    found."""
    return (*_env.assemblers(), _ptxas_on(os.environ.get("PATH", "")))


@functools.lru_cache(maxsize=None)
def _ptxas_on(path: str) -> str:
    return shutil.which("ptxas", path=path) or ""
