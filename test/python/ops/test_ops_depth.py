"""Tests attention residuals (`ops.mix_depth`): rows of earlier layers are mixed by the softmax of scores that the
kernel computes."""

from __future__ import annotations

import numpy as np
import pytest

import mlafix
from devices import Device
from mlafix import ops
from mlafix.compat import sglang
from numerics import BF16, F16, F32, poison, same_bits, widen

EPSILON = 1e-5


def want(prefix: np.ndarray, bank: np.ndarray, score_weight: np.ndarray, out_weight: np.ndarray | None, out_epsilon: float) -> np.ndarray:
    """Returns the expected rows, computed in f64."""
    rows = np.concatenate([widen(bank), widen(prefix)[:, None]], axis=1)
    scores = (rows * widen(score_weight)).sum(axis=-1) / np.sqrt((rows**2).mean(axis=-1) + EPSILON)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    mixed = (weights[..., None] * rows).sum(axis=1) / weights.sum(axis=1)[:, None]
    if out_weight is None:
        return mixed
    return mixed / np.sqrt((mixed**2).mean(axis=-1, keepdims=True) + out_epsilon) * widen(out_weight)


@pytest.mark.parametrize(("count", "dim", "dtype", "weights", "has_norm"), [
    (8, 7168, BF16, BF16, True), (1, 7168, BF16, F32, False), (0, 72, F32, F32, True), (5, 100, F16, F32, True), (11, 64, F32, BF16, False)])  # fmt: skip
def test_rows_of_layers_are_mixed_by_their_scores(count: int, dim: int, dtype: np.dtype, weights: np.dtype, has_norm: bool, device: Device,
                                                  rng: np.random.Generator) -> None:
    """The first case has the sizes of Kimi-K3: rows of 7168 elements and 8 layers. In every case, the prefix is also
    stored in the bank's next row (sglang#33599)."""
    tokens = 3
    bank = rng.normal(0, 2, (tokens, count + 2, dim)).astype(np.float32).astype(dtype)
    prefix = rng.normal(0, 1, (tokens, dim)).astype(np.float32).astype(dtype)
    score_weight, out_weight = ((rng.normal(0, 1, dim) * scale).astype(np.float32).astype(weights) for scale in (dim**-0.5, 1.0))
    given, out = device.put(bank.copy()), device.put(poison((tokens, dim), dtype))
    got = ops.mix_depth(device.put(prefix), given[:, :count], device.put(score_weight), out_weight=device.put(out_weight) if has_norm else None,
                        epsilon=EPSILON, out_epsilon=2 * EPSILON, snapshot=given[:, count], out=out)  # fmt: skip
    value = want(prefix, bank[:, :count], score_weight, out_weight if has_norm else None, 2 * EPSILON)
    slack = 2e-5 * (1 + np.abs(value)) + np.abs(value) * {F32: 0.0, BF16: 2.0**-8, F16: 2.0**-11}[dtype]
    assert got is out and (np.abs(widen(device.get(out)) - value) <= slack).all()
    bank[:, count] = prefix
    assert same_bits(device.get(given), bank)


def test_sglang_reads_the_rows_that_count_and_keeps_the_prefix(device: Device, rng: np.random.Generator) -> None:
    bank, prefix = (rng.normal(0, 1, shape).astype(np.float32).astype(BF16) for shape in ((3, 5, 64), (3, 64)))
    bank[:, 3:] = np.nan
    weights = [rng.normal(0, 0.2, 64).astype(np.float32).astype(BF16) for _ in range(2)]
    given, out = device.put(bank.copy()), device.put(poison((3, 64), BF16))
    sglang.attn_res_fused_tma(device.put(prefix), given, *(device.put(x) for x in weights), out, 3, EPSILON, write_prefix=True)
    value = want(prefix, bank[:, :3], weights[0], weights[1], EPSILON)
    assert (np.abs(widen(device.get(out)) - value) <= 2e-5 + np.abs(value) * 2.0**-8).all()
    assert same_bits(np.ascontiguousarray(device.get(given)[:, 3]), prefix)
    with pytest.raises(mlafix.ArgumentError, match='argument "nvb": expected 0 to 4, the rows of bank without the one for the prefix, got 5'):
        sglang.attn_res_fused_tma(device.put(prefix), given, *(device.put(x) for x in weights), out, 5, EPSILON, write_prefix=True)


def test_scores_far_apart_leave_one_row(device: Device) -> None:
    """If scores are far apart, weights underflow but nothing overflows."""
    prefix, bank = np.full((2, 64), 3, np.float32), np.stack([np.full((2, 64), x, np.float32) for x in (-5, 7)], axis=1)
    weight = np.full(64, 1e4, np.float32)
    out = ops.mix_depth(*(device.put(x) for x in (prefix, bank, weight)), epsilon=0.0)
    # The rows of 3 and of 7 both have a score of about 640000, where adjacent floats differ by 1/16, so their weights
    # are nearly equal. The score of the row of -5 is far below, so its weight is 0.
    np.testing.assert_allclose(device.get(out), 5.0, rtol=5e-2)


def test_wrong_arguments(device: Device) -> None:
    prefix, bank, weight = (device.put(np.ones(shape, np.float32)) for shape in ((2, 8), (2, 3, 8), (8,)))
    for how, message in ((dict(bank=prefix), r'argument "bank": expected 3 dims \[n, K, D\], got 2'),
                         (dict(score_weight=prefix), 'argument "score_weight": expected 1 dim'),
                         (dict(snapshot=bank), 'argument "snapshot": expected 2 dims'),
                         (dict(out_weight=device.put(np.ones(8, np.int32))), 'argument "out_weight": expected dtype bf16 or f16 or f32, got int32')):  # fmt: skip
        with pytest.raises(mlafix.ArgumentError, match=message):
            ops.mix_depth(**{**dict(prefix=prefix, bank=bank, score_weight=weight), **how})
