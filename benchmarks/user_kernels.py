#!/usr/bin/env python3
"""Times kernels as users write them, and a copy of the same number of bytes.

    python benchmarks/user_kernels.py [--device cpu|cuda] [--rounds N] [--quick] [--json FILE]

Most calls move about 100 MB. A decode reads 1 GB, the keys and values of its cache; a greedy choice reads 8 MB for 16
rows. Rows have 16-bit elements, except for the f32 rows of greedy choices and of combined splits. Tables, masks, scales
and results may have other widths. The roof is the faster of two copies of as many bytes, one by torch and one by a
kernel. Times are microseconds, medians of rounds. In every round all calls are timed in turn, in CUDA graphs on a GPU,
on sets of random buffers that exceed every cache.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import torch

import mlafix
from mlafix.dsl import (DType, In, InOut, Out, argmax, bf16, distinct, exp, f8e4m3fn, f32, grid, i8, i32, identity, index, iota, load_state,
                        log, make_state, max, merge, min, payload, range, rsqrt, shape, sink, store, store_state, sum, tanh,
                        top_k, where)  # fmt: skip

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "python"), str(HERE.parent / "examples" / "python" / "cookbook")]
from hadamard import hadamard_128  # noqa: E402
from measure import Call, Settings, medians, read_options, write_results  # noqa: E402

T = DType("T")
SPLITS = 16


@mlafix.kernel
def copy_rows(y: Out[T, "n D"], x: In[T, "n D"]):
    for t in grid("n"):
        y[t] = x[t]


@mlafix.kernel
def softcap_merge(out: Out[bf16, "n H D"], a: In[bf16, "n H D"], a_lse: In[f32, "n H"], b: In[bf16, "n H D"],
                  b_lse: In[f32, "n H"], cap: f32):
    for t, h in grid("n", "H"):
        row = payload(merge(load_state(a[t, h], a_lse[t, h]), load_state(b[t, h], b_lse[t, h])))
        out[t, h] = cap * tanh(row / cap)


@mlafix.kernel
def three_and_sink(out: Out[bf16, "n H D"], x: In[bf16, "k=3 n H D"], lse: In[f32, "k=3 n H"], logits: In[f32, "H"]):
    for t, h in grid("n", "H"):
        state = identity("D")
        for k in range(3):
            state = merge(state, load_state(x[k, t, h], lse[k, t, h]))
        store_state(merge(state, sink(logits[h])), out[t, h])


@mlafix.kernel
def window_merge(out: Out[bf16, "n H D"], out_lse: Out[f32, "n H"], a: In[bf16, "n H D"], a_lse: In[f32, "n H"],
                 b: In[bf16, "n H D"], b_lse: In[f32, "n H"], positions: In[i32, "n"], window: i32):
    for t, h in grid("n", "H"):
        prefix = load_state(a[t, h], a_lse[t, h], where=positions[t] < window)
        store_state(merge(prefix, load_state(b[t, h], b_lse[t, h])), out[t, h], out_lse[t, h])


@mlafix.kernel
def masked_mean(mean: Out[f32, "n"], count: Out[i32, "n"], x: In[bf16, "n D"], mask: In[i8, "n D"]):
    for t in grid("n"):
        kept = mask[t] != 0
        total = sum(where(kept, f32(x[t]), 0.0))
        number = sum(i32(kept))
        mean[t] = total / max(f32(number), 1.0)
        count[t] = number


@mlafix.kernel
def layernorm_residual(y: Out[bf16, "n D"], residual: InOut[bf16, "n D"], x: In[bf16, "n D"], weight: In[f32, "D"],
                       bias: In[f32, "D"], eps: f32):
    for t in grid("n"):
        row = f32(residual[t]) + f32(x[t])
        residual[t] = row
        centred = row - sum(row) / f32(shape("D"))
        y[t] = centred * rsqrt(sum(centred * centred) / f32(shape("D")) + eps) * weight[:] + bias[:]


@mlafix.kernel
def quantize_int8(q: Out[i8, "n (G 128)"], scales: Out[f32, "n G"], zeros: Out[f32, "n G"], x: In[bf16, "n (G 128)"]):
    for t in grid("n"):
        row = f32(x[t])
        low, high = min(row, along=128), max(row, along=128)
        scale = max(high - low, 1e-8) / 255.0
        scales[t] = scale
        zeros[t] = low
        q[t] = (row - low) / scale - 128.0


@mlafix.kernel
def top2(weights: Out[f32, "n two=2"], experts: Out[i32, "n two=2"], logits: In[bf16, "n E"]):
    for t in grid("n"):
        best, found = top_k(f32(logits[t]), 2)
        share = 1.0 / (1.0 + exp(best[1] - best[0]))
        weights[t, 0] = share
        weights[t, 1] = 1.0 - share
        for i in range(2):
            experts[t, i] = found[i]


@mlafix.kernel
def cross_entropy(loss: Out[f32, "n"], best: Out[i32, "n"], logits: In[bf16, "n V"], labels: In[i32, "n"]):
    for t in grid("n"):
        row = f32(logits[t])
        most = max(row)
        label = labels[t]
        target = sum(where(iota("V") == label, row, 0.0))
        loss[t] = most + log(sum(exp(row - most))) - target
        best[t] = argmax(row)


@mlafix.kernel
def greedy(token: Out[i32, "n"], logits: In[f32, "n V"]):
    for t in grid("n"):
        token[t] = argmax(logits[t])


@mlafix.kernel
def softmax(y: Out[bf16, "n V"], x: In[bf16, "n V"]):
    for t in grid("n"):
        row = f32(x[t])
        powers = exp(row - max(row))
        y[t] = powers * (1.0 / sum(powers))


@mlafix.kernel
def softmax_bounded(y: Out[bf16, "n v<=32768"], x: In[bf16, "n v<=32768"]):
    for t in grid("n"):
        row = f32(x[t])
        powers = exp(row - max(row))
        y[t] = powers * (1.0 / sum(powers))


@mlafix.inline
def turn_halves(x, t, h, first, table, position):
    """Rotates pairs of elements of a head: element i of group `first` with element i of group `first + 1`."""
    c, s = table[position, 0], table[position, 1]
    a, b = x[t, h, first], x[t, h, first + 1]
    x[t, h, first] = a * c - b * s
    x[t, h, first + 1] = b * c + a * s


@mlafix.kernel
def rope_tail(x: InOut[bf16, "n H (6 K)"], positions: In[i32, "n"], table: In[f32, "m two=2 K"]):
    for t, h in grid("n", "H"):
        turn_halves(x, t, h, 4, table, positions[t])


@mlafix.kernel
def rope_halves(x: InOut[bf16, "n H (2 K)"], positions: In[i32, "n"], table: In[f32, "m two=2 K"]):
    for t, h in grid("n", "H"):
        turn_halves(x, t, h, 0, table, positions[t])


@mlafix.kernel
def append_fp8(cache: InOut[f8e4m3fn, "slots H D"], k: In[bf16, "n H D"], slots: In[i32, "n"], scale: f32):
    distinct(slots)
    for t, h in grid("n", "H"):
        store(cache[slots[t], h], f32(k[t, h]) / scale, where=slots[t] >= 0)


@mlafix.kernel(allow={"races"})
def gather_pages(out: InOut[bf16, "n H D"], pages: In[bf16, "p S H D"], table: In[i32, "b m"], starts: In[i32, "b1"]):
    for b, j, i, h in grid("b", "m", "S", "H"):
        t = index(starts[b]) + j * shape("S") + i
        store(out[t, h], pages[table[b, j], i, h], where=t < index(starts[b + 1]))


@mlafix.kernel
def swiglu_clamp(y: Out[bf16, "n K"], x: In[bf16, "n (2 K)"], limit: f32):
    for t in grid("n"):
        a = min(f32(x[t, 0]), limit)
        b = max(min(f32(x[t, 1]), limit), -limit)
        y[t] = a / (exp(-a * 1.702) + 1.0) * (b + 1.0)


@mlafix.kernel
def butterfly(x: InOut[bf16, "n H (2 K)"]):
    for t, h in grid("n", "H"):
        a, b = f32(x[t, h, 0]), f32(x[t, h, 1])
        x[t, h, 0] = (a + b) * 0.70710678
        x[t, h, 1] = (a - b) * 0.70710678


@mlafix.kernel
def moe_sum(out: Out[bf16, "n D"], x: In[bf16, "n K D"], weights: In[f32, "n K"]):
    for t in grid("n"):
        total = f32(x[t, 0]) * weights[t, 0]
        for k in range(1, shape("K")):
            total = total + f32(x[t, k]) * weights[t, k]
        out[t] = total


@mlafix.kernel
def decode_split(out: Out[f32, "b K S D"], lse: Out[f32, "b K S"], q: In[bf16, "b K D"], keys: In[bf16, "p P K D"],
                 values: In[bf16, "p P K D"], table: In[i32, "b m"], lens: In[i32, "b"], share: index, scale: f32):
    for b, k, s in grid("b", "K", "S"):
        query = f32(q[b, k]) * scale
        state = identity("D")
        for i in range(share * s, min(share * (s + 1), index(lens[b]))):
            page, at = table[b, i // shape("P")], i % shape("P")
            state = merge(state, make_state(f32(values[page, at, k]), sum(f32(keys[page, at, k]) * query)))
        store_state(state, out[b, k, s], lse[b, k, s])


def make_decode(count: int) -> mlafix.Kernel:
    """Makes the kernel of a decode with `count` queries for each key head."""

    @mlafix.kernel
    def decode_group(out: Out[f32, f"b K G={count} S D"], lse: Out[f32, f"b K G={count} S"], q: In[bf16, f"b K G={count} D"],
                     keys: In[bf16, "p P K D"], values: In[bf16, "p P K D"], table: In[i32, "b m"], lens: In[i32, "b"],
                     share: index, scale: f32):
        for b, k, s in grid("b", "K", "S"):
            queries = [f32(q[b, k, g]) * scale for g in range(count)]
            states = [identity("D") for g in range(count)]
            for i in range(share * s, min(share * (s + 1), index(lens[b]))):
                page, at = table[b, i // shape("P")], i % shape("P")
                key, value = f32(keys[page, at, k]), f32(values[page, at, k])
                states = [merge(states[g], make_state(value, sum(key * queries[g]))) for g in range(count)]
            for g in range(count):
                store_state(states[g], out[b, k, g, s], lse[b, k, g, s])

    return decode_group


decode_of_4, decode_of_8 = make_decode(4), make_decode(8)


@mlafix.kernel
def combine(out: Out[bf16, "n H D"], parts: In[f32, "n H S D"], lses: In[f32, "n H S"]):
    for t, h in grid("n", "H"):
        state = identity("D")
        for s in range(shape("S")):
            state = merge(state, load_state(parts[t, h, s], lses[t, h, s]))
        store_state(state, out[t, h])


@dataclass
class Maker:
    """Makes the tensors of a case, with random contents."""

    device: torch.device
    quick: bool
    random: torch.Generator

    def rows(self, *sizes: int) -> torch.Tensor:
        return torch.randn(sizes, generator=self.random, device=self.device)

    def halves(self, *sizes: int) -> torch.Tensor:
        """Returns random rows in bf16."""
        return self.rows(*sizes).bfloat16()

    def empty(self, dtype: torch.dtype, *sizes: int) -> torch.Tensor:
        return torch.zeros(sizes, dtype=dtype, device=self.device)

    def integers(self, most: int, *sizes: int) -> torch.Tensor:
        return torch.randint(most, sizes, generator=self.random, device=self.device, dtype=torch.int32)

    def permutation(self, size: int) -> torch.Tensor:
        return torch.randperm(size, generator=self.random, device=self.device).int()

    def count(self, row_bytes: int) -> int:
        """Returns the number of rows that together have 100 MB; 8 if `quick`."""
        return 8 if self.quick else (100 << 20) // row_bytes // 8 * 8


Case = Callable[[Maker], "tuple[mlafix.Kernel, tuple[object, ...], int]"]
"""Returns a kernel, its arguments and the bytes that a launch moves."""

CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def two_states(m: Maker) -> tuple[int, tuple[torch.Tensor, ...]]:
    n = m.count(3 * 16 * 128 * 2)
    return n, (m.halves(n, 16, 128), m.rows(n, 16), m.halves(n, 16, 128), m.rows(n, 16))


@case
def merged_with_softcap(m: Maker) -> Any:
    n, states = two_states(m)
    return softcap_merge, (m.empty(torch.bfloat16, n, 16, 128), *states, 30.0), n * 16 * (3 * 256 + 8)


@case
def merged_three_and_sink(m: Maker) -> Any:
    n = m.count(4 * 16 * 128 * 2)
    return (three_and_sink, (m.empty(torch.bfloat16, n, 16, 128), m.halves(3, n, 16, 128), m.rows(3, n, 16), m.rows(16)),
            n * 16 * (4 * 256 + 12))


@case
def merged_in_a_window(m: Maker) -> Any:
    n, states = two_states(m)
    out = m.empty(torch.bfloat16, n, 16, 128), m.empty(torch.float32, n, 16)
    return window_merge, (*out, *states, m.integers(64, n), 64), n * 16 * (3 * 256 + 12)


@case
def masked_means(m: Maker) -> Any:
    n = m.count(3 * 4096)
    return (masked_mean, (m.empty(torch.float32, n), m.empty(torch.int32, n), m.halves(n, 4096), m.integers(2, n, 4096).char()),
            n * 3 * 4096)


@case
def layernorm(m: Maker) -> Any:
    n = m.count(4 * 2 * 4096)
    return (layernorm_residual, (m.empty(torch.bfloat16, n, 4096), m.halves(n, 4096), m.halves(n, 4096), m.rows(4096), m.rows(4096), 1e-5),
            n * 4 * 2 * 4096)


@case
def int8_groups(m: Maker) -> Any:
    n = m.count(3 * 4096)
    return (quantize_int8, (m.empty(torch.int8, n, 4096), m.empty(torch.float32, n, 32), m.empty(torch.float32, n, 32), m.halves(n, 4096)),
            n * (3 * 4096 + 256))


@case
def top2_of_64(m: Maker) -> Any:
    n = m.count(2 * 64 + 16)
    return (top2, (m.empty(torch.float32, n, 2), m.empty(torch.int32, n, 2), m.halves(n, 64)), n * (128 + 16))


def cross_entropy_of(size: int) -> Case:
    def make(m: Maker) -> Any:
        n = m.count(2 * size)
        return (cross_entropy, (m.empty(torch.float32, n), m.empty(torch.int32, n), m.halves(n, size), m.integers(size, n)), n * 2 * size)

    return make


def softmax_of(kernel: mlafix.Kernel, size: int) -> Case:
    def make(m: Maker) -> Any:
        n = m.count(4 * size)
        return kernel, (m.empty(torch.bfloat16, n, size), m.halves(n, size)), n * 4 * size

    return make


def greedy_of(m: Maker, n: int) -> Any:
    return greedy, (m.empty(torch.int32, n), m.rows(n, 128256)), n * 4 * 128256


CASES |= {"cross_entropy_32000": cross_entropy_of(32000), "cross_entropy_128256": cross_entropy_of(128256),
          "greedy_128256": lambda m: greedy_of(m, m.count(4 * 128256)), "greedy_128256_of_16_rows": lambda m: greedy_of(m, 8 if m.quick else 16),
          "softmax_32000": softmax_of(softmax, 32000),
          **{f"softmax_bounded_{size}": softmax_of(softmax_bounded, size) for size in (32000, 4096, 2048)}}


@case
def rope_last_64_of_192(m: Maker) -> Any:
    n = m.count(128 * 2 * 64 * 2)
    return (rope_tail, (m.halves(n, 128, 192), m.integers(4096, n), m.rows(4096, 2, 32)), n * 128 * 2 * 64 * 2)


@case
def rope_of_128(m: Maker) -> Any:
    n = m.count(128 * 2 * 128 * 2)
    return (rope_halves, (m.halves(n, 128, 128), m.integers(4096, n), m.rows(4096, 2, 64)), n * 128 * 2 * 128 * 2)


@case
def appended_fp8(m: Maker) -> Any:
    n = m.count(8 * 128 * 3)
    return (append_fp8, (m.empty(torch.float8_e4m3fn, n, 8, 128), m.halves(n, 8, 128), m.permutation(n), 0.5), n * 8 * 128 * 3)


@case
def gathered_pages(m: Maker) -> Any:
    batch = 8
    n = m.count(8 * 128 * 4) // (16 * batch) * 16 * batch or 16 * batch
    pages = n // 16
    starts = torch.arange(batch + 1, device=m.device, dtype=torch.int32) * (n // batch)
    return (gather_pages, (m.empty(torch.bfloat16, n, 8, 128), m.halves(pages, 16, 8, 128), m.permutation(pages).view(batch, -1), starts),
            n * 8 * 128 * 4)


@case
def swiglu(m: Maker) -> Any:
    n = m.count(3 * 2 * 2880)
    return swiglu_clamp, (m.empty(torch.bfloat16, n, 2880), m.halves(n, 5760), 7.0), n * 3 * 2 * 2880


@case
def butterflies(m: Maker) -> Any:
    n = m.count(32 * 128 * 4)
    return butterfly, (m.halves(n, 32, 128),), n * 32 * 128 * 4


@case
def hadamard_of_128(m: Maker) -> Any:
    n = m.count(32 * 128 * 4)
    return hadamard_128, (m.halves(n, 32, 128),), n * 32 * 128 * 4


@case
def moe_of_8(m: Maker) -> Any:
    n = m.count(9 * 2 * 4096)
    return moe_sum, (m.empty(torch.bfloat16, n, 4096), m.halves(n, 8, 4096), m.rows(n, 8)), n * 9 * 2 * 4096


def make_cache(m: Maker) -> tuple[tuple[torch.Tensor, ...], int]:
    """Returns keys, values, block table and lengths of 64 sequences with 4096 keys and 8 heads of 128 elements, and the
    bytes of keys and values."""
    batch, keys, page = 64, 64 if m.quick else 4096, 16
    pages = batch * keys // page
    rows = m.halves(pages, page, 8, 128), m.halves(pages, page, 8, 128)
    lens = torch.full((batch,), keys, device=m.device, dtype=torch.int32)
    return (*rows, m.permutation(pages).view(batch, -1), lens), 2 * pages * page * 8 * 256


def decode_of(kernel: mlafix.Kernel, *queries: int) -> Case:
    """Returns the case of a decode. `queries` is the number of queries of a key head, or absent for a kernel of one."""

    def make(m: Maker) -> Any:
        cache, size = make_cache(m)
        out = m.empty(torch.float32, 64, 8, *queries, SPLITS, 128), m.empty(torch.float32, 64, 8, *queries, SPLITS)
        return kernel, (*out, m.halves(64, 8, *queries, 128), *cache, cache[2].shape[1] * 16 // SPLITS, 0.088), size

    return make


CASES |= {"decode_paged": decode_of(decode_split), "decode_paged_of_4_queries": decode_of(decode_of_4, 4),
          "decode_paged_of_8_queries": decode_of(decode_of_8, 8)}


@case
def combined_splits(m: Maker) -> Any:
    n = m.count(16 * 8 * 128 * 4)
    return (combine, (m.empty(torch.bfloat16, n, 16, 128), m.rows(n, 16, 8, 128), m.rows(n, 16, 8)), n * 16 * (8 * 516 + 256))


def make_copies(m: Maker, size: int) -> dict[str, Call]:
    """Returns copies that read size / 2 bytes and write as many."""
    rows = -(-size // (4 * 4096))
    x = m.halves(rows, 4096)
    y = torch.empty_like(x)
    return {"torch's copy": lambda: y.copy_(x), "copy": copy_rows.bind(y, x)}


def make_calls(settings: Settings, name: str, quick: bool) -> tuple[dict[str, list[Call]], int]:
    """Returns the launches of the kernel and of the copies, one for each set of buffers, and the bytes of one launch."""
    m = Maker(settings.device, quick, torch.Generator(settings.device).manual_seed(len(name)))
    made = [CASES[name](m)]
    _, _, size = made[0]
    made += [CASES[name](m) for _ in range(settings.count_sets(size) - 1)]
    calls: dict[str, list[Call]] = {"kernel": [kernel.bind(*arguments) for kernel, arguments, _ in made]}
    for _ in made:
        for copy, call in make_copies(m, size).items():
            calls.setdefault(copy, []).append(call)
    return calls, size


def main() -> None:
    options, settings = read_options(__doc__ or "")
    cases: list[dict[str, Any]] = []
    for name in CASES:
        calls, size = make_calls(settings, name, options.quick)
        us = medians(settings, calls, "kernel")
        roof = min(us["torch's copy"], us["copy"])
        cases.append({"kernel": name, "bytes": size, "us": us, "of_roof": round(roof / us["kernel"], 3)})
        print(f"{name:<24} {size / 1e6:6.1f} MB  {us['kernel']:8.2f} us, copy {roof:8.2f}  of the roof: {roof / us['kernel']:.3f}", flush=True)
    write_results(options, settings, cases=cases)


if __name__ == "__main__":
    main()
