"""Formats the compiler's messages about a source: the location, the source line, and a caret under the expression."""

from __future__ import annotations

import linecache
import re
import warnings
from collections.abc import Iterable
from typing import NamedTuple

from ..errors import CompileError, CompileWarning

# The lines of each file that defines kernels, as they were when Python read the file.
texts: dict[str, list[str]] = {}

# _OPERATION matches the name of the operation with which a verifier's message begins. _SIGNS maps the compiler's names
# of operators to Python's, and _SIGN finds these names in a message.
_OPERATION = re.compile(r"^'[a-z]+\.[a-z_.]+' op ")
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "shl": "<<", "shr": ">>", "neg": "-"}
_SIGN = re.compile(rf"(?<=for ')({'|'.join(_SIGNS)})(?=')|(?<=by )(add|sub|mul|div)f\b")

# The warnings issued so far, as (text, file, line). Python's own records of issued warnings (__warningregistry__) do
# not suffice to show a warning once, since every change of a filter clears these records.
_given: set[tuple[str, str, int]] = set()


class Message(NamedTuple):
    """One message of the compiler. Lines and columns count from 1, and 0 means unknown. Columns count bytes of UTF-8;
    the end column is one past the last character. `kind` ("several kernels", "unbound dim") identifies messages that
    callers treat specially, and `subject` is the name that such a message is about; both are "" for other messages."""

    severity: str
    text: str
    file: str = ""
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    kind: str = ""
    subject: str = ""


def compile_error(messages: Iterable[tuple[object, ...]], source: str = "", name: str = "") -> CompileError:
    """Returns the CompileError for messages of the compiler.

    Args:
        messages: the fields of each Message; the first error gives the exception its location.
        source: the text of the file that messages call `name`; other files are read from disk.
    """
    parsed = [_for_its_author(Message(*fields)) for fields in messages]  # type: ignore[arg-type]
    first = next((m for m in parsed if m.severity == "error"), Message("error", "the compiler gave no reason"))
    text = "\n".join(render(message, source, name) for message in parsed)
    error = CompileError(text or first.text, first.file, first.line, first.column)
    error._kind, error._subject = first.kind, first.subject
    return error


def _for_its_author(message: Message) -> Message:
    return message._replace(text=in_python(message.text, message.file))


def in_python(text: str, file: str) -> str:
    """Removes the operation's name from the beginning of a message, and replaces the compiler's names of operators by
    Python's. Returns the message unchanged if `file` is in MLIR's syntax."""
    if file.endswith(".mlir"):
        return text
    return _SIGN.sub(lambda found: _SIGNS[found[1] or found[2]], _OPERATION.sub("", text))


def warn(messages: Iterable[Message], source: str = "", name: str = "") -> None:
    """Issues a Python warning for each message, at its line. Python's default filters show the same warning once.

    Args:
        messages: the compiler's warnings.
        source: the text of the file that messages call `name`.
    """
    for message in messages:
        text = "\n".join([message.text, *_underlined(message, source, name)])
        given = text, message.file or name, message.line
        if given not in _given or not _is_told_once(*given):
            _given.add(given)
            warnings.warn_explicit(text, CompileWarning, *given[1:])


def _is_told_once(text: str, file: str, line: int) -> bool:
    """True if Python's filters show a warning only once. False if they show it each time, hide it, or raise it."""
    module = file.removesuffix(".py")
    for action, pattern, category, modules, number in warnings.filters:
        if _fits(pattern, text) and _fits(modules, module) and number in (0, line) and issubclass(CompileWarning, category):
            return action in ("default", "module", "once")
    return True


def _fits(pattern: re.Pattern[str] | str | None, text: str) -> bool:
    """True if `pattern`, a field of a warning filter, matches `text`. None matches any text. The filters with which
    Python starts have strings instead of compiled patterns. A string must equal `text`."""
    return pattern is None or (text == pattern if isinstance(pattern, str) else pattern.match(text) is not None)


def render(message: Message, source: str = "", name: str = "") -> str:
    """Formats a message with its location. Adds the source line with the range underlined if the file can be read."""
    if not message.line:
        # The text of an exception does not begin with "error", since Python prints the exception's class before it.
        return message.text if message.severity == "error" else f"{message.severity}: {message.text}"
    head = f"{message.file}:{message.line}:{message.column}: {message.severity}: {message.text}"
    return "\n".join([head, *_underlined(message, source, name)])


def _underlined(message: Message, source: str, name: str) -> list[str]:
    """Returns the source line of a message, and a line with a caret under its range. Returns [] if the file cannot be
    read."""
    line = _line(message.file, message.line, source, name)
    if not line:
        return []
    start = _characters(line, message.column)
    same = message.end_line in (0, message.line)
    stop = _characters(line, message.end_column) if same and message.end_column else start + 1
    if not same:
        stop = len(line)
    # Tabs stay tabs, so that the caret stands under its character.
    indent = "".join("\t" if c == "\t" else " " for c in line[:start])
    return [line, f"{indent}^{'~' * (stop - start - 1)}"]


def _line(file: str, number: int, source: str, name: str) -> str:
    if source and file == name:
        lines = source.splitlines()
        return lines[number - 1].rstrip() if number <= len(lines) else ""
    if file in texts:
        return texts[file][number - 1].rstrip() if number <= len(texts[file]) else ""
    return linecache.getline(file, number).rstrip()


def _characters(line: str, column: int) -> int:
    """Converts a 1-based column in bytes to a 0-based position in characters."""
    return len(line.encode()[: max(column - 1, 0)].decode(errors="ignore"))
