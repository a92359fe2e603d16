"""SGLang's functions around attention. O is `[N, H, D]`, the lse `[N, H]`, base e; nothing need be contiguous here (N12)."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .. import ops
from .._launcher.arguments import check_integer, renames, wrong
from .._launcher.arrays import check_dtype, check_integers, empty, evenly_viewed, rows_of
from ..ops import Array
from ..ops.drop_ins import lens_of_rank_between, localize_indices, pack_heads, weigh_rank
from ..ops.metadata import check_rank
from ._groups import merged_over_ranks, of_ranks
from ._views import as_f32, in_rows, lses_of_ranks, of_segments, rows_of_rank, segments_reduced

_of_states = renames(out=("v_merged", "v_a"), out_lse=("s_merged", "s_a"), prefix="v_a", prefix_lse="s_a", suffix="v_b", suffix_lse="s_b")


@_of_states
def merge_state_v2(v_a: Array, s_a: Array, v_b: Array, s_b: Array, v_merged: Array | None = None,
                   s_merged: Array | None = None) -> tuple[Any, Any]:
    """Merges two states (`sgl_kernel.merge_state_v2`; `mlafix.ops.merge_attn_states`).

    Differences from SGLang: with both sides empty the row is 0, -inf (N3; NaN in SGLang). NaN and Inf with a weight of
    zero do not reach the result (N5; in SGLang they give NaN). An lse must be f32; SGLang converts bf16 and f64. An lse
    of +inf means empty, as in SGLang (N2).

    Args:
        v_a: `[N, H, D]` bf16, f16, f32.
        s_a: `[N, H] f32`.
        v_b: `[N, H, D]`.
        s_b: `[N, H] f32`.
        v_merged: the output, filled and returned itself; may be an input. Allocated if None.
        s_merged: the merged lse, likewise.

    Returns:
        `(v, s)`.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    return ops.merge_attn_states(v_a, s_a, v_b, s_b, out=v_merged, out_lse=s_merged, lse_layout="nh")


@_of_states
def merge_state_v1(v_a: Array, s_a: Array, v_b: Array, s_b: Array, v_merged: Array | None = None,
                   s_merged: Array | None = None) -> tuple[Any, Any]:
    """Merges two states, base 2 (`sgl_kernel.merge_state`, which is FlashInfer's; `mlafix.ops.merge_attn_states`).

    Differences from SGLang: with both sides empty the row is 0, -inf, and an lse of +inf means empty (N2, N3; NaN in
    SGLang). NaN and Inf with a weight of zero do not reach the result (N5; in SGLang they give NaN). An lse must be
    f32.

    Args:
        v_a, s_a, v_b, s_b, v_merged, s_merged: as of `merge_state_v2`; the lses have base 2.

    Returns:
        `(v, s)`.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    return ops.merge_attn_states(v_a, s_a, v_b, s_b, out=v_merged, out_lse=s_merged, lse_layout="nh", base="2")


@renames(out=("output", "prefix_output"), out_lse=("output_lse", "prefix_lse"), prefix="prefix_output", suffix="suffix_output")
def merge_state(prefix_output: Array, prefix_lse: Array, suffix_output: Array, suffix_lse: Array,
                output: Array | None = None, output_lse: Array | None = None) -> tuple[Any, Any]:
    """Merges two states (`sglang.srt.layers.attention.merge_state`): `merge_state_v2` under its other name.

    Args:
        prefix_output: `[N, H, D]` bf16, f16, f32.
        prefix_lse: `[N, H] f32`.
        suffix_output: `[N, H, D]`.
        suffix_lse: `[N, H] f32`.
        output: filled and returned itself; may be an input. Allocated if None.
        output_lse: likewise.

    Returns:
        `(output, output_lse)`.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    return ops.merge_attn_states(prefix_output, prefix_lse, suffix_output, suffix_lse, out=output, out_lse=output_lse, lse_layout="nh")


