"""Built-ins on partial attention states."""

from __future__ import annotations

import ast

from .arguments import Arguments, literal
from .built_ins import BuiltIn
from .expressions import Expressions
from .values import Dyn


class StateBuiltIns:
    """Calls of load_state, store_state, make_state, identity, merge, mask, rebase, payload and lse_of."""

    def __init__(self, expressions: Expressions, arguments: Arguments) -> None:
        self.ctx = expressions.ctx
        self.expressions = expressions
        self.arguments = arguments

    def call_load_state(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        found = self.arguments.by_name(node, built_in, "out lse", "where base")
        out, lse = self.expressions.element(found["out"]), self.expressions.element(found["lse"])
        base, where = self.arguments.base(found), self.arguments.where(found)
        return self.ctx.wrap(
            self.ctx.builder.load_state(
                out.tensor.value, out.indices, lse.tensor.value, lse.indices, self.ctx.predicate(where, node), base,
                self.ctx.at(node),
            )
        )  # fmt: skip

    def call_store_state(self, node: ast.Call, built_in: BuiltIn) -> None:
        found = self.arguments.by_name(node, built_in, "state", "/out /lse where scale")
        state = self.arguments.state(found["state"])
        places = {}
        for name in ("out", "lse"):
            given = name in found and not (isinstance(found[name], ast.Constant) and literal(found[name]) is None)
            places[name] = self.expressions.element(found[name]) if given else None
        out, lse = places["out"], places["lse"]
        scale = self.arguments.float_value(found["scale"], "the scale", ("scalar",)) if "scale" in found else None
        where = self.arguments.where(found)
        self.ctx.builder.store_state(
            state.value,
            out.tensor.value if out else None,
            out.indices if out else [],
            lse.tensor.value if lse else None,
            lse.indices if lse else [],
            self.ctx.predicate(where, node),
            scale.value if scale else None,
            self.ctx.at(node),
        )

    def call_make_state(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        found = self.arguments.by_name(node, built_in, "row lse", "base")
        row = self.arguments.float_value(found["row"], "the payload", ("row",))
        lse = self.arguments.float_value(found["lse"], "the lse", ("scalar",))
        return self.ctx.wrap(self.ctx.builder.make_state(row.value, lse.value, self.arguments.base(found), self.ctx.at(node)))

    def call_identity(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        found = self.arguments.by_name(node, built_in, "dim", "base")
        return self.ctx.wrap(self.ctx.builder.identity(self.arguments.dim_name(found["dim"]), self.arguments.base(found), self.ctx.at(node)))

    def call_merge(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        if not node.args or node.keywords:
            self.ctx.fail(node, f"expected {built_in.usage}, got {'keywords' if node.keywords else 'no state'}")
        states = [self.arguments.state(argument).value for argument in node.args]
        return self.ctx.wrap(self.ctx.builder.merge(states, self.ctx.at(node)))

    def call_mask(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        found = self.arguments.by_name(node, built_in, "state predicate")
        state = self.arguments.state(found["state"])
        predicate = self.ctx.lift(self.expressions.condition(found["predicate"], "predicate"), found["predicate"])
        return self.ctx.wrap(self.ctx.builder.mask(state.value, predicate.value, self.ctx.at(node)))

    def call_rebase(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        found = self.arguments.by_name(node, built_in, "state base")
        state = self.arguments.state(found["state"])
        return self.ctx.wrap(self.ctx.builder.rebase(state.value, self.arguments.base(found), self.ctx.at(node)))

    def call_payload(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        state = self.arguments.state(self.arguments.by_name(node, built_in, "state")["state"])
        return self.ctx.wrap(self.ctx.builder.payload(state.value, self.ctx.at(node)))

    def call_lse_of(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        state = self.arguments.state(self.arguments.by_name(node, built_in, "state")["state"])
        return self.ctx.wrap(self.ctx.builder.lse_of(state.value, self.ctx.at(node)))
