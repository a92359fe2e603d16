"""Tests the kernels of mlafix.distributed in which ranks push rows to each other and merge them. CPUs cannot run these
kernels.

The ranks' launches are executed one after the other, so none can wait for another: the flags say from the start that
all ranks have stored their rows. All ranks are launched twice, and only the results of the second time are compared,
since all rows have been stored by then.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")
pytest.importorskip("torch")
_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS / "python"), str(_TESTS / "fuzz" / "kernels")]
os.environ["MLAFIX_TEST_DEVICE"] = "ptx"  # must be set before anything needs the driver
import contract  # noqa: E402
import peers  # noqa: E402
from devices import Device, all_devices  # noqa: E402
from mlafix import library  # noqa: E402
from mlafix._runtime import PeerTensors  # noqa: E402
from mlafix.kernels.push import OF_MANY, OF_TWO  # noqa: E402
from numerics import BF16, E4M3, F32, poison  # noqa: E402
from states import make_states  # noqa: E402


@pytest.fixture(scope="module")
def device() -> Device:
    return all_devices()[0]


@pytest.mark.parametrize("turn", [0, 1])
@pytest.mark.parametrize("wire", [BF16, E4M3], ids=str)
@pytest.mark.parametrize("ranks, tokens, heads, dim", [(2, 9, 8, 128), (2, 5, 4, 512), (3, 4, 6, 128)])
def test_heads_that_are_cut(ranks: int, tokens: int, heads: int, dim: int, wire: np.dtype, turn: int, device: Any) -> None:
    """Each rank merges its share of the heads, for all tokens. The states are of every kind of make_states but NaN, and
    empty states have garbage payloads."""
    kernels = OF_TWO if ranks == 2 else OF_MANY
    check_heads(library.kernel(kernels["heads", wire == E4M3]).specialize(B="e", ranks=ranks), ranks, tokens, heads, dim, wire, turn, device)


def test_long_rows_of_any_number_of_ranks(device: Any) -> None:
    """Long rows are merged in loops, for any number of ranks. Regression: with fp8, the kernel did not compile for an
    unbound number of ranks."""
    check_heads(library.kernel("push_and_merge_fp8").specialize(B="e"), 3, 2, 3, 2048, E4M3, 0, device)


def check_heads(kernel: Any, ranks: int, tokens: int, heads: int, dim: int, wire: np.dtype, turn: int, device: Any) -> None:
    states = make_states(np.random.default_rng(ranks * dim + turn), ranks, tokens, heads, dim, BF16, faults=False)
    own = heads // ranks
    staged = [device.put(poison((2, ranks, tokens, own, dim), wire)) for _ in range(ranks)]
    staged_lses = [device.put(poison((2, ranks, tokens, own), F32)) for _ in range(ranks)]
    scales = [device.put(poison((2, ranks, tokens, own), F32)) for _ in range(ranks)] if wire == E4M3 else []
    workspaces = device.device.array(ranks * peers.words_of(ranks) * 8).view(np.int64).reshape(ranks, -1)
    # For each rank, an array [ranks, n, H / ranks, D]. The rank sends part i of its array to rank i.
    parts = [device.put(v.reshape(tokens, ranks, own, dim).swapaxes(0, 1)) for v in states.v]
    lses = [device.put(s.reshape(tokens, ranks, own).swapaxes(0, 1)) for s in states.s]
    for _ in range(2):
        results = []
        for rank in range(ranks):
            workspaces[:] = 0
            workspaces[:, 0] = turn
            workspaces[rank, peers.FIRST_FLAG :] = 1 << 62
            group = peers.group_of([one.ctypes.data for one in workspaces], rank)
            of_all = [PeerTensors(tensors, group) for tensors in (staged, staged_lses, *([scales] if scales else []))]
            results.append((device.put(poison((tokens, own, dim), BF16)), device.put(poison((tokens, own), F32))))
            kernel(*results[-1], None, None, *of_all, parts[rank], lses[rank], None, None, 0, rank)
    want, want_lse = contract.merge(states.v, states.s)
    want_lse.check(np.concatenate([device.get(one) for _, one in results], 1), "lse")
    out = np.concatenate([device.get(one) for one, _ in results], 1).astype(np.float64)
    bound = want.magnitude * 2.0**-7
    if wire == E4M3:  # a row's scale is that of its largest element, which is at most `ranks` times that of the sum
        bound = want.magnitude * 2.0**-3 + ranks * want.magnitude.max(-1, keepdims=True) * 2.0**-8
    assert (abs(out - want.value) <= bound + 1e-30).all()
