"""Parses the subset of LLVM IR that kernels use. Functions do not call each other; each is the program of one
thread."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

_DEFINE = re.compile(r"define [^@]*@(?P<name>[\w.$]+)\((?P<params>.*)\)[^{]*\{$")
_VALUE = re.compile(r"%[\w.$]+")


@dataclass(frozen=True)
class Type:
    """A scalar type ("float", "half", "bfloat", "i32", "ptr"), or a vector of `count` such elements. `count` is 0 for a
    scalar."""

    name: str
    count: int = 0

    @property
    def bytes(self) -> int:
        return self.scalar_bytes * max(1, self.count)

    @property
    def scalar_bytes(self) -> int:
        sizes = {"float": 4, "double": 8, "half": 2, "bfloat": 2, "ptr": 8}
        return sizes[self.name] if self.name in sizes else (int(self.name[1:]) + 7) // 8


@dataclass
class Instruction:
    result: str  # the name of the result; "" if there is none
    text: str  # everything after "=", without metadata

    @property
    def opcode(self) -> str:
        words = self.text.split(" ", 2)
        return words[1] if words[0] in ("tail", "musttail", "notail") else words[0]


@dataclass
class Function:
    name: str
    params: list[str]  # the names of the parameters, such as "%0"
    blocks: dict[str, list[Instruction]] = field(default_factory=dict)
    entry: str = ""


def parse_function(text: str, name: str) -> Function:
    """Parses the function `name` of a module's text. Raises ValueError if there is no such function."""
    lines = iter(text.splitlines())
    for line in lines:
        found = _DEFINE.match(line)
        if found and found["name"] == name:
            break
    else:
        raise ValueError(f"expected a function '{name}' in the module, got none")
    function = Function(name, [_VALUE.findall(param)[-1] for param in split(found["params"])])
    # The entry block has no label. LLVM gives it the next number after the parameters.
    function.entry = current = f"%{len(function.params)}"
    function.blocks[current] = []
    for line in lines:
        line = line.split(" ; ")[0].rstrip()
        line = re.sub(r"\s+;.*$", "", line)
        if line == "}":
            return function
        if not line.strip():
            continue
        label = re.match(r"([\w.$]+):", line)
        if label:
            current = "%" + label[1]
            function.blocks[current] = []
            continue
        function.blocks[current].append(_instruction(line.strip()))
    raise ValueError(f"expected the end of '{name}', got the end of the file")


def _instruction(line: str) -> Instruction:
    line = re.sub(r", ![\w.]+ !\w+", "", line)
    line = re.sub(r" #\d+$", "", line)
    result, equals, rest = line.partition(" = ")
    return Instruction(result, rest) if equals and result.startswith("%") else Instruction("", line)


def split(text: str) -> list[str]:
    """Splits a list at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += char in "(<[{"
        depth -= char in ")>]}"
        if char == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return parts + [last] if last else parts


def take_type(text: str) -> tuple[Type, str]:
    """Returns the type at the start of `text`, and the rest."""
    vector = re.match(r"<(\d+) x (\w+)( addrspace\(\d+\))?>\s*", text)
    if vector:
        return Type(vector[2], int(vector[1])), text[vector.end() :]
    scalar = re.match(r"(\w+)( addrspace\(\d+\))?\s*", text)
    if not scalar:
        raise ValueError(f"expected a type, got '{text}'")
    return Type(scalar[1]), text[scalar.end() :]


_ATTRIBUTES = re.compile(r"^(noundef|nonnull|align \d+|captures\([^)]*\)|range\([^)]*\)|writeonly|readonly|noalias|nofpclass\([^)]*\))\s+")


def drop_attributes(text: str) -> str:
    """Returns `text` without the attributes in front of a value."""
    while found := _ATTRIBUTES.match(text):
        text = text[found.end() :]
    return text


def float_bits(text: str, name: str) -> int:
    """Returns the bits of a float constant in LLVM's notation: decimal, "0x" with the bits of a double, "0xH" with the
    bits of a half, or "0xR" with the bits of a bfloat."""
    if text.startswith("0x") and text[2] in "RH":
        return int(text[3:], 16)
    value = struct.unpack(">d", int(text, 16).to_bytes(8, "big"))[0] if text.startswith("0x") else float(text)
    if name == "float":
        return struct.unpack("<I", struct.pack("<f", value))[0]
    if name == "half":
        return struct.unpack("<H", struct.pack("<e", value))[0]
    if name == "bfloat":
        return struct.unpack("<I", struct.pack("<f", value))[0] >> 16
    return struct.unpack("<Q", struct.pack("<d", value))[0]
