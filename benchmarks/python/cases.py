"""Makes all cases: the work of mlafix-bench, under the names that mlafix-bench uses, and further work for which engines
have kernels."""

from __future__ import annotations

from itertools import accumulate

import torch
from work import (Case, Tensors, check_merged, combine_case, dense_case, fixup_case, lses, merge_case, payload, ragged_case)

FP8_SCALE = 0.5


def threshold_case(n: int, heads: int = 128, dim: int = 128) -> Case:
    """Makes a merge of two states in which the second half of the rows has no context. The lse is [H, n]."""
    whole = merge_case(n, heads, dim)
    context = n // 2

    def check(before: Tensors, after: Tensors) -> None:
        first = [slice(0, context), slice(context, n)]
        rows = [[before["prefix"][part], before["suffix"][part]] for part in first]
        weights = [[before["prefix_lse"].T[part], before["suffix_lse"].T[part]] for part in first]
        check_merged(rows[0], weights[0], after["out"][first[0]], after["out_lse"].T[first[0]])
        check_merged(rows[1][1:], weights[1][1:], after["out"][first[1]], after["out_lse"].T[first[1]])

    side = heads * (2 * dim + 4)
    return Case(f"threshold/half_h{heads}_d{dim}/n{n}", (n + context) * side, n * side, whole.make, check)


def fp8_case(n: int, heads: int = 128, dim: int = 128) -> Case:
    """Makes a merge of two states into fp8 with one scale and without an output lse. The lse is [H, n]."""

    def make(generator: torch.Generator, device: torch.device) -> Tensors:
        tensors = merge_case(n, heads, dim).make(generator, device)
        del tensors["out_lse"]
        return {**tensors, "out": torch.zeros(n, heads, dim, device=device, dtype=torch.float8_e4m3fn),
                "scale": torch.full((1,), FP8_SCALE, device=device)}

    def check(before: Tensors, after: Tensors) -> None:
        check_merged([before["prefix"], before["suffix"]], [before["prefix_lse"].T, before["suffix_lse"].T],
                     after["out"].float() * FP8_SCALE, None, relative=2**-3)

    side = n * heads * (2 * dim + 4)
    return Case(f"merge_fp8/bf16_h{heads}_d{dim}/n{n}", 2 * side, n * heads * dim, make, check)


