"""IR by its structure: two texts of kernels compare equal if they do the same, whatever their values are called and in
whatever order operations without effects stand."""

from __future__ import annotations

import itertools
import re

_PURE = re.compile(
    r"(arith|math)\.|memref\.dim|mlafix\.(splat|reduce|merge|mask|identity|rebase|make_state|present)\b"
)
_VALUE = re.compile(r"%[A-Za-z0-9_$.#-]+")
_ARGUMENTS = re.compile(r"mlafix\.(?:forall|ragged_forall) \(([^)]*)\)|scf\.for (%\S+) =|iter_args\((.*?)\) ->")


def structure(text: str) -> list[str]:
    """The lines of a module that have an effect or a region; every pure operation stands where it is used, and other
    values are numbered in the order in which they appear."""
    names: dict[str, str] = {}
    lines: list[str] = []
    numbers = itertools.count()

    def number(value: str) -> None:
        names[value] = f"%{next(numbers)}'"

    def use(match: re.Match[str]) -> str:
        return names.get(match.group(), match.group())

    for line in text.splitlines():
        stripped = line.strip()
        if not stripped:
            continue
        result, equals, operation = stripped.partition(" = ")
        if equals and result.startswith("%") and _PURE.match(operation):
            names[result] = f"({_VALUE.sub(use, operation)})"
            continue
        for match in _ARGUMENTS.finditer(stripped):
            for group in match.groups():
                for value in _VALUE.findall((group or "").replace(" = ", " ").replace("%", " %")):
                    if value not in names or not match.group().startswith("iter_args"):
                        number(value)
        if equals and result.startswith("%"):
            stripped_operation = _VALUE.sub(use, operation)
            number(result)
            lines.append(f"{names[result]} = {stripped_operation}")
        else:
            lines.append(_VALUE.sub(use, stripped))
    return lines
