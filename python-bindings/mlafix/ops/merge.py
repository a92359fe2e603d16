"""Merges of two partial attention states: with a threshold, in place, from softmax statistics, with a mask, and with a sink.

The examples begin with:

    >>> import numpy as np
    >>> from mlafix import ops

**Past the threshold.** A token at or past `context_rows` takes the suffix's state. If its lse is +inf, the row is empty and becomes 0, -inf
(N2, N3). With `copy_past_context=True` the row is a copy of the suffix. Payload and lse keep their bits, including NaN and an lse of
+inf, and the payload does not wait for the lse. If the result has a format, the copied payload is converted to this format, whatever
the lse is.

    >>> prefix, suffix = np.full((3, 1, 4), 2, np.float32), np.full((3, 1, 4), 4, np.float32)
    >>> lse, endless = np.zeros((1, 3), np.float32), np.full((1, 3), np.inf, np.float32)
    >>> out, out_lse = ops.merge_attn_states(prefix, lse, suffix, endless, context_rows=2)
    >>> out[2, 0, 0].item(), out_lse[0, 2].item()
    (0.0, -inf)
    >>> out, out_lse = ops.merge_attn_states(prefix, lse, suffix, endless, context_rows=2, copy_past_context=True)
    >>> out[2, 0, 0].item(), out_lse[0, 2].item()
    (4.0, inf)

With such a threshold from the host, no buffer has to be zeroed before the merge (vLLM #36540).

**Bases.** Prefix, suffix and result may each have a base of their own. For example, FlashInfer's prefix is in base 2, and
FlashAttention's suffix in base e. A merge that takes both for the same base gives the prefix a wrong weight (SGLang #40903). No
package contains kernels for several bases: `mlafix.warmup` of a call compiles its code ahead.

    >>> out, out_lse = ops.merge_attn_states(prefix, lse + np.float32(np.log2(3)), suffix, lse, base=("2", "e", "e"))
    >>> out[0, 0, 0].item(), round(out_lse[0, 0].item(), 4)  # three fourths of 2 and one of 4; ln 4
    (2.5, 1.3863)

**Formats.** With an `out_format` the result is fp8 or fp4, with one static scale or with a scale for each group, which the merge writes
(`mlafix.ops.formats`):

    >>> quantised, _ = ops.merge_attn_states(prefix, lse, suffix, lse, context_rows=2, out_format=ops.Fp8(0.01))
    >>> quantised[:, 0, 0].astype(np.float32).tolist()
    [288.0, 288.0, 384.0]
    >>> scales = np.empty((3, 1, 2), np.float32)  # groups of 2
    >>> grouped, _ = ops.merge_attn_states(prefix, lse, suffix, lse, out_format=ops.Fp8Groups(scales))
    >>> grouped[0, 0].astype(np.float32).tolist(), (scales[0, 0] * 448).tolist()
    ([448.0, 448.0, 448.0, 448.0], [3.0, 3.0])
"""

from __future__ import annotations

import functools
from typing import Any

from .. import library
from .._launcher.arguments import renames, wrong
from .._launcher.arrays import check_dtype, empty, empty_lse, empty_rows, one_element, rows_of
from .._launcher.kernel import Kernel
from .._runtime import NewTensor, SizeOf
from ._bases import LseBases, bases_of, layout_of
from ._families import PLAIN, KeyedKernel
from ._launch import calls_operation, fast_path, launch, operation
from ._outputs import ROWS, launch_in, outputs, transposed
from ._types import Array, Bases, LseLayout, Stream
from .formats import Fp8, OutFormat
from .rope import Rope

__all__ = ["merge_attn_states", "merge_state_in_place", "merge_attn_stats", "fixup_merge", "apply_sink"]

