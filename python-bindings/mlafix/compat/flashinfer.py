"""FlashInfer's cascade functions. V is `[N, H, D]`, S `[N, H] f32` in **base 2**; nothing need be contiguous here (N12)."""

from __future__ import annotations

import math
from typing import Any

from .. import ops
from .._launcher.arguments import renames, wrong
from ..errors import ArgumentError
from ..ops import Array


@renames(prefix="v_a", prefix_lse="s_a", suffix="v_b", suffix_lse="s_b", out="v_a", out_lse="v_a")
def merge_state(v_a: Array, s_a: Array, v_b: Array, s_b: Array) -> tuple[Any, Any]:
    """Merges two states, base 2 (`flashinfer.merge_state`; `mlafix.ops.merge_attn_states`).

    Differences from FlashInfer: a state of +inf is empty (N2); in FlashInfer the lse becomes NaN. A state without
    weight is never multiplied, so its NaN stays out (N5). S must be f32: nothing is converted implicitly. The number of
    heads and the head dim are arbitrary; in FlashInfer 128 x 128 fails.

    Args:
        v_a: `[N, H, D]` bf16, f16, f32.
        s_a: `[N, H] f32`.
        v_b: `[N, H, D]`.
        s_b: `[N, H] f32`.

    Returns:
        `(V, S)`, new arrays.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    return ops.merge_attn_states(v_a, s_a, v_b, s_b, lse_layout="nh", base="2")


def merge_state_in_place(v: Array, s: Array, v_other: Array, s_other: Array, mask: Array | None = None) -> None:
    """Merges another state into `v`, `s`, base 2 (`flashinfer.merge_state_in_place`; `mlafix.ops.merge_state_in_place`).

    Differences from FlashInfer: as for `merge_state`.

    Args:
        v: `[N, H, D]` bf16, f16, f32; updated.
        s: `[N, H] f32`; updated.
        v_other: `[N, H, D]`.
        s_other: `[N, H] f32`.
        mask: `[N]` bool or u8: nonzero merges the token's rows. None merges all.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    ops.merge_state_in_place(v, s, v_other, s_other, mask, base="2")


@renames(out="v", out_lse="v")
def merge_states(v: Array, s: Array) -> tuple[Any, Any]:
    """Merges K states per row, base 2 (`flashinfer.merge_states`; `mlafix.ops.merge_states`). K = 0 gives identities.

    Differences from FlashInfer: as for `merge_state`.

    Args:
        v: `[N, K, H, D]` bf16, f16, f32.
        s: `[N, K, H] f32`.

    Returns:
        `(V, S)`: `[N, H, D]` and `[N, H]`, new arrays.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    return ops.merge_states(v, s, base="2")


@renames(out="v", out_lse="v")
def variable_length_merge_states(v: Array, s: Array, indptr: Array) -> tuple[Any, Any]:
    """Merges runs of states, base 2 (`flashinfer.triton.cascade.variable_length_merge_states`).

    Differences from FlashInfer: those of `merge_state`. An empty run's S is -inf (N1); in FlashInfer's Triton kernel it
    is -50000, also in 0.7.4. `indptr` must be i32.

    Args:
        v: `[nnz, H, D]` bf16, f16, f32.
        s: `[nnz, H] f32`.
        indptr: `[N + 1] i32`: row i merges the states indptr[i] … indptr[i + 1] - 1.

    Returns:
        `(V, S)`: `[N, H, D]` and `[N, H]`, new arrays.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    return ops.merge_states_ragged(v, s, indptr, base="2")


# -- Decode context parallelism: flashinfer.comm, as in its issue 4575 and pull request 4929 ---------------------------


def decode_cp_a2a_lse_reduce_workspace_size(max_tokens: int, local_heads: int, cp_size: int, head_dim: int, dtype: Any) -> int:
    """The bytes of a workspace whose ranks exchange blocks over NCCL or gloo: one sent and one received block per rank.

    If GPUs address each other's memory, read the workspace's `workspace_bytes` instead.

    Args:
        max_tokens, local_heads, cp_size, head_dim, dtype: see `decode_cp_a2a_lse_reduce_create_workspace`.

    Raises:
        ArgumentError: a size is below 1, or the dtype is not supported.
    """
    from ..distributed.blocks import block_size
    from ..distributed.checks import check_sizes, payload_dtype

    check_sizes(max_tokens=max_tokens, local_heads=local_heads, cp_size=cp_size, head_dim=head_dim)
    return 2 * cp_size * block_size(max_tokens * local_heads, 1, head_dim, payload_dtype(dtype)).total


