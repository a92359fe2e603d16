"""Kernels made of Python functions, and what is known of them without the compiler.

A function has a digest of what it says (digest.py). Units that are compiled of it are marked with the digest and hold
its signature, and so does a small file in the cache beside them. A kernel whose code was compiled ahead, or by another
process, is therefore called without reading the function's body and without loading the compiler, or where there is none.
"""

from __future__ import annotations

import functools
import json
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import _env, _keys, _manifest, _runtime, _toolchain, cache
from .._kernel import Kernel, TextlessVariants
from ..errors import UnitError
from .digest import digest


class PythonKernel(Kernel):
    """What ``@mlafix.kernel`` makes of a function.

    Args:
        function: written in the language (docs/Python.md).
        fixed: names bound already; see :meth:`specialize`.
        bounds: "guard" or "prove"; see ``@mlafix.kernel``.
    """

    def __init__(self, function: types.FunctionType, fixed: Mapping[str, str] | None = None, bounds: str = "guard") -> None:
        # Messages name the Python file by the locations in the text; the text itself needs another name.
        super().__init__(function.__name__, self._build, f"<{function.__name__} in MLIR>", fixed)
        functools.update_wrapper(self, function)
        self.function, self.bounds = function, bounds

    def _build(self) -> str:
        from .frontend import build

        self.digest  # noqa: B018 (the file that both read may be gone at the first call)
        return build(self.function, self.bounds)

    def _with(self, fixed: dict[str, str]) -> PythonKernel:
        made = PythonKernel(self.function, fixed, self.bounds)
        # The function's text is read once for all of them.
        made.__dict__.update({name: self.__dict__[name] for name in ("source", "digest") if name in self.__dict__})
        return made

    @functools.cached_property
    def digest(self) -> str:  # type: ignore[override]
        """Of what the function says. Raises CompileError where its text cannot be read."""
        return digest(self.function, self.bounds)

    @property
    def _identity(self) -> str:
        return f"{self.digest} {sorted(self._fixed.items())}"

    @functools.cached_property
    def variants(self) -> PythonVariants:  # type: ignore[override]
        """The compiled specialisations, in memory and on disk."""
        return PythonVariants(self)

    @functools.cached_property
    def _signature_text(self) -> str:  # type: ignore[override]
        ahead = self.variants.entries()
        if ahead:
            return json.dumps({"name": self.name, **ahead[0][1].declaration})
        folder, name = cache.compiler_cache(), f"{self.name}.{self.digest}.json"
        kept = folder.read(name) if folder else None
        if kept is not None:
            return kept.decode()
        if _toolchain.compiler_file() is None:
            raise UnitError(f'kernel "{self.name}": {self.variants.nothing_ahead()}')
        text: str = _toolchain.compiler().signature(self.source, self.file, self.name)
        if folder:
            folder.write(name, text.encode())
        return text


class PythonVariants(TextlessVariants):
    """Specialisations that are found by the digest of the function."""

    def __init__(self, kernel: PythonKernel) -> None:
        super().__init__(kernel)
        self._python = kernel

    def __call__(self, bindings: Mapping[str, str], device_type: int, ordinal: int) -> Any:
        unit = super().__call__(bindings, device_type, ordinal)
        names = self._python.signature["names"]
        fitting = [k for k in unit.kernels if k.name == self.kernel and _manifest.fits(k.bindings, bindings, names)]
        # A unit may have several specialisations that run the call: the one that was compiled for most of it.
        return max(fitting, key=lambda kernel: len(kernel.bindings), default=unit)

    def entries(self) -> list[tuple[Path, _manifest.Entry]]:
        """The kernels of units compiled ahead of this function, and their files."""
        digest = self._python.digest
        return [(path, entry) for path, entry in self._namesakes() if entry.digest == digest]

    def _namesakes(self) -> list[tuple[Path, _manifest.Entry]]:
        """Kernels of this name in units compiled ahead."""
        return [(path, entry) for path in self._files_ahead() for entry in _manifest.entries_of(path) if entry.name == self.kernel]

    def _files_ahead(self) -> list[Path]:
        """Unit files in the folders of units compiled ahead; beside the Python file those called as it or as the kernel."""
        files = [path for folder in _env.prebuilt_dirs() for path in sorted(folder.glob("*.mlafix"))]
        python_file = Path(self._python.function.__code__.co_filename)
        beside = {python_file.with_suffix(".mlafix"), python_file.with_name(f"{self.kernel}.mlafix")}
        return [*files, *sorted(path for path in beside if path.is_file())]

    def nothing_ahead(self) -> str:
        """What is wrong where a kernel was not compiled ahead, and nothing compiles here."""
        places = ", ".join(str(folder) for folder in (*_env.prebuilt_dirs(), Path(self._python.function.__code__.co_filename).parent))
        others = ", ".join(dict.fromkeys(str(path) for path, _ in self._namesakes()))
        got = f"one that was compiled of another text of the function ({others}): compile it again" if others else "none"
        return f"expected a unit compiled ahead in {places}, got {got}; this installation has no compiler (pip install mlafix[compiler])"

    def _file(self, bindings: Mapping[str, str], target: str) -> str:
        if _env.line_info():  # then the lines count, too
            return super()._file(bindings, target)
        return _keys.unit_file_name(self.kernel, self._python.digest, bindings, target)

    def _prebuilt(self, bindings: Mapping[str, str], target: str) -> _runtime.Unit | None:
        names = self._python.signature["names"]
        for path, entry in self.entries():
            if target in entry.targets and _manifest.fits(entry.bindings, bindings, names):
                try:
                    unit = self._unit(path, path.read_bytes(), bindings, target)
                except OSError:
                    continue
                if unit is not None:
                    return unit
        return None
