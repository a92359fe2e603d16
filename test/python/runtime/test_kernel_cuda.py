"""Kernels written in Python on a GPU: torch's current stream, captured graphs, and all kinds of grids and control
flow."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device that torch can use", allow_module_level=True)
pytest.importorskip("mlafix._compiler", reason="the package was built without the compiler")

import mlafix  # noqa: E402
from mlafix.dsl import (DType, In, InOut, Out, exp, f32, floor, grid, i32, identity, load_state, merge, segments,  # noqa: E402
                        store_state, tanh)  # fmt: skip

T = DType("T")


@mlafix.kernel
def everything(y: Out[T, "n D"], z: Out[i32, "n"], x: In[T, "n D"], turns: In[i32, "n"], bias: In[f32, "D"] | None):
    for t in grid("n"):
        v = x[t]
        total = v - max(v)
        for i in range(turns[t]):
            total = tanh(total) + exp(v - max(v)) if i % 2 == 0 else total * 0.5
        if turns[t] > 2:
            total = floor(total * 8.0)
        y[t] = total + bias[:] if bias is not None else total
        z[t] = i32(sum(v) > 0.0) - turns[t] // 2


@mlafix.kernel
def merge_pieces(out: Out[T, "n D"], lse: Out[f32, "n"], parts: In[T, "k n D"], part_lses: In[f32, "k n"]):
    for t in grid("n"):
        state = identity("D")
        for i in range(parts.shape[0]):
            state = merge(state, load_state(parts[i, t], part_lses[i, t]))
        store_state(state, out[t], lse[t])


@mlafix.kernel
def blank(out: InOut[T, "n D"], lens: In[i32, "b"], cu: In[i32, "b1"]):
    for b, t in segments(cu, "n", where=lambda b: b < lens.shape[0] and lens[b] <= 0):
        out[t] = 0.0


@pytest.mark.parametrize("size", [8, 100, 128, 1000, 4096])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_gpu_does_what_the_cpu_does(size: int, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    x = torch.randn(33, size).to(dtype)
    turns = torch.arange(33, dtype=torch.int32) % 5
    for bias in (None, torch.randn(size)):
        results = []
        for device in ("cpu", "cuda"):
            y = torch.full((33, size), torch.nan, dtype=dtype, device=device)
            z = torch.full((33,), -77, dtype=torch.int32, device=device)
            everything(y, z, x.to(device), turns.to(device), None if bias is None else bias.to(device))
            results.append((y.cpu().float(), z.cpu()))
        # The sign of a sum near 0 may differ between the devices. No sum of these random inputs is near 0.
        assert torch.equal(results[0][1], results[1][1])
        off = (results[0][0] - results[1][0]).abs() > 1e-2 * (1 + results[0][0].abs())
        # floor() of a number near a whole one may differ between the devices.
        assert off.float().mean() < 1e-3


def test_states_replay_in_a_captured_graph_with_changed_inputs() -> None:
    parts = torch.randn(4, 64, 128, device="cuda").bfloat16()
    lses = torch.randn(4, 64, device="cuda")
    out, lse = torch.full_like(parts[0], torch.nan), torch.full_like(lses[0], torch.nan)
    merge_pieces(out, lse, parts, lses)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        merge_pieces(out, lse, parts, lses)
    for _ in range(3):
        parts.copy_(torch.randn_like(parts))
        lses.copy_(torch.randn_like(lses))
        lses[1, ::3] = -torch.inf
        parts[1, ::3] = torch.nan
        graph.replay()
        weights = torch.softmax(lses.double(), 0)
        values = torch.where(weights[..., None] > 0, parts.double(), 0.0)
        want = (weights[..., None] * values).sum(0)
        torch.testing.assert_close(lse.double(), torch.logsumexp(lses.double(), 0), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(out.double(), want, rtol=2**-8, atol=2**-8)


def test_segments_blank_their_rows_alone() -> None:
    lens = torch.tensor([3, 0, 5, -1], dtype=torch.int32)
    cu = torch.tensor([0, 2, 40, 41, 64], dtype=torch.int32)
    out = torch.ones(64, 96, device="cuda").half()
    blank(out, lens.cuda(), cu.cuda())
    want = torch.ones(64, 96).half()
    want[2:40] = 0
    want[41:] = 0
    assert torch.equal(out.cpu(), want)
