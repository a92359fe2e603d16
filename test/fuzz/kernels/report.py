"""Counts the results of a run."""

from __future__ import annotations

import collections
import re
from pathlib import Path
from typing import Any

from words import WORDS

_SHOWN = 6
FINE = ("ok", "limit")  # outcomes that are not failures


def group(kind: str, message: str) -> str:
    """Returns the key by which failures are grouped: the first line of the message without numbers and paths."""
    if kind in ("ok", "wrong"):
        return kind
    text = message
    found = re.search(r"error: (.*)", message)
    if found:
        text = found.group(1)
    text = text.strip().splitlines()[0] if text.strip() else ""
    text = re.sub(r"/\S+", "…", text)
    text = re.sub(r"\b[a-z]\d+\b|0x[0-9a-f]+|\d+", "#", text)
    return f"{kind}: {text[:150]}"


def save(path: Path, title: str, text: str) -> None:
    """Writes a failing kernel to a file, with the failure as its docstring."""
    path.parent.mkdir(parents=True, exist_ok=True)
    title = title.replace('"""', "'''").replace("\\", "/")
    path.write_text(f'"""{title}"""\n\n{text}\n')


class Report:
    """Counts the answers of workers."""

    def __init__(self) -> None:
        self.kinds: collections.Counter[str] = collections.Counter()
        self.words: collections.Counter[str] = collections.Counter()
        self.groups: dict[str, list[dict[str, Any]]] = {}
        self.seconds: list[float] = []
        self.slowest: list[tuple[float, int]] = []
        self.refused = self.vague = self.written = 0

    def add(self, answer: dict[str, Any]) -> None:
        self.kinds[answer["kind"]] += 1
        self.words.update(answer.get("words", ()))
        self.seconds.append(answer["seconds"])
        self.slowest = sorted([*self.slowest, (answer["seconds"], answer["seed"])], reverse=True)[:5]
        self.refused += answer["refused"]
        self.vague += answer["vague"]
        self.written += answer["written"]
        if answer["kind"] not in FINE:
            self.groups.setdefault(group(answer["kind"], answer["message"]), []).append(answer)

    @property
    def failures(self) -> int:
        return sum(count for kind, count in self.kinds.items() if kind not in FINE)

    def text(self) -> str:
        total = sum(self.kinds.values())
        lines = [f"{total} kernels: " + ", ".join(f"{count} {kind}" for kind, count in self.kinds.most_common())]
        lines.append(f"calls in place that the runtime refuses: {self.refused}")
        if self.written:
            lines.append(f"elements written: {self.written}, of which anything may be in {self.vague} ({100 * self.vague / self.written:.2f}%)")
        if self.seconds:
            ordered = sorted(self.seconds)
            at = {p: ordered[min(int(len(ordered) * p / 100), len(ordered) - 1)] for p in (50, 90, 99, 99.9)}
            lines.append("compiling and first launch, ms: " + ", ".join(f"p{p} {1000 * s:.0f}" for p, s in at.items())
                         + "; slowest seeds: " + ", ".join(f"{seed} ({s:.1f} s)" for s, seed in self.slowest))  # fmt: skip
        for name, answers in sorted(self.groups.items(), key=lambda item: -len(item[1])):
            seeds = ", ".join(str(answer["seed"]) for answer in answers[:_SHOWN])
            lines.append(f"{len(answers):6} {name}   seeds {seeds}{', …' if len(answers) > _SHOWN else ''}")
        return "\n".join(lines)

    def coverage(self) -> str:
        """Returns a text with the number of kernels that used each word."""
        missing = [word for word in WORDS if not self.words[word]]
        known = ", ".join(f"{word} {self.words[word]}" for word in WORDS if self.words[word])
        return f"kernels by word: {known}\nwords not met: {', '.join(missing) or 'none'}"