@renames(cu_seqlens="cum_seq_lens")
def fixup_zero_kv_rows(out: Array, lse: Array, kv_lens: Array, cum_seq_lens: Array, max_seq_len: int) -> None:
    """Blanks the rows of sequences without KV, kv_len <= 0, to 0 and -inf (N1, N3; `mlafix.ops.fixup_zero_kv_rows`).

    Differences from SGLang: the cost grows with the number of blanked rows, not with max_seq_len x batch; `max_seq_len`
    is not used. f32 and fp8 outputs and rows that are not contiguous are legal, too (N12). No offset leads out of
    bounds.

    Args:
        out: `[N, H, Dv]` bf16, f16, f32, f8e4m3fn.
        lse: `[N, H] f32`.
        kv_lens: `[B] i32`.
        cum_seq_lens: `[B + 1] i32`.
        max_seq_len: the maximum number of query tokens per sequence; ignored.

    Raises:
        ArgumentError: an argument does not fit, such as offsets that are not one more than the lengths; nothing was
            launched then.
    """
    ops.fixup_zero_kv_rows(out, lse, kv_lens, cum_seq_lens, lse_layout="nh")


# -- Attention residuals: sglang.kernels.ops.attention.attn_res ----------------------------------------------------------


@renames(prefix="prefix_sum", score_weight="cw", out_weight="ow", epsilon="eps", out_epsilon="eps", snapshot="bank")
def attn_res_fused_tma(prefix_sum: Array, bank: Array, cw: Array, ow: Array, out: Array, nvb: int, eps: float, *,
                       write_prefix: bool = False) -> None:
    """Mixes a token's rows of former layers by their scores, then normalises (`mlafix.ops.mix_depth`).

    Differences from SGLang: any GPU and any D are legal (SM100 and 7168 in SGLang), and any number of rows (1 to 8 in
    SGLang).

    Args:
        prefix_sum: `[T, D]` bf16, f16, f32.
        bank: `[T, NB, D]`; its first `nvb` rows are read.
        cw: `[D]` bf16, f16 or f32: the product of the score's norm weight and its projection.
        ow: `[D]` likewise: the weight of the output's norm.
        out: `[T, D]`; written.
        nvb: rows that count, 0 to NB.
        eps: of both norms.
        write_prefix: if True, the prefix is copied to `bank[:, nvb]`, bit for bit.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    rows: Any = bank
    check_integer("nvb", nvb)
    room = rows_of(rows, "bank", ("T", "NB", "D"))[1] - (1 if write_prefix else 0)
    if not 0 <= nvb <= room:
        raise wrong("nvb", f"0 to {room}, the rows of bank{' without the one for the prefix' if write_prefix else ''}", nvb)
    ops.mix_depth(prefix_sum, rows[:, :nvb], cw, out_weight=ow, epsilon=eps, snapshot=rows[:, nvb] if write_prefix else None, out=out)


# -- Decode context parallelism: sglang.srt.layers.dcp.comm ------------------------------------------------------------

_COMM_BACKENDS = ("a2a", "fi_a2a", "fi_a2a_fused", "symm_a2a")


@of_ranks
def cp_lse_ag_out_rs_mha(cp_attn_out: Array, cp_attn_lse: Array, cp_group: Any, return_lse: bool = False) -> Any:
    """Merges the partial states of a group's ranks, base e; each rank receives H / N heads (`mlafix.distributed.Reducer`).

    One exchange, which moves each row once, replaces an all-gather and an all-reduce. The inputs are not modified. NaN
    in a live lse or payload propagates (N6; in SGLang it becomes 0).

    Args:
        cp_attn_out: `[B, H, D]` bf16, f16, f32, a torch tensor; copied first if its last dim is strided.
        cp_attn_lse: `[B, H] f32`, any strides; bf16, f16 and f64 are copied to f32 first.
        cp_group: SGLang's `GroupCoordinator`, or what `mlafix.distributed.Reducer` takes as a group.
        return_lse: if True, the merged lse is returned, too.

    Returns:
        `out [B, H / N, D]`, or `(out, lse [B, H / N])`. A group of one rank returns the inputs themselves.

    Raises:
        ArgumentError: an argument does not fit; nothing was sent then. With a gloo group, every rank raises it, also if
            shapes or dtypes differ between ranks.
        RankError: with a gloo group, a rank did not call in time.
    """
    return merged_over_ranks(cp_attn_out, cp_attn_lse, cp_group, cut="heads", base="e", return_lse=return_lse)


@of_ranks
def cp_lse_ag_out_rs_mla(cp_attn_out: Array, cp_attn_lse: Array, cp_group: Any, ctx: Any = None,
                         is_lse_base_on_e: bool = False) -> Any:
    """Like `cp_lse_ag_out_rs_mha`, but in base 2 by default, and with the heads first in the result.

    Rows travel in their own dtype, in SGLang as f32. Sums are f32 in both.

    Args:
        cp_attn_out: `[B, H, D]`, as of `cp_lse_ag_out_rs_mha`.
        cp_attn_lse: `[B, H] f32`, likewise.
        cp_group: likewise.
        ctx: ignored.
        is_lse_base_on_e: base e, else base 2.

    Returns:
        `out [H / N, B, D]`, contiguous, as in SGLang, whose callers transpose it. A group of one rank returns the input
        itself, `[B, H, D]`, also as in SGLang.

    Raises:
        ArgumentError: as of `cp_lse_ag_out_rs_mha`.
        RankError: likewise.
    """
    base = "e" if is_lse_base_on_e else "2"
    return merged_over_ranks(cp_attn_out, cp_attn_lse, cp_group, cut="heads", base=base, return_lse=False, heads_first=True)


@of_ranks
def dcp_a2a_lse_reduce(cp_attn_out: Array, cp_attn_lse: Array, cp_group: Any, is_lse_base_on_e: bool = True,
                       cuda_graph_buffers: dict[str, Any] | None = None, comm_backend: str = "a2a") -> Any:
    """Like `cp_lse_ag_out_rs_mha` without the lse, under the name of SGLang's function with one exchange: `out [B, H / N, D]`.

    `cuda_graph_buffers` is not used: in capture the buffers are part of the graph's memory. `comm_backend` is "a2a",
    "fi_a2a", "fi_a2a_fused" or "symm_a2a", which give the same result: rows always travel over the group, and
    `init_fi_a2a_workspace` is not needed. Any other name has the same effect, with a warning.
    """
    if comm_backend not in _COMM_BACKENDS:
        known = ", ".join(map(repr, _COMM_BACKENDS))
        warnings.warn(f'argument "comm_backend": expected one of {known}, got {comm_backend!r}: rows travel over the group', stacklevel=2)
    base = "e" if is_lse_base_on_e else "2"
    return merged_over_ranks(cp_attn_out, cp_attn_lse, cp_group, cut="heads", base=base, return_lse=False)


# -- Parts of the exchange: sglang.kernels.ops.attention.dcp_kernels ---------------------------------------------------


@renames(rows="out", rank="cp_rank", out_lse="lses")
def correct_attn_out(out: Array, lses: Array, cp_rank: int, ctx: Any, new_output: Array | None = None,
                     is_lse_base_on_e: bool = False) -> tuple[Any, Any]:
    """Multiplies a rank's output by its weight among all ranks, into another array. The sum of the ranks' results is the merged output.

    Differences from SGLang: any head dim and number of ranks; NaN in an lse propagates (N6; in SGLang it counts as
    empty); the lse is contiguous.

    Args:
        out: `[B, H, D]` or `[B, 1, H, D]`, bf16, f16, f32; only read.
        lses: `[N, B, H] f32`, of all ranks; a dim of 1 may follow N or H. bf16, f16 and f64 are copied to f32 first.
        cp_rank: this rank.
        ctx: ignored.
        new_output: `[H, B, D]`, bf16, f16 or f32; written. Allocated in f32 if None.
        is_lse_base_on_e: base e, else base 2.

    Returns:
        `(new_output, lse)`, the merged lse `[B, H] f32`, a new array.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    rows = rows_of_rank(out)
    batch, heads, dim = rows_of(rows, "out", ("B", "H", "D"))
    shares = lses_of_ranks(lses, cp_rank, rows)
    made: Any = empty(rows, (heads, batch, dim), "f32") if new_output is None else new_output
    rows_of(made, "new_output", ("H", "B", "D"))
    check_dtype(made, "new_output")
    lse = empty(shares, tuple(shares.shape[1:]), "f32")
    weigh_rank(made.swapaxes(0, 1), lse, in_rows(rows), shares, cp_rank, "e" if is_lse_base_on_e else "2")
    return made, lse


