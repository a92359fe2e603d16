"""Random expressions of a wanted type."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
from generate_loads import Loads, may_be_constant
from syntax import BOOL, F32, I32, I64, INDEX, OF_B, Inline, Node, Scalar, Type, factors, is_bounded, lit, name, parse_dim, row

from mlafix.dsl.functions import NAMES

_COMPARE = ["lt", "le", "gt", "ge", "eq", "ne"]
# Functions that round a number to a dtype.
ROUNDINGS = ["bf16", "f16", "f8e4m3fn", "f8e5m2", "f8e8m0"]
_MOST_NUMBERS = 64  # the most elements of a row that is listed number by number
FUNCTIONS = [*NAMES, *ROUNDINGS]
_ROUND = ("floor", "ceil", "trunc", "round", *ROUNDINGS)
_OF_POSITIVE = ("sqrt", "rsqrt", "log", "log2")
_GROW = ("exp", "exp2")


def _has_rows(function: Inline) -> bool:
    nodes = [node for s in function.body for value in s.values for node in value.walk()]
    return any(node.type.kind == "row" for node in [*nodes, *function.result.walk()])


def is_number(node: Node) -> bool:
    """True if all leaves of an expression are literals."""
    return all(n.op == "lit" for n in node.walk() if not n.args)


class Expressions(Loads):
    """Generates expressions."""

    # -- Constants and leaves ----------------------------------------------------------------------------------------

    def literal(self, type: Type) -> Node:
        rng = self.rng
        if type.dtype == "M":  # elements of this dtype are only moved, and 0 is its only literal
            return lit(0, type)
        if type.dtype == "bool":
            return lit(rng.random() < 0.5, type)
        if type.dtype == "f32":
            if self.chance(0.04):
                spelled, value = self.pick([("HALF", 0.5), ("math.pi", math.pi), *([("math.inf", math.inf)] if self.chance(0.3) else [])])
                return lit(value, type, spelled)
            value = self.weighted({rng.uniform(-8, 8): 4, float(rng.randint(-4, 4)): 4, self.pick([0.0, -0.0]): 1, 1.0: 1, 0.5: 1, 1e30: 0.08,
                                   -3e38: 0.08, 1e-40: 0.08, math.inf: 0.1, -math.inf: 0.1, math.nan: 0.06, 2.0**-126: 0.08, 1e-3: 0.3})  # fmt: skip
            return lit(float(np.float32(value)), type)
        if type.dtype == "i32" and self.chance(0.04):
            return lit(5, type, "LIMIT")
        top = {"i32": 2**31 - 1, "i64": 2**63 - 1, "index": 2**63 - 1, "i8": 127, "u8": 255}[type.dtype]
        low = 0 if type.dtype == "u8" else -8
        value = self.weighted({rng.randint(low, 8): 12, rng.randint(0, 40): 1, top: 0.15, (0 if type.dtype == "u8" else -top - 1): 0.1,
                               rng.randint(0, min(top, 100000)): 0.5})  # fmt: skip
        return lit(value, type)

    def leaf_name(self, type: Type) -> Node | None:
        options = [found for found, of in self.variables.items() if of == type]
        return name(self.pick(options), type) if options else None

    def leaf(self, type: Type) -> Node:
        known = self.leaf_name(type)
        if known is not None and self.chance(0.55):
            return known
        if type.kind == "row":
            return known or self.splat(type) if self.pure else self.load(type, 0)
        if type.dtype in ("i8", "u8", "M"):
            return self.load(type, 0)
        if self.chance(0.3 if type != BOOL else 0.02) or self.pure:
            return known if known is not None and self.chance(0.9 if self.pure else 0.5) else self.literal(type)
        if self.chance(0.25) and not self.in_where or type.dtype == "index":
            return self.argument(type)
        return self.load(type, 0)

    def argument(self, type: Type) -> Node:
        """Returns a scalar argument. For the type index, may also return a size or an index of the grid."""
        if type.dtype == "index" and self.chance(0.4):
            tensors = [t for t in self.tensors if not t.optional and t.dims]
            if tensors and self.chance(0.5):
                tensor = self.pick(tensors)
                return Node("shape", INDEX, [], {"tensor": tensor.name, "position": 0 if tensor.listed else self.rng.randrange(len(tensor.dims))})
            dims = [dim for dim in (*(d for _, d in self.own), *self.other_dims, *self.row_dims) if dim and "=" not in dim]
            if dims:
                return Node("shape", INDEX, [], {"dim": self.pick(dims)})
        known = [s for s in self.scalars if s.dtype == type.dtype and not (s.from_tensor and self.in_where)]
        if known and self.chance(0.7):
            return name(self.pick(known).name, type)
        if len(self.scalars) > 4:
            return self.literal(type)
        is_integer = type.dtype in ("index", "i32", "i64")
        bound = self.pick([dim for _, dim in self.own if "=" not in dim] or [""]) if is_integer and self.chance(0.3) else ""
        scalar = Scalar(self.fresh("a"), type.dtype, bound, is_integer and not self.in_where and self.chance(0.3))
        self.scalars.append(scalar)
        return name(scalar.name, type)

    # -- Expressions -------------------------------------------------------------------------------------------------

    def expression(self, type: Type, depth: int) -> Node:
        if type.kind == "state":
            return self.state(type, depth)
        if depth <= 0 or self.chance(0.15):
            return self.leaf(type)
        if self.inline_functions and not self.pure and self.chance(0.15):
            call = self.inline_call(type, depth)
            if call is not None:
                return call
        kind = {"f32": "float", "i32": "int", "i64": "int", "index": "int", "bool": "bool"}.get(type.dtype, "byte")
        made: Node = getattr(self, f"make_{kind}")(type, depth - 1)
        return made

    def inline_call(self, type: Type, depth: int) -> Node | None:
        functions = [f for f in self.inline_functions if f.result.type == type]
        if self.in_where:  # a grid's predicate has no rows
            functions = [f for f in functions if all(of.kind == "scalar" for of in f.types) and not _has_rows(f)]
        if not functions:
            return None
        function = self.pick(functions)
        count = len(function.parameters) - (self.rng.randint(0, len(function.defaults)))
        args = [self.expression(of, depth - 1) for of in function.types[:count]]
        if all(is_number(argument) for argument in args):  # such a call is refused, since Python would compute the result
            args[0] = self.full(function.types[0], 1)
            if is_number(args[0]):
                return None
        return Node("call", type, args, {"function": function.name})

    def operand(self, type: Type, depth: int) -> Node:
        """Returns an operand for a result of this type. In place of a row, may return a scalar. In place of a row along
        the product, may also return a row with one element per group."""
        if type.kind == "row" and type.dim == self.product and type.dtype != "M" and self.chance(0.25):
            return self.full(row("G", type.dtype), depth)
        if type.kind == "row" and self.chance(0.25):
            return self.expression(type.scalar(), depth) if self.chance(0.6) else self.literal(type.scalar())
        return self.expression(type, depth) if not self.chance(0.15) else self.literal(type.scalar())

    def pair(self, type: Type, depth: int) -> list[Node]:
        """Returns two operands. At least one of them has the type; the other may be a scalar in place of a row."""
        nodes = [self.full(type, depth), self.operand(type, depth)]
        if nodes[0] == nodes[1] and self.chance(0.9):  # most operations on two equal values are constants
            nodes[1] = self.operand(type, depth)
        self.rng.shuffle(nodes)
        return nodes

    def full(self, type: Type, depth: int) -> Node:
        """Returns an expression that is not a constant, and is a row if a row is wanted."""
        node = self.expression(type, depth)
        if node.op == "lit":
            found = self.leaf_name(type)
            if found is not None:
                return found
            given = [name(v, of) for v, of in self.variables.items() if of in (F32, I32)]
            if self.pure and given and type.kind == "scalar":
                return Node("convert", type, [self.pick(given)])
            if type.kind == "scalar" and not self.pure and type.dtype not in ("index", "bool") and self.chance(0.93):
                return self.load(type, 0)
            return Node("convert", type, [node]) if type.kind == "scalar" else node
        return node

    def choice(self, type: Type, depth: int) -> Node:
        """Returns where(c, a, b) or `a if c else b`."""
        if type.kind == "row" and self.chance(0.5):
            of = "G" if type.dim == self.product and type.dtype != "M" and self.chance(0.3) else type.dim
            return Node("where", type, [self.full(row(of, "bool"), depth), *self.pair(type, depth)])
        condition = self.full(BOOL, depth)
        # A constant condition selects a value at compile time, without converting it. Both values then need the type.
        other = self.full(type, depth) if may_be_constant(condition) else self.operand(type, depth)
        return Node(self.pick(["where", "ifexp"]), type, [condition, self.full(type, depth), other])

    def splat(self, type: Type) -> Node:
        return Node("splat", type, [self.expression(type.scalar(), 0 if self.pure else 1)])

    def make_float(self, type: Type, depth: int) -> Node:
        options = {"add": 3, "sub": 3, "mul": 3, "div": 1.2, "min": 1, "max": 1, "neg": 0.8, "abs": 0.6, "fma": 0.8, "copysign": 0.4,
                   "function": 3.0, "choice": 1.2, "convert": 0.8, "load": 2.0}  # fmt: skip
        if type.kind == "row":
            options["splat"] = 0.5
        elif self.row_dims and not self.pure and not self.in_where:
            options |= {"reduce": 2.5, "lse_of": 0.4, "top": 0.4}
        if type.kind == "row" and not self.pure and not self.in_where:
            options |= {"scan": 0.8} | ({} if is_bounded(type.dim) else {"payload": 0.6}) | ({"swap": 0.8} if self.blocks(type.dim) else {})
        options |= self.of_groups(type, 2.5) | self.elements(type) | ({"row_of": 5.0} if self.numbers_of(type) and not self.pure else {})
        how = self.weighted(options)
        if how in ("row_of", "element"):
            return self.row_of(type, depth) if how == "row_of" else self.element_of(type, depth)
        if how in ("add", "sub", "mul", "div", "min", "max"):
            nodes = self.pair(type, depth)
            if how in ("min", "max") and self.chance(0.2):
                nodes.append(self.operand(type, depth))
            return Node("binary", type, nodes, {"name": how})
        if how == "copysign":
            return Node("binary", type, [self.full(type, depth), self.full(type, depth)], {"name": how})
        if how in ("neg", "abs"):
            return Node("unary", type, [self.full(type, depth)], {"name": how})
        if how == "function":
            return self.function(type, depth)
        if how == "fma":
            return Node("fma", type, [self.full(type, depth), self.operand(type, depth), self.operand(type, depth)])
        if how == "choice":
            return self.choice(type, depth)
        if how == "convert":
            source = self.pick(["i32", "i64", "bool"] + (["i8", "u8"] if not self.pure else []) + (["index"] if type.kind == "scalar" else []))
            return Node("convert", type, [self.full(Type(type.kind, source, type.dim), depth)])
        if how == "reduce":
            return Node("reduce", type, [self.uneven(row(self.pick(self.row_dims)), depth)], {"kind": self.pick(["add", "max", "min"])})
        if how == "along":
            if self.chance(0.3):
                return self.top(type, "f32", 0, depth)
            return self.reduce_groups(type, "f32", ["add", "max", "min"], depth)
        if how == "top":
            return self.top(type, "f32", 0, depth)
        if how == "scan":
            return self.scan(type, depth)
        if how == "swap":
            return self.swap(type, depth)
        if how in ("payload", "lse_of"):
            of = Type("state", "", type.dim or self.pick(self.state_dims), self.pick(["B", OF_B, "e", "2"]))
            return Node(how, type, [self.state(of, min(depth, 1))])
        if how == "splat":
            return self.splat(type)
        return self.leaf(type) if self.pure else self.load(type, depth)

    def function(self, type: Type, depth: int) -> Node:
        """Returns the call of a function of one f32. Most operands show the function's effect: fractions for rounding,
        positive numbers for roots."""
        chosen, operand = self.pick(FUNCTIONS), self.varied(type, depth)
        if operand.op != "lit" and chosen in _ROUND and self.chance(0.85):
            operand = Node("binary", type, [operand, lit(float(np.float32(self.rng.uniform(1, 9))), F32)], {"name": "mul"})
        elif operand.op != "lit" and chosen in _OF_POSITIVE and self.chance(0.6):
            operand = Node("unary", type, [operand], {"name": "abs"})
        elif operand.op != "lit" and chosen in _GROW and self.chance(0.4):
            operand = Node("binary", type, [Node("binary", type, [operand, lit(-20.0, F32)], {"name": "max"}), lit(20.0, F32)], {"name": "min"})
        return Node("unary", type, [operand], {"name": chosen})

    def of_groups(self, type: Type, rate: float) -> dict[str, float]:
        """Returns {"along": rate} if a row of `type` can be made by reducing groups, else {}."""
        is_row = self.product and type.kind == "row" and type.dim == "G"
        return {"along": rate} if is_row and not self.pure and not self.in_where else {}

    def reduce_groups(self, type: Type, dtype: str, kinds: list[str], depth: int) -> Node:
        along = self.product[1:-1].split()[1]
        return Node("reduce", type, [self.flags(row(self.product, dtype), depth) if dtype == "bool" else self.uneven(row(self.product, dtype), depth)], {"kind": self.pick(kinds), "along": along})

    def top(self, type: Type, dtype: str, which: int, depth: int) -> Node:
        """Returns the value or the index of one element that top_k finds in a row, or in each group."""
        dim = self.product if type.kind == "row" else self.pick(self.state_dims)
        sizes = [int(text) if text.isdigit() else parse_dim(text)[1] or self.fixed_sizes.get(text, 1) for text in factors(dim) or [dim]]
        most = min(4, sizes[-1] if type.kind == "row" else math.prod(sizes))
        count = self.rng.randint(1, most)
        along = {"along": factors(dim)[1]} if type.kind == "row" else {}
        return Node("top", type, [self.uneven(row(dim, dtype), depth)], {"top": (count, which, self.rng.randrange(count)), **along})

    def scan(self, type: Type, depth: int) -> Node:
        """Returns a scan along a row, or along each group of a row along a product."""
        along = {"along": type.dim[1:-1].split()[1]} if factors(type.dim) and self.chance(0.6) else {}
        return Node("scan", type, [self.uneven(type, depth)], {"kind": self.pick(["add", "max", "min"]), **along})

    def numbers_of(self, type: Type) -> int:
        """Returns the number of elements if a row of the type may be listed element by element, else 0."""
        size = parse_dim(type.dim)[1] if type.kind == "row" and type.dtype in ("f32", "i32", "i64", "bool") else None
        return size if size is not None and size <= _MOST_NUMBERS else 0

    def row_of(self, type: Type, depth: int) -> Node:
        """Returns a row that is listed element by element. Usually, at least one element is not a constant."""
        count = self.numbers_of(type)
        values = [self.expression(type.scalar(), min(depth, 1) if self.chance(3 / count) else 0) for _ in range(count)]
        if all(is_number(value) for value in values) and not self.chance(0.1):
            values[self.rng.randrange(count)] = self.full(type.scalar(), 0)
        return Node("row_of", type, values)

    def elements(self, type: Type) -> dict[str, float]:
        """Returns {"element": weight} if an expression of this type can select one element of a row or, for a row type,
        one element of each group of a row. Otherwise returns {}."""
        if self.pure or self.in_where or type.dtype not in ("f32", "i32", "i64", "bool") or not self.row_dims:
            return {}
        is_each = type.kind == "row" and self.product and type.dim == "G"
        return {"element": 1.2} if type.kind == "scalar" or is_each else {}

    def element_of(self, type: Type, depth: int) -> Node:
        """Returns an element of a row, or of each group of a row along the product."""
        dim = self.product if type.kind == "row" else self.pick(self.row_dims)
        of = row(dim, type.dtype)
        value = self.flags(of, depth) if type.dtype == "bool" else self.uneven(of, depth)
        dims = ["G", self.inner] if factors(dim) else [dim]
        indices = [self.index_for(part, depth)[0] for part in dims[type.kind == "row" :]]
        return Node("element", type, [value, *indices])

    def blocks(self, dim: str) -> list[int]:
        """Returns the block sizes with which a row along `dim` may be swapped. Returns [] for a row with one element
        per group of another row."""
        sizes = [int(text) if text.isdigit() else self.fixed_sizes.get(text, 1) for text in factors(dim) or [dim]]
        group = sizes[-1]
        whole = math.prod(sizes) if group & (group - 1) == 0 else group
        is_each = self.product and dim == factors(self.product)[0]
        return [] if is_each else [1 << i for i in range(whole.bit_length()) if whole and whole % (2 << i) == 0]

    def swap(self, type: Type, depth: int) -> Node:
        return Node("swap", type, [self.uneven(type, depth)], {"block": self.pick(self.blocks(type.dim))})

    def make_int(self, type: Type, depth: int) -> Node:
        options = {"add": 2, "sub": 2, "mul": 1.5, "floordiv": 1, "mod": 1, "shl": 0.6, "shr": 0.6, "and": 0.8, "or": 0.6, "xor": 0.6,
                   "min": 0.8, "max": 0.8, "neg": 0.6, "abs": 0.5, "choice": 1, "convert": 1.5, "load": 2}  # fmt: skip
        if type in (I32, I64) and self.row_dims and not self.pure and not self.in_where:
            options["reduce"] = 0.8
        if type == I32 and self.row_dims and not self.pure and not self.in_where:
            options |= {"index": 1.2, "top": 0.5}
        if type.kind == "row" and type.dtype == "i32" and not self.pure:
            options["iota"] = 1.2
            options |= {} if self.in_where else {"scan": 0.8} | ({"swap": 0.8} if self.blocks(type.dim) else {})
            options |= self.of_groups(type, 1.5)
        options |= self.elements(type) | ({"row_of": 5.0} if self.numbers_of(type) and not self.pure else {})
        how = self.weighted(options)
        if how in ("row_of", "element"):
            return self.row_of(type, depth) if how == "row_of" else self.element_of(type, depth)
        if how in ("neg", "abs"):
            return Node("unary", type, [self.full(type, depth)], {"name": how})
        if how == "choice":
            return self.choice(type, depth)
        if how == "reduce":
            return Node("reduce", type, [self.uneven(row(self.pick(self.row_dims), type.dtype), depth)], {"kind": self.pick(["add", "max", "min"])})
        if how == "top":
            which = self.rng.randrange(2)
            return self.top(type, self.pick(["f32", "i32"]) if which else "i32", which, depth)
        if how == "index":
            of = row(self.pick(self.row_dims), self.pick(["f32", "f32", "i32"]))
            return Node("reduce", type, [self.uneven(of, depth)], {"kind": self.pick(["argmax", "argmin"])})
        if how == "along":
            if self.chance(0.3):
                return self.top(type, "i32", self.rng.randrange(2), depth)
            if self.chance(0.5):
                return self.reduce_groups(type, self.pick(["f32", "i32"]), ["argmax", "argmin"], depth)
            return self.reduce_groups(type, "i32", ["add", "max", "min"], depth)
        if how == "iota":
            return Node("iota", type)
        if how == "scan":
            return self.scan(type, depth)
        if how == "swap":
            return self.swap(type, depth)
        if how == "convert":
            return self.make_converted(type, depth)
        if how == "load" and type.dtype != "index" and not self.pure:
            return self.widening_load(type) if type.kind == "scalar" and self.chance(0.25) else self.load(type, depth)
        if how == "load":
            return self.leaf(type)
        if how in ("shl", "shr"):
            amount = lit(self.weighted({self.rng.randint(0, 8): 6, self.rng.randint(0, 63): 1, -1: 0.2}), type.scalar())
            return Node("binary", type, [self.varied(type, depth), amount if self.chance(0.75) else self.full(type, depth)], {"name": how})
        if how in ("floordiv", "mod"):
            divisor = lit(self.pick([1, 2, 3, 7, -1, -2, -5, 16]), type.scalar()) if self.chance(0.5) else self.full(type, depth)
            return Node("binary", type, [self.full(type, depth), divisor], {"name": how})
        return Node("binary", type, self.pair(type, depth), {"name": how})

    def make_converted(self, type: Type, depth: int) -> Node:
        sources = [dtype for dtype in ("i32", "i64", "index", "bool", "i8", "u8", "f32") if dtype != type.dtype]
        if type.kind == "row":
            sources.remove("index") if "index" in sources else None
        if self.pure:
            sources = [dtype for dtype in sources if dtype not in ("i8", "u8")]
        source = self.pick(sources)
        of = Type(type.kind, source, type.dim)
        if source == "f32":
            inner = self.full(of, depth)
            low, high = (lit(float(v), F32) for v in (-1000, 1000))
            limited = Node("binary", of, [Node("binary", of, [inner, low], {"name": "max"}), high], {"name": "min"})
            return Node("convert", type, [limited if self.chance(0.8) else inner])
        return Node("convert", type, [self.full(of, depth)])

    def make_bool(self, type: Type, depth: int) -> Node:
        options = {"float": 2.5, "int": 3, "chain": 1, "logic": 2, "not": 1, "bits": 1, "load": 1, "choice": 0.5, "convert": 0.5, "bool": 0.3}
        if not self.pure and any(t.optional for t in self.tensors):
            options["present"] = 1
        if type.kind == "scalar" and self.row_dims and not self.pure and not self.in_where:
            options["reduce"] = 1.0
        options |= self.of_groups(type, 1.0) | self.elements(type) | ({"row_of": 3.0} if self.numbers_of(type) and not self.pure else {})
        how = self.weighted(options)
        if how in ("row_of", "element"):
            return self.row_of(type, depth) if how == "row_of" else self.element_of(type, depth)
        if how == "reduce":
            return Node("reduce", type, [self.flags(row(self.pick(self.row_dims), "bool"), depth)], {"kind": self.pick(["any", "all"])})
        if how == "along":
            return self.reduce_groups(type, "bool", ["any", "all"], depth)
        if how == "present" and type.kind == "scalar":
            tensor = self.pick([t for t in self.tensors if t.optional])
            return Node("present", type, [], {"tensor": tensor.name, "style": self.pick(["present", "is None", "is not None"])})
        if how == "logic" and type.kind == "scalar":
            nodes = [self.full(BOOL, depth) for _ in range(2 + self.chance(0.2))]
            return Node("logic", type, nodes, {"name": self.pick(["and", "or"])})
        if how == "not":
            return Node("unary", type, [self.full(type, depth)], {"name": "not"})
        if how == "bits":
            return Node("binary", type, self.pair(type, depth), {"name": self.pick(["and", "or", "xor"])})
        if how == "choice":
            return self.choice(type, depth)
        if how == "convert":
            source = self.pick(["i32", "f32", "i64"])
            return Node("convert", type, [self.full(Type(type.kind, source, type.dim), depth)])
        if how == "load":
            return self.leaf(type)
        return self.make_comparison(type, how, depth)

    def varied(self, type: Type, depth: int) -> Node:
        """Returns a value that usually differs between rows."""
        node = self.full(type, depth)
        if self.pure or self.in_where or type.dtype not in ("f32", "i32", "i64") or self.chance(0.5):
            return node
        return self.own_value(type) if node.op == "lit" or self.chance(0.4) else Node("binary", type, [node, self.own_value(type)], {"name": "add"})

    def uneven(self, type: Type, depth: int) -> Node:
        """Returns a row whose elements usually differ."""
        node = self.varied(type, depth)
        if any(n.type.kind == "row" and n.op in ("load", "iota", "payload", "name") for n in node.walk()) or self.chance(0.1):
            return node
        return self.load(type, 0)

    def flags(self, type: Type, depth: int) -> Node:
        """Returns a row of booleans that usually contains both values."""
        if self.chance(0.2):
            return self.full(type, depth)
        of = row(type.dim)
        value = self.load(of, 0) if self.chance(0.2) else self.own_value(of)
        return Node("compare", type, [value, self.literal(F32) if self.chance(0.15) else lit(0.0, F32)], {"ops": [self.pick(["lt", "le", "gt", "ge"])]})

    def make_comparison(self, type: Type, how: str, depth: int) -> Node:
        dtypes = {"float": ["f32"], "bool": ["bool"]}.get(how, ["i32", "i64"] + (["index"] if type.kind == "scalar" else []) + ([] if self.pure else ["u8", "i8"]))
        of = Type(type.kind, self.pick(dtypes), type.dim)
        nodes = self.pair(of, depth)
        if how == "chain":
            nodes = [self.operand(of, depth), self.full(of, depth), self.operand(of, depth)]
        return Node("compare", type, nodes, {"ops": [self.pick(_COMPARE) for _ in nodes[1:]]})

    def make_byte(self, type: Type, depth: int) -> Node:
        return self.choice(type, 0) if depth > 0 and self.chance(0.3) else self.leaf(type)

    # -- States ------------------------------------------------------------------------------------------------------

    def state_type(self, dim: str) -> Type:
        return Type("state", "", dim, self.pick(["B", "B", OF_B, "e", "2"]), self.chance(0.15))

    def state(self, type: Type, depth: int) -> Node:
        known = self.leaf_name(type)
        if known is not None and self.chance(0.35):
            return known
        if type.sink:
            return self.state_with_sink(type, depth)
        options = {"load": 4, "make": 1.5, "identity": 0.5}
        if depth > 0:
            options |= {"merge": 4, "mask": 1.2, "rebase": 0.8, "choice": 0.8}
        how = self.weighted(options)
        makers: dict[str, Callable[[], Node]] = {
            "load": lambda: self.load_state(type, depth),
            "make": lambda: Node("make_state", type, [self.full(row(type.dim), depth - 1), self.lse(depth - 1)]),
            "identity": lambda: Node("identity", type),
            "merge": lambda: Node("merge", type, [self.state(type, depth - 1) for _ in range(self.weighted({1: 0.2, 2: 6, 3: 2, 4: 0.7}))]),
            "mask": lambda: Node("mask", type, [self.state(type, depth - 1), self.expression(BOOL, depth)]),
            "rebase": lambda: self.rebase(type, depth),
            "choice": lambda: Node(self.pick(["ifexp", "where"]), type, [self.full(BOOL, depth - 1), self.state(type, depth - 1), self.state(type, depth - 1)]),
        }  # fmt: skip
        return makers[how]()

    def state_with_sink(self, type: Type, depth: int) -> Node:
        """Returns a state with a sink. In a merge, exactly one operand has the sink. In a choice between two states,
        one may lack it."""
        plain = dataclasses.replace(type, sink=False)
        options = {"sink": 1.0}
        if depth > 0:
            options |= {"merge": 5, "mask": 0.8, "rebase": 0.8, "choice": 0.8}
        how = self.weighted(options)
        if how == "sink":
            return Node("sink", type, [self.lse(depth - 1)])
        if how == "merge":
            sink = self.state(type, depth - 1) if self.chance(0.3) else self.bare_sink(type, depth - 1)
            nodes = [sink, *(self.state(plain, depth - 1) for _ in range(self.weighted({1: 6, 2: 2})))]
            self.rng.shuffle(nodes)
            return Node("merge", type, nodes)
        if how == "mask":
            return Node("mask", type, [self.state(type, depth - 1), self.expression(BOOL, depth)])
        if how == "rebase":
            return self.rebase(type, depth)
        condition = self.full(BOOL, depth - 1)
        # A constant condition selects a state at compile time. Then both states need the sink.
        other = type if may_be_constant(condition) else self.pick([type, plain])
        states = [self.state(type, depth - 1), self.state(other, depth - 1)]
        self.rng.shuffle(states)
        return Node(self.pick(["ifexp", "where"]), type, [condition, *states])

    def bare_sink(self, type: Type, depth: int) -> Node:
        """Returns a sink without a dim, as an operand of a merge. The sink's base may be spelled out."""
        base = self.pick(["", "", "e", "2"])
        return Node("sink", Type("sink", "", type.dim, base or type.base), [self.lse(depth)], {"says": base})

    def lse(self, depth: int) -> Node:
        """Returns an f32 expression that serves as an lse."""
        return self.full(F32, min(depth, 1)) if self.chance(0.7) else self.literal(F32)

    def rebase(self, type: Type, depth: int) -> Node:
        other = self.pick([base for base in ("e", "2", "B", OF_B) if base != type.base] + [type.base])
        return Node("rebase", type, [self.state(dataclasses.replace(type, base=other), depth - 1)])
