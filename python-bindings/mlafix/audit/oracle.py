"""Computes attention and merges in f64, with bounds on the error of a correct backend.

The bounds come from a forward error analysis; docs/Audit.md explains the terms. Let u be the unit roundoff of f32
accumulation (2^-23, since some accumulators truncate). Then a score of D products has the error

    ds = ((D + 4) u + t) * scale * sum |q k|  +  u |s - max|  +  4 u             t = 2^-10 for TF32, else 0

Weights are normalised. With L = log(sum p exp(ds)), the weight p of a key is thus wrong by a factor of at most
exp(ds + L). A row is the sum of m weighted values. Weights may be rounded to the dtype (unit roundoff w, smallest
positive number z) before or after they are summed for the lse. The result is rounded as well:

    |out error| <= sum p |v| (exp(ds + L) - 1 + w + (m + 8) u)  +  z sum |v|  +  w |out|
    |lse error| <= L + w + (m + 8) u + 4 u |lse|

Scaled keys and values may be rounded to the dtype of q. This adds 2 w scale sum |q k| to ds and w sum p |v| to the error
of out. A softcap and ALiBi are computed in f32. If q is narrower than f32, tanh may be the GPU's approximation with an
error of 2^-10.

Rows that see no key are exact: 0 and -inf.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from .cases import Adapter, Case, Values, alibi_slopes, head_scales

UNIT = 2.0**-23


@dataclass
class Want:
    """The values that the rows of a result must have, in f64 and base e, with bounds on their errors."""

    out: torch.Tensor  # [n, H, Dv]
    lse: torch.Tensor  # [n, H]
    out_error: torch.Tensor
    lse_error: torch.Tensor
    keys: torch.Tensor  # [n]: number of keys that the row sees
    of: torch.Tensor  # [n]: number of keys in the row's sequence


def own_keys(adapter: Adapter, q_len: int, kv_len: int) -> torch.Tensor:
    """Returns the index of each query's own key, [Lq, 1]: the key at the query's position in the sequence. A causal
    mask hides the keys after it. An index below 0, or of Lk or more, means that the query has no key of its own."""
    return torch.arange(q_len)[:, None] + (kv_len - q_len if adapter.alignment == "bottom-right" else 0)


def visible(case: Case, adapter: Adapter, q_len: int, kv_len: int) -> torch.Tensor:
    """Returns a mask, bool [Lq, Lk], that is true for the keys a query sees."""
    own = own_keys(adapter, q_len, kv_len)
    key = torch.arange(kv_len)[None, :]
    seen = torch.ones(q_len, kv_len, dtype=torch.bool)
    if case.causal:
        seen &= key <= own
    left, right = case.window
    if left >= 0:
        seen &= key >= own - left
    if right >= 0:
        seen &= key <= own + right
    return seen


def reference(case: Case, adapter: Adapter, values: Values) -> Want:
    """Computes the reference of all sequences in f64."""
    parts = [sequence(case, adapter, *each, values.sinks) for each in zip(values.q, values.k, values.v)]
    if not parts:
        value_dim = case.value_dim or case.dim
        none = torch.zeros(0, case.heads, dtype=torch.float64)
        rows = torch.zeros(0, case.heads, value_dim, dtype=torch.float64)
        return Want(rows, none, rows, none, torch.zeros(0), torch.zeros(0))
    return Want(*(torch.cat(columns) for columns in zip(*parts)))


def sequence(case: Case, adapter: Adapter, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
             sinks: torch.Tensor | None) -> tuple[torch.Tensor, ...]:
    """Computes the reference of one sequence in f64: q [Lq, H, D], k [Lk, Hk, D], v [Lk, Hk, Dv]."""
    q_len, kv_len, group = q.shape[0], k.shape[0], case.heads // case.kv_heads
    q = q.double().transpose(0, 1)  # [H, Lq, D]
    scales = [head_scales(scale, case.kv_heads, adapter) for scale in (case.k_scale, case.k_scale if adapter.values_in_keys else case.v_scale)]
    k, v = ((rows.double() * scale).repeat_interleave(group, 1).transpose(0, 1) for rows, scale in zip((k, v), scales))
    seen, far = visible(case, adapter, q_len, kv_len), (own_keys(adapter, q_len, kv_len) - torch.arange(kv_len)[None, :]).abs()
    step = max(1 << 18, kv_len) // max(kv_len, 1)  # number of queries at a time, so that their scores fit into the CPU's cache
    parts = [rows(case, adapter, q[:, i : i + step], k, v, seen[i : i + step], far[i : i + step], sinks) for i in range(0, max(q_len, 1), step)]
    out, lse, out_error, lse_error = (torch.cat(columns) for columns in zip(*parts))
    return out, lse, out_error, lse_error, seen.sum(1), torch.full((q_len,), kv_len)


def rows(case: Case, adapter: Adapter, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor, far: torch.Tensor,
         sinks: torch.Tensor | None) -> tuple[torch.Tensor, ...]:
    """Computes out, lse and their error bounds for some queries of a sequence.

    The arguments are q [H, n, D], k [H, Lk, D] and v [H, Lk, Dv]. `seen` [n, Lk] is true for visible keys; `far` [n,
    Lk] has the distance of each key from the query's own key.
    """
    scores, error = score(case, adapter, q, k, far)
    scores = scores.masked_fill(~seen, -math.inf)
    if sinks is not None:  # a sink acts as one more key with value 0, in rows that see at least one key
        sink = sinks.double()[:, None, None].expand(-1, q.shape[1], 1).masked_fill(~seen.any(1)[:, None], -math.inf)
        scores, error = torch.cat([scores, sink], 2), torch.cat([error, torch.zeros_like(sink)], 2)
        v = torch.cat([v, v.new_zeros(v.shape[0], 1, v.shape[2])], 1)
    lse = torch.logsumexp(scores, 2) if scores.shape[2] else scores.new_full(scores.shape[:2], -math.inf)
    weights = torch.where(scores > -math.inf, torch.exp(scores - lse[:, :, None]), 0.0)
    out = weights @ v
    out_error, lse_error = bounds(case, adapter, scores, error, weights, v, out, lse)
    if sinks is not None and adapter.lse_has_sinks:  # the lse of a row without visible keys is the sink
        alone = sinks.double()[:, None].expand_as(lse)
        lse, lse_error = torch.where(seen.any(1), lse, alone), torch.where(seen.any(1), lse_error, 4 * UNIT * (1 + alone.abs()))
    elif sinks is not None:
        lse = torch.logsumexp(scores[..., :-1], 2) if scores.shape[2] > 1 else torch.full_like(lse, -math.inf)
    return out.transpose(0, 1), lse.T, out_error.transpose(0, 1), lse_error.T


def score(case: Case, adapter: Adapter, q: torch.Tensor, k: torch.Tensor, far: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Computes scores [H, n, Lk] before the mask, and their error bounds. Applies the scale first, then the softcap,
    then the ALiBi bias."""
    scale, is_narrow = (case.scale or 1.0) * case.dim**-0.5, adapter.dtype != "float32"
    product = (case.dim + 4) * UNIT + (2.0**-10 if adapter.matmul == "tf32" and not is_narrow else 0.0)
    product += torch.finfo(getattr(torch, adapter.dtype)).eps if case.k_scale != 1 else 0.0
    scores = q @ k.transpose(1, 2) * scale
    error = product * (q.abs() @ k.abs().transpose(1, 2) * scale)
    if case.softcap:
        scores = case.softcap * torch.tanh(scores / case.softcap)
        error = error + (2.0**-10 if is_narrow else 8 * UNIT) * scores.abs()
    if case.alibi:
        bias = alibi_slopes(case.heads).double()[:, None, None] * far
        scores, error = scores - bias, error + 2 * UNIT * bias
    return scores, error