def in_place_case(n: int, heads: int = 64, dim: int = 128, masked: bool = False) -> Case:
    """Makes a merge of a second f16 state into the first, in half of the rows if `masked`. The lse is [n, H], in base
    2."""

    def make(generator: torch.Generator, device: torch.device) -> Tensors:
        mask = torch.arange(n, device=device) % 2 == 0 if masked else torch.ones(n, device=device, dtype=torch.bool)
        return {"v": payload(generator, device, n, heads, dim, dtype=torch.float16), "s": lses(generator, device, n, heads),
                "v_other": payload(generator, device, n, heads, dim, dtype=torch.float16), "s_other": lses(generator, device, n, heads),
                "mask": mask}

    def check(before: Tensors, after: Tensors) -> None:
        mask, to_e = before["mask"], 0.6931471805599453
        check_merged([before["v"][mask], before["v_other"][mask]], [before["s"][mask] * to_e, before["s_other"][mask] * to_e],
                     after["v"][mask], after["s"][mask] * to_e)
        if not (torch.equal(after["v"][~mask], before["v"][~mask]) and torch.equal(after["s"][~mask], before["s"][~mask])):
            raise AssertionError("expected rows past the mask as they were, got others")

    rows = (n // 2 if masked else n) * heads * (2 * dim + 4)
    return Case(f"in_place/f16{'_half_masked' if masked else ''}_h{heads}_d{dim}/n{n}", 2 * rows + (n if masked else 0), rows, make, check)


def mask_case(requests: int = 64, tokens: int = 128, heads: int = 128, dim: int = 128, rows: bool = False) -> Case:
    """Makes a case that sets the lses of tokens without context to -inf. Every other request has no context. With
    `rows`, the case also sets the rows of these tokens to 0. The lse is [H, n]."""
    n = requests * tokens
    lengths = [100 * (request % 2) for request in range(requests)]
    starts = [0, *accumulate(lengths)]

    def make(generator: torch.Generator, device: torch.device) -> Tensors:
        tensors = {"lse": lses(generator, device, heads, n),
                   "query_start_loc": torch.arange(0, n + 1, tokens, device=device, dtype=torch.int32),
                   "context_start_loc": torch.tensor(starts, device=device, dtype=torch.int32)}
        return {**tensors, "out": payload(generator, device, n, heads, dim)} if rows else tensors

    def check(before: Tensors, after: Tensors) -> None:
        is_empty = (torch.arange(n, device=after["lse"].device) // tokens) % 2 == 0
        if not torch.equal(after["lse"], before["lse"].masked_fill(is_empty[None, :], -float("inf"))):
            raise AssertionError("expected -inf for tokens without context and no other change, got something else")
        if rows and not torch.equal(after["out"], before["out"].masked_fill(is_empty[:, None, None], 0)):
            raise AssertionError("expected 0 in the rows of tokens without context and no other change, got something else")

    written = n // 2 * heads * (4 + (2 * dim if rows else 0))
    name = f"mask/rows_h{heads}_d{dim}" if rows else f"mask/lse_h{heads}"
    return Case(f"{name}/{requests}x{tokens}_half_empty", 8 * (requests + 1), written, make, check)


def fixup_cases(rows_first: bool) -> list[Case]:
    """Makes fixups of rows without keys for several batches. With `rows_first`, the lse is [n, H] as in SGLang, and
    there are more batches."""
    common = [
        fixup_case("all_dead_h128_d128/n8192", [8192], [True], rows_first=rows_first),
        fixup_case("short_dead_16384_and_255x1", [16384] + [1] * 255, [False] + [True] * 255, rows_first=rows_first),
        fixup_case("none_dead_256x64", [64] * 256, [False] * 256, rows_first=rows_first),
    ]
    every_8th = [sequence % 8 == 0 for sequence in range(256)]
    return common if not rows_first else [
        *common,
        fixup_case("every_8th_dead_256x64", [64] * 256, every_8th, rows_first=True),
        fixup_case("every_8th_dead_decode_h16_d512_256x1", [1] * 256, every_8th, 16, 512, rows_first=True),
    ]


def all_cases() -> list[Case]:
    """Makes all cases. A case with the same name as one of `mlafix-bench --list` does the same work."""
    half = torch.float16
    return [
        *(merge_case(n) for n in (1, 16, 64, 256, 1024, 4096, 8192)),
        *(merge_case(n, heads, 128, "shapes") for heads in (16, 96) for n in (64, 1024, 8192)),
        *(merge_case(n, 128, dim, "shapes") for dim in (64, 192, 512) for n in (64, 1024)),
        *(merge_case(n, 128, 128, "rows_first") for n in (1, 16, 64, 256, 1024, 8192)),
        *(merge_case(n, heads, 128, "rows_first") for heads in (16, 96) for n in (64, 1024)),
        *(merge_case(1024, 128, dim, "rows_first") for dim in (64, 192, 512)),
        *(merge_case(n, 64, 128, "rows_first", half) for n in (64, 1024, 8192)),
        *(merge_case(1024, 64, dim, "rows_first") for dim in (64, 192)),
        merge_case(1024, 16, 512, "rows_first"),
        *(threshold_case(n) for n in (64, 1024, 8192)),
        *(fp8_case(n) for n in (64, 1024, 8192)),
        *(in_place_case(n, masked=masked) for n in (64, 1024) for masked in (False, True)),
        *(dense_case(4, n) for n in (64, 1024)),
        *(dense_case(ways, n, 64, group="states") for ways in (4, 8) for n in (64, 1024, 4096)),
        *(dense_case(ways, 1024, group="states") for ways in (4, 8)),
        *(combine_case(splits, batch, dim=dim) for dim in (128, 512) for splits in (8, 32) for batch in (1, 8, 64, 256)),
        *(combine_case(splits, batch, dim=64) for splits in (8, 32) for batch in (8, 64)),
        *(combine_case(128, batch, dim=dim) for dim in (128, 512) for batch in (1, 8)),
        *(combine_case(2, 64, dim=dim) for dim in (128, 512)),
        combine_case(4, 1, dim=128, queries=4096),
        ragged_case(1000),
        ragged_case(1000, dtype=torch.bfloat16),
        *fixup_cases(rows_first=False),
        *fixup_cases(rows_first=True),
        mask_case(),
        mask_case(rows=True),
    ]
