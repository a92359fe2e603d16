"""Tests the five public reports about engines that this project answers, each as a scenario of an engine.

A scenario keeps its arrays in place, loads new contents, takes one step, and checks the results. With a GPU, the step
is also captured in a `torch.cuda.graph` and replayed with changed contents.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import contract
from devices import Device, TorchDevice, has_cuda
from mlafix import ops
from numerics import BF16, F32, garbage, poison, same_bits
from states import make_states

N, HEADS, DIM = 16, 4, 64


class Scenario:
    """The arrays of an engine on a device, and one step with them."""

    def __init__(self, device: Device, rng: np.random.Generator) -> None:
        self.device, self.rng = device, rng
        self.arrays: dict[str, Any] = {}

    def load(self, case: int) -> None:
        """Loads new contents into every array and poisons the outputs, since an engine zeroes no buffer between
        steps."""
        raise NotImplementedError

    def step(self) -> None:
        raise NotImplementedError

    def check(self) -> None:
        raise NotImplementedError

    def put(self, **contents: np.ndarray) -> None:
        for name, array in contents.items():
            if name in self.arrays:
                self.device.write(self.arrays[name], array)
            else:
                self.arrays[name] = self.device.put(array.copy())

    def get(self, name: str) -> np.ndarray:
        return self.device.get(self.arrays[name])

    def states(self, **options: Any) -> None:
        """Loads a new prefix and a new suffix, and poisons the outputs."""
        self.held = make_states(self.rng, 2, N, HEADS, DIM, BF16, **options)
        v, s = self.held.v, self.held.s
        self.put(prefix=v[0], prefix_lse=np.ascontiguousarray(s[0].T), suffix=v[1], suffix_lse=np.ascontiguousarray(s[1].T),
                 out=poison((N, HEADS, DIM), BF16), out_lse=poison((HEADS, N), F32))


class Vllm36540MergeWithThreshold(Scenario):
    """vLLM #36540: rows at or past a threshold copy the suffix. The threshold is on the host, so no sync is needed.
    Buffers come from `empty`."""

    threshold = 11

    def load(self, case: int) -> None:
        self.states()
        # Rows past the threshold have no prefix. The prefix's memory for these rows was never written and must not be
        # read.
        self.held.v[0, self.threshold :] = garbage(self.rng, (N - self.threshold, HEADS, DIM), BF16)
        self.held.s[0, self.threshold :] = np.nan
        self.put(prefix=self.held.v[0], prefix_lse=np.ascontiguousarray(self.held.s[0].T))

    def step(self) -> None:
        a = self.arrays
        ops.merge_attn_states(a["prefix"], a["prefix_lse"], a["suffix"], a["suffix_lse"], out=a["out"], out_lse=a["out_lse"],
                              context_rows=self.threshold)

    def check(self) -> None:
        v, s = self.held.v, self.held.s
        out, lse = contract.merge_attn_states(v[0], s[0], v[1], s[1], self.threshold, out_dtype=BF16)
        out.check(self.get("out"), "out")
        lse.check(self.get("out_lse").T, "lse")


class Vllm38359NoZeroInit(Scenario):
    """vLLM #38359: a padded batch lies in buffers that are never zeroed. Exactly the padding rows are blanked."""

    def load(self, case: int) -> None:
        self.live = [N, 1, 9, 0, 15][case % 5]
        self.states()
        pad = slice(self.live, None)
        self.held.v[:, pad] = garbage(self.rng, self.held.v[:, pad].shape, BF16)
        self.held.s[:, pad] = np.nan
        self.put(prefix=self.held.v[0], suffix=self.held.v[1], prefix_lse=np.ascontiguousarray(self.held.s[0].T),
                 suffix_lse=np.ascontiguousarray(self.held.s[1].T), live=np.array([self.live], np.int32))

    def step(self) -> None:
        a = self.arrays
        ops.merge_attn_states(a["prefix"], a["prefix_lse"], a["suffix"], a["suffix_lse"], out=a["out"], out_lse=a["out_lse"])
        ops.fill_pad_rows(a["out"], a["live"], a["out_lse"])

    def check(self) -> None:
        out, lse, live = self.get("out"), self.get("out_lse").T, self.live
        want, want_lse = contract.merge(self.held.v[:, :live], self.held.s[:, :live], out_dtype=BF16)
        want.check(out[:live], "out")
        want_lse.check(lse[:live], "lse")
        assert same_bits(out[live:], np.zeros_like(out[live:])) and np.isneginf(lse[live:]).all()


class Sglang22688ZeroKvFixup(Scenario):
    """SGLang #22688: before a merge reads them, rows of sequences without KV become 0 with an lse of -inf. This takes
    one launch and no sync."""

    CASES = [([5, 0, 3, 0], [0, 4, 9, 13, 16]), ([1, 1, 1, 1], [0, 4, 8, 12, 16]), ([0, 0, 0, 0], [0, 1, 2, 3, 16]),
             ([7, 0, -1, 2], [0, 0, 8, 16, 16])]

    def load(self, case: int) -> None:
        kv_lens, cu_seqlens = (np.array(x, np.int32) for x in self.CASES[case % len(self.CASES)])
        self.states(faults=False)
        self.dead = contract.dead_rows(N, kv_lens, cu_seqlens)
        # The attention kernel did not write the rows of sequences without keys, nor their lses.
        self.held.v[0, self.dead] = garbage(self.rng, (int(self.dead.sum()), HEADS, DIM), BF16)
        self.held.s[0, self.dead] = garbage(self.rng, (int(self.dead.sum()), HEADS), F32)
        self.put(prefix=self.held.v[0], prefix_lse=np.ascontiguousarray(self.held.s[0].T), kv_lens=kv_lens, cu_seqlens=cu_seqlens)
        assert ops.chunks_with_zero_kv(kv_lens[None]) == [bool((kv_lens <= 0).any())]

    def step(self) -> None:
        a = self.arrays
        ops.fixup_zero_kv_rows(a["prefix"], a["prefix_lse"], a["kv_lens"], a["cu_seqlens"])
        ops.merge_attn_states(a["prefix"], a["prefix_lse"], a["suffix"], a["suffix_lse"], out=a["out"], out_lse=a["out_lse"])

    def check(self) -> None:
        fixed, lse = contract.blanked(self.held.v[0], self.held.s[0], self.dead)
        fixed.check(self.get("prefix"), "prefix")
        lse.check(self.get("prefix_lse").T, "prefix_lse")
        present = np.stack([np.broadcast_to(~self.dead[:, None], (N, HEADS)), np.ones((N, HEADS), bool)])
        want, want_lse = contract.merge(self.held.v, self.held.s, present=present, out_dtype=BF16)
        want.check(self.get("out"), "out")
        want_lse.check(self.get("out_lse").T, "out_lse")


