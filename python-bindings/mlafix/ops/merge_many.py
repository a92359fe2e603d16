"""Merges of many partial attention states in one launch: dense, ragged, from a list of buffers, and split KV.

The examples begin with:

    >>> import numpy as np
    >>> from mlafix import ops

Each length of a list has code of its own, which is compiled at the first call with this length, unless code for any
length exists already. `mlafix.warmup` compiles the code ahead. It takes a call, or a name with bindings, here for four
states:

    ("merge_states_list", {"H": 128, "D": 128, "T": "bf16", "out_lse": "present"}
     | {f"{kind}{i}": "present" if i < 4 else "absent" for kind in "vs" for i in range(1, 8)})

Without the bindings of optional arguments the code takes any length, and reaches a fifth less bandwidth where half of the
arguments are omitted.

No package contains the kernels of the following calls, so `mlafix.warmup` of a call compiles its code ahead:

- calls whose merged lse has another base than the inputs, and calls with `rope`.
- calls of `combine_split_kv` with `seq_lens`, `partial_sum`, `beside` or `sinks`.
"""

from __future__ import annotations

import functools
from typing import Any, Sequence

from .._files import toolchain
from .._launcher.arguments import check_integer, wrong
from .._launcher.arrays import check_dtype, check_integers, dtype_name, is_symbol, rows_of
from .._runtime import NewTensor
from ..errors import ArgumentError
from ._bases import TO_LOG2, bases_of, layout_of
from ._families import KeyedKernel, Key
from ._launch import calls_operation, fast_path, launch, operation
from ._outputs import ROWS, launch_in, out_dtype_name, outputs, transposed
from ._types import Array, Bases, DTypeLike, LseLayout, Stream
from .formats import OutFormat
from .rope import Rope

__all__ = ["merge_states", "merge_states_ragged", "merge_states_list", "combine_split_kv"]

MAX_LIST = 8
"""The largest number of states that `merge_states_list` merges in one launch."""

# For up to this number of states, a kernel is compiled for exactly one number, so that it unrolls its loop over the
# states. Without a compiler this is 0, since the kernels that were compiled ahead take any number of states.
_BOUND_COUNT = 8 if toolchain.compiler_file() else 0

_DENSE = KeyedKernel("merge_states")
_RAGGED = KeyedKernel("merge_states_ragged")
_LIST = KeyedKernel("merge_states_list")
_LIST_NAMES = {f"{kind}{i}": f"{kind}s[{i}]" for kind in "vs" for i in range(MAX_LIST)}
_SPLIT = KeyedKernel("combine_split_kv")
_SPLIT_COUNTED = KeyedKernel("combine_split_kv_counted")
_NEW, _NEW_LIKE_PARTIAL = NewTensor(), NewTensor(like=2)


def _key(base: Any, count: int, name: str) -> Key:
    """Returns the launch key of a merge with one base. Keys for several bases have further entries."""
    return ("nh", base, name) if bound_count(count) else ("nh", base)


def bound_count(count: int) -> int:
    """Returns the number of states to compile into a kernel, or 0 if the kernel takes any number. A count that is a
    symbol, as tensors without memory may have, gives 0."""
    return count if type(count) is int and count <= _BOUND_COUNT else 0


