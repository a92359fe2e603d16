"""Tests `ops.combine_experts`, which adds weighted rows that a map selects, against f64."""

from __future__ import annotations

import numpy as np
import pytest

import contract
from devices import Device
from mlafix import ops
from numerics import BF16, F16, F32, garbage, poison, same_bits, widen


@pytest.mark.parametrize("has_shared", [False, True])
@pytest.mark.parametrize("kind, weight", [("i4", F32), ("i8", BF16)])
@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
def test_weighted_rows(dtype: np.dtype, kind: str, weight: np.dtype, has_shared: bool, device: Device, rng: np.random.Generator) -> None:
    """An entry of the map that is below 0 or past the last row is ignored, and its weight is not read. Rows that no
    entry selects may have any contents."""
    for n, k, m, dim in [(5, 3, 9, 64), (33, 8, 40, 192), (4, 1, 2, 7), (0, 2, 3, 64), (3, 0, 2, 64)]:
        places = rng.integers(-2, m + 2, (n, k))
        there = (places >= 0) & (places < m)
        rows = rng.normal(0, 1, (m, dim)).astype(F32).astype(dtype)
        unused = np.setdiff1d(np.arange(m), places)
        rows[unused] = garbage(rng, (len(unused), dim), dtype)
        weights = np.where(there, rng.random((n, k)), np.nan).astype(F32).astype(weight)
        shared = rng.normal(0, 1, (n, dim)).astype(F32).astype(dtype)
        terms = [np.where(there[:, i, None], widen(weights[:, i, None]) * widen(rows[np.clip(places[:, i], 0, m - 1)]), 0) for i in range(k)]
        terms += [widen(shared)] if has_shared else [np.zeros((n, dim))]
        want = contract.Expected(sum(terms), sum(np.abs(term) for term in terms), np.zeros((n, dim), bool))
        out = device.put(poison((n, dim), dtype))
        got = ops.combine_experts(device.put(rows), device.put(places.astype(kind)), device.put(weights), shared=device.put(shared) if has_shared else None, out=out)
        assert got is out
        want.check(device.get(out), "out")


def test_a_row_does_not_depend_on_its_batch(device: Device, rng: np.random.Generator) -> None:
    rows, places = rng.normal(0, 1, (20, 512)).astype(F32), rng.integers(0, 20, (17, 6)).astype(np.int32)
    weights = rng.random((17, 6)).astype(F32)
    whole = device.get(ops.combine_experts(*map(device.put, (rows, places, weights))))
    for t in (0, 7, 16):
        alone = device.get(ops.combine_experts(*map(device.put, (rows, places[t : t + 1].copy(), weights[t : t + 1].copy()))))
        assert same_bits(alone[0], whole[t])


def test_nan_in_a_named_row_reaches_the_result(device: Device) -> None:
    rows, places = np.array([[np.nan, 1.0], [2.0, 3.0]], F32), np.array([[0, 1], [1, -1]], np.int32)
    got = device.get(ops.combine_experts(device.put(rows), device.put(places), device.put(np.array([[0, 1], [1, 1]], F32))))
    assert np.isnan(got[0, 0]) and got[0, 1] == 3 and got[1].tolist() == [2, 3]
