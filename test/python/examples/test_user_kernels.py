"""Tests the kernels of benchmarks/user_kernels.py against numpy in f64: rows of several widths, long rows, pages, and
loops over keys."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devices import Device
from numerics import BF16, F32

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")
pytest.importorskip("torch", reason="the benchmark makes its tensors with torch")
FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def kernels() -> Any:
    sys.path.insert(0, str(FOLDER))
    try:
        import user_kernels
    finally:
        sys.path.remove(str(FOLDER))
    return user_kernels


def rows(rng: np.random.Generator, *shape: int, dtype: Any = BF16) -> np.ndarray:
    return rng.normal(0, 1, shape).astype(dtype)


def poisoned(*shape: int, dtype: Any = F32) -> np.ndarray:
    return np.full(shape, np.nan, F32).astype(dtype)


def test_a_norm_beside_weights_of_another_width(kernels: Any, device: Device, rng: np.random.Generator) -> None:
    residual, x = rows(rng, 5, 384), rows(rng, 5, 384)
    weight, bias = rows(rng, 384, dtype=F32), rows(rng, 384, dtype=F32)
    y, updated = device.put(poisoned(5, 384, dtype=BF16)), device.put(residual.copy())
    kernels.layernorm_residual(y, updated, device.put(x), device.put(weight), device.put(bias), 1e-5)
    total = residual.astype(np.float64) + x.astype(np.float64)
    centred = total - total.mean(1, keepdims=True)
    want = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * weight + bias
    np.testing.assert_allclose(device.get(updated).astype(F32), total, rtol=2**-8)
    np.testing.assert_allclose(device.get(y).astype(F32), want, rtol=2**-7, atol=2**-7)


def test_rows_turned_by_a_table_of_another_width(kernels: Any, device: Device, rng: np.random.Generator) -> None:
    x, table = rows(rng, 5, 3, 128), rows(rng, 16, 2, 64, dtype=F32)
    positions = rng.integers(0, 16, 5).astype(np.int32)
    turned = device.put(x.copy())
    kernels.rope_halves(turned, device.put(positions), device.put(table))
    c, s = (table[positions, i][:, None].astype(np.float64) for i in range(2))
    a, b = x[:, :, :64].astype(np.float64), x[:, :, 64:].astype(np.float64)
    np.testing.assert_allclose(device.get(turned).astype(F32), np.concatenate([a * c - b * s, b * c + a * s], 2), rtol=2**-7, atol=2**-6)


@pytest.mark.parametrize("size", [2, 60, 64])
def test_the_two_best_experts(kernels: Any, device: Device, rng: np.random.Generator, size: int) -> None:
    logits = np.round(rows(rng, 9, size).astype(F32) * 4).astype(BF16)  # rounded, so that some logits are equal
    weights, experts = device.put(poisoned(9, 2)), device.put(np.full((9, 2), -1, np.int32))
    kernels.top2(weights, experts, device.put(logits))
    wide = logits.astype(np.float64)
    best = np.argsort(-wide, axis=1, kind="stable")[:, :2]
    values = np.exp(np.take_along_axis(wide, best, 1))
    np.testing.assert_array_equal(device.get(experts), best)
    np.testing.assert_allclose(device.get(weights), values / values.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("size", [1000, 32000])
def test_a_loss_over_a_vocabulary(kernels: Any, device: Device, rng: np.random.Generator, size: int) -> None:
    logits, labels = rows(rng, 2, size), rng.integers(0, size, 2).astype(np.int32)
    loss, best = device.put(poisoned(2)), device.put(np.full(2, -1, np.int32))
    kernels.cross_entropy(loss, best, device.put(logits), device.put(labels))
    wide = logits.astype(np.float64)
    want = np.log(np.exp(wide).sum(1)) - wide[[0, 1], labels]
    np.testing.assert_allclose(device.get(loss), want, rtol=1e-5)
    np.testing.assert_array_equal(device.get(best), wide.argmax(1))


@pytest.mark.filterwarnings("ignore::mlafix.CompileWarning")
def test_pages_are_gathered_bit_for_bit(kernels: Any, device: Device, rng: np.random.Generator) -> None:
    pages, table = rows(rng, 9, 4, 2, 128), rng.permutation(9).astype(np.int32)[:8].reshape(2, 4)
    starts, lengths = np.array([1, 14, 24], np.int32), (13, 10)
    before = poisoned(25, 2, 128, dtype=BF16)
    out = device.put(before.copy())
    kernels.gather_pages(out, device.put(pages), device.put(table), device.put(starts))
    want = before
    for b, length in enumerate(lengths):
        want[starts[b] : starts[b] + length] = pages[table[b]].reshape(16, 2, 128)[:length]
    np.testing.assert_array_equal(device.get(out).view(np.uint16), want.view(np.uint16))


@pytest.mark.filterwarnings("ignore::mlafix.CompileWarning")
@pytest.mark.parametrize("queries", [1, 4, 8])
def test_attention_over_pages(kernels: Any, device: Device, rng: np.random.Generator, queries: int) -> None:
    """The states of the splits of keys are right, even if a split has no keys. A full split has 11 keys, which is not
    divisible by any number of keys that a kernel loads at once."""
    batch, heads, splits, share, page, dim, scale = 2, 3, 3, 11, 4, 128, 0.1
    keys, values = rows(rng, 20, page, heads, dim), rows(rng, 20, page, heads, dim)
    table, lens = rng.permutation(20).astype(np.int32)[:18].reshape(2, 9), np.array([30, 21], np.int32)
    group = () if queries == 1 else (queries,)
    q = rows(rng, batch, heads, *group, dim)
    out, lse = (device.put(poisoned(batch, heads, *group, splits, *more)) for more in ((dim,), ()))
    kernel = {1: kernels.decode_split, 4: kernels.decode_of_4, 8: kernels.decode_of_8}[queries]
    kernel(out, lse, *(device.put(x) for x in (q, keys, values, table, lens)), share, scale)
    got, got_lse = (device.get(x).reshape(batch, heads, queries, splits, -1) for x in (out, lse))
    for b in range(batch):
        k, v = (x[table[b]].reshape(-1, heads, dim)[: lens[b]].astype(np.float64) for x in (keys, values))
        for s in range(splits):
            part = slice(share * s, share * (s + 1))
            scores = np.einsum("hgd,khd->hgk", q[b].reshape(heads, queries, dim).astype(np.float64), k[part]) * scale
            if scores.shape[2] == 0:
                assert (got[b, :, :, s] == 0).all() and (got_lse[b, :, :, s] == -np.inf).all()
                continue
            weights = np.exp(scores)
            want = np.einsum("hgk,khd->hgd", weights / weights.sum(2, keepdims=True), v[part])
            np.testing.assert_allclose(got[b, :, :, s], want, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(got_lse[b, :, :, s, 0], np.log(weights.sum(2)), rtol=1e-5, atol=1e-5)