@calls_operation(out="", out_lse="return_lse")
def merge_states(v: Array, s: Array, *, out: Array | None = None, out_lse: Array | None = None, return_lse: bool = True,
                 base: Bases = "e", out_format: OutFormat | None = None, rope: Rope | None = None, stream: Stream = None) -> tuple[Any, Any]:
    """Merges K states per row, from one dense array.

        out_lse = log(sum_k exp(s_k));  out = sum_k exp(s_k - out_lse) * v_k

    Each input is read once. Accumulation is in f32, in the order of k, with one normalisation (N7), so the bits do not
    depend on the batch (N9). Empty states contribute nothing, whatever their payload holds (N1, N2, N5). K = 0 gives
    identities (N3).

    Args:
        v: `[n, K, H, D] T`, T of bf16, f16, f32.
        s: `[n, K, H] f32`, any strides.
        out: `[n, H, D] T`, or as `out_format` says. Allocated if None.
        out_lse: `[n, H] f32`, any strides. Allocated if None and `return_lse`.
        return_lse: if False, no merged lse is computed unless `out_lse` is given.
        base: of `s` and `out_lse`: "e" or "2", or a tuple of both. The merged lse is converted as by `merge_attn_states`.
        out_format: the format of the result, one of `mlafix.ops.formats`. None: T.
        rope: `Rope`, turns elements of each row by its position's angles before it is stored. None: none are turned.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `(out, out_lse)`: the arrays given, or new ones.

    Cost:
        Reads n K H (D E + 4) bytes and writes n H (D E + 4), with E bytes per element of T. A chain of K - 1 merges of two reads
        2 (K - 1) rows and writes K - 1 for each.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> v = np.arange(1, 5, dtype=np.float32).reshape(1, 4, 1, 1) * np.ones((1, 4, 1, 8), np.float32)
        >>> s = np.array([0, 0, -np.inf, 0], np.float32).reshape(1, 4, 1)
        >>> out, lse = ops.merge_states(v, s)
        >>> round(out[0, 0, 0].item(), 4), round(lse[0, 0].item(), 4)  # (1 + 2 + 4) / 3, ln 3
        (2.3333, 1.0986)
    """
    shape = getattr(v, "shape", ())
    if out_format is rope is None and type(return_lse) is bool and len(shape) == 4 and (fast := fast_path(_DENSE, _key(base, shape[1], "k"))):
        made = fast((_NEW if out is None else out, _NEW if out_lse is None and return_lse else out_lse, v, s), stream)
        if made is not None:
            return made[0], made[1]
    return _merge_states(v, s, out=out, out_lse=out_lse, return_lse=return_lse, base=base, out_format=out_format, rope=rope, stream=stream)


@operation(out="", out_lse="return_lse")
def _merge_states(v: Array, s: Array, *, out: Array | None, out_lse: Array | None, return_lse: bool, base: Bases,
                  out_format: OutFormat | None, rope: Rope | None,
                  stream: Stream) -> tuple[Any, Any]:
    """Does what `merge_states` does, without the fast path."""
    bases = bases_of(base, "s", "out_lse")
    n, count, heads, dim = rows_of(v, "v", ("n", "K", "H", "D"))
    rows = n, heads, dim
    out, out_lse = outputs(v, "v", out, out_lse, return_lse, out_format, shape=rows)
    if out_format is None and rope is None:
        key = _key(bases.prefix, count, "k") + bases.key("nh")[2:]
        launch(_DENSE[key], (out, out_lse, v, s), stream)
    else:
        launch_in(out_format, "merge_many.merge_states", rows, out, (out_lse, v, s), v, "v", bases, stream, count="k", bound=bound_count(count),
                  rope=rope)
    return out, out_lse


