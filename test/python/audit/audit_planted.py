"""Backends with one planted fault each, in all forms. Each is registered with the check that must find its fault.

A fault of attention is a function that changes the computation of one sequence (`Sequence`). A plain function changes
the inputs. A generator may also change the results: the code after its `yield` runs once the results are computed.
Faults of whole calls, merges and reduces are complete backends.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import audit_backends
import torch
from audit_backends import attend, gathered, merge_all, outputs, scores_of, visible

Call = tuple[torch.Tensor, torch.Tensor]
Sequence = SimpleNamespace
ALL = ("out", "lse", "window_size", "sinks", "softcap", "alibi_slopes", "num_splits")


@dataclass(frozen=True)
class Planted:
    """A backend and the check that must find its fault. The `kind` of the check's finding must contain the string
    `kind`. An exception is a finding only if `kind` begins with "raises". `fields` are fields of the backend's
    adapter."""

    call: Callable[..., Any]
    check: str
    kind: str
    fields: dict[str, Any]


PLANTED: dict[str, Planted] = {}


def planted(check: str, kind: str, **fields: Any) -> Callable[[Any], Any]:
    """Returns a decorator that registers a backend under its name."""

    def note(call: Any) -> Any:
        PLANTED[call.__name__] = Planted(call, check, kind, fields)
        return call

    return note


def of_sequences(check: str, kind: str, form: str = "ragged", **fields: Any) -> Callable[[Any], Any]:
    """Returns a decorator that makes a backend of the given form. The decorated function changes the computation of
    each sequence."""

    def make(change: Any) -> Any:
        def call(*tensors: torch.Tensor, **given: Any) -> Call:
            return attention(form, change, tensors, given)

        call.__name__, call.__qualname__, call.__module__, call.__doc__ = change.__name__, change.__name__, change.__module__, change.__doc__
        own = {"form": form, "takes": (*ALL, "seq_lens_k") if form == "dense" else ALL, **fields}
        if own.get("latent"):
            own = {"kv_heads": 1, "dim": 64, "value_dim": 48, "values_in_keys": True, **own, "takes": ("out", "lse", "num_splits")}
        return planted(check, kind, **own)(call)

    return make


def parts_of(form: str, tensors: Any, given: dict[str, Any]) -> list[Any]:
    """Returns the rows, the keys and the values of each sequence."""
    if form == "dense":
        return [(b, tensors[1][b, :length], tensors[2][b, :length]) for b, length in enumerate(given["seq_lens_k"].clamp(min=0).tolist())]
    ends = given["cu_seqlens_q"].tolist() if "cu_seqlens_q" in given else list(range(tensors[0].shape[0] + 1))
    rows = [slice(begin, end) for begin, end in zip(ends, ends[1:])]
    if form == "ragged":
        keys = given["cu_seqlens_k"].tolist()
        return [(at, tensors[1][first:last], tensors[2][first:last]) for at, first, last in zip(rows, keys, keys[1:])]
    caches = tensors[1:] if len(tensors) > 2 else [tensors[1][:, :, None], tensors[1][:, :, None, :48]]
    lengths = given["seq_lens"].clamp(min=0).tolist()
    return [(at, *(gathered(cache, given["block_table"][i], lengths[i]) for cache in caches)) for i, at in enumerate(rows)]


def attention(form: str, change: Any, tensors: Any, given: dict[str, Any]) -> Call:
    """Computes correct attention of the given form, except that `change` is applied to each sequence."""
    q, parts = tensors[0], parts_of(form, tensors, given)
    value_dim = tensors[2].shape[-1] if len(tensors) > 2 else 48
    out, lse = outputs((*q.shape[:-1], value_dim), q, given.get("out"), given.get("lse"))
    for i, (at, k, v) in enumerate(parts):
        s = Sequence(q=q[at], k=k, v=v, i=i, batch=len(parts), causal=given.get("causal", False), scale=given.get("scale"), window=given.get("window_size", (-1, -1)),
                     sinks=given.get("sinks"), softcap=given.get("softcap", 0.0), slopes=given.get("alibi_slopes"), splits=given.get("num_splits", 0),
                     tensors=tensors, given=given, at=at, seen=None, all_out=out, all_lse=lse)  # fmt: skip
        s.k, s.v = (x.float() * torch.as_tensor(given[name]).view(-1, 1) if name in given else x for x, name in ((k, "k_scale"), (v, "v_scale")))
        steps = change(s)
        next(steps, None) if inspect.isgenerator(steps) else None
        s.scale = q.shape[-1] ** -0.5 if s.scale is None else s.scale
        s.seen = visible(s.q.shape[0], s.k.shape[0], s.causal, window_size=s.window) if s.seen is None else s.seen
        s.out, s.lse = attend(s.q, s.k, s.v, s.scale, s.seen, s.sinks, s.softcap, s.slopes)
        next(steps, None) if inspect.isgenerator(steps) else None
        out[at], lse[at] = s.out, s.lse
    return out, lse


# Faults of masks and windows.


@of_sequences("A14", "live rows")
def window_of_decode(s: Sequence) -> None:
    s.window = (-1, -1) if s.q.shape[0] == 1 else s.window


@of_sequences("A14", "the window is off by one")
def window_without_the_own_key(s: Sequence) -> None:
    """Makes the left side of a window one key too short (huggingface/transformers#39408)."""
    s.window = (max(s.window[0] - 1, 0) if s.window[0] >= 0 else -1, s.window[1])


@of_sequences("A14", "", "paged")
def window_with_one_more(s: Sequence) -> None:
    """Makes the left side of a window one key too long (vllm-project/vllm#3385)."""
    s.window = (s.window[0] + 1 if s.window[0] >= 0 else -1, s.window[1])


@of_sequences("A14", "")
def right_side_of_windows(s: Sequence) -> None:
    s.window = (s.window[0], -1)


@of_sequences("A14", "", "ragged_paged")
def window_of_absolute_positions(s: Sequence) -> None:
    """Applies windows as if the first query were at the position of the first key (zml/zml#763)."""
    own, key = torch.arange(s.q.shape[0])[:, None], torch.arange(s.k.shape[0])[None]
    if s.window != (-1, -1):
        left, right = (size if size >= 0 else 1 << 20 for size in s.window)
        s.seen = (key >= own - left) & (key <= own + right) & visible(s.q.shape[0], s.k.shape[0], s.causal)


@of_sequences("A0", "live rows", "dense")
def causal_mask_of_the_first_key(s: Sequence) -> None:
    """Aligns the causal mask at the top left instead of the bottom right (Dao-AILab/flash-attention before 2.1)."""
    if s.causal:
        s.seen = torch.ones(s.q.shape[0], s.k.shape[0], dtype=torch.bool).tril()


@of_sequences("A0", "live rows", "ragged_paged")
def prefix_is_not_counted(s: Sequence) -> None:
    """In chunked prefill, new tokens do not see the cached ones."""
    if s.causal and s.q.shape[0] > 1:
        s.seen = visible(s.q.shape[0], s.k.shape[0], True) & (torch.arange(s.k.shape[0]) >= s.k.shape[0] - s.q.shape[0])


@of_sequences("A2", "rows whose keys are all masked")
def masked_rows_are_means(s: Sequence) -> Any:
    """Masks scores with a large negative number instead of -inf, so a row whose keys are all masked becomes the mean of
    the values (vllm-project/vllm#53628)."""
    yield
    lost = ~s.seen.any(1)
    if s.k.shape[0]:
        s.out[lost] = s.v.float().mean(0).repeat_interleave(s.q.shape[1] // s.k.shape[1], 0).to(s.out.dtype)


@of_sequences("A2", "lse of rows whose keys are all masked", "ragged_paged")
def masked_rows_have_an_lse(s: Sequence) -> Any:
    yield
    s.lse[~s.seen.any(1)] = -1e30 if s.k.shape[0] else -math.inf


# Faults of scores.


@of_sequences("A14", "live rows", "paged")
def softcap_of_long_keys(s: Sequence) -> None:
    s.softcap = 0.0 if s.k.shape[0] > 30 else s.softcap


@of_sequences("A14", "live rows")
def softcap_behind_the_mask(s: Sequence) -> Any:
    """Applies the softcap after the mask. Masked keys then have the finite score -softcap, since tanh(-inf) is -1."""
    yield
    if s.softcap:
        scores = scores_of(s.q, s.k, s.scale, s.softcap, s.slopes).masked_fill(~s.seen, -s.softcap)
        out, s.lse = audit_backends.weighted(scores, s.v, torch.ones_like(s.seen), s.sinks)
        s.out = out.to(s.q.dtype)


@of_sequences("A14", "")
def softcap_before_the_scale(s: Sequence) -> None:
    if s.softcap:
        s.q, s.scale = s.q * s.scale, 1.0
        s.softcap = s.softcap * 32**0.5


@of_sequences("A14", "lse of live rows")
def alibi_of_absolute_positions(s: Sequence) -> Any:
    """Adds slope * (the query's position) to the bias of all keys of a row. This number is the same for all keys, so it
    changes only the row's lse."""
    yield
    if s.slopes is not None:
        own = torch.arange(s.q.shape[0])[:, None] + s.k.shape[0] - s.q.shape[0]
        s.lse = s.lse + s.slopes * own


@of_sequences("A14", "", "dense")
def slopes_of_powers_of_two(s: Sequence) -> None:
    """Uses the ALiBi slopes for a number of heads that is rounded up to a power of two."""
    if s.slopes is not None:
        heads = 1 << (s.q.shape[1] - 1).bit_length()
        s.slopes = (2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads))[: s.q.shape[1]]


@of_sequences("A14", "")
def sink_of_each_split(s: Sequence) -> None:
    """Adds the sink once for each split (ROCm/rocm-libraries#12227)."""
    s.sinks = s.sinks if s.sinks is None or s.splits < 2 else s.sinks + math.log(s.splits)


@of_sequences("A14", "", "ragged_paged")
def sinks_of_heads_of_keys(s: Sequence) -> None:
    s.sinks = s.sinks if s.sinks is None else s.sinks[torch.arange(s.q.shape[1]) // (s.q.shape[1] // s.k.shape[1])]


@of_sequences("A5", "rows without keys", "paged")
def sink_of_an_empty_row(s: Sequence) -> Any:
    """Returns the sink as the lse of a row without keys, although the lse excludes sinks."""
    yield
    s.lse = s.lse if s.sinks is None or s.k.shape[0] else s.lse.copy_(s.sinks)


@of_sequences("A5", "sinks", "dense")
def sinks_of_prefill(s: Sequence) -> None:
    s.sinks = s.sinks if s.q.shape[0] < 2 else None


@of_sequences("A14", "scale is ignored", "paged")
def ignores_the_scale(s: Sequence) -> None:
    """Always uses the default scale (mlc-ai/mlc-llm#3426, hao-ai-lab/FastVideo#1457)."""
    s.scale = s.q.shape[2] ** -0.5


@of_sequences("A14", "live rows", "ragged_paged")
def scale_of_decode(s: Sequence) -> None:
    s.scale = s.q.shape[2] ** -0.5 if s.q.shape[0] == 1 else s.scale


@of_sequences("A14", "the default scale", "ragged", default_scale=True)
def default_scale_is_one(s: Sequence) -> None:
    s.scale = 1.0 if s.scale is None else s.scale


@of_sequences("A14", "live rows", "ragged", default_scale=True, dim=48, value_dim=16)
def default_scale_of_the_value_dim(s: Sequence) -> None:
    """Computes the default scale from the head dim of values. C14 requires the head dim of keys."""
    s.scale = s.v.shape[2] ** -0.5 if s.scale is None else s.scale


@of_sequences("A14", "", "paged", latent=True)
def scale_of_the_latent_dim(s: Sequence) -> None:
    s.scale = s.v.shape[2] ** -0.5 if s.scale < 0.1 else s.scale


# Faults of heads.


def heads_of_keys(s: Sequence, head: torch.Tensor) -> None:
    s.k, s.v = s.k[:, head], s.v[:, head]


@of_sequences("A0", "live rows")
def interleaved_heads(s: Sequence) -> None:
    heads_of_keys(s, torch.arange(s.q.shape[1]) % s.k.shape[1])


@of_sequences("A10", "", "paged")
def groups_of_powers_of_two(s: Sequence) -> None:
    """Rounds the group size down to a power of two (mlc-ai/mlc-llm#2543, HazyResearch/HipKittens#22)."""
    group = s.q.shape[1] // s.k.shape[1]
    heads_of_keys(s, (torch.arange(s.q.shape[1]) // (1 << (group.bit_length() - 1))).clamp(max=s.k.shape[1] - 1))


@of_sequences("A10", "", "ragged_paged")
def many_queries_of_one_head(s: Sequence) -> Any:
    yield
    if s.k.shape[1] == 1 and s.q.shape[1] > 4:
        s.out[:, 4:] = s.out[:, :1]


@of_sequences("A10", "")
def heads_behind_the_64th(s: Sequence) -> Any:
    """Returns zeros for heads from the 65th on (sgl-project/sglang#23993)."""
    yield
    s.out[:, 64:] = 0


@of_sequences("A5", "", "ragged_paged")
def as_many_heads_of_keys(s: Sequence) -> None:
    """Lets two query heads share a key head although there are as many key heads as query heads."""
    if s.q.shape[1] == s.k.shape[1]:
        heads_of_keys(s, torch.arange(s.q.shape[1]) // 2)


# Faults that depend on sizes.


@of_sequences("A13", "", "paged")
def tile_of_64_and_one(s: Sequence) -> None:
    most = s.k.shape[0] - (s.k.shape[0] > 64 and s.k.shape[0] % 64 == 1)
    s.k, s.v = s.k[:most], s.v[:most]


@of_sequences("A13", "")
def last_tile_of_128(s: Sequence) -> None:
    most = s.k.shape[0] - (64 if s.k.shape[0] and s.k.shape[0] % 128 == 0 else 0)
    s.k, s.v = s.k[:most], s.v[:most]


def first_keys(s: Sequence, most: int) -> None:
    s.k, s.v = s.k[:most], s.v[:most]


@of_sequences("A13", "", "ragged_paged")
def keys_behind_the_1024th(s: Sequence) -> None:
    """Ignores keys from the 1025th on (pytorch/torchtitan#3235, Dao-AILab/flash-attention#2842)."""
    first_keys(s, 1024)


@of_sequences("A13", "", "dense")
def keys_behind_the_4096th(s: Sequence) -> None:
    first_keys(s, 4096)


@of_sequences("A13", "", "paged", dtype="bfloat16")
def keys_behind_the_65535th(s: Sequence) -> None:
    first_keys(s, 65535)


@of_sequences("A13", "", "ragged", dtype="bfloat16")
def keys_behind_the_8192th(s: Sequence) -> None:
    first_keys(s, 8192)


@of_sequences("A13", "")
def queries_behind_the_1024th(s: Sequence) -> Any:
    yield
    s.out[1024:] = 0


@of_sequences("A13", "", "dense")
def tile_of_queries(s: Sequence) -> Any:
    """Returns 0 as the lse of a single query that follows a tile of 128 queries."""
    yield
    if s.q.shape[0] == 129:
        s.lse[128:] = 0


@of_sequences("A13", "", "paged")
def requests_behind_the_32nd(s: Sequence) -> Any:
    """Returns zeros for requests from the 33rd on. Imitates a warp that looks up requests with one lane each."""
    yield
    s.out = s.out * (s.i < 32)


@of_sequences("A13", "")
def maximum_length_is_the_length(s: Sequence) -> None:
    most = s.given.get("max_seqlen_k", 0)
    first = int(s.given["cu_seqlens_k"][s.i])
    if most > 60 and most > 2 * s.given["cu_seqlens_k"].diff().max():
        s.k, s.v = (x[first : first + most] for x in s.tensors[1:])


PLANTED["maximum_length_is_the_length"].fields["takes"] = ("max_seqlen_k",)


@of_sequences("A13", "", "paged")
def splits_of_nothing(s: Sequence) -> Any:
    yield
    if s.splits > s.k.shape[0] > 0:
        s.lse = s.lse * math.nan


@of_sequences("A5", "", "paged")
def merge_by_numbers_of_keys(s: Sequence) -> Any:
    """Weights each split by its number of keys."""
    yield
    if s.splits > 1 and s.k.shape[0] > 1:
        half = s.k.shape[0] // 2
        parts = [attend(s.q, s.k[some], s.v[some], s.scale, s.seen[:, some])[0] for some in (slice(half), slice(half, None))]
        s.out = (parts[0] * half + parts[1] * (s.k.shape[0] - half)) / s.k.shape[0]


@of_sequences("A5", "base of the lse", "ragged_paged")
def splits_of_base_2(s: Sequence) -> Any:
    """Returns an lse in base 2 if there are several splits (flashinfer-ai/flashinfer#4485)."""
    yield
    s.lse = s.lse / math.log(2) if s.splits > 1 else s.lse


# Faults of arithmetic.


@of_sequences("A13", "", "ragged", dtype="bfloat16")
def sums_in_bf16(s: Sequence) -> Any:
    yield
    if s.k.shape[0] > 500:
        s.out = s.out * 1.02


@of_sequences("A0", "live rows", "dense", dtype="bfloat16")
def weights_of_8_bits(s: Sequence) -> Any:
    yield
    if s.k.shape[0]:
        group = s.q.shape[1] // s.k.shape[1]
        scores = (torch.einsum("qhd,khd->hqk", s.q.float(), s.k.float().repeat_interleave(group, 1)) * s.scale).masked_fill(~s.seen, -math.inf)
        weights = torch.softmax(scores, 2).nan_to_num(0).to(torch.float8_e5m2).float()
        s.out = torch.einsum("hqk,khd->qhd", weights, s.v.float().repeat_interleave(group, 1)).to(s.q.dtype)


@of_sequences("A6", "")
def no_maximum(s: Sequence) -> Any:
    """Takes exponentials without subtracting the maximum."""
    yield
    high = s.lse > 80
    s.out[high], s.lse[high] = math.nan, math.inf


@of_sequences("A6", "", "paged")
def low_scores_are_none(s: Sequence) -> Any:
    """Starts the running maximum at -1e4, so lower scores are lost (flashinfer-ai/flashinfer#4267)."""
    yield
    low = s.lse < -1e4
    s.out[low], s.lse[low] = 0, -1e4


@of_sequences("A0", "lse of live rows", "paged")
def lse_of_16_bits(s: Sequence) -> Any:
    yield
    s.lse = s.lse.bfloat16().float()


@of_sequences("A0", "lse of live rows")
def lse_is_the_maximum(s: Sequence) -> Any:
    """Returns the maximum of the scores as the lse (NVIDIA/TensorRT-LLM#19112)."""
    yield
    if s.k.shape[0]:
        s.lse = scores_of(s.q, s.k, s.scale, s.softcap, s.slopes).masked_fill(~s.seen, -math.inf).amax(2).T


@of_sequences("A5", "", "dense")
def lse_of_decode_without_scale(s: Sequence) -> Any:
    yield
    s.lse = s.lse + math.log(s.scale) if s.q.shape[0] == 1 else s.lse


# Faults of rows without keys, of padding, and of memory that is not an input.


@of_sequences("A1", "rows without keys")
def row_of_the_request_before(s: Sequence) -> Any:
    """Returns the previous request's last row for a request without keys (flashinfer-ai/flashinfer#3047)."""
    yield
    if not s.k.shape[0] and s.i:
        s.out[:] = s.all_out[s.at.start - 1] if s.at.start else s.out


@of_sequences("A1", "", "dense")
def a_length_of_0_is_1(s: Sequence) -> None:
    if not s.k.shape[0]:
        s.k, s.v = (x[s.i, :1] for x in s.tensors[1:])


@of_sequences("A1", "lse of rows without keys", "paged")
def empty_rows_have_a_finite_lse(s: Sequence) -> Any:
    """Returns an lse of at least -5e4 for rows without keys (flashinfer-ai/flashinfer#4401)."""
    yield
    s.lse = s.lse.clamp(min=-5e4)


@of_sequences("A1", "", "ragged_paged")
def empty_rows_are_not_written(s: Sequence) -> Any:
    """Returns NaN for rows without keys, like memory that is not written (flashinfer-ai/flashinfer#2409)."""
    yield
    if not s.k.shape[0]:
        s.out, s.lse = s.out + math.nan, s.lse


@of_sequences("A4", "live rows", "ragged_paged")
def rest_of_the_last_page(s: Sequence) -> Any:
    yield
    size, length = s.tensors[2].shape[1], s.k.shape[0]
    if length % size:
        rest = s.tensors[2][int(s.given["block_table"][s.i, length // size]), length % size :]
        s.out = s.out + (0.0 * rest.float().sum(0)).repeat_interleave(s.q.shape[1] // s.k.shape[1], 0)


@of_sequences("A4", "", "paged")
def full_last_page(s: Sequence) -> None:
    size = s.tensors[1].shape[1]
    first_keys(s, s.k.shape[0] - size if s.k.shape[0] % size == 0 and s.k.shape[0] else s.k.shape[0])


@of_sequences("A4", "live rows", "ragged")
def keys_of_nobody(s: Sequence) -> Any:
    yield
    s.out = s.out + 0.0 * s.tensors[2][int(s.given["cu_seqlens_k"][-1]) :].float().sum()


@of_sequences("A4", "", "dense")
def masked_values_are_multiplied(s: Sequence) -> Any:
    """Multiplies values past the length by 0 (vllm-project/vllm#53628)."""
    yield
    rest = s.tensors[2][s.i, s.k.shape[0] :].float().sum(0).repeat_interleave(s.q.shape[1] // s.k.shape[1], 0)
    s.out = s.out + 0.0 * rest


@of_sequences("A4", "", "paged", latent=True)
def rest_of_a_latent_page(s: Sequence) -> Any:
    yield
    size, length = s.tensors[1].shape[1], s.k.shape[0]
    if length % size:
        s.out = s.out + 0.0 * s.tensors[1][int(s.given["block_table"][s.i, length // size]), length % size :, :48].float().sum(0)


@of_sequences("A0", "live rows", "paged", latent=True)
def values_of_the_last_elements(s: Sequence) -> None:
    s.v = s.k[..., -48:]


# Faults of page tables.


@of_sequences("A11", "raises IndexError", "paged")
def dead_entries(s: Sequence) -> Any:
    """Reads the pages that dead entries of the table name, and multiplies their values by 0 (vllm-project/vllm#39643,
    vllm-project/flash-attention#42)."""
    yield
    s.out = s.out + 0.0 * s.tensors[2][s.given["block_table"][s.i].long()].float().nan_to_num().sum()


KEPT: dict[int, Any] = {}


@of_sequences("A11", "", "paged")
def prefixes_by_their_first_page(s: Sequence) -> None:
    """Uses the keys of another request that has the same first page."""
    first = int(s.given["block_table"][s.i, 0])
    if not s.i:
        KEPT.clear()
    if s.k.shape[0]:
        k, v = KEPT.setdefault(first, (s.k, s.v))
        s.k, s.v = (x[: s.k.shape[0]] if x.shape[0] >= s.k.shape[0] else x for x in (k, v))


@of_sequences("A11", "", "ragged_paged")
def pages_in_order(s: Sequence) -> None:
    size, first = s.tensors[1].shape[1], int(s.given["block_table"][s.i, 0])
    if s.k.shape[0] > size and s.i == 0:
        rows = [x[first : first + -(-s.k.shape[0] // size)].flatten(0, 1) for x in s.tensors[1:]]
        if rows[0].shape[0] >= s.k.shape[0]:
            s.k, s.v = (x[: s.k.shape[0]] for x in rows)


@of_sequences("A13", "", "paged")
def pages_behind_the_32nd(s: Sequence) -> None:
    first_keys(s, 32 * s.tensors[1].shape[1])


@of_sequences("A10", "", "paged")
def length_of_minus_one(s: Sequence) -> None:
    """Lets a request with a negative length see three keys. Imitates a backend that takes a negative length as a number
    of keys from the end (vllm-project/vllm#51593)."""
    if int(s.given["seq_lens"][s.i]) < 0:
        s.k, s.v = (x[1, :3] for x in s.tensors[1:])


def offset_of_32_bits(x: torch.Tensor, page: int) -> torch.Tensor:
    return x.as_strided(x.shape[1:], x.stride()[1:], x.storage_offset() + page * x.stride(0) % 2**31)


@of_sequences("A10", "", "paged")
def offsets_of_pages(s: Sequence) -> None:
    """Wraps the offsets of pages at 32 bits (vllm-project/vllm#47671, vllm-project/vllm#50427)."""
    size = s.tensors[1].shape[1]
    pages = s.given["block_table"][s.i, : -(-s.k.shape[0] // size)].tolist()
    if pages:
        s.v = torch.cat([offset_of_32_bits(s.tensors[2], page) for page in pages])[: s.k.shape[0]]


@of_sequences("A10", "", "ragged_paged")
def requests_without_queries(s: Sequence) -> Any:
    yield
    lengths = s.given["cu_seqlens_q"].diff()
    if (lengths == 0).any() and s.q.shape[0]:
        s.out = s.out.flip(0) * 0.5


# Faults of fp8 caches.

FP8 = {"kv_dtype": "float8_e4m3fn", "takes": ("out", "lse", "k_scale", "v_scale")}


@of_sequences("A16", "k_scale is ignored", "ragged_paged", **FP8)
def k_scale_of_prefill(s: Sequence) -> None:
    """Ignores the scale of keys in prefill (flashinfer-ai/flashinfer#4979)."""
    s.k = s.k if s.q.shape[0] == 1 else s.k / s.given["k_scale"]


@of_sequences("A16", "v_scale", "paged", **FP8)
def v_scale_is_ignored(s: Sequence) -> None:
    """Ignores the scale of values (vllm-project/vllm#42580)."""
    s.v = s.v / s.given["v_scale"]


@of_sequences("A16", "swapped", "ragged", **FP8)
def scales_are_swapped(s: Sequence) -> None:
    k, v = s.given["k_scale"], s.given["v_scale"]
    s.k, s.v = s.k / k * v, s.v / v * k


@of_sequences("A16", "", "ragged_paged", **FP8, kv_scales="heads")
def scale_of_the_first_head(s: Sequence) -> None:
    k = s.given["k_scale"]
    s.k = s.k / k.view(-1, 1) * k[0]


@of_sequences("A16", "", "paged", **{**FP8, "kv_dtype": "float8_e5m2"})
def scales_of_short_keys(s: Sequence) -> None:
    s.v = s.v / s.given["v_scale"] if s.k.shape[0] > 1000 else s.v


# Faults of whole calls.

RAGGED = {"form": "ragged", "takes": ("out", "lse")}


@planted("A0", "q was written", **RAGGED)
def scales_q_in_place(q: torch.Tensor, *tensors: torch.Tensor, scale: float, **given: Any) -> Call:
    q.mul_(scale)
    return audit_backends.ragged(q, *tensors, scale=1.0, **given)


@planted("A0", "", **RAGGED)
def adds_to_out(*tensors: torch.Tensor, out: Any = None, lse: Any = None, **given: Any) -> Call:
    rows, stats = audit_backends.ragged(*tensors, **given)
    return (rows, stats) if out is None else (out.add_(rows), lse.copy_(stats))


@planted("A5", "a given lse is not written", **RAGGED)
def a_given_lse_is_not_written(*tensors: torch.Tensor, lse: Any = None, **given: Any) -> Call:
    return audit_backends.ragged(*tensors, **given)


@planted("A8", "", **RAGGED)
def out_as_if_contiguous(*tensors: torch.Tensor, out: Any = None, lse: Any = None, **given: Any) -> Call:
    rows, stats = audit_backends.ragged(*tensors, **given)
    if out is None:
        return rows, stats
    out.as_strided(out.shape, rows.stride()).copy_(rows)
    return out, lse.copy_(stats)


@planted("A8", "", **RAGGED)
def v_by_strides_of_k(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **given: Any) -> Call:
    return audit_backends.ragged(q, k, v.as_strided(v.shape, k.stride()), **given)


@planted("A8", "", **RAGGED)
def vectors_of_16_bytes(q: torch.Tensor, *tensors: torch.Tensor, **given: Any) -> Call:
    """Rounds pointers down to a multiple of a vector's size."""
    at = q.storage_offset() - q.data_ptr() % 16 // q.element_size()
    return audit_backends.ragged(q.as_strided(q.shape, q.stride(), at), *tensors, **given)


@planted("A8", "", form="paged", takes=("out", "lse"))
def heads_of_16_bytes(q: torch.Tensor, k_cache: torch.Tensor, *tensors: torch.Tensor, **given: Any) -> Call:
    """Rounds the strides of the key cache down to multiples of four elements, 16 bytes in f32."""
    return audit_backends.paged(q, k_cache.as_strided(k_cache.shape, [*(stride // 4 * 4 for stride in k_cache.stride()[:3]), 1]), *tensors, **given)


@planted("A8", "", form="ragged_paged", takes=("out", "lse"))
def tables_as_if_contiguous(*tensors: torch.Tensor, block_table: torch.Tensor, **given: Any) -> Call:
    rows = block_table.as_strided(block_table.shape, (block_table.shape[1], 1)).clamp(0, tensors[1].shape[0] - 1)
    return audit_backends.ragged_paged(*tensors, block_table=rows, **given)


@planted("A10", "", **RAGGED)
def offsets_of_values(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **given: Any) -> Call:
    """Wraps the offsets of values at 32 bits (vllm-project/vllm#45500)."""
    return audit_backends.ragged(q, k, torch.stack([offset_of_32_bits(v, row) for row in range(v.shape[0])]) if v.shape[0] else v, **given)


@planted("A3", "padded rows", **RAGGED)
def padding_has_an_lse(*tensors: torch.Tensor, **given: Any) -> Call:
    out, lse = audit_backends.ragged(*tensors, **given)
    lse[int(given["cu_seqlens_q"][-1]) :] = 0
    return out, lse


@planted("A3", "", form="paged", takes=("out", "lse"))
def padded_requests_have_the_first_page(*tensors: torch.Tensor, seq_lens: torch.Tensor, **given: Any) -> Call:
    return audit_backends.paged(*tensors, seq_lens=torch.where((seq_lens <= 0) & (seq_lens.cumsum(0) == seq_lens.sum()), 1, seq_lens), **given)


SEEN: dict[str, Any] = {}


@planted("A15", "after a call of another scale", **RAGGED)
def the_first_mask(*tensors: torch.Tensor, causal: bool, scale: float, **given: Any) -> Call:
    """Selects a compiled kernel by shapes only, so that the first scale is used in all calls."""
    key = ("mask", tensors[0].shape, given["cu_seqlens_q"].shape, tensors[1].shape)
    return audit_backends.ragged(*tensors, causal=causal, scale=SEEN.setdefault(key, scale), **given)


@planted("A15", "after a call of other lengths", form="paged", takes=("out", "lse"))
def lengths_of_the_first_call(*tensors: torch.Tensor, seq_lens: torch.Tensor, **given: Any) -> Call:
    """Keeps the lengths of the first call with the same shapes (pytorch/torchtitan#3709)."""
    first = SEEN.setdefault(("lengths", seq_lens.shape, given["block_table"].shape), seq_lens.clone())
    return audit_backends.paged(*tensors, seq_lens=first.minimum(torch.tensor(given["block_table"].shape[1] * tensors[1].shape[1])), **given)


@planted("A15", "after a call of other sizes", **RAGGED)
def counters_are_not_reset(*tensors: torch.Tensor, **given: Any) -> Call:
    """Does not reset a counter after a larger batch, so that the next call is wrong."""
    out, lse = audit_backends.ragged(*tensors, **given)
    batch = given["cu_seqlens_q"].shape[0] - 1
    if SEEN.get("most", 0) > 2 * batch:
        out[:] *= 0.5
    SEEN["most"] = max(SEEN.get("most", 0), batch)
    return out, lse


@planted("A15", "equal calls differ", **RAGGED)
def one_call_in_97(*tensors: torch.Tensor, **given: Any) -> Call:
    """Imitates a race: every 97th call is wrong."""
    out, lse = audit_backends.ragged(*tensors, **given)
    SEEN["calls"] = SEEN.get("calls", 0) + 1
    if SEEN["calls"] % 97 == 0:
        out[-1:] = 0
    return out, lse


class RunsAdvance(audit_backends.Planned):
    """Shortens the lengths of the plan in each run."""

    def run(self, q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, *, out: Any = None, lse: Any = None) -> Call:
        result = super().run(q, k_cache, v_cache, out=out, lse=lse)
        self.lengths["seq_lens"] -= 1
        return result


class PlanOfTheFirst(audit_backends.Planned):
    """Uses the first plan for each number of tokens, and ignores later ones."""

    plans: dict[Any, Any] = {}

    def plan(self, *, cu_seqlens_q: torch.Tensor, block_table: torch.Tensor, seq_lens: torch.Tensor, causal: bool, scale: float, heads: int, page_size: int) -> None:
        given = {"cu_seqlens_q": cu_seqlens_q, "block_table": block_table, "seq_lens": seq_lens.clone(), "causal": causal, "scale": scale, "heads": heads, "page_size": page_size}
        super().plan(**self.plans.setdefault((int(cu_seqlens_q[-1]), heads, block_table.shape), given))


class WritesKScaleForV(audit_backends.Planned):
    def store(self, *tensors: torch.Tensor, slot_mapping: torch.Tensor, k_scale: float = 1.0, v_scale: float = 1.0) -> None:
        super().store(*tensors, slot_mapping=slot_mapping, k_scale=k_scale, v_scale=k_scale)


class SlotsOf32Bits(audit_backends.Planned):
    """Stores nothing if the key cache has offsets of 2^31 elements or more. Imitates a kernel that wraps these
    offsets."""

    def store(self, k: torch.Tensor, v: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, **given: Any) -> None:
        if k_cache.stride(0) * (k_cache.shape[0] - 1) < 2**31:
            super().store(k, v, k_cache, v_cache, **given)


class Truncates(audit_backends.Planned):
    """Rounds toward zero when it stores to the cache, as a public engine does on CPUs."""

    def store(self, k: torch.Tensor, v: torch.Tensor, *caches: torch.Tensor, slot_mapping: torch.Tensor, k_scale: float = 1.0, v_scale: float = 1.0) -> None:
        super().store(k, v, *caches, slot_mapping=slot_mapping, k_scale=k_scale, v_scale=v_scale)
        for rows, cache, scale in ((k, caches[0], k_scale), (v, caches[1], v_scale)):
            live = slot_mapping[slot_mapping >= 0]
            at = live // cache.shape[1], live % cache.shape[1]
            stored, exact = cache[at], rows[slot_mapping >= 0].float() / scale
            smaller = (stored.view(torch.uint8) - 1).view(stored.dtype)
            cache[at] = torch.where(stored.float().abs() > exact.abs(), smaller.float(), stored.float()).to(stored.dtype)


CACHE = {"form": "ragged_paged", "takes": ("out", "lse", "k_scale", "v_scale")}
planted("A15", "", form="ragged_paged", takes=("out", "lse"))(RunsAdvance)
planted("A15", "", form="ragged_paged", takes=("out", "lse"))(PlanOfTheFirst)
planted("A17", "v is not rounded to nearest", **CACHE, kv_dtype="float8_e5m2")(WritesKScaleForV)
planted("A17", "", **CACHE, kv_dtype="float8_e4m3fn")(SlotsOf32Bits)
planted("A17", "k is not rounded to nearest", **CACHE, kv_dtype="float8_e4m3fn")(Truncates)


# Faults of merges and reduces.

MERGE = {"form": "merge", "takes": ("out", "lse")}


def weighted(a: torch.Tensor, a_lse: torch.Tensor, b: torch.Tensor, b_lse: torch.Tensor, out: Any, lse: Any, change: Any) -> Call:
    """Computes a correct merge, then applies `change` to out and lse."""
    rows, stats = change(*merge_all(torch.stack([a, b]), torch.stack([a_lse, b_lse])))
    return rows if out is None else out.copy_(rows), stats if lse is None else lse.copy_(stats)


@planted("A1", "rows with one live side", **MERGE)
def a_copy_is_multiplied(a: Any, a_lse: Any, b: Any, b_lse: Any, *, out: Any = None, lse: Any = None) -> Call:
    """Multiplies a row that should be a copy by 1 - 2^-23."""
    return weighted(a, a_lse, b, b_lse, out, lse, lambda rows, stats: (torch.where((b_lse == -math.inf)[..., None], rows * (1 - 2.0**-23), rows), stats))


@planted("A1", "", **MERGE)
def endless_is_not_empty(a: Any, a_lse: Any, b: Any, b_lse: Any, *, out: Any = None, lse: Any = None) -> Call:
    """Gives all weight to a state with an lse of +inf, which is empty (Dao-AILab/flash-attention#1980)."""
    return weighted(a, a_lse, b, b_lse, out, lse, lambda rows, stats: (torch.where((a_lse == math.inf)[..., None], a, rows), stats))


@planted("A4", "rows with a NaN lse", **MERGE)
def nan_is_taken_for_empty(a: Any, a_lse: Any, b: Any, b_lse: Any, *, out: Any = None, lse: Any = None) -> Call:
    return weighted(a, a_lse.nan_to_num(-math.inf, math.inf, -math.inf), b, b_lse.nan_to_num(-math.inf, math.inf, -math.inf), out, lse, lambda *both: both)


@planted("A13", "live rows", **MERGE)
def rows_behind_the_1024th(a: Any, a_lse: Any, b: Any, b_lse: Any, *, out: Any = None, lse: Any = None) -> Call:
    """Returns zeros for rows from the 1025th on (sgl-project/sglang#4231, flashinfer-ai/flashinfer#3398)."""
    return weighted(a, a_lse, b, b_lse, out, lse, lambda rows, stats: (torch.cat([rows[:1024], 0 * rows[1024:]]), stats))


@planted("A13", "", **MERGE)
def a_grid_of_65535(a: Any, a_lse: Any, b: Any, b_lse: Any, *, out: Any = None, lse: Any = None) -> Call:
    return weighted(a, a_lse, b, b_lse, out, lse, lambda rows, stats: (rows, torch.cat([stats[:65535], 0 * stats[65535:]])))


@planted("A6", "", **MERGE)
def exponentials_overflow(a: Any, a_lse: Any, b: Any, b_lse: Any, *, out: Any = None, lse: Any = None) -> Call:
    return weighted(a, a_lse, b, b_lse, out, lse, lambda rows, stats: (torch.where((stats > 88)[..., None], math.nan, rows), stats))


@planted("A0", "live rows", **MERGE)
def weights_of_16_bits(a: Any, a_lse: Any, b: Any, b_lse: Any, *, out: Any = None, lse: Any = None) -> Call:
    """Rounds partial results to bf16 (modular/modular#7165)."""
    return weighted(a.bfloat16().float(), a_lse, b, b_lse, out, lse, lambda *both: both)


@planted("A10", "", **MERGE)
def heads_behind_the_32nd(a: Any, a_lse: Any, b: Any, b_lse: Any, *, out: Any = None, lse: Any = None) -> Call:
    return weighted(a, a_lse, b, b_lse, out, lse, lambda rows, stats: (torch.cat([rows[:, :32], rows[:, 32:] * 0.5], 1), stats))


@planted("A8", "", **MERGE)
def merges_in_place_twice(a: Any, a_lse: Any, b: Any, b_lse: Any, *, out: Any = None, lse: Any = None) -> Call:
    """Stores the first half of a row before it reads the second half (vllm-project/vllm#40924)."""
    lse = torch.empty_like(a_lse) if lse is None else lse
    out = torch.empty_like(a) if out is None else out
    half = a.shape[2] // 2
    for some in (slice(half), slice(half, None)):
        rows, stats = merge_all(torch.stack([a[..., some], b[..., some]]), torch.stack([a_lse, b_lse]))
        out[..., some] = rows
        lse.copy_(stats)
    return out, lse


@planted("A8", "", **MERGE)
def rows_as_if_contiguous(a: Any, a_lse: Any, b: Any, b_lse: Any, *, out: Any = None, lse: Any = None) -> Call:
    """Reads b as if it were contiguous."""
    return weighted(a, a_lse, b.as_strided(b.shape, (b.shape[1] * b.shape[2], b.shape[2], 1)), b_lse, out, lse, lambda *both: both)


@planted("A15", "after a call of other values", **MERGE)
def the_lse_of_the_call_before(a: Any, a_lse: Any, b: Any, b_lse: Any, *, out: Any = None, lse: Any = None) -> Call:
    """Returns the lse of the previous call with the same shapes, as if two buffers were swapped."""

    def turn(rows: torch.Tensor, stats: torch.Tensor) -> Call:
        last, SEEN["lse", a.shape] = SEEN.get(("lse", a.shape), stats), stats.clone()
        return rows, last

    return weighted(a, a_lse, b, b_lse, out, lse, turn)


REDUCE = {"form": "reduce", "takes": (), "heads": 6}


@planted("A0", "the ranks' results differ", **REDUCE)
def each_rank_begins_with_itself(out: torch.Tensor, lse: torch.Tensor, *, group: Any) -> Call:
    rows, stats = audit_backends.reduce(out, lse, group=group)
    return rows * (1 + torch.distributed.get_rank(group) * 2.0**-23), stats


@planted("A0", "live rows", **REDUCE)
def sums_of_16_bits(out: torch.Tensor, lse: torch.Tensor, *, group: Any) -> Call:
    """Rounds f32 partial results to bf16 (flashinfer-ai/flashinfer#5107)."""
    rows, stats = audit_backends.reduce(out.bfloat16().float(), lse, group=group)
    return rows, stats


@planted("A1", "", **REDUCE)
def empty_on_the_last_rank(out: torch.Tensor, lse: torch.Tensor, *, group: Any) -> Call:
    rows, stats = audit_backends.reduce(out, lse, group=group)
    return torch.where((stats == -math.inf)[..., None], math.nan, rows), stats


@planted("A15", "after a call of other values", **REDUCE)
def a_buffer_of_the_call_before(out: torch.Tensor, lse: torch.Tensor, *, group: Any) -> Call:
    """Each rank reads the rows that belong to the previous call."""
    before = SEEN.get(("rows", out.shape), out)
    SEEN["rows", out.shape] = out.clone()
    return audit_backends.reduce(before, lse, group=group)
