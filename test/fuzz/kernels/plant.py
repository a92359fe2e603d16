"""Planted faults: one operation of a kernel's source is another one. The instrument has to see each kind."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

from edits import get, put, slots
from render import source
from syntax import BOOL, Case, For, If, Kernel, Node, Store, StoreState, all_statements, lit

_SWAPS = {
    "add": "sub", "sub": "add", "mul": "add", "div": "mul", "floordiv": "add", "mod": "floordiv", "shl": "shr", "shr": "shl", "and": "or",
    "or": "and", "xor": "or", "min": "max", "max": "min", "neg": "abs", "abs": "neg", "exp": "exp2", "exp2": "exp", "log": "log2",
    "log2": "log", "sqrt": "rsqrt", "rsqrt": "sqrt", "tanh": "exp", "floor": "ceil", "ceil": "floor", "sin": "cos",
    "cos": "sin", "erf": "floor", "round": "trunc", "trunc": "round", "bf16": "f16", "f16": "bf16", "f8e4m3fn": "f8e5m2", "f8e5m2": "f8e4m3fn", "f8e8m0": "bf16",
}  # fmt: skip
_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}


def _rename(node: Node) -> Node:
    node.attrs["name"] = _SWAPS[node.attrs["name"]]
    return node


def _more(node: Node) -> Node:
    """One more."""
    one = lit(1.0 if node.type.dtype == "f32" else 1, node.type.scalar())
    return Node("binary", node.type, [node, one], {"name": "add"})


def _other_reduction(node: Node) -> Node:
    node.attrs["kind"] = {"add": "max", "max": "min", "min": "max", "argmax": "argmin", "argmin": "argmax", "any": "all", "all": "any"}[node.attrs["kind"]]
    return node


def _swap_last(node: Node) -> Node:
    node.args[-1], node.args[-2] = node.args[-2], node.args[-1]
    return node


def _without_last(node: Node) -> Node:
    del node.args[-1]
    return node


def _negated(node: Node) -> Node:
    return Node("unary", node.type, [node], {"name": "not"})


def _compared(node: Node) -> Node:
    node.attrs["ops"] = [_OPPOSITE[node.attrs["ops"][0]], *node.attrs["ops"][1:]]
    return node


def _lighter(node: Node) -> Node:
    node.args[1] = _more(node.args[1])
    return node


def _other_logic(node: Node) -> Node:
    node.attrs["name"] = "or" if node.attrs["name"] == "and" else "and"
    return node


def _never(node: Node) -> Node:
    return Node("mask", node.type, [node, lit(False, BOOL)])


_NUMBER = ("f32", "i32", "i64", "index")
# Kinds of fault: which node has it, and what becomes of that node.
NODES: dict[str, tuple[Callable[[Node], bool], Callable[[Node], Node]]] = {
    **{name: ((lambda node, name=name: node.op in ("binary", "unary") and node.attrs["name"] == name), _rename) for name in _SWAPS},
    "not": (lambda node: node.op == "unary" and node.attrs["name"] == "not", lambda node: node.args[0]),
    "copysign": (lambda node: node.op == "binary" and node.attrs["name"] == "copysign", _swap_last),
    "fma": (lambda node: node.op == "fma", _swap_last),
    "compare": (lambda node: node.op == "compare", _compared),
    "logic": (lambda node: node.op == "logic", _other_logic),
    "ifexp": (lambda node: node.op == "ifexp" and node.args[2].op not in ("load", "load_state"), _swap_last),
    "where": (lambda node: node.op == "where", _swap_last),
    "reduce": (lambda node: node.op == "reduce", _other_reduction),
    "scan": (lambda node: node.op == "scan", _other_reduction),
    "top": (lambda node: node.op == "top", _more),
    "swap": (lambda node: node.op == "swap", lambda node: node.args[0]),
    "iota": (lambda node: node.op == "iota", _more),
    "convert": (lambda node: node.op == "convert" and node.type.dtype in _NUMBER, _more),
    "load": (lambda node: node.op == "load" and node.type.dtype in _NUMBER, _more),
    "load-bool": (lambda node: node.op == "load" and node.type.dtype == "bool", _negated),
    "shape": (lambda node: node.op == "shape", _more),
    "splat": (lambda node: node.op == "splat" and node.type.dtype in _NUMBER, _more),
    "present": (lambda node: node.op == "present", _negated),
    "call": (lambda node: node.op == "call" and node.type.dtype in _NUMBER, _more),
    "merge": (lambda node: node.op == "merge" and len(node.args) > 1, _without_last),
    "mask": (lambda node: node.op == "mask", lambda node: node.args[0]),
    "make_state": (lambda node: node.op == "make_state" and node.args[1].op != "lit", _lighter),
    "sink": (lambda node: node.op == "sink" and node.args[0].op != "lit", lambda node: Node("sink", node.type, [_more(node.args[0])], node.attrs)),
    "load_state": (lambda node: node.op == "load_state", _never),
}


def _drop_where(s: Any) -> bool:
    s.where = None
    return True


def _scaled(s: Any) -> bool:
    s.scale = _more(s.scale)
    return True


def _longer(s: Any) -> bool:
    s.step += 1
    return True


def _otherwise(s: Any) -> bool:
    s.condition = _negated(s.condition)
    return True


STATEMENTS: dict[str, tuple[Callable[[Any], bool], Callable[[Any], bool]]] = {
    "store-where": (lambda s: isinstance(s, (Store, StoreState)) and s.where is not None, _drop_where),
    "store-scale": (lambda s: isinstance(s, StoreState) and s.scale is not None and s.scale.op != "lit", _scaled),
    "for-step": (lambda s: isinstance(s, For) and s.spelled == 3, _longer),
    "if": (lambda s: isinstance(s, If) and s.condition.op != "lit", _otherwise),
}
KINDS = [*NODES, *STATEMENTS]


def plant(case: Case, kind: str, seed: int) -> str | None:
    """The source with a fault, if the kernel has such an operation."""
    if not _has(case.kernel, kind):  # sooner than what copies it
        return None
    rng, spoiled = random.Random(seed), copy.deepcopy(case.kernel)
    if kind in STATEMENTS:
        has, change = STATEMENTS[kind]
        change(rng.choice([s for s in all_statements(spoiled.body) if has(s)]))
        return source(spoiled)
    has_node, replace = NODES[kind]
    place = rng.choice([place for place in slots(spoiled) if has_node(get(*place))])
    put(*place, replace(get(*place)))
    return source(spoiled)


def _has(kernel: Kernel, kind: str) -> bool:
    if kind in STATEMENTS:
        return any(STATEMENTS[kind][0](statement) for statement in all_statements(kernel.body))
    return any(NODES[kind][0](get(*place)) for place in slots(kernel))
