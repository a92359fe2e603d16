"""Replaces `flash_attn_combine` of FlashAttention 3 (`flash_attn_interface`) and 4 (`flash_attn.cute`)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, Callable

import pytest

from mlafix.compat import flash_attn as ours

from . import Elsewhere, module


def install(checkout: Path) -> None:
    for name in ("einops", "expecttest"):  # the test modules import these, but the selected tests do not use them
        if find_spec(name) is None:
            module(name)
    module("flash_attn_interface", flash_attn_combine=_third)
    module("flash_attn.cute")
    module("flash_attn.cute.interface", flash_attn_combine=ours.flash_attn_combine,
           _flash_attn_fwd=Elsewhere("the attention kernel"),
           _flash_attn_fwd_combine=Elsewhere("the engine's own launcher of its combine kernel"))
    module("flash_attn.cute.cache_utils")
    module("flash_attn.cute.testing", maybe_fake_tensor_mode=_fake_tensor_mode, is_fake_mode=lambda: False)


def _third(out_partial: Any, lse_partial: Any, out: Any = None, out_dtype: Any = None) -> Any:
    """Calls our function with exactly the four arguments of FlashAttention 3."""
    return ours.flash_attn_combine(out_partial, lse_partial, out, out_dtype)


def _fake_tensor_mode(wanted: bool) -> Callable[[Any], Any]:
    """Replaces the engine's mode for compiling without a GPU, which our code does not support."""
    return pytest.mark.skip("compiles the engine's kernels without a GPU") if wanted else lambda test: test
