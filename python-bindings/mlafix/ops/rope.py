"""What follows a combine in one launch with it: sinks, rotary embedding of the rows' last elements, and a quantised result.

The kernels are compiled in no package: a first call needs the compiler, or a cache on disk that has them. On an H100 one launch took
0.8 to 1.1 times as long as the four that it replaces (docs/Experiments.md).

The examples begin with:

    >>> import numpy as np
    >>> from mlafix import ops
"""

from __future__ import annotations

import functools
from typing import Any

from .._arguments import wrong
from .._arrays import check_dtype, check_integers, rows_of, viewed
from .._forks import whole
from ._bases import bases_of
from ._launch import launch_kernel, operation
from ._outputs import out_dtype_name, outputs
from ._types import Array, Base, DTypeLike, Stream
from .formats import Fp8, Fp8Groups, OutFormat, check_format
from .merge_many import bound_count

__all__ = ["combine_rope"]

_PARTS = {"lses": "partial_lse", "cos_sin": "table", **dict.fromkeys(("groups", "tail", "rope"), "partial"),
          **dict.fromkeys(("out_groups", "out_tail", "out_rope"), "out"),
          **dict.fromkeys(("out_scales", "last_scales"), "out_format")}  # fmt: skip


@operation(_PARTS, out="", out_lse="return_lse")
def combine_rope(partial: Array, partial_lse: Array, positions: Array, table: Array, *, interleaved: bool = False, inverse: bool = False,
                 sinks: Array | None = None, out: Array | None = None, out_lse: Array | None = None, out_dtype: DTypeLike = None,
                 return_lse: bool = True, base: Base = "e", lse_base: Base | None = None, out_format: OutFormat | None = None,
                 stream: Stream = None) -> tuple[Any, Any]:
    """Combines split KV, with a sink, turns the last R elements of each row by its position's angles, and quantises: in one launch.

        row, lse = combine_split_kv(partial, partial_lse), with a sink as merge_states_mapped has it
        a, b = a * cos - b * sin, b * cos + a * sin    for each pair of row[..., D - R :]; with `inverse` -sin for sin
        out = row, in the format

    DeepSeek-V4's attention turns its output back before the projection, which reads it in fp8. Arithmetic is f32 throughout. The row
    is rounded once, when it is stored, or with `quantize_from="output"` before it is quantised. Pass one split for attention that is
    not split. Empty splits contribute nothing, whatever they hold (N1, N2, N5). A row without any is 0, -inf (N3). NaN in a
    live lse or in a sink propagates (N6).

    Args:
        partial: `[S, n, H, D] T`, T of f32, bf16, f16.
        partial_lse: `[S, n, H] f32`, any strides.
        positions: `[n]` i64 or i32: of each row, in `table`. A position that is negative or past its end makes the R elements zeros.
        table: `[m, 2, R / 2]`, or `[m, R]` with the cosines before the sines as engines keep it; f32, bf16 or f16. R is less than D.
        interleaved: whether pairs are neighbours (x[2 i], x[2 i + 1]), else (x[i], x[R / 2 + i]), of the R elements.
        inverse: whether rows are turned back.
        sinks: `[H] f32`: logits in base e that take part in `out` without a value; `out_lse` is without them.
        out: `[n, H, D]`, bf16, f16 or f32, or as `out_format` says. Allocated if None.
        out_lse: `[n, H] f32`, any strides. Allocated if None and `return_lse`.
        out_dtype: of `out` where it is allocated; None is the dtype of `partial`. Beside an `out` it must be that one's dtype. With
            a format it is only what `quantize_from="output"` rounds to; with `Fp8`, f8e4m3fn or None.
        return_lse: False: no combined lse is computed unless `out_lse` is given.
        base: of `partial_lse` and `out_lse`: "e" or "2"; "ln" and "log2" say the same.
        lse_base: the same under FlashInfer's name; where it is given, `base` does not count.
        out_format: `Fp8`, or `Fp8Groups` with f32, f8e8m0 or i32 scales for groups of a head of which the last one holds the R elements.
            None: `out_dtype`.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `(out, out_lse)`: the arrays given, or new ones.

    Cost:
        Reads S n H (D E + 4) bytes and R elements of the table a token, and writes n H (D F + 4), with E bytes an element of
        `partial` and F of `out`; with a format, what it writes. A rotation of its own would read and write R elements of each
        row again, and a quantisation of its own the whole row.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> partial = np.stack([np.full((1, 1, 4), x, np.float32) for x in (1, 3)])
        >>> table = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)  # position 1 is a quarter of a turn
        >>> out, _ = ops.combine_rope(partial, np.zeros((2, 1, 1), np.float32), np.array([1]), table, inverse=True)
        >>> out.tolist()
        [[[2.0, 2.0, 2.0, -2.0]]]
    """
    bases = bases_of(base, lse_base, None)
    count, n, heads, dim = rows_of(partial, "partial", ("S", "n", "H", "D"))
    check_dtype(partial, "partial")
    check_dtype(table, "table")
    check_integers(positions, "positions")
    halves = _halves(table)
    rope_dim = halves.shape[2] * 2
    if rope_dim >= dim:
        raise wrong("table", f"rows of fewer than {dim} cosines and sines, the elements of a head", rope_dim)
    if out is not None:
        rows_of(out, "out", ("n", "H", "D"))
    name, named = out_dtype_name(out_dtype, out, out_format), "out_dtype" if out is None else "out"
    out, out_lse = outputs(partial, "partial", out, out_lse, return_lse, out_format, shape=(n, heads, dim), dtype=name)
    if out_format is None:
        check_dtype(out, named)
    scaling, scales, groups = _scaling(out_format, (n, heads, dim), partial, out_dtype, rope_dim)
    size = dim // groups if groups else dim - rope_dim
    before = dim - rope_dim if not groups else (groups - 1) * size
    tail = dim - rope_dim - before
    rows, parts = ([array[..., :before], array[..., before : before + tail] if tail else None, array[..., dim - rope_dim :]] for array in (out, partial))
    last = scales[..., -1] if groups else None
    kernel = _kernel(scaling, bases.prefix == "2", not interleaved, bool(tail > 0), 0 if groups else 1, bound_count(count))
    sign = -1.0 if inverse else 1.0
    arguments = (*rows, scales[..., :-1] if groups else scales, last, out_lse, *parts, partial_lse, sinks, positions, halves, sign)
    launch_kernel(kernel, arguments, stream)
    return out, out_lse


