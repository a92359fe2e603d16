"""The language of kernels in Python: see docs/Python.md.

``abs``, ``all``, ``any``, ``len``, ``max``, ``min``, ``print``, ``range``, ``round`` and ``sum`` are Python's own
functions. Inside a kernel, the language gives them a meaning of its own. This module exports them so that a kernel's
file can import all its words from here.
"""

from builtins import abs, len, print, range, round
from typing import TYPE_CHECKING, Any

from . import functions
from .built_ins import (
    argmax,
    argmin,
    assume,
    copysign,
    cummax,
    cummin,
    cumsum,
    distinct,
    exchange,
    fma,
    grid,
    identity,
    iota,
    load,
    load_state,
    lse_of,
    make_state,
    mask,
    merge,
    payload,
    present,
    ranks,
    rebase,
    row_of,
    segments,
    shape,
    sink,
    splat,
    store,
    store_state,
    swap,
    top_k,
    turn,
    where,
)
from .decorator import kernel
from .functions import *  # noqa: F403
from .inline import inline
from .types import (
    Base,
    DType,
    In,
    InOut,
    List,
    Out,
    Peers,
    bf16,
    bool_,
    f4e2m1,
    f8e4m3fn,
    f8e5m2,
    f8e8m0,
    f16,
    f32,
    i8,
    i32,
    i64,
    index,
    u8,
)

if TYPE_CHECKING:  # type checkers must accept arguments that only kernels pass: max(row, along=16)
    all: Any
    any: Any
    max: Any
    min: Any
    sum: Any
else:
    from builtins import all, any, max, min, sum

__all__ = [
    "Base",
    "DType",
    "In",
    "InOut",
    "List",
    "Out",
    "Peers",
    "abs",
    "all",
    "any",
    "argmax",
    "argmin",
    "assume",
    "bf16",
    "bool_",
    "copysign",
    "cummax",
    "cummin",
    "cumsum",
    "distinct",
    "exchange",
    "f16",
    "f32",
    "f4e2m1",
    "f8e4m3fn",
    "f8e5m2",
    "f8e8m0",
    "fma",
    "grid",
    "i32",
    "i64",
    "i8",
    "identity",
    "index",
    "inline",
    "iota",
    "kernel",
    "load",
    "load_state",
    "len",
    "lse_of",
    "make_state",
    "mask",
    "max",
    "merge",
    "min",
    "payload",
    "present",
    "print",
    "range",
    "ranks",
    "rebase",
    "round",
    "row_of",
    "segments",
    "shape",
    "sink",
    "splat",
    "store",
    "store_state",
    "swap",
    "top_k",
    "sum",
    "turn",
    "u8",
    "where",
]
__all__ += functions.__all__