@operation(out="", out_lse="return_lse")
def merge_states_ragged(v: Array, s: Array, indptr: Array, *, out: Array | None = None, out_lse: Array | None = None,
                        return_lse: bool = True, lse_layout: LseLayout = "nh", base: Bases = "e",
                        out_format: OutFormat | None = None, rope: Rope | None = None, stream: Stream = None) -> tuple[Any, Any]:
    """Merges runs of states of different lengths: output row i is the merge of the states indptr[i] … indptr[i + 1] - 1.

    The merge is that of `merge_states`. An empty run gives the identity, 0 and -inf (N1, N3). A run that violates 0 <=
    indptr[i] <= indptr[i + 1] <= nnz counts as empty, so no content of `indptr` reads out of bounds.

    Args:
        v: `[nnz, H, D] T`, T of bf16, f16, f32.
        s: `[nnz, H] f32` (or `[H, nnz]`, by `lse_layout`), any strides.
        indptr: `[n + 1] i32`, on the arrays' device; never read by the host.
        out: `[n, H, D] T`, or as `out_format` says. Allocated if None.
        out_lse: `[n, H] f32`, any strides. Allocated if None and `return_lse`.
        return_lse: if False, no merged lse is computed unless `out_lse` is given.
        lse_layout: of `s` and `out_lse`: "nh" or "hn".
        base: of `s` and `out_lse`: "e" or "2", or a tuple of both. The merged lse is converted as by `merge_attn_states`.
        out_format: the format of the result, one of `mlafix.ops.formats`. None: T.
        rope: `Rope`, turns elements of each row by its position's angles before it is stored. None: none are turned.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `(out, out_lse)`: the arrays given, or new ones.

    Cost:
        Reads nnz H (D E + 4) bytes and writes n H (D E + 4), with E bytes per element of T.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> v = np.array([1, 3, 5], np.float32).reshape(3, 1, 1) * np.ones((3, 1, 8), np.float32)
        >>> out, lse = ops.merge_states_ragged(v, np.zeros((3, 1), np.float32), np.array([0, 2, 2, 3], np.int32))
        >>> out[:, 0, 0].tolist(), lse[:, 0].round(3).tolist()
        ([2.0, 0.0, 5.0], [0.6930000185966492, -inf, 0.0])
    """
    n = rows_of(indptr, "indptr", ("n + 1",))[0] - 1
    if n < 0:
        raise wrong("indptr", "at least 1 entry", "0")
    if out is not None and (rows := rows_of(out, "out", ROWS)[0]) != n:
        raise wrong("indptr", f"{rows + 1} entries for the {rows} rows of out", n + 1)
    layout, bases = layout_of(lse_layout), bases_of(base, "s", "out_lse")
    shape = (n, *rows_of(v, "v", ("nnz", "H", "D"))[1:])
    out, out_lse = outputs(v, "v", out, out_lse, return_lse, out_format, shape=shape, lse_layout=layout)
    lses = transposed((out_lse, s), layout, "nh")
    if out_format is None and rope is None:
        launch(_RAGGED[bases.key("nh")], (out, lses[0], v, lses[1], indptr), stream)
    else:
        launch_in(out_format, "merge_many.merge_states_ragged", shape, out, (lses[0], v, lses[1], indptr), v, "v", bases, stream, rope=rope)
    return out, out_lse


@operation(_LIST_NAMES, out="", out_lse="return_lse")
def merge_states_list(vs: Sequence[Array], ss: Sequence[Array], *, out: Array | None = None, out_lse: Array | None = None,
                      return_lse: bool = True, lse_layout: LseLayout = "nh", base: Bases = "e",
                      out_format: OutFormat | None = None, rope: Rope | None = None, stream: Stream = None) -> tuple[Any, Any]:
    """Merges 1 to 8 states, each in buffers of its own, in one launch.

    The states are chunks of a context, for example, or the results of a context-parallel group's ranks. The merge is
    that of `merge_states`, in the order of the list (N9). The states are not copied into one buffer first.

    Args:
        vs: 1 to 8 arrays `[n, H, D] T`, T of bf16, f16, f32.
        ss: as many arrays `[n, H] f32` (or `[H, n]`, by `lse_layout`), any strides.
        out: `[n, H, D] T`, or as `out_format` says; may be one of `vs` itself (N11). Allocated if None.
        out_lse: as the elements of `ss`; may be one of them itself. Allocated if None and `return_lse`.
        return_lse: if False, no merged lse is computed unless `out_lse` is given.
        lse_layout: of `ss` and `out_lse`: "nh" or "hn".
        base: of `ss` and `out_lse`: "e" or "2", or a tuple of both. The merged lse is converted as by `merge_attn_states`.
        out_format: the format of the result, one of `mlafix.ops.formats`. None: T.
        rope: `Rope`, turns elements of each row by its position's angles before it is stored. None: none are turned.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `(out, out_lse)`: the arrays given, or new ones.

    Cost:
        With K states, reads K n H (D E + 4) bytes and writes n H (D E + 4), with E bytes per element of T.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> vs = [np.full((2, 1, 8), x, np.float32) for x in (1, 3, 8)]
        >>> out, lse = ops.merge_states_list(vs, [np.zeros((2, 1), np.float32) for _ in vs], out=vs[0])
        >>> out is vs[0], out[:, 0, 0].tolist()
        (True, [4.0, 4.0])
    """
    for name, arrays in (("vs", vs), ("ss", ss)):
        if not hasattr(type(arrays), "__len__"):
            raise wrong(name, "a sequence of arrays", type(arrays).__qualname__)
    count = len(vs)
    if not 1 <= count <= MAX_LIST:
        raise wrong("vs", f"1 to {MAX_LIST} arrays", count)
    if len(ss) != count:
        raise wrong("ss", f"{count} arrays, as many as vs", len(ss))
    first, layout, bases = vs[0], layout_of(lse_layout), bases_of(base, "ss", "out_lse")
    out, out_lse = outputs(first, "vs[0]", out, out_lse, return_lse, out_format, lse_layout=layout)
    absent = [None] * (2 * (MAX_LIST - count))
    if out_format is None and rope is None:
        pairs = [array for pair in zip(vs, ss) for array in pair]
        launch(_LIST[bases.key(layout)], (out, out_lse, *pairs, *absent), stream)
    else:
        lses = transposed((out_lse, *ss), layout, "nh")
        pairs = [array for pair in zip(vs, lses[1:]) for array in pair]
        rows = rows_of(first, "vs[0]", ROWS)
        launch_in(out_format, "merge_many.merge_states_list", rows, out, (lses[0], *pairs, *absent), first, "vs[0]", bases, stream, rope=rope)
    return out, out_lse


