"""Where compiled kernels come from: memory, units compiled ahead, the cache on disk, the compiler. In that order.

A variant is a kernel's source specialised by bindings (``{"H": "128", "D": "128", "T": "bf16", "out_lse": "absent"}``)
for one target. On disk it is one unit file, named by a digest of exactly that; the cache keeps a folder for each compiler,
so that another version, or another assembler, starts afresh. Files appear by renaming, and one process compiles while the
others that want the same variant wait for it. A file that does not load is compiled anew.

A call wants the variant for exactly the optional arguments that it gives. While there is none, one that leaves them open
serves it as well, if that was compiled ahead or asked for by name: whoever did so does not want a compiler to run.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import importlib
import importlib.util
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from . import _env, _keys, _runtime
from .errors import CompileError, UnitError

_log = logging.getLogger("mlafix")
_PACKAGE_UNITS = Path(__file__).parent / "units"
# Compute capabilities with chips of their own, as the compiler names them; for devices that nothing was compiled for.
_GPU_TARGETS = (75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121)

_memory: dict[str, _runtime.Unit] = {}
_locks: dict[str, threading.Lock] = {}
_guard = threading.Lock()


def target_of(device_type: int, ordinal: int = 0) -> str:
    """The target that a device runs best.

    Args:
        device_type: DLPack's: 1 for the CPU, 2 for CUDA.
        ordinal: the CUDA device's.

    Raises:
        DriverError: no CUDA driver, or no such device.
    """
    return _target_of(device_type, ordinal, os.environ.get("MLAFIX_CPU_TARGET"))


@functools.lru_cache(maxsize=None)
def _target_of(device_type: int, ordinal: int, _asked: str | None) -> str:
    return _runtime.device_target("cpu" if device_type == 1 else f"cuda:{ordinal}")


def clear_memory() -> None:
    """Forget the units held in memory. (Those that kernels have resolved already stay with them.)"""
    with _guard:
        _memory.clear()


class Variants:
    """The compiled variants of one kernel.

    Args:
        kernel: its name in the source.
        source: the text in MLIR's syntax, or a function that makes it.
        file: what stands for the source in messages.
    """

    def __init__(self, kernel: str, source: str | Callable[[], str], file: str = "") -> None:
        self.kernel = kernel
        self.file = file or f"<{kernel}>"
        self._source = source

    @property
    def source(self) -> str:
        """The text that is compiled."""
        if not isinstance(self._source, str):
            self._source = self._source()
        return self._source

    def __call__(self, bindings: Mapping[str, str], device_type: int, ordinal: int) -> _runtime.Unit:
        """What a Dispatcher asks for: a variant that runs a call, on a device. Raises as :meth:`load` does, and DriverError.

        Args:
            bindings: as the call has them, "present" or "absent" for each optional argument.
            device_type: DLPack's: 1 for the CPU, 2 for CUDA.
            ordinal: the CUDA device's.
        """
        target = target_of(device_type, ordinal)
        loose = {name: value for name, value in bindings.items() if value not in ("present", "absent")}
        if len(loose) == len(bindings):
            return self.load(bindings, target)
        name = self._file(loose, target)
        unit = self._ready(self._file(bindings, target)) or _memory.get(name) or _find_prebuilt(name)
        if unit is not None:
            return unit
        try:
            return self.load(bindings, target)
        except UnitError as error:  # nothing compiles here
            with contextlib.suppress(UnitError):
                return self.load(loose, target)
            raise error

    def load(self, bindings: Mapping[str, object], target: str) -> _runtime.Unit:
        """The unit of one variant, compiled if there is none yet.

        Args:
            bindings: a value for each upper-case name, "present" or "absent" for optional arguments that are not to be
                left open: {"H": 128, "D": 128, "T": "bf16", "out_lse": "present"}.
            target: "sm_90", "x86-64-v3".

        Raises:
            CompileError: the kernel does not compile so.
            UnitError: there is none, and compiling is forbidden (MLAFIX_STRICT=1) or there is no compiler.
        """
        bound = {name: str(value) for name, value in bindings.items()}
        name = self._file(bound, target)
        unit = _memory.get(name)
        if unit is not None:
            return unit
        with _guard:
            lock = _locks.setdefault(name, threading.Lock())
        with lock:
            unit = self._ready(name)
            if unit is None:
                unit = _memory[name] = self._made(name, bound, target)
        return unit

    def _file(self, bindings: Mapping[str, str], target: str) -> str:
        return _keys.variant_file(self.kernel, self.source, bindings, target)

    def _ready(self, name: str) -> _runtime.Unit | None:
        """The unit in memory, or of a file that was compiled ahead or cached."""
        unit = _memory.get(name)
        if unit is None:
            unit = _find_prebuilt(name) or _read(_cache_path(name))
            if unit is not None:
                _memory[name] = unit
        return unit

    def _made(self, name: str, bindings: dict[str, str], target: str) -> _runtime.Unit:
        """The unit that the compiler makes, and keeps."""
        if _env.strict() or _compiler_file() is None:
            return self._without_compiler(bindings, target)
        path = _cache_path(name)
        with _only_process(path) as shared:
            # Another process may have compiled it while this one waited.
            unit = _read(path) if shared else None
            if unit is not None:
                return unit
            data = self._compile(bindings, target)
            unit = _runtime.Unit.from_bytes(data)
            if path and shared:
                _write(path, data)
            return unit

    def _compile(self, bindings: dict[str, str], target: str) -> bytes:
        _log.info("compiling %s %s for %s", self.kernel, bindings, target)
        data = compiler().compile(
            self.source,
            self.file,
            kernel=self.kernel,
            specializations=[bindings],
            targets=[target],
            emit="unit",
            ptxas=_env.ptxas(),
        )
        return bytes(data)

    def _without_compiler(self, bindings: dict[str, str], target: str) -> _runtime.Unit:
        """What was compiled for an older chip of the kind, or an error that says what there could have been."""
        for other in _older_targets(target):
            unit = _find_prebuilt(self._file(bindings, other))
            if unit is not None:
                return unit
        wanted = ", ".join(f"{name}={value}" for name, value in sorted(bindings.items()))
        reason = "MLAFIX_STRICT forbids compiling it" if _env.strict() else "this installation has no compiler"
        places = [str(folder) for folder in (*_prebuilt_folders(), _compiler_cache()) if folder]
        raise UnitError(
            f'kernel "{self.kernel}": expected a compiled variant for {wanted} on {target} in '
            f"{' or '.join(places) or 'some folder'}, got none, and {reason}"
        )


def compiler() -> Any:
    """The extension module ``mlafix._compiler``.

    Raises:
        CompileError: this installation has none, or its libraries are missing.
    """
    try:
        return importlib.import_module("mlafix._compiler")
    except ImportError as error:
        raise CompileError(f"expected the compiler (the extension module mlafix._compiler), got: {error}") from error


@functools.lru_cache(maxsize=None)
def _compiler_file() -> str | None:
    """Path of the compiler's module, found without loading it, which takes longer than loading a unit."""
    spec = importlib.util.find_spec("mlafix._compiler")
    return spec.origin if spec else None


