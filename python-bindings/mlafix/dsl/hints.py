"""Makes the hints at the end of error messages, which say what to write instead.

Each function returns the hint for one kind of mistake, or "" if it has none.
"""

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
    "clamp": "min(max(x, low), high)",
    "clip": "min(max(x, low), high)",
    "relu": "max(x, 0.0)",
    "silu": "x / (1.0 + exp(-x))",
    "gelu": "0.5 * x * (1.0 + erf(x * 0.70710678))",
    "norm": "sqrt(sum(x * x))",
    "var": "sum(d * d) / f32(shape(…)), of d = x - sum(x) / f32(shape(…))",
    "std": "sqrt(sum(d * d) / f32(shape(…))), of d = x - sum(x) / f32(shape(…))",
    "reduce": "sum(row), max(row), min(row), any(row) or all(row)",
    "associative_scan": "cumsum(row), cummax(row) or cummin(row)",
    "topk": "top_k(row, 8)",
    "sort": "top_k(row, 8), which gives the largest elements in order",
    "sorted": "top_k(row, 8), which gives the largest elements in order",
    "cast": "f32(x), i32(x), i64(x) or index(x)",
    "device_print": "print(…)",
    "div_rn": "a / b",
    "fdiv": "a / b",
    "divmod": "a // b and a % b",
    "umulhi": "(i64(a) * i64(b)) >> 32, of values from 0 on",
    "static_assert": "assume(…) of arguments and sizes, which each call checks",
    "device_assert": "assume(…) of arguments and sizes, which each call checks",
    **types.OTHER_NAMES,
}
_ATOMICS = "; no two rows write one element: let the row that owns it loop over what is added"
_ONE_ROW = "; a kernel describes one row, which has one dim: pass a view of the tensor"
_PARTS = '; a part of a row is stored where it belongs: y[t, 0] is the first half along a dim "(2 K)", y[t, :, 0] the even elements of "(K 2)"'
# Names from Triton and other libraries that have no counterpart in kernels, with their hints.
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
    **dict.fromkeys(("reshape", "view", "permute", "transpose", "flatten"), _ONE_ROW),
    **dict.fromkeys(("cat", "concat", "concatenate", "join", "interleave", "stack", "split", "chunk"), _PARTS),
    "flip": '; a row keeps the order of its elements: a loop reads them one by one, as x[t, shape("D") - 1 - i]',
    "rand": "; random numbers are an argument, declared with In",
    "randn": "; random numbers are an argument, declared with In",
    "randint": "; random numbers are an argument, declared with In",
    "float64": "; kernels compute in f32",
    "f64": "; kernels compute in f32",
    "double": "; kernels compute in f32",
    "multiple_of": "; leave it out: upper-case dims are known when a kernel is compiled, and each call looks at its addresses",
    "max_contiguous": "; rows are contiguous: calls check that",
    **dict.fromkeys(("inline_asm", "inline_asm_elementwise"), "; mlafix.dsl has no assembly"),
    "histogram": _ATOMICS,
    "jit": "; a kernel is marked @mlafix.kernel, and what it calls @mlafix.inline",
    "autotune": "; nothing is tuned: the compiler chooses blocks, warps and the grid",
    "heuristics": "; nothing is tuned: the compiler chooses blocks, warps and the grid",
}
# The largest exponent, and the most bits of a result, for which the hint about an integer power gives the result.
_MOST_POWER = 63
_MOST_BITS = 256
_ROW_FUNCTIONS = ("sum", "max", "min", "any", "all", "abs", "round")


def of_function(name: str, function: Any) -> str:
    """Returns the hint for a function that a kernel cannot call. `name` is the function's name as the kernel writes
    it."""
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


def of_undefined(name: str, dims: Iterable[str] = (), usage: str = 'shape("{}")', known: Iterable[str] = ()) -> str:
    """Returns the hint for an undefined name: a word of mlafix.dsl that is not imported, a dim without quotes, or a
    misspelling of a name in `known`."""
    if name in dims:
        return f'; "{name}" is a dim: write {usage.format(name)}'
    if is_word(name):
        return f"; mlafix.dsl has it: from mlafix.dsl import {name}"
    return of_function(name, None) or of_spelling(name, [*known, *_words()])


