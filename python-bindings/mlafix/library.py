"""The kernel library: compiles and launches the kernels of `mlafix.kernels`.

``mlafix.library.merge_attn_states`` is that kernel as a :class:`mlafix.Kernel`; the functions of ``mlafix.ops`` use
:func:`dispatcher`, which costs less.
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
    """Names of the library's kernels: first those that are compiled ahead, then those that compile when first used. Kernels that
    quantise their result in groups are families (`mlafix.kernels.families`). :func:`kernel` and `mlafix.warmup` also accept their
    members, such as "merge_attn_states_nvfp4" (`mlafix.kernels.scaling.FORMATS`)."""
    return list(dict.fromkeys([*_files(), *_in_python().names()]))


def _in_python() -> Any:
    """The package of kernels. Importing it loads the language."""
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
    """The file that contains a kernel: its text, or the Python file if it is not compiled ahead. Raises ArgumentError for a name
    that is not in the library."""
    found = _files().get(name)
    return Path(inspect.getfile(inspect.unwrap(_python_kernel(name)))) if found is None else found


@functools.lru_cache(maxsize=None)
def source(name: str) -> str:
    """A kernel's text in MLIR's syntax."""
    found = _files().get(name)
    return _python_kernel(name).source if found is None else found.read_text(encoding="utf-8")


@functools.lru_cache(maxsize=None)
def signature(name: str) -> str:
    """A kernel's signature as JSON text with "name", "args" and "names" (the names that can be bound, with their
    defaults).

    The build stores it in the package, so that launching a compiled kernel does not load the compiler.
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
    """Maps each dtype variable of a kernel to the argument that binds it and the dtypes that it may be bound to.

    A float variable takes bf16, f16 and f32; fp8 only if the kernel never reads its tensors.
    """
    legal: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {}
    for arg in json.loads(signature(name))["args"]:
        variable = arg.get("dtype_name")
        if variable and variable not in legal:
            legal[variable] = arg, _FLOATS if arg["dtype"] in _FLOATS else _INTEGERS
    return legal


def check_dtypes(name: str, bound: Mapping[str, str], stored: Sequence[str] = ()) -> None:
    """Raises ArgumentError unless a kernel's dtype variables are bound to legal dtypes. `stored`: see `viewed`."""
    for variable, (argument, dtypes) in _legal_dtypes(name).items():
        got = bound.get(variable, dtypes[0])
        if got in dtypes or (variable in stored and got == _FP8):
            continue
        why = " (fp8 is for outputs)" if got == _FP8 and argument["access"] == "read" else ""
        raise ArgumentError(f'kernel "{name}": argument "{argument["name"]}": expected dtype {" or ".join(dtypes)}, got {got}{why}')


@functools.lru_cache(maxsize=None)
def variants(name: str) -> cache.Variants:
    """The compiled specialisations of a kernel."""
    return cache.Variants(name, source(name), str(path(name))) if name in _files() else _python_kernel(name).variants


def viewed(
    name: str,
    *,
    bindings: Mapping[str, str] | None = None,
    views: Mapping[str, Sequence[int]] | None = None,
    specialize: Sequence[str] = (),
    stored: Sequence[str] = (),
) -> Kernel:
    """A library kernel that takes arguments in the caller's form, with its own table of calls.

    Args:
        name: the kernel's name.
        bindings: names to bind beside those that the arguments bind: {"B": "2"}.
        views: for some arguments, the position in the passed array of each dim of the kernel: {"prefix_lse": (1, 0)}
            passes an [n, H] lse to a kernel that takes [H, n].
        specialize: lower-case dims to compile for as well.
        stored: dtype variables of arguments that the kernel writes but never reads; these may be fp8.
    """
    made = kernel(name).specialize(**(bindings or {}))
    made._views, made._dims = dict(views or {}), tuple(specialize)
    made._check_dtypes = lambda bound: check_dtypes(name, bound, stored)  # type: ignore[method-assign]
    made._is_watched = False  # the host interprets calls only in the kernel's own layout
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
    """A kernel of the library. Raises ArgumentError for a name that is not in it."""
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
