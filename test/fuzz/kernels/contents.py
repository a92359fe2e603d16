"""Chooses the contents of tensors before a call: ordinary numbers, infinities, NaN and other special values."""

from __future__ import annotations

import formats
import numpy as np
from syntax import Call, Kernel, Tensor, size_of

_TINIEST = {"bf16": 2.0**-133, "f16": 2.0**-24, "f32": 2.0**-149, "f8e4m3fn": 2.0**-9, "f8e5m2": 2.0**-16, "f8e8m0": 2.0**-127,
            "f4e2m1": 0.5}
_LARGEST = {"bf16": float.fromhex("0x1.fep127"), "f16": 65504.0, "f32": float.fromhex("0x1.fffffep127"), "f8e4m3fn": 448.0, "f8e5m2": 57344.0,
            "f8e8m0": 2.0**127, "f4e2m1": 6.0}


def dtype_of(tensor: Tensor, call: Call) -> str:
    return call.dtypes.get(tensor.dtype, tensor.dtype)


def shape_of(tensor: Tensor, call: Call) -> tuple[int, ...]:
    return tuple(size_of(dim, call.sizes) for dim in tensor.dims)


def contents(kernel: Kernel, call: Call) -> dict[str, np.ndarray]:
    """Returns the elements of each given tensor, in its dtype."""
    rng = np.random.default_rng(call.seed)
    made: dict[str, np.ndarray] = {}
    for tensor in kernel.tensors:
        dtype, shape = dtype_of(tensor, call), shape_of(tensor, call)
        made[tensor.name] = _segments(call) if tensor.name == "cu" else make(rng, dtype, shape, call.kinds.get(tensor.name, "normal"))
    _bury(rng, kernel, call, made)
    for name, bits in call.values.items():
        array = made[name]
        made[name] = np.array(bits, f"u{array.dtype.itemsize}").view(array.dtype).reshape(array.shape)
    for tensor in kernel.tensors:  # elements that share memory have the same contents
        layout = call.layouts.get(tensor.name)
        for axis in layout.broadcast if layout else []:
            array = made[tensor.name]
            if array.shape[axis]:
                made[tensor.name] = np.ascontiguousarray(np.broadcast_to(array.take([0], axis), array.shape))
    for written, read in call.aliases.items():
        made[written] = made[read]
    made |= {name: np.array([call.scalars[name]], np.int32) for name in call.held}
    return {name: array for name, array in made.items() if name not in call.absent}


def make(rng: np.random.Generator, dtype: str, shape: tuple[int, ...], kind: str) -> np.ndarray:
    if formats.is_float(dtype):
        return _floats(rng, dtype, shape, kind)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    low, high = formats.limits(dtype)
    if kind == "distinct":  # distinct, except for negative padding; some are out of bounds as indices
        entries = rng.permutation(int(np.prod(shape)) + 3)[: int(np.prod(shape))].reshape(shape)
        return np.where(rng.random(shape) < 0.1, -rng.integers(1, 9, shape), entries).astype(formats.NUMPY[dtype])
    counts = rng.integers(max(low, -4), 8, shape) if rng.random() < 0.5 else rng.integers(0, 4, shape)  # small indices
    if kind == "any":
        special = np.array([low, high, low + 1, 0, -1 if low else 1, 31, 32, 33, 63, 64, 100])
        counts = np.where(rng.random(shape) < 0.4, special[rng.integers(0, len(special), shape)], counts)
    if kind == "zero":
        counts = np.zeros(shape, np.int64)
    return np.clip(counts, low, high).astype(formats.NUMPY[dtype])


def _floats(rng: np.random.Generator, dtype: str, shape: tuple[int, ...], kind: str) -> np.ndarray:
    tiny, largest = _TINIEST[dtype], _LARGEST[dtype]
    normal = rng.standard_normal(shape)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -3 * tiny, largest, -largest, 1.0, 2.0, 0.5, 1e4, 65504.0, largest / 2])
    if kind == "whole":
        values = rng.integers(-8, 9, shape).astype(float)
    elif kind == "special":
        values = np.where(rng.random(shape) < 0.25, special[rng.integers(0, len(special), shape)], normal)
    elif kind == "garbage":
        values = special[rng.integers(0, len(special), shape)]
    elif kind in ("zero", "one"):
        values = np.full(shape, 0.0 if kind == "zero" else 1.0)
    elif kind == "lse":
        values = _lses(rng, shape)
    else:
        values = normal * rng.choice([1.0, 1.0, 1.0, 30.0, 1e-3])
    with np.errstate(over="ignore"):
        rounded = formats.round_to(dtype, values)
        if dtype == "f8e5m2":  # adds infinities: no store gives them, but inputs may hold them
            rounded = np.where(np.isinf(values), values, rounded)
        return rounded.astype(np.float32).astype(formats.NUMPY[dtype])


def _lses(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    spread = rng.choice([1.0, 5.0, 60.0, 1e-4])
    values = rng.standard_normal(shape) * spread + rng.choice([0.0, 0.0, 20.0, -300.0])
    special = np.array([-np.inf, -np.inf, np.inf, np.nan, 3e38, -3e38, 1e-40, 0.0, -0.0, 1e4, -1e4, values.flat[0] if values.size else 0.0])
    rate = rng.choice([0.0, 0.0, 0.15, 0.4, 0.8])
    return np.where(rng.random(shape) < rate, special[rng.integers(0, len(special), shape)], values)


def _bury(rng: np.random.Generator, kernel: Kernel, call: Call, made: dict[str, np.ndarray]) -> None:
    """Puts garbage into payloads whose lse marks them as empty."""
    tensors = {tensor.name: tensor for tensor in kernel.tensors}
    pairs = {(n.attrs["tensor"], n.attrs["lse"]) for n in kernel.nodes() if n.op == "load_state" and n.attrs["tensor"] in tensors}
    for out, lse in sorted(pairs):
        outer, dims = tensors[out].dims[:-1], tensors[lse].dims
        if sorted(outer) != sorted(dims) or not made[out].size or len(set(dims)) != len(dims):
            continue
        dead = np.isinf(made[lse].astype(np.float32)).transpose([dims.index(dim) for dim in outer])
        rows = dead & (rng.random(dead.shape) < 0.7)
        made[out][rows] = make(rng, dtype_of(tensors[out], call), (int(rows.sum()), made[out].shape[-1]), "garbage")


def _segments(call: Call) -> np.ndarray:
    """Returns the starts of segments in ascending order; some segments are empty. The starts may be malformed, but no
    two segments share a row."""
    rng = np.random.default_rng([call.seed, 1])
    count, rows = call.sizes["b1"] - 1, call.sizes.get("n", 0)
    starts = np.sort(rng.integers(0, rows + 1, count + 1))
    if rng.random() < 0.5:
        starts[0] = 0
    if rng.random() < 0.5:
        starts[-1] = rows
    if count >= 2 and rng.random() < 0.2:  # no valid segment begins or ends at these numbers
        starts[rng.integers(0, count + 1)] = rng.choice([-1, rows + 1, 2**31 - 1, -(2**31)])
    return starts.astype(np.int32)
