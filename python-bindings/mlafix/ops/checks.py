"""Looks for broken rows of attention states, broken blocks of caches and broken metadata, and records them.

Each function is one launch. If all is well, it reads its inputs once and writes nothing. It may follow any kernel, also
in a captured graph, and never waits. The findings are in two arrays of the caller's, which several launches may share:

- `record`, an i64 for each row: `step << 32 | seam << 8 | class` of the first launch that found the row broken, 0 before.
- `flags`, `[16] i32`: 1 at the number of each class that was found. If nothing is wrong, only this array needs to be
  copied to the host.

`FAULTS` names the classes by number. `offences` reads a record on the host. To begin anew, write zeros to both arrays.
`mlafix.watch` puts these functions into engines.

The examples begin with:

    >>> import numpy as np
    >>> from mlafix import ops
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Sequence

import numpy

from .. import library
from .._launcher.arguments import check_integer, wrong
from .._launcher.arrays import check_dtype, check_integers, count_or_tensor, is_symbol, lse_as, rows_of
from ._bases import base_of, layout_of
from ._families import in_base
from ._launch import launch, operation
from ._types import Array, Base, LseLayout, Stream

__all__ = ["visible_keys", "check_states", "check_merge", "check_attention", "check_blocks", "check_metadata", "offences"]

FAULTS = (
    "",
    "NaN",
    "infinite",
    "not empty",
    "weight of -inf",
    "no keys seen",
    "too large",
    "another lse",
    "another value",
    "NaN in a block",
    "negative length",
    "falling offsets",
    "slot out of range",
    "page out of range",
    "another length",
)
"""The names of the classes, by number:

- NaN, infinite: a row with keys that has NaN or an infinity.
- not empty: a row without keys that is not 0, -inf.
- weight of -inf: a row that is not zero beside an lse of -inf.
- no keys seen: a row that is 0, -inf although it has keys.
- too large: a row with a magnitude above the limit.
- another lse, another value: a row that is not the merge of its sides or the attention over its keys.
- all others: what is wrong with blocks of caches and with metadata.
"""

_STATED = ("bf16", "f16", "f32", "f8e4m3fn", "f8e5m2")
_MOST_SIDES = 8
_READ_AT_ONCE = 1 << 20
"""The largest number of elements for which `check_states` and `check_merge` read all rows before the number of live rows has arrived
from memory."""


class Offence(NamedTuple):
    """A broken row of a record."""

    step: int
    seam: int
    fault: str
    """One of `FAULTS`."""
    row: tuple[int, ...]
    """The indices of the row in the record."""


def offences(record: Any) -> list[Offence]:
    """Lists the broken rows of a record, sorted by step, seam and row. Waits for the device.

    Args:
        record: an array that the check functions have written.

    Returns:
        One `Offence(step, seam, fault, row)` for each broken row; `fault` is a name of `FAULTS`, `row` the place in the record.

    Raises:
        ArgumentError: the record is no array of integers.

    Example:
        >>> ops.offences(np.array([[0, 1 << 32 | 3 << 8 | 1]]))
        [Offence(step=1, seam=3, fault='NaN', row=(0, 1))]
    """
    host = _on_host(record)
    if host.dtype.kind != "i":
        raise wrong("record", "an array of integers", host.dtype)
    places = [tuple(int(i) for i in place) for place in numpy.argwhere(host)]
    found = [(int(host[place]), place) for place in places]
    return [Offence(word >> 32, word >> 8 & 0xFFFFFF, FAULTS[word & 0xFF], place) for word, place in sorted(found, key=lambda x: (x[0] >> 8, x[1]))]


def _on_host(array: Any) -> numpy.ndarray[Any, Any]:
    """Returns an array as one of numpy. An array of a GPU, which numpy refuses to read, is copied by the method that
    torch (`cpu`) or CuPy (`get`) has for it."""
    for name in ("cpu", "get") if hasattr(array, "__dlpack__") else ():
        if hasattr(array, name):
            return numpy.asarray(getattr(array, name)())
    return numpy.asarray(array)


def _common(seam: Any, step: Any, live_rows: Any, rows: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Checks the numbers that all kernels take, and returns them as `(seam, live_rows, step, live_rows_at, step_at)`.
    The array of a number on the device becomes `…_at`, which is None for a number on the host. `rows` replaces a
    `live_rows` of None."""
    check_integer("seam", seam)
    if not is_symbol(seam) and not 0 <= seam < 1 << 24:
        raise wrong("seam", "a number from 0 to 2^24 - 1", seam)
    live, live_at = (rows, None) if live_rows is None else count_or_tensor(live_rows)
    count, count_at = count_or_tensor(step)
    return seam, live, count, live_at, count_at


