"""Decodes of several queries for each key. On a GPU, a launch of many rows has lanes that hold two packs of a row, a launch
of few rows has twice as many lanes. Results are compared with f64, and have the same bits in both."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from devices import Device
from numerics import BF16

from mlafix import explain
from mlafix.explain.launches import Sizes, choose_version

TEXT = """
@mlafix.kernel
def attend(out: Out[f32, "n G=4 D"], lse: Out[f32, "n G=4"], q: In[bf16, "n G=4 D"], keys: In[bf16, "m D"], values: In[bf16, "m D"],
           starts: In[i32, "n"], ends: In[i32, "n"]):
    for t in grid("n"):
        queries = [f32(q[t, g]) for g in range(4)]
        states = [identity("D") for g in range(4)]
        for i in range(index(starts[t]), index(ends[t])):
            key, value = f32(keys[i]), f32(values[i])
            states = [merge(states[g], make_state(value, sum(key * queries[g]))) for g in range(4)]
        for g in range(4):
            store_state(states[g], out[t, g], lse[t, g])
"""
KEYS = 24
MOST_FEW = 49152 // 32
"""The most rows of 256 bf16, which have 32 lanes, that are few."""


def test_a_launch_of_many_rows_has_two_packs_in_each_lane(kernels: ModuleType) -> None:
    text = kernels.attend.remarks("sm_90", D=256)
    few, many = (text.partition(f"attend_{name} on sm_90: a row of 256 elements")[2].partition("\n")[0] for name in ("dense_few", "dense"))
    assert "32 lanes hold up to 1 pack each" in few and "16 lanes hold up to 2 packs each" in many, text
    assert f"at most {MOST_FEW} rows" in text


def test_explained_launches_of_few_rows_have_the_code_for_few_rows(kernels: ModuleType) -> None:
    facts = explain.facts_of_kernel(kernels.attend, {"D": "256"}, "sm_90")
    entries = [choose_version(Sizes(facts, {"n": rows}))["entry"] for rows in (1, MOST_FEW, MOST_FEW + 1)]
    assert entries == ["attend_dense_few", "attend_dense_few", "attend_dense"]


@pytest.mark.parametrize("rows", [MOST_FEW, MOST_FEW + 1])
def test_many_rows_have_the_bits_of_few(kernels: ModuleType, device: Device, rng: np.random.Generator, rows: int) -> None:
    """Rows have 0 to 17 keys. NaN in the payload of a key of weight 0 is not added."""
    of_one = 7
    q = (rng.standard_normal((of_one, 4, 256)) / 8).astype(BF16)
    keys, values = (rng.standard_normal((KEYS, 256)).astype(BF16) for _ in range(2))
    starts = rng.integers(0, 7, of_one).astype(np.int32)
    ends = (starts + np.array([0, 1, 3, 4, 5, 9, 17])).astype(np.int32)
    weightless = 5
    keys[weightless], values[weightless] = -np.inf, np.nan
    q[...] = abs(q)  # so that each product with -inf is -inf, and their sum, too

    def run(count: int) -> tuple[np.ndarray, np.ndarray]:
        turns = -(-count // of_one)
        out, lse = device.poisoned((count, 4, 256), np.float32), device.poisoned((count, 4), np.float32)
        of_rows = [device.put(np.concatenate([each] * turns)[:count]) for each in (q, starts, ends)]
        call = (out, lse, of_rows[0], device.put(keys), device.put(values), *of_rows[1:])
        explained = kernels.attend.explain_call(*call)
        chosen = next(version.entry for version in explained.versions if version.chosen)
        if "attend_dense_few" in [version.entry for version in explained.versions]:
            assert chosen == ("attend_dense_few" if count <= MOST_FEW else "attend_dense")
        kernels.attend(*call)
        return np.array(device.get(out)), np.array(device.get(lse))

    out, lse = run(rows)
    few_out, few_lse = run(of_one)
    for first in range(0, rows, of_one):
        there = min(of_one, rows - first)
        np.testing.assert_array_equal(out[first : first + there].view(np.uint32), few_out[:there].view(np.uint32))
        np.testing.assert_array_equal(lse[first : first + there].view(np.uint32), few_lse[:there].view(np.uint32))
    for t in range(of_one):
        used = [i for i in range(starts[t], ends[t]) if i != weightless]
        if not used:
            assert (few_out[t] == 0).all() and (few_lse[t] == -np.inf).all()
            continue
        logits = q[t].astype(np.float64) @ keys[used].astype(np.float64).T
        most = logits.max(axis=1, keepdims=True)
        weights = np.exp(logits - most)
        np.testing.assert_allclose(few_out[t], weights @ values[used].astype(np.float64) / weights.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(few_lse[t], most[:, 0] + np.log(weights.sum(axis=1)), rtol=1e-5, atol=1e-5)
