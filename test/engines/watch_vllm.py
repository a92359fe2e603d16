"""Tests the watch in vLLM: it must name faults that are injected into the running engine, and must not report clean
steps. Also measures what the watch costs.

    python test/engines/watch_vllm.py --model gqa|mla [--graphs] [--device cpu] --out FOLDER [faults] [clean] [cost]

README.md beside this file explains the output. Exits with status 1 if the watch does not report exactly what is expected.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import logging
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import models
from run_vllm import ENVIRONMENT, run_all, turn

FAULTY_STEP = 4  # counted from the prefill of the requests, which is step 1
LAYER = "model.layers.1.self_attn.attn"
WORK = ("faults", "clean", "cost")
RUNS = {"faults": "1", "off": "0", "on": "1"}
"""The runs, with the value of MLAFIX_WATCH in each. The run "faults" also runs the clean steps, after the faults."""


class Fault(NamedTuple):
    """A fault, and the expected contents of the first report."""

    seam: str
    name: str
    fault: str
    layer: str = LAYER
    step: int = FAULTY_STEP
    request: int | None = 1
    row: int | None = None


FLASH, LATENT = "flash_attn_varlen_func", "MLAAttention.forward_impl"
FAULTS = {
    "rows": Fault("attention", FLASH, "NaN"),
    "scale": Fault("attention", f"{FLASH}, recomputed", "another value"),
    "page": Fault("cache", "kv_cache", "NaN in a block"),
    "length": Fault("metadata", "batch", "another length", layer=""),
    "merge": Fault("merge", "merge_attn_states", "another value", request=None, row=0),
    "mask": Fault("attention", "mask_empty_context", "not empty", step=1, request=None),
}
BAD = {"rows": float("nan"), "scale": 1.5, "page": float("nan"), "merge": 1.5}
"""The factor by which a fault multiplies elements in its step; the factor is 1 in all other steps. A captured graph
contains the multiplication, so the factor is stored on the device (`State.switch`)."""


class State:
    """The current fault. The wrapped functions of the engine, which run below the watch, read it."""

    def __init__(self) -> None:
        self.now, self.at, self.layer, self.layers = "", 0, "", {}  # type: ignore[var-annotated]
        self.switches: dict[str, Any] = {}
        self.steps = self.merges = 0
        self.page: Any = None
        """Layer 1's cache, the first page of request 1, and the contents of the page's first slot without the fault.
        Only set from the end of layer 0 to the end of layer 1."""

    def switch(self, name: str, device: Any) -> Any:
        import torch

        if name not in self.switches:
            with torch.inference_mode(False):
                self.switches[name] = torch.full((1,), self.factor(name), device=device)
        return self.switches[name]

    def begin_step(self) -> None:
        self.steps += 1
        for name, switch in self.switches.items():
            switch.fill_(self.factor(name))

    def factor(self, name: str) -> float:
        return BAD[name] if name == self.now and self.is_on else 1.0

    @property
    def is_on(self) -> bool:
        return self.steps == self.at


state = State()


def wrapped(holder: Any, name: str, around: Any) -> None:
    """Replaces a function by `around(own, given)`. `own()` calls the original; `given` has the arguments by name."""
    import inspect

    own = getattr(holder, name)
    order = list(inspect.signature(own).parameters)

    @functools.wraps(own)
    def call(*args: Any, **kwargs: Any) -> Any:
        return around(lambda: own(*args, **kwargs), {**dict(zip(order, args)), **kwargs})

    setattr(holder, name, call)


def spoil_rows(rows: Any, starts: Any, switch: Any) -> None:
    """Multiplies the rows of request 1 by `switch`, which is 1 unless the fault is active."""
    import torch

    if starts.shape[0] > 2:
        at = torch.arange(rows.shape[0], device=rows.device)
        mine = ((at >= starts[1]) & (at < starts[2])).view(-1, *[1] * (rows.dim() - 1))
        rows.copy_(torch.where(mine, rows * switch.to(rows.dtype), rows))


def around_attention(own: Any, given: dict[str, Any]) -> Any:
    result = own()
    out = result[0] if isinstance(result, tuple) else result
    if state.layer == LAYER:
        for name in ("rows", "scale"):
            spoil_rows(out, given["cu_seqlens_q"], state.switch(name, out.device))
    return result


def around_layer(own: Any, given: dict[str, Any]) -> Any:
    """Records the name of the current layer. For the fault "page", puts NaN in the first page of request 1 in layer 1's
    cache before layer 1, and repairs the page after layer 1."""
    import torch

    layer = given.get("layer") or given["self"]
    state.layer, state.layers[layer.layer_name] = layer.layer_name, layer
    result = own()
    state.layer = ""
    if layer.layer_name == LAYER and state.page is not None:
        cache, page, kept = state.page
        now = cache[page, 0]
        cache[page, 0] = torch.where(now.isnan(), kept, now)  # layer 1 may have written a new token there
        state.page = None
    metadata, victim = given["attn_metadata"], state.layers.get(LAYER)
    table = getattr(metadata, "block_table", None) if metadata is not None else None
    if table is None and getattr(metadata, "decode", None) is not None:
        table = metadata.decode.block_table
    if table is not None and table.shape[0] > 1 and layer.layer_name != LAYER and victim is not None and victim.kv_cache.numel():
        page = table[1, :1].long()
        cache = victim.kv_cache.transpose(1, 2) if victim.kv_cache.dim() == 4 else victim.kv_cache
        kept = cache[page, 0]
        state.page = cache, page, kept
        cache[page, 0] = kept * state.switch("page", cache.device).to(cache.dtype)
    return result


def around_merge(own: Any, given: dict[str, Any]) -> Any:
    state.merges += 1
    result = own()
    if state.layer == LAYER:
        row = given["output"][:1]
        row.mul_(state.switch("merge", row.device).to(row.dtype))
    return result


def around_mask(own: Any, given: dict[str, Any]) -> Any:
    result = own()
    if state.now == "mask" and state.is_on and state.layer == LAYER:
        given["lse"][:, -1] = float("inf")  # the last request, which has no context; its lse must be -inf
    return result


def around_batch(own: Any, given: dict[str, Any]) -> Any:
    result = own()
    if state.now == "length" and state.is_on:
        lens = result.seq_lens if hasattr(result, "seq_lens") else given["self"].seq_lens
        lens[1:2] -= 1
    return result


def around_step(own: Any, given: dict[str, Any]) -> Any:
    if not given.get("dummy_run") and given["scheduler_output"].num_scheduled_tokens:
        state.begin_step()
    return own()


def spoil_cpu() -> None:
    """Wraps attention on CPUs for two faults: NaN past the keys of request 1 in its last page, and infinite rows."""
    from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackendImpl as Impl

    def around(own: Any, given: dict[str, Any]) -> Any:
        metadata = given["attn_metadata"]
        is_here, behind = metadata is not None and given["layer"].layer_name == LAYER and state.is_on, None
        if is_here and state.now == "page":  # as if an earlier request had left NaN there
            length, cache = int(metadata.seq_lens[1]), given["kv_cache"]
            last, size = int(metadata.block_table[1, (length - 1) // 32]), 32
            behind = cache.view(*cache.shape[:2], 2, size, -1)[last, :, 1][:, (length - 1) % size + 1 :]
            kept = behind.clone()
            behind.fill_(float("nan"))
        result = own()
        if behind is not None:
            behind.copy_(kept)
        if is_here and state.now == "rows":
            begin, end = metadata.query_start_loc[1:3].tolist()
            given["output"][begin:end] = float("inf")
        return result

    wrapped(Impl, "forward", around)


def spoil(options: argparse.Namespace) -> None:
    """Wraps the engine's functions that the watch observes, so that they inject faults."""
    from vllm.v1.worker import gpu_model_runner

    wrapped(gpu_model_runner.GPUModelRunner, "execute_model", around_step)
    if options.device == "cpu":
        spoil_cpu()
        return
    import vllm._custom_ops as custom
    from vllm.model_executor.layers.attention import mla_attention
    from vllm.v1.attention.backends import flash_attn
    from vllm.v1.attention.ops import triton_merge_attn_states as triton_ops
    from vllm.v1.worker.gpu import model_runner

    from mlafix.engines.switch import rebind
    from vllm.vllm_flash_attn import flash_attn_interface as interface

    wrapped(gpu_model_runner.GPUModelRunner, "_prepare_inputs", around_batch)
    wrapped(model_runner.GPUModelRunner, "execute_model", around_step)
    wrapped(model_runner.GPUModelRunner, "prepare_inputs", around_batch)
    wrapped(mla_attention.MLAAttention, "forward_impl", around_layer)
    wrapped(flash_attn.FlashAttentionImpl, "forward", around_layer)
    for holder, name, around in ((interface, "flash_attn_varlen_func", around_attention), (custom, "merge_attn_states", around_merge),
                                 (triton_ops, "mask_empty_context", around_mask)):  # fmt: skip
        own = getattr(holder, name)
        wrapped(holder, name, around)
        new = getattr(holder, name)
        setattr(holder, name, own)
        rebind(own, new)


