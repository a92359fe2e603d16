#!/usr/bin/env python3
"""Attention over a long context whose keys are split over the ranks of a group, and merged by mlafix.distributed.

    torchrun --nproc-per-node 4 examples/context_parallel/main.py [--help]

The pages of each request's keys and values are dealt to the ranks in turn. Each rank computes attention over its pages,
and merges its partial state with those of the other ranks, with each cut. If there is a GPU for each rank, the merges run
over symmetric memory (if the GPUs support it) and over NCCL. Otherwise they run on CPUs, over gloo and over a group that
has only an all-gather. Every result is compared with attention over all keys in f64. All cuts and backends must give
the same bits.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass

import torch
import torch.distributed as dist

from mlafix.distributed import Reducer

# The allowed error of an element, relative to the sizes of what is rounded to bf16, each with an error of at most 2^-8 of
# its size: the result, and the partial states, times their weights. 1 % more is allowed, since the result that is rounded
# already has the errors of the partial states, and ABSOLUTE for what is computed in f32.
BOUND = 1.01 * 2.0**-8
ABSOLUTE = 1e-5


@dataclass
class Batch:
    """Requests of different lengths. The last tokens of each request are queries. Every rank makes the same batch.

    q is [tokens, heads, D]. k and v are [keys, D] for each request (one head, as in multi-query attention). starts has
    the first token of each request, then the end of the last request. padded is the number of tokens including padding.
    """

    q: torch.Tensor
    k: list[torch.Tensor]
    v: list[torch.Tensor]
    starts: list[int]
    padded: int


def make_batch(options: argparse.Namespace) -> Batch:
    """Makes a batch with a long request, requests with so few keys that most ranks have none of them, and padding."""
    random = torch.Generator().manual_seed(options.seed)
    lens = [options.context, 1, options.page, options.context // 2 + 3, 2 * options.page + 1]
    queries = [1, 1, 2, options.queries, 1]
    starts = [0]
    for count in queries:
        starts.append(starts[-1] + count)
    padded = starts[-1] + 3
    q = torch.randn(padded, options.heads, options.dim, generator=random)
    k, v = ([torch.randn(length, options.dim, generator=random) for length in lens] for _ in range(2))
    return Batch(q, k, v, starts, padded)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, visible: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Computes attention of q [t, H, D] over those of the keys [keys, D] that `visible` [t, keys] selects. Returns out
    [t, H, D] and lse [t, H] in base e."""
    scores = torch.einsum("thd,kd->thk", q, k) * q.shape[-1] ** -0.5
    scores = scores.masked_fill(~visible[:, None], -torch.inf)
    lse = torch.logsumexp(scores, -1)
    weights = torch.exp(scores - lse.nan_to_num(neginf=0)[..., None])
    return torch.einsum("thk,kd->thd", weights, v), lse


