"""Translates built-ins on partial attention states."""

from __future__ import annotations

import ast

from .arguments import BuiltIns, literal
from .built_ins import BuiltIn
from .values import Dyn, Element, Sink, describe


class StateBuiltIns(BuiltIns):
    """Translates calls of load_state, store_state, make_state, sink, identity, merge, mask, rebase, payload and
    lse_of."""

    def call_load_state(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        found = self.by_name(node, built_in, "out lse", "where base sink")
        out, lse = self.place(found["out"], "the payload"), self.place(found["lse"], "the lse")
        base, where = self.base(found), self.where(found)
        return self.ctx.wrap(
            self.ctx.builder.load_state(
                out.tensor.value, out.indices, lse.tensor.value, lse.indices, self.ctx.predicate(where, node), base,
                self.has_sink(found), self.ctx.at(node),
            )
        )  # fmt: skip

    def place(self, node: ast.expr, what: str) -> Element:
        """Returns the row of a state's payload or the element of its lse in memory; `what` is "the payload" or "the
        lse". The payload must be a whole row, the lse an element along a dim that is not a product."""
        element = self.expressions.element(node)
        is_row = what == "the payload"
        if element.is_part or element.end:
            expected = "a whole row" if is_row else "an element along a dim that is no product"
            self.ctx.fail(node, f"expected {expected} for {what} of a state, got a part of a row of '{element.tensor.name}'")
        if is_row != (element.dim is not None):
            expected, got = ("a row", "an element") if is_row else ("an element", "a row")
            order = "before its lse" if is_row else "after its payload"
            self.ctx.fail(node, f"expected {expected} for {what} of a state, which comes {order}, got {got} of '{element.tensor.name}'")
        dtype = element.tensor.annotation.dtype
        if not is_row and getattr(dtype, "example", dtype.name) != "f32":
            self.ctx.fail(node, f"expected an lse of f32, got '{element.tensor.name}' of {dtype}; declare it with f32")
        return element

    def call_store_state(self, node: ast.Call, built_in: BuiltIn) -> None:
        found = self.by_name(node, built_in, "state", "/out /lse where scale")
        state = self.state(found["state"])
        places = {}
        for name in ("out", "lse"):
            given = name in found and not (isinstance(found[name], ast.Constant) and literal(found[name]) is None)
            places[name] = self.place(found[name], f"the {'payload' if name == 'out' else name}") if given else None
        out, lse = places["out"], places["lse"]
        scale = self.float_value(found["scale"], "the scale", ("scalar",)) if "scale" in found else None
        where = self.where(found)
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
        found = self.by_name(node, built_in, "row lse", "base sink")
        row = self.float_value(found["row"], "the payload", ("row",))
        lse = self.float_value(found["lse"], "the lse", ("scalar",))
        base, has_sink = self.base(found), self.has_sink(found)
        return self.ctx.wrap(self.ctx.builder.make_state(row.value, lse.value, base, has_sink, self.ctx.at(node)))

    def has_sink(self, found: dict[str, ast.expr]) -> bool:
        """Evaluates the argument `sink` of a call that loads or makes a state. Returns False if the call lacks it."""
        value = self.expressions.eval(found["sink"]) if "sink" in found else False
        if not isinstance(value, bool):
            self.ctx.fail(found["sink"], f"expected True or False for sink, got {describe(value)}")
        return value

    def call_sink(self, node: ast.Call, built_in: BuiltIn) -> Dyn | Sink:
        found = self.by_name(node, built_in, "logit", "/dim base")
        logit = self.float_value(found["logit"], "the logit", ("scalar",))
        if "dim" in found:
            return self.sink(logit, self.dim_name(found["dim"], 'sink(…, "{0}")'), self.base(found), node)
        return Sink(logit, self.base(found) if "base" in found else "")

    def sink(self, logit: Dyn, dim: str, base: str, node: ast.AST) -> Dyn:
        at = self.ctx.at(node)
        zeros = self.ctx.builder.splat(self.ctx.lift(0.0, node).value, dim, at)
        return self.ctx.wrap(self.ctx.builder.make_state(zeros, logit.value, base, True, at))

    def call_identity(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        found = self.by_name(node, built_in, "dim", "base")
        return self.ctx.wrap(self.ctx.builder.identity(self.dim_name(found["dim"], 'identity("{0}")'), self.base(found), self.ctx.at(node)))

    def call_merge(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        if not node.args or node.keywords:
            self.ctx.fail(node, f"expected {built_in.usage}, got {'keywords' if node.keywords else 'no state'}")
        values = [self.expressions.eval(argument) for argument in node.args]
        typed = next((value for value in values if isinstance(value, Dyn) and value.type.kind == "state"), None)
        states = [
            self.beside(value, typed, argument) if isinstance(value, Sink) and typed is not None else self.as_state(value, argument)
            for value, argument in zip(values, node.args)
        ]
        return self.ctx.wrap(self.ctx.builder.merge([state.value for state in states], self.ctx.at(node)))

    def beside(self, sink: Sink, state: Dyn, node: ast.AST) -> Dyn:
        """Converts a sink without a dim to a state with the dim and base of `state`."""
        made = self.sink(sink.logit, state.type.dim, sink.base or state.type.base, node)
        if made.type.base == state.type.base:
            return made
        return self.ctx.wrap(self.ctx.builder.rebase(made.value, state.type.base, self.ctx.at(node)))

    def call_mask(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        found = self.by_name(node, built_in, "state predicate")
        state = self.state(found["state"])
        predicate = self.ctx.lift(self.expressions.condition(found["predicate"], "predicate"), found["predicate"])
        return self.ctx.wrap(self.ctx.builder.mask(state.value, predicate.value, self.ctx.at(node)))

    def call_rebase(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        found = self.by_name(node, built_in, "state base")
        state = self.state(found["state"])
        return self.ctx.wrap(self.ctx.builder.rebase(state.value, self.base(found), self.ctx.at(node)))

    def call_payload(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        state = self.state(self.by_name(node, built_in, "state")["state"])
        return self.ctx.wrap(self.ctx.builder.payload(state.value, self.ctx.at(node)))

    def call_lse_of(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        state = self.state(self.by_name(node, built_in, "state")["state"])
        return self.ctx.wrap(self.ctx.builder.lse_of(state.value, self.ctx.at(node)))
