"""Finds compiled kernels, in this order: in memory, among units compiled ahead, in the cache on disk, with the compiler.

A specialisation is a kernel's source with bindings (``{"H": "128", "D": "128", "T": "bf16", "out_lse": "absent"}``) for
one target. On disk, it is one unit file, whose name contains a digest of source, bindings and target. The cache has a
folder for each version of compiler and assembler. If several processes need the same specialisation, one compiles it
and the others wait. If a file does not load or contains another specialisation, the kernel is compiled again. If a
folder cannot be used, a CacheWarning says so, and kernels are compiled without it.

A call asks for the specialisation with exactly the optional arguments that it passes. If that is missing, the call uses
a specialisation that leaves optional arguments open, provided that one was compiled ahead or explicitly. In this case
no compiler runs.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from . import _env, _runtime
from ._files import archive as _archive
from ._files import disk, keys, toolchain
from ._launcher import manifest, recording
from .errors import UnitError

_log = logging.getLogger("mlafix")
_PACKAGE_UNITS = Path(__file__).parent / "units"

_memory: dict[str, _runtime.Unit] = {}
_locks: dict[str, threading.Lock] = {}
_guard = threading.Lock()


def _forget_locks() -> None:
    """Replaces the locks in a forked child, since the threads that held them do not exist there."""
    global _guard
    _guard = threading.Lock()
    _locks.clear()


os.register_at_fork(after_in_child=_forget_locks)


def target_of(device_type: int, ordinal: int = 0) -> str:
    """Returns the target with the best code for a device.

    Args:
        device_type: DLPack's number for the type of the device: 1 for the CPU, 2 for CUDA.
        ordinal: the number of the CUDA device.

    Raises:
        DriverError: there is no CUDA driver or no such device.
    """
    return _target_of(device_type, ordinal, os.environ.get("MLAFIX_CPU_TARGET"))


@functools.lru_cache(maxsize=None)
def _target_of(device_type: int, ordinal: int, _asked: str | None) -> str:
    return _runtime.device_target("cpu" if device_type == 1 else f"cuda:{ordinal}")


def clear_memory() -> None:
    """Forgets the units in memory. Units that a kernel's calls have used already stay with that kernel."""
    with _guard:
        _memory.clear()


