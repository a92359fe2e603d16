"""Operations that drop-ins alone need (`mlafix.compat`). Their kernels compile when first used."""

from __future__ import annotations

from typing import Any

from .. import library
from ._launch import launch_kernel, operation
from ._types import Array, Base, Stream

_weights: dict[tuple[str, Base], Any] = {}


def _in_base(name: str, base: Base) -> Any:
    """A kernel for lses in this base."""
    if (name, base) not in _weights:
        kernel = library.kernel(name)
        _weights[name, base] = kernel.specialize(B=base) if base != "e" else kernel
    return _weights[name, base]


@operation(writes=("out", "out_lse"))
def weight_of_rank(out: Array, out_lse: Array, lses: Array, rank: int, base: Base, *, stream: Stream = None) -> None:
    """Gives a rank's rows `[n, H, D]` their weight among all ranks, whose lses are `[r, n, H]`, and writes the merged lse `[n, H]`."""
    launch_kernel(_in_base("weigh_rank", base), (out, out_lse, out, lses, rank), stream)


@operation(writes=("out", "out_lse"))
def weigh_rank(out: Array, out_lse: Array, rows: Array, lses: Array, rank: int, base: Base, *, stream: Stream = None) -> None:
    """As `weight_of_rank`, into an array of another dtype or layout."""
    launch_kernel(_in_base("weigh_rank", base), (out, out_lse, rows, lses, rank), stream)


@operation(writes=("rows", "lses"))
def pack_heads(rows: Array, lses: Array, out: Array, lse: Array, *, stream: Stream = None) -> None:
    """The heads of `[n, H, D]` and `[n, H]` that each of r ranks takes, as blocks `[r, n, H / r, D]` and `[r, n, H / r]`."""
    launch_kernel(library.kernel("pack_heads"), (rows, lses, out, lse), stream)


@operation(writes=("lse",))
def mask_rows_without_keys(lse: Array, seq_lens: Array, query_start_loc: Array, *, stream: Stream = None) -> None:
    """-inf for the lses `[n, H]` of tokens whose request has no keys, and of padding."""
    bounds = query_start_loc.shape[0]
    # Halvings that find one of so many requests. Without memory nothing is searched, and the count may be a symbol.
    halvings = bounds.bit_length() if isinstance(bounds, int) else 0
    launch_kernel(library.kernel("mask_rows_without_keys"), (lse, seq_lens, query_start_loc, halvings), stream)


@operation(writes=("out", "lse"))
def fold_state(out: Array, lse: Array, block: Array, block_lse: Array, *, stream: Stream = None) -> None:
    """Merges a block `[b, n, H, D]` with its lses `[b, n, H]` into an accumulator of f32."""
    launch_kernel(library.kernel("fold_state"), (out, lse, block, block_lse), stream)


@operation(writes=("out",))
def merge_stats_blocks(out: Array, rows: Array, stats: Array, scale: float, *, stream: Stream = None) -> None:
    """`scale` times the merge of states `[r, n, H, D]` with statistics `[r, n, H, 2]`, (max, sum), in place of lses."""
    launch_kernel(library.kernel("merge_stats_blocks"), (out, rows, stats, scale), stream)


@operation(writes=("out",))
def lens_of_rank_between(out: Array, lens: Array, starts: Array | None, rank: int, ranks: int, interleave: int, *, stream: Stream = None) -> None:
    """How many of `lens` tokens from `starts` on lie on a rank, all `[n]`."""
    launch_kernel(library.kernel("lens_of_rank_between"), (out, lens, starts, rank, ranks, interleave), stream)


@operation(writes=("out",))
def localize_indices(out: Array, indices: Array, rank: int, ranks: int, interleave: int, *, stream: Stream = None) -> None:
    """The places `[n]` on a rank, or -1, of what has these places in the context of all ranks."""
    launch_kernel(library.kernel("localize_indices"), (out, indices, rank, ranks, interleave), stream)


@operation(writes=("out",))
def requests_of_tokens(out: Array, query_start_loc: Array, mapped: int, *, stream: Stream = None) -> None:
    """The requests of tokens `[n]`, 0 at or past `mapped`; offsets `[r + 1]`."""
    bounds = query_start_loc.shape[0]
    halvings = bounds.bit_length() if isinstance(bounds, int) else 0
    launch_kernel(library.kernel("requests_of_tokens"), (out, query_start_loc, mapped, halvings), stream)
