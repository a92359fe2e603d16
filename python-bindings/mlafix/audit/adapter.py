"""Makes an Adapter from a function, and finds the place from which another process can import a function."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch

from ..errors import ArgumentError
from .cases import Adapter
from .forms import is_planned

OPTIONAL = ("out", "lse", "window", "window_size", "sinks", "softcap", "alibi_slopes", "seq_lens_k", "num_splits", "max_seqlen_q", "max_seqlen_k",
            "k_scale", "v_scale")  # fmt: skip
FORMS = ("ragged", "dense", "paged", "ragged_paged", "merge", "reduce")


def as_adapter(backend: Adapter | Callable[..., Any], **changes: Any) -> Adapter:
    """Returns an Adapter for `backend`. The parameter names of a function decide its form; an Adapter is returned as it
    is. `changes` replaces fields of the result.

    Raises:
        ArgumentError: `backend` is no function or Adapter, or a field of `changes` does not exist or has an invalid
            value.
    """
    known = {field.name for field in fields(Adapter)}
    if unknown := sorted(set(changes) - known):
        raise ArgumentError(f'expected a field of Adapter ({", ".join(sorted(known))}), got "{unknown[0]}"')
    if not isinstance(backend, Adapter):
        if not callable(backend) and not is_planned(backend):
            raise ArgumentError(f"expected a function, an object with run or an Adapter, got {type(backend).__name__}")
        found = parameters_of(backend)
        device = changes.get("device") or ("cuda" if torch.cuda.is_available() and form_of(found) != "reduce" else "cpu")
        shape: dict[str, Any] = {"dim": 32 if device == "cpu" else 128}
        if "kv_cache" in found:
            shape = {"dim": 576, "value_dim": 512, "kv_heads": 1, "values_in_keys": True, "latent": True}
        backend = Adapter(backend, form_of(found), takes=optional(found), causal="causal" in found or takes_any(found),
                          default_scale=has_default(found, "scale"), device=device, dtype="float32" if device == "cpu" else "bfloat16", **shape)  # fmt: skip
    adapter = replace(backend, **changes)
    adapter = replace(adapter, name=adapter.name or getattr(adapter.call, "__name__", type(adapter.call).__name__))
    check_adapter(adapter)
    return adapter


def parameters_of(backend: Any) -> dict[str, inspect.Parameter]:
    """Returns the parameters of a function by name. For an object with `run`, returns those of `plan` and `run`
    together."""
    if not is_planned(backend):
        return dict(inspect.signature(backend).parameters)
    functions = [getattr(backend, name) for name in ("plan", "run") if hasattr(backend, name)]
    return {name: one for function in functions for name, one in inspect.signature(function).parameters.items()}


def optional(parameters: Any) -> tuple[str, ...]:
    """Returns the names in OPTIONAL for which `parameters` has an optional parameter (`is_optional`).

    The result never contains the out and lse of a reduce, which are inputs without a default.
    """
    return tuple(name for name in OPTIONAL if name in parameters and is_optional(parameters[name]))


def is_optional(parameter: inspect.Parameter) -> bool:
    """True if the parameter is keyword-only, or can be passed by name and has a default."""
    if parameter.kind == inspect.Parameter.POSITIONAL_OR_KEYWORD:
        return parameter.default is not inspect.Parameter.empty
    return parameter.kind == inspect.Parameter.KEYWORD_ONLY


def has_default(parameters: Any, name: str) -> bool:
    """True if the parameter exists and has a default, so that a call may leave it out."""
    return name in parameters and parameters[name].default is not inspect.Parameter.empty


def takes_any(parameters: Any) -> bool:
    """True if the parameters include **keywords."""
    return any(one.kind == inspect.Parameter.VAR_KEYWORD for one in parameters.values())


def form_of(parameters: Any) -> str:
    """Returns the form of a backend, which the names of its parameters decide."""
    if "block_table" in parameters:
        return "ragged_paged" if "cu_seqlens_q" in parameters else "paged"
    for name, form in (("cu_seqlens_q", "ragged"), ("group", "reduce"), ("scale", "dense")):
        if name in parameters:
            return form
    return "merge"


def check_adapter(adapter: Adapter) -> None:
    """Raises ArgumentError if a field of the adapter is invalid."""
    for name, allowed in (("form", FORMS), ("lse_layout", ("nh", "hn")), ("lse_base", ("e", "2")),
                          ("alignment", ("bottom-right", "top-left")), ("matmul", ("ieee", "tf32")), ("causal", (True, False, "always")),
                          ("kv_scales", ("number", "heads"))):  # fmt: skip
        if getattr(adapter, name) not in allowed:
            raise ArgumentError(f"{name}: expected one of {', '.join(map(str, allowed))}, got {getattr(adapter, name)!r}")
    if not isinstance(getattr(torch, adapter.dtype, None), torch.dtype):
        raise ArgumentError(f'dtype: expected the name of a torch dtype, as "bfloat16", got {adapter.dtype!r}')
    if adapter.kv_dtype not in ("", "float8_e4m3fn", "float8_e5m2"):
        raise ArgumentError(f"kv_dtype: expected float8_e4m3fn or float8_e5m2, got {adapter.kv_dtype!r}")
    if adapter.latent and not (adapter.values_in_keys and adapter.kv_heads == 1 and adapter.form in ("paged", "ragged_paged")):
        got = f"{adapter.form!r}, values_in_keys={adapter.values_in_keys}, kv_heads={adapter.kv_heads}"
        raise ArgumentError(f"latent: expected form 'paged' or 'ragged_paged', values_in_keys=True and kv_heads=1, got {got}")
    if adapter.heads % adapter.kv_heads:
        raise ArgumentError(f"kv_heads: expected a divisor of {adapter.heads}, got {adapter.kv_heads}")
    if unknown := [name for name in adapter.takes if name not in OPTIONAL]:
        raise ArgumentError(f"takes: expected some of {', '.join(OPTIONAL)}, got {unknown[0]!r}")
    if adapter.form == "reduce" and adapter.device != "cpu":
        raise ArgumentError(f"device: expected cpu for a reduce, which runs over gloo, got {adapter.device}")


@dataclass(frozen=True)
class Place:
    """A place from which a process can import a function: the attribute `name` of `module`, with `folder` on sys.path."""

    module: str
    name: str
    folder: str = ""

    def find(self) -> Any:
        """Imports the module and returns the object. Exceptions of the import reach the caller."""
        if self.folder and self.folder not in sys.path:
            sys.path.insert(0, self.folder)
        found: Any = importlib.import_module(self.module)
        for part in self.name.split("."):
            found = getattr(found, part)
        return found


def place_of(function: Any) -> Place | None:
    """Returns the place from which another process can import the function or class. Returns None for lambdas,
    closures, bound methods and notebook functions."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if not module or not name or "<" in name:
        return None
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    found: Any = loaded
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not function:
        return None
    if module == "__main__":
        return Place(Path(file).stem, name, str(Path(file).resolve().parent)) if file else None
    folder = ""
    if file and "site-packages" not in file and not module.startswith("mlafix."):
        folder = str(Path(file).resolve().parents[module.count(".") + (Path(file).stem == "__init__")])
    return Place(module, name, folder)


def load_backend(text: str) -> Any:
    """Imports the function or adapter that "module:name" names. Raises ArgumentError if the text has another form or
    the import fails."""
    module, colon, name = text.partition(":")
    if not colon or not module or not name:
        raise ArgumentError(f'expected MODULE:FUNCTION, got "{text}"')
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return Place(module.removesuffix(".py").replace("/", "."), name).find()
    except (ImportError, AttributeError) as error:
        raise ArgumentError(f'"{text}": expected a function that can be imported, got {type(error).__name__}: {error}') from error
