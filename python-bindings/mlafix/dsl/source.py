"""Reads a function's text as a syntax tree, and finds locations in the text."""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import linecache
import os
import time
import types
import warnings
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from .. import _runtime
from .._files.toolchain import compiler, utf8
from .._forks import cached_property
from .._reports import diagnostics
from ..errors import CompileError
from . import scope
from .values import field_names, is_record

# For each function, the lines of its file as they were when the function became a kernel.
_texts: weakref.WeakKeyDictionary[types.FunctionType, list[str]] = weakref.WeakKeyDictionary()
_began = time.time()

TOO_DEEP = (
    "expected expressions and statements that are nested less deeply, got more levels than Python can follow; assign a part of the expression to a name, "
    "or move statements to a function with @mlafix.inline"
)

python = types.SimpleNamespace(**vars(builtins))
"""Python's built-in functions as they were when mlafix was imported. The translator uses this copy, since torch.export
replaces min and max in `builtins` while it traces."""


def member(module: types.ModuleType, name: str) -> Any:
    """Returns the value of a name in a module. Raises AttributeError."""
    return getattr(python if module is builtins and hasattr(python, name) else module, name)


@contextlib.contextmanager
def reading(function: types.FunctionType) -> Iterator[None]:
    """A context in which a function's text is translated. Makes constants independent of the thread's rounding mode.
    Raises CompileError, located at the function, if the text is nested too deeply for Python. If this happens within a
    statement, `Statements` raises the error first, located at the statement."""
    arithmetic = _runtime.default_arithmetic()
    try:
        yield
    except RecursionError as error:
        code = function.__code__
        raise CompileError(f"'{function.__name__}': {TOO_DEEP}", code.co_filename, code.co_firstlineno, 0) from error
    finally:
        _runtime.restore_arithmetic(arithmetic)


def keep_text(function: types.FunctionType) -> None:
    """Stores the text of a kernel's function or of an inline function, since its file may change before the kernel is
    translated."""
    if function in _texts:
        return
    file = function.__code__.co_filename
    linecache.checkcache(file)
    _texts[function] = diagnostics.texts[file] = linecache.getlines(file, function.__globals__)


def _lines(function: types.FunctionType) -> list[str]:
    keep_text(function)
    return _texts[function]


_Definition = ast.FunctionDef | ast.AsyncFunctionDef


def _definition(function: types.FunctionType) -> tuple[_Definition | None, int]:
    """Returns the syntax tree of a function's definition, and the number to add to the tree's line numbers to get lines
    of the file. Returns None for the tree if no def statement made the function. Raises SyntaxError if the file is no
    longer valid Python."""
    block = _block(function)
    if block is not None:
        return block
    first = function.__code__.co_firstlineno
    for node in ast.walk(_parsed("".join(_lines(function)))):
        # For a decorated function, co_firstlineno is the line of the first decorator's expression. An "@" or a
        # parenthesis may stand on an earlier line.
        if isinstance(node, _Definition) and node.name == function.__name__:
            if first == min(part.lineno for part in (node, *node.decorator_list)):
                return node, 0
    return None, 0


@functools.lru_cache(maxsize=4)
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _block(function: types.FunctionType) -> tuple[_Definition, int] | None:
    """Finds a definition as `_definition` does, but parses only its own lines. Parsing the whole file takes longer than
    everything else in a first call. Returns None if the lines of the definition are not found by indentation.

    The definition ends before the first line that is not indented further than the definition's first line. The text up
    to that line must parse.
    """
    before = function.__code__.co_firstlineno - 1
    lines = _lines(function)[before:]
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
    # Parses an indented definition inside an `if` block, so that its columns stay those of the file.
    is_indented = lines[0][0] in " \t"
    try:
        found: Sequence[ast.AST] = ast.parse("if True:\n" * is_indented + "".join(lines[:end])).body
    except SyntaxError:
        return None
    if is_indented and len(found) == 1:
        found = found[0].body  # type: ignore[attr-defined]
    is_whole = len(found) == 1 and isinstance(found[0], _Definition) and found[0].name == function.__name__
    return (found[0], before - is_indented) if is_whole else None  # type: ignore[return-value]


def _is_in_its_file(function: types.FunctionType) -> bool:
    """True if compiling the function's file again gives the function's code. Compiles the whole file, since its
    ``__future__`` imports affect the code."""
    code = function.__code__
    return _facts(code) in _facts_inside("".join(_lines(function)), code.co_filename)


@functools.lru_cache(maxsize=4)
def _facts_inside(text: str, file: str) -> list[tuple[object, ...]]:
    """Returns the facts (`_facts`) of every function in a file. Cached, because a kernel asks once for each function
    that it calls."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python issued these warnings when the file was imported
            made = compile(text, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return []
    return [_facts(one) for one in _inside(made)]


def _inside(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _inside(constant)


def _facts(code: types.CodeType) -> tuple[object, ...]:
    """Returns comparable facts about a function's code, including the line where the function begins."""
    constants = [_facts(one) if isinstance(one, types.CodeType) else f"{type(one)}{one!r}" for one in code.co_consts]
    return code.co_name, code.co_firstlineno, code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, constants