def _counts(shape: tuple[Any, Any, Any], live: Any, live_at: Any) -> tuple[Any, Any, Any, Any]:
    """Returns the arguments live_rows, live_rows_at, read_rows and read_rows_at for a check of results with `shape`.

    If the number of live rows is on the device, a check of a small result reads all rows without waiting for that
    number. A check of a large result waits for the number and reads only live rows.
    """
    if live_at is None:
        return live, None, live, None
    rows = shape[0]
    if any(map(is_symbol, shape)) or math.prod(shape) > _READ_AT_ONCE:
        return rows, None, live, live_at
    return live, live_at, rows, None


def _halvings(starts: Any) -> int:
    bounds = getattr(starts, "shape", (0,))[0]
    return bounds.bit_length() if isinstance(bounds, int) else 62


def _checked(tolerance: Any, name: str) -> Any:
    if is_symbol(tolerance):
        return tolerance
    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)) or not tolerance >= 0:
        raise wrong(name, "a number of at least 0", repr(tolerance))
    return float(tolerance)


_NAMES = {"starts": "cu_seqlens", "live_rows_at": "live_rows", "read_rows_at": "live_rows", "step_at": "step"}


@operation({"starts": "cu_seqlens"}, writes=("out",))
def visible_keys(out: Array, lens: Array, cu_seqlens: Array, *, causal: bool = True, stream: Stream = None) -> None:
    """Counts the keys that each token of a batch sees. `check_states` takes the result as `lens`.

    Args:
        out: `[n] i32`; written: the keys of token t, at least 0; -1 for padding, a token that belongs to no sequence.
        lens: `[B]` i32 or i64, the keys of each sequence.
        cu_seqlens: `[B + 1]` i32 or i64, where the tokens of each sequence begin.
        causal: if True, the last token of a sequence sees all keys of the sequence, and each other token one key less
            than the token after it. If False, each token sees all keys.
        stream: the CUDA stream; None is torch's current one.

    Cost:
        Writes 4 bytes for each token, and finds its sequence by binary search.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> keys = np.empty(5, np.int32)
        >>> ops.visible_keys(keys, np.array([9, 1], np.int32), np.array([0, 2, 4], np.int32))
        >>> keys.tolist()
        [8, 9, 0, 1, -1]
    """
    rows_of(out, "out", ("n",))
    for name, given in (("lens", lens), ("cu_seqlens", cu_seqlens)):
        check_integers(given, name)
    _check_sequences(lens, cu_seqlens)
    launch(library.kernel("visible_keys"), (out, lens, cu_seqlens, int(bool(causal)), _halvings(cu_seqlens)), stream)


