"""Ready adapters of packages. A module is imported only if the package that it adapts is installed.

The modules of this folder have only plain functions and classes. The scripts that an audit writes for its findings can
thus contain the source text of an adapter, and need only the adapted package.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import replace

from ..cases import Adapter

# Pairs of a module of this folder, and the package or module that must be installed.
MODULES: tuple[tuple[str, str], ...] = (
    ("torch_sdpa", "torch.nn.attention"),
    ("torch_varlen", "torch.nn.attention.varlen"),
    ("mlafix_ops", "mlafix.ops"),
    ("mlafix_ranks", "mlafix.distributed"),
    ("flash_attn2", "flash_attn.flash_attn_interface"),
    ("flash_attn3", "flash_attn_interface"),
    ("flash_attn4", "flash_attn.cute"),
    ("flashinfer", "flashinfer"),
    ("vllm", "vllm.vllm_flash_attn"),
    ("vllm_cpu", "vllm"),
    ("sglang", "sgl_kernel"),
    ("torch_flex", "torch.nn.attention.flex_attention"),
    ("transformers_eager", "transformers"),
    ("jax_nn", "jax"),
    ("onnx_runtime", "onnxruntime"),
)


def is_installed(package: str) -> bool:
    """True if a package or module is installed. Imports its parent packages, but not the package or module itself."""
    try:
        return importlib.util.find_spec(package) is not None
    except ImportError:
        return False


def ready(device: str) -> tuple[list[Adapter], dict[str, str]]:
    """Returns the adapters that run on a device ("cpu" or "cuda"), and the reason for each module that has none."""
    found: list[Adapter] = []
    missing: dict[str, str] = {}
    for name, package in MODULES:
        if not is_installed(package):
            missing[name] = f"{package} is not installed"
            continue
        try:
            module = importlib.import_module(f"{__name__}.{name}")
        except Exception as error:  # for example, an extension that was built for another torch
            missing[name] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            continue
        own = [adapter for adapter in module.ADAPTERS if adapter.device in (device, "any")]
        found += [replace(adapter, device=device) for adapter in own]
        if not own:
            missing[name] = f"nothing for {device}"
    return found, missing
