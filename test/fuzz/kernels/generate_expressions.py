"""Random expressions of a wanted type."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from syntax import BOOL, F32, I32, I64, INDEX, Node, Scalar, Tensor, Type, lit, name, parse_dim, row

_COMPARE = ["lt", "le", "gt", "ge", "eq", "ne"]
_FUNCTIONS = ["exp", "exp2", "log", "log2", "sqrt", "rsqrt", "tanh", "floor", "ceil"]


class Expressions:
    """Draws expressions. What they need of tensors and scalar arguments is added to the kernel as they go.

    Args:
        rng: the source of all choices.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.tensors: list[Tensor] = []
        self.scalars: list[Scalar] = []
        self.variables: dict[str, Type] = {}  # names in scope
        self.within: dict[str, set[str]] = {}  # index names: dims below whose size they are
        self.row_dims: list[str] = []
        self.own: list[tuple[str, str]] = []  # the grid's indices and the dims they run along
        self.other_dims: list[str] = []  # dims that tensors may have besides
        self.writes: dict[str, list[Node]] = {}  # written tensors: the indices of their elements that this row owns
        self.pairs: list[tuple[str, str]] = []  # payloads and lses
        self.pure = False  # inside an inline function: no tensors, no grid
        self.in_where = False  # in a grid's predicate: scalars only
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

    # -- Tensors -----------------------------------------------------------------------------------------------------

    def add_tensor(self, dtype: str, dims: list[str], access: str = "In", optional: bool = False, prefix: str = "") -> Tensor:
        tensor = Tensor(self.fresh(prefix or {"In": "x", "Out": "y", "InOut": "z"}[access]), dtype, dims, access, optional)
        self.tensors.append(tensor)
        return tensor

    def element(self, tensor: Tensor) -> str:
        """What an element is in a body."""
        if tensor.dtype in ("I", "J"):
            return "i64"
        return "f32" if tensor.dtype in ("T", "O", "bf16", "f16", "f32") else tensor.dtype

    def new_input(self, element: str, row_dim: str) -> Tensor:
        """An input whose elements are `element` in a body; with rows along `row_dim`, or of elements."""
        if element == "f32":
            dtype = self.pick([*self.float_dtypes, "T", "T", "f32"])
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
        return self.add_tensor(dtype, dims, "In", optional)

    def input(self, element: str, row_dim: str) -> Tensor:
        usable = [t for t in self.tensors if t.access == "In" and self.element(t) == element and t.dtype != "f8e4m3fn"
                  and (bool(row_dim) <= (t.dims[-1] == row_dim)) and t.name != "cu"]  # fmt: skip
        if self.in_where:  # there may be no rows, though there are segments
            own = {dim for _, dim in self.own}
            usable = [t for t in usable if not own & set(t.dims)]
        if usable and (self.chance(0.65) or len(self.tensors) > 8):
            return self.pick(usable)
        return self.new_input(element, row_dim)

    # -- Indices -----------------------------------------------------------------------------------------------------

    def index_for(self, dim: str, depth: int) -> tuple[Node, Node | None]:
        """An index of a dim, and what must hold for it to be within bounds."""
        text, fixed = parse_dim(dim)
        inside = [index for index, dims in self.within.items() if text in dims and index in self.variables]
        if inside and not self.chance(0.12):
            chosen = self.pick(inside)
            return name(chosen, self.variables[chosen]), None
        if fixed is not None and self.chance(0.5):
            return lit(self.rng.randrange(fixed), INDEX), None
        index = self.expression(self.pick([I32, INDEX, I64] if depth > 0 else [I32, INDEX]), 1 if depth > 1 and self.chance(0.4) else 0)
        size = lit(fixed, INDEX) if fixed is not None else Node("shape", INDEX, [], {"dim": text})
        if index.op == "lit":
            index = Node("convert", index.type, [self.leaf(INDEX)]) if index.type != INDEX else self.leaf_name(INDEX) or index
        wide = index if index.type == INDEX else Node("convert", INDEX, [index])
        if wide.op == "lit" or self.chance(0.65):  # clamped
            top = Node("binary", INDEX, [size, lit(1, INDEX)], {"name": "sub"}) if fixed is None else lit(fixed - 1, INDEX)
            low = Node("binary", INDEX, [wide, top], {"name": "min"})
            return Node("binary", INDEX, [low, lit(0, INDEX)], {"name": "max"}), None
        guard = Node("compare", BOOL, [lit(0, INDEX), wide, size], {"ops": ["le", "lt"]})
        return (wide if self.chance(0.5) else index), guard

    def place(self, tensor: Tensor, is_row: bool, depth: int) -> tuple[list[Node], Node | None]:
        """Indices of a tensor, and the condition under which they are within bounds."""
        dims = tensor.dims[:-1] if is_row else tensor.dims
        nodes, guards = [], []
        for dim in dims:
            node, guard = self.index_for(dim, depth)
            nodes.append(node)
            if guard is not None:
                guards.append(guard)
        condition = None
        for guard in guards:
            condition = guard if condition is None else Node("binary", BOOL, [condition, guard], {"name": "and"})
        return nodes, condition

    # -- Loads -------------------------------------------------------------------------------------------------------

    def load(self, type: Type, depth: int) -> Node:
        row_dim = type.dim if type.kind == "row" else ""
        if not self.in_where and self.writes and self.chance(0.08):
            found = self.own_load(type)
            if found is not None:
                return found
        tensor = self.input(type.dtype, row_dim)
        nodes, guard = self.place(tensor, bool(row_dim), depth)
        attrs: dict[str, Any] = {"tensor": tensor.name}
        if row_dim and self.chance(0.15):
            attrs["colon"] = True
        if guard is None and self.chance(0.8 if depth else 0.95):
            return Node("load", type, nodes, attrs)
        if guard is None or self.chance(0.3):
            extra = self.expression(BOOL, min(depth - 1, 1))
            guard = extra if guard is None else Node("logic", BOOL, [guard, extra], {"name": "and"})
        if self.chance(0.3):  # memory that Python would not read
            other = self.expression(type, 0) if self.chance(0.5) else self.literal(type.scalar())
            return Node("ifexp", type, [guard, Node("load", type, nodes, attrs), other])
        args = [*nodes, guard]
        attrs["where"] = True
        if self.chance(0.4):
            attrs["other"] = True
            args.append(self.literal(type.scalar()) if self.chance(0.6) else self.expression(type.scalar(), 0))
        return Node("load", type, args, attrs)

    def own_load(self, type: Type) -> Node | None:
        """What this row has, or may have, written itself."""
        row_dim = type.dim if type.kind == "row" else ""
        found = [t for t in self.tensors if t.access == "InOut" and t.name in self.writes and self.element(t) == type.dtype
                 and t.dtype != "f8e4m3fn" and (len(self.writes[t.name]) < len(t.dims)) == bool(row_dim)
                 and (not row_dim or t.dims[-1] == row_dim)]  # fmt: skip
        if not found:
            return None
        tensor = self.pick(found)
        return Node("load", type, list(self.writes[tensor.name]), {"tensor": tensor.name})

    def widening_load(self, to: Type) -> Node:
        dtype = self.pick(["i8", "u8", "i32"] if to == I64 else ["i8", "u8"])
        tensor = self.input(dtype, "")
        nodes, guard = self.place(tensor, False, 0)
        plain = Node("load", to, nodes, {"tensor": tensor.name, "widen": to.dtype})
        if guard is None:
            return plain
        return Node("ifexp", to, [guard, plain, lit(self.rng.randint(-3, 3), to)])

    # -- Constants and leaves ----------------------------------------------------------------------------------------

    def literal(self, type: Type) -> Node:
        rng = self.rng
        if type.dtype == "bool":
            return lit(rng.random() < 0.5, type)
        if type.dtype == "f32":
            if self.chance(0.04):
                spelled, value = self.pick([("HALF", 0.5), ("math.pi", math.pi), ("math.inf", math.inf)])
                return lit(value, type, spelled)
            value = self.weighted({rng.uniform(-8, 8): 4, float(rng.randint(-4, 4)): 4, self.pick([0.0, -0.0]): 1, 1.0: 1, 0.5: 1, 1e30: 0.15,
                                   -3e38: 0.15, 1e-40: 0.15, math.inf: 0.25, -math.inf: 0.25, math.nan: 0.2, 2.0**-126: 0.1, 1e-3: 0.3})  # fmt: skip
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
        if type.dtype in ("i8", "u8"):
            return self.load(type, 0)
        if self.chance(0.3) or self.pure:
            return known if known is not None and self.chance(0.5) else self.literal(type)
        if self.chance(0.25) and not self.in_where or type.dtype == "index":
            return self.argument(type)
        return self.load(type, 0)

    def argument(self, type: Type) -> Node:
        """A scalar argument, or for an index: a size, or one of the grid's."""
        if type.dtype == "index" and self.chance(0.4):
            tensors = [t for t in self.tensors if not t.optional and t.dims]
            if tensors and self.chance(0.5):
                tensor = self.pick(tensors)
                return Node("shape", INDEX, [], {"tensor": tensor.name, "position": self.rng.randrange(len(tensor.dims))})
            dims = [dim for dim in (*(d for _, d in self.own), *self.other_dims, *self.row_dims) if dim and "=" not in dim]
            if dims:
                return Node("shape", INDEX, [], {"dim": self.pick(dims)})
        known = [s for s in self.scalars if s.dtype == type.dtype]
        if known and self.chance(0.7):
            return name(self.pick(known).name, type)
        if len(self.scalars) > 4:
            return self.literal(type)
        bound = self.pick([dim for _, dim in self.own if "=" not in dim] or [""]) if type.dtype in ("index", "i32", "i64") and self.chance(0.3) else ""
        scalar = Scalar(self.fresh("a"), type.dtype, bound)
        self.scalars.append(scalar)
        return name(scalar.name, type)

    # -- Expressions -------------------------------------------------------------------------------------------------

    def expression(self, type: Type, depth: int) -> Node:
        if type.kind == "state":
            return self.state(type, depth)
        if depth <= 0 or self.chance(0.15):
            return self.leaf(type)
        if self.inline_functions and not self.pure and self.chance(0.08):
            call = self.inline_call(type, depth)
            if call is not None:
                return call
        kind = {"f32": "float", "i32": "int", "i64": "int", "index": "int", "bool": "bool"}.get(type.dtype, "byte")
        made: Node = getattr(self, f"make_{kind}")(type, depth - 1)
        return made

    def inline_call(self, type: Type, depth: int) -> Node | None:
        functions = [f for f in self.inline_functions if f.result.type == type]
        if not functions:
            return None
        function = self.pick(functions)
        count = len(function.parameters) - (self.rng.randint(0, len(function.defaults)))
        args = [self.expression(of, depth - 1) for of in function.types[:count]]
        return Node("call", type, args, {"function": function.name})

    def operand(self, type: Type, depth: int) -> Node:
        """Of a row type: a number may stand for a row of it."""
        if type.kind == "row" and self.chance(0.25):
            return self.expression(type.scalar(), depth) if self.chance(0.6) else self.literal(type.scalar())
        return self.expression(type, depth) if not self.chance(0.15) else self.literal(type.scalar())

    def pair(self, type: Type, depth: int) -> list[Node]:
        """Two operands, of which one has the type."""
        nodes = [self.full(type, depth), self.operand(type, depth)]
        self.rng.shuffle(nodes)
        return nodes

    def full(self, type: Type, depth: int) -> Node:
        """An expression that is a row if a row is wanted, and no constant."""
        node = self.expression(type, depth)
        if node.op == "lit":
            found = self.leaf_name(type)
            if found is not None:
                return found
            return Node("convert", type, [node]) if type.kind == "scalar" else node
        return node

    def choice(self, type: Type, depth: int) -> Node:
        """where(c, a, b) or a if c else b."""
        if type.kind == "row" and self.chance(0.5):
            condition = self.full(row(type.dim, "bool"), depth)
            return Node("where", type, [condition, *self.pair(type, depth)])
        nodes = [self.full(type, depth), self.operand(type, depth)]
        return Node(self.pick(["where", "ifexp"]), type, [self.full(BOOL, depth), *nodes])

    def splat(self, type: Type) -> Node:
        return Node("splat", type, [self.expression(type.scalar(), 0 if self.pure else 1)])

    def make_float(self, type: Type, depth: int) -> Node:
        options = {"add": 3, "sub": 3, "mul": 3, "div": 1.2, "min": 1, "max": 1, "neg": 0.8, "abs": 0.6, "fma": 0.8, "copysign": 0.4,
                   "function": 1.6, "choice": 1.2, "convert": 0.8, "load": 2.0}  # fmt: skip
        if type.kind == "row":
            options["splat"] = 0.5
        elif self.row_dims and not self.pure and not self.in_where:
            options["reduce"] = 2.0
        how = self.weighted(options)
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
            return Node("unary", type, [self.full(type, depth)], {"name": self.pick(_FUNCTIONS)})
        if how == "fma":
            return Node("fma", type, [self.full(type, depth), self.operand(type, depth), self.operand(type, depth)])
        if how == "choice":
            return self.choice(type, depth)
        if how == "convert":
            source = self.pick(["i32", "i64", "bool"] + (["i8", "u8"] if not self.pure else []) + (["index"] if type.kind == "scalar" else []))
            return Node("convert", type, [self.full(Type(type.kind, source, type.dim), depth)])
        if how == "reduce":
            return Node("reduce", type, [self.full(row(self.pick(self.row_dims)), depth)], {"kind": self.pick(["add", "max", "min"])})
        if how == "splat":
            return self.splat(type)
        return self.leaf(type) if self.pure else self.load(type, depth)

    def make_int(self, type: Type, depth: int) -> Node:
        options = {"add": 2, "sub": 2, "mul": 1.5, "floordiv": 1, "mod": 1, "shl": 0.6, "shr": 0.6, "and": 0.8, "or": 0.6, "xor": 0.6,
                   "min": 0.8, "max": 0.8, "neg": 0.6, "abs": 0.5, "choice": 1, "convert": 1.5, "load": 2}  # fmt: skip
        if type == I32 and self.row_dims and not self.pure and not self.in_where:
            options["reduce"] = 0.8
        how = self.weighted(options)
        if how in ("neg", "abs"):
            return Node("unary", type, [self.full(type, depth)], {"name": how})
        if how == "choice":
            return self.choice(type, depth)
        if how == "reduce":
            return Node("reduce", type, [self.full(row(self.pick(self.row_dims), "i32"), depth)], {"kind": self.pick(["add", "max", "min"])})
        if how == "convert":
            return self.make_converted(type, depth)
        if how == "load" and type.dtype != "index" and not self.pure:
            return self.widening_load(type) if type.kind == "scalar" and self.chance(0.25) else self.load(type, depth)
        if how == "load":
            return self.leaf(type)
        if how in ("shl", "shr"):
            amount = lit(self.weighted({self.rng.randint(0, 8): 6, self.rng.randint(0, 63): 1, -1: 0.2}), type.scalar())
            return Node("binary", type, [self.full(type, depth), amount if self.chance(0.75) else self.full(type, depth)], {"name": how})
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
        how = self.weighted(options)
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

    def state(self, type: Type, depth: int) -> Node:
        known = self.leaf_name(type)
        if known is not None and self.chance(0.35):
            return known
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

    def lse(self, depth: int) -> Node:
        """An lse as a kernel may compute it."""
        return self.full(F32, min(depth, 1)) if self.chance(0.7) else self.literal(F32)

    def rebase(self, type: Type, depth: int) -> Node:
        other = self.pick([base for base in ("e", "2", "B") if base != type.base] + [type.base])
        return Node("rebase", type, [self.state(Type("state", "", type.dim, other), depth - 1)])

    def load_state(self, type: Type, depth: int) -> Node:
        usable = [pair for pair in self.pairs if self.tensor_of(pair[0]).dims[-1] == type.dim]
        if usable and (self.chance(0.6) or len(self.tensors) > 8):
            out, lse = (self.tensor_of(part) for part in self.pick(usable))
        else:
            out = self.new_input("f32", type.dim)
            dims = out.dims[:-1]
            if self.chance(0.6):
                self.rng.shuffle(dims)
            lse = self.add_tensor("f32", dims or ["one=1"], "In", out.optional and self.chance(0.7), prefix="l")
            self.pairs.append((out.name, lse.name))
        out_nodes, guard = self.place(out, True, min(depth, 1))
        lse_nodes = []
        for dim in lse.dims:  # the same element of both
            if dim in out.dims[:-1]:
                lse_nodes.append(out_nodes[out.dims.index(dim)])
            else:
                node, extra = self.index_for(dim, 0)
                lse_nodes.append(node)
                if extra is not None:
                    guard = extra if guard is None else Node("binary", BOOL, [guard, extra], {"name": "and"})
        if self.chance(0.3):
            extra = self.expression(BOOL, min(depth, 1))
            guard = extra if guard is None else Node("logic", BOOL, [guard, extra], {"name": "and"})
        attrs: dict[str, Any] = {"tensor": out.name, "lse": lse.name, "split": len(out_nodes)}
        args = [*out_nodes, *lse_nodes]
        if guard is not None:
            attrs["where"] = True
            args.append(guard)
        return Node("load_state", type, args, attrs)

    def tensor_of(self, wanted: str) -> Tensor:
        return next(tensor for tensor in self.tensors if tensor.name == wanted)
