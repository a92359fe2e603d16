"""Kernels as data, which the generator makes, the renderer prints, the interpreter runs and the shrinker reduces.

Everything is a plain dataclass whose `repr` is Python code that recreates it, so that a saved case is a text file.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

FLOATS = ("bf16", "f16", "f32")
FP8 = ("f8e4m3fn", "f8e5m2", "f8e8m0")
FP4 = "f4e2m1"  # occurs only in rows, and never as the value of a dtype variable
STORED = (*FLOATS, *FP8, "i32", "i64", "i8", "u8", "bool")
INTEGERS = ("i32", "i64", "index")
BYTES = ("i8", "u8")
COMPUTED = ("add", "mul")  # operations in an extent that is an expression
OF_B = "BaseOfB"  # the name of a Base whose default is the Base "B"
MOST_LISTED = 5  # the most tensors in a list, or ranks in a group


@dataclasses.dataclass(frozen=True)
class Type:
    """The type of an expression.

    Args:
        kind: "scalar", "row", "state", "list", or "sink" for a sink that takes its dim from the states with which it is
            merged.
        dtype: "f32", "i32", "i64", "index", "bool", "i8" or "u8"; "M", for elements that are only moved; "" for a
            state.
        dim: the dim along which a row or a state's payload lies.
        base: for a state: "e", "2", or the name of a Base.
        sink: True if a state may include a sink.
    """

    kind: str
    dtype: str = ""
    dim: str = ""
    base: str = ""
    sink: bool = False

    def scalar(self) -> Type:
        return Type("scalar", self.dtype)


F32, I32, I64, INDEX, BOOL = (Type("scalar", name) for name in ("f32", "i32", "i64", "index", "bool"))


def row(dim: str, dtype: str = "f32") -> Type:
    return Type("row", dtype, dim)


@dataclasses.dataclass
class Node:
    """An expression.

    Args:
        op: the name of the operation; the interpreter has one method for each.
        type: the type of the result.
        args: the operands. For an access: the indices, then the predicate if `where` is set, then the alternative value
            if `other` is set.
        attrs: everything that is not an operand, for example a name, or a literal's value and spelling.
    """

    op: str
    type: Type
    args: list[Node] = dataclasses.field(default_factory=list)
    attrs: dict[str, Any] = dataclasses.field(default_factory=dict)

    def walk(self) -> Iterator[Node]:
        """Yields this expression and all below it, each before its operands."""
        pending = [self]
        while pending:
            node = pending.pop()
            yield node
            pending += node.args[::-1]

    def access(self) -> tuple[list[Node], Node | None, Node | None]:
        """Returns the indices, the predicate and the alternative value of a load. If the attribute "part" is set, the
        last indices select the part of a row."""
        rest = list(self.args)
        other = rest.pop() if self.attrs.get("other") else None
        where = rest.pop() if self.attrs.get("where") else None
        return rest, where, other


def lit(value: Any, type: Type, spelled: str = "") -> Node:
    return Node("lit", type, [], {"value": value, **({"spelled": spelled} if spelled else {})})


def name(text: str, type: Type) -> Node:
    return Node("name", type, [], {"name": text})


# -- Statements ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Assign:
    """``a, b = x, y``; if `aug` is set, ``a += x``."""

    names: list[str]
    values: list[Node]
    aug: str = ""


@dataclasses.dataclass
class Store:
    """``tensor[indices] = value``, or ``store(tensor[indices], value, where=where)``."""

    tensor: str
    indices: list[Node]
    value: Node
    where: Node | None = None
    part: str = ""  # the stored part of a row along a product: "group", "member" or "element"; "" stores the row
    slice: tuple[int, int] | None = None  # [first, end) of the stored slice of the row; None stores the row


# The number of indices that select a part of a row, in addition to the row's own indices.
PART_INDICES = {"": 0, "group": 1, "member": 1, "element": 2}


@dataclasses.dataclass
class StoreState:
    """``store_state(state, out[…], lse[…], where=…, scale=…)``. "" for `out` or `lse` omits that tensor."""

    state: Node
    out: str
    out_indices: list[Node]
    lse: str
    lse_indices: list[Node]
    where: Node | None = None
    scale: Node | None = None


@dataclasses.dataclass
class If:
    condition: Node
    then: list[Any]
    orelse: list[Any]


@dataclasses.dataclass
class For:
    """``for name in range(lower, upper, step)``; `spelled` is the number of arguments that range gets in the source."""

    name: str
    lower: Node
    upper: Node
    step: int
    body: list[Any]
    spelled: int = 3


@dataclasses.dataclass
class Each:
    """``for a, b in ((x0, y0), (x1, y1))``: the items are expressions, or nodes with the op "tensor" for tensors."""

    names: list[str]
    items: list[list[Node]]
    body: list[Any]


@dataclasses.dataclass
class Exchange:
    """``exchange()``: ranks wait for the rows that they store to each other."""


@dataclasses.dataclass
class Assume:
    """``assume(condition)``. Before the grid, a launch checks the condition. Inside the grid, the compiler takes it as
    true."""

    condition: Node


@dataclasses.dataclass
class Distinct:
    """``distinct(table)``, before the grid."""

    table: str


@dataclasses.dataclass
class Print:
    """``print("text", a, b)``, where a and b are numbers. It prints only in debug mode."""

    text: str
    values: list[Node]


Statement = Any


def blocks(statement: Statement) -> list[list[Statement]]:
    """Returns the lists of statements nested in a statement."""
    if isinstance(statement, If):
        return [statement.then, statement.orelse]
    return [statement.body] if isinstance(statement, (For, Each)) else []


def read_blocks(statement: Statement) -> list[list[Statement]]:
    """Returns the nested blocks that the front end reads. It skips blocks that a constant condition excludes."""
    inside = blocks(statement)
    if isinstance(statement, If) and statement.condition.op == "lit":
        return inside[:1] if statement.condition.attrs["value"] else inside[1:]
    return inside


def get(holder: Any, key: Any) -> Node:
    return holder[key] if isinstance(holder, list) else getattr(holder, key)


def put(holder: Any, key: Any, node: Node | None) -> None:
    if isinstance(holder, list):
        holder[key] = node
    else:
        setattr(holder, key, node)


def slots_of(s: Statement) -> list[tuple[Any, Any]]:
    """Returns every place in a statement that holds an expression, as (object, attribute) or (list, index). Omits
    nested statements, and indices of stores."""
    if isinstance(s, (Assign, Print)):
        return [(s.values, i) for i in range(len(s.values))]
    if isinstance(s, Each):
        return [(item, i) for item in s.items for i in range(len(item))]
    found = {Store: ("value", "where"), StoreState: ("state", "where", "scale"), If: ("condition",), Assume: ("condition",), For: ("lower", "upper")}
    return [(s, key) for key in found.get(type(s), ()) if getattr(s, key)]


def expressions(s: Statement) -> list[Node]:
    """Returns a statement's own expressions, without those of nested statements."""
    indices = s.indices if isinstance(s, Store) else [*s.out_indices, *s.lse_indices] if isinstance(s, StoreState) else []
    return [*indices, *(get(*slot) for slot in slots_of(s))]


