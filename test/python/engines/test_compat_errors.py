"""Errors of the drop-ins name arguments of the called function, for any mistake in any argument."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from devices import Device, TorchDevice
from drop_in_calls import CALLS, OVER_RANKS, Call, Sizes, as_array
from mlafix import ArgumentError, compat
from numerics import BF16

SIZES = Sizes(6, 4, 64)


def mistakes(array: np.ndarray) -> Iterator[tuple[str, Any]]:
    """Yields wrong values for an array argument, each with a description of the mistake."""
    is_integer = array.dtype.kind in "biu"
    for dtype in ("float32", "int32", "int64", "float64", "complex64", "int16"):
        if np.dtype(dtype) != array.dtype:
            yield f"dtype {dtype}", np.ones(array.shape, dtype)
    if not is_integer:
        yield "dtype f16 or bf16", np.ones(array.shape, BF16 if array.dtype.itemsize != 2 else np.float16)
    yield "a dim less", array[0]
    yield "a dim more", array[None]
    for dim in range(array.ndim):
        longer = np.concatenate([array.view(f"u{array.itemsize}")] * 2, dim).view(array.dtype)
        yield f"dim {dim} longer", longer
        yield f"dim {dim} empty", longer[tuple(slice(0, 0) if i == dim else slice(None) for i in range(array.ndim))]
    if array.ndim > 1:
        yield "last dim strided", np.concatenate([array.view(f"u{array.itemsize}")] * 2, -1).view(array.dtype)[..., ::2]
    read_only = array.copy()
    read_only.flags.writeable = False
    yield "read-only", read_only
    yield "a list", array.view(f"u{array.itemsize}").tolist()
    yield "text", "text"
    yield "a number", 3


def elsewhere(tensor: Any) -> Iterator[tuple[str, Any]]:
    """Yields values to pass instead of a CPU tensor of torch, each with a description."""
    yield "on another device", tensor.to("meta")
    yield "a numpy array", tensor.view(torch.uint8).numpy() if tensor.dtype.itemsize == 1 else np.ones(tensor.shape, np.float32)
    if tensor.dtype.is_floating_point and tensor.dtype.itemsize > 1:
        yield "that requires grad", tensor.clone().requires_grad_()


def check_names(call: Call, device: Device, mistaken: Callable[[Any], Iterator[tuple[str, Any]]]) -> set[str]:
    """Makes calls with one mistake each, and returns the names of arguments in the errors. Fails if a name is no
    argument of the function, or if another kind of error is raised."""
    arguments = call.arguments(SIZES)

    def make(**wrong: Any) -> None:
        made = {name: spec if (array := as_array(spec)) is None else device.put(array) for name, spec in arguments.items()}
        call.function(**made | wrong)

    make()
    own, bad, named = set(inspect.signature(call.function).parameters), [], set()
    for name, spec in arguments.items():
        if (array := as_array(spec)) is None:
            continue
        for mistake, value in mistaken(device.put(array)):
            try:
                make(**{name: value})
            except ArgumentError as error:
                names = set(re.findall(r'argument "([\w.]+)"', str(error)))
                named |= names
                if not names or names - own:
                    bad.append(f"{name}, {mistake}: {error}")
            except Exception as error:
                bad.append(f"{name}, {mistake}: {type(error).__name__}: {error}")
    assert not bad, "\n".join(bad)
    return named


each_call = pytest.mark.parametrize("call", CALLS, ids=[f"{call.name}-{i}" for i, call in enumerate(CALLS)])


@each_call
def test_errors_name_an_argument_of_the_function(call: Call) -> None:
    named = check_names(call, Device(), mistakes)
    arrays = {name for name, spec in call.arguments(SIZES).items() if as_array(spec) is not None}
    assert len(named & arrays) >= min(2, len(arrays))


@each_call
def test_errors_about_places_name_an_argument_of_the_function(call: Call) -> None:
    assert check_names(call, TorchDevice("cpu"), elsewhere)


@each_call
@pytest.mark.parametrize("value", [-1, 2**70, 1.5, "2", None])
def test_errors_about_numbers_name_an_argument_of_the_function(call: Call, value: Any) -> None:
    parameters = inspect.signature(call.function).parameters
    for name in (name for name, parameter in parameters.items() if str(parameter.annotation).startswith("int")):
        made = {one: spec if (array := as_array(spec)) is None else array for one, spec in call.arguments(SIZES).items()}
        try:
            call.function(**made | {name: value})
        except ArgumentError as error:
            assert set(re.findall(r'argument "([\w.]+)"', str(error))) <= set(parameters)


def test_every_drop_in_is_called() -> None:
    """test_compat_chunks.py tests SDPAMerger."""
    assert {call.name for call in CALLS} | OVER_RANKS | {"torch_context_parallel.SDPAMerger"} == set(compat.ENGINE_VERSIONS)
