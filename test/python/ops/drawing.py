"""Draws random arguments of calls: arrays with any offset in memory and any strides. Checks that a call changes only
the memory that it should write.

A drawer (drawn_merges.py, drawn_rows.py) draws one call of a function, makes it, and compares the results with contract.py.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from numerics import BF16, E4M3, F16, F32, poison, same_bits

try:
    import torch
except ImportError:  # torch is optional
    torch = None  # type: ignore[assignment]

PAYLOADS = (BF16, F16, F32)
INTEGERS = (np.dtype(np.int32), np.dtype(np.int64))
POISON = 0xFF


class Slot:
    """An array of a call. `given` is passed to the call and lies on its device; `values` are the initial contents."""

    def __init__(self, name: str, buffer: np.ndarray, view: np.ndarray, given: Any, whole: Any) -> None:
        self.name, self.buffer, self.view, self.given, self._whole = name, buffer, view, given, whole
        self.values = np.array(view)
        self._before = buffer.copy()
        self.is_written = False

    def fetch(self) -> np.ndarray:
        """Returns the current contents of the array."""
        if self._whole is not None:
            self.buffer[:] = self._whole.cpu().numpy()
        return np.array(self.view)

    def check_memory(self) -> None:
        """Raises AssertionError if a byte has changed that the call must not write."""
        after = self.fetch()
        if not self.is_written:
            assert np.array_equal(self.buffer, self._before), f"{self.name} is only read, and has changed"
            return
        with_before = self.view.copy()
        self.view[...] = self.values
        outside = np.array_equal(self.buffer, self._before)
        self.view[...] = with_before
        assert outside, f"memory beside {self.name} has changed"
        assert same_bits(after, with_before)


class Draw:
    """The random choices of one call.

    Args:
        seed: determines all choices.
        where: the kind of arrays, "numpy", "torch" or "cuda".

    `passed` collects the optional arguments that calls pass, as "function.argument".
    """

    def __init__(self, seed: Sequence[int], where: str = "numpy") -> None:
        self.rng = np.random.default_rng(seed)
        self.where = where
        self.slots: list[Slot] = []
        self.passed: set[str] = set()

    # -- Choices ------------------------------------------------------------------------------------------------------

    def one(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def yes(self, share: float = 0.5) -> bool:
        return bool(self.rng.random() < share)

    def size(self, most: int = 9) -> int:
        """Returns a random size: usually from 1 to `most`, sometimes one or zero."""
        return int(self.rng.integers(0, 2)) if self.yes(0.15) else int(self.rng.integers(1, most + 1))

    def integers(self, low: int, high: int, shape: Any = None) -> Any:
        return self.rng.integers(low, high, shape)

    def normal(self, *shape: int, scale: float = 1.0, dtype: np.dtype = F32) -> np.ndarray:
        with np.errstate(over="ignore"):
            return (self.rng.standard_normal(shape) * scale).astype(np.float32).astype(dtype)

    # -- Arrays -------------------------------------------------------------------------------------------------------

    def array(self, name: str, values: np.ndarray, *, row: bool = False, plain: bool = False) -> Slot:
        """Makes an array of a call anywhere in memory. With `row`, its last dim is contiguous; with `plain`, the whole
        array is."""
        values = np.asarray(values)
        strides, span = self._strides(values.shape, row, plain)
        offset, item = int(self.rng.integers(0, 9)), values.dtype.itemsize
        buffer = np.full((offset + span + 5) * item, POISON, np.uint8)
        bits = f"u{item}"
        view = np.lib.stride_tricks.as_strided(buffer.view(bits)[offset:], values.shape, [stride * item for stride in strides])
        flips = [slice(None, None, -1) if self.where == "numpy" and not plain and i < values.ndim - row and self.yes(0.1) else slice(None)
                 for i in range(values.ndim)]  # fmt: skip
        view = view[tuple(flips)] if values.ndim else view
        view[...] = np.ascontiguousarray(values).view(bits).reshape(values.shape)
        view = view.view(values.dtype)
        given, whole = self._put(buffer, view, offset, strides)
        slot = Slot(name, buffer, view, given, whole)
        self.slots.append(slot)
        return slot

    def _strides(self, shape: tuple[int, ...], row: bool, plain: bool) -> tuple[list[int], int]:
        """Returns strides for dims in random order with random gaps, and the number of elements that they span. Strides
        count elements."""
        order = list(reversed(range(len(shape))))
        if not plain and self.yes(0.6):
            inner = order[:1] if row else []
            others = [dim for dim in order if dim not in inner]
            order = [*inner, *(others[i] for i in self.rng.permutation(len(others)))]
        strides, span = [0] * len(shape), 1
        for place, dim in enumerate(order):
            gap = 0 if plain or (row and place == 0) or not self.yes(0.3) else int(self.rng.integers(1, 9))
            strides[dim] = span + gap
            span = strides[dim] * max(shape[dim] - 1, 0) + span
            if plain:
                span = strides[dim] * max(shape[dim], 1)
        return strides, span

    def _put(self, buffer: np.ndarray, view: np.ndarray, offset: int, strides: list[int]) -> tuple[Any, Any]:
        if self.where == "numpy":
            return view, None
        whole = torch.from_numpy(buffer)
        if self.where == "cuda":
            whole = whole.cuda()
        typed = whole.view(_torch_dtype(view.dtype))
        return typed.as_strided(view.shape, strides, offset), whole if self.where == "cuda" else None

    def output(self, name: str, shape: tuple[int, ...], dtype: Any, *, row: bool = True, plain: bool = False) -> Slot:
        """Makes an array that a call fills. Its initial contents are poison."""
        slot = self.array(name, poison(shape, np.dtype(dtype)), row=row, plain=plain)
        slot.is_written = True
        return slot

    def updated(self, name: str, values: np.ndarray, *, row: bool = False, plain: bool = False) -> Slot:
        """Makes an array that a call reads and writes."""
        slot = self.array(name, values, row=row, plain=plain)
        slot.is_written = True
        return slot

    def plain_of(self, values: np.ndarray) -> Any:
        """Copies the values to a contiguous array on the call's device. The array is meant for another call than the
        drawn one, so its memory is not checked."""
        if self.where == "numpy":
            return values.copy()
        if not values.size:
            return torch.empty(values.shape, dtype=_torch_dtype(values.dtype), device="cuda" if self.where == "cuda" else "cpu")
        flat = torch.from_numpy(np.ascontiguousarray(values).view(np.uint8).reshape(-1).copy())
        flat = flat.cuda() if self.where == "cuda" else flat
        return flat.view(_torch_dtype(values.dtype)).view(values.shape)

    def numpy_of(self, made: Any) -> np.ndarray:
        """Returns the contents of an array that a call has allocated, as a numpy array."""
        if isinstance(made, np.ndarray):
            return made
        host = made.detach().cpu().contiguous()
        dtype = next(numpy for numpy, theirs in _torch_dtypes().items() if theirs == host.dtype)
        return host.view(-1).view(torch.uint8).numpy().view(dtype).reshape(host.shape) if host.numel() else np.empty(host.shape, dtype)

    # -- The call -----------------------------------------------------------------------------------------------------

    def call(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Makes a call with the arrays of slots, and checks the memory of all slots. Arguments whose value is None are
        not passed."""
        kwargs = {key: value for key, value in kwargs.items() if value is not None}
        self.passed |= {f"{name}.{key}" for key in kwargs}
        result = function(*map(_given, args), **{key: _given(value) for key, value in kwargs.items()})
        for slot in self.slots:
            slot.check_memory()
        return result

    def result(self, made: Any, slot: Slot | None) -> np.ndarray:
        """Returns an output as a numpy array. If a slot was passed for it, the call must have returned the slot's
        array."""
        if slot is None:
            return self.numpy_of(made)
        assert made is slot.given, f"{slot.name} is not what is returned"
        return slot.fetch()


def _given(value: Any) -> Any:
    if isinstance(value, Slot):
        return value.given
    return [_given(one) for one in value] if isinstance(value, list) else value


def _torch_dtypes() -> dict[np.dtype, Any]:
    import ml_dtypes

    names = {name: np.dtype(name) for name in ("float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8", "bool")}
    low = {name: np.dtype(getattr(ml_dtypes, name)) for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")}
    return {dtype: getattr(torch, name) for name, dtype in {**names, **low}.items()}


def _torch_dtype(dtype: np.dtype) -> Any:
    return _torch_dtypes()[np.dtype(dtype)]


__all__ = ["BF16", "E4M3", "F16", "F32", "INTEGERS", "PAYLOADS", "Draw", "Slot"]
