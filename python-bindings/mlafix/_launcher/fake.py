"""Checks calls whose tensors have no memory: torch's fake and meta tensors.

Rules and messages equal those of the runtime (python-bindings/runtime/Args.cpp, lib/Runtime/Check.cpp), as far as they
depend on shapes, dtypes and devices. A size may be a torch symbol. A comparison of such sizes becomes a guard of the
program that torch traces. If torch does not know a size yet, the traced program makes the comparison when it runs.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import ArgumentError
from .arrays import SPELLINGS

_NAMES = {spelling: name for name, spelling in SPELLINGS.items()}
_HALVES = "f4e2m1"  # two elements per byte


def holds(condition: Any) -> bool:
    """True if a condition on sizes holds. If torch does not know the sizes yet, returns True and makes the traced
    program check the condition."""
    if isinstance(condition, bool):
        return condition
    import torch
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    try:
        return bool(condition)
    except GuardOnDataDependentSymNode:
        torch._check(condition)
        return True


class Check:
    """Checks the arguments of one call against the signature of its kernel.

    Args:
        kernel: the kernel's name.
        fixed: names that are bound already: {"K": "2"}.
        views: the order of dims for arguments that are passed in another layout: dim i of the kernel is dim
            `views[name][i]` of the array.
    """

    def __init__(self, kernel: str, fixed: Mapping[str, str], views: Mapping[str, Sequence[int]]) -> None:
        self.kernel, self.fixed, self.views = kernel, fixed, views
        # Sizes of dims, dtypes of dtype variables, and the device. Each comes with the argument that determined it.
        self.sizes: dict[str, tuple[Any, str]] = {}
        self.dtypes: dict[str, tuple[str, str]] = {}
        self.device: tuple[Any, str] | None = None

    def argument(self, argument: Mapping[str, Any], value: Any) -> None:
        """Checks one argument against its entry in the signature. Raises ArgumentError."""
        if argument["kind"] == "scalar":
            return
        if value is None:
            if not argument["optional"]:
                self._fail(argument, f"expected a tensor of dtype {argument.get('dtype_name', argument['dtype'])}, got None")
            return
        for one in value if isinstance(value, (list, tuple)) else (value,):
            self._tensor(argument, one)

    def _tensor(self, argument: Mapping[str, Any], value: Any) -> None:
        shape, strides = list(value.shape), list(value.stride())
        dims = argument["dims"][1:] if argument["kind"] == "list" else argument["dims"]
        fixed = argument["shape"][1:] if argument["kind"] == "list" else argument["shape"]
        if not shape and len(dims) == 1:  # a tensor without dims counts as a row of one element
            shape, strides = [1], [1]
        if len(shape) != len(dims):
            self._fail(argument, f"expected {len(dims)} dims, got {len(shape)}")
        view = self.views.get(argument["name"])
        if view:
            shape, strides = [shape[i] for i in view], [strides[i] for i in view]
        self._on_device(argument, value.device)
        if self._dtype(argument, value) == _HALVES:
            shape[-1] *= 2
        for i, (name, size) in enumerate(zip(dims, shape)):
            self._size(argument, i, name, fixed[i], size)
        if argument["strides"][-1] == 1 and type(shape[-1]) is type(strides[-1]) is int and shape[-1] > 1 and strides[-1] != 1:
            self._fail(argument, f'expected stride 1 in dim {len(dims) - 1} ("{dims[-1]}"), got {strides[-1]}')

    def _on_device(self, argument: Mapping[str, Any], device: Any) -> None:
        if self.device is None:
            self.device = device, argument["name"]
        elif device != self.device[0]:
            self._fail(argument, f'expected a tensor on {self.device[0]}, as argument "{self.device[1]}", got one on {device}')

    def _dtype(self, argument: Mapping[str, Any], value: Any) -> str:
        """Checks the dtype of a tensor, and returns the dtype of its elements."""
        spelling = str(value.dtype).removeprefix("torch.")
        got = _NAMES.get(spelling)
        if got is None:
            self._fail(argument, f"expected a tensor of dtype {argument.get('dtype_name') or argument['dtype']}, got dtype {spelling}")
        variable = argument.get("dtype_name")
        if variable:
            expected, other = self.dtypes.setdefault(variable, (got, argument["name"]))
            if got != expected:
                self._fail(argument, f'expected dtype {expected}, as in argument "{other}", got {got}')
            return got
        wanted: str = argument["dtype"]
        stands_for = {("u8", _HALVES): _HALVES}
        if argument["access"] == "read":
            stands_for["bool", "u8"] = "u8"
        if stands_for.get((got, wanted), got) != wanted:
            self._fail(argument, f"expected dtype {wanted}, got {got}")
        return wanted

    def _size(self, argument: Mapping[str, Any], dim: int, name: str, constant: int, size: Any) -> None:
        if constant >= 0:
            if not holds(size == constant):
                self._fail(argument, f'expected size {constant} in dim {dim} ("{name}"), got {size}')
        elif name and not name.startswith("("):
            value = self.fixed.get(name)
            # A kernel is compiled for the sizes of upper-case dims, which must not be 0.
            if value is None and name not in self.sizes and name[0].isupper() and type(size) is int and size < 1:
                self._fail(argument, f'expected a size of at least 1 in dim {dim} ("{name}"), got {size}')
            expected, other = (int(value), "") if value is not None and value.isdigit() else self.sizes.setdefault(name, (size, argument["name"]))
            if not holds(size == expected):
                whose = f', as in argument "{other}"' if other else ""
                self._fail(argument, f'expected size {expected} in dim {dim} ("{name}"){whose}, got {size}')

    def products(self, arguments: Sequence[Mapping[str, Any]], values: Sequence[Any]) -> None:
        """Checks dims that are products of two factors. Call it after `argument` has seen all arguments. Raises
        ArgumentError.

        If a size is a symbol, only the launch checks the product, because a guard on divisibility would not help the
        compiled program.
        """
        found = [(argument, i, dim[1:-1].split(), value.shape[i]) for argument, value in zip(arguments, values) if value is not None
                 for i, dim in enumerate(argument.get("dims", ())) if dim.startswith("(") and argument["kind"] == "tensor"]  # fmt: skip
        for _ in range(len(found) + 1):  # a factor found here may complete another product
            for argument, i, factors, size in found:
                if self._is_halved(argument, i):
                    size = size * 2
                self._product(argument, i, factors, size)

    def _is_halved(self, argument: Mapping[str, Any], dim: int) -> bool:
        return bool(argument["dtype"] == _HALVES and dim == len(argument["dims"]) - 1)

    def _product(self, argument: Mapping[str, Any], dim: int, factors: Sequence[str], size: Any) -> None:
        sizes = [self._factor(factor) for factor in factors]
        if type(size) is not int or any(factor is not None and type(factor) is not int for factor in sizes) or sizes == [None, None]:
            return
        if None not in sizes:
            if sizes[0] * sizes[1] != size:
                self._fail(argument, f'expected size {sizes[0]} * {sizes[1]} in dim {dim} ("({" ".join(factors)})"), got {size}')
            return
        missing = sizes.index(None)
        known = sizes[1 - missing]
        if size < 1 or size % known:
            self._fail(argument, f'expected a multiple of {known} in dim {dim} ("({" ".join(factors)})"), got {size}')
        self.sizes[factors[missing]] = size // known, argument["name"]

    def _factor(self, name: str) -> Any:
        text = self.fixed.get(name, name)
        return int(text) if text.isdigit() else self.sizes.get(name, (None,))[0]

    def _fail(self, argument: Mapping[str, Any], message: str) -> None:
        raise ArgumentError(f'kernel "{self.kernel}": argument "{argument["name"]}": {message}')


@contextlib.contextmanager
def addressed(values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Replaces tensors without memory by plain tensors of the same shapes, strides and dtypes, for a call that launches
    nothing.

    The addresses of the plain tensors are distinct but refer to no memory. Yields an empty tuple if a size is a torch
    symbol.
    """
    import torch

    made: dict[int, torch.Tensor] = {}
    end = 1 << 20

    def plain(value: Any) -> Any:
        nonlocal end
        if isinstance(value, (list, tuple)):
            return [plain(one) for one in value]
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in made:  # a tensor that is passed twice keeps a single replacement
            offset = value.storage_offset()
            last = sum((size - 1) * stride for size, stride in zip(value.shape, value.stride())) if value.numel() else 0
            count = (offset + last + 1) * value.element_size()
            buffer = (ctypes.c_uint8 * count).from_address(end)
            end += -(-count // 4096) * 4096
            whole = torch.frombuffer(buffer, dtype=torch.uint8).view(value.dtype)
            made[id(value)] = whole.as_strided(tuple(value.shape), value.stride(), offset)
        return made[id(value)]

    tensors = [one for value in values for one in (value if isinstance(value, (list, tuple)) else (value,)) if isinstance(one, torch.Tensor)]
    if not all(type(size) is int for tensor in tensors for size in (*tensor.shape, *tensor.stride(), tensor.storage_offset())):
        yield ()
        return
    with torch._C._DisableTorchDispatch():
        yield tuple(plain(value) for value in values)


def check(kernel: str, arguments: Sequence[Mapping[str, Any]], values: Sequence[Any], fixed: Mapping[str, str] | None = None,
          views: Mapping[str, Sequence[int]] | None = None) -> dict[str, str]:  # fmt: skip
    """Checks a call whose tensors have no memory, and returns the dtypes of its dtype variables. Raises ArgumentError.

    Args:
        kernel: the kernel's name.
        arguments: the arguments of its signature, in order.
        values: one value per argument.
        fixed: see `Check`.
        views: see `Check`.
    """
    call = Check(kernel, fixed or {}, views or {})
    for argument, value in zip(arguments, values):
        call.argument(argument, value)
    call.products(arguments, values)
    return {name: dtype for name, (dtype, _) in call.dtypes.items()}
