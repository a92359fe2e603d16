"""Hints at the end of messages, for newcomers: what to write instead."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable
from typing import Any

from .._launcher.launcher import Launcher
from . import built_ins, functions, types
from .values import Dyn, Element, Tensor

# Functions of numpy, torch and math that have another name in a kernel.
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
    "dot": "sum(a * b), of two rows",
    "enumerate": "for i in range(…)",
    "zip": "for i in range(…)",
    "sigmoid": "1.0 / (1.0 + exp(-x))",
    "softmax": "e = exp(x - max(x)), then e / sum(e)",
    "logsumexp": "max(x) + log(sum(exp(x - max(x))))",
    "cdiv": "(a + b - 1) // b",
    "static_range": "for i in range(…)",
    "full": "a number: it is broadcast along a row",
    "full_like": "a number: it is broadcast along a row",
    "zeros": '0.0, which is broadcast along a row; an empty state is identity("D")',
    "zeros_like": '0.0, which is broadcast along a row; an empty state is identity("D")',
    "ones": "1.0, which is broadcast along a row",
    "gather": "x[t, i] for each element that is read, or load(…, into=…)",
}
# Words of Triton for things that kernels here do not express.
_OF_LAUNCHES = {
    "tl": "; words of mlafix.dsl have no prefix: load(…), store(…), exp(…)",
    "triton": "; words of mlafix.dsl have no prefix: load(…), store(…), exp(…)",
    "program_id": '; the grid gives the row its indices: for t in grid("n")',
    "num_programs": '; the rows of the grid are shape("n")',
    "constexpr": '; an upper-case dim is a constant of the compiler, and so are names from outside',
    "num_warps": "; the compiler chooses blocks, warps and the grid",
    "num_stages": "; the compiler chooses blocks, warps and the grid",
    "debug_barrier": "; rows are independent, and barriers are the compiler's business",
    "make_block_ptr": "; a row is x[t], whatever its strides are",
    "make_tensor_descriptor": "; a row is x[t], whatever its strides are",
    "advance": "; a row is x[t], whatever its strides are",
    "expand_dims": "; a kernel describes one row, which has one dim",
    "broadcast_to": "; a number beside a row is broadcast along it",
    "trans": "; a kernel describes one row, which has one dim",
}
_ATOMICS = "; no two rows write one element: let the row that owns it loop over what is added"
# Integer powers with these exponents are written as products.
_MOST_POWER = 63
_MOST_BITS = 256
_ROW_FUNCTIONS = ("sum", "max", "min", "any", "all", "abs", "round")


def of_function(name: str, function: Any) -> str:
    """For a function that a kernel cannot call, by its name as it is written."""
    if isinstance(function, Launcher):
        return "; kernels share functions that are marked @mlafix.inline"
    short = name.rpartition(".")[2]
    if short in _OF_LAUNCHES or short.startswith("atomic_"):
        return _OF_LAUNCHES.get(short, _ATOMICS)
    if is_built_in(short):
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


def of_undefined_in_type(annotation: ast.expr, name: str) -> str:
    """For a name in an argument's type that is not defined: a dtype that is spelled wrong, or dims without their quotes."""
    if is_word(name):
        return of_undefined(name)
    for node in ast.walk(annotation):
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
            continue
        dtype, *dims = node.slice.elts
        if any(isinstance(dim, ast.Name) and dim.id == name for dim in dims):
            words = " ".join(ast.unparse(dim).strip("'") for dim in dims)
            return f'; dims are quoted: {ast.unparse(node.value)}[{ast.unparse(dtype)}, "{words}"]'
    near = difflib.get_close_matches(name, sorted(types.WORDS), 1)
    return f"; did you mean {near[0]}?" if near else ""


def is_word(name: str) -> bool:
    """True if mlafix.dsl has a word for kernels that is called so."""
    return is_built_in(name) or name in types.WORDS


def is_built_in(name: str) -> bool:
    """True if mlafix.dsl has a function for kernels that is called so."""
    return name in functions.UNARY or isinstance(getattr(built_ins, name, None), built_ins.BuiltIn)


def of_attribute(value: Any, name: str) -> str:
    """For an attribute of a value, such as a method of arrays."""
    if isinstance(value, Dyn):
        if name in _ROW_FUNCTIONS:
            return f"; write {name}(…)"
        if name in ("astype", "to", "float", "item"):
            return "; f32(…), i32(…), i64(…) and index(…) convert, and stores narrow by themselves"
        return of_function(name, None)
    return ""


def of_operator(node: ast.BinOp) -> str:
    """For an operator that kernels lack."""
    if isinstance(node.op, ast.MatMult):
        a, b = ast.unparse(node.left), ast.unparse(node.right)
        return f"; a kernel has no products of matrices, and sum({a} * {b}) is one of two rows"
    return of_power(node) if isinstance(node.op, ast.Pow) else ""


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