def of_member(module: str, name: str) -> str:
    """Returns the hint for `module.name` if `module` is not defined, such as Triton's `tl`."""
    return of_function(name, None) or of_undefined(module)


def of_spelling(name: str, known: Iterable[str]) -> str:
    """Returns the hint for a name that resembles a name in `known`."""
    near = difflib.get_close_matches(name, list(known), 1) if len(name) > 2 else []
    return f"; did you mean {near[0]}?" if near else ""


def of_dim(name: Any, known: Iterable[str]) -> str:
    """Returns the hint for a name that differs from the name of a dim only in its case."""
    near = [dim for dim in known if isinstance(name, str) and dim.lower() == name.lower()]
    return f'; did you mean "{near[0]}"?' if near else ""


def _words() -> list[str]:
    return sorted(types.WORDS | functions.UNARY | {*built_ins.__all__})


def of_undefined_in_type(annotation: ast.expr, name: str) -> str:
    """Returns the hint for an undefined name in an argument's type: a misspelled dtype, or dims without quotes."""
    if is_word(name):
        return of_undefined(name)
    for node in ast.walk(annotation):
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
            continue
        dtype, *dims = node.slice.elts
        if any(isinstance(dim, ast.Name) and dim.id == name for dim in dims):
            words = " ".join(ast.unparse(dim).strip("'") for dim in dims)
            return f'; dims are quoted: {ast.unparse(node.value)}[{ast.unparse(dtype)}, "{words}"]'
    hint = of_function(name, None)
    return hint or of_spelling(name, sorted(types.WORDS))


def is_word(name: str) -> bool:
    """True if `name` is a word of mlafix.dsl: a function that kernels may call, or a type."""
    return is_built_in(name) or name in types.WORDS


def is_built_in(name: str) -> bool:
    """True if `name` is a function of mlafix.dsl that kernels may call."""
    return name in functions.UNARY or name in built_ins.__all__


def of_attribute(value: Any, name: str) -> str:
    """Returns the hint for an attribute that a value or a tensor lacks in a kernel, such as a method of arrays."""
    if isinstance(value, Tensor):
        if name in [dim.name for dim in value.annotation.dims]:
            return f'; write shape("{name}")'
        return of_function(name, None) or "; a tensor is read by x[t] and written by x[t] = …"
    if not isinstance(value, Dyn):
        return ""
    if name == "shape" and value.type.kind == "row":
        return f'; write shape("{value.type.dim}")'
    if name in _ROW_FUNCTIONS:
        return f"; write {name}(…)"
    if name in ("astype", "to", "float", "item"):
        return "; f32(…), i32(…), i64(…) and index(…) convert, and stores narrow by themselves"
    return of_function(name, None) or ("; values have no methods: functions of mlafix.dsl take them" if value.type.kind == "row" else "")


def of_argument(built_in: str, name: str) -> str:
    """Returns the hint for an argument that numpy or Triton has and `built_in` lacks."""
    if name in ("axis", "dim", "keepdims", "keep_dims"):
        return f"; a row has one dim: {built_in}(row) takes all of it"
    ours = {"mask": "where", "other": "otherwise", "condition": "where", "dtype": "f32(…) around the value"}.get(name)
    return f"; mlafix calls it {ours}" if ours else ""


def of_type(value: Any) -> str:
    """Returns the hint for a class in place of an argument's type, such as `float` or numpy's `ndarray`."""
    name = getattr(value, "__name__", "")
    ours = {"float": "f32", "int": "i32, i64 or index", "bool": "bool_", "ndarray": 'In[f32, "n D"]', "Tensor": 'In[f32, "n D"]', "Array": 'In[f32, "n D"]'}
    return f"; write {ours[name]} for {name}" if name in ours else ""


def of_operator(node: ast.BinOp) -> str:
    """Returns the hint for an operator that kernels lack."""
    if isinstance(node.op, ast.MatMult):
        a, b = ast.unparse(node.left), ast.unparse(node.right)
        return f"; a kernel has no products of matrices, and sum({a} * {b}) is one of two rows"
    return of_power(node) if isinstance(node.op, ast.Pow) else ""


