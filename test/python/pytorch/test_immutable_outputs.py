"""Tests that arrays that must not change are refused as outputs: jax's arrays (cupy#2095, MatX#1157), and arrays that a
Python protocol marks as read-only. An object without memory is an error of the argument that it was passed for
(jax#8082)."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

import mlafix
from mlafix import _runtime, library, ops

MESSAGE = "expected a tensor that may be written, got a read-only one"


class Produced:
    """An array with DLPack's oldest interface. It has no flags, so it cannot be marked as read-only."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, *, stream: None = None) -> Any:
        return self.array.__dlpack__()


def by_interface(name: str, is_read_only: bool) -> type:
    """Returns a class of arrays whose interface says whether their memory is read-only."""
    def interface(self: Produced) -> dict[str, object]:
        return {"version": 3, "shape": self.shape, "typestr": "<f4", "data": (self.array.ctypes.data, is_read_only)}
    return type("ByInterface", (Produced,), {name: property(interface)})


@pytest.mark.parametrize("name", ["__cuda_array_interface__", "__array_interface__"])
def test_an_array_that_its_interface_calls_read_only_is_no_output(name: str) -> None:
    x, out = np.ones((4, 8), np.float32), np.full((4, 8), -7, np.float32)
    with pytest.raises(mlafix.ArgumentError, match=f'argument "out": {MESSAGE}'):
        ops.softmax(x, out=by_interface(name, True)(out))
    assert (out == -7).all()
    ops.softmax(x, out=by_interface(name, False)(out))
    assert np.allclose(out, 1 / 8)


@pytest.mark.parametrize("module, name", [("jax", "Array"), ("tensorflow", "Tensor"), ("pyarrow", "Array")])
def test_an_array_of_a_library_whose_arrays_never_change_is_no_output(module: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    base = type(name, (Produced,), {})
    monkeypatch.setitem(sys.modules, module, types.SimpleNamespace(**{name: base}))  # type: ignore[arg-type]
    x, out = np.ones((4, 8), np.float32), np.full((4, 8), -7, np.float32)
    with pytest.raises(mlafix.ArgumentError, match=f'argument "out": {MESSAGE}'):
        ops.softmax(x, out=type("Derived", (base,), {})(out))
    assert (out == -7).all() and _runtime.is_immutable(type("Another", (base,), {})(out)) and not _runtime.is_immutable(out)
    result = np.empty_like(x)
    ops.softmax(type("Input", (base,), {})(x), out=result)
    assert np.allclose(result, 1 / 8)


@pytest.fixture
def jnp(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    return pytest.importorskip("jax.numpy")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_an_array_of_jax_is_no_output(jnp: Any, dtype: str) -> None:
    x, constant = jnp.ones((4, 8), dtype), jnp.zeros((4, 8), dtype)
    with pytest.raises(mlafix.ArgumentError, match=f'argument "out": {MESSAGE}'):
        ops.softmax(x, out=constant)
    with pytest.raises(mlafix.ArgumentError, match='argument "out": expected an array that may be written, such as numpy.empty\\(…\\), since arrays of ArrayImpl are immutable'):
        ops.softmax(x)
    kernel = library.kernel("softmax")
    bound = kernel.bind(np.empty_like(x), np.asarray(x), 1.0)
    with pytest.raises(mlafix.ArgumentError, match=MESSAGE):
        bound.set_pointers((constant, x, 1.0))
    with pytest.raises(mlafix.ArgumentError, match=MESSAGE):
        ops.zero_blocks([jnp.ones((2, 4))], np.array([0]))
    assert float(constant.sum()) == 0
    out = np.empty_like(x)
    assert ops.softmax(x, out=out) is out and (out.astype(np.float32) == 0.125).all()


def test_a_tracer_of_jax_is_an_error_of_its_argument(jnp: Any) -> None:
    import jax

    for call in (ops.softmax, lambda x: ops.rmsnorm(x, x[0]), lambda x: ops.softmax(x, out=np.empty((4, 8), np.float32)),
                 lambda x: library.kernel("softmax")(np.empty((4, 8), np.float32), x, 1.0)):  # fmt: skip
        with pytest.raises(mlafix.ArgumentError, match='argument "x": expected .*, got .*Tracer'):
            jax.jit(call)(jnp.ones((4, 8)))