class Variants:
    """The compiled specialisations of one kernel.

    Args:
        kernel: the kernel's name in the source.
        source: the text in MLIR's syntax, or a function that makes it.
        file: the name of the source in messages.
    """

    def __init__(self, kernel: str, source: str | Callable[[], str], file: str = "") -> None:
        self.kernel = kernel
        self.file = file or f"<{kernel}>"
        self._source = source

    @property
    def digest(self) -> str:
        """The digest that units of this kernel contain (Kernel.digest). "" unless a subclass overrides it."""
        return ""

    @property
    def source(self) -> str:
        """The kernel's text."""
        if not isinstance(self._source, str):
            self._source = self._source()
        return self._source

    def _compiled(self) -> str:
        """Returns the text to compile. A subclass adds source locations if MLAFIX_LINE_INFO asks for them."""
        return self.source

    def __call__(self, bindings: Mapping[str, str], device_type: int, ordinal: int) -> _runtime.Unit | _runtime.KernelInfo:
        """Returns the unit or kernel for a call on a device. A Dispatcher calls this as `resolve`. Raises the errors of
        :meth:`load`, and DriverError.

        Args:
            bindings: the bindings of the call, with "present" or "absent" for each optional argument.
            device_type: DLPack's number for the type of the device: 1 for the CPU, 2 for CUDA.
            ordinal: the number of the CUDA device.
        """
        if recording.recorders and (recorder := recording.recorder_of_thread()):
            recorder(recording.Needed(self, bindings))
            raise recording.Recorded
        return self._chosen(self.unit_of_call(bindings, target_of(device_type, ordinal)), bindings)

    def _chosen(self, unit: _runtime.Unit, bindings: Mapping[str, str]) -> _runtime.Unit | _runtime.KernelInfo:
        """Returns the unit. If the unit has a single kernel and this kernel leaves a name open that the call binds,
        returns the kernel instead: a look-up in the unit with the call's bindings would not find it."""
        kernel = unit.kernels[0]
        is_found = all(name in kernel.bindings for name, value in bindings.items() if value not in ("present", "absent"))
        return unit if is_found or len(unit.kernels) > 1 else kernel

    def unit_of_call(self, bindings: Mapping[str, str], target: str) -> _runtime.Unit:
        """Returns the unit that runs a call with these bindings. Raises the errors of :meth:`load`."""
        loose = {name: value for name, value in bindings.items() if value not in ("present", "absent")}
        if len(loose) == len(bindings):
            return self._ready(bindings, target) or self._archived(bindings, target) or self.load(bindings, target)
        unit = self._ready(bindings, target) or _memory.get(self._file(loose, target)) or self._prebuilt(loose, target) or self._archived(bindings, target)
        if unit is not None:
            return unit
        try:
            return self.load(bindings, target)
        except UnitError as error:  # there is no compiler, or compiling is forbidden
            with contextlib.suppress(UnitError):
                return self.load(loose, target)
            raise error

    def load(self, bindings: Mapping[str, object], target: str) -> _runtime.Unit:
        """Returns the unit of one specialisation. Compiles it if necessary.

        Args:
            bindings: a value for each upper-case name: {"H": 128, "D": 128, "T": "bf16", "out_lse": "present"}. An
                optional argument is "present" or "absent", or stays open if it has no binding.
            target: "sm_90", "x86-64-v3".

        Raises:
            CompileError: the kernel does not compile for this target with these bindings.
            UnitError: the unit does not exist, and compiling is forbidden (MLAFIX_STRICT=1) or there is no compiler.
        """
        bound = {name: str(value) for name, value in bindings.items()}
        name = self._file(bound, target)
        unit = _memory.get(name)
        if unit is not None:
            return unit
        with _guard:
            lock = _locks.setdefault(name, threading.Lock())
        with lock:
            unit = self._ready(bound, target)
            if unit is None:
                unit = _memory[name] = self._made(name, bound, target)
        return unit

    def is_kept(self, bindings: Mapping[str, object], target: str) -> bool:
        """True if another process would find the compiled specialisation among units compiled ahead or in the cache on
        disk."""
        bound = {name: str(value) for name, value in bindings.items()}
        return (self._prebuilt(bound, target) or self._cached(compiler_cache(), bound, target)) is not None

    def _file(self, bindings: Mapping[str, str], target: str) -> str:
        options = ["line-info"] if _env.line_info() else []
        return keys.unit_file_name(self.kernel, self._compiled(), bindings, target, *options)

    def _ready(self, bindings: Mapping[str, str], target: str) -> _runtime.Unit | None:
        """Returns the unit if it is in memory, was compiled ahead, or is in the cache on disk. Returns None
        otherwise."""
        name = self._file(bindings, target)
        unit = _memory.get(name)
        if unit is None:
            unit = self._prebuilt(bindings, target) or self._cached(compiler_cache(), bindings, target)
            if unit is not None:
                _memory[name] = unit
        return unit

    def _prebuilt(self, bindings: Mapping[str, str], target: str) -> _runtime.Unit | None:
        name = self._file(bindings, target)
        for folder in prebuilt_folders():
            path = folder / name
            with contextlib.suppress(OSError), open(path, "rb") as file:
                data = disk.unit_bytes(path, file)
                unit = None if data is None else self._unit(path, data, bindings, target)
                if unit is not None:
                    return unit
        return None

    @property
    def identity(self) -> str:
        """The kernel's identity in archives; "" for a kernel that no archive contains."""
        return keys.identity(self.kernel, self.source)

    def _archived(self, bindings: Mapping[str, str], target: str) -> _runtime.Unit | None:
        """Returns the unit in an archive that runs a call with these bindings, or None. The unit may have fewer
        bindings."""
        identity = "" if _env.line_info() else self.identity
        if not identity:
            return None
        for archive in _archive.archives(prebuilt_folders()):
            for name in _image_targets(target):
                place = archive.find(identity, bindings, name)
                if place is None:
                    continue
                # The key does not contain the call's bindings, since calls with different sizes of an open dim run the
                # same unit.
                key = f"{archive.path} {name} {place}"
                unit = _memory.get(key) or self._unit(archive.path, archive.read(name, place), bindings, name.removesuffix(_archive.AND_LATER))
                if unit is not None:
                    return _memory.setdefault(key, unit)
        return None

    def _cached(self, folder: disk.Folder | None, bindings: Mapping[str, str], target: str) -> _runtime.Unit | None:
        if folder is None:
            return None
        name = self._file(bindings, target)
        data = folder.read(name)
        return None if data is None else self._unit(folder.path / name, data, bindings, target)

    def _unit(self, path: Path, data: bytes, bindings: Mapping[str, str], target: str) -> _runtime.Unit | None:
        """Loads the unit from a file's bytes. Returns None if it does not load, or if it contains another
        specialisation."""
        try:
            unit = _runtime.Unit.from_bytes(data)
        except UnitError as error:
            wrong = str(error)
        else:
            if any(self._is_variant(kernel, bindings, target) for kernel in unit.kernels):
                return unit
            got = ", ".join(f'"{one.name}" for {listed(one.bindings)} on {", ".join(one.targets)}' for one in unit.kernels) or "none"
            wrong = f'expected kernel "{self.kernel}" for {listed(bindings)} on {target}, got {got}'
        _log.warning("%s: not used, and made anew where that is possible: %s", path, wrong)
        return None

    def _is_variant(self, kernel: _runtime.KernelInfo, bindings: Mapping[str, str], target: str) -> bool:
        # A unit has no bindings of names on which its code does not depend. Any value of such a name fits.
        return (
            kernel.name == self.kernel
            and target in kernel.targets
            and all(manifest.is_same(kernel.bindings.get(name, value), value) for name, value in bindings.items())
        )

    def _made(self, name: str, bindings: dict[str, str], target: str) -> _runtime.Unit:
        """Compiles the unit and stores it in the cache. If there is no compiler or compiling is forbidden,
        returns the unit for another target."""
        if _env.strict() or toolchain.compiler_file() is None:
            return self._without_compiler(bindings, target)
        folder = compiler_cache()
        with folder.only_process(name) if folder else contextlib.nullcontext(False) as shared:
            # Another process may have compiled the specialisation while this one waited for the lock.
            unit = self._cached(folder, bindings, target) if shared else None
            if unit is not None:
                return unit
            data = self._compile(bindings, target)
            unit = _runtime.Unit.from_bytes(data)
            if folder and shared:
                folder.write(name, data)
            return unit

    def _compile(self, bindings: dict[str, str], target: str) -> bytes:
        _log.info("compiling %s %s for %s", self.kernel, bindings, target)
        data = toolchain.compiler().compile(
            self._compiled(),
            self.file,
            kernel=self.kernel,
            specializations=[bindings],
            targets=[target],
            emit="unit",
            ptxas=_env.ptxas(),
            digest=self.digest,
            line_info=_env.line_info(),
        )
        return bytes(data)

    def _without_compiler(self, bindings: dict[str, str], target: str) -> _runtime.Unit:
        """Returns a unit for an older target that the device also runs. If there is none, raises UnitError, which lists
        the places that were searched."""
        for other in _older_targets(target):
            unit = self._prebuilt(bindings, other)
            if unit is not None:
                return unit
        if (unit := self._archived(bindings, target)) is not None:
            return unit
        reason = "MLAFIX_STRICT forbids compiling it" if _env.strict() else f"this installation has no compiler ({toolchain.INSTALL})"
        cached = compiler_cache()
        fault = cached.fault() if cached else ""
        unused = f" (which is not used: {fault})" if fault else ""
        places = [*self._places(), *([f"one in {cached.path}{unused}"] if cached else [])]
        raise UnitError(
            f'kernel "{self.kernel}": expected a compiled specialisation for {listed(bindings)} on {target}, '
            f"{' or '.join(places)}, got {self._ahead(target)}, and {reason}"
        )

    def _places(self) -> list[str]:
        """Describes the places that are searched for units compiled ahead: ["one in FOLDER"]."""
        return [f"one in {folder}" for folder in prebuilt_folders()]

    def _ahead(self, target: str) -> str:
        """Describes the units compiled ahead from this kernel, with their bindings and targets. Returns "none" unless a
        subclass overrides this method."""
        return "none"


