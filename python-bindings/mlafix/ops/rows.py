"""Row kernels beyond attention states: norms, softmax, quantisation and weighted sums, in the same language.

Arithmetic is f32 (N7). A row is reduced in one fixed order for every batch (N9). The sources are in `kernels/examples`.
The kernels of `quantize_groups` and `mix_depth` compile at the first call, as those of a merge with an `out_format` do.

The examples begin with:

    >>> import numpy as np
    >>> from mlafix import ops
"""

from __future__ import annotations

import functools
from typing import Any

from .. import library
from .._launcher.arguments import wrong
from .._launcher.arrays import check_dtype, check_integers, empty, empty_rows, evenly_viewed, one_element, rows_of
from ._bases import LseBases
from ._families import PLAIN, KeyedKernel
from ._launch import launch, operation
from ._outputs import launch_in
from ._types import Array, Stream
from .formats import Fp8, OutFormat, check_format
from .merge_many import bound_count

__all__ = ["quantize_fp8_static", "quantize_groups", "rmsnorm", "softmax", "mix_depth", "combine_experts"]

_QUANTIZE = KeyedKernel("quantize_fp8_static")
_RMSNORM = KeyedKernel("rmsnorm")
_SOFTMAX = KeyedKernel("softmax")


@operation({"Fp8.scale": "scale"}, out="")
def quantize_fp8_static(x: Array, scale: Array | float, *, out: Array | None = None, stream: Stream = None) -> Any:
    """Quantises rows to fp8 e4m3fn with one scale: out = fp8(x * (1 / scale)) (N7).

    1 / scale is rounded to f32 once; the product rounds to the nearest, ties to even, saturates at +-448, and NaN stays NaN.

    Args:
        x: `[n, D] T`, T of bf16, f16, f32, or `[n, H, D] T` of any strides, for which the first call of each H and D compiles.
        scale: one f32 on x's device, of any number of dims; a float is copied there first.
        out: of the shape of `x`, f8e4m3fn. Allocated if None.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `out`.

    Cost:
        Reads E bytes and writes 1 for each element, with E bytes per element of T.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> x = np.array([[1.0, 0.3, 100.0, np.nan]], np.float32)
        >>> ops.quantize_fp8_static(x, 0.1).astype(np.float32).tolist()
        [[10.0, 3.0, 448.0, nan]]
    """
    if len(getattr(x, "shape", ())) == 3:
        return _stored("rows.quantize_rows", x, Fp8(scale), out, {"x": x}, (), stream, splits=True)
    if out is None:
        out = empty_rows(x, "x", ("n", "D"), "f8e4m3fn")
    launch(_QUANTIZE[PLAIN], (out, x, one_element(scale, x)), stream)
    return out


@operation(out="")
def quantize_groups(x: Array, out_format: OutFormat, *, out: Array | None = None, stream: Stream = None) -> Any:
    """Quantises rows to a format with a scale for each group of elements, and writes the scales: `mlafix.ops.formats` has the formulas.

    The result has the same bits as a merge of one state into this format.

    Args:
        x: `[n, D] T` or `[n, H, D] T`, T of bf16, f16, f32. A group is a part of a head or consists of whole heads, as
            in a merge. Contiguous heads may be passed as `[n, H * D]`, without this restriction.
        out_format: `Fp8Groups`, `MxFp8`, `MxFp4` or `NvFp4`, with scales as in a merge of `[n, H, D]`. For rows `[n, D]`, H is 1: scales are
            `[n, G]`, or in words `[n, ceil(D / 512)] i32`. `quantize_from` changes nothing.
        out: of the shape of `x`, f8e4m3fn; for fp4 with D / 2 bytes in place of D elements, two elements a byte. Allocated if None.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `out`.

    Cost:
        Reads E bytes per element, the size of one in T, and writes the elements and the scales of the format.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> scales = np.empty((1, 2), np.float32)
        >>> ops.quantize_groups(np.array([[1.0, 2.0, 0.5, 0.25]], np.float32), ops.Fp8Groups(scales)).astype(np.float32).tolist()
        [[224.0, 448.0, 448.0, 224.0]]
        >>> (scales * 448).tolist()
        [[2.0, 0.5]]
    """
    if len(getattr(x, "shape", (0, 0))) not in (2, 3):
        raise wrong("x", "2 dims [n, D] or 3 dims [n, H, D]", len(x.shape))
    check_format(out_format)
    if type(out_format) is Fp8:
        raise wrong("out_format", "Fp8Groups, MxFp8, MxFp4 or NvFp4 (for one static scale call quantize_fp8_static)", "Fp8")
    return _stored("rows.quantize_rows", x, out_format, out, {"x": x}, (), stream, splits=True)


