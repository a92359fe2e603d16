"""Converts scales to the form that kernels take: views over the caller's memory, and arguments for the padding of
tiles.

In the functions' parameters, `owner` is the name of the format, which errors contain, and `rows` is the shape
`[…, H, D]` of the scaled rows.
"""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple, Tuple, Union

import numpy

from .._launcher.arguments import wrong
from .._launcher.arrays import is_torch

TILE_COLUMNS = 4
_TILE_ROWS = {None: 0, "128x4": 128, "8x4": 8}
_BYTES_A_WORD = 4
_MOST_JOINED = 8  # the largest number of heads that may share a group; one lane holds the rows of all of them

Rows = Tuple[int, ...]

Padding = Union[Tuple[Any, ...], None]
"""The arguments of the kernel that clears the padding of scales in tiles; None if there is nothing to clear."""


class Groups(NamedTuple):
    """Scales of groups in the form that a kernel takes.

    Args:
        view: `[…, P, Q, G]`; `mlafix.kernels.scaling` says which scale is where.
        is_power: True if the scales are powers of two.
        pads: True if the last word of a row has padding bytes.
        joined: number of heads that share a group.
    """

    view: Any
    is_power: bool
    pads: bool = False
    joined: int = 1


def kind_of(scales: Any, owner: str) -> str:
    """Returns the name of the scales' dtype. Raises ArgumentError unless they are an array of numpy or torch, or one
    with views like numpy's."""
    if not hasattr(scales, "__dlpack__") or not hasattr(scales, "view"):
        raise wrong(f"{owner}.scales", "an array of numpy's or torch's", type(scales).__qualname__)
    return str(scales.dtype).removeprefix("torch.")


def _bytes_as(scales: Any, dtype: str) -> Any:
    """Returns a view of bytes, or of words of four bytes, as the one-byte dtype `dtype`."""
    if is_torch(scales):
        return scales.view(getattr(sys.modules["torch"], dtype))
    if dtype == "uint8":
        return scales.view(numpy.uint8)
    import ml_dtypes

    return scales.view(numpy.dtype(getattr(ml_dtypes, dtype)))


def of_blocks(scales: Any, owner: str, rows: Rows, size: int, dtype: str) -> Any:
    """Returns scales as `[…, H, 1, G]`. There is a scale of the one-byte dtype `dtype` for each block of `size`
    elements."""
    *lead, heads, dim = rows
    groups, rest = dim // size, dim % size  # torch's symbolic sizes have no divmod.
    kind, shape = kind_of(scales, owner), tuple(scales.shape)
    if kind not in (dtype, "uint8"):
        raise wrong(f"{owner}.scales", f"dtype {dtype} or uint8", kind)
    if rest or not groups:
        raise wrong(f"{owner}.scales", f"rows of a positive multiple of {size} elements, a scale for each {size}", f"rows of {dim}")
    if _groups(shape, rows) != groups:
        raise wrong(f"{owner}.scales", _expected(rows, f"G = D / {size} of D = {dim}"), shape)
    return _bytes_as(scales, dtype).reshape((*lead, heads, 1, groups))


def tile_rows(tiles: str | None) -> int:
    """Returns the number of rows of a tile, or 0 if scales lie in rows."""
    return _TILE_ROWS[tiles]


