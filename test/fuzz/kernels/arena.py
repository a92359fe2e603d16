"""A buffer that holds all tensors of a call, with poison between and around their elements."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from contents import dtype_of, shape_of
from formats import NUMPY, pack, unpack
from syntax import FP4, Call, Kernel, Layout, Tensor

_MARGIN = 64


@dataclasses.dataclass
class View:
    """The place of a tensor in the buffer. The offset is in bytes. Strides are in elements; for f4e2m1, in bytes of two
    elements each.

    Args:
        dtype: the dtype of the memory: "u8" if the elements are f4e2m1, else the same as `elements`.
        elements: the dtype of the elements.
        tiles: 128 or 8 if the elements lie in tiles of that many rows and 4 columns. 0 without tiles.
    """

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    elements: str
    tiles: int = 0

    def of(self, buffer: np.ndarray) -> np.ndarray:
        """Returns the tensor as the array that a kernel gets as its argument."""
        size = NUMPY[self.dtype].itemsize
        return np.ndarray(self.shape, NUMPY[self.dtype], buffer, self.offset, tuple(s * size for s in self.strides))

    def get(self, buffer: np.ndarray) -> np.ndarray:
        """Returns the elements of the tensor."""
        if self.tiles:
            block, places = self._block(buffer)
            return block[places]
        return unpack(self.of(buffer)) if self.elements != self.dtype else self.of(buffer)

    def put(self, buffer: np.ndarray, array: np.ndarray) -> None:
        if self.tiles:
            block, places = self._block(buffer)
            block[places] = array
            return
        given = pack(array) if self.elements != self.dtype else array
        first = tuple(slice(0, 1) if s == 0 else slice(None) for s in self.strides)
        self.of(buffer)[first] = given[first]

    def restore(self, buffer: np.ndarray, before: np.ndarray, touched: np.ndarray) -> None:
        """Copies the elements that the mask `touched` marks from the buffer `before`."""
        if self.tiles:
            block, places = self._block(buffer)
            block[places[touched]] = self._block(before)[0][places[touched]]
        elif 0 not in self.strides:
            where = touched[..., ::2] | touched[..., 1::2] if self.elements != self.dtype else touched
            np.copyto(self.of(buffer), self.of(before), where=where)

    def _block(self, buffer: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns all elements of the tiles as one array, padding included, and the index of each of the tensor's
        elements in this array.
        Tiles of 128 rows have the layout of cuBLAS's scales, tiles of 8 rows FlashInfer's layout_8x4."""
        rows, pitch, columns = self.shape[0], self.strides[0], int(np.prod(self.shape[1:]))
        row, column = np.arange(rows)[:, None], np.arange(columns)[None]
        inside = row % 32 * 4 + row % 128 // 32 if self.tiles == 128 else row % 8
        places = inside * 4 + column % 4 + (row // self.tiles * (pitch // 4) + column // 4) * self.tiles * 4
        return np.ndarray((rows * pitch,), NUMPY[self.dtype], buffer, self.offset), places.reshape(self.shape)


def _strides(shape: tuple[int, ...], layout: Layout | None, may_reverse: bool) -> tuple[tuple[int, ...], int, int]:
    """Returns the strides, the offset of the tensor's first element, and the size of its memory, all in elements."""
    rank = len(shape)
    layout = layout or Layout(list(range(rank)))
    strides = [0] * rank
    step = layout.last_stride
    for place, axis in enumerate(reversed(layout.order)):
        if axis in layout.broadcast:
            continue
        strides[axis] = step
        step *= max(shape[axis], 1)
        if place == 0:
            step += layout.gap
    before = 0
    for axis in layout.reverse if may_reverse else []:
        if axis not in layout.broadcast:
            before += (max(shape[axis], 1) - 1) * strides[axis]
            strides[axis] = -strides[axis]
    span = 1 + sum((max(n, 1) - 1) * abs(s) for n, s in zip(shape, strides))
    return tuple(strides), before, span


def _tiled(shape: tuple[int, ...], layout: Layout | None) -> tuple[tuple[int, ...], int, int]:
    """Does the work of `_strides` for tensors in tiles. Columns are contiguous, and the stride of rows is a multiple of
    4."""
    columns = [int(np.prod(np.maximum(shape[axis + 1 :], 1))) for axis in range(1, len(shape))]
    pitch = (int(np.prod(np.maximum(shape[1:], 1))) + 3) // 4 * 4 + (layout.gap if layout else 0)
    return (pitch, *columns), 0, shape[0] * pitch


class Arena:
    """The buffer that holds all tensors of a call.

    Args:
        kernel, call: the kernel and the call whose tensors it holds.
        may_reverse: True if strides may be negative, which torch does not support.
    """

    def __init__(self, kernel: Kernel, call: Call, may_reverse: bool) -> None:
        self.views: dict[str, View] = {}
        end = _MARGIN
        shared = dict(call.aliases)
        for tensor in sorted(kernel.tensors, key=lambda t: t.name in shared):
            if tensor.name in call.absent:
                continue
            if tensor.name in shared:
                self.views[tensor.name] = self.views[shared[tensor.name]]
                continue
            end = self._place(tensor, call, end, may_reverse)
        for name in call.held:
            self.views[name] = View("i32", (1,), (1,), (end + 63) // 64 * 64, "i32")
            end = self.views[name].offset + 4
        self.size = (end + _MARGIN + 63) // 64 * 64

    def _place(self, tensor: Tensor, call: Call, end: int, may_reverse: bool) -> int:
        elements, shape, layout = dtype_of(tensor, call), shape_of(tensor, call), call.layouts.get(tensor.name)
        dtype = "u8" if elements == FP4 else elements
        if elements == FP4:
            shape = (*shape[:-1], shape[-1] // 2)
        strides, before, span = _tiled(shape, layout) if tensor.tiles else _strides(shape, layout, may_reverse)
        size = NUMPY[dtype].itemsize
        start = (end + 63) // 64 * 64 + (layout.offset if layout else 0) * size
        self.views[tensor.name] = View(dtype, shape, strides, start + before * size, elements, tensor.tiles)
        return start + span * size

    def fill(self, contents: dict[str, np.ndarray], seed: int) -> np.ndarray:
        """Returns the bytes of the buffer before the call."""
        rng = np.random.default_rng(seed)
        buffer = np.full(self.size, 0xFF, np.uint8) if seed % 3 else np.frombuffer(rng.bytes(self.size), np.uint8).copy()
        for name, view in self.views.items():
            view.put(buffer, contents[name])
        return buffer


def arguments(arena: Arena, kernel: Kernel, call: Call, view: Any, of_ranks: Any) -> list[Any]:
    """Returns a call's arguments. `view` makes an array from a View. For tensors with one part per rank, `of_ranks`
    makes the argument from the array of all parts."""

    def argument(tensor: Tensor) -> Any:
        if tensor.name not in arena.views:
            return None
        array = view(arena.views[tensor.name])
        return of_ranks(tensor, array) if tensor.of_ranks else list(array) if tensor.listed else array

    scalars = [view(arena.views[s.name]) if s.name in call.held else call.scalars[s.name] for s in kernel.scalars]
    return [*(argument(tensor) for tensor in kernel.tensors), *scalars]