def _halves(table: Any) -> Any:
    """Cosines and sines as `[m, 2, R / 2]`, over the same memory."""
    shape = tuple(getattr(table, "shape", ()))
    if len(shape) == 3 and shape[1] == 2:
        return table
    if len(shape) != 2 or shape[1] % 2 or not shape[1]:
        raise wrong("table", "shape [m, 2, R / 2] or [m, R]", list(shape))
    halves = viewed(table, (shape[0], 2, shape[1] // 2))
    if halves is None:
        raise wrong("table", "rows that are contiguous", f"shape {list(shape)} that no view divides")
    return halves


def _scaling(out_format: OutFormat | None, rows: tuple[Any, ...], like: Any, dtype: Any, rope_dim: int) -> tuple[Any, Any, int]:
    """How the result is scaled: a `How` or None, its scales, and how many groups a head has, 0 for none."""
    if out_format is None:
        return None, None, 0
    check_format(out_format)
    if type(out_format) not in (Fp8, Fp8Groups):
        raise wrong("out_format", "Fp8, Fp8Groups or None", type(out_format).__name__)
    (scales, _, _), how, _ = out_format.place(rows, like, dtype)
    if how.is_static:
        return how, scales, 0
    groups, dim = scales.shape[-1], rows[-1]
    if how.joined > 1 or how.pads or groups < 2 or dim // groups < rope_dim:
        raise wrong("out_format", f"scales for at least 2 groups of a head, of at least the {rope_dim} elements that are turned", f"{groups} groups of {dim}")
    return how, scales, groups


@functools.lru_cache(maxsize=None)
def _kernel(how: Any, in_base_2: bool, halves: bool, has_tail: bool, groups: int, count: int) -> Any:
    whole("mlafix.ops._scaled")
    from ..kernels.scaling import Scaling
    from ..kernels.rope import combine_rope
    from ._scaled import ROUNDINGS

    scaling = None if how is None else Scaling(**{**how._asdict(), "rounding": ROUNDINGS[how.rounding]})
    made = combine_rope(scaling, in_base_2, halves, has_tail)
    bindings = {**({"G": groups} if groups else {}), **({"s": count} if count else {})}
    return made.specialize(**bindings) if bindings else made