@operation(_NAMES, writes=("record", "flags"))
def check_states(out: Array, lse: Array | None = None, *, record: Array, flags: Array, values: Array | None = None, lens: Array | None = None,
                 limit: Array | None = None, live_rows: int | Array | None = None, lse_layout: LseLayout = "hn", seam: int = 0,
                 step: int | Array = 0, stream: Stream = None) -> None:
    """Looks for rows that break the contract of attention states (docs/Contract.md, C1 to C5).

    If a row has keys, the row and its lse must be finite. If it has no keys, they must be 0 and -inf. Without `lens`,
    an lse of -inf or +inf means no keys, and +inf beside finite numbers is accepted.

    Args:
        out: `[n, H, D] T`, T of bf16, f16, f32 or fp8 (e4m3fn, e5m2).
        lse: `[H, n] f32` (or `[n, H]`, by `lse_layout`), any strides; None: there is no lse.
        record: `[n, H] i64`.
        flags: `[16] i32`.
        values: `[n, H, 4] f32`: for each recorded row its lse, its largest magnitude, the expected lse and the expected
            largest magnitude (the limit for `check_states`). Other rows are not written. None: these values are not
            stored.
        lens: `[n]` i32 or i64, the keys of each token; -1 for padding, which is not checked. `visible_keys` computes
            them from the lengths of sequences.
        limit: `[1] f32`: no magnitude in `out` may be larger. Pass the largest magnitude in the V of the attention,
            rounded up. None: there is no limit.
        live_rows: the number of tokens to check: an int, 0 to n, or `[1] i32` on the device; None is all.
        lse_layout: "hn" or "nh".
        seam: the number of this place in the record, 0 to 2^24 - 1.
        step: the number of the step in the record: an int, or `[1] i32` on the device, which a captured graph follows.
        stream: the CUDA stream; None is torch's current one.

    Cost:
        Reads H (D E + 4) bytes for each checked token, with E bytes per element of T. If the count of live tokens is on
        the device and `out` has at most 2^20 elements, it reads all tokens.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> record, flags = np.zeros((3, 2), np.int64), np.zeros(16, np.int32)
        >>> out, lse = np.ones((3, 2, 8), np.float32), np.zeros((2, 3), np.float32)
        >>> out[2, 1, 5] = np.nan
        >>> ops.check_states(out, lse, lens=np.array([4, 0, 4], np.int32), record=record, flags=flags, seam=7)
        >>> ops.offences(record)[0], ops.checks.FAULTS[1], int(flags[1])
        (Offence(step=0, seam=7, fault='not empty', row=(1, 0)), 'NaN', 1)
    """
    n, heads, dim = rows_of(out, "out", ("n", "H", "D"))
    check_dtype(out, "out", _STATED)
    if lens is not None:
        check_integers(lens, "lens")
    seam, live, count, live_at, count_at = _common(seam, step, live_rows, n)
    lse_hn = None if lse is None else lse_as(lse, layout_of(lse_layout), "hn")
    live, live_at, read, read_at = _counts((n, heads, dim), live, live_at)
    launch(library.kernel("check_states"), (record, flags, out, lse_hn, lens, limit, seam, live, read, count, values, live_at, read_at, count_at), stream)


def _check_sequences(lens: Any, starts: Any) -> None:
    """Raises ArgumentError if `cu_seqlens` has more sequences than `lens`, or no entry."""
    count, bounds = rows_of(lens, "lens", ("B",))[0], rows_of(starts, "cu_seqlens", ("B + 1",))[0]
    if not is_symbol(bounds) and not is_symbol(count) and not 1 <= bounds <= count + 1:
        raise wrong("cu_seqlens", f"at most {count + 1} entries for the {count} sequences of lens, and 1 or more", bounds)