_MERGE = KeyedKernel("merge_attn_states")
_MERGE_FP8 = KeyedKernel("merge_attn_states_fp8")
_COPY = KeyedKernel("merge_attn_states_copy")
_COPY_FP8 = KeyedKernel("merge_attn_states_copy_fp8")
_IN_PLACE = KeyedKernel("merge_state_in_place")
_STATS = KeyedKernel("merge_attn_stats")
_NEW, _NEW_LIKE_PREFIX, _ALL_ROWS = NewTensor(), NewTensor(like=2), SizeOf(arg=2, dim=0)


@calls_operation(out="", out_lse="return_lse")
def merge_attn_states(prefix: Array, prefix_lse: Array, suffix: Array, suffix_lse: Array, *, out: Array | None = None,
                      out_lse: Array | None = None, return_lse: bool = True, context_rows: int | None = None,
                      lse_layout: LseLayout = "hn", base: Bases = "e", copy_past_context: bool = False,
                      out_format: OutFormat | None = None, rope: Rope | None = None, gate: Array | None = None,
                      stream: Stream = None) -> tuple[Any, Any]:
    """Merges two partial attention states per (token, head) row.

        lse = log(exp(prefix_lse) + exp(suffix_lse))
        out = exp(prefix_lse - lse) * prefix + exp(suffix_lse - lse) * suffix

    An empty side (lse of -inf or +inf: N1, N2) contributes nothing, whatever its payload holds (N5). If one side is empty, the
    other is copied bit for bit (N4). If both are, the row becomes 0, -inf (N3). NaN in a live lse propagates (N6). Weights and
    sums are f32 (N7). The error is at most 1 ulp of bf16 or f16, 4e-6 in f32 (N10).

    Args:
        prefix: `[n, H, D] T`, T of bf16, f16, f32. Rows at or past `context_rows` are not read.
        prefix_lse: `[H, n] f32` (or `[n, H]`, by `lse_layout`), any strides.
        suffix: `[n, H, D] T`.
        suffix_lse: as `prefix_lse`.
        out: `[n, H, D] T`, or as `out_format` says; may be `prefix` or `suffix` itself (N11). Allocated if None.
        out_lse: as `prefix_lse`; may be `prefix_lse` or `suffix_lse` itself. Allocated if None and `return_lse`.
        return_lse: if False, no merged lse is computed unless `out_lse` is given.
        context_rows: a host integer, 0 to n: tokens at or past it take the suffix alone. None is n.
        lse_layout: the layout of all three lse arrays, "hn" or "nh".
        base: the base of the lse arrays, "e" or "2" (N8), or a tuple of those of `prefix_lse`, `suffix_lse` and `out_lse`. Where bases
            differ, the merge takes place in base 2 if the result and a side are in it, else in base e: an lse of the other base is
            converted when it is read or stored, by one product that is rounded to f32. A finite lse that is too large for the
            other base becomes the largest finite f32.
        copy_past_context: if True, tokens at or past `context_rows` copy payload and lse of the suffix bit for bit. If
            False, they take the suffix as a state: an lse of ±inf gives 0, -inf. `mlafix.ops.merge` shows both.
        out_format: the format of the result, one of `mlafix.ops.formats`. None: T.
        rope: `Rope`, turns elements of each row by its position's angles before it is stored. None: none are turned.
        gate: `[n, H, D]` or `[n, H]`, f32, bf16 or f16: the merged row is multiplied by the gate's sigmoid, before it
            is turned, rounded or quantised. Empty rows stay zeros, whatever the gate holds. The gate does not change
            `out_lse`. None: there is no gate.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `(out, out_lse)`: the arrays given, or new ones; `out_lse` is None if it is not given and `return_lse` is False.

    Cost:
        Reads 2 n H (D E + 4) bytes and writes n H (D E + 4), with E bytes per element of T; with a format, it writes
        the format's bytes. For tokens at or past `context_rows`, only the suffix is read. If `out` is the suffix
        itself, only its lse is read for these tokens, and nothing is written.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> prefix, suffix = np.full((3, 1, 4), 2, np.float32), np.full((3, 1, 4), 4, np.float32)
        >>> prefix[1], prefix_lse = np.nan, np.array([[0, -np.inf, 0]], np.float32)  # Token 1 has no prefix.
        >>> out, out_lse = ops.merge_attn_states(prefix, prefix_lse, suffix, np.zeros((1, 3), np.float32), context_rows=2)
        >>> out[:, 0, 0].tolist(), out_lse.round(3).tolist()
        ([3.0, 4.0, 4.0], [[0.6930000185966492, 0.0, 0.0]])
    """
    of_all = out_format is rope is gate is None and type(return_lse) is type(copy_past_context) is bool
    family = _COPY if of_all and copy_past_context and context_rows is not None else _MERGE
    if of_all and (fast := fast_path(family, (lse_layout, base))):
        made = fast((_NEW_LIKE_PREFIX if out is None else out, _NEW if out_lse is None and return_lse else out_lse, prefix,
                      prefix_lse, suffix, suffix_lse, _ALL_ROWS if context_rows is None else context_rows), stream)
        if made is not None:
            return made[0], made[1]
    return _merge_attn_states(
        prefix, prefix_lse, suffix, suffix_lse, out=out, out_lse=out_lse, return_lse=return_lse, context_rows=context_rows,
        lse_layout=lse_layout, base=base, copy_past_context=copy_past_context, out_format=out_format, rope=rope, gate=gate,
        stream=stream)