class Vllm41873StaleFlagsInPaddedRows(Scenario):
    """vLLM #41873: `is_prefilling` becomes False for requests that only pad the graph, whatever the buffer contained
    before."""

    def load(self, case: int) -> None:
        self.live = [5, 8, 0, 3, 7][case % 5]
        self.computed, self.prompt = (self.rng.integers(0, 3, 8).astype(np.int64) for _ in range(2))
        stale = np.ones(8, bool)
        self.put(flags=stale, others=stale, computed=self.computed, prompt=self.prompt, live=np.array([self.live], np.int32))

    def step(self) -> None:
        a = self.arrays
        ops.mark_prefilling(a["flags"], a["computed"], a["prompt"], a["live"])
        ops.clear_pad_flags(a["others"], a["live"])

    def check(self) -> None:
        assert self.get("flags").tolist() == contract.prefilling(self.computed, self.prompt, 8, self.live).tolist()
        assert self.get("others").tolist() == [i < self.live for i in range(8)]


class Vllm42135ContiguousContextLens(Scenario):
    """vLLM #42135: the context lengths are a contiguous [num_decodes, max_decode_len] view of one flat buffer. They are
    never negative, and padding is zero."""

    def load(self, case: int) -> None:
        self.live = [4, 6, 0, 1][case % 4]
        self.lens = self.rng.integers(0, 9, 6).astype(np.int32)
        self.put(buffer=np.full(64, -1, np.int32), seq_lens=self.lens, live=np.array([self.live], np.int32))

    def step(self) -> None:
        a = self.arrays
        self.view = ops.expand_context_lens(a["buffer"], a["seq_lens"], 6, 5, live_rows=a["live"])

    def check(self) -> None:
        got = self.device.get(self.view)
        assert got.flags.c_contiguous and got.shape == (6, 5)
        assert got.tolist() == contract.context_lens(self.lens, 6, 5, self.live).tolist() and (got >= 0).all()
        assert (self.get("buffer")[30:] == -1).all()


SCENARIOS = [Vllm36540MergeWithThreshold, Vllm38359NoZeroInit, Sglang22688ZeroKvFixup, Vllm41873StaleFlagsInPaddedRows,
             Vllm42135ContiguousContextLens]
reports = pytest.mark.parametrize("report", SCENARIOS, ids=lambda scenario: scenario.__name__)


@reports
def test_report(report: type[Scenario], device: Device, rng: np.random.Generator) -> None:
    scenario = report(device, rng)
    for case in range(5):
        scenario.load(case)
        scenario.step()
        scenario.check()


@reports
@pytest.mark.skipif(not has_cuda(), reason="needs a GPU: captures a CUDA graph")
@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_report_in_a_captured_graph_replayed_with_changed_inputs(report: type[Scenario], warm: bool,
                                                                 rng: np.random.Generator) -> None:
    """A captured step works on changed contents. Without warm-up, its code is loaded during the capture, which must be
    legal as well."""
    import torch

    scenario = report(TorchDevice("cuda"), rng)
    scenario.load(0)
    if warm:
        scenario.step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scenario.step()
    for case in range(5):
        scenario.load(case)
        graph.replay()
        torch.cuda.synchronize()
        scenario.check()


@pytest.mark.skipif(not has_cuda(), reason="needs a GPU: several streams")
def test_launches_go_to_torchs_current_stream(rng: np.random.Generator) -> None:
    """A launch goes to torch's current stream. The inputs are written after a long wait on a side stream, so a launch
    on another stream would read poison."""
    import torch

    device = TorchDevice("cuda")
    scenario = Vllm36540MergeWithThreshold(device, rng)
    scenario.load(0)
    scenario.step()
    scenario.load(1)
    late = scenario.arrays["suffix"].clone()
    scenario.arrays["suffix"].fill_(float("nan"))
    torch.cuda.synchronize()
    for given in (None, "handle", "object"):
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            torch.cuda._sleep(100_000_000)
            scenario.arrays["suffix"].copy_(late)
            if given is None:
                scenario.step()
        if given is not None:
            a = scenario.arrays
            ops.merge_attn_states(a["prefix"], a["prefix_lse"], a["suffix"], a["suffix_lse"], out=a["out"], out_lse=a["out_lse"],
                                  context_rows=scenario.threshold, stream=side if given == "object" else side.cuda_stream)
        side.synchronize()
        scenario.check()
        scenario.arrays["suffix"].fill_(float("nan"))
        scenario.arrays["out"].fill_(float("nan"))
        torch.cuda.synchronize()
