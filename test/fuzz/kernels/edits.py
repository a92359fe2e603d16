"""The edits of the shrinker: each drops or simplifies one part of a case."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from syntax import (COMPUTED, Assume, Call, Case, Each, Kernel, Layout, Node, Store, StoreState, Type, blocks, factors,
                    get, is_bounded, lit, names_of, parse_dim, put, read_blocks, slots_of)  # fmt: skip

Edit = Callable[[Case], bool]


# -- What may be changed -------------------------------------------------------------------------------------------------


def _all_blocks(kernel: Kernel, read: bool = False) -> list[list[Any]]:
    """Returns every list of statements. With `read`, omits the branches that the front end skips because their
    condition is constant."""
    found = [kernel.body, *(inline.body for inline in kernel.inlines), kernel.promises]
    for block in found:  # grows during the iteration
        for statement in block:
            found.extend(read_blocks(statement) if read else blocks(statement))
    return found


def slots(kernel: Kernel, read: bool = False) -> list[tuple[Any, Any]]:
    """Returns every place that holds an expression, as (object, attribute) or (list, index). With `read`, omits the
    branches that the front end skips because their condition is constant."""
    found: list[tuple[Any, Any]] = []
    for block in _all_blocks(kernel, read):
        for s in block:
            found += [] if isinstance(s, Each) else slots_of(s)
    found += [(inline, "result") for inline in kernel.inlines]
    if kernel.grid.where is not None:
        found.append((kernel.grid, "where"))
    for holder, key in found:
        node = get(holder, key)
        found.extend((node.args, i) for i in range(len(node.args)))
    return found


# -- Edits ---------------------------------------------------------------------------------------------------------------


def statement_edits(case: Case) -> Iterator[Edit]:
    for b, block in enumerate(_all_blocks(case.kernel)):
        size = len(block)
        spans = [(0, size)] if size > 1 and b else []
        spans += [(i, i + size // 2) for i in (0, size - size // 2)] if size > 3 else []
        for first, last in [*spans, *((i, i + 1) for i in reversed(range(size)))]:
            yield lambda c, b=b, first=first, last=last: _cut(_all_blocks(c.kernel)[b], first, last)
    for b, block in enumerate(_all_blocks(case.kernel)):
        for i, s in enumerate(block):
            for inner in range(len(blocks(s))):
                yield lambda c, b=b, i=i, inner=inner: _unwrap(_all_blocks(c.kernel)[b], i, inner)
            for plain in _plainer(s):
                yield lambda c, b=b, i=i, plain=plain: _set(_all_blocks(c.kernel)[b][i], **plain)


def _cut(block: list[Any], first: int, last: int) -> bool:
    del block[first:last]
    return True


def _unwrap(block: list[Any], i: int, inner: int) -> bool:
    """Replaces a statement by the statements of one of its blocks."""
    block[i : i + 1] = blocks(block[i])[inner]
    return True


def _plainer(s: Any) -> list[dict[str, Any]]:
    """Returns attributes that make a statement simpler."""
    found: list[dict[str, Any]] = [{"where": None}, {"scale": None}, {"step": 1}]
    if isinstance(s, StoreState) and s.out:
        found.append({"lse": "", "lse_indices": []})
    if isinstance(s, Each):
        found.append({"items": s.items[:1]})
    return [plain for plain in found if any(getattr(s, key, value) != value for key, value in plain.items())]


def _set(holder: Any, **changed: Any) -> bool:
    for key, value in changed.items():
        setattr(holder, key, copy.deepcopy(value))
    return True


def expression_edits(case: Case) -> Iterator[Edit]:
    for place, (holder, key) in enumerate(slots(case.kernel)):
        node = get(holder, key)
        for i, argument in enumerate(node.args):
            if argument.type == node.type:
                yield lambda c, place=place, i=i: _replace(c, place, lambda n: n.args[i])
        if node.op == "merge" and len(node.args) > 1:
            for i in range(len(node.args)):
                yield lambda c, place=place, i=i: _drop_argument(c, place, i)
        if node.attrs.get("where"):
            yield lambda c, place=place: _plain_access(c, place)
        if node.type.kind == "scalar" and node.op != "lit":
            for value in _simple(node.type):
                yield lambda c, place=place, value=value: _replace(c, place, lambda n: lit(value, n.type))
                # Also tries a conversion of the literal: if all operands of an operation are literals, Python computes
                # the result itself, in other arithmetic, so that the failure may vanish.
                yield lambda c, place=place, value=value: _replace(c, place, lambda n: Node("convert", n.type, [lit(value, n.type)]))
        if node.type.kind == "row" and node.op not in ("splat", "load"):
            yield lambda c, place=place: _replace(c, place, lambda n: Node("splat", n.type, [lit(1.0 if n.type.dtype == "f32" else 1, n.type.scalar())]))
        if node.type.kind == "state" and node.op not in ("identity", "load_state"):
            yield lambda c, place=place: _replace(c, place, lambda n: Node("identity", n.type))


def _simple(type: Type) -> list[Any]:
    if type.dtype == "bool":
        return [True, False]
    return [] if type.dtype in ("i8", "u8", "M") else [0.0, 1.0] if type.dtype == "f32" else [0, 1]


def _replace(case: Case, place: int, make: Callable[[Node], Node]) -> bool:
    holder, key = slots(case.kernel)[place]
    put(holder, key, make(get(holder, key)))
    return True


def _drop_argument(case: Case, place: int, i: int) -> bool:
    holder, key = slots(case.kernel)[place]
    del get(holder, key).args[i]
    return True


def _plain_access(case: Case, place: int) -> bool:
    """Removes the predicate from a load."""
    node = get(*slots(case.kernel)[place])
    indices = node.access()[0]
    node.args = indices
    node.attrs = {k: v for k, v in node.attrs.items() if k not in ("where", "other", "ifexp")}
    return True


def call_edits(case: Case) -> Iterator[Edit]:
    if len(case.calls) > 1:
        for i in range(len(case.calls)):
            yield lambda c, i=i: bool(c.calls.__delitem__(i)) or True
    for i, call in enumerate(case.calls):
        yield from _edits_of_call(i, call, case.kernel)


def _edits_of_call(i: int, call: Call, kernel: Kernel) -> Iterator[Edit]:
    def change(**changed: Any) -> Edit:
        return lambda c: _set(c.calls[i], **changed)

    for key in ("layouts", "aliases", "bases"):
        if getattr(call, key):
            yield change(**{key: {}})
    if call.absent:
        yield change(absent=[])
    for name in call.layouts:
        yield change(layouts={k: v for k, v in call.layouts.items() if k != name})
        for plain in ({"gap": 0}, {"offset": 0}, {"broadcast": []}, {"reverse": []}, {"last_stride": 1}):
            if any(getattr(call.layouts[name], k) != v for k, v in plain.items()):
                yield change(layouts={**call.layouts, name: Layout(**{**vars(call.layouts[name]), **plain})})
    for dim, size in call.sizes.items():
        for smaller in {1, 2, size // 2, size - 1}:
            if 0 < smaller < size and dim not in ("_", "b1"):
                sizes = {**call.sizes, dim: smaller}
                if dim == "b":
                    sizes["b1"] = smaller + 1
                yield lambda c, sizes=sizes, dim=dim: _resize(c, sizes, dim)
    for variable, dtype in call.dtypes.items():
        if dtype not in ("f32", "i64"):
            yield change(dtypes={**call.dtypes, variable: "i64" if dtype == "i32" else "f32"})
    for tensor, kind in call.kinds.items():
        if kind == "distinct":
            continue
        for simpler in ("one", "whole") if kind not in ("counts", "any", "zero") else ("zero",):
            if kind != simpler and kind not in ("one", "zero"):
                yield change(kinds={**call.kinds, tensor: simpler})
    for scalar, value in call.scalars.items():
        for simpler in (0, 1):
            if value != simpler:
                yield change(scalars={**call.scalars, scalar: type(value)(simpler)})


def _resize(case: Case, sizes: dict[str, int], dim: str) -> bool:
    for call in case.calls:  # all calls share compile-time sizes
        call.sizes = {**call.sizes, dim: sizes[dim], **({"b1": sizes["b1"]} if dim == "b" else {})}
    return True


def kernel_edits(case: Case) -> Iterator[Edit]:
    for i, tensor in enumerate(case.kernel.tensors):
        if tensor.optional:
            yield lambda c, i=i: _set(c.kernel.tensors[i], optional=False)
        if tensor.dtype in ("T", "O", "bf16", "f16"):
            yield lambda c, i=i: _set(c.kernel.tensors[i], dtype="f32")
    if case.kernel.grid.where is not None:
        yield lambda c: _set(c.kernel.grid, where=None)


# -- What is no longer used ----------------------------------------------------------------------------------------------


def tidy(case: Case) -> None:
    """Drops arguments and functions that are no longer used."""
    kernel = case.kernel
    nodes = list(kernel.nodes())
    called = {n.attrs["function"] for n in nodes if n.op == "call"}
    kernel.inlines = [inline for inline in kernel.inlines if inline.name in called]
    nodes = list(kernel.nodes())
    names = {n.attrs.get(key) for n in nodes for key in ("tensor", "lse", "name")}
    for block in _all_blocks(kernel):
        for s in block:
            names |= {s.tensor} if isinstance(s, Store) else {s.out, s.lse} if isinstance(s, StoreState) else set()
            if isinstance(s, Each):
                names |= {n.attrs.get("name") for item in s.items for n in item}
    extents = {extent[1] for extent in kernel.grid.extents if isinstance(extent, (tuple, list))}
    kernel.scalars = [s for s in kernel.scalars if s.name in names or s.name in extents]
    dims = {extent[1] for extent in kernel.grid.extents if isinstance(extent, tuple) and extent[0] in COMPUTED}
    dims |= {extent for extent in kernel.grid.extents if isinstance(extent, str)} | {s.at_most for s in kernel.scalars}
    dims |= {n.attrs["dim"] for n in nodes if n.op == "shape" and "dim" in n.attrs}
    dims |= {n.type.dim for n in nodes if n.op in ("identity", "sink", "splat", "iota", "make_state", "row_of")}
    dims |= {n.type.dim for n in nodes if n.op == "load" and n.type.kind == "row"}  # the tensor may be omitted
    kernel.promises = [p for p in kernel.promises if isinstance(p, Assume) or p.table in names]
    kept = [t for t in kernel.tensors if t.name in names or t.name in kernel.grid.extents]
    products = {d for d in (*dims, *(d for t in kept for d in t.dims)) if factors(d)}
    dims |= products | {factors(product)[0] for product in products}  # a call computes J of (G J) from these two
    dims |= {parse_dim(d)[0] for t in kept for d in t.dims if is_bounded(d)}
    for dim in dims - {""}:
        if not any(parse_dim(d)[0] == dim for t in kept if not t.optional for d in t.dims):
            kept += [t for t in kernel.tensors if t not in kept and not t.optional and any(parse_dim(d)[0] == dim for d in t.dims)][:1]
    kernel.tensors = [t for t in kernel.tensors if t in kept]
    used = {t.dtype for t in kernel.tensors}
    kernel.variables = {v: d for v, d in kernel.variables.items() if v in used}
    if not any(n.type.base in kernel.bases for n in kernel.nodes(read=True)):
        kernel.bases = {}
    _tidy_calls(case)


def _tidy_calls(case: Case) -> None:
    kernel = case.kernel
    tensors = {t.name for t in kernel.tensors}
    known = {name for t in kernel.tensors for d in t.dims for name in names_of(d)}
    for call in case.calls:
        call.sizes = {d: size for d, size in call.sizes.items() if d in known or d == "_"}
        call.absent = [t for t in call.absent if t in tensors and kernel.tensor(t).optional]
        call.dtypes = {v: d for v, d in call.dtypes.items() if v in kernel.variables}
        call.bases = {b: v for b, v in call.bases.items() if b in kernel.bases}
        call.scalars = {s.name: call.scalars[s.name] for s in kernel.scalars}
        call.held = [s.name for s in kernel.scalars if s.name in call.held]
        call.layouts = {t: layout for t, layout in call.layouts.items() if t in tensors}
        call.kinds = {t: kind for t, kind in call.kinds.items() if t in tensors}
        call.aliases = {w: r for w, r in call.aliases.items() if {w, r} <= tensors and kernel.tensor(w).dtype == kernel.tensor(r).dtype}
        call.bound = [d for d in call.bound if d in call.sizes]
        for scalar in kernel.scalars:
            if scalar.at_most and scalar.at_most in call.sizes:
                call.scalars[scalar.name] = min(call.scalars[scalar.name], call.sizes[scalar.at_most])
