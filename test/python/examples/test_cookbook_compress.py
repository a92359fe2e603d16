"""Tests examples/python/cookbook/compress.py against f64. The kernel pools the tokens of each block element by element,
over chunks and decode steps."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from devices import Device
from numerics import BF16, F32, poison, same_bits, widen

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

R, D = 8, 40


def want(kv: np.ndarray, score: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Returns the rows of the complete blocks of one sequence, in f64."""
    blocks = len(kv) // R
    v, s = (widen(x[: blocks * R]).reshape(blocks, R, -1) for x in (kv, score))
    s = (s.astype(np.float32) + bias).astype(np.float64)
    top = s.max(axis=1, keepdims=True)
    weights = np.where(s == -np.inf, 0, np.exp(s - np.where(np.isinf(top), 0, top)))
    total = weights.sum(axis=1)
    return np.where(total == 0, 0, (np.where(weights == 0, 0, v) * weights).sum(axis=1) / np.where(total == 0, 1, total))


class Run:
    """Sequences whose tokens arrive in several launches. Each sequence has two slots of `state`. A launch reads the
    state of an incomplete block from one slot and writes the new state to the other, which the next launch reads."""

    def __init__(self, cookbook: dict[str, ModuleType], device: Device, kv: list[np.ndarray], score: list[np.ndarray], bias: np.ndarray) -> None:
        self.kernel, self.device, self.kv, self.score = cookbook["compress"].compress, device, kv, score
        self.bias = device.put(bias)
        self.state = device.put(poison((2 * len(kv) + 1, 3, D), F32))
        self.slots = np.arange(2 * len(kv), dtype=np.int32).reshape(2, -1)[:, ::-1]
        self.done = [0] * len(kv)
        self.rows: list[list[np.ndarray]] = [[] for _ in kv]

    def step(self, counts: list[int]) -> None:
        """Appends `counts` tokens to each sequence."""
        device, spans = self.device, list(zip(self.done, counts))
        kv, score = (np.concatenate([x[a : a + n] for x, (a, n) in zip(xs, spans)]) for xs in (self.kv, self.score))
        closed = [(a + n) // R - a // R for a, n in spans]
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        rows = np.concatenate([[0], np.cumsum(closed)]).astype(np.int32)
        blocks = max((n + R - 1 + R - 1) // R for n in counts)
        out = device.put(poison((int(rows[-1]) + 1, D), F32))
        old, new = (slots.copy() for slots in self.slots)
        self.kernel(out, self.state, device.put(kv), device.put(score), self.bias, device.put(starts), device.put(np.array(self.done, np.int32)),
                    device.put(old), device.put(new), device.put(rows[:-1]), blocks)
        moved = [(a + n) % R != 0 and n > 0 for a, n in spans]  # a sequence without new tokens stays in its slot
        self.slots = np.where(moved, self.slots[::-1], self.slots)
        for i, count in enumerate(closed):
            self.rows[i] += list(device.get(out)[rows[i] : rows[i] + count])
            self.done[i] += counts[i]
        assert np.isnan(device.get(out)[-1]).all()  # the last row belongs to no sequence


def tokens(rng: np.random.Generator, lengths: list[int], dtype: np.dtype) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    kv = [rng.normal(0, 1, (n, D)).astype(np.float32).astype(dtype) for n in lengths]
    score = [rng.normal(0, 4, (n, D)).astype(np.float32).astype(dtype) for n in lengths]
    for v, s in zip(kv, score):
        silent = rng.random(s.shape) < 0.1
        silent[R : 2 * R, 3] = True  # one element of a block has no weight
        s[silent], v[silent] = -np.inf, np.nan
    return kv, score, rng.normal(0, 1, (R, D)).astype(np.float32)


@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
def test_blocks_are_pooled_in_chunks_and_steps(cookbook: dict[str, ModuleType], dtype: np.dtype, device: Device, rng: np.random.Generator) -> None:
    """Chunks end inside a block, at its end, or after single tokens, and some give a sequence no tokens. The results
    have the bits of a single chunk."""
    lengths = [4 * R, 3 * R + 5, 2 * R + 1]
    kv, score, bias = tokens(rng, lengths, dtype)
    pieces = Run(cookbook, device, kv, score, bias)
    for counts in ([R + 3, 2 * R, 0], [R - 3, 1, 2 * R], *[[1, 1, 0]] * 3, [2 * R - 3, R + 1, 1]):
        pieces.step(counts)
    whole = Run(cookbook, device, kv, score, bias)
    whole.step(lengths)
    for i, length in enumerate(lengths):
        rows = np.array(pieces.rows[i])
        assert pieces.done[i] == length and rows.shape == (length // R, D)
        np.testing.assert_allclose(rows, want(kv[i], score[i], bias), rtol=2e-5, atol=2e-6)
        assert same_bits(rows, np.array(whole.rows[i]))


def test_a_step_in_place_leaves_other_slots(cookbook: dict[str, ModuleType], device: Device, rng: np.random.Generator) -> None:
    """A decode step in place, whose old and new slot are slot 1, writes no other slot. A step that completes a block
    writes no slot at all."""
    state, zeros = np.full((3, 3, D), 7, np.float32), np.zeros((R, D), np.float32)
    state[1] = np.stack([np.zeros(D), np.ones(D), np.full(D, 2.0)])
    held, out, token = device.put(state.copy()), device.put(poison((1, D), F32)), device.put(np.full((1, D), 4, np.float32))
    for start in (1, R - 1):
        cookbook["compress"].compress(out, held, token, device.put(zeros[:1]), device.put(zeros), *(
            device.put(np.array(x, np.int32)) for x in ([0, 1], [start], [1], [1], [0])), 1)  # fmt: skip
    got = device.get(held)
    assert (got[[0, 2]] == 7).all()
    # The first step wrote this state. The second step completed the block, and left the state as it was.
    assert (got[1, 1] == 2).all() and (got[1, 2] == 6).all()
    np.testing.assert_allclose(device.get(out)[0], 10 / 3, rtol=1e-6)


def test_nan_in_a_score_propagates_to_its_element_alone(cookbook: dict[str, ModuleType], device: Device, rng: np.random.Generator) -> None:
    kv, score, bias = tokens(rng, [R], F32)
    score[0][3, 5] = np.nan
    run = Run(cookbook, device, kv, score, bias)
    run.step([R])
    assert (np.isnan(run.rows[0][0]) == (np.arange(D) == 5)).all()