# -- One run --------------------------------------------------------------------------------------------------------------


def engine(options: argparse.Namespace) -> Any:
    from vllm import LLM

    more: dict[str, Any] = {"enforce_eager": True}
    if options.graphs:  # decodes are captured as a whole; mode 0: torch.compile would fuse functions that are wrapped
        more = {"compilation_config": {"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": [1, 2, 4, 8, 16, 32, 64]}}
    if options.device == "cpu":
        more |= {"max_model_len": 512, "block_size": 32}
    else:
        more |= {"max_model_len": 8192, "kv_cache_memory_bytes": 2 << 30, "gpu_memory_utilization": 0.05, "max_num_batched_tokens": 2048,
                 "disable_cascade_attn": not options.cascade}  # fmt: skip
    return LLM(model=str(options.out / "model"), skip_tokenizer_init=True, dtype="bfloat16", seed=0, max_num_seqs=64, disable_log_stats=True,
               generation_config="vllm", enable_prefix_caching=True, **more)  # fmt: skip


def generate(llm: Any, prompts: list[list[int]], tokens: int) -> list[Any]:
    from vllm import SamplingParams

    sampling = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True, detokenize=False, logprobs=1)
    return list(llm.generate([{"prompt_token_ids": prompt} for prompt in prompts], sampling, use_tqdm=False))


