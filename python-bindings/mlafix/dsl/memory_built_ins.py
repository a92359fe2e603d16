"""Translates built-ins that load from, store to and query tensors."""

from __future__ import annotations

import ast
from typing import Any

from . import hints
from .arguments import BuiltIns
from .built_ins import BuiltIn
from .values import Dyn, Element, Tensor, describe

# The least value of `first` in ``load(…, into=…)``. It is a difference of two element indices, which are at most
# 2^31 - 1.
_LEAST_FIRST = -(2**31 - 1)


class MemoryBuiltIns(BuiltIns):
    """Translates calls of load, store, present, ranks, shape, turn and exchange."""

    def call_load(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        found = self.by_name(node, built_in, "element", "where otherwise into first each")
        if "into" in found and not isinstance(found["element"], ast.Subscript):
            of = self.expressions.eval(found["element"])
            if isinstance(of, Dyn):
                self.ctx.fail(found["element"], f"expected a row of a tensor, as x[t], to load into another dim, got {describe(of)}{hints.of_moved_row(of)}")
        element = self.expressions.element(found["element"])
        where = self.where(found)
        if "into" in found:
            return self.load_into(element, node, found, where)
        for name in ("first", "each"):
            if name in found:
                self.ctx.fail(found[name], f"expected a dim (into=…) beside {name}, got none")
        otherwise = self.expressions.value(found["otherwise"], element.tensor.element) if "otherwise" in found else None
        if otherwise is not None and where is None and not self.ctx.guards:
            self.ctx.fail(found["otherwise"], "expected a predicate (where=…) beside otherwise, got none")
        return self.memory.read(element, node, where, otherwise)

    def load_into(self, element: Element, node: ast.Call, found: dict[str, ast.expr], where: Dyn | bool | None) -> Dyn:
        if "otherwise" in found:
            self.ctx.fail(found["otherwise"], "expected no otherwise beside into, since elements outside of the row are 0, got one")
        if element.dim is None or element.is_part:
            self.ctx.fail(node, f"expected a whole row beside into, as x[t], got {ast.unparse(found['element'])}")
        first = self.count(found["first"], _LEAST_FIRST) if "first" in found else 0
        each = self.count(found["each"], 1) if "each" in found else 1
        return self.memory.read_into(element, node, where, self.dim_name(found["into"], 'into="{0}"'), first, each)

    def call_store(self, node: ast.Call, built_in: BuiltIn) -> None:
        found = self.by_name(node, built_in, "element value", "where")
        element = self.expressions.element(found["element"])
        self.memory.write(element, self.expressions.eval(found["value"]), found["value"], node, self.where(found))

    def call_present(self, node: ast.Call, built_in: BuiltIn) -> Any:
        tensor = self.expressions.eval(self.by_name(node, built_in, "tensor")["tensor"])
        if not isinstance(tensor, Tensor):
            self.ctx.fail(node, f"expected a tensor, got {describe(tensor)}")
        return self.memory.present(tensor, node)

    def call_ranks(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        tensor = self.expressions.eval(self.by_name(node, built_in, "peers")["peers"])
        if not isinstance(tensor, Tensor) or not tensor.annotation.peers:
            self.ctx.fail(node, f"expected tensors of all ranks, declared with Peers, got {describe(tensor)}")
        return self.memory.dim(tensor, 0, node)

    def call_turn(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        self.by_name(node, built_in, "")
        return self.ctx.wrap(self.ctx.builder.turn(self.ctx.at(node)))

    def call_exchange(self, node: ast.Call, built_in: BuiltIn) -> None:
        self.by_name(node, built_in, "")
        self.ctx.builder.exchange(self.ctx.at(node))

    def call_shape(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        name = self.by_name(node, built_in, "name")["name"]
        return self.memory.named_dim(self.expressions.dim_or_size(name, 'shape("{0}")'), name)