@operation(_NAMES, writes=("record", "flags"))
def check_merge(out: Array, lse: Array | None, sides: Sequence[Array], side_lses: Sequence[Array], *, record: Array, flags: Array, values: Array | None = None,
                tolerance: float = 2.0**-7, lse_tolerance: float = 1e-3, live_rows: int | Array | None = None, lse_layout: LseLayout = "hn",
                base: Base = "e", seam: int = 0, step: int | Array = 0, stream: Stream = None) -> None:
    """Looks for rows that are not the merge of their sides (docs/Contract.md, M1 to M5).

    A row whose sides are all empty must be 0, -inf. Any other row must have the merged lse and be the weighted mean of
    its sides, within the tolerances. Empty sides are ignored, whatever their payload holds.

    Args:
        out: `[n, H, D]` of bf16, f16 or f32.
        lse: `[H, n] f32` (or `[n, H]`, by `lse_layout`), any strides; None: there is no lse.
        sides: 1 to 8 arrays `[n, H, D]` of one dtype and equal strides, none of which is written by the merge.
        side_lses: as many lses in the layout of `lse`.
        record: `[n, H] i64`.
        flags: `[16] i32`.
        values: `[n, H, 4] f32`: for each recorded row its lse, its largest magnitude, the expected lse and the expected
            largest magnitude (the limit for `check_states`). Other rows are not written. None: these values are not
            stored.
        tolerance: the allowed error, relative to the largest magnitude of the row's sides that are not empty.
        lse_tolerance: the error of an lse x is at most `lse_tolerance * (1 + |x| / 8)`.
        live_rows: the number of tokens to check: an int, 0 to n, or `[1] i32` on the device; None is all.
        lse_layout: "hn" or "nh".
        base: the base of all lses.
        seam: the number of this place in the record, 0 to 2^24 - 1.
        step: the number of the step in the record: an int, or `[1] i32` on the device.
        stream: the CUDA stream; None is torch's current one.

    Cost:
        Reads the result and its sides once. If a row differs from the mean by more than the tolerance, its sides are
        read twice. If the count of live tokens is on the device and `out` has at most 2^20 elements, it reads all
        tokens.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> record, flags = np.zeros((3, 2), np.int64), np.zeros(16, np.int32)
        >>> x, lse = np.ones((3, 2, 8), np.float32), np.zeros((2, 3), np.float32)
        >>> ops.check_merge(x, lse, [x, x], [lse, lse], record=record, flags=flags)  # The lse is log(2) too small.
        >>> ops.checks.FAULTS[7], int(flags[7])
        ('another lse', 1)
    """
    n, heads, dim = rows_of(out, "out", ("n", "H", "D"))
    check_dtype(out, "out")
    for name, given in (("sides", sides), ("side_lses", side_lses)):
        if not isinstance(given, (list, tuple)) or not 1 <= len(given) <= _MOST_SIDES:
            raise wrong(name, f"1 to {_MOST_SIDES} arrays", len(given) if isinstance(given, (list, tuple)) else type(given).__qualname__)
    check_dtype(sides[0], "sides[0]")
    if len(sides) != len(side_lses):
        raise wrong("side_lses", f"as many arrays as sides, {len(sides)}", len(side_lses))
    layout = layout_of(lse_layout)
    seam, live, count, live_at, count_at = _common(seam, step, live_rows, n)
    live, live_at, read, read_at = _counts((n, heads, dim), live, live_at)
    kernel = in_base("check_merge", base_of("base", base))
    launch(kernel, (record, flags, out, None if lse is None else lse_as(lse, layout, "hn"), list(sides),
                    [lse_as(each, layout, "hn") for each in side_lses], _checked(tolerance, "tolerance"),
                    _checked(lse_tolerance, "lse_tolerance"), seam, live, read, count, values, live_at, read_at, count_at), stream)  # fmt: skip