def _may_have_changed(file: str) -> bool:
    """True if a file may have changed since this process began, so that Python may have read an older text."""
    try:
        return os.stat(file).st_ctime > _began - 1  # clocks of file systems may lag
    except OSError:
        return False


class Source:
    """The definition of a Python function.

    Args:
        function: the decorated function.

    Raises:
        CompileError: the function's text cannot be read, or the function is not a plain function.
    """

    def __init__(self, function: types.FunctionType) -> None:
        self.function = function
        self.name = function.__name__
        code = function.__code__
        self.file = code.co_filename
        if not _lines(function):
            message = (
                f"expected kernel '{self.name}' in a file, whose text can be read, got {self.file}; a kernel typed at "
                f"a prompt is in no file: save it in one and import it"
            )
            raise CompileError(message, self.file, code.co_firstlineno, 0)
        try:
            node, self._shift = _definition(function)
        except SyntaxError as error:
            message = f"expected the text of '{self.name}' as it was when it was defined, got something else: {error}"
            raise CompileError(message, self.file, code.co_firstlineno, 0) from error
        if node is None:
            message = f"expected a function that is defined by def, got '{self.name}'"
            raise CompileError(message, self.file, code.co_firstlineno, 0)
        self.node = node
        if _may_have_changed(self.file) and not _is_in_its_file(function):
            message = f"expected the text of '{self.name}' as it was when Python read it, got another: {self.file} has changed since; import it again"
            raise CompileError(message, self.file, code.co_firstlineno, 0)
        if isinstance(self.node, ast.AsyncFunctionDef):
            self.fail(self.node, f"expected a plain function, got async def {self.name}")

    @cached_property
    def own(self) -> frozenset[str]:
        """The local names of the function, which Python does not look up outside of it."""
        return scope.own(self.node)

    @cached_property
    def outside(self) -> list[ast.expr]:
        """The outside names that the function's body reads, in the order of the text."""
        return [name for statement in self.node.body for name in scope.outside(statement, self.own)]

    def location(self, node: ast.AST) -> Any:
        """Returns the location of a node in the builder's form."""
        return compiler().Location(*utf8(self.place(node)))

    def place(self, node: ast.AST) -> tuple[str, int, int, int, int]:
        """Returns the file, line, column, end line and end column of a node. Lines and columns count from 1; the end
        column is one past the last character."""
        line = getattr(node, "lineno", self.node.lineno)
        column = getattr(node, "col_offset", 0)
        end_line = getattr(node, "end_lineno", None) or line
        end_column = getattr(node, "end_col_offset", None) or column + 1
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            # Underline the head of a function, not its body.
            before = "async def " if isinstance(node, ast.AsyncFunctionDef) else "def "
            end_line, end_column = line, column + len(before) + len(node.name.encode())
        elif isinstance(node, (ast.For, ast.While, ast.If, ast.With)):
            end_line, end_column = line, column + len(type(node).__name__)
        return self.file, line + self._shift, column + 1, end_line + self._shift, end_column + 1

    def fail(self, node: ast.AST, message: str) -> NoReturn:
        """Raises a CompileError that underlines a node."""
        raise diagnostics.compile_error([("error", message, *self.place(node))])

    def cell(self, name: str) -> types.CellType | None:
        """Returns the cell of the enclosing function's variable to which a name refers. Returns None for other
        names."""
        function = self.function
        if name in function.__code__.co_freevars and function.__closure__:
            return function.__closure__[function.__code__.co_freevars.index(name)]
        return None

    def lookup(self, name: str) -> Any:
        """Returns the value of a name outside of the function: in enclosing functions, the module, or builtins. Raises
        KeyError."""
        function, cell = self.function, self.cell(name)
        if cell is not None:
            try:
                return cell.cell_contents
            except ValueError:
                raise KeyError(name) from None
        if name in function.__globals__:
            return function.__globals__[name]
        found = function.__globals__.get("__builtins__", {})
        names = found if isinstance(found, dict) else vars(found)
        return vars(python)[name] if names is vars(builtins) and hasattr(python, name) else names[name]

    def value_of(self, node: ast.expr) -> Any:
        """Returns the value of a name, of a name in a module, or of a field of a record, all outside of the function.
        Raises KeyError or AttributeError if there is none."""
        if isinstance(node, ast.Name):
            return self.lookup(node.id)
        if not isinstance(node, ast.Attribute):
            raise KeyError
        of = self.value_of(node.value)
        if not isinstance(of, types.ModuleType) and not (is_record(of) and node.attr in field_names(of)):
            raise KeyError
        return member(of, node.attr) if isinstance(of, types.ModuleType) else getattr(of, node.attr)
