"""The kernel library: finds, compiles and launches the kernels of `mlafix.kernels`.

``mlafix.library.merge_attn_states`` is the kernel of that name as a :class:`mlafix.Kernel`. The functions of
``mlafix.ops`` use :func:`viewed`.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import cache
from ._files import toolchain
from ._forks import cached_property, forks_wait, whole
from ._launcher.kernel import Kernel
from .errors import ArgumentError

_TEXTS = Path(__file__).parent / "mlir"
_SIGNATURES = Path(__file__).parent / "signatures"


@functools.lru_cache(maxsize=None)
def _files() -> dict[str, Path]:
    return {path.stem: path for path in sorted(_TEXTS.rglob("*.mlir"))}


def names() -> list[str]:
    """Returns the names of the library's kernels: first kernels with text in the package, which are compiled ahead,
    then kernels that compile when first used. Kernels that quantise their result in groups are families
    (`mlafix.kernels.families`). :func:`kernel` and `mlafix.warmup` also accept members of families, such as
    "merge_attn_states_nvfp4" (`mlafix.kernels.scaling.FORMATS`)."""
    return list(dict.fromkeys([*_files(), *_in_python().names()]))


def _in_python() -> Any:
    """Imports and returns the package of kernels. This also imports the language."""
    whole("mlafix.kernels")
    return sys.modules["mlafix.kernels"]


@functools.lru_cache(maxsize=None)
def _python_kernel(name: str) -> Kernel:
    with forks_wait:
        try:
            found: Kernel = _in_python().find(name)
        except KeyError:
            near = difflib.get_close_matches(name, names(), 1)
            hint = f"did you mean {near[0]}?" if near else "mlafix.library.names() lists them"
            raise ArgumentError(f'argument "name": expected a kernel of the library, got "{name}"; {hint}') from None
    return found


def path(name: str) -> Path:
    """Returns the path of the file that contains a kernel: MLIR text for a kernel that is compiled ahead, else a Python
    file. Raises ArgumentError for a name that is not in the library."""
    found = _files().get(name)
    return Path(inspect.getfile(inspect.unwrap(_python_kernel(name)))) if found is None else found


@functools.lru_cache(maxsize=None)
def source(name: str) -> str:
    """Returns a kernel's text in MLIR's syntax."""
    found = _files().get(name)
    return _python_kernel(name).source if found is None else found.read_text(encoding="utf-8")


@functools.lru_cache(maxsize=None)
def signature(name: str) -> str:
    """Returns a kernel's signature as JSON text with "name", "args" and "names". "names" maps the names that can be
    bound to their defaults.

    The build stores signatures in the package, so that launching a compiled kernel does not load the compiler.
    """
    made = _SIGNATURES / f"{name}.json"
    if made.is_file():
        return made.read_text(encoding="utf-8")
    if name not in _files():
        return _python_kernel(name)._signature_text
    text: str = toolchain.compiler().signature(source(name), str(path(name)), kernel=name)
    return text


_FLOATS = ("bf16", "f16", "f32")
_FP8 = "f8e4m3fn"
_INTEGERS = ("i32", "i64")


@functools.lru_cache(maxsize=None)
def _legal_dtypes(name: str) -> dict[str, tuple[dict[str, Any], tuple[str, ...]]]:
    """Maps each dtype variable of a kernel to (argument, dtypes): the argument that binds the variable, and the dtypes
    to which it may be bound.

    A float variable may be bf16, f16 or f32. `check_dtypes` also allows fp8 for outputs.
    """
    legal: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {}
    for arg in json.loads(signature(name))["args"]:
        variable = arg.get("dtype_name")
        if variable and variable not in legal:
            legal[variable] = arg, _FLOATS if arg["dtype"] in _FLOATS else _INTEGERS
    return legal


def check_dtypes(name: str, bound: Mapping[str, str], stored: Sequence[str] = ()) -> None:
    """Raises ArgumentError unless a kernel's dtype variables are bound to legal dtypes. `stored` lists the variables
    that may also be fp8."""
    for variable, (argument, dtypes) in _legal_dtypes(name).items():
        got = bound.get(variable, dtypes[0])
        if got in dtypes or (variable in stored and got == _FP8):
            continue
        why = " (fp8 is for outputs)" if got == _FP8 and argument["access"] == "read" else ""
        raise ArgumentError(f'kernel "{name}": argument "{argument["name"]}": expected dtype {" or ".join(dtypes)}, got {got}{why}')


@functools.lru_cache(maxsize=None)
def variants(name: str) -> cache.Variants:
    """Returns the compiled specialisations of a kernel."""
    return cache.Variants(name, source(name), str(path(name))) if name in _files() else _python_kernel(name).variants


def viewed(
    name: str,
    *,
    bindings: Mapping[str, str] | None = None,
    views: Mapping[str, Sequence[int]] | None = None,
    specialize: Sequence[str] = (),
    stored: Sequence[str] = (),
) -> Kernel:
    """Returns a library kernel that takes arguments in the caller's layout. It has its own table of resolved calls.

    Args:
        name: the kernel's name.
        bindings: values of names that the arguments do not bind: {"B": "2"}.
        views: the order of dims for arguments that are passed in another layout: dim i of the kernel is dim
            `views[name][i]` of the array. {"prefix_lse": (1, 0)} passes an [n, H] lse to a kernel that takes [H, n].
        specialize: lower-case dims that calls bind to their sizes, as they bind upper-case dims.
        stored: dtype variables of arguments that the kernel writes but never reads; these may be fp8.
    """
    made = kernel(name).specialize(**(bindings or {}))
    made._views, made._dims = dict(views or {}), tuple(specialize)
    made._check_dtypes = lambda bound: check_dtypes(name, bound, stored)  # type: ignore[method-assign]
    made._is_watched = False  # the checks of `_warn_of_faults` need arguments in the kernel's own layout
    return made


class _LibraryKernel(Kernel):
    """A kernel of the library. The build provides its signature and its common specialisations."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _specialized, (self.name, self._fixed)

    @cached_property
    def _signature_text(self) -> str:
        return signature(self.name)

    @cached_property
    def variants(self) -> cache.Variants:
        return variants(self.name)


@functools.lru_cache(maxsize=None)
def kernel(name: str) -> Kernel:
    """Returns a kernel of the library. Raises ArgumentError for a name that is not in the library."""
    return _LibraryKernel(name, source(name), str(path(name))) if name in _files() else _python_kernel(name)


def _specialized(name: str, fixed: Mapping[str, str]) -> Kernel:
    return kernel(name).specialize(**fixed) if fixed else kernel(name)


def __getattr__(name: str) -> Kernel:
    if not name.startswith("_"):
        with contextlib.suppress(ArgumentError):
            return kernel(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *names()]
