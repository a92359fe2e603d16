"""Formats the compiler's remarks about a kernel by code version, and marks missed optimisations that matter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .diagnostics import Message, render

_REMARK = re.compile(r"(\w+) on \S+: (.*) \[(passed|missed|analysis): ([\w-]+)(?:, (\d+) bytes a row)?\]", re.DOTALL)
_FOR_SMALL_CALLS = re.compile(r"_most\d+_|_dense_few$")
_MOST_COSTS = 3


@dataclass(frozen=True)
class Remark:
    """One remark of the compiler.

    Attributes:
        message: the compiler's message.
        subject: the entry of the code version that the remark is about, or the kernel's name for a remark about all
            versions.
        text: the content of the remark.
        kind: "passed" (done), "missed" (not done) or "analysis" (a choice).
        name: a word to search for in docs/Troubleshooting.md: "narrow-access".
        matters: true if the remark reports a missed optimisation in code that calls normally use. False for the last of
            several code versions, which only runs calls that the others refuse.
        bytes: the bytes per row that are moved inefficiently; 0 if the remark gives none.
    """

    message: Message
    subject: str
    text: str
    kind: str
    name: str
    matters: bool = False
    bytes: int = 0


def parse(messages: Iterable[Sequence[object]]) -> tuple[list[Remark], list[str]]:
    """Returns the remarks in the compiler's order, and the entries of the code versions in the order in which a call
    tries them."""
    found = []
    for fields in messages:
        message = Message(*fields)  # type: ignore[arg-type]
        if match := _REMARK.fullmatch(message.text):
            found.append(Remark(message, match[1], match[2], match[3], match[4], bytes=int(match[5] or 0)))
    versions = [remark.subject for remark in found if remark.name == "code-version"]
    last = versions[-1] if len(versions) > 1 else ""
    marked = [replace(one, matters=one.kind == "missed" and one.subject != last) for one in found]
    return marked, versions


def find_main(versions: Sequence[str]) -> str:
    """Returns the first of these entries that is not limited to short or few rows; "" if there is none."""
    return next((version for version in versions if not _FOR_SMALL_CALLS.search(version)), "")


def costs(remarks: Sequence[Remark], versions: Sequence[str]) -> list[Remark]:
    """Returns at most three remarks that matter, those with the most bytes per row. Considers only remarks about all
    code versions together, and about the version that `find_main` returns. `versions` are the entries of the code
    versions, in order."""
    large = find_main(versions)
    found = [one for one in remarks if one.matters and one.bytes and (one.subject == large or one.subject not in versions)]
    return sorted(found, key=lambda one: -one.bytes)[:_MOST_COSTS]


def as_text(messages: Iterable[Sequence[object]], source: str, file: str) -> str:
    """Returns the text of :meth:`Kernel.remarks`."""
    remarks, versions = parse(messages)
    shown: set[tuple[str, int, int]] = set()
    said: set[tuple[str, int, int, str]] = set()

    def lines(subject: str) -> list[str]:
        texts = []
        for remark in remarks:
            place = (remark.message.file, remark.message.line, remark.message.column)
            if remark.subject != subject or remark.name == "code-version" or (*place, remark.text) in said:
                continue
            said.add((*place, remark.text))
            message = remark.message._replace(severity="remark (matters)" if remark.matters else "remark")
            text = render(message, source, file)
            # Show each source line only once.
            texts.append(text.partition("\n")[0] if place in shown else text)
            shown.add(place)
        return texts

    parts = [f"costs most, {one.bytes:,} bytes a row: {one.subject}: {one.text} [{one.name}]" for one in costs(remarks, versions)]
    parts += [line for subject in dict.fromkeys(one.subject for one in remarks) if subject not in versions for line in lines(subject)]
    for number, version in enumerate(versions):
        guards = next(one.text for one in remarks if one.subject == version and one.name == "code-version")
        order = "asked first" if number == 0 else "asked last" if number == len(versions) - 1 else "asked next"
        parts.append(f"-- {version}, {order}: {guards} [analysis: code-version]")
        parts += lines(version)
    return "\n".join(parts)
