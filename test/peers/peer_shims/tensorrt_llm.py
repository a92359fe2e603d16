"""Replaces TensorRT-LLM's `torch.ops.trtllm.helix_post_process` and `helix_post_process_native`."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import torch

from mlafix.compat import tensorrt_llm as ours
from mlafix.errors import ArgumentError

from . import module


def install(checkout: Path) -> None:
    module("tensorrt_llm", logger=SimpleNamespace(set_level=lambda level: None))
    module("tensorrt_llm._torch.modules.attention")
    if find_spec("parameterized") is None:
        module("parameterized", parameterized=SimpleNamespace(expand=_expand))
    operators = {name: _operator(getattr(ours, name)) for name in ("helix_post_process", "helix_post_process_native")}
    setattr(torch.ops, "trtllm", SimpleNamespace(**operators))


def _operator(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `function` with its errors turned into RuntimeError, as operators of torch raise them."""

    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except ArgumentError as error:
            raise RuntimeError(str(error)) from error

    return call


def _expand(cases: list[tuple[Any, ...]]) -> Callable[[Callable[..., None]], None]:
    """Replaces parameterized.expand: adds a method for each case to the class whose body is running."""

    def put(test: Callable[..., None]) -> None:
        body = sys._getframe(1).f_locals
        for index, case in enumerate(cases):
            body[f"{test.__name__}_{index}"] = lambda self, case=case: test(self, *case)

    return put
