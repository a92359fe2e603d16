"""The plugins of vLLM and SGLang: entry points `mlafix_watch`. MLAFIX_WATCH says what is watched; unset or 0, nothing.

A seam is a function of the engine that is called as before, with checks behind it. What a check raises is logged once, and the seam is
left alone from then on: a watch never stops an engine.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _env
from ..engines import imports
from ..engines import seams as replaced
from ..engines.switch import Log, rebind
from .choice import choice_of
from .watcher import Watch

Given = dict[str, Any]
Check = Callable[[Watch, Given, Any], None]


class Seam(NamedTuple):
    """A function or method of an engine, and the checks behind its calls."""

    place: str
    """"module:function" or "module:Class.method"."""
    seam: str
    """One of `choice.SEAMS`, or "step"."""
    behind: Check | None = None
    before: Check | None = None


# -- Checks by what the engines' functions take ---------------------------------------------------------------------------


def before_attention(watch: Watch, given: Given, _: Any) -> None:
    watch.poison(given.get("out"))


def behind_attention(watch: Watch, given: Given, result: Any) -> None:
    """flash_attn_varlen_func: q, k, v, cu_seqlens_q, seqused_k or cu_seqlens_k, block_table, softmax_scale, causal, return_softmax_lse."""
    out, lse = (result[0], result[1]) if isinstance(result, (tuple, list)) else (result, None)
    q, k, v, starts, lens = given["q"], given["k"], given["v"], given["cu_seqlens_q"], given.get("seqused_k")
    table, causal = given.get("block_table"), bool(given.get("causal"))
    if lens is None and given.get("cu_seqlens_k") is not None:
        lens = given["cu_seqlens_k"].diff()
    if lens is None:
        return
    is_plain = given.get("window_size") in (None, (-1, -1), [-1, -1]) and not given.get("softcap") and given.get("alibi_slopes") is None
    is_plain &= all(given.get(name) is None for name in ("q_descale", "k_descale", "v_descale", "s_aux", "sinks"))
    same = given.get("cu_seqlens_k") is starts
    if is_plain and (table is not None or (same and causal)):
        keys, values = (k, v) if table is not None else (k.unsqueeze(1), v.unsqueeze(1))
        scale = given.get("softmax_scale") or q.shape[-1] ** -0.5
        watch.attention(out, lse, q, keys, values, lens=lens, cu_seqlens=starts, block_table=table, scale=scale, causal=causal, name="flash_attn_varlen_func")
    else:
        watch.states("attention", out, lse, lens=lens, cu_seqlens=starts, causal=causal and is_plain, name="flash_attn_varlen_func")


def before_layer(watch: Watch, given: Given, _: Any) -> None:
    """AttentionImpl.forward: layer, output."""
    watch.layer = str(getattr(given.get("layer"), "layer_name", "") or watch.layer)
    watch.poison(given.get("output"))


def behind_layer(watch: Watch, given: Given, result: Any) -> None:
    """AttentionImpl.forward of vLLM: output [n, H, D] or [n, H * D], attn_metadata with num_actual_tokens, seq_lens, query_start_loc, block_table."""
    metadata, out = given.get("attn_metadata"), given.get("output")
    lens, starts = getattr(metadata, "seq_lens", None), getattr(metadata, "query_start_loc", None)
    if metadata is None or out is None or lens is None or starts is None:
        return
    own = given["self"]
    watch.batch(lens, starts, getattr(metadata, "block_table", None))
    rows = out.view(out.shape[0], own.num_heads, -1)[: metadata.num_actual_tokens]
    watch.states("attention", rows, lens=lens, cu_seqlens=starts, causal=True, name=f"{type(own).__name__}.forward")


def before_merge(watch: Watch, given: Given, _: Any) -> None:
    """The sides of merge_attn_states: whether they were right before, and a copy of one that the result is written over."""
    out = given.get("output")
    for side in ("prefix", "suffix"):
        rows, lse = given[f"{side}_output"], given[f"{side}_lse"]
        watch.states("merge", rows, lse, lse_layout=_layout(rows, lse), name=f"{side} of merge_attn_states")
        if out is not None and watch.wants("merge", rows) and rows.data_ptr() == out.data_ptr():
            given[f"{side}_output"], given[f"{side}_lse"] = rows.clone(), lse.clone()


def behind_merge(watch: Watch, given: Given, result: Any) -> None:
    """merge_attn_states, merge_state: output and output_lse, or what is returned. fp8 results and rows past a threshold are not compared."""
    out, lse = given.get("output"), given.get("output_lse")
    if isinstance(result, (tuple, list)):
        out, lse = result[0], result[1]
    sides, lses = [given["prefix_output"], given["suffix_output"]], [given["prefix_lse"], given["suffix_lse"]]
    if out is None or given.get("output_scale") is not None or given.get("prefill_tokens_with_context") is not None or out.dtype != sides[0].dtype:
        return
    watch.merge(out, lse, sides, lses, lse_layout=_layout(out, lses[0]), name="merge_attn_states")


def behind_reduce(watch: Watch, given: Given, result: Any) -> None:
    """Checks the result of a reduction over ranks: its rows must be finite."""
    out = result[0] if isinstance(result, (tuple, list)) else result
    out = given.get("out") if out is None else out
    if out is not None and out.dim() == 3:
        watch.states("reduce", out, name="ranks")


def behind_cache_write(watch: Watch, given: Given, _: Any) -> None:
    """reshape_and_cache_flash: slot_mapping, key_cache [m, p, …]."""
    cache, slots = given["key_cache"], given["slot_mapping"]
    lens = slots.new_zeros(1)
    watch.metadata(lens, pages=cache.shape[0], page_size=cache.shape[1], slots=slots, name="slot_mapping")


def before_step(watch: Watch, given: Given, _: Any) -> None:
    """A runner's step: the names of its requests, and its lengths where the batch has them."""
    batch = given.get("forward_batch")
    if batch is not None:
        watch.step(requests=getattr(batch, "rids", None) or (), lens=getattr(batch, "seq_lens_cpu", None))
        return
    scheduled = getattr(given.get("scheduler_output"), "num_scheduled_tokens", None) or {}
    watch.step(requests=list(scheduled))


