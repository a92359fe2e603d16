"""Kernels that merge groups of states, where maps say which states form a group."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from mlafix.dsl import (
    Base,
    DType,
    In,
    InOut,
    distinct,
    exp2,
    f32,
    grid,
    i32,
    identity,
    index,
    inline,
    kernel,
    load,
    load_state,
    log2,
    lse_of,
    make_state,
    merge,
    payload,
    present,
    rebase,
    shape,
    sink,
    splat,
    store_state,
)
from mlafix.kernels.scaling import Scaling, heads_of, result, scaled_or_bare, store_rows

T = DType("T")
B = Base("B", default="e")
# The base of the result's lse: B, unless a call binds another base.
RESULT = Base("ResultBase", default=B)
O = DType("O")  # noqa: E741 (the library's name)
P = DType("T", default=f32)


@dataclasses.dataclass(frozen=True)
class Groups:
    """Arguments for partial states, here called parts, and for the maps that group the parts. `groups` declares the
    arguments."""

    parts: Any
    lses: Any
    indptr: Any = In[i32, "g1"]
    part_map: Any = In[i32, "k"] | None
    row_map: Any = In[i32, "g"] | None
    sinks: Any = In[f32, "H"] | None
    min_parts: Any = i32
    empty_lse: Any = f32


def groups(dtype: Any, row: str) -> Groups:
    """Declares the arguments for groups of parts, whose rows have the dims `row`."""
    return Groups(In[dtype, f"p H {row}"], In[f32, "p H"])


@dataclasses.dataclass(frozen=True)
class Group:
    """A group: the row that it writes, the bounds of its parts, whether the bounds are valid, and whether the group is
    merged."""

    row: Any
    first: Any
    last: Any
    sound: Any
    wanted: Any


@inline
def group_of(g, of):
    known = g + 1 < of.indptr.shape[0]
    first = load(of.indptr[g], where=known)
    last = load(of.indptr[g + 1], where=known)
    t = g
    if present(of.row_map):
        t = index(load(of.row_map[g], where=g < of.row_map.shape[0], otherwise=-1))
    sound = 0 <= first <= last
    count = last - first if sound else 0
    return Group(t, first, last, sound, known and 0 <= t < shape("n") and count >= of.min_parts)


@inline
def parts_of(group, of):
    """Returns the bounds of a group's parts, and the number of entries of the part map (the number of parts if there is
    no map). Parts past this number are empty."""
    named = of.part_map.shape[0] if present(of.part_map) else shape("p")
    return index(group.first), index(group.last), named


@inline
def part_at(j, of):
    """Returns the row in `of.parts` of the part with index j: part_map[j], or j if there is no map. Returns -1 if the
    map has no entry j."""
    i = j
    if present(of.part_map):
        i = index(load(of.part_map[j], where=j < of.part_map.shape[0], otherwise=-1))
    return i


@inline
def merged_parts(group, bounds, of, h, row):
    start, end, named = bounds
    merged = identity(row, base=B)
    for j in range(start, min(end, named) if group.sound else start):
        i = part_at(j, of)
        merged = merge(merged, load_state(of.parts[i, h], of.lses[i, h], where=0 <= i < shape("p"), base=B))
    return merged


# -- Parts that are not normalised ---------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Sums:
    """Arguments in addition to `Groups` for parts that are not normalised. `Groups.lses` are then the maxima of the
    parts' scores.

    Args:
        sums: the sum of the weights of each part.
        to_log2: the factor that converts maxima to base 2.
    """

    sums: Any = In[f32, "p H"]
    to_log2: Any = f32


@inline
def maximum_of(i, h, of, beside):
    """Returns the maximum of a part's scores. Returns -inf if the part is empty or does not exist."""
    there = 0 <= i < shape("p")
    largest = load(of.lses[i, h], where=there, otherwise=-math.inf)
    total = load(beside.sums[i, h], where=there)
    return -math.inf if abs(largest) == math.inf or total == 0.0 else largest


@inline
def summed_parts(group, bounds, of, beside, h, row):
    """Merges a group's parts, which are not normalised. Reads each part once, and divides once."""
    start, end, named = bounds
    behind = min(end, named) if group.sound else start
    largest = -math.inf
    for j in range(start, behind):
        largest = max(largest, maximum_of(part_at(j, of), h, of, beside))
    rows, total = splat(0.0, row), 0.0
    for j in range(start, behind):
        i = part_at(j, of)
        own = maximum_of(i, h, of, beside)
        weight = 0.0 if own == -math.inf else exp2((own - largest) * beside.to_log2)
        counts = 0 <= i < shape("p") and weight != 0.0
        rows = rows + load(of.parts[i, h], where=counts) * weight
        total = total + load(beside.sums[i, h], where=counts) * weight
    empty = largest == -math.inf
    # If the sum overflows, the row and its lse become NaN. An lse of +inf would mark the row as empty.
    divisor = 1.0 if empty else math.nan if total == math.inf else total
    return make_state(rows / divisor, -math.inf if empty else largest + log2(divisor) / beside.to_log2, base=B)