@operation(out="", out_lse="return_lse")
def _merge_attn_states(prefix: Array, prefix_lse: Array, suffix: Array, suffix_lse: Array, *, out: Array | None, out_lse: Array | None,
                       return_lse: bool, context_rows: int | None, lse_layout: LseLayout, base: Bases, copy_past_context: bool,
                       out_format: OutFormat | None, rope: Rope | None, gate: Array | None, stream: Stream) -> tuple[Any, Any]:
    """Does what `merge_attn_states` does, without the fast path."""
    layout, bases = layout_of(lse_layout), bases_of(base, "prefix_lse", "suffix_lse", "out_lse")
    copies = bool(copy_past_context) and context_rows is not None
    if context_rows is None:  # The number of dims of `prefix` may be wrong; the launch reports it.
        context_rows = (getattr(prefix, "shape", None) or rows_of(prefix, "prefix", ROWS))[0]
    out, out_lse = outputs(prefix, "prefix", out, out_lse, return_lse, out_format, lse_layout=layout)
    key = bases.key(layout, sides=True)
    if out_format is rope is gate is None:
        launch((_COPY if copies else _MERGE)[key], (out, out_lse, prefix, prefix_lse, suffix, suffix_lse, context_rows), stream)
    elif type(out_format) is Fp8 and rope is gate is None:
        scale = one_element(out_format.scale, prefix)
        _launch_fp8((_COPY_FP8 if copies else _MERGE_FP8)[key], (out, out_lse, scale, prefix, prefix_lse, suffix, suffix_lse, context_rows), stream)
    else:
        lses = transposed((out_lse, prefix_lse, suffix_lse), layout, "hn")
        arguments = (lses[0], prefix, lses[1], suffix, lses[2], context_rows)
        launch_in(out_format, "merge.merge_attn_states", rows_of(prefix, "prefix", ROWS), out, arguments, prefix, "prefix", bases, stream,
                  copies=copies, rope=rope, gate=gate)
    return out, out_lse


_launch_fp8 = renames(out_scale="Fp8.scale")(launch)