@functools.lru_cache(maxsize=None)
def _compiler_facts() -> tuple[str, ...]:
    """All that may change what the compiler makes of the same source."""
    path = _compiler_file()
    facts = [_runtime.__version__, str(_runtime.ABI_VERSION)]
    if path is not None:
        # The module is thin: what compiles is the library beside it.
        for file in (Path(path), *sorted(Path(path).parent.glob("libmlafix_compiler.so*"))):
            stat = file.stat()
            facts += [str(stat.st_size), str(stat.st_mtime_ns)]
    return tuple(facts)


@functools.lru_cache(maxsize=None)
def _assembler(path: str) -> str:
    return shutil.which("ptxas", path=path) or ""


def _compiler_cache() -> Path | None:
    """The folder on disk for what this compiler makes, or None if nothing is kept."""
    root = _env.cache_dir()
    if root is None:
        return None
    assembler = (*_env.assemblers(), _assembler(os.environ.get("PATH", "")))
    return root / _keys.compiler_folder(*_compiler_facts(), *assembler)


def _cache_path(name: str) -> Path | None:
    folder = _compiler_cache()
    return folder / name if folder else None


def _prebuilt_folders() -> list[Path]:
    return [*_env.prebuilt_dirs(), _PACKAGE_UNITS]


def _find_prebuilt(name: str) -> _runtime.Unit | None:
    for folder in _prebuilt_folders():
        unit = _read(folder / name)
        if unit is not None:
            return unit
    return None


def _older_targets(target: str) -> list[str]:
    """Targets whose code, or PTX, a device of `target` runs too, best first."""
    if not target.startswith("sm_"):
        older = ["x86-64-v4", "x86-64-v3", "x86-64"]
        return older[older.index(target) + 1 :] if target in older else []
    capability = int(target[3:])
    return [f"sm_{older}" for older in reversed(_GPU_TARGETS) if older < capability]


def _read(path: Path | None) -> _runtime.Unit | None:
    """The unit at `path`, or None if there is none that loads."""
    if path is None:
        return None
    try:
        data = path.read_bytes()
    except OSError:
        return None
    try:
        return _runtime.Unit.from_bytes(data)
    except UnitError as error:
        _log.warning("%s: not used, and made anew where that is possible: %s", path, error)
        return None


def _write(path: Path, data: bytes) -> None:
    """Put a file there whole, or not at all. A disk that refuses it costs time later, and nothing else."""
    temporary = ""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file:
            temporary = file.name
            file.write(data)
        os.replace(temporary, path)
    except OSError as error:
        _log.warning("%s: cannot keep a compiled kernel: %s", path, error)
        with contextlib.suppress(OSError):
            os.unlink(temporary)


@contextlib.contextmanager
def _only_process(path: Path | None) -> Iterator[bool]:
    """Hold the lock that belongs to a file. Yields whether the folder can be used at all."""
    if path is None:
        yield False
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # what lies there is run
        lock = open(path.with_suffix(".lock"), "ab")  # noqa: SIM115 (closed below)
    except OSError as error:
        _log.warning("%s: cannot keep compiled kernels: %s", path.parent, error)
        yield False
        return
    with lock:
        # A file system without locks (OSError): then two processes may compile the same, and both rename it into place.
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield True
