"""A small engine: paged KV in fp8, requests that come and go, contexts in chunks, a cascade, and ranks that share keys.

A step's work on the device is a list of calls on fixed buffers. The calls are made directly (eager), or recorded and
replayed. On a GPU, a CUDA graph replays them. Elsewhere, replay() makes the calls of the list again. FAULTS lists the
faults that the engine can have.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch

from mlafix import ops
from mlafix.watch import Watch, poison_cache, watcher

HEADS, KV_HEADS, DIM, PAGE, PAGES, WIDTH = 4, 2, 16, 4, 64, 8
TOKENS, REQUESTS, HIDDEN, SHARED = 12, 4, 32, 1
CHUNK = 8  # the number of keys in a chunk of context
RANKS = 2
SCALE = DIM**-0.5
FP8 = torch.float8_e4m3fn
LAYERS = ("chunks", "cascade", "ranks")

FAULTS = (
    "stale rows", "wrong base in one path", "padding read", "heads swapped", "stale length in a captured graph", "a rank's lse scaled",
    "recycled page", "fp8 scale of another layer", "an empty request's +inf", "wrong causal edge", "table entry past the live pages",
    "accumulated out",
)  # fmt: skip


class Engine:
    """Three layers that each compute attention in another way, over requests of a few tokens.

    Args:
        watch: makes the checks after the seams. None omits the checks.
        fault: one of FAULTS, or "" for none. It begins in step `fault_step`.
        replays: true if all steps after the first one are replays.
    """

    def __init__(self, watch: Watch | None, *, fault: str = "", fault_step: int = 4, replays: bool = False, device: str = "cpu", seed: int = 0) -> None:
        self.watch, self.fault, self.fault_step, self.replays = watch, fault, fault_step, replays
        self.device = torch.device(device)
        self.generator = torch.Generator().manual_seed(seed)
        self.step_number, self.graph = 0, None
        self.kept: list[Callable[[], Any]] = []  # the calls of a step, for replays
        self.records = False
        new = lambda *shape: torch.zeros(*shape, device=device)  # noqa: E731
        self.x, self.embedded = new(TOKENS, HIDDEN), new(TOKENS, HIDDEN)
        self.weights = [(torch.randn(HIDDEN, (HEADS + 2 * KV_HEADS) * DIM, generator=self.generator) / HIDDEN**0.5).to(device) for _ in LAYERS]
        self.outs = [(torch.randn(HEADS * DIM, HIDDEN, generator=self.generator) / (HEADS * DIM) ** 0.5).to(device) for _ in LAYERS]
        self.scales = [(0.05 * (i + 1), 0.04 * (i + 2)) for i in range(len(LAYERS))]
        self.caches = [[torch.zeros(PAGES, PAGE, KV_HEADS, DIM, dtype=torch.uint8, device=device).view(FP8) for _ in "kv"] for _ in LAYERS]
        self.q, self.k, self.v = new(TOKENS, HEADS, DIM), new(TOKENS, KV_HEADS, DIM), new(TOKENS, KV_HEADS, DIM)
        self.parts = [(new(TOKENS, HEADS, DIM), new(HEADS, TOKENS)) for _ in range(4)]
        self.merged = [(new(TOKENS, HEADS, DIM), new(HEADS, TOKENS)) for _ in range(2)]
        ints = lambda *shape: torch.zeros(*shape, dtype=torch.int32, device=device)  # noqa: E731
        self.lens, self.truth, self.context, self.starts = ints(REQUESTS), ints(REQUESTS), ints(REQUESTS), ints(REQUESTS + 1)
        self.table, self.owner, self.position = ints(REQUESTS, WIDTH), ints(TOKENS), ints(TOKENS)
        self.slots = torch.zeros(TOKENS, dtype=torch.int64, device=device)
        self.by_token, self.each = ints(TOKENS, WIDTH), torch.arange(TOKENS + 1, dtype=torch.int32, device=device)
        self.flag = torch.zeros(1, dtype=torch.bool, device=device)  # true while the fault is active
        self.chunk_first, self.chunk_lens = [ints(REQUESTS) for _ in range(2)], [ints(REQUESTS) for _ in range(2)]
        self.shared_lens, self.rest_lens, self.new_lens = ints(1), ints(REQUESTS), ints(REQUESTS)
        self.shared_starts, self.rest_table, self.shared_table = ints(2), ints(REQUESTS, WIDTH - SHARED), ints(1, SHARED)
        self.rank_lens, self.rank_tables = [ints(TOKENS) for _ in range(RANKS)], [ints(TOKENS, WIDTH // RANKS) for _ in range(RANKS)]
        self.live: list[Any] = [None] * REQUESTS
        self.made = 0
        self.prefix = SHARED * PAGE
        self.free = list(range(2, PAGES))
        self._fill_prefix()

    def _fill_prefix(self) -> None:
        """Writes page 1, the prompt that all requests share. Page 0 pads the tables."""
        for caches in self.caches:
            for cache in caches:
                rows = torch.randn(PAGE, KV_HEADS, DIM, generator=self.generator) * 10
                cache.view(torch.uint8)[1] = rows.to(self.device).to(FP8).view(torch.uint8)

    def has(self, fault: str) -> bool:
        """Returns true if the engine was made with this fault. While the fault is active, `flag` is true."""
        return self.fault == fault

    # -- The host: requests, pages, metadata --------------------------------------------------------------------------------

    def schedule(self) -> int:
        """Advances the requests by a step. Some requests end, and new ones take their places. All others decode one
        token. Returns the number of tokens in the step."""
        draw = lambda low, high: int(torch.randint(low, high, (), generator=self.generator))  # noqa: E731
        for i, request in enumerate(self.live):
            if request is not None and (request.length >= WIDTH * PAGE - 6 or request.steps > 6 + i):
                self.free += request.pages[SHARED:]
                self.live[i] = None
        tokens, starts = 0, [0]
        for i in range(REQUESTS):
            if self.live[i] is None:
                self.made += 1
                # For a new request, the cache has only the shared prompt. The first step adds the rest of its prompt.
                self.live[i] = SimpleNamespace(name=f"r{self.made}", length=self.prefix, pages=[1], steps=0)
                count = 2 + draw(0, 2)
            else:
                count = 1
            request = self.live[i]
            request.context, request.steps = request.length, request.steps + 1
            request.length += count
            while len(request.pages) * PAGE < request.length:
                request.pages.append(self.free.pop(0))
            tokens += count
            starts.append(tokens)
        self._fill(tokens, starts)
        return tokens

    def _fill(self, tokens: int, starts: list[int]) -> None:
        lens = torch.tensor([r.length for r in self.live], dtype=torch.int32)
        context = torch.tensor([r.context for r in self.live], dtype=torch.int32)
        table = torch.tensor([r.pages + [0] * (WIDTH - len(r.pages)) for r in self.live], dtype=torch.int32)
        owner = torch.repeat_interleave(torch.arange(REQUESTS, dtype=torch.int32), torch.tensor(starts).diff())
        owner = torch.cat([owner, torch.zeros(TOKENS - tokens, dtype=torch.int32)])
        position = torch.arange(TOKENS, dtype=torch.int32) - torch.tensor(starts)[owner.long()].int() + context[owner.long()]
        slots = table[owner.long(), (position // PAGE).long().clamp(max=WIDTH - 1)].long() * PAGE + position % PAGE
        slots[tokens:], position[tokens:] = -1, 0
        is_faulty = self.step_number >= self.fault_step
        if not (self.has("stale length in a captured graph") and is_faulty):
            self.lens.copy_(lens)
        self.flag.fill_(is_faulty)
        for target, value in ((self.truth, lens), (self.context, context), (self.table, table), (self.owner, owner), (self.position, position),
                              (self.slots, slots), (self.starts, torch.tensor(starts, dtype=torch.int32))):  # fmt: skip
            target.copy_(value)
        self.embedded.copy_(torch.randn(TOKENS, HIDDEN, generator=self.generator))
        if self.has("recycled page") and self.step_number == self.fault_step:
            page = self.live[2].pages[SHARED]
            self.caches[1][0].view(torch.uint8)[page] = 0x7F

    # -- A step -----------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        self.step_number += 1
        tokens = self.schedule()
        if self.watch is not None:
            self.watch.step(tokens, requests=[r.name for r in self.live], lens=self.truth, cu_seqlens=self.starts, block_table=self.table)
        if not self.replays or self.step_number == 1:
            self.forward()
        elif self.step_number == 2:
            self.capture()
        else:
            self.replay()

    def capture(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.forward()
            self.graph.replay()
            return
        with recorded(self):
            self.forward()

    def replay(self) -> None:
        if self.graph is not None:
            self.graph.replay()
            return
        for call in self.kept:
            call()

    def do(self, call: Callable[[], Any]) -> None:
        """Makes a call. While `records` is true, also keeps it for replays."""
        call()
        if self.records:
            self.kept.append(call)

    def forward(self) -> None:
        """Does the part of a step that runs on the device."""
        w = self.watch
        self.do(self.prepare)
        if w is not None:
            w.metadata(self.lens, expected_lens=self.truth, cu_seqlens=self.starts, slots=self.slots, block_table=self.table, pages=PAGES, page_size=PAGE)
        self.do(lambda: self.x.copy_(self.embedded))
        for layer, kind in enumerate(LAYERS):
            self.do(lambda layer=layer: self.project(layer))
            if w is not None:
                w.layer = str(layer)
                if w.choice.poison:
                    self.do(lambda layer=layer: poison_cache([cache for cache in self.caches[layer]], self.table, self.truth))
                for name, cache in zip("kv", self.caches[layer]):
                    w.blocks(cache, self.table, self.lens, name=f"{name} cache")
            getattr(self, f"layer_of_{kind}")(layer)
            out = self.merged[1][0]
            self.do(lambda layer=layer, out=out: self.x.copy_(torch.nn.functional.layer_norm(self.x + out.flatten(1) @ self.outs[layer], (HIDDEN,))))

    def prepare(self) -> None:
        """Computes the metadata of each kind of layer, on the device."""
        context = self.lens - (self.starts[1:] - self.starts[:-1])
        self.new_lens.copy_(self.starts[1:] - self.starts[:-1])
        for c in range(2):
            self.chunk_first[c].fill_(c * CHUNK)
            most = CHUNK if c == 0 else WIDTH * PAGE
            self.chunk_lens[c].copy_((context - c * CHUNK).clamp(0, most))
        self.shared_lens.fill_(self.prefix)
        self.rest_lens.copy_((self.lens - self.prefix).clamp(min=0))
        self.shared_starts.copy_(self.starts[::REQUESTS])
        self.rest_table.copy_(self.table[:, SHARED:])
        self.shared_table.copy_(self.table[:1, :SHARED])
        self.by_token.copy_(self.table[self.owner.long()])
        seen = self.position + 1  # the number of keys that each token sees
        pages, rest = seen // PAGE, seen % PAGE
        for r in range(RANKS):
            whole = (pages + (RANKS - 1 - r)) // RANKS
            self.rank_lens[r].copy_(torch.where(self.slots < 0, 0, whole * PAGE + torch.where(pages % RANKS == r, rest, 0)))
            self.rank_tables[r].copy_(self.by_token[:, r::RANKS])

    def project(self, layer: int) -> None:
        """Computes q, k and v of a layer, and writes the new rows of the cache."""
        rows = (self.x @ self.weights[layer]).view(TOKENS, HEADS + 2 * KV_HEADS, DIM)
        self.q.copy_(rows[:, :HEADS])
        for cache, scale, new, target in zip(self.caches[layer], self.scales[layer], rows[:, HEADS:].split(KV_HEADS, 1), (self.k, self.v)):
            narrow = (new / scale).clamp(-448, 448).to(FP8)
            target.copy_(narrow.float() * scale)
            flat = cache.view(torch.uint8).view(PAGES * PAGE, KV_HEADS, DIM)
            live = (self.slots >= 0)[:, None, None]
            # The slot of a padding token is -1. Such tokens write to slot 0 of page 0, which no sequence uses.
            places = self.slots.clamp(min=0)
            flat[places] = torch.where(live, narrow.view(torch.uint8), flat[:1])

    # -- Attention -----------------------------------------------------------------------------------------------------------

    def attend(self, layer: int, to: tuple[torch.Tensor, torch.Tensor], keys: torch.Tensor, values: torch.Tensor, sees: torch.Tensor) -> None:
        """Computes the attention of all tokens to keys [N, n, Hk, D], and writes out and lse to `to`. A token does not
        see the keys whose element in the mask `sees` [N, n] is false. These keys are replaced by zeros."""
        mask = sees[:, :, None, None]
        keys, values = (torch.where(mask, x, 0.0).repeat_interleave(HEADS // KV_HEADS, 2) for x in (keys, values))
        scores = torch.einsum("thd,tjhd->thj", self.q, keys) * SCALE
        scores = scores.masked_fill(~sees[:, None], -math.inf)
        top = scores.amax(-1, keepdim=True)
        safe = torch.where(top == -math.inf, 0.0, top)
        weights = (scores - safe).exp()
        total = weights.sum(-1, keepdim=True)
        out = torch.einsum("thj,tjhd->thd", weights, values) / torch.where(total == 0, 1.0, total)
        to[0].copy_(out)
        to[1].copy_((total.log() + safe)[..., 0].T)

    def paged(self, layer: int, to: Any, table: Any, owner: Any, first: Any, count: Any, past: int = 0, swapped: bool = False, scale_of: int | None = None) -> None:
        """Computes attention to `count` [N] keys from key `first` [N] on. The keys are in the pages that `table` [B, w]
        lists, and `owner` [N] is each token's row of the table. While the fault is active, `past` keys after the last
        one are read, too."""
        k_cache, v_cache = self.caches[layer]
        k_scale, v_scale = self.scales[layer]
        if scale_of is not None:
            v_scale = torch.where(self.flag, self.scales[scale_of][1], v_scale)
        width = table.shape[1] * PAGE
        pages = table[owner.long()].long()
        keys, values = ((cache.view(torch.uint8)[pages].view(FP8).float() * scale).view(TOKENS, width, KV_HEADS, DIM)
                        for cache, scale in ((k_cache, k_scale), (v_cache, v_scale)))  # fmt: skip
        if swapped:
            keys = torch.where(self.flag, keys.flip(2), keys)
        places = torch.arange(width, device=self.device)[None]
        begin, end = first[:, None], (first + count)[:, None]
        more = torch.where(self.flag & (end > begin), past, 0) if past else 0
        self.attend(layer, to, keys, values, (places >= begin) & (places < end + more))

    # -- Layers ---------------------------------------------------------------------------------------------------------------

    def check(self, layer: int, name: str, to: Any, lens: Any, starts: Any, table: Any, first: Any = None, causal: bool = False, keys: Any = None) -> None:
        if self.watch is None:
            return
        k_scale, v_scale = self.scales[layer] if keys is None else (1.0, 1.0)
        k, v = self.caches[layer] if keys is None else keys
        self.watch.attention(*to, self.q, k, v, lens=lens, cu_seqlens=starts, block_table=table, first=first, scale=SCALE * k_scale,
                             v_scale=v_scale, causal=causal, name=name)  # fmt: skip

    def poison(self, to: Any) -> None:
        if self.watch is not None and self.watch.choice.poison:
            self.do(lambda: [tensor.fill_(math.nan) for tensor in to])

    def merge(self, layer: int, name: str, to: Any, sides: Any, seam: str = "merge") -> None:
        """Merges two or more states by code of this engine, not of mlafix."""

        def run() -> None:
            lses = torch.stack([lse for _, lse in sides])
            if seam == "reduce" and self.has("a rank's lse scaled"):
                lses[1] = torch.where(self.flag, lses[1] * 1.1, lses[1])
            top = lses.amax(0)
            safe = torch.where(top == -math.inf, 0.0, top)
            weights = (lses - safe).exp()
            total = weights.sum(0)
            shares = (weights / torch.where(total == 0, 1.0, total)).transpose(1, 2)[..., None]
            rows = torch.stack([torch.where(share > 0, share * out, 0.0) for (out, _), share in zip(sides, shares)]).sum(0)
            if seam == "reduce" and self.has("accumulated out"):
                rows = torch.where(self.flag, rows + to[0], rows)
            to[0].copy_(rows)
            to[1].copy_(total.log() + safe)

        self.poison(to)
        self.do(run)
        if self.watch is not None:
            self.watch.merge(*to, [out for out, _ in sides], [lse for _, lse in sides], seam=seam, name=name)

    def layer_of_chunks(self, layer: int) -> None:
        for c in range(2):
            to = self.parts[c]
            self.poison(to)

            def run(c: int = c, to: Any = to) -> None:
                own = self.owner.long()
                first, count = self.chunk_first[c][own], self.chunk_lens[c][own]
                before = to[0].clone()
                self.paged(layer, to, self.table, self.owner, first, count)
                is_empty = (count == 0) & self.flag
                if c == 1 and self.has("stale rows"):
                    to[0].copy_(torch.where(is_empty[:, None, None], torch.where(before.isnan(), 7.0, before) + 1, to[0]))
                if c == 1 and self.has("an empty request's +inf"):
                    to[1].copy_(torch.where(is_empty[None], math.inf, to[1]))

            self.do(run)
            self.check(layer, f"context chunk {c}", to, self.chunk_lens[c], self.starts, self.table, self.chunk_first[c])
        self.poison(self.parts[2])

        def new_tokens() -> None:
            same = self.owner[:, None] == self.owner[None]
            sees = same & (self.position[None] <= self.position[:, None]) & (self.slots >= 0)[None]
            if self.has("wrong causal edge"):
                sees = torch.where(self.flag, same & (self.position[None] < self.position[:, None]), sees)
            self.attend(layer, self.parts[2], *(x[None].expand(TOKENS, *x.shape) for x in (self.k, self.v)), sees)

        self.do(new_tokens)
        self.check(layer, "new tokens", self.parts[2], self.new_lens, self.starts, None, causal=True, keys=(self.k[:, None], self.v[:, None]))
        self.merge(layer, "context", self.merged[0], self.parts[:2])
        self.merge(layer, "context and new tokens", self.merged[1], [self.merged[0], self.parts[2]])

    def layer_of_cascade(self, layer: int) -> None:
        shared, rest = self.parts[:2]
        self.poison((*shared, *rest))

        def prefix() -> None:
            zero = torch.zeros_like(self.owner)
            self.paged(layer, shared, self.shared_table, zero, zero, torch.where(self.slots < 0, 0, self.prefix))

        def suffix() -> None:
            count = torch.where(self.slots < 0, 0, self.position + 1 - self.prefix)
            past = 1 if self.has("padding read") else PAGE if self.has("table entry past the live pages") else 0
            other = 0 if self.has("fp8 scale of another layer") else None
            self.paged(layer, rest, self.rest_table, self.owner, torch.zeros_like(count), count, past, scale_of=other)
            if self.has("wrong base in one path"):
                rest[1].copy_(torch.where(self.flag, rest[1] * math.log2(math.e), rest[1]))

        self.do(prefix)
        self.check(layer, "shared prefix", shared, self.shared_lens, self.shared_starts, self.shared_table)
        self.do(suffix)
        self.check(layer, "suffix", rest, self.rest_lens, self.starts, self.rest_table, causal=True)
        self.merge(layer, "cascade", self.merged[1], [shared, rest])

    def layer_of_ranks(self, layer: int) -> None:
        tokens = torch.arange(TOKENS, dtype=torch.int32, device=self.device)
        for r in range(RANKS):
            to = self.parts[r]
            self.poison(to)
            self.do(lambda r=r, to=to: self.paged(layer, to, self.rank_tables[r], tokens, torch.zeros_like(tokens), self.rank_lens[r],
                                                  swapped=r == 1 and self.has("heads swapped")))  # fmt: skip
            self.check(layer, f"rank {r}", to, self.rank_lens[r], self.each, self.rank_tables[r])
        self.merge(layer, "ranks", self.merged[1], self.parts[:RANKS], seam="reduce")


@contextmanager
def recorded(engine: Engine) -> Any:
    """Records the checks of a watch together with the engine's calls, as a CUDA graph would."""

    class Recorder:
        def __getattr__(self, name: str) -> Callable[..., None]:
            function = getattr(ops, name)
            return lambda *args, **kwargs: engine.do(lambda: function(*args, **kwargs))

    own, watcher.ops, watcher.capturing_on_host, engine.records = watcher.ops, Recorder(), True, True  # type: ignore[assignment]
    try:
        yield
    finally:
        watcher.ops, watcher.capturing_on_host, engine.records = own, False, False