def behind_sglang_layer(watch: Watch, given: Given, result: Any) -> None:
    """AttentionBackend.forward of SGLang: result [n, H * D], layer with layer_id and tp_q_head_num, forward_batch with seq_lens."""
    layer, batch = given["layer"], given["forward_batch"]
    if not hasattr(result, "dim"):
        return
    rows = result.view(result.shape[0], layer.tp_q_head_num, -1)
    watch.layer = str(layer.layer_id)
    decodes = batch.forward_mode.is_decode()
    watch.states("attention", rows, lens=batch.seq_lens if decodes else None, name=f"{type(given['self']).__name__}.forward")


def _layout(rows: Any, lse: Any) -> str:
    """The layout of an lse of rows [n, H, D]; heads first, as engines have it, where both fit."""
    return "hn" if tuple(lse.shape) == (rows.shape[1], rows.shape[0]) else "nh"


# -- Where ---------------------------------------------------------------------------------------------------------------

_BACKENDS = "vllm.v1.attention.backends"

VLLM = (
    Seam("vllm.v1.worker.gpu_model_runner:GPUModelRunner.execute_model", "step", before=before_step),
    Seam(f"{_BACKENDS}.flash_attn:FlashAttentionImpl.forward", "attention", behind_layer, before_layer),
    Seam(f"{_BACKENDS}.flashinfer:FlashInferImpl.forward", "attention", behind_layer, before_layer),
    Seam(f"{_BACKENDS}.triton_attn:TritonAttentionImpl.forward", "attention", behind_layer, before_layer),
    Seam(f"{_BACKENDS}.cpu_attn:CPUAttentionBackendImpl.forward", "attention", behind_layer, before_layer),
    Seam("vllm.vllm_flash_attn.flash_attn_interface:flash_attn_varlen_func", "attention", behind_attention, before_attention),
    *(Seam(one.place, "merge", behind_merge, before_merge) for one in replaced.VLLM if one.function == "merge_attn_states" and one.kind == "function"),
    *(Seam(one.place, "reduce", behind_reduce) for one in replaced.VLLM
      if one.function in ("correct_attn_out", "cp_lse_ag_out_rs", "cp_lse_ag_out_ar", "dcp_a2a_lse_reduce")),
    Seam("vllm._custom_ops:reshape_and_cache_flash", "cache", behind_cache_write),
)  # fmt: skip

SGLANG = (
    Seam("sglang.srt.model_executor.model_runner:ModelRunner.forward", "step", before=before_step),
    Seam("sglang.srt.layers.attention.base_attn_backend:AttentionBackend.forward", "attention", behind_sglang_layer),
    *(Seam(one.place, "merge", behind_merge, before_merge) for one in replaced.SGLANG if one.function in ("merge_state",)),
    *(Seam(one.place, "reduce", behind_reduce) for one in replaced.SGLANG
      if one.function in ("correct_attn_out", "dcp_lse_combine_triton", "cp_lse_ag_out_rs_mha", "cp_lse_ag_out_rs_mla", "dcp_a2a_lse_reduce")),
)  # fmt: skip

