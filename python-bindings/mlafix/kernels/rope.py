"""Split KV combined into rows whose last elements are turned by their position's angles, and then quantised."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from mlafix.dsl import (
    DType,
    In,
    InOut,
    exp2,
    f8e4m3fn,
    f32,
    grid,
    inline,
    kernel,
    load,
    log2,
    present,
    shape,
    splat,
)
from mlafix.kernels.scaling import Family, Scaling, scale_of

T = DType("T", default=f32)
O = DType("O")  # noqa: E741 (the library's name)
S = DType("S")
C = DType("C", default=f32)
I = DType("I", default="i64")  # noqa: E741

# log2(e), in f32.
LOG2_E = float.fromhex("0x1.715476p+0")
# The largest f32.
LARGEST = float.fromhex("0x1.fffffep+127")


@dataclasses.dataclass(frozen=True)
class Angles:
    """Where each row is, and the cosines and sines of positions: arguments of kernels. `sign`: -1 turns back."""

    positions: Any = In[I, "n"]
    cos_sin: Any = In[C, "m two=2 Z"]
    sign: Any = f32


@dataclasses.dataclass(frozen=True)
class Weights:
    """The lses of splits, and the logits of sinks in base e: arguments of kernels."""

    lses: Any = In[f32, "s n H"]
    sinks: Any = In[f32, "H"] | None


@dataclasses.dataclass(frozen=True)
class Pieces:
    """Rows in pieces over one memory, and their scales: arguments of kernels, which `pieces` declares.

    Args:
        out_groups: groups of K elements.
        out_tail: what is left of the last group before the pairs.
        out_rope: the pairs.
        out_scales: of groups, or the one of all.
        last_scales: of the last group.
    """

    out_groups: Any
    out_tail: Any
    out_rope: Any
    out_scales: Any
    last_scales: Any


@dataclasses.dataclass(frozen=True)
class Parts:
    """Splits in such pieces: arguments of kernels, which `parts` declares."""

    groups: Any
    tail: Any
    rope: Any


def _dims_of_pairs(halves: bool) -> str:
    return "(2 Z)" if halves else "(Z 2)"


def pieces(how: Scaling, is_plain: bool, halves: bool, has_tail: bool) -> Pieces:
    dtype = O if is_plain else f8e4m3fn
    tail = InOut[dtype, "n H R"]
    scales, last = In[f32, "one=1"] if how.is_static else InOut[S, "n P Q G"], InOut[S, "n P Q"]
    return Pieces(InOut[dtype, "n H (G K)"], tail if has_tail else tail | None, InOut[dtype, f"n H {_dims_of_pairs(halves)}"],
                  scales | None if is_plain else scales, last | None if is_plain or how.is_static else last)  # fmt: skip


def parts(halves: bool, has_tail: bool) -> Parts:
    tail = In[T, "s n H R"]
    return Parts(In[T, "s n H (G K)"], tail if has_tail else tail | None, In[T, f"s n H {_dims_of_pairs(halves)}"])


@inline
def lse_at(k, t, h, of):
    lse = of.lses[k, t, h]
    return -math.inf if abs(lse) == math.inf else lse


@inline
def largest_of(t, h, of):
    largest = -math.inf
    for k in range(shape("s")):
        largest = max(largest, lse_at(k, t, h, of))
    return largest


@inline
def weight_of(k, t, h, largest, of, to_log2):
    own = lse_at(k, t, h, of)
    return 0.0 if own == -math.inf else exp2((own - largest) * to_log2)


@inline
def store_lse(t, h, largest, total, out_lse, to_log2):
    """The lse without the sink."""
    out_lse[t, h] = -math.inf if largest == -math.inf else largest + log2(total) / to_log2


@inline
def sink_of(h, of, to_log2):
    """The logit of a head's sink in the base of the lses; -inf without one."""
    logit = of.sinks[h]
    own = logit
    if to_log2 != LOG2_E:
        own = min(logit * LOG2_E, LARGEST)
    return -math.inf if abs(logit) == math.inf else own


