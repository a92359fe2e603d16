"""Implementations for distributed.py that access other ranks' memory: the symmetric backend, hand-written kernels, and
a library kernel with plain arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist

from mlafix import ops
from mlafix.distributed import Reducer
from mlafix.distributed.ranks import CollectiveRanks
from mlafix.distributed._symmetric import SymmetricBackend, SymmetricMemory

Step = Callable[[int], None]
_WORKSPACE_WORDS = 128
# The index of block 0's first flag among the flags of a rank, which are u64 words (push.cu).
_FIRST_SLOT = 32


class PeerMemory:
    """Buffers of one shape in symmetric memory, and the steps on them.

    Args:
        tokens, heads, dim: the shape of the partial state, in bf16.
        cut: the cut of the reducers.
        sets: the number of buffer sets.
        device: the device of this rank.
    """

    def __init__(self, tokens: int, heads: int, dim: int, cut: str, sets: int, device: torch.device) -> None:
        self.rank, self.ranks, self.sets = dist.get_rank(), dist.get_world_size(), sets
        self.tokens, self.heads, self.dim = tokens, heads, dim
        self.reducers, self.fp8_reducers, self.pushers, self.fp8_pushers = (
            [Reducer(None, max_tokens=tokens, heads=heads, head_dim=dim, cut=cut, wire_dtype=wire, device=device, backend="symmetric",
                     exchange=exchange)
             for _ in range(self.sets)]
            for exchange in ("pull", "push") for wire in (None, "f8e4m3fn")
        )
        self.inputs = [reducer.inputs(tokens) for reducer in self.reducers]
        random = torch.Generator(device).manual_seed(dist.get_rank())
        for partial, lse in self.inputs:
            partial.copy_(torch.randn(partial.shape, generator=random, device=device))
            lse.copy_(torch.randn(lse.shape, generator=random, device=device))
        # Copies of the states outside symmetric memory, where an ordinary attention kernel leaves its results.
        self.copies = [(partial.clone(), lse.clone()) for partial, lse in self.inputs]
        self.outs = [reducer.reduce(*one) for reducer, one in zip(self.reducers, self.inputs)]
        self.pushed = [reducer.reduce(*one) for reducer, one in zip(self.pushers, self.copies)]
        for reducer, one in zip((*self.fp8_reducers, *self.fp8_pushers), (*self.copies, *self.copies)):
            reducer.reduce(*one)
        # The hand-written kernels use one thread per 16 bytes, and need the same number of rows on each rank.
        self.rows = tokens * heads // (1 if cut == "none" else self.ranks)
        self.own_heads = heads // self.ranks if cut == "heads" else heads
        self.step = {"heads": self.own_heads, "tokens": self.rows, "none": 0}[cut]
        self.blocks = -(-self.rows // (256 // (dim // 8)))
        self.by_hand = cut != "tokens" or tokens % self.ranks == 0
        self.pulled = [(torch.empty_like(out), torch.empty_like(lse)) for out, lse in self.outs]
        if self.by_hand:
            self._make_pull(device)
            self._make_push(device)

    def _compile(self, name: str, entry: str) -> Callable[..., None]:
        """Compiles the kernel `entry` of the hand-written file `name`.cu for this shape."""
        macros = {"RANKS": self.ranks, "HEADS": self.own_heads, "ALL_HEADS": self.heads, "DIM": self.dim, "STEP": self.step}
        source = "".join(f"#define {macro} {value}\n" for macro, value in macros.items())
        for file in ("ranks.cuh", f"{name}.cu"):
            source += (Path(__file__).parent / file).read_text(encoding="utf-8")
        kernel: Callable[..., None] = torch.cuda._compile_kernel(source, entry)
        return kernel

    def _make_pull(self, device: torch.device) -> None:
        """Makes the pulling kernel, and a table of addresses for each set of buffers."""
        self.pull_kernel = self._compile("pull", "pull_merge")
        self.flags = [SymmetricMemory(CollectiveRanks(dist.group.WORLD, "nccl"), 8 * _WORKSPACE_WORDS, device) for _ in range(self.sets)]
        self.tables = []
        for reducer, flags in zip(self.reducers, self.flags):
            backend = reducer._backend
            assert isinstance(backend, SymmetricBackend)
            pulled = backend._pulled(self.tokens)
            addresses = [tensor.data_ptr() for of in (pulled.rows, pulled.lses) for tensor in of.tensors]
            addresses += [buffer.data_ptr() for buffer in flags.buffers]
            self.tables.append(torch.tensor(addresses, dtype=torch.int64, device=device))

    def _make_push(self, device: torch.device) -> None:
        """Makes the pushing kernel and, for each set of buffers, symmetric memory for everything that ranks send: first
        payloads, then lses, then flags."""
        self.push_kernel = self._compile("push", "push_merge")
        self.push_alone_kernel = self._compile("push", "push_alone")
        sent = 2 * self.ranks * self.rows
        sizes = (2 * self.dim * sent, 4 * sent, 8 * (_FIRST_SLOT + self.blocks * self.ranks))
        offsets = [sum(-(-size // 128) * 128 for size in sizes[:part]) for part in range(4)]
        ranks = CollectiveRanks(dist.group.WORLD, "nccl")
        self.sent = [SymmetricMemory(ranks, offsets[3], device) for _ in range(self.sets)]
        self.sent_tables = [
            torch.tensor([buffer.data_ptr() + offset for offset in offsets[:3] for buffer in memory.buffers], dtype=torch.int64, device=device)
            for memory in self.sent
        ]
        self.sent_outs = [(torch.empty_like(out), torch.empty_like(lse)) for out, lse in self.outs]

    def reduce(self, i: int) -> None:
        self._reduce(self.reducers, self.inputs, self.outs, i)

    def copy_and_reduce(self, i: int) -> None:
        self._reduce(self.reducers, self.copies, self.outs, i)

    def copy_and_reduce_fp8(self, i: int) -> None:
        self._reduce(self.fp8_reducers, self.copies, self.outs, i)

    def push(self, i: int) -> None:
        self._reduce(self.pushers, self.copies, self.pushed, i)

    def push_fp8(self, i: int) -> None:
        self._reduce(self.fp8_pushers, self.copies, self.pushed, i)

    def _reduce(self, reducers: list[Reducer], inputs: list[tuple[torch.Tensor, torch.Tensor]],
                outs: list[tuple[torch.Tensor, torch.Tensor | None]], i: int) -> None:
        out, lse = outs[i]
        reducers[i].reduce(*inputs[i], out=out, out_lse=lse)

    def pull(self, i: int) -> None:
        out, lse = self.pulled[i]
        self.pull_kernel(grid=(self.blocks, 1, 1), block=(256, 1, 1), args=[out, lse, self.tables[i], self.rows, self.rank])

    def push_by_hand(self, i: int) -> None:
        arguments = [*self.sent_outs[i], *self.copies[i], self.sent_tables[i], self.rows, self.rank]
        self.push_kernel(grid=(self.blocks, 1, 1), block=(256, 1, 1), args=arguments)

    def push_alone(self, i: int) -> None:
        arguments = [*self.copies[i], self.sent_tables[i], self.rows, self.rank]
        self.push_alone_kernel(grid=(self.blocks, 1, 1), block=(256, 1, 1), args=arguments)

    def merge_list(self, i: int) -> None:
        out, lse = self.pulled[i]
        pulled = self.reducers[i]._backend._pulled(self.tokens)  # type: ignore[attr-defined]
        ops.merge_states_list(list(pulled.rows.tensors), list(pulled.lses.tensors), out=out, out_lse=lse)

    def steps(self) -> dict[str, Step]:
        steps: dict[str, Step] = {"symmetric": self.reduce, "copy + symmetric": self.copy_and_reduce,
                                  "push": self.push, "copy + fp8": self.copy_and_reduce_fp8, "push fp8": self.push_fp8}
        if self.by_hand:
            steps |= {"pull by hand": self.pull, "push by hand": self.push_by_hand, "push alone": self.push_alone}
        if self.ranks <= 8:
            steps["list"] = self.merge_list
        return steps

    def _check_bits(self, pull: Step, push: Step) -> None:
        """Raises RuntimeError unless both implementations give the same bits. Fills the outputs with NaN first, so that
        results of earlier calls do not count."""
        for held, step in ((self.outs, pull), (self.pushed, push)):
            for i, outputs in enumerate(held):
                for output in outputs:
                    output.fill_(float("nan"))
                step(i)
        torch.cuda.synchronize()
        for pulled, pushed in zip(self.outs, self.pushed):
            if not all(torch.equal(ours, other) for ours, other in zip(pulled, pushed)):
                raise RuntimeError(f"expected the bits of {pull.__name__}, got others of {push.__name__}")

    def check(self) -> None:
        """Compares the results of pulling and of pushing bit by bit. Compares the results of pulling with those of the
        hand-written kernels. Raises RuntimeError if results differ."""
        self._check_bits(self.copy_and_reduce_fp8, self.push_fp8)
        self._check_bits(self.reduce, self.push)
        for i in range(self.sets) if self.by_hand else ():
            self.pull(i)
            self.push_by_hand(i)
        torch.cuda.synchronize()
        for (out, lse), *by_hand in zip(self.outs, self.pulled, self.sent_outs) if self.by_hand else ():
            for other, other_lse in by_hand:
                apart = float((out.float() - other.float()).abs().max()), float((lse - other_lse).abs().max())
                if not max(apart) < 0.05:
                    raise RuntimeError(f"expected the hand-written kernel's result, got one {apart} beside it")
