"""Generates random tensors, indices into them, and loads."""

from __future__ import annotations

import contextlib
import functools
import math
import random
from collections.abc import Iterator, Set
from typing import Any

from syntax import (BOOL, FLOATS, FP4, FP8, I32, I64, INDEX, TILED, Node, Scalar, Tensor, Type, bound_of, factors,
                    is_bounded, lit, name, parse_dim)  # fmt: skip


# The most nodes in an index. Indices grow fast: a guard repeats its index, and an index may itself be loaded at an
# index.
_INDEX_SIZE = 40
_MOST_INDEXING = 6  # the deepest nesting of loaded indices


def may_be_constant(node: Node) -> bool:
    """True if the value of an expression may be known at compile time."""
    if node.op in ("lit", "call", "present"):  # "present" is constant for a tensor that becomes mandatory later
        return True
    if node.op == "name":  # variables and parameters may be constant; arguments and indices are not
        return str(node.attrs["name"])[0] in "vp"
    if node.op == "compare":
        return all(may_be_constant(part) for part in node.args)
    parts = node.args[:1] if node.op == "convert" else node.args
    return node.op in ("convert", "unary", "logic", "binary", "ifexp", "where") and any(may_be_constant(part) for part in parts)


def both(one: Node | None, other: Node | None, op: str = "binary") -> Node | None:
    """Returns the conjunction of two conditions. None is true."""
    if one is None or other is None:
        return one or other
    return Node(op, BOOL, [one, other], {"name": "and"})


def guarded(op: str, type: Type, nodes: list[Node], guard: Node | None, attrs: dict[str, Any]) -> Node:
    """Returns a load that has a predicate unless `guard` is None."""
    return Node(op, type, nodes, attrs) if guard is None else Node(op, type, [*nodes, guard], {**attrs, "where": True})


