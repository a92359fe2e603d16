"""Random statements: assignments, branches, loops, stores."""

from __future__ import annotations

import dataclasses

from generate_expressions import Expressions
from generate_loads import both
from syntax import (BOOL, BYTES, F32, FP4, FP8, I32, I64, INDEX, OF_B, TILED, Assign, Assume, Each, For, If, Inline,
                    Node, Print, Statement, Store, StoreState, Tensor, Type, factors, is_bounded, lit, name, parse_dim,
                    row)  # fmt: skip


def _reads(result: Node, body: list[Assign]) -> set[str]:
    """Returns the parameters on which the result of an inline function depends."""
    found = {node.attrs["name"] for node in result.walk() if node.op == "name"}
    for assign in reversed(body):
        if found & set(assign.names):
            found |= {node.attrs["name"] for value in assign.values for node in value.walk() if node.op == "name"}
    return found


class Statements(Expressions):
    """Generates statements. A statement may use the names in scope and add names."""

    def value_type(self) -> Type:
        """Returns a type that a variable may hold."""
        options: dict[Type, float] = {F32: 3, I32: 2, I64: 0.7, INDEX: 0.7, BOOL: 1}
        for dim in self.row_dims:
            options[row(dim)] = 4 / len(self.row_dims)
            options[row(dim, "i32")] = 0.6
            options[row(dim, "bool")] = 0.3
            if dim in self.state_dims:
                options[self.state_type(dim)] = 3 / len(self.state_dims)
        return self.weighted(options)

    def statements(self, count: int, nesting: int) -> list[Statement]:
        made: list[Statement] = []
        for _ in range(count):
            options = {"new": 4.0, "change": 1.5, "write": 0.6, "reuse": 0.3, "scatter": 0.25, "print": 0.25, "promise": 0.1}
            if nesting > 0:
                options |= {"if": 1.6, "loop": 1.8, "each": 0.5}
            found = getattr(self, f"state_{self.weighted(options)}")(nesting - 1)
            made += found
        return made

    def block(self, count: int, nesting: int) -> list[Statement]:
        """Returns a block of statements. Names that it introduces leave the scope at its end. The block stores to
        memory or assigns an outer name, if possible."""
        outer = dict(self.variables)
        with self.scope():
            made = self.statements(count, nesting)
            if not any(isinstance(s, (Store, StoreState)) or isinstance(s, Assign) and set(s.names) & set(outer) for s in made):
                made += self.state_change(nesting, outer)
        return made

    # -- Assignments -------------------------------------------------------------------------------------------------

    def state_new(self, nesting: int) -> list[Statement]:
        type = self.value_type()
        if self.chance(0.08):
            return [self.new_list(type)]
        value = self.expression(type, self.weighted({1: 3, 2: 3, 3: 1}))
        variable = self.fresh("v")
        statement = Assign([variable], [value])
        if type.dtype in ("f32", "i32") and self.chance(0.08):
            second = self.fresh("v")
            statement = Assign([variable, second], [value, self.expression(type, 1)])
            self.variables[second] = type
        self.variables[variable] = type
        return [statement]

    def new_list(self, type: Type) -> Statement:
        """Returns the assignment of a new list of values. Later statements use its elements like variables."""
        variable, count = self.fresh("v"), self.rng.randint(2, 3)
        over = {"over": count} if self.chance(0.4) else {}
        values = [self.expression(type, 1) for _ in range(1 if over else count)]
        self.variables.update({f"{variable}[{i}]": type for i in range(count)})
        return Assign([variable], [Node("list", Type("list"), values, over)])

    def state_change(self, nesting: int, known: dict[str, Type] | None = None) -> list[Statement]:
        """Returns an assignment to an existing variable."""
        names = [v for v, of in (known or self.variables).items() if v.startswith("v") and v in self.variables]
        if not names:
            return self.state_new(nesting)
        variable = self.pick(names)
        type = self.variables[variable]
        twins = [v for v in names if self.variables[v] == type and v != variable]
        if twins and self.chance(0.1):
            other = self.pick(twins)
            return [Assign([variable, other], [name(other, type), name(variable, type)])]
        if type.kind == "state" and self.chance(0.7):
            other = dataclasses.replace(type, sink=False)
            return [Assign([variable], [Node("merge", type, [name(variable, type), self.state(other, 1)])])]
        if type.dtype in ("f32", "i32", "i64", "index") and "[" not in variable and self.chance(0.35):
            op = self.pick(["add", "sub", "mul"])
            value = self.operand(type, 1)
            return [Assign([variable], [value], op)]
        return [Assign([variable], [self.full(type, 2)])]

    # -- Stores ------------------------------------------------------------------------------------------------------

    def own_dims(self) -> list[tuple[Node, str]]:
        """Returns the grid's indices with their dims, in a random order."""
        places = [(name(index, INDEX), dim) for index, dim in self.own]
        self.rng.shuffle(places)
        return places

    def output(self, dtype: str, row_dim: str, access: str, optional: bool) -> tuple[str, list[Node]]:
        """Adds a tensor in which each row of the grid owns a row or an element. Returns the tensor's name and
        the indices of the owned row or element."""
        places = self.own_dims()
        nodes, dims = [n for n, _ in places], [d for _, d in places]
        if access == "InOut" and not row_dim and self.chance(0.15):
            at = self.rng.randint(0, len(nodes))
            nodes.insert(at, lit(self.rng.randrange(2), INDEX))
            dims.insert(at, f"two{self.counter}=2")
        tiles = self.pick([*TILED]) if access == "InOut" and not row_dim and bool(dims) and self.chance(0.1) else 0
        if tiles:
            nodes.insert(0, lit(self.rng.randrange(int(TILED[tiles].partition("=")[2])), INDEX))
            dims.insert(0, TILED[tiles])
        tensor = self.add_tensor(dtype, [*dims, row_dim] if row_dim else dims, access, optional)
        tensor.tiles = tiles
        self.writes[tensor.name] = nodes
        return tensor.name, nodes

    def state_write(self, nesting: int) -> list[Statement]:
        """Returns a store to an updated tensor (InOut), which may have a predicate."""
        return [self.write("InOut", BOOL if self.chance(0.5) else None)]

    def write(self, access: str, condition: Type | None) -> Statement:
        """Returns a store to a new or an existing tensor."""
        where = self.expression(BOOL, 2) if condition and access == "InOut" else None
        optional = self.chance(0.08)
        if self.row_dims and self.chance(0.45):
            return self.write_state(access, where, optional)
        row_dim = self.pick(self.row_dims) if self.row_dims and self.chance(0.6) else ""
        dtype = self.weighted({"T": 3, "O": 1, "f32": 3, "bf16": 1.5, "f16": 1.5, "f8e4m3fn": 1, "f8e5m2": 0.7, "f8e8m0": 0.7, "i32": 1.5, "i64": 0.7, "I": 0.3, "bool": 0.7,
                               "i8": 0.6, "u8": 0.6, "M": 0.5, **({FP4: 1} if row_dim and self.is_even(row_dim) else {})})  # fmt: skip
        old = [t for t in self.tensors if t.name in self.writes and t.access == "InOut" == access and self.chance(0.25)]
        if old:
            tensor = self.pick(old)
            target, nodes, dtype = tensor.name, self.writes[tensor.name], tensor.dtype
            row_dim = tensor.dims[-1] if len(nodes) < len(tensor.dims) else ""
        else:
            target, nodes = self.output(dtype, row_dim, access, optional)
        element = self.element(Tensor("", dtype, [], access))
        if self.product and row_dim == self.product and dtype not in ("M", FP4) and self.chance(0.7):
            return self.write_parts(target, list(nodes), element, access, where)
        if dtype in BYTES and self.chance(0.6):  # a value of another type that is not a constant
            of = Type("row" if row_dim else "scalar", self.pick(["f32", "f32", "i32", "i64"]), row_dim)
            return Store(target, list(nodes), self.full(of, 2), where)
        type = row(row_dim, element) if row_dim else Type("scalar", element)
        if dtype == "M":
            return Store(target, list(nodes), self.moved(type), where)
        depth = self.weighted({1: 1, 2: 3, 3: 2})
        value = self.operand(type, depth) if row_dim else self.expression(type, depth)
        if row_dim and row_dim != self.product and access == "InOut" and self.chance(0.12) and element in ("f32", "i32", "bool") and dtype != FP4:
            return self.element_loop(target, nodes, row_dim, element)
        if row_dim and not factors(row_dim) and parse_dim(row_dim)[1] is None and not self.is_each(row_dim) and access == "InOut" and dtype != FP4 and self.chance(0.2):
            return self.write_slice(target, list(nodes), type, where)
        return Store(target, list(nodes), value, where)

    def is_each(self, dim: str) -> bool:
        """True if rows along `dim` have one element per group of other rows."""
        return bool(self.product) and dim == "G"

    def write_slice(self, target: str, nodes: list[Node], type: Type, where: Node | None) -> Statement:
        """Stores to a slice of a row. The value is a number, or a row along a dim of the slice's size."""
        size = self.most(type.dim)
        shorter = [dim for dim in self.row_dims if not factors(dim) and "=" not in dim and not self.is_each(dim) and self.fixed_sizes.get(dim, 1) <= size]
        if shorter and self.chance(0.7):
            dim = self.pick(shorter)
            return Store(target, nodes, self.full(row(dim, type.dtype), 2), where, slice=self.slice(size, self.fixed_sizes.get(dim, 1)))
        return Store(target, nodes, self.expression(type.scalar(), 2), where, slice=self.slice(size))

    def write_parts(self, target: str, nodes: list[Node], element: str, access: str, where: Node | None) -> Statement:
        """Stores all groups, members or elements of a row, in a loop or one by one. For an updated tensor, may store
        only one of them."""
        part = self.weighted({"group": 2, "member": 4, "element": 2 if access == "InOut" else 0})
        own, other = ("G", self.inner) if part == "group" else (self.inner, "G")
        text, fixed = parse_dim(own)
        type = Type("scalar", element) if part == "element" else row(other, element)

        def store(index: Node) -> Statement:
            more = [self.index_for("G", 0)[0], index] if part == "element" else [index]
            value = self.operand(type, 2) if part != "element" else self.expression(type, 2)
            return Store(target, [*nodes, *more], value, where, part)

        if access == "InOut" and self.chance(0.4):
            index, guard = self.index_for(own, 1)
            where = both(where, guard)
            return store(index)
        if fixed is not None and fixed <= 4 and self.chance(0.8):
            # The branch is always taken. It serves only to return all stores as one statement.
            order = self.rng.sample(range(fixed), fixed)
            return If(lit(True, BOOL), [store(lit(i, INDEX)) for i in order], [])
        index = self.fresh("r")
        with self.scope(index, INDEX, {text}):
            body = [store(name(index, INDEX))]
        return For(index, lit(0, INDEX), lit(fixed, INDEX) if fixed is not None else Node("shape", INDEX, [], {"dim": text}), 1, body, 1)

    def moved(self, type: Type) -> Node:
        """Returns an element or a row of a dtype without arithmetic, or 0."""
        zero, loaded = lit(0, type.scalar()), self.load(type, 0)
        how = self.weighted({"load": 3, "if": 1, "zero": 0.4})
        if how == "zero" or loaded.op != "load":
            return zero if how == "zero" else loaded
        return loaded if how == "load" else Node("ifexp", type, [self.full(BOOL, 1), loaded, zero])

    def element_loop(self, target: str, nodes: list[Node], row_dim: str, element: str) -> Statement:
        """Returns a loop that stores the first few elements of a row, one at a time."""
        index = self.fresh("r")
        with self.scope(index, INDEX, {parse_dim(row_dim)[0]}):
            value = self.expression(Type("scalar", element), 2)
        size = Node("shape", INDEX, [], {"dim": parse_dim(row_dim)[0]})
        end = Node("binary", INDEX, [size, lit(self.rng.randint(1, 6), INDEX)], {"name": "min"})
        step = self.weighted({1: 4, 2: 1, 3: 1})
        body: list[Statement] = [Store(target, [*nodes, name(index, INDEX)], value)]
        return For(index, lit(0, INDEX), end, step, body, 1 if step == 1 else 3)

    def write_state(self, access: str, where: Node | None, optional: bool) -> Statement:
        dim = self.pick(self.state_dims)
        dtype = self.weighted({"T": 4, "O": 1.5, "f32": 2, "bf16": 1.5, "f16": 1.5, "f8e4m3fn": 1.2, "f8e5m2": 0.6, "f8e8m0": 0.4, **({FP4: 1} if self.is_even(dim) else {})})
        state = self.state(self.state_type(dim), self.weighted({1: 1, 2: 3, 3: 1}))
        parts = self.weighted({"both": 6, "out": 2, "lse": 1})
        out, out_nodes, lse, lse_nodes = "", [], "", []
        if parts != "lse":
            out, out_nodes = self.output(dtype, dim, access, optional)
        if parts != "out":
            lse, lse_nodes = self.output("f32", "", access, self.chance(0.3))
        scale = None
        if out and self.chance(0.35 if dtype in FP8 else 0.12):
            scale = self.full(F32, 1) if self.chance(0.6) else lit(self.pick([1.0, 2.0, 0.5, 0.1, -3.0, 1e-30]), F32)
        return StoreState(state, out, list(out_nodes), lse, list(lse_nodes), where, scale)

    # -- Promises, prints --------------------------------------------------------------------------------------------

    def state_scatter(self, nesting: int) -> list[Statement]:
        """Returns a store to a row or an element, at an index that is loaded from a table of distinct entries."""
        # A load past the table's end gives 0, so all rows past the end would store to the same place. Therefore leaves
        # out indices whose extent is a scalar without a bound.
        uncounted = {scalar.name for scalar in self.scalars if not scalar.at_most}
        places = [(index, dim) for index, dim in self.own if "=" not in dim and f"count_{index}" not in uncounted]
        if not places or self.distinct or self.segment_index:
            return self.state_write(nesting)
        index, dim = self.pick(places)
        table = self.add_tensor(self.pick(["i32", "i32", "i64"]), [dim], "In", prefix="table")
        self.single.add(table.name)
        self.distinct.append(table.name)
        row_dim = self.pick([*self.state_dims, "", ""])
        dtype = self.pick(["f32", "T", "bf16", "f16"]) if row_dim else self.pick(["f32", "i32", "i64", "bool"])
        entry = Node("load", I32 if table.dtype == "i32" else I64, [name(index, INDEX)], {"tensor": table.name})
        at = [(entry, "slots") if node.attrs["name"] == index else (node, of) for node, of in self.own_dims()]
        target = self.add_tensor(dtype, [*(of for _, of in at), *([row_dim] if row_dim else [])], "InOut")
        type = row(row_dim) if row_dim else Type("scalar", self.element(target))
        return [Store(target.name, [node for node, _ in at], self.full(type, 2), self.lively() if self.chance(0.4) else None)]

    def state_print(self, nesting: int) -> list[Statement]:
        """Returns a print statement, which has an effect only in debug mode."""
        types = [self.pick([F32, I32, I64, INDEX, BOOL]) for _ in range(self.rng.randint(1, 2))]
        return [Print(self.pick(["at", "it is", "x ="]), [self.full(type, 1) for type in types])]

    def state_promise(self, nesting: int) -> list[Statement]:
        """Returns a promise (assume) about the grid's indices that is always true."""
        index, dim = self.pick(self.own)
        size = lit(parse_dim(dim)[1], INDEX) if "=" in dim else Node("shape", INDEX, [], {"dim": dim})
        ops = self.pick([["le", "lt"], ["le", "le"]])
        return [Assume(Node("compare", BOOL, [lit(0, INDEX), name(index, INDEX), size], {"ops": ops}))]

    # -- Rows that are used after their memory was written ------------------------------------------------------------

    def state_reuse(self, nesting: int) -> list[Statement]:
        return self.reuse(nesting)

    def reuse(self, nesting: int, dim: str | None = None) -> list[Statement]:
        """Reads a row or an element into a name, writes to its memory, and then uses the name. The name must still have
        the old value. The memory is an updated tensor, or an input that may alias an output."""
        if dim is None:
            dim = self.pick([*self.row_dims, *(d for d in self.row_dims if is_bounded(d) or self.fixed_sizes.get(d, 0) > 300), *([""] if nesting > 0 else [])])
        type = row(dim) if dim else self.pick([F32, I32])
        dtype = "i32" if type == I32 else self.pick(["T", *self.float_dtypes, "f32"])
        target, nodes = self.output(dtype, dim, "InOut", False)
        origin = target
        if self.chance(0.4):
            twin = self.tensor_of(target)
            origin = self.add_tensor(dtype, list(twin.dims), "In").name
            self.single.add(origin)
            twin.tiles = 0
        old = self.fresh("v")
        made: list[Statement] = [Assign([old], [self.reread(origin, nodes, type)])]
        self.variables[old] = type
        new: list[Statement] = [Store(target, list(nodes), self.rewritten(origin, nodes, old, type), self.expression(BOOL, 1) if self.chance(0.2) else None)]
        how = self.weighted({"plain": 1, "if": 2.5, "else": 1, "loop": 1.5})
        if how == "if":
            new = [If(self.lively(), new, [Store(target, list(nodes), self.rewritten(origin, nodes, old, type))] if self.chance(0.4) else [])]
        elif how == "else":
            new = [If(self.lively(), [Assign([old], [self.full(type, 1)])] if self.chance(0.5) else [Store(target, list(nodes), self.full(type, 1))], new)]
        elif how == "loop":
            index = self.fresh("r")
            new = [For(index, lit(0, INDEX), self.limited(self.full(INDEX, 1), INDEX), 1, new, 1)]
        if self.chance(0.3):  # reads the memory once more
            again = self.fresh("v")
            new.append(Assign([again], [self.reread(target, nodes, type)]))
            self.variables[again] = type
        return made + new

    def reread(self, tensor: str, nodes: list[Node], type: Type) -> Node:
        """Loads the same row or element again. Sometimes shifts or stretches the loaded row (``load(…, into=…)``), so
        that the load overlaps the store."""
        plain = Node("load", type, list(nodes), {"tensor": tensor})
        if type.kind != "row" or parse_dim(type.dim)[1] is not None or (self.product and type.dim == "G") or factors(type.dim) or self.chance(0.7):
            return plain
        size = self.most(type.dim)
        into = {"into": parse_dim(type.dim)[0], "first": self.pick([0, 1, 1, min(5, size), size // 2]), "each": self.pick([1, 1, 2])}
        return Node("load", type, list(nodes), {"tensor": tensor, **into})

    def rewritten(self, tensor: str, nodes: list[Node], old: str, type: Type) -> Node:
        """Returns the value that is written over the old one."""
        how = self.weighted({"old": 3, "again": 1, "other": 1})
        if how == "other":
            return self.full(type, 1)
        value = name(old, type) if how == "old" else self.reread(tensor, nodes, type)
        return Node("binary", type, [value, self.operand(type, 0) if self.chance(0.4) else lit(2.0 if type.dtype == "f32" else 3, type.scalar())], {"name": self.pick(["add", "mul", "sub"])})

    def lively(self) -> Node:
        """Returns a condition that holds for some of the rows."""
        if self.chance(0.25):
            return self.expression(BOOL, 2)
        if self.chance(0.3) and self.own:
            index = name(self.own[0][0], INDEX)
            odd = Node("binary", INDEX, [index, lit(self.pick([1, 1, 2]), INDEX)], {"name": "and"})
            return Node("compare", BOOL, [odd, lit(0, INDEX)], {"ops": [self.pick(["eq", "ne"])]})
        type = self.pick([F32, I32])
        own = [dim for _, dim in self.own]
        usable = [t for t in self.tensors if t.access == "In" and t.dims == own and t.dtype in ("f32", "bf16", "T", "i32") and not t.optional and not t.listed and t.name not in self.single]
        tensor = self.pick(usable) if usable and self.chance(0.7) else self.add_tensor("i32" if type == I32 else self.pick(["f32", "T", "bf16"]), own)
        type = I32 if tensor.dtype == "i32" else F32
        value = Node("load", type, [name(index, INDEX) for index, _ in self.own], {"tensor": tensor.name})
        return Node("compare", BOOL, [value, lit(0.0 if type == F32 else self.rng.randint(0, 3), type)], {"ops": [self.pick(["lt", "gt", "ge"])]})

    # -- Branches and loops ------------------------------------------------------------------------------------------

    def state_if(self, nesting: int) -> list[Statement]:
        condition = self.lively()
        if self.chance(0.05):
            value = self.chance(0.5)
            condition = lit(value, BOOL, "YES" if value else "NO")
        then = self.block(self.rng.randint(1, 2), nesting)
        orelse: list[Statement] = []
        if self.chance(0.5):
            orelse = self.block(self.rng.randint(1, 2), nesting)
        elif self.chance(0.4):
            orelse = [If(self.lively(), self.block(1, nesting), self.block(1, nesting) if self.chance(0.6) else [])]
        if orelse and condition.op != "lit" and self.chance(0.4):  # both branches assign the same name
            type, variable = self.value_type(), self.fresh("v")
            is_elif = len(orelse) == 1 and isinstance(orelse[0], If)
            for branch in (then, orelse[0].then, orelse[0].orelse) if is_elif else (then, orelse):
                branch.append(Assign([variable], [self.full(type, 1)]))
            self.variables[variable] = type
        return [If(condition, then, orelse)]

    def count(self, type: Type) -> Node:
        """Returns a bound of a loop. Most bounds are small."""
        if type == INDEX:
            options: dict[str, float] = {"literal": 3, "shape": 2, "limited": 2, "grid": 1}
        else:
            options = {"literal": 3, "memory": 3, "limited": 2, "argument": 1}
        how = self.weighted(options)
        if how == "shape" and self.other_dims:
            return Node("shape", INDEX, [], {"dim": self.pick([parse_dim(dim)[0] for dim in self.other_dims])})
        if how == "grid" and self.own:
            return name(self.pick(self.own)[0], INDEX)
        if how == "memory" and type == I32 and not self.pure:
            tensor = self.input("i32", "")
            nodes, guard = self.place(tensor, False, 0)
            inner = Node("load", I32, nodes, {"tensor": tensor.name, **({"part": "element"} if self.is_parted(tensor) else {})})
            if guard is not None:
                inner = Node("ifexp", I32, [guard, inner, lit(0, I32)])
            return self.limited(inner, I32)
        if how in ("limited", "argument", "memory"):
            inner = self.argument(type) if how == "argument" else self.full(type, 1)
            return self.limited(inner, type)
        return lit(self.rng.randint(-3, 8), type)

    def limited(self, inner: Node, type: Type) -> Node:
        if inner.op == "lit":
            return lit(max(min(inner.attrs["value"], 6), -6), type)
        low = Node("binary", type, [inner, lit(self.rng.randint(-6, 0), type)], {"name": "max"})
        return Node("binary", type, [low, lit(self.rng.randint(1, 7), type)], {"name": "min"})

    def bounds(self, type: Type) -> tuple[Node, Node, int, int]:
        """Returns the lower bound, the upper bound and the step of a loop, and how many arguments range gets in the
        source."""
        step = self.weighted({1: 5, 2: 2, 3: 1, 4: 0.5, 7: 0.5, 100: 0.1})
        spelled = 3 if step != 1 else self.weighted({1: 2, 2: 2, 3: 1})
        if self.chance(0.02):  # bounds near the largest integer, where the index would overflow
            top = 2**31 - 1 if type == I32 else 2**63 - 1
            return lit(top - self.rng.randint(1, 5), type), lit(top - self.rng.randint(0, 1), type), step, 3
        upper = self.count(type)
        if step > 1 and self.chance(0.6):  # several iterations
            upper = lit(self.rng.randint(1, 5) * step + self.rng.randint(0, step), type)
        lower = lit(0, type) if spelled == 1 else self.count(type)
        if self.chance(0.08):
            step, spelled = self.weighted({1: 1, 2: 2, 3: 1}), 3
            lower = lit(max(lower.attrs["value"], 0), type) if lower.op == "lit" else lower
        return lower, upper, step, spelled

    def state_loop(self, nesting: int) -> list[Statement]:
        setup = self.state_new(0) if not any(v.startswith("v") for v in self.variables) or self.chance(0.4) else []
        type = self.weighted({INDEX: 3, I32: 3, I64: 0.6})
        index = self.fresh("r")
        within: set[str] = set()
        if type == INDEX and self.other_dims and self.chance(0.45):  # along a dim, like a merge of many states
            dim = parse_dim(self.pick(self.other_dims))[0]
            size: Node = Node("shape", INDEX, [], {"dim": dim})
            step = self.weighted({1: 6, 2: 1})
            lower, upper, spelled = lit(0, INDEX), size, 1 if step == 1 else 3
            if self.chance(0.2):
                upper = Node("binary", INDEX, [size, self.count(INDEX)], {"name": "min"})
            within = {dim}
        else:
            lower, upper, step, spelled = self.bounds(type)
            if lower.op == "lit" and upper.op == "lit" and type == I64:
                upper = Node("convert", I64, [self.limited(name(self.own[0][0], INDEX), INDEX)])
        with self.scope(index, type, within):
            body = self.block(self.rng.randint(1, 3), nesting)
        return [*setup, For(index, lower, upper, step, body, spelled)]

    def state_each(self, nesting: int) -> list[Statement]:
        """Returns a loop over a tuple of tensors or numbers."""
        setup: list[Statement] = []
        if not self.row_dims or self.chance(0.3):
            type = self.pick([F32, I32])
            items = [[self.full(type, 1)] for _ in range(self.rng.randint(1, 4))]
            names, types = [self.fresh("w")], [type]
            targets = [v for v, of in self.variables.items() if of == type and v.startswith("v")]
            if not targets:
                setup = [Assign([self.fresh("v")], [self.full(type, 1)])]
                self.variables[setup[0].names[0]] = type
                targets = setup[0].names
            target = self.pick(targets)
            value = Node("binary", type, [name(target, type), name(names[0], types[0])], {"name": self.pick(["add", "mul", "max"])})
            return [*setup, Each(names, items, [Assign([target], [value])])]
        dim = self.pick(self.state_dims)
        type = Type("state", "", dim, self.pick(["B", OF_B, "e", "2"]))
        target = self.fresh("v")
        setup = [Assign([target], [self.state(type, 1)])]
        self.variables[target] = type
        places = self.own_dims()
        dims = [d for _, d in places]
        dtype = self.pick(["T", *self.float_dtypes])
        pairs = []
        for _ in range(self.rng.randint(1, 4)):
            optional = self.chance(0.3)
            out = self.add_tensor(dtype, [*dims, dim], "In", optional)
            lse = self.add_tensor("f32", list(dims), "In", optional, prefix="l")
            self.pairs.append((out.name, lse.name))
            pairs.append([Node("tensor", F32, [], {"name": part.name}) for part in (out, lse)])
        a, b = self.fresh("w"), self.fresh("w")
        nodes = [n for n, _ in places]
        load = Node("load_state", type, [*nodes, *nodes], {"tensor": a, "lse": b, "split": len(nodes)})
        merged = Node("merge", type, [name(target, type), load])
        return [*setup, Each([a, b], pairs, [Assign([target], [merged])])]

    # -- Inline functions ----------------------------------------------------------------------------------------------

    def inline(self, number: int) -> Inline:
        """Returns an inline function whose parameters are values."""
        outer = self.variables, self.within, self.pure
        self.variables, self.within, self.pure = {}, {}, True
        types = [self.pick([F32, F32, I32, BOOL, *(row(dim) for dim in self.row_dims)]) for _ in range(self.rng.randint(1, 3))]
        parameters = [self.fresh("p") for _ in types]
        self.variables.update(zip(parameters, types))
        body: list[Assign] = []
        if self.chance(0.4):
            type, variable = self.pick(types), self.fresh("v")
            body = [Assign([variable], [self.full(type, 1)])]
            self.variables[variable] = type
        result_type = self.pick([*types, F32])
        result = self.full(result_type, 2)
        if not any(n.op == "name" for n in result.walk()):
            result = name(parameters[0], types[0])
        defaults = [lit(float(self.rng.randint(-4, 4)), F32)] if types[-1] == F32 and len(types) > 1 and self.chance(0.4) else []
        # If the result depends on no parameter but the last one, a call that omits this one would return a number
        # without a type.
        if not _reads(result, body) & set(parameters[:-1]):
            defaults = []
        self.variables, self.within, self.pure = outer
        return Inline(f"g{number}", parameters, types, [*body], result, defaults)



