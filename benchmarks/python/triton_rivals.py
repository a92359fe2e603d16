"""Straightforward Triton: a program for every row, as engines write them."""

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
        new_top = tl.maximum(top, lse)
        old_weight = tl.exp(top - new_top)
        weight = tl.exp(lse - new_top)
        acc = acc * old_weight + row * weight
        total = total * old_weight + weight
        top = new_top
    tl.store(out + (token * H + head) * D + lanes, (acc / total).to(out.dtype.element_ty))
    tl.store(out_lse + token * H + head, tl.log(total) + top)


def prepare_merge(t: Tensors) -> Callable[[], object]:
    """Rows [n, H, D], lse [H, n]; D a power of two."""
    n, heads, dim = t["out"].shape
    return lambda: merge_kernel[(n, heads)](t["out"], t["out_lse"], t["prefix"], t["prefix_lse"], t["suffix"], t["suffix_lse"],
                                            n, heads, dim, num_warps=1)


def prepare_dense(t: Tensors) -> Callable[[], object]:
    """Rows [n, K, H, D], lse [n, K, H]; D a power of two."""
    n, heads, dim = t["out"].shape
    return lambda: merge_dense_kernel[(n, heads)](t["out"], t["out_lse"], t["v"], t["s"], t["v"].shape[1], heads, dim,
                                                  num_warps=1)


def rivals_of(group: str) -> dict[str, Prepare]:
    """Ours in Triton."""
    return {"merge": {"triton": prepare_merge}, "n_way": {"triton": prepare_dense}}.get(group, {})
