"""Defines the plugins of vLLM and SGLang: entry points `mlafix_watch`. MLAFIX_WATCH selects what they watch. If it is
unset or 0, they do nothing.

A seam is a function of the engine that runs as before, with checks before and after it. If a check raises, the error is
logged once and the seam is no longer checked, so that a watch never stops an engine.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import logging
from collections.abc import Callable
from itertools import accumulate
from typing import Any, NamedTuple

from .. import _env
from ..engines import imports
from ..engines import seams as replaced
from ..engines.switch import Log, rebind
from .choice import choice_of
from .watcher import Watch, as_i32

Given = dict[str, Any]
Check = Callable[[Watch, Given, Any], None]


class Seam(NamedTuple):
    """A function or method of an engine, with the checks to run before and after each call."""

    place: str
    """"module:function" or "module:Class.method"."""
    seam: str
    """One of `choice.SEAMS`, or "step"."""
    behind: Check | None = None
    before: Check | None = None


# -- Checks of the engines' functions ---------------------------------------------------------------------------------


def before_attention(watch: Watch, given: Given, _: Any) -> None:
    watch.poison(given.get("out"))


def behind_attention(watch: Watch, given: Given, result: Any, name: str = "flash_attn_varlen_func") -> None:
    """Checks the result of flash_attn_varlen_func. Reads its arguments q, k, v, q_v, cu_seqlens_q, seqused_k or
    cu_seqlens_k, block_table, softmax_scale, causal and return_softmax_lse.

    Skips calls over a context without a block table. After such a call, vLLM masks the rows without keys with
    mask_empty_context, whose seam checks the rows (`behind_mask`). Then vLLM merges the rows.
    """
    out, lse = (result[0], result[1]) if isinstance(result, (tuple, list)) else (result, None)
    q, k, v, starts, lens = given["q"], given["k"], given["v"], given["cu_seqlens_q"], given.get("seqused_k")
    table, causal = given.get("block_table"), given.get("causal") is True
    is_new_tokens = table is None and causal and given.get("cu_seqlens_k") is starts
    if (lens is None and not is_new_tokens) or not watch.wants("attention", out):
        return
    sequences = {"key_starts": starts} if is_new_tokens else {"lens": lens}
    is_plain = given.get("window_size") in (None, (-1, -1), [-1, -1]) and not given.get("softcap") and k.element_size() > 1
    is_plain &= all(given.get(each) is None for each in ("alibi_slopes", "s_aux", "sinks", "mask_mod", "dynamic_causal", "score_mod", "rel_bias"))
    scale = given.get("softmax_scale") or q.shape[-1] ** -0.5
    if given.get("q_v") is not None:  # The cache is latent: a key is the value and the elements after it.
        import torch

        q, k = torch.cat([given["q_v"], q], -1), _latent_rows(v, k)
        is_plain &= k is not None
    if is_plain:
        keys, values = (k.unsqueeze(1), v.unsqueeze(1)) if is_new_tokens else (k, v)
        watch.attention(out, lse, q, keys, values, **sequences, cu_seqlens=starts, block_table=table, scale=scale, causal=causal, name=name)
    else:
        watch.states("attention", out, lse, **sequences, cu_seqlens=starts, causal=causal, name=name)


def _latent_rows(latent: Any, turned: Any) -> Any:
    """Returns the rows of a latent cache: the value and the elements after it. Returns None if the two parts of a row
    are not contiguous in memory."""
    steps = [[stride for stride, size in zip(each.stride()[:2], each.shape) if size > 1] for each in (latent, turned)]
    is_row = turned.data_ptr() == latent.data_ptr() + latent.shape[-1] * latent.element_size() and steps[0] == steps[1]
    return latent.as_strided((*latent.shape[:-1], latent.shape[-1] + turned.shape[-1]), latent.stride()) if is_row else None


def behind_mask(watch: Watch, given: Given, _: Any) -> None:
    """Checks the result of mask_empty_context. Reads its arguments lse, output, query_start_loc and context_start_loc.
    The rows belong to a chunk of context; some of them have no keys."""
    watch.states("attention", given["output"], given["lse"], key_starts=given["context_start_loc"], cu_seqlens=given["query_start_loc"], name="mask_empty_context")


def before_layer(watch: Watch, given: Given, _: Any) -> None:
    """Runs before AttentionImpl.forward. Notes the layer, poisons the output, and checks the pages that the call will
    read."""
    watch.layer = str(getattr(given.get("layer"), "layer_name", "") or watch.layer)
    watch.last_rows = 0  # another layer's rows may have had the address of this layer's rows
    watch.poison(given.get("output"))
    metadata, cache = given.get("attn_metadata"), given.get("kv_cache")
    table = getattr(metadata, "block_table", None)
    if table is not None and cache is not None and cache.dim() == 4 and cache.shape[-1] == 2 * getattr(given["self"], "head_size", 0):  # [m, H, p, 2 D]
        _pages(watch, cache.transpose(1, 2), table, metadata.seq_lens)


def _pages(watch: Watch, cache: Any, table: Any, lens: Any) -> None:
    """Checks the pages `[m, p, …]` of a cache. Skips caches that are not on a GPU, that do not have float elements of
    at least 16 bits, or whose pages are not contiguous."""
    if cache.is_cuda and cache.is_floating_point() and cache.element_size() > 1 and cache[0].is_contiguous():
        watch.blocks(cache, table, lens, name="kv_cache")


def behind_layer(watch: Watch, given: Given, result: Any) -> None:
    """Checks the result of vLLM's AttentionImpl.forward: output [n, H, D] or [n, H * D]. Reads num_actual_tokens,
    seq_lens, query_start_loc and block_table of attn_metadata."""
    metadata, out = given.get("attn_metadata"), given.get("output")
    lens, starts = getattr(metadata, "seq_lens", None), getattr(metadata, "query_start_loc", None)
    if metadata is None or out is None or lens is None or starts is None:
        return
    own = given["self"]
    watch.batch(lens, starts, getattr(metadata, "block_table", None))
    rows = out.view(out.shape[0], own.num_heads, -1)[: metadata.num_actual_tokens]
    if rows.data_ptr() == watch.last_rows:
        return  # flash_attn_varlen_func wrote these rows, so its own seam has checked them
    call = {name: each for name, each in (("q", given["query"]), ("k", given["key"]), ("v", given["value"])) if getattr(each, "ndim", 0) == 3}
    watch.states("attention", rows, lens=lens, cu_seqlens=starts, causal=True, name=f"{type(own).__name__}.forward", **call)


def before_latent_layer(watch: Watch, given: Given, _: Any) -> None:
    """Runs before MLAAttention.forward_impl. Notes the layer, poisons the output, and checks the latent pages that
    decodes will read."""
    watch.layer = given["self"].layer_name
    watch.poison(given.get("output"))
    decode = getattr(given.get("attn_metadata"), "decode", None)
    if decode is not None:
        _pages(watch, given["kv_cache"], decode.block_table, decode.seq_lens)


def before_latent_prefill(watch: Watch, given: Given, _: Any) -> None:
    """Runs before MLACommonBaseImpl.forward_mha. Row 0 in that function is the first token of the prefills. In the
    batch, the tokens of the decodes come before it."""
    watch.first_row = given["attn_metadata"].num_decode_tokens


def behind_latent_prefill(watch: Watch, given: Given, _: Any) -> None:
    watch.first_row = 0


def behind_latent_layer(watch: Watch, given: Given, _: Any) -> None:
    """Checks the result of MLAAttention.forward_impl: output [n, H * D]. attn_metadata has lengths only for decodes, so
    a step with prefills is checked without lengths."""
    metadata, own, out = given.get("attn_metadata"), given["self"], given["output"]
    if metadata is None or not out.is_floating_point() or out.element_size() < 2:
        return
    rows = out.view(out.shape[0], own.num_heads, -1)[: metadata.num_actual_tokens]
    decodes = {"lens": metadata.decode.seq_lens, "cu_seqlens": metadata.query_start_loc, "causal": True} if not metadata.num_prefills and metadata.decode else {}
    watch.states("attention", rows, name="MLAAttention.forward_impl", **decodes)


def before_merge(watch: Watch, given: Given, _: Any, *, layout: str = "", name: str = "merge_attn_states") -> None:
    """Runs before merge_attn_states. Checks both sides of the merge, and copies a side that the result will overwrite.

    `layout` is the layout of lses; "" derives it from the shapes.
    """
    out = given.get("output")
    for side in ("prefix", "suffix"):
        rows, lse = given[f"{side}_output"], given[f"{side}_lse"]
        watch.states("merge", rows, lse, lse_layout=layout or _layout(rows, lse), name=f"{side} of {name}")
        if out is not None and watch.wants("merge", rows) and rows.data_ptr() == out.data_ptr():
            given[f"{side}_output"], given[f"{side}_lse"] = rows.clone(), lse.clone()


def behind_merge(watch: Watch, given: Given, result: Any, *, layout: str = "", name: str = "merge_attn_states") -> None:
    """Checks the result of merge_attn_states or merge_state: output and output_lse, or the returned tensors. Skips fp8
    results.

    Checks all rows against the merge of both sides, also rows past `prefill_tokens_with_context`, for which the engine
    takes the suffix. If the prefix of such a row has keys, they are lost, and the check finds a fault.
    """
    out, lse = given.get("output"), given.get("output_lse")
    if isinstance(result, (tuple, list)):
        out, lse = result[0], result[1]
    sides, lses = [given["prefix_output"], given["suffix_output"]], [given["prefix_lse"], given["suffix_lse"]]
    if out is None or given.get("output_scale") is not None or out.dtype != sides[0].dtype:
        return
    watch.merge(out, lse, sides, lses, lse_layout=layout or _layout(out, lses[0]), name=name)


def behind_reduce(watch: Watch, given: Given, result: Any) -> None:
    """Checks that the result of a reduction over ranks is finite."""
    out = result[0] if isinstance(result, (tuple, list)) else result
    out = given.get("out") if out is None else out
    if out is not None and out.dim() == 3:
        watch.states("reduce", out, name="ranks")


def before_step(watch: Watch, given: Given, _: Any) -> None:
    """Begins a step of an engine's runner, with the names of its requests, and with their lengths if the batch has
    them. A dummy run begins no step."""
    batch = given.get("forward_batch")
    if batch is not None:
        _sglang_step(watch, batch)
        return
    scheduled = getattr(given.get("scheduler_output"), "num_scheduled_tokens", None) or {}
    if given.get("dummy_run"):
        watch.rest()
    elif scheduled:
        watch.step(requests=list(scheduled))


def _sglang_step(watch: Watch, batch: Any) -> None:
    """Begins a step of SGLang's ModelRunner.forward. Reads rids and the lengths on the host from forward_batch, and for
    a prefill the number of tokens of each request."""
    requests, mode, counts = getattr(batch, "rids", None) or (), getattr(batch, "forward_mode", None), getattr(batch, "extend_seq_lens_cpu", None)
    if mode is not None and mode.is_idle():
        watch.rest()
        return
    decodes = mode is not None and mode.is_decode()
    starts = list(range(len(requests) + 1)) if decodes else None if counts is None else [0, *accumulate(counts)]
    tokens = getattr(batch, "input_ids", None)
    watch.step(None if tokens is None else tokens.shape[0], requests=requests, lens=getattr(batch, "seq_lens_cpu", None), cu_seqlens=starts)


def behind_inputs(watch: Watch, given: Given, result: Any) -> None:
    """Runs after GPUModelRunner._prepare_inputs, which determines the batch of a step."""
    runner = given["self"]
    batch, table = runner.input_batch, runner.input_batch.block_table[0]
    n, tokens = batch.num_reqs, given["scheduler_output"].total_num_scheduled_tokens
    host = runner.optimistic_seq_lens_cpu[:n]
    _batch(watch, batch.req_ids, runner.seq_lens[:n], host, runner.query_start_loc.np[: n + 1], runner.query_start_loc.gpu[: n + 1],
           table.get_device_tensor(n), table.slot_mapping.gpu[:tokens], table.block_size, runner.kv_cache_config.num_blocks * table.blocks_per_kv_block,
           runner.speculative_config is None)  # fmt: skip


def behind_prepare(watch: Watch, given: Given, result: Any) -> None:
    """Runs after GPUModelRunner.prepare_attn of vLLM's second runner. Its argument input_batch has the requests; its
    results are the block tables and slots of each group of caches."""
    runner, batch, tables = given["self"], given["input_batch"], given["self"].block_tables
    n = batch.num_reqs
    _batch(watch, batch.req_ids, batch.seq_lens[:n], batch.seq_lens_cpu_upper_bound[:n], batch.query_start_loc_np[: n + 1], batch.query_start_loc[: n + 1],
           result[0][0][:n], result[1][0][: batch.num_tokens], tables.kernel_block_sizes[0],
           runner.kv_cache_config.num_blocks * tables.blocks_per_kv_block[0], runner.speculator is None)  # fmt: skip


def _batch(watch: Watch, names: Any, lens: Any, host_lens: Any, host_starts: Any, starts: Any, table: Any, slots: Any, page_size: int, pages: int,
           is_exact: bool) -> None:  # fmt: skip
    """Stores the batch of a step for reports, and checks its metadata. `is_exact` is false if drafts may be rejected:
    the host's lengths are then only upper bounds."""
    watch.batch(host_lens, host_starts, table, requests=list(names))
    if watch.wants("metadata", lens):
        expected = host_lens.to(lens.device, lens.dtype, non_blocking=True) if is_exact else None
        watch.metadata(lens, pages=pages, page_size=page_size, expected_lens=expected, cu_seqlens=starts, slots=slots, block_table=table, name="batch")


