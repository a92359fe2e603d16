"""Plants faults: replaces one operation of a kernel's source by another. Tests check that the fuzzer detects each
kind of fault."""

from __future__ import annotations

import copy
import dataclasses
import random
import re
from collections.abc import Callable
from typing import Any

from edits import slots
from render import source
from syntax import (BOOL, F32, INDEX, Assume, Case, Distinct, Exchange, For, If, Kernel, Node, Print, Store,
                    StoreState, all_statements, get, lit, name, put, row)  # fmt: skip

_SWAPS = {
    "add": "sub", "sub": "add", "mul": "add", "div": "sub", "floordiv": "add", "mod": "floordiv", "shl": "shr", "shr": "shl", "and": "xor",
    "or": "and", "xor": "and", "min": "max", "max": "min", "exp": "exp2", "exp2": "exp", "log": "log2",
    "log2": "log", "sqrt": "rsqrt", "rsqrt": "sqrt", "tanh": "exp", "floor": "ceil", "ceil": "floor", "sin": "cos",
    "cos": "sin", "erf": "floor", "round": "trunc", "trunc": "round", "bf16": "f16", "f16": "bf16", "f8e4m3fn": "f8e5m2", "f8e5m2": "f8e4m3fn", "f8e8m0": "bf16",
}  # fmt: skip
_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}


def _rename(node: Node) -> Node:
    node.attrs["name"] = _SWAPS[node.attrs["name"]]
    return node


def _less(node: Node) -> Node:
    """Subtracts one. Adding one would not be a fault in a loop over ranks, since a store to a missing rank has no
    effect."""
    return Node("binary", node.type, [node, lit(1, node.type)], {"name": "sub"})


def _more(node: Node) -> Node:
    """Replaces an integer x by x + 1, and a float x by 1 - x, which differs from x even if x is huge."""
    one = lit(1.0 if node.type.dtype == "f32" else 1, node.type.scalar())
    return Node("binary", node.type, [one, node], {"name": "sub"}) if node.type.dtype == "f32" else Node("binary", node.type, [node, one], {"name": "add"})


def _negated(node: Node) -> Node:
    return Node("unary", node.type, [node], {"name": "not"})


def _other_value(node: Node) -> Node:
    return _negated(node) if node.type.dtype == "bool" else _more(node)


def _minus(node: Node) -> Node:
    return Node("unary", node.type, [node], {"name": "neg"})


def _operand(at: int, change: Callable[[Node], Node]) -> Callable[[Node], Node]:
    """Returns a function that changes one operand of a node."""

    def replace(node: Node) -> Node:
        node.args[at] = change(node.args[at])
        return node

    return replace


def _other_reduction(node: Node) -> Node:
    node.attrs["kind"] = {"add": "max", "max": "min", "min": "max", "argmax": "argmin", "argmin": "argmax", "any": "all", "all": "any"}[node.attrs["kind"]]
    return node


def _swap_last(node: Node) -> Node:
    node.args[-1], node.args[-2] = node.args[-2], node.args[-1]
    return node


def _without_one(node: Node) -> Node:
    """Removes the last operand that is not `identity(…)`. Removing an identity would not change the result."""
    at = max((i for i, argument in enumerate(node.args) if argument.op != "identity"), default=0)
    del node.args[at]
    return node


def _compared(node: Node) -> Node:
    node.attrs["ops"] = [_OPPOSITE[node.attrs["ops"][0]], *node.attrs["ops"][1:]]
    return node


def _other_logic(node: Node) -> Node:
    node.attrs["name"] = "or" if node.attrs["name"] == "and" else "and"
    return node


def _never(node: Node) -> Node:
    return Node("mask", node.type, [node, lit(False, BOOL)])


def _full(node: Node) -> Node:
    """Returns a non-empty state."""
    return Node("make_state", node.type, [Node("splat", row(node.type.dim), [lit(1.0, F32)]), lit(0.0, F32)])


def _twice(node: Node) -> Node:
    """Returns the state with its weight doubled."""
    return Node("merge", node.type, [node, node])


def _other_element(node: Node) -> Node:
    """Selects another of the elements that top_k finds. If top_k finds only one, changes the value or index by one."""
    count, which, at = node.attrs["top"]
    node.attrs["top"] = (count, which, (at + 1) % count)
    return node if count > 1 else _more(node)


