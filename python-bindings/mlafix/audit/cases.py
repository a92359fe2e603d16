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

    call: Callable[..., Any]  # a function, or an object with `run` and optionally `plan` and `store`
    form: str = "ragged"  # "dense", "paged", "ragged_paged", "merge" or "reduce"
    name: str = ""
    takes: tuple[str, ...] = ()  # the optional keyword arguments of docs/Audit.md that `call` takes
    returns_lse: bool = True
    lse_layout: str = "nh"  # "hn": heads before tokens
    lse_base: str = "e"  # or "2"
    lse_has_sinks: bool = False  # True if the lse includes the sinks
    causal: bool | str = True  # True: `call` takes the keyword; "always": it does not, and every mask is causal
    alignment: str = "bottom-right"  # of causal masks and windows; or "top-left"
    graph_safe: bool = True  # a call may be captured in a CUDA graph
    batch_invariant: bool = False  # claims that a row has the same bits in every batch
    dtype: str = "float32"
    kv_dtype: str = ""  # dtype of keys and values if it differs from `dtype`: "float8_e4m3fn", "float8_e5m2"
    kv_scales: str = "number"  # k_scale and v_scale are floats; or "heads": tensors [Hk] f32
    default_scale: bool = False  # a call may omit `scale`, which is then D ** -0.5
    alignment_bytes: int = 0  # required alignment of pointers and of rows of heads; 0: the size of the dtype
    shares_workspace: bool = False  # declares that calls on two streams must not overlap
    device: str = "cpu"
    heads: int = 4
    kv_heads: int = 2
    dim: int = 32
    value_dim: int = 0  # 0: equal to dim
    values_in_keys: bool = False  # values are the first elements of keys (MLA)
    latent: bool = False  # one tensor kv_cache [pages, page_size, D] in place of k_cache and v_cache (MLA)
    page_size: int = 16
    head_counts: tuple[int, ...] = (24, 48, 96, 128)
    ratios: tuple[int, ...] = (1, 3, 5, 7)  # further ratios of query heads to key heads that the checks try
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
    value_dim: int = 0  # 0: equal to dim
    causal: bool = False
    window: tuple[int, int] = (-1, -1)  # keys that a query sees left and right of its own key, which it always sees; -1: all
    sinks: bool = False
    softcap: float = 0.0  # scores are softcap * tanh(score / softcap); 0: no softcap
    alibi: bool = False  # subtracts a slope per head times the distance of the key from the query's own
    k_scale: float = 1.0  # the true keys are the cached ones times this
    v_scale: float = 1.0
    pad_rows: int = 0  # rows of q behind the last sequence
    pad_requests: int = 0  # requests without query rows, after the last one
    pad_length: int = 0  # the length of each padding request
    magnitude: float = 1.0  # scales the scores
    shift: float = 0.0  # added to every score
    scale: float = 1.0  # factor of dim ** -0.5; 0: the call omits `scale`
    peaks: bool = False  # the first and last key of each sequence together weigh as much as all others
    longer: int = 0  # the excess of max_seqlen_q and max_seqlen_k over the true maximum
    before: str = "nan"  # contents of out and lse before the call: "nan", "stale", or "none" (not passed)
    beyond: str = "zero"  # contents of memory past a sequence's keys and of unused pages: "zero", "nan", "inf"
    # The layout of q, k, v and out: "heads" (gaps), "packed" (slices of one tensor), "values" (gaps in v alone), "far" (offsets
    # past 2^31), "odd" (pointers and rows of heads with the smallest allowed alignment).
    layout: str = "dense"
    lengths: str = "dense"  # layout of lengths and tables; or "strided"
    # The block table: "straight", "shuffled", "shared" (all requests begin with a common prefix), "equal" (all tables are
    # prefixes of one), "dead" (entries past every length are -1 or 2^31 - 1).
    pages: str = "straight"
    num_splits: int = 0
    # The difference of an earlier call in the same process: "lengths", "sizes", "values", "scale", "causal", "window",
    # …. "calls" makes 200 equal calls, and "streams" makes a concurrent call.
    after: str = ""


@dataclass(frozen=True)
class StateCase:
    """Partial states to be merged: `parts` of them for each of `rows` x `heads`."""

    rows: int = 5
    heads: int = 4
    dim: int = 32
    parts: int = 2
    empty: tuple[tuple[int, int], ...] = ()  # the (part, row) pairs whose state is empty
    empty_lse: float = float("-inf")
    payload: str = "nan"  # contents of empty states: "nan", "inf", "zero"
    nan_lse: tuple[tuple[int, int], ...] = ()  # the (part, row) pairs whose lse is NaN
    magnitude: float = 1.0  # scales the lse
    shift: float = 0.0  # added to every lse
    before: str = "nan"
    layout: str = "dense"  # "heads" (gaps), "in place" (out is the first part), "in place 2" (the second), "far", "odd"
    first: int = 0  # number of the first row: values depend on it
    after: str = ""  # as in Case: "sizes", "values", "calls"


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
    touched: list[str]  # names of memory that the call must not change, but did
    given: dict[str, torch.Tensor] = field(default_factory=dict)  # the caller's outputs, where the call returned other tensors


@dataclass(frozen=True)
class Fault:
    """A breach of the contract. `kind` is the same text for faults with the same cause."""

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
    """The scale of each head of keys or values, [Hk, 1] f64. All are `scale`, or differ per head if the adapter takes
    scales per head."""
    if adapter.kv_scales == "number":
        return torch.full((heads, 1), scale, dtype=torch.float64)
    return (scale ** (1 + torch.arange(heads, dtype=torch.float64) / heads)).float().double()[:, None]


def stored(rows: torch.Tensor, adapter: Adapter, scale: float) -> torch.Tensor:
    """Keys or values [..., Hk, D] as stored in memory. For fp8 they are divided by the scale, saturated, and rounded to nearest even;
    NaN stays."""
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
    """The number of whole pages in the prefix that all requests share."""
    return max(min(case.kv_lens, default=0), 0) // adapter.page_size if case.pages == "shared" else 0