@operation(writes=("v", "s"))
def merge_state_in_place(v: Array, s: Array, v_other: Array, s_other: Array, mask: Array | None = None, *,
                         lse_layout: LseLayout = "nh", base: Bases = "e", stream: Stream = None) -> None:
    """Merges another state into `v`, `s`, on the tokens that the mask selects.

        v, s = (v, s) (+) (v_other, s_other)    where mask is nonzero; other rows are neither read nor written

    The merge is that of `merge_attn_states` (N1 to N6). There is no `out_format`: `v` is a state that later merges
    read, in its own dtype. For a result in fp8 or fp4, make the last merge with `merge_attn_states`.

    Args:
        v: `[n, H, D] T`, T of bf16, f16, f32; updated.
        s: `[n, H] f32` (or `[H, n]`, by `lse_layout`); updated.
        v_other: `[n, H, D] T`.
        s_other: as `s`.
        mask: `[n]` bool or u8; nonzero merges the token's rows. None merges all.
        lse_layout: of `s` and `s_other`: "nh" or "hn".
        base: of `s` and `s_other`: "e" or "2", or a tuple of both. An `s_other` of another base is converted as by `merge_attn_states`.
        stream: the CUDA stream; None is torch's current one.

    Cost:
        For each token that the mask selects, reads 2 H (D E + 4) bytes and writes H (D E + 4), with E bytes per element of T.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> v, s = np.full((2, 1, 4), 2, np.float32), np.zeros((2, 1), np.float32)
        >>> ops.merge_state_in_place(v, s, v + 2, s.copy(), np.array([True, False]), base="2")
        >>> v[:, 0, 0].tolist(), s[:, 0].tolist()
        ([3.0, 2.0], [1.0, 0.0])
    """
    own, _, other = bases_of(base, "s", "s_other")
    key = (layout_of(lse_layout), own, *([f"SuffixBase={other}"] if other != own else []))
    launch(_IN_PLACE[key], (v, s, v_other, s_other, mask), stream)


@operation(out="", out_stats="return_stats")
def merge_attn_stats(prefix: Array, prefix_stats: Array, suffix: Array, suffix_stats: Array, softmax_scale: float, *,
                     out: Array | None = None, out_stats: Array | None = None, return_stats: bool = True,
                     stream: Stream = None) -> tuple[Any, Any]:
    """Merges two states that carry softmax statistics `(max, sum)` in place of an lse, as TensorRT-LLM keeps them.

        lse = softmax_scale * max + log(sum), base e

    The merge is that of `merge_attn_states`. The max is taken over the scores before scaling. A row whose sum is 0 or
    whose max is infinite is empty (N1, N2, N5); both sides empty leaves (-inf, 0) and a payload of 0 (N3).

    Args:
        prefix: `[n, H, D] T`, T of bf16, f16, f32.
        prefix_stats: `[n, H, 2] f32`: (max, sum).
        suffix: `[n, H, D] T`.
        suffix_stats: as `prefix_stats`.
        softmax_scale: the factor of the scores, above 0.
        out: `[n, H, D] T`; may be an input itself. Allocated if None.
        out_stats: as `prefix_stats`; may be an input itself. Allocated if None and `return_stats`.
        return_stats: if False, no merged statistics are computed unless `out_stats` is given.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `(out, out_stats)`: the arrays given, or new ones.

    Cost:
        Reads 2 n H (D E + 8) bytes and writes n H (D E + 8), with E bytes per element of T.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> payload, stats = np.full((1, 1, 4), 2, np.float32), np.array([[[10.0, 3.0]]], np.float32)
        >>> out, merged = ops.merge_attn_stats(payload, stats, payload * 2, stats, softmax_scale=0.1)
        >>> out[0, 0, 0].item(), merged[0, 0].tolist()
        (3.0, [10.0, 6.0])
    """
    if isinstance(softmax_scale, (int, float)) and not softmax_scale > 0:
        raise wrong("softmax_scale", "more than 0", softmax_scale)
    if out is None:
        out = empty_rows(prefix, "prefix", ROWS)
    if out_stats is None and return_stats:
        n, heads, _ = rows_of(prefix, "prefix", ROWS)
        out_stats = empty(prefix, (n, heads, 2), "f32")
    launch(_STATS[PLAIN], (out, out_stats, prefix, prefix_stats, suffix, suffix_stats, softmax_scale), stream)
    return out, out_stats


