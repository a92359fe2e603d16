"""Tests sinks. A sink is a logit that adds weight but no value to a state. Its weight counts exactly once in the stored
row. Kernels store the lse without the sink or with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from devices import Device
from numerics import BF16
from sources import load


TEXT = """
@mlafix.kernel
def before(out: Out[T, "n H D"], lse: Out[f32, "n H"], x: In[T, "k n H D"], x_lse: In[f32, "k n H"], logits: In[f32, "H"] | None):
    for t, h in grid("n", "H"):
        m = identity("D")
        for i in range(shape("k")):
            m = merge(m, load_state(x[i, t, h], x_lse[i, t, h]))
        store_state(m, None, lse[t, h])
        if logits is not None:
            m = merge(m, sink(logits[h], base="e"))
        store_state(m, out[t, h])


@mlafix.kernel
def after(out: Out[T, "n H D"], lse: Out[f32, "n H"], x: In[T, "k n H D"], x_lse: In[f32, "k n H"], logits: In[f32, "H"]):
    for t, h in grid("n", "H"):
        m = rebase(sink(logits[h], "D", base="e"), B)
        for i in range(shape("k")):
            m = merge(load_state(x[i, t, h], x_lse[i, t, h]), m)
        store_state(m, out[t, h], lse[t, h])


@mlafix.kernel
def stored(out: Out[f32, "n d=20"], lse: Out[f32, "n"], x: In[f32, "n d=20"], x_lse: In[f32, "n"], logit: f32, value: In[f32, "d=20"]):
    for t in grid("n"):
        m = merge(load_state(x[t], x_lse[t], sink=True), make_state(value[:], 0.5))
        n = merge(load_state(x[t], x_lse[t]), make_state(value[:], 0.5), sink(logit))
        s = m if t % 2 == 0 else n
        store_state(s if t != 2 else identity("d"), out[t], lse[t])


@mlafix.kernel
def grouped(out: Out[f32, "n (G 16)"], parts: List[In[f32, "n (G 16)"], 4, "k"], lses: List[In[f32, "n"], 4, "k"], logits: In[f32, "n"]):
    for t in grid("n"):
        m = identity("(G 16)")
        for i in range(len(parts)):
            m = merge(m, load_state(parts[i][t], lses[i][t]))
        store_state(merge(m, sink(logits[t])), out[t])
"""
HEADER = """import mlafix
from mlafix.dsl import *

T, B = DType("T"), Base("B")
"""

N, H, K = 7, 4, 5
LOGITS = np.array([0.5, -3.0, 30.0, -np.inf], np.float32)


def pieces(dtype: np.dtype, size: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(size)
    x = rng.normal(size=(K, N, H, size)).astype(dtype)
    lse = rng.normal(0, 2, (K, N, H)).astype(np.float32)
    lse[rng.random(lse.shape) < 0.2] = -np.inf
    lse[:, 1] = -np.inf  # all states of row 1 are empty
    return x, lse


def reference(x: np.ndarray, lse: np.ndarray, logits: np.ndarray, base: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the payload with the sink, the lse without it, and the lse with it, in f64. The logits of sinks are in
    base e."""
    weights = np.float64(base) ** lse.astype(np.float64)
    own = np.exp(logits.astype(np.float64))
    without, total = weights.sum(0), weights.sum(0) + own
    payload = (x.astype(np.float64) * weights[..., None]).sum(0) / np.where(total > 0, total, 1)[..., None]
    with np.errstate(divide="ignore"):
        return payload, np.log(without) / np.log(base), np.log(total) / np.log(base)