@renames(partial="recv_output", partial_lse="recv_lse", out="recv_output", out_lse="recv_output")
def dcp_lse_combine_triton(recv_output: Array, recv_lse: Array, is_lse_base_on_e: bool = True, return_lse: bool = False) -> tuple[Any, Any]:
    """Merges the states that the ranks have sent to this one (`mlafix.ops.combine_split_kv`).

    Differences from SGLang: NaN in an lse propagates (N6; in SGLang it counts as empty); a payload without weight is
    not multiplied (N5; in SGLang its NaN spreads); a strided lse is read and never written.

    Args:
        recv_output: `[N, B, H, D]`, bf16, f16, f32; the last dim is contiguous.
        recv_lse: `[N, B, H] f32`, any strides; bf16, f16 and f64 are copied to f32 first.
        is_lse_base_on_e: base e, else base 2.
        return_lse: if True, the merged lse is computed.

    Returns:
        `(out, lse)`: `[B, H, D]` as `recv_output`, and `[B, H] f32` or None, new arrays.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    rows_of(recv_output, "recv_output", ("N", "B", "H", "D"))
    rows_of(recv_lse, "recv_lse", ("N", "B", "H"))
    partial: Any = recv_output
    base: ops.Base = "e" if is_lse_base_on_e else "2"
    out, lse = ops.combine_split_kv(partial[:, None], as_f32(recv_lse)[:, None], return_lse=return_lse, base=base)
    return out[0], None if lse is None else lse[0]


def dcp_pack_a2a_send(cp_attn_out: Array, cp_attn_lse: Array, dst_o: Array, dst_lse: Array) -> None:
    """Packs the heads that each rank receives for an exchange, in one launch: rows and lses bit for bit.

    `dst_o` and `dst_lse` may be two views of one buffer whose rows hold D elements and the lse behind them, and may
    have room for more than B tokens, like the buffers of CUDA graphs. The part behind the B tokens is not written.

    Args:
        cp_attn_out: `[B, N * H, D]` of any supported dtype of 1, 2, 4 or 8 bytes.
        cp_attn_lse: `[B, N * H] f32`, any strides.
        dst_o: `[N, B or more, H, D]`; its first B tokens are written; the last dim is contiguous.
        dst_lse: `[N, B or more, H] f32`, any strides; likewise.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    rows_of(cp_attn_out, "cp_attn_out", ("B", "N * H", "D"))
    rows_of(dst_o, "dst_o", ("N", "B or more", "H", "D"))
    rows_of(dst_lse, "dst_lse", ("N", "B or more", "H"))
    _packed(dst_o, dst_lse, cp_attn_out, cp_attn_lse)


