"""FlashAttention's combine of split-KV partials. Base e."""

from __future__ import annotations

from typing import Any

from .. import ops
from .._launcher.arguments import renames, wrong
from .._launcher.arrays import check_dtype, empty, rows_of
from .._runtime import NewTensor
from ..ops import Array
from ..ops.merge_many import try_split

# A new lse: a view [B, L, H] of memory in the order [B, H, L].
_NEW_LSE = NewTensor(order=(0, 2, 1))


def flash_attn_combine(out_partial: Array, lse_partial: Array, out: Array | None = None, out_dtype: Any = None,
                       cu_seqlens: Array | None = None, seqused: Array | None = None, virtual_batch_idx: Array | None = None,
                       return_lse: bool = True, *, varlen_batch_idx: Array | None = None,
                       output_scale: Array | float | None = None) -> tuple[Any, Any]:
    """Combines split-KV partials (`flash_attn_interface.flash_attn_combine`; `mlafix.ops.combine_split_kv`).

    The first four arguments are FlashAttention 3's. The next ones are FlashAttention 4's additions. The last ones are
    those of vLLM's fork: another name for the order of batches, and the scale of an fp8 result (in its
    `_flash_attn_fwd_combine`). Rows are independent, so neither the lengths of sequences nor the order of batches
    changes anything: with `cu_seqlens` the partials are `[S, T, H, D]`. Differences: rows past a sequence's end
    (`seqused`) and rows of batches that `virtual_batch_idx` does not name are combined as well, while FlashAttention
    leaves them unchanged; an lse of +inf (FlashAttention 2's empty row) or -inf (FlashAttention 3's) means empty (N1,
    N2), and a row that is empty in every split is 0, -inf; an `out_dtype` that is not the dtype of a given `out` is an
    error.

    Args:
        out_partial: `[S, B, L, H, D]` (or `[S, T, H, D]`), f32, bf16, f16. S = 1 is legal.
        lse_partial: `[S, B, L, H] f32` (or `[S, T, H]`), any strides: usually a transposed view of `[S, B, H, L]`.
        out: `[B, L, H, D]` (or `[T, H, D]`); filled and returned itself. Allocated if None.
        out_dtype: of a new `out`; None is the dtype of the partials. If `out` is given, it must be the dtype of `out`.
        cu_seqlens: `[B + 1] i32`; says only that the partials have the second form.
        seqused: `[B] i32`; not used, see above.
        virtual_batch_idx: `[B] i32`: the order in which a scheduler takes the batches; not used, see above.
        return_lse: if False, no lse is computed.
        varlen_batch_idx: as `virtual_batch_idx`.
        output_scale: one f32 on the device: the result is f8e4m3fn, saturate(value * (1 / output_scale)). A float is
            copied there first.

    Returns:
        `(out, lse)`; lse is `[B, L, H] f32` as a transposed view of `[B, H, L]` (or `[T, H]` of `[H, T]`), or None.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    made = None
    if output_scale is None:
        made = try_split(out_partial, lse_partial, out, _NEW_LSE if return_lse else None, out_dtype, "e", None)
    if made is not None:
        return made[0], made[1]
    return _combine(out_partial, lse_partial, out, out_dtype, return_lse, output_scale)


@renames(partial="out_partial", partial_lse="lse_partial", out=("out", "out_partial"), out_lse="out_partial", **{"Fp8.scale": "output_scale"})
def _combine(out_partial: Array, lse_partial: Array, out: Array | None, out_dtype: Any, return_lse: bool, output_scale: Any) -> tuple[Any, Any]:
    shape = getattr(out_partial, "shape", None)
    if shape is None:
        raise wrong("out_partial", "an array", type(out_partial).__qualname__)
    dims = len(shape)
    if dims not in (4, 5):
        raise wrong("out_partial", "5 dims [S, B, L, H, D] or 4 dims [S, T, H, D]", dims)
    check_dtype(out_partial, "out_partial")
    varlen = dims == 4
    if varlen:
        rows_of(lse_partial, "lse_partial", ("S", "T", "H"))
        if out is not None:
            rows_of(out, "out", ("T", "H", "D"))
    # Adds a dim of size 1, which costs nothing: the kernel then sees one sequence of T tokens.
    partial: Any = out_partial[:, None] if varlen else out_partial  # type: ignore[index]
    partial_lse: Any = lse_partial[:, None] if varlen else lse_partial  # type: ignore[index]
    given: Any = out if out is None or not varlen else out[None]  # type: ignore[index]
    lse: Any = None
    if return_lse:
        _, batch, length, heads, _ = partial.shape
        lse = empty(partial, (batch, heads, length), "f32").swapaxes(1, 2)
    result, lse = ops.combine_split_kv(partial, partial_lse, out=given, out_lse=lse, out_dtype=out_dtype, return_lse=False,
                                       out_format=None if output_scale is None else ops.Fp8(output_scale))
    if not varlen:
        return result, lse
    return (result[0] if out is None else out), (None if lse is None else lse[0])
