"""Attention and merges in f64, and how far a correct backend may be from them.

The bounds are a forward error analysis, to be read beside docs/Audit.md. With u the unit roundoff of f32 accumulation
(2^-23, since some accumulators truncate), a score of D products has the error

    ds = ((D + 4) u + t) * scale * sum |q k|  +  u |s - max|  +  4 u             t = 2^-10 for TF32, else 0

Weights are normalised, so with L = log(sum p exp(ds)) the weight of a key is off by a factor of at most exp(ds + L). The
row is the sum of m weighted values. Weights may be rounded to the dtype (unit roundoff w, least number z), also before
they are summed for the lse; the result is rounded:

    |out error| <= sum p |v| (exp(ds + L) - 1 + w + (m + 8) u)  +  z sum |v|  +  w |out|
    |lse error| <= L + w + (m + 8) u + 4 u |lse|

Rows that see no key are exact: 0 and -inf.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from .cases import Adapter, Case, Values

UNIT = 2.0**-23


@dataclass
class Want:
    """The values that rows must have, in f64 and base e, and their bounds."""

    out: torch.Tensor  # [n, H, Dv]
    lse: torch.Tensor  # [n, H]
    out_error: torch.Tensor
    lse_error: torch.Tensor
    keys: torch.Tensor  # [n]: how many keys the row sees
    of: torch.Tensor  # [n]: how many keys its sequence has


def visible(case: Case, adapter: Adapter, q_len: int, kv_len: int) -> torch.Tensor:
    """bool [Lq, Lk]: which keys a query sees."""
    begin = kv_len - q_len if adapter.alignment == "bottom-right" else 0
    own = torch.arange(q_len)[:, None] + begin
    key = torch.arange(kv_len)[None, :]
    seen = torch.ones(q_len, kv_len, dtype=torch.bool)
    if case.causal:
        seen &= key <= own
    if case.window >= 0:
        seen &= (key >= own - case.window) & (key <= own + case.window)
    return seen


def reference(case: Case, adapter: Adapter, values: Values) -> Want:
    """Every sequence in f64."""
    parts = [sequence(case, adapter, *each, values.sinks) for each in zip(values.q, values.k, values.v)]
    if not parts:
        value_dim = adapter.value_dim or case.dim
        none = torch.zeros(0, case.heads, dtype=torch.float64)
        rows = torch.zeros(0, case.heads, value_dim, dtype=torch.float64)
        return Want(rows, none, rows, none, torch.zeros(0), torch.zeros(0))
    return Want(*(torch.cat(columns) for columns in zip(*parts)))


def sequence(case: Case, adapter: Adapter, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
             sinks: torch.Tensor | None) -> tuple[torch.Tensor, ...]:
    """Rows of one sequence: q [Lq, H, D], k [Lk, Hk, D], v [Lk, Hk, Dv]."""
    q_len, kv_len, group = q.shape[0], k.shape[0], case.heads // case.kv_heads
    q = q.double().transpose(0, 1)  # [H, Lq, D]
    k = k.double().repeat_interleave(group, 1).transpose(0, 1)
    v = v.double().repeat_interleave(group, 1).transpose(0, 1)
    seen = visible(case, adapter, q_len, kv_len)
    scale = case.dim**-0.5
    scores = (q @ k.transpose(1, 2) * scale).masked_fill(~seen, -math.inf)
    sizes = q.abs() @ k.abs().transpose(1, 2) * scale
    if sinks is not None:  # a key whose value is 0, in the softmax of rows that see another
        sink = sinks.double()[:, None, None].expand(-1, q_len, 1).masked_fill(~seen.any(1)[:, None], -math.inf)
        scores, sizes = torch.cat([scores, sink], 2), torch.cat([sizes, torch.zeros_like(sink)], 2)
        v = torch.cat([v, torch.zeros_like(v[:, :1]) if kv_len else v.new_zeros(v.shape[0], 1, v.shape[2])], 1)
    lse = torch.logsumexp(scores, 2) if scores.shape[2] else scores.new_full(scores.shape[:2], -math.inf)
    weights = torch.where(scores > -math.inf, torch.exp(scores - lse[:, :, None]), 0.0)
    out = weights @ v
    top = scores.max(2).values if scores.shape[2] else lse
    out_error, lse_error = bounds(adapter, case.dim, scores, sizes, weights, v, out, lse, top)
    if sinks is not None and not adapter.lse_has_sinks:
        lse = torch.logsumexp(scores[..., :-1], 2) if kv_len else torch.full_like(lse, -math.inf)
    keys, of = seen.sum(1), torch.full((q_len,), kv_len)
    return out.transpose(0, 1), lse.T, out_error.transpose(0, 1), lse_error.T, keys, of


def bounds(adapter: Adapter, dim: int, scores: torch.Tensor, sizes: torch.Tensor, weights: torch.Tensor, v: torch.Tensor,
           out: torch.Tensor, lse: torch.Tensor, top: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The errors of out and lse: the formulas above."""
    kind = torch.finfo(getattr(torch, adapter.dtype))
    rounding, least, terms = kind.eps / 2, kind.smallest_normal * kind.eps, scores.shape[2] + 8
    live = scores > -math.inf
    far = torch.where(live, top[:, :, None] - scores, 0.0)
    product = (dim + 4) * UNIT + (2.0**-10 if adapter.matmul == "tf32" and adapter.dtype == "float32" else 0.0)
    score_error = torch.where(live, product * sizes + UNIT * far + 4 * UNIT, 0.0)
    total = torch.log((weights * torch.exp(score_error)).sum(2).clamp(min=1.0))  # L
    relative = torch.expm1(score_error + total[:, :, None]) + rounding + terms * UNIT
    out_error = (weights * relative) @ v.abs() + least * (live.double() @ v.abs()) + rounding * out.abs()
    lse_error = total + rounding + terms * UNIT + 4 * UNIT * torch.where(lse > -math.inf, lse.abs(), 0.0)
    return out_error, torch.where(lse > -math.inf, lse_error, 0.0)


def merged(outs: torch.Tensor, lses: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """States [K, n, H, D] and [K, n, H] in f64 and base e, merged along axis 0: N1 to N6 of docs/Contract.md."""
    empty, faulty = torch.isinf(lses), torch.isnan(lses)
    scores = torch.where(empty | faulty, -math.inf, lses)
    lse = torch.logsumexp(scores, 0)
    weights = torch.where(scores > -math.inf, torch.exp(scores - lse), 0.0)
    # A state without weight counts for nothing, whatever its payload holds.
    out = torch.where(weights[..., None] > 0, weights[..., None] * outs, 0.0).sum(0)
    broken = faulty.any(0)
    return torch.where(broken[..., None], math.nan, out), torch.where(broken, math.nan, lse)
