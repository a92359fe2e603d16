"""FlashInfer's cascade functions. V is `[N, H, D]`, S `[N, H] f32` in **base 2**; nothing need be contiguous here (N12)."""

from __future__ import annotations

from typing import Any

from .. import ops
from ..ops import Array
from ..ops._wrong import renames, wrong


@renames(prefix="v_a", prefix_lse="s_a", suffix="v_b", suffix_lse="s_b")
def merge_state(v_a: Array, s_a: Array, v_b: Array, s_b: Array) -> tuple[Any, Any]:
    """Merges two states, base 2 (`flashinfer.merge_state`; `mlafix.ops.merge_attn_states`).

    Differences from FlashInfer: a state of +inf is empty (N2; there the lse becomes NaN); a state without weight is never
    multiplied, so its NaN stays out (N5); S must be f32 already, nothing is converted implicitly; any number of
    heads and any head dim (there 128 x 128 fails).

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


def variable_length_merge_states(v: Array, s: Array, indptr: Array) -> tuple[Any, Any]:
    """Merges runs of states, base 2 (`flashinfer.triton.cascade.variable_length_merge_states`).

    Differences from FlashInfer: an empty run's S is -inf (N1; there -50000); `indptr` must be i32 already; and as for
    `merge_state`.

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


# -- Decode context parallelism: flashinfer.comm, as proposed in its issue 4575 and pull request 4929 -----------------


def decode_cp_a2a_lse_reduce_create_workspace(max_tokens: int, local_heads: int, cp_size: int, head_dim: int, dtype: Any,
                                              group: Any) -> Any:
    """What `decode_cp_a2a_lse_reduce` takes as its workspace: a `mlafix.distributed.Reducer`.

    Args:
        max_tokens: the most tokens of a call.
        local_heads: heads of a result.
        cp_size: ranks of the group.
        head_dim: D.
        dtype: of the payloads: bf16, f16, f32.
        group: what `mlafix.distributed.Reducer` takes.

    Raises:
        ArgumentError: an argument does not fit, or differs between ranks.
    """
    from ..distributed import Reducer

    reducer = Reducer(group, max_tokens=max_tokens, heads=local_heads * cp_size, head_dim=head_dim, dtype=dtype, cut="heads")
    if reducer.size != cp_size:
        raise wrong("cp_size", f"{reducer.size}, the ranks of the group", cp_size)
    return reducer


_LSE_MODES: Any = {"base2": "2", "basee": "e"}


def decode_cp_a2a_lse_reduce(partial_o: Array, partial_lse: Array, workspace: Any, cp_rank: int, cp_size: int,
                             lse_mode: str = "base2") -> Any:
    """Merges the partial states of a group's ranks; a rank sends `[:, :, r]` to rank r (`mlafix.distributed.Reducer`).

    Args:
        partial_o: `[batch, heads, cp_size, D]`, a torch tensor; the last dim is contiguous.
        partial_lse: `[batch, heads, cp_size] f32`.
        workspace: made by `decode_cp_a2a_lse_reduce_create_workspace`.
        cp_rank: this rank.
        cp_size: ranks of the group.
        lse_mode: "base2" or "basee".

    Returns:
        `[batch, heads, D]`, a new tensor.

    Raises:
        ArgumentError: an argument does not fit; nothing was sent then.
    """
    if lse_mode not in _LSE_MODES:
        raise wrong("lse_mode", "'base2' or 'basee'", repr(lse_mode))
    if (cp_rank, cp_size) != (workspace.rank, workspace.size):
        raise wrong("cp_rank", f"rank {workspace.rank} of {workspace.size}, as the workspace has", f"{cp_rank} of {cp_size}")
    rows: Any = partial_o
    lses: Any = partial_lse
    return workspace.reduce(rows.transpose(1, 2), lses.transpose(1, 2), return_lse=False, base=_LSE_MODES[lse_mode])[0]