@operation({"y": "out"}, writes=("residual",), out="")
def rmsnorm(x: Array, weight: Array, epsilon: float = 1e-6, *, residual: Array | None = None, out_format: OutFormat | None = None,
            out: Array | None = None, stream: Stream = None) -> Any:
    """RMSNorm of each row: out = x / sqrt(mean(x^2) + epsilon) * weight (Zhang and Sennrich, 2019), in f32 (N7).

    With a residual, residual = x + residual is stored, rounded once, and the norm is that of the sum in f32. This is
    the engines' `fused_add_rms_norm` with its quantisation, in one launch.

    Args:
        x: `[n, D] T`, T of bf16, f16, f32; or `[n, H, D]`, where each head is a row.
        weight: `[D] T`; with a residual, a format or heads also another of f32, bf16, f16.
        epsilon: added to the mean square.
        residual: as `x`; updated. None: nothing is added.
        out_format: stores `out` as fp8 or fp4, as [the page of formats](formats.md) says for rows `[n, H, D]`; for `[n, D]`, H is 1. None: as T.
        out: as `x`, or what the format stores; without a format it may be `x` itself (N11). Allocated if None.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `out`.

    Cost:
        Reads and writes n D E bytes each, with E bytes per element of T, and as many again with a residual.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> ops.rmsnorm(np.array([[3.0, 4.0, 0.0, 0.0]], np.float32), np.ones(4, np.float32)).round(3).tolist()
        [[1.2000000476837158, 1.600000023841858, 0.0, 0.0]]
        >>> residual = np.array([[2.0, 4.0, 0.0, 0.0]], np.float32)
        >>> out = ops.rmsnorm(np.array([[1.0, 0.0, 0.0, 0.0]], np.float32), np.ones(4, np.float32), residual=residual, out_format=ops.Fp8(0.1))
        >>> residual.tolist(), out.astype(np.float32).tolist()
        ([[3.0, 4.0, 0.0, 0.0]], [[12.0, 16.0, 0.0, 0.0]])
    """
    if residual is None and out_format is None and len(getattr(x, "shape", ())) != 3:
        if out is None:
            out = empty_rows(x, "x", ("n", "D"))
        launch(_RMSNORM[PLAIN], (out, x, weight, epsilon), stream)
        return out
    if out_format is not None:
        check_format(out_format)
    check_dtype(weight, "weight")
    return _stored("rows.norm_rows", x, out_format, out, {"residual": residual, "x": x}, (weight, epsilon), stream)


@operation({"y": "out"}, out="")
def softmax(x: Array, scale: float = 1.0, *, out: Array | None = None, stream: Stream = None) -> Any:
    """Softmax along each row: out = exp(scale * (x - max x)) / sum exp(scale * (x - max x)), in f32 (N7).

    Args:
        x: `[n, D] T`, T of bf16, f16, f32.
        scale: 0 or more.
        out: `[n, D] T`; may be `x` itself (N11). Allocated if None.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `out`.

    Cost:
        Reads and writes n D E bytes each, with E bytes per element of T.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> ops.softmax(np.log(np.array([[1.0, 2.0, 5.0]], np.float32))).round(3).tolist()
        [[0.125, 0.25, 0.625]]
    """
    if isinstance(scale, (int, float)) and not scale >= 0:
        raise wrong("scale", "0 or more", scale)
    if out is None:
        out = empty_rows(x, "x", ("n", "D"))
    launch(_SOFTMAX[PLAIN], (out, x, scale), stream)
    return out


@operation(writes=("snapshot",), out="")
def mix_depth(prefix: Array, bank: Array, score_weight: Array, *, out_weight: Array | None = None, epsilon: float = 1e-6,
              out_epsilon: float | None = None, snapshot: Array | None = None, out: Array | None = None, stream: Stream = None) -> Any:
    """Attention residuals over depth: a token's row of the running prefix and those of K former layers, mixed by their scores.

        score_i = sum(x_i * score_weight) / sqrt(mean(x_i^2) + epsilon)    of the rows bank[t, 0] … bank[t, K - 1] and prefix[t]
        mixed = sum_i softmax(score)_i * x_i
        out = mixed / sqrt(mean(mixed^2) + out_epsilon) * out_weight

    This is the aggregation of Kimi-K3 (SGLang #33599): an attention over layers. Each row is read once, and its score
    is computed then. The merge is that of `merge_states`: NaN in a row propagates (N6).

    Args:
        prefix: `[n, D] T`, T of bf16, f16, f32.
        bank: `[n, K, D] T`, any strides but the last dim's; K may be 0. Pass the rows that count: `bank[:, :K]`.
        score_weight: `[D]`, f32, bf16 or f16: the product of the norm's weight and the projection's.
        out_weight: `[D]` likewise. None: `out` is `mixed`.
        epsilon: added to the mean squares of scores.
        out_epsilon: added to the mean square of the output's norm. None: `epsilon`.
        snapshot: `[n, D] T`: takes the prefix bit for bit, `bank[:, K]` as a rule. None: nothing is kept.
        out: `[n, D] T`. Allocated if None.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `out`.

    Cost:
        Reads n (K + 1) D E bytes and writes n D E, with E bytes per element of T, and as many again with a `snapshot`.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> prefix, bank = np.full((1, 4), 2, np.float32), np.full((1, 1, 4), 6, np.float32)
        >>> ops.mix_depth(prefix, bank, np.zeros(4, np.float32)).tolist()  # equal scores
        [[4.0, 4.0, 4.0, 4.0]]
    """
    check_dtype(prefix, "prefix")
    check_dtype(score_weight, "score_weight")
    if out_weight is not None:
        check_dtype(out_weight, "out_weight")
    if out is None:
        out = empty_rows(prefix, "prefix", ("n", "D"))
    count = rows_of(bank, "bank", ("n", "K", "D"))[1]
    kernel = library.kernel("mix_depth")
    if bound_count(count):
        kernel = _bound_to(count)
    launch(kernel, (out, snapshot, prefix, bank, score_weight, out_weight, epsilon, epsilon if out_epsilon is None else out_epsilon), stream)
    return out