def before_sglang_layer(watch: Watch, given: Given, _: Any) -> None:
    """Runs before AttentionBackend.forward of SGLang and notes the layer."""
    watch.layer, watch.last_rows = str(given["layer"].layer_id), 0


def behind_sglang_layer(watch: Watch, given: Given, result: Any) -> None:
    """Checks the result of SGLang's AttentionBackend.forward: [n, H * D]. Reads layer_id and tp_q_head_num of the
    layer, and seq_lens of forward_batch.

    Skips a result that is a tuple with an lse. Such a result is a side of a merge, so the merge's seam checks it.
    """
    layer, batch = given["layer"], given["forward_batch"]
    if not hasattr(result, "dim"):
        return
    rows = result.view(result.shape[0], layer.tp_q_head_num, -1)
    if rows.data_ptr() == watch.last_rows:
        return  # a FlashAttention function wrote these rows, so its own seam has checked them
    decodes = batch.forward_mode.is_decode() and watch.wants("attention", rows)
    watch.states("attention", rows, lens=as_i32(batch.seq_lens) if decodes else None, name=f"{type(given['self']).__name__}.forward")


def before_sglang_pages(watch: Watch, given: Given, _: Any) -> None:
    """Runs before flash_attn_with_kvcache of SGLang and checks the pages that the call will read. A row of a latent
    cache is both key and value, so keys and values are checked together."""
    table, keys, values = given.get("page_table"), given["k_cache"], given["v_cache"]
    watch.poison(given.get("out"))
    if table is None or not hasattr(given.get("cache_seqlens"), "dim"):
        return
    for cache in [keys, values] if given.get("qv") is None else [_latent_rows(values, keys)]:
        if cache is not None:
            _pages(watch, cache, table, given["cache_seqlens"])


