"""Renders kernels as Python source, which `@mlafix.kernel` reads from a file."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from syntax import COMPUTED, MOST_LISTED, Assign, Assume, Case, Distinct, Each, Exchange, For, If, Inline, Kernel, Node, Print, Statement, Store, StoreState, Tensor, Type

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "shl": "<<", "shr": ">>", "and": "&",
          "or": "|", "xor": "^"}  # fmt: skip
_COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_DEFAULT = ("f32", "i32", "bool")  # the dtypes that constants get from their spelling alone

HEADER = """import math

import mlafix
from mlafix.dsl import *

LIMIT, HALF, YES, NO = 5, 0.5, True, False
"""


def _conversion(dtype: str) -> str:
    return "bool_" if dtype == "bool" else dtype


def _literal(node: Node) -> str:
    """Returns the text of a constant, without its type."""
    value = node.attrs["value"]
    if "spelled" in node.attrs:
        return node.attrs["spelled"]
    if node.type.dtype == "bool":
        return str(bool(value))
    if node.type.dtype != "f32":
        return str(int(value))
    value = float(value)
    if math.isnan(value):
        return "math.nan"
    if math.isinf(value):
        return "math.inf" if value > 0 else "-math.inf"
    return repr(value)


def _bare(node: Node) -> str:
    """Returns the text of an expression. A constant does not get its type."""
    return _literal(node) if node.op == "lit" else expression(node)


def _typed(node: Node) -> str:
    """Returns the text of an expression. Gives a constant its type explicitly."""
    if node.op == "lit":
        return f"{_conversion(node.type.dtype)}({_literal(node)})" if node.type.dtype != "bool" else _literal(node)
    return expression(node)


def _together(nodes: list[Node]) -> Callable[[Node], str]:
    """Returns the function that spells operands of one type: if all are constants, each gets its type."""
    return _typed if all(node.op == "lit" for node in nodes) else _bare


def _alone(node: Node) -> str:
    """Returns the text of an expression. Gives a constant its type explicitly unless that is the default for its
    spelling."""
    return _literal(node) if node.op == "lit" and node.type.dtype in _DEFAULT else _typed(node)


def _operands(nodes: list[Node]) -> list[str]:
    """Returns the texts of operands that have the same type. A constant beside a value that is not constant needs no
    explicit type."""
    texts = [_bare(node) for node in nodes]
    for i, node in enumerate(nodes):
        if node.op == "lit" and (i == 0 and len(nodes) > 1 and nodes[1].op == "lit" or i > 0 and nodes[i - 1].op == "lit"):
            texts[i] = _typed(node)
    if all(node.op == "lit" for node in nodes):
        texts[0] = _typed(nodes[0])
    return texts


def place(tensor: str, nodes: list[Node], colon: bool = False, part: str = "", slice: tuple[int, int] | None = None) -> str:
    parts = [_literal(node) if node.op == "lit" and node.attrs["value"] >= 0 else expression(node) for node in nodes]
    if part == "member":
        parts.insert(len(parts) - 1, ":")
    if tensor.startswith(("parts", "sent")):  # a list, whose first index selects a tensor
        tensor, parts = f"{tensor}[{parts[0]}]", parts[1:]
    if slice:
        begin, end = slice
        return f"{tensor}[{', '.join([*parts, f'{begin or str()}:{end}'])}]"
    return f"{tensor}[{', '.join([*parts, ':'] if colon or not parts else parts)}]"


def expression(node: Node) -> str:
    return _SPELLED[node.op](node) if node.op in _SPELLED else globals()[f"_{node.op}"](node)


def _list(node: Node) -> str:
    texts = [_typed(argument) for argument in node.args]
    return f"[{texts[0]} for _ in range({node.attrs['over']})]" if "over" in node.attrs else f"[{', '.join(texts)}]"


def _shape(node: Node) -> str:
    if node.attrs.get("tensor", "").startswith(("parts_of_rank", "sent")):
        return f"ranks({node.attrs['tensor']})"
    if node.attrs.get("tensor", "").startswith("parts"):
        return f"len({node.attrs['tensor']})"
    if "tensor" in node.attrs:
        return f"{node.attrs['tensor']}.shape[{node.attrs['position']}]"
    return f'shape("{node.attrs["dim"]}")'


def _present(node: Node) -> str:
    tensor, style = node.attrs["tensor"], node.attrs["style"]
    return f"present({tensor})" if style == "present" else f"({tensor} {style})"


def _load(node: Node) -> str:
    nodes, where, other = node.access()
    text = place(node.attrs["tensor"], nodes, node.attrs.get("colon", False), node.attrs.get("part", ""), node.attrs.get("slice"))
    if "into" in node.attrs:
        condition = f", where={_alone(where)}" if where is not None else ""
        return f'load({text}, into="{node.attrs["into"]}", first={node.attrs["first"]}, each={node.attrs["each"]}{condition})'
    if where is None:
        widened = node.attrs.get("widen")
        return f"{widened}({text})" if widened else text
    if node.attrs.get("ifexp") and other is not None:
        return f"({text} if {_alone(where)} else {_literal(other)})"
    rest = f", otherwise={_bare(other)}" if other is not None else ""
    return f"load({text}, where={_alone(where)}{rest})"


def _load_state(node: Node) -> str:
    nodes, where, _ = node.access()
    split = node.attrs["split"]
    out, lse = place(node.attrs["tensor"], nodes[:split]), place(node.attrs["lse"], nodes[split:])
    condition = f", where={_alone(where)}" if where is not None else ""
    return f"load_state({out}, {lse}{condition}{_base(node)})"


def _base(node: Node) -> str:
    base = node.type.base
    if base == "B":
        return ""
    return f', base={base if base == "2" else base if base[0].isupper() else repr(base)}'


def _make_state(node: Node) -> str:
    payload, lse = node.args
    return f"make_state({_typed(payload)}, {_alone(lse)}{_base(node)})"


def _sink(node: Node) -> str:
    logit = _alone(node.args[0])
    if "says" not in node.attrs:
        return f'sink({logit}, "{node.type.dim}"{_base(node)})'
    base = node.attrs["says"]
    return f"sink({logit}, base={base if base == '2' else repr(base)})" if base else f"sink({logit})"


def _row_of(node: Node) -> str:
    spell = _together(node.args)
    return f"row_of([{', '.join(map(spell, node.args))}])"


def _element(node: Node) -> str:
    row, *indices = node.args
    texts = [_literal(part) if part.op == "lit" and part.attrs["value"] >= 0 else expression(part) for part in indices]
    return f"{expression(row)}[{', '.join([':', *texts] if node.type.kind == 'row' else texts)}]"


def _call(node: Node) -> str:
    return f"{node.attrs['function']}({', '.join(_typed(argument) for argument in node.args)})"


def _binary(node: Node) -> str:
    op = node.attrs["name"]
    if op == "copysign":
        return f"copysign({', '.join(_alone(argument) for argument in node.args)})"
    texts = _operands(node.args)
    if op in ("min", "max"):
        return f"{op}({', '.join(texts)})"
    return f"({f' {_INFIX[op]} '.join(texts)})"


def _unary(node: Node) -> str:
    op, text = node.attrs["name"], _typed(node.args[0])
    if op == "not":
        return f"(not {text})"
    return f"(-{text})" if op == "neg" else f"{op}({text})"


def _compare(node: Node) -> str:
    first, *rest = _operands(node.args)
    return f"({first} {' '.join(f'{_COMPARE[op]} {text}' for op, text in zip(node.attrs['ops'], rest))})"


def _logic(node: Node) -> str:
    word = f" {node.attrs['name']} "
    return f"({word.join(_alone(argument) for argument in node.args)})"


def _ifexp(node: Node) -> str:
    condition, yes, no = node.args
    spell = _together([yes, no])
    return f"({spell(yes)} if {_alone(condition)} else {spell(no)})"


def _where(node: Node) -> str:
    condition, yes, no = node.args
    spell = _together([yes, no])
    return f"where({_alone(condition)}, {spell(yes)}, {spell(no)})"


def _along(node: Node) -> str:
    along = node.attrs.get("along", "")
    return f", along={along}" if along.isdigit() else f', along="{along}"' if along else ""


def _reduce(node: Node) -> str:
    kind = node.attrs["kind"]
    return f"{'sum' if kind == 'add' else kind}({expression(node.args[0])}{_along(node)})"


def _top(node: Node) -> str:
    count, which, at = node.attrs["top"]
    return f"top_k({expression(node.args[0])}, {count}{_along(node)})[{which}][{at}]"


def _scan(node: Node) -> str:
    kind = node.attrs["kind"]
    return f"cum{'sum' if kind == 'add' else kind}({expression(node.args[0])}{_along(node)})"


def _convert(node: Node) -> str:
    inner = node.args[0]
    if inner.op == "lit" and inner.type == node.type:
        return _typed(inner)
    return f"{_conversion(node.type.dtype)}({_typed(inner)})"


_SPELLED: dict[str, Callable[[Node], str]] = {
    "lit": _typed,
    "name": lambda node: node.attrs["name"],
    "tensor": lambda node: node.attrs["name"],
    "turn": lambda node: "turn()",
    "identity": lambda node: f'identity("{node.type.dim}"{_base(node)})',
    "merge": lambda node: f"merge({', '.join(expression(argument) for argument in node.args)})",
    "mask": lambda node: f"mask({expression(node.args[0])}, {_alone(node.args[1])})",
    "rebase": lambda node: f"rebase({expression(node.args[0])}{_base(node) or ', base=B'})",
    "splat": lambda node: f'splat({_alone(node.args[0])}, "{node.type.dim}")',
    "iota": lambda node: f'iota("{node.type.dim}")',
    "swap": lambda node: f"swap({expression(node.args[0])}, {node.attrs['block']})",
    "fma": lambda node: f"fma({', '.join(_alone(argument) for argument in node.args)})",
    "payload": lambda node: f"payload({expression(node.args[0])})",
    "lse_of": lambda node: f"lse_of({expression(node.args[0])})",
}
"""The operations that are spelled in one line. Each other operation has a function."""


# -- Statements --------------------------------------------------------------------------------------------------------------


def _do_Assign(s: Assign) -> list[str]:
    if s.aug:
        value = s.values[0]
        return [f"{s.names[0]} {_INFIX[s.aug]}= {_bare(value)}"]
    return [f"{', '.join(s.names)} = {', '.join(_typed(value) for value in s.values)}"]


def _do_Store(s: Store) -> list[str]:
    value = _bare(s.value)
    target = place(s.tensor, s.indices, part=s.part, slice=s.slice)
    return [f"{target} = {value}" if s.where is None else f"store({target}, {value}, where={_alone(s.where)})"]


def _do_StoreState(s: StoreState) -> list[str]:
    parts = [expression(s.state), place(s.out, s.out_indices) if s.out else "None"]
    if s.lse:
        parts.append(place(s.lse, s.lse_indices))
    if s.where is not None:
        parts.append(f"where={_alone(s.where)}")
    if s.scale is not None:
        parts.append(f"scale={_alone(s.scale)}")
    return [f"store_state({', '.join(parts)})"]


def _do_If(s: If, word: str = "if") -> list[str]:
    lines = [f"{word} {_alone(s.condition)}:", *_indented(s.then)]
    if len(s.orelse) == 1 and isinstance(s.orelse[0], If):
        return lines + _do_If(s.orelse[0], "elif")
    return lines + (["else:", *_indented(s.orelse)] if s.orelse else [])


def _do_For(s: For) -> list[str]:
    bounds = _bound_texts(s)
    return [f"for {s.name} in range({', '.join(bounds)}):", *_indented(s.body)]


def _bound_texts(s: For) -> list[str]:
    """Returns the texts of a loop's bounds. Two constants have their type explicitly, unless it is index. A constant
    beside a bound that is not constant needs no explicit type."""
    both = s.lower.op == "lit" and s.upper.op == "lit"
    texts = [_literal(node) if node.op == "lit" and (not both or node.type.dtype == "index") else _typed(node) for node in (s.lower, s.upper)]
    if s.spelled == 1:
        return texts[1:]
    return texts if s.spelled == 2 else [*texts, str(s.step)]


def _do_Each(s: Each) -> list[str]:
    items = [", ".join(_typed(node) if node.op != "tensor" else node.attrs["name"] for node in item) for item in s.items]
    single = len(s.names) == 1
    listed = ", ".join(items if single else [f"({item})" for item in items])
    return [f"for {', '.join(s.names)} in ({listed},):", *_indented(s.body)]


def statement(s: Statement) -> list[str]:
    if isinstance(s, Exchange):
        return ["exchange()"]
    if isinstance(s, Assume):
        return [f"assume({_alone(s.condition)})"]
    if isinstance(s, Distinct):
        return [f"distinct({s.table})"]
    if isinstance(s, Print):
        return [f'print("{s.text}", {", ".join(expression(value) for value in s.values)})']
    return globals()[f"_do_{type(s).__name__}"](s)


def _indented(body: list[Statement]) -> list[str]:
    lines = [line for s in body for line in statement(s)]
    return [f"    {line}" for line in lines or ["pass"]]


# -- Kernels -----------------------------------------------------------------------------------------------------------------


def _annotation(kernel: Kernel, tensor: Tensor) -> str:
    dtype = tensor.dtype if tensor.dtype in kernel.variables else _conversion(tensor.dtype)
    if tensor.of_ranks:
        return f'Peers[{tensor.access}[{dtype}, "{" ".join(tensor.dims[1:])}"]]'
    if tensor.listed:
        return f'List[In[{dtype}, "{" ".join(tensor.dims[1:])}"], {MOST_LISTED}, "{tensor.dims[0]}"]'
    tiles = f'.swizzle("{tensor.tiles}x4")' if tensor.tiles else ""
    return f'{tensor.access}[{dtype}, "{" ".join(tensor.dims)}"]{tiles}' + (" | None" if tensor.optional else "")


def _extent(extent: Any) -> str:
    if isinstance(extent, str):
        return f'"{extent}"'
    if isinstance(extent, int):
        return str(extent)
    kind, name, *position = extent
    if kind in COMPUTED:
        return f'shape("{name}") {_INFIX[kind]} {position[0]}'
    return name if kind == "scalar" else f"{name}.shape[{position[0]}]"


def _grid(kernel: Kernel) -> str:
    grid = kernel.grid
    extents = [_extent(extent) for extent in grid.extents]
    if not grid.segments:
        return f"for {', '.join(grid.indices)} in grid({', '.join(extents)}):"
    extents[0] = grid.extents[0]
    where = ""
    if grid.where is not None:
        where = ", where=chosen" if grid.where_inline else f", where=lambda {grid.indices[0]}: {_alone(grid.where)}"
    return f"for {', '.join(grid.indices)} in segments({', '.join(extents)}{where}):"


def _inline(inline: Inline) -> list[str]:
    plain = len(inline.parameters) - len(inline.defaults)
    parameters = [*inline.parameters[:plain], *(f"{p}={_literal(d)}" for p, d in zip(inline.parameters[plain:], inline.defaults))]
    lines = [line for s in inline.body for line in statement(s)]
    return ["@mlafix.inline", f"def {inline.name}({', '.join(parameters)}):", *(f"    {line}" for line in lines),
            f"    return {_typed(inline.result)}", "", ""]  # fmt: skip


def source(kernel: Kernel, name: str = "k") -> str:
    """Returns the source of a module that defines the kernel."""
    lines = [f'{v} = DType("{v}"{f", default={d}" if d else ""})' for v, d in kernel.variables.items()]
    lines += [f'{b} = Base("{b}", default={d if d == "2" or d in kernel.bases else repr(d)})' for b, d in kernel.bases.items()]
    lines += ["", ""]
    for inline in kernel.inlines:
        lines += _inline(inline)
    if kernel.grid.where is not None and kernel.grid.where_inline:
        lines += ["@mlafix.inline", f"def chosen({kernel.grid.indices[0]}):", f"    return {_alone(kernel.grid.where)}", "", ""]
    arguments = [f"{tensor.name}: {_annotation(kernel, tensor)}" for tensor in kernel.tensors]
    for scalar in kernel.scalars:
        bound = f'.at_most("{scalar.at_most}")' if scalar.at_most else ""
        arguments.append(f"{scalar.name}: {_conversion(scalar.dtype)}{bound}{'.or_tensor' if scalar.from_tensor else ''}")
    lines += ["@mlafix.kernel", f"def {name}(", *(f"    {argument}," for argument in arguments), "):"]
    lines += [f"    {line}" for promise in kernel.promises for line in statement(promise)]
    lines += [f"    {_grid(kernel)}", *(f"    {line}" for line in _indented(kernel.body))]
    return HEADER + "\n".join(lines) + "\n"


def listing(case: Case) -> str:
    """Returns the source of a case's kernel, and its calls as comments."""
    return "\n".join([source(case.kernel), *(f"# {call}" for call in case.calls)])


def typed(type: Type) -> str:
    return f"{type.kind} {type.dtype}".strip()
