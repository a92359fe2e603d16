"""cache-dit: `fused_merge_attn_states`. Its tests compare with its Triton kernel, which comes from the checkout."""

from __future__ import annotations

from importlib.machinery import ModuleSpec
from pathlib import Path

from mlafix.compat import cache_dit as ours

from . import module, package


def install(checkout: Path) -> None:
    root = checkout / "src" / "cache_dit"
    module("cutlass.cute", __spec__=ModuleSpec("cutlass.cute", None))  # Tests are skipped without this module, but nothing calls it.
    package("cache_dit", root)
    package("cache_dit.kernels", root / "kernels")
    module("cache_dit.kernels.cutedsl", fused_merge_attn_states=ours.fused_merge_attn_states)