@functools.lru_cache(maxsize=64)
def _new_of(dtype: Any) -> NewTensor | None:
    """Returns the placeholder of an output that has the dtype `dtype`. Returns None if the value is not a dtype: the
    fast path refuses a call whose output is None."""
    try:
        return NewTensor(dtype_name(dtype))
    except ArgumentError:
        return None


def try_split(partial: Array, partial_lse: Array, out: Array | None, new_lse: NewTensor | None, out_dtype: Any, base: Any,
              stream: Stream, out_lse: Array | None = None) -> tuple[Any, ...] | None:
    """Combines splits on the fast path, and returns the outputs. Returns None if there is no fast path. If `out_lse` is
    None, allocates the lse that `new_lse` describes."""
    shape = getattr(partial, "shape", None)
    if not shape or out is not None and out_dtype is not None:
        return None
    fast = fast_path(_SPLIT, ("nh", base, "s") if 0 < shape[0] <= _BOUND_COUNT else ("nh", base))
    if not fast:
        return None
    rows: Any = out
    if out is None:
        try:
            rows = _NEW_LIKE_PARTIAL if out_dtype is None else _new_of(out_dtype)
        except TypeError:  # the dtype is not hashable
            return None
    return fast((rows, new_lse if out_lse is None else out_lse, partial, partial_lse), stream)


