"""Finds the argument to blame for an exception that is no mlafix.Error: the first one that does not match the
signature.

This module is only used after a failure, so valid calls do not pay for it.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, Callable

from .._launcher.arguments import check_flag, check_integer, check_number, wrong
from .._launcher.arrays import dtype_name, is_torch
from ..errors import ArgumentError
from ._bases import base_of, check_bases, layout_of
from .formats import check_format
from .rope import check_rope

_Check = Callable[[str, Any], object]


def _array(name: str, value: Any) -> None:
    if not hasattr(value, "__dlpack__"):
        raise wrong(name, "an array", type(value).__qualname__)
    if is_torch(value) and str(value.layout) != "torch.strided":
        raise wrong(name, "a tensor with strides", f"one of layout {value.layout}")
    if getattr(value.dtype, "hasobject", False):
        raise wrong(name, "an array of numbers", f"dtype {value.dtype}")


def _arrays(name: str, value: Any) -> None:
    if not isinstance(value, (list, tuple)):
        raise wrong(name, "a sequence of arrays", type(value).__qualname__)
    for i, each in enumerate(value):
        _array(f"{name}[{i}]", each)


def _either(array: _Check, other: _Check) -> _Check:
    """Returns a check that uses `array` for arrays and `other` for all other values."""
    return lambda name, value: (array if hasattr(value, "__dlpack__") else other)(name, value)


def _fields(check: Callable[[Any], None]) -> _Check:
    """Returns a check of a dataclass instance. It also checks the fields, which are arguments as well."""

    def check_fields(name: str, value: Any) -> None:
        check(value)
        for field in dataclasses.fields(value):
            misfit = _misfit(str(field.type), f"{type(value).__name__}.{field.name}", getattr(value, field.name))
            if misfit:
                raise misfit

    return check_fields


_CHECKS: dict[str, _Check] = {
    "Array": _array,
    "Sequence[Array]": _arrays,
    "Array | Sequence[Array]": _either(_array, _arrays),
    "Array | float": _either(_array, check_number),
    "int | Array": _either(_array, check_integer),
    "OutFormat": _fields(check_format),
    "Rope": _fields(check_rope),
    "bool": check_flag,
    "float": check_number,
    "int": check_integer,
    "LseLayout": lambda name, value: layout_of(value),
    "Base": base_of,
    "Bases": check_bases,
    "DTypeLike": lambda name, value: None if value is None else dtype_name(value),
}
"""Maps the annotation of an argument, without "| None", to the check of the argument."""


def _misfit(annotation: str, name: str, value: Any) -> ArgumentError | None:
    wanted, _, _ = annotation.partition(" | None")
    if wanted not in _CHECKS or (value is None and wanted != annotation):
        return None
    try:
        _CHECKS[wanted](name, value)
    except ArgumentError as error:
        return error
    return None


def misfit_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> ArgumentError | None:
    """Returns the error about the first argument that does not match the signature. Returns None if all match."""
    signature = inspect.signature(function)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:  # An argument is missing, or there is one too many: Python's own message says so.
        return None
    arrays = [name for name, value in given.items() if hasattr(value, "__dlpack__")]
    of_torch = arrays[0] if arrays and is_torch(given[arrays[0]]) else None
    for name, value in given.items():
        misfit = _misfit(str(signature.parameters[name].annotation), name, value)
        if misfit is None and of_torch is not None and name in arrays and not is_torch(value):
            misfit = wrong(name, f'a torch.Tensor, as argument "{of_torch}"', type(value).__qualname__)
        if misfit:
            return misfit
    return None