class Loads:
    """Generates loads. Adds the tensors and scalar arguments that they need to the kernel.

    Args:
        rng: the source of all choices.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.tensors: list[Tensor] = []
        self.scalars: list[Scalar] = []
        self.variables: dict[str, Type] = {}  # names in scope
        self.within: dict[str, set[str]] = {}  # by name of an index: the dims for which the index is in bounds
        self.row_dims: list[str] = []
        self.product = ""  # the dim in `row_dims` that is a product; its groups lie along "G"
        self.inner = ""  # the dim of one group: the product's second factor, or a name for it if the factor is a number
        self.own: list[tuple[str, str]] = []  # (index of the grid, dim along which it runs)
        self.other_dims: list[str] = []  # other dims that tensors may have
        self.indexing = 0  # the nesting depth of the current index
        self.writes: dict[str, list[Node]] = {}  # by written tensor: the indices of the elements that this row owns
        self.pairs: list[tuple[str, str]] = []  # (tensor of payloads, tensor of their lses)
        self.single: set[str] = set()  # inputs that were added for one purpose; no other expressions load them
        self.distinct: list[str] = []  # tables of distinct entries
        self.pure = False  # True inside an inline function, which has no tensors and no grid
        self.in_where = False  # True in a grid's predicate, which has only scalars
        self.inline_functions: list[Any] = []
        self.segment_index = ""
        self.float_dtypes = ["bf16", "f16", "f32"]
        self.counter = 0

    # -- Choices -----------------------------------------------------------------------------------------------------

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def pick(self, options: Any) -> Any:
        return self.rng.choice(list(options))

    def weighted(self, options: dict[Any, float]) -> Any:
        return self.rng.choices(list(options), list(options.values()))[0]

    def fresh(self, prefix: str) -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    @contextlib.contextmanager
    def scope(self, index: str = "", type: Type = INDEX, within: Set[str] = frozenset()) -> Iterator[None]:
        """Names that are introduced in this scope leave it at its end. `index` is known in it, and in bounds of the dims
        `within`."""
        outer = dict(self.variables), dict(self.within)
        if index:
            self.variables[index], self.within[index] = type, set(within)
        yield
        self.variables, self.within = outer

    @property
    def state_dims(self) -> list[str]:
        """Returns the dims along which a state's payload may lie. Their sizes are known when the kernel is compiled."""
        return [dim for dim in self.row_dims if not is_bounded(dim)]

    # -- Tensors -----------------------------------------------------------------------------------------------------

    def expression(self, type: Type, depth: int) -> Node:
        """Returns an expression. Implemented in generate_expressions.py."""
        raise NotImplementedError

    def leaf(self, type: Type) -> Node:
        raise NotImplementedError

    def leaf_name(self, type: Type) -> Node | None:
        raise NotImplementedError

    def literal(self, type: Type) -> Node:
        raise NotImplementedError

    def add_tensor(self, dtype: str, dims: list[str], access: str = "In", optional: bool = False, prefix: str = "") -> Tensor:
        tensor = Tensor(self.fresh(prefix or {"In": "x", "Out": "y", "InOut": "z"}[access]), dtype, dims, access, optional)
        self.tensors.append(tensor)
        return tensor

    def element(self, tensor: Tensor) -> str:
        """Returns the type of a tensor's elements in a kernel's body."""
        if tensor.dtype in ("I", "J"):
            return "i64"
        return "f32" if tensor.dtype in ("T", "O", *FLOATS, *FP8, FP4) else tensor.dtype

    def new_input(self, element: str, row_dim: str) -> Tensor:
        """Adds an input and returns it. Its elements have the type `element` in the kernel's body. The kernel loads
        rows along `row_dim`, or single elements if `row_dim` is ""."""
        if element == "f32" and row_dim and self.is_even(row_dim) and self.chance(0.06):
            dtype = FP4
        elif element == "f32":
            dtype = self.pick([*self.float_dtypes, "T", "T", "f32"] if self.chance(0.88) else FP8)
        elif element == "i64":
            dtype = self.pick(["i64", "i64", "I"])
        else:
            dtype = element
        leading = [dim for _, dim in self.own if self.chance(0.7) and not self.in_where]
        if self.other_dims and self.chance(0.35):
            leading.append(self.pick(self.other_dims))
        if self.segment_index and self.chance(0.4):
            leading.append("b")
        if self.chance(0.06):
            leading.append(f"two{self.counter}=2")
        self.rng.shuffle(leading)
        leading = leading[:4]
        optional = self.chance(0.1)
        dims = [*leading, row_dim] if row_dim else leading or [self.pick([*self.other_dims, "one=1"])]
        if not row_dim and self.row_dims and self.chance(0.2):
            dims = [*leading, self.pick(self.row_dims)]
        if element == "f32" and self.chance(0.1) and not self.in_where and not {"k", "ranks"} & set(dims) and sum(t.listed for t in self.tensors) < 3:
            count = "ranks" if not self.segment_index and not self.sent and self.chance(0.4) else "k"
            if count not in self.other_dims:
                self.other_dims.append(count)
            made = self.add_tensor(dtype, [count, *dims], "In", prefix="parts" if count == "k" else "parts_of_rank")
            made.listed = True
            return made
        made = self.add_tensor(dtype, dims, "In", optional)
        if not row_dim and made.dims == leading and self.chance(0.06):
            made.tiles = self.pick([*TILED])
            made.dims = [TILED[made.tiles], *made.dims]
        return made

    def is_even(self, row_dim: str) -> bool:
        """True if rows along the dim, or their groups, have an even number of elements. False for rows with one element
        per group."""
        text, fixed = parse_dim(factors(row_dim)[1] if factors(row_dim) else row_dim)
        size = int(text) if text.isdigit() else fixed or self.fixed_sizes.get(text, 1)
        return size % 2 == 0 and row_dim != "G"

    def input(self, element: str, row_dim: str, has_halves: bool = True) -> Tensor:
        """Returns an input, an existing or a new one. With `has_halves`, two elements may share a byte (f4e2m1)."""
        has_halves &= bool(row_dim)
        usable = [t for t in self.tensors if t.access == "In" and self.element(t) == element and (has_halves or t.dtype != FP4)
                  and (bool(row_dim) <= (t.dims[-1] == row_dim)) and t.name != "cu" and t.name not in self.single]  # fmt: skip
        if self.in_where:  # leaves out tensors along the grid's dims: such tensors are empty if no segment has rows
            own = {dim for _, dim in self.own}
            usable = [t for t in usable if not own & set(t.dims)]
        if usable and (self.chance(0.65) or len(self.tensors) > 8):
            return self.pick(usable)
        made = self.new_input(element, row_dim)
        if made.dtype == FP4 and not has_halves:
            made.dtype = "f8e4m3fn"
        return made

    # -- Indices -----------------------------------------------------------------------------------------------------

    def index_for(self, dim: str, depth: int) -> tuple[Node, Node | None]:
        """Returns an index into a dim, and the condition under which it is in bounds. The condition is None if an
        access with the index needs none."""
        text, fixed = parse_dim(dim)
        inside = [index for index, dims in self.within.items() if text in dims and index in self.variables]
        if inside and not self.chance(0.12):
            chosen = self.pick(inside)
            return name(chosen, self.variables[chosen]), None
        if fixed is not None and self.chance(0.5):
            return lit(self.rng.randrange(fixed), INDEX), None
        if self.indexing > _MOST_INDEXING:
            index = self.leaf_name(INDEX) or lit(0, INDEX)
        else:
            self.indexing += 1
            index = self.expression(self.pick([I32, INDEX, I64] if depth > 0 else [I32, INDEX]), 1 if depth > 1 and self.chance(0.4) else 0)
            self.indexing -= 1
        if sum(1 for _ in index.walk()) > _INDEX_SIZE:
            index = self.leaf_name(INDEX) or lit(0, INDEX)
        size = lit(fixed, INDEX) if fixed is not None else Node("shape", INDEX, [], {"dim": text})
        if index.op == "lit":
            index = Node("convert", index.type, [self.leaf(INDEX)]) if index.type != INDEX else self.leaf_name(INDEX) or index
        wide = index if index.type == INDEX else Node("convert", INDEX, [index])
        if not may_be_constant(wide) and self.chance(0.05):  # not clamped, since a load out of bounds reads nothing
            return (wide if self.chance(0.5) else index), None
        if wide.op == "lit" or self.chance(0.78):  # clamped
            top = Node("binary", INDEX, [size, lit(1, INDEX)], {"name": "sub"}) if fixed is None else lit(fixed - 1, INDEX)
            low = Node("binary", INDEX, [wide, top], {"name": "min"})
            return Node("binary", INDEX, [low, lit(0, INDEX)], {"name": "max"}), None
        guard = Node("compare", BOOL, [lit(0, INDEX), wide, size], {"ops": ["le", "lt"]})
        return (wide if self.chance(0.5) else index), guard

    def place(self, tensor: Tensor, is_row: bool, depth: int) -> tuple[list[Node], Node | None]:
        """Returns indices into a tensor, and the condition under which they are in bounds. The condition is None if an
        access with the indices needs none."""
        dims = tensor.dims[:-1] if is_row else tensor.dims
        if not is_row and self.is_parted(tensor):
            dims = [*dims[:-1], "G", self.inner]
        return self.places(dims, depth)

    def is_parted(self, tensor: Tensor) -> bool:
        """True if rows of the tensor lie along the product. An element then has one index per factor."""
        return bool(self.product) and bool(tensor.dims) and tensor.dims[-1] == self.product

    def places(self, dims: list[str], depth: int) -> tuple[list[Node], Node | None]:
        found = [self.index_for(dim, depth) for dim in dims]
        return [node for node, _ in found], functools.reduce(both, (guard for _, guard in found), None)

    # -- Loads -------------------------------------------------------------------------------------------------------

    def load(self, type: Type, depth: int) -> Node:
        row_dim = type.dim if type.kind == "row" else ""
        if not self.in_where and self.writes and self.chance(0.08):
            found = self.own_load(type)
            if found is not None:
                return found
        if row_dim and not self.in_where and type.dtype != "M" and self.chance(0.07):
            found = self.load_into(type, depth)
            if found is not None:
                return found
        if row_dim and not self.in_where and parse_dim(row_dim)[1] is not None and self.chance(0.3):
            found = self.load_slice(type, depth)
            if found is not None:
                return found
        part = {self.inner: "group", "G": "member"}.get(row_dim, "") if self.product and self.chance(0.45) else ""
        tensor = self.input(type.dtype, self.product if part else row_dim, part != "member")
        attrs: dict[str, Any] = {"tensor": tensor.name}
        if part:
            nodes, guard = self.places([*tensor.dims[:-1], "G" if part == "group" else self.inner], depth)
        else:
            nodes, guard = self.place(tensor, bool(row_dim), depth)
            part = "element" if not row_dim and self.is_parted(tensor) else ""
        if part:
            attrs["part"] = part
        if row_dim and part != "member" and self.chance(0.15):
            attrs["colon"] = True
        if guard is None and self.chance(0.8 if depth else 0.95):
            return Node("load", type, nodes, attrs)
        if guard is None or self.chance(0.3):
            guard = both(guard, self.expression(BOOL, min(depth - 1, 1)), "logic")
        # If the condition of `a if guard else b` is a constant, a literal b stays an untyped number. It is therefore
        # converted to the type, which is not possible for rows, bytes and "M".
        converts = not row_dim and type.dtype not in ("i8", "u8", "M")
        if self.chance(0.3) and (converts or not may_be_constant(guard)):  # `a if guard else b` reads nothing if the guard is false
            other = self.expression(type, 0) if self.chance(0.5) else self.literal(type.scalar())
            if other.op == "lit" and may_be_constant(guard):
                other = Node("convert", type, [other])
            return Node("ifexp", type, [guard, Node("load", type, nodes, attrs), other])
        args = [*nodes, guard]
        attrs["where"] = True
        if self.chance(0.4):
            attrs["other"] = True
            args.append(self.literal(type.scalar()) if self.chance(0.6) else self.expression(type.scalar(), 0))
        return Node("load", type, args, attrs)

    def own_value(self, type: Type) -> Node:
        """Loads a row or an element of a mandatory tensor at the grid's indices. These are in bounds, and each row of
        the grid loads another row or element."""
        row_dims = [type.dim] if type.kind == "row" else []
        dims = [*(dim for _, dim in self.own), *row_dims]
        dtypes = ("f32", "bf16", "T") if type.dtype == "f32" else (type.dtype,)
        usable = [t for t in self.tensors if t.access == "In" and t.dims == dims and t.dtype in dtypes and not t.optional and not t.listed and not t.tiles and t.name not in self.single]
        tensor = self.pick(usable) if usable and self.chance(0.7) else self.add_tensor(self.pick(dtypes), dims)
        return Node("load", type, [name(index, INDEX) for index, _ in self.own], {"tensor": tensor.name})

    def most(self, dim: str) -> int:
        """Returns the largest number of elements of a row along a dim that is not a product."""
        return bound_of(dim) if is_bounded(dim) else parse_dim(dim)[1] or self.fixed_sizes.get(dim, 1)

    def sliced_dims(self, but: str, size: int = 0) -> list[str]:
        """Returns the dims other than `but` whose rows have slices of `size` elements."""
        named = [dim for dim in self.row_dims if dim != but and not factors(dim) and parse_dim(dim)[1] is None]
        return [dim for dim in named if self.most(dim) >= size and not (self.product and dim == "G")]

    def load_slice(self, type: Type, depth: int) -> Node | None:
        """Loads a slice of a longer row. The slice has as many elements as a row of this type, whose dim has a fixed
        size. Returns None if no row is long enough."""
        size = self.most(type.dim)
        longer = self.sliced_dims(type.dim, size)
        if not longer:
            return None
        tensor = self.input(type.dtype, self.pick(longer), has_halves=False)
        nodes, guard = self.place(tensor, True, depth)
        attrs: dict[str, Any] = {"tensor": tensor.name, "slice": self.slice(self.most(tensor.dims[-1]), size)}
        return guarded("load", type, nodes, guard, attrs)

    def load_into(self, type: Type, depth: int, own: Tensor | None = None) -> Node | None:
        """Loads a row along another dim into a row of this type, from some element on. With `own`, loads the row of
        this updated tensor that the row of the grid stores to."""
        shorter = self.sliced_dims(type.dim)
        if not (own or shorter) or parse_dim(type.dim)[1] is not None or (self.product and type.dim == "G"):
            return None
        tensor = own or self.input(type.dtype, self.pick(shorter), has_halves=False)
        nodes, guard = (list(self.writes[own.name]), None) if own else self.place(tensor, True, depth)
        size = math.prod(int(text) if text.isdigit() else self.fixed_sizes.get(text, 1) for text in factors(type.dim) or [type.dim])
        size = bound_of(type.dim) if is_bounded(type.dim) else size
        first = self.pick([0, 0, min(1, size), size // 2, max(size - 8, 0), self.rng.randint(0, size), -1, -self.rng.randint(0, size)])
        attrs: dict[str, Any] = {"tensor": tensor.name, "into": parse_dim(type.dim)[0], "first": first, "each": self.pick([1, 1, 2, 2, 3])}
        if self.chance(0.5):
            attrs["slice"] = self.slice(self.most(tensor.dims[-1]))
        return guarded("load", type, nodes, guard, attrs)

    def slice(self, size: int, count: int = 0) -> tuple[int, int]:
        """Returns the bounds [begin, end) of a slice in a row of `size` elements. The slice has `count` elements; 0
        chooses a random number."""
        count = count or self.rng.randint(1, size)
        begin = self.pick([0, size - count, self.rng.randint(0, size - count), self.rng.randint(0, size - count) // 8 * 8])
        return begin, begin + count

    def own_load(self, type: Type) -> Node | None:
        """Loads elements that this row has written, or may have written, before."""
        row_dim = type.dim if type.kind == "row" else ""
        if self.product and row_dim in (self.inner, "G") and self.chance(0.6):
            return self.own_part(type, "group" if row_dim == self.inner else "member")
        if row_dim and type.dtype in ("f32", "i32", "bool") and self.chance(0.5):
            rows = [t for t in self.tensors if t.access == "InOut" and len(self.writes.get(t.name, t.dims)) < len(t.dims)
                    and self.element(t) == type.dtype and t.dtype != FP4 and t.dims[-1] in self.sliced_dims(type.dim)]  # fmt: skip
            if rows:
                return self.load_into(type, 0, self.pick(rows))
        found = [t for t in self.tensors if t.access == "InOut" and t.name in self.writes and self.element(t) == type.dtype
                 and (len(self.writes[t.name]) < len(t.dims)) == bool(row_dim)
                 and (not row_dim or t.dims[-1] == row_dim)]  # fmt: skip
        if not found:
            return None
        tensor = self.pick(found)
        return Node("load", type, list(self.writes[tensor.name]), {"tensor": tensor.name})

    def own_part(self, type: Type, part: str) -> Node | None:
        found = [t for t in self.tensors if t.access == "InOut" and t.name in self.writes and self.element(t) == type.dtype
                 and self.is_parted(t) and len(self.writes[t.name]) < len(t.dims) and (part == "group" or t.dtype != FP4)]  # fmt: skip
        if not found:
            return None
        tensor = self.pick(found)
        index, guard = self.index_for("G" if part == "group" else self.inner, 0)
        return guarded("load", type, [*self.writes[tensor.name], index], guard, {"tensor": tensor.name, "part": part})

    def widening_load(self, to: Type) -> Node:
        dtype = self.pick(["i8", "u8", "i32"] if to == I64 else ["i8", "u8"])
        tensor = self.input(dtype, "")
        nodes, guard = self.place(tensor, False, 0)
        part = {"part": "element"} if self.is_parted(tensor) else {}
        plain = Node("load", to, nodes, {"tensor": tensor.name, "widen": to.dtype, **part})
        if guard is None:
            return plain
        other = lit(self.rng.randint(-3, 3), to)
        return Node("ifexp", to, [guard, plain, Node("convert", to, [other]) if may_be_constant(guard) else other])

    def load_state(self, type: Type, depth: int) -> Node:
        usable = [pair for pair in self.pairs if self.tensor_of(pair[0]).dims[-1] == type.dim]
        if usable and (self.chance(0.6) or len(self.tensors) > 8):
            out, lse = (self.tensor_of(part) for part in self.pick(usable))
        elif self.chance(0.4):  # each row of the grid loads its own state, at the grid's indices
            outer = [dim for _, dim in self.own]
            out = self.add_tensor(self.pick(["f32", "T", "bf16"]), [*outer, type.dim])
            lse = self.add_tensor("f32", outer, prefix="l")
            self.pairs.append((out.name, lse.name))
            indices = [name(index, INDEX) for index, _ in self.own]
            return Node("load_state", type, [*indices, *indices], {"tensor": out.name, "lse": lse.name, "split": len(indices)})
        else:
            out = self.new_input("f32", type.dim)
            dims = out.dims[:-1]
            if self.chance(0.6):
                self.rng.shuffle(dims)
            lse = self.add_tensor("f32", dims or ["one=1"], "In", out.optional and self.chance(0.7), prefix="l")
            self.pairs.append((out.name, lse.name))
        out_nodes, guard = self.place(out, True, min(depth, 1))
        lse_nodes = []
        for dim in lse.dims:  # if payload and lse have the same dim, they get the same index
            if dim in out.dims[:-1]:
                lse_nodes.append(out_nodes[out.dims.index(dim)])
            else:
                node, extra = self.index_for(dim, 0)
                lse_nodes.append(node)
                guard = both(guard, extra)
        if self.chance(0.3):
            guard = both(guard, self.expression(BOOL, min(depth, 1)), "logic")
        return guarded("load_state", type, [*out_nodes, *lse_nodes], guard, {"tensor": out.name, "lse": lse.name, "split": len(out_nodes)})

    def tensor_of(self, wanted: str) -> Tensor:
        return next(tensor for tensor in self.tensors if tensor.name == wanted)
