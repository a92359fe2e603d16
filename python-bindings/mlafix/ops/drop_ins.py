"""Operations that only drop-ins (`mlafix.compat`) need. Their kernels compile when they are first used."""

from __future__ import annotations

from typing import Any

from .. import library
from .._launcher.arguments import wrong
from .._launcher.arrays import rows_of
from ._families import FAMILIES, PLAIN, in_base
from ._launch import launch, operation
from ._types import Array, Base, Index, Stream


@operation(writes=("out", "out_lse"))
def weight_of_rank(out: Array, out_lse: Array, lses: Array, rank: int, base: Base, *, stream: Stream = None) -> None:
    """Multiplies a rank's rows `[n, H, D]` by the rank's weight among all ranks, whose lses are `[r, n, H]`. Writes the merged lse
    `[n, H]`."""
    launch(in_base("weigh_rank", base), (out, out_lse, out, lses, rank), stream)


@operation(writes=("out", "out_lse"))
def weigh_rank(out: Array, out_lse: Array, rows: Array, lses: Array, rank: int, base: Base, *, stream: Stream = None) -> None:
    """Does what `weight_of_rank` does, but reads the rows from another array, whose dtype or layout may differ from
    that of `out`."""
    launch(in_base("weigh_rank", base), (out, out_lse, rows, lses, rank), stream)


@operation(writes=("rows", "lses"))
def pack_heads(rows: Array, lses: Array, out: Array, lse: Array, *, stream: Stream = None) -> None:
    """Packs the state `out` `[n, H, D]`, `lse` `[n, H]` into a block for each of r ranks, with that rank's heads. The
    blocks are `rows` `[r, n or more, H / r, D]` and `lses` `[r, n or more, H / r]`. Writes only the first n tokens of
    each block."""
    # Slice the arrays inside of torch's operator. A slice that is passed to the operator as an output may be rebuilt by
    # torch.compile at a wrong offset (docs/Limits.md).
    tokens = rows_of(out, "out", ("n", "H", "D"))[0]
    blocks: Any = rows
    sums: Any = lses
    launch(library.kernel("pack_heads"), (blocks[:, :tokens], sums[:, :tokens], out, lse), stream)


@operation(writes=("lse",))
def mask_rows_without_keys(lse: Array, seq_lens: Array, query_start_loc: Array, *, stream: Stream = None) -> None:
    """Sets the lses `[n, H]` of padding and of tokens whose request has no keys to -inf."""
    bounds = query_start_loc.shape[0]
    # The number of steps of the binary search for the request of a token. It is 0 if the size is a symbol: only tensors
    # without memory have such a size, and the kernel does not run on them.
    halvings = bounds.bit_length() if isinstance(bounds, int) else 0
    launch(library.kernel("mask_rows_without_keys"), (lse, seq_lens, query_start_loc, halvings), stream)


@operation(writes=("out", "lse"))
def fold_state(out: Array, lse: Array, block: Array, block_lse: Array, index: Index = None, *, stream: Stream = None) -> None:
    """Merges a block into an f32 accumulator, or into the part of the accumulator that `index` selects.

    The block is `[b, n, H, D]` or `[n, H, D]` with lses `[b, H, n]` or `[H, n]`. The lses of the accumulator are `[b,
    n, H, 1]`.
    """
    # Index inside of torch's operator, for the reason given in `pack_heads`.
    arrays: list[Any] = [out, lse, block, block_lse]
    if index is not None:
        try:
            arrays[:2] = arrays[0][index], arrays[1][index]
        except IndexError as error:
            raise wrong("index", f"an index of arrays of {len(block.shape)} dims", error) from None
    if len(block.shape) == 3:
        arrays = [array[None] for array in arrays]
    rows, sums, more, lses = arrays
    launch(library.kernel("fold_state"), (rows, sums[..., 0], more, lses.swapaxes(1, 2)), stream)


@operation(writes=("out",))
def merge_stats_blocks(out: Array, rows: Array, stats: Array, scale: float, *, stream: Stream = None) -> None:
    """Merges states `[r, n, H, D]` that have softmax statistics `[r, n, H, 2]`, (max, sum), instead of lses, and
    multiplies the result by `scale`."""
    launch(library.kernel("merge_stats_blocks"), (out, rows, stats, scale), stream)


@operation(writes=("out",))
def lens_of_rank_between(out: Array, lens: Array, starts: Array | None, rank: int, ranks: int, interleave: int, *, stream: Stream = None) -> None:
    """Counts the tokens of contexts that lie on a rank. In context i, counts among the lens[i] tokens that begin at
    place starts[i], or at place 0 without `starts`. All arrays are `[n]`."""
    launch(library.kernel("lens_of_rank_between"), (out, lens, starts, rank, ranks, interleave), stream)


@operation(writes=("out",))
def localize_indices(out: Array, indices: Array, rank: int, ranks: int, interleave: int, *, stream: Stream = None) -> None:
    """Converts places `[n]` in the context of all ranks to places on one rank. A place on another rank becomes -1."""
    launch(library.kernel("localize_indices"), (out, indices, rank, ranks, interleave), stream)


@operation(writes=("out",))
def requests_of_tokens(out: Array, query_start_loc: Array, mapped: int, count: int, *, stream: Stream = None) -> None:
    """Writes the request of each of the first `count` tokens to the front of `out`; 0 for tokens at or past `mapped`.
    `query_start_loc` is `[r + 1]`."""
    bounds = query_start_loc.shape[0]
    halvings = bounds.bit_length() if isinstance(bounds, int) else 0
    places: Any = out
    launch(library.kernel("requests_of_tokens"), (places[:count], query_start_loc, mapped, halvings), stream)


@operation(writes=("out", "lse"))
def blank_rows(out: Array, lse: Array, first: int, end: int, *, stream: Stream = None) -> None:
    """Makes the rows `first` to `end` of `[n, H, D]` and their lses in `[H, n]` empty. Slices inside of torch's
    operator, for the reason given in `pack_heads`."""
    rows: Any = out
    lses: Any = lse
    launch(FAMILIES["fill_pad_rows"][PLAIN], (rows[first:end], lses[:, first:end], 0, None), stream)


@operation(writes=("out", "lse"))
def merge_into_rows(out: Array, lse: Array, suffix: Array | None, suffix_lse: Array, first: int, end: int, merged: int, *,
                    stream: Stream = None) -> None:
    """Merges a state into the first `merged` of the rows `first` to `end`, and copies the state to the other rows. Rows
    are `[n, H, D]`, lses `[H, n]`.

    If `suffix` is None, the rows already hold the payload of the state, and only lses are copied. `merged` must then be
    0. Slices inside of torch's operator, for the reason given in `pack_heads`.
    """
    arrays: list[Any] = [out, lse]
    rows, lses = arrays[0][first:end], arrays[1][:, first:end]
    launch(FAMILIES["merge_attn_states_copy"][PLAIN], (rows, lses, rows, lses, rows if suffix is None else suffix, suffix_lse, merged), stream)