def bounds(case: Case, adapter: Adapter, scores: torch.Tensor, error: torch.Tensor, weights: torch.Tensor, v: torch.Tensor,
           out: torch.Tensor, lse: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the error bounds of out and lse, by the formulas at the top of the module."""
    kind = torch.finfo(getattr(torch, adapter.dtype))
    rounding, least, terms = kind.eps / 2, kind.smallest_normal * kind.eps, scores.shape[2] + 8
    live = scores > -math.inf
    top = scores.max(2).values if scores.shape[2] else lse
    score_error = torch.where(live, error + UNIT * torch.where(live, top[:, :, None] - scores, 0.0) + 4 * UNIT, 0.0)
    total = torch.log((weights * torch.exp(score_error)).sum(2).clamp(min=1.0))  # L in the formulas
    relative = torch.expm1(score_error + total[:, :, None]) + rounding + terms * UNIT + (rounding if (case.k_scale, case.v_scale) != (1, 1) else 0.0)
    out_error = (weights * relative) @ v.abs() + least * (live.double() @ v.abs()) + rounding * out.abs()
    lse_error = total + rounding + terms * UNIT + 4 * UNIT * torch.where(lse > -math.inf, lse.abs(), 0.0)
    return out_error.nan_to_num(nan=math.inf, posinf=math.inf), torch.where(lse > -math.inf, lse_error, 0.0)


def merged(outs: torch.Tensor, lses: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Merges K states along axis 0 by M1 to M6 of docs/Contract.md: payloads [K, n, H, D] and lses [K, n, H], in f64
    and base e."""
    empty, faulty = torch.isinf(lses), torch.isnan(lses)
    scores = torch.where(empty | faulty, -math.inf, lses)
    lse = torch.logsumexp(scores, 0)
    weights = torch.where(scores > -math.inf, torch.exp(scores - lse), 0.0)
    # A state of weight 0 contributes nothing, even if its payload is NaN or infinite.
    out = torch.where(weights[..., None] > 0, weights[..., None] * outs, 0.0).sum(0)
    broken = faulty.any(0)
    return torch.where(broken[..., None], math.nan, out), torch.where(broken, math.nan, lse)
