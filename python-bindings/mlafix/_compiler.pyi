"""Types of the extension module mlafix._compiler: kernels to units, kernels made by calls.

Every function and method raises CompileError where the kernel is wrong.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, overload

def version() -> str: ...
def signature(source: str | bytes, name: str, kernel: str = "") -> str:
    """JSON: {"name", "args", "aliases", "names"}; see Emit::Signature in include/mlafix/Compiler.h."""

def chip(target: str) -> dict[str, int]:
    """What is published of a chip of a target: "multiprocessors", and "bandwidth" of its memory in GB/s. May be empty."""

@overload
def compile(
    source: str | bytes,
    name: str,
    *,
    kernel: str = "",
    specializations: Sequence[Mapping[str, str]] = ...,
    targets: Sequence[str] = ...,
    emit: Literal["unit", "cubin", "object"] = "unit",
    assembler: str = "any",
    ptxas: str = "",
    variant: str = "",
    line_info: bool = False,
    digest: str = "",
    unit_name: str = "",
    launch: str = "",
) -> bytes: ...
@overload
def compile(
    source: str | bytes,
    name: str,
    *,
    kernel: str = "",
    specializations: Sequence[Mapping[str, str]] = ...,
    targets: Sequence[str] = ...,
    emit: str,
    assembler: str = "any",
    ptxas: str = "",
    variant: str = "",
    line_info: bool = False,
    digest: str = "",
    unit_name: str = "",
    launch: str = "",
) -> bytes | str: ...

def remarks(
    source: str | bytes, name: str, *, kernel: str, bindings: Mapping[str, str], target: str
) -> list[tuple[str, str, str, int, int, int, int]]:
    """What the passes decided, and why: the fields of a mlafix._diagnostics.Message each."""

class Location:
    """A range of a source. Lines and columns count from 1; the end column is one past the last character."""

    def __init__(self, file: str, line: int, column: int, end_line: int, end_column: int) -> None: ...
    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...
    @property
    def end_line(self) -> int: ...
    @property
    def end_column(self) -> int: ...

class Value:
    """A value of the kernel that is being built."""

class ValueType:
    @property
    def kind(self) -> Literal["none", "scalar", "row", "state", "tensor"]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def dim(self) -> str: ...
    @property
    def base(self) -> str: ...
    @property
    def dims(self) -> list[str]: ...

class KernelBuilder:
    """include/mlafix/KernelBuilder.h in Python; an omitted value is None."""

    def __init__(self, name: str, location: Location) -> None: ...
    def type(self, value: Value) -> ValueType: ...
    def finish(self) -> str: ...
    def add_tensor(
        self,
        name: str,
        dims: Sequence[str],
        dtype: str,
        dtype_name: str,
        access: str,
        optional: bool,
        sizes: Sequence[int],
        location: Location,
    ) -> Value: ...
    def set_default(self, name: str, value: str, location: Location) -> None: ...
    def add_scalar(self, name: str, dtype: str, at_most: str, location: Location) -> Value: ...
    def dim(self, tensor: Value, position: int, location: Location) -> Value: ...
    def begin_forall(self, extents: Sequence[Value], location: Location) -> list[Value]: ...
    def begin_ragged_forall(
        self, cu_seqlens: Value, rows: Value, inner: Sequence[Value], location: Location
    ) -> Value: ...
    def begin_ragged_body(self, predicate: Value, location: Location) -> list[Value]: ...
    def end_grid(self, location: Location) -> None: ...
    def begin_for(
        self, lower: Value, upper: Value, step: Value, initial: Sequence[Value], location: Location
    ) -> list[Value]: ...
    def end_for(self, next: Sequence[Value], location: Location) -> list[Value]: ...
    def begin_if(self, condition: Value, location: Location) -> None: ...
    def begin_else(self, values: Sequence[Value], location: Location) -> None: ...
    def end_if(self, values: Sequence[Value], location: Location) -> list[Value]: ...
    def constant_float(self, value: float, location: Location) -> Value: ...
    def constant_int(self, value: int, dtype: str, location: Location) -> Value: ...
    def unary(self, op: str, operand: Value, location: Location) -> Value: ...
    def binary(self, op: str, lhs: Value, rhs: Value, location: Location) -> Value: ...
    def fma(self, a: Value, b: Value, c: Value, location: Location) -> Value: ...
    def compare(self, op: str, lhs: Value, rhs: Value, location: Location) -> Value: ...
    def select(self, condition: Value, if_true: Value, if_false: Value, location: Location) -> Value: ...
    def convert(self, operand: Value, dtype: str, location: Location) -> Value: ...
    def splat(self, scalar: Value, dim: str, location: Location) -> Value: ...
    def reduce(self, op: str, row: Value, location: Location) -> Value: ...
    def load(
        self,
        tensor: Value,
        indices: Sequence[Value],
        predicate: Value | None,
        other: Value | None,
        dtype: str,
        location: Location,
    ) -> Value: ...
    def store(
        self, value: Value, tensor: Value, indices: Sequence[Value], predicate: Value | None, location: Location
    ) -> None: ...
    def present(self, tensor: Value, location: Location) -> Value: ...
    def identity(self, dim: str, base: str, location: Location) -> Value: ...
    def load_state(
        self,
        out: Value,
        out_indices: Sequence[Value],
        lse: Value,
        lse_indices: Sequence[Value],
        predicate: Value | None,
        base: str,
        location: Location,
    ) -> Value: ...
    def store_state(
        self,
        state: Value,
        out: Value | None,
        out_indices: Sequence[Value],
        lse: Value | None,
        lse_indices: Sequence[Value],
        predicate: Value | None,
        scale: Value | None,
        location: Location,
    ) -> None: ...
    def make_state(self, row: Value, lse: Value, base: str, location: Location) -> Value: ...
    def merge(self, states: Sequence[Value], location: Location) -> Value: ...
    def mask(self, state: Value, predicate: Value, location: Location) -> Value: ...
    def rebase(self, state: Value, base: str, location: Location) -> Value: ...
