"""An archive of compiled kernels: one file with units for many bindings and targets, as a wheel carries it.

Units of one target that resemble each other are compressed together, in blocks of 512 KiB to 16 MiB. A look-up reads the
directory, the table of its target and one block. Integers are little-endian:

    0    8 bytes    magic: "MLAFIXA\\n"
    8    u64        version, 2
    16   u64, u64   where the directory begins, and its bytes
    32              blocks: raw LZMA2 (`filters`) of units, one behind the other
                    tables, one for each target: xz of JSON {"blocks": [[offset, bytes], …],
                    "units": {IDENTITY: [[bindings, block, begin, bytes], …]}}
                    directory: xz of JSON {"declarations": {IDENTITY: text}, "targets": {TARGET: [offset, bytes]}}

An IDENTITY is that of a kernel (`_keys.identity`); its declaration is that of docs/UnitFormat.md, as text of JSON of its own. A dim that a unit leaves to
the launch has no binding. An archive is code, and must be trusted as code.
"""

from __future__ import annotations

import functools
import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _manifest

_log = logging.getLogger("mlafix")

SUFFIX = ".mlafix-archive"
_MAGIC = b"MLAFIXA\n"
_VERSION = 2
_HEADER = 32
_LZMA2, _PRESET = 0x21, 9 | 1 << 31  # lzma.FILTER_LZMA2, lzma.PRESET_EXTREME: lzma is imported where an archive is read
AND_LATER = "+"
"""Ends the name of a target whose units have PTX alone: "sm_75+", for GPUs that are later, too."""


def block_bytes(target: str) -> int:
    """Units are compressed together up to this size. A call decompresses a block up to its unit: 1 MiB takes 12 ms. PTX takes its driver longer."""
    if target.endswith(AND_LATER):
        return 1 << 24
    return 1 << 19 if target.startswith("x86-64-v") else 1 << 21


def filters(target: str) -> list[dict[str, int]]:
    """How blocks of a target are compressed. Instructions of GPUs have 16 bytes, so that a byte resembles the one that many before it."""
    is_machine_code = target.startswith("sm_") and not target.endswith(AND_LATER)
    context = {"lc": 0, "lp": 4, "pb": 4} if is_machine_code else {"lc": 3, "lp": 0, "pb": 0}
    return [{"id": _LZMA2, "preset": _PRESET, "dict_size": block_bytes(target), **context}]