@inline
def with_sink(merged, of, h):
    whole = merged
    if present(of.sinks):
        whole = merge(merged, sink(of.sinks[h], base="e"))
    return whole


@inline
def store_lse(merged, t, h, out_lse, of):
    lse = lse_of(rebase(merged, RESULT))
    out_lse[t, h] = lse if lse != -math.inf else of.empty_lse


@inline
def store_group(merged, group, p, to, out_lse, of):
    """Stores the rows of one head, or of the heads that share a group of elements, with their scales and lses."""
    heads = heads_of(p, to.how)
    rows = [payload(with_sink(merged[j], of, heads[j])) for j in range(to.how.joined)]
    store_rows(rows, group.row, p, to)
    for j in range(to.how.joined):
        store_lse(merged[j], group.row, heads[j], out_lse, of)


def map_races(how: Scaling) -> set[str]:
    """Returns the warnings that kernels of groups suppress. The rows that `row_map` names are distinct, but the proofs
    cannot use this for scales in tiles, which are stored to row `first_row + t`."""
    return set() if how.is_bare else {"races"}


@scaled_or_bare
def merge_states_mapped(scaling: Scaling) -> Any:
    over, row = scaling.dim, scaling.row

    @kernel(allow=map_races(scaling))
    def merge_states_mapped(
        to: result(scaling, some=True, bare=O), out_lse: InOut[f32, "n H"] | None, of: groups(P if scaling.is_bare else T, row)
    ):
        """Merges groups of partial attention states through maps. For each group g with its parts j in [indptr[g], indptr[g + 1]):

          out[t], out_lse[t] = (+) over j of (parts[i], lses[i]),  t = row_map[g] or g,  i = part_map[j] or j

          out      [n, H, D]  O    written in the rows that groups name
          out_lse  [n, H]     f32  likewise; optional
          parts    [p, H, D]  T    f32 as a rule
          lses     [p, H]     f32
          indptr   [g1]       i32  one entry more than there are groups
          part_map [k]        i32  the row of each part; optional
          row_map  [g]        i32  the row of each group, no two alike; optional
          sinks    [H]        f32  logits without a value, in base e; they count in out but not in out_lse; optional
          min_parts           i32  groups with fewer parts are skipped. 0: groups without parts are written; 2: groups with a single part
                                   keep the row that the writer of the part has stored
          empty_lse           f32  stored in out_lse in place of -inf

        B is the base of the lses, e by default. ResultBase is the base of out_lse, B by default. A group whose row does not exist is
        skipped, and a part that does not exist is empty. A group that violates 0 <= indptr[g] <= indptr[g + 1] has no parts.
        """
        distinct(of.row_map)
        for g, h in grid("g1", over):
            group = group_of(g, of)
            if group.wanted:
                bounds = parts_of(group, of)
                merged = [merged_parts(group, bounds, of, head, row) for head in heads_of(h, scaling)]
                if scaling.is_bare:
                    # The presence of sinks is a run-time value unless it is bound. A masked load gives -inf where sinks
                    # are absent, so no branch is needed.
                    whole = merge(merged[0], sink(load(of.sinks[h], where=present(of.sinks), otherwise=-math.inf), base="e"))
                    store_state(whole, to.out[group.row, h], None)
                    store_lse(merged[0], group.row, h, out_lse, of)
                else:
                    store_group(merged, group, h, to, out_lse, of)

    return merge_states_mapped


@scaled_or_bare
def merge_states_mapped_sums(scaling: Scaling) -> Any:
    over, row = scaling.dim, scaling.row

    @kernel(allow=map_races(scaling))
    def merge_states_mapped_sums(
        to: result(scaling, some=True, bare=O),
        out_lse: InOut[f32, "n H"] | None,
        of: groups(P if scaling.is_bare else T, row),
        beside: Sums(),
    ):
        """Like `merge_states_mapped`, for parts that are not normalised: sums of weights times values, with the maxima
        of the scores in place of lses."""
        distinct(of.row_map)
        for g, h in grid("g1", over):
            group = group_of(g, of)
            if group.wanted:
                bounds = parts_of(group, of)
                merged = [summed_parts(group, bounds, of, beside, head, row) for head in heads_of(h, scaling)]
                if scaling.is_bare:
                    store_state(with_sink(merged[0], of, h), to.out[group.row, h], None)
                    store_lse(merged[0], group.row, h, out_lse, of)
                else:
                    store_group(merged, group, h, to, out_lse, of)

    return merge_states_mapped_sums
