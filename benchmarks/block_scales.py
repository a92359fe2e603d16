#!/usr/bin/env python3
"""Times a merge into fp8 or fp4 with a scale for each group, and separately the merge and the quantisation.

    python benchmarks/block_scales.py [--device cpu|cuda] [--rounds N] [--quick] [--json FILE]

    fused      merge_groups of the cookbook, into fp8
    library    the merge of mlafix.ops into Fp8Groups
    words      the same with scales that are powers of two, packed four to a 32-bit word, in column-major order
    pair       two launches: a merge into bf16, then quantize_groups
    merge      the merge into bf16 alone
    fp4        the library's merge into NVFP4, with scales in tiles of 128 x 4
    fp4_pair   two launches: a merge into bf16, then quantize_fp4 of the cookbook

Times are microseconds, medians of rounds. In every round all calls are timed in turn, in CUDA graphs on a GPU, on sets
of random buffers that exceed every cache. The rates of the fused launches, in bytes per second, are compared with the
rate of the merge alone.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

import torch

from mlafix import ops

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "python"), str(HERE.parent / "examples" / "python" / "cookbook")]
from measure import Call, Settings, measure, read_options, write_results  # noqa: E402
from merge_fp4 import quantize_fp4  # noqa: E402
from merge_scaled import merge_groups  # noqa: E402

HEADS, GROUP = 128, 128
FP4_GROUP, NUMBER = 16, 448.0


def make_calls(settings: Settings, tokens: int, dim: int) -> tuple[dict[str, list[Call]], dict[str, int]]:
    """Returns the launches of each implementation, one for each set of buffers, and the number of bytes that
    one launch of each implementation moves."""
    device = settings.device
    random = torch.Generator(device).manual_seed(tokens)
    rows, groups = tokens * HEADS, dim // GROUP
    inputs, lses = 2 * rows * dim * 2, rows * 3 * 4
    calls: dict[str, list[Call]] = {"fused": [], "library": [], "words": [], "pair": [], "merge": [], "fp4": [], "fp4_pair": []}
    number = torch.full((1,), NUMBER, device=device)
    for _ in range(settings.count_sets(inputs)):
        a, b = (torch.randn(tokens, HEADS, dim, generator=random, device=device).bfloat16() for _ in range(2))
        a_lse, b_lse = (torch.randn(tokens, HEADS, generator=random, device=device) for _ in range(2))
        out, lse, q = torch.empty_like(a), torch.empty_like(a_lse), torch.empty_like(a, dtype=torch.float8_e4m3fn)
        scales = torch.empty(tokens, HEADS, groups, device=device)
        fused = merge_groups.bind(q, scales, lse, a, a_lse, b, b_lse)
        quantize = ops.quantize_groups.bind(out.view(rows, dim), ops.Fp8Groups(scales.view(rows, groups)), out=q.view(rows, dim))
        words = torch.empty(-(-HEADS * groups // 4), tokens, dtype=torch.int32, device=device).T
        scaled = functools.partial(ops.merge_attn_states.bind, a, a_lse, b, b_lse, out=q, out_lse=lse, lse_layout="nh")
        merge = functools.partial(ops.merge_attn_states, a, a_lse, b, b_lse, out=out, out_lse=lse, lse_layout="nh")
        calls["fused"].append(fused)
        calls["library"].append(scaled(out_format=ops.Fp8Groups(scales)))
        calls["words"].append(scaled(out_format=ops.Fp8Groups(words)))
        calls["merge"].append(merge)
        calls["pair"].append(lambda merge=merge, quantize=quantize: (merge(), quantize()))
        halves = torch.empty(tokens, HEADS, dim // 2, dtype=torch.uint8, device=device)
        tiles = torch.zeros(-(-tokens // 128) * 128, HEADS * dim // FP4_GROUP, dtype=torch.float8_e4m3fn, device=device)
        scaled = functools.partial(scaled, out=halves)
        calls["fp4"].append(scaled(out_format=ops.NvFp4(tiles, number, tiles="128x4")))
        quantize = quantize_fp4.bind(halves, tiles.view(-1, HEADS, dim // FP4_GROUP), number, out, 0)
        calls["fp4_pair"].append(lambda merge=merge, quantize=quantize: (merge(), quantize()))
    small = rows * (dim + 4 * groups)
    fused, fp4 = inputs + lses + small, rows * (dim // 2 + dim // FP4_GROUP)
    return calls, {"fp4": inputs + lses + fp4, "fp4_pair": inputs + lses + 2 * rows * dim * 2 + fp4, "fused": fused, "library": fused, "words": fused - 3 * rows * groups, "pair": inputs + lses + 2 * rows * dim * 2 + small, "merge": inputs + lses + rows * dim * 2}


def check(device: torch.device, dim: int) -> None:
    """Checks that the fused launch gives the results of the merge, within the error of fp8. Checks that the fused fp4
    launch stores the same bytes as a merge and a quantiser in two launches."""
    a, b = (torch.randn(8, HEADS, dim, device=device).bfloat16() for _ in range(2))
    a_lse, b_lse = (torch.randn(8, HEADS, device=device) for _ in range(2))
    q = torch.empty_like(a, dtype=torch.float8_e4m3fn)
    scales, lse = torch.empty(8, HEADS, dim // GROUP, device=device), torch.empty_like(a_lse)
    merge_groups(q, scales, lse, a, a_lse, b, b_lse)
    want, want_lse = ops.merge_attn_states(a, a_lse, b, b_lse, lse_layout="nh")
    got = (q.float().view(8, HEADS, -1, GROUP) * scales[..., None]).view(8, HEADS, dim)
    if not torch.allclose(got, want.float(), rtol=0.07, atol=0.02) or not torch.allclose(lse, want_lse):
        raise SystemExit("expected the fused launch to give what the merge gives, got something else")
    results = []
    number = torch.full((1,), NUMBER, device=device)
    for _ in range(2):
        halves = torch.zeros(8, HEADS, dim // 2, dtype=torch.uint8, device=device)
        results.append((halves, torch.zeros(128, HEADS * dim // FP4_GROUP, dtype=torch.uint8, device=device)))
    (halves, tiles), (other, others) = results
    where = ops.NvFp4(tiles, number, tiles="128x4", quantize_from="output")
    ops.merge_attn_states(a, a_lse, b, b_lse, out=halves, lse_layout="nh", out_format=where)
    quantize_fp4(other, others.view(torch.float8_e4m3fn).view(128, HEADS, -1), number, want, 0)
    if not torch.equal(halves, other) or not torch.equal(tiles, others):
        raise SystemExit("expected the fused launch of NVFP4 to give what the pair gives, got something else")


def main() -> None:
    options, settings = read_options(__doc__ or "")
    device = settings.device
    cases: list[dict[str, Any]] = []
    for dim in (128, 512):
        check(device, dim)
        for tokens in (4,) if options.quick else (16, 64, 256, 1024, 4096):
            calls, moved = make_calls(settings, tokens, dim)
            times = measure(settings, calls, "fused")
            us = {name: times[name]["median"] for name in calls}
            rates = {name: moved[name] / us[name] / 1e3 for name in calls}
            cases.append({"tokens": tokens, "dim": dim, "us": us, "gbps": rates})
            print(f"{tokens:>5} tokens of {HEADS} x {dim}: " + "  ".join(f"{name} {us[name]:8.2f} us" for name in calls)
                  + f"  pair/fused {us['pair'] / us['fused']:.2f}  rate of the merge's {rates['fused'] / rates['merge']:.3f}"
                  + f"  fp4_pair/fp4 {us['fp4_pair'] / us['fp4']:.2f}  rate of the merge's {rates['fp4'] / rates['merge']:.3f}", flush=True)
    write_results(options, settings, cases=cases)


if __name__ == "__main__":
    main()
