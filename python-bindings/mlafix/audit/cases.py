"""The parts of one call of a backend. Plain data and torch: scripts that show a finding contain these lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Adapter:
    """A backend, and what it says of itself."""

    call: Callable[..., Any]
    form: str = "ragged"  # "dense", "paged", "merge" or "reduce"
    name: str = ""
    takes: tuple[str, ...] = ()  # optional keyword arguments: out, lse, window, sinks, seq_lens_k, num_splits, max_seqlen_q, max_seqlen_k
    returns_lse: bool = True
    lse_layout: str = "nh"  # "hn": heads before tokens
    lse_base: str = "e"  # or "2"
    lse_has_sinks: bool = False  # the lse counts the sinks, too
    causal: bool = True  # the keyword is there, and may be True
    alignment: str = "bottom-right"  # of the causal mask; "top-left"
    graph_safe: bool = True  # a call may be captured in a CUDA graph
    batch_invariant: bool = False  # claims that a row has the same bits in every batch
    dtype: str = "float32"
    device: str = "cpu"
    heads: int = 4
    kv_heads: int = 2
    dim: int = 32
    value_dim: int = 0  # 0: as dim
    values_in_keys: bool = False  # values are the first elements of keys (MLA)
    page_size: int = 16
    head_counts: tuple[int, ...] = (24, 48, 96, 128)
    matmul: str = "ieee"  # "tf32": products of f32 are rounded to 11 bits


@dataclass(frozen=True)
class Case:
    """Sequences, and what lies in memory around them."""

    q_lens: tuple[int, ...] = (3, 1, 4)
    kv_lens: tuple[int, ...] = (5, 9, 4)
    ids: tuple[int, ...] = ()  # the values of a sequence depend on its id, by default its position
    heads: int = 4
    kv_heads: int = 2
    dim: int = 32
    causal: bool = False
    window: int = -1  # how many keys a query sees on either side of its own; -1: all
    sinks: bool = False
    pad_rows: int = 0  # rows of q behind the last sequence
    pad_requests: int = 0  # requests without rows behind the last
    pad_length: int = 0  # what the lengths say of such requests
    magnitude: float = 1.0  # of the scores
    shift: float = 0.0  # added to every score
    before: str = "nan"  # what out and lse hold: "nan", "stale", or "none": they are not passed
    beyond: str = "zero"  # what lies behind a sequence's keys, and in pages of nobody: "zero", "nan", "inf"
    layout: str = "dense"  # of q, k, v, out: "heads" (gaps), "packed" (slices of one tensor), "far" (offsets past 2^31)
    lengths: str = "dense"  # of lengths and tables: "strided"
    pages: str = "straight"  # "shuffled", "shared" (one prefix for all)
    num_splits: int = 0


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
    layout: str = "dense"  # "heads" (gaps), "in place" (out is the first part), "in place 2" (the second), "far"
    first: int = 0  # rows take their values from this number on


@dataclass
class Values:
    """The numbers of a case, for each sequence."""

    q: list[torch.Tensor]  # [Lq, H, D]
    k: list[torch.Tensor]  # [Lk, Hk, D]
    v: list[torch.Tensor]  # [Lk, Hk, Dv]
    sinks: torch.Tensor | None  # [H] f32


@dataclass
class Got:
    """The results of a call: rows of all tokens in their order, those of padding last."""

    out: torch.Tensor  # [n, H, Dv], as stored
    lse: torch.Tensor | None  # [n, H], as stored
    raw_lse: torch.Tensor | None  # as returned
    touched: list[str]  # memory that no call may change, and did


@dataclass(frozen=True)
class Fault:
    """Something that the contract excludes. Faults of one kind have one cause."""

    kind: str
    expected: str
    got: str
    severity: str = "error"


def draw(shape: tuple[int, ...], seed: int) -> torch.Tensor:
    """Normal numbers that depend on the seed alone."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def make_values(case: Case, adapter: Adapter) -> Values:
    """The numbers of a case in the adapter's dtype, on the CPU."""
    made = Values([], [], [], 2 * draw((case.heads,), 7) if case.sinks else None)
    dtype = getattr(torch, adapter.dtype)
    value_dim = adapter.value_dim or case.dim
    for position, (q_len, kv_len) in enumerate(zip(case.q_lens, case.kv_lens)):
        seed = 1000 * (case.ids[position] if case.ids else position)
        q = draw((q_len, case.heads, case.dim), seed + 1) * case.magnitude
        k = draw((max(kv_len, 0), case.kv_heads, case.dim), seed + 2)
        if case.shift:
            q[..., 0], k[..., 0] = 64, case.shift * case.dim**0.5 / 64
        v = k[..., :value_dim] if adapter.values_in_keys else draw((max(kv_len, 0), case.kv_heads, value_dim), seed + 3)
        made.q.append(q.to(dtype))
        made.k.append(k.to(dtype))
        made.v.append(v.to(dtype))
    return made
