"""Kernels that are made of Python functions, and how to find their compiled code without a compiler.

A function has a digest (digest.py). Units compiled from the function contain the digest and the kernel's signature. The
cache also has a small file with the signature, whose name contains the digest. If the code was compiled ahead or by
another process, a call therefore needs no compiler.
"""

from __future__ import annotations

import functools
import json
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .. import _env, _runtime, cache
from .._files import archive as _archive
from .._files import keys, toolchain
from .._forks import cached_property, whole
from .._launcher import manifest
from .._launcher.kernel import Kernel, TextlessVariants
from .._reports.proofs import Report
from ..errors import UnitError
from .digest import chosen_names, digest_of_library, is_same_text
from .options import Options
from .outside import Outside
from .pickled import by_name, is_reachable
from .source import Source, keep_text, reading

_LIBRARY = "mlafix.kernels."


class PythonKernel(Kernel):
    """A kernel that ``@mlafix.kernel`` made of a function.

    Args:
        function: a function that is written in the language (docs/Python.md).
        fixed: names that are bound already; see :meth:`specialize`.
        options: see ``@mlafix.kernel``.
    """

    def __init__(
        self, function: types.FunctionType, fixed: Mapping[str, str] | None = None, options: Options = Options()
    ) -> None:
        # The third argument names the MLIR text. The locations in this text name the Python file, so messages do, too.
        super().__init__(function.__name__, self._build, f"<{function.__name__} in MLIR>", fixed)
        functools.update_wrapper(self, function)
        self.function, self.options = function, options
        if fixed is None:  # for a specialisation, the text is stored already
            keep_text(function)

    # The kernel of which this one is a specialisation; None if it is not a specialisation.
    _general: PythonKernel | None = None
    # The arguments of the function that made this kernel, if the kernel belongs to the package and a function made it;
    # else ().
    made_with: tuple[object, ...] = ()

    def __reduce__(self) -> str | tuple[Any, ...]:
        if self._general is None or is_reachable(self):
            return by_name(self)
        return _specialized, (self._general, self._fixed)

    def _build(self) -> str:
        whole("mlafix.dsl.frontend")
        from .frontend import build

        self.digest  # noqa: B018 (reads the file now, since it may be gone when the first call needs the digest)
        with reading(self.function):
            return build(self.function, self.options)

    def report(self, /, **bindings: object) -> Report:
        found = super().report(**bindings)
        found["warnings"] += [] if self._is_of_library else self._warnings_of_text
        return found

    report.__doc__ = Kernel.report.__doc__

    @cached_property
    def _warnings_of_text(self) -> list[dict[str, Any]]:
        whole("mlafix.dsl.unused")
        from .unused import warnings

        return warnings(Source(self.function))

    def _with(self, fixed: dict[str, str]) -> PythonKernel:
        made = PythonKernel(self.function, fixed, self.options)
        made._general, made.made_with = self, self.made_with
        # Specialisations share what was read from the function's text, so that it is read only once.
        made.__dict__.update({name: self.__dict__[name] for name in ("source", "_outside", "_warnings_of_text") if name in self.__dict__})
        return made

    @cached_property
    def _outside(self) -> Outside:
        with reading(self.function):
            return Outside(self.function, self.options)

    @property
    def digest(self) -> str:
        """The digest of the function. Raises CompileError if the function's text cannot be read, or if the value of an
        outside name has changed since the kernel was first used."""
        if self._is_of_library:
            return self._digest_of_library
        self._outside.check()
        return self._outside.digest

    @property
    def _is_of_library(self) -> bool:
        """True for a kernel of `mlafix.kernels`, whose outside names never change. A kernel that was made inside a
        function counts only if it has `made_with`."""
        module = self.function.__module__ or ""  # a function typed at a prompt may have no module
        return module.startswith(_LIBRARY) and ("<locals>" not in self.function.__qualname__ or bool(self.made_with))

    @cached_property
    def _digest_of_library(self) -> str:
        return digest_of_library(self.function, self.options, self.made_with)

    def _dispatcher(self, resolve: Callable[..., Any]) -> _runtime.Dispatcher:
        made = super()._dispatcher(resolve)
        if not self._is_of_library:
            made.watch(self._outside.watched, self._outside.renewed)
        return made

    @property
    def _identity(self) -> str:
        return f"{self.digest} {sorted(self._fixed.items())}"

    @cached_property
    def variants(self) -> PythonVariants:  # type: ignore[override]
        """The compiled specialisations, in memory and on disk."""
        return PythonVariants(self)

    @cached_property
    def _signature_text(self) -> str:  # type: ignore[override]
        ahead = self.variants.entries()
        if ahead:
            return json.dumps({"name": self.name, **ahead[0][1].declaration})
        if declaration := self.variants.declaration():
            return json.dumps({"name": self.name, **declaration})
        folder, name = cache.compiler_cache(), f"{self.name}.{self.digest}.json"
        kept = folder.read_record(name) if folder else None
        if kept is not None:
            return kept
        if toolchain.compiler_file() is None:
            raise UnitError(f'kernel "{self.name}": {self.variants.nothing_ahead()}')
        text: str = toolchain.compiler().signature(self.source, self.file, self.name)
        if folder:
            folder.write_record(name, text)
        return text


def _specialized(kernel: PythonKernel, fixed: Mapping[str, str]) -> Kernel:
    return kernel.specialize(**fixed)