@operation({**_NAMES, "table": "block_table"}, writes=("record", "flags"))
def check_attention(out: Array, lse: Array | None, q: Array, k: Array, v: Array, *, lens: Array, cu_seqlens: Array, record: Array, flags: Array, values: Array | None = None,
                    block_table: Array | None = None, first: Array | None = None, scale: float, v_scale: float = 1.0, causal: bool = True,
                    every: int = 1, step_size: int = 1, most_keys: int = 4096, tolerance: float = 2.0**-6, lse_tolerance: float = 2.0**-7,
                    live_rows: int | Array | None = None, lse_layout: LseLayout = "hn", base: Base = "e", seam: int = 0,
                    step: int | Array = 0, stream: Stream = None) -> None:
    """Computes the attention of some rows again and looks for rows that hold another state.

    This finds results that are finite but wrong, caused by a wrong base, scale, length or mask. It is slow, since it
    takes keys one after the other, in f32. Each step therefore checks only a few rows, different ones in each step, and
    no rows that see many keys.

    Args:
        out: `[n, H, D]` of bf16, f16 or f32.
        lse: `[H, n] f32` (or `[n, H]`, by `lse_layout`), any strides; None: there is no lse.
        q: `[n, H, E]` of bf16, f16, f32 or fp8.
        k: `[m, p, G, E]` of one of these dtypes: m pages of p keys, G a divisor of H. Without a table `[m, 1, G, E]`: the
            keys of all sequences, one sequence behind the other.
        v: `[m, p, G, D]`; for latent caches a part of k.
        lens: `[B]` i32 or i64, the keys of each sequence.
        cu_seqlens: `[B + 1]` i32 or i64, where the tokens of each sequence begin.
        record: `[n, H] i64`.
        flags: `[16] i32`.
        values: `[n, H, 4] f32`: for each recorded row its lse, its largest magnitude, the expected lse and the expected
            largest magnitude (the limit for `check_states`). Other rows are not written. None: these values are not
            stored.
        block_table: `[B, w]` i32 or i64.
        first: `[B]` as `lens`: the first key of each sequence, for a chunk of a context; None is 0.
        scale: the factor of the product of query and key, including the scales of both.
        v_scale: the factor of the values.
        causal: if True, the last token of a sequence sees all keys of the sequence, and each other token one key less
            than the token after it. If False, each token sees all keys.
        every: row t is checked if (t + step // step_size) % every is 0.
        step_size: the interval of the steps at which the check runs. All rows have their turn within `every` such
            steps.
        most_keys: rows that see more keys are not checked.
        tolerance: the allowed error, relative to the largest magnitude of the values.
        lse_tolerance: the error of an lse x is at most `lse_tolerance * (1 + |x| / 8)`.
        live_rows: the number of tokens to check: an int, 0 to n, or `[1] i32` on the device; None is all.
        lse_layout: "hn" or "nh".
        base: of the lse.
        seam: the number of this place in the record, 0 to 2^24 - 1.
        step: the number of the step in the record: an int, or `[1] i32` on the device.
        stream: the CUDA stream; None is torch's current one.

    Cost:
        Reads the keys and values of each checked row, one after the other.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> x, lens = np.ones((1, 1, 8), np.float32), np.array([1], np.int32)
        >>> found, flags = np.zeros((1, 1), np.int64), np.zeros(16, np.int32)
        >>> ops.check_attention(2 * x, None, x, x[None], x[None], lens=lens, cu_seqlens=np.array([0, 1], np.int32), scale=1.0,
        ...                     record=found, flags=flags)
        >>> ops.offences(found)
        [Offence(step=0, seam=0, fault='another value', row=(0, 0))]
    """
    n, heads, _ = rows_of(out, "out", ("n", "H", "D"))
    check_dtype(out, "out")
    for name, given in (("q", q), ("k", k), ("v", v)):
        check_dtype(given, name, _STATED)
    groups = rows_of(k, "k", ("m", "p", "G", "E"))[2]
    if not is_symbol(heads) and not is_symbol(groups) and (groups == 0 or heads % groups):
        raise wrong("k", f"a size of dim 2 that divides the {heads} heads of out", groups)
    for name, given in (("lens", lens), ("cu_seqlens", cu_seqlens)):
        check_integers(given, name)
    _check_sequences(lens, cu_seqlens)
    for name, number, least in (("most_keys", most_keys, 0), ("every", every, 1), ("step_size", step_size, 1)):
        check_integer(name, number, None if is_symbol(number) else least)
    seam, live, count, live_at, count_at = _common(seam, step, live_rows, n)
    lse_hn = None if lse is None else lse_as(lse, layout_of(lse_layout), "hn")
    kernel = in_base("check_attention", base_of("base", base))
    launch(kernel, (record, flags, out, lse_hn, q, k, v, lens, cu_seqlens, block_table, first, scale, v_scale, int(bool(causal)),
                    most_keys, _checked(tolerance, "tolerance"), _checked(lse_tolerance, "lse_tolerance"), every,
                    step_size, _halvings(cu_seqlens), seam, live, count, values, live_at, count_at), stream)  # fmt: skip


@operation({**_NAMES, "table": "block_table"}, writes=("record", "flags"))
def check_blocks(cache: Array, block_table: Array, lens: Array, *, record: Array, flags: Array, whole: bool = False,
                 live_rows: int | Array | None = None, seam: int = 0, step: int | Array = 0, stream: Stream = None) -> None:
    """Looks for NaN and infinities in the blocks of a paged cache that the live entries of a table name.

    An entry is live if the sequence reaches its page. Entries outside the cache are not read: `check_metadata` finds them.

    Args:
        cache: `[m, p, R] T`, T of bf16, f16, f32 or fp8 (e4m3fn, e5m2): m pages of p rows.
        block_table: `[B, w]` i32 or i64.
        lens: `[B]` i32 or i64, the rows of each sequence.
        record: `[B, w] i64`.
        flags: `[16] i32`.
        whole: checks all rows of the last page, also those past the sequence's end. An attention kernel that masks by
            multiplication propagates NaN from there (docs/Contract.md, C4).
        live_rows: the number of sequences to check: an int, 0 to B, or `[1] i32` on the device; None is all.
        seam: the number of this place in the record, 0 to 2^24 - 1.
        step: the number of the step in the record: an int, or `[1] i32` on the device.
        stream: the CUDA stream; None is torch's current one.

    Cost:
        Reads the rows that it checks.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> cache, table = np.ones((4, 2, 8), np.float32), np.array([[1, 3]], np.int32)
        >>> cache[3, 1] = np.nan
        >>> found, flags = np.zeros((1, 2), np.int64), np.zeros(16, np.int32)
        >>> ops.check_blocks(cache, table, np.array([3], np.int32), record=found, flags=flags)
        >>> ops.check_blocks(cache, table, np.array([4], np.int32), record=found, flags=flags, step=1)
        >>> ops.offences(found)
        [Offence(step=1, seam=0, fault='NaN in a block', row=(0, 1))]
    """
    rows_of(cache, "cache", ("m", "p", "R"))
    check_dtype(cache, "cache", _STATED)
    check_integers(block_table, "block_table")
    check_integers(lens, "lens")
    sequences = rows_of(block_table, "block_table", ("B", "w"))[0]
    seam, live, count, live_at, count_at = _common(seam, step, live_rows, sequences)
    launch(library.kernel("check_blocks"), (record, flags, cache, block_table, lens, int(bool(whole)), seam, live, count, live_at, count_at), stream)


