"""SGLang's functions around attention. O is `[N, H, D]`, the lse `[N, H]`, base e; nothing need be contiguous here (N12)."""

from __future__ import annotations

from typing import Any

from .. import ops
from .._arguments import renames, wrong
from ..ops import Array
from ._groups import merged_over_ranks, of_ranks


@renames(out="v_merged", out_lse="s_merged", prefix="v_a", prefix_lse="s_a", suffix="v_b", suffix_lse="s_b")
def merge_state_v2(v_a: Array, s_a: Array, v_b: Array, s_b: Array, v_merged: Array | None = None,
                   s_merged: Array | None = None) -> tuple[Any, Any]:
    """Merges two states (`sgl_kernel.merge_state_v2`; `mlafix.ops.merge_attn_states`).

    Differences from SGLang: with both sides empty the row is 0, -inf (N3; there NaN); NaN and Inf behind a weight of zero are
    selected away (N5; there multiplied: NaN); an lse must be f32 already (there bf16 and f64 are converted). An lse of +inf is
    empty here and there (N2).

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


def merge_state_v1(v_a: Array, s_a: Array, v_b: Array, s_b: Array, v_merged: Array | None = None,
                   s_merged: Array | None = None) -> tuple[Any, Any]:
    """Merges two states, base 2 (`sgl_kernel.merge_state`, which is FlashInfer's; `mlafix.ops.merge_attn_states`).

    Differences from SGLang: with both sides empty the row is 0, -inf, and an lse of +inf is empty (N2, N3; there NaN); NaN and
    Inf behind a weight of zero are selected away (N5; there multiplied: NaN); an lse must be f32 already.

    Args:
        v_a, s_a, v_b, s_b, v_merged, s_merged: as of `merge_state_v2`; the lses have base 2.

    Returns:
        `(v, s)`.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    return ops.merge_attn_states(v_a, s_a, v_b, s_b, out=v_merged, out_lse=s_merged, lse_layout="nh", base="2")


@renames(out="output", out_lse="output_lse", prefix="prefix_output", suffix="suffix_output")
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

    Differences from SGLang: the cost follows the rows blanked, not max_seq_len x batch, and `max_seq_len` is not used; f32
    and fp8 outputs are legal too, and so are rows that are not contiguous (N12); no offset leads out of bounds.

    Args:
        out: `[N, H, Dv]` bf16, f16, f32, f8e4m3fn.
        lse: `[N, H] f32`.
        kv_lens: `[B] i32`.
        cum_seq_lens: `[B + 1] i32`.
        max_seq_len: the most query tokens of one sequence; ignored.

    Raises:
        ArgumentError: an argument does not fit, such as offsets that are not one more than the lengths; nothing was
            launched then.
    """
    ops.fixup_zero_kv_rows(out, lse, kv_lens, cum_seq_lens, lse_layout="nh")


# -- Decode context parallelism: sglang.srt.layers.dcp.comm ------------------------------------------------------------


@of_ranks
def cp_lse_ag_out_rs_mha(cp_attn_out: Array, cp_attn_lse: Array, cp_group: Any, return_lse: bool = False) -> Any:
    """Merges the partial states of a group's ranks, base e; each rank receives H / N heads (`mlafix.distributed.Reducer`).

    One exchange that moves each row once, in place of an all-gather and an all-reduce; both inputs stay as they are. NaN in a
    live lse or payload propagates (N6; there it becomes 0).

    Args:
        cp_attn_out: `[B, H, D]` bf16, f16, f32, a torch tensor; copied first where its last dim is strided.
        cp_attn_lse: `[B, H] f32`, any strides; bf16, f16 and f64 are copied to f32 first.
        cp_group: SGLang's `GroupCoordinator`, or what `mlafix.distributed.Reducer` takes as a group.
        return_lse: whether the merged lse is returned, too.

    Returns:
        `out [B, H / N, D]`, or `(out, lse [B, H / N])`. A group of one rank returns the inputs themselves.

    Raises:
        ArgumentError: an argument does not fit; nothing was sent then. A gloo group: on every rank alike, also where shapes or
            dtypes differ between ranks.
        RankError: a gloo group: a rank did not come.
    """
    return merged_over_ranks(cp_attn_out, cp_attn_lse, cp_group, cut="heads", base="e", return_lse=return_lse)


@of_ranks
def cp_lse_ag_out_rs_mla(cp_attn_out: Array, cp_attn_lse: Array, cp_group: Any, ctx: Any = None,
                         is_lse_base_on_e: bool = False) -> Any:
    """As `cp_lse_ag_out_rs_mha`, base 2 unless said otherwise, and with the heads first in the result.

    Rows travel in their own dtype, not as f32, and sums are f32 here, too.

    Args:
        cp_attn_out: `[B, H, D]`, as of `cp_lse_ag_out_rs_mha`.
        cp_attn_lse: `[B, H] f32`, likewise.
        cp_group: likewise.
        ctx: ignored.
        is_lse_base_on_e: base e, else base 2.

    Returns:
        `out [H / N, B, D]`, contiguous, as SGLang's, whose callers transpose it. A group of one rank returns the input itself,
        `[B, H, D]`, as there.

    Raises:
        ArgumentError: as of `cp_lse_ag_out_rs_mha`.
        RankError: likewise.
    """
    base = "e" if is_lse_base_on_e else "2"
    return merged_over_ranks(cp_attn_out, cp_attn_lse, cp_group, cut="heads", base=base, return_lse=False, heads_first=True)


@of_ranks
def dcp_a2a_lse_reduce(cp_attn_out: Array, cp_attn_lse: Array, cp_group: Any, is_lse_base_on_e: bool = True,
                       cuda_graph_buffers: dict[str, Any] | None = None, comm_backend: str = "a2a") -> Any:
    """As `cp_lse_ag_out_rs_mha` without the lse, under the name of SGLang's function with one exchange: `out [B, H / N, D]`.

    `cuda_graph_buffers` is not used: in capture the buffers are part of the graph's memory. `comm_backend` is "a2a" or "fi_a2a",
    which give the same result; here rows travel over the group in either case, and `init_fi_a2a_workspace` is not needed.
    """
    if comm_backend not in ("a2a", "fi_a2a"):
        raise wrong("comm_backend", "'a2a' or 'fi_a2a'", repr(comm_backend))
    base = "e" if is_lse_base_on_e else "2"
    return merged_over_ranks(cp_attn_out, cp_attn_lse, cp_group, cut="heads", base=base, return_lse=False)