@pytest.mark.parametrize("base", ["e", "2"])
@pytest.mark.parametrize(("dtype", "size", "relative"), [(np.dtype(np.float32), 128, 4e-6), (np.dtype(np.float32), 20, 4e-6), (BF16, 64, 2.0**-8)])
@pytest.mark.parametrize("name", ["before", "after"])
def test_the_sink_takes_weight_once(tmp_path: Path, device: Device, name: str, dtype: np.dtype, size: int, relative: float, base: str) -> None:
    x, x_lse = pieces(dtype, size)
    out, lse = device.poisoned((N, H, size), dtype), device.poisoned((N, H), np.float32)
    kernel = getattr(load(tmp_path, TEXT, HEADER), name).specialize(B=base)
    kernel(out, lse, device.put(x), device.put(x_lse), device.put(LOGITS))
    payload, without, with_sink = reference(x, x_lse, LOGITS, np.e if base == "e" else 2.0)
    scale = np.abs(x.astype(np.float64)).max()
    np.testing.assert_allclose(device.get(out).astype(np.float64), payload, rtol=relative, atol=4e-6 * scale)
    np.testing.assert_allclose(device.get(lse), without if name == "before" else with_sink, rtol=4e-6, atol=4e-6)


@pytest.mark.parametrize("logit", [None, -np.inf, np.inf], ids=str)
def test_none_and_infinite_logits_are_no_sinks(tmp_path: Path, device: Device, logit: float | None) -> None:
    x, x_lse = pieces(np.dtype(np.float32), 64)
    module = load(tmp_path, TEXT, HEADER)
    results = []
    for logits in (None, None if logit is None else device.put(np.full(H, logit, np.float32))):
        out, lse = device.poisoned(x.shape[1:], np.float32), device.poisoned((N, H), np.float32)
        module.before(out, lse, device.put(x), device.put(x_lse), logits)
        results.append((np.array(device.get(out)), np.array(device.get(lse))))
    for a, b in zip(*results):
        np.testing.assert_array_equal(a.view(np.uint32), b.view(np.uint32))


def test_a_nan_logit_makes_the_row_nan(tmp_path: Path, device: Device) -> None:
    x, x_lse = pieces(np.dtype(np.float32), 64)
    out, lse = device.poisoned(x.shape[1:], np.float32), device.poisoned((N, H), np.float32)
    logits = np.array([np.nan, 0, 0, 0], np.float32)
    load(tmp_path, TEXT, HEADER).before(out, lse, device.put(x), device.put(x_lse), device.put(logits))
    assert np.isnan(device.get(out)[:, 0]).all()
    assert not np.isnan(device.get(out)[:, 1:]).any() and not np.isnan(device.get(lse)).any()


def test_states_with_a_sink_and_without_one_are_one_after_a_choice(tmp_path: Path, device: Device) -> None:
    """A branch may choose between a state with a sink and one without. Covers a dim of fixed size, a stored state that
    already has a sink, and a sink without a dim."""
    rng = np.random.default_rng(1)
    x, x_lse, value = (rng.normal(size=shape).astype(np.float32) for shape in ((N, 20), (N,), (20,)))
    out, lse = device.poisoned((N, 20), np.float32), device.poisoned((N,), np.float32)
    load(tmp_path, TEXT, HEADER).stored(out, lse, device.put(x), device.put(x_lse), 1.5, device.put(value))
    own = np.where(np.arange(N) % 2 == 0, 0.0, np.exp(1.5))
    weight, other = np.exp(x_lse.astype(np.float64)), np.exp(0.5)
    payload = (weight[:, None] * x + other * value) / (weight + other + own)[:, None]
    total = np.log(weight + other + own)
    payload[2], total[2] = 0, -np.inf
    np.testing.assert_allclose(device.get(out), payload, rtol=4e-6, atol=4e-6 * 4)
    np.testing.assert_allclose(device.get(lse), total, rtol=4e-6, atol=4e-6)


def test_rows_along_a_product_from_a_list(tmp_path: Path, device: Device) -> None:
    rng = np.random.default_rng(3)
    parts, lses = rng.normal(size=(3, N, 64)).astype(np.float32), rng.normal(size=(3, N)).astype(np.float32)
    logits, out = rng.normal(size=N).astype(np.float32), device.poisoned((N, 64), np.float32)
    load(tmp_path, TEXT, HEADER).grouped(out, [device.put(part) for part in parts], [device.put(lse) for lse in lses], device.put(logits))
    weights, own = np.exp(lses.astype(np.float64)), np.exp(logits.astype(np.float64))
    want = (parts * weights[..., None]).sum(0) / (weights.sum(0) + own)[:, None]
    np.testing.assert_allclose(device.get(out), want, rtol=4e-6, atol=4e-6 * 4)
