"""The parts of one call of a backend. Plain data and torch: scripts that show a finding contain these lines."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass(frozen=True)
class Adapter:
    """A backend and its declared properties."""

    call: Callable[..., Any]  # or an object with `run`, and with `plan` and `store` if it has them
    form: str = "ragged"  # "dense", "paged", "ragged_paged", "merge" or "reduce"
    name: str = ""
    takes: tuple[str, ...] = ()  # the optional keyword arguments of docs/Audit.md that it has
    returns_lse: bool = True
    lse_layout: str = "nh"  # "hn": heads before tokens
    lse_base: str = "e"  # or "2"
    lse_has_sinks: bool = False  # the lse counts the sinks, too
    causal: bool | str = True  # the keyword is there, and may be True; "always": it is not, and every mask is causal
    alignment: str = "bottom-right"  # of the causal mask and of windows; "top-left"
    graph_safe: bool = True  # a call may be captured in a CUDA graph
    batch_invariant: bool = False  # claims that a row has the same bits in every batch
    dtype: str = "float32"
    kv_dtype: str = ""  # of keys and values where it is not `dtype`: "float8_e4m3fn", "float8_e5m2"
    kv_scales: str = "number"  # k_scale and v_scale are floats; "heads": tensors [Hk] f32
    default_scale: bool = False  # a call may leave `scale` out: it is D ** -0.5 then
    alignment_bytes: int = 0  # of pointers and of rows of heads; 0: that of the dtype
    shares_workspace: bool = False  # says that calls of two streams must not overlap
    device: str = "cpu"
    heads: int = 4
    kv_heads: int = 2
    dim: int = 32
    value_dim: int = 0  # 0: as dim
    values_in_keys: bool = False  # values are the first elements of keys (MLA)
    latent: bool = False  # one tensor kv_cache [pages, page_size, D] in place of k_cache and v_cache (MLA)
    page_size: int = 16
    head_counts: tuple[int, ...] = (24, 48, 96, 128)
    ratios: tuple[int, ...] = (1, 3, 5, 7)  # numbers of query heads for each head of keys that are tried beside its own
    matmul: str = "ieee"  # "tf32": products of f32 are rounded to 11 bits


@dataclass(frozen=True)
class Case:
    """One call of attention: its sequences and options, and the contents of memory around them."""

    q_lens: tuple[int, ...] = (3, 1, 4)
    kv_lens: tuple[int, ...] = (5, 9, 4)
    ids: tuple[int, ...] = ()  # the values of a sequence depend on its id, by default its position
    heads: int = 4
    kv_heads: int = 2
    dim: int = 32
    value_dim: int = 0  # 0: as dim
    causal: bool = False
    window: tuple[int, int] = (-1, -1)  # keys that a query sees left and right of its own, which it sees; -1: all
    sinks: bool = False
    softcap: float = 0.0  # scores are softcap * tanh(score / softcap); 0: as they are
    alibi: bool = False  # a slope for each head times the distance of a key from the query's own is subtracted
    k_scale: float = 1.0  # keys are what the cache holds times this
    v_scale: float = 1.0
    pad_rows: int = 0  # rows of q behind the last sequence
    pad_requests: int = 0  # requests without rows behind the last
    pad_length: int = 0  # what the lengths say of such requests
    magnitude: float = 1.0  # of the scores
    shift: float = 0.0  # added to every score
    scale: float = 1.0  # times dim ** -0.5; 0: the call gives none
    peaks: bool = False  # the first and the last key of each sequence weigh as much as all others together
    longer: int = 0  # how much max_seqlen_q and max_seqlen_k are too large
    before: str = "nan"  # what out and lse hold: "nan", "stale", or "none": they are not passed
    beyond: str = "zero"  # what lies behind a sequence's keys, and in pages of nobody: "zero", "nan", "inf"
    # The layout of q, k, v and out: "heads" (gaps), "packed" (slices of one tensor), "values" (gaps in v alone), "far" (offsets past 2^31),
    # "odd" (pointers and rows of heads that have the least alignment).
    layout: str = "dense"
    lengths: str = "dense"  # of lengths and tables: "strided"
    # The block table: "shuffled", "shared" (all begin with one prefix), "equal" (all are beginnings of one), "dead" (entries that no
    # length reaches are -1 or 2^31 - 1).
    pages: str = "straight"
    num_splits: int = 0
    # The difference of an earlier call of this process: "lengths", "sizes", "values", "scale", "causal", "window", …. "calls" is 200 equal
    # calls, "streams" a call that runs at the same time.
    after: str = ""


@dataclass(frozen=True)
class StateCase:
    """Partial states to be merged: `parts` of them for each of `rows` x `heads`."""

    rows: int = 5
    heads: int = 4
    dim: int = 32
    parts: int = 2
    empty: tuple[tuple[int, int], ...] = ()  # (part, row) whose state is empty
    empty_lse: float = float("-inf")
    payload: str = "nan"  # what empty states hold: "nan", "inf", "zero"
    nan_lse: tuple[tuple[int, int], ...] = ()  # (part, row) whose lse is NaN
    magnitude: float = 1.0  # of the lse
    shift: float = 0.0  # added to every lse
    before: str = "nan"
    layout: str = "dense"  # "heads" (gaps), "in place" (out is the first part), "in place 2" (the second), "far", "odd"
    first: int = 0  # rows take their values from this number on
    after: str = ""  # as of a Case: "sizes", "values", "calls"


@dataclass
class Values:
    """The numbers of a case, for each sequence."""

    q: list[torch.Tensor]  # [Lq, H, D]
    k: list[torch.Tensor]  # [Lk, Hk, D], as stored
    v: list[torch.Tensor]  # [Lk, Hk, Dv], as stored
    sinks: torch.Tensor | None  # [H] f32


@dataclass
class Got:
    """The results of a call: rows of all tokens in their order, those of padding last."""

    out: torch.Tensor  # [n, H, Dv], as stored
    lse: torch.Tensor | None  # [n, H], as stored
    raw_lse: torch.Tensor | None  # as returned
    touched: list[str]  # memory that no call may change, and did
    given: dict[str, torch.Tensor] = field(default_factory=dict)  # outputs that were given, where others were returned


@dataclass(frozen=True)
class Fault:
    """A breach of the contract. `kind` names it in words that are equal for equal causes."""

    kind: str
    expected: str
    got: str
    severity: str = "error"


def draw(shape: tuple[int, ...], seed: int) -> torch.Tensor:
    """Normal numbers that depend on the seed alone."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def alibi_slopes(heads: int) -> torch.Tensor:
    """The slope of each head, [H] f32."""
    return 2.0 ** (-8.0 * torch.arange(1, heads + 1, dtype=torch.float32) / heads)


