"""Parses PTX text into instructions. Supports the output of LLVM's NVPTX back end, including inline assembly."""

from __future__ import annotations

import dataclasses
import re

WIDTHS = {"pred": 1, **{f"{kind}{bits}": bits for kind in "busf" for bits in (8, 16, 32, 64)}}
_DECLARED = re.compile(r"\.reg\s+\.(\w+)\s+(.+);")
_SHARED = re.compile(r"\.shared\s+\.align\s+(\d+)\s+\.[bu](\d+)\s+([\w$]+)(?:\[(\d+)\])?;")
_LOCAL = re.compile(r"\.local\s+\.align\s+(\d+)\s+\.b8\s+([\w$]+)\[(\d+)\];")
_PARAM = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)(?:\s+\.ptr[^,]*?)?\s+([\w$]+)(?:\[(\d+)\])?,?$")
_ADDRESS = re.compile(r"\[\s*([%\w$]+)\s*(?:\+\s*(-?\w+))?\s*\]")


class PtxError(Exception):
    """An error in PTX text, or during its execution."""


@dataclasses.dataclass
class Address:
    """The address `[base + offset]`, where base is a register, a parameter or a variable."""

    base: str
    offset: int


@dataclasses.dataclass
class Instruction:
    """One instruction.

    Args:
        parts: the parts of the instruction's name, such as ["ld", "global", "v4", "b32"].
        operands: registers and numbers as text, tuples of them, and addresses.
        guard: the predicate under which the instruction executes, or None.
        negated: True if the instruction executes where the predicate is false.
        line: the line number in the text, from 1.
    """

    parts: list[str]
    operands: list[object]
    guard: str | None
    negated: bool
    line: int

    def __str__(self) -> str:
        return f"line {self.line}: {'.'.join(self.parts)}"


@dataclasses.dataclass
class Entry:
    """A kernel.

    Args:
        params: name to (offset in the bytes of all parameters, size in bytes).
        registers: name to number of bits; 1 for predicates.
        shared, local: variable's name to (offset, size) in bytes.
        shared_bytes, local_bytes: the total sizes.
        cluster: the number of blocks in a cluster.
        labels: label to the index of the instruction after it.
    """

    name: str
    params: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    registers: dict[str, int] = dataclasses.field(default_factory=dict)
    shared: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    local: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    shared_bytes: int = 0
    cluster: int = 1
    local_bytes: int = 0
    labels: dict[str, int] = dataclasses.field(default_factory=dict)
    code: list[Instruction] = dataclasses.field(default_factory=list)


def _operand(text: str, rename: dict[str, str]) -> object:
    text = text.strip()
    if text.startswith("{"):
        return tuple(_operand(one, rename) for one in text[1:-1].split(","))
    if text.startswith("["):
        match = _ADDRESS.fullmatch(text)
        if not match:
            raise PtxError(f"expected [base + offset], got {text}")
        return Address(rename.get(match[1], match[1]), int(match[2] or "0", 0))
    if "|" in text:
        return tuple(_operand(one, rename) for one in text.split("|"))
    return rename.get(text, text)


def _split(text: str) -> list[str]:
    """Splits operands at commas outside of brackets."""
    found, depth, one = [], 0, ""
    for letter in text:
        depth += (letter in "{[") - (letter in "}]")
        if letter == "," and depth == 0:
            found.append(one)
            one = ""
        else:
            one += letter
    return [*found, one] if one.strip() else found


class _Parser:
    def __init__(self, text: str) -> None:
        self.entries: dict[str, Entry] = {}
        self.entry: Entry | None = None
        self.scopes: list[dict[str, str]] = []
        self.scope_count = 0
        for number, line in enumerate(text.splitlines(), 1):
            line = line.split("//")[0].strip()
            if line:
                self.line(line, number)

    def line(self, line: str, number: int) -> None:
        if line.startswith((".visible .entry", ".entry")):
            name = line.split(".entry")[1].partition("(")[0].strip()
            self.entry = self.entries[name] = Entry(name)
        elif self.entry is None or line in ("(", ")") or line.split()[0] in (".loc", ".file", ".pragma"):
            pass
        elif not self.scopes and line.startswith(".param"):
            self.param(line)
        elif line.startswith(".reqnctapercluster"):
            self.entry.cluster = int(line.split()[1].rstrip(","))
        elif line == "{":
            self.scopes.append({})
        elif line == "}":
            self.scopes.pop()
            if not self.scopes:
                self.entry = None
        elif self.scopes:
            self.statement(line, number)

    def param(self, line: str) -> None:
        assert self.entry is not None
        match = _PARAM.fullmatch(line)
        if not match:
            raise PtxError(f"expected a parameter, got {line}")
        size = WIDTHS[match[1]] // 8 * int(match[3] or 1)
        end = max((at + bytes for at, bytes in self.entry.params.values()), default=0)
        self.entry.params[match[2]] = ((end + 15) // 16 * 16, size)

    def statement(self, line: str, number: int) -> None:
        assert self.entry is not None
        if match := _DECLARED.fullmatch(line):
            self.declare(match[1], match[2])
        elif match := _SHARED.fullmatch(line):
            at = -(-self.entry.shared_bytes // int(match[1])) * int(match[1])
            size = int(match[2]) // 8 * int(match[4] or 1)
            self.entry.shared[match[3]] = (at, size)
            self.entry.shared_bytes = at + size
        elif match := _LOCAL.fullmatch(line):
            at = -(-self.entry.local_bytes // int(match[1])) * int(match[1])
            self.entry.local[match[2]] = (at, int(match[3]))
            self.entry.local_bytes = at + int(match[3])
        elif line.endswith(":"):
            self.entry.labels[self.scopes[-1].get(line[:-1], line[:-1])] = len(self.entry.code)
        else:
            for one in line.split(";"):
                if one.strip():
                    self.instruction(one.strip(), number)

    def declare(self, kind: str, names: str) -> None:
        """Declares registers. Gives those of an inner scope unique names."""
        assert self.entry is not None
        for name in names.split(","):
            name = name.strip()
            many = re.fullmatch(r"(.+)<(\d+)>", name)
            if many:
                for i in range(int(many[2])):
                    self.entry.registers[f"{many[1]}{i}"] = WIDTHS[kind]
                continue
            own = name
            if len(self.scopes) > 1:
                self.scope_count += 1
                own = self.scopes[-1][name] = f"{name}@{self.scope_count}"
            self.entry.registers[own] = WIDTHS[kind]

    def instruction(self, text: str, number: int) -> None:
        assert self.entry is not None
        rename = {name: own for scope in self.scopes for name, own in scope.items()}
        guard, negated = None, False
        if text.startswith("@"):
            guard, text = text[1:].split(None, 1)
            negated = guard.startswith("!")
            guard = guard.lstrip("!")
            guard = rename.get(guard, guard)
        name, _, rest = text.partition(" ") if " " in text.split("\t")[0] else text.partition("\t")
        operands = [_operand(one, rename) for one in _split(rest)]
        self.entry.code.append(Instruction(name.strip().split("."), operands, guard, negated, number))


def parse(text: str) -> dict[str, Entry]:
    """Parses a PTX module. Returns its kernels by their names."""
    return _Parser(text).entries