def of_value(value: Any, index: ast.expr) -> str:
    """For `row[a:b]` and `row[i]`: only tensors in memory can be indexed."""
    if not isinstance(value, Dyn) or value.type.kind != "row":
        return ""
    if isinstance(index, (ast.Slice, ast.Tuple)):
        return f"; of a tensor x, {_halves('x[t, ')}: load parts, and work on each"
    number = ast.unparse(index)
    return f'; element {number} of a row that is computed is sum(where(iota("{value.type.dim}") == {number}, row, 0)), of a tensor x[t, {number}]'


def _halves(row: str) -> str:
    return f'halves are {row}0] and {row}1] of a dim "(2 K)", even elements {row}:, 0] of one "(K 2)"'


def _parts_of(tensor: Tensor) -> str:
    """The start of an expression that names a part of a row; the part and a bracket are missing."""
    row = _row_of(tensor).replace("[:]", "[]")[:-1]
    return row if row.endswith("[") else f"{row}, "


def of_operand(value: Any) -> str:
    """For an operand that is no scalar, row or state."""
    if is_array(value):
        return "; a kernel reads arrays that are its arguments: pass it as one, declared with In"
    return f"; a row of it is {_row_of(value)}" if isinstance(value, Tensor) and value.rank else ""


def is_array(value: Any) -> bool:
    """True if a value is an array of numpy, or a tensor of torch."""
    return type(value).__module__.partition(".")[0] in ("numpy", "torch") and getattr(value, "shape", ()) != ()


def of_text(node: ast.AST) -> str:
    """For an expression that the language lacks."""
    if isinstance(node, ast.JoinedStr):
        return "; print(f\"…\") alone takes one"
    if isinstance(node, ast.Lambda):
        return "; a function of its own, marked @mlafix.inline, may be called"
    return ""


def of_statement(node: ast.stmt) -> str:
    """For a statement that the language lacks."""
    if isinstance(node, ast.Return) and node.value is not None:
        return "; a kernel returns nothing: store the result to an argument that is declared with Out"
    if isinstance(node, (ast.Continue, ast.Break, ast.Return)):
        return "; put what it would skip under an 'if'"
    if isinstance(node, ast.While):
        return "; a loop is 'for … in range(…)', whose bounds may be values"
    if isinstance(node, ast.Assert):
        return f"; assume({ast.unparse(node.test)}) is a promise"
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return "; define it outside of the kernel, a function with @mlafix.inline"
    return ""


def of_condition(value: Any) -> str:
    """For a condition that is not a bool, such as a row of bools."""
    if isinstance(value, Dyn) and value.type.kind == "row":
        return "; where(c, a, b) chooses for each element, any(c) and all(c) are bools of a row"
    return "; compare it with something" if isinstance(value, Dyn) and value.type.kind == "scalar" else ""


def of_bits(op: str) -> str:
    """For operands of & | or ^ that are no integers or bools: Python takes ``a > b & c < d`` for a chain of comparisons with b & c."""
    return f"; {op} binds more closely than a comparison: write (a < b) {op} (c < d)"


def of_factor(name: Any, tensors: Iterable[Tensor]) -> str:
    """For a name that is only a factor of a dim."""
    for tensor in tensors:
        for dim in tensor.annotation.dims:
            if name in dim.factors:
                apart = " ".join(factor if not factor.isdigit() else f"k={factor}" for factor in dim.factors)
                return f'; "{name}" is a factor of the product "{dim.spelled}" of \'{tensor.name}\': declare "{apart}" and pass a view with both dims'
    return ""


def of_index(value: Any) -> str:
    """For an index into a list or a tuple that is no constant."""
    return "; a value indexes tensors alone: pass the list as a tensor" if isinstance(value, Dyn) else ""


def of_state(op: str = "") -> str:
    """For a state where a number or a row is expected, as an operand of `op`."""
    return "; merge(a, b) adds states" if op == "add" else "; payload(s) is the row of a state, lse_of(s) its lse"


def of_stored_state(element: Element, place: str) -> str:
    """For a state that is assigned to memory."""
    if element.dim is None:
        return f"; write {place} = lse_of(…)"
    return f"; write store_state(…, {place}), or {place} = payload(…)"


def of_reduced(value: Any, call: str) -> str:
    """For the operand of a reduction whose dtype cannot be reduced."""
    if not isinstance(value, Dyn) or value.type.kind != "row":
        return ""
    if value.type.dtype == "bool":
        of_bools = {"max": "any", "min": "all"}
        return f"; write {of_bools[call]}(…)" if call in of_bools else f"; write {call}(where(…, 1, 0))"
    return f"; write {call}(i32(…)), or {call}(f32(…))"


def of_length(value: Any) -> str:
    """For `len(row)` and `len(tensor)`."""
    if isinstance(value, Dyn) and value.type.kind in ("row", "state"):
        dim = value.type.dim
        return f"; it has {dim} elements" if dim.isdigit() else f'; write shape("{dim}")'
    if isinstance(value, Tensor) and value.rank:
        return f"; write {value.name}.shape[0]"
    return ""


def _row_of(tensor: Tensor) -> str:
    """A row of a tensor, with indices as examples write them."""
    return f"{tensor.name}[{', '.join('thijk'[: tensor.rank - 1]) or ':'}]"
