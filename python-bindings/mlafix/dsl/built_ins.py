"""The built-ins of the language: the functions that a kernel may call. Outside a kernel they only raise.

``abs``, ``min``, ``max``, ``sum``, ``round`` and ``range`` are Python's own functions. Conversions are calls of dtypes
(``f32(x)``). Functions of one float are in functions.py.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError

__all__ = [
    "argmax", "argmin", "assume", "copysign", "cummax", "cummin", "cumsum", "distinct", "exchange", "fma", "grid",
    "identity", "iota", "load", "load_state", "lse_of", "make_state", "mask", "merge", "payload", "present",
    "ranks", "rebase", "row_of", "segments", "shape", "sink", "splat", "store", "store_state", "swap", "top_k",
    "turn", "where",
]  # fmt: skip


class BuiltIn:
    """A function of the language.

    Args:
        name: the function's name in a kernel.
        usage: an example of a call, for error messages.
    """

    def __init__(self, name: str, usage: str, doc: str) -> None:
        self.name = name
        self.usage = usage
        self.__doc__ = f"``{usage}``: {doc}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise ArgumentError(f"{self.name}(): expected to be called inside a kernel, got a call outside")

    def __repr__(self) -> str:
        return f"<{self.usage}>"


grid = BuiltIn("grid", "grid(extent, …)", "every row of a dense index space; an extent is a dim's name, a size or a number.")
segments = BuiltIn(
    "segments",
    "segments(cu_seqlens, rows, extent, …, where=lambda segment: …)",
    "the rows of the segments [cu_seqlens[s], cu_seqlens[s + 1]) for which the predicate holds. Yields the segment, the"
    " row and the inner indices. A segment counts only if 0 <= start <= end <= rows.",
)
shape = BuiltIn("shape", 'shape("n")', "the size of the dim that is called so: an index.")
present = BuiltIn("present", "present(tensor)", "whether an optional tensor was given.")
ranks = BuiltIn("ranks", "ranks(parts)", "how many ranks have a tensor of an argument declared with Peers: an index.")
turn = BuiltIn(
    "turn",
    "turn()",
    "0 or 1, in turn from one launch of the group to the next, the same on all ranks: an index. Which half of the tensors of all"
    " ranks (Peers[InOut[…]]) the launch stores to.",
)
exchange = BuiltIn(
    "exchange",
    "exchange()",
    "what this row stored to the tensors of all ranks (Peers[InOut[…]]) becomes visible to the same row of each rank, and"
    " theirs to this one. Once in a kernel, in the grid's own block; on GPUs.",
)
load = BuiltIn(
    "load",
    "load(tensor[…], where=…, otherwise=…) or load(tensor[…], into=…, first=…, each=…, where=…)",
    "a row or an element; nothing is read where the predicate is false, and the value is `otherwise` (0) there. With into, a row"
    " along that dim, which has the row that is read from its element `first` on, each element `each` times.",
)
store = BuiltIn("store", "store(tensor[…], value, where=…)", "writes a row or an element where the predicate holds.")
load_state = BuiltIn(
    "load_state",
    "load_state(out[…], lse[…], where=…, base=…, sink=…)",
    "the partial attention state of a payload row and its lse; the identity where the predicate is false (N5). With"
    " sink=True it was stored with a sink in it.",
)
store_state = BuiltIn(
    "store_state",
    "store_state(state, out[…], lse[…], where=…, scale=…)",
    "normalises a state and writes its payload row, its lse or both (None leaves one out); with a scale the payload is"
    " multiplied by 1 / scale.",
)
make_state = BuiltIn("make_state", "make_state(row, lse, base=…)", "a state of a row and a scalar lse.")
sink = BuiltIn(
    "sink",
    'sink(logit, "D", base=…)',
    "an attention sink: the state of a row of zeros whose lse is a logit; none where the logit is infinite. Without a dim,"
    " merge(state, sink(logit)) gives it the dim and the base of the state; with a base, the logit is in that one.",
)
identity = BuiltIn("identity", 'identity("D", base=…)', "the empty state: out = 0, lse = -inf (N1).")
merge = BuiltIn("merge", "merge(state, …)", "the monoid's operation; at most one state has a sink in it.")
assume = BuiltIn(
    "assume",
    "assume(condition)",
    "a promise. Before the grid, of sizes and integer arguments, a launch checks it; in the grid the proofs believe it.",
)
distinct = BuiltIn(
    "distinct",
    "distinct(table)",
    "a promise, before the grid: no two entries of a tensor of integers that are at least 0 are equal. The proofs believe it.",
)
mask = BuiltIn("mask", "mask(state, predicate)", "the state where the predicate holds, else the identity.")
payload = BuiltIn("payload", "payload(state)", "the normalised payload of a state as a row: what store_state would write, in f32.")
lse_of = BuiltIn("lse_of", "lse_of(state)", "the log-sum-exp of a state: what store_state would write.")
rebase = BuiltIn("rebase", "rebase(state, base)", "the same state with its lse in another base (N8).")
splat = BuiltIn("splat", 'splat(scalar, "D")', "a row whose elements are all one scalar.")
row_of = BuiltIn(
    "row_of",
    "row_of([a, b, …])",
    "a row whose elements are these numbers, 64 at most: of three numbers along 3.",
)
iota = BuiltIn("iota", 'iota("D")', "a row of i32 whose elements are their own indices: 0, 1, 2 and so on.")
swap = BuiltIn(
    "swap",
    "swap(row, block)",
    "the row in which neighbouring blocks of a power of two of elements have changed places: element i is element i ^ block.",
)
argmax = BuiltIn(
    "argmax",
    "argmax(row, along=…)",
    "the index of the greatest element, i32: the lowest of equals, or the first NaN. With along, a row of such indices in"
    " each group.",
)
argmin = BuiltIn("argmin", "argmin(row, along=…)", "the same of the least element.")
top_k = BuiltIn(
    "top_k",
    "top_k(row, k, along=…)",
    "the k greatest elements, the greatest first, and their indices, i32: two lists of k values. Equals come in the order"
    " of their indices, and NaN before all numbers. With along, of rows that have an element for each group.",
)
cumsum = BuiltIn(
    "cumsum",
    "cumsum(row, along=…)",
    "the running sum: a row whose element i is the sum of the elements up to i, itself included. With along, of each group"
    " by itself.",
)
cummax = BuiltIn("cummax", "cummax(row, along=…)", "the same of the maximum.")
cummin = BuiltIn("cummin", "cummin(row, along=…)", "the same of the minimum.")
where = BuiltIn("where", "where(condition, a, b)", "a where the condition holds, else b; element by element for rows.")
fma = BuiltIn("fma", "fma(a, b, c)", "a * b + c with one rounding.")
copysign = BuiltIn("copysign", "copysign(x, sign)", "x with the sign of another value.")