@operation(out="", out_lse="return_lse")
def fixup_merge(prefix: Array, prefix_lse: Array, suffix: Array, suffix_lse: Array, kv_lens: Array, cu_seqlens: Array, *,
                out: Array | None = None, out_lse: Array | None = None, return_lse: bool = True, lse_layout: LseLayout = "nh",
                base: Bases = "e", out_format: OutFormat | None = None, rope: Rope | None = None,
                stream: Stream = None) -> tuple[Any, Any]:
    """The fixup of rows without keys (`mlafix.ops.blank`) and a merge in one launch, on request with a quantisation.

    Sequence s has the rows cu_seqlens[s] … cu_seqlens[s + 1] - 1. If kv_lens[s] <= 0, the prefix of these rows counts
    as empty, whatever payload and lse hold, and the result is the suffix (N4, N5). Otherwise the merge is that of
    `merge_attn_states`. The loads are masked, so no row of the prefix is blanked first. Rows before cu_seqlens[0] or
    from cu_seqlens[-1] on belong to no sequence: `out`, `out_lse` and the scales keep their values there. No content of
    `cu_seqlens` reads or writes out of bounds.

    Args:
        prefix: `[n, H, D] T`, T of bf16, f16, f32.
        prefix_lse: `[n, H] f32` (or `[H, n]`, by `lse_layout`), any strides.
        suffix: `[n, H, D] T`.
        suffix_lse: as `prefix_lse`.
        kv_lens: `[b] i32`, on the arrays' device: the number of keys in each sequence's prefix.
        cu_seqlens: `[b + 1] i32`, not decreasing, on the same device; it may be shorter than b + 1. The host reads
            neither array.
        out: `[n, H, D] T`, or as `out_format` says; may be `prefix` or `suffix` itself without a format. Allocated if None.
        out_lse: as `prefix_lse`; may be `prefix_lse` or `suffix_lse` itself (N11). Allocated if None and `return_lse`.
        return_lse: if False, no merged lse is computed unless `out_lse` is given.
        lse_layout: of all three lse arrays: "nh" or "hn".
        base: of all three lse arrays: "e" or "2", or a tuple of those of `prefix_lse`, `suffix_lse` and `out_lse`. Lses are converted
            as by `merge_attn_states`.
        out_format: the format of the result, one of `mlafix.ops.formats`. None: rows of T.
        rope: `Rope`, turns elements of each row by its position's angles before it is stored. None: none are turned.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `(out, out_lse)`: the arrays given, or new ones. In new arrays, rows that belong to no sequence are undefined.

    Cost:
        Reads 2 n H (D E + 4) bytes, less the prefix of sequences without keys, and writes the result in its format and n H 4 bytes
        of lse. Two launches would also write the blanked prefix; three would write and read the merged rows, too.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> prefix, suffix = np.full((3, 1, 4), 2, np.float32), np.full((3, 1, 4), 4, np.float32)
        >>> lse, stale = np.zeros((3, 1), np.float32), np.array([[0], [np.nan], [5]], np.float32)
        >>> lens, starts = np.array([7, 0], np.int32), np.array([0, 1, 3], np.int32)  # The second sequence, of two rows, has no keys.
        >>> out, out_lse = ops.fixup_merge(prefix, stale, suffix, lse, lens, starts)
        >>> out[:, 0, 0].tolist(), out_lse[:, 0].round(3).tolist()
        ([3.0, 4.0, 4.0], [0.6930000185966492, 0.0, 0.0])
        >>> quantised, _ = ops.fixup_merge(prefix, stale, suffix, lse, lens, starts, out_format=ops.Fp8(0.01))
        >>> quantised[:, 0, 0].astype(np.float32).tolist()
        [288.0, 384.0, 384.0]
    """
    layout, bases = layout_of(lse_layout), bases_of(base, "prefix_lse", "suffix_lse", "out_lse")
    rows = rows_of(prefix, "prefix", ROWS)
    sequences = rows_of(cu_seqlens, "cu_seqlens", ("b + 1",))[0] - 1
    if (count := rows_of(kv_lens, "kv_lens", ("b",))[0]) < sequences:
        raise wrong("kv_lens", f"at least {sequences} entries, one for each sequence of cu_seqlens", count)
    out, out_lse = outputs(prefix, "prefix", out, out_lse, return_lse, out_format, lse_layout=layout)
    halvings = max(sequences, 0).bit_length()
    lses = transposed((out_lse, prefix_lse, suffix_lse), layout, "nh")
    arguments = (lses[0], prefix, lses[1], suffix, lses[2], kv_lens, cu_seqlens, halvings)
    launch_in(out_format, "merge.merge_masked_states", rows, out, arguments, prefix, "prefix", bases, stream, rope=rope)
    return out, out_lse


