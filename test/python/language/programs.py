"""Random kernels whose text also runs as plain Python. The kernel and Python must give the same results.

All numbers are small integers, so they are exact in f32. A bound on the magnitude of each value keeps them small.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from hypothesis import strategies as st

ROWS, SIZE = 5, 6
_LIMIT = 2**20
_FLOATS = ("+", "-", "*")
_INTS = ("+", "-", "*", "//", "%", "&", "|", "^")


@dataclasses.dataclass
class Text:
    """The text of an expression, and a bound on the magnitude of its value."""

    text: str
    bound: int


class Programs:
    """Generates random statements and expressions. The kind of a variable is "row", "float" (f32), "int" (i32) or
    "bool"."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.variables: dict[str, tuple[str, int]] = {}
        self.lines: list[str] = []

    def pick(self, options: Any) -> Any:
        return self.draw(st.sampled_from(list(options)))

    # -- Expressions -------------------------------------------------------------------------------------------------

    def expression(self, kind: str, depth: int) -> Text:
        if depth == 0 or self.draw(st.integers(0, 4)) == 0:
            return self.leaf(kind)
        made: Text = getattr(self, f"make_{kind}")(depth - 1)
        return made if made.bound < _LIMIT else self.leaf(kind)

    def leaf(self, kind: str) -> Text:
        options = [Text(name, bound) for name, (of, bound) in self.variables.items() if of == kind]
        number = self.draw(st.integers(-8, 8))
        options += {
            "row": [Text("a[t]", 8), Text("b[t, :]", 8)],
            "float": [Text("f", 8), Text("a[t, 0]", 8), Text(f"b[{abs(number) % ROWS}, t]", 8), Text(f"{number}.0", 8)],
            "int": [Text("k", 8), Text("c[t]", 8), Text("i32(t)", ROWS), Text(f"{number}", 8)],
            "bool": [Text("c[t] < k", 1), Text("f >= a[t, 1]", 1), Text("-2 < c[t] <= 3", 1), Text("t != 2", 1)],
        }[kind]
        chosen: Text = self.pick(options)
        return Text(f"({chosen.text})", chosen.bound)

    def make_bool(self, depth: int) -> Text:
        how = self.pick(["and", "or", "not", "int", "chain", "xor"])
        if how in ("and", "or"):
            return Text(f"({self.expression('bool', depth).text} {how} {self.expression('bool', depth).text})", 1)
        if how == "not":
            return Text(f"(not {self.expression('bool', depth).text})", 1)
        if how == "xor":
            return Text(f"({self.expression('bool', depth).text} ^ {self.expression('bool', depth).text})", 1)
        texts = [self.expression("int", depth).text for _ in range(3 if how == "chain" else 2)]
        signs = [self.pick(["<", "<=", ">", ">=", "==", "!="]) for _ in texts]
        return Text("(" + " ".join(f"{text} {sign}" for text, sign in zip(texts[:-1], signs)) + f" {texts[-1]})", 1)

    def make_int(self, depth: int) -> Text:
        how = self.pick([*_INTS, "neg", "abs", "min", "max", "if", "bool"])
        if how == "if":
            return self.ternary("int", depth)
        if how == "bool":
            return Text(f"i32({self.expression('bool', depth).text})", 1)
        x = self.expression("int", depth)
        if how in ("neg", "abs"):
            return Text(f"(-{x.text})" if how == "neg" else f"abs({x.text})", x.bound)
        if how in ("//", "%"):
            divisor = self.draw(st.integers(-5, 5).filter(bool))
            return Text(f"({x.text} {how} {divisor})", x.bound + 5)
        y = self.expression("int", depth)
        if how in ("min", "max"):
            return Text(f"{how}({x.text}, {y.text})", max(x.bound, y.bound))
        bound = x.bound * y.bound if how == "*" else 2 * (x.bound + y.bound) + 1
        return Text(f"({x.text} {how} {y.text})", bound)

    def make_float(self, depth: int) -> Text:
        how = self.pick([*_FLOATS, "neg", "abs", "min", "sum", "max", "if", "int", "half", "fma", "where"])
        if how == "if":
            return self.ternary("float", depth)
        if how == "int":
            x = self.expression("int", depth)
            return Text(f"f32({x.text})", x.bound)
        if how in ("sum", "max"):
            x = self.expression("row", depth)
            return Text(f"{how}({x.text})", x.bound * (SIZE if how == "sum" else 1))
        return self.make_arithmetic("float", how, depth)

    def make_row(self, depth: int) -> Text:
        how = self.pick([*_FLOATS, "neg", "abs", "min", "scalar", "if", "half", "fma", "where", "rowwhere"])
        if how == "if":
            return self.ternary("row", depth)
        if how == "scalar":
            x, y = self.expression("row", depth), self.expression("float", depth)
            sign = self.pick("+-")
            texts = [x.text, y.text] if self.draw(st.booleans()) else [y.text, x.text]
            return Text(f"({texts[0]} {sign} {texts[1]})", x.bound + y.bound)
        if how == "rowwhere":
            x, y, z = (self.expression("row", depth) for _ in range(3))
            return Text(f"where({x.text} < {y.text}, {z.text}, {y.text})", max(y.bound, z.bound))
        return self.make_arithmetic("row", how, depth)

    def make_arithmetic(self, kind: str, how: str, depth: int) -> Text:
        x = self.expression(kind, depth)
        if how in ("neg", "abs"):
            return Text(f"(-{x.text})" if how == "neg" else f"abs({x.text})", x.bound)
        if how == "half":
            return Text(f"{self.pick(['floor', 'ceil'])}({x.text} / 2)", x.bound)
        y = self.expression(kind, depth)
        if how == "fma":
            z = self.expression(kind, depth)
            return Text(f"fma({x.text}, {y.text}, {z.text})", x.bound * y.bound + z.bound)
        if how == "min":
            return Text(f"min({x.text}, {y.text})", max(x.bound, y.bound))
        if how == "where":
            return Text(f"where({self.expression('bool', depth).text}, {x.text}, {y.text})", max(x.bound, y.bound))
        return Text(f"({x.text} {how} {y.text})", x.bound * y.bound if how == "*" else x.bound + y.bound)

    def ternary(self, kind: str, depth: int) -> Text:
        x, y = self.expression(kind, depth), self.expression(kind, depth)
        return Text(f"({x.text} if {self.expression('bool', depth).text} else {y.text})", max(x.bound, y.bound))

    # -- Statements --------------------------------------------------------------------------------------------------

    def statements(self, indent: int, depth: int, count: int) -> None:
        for _ in range(count):
            how = self.pick(["new", "new", "change", "if", "loop"]) if depth else self.pick(["new", "change"])
            if not any(kind in ("row", "float", "int") for kind, _ in self.variables.values()):
                how = "new"
            getattr(self, f"state_{how}")(" " * indent, indent, depth)

    def state_new(self, space: str, indent: int, depth: int) -> None:
        kind = self.pick(["row", "float", "int", "bool"])
        value = self.expression(kind, 2)
        name = f"v{len(self.lines)}"
        conversion = {"int": "i32", "float": "f32", "bool": "bool_"}.get(kind, "")
        self.lines.append(f"{space}{name} = {conversion}({value.text})")
        self.variables[name] = (kind, max(value.bound, 8))

    def state_change(self, space: str, indent: int, depth: int) -> None:
        """Assigns a variable a new value that stays within the variable's bound, however often the statement runs."""
        names = [name for name, (kind, _) in self.variables.items() if kind in ("row", "float", "int")]
        name = self.pick(names)
        kind, _ = self.variables[name]
        value = f"max(min({self.expression(kind, 1).text}, 8), -8)"
        self.lines.append(f"{space}{name} = {value} if {self.expression('bool', 1).text} else -{name}")

    def block(self, indent: int, depth: int) -> None:
        """Generates the statements of a block. Names that it introduces are unknown after the block."""
        outer = list(self.variables)
        self.statements(indent + 4, depth - 1, self.draw(st.integers(1, 2)))
        self.variables = {name: self.variables[name] for name in outer}

    def state_if(self, space: str, indent: int, depth: int) -> None:
        self.lines.append(f"{space}if {self.expression('bool', 1).text}:")
        self.block(indent, depth)
        if self.draw(st.booleans()):
            self.lines.append(f"{space}else:")
            self.block(indent, depth)

    def state_loop(self, space: str, indent: int, depth: int) -> None:
        end = self.pick(["3", "k", "abs(c[t])", "i32(t)"])
        index = f"i{len(self.lines)}"
        self.lines.append(f"{space}for {index} in range({end}):")
        self.variables[index] = ("int" if end != "3" else "index", 8)
        self.block(indent, depth)
        del self.variables[index]


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Generates the body of a grid over t: random statements, and stores of a row, a float, an int and a bool."""
    p = Programs(draw)
    p.statements(8, 2, draw(st.integers(0, 4)))
    for target, kind in (("y[t]", "row"), ("e[t]", "float"), ("g[t]", "int"), ("h[t]", "bool")):
        p.lines.append(f"        {target} = {p.expression(kind, 3).text}")
    return "\n".join(p.lines) + "\n"


# -- The same text in Python ------------------------------------------------------------------------------------------


def _extreme(one: Any, two: Any) -> Any:
    return lambda *args: one(args[0]) if len(args) == 1 and np.ndim(args[0]) else _fold(two, args)


def _fold(two: Any, args: tuple[Any, ...]) -> Any:
    result = args[0]
    for other in args[1:]:
        result = two(result, other)
    return result


WORDS: dict[str, Any] = {
    "grid": lambda *_: range(ROWS),
    "min": _extreme(np.min, np.minimum),
    "max": _extreme(np.max, np.maximum),
    "sum": np.sum,
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "where": np.where,
    "fma": lambda a, b, c: a * b + c,
    "i32": int,
    "f32": float,
    "bool_": bool,
    "range": range,
}
