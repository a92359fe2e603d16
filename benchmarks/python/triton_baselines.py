"""Straightforward Triton kernels, as engines write them. They have one program for every row, except
combine_tile_kernel, which has several for a row."""

from __future__ import annotations

from typing import Callable

import triton
import triton.language as tl
from work import Prepare, Tensors


@triton.jit
def merge_kernel(out, out_lse, prefix, prefix_lse, suffix, suffix_lse, n, H: tl.constexpr, D: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    p_lse = tl.load(prefix_lse + head * n + token)
    s_lse = tl.load(suffix_lse + head * n + token)
    top = tl.maximum(p_lse, s_lse)
    p_weight = tl.exp(p_lse - top)
    s_weight = tl.exp(s_lse - top)
    total = p_weight + s_weight
    at = (token * H + head) * D + tl.arange(0, D)
    p = tl.load(prefix + at).to(tl.float32)
    s = tl.load(suffix + at).to(tl.float32)
    tl.store(out + at, (p * (p_weight / total) + s * (s_weight / total)).to(out.dtype.element_ty))
    tl.store(out_lse + head * n + token, tl.log(total) + top)


@triton.jit
def add_state(top, total, acc, lse, row):
    """Adds a state to a running maximum, sum and weighted row."""
    new_top = tl.maximum(top, lse)
    old_weight = tl.exp(top - new_top)
    weight = tl.exp(lse - new_top)
    acc = acc * old_weight + row * weight
    total = total * old_weight + weight
    return new_top, total, acc


@triton.jit
def merge_dense_kernel(out, out_lse, v, s, K: tl.constexpr, H: tl.constexpr, D: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    lanes = tl.arange(0, D)
    top = -float("inf")
    total = 0.0
    acc = tl.zeros((D,), dtype=tl.float32)
    for k in range(K):
        lse = tl.load(s + (token * K + k) * H + head)
        row = tl.load(v + ((token * K + k) * H + head) * D + lanes).to(tl.float32)
        top, total, acc = add_state(top, total, acc, lse, row)
    tl.store(out + (token * H + head) * D + lanes, (acc / total).to(out.dtype.element_ty))
    tl.store(out_lse + token * H + head, tl.log(total) + top)


@triton.jit
def combine_kernel(out, out_lse, partial, partial_lse, R, S, D: tl.constexpr):
    """Combines splits with one program per row. The program processes one split after the other with a running maximum,
    as SGLang's decode does."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, D)
    top = -float("inf")
    total = 0.0
    acc = tl.zeros((D,), dtype=tl.float32)
    for s in range(S):
        lse = tl.load(partial_lse + s * R + row)
        part = tl.load(partial + (s * R + row) * D + lanes)
        top, total, acc = add_state(top, total, acc, lse, part)
    tl.store(out + row * D + lanes, (acc / total).to(out.dtype.element_ty))
    tl.store(out_lse + row, tl.log(total) + top)


@triton.jit
def combine_tile_kernel(out, out_lse, partial, partial_lse, R, S, D: tl.constexpr, SPLITS: tl.constexpr, COLUMNS: tl.constexpr):
    """Combines splits with one program for COLUMNS columns of a row. The program reads all splits of these columns at
    once."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    splits = tl.arange(0, SPLITS)
    lses = tl.load(partial_lse + splits * R + row, mask=splits < S, other=-float("inf"))
    top = tl.max(lses, 0)
    weights = tl.exp(lses - top)
    total = tl.sum(weights, 0)
    at = (splits[:, None].to(tl.int64) * R + row) * D + columns[None, :]
    parts = tl.load(partial + at, mask=splits[:, None] < S, other=0.0)
    merged = tl.sum(parts * weights[:, None], 0) / total
    tl.store(out + row * D + columns, merged.to(out.dtype.element_ty))
    if tl.program_id(1) == 0:
        tl.store(out_lse + row, tl.log(total) + top)


@triton.jit
def ragged_kernel(out, out_lse, v, s, indptr, H: tl.constexpr, D: tl.constexpr):
    """Merges the states of each segment with one program per row. The program processes one state after the other."""
    segment = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    lanes = tl.arange(0, D)
    top = -float("inf")
    total = 0.0
    acc = tl.zeros((D,), dtype=tl.float32)
    begin = tl.load(indptr + segment).to(tl.int64)
    end = tl.load(indptr + segment + 1).to(tl.int64)
    for state in range(begin, end):
        at = state * H + head
        lse = tl.load(s + at)
        row = tl.load(v + at * D + lanes).to(tl.float32)
        top, total, acc = add_state(top, total, acc, lse, row)
    tl.store(out + (segment * H + head) * D + lanes, (acc / total).to(out.dtype.element_ty))
    tl.store(out_lse + segment * H + head, tl.log(total) + top)


def prepare_merge(t: Tensors) -> Callable[[], object]:
    """Prepares a merge: rows [n, H, D], lses [H, n], D a power of two."""
    n, heads, dim = t["out"].shape
    return lambda: merge_kernel[(n, heads)](t["out"], t["out_lse"], t["prefix"], t["prefix_lse"], t["suffix"], t["suffix_lse"],
                                            n, heads, dim, num_warps=1)


def prepare_dense(t: Tensors) -> Callable[[], object]:
    """Prepares a merge of K states: rows [n, K, H, D], lses [n, K, H], D a power of two."""
    n, heads, dim = t["out"].shape
    return lambda: merge_dense_kernel[(n, heads)](t["out"], t["out_lse"], t["v"], t["s"], t["v"].shape[1], heads, dim,
                                                  num_warps=1)


def prepare_combine(t: Tensors) -> Callable[[], object]:
    """Prepares a combine of partials [S, B, 1, H, D] with lses in the order [S, B, H, 1], D a power of two."""
    splits, batch, _, heads, dim = t["partial"].shape
    rows = batch * heads
    return lambda: combine_kernel[(rows,)](t["out"], t["out_lse"], t["partial"], t["partial_lse"], rows, splits, dim, num_warps=4,
                                           num_stages=2)


def prepare_combine_tile(t: Tensors) -> Callable[[], object]:
    """Prepares a combine of partials [S, B, 1, H, D] in tiles. A tile has all splits of some columns:
    about 32 KB of partials, but at least 32 columns."""
    splits, batch, _, heads, dim = t["partial"].shape
    rows, tile = batch * heads, triton.next_power_of_2(splits)
    columns = min(dim, max(32, 8192 // tile))
    return lambda: combine_tile_kernel[(rows, dim // columns)](t["out"], t["out_lse"], t["partial"], t["partial_lse"], rows, splits, dim,
                                                               tile, columns, num_warps=4)


def prepare_ragged(t: Tensors) -> Callable[[], object]:
    """Prepares a merge of segments: rows [nnz, H, D], lses [nnz, H], D a power of two."""
    segments, heads, dim = t["out"].shape
    return lambda: ragged_kernel[(segments, heads)](t["out"], t["out_lse"], t["v"], t["s"], t["indptr"], heads, dim, num_warps=1)


def baselines_of(group: str) -> dict[str, Prepare]:
    """Returns the Triton baselines of a group."""
    return {"merge": {"triton": prepare_merge}, "n_way": {"triton": prepare_dense}, "ragged": {"triton": prepare_ragged},
            "combine": {"triton": prepare_combine, "triton, tile": prepare_combine_tile}}.get(group, {})