def in_tiles(scales: Any, owner: str, rows: Rows, size: int, dtype: str, height: int, first_row: int, clears: bool) -> tuple[Any, Padding]:
    """Returns scales of blocks in tiles of `height` rows and 4 columns as `[m, H, G]`, and if `clears`, the arguments that clear their padding."""
    *lead, heads, dim = rows
    kind = kind_of(scales, owner)
    if kind not in (dtype, "uint8", "int32"):
        raise wrong(f"{owner}.scales", f"dtype {dtype}, uint8 or int32 in tiles", kind)
    columns = heads * dim // size
    shape = tuple(scales.shape)
    if kind == "int32" and len(shape) == 2:
        shape = (shape[0], shape[1] * _BYTES_A_WORD)
    tokens, pitch = math.prod(lead), -(-columns // TILE_COLUMNS) * TILE_COLUMNS
    if dim % size:
        raise wrong(f"{owner}.scales", f"heads of a multiple of {size} elements, a scale for each {size}", f"heads of {dim}")
    if len(shape) != 2 or shape[1] != pitch or shape[0] % height:
        raise wrong(f"{owner}.scales", f"shape [m, {pitch}], m a multiple of {height}, in tiles (heads: {heads} x {dim} elements, groups: {size} elements)", shape)
    if not 0 <= first_row <= shape[0] - tokens:
        raise wrong(f"{owner}.first_row", f"a row from 0 to {shape[0] - tokens}, for {tokens} tokens in {shape[0]} rows", first_row)
    words = _contiguous_words(scales, owner) if kind == "int32" else scales
    view = _bytes_as(words, dtype)[:, :columns].reshape((shape[0], heads, dim // size))
    return view, (_bytes_as(words, "uint8"), height, first_row, tokens, columns) if clears else None


def _contiguous_words(scales: Any, owner: str) -> Any:
    """Returns words whose rows can be viewed as bytes. Such a view needs a contiguous last dim."""
    if scales.shape[1] == 1:  # The words may have any stride, since the dim that is added here is contiguous.
        return scales[:, 0, None]
    step = scales.stride(1) if is_torch(scales) else scales.strides[1] // _BYTES_A_WORD
    if step != 1:
        raise wrong(f"{owner}.scales", "stride 1 in the last dim for int32", step)
    return scales


def of_groups(scales: Any, owner: str, rows: Rows) -> Groups:
    """Infers the size of groups from the dtype and shape of `scales`, and returns them as `[…, P, Q, G]`."""
    *lead, heads, dim = rows
    kind, shape = kind_of(scales, owner), tuple(scales.shape)
    if kind == "int32":
        return _words(scales, owner, shape, rows)
    if kind not in ("float32", "float8_e8m0fnu"):
        raise wrong(f"{owner}.scales", "dtype float32, float8_e8m0fnu or int32", kind)
    is_power, groups = kind != "float32", _groups(shape, rows)
    if groups and dim % groups == 0:
        return Groups(scales.reshape((*lead, heads, 1, groups)), is_power)
    joined = _joined(shape, rows)
    if joined == 0:
        whole = f"or [{', '.join(map(str, lead))}, P], P groups of up to {_MOST_JOINED} whole heads"
        raise wrong(f"{owner}.scales", f"{_expected(rows, f'G a divisor of {dim}')}, {whole}", shape)
    return Groups(scales.reshape((*lead, heads // joined, 1, 1)), is_power, joined=joined)


def _joined(shape: tuple[int, ...], rows: Rows) -> int:
    """Returns the number of heads that share a scale of shape `[…, P]`. Returns 0 if the shape does not fit."""
    *lead, heads, _ = rows
    rest = shape[len(lead) :]
    if shape[: len(lead)] != tuple(lead) or len(rest) != 1 or not 0 < rest[0] < heads or heads % rest[0]:
        return 0
    joined = int(heads // rest[0])
    return joined if joined <= _MOST_JOINED else 0


def _expected(rows: Rows, what: str) -> str:
    *lead, heads, _ = rows
    before = ", ".join(map(str, lead))
    return f"shape [{before}, {heads}, G] or [{before}, {heads} * G], {what}"


def _groups(shape: tuple[int, ...], rows: Rows) -> int:
    """Returns the number of groups G in scales of this shape. Returns 0 if the shape does not fit."""
    *lead, heads, _ = rows
    if shape[: len(lead)] != tuple(lead):
        return 0
    rest = shape[len(lead) :]
    if len(rest) == 2 and rest[0] == heads:
        return rest[1]
    return rest[0] // heads if len(rest) == 1 and heads and rest[0] % heads == 0 else 0


def _words(scales: Any, owner: str, shape: tuple[int, ...], rows: Rows) -> Groups:
    # The number of words does not determine the number of groups, so this assumes groups of 128 elements, which engines
    # use.
    *lead, heads, dim = rows
    groups, rest = dim // 128, dim % 128
    words = -(-heads * groups // _BYTES_A_WORD)
    if rest or groups not in (1, 2, _BYTES_A_WORD):
        raise wrong(f"{owner}.scales", "heads of 128, 256 or 512 elements for scales of int32 (other heads take float32 or float8_e8m0fnu)", f"heads of {dim}")
    if shape != (*lead, words):
        raise wrong(f"{owner}.scales", f"shape [{', '.join(map(str, lead))}, {words}], a word for each 4 groups of 128", shape)
    # A view with another element size needs a contiguous last dim, so a dim is added.
    each = _bytes_as(scales[..., None], "float8_e8m0fnu")
    shared = _BYTES_A_WORD // groups
    return Groups(each.reshape((*lead, words, shared, groups)), True, bool(heads % shared != 0))
