"""Merges of groups of partial attention states through maps: a scheduler of split KV provides the maps.

The examples begin with:

    >>> import numpy as np
    >>> from mlafix import ops
"""

from __future__ import annotations

import math

from .._launcher.arguments import wrong
from .._launcher.arrays import rows_of
from ._bases import TO_LOG2, bases_of, layout_of
from ._families import KeyedKernel
from ._launch import launch, operation
from ._outputs import ROWS, launch_in, transposed
from ._types import Array, Bases, DTypeLike, LseLayout, Stream
from .formats import OutFormat, check_format
from .rope import Rope

__all__ = ["merge_states_mapped"]

_MAPPED = KeyedKernel("merge_states_mapped")
_SUMS = KeyedKernel("merge_states_mapped_sums")


@operation({"sums": "part_sums"}, writes=("out", "out_lse"))
def merge_states_mapped(out: Array, parts: Array, lses: Array, indptr: Array, part_map: Array | None = None,
                        row_map: Array | None = None, *, part_sums: Array | None = None, out_lse: Array | None = None, min_parts: int = 0,
                        sinks: Array | None = None, empty_lse: float = -math.inf,
                        lse_layout: LseLayout = "nh", base: Bases = "e", out_dtype: DTypeLike = None,
                        out_format: OutFormat | None = None, rope: Rope | None = None, stream: Stream = None) -> None:
    """Merges the parts of each group g, indptr[g] … indptr[g + 1] - 1, into a row of `out`.

        out[t], out_lse[t] = the merge of (parts[i], lses[i]) over j;  t = row_map[g] or g,  i = part_map[j] or j

    Each part is read once. Accumulation is in f32, in the order of j (N9), with one normalisation (N7). Empty parts
    contribute nothing, whatever their payload holds (N1, N2, N5). Rows that no group names are left as they are. No
    content of the maps reads or writes out of bounds. A group is skipped if its row is negative or past the end, or if
    it has no entry in `row_map`. A part is empty if its row is negative or past the end, or if it has no entry in
    `part_map`. A group that violates 0 <= indptr[g] <= indptr[g + 1] has no parts. No two groups may name the same row.

    Args:
        out: `[n, H, D]`, bf16, f16 or f32, or as `out_format` says; the rows that groups name are written.
        parts: `[p, H, D]`, f32, bf16 or f16.
        lses: `[p, H] f32` (or `[H, p]`, by `lse_layout`), any strides.
        indptr: `[g + 1] i32`, on the arrays' device, as the maps are; never read by the host.
        part_map: `[k] i32`: the row of each part. None: part j is row j.
        row_map: `[g] i32`: the row of each group. None: group g is row g.
        part_sums: as `lses`, the sums of weights. The parts are then sums of weights times values, without
            normalisation, and `lses` holds the maxima of the scores (see `combine_split_kv`). None: the parts are
            normalised.
        out_lse: `[n, H] f32`, any strides; written as `out` is. None: no lse is computed.
        min_parts: groups with fewer parts are skipped. With 0, a group without parts gives the identity, 0 and -inf
            (N1, N3). With 2, the kernel that computes a single part must write the row itself.
        sinks: `[H] f32`: logits in base e that take part in each row of `out` without a value; `out_lse` is without them.
        empty_lse: the value stored in `out_lse` instead of -inf.
        lse_layout: of `lses` and `out_lse`: "nh" or "hn".
        base: of `lses` and `out_lse`: "e" or "2", or a tuple of both. The merged lse is converted as by `merge_attn_states`.
        out_dtype: the dtype to which a format with `quantize_from="output"` rounds: bf16, f16 or f32. None is the dtype
            of `parts`.
        out_format: the format of the result, one of `mlafix.ops.formats`; the scales of rows that groups name are written, as `out` is.
        rope: `Rope`, turns elements of each row by its position's angles before it is stored. None: none are turned.
        stream: the CUDA stream; None is torch's current one.

    Cost:
        Reads H (D E + 4) bytes for each part that a group names and writes H (D F + 4) for each group, with E bytes per element of `parts` and F
        of `out`.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> parts = np.array([1, 3, 5], np.float32).reshape(3, 1, 1) * np.ones((3, 1, 8), np.float32)
        >>> out, indptr = np.full((4, 1, 8), 7, np.float32), np.array([0, 2, 3, 3], np.int32)
        >>> maps = np.array([2, 0, 1], np.int32), np.array([3, 0, -1], np.int32)
        >>> ops.merge_states_mapped(out, parts, np.zeros((3, 1), np.float32), indptr, *maps)
        >>> out[:, 0, 0].tolist()  # the middle of 5 and 1 in row 3, and 3 in row 0
        [3.0, 7.0, 7.0, 3.0]
    """
    layout, bases = layout_of(lse_layout), bases_of(base, "lses", "out_lse")
    if out_format is not None:
        check_format(out_format)
    if out_dtype is not None and (out_format is None or out_format.quantize_from == "f32"):
        raise wrong("out_dtype", "None, since only an out_format with quantize_from='output' uses it", repr(out_dtype))
    of_rows, of_parts, sums = transposed((out_lse, lses, part_sums), layout, "nh")
    arguments = (of_rows, parts, of_parts, indptr, part_map, row_map, sinks, min_parts, empty_lse)
    if part_sums is not None:
        arguments = (*arguments, sums, TO_LOG2[bases.prefix])
    if out_format is None and rope is None:
        launch((_MAPPED if part_sums is None else _SUMS)[bases.key("nh")], (out, *arguments), stream)
    else:
        rows = (rows_of(out, "out", ROWS)[0], *rows_of(parts, "parts", ("p", "H", "D"))[1:])
        family = "merge_mapped.merge_states_mapped" + ("" if part_sums is None else "_sums")
        launch_in(out_format, family, rows, out, arguments, parts, "parts", bases, stream, dtype=out_dtype, rope=rope)