@operation(out="", out_lse="return_lse")
def apply_sink(v: Array, s: Array, sinks: Array, *, out: Array | None = None, out_lse: Array | None = None, return_lse: bool = True,
               lse_layout: LseLayout = "nh", base: Bases = "e", stream: Stream = None) -> tuple[Any, Any]:
    """Gives each row of a normalised state the attention sink of its head: a logit that takes weight and adds no value.

        out = v / (1 + exp(sink - s));  out_lse = log(exp(s) + exp(sink))

    This is the softmax of gpt-oss (OpenAI, 2025), which has a learned logit per head beside the scores. The attention was computed
    without this logit, and the call merges each row with it. A sink of -inf or +inf is ignored (N2), and the row is copied (N4). An
    empty row (s of -inf or +inf) becomes zeros, whatever its payload holds (N5). Its lse becomes the logit, or -inf without a sink
    (N3). NaN in s or in a sink propagates (N6). A sink counts once: give it to the merge of all states, or to one of the states.

    Args:
        v: `[n, H, D] T`, T of bf16, f16, f32.
        s: `[n, H] f32` (or `[H, n]`, by `lse_layout`), any strides.
        sinks: `[H]`, f32, bf16 or f16: logits in base e, whatever the base of `s`.
        out: `[n, H, D] T`; may be `v` itself (N11). Allocated if None.
        out_lse: as `s`; may be `s` itself. Allocated if None and `return_lse`.
        return_lse: if False, no lse with the sink is computed unless `out_lse` is given. `s` is then still the lse
            without the sink, as FlashMLA returns it.
        lse_layout: of `s` and `out_lse`: "nh" or "hn".
        base: of `s` and `out_lse`: "e" or "2", or a tuple of both. Converted as by `merge_attn_states`.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `(out, out_lse)`: the arrays given, or new ones; `out_lse` is None if it is not given and `return_lse` is False.

    Cost:
        Reads and writes n H (D E + 4) bytes each, with E bytes per element of T.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> v, s = np.full((2, 1, 4), 6, np.float32), np.array([[0], [-np.inf]], np.float32)
        >>> out, lse = ops.apply_sink(v, s, np.log(np.array([2], np.float32)))
        >>> out[:, 0, 0].round(3).tolist(), lse[:, 0].round(4).tolist()  # A third of the weight, ln 3; an empty row, ln 2.
        ([2.0, 0.0], [1.0986000299453735, 0.6930999755859375])
    """
    layout, bases = layout_of(lse_layout), bases_of(base, "s", "out_lse")
    check_dtype(sinks, "sinks")
    check_dtype(v, "v")
    out, _ = outputs(v, "v", out, None, return_lse=False)
    if out_lse is None and return_lse:
        out_lse = empty_lse(out, "out", layout)
    launch(_sink_kernel(layout, bases), (out, out_lse, v, s, sinks), stream)
    return out, out_lse


@functools.lru_cache(maxsize=None)
def _sink_kernel(layout: str, bases: LseBases) -> Kernel:
    kernel = library.kernel("apply_sink" if layout == "nh" else "apply_sink_hn")
    chosen = bases.bindings(sides=True)
    return kernel.specialize(**chosen) if chosen else kernel