def behind_sglang_pages(watch: Watch, given: Given, result: Any) -> None:
    """Checks the result of flash_attn_with_kvcache of SGLang, and recomputes some rows."""
    if given.get("page_table") is None or given.get("k") is not None or not hasattr(given.get("cache_seqlens"), "dim"):
        return
    renamed = {"k": given["k_cache"], "v": given["v_cache"], "q_v": given.get("qv"), "seqused_k": given["cache_seqlens"], "block_table": given["page_table"]}
    behind_attention(watch, {**given, **renamed}, result, "flash_attn_with_kvcache")


def behind_sglang_varlen(watch: Watch, given: Given, result: Any) -> None:
    """Checks the result of flash_attn_varlen_func of SGLang. Recomputes some rows of calls on new tokens. For calls on
    a chunk of context, where rows may have no keys, recomputes nothing."""
    if given.get("causal") or given.get("page_table") is not None:
        behind_attention(watch, {**given, "q_v": given.get("qv"), "block_table": given.get("page_table")}, result)
        return
    out, lse = (result[0], result[1]) if isinstance(result, (tuple, list)) else (result, None)
    if watch.wants("attention", out):
        watch.states("attention", out, lse, key_starts=given["cu_seqlens_k"], cu_seqlens=given["cu_seqlens_q"], name="flash_attn_varlen_func")