@calls_operation(out="", out_lse="return_lse")
def combine_split_kv(partial: Array, partial_lse: Array, *, partial_sum: Array | None = None, seq_lens: Array | None = None,
                     split_len: int | None = None, tile_len: int | None = None, cu_seqlens: Array | None = None,
                     beside: Array | None = None, beside_lse: Array | None = None, sinks: Array | None = None, out: Array | None = None,
                     out_lse: Array | None = None, out_dtype: DTypeLike = None, return_lse: bool = True, lse_layout: LseLayout = "nh", base: Bases = "e",
                     out_format: OutFormat | None = None, rope: Rope | None = None, gate: Array | None = None,
                     stream: Stream = None) -> tuple[Any, Any]:
    """Combines the partial results of split-KV attention over the splits.

        out_lse = log(sum_s exp(partial_lse_s));  out = sum_s exp(partial_lse_s - out_lse) * partial_s

    The merge is that of `merge_states`; S = 1 copies (N4), S = 0 gives identities (N3).

    **Sums.** With `partial_sum` the splits are not normalised: `partial` holds sums of weights times values,
    `partial_lse` the maxima of the scores, in units of the base, and `partial_sum` the sums of weights. The merge then
    has a single division. A split whose maximum is infinite or whose sum is 0 is empty.

        m = max_s partial_lse_s;  sum = sum_s base^(partial_lse_s - m) * partial_sum_s;  out_lse = m + log(sum)
        out = sum_s base^(partial_lse_s - m) * partial_s / sum

    **Counts.** With `seq_lens` only the first splits of a row count; the others are not read. With `split_len` their
    number is ceil(length / split_len). With `tile_len` the S splits share the tiles of a request evenly: each has
    ceil(length / (S * tile_len)) tiles. A row with a length of 0 or less has no splits and becomes 0, -inf.

    **Beside.** A state `beside` is merged with the splits in the same launch. An example is the verification of
    speculation: the splits cover the prefix, and `beside` the draft's own tokens. `beside` counts for every length. If
    a row has no valid split, it becomes a copy of `beside` (N4).

    Args:
        partial: `[S, B, L, H, D] T`, T of f32, bf16, f16.
        partial_lse: `[S, B, L, H] f32` (or `[S, B, H, L]`, by `lse_layout`), any strides.
        partial_sum: as `partial_lse`, see **Sums**. None: the splits are normalised.
        seq_lens: `[B]` or longer, i32 or i64, on the arrays' device: the number of keys of each row of B. With
            `cu_seqlens` it is `[q]` or longer, for the sequences. None: all splits count.
        split_len: keys of a split. 1: `seq_lens` counts splits.
        tile_len: keys of a tile, in place of `split_len`.
        cu_seqlens: `[q + 1] i32`, on the same device: the tokens of each sequence, numbered over B and L. None: each
            row of B is a sequence.
        beside: `[B, L, H, D]`, f32, bf16 or f16. None: there is none.
        beside_lse: `[B, L, H] f32`, with the layout and base of `partial_lse`; needed with `beside`.
        sinks: `[H] f32`: logits in base e that take part in `out` without a value; `out_lse` is without them. None: there are none.
        out: `[B, L, H, D]`, bf16, f16 or f32, or as `out_format` says. Allocated if None.
        out_lse: `[B, L, H] f32`, any strides. Allocated if None and `return_lse`.
        out_dtype: of a new `out`; None is the dtype of `partial`. If `out` is given, it must be the dtype of `out`.
            With a format it is only the dtype to which `quantize_from="output"` rounds; with `Fp8`, f8e4m3fn or None.
        return_lse: if False, no merged lse is computed unless `out_lse` is given.
        lse_layout: of `partial_lse` and `out_lse`: "nh", or "hn" where L is behind H.
        base: of `partial_lse` and `out_lse`: "e" or "2", or a tuple of both. The merged lse is converted as by `merge_attn_states`.
        out_format: the format of the result, one of `mlafix.ops.formats`. None: `out_dtype`.
        rope: `Rope`, turns elements of each row by its position's angles before it is stored. None: none are turned.
        gate: `[B, L, H, D]` or `[B, L, H]`, f32, bf16 or f16: the merged row is multiplied by the gate's sigmoid,
            before it is turned, rounded or quantised. Empty rows stay zeros, whatever the gate holds. The gate does not
            change `out_lse`. None: there is no gate.
        stream: the CUDA stream; None is torch's current one.

    Returns:
        `(out, out_lse)`: the arrays given, or new ones.

    Cost:
        Reads S B L H (D E + 4) bytes and writes B L H (D F + 4), with E bytes per element of `partial` and F of `out`.
        With `seq_lens` only the splits of a row that count are read. `partial_sum` adds 4 bytes per row of a split, and
        `beside` adds one row.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> partial = np.stack([np.full((1, 2, 1, 8), x, np.float32) for x in (1, 5)])
        >>> lse = np.zeros((2, 1, 1, 2), np.float32).swapaxes(2, 3)  # [S, B, H, L], seen as [S, B, L, H]
        >>> out, _ = ops.combine_split_kv(partial, lse, out_dtype="f16")
        >>> out.dtype, out[0, :, 0, 0].tolist()
        (dtype('float16'), [3.0, 3.0])
        >>> lens = np.array([20], np.int32)  # one split of 32 keys; the second one is garbage
        >>> ops.combine_split_kv(partial, lse, seq_lens=lens, split_len=32)[0][0, :, 0, 0].tolist()
        [1.0, 1.0]
    """
    made = None
    if out_format is partial_sum is seq_lens is split_len is tile_len is cu_seqlens is beside is beside_lse is sinks is rope is gate is None and lse_layout == "nh" and type(return_lse) is bool:
        made = try_split(partial, partial_lse, out, _NEW if return_lse else None, out_dtype, base, stream, out_lse)
    if made is not None:
        return made[0], made[1]
    return _combine_split_kv(partial, partial_lse, partial_sum=partial_sum, seq_lens=seq_lens, split_len=split_len, tile_len=tile_len,
                             cu_seqlens=cu_seqlens, beside=beside, beside_lse=beside_lse, sinks=sinks, out=out, out_lse=out_lse, out_dtype=out_dtype,
                             return_lse=return_lse, lse_layout=lse_layout, base=base, out_format=out_format, rope=rope,
                             gate=gate, stream=stream)


