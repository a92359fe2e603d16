"""Watches attention functions outside of engines: any function, or the attention functions of transformers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import ArgumentError
from .watcher import Watch


def watch(function: Callable[..., Any], *, on: Watch | None = None, layer: str = "", lse_layout: str = "hn") -> Callable[..., Any]:
    """Returns a function that calls `function` and checks each result: `out` or `(out, lse, …)` of torch tensors.

    Args:
        function: returns rows `[n, H, D]`, or `[…, H, D]` without an lse.
        on: the watch; a new one if None. It is the attribute `watch` of the returned function.
        layer: the name of the layer in reports.
        lse_layout: "hn" or "nh".
    """
    made = on or Watch()

    @functools.wraps(function)
    def watched(*args: Any, **kwargs: Any) -> Any:
        if on is None:
            made.step()
        result = function(*args, **kwargs)
        out, lse = (result[0], result[1] if len(result) > 1 else None) if isinstance(result, (tuple, list)) else (result, None)
        made.layer = layer or made.layer
        made.states("attention", out if out.dim() == 3 else out.reshape(-1, *out.shape[-2:]), lse if out.dim() == 3 else None, lse_layout=lse_layout,
                    name=getattr(function, "__name__", "function"), lens=kwargs.get("seq_lens"), cu_seqlens=kwargs.get("cu_seqlens_q"))  # fmt: skip
        return result

    watched.watch = made  # type: ignore[attr-defined]
    return watched


@contextmanager
def watching(module: Any, names: Iterable[str], on: Watch | None = None) -> Iterator[Watch]:
    """Watches functions of a module or methods of a class inside a `with` block. The end of the block restores the
    functions and waits for the device."""
    made = on or Watch()
    own = {name: getattr(module, name) for name in names}
    for name, function in own.items():
        if not callable(function):
            raise ArgumentError(f'watching: expected functions, got "{name}", a {type(function).__qualname__}')
    for name, function in own.items():
        setattr(module, name, watch(function, on=made))
    made.step()
    try:
        yield made
    finally:
        for name, function in own.items():
            setattr(module, name, function)
        made.finish()


def register_transformers(on: Watch | None = None, prefix: str = "watched_") -> Watch:
    """Registers each attention function of transformers a second time, as `watched_NAME`. Select one with
    `attn_implementation="watched_sdpa"`.

    Checks rows for NaN, for infinities, and for magnitudes above those of the values.
    """
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    made = on or Watch()
    for name in list(ALL_ATTENTION_FUNCTIONS.valid_keys()):
        if name.startswith(prefix):
            continue
        ALL_ATTENTION_FUNCTIONS.register(prefix + name, watched_attention(ALL_ATTENTION_FUNCTIONS[name], made))
    return made


def watched_attention(function: Callable[..., Any], made: Watch) -> Callable[..., Any]:
    """Returns a watched attention function with transformers' arguments, `(module, query, key, value, attention_mask,
    …)`. It returns `(out [B, L, H, D], weights)`."""

    @functools.wraps(function)
    def attention(module: Any, query: Any, key: Any, value: Any, attention_mask: Any = None, *args: Any, **kwargs: Any) -> Any:
        layer = getattr(module, "layer_idx", None)
        if layer in (None, 0):
            made.step()
        result = function(module, query, key, value, attention_mask, *args, **kwargs)
        out = result[0]
        made.layer = "" if layer is None else str(layer)
        limit = value.detach().abs().amax().float().reshape(1) * (1 + 2.0**-6)
        made.states("attention", out.detach().reshape(-1, *out.shape[-2:]), name=getattr(function, "__name__", "attention"), limit=limit)
        return result

    return attention
