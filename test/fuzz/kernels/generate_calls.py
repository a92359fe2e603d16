"""Generates random calls of a kernel: sizes, dtypes, layouts, scalars, omitted tensors and aliases."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from contents import contents
from interpret import Interpreter
from memory import cells_of
from rows import accesses, written
from syntax import (FLOATS, FP4, FP8, MOST_LISTED, STORED, Call, Distinct, Each, Kernel, Layout, Store, StoreState,
                    Tensor, all_statements, bound_of, expressions, factors, is_bounded, names_of, parse_dim)  # fmt: skip

FLOAT_CHOICES = [*FLOATS, *FLOATS, *FP8]
_CHOICES = {"I": ["i32", "i64"], "M": list(STORED)}


_CALLS = 4
_TRIES = 8
# Calls with rows of at least this many elements get few rows.
LONG = 60000


def _sliced(kernel: Kernel, dim: str) -> int:
    """Returns the smallest size that a call may give a dim. Rows along the dim must contain all their slices, and must
    not end before the element at which a load into them begins (``load(…, into=…, first=…)``)."""
    loads = [(node.attrs["tensor"], node.attrs["slice"]) for node in kernel.nodes() if node.op == "load" and "slice" in node.attrs]
    stores = [(s.tensor, s.slice) for s in all_statements(kernel.body) if isinstance(s, Store) and s.slice]
    begun = [node.attrs["first"] for node in kernel.nodes() if node.op == "load" and node.attrs.get("into") == dim]
    return max([1, *begun, *(end for tensor, (_, end) in [*loads, *stores] if parse_dim(kernel.tensor(tensor).dims[-1])[0] == dim)])


def calls(kernel: Kernel, rng: random.Random, fixed: dict[str, int], pairs: list[tuple[str, str]]) -> list[Call]:
    """Returns calls that one compiled kernel serves: an ordinary one, and others with different sizes and layouts. The
    grid of most calls has rows."""
    dtypes = {variable: rng.choice(_CHOICES.get(variable, FLOAT_CHOICES)) for variable in kernel.variables}
    absent = [t.name for t in kernel.tensors if t.optional and rng.random() < 0.15]
    bases = {base: rng.choice(["e", "2"]) for base in kernel.bases if rng.random() < 0.4}
    bound = [rng.choice(["m", "r"])] if rng.random() < 0.04 else []
    # A scalar that one call passes as a tensor is passed as a tensor by all calls: the compiled code depends on that.
    held = [scalar.name for scalar in kernel.scalars if scalar.from_tensor and rng.random() < 0.6]
    turn = rng.randrange(2) if kernel.exchanges else 0
    made: list[Call] = []
    for number in range(_CALLS):  # the sizes of the first call allow several rows
        for _ in range(_TRIES):
            call = Call(_sizes(kernel, rng, fixed, not number), list(absent), dict(dtypes), dict(bases), seed=rng.getrandbits(32), bound=list(bound), held=list(held), turn=turn)
            if made and bound:
                call.sizes = dict(made[0].sizes)
            call.scalars = {scalar.name: _scalar(scalar, call, rng) for scalar in kernel.scalars}
            call.bound = [dim for dim in call.bound if call.sizes.get(dim, 0) >= _sliced(kernel, dim)]
            _arrange(kernel, call, rng, bool(number), pairs)
            if rng.random() < 0.1 or _has_rows(kernel, call):
                break
        made.append(call)
    return made


def _has_rows(kernel: Kernel, call: Call) -> bool:
    """True if the grid has rows."""
    with np.errstate(all="ignore"):
        return Interpreter(kernel, call, cells_of(kernel, call, contents(kernel, call))).count() > 0


def _arrange(kernel: Kernel, call: Call, rng: random.Random, is_other: bool, pairs: list[tuple[str, str]]) -> None:
    """Chooses how a call passes its arguments, and their contents."""
    distinct = {promise.table for promise in kernel.promises if isinstance(promise, Distinct)}
    call.kinds = {t.name: "distinct" if t.name in distinct else _kind(t, rng) for t in kernel.tensors}
    call.kinds |= {lse: "lse" for _, lse in pairs}
    if is_other or rng.random() < 0.3:
        moved = _moved_rows(kernel)
        call.layouts = {t.name: _layout(t, t.name in moved, rng) for t in kernel.tensors if rng.random() < 0.5 and t.name != "cu" and not (t.of_ranks and t.access == "InOut")}
    for table in distinct & set(call.layouts):
        call.layouts[table].broadcast = []
    if rng.random() < 0.5:
        found = _aliases(kernel, call, rng)
        call.aliases = {w: r for w, r in found.items() if r not in call.layouts or not call.layouts[r].broadcast}


def _sizes(kernel: Kernel, rng: random.Random, fixed: dict[str, int], is_first: bool) -> dict[str, int]:
    sizes = dict(fixed)
    large = max(fixed.values()) > 300
    sizes["n"] = rng.choices([0, 1, 2, 3, 5, 7, 17], [0.4, 1, 1, 2, 2, 1, 0.0 if large else 0.3])[0]
    sizes["c"] = rng.choices([0, 1, 2, 3], [0.2, 1, 1, 1])[0]
    if is_first:
        sizes["n"], sizes["c"] = rng.choice([3, 4, 5, 7]), rng.choice([2, 3])
    while sizes["n"] * sizes["c"] * sizes["H"] > 30:
        sizes["n"], sizes["c"] = max(sizes["n"] // 2, 1), max(sizes["c"] - 1, 1)
    sizes["m"], sizes["s"] = rng.randint(1, 6), rng.randint(1, 9)
    sizes["b"] = rng.choice([2, 3, 5]) if is_first else rng.choices([0, 1, 2, 3, 5], [0.2, 1, 2, 2, 1])[0]
    sizes["b1"] = sizes["b"] + 1
    sizes["slots"] = rng.randint(1, 9)
    sizes["_"], sizes["k"], sizes["ranks"] = rng.randint(1, 4), rng.randint(1, MOST_LISTED), rng.randint(1, MOST_LISTED)
    for bound in {bound_of(dim) for tensor in kernel.tensors for dim in tensor.dims if is_bounded(dim)}:
        # Some calls give the dim its largest size (the bound) or a neighbour of a power of two, since another code
        # version may run at such sizes. All other sizes are at most 300, since longer rows take long.
        most = min(bound, 300)
        sizes["r"] = rng.choice([0, 1, most - 1, most, bound, rng.randint(0, most), rng.randint(0, most)])
        if is_first:
            sizes["r"] = max(sizes["r"], min(bound, 2))
        if bound > 300 and rng.random() < 0.5:
            sizes["r"] = min(bound, rng.choice([128, 256, 512, 1024, 2048]) + rng.choice([-1, 0, 1]))
    if max(fixed.values()) >= LONG:
        sizes |= {"n": min(sizes["n"], 2), "c": min(sizes["c"], 1), "m": 1, "s": 2, "b": min(sizes["b"], 2), "_": 1, "k": 1, "ranks": 1}
        sizes["b1"] = sizes["b"] + 1
    known = {name for tensor in kernel.tensors for dim in tensor.dims for name in names_of(dim)}
    return {dim: size for dim, size in sizes.items() if dim in known or dim == "_"}


def _scalar(scalar: Any, call: Call, rng: random.Random) -> Any:
    if scalar.name.startswith("count_"):
        dim = {"t": "n", "h": "H", "j": "c"}[scalar.name[-1]]
        return rng.randint(0, call.sizes.get(dim, 3)) if rng.random() < 0.5 else call.sizes.get(dim, 3)
    if scalar.at_most:
        return rng.randint(0, call.sizes[scalar.at_most])
    if scalar.dtype == "bool":
        return rng.random() < 0.5
    if scalar.dtype == "f32":
        special = [float("nan"), float("inf"), float("-inf"), -0.0, 1e30, 2.0**-149]
        return rng.choice(special) if rng.random() < 0.12 else rng.choice([rng.uniform(-4, 4), rng.uniform(-4, 4), 1.0, 0.0, 2.0, -3.0])
    top = 2**31 - 1 if scalar.dtype == "i32" or scalar.from_tensor else 2**63 - 1
    return rng.choice([top, -top - 1, top // 3]) if rng.random() < 0.08 else rng.randint(-5, 9) if rng.random() < 0.5 else rng.randint(0, 3)


def _moved_rows(kernel: Kernel) -> set[str]:
    """Returns the tensors whose last dim must have stride 1, since the kernel moves whole rows of them. Includes all
    tensors in the tuple of a loop. Omits tensors whose last dim is the first factor of a product along which the kernel
    has rows: such a dim may have any stride."""
    # The rows along products are looked for outside of branches only, since the compiled kernel may lack the rows of a
    # branch with a constant condition.
    stored = [[*node.walk()] for s in kernel.body if isinstance(s, Store) for node in expressions(s)]
    sure = [node for nodes in stored if all(node.op != "ifexp" for node in nodes) for node in nodes]
    groups = {factors(node.type.dim)[0] for node in sure if node.type.kind == "row" and factors(node.type.dim)}
    spread = {tensor.name for tensor in kernel.tensors if tensor.dims and parse_dim(tensor.dims[-1])[0] in groups}
    ranks = {tensor.name: len(tensor.dims) for tensor in kernel.tensors}
    moved = set()
    for node in kernel.nodes():
        if node.op == "load" and node.type.kind == "row":
            moved.add(node.attrs["tensor"])
        elif node.op == "load_state":
            moved.add(node.attrs["tensor"])
    for s in all_statements(kernel.body):
        if isinstance(s, Store) and len(s.indices) < ranks[s.tensor] + bool(s.part):
            moved.add(s.tensor)
        elif isinstance(s, StoreState):
            moved.add(s.out)
        elif isinstance(s, Each):
            moved |= {item[0].attrs["name"] for item in s.items if item[0].op == "tensor"}
    return moved - spread | {tensor.name for tensor in kernel.tensors if tensor.dtype == FP4}


def _layout(tensor: Tensor, is_moved: bool, rng: random.Random) -> Layout:
    rank = len(tensor.dims)
    outer = list(range(rank - 1)) if rank > 1 else []
    rng.shuffle(outer)
    layout = Layout([*outer, rank - 1] if rank else [])
    if tensor.tiles:
        return Layout(list(range(rank)), gap=rng.choice([0, 4, 8]))
    if rank and not is_moved:
        rng.shuffle(layout.order)
        layout.last_stride = rng.choices([1, 2, 5], [4, 1, 1])[0]
    layout.gap = rng.choices([0, 1, 3, 8, 16], [2, 1, 1, 1, 0.5])[0]
    layout.offset = rng.choices([0, 1, 2, 3, 5, 8], [3, 2, 1, 1, 1, 1])[0]
    if tensor.access == "In" and outer and rng.random() < 0.15:
        layout.broadcast = [rng.choice(outer)]
    if outer and rng.random() < 0.03:
        layout.reverse = [rng.choice(outer)]
    return layout


def _kind(tensor: Tensor, rng: random.Random) -> str:
    """Chooses the kind of a tensor's contents (contents.py)."""
    if tensor.dtype == "M":
        return rng.choice(["garbage", "any", "normal"])
    if tensor.dtype in ("i32", "i64", "I", "i8", "u8", "bool"):
        return rng.choices(["counts", "any"], [5, 1])[0]
    return rng.choices(["normal", "whole", "special", "garbage", "lse", "one"], [5, 2, 1.5, 0.7, 0.6, 0.3])[0]


def _aliases(kernel: Kernel, call: Call, rng: random.Random) -> dict[str, str]:
    """Returns pairs {written: read} of tensors that may share memory. They have the same dtype and dims, and each row
    accesses only its own elements of both."""
    spelled = {tensor: {",".join(n.attrs["name"] if n.op == "name" else "?" for n in nodes) for nodes in lists}
               for tensor, lists in accesses(kernel).items()}  # fmt: skip
    stored = written(kernel)
    found: dict[str, str] = {}
    for w in kernel.tensors:
        for r in kernel.tensors:
            if (w.name in stored and r.access == "In" and not r.listed and call.kinds.get(r.name) != "distinct" and w.name not in found and r.name not in found.values() and w.dtype == r.dtype
                    and w.dims == r.dims and w.tiles == r.tiles and r.name in spelled and spelled[w.name] == spelled[r.name]
                    and len(spelled[w.name]) == 1 and "?" not in min(spelled[w.name])
                    and not {w.name, r.name} & set(call.absent) and rng.random() < 0.7):  # fmt: skip
                found[w.name] = r.name
    return found
