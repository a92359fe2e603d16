"""Describes one call of a backend: the adapter, the case, and the call's inputs and results.

This module has only plain data and functions, because the scripts that an audit writes for its findings (bundle.py)
contain their source text.
"""

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
    form: str = "ragged"  # "ragged", "dense", "paged", "ragged_paged", "merge" or "reduce"
    name: str = ""
    takes: tuple[str, ...] = ()  # the optional keyword arguments of docs/Audit.md that `call` takes
    returns_lse: bool = True
    lse_layout: str = "nh"  # "nh": tokens before heads; "hn": heads before tokens
    lse_base: str = "e"  # base of the logarithm: "e" or "2"
    lse_has_sinks: bool = False  # True if the lse includes the sinks
    causal: bool | str = True  # True: `call` takes the keyword; "always": it has no such keyword and every call is causal; False: no causal masks
    # The position of the queries among the keys. "bottom-right": the last query has the last key; "top-left": query i
    # has key i.
    alignment: str = "bottom-right"
    graph_safe: bool = True  # True if a call may be captured in a CUDA graph
    batch_invariant: bool = False  # True if the backend claims that a row has the same bits in every batch
    dtype: str = "float32"
    kv_dtype: str = ""  # dtype of keys and values, "float8_e4m3fn" or "float8_e5m2"; "": the same as `dtype`
    kv_scales: str = "number"  # "number": k_scale and v_scale are floats; "heads": they are tensors [Hk] f32
    default_scale: bool = False  # True if a call may omit `scale`, which is then D ** -0.5
    alignment_bytes: int = 0  # required alignment in bytes of pointers and of each head's row; 0: the size of the dtype
    shares_workspace: bool = False  # True if calls on two streams must not overlap
    device: str = "cpu"
    heads: int = 4
    kv_heads: int = 2
    dim: int = 32
    value_dim: int = 0  # size of a value vector; 0: equal to dim
    values_in_keys: bool = False  # True if values are the first elements of keys (MLA)
    latent: bool = False  # True if one tensor kv_cache [pages, page_size, D] replaces k_cache and v_cache (MLA)
    page_size: int = 16
    head_counts: tuple[int, ...] = (24, 48, 96, 128)
    ratios: tuple[int, ...] = (1, 3, 5, 7)  # further ratios of query heads to key heads that the checks try
    matmul: str = "ieee"  # "ieee"; "tf32": factors of f32 products are rounded to TF32's 11 bits


@dataclass(frozen=True)
class Case:
    """One call of attention: its sequences and options, and the contents of memory around them."""

    q_lens: tuple[int, ...] = (3, 1, 4)
    kv_lens: tuple[int, ...] = (5, 9, 4)
    ids: tuple[int, ...] = ()  # one number per sequence, the seed of its q, k and v; (): the positions 0, 1, …
    heads: int = 4
    kv_heads: int = 2
    dim: int = 32
    value_dim: int = 0  # size of a value vector; 0: equal to dim
    causal: bool = False
    window: tuple[int, int] = (-1, -1)  # how many keys (left, right) a query sees besides its own key; -1: all
    sinks: bool = False
    softcap: float = 0.0  # scores are softcap * tanh(score / softcap); 0: no softcap
    alibi: bool = False  # True: slope of the head * distance from the query's own key is subtracted from each score
    k_scale: float = 1.0  # a cached key times k_scale is the true key
    v_scale: float = 1.0
    pad_rows: int = 0  # number of rows of q behind the last sequence
    pad_requests: int = 0  # number of requests without query rows, behind the last request
    pad_length: int = 0  # number of keys that each padding request declares
    magnitude: float = 1.0  # factor of the scores
    shift: float = 0.0  # number added to every score
    scale: float = 1.0  # the call passes this number times dim ** -0.5 as `scale`; 0: the call omits `scale`
    peaks: bool = False  # True: the first and last key of each sequence together weigh as much as all others
    longer: int = 0  # how far max_seqlen_q and max_seqlen_k exceed the true maximum
    before: str = "nan"  # contents of out and lse before the call: "nan" or "stale" (7); "none": the call passes neither
    beyond: str = "zero"  # contents of memory behind a sequence's keys and of unused pages: "zero", "nan", "inf"
    # Layout of q, k, v and out: "dense", "heads" (gaps between heads), "packed" (slices of one tensor), "values" (gaps
    # in v alone), "far" (offsets past 2^31) or "odd" (pointers and rows of heads with the smallest allowed alignment).
    layout: str = "dense"
    lengths: str = "dense"  # layout of lengths and block tables: "dense" or "strided"
    # Contents of the block table: "straight", "shuffled", "shared" (all requests begin with a common prefix), "equal"
    # (all requests have the same row) or "dead" (unused entries are -1 or 2^31 - 1).
    pages: str = "straight"
    num_splits: int = 0
    # The difference between an earlier call in the same process and this one: "lengths", "sizes", "values", "scale",
    # "causal", "window", …. "calls" makes 200 equal calls, "streams" makes a concurrent call, and "" makes no other
    # call.
    after: str = ""