class PythonVariants(TextlessVariants):
    """Specialisations that are looked up by the digest of the function."""

    _whole: PythonKernel

    def _chosen(self, unit: _runtime.Unit, bindings: Mapping[str, str]) -> Any:
        names = self._whole.signature["names"]
        fitting = [k for k in unit.kernels if k.name == self.kernel and manifest.fits(k.bindings, bindings, names)]
        # If several specialisations in a unit can run the call, take the one with the most bindings.
        return max(fitting, key=lambda kernel: len(kernel.bindings), default=unit)

    @property
    def identity(self) -> str:
        return keys.identity(self.kernel, self._whole.digest) if self._whole._is_of_library else ""

    def declaration(self) -> dict[str, Any] | None:
        """Returns the declaration from the first prebuilt archive that has the kernel, or None."""
        found = (archive.declaration(self.identity) for archive in _archive.archives(cache.prebuilt_folders()))
        return next((declaration for declaration in found if declaration), None)

    def entries(self) -> list[tuple[Path, manifest.Entry]]:
        """Returns the kernels that were compiled ahead from this function, each with its unit file."""
        namesakes = self._namesakes()
        digest = self._whole.digest if namesakes else ""
        return [(path, entry) for path, entry in namesakes if entry.digest == digest]

    def _namesakes(self) -> list[tuple[Path, manifest.Entry]]:
        """Returns the kernels with this kernel's name in all units compiled ahead, each with its unit file."""
        return [(path, entry) for path in self._files_ahead() for entry in manifest.entries_of(path) if entry.name == self.kernel]

    def _files_ahead(self) -> list[Path]:
        """Returns the unit files in the folders of units compiled ahead, and those beside the Python file that are
        named after that file or after the kernel."""
        files = [path for folder in _env.prebuilt_dirs() for path in sorted(folder.glob("*.mlafix"))]
        return [*files, *(path for path in self._files_beside() if path.is_file())]

    def _files_beside(self) -> list[Path]:
        """Returns the paths of the unit files to look for beside the Python file."""
        return sorted({self._python_file.with_suffix(".mlafix"), self._python_file.with_name(f"{self.kernel}.mlafix")})

    @property
    def _python_file(self) -> Path:
        return Path(self._whole.function.__code__.co_filename).absolute()

    def _places(self) -> list[str]:
        beside = " or ".join(path.name for path in self._files_beside())
        folders = " or ".join(str(folder) for folder in _env.prebuilt_dirs())
        return [f"{beside} in {self._python_file.parent}", f"any in {folders or 'a folder of MLAFIX_PREBUILT'}"]

    def nothing_ahead(self) -> str:
        """Returns the error message for a kernel that was not compiled ahead, if no compiler is installed."""
        places = " or ".join(self._places())
        reason = f"this installation has no compiler ({toolchain.INSTALL})"
        return f"expected a unit compiled ahead, {places}, got {self._others_ahead()}; {reason}"

    def _others_ahead(self) -> str:
        """Describes units that contain a kernel of this name, or lie beside the Python file, but do not belong to this
        function."""
        namesakes = self._namesakes()
        if namesakes:
            files = ", ".join(dict.fromkeys(str(path) for path, _ in namesakes))
            names = chosen_names(self._whole.function)
            if names and any(is_same_text(entry.digest, self._whole.digest) for _, entry in namesakes):
                one_of = "one of " if len(names) > 1 else ""
                other = f"compiled of the same text of the function, with another value of {one_of}{', '.join(names)}"
            else:
                other = "compiled of another text of the function"
            return f"one that was {other} ({files}): compile it again"
        held = [text for path in self._files_beside() if (text := _held(path))]
        misnamed = [path for path in sorted(self._python_file.parent.glob("*.mlafix")) if self.kernel in _names_in(path)]
        if misnamed:
            held.append(f'{" and ".join(path.name for path in misnamed)}, which holds "{self.kernel}" but has another name')
        return " and ".join(held) or "none"

    def _ahead(self, target: str) -> str:
        texts: dict[Path, list[str]] = {}
        for path, entry in self.entries():
            targets = "" if target in entry.targets else f" (on {', '.join(entry.targets)})"
            texts.setdefault(path, []).append(cache.listed(entry.bindings) + targets)
        return " and ".join(f"{path} for {_some(held)}" for path, held in texts.items()) or "none"

    def _file(self, bindings: Mapping[str, str], target: str) -> str:
        # With line information, the code contains line numbers. The digest does not depend on these, so the file's name
        # must not be made of the digest.
        if _env.line_info():
            return super()._file(bindings, target)
        return keys.unit_file_name(self.kernel, self._whole.digest, bindings, target)

    def _prebuilt(self, bindings: Mapping[str, str], target: str) -> _runtime.Unit | None:
        names = self._whole.signature["names"]
        for path, entry in self.entries():
            if target in entry.targets and manifest.fits(entry.bindings, bindings, names):
                try:
                    unit = self._unit(path, path.read_bytes(), bindings, target)
                except OSError:
                    continue
                if unit is not None:
                    return unit
        return None


def _names_in(path: Path) -> list[str]:
    """Returns the names of the kernels in a unit file, each once."""
    return list(dict.fromkeys(entry.name for entry in manifest.entries_of(path)))


def _held(path: Path) -> str:
    return f"{path.name}, which holds {', '.join(_names_in(path))}" if _names_in(path) else ""


def _some(texts: list[str], most: int = 8) -> str:
    """Joins the first `most` texts with "and", and says how many more there are."""
    rest = [f"{len(texts) - most} more"] if len(texts) > most else []
    return " and ".join([*texts[:most], *rest])
