"""The state that is shared by the classes that translate a kernel: the builder, the source text, and the values of
names. Also converts constants to values."""

from __future__ import annotations

import ast
import contextlib
import math
from collections.abc import Iterator
from typing import Any, NoReturn

from . import hints
from .source import Source
from .types import Base
from .values import Dyn, Tensor, as_number, describe

# The deepest nesting of branches and loops. The limit exists because the compiler's parser accepts at most 250 nested
# brackets.
_MOST_NESTED = 200
# The smallest finite number that rounds to infinity in f32.
_F32_OVERFLOWS = 2**128 - 2**103


class Context:
    """The state while one function's body is translated.

    Args:
        builder: the KernelBuilder that creates the operations.
        source: the definition of the function.
        env: maps names to their current values.
    """

    def __init__(self, builder: Any, source: Source, env: dict[str, Any]) -> None:
        self.builder = builder
        self.source = source
        self.env = env
        # The kernel's tensor arguments, in order.
        self.tensors: list[Tensor] = []
        # The defaults of dtype variables and base variables, by the variable's name.
        self.defaults: dict[str, str] = {}
        # The names of base variables.
        self.bases: set[str] = set()
        # The number of inline calls around the current statement.
        self.depth = 0
        # The grid's indices by name, each with the dim that it runs along ("" if its extent is not a dim's name). None
        # until the grid is translated.
        self.indices: dict[str, tuple[Dyn, str]] | None = None
        # The number of branches and loops around the current statement, including those around inline calls.
        self.levels = 0
        # The conditions under which the current expression is evaluated, each as (condition, True if it must be false).
        self.guards: list[tuple[Dyn, bool]] = []

    def inside(self, source: Source, env: dict[str, Any]) -> Context:
        """Returns the context for the body of an inline function: the same kernel, with other names."""
        inner = Context(self.builder, source, env)
        inner.tensors, inner.defaults, inner.bases, inner.guards = self.tensors, self.defaults, self.bases, self.guards
        inner.depth, inner.levels, inner.indices = self.depth + 1, self.levels, self.indices
        return inner

    def at(self, node: ast.AST) -> Any:
        return self.source.location(node)

    def fail(self, node: ast.AST, message: str) -> NoReturn:
        self.source.fail(node, message)

    def wrap(self, value: Any) -> Dyn:
        return Dyn(value, self.builder.type(value))

    def note_default(self, name: str, value: Any) -> str:
        """Records the default of a name, if it has one. Returns the name."""
        if value is not None:
            self.defaults[name] = str(value)
        return name

    def note_base(self, base: Base) -> str:
        self.bases.add(base.name)
        if isinstance(base.default, Base):
            self.note_base(base.default)
        return self.note_default(base.name, base.default)

    @property
    def dims(self) -> list[str]:
        """The names of the dims of the kernel's tensors, each once."""
        return list(dict.fromkeys(dim.name for tensor in self.tensors for dim in tensor.annotation.dims if dim.name))

    # -- From constants to values ------------------------------------------------------------------------------------

    def lift(self, value: object, node: ast.AST, dtype: str = "") -> Dyn:
        """Converts a constant to a value, and returns a value as it is. A constant gets `dtype`, or by default i32, f32
        or bool by its Python type."""
        if isinstance(value, Dyn):
            return value
        number = as_number(value)
        if number is None:
            self.fail(node, f"expected a scalar, a row or a state, got {describe(value)}{hints.of_operand(value)}")
        if not dtype:
            dtype = "bool" if isinstance(number, bool) else "i32" if isinstance(number, int) else "f32"
        if isinstance(number, bool) != (dtype == "bool"):
            self.fail(node, f"expected a number of type {dtype}, got {describe(number)}")
        if dtype == "f32":
            return self.float_constant(number, node)
        if isinstance(number, float):
            self.fail(node, f"expected an integer of type {dtype}, got {number!r}; f32(…) converts to floats")
        if not -(2**63) <= number < 2**63:
            self.fail(node, f"expected an integer of at most 64 bits, got {describe(number)}")
        return self.wrap(self.builder.constant_int(int(number), dtype, self.at(node)))

    def float_constant(self, number: bool | int | float, node: ast.AST) -> Dyn:
        """Converts a constant to an f32 value. Fails if it overflows f32."""
        if abs(number) >= _F32_OVERFLOWS and number not in (math.inf, -math.inf):
            self.fail(node, f"expected a number that an f32 holds, got {describe(number)}")
        return self.wrap(self.builder.constant_float(float(number), self.at(node)))

    def lift_pair(self, a: object, a_node: ast.AST, b: object, b_node: ast.AST) -> tuple[Dyn, Dyn]:
        """Converts two operands to a common type. A constant gets the dtype of the other operand. An integer combined
        with an index becomes an index."""
        dtype = a.type.dtype if isinstance(a, Dyn) else b.type.dtype if isinstance(b, Dyn) else ""
        left, right = self.lift(a, a_node, dtype), self.lift(b, b_node, dtype)
        return self._beside(left, right, a_node), self._beside(right, left, b_node)

    def _beside(self, value: Dyn, other: Dyn, node: ast.AST) -> Dyn:
        """Converts an i32 or i64 scalar to index, with the same value, if the other operand is an index. Returns any
        other operand as it is."""
        is_integer = value.type.kind == "scalar" and value.type.dtype in ("i32", "i64")
        is_beside_index = other.type.kind == "scalar" and other.type.dtype == "index"
        return self.convert(value, "index", node) if is_integer and is_beside_index else value

    def check_computes(self, op: str, node: ast.AST, *values: Dyn) -> None:
        """Fails for operands that are bytes or states, since `op` is not defined for them. Bytes can be loaded, stored,
        compared and converted. States have functions of their own, such as merge."""
        for value in values:
            if value.type.kind == "state":
                self.fail(node, f"expected scalars or rows for '{op}', got {describe(value)}{hints.of_state(op)}")
            if value.type.dtype in ("i8", "u8"):
                self.fail(node, f"expected i32, i64, index or f32 for '{op}', got {describe(value)}; i32(…) and f32(…) convert bytes")

    def convert(self, value: Dyn, dtype: str, node: ast.AST) -> Dyn:
        if value.type.dtype == dtype:
            return value
        return self.wrap(self.builder.convert(value.value, dtype, self.at(node)))

    def index(self, value: Any, node: ast.AST) -> Any:
        """Converts an integer to a handle of type index in the builder."""
        value = self.lift(value, node, "index")
        if value.type.kind != "scalar" or value.type.dtype not in ("index", "i32", "i64"):
            hint = "; x[t, i] is one element: a loop over i takes several" if value.type.kind == "row" else "; i32(…) rounds towards zero"
            self.fail(node, f"expected an integer (index, i32 or i64) as an index, got {describe(value)}{hint}")
        return self.convert(value, "index", node).value

    @contextlib.contextmanager
    def nested(self, node: ast.AST) -> Iterator[None]:
        """Counts a branch or a loop while it is built."""
        if self.levels == _MOST_NESTED:
            self.fail(node, f"expected branches and loops at most {_MOST_NESTED} deep, where each elif counts, got more")
        self.levels += 1
        try:
            yield
        finally:
            self.levels -= 1

    # -- Predicates --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def guarded(self, condition: Dyn, negated: bool) -> Iterator[None]:
        """Makes accesses inside the context conditional. Memory is accessed only if the condition holds, or with
        `negated`, if it does not hold."""
        self.guards.append((condition, negated))
        try:
            yield
        finally:
            self.guards.pop()

    def predicate(self, where: Dyn | bool | None, node: ast.AST) -> Any:
        """Returns the predicate of an access: `where` combined with the conditions of `guarded` around it. Returns None
        for an access without conditions."""
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