def decode_cp_a2a_lse_reduce_create_workspace(max_tokens: int, local_heads: int, cp_size: int, head_dim: int, dtype: Any,
                                              group: Any) -> Any:
    """The workspace of `decode_cp_a2a_lse_reduce`: a `mlafix.distributed.Reducer` of single rows.

    Args:
        max_tokens: the product with `local_heads` is the maximum number of rows per call.
        local_heads: heads of a result.
        cp_size: ranks of the group.
        head_dim: D.
        dtype: of the payloads: bf16, f16, f32.
        group: what `mlafix.distributed.Reducer` takes.

    Raises:
        ArgumentError: an argument does not fit, or differs between ranks.
    """
    from ..distributed import Reducer
    from ..distributed.agreement import agreeing
    from ..distributed.checks import check_sizes
    from ..distributed.ranks import meeting_of

    sizes = {"max_tokens": max_tokens, "local_heads": local_heads, "cp_size": cp_size}
    ranks, device = meeting_of(group)
    with agreeing(ranks, device, sizes):
        check_sizes(**sizes)
        if cp_size != ranks.size:
            raise wrong("cp_size", f"{ranks.size}, the ranks of the group", cp_size)
    return Reducer(group, max_tokens=max_tokens * local_heads, heads=cp_size, head_dim=head_dim, dtype=dtype, cut="heads")


_LSE_MODES: Any = {"base2": "2", "basee": "e"}


@renames(partial="partial_o", lse="partial_lse")
def decode_cp_a2a_lse_reduce(partial_o: Array, partial_lse: Array, workspace: Any, cp_rank: int, cp_size: int,
                             lse_mode: str | bool = "base2", enable_pdl: bool | None = None, *,
                             is_lse_base_on_e: bool | None = None) -> Any:
    """Merges the partial states of a group's ranks; a rank sends `[..., r, :]` to rank r (`mlafix.distributed.Reducer`).

    Args:
        partial_o: `[..., cp_size, D]`, a torch tensor, `[batch, heads, cp_size, D]` as a rule; the last dim is contiguous. Dims
            before the ranks that are not evenly spaced are copied first.
        partial_lse: `[..., cp_size] f32`.
        workspace: made by `decode_cp_a2a_lse_reduce_create_workspace`.
        cp_rank: this rank.
        cp_size: ranks of the group.
        lse_mode: "base2" or "basee", or a bool as in FlashInfer's issue 4575: True for base e.
        enable_pdl: ignored.
        is_lse_base_on_e: the name of this bool in the issue. None: `lse_mode` gives the base.

    Returns:
        `[..., D]`, a new tensor.

    Raises:
        ArgumentError: an argument does not fit; nothing was sent then.
    """
    from ..distributed import Reducer

    if not isinstance(workspace, Reducer):
        raise wrong("workspace", "one from decode_cp_a2a_lse_reduce_create_workspace()", type(workspace).__qualname__)
    if isinstance(lse_mode, bool):
        is_lse_base_on_e, lse_mode = lse_mode, "base2"
    problem = _problem(partial_o, partial_lse, workspace, cp_rank, cp_size, lse_mode)
    if problem is not None:
        workspace.refuse(problem)
    rows: Any = partial_o
    lses: Any = partial_lse
    base: Any = _LSE_MODES[lse_mode] if is_lse_base_on_e is None else "e" if is_lse_base_on_e else "2"
    *leading, _, dim = rows.shape
    merged, _ = workspace.reduce(rows.reshape(-1, cp_size, 1, dim), lses.reshape(-1, cp_size, 1), return_lse=False, base=base)
    return merged.reshape(*leading, dim)


def _problem(partial_o: Any, partial_lse: Any, workspace: Any, cp_rank: Any, cp_size: Any, lse_mode: Any) -> ArgumentError | None:
    """Returns the error for the first argument that does not fit the workspace, or None if all fit. The reducer checks
    dtypes and devices."""
    if lse_mode not in tuple(_LSE_MODES):
        return wrong("lse_mode", "'base2' or 'basee'", repr(lse_mode))
    if cp_size != workspace.size:
        return wrong("cp_size", f"{workspace.size}, the ranks of the workspace", cp_size)
    if cp_rank != workspace.rank:
        return wrong("cp_rank", f"{workspace.rank}, this rank of the workspace", cp_rank)
    for name, array in (("partial_o", partial_o), ("partial_lse", partial_lse)):
        if not hasattr(type(array), "__torch_function__"):
            return wrong(name, "a torch.Tensor", type(array).__qualname__)
    shape = list(partial_o.shape)
    if len(shape) < 2 or shape[-2:] != [workspace.size, workspace.head_dim]:
        return wrong("partial_o", f"shape [..., {workspace.size}, {workspace.head_dim}]", shape)
    if list(partial_lse.shape) != shape[:-1]:
        return wrong("partial_lse", f"shape {shape[:-1]}", list(partial_lse.shape))
    rows = math.prod(shape[:-2])
    return wrong("partial_o", f"at most the workspace's {workspace.max_tokens} rows", rows) if rows > workspace.max_tokens else None
