"""Text of the compiler's stages, line by line, each with the line of the source that it comes from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_PLACE = re.compile(r'"([^"]*)":(\d+):\d+')
# Between the parentheses of a location, as it stands in a line: up to two levels of nesting, no line break.
_ANY_LOC = re.compile(r"\s*loc\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
_PTX_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"')
_PTX_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+\d+")


@dataclass(frozen=True)
class Line:
    """A line of text, and the number of the source's line that it comes from, counted from 1; 0 if from none."""

    text: str
    source: int = 0


def source_lines(text: str) -> list[Line]:
    """The lines of the source, each as its own origin."""
    return [Line(line, number) for number, line in enumerate(text.splitlines(), 1)]


def around(source: Sequence[Line], used: Collection[int]) -> list[Line]:
    """The lines of a source from the first that is used to the last, with what belongs to them: decorators and the head of a
    function above, what is indented and closing brackets below. All lines if none is used."""
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
    """The file that most locations of a text in MLIR's syntax name; "" if there is none."""
    counts = Counter(name for name, _ in _PLACE.findall(text))
    return counts.most_common(1)[0][0] if counts else ""


def mlir_lines(text: str, file: str) -> list[Line]:
    """Text in MLIR's syntax with locations (``line_info``); the lines are without them.

    Args:
        text: what the compiler wrote.
        file: the source's name in the locations.
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
    opened: list[int] = []  # lines whose operation ends, and has its location, at a brace to come
    for line in raw:
        if _ALIAS.match(line) or not line.strip():
            continue
        plain, locations = _ANY_LOC.sub("", line), _ANY_LOC.findall(line)
        if plain.endswith("{") and not plain.strip().startswith("}"):
            opened.append(len(lines))
            locations = []  # those of a kernel's arguments
        number = find(locations[-1]) if locations else 0
        if plain.strip().startswith("}") and not plain.endswith("{") and opened:
            begin = opened.pop()
            lines[begin] = Line(lines[begin].text, number)
        lines.append(Line(plain, number))
    return lines


def ptx_lines(text: str, file: str) -> list[Line]:
    """PTX with line information: an instruction comes from the line that the directive before it names."""
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
