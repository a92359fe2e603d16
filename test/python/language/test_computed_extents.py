"""Tests grid extents that are computed from upper-case dims, and factors of products as extents and sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from devices import Device
from sources import load, refused

import mlafix

TEXT = """
@mlafix.kernel
def heads(q: InOut[f32, "n Q D"], k: InOut[f32, "n H D"], w: In[f32, "D"]):
    heads = shape("Q") + shape("H")
    for t, h in grid("n", heads):
        if h < shape("Q"):
            q[t, h] = q[t, h] * w[:]
        else:
            k[t, h - shape("Q")] = k[t, h - shape("Q")] * w[:] * 2.0


@mlafix.kernel
def pairs(y: Out[f32, "n H D"], x: In[f32, "n H D"]):
    assume(shape("H") % 2 == 0)
    for t, p in grid("n", shape("H") // 2):
        y[t, 2 * p] = x[t, 2 * p + 1]
        y[t, 2 * p + 1] = x[t, 2 * p]


@mlafix.kernel
def groups(y: Out[f32, "n (G 8)"], x: In[f32, "n (G 8)"]):
    for t, g in grid("n", "G"):
        y[t, g] = x[t, g] / max(x[t, g])


@mlafix.kernel
def named(y: Out[f32, "n (G K)"], x: In[f32, "n (G K)"], w: In[f32, "K"]):
    for t, g in grid("n", shape("G")):
        y[t, g] = x[t, g] * w[:]


@mlafix.kernel
def ragged(y: InOut[f32, "n (G 8)"], cu_seqlens: In[i32, "b1"]):
    for b, t, g in segments(cu_seqlens, "n", "G"):
        y[t, g] = y[t, g] + f32(b) + f32(g)


@mlafix.kernel
def mean(out: Out[f32, "n"], x: In[f32, "n (G 8)"]):
    for t in grid("n"):
        out[t] = sum(max(x[t], along=8)) / f32(shape("G"))
"""


@pytest.mark.parametrize(("queries", "keys"), [(4, 2), (1, 1), (8, 3)])
def test_a_row_for_each_head_of_two_tensors(tmp_path: Path, device: Device, rng: np.random.Generator, queries: int, keys: int) -> None:
    """One launch scales queries and keys, which differ in their number of heads."""
    q, k = rng.normal(0, 1, (5, queries, 32)).astype(np.float32), rng.normal(0, 1, (5, keys, 32)).astype(np.float32)
    w = rng.normal(0, 1, 32).astype(np.float32)
    on = device.put(q.copy()), device.put(k.copy())
    load(tmp_path, TEXT).heads(*on, device.put(w))
    np.testing.assert_array_equal(device.get(on[0]), q * w)
    np.testing.assert_array_equal(device.get(on[1]), k * w * 2)


def test_a_row_for_each_pair_of_heads(tmp_path: Path, device: Device, rng: np.random.Generator) -> None:
    module = load(tmp_path, TEXT)
    x = rng.normal(0, 1, (3, 6, 16)).astype(np.float32)
    y = device.poisoned(x.shape, np.float32)
    module.pairs(y, device.put(x))
    np.testing.assert_array_equal(device.get(y), x.reshape(3, 3, 2, 16)[:, :, ::-1].reshape(x.shape))
    odd = device.put(x[:, :5])
    with pytest.raises(mlafix.ArgumentError, match="shape"):
        module.pairs(device.poisoned((3, 5, 16), np.float32), odd)


@pytest.mark.parametrize("count", [1, 3, 16])
def test_a_row_for_each_group(tmp_path: Path, device: Device, rng: np.random.Generator, count: int) -> None:
    """The number of groups is the size of the product divided by its other factor. That factor is a number, or the size
    of another dim."""
    module = load(tmp_path, TEXT)
    x, w = rng.uniform(1, 2, (4, count * 8)).astype(np.float32), rng.normal(0, 1, 8).astype(np.float32)
    y, z, out = device.poisoned(x.shape, np.float32), device.poisoned(x.shape, np.float32), device.poisoned((4,), np.float32)
    module.groups(y, device.put(x))
    module.named(z, device.put(x), device.put(w))
    module.mean(out, device.put(x))
    starts = np.array([0, 1, 1, 3], np.int32)
    shifted = device.put(x.copy())
    module.ragged(shifted, device.put(starts))
    wide = x.reshape(4, count, 8)
    np.testing.assert_array_equal(device.get(y), (wide / wide.max(-1, keepdims=True)).reshape(x.shape))
    np.testing.assert_array_equal(device.get(z), (wide * w).reshape(x.shape))
    np.testing.assert_allclose(device.get(out), wide.max(-1).mean(-1), rtol=1e-6)
    segment = np.array([0, 2, 2], np.float32)
    want = wide.copy()
    want[:3] = wide[:3] + segment[:, None, None] + np.arange(count, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(device.get(shifted), want.reshape(x.shape))


def test_what_is_proved_of_computed_extents(tmp_path: Path) -> None:
    """If the dims are bound, the compiler proves that every element of an Out is written. If they are not, the answer
    is unknown."""
    module = load(tmp_path, TEXT)
    answers = [" ".join(str(report).split()) for report in (module.groups.report(), module.groups.report(G=4))]
    assert "y coverage unknown" in answers[0] and "y coverage proved" in answers[1]
    assert "k bounds proved" in " ".join(str(module.heads.report()).split())
    assert module.pairs.ir("canonical", H=6, D=16).count("constant 3 : index") == 1


@pytest.mark.parametrize(
    ("extent", "wrong", "message"),
    [
        ('shape("n") + 1', 'grid(shape("n") + 1)', "a constant or computed from upper-case dims, got one that is computed from other values: pass it as an argument"),
        ('shape("H") + k', 'grid(shape("H") + k)', "got one that is computed from other values: pass it as an argument"),
        ('"K"', '"K"', '"K" is a factor of the product "(G K)" of'),
        ("1.5", "1.5", "expected an integer of type index, got 1.5"),
    ],
)
def test_what_is_refused(tmp_path: Path, extent: str, wrong: str, message: str) -> None:
    arguments = 'y: InOut[f32, "n H"], x: In[f32, "n (G K)"], k: index'
    made = load(tmp_path, f"@mlafix.kernel\ndef k_({arguments}):\n    for t in grid({extent}):\n        y[t, 0] = 0.0\n")
    with refused(message, wrong):
        made.k_.source  # noqa: B018


def test_an_extent_that_is_left_to_the_launch_or_negative(tmp_path: Path) -> None:
    text = '@mlafix.kernel\ndef k_(y: InOut[f32, "n H"]):\n    for t, h in grid("n", shape("H") - 2):\n        y[t, h] = 0.0\n'
    kernel = load(tmp_path, text).k_
    with pytest.raises(mlafix.CompileError, match="got one that is computed from other values"):
        kernel.compile("cpu", H="any")
    with pytest.raises(mlafix.CompileError, match="expected extents that are not negative, got -1"):
        kernel.compile("cpu", H=1)
