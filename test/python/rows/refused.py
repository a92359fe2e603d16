"""Lists the instructions that ptxas emits but GPUs refuse, and finds them in assembled code.

    python test/python/rows/refused.py FILE...

A file is a cubin, a unit or an archive (.mlafix-archive). The exit status is 1 if a file has a refused instruction, or
if no instruction was found.

No disassembler is needed. On every GPU in include/mlafix/Targets.def, an instruction has 16 bytes. So refused
instructions are found by masks of two words of 64 bits.
"""

from __future__ import annotations

import dataclasses
import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np


@dataclasses.dataclass(frozen=True)
class Refused:
    """A refused instruction. In each of its two words, the bits that `masks` selects equal `values`.

    Args:
        name: the name that nvdisasm prints.
        why: which GPUs refuse the instruction, and which code leads to it.
    """

    name: str
    masks: tuple[int, int]
    values: tuple[int, int]
    why: str


REFUSED = (
    # F2IP has the same encoding from sm_86 to sm_121. sm_75 and sm_80 do not have this instruction.
    Refused(
        "F2IP.*.RELU",
        masks=(0x1FF, 0x800),
        values=(0x043, 0x800),
        why="an H100 and an H200 end the launch with 'an illegal instruction was encountered'; ptxas 12.9 to 13.4 makes it of a maximum "
        "with 0, a conversion to s32 and cvt.pack.sat",
    ),
)
_ELF = b"\x7fELF"
_PROGRAM = 1  # SHT_PROGBITS
_EXECUTED = 4  # SHF_EXECINSTR


@dataclasses.dataclass(frozen=True)
class Found:
    """A refused instruction in a function of a cubin. `offset` counts bytes from the function's beginning."""

    function: str
    offset: int
    refused: Refused

    def __str__(self) -> str:
        return f"{self.function}+{self.offset:#x}: {self.refused.name} ({self.refused.why})"


def functions(cubin: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields the name and the code of each function in a cubin."""
    table, size, count, names = *struct.unpack_from("<Q", cubin, 0x28), *struct.unpack_from("<3H", cubin, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", cubin, table + i * size) for i in range(count)]
    strings = sections[names][4]
    for name, kind, flags, _, offset, length in sections:
        if kind == _PROGRAM and flags & _EXECUTED:
            begin = strings + name
            title = cubin[begin : cubin.index(b"\0", begin)].decode()
            yield title.removeprefix(".text."), cubin[offset : offset + length]


def cubins(data: bytes) -> Iterator[bytes]:
    """Yields each cubin in `data`, which is a file or a block of an archive. A cubin starts at a multiple of 16 bytes.
    The bytes that follow the cubin are yielded with it, but functions() reads only the cubin's own sections."""
    at = data.find(_ELF)
    while at >= 0:
        if at % 16 == 0:
            yield data[at:]
        at = data.find(_ELF, at + 1)


def search(data: bytes) -> list[Found]:
    """Returns the refused instructions of all cubins in `data`."""
    found = []
    for cubin in cubins(data):
        for name, code in functions(cubin):
            words = np.frombuffer(code, "<u8").reshape(-1, 2)
            for refused in REFUSED:
                masks, values = np.array(refused.masks, np.uint64), np.array(refused.values, np.uint64)
                found += [Found(name, 16 * int(i), refused) for i in np.flatnonzero(((words & masks) == values).all(1))]
    return found


def _contents(path: Path) -> Iterator[bytes]:
    """Yields the bytes of a file. If the file is an archive, yields its blocks of GPU code. Yields nothing for a unit
    without GPU code."""
    import mlafix
    from mlafix._files import archive as _archive

    if path.suffix != _archive.SUFFIX:
        kernels = json.loads(mlafix.Unit.load(path).manifest)["kernels"] if path.suffix == ".mlafix" else None
        if kernels is None or any(code["target"].startswith("sm_") for kernel in kernels for code in kernel["code"]):
            yield path.read_bytes()
        return
    archive = _archive.Archive(path)
    for target, blocks in archive._places.items():
        for number in range(len(blocks)):
            if target.startswith("sm_"):
                yield archive._read_block(target, number, -1)


def main(paths: list[str]) -> int:
    """Prints the refused instructions of the files. Returns the exit status: 1 if there is a refused instruction, or if
    no instruction was found, else 0. Archives and units without GPU code are skipped; if all files are skipped, the
    status is 0."""
    looked = bad = files = 0
    for path in paths:
        blocks = list(_contents(Path(path)))
        files += bool(blocks)
        for data in blocks:
            looked += sum(len(code) // 16 for cubin in cubins(data) for _, code in functions(cubin))
            for found in search(data):
                print(f"{path}: {found}")
                bad += 1
    print(f"{looked} instructions of {files} files with code for GPUs, {bad} of them refused")
    return 1 if bad or (files and not looked) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
