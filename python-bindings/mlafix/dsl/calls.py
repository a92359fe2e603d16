"""Calls in a kernel: the language's words, conversions, Python's abs, min, max and sum, inline functions."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import Any

from . import words
from .operators import Operators
from .types import Base, ScalarType
from .values import Dyn, Tensor, as_number, describe
from .words import Word

_CONVERSIONS = ("f32", "i32", "i64", "index", "bool")
_MAX_INLINE = 32


class Calls(Operators):
    """Expressions with calls. `inline` evaluates a call of an inline function; statements know how."""

    depth = 0
    inline: Callable[[Any, list[Any], dict[str, Any], ast.Call], Any]

    def eval_Call(self, node: ast.Call) -> Any:
        function = self.eval(node.func)
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                self.fail(argument, f"expected arguments one by one, got {ast.unparse(argument)}")
        for keyword in node.keywords:
            if keyword.arg is None:
                self.fail(keyword.value, f"expected arguments one by one, got **{ast.unparse(keyword.value)}")
        if isinstance(function, Word):
            method = getattr(self, f"call_{function.name}", None)
            if function.name in words.UNARY:
                return self.call_unary(node, function)
            if method is None:
                self.fail(node, f"expected {function.usage} as what a for loop runs over, got it in an expression")
            return method(node, function)
        if isinstance(function, ScalarType):
            return self.call_conversion(node, function)
        if hasattr(function, "__mlafix_inline__"):
            return self.call_inline(node, function)
        if function in (builtins.min, builtins.max):
            return self.call_extreme(node, function)
        if function is builtins.sum:
            return self.reduce(node, "add", "sum(row)")
        if function is builtins.abs:
            return self.call_abs(node)
        if function is builtins.float and len(node.args) == 1 and as_number_text(node.args[0]):
            return float(node.args[0].value)  # type: ignore[attr-defined]
        self.fail(node.func, self._what_to_call(node, function))

    def _what_to_call(self, node: ast.Call, function: Any) -> str:
        name = ast.unparse(node.func)
        short = name.rpartition(".")[2]
        if function is builtins.range:
            return "expected range(…) as what a for loop runs over, got it in an expression"
        conversions = {builtins.float: "f32", builtins.int: "i32", builtins.bool: "bool_"}
        for python, ours in conversions.items():
            if function is python:
                return f"expected {ours}(…) to convert a value, got {name}(…)"
        if isinstance(getattr(words, short, None), Word):
            return f"expected a word of the language, got '{name}'; mlafix.{short} is one"
        return (
            f"expected a word of the language, abs, min, max, sum, a conversion (f32, i32, i64, index, bool_) or an inline "
            f"function to call, got '{name}'"
        )

    # -- Arguments of words ------------------------------------------------------------------------------------------

    def arguments(self, node: ast.Call, word: Word, required: str, optional: str = "") -> dict[str, ast.expr]:
        """The arguments' nodes by name. Those that are required come first, and by position or name; the others by
        name only, except where position is natural."""
        names, extra = required.split(), optional.split()
        found: dict[str, ast.expr] = {}
        if len(node.args) > len(names) + sum(name.startswith("/") for name in extra):
            self.fail(node, f"expected {word.usage}, got {len(node.args)} arguments")
        positional = [*names, *(name[1:] for name in extra if name.startswith("/"))]
        known = [*names, *(name.lstrip("/") for name in extra)]
        found.update(zip(positional, node.args))
        for keyword in node.keywords:
            if keyword.arg not in known:
                self.fail(keyword.value, f"expected {word.usage}, got an argument '{keyword.arg}'")
            if keyword.arg in found:
                self.fail(keyword.value, f"expected each argument once, got '{keyword.arg}' twice")
            found[str(keyword.arg)] = keyword.value
        for name in names:
            if name not in found:
                self.fail(node, f"expected {word.usage}, got no '{name}'")
        return found

    def where(self, found: dict[str, ast.expr]) -> Dyn | bool | None:
        return self.condition(found["where"], "predicate") if "where" in found else None

    def base(self, found: dict[str, ast.expr]) -> str:
        """The base of an lse; without one, the kernel's variable B."""
        if "base" not in found:
            return self.note_base(Base())
        node = found["base"]
        value = self.eval(node)
        if isinstance(value, Base):
            return self.note_base(value)
        if value in ("e", "2") or (value == 2 and not isinstance(value, bool)):
            return str(value)
        self.fail(node, f'expected "e", 2 or a Base for the base, got {describe(value)}')

    def note_base(self, base: Base) -> str:
        """Remembers the default of a base's name."""
        raise NotImplementedError

    def dim_name(self, node: ast.expr) -> str:
        name = self.eval(node)
        last = {tensor.annotation.dims[-1].name for tensor in self.tensors if tensor.annotation.dims} - {""}
        if not isinstance(name, str) or name not in last:
            options = ", ".join(f'"{option}"' for option in sorted(last))
            self.fail(node, f"expected the name of a dim that rows lie along ({options}), got {describe(name)}")
        return name

    def state(self, node: ast.expr) -> Dyn:
        value = self.eval(node)
        if not isinstance(value, Dyn) or value.type.kind != "state":
            self.fail(node, f"expected a state, got {describe(value)}")
        return value

    def float_value(self, node: ast.expr, what: str, kinds: tuple[str, ...] = ("scalar", "row")) -> Dyn:
        value = self.value(node, "f32") if as_number(self.peek(node)) is not None else self.value(node)
        if value.type.kind not in kinds or value.type.dtype != "f32":
            names = " or ".join({"scalar": "f32", "row": "a row of f32"}[kind] for kind in kinds)
            self.fail(node, f"expected {names} for {what}, got {describe(value)}")
        return value

    def peek(self, node: ast.expr) -> object:
        """A literal's value, or None."""
        return node.value if isinstance(node, ast.Constant) else None

    # -- Memory ------------------------------------------------------------------------------------------------------

    def call_load(self, node: ast.Call, word: Word) -> Dyn:
        found = self.arguments(node, word, "element", "where otherwise")
        element = self.element(found["element"])
        where = self.where(found)
        otherwise = self.value(found["otherwise"], element.tensor.element) if "otherwise" in found else None
        if otherwise is not None and where is None and not self.guards:
            self.fail(found["otherwise"], "expected a predicate (where=…) beside otherwise, got none")
        return self.read(element, node, where, otherwise)

    def call_store(self, node: ast.Call, word: Word) -> None:
        found = self.arguments(node, word, "element value", "where")
        element = self.element(found["element"])
        self.write(element, self.eval(found["value"]), found["value"], node, self.where(found))

    def write(self, element: Any, value: Any, value_node: ast.AST, node: ast.AST, where: Dyn | bool | None = None) -> None:
        tensor = element.tensor
        if tensor.annotation.access == "read":
            self.fail(node, f"expected a tensor declared with Out or InOut to store to, got '{tensor.name}', which is In")
        value = self.lift(value, value_node, tensor.element)
        if value.type.kind in ("scalar", "row") and value.type.dtype not in tensor.stores:
            stored, allowed = tensor.annotation.dtype.name, " or ".join(tensor.stores)
            self.fail(value_node, f"expected {allowed} to store to '{tensor.name}' ({stored}), got {describe(value)}")
        is_row = len(element.indices) < tensor.rank
        last = tensor.annotation.dims[-1] if tensor.rank else None
        dim = "" if last is None else str(last.size or last.name)  # a row along a dim of a fixed size is known by that
        if value.type.kind == "row" and (not is_row or value.type.dim != dim):
            expected = f"a row along {dim}" if is_row else f"{tensor.element}, an element,"
            self.fail(value_node, f"expected {expected} to store to '{tensor.name}', got {describe(value)}")
        predicate = self.predicate(where, node)
        self.builder.store(value.value, tensor.value, element.indices, predicate, self.at(node))

    def call_present(self, node: ast.Call, word: Word) -> Any:
        tensor = self.eval(self.arguments(node, word, "tensor")["tensor"])
        if not isinstance(tensor, Tensor):
            self.fail(node, f"expected a tensor, got {describe(tensor)}")
        if not tensor.annotation.optional:
            return True
        return self.wrap(self.builder.present(tensor.value, self.at(node)))

    def call_shape(self, node: ast.Call, word: Word) -> Dyn:
        return self.named_dim(self.arguments(node, word, "name")["name"])

    def named_dim(self, node: ast.expr) -> Dyn:
        """The size of the dim that is called so, of the first tensor that is always given and has it."""
        name = self.eval(node)
        known: dict[str, None] = {}
        for tensor in self.tensors:
            if tensor.annotation.optional:
                continue
            for position, dim in enumerate(tensor.annotation.dims):
                known[dim.name] = None
                if dim.name and dim.name == name:
                    return self.dim(tensor, position, node)
        names = ", ".join(f'"{option}"' for option in known if option)
        self.fail(node, f"expected the name of a dim of a tensor that is always given ({names}), got {describe(name)}")

    # -- States ------------------------------------------------------------------------------------------------------

    def call_load_state(self, node: ast.Call, word: Word) -> Dyn:
        found = self.arguments(node, word, "out lse", "where base")
        out, lse = self.element(found["out"]), self.element(found["lse"])
        base, where = self.base(found), self.where(found)
        return self.wrap(
            self.builder.load_state(
                out.tensor.value, out.indices, lse.tensor.value, lse.indices, self.predicate(where, node), base,
                self.at(node),
            )
        )  # fmt: skip

    def call_store_state(self, node: ast.Call, word: Word) -> None:
        found = self.arguments(node, word, "state", "/out /lse where scale")
        state = self.state(found["state"])
        places = {}
        for name in ("out", "lse"):
            given = name in found and not (isinstance(found[name], ast.Constant) and self.peek(found[name]) is None)
            places[name] = self.element(found[name]) if given else None
        out, lse = places["out"], places["lse"]
        scale = self.float_value(found["scale"], "the scale", ("scalar",)) if "scale" in found else None
        where = self.where(found)
        self.builder.store_state(
            state.value,
            out.tensor.value if out else None,
            out.indices if out else [],
            lse.tensor.value if lse else None,
            lse.indices if lse else [],
            self.predicate(where, node),
            scale.value if scale else None,
            self.at(node),
        )

    def call_make_state(self, node: ast.Call, word: Word) -> Dyn:
        found = self.arguments(node, word, "row lse", "base")
        row = self.float_value(found["row"], "the payload", ("row",))
        lse = self.float_value(found["lse"], "the lse", ("scalar",))
        return self.wrap(self.builder.make_state(row.value, lse.value, self.base(found), self.at(node)))

    def call_identity(self, node: ast.Call, word: Word) -> Dyn:
        found = self.arguments(node, word, "dim", "base")
        return self.wrap(self.builder.identity(self.dim_name(found["dim"]), self.base(found), self.at(node)))

    def call_merge(self, node: ast.Call, word: Word) -> Dyn:
        if not node.args or node.keywords:
            self.fail(node, f"expected {word.usage}, got {'keywords' if node.keywords else 'no state'}")
        states = [self.state(argument).value for argument in node.args]
        return self.wrap(self.builder.merge(states, self.at(node)))

    def call_mask(self, node: ast.Call, word: Word) -> Dyn:
        found = self.arguments(node, word, "state predicate")
        state = self.state(found["state"])
        predicate = self.lift(self.condition(found["predicate"], "predicate"), found["predicate"])
        return self.wrap(self.builder.mask(state.value, predicate.value, self.at(node)))

    def call_rebase(self, node: ast.Call, word: Word) -> Dyn:
        found = self.arguments(node, word, "state base")
        state = self.state(found["state"])
        return self.wrap(self.builder.rebase(state.value, self.base(found), self.at(node)))

    # -- Arithmetic --------------------------------------------------------------------------------------------------

    def call_unary(self, node: ast.Call, word: Word) -> Dyn:
        operand = self.float_value(self.arguments(node, word, "x")["x"], f"{word.name}(…)")
        if word.name == "tanh":
            return self.tanh(operand, node)
        return self.wrap(self.builder.unary(word.name, operand.value, self.at(node)))

    def tanh(self, x: Dyn, node: ast.AST) -> Dyn:
        """(1 - t) / (1 + t) with t = exp(-2 |x|), which cannot overflow, and the sign of x; near 0, where 1 - t has few
        digits left, Taylor's series up to x^11 (relative error 2e-9 at 0.3)."""
        at, b = self.at(node), self.builder
        one, size = b.constant_float(1.0, at), b.unary("abs", x.value, at)
        power = b.unary("exp", b.binary("mul", size, b.constant_float(-2.0, at), at), at)
        large = b.binary("div", b.binary("sub", one, power, at), b.binary("add", one, power, at), at)
        square = b.binary("mul", size, size, at)
        series = b.constant_float(-1382 / 155925, at)
        for coefficient in (62 / 2835, -17 / 315, 2 / 15, -1 / 3):
            series = b.fma(series, square, b.constant_float(coefficient, at), at)
        small = b.fma(b.binary("mul", size, square, at), series, size, at)
        is_small = b.compare("lt", size, b.constant_float(0.3, at), at)
        return self.wrap(b.binary("copysign", b.select(is_small, small, large, at), x.value, at))

    def call_fma(self, node: ast.Call, word: Word) -> Dyn:
        found = self.arguments(node, word, "a b c")
        a, b, c = (self.float_value(found[name], "fma") for name in "abc")
        return self.wrap(self.builder.fma(a.value, b.value, c.value, self.at(node)))

    def call_copysign(self, node: ast.Call, word: Word) -> Dyn:
        found = self.arguments(node, word, "x sign")
        x, sign = (self.float_value(found[name], "copysign") for name in ("x", "sign"))
        return self.wrap(self.builder.binary("copysign", x.value, sign.value, self.at(node)))

    def call_where(self, node: ast.Call, word: Word) -> Any:
        found = self.arguments(node, word, "condition a b")
        condition = self.eval(found["condition"])
        yes, no = self.eval(found["a"]), self.eval(found["b"])
        if isinstance(condition, bool):
            if not isinstance(yes, Dyn) and not isinstance(no, Dyn):
                return yes if condition else no
            condition = self.lift(condition, node)  # both count for the type, as for any condition
        if not isinstance(condition, Dyn) or condition.type.dtype != "bool":
            self.fail(found["condition"], f"expected a bool for the condition, got {describe(condition)}")
        return self.select(condition, yes, found["a"], no, found["b"], node)

    def call_splat(self, node: ast.Call, word: Word) -> Dyn:
        found = self.arguments(node, word, "scalar dim")
        scalar = self.value(found["scalar"])
        return self.wrap(self.builder.splat(scalar.value, self.dim_name(found["dim"]), self.at(node)))

    def call_extreme(self, node: ast.Call, function: Any) -> Any:
        name = function.__name__
        usage = f"{name}(row) or {name}(a, b, …)"
        if node.keywords or not node.args:
            self.fail(node, f"expected {usage}, got {'keywords' if node.keywords else 'no argument'}")
        if len(node.args) == 1:
            return self.reduce(node, name, usage)
        result, result_node = self.eval(node.args[0]), node.args[0]
        for argument in node.args[1:]:
            other = self.eval(argument)
            if as_number(result) is not None and as_number(other) is not None:
                result = function(result, other)
                continue
            a, b = self.lift_pair(result, result_node, other, argument)
            result = self.wrap(self.builder.binary(name, a.value, b.value, self.at(node)))
        return result

    def reduce(self, node: ast.Call, op: str, usage: str) -> Dyn:
        if len(node.args) != 1 or node.keywords:
            self.fail(node, f"expected {usage}, got {len(node.args) + len(node.keywords)} arguments")
        row = self.eval(node.args[0])
        if not isinstance(row, Dyn) or row.type.kind != "row":
            self.fail(node.args[0], f"expected a row to reduce, got {describe(row)}")
        return self.wrap(self.builder.reduce(op, row.value, self.at(node)))

    def call_abs(self, node: ast.Call) -> Any:
        if len(node.args) != 1 or node.keywords:
            self.fail(node, f"expected abs(x), got {len(node.args) + len(node.keywords)} arguments")
        value = self.eval(node.args[0])
        if as_number(value) is not None:
            return abs(value)
        operand = self.lift(value, node.args[0])
        return self.wrap(self.builder.unary("abs", operand.value, self.at(node)))

    def call_conversion(self, node: ast.Call, to: ScalarType) -> Any:
        if len(node.args) != 1 or node.keywords:
            self.fail(node, f"expected {to}(x), got {len(node.args) + len(node.keywords)} arguments")
        if to.name not in _CONVERSIONS:
            self.fail(node, f"expected a conversion to f32, i32, i64, index or bool_, got {to}: stores narrow by themselves")
        argument = node.args[0]
        wide = self.widening_load(argument, to.name)
        if wide is not None:
            return wide
        value = self.eval(argument)
        number = as_number(value)
        if number is not None:
            if to.name == "f32":
                return self.lift(float(number), argument, "f32")
            if to.name == "bool":
                return bool(number)
            return self.lift(int(number), argument, to.name)
        return self.convert(self.lift(value, argument), to.name, node)

    def widening_load(self, node: ast.expr, dtype: str) -> Dyn | None:
        """i64(x[t]) of narrower integers is one load."""
        if dtype not in ("i32", "i64") or not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            return None
        tensor = self.eval(node.value)
        widths = {"i8": 8, "u8": 8, "i32": 32, "i64": 64}
        if not isinstance(tensor, Tensor) or widths.get(tensor.element, 64) >= widths[dtype]:
            return None
        return self.read(self.element(node), node, dtype=dtype)

    # -- Functions ---------------------------------------------------------------------------------------------------

    def call_inline(self, node: ast.Call, function: Any) -> Any:
        if self.depth >= _MAX_INLINE:
            self.fail(node, f"expected inline functions at most {_MAX_INLINE} deep, got more: does '{function.name}' call itself?")
        arguments = [self.eval(argument) for argument in node.args]
        keywords = {str(keyword.arg): self.eval(keyword.value) for keyword in node.keywords}
        return self.inline(function, arguments, keywords, node)


def as_number_text(node: ast.expr) -> bool:
    """Whether a literal is one of the texts that float() makes a constant of."""
    return isinstance(node, ast.Constant) and node.value in ("inf", "-inf", "nan")
