"""An archive of compiled kernels: a file with units for many bindings and targets. Wheels contain such archives.

Similar units of one target are compressed together in a block. A look-up reads the directory, a few records, and one block
up to the unit. Integers are little-endian:

    0    8 bytes    magic: "MLAFIXA\\n"
    8    u64        version, 3
    16   u64, u64   offset and size of the directory in bytes
    32              blocks: raw LZMA2 (`filters`) of units, each padded with zeros to a multiple of 16 bytes
                    records: groups of kernels' records, each group compressed as xz
                    directory: JSON compressed as xz, {"blocks": {TARGET: [[offset, bytes], …]}, "records": [[offset, bytes], …],
                    "kernels": {IDENTITY: [number of the group, begin, bytes]}}

An IDENTITY identifies a kernel (`keys.identity`). Its record is JSON: {"declaration": as in docs/UnitFormat.md, "units":
{TARGET: [[bindings, block, begin, bytes], …]}}. A dim whose size is known only at the launch has no binding. Archives
contain code that is executed, so use only archives that you trust.
"""

from __future__ import annotations

import functools
import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .._launcher import manifest

_log = logging.getLogger("mlafix")

SUFFIX = ".mlafix-archive"
_MAGIC = b"MLAFIXA\n"
_VERSION = 3
_HEADER = 32
# The size of a GPU instruction in bytes. LZMA predicts a byte from its position modulo this size (`filters`). So each
# unit begins at a multiple of this size in its block.
_ALIGNMENT = 16
# Records are compressed in groups of about this many bytes. With larger groups, a look-up takes more than 1 ms.
_RECORD_BYTES = 1 << 16
_LZMA2, _PRESET = 0x21, 9 | 1 << 31  # lzma.FILTER_LZMA2, lzma.PRESET_EXTREME; lzma is imported only to read or write archives
AND_LATER = "+"
"""The suffix of a target whose units contain only PTX. Units for "sm_75+" run on sm_75 and on later GPUs."""


def filters(target: str) -> list[dict[str, int]]:
    """Returns the LZMA filters for blocks of a target. A GPU instruction has 16 bytes, so a byte of machine code
    resembles the byte 16 positions before it. The filters for machine code therefore predict a byte from its position
    modulo 16 (`lp` and `pb` of 4 bits)."""
    is_machine_code = target.startswith("sm_") and not target.endswith(AND_LATER)
    context = {"lc": 0, "lp": 4, "pb": 4} if is_machine_code else {"lc": 3, "lp": 0, "pb": 0}
    return [{"id": _LZMA2, "preset": _PRESET, "dict_size": 1 << (24 if target.endswith(AND_LATER) else 21), **context}]