@functools.lru_cache(maxsize=None)
def _bound_to(count: int) -> Any:
    return library.kernel("mix_depth").specialize(k=count)


def _stored(name: str, x: Any, out_format: OutFormat | None, out: Any, rows: dict[str, Any], more: tuple[Any, ...], stream: Any,
            splits: bool = False) -> Any:
    """Launches a kernel whose result is stored in a format, or binds it if `stream` is a `Binding`. Returns `out`.

    `rows` maps names to those arguments of the kernel that have the shape of `x`, with or without heads. `more` are the
    kernel's arguments after them. `splits` is True if a row without heads may be divided into several rows, which the
    kernel treats separately.
    """
    shape = getattr(x, "shape", None)
    if shape is None:
        raise wrong("x", "an array", type(x).__qualname__)
    if len(shape) not in (2, 3):
        raise wrong("x", "2 dims [n, D] or 3 dims [n, H, D]", len(shape))
    check_dtype(x, "x")
    fits = tuple(shape) if out_format is None else out_format.stored_shape(tuple(shape))
    if out is None:
        out = empty(x, tuple(shape)) if out_format is None else out_format.empty(x, tuple(shape))
    elif tuple(getattr(out, "shape", ())) != fits:
        raise wrong("out", f"shape {list(fits)}", f"shape {list(out.shape)}" if hasattr(out, "shape") else type(out).__qualname__)
    elif out_format is None:
        check_dtype(out, "out")
    result = out
    if len(shape) == 2:
        heads = out_format.heads_of(shape[1]) if splits and out_format is not None else 1
        result = _with_heads(out, "out", heads)
        rows = {key: None if array is None else _with_heads(array, key, heads) for key, array in rows.items()}
    launch_in(out_format, name, rows["x"].shape, result, (*rows.values(), *more), rows["x"], "x", LseBases("e", "e", "e"), stream)
    return out


def _with_heads(array: Any, name: str, heads: int) -> Any:
    """Views rows [n, D] as [n, heads, D / heads]."""
    if len(getattr(array, "shape", ())) != 2:
        raise wrong(name, "2 dims [n, D]", len(array.shape) if hasattr(array, "shape") else type(array).__qualname__)
    if heads == 1:
        return array[:, None]
    return evenly_viewed(array, name, (array.shape[0], heads, array.shape[1] // heads), "contiguous rows")


@operation(out="")
def combine_experts(rows: Array, places: Array, weights: Array, *, shared: Array | None = None, out: Array | None = None,
                    stream: Stream = None) -> Any:
    """The weighted sum of the experts' rows of each token, with a shared expert's row: the end of a mixture of experts.

        out[t] = weights[t, 0] * rows[places[t, 0]] + … + weights[t, k - 1] * rows[places[t, k - 1]] + shared[t]

    The sum is in f32, in this order for every batch (N9), and rounded once. A place that is negative or past the last
    row adds nothing: its expert is on another rank. NaN in a named row reaches the result, even with a weight of zero.

    Args:
        rows: `[m, D] T`, T of bf16, f16, f32: the results of the experts, in any order. Rows that no place names are
            not read.
        places: `[n, k]` i32 or i64, the row of each of a token's k experts.
        weights: `[n, k]` f32, bf16 or f16.
        shared: `[n, D] T`, added behind the rows. None adds nothing.
        out: `[n, D] T`; may be `shared` itself (N11). Allocated if None.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `out`.

    Cost:
        Reads k rows a token, and writes one.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> rows, places = np.array([[1.0, 2.0], [10.0, 20.0], [5.0, 5.0]], np.float32), np.array([[1, 0], [2, -1]], np.int32)
        >>> ops.combine_experts(rows, places, np.array([[0.5, 1.0], [2.0, 1.0]], np.float32)).tolist()
        [[6.0, 12.0], [10.0, 10.0]]
    """
    check_dtype(rows, "rows")
    check_dtype(weights, "weights")
    check_integers(places, "places")
    dim = rows_of(rows, "rows", ("m", "D"))[1]
    tokens = rows_of(places, "places", ("n", "k"))[0]
    if out is None:
        out = empty(rows, (tokens, dim))
    launch(library.kernel("combine_experts"), (out, rows, places, weights, shared), stream)
    return out