def head_scales(scale: float, heads: int, adapter: Adapter) -> torch.Tensor:
    """The scale of each head of keys or values, [Hk, 1] f64: `scale` for all of them, or another f32 for each."""
    if adapter.kv_scales == "number":
        return torch.full((heads, 1), scale, dtype=torch.float64)
    return (scale ** (1 + torch.arange(heads, dtype=torch.float64) / heads)).float().double()[:, None]


def stored(rows: torch.Tensor, adapter: Adapter, scale: float) -> torch.Tensor:
    """Keys or values [..., Hk, D] as memory has them. Of fp8: divided by the scale, saturated, rounded to nearest even; NaN stays."""
    if not adapter.kv_dtype:
        return rows.to(getattr(torch, adapter.dtype))
    dtype = getattr(torch, adapter.kv_dtype)
    most = torch.finfo(dtype).max
    return (rows / head_scales(scale, rows.shape[-2], adapter).float()).clamp(-most, most).to(dtype)


def make_values(case: Case, adapter: Adapter) -> Values:
    """The numbers of a case in the adapter's dtypes, on the CPU."""
    made = Values([], [], [], 2 * draw((case.heads,), 7) if case.sinks else None)
    value_dim = case.value_dim or case.dim
    for position, (q_len, kv_len) in enumerate(zip(case.q_lens, case.kv_lens)):
        seed = 1000 * (case.ids[position] if case.ids else position)
        q = draw((q_len, case.heads, case.dim), seed + 1) * case.magnitude
        k = draw((max(kv_len, 0), case.kv_heads, case.dim), seed + 2)
        v = draw((max(kv_len, 0), case.kv_heads, value_dim), seed + 3)
        if case.shift:
            q[..., 0], k[..., 0] = 64, case.shift * case.dim**0.5 / (64 * (case.scale or 1))
        if case.peaks and kv_len > 1:
            q[..., 0], k[..., 0] = 4, 0
            k[:: kv_len - 1, :, 0] = math.log(kv_len) * case.dim**0.5 / (4 * (case.scale or 1))
        made.q.append(q.to(getattr(torch, adapter.dtype)))
        made.k.append(stored(k, adapter, case.k_scale))
        made.v.append(made.k[-1][..., :value_dim] if adapter.values_in_keys else stored(v, adapter, case.v_scale))
    share_keys(case, adapter, made)
    return made


def share_keys(case: Case, adapter: Adapter, made: Values) -> None:
    """Gives requests that share pages the same keys and values: those of the longest request."""
    if case.pages not in ("shared", "equal") or not made.k:
        return
    longest = max(range(len(made.k)), key=lambda i: made.k[i].shape[0])
    for rows in (made.k, made.v):
        for i, row in enumerate(rows):
            size = row.shape[0] if case.pages == "equal" else shared_pages(case, adapter) * adapter.page_size
            rows[i] = torch.cat([rows[longest][:size], row[size:]])


def shared_pages(case: Case, adapter: Adapter) -> int:
    """The number of whole pages that all requests have in common at their beginning."""
    return max(min(case.kv_lens, default=0), 0) // adapter.page_size if case.pages == "shared" else 0
