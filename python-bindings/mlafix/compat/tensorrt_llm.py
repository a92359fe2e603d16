"""TensorRT-LLM's functions after helix's all-to-all: partial outputs of cp ranks with softmax statistics (max, sum), base e."""

from __future__ import annotations

from typing import Any

from .._launcher.arguments import renames, wrong
from .._launcher.arrays import check_dtype, empty, rows_of
from ..ops import Array
from ..ops.drop_ins import merge_stats_blocks


@renames(rows="gathered_o", stats="gathered_stats", out="gathered_o")
def helix_post_process(gathered_o: Array, gathered_stats: Array, scale: float) -> Any:
    """Merges the outputs of cp ranks (`torch.ops.trtllm.helix_post_process`).

    Differences from TensorRT-LLM: a rank without keys (a sum of 0, or an infinite max) contributes nothing, whatever its rows
    hold (N5). The scale is applied before the result is rounded to its dtype. f32 and any strides are legal.

    Args:
        gathered_o: `[cp, T, H * D]` bf16, f16, f32; the last dim is contiguous.
        gathered_stats: `[cp, T, H, 2] f32`: (max, sum).
        scale: the factor of the result.

    Returns:
        `[T, H * D]`, a new array.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    ranks, tokens, width = rows_of(gathered_o, "gathered_o", ("cp", "T", "H * D"))
    heads = rows_of(gathered_stats, "gathered_stats", ("cp", "T", "H", "2"))[2]
    if not heads or width % heads:
        raise wrong("gathered_o", f"a last dim divisible by the {heads} heads of gathered_stats", width)
    check_dtype(gathered_o, "gathered_o")
    outputs: Any = gathered_o
    rows = outputs.reshape(ranks, tokens, heads, width // heads)
    out = empty(gathered_o, (tokens, heads, width // heads))
    merge_stats_blocks(out, rows, gathered_stats, scale)
    return out.reshape(tokens, width)


@renames(rows="gathered_o", stats="gathered_stats", out="gathered_o")
def helix_post_process_native(gathered_o: Array, gathered_stats: Array, scale: float, cp_dim: int) -> Any:
    """Like `helix_post_process`, with the ranks at another dim (`torch.ops.trtllm.helix_post_process_native`).

    Args:
        gathered_o: `[T, H, cp, D]` for cp_dim = 2, `[T, cp, H, D]` for 1; the last dim is contiguous.
        gathered_stats: `[T, H, cp, 2] f32`, or `[T, cp, H, 2]`.
        scale: the factor of the result.
        cp_dim: 2 or 1.

    Returns:
        `[T, H * D]`, a new array.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    if cp_dim not in (1, 2):
        raise wrong("cp_dim", "1 or 2", cp_dim)
    rows_of(gathered_o, "gathered_o", ("T", "H or cp", "cp or H", "D"))
    rows_of(gathered_stats, "gathered_stats", ("T", "H or cp", "cp or H", "2"))
    check_dtype(gathered_o, "gathered_o")
    outputs: Any = gathered_o
    stats: Any = gathered_stats
    if cp_dim == 2:
        outputs, stats = outputs.swapaxes(1, 2), stats.swapaxes(1, 2)
    rows, counts = outputs.swapaxes(0, 1), stats.swapaxes(0, 1)
    _, tokens, heads, dim = rows.shape
    out = empty(gathered_o, (tokens, heads, dim))
    merge_stats_blocks(out, rows, counts, scale)
    return out.reshape(tokens, heads * dim)