def of_power(node: ast.BinOp) -> str:
    """Returns the hint for `a ** b`."""
    base = ast.unparse(node.left)
    left, right = (part.value if isinstance(part, ast.Constant) else None for part in (node.left, node.right))
    if type(left) is int and type(right) is int and 0 <= right <= _MOST_POWER and left.bit_length() * right <= _MOST_BITS:
        return f"; write 1 << {right}" if left == 2 else f"; write {left**right}"
    if right == 2:
        return f"; write {base} * {base}"
    if right == 0.5:
        return f"; write sqrt({base})"
    return f"; write exp2({ast.unparse(node.right)} * log2({base})), or a product"


def of_slice(tensor: Tensor) -> str:
    """Returns the hint for a slice in place of an index, as in `x[t:u, h]`."""
    return f"; a kernel describes one row, {_row_of(tensor)}" if tensor.rank > 1 else ""


def of_row_slice(tensor: Tensor) -> str:
    """Returns the hint for `x[t, a:b:2]`: says how to write parts of a row."""
    return "; " + _halves(_parts_of(tensor))


def of_part_slice(tensor: Tensor) -> str:
    """Returns the hint for `x[t, a:b]` if the row's dim is a product."""
    row = _parts_of(tensor)
    return f"; group 0 is {row}0], element 0 of each group {row}:, 0]"


def of_part_of_row(node: ast.Subscript) -> str:
    """Returns the hint for a part of a computed row, `row[a:b]` or `row[g]`: says how to load the part, or how to write
    a short slice."""
    index = node.slice
    text = ast.unparse(ast.Subscript(ast.Name("x"), index)) if isinstance(index, ast.Tuple) else f"x[{ast.unparse(index)}]"
    loaded = f"; load the part that is needed, as {text.replace('[', '[t, ')}, and compute on it"
    if isinstance(index, ast.Tuple) and not any(isinstance(part, ast.Slice) for part in index.elts):
        return ""
    if not isinstance(index, ast.Slice) or index.upper is None or index.step is not None:
        return loaded
    bounds = ", ".join(ast.unparse(bound) for bound in (index.lower, index.upper) if bound is not None)
    return f"{loaded}, or take a few elements: row_of([{_name_of_row(node)}[i] for i in range({bounds})])"


def of_changed_element(value: Any, target: ast.expr) -> str:
    """Returns the hint for `row[i] = v` of a computed row."""
    if not isinstance(value, Dyn) or value.type.kind != "row" or not isinstance(target, ast.Subscript) or isinstance(target.slice, (ast.Slice, ast.Tuple)):
        return ""
    row = _name_of_row(target)
    return f'; where(iota("{value.type.dim}") == {ast.unparse(target.slice)}, …, {row}) is {row} with another element'


def of_moved_row(value: Any) -> str:
    """Returns the hint for `load(row, into="D", first=1)` of a computed row."""
    is_row = isinstance(value, Dyn) and value.type.kind == "row"
    return "; elements of a computed row cannot be moved: load the rows that it is computed from with into=…, and compute again" if is_row else ""


def of_open_slice(tensor: Tensor, node: ast.Slice) -> str:
    """Returns the hint for `x[t, 1:]` if the row's size is not known while the kernel is translated."""
    begin = node.lower
    if node.upper is not None or not isinstance(begin, ast.Constant) or type(begin.value) is not int or begin.value < 1:
        return ""
    return f'; load({_row_of(tensor)}, into="E", first=-{begin.value}) is a row along another dim, "E", that begins with element {begin.value}'


def of_stored_row(element: Element, dim: str) -> str:
    """Returns the hint for storing a row with a constant number of elements to a row along a named dim."""
    if not dim.isdigit() or element.is_part or element.end:
        return ""
    indices = ", ".join([*"thijk"[: element.tensor.rank - 1], f":{dim}"])
    return f"; a slice takes it: {element.tensor.name}[{indices}] = …"


