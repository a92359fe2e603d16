"""Generates a random kernel with its calls from a seed."""

from __future__ import annotations

import random
from typing import Any

from generate_calls import LONG, calls
from generate_live import enliven
from generate_reach import Reach
from syntax import (BOOL, COMPUTED, F32, I32, I64, INDEX, OF_B, Assign, Assume, Call, Case, Distinct, Exchange, For,
                    Grid, Kernel, Node, Scalar, Store, StoreState, Tensor, Type, all_statements, factors, is_bounded,
                    lit, name, parse_dim, row)  # fmt: skip

_SIZES = {1: 0.5, 2: 2, 3: 2, 4: 3, 5: 2, 6: 1, 7: 2, 8: 4, 12: 1, 16: 4, 17: 1, 24: 1, 31: 1, 32: 3, 33: 1.5, 48: 1, 64: 3, 65: 0.7, 96: 1,
          100: 0.7, 128: 3, 130: 0.4, 192: 0.7, 256: 1, 300: 0.4}  # fmt: skip
# Sizes of long rows, with their weights in the random choice. Rows of the last sizes have more elements than the lanes
# keep in registers. Kernels with such a size get calls with few rows (_sizes of generate_calls.py).
_LARGE = {512: 2, 576: 1, 1000: 1, 1025: 1, 2048: 2, 2050: 1, 4096: 1, 7168: 0.5, 65537: 1, 65544: 1, 128256: 1, 151936: 0.5, 262145: 0.5}
_LARGE_RATE = 0.03
_IN_MEMORY = [65536, 65537, 65537, 100000, 131072, 131072]  # upper bounds of dims; their rows stay in memory even if a call's rows are short


