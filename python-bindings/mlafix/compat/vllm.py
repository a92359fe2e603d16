"""vLLM's functions around attention: `vllm.v1.attention.ops.merge_attn_states` and its helpers.

O is `[N, H, D]`, the lse `[H, N]` with any strides, base e.
"""

from __future__ import annotations

from typing import Any

from .. import ops
from ..errors import ArgumentError
from ..ops import Array
from ..ops._wrong import renames, wrong
from ._views import bytes_as_fp8, rows_of_heads, widened


@renames(out="output", out_lse="output_lse", prefix="prefix_output", suffix="suffix_output",
         context_rows="prefill_tokens_with_context", out_scale="output_scale")
def merge_attn_states(output: Array, prefix_output: Array, prefix_lse: Array, suffix_output: Array, suffix_lse: Array,
                      output_lse: Array | None = None, prefill_tokens_with_context: int | None = None,
                      output_scale: Array | None = None) -> None:
    """Merges the attention over the prefix with that over the suffix (`mlafix.ops.merge_attn_states`).

    Tokens at or past the threshold are copies of the suffix, payload and lse as they are, an lse of +inf and the payload
    beside it included: as in vLLM, and unlike `mlafix.ops`, which has `copy_past_context` for it.

    Differences from vLLM, all by contract: with both sides empty the row is 0, -inf (N3; vLLM copies the prefix buffer,
    whatever it holds); a side without weight is never multiplied, so its NaN stays out (N5); NaN stays NaN in an fp8 output
    (N7; vLLM's CUDA kernel makes it +448). Any head strides are legal, also different ones for prefix and suffix (N12), and
    offsets are 64-bit (N13). fp8 inputs are refused: the language writes fp8 and does not read it.

    Args:
        output: `[N, H, D]` bf16, f16, f32 as the inputs, or f8e4m3fn with `output_scale`; may be an input itself.
        prefix_output: `[N, H, D]`.
        prefix_lse: `[H, N] f32`.
        suffix_output: `[N, H, D]`.
        suffix_lse: `[H, N] f32`.
        output_lse: `[H, N] f32`, may be an input lse itself; None: the merged lse is not computed.
        prefill_tokens_with_context: a host int, 0 to N: tokens at or past it are copies of the suffix. None is N.
        output_scale: one f32 on the device, of any rank: stored is saturate(value * (1 / scale)). Needed for fp8.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    try:
        ops.merge_attn_states(prefix_output, prefix_lse, suffix_output, suffix_lse, out=output, out_lse=output_lse,
                              return_lse=False, context_rows=prefill_tokens_with_context, out_scale=output_scale,
                              copy_past_context=True)
    except ArgumentError:
        if output_scale is None and "float8" in str(output.dtype):
            raise wrong("output_scale", f"one f32 for an output of {output.dtype}", "None") from None
        raise


def mask_empty_context_lse(lse: Array, query_start_loc: Array, context_start_loc: Array) -> None:
    """Sets the lse of tokens whose request has no context to -inf, in place (`mlafix.ops.mask_empty_context_lse`).

    Args:
        lse: `[H, N] f32`, any strides.
        query_start_loc: `[B + 1]` of any integer dtype; below 32 bits it is copied to i32 first.
        context_start_loc: `[B + 1]`, likewise.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    ops.mask_empty_context_lse(lse, widened(query_start_loc), widened(context_start_loc))


@renames(out="output")
def mask_empty_context(lse: Array, output: Array, query_start_loc: Array, context_start_loc: Array) -> None:
    """As `mask_empty_context_lse`, and zeroes these tokens' output rows (`mlafix.ops.mask_empty_context`).

    One launch for an `output` of `[N, H, D]`. Of other ranks, or with other heads than the lse has, it is zeroed by a
    launch of its own, and by one for each index of a dim that is not evenly spaced with the next.

    Args:
        lse: `[H, N] f32`, any strides.
        output: `[N, ...]`, bf16, f16, f32 or a dtype of one byte (fp8 of any kind); the last dim is contiguous.
        query_start_loc: `[B + 1]` of any integer dtype; below 32 bits it is copied to i32 first.
        context_start_loc: `[B + 1]`, likewise.

    Raises:
        ArgumentError: an argument does not fit; no output of `[N, H, D]` was written then.
    """
    starts, contexts = widened(query_start_loc), widened(context_start_loc)
    payload = bytes_as_fp8(output)
    if len(payload.shape) == 3 and payload.shape[1] == lse.shape[0]:
        ops.mask_empty_context(payload, lse, starts, contexts)
        return
    ops.mask_empty_context_lse(lse, starts, contexts)
    for rows in rows_of_heads(payload, "output"):
        ops.mask_empty_context(rows, None, starts, contexts)


def expand_context_lens(buffer: Array, seq_lens: Array, num_decodes: int, max_decode_len: int) -> Any:
    """The sparse indexer's per-token context lengths (vLLM #42135): contiguous `[num_decodes, max_decode_len] i32`.

    `max(seq_lens[:, None] - max_decode_len + 1 + arange(max_decode_len), 0)` in the front of a flat buffer
    (`mlafix.ops.expand_context_lens`). A length is never negative: read as unsigned, one hung a kernel.

    Args:
        buffer: flat i32, contiguous, of at least num_decodes * max_decode_len entries.
        seq_lens: `[num_decodes] i32` or longer.
        num_decodes: requests in the batch.
        max_decode_len: tokens a request, 1 or more.

    Raises:
        ArgumentError: the buffer is too small, or an argument does not fit; nothing was launched then.
    """
    return ops.expand_context_lens(buffer, seq_lens, num_decodes, max_decode_len)


@renames(computed="num_computed_tokens", prompt="num_prompt_tokens", live_rows="num_reqs")
def is_prefilling(num_computed_tokens: Array, num_prompt_tokens: Array, num_reqs: int, num_reqs_padded: int) -> Any:
    """Which requests still prefill, False in the padding (vLLM #41873; `mlafix.ops.is_prefilling`).

    Args:
        num_computed_tokens: `[num_reqs]` or longer, i32 or i64.
        num_prompt_tokens: likewise, of the same dtype.
        num_reqs: live requests.
        num_reqs_padded: the size of the result.

    Returns:
        `[num_reqs_padded] bool`.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    return ops.is_prefilling(num_computed_tokens, num_prompt_tokens, num_reqs, padded=num_reqs_padded)
