"""The ends of messages for what newcomers write: what to write instead."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from . import built_ins, types
from .values import Dyn, Tensor

# Names in numpy, torch and math that are spelled otherwise in a kernel.
_OTHER_NAMES = {
    "absolute": "abs(x)",
    "fabs": "abs(x)",
    "maximum": "max(a, b)",
    "fmax": "max(a, b)",
    "amax": "max(row)",
    "minimum": "min(a, b)",
    "fmin": "min(a, b)",
    "amin": "min(row)",
    "power": "x * x, or exp2(y * log2(x))",
    "pow": "x * x, or exp2(y * log2(x))",
    "square": "x * x",
    "reciprocal": "1.0 / x",
    "add": "a + b",
    "subtract": "a - b",
    "multiply": "a * b",
    "divide": "a / b",
    "mean": "sum(row) / f32(shape(…))",
    "arange": 'iota("D"), the indices of a grid, or range(…) in a for loop',
}
# Of powers of integers, these exponents are written out.
_MOST_POWER = 63
_MOST_BITS = 256
_ROW_FUNCTIONS = ("sum", "max", "min", "abs", "round")


def of_function(name: str, function: Any) -> str:
    """For a function that a kernel cannot call, by its name as it is written."""
    short = name.rpartition(".")[2]
    if isinstance(getattr(built_ins, short, None), built_ins.BuiltIn):
        return f"; mlafix.dsl has {short}"
    if short in _ROW_FUNCTIONS:
        return f"; write {short}(…)"
    return f"; write {_OTHER_NAMES[short]}" if short in _OTHER_NAMES else ""


def of_undefined(name: str, dims: Iterable[str] = (), usage: str = 'shape("{}")') -> str:
    """For a name that is not defined: a word of mlafix.dsl that is not imported, or a dim without its quotes."""
    if name in dims:
        return f'; "{name}" is a dim: write {usage.format(name)}'
    if is_word(name):
        return f"; mlafix.dsl has it: from mlafix.dsl import {name}"
    return of_function(name, None)


def is_word(name: str) -> bool:
    """Whether mlafix.dsl has a word for kernels that is called so."""
    return isinstance(getattr(built_ins, name, None), built_ins.BuiltIn) or name in types.WORDS


def of_attribute(value: Any, name: str) -> str:
    """For an attribute of a value, such as a method of arrays."""
    if isinstance(value, Dyn):
        if name in _ROW_FUNCTIONS:
            return f"; write {name}(…)"
        if name in ("astype", "to", "float", "item"):
            return "; f32(…), i32(…), i64(…) and index(…) convert, and stores narrow by themselves"
        return of_function(name, None)
    return ""


def of_power(node: ast.BinOp) -> str:
    """For `a ** b`."""
    base = ast.unparse(node.left)
    left, right = (part.value if isinstance(part, ast.Constant) else None for part in (node.left, node.right))
    if type(left) is int and type(right) is int and 0 <= right <= _MOST_POWER and left.bit_length() * right <= _MOST_BITS:
        return f"; write 1 << {right}" if left == 2 else f"; write {left**right}"
    if isinstance(node.right, ast.Constant) and node.right.value == 2:
        return f"; write {base} * {base}"
    return f"; write exp2({ast.unparse(node.right)} * log2({base})), or a product"


def of_slice(tensor: Tensor) -> str:
    """For `x[t:u]` and `x[t, a:b]`: what an index may be."""
    return f"; a kernel describes one row, {_row_of(tensor)}" if tensor.rank > 1 else ""


def of_row_slice(tensor: Tensor) -> str:
    """For `x[t, a:b]`: which parts a row may have."""
    return "; " + _halves(_parts_of(tensor))


def of_part_slice(tensor: Tensor) -> str:
    """For `x[t, a:b]` of a dim that is a product."""
    row = _parts_of(tensor)
    return f"; group 0 is {row}0], element 0 of each group {row}:, 0]"


def of_value(value: Any) -> str:
    """For `row[a:b]` and `row[i]`: parts have names in memory alone."""
    is_row = isinstance(value, Dyn) and value.type.kind == "row"
    return f"; of a tensor x, {_halves('x[t, ')}: load parts, and work on each" if is_row else ""


def _halves(row: str) -> str:
    return f'halves are {row}0] and {row}1] of a dim "(2 K)", even elements {row}:, 0] of one "(K 2)"'


def _parts_of(tensor: Tensor) -> str:
    """The beginning of what names a part of a row: what is left is the part and a bracket."""
    row = _row_of(tensor).replace("[:]", "[]")[:-1]
    return row if row.endswith("[") else f"{row}, "


def of_operand(value: Any) -> str:
    """For a tensor where a value is expected."""
    return f"; a row of it is {_row_of(value)}" if isinstance(value, Tensor) and value.rank else ""


def _row_of(tensor: Tensor) -> str:
    """A row of a tensor, with indices as examples write them."""
    return f"{tensor.name}[{', '.join('thijk'[: tensor.rank - 1]) or ':'}]"