def compiler_cache() -> disk.Folder | None:
    """Returns the cache folder of this compiler. Returns None if nothing is kept on disk."""
    root = _env.cache_dir()
    if root is None:
        return None
    return disk.Folder(root / keys.compiler_folder(*toolchain.compiler_facts(), *toolchain.assembler_facts()))


def prebuilt_folders() -> list[Path]:
    """Returns the folders of units compiled ahead, in search order."""
    return [*_env.prebuilt_dirs(), _PACKAGE_UNITS]


# Jetson GPUs cannot run machine code of other GPUs, and other GPUs cannot run that of Jetson GPUs: CUDA C++ Programming
# Guide, "Binary Compatibility".
_BOARDS = ("sm_87", "sm_88", "sm_110")


def _image_targets(target: str) -> list[str]:
    """Returns the targets in an archive whose code a device of `target` runs, best first. A server or workstation GPU
    runs machine code for earlier GPUs of the same major version. Every GPU runs PTX for all earlier GPUs."""
    older = _older_targets(target)
    if not target.startswith("sm_"):
        return [target, *older]
    same = [name for name in older if name[:-1] == target[:-1] and target not in _BOARDS and name not in _BOARDS]
    return [target, *same, *(name + _archive.AND_LATER for name in (target, *older))]


def _older_targets(target: str) -> list[str]:
    """Returns the older targets whose machine code or PTX a device of `target` also runs, best first."""
    if not target.startswith("sm_"):
        cpus = [name for name in _runtime.TARGETS if name.startswith(target.partition("-v")[0])]
        return cpus[cpus.index(target) + 1 :] if target in cpus else []
    gpus = [name for name in _runtime.TARGETS if name.startswith("sm_")]
    return [name for name in reversed(gpus) if int(name[3:]) < int(target[3:])]


def listed(bindings: Mapping[str, str]) -> str:
    """Formats bindings for a message: "D=64, T=f16"."""
    return ", ".join(f"{name}={value}" for name, value in sorted(bindings.items())) or "any call"
