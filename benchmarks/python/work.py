"""Makes the cases with the shapes and names of mlafix-bench: their buffers and their expected results."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Callable

import torch

NAMES = {torch.bfloat16: "bf16", torch.float16: "f16"}
"""The dtypes of rows, as names of cases spell them."""

Tensors = dict[str, torch.Tensor]
Prepare = Callable[[Tensors], Callable[[], object]]

PAIR = "prefix prefix_lse suffix suffix_lse"
"""The names of the tensors of two states."""


class Unavailable(Exception):
    """Raised if a baseline cannot run here. The text says why."""


def calling(function: Callable[..., object], names: str, *last: object, outs: str = "", **options: object) -> Prepare:
    """Returns a preparation of a call of `function`. Its arguments are the tensors with these names in a set of buffers,
    and `last`. Tensors in `outs` are passed by name, and so are `options`."""

    def prepare(t: Tensors) -> Callable[[], object]:
        args = (*(t[name] for name in names.split()), *last)
        named = {**{name: t[name] for name in outs.split()}, **options}
        return (lambda: function(*args, **named)) if named else (lambda: function(*args))

    return prepare


@dataclass
class Case:
    """Work to measure. `read` and `written` are the bytes that any implementation must read and write. `make` returns a
    set of buffers with random contents. `check` raises AssertionError if a set holds wrong results."""

    name: str
    read: int
    written: int
    make: Callable[[torch.Generator, torch.device], Tensors]
    check: Callable[[Tensors, Tensors], None]
    """Takes the set before the run and the set after it."""


def payload(generator: torch.Generator, device: torch.device, *shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """Returns random numbers of both signs with magnitudes from 0.25 to 4."""
    values = torch.rand(shape, generator=generator, device=device) * 3.75 + 0.25
    signs = torch.randint(0, 2, shape, generator=generator, device=device, dtype=torch.int8) * 2 - 1
    return (values * signs).to(dtype)


def lses(generator: torch.Generator, device: torch.device, *shape: int) -> torch.Tensor:
    """Returns random f32 numbers from -3 to 3."""
    return torch.rand(shape, generator=generator, device=device) * 6 - 3


def blank(device: torch.device, *shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """Returns a tensor filled with NaN, for outputs."""
    return torch.full(shape, float("nan"), device=device, dtype=dtype)


def close(got: torch.Tensor, want: torch.Tensor, size: torch.Tensor, what: str, relative: float) -> None:
    """Raises AssertionError unless the error of each element is at most `relative` times the same element of `size`."""
    wrong = ~((got.double() - want).abs() <= relative * size + 1e-30)
    if bool(wrong.any()):
        place = tuple(wrong.nonzero()[0].tolist())
        raise AssertionError(f"expected {what}{list(place)} of {want[place].item():.6g}, got {got[place].item():.6g}")


def check_merged(rows: list[torch.Tensor], weights: list[torch.Tensor], out: torch.Tensor, out_lse: torch.Tensor | None,
                 relative: float = 2**-7) -> None:
    """Compares some tokens of a merge with a merge in f64 of `rows`, each [n, H, D]. `weights` are their lses, each
    [n, H] in base e. `out_lse` is None if the implementation returns no lse."""
    some = torch.linspace(0, out.shape[0] - 1, min(out.shape[0], 16), device=out.device).long()
    lse = torch.stack([weight[some].double() for weight in weights])
    total = torch.logsumexp(lse, 0)
    parts = torch.stack([row[some].double() for row in rows]) * torch.exp(lse - total)[..., None]
    close(out[some], parts.sum(0), parts.abs().sum(0), "out", relative)
    if out_lse is not None:
        close(out_lse[some], total, torch.ones_like(total), "out_lse", 1e-5)


def merge_case(n: int, heads: int = 128, dim: int = 128, group: str = "merge", dtype: torch.dtype = torch.bfloat16) -> Case:
    """Makes a merge of two states. The lse is [n, H] in the group `rows_first`, as in SGLang and FlashInfer, else [H,
    n]."""
    rows_first = group == "rows_first"
    lse_shape = (n, heads) if rows_first else (heads, n)

    def make(generator: torch.Generator, device: torch.device) -> Tensors:
        return {"prefix": payload(generator, device, n, heads, dim, dtype=dtype), "prefix_lse": lses(generator, device, *lse_shape),
                "suffix": payload(generator, device, n, heads, dim, dtype=dtype), "suffix_lse": lses(generator, device, *lse_shape),
                "out": blank(device, n, heads, dim, dtype=dtype), "out_lse": blank(device, *lse_shape, dtype=torch.float32)}

    def check(before: Tensors, after: Tensors) -> None:
        prefix_lse, suffix_lse, out_lse = (lse if rows_first else lse.T for lse in (before["prefix_lse"], before["suffix_lse"], after["out_lse"]))
        check_merged([before["prefix"], before["suffix"]], [prefix_lse, suffix_lse], after["out"], out_lse)

    side = n * heads * (2 * dim + 4)
    return Case(f"{group}/{NAMES[dtype]}_h{heads}_d{dim}/n{n}", 2 * side, side, make, check)


def dense_case(ways: int, n: int, heads: int = 128, dim: int = 128, group: str = "n_way") -> Case:
    """Makes a merge of K states in one tensor [n, K, H, D] with lses [n, K, H]."""

    def make(generator: torch.Generator, device: torch.device) -> Tensors:
        return {"v": payload(generator, device, n, ways, heads, dim), "s": lses(generator, device, n, ways, heads),
                "out": blank(device, n, heads, dim), "out_lse": blank(device, n, heads, dtype=torch.float32)}

    def check(before: Tensors, after: Tensors) -> None:
        check_merged(list(before["v"].unbind(1)), list(before["s"].unbind(1)), after["out"], after["out_lse"])

    side = n * heads * (2 * dim + 4)
    return Case(f"{group}/dense_k{ways}_h{heads}_d{dim}/n{n}", ways * side, side, make, check)


def combine_case(splits: int, batch: int, heads: int = 16, dim: int = 512, queries: int = 1) -> Case:
    """Makes a combine of f32 partials of split-KV attention, [S, B, L, H, D], into bf16. The lse is a view of [S, B, H,
    L], as in FlashAttention."""

    def make(generator: torch.Generator, device: torch.device) -> Tensors:
        return {"partial": payload(generator, device, splits, batch, queries, heads, dim, dtype=torch.float32),
                "partial_lse": lses(generator, device, splits, batch, heads, queries).transpose(2, 3),
                "out": blank(device, batch, queries, heads, dim),
                "out_lse": blank(device, batch, heads, queries, dtype=torch.float32).transpose(1, 2)}

    def check(before: Tensors, after: Tensors) -> None:
        lse = after["out_lse"].flatten(0, 1) if "out_lse" in after else None
        check_merged(list(before["partial"].flatten(1, 2).unbind(0)), list(before["partial_lse"].flatten(1, 2).unbind(0)),
                     after["out"].flatten(0, 1), lse)

    rows = batch * queries * heads
    size = f"b{batch}" + (f"_l{queries}" if queries > 1 else "")
    return Case(f"combine/f32_s{splits}_h{heads}_d{dim}/{size}", splits * rows * (4 * dim + 4), rows * (2 * dim + 4), make, check)


def ragged_lengths(segments: int) -> list[int]:
    """Returns lengths from 1 to 8 with equal frequency, in the order of mlafix-bench."""
    return [1 + (segment * 2654435761 % 2**32 >> 29) for segment in range(segments)]


def ragged_case(segments: int, heads: int = 64, dim: int = 128, dtype: torch.dtype = torch.float16) -> Case:
    """Makes a merge of segments of 1 to 8 states. `indptr` has the bounds of the segments."""
    lengths = ragged_lengths(segments)
    starts = [0, *accumulate(lengths)]

    def make(generator: torch.Generator, device: torch.device) -> Tensors:
        return {"v": payload(generator, device, starts[-1], heads, dim, dtype=dtype), "s": lses(generator, device, starts[-1], heads),
                "indptr": torch.tensor(starts, device=device, dtype=torch.int32),
                "out": blank(device, segments, heads, dim, dtype=dtype),
                "out_lse": blank(device, segments, heads, dtype=torch.float32)}

    def check(before: Tensors, after: Tensors) -> None:
        nothing = torch.full_like(before["s"][0], -float("inf"))
        rows, weights = [], []
        for i in range(8):
            some = [min(start + i, starts[-1] - 1) for start in starts[:-1]]
            rows.append(before["v"][some])
            weights.append(torch.stack([before["s"][at] if i < length else nothing for at, length in zip(some, lengths)]))
        check_merged(rows, weights, after["out"], after["out_lse"])

    side = heads * (2 * dim + 4)
    return Case(f"ragged/{NAMES[dtype]}_1to8_h{heads}_d{dim}/n{segments}", starts[-1] * side + 4 * (segments + 1), segments * side, make, check)


def fixup_case(name: str, lengths: list[int], dead: list[bool], heads: int = 128, dim: int = 128, rows_first: bool = False) -> Case:
    """Makes a case that sets the rows of sequences without keys (`dead`) to 0, and the lses of these rows to -inf. The
    lse is [H, n], or [n, H] with `rows_first`."""
    starts = [0, *accumulate(lengths)]
    n = starts[-1]

    def make(generator: torch.Generator, device: torch.device) -> Tensors:
        lse = lses(generator, device, *((n, heads) if rows_first else (heads, n)))
        return {"out": payload(generator, device, n, heads, dim), "lse": lse,
                "kv_lens": torch.tensor([0 if is_dead else 1000 for is_dead in dead], device=device, dtype=torch.int32),
                "cu_seqlens": torch.tensor(starts, device=device, dtype=torch.int32)}

    def check(before: Tensors, after: Tensors) -> None:
        is_dead = torch.repeat_interleave(torch.tensor(dead), torch.tensor(lengths)).to(after["out"].device)
        want = before["out"].masked_fill(is_dead[:, None, None], 0)
        want_lse = before["lse"].masked_fill(is_dead[:, None] if rows_first else is_dead[None, :], -float("inf"))
        if not (torch.equal(after["out"], want) and torch.equal(after["lse"], want_lse)):
            raise AssertionError("expected 0 and -inf in the rows of dead sequences and no other change, got something else")

    written = sum(length for length, is_dead in zip(lengths, dead) if is_dead) * heads * (2 * dim + 4)
    return Case(f"{'fixup_rows_first' if rows_first else 'fixup'}/{name}", 8 * len(lengths) + 4, written, make, check)
