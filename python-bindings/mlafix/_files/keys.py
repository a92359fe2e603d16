"""Computes the file names of compiled kernels: digests of everything that determines their code.

Uses only the standard library, so that the build can run it as a program before the package is complete:

    python keys.py KERNEL SOURCE BINDINGS TARGET     prints the file name, for example merge.0123456789abcdef.mlafix
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping

# Version of the naming scheme. A change renames all files.
_FORMAT = 1
# Matches kernel names that appear unchanged in file names. Other kernels appear as "kernel".
_PLAIN = re.compile("[A-Za-z_][A-Za-z0-9_]{0,63}")


def _digest(*parts: str | bytes) -> str:
    """Returns 16 hexadecimal digits of SHA-256 over the parts and their lengths."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.hexdigest()[:16]


def unit_file_name(kernel: str, source: str, bindings: Mapping[str, str], target: str, *options: str) -> str:
    """Returns the file name of a unit that contains one specialisation of a kernel.

    Args:
        kernel: the kernel's name in the source, which may be any text.
        source: the text that is compiled.
        bindings: the bindings of the specialisation: {"D": "128", "T": "bf16"}.
        target: the compiler's target: "sm_90", "x86-64-v3".
        options: options of the compiler that differ from the default: "line-info".
    """
    bound = [f"{name}={bindings[name]}" for name in sorted(bindings)]
    # The digest identifies the unit; the plain name helps people who look at the folder.
    shown = kernel if _PLAIN.fullmatch(kernel) else "kernel"
    return f"{shown}.{_digest(str(_FORMAT), kernel, source, *bound, target, *options)}.mlafix"


def identity(kernel: str, source: str) -> str:
    """Returns a kernel's identity in an archive: its name, and a digest of the text that determines its code."""
    return f"{kernel}.{_digest(str(_FORMAT), kernel, source)}"


def digest_of(name: str, text: bytes) -> bytes:
    """Returns the checksum of a record: a digest of its file's name and its text."""
    return _digest(str(_FORMAT), name, text).encode()


def compiler_folder(*facts: str) -> str:
    """Returns the name of the folder for kernels of one compiler: a digest of its version, files and assembler."""
    return _digest(str(_FORMAT), *facts)


def _main(kernel: str, source_path: str, bindings: str, target: str) -> None:
    with open(source_path, encoding="utf-8") as file:
        source = file.read()
    bound = dict(item.split("=", 1) for item in bindings.split(",") if item)
    print(unit_file_name(kernel, source, bound, target))


if __name__ == "__main__":
    _main(*sys.argv[1:])
