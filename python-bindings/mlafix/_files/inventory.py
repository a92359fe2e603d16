"""Describes an installation: its compiler, assembler, devices, and compiled kernels on disk."""

from __future__ import annotations

import contextlib
import json
import platform
from collections.abc import Iterator
from pathlib import Path

from .. import _env, _runtime, cache, library
from ..errors import CompileError, DriverError
from . import archive as _archive
from . import toolchain

# Suffixes of the files in the cache's folders.
_KEPT = (".mlafix", ".json", ".lock")


def facts() -> dict[str, str]:
    """Returns the lines that ``python -m mlafix info`` prints, by heading."""
    return {
        "mlafix": f"{_runtime.__version__}, ABI {_runtime.ABI_VERSION}",
        "python": f"{platform.python_version()}, {Path(__file__).parents[1]}",
        "compiler": _compiler(),
        "assembler": _assembler(),
        "devices": ", ".join(_devices()),
        "cache": _cache(),
        "prebuilt": ", ".join(_prebuilt()),
        "library": ", ".join(library.names()),
    }


def _compiler() -> str:
    try:
        return f"{toolchain.compiler().version()}, {toolchain.compiler_file()}"
    except CompileError as error:
        return f"none ({error})"


def _assembler() -> str:
    """Returns the assembler that the compiler uses for PTX, or the reason why there is none. Compiles a library kernel
    to find out, since a unit names its assembler."""
    try:
        kernel = library.kernel(library.names()[0])
        bound = {name: _EXAMPLES.get(name, "4") for name, default in kernel.signature["names"].items() if default is None}
        made = kernel._emit("unit", ["sm_90"], bound)
    except CompileError as error:
        return f"none ({error})" if toolchain.compiler_file() else "none, as there is no compiler"
    images = json.loads(_runtime.Unit.from_bytes(bytes(made)).manifest)["kernels"][0]["code"][0]["images"]
    return next((image["assembler"] for image in images if "assembler" in image), "none: units hold PTX, which the driver compiles")


_EXAMPLES = {"T": "f32", "O": "f32", "I": "i32", "B": "e"}


def _devices() -> Iterator[str]:
    yield f"cpu {_runtime.device_target('cpu')}"
    count = _runtime.cuda_device_count()
    for ordinal in range(count):
        yield f"cuda:{ordinal} {_runtime.device_target(f'cuda:{ordinal}')}"
    if not count:
        try:
            _runtime.device_target("cuda:0")
        except DriverError as error:
            yield f"no GPU ({error})"


def _prebuilt() -> Iterator[str]:
    for folder in cache.prebuilt_folders():
        count = len(list(folder.glob("*.mlafix"))) + sum(archive.count() for archive in _archive.archives([folder]))
        yield f"{folder} ({count} units)"


def _cache() -> str:
    root = _env.cache_dir()
    if root is None:
        return "none: nothing is kept on disk"
    found = cached_folders()
    count = sum(files for _, files, _ in found)
    return f"{root}, {count} file{'' if count == 1 else 's'}, {size_text(sum(size for _, _, size in found))}"


def cached_folders() -> list[tuple[Path, int, int]]:
    """Returns the folders of the cache, one per compiler, each as (path, number of files, size in bytes)."""
    root = _env.cache_dir()
    found = []
    for folder in sorted(path for path in _paths(root) if path.is_dir()) if root else []:
        sizes = [_size(path) for path in _paths(folder) if path.suffix in _KEPT]
        found.append((folder, len(sizes), sum(sizes)))
    return found


def clear_cache(*, only_old: bool) -> int:
    """Removes the cache's folders, or with `only_old` the folders of other compilers only. Returns the number of bytes
    freed.

    Keeps a folder that also contains a file with a suffix that the cache does not use. Files that another process adds
    meanwhile may stay.
    """
    current = cache.compiler_cache()
    freed = 0
    for folder, _, _ in cached_folders():
        paths = _paths(folder)
        foreign = [path for path in paths if path.suffix not in _KEPT and not path.name.startswith(".new-")]
        if foreign or (only_old and current and folder == current.path):
            continue
        for path in paths:
            freed += _size(path)
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            folder.rmdir()
    return freed


def _paths(folder: Path) -> list[Path]:
    """Returns the paths in a folder. Returns [] if the folder cannot be read."""
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def _size(path: Path) -> int:
    """Returns the size of a file in bytes, or 0 if another process has removed the file."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def size_text(size: float) -> str:
    """Formats a size: "1.5 MiB" for 1572864."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