class Generator(Reach):
    """Generates one kernel."""

    def __init__(self, seed: int) -> None:
        super().__init__(random.Random(seed))
        self.seed = seed
        self.extents: list[Any] = []
        self.partial = False  # True if the grid may leave rows of tensors unwritten
        self.fixed_sizes: dict[str, int] = {}
        self.sent = ""  # the tensor to which ranks store; "" if there is none

    def case(self) -> Case:
        self.choose_dims()
        self.choose_grid()
        for index, dim in self.own:
            self.variables[index] = INDEX
            self.within[index] = {parse_dim(dim)[0]}
        if self.segment_index:
            self.variables[self.segment_index] = INDEX
            self.within[self.segment_index] = {"b"}
        self.inline_functions = []
        for number in range(self.weighted({0: 6, 1: 2, 2: 1})):
            self.inline_functions.append(self.inline(number))
        large = any(size > 300 for size in self.fixed_sizes.values())
        sends = self.sends() if not large and not self.segment_index and self.chance(0.05) else []
        seen = {v: of for v, of in self.variables.items() if v.startswith("v")}
        in_memory = [dim for dim in self.row_dims if not factors(dim) and parse_dim(dim)[1] is None and self.most(dim) >= LONG]
        body = self.reuse(1, self.pick(in_memory)) if in_memory and self.chance(0.7) else []
        body += self.statements(self.rng.randint(0, 2) if large else self.weighted({0: 2, 1: 3, 2: 3, 3: 2, 4: 1, 6: 0.4}), 0 if large else 2)
        for _ in range(self.weighted({1: 5, 2: 3, 3: 1})):
            body.append(self.write(self.weighted({"Out": 4, "InOut": 1.5}) if not self.partial else "InOut", BOOL if self.chance(0.6) else None))
        body = sends + self.reach(body, seen, large)
        kernel = Kernel(self.tensors, self.scalars, self.grid(), body, self.inline_functions)
        called = {node.attrs["function"] for node in kernel.nodes() if node.op == "call"}
        kernel.inlines = [function for function in kernel.inlines if function.name in called]
        kernel.promises = [Distinct(table) for table in self.distinct]
        self.finish(kernel)
        made = calls(kernel, self.rng, self.fixed_sizes, self.pairs)
        if self.chance(0.95):
            enliven(kernel, made, name(self.own[0][0], INDEX))
        for _ in range(self.weighted({0: 5, 1: 2, 2: 1})):
            self.promise(kernel, made)
        return Case(kernel, made)

    def choose_dims(self) -> None:
        sizes = _LARGE if self.chance(_LARGE_RATE) else _SIZES
        self.row_dims = ["D"]
        self.fixed_sizes["D"] = self.weighted(sizes)
        if self.chance(0.3):
            self.row_dims.append("E")
            self.fixed_sizes["E"] = self.weighted(_SIZES)
        if self.chance(0.04):
            self.row_dims.append(f"e={self.pick([1, 3, 8, 20])}")
        if self.chance(0.15):  # a dim for rows whose elements are listed one by one
            self.row_dims.append(f"o={self.weighted({1: 1, 2: 2, 3: 2, 4: 3, 5: 1, 7: 1, 8: 3, 9: 1, 16: 1, 33: 0.3, 64: 0.3})}")
        if self.chance(0.35):
            self.choose_product()
        if self.chance(0.2):
            bound = self.pick([1, 2, 7, 8, 32, 33, 40, 100, 128, 300, 600, 2500, *_IN_MEMORY])
            self.row_dims.append(f"r<={bound}")
        self.other_dims = [dim for dim, rate in (("m", 0.6), ("K", 0.35), ("s", 0.3)) if self.chance(rate)]
        self.fixed_sizes["K"] = self.rng.randint(1, 9)
        self.fixed_sizes["H"] = self.rng.randint(1, 6)
        if self.fixed_sizes["D"] >= LONG:
            self.fixed_sizes |= {"K": 1, "H": 1}

    def choose_product(self) -> None:
        """Chooses a dim of groups, (G 12) or (G J), and rows with one element per group."""
        size = self.pick([1 if self.chance(0.3) else 6, 2, 3, 4, 5, 7, 8, 12, 16, 20, 32, 33, 64, 96, 128])
        self.fixed_sizes["G"] = self.rng.randint(1 if self.chance(0.04) else 2, max(2, min(12, 300 // size)))
        self.fixed_sizes["J"] = size
        self.product = f"(G {size})" if self.chance(0.5) else "(G J)"
        self.inner = f"w={size}" if self.product.endswith(f"{size})") else "J"
        self.row_dims += [self.product, "G", *([self.inner] if self.chance(0.6) else [])]

    # -- The grid ----------------------------------------------------------------------------------------------------

    def choose_grid(self) -> None:
        if self.chance(0.22):
            self.segment_index, self.partial = "b", True
            self.tensors.append(Tensor("cu", "i32", ["b1"], "In"))
            self.own = [("t", "n")]
            self.extents = ["cu", "n"]
            if self.chance(0.55):
                self.own.append(("h", "H"))
                self.extents.append("H")
            return
        for index in ["t", "h", "j"][: self.weighted({1: 4, 2: 4, 3: 1.2})]:
            self.choose_extent(index)

    def choose_extent(self, index: str) -> None:
        dim = {"t": "n", "h": "H", "j": "c"}[index]
        how = self.weighted({"dim": 8, "scalar": 1, "number": 0.8, "computed": 0.6})
        if how == "number":
            size = self.rng.randint(1, 4)
            self.own.append((index, f"q{index}={size}"))
            self.extents.append(size)
        elif how == "computed":
            op, number = self.pick([("add", 1), ("add", 2), ("mul", 2)])
            dim = f"P{index}"
            self.fixed_sizes[dim] = self.fixed_sizes["H"] + number if op == "add" else self.fixed_sizes["H"] * number
            self.own.append((index, dim))
            self.extents.append((op, "H", number))
        elif how == "scalar":
            scalar = Scalar(f"count_{index}", self.pick(["index", "i32", "i64"]), dim if self.chance(0.7) else "")
            self.scalars.append(scalar)
            self.own.append((index, dim))
            self.extents.append(("scalar", scalar.name))
            self.partial = True
        else:
            self.own.append((index, dim))
            self.extents.append(dim)

    def grid(self) -> Grid:
        indices = [index for index, _ in self.own]
        where, inline = None, False
        if self.segment_index:
            indices.insert(0, "b")
            if self.chance(0.75):
                outer = self.variables, self.within, self.row_dims
                self.variables, self.within, self.in_where = {"b": INDEX}, {"b": {"b"}}, True
                self.row_dims = []
                where = self.chosen() if self.chance(0.85) else self.expression(BOOL, 2)
                self.variables, self.within, self.row_dims = outer
                self.in_where = False
                # Only a predicate without tensors and scalars can be an inline function, which sees only its arguments.
                inline = all(n.op not in ("load", "shape", "present") and n.attrs.get("name") not in {s.name for s in self.scalars} for n in where.walk())
        return Grid(indices, self.extents, bool(self.segment_index), where, inline)

    def chosen(self) -> Node:
        """Returns a predicate on segments that is true for some of them."""
        if self.chance(0.4):
            odd = Node("binary", INDEX, [name("b", INDEX), lit(1, INDEX)], {"name": "and"})
            return Node("compare", BOOL, [odd, lit(0, INDEX)], {"ops": [self.pick(["eq", "ne", "le"])]})
        tensor = self.add_tensor(self.pick(["i32", "i64", "f32"]), ["b"])
        of = F32 if tensor.dtype == "f32" else I32 if tensor.dtype == "i32" else I64
        return Node("compare", BOOL, [Node("load", of, [name("b", INDEX)], {"tensor": tensor.name}), lit(1.0 if of == F32 else self.rng.randint(-1, 5), of)],
                    {"ops": [self.pick(["lt", "le", "gt"])]})  # fmt: skip

    # -- Ranks that store to each other -----------------------------------------------------------------------------------

    def sends(self) -> list[Any]:
        """Returns statements by which every rank stores a row or an element to each rank, and then reads what one
        of the ranks stored to it. This process is rank 0."""
        half, to, got = self.fresh("half"), self.fresh("to"), self.fresh("v")
        type = self.pick([row("D"), row("D"), F32, I32])
        dims = [dim for _, dim in self.own] + ([type.dim] if type.dim else [])
        own = [name(index, self.variables[index]) for index, _ in self.own]
        sender = lit(0, INDEX)
        self.sent = self.fresh("sent")
        with self.scope(to, INDEX):
            value = self.expression(type, 2)
            where = self.expression(BOOL, 1) if self.chance(0.4) else None
        dtype = "i32" if type == I32 else self.pick(["f32", "bf16", "f16", "f8e4m3fn"])
        self.tensors.append(Tensor(self.sent, dtype, ["ranks", "turns=2", "froms=3", *dims], "InOut", listed=True))
        place = [name(half, INDEX), sender, *own]
        ranks = Node("shape", INDEX, [], {"tensor": self.sent, "position": 0})
        send = Store(self.sent, [name(to, INDEX), *place], value, where)
        seen = Node("load", type, [lit(0, INDEX), name(half, INDEX), lit(self.rng.randrange(3), INDEX), *own], {"tensor": self.sent})
        self.variables[got] = type
        return [Assign([half], [Node("turn", INDEX)]), For(to, lit(0, INDEX), ranks, 1, [send], 1), Exchange(), Assign([got], [seen])]

    # -- Promises ----------------------------------------------------------------------------------------------------

    def promise(self, kernel: Kernel, made: list[Call]) -> None:
        """Adds, before the grid, a promise that holds for all calls."""
        given = {d for t in kernel.tensors if not t.optional for d in t.dims if not factors(d) and "=" not in d and d[0].islower() and d != "b1"}
        bound = {dim for call in made for dim in call.bound}
        found = [(Node("shape", INDEX, [], {"dim": parse_dim(d)[0]}), [call.sizes[parse_dim(d)[0]] for call in made]) for d in sorted(given) if parse_dim(d)[0] not in bound]
        found += [(name(s.name, Type("scalar", s.dtype)), [int(call.scalars[s.name]) for call in made])
                  for s in kernel.scalars if s.dtype in ("index", "i32", "i64") and not s.from_tensor]  # fmt: skip
        if not found:
            return
        value, numbers = self.pick(found)
        least, most = min(numbers), max(numbers)
        how = self.weighted({"least": 2, "most": 2, "remainder": 1})
        if how == "remainder" and least % 2 == most % 2 and all(n % 2 == least % 2 for n in numbers):
            value, op, end = Node("binary", value.type, [value, lit(2, value.type)], {"name": "mod"}), "eq", least % 2
        elif how == "most":
            op, end = self.pick([("le", most), ("lt", most + 1)]) if most < 2**31 - 1 else ("le", most)
        else:
            op, end = self.pick([("ge", least), ("gt", least - 1)]) if least > -(2**31) else ("ge", least)
        kernel.promises.append(Assume(Node("compare", BOOL, [value, lit(end, value.type)], {"ops": [op]})))

    # -- Completion --------------------------------------------------------------------------------------------------

    def finish(self, kernel: Kernel) -> None:
        """Completes a kernel: adds tensors for all dims whose size is used, and declares dtype variables and bases. May
        shuffle the tensors."""
        dims = {extent for extent in kernel.grid.extents if isinstance(extent, str) and extent != "cu"}
        dims |= {extent[1] for extent in kernel.grid.extents if isinstance(extent, tuple) and extent[0] in COMPUTED}
        for node in kernel.nodes():
            if node.op == "shape" and "dim" in node.attrs:
                dims.add(node.attrs["dim"])
            if node.op in ("identity", "sink", "splat", "iota", "make_state", "row_of"):
                dims.add(parse_dim(node.type.dim)[0])
            # A load from an omitted tensor gives a row of zeros, whose length must be known all the same.
            if node.op == "load" and node.type.kind == "row":
                dims.add(parse_dim(node.type.dim)[0])
            if node.op == "shape" and "tensor" in node.attrs:
                kernel.tensor(node.attrs["tensor"]).optional = False
        dims |= {scalar.at_most for scalar in kernel.scalars if scalar.at_most}
        dims |= {parse_dim(dim)[0] for tensor in kernel.tensors for dim in tensor.dims if is_bounded(dim)}
        if self.product and any(self.product in tensor.dims for tensor in kernel.tensors) | bool(dims & {self.product, "G"}):
            dims |= {self.product, "G"}  # a call computes the other factor of the product from these two
        for dim in sorted(dims):  # sorted, since the iteration order of a set differs between processes
            self.give(kernel, dim)
        for node in kernel.nodes():  # types name a dim without its fixed size
            if node.type.dim and "=" in node.type.dim:
                node.type = type(node.type)(node.type.kind, node.type.dtype, parse_dim(node.type.dim)[0], node.type.base)
        used = {tensor.dtype for tensor in kernel.tensors}
        for variable, default in (("T", self.pick(["", "", "f32", "bf16"])), ("O", self.pick(["", "f16"])), ("I", "i32"), ("M", "i32")):
            if variable in used:
                kernel.variables[variable] = default
        bases = {node.type.base for node in kernel.nodes(read=True)}
        if bases & {"B", OF_B}:
            kernel.bases["B"] = "e"
        if OF_B in bases:
            kernel.bases[OF_B] = "B"
        self.order(kernel)

    def give(self, kernel: Kernel, dim: str) -> None:
        """Makes sure that a mandatory tensor has the dim."""
        having = [t for t in kernel.tensors if any(parse_dim(d)[0] == dim for d in t.dims)]
        if any(not t.optional for t in having):
            return
        if having:
            having[0].optional = False
            return
        full = next((d for d in (*self.row_dims, self.inner, *(own for _, own in self.own), *self.other_dims) if parse_dim(d)[0] == dim), dim)
        kernel.tensors.append(Tensor(self.fresh("x"), "f32", [full], "In"))

    def order(self, kernel: Kernel) -> None:
        if self.chance(0.3):
            self.rng.shuffle(kernel.tensors)
        written = {s.tensor for s in all_statements(kernel.body) if isinstance(s, Store)}
        written |= {part for s in all_statements(kernel.body) if isinstance(s, StoreState) for part in (s.out, s.lse)}
        # A tensor that is declared but never stored to must not count as written.
        for tensor in kernel.tensors:
            if tensor.access == "Out" and tensor.name not in written:
                tensor.access = "InOut"


def generate(seed: int) -> Case:
    return Generator(seed).case()