def _name_of_row(node: ast.Subscript) -> str:
    return node.value.id if isinstance(node.value, ast.Name) else "row"


def of_element(value: Any) -> str:
    """Returns the hint for a row among the numbers of `row_of`."""
    return "; sum(row), max(row) and row[i] are numbers of a row" if isinstance(value, Dyn) and value.type.kind == "row" else ""


def of_conversion(one: str, other: str) -> str:
    """Returns the hint for numbers of two dtypes where all must have the same."""
    if "bool" in (one, other):
        return f"{next(dtype for dtype in (one, other) if dtype != 'bool')}(…) makes 1 of true and 0 of false"
    return f"{'f32' if 'f32' in (one, other) else 'i64'}(…) converts"


def _halves(row: str) -> str:
    return f'halves are {row}0] and {row}1] of a dim "(2 K)", even elements {row}:, 0] of one "(K 2)"'


def _parts_of(tensor: Tensor) -> str:
    """Returns the start of an expression for a part of a row. The part and the closing bracket are missing."""
    row = _row_of(tensor).replace("[:]", "[]")[:-1]
    return row if row.endswith("[") else f"{row}, "


def of_operand(value: Any) -> str:
    """Returns the hint for an operand that is neither a scalar nor a row nor a state."""
    if is_array(value):
        return "; a kernel reads arrays that are its arguments: pass it as one, declared with In"
    if isinstance(value, (tuple, list)) and value:
        return "; row_of([a, b]) is a row of numbers"
    return f"; a row of it is {_row_of(value)}" if isinstance(value, Tensor) and value.rank else ""


def is_array(value: Any) -> bool:
    """True if a value is an array of numpy or a tensor of torch with at least one dim."""
    return type(value).__module__.partition(".")[0] in ("numpy", "torch") and getattr(value, "shape", ()) != ()


def of_text(node: ast.AST) -> str:
    """Returns the hint for an expression that the language lacks."""
    if isinstance(node, ast.JoinedStr):
        return "; print(f\"…\") alone takes one"
    if isinstance(node, ast.Lambda):
        return "; a function of its own, marked @mlafix.inline, may be called"
    return ""


def of_statement(node: ast.stmt, is_inline: bool) -> str:
    """Returns the hint for a statement that the language lacks. `is_inline` tells whether it is in an inline
    function."""
    if isinstance(node, ast.Return) and is_inline:
        return "; an inline function returns once, at its end: where(c, a, b) or names that both branches of an 'if' assign choose the value"
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
    return next((hint for kinds, hint in _STATEMENTS if isinstance(node, kinds)), "")


_STATEMENTS = (
    ((ast.Raise, ast.Try), "; a kernel has no exceptions: assume(…) of arguments and sizes is checked by each call"),
    ((ast.Import, ast.ImportFrom), "; import it at the top of the file"),
    ((ast.Global, ast.Nonlocal), "; leave it out: names from outside are constants in a kernel"),
    ((ast.Delete,), "; leave it out: a value that nothing uses costs nothing"),
    ((ast.With,), "; write its body alone"),
    ((ast.Match,), "; write if, elif and else"),
)


def of_condition(value: Any) -> str:
    """Returns the hint for a condition that is not a bool, such as a row of bools."""
    if isinstance(value, Dyn) and value.type.kind == "row" and value.type.dtype == "bool":
        return "; where(c, a, b) chooses for each element, any(c) and all(c) are bools of a row"
    return of_compared(value)


def of_compared(value: Any) -> str:
    """Returns the hint for a number or a row of numbers where bools are expected."""
    return "; compare it, as in x > 0" if isinstance(value, Dyn) and value.type.kind in ("scalar", "row") else ""


def of_negation(value: Any) -> str:
    """Returns the hint for `~x`, and for `not x` if `x` is not a bool."""
    if isinstance(value, Dyn) and value.type.dtype == "bool":
        return "; write not …"
    return "; write x ^ -1" if isinstance(value, Dyn) and value.type.dtype in ("i32", "i64", "index") else "; compare it with something, as in x == 0"


