"""Lists of values in a body: states of several heads that share loaded values, and elements that branches and loops
change."""

from __future__ import annotations

from pathlib import Path

import contract
import numpy as np
from devices import Device
from sources import load

TEXT = """
G = 4


@inline
def both(a, b):
    return [a, b]


@inline
def total(values):
    result = 0.0
    for value in values:
        result = result + value
    return result


@inline
def ends(values):
    first = 0.0
    for i in range(1):
        first = first + values[i]
    return first, values[-1]


@kernel
def passed(out: Out[f32, "n two=2"], x: In[f32, "n D"]):
    for t in grid("n"):
        first, last = ends([2.0 * x[t, i] for i in range(3)])
        out[t, 0] = first
        out[t, 1] = last + [x[t, i] for i in range(3)][1]


@kernel
def shared(out: Out[f32, "n H D"], x: In[f32, "k n D"], lse: In[f32, "k n H"]):
    for t in grid("n"):
        states = [identity("D") for h in range(G)]
        for i in range(shape("k")):
            row = x[i, t]
            for h in range(G):
                states[h] = merge(states[h], make_state(row, lse[i, t, h]))
        for h in range(len(states)):
            store_state(states[h], out[t, h])


@kernel
def changed(out: Out[f32, "n five=5"], x: In[f32, "n two=2"], k: In[i32, "n"]):
    for t in grid("n"):
        v = [x[t, 0], x[t, 1], 10.0]
        w = [2.0 * a for a in v]
        if k[t] > 1:
            v[0] = v[1] + 1.0
        else:
            v[-1] = 5.0
        for i in range(k[t]):
            v[1] = v[1] + v[2]
            for j in range(0, 2):
                v[j] = v[j] + 1.0
        a, b = both(v[0], w[1])
        out[t, 0] = v[0]
        out[t, 1] = v[1]
        out[t, 2] = total(v)
        out[t, 3] = total(w)
        out[t, 4] = a - b
"""


def test_heads_share_what_they_load(tmp_path: Path, device: Device) -> None:
    rng = np.random.default_rng(0)
    x, lse = rng.normal(size=(5, 7, 64)).astype(np.float32), rng.normal(0, 2, (5, 7, 4)).astype(np.float32)
    out = device.poisoned((7, 4, 64), np.float32)
    load(tmp_path, TEXT).shared(out, device.put(x), device.put(lse))
    contract.merge(np.broadcast_to(x[:, :, None], (5, 7, 4, 64)), lse)[0].check(device.get(out), "out")


def test_lists_without_a_name_have_elements(tmp_path: Path, device: Device) -> None:
    x, out = np.arange(12, dtype=np.float32).reshape(4, 3), device.poisoned((4, 2), np.float32)
    load(tmp_path, TEXT).passed(out, device.put(x))
    np.testing.assert_array_equal(device.get(out), np.stack([2 * x[:, 0], 2 * x[:, 2] + x[:, 1]], axis=1))


def test_branches_and_loops_change_elements(tmp_path: Path, device: Device) -> None:
    n = 6
    x, k = np.arange(2 * n, dtype=np.float32).reshape(n, 2), np.arange(n, dtype=np.int32)
    out = device.poisoned((n, 5), np.float32)
    load(tmp_path, TEXT).changed(out, device.put(x), device.put(k))
    for t in range(n):
        v = [float(x[t, 0]), float(x[t, 1]), 10.0]
        w = [2.0 * a for a in v]
        if k[t] > 1:
            v[0] = v[1] + 1.0
        else:
            v[-1] = 5.0
        for _ in range(k[t]):
            v[1] = v[1] + v[2]
            for j in range(0, 2):
                v[j] = v[j] + 1.0
        want = [v[0], v[1], sum(v), sum(w), v[0] - w[1]]
        np.testing.assert_array_equal(device.get(out)[t], np.array(want, np.float32))