def all_statements(body: list[Statement], read: bool = False) -> Iterator[Statement]:
    """Yields every statement of a body. With `read`, skips blocks that a constant condition excludes."""
    for statement in body:
        yield statement
        for block in read_blocks(statement) if read else blocks(statement):
            yield from all_statements(block, read)


# -- Kernels -------------------------------------------------------------------------------------------------------------


TILED = {128: "tile=128", 8: "tile8=24"}
"""The first dim of a tensor that lies in tiles, by the number of rows of a tile."""


@dataclasses.dataclass
class Tensor:
    """A tensor argument. `dtype` is a storage dtype or the name of a dtype variable. `dims` are names, "two=2",
    "r<=40", products such as "(G 12)", or "_". In a list of tensors, the first dim is the number of tensors; its name
    is "ranks" if each rank has one tensor. `tiles` is the number of rows of a tile, or 0 if the tensor does not lie in
    tiles. The first dim of a tensor in tiles is TILED[tiles]."""

    name: str
    dtype: str
    dims: list[str]
    access: str  # "In", "Out" or "InOut"
    optional: bool = False
    listed: bool = False
    tiles: int = 0

    @property
    def of_ranks(self) -> bool:
        return self.listed and self.dims[0] == "ranks"


@dataclasses.dataclass
class Scalar:
    """A scalar argument. `at_most` is the dim that bounds its value, or "". If `from_tensor` is set, a call may pass a
    tensor that holds the scalar (`.or_tensor`)."""

    name: str
    dtype: str
    at_most: str = ""
    from_tensor: bool = False


@dataclasses.dataclass
class Inline:
    """An inline function whose parameters are values. `defaults` are literals for the last parameters."""

    name: str
    parameters: list[str]
    types: list[Type]
    body: list[Statement]
    result: Node
    defaults: list[Node] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Grid:
    """``for indices in grid(extents)``. If `segments` is set, ``for indices in segments(extents)``: the first extent is
    cu_seqlens, and the second one the number of rows.

    An extent is a dim's name, ("shape", tensor, position), ("scalar", name), a number, or an expression of an
    upper-case dim: ("add", dim, number) or ("mul", dim, number).
    """

    indices: list[str]
    extents: list[Any]
    segments: bool = False
    where: Node | None = None
    where_inline: bool = False