def positions(options: argparse.Namespace, length: int, rank: int, ranks: int) -> torch.Tensor:
    """Returns the positions of a request's keys that a rank has. A rank has one of every `ranks` pages."""
    keys = torch.arange(length)
    return keys[keys // options.page % ranks == rank]


def causal(batch: Batch, request: int, keys: torch.Tensor) -> torch.Tensor:
    """Returns which keys each query of a request sees. The last query sees all keys. Every other query sees one
    key fewer than the query after it."""
    count = batch.starts[request + 1] - batch.starts[request]
    last = len(batch.k[request]) - count + torch.arange(count)
    return keys[None] <= last[:, None]


def reference(options: argparse.Namespace, batch: Batch, ranks: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Computes attention over all keys in f64, and the allowed error of each element. Rows of padding are 0."""
    out, parts = (torch.zeros(batch.q.shape, dtype=torch.float64) for _ in range(2))
    for request, (k, v) in enumerate(zip(batch.k, batch.v)):
        rows = slice(batch.starts[request], batch.starts[request + 1])
        q, k, v = batch.q[rows].double(), k.double(), v.double()
        out[rows], lse = attention(q, k, v, causal(batch, request, torch.arange(len(k))))
        for rank in range(ranks):
            keys = positions(options, len(k), rank, ranks)
            part, part_lse = attention(q, k[keys], v[keys], causal(batch, request, keys))
            parts[rows] += torch.exp(part_lse - lse.nan_to_num(neginf=0))[..., None] * part.abs()
    return out, BOUND * (out.abs() + parts) + ABSOLUTE


def partial_state(options: argparse.Namespace, batch: Batch, rank: int, ranks: int) -> tuple[torch.Tensor, ...]:
    """Computes this rank's out (bf16), lse, seq_lens and query_start_loc. Rows of requests that have no keys on this
    rank are undefined in an engine; here they are NaN."""
    out = torch.full(batch.q.shape, torch.nan, dtype=torch.bfloat16)
    lse = torch.full(batch.q.shape[:2], torch.nan)
    lens = []
    for request, (k, v) in enumerate(zip(batch.k, batch.v)):
        rows = slice(batch.starts[request], batch.starts[request + 1])
        keys = positions(options, len(k), rank, ranks)
        lens.append(len(keys))
        if len(keys):
            # Early queries may see no key of this rank; their lse is then -inf.
            out[rows], lse[rows] = attention(batch.q[rows], k[keys], v[keys], causal(batch, request, keys))
    return out, lse, torch.tensor(lens, dtype=torch.int32), torch.tensor(batch.starts, dtype=torch.int32)


class PlainGroup:
    """A group object such as engines have. It has no process group of torch, and its only collective is an
    all-gather."""

    def __init__(self) -> None:
        self.rank_in_group, self.world_size = dist.get_rank(), dist.get_world_size()

    def all_gather(self, tensor: torch.Tensor, dim: int) -> torch.Tensor:
        parts = [torch.empty_like(tensor) for _ in range(self.world_size)]
        dist.all_gather(parts, tensor)
        return torch.cat(parts, dim)


def gathered(out: torch.Tensor, owned: tuple[slice, slice], shape: torch.Size) -> torch.Tensor:
    """Gathers the parts of the result that the ranks own. Returns the whole result on every rank."""
    pieces: list[object] = [None] * dist.get_world_size()
    dist.all_gather_object(pieces, (owned, out.float().cpu()))
    whole = torch.full(shape, torch.nan)
    for place, piece in pieces:  # type: ignore[misc]
        whole[place] = piece
    return whole


def run(options: argparse.Namespace, device: torch.device) -> bool:
    """Runs each cut with each backend. Returns true if all results are right and equal to each other."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    batch = make_batch(options)
    want, allowed = reference(options, batch, ranks)
    state = [tensor.to(device) for tensor in partial_state(options, batch, rank, ranks)]
    good, first = True, None
    ways = [(None, "auto"), (PlainGroup(), "auto")] if device.type == "cpu" else [(None, "auto"), (None, "nccl")]
    for group, backend in ways:
        for cut in ("heads", "tokens", "none"):
            reducer = Reducer(group, max_tokens=batch.padded, heads=options.heads, head_dim=options.dim, cut=cut, backend=backend, device=device)
            out, _ = reducer.reduce(*state)
            whole = gathered(out, reducer.owned(batch.padded), batch.q.shape)
            error = float(((whole - want).abs() / allowed).max())
            first = whole if first is None else first
            right = error <= 1 and torch.equal(first, whole)
            good &= right
            if rank == 0:
                print(f"{reducer.backend:9} cut={cut:7} {ranks} ranks: largest error {error:.2f} of the allowed one, {reducer.bytes_in(batch.padded)} bytes in, "
                      f"{'right' if right else 'WRONG'}")
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--context", type=int, default=4000, help="keys of the longest request")
    parser.add_argument("--queries", type=int, default=6, help="queries of one of the requests")
    parser.add_argument("--heads", type=int, default=12, help="heads of queries; a multiple of the ranks")
    parser.add_argument("--dim", type=int, default=64, help="head dim")
    parser.add_argument("--page", type=int, default=16, help="keys that a rank gets in a row")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    if "RANK" not in os.environ:
        sys.exit("expected a process for each rank, got one: run torchrun --nproc-per-node 4 examples/context_parallel/main.py")
    local, count = int(os.environ.get("LOCAL_RANK", 0)), int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    on_gpu = torch.cuda.device_count() >= count
    device = torch.device("cuda", local) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    good = run(options, device)
    dist.destroy_process_group()
    # A gloo thread may still have to release its last tensors. If the thread does so while the interpreter is being
    # finalised, the process aborts. So the process exits without finalising the interpreter.
    sys.stdout.flush()
    os._exit(0 if good else 1)


if __name__ == "__main__":
    main()
