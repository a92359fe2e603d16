"""Makes every value reach an output: values that would be lost are stored in the block that computes them."""

from __future__ import annotations

import dataclasses
from typing import Any

from generate_loads import may_be_constant
from generate_statements import Statements
from syntax import (BOOL, I32, I64, INDEX, MOST_LISTED, Assign, Assume, Each, For, If, Node, Print, Statement, Store, StoreState, Tensor, Type,
                    all_statements, expressions, get, lit, name, put, slots_of)  # fmt: skip

# The degree to which an operation hides errors in its operands: 0 means not at all, 1 nearly completely.
_HIDES = {"floordiv": 1, "mod": 1, "shl": 1, "shr": 1, "and": 1, "or": 1, "min": 1, "max": 1, "mul": 0.9, "div": 0.9, "copysign": 1,
          "add": 0.4, "sub": 0.4, "xor": 0, "neg": 0, "not": 0, "abs": 0.8}  # fmt: skip
_HIDES_OF = {"fma": 0.9, "compare": 1, "logic": 1, "ifexp": 1, "where": 1, "top": 1, "splat": 0.3, "swap": 0.3, "row_of": 0.3, "element": 1, "payload": 1, "lse_of": 1, "merge": 0.9,
             "mask": 1, "make_state": 0.9, "sink": 1, "call": 1, "load": 1, "load_state": 1, "rebase": 0.6, "list": 0.5}  # fmt: skip
_KEPT = {("i32", "f32"), ("i32", "i64"), ("i32", "index"), ("index", "i64"), ("i64", "index"), ("bool", "i32"), ("bool", "i64"), ("bool", "f32")}
_STORES = 120
_TOGETHER = 5  # the number of integers that one store combines
_STORES_OF_LONG = 6
# Stores add no argument to a kernel with more arguments than this. A kernel may have 64 arguments. The remaining 8 are
# for tensors that are added later, for lses and for sizes of dims.
_ARGUMENTS = 56
_AT_ONCE = 0.6  # the share of assigned values that are stored immediately; the others are stored only if no statement reads them


def hides(node: Node) -> float:
    """Returns the degree to which an expression hides errors in its operands."""
    if node.op in ("binary", "unary"):
        return _HIDES.get(node.attrs["name"], 0.8)
    if node.op in ("reduce", "scan"):
        return 0.7 if node.attrs["kind"] == "add" else 1
    if node.op == "convert":
        return 0 if (node.args[0].type.dtype, node.type.dtype) in _KEPT else 1
    return _HIDES_OF.get(node.op, 0)


def _reads(nodes: list[Node]) -> set[str]:
    return {n.attrs["name"] for node in nodes for n in node.walk() if n.op == "name"}


def _has(node: Node, *ops: str) -> bool:
    return any(n.op in ops for n in node.walk())


def targets(statement: Assign) -> dict[str, Type]:
    """Returns the names to which an assignment gives values, with their types. For a list, returns the names of its
    elements."""
    found: dict[str, Type] = {}
    for variable, value in zip(statement.names, statement.values):
        if value.op == "list":
            elements = value.args * value.attrs.get("over", 1)
            found |= {f"{variable}[{i}]": element.type for i, element in enumerate(elements)}
        else:
            found[variable] = value.type
    return found


