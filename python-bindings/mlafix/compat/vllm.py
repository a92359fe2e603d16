"""vLLM's functions around attention: `vllm.v1.attention.ops.merge_attn_states` and its helpers.

O is `[N, H, D]`, the lse `[H, N]` with any strides, base e.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator
from typing import Any

from .. import ops
from .._launcher.arguments import check_integer, renames, wrong
from .._launcher.arrays import PAYLOADS, check_dtype, check_integers, empty, is_torch, rows_of, spelling_of
from ..errors import ArgumentError
from ..ops import Array
from ..ops.drop_ins import blank_rows, mask_rows_without_keys, merge_into_rows, requests_of_tokens, weight_of_rank
from ._gather import DirectDCPKVGatherWorkspace as DirectDCPKVGatherWorkspace
from ._gather import DirectDCPQGatherWorkspace as DirectDCPQGatherWorkspace
from ._groups import current_ubatch, has_one_rank, merged_over_ranks, of_ranks
from ._views import as_f32, bytes_as_fp8, in_rows, lses_of_ranks, of_segments, rows_of_heads, rows_of_rank, segments_reduced, widened


@renames(out="output", out_lse="output_lse", prefix="prefix_output", suffix="suffix_output",
         context_rows="prefill_tokens_with_context", **{"Fp8.scale": "output_scale", "NvFp4.global_scale": "output_scale"},
         **{"Fp8Groups.scales": "output_block_scale", "NvFp4.scales": "output_block_scale"})
def merge_attn_states(output: Array, prefix_output: Array, prefix_lse: Array, suffix_output: Array, suffix_lse: Array,
                      output_lse: Array | None = None, prefill_tokens_with_context: int | None = None,
                      output_scale: Array | None = None, output_block_scale: Array | None = None) -> None:
    """Merges the attention over the prefix with that over the suffix (`mlafix.ops.merge_attn_states`).

    As in vLLM, tokens at or past the threshold are bitwise copies of the suffix, payload and lse. An lse of +inf is
    copied with its payload, too. In `mlafix.ops` this requires `copy_past_context`.

    Differences from vLLM, all by contract: with both sides empty the row is 0, -inf (N3; vLLM's CUDA kernel copies the
    prefix buffer, whatever it holds); a side without weight is never multiplied, so its NaN stays out (N5); NaN stays
    NaN in an fp8 output (N7; vLLM's CUDA kernel makes it +448). Any head strides are legal, and they may differ between
    prefix and suffix (N12). Offsets are 64-bit (N13). fp8 inputs are an error.

    Args:
        output: `[N, H, D]` bf16, f16, f32 as the inputs, or f8e4m3fn with `output_scale`; may be an input itself.
        prefix_output: `[N, H, D]`.
        prefix_lse: `[H, N] f32`.
        suffix_output: `[N, H, D]`.
        suffix_lse: `[H, N] f32`.
        output_lse: `[H, N] f32`, may be an input lse itself; None: the merged lse is not computed.
        prefill_tokens_with_context: a host int, 0 to N: tokens at or past it are copies of the suffix. None is N.
        output_scale: one f32 on the device, with any number of dims: the stored value is saturate(value * (1 / scale)).
            Required for NVFP4, and for fp8 without output_block_scale.
        output_block_scale: written: a scale for each group of K elements of a head. Its shape gives K and the layout,
            as for `mlafix.ops.Fp8Groups`: f32 `[N, H * D / K]`, with a K of 64 or 128, for example, row-major or
            column-major; i32 `[N, ceil(H * D / 512)]` for powers of two, K = 128. The output is then f8e4m3fn, with the
            bits that the CUDA kernel `per_token_group_quant_fp8` gives for the merged rows in f32. For an output of
            uint8 `[N, H, D / 2]` with `output_scale` as the global scale it is NVFP4: scales in tiles of 128 x 4,
            float8_e4m3fn or uint8 `[M, ceil(H * D / 64) * 4]`, or i32 with a fourth of that, M a multiple of 128
            (`mlafix.ops.NvFp4`). Padding of tiles becomes zeros.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    out_format = _format_of(output, output_scale, output_block_scale)
    try:
        ops.merge_attn_states(prefix_output, prefix_lse, suffix_output, suffix_lse, out=output, out_lse=output_lse, return_lse=False,
                              context_rows=prefill_tokens_with_context, copy_past_context=True, out_format=out_format)
    except ArgumentError:
        if out_format is None and "float8" in str(dtype := getattr(output, "dtype", "")):
            raise wrong("output_scale", f"one f32 for an output of {dtype}", "None") from None
        raise


def _format_of(output: Any, scale: Any, block_scale: Any) -> ops.OutFormat | None:
    """Returns the output format that vLLM's arguments describe, or None if they describe none."""
    if block_scale is None:
        return None if scale is None else ops.Fp8(scale)
    if scale is None:
        return ops.Fp8Groups(block_scale)
    if "uint8" not in str(dtype := getattr(output, "dtype", "")):
        raise wrong("output_scale", "None beside output_block_scale unless output is uint8", f"both for {dtype}")
    return ops.NvFp4(block_scale, scale, tiles="128x4")


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
    """Like `mask_empty_context_lse`, and zeroes these tokens' output rows (`mlafix.ops.mask_empty_context`). vLLM 0.27.1 is the last with it.

    Makes one launch for an `output` of `[N, H, D]`. An output with another number of dims, or with other heads than the
    lse, is zeroed by separate launches: one for each index of a dim that is not evenly spaced with the next.

    Args:
        lse: `[H, N] f32`, any strides.
        output: `[N, ...]`, bf16, f16, f32 or a dtype of one byte (fp8 of any kind); the last dim is contiguous.
        query_start_loc: `[B + 1]` of any integer dtype; below 32 bits it is copied to i32 first.
        context_start_loc: `[B + 1]`, likewise.

    Raises:
        ArgumentError: an argument does not fit; nothing was written then.
    """
    starts, contexts = widened(query_start_loc), widened(context_start_loc)
    heads, tokens = rows_of(lse, "lse", ("H", "N"))
    payload = bytes_as_fp8(output)
    if not hasattr(payload, "shape"):
        raise wrong("output", "an array", type(payload).__qualname__)
    if len(payload.shape) == 3 and payload.shape[1] == heads:
        ops.mask_empty_context(payload, lse, starts, contexts)
        return
    if tuple(payload.shape[:1]) != (tokens,):
        raise wrong("output", f"[{tokens}, ...], as many tokens as lse has", f"[{', '.join(map(str, payload.shape))}]")
    check_dtype(payload, "output", (*PAYLOADS, "f8e4m3fn"))
    ops.mask_empty_context_lse(lse, starts, contexts)
    for rows in rows_of_heads(payload, "output"):
        ops.mask_empty_context(rows, None, starts, contexts)


def expand_context_lens(buffer: Array, seq_lens: Array, num_decodes: int, max_decode_len: int) -> Any:
    """Computes the sparse indexer's per-token context lengths (vLLM #42135): contiguous `[num_decodes, max_decode_len] i32`.

    `max(seq_lens[:, None] - max_decode_len + 1 + arange(max_decode_len), 0)` in the front of a flat buffer
    (`mlafix.ops.expand_context_lens`). A length is never negative; a negative one, read as unsigned, made a kernel
    hang.

    Args:
        buffer: flat i32, contiguous, of at least num_decodes * max_decode_len entries.
        seq_lens: `[num_decodes] i32` or longer.
        num_decodes: requests in the batch.
        max_decode_len: tokens a request, 1 or more.

    Raises:
        ArgumentError: the buffer is too small, or an argument does not fit; nothing was launched then.
    """
    return ops.expand_context_lens(buffer, seq_lens, num_decodes, max_decode_len)


@renames(computed="num_computed_tokens", prompt="num_prompt_tokens", live_rows="num_reqs", padded="num_reqs_padded", flags="num_computed_tokens")
def is_prefilling(num_computed_tokens: Array, num_prompt_tokens: Array, num_reqs: int, num_reqs_padded: int) -> Any:
    """Flags the requests that are still prefilling; False in the padding (vLLM #41873; `mlafix.ops.is_prefilling`).

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


# -- Chunks of context: vllm.model_executor.layers.attention.mla_attention, since vLLM 0.28 -----------------------------


@renames(out="output", lse="output_lse")
def neutralize_empty_context_partials(chunked_context: Any, output: Array, output_lse: Array) -> None:
    """Blanks the rows of requests without context to 0 and -inf (`mlafix.ops.fill_pad_rows`).

    Makes one launch for each run of such requests; vLLM makes two for each request.

    Args:
        chunked_context: an object with `empty_token_slices`, a list of slices of tokens, such as vLLM's
            ChunkedContextMetadata.
        output: `[N, H, D]` bf16, f16, f32, f8e4m3fn; rows of these tokens are written.
        output_lse: `[H, N] f32`, any strides; likewise.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    rows: Any = output
    lses: Any = output_lse
    tokens, heads, _ = rows_of(rows, "output", ("N", "H", "D"))
    if tuple(rows_of(lses, "output_lse", ("H", "N"))) != (heads, tokens):
        raise wrong("output_lse", f"shape {[heads, tokens]}", list(lses.shape))
    for run in _joined(_field(chunked_context, "chunked_context", "empty_token_slices")):
        blank_rows(rows, lses, run.start, run.stop)


@renames(output="attn_output", output_lse="attn_softmax_lse")
def init_mla_context_partial(chunked_context: Any, attn_output: Array, attn_softmax_lse: Array, num_tokens: int) -> tuple[Any, Any]:
    """Creates the state into which chunks of context are merged: new arrays, whose rows without context are blank.

    Other rows are uninitialised: `accumulate_mla_context_chunk` writes each of them before it reads it.

    Args:
        chunked_context: see `neutralize_empty_context_partials`.
        attn_output: `[n, H, D]`, a chunk's output, for its dtype, H and D.
        attn_softmax_lse: `[H, n] f32`, its lse.
        num_tokens: N, the tokens of all requests that prefill.

    Returns:
        `(output, output_lse)`: `[N, H, D]` and `[H, N] f32`.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    check_integer("num_tokens", num_tokens)
    if num_tokens < 0:
        raise wrong("num_tokens", "0 or more", num_tokens)
    tokens, heads, dim = rows_of(attn_output, "attn_output", ("n", "H", "D"))
    check_dtype(attn_output, "attn_output")
    _check_lse(attn_softmax_lse, "attn_softmax_lse", heads, tokens)
    output, output_lse = empty(attn_output, (num_tokens, heads, dim)), empty(attn_softmax_lse, (heads, num_tokens), "f32")
    neutralize_empty_context_partials(chunked_context, output, output_lse)
    return output, output_lse


@renames(prefix="output", prefix_lse="output_lse", suffix="attn_output", suffix_lse="attn_softmax_lse", out="output", out_lse="output_lse")
def accumulate_mla_context_chunk(chunk: Any, attn_output: Array, attn_softmax_lse: Array, output: Array, output_lse: Array,
                                 output_written: bool = False) -> None:
    """Merges a chunk's state into the running one, in one launch (`mlafix.ops.merge_attn_states`); vLLM makes up to three.

    If the first request continues a request of the preceding chunk, its tokens are merged. All other tokens are copied
    bit for bit.

    Args:
        chunk: an object such as vLLM's ContextChunk, with `token_slice`, the slice of its tokens, and
            `is_continuation`. If `is_continuation` is true, it also has `continuation_token_end`, the token behind the
            first request.
        attn_output: `[n, H, D]` bf16, f16, f32: the chunk's output; not read with `output_written`.
        attn_softmax_lse: `[H, n] f32`, any strides: its lse.
        output: `[N, H, D]` of the same dtype; updated.
        output_lse: `[H, N] f32`, any strides; updated.
        output_written: True if `output` already has the chunk's output; only the lse is copied then. Not legal for a
            chunk that continues a request.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    tokens, continues = _field(chunk, "chunk", "token_slice"), _field(chunk, "chunk", "is_continuation")
    if continues and output_written:
        raise wrong("output_written", "False for a chunk that continues a request", True)
    rows: Any = output
    lses: Any = output_lse
    count, heads, _ = rows_of(rows, "output", ("N", "H", "D"))
    _check_lse(lses, "output_lse", heads, count)
    merged = _field(chunk, "chunk", "continuation_token_end") - tokens.start if continues else 0
    merge_into_rows(rows, lses, None if output_written else attn_output, attn_softmax_lse, tokens.start, tokens.stop, merged)


def _check_lse(lse: Any, name: str, heads: int, tokens: int) -> None:
    if tuple(rows_of(lse, name, ("H", "N"))) != (heads, tokens):
        raise wrong(name, f"shape {[heads, tokens]}", list(lse.shape))
    check_dtype(lse, name, ("f32",))


def _field(value: Any, name: str, field: str) -> Any:
    if not hasattr(value, field):
        raise wrong(name, f"an object with the field {field}", type(value).__qualname__)
    return getattr(value, field)


def _joined(runs: Iterable[slice]) -> Iterator[slice]:
    """Yields the slices with adjacent ones joined."""
    begin = end = 0
    for run in runs:
        if run.start != end and end > begin:
            yield slice(begin, end)
        begin, end = begin if run.start == end and end > begin else run.start, run.stop
    if end > begin:
        yield slice(begin, end)


# -- Metadata: vllm.v1.attention.ops.metadata, vllm.v1.worker.gpu.cp_utils ------------------------------------------------


@renames(starts="query_start_loc", mapped="num_mapped_tokens")
def compute_token_to_req_indices(query_start_loc: Array, out: Array, num_mapped_tokens: int, num_tokens: int) -> Any:
    """Finds the request of each token from offsets on the device.

    Args:
        query_start_loc: `[R + 1]` i32 or i64, R at least 1.
        out: `[num_tokens or more] i32`; its first `num_tokens` entries are written.
        num_mapped_tokens: tokens at or past it get 0. Tokens before it that are behind the last request get the last
            request.
        num_tokens: entries to write.

    Returns:
        `out[:num_tokens]`.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    places: Any = out
    room = rows_of(places, "out", ("T",))[0]
    if rows_of(query_start_loc, "query_start_loc", ("R + 1",))[0] < 2:
        raise wrong("query_start_loc", "2 entries or more", query_start_loc.shape[0])
    check_integers(query_start_loc, "query_start_loc")
    check_integer("num_mapped_tokens", num_mapped_tokens)
    _check_entries("num_tokens", num_tokens, "out", room)
    requests_of_tokens(places, query_start_loc, max(num_mapped_tokens, 0), num_tokens)
    return places[:num_tokens]


def _check_entries(name: str, count: Any, array: str, room: int) -> None:
    """Raises ArgumentError unless `count` is a number of entries that the array named `array`, of `room` entries, has."""
    check_integer(name, count)
    if not 0 <= count <= room:
        raise wrong(name, f"0 to {room}, the entries of {array}", count)


@renames(out="dcp_local_seq_lens", rank="dcp_rank", ranks="dcp_size", interleave="cp_interleave", live_rows="num_reqs")
def prepare_dcp_local_seq_lens(dcp_local_seq_lens: Array, seq_lens: Array, num_reqs: int, dcp_size: int, dcp_rank: int, cp_interleave: int,
                               *, num_reqs_padded: int | None = None) -> Any:
    """Writes the lengths of requests on a rank to an existing buffer, 0 for padding (`mlafix.ops.lens_of_rank`).

    Args:
        dcp_local_seq_lens: `[max_num_reqs]` i32 or i64; written as a whole.
        seq_lens: `[num_reqs or more]` of the same dtype.
        num_reqs: live requests.
        dcp_size: ranks of the group; 1: nothing is written, and the result is None.
        dcp_rank: this rank.
        cp_interleave: tokens of a run, which go round the ranks.
        num_reqs_padded: entries of the result; None: all.

    Returns:
        `dcp_local_seq_lens[:num_reqs_padded]`.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    check_integer("dcp_size", dcp_size)
    if dcp_size == 1:
        return None
    lens: Any = dcp_local_seq_lens
    if num_reqs_padded is not None:
        _check_entries("num_reqs_padded", num_reqs_padded, "dcp_local_seq_lens", rows_of(lens, "dcp_local_seq_lens", ("n",))[0])
    ops.lens_of_rank(seq_lens, dcp_rank, dcp_size, interleave=cp_interleave, live_rows=num_reqs, out=lens)
    return lens[:num_reqs_padded]


# -- Segments: vllm.v1.attention.ops.rocm_aiter_mla_merge, triton_unified_attention --------------------------------------


@of_segments
def merge_mla_segments_triton(segm_output: Array, segm_max: Array, segm_expsum: Array, seq_lens: Array, tile_size: int,
                              out_dtype: Any) -> tuple[Any, Any]:
    """Merges the segments of AITER's decode, which are not normalised and in base 2, to an output and a natural lse
    (`mlafix.ops.combine_split_kv`).

    Differences from vLLM: NaN in a segment that counts propagates into its rows' lse (N6); any head dim and number of
    segments; any strides, where the last dim of `segm_output` is contiguous.

    Args:
        segm_output: `[T, H, S, D]` f32, bf16, f16: sums of weights times values. Segments that do not count are not read.
        segm_max: `[T, H, S] f32`: the maxima of their scores, in base 2.
        segm_expsum: `[T, H, S] f32`: the sums of their weights.
        seq_lens: `[T]` i32 or i64: keys of each token; 0 or less gives 0 and -inf.
        tile_size: keys of a tile.
        out_dtype: bf16, f16 or f32.

    Returns:
        `(output, lse)`: `[T, H, D]` and `[T, H] f32` in base e, new arrays.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    return segments_reduced(segm_output, segm_max, segm_expsum, seq_lens, tile_size, out_dtype=out_dtype, base=("2", "e"))


@of_segments
def reduce_segments(output: Array, segm_output: Array, segm_max: Array, segm_expsum: Array, seq_lens: Array, query_start_loc: Array,
                    tile_size: int, output_scale: Array | None = None, return_lse: bool = False) -> Any:
    """Reduces the segments of `unified_attention`, base e, into its output (its kernel `reduce_segments`; `mlafix.ops.combine_split_kv`).

    Differences from vLLM: this is a function and takes only tensors, while vLLM's is a kernel that the caller launches;
    the lse is computed on demand; the caller does not invert the scale; tokens that belong to no sequence get 0 and
    -inf.

    Args:
        output: `[T, H, D]` bf16, f16, f32, or f8e4m3fn with `output_scale`; written.
        segm_output: `[T, H, S, P] f32`, P at least D: sums of weights times values. Segments that do not count are not
            read.
        segm_max: `[T, H, S] f32`: the maxima of their scores.
        segm_expsum: `[T, H, S] f32`: the sums of their weights.
        seq_lens: `[R]` i32 or i64: keys of each request.
        query_start_loc: `[R + 1] i32`: the first token of each request, and the end of the last request.
        tile_size: keys of a tile.
        output_scale: one f32 on the device: the stored value is saturate(value * (1 / scale)).
        return_lse: if True, the lse is computed.

    Returns:
        The lse `[T, H] f32`, a new array, or None.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    rows: Any = output
    parts: Any = segm_output
    tokens, heads, dim = rows_of(rows, "output", ("T", "H", "D"))
    if len(getattr(parts, "shape", ())) == 4:
        parts = parts[..., :dim]
    out_format = None if output_scale is None else ops.Fp8(output_scale)
    return segments_reduced(parts, segm_max, segm_expsum, seq_lens, tile_size, out=rows[:, None], cu_seqlens=query_start_loc,
                            out_format=out_format, return_lse=return_lse)[1]


# -- Sequences as padded rows: vllm.v1.attention.ops.common ---------------------------------------------------------------


@renames(packed="x", out="x", pad="pad_value", starts="lengths")
def pack_seq_triton(x: Array, lengths: Array, pad_value: float = -math.inf, block_t: int = 64, block_d: int = 64) -> Any:
    """Packs contiguous sequences into rows of the longest sequence's length (`mlafix.ops.pack_rows`).

    As in vLLM, the host waits for the longest length; `mlafix.ops.pack_rows` takes it from the caller and does not
    wait. Difference from vLLM: pads are exact for integers of 8, 32 and 64 bits, not only for uint8.

    Args:
        x: `[N, …]` of at least 2 dims.
        lengths: `[B]` integers, on x's device.
        pad_value: the value behind a sequence's end.
        block_t, block_d: not used; sizes of blocks in vLLM.

    Returns:
        `[B, longest, …]` as `x`.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    starts = _starts(lengths, x)
    return ops.pack_rows(_evenly_spaced(x, 1), starts, int(lengths.max()) if starts.shape[0] > 1 else 0, pad=pad_value)  # type: ignore[attr-defined]


@renames(padded="packed_tensor", out="packed_tensor", starts="lengths")
def unpack_seq_triton(packed_tensor: Array, lengths: Array, block_t: int = 64, block_d: int = 64) -> Any:
    """The inverse of `pack_seq_triton` (`mlafix.ops.unpack_rows`). As in vLLM, the host waits for the sum of the lengths.

    Difference from vLLM: rows of a sequence past the end of the packed tensor become zeros; vLLM does not write them.

    Args:
        packed_tensor: `[B, longest, …]` of at least 3 dims.
        lengths: `[B]` integers, on its device.
        block_t, block_d: not used; sizes of blocks in vLLM.

    Returns:
        `[N, …]`, N the sum of the lengths.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    shape = getattr(packed_tensor, "shape", None)
    if shape is None:
        raise wrong("packed_tensor", "an array", type(packed_tensor).__qualname__)
    starts = _starts(lengths, packed_tensor)
    return ops.unpack_rows(_evenly_spaced(packed_tensor, 2), starts, out=empty(packed_tensor, (int(starts[-1]), *shape[2:])))


def _evenly_spaced(array: Any, lead: int) -> Any:
    """Returns the array if its dims after the first `lead` can be joined in a view, else a contiguous copy, as reshape
    does."""
    strides = array.stride() if is_torch(array) else getattr(array, "strides", ())
    size = 1 if is_torch(array) else getattr(array, "itemsize", 1)
    for dim in range(len(strides) - 1, lead - 1, -1):
        if strides[dim] != size and array.shape[dim] != 1:
            return array.contiguous() if is_torch(array) else array.copy()
        size *= array.shape[dim]
    return array


def _starts(lengths: Any, rows: Any) -> Any:
    """Returns the offsets of sequences with these lengths, on the device of `rows`."""
    count = rows_of(lengths, "lengths", ("B",))[0]
    if not (kind := spelling_of(lengths.dtype)).startswith(("int", "uint")):
        raise wrong("lengths", "a dtype of integers", kind)
    if is_torch(lengths) and is_torch(rows) and lengths.device != rows.device:
        raise wrong("lengths", f"a tensor on {rows.device}", f"one on {lengths.device}")
    starts = empty(lengths, (count + 1,), "i32")
    starts[:1] = 0
    starts[1:] = lengths.cumsum(0)
    return starts


# -- Decode context parallelism: vllm.v1.attention.ops.dcp -------------------------------------------------------------


def mask_dcp_empty_shards_(lse: Array, seq_lens: Array | None, query_start_loc: Array | None) -> None:
    """Sets the lse of tokens without keys on this rank to -inf, in one launch.

    These are the tokens of requests whose local length is 0 or less, and the padding behind the last request.

    Args:
        lse: `[B, H] f32`, any strides; updated.
        seq_lens: `[R]` i32 or i64, keys of each request on this rank. None, together with `query_start_loc`: the call
            does nothing.
        query_start_loc: `[R + 1]` i32 or i64.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    if seq_lens is None and query_start_loc is None:
        return
    if seq_lens is None or query_start_loc is None:
        missing, given = ("seq_lens", "query_start_loc") if seq_lens is None else ("query_start_loc", "seq_lens")
        raise wrong(missing, f"an array next to {given}", None)
    requests = rows_of(seq_lens, "seq_lens", ("R",))[0]
    if (bounds := rows_of(query_start_loc, "query_start_loc", ("R + 1",))[0]) != requests + 1:
        raise wrong("query_start_loc", f"{requests + 1} entries for {requests} requests", bounds)
    check_integers(seq_lens, "seq_lens")
    check_integers(query_start_loc, "query_start_loc")
    mask_rows_without_keys(lse, seq_lens, query_start_loc)


@renames(out_lse="lses")
def correct_attn_out(out: Array, lses: Array, cp_rank: int, ctx: Any, is_lse_base_on_e: bool = True) -> tuple[Any, Any]:
    """Multiplies a rank's output by its weight among all ranks, in place. The sum of the ranks' results is the merged output.

    Prefer `dcp_a2a_lse_reduce`, which sums in f32. This function rounds each rank's share to the dtype of `out` before
    the sum. Differences from vLLM: any head dim and number of ranks; NaN in an lse propagates (N6; in vLLM it counts as
    empty).

    Args:
        out: `[B, H, D]` or `[B, 1, H, D]`, bf16, f16, f32; updated. An array with a strided last dim is copied, and
            copied back.
        lses: `[N, B, H] f32`, of all ranks; a dim of 1 may follow N or H. bf16, f16 and f64 are copied to f32 first.
        cp_rank: this rank.
        ctx: ignored.
        is_lse_base_on_e: base e, else base 2.

    Returns:
        `(out, lse)`: out `[B, H, D]`, and the merged lse `[B, H] f32`, a new array.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.
    """
    rows = rows_of_rank(out)
    shares = lses_of_ranks(lses, cp_rank, rows)
    lse = empty(shares, tuple(shares.shape[1:]), "f32")
    whole = in_rows(rows)
    weight_of_rank(whole, lse, shares, cp_rank, "e" if is_lse_base_on_e else "2")
    if whole is not rows:
        rows[...] = whole
    return rows, lse



@of_ranks
def cp_lse_ag_out_rs(cp_attn_out: Array, cp_attn_lse: Array, cp_group: Any, ctx: Any = None, return_lse: bool = False,
                     is_lse_base_on_e: bool = True, seq_lens: Array | None = None, query_start_loc: Array | None = None) -> Any:
    """Merges the partial states of a group's ranks; each rank receives H / N heads (`mlafix.distributed.Reducer`).

    One exchange replaces an all-gather and a reduce-scatter, and sums are in f32 instead of the tensor's dtype. The
    inputs are not modified. `dcp_a2a_lse_reduce` is the same function. Each call allocates buffers; a `Reducer` keeps
    its buffers. NaN in an lse propagates (N6; in vLLM it counts as empty).

    Args:
        cp_attn_out: `[B, H, D]` or `[B, 1, H, D]` bf16, f16, f32, a torch tensor; copied first if its last dim is
            strided.
        cp_attn_lse: `[B, H] f32`, any strides; a dim of 1 may follow B or H. bf16, f16 and f64 are copied to f32 first.
        cp_group: vLLM's `GroupCoordinator`, or what `mlafix.distributed.Reducer` takes as a group.
        ctx: ignored.
        return_lse: if True, the merged lse is returned, too.
        is_lse_base_on_e: base e, else base 2.
        seq_lens: `[R]` i32 or i64: rows of a request with a local length of 0 or less are not read.
        query_start_loc: `[R + 1]` i32 or i64: rows past its last entry are padding.

    Returns:
        `out [B, H / N, D]`, or `(out, lse [B, H / N])`. A group of one rank returns the inputs themselves.

    Raises:
        ArgumentError: an argument does not fit; nothing was sent then. With a gloo group, every rank raises it, also if
            shapes or dtypes differ between ranks.
        RankError: with a gloo group, a rank did not call in time.
    """
    return _over_ranks("heads", cp_attn_out, cp_attn_lse, cp_group, return_lse, is_lse_base_on_e, seq_lens, query_start_loc)


@of_ranks
def cp_lse_ag_out_ar(cp_attn_out: Array, cp_attn_lse: Array, cp_group: Any, ctx: Any = None, return_lse: bool = False,
                     is_lse_base_on_e: bool = True, seq_lens: Array | None = None, query_start_loc: Array | None = None) -> Any:
    """Like `cp_lse_ag_out_rs`; each rank receives all heads: `out [B, H, D]`, `lse [B, H]`.

    Every rank receives the partial states of all others, which is N / 2 times the bytes of vLLM's all-reduce. Use it
    for few tokens or few ranks.
    """
    return _over_ranks("none", cp_attn_out, cp_attn_lse, cp_group, return_lse, is_lse_base_on_e, seq_lens, query_start_loc)


@of_ranks
def dcp_a2a_lse_reduce(cp_attn_out: Array, cp_attn_lse: Array, cp_group: Any, ctx: Any = None, return_lse: bool = False,
                       is_lse_base_on_e: bool = True, seq_lens: Array | None = None, query_start_loc: Array | None = None) -> Any:
    """Like `cp_lse_ag_out_rs`, under the name of vLLM's function with one exchange."""
    return _over_ranks("heads", cp_attn_out, cp_attn_lse, cp_group, return_lse, is_lse_base_on_e, seq_lens, query_start_loc)


def _over_ranks(cut: Any, out: Any, lse: Any, group: Any, return_lse: bool, is_lse_base_on_e: bool, seq_lens: Any,
                query_start_loc: Any) -> Any:
    return merged_over_ranks(out, lse, group, cut=cut, base="e" if is_lse_base_on_e else "2", seq_lens=seq_lens,
                             query_start_loc=query_start_loc, return_lse=return_lse)


class DirectDCPA2AWorkspace:
    """A workspace that many calls reuse, with a `mlafix.distributed.Reducer` for each micro-batch.

    Differences from vLLM: `Reducer` moves the rows, by access to the peers' memory if the GPUs support it, else over
    NCCL. f32 is legal, and so is any head dim. The workspace has vLLM's attributes group, world_size, rank,
    num_ubatches, max_num_tokens, heads_per_rank and head_dim, and device and dtype, but no public buffers. A call uses
    the reducer of the micro-batch that vLLM's worker is processing, or the first if vLLM is not loaded.

    Args:
        group: a process group of torch's, or any other group that `mlafix.distributed.Reducer` takes.
        device: the device of the tensors.
        max_num_tokens: the maximum number of tokens per call.
        heads_per_rank: heads of a result.
        head_dim: D.
        dtype: of the payloads: bf16, f16, f32.
        num_ubatches: micro-batches, at least 1.

    Raises:
        ArgumentError: an argument does not fit, or differs between ranks.
    """

    def __init__(self, group: Any, device: Any, max_num_tokens: int, heads_per_rank: int, head_dim: int, dtype: Any = "bf16",
                 num_ubatches: int = 1) -> None:
        import torch

        from ..distributed import Reducer
        from ..distributed.agreement import agreeing
        from ..distributed.checks import check_sizes
        from ..distributed.ranks import meeting_of

        ranks, meeting_device = meeting_of(group, device if isinstance(device, torch.device) else None)
        sizes = {"num_ubatches": num_ubatches, "heads_per_rank": heads_per_rank}
        with agreeing(ranks, meeting_device, sizes):
            check_sizes(**sizes)
        heads = heads_per_rank * ranks.size
        self.reducers = [Reducer(group, max_tokens=max_num_tokens, heads=heads, head_dim=head_dim, dtype=dtype, device=device)
                         for _ in range(num_ubatches)]
        first = self.reducers[0]
        self.group, self.rank, self.world_size, self.num_ubatches = group, first.rank, first.size, num_ubatches
        self.max_num_tokens, self.heads_per_rank, self.head_dim = max_num_tokens, heads_per_rank, head_dim
        self.device, self.dtype = first.device, first.dtype

    @renames(partial="partial_output", lse="partial_lse")
    def lse_reduce(self, partial_output: Array, partial_lse: Array, is_lse_base_on_e: bool, seq_lens: Array | None = None,
                   query_start_loc: Array | None = None) -> Any:
        """Like `dcp_a2a_lse_reduce`: returns `[B, heads_per_rank, D]`, a new tensor. Raises ArgumentError above `max_num_tokens` tokens
        and for a micro-batch past `num_ubatches`.

        An lse of bf16, f16 or f64 is copied to f32 first.
        """
        try:
            reducer: Any = self.reducers[current_ubatch(self.num_ubatches)]
        except ArgumentError as error:
            self.reducers[0].refuse(error)
        base = "e" if is_lse_base_on_e else "2"
        return reducer.reduce(partial_output, as_f32(partial_lse), seq_lens, query_start_loc, return_lse=False, base=base)[0]


# -- Makers of vLLM's workspaces, which return one workspace for each set of arguments ---------------------------------


@functools.cache
def get_direct_dcp_a2a_workspace(group: Any, device: Any, max_num_tokens: int, heads_per_rank: int, head_dim: int, dtype: Any,
                                 num_ubatches: int) -> DirectDCPA2AWorkspace | None:
    """The `DirectDCPA2AWorkspace` of these arguments, made once; None for a group of one rank.

    Difference from vLLM: it needs neither NVLink multicast nor VLLM_USE_DIRECT_DCP_A2A.
    """
    return DirectDCPA2AWorkspace(group, device, max_num_tokens, heads_per_rank, head_dim, dtype, num_ubatches) if not has_one_rank(group) else None


@functools.cache
def get_direct_dcp_q_gather_workspace(group: Any, device: Any, max_num_tokens: int, heads_per_rank: int, head_dim: int, dtype: Any,
                                      num_ubatches: int, padded_num_heads: int | None = None) -> DirectDCPQGatherWorkspace | None:
    """The `DirectDCPQGatherWorkspace` of these arguments, made once; None for a group of one rank."""
    if has_one_rank(group):
        return None
    return DirectDCPQGatherWorkspace(group, device, max_num_tokens, heads_per_rank, head_dim, dtype, num_ubatches, padded_num_heads)


@functools.cache
def get_direct_dcp_kv_gather_workspace(group: Any, device: Any, max_gathered_tokens: int, token_dim: int, dtype: Any,
                                       num_ubatches: int) -> DirectDCPKVGatherWorkspace | None:
    """The `DirectDCPKVGatherWorkspace` of these arguments, made once; None for a group of one rank."""
    return DirectDCPKVGatherWorkspace(group, device, max_gathered_tokens, token_dim, dtype, num_ubatches) if not has_one_rank(group) else None