# -- Lengths and places on a rank: sglang.srt.layers.dcp.layout ---------------------------------------------------------


@renames(out="lens", starts="start", interleave="interleave_size", rank="dcp_rank", ranks="dcp_size")
def get_dcp_lens(lens: Array, dcp_size: int, dcp_rank: int, start: Array | None = None, interleave_size: int = 1) -> Any:
    """Counts the tokens of each request whose KV is on a rank, in one launch: runs of `interleave_size` tokens go round
    the ranks.

    Difference from SGLang: a length or a start below 0 counts as 0.

    Args:
        lens: `[...]` i32 or i64, contiguous: tokens of each request.
        dcp_size: ranks of the group; 1: `lens` itself is the result.
        dcp_rank: this rank.
        start: as `lens`: the position of each request's first token; None: 0.
        interleave_size: tokens of a run, at least 1.

    Returns:
        As `lens`, a new array.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    check_rank(dcp_rank, dcp_size)
    check_integer("interleave_size", interleave_size, 1)
    if dcp_size == 1:
        return lens
    out, flat = _flat_like(lens, "lens")
    starts = None if start is None else _flat(start, "start")
    lens_of_rank_between(out, flat, starts, dcp_rank, dcp_size, interleave_size)
    return out.reshape(lens.shape)


@renames(out="indices", rank="dcp_rank", ranks="dcp_size", interleave="interleave_size")
def localize_dcp_indices(indices: Array, dcp_size: int, dcp_rank: int, interleave_size: int = 1) -> Any:
    """Converts places of tokens in the context of all ranks to places on one rank, in one launch; -1 for tokens of other ranks.

    Args:
        indices: `[...]` i32 or i64, contiguous. An index below 0 names no token and becomes -1.
        dcp_size: ranks of the group; 1: `indices` itself is the result.
        dcp_rank: this rank.
        interleave_size: tokens of a run, at least 1.

    Returns:
        As `indices`, a new array.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    check_rank(dcp_rank, dcp_size)
    check_integer("interleave_size", interleave_size, 1)
    if dcp_size == 1:
        return indices
    out, flat = _flat_like(indices, "indices")
    localize_indices(out, flat, dcp_rank, dcp_size, interleave_size)
    return out.reshape(indices.shape)