def ids(count: int, seed: int) -> list[int]:
    import torch

    return torch.randint(2, 4096, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def run_fault(llm: Any, watch: Any, name: str, options: argparse.Namespace) -> bool:
    """Runs a few requests with one fault. Returns True if the first report is the expected one."""
    want = FAULTS[name]
    llm.reset_prefix_cache()
    prompts, step = [ids(count, 10 + count) for count in (40, 41, 42, 43)], want.step
    if name in ("merge", "mask"):  # these faults need contexts: chunks for MLA, or a shared prefix
        shared = ids(1024, 1)
        generate(llm, [shared], 1)
        prompts, step = [shared + ids(600, 2), ids(700, 3)], 1
        if options.model == "gqa":
            prompts = [shared + ids(5 + at, 20 + at) for at in range(32)]
    watch.reports.clear()
    state.now, state.at = name, state.steps + step
    begin, merges = watch.now, state.merges
    generate(llm, prompts, 8)
    state.now = ""
    watch.finish()
    found = watch.reports[0].record if watch.reports else None
    keys = ("seam", "name", "class", "layer", "step")
    got = found and (*(found[key] for key in keys), found["request"].partition("-")[0], found["row"][0])
    first = llm.request_counter.counter - len(prompts)
    expected = (want.seam, want.name, want.fault, want.layer, begin + step, str(first + want.request) if want.request is not None else None, want.row)
    if options.device == "cpu":
        expected = ("attention", "CPUAttentionBackendImpl.forward", {"page": "NaN", "rows": "infinite"}[name], *expected[3:])
    is_right = got is not None and all(b in (None, a) for a, b in zip(got, expected))
    say(f"{'ok   ' if is_right else 'WRONG'} {name}: expected {expected}, got {got} ({state.merges - merges} merges)")
    say(*(f"      {report.line}" for report in watch.reports[:2]))
    generate(llm, [ids(30, 5)], 2)  # pending findings are reported before the next fault begins
    watch.finish()
    watch.reports.clear()
    return is_right


def run_clean(llm: Any, watch: Any, options: argparse.Namespace) -> bool:
    """Runs requests of many lengths until time is up or enough steps are done. Returns True if there was no report."""
    import torch

    draw = torch.Generator().manual_seed(3)
    begin, until, round_, requests = watch.now, time.monotonic() + options.seconds, 0, 0
    most = 150 if options.device == "cpu" else 400
    watch.choice = watch.choice._replace(poison=not options.graphs)
    while time.monotonic() < until and not watch.reports and not 0 < options.steps <= watch.now - begin:
        lengths = torch.randint(1, most, (24,), generator=draw).tolist()
        generate(llm, [ids(count, 100 * round_ + at) for at, count in enumerate(lengths)], 100)
        requests += len(lengths)
        if options.device != "cpu":
            generate(llm, [ids(5000, round_)], 4)  # one request that is prefilled in chunks
            requests += 1
        round_ += 1
    watch.choice = watch.choice._replace(poison=False)
    watch.finish()
    is_right = not watch.reports and watch.now - begin >= options.steps
    seconds = options.seconds - until + time.monotonic()
    say(f"{'ok   ' if is_right else 'WRONG'} clean: {watch.now - begin} steps, {requests} requests, {len(watch.reports)} reports in {seconds:.0f} s")
    say(*(f"      {report.line}" for report in watch.reports[:3]))
    return is_right


def run_order(llm: Any, watch: Any) -> None:
    """Runs two requests: a short one without a cached prefix, and a longer one with a cached prefix. First runs each
    alone, then both in one step, where some releases of vLLM ignore the cached prefix. Prints the watch's reports, and
    the first token of each request alone and together."""
    shared = ids(1024, 1)
    prompts = [ids(600, 8), shared + ids(700, 9)]
    tokens = []
    for together in (False, True):
        llm.reset_prefix_cache()
        generate(llm, [shared], 1)
        found = generate(llm, prompts, 1) if together else [generate(llm, [prompt], 1)[0] for prompt in prompts]
        tokens.append([(one.outputs[0].token_ids[0], round(max(value.logprob for value in one.outputs[0].logprobs[0].values()), 3)) for one in found])
    if watch is not None:
        watch.finish()
        say(*(f"      {report.line}" for report in watch.reports[:3]))
        watch.reports.clear()
    say(f"order: first token and logprob alone {tokens[0]}, together {tokens[1]}")


def times(llm: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Returns the milliseconds per token by number of requests, and those of a prefill. Also returns the device time of
    kernels in decodes and in a prefill."""
    import torch

    def seconds(prompts: list[list[int]], tokens: int) -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        generate(llm, prompts, tokens)
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    found: dict[str, Any] = {}
    for count in (1, 16, 64):
        prompts = [ids(1000, 50 + at) for at in range(count)]
        generate(llm, prompts, 33)
        pairs = [(seconds(prompts, 33), seconds(prompts, 1)) for _ in range(options.rounds)]
        found[f"ms per token, {count} requests"] = round(1e3 * statistics.median(many - one for many, one in pairs) / 32, 3)
    prompts = [ids(1000, 900 + at) for at in range(2)]

    def prefill(tokens: int) -> float:
        llm.reset_prefix_cache()
        return seconds(prompts, tokens)

    found["ms of a prefill of 2000 tokens"] = round(1e3 * statistics.median(prefill(1) for _ in range(2 * options.rounds)), 3)
    prompts = [ids(1000, 50 + at) for at in range(16)]
    generate(llm, prompts, 1)
    found["decode of 16, us of kernels"] = kernels(lambda: generate(llm, prompts, 33))
    prompts = [ids(1000, 900 + at) for at in range(2)]
    llm.reset_prefix_cache()
    found["prefill of 2000, us of kernels"] = kernels(lambda: generate(llm, prompts, 1))
    return found


def kernels(call: Any) -> dict[str, list[float]]:
    """Returns [launches, device microseconds] by kind of kernel, and in total as "all"."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call()
        torch.cuda.synchronize()
    found: dict[str, list[float]] = {}
    for event in profile.events():
        if event.device_type.name == "CUDA":
            name = event.name
            words = ("check_states", "check_attention", "check_blocks", "check_merge", "check_metadata", "merge_attn_states", "Flash", "flash", "CatArray", "Memset", "Memcpy")
            kind = next((word for word in words if word in name), "other kernels").replace("Flash", "flash")
            for key in (kind, "all"):
                row = found.setdefault(key, [0, 0.0])
                row[0], row[1] = row[0] + 1, round(row[1] + event.time_range.elapsed_us(), 1)
    return found


lines: list[str] = []
"""The findings of this run. The run writes them to a file at its end, and the process that started the run prints
them."""


def say(*more: str) -> None:
    lines.extend(more)
    print(*more, sep="\n", flush=True)


def run(options: argparse.Namespace) -> None:
    os.environ["MLAFIX_WATCH_REPORT"] = str(options.out / f"{options.run}.jsonl")
    if options.run == "faults":
        spoil(options)
    from mlafix.watch import engines

    handler = logging.Handler()
    logs: list[str] = []
    handler.emit = lambda record: logs.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("vllm.mlafix").addHandler(handler)
    engines.register_vllm()
    watch = engines.watches.get("vllm")
    if options.run == "faults":
        watch.sample = 1  # set before the capture, so that the graph includes the check
    llm = engine(options)
    if watch is not None:
        watch.finish()
        say(*(f"WRONG {report.line}" for report in watch.reports))
        watch.reports.clear()
    found = {}
    with turn(options.turn, options.engines) if options.turn else contextlib.nullcontext():
        if options.run == "faults":
            is_right = run_watched(llm, watch, options)
        elif options.run == "off":
            is_right, found["not watched"] = True, times(llm, options)
        else:
            for every in (1, 100):
                watch.choice = watch.choice._replace(every=every)
                found[f"every={every}"] = times(llm, options)
            is_right = not watch.reports
            say(*(report.line for report in watch.reports[:3]))
    say(*(f"log: {line}"[:300] for line in logs))
    is_right &= not any("not watched any more" in line for line in logs)
    (options.out / f"{options.run}.json").write_text(json.dumps({"is right": is_right, "lines": lines, "times": found}, indent=1), encoding="utf-8")
    os._exit(0)  # skips the engine's shutdown


def run_watched(llm: Any, watch: Any, options: argparse.Namespace) -> bool:
    """Runs the faults, two requests in an order in which some releases of vLLM ignore a context (`run_order`), and
    clean steps. Returns True if the reports on faults and clean steps are as expected."""
    is_right = True
    if "faults" in options.work:
        for name in names(options):
            is_right &= run_fault(llm, watch, name, options)
        if options.model == "mla" and not options.graphs and options.device != "cpu":
            run_order(llm, watch)
    if "clean" in options.work:
        is_right &= run_clean(llm, watch, options)
    return is_right


def names(options: argparse.Namespace) -> list[str]:
    """Returns the names of the faults that can be injected with these options. Faults of merges need MLA without
    captured graphs, or GQA with cascade attention."""
    if options.device == "cpu":
        return ["page", "rows"]
    merges = ["mask", "merge"] if options.model == "mla" and not options.graphs else ["merge"] if options.cascade else []
    return ["rows", "scale", "length", *merges, "page"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="watch_vllm.py", description="The watch in vLLM, on a small random model.")
    parser.add_argument("work", nargs="*", choices=[[], *WORK], default=[], help="what is done: all of it by default, on a CPU without cost")
    parser.add_argument("--model", choices=("mla", "gqa"), default="gqa")
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--graphs", action="store_true", help="decodes in captured graphs; else eager")
    parser.add_argument("--cascade", action="store_true", help="cascade attention over shared prefixes (gqa, eager, vLLM's first runner)")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=20, help="of clean steps")
    parser.add_argument("--steps", type=int, default=0, help="of them: fewer are wrong, and the rest of the time is not used")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that are timed")
    parser.add_argument("--turn", type=Path, help="a file that other runs share: none uses the GPU with another")
    parser.add_argument("--engines", type=int, default=0, help="engines that share it")
    parser.add_argument("--run", choices=RUNS, help=argparse.SUPPRESS)  # runs one of RUNS in its own process
    options = parser.parse_args()
    options.work = options.work or [word for word in WORK if options.device != "cpu" or word != "cost"]
    if options.run:
        run(options)
    models.write(options.out / "model", options.model, 4 if options.device == "cpu" else options.heads)
    runs = {name: value for name, value in RUNS.items() if (("cost" in options.work) if name in ("off", "on") else {"faults", "clean"} & set(options.work))}
    environment = {**ENVIRONMENT, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", **({"VLLM_USE_V2_MODEL_RUNNER": "0"} if options.cascade else {})}
    return run_all(options.out, runs, "MLAFIX_WATCH", environment, summary)


def summary(results: dict[str, Any]) -> list[str]:
    """Prints the findings of the runs. Returns the errors."""
    for result in results.values():
        print(*result["lines"], sep="\n")
        for title, values in result["times"].items():
            print(*(f"{title:12} {what}: {value}" for what, value in values.items()), sep="\n")
    return [f"{name}: the watch said anything else than expected" for name, result in results.items() if not result["is right"]]


if __name__ == "__main__":
    sys.exit(main())
