"""Reads the manifest of a unit file without loading the unit, and tells which of its kernels can run a call."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

_MAGIC = b"MLAFIX\r\n"
_HEADER = 64


class Entry(NamedTuple):
    """One kernel of a unit file: its name, bindings, targets and declaration."""

    name: str
    bindings: dict[str, str]
    targets: tuple[str, ...]
    declaration: dict[str, Any]

    @property
    def digest(self) -> str:
        """The digest of the Python function from which the kernel was made; "" if there is none."""
        return str(self.declaration.get("digest", ""))


def entries(text: str | bytes) -> list[Entry]:
    """Returns those kernels of a manifest that have a declaration (docs/UnitFormat.md)."""
    found = []
    for kernel in json.loads(text)["kernels"]:
        if "declaration" in kernel:
            bindings = {name: str(value) for name, value in kernel.get("bindings", {}).items()}
            targets = tuple(code["target"] for code in kernel["code"])
            found.append(Entry(kernel["name"], bindings, targets, kernel["declaration"]))
    return found


def entries_of(path: Path) -> Sequence[Entry]:
    """Returns the kernels of a unit file. Returns () or [] if the file is not a unit or cannot be read."""
    try:
        status = os.stat(path)
        return _entries_of(path, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError, KeyError, TypeError):
        return ()


@functools.lru_cache(maxsize=4096)
def _entries_of(path: Path, _modified: int, _size: int) -> list[Entry]:
    with open(path, "rb") as file:
        text = text_of(file)
    return entries(text) if text else []


def text_of(unit: BinaryIO) -> bytes:
    """Reads the manifest of a unit (docs/UnitFormat.md), which is JSON. Returns b"" if the file is not a unit."""
    header = unit.read(_HEADER)
    is_unit = len(header) == _HEADER and header.startswith(_MAGIC)
    return unit.read(int.from_bytes(header[24:32], "little")) if is_unit else b""


def fits(bindings: Mapping[str, str], asked: Mapping[str, str], defaults: Mapping[str, object]) -> bool:
    """True if a kernel that was compiled with `bindings` can run a call with the bindings `asked`.

    The code of the kernel does not depend on names of `asked` that `bindings` lacks, so these may have any value. Names
    of `bindings` that `asked` lacks must be bound to their defaults. If a default is itself a name of `bindings`, the
    value of that name is the default.
    """

    def default(name: str) -> object:
        found = defaults.get(name)
        return bindings.get(found, found) if isinstance(found, str) else found

    return all(is_same(value, str(asked[name] if name in asked else default(name))) for name, value in bindings.items())


def is_same(bound: str, asked: str) -> bool:
    """True if two values of a binding are equal. Integers are compared by value: "8" equals "008"."""
    return bound == asked or (bound.isdecimal() and asked.isdecimal() and int(bound) == int(asked))