watches: dict[str, Watch] = {}
"""The watch of each engine in this process."""


def register_vllm() -> None:
    """Watches what MLAFIX_WATCH asks for in vLLM, as soon as each module is imported. Never raises, and does nothing the second time."""
    _register("vllm", _install_function)


def register_sglang() -> None:
    """Watches what MLAFIX_WATCH asks for in SGLang, by its hooks. Never raises."""
    _register("sglang", _install_hook)


def _register(engine: str, install: Callable[[Seam, Watch, Log], None]) -> None:
    log = Log(f"{engine}.mlafix")
    try:
        choice = choice_of(_env.watch())
        if choice is None or engine in watches:
            return
        watch = watches[engine] = Watch(choice, say=log.logger.error, json=_env.watch_report() or None)
        wanted = [seam for seam in (VLLM if engine == "vllm" else SGLANG) if seam.seam == "step" or seam.seam in choice.seams or
                  (seam.seam == "cache" and "metadata" in choice.seams)]  # fmt: skip
        for seam in wanted:
            install(seam, watch, log)
        log.say(f"watches {', '.join(sorted(choice.seams))} of {engine} every {choice.every} steps")
    except Exception:
        log.logger.exception("mlafix: the watch failed; %s goes on", engine)


def _find(place: str) -> tuple[Any, str, Any]:
    """The module or class that holds a function, the function's name in it, and the function."""
    module, _, path = place.partition(":")
    holder: Any = importlib.import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        holder = getattr(holder, part)
    return holder, name, inspect.getattr_static(holder, name) if outer else getattr(holder, name)


def _install_function(seam: Seam, watch: Watch, log: Log) -> None:
    def put() -> None:
        try:
            holder, name, own = _find(seam.place)
        except (ImportError, AttributeError):
            return  # another release, or a backend that is not installed
        new = watched(own, seam, watch, log)
        if inspect.ismodule(holder):
            rebind(own, new)
        else:
            setattr(holder, name, new)

    imports.when_imported(seam.place.partition(":")[0], put)


def _install_hook(seam: Seam, watch: Watch, log: Log) -> None:
    hooks = importlib.import_module("sglang.srt.plugins.hook_registry")
    try:
        _, _, own = _find(seam.place)
    except (ImportError, AttributeError):
        return
    order = list(inspect.signature(own).parameters)
    guarded = _Guard(seam, log)
    path = seam.place.replace(":", ".")

    def before(*args: Any, **kwargs: Any) -> None:
        guarded(seam.before, watch, {**dict(zip(order, args)), **kwargs}, None)

    def after(result: Any, *args: Any, **kwargs: Any) -> None:
        guarded(seam.behind, watch, {**dict(zip(order, args)), **kwargs}, result)

    if seam.before is not None:
        hooks.HookRegistry.register(path, before, hooks.HookType.BEFORE)
    if seam.behind is not None:
        hooks.HookRegistry.register(path, after, hooks.HookType.AFTER)


class _Guard:
    """Runs checks of one seam until one raises."""

    def __init__(self, seam: Seam, log: Log) -> None:
        self._seam, self._log, self._is_off = seam, log, False

    def __call__(self, check: Check | None, watch: Watch, given: Given, result: Any) -> None:
        if check is None or self._is_off:
            return
        try:
            check(watch, given, result)
        except Exception as error:
            self._is_off = True
            self._log.logger.warning("mlafix: %s is not watched any more: %s: %s", self._seam.place, type(error).__name__, error)
            self._log.logger.debug("mlafix: the check that failed", exc_info=True)


def watched(own: Callable[..., Any], seam: Seam, watch: Watch, log: Log | None = None) -> Callable[..., Any]:
    """A function that calls `own`, with the seam's checks before and behind it."""
    order = list(inspect.signature(own).parameters)
    guarded = _Guard(seam, log or Log("mlafix"))

    @functools.wraps(own)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(order, args)), **kwargs}
        guarded(seam.before, watch, given, None)
        result = own(*args, **kwargs)
        guarded(seam.behind, watch, given, result)
        return result

    return call


logging.getLogger("mlafix").addHandler(logging.NullHandler())