def of_range(value: Any) -> str:
    """Returns the hint for a value over which a loop cannot iterate."""
    if isinstance(value, Tensor) and value.rank:
        return f"; write for i in range({value.name}.shape[0]), and {value.name}[i]"
    if isinstance(value, Dyn) and value.type.kind == "row":
        return "; an operation on a row is one of each element; sum(row), max(row) and cumsum(row) combine them"
    return ""


def of_extent(value: Any) -> str:
    """Returns the hint for an extent of a grid that is a tuple or a list, or several names in one text."""
    names = value.split() if isinstance(value, str) else value
    if isinstance(names, (tuple, list)) and len(names) > 1:
        return f"; write grid({', '.join(chr(34) + name + chr(34) if isinstance(name, str) else '…' for name in names)})"
    return ""


def of_printed(value: Any) -> str:
    """Returns the hint for printing a whole tensor."""
    return f"; print a row, {_row_of(value)}, or an element, {_row_of(value)[:-1]}, 0]" if isinstance(value, Tensor) and value.rank > 1 else ""


def of_outside(value: Any) -> str:
    """Returns the hint for a value from outside that kernels cannot use."""
    return "; take what the kernel needs from it outside, as scale = config['scale']" if isinstance(value, dict) else ""


def of_bits(op: str) -> str:
    """Returns the hint for operands of & | or ^ that are neither integers nor bools: to write parentheses. Python
    reads ``a > b & c < d`` as a chain of comparisons with b & c."""
    return f"; {op} binds more closely than a comparison: write (a < b) {op} (c < d)"


def of_factor(name: Any, tensors: Iterable[Tensor]) -> str:
    """Returns the hint for a name that occurs only as a factor of a dim that is a product."""
    for tensor in tensors:
        for dim in tensor.annotation.dims:
            if name in dim.factors:
                apart = " ".join(factor if not factor.isdigit() else f"k={factor}" for factor in dim.factors)
                return f'; "{name}" is a factor of the product "{dim.spelled}" of \'{tensor.name}\': declare "{apart}" and pass a view with both dims'
    return ""


def of_index(value: Any, of_shape: bool = False) -> str:
    """Returns the hint for an index that is not a constant, into a list, a tuple or a shape."""
    if not isinstance(value, Dyn):
        return ""
    return "; which dim it is must be known: x.shape[0] or shape(\"n\")" if of_shape else "; a value indexes tensors alone: pass the list as a tensor"


def of_state(op: str = "") -> str:
    """Returns the hint for a state in place of a number or a row. `op` is the operator that got it, or ""."""
    return "; merge(a, b) adds states" if op == "add" else "; payload(s) is the row of a state, lse_of(s) its lse"


def of_stored_state(element: Element, place: str) -> str:
    """Returns the hint for a state that is assigned to memory."""
    if element.dim is None:
        return f"; write {place} = lse_of(…)"
    return f"; write store_state(…, {place}), or {place} = payload(…)"


def of_reduced(value: Any, call: str) -> str:
    """Returns the hint for a row whose dtype the reduction `call` does not accept: a conversion."""
    if not isinstance(value, Dyn) or value.type.kind != "row":
        return ""
    if value.type.dtype == "bool":
        of_bools = {"max": "any", "min": "all"}
        return f"; write {of_bools[call]}(…)" if call in of_bools else f"; write {call}(where(…, 1, 0))"
    return f"; write {call}(i32(…)), or {call}(f32(…))"


def of_length(value: Any) -> str:
    """Returns the hint for `len(row)` and `len(tensor)`."""
    if isinstance(value, Dyn) and value.type.kind in ("row", "state"):
        dim = value.type.dim
        return f"; it has {dim} elements" if dim.isdigit() else f'; write shape("{dim}")'
    if isinstance(value, Tensor) and value.rank:
        return f"; write {value.name}.shape[0]"
    return ""


def _row_of(tensor: Tensor) -> str:
    """Returns an example of a row of a tensor: "x[t, h]"."""
    return f"{tensor.name}[{', '.join('thijk'[: tensor.rank - 1]) or ':'}]"
