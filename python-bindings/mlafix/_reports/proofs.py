"""The compiler's proofs about a kernel, as a dict that prints as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Report(dict[str, Any]):
    """The result of :meth:`Kernel.report`: a dict that prints as a table of arguments, questions and answers."""

    def __str__(self) -> str:
        rows = [("argument", "question", "answer", "")]
        for arg in self["args"]:
            for answer in arg["answers"]:
                reason = " ".join(answer[key] for key in ("reason", "element") if key in answer)
                rows.append((arg["name"], answer["question"], answer["verdict"], _placed(reason, answer)))
            for guard in arg.get("guarded", ()):
                rows.append((arg["name"], "bounds", "guarded", _placed(f"the index of dim {guard['dim']} is checked", guard)))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        table = [("  ".join([*map(str.ljust, row, widths), row[3]])).rstrip() for row in rows]
        warnings = [_placed(f"warning: {warning['message']}", warning) for warning in self["warnings"]]
        return "\n".join([f'kernel "{self["kernel"]}"', *table, *warnings])


def _placed(text: str, entry: Mapping[str, Any]) -> str:
    """Appends the line of `entry` to a text, if the line is known."""
    return f"{text} (line {entry['line']})".lstrip() if entry.get("line") else text