class Archive:
    """An existing archive, read on demand.

    Args:
        path: the file.

    Raises:
        OSError, ValueError, lzma.LZMAError, ImportError: the file cannot be read or is not an archive, or this Python has
        no lzma.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        header = self._read(0, _HEADER)
        version, *directory = (int.from_bytes(header[at : at + 8], "little") for at in (8, 16, 24))
        if not header.startswith(_MAGIC) or version != _VERSION:
            got = f"version {version}" if header.startswith(_MAGIC) else "no mlafix archive"
            raise ValueError(f"expected an archive of version {_VERSION}, got {got}; install mlafix again, or make the archive with this version")
        found = _unpacked(self._read(*directory))
        self._places: dict[str, list[list[int]]] = found["blocks"]
        self._records_at: list[list[int]] = found["records"]
        self._kernels: dict[str, list[int]] = found["kernels"]
        self._records = functools.lru_cache(maxsize=None)(self._read_records)
        self._record = functools.lru_cache(maxsize=None)(self._read_record)
        # The decompressed bytes of at most two blocks, by (target, block). The bytes after the unit that was read first
        # may be missing.
        self._blocks: dict[tuple[str, int], bytes] = {}

    def targets(self) -> list[str]:
        return list(self._places)

    def declaration(self, identity: str) -> dict[str, Any] | None:
        """Returns the declaration of a kernel, or None if the archive does not have the kernel."""
        found: dict[str, Any] | None = self._record(identity)["declaration"]
        return found

    def find(self, identity: str, bindings: Mapping[str, str], target: str) -> tuple[int, int, int] | None:
        """Returns the unit for a call with these bindings as (block, offset in bytes, size in bytes). If several units
        fit, chooses the one with the most bindings. Returns None if no unit fits."""
        record = self._record(identity)
        found = [entry for entry in record["units"].get(target, ()) if manifest.fits(entry[0], bindings, record["declaration"]["names"])]
        if not found:
            return None
        _, block, begin, size = max(found, key=lambda entry: len(entry[0]))
        return block, begin, size

    def read(self, target: str, place: tuple[int, int, int]) -> bytes:
        """Returns the bytes of the unit at a place that `find` returned. Returns fewer bytes if the unit's block is
        damaged."""
        block, begin, size = place
        held = self._blocks.get((target, block))
        if held is None or len(held) < begin + size:
            # The first read of a block decompresses it up to the unit. The second read decompresses the whole block,
            # since the process probably needs more units of it.
            most = -1 if held is not None else begin + size
            held = self._read_block(target, block, most)
            others = [(key, data) for key, data in self._blocks.items() if key != (target, block)]
            self._blocks = dict([*others[-1:], ((target, block), held)])
        return held[begin : begin + size]

    def bound(self, kernel: str, name: str) -> set[str]:
        """Returns the values that the units of a kernel bind to `name`."""
        records = (self._record(identity)["units"] for identity in self._kernels if identity.startswith(f"{kernel}."))
        return {entry[0][name] for units in records for entries in units.values() for entry in entries if name in entry[0]}

    def count(self) -> int:
        """Returns the number of units in the archive."""
        return sum(len(entries) for identity in self._kernels for entries in self._record(identity)["units"].values())

    def _read(self, offset: int, size: int) -> bytes:
        with open(self.path, "rb") as file:
            data = os.pread(file.fileno(), size, offset)
        if len(data) != size:
            raise ValueError(f"{self.path}: expected {size} bytes at {offset}, got {len(data)} (is the file truncated?)")
        return data

    def _read_records(self, number: int) -> bytes:
        import lzma

        return lzma.decompress(self._read(*self._records_at[number]))

    def _read_record(self, identity: str) -> dict[str, Any]:
        """Returns the record of a kernel. Returns a record without units if the archive lacks the kernel or the record
        is damaged."""
        found: dict[str, Any] = {"declaration": None, "units": {}}
        if identity in self._kernels:
            try:
                number, begin, size = self._kernels[identity]
                found = json.loads(self._records(number)[begin : begin + size])
            except Exception as error:  # lzma may raise anything
                _log.warning("%s: %s is not used: %s", self.path, identity, error)
        return found

    def _read_block(self, target: str, block: int, most: int) -> bytes:
        """Decompresses a block, or only its first `most` bytes if `most` is not negative. Returns b"" if the block is
        damaged."""
        import lzma

        unpacker = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters(target))
        try:
            return unpacker.decompress(self._read(*self._places[target][block]), most)
        except Exception as error:
            _log.warning("%s: a block for %s is not used: %s", self.path, target, error)
            return b""


def archives(folders: Iterable[Path]) -> list[Archive]:
    """Returns the archives in these folders, in the order of the folders."""
    return [archive for folder in folders for archive in _archives_of(folder)]


@functools.lru_cache(maxsize=None)
def _archives_of(folder: Path) -> tuple[Archive, ...]:
    found = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            found.append(Archive(path))
        except Exception as error:  # lzma may raise anything
            _log.warning("%s: not used: %s", path, error)
    return tuple(found)


def _unpacked(packed: bytes) -> dict[str, Any]:
    import lzma

    found: dict[str, Any] = json.loads(lzma.decompress(packed))
    return found


Unit = tuple[str, Mapping[str, str], bytes]
"""A unit to write: the identity of its kernel, its bindings, and its bytes."""


def write(path: Path, declarations: Mapping[str, Any], units: Mapping[str, Sequence[Sequence[Unit]]]) -> None:
    """Writes an archive.

    Args:
        path: the file.
        declarations: the declaration of each kernel, by identity.
        units: for each target, the units of each block.
    """
    import lzma
    from concurrent.futures import ThreadPoolExecutor

    with open(path, "wb") as file:
        file.write(bytes(_HEADER))

        def place(data: bytes) -> list[int]:
            file.write(data)
            return [file.tell() - len(data), len(data)]

        records: dict[str, Any] = {identity: {"declaration": text, "units": {}} for identity, text in declarations.items()}
        places = {}
        for target, blocks in units.items():
            texts = [bytearray() for _ in blocks]
            for number, block in enumerate(blocks):
                for identity, bindings, data in block:
                    of_kernel = records[identity]["units"].setdefault(target, [])
                    of_kernel.append([dict(bindings), number, len(texts[number]), len(data)])
                    texts[number] += data + bytes(-len(data) % _ALIGNMENT)
            # lzma releases the GIL, so threads work in parallel.
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                packed = list(pool.map(lambda text: lzma.compress(bytes(text), lzma.FORMAT_RAW, filters=filters(target)), texts))  # noqa: B023
            places[target] = [place(data) for data in packed]
        groups = [bytearray()]
        kernels = {}
        for identity, record in records.items():
            if len(groups[-1]) > _RECORD_BYTES:
                groups.append(bytearray())
            text = _text(record)
            kernels[identity] = [len(groups) - 1, len(groups[-1]), len(text)]
            groups[-1] += text
        directory = {"blocks": places, "records": [place(lzma.compress(bytes(group))) for group in groups], "kernels": kernels}
        end = place(lzma.compress(_text(directory)))
        file.seek(0)
        file.write(_MAGIC + b"".join(number.to_bytes(8, "little") for number in (_VERSION, *end)))


def _text(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
