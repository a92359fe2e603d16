"""Checks the arguments of a call against a reducer's requirements, before anything is sent."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from .._launcher.arguments import wrong
from .._launcher.arrays import dtype_name, spelling_of, torch_dtype
from ..errors import ArgumentError


class Expected(NamedTuple):
    """The requirements of one tensor. A tensor of None is an omitted argument, which always fits."""

    name: str
    tensor: Any
    shape: tuple[int | None, ...]
    dtypes: tuple[torch.dtype, ...]
    row: bool = False
    """True if the last dim must be contiguous."""


def first_problem(expected: list[Expected], device: torch.device) -> ArgumentError | None:
    """Returns the error for the first tensor that does not fit, or None if all fit."""
    for one in expected:
        if one.tensor is not None and (found := _problem(one, device)) is not None:
            return found
    return None


def _problem(one: Expected, device: torch.device) -> ArgumentError | None:
    name, tensor = one.name, one.tensor
    if not isinstance(tensor, torch.Tensor):
        return wrong(name, "a torch.Tensor", type(tensor).__qualname__)
    shape = tensor.shape
    if len(shape) != len(one.shape) or any(size is not None and size != got for size, got in zip(one.shape, shape)):
        return wrong(name, f"shape {_text(one.shape)}", _text(shape))
    if tensor.dtype not in one.dtypes:
        return wrong(name, f"dtype {' or '.join(map(spelling_of, one.dtypes))}", spelling_of(tensor.dtype))
    if tensor.device != device:
        return wrong(name, f"a tensor on {device}", f"one on {tensor.device}")
    if one.row and shape[-1] > 1 and tensor.stride(-1) != 1:
        return wrong(name, "a stride of 1 in the last dim", tensor.stride(-1))
    return None


def lengths(seq_lens: Any, query_start_loc: Any) -> list[Expected]:
    """Returns the requirements of a call's lengths and offsets."""
    requests = seq_lens.shape[0] if isinstance(seq_lens, torch.Tensor) and seq_lens.dim() == 1 else None
    integers = (torch.int32, torch.int64)
    return [Expected("seq_lens", seq_lens, (requests,), integers),
            Expected("query_start_loc", query_start_loc, (None if requests is None else requests + 1,), integers)]


def _text(shape: Any) -> str:
    return "[" + ", ".join("any" if size is None else str(size) for size in shape) + "]"


def payload_dtype(dtype: Any) -> torch.dtype:
    """Returns the torch dtype of payloads. Raises ArgumentError for a dtype that payloads cannot have."""
    return _one_of("dtype", dtype, ("bf16", "f16", "f32"))


def wire_dtype_of(dtype: Any, payloads: torch.dtype) -> torch.dtype:
    """Returns `dtype` as a torch dtype in which ranks exchange payloads. Raises ArgumentError unless it is the dtype `payloads` or
    f8e4m3fn."""
    return _one_of("wire_dtype", dtype, (dtype_name(payloads), "f8e4m3fn"))


def _one_of(name: str, dtype: Any, legal: tuple[str, ...]) -> torch.dtype:
    try:
        found = dtype_name(dtype)
    except ArgumentError:
        found = ""
    if found not in legal:
        raise wrong(name, f"{', '.join(legal[:-1])} or {legal[-1]}", found or repr(dtype))
    made: torch.dtype = torch_dtype(found)
    return made


def check_sizes(**sizes: int) -> None:
    """Raises ArgumentError unless all sizes are ints of at least 1."""
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise wrong(name, "an int of at least 1", repr(size))
