"""Replaces cache-dit's `fused_merge_attn_states`. The tests compare it with cache-dit's Triton kernel, which is loaded
from the checkout."""

from __future__ import annotations

from importlib.machinery import ModuleSpec
from pathlib import Path

from mlafix.compat import cache_dit as ours

from . import module, package


def install(checkout: Path) -> None:
    root = checkout / "src" / "cache_dit"
    module("cutlass.cute", __spec__=ModuleSpec("cutlass.cute", None))  # the tests are skipped without this module, but do not use it
    package("cache_dit", root)
    package("cache_dit.kernels", root / "kernels")
    module("cache_dit.kernels.cutedsl", fused_merge_attn_states=ours.fused_merge_attn_states)
