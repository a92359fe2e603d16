"""Translates arithmetic built-ins, conversions, and Python's functions abs, min, max, sum and round."""

from __future__ import annotations

import ast
from typing import Any

from . import hints
from .arguments import BuiltIns
from .built_ins import BuiltIn
from .operators import extreme, integer, rounded
from .rows import MOST_IN_ROW
from .types import FLOATS, INTEGER_BITS, ScalarType
from .values import Dyn, Tensor, as_number, describe

# The largest k of top_k. Each of the k elements takes a reduction, so the time grows with k.
_MOST_FOUND = 16
_CONVERSIONS = ("f32", "i32", "i64", "index", "bool")


class ArithmeticBuiltIns(BuiltIns):
    """Translates calls of functions such as exp, fma, copysign, where and splat, of Python's functions, and of
    conversions."""

    def call_unary(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        operand = self.float_value(self.by_name(node, built_in, "x")["x"], f"{built_in.name}(…)")
        return self.ctx.wrap(self.ctx.builder.unary(built_in.name, operand.value, self.ctx.at(node)))

    def call_fma(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        found = self.by_name(node, built_in, "a b c")
        a, b, c = (self.float_value(found[name], "fma") for name in "abc")
        return self.ctx.wrap(self.ctx.builder.fma(a.value, b.value, c.value, self.ctx.at(node)))

    def call_copysign(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        found = self.by_name(node, built_in, "x sign")
        x, sign = (self.float_value(found[name], "copysign") for name in ("x", "sign"))
        return self.ctx.wrap(self.ctx.builder.binary("copysign", x.value, sign.value, self.ctx.at(node)))

    def call_where(self, node: ast.Call, built_in: BuiltIn) -> Any:
        found = self.by_name(node, built_in, "condition a b")
        condition = self.expressions.eval(found["condition"])
        yes, no = self.expressions.eval(found["a"]), self.expressions.eval(found["b"])
        if isinstance(condition, bool):
            if not isinstance(yes, Dyn) and not isinstance(no, Dyn):
                return yes if condition else no
            condition = self.ctx.lift(condition, node)  # select() needs a value, and converts a and b to a common type
        if not isinstance(condition, Dyn) or condition.type.dtype != "bool":
            self.ctx.fail(found["condition"], f"expected a bool for the condition, got {describe(condition)}{hints.of_compared(condition)}")
        return self.operators.select(condition, yes, found["a"], no, found["b"], node)

    def call_splat(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        found = self.by_name(node, built_in, "scalar dim")
        scalar = self.expressions.value(found["scalar"])
        return self.ctx.wrap(self.ctx.builder.splat(scalar.value, self.dim_name(found["dim"], 'splat(…, "{0}")'), self.ctx.at(node)))

    def call_row_of(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        place = self.by_name(node, built_in, "numbers")["numbers"]
        values = self.expressions.eval(place)
        if not isinstance(values, (tuple, list)):
            self.ctx.fail(place, f"expected a list of numbers, as in {built_in.usage}, got {describe(values)}")
        if not 1 <= len(values) <= MOST_IN_ROW:
            self.ctx.fail(place, f"expected 1 to {MOST_IN_ROW} numbers in a row, got {len(values)}")
        is_spelled = isinstance(place, (ast.List, ast.Tuple))
        return self.rows.of_numbers(list(values), place.elts if is_spelled else [place] * len(values), node)

    def call_iota(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        dim = self.dim_name(self.by_name(node, built_in, "dim")["dim"], 'iota("{0}")')
        return self.ctx.wrap(self.ctx.builder.iota(dim, self.ctx.at(node)))

    def call_swap(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        found = self.by_name(node, built_in, "row block")
        row = self.expressions.value(found["row"])
        block = self.count(found["block"], 1)
        if row.type.kind != "row" or row.type.dtype not in ("f32", "i32"):
            self.ctx.fail(found["row"], f"expected a row of f32 or i32, got {describe(row)}")
        return self.ctx.wrap(self.ctx.builder.swap(row.value, block, self.ctx.at(node)))

    def call_argmax(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        return self.reduce(node, built_in.name, built_in.usage, ("f32", "i32"))

    call_argmin = call_argmax

    def call_top_k(self, node: ast.Call, built_in: BuiltIn) -> tuple[list[Dyn], list[Dyn]]:
        found = self.by_name(node, built_in, "row k", "along")
        row = self.reduced_row(found["row"], "top_k", ("f32", "i32"))
        count = self.count(found["k"], 1)
        if count > _MOST_FOUND:
            self.ctx.fail(found["k"], f"expected 1 to {_MOST_FOUND} elements, got {count}")
        along = self.along(found["along"], "reduce") if "along" in found else ""
        best = [self.ctx.wrap(value) for value in self.ctx.builder.top_k(row.value, count, along, self.ctx.at(node))]
        return best[:count], best[count:]

    def call_cumsum(self, node: ast.Call, built_in: BuiltIn) -> Dyn:
        row, along = self.row_along(node, built_in.usage, "scan")
        op = {"cumsum": "add", "cummax": "max", "cummin": "min"}[built_in.name]
        return self.ctx.wrap(self.ctx.builder.scan(op, row.value, along, self.ctx.at(node)))

    call_cummax = call_cumsum
    call_cummin = call_cumsum

    # -- Python's own functions --------------------------------------------------------------------------------------

    def extreme(self, node: ast.Call, function: Any) -> Any:
        name = function.__name__
        usage = f'{name}(row), {name}(row, along="K") or {name}(a, b, …)'
        if len(node.args) == 1:
            return self.reduce(node, name, usage)
        if node.keywords or not node.args:
            self.ctx.fail(node, f"expected {usage}, got {'keywords' if node.keywords else 'no argument'}")
        result, result_node = self.expressions.eval(node.args[0]), node.args[0]
        for argument in node.args[1:]:
            other = self.expressions.eval(argument)
            one, two = as_number(result), as_number(other)
            if one is not None and two is not None:
                result = extreme(name, one, two)
                continue
            a, b = self.ctx.lift_pair(result, result_node, other, argument)
            self.ctx.check_computes(name, node, a, b)
            result = self.ctx.wrap(self.ctx.builder.binary(name, a.value, b.value, self.ctx.at(node)))
        return result

    def reduce(self, node: ast.Call, op: str, usage: str, dtypes: tuple[str, ...] = ("f32", "i32", "i64")) -> Dyn:
        row, along = self.row_along(node, usage, "reduce", dtypes)
        return self.ctx.wrap(self.ctx.builder.reduce(op, row.value, along, self.ctx.at(node)))

    def row_along(self, node: ast.Call, usage: str, what: str, dtypes: tuple[str, ...] = ("f32", "i32")) -> tuple[Dyn, str]:
        """Returns the row that a call reduces or scans, and the call's argument `along`, or "" if the call has none.
        `along` is the name or the size of the second factor of the row's dim: each group lies along this factor."""
        other = [keyword for keyword in node.keywords if keyword.arg != "along"]
        if len(node.args) != 1 or other:
            got = f"an argument '{other[0].arg}'" if other else f"{len(node.args)} arguments"
            hint = hints.of_argument(ast.unparse(node.func), str(other[0].arg)) if other else ""
            self.ctx.fail(node, f"expected {usage}, got {got}{hint}")
        row = self.reduced_row(node.args[0], ast.unparse(node.func), dtypes, what)
        return row, self.along(node.keywords[0].value, what) if node.keywords else ""

    def reduced_row(self, node: ast.expr, function: str, dtypes: tuple[str, ...], what: str = "reduce") -> Dyn:
        row = self.expressions.eval(node)
        if not isinstance(row, Dyn) or row.type.kind != "row":
            hint = hints.of_state() if isinstance(row, Dyn) and row.type.kind == "state" else hints.of_operand(row)
            self.ctx.fail(node, f"expected a row to {what}, got {describe(row)}{hint}")
        if row.type.dtype not in dtypes:
            hint = hints.of_reduced(row, function) if "bool" not in dtypes else f"; compare it, as in {function}(row > 0)"
            known = ", ".join(dtypes[:-1]) + f" or {dtypes[-1]}" if len(dtypes) > 1 else dtypes[0]
            self.ctx.fail(node, f"expected a row of {known} to {what}, got {describe(row)}{hint}")
        return row

    def along(self, node: ast.expr, what: str) -> str:
        value = self.expressions.eval(node)
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if not is_number and not (isinstance(value, str) and value):
            self.ctx.fail(
                node, f'expected the second factor of the row\'s dim to {what} along, a name or a number, as "K" for "(G K)", got {describe(value)}'
            )
        return str(value)

    def rounded(self, node: ast.Call) -> Any:
        if len(node.args) != 1 or node.keywords:
            self.ctx.fail(node, f"expected round(x), got {len(node.args) + len(node.keywords)} arguments")
        value = self.expressions.eval(node.args[0])
        number = as_number(value)
        if number is not None:
            try:
                return rounded(number)
            except OverflowError:
                self.ctx.fail(node.args[0], f"expected a number that a float holds, got {describe(number)}")
        if not isinstance(value, Dyn) or value.type.kind not in ("scalar", "row") or value.type.dtype != "f32":
            self.ctx.fail(node.args[0], f"expected f32 or a row of f32 for round(…), got {describe(value)}")
        return self.ctx.wrap(self.ctx.builder.unary("round", value.value, self.ctx.at(node)))

    def absolute(self, node: ast.Call) -> Any:
        if len(node.args) != 1 or node.keywords:
            self.ctx.fail(node, f"expected abs(x), got {len(node.args) + len(node.keywords)} arguments")
        value = self.expressions.eval(node.args[0])
        number = as_number(value)
        if number is not None:
            return abs(number)
        operand = self.ctx.lift(value, node.args[0])
        self.ctx.check_computes("abs", node, operand)
        return self.ctx.wrap(self.ctx.builder.unary("abs", operand.value, self.ctx.at(node)))

    def convert(self, node: ast.Call, to: ScalarType) -> Any:
        if len(node.args) != 1 or node.keywords:
            self.ctx.fail(node, f"expected {to}(x), got {len(node.args) + len(node.keywords)} arguments")
        argument = node.args[0]
        if to.name in FLOATS and to.name != "f32":
            value = self.expressions.eval(argument)
            number = as_number(value)
            operand = self.ctx.lift(value, argument) if number is None else self.ctx.float_constant(number, argument)
            return self.ctx.convert(operand, to.name, node)
        if to.name not in _CONVERSIONS:
            self.ctx.fail(node, f"expected f32, i32, i64, index, bool_ or a narrow float dtype to convert to, got {to}; a store to a tensor of {to} narrows by itself")
        wide = self.widening_load(argument, to.name)
        if wide is not None:
            return wide
        value = self.expressions.eval(argument)
        number = as_number(value)
        if number is not None:
            if to.name == "f32":
                return self.ctx.float_constant(number, argument)
            if to.name == "bool":
                return bool(number)
            return self.ctx.lift(integer(number, INTEGER_BITS.get(to.name, 64)), argument, to.name)
        return self.ctx.convert(self.ctx.lift(value, argument), to.name, node)

    def widening_load(self, node: ast.expr, dtype: str) -> Dyn | None:
        """Evaluates i32(x[t]) or i64(x[t]) for a tensor of narrower integers as a single widening load. Returns None
        for other expressions."""
        if dtype not in ("i32", "i64") or not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            return None
        tensor = self.expressions.eval(node.value)
        if not isinstance(tensor, Tensor) or INTEGER_BITS.get(tensor.element, 64) >= INTEGER_BITS[dtype]:
            return None
        return self.memory.read(self.expressions.element(node), node, dtype=dtype)