class Reach(Statements):
    """Adds stores to a finished body."""

    def reach(self, body: list[Statement], seen: dict[str, Type], is_long: bool) -> list[Statement]:
        """Adds stores of hidden operands, and of values that no statement reads. Some kernels get only a few of these
        stores, since a second use of a value prevents optimisations.

        Args:
            seen: names that have values before the body.
            is_long: whether rows are long, so that stores take long.
        """
        self.thoroughness = self.weighted({1.0: 0.96, 0.5: 0.02, 0.0: 0.02})
        self.stores_left = _STORES_OF_LONG if is_long else _STORES
        # Each stored value gets a slot: an index of its own into an additional dim of an output tensor. For each type,
        # `kept` has the output tensors for values of this type, the grid's indices in each tensor, the position of the
        # slot's index among these indices, and the number of slots in use.
        self.kept: dict[Type, tuple[list[str], list[Node], list[int], list[int]]] = {}
        self.types = dict(seen)
        self.stored: set[str] = set()  # names whose values have been stored to an output
        read = _reads([node for s in all_statements(body) for node in expressions(s)])
        made, unread = self._block(body, set(seen), False)
        made += self._leave(unread | {v for v in seen if v not in read})
        for tensors, _, places, counts in self.kept.values():
            for text, place in zip(tensors, places):
                dims = self.tensor_of(text).dims
                dims[place] = f"{dims[place].partition('=')[0]}={counts[0]}"
        return made

    # -- Blocks ------------------------------------------------------------------------------------------------------

    def _block(self, body: list[Statement], known: set[str], is_loop: bool) -> tuple[list[Statement], set[str]]:
        """Returns the block with added stores. Also returns the names whose values no statement has read by the end
        of the block."""
        made: list[Statement] = []
        unread: set[str] = set()
        for statement in body:
            before = self._hoist(statement, is_loop)
            read = _reads([node for s in [*before, statement] for node in expressions(s)])
            unread -= read
            if isinstance(statement, Assign):
                new = targets(statement)
                lost = set() if statement.aug else (set(new) & unread) - read
                before += self._leave(lost, is_loop)
                if not statement.aug:
                    self.types.update(new)
                changed = set(statement.names) if statement.aug else set(new)
                unread |= changed
                known = known | changed
                self.stored -= changed
                made += [*before, statement, *self._leave({v for v in new if self.chance(_AT_ONCE * self.thoroughness)}, is_loop)]
                continue
            made += [*before, statement]
            if isinstance(statement, If):
                statement.then, then = self._inner(statement.then, known, is_loop)
                statement.orelse, orelse = self._inner(statement.orelse, known, is_loop, len(statement.orelse) == 1 and isinstance(statement.orelse[0], If))
                both = {v for v in then & orelse if v not in known}
                unread |= (then | orelse) & known | both
                known = known | both
            elif isinstance(statement, (For, Each)):
                if isinstance(statement, For) and self.chance(0.8 * self.thoroughness):  # shows which iterations run
                    statement.body += self._keep(name(statement.name, statement.lower.type), True, 1.0)
                statement.body, inner = self._inner(statement.body, known, isinstance(statement, For))
                unread |= inner & known
        return made, unread

    def _inner(self, body: list[Statement], known: set[str], is_loop: bool, is_elif: bool = False) -> tuple[list[Statement], set[str]]:
        """Adds stores to a nested block. Returns the block, and the names whose values no statement has read by its
        end. If the block defines such a name, stores its value at the end of the block. For an elif, sometimes leaves
        the stores at the end to the caller, since the other branch may define the names, too."""
        stored = set(self.stored)
        if is_elif and self.chance(0.4):
            (inner,) = body
            inner.then, then = self._inner(inner.then, known, is_loop)
            inner.orelse, orelse = self._inner(inner.orelse, known, is_loop, len(inner.orelse) == 1 and isinstance(inner.orelse[0], If))
            self.stored = stored & self.stored
            return body, then | orelse
        made, unread = self._block(body, known, is_loop)
        made += self._leave({v for v in unread if v not in known}, is_loop)
        self.stored = stored & self.stored
        return made, unread

    def _leave(self, names: set[str], is_loop: bool = False) -> list[Statement]:
        """Stores the values of names."""
        made: list[Statement] = []
        self.integers = []
        for v in sorted(names - self.stored):
            if v in self.types and self.chance(0.95 if self.thoroughness else 0.7):
                made += self._keep(name(v, self.types[v]), is_loop)
                self.stored.add(v)
        return made + self._together(is_loop)

    # -- Operands ----------------------------------------------------------------------------------------------------

    def _hoist(self, statement: Statement, is_loop: bool) -> list[Statement]:
        """Gives names to hidden operands and stores them. The statement then uses the names."""
        made: list[Statement] = []
        named: dict[int, tuple[Node, Node]] = {}  # by id of a node: the node and its replacement

        def visit(shared: Node, hidden: float, is_guarded: bool) -> Node:
            if id(shared) in named:
                return named[id(shared)][1]
            # The node is copied, since an earlier statement may share it, where the new names have no values yet.
            node = dataclasses.replace(shared, args=list(shared.args))
            for i, argument in enumerate(node.args):
                guarded = is_guarded or (node.op == "ifexp" and i > 0) or (node.op == "logic" and i > 0)
                node.args[i] = visit(argument, hides(node), guarded)
            result = node
            if self.chance(hidden * 0.95 * self.thoroughness) and not (is_guarded and _has(node, "load", "load_state") and self.chance(0.3)):
                result = self._named(node, made, is_loop)
            named[id(shared)] = shared, result
            return result

        self.integers = []
        for holder, key, hidden in self._roots(statement):
            put(holder, key, visit(get(holder, key), hidden, False))
        return made + self._together(is_loop)

    def _roots(self, s: Statement) -> list[tuple[Any, Any, float]]:
        """Returns (object, attribute or index, degree) for each expression of a statement. The degree says how much the
        statement hides the expression's value."""
        if isinstance(s, Assume) or isinstance(s, Each) and s.items and s.items[0][0].op == "tensor":
            return []
        degree = {Assign: 0.0, For: 0.9, Print: 0.9}.get(type(s), 0.8)  # only debug mode shows the values of a print
        if isinstance(s, Store):
            degree = 0.0 if self.tensor_of(s.tensor).dtype in ("f32", "i32", "i64", "bool", "M") else 0.9
        if isinstance(s, StoreState):
            degree = 0.2 if s.out and s.lse and self.tensor_of(s.out).dtype == "f32" else 0.9
        return [(holder, key, {"where": 0.8, "scale": 0.9}.get(key, degree)) for holder, key in slots_of(s)]

    def _named(self, node: Node, made: list[Statement], is_loop: bool) -> Node:
        """Assigns a value to a new name and stores it. Returns the name."""
        type = node.type
        is_known = node.op == "lit" or type.kind in ("sink", "list") or type.dtype in ("i8", "u8", "M") or all(n.op in ("lit", "convert") for n in node.walk())
        if is_known or self.stores_left <= 0:
            return node
        if node.op == "name":
            text = str(node.attrs["name"])
            if text in self.types and text not in self.stored:
                made += self._keep(node, is_loop)
                self.stored.add(text)
            return node
        variable = self.fresh("v" if may_be_constant(node) else "u")
        made.append(Assign([variable], [node]))
        self.types[variable] = type
        self.stored.add(variable)
        value = name(variable, type)
        made += self._keep(value, is_loop)
        return value

    # -- Outputs -----------------------------------------------------------------------------------------------------

    def _keep(self, value: Node, is_loop: bool, sum_rate: float = 0.0) -> list[Statement]:
        """Stores a value to an output, in a slot of its own. Sometimes adds the value to what the slot holds, so that
        every iteration of a loop shows in the result."""
        type = value.type
        if type.kind in ("list", "sink") or type.dtype in ("i8", "u8", "M") or self.stores_left <= 0 or self.arguments() > _ARGUMENTS:
            return []
        if type in (I32, I64, INDEX, BOOL) and not sum_rate and self.chance(0.7):
            self.integers.append(value)
            return []
        self.stores_left -= 1
        if type.kind == "state":
            (out, lse), (nodes, lse_nodes) = self._slot(Type("state", "", type.dim))
            return [StoreState(value, out, nodes, lse, lse_nodes)]
        if type == BOOL and self.chance(0.5):  # stored as an i32
            value = Node("convert", Type("scalar", "i32"), [value])
        if type == INDEX:
            value = Node("convert", Type("scalar", "i64"), [value])
        (target,), (nodes,) = self._slot(value.type)
        if value.type.dtype != "bool" and self.chance(sum_rate or (0.35 if is_loop else 0.08)):
            value = Node("binary", value.type, [Node("load", value.type, list(nodes), {"tensor": target}), value], {"name": "add"})
        return [Store(target, nodes, value)]

    def arguments(self) -> int:
        """Returns the number of arguments. A list counts as many arguments as it has tensors."""
        return len(self.scalars) + sum(MOST_LISTED if tensor.listed else 1 for tensor in self.tensors)

    def _together(self, is_loop: bool) -> list[Statement]:
        """Stores several integers and booleans as one sum, which changes with each of them."""
        made: list[Statement] = []
        while self.integers:
            some, self.integers = self.integers[:_TOGETHER], self.integers[_TOGETHER:]
            total = None
            for value in some:
                wide = value if value.type == I64 else Node("convert", I64, [value])
                if total is None:
                    total = wide
                else:
                    scaled = Node("binary", I64, [wide, lit(self.pick([3, 5, 7, 37, 1023]), I64)], {"name": "mul"})
                    total = Node("binary", I64, [total, scaled], {"name": self.pick(["add", "sub", "xor"])})
            made += self._keep(total, is_loop, 0.35 if is_loop else 0.01)
        return made

    def _slot(self, type: Type) -> tuple[list[str], list[list[Node]]]:
        """Takes the next free slot for a value of the type. Returns its output tensors, and the indices in each."""
        if type not in self.kept:
            self.kept[type] = self._outputs(type)
        tensors, indices, places, count = self.kept[type]
        slot = lit(count[0], INDEX)
        count[0] += 1
        return list(tensors), [[*nodes[:place], slot, *nodes[place:]] for nodes, place in zip(indices, places)]

    def _outputs(self, type: Type) -> tuple[list[str], list[Any], list[int], list[int]]:
        made: list[Tensor] = []
        indices, places = [], []
        for part in (["out", "lse"] if type.kind == "state" else ["out"]):
            row_dim = type.dim if part == "out" and type.kind != "scalar" else ""
            dtype = "f32" if part == "lse" or type.kind == "state" else type.dtype
            own = self.own_dims()
            place = self.rng.randint(0, len(own))
            dims = [dim for _, dim in own]
            dims.insert(place, self.fresh("s") + "=1")
            made.append(self.add_tensor(dtype, [*dims, row_dim] if row_dim else dims, "InOut"))
            indices.append([node for node, _ in own])
            places.append(place)
        return [tensor.name for tensor in made], indices, places, [0]