@dataclass(frozen=True)
class StateCase:
    """A merge or reduce of partial states: `parts` states for each of `rows` x `heads`."""

    rows: int = 5
    heads: int = 4
    dim: int = 32
    parts: int = 2
    empty: tuple[tuple[int, int], ...] = ()  # the (part, row) pairs whose state is empty
    empty_lse: float = float("-inf")
    payload: str = "nan"  # contents of empty states' payloads: "nan", "inf", "zero"
    nan_lse: tuple[tuple[int, int], ...] = ()  # the (part, row) pairs whose lse is NaN
    magnitude: float = 1.0  # factor of every lse
    shift: float = 0.0  # number added to every lse
    before: str = "nan"
    layout: str = "dense"  # "dense", "heads" (gaps), "in place" (out is the first part), "in place 2" (out is the second), "far" or "odd"
    first: int = 0  # number of the first row; the values of a row depend on its number
    after: str = ""  # as `after` in Case, with "sizes", "values" or "calls"


@dataclass
class Values:
    """The inputs of a case: a tensor of q, k and v for each sequence."""

    q: list[torch.Tensor]  # [Lq, H, D]
    k: list[torch.Tensor]  # [Lk, Hk, D], converted by `stored`
    v: list[torch.Tensor]  # [Lk, Hk, Dv], converted by `stored`
    sinks: torch.Tensor | None  # [H] f32


@dataclass
class Got:
    """The results of a call as rows of tokens, in the order of the tokens. Padding rows come last."""

    out: torch.Tensor  # [n, H, Dv], in the backend's dtype
    lse: torch.Tensor | None  # [n, H], in the backend's dtype and base; None if there is no lse
    raw_lse: torch.Tensor | None  # the lse with the shape that the backend returned
    touched: list[str]  # names of tensors that the call changed but must not change
    given: dict[str, torch.Tensor] = field(default_factory=dict)  # the caller's out and lse, if the call returned other tensors


@dataclass(frozen=True)
class Fault:
    """A breach of the contract. Faults with the same cause have the same text in `kind`."""

    kind: str
    expected: str
    got: str
    severity: str = "error"


def draw(shape: tuple[int, ...], seed: int) -> torch.Tensor:
    """Returns normally distributed f32 numbers that depend on the shape and seed alone."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def alibi_slopes(heads: int) -> torch.Tensor:
    """Returns the ALiBi slope of each head, [H] f32."""
    return 2.0 ** (-8.0 * torch.arange(1, heads + 1, dtype=torch.float32) / heads)


def head_scales(scale: float, heads: int, adapter: Adapter) -> torch.Tensor:
    """Returns the scale of each head of keys or values, [Hk, 1] f64. Scales differ between heads only if the adapter
    takes a scale per head."""
    if adapter.kv_scales == "number":
        return torch.full((heads, 1), scale, dtype=torch.float64)
    return (scale ** (1 + torch.arange(heads, dtype=torch.float64) / heads)).float().double()[:, None]


def stored(rows: torch.Tensor, adapter: Adapter, scale: float) -> torch.Tensor:
    """Converts keys or values [..., Hk, D] to the dtype in which a cache stores them.

    For fp8, divides them by the scale, saturates them, and rounds them to nearest even. NaN stays NaN.
    """
    if not adapter.kv_dtype:
        return rows.to(getattr(torch, adapter.dtype))
    dtype = getattr(torch, adapter.kv_dtype)
    most = torch.finfo(dtype).max
    return (rows / head_scales(scale, rows.shape[-2], adapter).float()).clamp(-most, most).to(dtype)


def make_values(case: Case, adapter: Adapter) -> Values:
    """Returns the inputs of a case in the adapter's dtypes, on the CPU."""
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
    """Gives all requests the keys and values of the longest request in the pages that they share with it."""
    if case.pages not in ("shared", "equal") or not made.k:
        return
    longest = max(range(len(made.k)), key=lambda i: made.k[i].shape[0])
    for rows in (made.k, made.v):
        for i, row in enumerate(rows):
            size = row.shape[0] if case.pages == "equal" else shared_pages(case, adapter) * adapter.page_size
            rows[i] = torch.cat([rows[longest][:size], row[size:]])


def shared_pages(case: Case, adapter: Adapter) -> int:
    """If case.pages is "shared", returns the number of pages in the prefix that all requests share: the pages that the
    shortest request fills. Otherwise returns 0."""
    return max(min(case.kv_lens, default=0), 0) // adapter.page_size if case.pages == "shared" else 0
