"""Splits the text of the compiler's stages into lines. Each line has the number of the source line from which it comes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_PLACE = re.compile(r'"([^"]*)":(\d+):\d+')
# Matches a location in a line. Parentheses may be nested two levels deep.
_ANY_LOC = re.compile(r"\s*loc\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
_PTX_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"')
_PTX_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+\d+")


@dataclass(frozen=True)
class Line:
    """A line of text, and the number (from 1) of the source line from which it comes. The number is 0 if the line
    comes from no source line."""

    text: str
    source: int = 0


def source_lines(text: str) -> list[Line]:
    """Splits a source into lines. The `source` of each line is its own number."""
    return [Line(line, number) for number, line in enumerate(text.splitlines(), 1)]


def around(source: Sequence[Line], used: Collection[int]) -> list[Line]:
    """Returns the lines of a source from the first used one to the last. Returns all lines if none is used.

    Includes adjacent lines that belong to them: decorators and the head of a function above, indented lines and closing
    brackets below.
    """
    if not used:
        return list(source)
    first, last = min(used), min(max(used), len(source))
    while first > 1 and source[first - 2].text.strip():
        first -= 1
    indent = _indent(source[first - 1].text)
    while last < len(source) and (text := source[last].text).strip() and (_indent(text) > indent or text.strip()[0] in ")]}"):
        last += 1
    return list(source[first - 1 : last])


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def located_file(text: str) -> str:
    """Returns the file that occurs in the most locations of a text in MLIR's syntax. Returns "" if there are no
    locations."""
    counts = Counter(name for name, _ in _PLACE.findall(text))
    return counts.most_common(1)[0][0] if counts else ""


def mlir_lines(text: str, file: str) -> list[Line]:
    """Parses text in MLIR's syntax with locations (``line_info``). The resulting lines contain no locations.

    Args:
        text: the compiler's output.
        file: the name of the source in the locations.
    """
    raw = text.splitlines()
    aliases = {match[1]: match[2] for line in raw if (match := _ALIAS.match(line))}

    def find(location: str, depth: int = 0) -> int:
        for name, number in _PLACE.findall(location):
            if name == file:
                return int(number)
        for alias in re.findall(r"#loc\d*", location):
            if depth < 8 and alias in aliases and (found := find(aliases[alias], depth + 1)):
                return found
        return 0

    lines: list[Line] = []
    opened: list[int] = []  # indices in `lines` of operations whose location follows the closing brace of their region
    for line in raw:
        if _ALIAS.match(line) or not line.strip():
            continue
        plain, locations = _ANY_LOC.sub("", line), _ANY_LOC.findall(line)
        if plain.endswith("{") and not plain.strip().startswith("}"):
            opened.append(len(lines))
            locations = []  # the locations found belong to the kernel's arguments, not to the line's operation
        number = find(locations[-1]) if locations else 0
        if plain.strip().startswith("}") and not plain.endswith("{") and opened:
            begin = opened.pop()
            lines[begin] = Line(lines[begin].text, number)
        lines.append(Line(plain, number))
    return lines


def ptx_lines(text: str, file: str) -> list[Line]:
    """Parses PTX with line information. An instruction comes from the source line in the last .loc directive before it."""
    wanted = {match[1] for line in text.splitlines() if (match := _PTX_FILE.match(line)) and Path(match[2]).name == Path(file).name}
    lines: list[Line] = []
    current = 0
    for line in text.splitlines():
        if match := _PTX_LOC.match(line):
            current = int(match[2]) if match[1] in wanted else 0
            continue
        if ".entry" in line or line.startswith("}"):
            current = 0
        if _PTX_FILE.match(line) or line.strip().startswith(("//", ".section")) or not line.strip():
            continue
        lines.append(Line(line.replace("\t", "    "), current if line.startswith(("\t", " ")) else 0))
    return lines