@dataclasses.dataclass
class Kernel:
    tensors: list[Tensor]
    scalars: list[Scalar]
    grid: Grid
    body: list[Statement]
    inlines: list[Inline] = dataclasses.field(default_factory=list)
    variables: dict[str, str] = dataclasses.field(default_factory=dict)  # by name of a dtype variable: its default, or ""
    bases: dict[str, str] = dataclasses.field(default_factory=dict)  # by name of a Base: its default
    promises: list[Assume | Distinct] = dataclasses.field(default_factory=list)  # before the grid

    @property
    def exchanges(self) -> bool:
        return any(isinstance(statement, Exchange) for statement in self.body)

    def tensor(self, wanted: str) -> Tensor:
        return next(tensor for tensor in self.tensors if tensor.name == wanted)

    def nodes(self, read: bool = False) -> Iterator[Node]:
        """Yields every expression of the kernel."""
        bodies = [self.body, *(inline.body for inline in self.inlines), self.promises]
        for body in bodies:
            for statement in all_statements(body, read):
                for node in expressions(statement):
                    yield from node.walk()
        for inline in self.inlines:
            yield from inline.result.walk()
        if self.grid.where:
            yield from self.grid.where.walk()


@dataclasses.dataclass
class Layout:
    """The layout of a tensor in memory.

    Args:
        order: the dims, outermost first.
        gap: the number of unused elements after each row.
        broadcast: the dims of stride 0.
        reverse: the dims of negative stride.
        offset: the offset of the tensor, in elements.
        last_stride: the stride of the last dim in `order`, in elements.
    """

    order: list[int]
    gap: int = 0
    broadcast: list[int] = dataclasses.field(default_factory=list)
    reverse: list[int] = dataclasses.field(default_factory=list)
    offset: int = 0
    last_stride: int = 1


@dataclasses.dataclass
class Call:
    """The arguments of a kernel's call.

    Args:
        sizes: the sizes by dim.
        absent: the omitted optional tensors.
        dtypes: the dtypes by dtype variable.
        bases: the values that specialize binds, by Base.
        scalars: the values of scalar arguments.
        held: the scalars that are passed as tensors.
        layouts: the layouts of tensors, contiguous by default.
        seed: the seed of the tensors' contents.
        values: explicit contents by tensor: the bits of its elements in order.
        aliases: {"y": "x"} if the written tensor y shares the memory of the read tensor x.
        bound: dynamic dims that specialize binds to their sizes.
        turn: 0 or 1, for kernels whose ranks store to each other.
    """

    sizes: dict[str, int]
    absent: list[str] = dataclasses.field(default_factory=list)
    dtypes: dict[str, str] = dataclasses.field(default_factory=dict)
    bases: dict[str, str] = dataclasses.field(default_factory=dict)
    scalars: dict[str, Any] = dataclasses.field(default_factory=dict)
    layouts: dict[str, Layout] = dataclasses.field(default_factory=dict)
    seed: int = 0
    values: dict[str, list[int]] = dataclasses.field(default_factory=dict)
    aliases: dict[str, str] = dataclasses.field(default_factory=dict)
    bound: list[str] = dataclasses.field(default_factory=list)
    kinds: dict[str, str] = dataclasses.field(default_factory=dict)  # by tensor: the kind of its contents (contents.py)
    held: list[str] = dataclasses.field(default_factory=list)
    turn: int = 0


@dataclasses.dataclass
class Case:
    kernel: Kernel
    calls: list[Call]


def parse_dim(text: str) -> tuple[str, int | None]:
    """Returns a dim's name ("" for "_") and its fixed size. The size is None if it is not fixed."""
    if is_bounded(text):
        return text.partition("<=")[0], None
    text, _, size = text.partition("=")
    return ("" if text == "_" else text), int(size) if size else None


def is_bounded(dim: str) -> bool:
    """True for a dim such as "r<=40": only its bound is known before the launch."""
    return "<=" in dim


def bound_of(dim: str) -> int:
    """Returns the bound of a dim such as "r<=40"."""
    return int(dim.partition("<=")[2])


def factors(dim: str) -> list[str]:
    """Returns the factors of a product such as "(G 12)" or "(G J)", names or numbers, as text. Returns an empty list
    for any other dim."""
    return dim[1:-1].split() if dim.startswith("(") else []


def names_of(dim: str) -> list[str]:
    """Returns the names in a dim for which a call has sizes."""
    return [factor for factor in factors(dim) if not factor.isdigit()] or [parse_dim(dim)[0]]


def size_of(dim: str, sizes: dict[str, int]) -> int:
    """Returns a dim's size in a call. `sizes` also has an entry for "_"."""
    if factors(dim):
        return math.prod(int(factor) if factor.isdigit() else sizes[factor] for factor in factors(dim))
    text, fixed = parse_dim(dim)
    return fixed if fixed is not None else sizes[text or "_"]