_SIDES = {"v_a": "prefix_output", "s_a": "prefix_lse", "v_b": "suffix_output", "s_b": "suffix_lse", "v_merged": "output", "s_merged": "output_lse"}


def of_sglang(check: Callable[..., None], name: str) -> Check:
    """Adapts a check of merges to SGLang, where an lse is [n, H], and where merge_state_v2 has other names for the
    parameters."""

    def named(watch: Watch, given: Given, result: Any) -> None:
        for theirs, ours in _SIDES.items():
            given.setdefault(ours, given.get(theirs))
        check(watch, given, result, layout="nh", name=name)

    return named


def _layout(rows: Any, lse: Any) -> str:
    """Returns the layout of the lse that belongs to rows [n, H, D]: "hn" if the lse is [H, n], else "nh"."""
    return "hn" if tuple(lse.shape) == (rows.shape[1], rows.shape[0]) else "nh"


# -- Seams ------------------------------------------------------------------------------------------------------------

_BACKENDS = "vllm.v1.attention.backends"
_OPS = "vllm.v1.attention.ops.triton_merge_attn_states"

VLLM = (
    Seam("vllm.v1.worker.gpu_model_runner:GPUModelRunner.execute_model", "step", before=before_step),
    Seam("vllm.v1.worker.gpu_model_runner:GPUModelRunner._prepare_inputs", "step", behind_inputs),
    Seam("vllm.v1.worker.gpu.model_runner:GPUModelRunner.execute_model", "step", before=before_step),
    Seam("vllm.v1.worker.gpu.model_runner:GPUModelRunner.prepare_attn", "step", behind_prepare),
    Seam(f"{_BACKENDS}.flash_attn:FlashAttentionImpl.forward", "attention", behind_layer, before_layer),
    Seam(f"{_BACKENDS}.flashinfer:FlashInferImpl.forward", "attention", behind_layer, before_layer),
    Seam(f"{_BACKENDS}.triton_attn:TritonAttentionImpl.forward", "attention", behind_layer, before_layer),
    Seam(f"{_BACKENDS}.cpu_attn:CPUAttentionBackendImpl.forward", "attention", behind_layer, before_layer),
    Seam("vllm.model_executor.layers.attention.mla_attention:MLAAttention.forward_impl", "attention", behind_latent_layer, before_latent_layer),
    Seam("vllm.model_executor.layers.attention.mla_attention:MLACommonBaseImpl.forward_mha", "attention", behind_latent_prefill, before_latent_prefill),
    Seam("vllm.vllm_flash_attn.flash_attn_interface:flash_attn_varlen_func", "attention", behind_attention, before_attention),
    Seam(f"{_OPS}:mask_empty_context", "attention", behind_mask),
    *(Seam(one.place, "merge", behind_merge, before_merge) for one in replaced.VLLM if one.function == "merge_attn_states" and one.kind == "function"),
    *(Seam(one.place, "reduce", behind_reduce) for one in replaced.VLLM
      if one.function in ("correct_attn_out", "cp_lse_ag_out_rs", "cp_lse_ag_out_ar", "dcp_a2a_lse_reduce")),
)  # fmt: skip