class Archive:
    """An archive that is there. Its contents are read when they are asked for.

    Args:
        path: the file.

    Raises:
        OSError, ValueError, lzma.LZMAError, ImportError: it cannot be read, or is no archive; or this Python has no lzma.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        header = self._read(0, _HEADER)
        version, *directory = (int.from_bytes(header[at : at + 8], "little") for at in (8, 16, 24))
        if not header.startswith(_MAGIC) or version != _VERSION:
            raise ValueError(f"{path}: expected an archive of version {_VERSION}, got something else")
        found = _json(self._read(*directory))
        # Text: a call needs one of them.
        self._declarations: dict[str, str] = found["declarations"]
        self._targets: dict[str, list[int]] = found["targets"]
        self._table = functools.lru_cache(maxsize=None)(self._read_table)
        # Of two blocks at most, how much was decompressed.
        self._blocks: dict[tuple[str, int], bytes] = {}

    def targets(self) -> list[str]:
        return list(self._targets)

    def declaration(self, identity: str) -> dict[str, Any] | None:
        """How a kernel is declared, if the archive has it."""
        found: dict[str, Any] | None = json.loads(self._declarations.get(identity, "null"))
        return found

    def find(self, identity: str, bindings: Mapping[str, str], target: str) -> tuple[int, int, int] | None:
        """The place of the unit for a call with these bindings, bound to most of them; None if there is none."""
        declaration = self.declaration(identity) if target in self._targets else None
        if declaration is None:
            return None
        names = declaration["names"]
        found = [entry for entry in self._table(target)["units"].get(identity, ()) if _manifest.fits(entry[0], bindings, names)]
        if not found:
            return None
        _, block, begin, size = max(found, key=lambda entry: len(entry[0]))
        return block, begin, size

    def read(self, target: str, place: tuple[int, int, int]) -> bytes:
        """The unit at a place that `find` has found."""
        block, begin, size = place
        held = self._blocks.get((target, block))
        if held is None or len(held) < begin + size:
            # A process that needs two units of a block may need more of them.
            most = -1 if held is not None else begin + size
            held = self._read_block(target, block, most)
            others = [(key, data) for key, data in self._blocks.items() if key != (target, block)]
            self._blocks = dict([*others[-1:], ((target, block), held)])
        return held[begin : begin + size]

    def bound(self, kernel: str, name: str) -> set[str]:
        """What a name of a kernel is bound to in any unit."""
        tables = (self._table(target)["units"] for target in self._targets)
        return {
            entry[0][name]
            for table in tables
            for identity, entries in table.items()
            if identity.startswith(f"{kernel}.")
            for entry in entries
            if name in entry[0]
        }

    def count(self) -> int:
        """How many units it has."""
        return sum(len(entries) for target in self._targets for entries in self._table(target)["units"].values())

    def _read(self, offset: int, size: int) -> bytes:
        with open(self.path, "rb") as file:
            data = os.pread(file.fileno(), size, offset)
        if len(data) != size:
            raise ValueError(f"{self.path}: expected {size} bytes at {offset}, got {len(data)}")
        return data

    def _read_table(self, target: str) -> dict[str, Any]:
        return _json(self._read(*self._targets[target]))

    def _read_block(self, target: str, block: int, most: int) -> bytes:
        """A block, or so many bytes of it."""
        import lzma

        unpacker = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters(target))
        return unpacker.decompress(self._read(*self._table(target)["blocks"][block]), most)


def archives(folders: Iterable[Path]) -> list[Archive]:
    """The archives of these folders, in order."""
    return [archive for folder in folders for archive in _archives_of(folder)]


@functools.lru_cache(maxsize=None)
def _archives_of(folder: Path) -> tuple[Archive, ...]:
    found = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            found.append(Archive(path))
        except Exception as error:  # of lzma, too
            _log.warning("%s: not used: %s", path, error)
    return tuple(found)


def _json(packed: bytes) -> dict[str, Any]:
    import lzma

    found: dict[str, Any] = json.loads(lzma.decompress(packed))
    return found


def _packed(value: Any) -> bytes:
    import lzma

    return lzma.compress(json.dumps(value, separators=(",", ":")).encode())


Units = Mapping[str, Sequence[tuple[Mapping[str, str], bytes]]]
"""Of each kernel, by identity: what each unit is bound to, and its bytes."""


def write(path: Path, declarations: Mapping[str, Any], units: Mapping[str, Units]) -> None:
    """Writes an archive.

    Args:
        path: the file.
        declarations: of each kernel, by identity.
        units: of each target. They are compressed in this order, so those that resemble each other belong together.
    """
    import lzma
    from concurrent.futures import ThreadPoolExecutor

    with open(path, "wb") as file:
        file.write(bytes(_HEADER))

        def place(data: bytes) -> list[int]:
            file.write(data)
            return [file.tell() - len(data), len(data)]

        targets = {}
        for target, kernels in units.items():
            blocks: list[bytearray] = []
            table: dict[str, list[list[Any]]] = {}
            for identity, bindings, data in ((identity, *entry) for identity, entries in kernels.items() for entry in entries):
                if not blocks or len(blocks[-1]) + len(data) > block_bytes(target):
                    blocks.append(bytearray())
                table.setdefault(identity, []).append([dict(bindings), len(blocks) - 1, len(blocks[-1]), len(data)])
                blocks[-1] += data
            # lzma lets other threads run.
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                packed = list(pool.map(lambda block: lzma.compress(bytes(block), lzma.FORMAT_RAW, filters=filters(target)), blocks))  # noqa: B023
            places = [place(data) for data in packed]
            targets[target] = place(_packed({"blocks": places, "units": table}))
        texts = {identity: json.dumps(declaration, separators=(",", ":")) for identity, declaration in declarations.items()}
        directory = place(_packed({"declarations": texts, "targets": targets}))
        file.seek(0)
        file.write(_MAGIC + b"".join(number.to_bytes(8, "little") for number in (_VERSION, *directory)))