def _elsewhere(node: Node) -> Node:
    """Negates the predicate of a load. Changing the alternative value would not be a fault if the predicate is always
    true."""
    return _operand(-2 if node.attrs.get("other") else -1, _negated)(node)


def _moves_bits(node: Node) -> bool:
    """False for a shift by 0, which does nothing in either direction."""
    amount = node.args[-1].args[0] if node.args[-1].op == "convert" else node.args[-1]
    return not (amount.op == "lit" and amount.attrs["value"] == 0)


def _shifted(node: Node) -> Node:
    node.attrs["first"] += 1 if node.attrs["first"] == 0 else -1
    return node


def _other_order(node: Node) -> Node:
    node.args.append(node.args.pop(0))
    return node


def _other_place(node: Node) -> Node:
    """Selects the previous element. If the index is a literal, changes the element's value instead, since the index
    must not become negative."""
    index = node.args[-1]
    if index.op != "lit":
        node.args[-1] = _less(index)
        return node
    return _other_value(node)


_NUMBER = ("f32", "i32", "i64", "index")


def _is(op: str, name: str = "") -> Callable[[Node], bool]:
    """Returns a predicate on nodes: true for nodes with the operation `op` and, if given, the function or kind
    `name`."""
    return lambda node: node.op == op and (not name or name in (node.attrs.get("name"), node.attrs.get("kind")))


def _names(node: Node, what: str) -> bool:
    """True if a node is the number of ranks (`what` is "ranks") or the number of tensors in a list ("len")."""
    is_asked = node.op == "shape" and node.attrs.get("tensor", "").startswith(("parts", "sent"))
    return is_asked and (what == "ranks") == node.attrs["tensor"].startswith(("parts_of_rank", "sent"))


# Kinds of fault in an expression, each with a predicate on nodes that can have the fault and a function that replaces
# such a node.
NODES: dict[str, tuple[Callable[[Node], bool], Callable[[Node], Node]]] = {
    **{name: ((lambda node, name=name: node.op in ("binary", "unary") and node.attrs["name"] == name), _rename) for name in _SWAPS},
    **{name: ((lambda node, name=name: node.op == "binary" and node.attrs["name"] == name and _moves_bits(node)), _rename) for name in ("shl", "shr")},
    "not": (_is("unary", "not"), lambda node: node.args[0]),
    "neg": (_is("unary", "neg"), lambda node: node.args[0]),
    "abs": (_is("unary", "abs"), _minus),
    "copysign": (_is("binary", "copysign"), _operand(1, _minus)),
    "fma": (_is("fma"), _operand(-1, _more)),
    "compare": (_is("compare"), _compared),
    "logic": (_is("logic"), _other_logic),
    "ifexp": (lambda node: node.op == "ifexp" and node.args[2].op not in ("load", "load_state"), _swap_last),
    "where": (_is("where"), _swap_last),
    **{f"reduce-{kind}": (_is("reduce", kind), _other_reduction) for kind in ("add", "max", "min", "argmax", "argmin", "any", "all")},
    **{f"scan-{kind}": (_is("scan", kind), _other_reduction) for kind in ("add", "max", "min")},
    "top": (_is("top"), _other_element),
    "row_of": (lambda node: node.op == "row_of" and len(node.args) > 1, _other_order),
    "element": (_is("element"), _other_place),
    "swap": (_is("swap"), lambda node: node.args[0]),
    "iota": (_is("iota"), _more),
    **{f"convert-{dtype}": ((lambda node, dtype=dtype: node.op == "convert" and node.type.dtype == dtype), _more) for dtype in _NUMBER},
    "convert-bool": (lambda node: node.op == "convert" and node.type.dtype == "bool", _negated),
    "load": (lambda node: node.op == "load" and node.type.dtype in _NUMBER, _more),
    "load-bool": (lambda node: node.op == "load" and node.type.dtype == "bool", _negated),
    "load-where": (lambda node: node.op == "load" and bool(node.attrs.get("where")) and node.type.dtype in _NUMBER, _elsewhere),
    "load-into": (lambda node: node.op == "load" and "into" in node.attrs, _shifted),
    "shape": (lambda node: node.op == "shape" and not _names(node, "ranks") and not _names(node, "len"), _more),
    "len": (lambda node: _names(node, "len"), _less),
    "ranks": (lambda node: _names(node, "ranks"), _less),
    "turn": (_is("turn"), lambda node: Node("binary", node.type, [lit(1, node.type), node], {"name": "sub"})),
    "splat": (lambda node: node.op == "splat" and node.type.dtype in _NUMBER, _more),
    "present": (_is("present"), _negated),
    "call": (lambda node: node.op == "call" and node.type.dtype in _NUMBER, _more),
    "merge": (lambda node: node.op == "merge" and sum(argument.op != "identity" for argument in node.args) > 1, _without_one),
    "mask": (_is("mask"), _operand(1, _negated)),
    "identity": (_is("identity"), _full),
    "make_state": (_is("make_state"), _operand(1, _more)),
    "rebase": (lambda node: node.op == "rebase" and not node.type.sink, _twice),
    "payload": (_is("payload"), _more),
    "lse_of": (_is("lse_of"), _more),
    "sink": (lambda node: node.op == "sink", lambda node: Node("sink", node.type, [_more(node.args[0])], node.attrs)),
    "load_state": (_is("load_state"), _never),
}