SGLANG = (
    Seam("sglang.srt.model_executor.model_runner:ModelRunner.forward", "step", before=before_step),
    Seam("sglang.srt.layers.attention.base_attn_backend:AttentionBackend.forward", "attention", behind_sglang_layer, before_sglang_layer),
    Seam("sglang.kernels.ops.attention.flash_attention:flash_attn_with_kvcache", "attention", behind_sglang_pages, before_sglang_pages),
    Seam("sglang.kernels.ops.attention.flash_attention:flash_attn_varlen_func", "attention", behind_sglang_varlen, before_attention),
    *(Seam(one.place, "merge", of_sglang(behind_merge, one.function), of_sglang(before_merge, one.function)) for one in replaced.SGLANG
      if one.function in ("merge_state", "merge_state_v2")),
    *(Seam(one.place, "reduce", behind_reduce) for one in replaced.SGLANG
      if one.function in ("correct_attn_out", "dcp_lse_combine_triton", "cp_lse_ag_out_rs_mha", "cp_lse_ag_out_rs_mla", "dcp_a2a_lse_reduce")),
)  # fmt: skip

watches: dict[str, Watch] = {}
"""The watch of each engine in this process, by the engine's name."""


def register_vllm() -> None:
    """Watches the functions of vLLM that MLAFIX_WATCH selects, as soon as their modules are imported. Never raises.
    Does nothing when it is called again."""
    _register("vllm", _install_function)


