"""Adapts mlafix's own merges (mlafix.ops and the drop-ins of mlafix.compat), and an attention in torch whose empty and
padded rows mlafix fills."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from mlafix import ops
from mlafix.compat import flashinfer, sglang

from ..cases import Adapter


def merge_attn_states(a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor, *, out: Any = None, lse: Any = None) -> Any:
    return ops.merge_attn_states(a, a_lse, b, b_lse, out=out, out_lse=lse)


def merge_states_list(a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor, *, out: Any = None, lse: Any = None) -> Any:
    return ops.merge_states_list([a, b], [a_lse, b_lse], out=out, out_lse=lse, lse_layout="nh")


def flashinfer_merge_state(a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor) -> Any:
    return flashinfer.merge_state(a, a_lse, b, b_lse)


def sglang_merge_state_v2(a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor, *, out: Any = None, lse: Any = None) -> Any:
    return sglang.merge_state_v2(a, a_lse, b, b_lse, out, lse)


def attention_with_fixups(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, causal: bool,
                          scale: float, out: Any = None, lse: Any = None) -> Any:  # fmt: skip
    """Computes attention in a loop over the sequences. The loop skips sequences without keys. After it, one kernel
    fills the rows of these sequences, and another the padding rows."""
    out = torch.empty(*q.shape[:2], v.shape[2], dtype=q.dtype, device=q.device) if out is None else out
    lse = torch.empty(q.shape[:2], dtype=torch.float32, device=q.device) if lse is None else lse
    ends, key_ends = cu_seqlens_q.tolist(), cu_seqlens_k.tolist()
    for begin, end, first, last in zip(ends, ends[1:], key_ends, key_ends[1:]):
        if end > begin and last > first:
            group = q.shape[1] // k.shape[1]
            keys, values = (rows[first:last].float().repeat_interleave(group, 1) for rows in (k, v))
            scores = torch.einsum("qhd,khd->hqk", q[begin:end].float(), keys) * scale
            if causal:
                hidden = torch.ones(scores.shape[1:], dtype=torch.bool, device=q.device).triu(last - first - end + begin + 1)
                scores = scores.masked_fill(hidden, -math.inf)
            sums = torch.logsumexp(scores, 2)
            weights = torch.exp(scores - sums[..., None].nan_to_num(neginf=0))
            out[begin:end] = torch.einsum("hqk,khd->qhd", weights, values)
            lse[begin:end] = sums.T
    ops.fixup_zero_kv_rows(out, lse, cu_seqlens_k.diff(), cu_seqlens_q, lse_layout="nh")
    ops.fill_pad_rows(out, cu_seqlens_q[-1:].contiguous(), lse, lse_layout="nh")
    return out, lse


MERGE = Adapter(merge_attn_states, "merge", takes=("out", "lse"), lse_layout="hn", device="any", batch_invariant=True, dtype="bfloat16", dim=64)

ADAPTERS = [
    replace(MERGE, name="mlafix merge_attn_states"),
    replace(MERGE, name="mlafix merge_attn_states, f32", dtype="float32"),
    replace(MERGE, call=merge_states_list, name="mlafix merge_states_list", lse_layout="nh"),
    replace(MERGE, call=flashinfer_merge_state, name="mlafix.compat.flashinfer.merge_state", takes=(), lse_layout="nh", lse_base="2"),
    replace(MERGE, call=sglang_merge_state_v2, name="mlafix.compat.sglang.merge_state_v2", lse_layout="nh"),
    Adapter(attention_with_fixups, name="a loop in torch with mlafix's fixups", takes=("out", "lse"), device="cpu"),
]