@operation({"lses": "partial_lse", "sums": "partial_sum", "lens": "seq_lens", "starts": "cu_seqlens"}, out="", out_lse="return_lse")
def _combine_split_kv(partial: Array, partial_lse: Array, *, partial_sum: Array | None, seq_lens: Array | None, split_len: int | None,
                      tile_len: int | None, cu_seqlens: Array | None, beside: Array | None, beside_lse: Array | None, sinks: Array | None,
                      out: Array | None, out_lse: Array | None, out_dtype: DTypeLike, return_lse: bool, lse_layout: LseLayout, base: Bases,
                      out_format: OutFormat | None, rope: Rope | None, gate: Array | None, stream: Stream) -> tuple[Any, Any]:
    """Does what `combine_split_kv` does, without the fast path."""
    layout, bases = layout_of(lse_layout), bases_of(base, "partial_lse", "out_lse")
    shape = rows_of(partial, "partial", ("S", "B", "L", "H", "D"))
    name = out_dtype_name(out_dtype, out, out_format)
    out, out_lse = outputs(partial, "partial", out, out_lse, return_lse, out_format, shape=tuple(shape[1:]), lse_layout=layout, dtype=name)
    lses = transposed((out_lse, partial_lse, beside_lse, partial_sum), layout, "nh")
    counts = _counts(shape[1], seq_lens, split_len, tile_len, cu_seqlens)
    if (beside is None) != (beside_lse is None):
        missing, given = ("beside_lse", "beside") if beside_lse is None else ("beside", "beside_lse")
        raise wrong(missing, f"an array next to {given}", None)
    is_plain = out_format is sinks is rope is gate is None
    of_all = {"count": "s", "bound": bound_count(shape[0]), "dtype": out_dtype if out_format is not None else None, "rope": rope,
              "gate": gate}
    if partial_sum is not None or seq_lens is not None or beside is not None:
        if beside is not None:
            check_dtype(beside, "beside")
        counted = partial, lses[1], beside, *lses[2:], seq_lens, cu_seqlens, *counts, TO_LOG2[bases.prefix]
        if is_plain:
            launch(_SPLIT_COUNTED[_key(bases.prefix, shape[0], "s") + bases.key("nh")[2:]], (out, lses[0], *counted), stream)
        else:
            launch_in(out_format, "merge_many.combine_split_kv_counted", shape[1:], out, (lses[0], sinks, *counted), partial, "partial", bases,
                      stream, **of_all)
    elif is_plain:
        key = _key(bases.prefix, shape[0], "s") + bases.key("nh")[2:]
        launch(_SPLIT[key], (out, lses[0], partial, lses[1]), stream)
    else:
        launch_in(out_format, "merge_many.combine_split_kv", shape[1:], out, (lses[0], sinks, partial, lses[1]), partial, "partial", bases,
                  stream, **of_all)
    return out, out_lse


def _counts(rows: Any, seq_lens: Any, split_len: int | None, tile_len: int | None, cu_seqlens: Any) -> tuple[int, int, int]:
    """Returns the kernel's arguments for counting splits: the keys per split, the keys per tile, and the number of
    steps of the binary search for the sequence of a row. Numbers that a call does not need are 0."""
    if seq_lens is None:
        for name, given in (("split_len", split_len), ("tile_len", tile_len), ("cu_seqlens", cu_seqlens)):
            if given is not None:
                raise wrong(name, "None without seq_lens", repr(given) if isinstance(given, int) else "an array")
        return 0, 0, 0
    check_integers(seq_lens, "seq_lens")
    if (split_len is None) == (tile_len is None):
        raise wrong("split_len", "one of split_len and tile_len beside seq_lens", "both" if split_len is not None else "neither")
    for name, given in (("split_len", split_len), ("tile_len", tile_len)):
        if given is not None:
            check_integer(name, given, 1)
    sequences = 0 if cu_seqlens is None else rows_of(cu_seqlens, "cu_seqlens", ("q + 1",))[0]
    lens, needed = rows_of(seq_lens, "seq_lens", ("B",))[0], rows if cu_seqlens is None else sequences - 1
    if not is_symbol(lens) and not is_symbol(needed) and lens < needed:
        raise wrong("seq_lens", f"at least {needed} entries", lens)
    return split_len or 0, tile_len or 0, sequences.bit_length() if isinstance(sequences, int) else 0