def register_sglang() -> None:
    """Watches the functions of SGLang that MLAFIX_WATCH selects, through SGLang's hooks. Never raises. Does nothing
    when it is called again."""
    _register("sglang", _install_hook)


def _register(engine: str, install: Callable[[Seam, Watch, Log], None]) -> None:
    log = Log(f"{engine}.mlafix")
    try:
        choice = choice_of(_env.watch())
        if choice is None or engine in watches:
            return
        watch = watches[engine] = Watch(choice, say=log.logger.error, json=_env.watch_report() or None)
        watch.rest()  # ignores calls before the first step, since they belong to no request
        layers = {"attention", "cache"} if "cache" in choice.seams else {"attention"}  # attention's seams check the pages that a layer reads
        chosen = choice.seams | layers if choice.seams & layers else choice.seams
        wanted = [seam for seam in (VLLM if engine == "vllm" else SGLANG) if seam.seam == "step" or seam.seam in chosen]
        for seam in wanted:
            install(seam, watch, log)
        log.say(f"watches {', '.join(sorted(choice.seams))} of {engine} every {choice.every} steps")
    except Exception:
        log.logger.exception("mlafix: the watch failed; %s goes on", engine)


def _find(place: str) -> tuple[Any, str, Any]:
    """Returns the module or class that holds a function, the function's name there, and the function."""
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
            return  # the engine's release lacks the function, or a backend is not installed
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
    call_of = _caller(own, seam, watch, log)
    hooks.HookRegistry.register(seam.place.replace(":", "."), lambda own, *args, **kwargs: call_of(own, args, kwargs), hooks.HookType.AROUND)


def watched(own: Callable[..., Any], seam: Seam, watch: Watch, log: Log | None = None) -> Callable[..., Any]:
    """Returns a function that calls `own`, with the seam's checks before and after each call."""
    call_of = _caller(own, seam, watch, log or Log("mlafix"))

    @functools.wraps(own)
    def call(*args: Any, **kwargs: Any) -> Any:
        return call_of(own, args, kwargs)

    return call


def _caller(own: Callable[..., Any], seam: Seam, watch: Watch, log: Log) -> Callable[..., Any]:
    """Returns a function (function, args, kwargs) that calls `function` with the seam's checks before and after it, until
    one of them raises. The parameters of `own` name the arguments for the checks."""
    order = list(inspect.signature(own).parameters)
    is_off = False

    def run(check: Check | None, given: Given, result: Any) -> None:
        nonlocal is_off
        if check is None or is_off:
            return
        try:
            check(watch, given, result)
        except Exception as error:
            is_off = True
            log.logger.warning("mlafix: %s is not watched any more: %s: %s", seam.place, type(error).__name__, error)
            log.logger.debug("mlafix: the check that failed", exc_info=True)

    def call_of(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        given = {**dict(zip(order, args)), **kwargs}
        run(seam.before, given, None)
        result = function(*args, **kwargs)
        run(seam.behind, given, result)
        return result

    return call_of


logging.getLogger("mlafix").addHandler(logging.NullHandler())
