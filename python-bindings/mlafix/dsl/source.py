"""A function's text as a syntax tree, and locations in it."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
import types
from typing import Any, NoReturn

from .. import _diagnostics
from .._forks import cached_property
from .._toolchain import compiler
from ..errors import CompileError
from . import scope


def _block(function: types.FunctionType) -> tuple[list[str], int] | None:
    """The lines of a function's definition and the number of the first, or None where only a tokenizer can tell.

    inspect.getsourcelines finds them with a tokenizer, which takes longer than all else that a first call needs. Here the
    definition ends with the first line that is indented no further than it, if what precedes is whole by itself.
    """
    file, first = function.__code__.co_filename, function.__code__.co_firstlineno
    linecache.checkcache(file)
    lines = linecache.getlines(file, function.__globals__)[first - 1 :]
    if not lines:
        return None
    outside = len(lines[0]) - len(lines[0].lstrip())
    end = len(lines)
    has_begun = False
    for number, line in enumerate(lines):
        text = line.strip()
        if not text or text.startswith("#") or len(line) - len(line.lstrip()) > outside:
            continue
        if has_begun and not text.startswith(")"):
            end = number
            break
        has_begun = has_begun or text.startswith(("def ", "async def "))
    block = lines[:end]
    try:
        found = ast.parse(textwrap.dedent("".join(block))).body
    except SyntaxError:
        return None
    is_whole = len(found) == 1 and isinstance(found[0], (ast.FunctionDef, ast.AsyncFunctionDef))
    return (block, first) if is_whole and found[0].name == function.__name__ else None  # type: ignore[attr-defined]


class Source:
    """The definition of a Python function.

    Args:
        function: what the decorator got.

    Raises:
        CompileError: its text cannot be read, or it is not a plain function.
    """

    def __init__(self, function: types.FunctionType) -> None:
        self.function = function
        self.name = function.__name__
        code = function.__code__
        self.file = code.co_filename
        try:
            lines, first = _block(function) or inspect.getsourcelines(function)
        except (OSError, TypeError) as error:
            message = (
                f"expected kernel '{self.name}' in a file, whose text can be read, got {self.file}; what is typed at a "
                f"prompt has none"
            )
            raise CompileError(message, self.file, code.co_firstlineno, 0) from error
        # A block around an indented definition keeps its columns as they are.
        self._shift = first - 1
        text = "".join(lines)
        if text[:1].isspace():
            text = "if True:\n" + text
            self._shift -= 1
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            message = f"expected the text of '{self.name}' as it was when it was defined, got something else: {error}"
            raise CompileError(message, self.file, code.co_firstlineno, 0) from error
        found = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        if not found or found[0].name != self.name:
            message = f"expected a function that is defined by def, got '{self.name}'"
            raise CompileError(message, self.file, code.co_firstlineno, 0)
        self.node = found[0]
        if isinstance(self.node, ast.AsyncFunctionDef):
            self.fail(self.node, f"expected a plain function, got async def {self.name}")

    @cached_property
    def own(self) -> frozenset[str]:
        """The function's own names: Python looks up none of them outside."""
        return scope.own(self.node)

    def location(self, node: ast.AST) -> Any:
        """The location of a node, as the builder takes it."""
        return compiler().Location(*self.place(node))

    def place(self, node: ast.AST) -> tuple[str, int, int, int, int]:
        """File, line, column (1-based), end line and end column (one past the last character)."""
        line = getattr(node, "lineno", self.node.lineno)
        column = getattr(node, "col_offset", 0)
        end_line = getattr(node, "end_lineno", None) or line
        end_column = getattr(node, "end_col_offset", None) or column + 1
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            # Not the whole body: what says that it is a function, and which one.
            before = "async def " if isinstance(node, ast.AsyncFunctionDef) else "def "
            end_line, end_column = line, column + len(before) + len(node.name.encode())
        elif isinstance(node, (ast.For, ast.While, ast.If, ast.With)):
            end_line, end_column = line, column + len(type(node).__name__)
        return self.file, line + self._shift, column + 1, end_line + self._shift, end_column + 1

    def fail(self, node: ast.AST, message: str) -> NoReturn:
        """Raise the error that underlines a node."""
        raise _diagnostics.compile_error([("error", message, *self.place(node))])

    def lookup(self, name: str) -> Any:
        """What a name means outside the function: in what encloses it, in its module, in Python. Raises KeyError."""
        function = self.function
        if name in function.__code__.co_freevars and function.__closure__:
            cell = function.__closure__[function.__code__.co_freevars.index(name)]
            try:
                return cell.cell_contents
            except ValueError:
                raise KeyError(name) from None
        if name in function.__globals__:
            return function.__globals__[name]
        builtins = function.__globals__.get("__builtins__", {})
        names = builtins if isinstance(builtins, dict) else vars(builtins)
        return names[name]