@operation({**_NAMES, "table": "block_table", "expected": "expected_lens"}, writes=("record", "flags"))
def check_metadata(lens: Array, *, record: Array, flags: Array, pages: int, page_size: int, expected_lens: Array | None = None,
                   cu_seqlens: Array | None = None, slots: Array | None = None, block_table: Array | None = None,
                   live_rows: int | Array | None = None, seam: int = 0, step: int | Array = 0, stream: Stream = None) -> None:
    """Looks for lengths below 0 or other than expected, offsets that fall, slots outside the cache and live entries of a table outside it.

    Args:
        lens: `[r]` i32 or i64, the lengths of requests.
        record: `[e, 1] i64`, e at least the number of requests and of tokens: entry i is about request i and token i.
        flags: `[16] i32`.
        pages: the number of pages in the cache.
        page_size: the tokens of a page.
        expected_lens: `[r]` i32 or i64: the lengths on the host, if `lens` belongs to a captured graph.
        cu_seqlens: `[b + 1]` i32 or i64.
        slots: `[t]` i64 or i32; -1 is none.
        block_table: `[b, w]`, of the dtype of `expected_lens` if both are given.
        live_rows: the number of requests to check: an int, 0 to e, or `[1] i32` on the device; None is all.
        seam: the number of this place in the record, 0 to 2^24 - 1.
        step: the number of the step in the record: an int, or `[1] i32` on the device.
        stream: the CUDA stream; None is torch's current one.

    Cost:
        Reads the arrays once.

    Raises:
        ArgumentError: an argument does not fit; nothing was launched then.

    Example:
        >>> found, flags = np.zeros((3, 1), np.int64), np.zeros(16, np.int32)
        >>> ops.check_metadata(np.array([5, -1], np.int32), slots=np.array([7, 8, 63]), pages=4, page_size=16, record=found, flags=flags)
        >>> [offence.fault for offence in ops.offences(found)]
        ['negative length']
    """
    requests = rows_of(lens, "lens", ("r",))[0]
    for name, given in (("lens", lens), ("expected_lens", expected_lens), ("cu_seqlens", cu_seqlens), ("slots", slots), ("block_table", block_table)):
        if given is not None:
            check_integers(given, name)
    for name, number, least in (("pages", pages, 0), ("page_size", page_size, 1)):
        check_integer(name, number, None if is_symbol(number) else least)
    entries = rows_of(record, "record", ("e", "1"))[0]
    for name, given in (("lens", lens), ("slots", slots)):
        if given is not None and not is_symbol(entries) and not is_symbol(given.shape[0]) and given.shape[0] > entries:  # type: ignore[attr-defined]
            raise wrong("record", f"at least {given.shape[0]} entries, as many as {name} has", entries)  # type: ignore[attr-defined]
    seam, live, count, live_at, count_at = _common(seam, step, live_rows, requests)
    launch(library.kernel("check_metadata"),
           (record, flags, lens, expected_lens, cu_seqlens, slots, block_table, pages, page_size, seam, live, count, live_at, count_at), stream)  # fmt: skip
