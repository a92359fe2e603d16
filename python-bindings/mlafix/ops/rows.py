"""Row kernels beyond attention states: the same language carries them.

In f32 (N7); a row is reduced in one fixed order whatever the batch (N9). The sources are in `kernels/examples`.

The examples begin with:

    >>> import numpy as np
    >>> from mlafix import ops
"""

from __future__ import annotations

from typing import Any

from ._arrays import empty_rows, one_element
from ._families import PLAIN, KernelDispatchers
from ._launch import launch, operation
from ._types import Array, Stream
from ._wrong import wrong

__all__ = ["quantize_fp8_static", "rmsnorm", "softmax"]

_QUANTIZE = KernelDispatchers("quantize_fp8_static")
_RMSNORM = KernelDispatchers("rmsnorm")
_SOFTMAX = KernelDispatchers("softmax")


@operation(out="")
def quantize_fp8_static(x: Array, scale: Array | float, *, out: Array | None = None, stream: Stream = None) -> Any:
    """Quantises rows to fp8 e4m3fn with one scale: out = fp8(x * (1 / scale)) (N7).

    1 / scale is rounded to f32 once; the product rounds to the nearest, ties to even, saturates at +-448, and NaN stays NaN.

    Args:
        x: `[n, D] T`, T of bf16, f16, f32.
        scale: one f32 on x's device, of any number of dims; a float is copied there first.
        out: `[n, D] f8e4m3fn`. Allocated if None.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `out`.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> x = np.array([[1.0, 0.3, 100.0, np.nan]], np.float32)
        >>> ops.quantize_fp8_static(x, 0.1).astype(np.float32).tolist()
        [[10.0, 3.0, 448.0, nan]]
    """
    if out is None:
        out = empty_rows(x, "x", ("n", "D"), "f8e4m3fn")
    launch(_QUANTIZE, PLAIN, x, (out, x, one_element(scale, x)), stream)
    return out


@operation({"y": "out"}, out="")
def rmsnorm(x: Array, weight: Array, epsilon: float = 1e-6, *, out: Array | None = None, stream: Stream = None) -> Any:
    """RMSNorm of each row: out = x / sqrt(mean(x^2) + epsilon) * weight (Zhang and Sennrich, 2019), in f32 (N7).

    Args:
        x: `[n, D] T`, T of bf16, f16, f32.
        weight: `[D] T`.
        epsilon: added to the mean square.
        out: `[n, D] T`; may be `x` itself (N11). Allocated if None.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `out`.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> ops.rmsnorm(np.array([[3.0, 4.0, 0.0, 0.0]], np.float32), np.ones(4, np.float32)).round(3).tolist()
        [[1.2000000476837158, 1.600000023841858, 0.0, 0.0]]
    """
    if out is None:
        out = empty_rows(x, "x", ("n", "D"))
    launch(_RMSNORM, PLAIN, x, (out, x, weight, epsilon), stream)
    return out


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
    launch(_SOFTMAX, PLAIN, x, (out, x, scale), stream)
    return out
