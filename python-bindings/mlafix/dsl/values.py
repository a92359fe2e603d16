"""Values of names and expressions while a kernel is translated.

Compile-time constants are plain Python objects. All other values are instances of the classes in this module.
"""

from __future__ import annotations

import dataclasses
import numbers
from typing import Any

from .._launcher.launcher import Launcher
from .types import FLOATS, TensorType

# The most bits of an integer that messages print in full. Python refuses to print more than 4300 digits.
_MOST_BITS = 256


@dataclasses.dataclass(frozen=True)
class Dyn:
    """A value that is known when the kernel runs: a scalar, a row or a state.

    Args:
        value: the builder's handle of the value.
        type: the value's ValueType.
    """

    value: Any
    type: Any

    @property
    def is_bool(self) -> bool:
        return bool(self.type.kind == "scalar" and self.type.dtype == "bool")


@dataclasses.dataclass(frozen=True)
class OfRows:
    """Stands, outside of the grid, for a number that a call may pass in a tensor. The number is unknown there, since
    only the rows of the grid load it from the tensor."""

    name: str

    def __str__(self) -> str:
        return f"'{self.name}', which a tensor may hold: it is known in rows alone"


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor argument."""

    name: str
    value: Any
    annotation: TensorType

    @property
    def rank(self) -> int:
        return len(self.annotation.dims)

    @property
    def element(self) -> str:
        """The type that the tensor's elements have in a body."""
        dtype = self.annotation.dtype
        if hasattr(dtype, "example"):
            return "i64" if dtype.is_integer else "f32"
        return "f32" if dtype.name in FLOATS else dtype.name

    @property
    def stores(self) -> tuple[str, ...]:
        """The types that a body may store to an element. An integer dtype variable accepts i64 and i32, and a tensor of
        bytes accepts any number."""
        dtype = self.annotation.dtype
        if hasattr(dtype, "example"):
            return ("i64", "i32") if dtype.is_integer else (self.element,)
        return (dtype.name, "i32", "i64", "f32") if dtype.name in ("i8", "u8") else (self.element,)

    def __str__(self) -> str:
        return f"the tensor '{self.name}'"


@dataclasses.dataclass(frozen=True)
class Peer:
    """One tensor of an argument that is declared with Peers or List. `rank` is the index of the rank, or of the tensor
    in the list."""

    tensor: Tensor
    rank: Any

    def __str__(self) -> str:
        return f"the tensor '{self.tensor.name}' of one rank" if self.tensor.annotation.peers else f"a tensor of the list '{self.tensor.name}'"


@dataclasses.dataclass(frozen=True)
class Sink:
    """An attention sink without a dim. It gets its dim, and by default its base, from the state with which it is
    merged.

    Args:
        logit: the sink's lse.
        base: the base of the logit; "" for the base of the state.
    """

    logit: Dyn
    base: str

    def __str__(self) -> str:
        return 'a sink without a dim, which merge(state, sink(logit)) takes; sink(logit, "D") is a state'


@dataclasses.dataclass(frozen=True)
class Element:
    """A row or an element of a tensor, a part of a row along a product, or a slice of another row.

    Args:
        tensor: the tensor.
        indices: one index for each dim but the last. An element of a row that is not along a product has one for the
            last dim, too.
        group: the index of a group, which is a row along the second factor; None for all groups.
        member: the index of an element in each group; these elements are a row along the first factor. None for all
            elements. With both `group` and `member`, it is a single element.
        begin: the first element of a slice.
        end: one past the last element of a slice; 0 for a whole row.
    """

    tensor: Tensor
    indices: list[Any]
    group: Any = None
    member: Any = None
    begin: int = 0
    end: int = 0

    @property
    def is_part(self) -> bool:
        return self.group is not None or self.member is not None

    @property
    def dim(self) -> str | None:
        """The spelling of the row's dim in types and messages. None for an element."""
        if len(self.indices) == self.tensor.rank or (self.group is not None and self.member is not None):
            return None
        if self.end:
            return str(self.end - self.begin)
        last = self.tensor.annotation.dims[-1]
        return last.factors[1] if self.group is not None else last.factors[0] if self.member is not None else last.spelled


@dataclasses.dataclass(frozen=True)
class Listed:
    """A name bound to a list of `count` values. The context's `env` has each value under the name that `part` returns,
    which is not a Python identifier."""

    count: int

    @staticmethod
    def part(name: str, position: int) -> str:
        return f"{name}[{position}]"

    def parts(self, name: str) -> list[str]:
        return [self.part(name, position) for position in range(self.count)]


@dataclasses.dataclass(frozen=True)
class Gone:
    """Marks a name that has no value at this point of the kernel. `reason` says why."""

    reason: str


def is_record_type(value: object) -> bool:
    """True if a value is a frozen dataclass, so that a call of it makes a record."""
    return isinstance(value, type) and dataclasses.is_dataclass(value) and value.__dataclass_params__.frozen  # type: ignore[attr-defined]


def is_record(value: object) -> bool:
    """True if a value is a record: an instance of a frozen dataclass that is not one of the language's own classes."""
    return is_record_type(type(value)) and not type(value).__module__.startswith(__package__)


def holds_arguments(made: Any) -> bool:
    """True if the fields of a dataclass get their values only from the arguments of its call and their defaults."""
    is_plain = made.__dataclass_params__.init and not hasattr(made, "__post_init__")
    return is_plain and all(field.init and field.default_factory is dataclasses.MISSING for field in dataclasses.fields(made))


def field_names(record: object) -> list[str]:
    """Returns the names of the fields of a record, or of a record's type."""
    return [field.name for field in dataclasses.fields(record)]  # type: ignore[arg-type]


def as_number(value: object) -> bool | int | float | None:
    """Converts a compile-time number, possibly numpy's, to a Python number. Returns None for anything else."""
    if isinstance(value, (bool, int, float)):
        return value if type(value) in (bool, int, float) else float(value) if isinstance(value, float) else int(value)
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        if isinstance(value, numbers.Integral):
            return int(value)
        if isinstance(value, numbers.Real):
            return float(value)
    return None


def alike(a: Any, b: Any) -> bool:
    """True if values of two types can be merged after a branch: the types are equal, except that one state may hold a
    sink."""
    return (a.kind, a.dtype, a.dim, a.base) == (b.kind, b.dtype, b.dim, b.base)


def counted(count: int, one: str, many: str = "") -> str:
    """Formats a count for messages: "1 index", "2 indices"."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def describe(value: object) -> str:
    """Returns the description of a value for messages."""
    if isinstance(value, Dyn):
        return str(value.type)
    if isinstance(value, (Tensor, Peer, Sink, OfRows)):
        return str(value)
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, (str, type(None))) or as_number(value) is not None:
        return repr(value)
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, Listed):
        return f"a list of {value.count}"
    if is_record(value):
        return f"a record of type {type(value).__name__}"
    if isinstance(value, Launcher):
        return f"the kernel '{value.name}'"
    if isinstance(value, type):
        return f"the class '{value.__name__}'"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function '{value.__name__}'"
    if getattr(value, "shape", None):
        return f"an array of type {type(value).__module__}.{type(value).__qualname__}"
    return f"{value!r} ({type(value).__name__})"