def _flat(array: Any, name: str) -> Any:
    """Returns a view of integers of any shape as `[n]`."""
    shape = getattr(array, "shape", None)
    if shape is None:
        raise wrong(name, "an array", type(array).__qualname__)
    check_integers(array, name)
    return array if len(shape) == 1 else evenly_viewed(array, name, (math.prod(shape),), "evenly spaced elements")


def _flat_like(array: Any, name: str) -> tuple[Any, Any]:
    """Returns a new array `[n]` with the dtype and device of `array`, and a view of `array` as `[n]`."""
    flat = _flat(array, name)
    return empty(flat, (flat.shape[0],)), flat


@of_segments
def dcp_mla_reduce(segm_output: Array, segm_max: Array, segm_expsum: Array, seq_lens: Array, tile_size: int, out_dtype: Any) -> tuple[Any, Any]:
    """Reduces the segments of AITER's decode, which are not normalised, to an output and an lse in base 2 (`mlafix.ops.combine_split_kv`).

    Differences from SGLang: NaN in a segment that counts propagates into its rows' lse (N6); any head dim and number of
    segments; any strides, where the last dim of `segm_output` is contiguous.

    Args:
        segm_output: `[T, H, S, D]` f32, bf16, f16: sums of weights times values. Segments that do not count are not read.
        segm_max: `[T, H, S] f32`: the maxima of their scores, in base 2.
        segm_expsum: `[T, H, S] f32`: the sums of their weights.
        seq_lens: `[T]` i32 or i64: keys of each token on this rank; 0 or less gives 0 and -inf.
        tile_size: keys of a tile.
        out_dtype: bf16, f16 or f32.

    Returns:
        `(out, lse)`: `[T, H, D]` and `[T, H] f32`, new arrays.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    return segments_reduced(segm_output, segm_max, segm_expsum, seq_lens, tile_size, out_dtype=out_dtype, base="2")


_packed = renames(rows="dst_o", lses="dst_lse", out="cp_attn_out", lse="cp_attn_lse")(pack_heads)
