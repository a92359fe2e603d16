"""Backends that are unusual: slow, compiling, with state, without some results, or methods. Some are correct; others
have a fault that only an unusual backend has."""

from __future__ import annotations

import math
import time
from typing import Any

import torch
from audit_backends import dense, paged, ragged, ragged_with_options, reduce
from audit_faults import many_heads_crash, stale_rows

Call = tuple[torch.Tensor, torch.Tensor]


def slow_and_stale(*tensors: torch.Tensor, **given: Any) -> Call:
    """Is as slow as an interpreter, and does not write rows without keys."""
    time.sleep(0.3)
    return stale_rows(*tensors, **given)


SEEN: set[Any] = set()


def compiles(q: torch.Tensor, *tensors: torch.Tensor, **given: Any) -> Call:
    """Is correct. The first call with each number of heads takes as long as a compilation, except for 4 heads."""
    if q.shape[1] not in SEEN:
        SEEN.add(q.shape[1])
        time.sleep(0.8 if q.shape[1] != 4 else 0.0)
    return ragged(q, *tensors, **given)


def without_lse(*tensors: torch.Tensor, **given: Any) -> torch.Tensor:
    """Is correct, but returns no lse."""
    return ragged(*tensors, **given)[0]


def without_lse_and_sinks(*tensors: torch.Tensor, sinks: Any = None, **given: Any) -> torch.Tensor:
    return ragged(*tensors, **given)[0]


def another_keyword(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, causal: bool,
                    softmax_scale: float) -> Call:
    return ragged(q, k, v, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, causal=causal, scale=softmax_scale)


def heads_first_in_out(*tensors: torch.Tensor, lse: Any = None, **given: Any) -> Call:
    """Returns an lse [H, n], although the adapter says otherwise. A buffer for the lse must have this shape, too."""
    out, stats = ragged(*tensors, **given)
    if lse is not None and lse.shape != stats.T.shape:
        raise ValueError(f"lse: expected {list(stats.T.shape)}, got {list(lse.shape)}")
    return out, stats.T.contiguous() if lse is None else lse.copy_(stats.T)


def two_faults(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, **given: Any) -> Call:
    """Reads values past the keys, and reads lengths as if they were contiguous. Each of these faults makes live rows
    wrong."""
    offsets = cu_seqlens_k.as_strided(cu_seqlens_k.shape, (1,)).clamp(max=k.shape[0])
    out, lse = ragged(q, k, v, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=offsets.cummax(0).values, **given)
    if int(cu_seqlens_k[-1]) < v.shape[0]:
        out += (0.0 * v[int(cu_seqlens_k[-1]) :].sum()).to(out.dtype)
    return out, lse


def two_options(*tensors: torch.Tensor, window_size: Any = (-1, -1), softcap: float = 0.0, **given: Any) -> Call:
    """Multiplies results by 0.5 if there is a window, and by 0.75 if there is a softcap."""
    out, lse = ragged_with_options(*tensors, window_size=window_size, softcap=softcap, **given)
    return out.mul_(0.5 if window_size != (-1, -1) else 1.0).mul_(0.75 if softcap else 1.0), lse


def two_lengths(*tensors: torch.Tensor, seq_lens: torch.Tensor, **given: Any) -> Call:
    """Ignores the last page if it is full. Also ignores the last key if it alone follows whole tiles of 64."""
    page = torch.where(seq_lens % 16 == 0, 16, 0)
    key = torch.where((seq_lens > 64) & (seq_lens % 64 == 1), 1, 0)
    return paged(*tensors, seq_lens=(seq_lens - page - key).clamp(min=0), **given)


def lse_of_16_bits(*tensors: torch.Tensor, **given: Any) -> Call:
    """Returns an lse in bf16. Rows without keys become ones."""
    out, lse = ragged(*tensors, **given)
    return torch.where((lse == -math.inf)[..., None], 1.0, out), lse.bfloat16()


def stale_and_crashes(q: torch.Tensor, *tensors: torch.Tensor, **given: Any) -> Call:
    """Does not write rows without keys, and kills the process for 96 heads."""
    return many_heads_crash(q, *tensors, **given) if q.shape[1] >= 96 else stale_rows(q, *tensors, **given)


def plan_of_the_first(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, **given: Any) -> Call:
    """Uses the first plan for each shape, and ignores later ones (pytorch/torchtitan#3709)."""
    plan = PLANS.setdefault((q.shape, k.shape, cu_seqlens_q.shape), (cu_seqlens_q.clone(), cu_seqlens_k.clone()))
    return ragged(q, k, v, cu_seqlens_q=plan[0], cu_seqlens_k=plan[1], **given)


PLANS: dict[Any, Any] = {}


def fails_after_small(q: torch.Tensor, *tensors: torch.Tensor, **given: Any) -> Call:
    """Allocates a buffer in the first call. Later calls that have more rows lose the last ones."""
    most = ROWS.setdefault(given["causal"], max(q.shape[0], 8))
    out, lse = ragged(q, *tensors, **given)
    out[most:], lse[most:] = 0, -math.inf
    return out, lse


ROWS: dict[bool, int] = {}


def leaks(*tensors: torch.Tensor, **given: Any) -> Call:
    KEPT.append(ragged(*tensors, **given)[0].clone())
    return ragged(*tensors, **given)


KEPT: list[torch.Tensor] = []


def ignores_out(*tensors: torch.Tensor, out: Any = None, lse: Any = None, **given: Any) -> Call:
    return ragged(*tensors, **given)


def lse_of_other_ranks(out: torch.Tensor, lse: torch.Tensor, *, group: Any) -> Call:
    """Returns the lse of the merged state on rank 0 only."""
    merged, total = reduce(out, lse, group=group)
    return merged, total if torch.distributed.get_rank(group) == 0 else lse


def causal_decode(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, **given: Any) -> Call:
    """In decode, lets a query see only the first key, like torch's is_causal."""
    if causal and q.shape[1] == 1:
        return dense(q, k[:, :1], v[:, :1], causal=False, **{**given, "seq_lens_k": given["seq_lens_k"].clamp(max=1)})
    return dense(q, k, v, causal=causal, **given)


class Layer:
    """An attention layer of an engine. The backend is its method `attention`."""

    def attention(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, causal: bool,
                  scale: float) -> Call:
        return ragged(q, k, v, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, causal=causal, scale=scale)
