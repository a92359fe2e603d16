"""Makes folders for Hugging Face's `kernels` from libraries of TVM-FFI functions: `python -m mlafix hub-kernels`.

A repository of the hub has a folder for each variant, such as `build/tvm-ffi01-cu130-x86_64-linux`. The name states a
framework with its version, a backend and a processor. The folder holds a Python package, metadata.json, and the
libraries that `mlafix_add_tvm_ffi` makes.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shutil
from pathlib import Path

from .._runtime import __version__
from ..errors import ArgumentError

VERSION_OF_TVM_FFI = "01"
"""The version of TVM-FFI whose C ABI the libraries use: 0.1."""

FUNCTIONS = {
    "rmsnorm": '''def rmsnorm(x: Any, weight: Any, epsilon: float = 1e-6, *, out: Any = None) -> Any:
    """Rows `[n, D]` over the root of their mean square, times `weight` `[D]`: a new tensor, or `out`."""
    out = torch.empty_like(x) if out is None else out
    _RMSNORM(out, x, weight, epsilon)
    return out
''',
    "apply_rope": '''def apply_rope(query: Any, key: Any, positions: Any, table: Any) -> None:
    """Turns queries and keys `[n, H, D]` by their positions' angles, in place; `key` may be None.

    `positions` `[n]` i64; `table` `[p, D]` f32: D / 2 cosines, then as many sines. Pairs are (x[i], x[D / 2 + i]).
    """
    halves = table.view(table.shape[0], 2, -1)
    for x in (query, key):
        if x is not None:
            _APPLY_ROPE(x, positions, halves)
''',
    "merge_attn_states": '''def merge_attn_states(prefix: Any, prefix_lse: Any, suffix: Any, suffix_lse: Any, *, out: Any = None, out_lse: Any = None,
                      context_rows: int | None = None) -> tuple[Any, Any]:
    """Merges attention over two sets of keys: payloads `[n, H, D]`, lses `[H, n]` f32 in base e. New tensors, or those given.

    A side without keys, an lse of -inf or +inf, contributes nothing; with both sides empty the row is 0, -inf.
    """
    out = torch.empty_like(prefix) if out is None else out
    out_lse = torch.empty_like(prefix_lse) if out_lse is None else out_lse
    _MERGE_ATTN_STATES(out, out_lse, prefix, prefix_lse, suffix, suffix_lse, prefix.shape[0] if context_rows is None else context_rows)
    return out, out_lse
''',
}
"""The source text of each function of the package, by the kernel that it calls."""

HEAD = '''"""Kernels around attention, compiled by mlafix {version}."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import tvm_ffi

'''


def text_of(names: list[str]) -> str:
    """Returns the text of __init__.py for a package with these functions."""
    loads = "".join(f'_{name.upper()} = tvm_ffi.load_module(str(Path(__file__).parent / "{name}.so")).{name}\n' for name in names)
    functions = "\n\n".join(FUNCTIONS[name] for name in names)
    return f"{HEAD.format(version=__version__)}__all__ = {names!r}\n\n{loads}\n\n{functions}"


def variant_of(backend: str) -> str:
    """Returns the name of a variant's folder on this machine's processor. `backend` is "cpu" or a CUDA version such as
    "cu130"."""
    if not re.fullmatch(r"cpu|cu\d{2,3}", backend):
        raise ArgumentError(f'--backend: expected cpu or a CUDA version as in cu130, got "{backend}"')
    return f"tvm-ffi{VERSION_OF_TVM_FFI}-{backend}-{platform.machine()}-linux"


def write(folder: Path, libraries: dict[str, Path], backend: str) -> Path:
    """Writes a variant and returns its folder. `libraries` maps kernel names to files. Raises ArgumentError for a
    kernel that FUNCTIONS lacks."""
    if not libraries or (strange := sorted(set(libraries) - set(FUNCTIONS))):
        raise ArgumentError(f"expected KERNEL=FILE.so with KERNEL one of {', '.join(FUNCTIONS)}, got {', '.join(strange) if libraries else 'none'}")
    variant = folder / "build" / variant_of(backend)
    variant.mkdir(parents=True, exist_ok=True)
    for name, path in libraries.items():
        shutil.copyfile(path, variant / f"{name}.so")
    (variant / "__init__.py").write_text(text_of(sorted(libraries)), encoding="utf-8")
    name = f"mlafix_{backend}_{__version__.replace('.', '_')}"
    metadata = {"id": name, "name": "mlafix", "version": 1, "license": "Apache-2.0", "python-depends": ["tvm-ffi"],
                "backend": {"type": "cpu" if backend == "cpu" else "cuda"}}  # fmt: skip
    (variant / "metadata.json").write_text(json.dumps(metadata, indent=2) + "\n", encoding="utf-8")
    return variant


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("libraries", nargs="+", metavar="KERNEL=FILE.so", help=f"libraries of {', '.join(FUNCTIONS)}, by mlafix_add_tvm_ffi")
    parser.add_argument("--backend", required=True, help="cpu, or the CUDA version of the torch that calls them: cu130")
    parser.add_argument("-o", dest="output", type=Path, required=True, metavar="DIR", help="the repository's folder")


def run(options: argparse.Namespace) -> int:
    named = dict(text.partition("=")[::2] for text in options.libraries)
    print(f"wrote {write(options.output, {name: Path(path) for name, path in named.items()}, options.backend)}")
    return 0