def _changed(key: str, change: Callable[[Node], Node]) -> Callable[[Any], None]:
    """Returns a function that changes one expression of a statement."""
    return lambda s: setattr(s, key, change(getattr(s, key)))


def _other_state(s: Any) -> None:
    """Changes the scale of a stored state. If it has none, merges a non-empty state into the stored state."""
    if s.scale is None:
        s.state = Node("merge", s.state.type, [s.state, _full(Node("identity", dataclasses.replace(s.state.type, sink=False)))])
    else:
        s.scale = _more(s.scale)


def _shorter(s: Any) -> None:
    """Drops the last iteration of a loop."""
    s.upper = Node("binary", s.upper.type, [s.upper, lit(s.step, s.upper.type)], {"name": "sub"})


STATEMENTS: dict[str, tuple[Callable[[Any], bool], Callable[[Any], None]]] = {
    "store": (lambda s: isinstance(s, Store) and s.value.type.dtype in (*_NUMBER, "bool"), _changed("value", _other_value)),
    "store-where": (lambda s: isinstance(s, (Store, StoreState)) and s.where is not None, _changed("where", _negated)),
    "store_state": (lambda s: isinstance(s, StoreState) and bool(s.out), _other_state),
    "for": (lambda s: isinstance(s, For), _shorter),
    "if": (lambda s: isinstance(s, If) and s.condition.op != "lit", _changed("condition", _negated)),
    "print": (lambda s: isinstance(s, Print), lambda s: put(s.values, 0, _other_value(s.values[0]))),
}


def _one_row_less(kernel: Kernel) -> None:
    """Skips the first row along the grid's last index."""
    index = name(kernel.grid.indices[-1], INDEX)
    kernel.body = [If(Node("compare", BOOL, [index, lit(0, INDEX)], {"ops": ["ne"]}), kernel.body, [])]


def _other_segments(kernel: Kernel) -> None:
    """Skips the segments that the grid's predicate selects. Without a predicate, skips every second segment."""
    odd = Node("binary", INDEX, [name(kernel.grid.indices[0], INDEX), lit(1, INDEX)], {"name": "and"})
    where = kernel.grid.where
    kernel.grid.where = Node("compare", BOOL, [odd, lit(0, INDEX)], {"ops": ["ne"]}) if where is None else _negated(where)


def _promises(kernel: Kernel, kind: type) -> list[Any]:
    return [promise for promise in kernel.promises if isinstance(promise, kind)]


