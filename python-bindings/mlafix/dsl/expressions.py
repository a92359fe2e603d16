"""Expressions of a kernel: a syntax tree's node to a value of the builder, or to a compile-time constant."""

from __future__ import annotations

import ast
import contextlib
import types
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from .source import Source
from .types import Base, DType, ScalarType, TensorType
from .values import Dyn, Element, Gone, Tensor, as_number, describe
from .words import Word

_ALLOWED = (
    "a number, a name, an element of a tensor, arithmetic, a comparison, and/or/not, 'a if c else b' or a call of the "
    "language"
)
_KINDS = {
    ast.JoinedStr: "an f-string",
    ast.List: "a list",
    ast.Dict: "a dict",
    ast.Set: "a set",
    ast.ListComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.Lambda: "a lambda",
    ast.NamedExpr: "an assignment inside an expression",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.Starred: "a starred expression",
    ast.Slice: "a slice",
}


class Expressions:
    """Evaluates expressions in an environment.

    Args:
        builder: makes the operations.
        source: the function whose text it is.
        env: what names stand for.
        tensors: the kernel's tensor arguments, in order.
    """

    def __init__(self, builder: Any, source: Source, env: dict[str, Any], tensors: Sequence[Tensor]) -> None:
        self.builder = builder
        self.source = source
        self.env = env
        self.tensors = tensors
        # Conditions (value, whether it must not hold) under which the expression at hand is evaluated at all.
        self.guards: list[tuple[Dyn, bool]] = []

    def at(self, node: ast.AST) -> Any:
        return self.source.location(node)

    def fail(self, node: ast.AST, message: str) -> NoReturn:
        self.source.fail(node, message)

    def wrap(self, value: Any) -> Dyn:
        return Dyn(value, self.builder.type(value))

    # -- From constants to values ------------------------------------------------------------------------------------

    def lift(self, value: object, node: ast.AST, dtype: str = "") -> Dyn:
        """A value of the builder: itself, or a constant of a dtype (by default i32, f32 or bool, as Python has it)."""
        if isinstance(value, Dyn):
            return value
        number = as_number(value)
        if number is None:
            self.fail(node, f"expected a scalar, a row or a state, got {describe(value)}")
        if not dtype:
            dtype = "bool" if isinstance(number, bool) else "i32" if isinstance(number, int) else "f32"
        if isinstance(number, bool) != (dtype == "bool"):
            self.fail(node, f"expected a number of type {dtype}, got {number!r}")
        if dtype == "f32":
            return self.wrap(self.builder.constant_float(float(number), self.at(node)))
        if isinstance(number, float):
            self.fail(node, f"expected a whole number of type {dtype}, got {number!r}; f32(…) converts to floats")
        if not -(2**63) <= number < 2**63:
            self.fail(node, f"expected an integer of at most 64 bits, got {number}")
        return self.wrap(self.builder.constant_int(int(number), dtype, self.at(node)))

    def value(self, node: ast.expr, dtype: str = "") -> Dyn:
        """The value of an expression; a constant gets the dtype."""
        return self.lift(self.eval(node), node, dtype)

    def lift_pair(self, a: object, a_node: ast.AST, b: object, b_node: ast.AST) -> tuple[Dyn, Dyn]:
        """Two operands; a constant takes the other's dtype."""
        dtype = a.type.dtype if isinstance(a, Dyn) else b.type.dtype if isinstance(b, Dyn) else ""
        return self.lift(a, a_node, dtype), self.lift(b, b_node, dtype)

    def index(self, node: ast.expr) -> Dyn:
        """An integer expression as an index."""
        value = self.lift(self.eval(node), node, "index")
        if value.type.kind != "scalar" or value.type.dtype not in ("index", "i32", "i64"):
            self.fail(node, f"expected an integer (index, i32 or i64) as an index, got {describe(value)}")
        return self.convert(value, "index", node)

    def condition(self, node: ast.expr, what: str = "condition") -> Dyn | bool:
        """A bool, constant or not."""
        value = self.eval(node)
        if isinstance(value, bool):
            return value
        if not isinstance(value, Dyn) or not value.is_bool:
            self.fail(node, f"expected a bool for the {what}, got {describe(value)}")
        return value

    def convert(self, value: Dyn, dtype: str, node: ast.AST) -> Dyn:
        if value.type.dtype == dtype:
            return value
        return self.wrap(self.builder.convert(value.value, dtype, self.at(node)))

    # -- Predicates --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def guarded(self, condition: Dyn, negated: bool) -> Iterator[None]:
        """What is evaluated inside counts only where the condition holds (or does not): memory is not touched
        elsewhere."""
        self.guards.append((condition, negated))
        try:
            yield
        finally:
            self.guards.pop()

    def predicate(self, where: Dyn | bool | None, node: ast.AST) -> Any:
        """The builder's predicate for an access: that it was asked for, and that Python would have come by it."""
        parts = []
        for condition, negated in self.guards:
            value = condition.value
            parts.append(self.builder.unary("not", value, self.at(node)) if negated else value)
        if isinstance(where, Dyn):
            parts.append(where.value)
        elif where is False:
            parts.append(self.lift(False, node).value)
        result = None
        for part in parts:
            result = part if result is None else self.builder.binary("and", result, part, self.at(node))
        return result

    # -- Expressions -------------------------------------------------------------------------------------------------

    def eval(self, node: ast.expr) -> Any:
        """What an expression stands for."""
        method = getattr(self, f"eval_{type(node).__name__}", None)
        if method is None:
            kind = _KINDS.get(type(node), f"'{ast.unparse(node)}'")
            self.fail(node, f"expected {_ALLOWED}, got {kind}")
        return method(node)

    def eval_Constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, (bool, int, float, str, type(None))):
            return node.value
        self.fail(node, f"expected {_ALLOWED}, got {node.value!r}")

    def eval_Name(self, node: ast.Name) -> Any:
        if node.id in self.env:
            value = self.env[node.id]
            if isinstance(value, Gone):
                self.fail(node, f"expected a name that has a value here, got '{node.id}', {value.reason}")
            return value
        try:
            value = self.source.lookup(node.id)
        except KeyError:
            known = ", ".join(sorted(name for name, value in self.env.items() if not isinstance(value, Gone)))
            self.fail(node, f"expected a name that is defined, got '{node.id}'; here are {known or 'none'}")
        return self.outside(value, node)

    def outside(self, value: Any, node: ast.AST) -> Any:
        """What a name outside the kernel stands for inside."""
        number = as_number(value)
        if number is not None:
            return number
        known = (str, type(None), Word, ScalarType, DType, Base, types.ModuleType)
        if isinstance(value, known) or hasattr(value, "__mlafix_inline__") or isinstance(value, (list, tuple)):
            return tuple(value) if isinstance(value, list) else value
        if isinstance(value, (types.BuiltinFunctionType, type)):
            return value
        if isinstance(value, types.FunctionType):
            self.fail(node, f"expected a function marked @mlafix.inline, got '{value.__name__}', which is not")
        if isinstance(value, TensorType):
            self.fail(node, "expected a tensor as an argument, got its type")
        self.fail(node, f"expected a number, a word of the language or an inline function, got {describe(value)}")

    def eval_Attribute(self, node: ast.Attribute) -> Any:
        value = self.eval(node.value)
        if isinstance(value, Tensor):
            if node.attr != "shape":
                self.fail(node, f"expected .shape of a tensor, got .{node.attr}")
            return tuple(self.dim(value, i, node) for i in range(value.rank))
        if isinstance(value, types.ModuleType):
            try:
                return self.outside(getattr(value, node.attr), node)
            except AttributeError:
                self.fail(node, f"expected a name in module {value.__name__}, got '{node.attr}'")
        self.fail(node, f"expected .shape of a tensor, or a name in a module, got .{node.attr} of {describe(value)}")

    def dim(self, tensor: Tensor, position: int, node: ast.AST) -> Dyn:
        return self.wrap(self.builder.dim(tensor.value, position, self.at(node)))

    def eval_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.eval(element) for element in node.elts)

    def eval_Subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            tensor = self.eval(node.value.value)
            if isinstance(tensor, Tensor):
                return self.dim(tensor, self.constant_index(node.slice, tensor.rank), node)
        value = self.eval(node.value)
        if isinstance(value, tuple):
            return value[self.constant_index(node.slice, len(value))]
        if not isinstance(value, Tensor):
            self.fail(node, f"expected a tensor before [ ], got {describe(value)}")
        return self.read(self.element(node), node)

    def constant_index(self, node: ast.expr, size: int) -> int:
        number = self.eval(node)
        if not isinstance(number, int) or isinstance(number, bool) or not -size <= number < size:
            self.fail(node, f"expected a constant index below {size}, got {describe(number)}")
        return number % size

    def element(self, node: ast.expr) -> Element:
        """The place that ``tensor[i, j]`` names; it is not read. ``x[:]`` and ``x[t, :]`` name rows, too."""
        tensor = self.eval(node.value) if isinstance(node, ast.Subscript) else self.eval(node)
        if not isinstance(node, ast.Subscript) or not isinstance(tensor, Tensor):
            self.fail(node, f"expected an element or a row of a tensor, as x[t, h], got {describe(tensor)}")
        nodes = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(nodes) == tensor.rank and isinstance(nodes[-1], ast.Slice):
            row = nodes.pop()
            if ast.unparse(row) != ":":
                self.fail(row, f"expected : for a whole row, got {ast.unparse(row)}")
        if len(nodes) not in (tensor.rank, tensor.rank - 1):
            self.fail(
                node,
                f"expected {tensor.rank - 1} indices for a row of '{tensor.name}' or {tensor.rank} for an element, got "
                f"{len(nodes)}",
            )
        indices = []
        for dim, index in zip(tensor.annotation.dims, nodes):
            value = self.eval(index)
            if isinstance(value, int) and not 0 <= value < (dim.size or 2**63):
                size = f" and below {dim.size}" if dim.size else ""
                self.fail(index, f"expected an index of at least 0{size}, got {value}")
            indices.append(self.index_value(value, index))
        return Element(tensor, indices)

    def index_value(self, value: Any, node: ast.AST) -> Any:
        value = self.lift(value, node, "index")
        if value.type.kind != "scalar" or value.type.dtype not in ("index", "i32", "i64"):
            self.fail(node, f"expected an integer (index, i32 or i64) as an index, got {describe(value)}")
        return self.convert(value, "index", node).value

    def read(
        self,
        element: Element,
        node: ast.AST,
        where: Dyn | bool | None = None,
        otherwise: Dyn | None = None,
        dtype: str = "",
    ) -> Dyn:
        tensor = element.tensor
        other = otherwise.value if otherwise is not None else None
        predicate = self.predicate(where, node)
        if predicate is None:
            other = None
        dtype = dtype or tensor.element
        return self.wrap(
            self.builder.load(tensor.value, element.indices, predicate, other, dtype, self.at(node))
        )
