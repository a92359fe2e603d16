#!/usr/bin/env python3
"""Times mlafix's functions on rows beside torch, and beside the kernels of vLLM and SGLang if they are installed.

    python benchmarks/engine_rows.py [--device cpu|cuda] [--rounds N] [--quick] [--json FILE]
    MLAFIX_NO_DEPENDENT_LAUNCH=1 python benchmarks/engine_rows.py      launch mlafix's kernels as vLLM launches its own

    add_norm            rmsnorm with a residual, into bf16
    add_norm_fp8        the same into fp8 with one scale
    add_norm_groups     the same into fp8 with a scale for each 128 elements
    store, store_fp8    store_rows for keys and for values, 8 heads of 128, into a paged cache; vLLM has one launch for both
    experts             combine_experts of 8 rows per token, through a map
    zero                zero_blocks of 8 caches
    no_indices          blank_rows_without_indices of 128 heads of 512
    gate, gate_heads    merge_attn_states with an output gate for each element or for each head, 32 heads of 128;
                        compared with vLLM's merge followed by the gate in torch, as vLLM's models apply it

mlafix's launches are dependent (programmatic dependent launch) unless MLAFIX_NO_DEPENDENT_LAUNCH=1. vLLM's launches are
not dependent. SGLang's functions that can launch both ways are timed both ways. Results are compared before anything is
timed. Times are microseconds, medians of rounds. In every round all calls are timed in turn, in CUDA graphs on a GPU,
on sets of random buffers that exceed every cache.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

import torch

from mlafix import ops

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "python"))
from measure import Call, Settings, first_line, medians, read_options, write_results  # noqa: E402

EPSILON = 1e-6
FP8 = torch.float8_e4m3fn


def installed(*names: str) -> Any:
    """Returns the first of these modules that can be imported, or None."""
    for name in names:
        try:
            return importlib.import_module(name)
        except (ImportError, OSError, RuntimeError, AttributeError):
            continue
    return None


HAS_VLLM = installed("vllm._C_stable_libtorch", "vllm._C") is not None
HAS_VLLM_MOE = installed("vllm._moe_C_stable_libtorch", "vllm._moe_C") is not None
SGLANG = installed("sgl_kernel")


@dataclass
class Work:
    """One set of buffers of a case: the calls on it by name, the arrays that each call writes, and the bytes that a
    call moves."""

    size: int
    calls: dict[str, Call] = field(default_factory=dict)
    results: dict[str, tuple[torch.Tensor, ...]] = field(default_factory=dict)

    def add(self, name: str, call: Call, *results: torch.Tensor) -> None:
        self.calls[name], self.results[name] = call, results


class Maker:
    """Makes random arrays on a device."""

    def __init__(self, device: torch.device, seed: int) -> None:
        self.device, self.random = device, torch.Generator(device).manual_seed(seed)

    def rows(self, *shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
        return torch.randn(*shape, generator=self.random, device=self.device).to(dtype)

    def places(self, count: int, of: int) -> torch.Tensor:
        """Returns `count` distinct integers below `of`."""
        return torch.randperm(of, generator=self.random, device=self.device)[:count]

    def empty(self, *shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
        return torch.zeros(shape, dtype=dtype, device=self.device)

    def scale(self) -> torch.Tensor:
        return torch.full((1,), 0.02, device=self.device)


def normed(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    return wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + EPSILON) * weight.float()


def add_norm(m: Maker, n: int, dim: int) -> Work:
    work, weight = Work(n * dim * 8), m.rows(dim)
    x, residual = m.rows(n, dim), m.rows(n, dim)
    copies = {name: (x.clone(), residual.clone()) for name in ("mlafix", "vLLM", "SGLang", "SGLang, dependent", "torch")}

    def in_torch(x: torch.Tensor, residual: torch.Tensor) -> None:
        residual += x
        x.copy_(normed(residual, weight))

    a, b = copies["mlafix"]
    work.add("mlafix", functools.partial(ops.rmsnorm, a, weight, EPSILON, residual=b, out=a), a, b)
    if HAS_VLLM:
        work.add("vLLM", lambda: torch.ops._C.fused_add_rms_norm(*copies["vLLM"], weight, EPSILON), *copies["vLLM"])
    for name, dependent in (("SGLang", False), ("SGLang, dependent", True)):
        if SGLANG is not None:
            given = copies[name]
            work.add(name, lambda given=given, dependent=dependent: SGLANG.fused_add_rmsnorm(*given, weight, EPSILON, enable_pdl=dependent), *given)
    work.add("torch", lambda: in_torch(*copies["torch"]), *copies["torch"])
    return work


def add_norm_fp8(m: Maker, n: int, dim: int) -> Work:
    work, weight, scale = Work(n * dim * 7), m.rows(dim), m.scale()
    x, residual = m.rows(n, dim), m.rows(n, dim)
    ours, theirs = (residual.clone(), m.empty(n, dim, dtype=FP8)), (residual.clone(), m.empty(n, dim, dtype=FP8))
    work.add("mlafix", functools.partial(ops.rmsnorm, x, weight, EPSILON, residual=ours[0], out=ours[1], out_format=ops.Fp8(scale)), *ours)
    if HAS_VLLM:
        work.add("vLLM", lambda: torch.ops._C.fused_add_rms_norm_static_fp8_quant(theirs[1], x, theirs[0], weight, scale, EPSILON), *theirs)
    return work


def add_norm_groups(m: Maker, n: int, dim: int) -> Work:
    work, weight = Work(n * dim * 7), m.rows(dim)
    x, residual = m.rows(n, dim), m.rows(n, dim)
    ours, theirs = ((residual.clone(), m.empty(n, dim, dtype=FP8), m.empty(n, dim // 128, dtype=torch.float32)) for _ in range(2))
    work.add("mlafix", functools.partial(ops.rmsnorm, x, weight, EPSILON, residual=ours[0], out=ours[1], out_format=ops.Fp8Groups(ours[2])), *ours)
    if HAS_VLLM:
        work.add("vLLM", lambda: torch.ops._C.rms_norm_per_block_quant(theirs[1], x, weight, theirs[2], EPSILON, None, theirs[0], 128, False), *theirs)
    return work


def store(m: Maker, n: int, dim: int, *, quantised: bool = False) -> Work:
    heads, page, pages = dim // 128, 16, 2 * n // 16 + 8
    work, slots, scale = Work(n * dim * (6 if quantised else 8)), m.places(n, pages * page), m.scale()
    key, value = m.rows(n, heads, 128), m.rows(n, heads, 128)
    dtype = FP8 if quantised else torch.bfloat16
    caches = {name: [m.empty(pages, page, heads, 128, dtype=dtype) for _ in range(2)] for name in ("mlafix", "vLLM", "torch")}
    form = ops.Fp8(scale) if quantised else None

    def ours() -> None:
        for cache, rows in zip(caches["mlafix"], (key, value)):
            ops.store_rows(cache, rows, slots, out_format=form)

    work.add("mlafix", ours, *caches["mlafix"])
    if HAS_VLLM:
        bits = [cache.view(torch.uint8) if quantised else cache for cache in caches["vLLM"]]
        kind = "fp8" if quantised else "auto"
        work.add("vLLM", lambda: torch.ops._C_cache_ops.reshape_and_cache_flash(key, value, *bits, slots, kind, scale, scale), *caches["vLLM"])
    if not quantised:
        def in_torch() -> None:
            for cache, rows in zip(caches["torch"], (key, value)):
                cache.view(-1, heads, 128)[slots] = rows

        work.add("torch", in_torch, *caches["torch"])
    return work


def experts(m: Maker, n: int, dim: int) -> Work:
    k = 8
    work = Work(n * dim * 2 * (k + 1))
    rows, places, weights = m.rows(n * k, dim), m.places(n * k, n * k).view(n, k).int(), torch.rand(n, k, generator=m.random, device=m.device)
    outs = {name: m.empty(n, dim) for name in ("mlafix", "vLLM", "torch")}
    work.add("mlafix", functools.partial(ops.combine_experts, rows, places, weights, out=outs["mlafix"]), outs["mlafix"])
    if HAS_VLLM_MOE:
        work.add("vLLM", lambda: torch.ops._moe_C.moe_unpermute(rows, weights, places, None, k, outs["vLLM"]), outs["vLLM"])
    work.add("torch", lambda: outs["torch"].copy_((rows[places.long()].float() * weights[..., None]).sum(1)), outs["torch"])
    return work


def zero(m: Maker, n: int, dim: int) -> Work:
    """Makes a case that zeroes `n` blocks of 16 tokens with `dim` elements in each of 8 caches."""
    blocks = 2 * n
    work, ids = Work(8 * n * 16 * dim * 2), m.places(n, blocks)
    caches = {name: [m.rows(blocks, 16, dim) for _ in range(8)] for name in ("mlafix", "vLLM", "torch")}
    for name in ("vLLM", "torch"):
        for cache, first in zip(caches[name], caches["mlafix"]):
            cache.copy_(first)
    work.add("mlafix", functools.partial(ops.zero_blocks, caches["mlafix"], ids), *caches["mlafix"])
    utils = installed("vllm.v1.worker.utils") if HAS_VLLM else None
    if utils is not None:
        addresses = torch.tensor([cache.data_ptr() for cache in caches["vLLM"]], dtype=torch.uint64, device=m.device)
        words = 16 * dim // 2
        kernel = utils._zero_kv_blocks_kernel[(n * 8 * (words // 1024),)]
        work.add("vLLM (Triton)", lambda: kernel(addresses, ids, n, N_SEGS=8, PAGE_SIZE_EL=words, BLOCK_SIZE=1024), *caches["vLLM"])
    work.add("torch", lambda: [cache.index_fill_(0, ids, 0) for cache in caches["torch"]], *caches["torch"])
    return work


def no_indices(m: Maker, n: int, dim: int) -> Work:
    """Makes a case in which a tenth of the tokens has no keys. There is no baseline of vLLM, since
    vLLM blanks the rows of these tokens with operators of torch, as the baseline `torch` does."""
    heads, keys = 128, 2048
    work = Work(n * keys * 4 + n // 10 * heads * dim * 2)
    indices = torch.randint(0, 4096, (n, keys), generator=m.random, device=m.device, dtype=torch.int32)
    indices[::10] = -1
    out, lse = m.rows(n, heads, dim), m.rows(n, heads, dtype=torch.float32)
    copies = {name: (out.clone(), lse.clone()) for name in ("mlafix", "torch")}

    def in_torch(out: torch.Tensor, lse: torch.Tensor) -> None:
        empty = (indices == -1).all(dim=-1)
        out.masked_fill_(empty[:, None, None], 0.0)
        lse.masked_fill_(empty[:, None], float("-inf"))

    a, b = copies["mlafix"]
    work.add("mlafix", functools.partial(ops.blank_rows_without_indices, a, indices, b, lse_layout="nh"), a, b)
    work.add("torch", lambda: in_torch(*copies["torch"]), *copies["torch"])
    return work


def gate(m: Maker, n: int, dim: int, *, of_heads: bool = False) -> Work:
    heads = 32
    work = Work(n * heads * (8 * dim + 12) if not of_heads else n * heads * (6 * dim + 14))
    a, b = m.rows(n, heads, dim), m.rows(n, heads, dim)
    a_lse, b_lse = m.rows(heads, n, dtype=torch.float32), m.rows(heads, n, dtype=torch.float32)
    logits = m.rows(n, heads) if of_heads else m.rows(n, heads, 2 * dim)[..., dim:]  # strided, as models slice logits and queries from one projection
    outs = {name: (m.empty(n, heads, dim), m.empty(heads, n, dtype=torch.float32)) for name in ("mlafix", "vLLM", "two")}
    work.add("mlafix", functools.partial(ops.merge_attn_states, a, a_lse, b, b_lse, gate=logits, out=outs["mlafix"][0], out_lse=outs["mlafix"][1]),
             *outs["mlafix"])
    factor = logits[..., None] if of_heads else logits
    if HAS_VLLM:
        def theirs() -> None:
            out, lse = outs["vLLM"]
            torch.ops._C.merge_attn_states(out, lse, a, a_lse, b, b_lse, None, None)
            out.mul_(torch.sigmoid(factor))

        work.add("vLLM and torch", theirs, *outs["vLLM"])

    def two() -> None:
        ops.merge_attn_states(a, a_lse, b, b_lse, out=outs["two"][0], out_lse=outs["two"][1])
        outs["two"][0].mul_(torch.sigmoid(factor))

    work.add("mlafix and torch", two, *outs["two"])
    return work


CASES: dict[str, tuple[Callable[[Maker, int, int], Work], int]] = {
    "add_norm": (add_norm, 7168), "add_norm_fp8": (add_norm_fp8, 7168), "add_norm_groups": (add_norm_groups, 7168),
    "store": (store, 1024), "store_fp8": (functools.partial(store, quantised=True), 1024), "experts": (experts, 7168), "zero": (zero, 1024),
    "no_indices": (no_indices, 512), "gate": (gate, 128), "gate_heads": (functools.partial(gate, of_heads=True), 128)}
"""The cases by name. Each has the function that makes a set of buffers for a number of tokens (of blocks for `zero`),
and the number of elements in a row."""


def check(name: str, work: Work) -> None:
    """Removes the calls that raise an error from `work`. Raises SystemExit unless the results of all other calls nearly
    equal those of mlafix."""
    for other in list(work.calls):
        try:
            work.calls[other]()
        except (AttributeError, RuntimeError, TypeError, ValueError) as error:
            if other == "mlafix":
                raise
            print(f"  {name}: {other} cannot be called: {first_line(error)}")
            del work.calls[other], work.results[other]
    for other, results in work.results.items():
        for ours, theirs in zip(work.results["mlafix"], results):
            a, b = ours.float(), theirs.float()
            # bf16 results may differ by two roundings. fp8 results may differ by one step, since the scale and the
            # element may be rounded differently.
            allowed = {torch.bfloat16: 2.0**-6, FP8: 2.0**-3}.get(ours.dtype, 1e-5) * a.abs() + {FP8: 2.0**-8}.get(ours.dtype, 1e-2)
            wrong = int((~((a - b).abs() <= allowed) & (a != b)).sum())
            if wrong:
                raise SystemExit(f"{name}: expected of {other} what mlafix gives, got {wrong} other elements of {a.numel()}")


def timed(settings: Settings, name: str, tokens: int) -> dict[str, float]:
    """Returns the microseconds of each implementation."""
    make, dim = CASES[name]
    first = make(Maker(settings.device, tokens), tokens, dim)
    check(name, first)
    sets = [make(Maker(settings.device, seed), tokens, dim) for seed in range(settings.count_sets(first.size))]
    return medians(settings, {other: [one.calls[other] for one in sets] for other in first.calls}, "mlafix")


def main() -> None:
    options, settings = read_options(__doc__ or "")
    dependent = os.environ.get("MLAFIX_NO_DEPENDENT_LAUNCH", "0") in ("", "0")
    cases: list[dict[str, Any]] = []
    for name in CASES:
        for tokens in (4,) if options.quick else (16, 256, 4096):
            us = timed(settings, name, tokens)
            cases.append({"case": name, "tokens": tokens, "us": us})
            ours = us["mlafix"]
            print(f"{name:>15} {tokens:>4}: mlafix {ours:8.2f} us" + "".join(f"  {other} {time / ours:.2f} x" for other, time in us.items() if other != "mlafix"), flush=True)
    write_results(options, settings, dependent_launch=dependent, cases=cases)


if __name__ == "__main__":
    main()
