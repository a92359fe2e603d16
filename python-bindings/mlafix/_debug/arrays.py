"""Wraps the tensors of a call that Kernel.debug follows. Copies them, and makes outputs that are filled with values
that rows are unlikely to write."""

from __future__ import annotations

import math
from typing import Any

from ..errors import ArgumentError

INTEGERS = ("i8", "u8", "i32", "i64", "bool")


def make_array(arg: dict[str, Any], value: Any) -> DebugArray:
    """Wraps the argument `value` in a DebugArray, or in a subclass for a list or a swizzled tensor. `arg` is the
    argument's entry in the signature."""
    if arg["kind"] == "list":
        return _List(arg, value)
    return _Tiles(arg, value) if "swizzle" in arg else DebugArray(arg, value)


def number_of(value: Any) -> object:
    """Converts a scalar to a value for the compiler's JSON. Infinities and NaN become "inf", "-inf" and "nan"."""
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, float) and not math.isfinite(number):
        return "nan" if math.isnan(number) else "inf" if number > 0 else "-inf"
    return number


class DebugArray:
    """A tensor of a call: a numpy array or a torch tensor.

    Args:
        arg: the argument's entry in the signature.
        value: the array or tensor that was passed.
    """

    def __init__(self, arg: dict[str, Any], value: Any) -> None:
        self.arg, self.value = arg, value
        kind = type(value).__module__.partition(".")[0]
        if kind not in ("numpy", "torch"):
            raise ArgumentError(
                f'argument "{arg["name"]}": expected a numpy array or a torch tensor to debug with, got {type(value).__name__}'
            )
        self.is_torch = kind == "torch"
        self.per_item = 2 if arg["dtype"] == "f4e2m1" else 1  # elements per item of the array

    @property
    def sizes(self) -> list[int]:
        """The size of each dim, in elements."""
        sizes = [int(size) for size in self.value.shape]
        if self.per_item > 1:
            sizes[-1] *= self.per_item
        return sizes

    def _like(self, value: Any) -> DebugArray:
        return type(self)(self.arg, value)

    def elements(self) -> list[object]:
        """Returns all elements in row-major order, as values for the compiler's JSON."""
        host = self.value.detach().cpu() if self.is_torch else self.value
        if self.arg["dtype"] not in INTEGERS:
            host = host.float() if self.is_torch else host.astype("float32")
        return [number_of(number) for number in host.reshape(-1).tolist()]

    def copy(self) -> DebugArray:
        return self._like(self.value.clone() if self.is_torch else self.value.copy(order="K"))

    def poisoned(self, which: int) -> DebugArray:
        """Returns a new tensor of the same shape in which all elements have the same bits. If `which` is 0, all bits
        are set: NaN, or -1. If it is 1, all bits but the sign are set: NaN, or the largest integer. Bools are false for
        0 and true for 1."""
        if self.is_torch:
            import torch

            made = torch.empty_like(self.value, requires_grad=False)
        else:
            import numpy

            made = numpy.empty_like(self.value)
        self._like(made)._bits()[...] = self._poison(which)
        return self._like(made)

    def _poison(self, which: int) -> int:
        bits = 8 * int(self.value.itemsize if not self.is_torch else self.value.element_size())
        if self.arg["dtype"] == "bool":
            return which
        return -1 if which == 0 else (1 << (bits - 1)) - 1

    def _bits(self) -> Any:
        """Returns a view of the array as signed integers of the same element size."""
        if self.is_torch:
            import torch

            integers = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
            return self.value.view(integers[self.value.element_size()])
        return self.value.view(f"i{self.value.itemsize}")

    def is_poison(self, which: int) -> Any:
        """Returns a numpy mask: true for elements that still have the value that `poisoned(which)` gave them."""
        mask = self._bits() == self._poison(which)
        return mask.cpu().numpy() if self.is_torch else mask


def _strided(array: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """Calls numpy's `as_strided` on the array viewed as unsigned integers, since `as_strided` does not work on the
    dtype ml_dtypes.float8_e5m2."""
    import numpy

    return numpy.lib.stride_tricks.as_strided(array.view(f"u{array.itemsize}"), shape, strides).view(array.dtype)


class _Tiles(DebugArray):
    """A tensor that is stored in tiles of 128 x 4 or 8 x 4 elements (docs/Dialect.md). Its memory has rows * pitch
    elements."""

    @property
    def _pitch(self) -> int:
        return int(self.value.stride(0) if self.is_torch else self.value.strides[0] // self.value.itemsize)

    def _memory(self) -> Any:
        """Returns a view of the tensor's whole memory, padding included, with one dim."""
        count = self._pitch * self.sizes[0] if math.prod(self.sizes) else 0
        if self.is_torch:
            return self.value.as_strided((count,), (1,))
        return _strided(self.value, (count,), (self.value.itemsize,))

    def _over(self, memory: Any) -> DebugArray:
        """Returns a tensor with this tensor's shape and strides over `memory`."""
        if self.is_torch:
            return self._like(memory.as_strided(self.value.shape, self.value.stride()))
        return self._like(_strided(memory, self.value.shape, self.value.strides))

    def _in_order(self, memory: Any) -> Any:
        """Reorders a numpy array from memory order to index order."""
        import numpy

        rows = self.sizes[0]
        r = numpy.arange(rows)[:, None]
        c = numpy.arange(math.prod(self.sizes[1:]))
        if self.arg["swizzle"] == "8x4":
            places = (r // 8 * (self._pitch // 4) + c // 4) * 32 + r % 8 * 4 + c % 4
        else:
            places = (r // 128 * (self._pitch // 4) + c // 4) * 512 + r % 32 * 16 + r % 128 // 32 * 4 + c % 4
        return memory[places].reshape(self.sizes) if places.size else memory.reshape(self.sizes)

    def elements(self) -> list[object]:
        flat = DebugArray(self.arg, self._memory()).elements()
        import numpy

        return list(self._in_order(numpy.array(flat, dtype=object)).reshape(-1))

    def copy(self) -> DebugArray:
        memory = self._memory()
        return self._over(memory.clone() if self.is_torch else memory.copy())

    def poisoned(self, which: int) -> DebugArray:
        return self._over(DebugArray(self.arg, self._memory()).poisoned(which).value)

    def is_poison(self, which: int) -> Any:
        return self._in_order(DebugArray(self.arg, self._memory()).is_poison(which))


class _List(DebugArray):
    """A read-only list of tensors. Its sizes are the number of tensors, then the sizes of each tensor."""

    def __init__(self, arg: dict[str, Any], value: Any) -> None:
        self.arg, self.value = arg, value
        if not isinstance(value, (list, tuple)):
            raise ArgumentError(f'argument "{arg["name"]}": expected a list of tensors, got {type(value).__name__}')
        if not 1 <= len(value) <= arg["most"]:
            raise ArgumentError(f'argument "{arg["name"]}": expected 1 to {arg["most"]} tensors, got {len(value)}')
        self._ones = [DebugArray(arg, one) for one in value]
        first = self._ones[0].sizes
        for i, one in enumerate(self._ones):
            if one.sizes != first:
                raise ArgumentError(f'argument "{arg["name"]}": expected sizes {first}, those of tensor 0, got {one.sizes} for tensor {i}')

    @property
    def sizes(self) -> list[int]:
        return [len(self._ones), *self._ones[0].sizes]

    def elements(self) -> list[object]:
        return [number for one in self._ones for number in one.elements()]