@inline
def shares_of(h, largest, total, of, to_log2):
    """What rows are multiplied by, and then divided by: beside a sink, weights are those beside the larger of it and the largest lse."""
    share, whole = 1.0, total
    if present(of.sinks):
        logit = sink_of(h, of, to_log2)
        top = max(largest, logit)
        share = 0.0 if largest == -math.inf else exp2((largest - top) * to_log2)
        whole = total * share + (0.0 if logit == -math.inf else exp2((logit - top) * to_log2))
    return share, 1.0 if whole == 0.0 else whole


@inline
def turned(a, b, t, by):
    """Pairs turned by the angle of a row's position; a position that is none gives zeros."""
    position = by.positions[t]
    known = 0 <= position < shape("m")
    c, s = by.cos_sin[position, 0], by.cos_sin[position, 1] * by.sign
    return a * c - b * s if known else 0.0, b * c + a * s if known else 0.0


@inline
def store_pairs(a, b, t, h, target, halves):
    if halves:
        target[t, h, 0] = a
        target[t, h, 1] = b
    else:
        target[t, h, :, 0] = a
        target[t, h, :, 1] = b


@inline
def pairs_of(k, t, h, source, counts, halves):
    if halves:
        a, b = load(source[k, t, h, 0], where=counts), load(source[k, t, h, 1], where=counts)
    else:
        a, b = load(source[k, t, h, :, 0], where=counts), load(source[k, t, h, :, 1], where=counts)
    return a, b


def _made(scaling: Scaling | None, in_base_2: bool = False, halves: bool = False, has_tail: bool = False) -> Any:
    """Rows with pairs behind other elements, which are groups and what is left of the last one's beside the pairs.

    Args:
        halves: pairs are (x[i], x[Z + i]), else neighbours.
        has_tail: whether something is left.
    """
    how = scaling or Scaling()
    is_plain, to_log2 = scaling is None, 1.0 if in_base_2 else LOG2_E

    @kernel(allow={"nan"})  # what divides is finite and not 0, by cases that proofs do not tell apart
    def combine_rope(
        to: pieces(how, is_plain, halves, has_tail),
        out_lse: InOut[f32, "n H"] | None,
        source: parts(halves, has_tail),
        of: Weights(),
        by: Angles(),
    ):
        for t, h in grid("n", "H"):
            largest, total = largest_of(t, h, of), 0.0
            a, b, rows = splat(0.0, "Z"), splat(0.0, "Z"), splat(0.0, "(G K)")
            if has_tail:
                others = splat(0.0, "R")
            for k in range(shape("s")):
                weight = weight_of(k, t, h, largest, of, to_log2)
                total = total + weight
                first, second = pairs_of(k, t, h, source.rope, weight != 0.0, halves)
                a, b = a + first * weight, b + second * weight
                rows = rows + load(source.groups[k, t, h], where=weight != 0.0) * weight
                if has_tail:
                    others = others + load(source.tail[k, t, h], where=weight != 0.0) * weight
            store_lse(t, h, largest, total, out_lse, to_log2)
            share, divisor = shares_of(h, largest, total, of, to_log2)
            a, b = turned(a * share / divisor, b * share / divisor, t, by)
            rows, a, b = how.rounding(rows * share / divisor), how.rounding(a), how.rounding(b)
            if has_tail:
                others = how.rounding(others * share / divisor)
            if is_plain or how.is_static:
                factor = 1.0
                if how.is_static:
                    factor = 1.0 / to.out_scales[0]
                to.out_groups[t, h] = rows * factor
                store_pairs(a * factor, b * factor, t, h, to.out_rope, halves)
                if has_tail:
                    to.out_tail[t, h] = others * factor
            else:
                scale = scale_of(max(abs(rows), along="K"), how)
                to.out_scales[t, h // shape("Q"), h % shape("Q")] = scale
                to.out_groups[t, h] = rows / scale
                most = max(max(abs(a)), max(abs(b)))
                if has_tail:
                    most = max(most, max(abs(others)))
                own = scale_of(most, how)
                to.last_scales[t, h // shape("Q"), h % shape("Q")] = own
                store_pairs(a / own, b / own, t, h, to.out_rope, halves)
                if has_tail:
                    to.out_tail[t, h] = others / own

    return combine_rope


combine_rope = Family(_made)
"""Split KV, combined and turned: `Scaling`, or None for a result that is not quantised; halves; whether the last group has a tail."""