# Kinds of fault in a whole kernel, each with a predicate on kernels that can have the fault and a function that changes
# the kernel.
KERNELS: dict[str, tuple[Callable[[Kernel], bool], Callable[[Kernel], None]]] = {
    "grid": (lambda kernel: not kernel.grid.segments and not kernel.exchanges, _one_row_less),
    "segments": (lambda kernel: kernel.grid.segments, _other_segments),
    "exchange": (lambda kernel: kernel.exchanges, lambda kernel: kernel.body.__setitem__(slice(None), [s for s in kernel.body if not isinstance(s, Exchange)])),
    "assume": (lambda kernel: bool(_promises(kernel, Assume)), lambda kernel: _changed("condition", _negated)(_promises(kernel, Assume)[0])),
    "distinct": (lambda kernel: bool(_promises(kernel, Distinct)), lambda kernel: kernel.promises.remove(_promises(kernel, Distinct)[0])),
}
KINDS = [*NODES, *STATEMENTS, *KERNELS]
_LEAVING = ("grid", "for")  # these faults leave elements unwritten, which is an error unless the tensor is updated (InOut)
# Faults that the compiler or the launch must refuse. All others show in the kernel's results.
REFUSED = ("exchange", "assume", "distinct")

# The kinds of fault for words in the index of docs/Python.md. Leaves out words whose only kind has the word's name.
_OF_WORD = {
    "max": ("max", "reduce-max"), "min": ("min", "reduce-min"), "sum": ("reduce-add",), "cumsum": ("scan-add",), "cummax": ("scan-max",),
    "cummin": ("scan-min",), "top_k": ("top",), "load": ("load", "load-bool", "load-where", "load-into"), "store": ("store", "store-where"),
    "range": ("for",), "bool_": ("convert-bool",), "x is None": ("present",), "row[i]": ("element",),
    **{kind: (f"reduce-{kind}",) for kind in ("any", "all", "argmax", "argmin")}, **{kind: (f"convert-{kind}",) for kind in _NUMBER},
}  # fmt: skip


def kinds_of(word: str) -> tuple[str, ...]:
    """Returns the kinds of fault for a word of the language. Returns an empty tuple if no fault can be planted for
    it."""
    return _OF_WORD.get(word) or ((word,) if word in KINDS else ())


def index(page: str) -> list[str]:
    """Returns the words in the index of docs/Python.md, whose text is `page`: the first column of its table of functions."""
    begin = page.index("| function | dtypes")
    rows = page[begin : page.index("\n\n", begin)].splitlines()[2:]
    cells = [re.findall(r"`([^`]*)`", line.split(" | ")[0]) for line in rows]
    found = [re.match(r"\w+", text).group() if "(" in text else text for texts in cells for text in texts]  # type: ignore[union-attr]
    return list(dict.fromkeys(found))


def plant(case: Case, kind: str, seed: int) -> str | None:
    """Returns the kernel's source with a fault. Returns None if the kernel cannot have a fault of this kind."""
    spoiled = spoil(case.kernel, kind, seed)
    return None if spoiled is None else source(spoiled)


def spoil(kernel: Kernel, kind: str, seed: int) -> Kernel | None:
    """Returns a copy of the kernel with a fault. Returns None if the kernel cannot have a fault of this kind."""
    if not has(kernel, kind):  # checked before the copy, which takes longer
        return None
    rng, spoiled = random.Random(seed), copy.deepcopy(kernel)
    for tensor in spoiled.tensors if kind in _LEAVING else []:
        tensor.access = "InOut" if tensor.access == "Out" else tensor.access
    if kind in KERNELS:
        KERNELS[kind][1](spoiled)
        return spoiled
    if kind in STATEMENTS:
        is_one, change = STATEMENTS[kind]
        change(rng.choice([s for s in all_statements(spoiled.body, read=True) if is_one(s)]))
        return spoiled
    has_node, replace = NODES[kind]
    place = rng.choice([place for place in _slots(spoiled) if has_node(get(*place))])
    put(*place, replace(get(*place)))
    return spoiled


def has(kernel: Kernel, kind: str) -> bool:
    """True if the kernel can have a fault of this kind."""
    if kind in KERNELS:
        return KERNELS[kind][0](kernel)
    if kind in STATEMENTS:
        return any(STATEMENTS[kind][0](statement) for statement in all_statements(kernel.body, read=True))
    return any(NODES[kind][0](get(*place)) for place in _slots(kernel))


def _slots(kernel: Kernel) -> list[tuple[Any, Any]]:
    """Returns the places of the expressions that the front end reads; a fault in a skipped branch would have no effect.
    Leaves out promises, since a launch refuses false ones."""
    return slots(dataclasses.replace(kernel, promises=[]), read=True)
